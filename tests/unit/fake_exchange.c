// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whole exchanges with the stand-in, and comparisons, for more than one test. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fake_script.h"

#define BLOCKS 1803
#define LENGTH 3779571220u	/* ends within its last block */

const struct kvp_pool_info fake_pool_full = {
	.id = 12, .generation = 0x1122334455667788, .name = "kv-target", .domain = "serving",
	.role = "target", .label = "model a, rank 3", .rank = 3, .length = LENGTH,
	.mapped_length = (uint64_t)BLOCKS << 21, .block_size = 1 << 21, .node = 1,
	.placement = KVP_PLACEMENT_STRICT, .lifetime = KVP_LIFETIME_PERSISTENT, .uid = 1000,
	.gid = 1001, .mode = 0640, .state = KVP_STATE_ORPHAN,
	.registration = KVP_REGISTRATION_FALLBACK_L2, .blocks = BLOCKS, .pinned_blocks = 17,
	.mappings = 2, .files = 4, .owned = 1, .owner_uid = 1002, .owner_pid = 4321,
	.owner_start = 987654321987, .device = (511 << 20) | 7,
};

const struct kvp_pool_info fake_pool_plain = {
	.id = 1, .generation = 1, .name = "pool-1", .domain = "d", .rank = KVP_NONE, .length = 1,
	.mapped_length = 1 << 21, .block_size = 1 << 21, .node = KVP_NONE, .mode = 0600,
	.blocks = 1, .files = 1,
};

/* --------------------------------------------------------------- attributes */

struct spoiled {
	uint16_t type;
	enum fake_spoil how;
};

static void put_spoiled(const struct spoiled *spoil, uint16_t type, size_t size, const void *data)
{
	char bytes[160] = { 0 };

	if (spoil->type != type || spoil->how == FAKE_WHOLE) {
		fake_put(type, size, data);
		return;
	}
	memcpy(bytes, data, size);
	switch (spoil->how) {
	case FAKE_OMIT:
		return;
	case FAKE_SHORT:
		fake_put(type, size - 1, bytes);
		return;
	case FAKE_LONG:
		/* Longer than any name may be; of a number: one byte more. */
		memset(bytes + size - 1, 'x', 100);
		fake_put(type, size + (size > 8 ? 100 : 1), bytes);
		return;
	default:
		fake_put(type, size - 1, bytes);
		return;
	}
}

static void put_u32(const struct spoiled *spoil, uint16_t type, uint32_t value)
{
	put_spoiled(spoil, type, sizeof(value), &value);
}

static void put_u64(const struct spoiled *spoil, uint16_t type, uint64_t value)
{
	put_spoiled(spoil, type, sizeof(value), &value);
}

static void put_text(const struct spoiled *spoil, uint16_t type, const char *text)
{
	put_spoiled(spoil, type, strlen(text) + 1, text);
}

void fake_put_pool(const struct kvp_pool_info *pool, uint16_t type, enum fake_spoil how)
{
	const struct spoiled spoil = { type, how };

	put_u32(&spoil, KVPOOL_A_POOL_ID, pool->id);
	put_u64(&spoil, KVPOOL_A_POOL_GENERATION, pool->generation);
	put_text(&spoil, KVPOOL_A_POOL_NAME, pool->name);
	put_text(&spoil, KVPOOL_A_POOL_DOMAIN, pool->domain);
	if (pool->role[0])
		put_text(&spoil, KVPOOL_A_POOL_ROLE, pool->role);
	if (pool->label[0])
		put_text(&spoil, KVPOOL_A_POOL_LABEL, pool->label);
	if (pool->rank != KVP_NONE)
		put_u32(&spoil, KVPOOL_A_POOL_RANK, pool->rank);
	put_u64(&spoil, KVPOOL_A_POOL_LENGTH, pool->length);
	put_u64(&spoil, KVPOOL_A_POOL_MAPPED_LENGTH, pool->mapped_length);
	put_u32(&spoil, KVPOOL_A_POOL_BLOCK_SIZE, pool->block_size);
	if (pool->node != KVP_NONE)
		put_u32(&spoil, KVPOOL_A_POOL_NODE, pool->node);
	put_u32(&spoil, KVPOOL_A_POOL_PLACEMENT, (uint32_t)pool->placement);
	put_u32(&spoil, KVPOOL_A_POOL_LIFETIME, (uint32_t)pool->lifetime);
	put_u32(&spoil, KVPOOL_A_POOL_UID, pool->uid);
	put_u32(&spoil, KVPOOL_A_POOL_GID, pool->gid);
	put_u32(&spoil, KVPOOL_A_POOL_MODE, pool->mode);
	put_u32(&spoil, KVPOOL_A_POOL_STATE, (uint32_t)pool->state);
	put_u32(&spoil, KVPOOL_A_POOL_REGISTRATION, (uint32_t)pool->registration);
	put_u32(&spoil, KVPOOL_A_POOL_BLOCKS, pool->blocks);
	put_u32(&spoil, KVPOOL_A_POOL_PINNED_BLOCKS, pool->pinned_blocks);
	put_u32(&spoil, KVPOOL_A_POOL_MAPPINGS, pool->mappings);
	put_u32(&spoil, KVPOOL_A_POOL_FILES, pool->files);
	if (pool->owned) {
		fake_put(KVPOOL_A_POOL_OWNED, 0, "");
		put_u32(&spoil, KVPOOL_A_POOL_OWNER_UID, pool->owner_uid);
		put_u32(&spoil, KVPOOL_A_POOL_OWNER_PID, (uint32_t)pool->owner_pid);
		put_u64(&spoil, KVPOOL_A_POOL_OWNER_START, pool->owner_start);
	}
	if (pool->device)
		put_u32(&spoil, KVPOOL_A_POOL_DEVICE, pool->device);
	/* A newer module may say more. */
	fake_put_u64(60, 1);
	fake_put_u64(1000, 1);
}

/* ------------------------------------------------------------------- ioctls */

struct open_want {
	const struct kvp_pool_info *pool;
	enum kvp_access access;
	int err;
};

/* One test never scripts more of them. */
#define RING 64

static int kernel_open(void *argument, void *context)
{
	const struct open_want *want = context;
	struct kvpool_open *request = argument;

	if (request->size != sizeof(*request) || request->id != want->pool->id ||
	    request->generation != want->pool->generation ||
	    request->flags != (want->access == KVP_ACCESS_WRITE ? KVPOOL_OPEN_WRITE : 0))
		fake_trouble("open of pool %u, generation %llu, flags 0x%x", request->id,
			     request->generation, request->flags);
	if (!want->err)
		request->fd = fake_descriptor();
	return want->err;
}

void fake_ioctl_open(const struct kvp_pool_info *pool, enum kvp_access access, int err)
{
	static struct open_want wants[RING];
	static unsigned int next;
	struct open_want *want = &wants[next++ % RING];

	*want = (struct open_want){ pool, access, err };
	fake_ioctl(KVPOOL_IOC_OPEN, kernel_open, want);
}

struct fill_want {
	const struct kvp_pool_info *pool;
	int err;
	const char *message;
};

static int kernel_fill(void *argument, void *context)
{
	const struct fill_want *want = context;
	struct kvpool_fill *fill = argument;

	if (fill->size != sizeof(*fill) || fill->flags || fill->reserved ||
	    fill->id != want->pool->id || fill->generation != want->pool->generation)
		fake_trouble("fill of pool %u, generation %llu, flags 0x%x", fill->id,
			     fill->generation, fill->flags);
	/* Without its end: the library must not rely on it. */
	memset(fill->message, want->err ? 'x' : 0, sizeof(fill->message));
	if (want->message)
		memcpy(fill->message, want->message, strlen(want->message) + 1);
	return want->err;
}

void fake_ioctl_fill(const struct kvp_pool_info *pool, int err, const char *message)
{
	static struct fill_want wants[RING];
	static unsigned int next;
	struct fill_want *want = &wants[next++ % RING];

	*want = (struct fill_want){ pool, err, message };
	fake_ioctl(KVPOOL_IOC_FILL, kernel_fill, want);
}

static int kernel_info(void *argument, void *context)
{
	const struct open_want *want = context;
	const struct kvp_pool_info *pool = want->pool;
	struct kvpool_info *info = argument;

	if (info->size != sizeof(*info) || info->flags)
		fake_trouble("struct kvpool_info of %u bytes, flags 0x%x", info->size, info->flags);
	if (want->err)
		return want->err;
	info->id = pool->id;
	info->generation = pool->generation;
	info->length = pool->length;
	info->mapped_length = pool->mapped_length;
	info->block_size = pool->block_size;
	info->state = (uint32_t)pool->state;
	memcpy(info->name, pool->name, sizeof(info->name));
	memcpy(info->domain, pool->domain, sizeof(info->domain));
	return 0;
}

void fake_ioctl_info(const struct kvp_pool_info *pool, int err)
{
	static struct open_want wants[RING];
	static unsigned int next;
	struct open_want *want = &wants[next++ % RING];

	*want = (struct open_want){ pool, KVP_ACCESS_READ, err };
	fake_ioctl(KVPOOL_IOC_INFO, kernel_info, want);
}

static int kernel_resolve(void *argument, void *context)
{
	const struct fake_range *range = context;
	struct kvpool_resolve *request = argument;
	struct kvpool_segment *segments = (struct kvpool_segment *)(uintptr_t)request->segments;
	uint32_t i;

	if (request->size != sizeof(*request) || request->flags || request->reserved ||
	    request->addr != range->addr || request->length != range->length)
		fake_trouble("resolve of %llu bytes at 0x%llx, expected was %llu at 0x%llx",
			     request->length, request->addr, (unsigned long long)range->length,
			     (unsigned long long)range->addr);
	if (range->err)
		return range->err;
	request->resolved = 0;
	for (i = 0; i < range->count && i < request->count; i++) {
		segments[i] = range->segments[i];
		request->resolved += segments[i].length;
	}
	request->count = i;
	return 0;
}

void fake_ioctl_resolve(const struct fake_range *range)
{
	fake_ioctl(KVPOOL_IOC_RESOLVE, kernel_resolve, (void *)(uintptr_t)range);
}

/* ---------------------------------------------------------------- exchanges */

void fake_family(uint32_t version)
{
	fake_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	fake_want_text(CTRL_ATTR_FAMILY_NAME, "kvpool");
	fake_datagram();
	fake_message(GENL_ID_CTRL, 0, CTRL_CMD_NEWFAMILY);
	fake_put_text(CTRL_ATTR_FAMILY_NAME, "kvpool");
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, version);
	fake_put_u32(CTRL_ATTR_HDRSIZE, 0);
	fake_nest(CTRL_ATTR_MCAST_GROUPS);
	fake_nest(1);
	fake_put_u32(CTRL_ATTR_MCAST_GRP_ID, FAKE_GROUP + 1);
	fake_put_text(CTRL_ATTR_MCAST_GRP_NAME, "others");
	fake_nest_end();
	fake_nest(2);
	fake_put_u32(CTRL_ATTR_MCAST_GRP_ID, FAKE_GROUP);
	fake_put_text(CTRL_ATTR_MCAST_GRP_NAME, "pools");
	fake_nest_end();
	fake_nest_end();
	fake_ack(0, NULL);
}

struct kvp_ctx *fake_ctx(bool read_only)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_ctx *ctx = NULL;

	options.read_only = read_only;
	fake_open("/dev/kvpool/control", read_only ? O_RDONLY : O_RDWR, 0, NULL);
	fake_family(1);
	assert_int_equal(kvp_open(&options, &ctx, NULL), 0);
	return ctx;
}

void fake_find(uint32_t id, uint64_t generation)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_GET, NLM_F_ACK);
	fake_want_u32(KVPOOL_A_POOL_ID, id);
	if (generation)
		fake_want_u64(KVPOOL_A_POOL_GENERATION, generation);
}

/* -------------------------------------------------------------- comparisons */

void fake_assert_info(const struct kvp_pool_info *got, const struct kvp_pool_info *want)
{
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->generation, want->generation);
	assert_string_equal(got->name, want->name);
	assert_string_equal(got->domain, want->domain);
	assert_string_equal(got->role, want->role);
	assert_string_equal(got->label, want->label);
	assert_int_equal(got->rank, want->rank);
	assert_int_equal(got->length, want->length);
	assert_int_equal(got->mapped_length, want->mapped_length);
	assert_int_equal(got->block_size, want->block_size);
	assert_int_equal(got->node, want->node);
	assert_int_equal(got->placement, want->placement);
	assert_int_equal(got->lifetime, want->lifetime);
	assert_int_equal(got->uid, want->uid);
	assert_int_equal(got->gid, want->gid);
	assert_int_equal(got->mode, want->mode);
	assert_int_equal(got->state, want->state);
	assert_int_equal(got->registration, want->registration);
	assert_int_equal(got->blocks, want->blocks);
	assert_int_equal(got->pinned_blocks, want->pinned_blocks);
	assert_int_equal(got->mappings, want->mappings);
	assert_int_equal(got->files, want->files);
	assert_int_equal(got->owned, want->owned);
	assert_int_equal(got->owner_uid, want->owner_uid);
	assert_int_equal(got->owner_pid, want->owner_pid);
	assert_int_equal(got->owner_start, want->owner_start);
	assert_int_equal(got->device, want->device);
}

static void assert_contains(const char *text, const char *part)
{
	if (part && !strstr(text, part))
		fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

void fake_assert_error(const struct kvp_error *error, int err, enum kvp_phase phase,
		       const char *message, const char *advice)
{
	const char *last;

	assert_int_equal(error->err, err);
	assert_int_equal(error->phase, phase);
	assert_int_equal(error->index, KVP_NONE);
	assert_false(error->repeated);
	assert_string_equal(error->device, "");
	assert_contains(error->message, message);
	assert_contains(error->advice, advice);
	/* As kvpool.h promises of both texts. */
	last = error->message + strlen(error->message);
	assert_true(last > error->message && last[-1] != '.' && last[-1] != '\n');
	if (error->advice[0]) {
		last = error->advice + strlen(error->advice);
		assert_true(last[-1] != '.' && last[-1] != '\n');
	}
}

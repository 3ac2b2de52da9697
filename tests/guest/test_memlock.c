// SPDX-License-Identifier: GPL-2.0
/*
 * Limits that are checked before the first call: RLIMIT_MEMLOCK, which the
 * kernel counts for each device, and the longest region that a device takes.
 */
#include "registering.h"

#include <sys/resource.h>

enum { ALICE = 1000 };

/* As root, so that alice may set hers to what a case needs. */
static void lift_hard_limit(void)
{
	const struct rlimit limit = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
}

/* The soft limit, which is the one in force; the hard one stays. */
static void set_limit(uint64_t bytes)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_MEMLOCK, &limit));
	limit.rlim_cur = bytes;
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
}

/*
 * Devices and context are opened as root, who may; the process then is alice,
 * who has no CAP_IPC_LOCK. What she registers is charged to her limit all the same.
 */
struct alice {
	struct kvp_ctx *ctx;
	struct ibv_pd *pds[DEVICES];
	struct kvp_registrar *registrar;
};

static void become_alice(struct alice *alice)
{
	alice->ctx = open_ctx();
	open_devices(alice->pds);
	alice->registrar = verbs_registrar(alice->pds, RDMA_ACCESS);
	lift_hard_limit();
	become(ALICE, ALICE);
}

/* Made by root, so that its own share of the limit is nobody's. */
static struct kvp_pool *pool_for_alice(struct kvp_ctx *ctx, uint64_t length)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool;

	options.domain = "kv";
	options.length = length;
	options.uid = ALICE;
	options.has_uid = 1;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

static long pinned_kib(void)
{
	return proc_kib("/proc/self/status", "VmPin:");
}

static void says_bytes(const char *format, uint64_t bytes)
{
	char text[200];

	snprintf(text, sizeof(text), format, bytes);
	SAYS(text);
}

/* ENOMEM though memory is free: mooncake 1382, ucx 8229. */
static void limit_counts_each_device(void)
{
	const uint64_t length = 8 * BLOCK;
	struct kvp_ctx *root = open_ctx();
	struct kvp_pool *pool = pool_for_alice(root, length);
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = length };
	struct kvp_list *list = list_of(&buffer, 1);
	struct kvp_registration *registration = NULL;
	struct alice alice;
	struct ibv_mr *mr;

	become_alice(&alice);
	set_limit(length * 3 / 2);
	RETURNS(-EDQUOT, kvp_register(alice.ctx, "kv", list, &alice.registrar, 1, NULL,
				      &registration, &error));
	EQUAL(last_error.phase, KVP_PHASE_CHECK);
	SAYS("2 devices x 16777216 bytes need 33554432 bytes of locked memory");
	SAYS("the limit is 25165824 and 0 are in use");
	SAYS("raise RLIMIT_MEMLOCK (ulimit -l), or grant CAP_IPC_LOCK");
	CHECK(!registration);
	EQUAL(pinned_kib(), 0);
	EQUAL(query(pool).pinned_blocks, 0);
	EQUAL(mr_count(), 0);

	/* What the devices themselves say of it. */
	mr = ibv_reg_mr(alice.pds[0], buffer.addr, length, RDMA_ACCESS);
	CHECK(mr);
	errno = 0;
	CHECK(!ibv_reg_mr(alice.pds[1], buffer.addr, length, RDMA_ACCESS));
	EQUAL(errno, ENOMEM);
	/* What is pinned already counts. */
	RETURNS(-EDQUOT, kvp_register(alice.ctx, "kv", list, &alice.registrar, 1, NULL,
				      &registration, &error));
	SAYS("the limit is 25165824 and 16777216 are in use");
	EQUAL(ibv_dereg_mr(mr), 0);
}

static void limit_that_is_just_enough(void)
{
	struct kvp_ctx *root = open_ctx();
	struct kvp_pool *pool = pool_for_alice(root, 4 * BLOCK);
	char *addr = map_pool(pool);
	/* 2 pages that it touches in part, and 300 between. */
	struct kvp_buffer buffer = { .addr = addr + 100, .length = 301 * 4096 };
	const uint64_t need = DEVICES * 302 * 4096;
	struct kvp_registration *registration = NULL;
	struct kvp_list *list = list_of(&buffer, 1);
	struct alice alice;

	become_alice(&alice);
	set_limit(need + 4095);
	registration = register_list(alice.ctx, "kv", list, alice.registrar);
	EQUAL(pinned_kib() * 1024, need);
	unregister(alice.ctx, registration);
	registration = NULL;
	set_limit(need);
	registration = register_list(alice.ctx, "kv", list, alice.registrar);
	unregister(alice.ctx, registration);
	registration = NULL;
	set_limit(need - 1);
	RETURNS(-EDQUOT, kvp_register(alice.ctx, "kv", list, &alice.registrar, 1, NULL,
				      &registration, &error));
	says_bytes("need %" PRIu64 " bytes of locked memory", need);
	says_bytes("the limit is %" PRIu64, need - 1);
	EQUAL(pinned_kib(), 0);
}

/* Root, with the same limit: CAP_IPC_LOCK has none. */
static void capability_lifts_the_limit(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 4 * BLOCK);
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = 4 * BLOCK };
	struct ibv_pd *pds[DEVICES];

	open_devices(pds);
	set_limit(4096);
	unregister(ctx, register_list(ctx, "kv", list_of(&buffer, 1),
				      verbs_registrar(pds, RDMA_ACCESS)));
	kvp_pool_close(make_pool(ctx, "kv", BLOCK));
}

static void creation_is_charged(void)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool = NULL;
	struct alice alice;
	struct kvp_stats before;

	become_alice(&alice);
	before = stats(alice.ctx);
	set_limit(4 * BLOCK);
	options.domain = "kv";
	options.length = 4 * BLOCK + 1;
	RETURNS(-EDQUOT, kvp_pool_create(alice.ctx, &options, &pool, &error));
	SAYS("RLIMIT_MEMLOCK 8192 KiB: in use 0, pool needs 10240");
	SAYS("RLIMIT_MEMLOCK 8388608 bytes");
	CHECK(!pool);
	EQUAL(stats(alice.ctx).pools, before.pools);
	EQUAL(stats(alice.ctx).bytes, before.bytes);

	options.length = 3 * BLOCK;
	RETURNS(0, kvp_pool_create(alice.ctx, &options, &pool, &error));
	options.length = 2 * BLOCK;
	RETURNS(-EDQUOT, kvp_pool_create(alice.ctx, &options, &pool, &error));
	SAYS("RLIMIT_MEMLOCK 8192 KiB: in use 6144, pool needs 4096");
	options.length = BLOCK;
	RETURNS(0, kvp_pool_create(alice.ctx, &options, &pool, &error));
	/* Given back when it ends. */
	RETURNS(0, kvp_pool_destroy(alice.ctx, kvp_pool_id(pool), kvp_pool_generation(pool), 0,
				    &error));
	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_create(alice.ctx, &options, &pool, &error));
}

/* ----------------------------------------- a device with a small max_mr_size */

/*
 * The chunks of a buffer at a device cover it from end to end, each border is
 * on the block's multiple, and each has a region of just its bytes.
 */
static void covers(const struct kvp_registration *registration, uint32_t index,
		   const struct kvp_buffer *buffer, uint32_t device, uint64_t max_length,
		   uint64_t want)
{
	const struct kvp_entry *entry;
	uint64_t offset = 0, chunks = 0;

	while (offset < buffer->length) {
		const struct ibv_mr *mr;

		entry = kvp_registration_find(registration, index, 0, device, offset);
		CHECK(entry);
		EQUAL(entry->offset, offset);
		CHECK(entry->chunk.length && (!max_length || entry->chunk.length <= max_length));
		CHECK(entry->chunk.addr == (char *)buffer->addr + offset);
		EQUAL(entry->chunk.span.length, entry->chunk.length);
		if (buffer->block)
			EQUAL(offset % buffer->block, 0);
		else if (offset)
			EQUAL((uintptr_t)entry->chunk.addr % 4096, 0);
		mr = entry->cookie;
		CHECK(mr->addr == entry->chunk.addr);
		EQUAL(mr->length, entry->chunk.length);
		offset += entry->chunk.length;
		chunks++;
	}
	EQUAL(offset, buffer->length);
	EQUAL(chunks, want);
}

/* Cut to max_mr_size, peers told the full length, a block cut: mooncake 2017, 304, 640. */
static void long_buffers_are_split(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 8 * BLOCK);
	char *addr = map_pool(pool);
	struct kvp_buffer buffers[3] = {
		/* A block of 3 pages: the limit of 1 MiB holds 85 of them. */
		{ .addr = addr, .length = 4 * BLOCK, .block = 12288 },
		/* May be cut anywhere, and begins within a page. */
		{ .addr = addr + 4 * BLOCK + 1000, .length = 2 * BLOCK, .block = 0 },
		/* Just the limit. */
		{ .addr = addr + 7 * BLOCK, .length = MIB },
	};
	struct small small = { .max_length = { MIB, 0 } };
	struct kvp_registrar *registrar = small_registrar(&small);
	struct kvp_registration *registration;

	registration = register_list(ctx, "kv", list_of(buffers, 3), registrar);
	/* 8388608 / (85 * 12288) = 8.03; the pages from byte 1000 on: 4 more and a rest. */
	covers(registration, 0, &buffers[0], 0, MIB, 9);
	covers(registration, 1, &buffers[1], 0, MIB, 5);
	covers(registration, 2, &buffers[2], 0, MIB, 1);
	/* The other device has no limit, and splits nothing. */
	for (uint32_t i = 0; i < 3; i++)
		covers(registration, i, &buffers[i], 1, 0, 1);
	EQUAL(kvp_registration_count(registration), 9 + 5 + 1 + 3);
	EQUAL(mr_count(), 9 + 5 + 1 + 3);
	pins_are(ctx, pool, "0+8");
	unregister(ctx, registration);
	pins_are(ctx, pool, "");
	EQUAL(mr_count(), 0);
}

static void block_longer_than_the_device_takes(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 4 * BLOCK);
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = 4 * BLOCK,
				     .block = BLOCK };
	struct small small = { .max_length = { 0, MIB } };
	struct kvp_registrar *registrar = small_registrar(&small);
	struct kvp_registration *registration = NULL;

	RETURNS(-EMSGSIZE, kvp_register(ctx, "kv", list_of(&buffer, 1), &registrar, 1, NULL,
					&registration, &error));
	SAYS("buffer 0: 8388608 bytes are to be cut at multiples of the block of 2097152 bytes");
	SAYS("the device registers 1048576 bytes at most");
	CHECK(!strcmp(last_error.device, "small1"));
	EQUAL(last_error.phase, KVP_PHASE_CHECK);
	EQUAL(small.calls, 0);
	CHECK(!registration);
	pins_are(ctx, pool, "");
}

static void more_regions_than_the_device_has(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 4 * BLOCK);
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = 4 * BLOCK };
	struct small small = { .max_length = { MIB, MIB }, .max_count = 7 };
	struct kvp_registrar *registrar = small_registrar(&small);
	struct kvp_registration *registration = NULL;

	RETURNS(-ENOSPC, kvp_register(ctx, "kv", list_of(&buffer, 1), &registrar, 1, NULL,
				      &registration, &error));
	SAYS("1 buffers need 8 registrations, the device has 7");
	EQUAL(small.calls, 0);
	CHECK(!registration);
	small.max_count = 8;
	registration = register_list(ctx, "kv", list_of(&buffer, 1), registrar);
	covers(registration, 0, &buffer, 0, MIB, 8);
	covers(registration, 0, &buffer, 1, MIB, 8);
	unregister(ctx, registration);
}

/* Borders within a page are pinned twice, and count so. */
static void split_and_limit(void)
{
	struct kvp_ctx *root = open_ctx();
	struct kvp_pool *pool = pool_for_alice(root, 4 * BLOCK);
	char *addr = map_pool(pool);
	/* Blocks of a page that begin at byte 1000 of one: 4 chunks share 3 pages. */
	struct kvp_buffer buffer = { .addr = addr + 1000, .length = 64 * 4096, .block = 4096 };
	const uint64_t need = (65 + 3 + 65) * 4096;
	struct small small = { .max_length = { 65536, 0 } };
	struct kvp_registrar *registrar = small_registrar(&small);
	struct kvp_registration *registration = NULL;
	struct kvp_list *list = list_of(&buffer, 1);
	struct kvp_ctx *ctx = open_ctx();

	lift_hard_limit();
	become(ALICE, ALICE);
	set_limit(need - 1);
	RETURNS(-EDQUOT, kvp_register(ctx, "kv", list, &registrar, 1, NULL, &registration, &error));
	says_bytes("2 devices need %" PRIu64 " bytes of locked memory", need);
	EQUAL(small.calls, 0);
	set_limit(need);
	registration = register_list(ctx, "kv", list, registrar);
	EQUAL(pinned_kib() * 1024, need);
	covers(registration, 0, &buffer, 0, 65536, 4);
	unregister(ctx, registration);
}

int main(void)
{
	RUN(limit_counts_each_device);
	RUN(limit_that_is_just_enough);
	RUN(capability_lifts_the_limit);
	RUN(creation_is_charged);
	RUN(long_buffers_are_split);
	RUN(block_longer_than_the_device_takes);
	RUN(more_regions_than_the_device_has);
	RUN(split_and_limit);
	return cases_end();
}

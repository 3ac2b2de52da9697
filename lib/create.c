// SPDX-License-Identifier: LGPL-2.1-or-later
/* Creating pools, and taking over those that a session left behind. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "netlink.h"

static int invalid(struct kvp_error *error, const char *advice, const char *what)
{
	return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL, advice, "%s", what);
}

static int check_options(const struct kvp_pool_options *options, struct kvp_error *error)
{
	static const char rule[] = "give 1 to 63 of A-Z a-z 0-9 _ -";

	if (!options->domain)
		return invalid(error, rule, "the domain is missing");
	if (!kvp_name_valid(options->domain))
		return invalid(error, rule, "the domain is not a name");
	if (options->name && !kvp_name_valid(options->name))
		return invalid(error, rule, "the name is not a name");
	if (options->name && !strcmp(options->name, "control"))
		return invalid(error, "take another name",
			       "the name 'control' is that of the control node");
	if (options->role && options->role[0] && !kvp_name_valid(options->role))
		return invalid(error, rule, "the role is not a name");
	if (options->label && !kvp_label_valid(options->label))
		return invalid(error, "give 0 to 63 printable ASCII characters",
			       "the label is not a label");
	if (!options->length)
		return invalid(error, "give the bytes that the pool shall hold", "the length is 0");
	return 0;
}

static void put_options(struct kvp_request *request, const struct kvp_pool_options *options)
{
	kvp_request_text(request, KVPOOL_A_POOL_DOMAIN, options->domain);
	if (options->name)
		kvp_request_text(request, KVPOOL_A_POOL_NAME, options->name);
	if (options->role && options->role[0])
		kvp_request_text(request, KVPOOL_A_POOL_ROLE, options->role);
	if (options->label && options->label[0])
		kvp_request_text(request, KVPOOL_A_POOL_LABEL, options->label);
	kvp_request_u64(request, KVPOOL_A_POOL_LENGTH, options->length);
	if (options->has_rank)
		kvp_request_u32(request, KVPOOL_A_POOL_RANK, options->rank);
	if (options->has_node)
		kvp_request_u32(request, KVPOOL_A_POOL_NODE, options->node);
	kvp_request_u32(request, KVPOOL_A_POOL_PLACEMENT, (uint32_t)options->placement);
	kvp_request_u32(request, KVPOOL_A_POOL_LIFETIME, (uint32_t)options->lifetime);
	if (options->has_uid)
		kvp_request_u32(request, KVPOOL_A_POOL_UID, options->uid);
	if (options->has_gid)
		kvp_request_u32(request, KVPOOL_A_POOL_GID, options->gid);
	if (options->has_mode)
		kvp_request_u32(request, KVPOOL_A_POOL_MODE, options->mode);
}

static void memlock_text(char *text, size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		snprintf(text, size, "not known");
	else if (limit.rlim_cur == RLIM_INFINITY)
		snprintf(text, size, "unlimited");
	else
		snprintf(text, size, "%" PRIu64 " bytes", (uint64_t)limit.rlim_cur);
}

/* The limits of the moment: only numbers tell which of them to change. */
static const char *advice_of(struct kvp_ctx *ctx, int err, char *text, size_t size)
{
	struct kvp_stats stats;
	char memlock[32];

	switch (err) {
	case -ENOMEM:
		if (kvp_stats_get(ctx, &stats, NULL))
			return "ask for less, or free memory";
		snprintf(text, size, "%" PRIu64 " bytes are available to pools, %" PRIu64
			 " are kept for the rest of the machine: ask for less, or free or compact memory",
			 stats.available, stats.min_available);
		return text;
	case -EDQUOT:
		memlock_text(memlock, sizeof(memlock));
		if (kvp_stats_get(ctx, &stats, NULL))
			snprintf(text, size, "RLIMIT_MEMLOCK is %s (ulimit -l)", memlock);
		else
			snprintf(text, size, "raise what is too low: RLIMIT_MEMLOCK %s, max_bytes %"
				 PRIu64 " (%" PRIu64 " used), max_pools %" PRIu32 " (%" PRIu32
				 " used)", memlock, stats.max_bytes, stats.bytes, stats.max_pools,
				 stats.pools);
		return text;
	case -EEXIST:
		return "take another name, or claim or destroy the pool that has it";
	case -ENODEV:
		return "see which NUMA nodes there are: /sys/devices/system/node/online";
	case -EPERM:
		return "only CAP_CHOWN may give a pool to another uid or gid";
	default:
		return NULL;
	}
}

static int create_failed(struct kvp_ctx *ctx, int err, const struct kvp_pool_options *options,
			 const struct kvp_reply *reply, struct kvp_error *error)
{
	char advice[192], node[24] = "";

	if (options->has_node)
		snprintf(node, sizeof(node), " on node %" PRIu32, options->node);
	return kvp_ask_fail(error, err, reply, advice_of(ctx, err, advice, sizeof(advice)),
			    "create pool%s%s of %" PRIu64 " bytes in domain %s%s",
			    options->name ? " " : "", options->name ? options->name : "",
			    options->length, options->domain, node);
}

/*
 * Have the pool get its memory. Not by netlink: while a request runs, whoever
 * registers a family waits, and behind that everybody who uses netlink families.
 * On failure the pool is gone.
 */
static int fill(const struct kvp_ctx *ctx, const struct kvp_pool_info *info,
		struct kvp_reply *reply)
{
	struct kvpool_fill fill = {
		.size = sizeof(fill), .id = info->id, .generation = info->generation,
	};
	int err;

	if (!ioctl(ctx->control, KVPOOL_IOC_FILL, &fill))
		return 0;
	err = -errno;
	fill.message[sizeof(fill.message) - 1] = 0;
	snprintf(reply->text, sizeof(reply->text), "%s", (const char *)fill.message);
	return err;
}

static void owned_add(struct kvp_ctx *ctx, struct kvp_owned *owned, uint32_t id,
		      uint64_t generation, bool created)
{
	owned->id = id;
	owned->generation = generation;
	owned->created = created;
	pthread_mutex_lock(&ctx->lock);
	owned->next = ctx->owned;
	ctx->owned = owned;
	pthread_mutex_unlock(&ctx->lock);
}

KVP_EXPORT int kvp_pool_create(struct kvp_ctx *ctx, const struct kvp_pool_options *given,
			       struct kvp_pool **result, struct kvp_error *error)
{
	struct kvp_pool_options options;
	struct kvp_pool_info info = { 0 };
	struct kvp_request request;
	struct kvp_reply reply;
	struct kvp_owned *owned;
	struct kvp_pool *pool;
	int err;

	err = kvp_options_copy(&options, sizeof(options), given);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"set them up with KVP_INIT(struct kvp_pool_options)",
				"kvp_pool_options of %zu bytes, the library knows %zu",
				given->struct_size, sizeof(options));
	err = check_options(&options, error);
	if (!err)
		err = kvp_need_write(ctx, error);
	if (err)
		return err;
	/* All memory first: nothing to undo when there is none. */
	owned = calloc(1, sizeof(*owned));
	if (!owned)
		return kvp_no_memory(error, KVP_PHASE_REQUEST);
	pool = kvp_pool_new(ctx);
	if (!pool) {
		free(owned);
		return kvp_no_memory(error, KVP_PHASE_REQUEST);
	}

	kvp_ask_start(ctx, &request, KVPOOL_CMD_POOL_CREATE);
	kvp_request_u32(&request, KVPOOL_A_POOL_SESSION_FD, (uint32_t)ctx->control);
	put_options(&request, &options);
	kvp_request_flag(&request, KVPOOL_A_POOL_DEFERRED);
	err = kvp_ask(ctx, &request, kvp_info_parse, &info, &reply);
	if (!err) {
		err = fill(ctx, &info, &reply);
		if (err)
			info.id = 0;
	}
	if (err)
		create_failed(ctx, err, &options, &reply, error);
	else
		err = kvp_pool_attach(pool, info.id, info.generation, KVP_ACCESS_WRITE, error);
	if (!err) {
		owned_add(ctx, owned, info.id, info.generation, true);
		*result = pool;
		return 0;
	}
	free(owned);
	kvp_pool_close(pool);
	/* It may exist all the same, its handle not: nobody else would end it now. */
	if (info.id && info.generation)
		kvp_pool_destroy(ctx, info.id, info.generation, 1, NULL);
	return err;
}

KVP_EXPORT int kvp_pool_claim(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			      struct kvp_pool **result, struct kvp_error *error)
{
	struct kvp_request request;
	struct kvp_reply reply;
	struct kvp_owned *owned;
	struct kvp_pool *pool;
	const char *advice = NULL;
	int err;

	err = kvp_need_write(ctx, error);
	if (err)
		return err;
	owned = calloc(1, sizeof(*owned));
	if (!owned)
		return kvp_no_memory(error, KVP_PHASE_REQUEST);
	/* Open first: a claim can't be given back, an open descriptor can. */
	err = kvp_pool_open(ctx, id, generation, KVP_ACCESS_WRITE, &pool, error);
	if (err) {
		free(owned);
		return err;
	}
	kvp_ask_start(ctx, &request, KVPOOL_CMD_POOL_CLAIM);
	kvp_request_u32(&request, KVPOOL_A_POOL_SESSION_FD, (uint32_t)ctx->control);
	kvp_request_u32(&request, KVPOOL_A_POOL_ID, id);
	kvp_request_u64(&request, KVPOOL_A_POOL_GENERATION, generation);
	err = kvp_ask(ctx, &request, NULL, NULL, &reply);
	if (!err) {
		owned_add(ctx, owned, kvp_pool_id(pool), kvp_pool_generation(pool), false);
		*result = pool;
		return 0;
	}
	free(owned);
	kvp_pool_close(pool);
	if (err == -EBUSY)
		advice = "end the session that owns it (kvpoolctl list shows its process)";
	else if (err == -EPERM)
		advice = "let the pool's uid claim it, or give the pool to this user "
			 "(kvpoolctl set)";
	else if (err == -EINVAL)
		advice = "only a pool of lifetime persistent can be claimed";
	return kvp_ask_fail(error, err, &reply, advice,
			    "claim pool %" PRIu32 " of generation %" PRIu64, id, generation);
}

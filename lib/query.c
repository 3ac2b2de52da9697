// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asking the kernel about pools. */
#include <inttypes.h>
#include <stdlib.h>

#include "netlink.h"

struct pin_run {
	uint32_t first;
	uint32_t count;
};

KVP_EXPORT int kvp_pool_find(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			     struct kvp_pool_info *info, struct kvp_error *error)
{
	struct kvp_pool_info found;
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	kvp_ask_start(ctx, &request, KVPOOL_CMD_POOL_GET);
	kvp_request_u32(&request, KVPOOL_A_POOL_ID, id);
	if (generation)
		kvp_request_u64(&request, KVPOOL_A_POOL_GENERATION, generation);
	err = kvp_ask(ctx, &request, kvp_info_parse, &found, &reply);
	if (err && generation)
		return kvp_ask_fail(error, err, &reply, NULL,
				    "find pool %" PRIu32 " of generation %" PRIu64, id, generation);
	if (err)
		return kvp_ask_fail(error, err, &reply, NULL, "find pool %" PRIu32, id);
	*info = found;
	return 0;
}

KVP_EXPORT int kvp_pool_find_name(struct kvp_ctx *ctx, const char *name,
				  struct kvp_pool_info *info, struct kvp_error *error)
{
	struct kvp_pool_info found;
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	if (!kvp_name_valid(name))
		return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"a name is 1 to 63 of A-Z a-z 0-9 _ -",
				"no pool can have the name '%.80s'", name);
	kvp_ask_start(ctx, &request, KVPOOL_CMD_POOL_GET);
	kvp_request_text(&request, KVPOOL_A_POOL_NAME, name);
	err = kvp_ask(ctx, &request, kvp_info_parse, &found, &reply);
	if (err)
		return kvp_ask_fail(error, err, &reply, NULL, "find pool '%s'", name);
	*info = found;
	return 0;
}

KVP_EXPORT int kvp_pool_query(struct kvp_pool *pool, struct kvp_pool_info *info,
			      struct kvp_error *error)
{
	return kvp_pool_find(pool->ctx, pool->id, pool->generation, info, error);
}

static int by_id(const void *a, const void *b)
{
	const struct kvp_pool_info *left = a, *right = b;

	return (left->id > right->id) - (left->id < right->id);
}

KVP_EXPORT int kvp_pool_each(struct kvp_ctx *ctx,
			     int (*each)(const struct kvp_pool_info *info, void *arg), void *arg,
			     struct kvp_error *error)
{
	struct kvp_dump dump = { kvp_info_parse, .item_size = sizeof(struct kvp_pool_info) };
	const struct kvp_pool_info *info;
	struct kvp_request request;
	struct kvp_reply reply;
	size_t i;
	int err;

	kvp_ask_start(ctx, &request, KVPOOL_CMD_POOL_GET);
	err = kvp_ask_dump(ctx, &request, &dump, &reply);
	if (err)
		kvp_ask_fail(error, err, &reply, NULL, "list the pools");
	if (dump.count)
		qsort(dump.items, dump.count, dump.item_size, by_id);
	/* Without the lock: `each` may well ask about a pool. */
	info = (const struct kvp_pool_info *)(const void *)dump.items;
	for (i = 0; i < dump.count && !err; i++)
		err = each(&info[i], arg);
	free(dump.items);
	return err;
}

static int take_run(const struct nlmsghdr *message, void *item)
{
	static const struct kvp_field fields[] = {
		{ KVPOOL_A_POOL_FIRST_BLOCK, KVP_FIELD_U32, false,
		  offsetof(struct pin_run, first) },
		{ KVPOOL_A_POOL_BLOCK_COUNT, KVP_FIELD_U32, false,
		  offsetof(struct pin_run, count) },
	};

	return kvp_fields_parse(message, fields, MNL_ARRAY_SIZE(fields), item);
}

KVP_EXPORT int kvp_pool_pins(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			     int (*each)(uint32_t first_block, uint32_t block_count, void *arg),
			     void *arg, struct kvp_error *error)
{
	struct kvp_dump dump = { take_run, .item_size = sizeof(struct pin_run) };
	const struct pin_run *run;
	struct kvp_request request;
	struct kvp_reply reply;
	size_t i;
	int err;

	kvp_ask_start(ctx, &request, KVPOOL_CMD_PIN_GET);
	kvp_request_u32(&request, KVPOOL_A_POOL_ID, id);
	kvp_request_u64(&request, KVPOOL_A_POOL_GENERATION, generation);
	err = kvp_ask_dump(ctx, &request, &dump, &reply);
	if (err)
		kvp_ask_fail(error, err, &reply, NULL,
			     "list the pinned blocks of pool %" PRIu32 " of generation %" PRIu64,
			     id, generation);
	run = (const struct pin_run *)(const void *)dump.items;
	for (i = 0; i < dump.count && !err; i++)
		err = each(run[i].first, run[i].count, arg);
	free(dump.items);
	return err;
}

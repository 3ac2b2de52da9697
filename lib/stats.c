// SPDX-License-Identifier: LGPL-2.1-or-later
/* Totals and limits of the module. */
#include "netlink.h"

#define FIELD(attribute, type, member) \
	{ KVPOOL_A_STATS_##attribute, KVP_FIELD_##type, false, offsetof(struct kvp_stats, member) }

static const struct kvp_field fields[] = {
	FIELD(POOLS, U32, pools),
	FIELD(ORPHANS, U32, orphans),
	FIELD(DYING, U32, dying),
	FIELD(SESSIONS, U32, sessions),
	FIELD(MAX_POOLS, U32, max_pools),
	FIELD(BYTES, U64, bytes),
	FIELD(MAX_BYTES, U64, max_bytes),
	FIELD(MIN_AVAILABLE, U64, min_available),
	FIELD(AVAILABLE, U64, available),
	FIELD(CREATED, U64, created),
	FIELD(DESTROYED, U64, destroyed),
	FIELD(FAILED, U64, failed),
	FIELD(DYING_BYTES, U64, dying_bytes),
};

static int take_stats(const struct nlmsghdr *message, void *arg)
{
	return kvp_fields_parse(message, fields, MNL_ARRAY_SIZE(fields), arg);
}

KVP_EXPORT int kvp_stats_get(struct kvp_ctx *ctx, struct kvp_stats *stats, struct kvp_error *error)
{
	struct kvp_stats found = { 0 };
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	kvp_ask_start(ctx, &request, KVPOOL_CMD_STATS_GET);
	err = kvp_ask(ctx, &request, take_stats, &found, &reply);
	if (err)
		return kvp_ask_fail(error, err, &reply, NULL, "statistics of the module");
	*stats = found;
	return 0;
}

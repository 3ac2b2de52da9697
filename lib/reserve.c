// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reserve of cleared memory: what it is, and what it shall be. */
#include <inttypes.h>
#include <stdlib.h>

#include "netlink.h"

#define SET_ALL (KVP_RESERVE_SET_TARGET | KVP_RESERVE_SET_POLICY | KVP_RESERVE_SET_QUOTA | \
		 KVP_RESERVE_SET_UID)

/* A message of the dump: about the policy, about a node, or about a user. */
struct entry {
	enum { ENTRY_POLICY, ENTRY_NODE, ENTRY_USER } kind;
	uint32_t policy;
	uint64_t quota;
	struct kvp_reserve_node node;
	struct kvp_reserve_user user;
};

#define FIELD(attribute, type, member) \
	{ KVPOOL_A_RESERVE_##attribute, KVP_FIELD_##type, false, offsetof(struct entry, member) }

static int take_entry(const struct nlmsghdr *message, void *item)
{
	static const struct kvp_field policy[] = {
		FIELD(POLICY, U32, policy),
		FIELD(QUOTA, U64, quota),
	};
	static const struct kvp_field node[] = {
		FIELD(NODE, U32, node.node),
		FIELD(TARGET, U64, node.target),
		FIELD(READY, U64, node.ready),
		FIELD(CLEARING, U64, node.clearing),
	};
	static const struct kvp_field user[] = {
		FIELD(UID, U32, user.uid),
		FIELD(QUOTA, U64, user.quota),
		FIELD(USED, U64, user.used),
	};
	const struct nlattr *table[KVPOOL_A_RESERVE_MAX + 1];
	struct entry *entry = item;
	int err;

	memset(entry, 0, sizeof(*entry));
	err = kvp_attrs_parse(message, GENL_HDRLEN, table, KVPOOL_A_RESERVE_MAX);
	if (err)
		return err;
	if (table[KVPOOL_A_RESERVE_NODE]) {
		entry->kind = ENTRY_NODE;
		return kvp_fields_parse(message, node, MNL_ARRAY_SIZE(node), entry);
	}
	if (table[KVPOOL_A_RESERVE_UID]) {
		entry->kind = ENTRY_USER;
		return kvp_fields_parse(message, user, MNL_ARRAY_SIZE(user), entry);
	}
	entry->kind = ENTRY_POLICY;
	return kvp_fields_parse(message, policy, MNL_ARRAY_SIZE(policy), entry);
}

static int sort_entries(const struct entry *entries, size_t count, struct kvp_reserve *reserve)
{
	size_t i;

	/* As many as there can be of each: a few words too much. */
	reserve->nodes = calloc(count + 1, sizeof(*reserve->nodes));
	reserve->users = calloc(count + 1, sizeof(*reserve->users));
	if (!reserve->nodes || !reserve->users)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		switch (entries[i].kind) {
		case ENTRY_POLICY:
			reserve->policy = (enum kvp_reserve_policy)entries[i].policy;
			reserve->quota = entries[i].quota;
			break;
		case ENTRY_NODE:
			reserve->nodes[reserve->node_count++] = entries[i].node;
			break;
		case ENTRY_USER:
			reserve->users[reserve->user_count++] = entries[i].user;
			break;
		}
	}
	return 0;
}

KVP_EXPORT int kvp_reserve_get(struct kvp_ctx *ctx, struct kvp_reserve **result,
			       struct kvp_error *error)
{
	struct kvp_dump dump = { take_entry, .item_size = sizeof(struct entry) };
	struct kvp_reserve *reserve = NULL;
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	kvp_ask_start(ctx, &request, KVPOOL_CMD_RESERVE_GET);
	err = kvp_ask_dump(ctx, &request, &dump, &reply);
	if (err) {
		kvp_ask_fail(error, err, &reply, NULL, "state of the reserve");
		goto free_items;
	}
	reserve = calloc(1, sizeof(*reserve));
	err = reserve ? sort_entries((const struct entry *)(const void *)dump.items, dump.count,
				     reserve) : -ENOMEM;
	if (err) {
		kvp_reserve_free(reserve);
		kvp_no_memory(error, KVP_PHASE_REQUEST);
		goto free_items;
	}
	*result = reserve;
free_items:
	free(dump.items);
	return err;
}

KVP_EXPORT void kvp_reserve_free(struct kvp_reserve *reserve)
{
	if (!reserve)
		return;
	free(reserve->nodes);
	free(reserve->users);
	free(reserve);
}

static void put_change(struct kvp_request *request, const struct kvp_reserve_change *change)
{
	if (change->mask & KVP_RESERVE_SET_POLICY)
		kvp_request_u32(request, KVPOOL_A_RESERVE_POLICY, (uint32_t)change->policy);
	if (change->mask & KVP_RESERVE_SET_TARGET) {
		kvp_request_u32(request, KVPOOL_A_RESERVE_NODE, change->node);
		kvp_request_u64(request, KVPOOL_A_RESERVE_TARGET, change->target);
	}
	if (change->mask & KVP_RESERVE_SET_UID)
		kvp_request_u32(request, KVPOOL_A_RESERVE_UID, change->uid);
	if (change->mask & KVP_RESERVE_SET_QUOTA)
		kvp_request_u64(request, KVPOOL_A_RESERVE_QUOTA, change->quota);
}

KVP_EXPORT int kvp_reserve_set(struct kvp_ctx *ctx, const struct kvp_reserve_change *given,
			       struct kvp_error *error)
{
	struct kvp_reserve_change change;
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	err = kvp_options_copy(&change, sizeof(change), given);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"set it up with KVP_INIT(struct kvp_reserve_change)",
				"kvp_reserve_change of %zu bytes, the library knows %zu",
				given->struct_size, sizeof(change));
	if (!change.mask || change.mask & ~SET_ALL)
		return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"use KVP_RESERVE_SET_*", "change with mask 0x%" PRIx32
				", known is 0x%x", change.mask, SET_ALL);
	err = kvp_need_write(ctx, error);
	if (err)
		return err;
	kvp_ask_start(ctx, &request, KVPOOL_CMD_RESERVE_SET);
	kvp_request_u32(&request, KVPOOL_A_RESERVE_SESSION_FD, (uint32_t)ctx->control);
	put_change(&request, &change);
	err = kvp_ask(ctx, &request, NULL, NULL, &reply);
	if (err)
		return kvp_ask_fail(error, err, &reply, err == -EPERM ?
				    "act as root, or with CAP_SYS_ADMIN" : NULL,
				    "change the reserve");
	return 0;
}

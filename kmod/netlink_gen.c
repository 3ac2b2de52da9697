// SPDX-License-Identifier: GPL-2.0
/* Written by uapi/generate.py from uapi/kvpool.yaml: change that instead. */
#include "netlink_gen.h"

static const struct nla_policy pool_create_policy[KVPOOL_A_POOL_DEFERRED + 1] = {
	[KVPOOL_A_POOL_SESSION_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[KVPOOL_A_POOL_NAME] = { .type = NLA_NUL_STRING, .len = 63 },
	[KVPOOL_A_POOL_DOMAIN] = { .type = NLA_NUL_STRING, .len = 63 },
	[KVPOOL_A_POOL_ROLE] = { .type = NLA_NUL_STRING, .len = 63 },
	[KVPOOL_A_POOL_LABEL] = { .type = NLA_NUL_STRING, .len = 63 },
	[KVPOOL_A_POOL_RANK] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_LENGTH] = NLA_POLICY_MIN(NLA_U64, 1),
	[KVPOOL_A_POOL_NODE] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_PLACEMENT] = NLA_POLICY_MAX(NLA_U32, 1),
	[KVPOOL_A_POOL_LIFETIME] = NLA_POLICY_MAX(NLA_U32, 1),
	[KVPOOL_A_POOL_UID] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_GID] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_MODE] = NLA_POLICY_MAX(NLA_U32, 438),
	[KVPOOL_A_POOL_DEFERRED] = { .type = NLA_FLAG },
};

static const struct nla_policy pool_destroy_policy[KVPOOL_A_POOL_FORCE + 1] = {
	[KVPOOL_A_POOL_SESSION_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[KVPOOL_A_POOL_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[KVPOOL_A_POOL_GENERATION] = { .type = NLA_U64 },
	[KVPOOL_A_POOL_FORCE] = { .type = NLA_FLAG },
};

static const struct nla_policy pool_get_policy[KVPOOL_A_POOL_NAME + 1] = {
	[KVPOOL_A_POOL_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[KVPOOL_A_POOL_GENERATION] = { .type = NLA_U64 },
	[KVPOOL_A_POOL_NAME] = { .type = NLA_NUL_STRING, .len = 63 },
};

static const struct nla_policy pool_set_policy[KVPOOL_A_POOL_REGISTRATION + 1] = {
	[KVPOOL_A_POOL_SESSION_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[KVPOOL_A_POOL_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[KVPOOL_A_POOL_GENERATION] = { .type = NLA_U64 },
	[KVPOOL_A_POOL_ROLE] = { .type = NLA_NUL_STRING, .len = 63 },
	[KVPOOL_A_POOL_LABEL] = { .type = NLA_NUL_STRING, .len = 63 },
	[KVPOOL_A_POOL_RANK] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_LIFETIME] = NLA_POLICY_MAX(NLA_U32, 1),
	[KVPOOL_A_POOL_UID] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_GID] = { .type = NLA_U32 },
	[KVPOOL_A_POOL_MODE] = NLA_POLICY_MAX(NLA_U32, 438),
	[KVPOOL_A_POOL_REGISTRATION] = NLA_POLICY_MAX(NLA_U32, 4),
};

static const struct nla_policy pool_claim_policy[KVPOOL_A_POOL_GENERATION + 1] = {
	[KVPOOL_A_POOL_SESSION_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[KVPOOL_A_POOL_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[KVPOOL_A_POOL_GENERATION] = { .type = NLA_U64 },
};

static const struct nla_policy pin_get_policy[KVPOOL_A_POOL_GENERATION + 1] = {
	[KVPOOL_A_POOL_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[KVPOOL_A_POOL_GENERATION] = { .type = NLA_U64 },
};

static const struct nla_policy stats_get_policy[KVPOOL_A_STATS_PAD + 1] = {
};

static const struct nla_policy reserve_set_policy[KVPOOL_A_RESERVE_QUOTA + 1] = {
	[KVPOOL_A_RESERVE_SESSION_FD] = NLA_POLICY_MIN(NLA_S32, 0),
	[KVPOOL_A_RESERVE_POLICY] = NLA_POLICY_MAX(NLA_U32, 1),
	[KVPOOL_A_RESERVE_NODE] = { .type = NLA_U32 },
	[KVPOOL_A_RESERVE_TARGET] = { .type = NLA_U64 },
	[KVPOOL_A_RESERVE_UID] = { .type = NLA_U32 },
	[KVPOOL_A_RESERVE_QUOTA] = { .type = NLA_U64 },
};

static const struct nla_policy reserve_get_policy[KVPOOL_A_RESERVE_PAD + 1] = {
};

const struct genl_ops kvpool_nl_ops[KVPOOL_NL_OPS] = {
	{
		.cmd		= KVPOOL_CMD_POOL_CREATE,
		.doit		= kvpool_nl_pool_create_doit,
		.policy		= pool_create_policy,
		.maxattr	= ARRAY_SIZE(pool_create_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_POOL_DESTROY,
		.doit		= kvpool_nl_pool_destroy_doit,
		.policy		= pool_destroy_policy,
		.maxattr	= ARRAY_SIZE(pool_destroy_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_POOL_GET,
		.doit		= kvpool_nl_pool_get_doit,
		.start		= kvpool_nl_pool_get_start,
		.dumpit		= kvpool_nl_pool_get_dumpit,
		.done		= kvpool_nl_pool_get_done,
		.policy		= pool_get_policy,
		.maxattr	= ARRAY_SIZE(pool_get_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_POOL_SET,
		.doit		= kvpool_nl_pool_set_doit,
		.policy		= pool_set_policy,
		.maxattr	= ARRAY_SIZE(pool_set_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_POOL_CLAIM,
		.doit		= kvpool_nl_pool_claim_doit,
		.policy		= pool_claim_policy,
		.maxattr	= ARRAY_SIZE(pool_claim_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_PIN_GET,
		.start		= kvpool_nl_pin_get_start,
		.dumpit		= kvpool_nl_pin_get_dumpit,
		.done		= kvpool_nl_pin_get_done,
		.policy		= pin_get_policy,
		.maxattr	= ARRAY_SIZE(pin_get_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_STATS_GET,
		.doit		= kvpool_nl_stats_get_doit,
		.policy		= stats_get_policy,
		.maxattr	= ARRAY_SIZE(stats_get_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_RESERVE_SET,
		.doit		= kvpool_nl_reserve_set_doit,
		.policy		= reserve_set_policy,
		.maxattr	= ARRAY_SIZE(reserve_set_policy) - 1,
	},
	{
		.cmd		= KVPOOL_CMD_RESERVE_GET,
		.start		= kvpool_nl_reserve_get_start,
		.dumpit		= kvpool_nl_reserve_get_dumpit,
		.done		= kvpool_nl_reserve_get_done,
		.policy		= reserve_get_policy,
		.maxattr	= ARRAY_SIZE(reserve_get_policy) - 1,
	},
};

const struct genl_multicast_group kvpool_nl_mcgrps[KVPOOL_NL_MCGRPS] = {
	[KVPOOL_NL_MCGRP_POOLS] = { .name = KVPOOL_MCGRP_POOLS },
};

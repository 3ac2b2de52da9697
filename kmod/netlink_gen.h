/* SPDX-License-Identifier: GPL-2.0 */
/* Written by uapi/generate.py from uapi/kvpool.yaml: change that instead. */
#ifndef KVPOOL_NETLINK_GEN_H
#define KVPOOL_NETLINK_GEN_H

#include <net/genetlink.h>

#include "../uapi/kvpool_netlink.h"

#define KVPOOL_NL_OPS	9
#define KVPOOL_NL_MCGRP_POOLS	0
#define KVPOOL_NL_MCGRPS	1

extern const struct genl_ops kvpool_nl_ops[KVPOOL_NL_OPS];
extern const struct genl_multicast_group kvpool_nl_mcgrps[KVPOOL_NL_MCGRPS];

int kvpool_nl_pool_create_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_pool_destroy_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_pool_get_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_pool_get_start(struct netlink_callback *cb);
int kvpool_nl_pool_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int kvpool_nl_pool_get_done(struct netlink_callback *cb);
int kvpool_nl_pool_set_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_pool_claim_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_pin_get_start(struct netlink_callback *cb);
int kvpool_nl_pin_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int kvpool_nl_pin_get_done(struct netlink_callback *cb);
int kvpool_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_reserve_set_doit(struct sk_buff *skb, struct genl_info *info);
int kvpool_nl_reserve_get_start(struct netlink_callback *cb);
int kvpool_nl_reserve_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int kvpool_nl_reserve_get_done(struct netlink_callback *cb);

#endif /* KVPOOL_NETLINK_GEN_H */

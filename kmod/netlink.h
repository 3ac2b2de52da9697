/* SPDX-License-Identifier: GPL-2.0 */
/* What the files that speak netlink share. */
#ifndef KVPOOL_NETLINK_PRIVATE_H
#define KVPOOL_NETLINK_PRIVATE_H

#include "internal.h"
#include "netlink_gen.h"

/* netlink.c */
extern struct genl_family kvpool_family;

/* request.c: who sends a request, and what its attributes ask for, checked for form */
int kvpool_request_sender(const struct sk_buff *skb, struct netlink_ext_ack *extack);
struct file *kvpool_request_session(const struct sk_buff *skb, const struct genl_info *info,
				    const struct nlattr *attr);
int kvpool_request_pool(const struct genl_info *info, struct kvpool_request *request);
int kvpool_request_tags(const struct genl_info *info, struct kvpool_tags *tags,
			u32 *registration);

/* fill.c */
int kvpool_fill_identity(struct sk_buff *skb, const struct kvpool_pool *pool);
int kvpool_fill_pool(struct sk_buff *skb, const struct kvpool_pool *pool, u32 pinned);

#endif /* KVPOOL_NETLINK_PRIVATE_H */

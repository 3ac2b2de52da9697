// SPDX-License-Identifier: GPL-2.0
#include <net/genetlink.h>

int kvpool_probe(const struct genl_family *family, struct sk_buff *skb);
int kvpool_probe(const struct genl_family *family, struct sk_buff *skb)
{
	return genlmsg_multicast_allns(family, skb, 0, 0);
}

/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KVPOOL_REQUEST_H
#define KVPOOL_REQUEST_H

#include <net/genetlink.h>

#include "internal.h"

/* request.c: what netlink attributes ask for, checked for form */
int kvpool_request_pool(const struct genl_info *info, struct kvpool_request *request);
int kvpool_request_tags(const struct genl_info *info, struct kvpool_tags *tags,
			u32 *registration);

#endif /* KVPOOL_REQUEST_H */

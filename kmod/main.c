// SPDX-License-Identifier: GPL-2.0
/* Orders start and stop. */
#include <linux/module.h>
#include <net/genetlink.h>

#include "internal.h"

static int __init kvpool_init(void)
{
	int err;

	kvpool_charge_init();
	kvpool_registry_init();
	err = kvpool_reserve_init();
	if (err)
		goto registry;
	err = kvpool_allocation_init();
	if (err)
		goto reserve;
	err = kvpool_reaper_init();
	if (err)
		goto allocation;
	err = kvpool_node_init();
	if (err)
		goto reaper;
	err = kvpool_reserve_sysfs_add(kvpool_node_control());
	if (err)
		goto node;
	err = kvpool_netlink_init();
	if (err)
		goto sysfs;
	err = kvpool_node_open();
	if (err)
		goto netlink;
	return 0;

netlink:
	kvpool_netlink_exit();
sysfs:
	kvpool_reserve_sysfs_remove();
node:
	kvpool_node_exit();
reaper:
	kvpool_reaper_exit();
allocation:
	kvpool_allocation_exit();
reserve:
	kvpool_reserve_exit();
registry:
	kvpool_registry_exit();
	return err;
}

/*
 * Pools, open nodes and requests under way each hold a reference on the
 * module, so none is left here; only the reaper's last round may still run.
 */
static void __exit kvpool_exit(void)
{
	kvpool_node_close();
	kvpool_netlink_exit();
	kvpool_reserve_sysfs_remove();
	kvpool_node_exit();
	kvpool_reaper_exit();
	kvpool_allocation_exit();
	kvpool_reserve_exit();
	kvpool_quota_exit();
	kvpool_registry_exit();
}

module_init(kvpool_init);
module_exit(kvpool_exit);

MODULE_DESCRIPTION("Pinned, huge-page, ownership-tagged memory pools");
MODULE_AUTHOR("kvpool developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_ALIAS_GENL_FAMILY(KVPOOL_FAMILY_NAME);

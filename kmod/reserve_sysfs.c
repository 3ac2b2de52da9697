// SPDX-License-Identifier: GPL-2.0
/* The reserve of each node, in /sys/class/kvpool/control/reserve/nodeN. */
#include <linux/kobject.h>
#include <linux/nodemask.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

static struct kobject *directory;
/* By node; NULL: it had no memory. */
static struct kobject **nodes;

#define RESERVE_ATTR(name)									\
static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)	\
{												\
	struct kvpool_reserve_state state;							\
	int node;										\
												\
	if (sscanf(kobject_name(kobj), "node%d", &node) != 1)					\
		return -EIO;									\
	kvpool_reserve_get(node, &state);							\
	return sysfs_emit(buf, "%llu\n", state.name);						\
}												\
static struct kobj_attribute name##_attr = __ATTR_RO(name)

RESERVE_ATTR(target);
RESERVE_ATTR(ready);
RESERVE_ATTR(clearing);

static struct attribute *reserve_attrs[] = {
	&target_attr.attr,
	&ready_attr.attr,
	&clearing_attr.attr,
	NULL
};

static const struct attribute_group reserve_group = {
	.attrs	= reserve_attrs,
};

/**
 * kvpool_reserve_sysfs_remove - undo kvpool_reserve_sysfs_add(), also half of it
 */
void kvpool_reserve_sysfs_remove(void)
{
	int node;

	for (node = 0; node < nr_node_ids; node++)
		kobject_put(nodes[node]);
	kobject_put(directory);
	kfree(nodes);
}

/**
 * kvpool_reserve_sysfs_add - make the directories
 * @parent: the control device
 */
int kvpool_reserve_sysfs_add(struct kobject *parent)
{
	int node, err = 0;

	nodes = kcalloc(nr_node_ids, sizeof(*nodes), GFP_KERNEL);
	if (!nodes)
		return -ENOMEM;
	directory = kobject_create_and_add("reserve", parent);
	if (!directory)
		err = -ENOMEM;
	for_each_node_state(node, N_MEMORY) {
		char name[16];

		if (err)
			break;
		snprintf(name, sizeof(name), "node%d", node);
		nodes[node] = kobject_create_and_add(name, directory);
		err = nodes[node] ? sysfs_create_group(nodes[node], &reserve_group) : -ENOMEM;
	}
	if (err)
		kvpool_reserve_sysfs_remove();
	return err;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of a pool in /sys/class/kvpool/NAME. All files are root's, since the owner
 * of the directory could announce the device anew or gone; reading them is for whom
 * the pool is readable.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "internal.h"

static const char * const state_names[] = {
	[KVPOOL_STATE_LIVE]	= "live",
	[KVPOOL_STATE_ORPHAN]	= "orphan",
	[KVPOOL_STATE_DYING]	= "dying",
	[KVPOOL_STATE_CREATING]	= "creating",
};

static const char * const registration_names[] = {
	[KVPOOL_REGISTRATION_ALLOCATED]		= "ALLOCATED",
	[KVPOOL_REGISTRATION_REGISTERING]	= "REGISTERING",
	[KVPOOL_REGISTRATION_COMMITTED]		= "COMMITTED",
	[KVPOOL_REGISTRATION_FALLBACK_L2]	= "FALLBACK_L2",
	[KVPOOL_REGISTRATION_FAILED]		= "FAILED",
};

static const char * const lifetime_names[] = {
	[KVPOOL_LIFETIME_OWNER]		= "owner",
	[KVPOOL_LIFETIME_PERSISTENT]	= "persistent",
};

/* Every attribute is one value, read under the pool's lock. */
#define POOL_ATTR(name, format, value)							\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{											\
	struct kvpool_pool *pool = dev_get_drvdata(dev);				\
	ssize_t size;									\
											\
	mutex_lock(&pool->lock);							\
	size = kvpool_may_open(pool, false) ? sysfs_emit(buf, format "\n", value) :	\
					      -EACCES;					\
	mutex_unlock(&pool->lock);							\
	return size;									\
}											\
static DEVICE_ATTR_RO(name)

POOL_ATTR(id, "%u", pool->id);
POOL_ATTR(generation, "%llu", pool->generation);
POOL_ATTR(domain, "%s", pool->tags.domain);
POOL_ATTR(role, "%s", pool->tags.role);
POOL_ATTR(label, "%s", pool->tags.label);
POOL_ATTR(rank, "%d", (s32)pool->tags.rank);
POOL_ATTR(length, "%llu", pool->length);
POOL_ATTR(mapped_length, "%llu", pool->mapped_length);
POOL_ATTR(node, "%d", (s32)pool->node);
POOL_ATTR(lifetime, "%s", lifetime_names[pool->tags.lifetime]);
POOL_ATTR(state, "%s", state_names[kvpool_pool_state(pool)]);
POOL_ATTR(registration, "%s", registration_names[pool->registration]);
POOL_ATTR(blocks, "%u", pool->blocks.count);
POOL_ATTR(mappings, "%d", atomic_read(&pool->mappings));
POOL_ATTR(files, "%u", pool->files);

static ssize_t pinned_blocks_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u32 pinned;
	int err = kvpool_pool_pinned(dev_get_drvdata(dev), &pinned);

	return err ? err : sysfs_emit(buf, "%u\n", pinned);
}
static DEVICE_ATTR_RO(pinned_blocks);

static struct attribute *pool_attrs[] = {
	&dev_attr_id.attr,
	&dev_attr_generation.attr,
	&dev_attr_domain.attr,
	&dev_attr_role.attr,
	&dev_attr_label.attr,
	&dev_attr_rank.attr,
	&dev_attr_length.attr,
	&dev_attr_mapped_length.attr,
	&dev_attr_node.attr,
	&dev_attr_lifetime.attr,
	&dev_attr_state.attr,
	&dev_attr_registration.attr,
	&dev_attr_blocks.attr,
	&dev_attr_pinned_blocks.attr,
	&dev_attr_mappings.attr,
	&dev_attr_files.attr,
	NULL
};

static const struct attribute_group pool_group = {
	.attrs	= pool_attrs,
};

const struct attribute_group *kvpool_node_groups[] = { &pool_group, NULL };

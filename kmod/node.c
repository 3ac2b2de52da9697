// SPDX-License-Identifier: GPL-2.0
/*
 * Class, device numbers and device nodes. Minor 0 is the control node, any
 * other is the id of a pool.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "internal.h"

static dev_t base;
static struct cdev control_cdev;
static struct cdev pool_cdev;
static struct device *control;

/* Protects kvpool_pool.device. Held while sysfs readers are waited for. */
static DEFINE_MUTEX(kvpool_node_lock);

/*
 * May not fail: without a path a node would be made elsewhere, with the default's
 * owner, and would stay when its device goes. The few bytes are always to be had.
 */
static char *node_path(kvpool_devnode_device *dev)
{
	return kasprintf(GFP_KERNEL | __GFP_NOFAIL, "kvpool/%s", dev_name(dev));
}

static char *class_devnode(kvpool_devnode_device *dev, umode_t *mode)
{
	/* A udev rule gives it to the group kvpool; without one it is root's. */
	if (mode && MINOR(dev->devt) == 0)
		*mode = 0660;
	return node_path(dev);
}

static struct class kvpool_class = {
	.name		= "kvpool",
	.devnode	= class_devnode,
};

static char *pool_devnode(kvpool_devnode_device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
{
	struct kvpool_pool *pool = dev_get_drvdata(dev);

	/* On removal only the name is asked for. A mode of 0 means the default to devtmpfs. */
	if (mode)
		*mode = pool->tags.mode | S_IFCHR;
	if (uid)
		*uid = pool->tags.uid;
	if (gid)
		*gid = pool->tags.gid;
	return node_path(dev);
}

static const struct device_type pool_type = {
	.name		= "pool",
	.groups		= kvpool_node_groups,
	.devnode	= pool_devnode,
};

static void pool_device_release(struct device *dev)
{
	kvpool_pool_put(dev_get_drvdata(dev));
	kfree(dev);
}

/**
 * kvpool_node_number - device number of a pool's node
 * @pool: has its id
 */
dev_t kvpool_node_number(const struct kvpool_pool *pool)
{
	return MKDEV(MAJOR(base), pool->id);
}

static int node_add(struct kvpool_pool *pool)
{
	struct device *dev;
	int err;

	lockdep_assert_held(&kvpool_node_lock);
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	device_initialize(dev);
	kvpool_pool_get(pool);
	dev_set_drvdata(dev, pool);
	dev->class = &kvpool_class;
	dev->type = &pool_type;
	dev->devt = kvpool_node_number(pool);
	dev->release = pool_device_release;
	/* Announced when the pool can be opened. */
	dev_set_uevent_suppress(dev, true);
	err = dev_set_name(dev, "%s", pool->tags.name);
	if (!err)
		err = device_add(dev);
	if (err) {
		put_device(dev);
		return err;
	}
	pool->device = dev;
	return 0;
}

static void node_announce(struct kvpool_pool *pool)
{
	lockdep_assert_held(&kvpool_node_lock);
	if (pool->device) {
		dev_set_uevent_suppress(pool->device, false);
		kobject_uevent(&pool->device->kobj, KOBJ_ADD);
	}
}

static void node_remove(struct kvpool_pool *pool)
{
	lockdep_assert_held(&kvpool_node_lock);
	if (pool->device)
		device_unregister(pool->device);
	pool->device = NULL;
}

/**
 * kvpool_node_add - make the device node of a new pool
 * @pool: named; can't be opened yet
 */
int kvpool_node_add(struct kvpool_pool *pool)
{
	int err;

	mutex_lock(&kvpool_node_lock);
	err = node_add(pool);
	mutex_unlock(&kvpool_node_lock);
	return err;
}

/**
 * kvpool_node_announce - tell user space that the node can be opened
 * @pool: published
 */
void kvpool_node_announce(struct kvpool_pool *pool)
{
	mutex_lock(&kvpool_node_lock);
	node_announce(pool);
	mutex_unlock(&kvpool_node_lock);
}

/**
 * kvpool_node_replace - make a node anew, for another uid, gid or mode
 * @pool: referenced; may have ended meanwhile
 *
 * A node's owner is set when it is made. Open files are not touched, and what
 * opens a node in either state is checked against the pool itself. After a
 * failure there is no node until this succeeds.
 */
int kvpool_node_replace(struct kvpool_pool *pool)
{
	bool wanted;
	int err = 0;

	mutex_lock(&kvpool_node_lock);
	/* Whoever ends this removes the node afterwards. */
	mutex_lock(&pool->lock);
	wanted = pool->life == KVPOOL_LIFE_LIVE && !pool->orphan;
	mutex_unlock(&pool->lock);
	if (wanted) {
		node_remove(pool);
		err = node_add(pool);
		node_announce(pool);
	}
	mutex_unlock(&kvpool_node_lock);
	return err;
}

/**
 * kvpool_node_remove - remove the node, if there is one
 * @pool: referenced; no lock of it is held, since sysfs readers are waited for
 */
void kvpool_node_remove(struct kvpool_pool *pool)
{
	mutex_lock(&kvpool_node_lock);
	node_remove(pool);
	mutex_unlock(&kvpool_node_lock);
}

/**
 * kvpool_node_control - the control device
 */
struct kobject *kvpool_node_control(void)
{
	return &control->kobj;
}

/**
 * kvpool_node_init - class, device numbers and the control node, which can't be opened yet
 */
int kvpool_node_init(void)
{
	int err;

	err = class_register(&kvpool_class);
	if (err)
		return err;
	err = alloc_chrdev_region(&base, 0, KVPOOL_ID_MAX + 1, "kvpool");
	if (err)
		goto class;
	control = device_create(&kvpool_class, NULL, base, NULL, "control");
	if (IS_ERR(control)) {
		err = PTR_ERR(control);
		goto region;
	}
	return 0;

region:
	unregister_chrdev_region(base, KVPOOL_ID_MAX + 1);
class:
	class_unregister(&kvpool_class);
	return err;
}

/**
 * kvpool_node_open - let nodes be opened
 *
 * The last step of the module's start: an open file keeps a module from being
 * removed, but not from being freed when its start fails.
 */
int kvpool_node_open(void)
{
	int err;

	cdev_init(&pool_cdev, &kvpool_pool_fops);
	pool_cdev.owner = THIS_MODULE;
	err = cdev_add(&pool_cdev, base + 1, KVPOOL_ID_MAX);
	if (err)
		return err;
	cdev_init(&control_cdev, &kvpool_control_fops);
	control_cdev.owner = THIS_MODULE;
	err = cdev_add(&control_cdev, base, 1);
	if (err)
		cdev_del(&pool_cdev);
	return err;
}

/**
 * kvpool_node_close - undo kvpool_node_open()
 */
void kvpool_node_close(void)
{
	cdev_del(&control_cdev);
	cdev_del(&pool_cdev);
}

/**
 * kvpool_node_exit - undo kvpool_node_init(); no pool is left
 */
void kvpool_node_exit(void)
{
	device_destroy(&kvpool_class, base);
	unregister_chrdev_region(base, KVPOOL_ID_MAX + 1);
	class_unregister(&kvpool_class);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A pseudo file system whose only purpose is an inode a pool: its mapping is
 * shared by all files of the pool, and its size lets the core use large
 * entries. Mounted while pools exist, so that it does not hold the module
 * when there are none, and does hold it when there are.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "internal.h"

#define KVPOOL_MAGIC	0x6b76706c	/* "kvpl" */

static struct vfsmount *kvpool_mount;
static int kvpool_mount_count;

/*
 * What /proc/PID/maps shows of a pool that was opened by id. Not asked of the
 * pool: a path, such as one opened by O_PATH, outlives its file and the pool.
 */
static char *kvpool_dname(struct dentry *dentry, char *buffer, int size)
{
	const struct qstr *name = &dentry->d_name;
	int length = name->len + 1;

	if (length > size)
		return ERR_PTR(-ENAMETOOLONG);
	return memcpy(buffer + size - length, name->name, length);
}

static const struct dentry_operations kvpool_dentry_ops = {
	.d_dname	= kvpool_dname,
};

static int kvpool_init_fs_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, KVPOOL_MAGIC);

	if (!ctx)
		return -ENOMEM;
	ctx->dops = &kvpool_dentry_ops;
	/* Newer kernels do so themselves. */
	fc->s_iflags |= SB_I_NOEXEC;
	return 0;
}

static struct file_system_type kvpool_fs = {
	.name			= "kvpool",
	.owner			= THIS_MODULE,
	.init_fs_context	= kvpool_init_fs_context,
	.kill_sb		= kill_anon_super,
};

/**
 * kvpool_inode_new - make the inode of a pool
 * @mapped_length: of the pool
 */
struct inode *kvpool_inode_new(u64 mapped_length)
{
	struct inode *inode;
	int err;

	err = simple_pin_fs(&kvpool_fs, &kvpool_mount, &kvpool_mount_count);
	if (err)
		return ERR_PTR(err);
	inode = alloc_anon_inode(kvpool_mount->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&kvpool_mount, &kvpool_mount_count);
		return inode;
	}
	i_size_write(inode, mapped_length);
	return inode;
}

/**
 * kvpool_inode_put - undo kvpool_inode_new()
 * @inode: no file uses it any more; paths to it may be left
 */
void kvpool_inode_put(struct inode *inode)
{
	iput(inode);
	simple_release_fs(&kvpool_mount, &kvpool_mount_count);
}

/**
 * kvpool_inode_file - open the inode of a pool
 * @pool: referenced, and the file is counted
 * @flags: O_RDONLY or O_RDWR
 *
 * The caller sets private_data.
 */
struct file *kvpool_inode_file(struct kvpool_pool *pool, int flags)
{
	struct inode *inode = pool->inode;
	struct file *file;
	char name[48];

	snprintf(name, sizeof(name), "kvpool:%u.%llu", pool->id, pool->generation);

	/* Closing the file drops both. */
	ihold(inode);
	__module_get(THIS_MODULE);
	file = alloc_file_pseudo(inode, kvpool_mount, name, flags | O_CLOEXEC, &kvpool_pool_fops);
	if (IS_ERR(file)) {
		module_put(THIS_MODULE);
		iput(inode);
	}
	return file;
}

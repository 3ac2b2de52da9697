// SPDX-License-Identifier: GPL-2.0
/*
 * One table for all ioctls: which nodes take a command, and the size of its
 * struct in the first version and now.
 */
#include <linux/file.h>
#include <linux/uaccess.h>

#include "internal.h"

union argument {
	u32 size;
	struct kvpool_resolve resolve;
	struct kvpool_open open;
	struct kvpool_info info;
	struct kvpool_fill fill;
};

#define END(type, member)	offsetofend(struct type, member)

static int resolve_ioctl(struct file *file, union argument *arg, struct file **opened)
{
	return kvpool_resolve(&arg->resolve);
}

static int open_ioctl(struct file *file, union argument *arg, struct file **opened)
{
	struct kvpool_open *open = &arg->open;
	struct kvpool_pool *pool;
	int err = 0;

	if (open->flags & ~KVPOOL_OPEN_WRITE)
		return -EINVAL;
	pool = kvpool_registry_find(open->id);
	if (!pool)
		return -ENOENT;
	if (pool->generation != open->generation) {
		err = -ESTALE;
		goto put_pool;
	}
	open->fd = get_unused_fd_flags(O_CLOEXEC);
	if (open->fd < 0) {
		err = open->fd;
		goto put_pool;
	}
	*opened = kvpool_file_open(pool, open->flags & KVPOOL_OPEN_WRITE);
	if (IS_ERR(*opened)) {
		err = PTR_ERR(*opened);
		*opened = NULL;
		put_unused_fd(open->fd);
	}
put_pool:
	kvpool_pool_put(pool);
	return err;
}

static int info_ioctl(struct file *file, union argument *arg, struct file **opened)
{
	struct kvpool_pool *pool = file->private_data;
	struct kvpool_info *info = &arg->info;
	u32 size = info->size;

	if (info->flags)
		return -EINVAL;
	memset(info, 0, sizeof(*info));
	info->size = size;
	info->generation = pool->generation;
	info->length = pool->length;
	info->mapped_length = pool->mapped_length;
	info->id = pool->id;
	info->block_size = KVPOOL_BLOCK_SIZE;
	info->node = pool->node;

	mutex_lock(&pool->lock);
	info->state = kvpool_pool_state(pool);
	info->rank = pool->tags.rank;
	info->lifetime = pool->tags.lifetime;
	strscpy(info->name, pool->tags.name, sizeof(info->name));
	strscpy(info->domain, pool->tags.domain, sizeof(info->domain));
	strscpy(info->role, pool->tags.role, sizeof(info->role));
	strscpy(info->label, pool->tags.label, sizeof(info->label));
	mutex_unlock(&pool->lock);
	return 0;
}

static int fill_ioctl(struct file *file, union argument *arg, struct file **opened)
{
	struct kvpool_session *session = file->private_data;
	struct kvpool_fill *fill = &arg->fill;
	struct netlink_ext_ack extack = {};
	struct kvpool_pool *pool;
	int err;

	if (!(file->f_mode & FMODE_WRITE))
		return -EACCES;
	if (fill->flags || fill->reserved)
		return -EINVAL;
	memset(fill->message, 0, sizeof(fill->message));
	pool = kvpool_session_take(session, fill->id, fill->generation);
	if (!pool)
		return -ENOENT;
	err = kvpool_pool_fill(pool, session, &extack);
	if (!err)
		kvpool_pool_put(pool);
	else if (extack._msg)
		strscpy(fill->message, extack._msg, sizeof(fill->message));
	return err;
}

static const struct {
	unsigned int cmd;
	bool control, pool;
	size_t size, first_size;
	/* A file that open.fd shall stand for goes into *opened. */
	int (*run)(struct file *file, union argument *arg, struct file **opened);
} commands[] = {
	{ KVPOOL_IOC_RESOLVE, true, true, sizeof(struct kvpool_resolve),
	  END(kvpool_resolve, resolved), resolve_ioctl },
	{ KVPOOL_IOC_OPEN, true, false, sizeof(struct kvpool_open),
	  END(kvpool_open, fd), open_ioctl },
	{ KVPOOL_IOC_INFO, false, true, sizeof(struct kvpool_info),
	  END(kvpool_info, label), info_ioctl },
	{ KVPOOL_IOC_FILL, true, false, sizeof(struct kvpool_fill),
	  END(kvpool_fill, message), fill_ioctl },
};

/**
 * kvpool_ioctl - of the control node and of pools' nodes
 * @file: either
 * @cmd: KVPOOL_IOC_*
 * @arg: address of the struct
 */
long kvpool_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	bool control = file->f_op == &kvpool_control_fops;
	void __user *user = (void __user *)arg;
	struct file *opened = NULL;
	union argument argument;
	u32 size, i;
	int err;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].cmd == cmd &&
		    (control ? commands[i].control : commands[i].pool))
			break;
	if (i == ARRAY_SIZE(commands))
		return -ENOTTY;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < commands[i].first_size)
		return -EINVAL;
	/* No struct is so large; the kernel shall not read gigabytes of zeros. */
	if (size > PAGE_SIZE)
		return -E2BIG;
	memset(&argument, 0, sizeof(argument));
	err = copy_struct_from_user(&argument, commands[i].size, user, size);
	if (err)
		return err;
	/* It may have changed between the two reads. */
	argument.size = size;

	err = commands[i].run(file, &argument, &opened);
	/* A failure leaves the struct as it was, unless that has a place for its cause. */
	if (err && cmd != KVPOOL_IOC_FILL)
		return err;
	if (copy_to_user(user, &argument, min_t(size_t, size, commands[i].size)) && !err)
		err = -EFAULT;
	if (!opened)
		return err;
	/* Last: a descriptor whose number was not told is lost to its process. */
	if (err) {
		put_unused_fd(argument.open.fd);
		fput(opened);
	} else {
		fd_install(argument.open.fd, opened);
	}
	return err;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A session is an open file on the control node. Ownership hangs on it, never
 * on a pid: it ends when the last descriptor of the file is closed, be it by
 * the process, by its death, or by a child that inherited it.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "internal.h"

/**
 * struct kvpool_session - an open control node
 * @pools: owned pools; protected by kvpool_registry_lock
 * @reserved: pools that have no memory yet, each with a reference; likewise
 */
struct kvpool_session {
	struct list_head pools;
	struct list_head reserved;
};

static atomic_t sessions;

/**
 * kvpool_session_count - sessions open now
 */
u32 kvpool_session_count(void)
{
	return atomic_read(&sessions);
}

/**
 * kvpool_session_own - make the session the owner
 * @session: its file is held by the caller
 * @pool: has no owner
 */
void kvpool_session_own(struct kvpool_session *session, struct kvpool_pool *pool)
{
	lockdep_assert_held(&kvpool_registry_lock);
	pool->session = session;
	list_add_tail(&pool->session_link, &session->pools);
}

/**
 * kvpool_session_disown - take a pool from its owner, if it has one
 * @pool: any
 */
void kvpool_session_disown(struct kvpool_pool *pool)
{
	lockdep_assert_held(&kvpool_registry_lock);
	pool->session = NULL;
	list_del_init(&pool->session_link);
}

/**
 * kvpool_session_keep - keep a pool until it is filled
 * @session: its file is held by the caller
 * @pool: LIFE_NEW; the caller's reference is the session's now
 */
void kvpool_session_keep(struct kvpool_session *session, struct kvpool_pool *pool)
{
	mutex_lock(&kvpool_registry_lock);
	list_add_tail(&pool->session_link, &session->reserved);
	mutex_unlock(&kvpool_registry_lock);
}

/**
 * kvpool_session_take - take out a pool that was kept; of several takers one gets it
 * @session: its file is held by the caller
 * @id: of the pool
 * @generation: of the pool
 *
 * Return: the pool with the session's reference, or NULL.
 */
struct kvpool_pool *kvpool_session_take(struct kvpool_session *session, u32 id, u64 generation)
{
	struct kvpool_pool *pool, *found = NULL;

	mutex_lock(&kvpool_registry_lock);
	list_for_each_entry(pool, &session->reserved, session_link) {
		if (pool->id == id && pool->generation == generation) {
			list_del_init(&pool->session_link);
			found = pool;
			break;
		}
	}
	mutex_unlock(&kvpool_registry_lock);
	return found;
}

static int control_open(struct inode *inode, struct file *file)
{
	struct kvpool_session *session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);

	if (!session)
		return -ENOMEM;
	INIT_LIST_HEAD(&session->pools);
	INIT_LIST_HEAD(&session->reserved);
	file->private_data = session;
	atomic_inc(&sessions);
	return nonseekable_open(inode, file);
}

static int control_release(struct inode *inode, struct file *file)
{
	struct kvpool_session *session = file->private_data;
	struct kvpool_pool *pool, *next;

	/* Nobody else has the session any more, or knows these pools. */
	list_for_each_entry_safe(pool, next, &session->reserved, session_link) {
		list_del_init(&pool->session_link);
		kvpool_pool_abandon(pool);
	}

	mutex_lock(&kvpool_registry_lock);
	while ((pool = list_first_entry_or_null(&session->pools, struct kvpool_pool,
						session_link))) {
		kvpool_pool_get(pool);
		mutex_unlock(&kvpool_registry_lock);

		kvpool_pool_disown(pool, session);
		kvpool_pool_put(pool);
		cond_resched();
		mutex_lock(&kvpool_registry_lock);
	}
	mutex_unlock(&kvpool_registry_lock);

	kfree(session);
	atomic_dec(&sessions);
	return 0;
}

const struct file_operations kvpool_control_fops = {
	.owner		= THIS_MODULE,
	.open		= control_open,
	.release	= control_release,
	.unlocked_ioctl	= kvpool_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

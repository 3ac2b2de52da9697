// SPDX-License-Identifier: GPL-2.0
/*
 * Ends pools off the exit path: revokes mappings, releases blocks, and looks
 * again at those that a device still pins. Nothing tells when the last pin
 * goes, so it looks, first soon and then ever less often up to once a second.
 */
#include <linux/workqueue.h>

#include "internal.h"

#define LOOK_FIRST	msecs_to_jiffies(10)
#define LOOK_LAST	msecs_to_jiffies(1000)

static void reap(struct work_struct *work);

static struct workqueue_struct *reaper;
static DECLARE_DELAYED_WORK(reaper_work, reap);

/* Protects dying and look_again. Never held while a pool's lock is taken. */
static DEFINE_MUTEX(dying_lock);
static LIST_HEAD(dying);
static unsigned long look_again;

/* True when the last block is gone. */
static bool reap_pool(struct kvpool_pool *pool)
{
	bool done;

	if (!pool->revoked)
		kvpool_pool_revoke(pool);

	mutex_lock(&pool->lock);
	kvpool_blocks_release(&pool->blocks);
	done = !pool->blocks.held;
	if (done)
		kvpool_uncharge(&pool->charge);
	mutex_unlock(&pool->lock);
	return done;
}

static void reap(struct work_struct *work)
{
	struct kvpool_pool *pool, *next;
	LIST_HEAD(round);

	mutex_lock(&dying_lock);
	list_splice_init(&dying, &round);
	mutex_unlock(&dying_lock);

	list_for_each_entry_safe(pool, next, &round, dying_link) {
		if (!reap_pool(pool))
			continue;
		list_del_init(&pool->dying_link);
		atomic64_inc(&kvpool_destroyed);
		kvpool_registry_remove(pool);
		kvpool_netlink_notify(KVPOOL_CMD_POOL_DESTROY_NTF, pool);
		kvpool_pool_put(pool);
		cond_resched();
	}

	mutex_lock(&dying_lock);
	list_splice(&round, &dying);
	if (!list_empty(&dying)) {
		queue_delayed_work(reaper, &reaper_work, look_again);
		look_again = min(2 * look_again, LOOK_LAST);
	}
	mutex_unlock(&dying_lock);
}

/**
 * kvpool_reaper_add - hand over a pool that has ended
 * @pool: DYING, without name, owner and node; the reaper takes a reference
 */
void kvpool_reaper_add(struct kvpool_pool *pool)
{
	kvpool_pool_get(pool);
	mutex_lock(&dying_lock);
	list_add_tail(&pool->dying_link, &dying);
	look_again = LOOK_FIRST;
	mod_delayed_work(reaper, &reaper_work, 0);
	mutex_unlock(&dying_lock);
}

/**
 * kvpool_reaper_settle - wait until what can be released now is released
 *
 * Covers every pool handed over before the call.
 */
void kvpool_reaper_settle(void)
{
	mutex_lock(&dying_lock);
	if (!list_empty(&dying))
		mod_delayed_work(reaper, &reaper_work, 0);
	mutex_unlock(&dying_lock);
	/* Also waits for a round under way, whose pools are not in the list. */
	flush_delayed_work(&reaper_work);
}

/**
 * kvpool_reaper_init - make the work queue
 */
int kvpool_reaper_init(void)
{
	reaper = alloc_workqueue("kvpool", WQ_UNBOUND, 0);
	return reaper ? 0 : -ENOMEM;
}

/**
 * kvpool_reaper_exit - stop; no pool is left
 */
void kvpool_reaper_exit(void)
{
	cancel_delayed_work_sync(&reaper_work);
	destroy_workqueue(reaper);
}

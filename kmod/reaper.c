// SPDX-License-Identifier: GPL-2.0
/*
 * Ends pools off the exit path: revokes mappings, releases blocks, and looks
 * again at those that a device still pins. Nothing tells when the last pin
 * goes, so it looks, first soon and then ever less often up to once a second.
 */
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "internal.h"

#define LOOK_FIRST	msecs_to_jiffies(10)
#define LOOK_LAST	msecs_to_jiffies(1000)

static void reap(struct work_struct *work);

static struct workqueue_struct *reaper;
static DECLARE_DELAYED_WORK(reaper_work, reap);

/* Protects what follows. Never held while a pool's lock is taken. */
static DEFINE_MUTEX(dying_lock);
static LIST_HEAD(dying);
static unsigned long look_again;
/* A round is due within LOOK_FIRST. */
static bool look_soon;
/* Rounds; one of them runs when they differ. */
static u64 rounds_begun, rounds_ended;
static DECLARE_WAIT_QUEUE_HEAD(round_ended);

/* True when the last block is gone. */
static bool reap_pool(struct kvpool_pool *pool)
{
	u32 first;
	bool done;

	if (!pool->revoked)
		kvpool_pool_revoke(pool);

	mutex_lock(&pool->lock);
	for (first = 0; first < pool->blocks.count; first += KVPOOL_SLICE) {
		kvpool_blocks_release_range(&pool->blocks, first, KVPOOL_SLICE);
		mutex_unlock(&pool->lock);
		cond_resched();
		mutex_lock(&pool->lock);
	}
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
	look_soon = false;
	rounds_begun++;
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
	WRITE_ONCE(rounds_ended, rounds_begun);
	mutex_unlock(&dying_lock);
	wake_up_all(&round_ended);
}

/**
 * kvpool_reaper_add - hand over a pool that has ended
 * @pool: DYING, without name, owner and node; the reaper takes a reference
 *
 * Not looked at before LOOK_FIRST is over, unless somebody settles: on a busy
 * processor the caller, often a process that dies, would have to wait for it.
 */
void kvpool_reaper_add(struct kvpool_pool *pool)
{
	kvpool_pool_get(pool);
	mutex_lock(&dying_lock);
	list_add_tail(&pool->dying_link, &dying);
	look_again = LOOK_FIRST;
	/* Not put off by those that come later. */
	if (!look_soon)
		mod_delayed_work(reaper, &reaper_work, LOOK_FIRST);
	look_soon = true;
	mutex_unlock(&dying_lock);
}

/**
 * kvpool_reaper_settle - wait until what can be released now is released
 *
 * Covers every pool handed over before the call.
 *
 * Return: 1; 0 when nothing was due; -EINTR when a fatal signal arrived.
 */
int kvpool_reaper_settle(void)
{
	u64 round;

	mutex_lock(&dying_lock);
	/* A round under way has emptied the list, and pools may have come since. */
	round = rounds_begun;
	if (!list_empty(&dying)) {
		round++;
		mod_delayed_work(reaper, &reaper_work, 0);
	} else if (rounds_ended == rounds_begun) {
		mutex_unlock(&dying_lock);
		return 0;
	}
	mutex_unlock(&dying_lock);
	return wait_event_killable(round_ended, READ_ONCE(rounds_ended) >= round) ? -EINTR : 1;
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

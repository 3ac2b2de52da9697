// SPDX-License-Identifier: GPL-2.0
/*
 * The reserve: on each node a stock of cleared blocks, so that a creation need
 * not allocate and clear them. A thread fills it at the lowest priority.
 *
 * A block of the reserve is charged to no memory cgroup, and can't be when it is
 * given out: nothing exported charges pages that exist. So the reserve is the
 * administrator's memory, given out under quotas (quota.c).
 *
 * A block that comes back from a pool is dirty until the thread has cleared it,
 * and only clean blocks are given out.
 */
#include <linux/highmem.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/page_ref.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "internal.h"

/* After this time it tries again to get memory that was not to be had. */
#define RETRY_AFTER	(5 * HZ)
/*
 * A creation maps its memory next, and others may follow: for so long it does not
 * take processors and the memory's bandwidth from them to replace what was taken.
 */
#define REPLACE_AFTER	HZ
/* Blocks that change hands under one hold of a lock. */
#define BATCH		64

static unsigned long long reserve[MAX_NUMNODES];
static unsigned int reserve_count;
module_param_array(reserve, ullong, &reserve_count, 0444);
MODULE_PARM_DESC(reserve, "Bytes to hold cleared for pools, of node 0, 1, ... (default: none)");

static bool reserve_only;
module_param(reserve_only, bool, 0644);
MODULE_PARM_DESC(reserve_only, "Pools get memory of the reserve only (default: N)");

/**
 * struct stock - the reserve of one node
 * @lock: protects the other members
 * @clean: cleared blocks, by page.lru
 * @dirty: blocks that came back from pools, by page.lru
 * @clean_count: of @clean
 * @dirty_count: of @dirty, and one more while it is being cleared
 * @target: blocks that there shall be
 */
struct stock {
	spinlock_t lock;	/* protects the rest */
	struct list_head clean;
	struct list_head dirty;
	u32 clean_count;
	u32 dirty_count;
	u32 target;
};

static struct stock *stocks;
static struct task_struct *filler;
static DECLARE_WAIT_QUEUE_HEAD(filler_wait);
static DECLARE_WAIT_QUEUE_HEAD(cleared_wait);
static bool filler_due, blocks_taken;

static void wake_filler(void)
{
	WRITE_ONCE(filler_due, true);
	wake_up(&filler_wait);
}

static u32 surplus(const struct stock *stock)
{
	u32 held = stock->clean_count + stock->dirty_count;

	lockdep_assert_held(&stock->lock);
	return held > stock->target ? held - stock->target : 0;
}

static struct page *pop(struct list_head *blocks)
{
	struct page *page = list_first_entry_or_null(blocks, struct page, lru);

	if (page)
		list_del_init(&page->lru);
	return page;
}

/* Down to the target; dirty ones first, which have still to be cleared. */
static void free_surplus(struct stock *stock)
{
	struct page *page;

	for (;;) {
		page = NULL;
		spin_lock(&stock->lock);
		if (surplus(stock)) {
			page = pop(&stock->dirty);
			if (page) {
				stock->dirty_count--;
			} else {
				page = pop(&stock->clean);
				if (page)
					stock->clean_count--;
			}
		}
		spin_unlock(&stock->lock);
		if (!page)
			return;
		put_page(page);
		cond_resched();
	}
}

static void clear_block(struct page *head)
{
	unsigned long i;

	for (i = 0; i < KVPOOL_BLOCK_PAGES; i++) {
		clear_highpage(head + i);
		if (i % 64 == 63)
			cond_resched();
	}
}

static void add_clean(struct stock *stock, struct page *page, bool was_dirty)
{
	spin_lock(&stock->lock);
	stock->dirty_count -= was_dirty;
	if (stock->clean_count + stock->dirty_count < stock->target) {
		list_add(&page->lru, &stock->clean);
		stock->clean_count++;
		page = NULL;
	}
	spin_unlock(&stock->lock);
	if (page)
		put_page(page);
	if (was_dirty)
		wake_up_all(&cleared_wait);
}

/* 1: there is a clean block more; 0: none is wanted; -ENOMEM: none is to be had. */
static int fill_one(struct stock *stock, int node)
{
	struct page *page;
	bool wanted;

	spin_lock(&stock->lock);
	page = pop(&stock->dirty);
	wanted = stock->clean_count + stock->dirty_count < stock->target;
	spin_unlock(&stock->lock);

	if (page) {
		clear_block(page);
		add_clean(stock, page, true);
		return 1;
	}
	if (!wanted)
		return 0;
	if (kvpool_memory_low())
		return -ENOMEM;
	/* Lightly: who needs memory now shall not wait for who may need it later. */
	page = alloc_pages_node(node, GFP_KERNEL | __GFP_COMP | __GFP_ZERO | __GFP_NOWARN |
				__GFP_NORETRY | __GFP_THISNODE, KVPOOL_BLOCK_ORDER);
	if (!page)
		return -ENOMEM;
	add_clean(stock, page, false);
	return 1;
}

static int fill_stocks(void *unused)
{
	bool missing = false;
	int node, done;

	set_user_nice(current, MAX_NICE);
	while (!kthread_should_stop()) {
		wait_event_idle_timeout(filler_wait, READ_ONCE(filler_due) ||
					READ_ONCE(blocks_taken) || kthread_should_stop(),
					missing ? RETRY_AFTER : MAX_SCHEDULE_TIMEOUT);
		if (xchg(&blocks_taken, false))
			wait_event_idle_timeout(filler_wait, READ_ONCE(filler_due) ||
						kthread_should_stop(), REPLACE_AFTER);
		xchg(&filler_due, false);
		missing = false;
		for_each_node_state(node, N_MEMORY) {
			do {
				done = fill_one(&stocks[node], node);
				cond_resched();
			} while (done > 0 && !kthread_should_stop());
			missing |= done < 0;
		}
	}
	return 0;
}

/* Move clean blocks of one node to the end of a pool's table. */
static void take(struct kvpool_blocks *blocks, u32 limit, int node)
{
	struct stock *stock = &stocks[node];
	struct page *page;
	u32 n;

	do {
		spin_lock(&stock->lock);
		for (n = 0; n < BATCH && blocks->reserved < limit; n++) {
			page = pop(&stock->clean);
			if (!page)
				break;
			stock->clean_count--;
			blocks->pages[blocks->reserved++] = page;
		}
		spin_unlock(&stock->lock);
		cond_resched();
	} while (n == BATCH);
}

/**
 * kvpool_reserve_take - begin a pool with blocks of the reserve
 * @blocks: a pool's, none there yet; its @reserved is set
 * @limit: not more than these
 * @node: first of this node
 * @nodes: then of these, NULL: of no other
 */
void kvpool_reserve_take(struct kvpool_blocks *blocks, u32 limit, int node,
			 const nodemask_t *nodes)
{
	int other;

	take(blocks, limit, node);
	if (nodes)
		for_each_node_mask(other, *nodes)
			take(blocks, limit, other);
	if (blocks->reserved) {
		WRITE_ONCE(blocks_taken, true);
		wake_up(&filler_wait);
	}
}

static bool all_cleared(void)
{
	int node;

	for_each_node_state(node, N_MEMORY)
		if (READ_ONCE(stocks[node].dirty_count))
			return false;
	return true;
}

/**
 * kvpool_reserve_settle - wait until what came back has been cleared
 *
 * Return: 0, or -EINTR when a fatal signal arrived.
 */
int kvpool_reserve_settle(void)
{
	return wait_event_killable(cleared_wait, all_cleared()) ? -EINTR : 0;
}

/**
 * kvpool_reserve_give - take back a block that came from the reserve
 * @page: no CPU mapping of it, and no pin; the caller's reference is consumed
 *
 * It stays in the reserve if that wants it and nobody else holds a reference,
 * and goes to the page allocator otherwise.
 */
void kvpool_reserve_give(struct page *page)
{
	struct stock *stock = &stocks[page_to_nid(page)];

	spin_lock(&stock->lock);
	if (stock->clean_count + stock->dirty_count < stock->target &&
	    page_ref_freeze(page, 1)) {
		page_ref_unfreeze(page, 1);
		list_add_tail(&page->lru, &stock->dirty);
		stock->dirty_count++;
		page = NULL;
	}
	spin_unlock(&stock->lock);
	if (page)
		put_page(page);
	wake_filler();
}

/**
 * kvpool_reserve_fits - can a machine have so much?
 * @bytes: target of a node
 */
bool kvpool_reserve_fits(u64 bytes)
{
	return bytes >> KVPOOL_BLOCK_SHIFT <= U32_MAX / 2;
}

/**
 * kvpool_reserve_set - say how much a node shall hold
 * @node: with memory
 * @bytes: fits; rounded down to whole blocks; what is too much is freed
 */
void kvpool_reserve_set(int node, u64 bytes)
{
	struct stock *stock = &stocks[node];

	spin_lock(&stock->lock);
	stock->target = bytes >> KVPOOL_BLOCK_SHIFT;
	spin_unlock(&stock->lock);
	free_surplus(stock);
	wake_up_all(&cleared_wait);
	wake_filler();
}

/**
 * kvpool_reserve_get - what a node's reserve is now
 * @node: with memory
 * @state: filled in
 */
void kvpool_reserve_get(int node, struct kvpool_reserve_state *state)
{
	struct stock *stock = &stocks[node];

	spin_lock(&stock->lock);
	state->target = (u64)stock->target << KVPOOL_BLOCK_SHIFT;
	state->ready = (u64)stock->clean_count << KVPOOL_BLOCK_SHIFT;
	state->clearing = (u64)stock->dirty_count << KVPOOL_BLOCK_SHIFT;
	spin_unlock(&stock->lock);
}

/**
 * kvpool_reserve_only - may a creation not go beyond the reserve?
 */
bool kvpool_reserve_only(void)
{
	return READ_ONCE(reserve_only);
}

/**
 * kvpool_reserve_set_only - say whether a creation may go beyond the reserve
 * @only: it may not
 */
void kvpool_reserve_set_only(bool only)
{
	WRITE_ONCE(reserve_only, only);
}

/**
 * kvpool_reserve_init - make the stocks, and begin to fill them
 */
int kvpool_reserve_init(void)
{
	unsigned int node;
	int err;

	stocks = kcalloc(nr_node_ids, sizeof(*stocks), GFP_KERNEL);
	if (!stocks)
		return -ENOMEM;
	for (node = 0; node < nr_node_ids; node++) {
		spin_lock_init(&stocks[node].lock);
		INIT_LIST_HEAD(&stocks[node].clean);
		INIT_LIST_HEAD(&stocks[node].dirty);
	}
	filler = kthread_run(fill_stocks, NULL, "kvpool_reserve");
	if (IS_ERR(filler)) {
		err = PTR_ERR(filler);
		kfree(stocks);
		return err;
	}
	for (node = 0; node < reserve_count; node++) {
		if (!reserve[node])
			continue;
		if (node < nr_node_ids && node_state(node, N_MEMORY) &&
		    kvpool_reserve_fits(reserve[node]))
			kvpool_reserve_set(node, reserve[node]);
		else
			pr_warn("kvpool: reserve: %llu bytes of node %u can't be\n",
				reserve[node], node);
	}
	return 0;
}

/**
 * kvpool_reserve_exit - free it; no pool is left
 */
void kvpool_reserve_exit(void)
{
	int node;

	kthread_stop(filler);
	for (node = 0; node < nr_node_ids; node++)
		kvpool_reserve_set(node, 0);
	kfree(stocks);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a pool: compound pages of 2 MiB, unmovable, zeroed, charged
 * to the creator's memory cgroup by the allocator.
 */
#include <linux/gfp.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "internal.h"

/* How many blocks are allocated between two looks at what is left to others. */
#define CHECK_EVERY	16

static struct page *block_alloc(u32 node, bool strict, gfp_t flags)
{
	/*
	 * Not movable, so that a long-term pin has nothing to migrate. An order
	 * this high never starts the OOM killer, and __GFP_RETRY_MAYFAIL keeps
	 * the cgroup's away as well.
	 */
	flags |= __GFP_COMP | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	if (node == KVPOOL_NO_NODE)
		return alloc_pages(GFP_KERNEL | flags, KVPOOL_BLOCK_ORDER);
	if (strict)
		flags |= __GFP_THISNODE;
	return alloc_pages_node(node, GFP_KERNEL | flags, KVPOOL_BLOCK_ORDER);
}

/* Tell a cgroup limit from fragmentation: the first goes away without the charge. */
static void explain_failure(u32 block, u32 count, u32 node, bool strict,
			    struct netlink_ext_ack *extack)
{
	struct page *page = block_alloc(node, strict, 0);

	if (page) {
		put_page(page);
		NL_SET_ERR_MSG_FMT(extack, "memory cgroup limit reached at block %u of %u",
				   block, count);
	} else if (node != KVPOOL_NO_NODE && strict) {
		NL_SET_ERR_MSG_FMT(extack, "no free 2 MiB block on node %u at block %u of %u",
				   node, block, count);
	} else {
		NL_SET_ERR_MSG_FMT(extack, "no free 2 MiB block (fragmented?) at block %u of %u",
				   block, count);
	}
}

/**
 * kvpool_blocks_alloc - allocate all blocks of a pool, or none
 * @blocks: filled in
 * @count: how many
 * @node: NUMA node, or KVPOOL_NO_NODE
 * @strict: take them from @node only
 * @extack: gets the cause of a failure
 *
 * Return: 0, -ENOMEM, or -EINTR when a fatal signal arrived.
 */
int kvpool_blocks_alloc(struct kvpool_blocks *blocks, u32 count, u32 node, bool strict,
			struct netlink_ext_ack *extack)
{
	u32 i;

	/* Page by page: the table of a 1 TiB pool is 4 MiB. */
	blocks->pages = __vmalloc(array_size(count, sizeof(*blocks->pages)),
				  GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!blocks->pages) {
		NL_SET_ERR_MSG_FMT(extack, "no memory for a table of %u blocks", count);
		return -ENOMEM;
	}
	blocks->count = count;
	blocks->held = 0;

	for (i = 0; i < count; i++) {
		int err = 0;

		if (fatal_signal_pending(current)) {
			NL_SET_ERR_MSG_FMT(extack, "killed at block %u of %u", i, count);
			err = -EINTR;
		} else if (i % CHECK_EVERY == 0 && kvpool_memory_low()) {
			NL_SET_ERR_MSG_FMT(extack, "min_available reached at block %u of %u",
					   i, count);
			err = -ENOMEM;
		} else {
			blocks->pages[i] = block_alloc(node, strict, __GFP_ACCOUNT);
			if (!blocks->pages[i]) {
				explain_failure(i, count, node, strict, extack);
				err = -ENOMEM;
			}
		}
		if (err) {
			kvpool_blocks_release(blocks);
			kvpool_blocks_free(blocks);
			return err;
		}
		blocks->held++;
		cond_resched();
	}
	return 0;
}

/**
 * kvpool_block_pinned - does a device hold a block?
 * @blocks: the pool's
 * @block: number of the block
 *
 * The count of a large folio is exact. Caller keeps the block from being
 * released (kvpool_pool.lock).
 */
bool kvpool_block_pinned(const struct kvpool_blocks *blocks, u32 block)
{
	return blocks->pages[block] && folio_maybe_dma_pinned(page_folio(blocks->pages[block]));
}

/**
 * kvpool_blocks_pinned - how many blocks does a device hold?
 * @blocks: the pool's, kept by the caller as for kvpool_block_pinned()
 */
u32 kvpool_blocks_pinned(const struct kvpool_blocks *blocks)
{
	u32 i, pinned = 0;

	for (i = 0; i < blocks->count; i++) {
		pinned += kvpool_block_pinned(blocks, i);
		cond_resched();
	}
	return pinned;
}

/**
 * kvpool_blocks_release - give back every block that no device pins
 * @blocks: the pool's; no new CPU mapping of it can appear
 *
 * Blocks still pinned stay held, so that the pool stays visible and charged.
 * Giving back only drops our reference: whoever else holds one, however
 * short, keeps the page from being handed out again.
 */
void kvpool_blocks_release(struct kvpool_blocks *blocks)
{
	u32 i;

	for (i = 0; i < blocks->count && blocks->held; i++) {
		cond_resched();
		if (!blocks->pages[i] || kvpool_block_pinned(blocks, i))
			continue;
		put_page(blocks->pages[i]);
		WRITE_ONCE(blocks->pages[i], NULL);
		blocks->held--;
	}
}

/**
 * kvpool_blocks_free - free the table
 * @blocks: all released
 */
void kvpool_blocks_free(struct kvpool_blocks *blocks)
{
	WARN_ON_ONCE(blocks->held);
	vfree(blocks->pages);
	blocks->pages = NULL;
	blocks->count = 0;
}

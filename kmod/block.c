// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a pool: compound pages of 2 MiB, unmovable, zeroed, charged
 * to the creator's memory cgroup by the allocator (see allocation.c).
 */
#include <linux/vmalloc.h>

#include "internal.h"

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
 * kvpool_blocks_pinned - how many of some blocks does a device hold?
 * @blocks: the pool's, kept by the caller as for kvpool_block_pinned()
 * @first: first block to look at
 * @count: how many to look at, those past the end included
 */
u32 kvpool_blocks_pinned(const struct kvpool_blocks *blocks, u32 first, u32 count)
{
	u32 i, end = first + min(count, blocks->count - first), pinned = 0;

	for (i = first; i < end; i++) {
		pinned += kvpool_block_pinned(blocks, i);
		cond_resched();
	}
	return pinned;
}

/*
 * The kernel marks a page that failed, and tells neither the block nor its owner.
 */
static bool has_bad_page(struct page *head)
{
	unsigned long i;

	for (i = 0; i < KVPOOL_BLOCK_PAGES; i++)
		if (PageHWPoison(head + i))
			return true;
	return false;
}

static void release(struct page *head, bool reserved)
{
	if (has_bad_page(head)) {
		/* As the kernel keeps such a page: the reference stays, for good. */
		pr_warn_ratelimited("kvpool: a block of node %d has a bad page, and is kept from use\n",
				    page_to_nid(head));
		return;
	}
	if (reserved)
		kvpool_reserve_give(head);
	else
		put_page(head);
}

/**
 * kvpool_blocks_release_range - give back blocks that no device pins
 * @blocks: the pool's; no new CPU mapping of it can appear
 * @first: first block to look at
 * @count: how many to look at, those past the end included
 *
 * Blocks still pinned stay held, so that the pool stays visible and charged.
 * Giving back only drops our reference: whoever else holds one, however
 * short, keeps the page from being handed out again. A block with a bad page is
 * given back to nobody.
 */
void kvpool_blocks_release_range(struct kvpool_blocks *blocks, u32 first, u32 count)
{
	u32 i, end = first + min(count, blocks->count - first);

	for (i = first; i < end && blocks->held; i++) {
		cond_resched();
		if (!blocks->pages[i] || kvpool_block_pinned(blocks, i))
			continue;
		release(blocks->pages[i], i < blocks->reserved);
		WRITE_ONCE(blocks->pages[i], NULL);
		blocks->held--;
	}
}

/**
 * kvpool_blocks_release - give back every block that no device pins
 * @blocks: as for kvpool_blocks_release_range()
 */
void kvpool_blocks_release(struct kvpool_blocks *blocks)
{
	kvpool_blocks_release_range(blocks, 0, blocks->count);
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

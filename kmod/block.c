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
 * kvpool_blocks_release_range - give back blocks that no device pins
 * @blocks: the pool's; no new CPU mapping of it can appear
 * @first: first block to look at
 * @count: how many to look at, those past the end included
 *
 * Blocks still pinned stay held, so that the pool stays visible and charged.
 * Giving back only drops our reference: whoever else holds one, however
 * short, keeps the page from being handed out again.
 */
void kvpool_blocks_release_range(struct kvpool_blocks *blocks, u32 first, u32 count)
{
	u32 i, end = first + min(count, blocks->count - first);

	for (i = first; i < end && blocks->held; i++) {
		cond_resched();
		if (!blocks->pages[i] || kvpool_block_pinned(blocks, i))
			continue;
		if (i < blocks->reserved)
			kvpool_reserve_give(blocks->pages[i]);
		else
			put_page(blocks->pages[i]);
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

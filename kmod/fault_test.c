// SPDX-License-Identifier: GPL-2.0
/* Offsets in pools of sizes that no test machine has: mmap() and faults. */
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/vmalloc.h>

#include "test.h"

struct mm_struct *kvpool_test_mm;

/* Runs in the process that loads the module. */
int kvpool_test_suite_init(struct kunit_suite *suite)
{
	kvpool_test_mm = get_task_mm(current);
	return kvpool_test_mm ? kvpool_reaper_init() : -ESRCH;
}

void kvpool_test_suite_exit(struct kunit_suite *suite)
{
	kvpool_reaper_exit();
	atomic64_set(&kvpool_destroyed, 0);
	mmput(kvpool_test_mm);
}

/* A pool with memory in a few blocks, the first and the last one at least. */
struct sparse {
	struct kvpool_pool *pool;
	struct file file;
	struct vm_area_struct vma;
};

static void give_block(struct kunit *test, struct kvpool_pool *pool, u64 offset)
{
	u64 block = offset >> KVPOOL_BLOCK_SHIFT;

	if (pool->blocks.pages[block])
		return;
	pool->blocks.pages[block] = alloc_pages(GFP_KERNEL | __GFP_COMP, KVPOOL_BLOCK_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, pool->blocks.pages[block]);
	/* What an earlier use of the memory may have left. */
	page_folio(pool->blocks.pages[block])->index = ULONG_MAX;
	pool->blocks.held++;
}

static struct sparse *sparse_new(struct kunit *test, u64 length)
{
	struct sparse *sparse = kunit_kzalloc(test, sizeof(*sparse), GFP_KERNEL);
	struct kvpool_blocks *blocks;

	KUNIT_ASSERT_NOT_NULL(test, sparse);
	sparse->pool = kvpool_test_pool(test, length);
	sparse->pool->life = KVPOOL_LIFE_LIVE;
	sparse->file.private_data = sparse->pool;
	blocks = &sparse->pool->blocks;
	blocks->count = sparse->pool->mapped_length >> KVPOOL_BLOCK_SHIFT;
	blocks->pages = vzalloc(array_size(blocks->count, sizeof(*blocks->pages)));
	KUNIT_ASSERT_NOT_NULL(test, blocks->pages);
	return sparse;
}

static void sparse_end(struct kunit *test, struct sparse *sparse)
{
	kvpool_blocks_release(&sparse->pool->blocks);
	KUNIT_EXPECT_EQ(test, sparse->pool->blocks.held, 0);
	kvpool_pool_put(sparse->pool);
}

/* mmap() as the core calls it, undone at once when it succeeds. */
static int map(struct sparse *sparse, u64 pgoff, u64 pages, unsigned long flags)
{
	struct vm_area_struct *vma = &sparse->vma;
	int err;

	memset(vma, 0, sizeof(*vma));
	vma->vm_mm = kvpool_test_mm;
	vma->vm_start = SZ_2M;
	vma->vm_end = vma->vm_start + (pages << PAGE_SHIFT);
	vma->vm_pgoff = pgoff;
	vma->vm_file = &sparse->file;
	/* On newer kernels the flags of a VMA are only set under its lock. */
	mmap_write_lock(kvpool_test_mm);
	vm_flags_set(vma, flags);
	err = kvpool_pool_fops.mmap(&sparse->file, vma);
	mmap_write_unlock(kvpool_test_mm);
	if (!err)
		vma->vm_ops->close(vma);
	return err;
}

#define SHARED (VM_READ | VM_WRITE | VM_SHARED | VM_MAYREAD | VM_MAYWRITE | VM_MAYEXEC | \
		VM_MAYSHARE)

static void mmap_ends_with_the_pool(struct kunit *test)
{
	static const u64 lengths[] = { SZ_2M, SZ_4G - 1, SZ_4G, SZ_4G + 1, SZ_8G, SZ_1T };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct sparse *sparse = sparse_new(test, lengths[i]);
		u64 pages = sparse->pool->mapped_length >> PAGE_SHIFT;

		KUNIT_EXPECT_EQ(test, pages, DIV_ROUND_UP_ULL(lengths[i], SZ_2M) * 512);
		KUNIT_EXPECT_EQ(test, map(sparse, 0, pages, SHARED), 0);
		KUNIT_EXPECT_EQ(test, map(sparse, pages - 1, 1, SHARED), 0);
		KUNIT_EXPECT_EQ(test, map(sparse, 0, pages + 1, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, map(sparse, 1, pages, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, map(sparse, pages - 1, 2, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, map(sparse, pages, 1, SHARED), -EINVAL);
		/* Where the sum, or its low half, is small again. */
		KUNIT_EXPECT_EQ(test, map(sparse, U64_MAX, 1, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, map(sparse, U64_MAX - 1, 3, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, map(sparse, 1ULL << 32, 1, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, map(sparse, U64_MAX >> PAGE_SHIFT, 1, SHARED), -EINVAL);
		KUNIT_EXPECT_EQ(test, atomic_read(&sparse->pool->mappings), 0);
		sparse_end(test, sparse);
	}
}

static void mmap_is_shared_and_without_execution(struct kunit *test)
{
	struct sparse *sparse = sparse_new(test, SZ_2M);

	KUNIT_EXPECT_EQ(test, map(sparse, 0, 1, SHARED & ~(VM_SHARED | VM_MAYSHARE)), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(sparse, 0, 1, SHARED | VM_EXEC), -EACCES);
	/* A read-only file: VM_SHARED is taken away, VM_MAYSHARE stays. */
	KUNIT_EXPECT_EQ(test, map(sparse, 0, 1, VM_READ | VM_MAYREAD | VM_MAYSHARE), 0);
	KUNIT_EXPECT_EQ(test, map(sparse, 0, 1, SHARED), 0);
	KUNIT_EXPECT_FALSE(test, sparse->vma.vm_flags & VM_MAYEXEC);
	KUNIT_EXPECT_EQ(test, sparse->vma.vm_flags & (VM_DONTEXPAND | VM_DONTDUMP),
			VM_DONTEXPAND | VM_DONTDUMP);
	/* These would keep verbs from pinning. */
	KUNIT_EXPECT_FALSE(test, sparse->vma.vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP));
	sparse->pool->life = KVPOOL_LIFE_DYING;
	KUNIT_EXPECT_EQ(test, map(sparse, 0, 1, SHARED), -ENODEV);
	sparse_end(test, sparse);
}

static void expect_page(struct kunit *test, struct sparse *sparse, u64 offset)
{
	struct page *head = sparse->pool->blocks.pages[offset >> KVPOOL_BLOCK_SHIFT];
	struct vm_fault fault = { .vma = &sparse->vma, .pgoff = offset >> PAGE_SHIFT };
	int count = page_count(head);

	KUNIT_ASSERT_EQ_MSG(test, sparse->vma.vm_ops->fault(&fault), VM_FAULT_LOCKED,
			    "at %llu", offset);
	KUNIT_EXPECT_PTR_EQ_MSG(test, fault.page,
				head + (offset % KVPOOL_BLOCK_SIZE >> PAGE_SHIFT), "at %llu",
				offset);
	KUNIT_EXPECT_TRUE(test, PageLocked(head));
	KUNIT_EXPECT_EQ_MSG(test, page_folio(head)->index << PAGE_SHIFT,
			    round_down(offset, KVPOOL_BLOCK_SIZE), "at %llu", offset);
	KUNIT_EXPECT_EQ(test, page_count(head), count + 1);
	unlock_page(fault.page);
	put_page(fault.page);
}

static void expect_sigbus(struct kunit *test, struct sparse *sparse, u64 pgoff)
{
	struct vm_fault fault = { .vma = &sparse->vma, .pgoff = pgoff };

	KUNIT_EXPECT_EQ_MSG(test, sparse->vma.vm_ops->fault(&fault), VM_FAULT_SIGBUS, "page %llu",
			    pgoff);
	KUNIT_EXPECT_NULL(test, fault.page);
}

/* The block around each edge is a page of its own, so a wrong one shows. */
static void faults_find_their_block(struct kunit *test)
{
	static const u64 lengths[] = { SZ_4G, SZ_4G + SZ_2M, SZ_8G, SZ_1T };
	static const u64 edges[] = { SZ_2M, SZ_2G, SZ_4G, SZ_8G, SZ_1T / 2, SZ_1T };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct sparse *sparse = sparse_new(test, lengths[i]);

		KUNIT_ASSERT_EQ(test, map(sparse, 0, lengths[i] >> PAGE_SHIFT, SHARED), 0);
		give_block(test, sparse->pool, 0);
		expect_page(test, sparse, 0);
		for (k = 0; k < ARRAY_SIZE(edges) && edges[k] <= lengths[i]; k++) {
			give_block(test, sparse->pool, edges[k] - 1);
			expect_page(test, sparse, edges[k] - SZ_2M);
			expect_page(test, sparse, edges[k] - PAGE_SIZE);
			if (edges[k] == lengths[i])
				break;
			give_block(test, sparse->pool, edges[k]);
			expect_page(test, sparse, edges[k]);
			expect_page(test, sparse, edges[k] + PAGE_SIZE);
		}
		expect_sigbus(test, sparse, lengths[i] >> PAGE_SHIFT);
		expect_sigbus(test, sparse, U64_MAX >> PAGE_SHIFT);
		expect_sigbus(test, sparse, 1ULL << (32 + KVPOOL_BLOCK_ORDER));
		expect_sigbus(test, sparse, U64_MAX);
		sparse_end(test, sparse);
	}
}

static void faults_end_with_revocation(struct kunit *test)
{
	struct sparse *sparse = sparse_new(test, SZ_4G);
	struct page *head;

	KUNIT_ASSERT_EQ(test, map(sparse, 0, SZ_4G >> PAGE_SHIFT, SHARED), 0);
	give_block(test, sparse->pool, 0);
	head = sparse->pool->blocks.pages[0];
	expect_page(test, sparse, 0);
	kvpool_pool_revoke(sparse->pool);
	expect_sigbus(test, sparse, 0);
	expect_sigbus(test, sparse, (SZ_4G >> PAGE_SHIFT) - 1);
	KUNIT_EXPECT_EQ(test, page_count(head), 1);
	KUNIT_EXPECT_FALSE(test, PageLocked(head));
	sparse_end(test, sparse);
}

/* The core, which would do so itself, takes it for a page of a file. */
static void faults_on_a_bad_page_fail(struct kunit *test)
{
	struct sparse *sparse = sparse_new(test, SZ_4M);
	struct vm_fault fault = { .vma = &sparse->vma, .pgoff = 3 };
	struct page *head;

	KUNIT_ASSERT_EQ(test, map(sparse, 0, SZ_4M >> PAGE_SHIFT, SHARED), 0);
	give_block(test, sparse->pool, 0);
	head = sparse->pool->blocks.pages[0];
	SetPageHWPoison(head + 3);
	KUNIT_EXPECT_EQ(test, sparse->vma.vm_ops->fault(&fault), VM_FAULT_HWPOISON);
	KUNIT_EXPECT_NULL(test, fault.page);
	KUNIT_EXPECT_EQ(test, page_count(head), 1);
	KUNIT_EXPECT_FALSE(test, PageLocked(head));
	expect_page(test, sparse, 2 * PAGE_SIZE);
	expect_page(test, sparse, 4 * PAGE_SIZE);
	/* As long as it is bad, it is not given back. */
	kvpool_blocks_release(&sparse->pool->blocks);
	KUNIT_EXPECT_EQ(test, sparse->pool->blocks.held, 0);
	KUNIT_EXPECT_EQ(test, page_count(head), 1);
	ClearPageHWPoison(head + 3);
	put_page(head);
	sparse_end(test, sparse);
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE(mmap_ends_with_the_pool),
	KUNIT_CASE(mmap_is_shared_and_without_execution),
	KUNIT_CASE(faults_find_their_block),
	KUNIT_CASE(faults_end_with_revocation),
	KUNIT_CASE(faults_on_a_bad_page_fail),
	{}
};

static struct kunit_suite fault_suite = {
	.name		= "kvpool_fault",
	.suite_init	= kvpool_test_suite_init,
	.suite_exit	= kvpool_test_suite_exit,
	.test_cases	= fault_cases,
};

kunit_test_suite(fault_suite);

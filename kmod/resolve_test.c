// SPDX-License-Identifier: GPL-2.0
/* Resolve over layouts of mappings, in the address space of whoever loads the module. */
#include <linux/file.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "test.h"

#define ROOM	(16 * (u64)SZ_2M)
#define COUNT	40

/*
 * ROOM bytes of address space, aligned to a block, with unmapped space before
 * and behind, and an array that resolve writes to.
 */
struct layout {
	u64 base, array;
	struct kvpool_pool *pool[2];
	struct file *file[2];
	struct file *read_only;
	struct kvpool_segment segments[COUNT];
	struct kvpool_resolve resolve;
};

static u64 map(struct file *file, u64 addr, u64 length, unsigned long prot, u64 offset)
{
	unsigned long flags = addr ? MAP_FIXED : 0;

	flags |= file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	return vm_mmap(file, addr, length, prot, flags, offset);
}

/*
 * No assertions below: one that fails ends the thread, which would take the
 * address space with it.
 */
static int open_pools(struct kunit *test, struct layout *layout)
{
	static const u64 lengths[] = { SZ_1T, SZ_4G + 1 };
	u32 i;

	for (i = 0; i < 2; i++) {
		layout->pool[i] = kvpool_test_pool(test, lengths[i]);
		kvpool_test_publish(test, layout->pool[i]);
		layout->file[i] = kvpool_file_open(layout->pool[i], true);
		if (IS_ERR(layout->file[i]))
			return PTR_ERR(layout->file[i]);
	}
	layout->read_only = kvpool_file_open(layout->pool[0], false);
	return PTR_ERR_OR_ZERO(layout->read_only);
}

static int layout_init(struct kunit *test)
{
	struct layout *layout = kunit_kzalloc(test, sizeof(*layout), GFP_KERNEL);
	u64 space;
	int err;

	if (!layout)
		return -ENOMEM;
	err = open_pools(test, layout);
	if (err)
		return err;
	kthread_use_mm(kvpool_test_mm);
	test->priv = layout;
	layout->array = map(NULL, 0, PAGE_ALIGN(sizeof(layout->segments)),
			    PROT_READ | PROT_WRITE, 0);
	space = map(NULL, 0, ROOM + 3 * SZ_2M, PROT_NONE, 0);
	if (IS_ERR_VALUE(layout->array) || IS_ERR_VALUE(space))
		return -ENOMEM;
	vm_munmap(space, ROOM + 3 * SZ_2M);
	layout->base = round_up(space, SZ_2M) + SZ_2M;
	return 0;
}

static void layout_exit(struct kunit *test)
{
	struct layout *layout = test->priv;
	u32 i;

	/* Without its objects a case has failed anyway. */
	if (!layout)
		return;
	vm_munmap(layout->base, ROOM);
	vm_munmap(layout->array, PAGE_ALIGN(sizeof(layout->segments)));
	kthread_unuse_mm(kvpool_test_mm);
	fput(layout->read_only);
	for (i = 0; i < 2; i++)
		fput(layout->file[i]);
	/* A kernel thread's last fput() is done later. */
	flush_delayed_fput();
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&layout->pool[i]->mappings), 0);
		KUNIT_EXPECT_EQ(test, layout->pool[i]->files, 0);
		if (layout->pool[i]->life == KVPOOL_LIFE_LIVE)
			kvpool_pool_destroy(layout->pool[i], false, NULL);
		kvpool_pool_put(layout->pool[i]);
	}
}

static int resolve(struct layout *layout, u64 addr, u64 length, u32 count)
{
	int err;

	layout->resolve = (struct kvpool_resolve){
		.size = sizeof(layout->resolve),
		.addr = addr,
		.length = length,
		.segments = layout->array,
		.count = count,
	};
	err = kvpool_resolve(&layout->resolve);
	if (!err && copy_from_user(layout->segments, u64_to_user_ptr(layout->array),
				   layout->resolve.count * sizeof(*layout->segments)))
		err = -EFAULT;
	return err;
}

/* What a segment shall be; `pool` is 1 or 2, and 0 for what is none. */
struct expected {
	u64 addr, length;
	u32 kind, flags, pool;
	u64 offset;
};

#define RW	(KVPOOL_SEGMENT_READ | KVPOOL_SEGMENT_WRITE)

static void expect(struct kunit *test, u64 addr, u64 length, const struct expected *wanted,
		   u32 count)
{
	struct layout *layout = test->priv;
	u32 i;

	KUNIT_EXPECT_EQ(test, resolve(layout, layout->base + addr, length, COUNT), 0);
	KUNIT_EXPECT_EQ(test, layout->resolve.count, count);
	KUNIT_EXPECT_EQ(test, layout->resolve.resolved, length);
	for (i = 0; i < min(count, layout->resolve.count); i++) {
		const struct kvpool_segment *got = &layout->segments[i];
		const struct kvpool_pool *pool = wanted[i].pool ?
						 layout->pool[wanted[i].pool - 1] : NULL;

		KUNIT_EXPECT_EQ_MSG(test, got->addr, layout->base + wanted[i].addr,
				    "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->length, wanted[i].length, "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->kind, wanted[i].kind, "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->flags, wanted[i].flags, "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->offset, wanted[i].offset, "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->id, pool ? pool->id : 0, "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->generation, pool ? pool->generation : 0,
				    "segment %u", i);
		KUNIT_EXPECT_EQ_MSG(test, got->pool_length, pool ? pool->length : 0,
				    "segment %u", i);
		KUNIT_EXPECT_STREQ_MSG(test, (const char *)got->domain, pool ? "test" : "",
				       "segment %u", i);
		KUNIT_EXPECT_EQ(test, got->reserved, 0);
	}
}

#define EXPECT(addr, length, ...) do {							\
	const struct expected wanted_[] = { __VA_ARGS__ };				\
											\
	expect(test, addr, length, wanted_, ARRAY_SIZE(wanted_));			\
} while (0)

static void put(struct kunit *test, struct file *file, u64 addr, u64 length, unsigned long prot,
		u64 offset)
{
	struct layout *layout = test->priv;

	KUNIT_EXPECT_EQ(test, map(file, layout->base + addr, length, prot, offset),
			layout->base + addr);
}

#define PROT_RW	(PROT_READ | PROT_WRITE)
#define M2	((u64)SZ_2M)
#define M4	((u64)SZ_4M)

static void offsets_beyond_32_bits(struct kunit *test)
{
	static const u64 edges[] = { SZ_4G, SZ_8G, SZ_1T / 2, SZ_1T - SZ_2M };
	struct layout *layout = test->priv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(edges); i++) {
		put(test, layout->file[0], 0, M4, PROT_RW, edges[i] - M2);
		EXPECT(0, M4, { 0, M4, KVPOOL_SEGMENT_POOL, RW, 1, edges[i] - M2 });
		EXPECT(M2 - 1, 2, { M2 - 1, 2, KVPOOL_SEGMENT_POOL, RW, 1, edges[i] - 1 });
		EXPECT(M2, 1, { M2, 1, KVPOOL_SEGMENT_POOL, RW, 1, edges[i] });
	}
	/* The allocated bytes beyond the length are the pool's too. */
	put(test, layout->file[1], 0, M2, PROT_RW, SZ_4G);
	EXPECT(0, M2, { 0, M2, KVPOOL_SEGMENT_POOL, RW, 2, SZ_4G });
}

static void what_continues_is_one(struct kunit *test)
{
	struct layout *layout = test->priv;

	/* Two mappings, and one of them again in two. */
	put(test, layout->file[0], 0, M2, PROT_RW, SZ_4G - M2);
	put(test, layout->file[0], M2, M4, PROT_RW, SZ_4G);
	EXPECT(0, 3 * M2, { 0, 3 * M2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G - M2 });
	put(test, layout->file[0], M2 + PAGE_SIZE, PAGE_SIZE, PROT_RW, SZ_4G + PAGE_SIZE);
	EXPECT(1, 3 * M2 - 2, { 1, 3 * M2 - 2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G - M2 + 1 });
	/* From a read-only file the pool is the same, and what may be done is not. */
	put(test, layout->read_only, M2, M2, PROT_READ, SZ_4G);
	EXPECT(0, 3 * M2, { 0, M2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G - M2 },
	       { M2, M2, KVPOOL_SEGMENT_POOL, KVPOOL_SEGMENT_READ, 1, SZ_4G },
	       { 2 * M2, M2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G + M2 });
}

static void what_does_not_continue_is_two(struct kunit *test)
{
	struct layout *layout = test->priv;

	/* In the wrong order, twice the same, with a step, and where another pool goes on. */
	put(test, layout->file[0], 0, M2, PROT_RW, SZ_4G);
	put(test, layout->file[0], M2, M2, PROT_RW, SZ_4G - M2);
	put(test, layout->file[0], 2 * M2, M2, PROT_RW, SZ_4G - M2);
	put(test, layout->file[0], 3 * M2, M2, PROT_RW, M2 + PAGE_SIZE);
	put(test, layout->file[1], 4 * M2, M2, PROT_RW, 2 * M2 + PAGE_SIZE);
	EXPECT(0, 5 * M2, { 0, M2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G },
	       { M2, M2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G - M2 },
	       { 2 * M2, M2, KVPOOL_SEGMENT_POOL, RW, 1, SZ_4G - M2 },
	       { 3 * M2, M2, KVPOOL_SEGMENT_POOL, RW, 1, M2 + PAGE_SIZE },
	       { 4 * M2, M2, KVPOOL_SEGMENT_POOL, RW, 2, 2 * M2 + PAGE_SIZE });
}

static void holes_are_told(struct kunit *test)
{
	struct layout *layout = test->priv;

	put(test, layout->file[0], M2, 3 * M2, PROT_RW, SZ_8G);
	vm_munmap(layout->base + 2 * M2 + PAGE_SIZE, PAGE_SIZE);
	EXPECT(0, 5 * M2, { 0, M2, KVPOOL_SEGMENT_UNMAPPED, 0, 0, 0 },
	       { M2, M2 + PAGE_SIZE, KVPOOL_SEGMENT_POOL, RW, 1, SZ_8G },
	       { 2 * M2 + PAGE_SIZE, PAGE_SIZE, KVPOOL_SEGMENT_UNMAPPED, 0, 0, 0 },
	       { 2 * M2 + 2 * PAGE_SIZE, 2 * M2 - 2 * PAGE_SIZE, KVPOOL_SEGMENT_POOL, RW, 1,
		 SZ_8G + M2 + 2 * PAGE_SIZE },
	       { 4 * M2, M2, KVPOOL_SEGMENT_UNMAPPED, 0, 0, 0 });
	/* In the middle of a hole, and of a page. */
	EXPECT(M2 - 5, 4, { M2 - 5, 4, KVPOOL_SEGMENT_UNMAPPED, 0, 0, 0 });
	EXPECT(2 * M2 + PAGE_SIZE - 1, 2,
	       { 2 * M2 + PAGE_SIZE - 1, 1, KVPOOL_SEGMENT_POOL, RW, 1,
		 SZ_8G + M2 + PAGE_SIZE - 1 },
	       { 2 * M2 + PAGE_SIZE, 1, KVPOOL_SEGMENT_UNMAPPED, 0, 0, 0 });
}

static void memory_between_pools(struct kunit *test)
{
	struct layout *layout = test->priv;

	put(test, layout->file[0], 0, M2, PROT_RW, 0);
	put(test, NULL, M2, M2, PROT_RW, 0);
	put(test, NULL, 2 * M2, M2, PROT_NONE, 0);
	put(test, layout->file[1], 3 * M2, M2, PROT_READ, SZ_4G);
	EXPECT(0, 4 * M2, { 0, M2, KVPOOL_SEGMENT_POOL, RW, 1, 0 },
	       { M2, M2, KVPOOL_SEGMENT_ANON, RW, 0, 0 },
	       { 2 * M2, M2, KVPOOL_SEGMENT_ANON, 0, 0, 0 },
	       { 3 * M2, M2, KVPOOL_SEGMENT_POOL, KVPOOL_SEGMENT_READ, 2, SZ_4G });
}

static void a_destroyed_pool_is_stale(struct kunit *test)
{
	struct layout *layout = test->priv;

	put(test, layout->file[0], 0, M2, PROT_RW, 0);
	put(test, layout->file[1], M2, M2, PROT_RW, 0);
	KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(layout->pool[0], true, NULL), 0);
	EXPECT(0, 2 * M2, { 0, M2, KVPOOL_SEGMENT_POOL, RW | KVPOOL_SEGMENT_STALE, 1, 0 },
	       { M2, M2, KVPOOL_SEGMENT_POOL, RW, 2, 0 });
}

static void an_array_that_is_too_small(struct kunit *test)
{
	struct layout *layout = test->priv;
	u32 i;

	/* Every other page of the pool: no two continue each other. */
	for (i = 0; i < COUNT; i++)
		put(test, layout->file[0], i * PAGE_SIZE, PAGE_SIZE, PROT_RW, 2 * i * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, resolve(layout, layout->base, COUNT * PAGE_SIZE, 1), 0);
	KUNIT_EXPECT_EQ(test, layout->resolve.count, 1);
	KUNIT_EXPECT_EQ(test, layout->resolve.resolved, PAGE_SIZE);
	/* The kernel's own limit. */
	KUNIT_EXPECT_EQ(test, resolve(layout, layout->base, COUNT * PAGE_SIZE, COUNT), 0);
	KUNIT_EXPECT_EQ(test, layout->resolve.count, 32);
	KUNIT_EXPECT_EQ(test, layout->resolve.resolved, 32 * PAGE_SIZE);
	/* What continues the last segment needs no entry of its own. */
	put(test, layout->file[0], PAGE_SIZE, PAGE_SIZE, PROT_RW, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, resolve(layout, layout->base, COUNT * PAGE_SIZE, 1), 0);
	KUNIT_EXPECT_EQ(test, layout->resolve.resolved, 2 * PAGE_SIZE);
}

static void the_whole_address_space(struct kunit *test)
{
	struct layout *layout = test->priv;
	u64 addr = 0, end = U64_MAX;
	u32 pools = 0, i;

	put(test, layout->file[0], 0, ROOM, PROT_RW, SZ_1T - ROOM);
	while (addr < end) {
		if (resolve(layout, addr, end - addr, COUNT) || !layout->resolve.resolved)
			break;
		for (i = 0; i < layout->resolve.count; i++) {
			KUNIT_EXPECT_EQ(test, layout->segments[i].addr, addr);
			addr += layout->segments[i].length;
			if (layout->segments[i].kind != KVPOOL_SEGMENT_POOL)
				continue;
			pools++;
			KUNIT_EXPECT_EQ(test, layout->segments[i].addr, layout->base);
			KUNIT_EXPECT_EQ(test, layout->segments[i].length, ROOM);
		}
	}
	KUNIT_EXPECT_EQ(test, addr, end);
	KUNIT_EXPECT_EQ(test, pools, 1);

	KUNIT_EXPECT_EQ(test, resolve(layout, 1, U64_MAX, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, resolve(layout, U64_MAX, 1, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, resolve(layout, layout->base, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, resolve(layout, layout->base, 1, 0), -EINVAL);
}

static struct kunit_case resolve_cases[] = {
	KUNIT_CASE(offsets_beyond_32_bits),
	KUNIT_CASE(what_continues_is_one),
	KUNIT_CASE(what_does_not_continue_is_two),
	KUNIT_CASE(holes_are_told),
	KUNIT_CASE(memory_between_pools),
	KUNIT_CASE(a_destroyed_pool_is_stale),
	KUNIT_CASE(an_array_that_is_too_small),
	KUNIT_CASE(the_whole_address_space),
	{}
};

static struct kunit_suite resolve_suite = {
	.name		= "kvpool_resolve",
	.init		= layout_init,
	.exit		= layout_exit,
	.suite_init	= kvpool_test_suite_init,
	.suite_exit	= kvpool_test_suite_exit,
	.test_cases	= resolve_cases,
};

kunit_test_suite(resolve_suite);

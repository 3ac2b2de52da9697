// SPDX-License-Identifier: GPL-2.0
/* Many pools: asking for all of them, and making one more. Memory that goes with a pool. */
#include <malloc.h>

#include "memory.h"

#define MOST 1000

static struct kvp_ctx *ctx;
static struct kvp_pool *one;
static uint32_t seen;

static int count_one(const struct kvp_pool_info *info, void *arg)
{
	(void)info;
	(void)arg;
	seen++;
	return 0;
}

static void list_all(void)
{
	seen = 0;
	RETURNS(0, kvp_pool_each(ctx, count_one, NULL, &error));
}

static void create_one(void)
{
	one = new_pool(ctx, BLOCK);
}

static void drop_one(void)
{
	end_pool(ctx, one);
}

static void among(uint32_t count)
{
	const struct side listing = { "kvp_pool_each", NULL, list_all, NULL };
	const struct side creating = { "kvp_pool_create of a block", NULL, create_one, drop_one };

	ctx = open_ctx();
	for (uint32_t i = 0; i < count; i++)
		new_pool(ctx, BLOCK);
	bench_row("list all pools, pools", count, &listing, 1, 9);
	EQUAL(seen, count);
	bench_row("create one more, pools", count, &creating, 1, 9);
}

static void pools_1(void)
{
	among(1);
}

static void pools_10(void)
{
	among(10);
}

static void pools_100(void)
{
	among(100);
}

static void pools_1000(void)
{
	among(MOST);
}

/* ------------------------------------------------------- memory beside the pool */

/* What the kernel has free, with what processors keep on their lists. */
static long free_kib(void)
{
	EQUAL(shell("sync; echo 3 >/proc/sys/vm/drop_caches"), 0);
	return shell_number("awk '$1 == \"MemFree:\" { sum += $2 } $1 == \"count:\" { sum += 4 * $2 }"
			    " END { print sum }' /proc/meminfo /proc/zoneinfo");
}

static void report(uint64_t size, const char *side, long kib, uint64_t memory)
{
	const double beside = (double)kib * 1024 - (double)memory;

	bench_count("memory of the kernel beside, bytes", size, side, "bytes", beside);
}

static void beside_once(uint64_t size)
{
	struct kvp_pool *pool;
	size_t heap;
	void *addr;
	long before;

	before = free_kib();
	heap = mallinfo2().uordblks;
	pool = new_pool(ctx, size);
	addr = map_pool(pool);
	bench_count("memory of the library, bytes", size, "pool, mapped", "bytes",
		    (double)(mallinfo2().uordblks - heap));
	touch(addr, size);
	report(size, "pool", before - free_kib(), size);
	end_pool(ctx, pool);

	hugetlb_reserve(size);
	before = free_kib();
	addr = hugetlb_map(size, MAP_POPULATE);
	/* The pages themselves are not free before. */
	report(size, "hugetlb memfd", before - free_kib(), 0);
	unmap(addr, size);
	hugetlb_reserve(0);

	before = free_kib();
	addr = shm_map(size, MAP_POPULATE);
	report(size, "4 KiB shm", before - free_kib(), size);
	unmap(addr, size);
}

static void beside(void)
{
	const uint64_t size = bench_size(1024, 128) * MIB;

	ctx = open_ctx();
	fill_reserve(ctx, 0);
	/* Caches of the first time. */
	end_pool(ctx, new_pool(ctx, size));
	for (unsigned int round = 0; round < bench_size(5, 1); round++)
		beside_once(size);
}

static void registration(void)
{
	struct kvp_registration *made;
	struct kvp_registrar *registrar;
	struct kvp_buffer buffers[1000];
	struct kvp_list *list;
	struct ibv_pd *pd = rdma_pd("rxe0");
	size_t heap;
	char *base;

	ctx = open_ctx();
	base = map_pool(new_pool(ctx, 1000 * 65536));
	for (uint32_t i = 0; i < 1000; i++)
		buffers[i] = (struct kvp_buffer){ .addr = base + i * 65536, .length = 65536 };
	list = list_of(buffers, 1000);
	RETURNS(0, kvp_registrar_verbs(&pd, 1, RDMA_ACCESS, &registrar, &error));
	heap = mallinfo2().uordblks + mallinfo2().hblkhd;
	made = register_list(ctx, "bench", list, registrar);
	bench_count("memory of the library, buffers", 1000, "registration", "bytes",
		    (double)(mallinfo2().uordblks + mallinfo2().hblkhd - heap));
	unregister(ctx, made);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
}

int main(void)
{
	RUN(pools_1);
	RUN(pools_10);
	RUN(pools_100);
	if (bench_size(1, 0))
		RUN(pools_1000);
	RUN(beside);
	RUN(registration);
	return cases_end();
}

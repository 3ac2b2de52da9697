// SPDX-License-Identifier: GPL-2.0
/*
 * Getting memory and mapping it, up to where each block is in the page tables; and
 * what touching it costs then.
 */
#include <sys/resource.h>

#include "memory.h"

static struct kvp_ctx *ctx;
static struct kvp_pool *pool;
static void *addr;
static uint64_t size;

/*
 * What MAP_POPULATE does for the others: to a shared mapping it is a read, which here
 * makes entries that can be written to. Without it the first touch of each block would.
 */
static void create_pool(void)
{
	pool = new_pool(ctx, size);
	addr = map_pool(pool);
	CHECK(!madvise(addr, size, MADV_POPULATE_READ));
}

static void create_hugetlb(void)
{
	addr = hugetlb_map(size, MAP_POPULATE);
}

static void create_shm(void)
{
	addr = shm_map(size, MAP_POPULATE);
}

static void drop_pool(void)
{
	end_pool(ctx, pool);
}

static void drop(void)
{
	unmap(addr, size);
}

static void without_reserve(void)
{
	fill_reserve(ctx, 0);
}

/* What went back is cleared before the next turn, which that would disturb. */
static void drop_reserved(void)
{
	drop_pool();
	await_reserve(ctx, size);
}

static void creating(uint64_t length)
{
	const struct side reserved[] = {
		{ "pool", NULL, create_pool, drop_reserved },
		{ "hugetlb memfd, MAP_POPULATE", NULL, create_hugetlb, drop },
	};
	const struct side cleared[] = {
		{ "pool", without_reserve, create_pool, drop_pool },
		{ "hugetlb memfd, MAP_POPULATE", NULL, create_hugetlb, drop },
		{ "4 KiB shm, MAP_POPULATE", NULL, create_shm, drop },
	};

	ctx = open_ctx();
	size = length;
	hugetlb_reserve(size);
	fill_reserve(ctx, size);
	bench_row("create and map, from the reserve, bytes", size, reserved, 2, 5);
	without_reserve();
	/* Of much memory the last takes too long. */
	bench_row("create and map, empty reserve, bytes", size, cleared,
		  size > 1024 * MIB ? 2 : 3, 5);
	hugetlb_reserve(0);
}

/* ------------------------------------------------------------------- touching */

static long faults(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt + usage.ru_majflt;
}

static void map_a_pool(void)
{
	pool = new_pool(ctx, size);
	addr = map_pool(pool);
}

static void map_hugetlb(void)
{
	addr = hugetlb_map(size, 0);
}

static void map_shm(void)
{
	addr = shm_map(size, 0);
}

static long touch_counted(void)
{
	const long before = faults();

	touch(addr, size);
	return faults() - before;
}

static void touch_all(void)
{
	touch(addr, size);
}

static void touching(uint64_t length)
{
	const struct side sides[] = {
		{ "pool", map_a_pool, touch_all, drop_pool },
		{ "hugetlb memfd", map_hugetlb, touch_all, drop },
		{ "4 KiB shm", map_shm, touch_all, drop },
	};
	const long blocks = (long)(length / BLOCK);
	long count[3];

	ctx = open_ctx();
	size = length;
	hugetlb_reserve(size);
	for (int i = 0; i < 3; i++) {
		sides[i].prepare();
		count[i] = touch_counted();
		sides[i].clean();
		bench_count("faults to touch, bytes", size, sides[i].name, "faults",
			    (double)count[i]);
	}
	/* One a block, as hugetlb; the stack of whoever counts may grow meanwhile. */
	CHECK(count[0] >= blocks && count[0] <= blocks + 2);
	CHECK(count[1] >= blocks && count[1] <= blocks + 2);
	/* What the rows of creation measure leaves none. */
	create_pool();
	CHECK(touch_counted() <= 2);
	drop_pool();
	bench_row("touch, bytes", size, sides, 3, 5);
	hugetlb_reserve(0);
}

static void create_64_mib(void)
{
	creating(64 * MIB);
}

static void create_256_mib(void)
{
	creating(bench_size(256, 128) * MIB);
}

static void create_1_gib(void)
{
	creating(1024 * MIB);
}

static void create_2_gib(void)
{
	creating(2048 * MIB);
}

static void touch_every_page(void)
{
	touching(bench_size(1024, 128) * MIB);
}

int main(void)
{
	RUN(create_64_mib);
	RUN(create_256_mib);
	if (bench_size(1, 0)) {
		RUN(create_1_gib);
		RUN(create_2_gib);
	}
	RUN(touch_every_page);
	return cases_end();
}

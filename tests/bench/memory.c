// SPDX-License-Identifier: GPL-2.0
#include "memory.h"

#include <linux/memfd.h>

void hugetlb_reserve(uint64_t size)
{
	const long pages = (long)(size / BLOCK);

	EQUAL(shell("echo %ld >/proc/sys/vm/nr_hugepages", pages), 0);
	EQUAL(shell_number("cat /proc/sys/vm/nr_hugepages"), pages);
}

static void *map(int fd, uint64_t size, int flags)
{
	void *addr;

	CHECK(fd >= 0);
	CHECK(!ftruncate(fd, (off_t)size));
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	CHECK(addr != MAP_FAILED);
	close(fd);
	return addr;
}

void *hugetlb_map(uint64_t size, int flags)
{
	return map(memfd_create("bench", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB), size, flags);
}

void *shm_map(uint64_t size, int flags)
{
	return map(memfd_create("bench", MFD_CLOEXEC), size, flags);
}

void *anon_map(uint64_t size, int flags)
{
	void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			  -1, 0);

	CHECK(addr != MAP_FAILED);
	CHECK(!madvise(addr, size, MADV_NOHUGEPAGE));
	return addr;
}

void unmap(void *addr, uint64_t size)
{
	CHECK(!munmap(addr, size));
}

void touch(void *addr, uint64_t size)
{
	volatile char *at = addr;

	for (uint64_t i = 0; i < size; i += 4096)
		at[i] = 1;
}

struct kvp_pool *new_pool(struct kvp_ctx *ctx, uint64_t size)
{
	return make_pool(ctx, "bench", size);
}

void await_pools(struct kvp_ctx *ctx)
{
	UNTIL(!stats(ctx).dying);
}

void end_pool(struct kvp_ctx *ctx, struct kvp_pool *pool)
{
	const uint64_t generation = kvp_pool_generation(pool);
	const uint32_t id = kvp_pool_id(pool);

	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, id, generation, 0, &error));
	await_pools(ctx);
}

static uint64_t ready(struct kvp_ctx *ctx)
{
	struct kvp_reserve *reserve = NULL;
	uint64_t bytes = 0;

	RETURNS(0, kvp_reserve_get(ctx, &reserve, &error));
	for (size_t i = 0; i < reserve->node_count; i++)
		bytes += reserve->nodes[i].ready;
	kvp_reserve_free(reserve);
	return bytes;
}

void await_reserve(struct kvp_ctx *ctx, uint64_t size)
{
	UNTIL(ready(ctx) >= size);
}

void fill_reserve(struct kvp_ctx *ctx, uint64_t size)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);

	/* Root needs no quota. */
	change.mask = KVP_RESERVE_SET_TARGET;
	change.target = size;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
	await_reserve(ctx, size);
}

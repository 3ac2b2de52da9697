// SPDX-License-Identifier: GPL-2.0
/* Pools that are destroyed while they are in use, by mappings and by devices. */
#include "ref.h"

#include <linux/kernel-page-flags.h>

#include <infiniband/verbs.h>
#include <pthread.h>

#define LENGTH REF_LENGTH

static int count_stale(const struct kvp_segment *segment, void *arg)
{
	EQUAL(segment->kind, KVP_KIND_POOL);
	*(int *)arg += segment->stale;
	return 0;
}

static void destroy_in_use(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = ref_make(ctx, "busy", KVP_LIFETIME_PERSISTENT);
	struct ref ref = ref_of(pool);
	char *addr = ref_map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
	uint64_t destroyed = stats(ctx).destroyed;
	struct ibv_mr *mr;
	int stale = 0, ends[2];

	CHECK(!pipe(ends));
	fill(addr, LENGTH, 9);
	EQUAL(ref_destroy(ctx, ref, 0), -EBUSY);
	SAYS("1 mappings, 0 pinned");
	mr = pin(addr + 2 * BLOCK, 2 * BLOCK);
	CHECK(mr);
	EQUAL(ref_destroy(ctx, ref, 0), -EBUSY);
	SAYS("1 mappings, 2 pinned");
	CHECK(!munmap(addr, LENGTH));
	EQUAL(ref_destroy(ctx, ref, 0), -EBUSY);
	SAYS("0 mappings, 2 pinned");
	addr = ref_map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
	CHECK(filled(addr, LENGTH, 9));

	EQUAL(ref_destroy(ctx, ref, 1), 0);
	for (size_t offset = 0; offset < LENGTH; offset += 4096)
		CHECK(!can_read(addr + offset));
	EQUAL(ref_destroy(ctx, ref, 1), -ENODEV);
	CHECK(mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, kvp_pool_fd(pool), 0) == MAP_FAILED &&
	      errno == ENODEV);
	RETURNS(0, kvp_resolve(ctx, addr, LENGTH, count_stale, &stale, &error));
	EQUAL(stale, 1);
	CHECK(write(ends[1], addr, 1) == -1 && errno == EFAULT);
	CHECK(access("/dev/kvpool/busy", F_OK) == -1);

	/* Two blocks went at once, two go when the device lets them go. */
	EQUAL(ref_find(ctx, ref).state, KVP_STATE_DYING);
	EQUAL(ref_find(ctx, ref).pinned_blocks, 2);
	EQUAL(stats(ctx).dying, 1);
	EQUAL(stats(ctx).destroyed, destroyed);
	unpin(mr);
	UNTIL(ref_gone(ctx, ref));
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(stats(ctx).destroyed, destroyed + 1);
	/* What is left of it is a mapping of nothing. */
	CHECK(!can_read(addr));
	CHECK(!munmap(addr, LENGTH));
	kvp_pool_close(pool);
	kvp_close(ctx);
}

#define FAULTERS 4

static char *faulted;
static int destroyed_now;	/* atomic: destroy has returned */

/* Drops its page table entries again and again, so that every read is a fault. */
static void *faulter(void *arg)
{
	char *mine = faulted + (uintptr_t)arg % (LENGTH / BLOCK) * BLOCK;
	uintptr_t late = 0;

	while (can_read(mine)) {
		late += (uintptr_t)__atomic_load_n(&destroyed_now, __ATOMIC_SEQ_CST);
		/* One read may have begun before; a second one has not. */
		if (late > 1)
			break;
		madvise(mine, BLOCK, MADV_DONTNEED);
	}
	return (void *)late;
}

static void destroyed_while_threads_fault(void)
{
	struct kvp_ctx *ctx = open_ctx();

	for (int round = 0; round < 30; round++) {
		struct kvp_pool *pool = ref_make(ctx, "faulting", KVP_LIFETIME_OWNER);
		struct ref ref = ref_of(pool);
		pthread_t threads[FAULTERS];
		void *late;

		faulted = ref_map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
		__atomic_store_n(&destroyed_now, 0, __ATOMIC_SEQ_CST);
		for (uintptr_t i = 0; i < FAULTERS; i++)
			CHECK(!pthread_create(&threads[i], NULL, faulter, (void *)i));
		usleep((useconds_t)round * 300);
		EQUAL(ref_destroy(ctx, ref, 1), 0);
		__atomic_store_n(&destroyed_now, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < FAULTERS; i++) {
			CHECK(!pthread_join(threads[i], &late));
			if ((uintptr_t)late > 1)
				FAIL("round %d: a thread reads what was destroyed", round);
		}
		CHECK(ref_gone(ctx, ref));
		CHECK(!munmap(faulted, LENGTH));
		kvp_pool_close(pool);
	}
}

/* Frame number of the page at an address; root may see it. */
static uint64_t frame(const void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	CHECK(can_read(addr));
	CHECK(pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)addr / 4096 * 8)) == 8);
	close(fd);
	CHECK(entry >> 63);
	return entry & (((uint64_t)1 << 55) - 1);
}

/* How many of these frames are heads of compound pages, as blocks are and free pages not. */
static uint64_t heads(const uint64_t *frames)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t flags, count = 0;

	for (size_t i = 0; i < LENGTH / BLOCK; i++) {
		CHECK(pread(fd, &flags, sizeof(flags), (off_t)(frames[i] * 8)) == 8);
		count += flags >> KPF_COMPOUND_HEAD & 1;
	}
	close(fd);
	return count;
}

/* How many of these frames a new pool of this length gets. */
static uint64_t seen_again(struct kvp_ctx *ctx, const uint64_t *frames, uint64_t length)
{
	struct kvp_pool *pool = make_pool(ctx, "kv", length);
	struct ref ref = ref_of(pool);
	const char *addr = map_pool(pool);
	uint64_t seen = 0;

	for (size_t offset = 0; offset < length; offset += BLOCK) {
		uint64_t one = frame(addr + offset);

		for (size_t i = 0; i < LENGTH / BLOCK; i++)
			seen += one == frames[i];
	}
	kvp_pool_close(pool);
	EQUAL(ref_destroy(ctx, ref, 0), 0);
	return seen;
}

/* rdma-core 824: memory went to a new owner while the NIC still wrote to it. */
static void pinned_block_is_not_reused(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = ref_make(ctx, "pinned", KVP_LIFETIME_OWNER);
	struct ref ref = ref_of(pool);
	char *addr = map_pool(pool);
	uint64_t frames[LENGTH / BLOCK];
	struct ibv_mr *mr;

	for (size_t i = 0; i < LENGTH / BLOCK; i++)
		frames[i] = frame(addr + i * BLOCK);
	mr = pin(addr, LENGTH);
	CHECK(mr);
	EQUAL(ref_destroy(ctx, ref, 1), 0);
	kvp_pool_close(pool);
	EQUAL(ref_find(ctx, ref).pinned_blocks, LENGTH / BLOCK);

	/* Nearly all there is, and what every processor keeps at hand. */
	EQUAL(seen_again(ctx, frames, stats(ctx).available / 10 * 9 / BLOCK * BLOCK), 0);
	for (int try = 0; try < 10; try++)
		EQUAL(seen_again(ctx, frames, 32 * BLOCK), 0);
	EQUAL(heads(frames), LENGTH / BLOCK);
	unpin(mr);
	UNTIL(!stats(ctx).dying);
	/*
	 * Where the allocator puts them next is its own affair: they are free. Another
	 * large page may have taken some by now, but none did while they were pinned.
	 */
	CHECK(heads(frames) < LENGTH / BLOCK);
}

int main(void)
{
	RUN(destroy_in_use);
	RUN(destroyed_while_threads_fault);
	RUN(pinned_block_is_not_reused);
	return cases_end();
}

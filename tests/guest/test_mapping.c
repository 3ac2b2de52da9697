// SPDX-License-Identifier: GPL-2.0
/* How a pool is mapped: size of entries, sharing, protection, limits. */
#include "guest.h"

static void touch(const void *addr, size_t length)
{
	for (size_t i = 0; i < length; i += 4096)
		(void)*((const volatile char *)addr + i);
}

static void large_entries(void)
{
	struct kvp_pool *pool = make_pool(open_ctx(), "kv", 64 * BLOCK);
	char *addr = map_pool(pool);

	EQUAL((uintptr_t)addr % BLOCK, 0);
	touch(addr, 64 * BLOCK);
	EQUAL(smaps_kib(addr, "Rss:"), 128 * 1024);
	EQUAL(smaps_kib(addr, "FilePmdMapped:"), 128 * 1024);
}

static void zeroed(void)
{
	struct kvp_ctx *ctx = open_ctx();

	for (int round = 0; round < 3; round++) {
		struct kvp_pool *pool = make_pool(ctx, "kv", 16 * BLOCK);
		uint64_t *word = map_pool(pool);

		for (size_t i = 0; i < 16 * BLOCK / sizeof(*word); i++)
			if (word[i])
				FAIL("round %d: byte %zu is not zero", round, i * 8);
		fill(word, 16 * BLOCK, (uint64_t)round);
		RETURNS(0, kvp_pool_destroy(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), 1,
					    &error));
		kvp_pool_close(pool);
	}
}

static void partial_munmap(void)
{
	struct kvp_pool *pool = make_pool(open_ctx(), "kv", 4 * BLOCK);
	char *addr = map_pool(pool);

	fill(addr, 4 * BLOCK, 7);
	CHECK(!munmap(addr + BLOCK + 4096, 4096));
	EQUAL(query(pool).mappings, 2);
	/* The rest of the block comes back in small entries, its neighbours in large ones. */
	for (size_t page = 0; page < BLOCK / 4096; page++) {
		const uint64_t *word = (void *)(addr + BLOCK + page * 4096);

		if (page == 1)
			continue;
		EQUAL(word[0], (7 + (BLOCK + page * 4096) / 8) * 0x9e3779b97f4a7c15u);
	}
	touch(addr, BLOCK);
	touch(addr + 2 * BLOCK, 2 * BLOCK);
	EQUAL(smaps_kib(addr, "FilePmdMapped:"), 2048);
	EQUAL(smaps_kib(addr + 2 * BLOCK, "FilePmdMapped:"), 4096);
	/* Mapped again where the hole is: the same bytes. */
	CHECK(mmap(addr + BLOCK + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   kvp_pool_fd(pool), (off_t)BLOCK + 4096) != MAP_FAILED);
	CHECK(filled(addr, 4 * BLOCK, 7));
}

static void reader(void *arg)
{
	struct kvp_span *span = arg;
	struct kvp_pool *pool;
	void *addr;

	RETURNS(0, kvp_span_import(open_ctx(), span, KVP_ACCESS_READ, &pool, &addr, &error));
	CHECK(filled(addr, 3 * BLOCK, 99));
	CHECK(mprotect(addr, 4096, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
}

static void every_page_in_another_process(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 3 * BLOCK);
	void *addr = map_pool(pool);
	struct kvp_span span;

	fill(addr, 3 * BLOCK, 99);
	RETURNS(0, kvp_span_export(ctx, "kv", addr, 3 * BLOCK, &span, &error));
	EQUAL(wait_child(child(reader, &span)), 0);
}

static void offsets(void)
{
	struct kvp_pool *pool = make_pool(open_ctx(), "kv", 2 * BLOCK);
	char *all = map_pool(pool);
	int fd = kvp_pool_fd(pool);

	fill(all, 2 * BLOCK, 5);
	/* Every page of the pool as a mapping of its own. */
	for (uint64_t offset = 0; offset < 2 * BLOCK; offset += 4096) {
		char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)offset);

		CHECK(page != MAP_FAILED);
		CHECK(!memcmp(page, all + offset, 4096));
		CHECK(!munmap(page, 4096));
	}
}

static void refused(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK + 1);
	struct kvp_pool *reading;
	int fd = kvp_pool_fd(pool);
	char path[100], *addr;

	EQUAL(query(pool).length, BLOCK + 1);
	EQUAL(query(pool).mapped_length, 2 * BLOCK);
#define REFUSED(want, length, prot, flags, offset) do { \
	errno = 0; \
	CHECK(mmap(NULL, length, prot, flags, fd, offset) == MAP_FAILED); \
	EQUAL(errno, want); \
} while (0)
	REFUSED(EINVAL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
	REFUSED(EINVAL, BLOCK, PROT_READ, MAP_PRIVATE, 0);
	/* The pools' file system says so; opened by its node, the module. */
	REFUSED(EPERM, BLOCK, PROT_READ | PROT_EXEC, MAP_SHARED, 0);
	snprintf(path, sizeof(path), "/dev/kvpool/%s", query(pool).name);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	REFUSED(EACCES, BLOCK, PROT_READ | PROT_EXEC, MAP_SHARED, 0);
	CHECK(!close(fd));
	fd = kvp_pool_fd(pool);
	REFUSED(EINVAL, 2 * BLOCK + 4096, PROT_READ, MAP_SHARED, 0);
	REFUSED(EINVAL, 4096, PROT_READ, MAP_SHARED, 2 * BLOCK);
	REFUSED(EINVAL, BLOCK, PROT_READ, MAP_SHARED, BLOCK + 4096);
	REFUSED(EINVAL, 4096, PROT_READ, MAP_SHARED, (off_t)(INT64_MAX & ~4095));

	addr = map_pool(pool);
	CHECK(mprotect(addr, 4096, PROT_READ | PROT_EXEC) == -1 && errno == EACCES);
	CHECK(mremap(addr, 2 * BLOCK, 3 * BLOCK, MREMAP_MAYMOVE) == MAP_FAILED);

	RETURNS(0, kvp_pool_open(ctx, kvp_pool_id(pool), kvp_pool_generation(pool),
				 KVP_ACCESS_READ, &reading, &error));
	fd = kvp_pool_fd(reading);
	REFUSED(EACCES, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	addr = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(addr != MAP_FAILED);
	CHECK(mprotect(addr, BLOCK, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	/* Reopening through /proc gives no more than the pool's mode does. */
	EQUAL(shell("{ exec 3<>/proc/%d/fd/%d; } 2>/dev/null", getpid(), fd) != 0, 1);
}

static void moved(void)
{
	struct kvp_pool *pool = make_pool(open_ctx(), "kv", 4 * BLOCK);
	char *addr = map_pool(pool), *to;

	fill(addr, 4 * BLOCK, 3);
	to = mmap(NULL, 8 * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(to != MAP_FAILED);
	to = mremap(addr, 4 * BLOCK, 4 * BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED, to + 4096);
	CHECK(to != MAP_FAILED);
	/* At an address that does not suit large entries, the bytes are the same. */
	CHECK(filled(to, 4 * BLOCK, 3));
	EQUAL(query(pool).mappings, 1);
	CHECK(!munmap(to, 4 * BLOCK));
	EQUAL(query(pool).mappings, 0);
}

static void locked_and_advised(void)
{
	struct kvp_pool *pool = make_pool(open_ctx(), "kv", 4 * BLOCK);
	char *addr = map_pool(pool);

	fill(addr, 4 * BLOCK, 11);
	CHECK(!mlock(addr, 4 * BLOCK));
	CHECK(!madvise(addr, 2 * BLOCK, MADV_DONTNEED) || errno == EINVAL);
	madvise(addr, 2 * BLOCK, MADV_PAGEOUT);
	madvise(addr, 2 * BLOCK, MADV_REMOVE);
	CHECK(filled(addr, 4 * BLOCK, 11));
	CHECK(!munlock(addr, 4 * BLOCK));
}

/* For other tests: map a pool's node, say where, and wait to be killed. */
static int hold(const char *path)
{
	int fd = open(path, O_RDWR);
	void *addr = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (addr == MAP_FAILED)
		return 1;
	fill(addr, 2 * BLOCK, 1);
	printf("%p\n", addr);
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "hold"))
		return hold(argv[2]);
	RUN(large_entries);
	RUN(zeroed);
	RUN(partial_munmap);
	RUN(every_page_in_another_process);
	RUN(offsets);
	RUN(refused);
	RUN(moved);
	RUN(locked_and_advised);
	return cases_end();
}

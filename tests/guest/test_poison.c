// SPDX-License-Identifier: GPL-2.0
/* Memory that failed. The kernel marks the page, and tells the module nothing. */
#include "guest.h"

#define HWPOISON "/sys/kernel/debug/hwpoison/"
#define RESERVE "/sys/class/kvpool/control/reserve/node0/"
#define PAGE 4096

/* In the file of the kernel, which has 8 bytes for each page. */
static uint64_t entry(const char *file, uint64_t page)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint64_t value;

	CHECK(fd >= 0);
	CHECK(pread(fd, &value, sizeof(value), (off_t)(page * sizeof(value))) == sizeof(value));
	close(fd);
	return value;
}

static uint64_t frame(const void *addr)
{
	uint64_t number;

	CHECK(can_read(addr));
	number = entry("/proc/self/pagemap", (uintptr_t)addr / PAGE) & (((uint64_t)1 << 55) - 1);
	CHECK(number);
	return number;
}

static bool is_bad(uint64_t number)
{
	return entry("/proc/kpageflags", number) >> 19 & 1;
}

/*
 * The machine is as it was: what was kept for it is free again. The kernel can do that
 * for the first page of a block only.
 */
static void repair(uint64_t number)
{
	EQUAL(shell("echo %llu >" HWPOISON "unpoison-pfn", (unsigned long long)number), 0);
	CHECK(!is_bad(number));
}

static void end(struct kvp_ctx *ctx, struct kvp_pool *pool)
{
	const uint32_t id = kvp_pool_id(pool);
	const uint64_t generation = kvp_pool_generation(pool);

	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, id, generation, 1, &error));
}

/*
 * It fails while one has the block mapped. Another, which maps it by small entries since
 * its address does not fit, touches a neighbour, and then it. Who has a large entry is
 * told by the hardware.
 */
static void page_of_a_mapped_block(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 2 * BLOCK);
	char *addr = map_pool(pool), *other;
	uint64_t bad;

	fill(addr, 2 * BLOCK, 1);
	bad = frame(addr);
	/* It can't be taken away from who has it mapped, for which kernels have several errors. */
	CHECK(madvise(addr, PAGE, MADV_HWPOISON) == -1);
	CHECK(is_bad(bad));
	other = mmap(NULL, 3 * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(other != MAP_FAILED);
	other += BLOCK - (uintptr_t)other % BLOCK + PAGE;
	CHECK(mmap(other, BLOCK, PROT_READ, MAP_SHARED | MAP_FIXED, kvp_pool_fd(pool), 0) == other);
	EQUAL(read_byte(other + 6 * PAGE), (unsigned char)addr[6 * PAGE]);
	EQUAL(read_byte(other), -1);
	EQUAL(read_byte(other), -1);
	EQUAL(read_byte(other + 4 * PAGE), (unsigned char)addr[4 * PAGE]);
	CHECK(filled(addr + BLOCK, BLOCK, 1 + BLOCK / 8));
	end(ctx, pool);
	CHECK(is_bad(bad));
	repair(bad);
}

/* Neither the next pool nor the reserve gets a block that has a bad page. */
static void block_is_not_used_again(void)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;
	uint64_t bad;
	char *addr;

	change.mask = KVP_RESERVE_SET_TARGET;
	for (int reserved = 0; reserved < 2; reserved++) {
		change.target = reserved ? 4 * BLOCK : 0;
		RETURNS(0, kvp_reserve_set(ctx, &change, &error));
		UNTIL((uint64_t)shell_number("cat " RESERVE "ready") == change.target);
		pool = make_pool(ctx, "kv", 4 * BLOCK);
		addr = map_pool(pool);
		bad = frame(addr + 2 * BLOCK);
		/* As the hardware reports it; it is no page that the kernel could take away. */
		shell("echo %llu >" HWPOISON "corrupt-pfn 2>/dev/null", (unsigned long long)bad);
		CHECK(is_bad(bad));
		end(ctx, pool);
		UNTIL((uint64_t)shell_number("cat " RESERVE "ready") == change.target);
		for (int round = 0; round < 3; round++) {
			pool = make_pool(ctx, "kv", 8 * BLOCK);
			addr = map_pool(pool);
			for (int i = 0; i < 8; i++)
				CHECK(frame(addr + (size_t)i * BLOCK) != bad);
			end(ctx, pool);
		}
		repair(bad);
	}
	change.target = 0;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
}

int main(void)
{
	shell("modprobe hwpoison_inject; [ -e " HWPOISON " ] || mount -t debugfs debugfs /sys/kernel/debug");
	RUN(page_of_a_mapped_block);
	RUN(block_is_not_used_again);
	return cases_end();
}

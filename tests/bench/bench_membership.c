// SPDX-License-Identifier: GPL-2.0
/*
 * In which of n mapped pools an address lies. Needs neither the module nor root, so
 * it runs on the host too. The context has no kernel behind it, as nothing of this
 * asks one: tests/guest/test_mapping.c proves that.
 */
#include "bench.h"

#include "../../lib/internal.h"

#define MOST 10000
#define BYTES 4096
/* Addresses of a round, drawn anew for each; a search of the text takes long. */
#define LOOKUPS 500000
#define TEXT_LOOKUPS 5

static struct kvp_ctx ctx;
static struct kvp_pool pools[MOST];
static uint32_t count;
static char *base;

/* Every other page of one mapping, so that each is a line of /proc/self/maps. */
static char *page(uint32_t n)
{
	return base + 2ULL * n * BYTES;
}

static uint32_t drawn(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((*random >> 33) % count);
}

static uint32_t by_library(uint32_t n)
{
	struct kvp_span span;

	if (kvp_span_export(&ctx, "bench", page(n) + 64, 1024, &span, NULL) || span.offset != 64)
		return KVP_NONE;
	return span.id - 1;
}

static uint32_t by_scan(uint32_t n)
{
	const uint64_t addr = (uintptr_t)page(n) + 64;

	for (uint32_t i = 0; i < count; i++) {
		const uint64_t start = (uintptr_t)pools[i].addr;

		if (addr >= start && addr - start < pools[i].length &&
		    1024 <= pools[i].length - (addr - start))
			return i;
	}
	return KVP_NONE;
}

static uint32_t by_text(uint32_t n)
{
	const uint64_t addr = (uintptr_t)page(n) + 64;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start = 0, end = 0;
	char line[512];

	CHECK(maps);
	while (end <= addr && fgets(line, sizeof(line), maps))
		CHECK(sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2);
	fclose(maps);
	return addr >= start && addr < end ? (uint32_t)((start - (uintptr_t)base) / BYTES / 2) :
					     KVP_NONE;
}

static const struct {
	const char *name;
	uint32_t (*look)(uint32_t n);
	uint32_t lookups;
} sides[] = {
	{ "kvp_span_export", by_library, LOOKUPS },
	{ "linear scan", by_scan, LOOKUPS / 100 },
	{ "search of /proc/self/maps", by_text, TEXT_LOOKUPS },
};

/* `one`: the same all the time. */
static void measure(const char *row, uint32_t side, bool one, uint64_t random)
{
	uint32_t n = drawn(&random);
	uint64_t start = bench_now(), end;

	for (uint32_t i = 0; i < sides[side].lookups; i++) {
		if (sides[side].look(n) != n)
			FAIL("%s: not in mapping %" PRIu32, sides[side].name, n);
		if (!one)
			n = drawn(&random);
	}
	end = bench_now();
	bench_count(row, count, sides[side].name, "ns",
		    (double)(end - start) / sides[side].lookups);
}

static void member_of(uint32_t n)
{
	count = n;
	base = mmap(NULL, 2ULL * MOST * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED);
	kvp_mappings_init(&ctx.mappings);
	for (uint32_t i = 0; i < count; i++) {
		CHECK(!mprotect(page(i), BYTES, PROT_READ));
		pools[i] = (struct kvp_pool){
			.id = i + 1, .generation = i + 1, .length = BYTES, .mapped_length = BYTES,
			.domain = "bench", .addr = page(i),
		};
		kvp_mappings_add(&ctx.mappings, &pools[i]);
	}
	for (unsigned int round = 0; round < bench_size(9, 1); round++)
		for (uint32_t i = 0; i < 3; i++) {
			measure("one address, mappings", (i + round) % 3, true, round);
			measure("random addresses, mappings", (i + round) % 3, false, round);
		}
	kvp_mappings_free(&ctx.mappings);
	CHECK(!munmap(base, 2ULL * MOST * BYTES));
}

static void mappings_1(void)
{
	member_of(1);
}

static void mappings_10(void)
{
	member_of(10);
}

static void mappings_100(void)
{
	member_of(100);
}

static void mappings_1000(void)
{
	member_of(1000);
}

static void mappings_10000(void)
{
	member_of(10000);
}

int main(void)
{
	RUN(mappings_1);
	RUN(mappings_10);
	RUN(mappings_100);
	RUN(mappings_1000);
	if (bench_size(1, 0))
		RUN(mappings_10000);
	return cases_end();
}

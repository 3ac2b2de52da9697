// SPDX-License-Identifier: GPL-2.0
#include "bench.h"

#include <time.h>

uint64_t bench_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void bench_count(const char *row, uint64_t size, const char *side, const char *unit, double value)
{
	printf("{\"row\":\"%s\",\"size\":%" PRIu64 ",\"side\":\"%s\",\"unit\":\"%s\",\"value\":%.17g}\n",
	       row, size, side, unit, value);
	fflush(stdout);
}

static void measure(const char *row, uint64_t size, const struct side *side)
{
	uint64_t start, end;

	if (side->prepare)
		side->prepare();
	start = bench_now();
	side->run();
	end = bench_now();
	if (side->clean)
		side->clean();
	bench_count(row, size, side->name, "ns", (double)(end - start));
}

void bench_row(const char *row, uint64_t size, const struct side *sides, unsigned int count,
	       unsigned int rounds)
{
	const char *wish = getenv("BENCH_ROUNDS");
	unsigned int round, i;

	rounds = (unsigned int)bench_size(wish && *wish ? strtoul(wish, NULL, 10) : rounds, 1);
	for (round = 0; round < rounds; round++)
		/* Each goes first as often as the others. */
		for (i = 0; i < count; i++)
			measure(row, size, &sides[(i + round) % count]);
}

uint64_t bench_size(uint64_t full, uint64_t size)
{
	return getenv("BENCH_QUICK") ? size : full;
}

// SPDX-License-Identifier: GPL-2.0
#include "bench.h"

#include <time.h>

static uint64_t now(void)
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
	start = now();
	side->run();
	end = now();
	if (side->clean)
		side->clean();
	bench_count(row, size, side->name, "ns", (double)(end - start));
}

void bench_row(const char *row, uint64_t size, const struct side *sides, unsigned int count,
	       unsigned int rounds)
{
	const char *wish = getenv("BENCH_ROUNDS");
	unsigned int round, i;

	if (wish)
		rounds = (unsigned int)strtoul(wish, NULL, 10);
	for (round = 0; round < rounds; round++)
		/* Each goes first as often as the others. */
		for (i = 0; i < count; i++)
			measure(row, size, &sides[(i + round) % count]);
}

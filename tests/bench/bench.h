/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What benchmarks share. A row compares sides, each of which does the same thing
 * to as many bytes in another way. They are run in turn, round after round, so
 * that whatever disturbs the machine disturbs all of them; each run is a line of
 * JSON, and report.py makes the table. Nothing here asserts a time.
 */
#ifndef BENCH_H
#define BENCH_H

#include "../guest/registering.h"

struct side {
	const char *name;
	void (*prepare)(void);	/* not measured; may be NULL */
	void (*run)(void);
	void (*clean)(void);	/* not measured; may be NULL */
};

/*
 * Measure a row. `size` is what its curve grows with: bytes, buffers, pools. The
 * first side is this project, the others are what it is compared with. The number
 * of rounds is BENCH_ROUNDS in the environment, else `rounds`.
 */
void bench_row(const char *row, uint64_t size, const struct side *sides, unsigned int count,
	       unsigned int rounds);
/* Nanoseconds of the clock that all rows are measured with. */
uint64_t bench_now(void);
/* A number of a row that is no time, such as bytes or faults. */
void bench_count(const char *row, uint64_t size, const char *side, const char *unit, double value);

/*
 * BENCH_QUICK in the environment: once each, and small, to see that it works and
 * what is counted. This is `size` then, or else `full`.
 */
uint64_t bench_size(uint64_t full, uint64_t size);

#endif /* BENCH_H */

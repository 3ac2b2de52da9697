// SPDX-License-Identifier: GPL-2.0
#include "race.h"

#include <pthread.h>

uint64_t seed;

static bool over;	/* atomic */

struct runner {
	pthread_t thread;
	race_step step;
	uint64_t state, steps;
};

uint32_t roll(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

int check_allowed(const char *file, int line, const char *call, int err, const int *allowed)
{
	do
		if (-err == *allowed)
			return err;
	while (*allowed++);
	case_fail(file, line, "seed %llu: %s: %d", (unsigned long long)seed, call, err);
}

bool race_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_SEQ_CST);
}

static void *run(void *arg)
{
	struct runner *runner = arg;

	for (; !race_over(); runner->steps++)
		runner->step(&runner->state);
	return NULL;
}

void race(int seconds, const race_step *steps, size_t count)
{
	struct runner *runners = calloc(count, sizeof(*runners));

	CHECK(runners);
	__atomic_store_n(&over, false, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < count; i++) {
		runners[i].step = steps[i];
		runners[i].state = seed + i;
		CHECK(!pthread_create(&runners[i].thread, NULL, run, &runners[i]));
	}
	/* Where a step takes several times as long, and where a race is most worth while. */
	sleep((unsigned int)seconds * (debug_kernel() ? 3 : 1));
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < count; i++) {
		CHECK(!pthread_join(runners[i].thread, NULL));
		CHECK(runners[i].steps > 0);
	}
	free(runners);
}

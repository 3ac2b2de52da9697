// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads for the length of one call: none is left when it returns. */
#include <stdlib.h>

#include "transaction.h"

struct share {
	void (*work)(void *data);
	void *data;
};

static void *run(void *arg)
{
	const struct share *share = arg;

	share->work(share->data);
	return NULL;
}

/* As many of them as there can be, the caller's among them: one is enough. */
static void run_threads(uint32_t threads, void (*work)(void *data), void *data)
{
	pthread_t *others = calloc(threads - 1, sizeof(*others));
	struct share share = { .work = work, .data = data };
	uint32_t count = 0;

	while (others && count < threads - 1 && !kvp_thread_start(&others[count], run, &share))
		count++;
	work(data);
	while (count--)
		pthread_join(others[count], NULL);
	free(others);
}

void kvp_parallel(const struct kvp_crew *crew, void (*work)(void *data), void *data)
{
	if (crew->threads <= 1)
		work(data);
	else if (crew->run)
		crew->run(work, data, crew->threads, crew->arg);
	else
		run_threads(crew->threads, work, data);
}

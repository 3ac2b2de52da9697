// SPDX-License-Identifier: LGPL-2.1-or-later
/* A thread that works for a caller who doesn't wait for longer than a limit. */
#include <stdlib.h>
#include <time.h>

#include "transaction.h"

struct kvp_worker {
	pthread_t thread;
	uint64_t limit;		/* nanoseconds */
	pthread_mutex_t lock;	/* protects all below */
	pthread_cond_t wake;	/* the thread's */
	pthread_cond_t done;	/* the caller's */
	void (*work)(void *data);	/* NULL: nothing to do */
	void (*drop)(void *data);
	void *data;
	bool late;		/* the caller has given up, and data is the thread's */
	bool quit;		/* then call last(), and end */
	void (*last)(void *data);
	void *last_data;
	bool ended;
	bool orphan;		/* the worker itself is the thread's */
};

static void destroy(struct kvp_worker *worker)
{
	pthread_cond_destroy(&worker->done);
	pthread_cond_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static void *run(void *arg)
{
	struct kvp_worker *worker = arg;
	bool orphan;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (!worker->work && !worker->quit)
			pthread_cond_wait(&worker->wake, &worker->lock);
		if (!worker->work)
			break;
		pthread_mutex_unlock(&worker->lock);
		worker->work(worker->data);
		pthread_mutex_lock(&worker->lock);
		if (worker->late)
			worker->drop(worker->data);
		worker->late = false;
		worker->work = NULL;
		pthread_cond_signal(&worker->done);
	}
	pthread_mutex_unlock(&worker->lock);
	worker->last(worker->last_data);
	pthread_mutex_lock(&worker->lock);
	worker->ended = true;
	pthread_cond_signal(&worker->done);
	orphan = worker->orphan;
	pthread_mutex_unlock(&worker->lock);
	if (orphan)
		destroy(worker);
	return NULL;
}

int kvp_worker_new(uint64_t limit, struct kvp_worker **result)
{
	struct kvp_worker *worker = calloc(1, sizeof(*worker));
	pthread_condattr_t monotonic;
	int err;

	if (!worker)
		return -ENOMEM;
	worker->limit = limit;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->wake, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = kvp_thread_start(&worker->thread, run, worker);
	if (err) {
		destroy(worker);
		return err;
	}
	*result = worker;
	return 0;
}

/* A limit of centuries is none, and must not wrap. */
static struct timespec deadline(uint64_t limit)
{
	const uint64_t second = 1000000000;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	limit += (uint64_t)now.tv_nsec;
	if (limit < (uint64_t)now.tv_nsec || limit / second > INT32_MAX)
		limit = (uint64_t)INT32_MAX * second;
	now.tv_sec += (time_t)(limit / second);
	now.tv_nsec = (long)(limit % second);
	return now;
}

int kvp_worker_do(struct kvp_worker *worker, void (*work)(void *data), void *data,
		  void (*drop)(void *data))
{
	struct timespec end;
	int err = 0;

	pthread_mutex_lock(&worker->lock);
	if (worker->late) {
		err = -EBUSY;
		goto out;
	}
	worker->work = work;
	worker->data = data;
	worker->drop = drop;
	pthread_cond_signal(&worker->wake);
	end = deadline(worker->limit);
	while (worker->work && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&worker->done, &worker->lock, &end);
	/* What ended just then has ended in time. */
	worker->late = worker->work;
	err = worker->late ? -ETIMEDOUT : 0;
out:
	pthread_mutex_unlock(&worker->lock);
	return err;
}

bool kvp_worker_late(struct kvp_worker *worker)
{
	bool late;

	pthread_mutex_lock(&worker->lock);
	late = worker->late;
	pthread_mutex_unlock(&worker->lock);
	return late;
}

void kvp_worker_free(struct kvp_worker *worker, void (*last)(void *data), void *data)
{
	struct timespec end = deadline(worker->limit);
	int err = 0;

	pthread_mutex_lock(&worker->lock);
	worker->last = last;
	worker->last_data = data;
	worker->quit = true;
	pthread_cond_signal(&worker->wake);
	while (!worker->ended && !worker->late && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&worker->done, &worker->lock, &end);
	worker->orphan = !worker->ended;
	if (worker->orphan) {
		pthread_detach(worker->thread);
		pthread_mutex_unlock(&worker->lock);
		return;
	}
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	destroy(worker);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* One call of a registrar: of a chunk or a batch of them, within its time limit. */
#include <stdlib.h>

#include "transaction.h"

static void fill(struct kvp_call *call, int result)
{
	uint32_t i;

	for (i = 0; i < call->count; i++)
		call->results[i] = result;
}

static void call_batch(const struct kvp_registrar_ops *ops, void *arg, struct kvp_call *call)
{
	uint32_t i;

	fill(call, -ETIMEDOUT);
	call->code = call->undo ?
		ops->unregister_batch(arg, call->device, call->chunks, call->count, call->cookies,
				      call->results) :
		ops->register_batch(arg, call->device, call->chunks, call->count, call->cookies,
				    call->results);
	if (!call->code) {
		fill(call, 0);
		return;
	}
	for (i = 0; i < call->count && !call->results[i]; i++)
		;
	/* It says that it failed, and that each of them succeeded. */
	if (i == call->count)
		fill(call, -ETIMEDOUT);
}

static void carry_out(const struct kvp_registrar_ops *ops, void *arg, struct kvp_call *call)
{
	if (call->count > 1) {
		call_batch(ops, arg, call);
		return;
	}
	call->code = call->undo ?
		ops->unregister_chunk(arg, call->device, call->chunks, call->cookies[0]) :
		ops->register_chunk(arg, call->device, call->chunks, &call->cookies[0]);
	call->results[0] = call->code;
}

/* A call with all that it points to, so that it can outlast its caller. */
struct job {
	struct kvp_registrar_ops ops;
	void *arg;
	struct kvp_call call;
};

static void work(void *data)
{
	struct job *job = data;

	carry_out(&job->ops, job->arg, &job->call);
}

static void job_free(void *data)
{
	struct job *job = data;

	kvp_call_free(&job->call);
	free(job);
}

static struct job *job_new(const struct kvp_registrar *registrar, const struct kvp_call *call)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->ops = registrar->ops;
	job->arg = registrar->arg;
	if (kvp_call_init(&job->call, call->count)) {
		free(job);
		return NULL;
	}
	job->call.device = call->device;
	job->call.undo = call->undo;
	memcpy(job->call.chunks, call->chunks, call->count * sizeof(*call->chunks));
	memcpy(job->call.cookies, call->cookies, call->count * sizeof(*call->cookies));
	return job;
}

static void not_made(struct kvp_call *call, int err)
{
	call->made = false;
	call->code = err;
	fill(call, err);
}

static void call_in_time(struct kvp_registrar *registrar, struct kvp_call *call)
{
	struct job *job = job_new(registrar, call);

	if (!job) {
		not_made(call, -ENOMEM);
		return;
	}
	switch (kvp_worker_do(registrar->worker, work, job, job_free)) {
	case 0:
		memcpy(call->cookies, job->call.cookies, call->count * sizeof(*call->cookies));
		memcpy(call->results, job->call.results, call->count * sizeof(*call->results));
		call->code = job->call.code;
		job_free(job);
		break;
	case -ETIMEDOUT:
		call->late = true;
		call->code = -ETIMEDOUT;
		fill(call, -ETIMEDOUT);
		break;
	default:
		job_free(job);
		call->late = true;
		not_made(call, -ETIMEDOUT);
		break;
	}
}

void kvp_call_run(struct kvp_registrar *registrar, struct kvp_call *call)
{
	call->made = true;
	call->late = false;
	if (!registrar->ops.concurrent)
		pthread_mutex_lock(&registrar->turn);
	if (registrar->worker)
		call_in_time(registrar, call);
	else
		carry_out(&registrar->ops, registrar->arg, call);
	if (!registrar->ops.concurrent)
		pthread_mutex_unlock(&registrar->turn);
	/* Whether the store never had it or has it no longer: it is not there. */
	if (call->undo && registrar->ops.external) {
		uint32_t i;

		for (i = 0; i < call->count; i++)
			if (call->results[i] == -ENOENT)
				call->results[i] = 0;
	}
}

int kvp_call_init(struct kvp_call *call, uint32_t count)
{
	memset(call, 0, sizeof(*call));
	call->chunks = calloc(count, sizeof(*call->chunks));
	call->cookies = calloc(count, sizeof(*call->cookies));
	call->results = calloc(count, sizeof(*call->results));
	call->count = count;
	if (call->chunks && call->cookies && call->results)
		return 0;
	kvp_call_free(call);
	return -ENOMEM;
}

void kvp_call_free(struct kvp_call *call)
{
	free(call->chunks);
	free(call->cookies);
	free(call->results);
}

bool kvp_registrar_late(const struct kvp_registrar *registrar)
{
	return registrar->worker && kvp_worker_late(registrar->worker);
}

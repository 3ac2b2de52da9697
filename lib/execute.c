// SPDX-License-Identifier: LGPL-2.1-or-later
/* Carrying a plan out and undoing it: what calls registrars. */
#include <inttypes.h>
#include <stdio.h>

#include "transaction.h"

static const char *register_advice(const struct kvp_registrar *registrar,
				   const struct kvp_chunk *chunk, int err)
{
	if (!registrar->verbs)
		return NULL;
	switch (err) {
	case -ENOMEM:
		return "raise RLIMIT_MEMLOCK (ulimit -l), or register less: the device may be full";
	case -EINVAL:
	case -EOPNOTSUPP:
		return "check that the device has all of the access flags";
	case -EFAULT:
		/* They pin for writing whatever the access asked for. */
		if (chunk->flags & KVP_BUFFER_READ_ONLY)
			return "kernels before 6.2 register no memory that is mapped read only: "
			       "map it with KVP_ACCESS_WRITE";
		return "check that the memory is still mapped with the access asked for";
	default:
		return NULL;
	}
}

/* What an entry of a call failed with, in the registrar's own words if it has any. */
static int code_of(const struct kvp_call *call, uint32_t i)
{
	return call->results[i] == -ETIMEDOUT && call->code ? call->code : call->results[i];
}

static int fail_call(const struct kvp_registration *registration, const struct kvp_entry *entry,
		     const struct kvp_call *call, uint32_t i, struct kvp_error *error)
{
	const struct kvp_registrar *registrar = registration->set.registrars[entry->registrar];
	const enum kvp_phase phase = call->undo ? KVP_PHASE_UNDO : KVP_PHASE_REGISTER;
	const char *device = kvp_registrar_device(registrar, entry->device);
	const char *advice;
	char why[80] = "";
	bool foreign;
	int err = kvp_returned(code_of(call, i), &foreign);

	advice = call->undo ? "do not use this memory before kvp_unregister() has succeeded" :
			      register_advice(registrar, &entry->chunk, err);
	if (call->late)
		snprintf(why, sizeof(why), ": %s call has run for more than %" PRIu64 " ms",
			 call->made ? "the" : "an earlier",
			 registrar->ops.time_limit / 1000000);
	else if (foreign)
		snprintf(why, sizeof(why), ": the registrar returned code %d", code_of(call, i));
	kvp_fail(error, err, phase, entry->index, device, advice,
		 "buffer %" PRIu32 ": can't %s %" PRIu64 " bytes at 0x%" PRIxPTR
		 " (offset %" PRIu64 ")%s", entry->index, call->undo ? "unregister" : "register",
		 entry->chunk.length, (uintptr_t)entry->chunk.addr, entry->offset, why);
	if (error)
		error->repeated = call->late && !call->made;
	return err;
}

static int fail_record(const struct kvp_entry *entry, int err, struct kvp_error *error)
{
	return kvp_fail(error, err, KVP_PHASE_REGISTER, entry->index, NULL,
			"see whether the directory of the journal can be written",
			"buffer %" PRIu32 ": can't write the registration to the journal",
			entry->index);
}

/* Whether it may be registered: what an undo has to look at. */
static bool may_be_registered(const struct kvp_registration *registration, uint32_t n)
{
	switch (kvp_record_get(&registration->record, n)) {
	case KVP_STEP_INTENT:
	case KVP_STEP_REGISTERED:
	case KVP_STEP_UNDO_INTENT:
	case KVP_STEP_QUARANTINED:
		return true;
	default:
		return false;
	}
}

/*
 * How many entries, from `n` on in steps of `step`, one call may take: those of
 * one device that follow each other, if the registrar takes more than one.
 */
static uint32_t run_length(const struct kvp_registration *registration, uint32_t n, int step)
{
	const struct kvp_entry *first = &registration->entries[n], *entry;
	const struct kvp_registrar_ops *ops = &registration->set.registrars[first->registrar]->ops;
	uint32_t count = 1;

	if (step > 0 ? !ops->register_batch : !ops->unregister_batch)
		return 1;
	/* Past either end, `n` is at least `count`: it wraps below 0. */
	for (n += (uint32_t)step; n < registration->count && count < KVP_CALL_MAX;
	     n += (uint32_t)step, count++) {
		entry = &registration->entries[n];
		if (entry->registrar != first->registrar || entry->device != first->device ||
		    (step < 0 && !may_be_registered(registration, n)))
			break;
	}
	return count;
}

/* Have the `count` entries from `n` on written down, as intended; all or none. */
static int intend(struct kvp_registration *registration, uint32_t n, uint32_t count,
		  struct kvp_error *error)
{
	uint32_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = kvp_record_step(registration, n + i, KVP_STEP_INTENT, 0);
		if (!err)
			continue;
		fail_record(&registration->entries[n + i], err, error);
		while (i--)
			(void)kvp_record_step(registration, n + i, KVP_STEP_REFUSED, -ECANCELED);
		return err;
	}
	return 0;
}

static int registered(struct kvp_registration *registration, uint32_t n,
		      const struct kvp_call *call, uint32_t i, struct kvp_error *error)
{
	struct kvp_entry *entry = &registration->entries[n];
	const struct kvp_registrar *registrar = registration->set.registrars[entry->registrar];
	int err;

	if (!call->results[i]) {
		entry->cookie = call->cookies[i];
		err = kvp_record_step(registration, n, KVP_STEP_REGISTERED, 0);
		return err ? fail_record(entry, err, error) : 0;
	}
	/* Otherwise it may be registered, and its last step stays the intent. */
	if (call->results[i] != -ETIMEDOUT || !call->made || !registrar->ops.external)
		(void)kvp_record_step(registration, n, KVP_STEP_REFUSED, code_of(call, i));
	return fail_call(registration, entry, call, i, error);
}

static int register_run(struct kvp_registration *registration, uint32_t n, struct kvp_call *call,
			struct kvp_error *error)
{
	const struct kvp_entry *entry = &registration->entries[n];
	uint32_t i;
	int err, first;

	first = intend(registration, n, call->count, error);
	if (first)
		return first;
	call->device = entry->device;
	call->undo = false;
	kvp_call_run(registration->set.registrars[entry->registrar], call);
	for (i = 0; i < call->count; i++) {
		err = registered(registration, n + i, call, i, first ? NULL : error);
		if (!first)
			first = err;
	}
	return first;
}

static int register_one(struct kvp_registration *registration, uint32_t n, struct kvp_error *error)
{
	void *cookie = NULL;
	int result = 0;
	struct kvp_call call = {
		.count = 1, .chunks = &registration->entries[n].chunk, .cookies = &cookie,
		.results = &result,
	};

	return register_run(registration, n, &call, error);
}

static int register_batch(struct kvp_registration *registration, uint32_t n, uint32_t count,
			  struct kvp_error *error)
{
	struct kvp_call call;
	uint32_t i;
	int err;

	err = kvp_call_init(&call, count);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_REGISTER, registration->entries[n].index,
				NULL, NULL, "no memory for a call of %" PRIu32 " buffers", count);
	for (i = 0; i < count; i++)
		call.chunks[i] = registration->entries[n + i].chunk;
	err = register_run(registration, n, &call, error);
	kvp_call_free(&call);
	return err;
}

static int register_entries(struct kvp_registration *registration, uint32_t n, uint32_t count,
			    struct kvp_error *error)
{
	return count > 1 ? register_batch(registration, n, count, error) :
			   register_one(registration, n, error);
}

static int undone(struct kvp_registration *registration, uint32_t n, const struct kvp_call *call,
		  uint32_t i, struct kvp_error *error)
{
	struct kvp_entry *entry = &registration->entries[n];

	if (call->results[i]) {
		kvp_registration_quarantine(registration, n, true);
		(void)kvp_record_step(registration, n, KVP_STEP_QUARANTINED, code_of(call, i));
		return fail_call(registration, entry, call, i, error);
	}
	kvp_registration_quarantine(registration, n, false);
	entry->cookie = NULL;
	(void)kvp_record_step(registration, n, KVP_STEP_UNDONE, 0);
	return 0;
}

/* Returns how many of them failed. Entry i of the call is `n` - i. */
static uint32_t undo_run(struct kvp_registration *registration, uint32_t n, struct kvp_call *call,
			 struct kvp_error *first)
{
	const struct kvp_entry *entry = &registration->entries[n];
	uint32_t failed = 0, i;

	for (i = 0; i < call->count; i++)
		(void)kvp_record_step(registration, n - i, KVP_STEP_UNDO_INTENT, 0);
	call->device = entry->device;
	call->undo = true;
	kvp_call_run(registration->set.registrars[entry->registrar], call);
	for (i = 0; i < call->count; i++)
		if (undone(registration, n - i, call, i, failed ? NULL : first))
			failed++;
	return failed;
}

static uint32_t undo_one(struct kvp_registration *registration, uint32_t n, struct kvp_error *first)
{
	struct kvp_entry *entry = &registration->entries[n];
	void *cookie = entry->cookie;
	int result = 0;
	struct kvp_call call = {
		.count = 1, .chunks = &entry->chunk, .cookies = &cookie, .results = &result,
	};

	return undo_run(registration, n, &call, first);
}

/* Returns how many failed. */
static uint32_t undo_entries(struct kvp_registration *registration, uint32_t n, uint32_t count,
			     struct kvp_error *first)
{
	uint32_t failed = 0, i;
	struct kvp_call call;

	/* Without memory for many, each by itself. */
	if (count == 1 || kvp_call_init(&call, count)) {
		for (i = 0; i < count; i++)
			failed += undo_one(registration, n - i, failed ? NULL : first);
		return failed;
	}
	for (i = 0; i < count; i++) {
		call.chunks[i] = registration->entries[n - i].chunk;
		call.cookies[i] = registration->entries[n - i].cookie;
	}
	failed = undo_run(registration, n, &call, first);
	kvp_call_free(&call);
	return failed;
}

/* ------------------------------------------------------------------ walking */

/*
 * Entries are handed out in order, or against it to undo, to whichever thread
 * comes next. What failed first is what comes first in that order, whichever
 * thread was quicker.
 */
struct walk {
	struct kvp_registration *registration;
	pthread_mutex_t lock;	/* protects what follows */
	uint32_t next;		/* to hand out; when undoing, one more than that */
	bool stop;		/* hand out no more */
	uint32_t failed;
	uint32_t first_n;	/* the entry that `first` is about */
	int err;
	struct kvp_error *first;
};

static bool take_forward(struct walk *walk, uint32_t *n, uint32_t *count)
{
	bool more;

	pthread_mutex_lock(&walk->lock);
	more = !walk->stop && walk->next < walk->registration->count;
	if (more) {
		*n = walk->next;
		*count = run_length(walk->registration, *n, 1);
		walk->next += *count;
	}
	pthread_mutex_unlock(&walk->lock);
	return more;
}

static void register_some(void *data)
{
	struct walk *walk = data;
	struct kvp_error error = { 0 };
	uint32_t n, count;
	int err;

	while (take_forward(walk, &n, &count)) {
		err = register_entries(walk->registration, n, count, &error);
		if (!err)
			continue;
		pthread_mutex_lock(&walk->lock);
		if (!walk->err || n < walk->first_n) {
			walk->err = err;
			walk->first_n = n;
			*walk->first = error;
		}
		walk->stop = true;
		pthread_mutex_unlock(&walk->lock);
		return;
	}
}

int kvp_execute_register(struct kvp_registration *registration, struct kvp_error *error)
{
	struct walk walk = { .registration = registration, .first = error };

	pthread_mutex_init(&walk.lock, NULL);
	kvp_parallel(&registration->crew, register_some, &walk);
	pthread_mutex_destroy(&walk.lock);
	return walk.err;
}

static bool take_back(struct walk *walk, uint32_t *n, uint32_t *count)
{
	bool more = false;

	pthread_mutex_lock(&walk->lock);
	while (walk->next && !more) {
		*n = --walk->next;
		more = may_be_registered(walk->registration, *n);
	}
	if (more) {
		*count = run_length(walk->registration, *n, -1);
		walk->next = *n + 1 - *count;
	}
	pthread_mutex_unlock(&walk->lock);
	return more;
}

static void undo_some(void *data)
{
	struct walk *walk = data;
	struct kvp_error error = { 0 };
	uint32_t n, count, failed;

	while (take_back(walk, &n, &count)) {
		failed = undo_entries(walk->registration, n, count, &error);
		if (!failed)
			continue;
		pthread_mutex_lock(&walk->lock);
		if (!walk->failed || n > walk->first_n) {
			walk->first_n = n;
			*walk->first = error;
		}
		walk->failed += failed;
		pthread_mutex_unlock(&walk->lock);
		memset(&error, 0, sizeof(error));
	}
}

uint32_t kvp_execute_undo(struct kvp_registration *registration, struct kvp_error *first)
{
	struct walk walk = {
		.registration = registration, .first = first, .next = registration->count,
	};

	pthread_mutex_init(&walk.lock, NULL);
	kvp_parallel(&registration->crew, undo_some, &walk);
	pthread_mutex_destroy(&walk.lock);
	return walk.failed;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Register all of a list or none of it, and end what was registered. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "transaction.h"

#define MOST_THREADS 256

struct transaction {
	struct kvp_transaction_options options;
	struct kvp_ctx *ctx;
	const char *domain;
	const struct kvp_list *list;
	struct kvp_registration *registration;
	bool begun;		/* from here on there is something to undo */
};

static int check_registrars(struct kvp_registrar *const *registrars, uint32_t count,
			    struct kvp_error *error)
{
	uint32_t i, j;

	if (!registrars || !count)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no registrars were given");
	for (i = 0; i < count; i++) {
		if (!registrars[i])
			return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
					"registrar %" PRIu32 " is NULL", i);
		/* Twice the same would register every buffer twice at one device. */
		for (j = 0; j < i && registrars[j] != registrars[i]; j++)
			;
		if (j < i)
			return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
					"give each registrar once",
					"registrars %" PRIu32 " and %" PRIu32 " are the same", j,
					i);
	}
	return 0;
}

static int fail_late(const struct kvp_registrar *registrar, struct kvp_error *error)
{
	kvp_fail(error, -ETIMEDOUT, KVP_PHASE_CHECK, KVP_NONE, NULL,
		 "see what the store does; nothing was asked of it",
		 "registrar %s: an earlier call has run for more than %" PRIu64 " ms",
		 registrar->name, registrar->ops.time_limit / 1000000);
	if (error)
		error->repeated = 1;
	return -ETIMEDOUT;
}

/* None of them still runs a call that has passed its time limit. */
static int check_late(const struct kvp_registrar_set *set, struct kvp_error *error)
{
	uint32_t i;

	for (i = 0; i < set->count; i++)
		if (kvp_registrar_late(set->registrars[i]))
			return fail_late(set->registrars[i], error);
	return 0;
}

/* Everything that can be known before the first call of a registrar. */
static int prepare(struct transaction *transaction, struct kvp_error *error)
{
	struct kvp_registration *registration = transaction->registration;
	const struct kvp_buffer *buffers;
	struct kvp_plan plan = { 0 };
	const uint32_t *index;
	struct kvp_span *spans;
	uint32_t count;
	int err, collected;

	buffers = kvp_list_buffers(transaction->list, &count);
	index = kvp_list_index(transaction->list, &count);
	spans = calloc(count, sizeof(*spans));
	if (!spans)
		return kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no memory to check %" PRIu32 " buffers", count);
	err = kvp_check_spans(transaction->ctx, transaction->domain, buffers, index, count, NULL,
			      spans, error);
	/* Whose buffers failed: what a fallback then means, it means for their pools as well. */
	collected = kvp_states_collect(registration, spans, count, err ? NULL : error);
	if (!err)
		err = collected;
	if (!err)
		err = check_late(&registration->set, error);
	if (!err)
		err = kvp_registration_quarantine_check(transaction->ctx, transaction->list, error);
	if (!err)
		err = kvp_plan_build(transaction->list, spans, &registration->set, &plan, error);
	if (!err && kvp_registration_take(registration, &plan))
		err = kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
			       "no memory for the record of %" PRIu32 " registrations", plan.count);
	kvp_plan_free(&plan);
	free(spans);
	return err;
}

static int commit(struct transaction *transaction, struct kvp_error *error)
{
	bool foreign;
	int ret, err;

	/*
	 * Before the caller hears of it: if this process dies in between, a pool
	 * that the caller may have told others about is kept rather than ended.
	 */
	err = kvp_log_commit(transaction->registration, error);
	if (err)
		return err;
	kvp_registration_committed(transaction->registration);
	if (!transaction->options.commit)
		return 0;
	ret = transaction->options.commit(transaction->registration, transaction->options.arg);
	if (!ret)
		return 0;
	err = kvp_returned(ret, &foreign);
	return kvp_fail(error, err, KVP_PHASE_COMMIT, KVP_NONE, NULL,
			"nothing of this transaction is registered any more",
			"the commit function returned %d", ret);
}

/* Say what the undoing left behind, without touching the first error. */
static void report_quarantine(uint32_t failed, struct kvp_error *error)
{
	const size_t used = strlen(error->advice);
	char *end = error->advice + used;

	snprintf(end, sizeof(error->advice) - used,
		 "%s%" PRIu32 " of its registrations could not be undone: call kvp_unregister()",
		 used ? "; " : "", failed);
}

/* Returns how many entries are left, quarantined; `why` is the first failure, or err 0. */
static uint32_t undo(struct kvp_registration *registration, struct kvp_error *why)
{
	uint32_t failed;

	memset(why, 0, sizeof(*why));
	/* Before the first is undone, so that nobody registers that memory meanwhile. */
	kvp_registration_set(registration, &registration->ending);
	failed = kvp_execute_undo(registration, why);
	kvp_registration_compact(registration, why);
	return failed;
}

/*
 * End a transaction that failed with `err`: undo it, and follow the policy.
 * Returns what kvp_register() returns; the registration that is left holds what
 * is quarantined, or is NULL.
 */
static int fail(struct transaction *transaction, int err, struct kvp_error *error)
{
	struct kvp_registration *registration = transaction->registration;
	struct kvp_ctx *ctx = registration->ctx;
	enum kvp_registration_state state = KVP_REGISTRATION_FAILED;
	struct kvp_error why;
	uint32_t failed = 0;

	if (transaction->begun)
		failed = undo(registration, &why);
	/* Memory that a device may still write to is no memory to go on with. */
	if (ctx->policy == KVP_POLICY_FALLBACK_L2 && !failed)
		state = KVP_REGISTRATION_FALLBACK_L2;
	/* A transaction that never began has changed no state, unless it falls back. */
	if (transaction->begun || state == KVP_REGISTRATION_FALLBACK_L2)
		kvp_states_end(registration, state);
	kvp_report_note(ctx, registration->report, state, error);
	if (failed) {
		report_quarantine(failed, error);
		return err;
	}
	if (state == KVP_REGISTRATION_FALLBACK_L2) {
		kvp_policy_tell(registration, transaction->domain, transaction->list, error);
		err = KVP_FALLBACK;
	}
	kvp_registration_free(registration);
	transaction->registration = NULL;
	return err;
}

static int run(struct transaction *transaction, struct kvp_error *error)
{
	struct kvp_registration *registration = transaction->registration;
	int err;

	err = prepare(transaction, error);
	if (!err) {
		kvp_registration_created(registration);
		err = kvp_log_begin(registration, transaction->domain, error);
	}
	if (!err)
		kvp_registration_publish(registration);
	if (!err)
		err = kvp_states_begin(registration, error);
	if (!err) {
		transaction->begun = true;
		err = kvp_execute_register(registration, error);
	}
	if (!err)
		err = commit(transaction, error);
	if (err)
		return fail(transaction, err, error);
	kvp_registration_set(registration, &registration->committed);
	/*
	 * After the caller's own commit, so that sysfs never says it before it is
	 * true. A failure can't call that back, and is not told.
	 */
	kvp_states_end(registration, KVP_REGISTRATION_COMMITTED);
	kvp_report_note(registration->ctx, registration->report, KVP_REGISTRATION_COMMITTED, NULL);
	return 0;
}

KVP_EXPORT int kvp_register(struct kvp_ctx *ctx, const char *domain, const struct kvp_list *list,
			    struct kvp_registrar *const *registrars, uint32_t count,
			    const struct kvp_transaction_options *options,
			    struct kvp_registration **result, struct kvp_error *error)
{
	struct transaction transaction = { .ctx = ctx, .domain = domain, .list = list };
	struct kvp_report_item *report;
	struct kvp_error first = { 0 };
	int err;

	if (!ctx || !result)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no %s was given", ctx ? "place for the registration" : "context");
	*result = NULL;
	err = kvp_options_copy(&transaction.options, sizeof(transaction.options), options);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"set them up with KVP_INIT(struct kvp_transaction_options)",
				"kvp_transaction_options of %zu bytes, the library knows %zu",
				options->struct_size, sizeof(*options));
	if (transaction.options.threads > MOST_THREADS)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"one for each device and processor is enough",
				"%" PRIu32 " threads, the most is %d", transaction.options.threads,
				MOST_THREADS);
	err = kvp_list_ready(list, error);
	if (!err)
		err = kvp_check_domain(domain, error);
	if (!err)
		err = check_registrars(registrars, count, error);
	if (!err)
		err = kvp_report_find(ctx, transaction.options.name, &report, error);
	if (err)
		return err;
	err = kvp_registration_new(ctx, registrars, count, &transaction.registration);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no memory for the registration");
	transaction.registration->report = report;
	transaction.registration->crew = (struct kvp_crew){
		.threads = transaction.options.threads,
		.run = transaction.options.run,
		.arg = transaction.options.run_arg,
	};
	kvp_report_list(ctx, report, domain, list);
	err = run(&transaction, &first);
	*result = transaction.registration;
	if (err && error)
		*error = first;
	return err;
}

KVP_EXPORT int kvp_unregister(struct kvp_ctx *ctx, struct kvp_registration **registration_at,
			      struct kvp_error *error)
{
	struct kvp_registration *registration = registration_at ? *registration_at : NULL;
	struct kvp_error first;

	if (!registration)
		return 0;
	if (registration->ctx != ctx)
		return kvp_fail(error, -EINVAL, KVP_PHASE_UNDO, KVP_NONE, NULL,
				"give the context that it was registered with",
				"the registration belongs to another context");
	kvp_log_retry(registration);
	if (undo(registration, &first)) {
		if (registration->committed)
			kvp_states_end(registration, KVP_REGISTRATION_FAILED);
		kvp_report_note(ctx, registration->report, KVP_REGISTRATION_FAILED, &first);
		if (error)
			*error = first;
		return first.err;
	}
	/* What was undone with the transaction stays FAILED: nothing was in force to end. */
	if (registration->committed) {
		kvp_states_end(registration, KVP_REGISTRATION_ALLOCATED);
		kvp_report_note(ctx, registration->report, KVP_REGISTRATION_ALLOCATED, NULL);
	}
	kvp_registration_free(registration);
	*registration_at = NULL;
	return 0;
}

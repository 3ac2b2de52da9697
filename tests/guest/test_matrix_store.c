// SPDX-License-Identifier: GPL-2.0
/*
 * The matrix of an inference server's registrations: the store does not answer as
 * it should. Fault 7: it dies or hangs while it registers, unregisters, or is asked
 * by a recovery; and answers that are wrong.
 */
#include "matrix.h"

#define TARGET "target0+0 target0+1 target0+2"
#define DRAFT "draft0+0 draft0+1 draft0+2"
#define ONE_COMMITTED "draft0:FAILED target0:COMMITTED"

static struct store store;
static struct rank rank;

static const char *const objects[] = { STORE_OBJECT, STORE_BATCH };
#define EACH_OBJECT(n) (size_t n = 0; n < sizeof(objects) / sizeof(objects[0]); n++)

/* For calls that hang: an emulated guest answers a message in milliseconds. */
#define LIMIT ((uint64_t)4000000000)
#define LATE "has run for more than 4000 ms"

static void set_up(const char *object, uint64_t time_limit)
{
	store_start(&store);
	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	rank_use(&rank, store_registrar(&store, object, time_limit));
	EQUAL(part_register(&rank, &rank.target), 0);
	store_calls(&store);
}

static void tear_down(void)
{
	rank_close(&rank);
	STATE(NULL, "", &store, "", 0);
	store_end(&store);
}

static void goes_wrong(enum store_op op, enum store_how how, uint32_t at, bool after)
{
	store_fault(&store, (struct store_fault){ .op = op, .how = how, .at = at,
						  .after = after });
}

/* What is quarantined is neither registered again nor freed. */
static void is_quarantined(const struct part *part, uint32_t entries)
{
	struct kvp_registration *second = NULL;
	struct kvp_report report;

	CHECK(part->registration);
	CHECK(!part->visible);
	EQUAL(kvp_registration_count(part->registration), entries);
	for (uint32_t i = 0; i < entries; i++)
		EQUAL(kvp_registration_entry(part->registration, i)->quarantined, 1);
	kvp_report_get(rank.ctx, &report);
	EQUAL(report.quarantined, entries);
	RETURNS(-EBUSY, kvp_register(rank.ctx, "kv", part->list, rank.registrars,
				     rank.registrar_count, NULL, &second, &error));
	EQUAL(last_error.repeated, 1);
	CHECK(part_is_filled(part));
}

/* -------------------------------------------------------------------- it dies */

static void dies_registering(const char *object, uint32_t at, bool after)
{
	set_up(object, 0);
	goes_wrong(STORE_REGISTER, STORE_DIES, at, after);
	EQUAL(part_register(&rank, &rank.draft), -ETIMEDOUT);
	EQUAL(last_error.phase, KVP_PHASE_REGISTER);
	store_await(&store);
	/* Of a batch nobody knows how far it came. */
	is_quarantined(&rank.draft, object == objects[0] ? at + 1 : PAGES);
	STATE(rank.ctx, ONE_COMMITTED, NULL, "", 1);
	EQUAL(part_unregister(&rank, &rank.draft), -ECONNREFUSED);
	STATE(rank.ctx, ONE_COMMITTED, NULL, "", 1);

	/* It comes back, and has forgotten everything: then nothing is registered. */
	store_start(&store);
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	EQUAL(part_unregister(&rank, &rank.target), 0);
	STATE(rank.ctx, "draft0:FAILED target0:ALLOCATED", &store, "", 1);
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:COMMITTED target0:COMMITTED", &store, TARGET " " DRAFT, 1);
	tear_down();
}

static void fault_7_dies_registering(void)
{
	for EACH_OBJECT(i)
		for (uint32_t at = 0; at < PAGES; at++)
			dies_registering(objects[i], at, at % 2);
	dies_registering(STORE_OBJECT, 0, true);
}

static void dies_unregistering(const char *object, uint32_t at, bool after)
{
	set_up(object, LIMIT);
	EQUAL(part_register(&rank, &rank.draft), 0);
	goes_wrong(STORE_UNREGISTER, STORE_DIES, at, after);
	EQUAL(part_unregister(&rank, &rank.draft), -ETIMEDOUT);
	EQUAL(last_error.phase, KVP_PHASE_UNDO);
	store_await(&store);
	is_quarantined(&rank.draft, object == objects[0] ? PAGES - at : PAGES);
	STATE(rank.ctx, ONE_COMMITTED, NULL, "", 1);
	store_start(&store);
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, "", 1);
	tear_down();
}

static void fault_7_dies_unregistering(void)
{
	for EACH_OBJECT(i)
		for (uint32_t at = 0; at < PAGES; at++)
			dies_unregistering(objects[i], at, !(at % 2));
}

/* A server that registers both, and ends without a word. */
static void leave(void *arg)
{
	(void)arg;
	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	rank_use(&rank, store_registrar(&store, STORE_OBJECT, 0));
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), 0);
}

static void dies_in_recovery(uint32_t at, bool after)
{
	struct kvp_recovery_report report;
	struct kvp_registrar *registrar;
	char want[100];

	store_start(&store);
	EQUAL(wait_child(child(leave, NULL)), 0);
	STATE(NULL, "", &store, TARGET " " DRAFT, 1);
	registrar = store_registrar(&store, STORE_OBJECT, LIMIT);
	goes_wrong(STORE_UNREGISTER, STORE_DIES, at, after);
	report = recover(registrar);
	store_await(&store);
	EQUAL(report.count[KVP_RECOVERY_ENTRY_UNDONE], at);
	EQUAL(report.count[KVP_RECOVERY_ENTRY_QUARANTINED], 2 * PAGES - at);
	STATE(NULL, "", NULL, "", 1);
	/* Not back yet; then back, with the same registrar. */
	report = recover(registrar);
	snprintf(want, sizeof(want), "kept=1 entry-quarantined=%u pool-gone=2", 2 * PAGES - at);
	SAME(recovered(&report), want);
	store_start(&store);
	report = recover(registrar);
	snprintf(want, sizeof(want), "removed=1 entry-undone=%u pool-gone=2", 2 * PAGES - at);
	SAME(recovered(&report), want);
	STATE(NULL, "", &store, "", 0);
	kvp_registrar_free(registrar);
	store_end(&store);
}

static void fault_7_dies_in_recovery(void)
{
	dies_in_recovery(0, false);
	dies_in_recovery(2, true);
	dies_in_recovery(2 * PAGES - 1, false);
}

/* ------------------------------------------------------------------- it hangs */

/* A thread that was joined is counted until the kernel has ended it, a moment later. */
static long threads(void)
{
	return proc_kib("/proc/self/status", "Threads:");
}

static void hangs_registering(const char *object, uint32_t at, bool after)
{
	set_up(object, LIMIT);
	goes_wrong(STORE_REGISTER, STORE_HANGS, at, after);
	/* It comes back though the store does not answer. */
	EQUAL(part_register(&rank, &rank.draft), -ETIMEDOUT);
	EQUAL(last_error.phase, KVP_PHASE_REGISTER);
	SAYS("the call " LATE);
	CHECK(rank.draft.registration && !rank.draft.visible);
	EQUAL(kvp_registration_count(rank.draft.registration),
	      object == objects[0] ? at + 1 : PAGES);
	STATE(rank.ctx, ONE_COMMITTED, NULL, "", 1);
	/* Nothing more is asked of it, and what fails says why. */
	EQUAL(part_unregister(&rank, &rank.draft), -ETIMEDOUT);
	EQUAL(last_error.repeated, 1);
	SAYS("an earlier call " LATE);
	STATE(rank.ctx, ONE_COMMITTED, NULL, "", 1);

	/* It goes on, and does what nobody waits for any more: that is undone too. */
	store_release(&store);
	UNTIL(!part_unregister(&rank, &rank.draft));
	STATE(rank.ctx, ONE_COMMITTED, &store, TARGET, 1);
	EQUAL(part_register(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:COMMITTED target0:COMMITTED", &store, TARGET " " DRAFT, 1);
	tear_down();
	UNTIL(threads() == 1);
}

static void fault_7_hangs_registering(void)
{
	hangs_registering(STORE_OBJECT, 0, false);
	hangs_registering(STORE_OBJECT, PAGES - 1, true);
	hangs_registering(STORE_BATCH, 1, false);
	hangs_registering(STORE_BATCH, 1, true);
}

static void hangs_unregistering(const char *object, uint32_t at, bool after)
{
	set_up(object, LIMIT);
	EQUAL(part_register(&rank, &rank.draft), 0);
	goes_wrong(STORE_UNREGISTER, STORE_HANGS, at, after);
	EQUAL(part_unregister(&rank, &rank.draft), -ETIMEDOUT);
	EQUAL(kvp_registration_count(rank.draft.registration),
	      object == objects[0] ? PAGES - at : PAGES);
	/* The other pool's is not known to be wrong: it stays as it is. */
	STATE(rank.ctx, ONE_COMMITTED, NULL, "", 1);
	store_release(&store);
	UNTIL(!part_unregister(&rank, &rank.draft));
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
	tear_down();
	UNTIL(threads() == 1);
}

static void fault_7_hangs_unregistering(void)
{
	hangs_unregistering(STORE_OBJECT, 1, false);
	hangs_unregistering(STORE_BATCH, 1, true);
}

/* The process ends while the store hangs, and a recovery comes before it goes on. */
static void register_and_wait(int line)
{
	rank_open(&rank, 0, KVP_LIFETIME_PERSISTENT);
	rank_use(&rank, store_registrar(&store, STORE_OBJECT, 0));
	EQUAL(part_register(&rank, &rank.target), 0);
	tell(line);
	await(line);
	part_register(&rank, &rank.draft);
	FAIL("the store did not hang");
}

static void fault_7_hangs_in_recovery(void)
{
	struct kvp_recovery_report report;
	struct kvp_registrar *registrar;
	pid_t pid;
	int line;

	store_start(&store);
	pid = partner(register_and_wait, &line);
	await(line);
	goes_wrong(STORE_REGISTER, STORE_HANGS, 1, false);
	tell(line);
	UNTIL(store_hangs(&store));
	kill_now(pid);
	registrar = store_registrar(&store, STORE_OBJECT, LIMIT);
	report = recover(registrar);
	SAME(recovered(&report), "kept=1 entry-quarantined=5 pool-left=2");
	STATE(NULL, "draft0:REGISTERING target0:COMMITTED", &store, TARGET " draft0+0", 1);
	/* It can be freed while its call runs: the thread ends with the call. */
	kvp_registrar_free(registrar);
	CHECK(threads() > 1);

	/* The store goes on, and first registers what the dead process had asked for. */
	store_calls(&store);
	store_release(&store);
	SAME(store_calls(&store), "+draft0+1 -draft0+1");
	UNTIL(threads() == 1);
	registrar = store_registrar(&store, STORE_OBJECT, LIMIT);
	report = recover(registrar);
	SAME(recovered(&report), "removed=1 entry-undone=5 pool-destroyed=1 pool-left=1");
	STATE(NULL, "target0:COMMITTED", &store, "", 0);
	EQUAL(shell("kvpoolctl destroy target0 >/dev/null"), 0);
	kvp_registrar_free(registrar);
	store_end(&store);
}

/* ------------------------------------------------------------- it answers wrongly */

static void no_answer(const char *object, enum store_how how, bool after)
{
	set_up(object, 0);
	/* Not known whether it was done: so that is undone as well. */
	goes_wrong(STORE_REGISTER, how, 1, after);
	EQUAL(part_register(&rank, &rank.draft), -ETIMEDOUT);
	part_is_hidden(&rank.draft);
	STATE(rank.ctx, ONE_COMMITTED, &store, TARGET, 1);
	EQUAL(part_register(&rank, &rank.draft), 0);
	goes_wrong(STORE_UNREGISTER, how, 1, after);
	EQUAL(part_unregister(&rank, &rank.draft), -ETIMEDOUT);
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
	tear_down();
}

static void fault_7_no_answer(void)
{
	for EACH_OBJECT(i) {
		no_answer(objects[i], STORE_ANSWERS_GARBAGE, true);
		no_answer(objects[i], STORE_HANGS_UP, false);
		no_answer(objects[i], STORE_HANGS_UP, true);
	}
}

/*
 * A lie is believed, since nobody else knows. But the kernel counts what the
 * store has mapped: the memory is not freed under it.
 */
static void fault_7_lies(void)
{
	set_up(STORE_OBJECT, 0);
	/* It says that it failed, and has it. */
	store_fault(&store, (struct store_fault){ .op = STORE_REGISTER, .how = STORE_RETURNS,
						  .at = 1, .after = 1, .code = 600 });
	EQUAL(part_register(&rank, &rank.draft), -EREMOTEIO);
	part_is_hidden(&rank.draft);
	STATE(rank.ctx, ONE_COMMITTED, &store, TARGET " draft0+1", 1);
	EQUAL(kvp_pool_unmap(rank.draft.pool), 0);
	RETURNS(-EBUSY, kvp_pool_destroy(rank.ctx, kvp_pool_id(rank.draft.pool),
					 kvp_pool_generation(rank.draft.pool), 0, &error));
	SAYS("1 mappings");
	/* It says that it does not have what it has. */
	store_fault(&store, (struct store_fault){ .op = STORE_UNREGISTER, .how = STORE_RETURNS,
						  .code = -ENOENT });
	EQUAL(part_unregister(&rank, &rank.target), 0);
	STATE(rank.ctx, "draft0:FAILED target0:ALLOCATED", &store, "target0+2 draft0+1", 1);
	EQUAL(kvp_pool_unmap(rank.target.pool), 0);
	RETURNS(-EBUSY, kvp_pool_destroy(rank.ctx, kvp_pool_id(rank.target.pool),
					 kvp_pool_generation(rank.target.pool), 0, &error));
	/* Only the end of the store ends that. */
	store_kill(&store);
	RETURNS(0, kvp_pool_destroy(rank.ctx, kvp_pool_id(rank.target.pool),
				    kvp_pool_generation(rank.target.pool), 0, &error));
	RETURNS(0, kvp_pool_destroy(rank.ctx, kvp_pool_id(rank.draft.pool),
				    kvp_pool_generation(rank.draft.pool), 0, &error));
	kvp_registrar_free(rank.registrars[0]);
	kvp_pool_close(rank.target.pool);
	kvp_pool_close(rank.draft.pool);
	kvp_close(rank.ctx);
	STATE(NULL, "", NULL, "", 0);
}

static void fault_7_is_not_there(void)
{
	struct kvp_load_options options = KVP_INIT(struct kvp_load_options);
	struct kvp_registrar *registrar = NULL;

	options.path = STORE_OBJECT;
	options.config = "/tmp/no-such-store";
	RETURNS(-ECONNREFUSED, kvp_registrar_load(&options, &registrar, &error));
	EQUAL(last_error.phase, KVP_PHASE_CONNECT);
	CHECK(!registrar);
	options.time_limit = LIMIT;
	RETURNS(-ECONNREFUSED, kvp_registrar_load(&options, &registrar, &error));
	UNTIL(threads() == 1);
}

int main(void)
{
	ROW(fault_7_dies_registering);
	ROW(fault_7_dies_unregistering);
	ROW(fault_7_dies_in_recovery);
	ROW(fault_7_hangs_registering);
	ROW(fault_7_hangs_unregistering);
	ROW(fault_7_hangs_in_recovery);
	ROW(fault_7_no_answer);
	ROW(fault_7_lies);
	ROW(fault_7_is_not_there);
	return cases_end();
}

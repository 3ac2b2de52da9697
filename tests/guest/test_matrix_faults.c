// SPDX-License-Identifier: GPL-2.0
/*
 * The matrix of an inference server's registrations: a store that refuses. Faults
 * 1 to 4: the target is registered, and the draft's registration fails.
 */
#include "matrix.h"

#define TARGET "target0+0 target0+1 target0+2"

static struct store store;
static struct rank rank;

static const char *const objects[] = { STORE_OBJECT, STORE_BATCH };
/* As a store in Python returns it, an errno, and an engine's own code. */
static const int codes[] = { -1, -ENOMEM, 600 };

static void set_up(const char *object, const struct kvp_options *options)
{
	store_start(&store);
	rank_open_with(&rank, 0, KVP_LIFETIME_OWNER, options);
	rank_use(&rank, store_registrar(&store, object, 0));
	EQUAL(part_register(&rank, &rank.target), 0);
	store_calls(&store);
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
}

static void tear_down(void)
{
	rank_close(&rank);
	STATE(NULL, "", &store, "", 0);
	store_end(&store);
}

static void refuse(enum store_op op, uint32_t at, int code)
{
	store_fault(&store, (struct store_fault){ .op = op, .how = STORE_RETURNS, .at = at,
						  .code = code });
}

/* The draft's registration fails at buffer n; nothing of it is left, and the target stays. */
static void fails_at(uint32_t n, int code)
{
	char want[400] = "";

	refuse(STORE_REGISTER, n, code);
	EQUAL(part_register(&rank, &rank.draft), code > 0 ? -EREMOTEIO : code);
	EQUAL(last_error.phase, KVP_PHASE_REGISTER);
	EQUAL(last_error.index, n);
	SAME(last_error.device, STORE_NAME);
	/* Those before it, the last first, each once; none was asked for behind it. */
	for (uint32_t i = 0; i < n; i++)
		sprintf(want + strlen(want), "+draft0+%" PRIu32 " ", i);
	sprintf(want + strlen(want), "+draft0+%" PRIu32 "!%d", n, code);
	for (uint32_t i = n; i--;)
		sprintf(want + strlen(want), " -draft0+%" PRIu32, i);
	SAME(store_calls(&store), want);
	part_is_hidden(&rank.draft);
	STATE(rank.ctx, "draft0:FAILED target0:COMMITTED", &store, TARGET, 1);
	/* What this path has made it destroys, once. */
	part_destroy(&rank, &rank.draft);
	STATE(rank.ctx, "target0:COMMITTED", &store, TARGET, 1);
	CHECK(part_is_filled(&rank.target));
	part_allocate(&rank, &rank.draft);
}

static void fault_1_first_buffer(void)
{
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		set_up(objects[i], NULL);
		for (size_t j = 0; j < sizeof(codes) / sizeof(codes[0]); j++)
			fails_at(0, codes[j]);
		tear_down();
	}
}

static void fault_2_each_buffer(void)
{
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		set_up(objects[i], NULL);
		for (uint32_t n = 0; n < PAGES; n++)
			fails_at(n, codes[n % (sizeof(codes) / sizeof(codes[0]))]);
		/* Nothing of it stands in the way of one that works. */
		EQUAL(part_register(&rank, &rank.draft), 0);
		STATE(rank.ctx, "draft0:COMMITTED target0:COMMITTED", &store,
		      TARGET " draft0+0 draft0+1 draft0+2", 1);
		tear_down();
	}
}

/* ------------------------------------------------------------------- fallback */

static char logged[2000];
static int log_count;

static void keep_line(const char *line, void *arg)
{
	CHECK(arg == logged);
	snprintf(logged, sizeof(logged), "%s", line);
	log_count++;
}

/* A request: what the server answers with, from the pages that it has in memory. */
static uint64_t answer(void)
{
	uint64_t sum = 0;

	for (uint32_t page = 0; page < PAGES; page++)
		for (uint32_t i = 0; i < BLOCK; i += 4096)
			sum = sum * 31 + *(const uint64_t *)(rank.target.addr + page * BLOCK + i) +
			      *(const uint64_t *)(rank.draft.addr + page * BLOCK + i);
	return sum;
}

static void expect_in_log(const char *part)
{
	if (!strstr(logged, part))
		FAIL("the line does not have %s: %s", part, logged);
}

static int find_draft(const struct kvp_report_entry *entry, void *arg)
{
	if (!strcmp(entry->name, "draft"))
		*(struct kvp_report_entry *)arg = *entry;
	return 0;
}

static void fault_3_fallback(void)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_report_entry entry = { .length = 0 };
	struct kvp_report report;
	uint64_t with, without;
	char line[500];

	options.policy = KVP_POLICY_FALLBACK_L2;
	options.log = keep_line;
	options.log_arg = logged;
	options.client_mode = "standalone";
	set_up(STORE_OBJECT, &options);
	EQUAL(part_register(&rank, &rank.draft), 0);
	with = answer();
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	rank.draft.commits = 0;
	EQUAL(log_count, 0);
	kvp_report_get(rank.ctx, &report);
	EQUAL(report.fallbacks, 0);

	/* Ready, without the draft at the store; and it says so everywhere. */
	refuse(STORE_REGISTER, 1, -1);
	EQUAL(part_register(&rank, &rank.draft), KVP_FALLBACK);
	part_is_hidden(&rank.draft);
	STATE(rank.ctx, "draft0:FALLBACK_L2 target0:COMMITTED", &store, TARGET, 1);
	kvp_report_get(rank.ctx, &report);
	EQUAL(report.policy, KVP_POLICY_FALLBACK_L2);
	EQUAL(report.fallbacks, 1);
	EQUAL(report.failures, 0);
	EQUAL(report.committed, 2);
	EQUAL(report.registered, PAGES);
	EQUAL(report.quarantined, 0);
	SAME(report.client_mode, "standalone");
	EQUAL(kvp_report_each(rank.ctx, find_draft, &entry), 0);
	EQUAL(entry.state, KVP_REGISTRATION_FALLBACK_L2);
	EQUAL(entry.fallbacks, 1);
	EQUAL(entry.buffers, PAGES);
	EQUAL(entry.length, PAGES * BLOCK);
	EQUAL(entry.first.err, -1);
	EQUAL(entry.first.index, 1);
	kvp_report_format(&entry, line, sizeof(line));
	CHECK(strstr(line, "draft: fallback-l2, domain kv, 3 buffers, 6291456 bytes: "));
	EQUAL(log_count, 1);
	expect_in_log("\"event\":\"fallback_l2\"");
	expect_in_log("\"transaction\":\"draft\"");
	expect_in_log("\"client_mode\":\"standalone\"");
	expect_in_log("\"name\":\"draft0\"");
	expect_in_log("\"errno\":1");
	EQUAL(shell("kvpoolctl show draft0 | grep -q 'registration: *fallback-l2'"), 0);

	/* The same answers. */
	without = answer();
	EQUAL(with == without, 1);
	CHECK(part_is_filled(&rank.target) && part_is_filled(&rank.draft));

	/* It may come back while the server runs. */
	EQUAL(part_register(&rank, &rank.draft), 0);
	EQUAL(answer() == with, 1);
	STATE(rank.ctx, "draft0:COMMITTED target0:COMMITTED", &store,
	      TARGET " draft0+0 draft0+1 draft0+2", 1);
	kvp_report_get(rank.ctx, &report);
	EQUAL(report.fallbacks, 1);
	EQUAL(log_count, 1);
	tear_down();
}

/* A device may still write to what is quarantined: that is no memory to fall back on. */
static void fault_3_no_fallback_with_quarantine(void)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_report report;

	options.policy = KVP_POLICY_FALLBACK_L2;
	set_up(STORE_OBJECT, &options);
	refuse(STORE_REGISTER, 1, -ENOMEM);
	refuse(STORE_UNREGISTER, 0, -EIO);
	EQUAL(part_register(&rank, &rank.draft), -ENOMEM);
	CHECK(rank.draft.registration);
	STATE(rank.ctx, "draft0:FAILED target0:COMMITTED", &store, TARGET " draft0+0", 1);
	kvp_report_get(rank.ctx, &report);
	EQUAL(report.fallbacks, 0);
	EQUAL(report.failures, 1);
	EQUAL(report.quarantined, 1);
	tear_down();
}

/* ----------------------------------------------------------------- quarantine */

/* Buffer `stays` can't be unregistered when the last of the draft fails. */
static void quarantined(uint32_t stays)
{
	const uint32_t id = kvp_pool_id(rank.draft.pool);
	const uint64_t generation = kvp_pool_generation(rank.draft.pool);
	struct kvp_registration *second = NULL;
	const struct kvp_entry *entry;
	char held[200], calls[200] = "+draft0+0 +draft0+1 +draft0+2!-28";

	refuse(STORE_REGISTER, PAGES - 1, -ENOSPC);
	refuse(STORE_UNREGISTER, PAGES - 2 - stays, -EIO);
	EQUAL(part_register(&rank, &rank.draft), -ENOSPC);
	EQUAL(last_error.phase, KVP_PHASE_REGISTER);
	EQUAL(last_error.index, PAGES - 1);
	SAYS("1 of its registrations could not be undone");
	for (uint32_t i = PAGES - 1; i--;)
		sprintf(calls + strlen(calls), " -draft0+%" PRIu32 "%s", i,
			i == stays ? "!-5" : "");
	SAME(store_calls(&store), calls);
	/* It alone is left, and nobody is told of a registration. */
	CHECK(!rank.draft.visible && !rank.draft.commits);
	EQUAL(kvp_registration_count(rank.draft.registration), 1);
	entry = kvp_registration_entry(rank.draft.registration, 0);
	EQUAL(entry->quarantined, 1);
	EQUAL(entry->index, stays);
	snprintf(held, sizeof(held), TARGET " draft0+%" PRIu32, stays);
	STATE(rank.ctx, "draft0:FAILED target0:COMMITTED", &store, held, 1);

	/* Its memory is not used again: neither registered, nor freed. */
	RETURNS(-EBUSY, kvp_register(rank.ctx, "kv", rank.draft.list, rank.registrars,
				     rank.registrar_count, NULL, &second, &error));
	EQUAL(last_error.repeated, 1);
	EQUAL(last_error.index, stays);
	EQUAL(query(rank.draft.pool).mappings, 2);
	RETURNS(-EBUSY, kvp_pool_destroy(rank.ctx, id, generation, 0, &error));
	CHECK(part_is_filled(&rank.draft));
	SAME(store_calls(&store), "");
	STATE(rank.ctx, "draft0:FAILED target0:COMMITTED", &store, held, 1);

	/* It fails once more, then it works. */
	refuse(STORE_UNREGISTER, 0, 77);
	EQUAL(part_unregister(&rank, &rank.draft), -EREMOTEIO);
	STATE(rank.ctx, "draft0:FAILED target0:COMMITTED", &store, held, 1);
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:FAILED target0:COMMITTED", &store, TARGET, 1);
	EQUAL(part_register(&rank, &rank.draft), 0);
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	STATE(rank.ctx, "draft0:ALLOCATED target0:COMMITTED", &store, TARGET, 1);
	rank.draft.commits = 0;
	store_calls(&store);
}

static void fault_4_unregister_fails_in_rollback(void)
{
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		set_up(objects[i], NULL);
		for (uint32_t stays = 0; stays < PAGES - 1; stays++)
			quarantined(stays);
		tear_down();
	}
}

/* The process ends with it: recovery goes on where it stopped. */
static void die_with_quarantine(int line)
{
	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	rank_use(&rank, store_registrar(&store, STORE_OBJECT, 0));
	EQUAL(part_register(&rank, &rank.draft), -ENOSPC);
	EQUAL(kvp_registration_count(rank.draft.registration), 2);
	tell(line);
	await(line);
}

static void fault_4_recovered(void)
{
	struct kvp_recovery_report report;
	struct kvp_registrar *registrar;
	pid_t pid;
	int line;

	store_start(&store);
	refuse(STORE_REGISTER, PAGES - 1, -ENOSPC);
	store_fault(&store, (struct store_fault){ .op = STORE_UNREGISTER, .how = STORE_RETURNS,
						  .times = 3, .code = -EIO });
	pid = partner(die_with_quarantine, &line);
	await(line);
	STATE(NULL, "draft0:FAILED target0:ALLOCATED", &store, "draft0+0 draft0+1", 1);
	kill_now(pid);
	store_calls(&store);
	registrar = store_registrar(&store, STORE_OBJECT, 0);
	report = recover(registrar);
	/* The third failure, and then the last of the two is gone. */
	SAME(store_calls(&store), "-draft0+1!-5 -draft0+0");
	SAME(recovered(&report), "kept=1 entry-undone=1 entry-quarantined=1 pool-left=1");
	EQUAL(report.first.err, -EIO);
	STATE(NULL, "", &store, "draft0+1", 1);
	report = recover(registrar);
	SAME(recovered(&report), "removed=1 entry-undone=1 pool-gone=1");
	STATE(NULL, "", &store, "", 0);
	report = recover(registrar);
	SAME(recovered(&report), "");
	kvp_registrar_free(registrar);
	store_end(&store);
}

int main(void)
{
	ROW(fault_1_first_buffer);
	ROW(fault_2_each_buffer);
	ROW(fault_3_fallback);
	ROW(fault_3_no_fallback_with_quarantine);
	ROW(fault_4_unregister_fails_in_rollback);
	ROW(fault_4_recovered);
	return cases_end();
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which pools recovery ends, of those that a dead context had in a transaction. */
#include <stdio.h>
#include <stdlib.h>

#include "fake_store.h"

/* A process that created pool 1 and died: after its commit, or in the middle before it. */
static void dies(bool committed, enum kvp_lifetime lifetime)
{
	fake_store_process(FAKE_EXIT, true, committed ? 0 : 5, false);
	fake_world_info(1)->lifetime = lifetime;
	fake_world_info(1)->state = lifetime == KVP_LIFETIME_OWNER ? KVP_STATE_ORPHAN :
								       KVP_STATE_LIVE;
}

static void recovers(const char *pool, const char *file)
{
	const char *events;
	char want[64];

	fake_store_recover(false);
	events = fake_store_events();
	snprintf(want, sizeof(want), "%s:1 %s", pool, file);
	if (!strstr(events, want))
		fail_msg("'%s' is not in '%s'", want, events);
	assert_int_equal(fake_store_held(), 0);
}

static void orphan_is_destroyed(void **state)
{
	(void)state;
	dies(false, KVP_LIFETIME_OWNER);
	recovers("pool-destroyed", "removed");
	assert_int_equal(fake_world_destroyed, 1);
}

static void committed_orphan_is_destroyed(void **state)
{
	(void)state;
	dies(true, KVP_LIFETIME_OWNER);
	recovers("pool-destroyed", "removed");
}

static void uncommitted_persistent_is_destroyed(void **state)
{
	(void)state;
	dies(false, KVP_LIFETIME_PERSISTENT);
	recovers("pool-destroyed", "removed");
}

static void committed_persistent_is_left(void **state)
{
	(void)state;
	dies(true, KVP_LIFETIME_PERSISTENT);
	recovers("pool-left", "removed");
	assert_int_equal(fake_world_destroyed, 0);
}

/* It ended its registration, and died later: its pool was committed all the same. */
static void once_committed_is_left(void **state)
{
	(void)state;
	fake_store_process(FAKE_UNREGISTER, true, 0, false);
	fake_world_info(1)->lifetime = KVP_LIFETIME_PERSISTENT;
	recovers("pool-left", "removed");
	assert_int_equal(fake_world_destroyed, 0);
}

static void claimed_is_left(void **state)
{
	(void)state;
	dies(false, KVP_LIFETIME_PERSISTENT);
	fake_world_info(1)->owned = 1;
	recovers("pool-left", "removed");
	assert_int_equal(fake_world_destroyed, 0);
}

static void of_others_is_left(void **state)
{
	(void)state;
	fake_store_process(FAKE_EXIT, false, 5, false);
	fake_world_info(1)->lifetime = KVP_LIFETIME_PERSISTENT;
	recovers("pool-left", "removed");
	assert_int_equal(fake_world_destroyed, 0);
}

static void gone_already(void **state)
{
	(void)state;
	dies(false, KVP_LIFETIME_OWNER);
	fake_world_info(1)->state = KVP_STATE_DYING;
	recovers("pool-gone", "removed");
	/* Its id is another pool's now. */
	dies(false, KVP_LIFETIME_OWNER);
	fake_world_info(1)->generation = 500;
	recovers("pool-gone", "removed");
	assert_int_equal(fake_world_destroyed, 0);
}

static void in_use(void **state)
{
	(void)state;
	/* The kernel ends an orphan with its last user: nothing to come back for. */
	fake_world_fail_destroy(-EBUSY);
	dies(false, KVP_LIFETIME_OWNER);
	recovers("pool-left", "removed");
	/* The other would stay for ever. */
	dies(false, KVP_LIFETIME_PERSISTENT);
	recovers("pool-left", "kept");
	assert_int_equal(fake_journal_files(), 1);
	fake_world_fail_destroy(0);
	recovers("pool-destroyed", "removed");
}

static void kernel_fails(void **state)
{
	struct kvp_recovery_report report;

	(void)state;
	dies(false, KVP_LIFETIME_PERSISTENT);
	fake_world_fail_destroy(-EPERM);
	report = fake_store_recover(false);
	assert_int_equal(report.count[KVP_RECOVERY_POOL_FAILED], 1);
	assert_int_equal(report.first.err, -EPERM);
	fake_world_fail_destroy(0);
	fake_world_fail_find(-EPROTO);
	report = fake_store_recover(false);
	assert_int_equal(report.first.err, -EPROTO);
	fake_world_fail_find(0);
	recovers("pool-destroyed", "removed");
}

/* Memory that another journal says a store still has is not freed. */
static void quarantined_by_another_journal(void **state)
{
	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	fake_store->undo_ret[1] = -EIO;
	fake_store_recover(false);
	dies(false, KVP_LIFETIME_PERSISTENT);
	fake_store_recover(false);
	assert_int_equal(fake_world_destroyed, 0);
	assert_int_equal(fake_journal_files(), 2);
	fake_store->undo_ret[1] = 0;
	fake_store_recover(false);
	fake_store_recover(false);
	assert_int_equal(fake_world_destroyed, 1);
	assert_int_equal(fake_journal_files(), 0);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "");
}

/* A pool that was in many transactions is one, whatever each of them says of it. */
static void told_once(void **state)
{
	struct kvp_journal_pool told[] = {
		{ .transaction = 1, .id = 2, .generation = 7, .created = 1 },
		{ .transaction = 1, .id = 1, .generation = 9, .committed = 1 },
		{ .transaction = 2, .id = 2, .generation = 7, .committed = 1 },
		{ .transaction = 3, .id = 2, .generation = 6, .created = 1 },
		{ .transaction = 4, .id = 2, .generation = 7 },
	};
	const struct kvp_journal journal = { .info.pools = 5, .pools = told };
	const struct kvp_journal none = { .info.pools = 0 };
	struct kvp_journal_pool *pools;
	uint32_t count;

	(void)state;
	assert_int_equal(kvp_recovery_pools_new(&journal, &pools, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(pools[0].id, 1);
	assert_true(!pools[0].created && pools[0].committed);
	assert_int_equal(pools[1].generation, 6);
	assert_true(pools[1].created && !pools[1].committed);
	assert_int_equal(pools[2].generation, 7);
	assert_true(pools[2].created && pools[2].committed);
	free(pools);
	assert_int_equal(kvp_recovery_pools_new(&none, &pools, &count), 0);
	assert_int_equal(count, 0);
	free(pools);
}

int main(void)
{
#define pool_test(function) \
	cmocka_unit_test_setup_teardown(function, fake_store_setup, fake_store_teardown)
	const struct CMUnitTest tests[] = {
		pool_test(orphan_is_destroyed),
		pool_test(committed_orphan_is_destroyed),
		pool_test(uncommitted_persistent_is_destroyed),
		pool_test(committed_persistent_is_left),
		pool_test(once_committed_is_left),
		pool_test(claimed_is_left),
		pool_test(of_others_is_left),
		pool_test(gone_already),
		pool_test(in_use),
		pool_test(kernel_fails),
		pool_test(quarantined_by_another_journal),
		pool_test(told_once),
	};

	return cmocka_run_group_tests(tests, fake_store_map, fake_store_unmap);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* query.c and stats.c: lists of pools and of pinned blocks, and the totals. */
#include "fake_kernel.h"

#define POOLS 100

struct seen {
	uint32_t ids[POOLS + 1];
	uint32_t count;
	struct kvp_ctx *ctx;	/* ask about every pool meanwhile */
	int stop_at;
};

static int see(const struct kvp_pool_info *info, void *arg)
{
	struct seen *seen = arg;
	struct kvp_pool_info again;

	assert_true(seen->count <= POOLS);
	seen->ids[seen->count++] = info->id;
	if (seen->ctx) {
		fake_find(info->id, info->generation);
		fake_datagram();
		fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_GET);
		fake_put_pool(info, 0, FAKE_WHOLE);
		fake_ack(0, NULL);
		assert_int_equal(kvp_pool_find(seen->ctx, info->id, info->generation, &again, NULL),
				 0);
	}
	return (int)seen->count == seen->stop_at ? 4711 : 0;
}

static void list_pools(uint32_t first, uint32_t count, uint16_t flags)
{
	struct kvp_pool_info pool = fake_pool_plain;
	uint32_t i;

	fake_datagram();
	for (i = 0; i < count; i++) {
		pool.id = first + i;
		fake_message(FAKE_FAMILY, (uint16_t)(NLM_F_MULTI | flags), KVPOOL_CMD_POOL_GET);
		fake_put_pool(&pool, 0, FAKE_WHOLE);
	}
}

static void list_request(void)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_GET, NLM_F_DUMP);
}

static void test_dump(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen = { .ctx = ctx };
	uint32_t i;

	(void)state;
	list_request();
	list_pools(1, 40, 0);
	list_pools(41, 60, 0);
	fake_datagram();
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_each(ctx, see, &seen, NULL), 0);
	assert_int_equal(seen.count, POOLS);
	for (i = 0; i < POOLS; i++)
		assert_int_equal(seen.ids[i], i + 1);

	/* None, the end mark in the datagram of the last pool, and a walk that is ended. */
	seen = (struct seen){ .count = 0 };
	list_request();
	fake_datagram();
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_each(ctx, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 0);
	list_request();
	list_pools(7, 3, 0);
	fake_done(0, NULL);
	seen.stop_at = 2;
	assert_int_equal(kvp_pool_each(ctx, see, &seen, NULL), 4711);
	assert_int_equal(seen.count, 2);
	kvp_close(ctx);
}

/* The header promises the order of ids, whatever the kernel's is. */
static void test_dump_order(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen = { .count = 0 };

	(void)state;
	list_request();
	list_pools(9, 2, 0);
	list_pools(3, 1, 0);
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_each(ctx, see, &seen, NULL), 0);
	assert_int_equal(seen.ids[0], 3);
	assert_int_equal(seen.ids[1], 9);
	assert_int_equal(seen.ids[2], 10);
	kvp_close(ctx);
}

static void test_dump_interrupted(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen = { .count = 0 };
	struct kvp_error error;
	int i;

	(void)state;
	/* On a pool, then on the end mark; each time it starts anew. */
	list_request();
	list_pools(1, 2, NLM_F_DUMP_INTR);
	list_pools(3, 2, 0);
	fake_done(0, NULL);
	list_request();
	list_pools(1, 5, 0);
	fake_done(0, NULL);
	fake_last()->nlmsg_flags |= NLM_F_DUMP_INTR;
	list_request();
	list_pools(21, 3, 0);
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_each(ctx, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.ids[0], 21);

	/* But not for ever. */
	seen.count = 0;
	for (i = 0; i < KVP_DUMP_TRIES; i++) {
		list_request();
		list_pools(1, 2, NLM_F_DUMP_INTR);
		fake_done(0, NULL);
	}
	assert_int_equal(kvp_pool_each(ctx, see, &seen, &error), -EAGAIN);
	fake_assert_error(&error, -EAGAIN, KVP_PHASE_REQUEST,
			  "list the pools: pools came and went during each of 8 attempts",
			  "call again");
	assert_int_equal(seen.count, 0);
	kvp_close(ctx);
}

static void assert_list_fails(struct kvp_ctx *ctx, int err, const char *message)
{
	struct seen seen = { .count = 0 };
	struct kvp_error error;

	assert_int_equal(kvp_pool_each(ctx, see, &seen, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, NULL);
	assert_int_equal(seen.count, 0);
}

static void test_dump_fails(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	/* Before the first pool, at the end, and with a message there. */
	list_request();
	fake_ack(-EPERM, "not you");
	assert_list_fails(ctx, -EPERM, "list the pools: not you");
	list_request();
	list_pools(1, 3, 0);
	fake_done(-ENOMEM, NULL);
	assert_list_fails(ctx, -ENOMEM, "list the pools");
	list_request();
	list_pools(1, 3, 0);
	fake_done(-ENOMEM, "too many");
	assert_list_fails(ctx, -ENOMEM, "list the pools: too many");
	list_request();
	list_pools(1, 3, 0);
	fake_receive_error(ENOBUFS);
	assert_list_fails(ctx, -ENOBUFS, "was lost");
	list_request();
	list_pools(1, 3, 0);
	fake_ack(0, NULL);
	assert_list_fails(ctx, -EPROTO, "without its end mark");
	list_request();
	list_pools(1, 3, 0);
	fake_done(0, NULL);
	fake_last()->nlmsg_len = NLMSG_HDRLEN;
	fake_cut(4);
	assert_list_fails(ctx, -EPROTO, "end mark is cut short");
	list_request();
	list_pools(1, 3, 0);
	fake_done(-5000, NULL);
	assert_list_fails(ctx, -EPROTO, "holds no errno");
	/* One malformed pool among others: the dump is read to its end. */
	list_request();
	list_pools(1, 3, 0);
	fake_message(FAKE_FAMILY, NLM_F_MULTI, KVPOOL_CMD_POOL_GET);
	fake_put_pool(&fake_pool_full, KVPOOL_A_POOL_NAME, FAKE_UNTERMINATED);
	list_pools(5, 3, 0);
	fake_done(0, NULL);
	assert_list_fails(ctx, -EPROTO, "malformed");
	kvp_close(ctx);
}

static void test_dump_no_memory(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen;
	unsigned int n;

	(void)state;
	for (n = 1; ; n++) {
		seen = (struct seen){ .count = 0 };
		list_request();
		list_pools(1, 50, 0);
		fake_done(0, NULL);
		fake_fail_alloc(n);
		if (!kvp_pool_each(ctx, see, &seen, NULL))
			break;
		assert_true(fake_alloc_failed());
		assert_int_equal(seen.count, 0);
	}
	assert_int_equal(seen.count, 50);
	assert_true(n > 2);
	fake_fail_alloc(0);
	kvp_close(ctx);
}

/* -------------------------------------------------------------------- stats */

static void put_stats(uint16_t without)
{
	uint16_t type;

	fake_request(FAKE_FAMILY, KVPOOL_CMD_STATS_GET, NLM_F_ACK);
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_STATS_GET);
	for (type = KVPOOL_A_STATS_POOLS; type <= KVPOOL_A_STATS_MAX; type++) {
		if (type == without)
			continue;
		switch (type) {
		case KVPOOL_A_STATS_POOLS:
		case KVPOOL_A_STATS_ORPHANS:
		case KVPOOL_A_STATS_DYING:
		case KVPOOL_A_STATS_MAX_POOLS:
		case KVPOOL_A_STATS_SESSIONS:
			fake_put_u32(type, 100u + type);
			break;
		default:
			fake_put_u64(type, (1ull << 40) + type);
		}
	}
	fake_ack(0, NULL);
}

static void test_stats(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	const uint64_t high = 1ull << 40;
	struct kvp_stats stats;
	struct kvp_error error;
	uint16_t type;

	(void)state;
	put_stats(0);
	assert_int_equal(kvp_stats_get(ctx, &stats, NULL), 0);
	assert_int_equal(stats.pools, 100 + KVPOOL_A_STATS_POOLS);
	assert_int_equal(stats.orphans, 100 + KVPOOL_A_STATS_ORPHANS);
	assert_int_equal(stats.dying, 100 + KVPOOL_A_STATS_DYING);
	assert_int_equal(stats.sessions, 100 + KVPOOL_A_STATS_SESSIONS);
	assert_int_equal(stats.max_pools, 100 + KVPOOL_A_STATS_MAX_POOLS);
	assert_int_equal(stats.bytes, high + KVPOOL_A_STATS_BYTES);
	assert_int_equal(stats.max_bytes, high + KVPOOL_A_STATS_MAX_BYTES);
	assert_int_equal(stats.min_available, high + KVPOOL_A_STATS_MIN_AVAILABLE);
	assert_int_equal(stats.available, high + KVPOOL_A_STATS_AVAILABLE);
	assert_int_equal(stats.created, high + KVPOOL_A_STATS_CREATED);
	assert_int_equal(stats.destroyed, high + KVPOOL_A_STATS_DESTROYED);
	assert_int_equal(stats.failed, high + KVPOOL_A_STATS_FAILED);
	assert_int_equal(stats.dying_bytes, high + KVPOOL_A_STATS_DYING_BYTES);
	for (type = KVPOOL_A_STATS_POOLS; type <= KVPOOL_A_STATS_MAX; type++) {
		put_stats(type);
		assert_int_equal(kvp_stats_get(ctx, &stats, &error), -EPROTO);
		fake_assert_error(&error, -EPROTO, KVP_PHASE_REQUEST, "statistics", "one release");
	}
	kvp_close(ctx);
}

/* --------------------------------------------------------------------- pins */

struct runs {
	uint32_t first[4], count[4];
	unsigned int n;
	int result;
};

static int see_run(uint32_t first_block, uint32_t block_count, void *arg)
{
	struct runs *runs = arg;

	assert_true(runs->n < 4);
	runs->first[runs->n] = first_block;
	runs->count[runs->n++] = block_count;
	return runs->result;
}

static void pin_request(uint32_t id, uint64_t generation)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_PIN_GET, NLM_F_DUMP);
	fake_want_u32(KVPOOL_A_POOL_ID, id);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, generation);
	fake_datagram();
}

static void put_run(uint32_t first, uint32_t count)
{
	fake_message(FAKE_FAMILY, NLM_F_MULTI, KVPOOL_CMD_PIN_GET);
	fake_put_u32(KVPOOL_A_POOL_FIRST_BLOCK, first);
	fake_put_u32(KVPOOL_A_POOL_BLOCK_COUNT, count);
}

static void test_pins(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct runs runs = { .n = 0 };
	struct kvp_error error;

	(void)state;
	pin_request(3, 1ull << 33);
	put_run(0, 2);
	put_run(17, 1);
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_pins(ctx, 3, 1ull << 33, see_run, &runs, NULL), 0);
	assert_int_equal(runs.n, 2);
	assert_int_equal(runs.first[0], 0);
	assert_int_equal(runs.count[0], 2);
	assert_int_equal(runs.first[1], 17);
	assert_int_equal(runs.count[1], 1);

	/* The walk ends when it is told to; none is no failure. */
	runs = (struct runs){ .result = -7 };
	pin_request(3, 4);
	put_run(0, 2);
	put_run(17, 1);
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_pins(ctx, 3, 4, see_run, &runs, NULL), -7);
	assert_int_equal(runs.n, 1);
	pin_request(3, 4);
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_pins(ctx, 3, 4, see_run, &runs, NULL), 0);

	runs.n = 0;
	pin_request(3, 4);
	put_run(0, 2);
	fake_message(FAKE_FAMILY, NLM_F_MULTI, KVPOOL_CMD_PIN_GET);
	fake_put_u32(KVPOOL_A_POOL_FIRST_BLOCK, 9);
	fake_done(0, NULL);
	assert_int_equal(kvp_pool_pins(ctx, 3, 4, see_run, &runs, &error), -EPROTO);
	fake_assert_error(&error, -EPROTO, KVP_PHASE_REQUEST,
			  "list the pinned blocks of pool 3 of generation 4", NULL);
	pin_request(3, 4);
	fake_done(-ESTALE, "stale: pool 3 has generation 5 now");
	assert_int_equal(kvp_pool_pins(ctx, 3, 4, see_run, &runs, &error), -ESTALE);
	fake_assert_error(&error, -ESTALE, KVP_PHASE_REQUEST, "has generation 5 now",
			  "its id was used again");
	assert_int_equal(runs.n, 0);
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_dump),
		fake_test(test_dump_order),
		fake_test(test_dump_interrupted),
		fake_test(test_dump_fails),
		fake_test(test_dump_no_memory),
		fake_test(test_stats),
		fake_test(test_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

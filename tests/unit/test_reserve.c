// SPDX-License-Identifier: LGPL-2.1-or-later
/* reserve.c: the dump of its three kinds of messages, and changes. */
#include "fake_kernel.h"

static void message(void)
{
	fake_message(FAKE_FAMILY, NLM_F_MULTI, KVPOOL_CMD_RESERVE_GET);
}

static void put_policy(uint32_t policy, uint64_t quota)
{
	message();
	fake_put_u32(KVPOOL_A_RESERVE_POLICY, policy);
	fake_put_u64(KVPOOL_A_RESERVE_QUOTA, quota);
}

static void put_node(uint32_t node, uint64_t target)
{
	message();
	fake_put_u32(KVPOOL_A_RESERVE_NODE, node);
	fake_put_u64(KVPOOL_A_RESERVE_TARGET, target);
	fake_put_u64(KVPOOL_A_RESERVE_READY, target + 1);
	fake_put_u64(KVPOOL_A_RESERVE_CLEARING, target + 2);
}

static void put_user(uint32_t uid, uint64_t quota)
{
	message();
	fake_put_u32(KVPOOL_A_RESERVE_UID, uid);
	fake_put_u64(KVPOOL_A_RESERVE_QUOTA, quota);
	fake_put_u64(KVPOOL_A_RESERVE_USED, quota + 1);
}

static void get_request(void)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_RESERVE_GET, NLM_F_DUMP);
	fake_datagram();
}

static void test_get(void **state)
{
	const uint64_t high = 1ull << 40;
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_reserve *reserve;

	(void)state;
	get_request();
	put_policy(KVPOOL_RESERVE_POLICY_ONLY, high);
	put_node(0, high + 10);
	put_node(3, 20);
	fake_datagram();
	put_user(1000, 30);
	fake_datagram();
	fake_done(0, NULL);
	assert_int_equal(kvp_reserve_get(ctx, &reserve, NULL), 0);
	assert_int_equal(reserve->policy, KVP_RESERVE_ONLY);
	assert_int_equal(reserve->quota, high);
	assert_int_equal(reserve->node_count, 2);
	assert_int_equal(reserve->nodes[0].node, 0);
	assert_int_equal(reserve->nodes[0].target, high + 10);
	assert_int_equal(reserve->nodes[0].ready, high + 11);
	assert_int_equal(reserve->nodes[0].clearing, high + 12);
	assert_int_equal(reserve->nodes[1].node, 3);
	assert_int_equal(reserve->user_count, 1);
	assert_int_equal(reserve->users[0].uid, 1000);
	assert_int_equal(reserve->users[0].quota, 30);
	assert_int_equal(reserve->users[0].used, 31);
	kvp_reserve_free(reserve);
	kvp_reserve_free(NULL);
	kvp_close(ctx);
}

static void test_get_fails(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_reserve *reserve;
	struct kvp_error error;

	(void)state;
	/* A node without its numbers. */
	get_request();
	message();
	fake_put_u32(KVPOOL_A_RESERVE_NODE, 0);
	fake_datagram();
	fake_done(0, NULL);
	assert_int_equal(kvp_reserve_get(ctx, &reserve, &error), -EPROTO);
	fake_assert_error(&error, -EPROTO, KVP_PHASE_REQUEST, "reserve", "one release");
	kvp_close(ctx);
}

static void set_request(void)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_RESERVE_SET, NLM_F_ACK);
	/* The same number as in requests about pools. */
	fake_want_session();
}

static void test_set(void **state)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_error error;

	(void)state;
	_Static_assert((int)KVPOOL_A_RESERVE_SESSION_FD == (int)KVPOOL_A_POOL_SESSION_FD,
		       "the session is not where fake_want_session() looks");
	change.node = 1;
	change.target = 1ull << 40;
	change.policy = KVP_RESERVE_ONLY;
	change.quota = 5;
	change.uid = 1000;

	change.mask = KVP_RESERVE_SET_TARGET | KVP_RESERVE_SET_POLICY | KVP_RESERVE_SET_QUOTA |
		      KVP_RESERVE_SET_UID;
	set_request();
	fake_want_u32(KVPOOL_A_RESERVE_POLICY, KVPOOL_RESERVE_POLICY_ONLY);
	fake_want_u32(KVPOOL_A_RESERVE_NODE, 1);
	fake_want_u64(KVPOOL_A_RESERVE_TARGET, 1ull << 40);
	fake_want_u32(KVPOOL_A_RESERVE_UID, 1000);
	fake_want_u64(KVPOOL_A_RESERVE_QUOTA, 5);
	fake_ack(0, NULL);
	assert_int_equal(kvp_reserve_set(ctx, &change, NULL), 0);

	change.mask = KVP_RESERVE_SET_UID;
	set_request();
	fake_want_u32(KVPOOL_A_RESERVE_UID, 1000);
	fake_ack(-EPERM, "setting the reserve needs CAP_SYS_ADMIN");
	assert_int_equal(kvp_reserve_set(ctx, &change, &error), -EPERM);
	fake_assert_error(&error, -EPERM, KVP_PHASE_REQUEST, "needs CAP_SYS_ADMIN", "as root");

	change.mask = 0;
	assert_int_equal(kvp_reserve_set(ctx, &change, &error), -EINVAL);
	change.mask = 16;
	assert_int_equal(kvp_reserve_set(ctx, &change, &error), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_REQUEST, "mask 0x10", "KVP_RESERVE_SET_");
	change.struct_size = 4;
	assert_int_equal(kvp_reserve_set(ctx, &change, &error), -EINVAL);
	kvp_close(ctx);

	ctx = fake_ctx(true);
	change = (struct kvp_reserve_change)KVP_INIT(struct kvp_reserve_change);
	change.mask = KVP_RESERVE_SET_QUOTA;
	assert_int_equal(kvp_reserve_set(ctx, &change, &error), -EACCES);
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_get),
		fake_test(test_get_fails),
		fake_test(test_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

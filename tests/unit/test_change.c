// SPDX-License-Identifier: LGPL-2.1-or-later
/* change.c: changing and ending pools. */
#include "fake_kernel.h"

#define ID (fake_pool_full.id)
#define GENERATION (fake_pool_full.generation)

static void destroy_request(bool force)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_DESTROY, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, ID);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, GENERATION);
	if (force)
		fake_want_flag(KVPOOL_A_POOL_FORCE);
}

static void test_destroy(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_error error;

	(void)state;
	destroy_request(false);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_destroy(ctx, ID, GENERATION, 0, NULL), 0);
	destroy_request(true);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_destroy(ctx, ID, GENERATION, 1, NULL), 0);
	destroy_request(false);
	fake_ack(-EBUSY, "mapped 2 times, 17 blocks are pinned");
	assert_int_equal(kvp_pool_destroy(ctx, ID, GENERATION, 0, &error), -EBUSY);
	fake_assert_error(&error, -EBUSY, KVP_PHASE_REQUEST, "17 blocks are pinned", "force");
	destroy_request(false);
	fake_ack(-EPERM, NULL);
	assert_int_equal(kvp_pool_destroy(ctx, ID, GENERATION, 0, &error), -EPERM);
	fake_assert_error(&error, -EPERM, KVP_PHASE_REQUEST, "destroy pool 12", "CAP_FOWNER");
	/* A generation of 0 means none here, so that no pool is hit by its id alone. */
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_DESTROY, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, ID);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, 0);
	fake_ack(-ESTALE, NULL);
	assert_int_equal(kvp_pool_destroy(ctx, ID, 0, 0, &error), -ESTALE);
	kvp_close(ctx);
}

static void set_request(void)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_SET, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, ID);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, GENERATION);
}

static void test_set(void **state)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_ctx *ctx = fake_ctx(false);

	(void)state;
	change.mask = KVP_SET_ROLE | KVP_SET_LABEL | KVP_SET_RANK | KVP_SET_LIFETIME | KVP_SET_UID |
		      KVP_SET_GID | KVP_SET_MODE | KVP_SET_REGISTRATION;
	change.role = "draft";
	change.label = "b";
	change.rank = 5;
	change.lifetime = KVP_LIFETIME_PERSISTENT;
	change.uid = 6;
	change.gid = 7;
	change.mode = 0660;
	change.registration = KVP_REGISTRATION_COMMITTED;
	set_request();
	fake_want_text(KVPOOL_A_POOL_ROLE, "draft");
	fake_want_text(KVPOOL_A_POOL_LABEL, "b");
	fake_want_u32(KVPOOL_A_POOL_RANK, 5);
	fake_want_u32(KVPOOL_A_POOL_LIFETIME, KVPOOL_LIFETIME_PERSISTENT);
	fake_want_u32(KVPOOL_A_POOL_UID, 6);
	fake_want_u32(KVPOOL_A_POOL_GID, 7);
	fake_want_u32(KVPOOL_A_POOL_MODE, 0660);
	fake_want_u32(KVPOOL_A_POOL_REGISTRATION, KVPOOL_REGISTRATION_COMMITTED);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_set(ctx, ID, GENERATION, &change, NULL), 0);

	/* Only what the mask names; NULL empties a tag. */
	change.mask = KVP_SET_ROLE;
	change.role = NULL;
	set_request();
	fake_want_text(KVPOOL_A_POOL_ROLE, "");
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_set(ctx, ID, GENERATION, &change, NULL), 0);
	change.mask = KVP_SET_REGISTRATION;
	set_request();
	fake_want_u32(KVPOOL_A_POOL_REGISTRATION, KVPOOL_REGISTRATION_COMMITTED);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_set(ctx, ID, GENERATION, &change, NULL), 0);
	kvp_close(ctx);
}

static void assert_set_fails(struct kvp_ctx *ctx, const struct kvp_pool_change *change, int err,
			     const char *message)
{
	struct kvp_error error;

	assert_int_equal(kvp_pool_set(ctx, ID, GENERATION, change, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, NULL);
}

static void test_set_fails(void **state)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_ctx *ctx = fake_ctx(false);
	char many[65];

	(void)state;
	memset(many, 'x', 64);
	many[64] = '\0';
	assert_set_fails(ctx, NULL, -EINVAL, "change with mask 0x0");
	assert_set_fails(ctx, &change, -EINVAL, "change with mask 0x0");
	change.mask = 1u << 8;
	assert_set_fails(ctx, &change, -EINVAL, "change with mask 0x100");
	change.mask = KVP_SET_ROLE;
	change.role = many;
	assert_set_fails(ctx, &change, -EINVAL, "the role has more than 63 bytes");
	change.mask = KVP_SET_LABEL;
	change.label = many;
	assert_set_fails(ctx, &change, -EINVAL, "the label has more than 63 bytes");
	change.struct_size = 1;
	assert_set_fails(ctx, &change, -EINVAL, "kvp_pool_change of 1 bytes");
	change.struct_size = sizeof(change);
	change.mask = KVP_SET_MODE;
	change.mode = 0777;
	set_request();
	fake_want_u32(KVPOOL_A_POOL_MODE, 0777);
	fake_ack_at(-ERANGE, "integer out of range", KVPOOL_A_POOL_MODE);
	assert_set_fails(ctx, &change, -ERANGE, "change pool 12 of generation 1234605616436508552: "
			 "integer out of range (mode)");
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_destroy),
		fake_test(test_set),
		fake_test(test_set_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

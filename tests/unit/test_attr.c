// SPDX-License-Identifier: LGPL-2.1-or-later
/* attr.c and info.c: attributes that are missing, too short, too long or without an end. */
#include "fake_kernel.h"

static const uint16_t numbers[] = {
	KVPOOL_A_POOL_ID, KVPOOL_A_POOL_GENERATION, KVPOOL_A_POOL_LENGTH,
	KVPOOL_A_POOL_MAPPED_LENGTH, KVPOOL_A_POOL_BLOCK_SIZE, KVPOOL_A_POOL_PLACEMENT,
	KVPOOL_A_POOL_LIFETIME, KVPOOL_A_POOL_UID, KVPOOL_A_POOL_GID, KVPOOL_A_POOL_MODE,
	KVPOOL_A_POOL_STATE, KVPOOL_A_POOL_REGISTRATION, KVPOOL_A_POOL_BLOCKS,
	KVPOOL_A_POOL_PINNED_BLOCKS, KVPOOL_A_POOL_MAPPINGS, KVPOOL_A_POOL_FILES,
};
static const uint16_t optional_numbers[] = {
	KVPOOL_A_POOL_RANK, KVPOOL_A_POOL_NODE, KVPOOL_A_POOL_OWNER_UID, KVPOOL_A_POOL_OWNER_PID,
	KVPOOL_A_POOL_OWNER_START, KVPOOL_A_POOL_DEVICE,
};
static const uint16_t texts[] = { KVPOOL_A_POOL_NAME, KVPOOL_A_POOL_DOMAIN };
static const uint16_t optional_texts[] = { KVPOOL_A_POOL_ROLE, KVPOOL_A_POOL_LABEL };

static int find_spoiled(struct kvp_ctx *ctx, uint16_t type, enum fake_spoil how)
{
	struct kvp_pool_info info;
	struct kvp_error error;
	int err;

	fake_find(12, 0);
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_GET);
	fake_put_pool(&fake_pool_full, type, how);
	fake_ack(0, NULL);
	err = kvp_pool_find(ctx, 12, 0, &info, &error);
	if (err)
		fake_assert_error(&error, err, KVP_PHASE_REQUEST,
				  "lacks an attribute, or one is malformed", "one release");
	return err;
}

static void test_spoiled_attributes(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(numbers); i++) {
		assert_int_equal(find_spoiled(ctx, numbers[i], FAKE_OMIT), -EPROTO);
		assert_int_equal(find_spoiled(ctx, numbers[i], FAKE_SHORT), -EPROTO);
		assert_int_equal(find_spoiled(ctx, numbers[i], FAKE_LONG), -EPROTO);
	}
	for (i = 0; i < MNL_ARRAY_SIZE(optional_numbers); i++) {
		assert_int_equal(find_spoiled(ctx, optional_numbers[i], FAKE_OMIT), 0);
		assert_int_equal(find_spoiled(ctx, optional_numbers[i], FAKE_SHORT), -EPROTO);
		assert_int_equal(find_spoiled(ctx, optional_numbers[i], FAKE_LONG), -EPROTO);
	}
	for (i = 0; i < MNL_ARRAY_SIZE(texts); i++) {
		assert_int_equal(find_spoiled(ctx, texts[i], FAKE_OMIT), -EPROTO);
		assert_int_equal(find_spoiled(ctx, texts[i], FAKE_LONG), -EPROTO);
		assert_int_equal(find_spoiled(ctx, texts[i], FAKE_UNTERMINATED), -EPROTO);
	}
	for (i = 0; i < MNL_ARRAY_SIZE(optional_texts); i++) {
		assert_int_equal(find_spoiled(ctx, optional_texts[i], FAKE_OMIT), 0);
		assert_int_equal(find_spoiled(ctx, optional_texts[i], FAKE_LONG), -EPROTO);
		assert_int_equal(find_spoiled(ctx, optional_texts[i], FAKE_UNTERMINATED), -EPROTO);
	}
	kvp_close(ctx);
}

/* An attribute that says it is longer than the message, and one shorter than itself. */
static void test_attribute_lengths(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	static const uint16_t lengths[] = { 0, 3, 9, 12, 0xffff };
	struct kvp_pool_info info;
	struct nlattr *attr;
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(lengths); i++) {
		fake_find(12, 0);
		fake_datagram();
		fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_GET);
		fake_put_pool(&fake_pool_full, 0, FAKE_WHOLE);
		fake_put_u32(901, 0);
		attr = (struct nlattr *)((char *)fake_last() + fake_last()->nlmsg_len - 8);
		assert_int_equal(attr->nla_type, 901);
		attr->nla_len = lengths[i];
		fake_ack(0, NULL);
		assert_int_equal(kvp_pool_find(ctx, 12, 0, &info, NULL), -EPROTO);
	}
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_spoiled_attributes),
		fake_test(test_attribute_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

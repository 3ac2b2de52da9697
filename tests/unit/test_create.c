// SPDX-License-Identifier: LGPL-2.1-or-later
/* create.c: creating and claiming pools, and undoing what was half done. */
#include <sys/resource.h>

#include "fake_kernel.h"

#define ID (fake_pool_full.id)
#define GENERATION (fake_pool_full.generation)

static const struct kvp_pool_options plain = {
	.struct_size = sizeof(plain), .domain = "serving", .length = 3779571220u,
};

static void create_request(void)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_CREATE, NLM_F_ACK);
	fake_want_session();
	fake_want_text(KVPOOL_A_POOL_DOMAIN, "serving");
	fake_want_u64(KVPOOL_A_POOL_LENGTH, 3779571220u);
}

static void create_plain(void)
{
	create_request();
	fake_want_u32(KVPOOL_A_POOL_PLACEMENT, KVPOOL_PLACEMENT_PREFERRED);
	fake_want_u32(KVPOOL_A_POOL_LIFETIME, KVPOOL_LIFETIME_OWNER);
	fake_want_flag(KVPOOL_A_POOL_DEFERRED);
}

static void answer(uint16_t type, enum fake_spoil how)
{
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_CREATE);
	fake_put_pool(&fake_pool_full, type, how);
	fake_ack(0, NULL);
}

static void destroy_request(bool force)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_DESTROY, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, ID);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, GENERATION);
	if (force)
		fake_want_flag(KVPOOL_A_POOL_FORCE);
}

static void test_create(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_pool *pool = NULL;

	(void)state;
	create_plain();
	answer(0, FAKE_WHOLE);
	fake_ioctl_fill(&fake_pool_full, 0, NULL);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, 0);
	fake_ioctl_info(&fake_pool_full, 0);
	assert_null(kvp_owned_find(ctx, ID, GENERATION));
	assert_int_equal(kvp_pool_create(ctx, &plain, &pool, NULL), 0);
	assert_int_equal(kvp_pool_id(pool), ID);
	assert_int_equal(kvp_pool_generation(pool), GENERATION);
	assert_non_null(kvp_owned_find(ctx, ID, GENERATION));
	assert_true(kvp_owned_find(ctx, ID, GENERATION)->created);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

static void test_create_everything(void **state)
{
	struct kvp_pool_options options = plain;
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_pool *pool = NULL;

	(void)state;
	options.name = "kv-target";
	options.role = "target";
	options.label = "model a, rank 3";
	options.has_rank = 1;		/* with rank 0 */
	options.node = 1;
	options.has_node = 1;
	options.placement = KVP_PLACEMENT_STRICT;
	options.lifetime = KVP_LIFETIME_PERSISTENT;
	options.has_uid = 1;		/* root's */
	options.gid = 1001;
	options.has_gid = 1;
	options.mode = 0640;
	options.has_mode = 1;
	create_request();
	fake_want_text(KVPOOL_A_POOL_NAME, "kv-target");
	fake_want_text(KVPOOL_A_POOL_ROLE, "target");
	fake_want_text(KVPOOL_A_POOL_LABEL, "model a, rank 3");
	fake_want_u32(KVPOOL_A_POOL_RANK, 0);
	fake_want_u32(KVPOOL_A_POOL_NODE, 1);
	fake_want_u32(KVPOOL_A_POOL_PLACEMENT, KVPOOL_PLACEMENT_STRICT);
	fake_want_u32(KVPOOL_A_POOL_LIFETIME, KVPOOL_LIFETIME_PERSISTENT);
	fake_want_u32(KVPOOL_A_POOL_UID, 0);
	fake_want_u32(KVPOOL_A_POOL_GID, 1001);
	fake_want_u32(KVPOOL_A_POOL_MODE, 0640);
	fake_want_flag(KVPOOL_A_POOL_DEFERRED);
	answer(0, FAKE_WHOLE);
	fake_ioctl_fill(&fake_pool_full, 0, NULL);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, 0);
	fake_ioctl_info(&fake_pool_full, 0);
	assert_int_equal(kvp_pool_create(ctx, &options, &pool, NULL), 0);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

static void assert_invalid(struct kvp_ctx *ctx, const struct kvp_pool_options *options, int err,
			   const char *message)
{
	struct kvp_pool *pool = NULL;
	struct kvp_error error;

	assert_int_equal(kvp_pool_create(ctx, options, &pool, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, NULL);
	assert_null(pool);
}

/* Refused before the kernel is asked: the script is empty. */
static void test_create_invalid(void **state)
{
	static const char long_text[] =
		"0123456789012345678901234567890123456789012345678901234567890123";
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_pool_options options;
	struct {
		struct kvp_pool_options options;
		int newer;
	} newer = { plain, 1 };

	(void)state;
#define WITH(member, value) (options = plain, options.member = (value), &options)
	assert_invalid(ctx, NULL, -EINVAL, "the domain is missing");
	assert_invalid(ctx, WITH(domain, NULL), -EINVAL, "the domain is missing");
	assert_invalid(ctx, WITH(domain, ""), -EINVAL, "the domain is not a name");
	assert_invalid(ctx, WITH(domain, "a:b"), -EINVAL, "the domain is not a name");
	assert_invalid(ctx, WITH(domain, long_text), -EINVAL, "the domain is not a name");
	assert_invalid(ctx, WITH(name, ""), -EINVAL, "the name is not a name");
	assert_invalid(ctx, WITH(name, "../x"), -EINVAL, "the name is not a name");
	assert_invalid(ctx, WITH(name, "control"), -EINVAL, "the control node");
	assert_invalid(ctx, WITH(role, "a b"), -EINVAL, "the role is not a name");
	assert_invalid(ctx, WITH(label, long_text), -EINVAL, "the label is not a label");
	assert_invalid(ctx, WITH(label, "a\nb"), -EINVAL, "the label is not a label");
	assert_invalid(ctx, WITH(label, "\xc3\xa4"), -EINVAL, "the label is not a label");
	assert_invalid(ctx, WITH(length, 0), -EINVAL, "the length is 0");
	assert_invalid(ctx, WITH(struct_size, 7), -EINVAL, "kvp_pool_options of 7 bytes");
#undef WITH
	newer.options.struct_size = sizeof(newer);
	assert_invalid(ctx, &newer.options, -E2BIG, "kvp_pool_options of");
	kvp_close(ctx);
}

static void test_read_only(void **state)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;

	(void)state;
	change.mask = KVP_SET_RANK;
	assert_invalid(ctx, &plain, -EACCES, "the context is read only");
	assert_int_equal(kvp_pool_claim(ctx, ID, GENERATION, &pool, &error), -EACCES);
	assert_int_equal(kvp_pool_destroy(ctx, ID, GENERATION, 0, &error), -EACCES);
	assert_int_equal(kvp_pool_set(ctx, ID, GENERATION, &change, &error), -EACCES);
	fake_assert_error(&error, -EACCES, KVP_PHASE_REQUEST, "read only", "without read_only");
	kvp_close(ctx);
}

static void put_stats(int err)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_STATS_GET, NLM_F_ACK);
	if (!err) {
		fake_datagram();
		fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_STATS_GET);
		fake_put_u32(KVPOOL_A_STATS_POOLS, 11);
		fake_put_u32(KVPOOL_A_STATS_ORPHANS, 0);
		fake_put_u32(KVPOOL_A_STATS_DYING, 0);
		fake_put_u64(KVPOOL_A_STATS_BYTES, 222);
		fake_put_u64(KVPOOL_A_STATS_MAX_BYTES, 333);
		fake_put_u32(KVPOOL_A_STATS_MAX_POOLS, 44);
		fake_put_u64(KVPOOL_A_STATS_MIN_AVAILABLE, 555);
		fake_put_u64(KVPOOL_A_STATS_AVAILABLE, 666);
		fake_put_u64(KVPOOL_A_STATS_CREATED, 0);
		fake_put_u64(KVPOOL_A_STATS_DESTROYED, 0);
		fake_put_u64(KVPOOL_A_STATS_FAILED, 0);
		fake_put_u32(KVPOOL_A_STATS_SESSIONS, 0);
		fake_put_u64(KVPOOL_A_STATS_DYING_BYTES, 0);
	}
	fake_ack(err, NULL);
}

static void create_fails(struct kvp_ctx *ctx, int err, const char *extack, const char *message,
			 const char *advice)
{
	struct kvp_pool *pool = NULL;
	struct kvp_error error;

	assert_int_equal(kvp_pool_create(ctx, &plain, &pool, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, advice);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, extack, NULL);
	assert_null(pool);
}

/* Every errno that the header names; those about limits carry the numbers. */
static void test_create_fails(void **state)
{
	static const struct {
		int err;
		const char *extack, *advice;
	} cases[] = {
		{ -EEXIST, "name: taken by pool 3", "another name" },
		{ -ENODEV, "node: 7 is not online", "/sys/devices/system/node/online" },
		{ -EPERM, "uid: not yours", "CAP_CHOWN" },
		{ -EINVAL, "mode: has execute bits", NULL },
		{ -EINTR, "killed", NULL },
	};
	struct kvp_ctx *ctx = fake_ctx(false);
	struct rlimit limit, old;
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(cases); i++) {
		create_plain();
		fake_ack(cases[i].err, cases[i].extack);
		create_fails(ctx, cases[i].err, cases[i].extack,
			     "create pool of 3779571220 bytes in domain serving: ", cases[i].advice);
	}

	create_plain();
	fake_ack(-ENOMEM, "node 1 has 9 of 1803 blocks");
	put_stats(0);
	create_fails(ctx, -ENOMEM, "9 of 1803 blocks", NULL,
		     "666 bytes are available to pools, 555 are kept");
	create_plain();
	fake_ack(-ENOMEM, "no");
	put_stats(-EPERM);
	create_fails(ctx, -ENOMEM, "no", NULL, "ask for less");

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	limit = (struct rlimit){ 65536, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	create_plain();
	fake_ack(-EDQUOT, "max_bytes");
	put_stats(0);
	create_fails(ctx, -EDQUOT, "max_bytes", NULL, "RLIMIT_MEMLOCK 65536 bytes, "
		     "max_bytes 333 (222 used), max_pools 44 (11 used)");
	create_plain();
	fake_ack(-EDQUOT, "max_bytes");
	put_stats(-EPERM);
	create_fails(ctx, -EDQUOT, "max_bytes", NULL, "RLIMIT_MEMLOCK is 65536 bytes");
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
	kvp_close(ctx);
}

/* The pool is gone by then: nothing is ended. */
static void test_fill_fails(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(false);

	(void)state;
	create_plain();
	answer(0, FAKE_WHOLE);
	fake_ioctl_fill(&fake_pool_full, ENOMEM, "no free 2 MiB block at block 9 of 1803");
	put_stats(0);
	create_fails(ctx, -ENOMEM, "at block 9 of 1803", "create pool of 3779571220 bytes",
		     "666 bytes are available to pools");
	/* A message that does not end. */
	create_plain();
	answer(0, FAKE_WHOLE);
	fake_ioctl_fill(&fake_pool_full, EINTR, NULL);
	create_fails(ctx, -EINTR, "xxx", NULL, NULL);
	kvp_close(ctx);
}

/* The pool was made, and then something failed: it is ended, once, and the first error stays. */
static void test_create_undone(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(false);

	(void)state;
	create_plain();
	answer(0, FAKE_WHOLE);
	fake_ioctl_fill(&fake_pool_full, 0, NULL);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, EMFILE);
	destroy_request(true);
	fake_ack(0, NULL);
	create_fails(ctx, -EMFILE, NULL, "open pool 12", "ulimit -n");

	create_plain();
	answer(0, FAKE_WHOLE);
	fake_ioctl_fill(&fake_pool_full, 0, NULL);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, 0);
	fake_ioctl_info(&fake_pool_full, EFAULT);
	destroy_request(true);
	fake_ack(-EBUSY, "whatever");
	create_fails(ctx, -EFAULT, NULL, NULL, NULL);

	/* The answer says which pool it is, the rest can't be read. */
	create_plain();
	answer(KVPOOL_A_POOL_NAME, FAKE_UNTERMINATED);
	destroy_request(true);
	fake_ack(0, NULL);
	create_fails(ctx, -EPROTO, "malformed", NULL, NULL);
	/* It does not even say that. */
	create_plain();
	answer(KVPOOL_A_POOL_GENERATION, FAKE_OMIT);
	create_fails(ctx, -EPROTO, "malformed", NULL, NULL);

	/* The handle's memory is taken before: nothing to undo. */
	fake_fail_alloc(1);
	create_fails(ctx, -ENOMEM, "no memory", NULL, NULL);
	fake_fail_alloc(0);
	kvp_close(ctx);
}

/* ----------------------------------------------------------------- claiming */

static void claim_request(int err)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_CLAIM, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, ID);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, GENERATION);
	fake_ack(err, NULL);
}

static void test_claim(void **state)
{
	static const struct {
		int err;
		const char *advice;
	} cases[] = {
		{ -EBUSY, "end the session that owns it" },
		{ -EINVAL, "lifetime persistent" },
		{ -ESTALE, "used again" },
		{ -EPERM, NULL },
	};
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	size_t i;

	(void)state;
	/* A claim can't be given back, so it comes last; its failure closes what was opened. */
	for (i = 0; i < MNL_ARRAY_SIZE(cases); i++) {
		fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, 0);
		fake_ioctl_info(&fake_pool_full, 0);
		claim_request(cases[i].err);
		assert_int_equal(kvp_pool_claim(ctx, ID, GENERATION, &pool, &error), cases[i].err);
		fake_assert_error(&error, cases[i].err, KVP_PHASE_REQUEST, "claim pool 12",
				  cases[i].advice);
	}
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, ENODEV);
	assert_int_equal(kvp_pool_claim(ctx, ID, GENERATION, &pool, &error), -ENODEV);
	assert_null(pool);
	/* All memory is taken before the kernel is asked. */
	fake_fail_alloc(1);
	assert_int_equal(kvp_pool_claim(ctx, ID, GENERATION, &pool, &error), -ENOMEM);
	fake_fail_alloc(0);
	assert_null(kvp_owned_find(ctx, ID, GENERATION));

	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, 0);
	fake_ioctl_info(&fake_pool_full, 0);
	claim_request(0);
	assert_int_equal(kvp_pool_claim(ctx, ID, GENERATION, &pool, NULL), 0);
	assert_int_equal(kvp_pool_id(pool), ID);
	/* Its session owns it now, as if it were its own; a journal does not say so. */
	assert_non_null(kvp_owned_find(ctx, ID, GENERATION));
	assert_false(kvp_owned_find(ctx, ID, GENERATION)->created);
	kvp_pool_close(pool);
	destroy_request(false);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_destroy(ctx, ID, GENERATION, 0, NULL), 0);
	assert_null(kvp_owned_find(ctx, ID, GENERATION));
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_create),
		fake_test(test_create_everything),
		fake_test(test_create_invalid),
		fake_test(test_read_only),
		fake_test(test_create_fails),
		fake_test(test_fill_fails),
		fake_test(test_create_undone),
		fake_test(test_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* A transaction down to the requests that the kernel gets, in their order. */
#include <unistd.h>

#include "fake_kernel.h"
#include "fake_registrar.h"

#define BASE 0x7f0000000000ULL
#define LENGTH ((uint64_t)8 << 20)

static struct fake_registrar store;
static struct kvp_registrar *registrar;
static struct kvp_pool_info info;
static struct kvpool_segment segment;
static struct fake_range range;

static int setup(void **state)
{
	memset(&store, 0, sizeof(store));
	registrar = fake_registrar_new(&store, 1, 0);
	info = fake_pool_full;
	info.owned = 1;
	info.owner_pid = getpid();
	segment = (struct kvpool_segment){
		.addr = BASE,
		.length = LENGTH,
		.kind = KVPOOL_SEGMENT_POOL,
		.flags = KVPOOL_SEGMENT_READ | KVPOOL_SEGMENT_WRITE,
		.generation = info.generation,
		.pool_length = LENGTH,
		.id = info.id,
	};
	strcpy((char *)segment.domain, info.domain);
	range = (struct fake_range){ BASE, LENGTH, &segment, 1, 0 };
	return fake_setup(state);
}

static int teardown(void **state)
{
	kvp_registrar_free(registrar);
	return fake_teardown(state);
}

static void expect_find(void)
{
	fake_find(info.id, info.generation);
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_GET);
	fake_put_pool(&info, 0, FAKE_WHOLE);
	fake_ack(0, NULL);
}

static void expect_state(enum kvpool_registration registration, int err)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_SET, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, info.id);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, info.generation);
	fake_want_u32(KVPOOL_A_POOL_REGISTRATION, registration);
	fake_ack(err, NULL);
}

/* A context of this process that owns the pool. */
static struct kvp_ctx *owner(void)
{
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_pool *pool;

	fake_ioctl_open(&info, KVP_ACCESS_WRITE, 0);
	fake_ioctl_info(&info, 0);
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_CLAIM, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, info.id);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, info.generation);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_claim(ctx, info.id, info.generation, &pool, NULL), 0);
	kvp_pool_close(pool);
	return ctx;
}

static struct kvp_list *list_of_one(void)
{
	const struct kvp_buffer buffer = { .addr = (void *)(uintptr_t)BASE, .length = LENGTH };
	struct kvp_list *list;

	assert_int_equal(kvp_list_new(KVP_EMPTY_REJECT, &list), 0);
	assert_int_equal(kvp_list_add(list, &buffer), 0);
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	return list;
}

static void look_then_tell(void **state)
{
	struct kvp_registration *registration = NULL;
	struct kvp_ctx *ctx = owner();
	struct kvp_list *list = list_of_one();

	(void)state;
	fake_ioctl_resolve(&range);
	expect_find();
	expect_state(KVPOOL_REGISTRATION_REGISTERING, 0);
	expect_state(KVPOOL_REGISTRATION_COMMITTED, 0);
	assert_int_equal(kvp_register(ctx, info.domain, list, &registrar, 1, NULL, &registration,
				      NULL), 0);
	assert_int_equal(store.live, 1);
	expect_state(KVPOOL_REGISTRATION_ALLOCATED, 0);
	assert_int_equal(kvp_unregister(ctx, &registration, NULL), 0);
	kvp_list_free(list);
	kvp_close(ctx);
}

static void failure_is_told(void **state)
{
	struct kvp_registration *registration = NULL;
	struct kvp_ctx *ctx = owner();
	struct kvp_list *list = list_of_one();
	struct kvp_error error = { 0 };

	(void)state;
	store.fail_register = 1;
	store.register_ret = -EIO;
	fake_ioctl_resolve(&range);
	expect_find();
	expect_state(KVPOOL_REGISTRATION_REGISTERING, 0);
	expect_state(KVPOOL_REGISTRATION_FAILED, -ENODEV);
	assert_int_equal(kvp_register(ctx, info.domain, list, &registrar, 1, NULL, &registration,
				      &error), -EIO);
	assert_int_equal(error.err, -EIO);
	assert_int_equal(error.phase, KVP_PHASE_REGISTER);
	assert_null(registration);
	kvp_list_free(list);
	kvp_close(ctx);
}

/*
 * The pool is this process's, but not this context's, which may not even change pools:
 * its memory can be registered all the same, and its state is left alone.
 */
static void another_context(bool read_only)
{
	struct kvp_registration *registration = NULL;
	struct kvp_ctx *ctx = fake_ctx(read_only);
	struct kvp_list *list = list_of_one();

	fake_ioctl_resolve(&range);
	expect_find();
	assert_int_equal(kvp_register(ctx, info.domain, list, &registrar, 1, NULL, &registration,
				      NULL), 0);
	assert_int_equal(kvp_unregister(ctx, &registration, NULL), 0);
	kvp_list_free(list);
	kvp_close(ctx);
}

static void contexts_that_do_not_own_it(void **state)
{
	(void)state;
	another_context(false);
	another_context(true);
}

static void nothing_is_told_of_foreign_memory(void **state)
{
	struct kvp_registration *registration = NULL;
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_list *list = list_of_one();

	(void)state;
	/* With all others, and by itself to say what it is. */
	fake_ioctl_resolve(&range);
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_register(ctx, "elsewhere", list, &registrar, 1, NULL, &registration,
				      NULL), -EXDEV);
	assert_null(registration);
	assert_int_equal(store.register_calls, 0);
	kvp_list_free(list);
	kvp_close(ctx);
}

int main(void)
{
#define registering_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		registering_test(look_then_tell),
		registering_test(failure_is_told),
		registering_test(contexts_that_do_not_own_it),
		registering_test(nothing_is_told_of_foreign_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Failures after the first registration: undone in reverse, and the first error is kept. */
#include "fake_registrar.h"
#include "fake_verbs.h"
#include "fake_world.h"

#define BUFFERS 4
#define DEVICES 2
#define CALLS (BUFFERS * DEVICES)

static struct fake_registrar store;
static struct kvp_registrar *registrars[2];	/* verbs, then the store */
static struct kvp_list *list;
static struct kvp_registration *registration;
static struct kvp_error error;

static int setup(void **state)
{
	struct kvp_buffer buffers[BUFFERS];
	struct ibv_pd *pds[DEVICES];
	uint32_t i;

	memset(&store, 0, sizeof(store));
	memset(&error, 0, sizeof(error));
	registration = NULL;
	fake_verbs_reset();
	if (fake_world_setup(state))
		return -1;
	pds[0] = fake_verbs_pd("rxe0", 1024, UINT64_MAX);
	pds[1] = fake_verbs_pd("rxe1", 1024, UINT64_MAX);
	if (kvp_registrar_verbs(pds, DEVICES, IBV_ACCESS_LOCAL_WRITE, &registrars[0], NULL))
		return -1;
	registrars[1] = fake_registrar_new(&store, 1, 0);
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)(FAKE_BASE + i * 4 * MIB), .length = 2 * MIB,
		};
	list = fake_world_list(buffers, BUFFERS);
	return 0;
}

static int teardown(void **state)
{
	const char *trouble = fake_verbs_trouble();
	const int live = (int)fake_verbs_live() + store.live;

	kvp_list_free(list);
	kvp_registrar_free(registrars[0]);
	kvp_registrar_free(registrars[1]);
	fake_verbs_reset();
	if (trouble || live)
		print_error("%s, %d registrations left\n", trouble ? trouble : "no trouble", live);
	return fake_world_teardown(state) || trouble || live ? -1 : 0;
}

static int do_register(uint32_t count, const struct kvp_transaction_options *options)
{
	fake_verbs_forget_calls();
	fake_world_forget_states();
	memset(&error, 0, sizeof(error));
	return kvp_register(fake_world_ctx(), "kv", list, registrars, count, options, &registration,
			    &error);
}

/* The calls after the failing one at `failed` undo the ones before it, last first. */
static void assert_undone_in_reverse(unsigned int failed)
{
	unsigned int i;

	assert_int_equal(fake_verbs_calls(), 2 * failed + 1);
	for (i = 0; i < failed; i++) {
		const struct fake_verbs_call *done = fake_verbs_call(failed - 1 - i);
		const struct fake_verbs_call *undone = fake_verbs_call(failed + 1 + i);

		assert_false(done->undo);
		assert_true(undone->undo);
		assert_ptr_equal(undone->addr, done->addr);
		assert_int_equal(undone->device, done->device);
	}
}

/* nixl #1672, mooncake #2965, #2869, FlexKV #240: k failed, 0 to k-1 stayed registered. */
static void every_registration_fails_once(void **state)
{
	static const char *const devices[] = { "rxe0", "rxe1" };
	unsigned int k;

	(void)state;
	for (k = 0; k < CALLS; k++) {
		fake_verbs_fail_reg(k, 1, ENOMEM);
		assert_int_equal(do_register(1, NULL), -ENOMEM);
		assert_null(registration);
		assert_int_equal(fake_verbs_live(), 0);
		assert_undone_in_reverse(k);
		assert_int_equal(error.err, -ENOMEM);
		assert_int_equal(error.phase, KVP_PHASE_REGISTER);
		assert_int_equal(error.index, k / DEVICES);
		assert_string_equal(error.device, devices[k % DEVICES]);
		assert_string_equal(fake_world_states(), "1:registering 1:failed");
	}
	/* The same list and registrars serve again. */
	assert_int_equal(do_register(1, NULL), 0);
	assert_int_equal(fake_verbs_live(), CALLS);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
}

/* CI-1 of the first seed: the external store refuses, and the other registrar is undone too. */
static void second_registrar_fails(void **state)
{
	(void)state;
	store.fail_register = 3;
	store.register_ret = -1;
	assert_int_equal(do_register(2, NULL), -EPERM);
	assert_null(registration);
	assert_int_equal(fake_verbs_live(), 0);
	assert_int_equal(store.live, 0);
	assert_int_equal(store.unregister_calls, 2);
	assert_ptr_equal(store.calls[3].chunk.addr, store.calls[1].chunk.addr);
	assert_ptr_equal(store.calls[4].chunk.addr, store.calls[0].chunk.addr);
	assert_string_equal(error.device, "store0");
	assert_int_equal(error.index, 2);
	/* The third buffer had its two regions by then. */
	assert_int_equal(fake_verbs_calls(), 12);
}

/* Engines have codes of their own, and a positive one is no success. */
static void codes_of_an_engine_are_failures(void **state)
{
	static const int codes[] = { 1, 800, INT32_MAX, -4096, INT32_MIN };
	char code[40];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		store.fail_register = store.register_calls + 2;
		store.register_ret = codes[i];
		assert_int_equal(do_register(2, NULL), -EREMOTEIO);
		assert_null(registration);
		assert_int_equal(error.err, -EREMOTEIO);
		snprintf(code, sizeof(code), "the registrar returned code %d", codes[i]);
		assert_contains(error.message, code);
		assert_int_equal(store.live, 0);
	}
	store.fail_register = store.register_calls + 1;
	store.register_ret = -4095;
	store.nameless = true;
	assert_int_equal(do_register(2, NULL), -4095);
	assert_string_equal(error.device, "");
}

struct commit {
	int ret;
	unsigned int calls;
};

static int on_commit(const struct kvp_registration *committed, void *arg)
{
	struct commit *commit = arg;

	assert_non_null(committed);
	commit->calls++;
	return commit->ret;
}

static void commit_fails(void **state)
{
	static const struct { int ret, err; } cases[] = {
		{ -EAGAIN, -EAGAIN }, { 1, -EREMOTEIO },
	};
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	unsigned int i;

	(void)state;
	options.commit = on_commit;
	for (i = 0; i < 2; i++) {
		struct commit commit = { .ret = cases[i].ret };

		options.arg = &commit;
		assert_int_equal(do_register(2, &options), cases[i].err);
		assert_null(registration);
		assert_int_equal(commit.calls, 1);
		assert_int_equal(error.phase, KVP_PHASE_COMMIT);
		assert_int_equal(error.index, KVP_NONE);
		assert_int_equal(error.err, cases[i].err);
		assert_int_equal(fake_verbs_live(), 0);
		assert_int_equal(store.live, 0);
		assert_string_equal(fake_world_states(), "1:registering 1:failed");
	}
	assert_contains(error.message, "the commit function returned 1");
	/* It is not called when a registration fails. */
	{
		struct commit commit = { 0 };

		options.arg = &commit;
		fake_verbs_fail_reg(CALLS - 1, 1, EIO);
		assert_int_equal(do_register(1, &options), -EIO);
		assert_int_equal(commit.calls, 0);
	}
}

/* Telling the kernel fails as well: the first error stays. */
static void failing_state_does_not_hide_the_error(void **state)
{
	(void)state;
	fake_world_fail_state(KVP_REGISTRATION_FAILED, -ENODEV);
	fake_verbs_fail_reg(2, 1, EFAULT);
	assert_int_equal(do_register(1, NULL), -EFAULT);
	assert_int_equal(error.err, -EFAULT);
	assert_int_equal(error.phase, KVP_PHASE_REGISTER);
	assert_string_equal(fake_world_states(), "1:registering 1:failed");
}

/* Whoever passes no place for the error gets the same undoing. */
static void without_an_error_struct(void **state)
{
	(void)state;
	fake_verbs_fail_reg(3, 1, EIO);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, registrars, 2, NULL,
				      &registration, NULL), -EIO);
	assert_null(registration);
	assert_int_equal(fake_verbs_live(), 0);
}

/* Every allocation of a transaction fails once: nothing is registered, nothing leaks. */
static void no_memory(void **state)
{
	unsigned int n, without = 0;

	(void)state;
	for (n = 1;; n++) {
		int err;

		fake_fail_alloc(n);
		err = do_register(2, NULL);
		if (!fake_alloc_failed())
			break;
		if (!err) {
			without++;
			fake_fail_alloc(0);
			assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
			continue;
		}
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(error.err, -ENOMEM);
		assert_true(error.message[0]);
		assert_null(registration);
		assert_int_equal(fake_verbs_calls(), 0);
		assert_string_equal(fake_world_states(), "");
	}
	fake_fail_alloc(0);
	/* Registration, its registrars, spans, order of the check, targets, plan, pools, record. */
	assert_int_equal(n - 1 - without, 8);
	/* The snapshot of memory is done without. */
	assert_int_equal(without, 1);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
}

int main(void)
{
#define rollback_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		rollback_test(every_registration_fails_once),
		rollback_test(second_registrar_fails),
		rollback_test(codes_of_an_engine_are_failures),
		rollback_test(commit_fails),
		rollback_test(failing_state_does_not_hide_the_error),
		rollback_test(without_an_error_struct),
		rollback_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

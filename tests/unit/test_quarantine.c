// SPDX-License-Identifier: LGPL-2.1-or-later
/* Unregistering fails: mooncake #3717, nixl #1758, spdk 35d33b8. */
#include "fake_registrar.h"
#include "fake_world.h"

#define BUFFERS 4

static struct fake_registrar fake;
static struct kvp_registrar *registrar;
static struct kvp_list *list;
static struct kvp_registration *registration;
static struct kvp_error error;

static uint64_t address(uint32_t index)
{
	return FAKE_BASE + index * 4 * MIB;
}

static int setup(void **state)
{
	struct kvp_buffer buffers[BUFFERS];
	uint32_t i;

	memset(&fake, 0, sizeof(fake));
	memset(&error, 0, sizeof(error));
	registration = NULL;
	if (fake_world_setup(state))
		return -1;
	registrar = fake_registrar_new(&fake, 1, 0);
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)address(i), .length = 2 * MIB,
		};
	list = fake_world_list(buffers, BUFFERS);
	return 0;
}

static int teardown(void **state)
{
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	if (fake.live)
		print_error("%d registrations left\n", fake.live);
	return fake_world_teardown(state) || fake.live ? -1 : 0;
}

static int do_register(void)
{
	memset(&error, 0, sizeof(error));
	return kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &registration,
			    &error);
}

static int do_unregister(void)
{
	memset(&error, 0, sizeof(error));
	return kvp_unregister(fake_world_ctx(), &registration, &error);
}

static void fail_unregister(unsigned int nth, int ret)
{
	fake.fail_unregister = fake.unregister_calls + nth;
	fake.unregister_ret = ret;
}

/* The third registration fails, and of the two before it the second can't be undone. */
static void half_undone(void)
{
	fake.fail_register = 3;
	fake.register_ret = -ENOMEM;
	fail_unregister(1, -EBUSY);
	assert_int_equal(do_register(), -ENOMEM);
}

static void rollback_goes_on_past_a_failure(void **state)
{
	const struct kvp_entry *entry;

	(void)state;
	half_undone();
	/* The first error, not that of the undoing; which is told all the same. */
	assert_int_equal(error.err, -ENOMEM);
	assert_int_equal(error.phase, KVP_PHASE_REGISTER);
	assert_int_equal(error.index, 2);
	assert_string_equal(error.advice,
			    "1 of its registrations could not be undone: call kvp_unregister()");
	/* Both were tried; the one that failed is all that is left. */
	assert_int_equal(fake.unregister_calls, 2);
	assert_int_equal(fake.live, 1);
	assert_non_null(registration);
	assert_int_equal(kvp_registration_count(registration), 1);
	entry = kvp_registration_entry(registration, 0);
	assert_int_equal(entry->index, 1);
	assert_int_equal(entry->quarantined, 1);
	assert_ptr_equal(entry->chunk.addr, (void *)(uintptr_t)address(1));
	assert_ptr_equal(kvp_registration_find(registration, 1, 0, 0, 0), entry);
	assert_null(kvp_registration_find(registration, 0, 0, 0, 0));
	assert_string_equal(fake_world_states(), "1:registering 1:failed");

	/* Tried again, with success: nothing was in force, so the state stays. */
	fake_world_forget_states();
	assert_int_equal(do_unregister(), 0);
	assert_null(registration);
	assert_int_equal(fake.unregister_calls, 3);
	assert_string_equal(fake_world_states(), "");
}

/* Each of the four fails in turn; the rest is undone, in reverse, and only it is left. */
static void every_unregister_fails_once(void **state)
{
	uint32_t k;

	(void)state;
	for (k = 0; k < BUFFERS; k++) {
		fake.call_count = 0;
		assert_int_equal(do_register(), 0);
		fail_unregister(k + 1, -EBUSY);
		assert_int_equal(do_unregister(), -EBUSY);
		assert_int_equal(error.phase, KVP_PHASE_UNDO);
		assert_int_equal(error.index, BUFFERS - 1 - k);
		assert_string_equal(error.device, "store0");
		assert_contains(error.message, "can't unregister 2097152 bytes at");
		assert_contains(error.advice, "do not use this memory");
		assert_int_equal(fake.call_count, 2 * BUFFERS);
		assert_ptr_equal(fake.calls[BUFFERS].chunk.addr,
				 (void *)(uintptr_t)address(BUFFERS - 1));
		assert_ptr_equal(fake.calls[2 * BUFFERS - 1].chunk.addr,
				 (void *)(uintptr_t)address(0));
		assert_int_equal(fake.live, 1);
		assert_int_equal(kvp_registration_count(registration), 1);
		assert_int_equal(kvp_registration_entry(registration, 0)->index, BUFFERS - 1 - k);
		assert_int_equal(do_unregister(), 0);
		assert_int_equal(fake.live, 0);
	}
}

static void states_of_an_unfinished_end(void **state)
{
	(void)state;
	assert_int_equal(do_register(), 0);
	fake_world_forget_states();
	fail_unregister(2, -EBUSY);
	assert_int_equal(do_unregister(), -EBUSY);
	assert_string_equal(fake_world_states(), "1:failed");
	assert_int_equal(do_unregister(), 0);
	assert_string_equal(fake_world_states(), "1:failed 1:allocated");
}

static void code_of_an_engine(void **state)
{
	(void)state;
	assert_int_equal(do_register(), 0);
	fail_unregister(1, 600);
	assert_int_equal(do_unregister(), -EREMOTEIO);
	assert_contains(error.message, "the registrar returned code 600");
	/* It fails again, and is kept again. */
	fail_unregister(1, 601);
	assert_int_equal(do_unregister(), -EREMOTEIO);
	assert_contains(error.message, "the registrar returned code 601");
	assert_int_equal(kvp_registration_count(registration), 1);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
}

static int register_range(uint64_t addr, uint64_t length, struct kvp_registration **other)
{
	const struct kvp_buffer buffer = { .addr = (void *)(uintptr_t)addr, .length = length };
	struct kvp_list *one = fake_world_list(&buffer, 1);
	int err;

	memset(&error, 0, sizeof(error));
	err = kvp_register(fake_world_ctx(), "kv", one, &registrar, 1, NULL, other, &error);
	kvp_list_free(one);
	return err;
}

/* Several fail: all are kept, in their order, and the first failure is the error. */
static void several_fail(void **state)
{
	(void)state;
	assert_int_equal(do_register(), 0);
	fail_unregister(2, -EBUSY);
	fake.fail_unregister_more = 1;
	assert_int_equal(do_unregister(), -EBUSY);
	assert_int_equal(error.index, 2);
	assert_int_equal(kvp_registration_count(registration), 2);
	assert_int_equal(kvp_registration_entry(registration, 0)->index, 1);
	assert_int_equal(kvp_registration_entry(registration, 1)->index, 2);
	assert_int_equal(do_unregister(), 0);
}

/* rdma-core PR #824: memory went to a new owner while the device still had it. */
static void quarantined_memory_is_not_used_again(void **state)
{
	struct kvp_registration *other = NULL;

	(void)state;
	half_undone();
	fake.register_calls = 10;
	assert_int_equal(register_range(address(1) + 2 * MIB - 1, 4096, &other), -EBUSY);
	assert_null(other);
	assert_int_equal(error.phase, KVP_PHASE_CHECK);
	assert_int_equal(error.index, 0);
	assert_string_equal(error.device, "store0");
	/* What failed first is what is said. */
	assert_contains(error.message, "are quarantined by an earlier failure: buffer 1: can't unregister");
	assert_int_equal(register_range(address(1) - 4096, 4097, &other), -EBUSY);
	/* The same list once more: of its four buffers one is in quarantine. */
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &other,
				      &error), -EBUSY);
	assert_int_equal(error.index, 1);
	assert_int_equal(fake.register_calls, 10);
	assert_int_equal(do_unregister(), 0);
}

/* The same for what a kvp_unregister() of a committed one left. */
static void quarantined_by_unregister(void **state)
{
	struct kvp_registration *other = NULL;

	(void)state;
	assert_int_equal(do_register(), 0);
	/* Before, the memory could be registered a second time. */
	assert_int_equal(register_range(address(3), 4096, &other), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
	fail_unregister(1, -EBUSY);
	assert_int_equal(do_unregister(), -EBUSY);
	assert_int_equal(register_range(address(3), 4096, &other), -EBUSY);
	assert_int_equal(do_unregister(), 0);
	assert_int_equal(register_range(address(3), 4096, &other), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
}

static void neighbours_of_the_quarantine_are_free(void **state)
{
	struct kvp_registration *other = NULL;

	(void)state;
	half_undone();
	fake.fail_register = 0;
	assert_int_equal(register_range(address(1) + 2 * MIB, 4096, &other), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
	assert_int_equal(register_range(address(1) - 4096, 4096, &other), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
	assert_int_equal(do_unregister(), 0);
	assert_int_equal(register_range(address(1), 4096, &other), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
}

/* What another thread does while entries are undone; its store is not the one that is at it. */
static struct fake_registrar other_fake;
static unsigned int tried;
static const char *expected;

static void register_meanwhile(void)
{
	struct kvp_registrar *other = fake_registrar_new(&other_fake, 1, 0);
	const struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)(address(1) + 4096), .length = 4096,
	};
	struct kvp_list *one = fake_world_list(&buffer, 1);
	struct kvp_registration *got = NULL;
	struct kvp_error why = { 0 };
	int err;

	err = kvp_register(fake_world_ctx(), "kv", one, &other, 1, NULL, &got, &why);
	tried++;
	assert_int_equal(err, -EBUSY);
	assert_null(got);
	assert_int_equal(why.phase, KVP_PHASE_CHECK);
	assert_contains(why.message, expected);
	assert_int_equal(other_fake.register_calls, 0);
	kvp_list_free(one);
	kvp_registrar_free(other);
}

static void watch(const char *message)
{
	memset(&other_fake, 0, sizeof(other_fake));
	tried = 0;
	expected = message;
	fake.during_unregister = register_meanwhile;
}

static void not_while_it_is_tried_again(void **state)
{
	(void)state;
	half_undone();
	watch("are quarantined by an earlier failure");
	assert_int_equal(do_unregister(), 0);
	assert_int_equal(tried, 1);
}

static void not_while_a_failure_is_undone(void **state)
{
	(void)state;
	fake.fail_register = 3;
	fake.register_ret = -ENOMEM;
	watch("are being unregistered by another call");
	assert_int_equal(do_register(), -ENOMEM);
	assert_null(registration);
	assert_int_equal(tried, 2);
}

static void not_while_it_ends(void **state)
{
	(void)state;
	assert_int_equal(do_register(), 0);
	watch("are being unregistered by another call");
	assert_int_equal(do_unregister(), 0);
	assert_int_equal(tried, BUFFERS);
	/* And then it is free. */
	fake.during_unregister = NULL;
	assert_int_equal(do_register(), 0);
	assert_int_equal(do_unregister(), 0);
}

int main(void)
{
#define quarantine_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		quarantine_test(rollback_goes_on_past_a_failure),
		quarantine_test(every_unregister_fails_once),
		quarantine_test(states_of_an_unfinished_end),
		quarantine_test(code_of_an_engine),
		quarantine_test(several_fail),
		quarantine_test(quarantined_by_unregister),
		quarantine_test(quarantined_memory_is_not_used_again),
		quarantine_test(neighbours_of_the_quarantine_are_free),
		quarantine_test(not_while_it_is_tried_again),
		quarantine_test(not_while_a_failure_is_undone),
		quarantine_test(not_while_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

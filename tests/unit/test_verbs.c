// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registrar of ibverbs, against a scripted library. */
#include "fake_verbs.h"
#include "fake_world.h"

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

static struct ibv_pd *pds[2];

static int setup(void **state)
{
	fake_verbs_reset();
	pds[0] = fake_verbs_pd("rxe0", 1024, UINT64_MAX);
	pds[1] = fake_verbs_pd("rxe1", 1024, UINT64_MAX);
	return fake_world_setup(state);
}

static int teardown(void **state)
{
	const char *trouble = fake_verbs_trouble();
	const unsigned int live = fake_verbs_live();

	fake_verbs_reset();
	if (trouble || live)
		print_error("%s, %u regions live\n", trouble ? trouble : "no trouble", live);
	return fake_world_teardown(state) || trouble || live ? -1 : 0;
}

static struct kvp_registrar *registrar_of(uint32_t count, int access)
{
	struct kvp_registrar *registrar;

	assert_int_equal(kvp_registrar_verbs(pds, count, access, &registrar, NULL), 0);
	return registrar;
}

static int register_one(struct kvp_registrar *registrar, uint64_t length, uint32_t flags,
			struct kvp_registration **registration, struct kvp_error *error)
{
	const struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)FAKE_BASE, .length = length, .flags = flags,
	};
	struct kvp_list *list = fake_world_list(&buffer, 1);
	int err;

	err = kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, registration, error);
	kvp_list_free(list);
	return err;
}

static void every_device_gets_a_region(void **state)
{
	struct kvp_registrar *registrar = registrar_of(2, ALL_ACCESS);
	struct kvp_registration *registration;
	uint32_t device;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	assert_int_equal(register_one(registrar, 8 * MIB, 0, &registration, NULL), 0);
	assert_int_equal(fake_verbs_live(), 2);
	assert_int_equal(kvp_registration_count(registration), 2);
	for (device = 0; device < 2; device++) {
		const struct kvp_entry *entry;
		struct ibv_mr *mr;

		entry = kvp_registration_find(registration, 0, 0, device, 8 * MIB - 1);
		assert_non_null(entry);
		mr = kvp_entry_mr(registration, entry);
		assert_ptr_equal(mr, entry->cookie);
		assert_ptr_equal(mr->pd, pds[device]);
		assert_ptr_equal(mr->addr, (void *)(uintptr_t)FAKE_BASE);
		assert_int_equal(mr->length, 8 * MIB);
		assert_int_equal(fake_verbs_call(device)->access, ALL_ACCESS);
	}
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	kvp_registrar_free(registrar);
}

/* libfabric #6467, ucx #4924: read-only memory must not be registered for writing. */
static void read_only_drops_what_writes(void **state)
{
	struct kvp_registrar *registrar = registrar_of(1, ALL_ACCESS);
	struct kvp_registration *registration;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB)->writable = 0;
	assert_int_equal(register_one(registrar, MIB, KVP_BUFFER_READ_ONLY, &registration, NULL),
			 0);
	assert_int_equal(fake_verbs_call(0)->access,
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	kvp_registrar_free(registrar);
}

/* mooncake #2017: the device's max_mr_size is kept by cutting, not by shortening. */
static void limits_of_the_device(void **state)
{
	struct kvp_registration *registration;
	struct kvp_error error = { 0 };
	struct kvp_registrar *registrar;
	uint64_t covered = 0;
	uint32_t i;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 4096 * MIB);
	pds[0] = fake_verbs_pd("small", 4, 1 << 30);
	registrar = registrar_of(1, ALL_ACCESS);
	assert_int_equal(register_one(registrar, 3779571220ULL, 0, &registration, NULL), 0);
	assert_int_equal(kvp_registration_count(registration), 4);
	for (i = 0; i < 4; i++)
		covered += fake_verbs_call(i)->length;
	assert_int_equal(covered, 3779571220ULL);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	fake_verbs_forget_calls();
	assert_int_equal(register_one(registrar, 4096 * MIB, 0, &registration, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	kvp_registrar_free(registrar);

	pds[0] = fake_verbs_pd("few", 3, 1 << 30);
	registrar = registrar_of(1, ALL_ACCESS);
	fake_verbs_forget_calls();
	assert_int_equal(register_one(registrar, 3779571220ULL, 0, &registration, &error), -ENOSPC);
	assert_string_equal(error.device, "few");
	assert_contains(error.message, "need 4 registrations, the device has 3");
	assert_int_equal(fake_verbs_calls(), 0);
	kvp_registrar_free(registrar);
}

static void registering_fails(void **state)
{
	static const struct {
		int err;
		int wanted;
		const char *advice;
	} cases[] = {
		{ ENOMEM, -ENOMEM, "RLIMIT_MEMLOCK" },
		{ EINVAL, -EINVAL, "access flags" },
		{ EFAULT, -EFAULT, "still mapped" },
		{ EBUSY, -EBUSY, "" },
		/* Without a reason it is a failure still. */
		{ 0, -EIO, "" },
	};
	struct kvp_registrar *registrar = registrar_of(2, ALL_ACCESS);
	struct kvp_registration *registration;
	unsigned int i;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kvp_error error = { 0 };

		fake_verbs_fail_reg(1, 1, cases[i].err);
		assert_int_equal(register_one(registrar, MIB, 0, &registration, &error),
				 cases[i].wanted);
		assert_null(registration);
		assert_int_equal(error.err, cases[i].wanted);
		assert_int_equal(error.phase, KVP_PHASE_REGISTER);
		assert_string_equal(error.device, "rxe1");
		assert_string_equal(error.message,
				    "buffer 0: can't register 1048576 bytes at 0x7f0000000000 (offset 0)");
		assert_contains(error.advice, cases[i].advice);
		assert_int_equal(fake_verbs_live(), 0);
	}
	kvp_registrar_free(registrar);
}

static void unregistering_fails(void **state)
{
	static const struct { int err, wanted; } cases[] = {
		{ EBUSY, -EBUSY }, { -1, -EIO }, { -EINVAL, -EINVAL },
	};
	struct kvp_registrar *registrar = registrar_of(1, ALL_ACCESS);
	struct kvp_registration *registration;
	unsigned int i;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < 3; i++) {
		struct kvp_error error = { 0 };

		assert_int_equal(register_one(registrar, MIB, 0, &registration, NULL), 0);
		fake_verbs_fail_dereg(0, 1, cases[i].err);
		assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error),
				 cases[i].wanted);
		assert_int_equal(error.phase, KVP_PHASE_UNDO);
		assert_string_equal(error.device, "rxe0");
		assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	}
	kvp_registrar_free(registrar);
}

static void paging_on_demand_pins_nothing(void **state)
{
	struct kvp_registrar *registrar = registrar_of(1, ALL_ACCESS);

	(void)state;
	assert_int_equal(registrar->ops.pins, 1);
	kvp_registrar_free(registrar);
	registrar = registrar_of(1, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	assert_int_equal(registrar->ops.pins, 0);
	kvp_registrar_free(registrar);
}

static void wrong_arguments(void **state)
{
	struct ibv_pd *broken[2] = { pds[0], NULL };
	struct kvp_registrar *registrar = (void *)1;
	struct kvp_error error = { 0 };

	(void)state;
	assert_int_equal(kvp_registrar_verbs(NULL, 1, 0, &registrar, &error), -EINVAL);
	assert_null(registrar);
	assert_int_equal(kvp_registrar_verbs(pds, 0, 0, &registrar, &error), -EINVAL);
	assert_int_equal(kvp_registrar_verbs(pds, 1, 0, NULL, &error), -EINVAL);
	assert_int_equal(kvp_registrar_verbs(broken, 2, 0, &registrar, &error), -EINVAL);
	assert_contains(error.message, "protection domain 1 is NULL");
	assert_int_equal(kvp_registrar_verbs(pds, 1, IBV_ACCESS_REMOTE_WRITE, &registrar, &error),
			 -EINVAL);
	assert_string_equal(error.advice, "add IBV_ACCESS_LOCAL_WRITE");
	assert_int_equal(kvp_registrar_verbs(pds, 1, IBV_ACCESS_REMOTE_ATOMIC, &registrar, NULL),
			 -EINVAL);
	assert_int_equal(kvp_registrar_verbs(pds, 1, IBV_ACCESS_REMOTE_READ, &registrar, NULL), 0);
	kvp_registrar_free(registrar);

	fake_verbs_fail_query(ENODEV);
	assert_int_equal(kvp_registrar_verbs(pds, 2, 0, &registrar, &error), -ENODEV);
	assert_null(registrar);
	assert_string_equal(error.device, "rxe0");
}

static void no_memory(void **state)
{
	struct kvp_registrar *registrar;
	unsigned int n;

	(void)state;
	for (n = 1;; n++) {
		struct kvp_error error = { 0 };
		int err;

		fake_fail_alloc(n);
		err = kvp_registrar_verbs(pds, 2, 0, &registrar, &error);
		if (!fake_alloc_failed())
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(error.err, -ENOMEM);
		assert_null(registrar);
	}
	fake_fail_alloc(0);
	assert_int_equal(n, 3);
	kvp_registrar_free(registrar);
}

int main(void)
{
#define verbs_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		verbs_test(every_device_gets_a_region),
		verbs_test(read_only_drops_what_writes),
		verbs_test(limits_of_the_device),
		verbs_test(registering_fails),
		verbs_test(unregistering_fails),
		verbs_test(paging_on_demand_pins_nothing),
		verbs_test(wrong_arguments),
		verbs_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

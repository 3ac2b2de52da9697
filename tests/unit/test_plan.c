// SPDX-License-Identifier: LGPL-2.1-or-later
/* Limits of devices and of the process: refused before the first registrar is called. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_registrar.h"
#include "fake_world.h"

static struct fake_registrar fakes[2];

static int setup(void **state)
{
	memset(fakes, 0, sizeof(fakes));
	return fake_world_setup(state);
}

/* Register `count` buffers with the registrars; a failure must have called none. */
static int try_register(const struct kvp_buffer *buffers, uint32_t count,
			struct kvp_registrar **registrars, uint32_t registrar_count,
			struct kvp_error *error)
{
	struct kvp_list *list = fake_world_list(buffers, count);
	struct kvp_registration *registration = NULL;
	int err;

	fake_world_forget_states();
	fakes[0].register_calls = fakes[1].register_calls = 0;
	err = kvp_register(fake_world_ctx(), "kv", list, registrars, registrar_count, NULL,
			   &registration, error);
	if (err) {
		assert_null(registration);
		assert_int_equal(fakes[0].register_calls + fakes[1].register_calls, 0);
		/* Nor was anything said to the kernel. */
		assert_string_equal(fake_world_states(), "");
	} else {
		assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
		assert_int_equal(fakes[0].live + fakes[1].live, 0);
	}
	kvp_list_free(list);
	return err;
}

static struct kvp_buffer buffer_of(uint64_t length, uint64_t block)
{
	return (struct kvp_buffer){
		.addr = (void *)(uintptr_t)FAKE_BASE, .length = length, .block = block,
	};
}

/* mooncake #1382, PR #1405: a limit of 1.5 times the pool, and two devices. */
static void limit_counts_every_device(void **state)
{
	const struct kvp_buffer buffer = buffer_of(8 * MIB, 0);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 2, 1);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fake_world_memlock(12 * MIB, 0);
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -EDQUOT);
	fake_assert_error(&error, -EDQUOT, KVP_PHASE_CHECK,
			  "2 devices x 8388608 bytes need 16777216 bytes of locked memory, the limit is 12582912 and 0 are in use",
			  "raise RLIMIT_MEMLOCK (ulimit -l), or grant CAP_IPC_LOCK");
	assert_int_equal(error.index, KVP_NONE);
	fake_world_memlock(16 * MIB, 0);
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, NULL), 0);
	fake_world_memlock(16 * MIB, 4096);
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -EDQUOT);
	assert_contains(error.message, "the limit is 16777216 and 4096 are in use");
	kvp_registrar_free(registrar);
}

static void set_effective(struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* The same with the real limit of this process, as small as any system's, and unprivileged. */
static void the_real_limit_counts_every_device(void **state)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct before[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct less[_LINUX_CAPABILITY_U32S_3];
	const uint64_t size = 4 * kvp_page_size();
	const struct kvp_buffer buffer = buffer_of(size, 0);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 2, 1);
	struct kvp_error error = { 0 };
	struct rlimit limit, limit_before;
	int too_low, enough;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fake_world_memlock_real();
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit_before), 0);
	assert_int_equal(syscall(SYS_capget, &header, before), 0);
	memcpy(less, before, sizeof(less));
	less[0].effective &= ~(1U << CAP_IPC_LOCK);
	set_effective(less);
	limit = limit_before;
	limit.rlim_cur = size + size / 2;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	too_low = try_register(&buffer, 1, &registrar, 1, &error);
	limit.rlim_cur = 2 * size;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	enough = try_register(&buffer, 1, &registrar, 1, NULL);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit_before), 0);
	set_effective(before);
	assert_int_equal(too_low, -EDQUOT);
	assert_contains(error.message, "2 devices x ");
	assert_int_equal(enough, 0);
	kvp_registrar_free(registrar);
}

static void only_devices_that_pin_count(void **state)
{
	const struct kvp_buffer buffer = buffer_of(8 * MIB, 0);
	struct kvp_registrar *registrars[] = {
		fake_registrar_new(&fakes[0], 1, 1), fake_registrar_new(&fakes[1], 3, 0),
	};

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fake_world_memlock(8 * MIB, 0);
	assert_int_equal(try_register(&buffer, 1, registrars, 2, NULL), 0);
	fake_world_memlock(8 * MIB - 1, 0);
	assert_int_equal(try_register(&buffer, 1, registrars, 2, NULL), -EDQUOT);
	fake_world_memlock(0, 0);
	assert_int_equal(try_register(&buffer, 1, &registrars[1], 1, NULL), 0);
	kvp_registrar_free(registrars[0]);
	kvp_registrar_free(registrars[1]);
}

/* Chunks that meet within a page pin it twice, and so the kernel counts it twice. */
static void shared_pages_count_twice(void **state)
{
	struct kvp_buffer buffer = buffer_of(8 * MIB, MIB);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 1, 1);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fakes[0].max_length = MIB;
	buffer.addr = (char *)buffer.addr + 512;
	/* 8 MiB and a page for the odd start, and seven borders. */
	fake_world_memlock(8 * MIB + 8 * kvp_page_size(), 0);
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, NULL), 0);
	assert_int_equal(fakes[0].register_calls, 8);
	fake_world_memlock(8 * MIB + 8 * kvp_page_size() - 1, 0);
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -EDQUOT);
	kvp_registrar_free(registrar);
}

static void different_cuts_at_different_devices(void **state)
{
	struct kvp_buffer buffer = buffer_of(8 * MIB, MIB);
	struct kvp_registrar *registrars[] = {
		fake_registrar_new(&fakes[0], 1, 1), fake_registrar_new(&fakes[1], 1, 1),
	};
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fakes[0].max_length = MIB;
	buffer.addr = (char *)buffer.addr + 512;
	fake_world_memlock(8 * MIB, 0);
	assert_int_equal(try_register(&buffer, 1, registrars, 2, &error), -EDQUOT);
	assert_contains(error.message, "2 devices need ");
	kvp_registrar_free(registrars[0]);
	kvp_registrar_free(registrars[1]);
}

static void count_after_splitting(void **state)
{
	const struct kvp_buffer buffer = buffer_of(8 * MIB, 0);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 2, 0);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fakes[0].max_length = MIB;
	fakes[0].max_count = 8;
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, NULL), 0);
	fakes[0].max_count = 7;
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -ENOSPC);
	assert_string_equal(error.message,
			    "1 buffers need 8 registrations, the device has 7");
	assert_string_equal(error.device, "store0");
	kvp_registrar_free(registrar);
}

static void block_that_must_not_be_cut(void **state)
{
	const struct kvp_buffer buffer = buffer_of(8 * MIB, 4 * MIB);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 1, 0);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fakes[0].max_length = 3 * MIB;
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -EMSGSIZE);
	assert_int_equal(error.index, 0);
	assert_string_equal(error.device, "store0");
	assert_contains(error.message, "the block of 4194304 bytes");
	assert_contains(error.message, "the device registers 3145728 bytes at most");
	kvp_registrar_free(registrar);
}

static void more_than_can_be_counted(void **state)
{
	const struct kvp_buffer buffer = buffer_of((uint64_t)1 << 44, 0);
	const struct kvp_buffer half = buffer_of((uint64_t)1 << 43, 0);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 1, 0);
	struct kvp_registrar *two = fake_registrar_new(&fakes[0], 2, 0);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, (uint64_t)1 << 44);
	fakes[0].max_length = 4096;
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -ENOSPC);
	assert_contains(error.message, "more than 4294967295 registrations");
	/* 2^31 at each of two devices: neither alone is too many. */
	assert_int_equal(try_register(&half, 1, &two, 1, &error), -ENOSPC);
	kvp_registrar_free(registrar);
	kvp_registrar_free(two);
}

static void limits_that_cannot_be_had(void **state)
{
	const struct kvp_buffer buffer = buffer_of(8 * MIB, 0);
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 1, 0);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fakes[0].limits_ret = -ENODEV;
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -ENODEV);
	assert_string_equal(error.device, "store0");
	fakes[0].limits_ret = 800;
	assert_int_equal(try_register(&buffer, 1, &registrar, 1, &error), -EREMOTEIO);
	assert_contains(error.message, "its registrar returned 800");
	kvp_registrar_free(registrar);
}

/* One bad buffer of many, and no limit, no registrar and no kernel state was touched. */
static void buffers_come_before_limits(void **state)
{
	const struct kvp_buffer buffers[] = {
		buffer_of(2 * MIB, 0),
		{ .addr = (void *)(uintptr_t)(FAKE_BASE + 128 * MIB), .length = 2 * MIB },
	};
	struct kvp_registrar *registrar = fake_registrar_new(&fakes[0], 2, 1);
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fake_world_map(FAKE_BASE + 128 * MIB, 2 * MIB, KVP_KIND_ANON);
	assert_int_equal(try_register(buffers, 2, &registrar, 1, &error), -ENOTSUP);
	assert_int_equal(error.index, 1);
	assert_int_equal(fakes[0].limits_calls, 0);
	kvp_registrar_free(registrar);
}

int main(void)
{
#define plan_test(function) cmocka_unit_test_setup_teardown(function, setup, fake_world_teardown)
	const struct CMUnitTest tests[] = {
		plan_test(limit_counts_every_device),
		plan_test(the_real_limit_counts_every_device),
		plan_test(only_devices_that_pin_count),
		plan_test(shared_pages_count_twice),
		plan_test(different_cuts_at_different_devices),
		plan_test(count_after_splitting),
		plan_test(block_that_must_not_be_cut),
		plan_test(more_than_can_be_counted),
		plan_test(limits_that_cannot_be_had),
		plan_test(buffers_come_before_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

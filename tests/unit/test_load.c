// SPDX-License-Identifier: LGPL-2.1-or-later
/* External registrars out of shared objects. */
#include <stdlib.h>

#include "fake_world.h"

#define BUFFERS 3

static struct kvp_registrar *registrar;
static struct kvp_error error;

static int load(const char *which, const char *config, const char *name, uint64_t time_limit)
{
	struct kvp_load_options options = KVP_INIT(struct kvp_load_options);
	char path[128];

	snprintf(path, sizeof(path), "build/unit/loaded_%s.so", which);
	options.path = path;
	options.config = config;
	options.name = name;
	options.time_limit = time_limit;
	memset(&error, 0, sizeof(error));
	return kvp_registrar_load(&options, &registrar, &error);
}

/* Register and unregister three buffers by what was loaded, and end it. */
static void use(void)
{
	struct kvp_registration *registration;
	struct kvp_buffer buffers[BUFFERS];
	struct kvp_list *list;
	uint32_t i;

	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)(FAKE_BASE + i * 2 * MIB), .length = 2 * MIB,
		};
	list = fake_world_list(buffers, BUFFERS);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL,
				      &registration, &error), 0);
	assert_int_equal((uintptr_t)kvp_registration_entry(registration, 2)->cookie, 4 * MIB + 1);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error), 0);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
}

static void one_by_one(void **state)
{
	(void)state;
	assert_int_equal(load("store", "x", NULL, 0), 0);
	assert_string_equal(kvp_registrar_device(registrar, 0), "loaded");
	use();
	assert_string_equal(getenv("LOADED_STORE_HELD"), "none");
	assert_string_equal(getenv("LOADED_STORE_CALLS"), "many");
}

static void in_batches(void **state)
{
	(void)state;
	assert_int_equal(load("batch", "", NULL, 0), 0);
	use();
	assert_string_equal(getenv("LOADED_STORE_HELD"), "none");
	assert_string_equal(getenv("LOADED_STORE_CALLS"), "two");
}

static void with_a_time_limit(void **state)
{
	(void)state;
	assert_int_equal(load("batch", "x", "second", 60000000000ULL), 0);
	assert_string_equal(kvp_registrar_device(registrar, 0), "second");
	assert_string_equal(registrar->name, "second");
	use();
	assert_string_equal(getenv("LOADED_STORE_CALLS"), "two");
}

static void refuse(const char *which, const char *config, const char *name, int err,
		   const char *says)
{
	assert_int_equal(load(which, config, name, 0), err);
	assert_null(registrar);
	assert_int_equal(error.err, err);
	assert_int_equal(error.phase, KVP_PHASE_CONNECT);
	assert_contains(error.message, says);
	assert_contains(error.message, which);
}

static void refused(void **state)
{
	(void)state;
	refuse("missing", "x", NULL, -ENOENT, "cannot open shared object file");
	refuse("none", "x", NULL, -ENOENT, "exports no kvp_store");
	refuse("newer", "x", NULL, -EPROTO, "version 2, the library's is 1");
	refuse("half", "x", NULL, -EPROTO, "no unregister_buffer");
	refuse("nameless", "x", NULL, -EINVAL, "'no name' is no name");
	refuse("store", "x", "a b", -EINVAL, "'a b' is no name");
	refuse("store", "refuse", NULL, -EREMOTEIO, "returned code 42");
	refuse("store", NULL, NULL, -EINVAL, "can't open the store");
}

static void options(void **state)
{
	struct kvp_load_options given = KVP_INIT(struct kvp_load_options);

	(void)state;
	assert_int_equal(kvp_registrar_load(NULL, &registrar, &error), -EINVAL);
	assert_int_equal(kvp_registrar_load(&given, &registrar, &error), -EINVAL);
	assert_contains(error.message, "no path");
	assert_int_equal(kvp_registrar_load(&given, NULL, &error), -EINVAL);
	given.struct_size = 1;
	assert_int_equal(kvp_registrar_load(&given, &registrar, &error), -EINVAL);
}

/* The thread of a store that never answers is left to itself. */
static void opening_hangs(void **state)
{
	(void)state;
	assert_int_equal(load("store", "hang", NULL, 1000000), -ETIMEDOUT);
	assert_null(registrar);
	assert_contains(error.message, "not open within 1 ms");
}

static void no_memory(void **state)
{
	unsigned int n;
	int err;

	(void)state;
	for (n = 1; ; n++) {
		fake_fail_alloc(n);
		err = load("store", "x", NULL, 0);
		fake_fail_alloc(0);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_null(registrar);
	}
	assert_true(n > 2);
	kvp_registrar_free(registrar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(one_by_one),
		world_test(in_batches),
		world_test(with_a_time_limit),
		world_test(refused),
		world_test(options),
		world_test(no_memory),
		world_test(opening_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

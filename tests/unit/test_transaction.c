// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a registration that succeeds looks like, to the caller and to the kernel. */
#include <stdlib.h>
#include <unistd.h>

#include "fake_registrar.h"
#include "fake_world.h"

static struct fake_registrar fakes[2];
static struct kvp_registrar *registrars[2];

/* Two registrars, of one device and of two; the second takes a MiB at a time. */
static int setup(void **state)
{
	memset(fakes, 0, sizeof(fakes));
	if (fake_world_setup(state))
		return -1;
	registrars[0] = fake_registrar_new(&fakes[0], 1, 1);
	registrars[1] = fake_registrar_new(&fakes[1], 2, 0);
	fakes[1].max_length = MIB;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	fake_world_pool(2, FAKE_BASE + 64 * MIB, 64 * MIB);
	return 0;
}

static int teardown(void **state)
{
	kvp_registrar_free(registrars[0]);
	kvp_registrar_free(registrars[1]);
	if (fakes[0].live || fakes[1].live)
		print_error("%d and %d registrations left\n", fakes[0].live, fakes[1].live);
	return fake_world_teardown(state) || fakes[0].live || fakes[1].live ? -1 : 0;
}

static struct kvp_buffer buffer_at(uint64_t offset, uint64_t length)
{
	return (struct kvp_buffer){
		.addr = (void *)(uintptr_t)(FAKE_BASE + offset), .length = length,
	};
}

/* Three buffers of which the caller's second is empty: indices 0, 2, 3. */
static struct kvp_list *three(void)
{
	const struct kvp_buffer buffers[] = {
		buffer_at(0, 2 * MIB), buffer_at(0, 0), buffer_at(8 * MIB, 4096),
		buffer_at(66 * MIB, 2 * MIB + 512),
	};

	return fake_world_list(buffers, 4);
}

static int do_register(const struct kvp_list *list, const struct kvp_transaction_options *options,
		       struct kvp_registration **registration, struct kvp_error *error)
{
	return kvp_register(fake_world_ctx(), "kv", list, registrars, 2, options, registration,
			    error);
}

static void every_chunk_of_every_buffer_everywhere(void **state)
{
	static const struct {
		uint32_t index, registrar, device;
		uint64_t offset, length;
	} wanted[] = {
		{ 0, 0, 0, 0, 2 * MIB },
		{ 0, 1, 0, 0, MIB }, { 0, 1, 0, MIB, MIB },
		{ 0, 1, 1, 0, MIB }, { 0, 1, 1, MIB, MIB },
		{ 2, 0, 0, 0, 4096 }, { 2, 1, 0, 0, 4096 }, { 2, 1, 1, 0, 4096 },
		{ 3, 0, 0, 0, 2 * MIB + 512 },
		{ 3, 1, 0, 0, MIB }, { 3, 1, 0, MIB, MIB }, { 3, 1, 0, 2 * MIB, 512 },
		{ 3, 1, 1, 0, MIB }, { 3, 1, 1, MIB, MIB }, { 3, 1, 1, 2 * MIB, 512 },
	};
	const uint32_t count = sizeof(wanted) / sizeof(wanted[0]);
	struct kvp_registration *registration = NULL;
	struct kvp_error error = { .err = 17 };
	struct kvp_list *list = three();
	uint32_t i;

	(void)state;
	assert_int_equal(do_register(list, NULL, &registration, &error), 0);
	assert_int_equal(error.err, 17);
	/* The list may go before the registration. */
	kvp_list_free(list);
	assert_int_equal(kvp_registration_count(registration), count);
	for (i = 0; i < count; i++) {
		const struct kvp_entry *entry = kvp_registration_entry(registration, i);
		const uint64_t base = wanted[i].index == 3 ? 66 * MIB :
				      wanted[i].index == 2 ? 8 * MIB : 0;

		assert_int_equal(entry->index, wanted[i].index);
		assert_int_equal(entry->registrar, wanted[i].registrar);
		assert_int_equal(entry->device, wanted[i].device);
		assert_int_equal(entry->offset, wanted[i].offset);
		assert_int_equal(entry->chunk.length, wanted[i].length);
		assert_ptr_equal(entry->chunk.addr,
				 (void *)(uintptr_t)(FAKE_BASE + base + wanted[i].offset));
		assert_ptr_equal(entry->cookie, entry->chunk.addr);
		assert_int_equal(entry->quarantined, 0);
		assert_int_equal(entry->chunk.span.id, wanted[i].index == 3 ? 2 : 1);
		assert_int_equal(entry->chunk.span.offset,
				 base % (64 * MIB) + wanted[i].offset);
		assert_int_equal(entry->chunk.span.length, wanted[i].length);
		assert_null(kvp_entry_mr(registration, entry));
		/* Found by its first and last byte. */
		assert_ptr_equal(kvp_registration_find(registration, entry->index, entry->registrar,
						       entry->device, entry->offset), entry);
		assert_ptr_equal(kvp_registration_find(registration, entry->index, entry->registrar,
						       entry->device, entry->offset +
						       entry->chunk.length - 1), entry);
	}
	assert_null(kvp_registration_entry(registration, count));
	assert_null(kvp_registration_find(registration, 1, 0, 0, 0));
	assert_null(kvp_registration_find(registration, 0, 0, 0, 2 * MIB));
	assert_null(kvp_registration_find(registration, 0, 0, 1, 0));
	assert_null(kvp_registration_find(registration, 4, 0, 0, 0));
	assert_null(kvp_registration_find(registration, 0, 2, 0, 0));
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_null(registration);
	/* The reverse of how they were registered. */
	for (i = 0; i < fakes[1].register_calls; i++)
		assert_ptr_equal(fakes[1].calls[fakes[1].call_count - 1 - i].chunk.addr,
				 fakes[1].calls[i].chunk.addr);
}

struct commit {
	int ret;
	unsigned int calls;
	uint32_t count;
	int live;
	char states[64];
};

static int on_commit(const struct kvp_registration *registration, void *arg)
{
	struct commit *commit = arg;

	commit->calls++;
	commit->count = kvp_registration_count(registration);
	commit->live = fakes[0].live + fakes[1].live;
	strncpy(commit->states, fake_world_states(), sizeof(commit->states) - 1);
	return commit->ret;
}

/* The seed's first invariant: nothing of the caller's changes before all is registered. */
static void commit_is_called_once_after_all(void **state)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	struct kvp_registration *registration = NULL;
	struct commit commit = { 0 };
	struct kvp_list *list = three();

	(void)state;
	options.commit = on_commit;
	options.arg = &commit;
	assert_int_equal(do_register(list, &options, &registration, NULL), 0);
	assert_int_equal(commit.calls, 1);
	assert_int_equal(commit.count, 15);
	assert_int_equal(commit.live, 15);
	/* The kernel says COMMITTED when the caller's state is in place, not sooner. */
	assert_string_equal(commit.states, "1:registering 2:registering");
	assert_string_equal(fake_world_states(),
			    "1:registering 2:registering 1:committed 2:committed");
	fake_world_forget_states();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_string_equal(fake_world_states(), "1:allocated 2:allocated");
	assert_int_equal(commit.calls, 1);
	kvp_list_free(list);
}

/* A pool in two registrations stays COMMITTED until the last of them ends, or fails. */
static void state_of_a_pool_in_two_registrations(void **state)
{
	struct kvp_registration *first = NULL, *second = NULL, *third = NULL;
	struct kvp_list *list = three();

	(void)state;
	assert_int_equal(do_register(list, NULL, &first, NULL), 0);
	assert_int_equal(do_register(list, NULL, &second, NULL), 0);
	fake_world_forget_states();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &first, NULL), 0);
	assert_string_equal(fake_world_states(), "1:committed 2:committed");
	fake_world_forget_states();
	fakes[0].fail_register = fakes[0].register_calls + 1;
	fakes[0].register_ret = -EIO;
	assert_int_equal(do_register(list, NULL, &third, NULL), -EIO);
	assert_string_equal(fake_world_states(),
			    "1:registering 2:registering 1:committed 2:committed");
	fake_world_forget_states();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &second, NULL), 0);
	assert_string_equal(fake_world_states(), "1:allocated 2:allocated");
	kvp_list_free(list);
}

static int end_the_other(const struct kvp_registration *given, void *arg)
{
	(void)given;
	return kvp_unregister(fake_world_ctx(), arg, NULL);
}

/* Register, and then again with a commit function that is given the first registration. */
static int register_and_replace(int (*commit)(const struct kvp_registration *, void *),
				struct kvp_registration **second)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	struct kvp_registration *first = NULL;
	struct kvp_list *list = three();
	int err;

	assert_int_equal(do_register(list, NULL, &first, NULL), 0);
	fake_world_forget_states();
	options.commit = commit;
	options.arg = &first;
	err = do_register(list, &options, second, NULL);
	assert_null(first);
	kvp_list_free(list);
	return err;
}

/* A registration replaces another: the commit of the new one ends the old one. */
static void state_when_one_replaces_another(void **state)
{
	struct kvp_registration *second = NULL;

	(void)state;
	assert_int_equal(register_and_replace(end_the_other, &second), 0);
	assert_int_equal(fake_world_info(1)->registration, KVP_REGISTRATION_COMMITTED);
	/* Not ALLOCATED in between, which COMMITTED must not follow. */
	assert_string_equal(fake_world_states(),
			    "1:registering 2:registering 1:committed 2:committed");
	fake_world_forget_states();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &second, NULL), 0);
	assert_string_equal(fake_world_states(), "1:allocated 2:allocated");
}

/* And when it then fails, nothing is in force any more. */
static int end_the_other_and_fail(const struct kvp_registration *given, void *arg)
{
	return end_the_other(given, arg) ? 0 : -ECANCELED;
}

static void state_when_the_replacement_fails(void **state)
{
	struct kvp_registration *second = NULL;

	(void)state;
	assert_int_equal(register_and_replace(end_the_other_and_fail, &second), -ECANCELED);
	assert_string_equal(fake_world_states(), "1:registering 2:registering 1:failed 2:failed");
}

/* Of two that are under way the first to end, well or not, leaves it to the other. */
static int register_another(const struct kvp_registration *given, void *arg)
{
	struct kvp_registration **other = arg;
	struct kvp_list *list = three();
	int err;

	(void)given;
	err = do_register(list, NULL, other, NULL);
	kvp_list_free(list);
	return err && err != -EIO ? err : 0;
}

static void state_of_two_under_way(void **state)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	struct kvp_registration *outer = NULL, *inner = NULL;
	struct kvp_list *list = three();

	(void)state;
	options.commit = register_another;
	options.arg = &inner;
	assert_int_equal(do_register(list, &options, &outer, NULL), 0);
	assert_string_equal(fake_world_states(), "1:registering 2:registering 1:registering "
			    "2:registering 1:committed 2:committed");
	assert_int_equal(kvp_unregister(fake_world_ctx(), &inner, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &outer, NULL), 0);
	fake_world_forget_states();
	/* The inner one fails. */
	fakes[0].fail_register = fakes[0].register_calls + 4;
	fakes[0].register_ret = -EIO;
	assert_int_equal(do_register(list, &options, &outer, NULL), 0);
	assert_null(inner);
	assert_string_equal(fake_world_states(), "1:registering 2:registering 1:registering "
			    "2:registering 1:committed 2:committed");
	assert_int_equal(kvp_unregister(fake_world_ctx(), &outer, NULL), 0);
	kvp_list_free(list);
}

/* One that could not be ended wholly is not in force, whatever is left of it. */
static void state_beside_an_unfinished_end(void **state)
{
	struct kvp_registration *first = NULL, *second = NULL;
	struct kvp_list *list = three();

	(void)state;
	assert_int_equal(do_register(list, NULL, &first, NULL), 0);
	assert_int_equal(do_register(list, NULL, &second, NULL), 0);
	fake_world_forget_states();
	fakes[0].fail_unregister = 1;
	fakes[0].unregister_ret = -EBUSY;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &first, NULL), -EBUSY);
	assert_string_equal(fake_world_states(), "1:committed 2:committed");
	fake_world_forget_states();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &second, NULL), 0);
	assert_string_equal(fake_world_states(), "1:allocated 2:allocated");
	assert_int_equal(kvp_unregister(fake_world_ctx(), &first, NULL), 0);
	kvp_list_free(list);
}

/* Root may change every pool, and must not speak for those of other contexts. */
static void states_of_others_pools_are_left_alone(void **state)
{
	struct kvp_registration *registration = NULL;
	struct kvp_list *list = three();
	struct kvp_owned *owned = fake_world_ctx()->owned;	/* pool 2 is the last */

	(void)state;
	/* Of this process all the same. */
	fake_world_others(1);
	fake_world_info(2)->owned = 0;
	fake_world_others(2);
	assert_int_equal(do_register(list, NULL, &registration, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_string_equal(fake_world_states(), "");

	/* A pool whose descriptor was handed over may not be openable by this process. */
	fake_world_fail_find(-EACCES);
	assert_int_equal(do_register(list, NULL, &registration, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_string_equal(fake_world_states(), "");

	fake_world_fail_find(0);
	fake_world_ctx()->owned = owned;
	fake_world_fail_state(KVP_REGISTRATION_REGISTERING, -EPERM);
	assert_int_equal(do_register(list, NULL, &registration, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_string_equal(fake_world_states(), "2:registering");
	kvp_list_free(list);
}

static void pool_that_ends_meanwhile(void **state)
{
	struct kvp_registration *registration = NULL;
	struct kvp_error error = { 0 };
	struct kvp_list *list = three();

	(void)state;
	fake_world_fail_find(-ESTALE);
	assert_int_equal(do_register(list, NULL, &registration, &error), -ESTALE);
	assert_int_equal(error.phase, KVP_PHASE_REQUEST);
	assert_null(registration);
	fake_world_fail_find(0);
	fake_world_fail_state(KVP_REGISTRATION_REGISTERING, -ENODEV);
	assert_int_equal(do_register(list, NULL, &registration, &error), -ENODEV);
	assert_null(registration);
	assert_int_equal(fakes[0].register_calls, 0);
	/* What is in force is not called back for a state that can't be told. */
	fake_world_fail_state(KVP_REGISTRATION_REGISTERING, 0);
	fake_world_fail_state(KVP_REGISTRATION_COMMITTED, -ENOMEM);
	fake_world_fail_state(KVP_REGISTRATION_ALLOCATED, -ENOMEM);
	assert_int_equal(do_register(list, NULL, &registration, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	kvp_list_free(list);
}

static void wrong_arguments(void **state)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	struct kvp_registrar *twice[] = { registrars[0], registrars[0] };
	struct kvp_registrar *missing[] = { registrars[0], NULL };
	struct kvp_registration *registration = (void *)1;
	struct kvp_list *list = three(), *open;
	struct kvp_ctx *ctx = fake_world_ctx();
	struct kvp_error error = { 0 };

	(void)state;
	assert_int_equal(kvp_register(ctx, "kv", list, twice, 2, NULL, &registration, &error),
			 -EINVAL);
	assert_null(registration);
	assert_string_equal(error.message, "registrars 0 and 1 are the same");
	assert_int_equal(kvp_register(ctx, "kv", list, missing, 2, NULL, &registration, &error),
			 -EINVAL);
	assert_int_equal(kvp_register(ctx, "kv", list, NULL, 1, NULL, &registration, NULL),
			 -EINVAL);
	assert_int_equal(kvp_register(ctx, "kv", list, registrars, 0, NULL, &registration, NULL),
			 -EINVAL);
	assert_int_equal(kvp_register(ctx, "kv", list, registrars, 2, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(kvp_register(ctx, NULL, list, registrars, 2, NULL, &registration, NULL),
			 -EINVAL);
	assert_int_equal(kvp_register(ctx, "kv", NULL, registrars, 2, NULL, &registration, NULL),
			 -EINVAL);
	options.struct_size = 1;
	assert_int_equal(do_register(list, &options, &registration, &error), -EINVAL);
	kvp_list_free(list);

	assert_int_equal(kvp_list_new(KVP_EMPTY_SKIP, &open), 0);
	assert_int_equal(do_register(open, NULL, &registration, &error), -EINVAL);
	assert_string_equal(error.message, "the buffer list is not sealed");
	assert_int_equal(kvp_list_seal(open, NULL), 0);
	assert_int_equal(do_register(open, NULL, &registration, &error), -EINVAL);
	assert_contains(error.message, "nothing to register");
	kvp_list_free(open);
	assert_int_equal(kvp_unregister(ctx, NULL, NULL), 0);
	registration = NULL;
	assert_int_equal(kvp_unregister(ctx, &registration, NULL), 0);
	assert_int_equal(fakes[0].register_calls, 0);
}

static void another_context_cannot_unregister(void **state)
{
	struct kvp_registration *registration = NULL;
	struct kvp_list *list = three();
	struct kvp_ctx other = { 0 };

	(void)state;
	assert_int_equal(do_register(list, NULL, &registration, NULL), 0);
	assert_int_equal(kvp_unregister(&other, &registration, NULL), -EINVAL);
	assert_non_null(registration);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	kvp_list_free(list);
}

static void registrar_arguments(void **state)
{
	struct kvp_registrar_ops ops = fake_registrar_ops;
	struct kvp_registrar *registrar = (void *)1;

	(void)state;
	assert_int_equal(kvp_registrar_new(&ops, NULL, 0, &registrar), -EINVAL);
	assert_null(registrar);
	assert_int_equal(kvp_registrar_new(NULL, NULL, 1, &registrar), -EINVAL);
	assert_int_equal(kvp_registrar_new(&ops, NULL, 1, NULL), -EINVAL);
#define WITHOUT(member) do { \
		ops = fake_registrar_ops; \
		ops.member = NULL; \
		assert_int_equal(kvp_registrar_new(&ops, NULL, 1, &registrar), -EINVAL); \
	} while (0)
	WITHOUT(limits);
	WITHOUT(register_chunk);
	WITHOUT(unregister_chunk);
	WITHOUT(device_name);
	kvp_registrar_free(NULL);
}

int main(void)
{
#define transaction_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		transaction_test(every_chunk_of_every_buffer_everywhere),
		transaction_test(commit_is_called_once_after_all),
		transaction_test(state_of_a_pool_in_two_registrations),
		transaction_test(state_when_one_replaces_another),
		transaction_test(state_when_the_replacement_fails),
		transaction_test(state_of_two_under_way),
		transaction_test(state_beside_an_unfinished_end),
		transaction_test(states_of_others_pools_are_left_alone),
		transaction_test(pool_that_ends_meanwhile),
		transaction_test(wrong_arguments),
		transaction_test(another_context_cannot_unregister),
		transaction_test(registrar_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

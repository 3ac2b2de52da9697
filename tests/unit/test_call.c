// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls of an external registrar: in batches, without an answer, and past a time limit. */
#include <sched.h>
#include <semaphore.h>

#include "fake_world.h"

#define BUFFERS 4
#define CALLS 32
#define MINUTE ((uint64_t)60 * 1000000000)
#define MOMENT ((uint64_t)10 * 1000000)

struct call {
	bool undo;
	uint32_t device;
	uint32_t count;
	uint64_t offset[BUFFERS];	/* in the pool, buffers */
	uintptr_t cookie[BUFFERS];
};

/* A store: what it holds, what it was asked, and what it is to answer. */
static struct {
	bool held[2][BUFFERS];
	struct call calls[CALLS];
	unsigned int count;
	/* Script: what the n-th call returns, and for each chunk of it. */
	int returns[CALLS];
	int results[CALLS][BUFFERS];
	bool silent[CALLS];		/* fails without saying what became of each */
	unsigned int hang;		/* the call, counted from 1, that waits for `go` */
	sem_t go;
} store;

static atomic_bool hung;	/* it waits */

static struct kvp_registrar *registrar;
static struct kvp_list *list;
static struct kvp_registration *registration;
static struct kvp_error error;

static uint64_t number(const struct kvp_chunk *chunk)
{
	return chunk->span.offset / (2 * MIB);
}

static struct call *log_call(bool undo, uint32_t device, const struct kvp_chunk *chunks,
			     uint32_t count)
{
	struct call *call = &store.calls[store.count++];
	uint32_t i;

	assert_true(store.count < CALLS && count <= BUFFERS);
	call->undo = undo;
	call->device = device;
	call->count = count;
	for (i = 0; i < count; i++)
		call->offset[i] = number(&chunks[i]);
	if (store.hang == store.count) {
		atomic_store(&hung, true);
		sem_wait(&store.go);
	}
	return call;
}

static int register_batch(void *arg, uint32_t device, const struct kvp_chunk *chunks,
			  uint32_t count, void **cookies, int *results)
{
	const unsigned int n = store.count;
	uint32_t i;

	(void)arg;
	log_call(false, device, chunks, count);
	for (i = 0; i < count; i++) {
		assert_int_equal(results[i], count > 1 ? -ETIMEDOUT : 0);
		if (!store.silent[n])
			results[i] = store.results[n][i];
		if (results[i] && results[i] != -ETIMEDOUT)
			continue;
		store.held[device][number(&chunks[i])] = true;
		cookies[i] = (void *)(uintptr_t)(100 + number(&chunks[i]));
	}
	return store.returns[n];
}

static int unregister_batch(void *arg, uint32_t device, const struct kvp_chunk *chunks,
			    uint32_t count, void *const *cookies, int *results)
{
	const unsigned int n = store.count;
	struct call *call = log_call(true, device, chunks, count);
	uint32_t i;

	(void)arg;
	for (i = 0; i < count; i++) {
		bool *held = &store.held[device][number(&chunks[i])];

		call->cookie[i] = (uintptr_t)cookies[i];
		if (!store.silent[n])
			results[i] = store.results[n][i];
		if (results[i])
			continue;
		results[i] = *held ? 0 : -ENOENT;
		*held = false;
	}
	return store.returns[n];
}

static int register_one(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	int result = 0, ret = register_batch(arg, device, chunk, 1, cookie, &result);

	return result ? result : ret;
}

static int unregister_one(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	int result = 0, ret = unregister_batch(arg, device, chunk, 1, &cookie, &result);

	return result ? result : ret;
}

static int limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static const char *device_name(void *arg, uint32_t device)
{
	(void)arg;
	return device ? "store1" : "store0";
}

static struct kvp_registrar_ops ops_of(bool batches, uint64_t time_limit)
{
	return (struct kvp_registrar_ops){
		.struct_size = sizeof(struct kvp_registrar_ops),
		.limits = limits,
		.register_chunk = register_one,
		.unregister_chunk = unregister_one,
		.device_name = device_name,
		.name = "store",
		.external = 1,
		.register_batch = batches ? register_batch : NULL,
		.unregister_batch = batches ? unregister_batch : NULL,
		.time_limit = time_limit,
	};
}

static void use(bool batches, uint64_t time_limit, uint32_t devices)
{
	const struct kvp_registrar_ops ops = ops_of(batches, time_limit);

	kvp_registrar_free(registrar);
	assert_int_equal(kvp_registrar_new(&ops, NULL, devices, &registrar), 0);
}

static int setup(void **state)
{
	struct kvp_buffer buffers[BUFFERS];
	uint32_t i;

	memset(&store, 0, sizeof(store));
	sem_init(&store.go, 0, 0);
	if (fake_world_setup(state))
		return -1;
	atomic_store(&hung, false);
	fake_hang(&hung);
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)(FAKE_BASE + i * 2 * MIB), .length = 2 * MIB,
		};
	list = fake_world_list(buffers, BUFFERS);
	registration = NULL;
	registrar = NULL;
	return 0;
}

static int teardown(void **state)
{
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	sem_destroy(&store.go);
	return fake_world_teardown(state);
}

static unsigned int held(void)
{
	unsigned int i, count = 0;

	for (i = 0; i < BUFFERS; i++)
		count += store.held[0][i] + store.held[1][i];
	return count;
}

static int do_register(void)
{
	memset(&error, 0, sizeof(error));
	return kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &registration,
			    &error);
}

static void assert_call(unsigned int n, bool undo, uint32_t device, uint32_t count, ...)
{
	const struct call *call = &store.calls[n];
	va_list offsets;
	uint32_t i;

	assert_true(n < store.count);
	assert_int_equal(call->undo, undo);
	assert_int_equal(call->device, device);
	assert_int_equal(call->count, count);
	va_start(offsets, count);
	for (i = 0; i < count; i++)
		assert_int_equal(call->offset[i], va_arg(offsets, int));
	va_end(offsets);
}

static void one_call_for_all(void **state)
{
	(void)state;
	use(true, 0, 1);
	assert_int_equal(do_register(), 0);
	assert_int_equal(held(), BUFFERS);
	assert_int_equal((uintptr_t)kvp_registration_entry(registration, 2)->cookie, 102);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
	assert_int_equal(store.count, 2);
	assert_call(0, false, 0, 4, 0, 1, 2, 3);
	assert_call(1, true, 0, 4, 3, 2, 1, 0);
	assert_int_equal(store.calls[1].cookie[0], 103);
}

/* The order of a transaction is by buffer, then device: a call is of one device. */
static void a_batch_is_of_one_device(void **state)
{
	unsigned int n;

	(void)state;
	use(true, 0, 2);
	assert_int_equal(do_register(), 0);
	assert_int_equal(store.count, 2 * BUFFERS);
	for (n = 0; n < store.count; n++)
		assert_call(n, false, n % 2, 1, n / 2);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
}

/* What it says of each counts: the refused one is left alone, the unknown one is not. */
static void a_batch_fails_in_part(void **state)
{
	(void)state;
	use(true, 0, 1);
	store.returns[0] = 5;
	store.results[0][2] = 7;
	store.results[0][3] = -ETIMEDOUT;
	assert_int_equal(do_register(), -EREMOTEIO);
	assert_int_equal(error.index, 2);
	assert_contains(error.message, "code 7");
	assert_null(registration);
	assert_int_equal(held(), 0);
	assert_int_equal(store.count, 3);
	assert_call(1, true, 0, 1, 3);
	assert_int_equal(store.calls[1].cookie[0], 0);
	assert_call(2, true, 0, 2, 1, 0);
	assert_int_equal(store.calls[2].cookie[0], 101);
}

/* 42 empty buffers of 294: the batch failed whole, and nobody knew what was registered. */
static void a_batch_fails_and_says_no_more(void **state)
{
	(void)state;
	use(true, 0, 1);
	store.returns[0] = -1;
	store.silent[0] = true;
	assert_int_equal(do_register(), -EPERM);
	assert_int_equal(error.index, 0);
	assert_null(registration);
	assert_int_equal(held(), 0);
	assert_call(1, true, 0, 4, 3, 2, 1, 0);
}

/* It fails, and says that everything succeeded. */
static void a_batch_contradicts_itself(void **state)
{
	(void)state;
	use(true, 0, 1);
	store.returns[0] = 9;
	assert_int_equal(do_register(), -EREMOTEIO);
	assert_contains(error.message, "code 9");
	assert_null(registration);
	assert_int_equal(held(), 0);
}

static void undoing_a_batch_fails_in_part(void **state)
{
	(void)state;
	use(true, 0, 1);
	assert_int_equal(do_register(), 0);
	store.returns[1] = -EIO;
	store.results[1][1] = -EIO;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error), -EIO);
	assert_int_equal(error.index, 2);
	assert_int_equal(held(), 1);
	assert_int_equal(kvp_registration_count(registration), 1);
	assert_int_equal(kvp_registration_entry(registration, 0)->index, 2);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
}

/* No answer is not a refusal, with or without batches. */
static void no_answer_is_undone(void **state)
{
	(void)state;
	use(false, 0, 1);
	store.results[1][0] = -ETIMEDOUT;
	assert_int_equal(do_register(), -ETIMEDOUT);
	assert_int_equal(error.index, 1);
	assert_false(error.repeated);
	assert_null(registration);
	assert_int_equal(held(), 0);
	assert_call(2, true, 0, 1, 1);
	assert_call(3, true, 0, 1, 0);
}

/* A store that was started anew has nothing: that is what was asked for. */
static void what_is_not_there_is_undone(void **state)
{
	(void)state;
	use(false, 0, 1);
	assert_int_equal(do_register(), 0);
	memset(store.held, 0, sizeof(store.held));
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error), 0);
	assert_int_equal(store.count, 2 * BUFFERS);
}

static void in_time(void **state)
{
	(void)state;
	use(false, MINUTE, 1);
	assert_int_equal(do_register(), 0);
	assert_int_equal((uintptr_t)kvp_registration_entry(registration, 3)->cookie, 103);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
	use(true, MINUTE, 1);
	assert_int_equal(do_register(), 0);
	assert_int_equal((uintptr_t)kvp_registration_entry(registration, 3)->cookie, 103);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
}

static void let_go(void)
{
	atomic_store(&hung, false);
	sem_post(&store.go);
	while (kvp_registrar_late(registrar))
		sched_yield();
}

/* mooncake: a store that hangs takes every later caller with it. */
static void registering_hangs(void **state)
{
	struct kvp_registration *other;

	(void)state;
	use(false, MOMENT, 1);
	store.hang = 3;
	assert_int_equal(do_register(), -ETIMEDOUT);
	assert_int_equal(error.index, 2);
	assert_int_equal(error.phase, KVP_PHASE_REGISTER);
	assert_contains(error.message, "the call has run for more than 10 ms");
	assert_contains(error.advice, "3 of its registrations could not be undone");
	/* Nothing more was asked of it: what it does is not known. */
	assert_int_equal(store.count, 3);
	assert_int_equal(kvp_registration_count(registration), 3);

	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &other,
				      &error), -ETIMEDOUT);
	assert_true(error.repeated);
	assert_contains(error.message, "an earlier call has run for more than 10 ms");
	assert_null(other);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error), -ETIMEDOUT);
	assert_true(error.repeated);
	assert_int_equal(store.count, 3);

	let_go();
	assert_int_equal(held(), 3);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
	assert_int_equal(store.calls[3].cookie[0], 0);
	assert_int_equal(store.calls[4].cookie[0], 101);
	assert_int_equal(do_register(), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
}

static void unregistering_hangs(void **state)
{
	(void)state;
	use(true, MOMENT, 1);
	assert_int_equal(do_register(), 0);
	store.hang = 2;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, &error), -ETIMEDOUT);
	assert_false(error.repeated);
	assert_int_equal(kvp_registration_count(registration), BUFFERS);
	/* Its memory is kept, and what is refused for that says why. */
	{
		struct kvp_registration *other;

		let_go();
		assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL,
					      &other, &error), -EBUSY);
		assert_true(error.repeated);
		assert_contains(error.message, "has run for more than 10 ms");
	}
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_int_equal(held(), 0);
}

static sem_t freed;

static void tell_freed(void *arg)
{
	(void)arg;
	sem_post(&freed);
}

/* The registrar is freed under a call that hangs: it lives on as long as that. */
static void freed_while_it_hangs(void **state)
{
	(void)state;
	sem_init(&freed, 0, 0);
	use(false, MOMENT, 1);
	registrar->release = tell_freed;
	store.hang = 1;
	assert_int_equal(do_register(), -ETIMEDOUT);
	kvp_registration_free(registration);
	kvp_registrar_free(registrar);
	registrar = NULL;
	assert_int_equal(sem_trywait(&freed), -1);
	sem_post(&store.go);
	sem_wait(&freed);
	sem_destroy(&freed);
}

static void only_for_external_ones(void **state)
{
	struct kvp_registrar_ops ops = ops_of(true, 0);

	(void)state;
	ops.external = 0;
	assert_int_equal(kvp_registrar_new(&ops, NULL, 1, &registrar), -EINVAL);
	ops = ops_of(false, 1);
	ops.external = 0;
	assert_int_equal(kvp_registrar_new(&ops, NULL, 1, &registrar), -EINVAL);
}

#define call_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		call_test(one_call_for_all),
		call_test(a_batch_is_of_one_device),
		call_test(a_batch_fails_in_part),
		call_test(a_batch_fails_and_says_no_more),
		call_test(a_batch_contradicts_itself),
		call_test(undoing_a_batch_fails_in_part),
		call_test(no_answer_is_undone),
		call_test(what_is_not_there_is_undone),
		call_test(in_time),
		call_test(registering_hangs),
		call_test(unregistering_hangs),
		call_test(freed_while_it_hangs),
		call_test(only_for_external_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

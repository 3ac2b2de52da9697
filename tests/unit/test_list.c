// SPDX-License-Identifier: LGPL-2.1-or-later
/* Buffer lists: empty buffers, the index map, and errors that later calls repeat. */
#include <stdlib.h>

#include "fake_world.h"

/* sglang PR 35689: 42 of the 294 state tensors of a model were empty, one in each seven. */
#define TENSORS 294
#define EMPTY 42

static bool is_empty(uint32_t index)
{
	return index % 7 == 6;
}

static struct kvp_buffer tensor(uint32_t index)
{
	return (struct kvp_buffer){
		.addr = (void *)(uintptr_t)(FAKE_BASE + index * 2 * MIB),
		.length = is_empty(index) ? 0 : 2 * MIB,
	};
}

static struct kvp_list *tensors(enum kvp_empty policy)
{
	struct kvp_list *list;
	uint32_t i;

	assert_int_equal(kvp_list_new(policy, &list), 0);
	for (i = 0; i < TENSORS; i++) {
		const struct kvp_buffer buffer = tensor(i);

		assert_int_equal(kvp_list_add(list, &buffer), 0);
	}
	return list;
}

static void assert_empty_indices(const struct kvp_list *list)
{
	const uint32_t *empty;
	uint32_t count, i;

	empty = kvp_list_empty(list, &count);
	assert_int_equal(count, EMPTY);
	for (i = 0; i < count; i++)
		assert_int_equal(empty[i], i * 7 + 6);
}

static void skip_keeps_parallel_lists_aligned(void **state)
{
	struct kvp_list *list = tensors(KVP_EMPTY_SKIP);
	const struct kvp_buffer *buffers;
	const uint32_t *index;
	uint32_t count, positions, i;

	(void)state;
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	buffers = kvp_list_buffers(list, &count);
	index = kvp_list_index(list, &positions);
	assert_int_equal(count, TENSORS - EMPTY);
	assert_int_equal(positions, count);
	for (i = 0; i < count; i++) {
		const struct kvp_buffer wanted = tensor(index[i]);

		assert_false(is_empty(index[i]));
		assert_true(!i || index[i] > index[i - 1]);
		assert_ptr_equal(buffers[i].addr, wanted.addr);
		assert_int_equal(buffers[i].length, wanted.length);
	}
	assert_empty_indices(list);
	kvp_list_free(list);
}

static void reject_names_every_empty_buffer(void **state)
{
	struct kvp_list *list = tensors(KVP_EMPTY_REJECT);
	struct kvp_error error = { 0 };
	uint32_t count;

	(void)state;
	assert_int_equal(kvp_list_seal(list, &error), -EINVAL);
	assert_int_equal(error.err, -EINVAL);
	assert_int_equal(error.phase, KVP_PHASE_LIST);
	assert_string_equal(error.message, "42 of 294 buffers are empty, the first is buffer 6");
	assert_string_equal(error.advice,
			    "skip them with KVP_EMPTY_SKIP, or find all with kvp_list_empty()");
	assert_int_equal(error.index, 6);
	assert_int_equal(error.repeated, 0);
	assert_empty_indices(list);
	assert_null(kvp_list_buffers(list, &count));
	assert_int_equal(count, 0);
	assert_null(kvp_list_index(list, &count));
	assert_int_equal(count, 0);
	kvp_list_free(list);
}

/* The session blacklist of the report hid the first error: here it is what later calls say. */
static void later_failures_repeat_the_first(void **state)
{
	struct kvp_list *list = tensors(KVP_EMPTY_REJECT);
	struct kvp_registration *registration = NULL;
	struct kvp_error error = { 0 };

	(void)state;
	assert_int_equal(kvp_list_seal(list, NULL), -EINVAL);
	assert_int_equal(kvp_list_seal(list, &error), -EINVAL);
	assert_int_equal(error.repeated, 1);
	assert_int_equal(error.index, 6);
	assert_contains(error.message, "42 of 294");

	memset(&error, 0, sizeof(error));
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, NULL, 0, NULL, &registration,
				      &error), -EINVAL);
	assert_null(registration);
	assert_int_equal(error.repeated, 1);
	assert_int_equal(error.phase, KVP_PHASE_LIST);
	assert_contains(error.message, "42 of 294");
	kvp_list_free(list);
}

static void reject_takes_a_list_without_empty_ones(void **state)
{
	const struct kvp_buffer buffer = tensor(0);
	struct kvp_list *list;
	uint32_t count;

	(void)state;
	assert_int_equal(kvp_list_new(KVP_EMPTY_REJECT, &list), 0);
	assert_int_equal(kvp_list_add(list, &buffer), 0);
	assert_null(kvp_list_buffers(list, &count));
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	assert_non_null(kvp_list_buffers(list, &count));
	assert_int_equal(count, 1);
	kvp_list_empty(list, &count);
	assert_int_equal(count, 0);
	/* What is sealed does not change. */
	assert_int_equal(kvp_list_add(list, &buffer), -EINVAL);
	kvp_list_buffers(list, &count);
	assert_int_equal(count, 1);
	kvp_list_free(list);
}

static void empty_buffers_need_no_address(void **state)
{
	const struct kvp_buffer nothing = { 0 };
	struct kvp_list *list;
	uint32_t count;

	(void)state;
	assert_int_equal(kvp_list_new(KVP_EMPTY_SKIP, &list), 0);
	assert_int_equal(kvp_list_add(list, &nothing), 0);
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	kvp_list_buffers(list, &count);
	assert_int_equal(count, 0);
	kvp_list_empty(list, &count);
	assert_int_equal(count, 1);
	kvp_list_free(list);
}

/* An add whose failure is overlooked must not shift the indices of what follows. */
static void assert_ends_list(const struct kvp_buffer *bad, const char *message)
{
	const struct kvp_buffer good = tensor(0);
	struct kvp_error error = { 0 };
	struct kvp_list *list;

	assert_int_equal(kvp_list_new(KVP_EMPTY_SKIP, &list), 0);
	assert_int_equal(kvp_list_add(list, &good), 0);
	assert_int_equal(kvp_list_add(list, bad), -EINVAL);
	assert_int_equal(kvp_list_add(list, &good), -EINVAL);
	assert_int_equal(kvp_list_seal(list, &error), -EINVAL);
	assert_int_equal(error.index, 1);
	assert_int_equal(error.repeated, 1);
	assert_contains(error.message, message);
	kvp_list_free(list);
}

static void bad_buffers_end_the_list(void **state)
{
	const struct kvp_buffer null = { .length = 4096 };
	struct kvp_buffer flags = tensor(0);

	(void)state;
	flags.flags = 1U << 1;
	assert_ends_list(&null, "buffer 1: 4096 bytes at a NULL address");
	assert_ends_list(&flags, "buffer 1: unknown flags 0x2");
	assert_ends_list(NULL, "buffer 1: no buffer was given");
}

static void wrong_arguments(void **state)
{
	struct kvp_list *list = NULL;

	(void)state;
	assert_int_equal(kvp_list_new((enum kvp_empty)2, &list), -EINVAL);
	assert_null(list);
	assert_int_equal(kvp_list_new(KVP_EMPTY_SKIP, NULL), -EINVAL);
	kvp_list_free(NULL);
}

/* Every allocation fails once; what was added before stays whole. */
static void no_memory(void **state)
{
	struct kvp_list *list;
	unsigned int n;
	int failures = 0;

	(void)state;
	for (n = 1;; n++) {
		struct kvp_error error = { 0 };
		int err = 0;
		uint32_t i;

		fake_fail_alloc(n);
		err = kvp_list_new(KVP_EMPTY_SKIP, &list);
		for (i = 0; !err && i < TENSORS; i++) {
			const struct kvp_buffer buffer = tensor(i);

			err = kvp_list_add(list, &buffer);
		}
		if (!fake_alloc_failed())
			break;
		failures++;
		assert_int_equal(err, -ENOMEM);
		if (!list)
			continue;
		assert_int_equal(kvp_list_seal(list, &error), -ENOMEM);
		assert_int_equal(error.index, i - 1);
		kvp_list_free(list);
	}
	fake_fail_alloc(0);
	/* The list, both arrays of 252 buffers at 16 to 256, and 42 indices at 16 to 64. */
	assert_int_equal(failures, 1 + 2 * 5 + 3);
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	kvp_list_free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(skip_keeps_parallel_lists_aligned),
		world_test(reject_names_every_empty_buffer),
		world_test(later_failures_repeat_the_first),
		world_test(reject_takes_a_list_without_empty_ones),
		world_test(empty_buffers_need_no_address),
		world_test(bad_buffers_end_the_list),
		world_test(wrong_arguments),
		world_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

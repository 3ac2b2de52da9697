// SPDX-License-Identifier: LGPL-2.1-or-later
/* Buffers that share bytes: InfiniStore #85, nixl #1792 and #1744 freed twice or leaked. */
#include <stdlib.h>

#include "fake_world.h"

#define MANY 10000

static struct kvp_buffer buffer_at(uint64_t addr, uint64_t length)
{
	return (struct kvp_buffer){ .addr = (void *)(uintptr_t)addr, .length = length };
}

static void assert_pair(uint64_t first, uint64_t first_length, uint64_t second,
			uint64_t second_length, int err, const char *message)
{
	const struct kvp_buffer buffers[] = {
		buffer_at(FAKE_BASE + first, first_length),
		buffer_at(FAKE_BASE + second, second_length),
	};
	struct kvp_error error = { 0 };
	int results[2] = { 1, 1 };

	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, 2, results, &error), err);
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], err);
	if (!err)
		return;
	assert_int_equal(error.index, 1);
	assert_contains(error.message, message);
}

static void the_documented_rule(void **state)
{
	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	assert_pair(4096, 8192, 4096, 8192, -EEXIST,
		    "buffer 1: 8192 bytes at 0x7f0000001000 are the same as buffer 0");
	assert_pair(0, 16384, 4096, 4096, -EADDRINUSE, "lie in buffer 0, 16384 bytes at");
	assert_pair(0, 16384, 0, 4096, -EADDRINUSE, "lie in buffer 0");
	assert_pair(0, 16384, 12288, 4096, -EADDRINUSE, "lie in buffer 0");
	assert_pair(4096, 4096, 0, 16384, -EADDRINUSE, "contain buffer 0");
	assert_pair(0, 8192, 4096, 8192, -EADDRINUSE, "overlap buffer 0");
	assert_pair(4096, 8192, 0, 8192, -EADDRINUSE, "overlap buffer 0");
	assert_pair(0, 4097, 4096, 4096, -EADDRINUSE, "overlap buffer 0");
	assert_pair(0, 4096, 4096, 4096, 0, NULL);
	assert_pair(4096, 4096, 0, 4096, 0, NULL);
	assert_pair(0, 4096, 8192, 4096, 0, NULL);
}

/* A registration that is in the list twice names the caller's index, not the position. */
static void names_the_callers_index(void **state)
{
	const struct kvp_buffer buffers[] = {
		buffer_at(FAKE_BASE, 4096), buffer_at(FAKE_BASE, 4096),
	};
	const uint32_t index[] = { 5, 17 };
	struct kvp_error error = { 0 };

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	assert_int_equal(kvp_check_spans(fake_world_ctx(), "kv", buffers, index, 2, NULL, NULL,
					 &error), -EEXIST);
	assert_int_equal(error.index, 17);
	assert_contains(error.message, "buffer 17: 4096 bytes");
	assert_contains(error.message, "the same as buffer 5");
}

static uint32_t earlier_by_hand(const struct kvp_buffer *buffers, uint32_t at)
{
	const uint64_t start = (uintptr_t)buffers[at].addr, end = start + buffers[at].length;
	uint32_t i;

	for (i = 0; i < at; i++) {
		const uint64_t other = (uintptr_t)buffers[i].addr;

		if (buffers[at].length && buffers[i].length && start < other + buffers[i].length &&
		    other < end)
			return i;
	}
	return KVP_NONE;
}

/* Against the plain quadratic search, on lists of every density. */
static void same_as_by_hand(void **state)
{
	struct kvp_buffer buffers[64];
	uint32_t earlier[64], random = 12345, round, count, i;
	unsigned int shared = 0, apart = 0, lists_shared = 0;
	struct kvp_sorted sorted;

	(void)state;
	for (round = 0; round < 3000; round++) {
		/* The last thousand are so sparse that some share nothing at all. */
		const uint64_t spread = round < 2000 ? 1 + round : (uint64_t)round * 1000;
		bool any;

		count = 1 + round % 64;
		for (i = 0; i < count; i++) {
			random = random * 1103515245 + 12345;
			buffers[i] = buffer_at(FAKE_BASE + (random >> 8) % spread, 0);
			random = random * 1103515245 + 12345;
			buffers[i].length = (random >> 8) % (2 + round % 40);
		}
		assert_int_equal(kvp_overlap_find(buffers, count, earlier), 0);
		any = false;
		for (i = 0; i < count; i++) {
			any |= earlier[i] != KVP_NONE;
			assert_int_equal(earlier[i], earlier_by_hand(buffers, i));
			if (earlier[i] == KVP_NONE)
				apart++;
			else
				shared++;
		}
		assert_int_equal(kvp_sorted_init(&sorted, buffers, count), 0);
		assert_int_equal(sorted.overlap, any);
		for (i = 1; i < sorted.count; i++)
			assert_true(sorted.buffers[i - 1]->addr <= sorted.buffers[i]->addr);
		kvp_sorted_free(&sorted);
		lists_shared += any;
	}
	assert_true(shared > 1000 && apart > 1000);
	assert_in_range(lists_shared, 1000, 2900);
}

/* The last of 10,000 lies in the first; nested, so that no shortcut by neighbours helps. */
static void ten_thousand_buffers(void **state)
{
	struct kvp_buffer *buffers = calloc(MANY, sizeof(*buffers));
	struct kvp_error error = { 0 };
	uint32_t i;

	(void)state;
	assert_non_null(buffers);
	fake_world_pool(1, FAKE_BASE, MANY * 4096ULL);
	/* Scattered order: 7919 has no common divisor with 10000. */
	for (i = 0; i < MANY; i++)
		buffers[i] = buffer_at(FAKE_BASE + (uint64_t)i * 7919 % MANY * 4096, 4096);
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, MANY, NULL, &error), 0);
	buffers[MANY - 1] = buffer_at(FAKE_BASE + 1024, 1024);
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, MANY, NULL, &error),
			 -EADDRINUSE);
	assert_int_equal(error.index, MANY - 1);
	assert_contains(error.message, "lie in buffer 0,");
	assert_int_equal(fake_world_resolved_some, 2);
	assert_int_equal(fake_world_resolved, 0);
	free(buffers);
}

/* How many allocations of a check fail it; *without: and how many don't. */
static unsigned int failing(const struct kvp_buffer *buffers, uint32_t count, int want,
			    unsigned int *without)
{
	struct kvp_error error;
	unsigned int n;

	*without = 0;
	for (n = 1;; n++) {
		int err;

		memset(&error, 0, sizeof(error));
		fake_fail_alloc(n);
		err = kvp_check(fake_world_ctx(), "kv", buffers, count, NULL, &error);
		if (!fake_alloc_failed())
			break;
		if (err == want) {
			++*without;
			continue;
		}
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(error.err, -ENOMEM);
		assert_contains(error.message, count == 1 ? "no memory to check 1 buffers" :
							    "no memory to check 2 buffers");
	}
	fake_fail_alloc(0);
	return n - 1 - *without;
}

static void no_memory(void **state)
{
	const struct kvp_buffer twice[] = {
		buffer_at(FAKE_BASE, 4096), buffer_at(FAKE_BASE, 4096),
	};
	unsigned int without;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	/* The order by address; without the segments, each buffer is asked for. */
	assert_int_equal(failing(twice, 1, 0, &without), 1);
	assert_int_equal(without, 1);
	/* And what finds out which they are that share bytes. */
	assert_int_equal(failing(twice, 2, -EEXIST, &without), 5);
	assert_int_equal(without, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(the_documented_rule),
		world_test(names_the_callers_index),
		world_test(same_as_by_hand),
		world_test(ten_thousand_buffers),
		world_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

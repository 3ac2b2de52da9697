// SPDX-License-Identifier: LGPL-2.1-or-later
/* kvp_check(): what each kind of memory is refused for, and in what words. */
#include <stdlib.h>
#include <time.h>

#include "fake_world.h"

static struct kvp_buffer buffer_at(uint64_t addr, uint64_t length)
{
	return (struct kvp_buffer){ .addr = (void *)(uintptr_t)addr, .length = length };
}

/* One good buffer, then `bad`: it fails alone, as buffer 1. */
static void assert_refused(const struct kvp_buffer *bad, int err, const char *message,
			   const char *advice)
{
	const struct kvp_buffer buffers[] = { buffer_at(FAKE_BASE, 2 * MIB), *bad };
	struct kvp_error error = { 0 };
	int results[2] = { 1, 1 };

	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, 2, results, &error), err);
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], err);
	assert_int_equal(error.err, err);
	assert_int_equal(error.phase, KVP_PHASE_CHECK);
	assert_int_equal(error.index, 1);
	assert_int_equal(error.repeated, 0);
	assert_contains(error.message, message);
	if (advice)
		assert_contains(error.advice, advice);
	/* Nothing depends on there being a place for the error or the results. */
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, 2, NULL, NULL), err);
}

/* Pool 1 at the base, four blocks; pool 2 right after it. */
static void two_pools(void)
{
	fake_world_pool(1, FAKE_BASE, 8 * MIB);
	fake_world_pool(2, FAKE_BASE + 8 * MIB, 8 * MIB);
}

static void good_buffers(void **state)
{
	const struct kvp_buffer buffers[] = {
		buffer_at(FAKE_BASE + 8 * MIB, 8 * MIB),
		buffer_at(FAKE_BASE, 4096),
		buffer_at(FAKE_BASE + 4096, 8 * MIB - 4096),
	};
	struct kvp_error error = { .err = 17 };
	struct kvp_span spans[3];
	int results[3] = { 1, 1, 1 };

	(void)state;
	two_pools();
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, 3, results, &error), 0);
	assert_int_equal(results[0] | results[1] | results[2], 0);
	assert_int_equal(error.err, 17);
	/* One pass over one stretch of memory: the kernel is asked once. */
	assert_int_equal(fake_world_resolved_some, 1);
	assert_int_equal(fake_world_resolved, 0);

	assert_int_equal(kvp_check_spans(fake_world_ctx(), "kv", buffers, NULL, 3, NULL, spans,
					 NULL), 0);
	assert_int_equal(spans[2].id, 1);
	assert_int_equal(spans[2].generation, 101);
	assert_int_equal(spans[2].offset, 4096);
	assert_int_equal(spans[2].length, 8 * MIB - 4096);
	assert_string_equal(spans[2].domain, "kv");
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", NULL, 0, NULL, NULL), 0);
}

/* sglang #28873: the draft pool was plain mmap memory, and nobody said so in time. */
static void foreign_memory_is_named(void **state)
{
	const uint64_t at = FAKE_BASE + 64 * MIB;
	const struct kvp_buffer draft = buffer_at(at, 2 * MIB);
	struct kvp_segment *memory;

	(void)state;
	two_pools();
	memory = fake_world_map(at, 2 * MIB, KVP_KIND_ANON);
	assert_refused(&draft, -ENOTSUP,
		       "buffer 1: 2097152 bytes at 0x7f0004000000 are private anonymous memory, not a pool of domain kv",
		       "allocate it with kvp_pool_create() in domain kv");
	memory->kind = KVP_KIND_HUGETLB;
	assert_refused(&draft, -ENOTSUP, "are hugetlb memory, not", NULL);
	memory->kind = KVP_KIND_SHMEM;
	strcpy(memory->path, "/dev/shm/store");
	assert_refused(&draft, -ENOTSUP, "are shared memory /dev/shm/store, not", NULL);
	memory->kind = KVP_KIND_FILE;
	strcpy(memory->path, "/var/cache/kv.bin");
	assert_refused(&draft, -ENOTSUP, "are the file /var/cache/kv.bin, not", NULL);
	memory->path[0] = '\0';
	assert_refused(&draft, -ENOTSUP, "are the file (unnamed), not", NULL);
	memory->kind = KVP_KIND_DEVICE;
	assert_refused(&draft, -ENOTSUP, "are memory of a driver, not", NULL);
}

static void other_domains_pool(void **state)
{
	const struct kvp_buffer bad = buffer_at(FAKE_BASE + 8 * MIB, 2 * MIB);

	(void)state;
	fake_world_pool(1, FAKE_BASE, 8 * MIB);
	strcpy(fake_world_pool(2, FAKE_BASE + 8 * MIB, 8 * MIB)->span.domain, "draft");
	assert_refused(&bad, -EXDEV, "are pool 2 of domain draft, not a pool of domain kv",
		       "create the pool in domain kv");
}

static void destroyed_and_replaced_pools(void **state)
{
	struct kvp_buffer bad = buffer_at(FAKE_BASE + 8 * MIB, 2 * MIB);
	struct kvp_segment *pool;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 8 * MIB);
	pool = fake_world_pool(2, FAKE_BASE + 8 * MIB, 8 * MIB);
	/* mooncake register path: freed, and another allocated at the same address. */
	bad.generation = 7;
	assert_refused(&bad, -ESTALE, "are generation 102 of pool 2, not generation 7", NULL);
	bad.generation = 102;
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", &bad, 1, NULL, NULL), 0);
	bad.generation = 0;
	pool->stale = 1;
	assert_refused(&bad, -ESTALE, "are pool 2 of generation 102, which was destroyed", NULL);
}

static void unmapped_memory(void **state)
{
	const struct kvp_buffer whole = buffer_at(FAKE_BASE + 64 * MIB, 2 * MIB);
	const struct kvp_buffer end = buffer_at(FAKE_BASE + 14 * MIB, 4 * MIB);

	(void)state;
	two_pools();
	assert_refused(&whole, -EFAULT,
		       "buffer 1: 2097152 bytes at 0x7f0004000000 are not mapped, from 0x7f0004000000 on",
		       NULL);
	assert_refused(&end, -EFAULT,
		       "buffer 1: 2097152 of 4194304 bytes at 0x7f0000e00000 are not mapped, from 0x7f0001000000 on",
		       NULL);
}

static void straddling_buffers(void **state)
{
	const struct kvp_buffer pools = buffer_at(FAKE_BASE + 6 * MIB, 4 * MIB);
	const struct kvp_buffer twice = buffer_at(FAKE_BASE + 14 * MIB, 4 * MIB);
	struct kvp_segment *again;

	(void)state;
	two_pools();
	assert_refused(&pools, -ERANGE, "straddle pools 1 and 2 at offset 2097152",
		       "make a buffer of its own from 0x7f0000800000 on");
	/* Pool 2 mapped again from its start, right after its end. */
	again = fake_world_map(FAKE_BASE + 16 * MIB, 8 * MIB, KVP_KIND_POOL);
	strcpy(again->span.domain, "kv");
	again->span.id = 2;
	again->span.generation = 102;
	again->pool_length = 8 * MIB;
	assert_refused(&twice, -ERANGE, "straddle two mappings of pool 2", NULL);
	/* Pool 3 mapped from where pool 2 left off, in numbers. */
	again->span.offset = 8 * MIB;
	again->pool_length = 16 * MIB;
	again->span.id = 3;
	assert_refused(&twice, -ERANGE, "straddle pools 2 and 3", NULL);
	again->span.id = 2;
	again->span.generation++;
	assert_refused(&twice, -ERANGE, "straddle", NULL);
	again->span.generation--;
	/* Mappings that continue each other are one piece of memory. */
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", &twice, 1, NULL, NULL), 0);
}

/* mooncake PR #3845: 998,579,896 bytes end within their last page; 477 blocks are mapped. */
static void logical_end(void **state)
{
	const uint64_t length = 998579896, mapped = 477 * 2 * MIB;
	struct kvp_buffer exact = buffer_at(FAKE_BASE + 4096 * MIB, length);
	struct kvp_segment *pool;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 8 * MIB);
	pool = fake_world_pool(2, FAKE_BASE + 4096 * MIB, mapped);
	pool->pool_length = length;
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", &exact, 1, NULL, NULL), 0);
	exact.length++;
	assert_refused(&exact, -ERANGE,
		       "pass the logical end of pool 2, which is 998579896 bytes long: they end at its offset 998579897",
		       NULL);
	exact.length = mapped;
	assert_refused(&exact, -ERANGE, "they end at its offset 1000341504", NULL);
	/* Wholly past the end: a whole page that the pool does not have. */
	exact = buffer_at(FAKE_BASE + 4096 * MIB + 998580224, 4096);
	assert_refused(&exact, -ERANGE, "pass the logical end", NULL);
}

/* libfabric #6467, ucx #4924: read-only memory registered for local write was a bare EFAULT. */
static void protection(void **state)
{
	struct kvp_buffer bad = buffer_at(FAKE_BASE + 8 * MIB, 2 * MIB);
	struct kvp_segment *pool;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 8 * MIB);
	pool = fake_world_pool(2, FAKE_BASE + 8 * MIB, 8 * MIB);
	pool->writable = 0;
	assert_refused(&bad, -EACCES, "are mapped read only, and the buffer needs write access",
		       "KVP_BUFFER_READ_ONLY");
	bad.flags = KVP_BUFFER_READ_ONLY;
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", &bad, 1, NULL, NULL), 0);
	pool->readable = 0;
	assert_refused(&bad, -EACCES, "are mapped without read access", NULL);
	bad.flags = 1U << 7;
	assert_refused(&bad, -EINVAL, "unknown flags 0x80", NULL);
}

static void empty_and_wrapping(void **state)
{
	const struct kvp_buffer empty = buffer_at(FAKE_BASE + 4 * MIB, 0);
	const struct kvp_buffer wraps = buffer_at(UINT64_MAX - 4095, 4097);

	(void)state;
	two_pools();
	assert_refused(&empty, -EINVAL, "buffer 1: the length is 0", "KVP_EMPTY_SKIP");
	assert_refused(&wraps, -EINVAL, "wrap around the end of the address space", NULL);
}

/* A buffer with several faults names the one that decides. */
static void gravest_fault_wins(void **state)
{
	struct kvp_buffer bad = buffer_at(FAKE_BASE + 6 * MIB, 16 * MIB);
	struct kvp_segment *anon, *pool;

	(void)state;
	fake_world_pool(1, FAKE_BASE, 8 * MIB);
	pool = fake_world_pool(2, FAKE_BASE + 8 * MIB, 8 * MIB);
	pool->writable = 0;
	anon = fake_world_map(FAKE_BASE + 16 * MIB, 6 * MIB, KVP_KIND_ANON);
	assert_refused(&bad, -ENOTSUP, "6291456 of 16777216 bytes", NULL);
	/* Also when the lesser one comes after it. */
	fake_world_map(FAKE_BASE + 22 * MIB, 2 * MIB, KVP_KIND_POOL);
	bad.length = 18 * MIB;
	assert_refused(&bad, -ENOTSUP, "6291456 of 18874368 bytes", NULL);
	anon->kind = KVP_KIND_UNMAPPED;
	assert_refused(&bad, -EFAULT, "are not mapped", NULL);
	bad.length = 4 * MIB;
	assert_refused(&bad, -ERANGE, "straddle", NULL);
}

/* All are looked at; the first by index is the error. */
static void every_buffer_gets_a_result(void **state)
{
	const struct kvp_buffer buffers[] = {
		buffer_at(FAKE_BASE, 4096),
		buffer_at(FAKE_BASE + 64 * MIB, 4096),
		buffer_at(FAKE_BASE + 4096, 4096),
		buffer_at(FAKE_BASE, 0),
		buffer_at(FAKE_BASE + 4096, 4096),
		buffer_at(FAKE_BASE + 6144, 4096),
	};
	const int wanted[] = { 0, -EFAULT, 0, -EINVAL, -EEXIST, -EADDRINUSE };
	struct kvp_error error = { 0 };
	int results[6];
	unsigned int i;

	(void)state;
	two_pools();
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, 6, results, &error), -EFAULT);
	for (i = 0; i < 6; i++)
		assert_int_equal(results[i], wanted[i]);
	assert_int_equal(error.index, 1);
	assert_contains(error.message, "not mapped");
}

/* When the kernel can't be asked that is no verdict on the buffers after it. */
static void failing_request(void **state)
{
	const struct kvp_buffer buffers[] = {
		buffer_at(FAKE_BASE, 4096),
		buffer_at(FAKE_BASE + 4096, 4096),
		buffer_at(FAKE_BASE + 64 * MIB, 4096),
	};
	struct kvp_error error = { 0 };
	int results[3] = { 1, 1, 1 };

	(void)state;
	two_pools();
	fake_world_fail_resolve(1, -ENOMEM);
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", buffers, 3, results, &error), -ENOMEM);
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], -ENOMEM);
	assert_int_equal(results[2], -ENOMEM);
	assert_int_equal(error.phase, KVP_PHASE_REQUEST);
	assert_int_equal(fake_world_resolved, 2);
}

static void wrong_arguments(void **state)
{
	const struct kvp_buffer buffer = buffer_at(FAKE_BASE, 4096);
	struct kvp_error error = { 0 };

	(void)state;
	two_pools();
	assert_int_equal(kvp_check(fake_world_ctx(), NULL, &buffer, 1, NULL, &error), -EINVAL);
	assert_contains(error.message, "no domain was given");
	assert_int_equal(kvp_check(fake_world_ctx(), "", &buffer, 1, NULL, NULL), -EINVAL);
	assert_int_equal(kvp_check(fake_world_ctx(), "k/v", &buffer, 1, NULL, &error), -EINVAL);
	assert_contains(error.message, "'k/v' is no name of a domain");
	assert_int_equal(kvp_check(NULL, "kv", &buffer, 1, NULL, &error), -EINVAL);
	assert_contains(error.message, "no context was given");
	assert_int_equal(kvp_check(fake_world_ctx(), "kv", NULL, 1, NULL, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(good_buffers),
		world_test(foreign_memory_is_named),
		world_test(other_domains_pool),
		world_test(destroyed_and_replaced_pools),
		world_test(unmapped_memory),
		world_test(straddling_buffers),
		world_test(logical_end),
		world_test(protection),
		world_test(empty_and_wrapping),
		world_test(gravest_fault_wins),
		world_test(every_buffer_gets_a_result),
		world_test(failing_request),
		world_test(wrong_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

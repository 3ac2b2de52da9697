// SPDX-License-Identifier: LGPL-2.1-or-later
/* mappings.c: what a context has mapped is named without asking; everything else is asked. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fake_kernel.h"

#define MAPPED ((size_t)fake_pool_full.mapped_length)
#define LENGTH (fake_pool_full.length)

/* ------------------------------------------------------------ as a caller sees it */

static struct kvp_pool *map(struct kvp_ctx *ctx, char **addr)
{
	struct kvp_pool *pool = NULL;
	void *base;

	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, 0);
	fake_ioctl_info(&fake_pool_full, 0);
	assert_int_equal(kvp_pool_open(ctx, fake_pool_full.id, fake_pool_full.generation,
				       KVP_ACCESS_READ, &pool, NULL), 0);
	fake_mmap(MAPPED, PROT_READ, 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &base, NULL), 0);
	*addr = base;
	return pool;
}

/* The stand-in fails the test if this asks anything. */
static void assert_named(struct kvp_ctx *ctx, const char *domain, char *base, uint64_t offset,
			 uint64_t length)
{
	struct kvp_span span;

	memset(&span, 0xee, sizeof(span));
	assert_int_equal(kvp_span_export(ctx, domain, base + offset, length, &span, NULL), 0);
	assert_string_equal(span.domain, fake_pool_full.domain);
	assert_int_equal(span.id, fake_pool_full.id);
	assert_int_equal(span.generation, fake_pool_full.generation);
	assert_int_equal(span.offset, offset);
	assert_int_equal(span.length, length);
}

/* The kernel is asked, and says that there is nothing. */
static void assert_asked(struct kvp_ctx *ctx, const char *domain, char *addr, uint64_t length)
{
	const struct kvpool_segment nothing = {
		.addr = (uintptr_t)addr, .length = length, .kind = KVPOOL_SEGMENT_UNMAPPED,
	};
	const struct fake_range range = { (uintptr_t)addr, length, &nothing, 1, 0 };
	struct kvp_span span = { .id = 77 };

	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_span_export(ctx, domain, addr, length, &span, NULL), -EFAULT);
	assert_int_equal(span.id, 77);
}

static void test_named_unasked(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true), *other = fake_ctx(true);
	struct kvp_pool *pool, *again;
	char *base, *second;

	(void)state;
	pool = map(ctx, &base);
	assert_named(ctx, NULL, base, 0, 1);
	assert_named(ctx, fake_pool_full.domain, base, 4096, 65536);
	assert_named(ctx, NULL, base, LENGTH - 1, 1);
	assert_named(ctx, NULL, base, 0, LENGTH);
	/* Whatever is wrong with it, the kernel says. */
	assert_asked(ctx, NULL, base - 1, 1);
	assert_asked(ctx, NULL, base - 1, 2);
	assert_asked(ctx, NULL, base, LENGTH + 1);
	assert_asked(ctx, NULL, base + LENGTH - 1, 2);
	assert_asked(ctx, NULL, base + LENGTH, 1);
	assert_asked(ctx, NULL, base + MAPPED, 1);
	assert_asked(ctx, "other", base, 4096);
	/* A context knows what it has mapped by itself. */
	assert_asked(other, NULL, base, 4096);
	assert_int_equal(kvp_span_export(ctx, NULL, base, 0, &(struct kvp_span){ 0 }, NULL),
			 -EINVAL);
	assert_int_equal(kvp_span_export(ctx, NULL, base, UINT64_MAX, &(struct kvp_span){ 0 }, NULL),
			 -EINVAL);

	/* Another mapping of the same pool is a mapping of its own. */
	again = map(ctx, &second);
	assert_named(ctx, NULL, second, 8192, 4096);
	assert_int_equal(kvp_pool_unmap(pool), 0);
	assert_asked(ctx, NULL, base, 4096);
	assert_named(ctx, NULL, second, 8192, 4096);
	kvp_pool_close(again);
	assert_asked(ctx, NULL, second, 4096);
	kvp_pool_close(pool);
	kvp_close(other);
	kvp_close(ctx);
}

static void test_unmap_fails(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool;
	char *base;

	(void)state;
	pool = map(ctx, &base);
	fake_fail(FAKE_MUNMAP, 0, ENOMEM);
	assert_int_equal(kvp_pool_unmap(pool), -ENOMEM);
	assert_named(ctx, NULL, base, 0, LENGTH);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

static void test_destroyed(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(false);
	struct kvp_pool *pool, *again;
	char *base, *second;

	(void)state;
	pool = map(ctx, &base);
	again = map(ctx, &second);
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_DESTROY, NLM_F_ACK);
	fake_want_session();
	fake_want_u32(KVPOOL_A_POOL_ID, fake_pool_full.id);
	fake_want_u64(KVPOOL_A_POOL_GENERATION, fake_pool_full.generation);
	fake_want_flag(KVPOOL_A_POOL_FORCE);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_destroy(ctx, fake_pool_full.id, fake_pool_full.generation, 1,
					  NULL), 0);
	assert_asked(ctx, NULL, base, 4096);
	assert_asked(ctx, NULL, second, 4096);
	kvp_pool_close(pool);
	kvp_pool_close(again);
	kvp_close(ctx);
}

/* Memory that took the place of a mapping is not registered for having been named. */
static void test_check_asks(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_buffer buffer = { .length = 65536, .flags = KVP_BUFFER_READ_ONLY };
	struct kvpool_segment foreign = { .length = 65536, .kind = KVPOOL_SEGMENT_ANON };
	struct fake_range range = { .length = 65536, .segments = &foreign, .count = 1 };
	struct kvp_error error;
	struct kvp_pool *pool;
	char *base;

	(void)state;
	pool = map(ctx, &base);
	assert_named(ctx, NULL, base, 0, 65536);
	buffer.addr = base;
	range.addr = foreign.addr = (uintptr_t)base;
	/* Once with the list, once for the error. */
	fake_ioctl_resolve(&range);
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_check(ctx, fake_pool_full.domain, &buffer, 1, NULL, &error), -ENOTSUP);
	assert_non_null(strstr(error.message, "private anonymous memory"));
	kvp_pool_close(pool);
	kvp_close(ctx);
}

static void test_no_memory(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	unsigned int n;
	void *base;

	(void)state;
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, 0);
	fake_ioctl_info(&fake_pool_full, 0);
	assert_int_equal(kvp_pool_open(ctx, fake_pool_full.id, fake_pool_full.generation,
				       KVP_ACCESS_READ, &pool, NULL), 0);
	/* It is mapped all the same. Of three allocations the first is kept for the next time. */
	for (n = 0; n < 3; n++) {
		fake_mmap(MAPPED, PROT_READ, 0);
		fake_fail_alloc(n ? 2 : 1);
		assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &base, NULL), 0);
		assert_true(fake_alloc_failed());
		assert_asked(ctx, NULL, base, 4096);
		assert_int_equal(kvp_pool_unmap(pool), 0);
	}
	kvp_pool_close(pool);
	kvp_close(ctx);
}

/* ------------------------------------------------------------------- by itself */

#define MOST 10000
#define STRIDE 0x40000ull

static struct kvp_pool pools[MOST];

static struct kvp_pool *made(uint32_t n, uint64_t addr, uint64_t mapped_length)
{
	struct kvp_pool *pool = &pools[n];

	*pool = (struct kvp_pool){
		.id = n + 1, .generation = n + 1000, .length = mapped_length - 1,
		.mapped_length = mapped_length, .domain = "kv", .addr = (void *)(uintptr_t)addr,
	};
	return pool;
}

static uint64_t start_of(uint32_t n)
{
	return 0x7f0000000000 + n * STRIDE;
}

/* Ten thousand, in an order that is none; every other one goes again. */
static void test_many(void **state)
{
	struct kvp_mappings mappings = { 0 };
	struct kvp_span span;
	uint32_t i, n;

	(void)state;
	kvp_mappings_init(&mappings);
	for (i = 0; i < MOST; i++) {
		n = (uint32_t)(i * 7919ull % MOST);
		/* The first half touch each other. */
		kvp_mappings_add(&mappings, made(n, start_of(n), n < MOST / 2 ? STRIDE : STRIDE / 2));
	}
	assert_int_equal(mappings.count, MOST);
	for (i = 0; i < MOST; i += 2)
		kvp_mappings_remove(&mappings, &pools[i]);
	for (i = 0; i < MOST; i++) {
		const struct kvp_pool *pool = &pools[i];
		const uint64_t start = start_of(i), last = start + pool->length - 1;

		assert_int_equal(kvp_mappings_find(&mappings, "kv", start, 1, &span), i % 2);
		assert_int_equal(kvp_mappings_find(&mappings, NULL, last, 1, &span), i % 2);
		if (i % 2) {
			assert_int_equal(span.id, i + 1);
			assert_int_equal(span.generation, i + 1000);
			assert_int_equal(span.offset, pool->length - 1);
		}
		assert_false(kvp_mappings_find(&mappings, NULL, last + 1, 1, &span));
		assert_false(kvp_mappings_find(&mappings, NULL, start, 2 * STRIDE, &span));
	}
	kvp_mappings_free(&mappings);
}

/* What the kernel has given away anew has been unmapped, whoever did it. */
static void test_mapped_over(void **state)
{
	static const struct {
		uint64_t offset, length;
		bool left, right;	/* what stands then beside the new one */
	} cases[] = {
		{ 0, 2 * STRIDE, false, false }, { 0, STRIDE, false, true },
		{ STRIDE, STRIDE, true, false }, { STRIDE - 4096, 8192, false, false },
		{ 4096, 8192, false, true }, { 2 * STRIDE, STRIDE, true, true },
	};
	struct kvp_mappings mappings = { 0 };
	struct kvp_span span;
	size_t i;

	(void)state;
	kvp_mappings_init(&mappings);
	for (i = 0; i < MNL_ARRAY_SIZE(cases); i++) {
		const uint64_t at = start_of(0) + cases[i].offset;

		kvp_mappings_add(&mappings, made(0, start_of(0), STRIDE));
		kvp_mappings_add(&mappings, made(1, start_of(1), STRIDE));
		kvp_mappings_add(&mappings, made(2, at, cases[i].length));
		assert_true(kvp_mappings_find(&mappings, NULL, at, 4096, &span));
		assert_int_equal(span.id, 3);
		assert_int_equal(kvp_mappings_find(&mappings, NULL, start_of(0), 1, &span) &&
				 span.id == 1, cases[i].left);
		assert_int_equal(kvp_mappings_find(&mappings, NULL, start_of(2) - 4096, 1, &span) &&
				 span.id == 2, cases[i].right);
		/* The handle of the old one must not take the new one out. */
		kvp_mappings_remove(&mappings, &pools[0]);
		kvp_mappings_remove(&mappings, &pools[1]);
		assert_int_equal(mappings.count, 1);
		kvp_mappings_remove(&mappings, &pools[2]);
		assert_int_equal(mappings.count, 0);
	}
	kvp_mappings_free(&mappings);
}

static struct kvp_mappings shared;

/* Of pools that come and go, a reader sees each as it is or not at all. */
static void *reader(void *arg)
{
	uint64_t n = (uintptr_t)arg, found = 0, i;
	struct kvp_span span;

	for (i = 0; i < 200000; i++) {
		n = (n + 5) % 64;
		if (!kvp_mappings_find(&shared, "kv", start_of((uint32_t)n) + 5, 10, &span))
			continue;
		if (span.id != n + 1 || span.generation != n + 1000 || span.offset != 5)
			return NULL;
		found++;
	}
	return found ? arg : NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[3];
	uintptr_t i;
	void *result;
	uint32_t n;

	(void)state;
	kvp_mappings_init(&shared);
	for (n = 0; n < 64; n++)
		made(n, start_of(n), STRIDE);
	/* Every third stands all the time. */
	for (n = 0; n < 64; n += 3)
		kvp_mappings_add(&shared, &pools[n]);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, (void *)(i + 1)), 0);
	for (i = 0; i < 500; i++) {
		for (n = 1; n < 64; n += 3)
			kvp_mappings_add(&shared, &pools[n]);
		for (n = 1; n < 64; n += 3)
			kvp_mappings_remove(&shared, &pools[n]);
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_non_null(result);
	}
	kvp_mappings_free(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_named_unasked),
		fake_test(test_unmap_fails),
		fake_test(test_destroyed),
		fake_test(test_check_asks),
		fake_test(test_no_memory),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_mapped_over),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

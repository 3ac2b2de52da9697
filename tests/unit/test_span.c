// SPDX-License-Identifier: LGPL-2.1-or-later
/* span.c: the text of a span, naming memory, and mapping what a span names. */
#include <sys/mman.h>

#include "fake_kernel.h"

#define MAPPED ((size_t)fake_pool_full.mapped_length)

static const struct kvp_span span = {
	.domain = "serving", .id = 12, .generation = 0x1122334455667788, .offset = 4096,
	.length = 65536,
};
static const char span_text[] = "kvpool:serving:12:1234605616436508552:4096:65536";

static bool same(const struct kvp_span *a, const struct kvp_span *b)
{
	return !strcmp(a->domain, b->domain) && a->id == b->id && a->generation == b->generation &&
	       a->offset == b->offset && a->length == b->length;
}

static void test_text(void **state)
{
	char text[KVP_SPAN_TEXT_SIZE];
	struct kvp_span longest, parsed;

	(void)state;
	assert_int_equal(kvp_span_format(&span, text), 0);
	assert_string_equal(text, span_text);
	assert_int_equal(kvp_span_parse(text, &parsed), 0);
	assert_true(same(&parsed, &span));

	memset(&longest, 0, sizeof(longest));
	memset(longest.domain, 'Z', KVP_NAME_SIZE - 1);
	longest.id = UINT32_MAX;
	longest.generation = UINT64_MAX;
	longest.offset = UINT64_MAX / 2;
	longest.length = UINT64_MAX - longest.offset;
	assert_int_equal(kvp_span_format(&longest, text), 0);
	assert_int_equal(kvp_span_parse(text, &parsed), 0);
	assert_true(same(&parsed, &longest));
	/* Up to the last byte of the address space of offsets, but not around it. */
	assert_int_equal(kvp_span_parse("kvpool:d:1:1:18446744073709551615:1", &parsed), -EINVAL);
	assert_int_equal(kvp_span_parse("kvpool:d:1:1:18446744073709551614:1", &parsed), 0);
	assert_int_equal(kvp_span_parse("kvpool:d:1:1:0:18446744073709551615", &parsed), 0);
}

static void test_not_a_span(void **state)
{
	static const char *const texts[] = {
		"", "kvpool", "kvpool:", "kvpool::1:1:0:1", "kvpool:d", "kvpool:d:", "kvpool:d:1",
		"kvpool:d:1:1", "kvpool:d:1:1:0", "kvpool:d:1:1:0:", "kvpool:d:1:1:0:1:",
		"kvpool:d:1:1:0:1 ", " kvpool:d:1:1:0:1", "KVPOOL:d:1:1:0:1", "kvpool:d:1:1:0:1\n",
		"kvpool:d d:1:1:0:1", "kvpool:d/d:1:1:0:1", "kvpool:d:0:1:0:1", "kvpool:d:1:0:0:1",
		"kvpool:d:1:1:0:0", "kvpool:d:01:1:0:1", "kvpool:d:1:1:00:1", "kvpool:d:+1:1:0:1",
		"kvpool:d:-1:1:0:1", "kvpool:d: 1:1:0:1", "kvpool:d:0x1:1:0:1", "kvpool:d:1:1::1",
		"kvpool:d:4294967296:1:0:1", "kvpool:d:1:18446744073709551616:0:1",
		"kvpool:d:1:1:18446744073709551616:1", "kvpool:d:1:1:0:18446744073709551616",
		"kvpool:d:1:1:0:99999999999999999999", "kvpool:d:1:1:0:1:1",
		"kvpool:0123456789012345678901234567890123456789012345678901234567890123:1:1:0:1",
	};
	struct kvp_span parsed = span;
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(texts); i++)
		if (kvp_span_parse(texts[i], &parsed) != -EINVAL)
			fail_msg("'%s' was taken for a span", texts[i]);
	/* Nothing of them was handed out. */
	assert_true(same(&parsed, &span));
}

/* Every byte of a text matters: another one is another span, or none. */
static void test_changed_text(void **state)
{
	char text[sizeof(span_text)];
	struct kvp_span parsed;
	size_t i;
	int c;

	(void)state;
	for (i = 0; i < sizeof(span_text) - 1; i++)
		for (c = 0; c < 256; c++) {
			memcpy(text, span_text, sizeof(text));
			if (text[i] == (char)c)
				continue;
			text[i] = (char)c;
			if (!kvp_span_parse(text, &parsed))
				assert_false(same(&parsed, &span));
		}
}

static void test_format_invalid(void **state)
{
	char text[KVP_SPAN_TEXT_SIZE] = "before";
	struct kvp_span bad;

	(void)state;
#define BAD(member, value) (bad = span, bad.member = (value), &bad)
	assert_int_equal(kvp_span_format(BAD(id, 0), text), -EINVAL);
	assert_int_equal(kvp_span_format(BAD(generation, 0), text), -EINVAL);
	assert_int_equal(kvp_span_format(BAD(length, 0), text), -EINVAL);
	assert_int_equal(kvp_span_format(BAD(offset, UINT64_MAX), text), -EINVAL);
	assert_int_equal(kvp_span_format(BAD(domain[3], ':'), text), -EINVAL);
	assert_int_equal(kvp_span_format(BAD(domain[0], '\0'), text), -EINVAL);
#undef BAD
	memset(bad.domain, 'd', sizeof(bad.domain));
	assert_int_equal(kvp_span_format(&bad, text), -EINVAL);
	assert_string_equal(text, "before");
}

/* ---------------------------------------------------------------- exporting */

#define BASE 0x7f0000000000ull

static const struct kvpool_segment inside = {
	.addr = BASE, .length = 65536, .kind = KVPOOL_SEGMENT_POOL, .flags = KVPOOL_SEGMENT_READ,
	.generation = 0x1122334455667788, .offset = 4096, .pool_length = 3779571220u, .id = 12,
	.domain = "serving",
};

static void test_export(void **state)
{
	const struct fake_range range = { BASE, 65536, &inside, 1, 0 };
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_error error;
	struct kvp_span named;

	(void)state;
	/* Of a mapping that is read only, too: a name gives no access. */
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_span_export(ctx, NULL, (void *)BASE, 65536, &named, NULL), 0);
	assert_true(same(&named, &span));
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_span_export(ctx, "serving", (void *)BASE, 65536, &named, NULL), 0);
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_span_export(ctx, "other", (void *)BASE, 65536, &named, &error),
			 -EXDEV);
	fake_assert_error(&error, -EXDEV, KVP_PHASE_CHECK, "domain serving", "domain other");
	assert_int_equal(kvp_span_export(ctx, NULL, (void *)BASE, 0, &named, &error), -EINVAL);
	assert_int_equal(kvp_span_export(ctx, NULL, (void *)BASE, UINT64_MAX, &named, &error),
			 -EINVAL);
	kvp_close(ctx);
}

/* ---------------------------------------------------------------- importing */

static void opens(enum kvp_access access)
{
	fake_ioctl_open(&fake_pool_full, access, 0);
	fake_ioctl_info(&fake_pool_full, 0);
}

static void test_import(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_span last = span;
	struct kvp_pool *pool = NULL;
	void *base, *addr = NULL;

	(void)state;
	opens(KVP_ACCESS_WRITE);
	fake_mmap(MAPPED, PROT_READ | PROT_WRITE, 0);
	assert_int_equal(kvp_span_import(ctx, &span, KVP_ACCESS_WRITE, &pool, &addr, NULL), 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &base, NULL), 0);
	assert_ptr_equal(addr, (char *)base + 4096);
	kvp_pool_close(pool);

	/* Up to the logical end, for reading. */
	last.offset = fake_pool_full.length - last.length;
	opens(KVP_ACCESS_READ);
	fake_mmap(MAPPED, PROT_READ, 0);
	assert_int_equal(kvp_span_import(ctx, &last, KVP_ACCESS_READ, &pool, &addr, NULL), 0);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

static void assert_import_fails(struct kvp_ctx *ctx, const struct kvp_span *from, int err,
				const char *message)
{
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	void *addr = NULL;

	assert_int_equal(kvp_span_import(ctx, from, KVP_ACCESS_READ, &pool, &addr, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, NULL);
	assert_null(pool);
	assert_null(addr);
}

static void test_import_fails(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_span bad;

	(void)state;
	/* A pool that can't be opened any more has ended, whatever the kernel calls it. */
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, ENOENT);
	assert_import_fails(ctx, &span, -ESTALE, "of domain serving has ended");
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, ESTALE);
	assert_import_fails(ctx, &span, -ESTALE, "has ended, another has its id");
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, ENODEV);
	assert_import_fails(ctx, &span, -ESTALE, "has ended: it is an orphan or was destroyed");
	opens(KVP_ACCESS_READ);
	fake_mmap(MAPPED, PROT_READ, ENODEV);
	assert_import_fails(ctx, &span, -ESTALE, "has ended");
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, EACCES);
	assert_import_fails(ctx, &span, -EACCES, "forbid it");
	opens(KVP_ACCESS_READ);
	fake_mmap(MAPPED, PROT_READ, ENOMEM);
	assert_import_fails(ctx, &span, -ENOMEM, "map ");

	bad = span;
	strcpy(bad.domain, "other");
	opens(KVP_ACCESS_READ);
	assert_import_fails(ctx, &bad, -EXDEV, "is of domain serving, not other");
	/* One byte behind the logical end, though still within the mapped length. */
	bad = span;
	bad.offset = fake_pool_full.length - bad.length + 1;
	opens(KVP_ACCESS_READ);
	assert_import_fails(ctx, &bad, -ERANGE, "not within pool 12 of 3779571220 bytes");
	bad.offset = UINT64_MAX - bad.length;
	opens(KVP_ACCESS_READ);
	assert_import_fails(ctx, &bad, -ERANGE, "not within");
	bad = span;
	bad.length = UINT64_MAX - bad.offset;
	opens(KVP_ACCESS_READ);
	assert_import_fails(ctx, &bad, -ERANGE, "not within");

	bad = span;
	bad.length = 0;
	assert_import_fails(ctx, &bad, -EINVAL, "not valid");
	bad = span;
	bad.length = UINT64_MAX;
	assert_import_fails(ctx, &bad, -EINVAL, "not valid");
	bad = span;
	memset(bad.domain, 'd', sizeof(bad.domain));
	assert_import_fails(ctx, &bad, -EINVAL, "not valid");
	fake_fail_alloc(1);
	assert_import_fails(ctx, &span, -ENOMEM, "no memory");
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_text),
		fake_test(test_not_a_span),
		fake_test(test_changed_text),
		fake_test(test_format_invalid),
		fake_test(test_export),
		fake_test(test_import),
		fake_test(test_import_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

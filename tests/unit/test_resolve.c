// SPDX-License-Identifier: LGPL-2.1-or-later
/* resolve.c and procmaps.c: what backs a range, put together from several answers. */
#include <fcntl.h>
#include <stdio.h>

#include "fake_kernel.h"

#define BASE 0x7f0000000000ull
#define PAGE 4096ull
#define MANY 40
#define RW (KVPOOL_SEGMENT_READ | KVPOOL_SEGMENT_WRITE)

struct seen {
	struct kvp_segment segments[MANY];
	uint32_t count;
	uint32_t stop_at;
};

static int see(const struct kvp_segment *segment, void *arg)
{
	struct seen *seen = arg;

	assert_true(seen->count < MANY);
	seen->segments[seen->count++] = *segment;
	return seen->count == seen->stop_at ? -4711 : 0;
}

static struct kvpool_segment foreign(uint64_t addr, uint64_t length, uint32_t kind)
{
	return (struct kvpool_segment){
		.addr = addr, .length = length, .kind = kind, .flags = RW,
	};
}

static struct kvpool_segment pool(uint64_t addr, uint64_t length, uint32_t id, uint64_t offset)
{
	return (struct kvpool_segment){
		.addr = addr, .length = length, .kind = KVPOOL_SEGMENT_POOL, .flags = RW,
		.generation = 1000 + id, .offset = offset, .pool_length = 1 << 30, .id = id,
		.domain = "serving",
	};
}

static void assert_path(const struct seen *seen, uint32_t n, enum kvp_kind kind, const char *path)
{
	assert_true(n < seen->count);
	assert_int_equal(seen->segments[n].kind, kind);
	assert_string_equal(seen->segments[n].path, path);
}

/* Every kind, with the paths that /proc/self/maps gives. */
static void test_kinds(void **state)
{
	static const char maps[] =
		"7e0000000000-7e0000001000 rw-p 00000000 00:00 0                  [heap]\n"
		"7f0000001000-7f0000002000 rw-s 00000000 00:05 12                 /dev/kvpool/a\n"
		"7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n"
		"7f0000003000-7f0000004000 rw-s 00000000 00:0f 13                 /anon_hugepage (deleted)\n"
		"7f0000004000-7f0000004800 rw-s 00000000 00:01 14                 /memfd:a b (deleted)\n"
		"7f0000004800-7f0000005000 rw-s 00000000 00:01 15                 /dev/shm/second\n"
		"7f0000005000-7f0000006000 r--p 00001000 fe:00 99                 /srv/weights.bin\n"
		"7f0000006000-7f0000007000 rw-s 00000000 00:06 7                  /dev/accelerator\n"
		"7f0000007000-7f0000008000 rw-s 00000000 00:06 7\n";
	struct kvpool_segment segments[] = {
		foreign(BASE, PAGE, KVPOOL_SEGMENT_UNMAPPED),
		pool(BASE + PAGE, PAGE, 5, 1 << 21),
		foreign(BASE + 2 * PAGE, PAGE, KVPOOL_SEGMENT_ANON),
		foreign(BASE + 3 * PAGE, PAGE, KVPOOL_SEGMENT_HUGETLB),
		foreign(BASE + 4 * PAGE, PAGE, KVPOOL_SEGMENT_SHMEM),
		foreign(BASE + 5 * PAGE, PAGE, KVPOOL_SEGMENT_FILE),
		foreign(BASE + 6 * PAGE, PAGE, KVPOOL_SEGMENT_DEVICE),
		foreign(BASE + 7 * PAGE, PAGE, KVPOOL_SEGMENT_SHMEM),
	};
	const struct fake_range range = { BASE, 8 * PAGE, segments, 8, 0 };
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen = { .count = 0 };

	(void)state;
	segments[0].flags = 0;
	segments[5].flags = KVPOOL_SEGMENT_READ;
	segments[1].flags = KVPOOL_SEGMENT_STALE | KVPOOL_SEGMENT_WRITE;
	fake_ioctl_resolve(&range);
	fake_open("/proc/self/maps", O_RDONLY, 0, maps);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, 8 * PAGE, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 8);
	assert_path(&seen, 0, KVP_KIND_UNMAPPED, "");
	assert_path(&seen, 1, KVP_KIND_POOL, "");
	assert_path(&seen, 2, KVP_KIND_ANON, "");
	assert_path(&seen, 3, KVP_KIND_HUGETLB, "/anon_hugepage (deleted)");
	assert_path(&seen, 4, KVP_KIND_SHMEM, "/memfd:a b (deleted)");
	assert_path(&seen, 5, KVP_KIND_FILE, "/srv/weights.bin");
	assert_path(&seen, 6, KVP_KIND_DEVICE, "");
	assert_path(&seen, 7, KVP_KIND_SHMEM, "");
	assert_false(seen.segments[0].readable);
	assert_false(seen.segments[0].writable);
	assert_true(seen.segments[5].readable);
	assert_false(seen.segments[5].writable);
	assert_true(seen.segments[6].readable && seen.segments[6].writable);
	assert_true(seen.segments[1].stale);
	assert_false(seen.segments[1].readable);
	assert_true(seen.segments[1].writable);
	assert_int_equal(seen.segments[1].addr, BASE + PAGE);
	assert_int_equal(seen.segments[1].length, PAGE);
	assert_int_equal(seen.segments[1].pool_length, 1 << 30);
	assert_string_equal(seen.segments[1].span.domain, "serving");
	assert_int_equal(seen.segments[1].span.id, 5);
	assert_int_equal(seen.segments[1].span.generation, 1005);
	assert_int_equal(seen.segments[1].span.offset, 1 << 21);
	assert_int_equal(seen.segments[1].span.length, PAGE);
	/* Not a pool: no span. */
	assert_int_equal(seen.segments[2].span.id, 0);
	assert_int_equal(seen.segments[2].span.length, 0);
	kvp_close(ctx);
}

/* The name only makes a message clearer: without it the answer stands. */
static void test_no_maps(void **state)
{
	static const char junk[] = "Size: 4 kB\n";
	struct kvpool_segment segments[] = {
		foreign(BASE, PAGE, KVPOOL_SEGMENT_FILE),
		foreign(BASE + PAGE, PAGE, KVPOOL_SEGMENT_SHMEM),
	};
	const struct fake_range range = { BASE, 2 * PAGE, segments, 2, 0 };
	struct kvp_ctx *ctx = fake_ctx(true);
	const char *const contents[] = { NULL, junk, "7f0000000000-7f0000001000\n", "\n",
		/* Only a mapping behind both. */
		"7f0000002000-7f0000003000 rw-s 0 fe:00 9 /other\n" };
	char long_line[400];
	struct seen seen;
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(contents); i++) {
		seen = (struct seen){ .count = 0 };
		fake_ioctl_resolve(&range);
		fake_open("/proc/self/maps", O_RDONLY, 0, contents[i]);
		assert_int_equal(kvp_resolve(ctx, (void *)BASE, 2 * PAGE, see, &seen, NULL), 0);
		assert_path(&seen, 0, KVP_KIND_FILE, "");
		assert_path(&seen, 1, KVP_KIND_SHMEM, "");
	}
	seen = (struct seen){ .count = 0 };
	fake_ioctl_resolve(&range);
	/* Tried once a range, not once a segment. */
	fake_open("/proc/self/maps", O_RDONLY, EMFILE, NULL);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, 2 * PAGE, see, &seen, NULL), 0);
	assert_path(&seen, 0, KVP_KIND_FILE, "");

	/* What does not fit says so. */
	seen = (struct seen){ .count = 0 };
	snprintf(long_line, sizeof(long_line), "7f0000000000-7f0000002000 rw-s 0 fe:00 9  /%0300d\n",
		 0);
	fake_ioctl_resolve(&range);
	fake_open("/proc/self/maps", O_RDONLY, 0, long_line);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, 2 * PAGE, see, &seen, NULL), 0);
	assert_int_equal(strlen(seen.segments[0].path), sizeof(seen.segments[0].path) - 1);
	assert_string_equal(seen.segments[0].path + 120, "0000...");
	kvp_close(ctx);
}

/*
 * More segments than one call holds: the loop goes on where the last ended,
 * and what continues across calls is one segment all the same.
 */
static void test_many(void **state)
{
	struct kvpool_segment segments[MANY];
	const struct fake_range ranges[] = {
		{ BASE, 38 * PAGE, segments, 16, 0 },
		{ BASE + 16 * PAGE, 22 * PAGE, segments + 16, 16, 0 },
		{ BASE + 32 * PAGE, 6 * PAGE, segments + 32, 6, 0 },
	};
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen = { .count = 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < MANY; i++)
		segments[i] = pool(BASE + i * PAGE, PAGE, i + 1, 0);
	/* 15 and 16 continue each other, 31 and 32 leave a gap in the same pool. */
	segments[16] = pool(BASE + 16 * PAGE, PAGE, 16, PAGE);
	segments[32] = pool(BASE + 32 * PAGE, PAGE, 32, 2 * PAGE);
	for (i = 0; i < 3; i++)
		fake_ioctl_resolve(&ranges[i]);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, 38 * PAGE, see, &seen, NULL), 0);
	assert_int_equal(seen.count, 37);
	assert_int_equal(seen.segments[15].length, 2 * PAGE);
	assert_int_equal(seen.segments[15].span.length, 2 * PAGE);
	assert_int_equal(seen.segments[30].length, PAGE);
	assert_int_equal(seen.segments[31].span.offset, 2 * PAGE);
	for (i = 1; i < seen.count; i++)
		assert_int_equal(seen.segments[i].addr,
				 seen.segments[i - 1].addr + seen.segments[i - 1].length);
	kvp_close(ctx);
}

static uint32_t count_with(struct kvp_ctx *ctx, const struct kvpool_segment *second)
{
	struct kvpool_segment segments[] = { pool(BASE, PAGE, 5, 0), *second };
	const struct fake_range range = { BASE, 2 * PAGE, segments, 2, 0 };
	struct seen seen = { .count = 0 };

	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, 2 * PAGE, see, &seen, NULL), 0);
	return seen.count;
}

/* Each of these alone keeps two neighbours apart. */
static void test_not_merged(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvpool_segment next = pool(BASE + PAGE, PAGE, 5, PAGE), other;

	(void)state;
	assert_int_equal(count_with(ctx, &next), 1);
	other = next;
	other.id = 6;
	assert_int_equal(count_with(ctx, &other), 2);
	other = next;
	other.generation++;
	assert_int_equal(count_with(ctx, &other), 2);
	other = next;
	other.offset = 0;
	assert_int_equal(count_with(ctx, &other), 2);
	other = next;
	other.flags = KVPOOL_SEGMENT_READ;
	assert_int_equal(count_with(ctx, &other), 2);
	other = next;
	other.flags = KVPOOL_SEGMENT_WRITE;
	assert_int_equal(count_with(ctx, &other), 2);
	other = next;
	other.flags |= KVPOOL_SEGMENT_STALE;
	assert_int_equal(count_with(ctx, &other), 2);
	other = foreign(BASE + PAGE, PAGE, KVPOOL_SEGMENT_ANON);
	assert_int_equal(count_with(ctx, &other), 2);
	kvp_close(ctx);
}

static void test_stop(void **state)
{
	struct kvpool_segment segments[MANY];
	struct fake_range range = { BASE, MANY * PAGE, segments, MANY, 0 };
	struct kvp_ctx *ctx = fake_ctx(true);
	struct seen seen = { .stop_at = 3 };
	uint32_t i;

	(void)state;
	for (i = 0; i < MANY; i++)
		segments[i] = pool(BASE + i * PAGE, PAGE, i + 1, 0);
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, MANY * PAGE, see, &seen, NULL), -4711);
	assert_int_equal(seen.count, 3);
	/* At the last one, too. */
	seen = (struct seen){ .stop_at = 1 };
	segments[0].length = MANY * PAGE;
	range.count = 1;
	fake_ioctl_resolve(&range);
	assert_int_equal(kvp_resolve(ctx, (void *)BASE, MANY * PAGE, see, &seen, NULL), -4711);
	kvp_close(ctx);
}

static void assert_resolve_fails(struct kvp_ctx *ctx, uint64_t addr, uint64_t length, int err,
				 const char *message)
{
	struct seen seen = { .count = 0 };
	struct kvp_error error;

	assert_int_equal(kvp_resolve(ctx, (void *)(uintptr_t)addr, length, see, &seen, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, NULL);
	assert_int_equal(seen.count, 0);
}

static void test_fails(void **state)
{
	struct fake_range range = { BASE, PAGE, NULL, 0, EFAULT };
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	assert_resolve_fails(ctx, BASE, 0, -EINVAL, "resolve 0 bytes at 0x7f0000000000");
	assert_resolve_fails(ctx, BASE, UINT64_MAX - BASE + 1, -EINVAL, "wrap");
	assert_resolve_fails(ctx, 1, UINT64_MAX, -EINVAL, "wrap");
	fake_ioctl_resolve(&range);
	assert_resolve_fails(ctx, BASE, PAGE, -EFAULT, "resolve 4096 bytes at 0x7f0000000000");
	range.err = ENOTTY;
	fake_ioctl_resolve(&range);
	assert_resolve_fails(ctx, BASE, PAGE, -ENOTTY, "resolve 4096 bytes");
	kvp_close(ctx);
}

/* --------------------------------------------------- answers that don't add up */

static void resolved_more(void *argument)
{
	((struct kvpool_resolve *)argument)->resolved++;
}

static void resolved_none(void *argument)
{
	((struct kvpool_resolve *)argument)->resolved = 0;
}

static void count_none(void *argument)
{
	((struct kvpool_resolve *)argument)->count = 0;
}

static void count_many(void *argument)
{
	((struct kvpool_resolve *)argument)->count = UINT32_MAX;
}

static void all_of_another_range(void *argument)
{
	struct kvpool_resolve *resolve = argument;

	resolve->length = resolve->resolved = 1ull << 40;
}

static void assert_nonsense(struct kvp_ctx *ctx, const struct kvpool_segment *segments,
			    void (*tamper)(void *argument))
{
	const struct fake_range range = { BASE, 2 * PAGE, segments, 2, 0 };

	fake_ioctl_resolve(&range);
	fake_tamper(tamper);
	assert_resolve_fails(ctx, BASE, 2 * PAGE, -EPROTO, "does not add up");
}

static void test_nonsense(void **state)
{
	const struct kvpool_segment good[] = {
		pool(BASE, PAGE, 5, 0), foreign(BASE + PAGE, PAGE, KVPOOL_SEGMENT_ANON),
	};
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvpool_segment bad[2];

	(void)state;
	assert_nonsense(ctx, good, resolved_more);
	assert_nonsense(ctx, good, resolved_none);
	assert_nonsense(ctx, good, count_none);
	assert_nonsense(ctx, good, count_many);
	assert_nonsense(ctx, good, all_of_another_range);
#define BAD(n, member, value) (memcpy(bad, good, sizeof(bad)), bad[n].member = (value), bad)
	assert_nonsense(ctx, BAD(0, addr, BASE + 1), NULL);
	assert_nonsense(ctx, BAD(1, addr, BASE), NULL);
	assert_nonsense(ctx, BAD(0, length, 0), NULL);
	assert_nonsense(ctx, BAD(1, length, 2 * PAGE), NULL);
	assert_nonsense(ctx, BAD(0, length, UINT64_MAX), NULL);
	assert_nonsense(ctx, BAD(1, kind, KVPOOL_SEGMENT_DEVICE + 1), NULL);
	assert_nonsense(ctx, BAD(0, id, 0), NULL);
	assert_nonsense(ctx, BAD(0, generation, 0), NULL);
	assert_nonsense(ctx, BAD(0, offset, UINT64_MAX), NULL);
#undef BAD
	memcpy(bad, good, sizeof(bad));
	memset(bad[0].domain, 'd', sizeof(bad[0].domain));
	assert_nonsense(ctx, bad, NULL);
	kvp_close(ctx);
}

static void one_more(void *argument)
{
	((struct kvpool_resolve *)argument)->count++;
}

/* A full array and a count beyond it: nothing behind the array is looked at. */
static void test_count_beyond(void **state)
{
	struct kvpool_segment segments[16];
	const struct fake_range range = { BASE, 40 * PAGE, segments, 16, 0 };
	struct kvp_ctx *ctx = fake_ctx(true);
	uint32_t i;

	(void)state;
	for (i = 0; i < 16; i++)
		segments[i] = pool(BASE + i * PAGE, PAGE, i + 1, 0);
	fake_ioctl_resolve(&range);
	fake_tamper(one_more);
	assert_resolve_fails(ctx, BASE, 40 * PAGE, -EPROTO, "does not add up");
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_kinds),
		fake_test(test_no_maps),
		fake_test(test_many),
		fake_test(test_not_merged),
		fake_test(test_stop),
		fake_test(test_fails),
		fake_test(test_nonsense),
		fake_test(test_count_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

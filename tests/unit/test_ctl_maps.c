// SPDX-License-Identifier: GPL-2.0-only
/* What kvpoolctl makes of /proc/PID/maps, on fixed text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/maps.h"

static int read_text(const char *text, uint64_t addr, uint64_t length, struct maps *maps)
{
	/* fmemopen() takes no empty buffer on every C library, so the NUL is lent to it. */
	FILE *file = fmemopen((void *)text, strlen(text) + !text[0], "r");
	int err;

	assert_non_null(file);
	if (!text[0])
		assert_int_equal(getc(file), '\0');
	err = maps_read(file, addr, length, maps);
	fclose(file);
	return err;
}

static void test_line(void **state)
{
	char with_blanks[] = "7f0000000000-7f0000200000 r--s 00400000 00:05 1234    /a b (c)\n";
	char without[] = "7f0000000000-7f0000200000 rw-p 00000000 00:00 0\n";
	char padded[] = "7f0000000000-7f0000200000 ---p 00000000 fe:1f 0     \n";
	char backward[] = "2000-1000 rw-p 00000000 00:00 0\n";
	char empty[] = "\n";
	char junk[] = "Size: 4 kB\n";
	struct maps_line line;

	(void)state;
	assert_int_equal(maps_parse_line(with_blanks, &line), 0);
	assert_true(line.start == 0x7f0000000000 && line.end == 0x7f0000200000);
	assert_int_equal(line.offset, 0x400000);
	assert_true(line.readable);
	assert_false(line.writable);
	assert_int_equal(line.minor, 5);
	assert_int_equal(line.inode, 1234);
	assert_string_equal(line.path, "/a b (c)");

	assert_int_equal(maps_parse_line(without, &line), 0);
	assert_true(line.writable);
	assert_string_equal(line.path, "");
	assert_int_equal(maps_parse_line(padded, &line), 0);
	assert_int_equal(line.major, 0xfe);
	assert_int_equal(line.minor, 0x1f);
	assert_string_equal(line.path, "");

	assert_int_equal(maps_parse_line(backward, &line), -EINVAL);
	assert_int_equal(maps_parse_line(empty, &line), -EINVAL);
	assert_int_equal(maps_parse_line(junk, &line), -EINVAL);
}

/* One mapping with a path, and what it is taken for. */
static struct maps one(const char *path)
{
	struct maps maps;
	char text[512];

	snprintf(text, sizeof(text), "200000-600000 rw-s 00200000 00:0f 77    %s\n", path);
	assert_int_equal(read_text(text, 0x400000, 0x100000, &maps), 0);
	assert_int_equal(maps.count, 1);
	assert_int_equal(maps.lines, 1);
	return maps;
}

static void assert_kind(const char *path, enum kvp_kind kind)
{
	struct maps maps = one(path);

	assert_int_equal(maps.segments[0].kind, kind);
	assert_int_equal(maps.segments[0].match, MAPS_MATCH_NONE);
	maps_free(&maps);
}

static void assert_identity(const char *path)
{
	struct maps maps = one(path);
	const struct maps_segment *segment = maps.segments;

	assert_int_equal(segment->kind, KVP_KIND_POOL);
	assert_int_equal(segment->match, MAPS_MATCH_IDENTITY);
	assert_int_equal(segment->id, 3);
	assert_int_equal(segment->generation, 17);
	/* The offset is that of the first byte asked for, not of the mapping. */
	assert_int_equal(segment->offset, 0x400000);
	assert_int_equal(segment->addr, 0x400000);
	assert_int_equal(segment->length, 0x100000);
	assert_int_equal(segment->start, 0x200000);
	assert_int_equal(segment->end, 0x600000);
	maps_free(&maps);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_kind("", KVP_KIND_ANON);
	assert_kind("[heap]", KVP_KIND_ANON);
	assert_kind("[stack]", KVP_KIND_ANON);
	assert_kind("[anon:cache]", KVP_KIND_ANON);
	assert_kind("/dev/zero", KVP_KIND_ANON);
	assert_kind("/dev/zero (deleted)", KVP_KIND_SHMEM);
	assert_kind("[anon_shmem:cache]", KVP_KIND_SHMEM);
	assert_kind("/memfd:cache (deleted)", KVP_KIND_SHMEM);
	assert_kind("/dev/shm/cache", KVP_KIND_SHMEM);
	assert_kind("/SYSV00000000 (deleted)", KVP_KIND_SHMEM);
	assert_kind("/anon_hugepage (deleted)", KVP_KIND_HUGETLB);
	assert_kind("/dev/hugepages/cache", KVP_KIND_HUGETLB);
	assert_kind("[vdso]", KVP_KIND_DEVICE);
	assert_kind("[vvar]", KVP_KIND_DEVICE);
	assert_kind("[vvar_vclock]", KVP_KIND_DEVICE);
	assert_kind("[vsyscall]", KVP_KIND_DEVICE);
	assert_kind("/dev/infiniband/uverbs0", KVP_KIND_DEVICE);
	assert_kind("/dev/kvpool/control", KVP_KIND_DEVICE);
	assert_kind("anon_inode:[io_uring]", KVP_KIND_DEVICE);
	assert_kind("/usr/lib/libc.so.6", KVP_KIND_FILE);
	/* Names that only look like a pool's. */
	assert_kind("/kvpool:3", KVP_KIND_FILE);
	assert_kind("/kvpool:3.17.1", KVP_KIND_FILE);
	assert_kind("/kvpool:0.17", KVP_KIND_FILE);
	assert_kind("/tmp/kvpool:3.17", KVP_KIND_FILE);
}

static void test_pools(void **state)
{
	struct maps maps;

	(void)state;
	assert_identity("kvpool:3.17");
	assert_identity("/kvpool:3.17");
	assert_identity("kvpool:3.17 (deleted)");
	assert_identity("/kvpool:3.17 (deleted)");

	maps = one("/dev/kvpool/target-0");
	assert_int_equal(maps.segments[0].kind, KVP_KIND_POOL);
	assert_int_equal(maps.segments[0].match, MAPS_MATCH_NAME);
	assert_string_equal(maps.segments[0].name, "target-0");
	assert_int_equal(maps.segments[0].offset, 0x400000);
	maps_free(&maps);

	/* A pool, but not the one that has this name now. */
	maps = one("/dev/kvpool/target-0 (deleted)");
	assert_int_equal(maps.segments[0].kind, KVP_KIND_POOL);
	assert_int_equal(maps.segments[0].match, MAPS_MATCH_NONE);
	assert_string_equal(maps.segments[0].name, "target-0");
	maps_free(&maps);
}

static void assert_segment(const struct maps *maps, size_t n, uint64_t addr, uint64_t end,
			   enum kvp_kind kind)
{
	assert_true(n < maps->count);
	assert_true(maps->segments[n].addr == addr);
	assert_true(maps->segments[n].addr + maps->segments[n].length == end);
	assert_int_equal(maps->segments[n].kind, kind);
}

static const char several[] =
	"1000-2000 rw-p 00000000 00:00 0 \n"
	"2000-3000 rw-p 00005000 00:00 0 \n"
	"5000-6000 r--p 00000000 08:01 9    /lib\n"
	"6000-7000 r--p 00001000 08:01 9    /lib\n"
	"7000-8000 r-xp 00002000 08:01 9    /lib\n"
	"8000-9000 rw-p 00003000 08:01 9    /lib\n"
	"9000-a000 rw-p 00007000 08:01 9    /lib\n"
	"a000-b000 rw-s 00000000 00:0f 0    kvpool:3.17\n"
	"b000-c000 rw-s 00001000 00:0f 0    kvpool:3.17\n"
	"c000-d000 rw-s 00000000 00:0f 0    kvpool:3.18\n"
	"f000-10000 r--s 00000000 00:0f 0    kvpool:3.18\n";

static void test_ranges(void **state)
{
	struct maps maps;

	(void)state;
	assert_int_equal(read_text(several, 0, 0x20000, &maps), 0);
	assert_int_equal(maps.lines, 11);
	assert_int_equal(maps.count, 11);
	assert_segment(&maps, 0, 0, 0x1000, KVP_KIND_UNMAPPED);
	/* Neighbours of one backing are one, whatever the offset of anonymous memory. */
	assert_segment(&maps, 1, 0x1000, 0x3000, KVP_KIND_ANON);
	assert_segment(&maps, 2, 0x3000, 0x5000, KVP_KIND_UNMAPPED);
	/* Execute permission makes no difference here. */
	assert_segment(&maps, 3, 0x5000, 0x8000, KVP_KIND_FILE);
	/* Another protection, then another place in the file. */
	assert_segment(&maps, 4, 0x8000, 0x9000, KVP_KIND_FILE);
	assert_segment(&maps, 5, 0x9000, 0xa000, KVP_KIND_FILE);
	assert_segment(&maps, 6, 0xa000, 0xc000, KVP_KIND_POOL);
	/* Another generation is another pool. */
	assert_segment(&maps, 7, 0xc000, 0xd000, KVP_KIND_POOL);
	assert_segment(&maps, 8, 0xd000, 0xf000, KVP_KIND_UNMAPPED);
	assert_segment(&maps, 9, 0xf000, 0x10000, KVP_KIND_POOL);
	assert_false(maps.segments[9].writable);
	assert_segment(&maps, 10, 0x10000, 0x20000, KVP_KIND_UNMAPPED);
	maps_free(&maps);
}

static void test_clipping(void **state)
{
	struct maps maps;

	(void)state;
	/* Inside one mapping. */
	assert_int_equal(read_text(several, 0xb800, 0x10, &maps), 0);
	assert_int_equal(maps.count, 1);
	assert_segment(&maps, 0, 0xb800, 0xb810, KVP_KIND_POOL);
	assert_int_equal(maps.segments[0].offset, 0x1800);
	maps_free(&maps);

	/* Across a border. */
	assert_int_equal(read_text(several, 0xbfff, 2, &maps), 0);
	assert_int_equal(maps.count, 2);
	assert_segment(&maps, 0, 0xbfff, 0xc000, KVP_KIND_POOL);
	assert_segment(&maps, 1, 0xc000, 0xc001, KVP_KIND_POOL);
	maps_free(&maps);

	/* In a hole, and behind everything, to the last byte of all. */
	assert_int_equal(read_text(several, 0x3800, 0x100, &maps), 0);
	assert_int_equal(maps.count, 1);
	assert_segment(&maps, 0, 0x3800, 0x3900, KVP_KIND_UNMAPPED);
	maps_free(&maps);
	assert_int_equal(read_text(several, 0x100000, UINT64_MAX - 0x100000, &maps), 0);
	assert_int_equal(maps.count, 1);
	assert_segment(&maps, 0, 0x100000, UINT64_MAX, KVP_KIND_UNMAPPED);
	maps_free(&maps);
}

/* The file is read in pieces: a mapping that grows meanwhile is told again. */
static void test_told_twice(void **state)
{
	struct maps maps;

	(void)state;
	assert_int_equal(read_text("1000-9000 rw-p 00000000 00:00 0 \n"
				   "3000-a000 rw-s 00000000 00:0f 0    kvpool:3.17\n",
				   0x1000, 0x7000, &maps), 0);
	assert_int_equal(maps.count, 1);
	assert_segment(&maps, 0, 0x1000, 0x8000, KVP_KIND_ANON);
	maps_free(&maps);
	assert_int_equal(read_text("1000-4000 rw-p 00000000 00:00 0 \n"
				   "3000-a000 rw-s 00000000 00:0f 0    kvpool:3.17\n",
				   0x1000, 0x7000, &maps), 0);
	assert_int_equal(maps.count, 2);
	assert_segment(&maps, 1, 0x4000, 0x8000, KVP_KIND_POOL);
	assert_int_equal(maps.segments[1].offset, 0x1000);
	maps_free(&maps);
}

static void test_bad_text(void **state)
{
	struct maps maps;

	(void)state;
	assert_int_equal(read_text("1000-2000 rw-p 0 00:00 0\nwhat\n", 0, 0x1000, &maps), -EINVAL);
	assert_null(maps.segments);
	/* A process without memory: the caller tells it by the number of lines. */
	assert_int_equal(read_text("", 0x1000, 0x1000, &maps), 0);
	assert_int_equal(maps.lines, 0);
	assert_int_equal(maps.count, 1);
	maps_free(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_clipping),
		cmocka_unit_test(test_told_twice),
		cmocka_unit_test(test_bad_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

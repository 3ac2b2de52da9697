// SPDX-License-Identifier: LGPL-2.1-or-later
/* What may be pinned, and where buffers are cut. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "fake_registrar.h"
#include "fake_world.h"

#define INITIAL_USER_NAMESPACE 4026531837ULL

static const char status[] =
	"Name:\tserver\nVmPeak:\t 9000 kB\nVmLck:\t 4096 kB\nVmPin:\t    2048 kB\n"
	"CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\n"
	"CapEff:\t0000000000004000\nCapBnd:\t000001ffffffffff\n";

/* ---------------------------------------------------------- locked memory */

static void status_of_proc(void **state)
{
	struct kvp_memlock memlock = { 0 };

	(void)state;
	assert_int_equal(kvp_memlock_parse(status, INITIAL_USER_NAMESPACE, &memlock), 0);
	/* Pinned, not mlock()ed. */
	assert_int_equal(memlock.used, 2048 * 1024);
	assert_true(memlock.exempt);
	/* The kernel does not count a container's capability, so neither does the check. */
	assert_int_equal(kvp_memlock_parse(status, 4026532000ULL, &memlock), 0);
	assert_false(memlock.exempt);
	assert_int_equal(kvp_memlock_parse("VmPin:\t0 kB\nCapEff:\tffffffffffffbfff\n",
					   INITIAL_USER_NAMESPACE, &memlock), 0);
	assert_false(memlock.exempt);
	assert_int_equal(memlock.used, 0);
	/* A key counts at the start of a line only. */
	assert_int_equal(kvp_memlock_parse("Name:\tVmPin:\nCapEff:\t0\n", 0, &memlock), -EPROTO);
	assert_int_equal(kvp_memlock_parse("VmPin:\t0 kB\n", 0, &memlock), -EPROTO);
	assert_int_equal(kvp_memlock_parse("", 0, &memlock), -EPROTO);
}

static void the_limit_of_this_process(void **state)
{
	struct rlimit before, limit;
	struct kvp_memlock memlock;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	limit = before;
	/* No system's hard limit is lower. */
	limit.rlim_cur = 48 * 1024;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	assert_int_equal(kvp_memlock_read(&memlock, NULL), 0);
	assert_int_equal(memlock.limit, 48 * 1024);
	assert_int_equal(memlock.used, 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	if (before.rlim_cur != RLIM_INFINITY)
		return;
	assert_int_equal(kvp_memlock_read(&memlock, NULL), 0);
	assert_true(memlock.limit == UINT64_MAX);
}

static void limit_to_the_page(void **state)
{
	const uint64_t page = kvp_page_size();
	struct kvp_memlock memlock = { .limit = 4 * page + page / 2, .used = page };
	struct kvp_memlock_need need = { .devices = 1, .per_device = 3 * page, .total = 3 * page };
	struct kvp_error error = { 0 };
	char message[256];

	(void)state;
	assert_int_equal(kvp_memlock_check(&memlock, &need, &error), 0);
	need.total = need.per_device = 4 * page;
	assert_int_equal(kvp_memlock_check(&memlock, &need, &error), -EDQUOT);
	snprintf(message, sizeof(message), "1 device x %" PRIu64 " bytes needs %" PRIu64
		 " bytes of locked memory, the limit is %" PRIu64 " and %" PRIu64 " are in use",
		 4 * page, 4 * page, memlock.limit, page);
	fake_assert_error(&error, -EDQUOT, KVP_PHASE_CHECK, message,
			  "raise RLIMIT_MEMLOCK (ulimit -l), or grant CAP_IPC_LOCK");
	/* More in use than the limit is, after it was lowered. */
	memlock.used = 8 * page;
	need.total = need.per_device = page;
	assert_int_equal(kvp_memlock_check(&memlock, &need, NULL), -EDQUOT);
	need.total = 0;
	assert_int_equal(kvp_memlock_check(&memlock, &need, NULL), 0);
	need.total = UINT64_MAX;
	assert_int_equal(kvp_memlock_check(&memlock, &need, NULL), -EDQUOT);
	memlock.exempt = true;
	assert_int_equal(kvp_memlock_check(&memlock, &need, NULL), 0);
	memlock.exempt = false;
	memlock.limit = UINT64_MAX;
	assert_int_equal(kvp_memlock_check(&memlock, &need, NULL), 0);
}

/* mooncake #1382, PR #1405, ucx #8229: devices times size, though the size alone would fit. */
static void devices_times_size(void **state)
{
	const struct kvp_memlock memlock = { .limit = 12 * MIB };
	struct kvp_memlock_need need = { 2, 8 * MIB, 16 * MIB };
	struct kvp_error error = { 0 };

	(void)state;
	assert_int_equal(kvp_memlock_check(&memlock, &need, &error), -EDQUOT);
	assert_string_equal(error.message,
			    "2 devices x 8388608 bytes need 16777216 bytes of locked memory, the limit is 12582912 and 0 are in use");
	need.per_device = 0;
	assert_int_equal(kvp_memlock_check(&memlock, &need, &error), -EDQUOT);
	assert_contains(error.message, "2 devices need 16777216 bytes");
}

static void pages_that_a_chunk_touches(void **state)
{
	const uint64_t page = kvp_page_size();

	(void)state;
	assert_int_equal(kvp_pinned_bytes(0, 1), page);
	assert_int_equal(kvp_pinned_bytes(page, page), page);
	assert_int_equal(kvp_pinned_bytes(page, page + 1), 2 * page);
	assert_int_equal(kvp_pinned_bytes(page - 1, 2), 2 * page);
	assert_int_equal(kvp_pinned_bytes(page + 1, page), 2 * page);
	/* mooncake PR #3845: neither is a multiple of the page. */
	if (page == 4096) {
		assert_int_equal(kvp_pinned_bytes(FAKE_BASE, 3779571220ULL), 3779571712ULL);
		assert_int_equal(kvp_pinned_bytes(FAKE_BASE, 998579896ULL), 998580224ULL);
	}
}

/* ---------------------------------------------------------------- cutting */

/* The chunks cover the buffer, in order, each within the limit, cut on block and page. */
static uint64_t assert_cut(uint64_t addr, uint64_t length, uint64_t block, uint64_t max)
{
	const struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)addr, .length = length, .block = block,
	};
	const uint64_t page = kvp_page_size();
	uint64_t at = 0, n, offset, chunk;
	struct kvp_split split;

	assert_int_equal(kvp_split(&buffer, max, &split), 0);
	for (n = 0; n < split.chunks; n++) {
		kvp_split_chunk(&split, length, n, &offset, &chunk);
		assert_int_equal(offset, at);
		assert_true(chunk > 0);
		assert_true(!max || chunk <= max);
		if (block)
			assert_int_equal(offset % block, 0);
		if (n && (addr % page == 0 || !block))
			assert_int_equal((addr + offset) % page, 0);
		at += chunk;
	}
	assert_int_equal(at, length);
	return split.chunks;
}

static void never_cuts_a_block(void **state)
{
	/* mooncake PR #3845 gives the lengths, #2017 the kind: a max_mr_size below them. */
	static const uint64_t lengths[] = { 3779571220ULL, 998579896ULL, 2 * MIB, 12345678 };
	static const uint64_t blocks[] = { 0, 1, 512, 4096, 6144, 65536, 72 * 1024, 147456, 99991 };
	static const uint64_t limits[] = {
		1 << 30, 512 << 20, (512 << 20) - 1, 409600001, 999 << 20,
	};
	unsigned int l, b, m;

	(void)state;
	for (l = 0; l < 4; l++)
		for (b = 0; b < 9; b++)
			for (m = 0; m < 5; m++) {
				assert_cut(FAKE_BASE, lengths[l], blocks[b], limits[m]);
				assert_cut(FAKE_BASE + 1664, lengths[l], blocks[b], limits[m]);
			}
}

static void cut_into_the_fewest(void **state)
{
	(void)state;
	assert_int_equal(assert_cut(FAKE_BASE, 3779571220ULL, 0, 1 << 30), 4);
	assert_int_equal(assert_cut(FAKE_BASE, 3779571220ULL, 0, 0), 1);
	assert_int_equal(assert_cut(FAKE_BASE, 3779571220ULL, 0, UINT64_MAX), 1);
	assert_int_equal(assert_cut(FAKE_BASE, 8 * MIB, 2 * MIB, 8 * MIB), 1);
	assert_int_equal(assert_cut(FAKE_BASE, 8 * MIB, 2 * MIB, 8 * MIB - 1), 2);
	assert_int_equal(assert_cut(FAKE_BASE, 8 * MIB, 2 * MIB, 2 * MIB), 4);
	assert_int_equal(assert_cut(FAKE_BASE, 8 * MIB + 1, 2 * MIB, 2 * MIB), 5);
	/* Starts 1664 bytes into a page: the first chunk makes up for it. */
	assert_int_equal(assert_cut(FAKE_BASE + 1664, 3 * MIB, 0, MIB), 4);
	assert_int_equal(assert_cut(FAKE_BASE + 1664, 3 * MIB, 0, MIB + 2432), 3);
	/* mooncake #2017: 128 KV blocks of 72 KiB, of which a border at 4 MiB cut one. */
	assert_int_equal(assert_cut(FAKE_BASE, 128 * 72 * 1024, 72 * 1024, 4 * MIB), 3);
}

static void block_larger_than_the_device_takes(void **state)
{
	struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)FAKE_BASE, .length = 16 * MIB, .block = 4 * MIB,
	};
	struct kvp_split split;

	(void)state;
	assert_int_equal(kvp_split(&buffer, 4 * MIB, &split), 0);
	assert_int_equal(kvp_split(&buffer, 4 * MIB - 1, &split), -EMSGSIZE);
	/* 6 KiB blocks meet a page of 4 KiB every 12 KiB. */
	buffer.block = 6 * 1024;
	assert_int_equal(kvp_split(&buffer, 12 * 1024, &split), 0);
	assert_int_equal(kvp_split(&buffer, 12 * 1024 - 1, &split), -EMSGSIZE);
	/* The common multiple has more than 64 bits, which matters only when there is a cut. */
	buffer.block = UINT64_MAX;
	assert_int_equal(kvp_split(&buffer, 8 * MIB, &split), -EMSGSIZE);
	assert_int_equal(kvp_split(&buffer, 16 * MIB, &split), 0);
	assert_int_equal(split.chunks, 1);
	/* And here what is left of it after 64 bits would pass for a page. */
	buffer.block = UINT64_MAX / kvp_page_size() + 2;
	assert_int_equal(kvp_split(&buffer, 8 * MIB, &split), -EMSGSIZE);
	buffer.block = 0;
	assert_int_equal(kvp_split(&buffer, kvp_page_size() - 1, &split), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_of_proc),
		cmocka_unit_test(the_limit_of_this_process),
		cmocka_unit_test(limit_to_the_page),
		cmocka_unit_test(devices_times_size),
		cmocka_unit_test(pages_that_a_chunk_touches),
		cmocka_unit_test(never_cuts_a_block),
		cmocka_unit_test(cut_into_the_fewest),
		cmocka_unit_test(block_larger_than_the_device_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

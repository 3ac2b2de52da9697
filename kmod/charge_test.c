// SPDX-License-Identifier: GPL-2.0
/* Included by charge.c. Every limit at its edge, and what a refusal leaves. */
#include "test.h"

#define BLOCK	((u64)KVPOOL_BLOCK_SIZE)

static struct limits {
	unsigned long long max_bytes, min_available;
	unsigned int max_pools;
} saved;

static int charge_test_init(struct kunit *test)
{
	saved = (struct limits){ max_bytes, min_available, max_pools };
	max_bytes = 64 * BLOCK;
	min_available = 0;
	max_pools = 4;
	return 0;
}

static void charge_test_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, held_bytes, 0);
	KUNIT_EXPECT_EQ(test, held_pools, 0);
	max_bytes = saved.max_bytes;
	min_available = saved.min_available;
	max_pools = saved.max_pools;
}

static void expect_refused(struct kunit *test, u64 bytes, int err, const char *text)
{
	struct netlink_ext_ack extack = {};
	struct kvpool_charge charge = {};
	u64 held = held_bytes;
	u32 pools = held_pools;

	KUNIT_EXPECT_EQ(test, kvpool_charge(&charge, bytes, &extack), err);
	KUNIT_ASSERT_NOT_NULL(test, extack._msg);
	KUNIT_EXPECT_STREQ(test, extack._msg, text);
	KUNIT_EXPECT_EQ(test, held_bytes, held);
	KUNIT_EXPECT_EQ(test, held_pools, pools);
	KUNIT_EXPECT_EQ(test, charge.bytes, 0);
	KUNIT_EXPECT_NULL(test, charge.user);
	/* A pool that was refused is put all the same. */
	kvpool_uncharge(&charge);
	KUNIT_EXPECT_EQ(test, held_bytes, held);
	KUNIT_EXPECT_EQ(test, held_pools, pools);
}

static void max_bytes_to_the_byte(struct kunit *test)
{
	struct kvpool_charge most = {}, last = {};

	KUNIT_EXPECT_EQ(test, kvpool_charge(&most, 63 * BLOCK, NULL), 0);
	expect_refused(test, 2 * BLOCK, -EDQUOT, "max_bytes 128 MiB: held 126, pool needs 4");
	KUNIT_EXPECT_EQ(test, kvpool_charge(&last, BLOCK, NULL), 0);
	expect_refused(test, BLOCK, -EDQUOT, "max_bytes 128 MiB: held 128, pool needs 2");
	kvpool_uncharge(&most);
	KUNIT_EXPECT_EQ(test, held_bytes, BLOCK);
	/* The administrator may set it below what is held. */
	max_bytes = 0;
	expect_refused(test, BLOCK, -EDQUOT, "max_bytes 0 MiB: held 2, pool needs 2");
	kvpool_uncharge(&last);
}

static void sums_do_not_wrap(struct kunit *test)
{
	u64 largest = (u64)U32_MAX << KVPOOL_BLOCK_SHIFT;
	struct kvpool_charge one = {};

	KUNIT_EXPECT_EQ(test, kvpool_charge(&one, BLOCK, NULL), 0);
	expect_refused(test, largest, -EDQUOT,
		       "max_bytes 128 MiB: held 2, pool needs 8589934590");
	max_bytes = U64_MAX;
	expect_refused(test, U64_MAX - BLOCK + 1, -EDQUOT,
		       "max_bytes 17592186044415 MiB: held 2, pool needs 17592186044414");
	kvpool_uncharge(&one);
}

static void memory_that_is_not_there(struct kunit *test)
{
	struct netlink_ext_ack extack = {};

	KUNIT_EXPECT_EQ(test, kvpool_memory_check(BLOCK, &extack), 0);
	KUNIT_EXPECT_NULL(test, extack._msg);
	KUNIT_EXPECT_EQ(test, kvpool_memory_check(SZ_1T, &extack), -ENOMEM);
	KUNIT_EXPECT_NOT_NULL(test, strstr(extack._msg, "needs 1048576 MiB; available "));
	KUNIT_EXPECT_EQ(test, kvpool_memory_check(U64_MAX, &extack), -ENOMEM);
	min_available = U64_MAX;
	KUNIT_EXPECT_EQ(test, kvpool_memory_check(BLOCK, &extack), -ENOMEM);
	KUNIT_EXPECT_NOT_NULL(test, strstr(extack._msg, "min_available 17592186044415"));
	/* With the block that comes next. */
	min_available = available_bytes() / 2;
	KUNIT_EXPECT_FALSE(test, kvpool_memory_low());
	min_available = U64_MAX - BLOCK;
	KUNIT_EXPECT_TRUE(test, kvpool_memory_low());
}

static void max_pools_to_the_pool(struct kunit *test)
{
	struct kvpool_charge charge[4] = {};
	u32 i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, kvpool_charge(&charge[i], BLOCK, NULL), 0);
	expect_refused(test, BLOCK, -EDQUOT, "max_pools: 4 of 4 pools exist");
	kvpool_uncharge(&charge[0]);
	/* Twice is once: the reaper looks at a pool until it is empty. */
	kvpool_uncharge(&charge[0]);
	KUNIT_EXPECT_EQ(test, held_pools, 3);
	KUNIT_EXPECT_EQ(test, kvpool_charge(&charge[0], BLOCK, NULL), 0);
	for (i = 0; i < 4; i++)
		kvpool_uncharge(&charge[i]);
}

/* Each case is a thread of its own, so its limits are nobody else's. */
static void memlock_is_charged_without_the_capability(struct kunit *test)
{
	atomic_long_t *locked = &current_user()->locked_vm;
	struct kvpool_charge privileged = {}, one = {}, two = {};
	struct cred *cred = prepare_creds();
	long before = atomic_long_read(locked);
	unsigned long use_kib = before << (PAGE_SHIFT - 10);
	const struct cred *old;
	char text[128];

	KUNIT_ASSERT_NOT_NULL(test, cred);
	KUNIT_EXPECT_EQ(test, kvpool_charge(&privileged, 8 * BLOCK, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(locked), before);
	KUNIT_EXPECT_NULL(test, privileged.user);

	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	old = override_creds(cred);
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = (before << PAGE_SHIFT) + 3 * BLOCK;
	KUNIT_EXPECT_EQ(test, kvpool_charge(&one, 2 * BLOCK, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(locked), before + 2 * KVPOOL_BLOCK_PAGES);
	snprintf(text, sizeof(text), "RLIMIT_MEMLOCK %lu KiB: in use %lu, pool needs 4096",
		 use_kib + 6144, use_kib + 4096);
	expect_refused(test, 2 * BLOCK, -EDQUOT, text);
	KUNIT_EXPECT_EQ(test, atomic_long_read(locked), before + 2 * KVPOOL_BLOCK_PAGES);
	KUNIT_EXPECT_EQ(test, kvpool_charge(&two, BLOCK, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(locked), before + 3 * KVPOOL_BLOCK_PAGES);
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = RLIM_INFINITY;
	revert_creds(old);
	put_cred(cred);

	/* Given back to whom it was taken from, whoever is at work then. */
	kvpool_uncharge(&one);
	KUNIT_EXPECT_EQ(test, atomic_long_read(locked), before + KVPOOL_BLOCK_PAGES);
	KUNIT_EXPECT_NULL(test, one.user);
	kvpool_uncharge(&two);
	kvpool_uncharge(&two);
	kvpool_uncharge(&privileged);
	KUNIT_EXPECT_EQ(test, atomic_long_read(locked), before);
}

static struct kunit_case charge_cases[] = {
	KUNIT_CASE(max_bytes_to_the_byte),
	KUNIT_CASE(sums_do_not_wrap),
	KUNIT_CASE(memory_that_is_not_there),
	KUNIT_CASE(max_pools_to_the_pool),
	KUNIT_CASE(memlock_is_charged_without_the_capability),
	{}
};

static struct kunit_suite charge_suite = {
	.name		= "kvpool_charge",
	.init		= charge_test_init,
	.exit		= charge_test_exit,
	.test_cases	= charge_cases,
};

kunit_test_suite(charge_suite);

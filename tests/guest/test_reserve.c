// SPDX-License-Identifier: GPL-2.0
/* The reserve: that pools come from it, who may have how much, and that no byte goes along. */
#include "guest.h"

#include <sys/resource.h>
#include <linux/mempolicy.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define SYSFS "/sys/class/kvpool/control/reserve/node0/"
#define CGROUP "/sys/fs/cgroup/kvpool-reserve"
#define MIN_AVAILABLE "/sys/module/kvpool/parameters/min_available"
#define ALICE 1000
#define BOB 1001

static struct kvp_pool_options options_of(uint64_t length)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);

	options.domain = "kv";
	options.length = length;
	options.has_node = 1;
	return options;
}

static struct kvp_pool *create(struct kvp_ctx *ctx, uint64_t length)
{
	struct kvp_pool_options options = options_of(length);
	struct kvp_pool *pool = NULL;

	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

static void refused(struct kvp_ctx *ctx, int err, uint64_t length)
{
	struct kvp_pool_options options = options_of(length);
	struct kvp_pool *pool;

	RETURNS(err, kvp_pool_create(ctx, &options, &pool, &error));
}

static void end(struct kvp_ctx *ctx, struct kvp_pool *pool)
{
	uint32_t id = kvp_pool_id(pool);
	uint64_t generation = kvp_pool_generation(pool);

	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, id, generation, 0, &error));
}

static void set_target_of(struct kvp_ctx *ctx, uint32_t node, uint64_t target)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);

	change.mask = KVP_RESERVE_SET_TARGET;
	change.node = node;
	change.target = target;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
}

static void set_target(struct kvp_ctx *ctx, uint64_t target)
{
	set_target_of(ctx, 0, target);
}

static void set_policy(struct kvp_ctx *ctx, enum kvp_reserve_policy policy)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);

	change.mask = KVP_RESERVE_SET_POLICY;
	change.policy = policy;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
}

static void set_quota(struct kvp_ctx *ctx, uid_t uid, uint64_t quota)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);

	change.mask = KVP_RESERVE_SET_UID | (quota == UINT64_MAX ? 0 : KVP_RESERVE_SET_QUOTA);
	change.uid = uid;
	change.quota = quota;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
}

static uint64_t ready(void)
{
	return (uint64_t)shell_number("cat " SYSFS "ready");
}

static uint64_t clearing(void)
{
	return (uint64_t)shell_number("cat " SYSFS "clearing");
}

static void fill_reserve(struct kvp_ctx *ctx, uint64_t target)
{
	set_target(ctx, target);
	UNTIL(ready() == target && !clearing());
}

/* What a user has of it, as the administrator sees it; 0 when it is not told. */
static uint64_t used(struct kvp_ctx *ctx, uid_t uid)
{
	struct kvp_reserve *reserve;
	uint64_t bytes = 0;

	RETURNS(0, kvp_reserve_get(ctx, &reserve, &error));
	for (size_t i = 0; i < reserve->user_count; i++)
		if (reserve->users[i].uid == uid)
			bytes = reserve->users[i].used;
	kvp_reserve_free(reserve);
	return bytes;
}

/* Physical page numbers of the blocks. */
static void frames(const char *addr, uint64_t *numbers, int count)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (int i = 0; i < count; i++) {
		(void)*(const volatile char *)(addr + (size_t)i * BLOCK);
		CHECK(pread(fd, &numbers[i], 8, (off_t)((uintptr_t)(addr + (size_t)i * BLOCK) / 4096 * 8)) == 8);
		numbers[i] &= ((uint64_t)1 << 55) - 1;
		CHECK(numbers[i]);
	}
	close(fd);
}

static int shared(const uint64_t *a, const uint64_t *b, int count)
{
	int found = 0;

	for (int i = 0; i < count; i++)
		for (int j = 0; j < count; j++)
			found += a[i] == b[j];
	return found;
}

#define BLOCKS 32
#define ROUNDS 5

/*
 * The same blocks go from one pool to the next by way of the reserve, and
 * nothing that was written goes with them.
 */
static void nothing_goes_along(void)
{
	struct kvp_ctx *ctx = open_ctx();
	uint64_t old[BLOCKS], new[BLOCKS], *word;
	struct kvp_pool *pool;
	int again = 0;

	set_policy(ctx, KVP_RESERVE_ONLY);
	fill_reserve(ctx, BLOCKS * BLOCK);
	/* So that nothing new comes into the reserve. */
	EQUAL(shell("echo 1000000000000000 >" MIN_AVAILABLE), 0);
	pool = create(ctx, BLOCKS * BLOCK);
	for (int round = 0; round < ROUNDS; round++) {
		word = map_pool(pool);
		frames((char *)word, old, BLOCKS);
		fill(word, BLOCKS * BLOCK, 7);
		end(ctx, pool);
		/* At once: it waits for what is being cleared. */
		pool = create(ctx, BLOCKS * BLOCK);
		word = map_pool(pool);
		for (size_t i = 0; i < BLOCKS * BLOCK / sizeof(*word); i++)
			if (word[i])
				FAIL("word %zu is %#" PRIx64, i, word[i]);
		frames((char *)word, new, BLOCKS);
		again += shared(old, new, BLOCKS);
	}
	EQUAL(again, ROUNDS * BLOCKS);
	end(ctx, pool);
	UNTIL(ready() == BLOCKS * BLOCK);
}

static void first_and_only(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool, *other;

	EQUAL(shell_number("cat " SYSFS "target"), 0);
	set_policy(ctx, KVP_RESERVE_ONLY);
	refused(ctx, -ENOMEM, BLOCK);
	SAYS("reserve only: it has 0 of 1 blocks");
	fill_reserve(ctx, 8 * BLOCK);
	EQUAL(shell_number("cat " SYSFS "target"), 8 * BLOCK);
	refused(ctx, -ENOMEM, 9 * BLOCK);
	SAYS("reserve only: it has 8 of 9 blocks");
	EQUAL(ready() + clearing(), 8 * BLOCK);
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(used(ctx, 0), 0);

	pool = create(ctx, 8 * BLOCK);
	EQUAL(used(ctx, 0), 8 * BLOCK);
	UNTIL(ready() == 8 * BLOCK);
	set_policy(ctx, KVP_RESERVE_FIRST);
	/* Eight of it, and twenty more. */
	other = create(ctx, 28 * BLOCK);
	EQUAL(used(ctx, 0), 16 * BLOCK);
	EQUAL(stats(ctx).bytes, 36 * BLOCK);
	fill(map_pool(other), 28 * BLOCK, 5);
	CHECK(filled(map_pool(other), 28 * BLOCK, 5));
	end(ctx, other);
	end(ctx, pool);
	EQUAL(used(ctx, 0), 0);
	UNTIL(ready() == 8 * BLOCK && !clearing());
}

static int64_t now_ms(void)
{
	struct timespec time;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &time));
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* What a creation took is replaced, but not beside the creation. */
static void replaced_later(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;
	uint64_t left;
	int64_t start;

	fill_reserve(ctx, 16 * BLOCK);
	/* Else it may still be about to look what is missing. */
	UNTIL(!shell("ps -o s= -C kvpool_reserve | grep -q I"));
	start = now_ms();
	pool = create(ctx, 8 * BLOCK);
	/* Long enough to replace some, were it done now; it is done after a second. */
	usleep(300000);
	left = ready();
	if (now_ms() - start < 900)
		EQUAL(left, 8 * BLOCK);
	UNTIL(ready() == 16 * BLOCK);
	end(ctx, pool);
}

/* Ends with what is in the reserve then free, whatever came of the pools. */
static void shrinks(void)
{
	struct kvp_ctx *ctx = open_ctx();
	long before = free_memory();
	struct kvp_pool *pool;

	fill_reserve(ctx, 256 * BLOCK);
	CHECK(before - free_memory() > 500 << 10);
	pool = create(ctx, 128 * BLOCK);
	set_target(ctx, 16 * BLOCK);
	CHECK(ready() <= 16 * BLOCK);
	end(ctx, pool);
	UNTIL(ready() == 16 * BLOCK && !clearing());
	set_target(ctx, 0);
	EQUAL(ready(), 0);
	CHECK(before - free_memory() < 8 << 10);
}

/* Of the group that may create pools, with no limit but the quota. */
static void become_member(uid_t uid)
{
	struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &none));
	become(uid, (gid_t)shell_number("getent group kvpool | cut -d: -f3"));
}

static void alice(int line)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);
	struct kvp_reserve *reserve;
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;

	await(line);
	become_member(ALICE);
	ctx = open_ctx();
	/* She may look at her own, and set nothing. */
	RETURNS(0, kvp_reserve_get(ctx, &reserve, &error));
	EQUAL(reserve->user_count, 1);
	EQUAL(reserve->users[0].uid, ALICE);
	EQUAL(reserve->users[0].quota, 6 * BLOCK);
	kvp_reserve_free(reserve);
	change.mask = KVP_RESERVE_SET_QUOTA;
	change.quota = 1;
	RETURNS(-EPERM, kvp_reserve_set(ctx, &change, &error));
	SAYS("needs CAP_SYS_ADMIN");

	refused(ctx, -EDQUOT, 7 * BLOCK);
	SAYS("reserve only: the user's quota leaves 6 of 7 blocks");
	pool = create(ctx, 4 * BLOCK);
	refused(ctx, -EDQUOT, 3 * BLOCK);
	SAYS("leaves 2 of 3 blocks");
	tell(line);
	await(line);
	end(ctx, pool);
	end(ctx, create(ctx, 6 * BLOCK));
	/* Her pool goes with her. */
	create(ctx, 5 * BLOCK);
	tell(line);
	await(line);
}

/* Another process of hers, which is ready when the first is killed. */
static void alice_again(int line)
{
	struct kvp_ctx *ctx;

	become_member(ALICE);
	ctx = open_ctx();
	tell(line);
	await(line);
	/* The dead one's share too, though its blocks are still on their way back. */
	end(ctx, create(ctx, 6 * BLOCK));
}

static void bob(int line)
{
	struct kvp_ctx *ctx;

	await(line);
	become_member(BOB);
	ctx = open_ctx();
	/* No quota of his own, and the default is 0. */
	refused(ctx, -EDQUOT, BLOCK);
	SAYS("leaves 0 of 1 blocks");
	tell(line);
	await(line);
	end(ctx, create(ctx, BLOCK));
}

static void quotas(void)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);
	struct kvp_ctx *ctx = open_ctx();
	int line, other, next;
	pid_t pid, second, third;

	set_policy(ctx, KVP_RESERVE_ONLY);
	fill_reserve(ctx, 16 * BLOCK);
	set_quota(ctx, ALICE, 6 * BLOCK);
	pid = partner(alice, &line);
	second = partner(bob, &other);
	tell(line);
	tell(other);
	await(line);
	EQUAL(used(ctx, ALICE), 4 * BLOCK);
	await(other);
	EQUAL(used(ctx, BOB), 0);
	change.mask = KVP_RESERVE_SET_QUOTA;
	change.quota = BLOCK;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
	EQUAL(shell_number("cat /sys/module/kvpool/parameters/reserve_quota"), BLOCK);
	tell(other);
	EQUAL(wait_child(second), 0);
	tell(line);
	await(line);
	EQUAL(used(ctx, ALICE), 5 * BLOCK);
	third = partner(alice_again, &next);
	await(next);
	kill_now(pid);
	tell(next);
	EQUAL(wait_child(third), 0);
	UNTIL(!used(ctx, ALICE));
	UNTIL(ready() == 16 * BLOCK && !clearing());
	set_quota(ctx, ALICE, UINT64_MAX);
}

static void charged(void *arg)
{
	struct kvp_ctx *ctx;
	struct kvp_pool *pool;
	long before;

	(void)arg;
	EQUAL(shell("echo %d >" CGROUP "/cgroup.procs", getpid()), 0);
	ctx = open_ctx();
	before = shell_number("cat " CGROUP "/memory.current");
	pool = create(ctx, 64 * BLOCK);
	/* More than the limit of the cgroup, and not a byte of it is charged. */
	CHECK(labs(shell_number("cat " CGROUP "/memory.current") - before) < (long)(4 * MIB));
	end(ctx, pool);
}

static void not_charged(void)
{
	struct kvp_ctx *ctx = open_ctx();

	set_policy(ctx, KVP_RESERVE_ONLY);
	fill_reserve(ctx, 64 * BLOCK);
	CHECK(!mkdir(CGROUP, 0755));
	EQUAL(shell("echo 64M >" CGROUP "/memory.max"), 0);
	EQUAL(wait_child(child(charged, NULL)), 0);
	UNTIL(!rmdir(CGROUP));
}

/* A block that a device pins is not the reserve's before the pin is gone. */
static void pinned_block_stays_out(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;
	struct ibv_mr *mr;
	uint32_t id;
	uint64_t generation;
	char *addr;

	set_policy(ctx, KVP_RESERVE_ONLY);
	fill_reserve(ctx, 8 * BLOCK);
	/* So that nothing new comes into the reserve. */
	EQUAL(shell("echo 1000000000000000 >" MIN_AVAILABLE), 0);
	pool = create(ctx, 8 * BLOCK);
	EQUAL(ready() + clearing(), 0);
	addr = map_pool(pool);
	mr = pin(addr + 2 * BLOCK, BLOCK);
	CHECK(mr);
	id = kvp_pool_id(pool);
	generation = kvp_pool_generation(pool);
	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, id, generation, 1, &error));
	EQUAL(stats(ctx).dying_bytes, BLOCK);
	EQUAL(used(ctx, 0), 8 * BLOCK);
	UNTIL(ready() == 7 * BLOCK);
	EQUAL(clearing(), 0);
	unpin(mr);
	UNTIL(!stats(ctx).bytes);
	EQUAL(used(ctx, 0), 0);
	UNTIL(ready() == 8 * BLOCK);
}

static void refusals(void)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);
	struct kvp_ctx *ctx = open_ctx();

	change.mask = KVP_RESERVE_SET_TARGET;
	change.node = 77;
	RETURNS(-ENODEV, kvp_reserve_set(ctx, &change, &error));
	SAYS("there is no node 77 with memory");
	change.node = 0;
	change.target = UINT64_MAX;
	RETURNS(-EINVAL, kvp_reserve_set(ctx, &change, &error));
	change.mask = KVP_RESERVE_SET_POLICY;
	change.policy = 2;
	RETURNS(-ERANGE, kvp_reserve_set(ctx, &change, &error));
	change.mask = KVP_RESERVE_SET_UID;
	change.uid = (uid_t)-1;
	RETURNS(-EINVAL, kvp_reserve_set(ctx, &change, &error));

	/* More than there is: as much of it as can be. */
	set_target(ctx, 64 * (uint64_t)proc_kib("/proc/meminfo", "MemTotal:") * 1024);
	UNTIL(ready() > 256 * BLOCK);
	set_target(ctx, 0);
	EQUAL(ready(), 0);
}

/*
 * With a policy that takes turns, the reserve of each of its nodes is as good as any
 * when there shall be nothing else.
 */
static void interleaved(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(12 * BLOCK);
	unsigned long nodes = 3;
	struct kvp_pool *pool;

	if (access("/sys/devices/system/node/node1", F_OK))
		case_skip("one NUMA node only: give the guest --numa 2");
	set_target_of(ctx, 0, 8 * BLOCK);
	set_target_of(ctx, 1, 8 * BLOCK);
	set_policy(ctx, KVP_RESERVE_ONLY);
	set_quota(ctx, 0, 64 * BLOCK);
	UNTIL(ready() == 8 * BLOCK && (uint64_t)shell_number("cat " SYSFS "../node1/ready") == 8 * BLOCK);
	/* So that nothing new comes into the reserve. */
	EQUAL(shell("echo 1000000000000000 >" MIN_AVAILABLE), 0);
	options.has_node = 0;
	CHECK(!syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &nodes, 64));
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	EQUAL(used(ctx, 0), 12 * BLOCK);
	end(ctx, pool);
	UNTIL(ready() == 8 * BLOCK && !clearing());
	/* One node's is not enough. */
	nodes = 1;
	CHECK(!syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 64));
	RETURNS(-ENOMEM, kvp_pool_create(ctx, &options, &pool, &error));
	SAYS("reserve only: it has 8 of 12 blocks");
	set_quota(ctx, 0, UINT64_MAX);
}

/* By parameters of the module; and a module that goes takes it along. */
static void set_at_load(void)
{
	long before = free_memory();
	struct kvp_reserve *reserve;
	struct kvp_ctx *ctx;

	EQUAL(shell("rmmod kvpool && modprobe kvpool reserve=%llu reserve_only=1 reserve_quota=%llu",
		    (unsigned long long)(64 * BLOCK), (unsigned long long)(4 * BLOCK)), 0);
	ctx = open_ctx();
	RETURNS(0, kvp_reserve_get(ctx, &reserve, &error));
	EQUAL(reserve->policy, KVP_RESERVE_ONLY);
	EQUAL(reserve->quota, 4 * BLOCK);
	EQUAL(reserve->nodes[0].node, 0);
	EQUAL(reserve->nodes[0].target, 64 * BLOCK);
	EQUAL(reserve->user_count, 0);
	kvp_reserve_free(reserve);
	UNTIL(ready() == 64 * BLOCK);
	/* So that nothing new comes into the reserve. */
	EQUAL(shell("echo 1000000000000000 >" MIN_AVAILABLE), 0);
	end(ctx, create(ctx, 64 * BLOCK));
	refused(ctx, -ENOMEM, 65 * BLOCK);
	kvp_close(ctx);
	EQUAL(shell("rmmod kvpool && modprobe kvpool && chgrp kvpool /dev/kvpool/control"), 0);
	CHECK(before - free_memory() < 8 << 10);
}

static void reset(void)
{
	shell("for n in /sys/class/kvpool/control/reserve/node*; do "
	      "kvpoolctl reserve --node ${n##*node} --size 0 --policy first --quota 0 >/dev/null; done; "
	      "kvpoolctl reserve --uid %d --quota default >/dev/null", ALICE);
}

#define RUN_RESET(name) do { RUN(name); reset(); } while (0)

int main(void)
{
	long min_available = shell_number("cat " MIN_AVAILABLE);

	RUN_RESET(first_and_only);
	RUN_RESET(nothing_goes_along);
	shell("echo %ld >" MIN_AVAILABLE, min_available);
	RUN_RESET(replaced_later);
	RUN_RESET(shrinks);
	RUN_RESET(quotas);
	RUN_RESET(not_charged);
	shell("[ ! -d " CGROUP " ] || rmdir " CGROUP);
	RUN_RESET(pinned_block_stays_out);
	shell("echo %ld >" MIN_AVAILABLE, min_available);
	RUN_RESET(refusals);
	RUN_RESET(interleaved);
	shell("echo %ld >" MIN_AVAILABLE, min_available);
	RUN_RESET(set_at_load);
	return cases_end();
}

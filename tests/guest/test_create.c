// SPDX-License-Identifier: GPL-2.0
/* What can be created, what can't and why, and that nothing is left of what can't. */
#include "guest.h"

#include <linux/mempolicy.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

static struct kvp_pool_options options_of(uint64_t length)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);

	options.domain = "kv";
	options.length = length;
	return options;
}

static int create(struct kvp_ctx *ctx, const struct kvp_pool_options *options,
		  struct kvp_pool **pool)
{
	last_error = (struct kvp_error){ 0 };
	return kvp_pool_create(ctx, options, pool, &last_error);
}

/* It fails so, and nothing is held afterwards. */
#define REFUSED(want, ctx, options) \
	do { uint64_t held_ = stats(ctx).bytes; uint32_t n_ = stats(ctx).pools; \
	     struct kvp_pool *pool_; struct kvp_error why_; \
	     int got_ = create(ctx, options, &pool_); \
	     if (got_ != (want)) { char text_[600]; kvp_error_format(&last_error, text_, sizeof(text_)); \
		FAIL("create returned %d, not %d: %s", got_, want, got_ ? text_ : ""); } \
	     why_ = last_error; EQUAL(stats(ctx).bytes, held_); EQUAL(stats(ctx).pools, n_); \
	     last_error = why_; } while (0)

static void end(struct kvp_ctx *ctx, struct kvp_pool *pool)
{
	uint32_t id = kvp_pool_id(pool);
	uint64_t generation = kvp_pool_generation(pool);

	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, id, generation, 0, &error));
}

static void set_parameter(const char *name, const char *value)
{
	EQUAL(shell("echo %s >/sys/module/kvpool/parameters/%s", value, name), 0);
}

static uint64_t meminfo(const char *key)
{
	return (uint64_t)proc_kib("/proc/meminfo", key) << 10;
}

static void lengths(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(0);
	struct kvp_pool *pool;
	uint64_t failed = stats(ctx).failed;

	REFUSED(-EINVAL, ctx, &options);
	options.length = (uint64_t)1 << 63;
	REFUSED(-EINVAL, ctx, &options);
	SAYS("9223372036854775808 bytes are more than any machine has");
	options.length = UINT64_MAX;
	REFUSED(-EINVAL, ctx, &options);
	/* The largest that has the right form: 8 PiB. */
	options.length = (uint64_t)UINT32_MAX << 21;
	REFUSED(-EDQUOT, ctx, &options);
	SAYS("max_bytes");
	EQUAL(stats(ctx).failed, failed + 1);

	options.length = 1;
	EQUAL(create(ctx, &options, &pool), 0);
	EQUAL(query(pool).length, 1);
	EQUAL(query(pool).mapped_length, BLOCK);
	EQUAL(query(pool).blocks, 1);
	EQUAL(stats(ctx).bytes, BLOCK);
	/* Zero past the logical end too. */
	for (size_t i = 0; i < BLOCK; i++)
		CHECK(!((const char *)map_pool(pool))[i]);
	end(ctx, pool);
	/* mooncake 3845: sizes whose logical end lies inside the last page. */
	options.length = 998579896;
	EQUAL(create(ctx, &options, &pool), 0);
	EQUAL(query(pool).length, 998579896);
	EQUAL(query(pool).mapped_length, (998579896 + BLOCK - 1) / BLOCK * BLOCK);
	end(ctx, pool);
}

static void more_than_there_is(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(meminfo("MemTotal:"));

	REFUSED(-EDQUOT, ctx, &options);
	SAYS("max_bytes");
	set_parameter("max_bytes", "1000000000000000");
	REFUSED(-ENOMEM, ctx, &options);
	SAYS("min_available");
	options.length = meminfo("MemAvailable:") - BLOCK;
	REFUSED(-ENOMEM, ctx, &options);
	SAYS("bytes are available to pools");
}

static void parameters(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(2 * BLOCK);
	struct kvp_pool *one, *two;

	set_parameter("max_pools", "2");
	EQUAL(stats(ctx).max_pools, 2);
	EQUAL(create(ctx, &options, &one), 0);
	EQUAL(create(ctx, &options, &two), 0);
	REFUSED(-EDQUOT, ctx, &options);
	SAYS("max_pools: 2 of 2");
	end(ctx, two);
	EQUAL(create(ctx, &options, &two), 0);
	end(ctx, two);

	set_parameter("max_bytes", "8388608");
	options.length = 2 * BLOCK + 1;
	REFUSED(-EDQUOT, ctx, &options);
	SAYS("max_bytes 8 MiB: held 4, pool needs 6");
	options.length = 2 * BLOCK;
	EQUAL(create(ctx, &options, &two), 0);
	end(ctx, two);
	set_parameter("min_available", "1000000000000000");
	options.length = 1;
	REFUSED(-ENOMEM, ctx, &options);
	SAYS("min_available");
}

static void alice_is_limited(void *arg)
{
	struct kvp_pool_options options = options_of(5 * BLOCK);
	struct rlimit limit = { 8 * MIB, 8 * MIB };
	struct kvp_pool *one, *two;
	struct kvp_ctx *ctx;

	(void)arg;
	become(1000, (gid_t)shell_number("getent group kvpool | cut -d: -f3"));
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	ctx = open_ctx();
	REFUSED(-EDQUOT, ctx, &options);
	SAYS("RLIMIT_MEMLOCK 8192 KiB: in use 0, pool needs 10240");
	options.length = 3 * BLOCK;
	EQUAL(create(ctx, &options, &one), 0);
	REFUSED(-EDQUOT, ctx, &options);
	SAYS("in use 6144, pool needs 6144");
	end(ctx, one);
	options.length = 4 * BLOCK;
	EQUAL(create(ctx, &options, &two), 0);
	end(ctx, two);
}

static void memlock(void)
{
	struct kvp_ctx *ctx;

	EQUAL(wait_child(child(alice_is_limited, NULL)), 0);
	/* And what was charged to her is given back. */
	EQUAL(wait_child(child(alice_is_limited, NULL)), 0);
	ctx = open_ctx();
	UNTIL(!stats(ctx).bytes);
}

static uint64_t node_bytes(int node, const char *key)
{
	return (uint64_t)shell_number("sed -n 's/^Node %d %s: *//p' "
				      "/sys/devices/system/node/node%d/meminfo", node, key, node) << 10;
}

/* With what processors keep of freed pages: up to an eighth of all memory since 6.7. */
static uint64_t node_free(int node)
{
	return node_bytes(node, "MemFree") +
	       ((uint64_t)shell_number("awk '/^Node/ { node = $2 + 0 } node == %d && $1 == \"count:\" "
				       "{ pages += $2 } END { print pages + 0 }' /proc/zoneinfo", node) << 12);
}

static void need_two_nodes(void)
{
	if (access("/sys/devices/system/node/node1", F_OK))
		case_skip("one NUMA node only: give the guest --numa 2");
}

static void nodes(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(BLOCK);

	options.placement = KVP_PLACEMENT_STRICT;
	REFUSED(-EINVAL, ctx, &options);
	SAYS("strict needs a node");
	options.has_node = 1;
	options.node = 7;
	REFUSED(-ENODEV, ctx, &options);
	SAYS("there is no node 7 with memory");
	options.placement = KVP_PLACEMENT_PREFERRED;
	REFUSED(-ENODEV, ctx, &options);
	options.node = 1000000;
	REFUSED(-ENODEV, ctx, &options);
	options.node = KVP_NONE;
	REFUSED(-ENODEV, ctx, &options);
	options.placement = 2;
	options.node = 0;
	REFUSED(-ERANGE, ctx, &options);
}

/* How many 4 KiB pages of the mapping are on a node, as the kernel tells it. */
static long pages_on(const void *addr, int node)
{
	return shell_number("awk '$1 == \"%lx\" { for (i = 3; i <= NF; i++) if (sub(/^N%d=/, \"\", $i)) "
			    "n = $i } END { print n + 0 }' /proc/%d/numa_maps", (unsigned long)addr,
			    node, getpid());
}

static void touch(const char *addr, size_t length)
{
	for (size_t i = 0; i < length; i += 4096)
		(void)*(const volatile char *)(addr + i);
}

static void placed(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(64 * BLOCK);

	need_two_nodes();
	for (int strict = 0; strict < 2; strict++) {
		for (int node = 0; node < 2; node++) {
			struct kvp_pool *pool;

			options.has_node = 1;
			options.node = (uint32_t)node;
			options.placement = strict ? KVP_PLACEMENT_STRICT : KVP_PLACEMENT_PREFERRED;
			EQUAL(create(ctx, &options, &pool), 0);
			touch(map_pool(pool), 64 * BLOCK);
			EQUAL(pages_on(map_pool(pool), node), 64 * BLOCK / 4096);
			EQUAL(pages_on(map_pool(pool), !node), 0);
			EQUAL(query(pool).node, node);
			end(ctx, pool);
		}
	}
}

static void strict_node_is_full(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options;
	struct kvp_pool *pool;

	need_two_nodes();
	options = options_of(node_bytes(1, "MemTotal") / BLOCK * BLOCK);
	options.has_node = 1;
	options.node = 1;
	options.placement = KVP_PLACEMENT_STRICT;
	REFUSED(-ENOMEM, ctx, &options);
	SAYS("on node 1 at block");
	/* What is short there is there elsewhere. */
	options.placement = KVP_PLACEMENT_PREFERRED;
	EQUAL(create(ctx, &options, &pool), 0);
	touch(map_pool(pool), options.length);
	CHECK(pages_on(map_pool(pool), 0) > 0);
	CHECK(pages_on(map_pool(pool), 1) > pages_on(map_pool(pool), 0));
	end(ctx, pool);
}

#define CGROUP "/sys/fs/cgroup/kvpool-test"

static long cgroup_value(const char *file)
{
	return shell_number("cat " CGROUP "/%s", file);
}

static long cgroup_event(const char *event)
{
	return shell_number("awk '$1 == \"%s\" { print $2 }' " CGROUP "/memory.events", event);
}

static void in_cgroup(void *arg)
{
	struct kvp_pool_options options = options_of(512 * MIB);
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	long before;

	(void)arg;
	EQUAL(shell("echo %d >" CGROUP "/cgroup.procs", getpid()), 0);
	ctx = open_ctx();
	REFUSED(-ENOMEM, ctx, &options);
	SAYS("memory cgroup limit reached at block");
	CHECK(cgroup_value("memory.current") < (long)(32 * MIB));

	options.length = 128 * MIB;
	before = cgroup_value("memory.current");
	EQUAL(create(ctx, &options, &pool), 0);
	CHECK(labs(cgroup_value("memory.current") - before - (long)(128 * MIB)) < (long)(2 * MIB));
	/* The pages were there from the beginning: a touch charges page tables at most. */
	touch(map_pool(pool), 128 * MIB);
	CHECK(labs(cgroup_value("memory.current") - before - (long)(128 * MIB)) < (long)(2 * MIB));
	end(ctx, pool);
	CHECK(labs(cgroup_value("memory.current") - before) < (long)(2 * MIB));
}

/* runtime-spec 1116: a limit shows at creation, and nobody is killed for it. */
static void cgroup_limit(void)
{
	CHECK(!mkdir(CGROUP, 0755));
	EQUAL(shell("echo 256M >" CGROUP "/memory.max"), 0);
	EQUAL(wait_child(child(in_cgroup, NULL)), 0);
	CHECK(cgroup_event("max") > 0);
	EQUAL(cgroup_event("oom"), 0);
	EQUAL(cgroup_event("oom_kill"), 0);
	UNTIL(!rmdir(CGROUP));
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/*
 * Holds nearly all memory of a node in pages that compaction leaves alone, and
 * frees a part of each 2 MiB: there is enough, and no block of it.
 */
static void fragmented(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(BLOCK);
	int fd = memfd_create("fragments", MFD_CLOEXEC);
	struct kvp_pool *pool, *filler = NULL;
	unsigned long node1 = 2;
	uint64_t length, left;
	double start;
	char *held;

	need_two_nodes();
	if (access("/proc/sys/vm/compact_unevictable_allowed", W_OK))
		case_skip("the kernel has no compact_unevictable_allowed");
	EQUAL(shell("echo 0 >/proc/sys/vm/compact_unevictable_allowed; "
		    "echo 3 >/proc/sys/vm/drop_caches"), 0);
	options.has_node = 1;
	options.node = 1;
	options.placement = KVP_PLACEMENT_STRICT;
	/*
	 * Compaction looks at every small page, in an emulated guest for so long that
	 * the kernel takes it for a lockup: leave 1 GiB of them to it.
	 */
	if (node_free(1) > 1100 * MIB) {
		options.length = (node_free(1) - 1024 * MIB) / BLOCK * BLOCK;
		EQUAL(create(ctx, &options, &filler), 0);
	}
	length = (node_free(1) - 100 * MIB) / BLOCK * BLOCK;
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)length));
	held = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(held != MAP_FAILED);
	CHECK(!syscall(SYS_mbind, held, length, MPOL_BIND, &node1, 64, 0) && !mlock(held, length));
	/* What may still be there in whole blocks. */
	left = node_free(1);
	for (uint64_t offset = 0; offset < length; offset += BLOCK)
		CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				 512 << 10));
	/* All of that and half of the fragments: enough is free, but not in blocks. */
	options.length = left + length / 8;
	CHECK(options.length < node_free(1));

	start = now();
	REFUSED(-ENOMEM, ctx, &options);
	SAYS("no free 2 MiB block on node 1 at block");
	CHECK(now() - start < 60);
	CHECK(!munmap(held, length) && !close(fd));
	EQUAL(create(ctx, &options, &pool), 0);
	end(ctx, pool);
	if (filler)
		end(ctx, filler);
}

static uint64_t long_length;

static void long_creation(int line)
{
	struct kvp_pool_options options = options_of(long_length);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;

	tell(line);
	create(ctx, &options, &pool);
	await(line);
}

static void killed_while_creating(void)
{
	long before = free_memory();
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_stats old = stats(ctx);
	long free_kib;
	double start;
	pid_t pid;
	int line;

	long_length = old.available / 10 * 8;
	for (int round = 0; round < 3; round++) {
		pid = partner(long_creation, &line);
		await(line);
		free_kib = proc_kib("/proc/meminfo", "MemFree:");
		/* Under way: part of the memory is taken. */
		while (free_kib - proc_kib("/proc/meminfo", "MemFree:") < 50 << 10)
			CHECK(stats(ctx).created == old.created);
		start = now();
		kill_now(pid);
		CHECK(now() - start < 10);
		close(line);
		EQUAL(stats(ctx).created, old.created);
		EQUAL(stats(ctx).failed, old.failed + (uint64_t)round + 1);
		EQUAL(stats(ctx).bytes, 0);
		UNTIL(stats(ctx).sessions == old.sessions);
	}
	if (before - free_memory() > 8192)
		FAIL("memory is missing");
}

static void names(void)
{
	static const char *const bad[] = {
		"", ".", "..", "a.b", "a/b", "/", "a b", "a\tb", "a\nb", "caf\303\251", "a\177", "\1",
		"control", "a,b", "a:b", "a*b", "a\\b", "a'b", "a\"b", "$a", "a@b", "a+b", "a=b",
	};
	char longest[KVP_NAME_SIZE + 1], printable[KVP_NAME_SIZE];
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(BLOCK);
	struct kvp_pool *pool, *other;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		options.name = bad[i];
		REFUSED(-EINVAL, ctx, &options);
		SAYS("name");
		if (!strcmp(bad[i], "control"))
			continue;
		options.name = NULL;
		options.domain = bad[i];
		REFUSED(-EINVAL, ctx, &options);
		options.domain = "kv";
		options.role = bad[i];
		if (bad[i][0])
			REFUSED(-EINVAL, ctx, &options);
		options.role = NULL;
	}
	memset(longest, 'x', sizeof(longest));
	longest[KVP_NAME_SIZE] = 0;
	options.name = longest;
	REFUSED(-EINVAL, ctx, &options);
	longest[KVP_NAME_SIZE - 1] = 0;
	for (int i = 0; i < KVP_NAME_SIZE - 1; i++)
		printable[i] = (char)(i % 2 ? ' ' + i : '~' - i);
	printable[KVP_NAME_SIZE - 1] = 0;
	options.domain = longest;
	options.role = longest;
	options.label = printable;
	EQUAL(create(ctx, &options, &pool), 0);
	CHECK(!strcmp(query(pool).name, longest) && !strcmp(query(pool).domain, longest));
	CHECK(!strcmp(query(pool).role, longest) && !strcmp(query(pool).label, printable));
	EQUAL(shell("test -c /dev/kvpool/%s", longest), 0);
	REFUSED(-EEXIST, ctx, &options);
	SAYS("taken by pool");
	/* The names of domains and roles are not names of pools. */
	options.name = "b";
	EQUAL(create(ctx, &options, &other), 0);
	end(ctx, other);
	end(ctx, pool);
	options.name = longest;
	EQUAL(create(ctx, &options, &pool), 0);
	end(ctx, pool);

	options.name = NULL;
	options.label = "a\nb";
	REFUSED(-EINVAL, ctx, &options);
	options.label = "caf\303\251";
	REFUSED(-EINVAL, ctx, &options);
	options.label = NULL;
	EQUAL(create(ctx, &options, &pool), 0);
	EQUAL(strncmp(query(pool).name, "pool-", 5), 0);
	EQUAL(strtoull(query(pool).name + 5, NULL, 10), kvp_pool_generation(pool));
	end(ctx, pool);
}

static void tags(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool_options options = options_of(BLOCK);
	struct kvp_pool *pool;

	options.has_mode = 1;
	for (int bit = 0; bit < 32; bit++) {
		options.mode = (mode_t)1 << bit;
		if (options.mode & 0666)
			continue;
		/* Beyond the range of the policy it is ERANGE, within it EINVAL. */
		CHECK(create(ctx, &options, &pool) < 0);
		CHECK(last_error.err == -EINVAL || last_error.err == -ERANGE);
	}
	EQUAL(stats(ctx).bytes, 0);
	options.mode = 0;
	EQUAL(create(ctx, &options, &pool), 0);
	EQUAL(query(pool).mode, 0);
	end(ctx, pool);
	options.mode = 0640;
	options.has_uid = options.has_gid = 1;
	options.uid = 1001;
	options.gid = 1000;
	options.has_rank = 1;
	options.rank = 3;
	EQUAL(create(ctx, &options, &pool), 0);
	EQUAL(query(pool).uid, 1001);
	EQUAL(query(pool).gid, 1000);
	EQUAL(query(pool).mode, 0640);
	EQUAL(query(pool).rank, 3);
	EQUAL(query(pool).owner_uid, 0);
	EQUAL(query(pool).owner_pid, getpid());
	end(ctx, pool);
	options.uid = (uid_t)-1;
	REFUSED(-EINVAL, ctx, &options);
	SAYS("uid or gid has no meaning");
	options.uid = 0;
	options.gid = (gid_t)-1;
	REFUSED(-EINVAL, ctx, &options);
}

int main(void)
{
	char parameter[3][32];
	static const char *const names_of[] = { "max_bytes", "max_pools", "min_available" };
	static void (*const cases[])(void) = { more_than_there_is, parameters };
	static const char *const case_names[] = { "more_than_there_is", "parameters" };

	RUN(lengths);
	RUN(names);
	RUN(tags);
	RUN(nodes);
	RUN(placed);
	/* These set parameters, which must be as they were whatever becomes of the case. */
	for (int i = 0; i < 3; i++)
		snprintf(parameter[i], sizeof(parameter[i]), "%ld",
			 shell_number("cat /sys/module/kvpool/parameters/%s", names_of[i]));
	for (int n = 0; n < 2; n++) {
		run_case(case_names[n], cases[n]);
		for (int i = 0; i < 3; i++)
			set_parameter(names_of[i], parameter[i]);
	}
	RUN(memlock);
	RUN(cgroup_limit);
	shell("[ ! -d " CGROUP " ] || rmdir " CGROUP);
	RUN(strict_node_is_full);
	RUN(killed_while_creating);
	RUN(fragmented);
	shell("echo 1 >/proc/sys/vm/compact_unevictable_allowed");
	return cases_end();
}

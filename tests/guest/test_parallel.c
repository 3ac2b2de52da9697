// SPDX-License-Identifier: GPL-2.0
/* Helpers of a creation: that they help, and that nothing else differs with them. */
#include "guest.h"

#include <linux/mempolicy.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define CGROUP "/sys/fs/cgroup/kvpool-parallel"
#define CPUSET "/sys/fs/cgroup/kvpool-cpuset"
#define TRACE "/sys/kernel/tracing"

static struct kvp_pool_options options_of(uint64_t length)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);

	options.domain = "kv";
	options.length = length;
	return options;
}

static struct kvp_pool *create(struct kvp_ctx *ctx, const struct kvp_pool_options *options)
{
	struct kvp_pool *pool = NULL;

	RETURNS(0, kvp_pool_create(ctx, options, &pool, &error));
	return pool;
}

static void end(struct kvp_ctx *ctx, struct kvp_pool *pool)
{
	uint32_t id = kvp_pool_id(pool);
	uint64_t generation = kvp_pool_generation(pool);

	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, id, generation, 0, &error));
}

static void set_workers(const char *value)
{
	EQUAL(shell("echo %s >/sys/module/kvpool/parameters/create_workers", value), 0);
}

/* Blocks that a creation takes from the page allocator, in the creator and in workers. */
static void count_blocks(struct kvp_ctx *ctx, long *own, long *helped)
{
	struct kvp_pool_options options = options_of(256 * BLOCK);
	struct kvp_pool *pool;

	EQUAL(shell("echo >" TRACE "/trace; echo 'order == 9' >" TRACE "/events/kmem/mm_page_alloc/filter; "
		    "echo 1 >" TRACE "/events/kmem/mm_page_alloc/enable"), 0);
	pool = create(ctx, &options);
	EQUAL(shell("echo 0 >" TRACE "/events/kmem/mm_page_alloc/enable"), 0);
	*own = shell_number("grep -c -- '-%d .*order=9' " TRACE "/trace", getpid());
	*helped = shell_number("grep -c 'kworker.*order=9' " TRACE "/trace");
	end(ctx, pool);
}

static void helpers_help(void)
{
	struct kvp_ctx *ctx = open_ctx();
	long own, helped;

	EQUAL(shell("[ -e " TRACE "/trace ] || mount -t tracefs tracefs " TRACE), 0);
	count_blocks(ctx, &own, &helped);
	EQUAL(own + helped, 256);
	CHECK(helped >= 1 && own >= 1);
	set_workers("0");
	count_blocks(ctx, &own, &helped);
	EQUAL(own, 256);
	EQUAL(helped, 0);
}

/* Every word of it, whoever allocated it. */
static void all_zero(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 256 * BLOCK);
	uint64_t *word = map_pool(pool);

	fill(word, 256 * BLOCK, 7);
	end(ctx, pool);
	pool = make_pool(ctx, "kv", 256 * BLOCK);
	word = map_pool(pool);
	for (size_t i = 0; i < 256 * BLOCK / sizeof(*word); i++)
		if (word[i])
			FAIL("word %zu is %#" PRIx64, i, word[i]);
	/* No block is there twice. */
	fill(word, 256 * BLOCK, 8);
	CHECK(filled(word, 256 * BLOCK, 8));
	end(ctx, pool);
}

static void need_two_nodes(void)
{
	if (access("/sys/devices/system/node/node1", F_OK))
		case_skip("one NUMA node only: give the guest --numa 2");
}

/* 4 KiB pages of a new pool on a node, as the kernel tells it. */
static void pages_on(struct kvp_ctx *ctx, uint64_t length, long pages[2])
{
	struct kvp_pool_options options = options_of(length);
	struct kvp_pool *pool = create(ctx, &options);
	const char *addr = map_pool(pool);

	for (size_t i = 0; i < length; i += 4096)
		(void)*(const volatile char *)(addr + i);
	for (int node = 0; node < 2; node++)
		pages[node] = shell_number("awk '$1 == \"%lx\" { for (i = 3; i <= NF; i++) "
					   "if (sub(/^N%d=/, \"\", $i)) n = $i } END { print n + 0 }' "
					   "/proc/%d/numa_maps", (unsigned long)addr, node, getpid());
	EQUAL(pages[0] + pages[1], length / 4096);
	end(ctx, pool);
}

static void set_policy(int mode, unsigned long nodes)
{
	CHECK(!syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL, nodes ? 64 : 0));
}

static void memory_policy(void)
{
	struct kvp_ctx *ctx = open_ctx();
	long pages[2];

	need_two_nodes();
	for (int node = 0; node < 2; node++) {
		set_policy(MPOL_BIND, 1ul << node);
		pages_on(ctx, 128 * BLOCK, pages);
		EQUAL(pages[!node], 0);
		set_policy(MPOL_PREFERRED, 1ul << node);
		pages_on(ctx, 128 * BLOCK, pages);
		EQUAL(pages[!node], 0);
	}
	set_policy(MPOL_INTERLEAVE, 3);
	pages_on(ctx, 128 * BLOCK, pages);
	EQUAL(pages[0], pages[1]);
	set_policy(MPOL_DEFAULT, 0);
}

static void confined(void *arg)
{
	const int *node = arg;
	long pages[2];

	struct kvp_pool_options options = options_of(BLOCK);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;

	EQUAL(shell("echo %d >" CPUSET "/cgroup.procs", getpid()), 0);
	pages_on(ctx, 128 * BLOCK, pages);
	EQUAL(pages[!*node], 0);
	/* Nor when it is asked for. */
	options.has_node = 1;
	options.node = (uint32_t)!*node;
	options.placement = KVP_PLACEMENT_STRICT;
	RETURNS(-ENOMEM, kvp_pool_create(ctx, &options, &pool, &error));
	SAYS("is not one of the cpuset's");
	options.placement = KVP_PLACEMENT_PREFERRED;
	end(ctx, create(ctx, &options));
}

static void cpuset(void)
{
	need_two_nodes();
	CHECK(!mkdir(CPUSET, 0755));
	EQUAL(shell("echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control"), 0);
	for (int node = 0; node < 2; node++) {
		EQUAL(shell("echo %d >" CPUSET "/cpuset.mems", node), 0);
		EQUAL(wait_child(child(confined, &node)), 0);
	}
}

static long cgroup_value(const char *file)
{
	return shell_number("cat " CGROUP "/%s", file);
}

static void charged(void *arg)
{
	struct kvp_ctx *ctx;
	struct kvp_pool *pool;
	long before;

	(void)arg;
	EQUAL(shell("echo %d >" CGROUP "/cgroup.procs", getpid()), 0);
	ctx = open_ctx();
	before = cgroup_value("memory.current");
	pool = make_pool(ctx, "kv", 256 * BLOCK);
	CHECK(labs(cgroup_value("memory.current") - before - (long)(256 * BLOCK)) < (long)(2 * MIB));
	end(ctx, pool);
	CHECK(labs(cgroup_value("memory.current") - before) < (long)(2 * MIB));
}

static void charged_to_the_creator(void)
{
	CHECK(!mkdir(CGROUP, 0755));
	EQUAL(wait_child(child(charged, NULL)), 0);
	UNTIL(!rmdir(CGROUP));
}

static uint64_t long_length;

static void long_creation(void *arg)
{
	struct kvp_pool_options options = options_of(long_length);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;

	(void)arg;
	kvp_pool_create(ctx, &options, &pool, NULL);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void awaited_creation(int line)
{
	struct kvp_pool_options options = options_of(long_length);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;

	await(line);
	kvp_pool_create(ctx, &options, &pool, NULL);
	tell(line);
	await(line);
}

/* Numbers only grow, belong to one pool, and come before its creation event. */
/* Processor time that this process has had, in seconds. */
static double cpu_time(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_SELF, &usage));
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void progress(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_monitor *monitor;
	unsigned int last = 0, told = 0;
	uint64_t generation = 0, got;
	enum kvp_event event;
	struct pollfd readable;
	double took;
	uint32_t id;
	pid_t pid;
	int line;

	/* The creator alone, in about four seconds. */
	set_workers("0");
	long_length = 256 * MIB;
	took = cpu_time();
	end(ctx, make_pool(ctx, "kv", long_length));
	took = cpu_time() - took;
	pid = partner(awaited_creation, &line);
	throttle(pid, 1000 + (unsigned int)(took * 1e6 / 4));

	RETURNS(0, kvp_monitor_open(&monitor, &error));
	readable = (struct pollfd){ .fd = kvp_monitor_fd(monitor), .events = POLLIN };
	tell(line);
	do {
		EQUAL(poll(&readable, 1, 60000), 1);
		RETURNS(0, kvp_monitor_next(monitor, &event, &id, &got, &error));
		if (generation)
			EQUAL(got, generation);
		generation = got;
		if (event == KVP_EVENT_PROGRESS) {
			CHECK(kvp_monitor_progress(monitor) >= last);
			last = kvp_monitor_progress(monitor);
			CHECK(last <= 100);
			told++;
		}
	} while (event == KVP_EVENT_PROGRESS);
	EQUAL(event, KVP_EVENT_CREATE);
	CHECK(told >= 1);
	throttle(pid, 0);
	await(line);
	kill_now(pid);
	UNTIL(!stats(ctx).bytes);
	kvp_monitor_close(monitor);
}

/* Four at once, all killed under way: no worker goes on, and all memory is back. */
static void killed_together(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_stats old = stats(ctx);
	pid_t pids[4];
	long before = free_memory();
	long free_kib = proc_kib("/proc/meminfo", "MemFree:");
	double start;

	long_length = old.available / 5 / BLOCK * BLOCK;
	for (int i = 0; i < 4; i++)
		pids[i] = child(long_creation, NULL);
	/* All of them at work: what a creation needs is charged before it gets any. */
	while (stats(ctx).bytes < 4 * long_length ||
	       free_kib - proc_kib("/proc/meminfo", "MemFree:") < 200 << 10)
		EQUAL(stats(ctx).created, old.created);
	start = now();
	/* All of them before one is waited for: the others would get done meanwhile. */
	for (int i = 0; i < 4; i++)
		CHECK(!kill(pids[i], SIGKILL));
	for (int i = 0; i < 4; i++)
		EQUAL(wait_child(pids[i]), 128 + SIGKILL);
	CHECK(now() - start < 10);
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(stats(ctx).created, old.created);
	EQUAL(stats(ctx).failed, old.failed + 4);
	UNTIL(stats(ctx).sessions == old.sessions);
	CHECK(before - free_memory() < 8 << 10);
}

int main(void)
{
	char workers[32];

	snprintf(workers, sizeof(workers), "%ld",
		 shell_number("cat /sys/module/kvpool/parameters/create_workers"));
	RUN(helpers_help);
	set_workers(workers);
	shell("echo 0 >" TRACE "/events/kmem/mm_page_alloc/filter; echo >" TRACE "/trace; "
	      "umount " TRACE);
	RUN(all_zero);
	RUN(memory_policy);
	RUN(cpuset);
	shell("[ ! -d " CPUSET " ] || { while ! rmdir " CPUSET "; do sleep 0.1; done; "
	      "echo -cpuset >/sys/fs/cgroup/cgroup.subtree_control; }");
	RUN(charged_to_the_creator);
	shell("[ ! -d " CGROUP " ] || rmdir " CGROUP);
	RUN(killed_together);
	RUN(progress);
	set_workers(workers);
	return cases_end();
}

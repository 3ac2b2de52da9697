// SPDX-License-Identifier: GPL-2.0
/* A process with much memory is killed: from SIGKILL until its parent has reaped it. */
#include "memory.h"

static uint64_t size;
static pid_t pid;
static int line;
static struct kvp_ctx *ctx;

static void hold(int other, void *addr)
{
	touch(addr, size);
	tell(other);
	for (;;)
		pause();
}

static void hold_pool(int other)
{
	hold(other, map_pool(new_pool(open_ctx(), size)));
}

static void hold_hugetlb(int other)
{
	hold(other, hugetlb_map(size, 0));
}

static void hold_anon(int other)
{
	hold(other, anon_map(size, 0));
}

static void start(void (*run)(int other))
{
	pid = partner(run, &line);
	await(line);
}

static void start_pool(void)
{
	start(hold_pool);
}

static void start_hugetlb(void)
{
	start(hold_hugetlb);
}

static void start_anon(void)
{
	start(hold_anon);
}

static void end(void)
{
	kill_now(pid);
}

static void after(void)
{
	close(line);
	await_pools(ctx);
}

static void killing(uint64_t length)
{
	const struct side sides[] = {
		{ "pool", start_pool, end, after },
		{ "hugetlb memfd", start_hugetlb, end, after },
		{ "4 KiB anonymous", start_anon, end, after },
	};

	ctx = open_ctx();
	size = length;
	hugetlb_reserve(size);
	bench_row("killed and reaped, bytes", size, sides, 3, 5);
	hugetlb_reserve(0);
}

static void kill_256_mib(void)
{
	killing(bench_size(256, 64) * MIB);
}

static void kill_1_gib(void)
{
	killing(1024 * MIB);
}

static void kill_2_gib(void)
{
	killing(2048 * MIB);
}

int main(void)
{
	RUN(kill_256_mib);
	if (bench_size(1, 0)) {
		RUN(kill_1_gib);
		RUN(kill_2_gib);
	}
	return cases_end();
}

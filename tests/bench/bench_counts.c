// SPDX-License-Identifier: GPL-2.0
/*
 * Work that is counted rather than timed, which is the same on every machine: system
 * calls and allocations. Here, unlike elsewhere, more than it was is a failure.
 */
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "bench.h"

#define MOST 1000
#define LENGTH 65536

/* ---------------------------------------------------------------- allocations */

static unsigned long allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

/* In the place of the C library's, for the library too. */
void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

/* -------------------------------------------------------------- what is counted */

static struct kvp_ctx *plain, *journaled;
static struct kvp_registrar *registrar;
static struct kvp_registration *registration;
static struct kvp_buffer buffers[MOST];
static struct kvp_list *list;
static struct ibv_pd *pd;
static struct ibv_mr *mrs[MOST];
static uint32_t count;
static char dir[] = "/run/bench-XXXXXX";

static struct kvp_ctx *open_with(const char *journal_dir)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_ctx *ctx;

	options.journal_dir = journal_dir;
	RETURNS(0, kvp_open(&options, &ctx, &error));
	return ctx;
}

static void set_up(void)
{
	char *base;

	plain = open_with("");
	journaled = open_with(dir);
	pd = rdma_pd("rxe0");
	RETURNS(0, kvp_registrar_verbs(&pd, 1, RDMA_ACCESS, &registrar, &error));
	base = map_pool(make_pool(plain, "bench", MOST * LENGTH));
	for (uint32_t i = 0; i < count; i++)
		buffers[i] = (struct kvp_buffer){ .addr = base + i * LENGTH, .length = LENGTH };
	list = list_of(buffers, count);
}

static void nothing(void)
{
}

static void name_each(void)
{
	struct kvp_span span;

	for (uint32_t i = 0; i < count; i++)
		RETURNS(0, kvp_span_export(plain, "bench", buffers[i].addr, LENGTH, &span, &error));
}

static void check_list(void)
{
	RETURNS(0, kvp_check(plain, "bench", buffers, count, NULL, &error));
}

static void register_plain(void)
{
	RETURNS(0, kvp_register(plain, "bench", list, &registrar, 1, NULL, &registration, &error));
}

static void register_journaled(void)
{
	RETURNS(0, kvp_register(journaled, "bench", list, &registrar, 1, NULL, &registration,
				&error));
}

static void loop(void)
{
	for (uint32_t i = 0; i < count; i++) {
		mrs[i] = ibv_reg_mr(pd, buffers[i].addr, LENGTH, RDMA_ACCESS);
		CHECK(mrs[i]);
	}
}

/* -------------------------------------------------------------------- counting */

/* Set the stage, and do it between two calls that nothing else makes. */
static void stage(void (*run)(void), int result)
{
	CHECK(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGSTOP);
	set_up();
	syscall(SYS_getppid);
	allocations = 0;
	run();
	put_bytes(result, &allocations, sizeof(allocations));
	syscall(SYS_getppid);
	_exit(0);
}

/* Of these there are more and fewer as the heap has it. */
static bool for_memory(uint64_t call)
{
	return call == SYS_brk || call == SYS_mmap || call == SYS_munmap || call == SYS_mremap ||
	       call == SYS_madvise || call == SYS_mprotect;
}

/* System calls from one getppid() to the next, without both. */
static long trace(pid_t pid)
{
	struct __ptrace_syscall_info info;
	unsigned int marks = 0;
	long calls = 0;
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	CHECK(!ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD));
	for (;;) {
		CHECK(!ptrace(PTRACE_SYSCALL, pid, NULL, NULL));
		CHECK(waitpid(pid, &status, 0) == pid);
		if (!WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0);
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == SYS_getppid)
			marks++;
		else if (marks == 1 && !for_memory(info.entry.nr))
			calls++;
	}
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	EQUAL(marks, 2);
	return calls;
}

struct work {
	long calls, allocations;
};

static struct work work_of(const char *side, void (*run)(void), uint32_t n)
{
	unsigned long made = 0;
	struct work work;
	int ends[2];
	pid_t pid;

	count = n;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		stage(run, ends[1]);
	/* The write of the result is one of the calls. */
	work.calls = trace(pid) - 1;
	get_bytes(ends[0], &made, sizeof(made));
	work.allocations = (long)made;
	close(ends[0]);
	close(ends[1]);
	bench_count("system calls, buffers", n, side, "calls", (double)work.calls);
	bench_count("allocations, buffers", n, side, "allocations", (double)work.allocations);
	return work;
}

/* It takes this much, and not more for more buffers. */
static void takes(const char *side, void (*run)(void), long calls, long made)
{
	for (uint32_t n = 10; n <= MOST; n *= 100) {
		const struct work work = work_of(side, run, n);

		EQUAL(work.calls, calls);
		EQUAL(work.allocations, made);
	}
}

static void counting_counts_nothing(void)
{
	takes("nothing", nothing, 0, 0);
}

static void naming_asks_nobody(void)
{
	takes("kvp_span_export of each", name_each, 0, 0);
}

static void checking_asks_once(void)
{
	takes("kvp_check", check_list, 1, 2);
}

/* At most so much beside the driver's own, for any number of buffers. */
static void transaction(const char *side, void (*run)(void), long calls, long made)
{
	for (uint32_t n = 10; n <= 100; n *= 10) {
		const struct work bare = work_of("loop of ibv_reg_mr", loop, n);
		const struct work work = work_of(side, run, n);
		const long more = work.calls - bare.calls;
		const long more_made = work.allocations - bare.allocations;

		if (more > calls || more_made > made)
			FAIL("%ld calls and %ld allocations more than the loop, not %ld and %ld",
			     more, more_made, calls, made);
	}
}

static void a_transaction_adds_few(void)
{
	transaction("transaction without journal", register_plain, 16, 12);
}

static void a_journal_adds_few(void)
{
	transaction("transaction with journal", register_journaled, 19, 12);
}

int main(void)
{
	CHECK(mkdtemp(dir));
	RUN(counting_counts_nothing);
	RUN(naming_asks_nobody);
	RUN(checking_asks_once);
	RUN(a_transaction_adds_few);
	RUN(a_journal_adds_few);
	EQUAL(shell("rm -r %s", dir), 0);
	return cases_end();
}

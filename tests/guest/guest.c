// SPDX-License-Identifier: GPL-2.0
#include "guest.h"

#include <dirent.h>
#include <grp.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

struct kvp_error last_error;

static int report = -1;
static int failed;

enum { CASE_FAILED = 1, CASE_SKIPPED = 77 };

static _Noreturn void case_end(int status, const char *text)
{
	if (report >= 0 && write(report, text, strlen(text)) < 0)
		_exit(99);
	_exit(status);
}

void case_fail(const char *file, int line, const char *format, ...)
{
	char text[900], reason[700];
	const char *base = strrchr(file, '/');
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%s:%d: %s", base ? base + 1 : file, line, reason);
	case_end(CASE_FAILED, text);
}

void case_skip(const char *format, ...)
{
	char text[700];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	case_end(CASE_SKIPPED, text);
}

/* What dead processes of a user left, by their journals; none without the module. */
static void recover_user(uid_t uid, gid_t gid)
{
	const pid_t pid = fork();
	struct kvp_ctx *ctx;

	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	if (uid)
		become(uid, gid);
	if (!kvp_open(NULL, &ctx, NULL)) {
		kvp_recover(ctx, NULL, NULL, NULL);
		kvp_close(ctx);
	}
	_exit(0);
}

/*
 * A case may end without closing anything, as a process may that dies. Its journals
 * are ended like those of any other; one that can't be shows in state.sh.
 */
static void recover_all(void)
{
	const struct group *group = getgrnam("kvpool");
	struct dirent **users;
	const int count = scandir("/run/user", &users, NULL, NULL);

	recover_user(0, 0);
	for (int i = 0; i < count; i++) {
		const uid_t uid = (uid_t)atoi(users[i]->d_name);

		if (uid && group)
			recover_user(uid, group->gr_gid);
		free(users[i]);
	}
	if (count >= 0)
		free(users);
}

void run_case(const char *name, void (*run)(void))
{
	char reason[1000] = "";
	size_t length = 0;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	fflush(stdout);
	/* Partners that outlive the case become this process's children, and are waited for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(ends, O_CLOEXEC))
		abort();
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		close(ends[0]);
		report = ends[1];
		/* A group of its own, so that what it forked can be ended with it. */
		setpgid(0, 0);
		alarm(CASE_SECONDS);
		run();
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	close(ends[1]);
	while (waitpid(pid, &status, 0) < 0)
		;
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0)
		;
	recover_all();
	while (length < sizeof(reason) - 1 &&
	       (got = read(ends[0], reason + length, sizeof(reason) - 1 - length)) > 0)
		length += (size_t)got;
	close(ends[0]);
	reason[length] = 0;

	if (WIFEXITED(status) && !WEXITSTATUS(status) && !length) {
		printf("ok - %s: %s\n", program_invocation_short_name, name);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == CASE_SKIPPED) {
		printf("skip - %s: %s: %s\n", program_invocation_short_name, name, reason);
	} else {
		failed++;
		printf("not ok - %s: %s: ", program_invocation_short_name, name);
		/* Its partners may then have told of nothing but its end. */
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			printf("not within %d s%s", CASE_SECONDS, length ? "; " : "");
		else if (WIFSIGNALED(status))
			printf("ended by signal %d%s", WTERMSIG(status), length ? "; " : "");
		else if (!length)
			printf("ended with status %d", WEXITSTATUS(status));
		printf("%s\n", reason);
	}
	fflush(stdout);
}

int cases_end(void)
{
	return failed != 0;
}

struct kvp_ctx *open_ctx(void)
{
	struct kvp_ctx *ctx = NULL;

	RETURNS(0, kvp_open(NULL, &ctx, &error));
	return ctx;
}

struct kvp_pool *make_pool(struct kvp_ctx *ctx, const char *domain, uint64_t length)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool = NULL;

	options.domain = domain;
	options.length = length;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

void *map_pool(struct kvp_pool *pool)
{
	void *addr = NULL;

	RETURNS(0, kvp_pool_map(pool, KVP_ACCESS_WRITE, &addr, &error));
	return addr;
}

struct kvp_pool_info query(struct kvp_pool *pool)
{
	struct kvp_pool_info info;

	RETURNS(0, kvp_pool_query(pool, &info, &error));
	return info;
}

struct kvp_stats stats(struct kvp_ctx *ctx)
{
	struct kvp_stats now;

	RETURNS(0, kvp_stats_get(ctx, &now, &error));
	return now;
}

int wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t child(void (*run)(void *arg), void *arg)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(arg);
	_exit(0);
}

long proc_kib(const char *file, const char *key)
{
	FILE *f = fopen(file, "re");
	char line[256];
	long value = -1;

	CHECK(f);
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			value = atol(line + strlen(key));
	fclose(f);
	return value;
}

long smaps_kib(const void *addr, const char *key)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false;
	char line[512];
	long value = -1;

	CHECK(f);
	while (value < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (uintptr_t)addr >= start && (uintptr_t)addr < end;
		else if (inside && !strncmp(line, key, strlen(key)))
			value = atol(line + strlen(key));
	}
	fclose(f);
	return value;
}

static uint64_t mix(uint64_t seed, uint64_t n)
{
	return (seed + n) * 0x9e3779b97f4a7c15u;
}

void fill(void *addr, size_t length, uint64_t seed)
{
	uint64_t *word = addr;

	for (size_t i = 0; i < length / sizeof(*word); i++)
		word[i] = mix(seed, i);
}

bool filled(const void *addr, size_t length, uint64_t seed)
{
	const uint64_t *word = addr;

	for (size_t i = 0; i < length / sizeof(*word); i++)
		if (word[i] != mix(seed, i))
			return false;
	return true;
}

void send_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &message, 0) == 1);
}

int take_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int fd;

	CHECK(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1);
	header = CMSG_FIRSTHDR(&message);
	CHECK(header && header->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static void format_command(char *command, size_t size, const char *format, va_list args)
{
	CHECK((size_t)vsnprintf(command, size, format, args) < size);
}

int shell(const char *format, ...)
{
	char command[2000];
	va_list args;
	int status;

	va_start(args, format);
	format_command(command, sizeof(command), format, args);
	va_end(args);
	fflush(stdout);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

long shell_number(const char *format, ...)
{
	char command[2000], line[100] = "";
	va_list args;
	FILE *f;

	va_start(args, format);
	format_command(command, sizeof(command), format, args);
	va_end(args);
	f = popen(command, "re");
	CHECK(f && fgets(line, sizeof(line), f));
	pclose(f);
	return atol(line);
}

pid_t partner(void (*run)(int line), int *line)
{
	int ends[2];
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(ends[0]);
		run(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*line = ends[0];
	return pid;
}

void put_bytes(int line, const void *bytes, size_t size)
{
	CHECK(send(line, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
}

void get_bytes(int line, void *bytes, size_t size)
{
	CHECK(recv(line, bytes, size, MSG_WAITALL) == (ssize_t)size);
}

void tell(int line)
{
	char byte = 0;

	PUT(line, byte);
}

void await(int line)
{
	char byte;

	GET(line, byte);
}

void kill_now(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL));
	EQUAL(wait_child(pid), 128 + SIGKILL);
}

static __thread sigjmp_buf after_bus;

static void on_bus(int number)
{
	(void)number;
	siglongjmp(after_bus, 1);
}

int read_byte(const void *addr)
{
	struct sigaction action = { .sa_handler = on_bus };

	CHECK(!sigaction(SIGBUS, &action, NULL));
	if (sigsetjmp(after_bus, 1))
		return -1;
	return *(const volatile unsigned char *)addr;
}

bool can_read(const void *addr)
{
	return read_byte(addr) >= 0;
}

struct ibv_mr *pin(void *addr, size_t length)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	CHECK(devices);
	for (int i = 0; devices[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(devices[i]), "rxe0"))
			context = ibv_open_device(devices[i]);
	ibv_free_device_list(devices);
	CHECK(context);
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	mr = ibv_reg_mr(pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE);
	if (!mr) {
		int err = errno;

		ibv_dealloc_pd(pd);
		ibv_close_device(context);
		errno = err;
	}
	return mr;
}

void unpin(struct ibv_mr *mr)
{
	struct ibv_context *context = mr->context;
	struct ibv_pd *pd = mr->pd;

	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
}

long free_memory(void)
{
	return shell_number("bash -c '. ./state.sh; state_memory'");
}

static pid_t competitor;

static void compete(int line)
{
	(void)line;
	for (;;)
		;
}

static void run_on(pid_t pid, long first, long last)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (long cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &cpus);
	CHECK(!sched_setaffinity(pid, sizeof(cpus), &cpus));
}

/*
 * By a competitor for one processor. The quota of a cgroup does not do: newer kernels
 * let a process run on that is within a system call.
 */
void throttle(pid_t pid, unsigned int microseconds)
{
	const long last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	double weight = 1024;
	int level = 0, line;

	if (!microseconds) {
		kill_now(competitor);
		run_on(pid, 0, last);
		CHECK(!setpriority(PRIO_PROCESS, (id_t)pid, 0));
		return;
	}
	/* A level of nice is a quarter more of a processor, or less. */
	while (level < 19 && weight / (weight + 1024) > microseconds / 1e6) {
		weight /= 1.25;
		level++;
	}
	competitor = partner(compete, &line);
	run_on(competitor, last, last);
	run_on(pid, last, last);
	CHECK(!setpriority(PRIO_PROCESS, (id_t)pid, level));
}

bool debug_kernel(void)
{
	struct utsname name;

	CHECK(!uname(&name));
	return strstr(name.release, "-debug");
}

void become(uid_t uid, gid_t gid)
{
	char run[64];

	/* As a login makes it: the library keeps the journal there. */
	snprintf(run, sizeof(run), "/run/user/%u", uid);
	mkdir("/run/user", 0755);
	if (!mkdir(run, 0700))
		CHECK(!chown(run, uid, gid));
	setenv("XDG_RUNTIME_DIR", run, 1);
	CHECK(!setgroups(0, NULL) && !setgid(gid) && !setuid(uid));
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files, ioctls, mappings and allocation, answered from the script; fake_socket.c has the rest. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "fake_script.h"

int __real_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long command, ...);
void *__real_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
struct dirent *__real_readdir(DIR *directory);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_ftruncate(int fd, off_t length);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *end);
int __real_fstatfs(int fd, struct statfs *fs);
int __real_kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
			  enum kvp_journal_type type);
int __real_mprotect(void *addr, size_t length, int protection);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);

struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

void fake_trouble(const char *format, ...)
{
	va_list args;

	if (fake.trouble[0])
		return;
	va_start(args, format);
	vsnprintf(fake.trouble, sizeof(fake.trouble), format, args);
	va_end(args);
	fprintf(stderr, "fake kernel: %s\n", fake.trouble);
}

static unsigned int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static atomic_bool *hung;

void fake_hang(atomic_bool *flag)
{
	hung = flag;
}

/* Patience ends when the call hangs, not when a busy machine is slow. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *end)
{
	struct timespec soon;
	int ret;

	if (!hung)
		return __real_pthread_cond_timedwait(cond, mutex, end);
	clock_gettime(CLOCK_MONOTONIC, &soon);
	soon.tv_nsec += 1000000;
	soon.tv_sec += soon.tv_nsec / 1000000000;
	soon.tv_nsec %= 1000000000;
	ret = __real_pthread_cond_timedwait(cond, mutex, &soon);
	/* A spurious wakeup: what it waits for may have come between two of these. */
	if (ret == ETIMEDOUT && !atomic_load(hung))
		ret = 0;
	return ret;
}

static bool tmpfs;

void fake_tmpfs(bool on)
{
	tmpfs = on;
}

int fake_setup(void **state)
{
	(void)state;
	fake_script_free();
	memset(fake.failing, 0, sizeof(fake.failing));
	fake.alloc_countdown = 0;
	fake.alloc_failed = false;
	fake_tmpfs(false);
	fake_hide(0, 0, 0);
	fake_interrupt(0);
	fake_hang(NULL);
	fake.trouble[0] = '\0';
	fake.sockets = 0;
	fake.mappings = 0;
	fake.descriptors = open_descriptors();
	/* A test that wants a journal says where. */
	setenv("KVPOOL_JOURNAL_DIR", "", 1);
	fake.active = true;
	return 0;
}

int fake_teardown(void **state)
{
	int bad;

	(void)state;
	fake.active = false;
	if (fake.position < fake.count)
		fake_trouble("step %zu (%s) of %zu was not used", fake.position + 1,
			     step_name(&fake.steps[fake.position]), fake.count);
	if (fake.sockets)
		fake_trouble("%d sockets were left open", fake.sockets);
	if (fake.mappings)
		fake_trouble("%d mappings were left behind", fake.mappings);
	if (open_descriptors() != fake.descriptors)
		fake_trouble("%u descriptors are open, %u were before", open_descriptors(),
			     fake.descriptors);
	bad = fake.trouble[0] ? -1 : 0;
	fake_script_free();
	return bad;
}

void fake_fail(enum fake_call call, unsigned int skip, int err)
{
	fake.failing[call].skip = skip;
	fake.failing[call].err = err;
}

void fake_fail_alloc(unsigned int n)
{
	fake.alloc_countdown = n;
	fake.alloc_failed = false;
}

bool fake_alloc_failed(void)
{
	return fake.alloc_failed;
}

bool fake_failed(enum fake_call call)
{
	return !fake.failing[call].err;
}

bool fake_fails(enum fake_call call)
{
	struct failing *failing = &fake.failing[call];

	if (!fake.active || !failing->err || failing->skip--)
		return false;
	errno = failing->err;
	failing->err = 0;
	return true;
}

struct step *step_take(enum step_kind kind, const char *what)
{
	struct step *step = fake.position < fake.count ? &fake.steps[fake.position] : NULL;

	if (!step || step->kind != kind) {
		fake_trouble("%s came, expected was %s (step %zu)", what,
			     step ? step_name(step) : "nothing more", fake.position + 1);
		errno = EIO;
		return NULL;
	}
	fake.position++;
	return step;
}

/* --------------------------------------------------------------- allocation */

static bool alloc_fails(void)
{
	if (!fake.active || !fake.alloc_countdown || --fake.alloc_countdown)
		return false;
	fake.alloc_failed = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return alloc_fails() ? NULL : __real_reallocarray(old, count, size);
}

/* -------------------------------------------------------------------- files */

static int descriptor(const char *content)
{
	size_t size = content ? strlen(content) : 0;
	int fd = memfd_create("fake", MFD_CLOEXEC);

	if (fd < 0 || write(fd, content ? content : "", size) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET))
		fake_trouble("no descriptor to be had");
	return fd;
}

static int fake_open_call(const char *path, int flags)
{
	const struct step *step = step_take(STEP_OPEN, path);

	if (!step)
		return -1;
	if (strcmp(path, step->path) || (flags & O_ACCMODE) != step->access)
		fake_trouble("open of %s with flags 0%o, expected was %s with 0%o", path,
			     (unsigned int)flags, step->path, (unsigned int)step->access);
	if (!(flags & O_CLOEXEC))
		fake_trouble("open of %s without O_CLOEXEC", path);
	if (step->err) {
		errno = step->err;
		return -1;
	}
	return descriptor(step->content);
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	int mode = 0;

	if (fake.active)
		return fake_open_call(path, flags);
	va_start(args, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(args, int);
	va_end(args);
	return __real_open(path, flags, mode);
}

/* Of journals, which are real files. */
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	int mode = 0;

	if (fake_fails(FAKE_OPENAT))
		return -1;
	va_start(args, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(args, int);
	va_end(args);
	return __real_openat(dir, path, flags, mode);
}

int __wrap_ioctl(int fd, unsigned long command, ...)
{
	const struct step *step;
	void *argument;
	va_list args;
	int err;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	if (!fake.active)
		return __real_ioctl(fd, command, argument);
	step = step_take(STEP_IOCTL, "an ioctl");
	if (!step)
		return -1;
	if (fcntl(fd, F_GETFD) < 0)
		fake_trouble("ioctl on descriptor %d, which is not open", fd);
	if (command != step->command) {
		fake_trouble("ioctl 0x%lx, expected was 0x%lx", command, step->command);
		errno = EIO;
		return -1;
	}
	err = step->kernel(argument, step->context);
	if (!err && step->tamper)
		step->tamper(argument);
	if (!err)
		return 0;
	errno = err;
	return -1;
}

int fake_descriptor(void)
{
	return descriptor(NULL);
}

void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	const struct step *step;

	/* Journals are real files. */
	if (!fake.active || tmpfs)
		return __real_mmap(addr, length, protection, flags, fd, offset);
	step = step_take(STEP_MMAP, "mmap");
	if (!step)
		return MAP_FAILED;
	if (length != step->length || protection != step->access || flags != MAP_SHARED || addr ||
	    offset || fcntl(fd, F_GETFD) < 0)
		fake_trouble("mmap(%p, %zu, %d, %d, %d, %ld)", addr, length, protection, flags, fd,
			     (long)offset);
	if (step->err) {
		errno = step->err;
		return MAP_FAILED;
	}
	fake.mappings++;
	return __real_mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);
}

int __wrap_munmap(void *addr, size_t length)
{
	if (fake_fails(FAKE_MUNMAP))
		return -1;
	if (fake.active && !tmpfs)
		fake.mappings--;
	return __real_munmap(addr, length);
}

int __wrap_mprotect(void *addr, size_t length, int protection)
{
	const struct step *step;

	if (!fake.active)
		return __real_mprotect(addr, length, protection);
	step = step_take(STEP_MPROTECT, "mprotect");
	if (!step)
		return -1;
	if (protection != step->access)
		fake_trouble("mprotect to %d, expected was %d", protection, step->access);
	if (step->err) {
		errno = step->err;
		return -1;
	}
	return __real_mprotect(addr, length, protection);
}

pid_t fake_fork(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		setenv("CMOCKA_TEST_ABORT", "1", 1);
	return pid;
}

static unsigned int kill_countdown;
static bool kill_torn;

void fake_kill(unsigned int n, bool torn)
{
	kill_countdown = n;
	kill_torn = torn;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	if (fake.active && kill_countdown && !--kill_countdown) {
		__real_pwrite(fd, data, kill_torn ? size / 2 : size, offset);
		raise(SIGKILL);
	}
	if (fake_fails(FAKE_WRITE))
		return -1;
	return __real_pwrite(fd, data, fake_fails(FAKE_SHORT_WRITE) ? size / 2 : size, offset);
}

/* Where the tests' directory really is does not matter to them. */
int __wrap_fstatfs(int fd, struct statfs *fs)
{
	const int ret = __real_fstatfs(fd, fs);

	fs->f_type = tmpfs ? TMPFS_MAGIC : EXT4_SUPER_MAGIC;
	return ret;
}

/* The same death as in pwrite(), in a record that is stored through a mapping. */
int __wrap_kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
			  enum kvp_journal_type type)
{
	const uint64_t at = log->offset;
	char *start, before[8];

	if (!fake.active || !log->map || !kill_countdown || --kill_countdown)
		return __real_kvp_log_append(log, record, type);
	start = (char *)log->map + at;
	memcpy(before, start, sizeof(before));
	__real_kvp_log_append(log, record, type);
	if (kill_torn) {
		memcpy(start, before, sizeof(before));
		memset(start + 16, 0, log->offset - at - 16);
	}
	return raise(SIGKILL);
}

static struct {
	size_t from, to;
	unsigned int times;
} hidden;
static off_t most_allocated;
static unsigned int interrupts;

void fake_hide(size_t from, size_t to, unsigned int times)
{
	hidden.from = from;
	hidden.to = to;
	hidden.times = times;
}

void fake_interrupt(off_t most)
{
	most_allocated = most;
	interrupts = 0;
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset)
{
	const ssize_t got = __real_pread(fd, data, size, offset);

	if (hidden.times && !offset && got >= (ssize_t)hidden.to) {
		hidden.times--;
		memset((char *)data + hidden.from, 0, hidden.to - hidden.from);
	}
	return got;
}

struct dirent *__wrap_readdir(DIR *directory)
{
	return fake_fails(FAKE_READDIR) ? NULL : __real_readdir(directory);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	if (most_allocated && length > most_allocated) {
		/* A caller that begins anew for ever is not waited for. */
		assert_true(++interrupts < 100);
		errno = EINTR;
		return -1;
	}
	return fake_fails(FAKE_FALLOCATE) ? -1 : __real_fallocate(fd, mode, offset, length);
}

int __wrap_ftruncate(int fd, off_t length)
{
	return fake_fails(FAKE_TRUNCATE) ? -1 : __real_ftruncate(fd, length);
}

/* The same functions, under the names that -D_FILE_OFFSET_BITS=64 gives them. */
int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));
int __wrap_openat64(int dir, const char *path, int flags, ...)
	__attribute__((alias("__wrap_openat")));
void *__wrap_mmap64(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("__wrap_mmap")));
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset)
	__attribute__((alias("__wrap_pwrite")));
ssize_t __wrap_pread64(int fd, void *data, size_t size, off_t offset)
	__attribute__((alias("__wrap_pread")));
struct dirent *__wrap_readdir64(DIR *directory) __attribute__((alias("__wrap_readdir")));
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t length)
	__attribute__((alias("__wrap_fallocate")));
int __wrap_ftruncate64(int fd, off_t length) __attribute__((alias("__wrap_ftruncate")));
int __wrap_fstatfs64(int fd, struct statfs *fs) __attribute__((alias("__wrap_fstatfs")));

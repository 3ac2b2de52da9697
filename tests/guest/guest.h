/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What guest tests share. A case is a function that runs in a process of its
 * own, so that a failed one leaves nothing open: RUN(name) forks, calls
 * name(), and prints "ok - PROGRAM: name" or "not ok - ...: REASON".
 */
#ifndef GUEST_H
#define GUEST_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kvpool.h"

/* After this many seconds a case has failed. */
#define CASE_SECONDS 120

/* Ends the case, from any of its processes that shares the report pipe. */
_Noreturn void case_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void case_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define FAIL(...)	case_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(what) \
	do { if (!(what)) FAIL("%s (errno %d)", #what, errno); } while (0)
/* Two integers are equal; both are printed. */
#define EQUAL(a, b) \
	do { long long a_ = (long long)(a), b_ = (long long)(b); \
	     if (a_ != b_) FAIL("%s is %lld, not %s = %lld", #a, a_, #b, b_); } while (0)
/* A library call returns `want`; its error is printed otherwise. The call gets &error. */
#define RETURNS(want, call) \
	do { struct kvp_error error = { 0 }; long long want_ = (want), got_ = (call); \
	     if (want_ != got_) { char text_[600]; kvp_error_format(&error, text_, sizeof(text_)); \
		FAIL("%s returned %lld, not %lld: %s", #call, got_, want_, got_ ? text_ : ""); } \
	     last_error = error; } while (0)
/* A part of the message or advice of the last RETURNS(). */
#define SAYS(part) \
	do { if (!strstr(last_error.message, part) && !strstr(last_error.advice, part)) \
		FAIL("the error does not say \"%s\": \"%s\"; \"%s\"", part, \
		     last_error.message, last_error.advice); } while (0)

/*
 * Wait for what comes true on its own time: the reaper looks at pins every second,
 * and a dead process gives things back after it was waited for.
 */
#define UNTIL(what) \
	do { for (int n_ = 0; !(what); n_++) { \
		if (n_ == 1000) FAIL("not within 10 s: %s", #what); \
		usleep(10000); } } while (0)

extern struct kvp_error last_error;

void run_case(const char *name, void (*run)(void));
#define RUN(name) run_case(#name, name)
/* Exit status of the program: 0 when no case failed. */
int cases_end(void);

#define MIB ((uint64_t)1 << 20)
#define BLOCK KVP_BLOCK_SIZE

/* Each fails the case when it can't. */
struct kvp_ctx *open_ctx(void);
struct kvp_pool *make_pool(struct kvp_ctx *ctx, const char *domain, uint64_t length);
void *map_pool(struct kvp_pool *pool);
struct kvp_pool_info query(struct kvp_pool *pool);
struct kvp_stats stats(struct kvp_ctx *ctx);
/* Wait for a child; its exit status, or 128 + the signal that ended it. */
int wait_child(pid_t pid);
/* Fork; the child runs `run(arg)` and exits with 0. */
pid_t child(void (*run)(void *arg), void *arg);
/* A value in KiB of a line such as "FilePmdMapped:" of the VMA that holds `addr`. */
long smaps_kib(const void *addr, const char *key);
/* A value in KiB of /proc/meminfo or /proc/self/status. */
long proc_kib(const char *file, const char *key);
/* Free memory, in KiB, as run-all compares it: with what the kernel's caches give back. */
long free_memory(void);
/* Bytes that depend on the address of the byte, so that a misplaced page shows. */
void fill(void *addr, size_t length, uint64_t seed);
bool filled(const void *addr, size_t length, uint64_t seed);
/* Send and take a descriptor over a unix socket. */
void send_fd(int socket, int fd);
int take_fd(int socket);
/* Run a shell command; its exit status. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Number that a shell command prints. */
long shell_number(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Fork a process to talk with: the child runs `run(line)` and exits with 0, *line
 * is the parent's end. It outlives its parent, and ends with the case at the latest.
 */
pid_t partner(void (*run)(int line), int *line);
/* Send and take a value over such a line; the case fails when the other end is gone. */
void put_bytes(int line, const void *bytes, size_t size);
void get_bytes(int line, void *bytes, size_t size);
#define PUT(line, value) put_bytes(line, &(value), sizeof(value))
#define GET(line, value) get_bytes(line, &(value), sizeof(value))
/* The other end has come to the same place. */
void tell(int line);
void await(int line);
/* End a process by SIGKILL, and wait for it. */
void kill_now(pid_t pid);
/* Read a byte; -1: SIGBUS. Any thread. */
int read_byte(const void *addr);
bool can_read(const void *addr);
/* A memory region of rxe0 over these bytes, or NULL with errno. Undo by unpin(). */
struct ibv_mr *pin(void *addr, size_t length);
void unpin(struct ibv_mr *mr);
/*
 * Let a process have about so many microseconds of a processor a second, 14,000 at
 * least, so that what it does lasts on any machine. 0: as many as it likes again. One
 * process at a time.
 */
void throttle(pid_t pid, unsigned int microseconds);
/* The kernel finds faults, and is several times slower for it. */
bool debug_kernel(void);
/* Become this user, without groups beside its own, for good. */
void become(uid_t uid, gid_t gid);

#endif /* GUEST_H */

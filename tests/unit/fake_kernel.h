/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A scripted stand-in for the kernel, generic netlink included.
 *
 * The linker puts it between the library and libc or libmnl (unit.mk lists the
 * functions). A test writes down, in order, which calls it expects and what
 * each gets; a call out of order, or with other arguments, fails the test in
 * fake_teardown(), as does a step that was not used, or a descriptor, socket
 * or mapping that was left behind. Outside fake_setup() and fake_teardown()
 * every call goes to the real thing.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "../../lib/netlink.h"

#define FAKE_FAMILY 0x21
#define FAKE_GROUP 7

int fake_setup(void **state);
int fake_teardown(void **state);
#define fake_test(function) \
	cmocka_unit_test_setup_teardown(function, fake_setup, fake_teardown)

/* ------------------------------------------------- calls that fail out of turn */

enum fake_call {
	FAKE_SOCKET, FAKE_BIND, FAKE_SETSOCKOPT, FAKE_SEND, FAKE_MUNMAP,
	FAKE_WRITE, FAKE_SHORT_WRITE, FAKE_FALLOCATE, FAKE_TRUNCATE, FAKE_OPENAT, FAKE_READDIR, FAKE_CALLS
};

/* The next `times` reads of a file at its start show zeros in place of its bytes `from` to `to`. */
void fake_hide(size_t from, size_t to, unsigned int times);
/* A signal comes within each fallocate() of more bytes than this; 0: within none. */
void fake_interrupt(off_t most);

/* The call after the next `skip` calls of that kind fails with `err`. A short write takes half. */
void fake_fail(enum fake_call call, unsigned int skip, int err);
/*
 * fork() for a test: an assertion that fails in the child aborts it. Otherwise it
 * would jump back into the child's copy of the test runner, and run the tests that
 * are left a second time.
 */
pid_t fake_fork(void);
/* SIGKILL this process in its n-th pwrite(), after all of it or (torn) half; 0: never. */
void fake_kill(unsigned int n, bool torn);
/* Journals are in a file system of memory, where they are mapped; fake_setup() says they aren't. */
void fake_tmpfs(bool on);
/*
 * Time limits of registrars pass when *flag is set, and never before; NULL, and after
 * fake_setup(): they pass with time.
 */
void fake_hang(atomic_bool *flag);
/* Whether it came to that. */
bool fake_failed(enum fake_call call);
/* The n-th allocation of the library from now on fails; 0: none. */
void fake_fail_alloc(unsigned int n);
/* Whether it came to that. */
bool fake_alloc_failed(void);

/* -------------------------------------------------------------- steps: files */

/* `err` 0: gives a descriptor that reads `content` (NULL: empty). */
void fake_open(const char *path, int access, int err, const char *content);
/* An ioctl whose answer `kernel` writes; it returns 0 or an errno. */
void fake_ioctl(unsigned long command, int (*kernel)(void *argument, void *context),
		void *context);
void fake_ioctl_open(const struct kvp_pool_info *pool, enum kvp_access access, int err);
/* The pool gets its memory, or `err` and `message`. */
void fake_ioctl_fill(const struct kvp_pool_info *pool, int err, const char *message);
void fake_ioctl_info(const struct kvp_pool_info *pool, int err);
/* The kernel's answer to a range: `count` segments of `segments`, which must live on. */
struct fake_range {
	uint64_t addr;
	uint64_t length;
	const struct kvpool_segment *segments;
	uint32_t count;
	int err;
};
void fake_ioctl_resolve(const struct fake_range *range);
/* Change the answer of the last ioctl step before the caller sees it. */
void fake_tamper(void (*tamper)(void *argument));
/* A shared mapping from offset 0; `err` 0 gives memory. */
void fake_mmap(size_t length, int protection, int err);
void fake_mprotect(int protection, int err);

/* ------------------------------------------------------------ steps: netlink */

/* Expect a request of the family (FAKE_FAMILY or GENL_ID_CTRL). */
void fake_request(uint16_t family, uint8_t command, uint16_t flags);
/* What the last request must carry. An attribute that no line names is trouble. */
void fake_want_u32(uint16_t type, uint32_t value);
void fake_want_u64(uint16_t type, uint64_t value);
void fake_want_text(uint16_t type, const char *value);
void fake_want_flag(uint16_t type);
/* The session's descriptor, whatever its number. */
void fake_want_session(void);

/* Events that come by themselves: the datagrams that follow belong to none of the requests. */
void fake_events(void);

/* The last request's answer: datagrams of messages of attributes. */
void fake_datagram(void);
void fake_message(uint16_t type, uint16_t flags, uint8_t command);
void fake_put(uint16_t type, size_t size, const void *data);
void fake_put_u16(uint16_t type, uint16_t value);
void fake_put_u32(uint16_t type, uint32_t value);
void fake_put_u64(uint16_t type, uint64_t value);
void fake_put_text(uint16_t type, const char *text);
void fake_nest(uint16_t type);
void fake_nest_end(void);
/* Acknowledgment; `err` as the kernel has it, negative. `text` may be NULL. */
void fake_ack(int err, const char *text);
/* The same, and the extack points at an attribute of the request, or misses one. */
void fake_ack_at(int err, const char *text, uint16_t type);
void fake_ack_missing(int err, const char *text, uint16_t type);
void fake_done(int err, const char *text);
/* Receiving fails instead. */
void fake_receive_error(int err);
/* Cut the last datagram short by so many bytes. */
void fake_cut(size_t bytes);
/* Header of the last message, to spoil it. Sequence and port are added to what they must be. */
struct nlmsghdr *fake_last(void);

/* ---------------------------------------------------------- whole exchanges */

/* All attributes of a pool; the way one of them is spoiled. */
enum fake_spoil { FAKE_WHOLE, FAKE_OMIT, FAKE_SHORT, FAKE_LONG, FAKE_UNTERMINATED };
void fake_put_pool(const struct kvp_pool_info *pool, uint16_t type, enum fake_spoil spoil);

/* The request for the family, and an answer of this version. */
void fake_family(uint32_t version);
/* POOL_GET by identity, to the answer. */
void fake_find(uint32_t id, uint64_t generation);
/* What kvp_open() does, up to a context. */
struct kvp_ctx *fake_ctx(bool read_only);

/* A pool with every member set, and what a pool without options looks like. */
extern const struct kvp_pool_info fake_pool_full;
extern const struct kvp_pool_info fake_pool_plain;

void fake_assert_info(const struct kvp_pool_info *got, const struct kvp_pool_info *want);
/* Error of phase, errno and texts; NULL: not looked at. */
void fake_assert_error(const struct kvp_error *error, int err, enum kvp_phase phase,
		       const char *message, const char *advice);

#endif /* FAKE_KERNEL_H */

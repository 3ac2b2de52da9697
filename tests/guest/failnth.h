/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every place of an operation at which the kernel can inject a fault (an allocation,
 * or a copy from or to user space) fails once: the first, the second, and so on until
 * the operation has no more. It then succeeds all the same, or fails as its contract
 * says and has done nothing. Takes a kernel with /proc/thread-self/fail-nth.
 */
#ifndef FAILNTH_H
#define FAILNTH_H

#include "raw.h"

#define CONTROL "/dev/kvpool/control"
#define NAME "failing"
#define NODE "/dev/kvpool/" NAME

/* The place that fails, how many the operation came past, and whether to that one. */
extern unsigned int nth, places;
extern bool injected;
/* The answer to the last inject_request() was lost: what it asked for may be done. */
extern bool answer_lost;

/* What the operations of a case use. */
extern struct kvp_ctx *observer;
extern struct raw *raw;
extern int control;
/* The pool NAME, as create() or find() left it. */
extern uint32_t id;
extern uint64_t generation;

/* Let all allocations fail that can; false: this kernel can't inject faults. */
bool failnth_prepare(void);
/* Open what is declared above. */
void failnth_begin(void);

void arm(void);
void disarm(void);
/* Run `call` with the nth place failing; its value, or negative errno where it is negative. */
#define INJECT(call) \
	({ long value_; int errno_; \
	   arm(); value_ = (long)(call); errno_ = errno; disarm(); \
	   value_ < 0 ? -errno_ : value_; })

/*
 * Call `run` with nth = 1, 2, ... until no place is left. It runs the operation by
 * INJECT(), checks what came of it, undoes it, and returns what it returned: negative
 * errno, which is to be one of `allowed`, or not. After each call there are as many
 * pools, sessions, bytes, files and mappings as before the first.
 */
void repeat(const char *name, long (*run)(void), const int *allowed);
#define REPEAT(run, ...) repeat(#run, run, (const int[]){ __VA_ARGS__, 0 })

/* Messages of a kind, with the attributes that every one of the kind has. */
struct nlmsghdr *create_message(void);
struct nlmsghdr *pool_message(uint8_t command);
/* Send raw->request; the acknowledgment is taken with nothing failing. */
long inject_request(void);
/* The same without a fault; the case fails when the request does. */
void ask(void);
/* Look for the pool NAME, and set id and generation. */
bool find(void);
void create(uint32_t lifetime);
void destroy(void);
/* Lines of a file with a text, without the shell, which takes long on such a kernel. */
long lines_with(const char *path, const char *text);
/* A descriptor of NODE. */
int open_node(void);

#endif /* FAILNTH_H */

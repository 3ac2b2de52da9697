/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that do at once what can meet badly. */
#ifndef RACE_H
#define RACE_H

#include "guest.h"

/* Of the program's run; printed, so that a failure can be tried again. */
extern uint64_t seed;

/* The next number of a thread's own sequence. */
uint32_t roll(uint64_t *state);

/* A call succeeds, or fails in one of these ways: 0 or a negative errno. */
int check_allowed(const char *file, int line, const char *call, int err, const int *allowed);
#define ALLOWED(call, ...) \
	check_allowed(__FILE__, __LINE__, #call, call, (const int[]){ __VA_ARGS__, 0 })

/* What a thread does again and again, with its own sequence of numbers. */
typedef void (*race_step)(uint64_t *state);

/* Each step in a thread of its own, for so long; three times that on a debug kernel. Every one of them must have been run. */
void race(int seconds, const race_step *steps, size_t count);
#define RACE(seconds, ...) \
	race(seconds, (const race_step[]){ __VA_ARGS__ }, \
	     sizeof((const race_step[]){ __VA_ARGS__ }) / sizeof(race_step))

/* For loops within a step: the time is up. */
bool race_over(void);

#endif /* RACE_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A scripted stand-in for libibverbs: devices with limits, registrations that
 * fail when told to, and a log of every call. It defines the ibv_* functions
 * that the library calls, and a program's definition goes before a shared
 * library's.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define FAKE_VERBS_CALLS 65536

/* A call that was made; `device` as fake_verbs_pd() numbered it. */
struct fake_verbs_call {
	bool undo;		/* ibv_dereg_mr() */
	uint32_t device;
	void *addr;
	uint64_t length;
	unsigned int access;
	int err;		/* how it failed; 0: it did not */
};

/* Forget everything. Regions that still live are freed, and counted as never having been. */
void fake_verbs_reset(void);
/* A protection domain of a device of its own, which lives until the reset. */
struct ibv_pd *fake_verbs_pd(const char *name, int max_mr, uint64_t max_mr_size);
/* ibv_query_device() fails. */
void fake_verbs_fail_query(int err);
/* `times` calls from the k-th on (0: the next) fail with the errno; `err` 0: without one. */
void fake_verbs_fail_reg(unsigned int k, unsigned int times, int err);
/* The same for ibv_dereg_mr(); `err` -1: returns -1 and sets errno to EIO. */
void fake_verbs_fail_dereg(unsigned int k, unsigned int times, int err);

/* Regions that were registered and not unregistered. */
unsigned int fake_verbs_live(void);
/* The calls so far. */
unsigned int fake_verbs_calls(void);
const struct fake_verbs_call *fake_verbs_call(unsigned int n);
void fake_verbs_forget_calls(void);
/* Something no correct caller does, such as unregistering twice; NULL: nothing. */
const char *fake_verbs_trouble(void);

#endif /* FAKE_VERBS_H */

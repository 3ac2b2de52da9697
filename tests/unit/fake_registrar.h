/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A registrar of the caller's own, such as that of an external store: scripted, with a log. */
#ifndef FAKE_REGISTRAR_H
#define FAKE_REGISTRAR_H

#include "../../lib/transaction.h"

#define FAKE_REGISTRAR_CALLS 512

struct fake_registrar_call {
	bool undo;
	uint32_t device;
	struct kvp_chunk chunk;
};

struct fake_registrar {
	/* Script: set before the call. */
	uint64_t max_length;
	uint64_t max_count;
	int limits_ret;
	unsigned int fail_register;	/* the k-th from 1 on; 0: none */
	int register_ret;
	unsigned int fail_unregister;	/* and so many after it as well: */
	unsigned int fail_unregister_more;
	int unregister_ret;
	bool nameless;
	const char *name;		/* not NULL: an external one of this name */
	void (*during_unregister)(void);	/* called in each, before anything else */
	/* What happened. */
	unsigned int limits_calls;
	unsigned int register_calls;
	unsigned int unregister_calls;
	int live;
	struct fake_registrar_call calls[FAKE_REGISTRAR_CALLS];
	unsigned int call_count;
};

/* `fake` must be zeroed. */
struct kvp_registrar *fake_registrar_new(struct fake_registrar *fake, uint32_t devices, int pins);
extern const struct kvp_registrar_ops fake_registrar_ops;

#endif /* FAKE_REGISTRAR_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An external store: what it holds outlives the processes that registered it
 * (it is in memory that they share), and processes that register, and die.
 */
#ifndef FAKE_STORE_H
#define FAKE_STORE_H

#include "fake_journal.h"

#define STORE_BUFFERS 3
#define STORE_SLOTS 16

struct fake_store {
	/* What it holds, by the number of the buffer: offset / 4 MiB. */
	int held[STORE_SLOTS];
	/* Calls of unregister_chunk: which buffers, in order. */
	unsigned int undone[64];
	unsigned int undo_calls;
	/* Script: what unregistering this buffer returns; 0: it works. */
	int undo_ret[STORE_SLOTS];
	bool wrong;		/* something was unregistered that must not be */
};

/* Before and after all tests: memory that children share. */
int fake_store_map(void **state);
int fake_store_unmap(void **state);
extern struct fake_store *fake_store;

/* A world with pool 1, a store that holds nothing and an empty directory of journals. */
int fake_store_setup(void **state);
int fake_store_teardown(void **state);
extern const char *fake_store_dir;

unsigned int fake_store_held(void);
struct kvp_registrar *fake_store_registrar(const char *name);

/* How a process ends that has registered all buffers at the store. */
enum fake_end { FAKE_CLOSE, FAKE_UNREGISTER, FAKE_EXIT };
/*
 * Run one that opens a journal, registers, unregisters (FAKE_EXIT: does not) and
 * closes (FAKE_CLOSE: does; the others don't). `created`: pool 1 is its own. It
 * is killed in the n-th write of its journal. Whether that came to pass.
 */
bool fake_store_process(enum fake_end end, bool created, unsigned int n, bool torn);
/* One that has registered and waits; ends it. */
pid_t fake_store_waiting(void);
void fake_store_end(pid_t pid);

/* kvp_recover() with the registrar "store", and events as "entry-undone:2 removed". */
struct kvp_recovery_report fake_store_recover(bool dry_run);
const char *fake_store_events(void);
/* The same without a registrar. */
struct kvp_recovery_report fake_store_recover_alone(void);

#endif /* FAKE_STORE_H */

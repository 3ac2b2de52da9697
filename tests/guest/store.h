/* SPDX-License-Identifier: GPL-2.0 */
/* The test store, store/server.c: start it, tell it to go wrong, ask what it holds. */
#ifndef STORE_H
#define STORE_H

#include "guest.h"
#include "store/protocol.h"

struct store {
	pid_t pid;		/* 0: it doesn't run */
	int line;
	char path[64];		/* of its socket: the configuration of its shared object */
};

/* Where the guest has the shared object, without and with functions for batches. */
#define STORE_OBJECT	"/usr/lib/kvpool/tests/store.so"
#define STORE_BATCH	"/usr/lib/kvpool/tests/store_batch.so"

/* Start it, at the same path if it ran before; it then holds nothing. */
void store_start(struct store *store);
/* End it in good order; kill it; or wait until it has died as it was told to. */
void store_end(struct store *store);
void store_kill(struct store *store);
void store_await(struct store *store);

/* What goes wrong from now on, at calls of fault.op. */
void store_fault(struct store *store, struct store_fault fault);
/* Nothing goes wrong any more. */
void store_works(struct store *store);
bool store_hangs(struct store *store);
void store_release(struct store *store);

/*
 * What it holds, as "target+0 draft+2": name of the pool and block of the offset,
 * in order of registering. Overwritten by the next call.
 */
const char *store_holds(struct store *store);
/* Calls since the last time, as "+target+0 -target+0!5": + register, - unregister, code if not 0. */
const char *store_calls(struct store *store);

/* Have it hold a span, as if it had been registered with this cookie. */
void store_hold(struct store *store, const struct kvp_span *span, uint64_t cookie);

/* The store keeps a copy of the bytes of a span, or brings it back; what it answers. */
int store_put(struct store *store, const char *key, const struct kvp_span *span);
int store_get(struct store *store, const char *key, const struct kvp_span *span);

/* A registrar of it, by one of the shared objects. `time_limit` is in nanoseconds, 0: none. */
struct kvp_registrar *store_registrar(const struct store *store, const char *object,
				      uint64_t time_limit);

#endif /* STORE_H */

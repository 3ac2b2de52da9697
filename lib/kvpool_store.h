/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a shared object provides to be loaded by kvp_registrar_load(): the
 * functions of an external store, put behind a few lines of C. It exports one
 * symbol, `kvp_store`; docs/store.md has a whole example.
 *
 * Of every function here, 0 is success and anything else failure: a negative
 * errno, or a code of the engine, positive ones too. Two errnos have a meaning:
 *  - -ENOENT from unregistering: the store does not have it. As good as 0 where
 *    the process could not know whether it was registered.
 *  - -ETIMEDOUT: no answer, or none that can be trusted, so that it is not known
 *    whether the store has it. From registering it leads to an unregister.
 *
 * Functions are called by one thread at a time for each registrar.
 */
#ifndef KVPOOL_STORE_H
#define KVPOOL_STORE_H

#include "kvpool.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KVP_STORE_VERSION 1

struct kvp_store {
	uint32_t version;	/* KVP_STORE_VERSION */
	uint32_t reserved;	/* 0 */
	/* Name of the registrar in journals, 1 to 63 of A-Z a-z 0-9 _ -. Never change it. */
	const char *name;
	/*
	 * Connect; `config` is what the caller of kvp_registrar_load() gave, NULL for
	 * none, and lives as long as the call. `*store` is given to all other
	 * functions. Both may be NULL: then `store` is NULL.
	 */
	int (*open)(const char *config, void **store);
	void (*close)(void *store);
	/*
	 * Register a chunk. Its span is what it is called in every process; its
	 * address is this process's. `*cookie` is a number of the store's choice that
	 * unregistering gets back; it is 0 at entry, and may stay so.
	 */
	int (*register_buffer)(void *store, const struct kvp_chunk *chunk, uint64_t *cookie);
	/*
	 * Unregister it. During a recovery the process that registered it is dead:
	 * the address is one of that process, and must not be used. The cookie is 0
	 * when the process died, or gave up waiting, before it was known: find it by
	 * its span.
	 */
	int (*unregister_buffer)(void *store, const struct kvp_chunk *chunk, uint64_t cookie);
	/*
	 * The same for many at once; each may be NULL. `results` has a member for
	 * each chunk, -ETIMEDOUT at entry. On failure it says what became of each; a
	 * 0 there is a chunk that is registered, or unregistered. On success it is
	 * not looked at. Chunks to unregister come last registered first.
	 */
	int (*register_batch)(void *store, const struct kvp_chunk *chunks, uint32_t count,
			      uint64_t *cookies, int *results);
	int (*unregister_batch)(void *store, const struct kvp_chunk *chunks, uint32_t count,
				const uint64_t *cookies, int *results);
};

/* Exported, also from what is built with -fvisibility=hidden. */
extern const struct kvp_store kvp_store __attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif

#endif /* KVPOOL_STORE_H */

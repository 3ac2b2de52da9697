// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Shared objects for kvp_registrar_load(): built once for each LOADED_*, see the
 * Makefile. What the store is told to do, its configuration says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/kvpool_store.h"

struct store {
	unsigned int held, calls;
};

static int store_open(const char *config, void **store)
{
	if (!config)
		return -EINVAL;
	if (!strcmp(config, "hang"))
		pause();
	if (!strcmp(config, "refuse"))
		return 42;
	*store = calloc(1, sizeof(struct store));
	return *store ? 0 : -ENOMEM;
}

static void store_close(void *arg)
{
	const struct store *store = arg;

	/* Where the test looks: what was left, and how many calls there were. */
	setenv("LOADED_STORE_HELD", store->held ? "some" : "none", 1);
	setenv("LOADED_STORE_CALLS", store->calls == 2 ? "two" : "many", 1);
	free(arg);
}

static int store_register(void *arg, const struct kvp_chunk *chunk, uint64_t *cookie)
{
	struct store *store = arg;

	store->calls++;
	store->held++;
	*cookie = chunk->span.offset + 1;
	return 0;
}

static int store_unregister(void *arg, const struct kvp_chunk *chunk, uint64_t cookie)
{
	struct store *store = arg;

	store->calls++;
	if (cookie != chunk->span.offset + 1)
		return 7;
	store->held--;
	return 0;
}

static int store_register_batch(void *arg, const struct kvp_chunk *chunks, uint32_t count,
				uint64_t *cookies, int *results)
{
	struct store *store = arg;
	uint32_t i;

	(void)results;
	for (i = 0; i < count; i++)
		store_register(arg, &chunks[i], &cookies[i]);
	store->calls -= count - 1;
	return 0;
}

static int store_unregister_batch(void *arg, const struct kvp_chunk *chunks, uint32_t count,
				  const uint64_t *cookies, int *results)
{
	struct store *store = arg;
	uint32_t i;

	for (i = 0; i < count; i++)
		results[i] = store_unregister(arg, &chunks[i], cookies[i]);
	store->calls -= count - 1;
	return 0;
}

#ifndef LOADED_none
const struct kvp_store kvp_store = {
#ifdef LOADED_newer
	.version = KVP_STORE_VERSION + 1,
#else
	.version = KVP_STORE_VERSION,
#endif
#ifdef LOADED_nameless
	.name = "no name",
#else
	.name = "loaded",
#endif
	.open = store_open,
	.close = store_close,
	.register_buffer = store_register,
#ifndef LOADED_half
	.unregister_buffer = store_unregister,
#endif
#ifdef LOADED_batch
	.register_batch = store_register_batch,
	.unregister_batch = store_unregister_batch,
#endif
};
#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registration state of pools, as sysfs shows it. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "transaction.h"

static int by_identity(const void *left, const void *right)
{
	const struct kvp_pool_ref *a = left, *b = right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->generation > b->generation) - (a->generation < b->generation);
}

/* A pool that may be registered, but whose state is another's to tell. */
static bool not_ours(int err)
{
	return err == -EPERM || err == -EACCES;
}

/*
 * Ownership is asked for: root may change the state of every pool, and must
 * not speak for a pool that another process owns and registers itself.
 */
static int find_owner(struct kvp_ctx *ctx, struct kvp_pool_ref *pool, struct kvp_error *error)
{
	struct kvp_pool_info info;
	int err;

	pool->owned = false;
	err = kvp_pool_find(ctx, pool->id, pool->generation, &info, error);
	if (not_ours(err))
		return 0;
	if (err)
		return err;
	memcpy(pool->name, info.name, sizeof(pool->name));
	pool->owned = info.owned && info.owner_pid == getpid();
	return 0;
}

static bool same(const struct kvp_span *a, const struct kvp_span *b)
{
	return a->id == b->id && a->generation == b->generation;
}

int kvp_states_collect(struct kvp_registration *registration, const struct kvp_span *spans,
		       uint32_t count, struct kvp_error *error)
{
	struct kvp_pool_ref *pools;
	uint32_t i, used = 0, kept = 0;
	int err;

	/* Neighbours are of one pool, mostly. */
	for (i = 0; i < count; i++)
		if (!i || !same(&spans[i], &spans[i - 1]))
			used++;
	pools = calloc(used, sizeof(*pools));
	if (!pools)
		return kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no memory for the pools of %" PRIu32 " buffers", count);
	for (i = 0, used = 0; i < count; i++) {
		if (i && same(&spans[i], &spans[i - 1]))
			continue;
		pools[used].id = spans[i].id;
		pools[used++].generation = spans[i].generation;
	}
	qsort(pools, used, sizeof(*pools), by_identity);
	for (i = 0; i < used; i++)
		if (pools[i].generation && (!kept || by_identity(&pools[i], &pools[kept - 1])))
			pools[kept++] = pools[i];
	registration->pools = pools;
	registration->pool_count = kept;
	for (i = 0; i < kept; i++) {
		err = find_owner(registration->ctx, &pools[i], error);
		if (err)
			return err;
	}
	return 0;
}

static bool covers(const struct kvp_registration *registration, const struct kvp_pool_ref *pool)
{
	return registration->pool_count &&
	       bsearch(pool, registration->pools, registration->pool_count, sizeof(*pool),
		       by_identity);
}

/* Whether a registration that is in force has the pool. */
static bool in_force(struct kvp_ctx *ctx, const struct kvp_pool_ref *pool)
{
	const struct kvp_registration *other;
	bool found = false;

	pthread_mutex_lock(&ctx->lock);
	for (other = ctx->registrations; other && !found; other = other->next)
		found = other->committed && !other->ending && covers(other, pool);
	pthread_mutex_unlock(&ctx->lock);
	return found;
}

static int set_state(const struct kvp_registration *registration, const struct kvp_pool_ref *pool,
		     enum kvp_registration_state state, struct kvp_error *error)
{
	struct kvp_pool_change change = {
		.struct_size = sizeof(change),
		.mask = KVP_SET_REGISTRATION,
		.registration = state,
	};

	return kvp_pool_set(registration->ctx, pool->id, pool->generation, &change, error);
}

static void end(const struct kvp_registration *registration, uint32_t count,
		enum kvp_registration_state state)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct kvp_pool_ref *pool = &registration->pools[i];

		if (!pool->owned)
			continue;
		(void)set_state(registration, pool, in_force(registration->ctx, pool) ?
				KVP_REGISTRATION_COMMITTED : state, NULL);
	}
}

int kvp_states_begin(struct kvp_registration *registration, struct kvp_error *error)
{
	uint32_t i;
	int err;

	for (i = 0; i < registration->pool_count; i++) {
		struct kvp_pool_ref *pool = &registration->pools[i];

		if (!pool->owned)
			continue;
		err = set_state(registration, pool, KVP_REGISTRATION_REGISTERING, error);
		if (not_ours(err)) {
			pool->owned = false;
		} else if (err) {
			end(registration, i, KVP_REGISTRATION_FAILED);
			return err;
		}
	}
	return 0;
}

void kvp_states_end(struct kvp_registration *registration, enum kvp_registration_state state)
{
	end(registration, registration->pool_count, state);
}

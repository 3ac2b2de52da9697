// SPDX-License-Identifier: LGPL-2.1-or-later
/* The registration state of pools, as sysfs shows it. */
#include <inttypes.h>
#include <stdlib.h>

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
 * Many may change the state of a pool: root, its uid. But none must speak for a pool
 * that another context owns and registers itself, be it of the same process.
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
	pthread_mutex_lock(&ctx->lock);
	pool->owned = kvp_owned_find(ctx, pool->id, pool->generation);
	pthread_mutex_unlock(&ctx->lock);
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

static const struct kvp_pool_ref *find(const struct kvp_registration *registration,
				       const struct kvp_pool_ref *pool)
{
	return registration->pool_count ?
	       bsearch(pool, registration->pools, registration->pool_count, sizeof(*pool),
		       by_identity) : NULL;
}

/* What other registrations of the context have a pool for. */
struct use {
	bool registering;	/* one that is under way has set it to REGISTERING */
	bool in_force;
};

static struct use use_of(struct kvp_ctx *ctx, const struct kvp_pool_ref *pool)
{
	const struct kvp_registration *other;
	struct use use = { 0 };

	pthread_mutex_lock(&ctx->lock);
	for (other = ctx->registrations; other; other = other->next) {
		const struct kvp_pool_ref *same = find(other, pool);

		if (!same)
			continue;
		use.registering |= other->registering && same->owned;
		use.in_force |= other->committed && !other->ending;
	}
	pthread_mutex_unlock(&ctx->lock);
	return use;
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

/* With the states' lock held: nobody else decides between the look and the setting. */
static void end(struct kvp_registration *registration, uint32_t count,
		enum kvp_registration_state state)
{
	uint32_t i;

	registration->registering = false;
	for (i = 0; i < count; i++) {
		const struct kvp_pool_ref *pool = &registration->pools[i];
		struct use use;

		if (!pool->owned)
			continue;
		use = use_of(registration->ctx, pool);
		/* Out of another state the kernel would not take that one's COMMITTED. */
		if (use.registering)
			continue;
		(void)set_state(registration, pool, use.in_force ? KVP_REGISTRATION_COMMITTED :
				state, NULL);
	}
}

static int begin(struct kvp_registration *registration, struct kvp_error *error)
{
	uint32_t i;
	int err;

	registration->registering = true;
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

int kvp_states_begin(struct kvp_registration *registration, struct kvp_error *error)
{
	int err;

	pthread_mutex_lock(&registration->ctx->states_lock);
	err = begin(registration, error);
	pthread_mutex_unlock(&registration->ctx->states_lock);
	return err;
}

void kvp_states_end(struct kvp_registration *registration, enum kvp_registration_state state)
{
	pthread_mutex_lock(&registration->ctx->states_lock);
	end(registration, registration->pool_count, state);
	pthread_mutex_unlock(&registration->ctx->states_lock);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The invariants of the registration states, in one place. */
#include <inttypes.h>
#include <stdlib.h>

#include "transaction.h"

/* What the context knows of a pool. */
struct known {
	bool owned;
	bool in_force;		/* a registration that was committed has it */
	bool pinned;		/* at a registrar that pins */
	bool quarantined;
};

static struct known known_of(struct kvp_ctx *ctx, const struct kvp_pool_info *info)
{
	const struct kvp_registration *registration;
	struct known known = { 0 };
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	known.owned = kvp_owned_find(ctx, info->id, info->generation);
	for (registration = ctx->registrations; registration; registration = registration->next) {
		for (i = 0; i < registration->count; i++) {
			const struct kvp_entry *entry = &registration->entries[i];

			if (entry->chunk.span.id != info->id ||
			    entry->chunk.span.generation != info->generation)
				continue;
			known.quarantined |= entry->quarantined;
			if (!registration->committed || registration->ending)
				continue;
			known.in_force = true;
			known.pinned |= registration->set.registrars[entry->registrar]->ops.pins;
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	return known;
}

static const char *wrong(const struct kvp_pool_info *info, const struct known *known)
{
	switch (info->registration) {
	case KVP_REGISTRATION_COMMITTED:
		if (!known->in_force)
			return "no registration is in force";
		break;
	case KVP_REGISTRATION_REGISTERING:
		return "no transaction runs";
	case KVP_REGISTRATION_ALLOCATED:
	case KVP_REGISTRATION_FALLBACK_L2:
		if (known->quarantined)
			return "entries are quarantined";
		/* fall through */
	case KVP_REGISTRATION_FAILED:
		if (known->in_force)
			return "a registration is in force";
		break;
	}
	if (known->pinned && !info->pinned_blocks)
		return "a registration is in force, and no block is pinned";
	return NULL;
}

struct verify {
	struct kvp_ctx *ctx;
	struct kvp_error *error;
};

static int verify(const struct kvp_pool_info *info, void *arg)
{
	const struct verify *verify = arg;
	struct known known;
	const char *what;

	known = known_of(verify->ctx, info);
	what = known.owned ? wrong(info, &known) : NULL;
	if (!what)
		return 0;
	return kvp_fail(verify->error, -EUCLEAN, KVP_PHASE_CHECK, KVP_NONE, NULL,
			"kvpoolctl set, or kvp_pool_set(), may have changed the state",
			"pool %s (id %" PRIu32 ", generation %" PRIu64 ") is %s, but %s",
			info->name, info->id, info->generation,
			kvp_registration_state_name(info->registration), what);
}

KVP_EXPORT int kvp_verify(struct kvp_ctx *ctx, struct kvp_error *error)
{
	struct verify arg = { .ctx = ctx, .error = error };

	return kvp_pool_each(ctx, verify, &arg, error);
}

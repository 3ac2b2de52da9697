// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changing and ending pools. */
#include <inttypes.h>

#include <stdlib.h>

#include "netlink.h"

#define SET_ALL (KVP_SET_ROLE | KVP_SET_LABEL | KVP_SET_RANK | KVP_SET_LIFETIME | KVP_SET_UID | \
		 KVP_SET_GID | KVP_SET_MODE | KVP_SET_REGISTRATION)

/* The generation goes along also when it is 0, so that no pool is hit by its id alone. */
static void start(const struct kvp_ctx *ctx, struct kvp_request *request, uint8_t command,
		  uint32_t id, uint64_t generation)
{
	kvp_ask_start(ctx, request, command);
	kvp_request_u32(request, KVPOOL_A_POOL_SESSION_FD, (uint32_t)ctx->control);
	kvp_request_u32(request, KVPOOL_A_POOL_ID, id);
	kvp_request_u64(request, KVPOOL_A_POOL_GENERATION, generation);
}

/* `busy` is the advice for -EBUSY, which means something else in each request. */
static const char *advice_of(int err, const char *busy)
{
	switch (err) {
	case -EBUSY:
		return busy;
	case -EPERM:
		return "act in the session that owns the pool, as the pool's uid, or with "
		       "CAP_FOWNER";
	default:
		return NULL;
	}
}

static void forget_owned(struct kvp_ctx *ctx, uint32_t id, uint64_t generation)
{
	struct kvp_owned **at, *owned = NULL;

	pthread_mutex_lock(&ctx->lock);
	for (at = &ctx->owned; *at; at = &(*at)->next) {
		if ((*at)->id == id && (*at)->generation == generation) {
			owned = *at;
			*at = owned->next;
			break;
		}
	}
	pthread_mutex_unlock(&ctx->lock);
	free(owned);
}

KVP_EXPORT int kvp_pool_destroy(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, int force,
				struct kvp_error *error)
{
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	err = kvp_need_write(ctx, error);
	if (err)
		return err;
	start(ctx, &request, KVPOOL_CMD_POOL_DESTROY, id, generation);
	if (force)
		kvp_request_flag(&request, KVPOOL_A_POOL_FORCE);
	err = kvp_ask(ctx, &request, NULL, NULL, &reply);
	if (err)
		return kvp_ask_fail(error, err, &reply,
				    advice_of(err, "unmap and unregister it everywhere, or destroy "
					      "with force"),
				    "destroy pool %" PRIu32 " of generation %" PRIu64, id,
				    generation);
	forget_owned(ctx, id, generation);
	kvp_mappings_destroyed(&ctx->mappings, generation);
	return 0;
}

static int check_change(const struct kvp_pool_change *change, struct kvp_error *error)
{
	const enum kvp_phase phase = KVP_PHASE_REQUEST;

	if (!change->mask || change->mask & ~SET_ALL)
		return kvp_fail(error, -EINVAL, phase, KVP_NONE, NULL, "use KVP_SET_*",
				"change with mask 0x%" PRIx32 ", known is 0x%x", change->mask,
				SET_ALL);
	/* What a role or label may hold is the kernel's to say; this is what a request can. */
	if (change->mask & KVP_SET_ROLE && change->role &&
	    strnlen(change->role, KVP_NAME_SIZE) == KVP_NAME_SIZE)
		return kvp_fail(error, -EINVAL, phase, KVP_NONE, NULL, NULL,
				"the role has more than %d bytes", KVP_NAME_SIZE - 1);
	if (change->mask & KVP_SET_LABEL && change->label &&
	    strnlen(change->label, KVP_NAME_SIZE) == KVP_NAME_SIZE)
		return kvp_fail(error, -EINVAL, phase, KVP_NONE, NULL, NULL,
				"the label has more than %d bytes", KVP_NAME_SIZE - 1);
	return 0;
}

static void put_change(struct kvp_request *request, const struct kvp_pool_change *change)
{
	const uint32_t mask = change->mask;

	if (mask & KVP_SET_ROLE)
		kvp_request_text(request, KVPOOL_A_POOL_ROLE, change->role ? change->role : "");
	if (mask & KVP_SET_LABEL)
		kvp_request_text(request, KVPOOL_A_POOL_LABEL, change->label ? change->label : "");
	if (mask & KVP_SET_RANK)
		kvp_request_u32(request, KVPOOL_A_POOL_RANK, change->rank);
	if (mask & KVP_SET_LIFETIME)
		kvp_request_u32(request, KVPOOL_A_POOL_LIFETIME, (uint32_t)change->lifetime);
	if (mask & KVP_SET_UID)
		kvp_request_u32(request, KVPOOL_A_POOL_UID, change->uid);
	if (mask & KVP_SET_GID)
		kvp_request_u32(request, KVPOOL_A_POOL_GID, change->gid);
	if (mask & KVP_SET_MODE)
		kvp_request_u32(request, KVPOOL_A_POOL_MODE, change->mode);
	if (mask & KVP_SET_REGISTRATION)
		kvp_request_u32(request, KVPOOL_A_POOL_REGISTRATION,
				(uint32_t)change->registration);
}

KVP_EXPORT int kvp_pool_set(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			    const struct kvp_pool_change *given, struct kvp_error *error)
{
	struct kvp_pool_change change;
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	err = kvp_options_copy(&change, sizeof(change), given);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"set it up with KVP_INIT(struct kvp_pool_change)",
				"kvp_pool_change of %zu bytes, the library knows %zu",
				given->struct_size, sizeof(change));
	err = check_change(&change, error);
	if (!err)
		err = kvp_need_write(ctx, error);
	if (err)
		return err;
	start(ctx, &request, KVPOOL_CMD_POOL_SET, id, generation);
	put_change(&request, &change);
	err = kvp_ask(ctx, &request, NULL, NULL, &reply);
	if (err)
		return kvp_ask_fail(error, err, &reply,
				    advice_of(err,
					      "claim the pool first, then change its lifetime"),
				    "change pool %" PRIu32 " of generation %" PRIu64, id,
				    generation);
	return 0;
}

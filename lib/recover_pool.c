// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pools that a dead context created: which are to be ended. */
#include <stdlib.h>

#include "transaction.h"

static int by_identity(const void *left, const void *right)
{
	const struct kvp_journal_pool *a = left, *b = right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->generation > b->generation) - (a->generation < b->generation);
}

int kvp_recovery_pools_new(const struct kvp_journal *journal, struct kvp_journal_pool **result,
			   uint32_t *count)
{
	const uint32_t all = kvp_journal_info(journal)->pools;
	struct kvp_journal_pool *pools = calloc(all ? all : 1, sizeof(*pools));
	uint32_t n, kept = 0;

	if (!pools)
		return -ENOMEM;
	for (n = 0; n < all; n++)
		pools[n] = *kvp_journal_pool(journal, n);
	qsort(pools, all, sizeof(*pools), by_identity);
	for (n = 0; n < all; n++) {
		if (kept && !by_identity(&pools[kept - 1], &pools[n])) {
			pools[kept - 1].created |= pools[n].created;
			pools[kept - 1].committed |= pools[n].committed;
		} else {
			pools[kept++] = pools[n];
		}
	}
	*result = pools;
	*count = kept;
	return 0;
}

/* Who may still have it registered at an external registrar: a journal's name, or NULL. */
static const char *holder(const struct kvp_recovery *recovery, const struct kvp_journal_pool *pool)
{
	uint32_t i;

	if (recovery->unknown)
		return recovery->unknown;
	for (i = 0; i < recovery->held_count; i++)
		if (recovery->held[i].span.id == pool->id &&
		    recovery->held[i].span.generation == pool->generation)
			return recovery->held[i].file;
	return NULL;
}

/* Why it must be left; NULL: it must not. */
static const char *leave(const struct kvp_journal_pool *pool, const struct kvp_pool_info *info)
{
	if (!pool->created)
		return "it was not created by that session";
	if (info->owned)
		return "a session owns it";
	if (info->lifetime == KVP_LIFETIME_PERSISTENT && pool->committed)
		return "it is persistent, and was committed";
	return NULL;
}

static void destroy(struct kvp_recovery *recovery, const struct kvp_journal_pool *pool,
		    const struct kvp_pool_info *info, struct kvp_recovery_event *event,
		    struct kvp_error *error)
{
	event->action = KVP_RECOVERY_POOL_DESTROYED;
	if (recovery->options.dry_run)
		return;
	event->err = kvp_pool_destroy(recovery->ctx, pool->id, pool->generation, 0, error);
	switch (event->err) {
	case 0:
		break;
	case -ENOENT:
	case -ESTALE:
	case -ENODEV:
		event->err = 0;
		event->action = KVP_RECOVERY_POOL_GONE;
		break;
	case -EBUSY:
		/* An orphan ends with its last user by itself. The other is tried again. */
		event->action = KVP_RECOVERY_POOL_LEFT;
		event->reason = "it is mapped or pinned";
		recovery->unfinished |= info->state != KVP_STATE_ORPHAN;
		break;
	default:
		event->action = KVP_RECOVERY_POOL_FAILED;
		event->reason = error->message;
		recovery->unfinished = true;
	}
}

static void recover_pool(struct kvp_recovery *recovery, const struct kvp_journal_pool *pool)
{
	struct kvp_recovery_event event = { .action = KVP_RECOVERY_POOL_LEFT, .pool = pool };
	struct kvp_error error = { 0 };
	struct kvp_pool_info info = { 0 };
	int err;

	if (kvp_journal_info(recovery->journal)->liveness == KVP_LIVENESS_OTHER_BOOT)
		err = -ENOENT;
	else
		err = kvp_pool_find(recovery->ctx, pool->id, pool->generation, &info, &error);
	if (err == -ENOENT || err == -ESTALE || err == -ENODEV ||
	    (!err && info.state == KVP_STATE_DYING)) {
		event.action = KVP_RECOVERY_POOL_GONE;
	} else if (err == -EACCES || err == -EPERM) {
		event.reason = "it is not this user's any more";
	} else if (err) {
		event.action = KVP_RECOVERY_POOL_FAILED;
		event.err = err;
		event.reason = error.message;
		recovery->unfinished = true;
	} else {
		event.reason = leave(pool, &info);
		if (!event.reason && holder(recovery, pool)) {
			/* Freed, it would be written to by whoever still has it. */
			event.reason = "its memory may still be registered, by a journal";
			recovery->unfinished = true;
		} else if (!event.reason) {
			destroy(recovery, pool, &info, &event, &error);
		}
	}
	kvp_recovery_tell(recovery, &event);
}

void kvp_recovery_pools(struct kvp_recovery *recovery, const struct kvp_journal_pool *pools,
			uint32_t count)
{
	uint32_t n;

	for (n = 0; n < count; n++)
		recover_pool(recovery, &pools[n]);
}

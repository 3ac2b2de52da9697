// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pools that a dead context created: which are to be ended. */
#include <stdio.h>

#include "transaction.h"

static bool same(const struct kvp_journal_pool *one, const struct kvp_journal_pool *other)
{
	return one->id == other->id && one->generation == other->generation;
}

/* All that the journal says of a pool, in one; false: it was told before. */
static bool merge(const struct kvp_journal *journal, uint32_t n, struct kvp_journal_pool *pool)
{
	const struct kvp_journal_pool *other;
	uint32_t i;

	*pool = *kvp_journal_pool(journal, n);
	for (i = 0; (other = kvp_journal_pool(journal, i)); i++) {
		if (!same(pool, other))
			continue;
		if (i < n)
			return false;
		pool->created |= other->created;
		pool->committed |= other->committed;
	}
	return true;
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

void kvp_recovery_pools(struct kvp_recovery *recovery)
{
	const uint32_t count = kvp_journal_info(recovery->journal)->pools;
	struct kvp_journal_pool pool;
	uint32_t n;

	for (n = 0; n < count; n++)
		if (merge(recovery->journal, n, &pool))
			recover_pool(recovery, &pool);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a pool.
 *
 *   NEW    reserved and being filled; nobody else knows it
 *   LIVE   published; owned by a session, persistent without one, or an orphan
 *   DYING  ended by destroy, or by its last user; blocks go as pins go
 *
 * Whoever takes a pool from LIVE to DYING, under its lock, calls end() once.
 */
#include <linux/math64.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"

static void owner_set(struct kvpool_owner *owner)
{
	put_pid(owner->pid);
	owner->pid = get_pid(task_tgid(current));
	owner->start = current->group_leader->start_boottime;
	owner->uid = current_uid();
}

static void pool_free(struct kref *ref)
{
	struct kvpool_pool *pool = container_of(ref, struct kvpool_pool, ref);

	if (pool->inode)
		kvpool_inode_put(pool->inode);
	kvpool_blocks_free(&pool->blocks);
	put_pid(pool->owner.pid);
	mutex_destroy(&pool->lock);
	kfree_rcu(pool, rcu);
}

/**
 * kvpool_pool_get - take a reference
 * @pool: referenced already
 */
void kvpool_pool_get(struct kvpool_pool *pool)
{
	kref_get(&pool->ref);
}

/**
 * kvpool_pool_put - drop a reference; may sleep
 * @pool: may be freed
 */
void kvpool_pool_put(struct kvpool_pool *pool)
{
	kref_put(&pool->ref, pool_free);
}

/**
 * kvpool_pool_state - state as the uAPI tells it
 * @pool: locked
 */
u32 kvpool_pool_state(const struct kvpool_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (pool->life == KVPOOL_LIFE_NEW)
		return KVPOOL_STATE_CREATING;
	if (pool->life == KVPOOL_LIFE_DYING)
		return KVPOOL_STATE_DYING;
	return pool->orphan ? KVPOOL_STATE_ORPHAN : KVPOOL_STATE_LIVE;
}

/**
 * kvpool_pool_pinned - how many blocks does a device hold?
 * @pool: published and referenced, not locked
 * @pinned: gets the number
 *
 * Counted for those only who may open the pool: it takes the lock again and again, so
 * that others needn't wait for all of it, and reads each block's folio.
 *
 * Return: 0 or -EACCES.
 */
int kvpool_pool_pinned(struct kvpool_pool *pool, u32 *pinned)
{
	bool allowed;
	u32 first;

	mutex_lock(&pool->lock);
	allowed = kvpool_may_open(pool, false);
	mutex_unlock(&pool->lock);
	if (!allowed)
		return -EACCES;
	*pinned = 0;
	for (first = 0; first < pool->blocks.count; first += KVPOOL_SLICE) {
		mutex_lock(&pool->lock);
		*pinned += kvpool_blocks_pinned(&pool->blocks, first, KVPOOL_SLICE);
		mutex_unlock(&pool->lock);
		cond_resched();
	}
	return 0;
}

static void pool_progress(const struct kvpool_blocks *blocks, u32 filled)
{
	const struct kvpool_pool *pool = container_of(blocks, struct kvpool_pool, blocks);

	kvpool_netlink_notify_progress(pool, mul_u64_u32_div(filled, 100, blocks->count));
}

static struct kvpool_pool *pool_new(const struct kvpool_request *request)
{
	struct kvpool_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);

	if (!pool)
		return NULL;
	kref_init(&pool->ref);
	mutex_init(&pool->lock);
	INIT_LIST_HEAD(&pool->session_link);
	INIT_LIST_HEAD(&pool->dying_link);
	pool->length = request->length;
	pool->mapped_length = round_up(request->length, KVPOOL_BLOCK_SIZE);
	pool->node = request->node;
	pool->placement = request->placement;
	pool->tags = request->tags;
	pool->blocks.progress = pool_progress;
	owner_set(&pool->owner);
	return pool;
}

/**
 * kvpool_pool_reserve - begin a pool: its share of the limits, its id and name
 * @request: checked for form
 * @extack: gets the cause of a failure
 *
 * Return: a pool that nobody else knows, for kvpool_pool_fill() or
 * kvpool_pool_abandon(), or an error: see kvp_pool_create().
 */
struct kvpool_pool *kvpool_pool_reserve(const struct kvpool_request *request,
					struct netlink_ext_ack *extack)
{
	struct kvpool_pool *pool = pool_new(request);
	int err;

	if (!pool)
		return ERR_PTR(-ENOMEM);
	err = kvpool_charge(&pool->charge, pool->mapped_length, NULL);
	if (err) {
		/* What pools hold that just ended is on its way back: let it arrive. */
		err = kvpool_reaper_settle();
		if (err < 0)
			goto put;
		err = kvpool_charge(&pool->charge, pool->mapped_length, extack);
	}
	if (err)
		goto put;
	err = kvpool_registry_reserve(pool, extack);
	if (err)
		goto uncharge;
	return pool;

uncharge:
	kvpool_uncharge(&pool->charge);
put:
	atomic64_inc(&kvpool_failed);
	kvpool_pool_put(pool);
	return ERR_PTR(err);
}

/**
 * kvpool_pool_abandon - undo kvpool_pool_reserve()
 * @pool: LIFE_NEW; the caller's reference is consumed
 */
void kvpool_pool_abandon(struct kvpool_pool *pool)
{
	kvpool_blocks_release(&pool->blocks);
	mutex_lock(&kvpool_registry_lock);
	kvpool_registry_drop_name(pool);
	mutex_unlock(&kvpool_registry_lock);
	kvpool_registry_remove(pool);
	kvpool_uncharge(&pool->charge);
	atomic64_inc(&kvpool_failed);
	kvpool_pool_put(pool);
}

static int get_memory(struct kvpool_pool *pool, struct netlink_ext_ack *extack)
{
	u32 count = pool->mapped_length >> KVPOOL_BLOCK_SHIFT;
	int err;

	pool->blocks.granted = kvpool_quota_take(&pool->charge, count);
	err = kvpool_blocks_alloc(&pool->blocks, count, pool->node,
				  pool->placement == KVPOOL_PLACEMENT_STRICT, extack);
	if (err)
		return err;
	kvpool_quota_give(&pool->charge, pool->blocks.granted - pool->blocks.reserved);

	pool->inode = kvpool_inode_new(pool->mapped_length);
	if (IS_ERR(pool->inode)) {
		err = PTR_ERR(pool->inode);
		pool->inode = NULL;
		NL_SET_ERR_MSG_FMT(extack, "no memory for an inode");
		return err;
	}
	err = kvpool_node_add(pool);
	if (err)
		NL_SET_ERR_MSG_FMT(extack, "device node could not be made");
	return err;
}

/**
 * kvpool_pool_fill - give a pool its memory, and publish it; takes long
 * @pool: LIFE_NEW; abandoned on failure
 * @session: owner; the caller holds its file
 * @extack: gets the cause of a failure
 *
 * Return: 0, or an error: see struct kvpool_fill.
 */
int kvpool_pool_fill(struct kvpool_pool *pool, struct kvpool_session *session,
		     struct netlink_ext_ack *extack)
{
	int err = get_memory(pool, extack);

	if (err) {
		kvpool_pool_abandon(pool);
		return err;
	}

	/* Nothing below fails: from here on others see the pool. */
	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&pool->lock);
	pool->life = KVPOOL_LIFE_LIVE;
	kvpool_session_own(session, pool);
	kvpool_registry_publish(pool);
	mutex_unlock(&pool->lock);
	/* Before whoever ends it can tell that: see end(). */
	kvpool_netlink_notify(KVPOOL_CMD_POOL_CREATE_NTF, pool);
	mutex_unlock(&kvpool_registry_lock);

	kvpool_node_announce(pool);
	atomic64_inc(&kvpool_created);
	return 0;
}

/**
 * kvpool_pool_create - make a pool and publish it
 * @session: owner; the caller holds its file
 * @request: checked for form
 * @extack: gets the cause of a failure
 *
 * Return: the pool with a reference, or an error: see kvp_pool_create().
 */
struct kvpool_pool *kvpool_pool_create(struct kvpool_session *session,
				       const struct kvpool_request *request,
				       struct netlink_ext_ack *extack)
{
	struct kvpool_pool *pool = kvpool_pool_reserve(request, extack);
	int err;

	if (IS_ERR(pool))
		return pool;
	err = kvpool_pool_fill(pool, session, extack);
	return err ? ERR_PTR(err) : pool;
}

/* The node first: whoever takes the name next makes one of the same name. */
static void drop_node_and_name(struct kvpool_pool *pool)
{
	kvpool_node_remove(pool);
	mutex_lock(&kvpool_registry_lock);
	kvpool_registry_drop_name(pool);
	mutex_unlock(&kvpool_registry_lock);
}

/* Exactly once, by whoever made the pool DYING; no lock held. */
static void end(struct kvpool_pool *pool)
{
	drop_node_and_name(pool);
	mutex_lock(&kvpool_registry_lock);
	kvpool_session_disown(pool);
	mutex_unlock(&kvpool_registry_lock);
	kvpool_reaper_add(pool);
}

/**
 * kvpool_pool_destroy - end a pool on request
 * @pool: referenced; permission was checked
 * @force: although mapped or pinned
 * @extack: gets the cause of a failure
 *
 * When it returns 0, CPU mappings are revoked and every block that no device
 * pins is free; the reaper goes on with that should a fatal signal arrive.
 *
 * Return: 0, -EBUSY, or -ENODEV when the pool has ended already.
 */
int kvpool_pool_destroy(struct kvpool_pool *pool, bool force, struct netlink_ext_ack *extack)
{
	u32 mappings, pinned;

	mutex_lock(&pool->lock);
	if (pool->life != KVPOOL_LIFE_LIVE) {
		mutex_unlock(&pool->lock);
		NL_SET_ERR_MSG_FMT(extack, "pool has ended; pinned blocks go when unpinned");
		return -ENODEV;
	}
	/*
	 * No mapping, and none can come while the lock is held, so no new pin
	 * either: a device reaches the blocks only through a mapping.
	 */
	mappings = atomic_read(&pool->mappings);
	pinned = kvpool_blocks_pinned(&pool->blocks, 0, pool->blocks.count);
	if (!force && (mappings || pinned)) {
		mutex_unlock(&pool->lock);
		NL_SET_ERR_MSG_FMT(extack, "in use: %u mappings, %u pinned blocks", mappings,
				   pinned);
		return -EBUSY;
	}
	pool->life = KVPOOL_LIFE_DYING;
	mutex_unlock(&pool->lock);

	end(pool);
	kvpool_reaper_settle();
	return 0;
}

/**
 * kvpool_pool_disown - the owner's session has closed
 * @pool: referenced
 * @session: the session
 */
void kvpool_pool_disown(struct kvpool_pool *pool, const struct kvpool_session *session)
{
	bool orphaned = false, ended = false;

	/* In one step: a claim in between would make an orphan of a pool that is owned. */
	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&pool->lock);
	if (pool->session != session) {
		/* Destroyed meanwhile. */
		mutex_unlock(&pool->lock);
		mutex_unlock(&kvpool_registry_lock);
		return;
	}
	kvpool_session_disown(pool);
	if (pool->life == KVPOOL_LIFE_LIVE && pool->tags.lifetime == KVPOOL_LIFETIME_OWNER) {
		orphaned = pool->files;
		ended = !orphaned;
	}
	if (orphaned)
		pool->orphan = true;
	if (ended)
		pool->life = KVPOOL_LIFE_DYING;
	mutex_unlock(&pool->lock);
	mutex_unlock(&kvpool_registry_lock);

	if (ended) {
		end(pool);
		return;
	}
	if (orphaned) {
		/* The name goes now: a restarted owner wants it. */
		drop_node_and_name(pool);
	}
	kvpool_netlink_notify(KVPOOL_CMD_POOL_CHANGE_NTF, pool);
}

/**
 * kvpool_pool_add_file - count an open file
 * @pool: referenced; on success the file holds another reference
 * @write: opened for writing as well
 *
 * Return: 0, -ENODEV when the pool can't be opened any more, or -EACCES.
 */
int kvpool_pool_add_file(struct kvpool_pool *pool, bool write)
{
	int err = 0;

	mutex_lock(&pool->lock);
	if (pool->life != KVPOOL_LIFE_LIVE || pool->orphan) {
		err = -ENODEV;
	} else if (!kvpool_may_open(pool, write)) {
		err = -EACCES;
	} else {
		pool->files++;
		kvpool_pool_get(pool);
	}
	mutex_unlock(&pool->lock);
	return err;
}

/**
 * kvpool_pool_drop_file - an open file is gone, and with it all its mappings
 * @pool: the file's reference is dropped
 */
void kvpool_pool_drop_file(struct kvpool_pool *pool)
{
	bool ended = false;

	mutex_lock(&pool->lock);
	if (!--pool->files && pool->orphan && pool->life == KVPOOL_LIFE_LIVE) {
		pool->life = KVPOOL_LIFE_DYING;
		ended = true;
	}
	mutex_unlock(&pool->lock);

	if (ended)
		end(pool);
	kvpool_pool_put(pool);
}

#define AFTER(state) BIT(KVPOOL_REGISTRATION_##state)

/*
 * What a registration state may be followed by, itself aside. COMMITTED comes
 * out of a transaction only; what is registered is not left for a fallback.
 */
static const u8 registration_next[] = {
	[KVPOOL_REGISTRATION_ALLOCATED] = AFTER(REGISTERING) | AFTER(FALLBACK_L2) | AFTER(FAILED),
	[KVPOOL_REGISTRATION_REGISTERING] = AFTER(ALLOCATED) | AFTER(COMMITTED) |
		AFTER(FALLBACK_L2) | AFTER(FAILED),
	[KVPOOL_REGISTRATION_COMMITTED] = AFTER(REGISTERING) | AFTER(ALLOCATED) | AFTER(FAILED),
	[KVPOOL_REGISTRATION_FALLBACK_L2] = AFTER(REGISTERING) | AFTER(ALLOCATED) | AFTER(FAILED),
	[KVPOOL_REGISTRATION_FAILED] = AFTER(REGISTERING) | AFTER(ALLOCATED) | AFTER(FALLBACK_L2),
};

/**
 * kvpool_pool_set - change tags and registration state
 * @pool: locked; permission to change it was checked
 * @tags: all tags as they shall be, name and domain as they are
 * @registration: enum kvpool_registration
 * @extack: gets the cause of a failure
 *
 * Return: 0; 1 when the device node must be replaced, since who may open the
 * pool has changed, or since it could not be made the last time; -ENODEV, -EBUSY,
 * -EINVAL or -EPERM.
 */
int kvpool_pool_set(struct kvpool_pool *pool, const struct kvpool_tags *tags, u32 registration,
		    struct netlink_ext_ack *extack)
{
	bool given = !uid_eq(tags->uid, pool->tags.uid) || !gid_eq(tags->gid, pool->tags.gid);
	bool replace = given || tags->mode != pool->tags.mode || !READ_ONCE(pool->device);
	int err;

	lockdep_assert_held(&kvpool_registry_lock);
	lockdep_assert_held(&pool->lock);
	if (pool->life != KVPOOL_LIFE_LIVE || pool->orphan) {
		NL_SET_ERR_MSG_FMT(extack, "pool is an orphan or was destroyed");
		return -ENODEV;
	}
	if (tags->lifetime == KVPOOL_LIFETIME_OWNER && !pool->session) {
		NL_SET_ERR_MSG_FMT(extack, "lifetime: no session owns the pool; claim it first");
		return -EBUSY;
	}
	if (registration != pool->registration &&
	    !(registration_next[pool->registration] & BIT(registration))) {
		NL_SET_ERR_MSG_FMT(extack, "registration: state %u may not follow %u",
				   registration, pool->registration);
		return -EINVAL;
	}
	err = given ? kvpool_may_give(tags, extack) : 0;
	if (err)
		return err;
	pool->tags = *tags;
	pool->registration = registration;
	return replace;
}

/**
 * kvpool_pool_claim - make a session the owner of a persistent pool
 * @pool: referenced
 * @session: the new owner; the caller holds its file
 * @extack: gets the cause of a failure
 *
 * Return: 0, -ENODEV, -EACCES, -EPERM, -EINVAL or -EBUSY.
 */
int kvpool_pool_claim(struct kvpool_pool *pool, struct kvpool_session *session,
		      struct netlink_ext_ack *extack)
{
	int err = 0;

	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&pool->lock);
	if (pool->life != KVPOOL_LIFE_LIVE || pool->orphan) {
		NL_SET_ERR_MSG_FMT(extack, "pool is an orphan or was destroyed");
		err = -ENODEV;
	} else if (!kvpool_may_open(pool, true)) {
		NL_SET_ERR_MSG_FMT(extack, "claiming takes read and write access to the pool");
		err = -EACCES;
	} else if (!kvpool_may_change(pool, session)) {
		NL_SET_ERR_MSG_FMT(extack, "only the pool's uid or CAP_FOWNER may claim it");
		err = -EPERM;
	} else if (pool->tags.lifetime != KVPOOL_LIFETIME_PERSISTENT) {
		NL_SET_ERR_MSG_FMT(extack, "only a persistent pool can be claimed");
		err = -EINVAL;
	} else if (pool->session) {
		NL_SET_ERR_MSG_FMT(extack, "a live session owns the pool");
		err = -EBUSY;
	} else {
		owner_set(&pool->owner);
		/* What the last owner registered, the new one has not. */
		pool->registration = KVPOOL_REGISTRATION_ALLOCATED;
		kvpool_session_own(session, pool);
	}
	mutex_unlock(&pool->lock);
	mutex_unlock(&kvpool_registry_lock);

	if (!err)
		kvpool_netlink_notify(KVPOOL_CMD_POOL_CHANGE_NTF, pool);
	return err;
}

/**
 * kvpool_pool_revoke - take away all CPU mappings, for good
 * @pool: DYING
 *
 * The protocol of truncation. A fault looks at @revoked under RCU before it
 * takes a reference on the block, and again under the folio lock, which the
 * core keeps until the page table entry is in place. After the grace period
 * and one round through the folio locks every fault has either installed its
 * entry, which the last step removes, or fails.
 */
void kvpool_pool_revoke(struct kvpool_pool *pool)
{
	u32 i;

	WRITE_ONCE(pool->revoked, true);
	if (!atomic_read(&pool->mappings))
		return;
	synchronize_rcu();
	for (i = 0; i < pool->blocks.count; i++) {
		struct page *page = pool->blocks.pages[i];

		if (!page)
			continue;
		lock_page(page);
		unlock_page(page);
		cond_resched();
	}
	unmap_mapping_range(pool->inode->i_mapping, 0, 0, 1);
}

#ifdef KVPOOL_KUNIT
#include "pool_test.c"
#endif

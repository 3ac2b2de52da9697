// SPDX-License-Identifier: GPL-2.0
/*
 * Ids, generations and names.
 *
 * An id is reserved while the pool is made and shows the pool from its
 * publication until its last block is gone; lookup by id takes no lock. A
 * name stands in the table from reservation until the pool ends or becomes an
 * orphan, so that a restarted owner can use it again at once.
 */
#include <linux/hashtable.h>
#include <linux/kdev_t.h>
#include <linux/string.h>
#include <linux/stringhash.h>
#include <linux/ktime.h>
#include <linux/xarray.h>

#include "internal.h"

/* Protects names, and which session owns which pool. */
DEFINE_MUTEX(kvpool_registry_lock);

static DEFINE_XARRAY_ALLOC1(pools);
static u32 next_id = 1;
static DEFINE_HASHTABLE(names, 10);
static atomic64_t generations;
/* Goes up when a pool appears or disappears: tells a dump that it is torn. */
static atomic_t changes = ATOMIC_INIT(1);

/**
 * kvpool_registry_init - start the generations
 *
 * From the time since boot, in nanoseconds: pools can't be made that fast, so
 * a module that is loaded again never repeats one.
 */
void kvpool_registry_init(void)
{
	atomic64_set(&generations, ktime_get_boottime_ns());
}

/**
 * kvpool_registry_exit - check that all pools are gone, free the table
 */
void kvpool_registry_exit(void)
{
	WARN_ON(!xa_empty(&pools));
	xa_destroy(&pools);
}

static u32 name_hash(const char *name)
{
	return full_name_hash(NULL, name, strlen(name));
}

static struct kvpool_pool *find_name(const char *name)
{
	struct kvpool_pool *pool;

	lockdep_assert_held(&kvpool_registry_lock);
	hash_for_each_possible(names, pool, name_link, name_hash(name))
		if (!strcmp(pool->tags.name, name))
			return pool;
	return NULL;
}

/**
 * kvpool_registry_reserve - give a new pool its id, generation and name
 * @pool: LIFE_NEW; gets a made-up name when it has none
 * @extack: names the holder of the name
 *
 * Undone by kvpool_registry_drop_name() and kvpool_registry_remove().
 *
 * Return: 0, -EEXIST, -ENOSPC or -ENOMEM.
 */
int kvpool_registry_reserve(struct kvpool_pool *pool, struct netlink_ext_ack *extack)
{
	struct kvpool_pool *other;
	int err;

	bool named = pool->tags.name[0];

	mutex_lock(&kvpool_registry_lock);
	do {
		pool->generation = atomic64_inc_return(&generations);
		if (!named)
			snprintf(pool->tags.name, sizeof(pool->tags.name), "pool-%llu",
				 pool->generation);
		other = find_name(pool->tags.name);
		/* Somebody may have called his so. */
	} while (other && !named);
	if (other) {
		NL_SET_ERR_MSG_FMT(extack, "name: taken by pool %u.%llu", other->id,
				   other->generation);
		err = -EEXIST;
		goto unlock;
	}
	err = xa_alloc_cyclic(&pools, &pool->id, NULL, XA_LIMIT(1, KVPOOL_ID_MAX), &next_id,
			      GFP_KERNEL);
	if (err < 0) {
		if (err == -EBUSY) {
			NL_SET_ERR_MSG_FMT(extack, "no id is left: %u pools exist", KVPOOL_ID_MAX);
			err = -ENOSPC;
		}
		goto unlock;
	}
	err = 0;
	hash_add(names, &pool->name_link, name_hash(pool->tags.name));
unlock:
	mutex_unlock(&kvpool_registry_lock);
	return err;
}

/**
 * kvpool_registry_publish - let lookups find the pool
 * @pool: reserved, LIVE; the registry takes a reference
 *
 * Can't fail: the id's slot was allocated by the reservation.
 */
void kvpool_registry_publish(struct kvpool_pool *pool)
{
	kvpool_pool_get(pool);
	xa_store(&pools, pool->id, pool, GFP_KERNEL);
	atomic_inc(&changes);
}

/**
 * kvpool_registry_drop_name - let another pool have the name
 * @pool: reserved; may have lost its name already
 */
void kvpool_registry_drop_name(struct kvpool_pool *pool)
{
	lockdep_assert_held(&kvpool_registry_lock);
	if (!hlist_unhashed(&pool->name_link))
		hash_del(&pool->name_link);
}

/**
 * kvpool_registry_remove - forget the id
 * @pool: no longer has a name; the registry's reference, if any, is dropped
 */
void kvpool_registry_remove(struct kvpool_pool *pool)
{
	struct kvpool_pool *published = xa_erase(&pools, pool->id);

	if (published) {
		atomic_inc(&changes);
		kvpool_pool_put(published);
	}
}

/**
 * kvpool_registry_find - look up by id
 * @id: id
 *
 * Return: the pool with a reference, or NULL.
 */
struct kvpool_pool *kvpool_registry_find(u32 id)
{
	struct kvpool_pool *pool;

	rcu_read_lock();
	pool = xa_load(&pools, id);
	if (pool && !kref_get_unless_zero(&pool->ref))
		pool = NULL;
	rcu_read_unlock();
	return pool;
}

/**
 * kvpool_registry_find_name - look up by the name that a pool has now
 * @name: name
 *
 * Return: the pool with a reference, or NULL.
 */
struct kvpool_pool *kvpool_registry_find_name(const char *name)
{
	struct kvpool_pool *pool;

	mutex_lock(&kvpool_registry_lock);
	pool = find_name(name);
	if (pool && xa_load(&pools, pool->id) == pool)
		kvpool_pool_get(pool);
	else
		pool = NULL;
	mutex_unlock(&kvpool_registry_lock);
	return pool;
}

/**
 * kvpool_registry_next - walk the pools
 * @id: where to look from; set to the id found
 *
 * Return: the next pool with a reference, or NULL. No lock is held between
 * two steps of a walk.
 */
struct kvpool_pool *kvpool_registry_next(unsigned long *id)
{
	struct kvpool_pool *pool;

	rcu_read_lock();
	for (pool = xa_find(&pools, id, ULONG_MAX, XA_PRESENT); pool;
	     pool = xa_find_after(&pools, id, ULONG_MAX, XA_PRESENT))
		if (kref_get_unless_zero(&pool->ref))
			break;
	rcu_read_unlock();
	return pool;
}

/**
 * kvpool_registry_changes - a number that changes when pools come or go
 */
u32 kvpool_registry_changes(void)
{
	return atomic_read(&changes);
}

#ifdef KVPOOL_KUNIT
#include "registry_test.c"
#endif

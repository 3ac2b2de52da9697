// SPDX-License-Identifier: GPL-2.0
/* How much of the reserve each user may have in pools. */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "internal.h"

static unsigned long long reserve_quota;
module_param(reserve_quota, ullong, 0644);
MODULE_PARM_DESC(reserve_quota,
		 "Bytes of the reserve for each user that has no quota of its own (default: 0)");

/**
 * struct quota - of a user that has one of its own, or has memory of the reserve
 * @own: the administrator has set @bytes
 * @bytes: limit
 * @used: bytes in pools that the user created
 */
struct quota {
	bool own;
	u64 bytes;
	u64 used;
};

/* Protects the quotas, by uid. */
static DEFINE_MUTEX(quota_lock);
static DEFINE_XARRAY(quotas);

static struct quota *quota_get(kuid_t uid)
{
	struct quota *quota = xa_load(&quotas, __kuid_val(uid));

	lockdep_assert_held(&quota_lock);
	if (quota)
		return quota;
	quota = kzalloc(sizeof(*quota), GFP_KERNEL);
	if (quota && xa_err(xa_store(&quotas, __kuid_val(uid), quota, GFP_KERNEL))) {
		kfree(quota);
		quota = NULL;
	}
	return quota;
}

static void quota_drop(kuid_t uid, struct quota *quota)
{
	lockdep_assert_held(&quota_lock);
	if (quota->own || quota->used)
		return;
	xa_erase(&quotas, __kuid_val(uid));
	kfree(quota);
}

static u64 limit_of(const struct quota *quota)
{
	return quota->own ? quota->bytes : READ_ONCE(reserve_quota);
}

static u32 take(struct kvpool_charge *charge, u32 blocks)
{
	kuid_t uid = current_uid();
	struct quota *quota;
	u64 limit;

	mutex_lock(&quota_lock);
	quota = quota_get(uid);
	if (!quota) {
		mutex_unlock(&quota_lock);
		return 0;
	}
	limit = limit_of(quota);
	if (!ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE)) {
		limit = limit > quota->used ? limit - quota->used : 0;
		blocks = min_t(u64, blocks, limit >> KVPOOL_BLOCK_SHIFT);
	}
	quota->used += (u64)blocks << KVPOOL_BLOCK_SHIFT;
	charge->reserve_uid = uid;
	charge->reserve_blocks = blocks;
	quota_drop(uid, quota);
	mutex_unlock(&quota_lock);
	return blocks;
}

/**
 * kvpool_quota_take - take of the caller's share of the reserve
 * @charge: of a pool; remembers what was taken
 * @blocks: how many it would like
 *
 * The quota does not bind CAP_SYS_RESOURCE. May wait for the reaper where the
 * reserve is all that may be used.
 *
 * Return: how many it may have, perhaps none.
 */
u32 kvpool_quota_take(struct kvpool_charge *charge, u32 blocks)
{
	u32 granted = take(charge, blocks);

	if (granted == blocks || !kvpool_reserve_only())
		return granted;
	/* What pools that just ended have of it is on its way back: let it arrive. */
	kvpool_quota_give(charge, granted);
	kvpool_reaper_settle();
	return take(charge, blocks);
}

/**
 * kvpool_quota_give - give back a part of what kvpool_quota_take() took
 * @charge: of the pool
 * @blocks: how many
 */
void kvpool_quota_give(struct kvpool_charge *charge, u32 blocks)
{
	struct quota *quota;

	if (!blocks || WARN_ON_ONCE(blocks > charge->reserve_blocks))
		return;
	mutex_lock(&quota_lock);
	charge->reserve_blocks -= blocks;
	quota = xa_load(&quotas, __kuid_val(charge->reserve_uid));
	quota->used -= (u64)blocks << KVPOOL_BLOCK_SHIFT;
	quota_drop(charge->reserve_uid, quota);
	mutex_unlock(&quota_lock);
}

/**
 * kvpool_quota_set - give a user a quota of its own, or take it away
 * @uid: the user
 * @bytes: the quota; NULL: the default holds again
 *
 * What the user has stays, also when it is more.
 *
 * Return: 0 or -ENOMEM.
 */
int kvpool_quota_set(kuid_t uid, const u64 *bytes)
{
	struct quota *quota;

	mutex_lock(&quota_lock);
	quota = quota_get(uid);
	if (quota) {
		quota->own = bytes;
		quota->bytes = bytes ? *bytes : 0;
		quota_drop(uid, quota);
	}
	mutex_unlock(&quota_lock);
	return quota ? 0 : -ENOMEM;
}

/**
 * kvpool_quota_set_default - set what holds for everybody else
 * @bytes: the quota of each user
 */
void kvpool_quota_set_default(u64 bytes)
{
	WRITE_ONCE(reserve_quota, bytes);
}

/**
 * kvpool_quota_default - what holds for users without a quota of their own
 */
u64 kvpool_quota_default(void)
{
	return READ_ONCE(reserve_quota);
}

/**
 * kvpool_quota_next - walk the users that have a quota of their own, or memory
 * @uid: number in the initial user namespace to look from; set to the one found
 * @bytes: set to its quota
 * @used: set to what it has
 *
 * Return: whether there is another.
 */
bool kvpool_quota_next(unsigned long *uid, u64 *bytes, u64 *used)
{
	struct quota *quota;

	mutex_lock(&quota_lock);
	quota = xa_find(&quotas, uid, U32_MAX, XA_PRESENT);
	if (quota) {
		*bytes = limit_of(quota);
		*used = quota->used;
	}
	mutex_unlock(&quota_lock);
	return quota;
}

/**
 * kvpool_quota_exit - forget them; no pool is left
 */
void kvpool_quota_exit(void)
{
	struct quota *quota;
	unsigned long uid;

	xa_for_each(&quotas, uid, quota) {
		WARN_ON_ONCE(quota->used);
		kfree(quota);
	}
	xa_destroy(&quotas);
}

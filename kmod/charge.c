// SPDX-License-Identifier: GPL-2.0
/* Limits: the administrator's module parameters, and RLIMIT_MEMLOCK of the creator. */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/swap.h>
#include <net/netlink.h>

#include "internal.h"

static unsigned long long max_bytes;
module_param(max_bytes, ullong, 0644);
MODULE_PARM_DESC(max_bytes, "Bytes that all pools may hold together (default: 95% of the memory)");

static unsigned int max_pools = 65536;
module_param(max_pools, uint, 0644);
MODULE_PARM_DESC(max_pools, "Pools that may exist at once (default: 65536)");

static unsigned long long min_available;
module_param(min_available, ullong, 0644);
MODULE_PARM_DESC(min_available,
		 "Bytes that creation leaves to the rest of the machine (default: 1/64 of the memory)");

/* Protects held_bytes and held_pools. */
static DEFINE_SPINLOCK(held_lock);
static u64 held_bytes;
static u32 held_pools;

/**
 * kvpool_charge_init - set the defaults that depend on the machine
 */
void kvpool_charge_init(void)
{
	u64 total = (u64)totalram_pages() << PAGE_SHIFT;

	if (!max_bytes)
		max_bytes = total - div_u64(total, 20);
	if (!min_available)
		min_available = total / 64;
}

static u64 available_bytes(void)
{
	long pages = si_mem_available();

	return pages > 0 ? (u64)pages << PAGE_SHIFT : 0;
}

/**
 * kvpool_memory_check - can so much memory be there, and leave enough to others?
 * @bytes: that shall be allocated
 * @extack: gets the numbers
 *
 * Return: 0 or -ENOMEM.
 */
int kvpool_memory_check(u64 bytes, struct netlink_ext_ack *extack)
{
	u64 available = available_bytes(), keep = READ_ONCE(min_available);

	if (available >= keep && bytes <= available - keep)
		return 0;
	NL_SET_ERR_MSG_FMT(extack, "needs %llu MiB; available %llu, min_available %llu",
			   bytes >> 20, available >> 20, keep >> 20);
	return -ENOMEM;
}

/**
 * kvpool_memory_low - would more blocks take what others need?
 */
bool kvpool_memory_low(void)
{
	return available_bytes() < READ_ONCE(min_available) + KVPOOL_BLOCK_SIZE;
}

static int charge_memlock(struct kvpool_charge *charge, u64 bytes, struct netlink_ext_ack *extack)
{
	struct user_struct *user = current_user();
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = bytes >> PAGE_SHIFT;
	long old, new;

	if (capable(CAP_IPC_LOCK))
		return 0;

	old = atomic_long_read(&user->locked_vm);
	do {
		new = old + pages;
		if ((unsigned long)new > limit) {
			NL_SET_ERR_MSG_FMT(extack,
					   "RLIMIT_MEMLOCK %lu KiB: in use %lu, pool needs %lu",
					   limit << (PAGE_SHIFT - 10), old << (PAGE_SHIFT - 10),
					   pages << (PAGE_SHIFT - 10));
			return -EDQUOT;
		}
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &old, new));

	charge->user = get_uid(user);
	return 0;
}

static int charge_module(u64 bytes, struct netlink_ext_ack *extack)
{
	u64 limit = READ_ONCE(max_bytes);
	u32 limit_pools = READ_ONCE(max_pools);
	int err = -EDQUOT;

	spin_lock(&held_lock);
	if (held_pools >= limit_pools) {
		NL_SET_ERR_MSG_FMT(extack, "max_pools: %u of %u pools exist", held_pools,
				   limit_pools);
	} else if (bytes > limit || held_bytes > limit - bytes) {
		NL_SET_ERR_MSG_FMT(extack, "max_bytes %llu MiB: held %llu, pool needs %llu",
				   limit >> 20, held_bytes >> 20, bytes >> 20);
	} else {
		held_bytes += bytes;
		held_pools++;
		err = 0;
	}
	spin_unlock(&held_lock);
	return err;
}

static void uncharge_module(u64 bytes)
{
	spin_lock(&held_lock);
	held_bytes -= bytes;
	held_pools--;
	spin_unlock(&held_lock);
}

/**
 * kvpool_charge - take a pool's share of every limit, or of none
 * @charge: filled in
 * @bytes: mapped length of the pool
 * @extack: gets the limit and the numbers
 *
 * Return: 0 or -EDQUOT.
 */
int kvpool_charge(struct kvpool_charge *charge, u64 bytes, struct netlink_ext_ack *extack)
{
	int err;

	err = charge_module(bytes, extack);
	if (err)
		return err;
	err = charge_memlock(charge, bytes, extack);
	if (err) {
		uncharge_module(bytes);
		return err;
	}
	charge->bytes = bytes;
	return 0;
}

/**
 * kvpool_uncharge - give back what kvpool_charge() and kvpool_quota_take() took
 * @charge: of the pool
 */
void kvpool_uncharge(struct kvpool_charge *charge)
{
	kvpool_quota_give(charge, charge->reserve_blocks);
	if (!charge->bytes)
		return;
	if (charge->user) {
		atomic_long_sub(charge->bytes >> PAGE_SHIFT, &charge->user->locked_vm);
		free_uid(charge->user);
		charge->user = NULL;
	}
	uncharge_module(charge->bytes);
	charge->bytes = 0;
}

/**
 * kvpool_charge_fill - put the limits into a statistics message
 * @skb: the message
 */
int kvpool_charge_fill(struct sk_buff *skb)
{
	u64 bytes, available = available_bytes(), keep = READ_ONCE(min_available);

	spin_lock(&held_lock);
	bytes = held_bytes;
	spin_unlock(&held_lock);

	available = available > keep ? available - keep : 0;
	if (nla_put_u64_64bit(skb, KVPOOL_A_STATS_BYTES, bytes, KVPOOL_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, KVPOOL_A_STATS_MAX_BYTES, READ_ONCE(max_bytes),
			      KVPOOL_A_STATS_PAD) ||
	    nla_put_u32(skb, KVPOOL_A_STATS_MAX_POOLS, READ_ONCE(max_pools)) ||
	    nla_put_u64_64bit(skb, KVPOOL_A_STATS_MIN_AVAILABLE, keep, KVPOOL_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, KVPOOL_A_STATS_AVAILABLE, available, KVPOOL_A_STATS_PAD))
		return -EMSGSIZE;
	return 0;
}

#ifdef KVPOOL_KUNIT
#include "charge_test.c"
#endif

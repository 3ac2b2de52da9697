// SPDX-License-Identifier: GPL-2.0
/* What a pool looks like in a netlink message, in the reader's namespaces. */
#include <linux/pid_namespace.h>
#include <linux/user_namespace.h>

#include "netlink.h"

static int put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, KVPOOL_A_POOL_PAD);
}

/**
 * kvpool_fill_identity - put id and generation into a message
 * @skb: the message
 * @pool: any
 */
int kvpool_fill_identity(struct sk_buff *skb, const struct kvpool_pool *pool)
{
	return nla_put_u32(skb, KVPOOL_A_POOL_ID, pool->id) ||
	       put_u64(skb, KVPOOL_A_POOL_GENERATION, pool->generation);
}

static int fill_tags(struct sk_buff *skb, const struct kvpool_tags *tags)
{
	struct user_namespace *ns = current_user_ns();

	return nla_put_string(skb, KVPOOL_A_POOL_NAME, tags->name) ||
	       nla_put_string(skb, KVPOOL_A_POOL_DOMAIN, tags->domain) ||
	       nla_put_string(skb, KVPOOL_A_POOL_ROLE, tags->role) ||
	       nla_put_string(skb, KVPOOL_A_POOL_LABEL, tags->label) ||
	       (tags->rank != KVPOOL_NO_RANK &&
		nla_put_u32(skb, KVPOOL_A_POOL_RANK, tags->rank)) ||
	       nla_put_u32(skb, KVPOOL_A_POOL_LIFETIME, tags->lifetime) ||
	       nla_put_u32(skb, KVPOOL_A_POOL_UID, from_kuid_munged(ns, tags->uid)) ||
	       nla_put_u32(skb, KVPOOL_A_POOL_GID, from_kgid_munged(ns, tags->gid)) ||
	       nla_put_u32(skb, KVPOOL_A_POOL_MODE, tags->mode);
}

static int fill_owner(struct sk_buff *skb, const struct kvpool_owner *owner)
{
	pid_t pid = pid_nr_ns(owner->pid, task_active_pid_ns(current));

	return nla_put_u32(skb, KVPOOL_A_POOL_OWNER_UID,
			   from_kuid_munged(current_user_ns(), owner->uid)) ||
	       nla_put_u32(skb, KVPOOL_A_POOL_OWNER_PID, pid) ||
	       put_u64(skb, KVPOOL_A_POOL_OWNER_START, owner->start);
}

/**
 * kvpool_fill_pool - put what pool-get answers into a message
 * @skb: the message
 * @pool: locked
 * @pinned: blocks that devices hold, counted before
 */
int kvpool_fill_pool(struct sk_buff *skb, const struct kvpool_pool *pool, u32 pinned)
{
	dev_t device = kvpool_node_number(pool);

	lockdep_assert_held(&pool->lock);
	if (kvpool_fill_identity(skb, pool) || fill_tags(skb, &pool->tags) ||
	    fill_owner(skb, &pool->owner) ||
	    put_u64(skb, KVPOOL_A_POOL_LENGTH, pool->length) ||
	    put_u64(skb, KVPOOL_A_POOL_MAPPED_LENGTH, pool->mapped_length) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_BLOCK_SIZE, KVPOOL_BLOCK_SIZE) ||
	    (pool->node != KVPOOL_NO_NODE &&
	     nla_put_u32(skb, KVPOOL_A_POOL_NODE, pool->node)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_PLACEMENT, pool->placement) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_STATE, kvpool_pool_state(pool)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_REGISTRATION, pool->registration) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_BLOCKS, pool->blocks.count) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_PINNED_BLOCKS, pinned) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_MAPPINGS, atomic_read(&pool->mappings)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_FILES, pool->files) ||
	    /* The pointer is only compared with NULL. */
	    (READ_ONCE(pool->session) && nla_put_flag(skb, KVPOOL_A_POOL_OWNED)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_DEVICE, MAJOR(device) << 20 | MINOR(device)))
		return -EMSGSIZE;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0
/* Generic netlink: the functions of the table that dump. */
#include "netlink.h"

/*
 * What a dump remembers. Only its first part runs in the context of the
 * sender; the rest runs in that of whoever reads the socket, and must show
 * what the sender may see.
 */
struct dump {
	const struct cred *cred;
	unsigned long id;
	struct kvpool_pool *pool;	/* of pin-get */
	u32 block;
};

static_assert(sizeof(struct dump) <= sizeof_field(struct netlink_callback, ctx));

static struct dump *dump_of(struct netlink_callback *cb)
{
	return (struct dump *)cb->ctx;
}

int kvpool_nl_pool_get_start(struct netlink_callback *cb)
{
	int err = kvpool_request_sender(cb->skb, cb->extack);

	if (!err)
		dump_of(cb)->cred = get_current_cred();
	return err;
}

int kvpool_nl_pool_get_done(struct netlink_callback *cb)
{
	put_cred(dump_of(cb)->cred);
	return 0;
}

static int dump_pool(struct sk_buff *skb, struct netlink_callback *cb, struct kvpool_pool *pool)
{
	void *header;
	int err = 0;
	u32 pinned;

	if (kvpool_pool_pinned(pool, &pinned))
		return 0;
	mutex_lock(&pool->lock);
	/* Tags may have changed meanwhile. */
	if (!kvpool_may_open(pool, false))
		goto unlock;
	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &kvpool_family,
			     NLM_F_MULTI, KVPOOL_CMD_POOL_GET);
	if (!header) {
		err = -EMSGSIZE;
		goto unlock;
	}
	genl_dump_check_consistent(cb, header);
	err = kvpool_fill_pool(skb, pool, pinned);
	if (err)
		genlmsg_cancel(skb, header);
	else
		genlmsg_end(skb, header);
unlock:
	mutex_unlock(&pool->lock);
	return err;
}

int kvpool_nl_pool_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);
	const struct cred *old = override_creds(dump->cred);
	struct kvpool_pool *pool;
	int err = 0;

	cb->seq = kvpool_registry_changes();
	while (!err && (pool = kvpool_registry_next(&dump->id))) {
		err = dump_pool(skb, cb, pool);
		kvpool_pool_put(pool);
		if (!err)
			dump->id++;
		cond_resched();
	}
	revert_creds(old);
	return err && !skb->len ? err : skb->len;
}

int kvpool_nl_pin_get_start(struct netlink_callback *cb)
{
	/* The policy has checked them. */
	struct nlattr *id = nlmsg_find_attr(cb->nlh, GENL_HDRLEN, KVPOOL_A_POOL_ID);
	struct nlattr *generation = nlmsg_find_attr(cb->nlh, GENL_HDRLEN, KVPOOL_A_POOL_GENERATION);
	struct kvpool_pool *pool;
	int err;

	err = kvpool_request_sender(cb->skb, cb->extack);
	if (err)
		return err;
	if (!id) {
		NL_SET_ERR_MSG_FMT(cb->extack, "id: must be given");
		return -EINVAL;
	}
	pool = kvpool_registry_find(nla_get_u32(id));
	if (!pool) {
		NL_SET_ERR_MSG_FMT(cb->extack, "no such pool");
		return -ENOENT;
	}
	mutex_lock(&pool->lock);
	if (!kvpool_may_open(pool, false)) {
		NL_SET_ERR_MSG_FMT(cb->extack, "uid, gid and mode of the pool forbid it");
		err = -EACCES;
	} else if (generation && nla_get_u64(generation) != pool->generation) {
		NL_SET_ERR_MSG_FMT(cb->extack, "stale: pool %u has generation %llu now", pool->id,
				   pool->generation);
		err = -ESTALE;
	}
	mutex_unlock(&pool->lock);
	if (err) {
		kvpool_pool_put(pool);
		return err;
	}
	dump_of(cb)->pool = pool;
	return 0;
}

int kvpool_nl_pin_get_done(struct netlink_callback *cb)
{
	kvpool_pool_put(dump_of(cb)->pool);
	return 0;
}

/*
 * The next run of pinned blocks from *first on; 0 when there is none. Lets others
 * have the lock in between.
 */
static u32 next_run(struct kvpool_pool *pool, u32 *first)
{
	const struct kvpool_blocks *blocks = &pool->blocks;
	u32 block, count = 0;

	lockdep_assert_held(&pool->lock);
	for (block = *first; block < blocks->count; block++) {
		if (kvpool_block_pinned(blocks, block))
			count++;
		else if (count)
			break;
		if (block % KVPOOL_SLICE == KVPOOL_SLICE - 1) {
			mutex_unlock(&pool->lock);
			cond_resched();
			mutex_lock(&pool->lock);
		}
	}
	*first = block - count;
	return count;
}

int kvpool_nl_pin_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = dump_of(cb);
	struct kvpool_pool *pool = dump->pool;
	u32 first, count;
	void *header;

	mutex_lock(&pool->lock);
	for (first = dump->block; (count = next_run(pool, &first)); first += count) {
		header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				     &kvpool_family, NLM_F_MULTI, KVPOOL_CMD_PIN_GET);
		if (!header)
			break;
		if (kvpool_fill_identity(skb, pool) ||
		    nla_put_u32(skb, KVPOOL_A_POOL_FIRST_BLOCK, first) ||
		    nla_put_u32(skb, KVPOOL_A_POOL_BLOCK_COUNT, count)) {
			genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
	}
	mutex_unlock(&pool->lock);
	dump->block = first;
	return skb->len;
}

#ifdef KVPOOL_KUNIT
#include "dump_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: the family, and the functions of its table that answer a
 * single request.
 *
 * A request runs in the context of its sender, so the descriptor that it names
 * is looked up in the sender's table: whoever passes a request to a privileged
 * process passes no proof with it. Whoever passes it a socket, in place of its
 * standard error say, gets no more by what it writes there than by writing himself.
 */
#include <linux/file.h>

#include "netlink.h"

static struct file *session_get(const struct sk_buff *skb, const struct genl_info *info)
{
	return kvpool_request_session(skb, info, info->attrs[KVPOOL_A_POOL_SESSION_FD]);
}

/* The pool that a request names, by id and generation or by name, with a reference. */
static struct kvpool_pool *pool_get(const struct genl_info *info, bool generation)
{
	struct nlattr **attrs = info->attrs;
	struct kvpool_pool *pool;

	if (attrs[KVPOOL_A_POOL_ID]) {
		pool = kvpool_registry_find(nla_get_u32(attrs[KVPOOL_A_POOL_ID]));
	} else if (!generation && attrs[KVPOOL_A_POOL_NAME]) {
		pool = kvpool_registry_find_name(nla_data(attrs[KVPOOL_A_POOL_NAME]));
	} else {
		NL_SET_ERR_MSG_FMT(info->extack, "id%s: must be given",
				   generation ? "" : " or name");
		return ERR_PTR(-EINVAL);
	}
	if (!pool) {
		NL_SET_ERR_MSG_FMT(info->extack, "no such pool");
		return ERR_PTR(-ENOENT);
	}
	if (generation && !attrs[KVPOOL_A_POOL_GENERATION]) {
		NL_SET_ERR_MSG_FMT(info->extack, "generation: must be given");
		kvpool_pool_put(pool);
		return ERR_PTR(-EINVAL);
	}
	if (attrs[KVPOOL_A_POOL_GENERATION] &&
	    nla_get_u64(attrs[KVPOOL_A_POOL_GENERATION]) != pool->generation) {
		NL_SET_ERR_MSG_FMT(info->extack, "stale: pool %u has generation %llu now", pool->id,
				   pool->generation);
		kvpool_pool_put(pool);
		return ERR_PTR(-ESTALE);
	}
	return pool;
}

static struct sk_buff *reply_new(struct genl_info *info, u8 command, void **header)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	if (!skb)
		return NULL;
	*header = genlmsg_put_reply(skb, info, &kvpool_family, 0, command);
	if (*header)
		return skb;
	nlmsg_free(skb);
	return NULL;
}

static void fill_reply(struct sk_buff *reply, void *header, struct kvpool_pool *pool)
{
	mutex_lock(&pool->lock);
	/* The message has room for all of it: see NLMSG_GOODSIZE and KVPOOL_NAME_SIZE. */
	WARN_ON_ONCE(kvpool_fill_pool(reply, pool, 0));
	mutex_unlock(&pool->lock);
	genlmsg_end(reply, header);
}

static int create_now(const struct kvpool_request *request, struct kvpool_session *session,
		      struct sk_buff *reply, void *header, struct genl_info *info)
{
	struct kvpool_pool *pool = kvpool_pool_create(session, request, info->extack);
	int err;

	if (IS_ERR(pool)) {
		nlmsg_free(reply);
		return PTR_ERR(pool);
	}
	fill_reply(reply, header, pool);
	err = genlmsg_reply(reply, info);
	/* A full receive buffer: nobody knows the pool, so nobody would end it. */
	if (err)
		kvpool_pool_destroy(pool, true, NULL);
	kvpool_pool_put(pool);
	return err;
}

static int create_deferred(const struct kvpool_request *request, struct kvpool_session *session,
			   struct sk_buff *reply, void *header, struct genl_info *info)
{
	struct kvpool_pool *pool = kvpool_pool_reserve(request, info->extack);
	u32 id;
	u64 generation;
	int err;

	if (IS_ERR(pool)) {
		nlmsg_free(reply);
		return PTR_ERR(pool);
	}
	id = pool->id;
	generation = pool->generation;
	fill_reply(reply, header, pool);
	/*
	 * Before the answer, which says that it can be filled. Another thread that guesses
	 * id and generation may do so at once: the pool is not to be looked at any more.
	 */
	kvpool_session_keep(session, pool);
	err = genlmsg_reply(reply, info);
	if (err) {
		pool = kvpool_session_take(session, id, generation);
		if (pool)
			kvpool_pool_abandon(pool);
	}
	return err;
}

/*
 * While a request runs, it keeps everybody who registers a netlink family waiting,
 * and behind those all requests of all families. So what takes long is better
 * deferred.
 */
int kvpool_nl_pool_create_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_request request;
	struct sk_buff *reply;
	struct file *file;
	void *header;
	int err;

	file = session_get(skb, info);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = kvpool_request_pool(info, &request);
	if (err)
		goto put_session;
	/* Before the pool: once that is published, nothing may fail. */
	reply = reply_new(info, KVPOOL_CMD_POOL_CREATE, &header);
	if (!reply) {
		err = -ENOMEM;
		goto put_session;
	}
	if (nla_get_flag(info->attrs[KVPOOL_A_POOL_DEFERRED]))
		err = create_deferred(&request, file->private_data, reply, header, info);
	else
		err = create_now(&request, file->private_data, reply, header, info);
put_session:
	fput(file);
	return err;
}

/* What a request to change a pool names, each with a reference. */
struct change {
	struct file *session;
	struct kvpool_pool *pool;
};

static int change_begin(const struct sk_buff *skb, const struct genl_info *info,
			struct change *change)
{
	change->session = session_get(skb, info);
	if (IS_ERR(change->session))
		return PTR_ERR(change->session);
	change->pool = pool_get(info, true);
	if (IS_ERR(change->pool)) {
		fput(change->session);
		return PTR_ERR(change->pool);
	}
	return 0;
}

static void change_end(struct change *change)
{
	kvpool_pool_put(change->pool);
	fput(change->session);
}

static int check_change(const struct change *change, struct netlink_ext_ack *extack)
{
	if (kvpool_may_change(change->pool, change->session->private_data))
		return 0;
	NL_SET_ERR_MSG_FMT(extack, "only the owner, the pool's uid or CAP_FOWNER may do this");
	return -EPERM;
}

int kvpool_nl_pool_destroy_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct change change;
	int err;

	err = change_begin(skb, info, &change);
	if (err)
		return err;
	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&change.pool->lock);
	err = check_change(&change, info->extack);
	mutex_unlock(&change.pool->lock);
	mutex_unlock(&kvpool_registry_lock);
	if (!err)
		err = kvpool_pool_destroy(change.pool,
					  nla_get_flag(info->attrs[KVPOOL_A_POOL_FORCE]),
					  info->extack);
	change_end(&change);
	return err;
}

int kvpool_nl_pool_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_tags tags;
	struct change change;
	u32 registration;
	int err;

	err = change_begin(skb, info, &change);
	if (err)
		return err;
	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&change.pool->lock);
	tags = change.pool->tags;
	registration = change.pool->registration;
	err = check_change(&change, info->extack);
	if (!err)
		err = kvpool_request_tags(info, &tags, &registration);
	if (!err)
		err = kvpool_pool_set(change.pool, &tags, registration, info->extack);
	mutex_unlock(&change.pool->lock);
	mutex_unlock(&kvpool_registry_lock);
	if (err >= 0) {
		/* The change is made, whether the node can be or not. */
		kvpool_netlink_notify(KVPOOL_CMD_POOL_CHANGE_NTF, change.pool);
		if (err)
			err = kvpool_node_replace(change.pool);
		if (err)
			NL_SET_ERR_MSG_FMT(info->extack,
					   "changed, but the node could not be made anew");
	}
	change_end(&change);
	return err;
}

int kvpool_nl_pool_claim_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct change change;
	int err;

	err = change_begin(skb, info, &change);
	if (err)
		return err;
	err = kvpool_pool_claim(change.pool, change.session->private_data, info->extack);
	change_end(&change);
	return err;
}

int kvpool_nl_pool_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_pool *pool;
	struct sk_buff *reply;
	void *header;
	u32 pinned;
	int err;

	err = kvpool_request_sender(skb, info->extack);
	if (err)
		return err;
	pool = pool_get(info, false);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	reply = reply_new(info, KVPOOL_CMD_POOL_GET, &header);
	if (!reply) {
		err = -ENOMEM;
		goto put_pool;
	}
	err = kvpool_pool_pinned(pool, &pinned);
	if (!err) {
		mutex_lock(&pool->lock);
		/* Tags may have changed meanwhile. */
		err = kvpool_may_open(pool, false) ? kvpool_fill_pool(reply, pool, pinned) :
						     -EACCES;
		mutex_unlock(&pool->lock);
	}
	if (err == -EACCES)
		NL_SET_ERR_MSG_FMT(info->extack, "uid, gid and mode of the pool forbid it");
	if (err)
		goto free_reply;
	kvpool_pool_put(pool);
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);

free_reply:
	nlmsg_free(reply);
put_pool:
	kvpool_pool_put(pool);
	return err;
}

int kvpool_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	u32 live = 0, orphans = 0, dying = 0;
	u64 dying_bytes = 0;
	struct kvpool_pool *pool;
	struct sk_buff *reply;
	unsigned long id = 0;
	void *header;

	while ((pool = kvpool_registry_next(&id))) {
		mutex_lock(&pool->lock);
		switch (kvpool_pool_state(pool)) {
		case KVPOOL_STATE_LIVE:
			live++;
			break;
		case KVPOOL_STATE_ORPHAN:
			orphans++;
			break;
		default:
			dying++;
			dying_bytes += (u64)pool->blocks.held << KVPOOL_BLOCK_SHIFT;
		}
		mutex_unlock(&pool->lock);
		kvpool_pool_put(pool);
		id++;
		cond_resched();
	}

	reply = reply_new(info, KVPOOL_CMD_STATS_GET, &header);
	if (!reply)
		return -ENOMEM;
	if (nla_put_u32(reply, KVPOOL_A_STATS_POOLS, live) ||
	    nla_put_u32(reply, KVPOOL_A_STATS_ORPHANS, orphans) ||
	    nla_put_u32(reply, KVPOOL_A_STATS_DYING, dying) ||
	    nla_put_u32(reply, KVPOOL_A_STATS_SESSIONS, kvpool_session_count()) ||
	    nla_put_u64_64bit(reply, KVPOOL_A_STATS_DYING_BYTES, dying_bytes, KVPOOL_A_STATS_PAD) ||
	    nla_put_u64_64bit(reply, KVPOOL_A_STATS_CREATED, atomic64_read(&kvpool_created),
			      KVPOOL_A_STATS_PAD) ||
	    nla_put_u64_64bit(reply, KVPOOL_A_STATS_DESTROYED, atomic64_read(&kvpool_destroyed),
			      KVPOOL_A_STATS_PAD) ||
	    nla_put_u64_64bit(reply, KVPOOL_A_STATS_FAILED, atomic64_read(&kvpool_failed),
			      KVPOOL_A_STATS_PAD) ||
	    kvpool_charge_fill(reply)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* As when a listener's buffer is full: its next recv() is ENOBUFS, and it looks for itself. */
static void tell_of_loss(void)
{
	struct net *net;

	rcu_read_lock();
	for_each_net_rcu(net)
		genl_set_err(&kvpool_family, net, 0, KVPOOL_NL_MCGRP_POOLS, -ENOBUFS);
	rcu_read_unlock();
}

static struct sk_buff *event_new(u8 command, const struct kvpool_pool *pool, void **header)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	if (!skb)
		return NULL;
	*header = genlmsg_put(skb, 0, 0, &kvpool_family, 0, command);
	if (*header && !kvpool_fill_identity(skb, pool))
		return skb;
	nlmsg_free(skb);
	return NULL;
}

static void event_send(struct sk_buff *skb, void *header)
{
	int err;

	genlmsg_end(skb, header);
	err = genlmsg_multicast_allns(&kvpool_family, skb, 0, KVPOOL_NL_MCGRP_POOLS);
	/* Nobody listens: nothing is lost. */
	if (err && err != -ESRCH)
		tell_of_loss();
}

/**
 * kvpool_netlink_notify - tell listeners which pool something happened to
 * @command: KVPOOL_CMD_POOL_*_NTF
 * @pool: referenced
 *
 * Goes to all network namespaces and all users, so it says nothing else; a
 * listener asks pool-get, which checks permission.
 */
void kvpool_netlink_notify(u8 command, const struct kvpool_pool *pool)
{
	void *header;
	struct sk_buff *skb = event_new(command, pool, &header);

	if (skb)
		event_send(skb, header);
	else
		tell_of_loss();
}

/**
 * kvpool_netlink_notify_progress - tell listeners how far a creation is
 * @pool: LIFE_NEW: can't be asked for yet
 * @percent: of its memory; how much that is, everybody may not know
 */
void kvpool_netlink_notify_progress(const struct kvpool_pool *pool, u32 percent)
{
	void *header;
	struct sk_buff *skb = event_new(KVPOOL_CMD_POOL_PROGRESS_NTF, pool, &header);

	if (!skb)
		return;
	if (nla_put_u32(skb, KVPOOL_A_POOL_PROGRESS, percent))
		nlmsg_free(skb);
	else
		event_send(skb, header);
}

struct genl_family kvpool_family = {
	.name		= KVPOOL_FAMILY_NAME,
	.version	= KVPOOL_FAMILY_VERSION,
	/* Every command has a policy of its own, none reads reserved header fields. */
	.resv_start_op	= 1,
	.netnsok	= true,
	/* Creation takes long; what needs a lock takes its own. */
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.ops		= kvpool_nl_ops,
	.n_ops		= KVPOOL_NL_OPS,
	.mcgrps		= kvpool_nl_mcgrps,
	.n_mcgrps	= KVPOOL_NL_MCGRPS,
};

/**
 * kvpool_netlink_init - register the family
 */
int kvpool_netlink_init(void)
{
	return genl_register_family(&kvpool_family);
}

/**
 * kvpool_netlink_exit - waits for requests under way
 */
void kvpool_netlink_exit(void)
{
	genl_unregister_family(&kvpool_family);
}

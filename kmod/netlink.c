// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: the functions that the generated table names.
 *
 * A request runs in the context of its sender, so the descriptor that it names
 * is looked up in the sender's table: whoever passes a request to a privileged
 * process passes no proof with it.
 */
#include <linux/file.h>
#include <linux/pid_namespace.h>
#include <linux/user_namespace.h>

#include "netlink_gen.h"
#include "request.h"

static struct genl_family family;

/* The session that a request names. Its file keeps it until session_put(). */
static struct file *session_get(const struct genl_info *info)
{
	struct nlattr *attr = info->attrs[KVPOOL_A_POOL_SESSION_FD];
	struct file *file;

	if (!attr) {
		NL_SET_ERR_MSG_FMT(info->extack, "session-fd: must be given");
		return ERR_PTR(-EINVAL);
	}
	file = fget(nla_get_s32(attr));
	if (!file) {
		NL_SET_ERR_MSG_FMT(info->extack, "session-fd: no such descriptor");
		return ERR_PTR(-EBADF);
	}
	if (file->f_op != &kvpool_control_fops) {
		NL_SET_ERR_MSG_FMT(info->extack, "session-fd: is not the control node");
		fput(file);
		return ERR_PTR(-EINVAL);
	}
	if (!(file->f_mode & FMODE_WRITE)) {
		NL_SET_ERR_MSG_FMT(info->extack, "session-fd: is not open for writing");
		fput(file);
		return ERR_PTR(-EACCES);
	}
	return file;
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
		NL_SET_ERR_MSG_FMT(info->extack, "id%s: must be given", generation ? "" : " or name");
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

static int put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, KVPOOL_A_POOL_PAD);
}

static int fill_identity(struct sk_buff *skb, const struct kvpool_pool *pool)
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

static int fill_pool(struct sk_buff *skb, const struct kvpool_pool *pool)
{
	dev_t device = kvpool_node_number(pool);

	lockdep_assert_held(&pool->lock);
	if (fill_identity(skb, pool) || fill_tags(skb, &pool->tags) ||
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
	    nla_put_u32(skb, KVPOOL_A_POOL_PINNED_BLOCKS, kvpool_blocks_pinned(&pool->blocks)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_MAPPINGS, atomic_read(&pool->mappings)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_FILES, pool->files) ||
	    /* The pointer is only compared with NULL. */
	    (READ_ONCE(pool->session) && nla_put_flag(skb, KVPOOL_A_POOL_OWNED)) ||
	    nla_put_u32(skb, KVPOOL_A_POOL_DEVICE, MAJOR(device) << 20 | MINOR(device)))
		return -EMSGSIZE;
	return 0;
}

static struct sk_buff *reply_new(struct genl_info *info, u8 command, void **header)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);

	if (!skb)
		return NULL;
	*header = genlmsg_put_reply(skb, info, &family, 0, command);
	if (*header)
		return skb;
	nlmsg_free(skb);
	return NULL;
}

int kvpool_nl_pool_create_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_request request;
	struct kvpool_pool *pool;
	struct sk_buff *reply;
	struct file *session;
	void *header;
	int err;

	session = session_get(info);
	if (IS_ERR(session))
		return PTR_ERR(session);
	err = kvpool_request_pool(info, &request);
	if (err)
		goto put_session;
	/* Before the pool: once that is published, nothing may fail. */
	reply = reply_new(info, KVPOOL_CMD_POOL_CREATE, &header);
	if (!reply) {
		err = -ENOMEM;
		goto put_session;
	}
	pool = kvpool_pool_create(session->private_data, &request, info->extack);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto free_reply;
	}
	mutex_lock(&pool->lock);
	err = fill_pool(reply, pool);
	mutex_unlock(&pool->lock);
	kvpool_pool_put(pool);
	/* The message has room for all of it: see NLMSG_GOODSIZE and KVPOOL_NAME_SIZE. */
	if (WARN_ON_ONCE(err))
		goto free_reply;
	genlmsg_end(reply, header);
	err = genlmsg_reply(reply, info);
	fput(session);
	return err;

free_reply:
	nlmsg_free(reply);
put_session:
	fput(session);
	return err;
}

/* May the session of a request change the pool? */
static int check_change(struct kvpool_pool *pool, const struct kvpool_session *session,
			struct netlink_ext_ack *extack)
{
	if (kvpool_may_change(pool, session))
		return 0;
	NL_SET_ERR_MSG_FMT(extack, "only the owner, the pool's uid or CAP_FOWNER may do this");
	return -EPERM;
}

int kvpool_nl_pool_destroy_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_pool *pool;
	struct file *session;
	int err;

	session = session_get(info);
	if (IS_ERR(session))
		return PTR_ERR(session);
	pool = pool_get(info, true);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto put_session;
	}
	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&pool->lock);
	err = check_change(pool, session->private_data, info->extack);
	mutex_unlock(&pool->lock);
	mutex_unlock(&kvpool_registry_lock);
	if (!err)
		err = kvpool_pool_destroy(pool, nla_get_flag(info->attrs[KVPOOL_A_POOL_FORCE]),
					  info->extack);
	kvpool_pool_put(pool);
put_session:
	fput(session);
	return err;
}

int kvpool_nl_pool_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_pool *pool;
	struct kvpool_tags tags;
	struct file *session;
	u32 registration;
	int err;

	session = session_get(info);
	if (IS_ERR(session))
		return PTR_ERR(session);
	pool = pool_get(info, true);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto put_session;
	}
	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&pool->lock);
	tags = pool->tags;
	registration = pool->registration;
	err = check_change(pool, session->private_data, info->extack);
	if (!err)
		err = kvpool_request_tags(info, &tags, &registration);
	if (!err)
		err = kvpool_pool_set(pool, &tags, registration, info->extack);
	mutex_unlock(&pool->lock);
	mutex_unlock(&kvpool_registry_lock);
	if (err > 0)
		err = kvpool_node_replace(pool);
	if (!err)
		kvpool_netlink_notify(KVPOOL_CMD_POOL_CHANGE_NTF, pool);
	kvpool_pool_put(pool);
put_session:
	fput(session);
	return err;
}

int kvpool_nl_pool_claim_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_pool *pool;
	struct file *session;
	int err;

	session = session_get(info);
	if (IS_ERR(session))
		return PTR_ERR(session);
	pool = pool_get(info, true);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto put_session;
	}
	err = kvpool_pool_claim(pool, session->private_data, info->extack);
	kvpool_pool_put(pool);
put_session:
	fput(session);
	return err;
}

int kvpool_nl_pool_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct kvpool_pool *pool;
	struct sk_buff *reply;
	void *header;
	int err;

	pool = pool_get(info, false);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	reply = reply_new(info, KVPOOL_CMD_POOL_GET, &header);
	if (!reply) {
		err = -ENOMEM;
		goto put_pool;
	}
	mutex_lock(&pool->lock);
	if (kvpool_may_open(pool, false)) {
		err = fill_pool(reply, pool);
	} else {
		NL_SET_ERR_MSG_FMT(info->extack, "uid, gid and mode of the pool forbid it");
		err = -EACCES;
	}
	mutex_unlock(&pool->lock);
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
	dump_of(cb)->cred = get_current_cred();
	return 0;
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

	mutex_lock(&pool->lock);
	if (!kvpool_may_open(pool, false))
		goto unlock;
	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
			     NLM_F_MULTI, KVPOOL_CMD_POOL_GET);
	if (!header) {
		err = -EMSGSIZE;
		goto unlock;
	}
	genl_dump_check_consistent(cb, header);
	err = fill_pool(skb, pool);
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
	int err = 0;

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
	if (!kvpool_may_open(pool, false))
		err = -EACCES;
	else if (generation && nla_get_u64(generation) != pool->generation)
		err = -ESTALE;
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

/* The next run of pinned blocks from *first on; 0 when there is none. */
static u32 next_run(struct kvpool_pool *pool, u32 *first)
{
	const struct kvpool_blocks *blocks = &pool->blocks;
	u32 block = *first, count = 0;

	lockdep_assert_held(&pool->lock);
	while (block < blocks->count && !kvpool_block_pinned(blocks, block))
		block++;
	*first = block;
	for (; block < blocks->count && kvpool_block_pinned(blocks, block); block++)
		count++;
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
		header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				     NLM_F_MULTI, KVPOOL_CMD_PIN_GET);
		if (!header)
			break;
		if (fill_identity(skb, pool) ||
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

/**
 * kvpool_netlink_notify - tell listeners which pool something happened to
 * @command: KVPOOL_CMD_POOL_*_NTF
 * @pool: referenced
 *
 * Goes to all network namespaces and all users, so it says nothing else; a
 * listener asks pool-get, which checks permission. A message that can't be
 * made is lost, which listeners must expect of any event.
 */
void kvpool_netlink_notify(u8 command, const struct kvpool_pool *pool)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	void *header;

	if (!skb)
		return;
	header = genlmsg_put(skb, 0, 0, &family, 0, command);
	if (!header || fill_identity(skb, pool)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_multicast_allns(&family, skb, 0, KVPOOL_NL_MCGRP_POOLS);
}

static struct genl_family family = {
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
	return genl_register_family(&family);
}

/**
 * kvpool_netlink_exit - waits for requests under way
 */
void kvpool_netlink_exit(void)
{
	genl_unregister_family(&family);
}

// SPDX-License-Identifier: GPL-2.0
/* Generic netlink: the reserve and its quotas. */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/nodemask.h>

#include "netlink.h"

static int put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, KVPOOL_A_RESERVE_PAD);
}

/* Everything is checked before anything is set. */
int kvpool_nl_reserve_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct nlattr *target = attrs[KVPOOL_A_RESERVE_TARGET];
	struct nlattr *quota = attrs[KVPOOL_A_RESERVE_QUOTA];
	kuid_t uid = INVALID_UID;
	struct file *session;
	u64 bytes;
	u32 node = 0;
	int err = 0;

	session = kvpool_request_session(skb, info, attrs[KVPOOL_A_RESERVE_SESSION_FD]);
	if (IS_ERR(session))
		return PTR_ERR(session);
	if (!capable(CAP_SYS_ADMIN)) {
		NL_SET_ERR_MSG_FMT(info->extack, "setting the reserve needs CAP_SYS_ADMIN");
		err = -EPERM;
		goto put_session;
	}
	if (!target != !attrs[KVPOOL_A_RESERVE_NODE]) {
		NL_SET_ERR_MSG_FMT(info->extack, "node and target: give both or none");
		err = -EINVAL;
		goto put_session;
	}
	if (target) {
		node = nla_get_u32(attrs[KVPOOL_A_RESERVE_NODE]);
		if (node >= nr_node_ids || !node_state(node, N_MEMORY)) {
			NL_SET_ERR_MSG_FMT(info->extack, "node: there is no node %u with memory",
					   node);
			err = -ENODEV;
			goto put_session;
		}
		if (!kvpool_reserve_fits(nla_get_u64(target))) {
			NL_SET_ERR_MSG_FMT(info->extack, "target: more than any machine has");
			err = -EINVAL;
			goto put_session;
		}
	}
	if (attrs[KVPOOL_A_RESERVE_UID]) {
		uid = make_kuid(current_user_ns(), nla_get_u32(attrs[KVPOOL_A_RESERVE_UID]));
		if (!uid_valid(uid)) {
			NL_SET_ERR_MSG_FMT(info->extack,
					   "uid has no meaning in this user namespace");
			err = -EINVAL;
			goto put_session;
		}
	}
	/* The only part that can fail comes first. */
	bytes = quota ? nla_get_u64(quota) : 0;
	if (uid_valid(uid)) {
		err = kvpool_quota_set(uid, quota ? &bytes : NULL);
		if (err)
			goto put_session;
	} else if (quota) {
		kvpool_quota_set_default(bytes);
	}
	if (target)
		kvpool_reserve_set(node, nla_get_u64(target));
	if (attrs[KVPOOL_A_RESERVE_POLICY])
		kvpool_reserve_set_only(nla_get_u32(attrs[KVPOOL_A_RESERVE_POLICY]) ==
					KVPOOL_RESERVE_POLICY_ONLY);
put_session:
	fput(session);
	return err;
}

/*
 * A dump goes through the policy, the nodes, and the users. As any dump, only its
 * first part runs in the context of the sender.
 */
struct dump {
	const struct cred *cred;
	enum { DUMP_POLICY, DUMP_NODES, DUMP_USERS, DUMP_END } part;
	unsigned long next;
};

static_assert(sizeof(struct dump) <= sizeof_field(struct netlink_callback, ctx));

int kvpool_nl_reserve_get_start(struct netlink_callback *cb)
{
	int err = kvpool_request_sender(cb->skb, cb->extack);

	if (!err)
		((struct dump *)cb->ctx)->cred = get_current_cred();
	return err;
}

int kvpool_nl_reserve_get_done(struct netlink_callback *cb)
{
	put_cred(((struct dump *)cb->ctx)->cred);
	return 0;
}

static int fill_policy(struct sk_buff *skb)
{
	return nla_put_u32(skb, KVPOOL_A_RESERVE_POLICY, kvpool_reserve_only() ?
			   KVPOOL_RESERVE_POLICY_ONLY : KVPOOL_RESERVE_POLICY_FIRST) ||
	       put_u64(skb, KVPOOL_A_RESERVE_QUOTA, kvpool_quota_default());
}

static int fill_node(struct sk_buff *skb, int node)
{
	struct kvpool_reserve_state state;

	kvpool_reserve_get(node, &state);
	return nla_put_u32(skb, KVPOOL_A_RESERVE_NODE, node) ||
	       put_u64(skb, KVPOOL_A_RESERVE_TARGET, state.target) ||
	       put_u64(skb, KVPOOL_A_RESERVE_READY, state.ready) ||
	       put_u64(skb, KVPOOL_A_RESERVE_CLEARING, state.clearing);
}

static int fill_user(struct sk_buff *skb, kuid_t uid, u64 quota, u64 used)
{
	return nla_put_u32(skb, KVPOOL_A_RESERVE_UID, from_kuid_munged(current_user_ns(), uid)) ||
	       put_u64(skb, KVPOOL_A_RESERVE_QUOTA, quota) ||
	       put_u64(skb, KVPOOL_A_RESERVE_USED, used);
}

/* Users see their own quota, the administrator sees all. */
static bool next_user(unsigned long *next, u64 *quota, u64 *used)
{
	bool all = ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);

	for (; kvpool_quota_next(next, quota, used); ++*next)
		if (all || uid_eq(KUIDT_INIT(*next), current_uid()))
			return true;
	return false;
}

/* Put the next message, and step on. */
static int dump_next(struct sk_buff *skb, struct netlink_callback *cb, struct dump *dump)
{
	u64 quota = 0, used = 0;
	void *header;
	int err;

	if (dump->part == DUMP_NODES) {
		while (dump->next < nr_node_ids && !node_state(dump->next, N_MEMORY))
			dump->next++;
		if (dump->next >= nr_node_ids) {
			dump->part = DUMP_USERS;
			dump->next = 0;
		}
	}
	if (dump->part == DUMP_USERS && !next_user(&dump->next, &quota, &used))
		dump->part = DUMP_END;
	if (dump->part == DUMP_END)
		return 0;

	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &kvpool_family,
			     NLM_F_MULTI, KVPOOL_CMD_RESERVE_GET);
	if (!header)
		return -EMSGSIZE;
	if (dump->part == DUMP_POLICY)
		err = fill_policy(skb);
	else if (dump->part == DUMP_NODES)
		err = fill_node(skb, dump->next);
	else
		err = fill_user(skb, KUIDT_INIT(dump->next), quota, used);
	if (err) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	if (dump->part == DUMP_POLICY)
		dump->part = DUMP_NODES;
	else
		dump->next++;
	return 0;
}

int kvpool_nl_reserve_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump *dump = (struct dump *)cb->ctx;
	const struct cred *old = override_creds(dump->cred);
	int err = 0;

	while (!err && dump->part != DUMP_END) {
		err = dump_next(skb, cb, dump);
		cond_resched();
	}
	revert_creds(old);
	return err && !skb->len ? err : skb->len;
}

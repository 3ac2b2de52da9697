// SPDX-License-Identifier: GPL-2.0
/*
 * Who sends a request, and what its attributes ask for. The policies have checked
 * types, sizes and ranges; here it is characters, combinations and the machine.
 */
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/nodemask.h>
#include <linux/topology.h>
#include <linux/uidgid.h>
#include <net/sock.h>

#include "netlink.h"

static bool in_groups(const struct cred *cred, kgid_t gid)
{
	const struct group_info *groups = cred->group_info;
	int low = 0, high = groups->ngroups, middle;

	/* In order, see groups_sort(). */
	while (low < high) {
		middle = low + (high - low) / 2;
		if (gid_lt(groups->gid[middle], gid))
			low = middle + 1;
		else
			high = middle;
	}
	return (low < groups->ngroups && gid_eq(groups->gid[low], gid)) ||
	       gid_eq(cred->fsgid, gid);
}

/* Whether `cred` is in all groups that `other` is in. */
static bool has_groups(const struct cred *cred, const struct cred *other)
{
	int i;

	if (!in_groups(cred, other->fsgid))
		return false;
	for (i = 0; i < other->group_info->ngroups; i++)
		if (!in_groups(cred, other->group_info->gid[i]))
			return false;
	return true;
}

/**
 * kvpool_request_sender - may the sender use its rights?
 * @skb: of the request
 * @extack: gets the cause
 *
 * Only those that whoever opened the socket had too: his user and groups, or the
 * right to become them, and his capabilities.
 *
 * Return: 0 or -EPERM.
 */
int kvpool_request_sender(const struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	static const int caps[] = {
		CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_CHOWN, CAP_IPC_LOCK, CAP_SYS_ADMIN,
		CAP_SYS_RESOURCE
	};
	const struct file *opened = NETLINK_CB(skb).sk->sk_socket->file;
	int i;

	if (!uid_eq(current_fsuid(), opened->f_cred->fsuid) &&
	    !file_ns_capable(opened, &init_user_ns, CAP_SETUID))
		goto refuse;
	if (!has_groups(opened->f_cred, current_cred()) &&
	    !file_ns_capable(opened, &init_user_ns, CAP_SETGID))
		goto refuse;
	for (i = 0; i < ARRAY_SIZE(caps); i++)
		if (ns_capable_noaudit(&init_user_ns, caps[i]) &&
		    !file_ns_capable(opened, &init_user_ns, caps[i]))
			goto refuse;
	return 0;

refuse:
	NL_SET_ERR_MSG_FMT(extack, "the socket was opened with fewer rights");
	return -EPERM;
}

/**
 * kvpool_request_session - the session that a request names
 * @skb: of the request
 * @info: of the request
 * @attr: its attribute session-fd, or NULL
 *
 * Return: the session's file, for the caller to put, or an error.
 */
struct file *kvpool_request_session(const struct sk_buff *skb, const struct genl_info *info,
				    const struct nlattr *attr)
{
	int err = kvpool_request_sender(skb, info->extack);
	struct file *file;

	if (err)
		return ERR_PTR(err);
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

/* Names go into paths, so no dot, slash or blank. */
static bool is_name(const char *text)
{
	for (; *text; text++)
		if (!isascii(*text) || (!isalnum(*text) && *text != '_' && *text != '-'))
			return false;
	return true;
}

static bool is_label(const char *text)
{
	for (; *text; text++)
		if (!isascii(*text) || !isprint(*text))
			return false;
	return true;
}

static int get_text(const struct genl_info *info, int attribute, const char *what,
		    bool (*valid)(const char *text), char *text)
{
	struct netlink_ext_ack *extack = info->extack;
	struct nlattr *nla = info->attrs[attribute];

	if (!nla)
		return 0;
	nla_strscpy(text, nla, KVPOOL_NAME_SIZE);
	if (valid(text))
		return 0;
	NL_SET_ERR_MSG_FMT(extack, "%s: %s", what, valid == is_label ?
			   "only printable ASCII characters are allowed" :
			   "only A-Z a-z 0-9 _ and - are allowed");
	NL_SET_BAD_ATTR(extack, nla);
	return -EINVAL;
}

/**
 * kvpool_request_tags - the tags that a request changes
 * @info: of the request
 * @tags: in: as they are or their defaults; out: as they shall be
 * @registration: likewise
 *
 * Return: 0 or -EINVAL.
 */
int kvpool_request_tags(const struct genl_info *info, struct kvpool_tags *tags, u32 *registration)
{
	struct nlattr **attrs = info->attrs;
	int err;

	err = get_text(info, KVPOOL_A_POOL_ROLE, "role", is_name, tags->role);
	if (!err)
		err = get_text(info, KVPOOL_A_POOL_LABEL, "label", is_label, tags->label);
	if (err)
		return err;
	if (attrs[KVPOOL_A_POOL_RANK])
		tags->rank = nla_get_u32(attrs[KVPOOL_A_POOL_RANK]);
	if (attrs[KVPOOL_A_POOL_LIFETIME])
		tags->lifetime = nla_get_u32(attrs[KVPOOL_A_POOL_LIFETIME]);
	if (attrs[KVPOOL_A_POOL_UID])
		tags->uid = make_kuid(current_user_ns(), nla_get_u32(attrs[KVPOOL_A_POOL_UID]));
	if (attrs[KVPOOL_A_POOL_GID])
		tags->gid = make_kgid(current_user_ns(), nla_get_u32(attrs[KVPOOL_A_POOL_GID]));
	if (!uid_valid(tags->uid) || !gid_valid(tags->gid)) {
		NL_SET_ERR_MSG_FMT(info->extack,
				   "uid or gid has no meaning in this user namespace");
		return -EINVAL;
	}
	if (attrs[KVPOOL_A_POOL_MODE])
		tags->mode = nla_get_u32(attrs[KVPOOL_A_POOL_MODE]);
	if (tags->mode & ~0666) {
		NL_SET_ERR_MSG_FMT(info->extack,
				   "mode: only read and write bits (0666) are allowed");
		return -EINVAL;
	}
	if (registration && attrs[KVPOOL_A_POOL_REGISTRATION])
		*registration = nla_get_u32(attrs[KVPOOL_A_POOL_REGISTRATION]);
	return 0;
}

static int get_placement(const struct genl_info *info, struct kvpool_request *request)
{
	struct nlattr **attrs = info->attrs;
	u32 node;

	request->node = KVPOOL_NO_NODE;
	request->placement = KVPOOL_PLACEMENT_PREFERRED;
	if (attrs[KVPOOL_A_POOL_PLACEMENT])
		request->placement = nla_get_u32(attrs[KVPOOL_A_POOL_PLACEMENT]);
	if (!attrs[KVPOOL_A_POOL_NODE]) {
		if (request->placement != KVPOOL_PLACEMENT_STRICT)
			return 0;
		NL_SET_ERR_MSG_FMT(info->extack, "placement: strict needs a node");
		return -EINVAL;
	}
	node = nla_get_u32(attrs[KVPOOL_A_POOL_NODE]);
	if (node >= nr_node_ids || !node_state(node, N_MEMORY)) {
		NL_SET_ERR_MSG_FMT(info->extack, "node: there is no node %u with memory", node);
		NL_SET_BAD_ATTR(info->extack, attrs[KVPOOL_A_POOL_NODE]);
		return -ENODEV;
	}
	request->node = node;
	return 0;
}

/**
 * kvpool_request_pool - the pool that a request asks for
 * @info: of the request
 * @request: filled in
 *
 * Return: 0, -EINVAL, -ENODEV or -EPERM.
 */
int kvpool_request_pool(const struct genl_info *info, struct kvpool_request *request)
{
	struct nlattr **attrs = info->attrs;
	struct kvpool_tags *tags = &request->tags;
	int err;

	memset(request, 0, sizeof(*request));
	tags->rank = KVPOOL_NO_RANK;
	tags->lifetime = KVPOOL_LIFETIME_OWNER;
	tags->uid = current_fsuid();
	tags->gid = current_fsgid();
	tags->mode = 0600;

	if (!attrs[KVPOOL_A_POOL_LENGTH] || !attrs[KVPOOL_A_POOL_DOMAIN]) {
		NL_SET_ERR_MSG_FMT(info->extack, "%s: must be given",
				   attrs[KVPOOL_A_POOL_LENGTH] ? "domain" : "length");
		return -EINVAL;
	}
	request->length = nla_get_u64(attrs[KVPOOL_A_POOL_LENGTH]);
	if (request->length > (u64)U32_MAX << KVPOOL_BLOCK_SHIFT) {
		NL_SET_ERR_MSG_FMT(info->extack, "length: %llu bytes are more than any machine has",
				   request->length);
		NL_SET_BAD_ATTR(info->extack, attrs[KVPOOL_A_POOL_LENGTH]);
		return -EINVAL;
	}

	err = get_text(info, KVPOOL_A_POOL_NAME, "name", is_name, tags->name);
	if (!err)
		err = get_text(info, KVPOOL_A_POOL_DOMAIN, "domain", is_name, tags->domain);
	if (!err)
		err = kvpool_request_tags(info, tags, NULL);
	if (!err)
		err = get_placement(info, request);
	if (!err)
		err = kvpool_may_give(tags, info->extack);
	if (err)
		return err;

	if (!tags->domain[0] || (attrs[KVPOOL_A_POOL_NAME] && !tags->name[0])) {
		NL_SET_ERR_MSG_FMT(info->extack, "%s: must not be empty",
				   tags->domain[0] ? "name" : "domain");
		return -EINVAL;
	}
	if (!strcmp(tags->name, "control")) {
		NL_SET_ERR_MSG_FMT(info->extack, "name: \"control\" is the control node's");
		return -EINVAL;
	}
	return 0;
}

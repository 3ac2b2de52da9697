// SPDX-License-Identifier: GPL-2.0
/*
 * Who may do what with a pool. Privilege is that of the initial user
 * namespace: root of a container is a user like any other here.
 */
#include <linux/capability.h>

#include "internal.h"

static bool privileged(int cap)
{
	return ns_capable_noaudit(&init_user_ns, cap);
}

/**
 * kvpool_may_open - do uid, gid and mode let the caller open the pool?
 * @pool: tags stable (kvpool_pool.lock)
 * @write: for writing as well
 */
bool kvpool_may_open(const struct kvpool_pool *pool, bool write)
{
	const struct kvpool_tags *tags = &pool->tags;
	umode_t mode = tags->mode;
	umode_t need = write ? 06 : 04;

	lockdep_assert_held(&pool->lock);
	if (uid_eq(current_fsuid(), tags->uid))
		mode >>= 6;
	else if (in_group_p(tags->gid))
		mode >>= 3;
	return (mode & need) == need || privileged(CAP_DAC_OVERRIDE);
}

/**
 * kvpool_may_change - may the caller destroy, change or claim the pool?
 * @pool: tags stable (kvpool_pool.lock), session stable (kvpool_registry_lock)
 * @session: the caller's, whose control node is open for writing
 *
 * The session that owns it, its uid, and whoever has CAP_FOWNER.
 */
bool kvpool_may_change(const struct kvpool_pool *pool, const struct kvpool_session *session)
{
	lockdep_assert_held(&kvpool_registry_lock);
	lockdep_assert_held(&pool->lock);
	return pool->session == session || uid_eq(current_fsuid(), pool->tags.uid) ||
	       privileged(CAP_FOWNER);
}

/**
 * kvpool_may_give - may the caller make a pool belong to this uid and gid?
 * @tags: uid and gid
 * @extack: says which is refused
 *
 * The rule of chown(): one's own uid and groups, or CAP_CHOWN.
 *
 * Return: 0 or -EPERM.
 */
int kvpool_may_give(const struct kvpool_tags *tags, struct netlink_ext_ack *extack)
{
	if (!uid_eq(tags->uid, current_fsuid()) && !privileged(CAP_CHOWN)) {
		NL_SET_ERR_MSG_FMT(extack, "uid: giving a pool to another user needs CAP_CHOWN");
		return -EPERM;
	}
	if (!in_group_p(tags->gid) && !privileged(CAP_CHOWN)) {
		NL_SET_ERR_MSG_FMT(extack, "gid: you are not a member of that group");
		return -EPERM;
	}
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finding the generic netlink family: its number differs from boot to boot. */
#include "netlink.h"

/* Multicast groups that are looked at; the family has one. */
#define GROUPS_MAX 15

struct found {
	uint16_t id;
	uint32_t version;
	uint32_t group;		/* 0: there is none of the name */
};

static int take_group(const struct nlattr *entry, struct found *found)
{
	const struct nlattr *table[CTRL_ATTR_MCAST_GRP_MAX + 1];
	char name[GENL_NAMSIZ] = "";
	uint32_t group;
	int err;

	err = kvp_attrs_parse_nested(entry, table, CTRL_ATTR_MCAST_GRP_MAX);
	if (!err)
		err = kvp_attr_text(table[CTRL_ATTR_MCAST_GRP_NAME], name, sizeof(name));
	if (!err)
		err = kvp_attr_u32(table[CTRL_ATTR_MCAST_GRP_ID], &group);
	if (!err && !strcmp(name, KVPOOL_MCGRP_POOLS))
		found->group = group;
	return err;
}

/* The entries of this nest are numbered from 1, their types mean nothing. */
static int take_groups(const struct nlattr *groups, struct found *found)
{
	const struct nlattr *table[GROUPS_MAX + 1];
	uint16_t i;
	int err;

	err = kvp_attrs_parse_nested(groups, table, GROUPS_MAX);
	for (i = 0; i <= GROUPS_MAX && !err; i++)
		if (table[i])
			err = take_group(table[i], found);
	return err;
}

static int take_family(const struct nlmsghdr *message, void *arg)
{
	const struct nlattr *table[CTRL_ATTR_MCAST_GROUPS + 1];
	struct found *found = arg;
	int err;

	err = kvp_attrs_parse(message, GENL_HDRLEN, table, CTRL_ATTR_MCAST_GROUPS);
	if (!err)
		err = kvp_attr_u16(table[CTRL_ATTR_FAMILY_ID], &found->id);
	if (!err)
		err = kvp_attr_u32(table[CTRL_ATTR_VERSION], &found->version);
	/* Below stand netlink's own message types: they'd be taken for answers. */
	if (!err && found->id < GENL_MIN_ID)
		err = -EPROTO;
	if (err || !table[CTRL_ATTR_MCAST_GROUPS])
		return err;
	return take_groups(table[CTRL_ATTR_MCAST_GROUPS], found);
}

int kvp_family_find(struct kvp_nl *nl, struct kvp_family *family, struct kvp_error *error)
{
	static const char load[] = "load the module: modprobe kvpool";
	struct found found = { 0 };
	struct kvp_request request;
	struct kvp_reply reply;
	int err;

	kvp_request_start(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	kvp_request_text(&request, CTRL_ATTR_FAMILY_NAME, KVPOOL_FAMILY_NAME);
	err = kvp_nl_request(nl, &request, take_family, &found, &reply);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, NULL,
				err == -ENOENT ? load : NULL, "netlink family %s%s%s",
				KVPOOL_FAMILY_NAME, reply.text[0] ? ": " : "", reply.text);
	if (found.version != KVPOOL_FAMILY_VERSION)
		return kvp_fail(error, -EPROTO, KVP_PHASE_CONNECT, KVP_NONE, NULL,
				"install the module and the library of one release",
				"the module speaks version %u of family %s, the library version %u",
				found.version, KVPOOL_FAMILY_NAME, KVPOOL_FAMILY_VERSION);
	family->id = found.id;
	family->group = found.group;
	return 0;
}

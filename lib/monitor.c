// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events about pools: a socket of its own in the multicast group. */
#include <stdlib.h>

#include "netlink.h"

struct kvp_monitor {
	struct kvp_nl nl;
	uint16_t family;
	/* What of the last datagram is still to be handed out. */
	const struct nlmsghdr *next;
	int left;
	/* Of the last event. */
	uint32_t progress;
};

static int connect_failed(struct kvp_error *error, int err, const char *what)
{
	return kvp_fail(error, err, KVP_PHASE_CONNECT, KVP_NONE, NULL, NULL, "%s", what);
}

static int join(struct kvp_monitor *monitor, struct kvp_error *error)
{
	struct kvp_family family;
	int err;

	err = kvp_family_find(&monitor->nl, &family, error);
	if (err)
		return err;
	if (!family.group)
		return connect_failed(error, -EPROTO, "the module has no multicast group '"
				      KVPOOL_MCGRP_POOLS "'");
	monitor->family = family.id;
	if (mnl_socket_setsockopt(monitor->nl.socket, NETLINK_ADD_MEMBERSHIP, &family.group,
				  sizeof(family.group)))
		return connect_failed(error, -errno, "the multicast group '" KVPOOL_MCGRP_POOLS
				      "' can't be joined");
	return 0;
}

KVP_EXPORT int kvp_monitor_open(struct kvp_monitor **result, struct kvp_error *error)
{
	struct kvp_monitor *monitor = calloc(1, sizeof(*monitor));
	int err;

	if (!monitor)
		return kvp_no_memory(error, KVP_PHASE_CONNECT);
	err = join(monitor, error);
	if (err) {
		kvp_monitor_close(monitor);
		return err;
	}
	monitor->progress = 100;
	*result = monitor;
	return 0;
}

KVP_EXPORT void kvp_monitor_close(struct kvp_monitor *monitor)
{
	if (!monitor)
		return;
	kvp_nl_close(&monitor->nl);
	free(monitor);
}

KVP_EXPORT int kvp_monitor_fd(const struct kvp_monitor *monitor)
{
	return mnl_socket_get_fd(monitor->nl.socket);
}

static int malformed(struct kvp_monitor *monitor, struct kvp_error *error)
{
	/* Only what is left of this datagram is lost: each is whole by itself. */
	monitor->left = 0;
	return kvp_fail(error, -EPROTO, KVP_PHASE_REQUEST, KVP_NONE, NULL,
			"install the module and the library of one release; list the pools again",
			"an event is malformed");
}

static int receive(struct kvp_monitor *monitor, struct kvp_error *error)
{
	ssize_t size = mnl_socket_recvfrom(monitor->nl.socket, monitor->nl.buffer,
					   KVP_NL_BUFFER_SIZE);

	monitor->next = (const struct nlmsghdr *)(const void *)monitor->nl.buffer;
	monitor->left = size > 0 ? (int)size : 0;
	if (size > 0)
		return 0;
	if (!size || errno == ENOSPC)
		return malformed(monitor, error);
	return kvp_fail(error, -errno, KVP_PHASE_REQUEST, KVP_NONE, NULL,
			errno == ENOBUFS ? "list the pools again, then go on" : NULL,
			errno == ENOBUFS ? "events were lost" : "wait for an event");
}

/* Whether a message is an event that this library knows. */
static bool event_of(const struct kvp_monitor *monitor, const struct nlmsghdr *message,
		     enum kvp_event *event)
{
	const struct genlmsghdr *generic = mnl_nlmsg_get_payload(message);

	if (message->nlmsg_type != monitor->family ||
	    mnl_nlmsg_get_payload_len(message) < GENL_HDRLEN)
		return false;
	switch (generic->cmd) {
	case KVPOOL_CMD_POOL_CREATE_NTF:
		*event = KVP_EVENT_CREATE;
		return true;
	case KVPOOL_CMD_POOL_DESTROY_NTF:
		*event = KVP_EVENT_DESTROY;
		return true;
	case KVPOOL_CMD_POOL_CHANGE_NTF:
		*event = KVP_EVENT_CHANGE;
		return true;
	case KVPOOL_CMD_POOL_PROGRESS_NTF:
		*event = KVP_EVENT_PROGRESS;
		return true;
	default:
		return false;
	}
}

KVP_EXPORT int kvp_monitor_next(struct kvp_monitor *monitor, enum kvp_event *event, uint32_t *id,
				uint64_t *generation, struct kvp_error *error)
{
	const struct nlattr *table[KVPOOL_A_POOL_PROGRESS + 1];
	const struct nlmsghdr *message;
	int err;

	for (;;) {
		while (!monitor->left) {
			err = receive(monitor, error);
			if (err)
				return err;
		}
		message = monitor->next;
		if (!kvp_message_ok(message, monitor->left))
			return malformed(monitor, error);
		monitor->next = mnl_nlmsg_next(message, &monitor->left);
		if (monitor->left < 0)
			monitor->left = 0;
		if (event_of(monitor, message, event))
			break;
	}
	err = kvp_attrs_parse(message, GENL_HDRLEN, table, KVPOOL_A_POOL_PROGRESS);
	if (!err)
		err = kvp_attr_u32(table[KVPOOL_A_POOL_ID], id);
	if (!err)
		err = kvp_attr_u64(table[KVPOOL_A_POOL_GENERATION], generation);
	monitor->progress = 100;
	if (!err && *event == KVP_EVENT_PROGRESS)
		err = kvp_attr_u32(table[KVPOOL_A_POOL_PROGRESS], &monitor->progress);
	return err ? malformed(monitor, error) : 0;
}

KVP_EXPORT unsigned int kvp_monitor_progress(const struct kvp_monitor *monitor)
{
	return monitor->progress;
}

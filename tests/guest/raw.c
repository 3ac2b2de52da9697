// SPDX-License-Identifier: GPL-2.0
#include "raw.h"

/* What the acknowledgment may carry: NLMSGERR_ATTR_MSG. */
#define ATTR_MSG 1

static int take_attribute(const struct nlattr *attribute, void *arg)
{
	const struct nlattr **attrs = arg;
	uint16_t type = mnl_attr_get_type(attribute);

	if (type <= KVPOOL_A_POOL_MAX)
		attrs[type] = attribute;
	return MNL_CB_OK;
}

static void take_text(struct raw *raw, const struct nlmsghdr *message)
{
	const struct nlmsgerr *ack = mnl_nlmsg_get_payload(message);
	size_t offset = sizeof(*ack);
	const struct nlattr *attribute;

	raw->text[0] = 0;
	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(message->nlmsg_flags & NLM_F_CAPPED))
		offset += ack->msg.nlmsg_len - sizeof(ack->msg);
	mnl_attr_for_each(attribute, message, offset)
		if (mnl_attr_get_type(attribute) == ATTR_MSG)
			snprintf(raw->text, sizeof(raw->text), "%s", mnl_attr_get_str(attribute));
}

static void take_answer(struct raw *raw, const struct nlmsghdr *message)
{
	CHECK(message->nlmsg_len <= sizeof(raw->last));
	memcpy(raw->last, message, message->nlmsg_len);
	memset(raw->attrs, 0, sizeof(raw->attrs));
	mnl_attr_parse((const void *)raw->last, sizeof(struct genlmsghdr), take_attribute,
		       raw->attrs);
}

/* Reads until an acknowledgment or the end of a dump. */
static int receive(struct raw *raw, void (*each)(struct raw *raw, void *arg), void *arg, bool *torn)
{
	int count = 0;

	raw->text[0] = 0;
	for (;;) {
		ssize_t size = recv(mnl_socket_get_fd(raw->socket), raw->answer,
				    sizeof(raw->answer), 0);
		const struct nlmsghdr *message = (const void *)raw->answer;
		int left = (int)size;

		if (size < 0)
			return -errno;
		for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
			if (torn && message->nlmsg_flags & NLM_F_DUMP_INTR)
				*torn = true;
			if (message->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *ack = mnl_nlmsg_get_payload(message);

				take_text(raw, message);
				return ack->error;
			}
			if (message->nlmsg_type == NLMSG_DONE) {
				int err = *(const int *)mnl_nlmsg_get_payload(message);

				return err < 0 ? err : count;
			}
			take_answer(raw, message);
			count++;
			if (each)
				each(raw, arg);
		}
	}
}

int raw_ask(struct raw *raw)
{
	struct nlmsghdr *message = (void *)raw->request;

	message->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(raw->socket, message, message->nlmsg_len) < 0)
		return -errno;
	return receive(raw, NULL, NULL, NULL);
}

int raw_read_dump(struct raw *raw, void (*each)(struct raw *raw, void *arg), void *arg, bool *torn)
{
	return receive(raw, each, arg, torn);
}

int raw_dump(struct raw *raw, void (*each)(struct raw *raw, void *arg), void *arg, bool *torn)
{
	raw_start(raw, KVPOOL_CMD_POOL_GET, NLM_F_DUMP);
	CHECK(mnl_socket_sendto(raw->socket, raw->request,
				((struct nlmsghdr *)raw->request)->nlmsg_len) > 0);
	return receive(raw, each, arg, torn);
}

struct nlmsghdr *raw_start(struct raw *raw, uint8_t command, uint16_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(raw->request);
	struct genlmsghdr *generic = mnl_nlmsg_put_extra_header(message, sizeof(*generic));

	message->nlmsg_type = raw->family;
	message->nlmsg_flags = NLM_F_REQUEST | flags;
	message->nlmsg_seq = 1;
	generic->cmd = command;
	generic->version = KVPOOL_FAMILY_VERSION;
	return message;
}

static int take_group(const struct nlattr *attribute, void *arg)
{
	struct raw *raw = arg;

	if (mnl_attr_get_type(attribute) == CTRL_ATTR_MCAST_GRP_ID)
		raw->group = mnl_attr_get_u32(attribute);
	return MNL_CB_OK;
}

struct raw *raw_open(void)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	const struct nlattr *group;
	struct nlmsghdr *message;
	int on = 1;

	CHECK(raw);
	raw->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	CHECK(raw->socket && !mnl_socket_bind(raw->socket, 0, MNL_SOCKET_AUTOPID));
	mnl_socket_setsockopt(raw->socket, NETLINK_EXT_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(raw->socket, NETLINK_CAP_ACK, &on, sizeof(on));
	raw->family = GENL_ID_CTRL;
	message = raw_start(raw, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(message, CTRL_ATTR_FAMILY_NAME, KVPOOL_FAMILY_NAME);
	EQUAL(raw_ask(raw), 0);
	raw->family = mnl_attr_get_u16(raw->attrs[CTRL_ATTR_FAMILY_ID]);
	CHECK(raw->attrs[CTRL_ATTR_MCAST_GROUPS]);
	mnl_attr_for_each_nested(group, raw->attrs[CTRL_ATTR_MCAST_GROUPS])
		mnl_attr_parse_nested(group, take_group, raw);
	return raw;
}

void raw_close(struct raw *raw)
{
	mnl_socket_close(raw->socket);
	free(raw);
}

uint32_t raw_u32(const struct raw *raw, int attribute)
{
	CHECK(raw->attrs[attribute]);
	return mnl_attr_get_u32(raw->attrs[attribute]);
}

uint64_t raw_u64(const struct raw *raw, int attribute)
{
	CHECK(raw->attrs[attribute]);
	return mnl_attr_get_u64(raw->attrs[attribute]);
}

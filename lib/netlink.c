// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests and dumps: building, sending, and taking the answers apart. */
#include <stdio.h>
#include <stdlib.h>

#include "netlink.h"

/* NLMSGERR_ATTR_MISS_TYPE, which headers before Linux 6.1 do not have. */
#define EXTACK_MISS_TYPE 5
#define EXTACK_MAX EXTACK_MISS_TYPE
#define ERRNO_MAX 4095

/* What the kernel may complain about, by the names that kvpool.yaml gives. */
static const char *const attribute_names[] = {
	[KVPOOL_A_POOL_SESSION_FD] = "session-fd",
	[KVPOOL_A_POOL_ID] = "id",
	[KVPOOL_A_POOL_GENERATION] = "generation",
	[KVPOOL_A_POOL_NAME] = "name",
	[KVPOOL_A_POOL_DOMAIN] = "domain",
	[KVPOOL_A_POOL_ROLE] = "role",
	[KVPOOL_A_POOL_LABEL] = "label",
	[KVPOOL_A_POOL_RANK] = "rank",
	[KVPOOL_A_POOL_LENGTH] = "length",
	[KVPOOL_A_POOL_NODE] = "node",
	[KVPOOL_A_POOL_PLACEMENT] = "placement",
	[KVPOOL_A_POOL_LIFETIME] = "lifetime",
	[KVPOOL_A_POOL_UID] = "uid",
	[KVPOOL_A_POOL_GID] = "gid",
	[KVPOOL_A_POOL_MODE] = "mode",
	[KVPOOL_A_POOL_REGISTRATION] = "registration",
	[KVPOOL_A_POOL_FORCE] = "force",
};

/* One request under way. */
struct exchange {
	const struct kvp_request *request;
	int (*answer)(const struct nlmsghdr *message, void *arg);
	void *arg;
	struct kvp_reply *reply;
	bool dump;
	bool interrupted;	/* NLM_F_DUMP_INTR was set */
	bool broken;		/* the stream can't be trusted any more */
	bool finished;
	uint32_t answers;
	int failure;		/* the first error of `answer` */
};

/* ----------------------------------------------------------------- building */

void kvp_request_start(struct kvp_request *request, uint16_t family, uint8_t command,
		       uint8_t version)
{
	struct genlmsghdr *generic;

	memset(request, 0, sizeof(*request));
	mnl_nlmsg_put_header(request->bytes);
	request->header.nlmsg_type = family;
	generic = mnl_nlmsg_put_extra_header(&request->header, sizeof(*generic));
	generic->cmd = command;
	generic->version = version;
}

static void put(struct kvp_request *request, uint16_t type, size_t size, const void *data)
{
	if (!mnl_attr_put_check(&request->header, sizeof(request->bytes), type, size, data))
		request->full = true;
}

void kvp_request_u32(struct kvp_request *request, uint16_t type, uint32_t value)
{
	put(request, type, sizeof(value), &value);
}

void kvp_request_u64(struct kvp_request *request, uint16_t type, uint64_t value)
{
	put(request, type, sizeof(value), &value);
}

void kvp_request_text(struct kvp_request *request, uint16_t type, const char *text)
{
	put(request, type, strlen(text) + 1, text);
}

void kvp_request_flag(struct kvp_request *request, uint16_t type)
{
	put(request, type, 0, "");
}

/* --------------------------------------------------------------- the socket */

static void __attribute__((format(printf, 2, 3)))
say(struct kvp_reply *reply, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reply->text, sizeof(reply->text), format, args);
	va_end(args);
}

int kvp_nl_open(struct kvp_nl *nl, struct kvp_reply *reply)
{
	int on = 1, err;

	if (!nl->buffer) {
		nl->buffer = malloc(KVP_NL_BUFFER_SIZE);
		if (!nl->buffer)
			return -ENOMEM;
	}
	nl->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!nl->socket) {
		err = -errno;
		say(reply, "no netlink socket");
		return err;
	}
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID)) {
		err = -errno;
		say(reply, "the netlink socket can't be bound");
		mnl_socket_close(nl->socket);
		nl->socket = NULL;
		return err;
	}
	nl->portid = mnl_socket_get_portid(nl->socket);
	/* Without these two an error is only less clear: going on is right. */
	mnl_socket_setsockopt(nl->socket, NETLINK_EXT_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(nl->socket, NETLINK_CAP_ACK, &on, sizeof(on));
	return 0;
}

static void close_socket(struct kvp_nl *nl)
{
	if (nl->socket)
		mnl_socket_close(nl->socket);
	nl->socket = NULL;
}

void kvp_nl_close(struct kvp_nl *nl)
{
	close_socket(nl);
	free(nl->buffer);
	nl->buffer = NULL;
}

/* --------------------------------------------------------------- the answer */

static int broken(struct exchange *exchange, int err, const char *why)
{
	exchange->broken = true;
	say(exchange->reply, "%s", why);
	return err;
}

static const char *attribute_name(const struct exchange *exchange, uint32_t type)
{
	if (exchange->request->header.nlmsg_type == GENL_ID_CTRL ||
	    type >= MNL_ARRAY_SIZE(attribute_names))
		return NULL;
	return attribute_names[type];
}

/* Name of the attribute that stands `offset` bytes into the request. */
static const char *attribute_at(const struct exchange *exchange, uint32_t offset)
{
	const struct kvp_request *request = exchange->request;
	struct nlattr attr;

	if (offset < NLMSG_HDRLEN + GENL_HDRLEN || offset > request->header.nlmsg_len ||
	    request->header.nlmsg_len - offset < sizeof(attr))
		return NULL;
	memcpy(&attr, request->bytes + offset, sizeof(attr));
	return attribute_name(exchange, mnl_attr_get_type(&attr));
}

/*
 * Take over the extended acknowledgment, which starts `offset` bytes into the
 * payload. What can't be read of it is left out: the errno is what counts.
 */
static void read_extack(struct exchange *exchange, const struct nlmsghdr *message, size_t offset)
{
	const struct nlattr *table[EXTACK_MAX + 1];
	const char *name = NULL;
	char text[128] = "";
	uint32_t number;
	size_t length;

	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS) ||
	    kvp_attrs_parse(message, offset, table, EXTACK_MAX))
		return;
	if (table[NLMSGERR_ATTR_MSG])
		snprintf(text, sizeof(text), "%.*s",
			 (int)mnl_attr_get_payload_len(table[NLMSGERR_ATTR_MSG]),
			 (const char *)mnl_attr_get_payload(table[NLMSGERR_ATTR_MSG]));
	for (length = strlen(text); length && strchr("\n. ", text[length - 1]); length--)
		text[length - 1] = '\0';

	if (!kvp_attr_u32(table[EXTACK_MISS_TYPE], &number)) {
		name = attribute_name(exchange, number);
		if (name && !text[0])
			snprintf(text, sizeof(text), "an attribute is missing");
	} else if (!kvp_attr_u32(table[NLMSGERR_ATTR_OFFS], &number)) {
		name = attribute_at(exchange, number);
	}
	if (name && text[0])
		say(exchange->reply, "%s (%s)", text, name);
	else
		say(exchange->reply, "%s", name ? name : text);
}

/* NLMSG_ERROR: the acknowledgment, or why not. */
static int take_ack(struct exchange *exchange, const struct nlmsghdr *message)
{
	size_t offset = sizeof(struct nlmsgerr);
	struct nlmsgerr ack;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(ack))
		return broken(exchange, -EPROTO, "the acknowledgment is cut short");
	memcpy(&ack, mnl_nlmsg_get_payload(message), sizeof(ack));
	if (ack.error > 0 || ack.error < -ERRNO_MAX)
		return broken(exchange, -EPROTO, "the acknowledgment holds no errno");
	if (!ack.error && exchange->dump)
		return broken(exchange, -EPROTO, "the dump ended without its end mark");
	exchange->finished = true;
	if (!ack.error)
		return 0;
	/* Without NETLINK_CAP_ACK the whole request stands before the attributes. */
	if (!(message->nlmsg_flags & NLM_F_CAPPED))
		offset = sizeof(ack.error) + (size_t)NLMSG_ALIGN((size_t)ack.msg.nlmsg_len);
	read_extack(exchange, message, offset);
	return ack.error;
}

/* NLMSG_DONE: the end of a dump, perhaps with an error. */
static int take_done(struct exchange *exchange, const struct nlmsghdr *message)
{
	int result;

	if (!exchange->dump)
		return broken(exchange, -EPROTO, "a dump's end mark came instead of an answer");
	if (mnl_nlmsg_get_payload_len(message) < sizeof(result))
		return broken(exchange, -EPROTO, "the dump's end mark is cut short");
	memcpy(&result, mnl_nlmsg_get_payload(message), sizeof(result));
	if (result < -ERRNO_MAX)
		return broken(exchange, -EPROTO, "the dump's end mark holds no errno");
	exchange->finished = true;
	if (result >= 0)
		return 0;
	read_extack(exchange, message, sizeof(result));
	return result;
}

static int take_message(const struct kvp_nl *nl, struct exchange *exchange,
			const struct nlmsghdr *message)
{
	int err;

	/* mnl_nlmsg_seq_ok() and mnl_nlmsg_portid_ok() let 0 pass. */
	if (message->nlmsg_seq != nl->seq)
		return broken(exchange, -EPROTO, "the answer is to another request");
	if (message->nlmsg_pid != nl->portid)
		return broken(exchange, -EPROTO, "the answer is to another socket");
	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		exchange->interrupted = true;
	switch (message->nlmsg_type) {
	case NLMSG_NOOP:
		return 0;
	case NLMSG_ERROR:
		return take_ack(exchange, message);
	case NLMSG_DONE:
		return take_done(exchange, message);
	case NLMSG_OVERRUN:
		return broken(exchange, -ENOBUFS, "a part of the answer was lost");
	}
	if (message->nlmsg_type != exchange->request->header.nlmsg_type)
		return broken(exchange, -EPROTO, "the answer is of another family");
	if (mnl_nlmsg_get_payload_len(message) < GENL_HDRLEN)
		return broken(exchange, -EPROTO, "the answer is cut short");
	exchange->answers++;
	/* After a failure the rest is only read off, to keep the stream in step. */
	if (!exchange->answer || exchange->failure)
		return 0;
	err = exchange->answer(message, exchange->arg);
	if (err == -EPROTO)
		say(exchange->reply, "the answer lacks an attribute, or one is malformed");
	exchange->failure = err;
	return 0;
}

static int take_datagram(const struct kvp_nl *nl, struct exchange *exchange, size_t size)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)nl->buffer;
	int left = (int)size, err;

	if (!size)
		return broken(exchange, -EPROTO, "the answer is empty");
	for (; kvp_message_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
		err = take_message(nl, exchange, message);
		if (err || exchange->finished)
			return err;
	}
	if (left > 0)
		return broken(exchange, -EPROTO, "the answer is cut short");
	return 0;
}

static int receive(const struct kvp_nl *nl, struct exchange *exchange)
{
	ssize_t size;

	do {
		size = mnl_socket_recvfrom(nl->socket, nl->buffer, KVP_NL_BUFFER_SIZE);
	} while (size < 0 && errno == EINTR);
	if (size >= 0)
		return take_datagram(nl, exchange, (size_t)size);
	switch (errno) {
	case ENOSPC:	/* libmnl's word for MSG_TRUNC */
		return broken(exchange, -EPROTO, "the answer is longer than a netlink message");
	case ENOBUFS:
		return broken(exchange, -ENOBUFS, "a part of the answer was lost");
	default:
		return broken(exchange, -errno, "the answer can't be received");
	}
}

static int run(struct kvp_nl *nl, struct kvp_request *request, uint16_t flags,
	       struct exchange *exchange)
{
	ssize_t sent;
	int err = 0;

	exchange->request = request;
	exchange->reply->text[0] = '\0';
	if (request->full) {
		say(exchange->reply, "the request is longer than %zu bytes",
		    sizeof(request->bytes));
		return -EINVAL;
	}
	if (!nl->socket) {
		err = kvp_nl_open(nl, exchange->reply);
		if (err)
			return err;
	}
	/* 0 marks events, which answer nothing. */
	if (!++nl->seq)
		nl->seq++;
	request->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	request->header.nlmsg_seq = nl->seq;
	request->header.nlmsg_pid = nl->portid;
	do {
		/* EINTR: the kernel takes a datagram whole, or not at all. */
		sent = mnl_socket_sendto(nl->socket, request->bytes, request->header.nlmsg_len);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		err = broken(exchange, -errno, "the request can't be sent");
	while (!err && !exchange->finished)
		err = receive(nl, exchange);
	if (exchange->broken)
		close_socket(nl);
	return err ? err : exchange->failure;
}

int kvp_nl_request(struct kvp_nl *nl, struct kvp_request *request,
		   int (*answer)(const struct nlmsghdr *message, void *arg), void *arg,
		   struct kvp_reply *reply)
{
	struct exchange exchange = { .answer = answer, .arg = arg, .reply = reply };
	int err = run(nl, request, NLM_F_ACK, &exchange);

	if (!err && answer && exchange.answers != 1) {
		say(reply, "%u answers came instead of one", exchange.answers);
		err = -EPROTO;
	}
	return err;
}

static int gather(const struct nlmsghdr *message, void *arg)
{
	struct kvp_dump *dump = arg;
	size_t capacity = dump->capacity ? dump->capacity * 2 : 16;
	char *items;
	int err;

	if (dump->count == dump->capacity) {
		items = reallocarray(dump->items, capacity, dump->item_size);
		if (!items)
			return -ENOMEM;
		dump->items = items;
		dump->capacity = capacity;
	}
	err = dump->parse(message, dump->items + dump->count * dump->item_size);
	if (!err)
		dump->count++;
	return err;
}

int kvp_nl_dump(struct kvp_nl *nl, struct kvp_request *request, struct kvp_dump *dump,
		struct kvp_reply *reply)
{
	unsigned int tries;
	int err;

	for (tries = 0; tries < KVP_DUMP_TRIES; tries++) {
		struct exchange exchange = {
			.answer = gather, .arg = dump, .reply = reply, .dump = true,
		};

		dump->count = 0;
		err = run(nl, request, NLM_F_DUMP, &exchange);
		if (err || !exchange.interrupted)
			return err;
	}
	say(reply, "pools came and went during each of %u attempts", tries);
	return -EAGAIN;
}

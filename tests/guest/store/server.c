// SPDX-License-Identifier: GPL-2.0
/*
 * store: a store of its own process, for tests. It maps what is registered by
 * the names of spans, and keeps it when the process that registered it has died.
 * It goes wrong as the tests tell it: see protocol.h. Its standard input is the
 * socket that it listens at; requests are carried out one after another.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol.h"

#define MAX_CLIENTS 32
#define MAX_VALUES 64

static _Noreturn void die(const char *what, const struct kvp_error *error)
{
	fprintf(stderr, "store: %s: %s\n", what, error ? error->message : strerror(errno));
	exit(1);
}

static struct kvp_ctx *ctx;

/* ------------------------------------------------------- what is registered */

struct held {
	struct store_item item;
	struct kvp_pool *pool;
	char *addr;
};

static struct held held[STORE_ITEMS];
static uint32_t held_count;
static uint64_t last_cookie = 1000;

static int same_span(const struct kvp_span *one, const struct kvp_span *other)
{
	return one->id == other->id && one->generation == other->generation &&
	       one->offset == other->offset && one->length == other->length &&
	       !strcmp(one->domain, other->domain);
}

static struct held *find(const struct kvp_span *span)
{
	for (uint32_t i = 0; i < held_count; i++)
		if (same_span(&held[i].item.span, span))
			return &held[i];
	return NULL;
}

static int do_register(struct store_item *item)
{
	struct held *one = &held[held_count];
	void *addr;
	int err;

	if (find(&item->span))
		return -EEXIST;
	if (held_count == STORE_ITEMS)
		return -ENOSPC;
	err = kvp_span_import(ctx, &item->span, KVP_ACCESS_WRITE, &one->pool, &addr, NULL);
	if (err)
		return err;
	/* A test may bring back what was unregistered, as it was. */
	if (!item->cookie)
		item->cookie = ++last_cookie;
	one->item = *item;
	one->addr = addr;
	held_count++;
	return 0;
}

static int do_unregister(struct store_item *item)
{
	struct held *one = find(&item->span);

	if (!one)
		return -ENOENT;
	/* Not what the caller means: nothing is touched. */
	if (item->cookie && item->cookie != one->item.cookie)
		return -EBADF;
	kvp_pool_close(one->pool);
	held_count--;
	memmove(one, one + 1, (size_t)(&held[held_count] - one) * sizeof(*one));
	return 0;
}

static void end_all(void)
{
	while (held_count)
		kvp_pool_close(held[--held_count].pool);
}

/* -------------------------------------------------------------------- values */

static struct value {
	char key[STORE_KEY];
	char *bytes;
	uint64_t length;
} values[MAX_VALUES];

static struct value *find_value(const char *key)
{
	for (int i = 0; i < MAX_VALUES; i++)
		if (!strncmp(values[i].key, key, STORE_KEY))
			return &values[i];
	return NULL;
}

/* The bytes of a span, as the store sees them: only of what is registered. */
static char *reach(const struct kvp_span *span)
{
	for (uint32_t i = 0; i < held_count; i++) {
		const struct kvp_span *whole = &held[i].item.span;

		if (whole->id == span->id && whole->generation == span->generation &&
		    span->offset >= whole->offset && span->length <= whole->length &&
		    span->offset - whole->offset <= whole->length - span->length)
			return held[i].addr + (span->offset - whole->offset);
	}
	return NULL;
}

static int put(const char *key, const struct kvp_span *span)
{
	const char *bytes = reach(span);
	struct value *value = find_value(key);

	if (!bytes)
		return -EFAULT;
	if (!value)
		value = find_value("");
	if (!value)
		return -ENOSPC;
	free(value->bytes);
	value->bytes = malloc(span->length);
	if (!value->bytes)
		return -ENOMEM;
	memcpy(value->key, key, STORE_KEY);
	memcpy(value->bytes, bytes, span->length);
	value->length = span->length;
	return 0;
}

static int get(const char *key, const struct kvp_span *span)
{
	const struct value *value = find_value(key);
	char *bytes = reach(span);

	if (!bytes)
		return -EFAULT;
	if (!value || !value->bytes || value->length != span->length)
		return -ENOENT;
	memcpy(bytes, value->bytes, span->length);
	return 0;
}

/* ------------------------------------------------------------------- clients */

struct client {
	int fd;			/* -1: gone, though its request may still wait */
	int waits;		/* its request is not finished */
	uint32_t next;		/* item of it */
	struct store_message message;
};

static struct client clients[MAX_CLIENTS];
static struct client *hung;	/* all registering waits for this one */
static struct store_fault faults[2];	/* by op */
static struct store_item calls[4 * STORE_ITEMS];
static uint32_t call_count;

/* What goes wrong with the next call. */
static struct store_fault befalls(uint32_t op)
{
	struct store_fault *fault = &faults[op], now = { 0 };

	if (fault->how == STORE_WORKS)
		return now;
	if (fault->at) {
		fault->at--;
		return now;
	}
	now = *fault;
	if (fault->times <= 1)
		fault->how = STORE_WORKS;
	else
		fault->times--;
	return now;
}

static void hang_up(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

static void answer(struct client *client)
{
	const size_t size = store_message_size(&client->message);

	client->waits = 0;
	if (client->fd >= 0)
		(void)!send(client->fd, &client->message, size, MSG_NOSIGNAL);
}

/* An orphan has no name any more: it goes by the one that it had. */
static void name_pool(struct store_item *item)
{
	const struct held *one = find(&item->span);
	struct kvp_pool_info info = { 0 };

	if (one)
		memcpy(item->pool, one->item.pool, sizeof(item->pool));
	else if (!kvp_pool_find(ctx, item->span.id, item->span.generation, &info, NULL))
		memcpy(item->pool, info.name, sizeof(item->pool));
}

static int perform(uint32_t op, struct store_item *item)
{
	return op == STORE_REGISTER ? do_register(item) : do_unregister(item);
}

/* A call with what befalls it. 0: it hangs before it was carried out. */
static int call(struct client *client, struct store_item *item)
{
	const uint32_t op = client->message.op;
	const struct store_fault fault = befalls(op);

	name_pool(item);
	if (fault.how == STORE_HANGS && !fault.after) {
		hung = client;
		return 0;
	}
	if (fault.how == STORE_DIES && !fault.after)
		_exit(3);
	/* What goes wrong before is not carried out. */
	item->code = fault.how != STORE_WORKS && !fault.after ? -ECANCELED : perform(op, item);
	if (fault.how == STORE_DIES)
		_exit(3);
	if (fault.how == STORE_RETURNS)
		item->code = fault.code;
	if (fault.how == STORE_HANGS)
		hung = client;
	if (fault.how == STORE_ANSWERS_GARBAGE && client->fd >= 0)
		(void)!send(client->fd, "?!", 2, MSG_NOSIGNAL);
	if (fault.how == STORE_ANSWERS_GARBAGE || fault.how == STORE_HANGS_UP)
		hang_up(client);
	item->op = op;
	if (call_count < sizeof(calls) / sizeof(calls[0]))
		calls[call_count++] = *item;
	return 1;
}

/* Register until one fails, unregister past those that fail. */
static void carry_out(struct client *client)
{
	struct store_message *message = &client->message;

	while (client->next < message->count) {
		struct store_item *item = &message->items[client->next];

		if (message->code && message->op == STORE_REGISTER)
			item->code = -ECANCELED;
		else if (!call(client, item))
			return;
		if (!message->code)
			message->code = item->code;
		client->next++;
		if (hung)
			return;
	}
	answer(client);
}

static void release(void)
{
	struct client *first = hung;

	hung = NULL;
	if (first)
		carry_out(first);
	for (int i = 0; i < MAX_CLIENTS && !hung; i++)
		if (clients[i].waits)
			carry_out(&clients[i]);
}

static void list(struct store_message *message, const struct store_item *from, size_t step,
		 uint32_t count)
{
	if (count > STORE_ITEMS) {
		message->code = -E2BIG;
		count = 0;
	}
	message->count = count;
	for (uint32_t i = 0; i < count; i++)
		memcpy(&message->items[i], (const char *)from + i * step, sizeof(*from));
}

static void handle(struct client *client)
{
	struct store_message *message = &client->message;

	message->code = 0;
	client->next = 0;
	switch (message->op) {
	case STORE_REGISTER:
	case STORE_UNREGISTER:
		client->waits = 1;
		if (!hung)
			carry_out(client);
		return;
	case STORE_PUT:
		message->code = put(message->key, &message->items[0].span);
		break;
	case STORE_GET:
		message->code = get(message->key, &message->items[0].span);
		break;
	case STORE_FAULT:
		faults[message->fault.op] = message->fault;
		break;
	case STORE_RELEASE:
		release();
		break;
	case STORE_HUNG:
		message->code = hung != NULL;
		break;
	case STORE_HELD:
		list(message, &held[0].item, sizeof(held[0]), held_count);
		break;
	case STORE_CALLS:
		list(message, calls, sizeof(calls[0]), call_count);
		call_count = 0;
		break;
	case STORE_END:
		end_all();
		kvp_close(ctx);
		answer(client);
		exit(0);
	default:
		message->code = -EINVAL;
	}
	answer(client);
}

static void receive(struct client *client)
{
	const ssize_t got = recv(client->fd, &client->message, sizeof(client->message), 0);

	if (got < (ssize_t)offsetof(struct store_message, items) ||
	    client->message.count > STORE_ITEMS ||
	    (size_t)got != store_message_size(&client->message))
		hang_up(client);
	else
		handle(client);
}

static void welcome(int fd)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		if (clients[i].fd >= 0 || clients[i].waits)
			continue;
		clients[i].fd = fd;
		return;
	}
	close(fd);
}

int main(void)
{
	struct pollfd fds[MAX_CLIENTS + 1] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_error error = { 0 };

	/* Not to outlive a test that fails. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	options.read_only = 1;
	if (kvp_open(&options, &ctx, &error))
		die("open", &error);
	for (int i = 0; i < MAX_CLIENTS; i++)
		clients[i].fd = -1;
	for (;;) {
		for (int i = 0; i < MAX_CLIENTS; i++) {
			/* Who waits for an answer says nothing. */
			fds[i + 1].fd = clients[i].waits ? -1 : clients[i].fd;
			fds[i + 1].events = POLLIN;
		}
		if (poll(fds, MAX_CLIENTS + 1, -1) < 0)
			die("poll", NULL);
		for (int i = 0; i < MAX_CLIENTS; i++)
			if (fds[i + 1].fd >= 0 && fds[i + 1].revents && clients[i].fd >= 0)
				receive(&clients[i]);
		if (fds[0].revents) {
			const int fd = accept4(STDIN_FILENO, NULL, NULL, SOCK_CLOEXEC);

			if (fd < 0)
				die("accept", NULL);
			welcome(fd);
		}
	}
}

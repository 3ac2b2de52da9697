// SPDX-License-Identifier: GPL-2.0
/*
 * The test store's shared object, which kvp_registrar_load() loads: its functions
 * are messages over a socket, whose path is the configuration. With STORE_BATCH it
 * has the functions for many chunks at once too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "kvpool_store.h"
#include "protocol.h"

struct connection {
	struct sockaddr_un address;
	int fd;			/* -1: not connected */
	int answered;		/* `message` is the answer */
	struct store_message message;
};

static int reconnect(struct connection *connection)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&connection->address,
		    sizeof(connection->address)))
		err = -errno;
	/* Of a socket that isn't there. To the library it would mean: not registered. */
	if (err == -ENOENT)
		err = -ECONNREFUSED;
	if (err)
		close(fd);
	else
		connection->fd = fd;
	return err;
}

static void hang_up(struct connection *connection)
{
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
}

/* A store that was started again has another end: what can't be sent was never there. */
static int say(struct connection *connection, size_t size)
{
	int err;

	if (connection->fd >= 0 &&
	    send(connection->fd, &connection->message, size, MSG_NOSIGNAL) == (ssize_t)size)
		return 0;
	hang_up(connection);
	err = reconnect(connection);
	if (err)
		return err;
	if (send(connection->fd, &connection->message, size, MSG_NOSIGNAL) == (ssize_t)size)
		return 0;
	err = -errno;
	hang_up(connection);
	return err;
}

/* What was sent may have been carried out, unless an answer says otherwise. */
static int ask(struct connection *connection)
{
	struct store_message *message = &connection->message;
	const uint32_t count = message->count, op = message->op;
	const size_t size = store_message_size(message);
	int err = say(connection, size);

	if (err)
		return err;
	connection->answered = recv(connection->fd, message, sizeof(*message), 0) == (ssize_t)size &&
			       message->count == count && message->op == op;
	if (connection->answered)
		return message->code;
	hang_up(connection);
	return -ETIMEDOUT;
}

static int store_open(const char *config, void **store)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	int err;

	if (!connection)
		return -ENOMEM;
	connection->address.sun_family = AF_UNIX;
	connection->fd = -1;
	if (!config || strlen(config) >= sizeof(connection->address.sun_path)) {
		free(connection);
		return -EINVAL;
	}
	strcpy(connection->address.sun_path, config);
	err = reconnect(connection);
	if (err) {
		free(connection);
		return err;
	}
	*store = connection;
	return 0;
}

static void store_close(void *store)
{
	hang_up(store);
	free(store);
}

static void begin(struct connection *connection, enum store_op op)
{
	connection->answered = 0;
	connection->message.op = op;
	connection->message.code = 0;
	connection->message.count = 0;
}

static void add(struct connection *connection, const struct kvp_chunk *chunk, uint64_t cookie)
{
	struct store_item *item = &connection->message.items[connection->message.count++];

	memset(item, 0, sizeof(*item));
	item->span = chunk->span;
	item->cookie = cookie;
}

static int register_buffer(void *store, const struct kvp_chunk *chunk, uint64_t *cookie)
{
	struct connection *connection = store;
	int ret;

	begin(connection, STORE_REGISTER);
	add(connection, chunk, 0);
	ret = ask(connection);
	if (!ret)
		*cookie = connection->message.items[0].cookie;
	return ret;
}

static int unregister_buffer(void *store, const struct kvp_chunk *chunk, uint64_t cookie)
{
	struct connection *connection = store;

	begin(connection, STORE_UNREGISTER);
	add(connection, chunk, cookie);
	return ask(connection);
}

#ifdef STORE_BATCH
/* One message. What was not sent failed as a whole; what has no answer is not known. */
static int batch(struct connection *connection, enum store_op op, const struct kvp_chunk *chunks,
		 uint32_t count, const uint64_t *cookies, int *results)
{
	int ret = count > STORE_ITEMS ? -E2BIG : 0;

	begin(connection, op);
	for (uint32_t i = 0; i < count && !ret; i++)
		add(connection, &chunks[i], cookies ? cookies[i] : 0);
	if (!ret)
		ret = ask(connection);
	for (uint32_t i = 0; i < count; i++)
		results[i] = connection->answered ? connection->message.items[i].code : ret;
	return ret;
}

static int register_batch(void *store, const struct kvp_chunk *chunks, uint32_t count,
			  uint64_t *cookies, int *results)
{
	struct connection *connection = store;
	const int ret = batch(connection, STORE_REGISTER, chunks, count, NULL, results);

	for (uint32_t i = 0; i < count && connection->answered; i++)
		cookies[i] = connection->message.items[i].cookie;
	return ret;
}

static int unregister_batch(void *store, const struct kvp_chunk *chunks, uint32_t count,
			    const uint64_t *cookies, int *results)
{
	return batch(store, STORE_UNREGISTER, chunks, count, cookies, results);
}
#endif

const struct kvp_store kvp_store = {
	.version = KVP_STORE_VERSION,
	.name = STORE_NAME,
	.open = store_open,
	.close = store_close,
	.register_buffer = register_buffer,
	.unregister_buffer = unregister_buffer,
#ifdef STORE_BATCH
	.register_batch = register_batch,
	.unregister_batch = unregister_batch,
#endif
};

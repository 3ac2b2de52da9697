// SPDX-License-Identifier: GPL-2.0
/*
 * store SOCKET DEVICE: a store client that is a process of its own. It owns
 * the domain "kv": it makes pools for ranks, and registers at its own RDMA
 * device what ranks name. What passes the socket is the text of spans; a
 * pointer would mean nothing here.
 *
 *   create NAME ROLE RANK BYTES    a pool            -> ok SPAN
 *   register SPAN...               all or none       -> ok COUNT, or error LINE
 *   sum SPAN                       of its bytes      -> ok CHECKSUM
 *   release SPAN                   undo the register that has it -> ok
 *
 * Requests come over the socket, and from standard input, where an operator is.
 * The end of the input ends the store.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "demo.h"

#define DOMAIN		"kv"
#define MAX_POOLS	32
#define MAX_SPANS	16
#define MAX_CLIENTS	16
#define MAX_HOLDINGS	16

static struct kvp_ctx *ctx;
static struct kvp_registrar *registrar;

/* Pools that the store made: open, so that they live as long as it. */
static struct kvp_pool *pools[MAX_POOLS];
static uint32_t pool_count;

/* What one "register" imported and registered. */
struct holding {
	struct kvp_pool *pools[MAX_SPANS];
	struct kvp_span spans[MAX_SPANS];
	void *addrs[MAX_SPANS];
	uint32_t count;
	struct kvp_list *list;
	struct kvp_registration *registration;
};

static struct holding *holdings[MAX_HOLDINGS];

static void answer_error(char *reply, const struct kvp_error *error)
{
	const int used = sprintf(reply, "error ");

	kvp_error_format(error, reply + used, MESSAGE_SIZE - (size_t)used);
}

/* The name of a whole pool, that is of its mapping. */
static int name_pool(struct kvp_pool *pool, struct kvp_span *span, struct kvp_error *error)
{
	void *addr;
	int err = kvp_pool_map(pool, KVP_ACCESS_WRITE, &addr, error);

	if (!err)
		err = kvp_span_export(ctx, DOMAIN, addr, kvp_pool_length(pool), span, error);
	/* Whoever imports it makes a mapping of its own. */
	kvp_pool_unmap(pool);
	return err;
}

static void create(char **words, int count, char *reply)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	char text[KVP_SPAN_TEXT_SIZE];
	struct kvp_error error = { 0 };
	struct kvp_pool *pool;
	struct kvp_span span;

	if (count != 5 || pool_count == MAX_POOLS) {
		strcpy(reply, "error usage: create NAME ROLE RANK BYTES");
		return;
	}
	options.domain = DOMAIN;
	options.name = words[1];
	options.role = words[2];
	options.rank = (uint32_t)strtoul(words[3], NULL, 10);
	options.has_rank = 1;
	options.length = strtoull(words[4], NULL, 10);
	if (kvp_pool_create(ctx, &options, &pool, &error)) {
		answer_error(reply, &error);
		return;
	}
	if (name_pool(pool, &span, &error)) {
		kvp_pool_close(pool);
		answer_error(reply, &error);
		return;
	}
	pools[pool_count++] = pool;
	kvp_span_format(&span, text);
	sprintf(reply, "ok %s", text);
}

static int holding_end(struct holding *holding, struct kvp_error *error)
{
	int err = 0;
	uint32_t i;

	if (holding->registration)
		err = kvp_unregister(ctx, &holding->registration, error);
	/* What could not be undone keeps its memory: a device may still reach it. */
	if (err)
		return err;
	kvp_list_free(holding->list);
	for (i = 0; i < holding->count; i++)
		kvp_pool_close(holding->pools[i]);
	free(holding);
	return 0;
}

static int holding_fill(struct holding *holding, char **texts, int count, struct kvp_error *error)
{
	struct kvp_buffer buffer = { 0 };
	int i, err;

	err = kvp_list_new(KVP_EMPTY_REJECT, &holding->list);
	for (i = 0; i < count && !err; i++) {
		struct kvp_span *span = &holding->spans[i];

		err = kvp_span_parse(texts[i], span);
		if (err) {
			error->err = err;
			snprintf(error->message, sizeof(error->message), "not a span: %.100s",
				 texts[i]);
			break;
		}
		err = kvp_span_import(ctx, span, KVP_ACCESS_WRITE, &holding->pools[i],
				      &holding->addrs[i], error);
		if (err)
			break;
		holding->count++;
		buffer.addr = holding->addrs[i];
		buffer.length = span->length;
		buffer.generation = span->generation;
		err = kvp_list_add(holding->list, &buffer);
	}
	return err ? err : kvp_list_seal(holding->list, error);
}

static void register_spans(char **words, int count, char *reply)
{
	struct kvp_error error = { 0 }, undo = { 0 };
	struct holding *holding;
	int slot, err;

	for (slot = 0; slot < MAX_HOLDINGS && holdings[slot]; slot++)
		;
	if (count < 2 || count > MAX_SPANS + 1 || slot == MAX_HOLDINGS) {
		sprintf(reply, "error usage: register SPAN..., at most %d", MAX_SPANS);
		return;
	}
	holding = calloc(1, sizeof(*holding));
	if (!holding)
		die_errno("register");
	err = holding_fill(holding, words + 1, count - 1, &error);
	/* All or none, and checked before the device is asked. */
	if (!err)
		err = kvp_register(ctx, DOMAIN, holding->list, &registrar, 1, NULL,
				   &holding->registration, &error);
	if (!err) {
		sprintf(reply, "ok %u", kvp_registration_count(holding->registration));
		holdings[slot] = holding;
		return;
	}
	answer_error(reply, &error);
	if (holding_end(holding, &undo))
		holdings[slot] = holding;
}

static void sum(char **words, int count, char *reply)
{
	struct kvp_error error = { 0 };
	struct kvp_pool *pool;
	struct kvp_span span;
	void *addr;

	/* What is held already is read where it is: an orphan can't be opened anew. */
	if (count != 2 || kvp_span_parse(words[1], &span)) {
		strcpy(reply, "error usage: sum SPAN");
		return;
	}
	for (int slot = 0; slot < MAX_HOLDINGS; slot++) {
		const struct holding *holding = holdings[slot];

		for (uint32_t i = 0; holding && i < holding->count; i++) {
			if (holding->spans[i].generation != span.generation)
				continue;
			sprintf(reply, "ok %016" PRIx64, checksum(holding->addrs[i],
								  holding->spans[i].length));
			return;
		}
	}
	if (kvp_span_import(ctx, &span, KVP_ACCESS_READ, &pool, &addr, &error)) {
		answer_error(reply, &error);
		return;
	}
	sprintf(reply, "ok %016" PRIx64, checksum(addr, span.length));
	kvp_pool_close(pool);
}

static void release(char **words, int count, char *reply)
{
	struct kvp_error error = { 0 };
	struct kvp_span span;

	if (count != 2 || kvp_span_parse(words[1], &span)) {
		strcpy(reply, "error usage: release SPAN");
		return;
	}
	for (int slot = 0; slot < MAX_HOLDINGS; slot++) {
		struct holding *holding = holdings[slot];
		int found = 0;

		for (uint32_t i = 0; holding && i < holding->count; i++)
			found |= holding->spans[i].generation == span.generation;
		if (!found)
			continue;
		if (holding_end(holding, &error)) {
			answer_error(reply, &error);
			return;
		}
		holdings[slot] = NULL;
		strcpy(reply, "ok");
		return;
	}
	strcpy(reply, "error this span is not registered here");
}

static void handle(char *request, char *reply)
{
	char *words[MAX_SPANS + 2];
	const int count = split(request, words, MAX_SPANS + 2);

	if (count && !strcmp(words[0], "create"))
		create(words, count, reply);
	else if (count && !strcmp(words[0], "register"))
		register_spans(words, count, reply);
	else if (count && !strcmp(words[0], "sum"))
		sum(words, count, reply);
	else if (count && !strcmp(words[0], "release"))
		release(words, count, reply);
	else
		strcpy(reply, "error no such request");
}

/* Serve until the operator's input ends. */
static void serve(int listener)
{
	struct pollfd fds[2 + MAX_CLIENTS] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = listener, .events = POLLIN },
	};
	char request[MESSAGE_SIZE], reply[MESSAGE_SIZE];
	nfds_t count = 2, i;

	for (;;) {
		if (poll(fds, count, -1) < 0)
			die_errno("poll");
		if (fds[0].revents) {
			if (!fgets(request, sizeof(request), stdin))
				return;
			handle(request, reply);
			puts(reply);
			fflush(stdout);
		}
		for (i = 2; i < count; i++) {
			if (!fds[i].revents)
				continue;
			if (message_receive(fds[i].fd, request, sizeof(request))) {
				handle(request, reply);
				message_send(fds[i].fd, reply, strlen(reply));
				continue;
			}
			/* A rank that ended. Its cache stays, for when it comes back. */
			close(fds[i].fd);
			fds[i] = fds[--count];
			fds[i--].revents = 0;
		}
		if (fds[1].revents && count < 2 + MAX_CLIENTS) {
			fds[count].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			if (fds[count].fd < 0)
				die_errno("accept");
			fds[count].events = POLLIN;
			fds[count++].revents = 0;
		}
	}
}

int main(int argc, char **argv)
{
	struct rdma_device device = { 0 };
	struct kvp_error error = { 0 };
	int listener;

	if (argc != 3) {
		fprintf(stderr, "usage: store SOCKET DEVICE\n");
		return 2;
	}
	if (kvp_open(NULL, &ctx, &error))
		die("open", &error);
	rdma_open(&device, argv[2]);
	if (kvp_registrar_verbs(&device.pd, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE, &registrar, &error))
		die("registrar", &error);
	listener = message_listen(argv[1]);
	puts("ok ready");
	fflush(stdout);

	serve(listener);

	close(listener);
	unlink(argv[1]);
	for (int slot = 0; slot < MAX_HOLDINGS; slot++)
		if (holdings[slot] && holding_end(holdings[slot], &error))
			die("unregister", &error);
	while (pool_count)
		kvp_pool_close(pools[--pool_count]);
	kvp_registrar_free(registrar);
	rdma_close(&device);
	kvp_close(ctx);
	return 0;
}

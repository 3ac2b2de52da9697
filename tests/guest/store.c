// SPDX-License-Identifier: GPL-2.0
#include "store.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un address_of(const struct store *store)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, store->path);
	return address;
}

static int connect_to(const struct store *store)
{
	const struct sockaddr_un address = address_of(store);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(!connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	return fd;
}

void store_start(struct store *store)
{
	struct sockaddr_un address;
	int listener;

	if (!store->path[0])
		snprintf(store->path, sizeof(store->path), "/tmp/store.%d", (int)getpid());
	unlink(store->path);
	address = address_of(store);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(listener >= 0);
	CHECK(!bind(listener, (const struct sockaddr *)&address, sizeof(address)));
	CHECK(!listen(listener, 16));
	store->pid = fork();
	CHECK(store->pid >= 0);
	if (!store->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(listener, STDIN_FILENO);
		execl("/usr/lib/kvpool/tests/store", "store", NULL);
		FAIL("can't run the store (errno %d)", errno);
	}
	close(listener);
	store->line = connect_to(store);
}

static void gone(struct store *store)
{
	close(store->line);
	unlink(store->path);
	store->pid = 0;
}

static int ask(struct store *store, struct store_message *message)
{
	const size_t size = store_message_size(message);
	ssize_t got;

	CHECK(send(store->line, message, size, MSG_NOSIGNAL) == (ssize_t)size);
	got = recv(store->line, message, sizeof(*message), 0);
	if (got < (ssize_t)offsetof(struct store_message, items))
		FAIL("the store gave no answer (errno %d)", errno);
	return message->code;
}

static int tell_store(struct store *store, enum store_op op)
{
	struct store_message message = { .op = op };

	return ask(store, &message);
}

void store_end(struct store *store)
{
	EQUAL(tell_store(store, STORE_END), 0);
	EQUAL(wait_child(store->pid), 0);
	gone(store);
}

void store_kill(struct store *store)
{
	kill_now(store->pid);
	gone(store);
}

void store_await(struct store *store)
{
	EQUAL(wait_child(store->pid), 3);
	gone(store);
}

void store_fault(struct store *store, struct store_fault fault)
{
	struct store_message message = { .op = STORE_FAULT, .fault = fault };

	EQUAL(ask(store, &message), 0);
}

void store_works(struct store *store)
{
	store_fault(store, (struct store_fault){ .op = STORE_REGISTER });
	store_fault(store, (struct store_fault){ .op = STORE_UNREGISTER });
}

bool store_hangs(struct store *store)
{
	return tell_store(store, STORE_HUNG);
}

void store_release(struct store *store)
{
	EQUAL(tell_store(store, STORE_RELEASE), 0);
}

static char text[STORE_ITEMS * 100];

static void add_item(const char *sign, const struct store_item *item)
{
	const size_t used = strlen(text);

	snprintf(text + used, sizeof(text) - used, "%s%s%s+%" PRIu64, used ? " " : "", sign,
		 item->pool, item->span.offset / BLOCK);
}

const char *store_holds(struct store *store)
{
	struct store_message message = { .op = STORE_HELD };

	EQUAL(ask(store, &message), 0);
	text[0] = 0;
	for (uint32_t i = 0; i < message.count; i++)
		add_item("", &message.items[i]);
	return text;
}

const char *store_calls(struct store *store)
{
	struct store_message message = { .op = STORE_CALLS };

	EQUAL(ask(store, &message), 0);
	text[0] = 0;
	for (uint32_t i = 0; i < message.count; i++) {
		const struct store_item *item = &message.items[i];

		add_item(item->op == STORE_REGISTER ? "+" : "-", item);
		if (item->code)
			sprintf(text + strlen(text), "!%d", item->code);
	}
	return text;
}

void store_hold(struct store *store, const struct kvp_span *span, uint64_t cookie)
{
	struct store_message message = { .op = STORE_REGISTER, .count = 1 };

	message.items[0].span = *span;
	message.items[0].cookie = cookie;
	EQUAL(ask(store, &message), 0);
}

static int copy(struct store *store, enum store_op op, const char *key, const struct kvp_span *span)
{
	struct store_message message = { .op = op, .count = 1 };

	CHECK(strlen(key) < sizeof(message.key));
	strcpy(message.key, key);
	message.items[0].span = *span;
	return ask(store, &message);
}

int store_put(struct store *store, const char *key, const struct kvp_span *span)
{
	return copy(store, STORE_PUT, key, span);
}

int store_get(struct store *store, const char *key, const struct kvp_span *span)
{
	return copy(store, STORE_GET, key, span);
}

struct kvp_registrar *store_registrar(const struct store *store, const char *object,
				      uint64_t time_limit)
{
	struct kvp_load_options options = KVP_INIT(struct kvp_load_options);
	struct kvp_registrar *registrar = NULL;

	options.path = object;
	options.config = store->path;
	options.time_limit = time_limit;
	RETURNS(0, kvp_registrar_load(&options, &registrar, &error));
	return registrar;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * rank N STORE-SOCKET DEVICE...: one rank of an inference server, with a host
 * pool for the target model's KV cache and one for the draft model's. It does
 * what it is told on standard input, a line a command, and answers with a line:
 *
 *   attach                     target and draft pool from the store -> ok SPAN SPAN
 *   own                        a target pool of its own instead     -> ok SPAN
 *   fill                       write this rank's bytes              -> ok
 *   sum BUFFER                                                      -> ok CHECKSUM
 *   register                   at every device, all or none         -> ok COUNT
 *   visible                    buffers that commit() let out        -> ok COUNT
 *   unregister                                                      -> ok
 *   register-failing K         the same, call K fails      -> failed FACTS: LINE
 *   register-mmap              the same, the draft is from mmap()   -> failed LINE
 *   share-mmap                 name that draft buffer for the store -> failed LINE
 *   share                      let the store register the pools     -> ok COUNT
 *   listen PATH, connect PATH  reach the other rank                 -> ok PEER
 *   write BUFFER PAGE COUNT DEVICE   its pages to the same of the peer's  -> ok
 *   read BUFFER PAGE COUNT DEVICE    the other way                        -> ok
 *   verify BUFFER PAGE COUNT RANK    are they RANK's bytes?         -> ok yes, ok no
 *
 * Buffer 0 is the target, 1 the draft; a page of KV cache is 1 MiB. The end of
 * the input ends the rank. A failure that no command expects ends it with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "demo.h"

#define DOMAIN		"kv"
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define MAX_DEVICES	4
#define MAX_BUFFERS	2
#define PAGE		MIB

static const struct { const char *role; uint64_t length; } parts[MAX_BUFFERS] = {
	{ "target", 64 * MIB },
	{ "draft", 16 * MIB },
};

struct memory {
	struct kvp_pool *pool;
	struct kvp_span span;
	void *addr;
};

/* What ranks tell each other. Both ends are this program, on this machine. */
struct hello {
	uint32_t rank;
	struct rdma_address devices[MAX_DEVICES];
	struct { uint64_t addr; uint32_t rkey; } mrs[MAX_BUFFERS][MAX_DEVICES];
};

static uint32_t rank;
static struct kvp_ctx *ctx;
static int store;
static struct rdma_device devices[MAX_DEVICES];
static uint32_t device_count;
static struct kvp_registrar *registrar;
static struct memory memory[MAX_BUFFERS];
static uint32_t buffer_count;
static struct kvp_registration *registration;
static struct hello peer;

/* What the rest of the server would see: set by commit(), and nowhere else. */
static const struct memory *visible[MAX_BUFFERS];
static uint32_t visible_count;

static __attribute__((format(printf, 1, 2))) void answer(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static void answer_failed(const struct kvp_error *error, const char *facts)
{
	char line[640];

	kvp_error_format(error, line, sizeof(line));
	answer("failed %s%s", facts, line);
}

static _Noreturn void misused(const char *what)
{
	fprintf(stderr, "rank %u: %s\n", rank, what);
	exit(2);
}

static uint32_t number(char **words, int n, uint32_t limit)
{
	char *end;
	unsigned long value;

	if (!words[n])
		misused("a number is missing");
	value = strtoul(words[n], &end, 10);
	if (*end || value >= limit)
		misused("a number is out of range");
	return (uint32_t)value;
}

/* ------------------------------------------------------------------- pools */

/* Ask the store; the answer without its "ok ". */
static const char *ask_store(const char *request, char reply[MESSAGE_SIZE])
{
	message_send(store, request, strlen(request));
	if (!message_receive(store, reply, MESSAGE_SIZE))
		misused("the store has gone");
	if (strncmp(reply, "ok ", 3)) {
		fprintf(stderr, "rank %u: the store: %s\n", rank, reply);
		exit(1);
	}
	return reply + 3;
}

static void answer_spans(void)
{
	char texts[MAX_BUFFERS][KVP_SPAN_TEXT_SIZE] = { "", "" };
	uint32_t i;

	for (i = 0; i < buffer_count; i++)
		kvp_span_format(&memory[i].span, texts[i]);
	answer("ok %s %s", texts[0], texts[1]);
}

static void attach(char **words)
{
	char request[200], reply[MESSAGE_SIZE];
	struct kvp_error error = { 0 };
	struct memory *m;
	uint32_t i;

	(void)words;
	for (i = 0; i < MAX_BUFFERS; i++) {
		m = &memory[i];
		/* The draft is asked for as the target is: one domain, by construction. */
		snprintf(request, sizeof(request), "create %s-%u %s %u %" PRIu64, parts[i].role,
			 rank, parts[i].role, rank, parts[i].length);
		if (kvp_span_parse(ask_store(request, reply), &m->span))
			misused("the store's answer is not a span");
		if (kvp_span_import(ctx, &m->span, KVP_ACCESS_WRITE, &m->pool, &m->addr, &error))
			die("import", &error);
	}
	buffer_count = MAX_BUFFERS;
	answer_spans();
}

static void own(char **words)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_error error = { 0 };
	struct memory *m = &memory[0];
	char name[KVP_NAME_SIZE];

	(void)words;
	snprintf(name, sizeof(name), "target-%u", rank);
	options.domain = DOMAIN;
	options.name = name;
	options.role = "target";
	options.rank = rank;
	options.has_rank = 1;
	options.length = parts[0].length;
	if (kvp_pool_create(ctx, &options, &m->pool, &error))
		die("create", &error);
	if (kvp_pool_map(m->pool, KVP_ACCESS_WRITE, &m->addr, &error))
		die("map", &error);
	if (kvp_span_export(ctx, DOMAIN, m->addr, options.length, &m->span, &error))
		die("export", &error);
	buffer_count = 1;
	answer_spans();
}

/* Whose bytes they are: differs by rank and by buffer. */
static uint32_t owner_of(uint32_t from, uint32_t buffer)
{
	return from * MAX_BUFFERS + buffer;
}

static void fill(char **words)
{
	uint32_t i;

	(void)words;
	for (i = 0; i < buffer_count; i++)
		pattern_fill(memory[i].addr, 0, memory[i].span.length, owner_of(rank, i));
	answer("ok");
}

static void sum(char **words)
{
	const uint32_t i = number(words, 1, buffer_count);

	answer("ok %016" PRIx64, checksum(memory[i].addr, memory[i].span.length));
}

/* ------------------------------------------------------------ registration */

/* This rank's buffers; `draft` takes the place of the draft pool's, if there is one. */
static struct kvp_list *make_list(void *draft)
{
	struct kvp_error error = { 0 };
	struct kvp_list *list;
	uint32_t i;
	int err = kvp_list_new(KVP_EMPTY_REJECT, &list);

	for (i = 0; i < buffer_count && !err; i++) {
		struct kvp_buffer buffer = {
			.addr = i == 1 && draft ? draft : memory[i].addr,
			.length = memory[i].span.length,
			.block = PAGE,
		};

		err = kvp_list_add(list, &buffer);
	}
	if (err) {
		errno = -err;
		die_errno("list");
	}
	if (kvp_list_seal(list, &error))
		die("list", &error);
	return list;
}

static int commit(const struct kvp_registration *committed, void *arg)
{
	(void)committed;
	(void)arg;
	for (visible_count = 0; visible_count < buffer_count; visible_count++)
		visible[visible_count] = &memory[visible_count];
	return 0;
}

static const struct kvp_transaction_options transaction = {
	.struct_size = sizeof(transaction),
	.commit = commit,
};

static void register_all(char **words)
{
	struct kvp_list *list = make_list(NULL);
	struct kvp_error error = { 0 };

	(void)words;
	if (kvp_register(ctx, DOMAIN, list, &registrar, 1, &transaction, &registration, &error))
		die("register", &error);
	kvp_list_free(list);
	answer("ok %u", kvp_registration_count(registration));
}

static void unregister_all(char **words)
{
	struct kvp_error error = { 0 };

	(void)words;
	visible_count = 0;
	if (kvp_unregister(ctx, &registration, &error))
		die("unregister", &error);
	answer("ok");
}

static void count_visible(char **words)
{
	(void)words;
	answer("ok %u", visible_count);
}

static uint32_t pinned_at_failure;

static uint32_t pinned_blocks(void)
{
	struct kvp_error error = { 0 };
	struct kvp_pool_info info;
	uint32_t pinned = 0, i;

	for (i = 0; i < buffer_count; i++) {
		if (kvp_pool_query(memory[i].pool, &info, &error))
			die("query", &error);
		pinned += info.pinned_blocks;
	}
	return pinned;
}

static void look_at_pins(void)
{
	pinned_at_failure = pinned_blocks();
}

/* A device that has no room for one more: what was registered before goes too. */
static void register_failing(char **words)
{
	struct flaky flaky = {
		.devices = devices,
		.fail_at = number(words, 1, UINT32_MAX),
		.at_failure = look_at_pins,
	};
	struct kvp_list *list = make_list(NULL);
	struct kvp_registrar *failing;
	struct kvp_error error = { 0 };
	char facts[160];

	if (flaky_new(&flaky, device_count, &failing))
		misused("can't make the failing registrar");
	if (!kvp_register(ctx, DOMAIN, list, &failing, 1, &transaction, &registration, &error))
		misused("the registration should have failed");
	snprintf(facts, sizeof(facts), "calls=%u undone=%u reverse=%s left=%s pinned=%u then=%u: ",
		 flaky.calls, flaky.undone, flaky.in_reverse ? "yes" : "no",
		 registration ? "some" : "none", pinned_at_failure, pinned_blocks());
	kvp_registrar_free(failing);
	kvp_list_free(list);
	answer_failed(&error, facts);
}

/*
 * The mistake of sglang issue 28873: the target is the store's, and the draft
 * falls back to memory of this process.
 */
static void *draft_from_mmap(void)
{
	void *draft = mmap(NULL, memory[1].span.length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (draft == MAP_FAILED)
		die_errno("mmap");
	memset(draft, 1, memory[1].span.length);
	return draft;
}

static void register_mmap(char **words)
{
	void *draft = draft_from_mmap();
	struct kvp_list *list = make_list(draft);
	struct kvp_error error = { 0 };

	(void)words;
	if (!kvp_register(ctx, DOMAIN, list, &registrar, 1, &transaction, &registration, &error))
		misused("the registration should have failed");
	kvp_list_free(list);
	munmap(draft, memory[1].span.length);
	answer_failed(&error, "");
}

static void share_mmap(char **words)
{
	void *draft = draft_from_mmap();
	struct kvp_error error = { 0 };
	struct kvp_span span;

	(void)words;
	if (!kvp_span_export(ctx, DOMAIN, draft, memory[1].span.length, &span, &error))
		misused("the memory should have no span");
	munmap(draft, memory[1].span.length);
	answer_failed(&error, "");
}

static void share(char **words)
{
	char request[MESSAGE_SIZE] = "register", reply[MESSAGE_SIZE];
	char text[KVP_SPAN_TEXT_SIZE];
	uint32_t i;

	(void)words;
	for (i = 0; i < buffer_count; i++) {
		kvp_span_format(&memory[i].span, text);
		strcat(strcat(request, " "), text);
	}
	answer("ok %s", ask_store(request, reply));
}

/* ---------------------------------------------------------------- transfers */

/* The memory region of a buffer at a device. */
static struct ibv_mr *mr_of(uint32_t buffer, uint32_t device)
{
	const struct kvp_entry *entry;

	entry = registration ? kvp_registration_find(registration, buffer, 0, device, 0) : NULL;
	if (!entry)
		misused("not registered");
	/* A device with a small max_mr_size gets several; this example transfers in one. */
	if (entry->chunk.length != memory[buffer].span.length)
		misused("the buffer is registered in pieces");
	return kvp_entry_mr(registration, entry);
}

static void exchange(int fd)
{
	struct hello hello = { .rank = rank };
	char message[sizeof(hello) + 1];
	uint32_t i, d;

	for (d = 0; d < device_count; d++) {
		hello.devices[d] = rdma_address(&devices[d]);
		for (i = 0; i < buffer_count; i++) {
			hello.mrs[i][d].addr = (uintptr_t)memory[i].addr;
			hello.mrs[i][d].rkey = mr_of(i, d)->rkey;
		}
	}
	message_send(fd, &hello, sizeof(hello));
	if (message_receive(fd, message, sizeof(message)) != sizeof(peer))
		misused("the other rank has gone");
	memcpy(&peer, message, sizeof(peer));
	for (d = 0; d < device_count; d++)
		rdma_connect(&devices[d], &peer.devices[d]);
	/* Neither may send before both can receive. */
	message_send(fd, "connected", 9);
	if (!message_receive(fd, message, sizeof(message)))
		misused("the other rank has gone");
	close(fd);
	answer("ok %u", peer.rank);
}

static void listen_at(char **words)
{
	int listener = message_listen(words[1]), fd;

	answer("ok");
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		die_errno("accept");
	close(listener);
	unlink(words[1]);
	exchange(fd);
}

static void connect_to(char **words)
{
	exchange(message_connect(words[1]));
}

struct pages {
	uint32_t buffer;
	uint64_t offset, length;
};

static struct pages pages_of(char **words)
{
	struct pages pages = { .buffer = number(words, 1, buffer_count) };
	const uint32_t all = (uint32_t)(memory[pages.buffer].span.length / PAGE);
	const uint32_t first = number(words, 2, all);

	pages.offset = first * PAGE;
	pages.length = number(words, 3, all - first + 1) * PAGE;
	return pages;
}

static void transfer(char **words, enum ibv_wr_opcode opcode)
{
	const struct pages pages = pages_of(words);
	const uint32_t device = number(words, 4, device_count);

	rdma_transfer(&devices[device], opcode, mr_of(pages.buffer, device),
		      (char *)memory[pages.buffer].addr + pages.offset,
		      peer.mrs[pages.buffer][device].addr + pages.offset,
		      peer.mrs[pages.buffer][device].rkey, (uint32_t)pages.length);
	answer("ok");
}

static void write_pages(char **words)
{
	transfer(words, IBV_WR_RDMA_WRITE);
}

static void read_pages(char **words)
{
	transfer(words, IBV_WR_RDMA_READ);
}

static void verify(char **words)
{
	const struct pages pages = pages_of(words);
	const uint32_t from = number(words, 4, UINT32_MAX);

	answer("ok %s", pattern_matches(memory[pages.buffer].addr, pages.offset, pages.length,
					owner_of(from, pages.buffer)) ? "yes" : "no");
}

/* -------------------------------------------------------------------- main */

static const struct { const char *name; void (*run)(char **words); } commands[] = {
	{ "attach", attach }, { "own", own }, { "fill", fill }, { "sum", sum },
	{ "register", register_all }, { "unregister", unregister_all },
	{ "visible", count_visible },
	{ "register-failing", register_failing }, { "register-mmap", register_mmap },
	{ "share-mmap", share_mmap }, { "share", share },
	{ "listen", listen_at }, { "connect", connect_to },
	{ "write", write_pages }, { "read", read_pages }, { "verify", verify },
};

static void run(char *line)
{
	char *words[8] = { NULL };
	size_t i;

	if (!split(line, words, 7))
		return;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, words[0])) {
			commands[i].run(words);
			return;
		}
	}
	misused("no such command");
}

int main(int argc, char **argv)
{
	struct ibv_pd *pds[MAX_DEVICES];
	struct kvp_error error = { 0 };
	char line[MESSAGE_SIZE];
	uint32_t i;

	if (argc < 4 || argc > 3 + MAX_DEVICES) {
		fprintf(stderr, "usage: rank N STORE-SOCKET DEVICE...\n");
		return 2;
	}
	rank = (uint32_t)strtoul(argv[1], NULL, 10);
	store = message_connect(argv[2]);
	if (kvp_open(NULL, &ctx, &error))
		die("open", &error);
	for (device_count = 0; device_count < (uint32_t)argc - 3; device_count++) {
		rdma_open(&devices[device_count], argv[3 + device_count]);
		pds[device_count] = devices[device_count].pd;
	}
	if (kvp_registrar_verbs(pds, device_count, ACCESS, &registrar, &error))
		die("registrar", &error);
	answer("ok ready");

	while (fgets(line, sizeof(line), stdin))
		run(line);

	if (kvp_unregister(ctx, &registration, &error))
		die("unregister", &error);
	kvp_registrar_free(registrar);
	for (i = 0; i < device_count; i++)
		rdma_close(&devices[i]);
	for (i = 0; i < buffer_count; i++)
		kvp_pool_close(memory[i].pool);
	close(store);
	kvp_close(ctx);
	return 0;
}

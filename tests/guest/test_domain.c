// SPDX-License-Identifier: GPL-2.0
/*
 * Whether memory belongs to a domain, and what it is when it doesn't: each kind
 * has an error of its own and a message that names it. Spans between processes.
 */
#include "registering.h"

#include <stdarg.h>
#include <sys/socket.h>

/* kvp_check() of one buffer in domain kv. */
#define CHECKED(want, where, bytes) do { \
	struct kvp_buffer buffer_ = { .addr = (where), .length = (bytes) }; \
	RETURNS(want, kvp_check(ctx, "kv", &buffer_, 1, NULL, &error)); \
	if (want) { \
		EQUAL(last_error.err, want); \
		EQUAL(last_error.phase, KVP_PHASE_CHECK); \
		EQUAL(last_error.index, 0); \
	} \
} while (0)

static void says(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void says(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	SAYS(text);
}

static void *map_shared(int fd, size_t length)
{
	void *addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(addr != MAP_FAILED);
	return addr;
}

static void pools(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *foreign = make_pool(ctx, "weights", 2 * BLOCK);
	char *target = map_pool(make_pool(ctx, "kv", 4 * BLOCK));
	char *draft = map_pool(make_pool(ctx, "kv", BLOCK + 1000));
	char *weights = map_pool(foreign);
	struct kvp_buffer all[] = {
		{ .addr = target, .length = 4 * BLOCK },
		{ .addr = weights, .length = BLOCK },
		{ .addr = draft, .length = BLOCK + 1000 },
		{ .addr = &all, .length = 8 },
	};
	int results[4];

	CHECKED(0, target, 4 * BLOCK);
	CHECKED(0, target + 12345, 1);
	CHECKED(0, target + 4 * BLOCK - 1, 1);
	CHECKED(0, draft, BLOCK + 1000);
	CHECKED(-EXDEV, weights + 4096, 100);
	says("pool %" PRIu32 " of domain weights, not a pool of domain kv", kvp_pool_id(foreign));
	SAYS("create the pool in domain kv");

	/* All are looked at, and the first that fails is told. */
	RETURNS(-EXDEV, kvp_check(ctx, "kv", all, 4, results, &error));
	EQUAL(last_error.index, 1);
	EQUAL(results[0], 0);
	EQUAL(results[1], -EXDEV);
	EQUAL(results[2], 0);
	EQUAL(results[3], -ENOTSUP);
}

static void bounds(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK + 1000);
	char *addr = map_pool(pool);

	CHECKED(-EINVAL, addr, 0);
	SAYS("the length is 0");
	CHECKED(-EINVAL, addr, UINT64_MAX);
	SAYS("wrap around the end of the address space");
	CHECKED(-EINVAL, (void *)(UINTPTR_MAX - 4095), 4097);
	SAYS("wrap around the end of the address space");
	CHECKED(-EFAULT, (void *)(UINTPTR_MAX - 4095), 4095);
	SAYS("are not mapped, from 0xfffffffffffff000 on");
	CHECKED(-ERANGE, addr, BLOCK + 1001);
	says("pass the logical end of pool %" PRIu32 ", which is 2098152 bytes long: "
	     "they end at its offset 2098153", kvp_pool_id(pool));
	/* Starts at the end, whose byte is mapped but not the caller's. */
	CHECKED(-ERANGE, addr + BLOCK + 1000, 1);
	SAYS("they end at its offset 2098153");
	CHECKED(-ERANGE, addr + 2 * BLOCK - 1, 1);
	SAYS("they end at its offset 4194304");
	CHECKED(0, addr + BLOCK + 999, 1);
}

#define FOREIGN(where, bytes, name) do { \
	CHECKED(-ENOTSUP, where, bytes); \
	SAYS(name); \
	SAYS("not a pool of domain kv"); \
	SAYS("allocate it with kvp_pool_create() in domain kv"); \
} while (0)

static void foreign_memory(void)
{
	struct kvp_ctx *ctx = open_ctx();
	const int anonymous = MAP_ANONYMOUS | MAP_PRIVATE;
	char *addr, on_stack[64];
	int fd;

	/* sglang 28873: the draft pool that fell back to plain mmap. */
	addr = mmap(NULL, 4 * BLOCK, PROT_READ | PROT_WRITE, anonymous, -1, 0);
	CHECK(addr != MAP_FAILED);
	FOREIGN(addr, 4 * BLOCK, "bytes at 0x");
	SAYS("are private anonymous memory");
	FOREIGN(on_stack, sizeof(on_stack), "are private anonymous memory");
	addr = malloc(100);
	FOREIGN(addr, 100, "are private anonymous memory");

	addr = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
	CHECK(addr != MAP_FAILED);
	FOREIGN(addr, BLOCK, "are shared memory /dev/zero (deleted)");

	fd = memfd_create("kv-cache", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)BLOCK));
	FOREIGN(map_shared(fd, BLOCK), BLOCK, "are shared memory /memfd:kv-cache (deleted)");

	fd = open("/dev/shm/kv-arena", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)BLOCK));
	addr = map_shared(fd, BLOCK);
	FOREIGN(addr, BLOCK, "are shared memory /dev/shm/kv-arena");
	CHECK(!unlink("/dev/shm/kv-arena"));
	FOREIGN(addr, BLOCK, "are shared memory /dev/shm/kv-arena (deleted)");

	/* Of a file system of its own: the guest's read-only root. */
	fd = open("/usr/bin/bash", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	addr = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(addr != MAP_FAILED);
	FOREIGN(addr, 4096, "are the file /usr/bin/bash");

	/* A driver's: the clock that the kernel maps into every process. */
	addr = (void *)shell_number("sed -n 's/-.*\\[vvar\\]$//p' /proc/%d/maps | "
				    "{ read -r hex; echo $((0x$hex)); }", getpid());
	CHECK(addr);
	FOREIGN(addr, 4096, "are memory of a driver");
}

static void huge_foreign_memory(void)
{
	struct kvp_ctx *ctx = open_ctx();
	char *addr;
	int fd;

	EQUAL(shell("echo 4 >/proc/sys/vm/nr_hugepages"), 0);
	EQUAL(proc_kib("/proc/meminfo", "HugePages_Total:"), 4);
	addr = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
		    MAP_ANONYMOUS | MAP_PRIVATE | MAP_HUGETLB, -1, 0);
	CHECK(addr != MAP_FAILED);
	FOREIGN(addr, BLOCK, "are hugetlb memory /anon_hugepage (deleted)");
	CHECK(!munmap(addr, BLOCK));

	fd = memfd_create("kv-huge", MFD_CLOEXEC | MFD_HUGETLB);
	CHECK(fd >= 0 && !ftruncate(fd, (off_t)(2 * BLOCK)));
	addr = map_shared(fd, 2 * BLOCK);
	FOREIGN(addr, 2 * BLOCK, "are hugetlb memory /memfd:kv-huge (deleted)");
	CHECK(!munmap(addr, 2 * BLOCK));
	close(fd);
	EQUAL(shell("echo 0 >/proc/sys/vm/nr_hugepages"), 0);
	EQUAL(proc_kib("/proc/meminfo", "HugePages_Total:"), 0);
}

static void destroy(struct kvp_ctx *ctx, struct kvp_pool *pool, int force)
{
	RETURNS(0, kvp_pool_destroy(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), force,
				    &error));
}

/* Mooncake's register path: freed, and other memory allocated at the same address. */
static void other_memory_at_the_same_address(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 2 * BLOCK);
	const uint64_t old = kvp_pool_generation(pool);
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = 2 * BLOCK };
	void *again;

	buffer.generation = old;
	RETURNS(0, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	kvp_pool_unmap(pool);
	destroy(ctx, pool, 0);
	kvp_pool_close(pool);
	RETURNS(-EFAULT, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));

	pool = make_pool(ctx, "kv", 2 * BLOCK);
	again = mmap(buffer.addr, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     kvp_pool_fd(pool), 0);
	CHECK(again == buffer.addr);
	CHECK(kvp_pool_generation(pool) > old);
	RETURNS(-ESTALE, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	says("are generation %" PRIu64 " of pool %" PRIu32 ", not generation %" PRIu64,
	     kvp_pool_generation(pool), kvp_pool_id(pool), old);
	SAYS("other memory took the address of what ended");
	buffer.generation = kvp_pool_generation(pool);
	RETURNS(0, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
}

static void destroyed_and_still_mapped(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 2 * BLOCK);
	char *addr = map_pool(pool);

	CHECKED(0, addr, 2 * BLOCK);
	destroy(ctx, pool, 1);
	CHECKED(-ESTALE, addr, 2 * BLOCK);
	says("are pool %" PRIu32 " of generation %" PRIu64 ", which was destroyed",
	     kvp_pool_id(pool), kvp_pool_generation(pool));
	SAYS("open and map the pool that took its place");
	/* Its domain does not matter any more, nor does the end. */
	CHECKED(-ESTALE, addr + 100, 1);
}

static void several_mappings(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *a = make_pool(ctx, "kv", 2 * BLOCK), *b = make_pool(ctx, "kv", 2 * BLOCK);
	struct kvp_pool *foreign = make_pool(ctx, "weights", BLOCK);
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
	char *base;

	base = mmap(NULL, 16 * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(base != MAP_FAILED);
	CHECK(mmap(base, 2 * BLOCK, prot, flags, kvp_pool_fd(a), 0) != MAP_FAILED);
	CHECK(mmap(base + 2 * BLOCK, 2 * BLOCK, prot, flags, kvp_pool_fd(b), 0) != MAP_FAILED);
	CHECKED(0, base + BLOCK, BLOCK);
	CHECKED(0, base + 2 * BLOCK, BLOCK);
	CHECKED(-ERANGE, base + BLOCK, 2 * BLOCK);
	says("straddle pools %" PRIu32 " and %" PRIu32 " at offset 2097152", kvp_pool_id(a),
	     kvp_pool_id(b));
	says("make a buffer of its own from 0x%" PRIx64 " on", (uint64_t)(uintptr_t)base + 2 * BLOCK);
	CHECKED(-ERANGE, base + 2 * BLOCK - 1, 2);
	SAYS("at offset 1");

	/* The same pool twice: the second mapping starts anew. */
	CHECK(mmap(base + 2 * BLOCK, 2 * BLOCK, prot, flags, kvp_pool_fd(a), 0) != MAP_FAILED);
	CHECKED(-ERANGE, base, 4 * BLOCK);
	says("straddle two mappings of pool %" PRIu32 " that don't continue each other",
	     kvp_pool_id(a));
	/* Two mappings that do are one piece of memory. */
	CHECK(mmap(base, BLOCK, prot, flags, kvp_pool_fd(b), 0) != MAP_FAILED);
	CHECK(mmap(base + BLOCK, BLOCK, prot, flags, kvp_pool_fd(b), (off_t)BLOCK) != MAP_FAILED);
	CHECKED(0, base, 2 * BLOCK);

	/* Another domain's pool in the second half. */
	CHECK(mmap(base + BLOCK, BLOCK, prot, flags, kvp_pool_fd(foreign), 0) != MAP_FAILED);
	CHECKED(-EXDEV, base, 2 * BLOCK);
	says("2097152 of 4194304 bytes at 0x%" PRIx64 " are pool %" PRIu32 " of domain weights",
	     (uint64_t)(uintptr_t)base, kvp_pool_id(foreign));

	/* Foreign memory in the middle, then a hole, which is graver. */
	CHECK(mmap(base + BLOCK, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	      MAP_FAILED);
	CHECKED(-ENOTSUP, base, 2 * BLOCK);
	SAYS("8192 of 4194304 bytes");
	SAYS("are private anonymous memory");
	CHECK(!munmap(base + BLOCK, 4096));
	CHECKED(-EFAULT, base, 2 * BLOCK);
	says("4096 of 4194304 bytes at 0x%" PRIx64 " are not mapped, from 0x%" PRIx64 " on",
	     (uint64_t)(uintptr_t)base, (uint64_t)(uintptr_t)base + BLOCK);
}

static void holes(void)
{
	struct kvp_ctx *ctx = open_ctx();
	char *addr = map_pool(make_pool(ctx, "kv", 4 * BLOCK));
	const uint64_t start = (uintptr_t)addr;

	/* One 4 KiB hole in a large region: InferenceX PR 3330. */
	CHECK(!munmap(addr + BLOCK + 4096, 4096));
	CHECKED(-EFAULT, addr, 4 * BLOCK);
	says("4096 of 8388608 bytes at 0x%" PRIx64 " are not mapped, from 0x%" PRIx64 " on", start,
	     start + BLOCK + 4096);
	CHECKED(0, addr, BLOCK + 4096);
	CHECKED(0, addr + BLOCK + 8192, 3 * BLOCK - 8192);
	CHECKED(-EFAULT, addr + BLOCK + 4096, 4096);
	says("4096 bytes at 0x%" PRIx64 " are not mapped", start + BLOCK + 4096);

	CHECK(!munmap(addr + 3 * BLOCK, BLOCK));
	CHECKED(-EFAULT, addr + 2 * BLOCK, 2 * BLOCK);
	says("2097152 of 4194304 bytes at 0x%" PRIx64 " are not mapped, from 0x%" PRIx64 " on",
	     start + 2 * BLOCK, start + 3 * BLOCK);
	CHECK(!munmap(addr, 3 * BLOCK));
	CHECKED(-EFAULT, addr, 1);
	says("1 bytes at 0x%" PRIx64 " are not mapped, from 0x%" PRIx64 " on", start, start);
}

static void protection(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_buffer buffer = { .length = 2 * BLOCK, .flags = KVP_BUFFER_READ_ONLY };
	char *addr = map_pool(make_pool(ctx, "kv", 2 * BLOCK));

	buffer.addr = addr;
	CHECK(!mprotect(addr + BLOCK, 4096, PROT_READ));
	CHECKED(-EACCES, addr, 2 * BLOCK);
	says("4096 of 4194304 bytes at 0x%" PRIx64 " are mapped read only",
	     (uint64_t)(uintptr_t)addr);
	SAYS("map it with KVP_ACCESS_WRITE, or mark the buffer KVP_BUFFER_READ_ONLY");
	RETURNS(0, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	CHECKED(0, addr, BLOCK);

	CHECK(!mprotect(addr + BLOCK, 4096, PROT_NONE));
	RETURNS(-EACCES, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	SAYS("are mapped without read access");
	buffer.flags = 1U << 31;
	RETURNS(-EINVAL, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	SAYS("unknown flags 0x80000000");
}

/* Not by id and the control node, but by its own, as any program may. */
static void mapped_through_its_node(void)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;
	struct kvp_span span;
	char *addr;
	int fd;

	options.domain = "kv";
	options.name = "by-node";
	options.length = 3 * BLOCK;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	fd = open("/dev/kvpool/by-node", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	addr = map_shared(fd, 3 * BLOCK);
	CHECKED(0, addr, 3 * BLOCK);
	RETURNS(0, kvp_span_export(ctx, "kv", addr + 5000, 100, &span, &error));
	EQUAL(span.id, kvp_pool_id(pool));
	EQUAL(span.generation, kvp_pool_generation(pool));
	EQUAL(span.offset, 5000);
	fill(addr, 3 * BLOCK, 8);
	CHECK(filled(map_pool(pool), 3 * BLOCK, 8));
}

/* ------------------------------------------------------------------- spans */

static void import_by_text(void *arg)
{
	const int socket = *(int *)arg;
	struct kvp_ctx *ctx = open_ctx();
	char text[KVP_SPAN_TEXT_SIZE] = "";
	struct kvp_pool *pool;
	struct kvp_span span;
	void *addr;

	CHECK(recv(socket, text, sizeof(text), 0) > 0);
	EQUAL(kvp_span_parse(text, &span), 0);
	RETURNS(0, kvp_span_import(ctx, &span, KVP_ACCESS_WRITE, &pool, &addr, &error));
	EQUAL((uintptr_t)addr % 4096, 808);
	EQUAL(span.length, BLOCK + 8);
	CHECK(filled(addr, BLOCK + 8, 21));
	fill(addr, BLOCK + 8, 22);
}

static void span_to_another_process(void)
{
	struct kvp_ctx *ctx = open_ctx();
	char *addr = map_pool(make_pool(ctx, "kv", 4 * BLOCK));
	char text[KVP_SPAN_TEXT_SIZE];
	struct kvp_span span;
	int sockets[2];
	pid_t pid;

	fill(addr + 4904, BLOCK + 8, 21);
	RETURNS(0, kvp_span_export(ctx, "kv", addr + 4904, BLOCK + 8, &span, &error));
	CHECK(kvp_span_format(&span, text) == 0);
	CHECK(!strncmp(text, "kvpool:kv:", 10));
	CHECK(strstr(text, ":4904:2097160"));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets));
	pid = child(import_by_text, &sockets[1]);
	CHECK(send(sockets[0], text, strlen(text) + 1, 0) > 0);
	EQUAL(wait_child(pid), 0);
	CHECK(filled(addr + 4904, BLOCK + 8, 22));
}

/* What is known without asking the kernel is a name, and no leave to register. */
static void named_and_replaced(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 2 * BLOCK);
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = BLOCK };
	struct kvp_span span, again;

	RETURNS(0, kvp_span_export(ctx, "kv", buffer.addr, BLOCK, &span, &error));
	CHECKED(0, buffer.addr, BLOCK);
	CHECK(!munmap(buffer.addr, BLOCK));
	RETURNS(-EFAULT, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	CHECK(mmap(buffer.addr, BLOCK, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buffer.addr);
	RETURNS(-ENOTSUP, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	SAYS("private anonymous memory");
	/* Once the handle has let go, so has the library. */
	EQUAL(kvp_pool_unmap(pool), 0);
	RETURNS(-EFAULT, kvp_span_export(ctx, "kv", buffer.addr, BLOCK, &again, &error));
}

static void end_all(void *arg)
{
	const struct kvp_span *span = arg;

	RETURNS(0, kvp_pool_destroy(open_ctx(), span->id, span->generation, 1, &error));
}

static void named_and_destroyed(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", 2 * BLOCK), *imported;
	struct kvp_buffer buffer = { .addr = map_pool(pool), .length = BLOCK };
	struct kvp_span span, again;
	void *addr;

	RETURNS(0, kvp_span_export(ctx, "kv", buffer.addr, BLOCK, &span, &error));
	EQUAL(wait_child(child(end_all, &span)), 0);
	/* The name is that of the same pool still, and of no use to anyone. */
	RETURNS(0, kvp_span_export(ctx, "kv", buffer.addr, BLOCK, &again, &error));
	EQUAL(again.generation, span.generation);
	RETURNS(-ESTALE, kvp_span_import(ctx, &again, KVP_ACCESS_READ, &imported, &addr, &error));
	RETURNS(-ESTALE, kvp_check(ctx, "kv", &buffer, 1, NULL, &error));
	kvp_pool_close(pool);

	/* One that this context ends itself is known to have ended. */
	pool = make_pool(ctx, "kv", 2 * BLOCK);
	buffer.addr = map_pool(pool);
	RETURNS(0, kvp_pool_destroy(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), 1, &error));
	RETURNS(-ESTALE, kvp_span_export(ctx, "kv", buffer.addr, BLOCK, &again, &error));
}

static void export_is_checked(void)
{
	struct kvp_ctx *ctx = open_ctx();
	char *addr = map_pool(make_pool(ctx, "weights", BLOCK + 1000));
	struct kvp_span span = { .id = 77 };

	RETURNS(-EXDEV, kvp_span_export(ctx, "kv", addr, BLOCK, &span, &error));
	SAYS("of domain weights, not a pool of domain kv");
	RETURNS(0, kvp_span_export(ctx, NULL, addr, BLOCK + 1000, &span, &error));
	CHECK(!strcmp(span.domain, "weights"));
	span.id = 77;
	RETURNS(-ERANGE, kvp_span_export(ctx, NULL, addr, BLOCK + 1001, &span, &error));
	RETURNS(-EINVAL, kvp_span_export(ctx, NULL, addr, 0, &span, &error));
	RETURNS(-ENOTSUP, kvp_span_export(ctx, NULL, &span, sizeof(span), &span, &error));
	SAYS("are private anonymous memory, not a pool");
	EQUAL(span.id, 77);
}

static void garbage_is_no_span(void)
{
	static const char *const garbage[] = {
		"", "kvpool", "kvpool:", "kvpool::::::", "kvpool:kv:1:2:3", "kvpool:kv:1:2:3:4:5",
		"kvpool:kv:1:2:3:4 ", " kvpool:kv:1:2:3:4", "kvpool:kv:-1:2:3:4",
		"kvpool:kv:+1:2:3:4", "kvpool:kv:0x1:2:3:4", "kvpool:kv:01:2:3:4",
		"kvpool::1:2:3:4", "kvpool:k v:1:2:3:4", "kvpool:kv/..:1:2:3:4",
		"kvpool:kv:0:2:3:4", "kvpool:kv:1:0:3:4", "kvpool:kv:1:2:3:0",
		"kvpool:kv:4294967296:2:3:4", "kvpool:kv:1:18446744073709551616:3:4",
		"kvpool:kv:1:2:18446744073709551615:1", "kvpool:kv:1:2:1:18446744073709551615",
		"kvpool:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1:2:3:4",
		"KVPOOL:kv:1:2:3:4", "kvpool:kv:1:2:3:4\n",
	};
	struct kvp_span span = { .id = 77 };

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		if (kvp_span_parse(garbage[i], &span) != -EINVAL || span.id != 77)
			FAIL("\"%s\" is taken for a span", garbage[i]);
	EQUAL(kvp_span_parse("kvpool:kv:1:2:3:4", &span), 0);
}

static void wrong_and_stale_spans(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK + 1000), *imported = NULL;
	struct kvp_span good, span;
	void *addr = NULL;

	RETURNS(0, kvp_span_export(ctx, "kv", map_pool(pool), BLOCK + 1000, &good, &error));

	span = good;
	strcpy(span.domain, "weights");
	RETURNS(-EXDEV, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &imported, &addr, &error));
	says("pool %" PRIu32 " of generation %" PRIu64 " is of domain kv, not weights", good.id,
	     good.generation);
	span = good;
	span.length++;
	RETURNS(-ERANGE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &imported, &addr, &error));
	SAYS("2098153 bytes at offset 0 are not within pool");
	span = good;
	span.offset = BLOCK + 1000;
	span.length = 1;
	RETURNS(-ERANGE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &imported, &addr, &error));
	span = good;
	span.offset = 1;
	span.length = UINT64_MAX;
	RETURNS(-EINVAL, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &imported, &addr, &error));
	SAYS("the span is not valid");
	span = good;
	span.generation--;
	RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &imported, &addr, &error));
	SAYS("another has its id");
	span = good;
	span.id += 1000;
	RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &imported, &addr, &error));
	SAYS("has ended");

	/* Stale after the end, whoever has its id then. */
	destroy(ctx, pool, 1);
	RETURNS(-ESTALE, kvp_span_import(ctx, &good, KVP_ACCESS_READ, &imported, &addr, &error));
	says("pool %" PRIu32 " of generation %" PRIu64 " of domain kv has ended", good.id,
	     good.generation);
	kvp_pool_close(pool);
	pool = make_pool(ctx, "kv", BLOCK + 1000);
	RETURNS(-ESTALE, kvp_span_import(ctx, &good, KVP_ACCESS_READ, &imported, &addr, &error));
	SAYS("ask whoever sent the span for a new one");
	CHECK(!imported && !addr);
}

static void owner_until_told(void *arg)
{
	const int socket = *(int *)arg;
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_span span;
	char byte;

	RETURNS(0, kvp_span_export(ctx, "kv", map_pool(make_pool(ctx, "kv", BLOCK)), BLOCK, &span,
				   &error));
	EQUAL(send(socket, &span, sizeof(span), 0), sizeof(span));
	EQUAL(recv(socket, &byte, 1, 0), 1);
}

/* An orphan's span opens nothing; what is mapped of it stays memory of the domain. */
static void span_of_an_orphan(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool, *second = NULL;
	struct kvp_span span;
	int sockets[2];
	void *addr;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets));
	pid = child(owner_until_told, &sockets[1]);
	EQUAL(recv(sockets[0], &span, sizeof(span), 0), sizeof(span));
	RETURNS(0, kvp_span_import(ctx, &span, KVP_ACCESS_WRITE, &pool, &addr, &error));
	EQUAL(send(sockets[0], "", 1, 0), 1);
	EQUAL(wait_child(pid), 0);
	EQUAL(query(pool).state, KVP_STATE_ORPHAN);
	CHECKED(0, addr, BLOCK);
	RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &second, &addr, &error));
	SAYS("it is an orphan or was destroyed");
}

int main(void)
{
	RUN(pools);
	RUN(bounds);
	RUN(foreign_memory);
	RUN(huge_foreign_memory);
	RUN(other_memory_at_the_same_address);
	RUN(destroyed_and_still_mapped);
	RUN(several_mappings);
	RUN(holes);
	RUN(protection);
	RUN(mapped_through_its_node);
	RUN(span_to_another_process);
	RUN(named_and_replaced);
	RUN(named_and_destroyed);
	RUN(export_is_checked);
	RUN(garbage_is_no_span);
	RUN(wrong_and_stale_spans);
	RUN(span_of_an_orphan);
	return cases_end();
}

// SPDX-License-Identifier: GPL-2.0
/* What meets badly: each pair of operations at once, for a few seconds. */
#include "race.h"
#include "raw.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#include "../../uapi/kvpool.h"

#define CONTROL "/dev/kvpool/control"
#define NAMES 8

struct ref {
	uint32_t id;
	uint64_t generation;
};

/* Torn reads give a stale or unknown pool, which is fine. */
static struct ref refs[NAMES];
static struct kvp_ctx *shared;

static struct ref ref_of(const struct kvp_pool *pool)
{
	return (struct ref){ kvp_pool_id(pool), kvp_pool_generation(pool) };
}

static void all_is_gone(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_stats end;

	UNTIL(!stats(ctx).pools && !stats(ctx).orphans && !stats(ctx).dying);
	end = stats(ctx);
	EQUAL(end.bytes, 0);
	EQUAL(end.created, end.destroyed);
	EQUAL(end.sessions, 1);
	kvp_close(ctx);
}

/* ----------------------------------------------- create, destroy, dump, and all */

static void creates(uint64_t *state)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	uint32_t slot = roll(state) % NAMES;
	struct kvp_pool *pool;
	char name[8];

	snprintf(name, sizeof(name), "c%u", slot);
	options.domain = "kv";
	options.name = name;
	options.length = (1 + roll(state) % 4) * BLOCK;
	/* Opened after it was made: somebody may have ended it in between. */
	if (ALLOWED(kvp_pool_create(shared, &options, &pool, NULL), EEXIST, ENOENT, ENODEV, ESTALE))
		return;
	refs[slot] = ref_of(pool);
	kvp_pool_close(pool);
}

static void destroys(uint64_t *state)
{
	struct ref ref = refs[roll(state) % NAMES];

	if (ref.id)
		ALLOWED(kvp_pool_destroy(shared, ref.id, ref.generation, roll(state) % 2, NULL),
			EBUSY, ENOENT, ESTALE, ENODEV);
}

static void maps(uint64_t *state)
{
	struct ref ref = refs[roll(state) % NAMES];
	struct kvp_pool *pool;
	char *addr;
	void *base;

	if (!ref.id || ALLOWED(kvp_pool_open(shared, ref.id, ref.generation, KVP_ACCESS_WRITE, &pool,
					     NULL), ENOENT, ESTALE, ENODEV))
		return;
	if (!ALLOWED(kvp_pool_map(pool, KVP_ACCESS_WRITE, &base, NULL), ENODEV)) {
		addr = base;
		for (int n = 0; n < 50 && can_read(addr + roll(state) % kvp_pool_length(pool)); n++)
			madvise(addr, BLOCK, MADV_DONTNEED);
	}
	kvp_pool_close(pool);
}

static void opens_nodes(uint64_t *state)
{
	uint32_t slot = roll(state) % NAMES;
	char path[64], text[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/kvpool/c%u", slot);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		void *addr = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, fd, 0);

		close(fd);
		if (addr != MAP_FAILED) {
			can_read(addr);
			munmap(addr, BLOCK);
		}
	} else {
		ALLOWED(-errno, ENOENT, ENXIO, ENODEV);
	}
	snprintf(path, sizeof(path), "/sys/class/kvpool/c%u/pinned_blocks", slot);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text)) < 0)
		ALLOWED(-errno, ENODEV);
	close(fd);
}

static void sets(uint64_t *state)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct ref ref = refs[roll(state) % NAMES];

	change.mask = KVP_SET_MODE | KVP_SET_REGISTRATION;
	change.mode = (0600 | roll(state) % 0100) & 0666;
	change.registration = roll(state) % 5;
	if (ref.id)
		ALLOWED(kvp_pool_set(shared, ref.id, ref.generation, &change, NULL), ENOENT, ESTALE,
			ENODEV, EINVAL);
}

static int ignore(const struct kvp_segment *segment, void *arg)
{
	(void)segment;
	(void)arg;
	return 0;
}

static int ignore_pool(const struct kvp_pool_info *info, void *arg)
{
	(void)arg;
	CHECK(info->generation);
	return 0;
}

static void looks(uint64_t *state)
{
	struct kvp_ctx *ctx = open_ctx();

	(void)state;
	ALLOWED(kvp_resolve(ctx, NULL, UINT64_MAX, ignore, NULL, NULL), 0);
	ALLOWED(kvp_pool_each(ctx, ignore_pool, NULL, NULL), EAGAIN);
	stats(ctx);
	/* Sessions come and go. */
	kvp_pool_close(make_pool(ctx, "kv", BLOCK));
	kvp_close(ctx);
}

static void all_at_once(void)
{
	shared = open_ctx();
	RACE(10, creates, creates, destroys, maps, maps, opens_nodes, sets, looks);
	CHECK(stats(shared).created > 50);
	kvp_close(shared);
	all_is_gone();
}

static uint32_t previous;

static void see(struct raw *raw, void *arg)
{
	uint32_t id = raw_u32(raw, KVPOOL_A_POOL_ID);

	(void)arg;
	CHECK(id > previous);
	previous = id;
}

static void dumps(uint64_t *state)
{
	static struct raw *raw;

	(void)state;
	if (!raw)
		raw = raw_open();
	previous = 0;
	CHECK(raw_dump(raw, see, NULL, NULL) >= 0);
}

static void create_destroy_dump(void)
{
	shared = open_ctx();
	RACE(5, creates, destroys, dumps);
	kvp_close(shared);
	all_is_gone();
}

/* --------------------------------------------------- destroy against its users */

#define VALUE 77

/* A pool that is there in odd rounds, and destroyed in even ones. */
static struct ref target;
static char *target_at;
static int target_fd;
static uint32_t turn;	/* atomic */
static pthread_rwlock_t target_lock = PTHREAD_RWLOCK_INITIALIZER;

static uint32_t turn_now(void)
{
	return __atomic_load_n(&turn, __ATOMIC_SEQ_CST);
}

/* The mapping of a destroyed pool stays for a moment, for those who come late. */
static void destroys_in_turns(uint64_t *state)
{
	struct kvp_pool *pool = make_pool(shared, "kv", 2 * BLOCK);
	char *at = map_pool(pool);

	at[BLOCK] = VALUE;
	target = ref_of(pool);
	pthread_rwlock_wrlock(&target_lock);
	__atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
	target_at = at;
	target_fd = kvp_pool_fd(pool);
	pthread_rwlock_unlock(&target_lock);

	usleep(roll(state) % 5000);
	RETURNS(0, kvp_pool_destroy(shared, target.id, target.generation, 1, &error));
	__atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
	EQUAL(read_byte(at + BLOCK), -1);

	usleep(roll(state) % 1000);
	pthread_rwlock_wrlock(&target_lock);
	target_at = NULL;
	target_fd = -1;
	pthread_rwlock_unlock(&target_lock);
	kvp_pool_close(pool);
}

static uint64_t read_well;	/* atomic */

static void reads(uint64_t *state)
{
	pthread_rwlock_rdlock(&target_lock);
	if (target_at) {
		uint32_t before = turn_now();
		int byte = read_byte(target_at + BLOCK);

		if (before % 2 == 0)
			EQUAL(byte, -1);
		else if (before == turn_now() && byte >= 0)
			EQUAL(byte, VALUE);
		if (byte >= 0) {
			__atomic_add_fetch(&read_well, 1, __ATOMIC_SEQ_CST);
			/* So that the next one faults. */
			madvise(target_at + BLOCK * (roll(state) % 2), BLOCK, MADV_DONTNEED);
		}
	}
	pthread_rwlock_unlock(&target_lock);
}

static void destroy_against_fault(void)
{
	shared = open_ctx();
	RACE(5, destroys_in_turns, reads, reads);
	CHECK(read_well > 10);
	kvp_close(shared);
	all_is_gone();
}

static void maps_anew(uint64_t *state)
{
	(void)state;
	pthread_rwlock_rdlock(&target_lock);
	if (target_fd >= 0) {
		uint32_t before = turn_now();
		char *at = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, target_fd, BLOCK);
		int byte;

		if (at == MAP_FAILED) {
			EQUAL(errno, ENODEV);
		} else {
			EQUAL(before % 2, 1);
			byte = read_byte(at);
			CHECK(byte == -1 || byte == VALUE);
			CHECK(!munmap(at, BLOCK));
		}
	}
	pthread_rwlock_unlock(&target_lock);
}

static void mmap_against_forced_destroy(void)
{
	target_fd = -1;
	shared = open_ctx();
	RACE(5, destroys_in_turns, maps_anew, maps_anew);
	kvp_close(shared);
	all_is_gone();
}

/* ----------------------------------------------------------- close against ioctl */

static int shared_fd;	/* atomic */
static int session_fd;

static void reopens(uint64_t *state)
{
	struct kvpool_open open = { .size = sizeof(open), .id = target.id,
				    .generation = target.generation };
	int old;

	EQUAL(ioctl(session_fd, KVPOOL_IOC_OPEN, &open), 0);
	old = __atomic_exchange_n(&shared_fd, open.fd, __ATOMIC_SEQ_CST);
	usleep(roll(state) % 500);
	CHECK(old < 0 || !close(old));
}

/* The number may be closed, and belong to another descriptor of the pool, at any time. */
static void asks(uint64_t *state)
{
	struct kvpool_info info = { .size = sizeof(info) };
	struct kvpool_segment segment;
	struct kvpool_resolve resolve = { .size = sizeof(resolve), .addr = 4096, .length = 4096,
					  .segments = (uintptr_t)&segment, .count = 1 };
	int fd = __atomic_load_n(&shared_fd, __ATOMIC_SEQ_CST);

	if (fd < 0)
		return;
	if (roll(state) % 2) {
		if (!ALLOWED(ioctl(fd, KVPOOL_IOC_INFO, &info) ? -errno : 0, EBADF))
			EQUAL(info.generation, target.generation);
	} else {
		ALLOWED(ioctl(fd, KVPOOL_IOC_RESOLVE, &resolve) ? -errno : 0, EBADF);
	}
}

static void close_against_ioctl(void)
{
	struct kvp_pool *pool;

	shared = open_ctx();
	pool = make_pool(shared, "kv", BLOCK);
	target = ref_of(pool);
	session_fd = open(CONTROL, O_RDONLY | O_CLOEXEC);
	shared_fd = -1;
	CHECK(session_fd >= 0);
	RACE(5, reopens, reopens, asks, asks);
	CHECK(!close(shared_fd) && !close(session_fd));
	EQUAL(query(pool).files, 1);
	kvp_pool_close(pool);
	kvp_close(shared);
	all_is_gone();
}

/* ------------------------------------------------- the end of a session and claim */

static int owners;	/* atomic */
static uint64_t claimed;	/* atomic */

static void claims(uint64_t *state)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;

	if (!ALLOWED(kvp_pool_claim(ctx, target.id, target.generation, &pool, NULL), EBUSY)) {
		EQUAL(__atomic_add_fetch(&owners, 1, __ATOMIC_SEQ_CST), 1);
		__atomic_add_fetch(&claimed, 1, __ATOMIC_SEQ_CST);
		kvp_pool_close(pool);
		usleep(roll(state) % 300);
		__atomic_sub_fetch(&owners, 1, __ATOMIC_SEQ_CST);
	}
	kvp_close(ctx);
}

static void session_end_against_claim(void)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool;

	shared = open_ctx();
	options.domain = "kv";
	options.length = BLOCK;
	options.lifetime = KVP_LIFETIME_PERSISTENT;
	RETURNS(0, kvp_pool_create(shared, &options, &pool, &error));
	target = ref_of(pool);
	kvp_pool_close(pool);
	kvp_close(shared);
	RACE(5, claims, claims, claims);
	CHECK(claimed > 20);
	shared = open_ctx();
	RETURNS(0, kvp_pool_destroy(shared, target.id, target.generation, 0, &error));
	kvp_close(shared);
	all_is_gone();
}

/* ------------------------------------------------------------ resolve and munmap */

static char *room;

static void resolves(uint64_t *state)
{
	struct kvpool_segment segments[32];
	uint64_t offset = roll(state) % 4 * 4096;
	struct kvpool_resolve resolve = { .size = sizeof(resolve), .addr = (uintptr_t)room + offset,
					  .length = 4 * BLOCK - offset,
					  .segments = (uintptr_t)segments, .count = 32 };
	uint64_t at = resolve.addr;

	EQUAL(ioctl(session_fd, KVPOOL_IOC_RESOLVE, &resolve), 0);
	CHECK(resolve.count == 32 || resolve.resolved == resolve.length);
	for (uint32_t i = 0; i < resolve.count; i++) {
		EQUAL(segments[i].addr, at);
		at += segments[i].length;
		if (segments[i].kind != KVPOOL_SEGMENT_POOL) {
			CHECK(segments[i].kind == KVPOOL_SEGMENT_UNMAPPED ||
			      segments[i].kind == KVPOOL_SEGMENT_ANON);
			continue;
		}
		EQUAL(segments[i].generation, target.generation);
		EQUAL(segments[i].offset, segments[i].addr - (uintptr_t)room);
	}
	EQUAL(at, resolve.addr + resolve.resolved);
}

static void maps_in_room(uint64_t *state)
{
	size_t first = roll(state) % 1024, count = 1 + roll(state) % (2048 - first);
	char *at = room + first * 4096;

	switch (roll(state) % 3) {
	case 0:
		/* Its address space stays reserved. */
		CHECK(mmap(at, count * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			   0) == at);
		break;
	case 1:
		CHECK(!madvise(room, BLOCK, MADV_DONTNEED));
		break;
	default:
		CHECK(mmap(at, count * 4096, PROT_READ, MAP_SHARED | MAP_FIXED, target_fd,
			   (off_t)(first * 4096)) == at);
	}
}

static void resolve_against_unmap(void)
{
	struct kvp_pool *pool;

	shared = open_ctx();
	pool = make_pool(shared, "kv", 4 * BLOCK);
	target = ref_of(pool);
	target_fd = kvp_pool_fd(pool);
	session_fd = open(CONTROL, O_RDONLY | O_CLOEXEC);
	/* PROT_NONE memory holds the place of what is not mapped. */
	room = mmap(NULL, 4 * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(session_fd >= 0 && room != MAP_FAILED);
	RACE(5, resolves, resolves, maps_in_room);
	CHECK(!munmap(room, 4 * BLOCK) && !close(session_fd));
	kvp_pool_close(pool);
	kvp_close(shared);
	all_is_gone();
}

/* ------------------------------------------------------------------ the module */

static int module_fd;
static uint64_t unloaded, used;	/* atomic */

static void unloads(uint64_t *state)
{
	usleep(roll(state) % 20000);
	/* EWOULDBLOCK: it is in use. */
	if (ALLOWED(syscall(SYS_delete_module, "kvpool", O_NONBLOCK) ? -errno : 0, EWOULDBLOCK))
		return;
	__atomic_add_fetch(&unloaded, 1, __ATOMIC_SEQ_CST);
	EQUAL(syscall(SYS_finit_module, module_fd, "", 0), 0);
}

/* With a session open the module stays, so each of these must work. */
static void uses_all(struct kvp_ctx *ctx, uint64_t *state)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct ref ref;
	struct kvp_pool *pool;

	options.domain = "kv";
	options.length = BLOCK;
	options.lifetime = KVP_LIFETIME_PERSISTENT;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	((char *)map_pool(pool))[roll(state) % BLOCK] = 1;
	ALLOWED(kvp_resolve(ctx, NULL, UINT64_MAX, ignore, NULL, NULL), 0);
	ALLOWED(kvp_pool_each(ctx, ignore_pool, NULL, NULL), EAGAIN);
	ref = ref_of(pool);
	kvp_pool_close(pool);
	kvp_close(ctx);
	/* It has no owner until somebody claims it: its memory keeps the module. */
	ctx = open_ctx();
	RETURNS(0, kvp_pool_claim(ctx, ref.id, ref.generation, &pool, &error));
	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, ref.id, ref.generation, 0, &error));
	kvp_close(ctx);
}

static void orphans(struct kvp_ctx *ctx, uint64_t *state)
{
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK);
	int fd;

	((char *)map_pool(pool))[roll(state) % BLOCK] = 1;
	fd = dup(kvp_pool_fd(pool));
	CHECK(fd >= 0);
	kvp_pool_close(pool);
	kvp_close(ctx);
	/* The last use of the module: the file of an orphan. */
	CHECK(!close(fd));
}

static void uses(uint64_t *state)
{
	struct kvp_ctx *ctx;

	/* Not there, or on its way, or on its way out. */
	if (ALLOWED(kvp_open(NULL, &ctx, NULL), ENOENT, ENXIO, ENODEV))
		return;
	if (roll(state) % 2)
		uses_all(ctx, state);
	else
		orphans(ctx, state);
	__atomic_add_fetch(&used, 1, __ATOMIC_SEQ_CST);
	usleep(roll(state) % 50000);
}

static void looks_at_files(uint64_t *state)
{
	char path[300], text[64];
	DIR *dir = opendir("/sys/class/kvpool");
	struct dirent *entry;

	(void)state;
	while (dir && (entry = readdir(dir))) {
		int fd;

		snprintf(path, sizeof(path), "/sys/class/kvpool/%s/pinned_blocks", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, text, sizeof(text)) < 0)
			ALLOWED(-errno, ENODEV);
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void unload_against_use(void)
{
	struct utsname name;
	char path[200];

	CHECK(!uname(&name));
	snprintf(path, sizeof(path), "/lib/modules/%s/extra/kvpool.ko", name.release);
	module_fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(module_fd >= 0);
	RACE(10, unloads, uses, uses, looks_at_files);
	EQUAL(shell("chgrp kvpool " CONTROL), 0);
	CHECK(unloaded > 3 && used > 3);
	all_is_gone();
}

/* ------------------------------------------------------------ the end of an owner */

static void owns_many(int line)
{
	struct kvp_ctx *ctx = open_ctx();
	uint32_t count;

	GET(line, count);
	for (uint32_t i = 0; i < count; i++) {
		struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK);
		struct ref ref = ref_of(pool);

		kvp_pool_close(pool);
		if (!i)
			PUT(line, ref);
	}
	tell(line);
	pause();
}

static void exit_of_an_owner_of_thousand(void)
{
	uint64_t most;
	uint32_t count;
	struct kvp_pool *pool;
	struct ref first;
	int line;
	pid_t pid;

	shared = open_ctx();
	most = stats(shared).available / BLOCK / 2;
	count = most < 1000 ? (uint32_t)most : 1000;
	pid = partner(owns_many, &line);
	PUT(line, count);
	GET(line, first);
	RETURNS(0, kvp_pool_open(shared, first.id, first.generation, KVP_ACCESS_WRITE, &pool, &error));
	((char *)map_pool(pool))[0] = VALUE;
	await(line);
	EQUAL(stats(shared).pools, count);
	kill_now(pid);
	/* All but the one that is in use. */
	UNTIL(stats(shared).bytes == BLOCK);
	EQUAL(stats(shared).orphans, 1);
	EQUAL(read_byte(map_pool(pool)), VALUE);
	kvp_pool_close(pool);
	UNTIL(!stats(shared).bytes);
	kvp_close(shared);
	all_is_gone();
}

#define CGROUP "/sys/fs/cgroup/kvpool-oom"

static void eats(int line)
{
	struct kvp_pool *pool;
	struct ref ref;

	EQUAL(shell("echo %d >" CGROUP "/cgroup.procs", getpid()), 0);
	pool = make_pool(open_ctx(), "kv", 8 * BLOCK);
	((char *)map_pool(pool))[0] = VALUE;
	ref = ref_of(pool);
	PUT(line, ref);
	await(line);
	/* Its pool is not what the OOM killer can take. */
	for (;;) {
		char *at = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		CHECK(at != MAP_FAILED);
		memset(at, 1, BLOCK);
	}
}

static void oom_kill_of_an_owner(void)
{
	struct kvp_pool *pool;
	struct ref ref;
	int line;
	pid_t pid;

	shared = open_ctx();
	EQUAL(shell("mkdir " CGROUP " && echo 64M >" CGROUP "/memory.max"), 0);
	pid = partner(eats, &line);
	GET(line, ref);
	RETURNS(0, kvp_pool_open(shared, ref.id, ref.generation, KVP_ACCESS_READ, &pool, &error));
	tell(line);
	EQUAL(wait_child(pid), 128 + SIGKILL);
	EQUAL(shell_number("sed -n 's/^oom_kill //p' " CGROUP "/memory.events"), 1);
	UNTIL(stats(shared).orphans == 1);
	EQUAL(stats(shared).bytes, 8 * BLOCK);
	kvp_pool_close(pool);
	UNTIL(!stats(shared).bytes);
	/* What the pool was charged is given back, so the group can go. */
	UNTIL(shell_number("cat " CGROUP "/memory.current") < (long)BLOCK);
	EQUAL(shell("rmdir " CGROUP), 0);
	kvp_close(shared);
	all_is_gone();
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	printf("# seed %llu\n", (unsigned long long)seed);
	RUN(all_at_once);
	RUN(create_destroy_dump);
	RUN(destroy_against_fault);
	RUN(mmap_against_forced_destroy);
	RUN(close_against_ioctl);
	RUN(session_end_against_claim);
	RUN(resolve_against_unmap);
	RUN(unload_against_use);
	RUN(exit_of_an_owner_of_thousand);
	RUN(oom_kill_of_an_owner);
	return cases_end();
}

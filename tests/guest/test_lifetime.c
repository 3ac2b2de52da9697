// SPDX-License-Identifier: GPL-2.0
/*
 * Who keeps a pool alive, and what is left when nobody does: descriptors,
 * mappings, sessions, memory regions, and the deaths of their holders.
 */
#include "guest.h"

#include <linux/kernel-page-flags.h>

#include <dirent.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#define LENGTH (4 * BLOCK)

/* What a process says of its pool. */
struct ref {
	uint32_t id;
	uint64_t generation;
};

static struct ref ref_of(const struct kvp_pool *pool)
{
	return (struct ref){ kvp_pool_id(pool), kvp_pool_generation(pool) };
}

static struct kvp_pool_info find(struct kvp_ctx *ctx, struct ref ref)
{
	struct kvp_pool_info info;

	RETURNS(0, kvp_pool_find(ctx, ref.id, ref.generation, &info, &error));
	return info;
}

static bool gone(struct kvp_ctx *ctx, struct ref ref)
{
	struct kvp_pool_info info;
	int err = kvp_pool_find(ctx, ref.id, ref.generation, &info, NULL);

	CHECK(!err || err == -ENOENT || err == -ESTALE);
	return err;
}

static bool in_state(struct kvp_ctx *ctx, struct ref ref, enum kvp_state state)
{
	struct kvp_pool_info info;

	return !kvp_pool_find(ctx, ref.id, ref.generation, &info, NULL) && info.state == state;
}

static struct kvp_pool *make(struct kvp_ctx *ctx, const char *name, enum kvp_lifetime lifetime)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool = NULL;

	options.domain = "kv";
	options.name = name;
	options.length = LENGTH;
	options.lifetime = lifetime;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

static int destroy(struct kvp_ctx *ctx, struct ref ref, int force)
{
	last_error = (struct kvp_error){ 0 };
	return kvp_pool_destroy(ctx, ref.id, ref.generation, force, &last_error);
}

/* A mapping that no handle of the library knows. */
static char *map_fd(int fd, int protection)
{
	char *addr = mmap(NULL, LENGTH, protection, MAP_SHARED, fd, 0);

	CHECK(addr != MAP_FAILED);
	return addr;
}

/* Close every descriptor of the control node that this process has. */
static int close_control(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[256];
	int closed = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (length < 0)
			continue;
		target[length] = 0;
		if (strcmp(target, "/dev/kvpool/control"))
			continue;
		CHECK(!close(atoi(entry->d_name)));
		closed++;
	}
	closedir(dir);
	return closed;
}

static void mapping_outlives_descriptor_and_session(void)
{
	struct kvp_ctx *watcher = open_ctx(), *ctx = open_ctx();
	struct kvp_pool *pool = make(ctx, "held", KVP_LIFETIME_OWNER);
	char *addr = map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
	struct ref ref = ref_of(pool);

	fill(addr, LENGTH, 1);
	EQUAL(query(pool).files, 1);
	kvp_pool_close(pool);
	CHECK(filled(addr, LENGTH, 1));
	EQUAL(find(watcher, ref).state, KVP_STATE_LIVE);
	EQUAL(find(watcher, ref).files, 1);
	EQUAL(find(watcher, ref).mappings, 1);

	kvp_close(ctx);
	EQUAL(find(watcher, ref).state, KVP_STATE_ORPHAN);
	EQUAL(find(watcher, ref).owned, 0);
	fill(addr, LENGTH, 2);
	CHECK(filled(addr, LENGTH, 2));
	EQUAL(stats(watcher).orphans, 1);
	EQUAL(stats(watcher).bytes, LENGTH);

	CHECK(!munmap(addr, BLOCK));
	EQUAL(find(watcher, ref).state, KVP_STATE_ORPHAN);
	CHECK(!munmap(addr + BLOCK, LENGTH - BLOCK));
	UNTIL(gone(watcher, ref));
	EQUAL(stats(watcher).bytes, 0);
}

/*
 * The pool is freed behind a path that is still open. On a kernel booted with
 * init_on_free=1 a look at its memory shows at once.
 */
static void path_outlives_pool(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK), *later[64];
	char link[64], want[64], got[64] = "";
	struct ref ref = ref_of(pool);
	int path;

	snprintf(want, sizeof(want), "kvpool:%u.%llu", ref.id, (unsigned long long)ref.generation);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", kvp_pool_fd(pool));
	path = open(link, O_PATH | O_CLOEXEC);
	CHECK(path >= 0);
	kvp_pool_close(pool);
	EQUAL(destroy(ctx, ref, 0), 0);
	UNTIL(gone(ctx, ref));
	/* Others of its size take its place. */
	for (int i = 0; i < 64; i++)
		later[i] = make_pool(ctx, "kv", BLOCK);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
	CHECK(readlink(link, got, sizeof(got) - 1) > 0);
	if (strcmp(got, want))
		FAIL("the path is %s, not %s", got, want);
	for (int i = 0; i < 64; i++)
		kvp_pool_close(later[i]);
	close(path);
}

static char *inherited;
static bool keep_control;

static void heir(int line)
{
	if (!keep_control)
		close_control();
	tell(line);
	await(line);
	CHECK(filled(inherited, LENGTH, 3));
	tell(line);
	await(line);
	CHECK(close_control() == (keep_control ? 1 : 0));
	tell(line);
	await(line);
}

/* Makes a pool, forks an heir, hands the line to it to the case, and waits for its end. */
static void testator(int line)
{
	struct kvp_pool *pool = make(open_ctx(), "inherited", KVP_LIFETIME_OWNER);
	struct ref ref = ref_of(pool);
	int to_heir;

	inherited = map_pool(pool);
	fill(inherited, LENGTH, 3);
	partner(heir, &to_heir);
	await(to_heir);
	PUT(line, ref);
	send_fd(line, to_heir);
	close(to_heir);
	await(line);
}

static void child_keeps_mapping(void)
{
	struct kvp_ctx *ctx;
	struct ref ref;
	pid_t pid;
	int line, to_heir;

	keep_control = false;
	pid = partner(testator, &line);
	GET(line, ref);
	to_heir = take_fd(line);
	ctx = open_ctx();
	EQUAL(find(ctx, ref).owned, 1);
	EQUAL(find(ctx, ref).mappings, 2);
	kill_now(pid);
	/* The session went with the process; the heir has the descriptor and the mapping. */
	UNTIL(in_state(ctx, ref, KVP_STATE_ORPHAN));
	EQUAL(find(ctx, ref).mappings, 1);
	tell(to_heir);
	await(to_heir);
	EQUAL(find(ctx, ref).state, KVP_STATE_ORPHAN);
	tell(to_heir);
	await(to_heir);
	tell(to_heir);
	UNTIL(gone(ctx, ref));
}

/* gdrcopy 313: the child closes last, and the session is the child's until then. */
static void child_keeps_session(void)
{
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	struct ref ref;
	pid_t pid;
	int line, to_heir;

	keep_control = true;
	pid = partner(testator, &line);
	GET(line, ref);
	to_heir = take_fd(line);
	ctx = open_ctx();
	kill_now(pid);
	UNTIL(find(ctx, ref).mappings == 1);
	EQUAL(find(ctx, ref).state, KVP_STATE_LIVE);
	EQUAL(find(ctx, ref).owned, 1);
	RETURNS(0, kvp_pool_open_name(ctx, "inherited", KVP_ACCESS_READ, &pool, &error));
	EQUAL(kvp_pool_generation(pool), ref.generation);
	kvp_pool_close(pool);
	tell(to_heir);
	await(to_heir);
	EQUAL(find(ctx, ref).state, KVP_STATE_LIVE);
	tell(to_heir);
	await(to_heir);
	EQUAL(find(ctx, ref).state, KVP_STATE_ORPHAN);
	tell(to_heir);
	UNTIL(gone(ctx, ref));
}

static void bob(int line)
{
	int reading = take_fd(line), writing = take_fd(line);
	char *addr, *shared;

	become(1001, 1001);
	CHECK(open("/dev/kvpool/control", O_RDONLY) == -1 && errno == EACCES);
	CHECK(open("/dev/kvpool/passed", O_RDONLY) == -1 && errno == EACCES);
	CHECK(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, reading, 0) == MAP_FAILED &&
	      errno == EACCES);
	addr = map_fd(reading, PROT_READ);
	CHECK(filled(addr, LENGTH, 4));
	CHECK(mprotect(addr, LENGTH, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	shared = map_fd(writing, PROT_READ | PROT_WRITE);
	fill(shared, LENGTH, 5);
	close(reading);
	close(writing);
	tell(line);
	/* The owner is gone now. */
	await(line);
	CHECK(filled(addr, LENGTH, 5));
	fill(shared, LENGTH, 6);
	CHECK(filled(addr, LENGTH, 6));
	tell(line);
	await(line);
}

static void passed_to_another_user(void)
{
	struct kvp_pool *pool, *reading;
	struct kvp_ctx *ctx, *watcher;
	struct ref ref;
	pid_t pid;
	int line;

	pid = partner(bob, &line);
	watcher = open_ctx();
	ctx = open_ctx();
	pool = make(ctx, "passed", KVP_LIFETIME_OWNER);
	ref = ref_of(pool);
	fill(map_pool(pool), LENGTH, 4);
	RETURNS(0, kvp_pool_open(ctx, ref.id, ref.generation, KVP_ACCESS_READ, &reading, &error));
	send_fd(line, kvp_pool_fd(reading));
	send_fd(line, kvp_pool_fd(pool));
	await(line);
	CHECK(filled(map_pool(pool), LENGTH, 5));
	kvp_pool_close(reading);
	kvp_pool_close(pool);
	kvp_close(ctx);
	EQUAL(find(watcher, ref).state, KVP_STATE_ORPHAN);
	EQUAL(find(watcher, ref).mappings, 2);
	tell(line);
	await(line);
	EQUAL(find(watcher, ref).state, KVP_STATE_ORPHAN);
	tell(line);
	EQUAL(wait_child(pid), 0);
	UNTIL(gone(watcher, ref));
}

enum owner_state { CREATED, OPENED_ONLY, MAPPED, REGISTERED };
static enum owner_state owner_state;

static void owner(int line)
{
	struct kvp_pool *pool = make(open_ctx(), "owner", KVP_LIFETIME_OWNER);
	struct ref ref = ref_of(pool);

	if (owner_state == CREATED)
		kvp_pool_close(pool);
	if (owner_state >= MAPPED)
		fill(map_pool(pool), LENGTH, 7);
	if (owner_state >= REGISTERED)
		CHECK(pin(map_pool(pool), LENGTH));
	PUT(line, ref);
	await(line);
}

static void owner_killed(void)
{
	for (owner_state = CREATED; owner_state <= REGISTERED; owner_state++) {
		struct kvp_pool_info info;
		struct kvp_ctx *ctx;
		struct ref ref;
		pid_t pid;
		int line;

		pid = partner(owner, &line);
		GET(line, ref);
		ctx = open_ctx();
		info = find(ctx, ref);
		EQUAL(info.owned, 1);
		EQUAL(info.files, owner_state != CREATED);
		EQUAL(info.mappings, owner_state >= MAPPED);
		EQUAL(info.pinned_blocks, owner_state >= REGISTERED ? LENGTH / BLOCK : 0);
		kill_now(pid);
		UNTIL(gone(ctx, ref));
		EQUAL(stats(ctx).bytes, 0);
		kvp_close(ctx);
		close(line);
	}
}

static bool user_pins;

/* Maps (and pins) what the owner made; unmaps, then unpins, when it is told to. */
static void user(int line)
{
	struct kvp_ctx *ctx = open_ctx();
	struct ibv_mr *mr = NULL;
	struct kvp_pool *pool;
	struct ref ref;
	void *addr;

	GET(line, ref);
	RETURNS(0, kvp_pool_open(ctx, ref.id, ref.generation, KVP_ACCESS_WRITE, &pool, &error));
	addr = map_pool(pool);
	if (user_pins) {
		mr = pin((char *)addr + BLOCK, BLOCK);
		CHECK(mr);
	}
	tell(line);
	await(line);
	CHECK(filled(addr, LENGTH, 7));
	kvp_pool_close(pool);
	tell(line);
	await(line);
	if (mr)
		unpin(mr);
	tell(line);
	await(line);
}

static void owner_killed_while_used(void)
{
	struct kvp_pool *again, *pool;
	struct kvp_ctx *ctx;
	struct ref ref;
	int owner_line, user_line;
	pid_t pid, user_pid;

	owner_state = MAPPED;
	for (int pins = 0; pins < 2; pins++) {
		user_pins = pins;
		user_pid = partner(user, &user_line);
		pid = partner(owner, &owner_line);
		GET(owner_line, ref);
		PUT(user_line, ref);
		await(user_line);
		ctx = open_ctx();
		kill_now(pid);
		UNTIL(in_state(ctx, ref, KVP_STATE_ORPHAN));
		EQUAL(find(ctx, ref).pinned_blocks, pins);

		/* A restarted owner finds its name free at once, and nobody joins the orphan. */
		RETURNS(-ENODEV, kvp_pool_open(ctx, ref.id, ref.generation, KVP_ACCESS_READ, &pool,
					       &error));
		RETURNS(-ENOENT, kvp_pool_open_name(ctx, "owner", KVP_ACCESS_READ, &pool, &error));
		CHECK(access("/dev/kvpool/owner", F_OK) == -1 && errno == ENOENT);
		again = make(ctx, "owner", KVP_LIFETIME_OWNER);
		CHECK(kvp_pool_generation(again) > ref.generation);
		RETURNS(0, kvp_pool_open_name(ctx, "owner", KVP_ACCESS_READ, &pool, &error));
		EQUAL(kvp_pool_generation(pool), kvp_pool_generation(again));
		kvp_pool_close(pool);

		tell(user_line);
		await(user_line);
		if (pins) {
			/* No file, no mapping, only a device: it stays charged, the whole of it. */
			UNTIL(in_state(ctx, ref, KVP_STATE_DYING));
			EQUAL(stats(ctx).bytes, 2 * LENGTH);
			EQUAL(find(ctx, ref).pinned_blocks, 1);
			EQUAL(stats(ctx).dying, 1);
		} else {
			UNTIL(gone(ctx, ref));
			EQUAL(stats(ctx).bytes, LENGTH);
		}
		tell(user_line);
		await(user_line);
		UNTIL(gone(ctx, ref));
		EQUAL(stats(ctx).bytes, LENGTH);
		tell(user_line);
		EQUAL(wait_child(user_pid), 0);
		ref = ref_of(again);
		kvp_pool_close(again);
		kvp_close(ctx);
		close(owner_line);
		close(user_line);
	}
}

static void persistent_owner(int line)
{
	struct kvp_pool *pool = make(open_ctx(), "cache", KVP_LIFETIME_PERSISTENT);
	struct ref ref = ref_of(pool);

	fill(map_pool(pool), LENGTH, 8);
	PUT(line, ref);
	await(line);
}

static void alice_claims(void *arg)
{
	struct ref *ref = arg;
	struct kvp_pool *pool;

	become(1000, (gid_t)shell_number("getent group kvpool | cut -d: -f3"));
	RETURNS(-EACCES, kvp_pool_claim(open_ctx(), ref->id, ref->generation, &pool, &error));
}

/* May use it, but it isn't hers: an owner could destroy it, and give it away. */
static void alice_claims_readable(void *arg)
{
	struct ref *ref = arg;
	struct kvp_pool *pool;

	become(1000, (gid_t)shell_number("getent group kvpool | cut -d: -f3"));
	RETURNS(-EPERM, kvp_pool_claim(open_ctx(), ref->id, ref->generation, &pool, &error));
}

static void persistent_pool_is_claimed(void)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_ctx *ctx, *other;
	struct kvp_pool *pool, *own, *second;
	struct ref ref;
	pid_t pid;
	int line;

	pid = partner(persistent_owner, &line);
	GET(line, ref);
	ctx = open_ctx();
	other = open_ctx();
	RETURNS(-EBUSY, kvp_pool_claim(ctx, ref.id, ref.generation, &pool, &error));
	SAYS("live session");
	kill_now(pid);
	UNTIL(!find(ctx, ref).owned);
	EQUAL(find(ctx, ref).state, KVP_STATE_LIVE);
	EQUAL(find(ctx, ref).files, 0);

	RETURNS(-ESTALE, kvp_pool_claim(ctx, ref.id, ref.generation + 1, &pool, &error));
	EQUAL(wait_child(child(alice_claims, &ref)), 0);
	change.mask = KVP_SET_MODE;
	change.mode = 0666;
	RETURNS(0, kvp_pool_set(ctx, ref.id, ref.generation, &change, &error));
	EQUAL(wait_child(child(alice_claims_readable, &ref)), 0);

	RETURNS(0, kvp_pool_claim(ctx, ref.id, ref.generation, &pool, &error));
	CHECK(filled(map_pool(pool), LENGTH, 8));
	EQUAL(find(ctx, ref).owned, 1);
	EQUAL(find(ctx, ref).owner_pid, getpid());
	RETURNS(-EBUSY, kvp_pool_claim(other, ref.id, ref.generation, &second, &error));
	own = make(ctx, "own", KVP_LIFETIME_OWNER);
	RETURNS(-EINVAL, kvp_pool_claim(other, kvp_pool_id(own), kvp_pool_generation(own), &second,
					&error));
	SAYS("persistent");

	/* Without an owner a pool can't be one that ends with its owner. */
	kvp_pool_close(own);
	kvp_pool_close(pool);
	kvp_close(ctx);
	EQUAL(find(other, ref).owned, 0);
	change.mask = KVP_SET_LIFETIME;
	change.lifetime = KVP_LIFETIME_OWNER;
	RETURNS(-EBUSY, kvp_pool_set(other, ref.id, ref.generation, &change, &error));
	RETURNS(0, kvp_pool_claim(other, ref.id, ref.generation, &pool, &error));
	RETURNS(0, kvp_pool_set(other, ref.id, ref.generation, &change, &error));
	kvp_pool_close(pool);
	kvp_close(other);
	ctx = open_ctx();
	UNTIL(gone(ctx, ref));
}

static int count_stale(const struct kvp_segment *segment, void *arg)
{
	EQUAL(segment->kind, KVP_KIND_POOL);
	*(int *)arg += segment->stale;
	return 0;
}

static void destroy_in_use(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make(ctx, "busy", KVP_LIFETIME_PERSISTENT);
	struct ref ref = ref_of(pool);
	char *addr = map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
	uint64_t destroyed = stats(ctx).destroyed;
	struct ibv_mr *mr;
	int stale = 0, ends[2];

	CHECK(!pipe(ends));
	fill(addr, LENGTH, 9);
	EQUAL(destroy(ctx, ref, 0), -EBUSY);
	SAYS("1 mappings, 0 pinned");
	mr = pin(addr + 2 * BLOCK, 2 * BLOCK);
	CHECK(mr);
	EQUAL(destroy(ctx, ref, 0), -EBUSY);
	SAYS("1 mappings, 2 pinned");
	CHECK(!munmap(addr, LENGTH));
	EQUAL(destroy(ctx, ref, 0), -EBUSY);
	SAYS("0 mappings, 2 pinned");
	addr = map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
	CHECK(filled(addr, LENGTH, 9));

	EQUAL(destroy(ctx, ref, 1), 0);
	for (size_t offset = 0; offset < LENGTH; offset += 4096)
		CHECK(!can_read(addr + offset));
	EQUAL(destroy(ctx, ref, 1), -ENODEV);
	CHECK(mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, kvp_pool_fd(pool), 0) == MAP_FAILED &&
	      errno == ENODEV);
	RETURNS(0, kvp_resolve(ctx, addr, LENGTH, count_stale, &stale, &error));
	EQUAL(stale, 1);
	CHECK(write(ends[1], addr, 1) == -1 && errno == EFAULT);
	CHECK(access("/dev/kvpool/busy", F_OK) == -1);

	/* Two blocks went at once, two go when the device lets them go. */
	EQUAL(find(ctx, ref).state, KVP_STATE_DYING);
	EQUAL(find(ctx, ref).pinned_blocks, 2);
	EQUAL(stats(ctx).dying, 1);
	EQUAL(stats(ctx).destroyed, destroyed);
	unpin(mr);
	UNTIL(gone(ctx, ref));
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(stats(ctx).destroyed, destroyed + 1);
	/* What is left of it is a mapping of nothing. */
	CHECK(!can_read(addr));
	CHECK(!munmap(addr, LENGTH));
	kvp_pool_close(pool);
	kvp_close(ctx);
}

#define FAULTERS 4

static char *faulted;
static int destroyed_now;	/* atomic: destroy has returned */

/* Drops its page table entries again and again, so that every read is a fault. */
static void *faulter(void *arg)
{
	char *mine = faulted + (uintptr_t)arg % (LENGTH / BLOCK) * BLOCK;
	uintptr_t late = 0;

	while (can_read(mine)) {
		late += (uintptr_t)__atomic_load_n(&destroyed_now, __ATOMIC_SEQ_CST);
		/* One read may have begun before; a second one has not. */
		if (late > 1)
			break;
		madvise(mine, BLOCK, MADV_DONTNEED);
	}
	return (void *)late;
}

static void destroyed_while_threads_fault(void)
{
	struct kvp_ctx *ctx = open_ctx();

	for (int round = 0; round < 30; round++) {
		struct kvp_pool *pool = make(ctx, "faulting", KVP_LIFETIME_OWNER);
		struct ref ref = ref_of(pool);
		pthread_t threads[FAULTERS];
		void *late;

		faulted = map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
		__atomic_store_n(&destroyed_now, 0, __ATOMIC_SEQ_CST);
		for (uintptr_t i = 0; i < FAULTERS; i++)
			CHECK(!pthread_create(&threads[i], NULL, faulter, (void *)i));
		usleep((useconds_t)round * 300);
		EQUAL(destroy(ctx, ref, 1), 0);
		__atomic_store_n(&destroyed_now, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < FAULTERS; i++) {
			CHECK(!pthread_join(threads[i], &late));
			if ((uintptr_t)late > 1)
				FAIL("round %d: a thread reads what was destroyed", round);
		}
		CHECK(gone(ctx, ref));
		CHECK(!munmap(faulted, LENGTH));
		kvp_pool_close(pool);
	}
}

/* Frame number of the page at an address; root may see it. */
static uint64_t frame(const void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	CHECK(can_read(addr));
	CHECK(pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)addr / 4096 * 8)) == 8);
	close(fd);
	CHECK(entry >> 63);
	return entry & (((uint64_t)1 << 55) - 1);
}

/* How many of these frames are heads of compound pages, as blocks are and free pages not. */
static uint64_t heads(const uint64_t *frames)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t flags, count = 0;

	for (size_t i = 0; i < LENGTH / BLOCK; i++) {
		CHECK(pread(fd, &flags, sizeof(flags), (off_t)(frames[i] * 8)) == 8);
		count += flags >> KPF_COMPOUND_HEAD & 1;
	}
	close(fd);
	return count;
}

/* How many of these frames a new pool of this length gets. */
static uint64_t seen_again(struct kvp_ctx *ctx, const uint64_t *frames, uint64_t length)
{
	struct kvp_pool *pool = make_pool(ctx, "kv", length);
	struct ref ref = ref_of(pool);
	const char *addr = map_pool(pool);
	uint64_t seen = 0;

	for (size_t offset = 0; offset < length; offset += BLOCK) {
		uint64_t one = frame(addr + offset);

		for (size_t i = 0; i < LENGTH / BLOCK; i++)
			seen += one == frames[i];
	}
	kvp_pool_close(pool);
	EQUAL(destroy(ctx, ref, 0), 0);
	return seen;
}

/* rdma-core 824: memory went to a new owner while the NIC still wrote to it. */
static void pinned_block_is_not_reused(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make(ctx, "pinned", KVP_LIFETIME_OWNER);
	struct ref ref = ref_of(pool);
	char *addr = map_pool(pool);
	uint64_t frames[LENGTH / BLOCK];
	struct ibv_mr *mr;

	for (size_t i = 0; i < LENGTH / BLOCK; i++)
		frames[i] = frame(addr + i * BLOCK);
	mr = pin(addr, LENGTH);
	CHECK(mr);
	EQUAL(destroy(ctx, ref, 1), 0);
	kvp_pool_close(pool);
	EQUAL(find(ctx, ref).pinned_blocks, LENGTH / BLOCK);

	/* Nearly all there is, and what every processor keeps at hand. */
	EQUAL(seen_again(ctx, frames, stats(ctx).available / 10 * 9 / BLOCK * BLOCK), 0);
	for (int try = 0; try < 10; try++)
		EQUAL(seen_again(ctx, frames, 32 * BLOCK), 0);
	EQUAL(heads(frames), LENGTH / BLOCK);
	unpin(mr);
	UNTIL(!stats(ctx).dying);
	/*
	 * Where the allocator puts them next is its own affair: they are free. Another
	 * large page may have taken some by now, but none did while they were pinned.
	 */
	CHECK(heads(frames) < LENGTH / BLOCK);
}

static void hundred_crashes(void)
{
	uint64_t created;
	struct kvp_ctx *ctx;
	struct ref ref;
	long before = 0;
	pid_t pid;
	int line;

	for (int round = -4; round < 100; round++) {
		/* The first rounds fill the caches of the kernel. */
		if (!round) {
			ctx = open_ctx();
			UNTIL(!stats(ctx).bytes);
			kvp_close(ctx);
			before = free_memory();
		}
		owner_state = round & 3;
		pid = partner(owner, &line);
		GET(line, ref);
		kill_now(pid);
		close(line);
	}
	ctx = open_ctx();
	UNTIL(!stats(ctx).pools && !stats(ctx).orphans && !stats(ctx).dying);
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(stats(ctx).sessions, 1);
	created = stats(ctx).created;
	CHECK(created >= 104);
	UNTIL(stats(ctx).destroyed == created);
	/* One 2 MiB block of each crash would be 200 MiB. */
	if (before - free_memory() > 8192)
		FAIL("%ld KiB are missing", before - free_memory());
}

static int unload(void)
{
	return shell("rmmod kvpool 2>/dev/null");
}

static void load(void)
{
	EQUAL(shell("modprobe kvpool && chgrp kvpool /dev/kvpool/control"), 0);
}

static void persistent_and_gone(int line)
{
	struct kvp_pool *pool = make(open_ctx(), "cache", KVP_LIFETIME_PERSISTENT);
	struct ref ref = ref_of(pool);

	PUT(line, ref);
}

static void mapped_only(int line)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make(ctx, "mapped", KVP_LIFETIME_OWNER);

	map_fd(kvp_pool_fd(pool), PROT_READ);
	kvp_pool_close(pool);
	kvp_close(ctx);
	tell(line);
	await(line);
}

static void unload_is_refused_while_used(void)
{
	struct kvp_ctx *ctx;
	struct ref ref;
	pid_t pid;
	int line;

	/* A persistent pool, and no process that has anything to do with it. */
	pid = partner(persistent_and_gone, &line);
	GET(line, ref);
	EQUAL(wait_child(pid), 0);
	CHECK(unload());
	CHECK(!access("/dev/kvpool/cache", F_OK));
	ctx = open_ctx();
	EQUAL(destroy(ctx, ref, 0), 0);
	/* An open control node. */
	CHECK(unload());
	kvp_close(ctx);

	/* A mapping, and no descriptor. */
	pid = partner(mapped_only, &line);
	await(line);
	CHECK(unload());
	tell(line);
	EQUAL(wait_child(pid), 0);
	ctx = open_ctx();
	UNTIL(!stats(ctx).bytes);
	kvp_close(ctx);

	EQUAL(unload(), 0);
	CHECK(access("/dev/kvpool", F_OK) == -1 && access("/sys/class/kvpool", F_OK) == -1);
	load();
}

static void generation_outlives_module(void)
{
	uint64_t last = 0;

	for (int round = 0; round < 5; round++) {
		struct kvp_span span = { .id = 0 };
		struct kvp_ctx *ctx;
		struct kvp_pool *pool, *found;
		void *addr;

		EQUAL(unload(), 0);
		load();
		ctx = open_ctx();
		pool = make(ctx, "again", KVP_LIFETIME_OWNER);
		/* Everything is the same but the generation. */
		EQUAL(kvp_pool_id(pool), 1);
		CHECK(kvp_pool_generation(pool) > last);
		if (last) {
			snprintf(span.domain, sizeof(span.domain), "kv");
			span.id = 1;
			span.generation = last;
			span.length = 1;
			RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &found, &addr,
							 &error));
			SAYS("another has its id");
			RETURNS(-ESTALE, kvp_pool_open(ctx, 1, last, KVP_ACCESS_READ, &found,
						       &error));
			EQUAL(destroy(ctx, (struct ref){ 1, last }, 1), -ESTALE);
		}
		last = kvp_pool_generation(pool);
		kvp_pool_close(pool);
		kvp_close(ctx);
		ctx = open_ctx();
		UNTIL(!stats(ctx).bytes);
		kvp_close(ctx);
	}
}

static void span_of_an_ended_pool(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make(ctx, "again", KVP_LIFETIME_OWNER), *found;
	struct kvp_span span;
	void *addr;

	RETURNS(0, kvp_span_export(ctx, "kv", (char *)map_pool(pool) + 4096, BLOCK, &span, &error));
	EQUAL(span.offset, 4096);
	RETURNS(0, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &found, &addr, &error));
	kvp_pool_close(found);
	kvp_pool_close(pool);
	EQUAL(destroy(ctx, (struct ref){ span.id, span.generation }, 0), 0);
	pool = make(ctx, "again", KVP_LIFETIME_OWNER);
	RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &found, &addr, &error));
	SAYS("ended");
	span.generation = kvp_pool_generation(pool);
	RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &found, &addr, &error));
}

int main(void)
{
	RUN(mapping_outlives_descriptor_and_session);
	RUN(path_outlives_pool);
	RUN(child_keeps_mapping);
	RUN(child_keeps_session);
	RUN(passed_to_another_user);
	RUN(owner_killed);
	RUN(owner_killed_while_used);
	RUN(persistent_pool_is_claimed);
	RUN(destroy_in_use);
	RUN(destroyed_while_threads_fault);
	RUN(pinned_block_is_not_reused);
	RUN(hundred_crashes);
	RUN(unload_is_refused_while_used);
	RUN(generation_outlives_module);
	RUN(span_of_an_ended_pool);
	return cases_end();
}

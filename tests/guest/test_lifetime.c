// SPDX-License-Identifier: GPL-2.0
/*
 * Who keeps a pool alive, and what is left when nobody does: descriptors,
 * mappings, sessions, memory regions, and the deaths of their holders.
 */
#include "ref.h"

#include <dirent.h>
#include <infiniband/verbs.h>

#define LENGTH REF_LENGTH

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
	struct kvp_pool *pool = ref_make(ctx, "held", KVP_LIFETIME_OWNER);
	char *addr = ref_map_fd(kvp_pool_fd(pool), PROT_READ | PROT_WRITE);
	struct ref ref = ref_of(pool);

	fill(addr, LENGTH, 1);
	EQUAL(query(pool).files, 1);
	kvp_pool_close(pool);
	CHECK(filled(addr, LENGTH, 1));
	EQUAL(ref_find(watcher, ref).state, KVP_STATE_LIVE);
	EQUAL(ref_find(watcher, ref).files, 1);
	EQUAL(ref_find(watcher, ref).mappings, 1);

	kvp_close(ctx);
	EQUAL(ref_find(watcher, ref).state, KVP_STATE_ORPHAN);
	EQUAL(ref_find(watcher, ref).owned, 0);
	fill(addr, LENGTH, 2);
	CHECK(filled(addr, LENGTH, 2));
	EQUAL(stats(watcher).orphans, 1);
	EQUAL(stats(watcher).bytes, LENGTH);

	CHECK(!munmap(addr, BLOCK));
	EQUAL(ref_find(watcher, ref).state, KVP_STATE_ORPHAN);
	CHECK(!munmap(addr + BLOCK, LENGTH - BLOCK));
	UNTIL(ref_gone(watcher, ref));
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
	EQUAL(ref_destroy(ctx, ref, 0), 0);
	UNTIL(ref_gone(ctx, ref));
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
	struct kvp_pool *pool = ref_make(open_ctx(), "inherited", KVP_LIFETIME_OWNER);
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
	EQUAL(ref_find(ctx, ref).owned, 1);
	EQUAL(ref_find(ctx, ref).mappings, 2);
	kill_now(pid);
	/* The session went with the process; the heir has the descriptor and the mapping. */
	UNTIL(ref_in_state(ctx, ref, KVP_STATE_ORPHAN));
	EQUAL(ref_find(ctx, ref).mappings, 1);
	tell(to_heir);
	await(to_heir);
	EQUAL(ref_find(ctx, ref).state, KVP_STATE_ORPHAN);
	tell(to_heir);
	await(to_heir);
	tell(to_heir);
	UNTIL(ref_gone(ctx, ref));
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
	UNTIL(ref_find(ctx, ref).mappings == 1);
	EQUAL(ref_find(ctx, ref).state, KVP_STATE_LIVE);
	EQUAL(ref_find(ctx, ref).owned, 1);
	RETURNS(0, kvp_pool_open_name(ctx, "inherited", KVP_ACCESS_READ, &pool, &error));
	EQUAL(kvp_pool_generation(pool), ref.generation);
	kvp_pool_close(pool);
	tell(to_heir);
	await(to_heir);
	EQUAL(ref_find(ctx, ref).state, KVP_STATE_LIVE);
	tell(to_heir);
	await(to_heir);
	EQUAL(ref_find(ctx, ref).state, KVP_STATE_ORPHAN);
	tell(to_heir);
	UNTIL(ref_gone(ctx, ref));
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
	addr = ref_map_fd(reading, PROT_READ);
	CHECK(filled(addr, LENGTH, 4));
	CHECK(mprotect(addr, LENGTH, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	shared = ref_map_fd(writing, PROT_READ | PROT_WRITE);
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
	pool = ref_make(ctx, "passed", KVP_LIFETIME_OWNER);
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
	EQUAL(ref_find(watcher, ref).state, KVP_STATE_ORPHAN);
	EQUAL(ref_find(watcher, ref).mappings, 2);
	tell(line);
	await(line);
	EQUAL(ref_find(watcher, ref).state, KVP_STATE_ORPHAN);
	tell(line);
	EQUAL(wait_child(pid), 0);
	UNTIL(ref_gone(watcher, ref));
}

enum owner_state { CREATED, OPENED_ONLY, MAPPED, REGISTERED };
static enum owner_state owner_state;

static void owner(int line)
{
	struct kvp_pool *pool = ref_make(open_ctx(), "owner", KVP_LIFETIME_OWNER);
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
		info = ref_find(ctx, ref);
		EQUAL(info.owned, 1);
		EQUAL(info.files, owner_state != CREATED);
		EQUAL(info.mappings, owner_state >= MAPPED);
		EQUAL(info.pinned_blocks, owner_state >= REGISTERED ? LENGTH / BLOCK : 0);
		kill_now(pid);
		UNTIL(ref_gone(ctx, ref));
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
		UNTIL(ref_in_state(ctx, ref, KVP_STATE_ORPHAN));
		EQUAL(ref_find(ctx, ref).pinned_blocks, pins);

		/* A restarted owner finds its name free at once, and nobody joins the orphan. */
		RETURNS(-ENODEV, kvp_pool_open(ctx, ref.id, ref.generation, KVP_ACCESS_READ, &pool,
					       &error));
		RETURNS(-ENOENT, kvp_pool_open_name(ctx, "owner", KVP_ACCESS_READ, &pool, &error));
		CHECK(access("/dev/kvpool/owner", F_OK) == -1 && errno == ENOENT);
		again = ref_make(ctx, "owner", KVP_LIFETIME_OWNER);
		CHECK(kvp_pool_generation(again) > ref.generation);
		RETURNS(0, kvp_pool_open_name(ctx, "owner", KVP_ACCESS_READ, &pool, &error));
		EQUAL(kvp_pool_generation(pool), kvp_pool_generation(again));
		kvp_pool_close(pool);

		tell(user_line);
		await(user_line);
		if (pins) {
			/* No file, no mapping, only a device: it stays charged, the whole of it. */
			UNTIL(ref_in_state(ctx, ref, KVP_STATE_DYING));
			EQUAL(stats(ctx).bytes, 2 * LENGTH);
			EQUAL(ref_find(ctx, ref).pinned_blocks, 1);
			EQUAL(stats(ctx).dying, 1);
		} else {
			UNTIL(ref_gone(ctx, ref));
			EQUAL(stats(ctx).bytes, LENGTH);
		}
		tell(user_line);
		await(user_line);
		UNTIL(ref_gone(ctx, ref));
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
	struct kvp_pool *pool = ref_make(open_ctx(), "cache", KVP_LIFETIME_PERSISTENT);
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
	UNTIL(!ref_find(ctx, ref).owned);
	EQUAL(ref_find(ctx, ref).state, KVP_STATE_LIVE);
	EQUAL(ref_find(ctx, ref).files, 0);

	RETURNS(-ESTALE, kvp_pool_claim(ctx, ref.id, ref.generation + 1, &pool, &error));
	EQUAL(wait_child(child(alice_claims, &ref)), 0);
	change.mask = KVP_SET_MODE;
	change.mode = 0666;
	RETURNS(0, kvp_pool_set(ctx, ref.id, ref.generation, &change, &error));
	EQUAL(wait_child(child(alice_claims_readable, &ref)), 0);

	RETURNS(0, kvp_pool_claim(ctx, ref.id, ref.generation, &pool, &error));
	CHECK(filled(map_pool(pool), LENGTH, 8));
	EQUAL(ref_find(ctx, ref).owned, 1);
	EQUAL(ref_find(ctx, ref).owner_pid, getpid());
	RETURNS(-EBUSY, kvp_pool_claim(other, ref.id, ref.generation, &second, &error));
	own = ref_make(ctx, "own", KVP_LIFETIME_OWNER);
	RETURNS(-EINVAL, kvp_pool_claim(other, kvp_pool_id(own), kvp_pool_generation(own), &second,
					&error));
	SAYS("persistent");

	/* Without an owner a pool can't be one that ends with its owner. */
	kvp_pool_close(own);
	kvp_pool_close(pool);
	kvp_close(ctx);
	EQUAL(ref_find(other, ref).owned, 0);
	change.mask = KVP_SET_LIFETIME;
	change.lifetime = KVP_LIFETIME_OWNER;
	RETURNS(-EBUSY, kvp_pool_set(other, ref.id, ref.generation, &change, &error));
	RETURNS(0, kvp_pool_claim(other, ref.id, ref.generation, &pool, &error));
	RETURNS(0, kvp_pool_set(other, ref.id, ref.generation, &change, &error));
	kvp_pool_close(pool);
	kvp_close(other);
	ctx = open_ctx();
	UNTIL(ref_gone(ctx, ref));
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

static void span_of_an_ended_pool(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = ref_make(ctx, "again", KVP_LIFETIME_OWNER), *found;
	struct kvp_span span;
	void *addr;

	RETURNS(0, kvp_span_export(ctx, "kv", (char *)map_pool(pool) + 4096, BLOCK, &span, &error));
	EQUAL(span.offset, 4096);
	RETURNS(0, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &found, &addr, &error));
	kvp_pool_close(found);
	kvp_pool_close(pool);
	EQUAL(ref_destroy(ctx, (struct ref){ span.id, span.generation }, 0), 0);
	pool = ref_make(ctx, "again", KVP_LIFETIME_OWNER);
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
	RUN(hundred_crashes);
	RUN(span_of_an_ended_pool);
	return cases_end();
}

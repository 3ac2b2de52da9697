// SPDX-License-Identifier: GPL-2.0
/* A thousand pools, and pools that take most of the memory. */
#include "raw.h"

#define POOLS 1000

static struct kvp_pool *create(struct kvp_ctx *ctx, uint64_t length)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool = NULL;

	options.domain = "kv";
	options.length = length;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

static uint64_t generations[POOLS];
static int listed[POOLS];

static int list(const struct kvp_pool_info *info, void *arg)
{
	int *strangers = arg;

	for (int i = 0; i < POOLS; i++) {
		if (info->generation == generations[i]) {
			listed[i]++;
			return 0;
		}
	}
	++*strangers;
	return 0;
}

static void count(struct raw *raw, void *arg)
{
	(void)raw;
	++*(int *)arg;
}

/* Begin a dump, and leave it where the kernel has filled the first datagram. */
static void begin_dump(struct raw *raw)
{
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_POOL_GET, NLM_F_DUMP);

	CHECK(mnl_socket_sendto(raw->socket, message, message->nlmsg_len) > 0);
}

static void thousand_pools(void)
{
	struct kvp_ctx *ctx = open_ctx(), *other = open_ctx();
	struct raw *raw = raw_open();
	struct kvp_pool *extra;
	int strangers = 0, left = 0;
	bool torn = false;

	for (int i = 0; i < POOLS; i++) {
		struct kvp_pool *pool = create(ctx, BLOCK);

		generations[i] = kvp_pool_generation(pool);
		kvp_pool_close(pool);
	}
	EQUAL(stats(ctx).pools, POOLS);
	RETURNS(0, kvp_pool_each(ctx, list, &strangers, &error));
	EQUAL(strangers, 0);
	for (int i = 0; i < POOLS; i++)
		EQUAL(listed[i], 1);
	EQUAL(shell_number("ls /sys/class/kvpool | grep -c pool-"), POOLS);

	/* A dump that nobody reads on holds no lock: everything else goes on. */
	begin_dump(raw);
	extra = create(other, BLOCK);
	RETURNS(0, kvp_pool_each(other, list, &strangers, &error));
	EQUAL(strangers, 1);
	RETURNS(0, kvp_pool_destroy(other, kvp_pool_id(extra), kvp_pool_generation(extra), 1, &error));
	kvp_pool_close(extra);
	EQUAL(raw_read_dump(raw, count, &left, &torn), left);
	CHECK(left >= POOLS && torn);

	kvp_close(ctx);
	UNTIL(!stats(other).bytes);
}

/* Bytes and pages of the tables of pools, as the kernel tells them. */
static long tables(const char *column)
{
	return shell_number("awk '/kvpool_blocks_alloc/ { b += $2; for (i = 3; i <= NF; i++) "
			    "if (sub(/^pages=/, \"\", $i)) p += $i } END { print %s + 0 }' "
			    "/proc/vmallocinfo", column);
}

/* What a pool of 1 TiB would need beside its memory. */
static void small_metadata(void)
{
	struct kvp_ctx *ctx = open_ctx();
	long slab = proc_kib("/proc/meminfo", "Slab:");
	struct kvp_pool *pool;

	EQUAL(tables("b"), 0);
	pool = create(ctx, 1024 * MIB);
	/* A word a block, in pages of their own, and a guard page. */
	EQUAL(tables("p"), 1);
	CHECK(tables("b") <= 2 * 4096);
	CHECK((proc_kib("/proc/meminfo", "Slab:") - slab) * 1024 < (long)(16 * MIB));
	RETURNS(0, kvp_pool_destroy(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), 1, &error));
	kvp_pool_close(pool);
	EQUAL(tables("b"), 0);
}

static uint64_t most;

static void fill_memory(int line)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = create(ctx, most);

	for (uint64_t at = 0; at < most; at += BLOCK)
		((char *)map_pool(pool))[at] = 1;
	tell(line);
	await(line);
}

/*
 * What comes back from a pool is released behind the back of whoever ended it, and
 * who needs that memory next gets it.
 */
static void memory_on_its_way_back(void)
{
	struct kvp_ctx *ctx = open_ctx(), *next;
	struct kvp_pool *pool;
	pid_t pid;
	int line;

	most = stats(ctx).available / 10 * 8;
	for (int round = 0; round < 4; round++) {
		next = open_ctx();
		pool = create(next, most);
		/* Closed by the session's end, which waits for nothing. */
		kvp_pool_close(pool);
		kvp_close(next);
		/* Killed, mapped and touched. */
		pid = partner(fill_memory, &line);
		await(line);
		kill_now(pid);
		close(line);
	}
	UNTIL(!stats(ctx).bytes);
	EQUAL(stats(ctx).dying_bytes, 0);
}

/* What dying pools hold is counted, and who pins it is waited for by nobody. */
static void dying_is_counted(void)
{
	struct kvp_ctx *ctx = open_ctx(), *owner = open_ctx();
	struct kvp_pool *pool = create(owner, 64 * BLOCK);
	struct ibv_mr *mr = pin((char *)map_pool(pool) + BLOCK, 3 * BLOCK);

	CHECK(mr);
	EQUAL(stats(ctx).dying_bytes, 0);
	RETURNS(0, kvp_pool_destroy(owner, kvp_pool_id(pool), kvp_pool_generation(pool), 1, &error));
	EQUAL(stats(ctx).dying, 1);
	EQUAL(stats(ctx).dying_bytes, 3 * BLOCK);
	EQUAL(stats(ctx).bytes, 64 * BLOCK);
	unpin(mr);
	UNTIL(!stats(ctx).bytes);
	EQUAL(stats(ctx).dying_bytes, 0);
	kvp_pool_close(pool);
	kvp_close(owner);
}

/* Releasing begins a moment later, and those that end meanwhile don't put it off. */
static void ending_in_a_row(void)
{
	struct kvp_ctx *ctx = open_ctx(), *owners[200];
	uint64_t destroyed = stats(ctx).destroyed;

	for (int i = 0; i < 200; i++) {
		owners[i] = open_ctx();
		kvp_pool_close(create(owners[i], BLOCK));
	}
	EQUAL(stats(ctx).destroyed, destroyed);
	/* For a fifth of a second at least, with less than that moment from one to the next. */
	for (int i = 0; i < 200; i++) {
		kvp_close(owners[i]);
		usleep(1000);
	}
	CHECK(stats(ctx).destroyed > destroyed);
	UNTIL(stats(ctx).destroyed == destroyed + 200);
	EQUAL(stats(ctx).bytes, 0);
}

int main(void)
{
	RUN(small_metadata);
	RUN(ending_in_a_row);
	RUN(dying_is_counted);
	RUN(memory_on_its_way_back);
	RUN(thousand_pools);
	return cases_end();
}

// SPDX-License-Identifier: GPL-2.0
/* Pools whose memory comes after the request: KVPOOL_IOC_FILL. */
#include "raw.h"

#include <pthread.h>

#include "../../uapi/kvpool.h"

#define CONTROL "/dev/kvpool/control"
#define MAX_BYTES "/sys/module/kvpool/parameters/max_bytes"
#define FAILS(err, call) do { EQUAL(call, -1); EQUAL(errno, err); } while (0)

/* Ask for a pool of this name, to be filled later. */
static int reserve(struct raw *raw, int control, const char *name, uint64_t length,
		   struct kvpool_fill *fill)
{
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_POOL_CREATE, 0);
	int err;

	mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD, (uint32_t)control);
	mnl_attr_put_strz(message, KVPOOL_A_POOL_NAME, name);
	mnl_attr_put_strz(message, KVPOOL_A_POOL_DOMAIN, "kv");
	mnl_attr_put_u64(message, KVPOOL_A_POOL_LENGTH, length);
	mnl_attr_put(message, KVPOOL_A_POOL_DEFERRED, 0, NULL);
	err = raw_ask(raw);
	if (err)
		return err;
	*fill = (struct kvpool_fill){ .size = sizeof(*fill), .id = raw_u32(raw, KVPOOL_A_POOL_ID),
				      .generation = raw_u64(raw, KVPOOL_A_POOL_GENERATION) };
	EQUAL(raw_u32(raw, KVPOOL_A_POOL_STATE), KVPOOL_STATE_CREATING);
	EQUAL(raw_u32(raw, KVPOOL_A_POOL_BLOCKS), 0);
	return 0;
}

static int control_open(int flags)
{
	int fd = open(CONTROL, flags | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static void filled_later(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct raw *raw = raw_open();
	int control = control_open(O_RDWR), other = control_open(O_RDWR);
	int reading = control_open(O_RDONLY);
	struct kvp_pool_info info;
	struct kvpool_fill fill, again;

	EQUAL(reserve(raw, control, "later", 5 * BLOCK - 1, &fill), 0);
	/* Its share of the limits and its name are taken, and nobody sees it. */
	EQUAL(stats(ctx).bytes, 5 * BLOCK);
	EQUAL(stats(ctx).pools, 0);
	RETURNS(-ENOENT, kvp_pool_find(ctx, fill.id, fill.generation, &info, &error));
	RETURNS(-ENOENT, kvp_pool_find_name(ctx, "later", &info, &error));
	CHECK(access("/dev/kvpool/later", F_OK));
	EQUAL(reserve(raw, other, "later", BLOCK, &again), -EEXIST);

	again = fill;
	FAILS(ENOENT, ioctl(other, KVPOOL_IOC_FILL, &again));
	FAILS(EACCES, ioctl(reading, KVPOOL_IOC_FILL, &again));
	again.flags = 1;
	FAILS(EINVAL, ioctl(control, KVPOOL_IOC_FILL, &again));
	again = fill;
	again.reserved = 1;
	FAILS(EINVAL, ioctl(control, KVPOOL_IOC_FILL, &again));
	again = fill;
	again.generation++;
	FAILS(ENOENT, ioctl(control, KVPOOL_IOC_FILL, &again));
	again = fill;
	again.size--;
	FAILS(EINVAL, ioctl(control, KVPOOL_IOC_FILL, &again));

	memset(fill.message, 'x', sizeof(fill.message));
	EQUAL(ioctl(control, KVPOOL_IOC_FILL, &fill), 0);
	EQUAL(fill.message[0], 0);
	RETURNS(0, kvp_pool_find_name(ctx, "later", &info, &error));
	EQUAL(info.state, KVP_STATE_LIVE);
	EQUAL(info.blocks, 5);
	EQUAL(info.owned, 1);
	EQUAL(stats(ctx).bytes, 5 * BLOCK);
	CHECK(!access("/dev/kvpool/later", F_OK));
	FAILS(ENOENT, ioctl(control, KVPOOL_IOC_FILL, &fill));
	CHECK(!close(control));
	UNTIL(!stats(ctx).bytes);
}

/* Not enough memory: told why, and gone with its name. */
static void not_filled(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_stats old = stats(ctx);
	struct raw *raw = raw_open();
	int control = control_open(O_RDWR);
	struct kvpool_fill fill;

	EQUAL(shell("echo 1000000000000000 >" MAX_BYTES), 0);
	EQUAL(reserve(raw, control, "much", old.available + 64 * BLOCK, &fill), 0);
	FAILS(ENOMEM, ioctl(control, KVPOOL_IOC_FILL, &fill));
	if (!strstr((const char *)fill.message, "min_available"))
		FAIL("the message is \"%s\"", fill.message);
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(stats(ctx).failed, old.failed + 1);
	FAILS(ENOENT, ioctl(control, KVPOOL_IOC_FILL, &fill));
	EQUAL(reserve(raw, control, "much", BLOCK, &fill), 0);
	EQUAL(ioctl(control, KVPOOL_IOC_FILL, &fill), 0);
	CHECK(!close(control));
	UNTIL(!stats(ctx).bytes);
}

static void reserves_and_waits(int line)
{
	struct raw *raw = raw_open();
	int control = control_open(O_RDWR);
	struct kvpool_fill fill;
	char name[16];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		EQUAL(reserve(raw, control, name, BLOCK, &fill), 0);
	}
	EQUAL(ioctl(control, KVPOOL_IOC_FILL, &fill), 0);
	tell(line);
	await(line);
}

/* What a session has reserved goes with it. */
static void goes_with_its_session(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_stats old = stats(ctx);
	struct raw *raw = raw_open();
	int control = control_open(O_RDWR), line;
	struct kvpool_fill fill;
	pid_t pid = partner(reserves_and_waits, &line);

	await(line);
	EQUAL(stats(ctx).bytes, 50 * BLOCK);
	EQUAL(stats(ctx).pools, 1);
	EQUAL(reserve(raw, control, "w7", BLOCK, &fill), -EEXIST);
	kill_now(pid);
	UNTIL(!stats(ctx).bytes);
	EQUAL(stats(ctx).failed, old.failed + 49 + 1);
	EQUAL(reserve(raw, control, "w7", BLOCK, &fill), 0);
	CHECK(!close(control));
	UNTIL(!stats(ctx).bytes);
}

static void fill_in_child(void *arg)
{
	struct kvpool_fill *fill = arg;
	int control = (int)fill->reserved;

	fill->reserved = 0;
	if (!ioctl(control, KVPOOL_IOC_FILL, fill))
		_exit(1);
	_exit(errno == ENOENT ? 2 : 3);
}

/* Many fill the same pool: one of them does. */
static void filled_once(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct raw *raw = raw_open();
	int control = control_open(O_RDWR);
	struct kvpool_fill fill;
	pid_t pids[8];

	for (int round = 0; round < 20; round++) {
		int done = 0;

		EQUAL(reserve(raw, control, "once", 16 * BLOCK, &fill), 0);
		fill.reserved = (uint32_t)control;
		for (int i = 0; i < 8; i++)
			pids[i] = child(fill_in_child, &fill);
		for (int i = 0; i < 8; i++) {
			int code = wait_child(pids[i]);

			CHECK(code == 1 || code == 2);
			done += code == 1;
		}
		EQUAL(done, 1);
		RETURNS(0, kvp_pool_destroy(ctx, fill.id, fill.generation, 0, &error));
	}
}

static struct kvpool_fill guess;
static volatile bool guessed;

/* Fill the pool whose id and generation come next, as soon as it is there. */
static void *guess_again(void *arg)
{
	const int control = *(int *)arg;

	while (!guessed) {
		if (!ioctl(control, KVPOOL_IOC_FILL, &guess))
			FAIL("it was filled");
		guessed = errno == ENOMEM;
	}
	return NULL;
}

/* The one thread fills it, in vain, while the other is still about to answer. */
static void filled_by_who_guesses(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct raw *raw = raw_open();
	int control = control_open(O_RDWR);
	struct kvpool_fill fill;
	pthread_t thread;

	EQUAL(shell("echo 10000000000000000 >" MAX_BYTES), 0);
	EQUAL(reserve(raw, control, "first", BLOCK, &fill), 0);
	for (int round = 0; round < 50; round++) {
		guess = fill;
		guess.id++;
		guess.generation++;
		guessed = false;
		CHECK(!pthread_create(&thread, NULL, guess_again, &control));
		EQUAL(reserve(raw, control, "guess", (uint64_t)1 << 42, &fill), 0);
		CHECK(!pthread_join(thread, NULL));
		EQUAL(fill.id, guess.id);
		EQUAL(fill.generation, guess.generation);
	}
	EQUAL(stats(ctx).bytes, BLOCK);
	CHECK(!close(control));
	UNTIL(!stats(ctx).bytes);
}

static uint64_t long_length;

static void long_creation(int line)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool;

	options.domain = "kv";
	options.length = long_length;
	await(line);
	kvp_pool_create(ctx, &options, &pool, NULL);
	await(line);
}

/* While the library creates a pool, a netlink family comes and goes, and requests are answered. */
static void holds_nobody_up(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_stats old = stats(ctx);
	long free_kib;
	pid_t pid;
	int line;

	EQUAL(shell("echo 0 >/sys/module/kvpool/parameters/create_workers"), 0);
	long_length = old.available / 10 * 9;
	pid = partner(long_creation, &line);
	free_kib = proc_kib("/proc/meminfo", "MemFree:");
	throttle(pid, 20000);
	tell(line);
	/* Under way: part of the memory is taken. */
	while (free_kib - proc_kib("/proc/meminfo", "MemFree:") < 20 << 10)
		EQUAL(stats(ctx).created, old.created);
	EQUAL(shell("modprobe psample && modprobe -r psample"), 0);
	EQUAL(stats(ctx).created, old.created);
	CHECK(stats(ctx).bytes);
	throttle(pid, 0);
	kill_now(pid);
	EQUAL(stats(ctx).bytes, 0);
	EQUAL(stats(ctx).created, old.created);
}

int main(void)
{
	long max_bytes = shell_number("cat " MAX_BYTES);
	long workers = shell_number("cat /sys/module/kvpool/parameters/create_workers");

	RUN(filled_later);
	RUN(not_filled);
	shell("echo %ld >" MAX_BYTES, max_bytes);
	RUN(goes_with_its_session);
	RUN(filled_once);
	RUN(filled_by_who_guesses);
	RUN(holds_nobody_up);
	shell("echo %ld >/sys/module/kvpool/parameters/create_workers", workers);
	return cases_end();
}

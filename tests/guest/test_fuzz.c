// SPDX-License-Identifier: GPL-2.0
/*
 * Requests at random, but well formed: of the right type mostly, with values that
 * mean something often. Several users send them at once, and what is not theirs
 * must stay as it was.
 *
 * Without feedback by coverage (KCOV), which would find nothing more: with a module
 * built to count, 34,300 requests of each process reached 1,258 places, of which
 * 1,182 were reached by the first 1,300, and 1,250 by 14,300. The rest, of 1,748, are
 * init and exit, attributes of sysfs, pins, and what is done when memory fails
 * (test_failnth).
 */
#include "race.h"
#include "raw.h"

#include <sys/stat.h>
#include <time.h>

#include "../../uapi/kvpool.h"

#define CONTROL	"/dev/kvpool/control"
#define PARAMETERS "/sys/module/kvpool/parameters/"
#define PICK(state, list) ((list)[roll(state) % (sizeof(list) / sizeof(*(list)))])

/* What one process has to send requests with. */
struct sender {
	uint64_t state;		/* its sequence of numbers */
	struct raw *raw;
	int control;		/* -1: this user can't open it */
	int files[8];		/* pools that it has opened, or -1 */
	uint32_t id;		/* a pool that was there a moment ago */
	uint64_t generation;
	int good[2];		/* requests that succeeded: netlink, ioctl */
};

/* Of each process. */
static int requests;

struct user {
	uid_t uid;
	gid_t gid;
	uint64_t seed;
};

/* ------------------------------------------------------------------ netlink */

enum kind { U32, U64, STRING, FLAG };

/* What kvpool.yaml calls the attributes of a request, beside the session. */
struct attribute {
	uint16_t type;
	enum kind kind;
	uint32_t commands;	/* those that take it, a bit each */
};

#define CREATE	(1U << KVPOOL_CMD_POOL_CREATE)
#define DESTROY	(1U << KVPOOL_CMD_POOL_DESTROY)
#define READ	(1U << KVPOOL_CMD_POOL_GET)
#define SET	(1U << KVPOOL_CMD_POOL_SET)
#define CLAIM	(1U << KVPOOL_CMD_POOL_CLAIM)
#define PINS	(1U << KVPOOL_CMD_PIN_GET)
#define RESERVE	(1U << KVPOOL_CMD_RESERVE_SET)
/* Those that take, or can't do without, a session. */
#define SESSION	(CREATE | DESTROY | SET | CLAIM | RESERVE)

static const struct attribute attributes[] = {
	{ KVPOOL_A_POOL_ID, U32, DESTROY | READ | SET | CLAIM | PINS },
	{ KVPOOL_A_POOL_GENERATION, U64, DESTROY | READ | SET | CLAIM | PINS },
	{ KVPOOL_A_POOL_NAME, STRING, CREATE | READ },
	{ KVPOOL_A_POOL_DOMAIN, STRING, CREATE },
	{ KVPOOL_A_POOL_ROLE, STRING, CREATE | SET },
	{ KVPOOL_A_POOL_LABEL, STRING, CREATE | SET },
	{ KVPOOL_A_POOL_RANK, U32, CREATE | SET },
	{ KVPOOL_A_POOL_LENGTH, U64, CREATE },
	{ KVPOOL_A_POOL_NODE, U32, CREATE },
	{ KVPOOL_A_POOL_PLACEMENT, U32, CREATE },
	{ KVPOOL_A_POOL_LIFETIME, U32, CREATE | SET },
	{ KVPOOL_A_POOL_UID, U32, CREATE | SET },
	{ KVPOOL_A_POOL_GID, U32, CREATE | SET },
	{ KVPOOL_A_POOL_MODE, U32, CREATE | SET },
	{ KVPOOL_A_POOL_REGISTRATION, U32, SET },
	{ KVPOOL_A_POOL_FORCE, FLAG, DESTROY },
	{ KVPOOL_A_POOL_DEFERRED, FLAG, CREATE },
	{ KVPOOL_A_RESERVE_POLICY, U32, RESERVE },
	{ KVPOOL_A_RESERVE_NODE, U32, RESERVE },
	{ KVPOOL_A_RESERVE_TARGET, U64, RESERVE },
	{ KVPOOL_A_RESERVE_UID, U32, RESERVE },
	{ KVPOOL_A_RESERVE_QUOTA, U64, RESERVE },
};
static const uint32_t small[] = { 0, 1, 2, 3, 7, 0400, 0600, 0660, 0666, 1000, 1001, UINT32_MAX };
static const uint64_t sizes[] = { 0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 9 * BLOCK,
				  (uint64_t)1 << 40, UINT64_MAX - BLOCK, UINT64_MAX };
/* The last two have 63 bytes, the most that is taken, and 64. */
#define LONG_NAME "a-name-of-as-many-bytes-as-there-may-be-and-not-a-single-1-more"
static const char *const names[] = { "a", "b", "kv", "fuzz", "", "a/b", ".", "control", "\xff\xfe", "a b",
				     LONG_NAME, LONG_NAME "-" };
_Static_assert(sizeof(LONG_NAME) == KVPOOL_NAME_SIZE, "the longest name");

static void put(struct sender *sender, struct nlmsghdr *message, const struct attribute *attribute)
{
	const bool reserve = attribute->commands & RESERVE;
	uint64_t *state = &sender->state;
	uint64_t u64 = PICK(state, sizes);
	uint32_t u32 = PICK(state, small);

	/* One in thirty has another size than its type, or is of no type. */
	if (!(roll(state) % 30)) {
		mnl_attr_put(message, roll(state) % 2 ? attribute->type :
			     (uint16_t)(roll(state) % (KVPOOL_A_POOL_MAX + 2)), roll(state) % 16, sizes);
		return;
	}
	if (!reserve && attribute->type == KVPOOL_A_POOL_ID && roll(state) % 8)
		u32 = sender->id;
	if (!reserve && attribute->type == KVPOOL_A_POOL_GENERATION && roll(state) % 8)
		u64 = sender->generation;
	/* Filling the reserve must not take all the time. */
	if (reserve && attribute->type == KVPOOL_A_RESERVE_TARGET && u64 > 9 * BLOCK)
		u64 = 0;
	switch (attribute->kind) {
	case U32:
		mnl_attr_put_u32(message, attribute->type, u32);
		break;
	case U64:
		mnl_attr_put_u64(message, attribute->type, u64);
		break;
	case STRING:
		mnl_attr_put_strz(message, attribute->type, PICK(state, names));
		break;
	case FLAG:
		mnl_attr_put(message, attribute->type, 0, NULL);
		break;
	}
}

static void remember(struct raw *raw, void *arg)
{
	struct sender *sender = arg;

	/* Any of them, not always the last. */
	if (roll(&sender->state) % 2 && raw->attrs[KVPOOL_A_POOL_ID] &&
	    raw->attrs[KVPOOL_A_POOL_GENERATION]) {
		sender->id = raw_u32(raw, KVPOOL_A_POOL_ID);
		sender->generation = raw_u64(raw, KVPOOL_A_POOL_GENERATION);
	}
}

static void send_netlink(struct sender *sender)
{
	static const uint8_t commands[] = {
		KVPOOL_CMD_POOL_CREATE, KVPOOL_CMD_POOL_CREATE, KVPOOL_CMD_POOL_DESTROY, KVPOOL_CMD_POOL_GET,
		KVPOOL_CMD_POOL_SET, KVPOOL_CMD_POOL_SET, KVPOOL_CMD_POOL_CLAIM, KVPOOL_CMD_PIN_GET,
		KVPOOL_CMD_STATS_GET, KVPOOL_CMD_RESERVE_SET, KVPOOL_CMD_RESERVE_GET,
		KVPOOL_CMD_POOL_CREATE_NTF, KVPOOL_CMD_MAX + 1,
	};
	uint64_t *state = &sender->state;
	uint8_t command = PICK(state, commands);
	bool dump = command == KVPOOL_CMD_PIN_GET || command == KVPOOL_CMD_RESERVE_GET ||
		    (command == KVPOOL_CMD_POOL_GET && roll(state) % 2);
	struct nlmsghdr *message = raw_start(sender->raw, command, dump ? NLM_F_DUMP : 0);
	bool reserve = command >= KVPOOL_CMD_RESERVE_SET;
	int err;

	_Static_assert((int)KVPOOL_A_POOL_SESSION_FD == KVPOOL_A_RESERVE_SESSION_FD, "put by one line");
	if (roll(state) % 16 ? (1U << command) & SESSION : roll(state) % 2)
		mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD,
				 roll(state) % 16 ? (uint32_t)sender->control : PICK(state, small));
	/* What a creation or a target can't be without, and what says which pool. */
	if (command == KVPOOL_CMD_POOL_CREATE && roll(state) % 8) {
		mnl_attr_put_strz(message, KVPOOL_A_POOL_DOMAIN, "kv");
		mnl_attr_put_u64(message, KVPOOL_A_POOL_LENGTH, 1 + roll(state) % (3 * BLOCK));
	} else if (command == KVPOOL_CMD_RESERVE_SET && roll(state) % 4) {
		mnl_attr_put_u32(message, KVPOOL_A_RESERVE_NODE, roll(state) % 2);
		mnl_attr_put_u64(message, KVPOOL_A_RESERVE_TARGET, roll(state) % 9 * BLOCK);
	} else if (((1U << command) & attributes[0].commands) && !(dump && command == KVPOOL_CMD_POOL_GET) &&
		   roll(state) % 8) {
		mnl_attr_put_u32(message, KVPOOL_A_POOL_ID, sender->id);
		mnl_attr_put_u64(message, KVPOOL_A_POOL_GENERATION, sender->generation);
	}
	for (uint32_t left = roll(state) % 4; left; left--) {
		const struct attribute *attribute = &PICK(state, attributes);

		/* One in sixteen is not of this command. */
		if (((1U << command) & attribute->commands) || !(roll(state) % 16))
			put(sender, message, attribute);
	}
	if (dump) {
		CHECK(mnl_socket_sendto(sender->raw->socket, message, message->nlmsg_len) > 0);
		err = raw_read_dump(sender->raw, reserve ? NULL : remember, sender, NULL);
	} else {
		err = raw_ask(sender->raw);
		if (!err && !reserve)
			remember(sender->raw, sender);
	}
	CHECK(err > -200);
	sender->good[0] += err >= 0;
}

/* ------------------------------------------------------------------- ioctls */

static void send_ioctl(struct sender *sender)
{
	uint64_t *state = &sender->state;
	int *file = &PICK(state, sender->files);
	int fd = roll(state) % 2 ? sender->control : *file;
	struct kvpool_segment segments[4];
	struct kvpool_resolve resolve = {
		.size = sizeof(resolve), .addr = roll(state) % 2 ? (uintptr_t)segments & ~4095ul : PICK(state, sizes),
		.length = PICK(state, sizes), .segments = (uintptr_t)segments, .count = roll(state) % 5,
	};
	struct kvpool_open open = { .size = sizeof(open), .flags = roll(state) % 3,
				    .generation = sender->generation, .id = sender->id };
	struct kvpool_info info = { .size = roll(state) % 8 ? sizeof(info) : PICK(state, small) };
	struct kvpool_fill fill = { .size = sizeof(fill), .generation = sender->generation, .id = sender->id };
	int err = -1;

	switch (roll(state) % 4) {
	case 0:
		err = ioctl(fd, KVPOOL_IOC_RESOLVE, &resolve);
		if (!err)
			CHECK(resolve.count <= 4 && resolve.resolved && resolve.resolved <= resolve.length);
		break;
	case 1:
		err = ioctl(sender->control, KVPOOL_IOC_OPEN, &open);
		if (!err) {
			close(*file);
			*file = open.fd;
		}
		break;
	case 2:
		err = ioctl(fd, KVPOOL_IOC_INFO, &info);
		break;
	case 3:
		err = ioctl(fd, KVPOOL_IOC_FILL, &fill);
		break;
	}
	sender->good[1] += !err;
}

static void map_some(struct sender *sender)
{
	uint64_t *state = &sender->state;
	int fd = PICK(state, sender->files);
	uint64_t length = 1 + roll(state) % (10 * BLOCK), offset = PICK(state, sizes) & ~4095ul;
	int prot = (int)(roll(state) % 4);
	char *addr = mmap(NULL, length, prot, roll(state) % 8 ? MAP_SHARED : MAP_PRIVATE, fd, (off_t)offset);

	if (addr == MAP_FAILED)
		return;
	/* A neighbour may end the pool at any moment: SIGBUS is what it says then. */
	if (prot & PROT_READ)
		read_byte(addr + roll(state) % length);
	mprotect(addr, 4096, (int)(roll(state) % 8));
	CHECK(!munmap(addr, length));
}

static void new_session(struct sender *sender)
{
	close(sender->control);
	sender->control = open(CONTROL, roll(&sender->state) % 4 ? O_RDWR | O_CLOEXEC : O_RDONLY | O_CLOEXEC);
}

/* ---------------------------------------------------------------- processes */

static const struct user *user;	/* of the process that is started */

static void send_all(int line)
{
	struct sender sender = { .state = user->seed, .control = -1 };

	become(user->uid, user->gid);
	await(line);
	memset(sender.files, -1, sizeof(sender.files));
	sender.raw = raw_open();
	for (int n = 0; n < requests; n++) {
		switch (n % 50 ? roll(&sender.state) % 8 : 8) {
		case 0: case 1: case 2:
			send_ioctl(&sender);
			break;
		case 3:
			map_some(&sender);
			break;
		case 8:
			new_session(&sender);
			break;
		default:
			send_netlink(&sender);
		}
	}
	/* Whoever may do nothing may at least ask. */
	CHECK(sender.good[0] > requests / 50);
	if (sender.control >= 0)
		CHECK(sender.good[1] > requests / 50);
}

struct process {
	pid_t pid;
	int line;
};

/* Before this process opens anything: a session whose descriptor they have is theirs. */
static void start(const struct user *users, struct process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		user = &users[i];
		processes[i].pid = partner(send_all, &processes[i].line);
	}
}

static void run(struct process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		tell(processes[i].line);
	for (size_t i = 0; i < count; i++)
		EQUAL(wait_child(processes[i].pid), 0);
}

static void destroy(struct raw *raw, void *arg)
{
	struct kvp_ctx *ctx = arg;

	/* Those of processes that have just ended may have ended too, and be listed still. */
	ALLOWED(kvp_pool_destroy(ctx, raw_u32(raw, KVPOOL_A_POOL_ID), raw_u64(raw, KVPOOL_A_POOL_GENERATION),
				 true, NULL), ENOENT, ENODEV);
}

/* What persists of them, and that it can be taken away. */
static void destroy_rest(struct kvp_ctx *ctx)
{
	bool torn;

	CHECK(raw_dump(raw_open(), destroy, ctx, &torn) >= 0);
	UNTIL(!stats(ctx).pools && !stats(ctx).bytes);
}

/* As the module is loaded with. */
static void reserve_untouched(struct kvp_ctx *ctx)
{
	struct kvp_reserve *reserve;

	RETURNS(0, kvp_reserve_get(ctx, &reserve, &error));
	EQUAL(reserve->policy, KVP_RESERVE_FIRST);
	EQUAL(reserve->quota, 0);
	EQUAL(reserve->user_count, 0);
	for (size_t i = 0; i < reserve->node_count; i++) {
		EQUAL(reserve->nodes[i].target, 0);
		EQUAL(reserve->nodes[i].ready + reserve->nodes[i].clearing, 0);
	}
	kvp_reserve_free(reserve);
}

static gid_t kvpool_gid(void)
{
	return (gid_t)shell_number("getent group kvpool | cut -d: -f3");
}

/* Two users who may create pools, and one who may not. */
static void users(void)
{
	const struct user users[] = {
		{ 1000, kvpool_gid(), seed }, { 1001, kvpool_gid(), seed + 1 }, { 65534, 65534, seed + 2 },
	};
	struct process processes[3];
	struct kvp_ctx *ctx;
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool_info before[2], after[2];
	struct kvp_pool *pools[2];
	char *addr[2];

	start(users, processes, 3);
	ctx = open_ctx();
	options.domain = "kv";
	options.length = 2 * BLOCK;
	options.has_mode = 1;
	for (int i = 0; i < 2; i++) {
		options.name = i ? "readable" : "private";
		options.mode = i ? 0644 : 0600;
		RETURNS(0, kvp_pool_create(ctx, &options, &pools[i], &error));
		addr[i] = map_pool(pools[i]);
		fill(addr[i], 2 * BLOCK, (uint64_t)i);
		before[i] = query(pools[i]);
	}

	run(processes, 3);

	for (int i = 0; i < 2; i++) {
		after[i] = query(pools[i]);
		CHECK(!memcmp(&before[i], &after[i], sizeof(before[i])));
		CHECK(filled(addr[i], 2 * BLOCK, (uint64_t)i));
	}
	reserve_untouched(ctx);
	destroy_rest(ctx);
}

/* Root is one of them: nothing is safe, and the module goes on. */
static void root_too(void)
{
	const struct user users[] = {
		{ 0, 0, seed + 3 }, { 1000, kvpool_gid(), seed + 4 }, { 65534, 65534, seed + 5 },
	};
	struct process processes[3];

	start(users, processes, 3);
	run(processes, 3);
	destroy_rest(open_ctx());
}

/* What root has set of the reserve can be taken back, all of it. */
static void reserve_taken_back(void)
{
	struct kvp_reserve_change change = KVP_INIT(struct kvp_reserve_change);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_reserve *reserve;

	change.mask = KVP_RESERVE_SET_POLICY | KVP_RESERVE_SET_QUOTA;
	change.policy = KVP_RESERVE_FIRST;
	change.quota = 0;
	RETURNS(0, kvp_reserve_set(ctx, &change, &error));
	RETURNS(0, kvp_reserve_get(ctx, &reserve, &error));
	for (size_t i = 0; i < reserve->node_count; i++) {
		change.mask = KVP_RESERVE_SET_TARGET;
		change.node = reserve->nodes[i].node;
		change.target = 0;
		RETURNS(0, kvp_reserve_set(ctx, &change, &error));
	}
	for (size_t i = 0; i < reserve->user_count; i++) {
		change.mask = KVP_RESERVE_SET_UID;
		change.uid = reserve->users[i].uid;
		RETURNS(0, kvp_reserve_set(ctx, &change, &error));
	}
	kvp_reserve_free(reserve);
	reserve_untouched(ctx);
}

int main(void)
{
	long max_bytes = shell_number("cat " PARAMETERS "max_bytes");

	requests = debug_kernel() ? 3000 : 10000;
	seed = (uint64_t)time(NULL);
	printf("# seed %llu\n", (unsigned long long)seed);
	/* What they ask for is of any size. */
	shell("echo 67108864 >" PARAMETERS "max_bytes");
	RUN(users);
	RUN(root_too);
	RUN(reserve_taken_back);
	shell("echo %ld >" PARAMETERS "max_bytes", max_bytes);
	return cases_end();
}

// SPDX-License-Identifier: GPL-2.0
/* Netlink requests, each place of which fails once: see failnth.h. */
#include "failnth.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "../../uapi/kvpool.h"

#define REFUSALS ENOMEM, ENOBUFS, EFAULT

/* The pool is as it was asked for, or it is not there at all. */
static bool check_created(long got)
{
	struct stat node;

	if (!find()) {
		CHECK(got < 0);
		CHECK(access(NODE, F_OK) && access("/sys/class/kvpool/" NAME, F_OK));
		return false;
	}
	CHECK(!got || answer_lost);
	CHECK(!stat(NODE, &node));
	EQUAL(node.st_mode & 0777, 0640);
	EQUAL(node.st_uid, 1000);
	return true;
}

static struct nlmsghdr *create_message_for_alice(void)
{
	struct nlmsghdr *message = create_message();

	mnl_attr_put_u32(message, KVPOOL_A_POOL_UID, 1000);
	mnl_attr_put_u32(message, KVPOOL_A_POOL_MODE, 0640);
	return message;
}

static long creates(void)
{
	long got;

	create_message_for_alice();
	got = inject_request();
	if (check_created(got))
		destroy();
	return got;
}

static void create_fails(void)
{
	failnth_begin();
	REPEAT(creates, REFUSALS);
}

static void new_session(void)
{
	CHECK(!close(control));
	control = open(CONTROL, O_RDWR | O_CLOEXEC);
	CHECK(control >= 0);
}

static void no_pool_is_left(void)
{
	UNTIL(!stats(observer).pools && !stats(observer).dying);
	CHECK(access(NODE, F_OK) && access("/sys/class/kvpool/" NAME, F_OK));
}

/* What is reserved for a pool that is never filled goes with the session. */
static long reserves(void)
{
	long got;

	mnl_attr_put(create_message(), KVPOOL_A_POOL_DEFERRED, 0, NULL);
	got = inject_request();
	if (got && !answer_lost)
		EQUAL(stats(observer).bytes, 0);
	else if (!got)
		EQUAL(stats(observer).bytes, BLOCK);
	new_session();
	return got;
}

static long fills(void)
{
	struct kvpool_fill fill = { .size = sizeof(fill) };
	struct nlmsghdr *message = create_message_for_alice();
	long got;

	/* So much that a helper allocates, too. */
	mnl_attr_put_u64(message, KVPOOL_A_POOL_LENGTH, 17 * BLOCK);
	mnl_attr_put(message, KVPOOL_A_POOL_DEFERRED, 0, NULL);
	ask();
	fill.id = raw_u32(raw, KVPOOL_A_POOL_ID);
	fill.generation = raw_u64(raw, KVPOOL_A_POOL_GENERATION);
	got = INJECT(ioctl(control, KVPOOL_IOC_FILL, &fill));
	/* Not read: it has not begun. Not written: it is done. */
	answer_lost = got == -EFAULT;
	if (!check_created(got) && got == -ENOMEM)
		CHECK(fill.message[0]);
	new_session();
	no_pool_is_left();
	return got;
}

static void fill_fails(void)
{
	failnth_begin();
	REPEAT(reserves, REFUSALS);
	REPEAT(fills, ENOMEM, EFAULT);
}

/* A limit of one pool: what a failed one kept of it would be missed by the next. */
static long creates_in_limit(void)
{
	long got;

	create_message();
	got = inject_request();
	if (find())
		destroy();
	return got;
}

static void create_charges_nothing(void)
{
	const struct rlimit limit = { BLOCK, BLOCK };

	failnth_begin();
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	become(1000, 1000);
	REPEAT(creates_in_limit, REFUSALS);
	create(KVPOOL_LIFETIME_OWNER);
	mnl_attr_put_strz(create_message(), KVPOOL_A_POOL_NAME, "second");
	EQUAL(raw_ask(raw), -EDQUOT);
}

static long destroys(void)
{
	long got;

	create(KVPOOL_LIFETIME_OWNER);
	pool_message(KVPOOL_CMD_POOL_DESTROY);
	got = inject_request();
	/* It has not begun, or has been done. */
	if (find()) {
		CHECK(got < 0 && !access(NODE, F_OK));
		destroy();
	} else {
		CHECK(!got || answer_lost);
	}
	no_pool_is_left();
	return got;
}

static void destroy_fails(void)
{
	failnth_begin();
	REPEAT(destroys, REFUSALS);
}

/* Asks for a number of the pool NAME; UINT32_MAX: it has none. */
static uint32_t number(int attribute)
{
	pool_message(KVPOOL_CMD_POOL_GET);
	ask();
	return raw->attrs[attribute] ? raw_u32(raw, attribute) : UINT32_MAX;
}

static long sets(void)
{
	struct nlmsghdr *message = pool_message(KVPOOL_CMD_POOL_SET);
	static uint32_t rank = UINT32_MAX;
	uint32_t now;
	long got;

	mnl_attr_put_u32(message, KVPOOL_A_POOL_RANK, nth);
	mnl_attr_put_strz(message, KVPOOL_A_POOL_ROLE, "draft");
	got = inject_request();
	now = number(KVPOOL_A_POOL_RANK);
	if (!got)
		EQUAL(now, nth);
	else if (!answer_lost)
		EQUAL(now, rank);
	rank = now;
	return got;
}

/* A new mode takes a new node. A failure may leave none, and asking again makes it. */
static long sets_mode(void)
{
	uint32_t mode = nth % 2 ? 0640 : 0600;
	struct stat node;
	long got;

	mnl_attr_put_u32(pool_message(KVPOOL_CMD_POOL_SET), KVPOOL_A_POOL_MODE, mode);
	got = inject_request();
	if (got) {
		mnl_attr_put_u32(pool_message(KVPOOL_CMD_POOL_SET), KVPOOL_A_POOL_MODE, mode);
		ask();
	}
	CHECK(!stat(NODE, &node));
	EQUAL(node.st_mode & 0777, mode);
	EQUAL(number(KVPOOL_A_POOL_MODE), mode);
	CHECK(!close(open_node()));
	return got;
}

static void set_fails(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_OWNER);
	REPEAT(sets, REFUSALS);
	REPEAT(sets_mode, REFUSALS);
}

static long claims(void)
{
	int owner = control;
	uint32_t owned;
	long got;

	control = open(CONTROL, O_RDWR | O_CLOEXEC);
	CHECK(control >= 0);
	pool_message(KVPOOL_CMD_POOL_CLAIM);
	got = inject_request();
	pool_message(KVPOOL_CMD_POOL_GET);
	ask();
	owned = raw->attrs[KVPOOL_A_POOL_OWNED] != NULL;
	if (!got)
		EQUAL(owned, 1);
	else if (!answer_lost)
		EQUAL(owned, 0);
	/* It is persistent: it stays, without an owner. */
	CHECK(!close(control));
	control = owner;
	return got;
}

static void claim_fails(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_PERSISTENT);
	new_session();
	REPEAT(claims, REFUSALS);
	destroy();
}

static long gets(void)
{
	long got;

	pool_message(KVPOOL_CMD_POOL_GET);
	got = inject_request();
	if (!got)
		EQUAL(raw_u64(raw, KVPOOL_A_POOL_GENERATION), generation);
	return got;
}

static long gets_stats(void)
{
	long got;

	raw_start(raw, KVPOOL_CMD_STATS_GET, NLM_F_ACK);
	got = inject_request();
	if (!got)
		EQUAL(raw_u32(raw, KVPOOL_A_STATS_POOLS), 1);
	return got;
}

static void get_fails(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_OWNER);
	REPEAT(gets, REFUSALS);
	REPEAT(gets_stats, REFUSALS);
}

/* The first part of a dump is made when it is asked for, the others when it is read. */
static uint8_t dumped;
static long dump_length;

static long dump_all(void)
{
	struct nlmsghdr *message = dumped == KVPOOL_CMD_PIN_GET ? pool_message(dumped) :
				   raw_start(raw, dumped, 0);
	int count;

	message->nlmsg_flags |= NLM_F_DUMP;
	if (mnl_socket_sendto(raw->socket, message, message->nlmsg_len) < 0)
		return -1;
	count = raw_read_dump(raw, NULL, NULL, NULL);
	if (count >= 0)
		return count;
	errno = -count;
	return -1;
}

static long dumps(void)
{
	struct raw *old = raw;
	long got;

	/* One that failed in the middle ends with its socket. */
	raw = raw_open();
	got = INJECT(dump_all());
	if (got >= 0)
		EQUAL(got, dump_length);
	raw_close(raw);
	raw = old;
	return got;
}

static void dump_fails(void)
{
	struct kvp_ctx *ctx;
	struct kvp_pool *pool = NULL;
	struct ibv_mr *mr;

	failnth_begin();
	ctx = open_ctx();
	/* More than one datagram holds. */
	for (int i = 0; i < 64; i++) {
		pool = make_pool(ctx, "kv", BLOCK);
		if (i < 63)
			kvp_pool_close(pool);
	}
	mr = pin(map_pool(pool), BLOCK);
	CHECK(mr);
	id = kvp_pool_id(pool);
	generation = kvp_pool_generation(pool);
	dumped = KVPOOL_CMD_POOL_GET;
	dump_length = 64;
	REPEAT(dumps, REFUSALS);
	dumped = KVPOOL_CMD_PIN_GET;
	dump_length = 1;
	REPEAT(dumps, REFUSALS);
	dumped = KVPOOL_CMD_RESERVE_GET;
	/* The policy, and the nodes. */
	dump_length = 1 + shell_number("ls -d /sys/devices/system/node/node[0-9]* | wc -l");
	REPEAT(dumps, REFUSALS);
	unpin(mr);
}

static struct raw *listener;

/* How many events came; *lost: and whether others were lost. */
static unsigned int listen_all(bool *lost)
{
	int fd = mnl_socket_get_fd(listener->socket);
	unsigned int count = 0;

	*lost = false;
	for (;;) {
		ssize_t size = recv(fd, listener->answer, sizeof(listener->answer), MSG_DONTWAIT);

		if (size > 0)
			count++;
		else if (errno == ENOBUFS)
			*lost = true;
		else
			break;
	}
	EQUAL(errno, EAGAIN);
	return count;
}

/* A change that is made is told of, or that something was lost. */
static long tells(void)
{
	uint32_t wanted = nth % 2 ? KVPOOL_REGISTRATION_REGISTERING : KVPOOL_REGISTRATION_ALLOCATED;
	uint32_t before = number(KVPOOL_A_POOL_REGISTRATION);
	unsigned int heard;
	bool lost;
	long got;

	mnl_attr_put_u32(pool_message(KVPOOL_CMD_POOL_SET), KVPOOL_A_POOL_REGISTRATION, wanted);
	listen_all(&lost);
	got = inject_request();
	heard = listen_all(&lost);
	if (number(KVPOOL_A_POOL_REGISTRATION) != before) {
		if (heard != 1 && !lost)
			FAIL("place %u: the event is lost, and nobody is told", nth);
	} else if (before != wanted) {
		EQUAL(heard, 0);
	}
	return got;
}

static void events_fail(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_OWNER);
	listener = raw_open();
	CHECK(!mnl_socket_setsockopt(listener->socket, NETLINK_ADD_MEMBERSHIP, &listener->group,
				     sizeof(listener->group)));
	REPEAT(tells, REFUSALS);
}

/* Everything is set, or nothing. */
static long sets_reserve(void)
{
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_RESERVE_SET, NLM_F_ACK);
	struct kvp_reserve_change undo = KVP_INIT(struct kvp_reserve_change);
	struct kvp_reserve *now;
	bool done;
	long got;

	mnl_attr_put_u32(message, KVPOOL_A_RESERVE_SESSION_FD, (uint32_t)control);
	mnl_attr_put_u32(message, KVPOOL_A_RESERVE_NODE, 0);
	mnl_attr_put_u64(message, KVPOOL_A_RESERVE_TARGET, BLOCK);
	mnl_attr_put_u32(message, KVPOOL_A_RESERVE_UID, 1000);
	mnl_attr_put_u64(message, KVPOOL_A_RESERVE_QUOTA, 3 * BLOCK);
	got = inject_request();

	RETURNS(0, kvp_reserve_get(observer, &now, &error));
	done = !got || (answer_lost && now->nodes[0].target);
	EQUAL(now->nodes[0].target, done ? BLOCK : 0);
	EQUAL(now->user_count, done ? 1 : 0);
	if (done)
		EQUAL(now->users[0].quota, 3 * BLOCK);
	kvp_reserve_free(now);

	undo.mask = KVP_RESERVE_SET_TARGET | KVP_RESERVE_SET_UID;
	undo.uid = 1000;
	RETURNS(0, kvp_reserve_set(observer, &undo, &error));
	return got;
}

static void reserve_fails(void)
{
	failnth_begin();
	REPEAT(sets_reserve, REFUSALS);
}

int main(void)
{
	if (!failnth_prepare()) {
		printf("not ok - test_failnth: this kernel can't inject faults\n");
		return 1;
	}
	RUN(create_fails);
	RUN(fill_fails);
	RUN(create_charges_nothing);
	RUN(destroy_fails);
	RUN(set_fails);
	RUN(claim_fails);
	RUN(get_fails);
	RUN(dump_fails);
	RUN(events_fail);
	RUN(reserve_fails);
	return cases_end();
}

// SPDX-License-Identifier: GPL-2.0
/* Who may do what: control node, pools' nodes, lists, containers, events. */
#include "raw.h"
#include "ref.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../../uapi/kvpool.h"

#define CONTROL "/dev/kvpool/control"
#define ALICE 1000
#define BOB 1001

static gid_t kvpool_gid(void)
{
	return (gid_t)shell_number("getent group kvpool | cut -d: -f3");
}

/* Alice is a member of kvpool, bob is not. */
static void become_user(uid_t uid)
{
	become(uid, uid == ALICE ? kvpool_gid() : uid);
}

static struct kvp_pool *make_for(struct kvp_ctx *ctx, const char *name, uid_t uid, gid_t gid,
				 mode_t mode)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool = NULL;

	options.domain = "kv";
	options.name = name;
	options.length = BLOCK;
	options.uid = uid;
	options.gid = gid;
	options.mode = mode;
	options.has_uid = options.has_gid = options.has_mode = 1;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

/* errno of an open, or 0. */
static int open_path(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int open_id(struct kvp_ctx *ctx, struct ref ref, enum kvp_access access)
{
	struct kvp_pool *pool;
	int err = kvp_pool_open(ctx, ref.id, ref.generation, access, &pool, NULL);

	if (!err)
		kvp_pool_close(pool);
	return -err;
}

static void alice_opens_control(void *arg)
{
	(void)arg;
	become_user(ALICE);
	kvp_close(open_ctx());
}

static void bob_opens_control(void *arg)
{
	struct kvp_options reading = KVP_INIT(struct kvp_options);
	struct kvp_ctx *ctx;

	(void)arg;
	reading.read_only = 1;
	become_user(BOB);
	RETURNS(-EACCES, kvp_open(NULL, &ctx, &error));
	SAYS("group kvpool");
	RETURNS(-EACCES, kvp_open(&reading, &ctx, &error));
}

static void control_node(void)
{
	struct stat stat;

	CHECK(!lstat(CONTROL, &stat));
	CHECK(S_ISCHR(stat.st_mode));
	EQUAL(stat.st_mode & 07777, 0660);
	EQUAL(stat.st_uid, 0);
	EQUAL(stat.st_gid, kvpool_gid());
	EQUAL(wait_child(child(alice_opens_control, NULL)), 0);
	EQUAL(wait_child(child(bob_opens_control, NULL)), 0);
}

static int32_t no_fd = INT32_MIN;

/* Ask for a change with this descriptor as proof. */
static int change(struct raw *raw, uint8_t command, int32_t fd, struct ref ref)
{
	struct nlmsghdr *message = raw_start(raw, command, 0);

	if (fd != no_fd)
		mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD, (uint32_t)fd);
	if (command == KVPOOL_CMD_POOL_CREATE) {
		mnl_attr_put_strz(message, KVPOOL_A_POOL_DOMAIN, "kv");
		mnl_attr_put_u64(message, KVPOOL_A_POOL_LENGTH, 1);
	} else {
		mnl_attr_put_u32(message, KVPOOL_A_POOL_ID, ref.id);
		mnl_attr_put_u64(message, KVPOOL_A_POOL_GENERATION, ref.generation);
	}
	return raw_ask(raw);
}

static const uint8_t changes[] = {
	KVPOOL_CMD_POOL_CREATE, KVPOOL_CMD_POOL_DESTROY, KVPOOL_CMD_POOL_SET, KVPOOL_CMD_POOL_CLAIM,
};

static void proof_of_write_access(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_for(ctx, "proof", 0, 0, 0666);
	struct ref ref = ref_of(pool);
	struct raw *raw = raw_open();
	int reading = open(CONTROL, O_RDONLY), path = open(CONTROL, O_PATH);
	int file = open("/dev/null", O_RDWR), ends[2], closed = 900;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	for (size_t i = 0; i < sizeof(changes); i++) {
		EQUAL(change(raw, changes[i], no_fd, ref), -EINVAL);
		RAW_SAYS(raw, "session-fd: must be given");
		EQUAL(change(raw, changes[i], -1, ref), -ERANGE);
		EQUAL(change(raw, changes[i], closed, ref), -EBADF);
		RAW_SAYS(raw, "session-fd: no such descriptor");
		EQUAL(change(raw, changes[i], INT32_MAX, ref), -EBADF);
		/* A path is no descriptor of the node. */
		EQUAL(change(raw, changes[i], path, ref), -EBADF);
		EQUAL(change(raw, changes[i], file, ref), -EINVAL);
		RAW_SAYS(raw, "session-fd: is not the control node");
		EQUAL(change(raw, changes[i], ends[0], ref), -EINVAL);
		EQUAL(change(raw, changes[i], kvp_pool_fd(pool), ref), -EINVAL);
		EQUAL(change(raw, changes[i], mnl_socket_get_fd(raw->socket), ref), -EINVAL);
		EQUAL(change(raw, changes[i], reading, ref), -EACCES);
		RAW_SAYS(raw, "session-fd: is not open for writing");
	}
	EQUAL(stats(ctx).pools, 1);
	EQUAL(query(pool).state, KVP_STATE_LIVE);
	/* The same requests with proof. */
	CHECK((reading = open(CONTROL, O_WRONLY)) >= 0);
	EQUAL(change(raw, KVPOOL_CMD_POOL_CREATE, reading, ref), 0);
	EQUAL(stats(ctx).pools, 2);
	EQUAL(change(raw, KVPOOL_CMD_POOL_SET, reading, ref), 0);
	EQUAL(change(raw, KVPOOL_CMD_POOL_DESTROY, reading, ref), 0);
	close(reading);
	kvp_pool_close(pool);
	UNTIL(!stats(ctx).pools);
}

static void bob_with_a_passed_descriptor(int line)
{
	int control = take_fd(line);
	struct kvpool_open request = { .size = sizeof(request) };
	struct ref open_to_all, private;
	struct raw *raw;
	char path[64];

	GET(line, open_to_all);
	GET(line, private);
	become_user(BOB);
	raw = raw_open();
	for (size_t i = 0; i < sizeof(changes); i++)
		EQUAL(change(raw, changes[i], control, open_to_all), -EACCES);
	/* It opens what he may open, and nothing else. */
	request.id = private.id;
	request.generation = private.generation;
	CHECK(ioctl(control, KVPOOL_IOC_OPEN, &request) == -1 && errno == EACCES);
	request.id = open_to_all.id;
	request.generation = open_to_all.generation;
	EQUAL(ioctl(control, KVPOOL_IOC_OPEN, &request), 0);
	CHECK(mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, request.fd, 0) != MAP_FAILED);
	request.flags = KVPOOL_OPEN_WRITE;
	CHECK(ioctl(control, KVPOOL_IOC_OPEN, &request) == -1 && errno == EACCES);
	/* Nor can he make more of the descriptor by opening it anew. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", control);
	CHECK(open(path, O_RDWR) == -1 && errno == EACCES);
}

static int get(struct raw *raw, const char *name, struct ref ref)
{
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_POOL_GET, 0);

	if (name)
		mnl_attr_put_strz(message, KVPOOL_A_POOL_NAME, name);
	else
		mnl_attr_put_u32(message, KVPOOL_A_POOL_ID, ref.id);
	return raw_ask(raw);
}

/* Root's message goes through it, as if it were root's standard error. */
static void bob_opens_a_socket(int line)
{
	struct raw *raw;

	become_user(BOB);
	raw = raw_open();
	send_fd(line, mnl_socket_get_fd(raw->socket));
	await(line);
}

#define NOT_BY_THIS_SOCKET(raw, answer) do {					\
	EQUAL(answer, -EPERM);							\
	RAW_SAYS(raw, "the socket was opened with fewer rights"); } while (0)

static void ask_by_socket(struct raw *raw, int fd, int control, struct ref ref)
{
	struct mnl_socket *own = raw->socket;

	raw->socket = mnl_socket_fdopen(fd);
	CHECK(raw->socket);
	for (size_t i = 0; i < sizeof(changes); i++)
		NOT_BY_THIS_SOCKET(raw, change(raw, changes[i], control, ref));
	raw_start(raw, KVPOOL_CMD_POOL_GET, 0);
	mnl_attr_put_u32((void *)raw->request, KVPOOL_A_POOL_ID, ref.id);
	NOT_BY_THIS_SOCKET(raw, raw_ask(raw));
	raw_start(raw, KVPOOL_CMD_RESERVE_SET, 0);
	mnl_attr_put_u32((void *)raw->request, KVPOOL_A_RESERVE_SESSION_FD, (uint32_t)control);
	NOT_BY_THIS_SOCKET(raw, raw_ask(raw));
	/* 6.1 passes on no text of a dump's start. */
	raw_start(raw, KVPOOL_CMD_POOL_GET, NLM_F_DUMP);
	EQUAL(raw_ask(raw), -EPERM);
	raw_start(raw, KVPOOL_CMD_PIN_GET, NLM_F_DUMP);
	mnl_attr_put_u32((void *)raw->request, KVPOOL_A_POOL_ID, ref.id);
	EQUAL(raw_ask(raw), -EPERM);
	raw_start(raw, KVPOOL_CMD_RESERVE_GET, NLM_F_DUMP);
	EQUAL(raw_ask(raw), -EPERM);
	raw->socket = own;
}

static void alice_with_roots_socket(void *arg)
{
	struct raw *raw = arg;

	/* Opened before a daemon gave up its rights: it has its own, and no more. */
	become_user(ALICE);
	EQUAL(get(raw, "roots", (struct ref){ 0 }), -EACCES);
	RAW_SAYS(raw, "forbid");
}

static void passed_socket(void)
{
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	struct raw *raw;
	int line, control;
	pid_t pid = partner(bob_opens_a_socket, &line);

	ctx = open_ctx();
	pool = make_for(ctx, "roots", 0, 0, 0600);
	raw = raw_open();
	control = open(CONTROL, O_RDWR | O_CLOEXEC);
	CHECK(control >= 0);
	ask_by_socket(raw, take_fd(line), control, ref_of(pool));
	tell(line);
	EQUAL(wait_child(pid), 0);
	EQUAL(stats(ctx).pools, 1);
	EQUAL(query(pool).state, KVP_STATE_LIVE);
	EQUAL(wait_child(child(alice_with_roots_socket, raw)), 0);
}

/* As a program that is setgid, and is given the socket for its standard error. */
static void alice_is_given_a_socket(int line)
{
	struct raw *raw;

	become_user(ALICE);
	raw = raw_open();
	EQUAL(get(raw, "groups", (struct ref){ 0 }), 0);
	raw->socket = mnl_socket_fdopen(take_fd(line));
	CHECK(raw->socket);
	NOT_BY_THIS_SOCKET(raw, get(raw, "groups", (struct ref){ 0 }));
}

static void alice_without_the_group(void *arg)
{
	const int *line = arg;

	become(ALICE, ALICE);
	send_fd(*line, mnl_socket_get_fd(raw_open()->socket));
}

static void passed_socket_of_another_group(void)
{
	int line;
	pid_t pid;

	make_for(open_ctx(), "groups", 0, kvpool_gid(), 0640);
	pid = partner(alice_is_given_a_socket, &line);
	EQUAL(wait_child(child(alice_without_the_group, &line)), 0);
	EQUAL(wait_child(pid), 0);
}

static void passed_control_descriptor(void)
{
	struct kvp_pool *pool, *private;
	struct kvp_ctx *ctx;
	struct ref ref;
	pid_t pid;
	int line, reading;

	pid = partner(bob_with_a_passed_descriptor, &line);
	ctx = open_ctx();
	pool = make_for(ctx, "all", 0, 0, 0644);
	private = make_for(ctx, "private", 0, 0, 0600);
	reading = open(CONTROL, O_RDONLY);
	send_fd(line, reading);
	ref = ref_of(pool);
	PUT(line, ref);
	ref = ref_of(private);
	PUT(line, ref);
	EQUAL(wait_child(pid), 0);
	EQUAL(stats(ctx).pools, 2);
}

static void add_name(struct raw *raw, void *arg)
{
	char *names = arg;

	strcat(strcat(names, mnl_attr_get_str(raw->attrs[KVPOOL_A_POOL_NAME])), " ");
}

#define LISTS(raw, want) \
	do { char names_[1000] = ""; CHECK(raw_dump(raw, add_name, names_, NULL) >= 0); \
	     if (strcmp(names_, want)) FAIL("lists \"%s\", not \"%s\"", names_, want); } while (0)

static struct ref private_ref;

static void alice_lists(void *arg)
{
	struct raw *raw;

	(void)arg;
	become_user(ALICE);
	raw = raw_open();
	LISTS(raw, "everybody group alice ");
	EQUAL(get(raw, "private", private_ref), -EACCES);
	RAW_SAYS(raw, "forbid");
	EQUAL(get(raw, NULL, private_ref), -EACCES);
	EQUAL(get(raw, "group", private_ref), 0);
}

static void bob_lists(void *arg)
{
	struct raw *raw;

	(void)arg;
	become_user(BOB);
	raw = raw_open();
	/* He may read his own, which no mode bit of others says. */
	LISTS(raw, "everybody bob ");
	EQUAL(get(raw, "group", private_ref), -EACCES);
	EQUAL(get(raw, "nosuch", private_ref), -ENOENT);
	raw_start(raw, KVPOOL_CMD_PIN_GET, NLM_F_DUMP);
	mnl_attr_put_u32((void *)raw->request, KVPOOL_A_POOL_ID, private_ref.id);
	/* Without a text: the start of a dump has none to give on older kernels. */
	EQUAL(raw_ask(raw), -EACCES);
}

static void lists(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct raw *raw = raw_open();

	private_ref = ref_of(make_for(ctx, "private", 0, 0, 0600));
	make_for(ctx, "everybody", 0, 0, 0604);
	make_for(ctx, "group", 0, kvpool_gid(), 0640);
	make_for(ctx, "alice", ALICE, 0, 0400);
	make_for(ctx, "bob", BOB, 0, 0600);
	/* The uid's bits count for the uid, though those of others would do. */
	make_for(ctx, "nobody", BOB, kvpool_gid(), 0);
	EQUAL(wait_child(child(alice_lists, NULL)), 0);
	EQUAL(wait_child(child(bob_lists, NULL)), 0);
	LISTS(raw, "private everybody group alice bob nobody ");
}

static struct ref moded;
static mode_t mode_now;
static uid_t uid_now;

/* What the bits say of user alice, by node and by id alike. */
static void alice_opens(void *arg)
{
	mode_t bits = uid_now == ALICE ? mode_now >> 6 : mode_now >> 3;
	struct kvp_ctx *ctx;

	(void)arg;
	become_user(ALICE);
	ctx = open_ctx();
	EQUAL(open_path("/dev/kvpool/moded", O_RDONLY), bits & 4 ? 0 : EACCES);
	EQUAL(open_id(ctx, moded, KVP_ACCESS_READ), bits & 4 ? 0 : EACCES);
	EQUAL(open_path("/dev/kvpool/moded", O_RDWR), (bits & 6) == 6 ? 0 : EACCES);
	EQUAL(open_id(ctx, moded, KVP_ACCESS_WRITE), (bits & 6) == 6 ? 0 : EACCES);
	EQUAL(shell("cat /sys/class/kvpool/moded/id /sys/class/kvpool/moded/pinned_blocks >/tmp/alice 2>&1"),
	      bits & 4 ? 0 : 1);
	/* His, but not to tell udev of it. */
	EQUAL(open_path("/sys/class/kvpool/moded/uevent", O_WRONLY), EACCES);
}

static void mode_is_followed(void)
{
	static const mode_t modes[] = { 0640, 0660, 0600, 0666, 0, 0604, 0444, 0060, 0400 };
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_for(ctx, "moded", 0, kvpool_gid(), 0600);
	struct stat stat;

	moded = ref_of(pool);
	for (int given = 0; given < 2; given++) {
		for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
			change.mask = KVP_SET_MODE | KVP_SET_UID;
			change.mode = mode_now = modes[i];
			change.uid = uid_now = given ? ALICE : 0;
			RETURNS(0, kvp_pool_set(ctx, moded.id, moded.generation, &change, &error));
			EQUAL(query(pool).mode, mode_now);
			CHECK(!lstat("/dev/kvpool/moded", &stat));
			EQUAL(stat.st_mode & 07777, mode_now);
			EQUAL(stat.st_uid, uid_now);
			EQUAL(stat.st_gid, kvpool_gid());
			EQUAL(wait_child(child(alice_opens, NULL)), 0);
		}
	}
	/* What is open stays open. */
	CHECK(map_pool(pool));
}

static struct ref roots;

static void alice_changes(void *arg)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;

	(void)arg;
	become_user(ALICE);
	ctx = open_ctx();
	RETURNS(-EPERM, kvp_pool_destroy(ctx, roots.id, roots.generation, 1, &error));
	SAYS("owner");
	change.mask = KVP_SET_LABEL;
	change.label = "mine";
	RETURNS(-EPERM, kvp_pool_set(ctx, roots.id, roots.generation, &change, &error));
	EQUAL(open_id(ctx, roots, KVP_ACCESS_WRITE), 0);

	options.domain = "kv";
	options.length = BLOCK;
	options.uid = BOB;
	options.has_uid = 1;
	RETURNS(-EPERM, kvp_pool_create(ctx, &options, &pool, &error));
	SAYS("CAP_CHOWN");
	options.has_uid = 0;
	options.gid = 0;
	options.has_gid = 1;
	RETURNS(-EPERM, kvp_pool_create(ctx, &options, &pool, &error));
	SAYS("not a member");
	options.gid = kvpool_gid();
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	change.mask = KVP_SET_UID;
	change.uid = BOB;
	RETURNS(-EPERM, kvp_pool_set(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), &change,
				     &error));
	change.mask = KVP_SET_GID;
	change.gid = 0;
	RETURNS(-EPERM, kvp_pool_set(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), &change,
				     &error));
	EQUAL(query(pool).uid, ALICE);
	EQUAL(query(pool).gid, kvpool_gid());
	change.mask = KVP_SET_LABEL;
	RETURNS(0, kvp_pool_set(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), &change, &error));
	kvp_pool_close(pool);
}

static void others_pools(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_for(ctx, "roots", 0, 0, 0666);

	roots = ref_of(pool);
	EQUAL(wait_child(child(alice_changes, NULL)), 0);
	EQUAL(query(pool).state, KVP_STATE_LIVE);
	EQUAL(query(pool).label[0], 0);
	UNTIL(stats(ctx).pools == 1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Alice is root in a container: that is alice. */
static void container(int line)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	char map[64];
	struct kvp_pool *pool, *none;
	struct kvp_ctx *ctx;
	struct raw *raw;

	become_user(ALICE);
	/* A process that changed its user may not write its own map otherwise. */
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER))
		case_skip("the kernel has no user namespaces for users");
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %d 1", ALICE);
	write_file("/proc/self/uid_map", map);
	EQUAL(getuid(), 0);

	ctx = open_ctx();
	raw = raw_open();
	LISTS(raw, "shown ");
	EQUAL(raw_u32(raw, KVPOOL_A_POOL_UID), 65534);
	EQUAL(raw_u32(raw, KVPOOL_A_POOL_OWNER_UID), 65534);
	EQUAL(open_id(ctx, private_ref, KVP_ACCESS_READ), EACCES);
	EQUAL(open_path("/dev/kvpool/private", O_RDONLY), EACCES);
	EQUAL(open_id(ctx, roots, KVP_ACCESS_WRITE), EACCES);
	RETURNS(-EPERM, kvp_pool_destroy(ctx, roots.id, roots.generation, 1, &error));

	options.domain = "kv";
	options.length = BLOCK;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	/* Alice, as she is called there. */
	EQUAL(query(pool).uid, 0);
	EQUAL(query(pool).owner_uid, 0);
	tell(line);
	await(line);
	options.uid = BOB;
	options.has_uid = 1;
	/* Nobody of that number is there. */
	RETURNS(-EINVAL, kvp_pool_create(ctx, &options, &none, &error));
}

static void find_alice(struct raw *raw, void *arg)
{
	*(int *)arg += raw_u32(raw, KVPOOL_A_POOL_UID) == ALICE;
}

static void user_namespace(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct raw *raw = raw_open();
	int line, alices = 0;
	pid_t pid;

	private_ref = ref_of(make_for(ctx, "private", 0, 0, 0600));
	roots = ref_of(make_for(ctx, "shown", 0, 0, 0644));
	pid = partner(container, &line);
	await(line);
	CHECK(raw_dump(raw, find_alice, &alices, NULL) == 3);
	EQUAL(alices, 1);
	tell(line);
	EQUAL(wait_child(pid), 0);
}

static void in_pid_namespace(int line)
{
	struct kvp_pool_info info;
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	struct ref outer;

	GET(line, outer);
	ctx = open_ctx();
	pool = make_pool(ctx, "kv", BLOCK);
	EQUAL(getpid(), 1);
	EQUAL(query(pool).owner_pid, 1);
	RETURNS(0, kvp_pool_find(ctx, outer.id, outer.generation, &info, &error));
	EQUAL(info.owner_pid, 0);
	outer = ref_of(pool);
	PUT(line, outer);
	await(line);
}

static void pid_namespace(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK);
	struct kvp_pool_info info;
	struct ref ref = ref_of(pool);
	pid_t pid;
	int line;

	CHECK(!unshare(CLONE_NEWPID));
	pid = partner(in_pid_namespace, &line);
	CHECK(pid > 1);
	PUT(line, ref);
	GET(line, ref);
	RETURNS(0, kvp_pool_find(ctx, ref.id, ref.generation, &info, &error));
	EQUAL(info.owner_pid, pid);
	tell(line);
	EQUAL(wait_child(pid), 0);
}

/* The next event: its command; the attributes are in raw. */
static int next_event(struct raw *raw)
{
	const struct nlmsghdr *message = (const void *)raw->answer;
	ssize_t size = recv(mnl_socket_get_fd(raw->socket), raw->answer, sizeof(raw->answer), 0);
	const struct nlattr *attribute;
	int count = 0;

	CHECK(size > 0 && mnl_nlmsg_ok(message, (int)size));
	EQUAL(message->nlmsg_len, size);
	memset(raw->attrs, 0, sizeof(raw->attrs));
	mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr)) {
		raw->attrs[mnl_attr_get_type(attribute)] = attribute;
		count += mnl_attr_get_type(attribute) != KVPOOL_A_POOL_PAD;
	}
	/* Identity, and nothing that somebody might not be allowed to know. */
	EQUAL(count, 2);
	CHECK(raw->attrs[KVPOOL_A_POOL_ID] && raw->attrs[KVPOOL_A_POOL_GENERATION]);
	return ((const struct genlmsghdr *)mnl_nlmsg_get_payload(message))->cmd;
}

static struct raw *listen_to_events(void)
{
	struct raw *raw = raw_open();
	int group = (int)raw->group;

	CHECK(!mnl_socket_setsockopt(raw->socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)));
	return raw;
}

/* Those of older pools, which end at the same time, are passed over. */
#define EVENT(raw, command, ref) \
	do { int got_; do got_ = next_event(raw); \
	     while (raw_u64(raw, KVPOOL_A_POOL_GENERATION) < (ref).generation); \
	     EQUAL(got_, command); EQUAL(raw_u32(raw, KVPOOL_A_POOL_ID), (ref).id); \
	     EQUAL(raw_u64(raw, KVPOOL_A_POOL_GENERATION), (ref).generation); } while (0)

static void check_events(struct raw *raw, struct ref ref)
{
	EVENT(raw, KVPOOL_CMD_POOL_CREATE_NTF, ref);
	EVENT(raw, KVPOOL_CMD_POOL_CHANGE_NTF, ref);
	EVENT(raw, KVPOOL_CMD_POOL_CHANGE_NTF, ref);
	EVENT(raw, KVPOOL_CMD_POOL_DESTROY_NTF, ref);
}

static void in_net_namespace(int line)
{
	struct kvp_pool *pool;
	struct raw *raw;
	struct kvp_ctx *ctx;
	struct ref ref;

	CHECK(!unshare(CLONE_NEWNET));
	raw = listen_to_events();
	/* The family works here. */
	ctx = open_ctx();
	pool = make_pool(ctx, "kv", BLOCK);
	ref = ref_of(pool);
	EVENT(raw, KVPOOL_CMD_POOL_CREATE_NTF, ref);
	RETURNS(0, kvp_pool_destroy(ctx, ref.id, ref.generation, 1, &error));
	EVENT(raw, KVPOOL_CMD_POOL_DESTROY_NTF, ref);
	become_user(BOB);
	tell(line);
	GET(line, ref);
	check_events(raw, ref);
	EQUAL(get(raw, "evented", ref), -ENOENT);
}

static void events(void)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct kvp_monitor *monitor;
	enum kvp_event event;
	struct kvp_pool *pool;
	struct kvp_ctx *ctx;
	struct raw *raw;
	struct ref ref, got;
	pid_t pid;
	int line;

	pid = partner(in_net_namespace, &line);
	await(line);
	raw = listen_to_events();
	RETURNS(0, kvp_monitor_open(&monitor, &error));
	ctx = open_ctx();
	pool = make_for(ctx, "evented", 0, 0, 0600);
	ref = ref_of(pool);
	change.mask = KVP_SET_LABEL;
	change.label = "a";
	RETURNS(0, kvp_pool_set(ctx, ref.id, ref.generation, &change, &error));
	change.mask = KVP_SET_MODE;
	change.mode = 0644;
	RETURNS(0, kvp_pool_set(ctx, ref.id, ref.generation, &change, &error));
	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(ctx, ref.id, ref.generation, 0, &error));
	PUT(line, ref);
	check_events(raw, ref);
	for (int n = 0; n < 4; n++) {
		static const enum kvp_event want[] = {
			KVP_EVENT_CREATE, KVP_EVENT_CHANGE, KVP_EVENT_CHANGE, KVP_EVENT_DESTROY,
		};

		do
			RETURNS(0, kvp_monitor_next(monitor, &event, &got.id, &got.generation, &error));
		while (got.generation < ref.generation);
		EQUAL(event, want[n]);
		EQUAL(got.id, ref.id);
		EQUAL(got.generation, ref.generation);
	}
	kvp_monitor_close(monitor);
	EQUAL(wait_child(pid), 0);
}

int main(void)
{
	RUN(control_node);
	RUN(proof_of_write_access);
	RUN(passed_control_descriptor);
	RUN(passed_socket);
	RUN(passed_socket_of_another_group);
	RUN(lists);
	RUN(mode_is_followed);
	RUN(others_pools);
	RUN(user_namespace);
	RUN(pid_namespace);
	RUN(events);
	return cases_end();
}

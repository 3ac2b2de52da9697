// SPDX-License-Identifier: GPL-2.0
/* Requests that no honest program makes, and many honest ones at once. */
#include "race.h"
#include "raw.h"
#include "ref.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "../../uapi/kvpool.h"

#define CONTROL "/dev/kvpool/control"
#define FAILS(want, call) \
	do { errno = 0; if ((call) != -1) FAIL("%s succeeds", #call); EQUAL(errno, want); } while (0)

static int open_fds(void)
{
	return (int)shell_number("ls /proc/%d/fd | wc -l", getpid());
}

/* ------------------------------------------------------------------- ioctls */

static struct kvp_pool *victim;

/* A request that succeeds, to be spoiled. */
static void good_request(unsigned int command, void *at)
{
	static struct kvpool_segment segment;
	struct kvpool_resolve resolve = { .size = sizeof(resolve), .addr = 4096, .length = 1,
					  .segments = (uintptr_t)&segment, .count = 1 };
	struct kvpool_open open = { .size = sizeof(open), .id = kvp_pool_id(victim),
				    .generation = kvp_pool_generation(victim) };
	struct kvpool_info info = { .size = sizeof(info) };

	if (command == KVPOOL_IOC_RESOLVE)
		memcpy(at, &resolve, sizeof(resolve));
	else if (command == KVPOOL_IOC_OPEN)
		memcpy(at, &open, sizeof(open));
	else
		memcpy(at, &info, sizeof(info));
}

static const struct {
	unsigned int command;
	uint32_t size;
	bool control, pool;
} ioctls[] = {
	{ KVPOOL_IOC_RESOLVE, sizeof(struct kvpool_resolve), true, true },
	{ KVPOOL_IOC_OPEN, sizeof(struct kvpool_open), true, false },
	{ KVPOOL_IOC_INFO, sizeof(struct kvpool_info), false, true },
};

/* It succeeds, and what it opened is closed. */
static void succeeds(int fd, unsigned int command, void *request)
{
	EQUAL(ioctl(fd, command, request), 0);
	if (command == KVPOOL_IOC_OPEN)
		CHECK(!close(((struct kvpool_open *)request)->fd));
}

static void sizes(int fd, unsigned int command, uint32_t size)
{
	static _Alignas(8) char request[1 << 16];
	uint32_t *told = (uint32_t *)request;

	memset(request, 0, sizeof(request));
	for (uint32_t small = 0; small < size; small++) {
		good_request(command, request);
		*told = small;
		FAILS(EINVAL, ioctl(fd, command, request));
	}
	for (uint32_t large = size; large <= 4096; large += 1 + large / 7) {
		good_request(command, request);
		*told = large;
		succeeds(fd, command, request);
		EQUAL(*told, large);
		if (large == size)
			continue;
		good_request(command, request);
		*told = large;
		request[large - 1] = 1;
		FAILS(E2BIG, ioctl(fd, command, request));
		request[large - 1] = 0;
	}
	for (uint64_t huge = 4097; huge <= UINT32_MAX; huge = huge * 2 - 1) {
		good_request(command, request);
		*told = (uint32_t)huge;
		FAILS(E2BIG, ioctl(fd, command, request));
	}
}

static void flags(int fd, unsigned int command)
{
	_Alignas(8) char request[512];

	for (int bit = 0; bit < 32; bit++) {
		good_request(command, request);
		if (command == KVPOOL_IOC_OPEN && 1U << bit == KVPOOL_OPEN_WRITE)
			continue;
		((uint32_t *)request)[1] = 1U << bit;
		FAILS(EINVAL, ioctl(fd, command, request));
	}
	if (command != KVPOOL_IOC_RESOLVE)
		return;
	good_request(command, request);
	((struct kvpool_resolve *)request)->reserved = 1;
	FAILS(EINVAL, ioctl(fd, command, request));
}

/* The struct lies at the end of a page; or can't be written; or isn't there. */
static void addresses(int fd, unsigned int command, uint32_t size)
{
	char *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fds;

	CHECK(pages != MAP_FAILED && !munmap(pages + 4096, 4096));
	for (uint32_t missing = 4; missing <= size; missing += 4) {
		memset(pages, 0, 4096);
		if (missing < size)
			*(uint32_t *)(pages + 4096 - size + missing) = size;
		FAILS(EFAULT, ioctl(fd, command, pages + 4096 - size + missing));
	}
	FAILS(EFAULT, ioctl(fd, command, NULL));
	FAILS(EFAULT, ioctl(fd, command, (void *)-4096L));
	FAILS(EFAULT, ioctl(fd, command, (void *)0xffff888000000000));

	good_request(command, pages + 4096 - size);
	CHECK(!mprotect(pages, 4096, PROT_READ));
	fds = open_fds();
	for (int n = 0; n < 3; n++)
		FAILS(EFAULT, ioctl(fd, command, pages + 4096 - size));
	/* Nobody knows the number of a descriptor that was not told. */
	EQUAL(open_fds(), fds);
	EQUAL(query(victim).files, 1);
	CHECK(!munmap(pages, 4096));
}

static void ioctl_arguments(void)
{
	struct kvp_ctx *ctx = open_ctx();
	int control = open(CONTROL, O_RDONLY), pool;

	victim = make_pool(ctx, "kv", BLOCK);
	pool = kvp_pool_fd(victim);
	for (size_t i = 0; i < sizeof(ioctls) / sizeof(*ioctls); i++) {
		_Alignas(8) char request[512];

		for (int node = 0; node < 2; node++) {
			int fd = node ? pool : control;

			if (!(node ? ioctls[i].pool : ioctls[i].control)) {
				good_request(ioctls[i].command, request);
				FAILS(ENOTTY, ioctl(fd, ioctls[i].command, request));
				continue;
			}
			addresses(fd, ioctls[i].command, ioctls[i].size);
			flags(fd, ioctls[i].command);
			sizes(fd, ioctls[i].command, ioctls[i].size);
		}
	}
	for (unsigned int number = 4; number < 256; number++) {
		FAILS(ENOTTY, ioctl(control, _IO(KVPOOL_IOC_TYPE, number), NULL));
		FAILS(ENOTTY, ioctl(pool, _IO(KVPOOL_IOC_TYPE, number), NULL));
	}
	FAILS(ENOTTY, ioctl(control, _IOWR(KVPOOL_IOC_TYPE, 0, struct kvpool_resolve), NULL));
	FAILS(ENOTTY, ioctl(control, 0x5401, NULL));
}

/* Resolve a whole range through an array of `count`, and say how many segments it has. */
static uint32_t resolve_all(int fd, uint64_t addr, uint64_t length, uint32_t count)
{
	static struct kvpool_segment segments[64];
	uint64_t from = addr, left = length;
	uint32_t total = 0;

	while (left) {
		struct kvpool_resolve request = { .size = sizeof(request), .addr = from, .length = left,
						  .segments = (uintptr_t)segments, .count = count };
		uint64_t covered = 0;

		EQUAL(ioctl(fd, KVPOOL_IOC_RESOLVE, &request), 0);
		CHECK(request.count >= 1 && request.count <= count);
		for (uint32_t i = 0; i < request.count; i++) {
			EQUAL(segments[i].addr, from + covered);
			CHECK(segments[i].length);
			covered += segments[i].length;
		}
		EQUAL(covered, request.resolved);
		CHECK(request.resolved <= left);
		from += request.resolved;
		left -= request.resolved;
		total += request.count;
	}
	return total;
}

static void resolve_arguments(void)
{
	int control = open(CONTROL, O_RDONLY);
	struct kvpool_segment segments[33];
	struct kvpool_resolve request;
	char *pages;

#define RESOLVE(want, addr_, length_, segments_, count_) do { \
	request = (struct kvpool_resolve){ .size = sizeof(request), .addr = addr_, .length = length_, \
					   .segments = (uintptr_t)(segments_), .count = count_ }; \
	FAILS(want, ioctl(control, KVPOOL_IOC_RESOLVE, &request)); } while (0)
	RESOLVE(EINVAL, 4096, 1, segments, 0);
	RESOLVE(EINVAL, 4096, 0, segments, 1);
	RESOLVE(EINVAL, 1, UINT64_MAX, segments, 1);
	RESOLVE(EINVAL, UINT64_MAX, 1, segments, 1);
	RESOLVE(EFAULT, 4096, 1, NULL, 1);
	RESOLVE(EFAULT, 4096, 1, (void *)0xffff888000000000, 1);
	RESOLVE(EFAULT, 4096, 1, (void *)"read only", 1);

	pages = mmap(NULL, 100 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	for (int i = 1; i < 100; i += 2)
		CHECK(!mprotect(pages + i * 4096, 4096, PROT_READ | PROT_WRITE));
	EQUAL(resolve_all(control, (uintptr_t)pages, 100 * 4096, 1), 100);
	EQUAL(resolve_all(control, (uintptr_t)pages, 100 * 4096, 64), 100);
	EQUAL(resolve_all(control, (uintptr_t)pages + 1, 100 * 4096 - 2, 7), 100);
	/* A larger array than the kernel fills at once, and one that is not there past that. */
	request = (struct kvpool_resolve){ .size = sizeof(request), .addr = (uintptr_t)pages,
					   .length = 100 * 4096, .segments = (uintptr_t)segments,
					   .count = UINT32_MAX };
	memset(&segments[32], 0x55, sizeof(segments[32]));
	EQUAL(ioctl(control, KVPOOL_IOC_RESOLVE, &request), 0);
	EQUAL(request.count, 32);
	EQUAL(request.resolved, 32 * 4096);
	EQUAL(segments[32].addr, 0x5555555555555555);

	CHECK(resolve_all(control, 0, UINT64_MAX, 64) > 100);
	CHECK(resolve_all(control, 0, UINT64_MAX, 1) > 100);
	EQUAL(resolve_all(control, UINT64_MAX - 1, 1, 1), 1);
	EQUAL(resolve_all(control, (uint64_t)1 << 63, (uint64_t)1 << 62, 3), 1);
}

/* ------------------------------------------------------------------ netlink */

static int control;

static struct nlmsghdr *start_create(struct raw *raw)
{
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_POOL_CREATE, 0);

	mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD, (uint32_t)control);
	return message;
}

static struct nlmsghdr *start_good_create(struct raw *raw)
{
	struct nlmsghdr *message = start_create(raw);

	mnl_attr_put_strz(message, KVPOOL_A_POOL_DOMAIN, "kv");
	mnl_attr_put_u64(message, KVPOOL_A_POOL_LENGTH, 1);
	return message;
}

static void destroy_last(struct raw *raw)
{
	uint32_t id = raw_u32(raw, KVPOOL_A_POOL_ID);
	uint64_t generation = raw_u64(raw, KVPOOL_A_POOL_GENERATION);
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_POOL_DESTROY, 0);

	mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD, (uint32_t)control);
	mnl_attr_put_u32(message, KVPOOL_A_POOL_ID, id);
	mnl_attr_put_u64(message, KVPOOL_A_POOL_GENERATION, generation);
	EQUAL(raw_ask(raw), 0);
}

/* A good request, and one attribute more. */
static int with(struct raw *raw, uint16_t type, const void *data, size_t size)
{
	int err;

	mnl_attr_put(start_good_create(raw), type, size, data);
	err = raw_ask(raw);
	if (!err)
		destroy_last(raw);
	return err;
}

static void netlink_attributes(void)
{
	static const uint16_t numbers[] = {
		KVPOOL_A_POOL_RANK, KVPOOL_A_POOL_NODE, KVPOOL_A_POOL_PLACEMENT, KVPOOL_A_POOL_LIFETIME,
		KVPOOL_A_POOL_UID, KVPOOL_A_POOL_GID, KVPOOL_A_POOL_MODE, KVPOOL_A_POOL_LENGTH,
		KVPOOL_A_POOL_SESSION_FD,
	};
	static const uint16_t texts[] = {
		KVPOOL_A_POOL_NAME, KVPOOL_A_POOL_DOMAIN, KVPOOL_A_POOL_ROLE, KVPOOL_A_POOL_LABEL,
	};
	struct raw *raw = raw_open();
	struct nlmsghdr *message;
	char bytes[128] = { 0 };
	uint32_t value;

	control = open(CONTROL, O_RDWR);
	mnl_attr_put_u64(start_create(raw), KVPOOL_A_POOL_LENGTH, 1);
	EQUAL(raw_ask(raw), -EINVAL);
	RAW_SAYS(raw, "domain: must be given");
	mnl_attr_put_strz(start_create(raw), KVPOOL_A_POOL_DOMAIN, "kv");
	EQUAL(raw_ask(raw), -EINVAL);
	RAW_SAYS(raw, "length: must be given");
	start_good_create(raw);
	EQUAL(raw_ask(raw), 0);
	destroy_last(raw);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		size_t right = numbers[i] == KVPOOL_A_POOL_LENGTH ? 8 : 4;

		for (size_t size = 0; size < 24; size++)
			if (size != right)
				EQUAL(with(raw, numbers[i], bytes, size), -EINVAL);
		EQUAL(with(raw, numbers[i] | NLA_F_NESTED, bytes, right), -EINVAL);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		memset(bytes, 'x', sizeof(bytes));
		EQUAL(with(raw, texts[i], bytes, 0), -EINVAL);
		/* Not terminated. */
		for (size_t size = 1; size <= sizeof(bytes); size++)
			EQUAL(with(raw, texts[i], bytes, size), -EINVAL);
		bytes[63] = 0;
		EQUAL(with(raw, texts[i], bytes, 64), 0);
		bytes[63] = 'x';
		bytes[64] = 0;
		EQUAL(with(raw, texts[i], bytes, 65), -EINVAL);
		/* Something behind the terminator. */
		bytes[4] = 0;
		CHECK(with(raw, texts[i], bytes, 128) < 0);
		/* Every byte in the middle of a text. */
		for (int c = 1; c < 256; c++) {
			bool name = c < 128 && (strchr("_-", c) || (c >= '0' && c <= '9') ||
						(c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
			bool label = c >= ' ' && c <= '~';
			char text[4] = { 'a', (char)c, 'b', 0 };

			EQUAL(with(raw, texts[i], text, 4),
			      (texts[i] == KVPOOL_A_POOL_LABEL ? label : name) ? 0 : -EINVAL);
		}
	}
	EQUAL(with(raw, KVPOOL_A_POOL_NAME, "control", 8), -EINVAL);
	EQUAL(with(raw, KVPOOL_A_POOL_NAME, "", 1), -EINVAL);
	RAW_SAYS(raw, "must not be empty");
	EQUAL(with(raw, KVPOOL_A_POOL_DOMAIN, "", 1), -EINVAL);
	/* The other one that is given twice: the last counts. */
	mnl_attr_put_strz(start_good_create(raw), KVPOOL_A_POOL_DOMAIN, "second");
	EQUAL(raw_ask(raw), 0);
	CHECK(!strcmp(mnl_attr_get_str(raw->attrs[KVPOOL_A_POOL_DOMAIN]), "second"));
	destroy_last(raw);

	/* Attributes of answers, of other requests, and of nobody. */
	value = 1;
	for (uint16_t type = KVPOOL_A_POOL_STATE; type < 300; type++)
		/* A flag has no value. */
		EQUAL(with(raw, type, &value, sizeof(value)),
		      type == KVPOOL_A_POOL_DEFERRED ? -ERANGE : -EINVAL);
	EQUAL(with(raw, KVPOOL_A_POOL_ID, &value, sizeof(value)), -EINVAL);
	EQUAL(with(raw, KVPOOL_A_POOL_MODE, (uint32_t[]){ 0667 }, 4), -ERANGE);
	EQUAL(with(raw, KVPOOL_A_POOL_MODE, (uint32_t[]){ 0111 }, 4), -EINVAL);
	EQUAL(with(raw, KVPOOL_A_POOL_LIFETIME, (uint32_t[]){ 2 }, 4), -ERANGE);
	EQUAL(with(raw, KVPOOL_A_POOL_PLACEMENT, (uint32_t[]){ 2 }, 4), -ERANGE);
	EQUAL(with(raw, KVPOOL_A_POOL_LENGTH, (uint64_t[]){ 0 }, 8), -ERANGE);

	/* An attribute that claims more than there is, and one that claims less than its head. */
	for (uint16_t length = 0; length < 400; length++) {
		struct nlattr *last;

		message = start_good_create(raw);
		last = mnl_nlmsg_get_payload_tail(message);
		mnl_attr_put_u32(message, KVPOOL_A_POOL_RANK, 0);
		if (length == last->nla_len)
			continue;
		last->nla_len = length;
		EQUAL(raw_ask(raw), -EINVAL);
	}
}

static void netlink_headers(void)
{
	struct raw *raw = raw_open();
	struct nlmsghdr *message;
	struct genlmsghdr *generic;

	control = open(CONTROL, O_RDWR);
	for (int command = 0; command < 256; command++) {
		bool known = (command >= KVPOOL_CMD_POOL_CREATE && command <= KVPOOL_CMD_STATS_GET) ||
			     command == KVPOOL_CMD_RESERVE_SET || command == KVPOOL_CMD_RESERVE_GET;
		bool dumps = command == KVPOOL_CMD_PIN_GET || command == KVPOOL_CMD_RESERVE_GET;

		raw_start(raw, (uint8_t)command, 0);
		EQUAL(raw_ask(raw), !known || dumps ? -EOPNOTSUPP :
		      command == KVPOOL_CMD_STATS_GET ? 0 : -EINVAL);
		if (command == KVPOOL_CMD_POOL_GET || dumps)
			continue;
		raw_start(raw, (uint8_t)command, NLM_F_DUMP);
		EQUAL(raw_ask(raw), -EOPNOTSUPP);
	}
	message = start_good_create(raw);
	generic = mnl_nlmsg_get_payload(message);
	generic->reserved = 1;
	EQUAL(raw_ask(raw), -EINVAL);
	/* Shorter than the header of the family. */
	message = raw_start(raw, KVPOOL_CMD_STATS_GET, 0);
	message->nlmsg_len = sizeof(*message) + 2;
	CHECK(raw_ask(raw) < 0);
}

/* Nobody reads: what can't be told must not stay. */
static void unread_answers(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct raw *raw = raw_open();
	int told = 0, fd = mnl_socket_get_fd(raw->socket), small = 0;

	control = open(CONTROL, O_RDWR);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)));
	for (int n = 0; n < 50; n++) {
		struct nlmsghdr *message = start_good_create(raw);

		mnl_attr_put_u32(message, KVPOOL_A_POOL_LIFETIME, KVPOOL_LIFETIME_PERSISTENT);
		CHECK(mnl_socket_sendto(raw->socket, message, message->nlmsg_len) > 0 ||
		      errno == ENOBUFS);
	}
	for (int failures = 0; failures < 3;) {
		ssize_t size = recv(fd, raw->answer, sizeof(raw->answer), MSG_DONTWAIT);
		const struct nlmsghdr *message = (const void *)raw->answer;
		int left = (int)size;

		if (size < 0) {
			CHECK(errno == EAGAIN || errno == ENOBUFS);
			failures++;
			continue;
		}
		for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
			if (message->nlmsg_type != raw->family)
				continue;
			told++;
		}
	}
	CHECK(told > 0 && told < 50);
	EQUAL(stats(ctx).pools, told);
	EQUAL(shell("for d in /sys/class/kvpool/pool-*; do kvpoolctl destroy \"${d##*/}\" || exit 1; "
		    "done"), 0);
	UNTIL(!stats(ctx).pools);
}

/* -------------------------------------------------------------------- dumps */

static uint32_t first_id, last_id, seen, previous;

static void see(struct raw *raw, void *arg)
{
	uint32_t id = raw_u32(raw, KVPOOL_A_POOL_ID);

	(void)arg;
	CHECK(id > previous);
	previous = id;
	seen += id >= first_id && id <= last_id;
}

static bool dump_once(struct raw *raw)
{
	bool torn = false;

	seen = previous = 0;
	CHECK(raw_dump(raw, see, NULL, &torn) >= 0);
	return torn;
}

static bool stop;	/* atomic */
#define STOPPED() __atomic_load_n(&stop, __ATOMIC_SEQ_CST)

static void *churn(void *arg)
{
	struct kvp_ctx *ctx = arg;

	while (!STOPPED()) {
		struct kvp_pool *pool = make_pool(ctx, "churn", BLOCK);
		struct ref ref = ref_of(pool);

		kvp_pool_close(pool);
		RETURNS(0, kvp_pool_destroy(ctx, ref.id, ref.generation, 0, &error));
	}
	return NULL;
}

static void thousand_pools(void)
{
	struct kvp_ctx *ctx = open_ctx(), *other = open_ctx();
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	uint64_t most = stats(ctx).available / BLOCK / 2;
	uint32_t count = most < 1000 ? (uint32_t)most : 1000, public = 0;
	struct raw *raw = raw_open();
	struct kvp_pool *pool;
	pthread_t thread;
	struct ref ref;
	bool torn = false;
	int small = 0;

	options.domain = "kv";
	options.length = BLOCK;
	options.has_mode = 1;
	for (uint32_t i = 0; i < count; i++) {
		options.mode = i % 2 ? 0644 : 0600;
		public += i % 2;
		RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
		last_id = kvp_pool_id(pool);
		if (!i)
			first_id = last_id;
		kvp_pool_close(pool);
	}
	EQUAL(last_id - first_id + 1, count);
	EQUAL(dump_once(raw), false);
	EQUAL(seen, count);

	/* Told that it is torn, and whole all the same for what was there all the time. */
	raw_start(raw, KVPOOL_CMD_POOL_GET, NLM_F_DUMP);
	CHECK(mnl_socket_sendto(raw->socket, raw->request, NLMSG_LENGTH(GENL_HDRLEN)) > 0);
	pool = make_pool(other, "kv", BLOCK);
	seen = previous = 0;
	CHECK(raw_read_dump(raw, see, NULL, &torn) >= 0);
	EQUAL(torn, true);
	EQUAL(seen, count);
	ref = ref_of(pool);
	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(other, ref.id, ref.generation, 0, &error));

	CHECK(!pthread_create(&thread, NULL, churn, other));
	for (int n = 0; n < 10; n++) {
		dump_once(raw);
		EQUAL(seen, count);
	}
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!setsockopt(mnl_socket_get_fd(raw->socket), SOL_SOCKET, SO_RCVBUF, &small,
			  sizeof(small)));
	dump_once(raw);
	EQUAL(seen, count);

	/* A dump shows what its sender may see, whoever reads it. */
	raw_start(raw, KVPOOL_CMD_POOL_GET, NLM_F_DUMP);
	CHECK(!seteuid(1001));
	CHECK(mnl_socket_sendto(raw->socket, raw->request, NLMSG_LENGTH(GENL_HDRLEN)) > 0);
	CHECK(!seteuid(0));
	seen = previous = 0;
	CHECK(raw_read_dump(raw, see, NULL, NULL) >= 0);
	EQUAL(seen, public);
	CHECK(mnl_socket_sendto(raw->socket, raw->request, NLMSG_LENGTH(GENL_HDRLEN)) > 0);
	CHECK(!seteuid(1001));
	seen = previous = 0;
	CHECK(raw_read_dump(raw, see, NULL, NULL) >= 0);
	EQUAL(seen, count);
	CHECK(!seteuid(0));

	/* Left in the middle. */
	for (int n = 0; n < 10; n++) {
		struct raw *left = raw_open();

		raw_start(left, n % 2 ? KVPOOL_CMD_POOL_GET : KVPOOL_CMD_PIN_GET, NLM_F_DUMP);
		if (!(n % 2))
			mnl_attr_put_u32((void *)left->request, KVPOOL_A_POOL_ID, first_id);
		CHECK(mnl_socket_sendto(left->socket, left->request,
					((struct nlmsghdr *)left->request)->nlmsg_len) > 0);
		raw_close(left);
	}
	/* All at once, by the end of their session. */
	kvp_close(ctx);
	UNTIL(!stats(other).pools && !stats(other).bytes);
}

int main(void)
{
	seed = (uint64_t)time(NULL);
	printf("# seed %llu\n", (unsigned long long)seed);
	RUN(ioctl_arguments);
	RUN(resolve_arguments);
	RUN(netlink_attributes);
	RUN(netlink_headers);
	RUN(unread_answers);
	RUN(thousand_pools);
	return cases_end();
}

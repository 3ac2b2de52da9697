// SPDX-License-Identifier: GPL-2.0
#include "failnth.h"

/* An operation that never comes to an end of its places is broken. */
#define MOST 5000

unsigned int nth, places;
bool injected, answer_lost;
struct kvp_ctx *observer;
struct raw *raw;
int control = -1;
uint32_t id;
uint64_t generation;

static int fail_nth = -1;

bool failnth_prepare(void)
{
	/* Also what may wait for memory, and single pages; and nothing in the log. */
	return !shell("cd /sys/kernel/debug && echo N >failslab/ignore-gfp-wait && "
		      "echo N >fail_page_alloc/ignore-gfp-wait && "
		      "echo N >fail_page_alloc/ignore-gfp-highmem && "
		      "echo 0 >fail_page_alloc/min-order && "
		      "for d in failslab fail_page_alloc fail_usercopy; do "
		      "echo 0 >$d/verbose || exit; done");
}

void failnth_begin(void)
{
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	CHECK(fail_nth >= 0);
	observer = open_ctx();
	raw = raw_open();
	control = open(CONTROL, O_RDWR | O_CLOEXEC);
	CHECK(control >= 0);
}

void arm(void)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	CHECK(pwrite(fail_nth, text, (size_t)length, 0) == length);
}

/*
 * The file says how many places are still to come, and the copy to or from user
 * space is one itself: it may be the one that fails, and then the operation had none.
 */
void disarm(void)
{
	char text[16] = "";
	ssize_t length = pread(fail_nth, text, sizeof(text) - 1, 0);

	CHECK(length > 0 || errno == EFAULT);
	places = length > 0 ? nth - (unsigned int)atoi(text) : nth - 1;
	injected = length > 0 && places == nth;
	CHECK(pwrite(fail_nth, "0", 1, 0) == 1 || errno == EFAULT);
}

/* ------------------------------------------------------ what must not change */

struct world {
	struct kvp_stats stats;
	uint64_t alive;	/* created and not destroyed */
	uint64_t pool_files, pool_mappings;
	long descriptors, mappings, locked, pinned;
};

static int add_pool(const struct kvp_pool_info *info, void *arg)
{
	struct world *now = arg;

	now->pool_files += info->files;
	now->pool_mappings += info->mappings;
	return 0;
}

long lines_with(const char *path, const char *text)
{
	char line[1000];
	long count = 0;
	FILE *f = fopen(path, "re");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, text) != NULL;
	fclose(f);
	return count;
}

static struct world world(void)
{
	struct world now = {
		.stats = stats(observer),
		.mappings = lines_with("/proc/self/maps", "kvpool"),
		.locked = proc_kib("/proc/self/status", "VmLck:"),
		.pinned = proc_kib("/proc/self/status", "VmPin:"),
	};

	now.alive = now.stats.created - now.stats.destroyed;
	RETURNS(0, kvp_pool_each(observer, add_pool, &now, &error));
	for (int fd = 0; fd < 64; fd++)
		now.descriptors += fcntl(fd, F_GETFD) >= 0;
	return now;
}

#define SAME(member) \
	do { if (now.member != before->member) \
		FAIL("%s: place %u: " #member " is %lld, and was %lld", name, nth, \
		     (long long)now.member, (long long)before->member); } while (0)

static void check_same(const char *name, const struct world *before)
{
	struct world now = world();

	SAME(stats.pools);
	SAME(stats.orphans);
	SAME(stats.dying);
	SAME(stats.bytes);
	SAME(stats.sessions);
	SAME(alive);
	SAME(pool_files);
	SAME(pool_mappings);
	SAME(descriptors);
	SAME(mappings);
	SAME(locked);
	SAME(pinned);
}

static bool is_allowed(long err, const int *allowed)
{
	for (; *allowed; allowed++)
		if (*allowed == -err)
			return true;
	return false;
}

void repeat(const char *name, long (*run)(void), const int *allowed)
{
	struct world before = world();
	unsigned int failures = 0;

	for (nth = 1; nth < MOST; nth++) {
		long got = run();
		bool was_injected = injected;

		check_same(name, &before);
		if (!was_injected) {
			if (got < 0)
				FAIL("%s fails by itself: %ld", name, got);
			CHECK(nth > 1);
			printf("# %s: %u places, failed at %u of them\n", name, nth - 1, failures);
			return;
		}
		if (got < 0 && !is_allowed(got, allowed))
			FAIL("%s: place %u: errno %ld is not in its contract; %s", name, nth, -got,
			     raw ? raw->text : "");
		failures += got < 0;
	}
	FAIL("%s: no end of places at %u", name, nth);
}

/* ---------------------------------------------------------------- requests */

struct nlmsghdr *create_message(void)
{
	struct nlmsghdr *message = raw_start(raw, KVPOOL_CMD_POOL_CREATE, NLM_F_ACK);

	mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD, (uint32_t)control);
	mnl_attr_put_strz(message, KVPOOL_A_POOL_DOMAIN, "kv");
	mnl_attr_put_strz(message, KVPOOL_A_POOL_NAME, NAME);
	mnl_attr_put_u64(message, KVPOOL_A_POOL_LENGTH, BLOCK);
	return message;
}

struct nlmsghdr *pool_message(uint8_t command)
{
	struct nlmsghdr *message = raw_start(raw, command, NLM_F_ACK);

	if (command != KVPOOL_CMD_POOL_GET && command != KVPOOL_CMD_PIN_GET)
		mnl_attr_put_u32(message, KVPOOL_A_POOL_SESSION_FD, (uint32_t)control);
	mnl_attr_put_u32(message, KVPOOL_A_POOL_ID, id);
	mnl_attr_put_u64(message, KVPOOL_A_POOL_GENERATION, generation);
	return message;
}

/* A request is carried out while it is sent. */
long inject_request(void)
{
	struct nlmsghdr *message = (void *)raw->request;
	int fd = mnl_socket_get_fd(raw->socket);
	long got = INJECT(send(fd, message, message->nlmsg_len, 0));

	answer_lost = false;
	if (got < 0)
		return got;
	got = raw_read_dump(raw, NULL, NULL, NULL);
	if (got == -ENOBUFS) {
		answer_lost = true;
		/* What came before that. */
		while (recv(fd, raw->answer, sizeof(raw->answer), MSG_DONTWAIT) > 0)
			;
		CHECK(errno == EAGAIN);
	}
	return got;
}

void ask(void)
{
	int err = raw_ask(raw);

	if (err)
		FAIL("place %u: a request without a fault: %d: %s", nth, err, raw->text);
}

bool find(void)
{
	int err;

	mnl_attr_put_strz(raw_start(raw, KVPOOL_CMD_POOL_GET, NLM_F_ACK), KVPOOL_A_POOL_NAME, NAME);
	err = raw_ask(raw);
	if (err) {
		EQUAL(err, -ENOENT);
		return false;
	}
	id = raw_u32(raw, KVPOOL_A_POOL_ID);
	generation = raw_u64(raw, KVPOOL_A_POOL_GENERATION);
	return true;
}

void create(uint32_t lifetime)
{
	mnl_attr_put_u32(create_message(), KVPOOL_A_POOL_LIFETIME, lifetime);
	ask();
	id = raw_u32(raw, KVPOOL_A_POOL_ID);
	generation = raw_u64(raw, KVPOOL_A_POOL_GENERATION);
}

void destroy(void)
{
	mnl_attr_put(pool_message(KVPOOL_CMD_POOL_DESTROY), KVPOOL_A_POOL_FORCE, 0, NULL);
	ask();
}

int open_node(void)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

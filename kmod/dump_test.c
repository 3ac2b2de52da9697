// SPDX-License-Identifier: GPL-2.0
/* Included by dump.c. Dumps of more pools than memory there is. */
#include <linux/slab.h>
#include <net/sock.h>

#include "test.h"

#define MANY	10000

/* As many bytes as a reader with a large buffer gets at once. */
#define PART	SZ_16K

struct reading {
	struct sk_buff *skb;
	struct nlmsghdr request;
	struct netlink_callback cb;
	u32 last_id, pools, parts;
	u32 largest;		/* pools in a part */
};

/* As much of a socket as says who opened it: this thread. */
static struct sock *test_sock(struct kunit *test)
{
	struct sock *sock = kunit_kzalloc(test, sizeof(*sock), GFP_KERNEL);
	struct socket *socket = kunit_kzalloc(test, sizeof(*socket), GFP_KERNEL);
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, sock && socket && file);
	file->f_cred = current_cred();
	socket->file = file;
	sock->sk_socket = socket;
	return sock;
}

static void begin(struct kunit *test, struct reading *reading)
{
	memset(reading, 0, sizeof(*reading));
	reading->skb = alloc_skb(PART, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, reading->skb);
	NETLINK_CB(reading->skb).sk = test_sock(test);
	reading->cb.skb = reading->skb;
	reading->cb.nlh = &reading->request;
	KUNIT_ASSERT_EQ(test, kvpool_nl_pool_get_start(&reading->cb), 0);
}

/* Each pool comes once, by its id. False: that was all. */
static bool next_part(struct kunit *test, struct reading *reading)
{
	struct nlmsghdr *message = (void *)reading->skb->data;
	u32 before = reading->pools;
	int left;

	skb_trim(reading->skb, 0);
	left = kvpool_nl_pool_get_dumpit(reading->skb, &reading->cb);
	KUNIT_ASSERT_GE(test, left, 0);
	for (; nlmsg_ok(message, left); message = nlmsg_next(message, &left)) {
		struct nlattr *id = nlmsg_find_attr(message, GENL_HDRLEN, KVPOOL_A_POOL_ID);

		KUNIT_ASSERT_NOT_NULL(test, id);
		KUNIT_EXPECT_GT(test, nla_get_u32(id), reading->last_id);
		reading->last_id = nla_get_u32(id);
		reading->pools++;
	}
	/* Nobody waits for a reader. */
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&kvpool_registry_lock));
	reading->parts++;
	reading->largest = max(reading->largest, reading->pools - before);
	return reading->pools > before;
}

static void end(struct reading *reading)
{
	kvpool_nl_pool_get_done(&reading->cb);
	kfree_skb(reading->skb);
}

static struct kvpool_pool *published(struct kunit *test)
{
	struct kvpool_pool *pool = kvpool_test_pool(test, SZ_2M);

	kvpool_test_publish(test, pool);
	return pool;
}

static void each_of_ten_thousand_once(struct kunit *test)
{
	struct kvpool_pool **pools = kvcalloc(MANY, sizeof(*pools), GFP_KERNEL);
	struct kvpool_pool *later;
	struct reading reading;
	u32 i, seq;

	KUNIT_ASSERT_NOT_NULL(test, pools);
	for (i = 0; i < MANY; i++)
		pools[i] = published(test);
	begin(test, &reading);
	while (next_part(test, &reading))
		;
	KUNIT_EXPECT_EQ(test, reading.pools, MANY);
	/* Parts are full, but for the last, and then there is one that says so. */
	KUNIT_EXPECT_GT(test, reading.largest, 20);
	KUNIT_EXPECT_LE(test, reading.parts, MANY / (reading.largest - 1) + 2);
	end(&reading);

	/* One that comes between two parts is shown, one that goes is not, and both are told. */
	begin(test, &reading);
	KUNIT_EXPECT_TRUE(test, next_part(test, &reading));
	seq = reading.cb.seq;
	later = published(test);
	kvpool_test_forget(pools[MANY - 1]);
	while (next_part(test, &reading))
		;
	KUNIT_EXPECT_EQ(test, reading.pools, MANY);
	KUNIT_EXPECT_EQ(test, reading.last_id, later->id);
	KUNIT_EXPECT_NE(test, reading.cb.seq, seq);
	end(&reading);

	kvpool_test_forget(later);
	for (i = 0; i < MANY - 1; i++)
		kvpool_test_forget(pools[i]);
	kvfree(pools);
}

/* Counting its pins would take the time, and the lock, of what is none of their business. */
static void what_is_not_shown_is_not_counted(struct kunit *test)
{
	struct kvpool_pool *pool = published(test);
	struct cred *nobody = prepare_creds();
	const struct cred *old;
	struct reading reading;

	KUNIT_ASSERT_NOT_NULL(test, nobody);
	cap_clear(nobody->cap_effective);
	nobody->fsuid = KUIDT_INIT(1000);
	/* It has no pages to look at. */
	pool->blocks.count = 1;
	old = override_creds(nobody);
	begin(test, &reading);
	KUNIT_EXPECT_FALSE(test, next_part(test, &reading));
	end(&reading);
	revert_creds(old);
	pool->blocks.count = 0;
	put_cred(nobody);
	kvpool_test_forget(pool);
}

/* The answer to who asks by a socket that `opener` opened. */
static int asked_by_socket(struct kunit *test, const struct cred *opener)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);
	struct sock *sock = test_sock(test);
	struct file file = { .f_cred = opener };
	int err;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	sock->sk_socket->file = &file;
	NETLINK_CB(skb).sk = sock;
	err = kvpool_request_sender(skb, NULL);
	kfree_skb(skb);
	return err;
}

static void no_rights_by_a_socket_of_others(struct kunit *test)
{
	static const int caps[] = {
		CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_CHOWN, CAP_IPC_LOCK, CAP_SYS_ADMIN,
		CAP_SYS_RESOURCE
	};
	struct cred *opener = prepare_creds();
	int i;

	KUNIT_ASSERT_NOT_NULL(test, opener);
	KUNIT_EXPECT_EQ(test, asked_by_socket(test, opener), 0);
	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		cap_lower(opener->cap_effective, caps[i]);
		KUNIT_EXPECT_EQ(test, asked_by_socket(test, opener), -EPERM);
		cap_raise(opener->cap_effective, caps[i]);
	}
	/* Whoever may become another user, or join a group, may speak for it. */
	opener->fsuid = KUIDT_INIT(1000);
	opener->fsgid = KGIDT_INIT(1000);
	KUNIT_EXPECT_EQ(test, asked_by_socket(test, opener), 0);
	cap_lower(opener->cap_effective, CAP_SETGID);
	KUNIT_EXPECT_EQ(test, asked_by_socket(test, opener), -EPERM);
	opener->fsgid = current_fsgid();
	KUNIT_EXPECT_EQ(test, asked_by_socket(test, opener), 0);
	cap_lower(opener->cap_effective, CAP_SETUID);
	KUNIT_EXPECT_EQ(test, asked_by_socket(test, opener), -EPERM);
	put_cred(opener);
}

static struct kunit_case dump_cases[] = {
	KUNIT_CASE(each_of_ten_thousand_once),
	KUNIT_CASE(what_is_not_shown_is_not_counted),
	KUNIT_CASE(no_rights_by_a_socket_of_others),
	{}
};

static struct kunit_suite dump_suite = {
	.name		= "kvpool_dump",
	.suite_init	= kvpool_test_suite_init,
	.suite_exit	= kvpool_test_suite_exit,
	.test_cases	= dump_cases,
};

kunit_test_suite(dump_suite);

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

static struct kunit_case dump_cases[] = {
	KUNIT_CASE(each_of_ten_thousand_once),
	{}
};

static struct kunit_suite dump_suite = {
	.name		= "kvpool_dump",
	.suite_init	= kvpool_test_suite_init,
	.suite_exit	= kvpool_test_suite_exit,
	.test_cases	= dump_cases,
};

kunit_test_suite(dump_suite);

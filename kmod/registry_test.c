// SPDX-License-Identifier: GPL-2.0
/* Included by registry.c. Ids, generations, names, lookups. */
#include "test.h"

static struct kvpool_pool *named(struct kunit *test, const char *name)
{
	struct kvpool_pool *pool = kvpool_test_pool(test, SZ_2M);

	strscpy(pool->tags.name, name, sizeof(pool->tags.name));
	return pool;
}

void kvpool_test_forget(struct kvpool_pool *pool)
{
	mutex_lock(&kvpool_registry_lock);
	kvpool_registry_drop_name(pool);
	mutex_unlock(&kvpool_registry_lock);
	kvpool_registry_remove(pool);
	kvpool_pool_put(pool);
}

static void ids_are_not_reused_at_once(struct kunit *test)
{
	struct kvpool_pool *pool[4];
	u32 gone, i;

	for (i = 0; i < 3; i++) {
		pool[i] = named(test, "");
		KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool[i], NULL), 0);
		KUNIT_EXPECT_EQ(test, pool[i]->id, pool[0]->id + i);
	}
	gone = pool[1]->id;
	kvpool_test_forget(pool[1]);
	pool[3] = named(test, "");
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool[3], NULL), 0);
	KUNIT_EXPECT_EQ(test, pool[3]->id, gone + 2);
	kvpool_test_forget(pool[0]);
	kvpool_test_forget(pool[2]);
	kvpool_test_forget(pool[3]);
}

static void ids_wrap_past_those_in_use(struct kunit *test)
{
	struct kvpool_pool *first = named(test, ""), *last = named(test, "");
	struct kvpool_pool *next = named(test, "");

	next_id = 1;
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(first, NULL), 0);
	KUNIT_EXPECT_EQ(test, first->id, 1);
	next_id = KVPOOL_ID_MAX;
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(last, NULL), 0);
	KUNIT_EXPECT_EQ(test, last->id, KVPOOL_ID_MAX);
	/* Id 0 is the control node's minor, 1 is in use. */
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(next, NULL), 0);
	KUNIT_EXPECT_EQ(test, next->id, 2);
	kvpool_test_forget(first);
	kvpool_test_forget(last);
	kvpool_test_forget(next);
}

static void no_id_is_left(struct kunit *test)
{
	struct kvpool_pool *pool = named(test, "late");
	struct netlink_ext_ack extack = {};
	unsigned long id;
	int err;

	for (id = 1; id <= KVPOOL_ID_MAX; id++) {
		err = xa_reserve(&pools, id, GFP_KERNEL);
		if (err)
			break;
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, err, 0);
	if (!err) {
		KUNIT_EXPECT_EQ(test, kvpool_registry_reserve(pool, &extack), -ENOSPC);
		KUNIT_EXPECT_STREQ(test, extack._msg, "no id is left: 1048575 pools exist");
	}
	xa_destroy(&pools);
	/* The name was not kept. */
	KUNIT_EXPECT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	kvpool_test_forget(pool);
}

static void generations_only_grow(struct kunit *test)
{
	struct kvpool_pool *pool = named(test, "one"), *other = named(test, "one");
	u64 before;

	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	/* One that fails uses up a generation too. */
	KUNIT_EXPECT_EQ(test, kvpool_registry_reserve(other, NULL), -EEXIST);
	KUNIT_EXPECT_EQ(test, other->generation, pool->generation + 1);
	before = pool->generation;
	kvpool_test_forget(pool);
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(other, NULL), 0);
	KUNIT_EXPECT_EQ(test, other->generation, before + 2);
	before = other->generation;
	kvpool_test_forget(other);

	/* What loading the module again does. */
	kvpool_registry_init();
	pool = named(test, "");
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	KUNIT_EXPECT_GT(test, pool->generation, before);
	kvpool_test_forget(pool);
}

static void names_are_unique_until_dropped(struct kunit *test)
{
	struct kvpool_pool *pool = named(test, "kv"), *other = named(test, "kv");
	struct netlink_ext_ack extack = {};
	char text[128];

	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	snprintf(text, sizeof(text), "name: taken by pool %u.%llu", pool->id, pool->generation);
	KUNIT_EXPECT_EQ(test, kvpool_registry_reserve(other, &extack), -EEXIST);
	KUNIT_EXPECT_STREQ(test, extack._msg, text);

	mutex_lock(&kvpool_registry_lock);
	kvpool_registry_drop_name(pool);
	KUNIT_EXPECT_NULL(test, find_name("kv"));
	/* An orphan ends later: the name goes a second time. */
	kvpool_registry_drop_name(pool);
	mutex_unlock(&kvpool_registry_lock);
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(other, NULL), 0);

	/* The first one's end leaves the name to the second. */
	kvpool_test_forget(pool);
	mutex_lock(&kvpool_registry_lock);
	KUNIT_EXPECT_PTR_EQ(test, find_name("kv"), other);
	mutex_unlock(&kvpool_registry_lock);
	kvpool_test_forget(other);
}

static void names_are_compared_whole(struct kunit *test)
{
	char longest[KVPOOL_NAME_SIZE];
	struct kvpool_pool *pool, *other;

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	pool = named(test, longest);
	longest[sizeof(longest) - 2] = 'y';
	other = named(test, longest);
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(other, NULL), 0);
	mutex_lock(&kvpool_registry_lock);
	KUNIT_EXPECT_PTR_EQ(test, find_name(longest), other);
	KUNIT_EXPECT_NULL(test, find_name("x"));
	mutex_unlock(&kvpool_registry_lock);
	kvpool_test_forget(pool);
	kvpool_test_forget(other);
}

static void a_name_is_made_up(struct kunit *test)
{
	struct kvpool_pool *pool = named(test, "");
	char text[KVPOOL_NAME_SIZE];

	/* The longest there can be. */
	atomic64_set(&generations, S64_MAX - 1);
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	snprintf(text, sizeof(text), "pool-%llu", S64_MAX);
	KUNIT_EXPECT_STREQ(test, pool->tags.name, text);
	kvpool_test_forget(pool);
	kvpool_registry_init();
}

/* The next two numbers are taken. */
static void a_made_up_name_is_free(struct kunit *test)
{
	u64 next = atomic64_read(&generations) + 3;
	struct kvpool_pool *taken[2], *pool;
	char text[KVPOOL_NAME_SIZE];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		snprintf(text, sizeof(text), "pool-%llu", next + i);
		taken[i] = named(test, text);
		KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(taken[i], NULL), 0);
	}
	pool = named(test, "");
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	KUNIT_EXPECT_EQ(test, pool->generation, next + 2);
	snprintf(text, sizeof(text), "pool-%llu", next + 2);
	KUNIT_EXPECT_STREQ(test, pool->tags.name, text);
	kvpool_test_forget(pool);
	for (i = 0; i < ARRAY_SIZE(taken); i++)
		kvpool_test_forget(taken[i]);
}

static void lookups_see_published_pools_only(struct kunit *test)
{
	struct kvpool_pool *pool = named(test, "kv");
	u32 before = kvpool_registry_changes();
	unsigned long id = 0;

	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	KUNIT_EXPECT_NULL(test, kvpool_registry_find(pool->id));
	KUNIT_EXPECT_NULL(test, kvpool_registry_find_name("kv"));
	KUNIT_EXPECT_NULL(test, kvpool_registry_next(&id));
	KUNIT_EXPECT_EQ(test, kvpool_registry_changes(), before);

	kvpool_registry_publish(pool);
	KUNIT_EXPECT_EQ(test, kvpool_registry_changes(), before + 1);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 2);
	KUNIT_EXPECT_PTR_EQ(test, kvpool_registry_find(pool->id), pool);
	KUNIT_EXPECT_PTR_EQ(test, kvpool_registry_find_name("kv"), pool);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 4);
	kvpool_pool_put(pool);
	kvpool_pool_put(pool);
	KUNIT_EXPECT_NULL(test, kvpool_registry_find(pool->id + 1));
	KUNIT_EXPECT_NULL(test, kvpool_registry_find(0));
	KUNIT_EXPECT_NULL(test, kvpool_registry_find(U32_MAX));

	kvpool_pool_get(pool);
	kvpool_test_forget(pool);
	KUNIT_EXPECT_EQ(test, kvpool_registry_changes(), before + 2);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 1);
	KUNIT_EXPECT_NULL(test, kvpool_registry_find(pool->id));
	kvpool_pool_put(pool);
}

/* A reader may come between the last reference and the end of its memory. */
static void a_pool_without_references_is_not_found(struct kunit *test)
{
	struct kvpool_pool *dead = named(test, "dead"), *next = named(test, "next");
	unsigned long id = 0;

	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(dead, NULL), 0);
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(next, NULL), 0);
	kvpool_registry_publish(dead);
	kvpool_registry_publish(next);
	refcount_set(&dead->ref.refcount, 0);
	KUNIT_EXPECT_NULL(test, kvpool_registry_find(dead->id));
	KUNIT_EXPECT_PTR_EQ(test, kvpool_registry_next(&id), next);
	KUNIT_EXPECT_EQ(test, id, next->id);
	kvpool_pool_put(next);
	refcount_set(&dead->ref.refcount, 2);
	kvpool_test_forget(dead);
	kvpool_test_forget(next);
}

static void a_walk_goes_on_past_what_ends(struct kunit *test)
{
	struct kvpool_pool *pool[5], *at;
	unsigned long id = 0;
	u32 i, seen = 0;

	next_id = 1;
	for (i = 0; i < 5; i++) {
		pool[i] = named(test, "");
		KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool[i], NULL), 0);
		if (i != 2)
			kvpool_registry_publish(pool[i]);
	}
	while ((at = kvpool_registry_next(&id))) {
		KUNIT_EXPECT_EQ(test, id, at->id);
		seen = 10 * seen + at->id;
		kvpool_pool_put(at);
		/* What is here ends, and the one behind it. */
		if (id == 1) {
			kvpool_test_forget(pool[0]);
			kvpool_test_forget(pool[1]);
		}
		id++;
	}
	KUNIT_EXPECT_EQ(test, seen, 145);
	kvpool_test_forget(pool[2]);
	kvpool_test_forget(pool[3]);
	kvpool_test_forget(pool[4]);
}

static void registry_suite_exit(struct kunit_suite *suite)
{
	next_id = 1;
}

static struct kunit_case registry_cases[] = {
	KUNIT_CASE(ids_are_not_reused_at_once),
	KUNIT_CASE(ids_wrap_past_those_in_use),
	KUNIT_CASE(no_id_is_left),
	KUNIT_CASE(generations_only_grow),
	KUNIT_CASE(names_are_unique_until_dropped),
	KUNIT_CASE(names_are_compared_whole),
	KUNIT_CASE(a_name_is_made_up),
	KUNIT_CASE(a_made_up_name_is_free),
	KUNIT_CASE(lookups_see_published_pools_only),
	KUNIT_CASE(a_pool_without_references_is_not_found),
	KUNIT_CASE(a_walk_goes_on_past_what_ends),
	{}
};

static struct kunit_suite registry_suite = {
	.name		= "kvpool_registry",
	.suite_exit	= registry_suite_exit,
	.test_cases	= registry_cases,
};

kunit_test_suite(registry_suite);

// SPDX-License-Identifier: GPL-2.0
/* Included by pool.c. Who owns a pool, and what its users' going makes of it. */
#include "test.h"

struct kvpool_pool *kvpool_test_pool(struct kunit *test, u64 length)
{
	struct kvpool_request request = {
		.length = length,
		.node = KVPOOL_NO_NODE,
		.tags = {
			.domain = "test",
			.rank = KVPOOL_NO_RANK,
			.uid = current_fsuid(),
			.gid = current_fsgid(),
			.mode = 0600,
		},
	};
	struct kvpool_pool *pool = pool_new(&request);

	KUNIT_ASSERT_NOT_NULL(test, pool);
	pool->inode = kvpool_inode_new(pool->mapped_length);
	if (IS_ERR(pool->inode)) {
		pool->inode = NULL;
		kvpool_pool_put(pool);
		KUNIT_ASSERT_FAILURE(test, "no inode");
	}
	return pool;
}

void kvpool_test_publish(struct kunit *test, struct kvpool_pool *pool)
{
	KUNIT_ASSERT_EQ(test, kvpool_registry_reserve(pool, NULL), 0);
	pool->life = KVPOOL_LIFE_LIVE;
	kvpool_registry_publish(pool);
}

/* A session is what stands behind an open control node. */
static struct kvpool_session *session_open(struct kunit *test, struct file *file)
{
	memset(file, 0, sizeof(*file));
	KUNIT_ASSERT_EQ(test, kvpool_control_fops.open(NULL, file), 0);
	return file->private_data;
}

static void session_close(struct file *file)
{
	kvpool_control_fops.release(NULL, file);
}

/* A live pool of the session, with a reference of the test's. */
static struct kvpool_pool *owned(struct kunit *test, struct kvpool_session *session,
				 enum kvpool_lifetime lifetime)
{
	struct kvpool_pool *pool = kvpool_test_pool(test, SZ_2M);

	pool->tags.lifetime = lifetime;
	kvpool_test_publish(test, pool);
	mutex_lock(&kvpool_registry_lock);
	kvpool_session_own(session, pool);
	mutex_unlock(&kvpool_registry_lock);
	return pool;
}

static bool found(u32 id)
{
	struct kvpool_pool *pool = kvpool_registry_find(id);

	if (pool)
		kvpool_pool_put(pool);
	return pool;
}

static bool name_found(const char *name)
{
	struct kvpool_pool *pool = kvpool_registry_find_name(name);

	if (pool)
		kvpool_pool_put(pool);
	return pool;
}

static u32 state_of(struct kvpool_pool *pool)
{
	u32 state;

	mutex_lock(&pool->lock);
	state = kvpool_pool_state(pool);
	mutex_unlock(&pool->lock);
	return state;
}

/* It has ended once, nobody finds it, and only the test's reference is left. */
static void expect_ended(struct kunit *test, struct kvpool_pool *pool, s64 destroyed)
{
	kvpool_reaper_settle();
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_DYING);
	KUNIT_EXPECT_FALSE(test, found(pool->id));
	KUNIT_EXPECT_FALSE(test, name_found(pool->tags.name));
	KUNIT_EXPECT_EQ(test, atomic64_read(&kvpool_destroyed), destroyed + 1);
	KUNIT_EXPECT_EQ(test, kref_read(&pool->ref), 1);
	KUNIT_EXPECT_NULL(test, pool->session);
	KUNIT_EXPECT_TRUE(test, list_empty(&pool->session_link));
}

static void a_pool_ends_with_its_session(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	struct kvpool_pool *pool;
	struct file file;

	pool = owned(test, session_open(test, &file), KVPOOL_LIFETIME_OWNER);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_LIVE);
	session_close(&file);
	expect_ended(test, pool, destroyed);
	kvpool_pool_put(pool);
}

static void an_open_file_makes_it_an_orphan(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	struct kvpool_pool *pool;
	struct file file;

	pool = owned(test, session_open(test, &file), KVPOOL_LIFETIME_OWNER);
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, true), 0);
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, false), 0);
	session_close(&file);
	kvpool_reaper_settle();
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_ORPHAN);
	KUNIT_EXPECT_NULL(test, pool->session);
	/* Its name is free, its id is not; nobody opens it any more. */
	KUNIT_EXPECT_FALSE(test, name_found(pool->tags.name));
	KUNIT_EXPECT_TRUE(test, found(pool->id));
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, true), -ENODEV);

	kvpool_pool_drop_file(pool);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_ORPHAN);
	KUNIT_EXPECT_EQ(test, atomic64_read(&kvpool_destroyed), destroyed);
	kvpool_pool_drop_file(pool);
	expect_ended(test, pool, destroyed);
	kvpool_pool_put(pool);
}

static void files_alone_end_nothing(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	struct kvpool_pool *pool;
	struct file file;

	pool = owned(test, session_open(test, &file), KVPOOL_LIFETIME_OWNER);
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, true), 0);
	kvpool_pool_drop_file(pool);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_LIVE);
	KUNIT_EXPECT_EQ(test, pool->files, 0);
	session_close(&file);
	expect_ended(test, pool, destroyed);
	kvpool_pool_put(pool);
}

static void a_persistent_pool_stays_and_is_claimed(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	struct kvpool_session *session;
	struct kvpool_pool *pool;
	struct file file;

	session = session_open(test, &file);
	pool = owned(test, session, KVPOOL_LIFETIME_PERSISTENT);
	KUNIT_EXPECT_EQ(test, kvpool_pool_claim(pool, session, NULL), -EBUSY);
	session_close(&file);
	kvpool_reaper_settle();
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_LIVE);
	KUNIT_EXPECT_NULL(test, pool->session);
	KUNIT_EXPECT_TRUE(test, name_found(pool->tags.name));

	session = session_open(test, &file);
	KUNIT_EXPECT_EQ(test, kvpool_pool_claim(pool, session, NULL), 0);
	KUNIT_EXPECT_PTR_EQ(test, pool->session, session);
	KUNIT_EXPECT_PTR_EQ(test, pool->owner.pid, task_tgid(current));
	KUNIT_EXPECT_EQ(test, kvpool_pool_claim(pool, session, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(pool, false, NULL), 0);
	expect_ended(test, pool, destroyed);
	KUNIT_EXPECT_EQ(test, kvpool_pool_claim(pool, session, NULL), -ENODEV);
	/* The session has no pool any more. */
	session_close(&file);
	KUNIT_EXPECT_EQ(test, atomic64_read(&kvpool_destroyed), destroyed + 1);
	kvpool_pool_put(pool);
}

static void only_persistent_pools_are_claimed(struct kunit *test)
{
	struct kvpool_session *session;
	struct kvpool_pool *pool;
	struct file file, other;

	session = session_open(test, &other);
	pool = owned(test, session_open(test, &file), KVPOOL_LIFETIME_OWNER);
	KUNIT_EXPECT_EQ(test, kvpool_pool_claim(pool, session, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, true), 0);
	session_close(&file);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_ORPHAN);
	KUNIT_EXPECT_EQ(test, kvpool_pool_claim(pool, session, NULL), -ENODEV);
	KUNIT_EXPECT_NULL(test, pool->session);
	kvpool_pool_drop_file(pool);
	kvpool_pool_put(pool);
	session_close(&other);
	kvpool_reaper_settle();
}

static int set_lifetime(struct kvpool_pool *pool, enum kvpool_lifetime lifetime)
{
	struct kvpool_tags tags;
	int err;

	mutex_lock(&kvpool_registry_lock);
	mutex_lock(&pool->lock);
	tags = pool->tags;
	tags.lifetime = lifetime;
	err = kvpool_pool_set(pool, &tags, KVPOOL_REGISTRATION_REGISTERING, NULL);
	mutex_unlock(&pool->lock);
	mutex_unlock(&kvpool_registry_lock);
	/* These pools have no node, and the caller is asked to make one. */
	return min(err, 0);
}

static void the_lifetime_that_counts_is_the_last(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	struct kvpool_pool *kept, *ends;
	struct kvpool_session *session;
	struct file file;

	session = session_open(test, &file);
	kept = owned(test, session, KVPOOL_LIFETIME_OWNER);
	ends = owned(test, session, KVPOOL_LIFETIME_PERSISTENT);
	KUNIT_EXPECT_EQ(test, set_lifetime(kept, KVPOOL_LIFETIME_PERSISTENT), 0);
	KUNIT_EXPECT_EQ(test, set_lifetime(ends, KVPOOL_LIFETIME_OWNER), 0);
	KUNIT_EXPECT_EQ(test, kept->registration, KVPOOL_REGISTRATION_REGISTERING);
	session_close(&file);
	expect_ended(test, ends, destroyed);
	KUNIT_EXPECT_EQ(test, set_lifetime(ends, KVPOOL_LIFETIME_PERSISTENT), -ENODEV);

	KUNIT_EXPECT_EQ(test, state_of(kept), KVPOOL_STATE_LIVE);
	/* There is no owner with whom it could end. */
	KUNIT_EXPECT_EQ(test, set_lifetime(kept, KVPOOL_LIFETIME_OWNER), -EBUSY);
	KUNIT_EXPECT_EQ(test, kept->tags.lifetime, KVPOOL_LIFETIME_PERSISTENT);
	KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(kept, false, NULL), 0);
	expect_ended(test, kept, destroyed + 1);
	kvpool_pool_put(kept);
	kvpool_pool_put(ends);
}

static void what_another_session_ends_with_is_kept(struct kunit *test)
{
	struct kvpool_session *session, *stranger;
	struct kvpool_pool *pool;
	struct file file, other;

	session = session_open(test, &file);
	stranger = session_open(test, &other);
	pool = owned(test, session, KVPOOL_LIFETIME_OWNER);
	/* It was claimed between the look at the list and the lock. */
	kvpool_pool_disown(pool, stranger);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_LIVE);
	KUNIT_EXPECT_PTR_EQ(test, pool->session, session);
	session_close(&other);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_LIVE);
	session_close(&file);
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_DYING);
	kvpool_pool_put(pool);
	kvpool_reaper_settle();
}

static void destroy_refuses_what_is_mapped(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	struct netlink_ext_ack extack = {};
	struct kvpool_pool *pool;
	struct file file;

	pool = owned(test, session_open(test, &file), KVPOOL_LIFETIME_OWNER);
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, true), 0);
	atomic_set(&pool->mappings, 2);
	KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(pool, false, &extack), -EBUSY);
	KUNIT_EXPECT_STREQ(test, extack._msg, "in use: 2 mappings, 0 pinned blocks");
	KUNIT_EXPECT_EQ(test, state_of(pool), KVPOOL_STATE_LIVE);
	KUNIT_EXPECT_FALSE(test, pool->revoked);

	KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(pool, true, NULL), 0);
	KUNIT_EXPECT_TRUE(test, pool->revoked);
	KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(pool, true, &extack), -ENODEV);
	KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool, false), -ENODEV);
	/* Neither the last file nor the session ends it again. */
	atomic_set(&pool->mappings, 0);
	kvpool_pool_drop_file(pool);
	session_close(&file);
	expect_ended(test, pool, destroyed);
	kvpool_pool_put(pool);
}

/* A session's pools go each its own way. */
static void a_session_of_many(struct kunit *test)
{
	s64 destroyed = atomic64_read(&kvpool_destroyed);
	u32 sessions = kvpool_session_count();
	struct kvpool_session *session;
	struct kvpool_pool *pool[30];
	struct file file;
	u32 i;

	session = session_open(test, &file);
	KUNIT_EXPECT_EQ(test, kvpool_session_count(), sessions + 1);
	for (i = 0; i < 30; i++) {
		pool[i] = owned(test, session, i % 3 ? KVPOOL_LIFETIME_OWNER :
				KVPOOL_LIFETIME_PERSISTENT);
		if (i % 3 == 2)
			KUNIT_EXPECT_EQ(test, kvpool_pool_add_file(pool[i], true), 0);
	}
	session_close(&file);
	KUNIT_EXPECT_EQ(test, kvpool_session_count(), sessions);
	kvpool_reaper_settle();
	KUNIT_EXPECT_EQ(test, atomic64_read(&kvpool_destroyed), destroyed + 10);
	for (i = 0; i < 30; i++) {
		KUNIT_EXPECT_EQ(test, state_of(pool[i]), i % 3 == 0 ? KVPOOL_STATE_LIVE :
				i % 3 == 1 ? KVPOOL_STATE_DYING : KVPOOL_STATE_ORPHAN);
		if (i % 3 == 0)
			KUNIT_EXPECT_EQ(test, kvpool_pool_destroy(pool[i], false, NULL), 0);
		else if (i % 3 == 2)
			kvpool_pool_drop_file(pool[i]);
		kvpool_pool_put(pool[i]);
	}
	kvpool_reaper_settle();
	KUNIT_EXPECT_EQ(test, atomic64_read(&kvpool_destroyed), destroyed + 30);
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(a_pool_ends_with_its_session),
	KUNIT_CASE(an_open_file_makes_it_an_orphan),
	KUNIT_CASE(files_alone_end_nothing),
	KUNIT_CASE(a_persistent_pool_stays_and_is_claimed),
	KUNIT_CASE(only_persistent_pools_are_claimed),
	KUNIT_CASE(the_lifetime_that_counts_is_the_last),
	KUNIT_CASE(what_another_session_ends_with_is_kept),
	KUNIT_CASE(destroy_refuses_what_is_mapped),
	KUNIT_CASE(a_session_of_many),
	{}
};

static struct kunit_suite pool_suite = {
	.name		= "kvpool_pool",
	.suite_init	= kvpool_test_suite_init,
	.suite_exit	= kvpool_test_suite_exit,
	.test_cases	= pool_cases,
};

kunit_test_suite(pool_suite);

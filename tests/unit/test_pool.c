// SPDX-License-Identifier: LGPL-2.1-or-later
/* pool.c and query.c: opening, mapping, asking. See test_create.c for what changes pools. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_kernel.h"

#define ID (fake_pool_full.id)
#define GENERATION (fake_pool_full.generation)
#define MAPPED ((size_t)fake_pool_full.mapped_length)

static void opens(enum kvp_access access)
{
	fake_ioctl_open(&fake_pool_full, access, 0);
	fake_ioctl_info(&fake_pool_full, 0);
}

static struct kvp_pool *pool_open(struct kvp_ctx *ctx, enum kvp_access access)
{
	struct kvp_pool *pool = NULL;

	opens(access);
	assert_int_equal(kvp_pool_open(ctx, ID, GENERATION, access, &pool, NULL), 0);
	return pool;
}

static void test_open(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = pool_open(ctx, KVP_ACCESS_READ);

	(void)state;
	assert_true(fcntl(kvp_pool_fd(pool), F_GETFD) & FD_CLOEXEC);
	assert_int_equal(kvp_pool_id(pool), ID);
	assert_int_equal(kvp_pool_generation(pool), GENERATION);
	assert_int_equal(kvp_pool_length(pool), fake_pool_full.length);
	kvp_pool_close(pool);
	kvp_pool_close(NULL);
	kvp_close(ctx);
}

static void test_open_fails(void **state)
{
	static const struct {
		int err;
		const char *message, *advice;
	} cases[] = {
		{ ENOENT, "no pool has the id", "kvpoolctl list" },
		{ ESTALE, "another generation has the id now", "by its name" },
		{ EACCES, "uid, gid and mode forbid it", "its owner" },
		{ ENODEV, "an orphan or was destroyed", NULL },
		{ EMFILE, "no descriptor is left", "ulimit -n" },
		{ ENOTTY, "does not know the command", "control path" },
		{ ENFILE, "open pool 12 of generation 1234605616436508552 for reading and writing",
		  NULL },
	};
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(cases); i++) {
		fake_ioctl_open(&fake_pool_full, KVP_ACCESS_WRITE, cases[i].err);
		assert_int_equal(kvp_pool_open(ctx, ID, GENERATION, KVP_ACCESS_WRITE, &pool, &error),
				 -cases[i].err);
		fake_assert_error(&error, -cases[i].err, KVP_PHASE_REQUEST, cases[i].message,
				  cases[i].advice);
	}
	/* The descriptor that was opened already is closed: the stand-in counts them. */
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, 0);
	fake_ioctl_info(&fake_pool_full, EFAULT);
	assert_int_equal(kvp_pool_open(ctx, ID, GENERATION, KVP_ACCESS_READ, &pool, &error),
			 -EFAULT);
	fake_fail_alloc(1);
	assert_int_equal(kvp_pool_open(ctx, ID, GENERATION, KVP_ACCESS_READ, &pool, &error),
			 -ENOMEM);
	fake_assert_error(&error, -ENOMEM, KVP_PHASE_REQUEST, "no memory", NULL);
	assert_null(pool);
	kvp_close(ctx);
}

static void other_id(void *argument)
{
	((struct kvpool_info *)argument)->id++;
}

static void other_generation(void *argument)
{
	((struct kvpool_info *)argument)->generation++;
}

static void no_id(void *argument)
{
	((struct kvpool_info *)argument)->id = 0;
}

static void no_generation(void *argument)
{
	((struct kvpool_info *)argument)->generation = 0;
}

static void no_length(void *argument)
{
	((struct kvpool_info *)argument)->length = 0;
}

static void short_mapped(void *argument)
{
	struct kvpool_info *info = argument;

	info->mapped_length = info->length - 1;
}

static void unterminated_domain(void *argument)
{
	struct kvpool_info *info = argument;

	memset(info->domain, 'd', sizeof(info->domain));
}

static void test_open_wrong_answer(void **state)
{
	static void (*const tampers[])(void *argument) = {
		other_id, other_generation, no_id, no_generation, no_length, short_mapped,
		unterminated_domain,
	};
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	size_t i;

	(void)state;
	for (i = 0; i < MNL_ARRAY_SIZE(tampers); i++) {
		opens(KVP_ACCESS_READ);
		fake_tamper(tampers[i]);
		assert_int_equal(kvp_pool_open(ctx, ID, GENERATION, KVP_ACCESS_READ, &pool, &error),
				 -EPROTO);
		fake_assert_error(&error, -EPROTO, KVP_PHASE_REQUEST, NULL, "one release");
	}
	assert_null(pool);
	kvp_close(ctx);
}

/* ------------------------------------------------------------------ by name */

static void find_name(int err)
{
	fake_request(FAKE_FAMILY, KVPOOL_CMD_POOL_GET, NLM_F_ACK);
	fake_want_text(KVPOOL_A_POOL_NAME, "kv-target");
	if (!err) {
		fake_datagram();
		fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_GET);
		fake_put_pool(&fake_pool_full, 0, FAKE_WHOLE);
	}
	fake_ack(err, NULL);
}

static void test_open_name(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	int i;

	(void)state;
	/* Replaced between the two steps, twice, then not. */
	find_name(0);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, ESTALE);
	find_name(0);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, ENOENT);
	find_name(0);
	opens(KVP_ACCESS_READ);
	assert_int_equal(kvp_pool_open_name(ctx, "kv-target", KVP_ACCESS_READ, &pool, NULL), 0);
	assert_int_equal(kvp_pool_id(pool), ID);
	kvp_pool_close(pool);

	for (i = 0; i < 8; i++) {
		find_name(0);
		fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, ESTALE);
	}
	assert_int_equal(kvp_pool_open_name(ctx, "kv-target", KVP_ACCESS_READ, &pool, &error),
			 -ESTALE);
	fake_assert_error(&error, -ESTALE, KVP_PHASE_REQUEST, "another generation", NULL);
	find_name(0);
	fake_ioctl_open(&fake_pool_full, KVP_ACCESS_READ, EACCES);
	assert_int_equal(kvp_pool_open_name(ctx, "kv-target", KVP_ACCESS_READ, &pool, &error),
			 -EACCES);
	find_name(-ENOENT);
	assert_int_equal(kvp_pool_open_name(ctx, "kv-target", KVP_ACCESS_READ, &pool, &error),
			 -ENOENT);
	fake_assert_error(&error, -ENOENT, KVP_PHASE_REQUEST, "find pool 'kv-target'", NULL);
	assert_int_equal(kvp_pool_open_name(ctx, "kv target", KVP_ACCESS_READ, &pool, &error),
			 -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_REQUEST, "'kv target'", "A-Z a-z 0-9 _ -");
	kvp_close(ctx);
}

/* ------------------------------------------------------------ by descriptor */

static void test_open_fd(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	int fd = memfd_create("pool", 0);
	void *addr;

	(void)state;
	fake_ioctl_info(&fake_pool_full, 0);
	assert_int_equal(kvp_pool_open_fd(ctx, fd, &pool, NULL), 0);
	/* The caller's own stays open, and the handle's is another. */
	assert_int_not_equal(kvp_pool_fd(pool), fd);
	assert_true(fcntl(kvp_pool_fd(pool), F_GETFD) & FD_CLOEXEC);
	assert_int_equal(kvp_pool_generation(pool), GENERATION);
	fake_mmap(MAPPED, PROT_READ | PROT_WRITE, 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &addr, NULL), 0);
	kvp_pool_close(pool);
	assert_int_equal(fcntl(fd, F_GETFD), 0);

	fake_ioctl_info(&fake_pool_full, ENOTTY);
	assert_int_equal(kvp_pool_open_fd(ctx, fd, &pool, &error), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_REQUEST, "no pool's", NULL);
	assert_int_equal(kvp_pool_open_fd(ctx, -1, &pool, &error), -EBADF);
	fake_assert_error(&error, -EBADF, KVP_PHASE_REQUEST, "descriptor -1", NULL);
	fake_fail_alloc(1);
	assert_int_equal(kvp_pool_open_fd(ctx, fd, &pool, &error), -ENOMEM);
	close(fd);
	kvp_close(ctx);
}

static void test_open_fd_read_only(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = NULL;
	struct kvp_error error;
	void *addr;
	int fd;

	(void)state;
	/* openat() is not the stand-in's: this is a descriptor of its own access mode. */
	fake_ioctl_info(&fake_pool_full, 0);
	fd = openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(kvp_pool_open_fd(ctx, fd, &pool, NULL), 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &addr, &error), -EACCES);
	fake_assert_error(&error, -EACCES, KVP_PHASE_REQUEST, "open read only", "KVP_ACCESS_WRITE");
	kvp_pool_close(pool);
	close(fd);
	kvp_close(ctx);
}

/* ------------------------------------------------------------------ mapping */

static void test_map(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = pool_open(ctx, KVP_ACCESS_WRITE);
	void *first = NULL, *again = NULL;

	(void)state;
	/* The whole pool, not only its logical length. */
	fake_mmap(MAPPED, PROT_READ, 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &first, NULL), 0);
	assert_non_null(first);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &again, NULL), 0);
	assert_ptr_equal(again, first);
	/* More access at the same address; once only. */
	fake_mprotect(PROT_READ | PROT_WRITE, 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &again, NULL), 0);
	assert_ptr_equal(again, first);
	((char *)first)[MAPPED - 1] = 1;
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &again, NULL), 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &again, NULL), 0);
	assert_ptr_equal(again, first);
	assert_int_equal(kvp_pool_unmap(pool), 0);
	assert_int_equal(kvp_pool_unmap(pool), 0);
	/* And anew, which the end of the handle takes away. */
	fake_mmap(MAPPED, PROT_READ | PROT_WRITE, 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &again, NULL), 0);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

static void test_map_fails(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = pool_open(ctx, KVP_ACCESS_READ);
	struct kvp_error error;
	void *addr = NULL;

	(void)state;
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &addr, &error), -EACCES);
	fake_assert_error(&error, -EACCES, KVP_PHASE_REQUEST, "open read only", "KVP_ACCESS_WRITE");
	fake_mmap(MAPPED, PROT_READ, ENODEV);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &addr, &error), -ENODEV);
	fake_assert_error(&error, -ENODEV, KVP_PHASE_REQUEST, NULL, "destroyed");
	fake_mmap(MAPPED, PROT_READ, ENOMEM);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &addr, &error), -ENOMEM);
	fake_assert_error(&error, -ENOMEM, KVP_PHASE_REQUEST, "map 3781165056 bytes of pool 12",
			  "vm.max_map_count");
	assert_null(addr);
	kvp_pool_close(pool);

	/* More access is refused: the mapping stays as it was. */
	pool = pool_open(ctx, KVP_ACCESS_WRITE);
	fake_mmap(MAPPED, PROT_READ, 0);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &addr, &error), 0);
	fake_mprotect(PROT_READ | PROT_WRITE, EACCES);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_WRITE, &addr, &error), -EACCES);
	assert_int_equal(kvp_pool_map(pool, KVP_ACCESS_READ, &addr, &error), 0);
	fake_fail(FAKE_MUNMAP, 0, ENOMEM);
	assert_int_equal(kvp_pool_unmap(pool), -ENOMEM);
	assert_int_equal(kvp_pool_unmap(pool), 0);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

/* ------------------------------------------------------------------- asking */

static void answer(const struct kvp_pool_info *pool)
{
	fake_datagram();
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_GET);
	fake_put_pool(pool, 0, FAKE_WHOLE);
	fake_ack(0, NULL);
}

static void test_ask(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool *pool = pool_open(ctx, KVP_ACCESS_READ);
	struct kvp_pool_info info;
	struct kvp_error error;

	(void)state;
	fake_find(ID, GENERATION);
	answer(&fake_pool_full);
	assert_int_equal(kvp_pool_query(pool, &info, NULL), 0);
	fake_assert_info(&info, &fake_pool_full);
	fake_find(1, 0);
	answer(&fake_pool_plain);
	memset(&info, 0x5a, sizeof(info));
	assert_int_equal(kvp_pool_find(ctx, 1, 0, &info, NULL), 0);
	fake_assert_info(&info, &fake_pool_plain);
	find_name(0);
	assert_int_equal(kvp_pool_find_name(ctx, "kv-target", &info, NULL), 0);
	fake_assert_info(&info, &fake_pool_full);
	assert_int_equal(kvp_pool_find_name(ctx, "", &info, &error), -EINVAL);
	fake_find(1, 9);
	fake_ack(-ESTALE, NULL);
	assert_int_equal(kvp_pool_find(ctx, 1, 9, &info, &error), -ESTALE);
	fake_assert_error(&error, -ESTALE, KVP_PHASE_REQUEST, "find pool 1 of generation 9", NULL);
	kvp_pool_close(pool);
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_open),
		fake_test(test_open_fails),
		fake_test(test_open_wrong_answer),
		fake_test(test_open_name),
		fake_test(test_open_fd),
		fake_test(test_open_fd_read_only),
		fake_test(test_map),
		fake_test(test_map_fails),
		fake_test(test_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

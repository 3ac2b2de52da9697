// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where the journal is, who decides that, and places that are refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_journal.h"

#define CONTROL "/dev/kvpool/control"

static const char *dir;
static char path[KVP_JOURNAL_PATH_SIZE];
static struct kvp_error error;

static int setup(void **state)
{
	dir = fake_journal_dir();
	memset(&error, 0, sizeof(error));
	return fake_setup(state);
}

static int teardown(void **state)
{
	fake_journal_remove();
	unsetenv("XDG_RUNTIME_DIR");
	return fake_teardown(state);
}

static const char *below(const char *name)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s/%s", dir, name);
	return text;
}

static int open_ctx(const char *option, struct kvp_ctx **ctx)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);

	options.journal_dir = option;
	memset(&error, 0, sizeof(error));
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_family(1);
	return kvp_open(&options, ctx, &error);
}

static void option_and_environment(void **state)
{
	struct kvp_ctx *ctx;

	(void)state;
	/* Off by the environment, as everywhere in these tests. */
	assert_int_equal(open_ctx(NULL, &ctx), 0);
	assert_false(ctx->log.on);
	kvp_close(ctx);
	/* The option wins, and makes the directory and the file at once. */
	assert_int_equal(open_ctx(below("made"), &ctx), 0);
	assert_true(ctx->log.on && ctx->log.pid);
	kvp_close(ctx);
	assert_int_equal(rmdir(below("made")), 0);
	/* By the environment, later. */
	setenv("KVPOOL_JOURNAL_DIR", below("made"), 1);
	assert_int_equal(open_ctx(NULL, &ctx), 0);
	assert_true(ctx->log.on && !ctx->log.pid);
	assert_string_equal(ctx->log.dir, below("made"));
	kvp_close(ctx);
	assert_int_equal(fake_journal_files(), 0);
	/* The option wins when it switches off as well. */
	assert_int_equal(open_ctx("", &ctx), 0);
	assert_false(ctx->log.on);
	kvp_close(ctx);
	/* Neither: the default places. */
	unsetenv("KVPOOL_JOURNAL_DIR");
	assert_int_equal(open_ctx(NULL, &ctx), 0);
	assert_true(ctx->log.on && !ctx->log.dir);
	kvp_close(ctx);
}

static void option_fails_at_once(void **state)
{
	struct kvp_ctx *ctx = NULL;

	(void)state;
	assert_int_equal(open_ctx("relative/path", &ctx), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_JOURNAL, "'relative/path' is not an absolute",
			  "KVPOOL_JOURNAL_DIR");
	setenv("KVPOOL_JOURNAL_DIR", "relative", 1);
	assert_int_equal(open_ctx(NULL, &ctx), -EINVAL);
	assert_int_equal(open_ctx(below("missing/made"), &ctx), -ENOENT);
	fake_assert_error(&error, -ENOENT, KVP_PHASE_JOURNAL, "/missing/made", "journal_dir");
	fake_fail(FAKE_FALLOCATE, 0, ENOSPC);
	assert_int_equal(open_ctx(dir, &ctx), -ENOSPC);
	fake_assert_error(&error, -ENOSPC, KVP_PHASE_JOURNAL, "can't create the journal", "free space");
	fake_fail(FAKE_SHORT_WRITE, 0, 1);
	assert_int_equal(open_ctx(dir, &ctx), -ENOSPC);
	assert_null(ctx);
	/* Nothing is left, hidden files neither. */
	assert_int_equal(fake_journal_files(), 0);
}

static int try_dir(const char *given, bool create)
{
	int fd = kvp_journal_dir_open(given, create, path, &error);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void unsafe_places(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(try_dir(below("new"), false), -ENOENT);
	assert_int_equal(try_dir(below("new"), true), 0);
	assert_int_equal(stat(below("new"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	/* Others may look, if this user says so, but not write. */
	assert_int_equal(chmod(below("new"), 0755), 0);
	assert_int_equal(try_dir(below("new"), true), 0);
	assert_int_equal(chmod(below("new"), 0770), 0);
	assert_int_equal(try_dir(below("new"), true), -EPERM);
	assert_contains(error.message, "others may write to it");
	assert_int_equal(chmod(below("new"), 01777), 0);
	assert_int_equal(try_dir(below("new"), false), -EPERM);
	assert_int_equal(chmod(below("new"), 0700), 0);
	assert_int_equal(symlink("new", below("link")), 0);
	assert_int_equal(try_dir(below("link"), true), -ENOTDIR);
	assert_contains(error.message, "a symbolic link");
	if (!geteuid()) {
		assert_int_equal(chown(below("new"), 1, 1), 0);
		assert_int_equal(try_dir(below("new"), true), -EACCES);
		assert_contains(error.message, "it is not this user's");
	}
}

/* Whoever can't have /run/kvpool has a directory of the session's. */
static void another_user(void **state)
{
	int err = 0;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(mkdir(below("user"), 0700), 0);
	assert_int_equal(chown(below("user"), 4711, 4711), 0);
	assert_int_equal(seteuid(4711), 0);
	err = try_dir(NULL, true);
	if (err == -EACCES && strcmp(path, "/run/kvpool"))
		err = 1;
	setenv("XDG_RUNTIME_DIR", below("user"), 1);
	if (err == -EACCES)
		err = try_dir(NULL, true);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(err, 0);
	assert_string_equal(path, below("user/kvpool"));
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
#define dir_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		dir_test(option_and_environment),
		dir_test(option_fails_at_once),
		dir_test(unsafe_places),
		dir_test(another_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

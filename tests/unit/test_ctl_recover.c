// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl recover: what its exit code says of what is left. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "../../tools/ctl.h"
#include "fake_store.h"

static char *said, *complained;

/* Run it on the directory of the test, with one more option (NULL: none). */
static int recover(const char *option)
{
	const bool dry_run = option && !strcmp(option, "--dry-run");
	char *argv[] = {
		(char *)"recover", (char *)"--dir", (char *)fake_store_dir, (char *)option, NULL,
	};
	FILE *const out = stdout, *const err = stderr;
	struct ctl ctl = { .command = "recover" };
	size_t size;
	int status;

	free(said);
	free(complained);
	fake_open("/dev/kvpool/control", dry_run ? O_RDONLY : O_RDWR, 0, NULL);
	fake_family(KVPOOL_FAMILY_VERSION);
	stdout = open_memstream(&said, &size);
	stderr = open_memstream(&complained, &size);
	assert_true(stdout && stderr);
	optind = 0;
	status = ctl_recover.run(&ctl, option ? 4 : 3, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;
	/* A failure is one line on stderr, and nothing else is there. */
	if (status)
		assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
	else
		assert_string_equal(complained, "");
	return status;
}

static void other_namespace(struct kvp_journal_file_record *file)
{
	file->pid_ns ^= htole64(1);
}

static void nothing(void **state)
{
	(void)state;
	assert_int_equal(recover(NULL), CTL_OK);
	assert_string_equal(said, "");
}

static void all_is_ended(void **state)
{
	(void)state;
	fake_store_process(FAKE_UNREGISTER, true, 0, false);
	assert_int_equal(recover("--dry-run"), CTL_OK);
	assert_contains(said, "pool-destroyed id:1.101");
	assert_int_equal(fake_world_destroyed, 0);
	assert_int_equal(recover(NULL), CTL_OK);
	assert_contains(said, ": removed");
	assert_int_equal(fake_world_destroyed, 1);
}

/* Nothing has failed, and it has to be done again. */
static void a_pool_is_in_use(void **state)
{
	(void)state;
	fake_store_process(FAKE_UNREGISTER, true, 0, false);
	fake_world_fail_destroy(-EBUSY);
	assert_int_equal(recover(NULL), CTL_FAILED);
	assert_contains(said, "pool-left id:1.101: it is mapped or pinned");
	assert_contains(said, ": kept");
	assert_contains(complained, "recover: journals are left: 1 kept, 0 busy, 0 unknown");
	assert_int_equal(recover("--json"), CTL_FAILED);
	assert_contains(said, "\"kept\":1");
	fake_world_fail_destroy(0);
	assert_int_equal(recover(NULL), CTL_OK);
}

/* An orphan ends by itself: nothing is left to do about it. */
static void an_orphan_is_in_use(void **state)
{
	(void)state;
	fake_store_process(FAKE_UNREGISTER, true, 0, false);
	fake_world_info(1)->state = KVP_STATE_ORPHAN;
	fake_world_fail_destroy(-EBUSY);
	assert_int_equal(recover(NULL), CTL_OK);
	assert_contains(said, "pool-left id:1.101");
	assert_contains(said, ": removed");
}

static void without_its_store(void **state)
{
	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	assert_int_equal(recover("--dry-run"), CTL_FAILED);
	assert_contains(complained, "no registrar called store was given");
	assert_int_equal(recover(NULL), CTL_FAILED);
	assert_contains(complained, "no registrar called store was given");
}

static void another_recovery_is_at_it(void **state)
{
	int fd;

	(void)state;
	fake_store_process(FAKE_UNREGISTER, true, 0, false);
	fd = openat(AT_FDCWD, fake_journal_path(), O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(recover(NULL), CTL_FAILED);
	assert_contains(complained, "0 kept, 1 busy, 0 unknown");
	close(fd);
	assert_int_equal(recover(NULL), CTL_OK);
}

static void of_another_namespace(void **state)
{
	(void)state;
	fake_store_process(FAKE_UNREGISTER, true, 0, false);
	fake_journal_rewrite(other_namespace);
	assert_int_equal(recover(NULL), CTL_FAILED);
	assert_contains(said, "recover in the pid and time namespace of its process");
	assert_contains(complained, "0 kept, 0 busy, 1 unknown");
}

/* It may go on: there is nothing to do. */
static void of_a_running_process(void **state)
{
	const pid_t pid = fake_store_waiting();

	(void)state;
	assert_int_equal(recover(NULL), CTL_OK);
	assert_contains(said, ": alive");
	fake_store_end(pid);
}

static int teardown(void **state)
{
	free(said);
	free(complained);
	said = complained = NULL;
	return fake_store_teardown(state);
}

int main(void)
{
#define recover_test(function) \
	cmocka_unit_test_setup_teardown(function, fake_store_setup, teardown)
	const struct CMUnitTest tests[] = {
		recover_test(nothing),
		recover_test(all_is_ended),
		recover_test(a_pool_is_in_use),
		recover_test(an_orphan_is_in_use),
		recover_test(without_its_store),
		recover_test(another_recovery_is_at_it),
		recover_test(of_another_namespace),
		recover_test(of_a_running_process),
	};

	return cmocka_run_group_tests(tests, fake_store_map, fake_store_unmap);
}

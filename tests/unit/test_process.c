// SPDX-License-Identifier: LGPL-2.1-or-later
/* process.c: telling processes apart, by more than a number. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_kernel.h"

#define TAIL " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 7 0 920659 3133440 388\n"

static void test_parse(void **state)
{
	static const char *const bad[] = {
		"", "16101", "16101 (cat", "16101 (cat)", "16101 (cat) ", "16101 (cat) R",
		"16101 (cat) 4" TAIL, "16101 (cat) R 1 2 3", "16101 (cat) R 1 x" TAIL,
		"16101 (cat) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0",
	};
	uint64_t threads = 0, start = 0;
	char letter = 0;
	size_t i;

	(void)state;
	assert_int_equal(kvp_process_parse("16101 (cat) R" TAIL, &letter, &threads, &start), 0);
	assert_int_equal(letter, 'R');
	assert_int_equal(threads, 7);
	assert_int_equal(start, 920659);
	/* Anyone may call a program ") Z 1 1". */
	assert_int_equal(kvp_process_parse("5 () Z 1 1 (x) S" TAIL, &letter, &threads, &start), 0);
	assert_int_equal(letter, 'S');
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kvp_process_parse(bad[i], &letter, &threads, &start), -EPROTO);
}

static void test_self(void **state)
{
	struct kvp_process self, other;

	(void)state;
	assert_int_equal(kvp_process_self(&self), 0);
	assert_int_equal(self.pid, getpid());
	assert_int_equal(self.uid, geteuid());
	assert_true(self.start && self.pid_ns);
	assert_int_equal(kvp_process_look(&self, &self), KVP_LIVENESS_ALIVE);

	/* Its number went to another process. */
	other = self;
	other.start--;
	assert_int_equal(kvp_process_look(&other, &self), KVP_LIVENESS_DEAD);
	other = self;
	other.boot_id[15] ^= 1;
	assert_int_equal(kvp_process_look(&other, &self), KVP_LIVENESS_OTHER_BOOT);
	/* Numbers of another namespace say nothing here. */
	other = self;
	other.pid_ns++;
	assert_int_equal(kvp_process_look(&other, &self), KVP_LIVENESS_UNKNOWN);
	other = self;
	other.time_ns++;
	assert_int_equal(kvp_process_look(&other, &self), KVP_LIVENESS_UNKNOWN);
	other = self;
	other.pid = 0;
	assert_int_equal(kvp_process_look(&other, &self), KVP_LIVENESS_UNKNOWN);
	other.pid = UINT32_MAX;
	assert_int_equal(kvp_process_look(&other, &self), KVP_LIVENESS_UNKNOWN);
}

static void test_death(void **state)
{
	struct kvp_process self, child;
	siginfo_t info;
	int pipes[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		if (kvp_process_self(&child) || write(pipes[1], &child, sizeof(child)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &child, sizeof(child)), sizeof(child));
	close(pipes[0]);
	assert_int_equal(kvp_process_self(&self), 0);
	assert_int_equal(kvp_process_look(&child, &self), KVP_LIVENESS_ALIVE);
	kill(pid, SIGKILL);
	/* A zombie has let go of everything. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(kvp_process_look(&child, &self), KVP_LIVENESS_DEAD);
	waitpid(pid, NULL, 0);
	assert_int_equal(kvp_process_look(&child, &self), KVP_LIVENESS_DEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_parse),
		fake_test(test_self),
		fake_test(test_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

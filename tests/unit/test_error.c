// SPDX-License-Identifier: LGPL-2.1-or-later
/* error.c: the words for enums, filling an error, and the line made of it. */
#include "fake_kernel.h"

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(kvp_phase_name(KVP_PHASE_NONE), "none");
	assert_string_equal(kvp_phase_name(KVP_PHASE_CONNECT), "connect");
	assert_string_equal(kvp_phase_name(KVP_PHASE_REQUEST), "request");
	assert_string_equal(kvp_phase_name(KVP_PHASE_LIST), "list");
	assert_string_equal(kvp_phase_name(KVP_PHASE_CHECK), "check");
	assert_string_equal(kvp_phase_name(KVP_PHASE_REGISTER), "register");
	assert_string_equal(kvp_phase_name(KVP_PHASE_COMMIT), "commit");
	assert_string_equal(kvp_phase_name(KVP_PHASE_UNDO), "undo");
	assert_string_equal(kvp_phase_name(KVP_PHASE_JOURNAL), "journal");
	assert_string_equal(kvp_phase_name(KVP_PHASE_RECOVER), "recover");
	assert_string_equal(kvp_state_name(KVP_STATE_LIVE), "live");
	assert_string_equal(kvp_state_name(KVP_STATE_ORPHAN), "orphan");
	assert_string_equal(kvp_state_name(KVP_STATE_DYING), "dying");
	assert_string_equal(kvp_state_name(KVP_STATE_CREATING), "creating");
	assert_string_equal(kvp_registration_state_name(KVP_REGISTRATION_ALLOCATED), "allocated");
	assert_string_equal(kvp_registration_state_name(KVP_REGISTRATION_REGISTERING),
			    "registering");
	assert_string_equal(kvp_registration_state_name(KVP_REGISTRATION_COMMITTED), "committed");
	assert_string_equal(kvp_registration_state_name(KVP_REGISTRATION_FALLBACK_L2),
			    "fallback-l2");
	assert_string_equal(kvp_registration_state_name(KVP_REGISTRATION_FAILED), "failed");
	assert_string_equal(kvp_kind_name(KVP_KIND_UNMAPPED), "unmapped");
	assert_string_equal(kvp_kind_name(KVP_KIND_POOL), "pool");
	assert_string_equal(kvp_kind_name(KVP_KIND_ANON), "anon");
	assert_string_equal(kvp_kind_name(KVP_KIND_HUGETLB), "hugetlb");
	assert_string_equal(kvp_kind_name(KVP_KIND_SHMEM), "shmem");
	assert_string_equal(kvp_kind_name(KVP_KIND_FILE), "file");
	assert_string_equal(kvp_kind_name(KVP_KIND_DEVICE), "device");
}

/* What a newer module may send is printed, too. */
static void test_unknown_names(void **state)
{
	(void)state;
	assert_string_equal(kvp_phase_name((enum kvp_phase)10), "unknown");
	assert_string_equal(kvp_phase_name((enum kvp_phase)-1), "unknown");
	assert_string_equal(kvp_state_name((enum kvp_state)4), "unknown");
	assert_string_equal(kvp_registration_state_name((enum kvp_registration_state)5), "unknown");
	assert_string_equal(kvp_kind_name((enum kvp_kind)7), "unknown");
}

static void test_fail(void **state)
{
	struct kvp_error error;
	char many[400];

	(void)state;
	memset(&error, 0x5a, sizeof(error));
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(kvp_fail(&error, -ENOSPC, KVP_PHASE_REGISTER, 17, "rxe0", "do %s", "no %d", 7),
			 -ENOSPC);
	assert_int_equal(error.err, -ENOSPC);
	assert_int_equal(error.phase, KVP_PHASE_REGISTER);
	assert_int_equal(error.index, 17);
	assert_int_equal(error.repeated, 0);
	assert_string_equal(error.device, "rxe0");
	assert_string_equal(error.message, "no 7");
	/* Advice is no format. */
	assert_string_equal(error.advice, "do %s");

	assert_int_equal(kvp_fail(NULL, -EIO, KVP_PHASE_NONE, 0, NULL, NULL, "unseen"), -EIO);

	kvp_fail(&error, -EIO, KVP_PHASE_NONE, KVP_NONE, many, many, "%s", many);
	assert_int_equal(strlen(error.device), sizeof(error.device) - 1);
	assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
	assert_int_equal(strlen(error.advice), sizeof(error.advice) - 1);

	kvp_fail(&error, -EIO, KVP_PHASE_NONE, KVP_NONE, NULL, NULL, "x");
	assert_string_equal(error.device, "");
	assert_string_equal(error.advice, "");
}

static void assert_line(const struct kvp_error *error, const char *line)
{
	char text[800];

	assert_int_equal(kvp_error_format(error, text, sizeof(text)), (int)strlen(line));
	assert_string_equal(text, line);
}

static void test_format(void **state)
{
	struct kvp_error error;

	(void)state;
	kvp_fail(&error, -ENOMEM, KVP_PHASE_REGISTER, 17, "rxe0", "raise it", "MESSAGE");
	assert_line(&error, "phase register, device rxe0: MESSAGE: "
		    "Cannot allocate memory (12); raise it");
	error.repeated = 1;
	assert_line(&error, "an earlier failure, phase register, device rxe0: MESSAGE: "
		    "Cannot allocate memory (12); raise it");
	kvp_fail(&error, -ENOENT, KVP_PHASE_CONNECT, KVP_NONE, NULL, NULL, "can't open it");
	assert_line(&error, "phase connect: can't open it: No such file or directory (2)");
	/* kvpoolctl prints errors of its own so. */
	error.phase = KVP_PHASE_NONE;
	assert_line(&error, "can't open it: No such file or directory (2)");
	error.message[0] = '\0';
	assert_line(&error, "No such file or directory (2)");
	error.err = 0;
	assert_line(&error, "");
	strcpy(error.advice, "go");
	assert_line(&error, "go");
	kvp_fail(&error, -12345, KVP_PHASE_UNDO, 0, NULL, NULL, "x");
	assert_line(&error, "phase undo: x: Unknown error 12345 (12345)");
	kvp_fail(&error, -2147483647 - 1, KVP_PHASE_UNDO, 0, NULL, NULL, "x");
	assert_true(kvp_error_format(&error, NULL, 0) > 0);
}

/* As snprintf: the length is that of the whole line, however little fits. */
static void test_format_cut(void **state)
{
	static const char line[] = "phase check: M: Invalid argument (22); A";
	char text[sizeof(line) + 8];
	struct kvp_error error;
	size_t size;

	(void)state;
	kvp_fail(&error, -EINVAL, KVP_PHASE_CHECK, 3, NULL, "A", "M");
	assert_int_equal(kvp_error_format(&error, NULL, 0), (int)strlen(line));
	for (size = 1; size < sizeof(line) + 4; size++) {
		memset(text, '#', sizeof(text));
		assert_int_equal(kvp_error_format(&error, text, size), (int)strlen(line));
		assert_int_equal(strlen(text), size <= strlen(line) ? size - 1 : strlen(line));
		assert_memory_equal(text, line, strlen(text));
		assert_int_equal(text[size], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_format_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

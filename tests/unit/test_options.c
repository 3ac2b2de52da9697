// SPDX-License-Identifier: LGPL-2.1-or-later
/* options.c: option structs of older and newer callers, and what a name is. */
#include "fake_kernel.h"

struct known {
	size_t struct_size;
	int first;
	int second;
};

struct newer {
	struct known known;
	int third;
	char rest[20];
};

static void test_default(void **state)
{
	struct known known;

	(void)state;
	memset(&known, 0x5a, sizeof(known));
	assert_int_equal(kvp_options_copy(&known, sizeof(known), NULL), 0);
	assert_int_equal(known.struct_size, sizeof(known));
	assert_int_equal(known.first, 0);
	assert_int_equal(known.second, 0);
}

static void test_same_and_older(void **state)
{
	struct known given = { sizeof(given), 3, 4 }, known;

	(void)state;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), 0);
	assert_int_equal(known.first, 3);
	assert_int_equal(known.second, 4);

	/* What an older caller does not know is the default, whatever lies behind its struct. */
	given.struct_size = offsetof(struct known, second);
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), 0);
	assert_int_equal(known.first, 3);
	assert_int_equal(known.second, 0);
	assert_int_equal(known.struct_size, sizeof(known));

	given.struct_size = sizeof(size_t);
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), 0);
	assert_int_equal(known.first, 0);
}

static void test_newer(void **state)
{
	struct newer given = { .known = { sizeof(given), 3, 4 } };
	struct known known;
	size_t i;

	(void)state;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), 0);
	assert_int_equal(known.second, 4);
	for (i = 0; i < sizeof(given.rest); i++) {
		given.rest[i] = 1;
		assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), -E2BIG);
		given.rest[i] = 0;
	}
	/* Not of the struct any more. */
	given.known.struct_size = offsetof(struct newer, rest);
	given.rest[0] = 1;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), 0);
}

static void test_bad_size(void **state)
{
	struct known given = { 0, 1, 1 }, known;

	(void)state;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), -EINVAL);
	given.struct_size = sizeof(size_t) - 1;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), -EINVAL);
	/* Without KVP_INIT(): nothing may be read that far away. */
	given.struct_size = SIZE_MAX;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), -E2BIG);
	given.struct_size = 4097;
	assert_int_equal(kvp_options_copy(&known, sizeof(known), &given), -E2BIG);
}

static void test_name(void **state)
{
	char name[80];
	int i;

	(void)state;
	memset(name, 'n', sizeof(name));
	name[63] = '\0';
	assert_true(kvp_name_valid(name));
	name[63] = 'n';
	name[64] = '\0';
	assert_false(kvp_name_valid(name));
	assert_false(kvp_name_valid(""));
	assert_true(kvp_name_valid("aZ09_-"));
	for (i = 1; i < 256; i++) {
		const char one[] = { 'a', (char)i, '\0' };
		bool letter = (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z') ||
			      (i >= '0' && i <= '9') || i == '_' || i == '-';

		assert_int_equal(kvp_name_valid(one), letter);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_same_and_older),
		cmocka_unit_test(test_newer),
		cmocka_unit_test(test_bad_size),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

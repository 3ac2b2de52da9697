// SPDX-License-Identifier: GPL-2.0-only
/* Words of kvpoolctl's command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/parse.h"

#define assert_taken(call) assert_null(call)
#define assert_refused(call) assert_non_null(call)

static void test_number(void **state)
{
	uint64_t value;

	(void)state;
	assert_taken(parse_number("0", 10, &value));
	assert_int_equal(value, 0);
	assert_taken(parse_number("18446744073709551615", UINT64_MAX, &value));
	assert_true(value == UINT64_MAX);
	assert_taken(parse_number("0xffffFFFFffffFFFF", UINT64_MAX, &value));
	assert_true(value == UINT64_MAX);
	assert_taken(parse_number("010", 10, &value));
	assert_int_equal(value, 10);

	assert_refused(parse_number("18446744073709551616", UINT64_MAX, &value));
	assert_refused(parse_number("0x10000000000000000", UINT64_MAX, &value));
	assert_refused(parse_number("99999999999999999999", UINT64_MAX, &value));
	assert_refused(parse_number("11", 10, &value));
	assert_refused(parse_number("", 10, &value));
	assert_refused(parse_number("-1", UINT64_MAX, &value));
	assert_refused(parse_number("+1", UINT64_MAX, &value));
	assert_refused(parse_number(" 1", UINT64_MAX, &value));
	assert_refused(parse_number("1 ", UINT64_MAX, &value));
	assert_refused(parse_number("0x", UINT64_MAX, &value));
	assert_refused(parse_number("7f00", UINT64_MAX, &value));
	assert_refused(parse_number("x", UINT64_MAX, &value));
}

static void test_index(void **state)
{
	uint32_t value;

	(void)state;
	assert_taken(parse_index("0", &value));
	assert_int_equal(value, 0);
	assert_taken(parse_index("4294967294", &value));
	assert_int_equal(value, UINT32_MAX - 1);
	/* It stands for "none" everywhere. */
	assert_refused(parse_index("4294967295", &value));
	assert_refused(parse_index("4294967296", &value));
}

static void assert_size(const char *text, uint64_t wanted)
{
	uint64_t bytes = 0;

	assert_taken(parse_size(text, &bytes));
	assert_true(bytes == wanted);
}

static void test_size(void **state)
{
	static const char *const refused[] = {
		"", "0", "0M", "M", "2X", "2MM", "2MB", "2MiB", "2 M", "1.5G", "1,5G", "-1G", "+1",
		"16777216T", "18446744073709551616", "18014398509481984K", "2M ", "0x", "2@", "2-",
		"64 ", "64 K",
	};
	uint64_t bytes;
	size_t i;

	(void)state;
	assert_size("1", 1);
	assert_size("3779571220", 3779571220);
	assert_size("4K", 4096);
	assert_size("2M", 2097152);
	assert_size("2m", 2097152);
	assert_size("1G", 1073741824);
	assert_size("3T", (uint64_t)3 << 40);
	assert_size("16777215T", (uint64_t)16777215 << 40);
	assert_size("0x200000", 2097152);
	assert_size("0x2M", 2097152);
	assert_size("18446744073709551615", UINT64_MAX);
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_refused(parse_size(refused[i], &bytes));
}

static void test_mode(void **state)
{
	mode_t mode;

	(void)state;
	assert_taken(parse_mode("0640", &mode));
	assert_int_equal(mode, 0640);
	assert_taken(parse_mode("600", &mode));
	assert_int_equal(mode, 0600);
	assert_taken(parse_mode("0", &mode));
	assert_int_equal(mode, 0);
	assert_refused(parse_mode("0750", &mode));
	assert_refused(parse_mode("4640", &mode));
	assert_refused(parse_mode("0680", &mode));
	assert_refused(parse_mode("rw", &mode));
	assert_refused(parse_mode("", &mode));
}

static void test_user_and_group(void **state)
{
	uid_t uid = 1;
	gid_t gid = 1;

	(void)state;
	assert_taken(parse_user("root", &uid));
	assert_int_equal(uid, 0);
	assert_taken(parse_user("1000", &uid));
	assert_int_equal(uid, 1000);
	assert_taken(parse_group("root", &gid));
	assert_int_equal(gid, 0);
	assert_taken(parse_group("1000", &gid));
	assert_int_equal(gid, 1000);
	/* -1 is "leave as it is" to the kernel. */
	assert_refused(parse_user("4294967295", &uid));
	assert_refused(parse_group("4294967295", &gid));
	assert_refused(parse_user("no such user", &uid));
	assert_refused(parse_group("no such group", &gid));
	assert_refused(parse_user("", &uid));
}

static void test_lifetime(void **state)
{
	enum kvp_lifetime lifetime;

	(void)state;
	assert_taken(parse_lifetime("persistent", &lifetime));
	assert_int_equal(lifetime, KVP_LIFETIME_PERSISTENT);
	assert_taken(parse_lifetime("owner", &lifetime));
	assert_int_equal(lifetime, KVP_LIFETIME_OWNER);
	assert_refused(parse_lifetime("Owner", &lifetime));
	assert_refused(parse_lifetime("", &lifetime));
}

static void test_pool(void **state)
{
	static const char *const refused[] = {
		"", "id:", "id:0", "id:x", "id:-1", "id:4294967296", "id:1.", "id:1.0", "id:0.1",
		"id:.1", "id:1.2.3", "id:1.2 ", "id:0x1", "a b", "a/b", "a:b", "../a", "a.b",
		"ID:1", "1.2",
	};
	char name[KVP_NAME_SIZE + 1];
	struct pool_ref ref;
	size_t i;

	(void)state;
	assert_taken(parse_pool("target-0_A", &ref));
	assert_string_equal(ref.name, "target-0_A");
	assert_int_equal(ref.id, 0);

	/* Digits alone are a name, since a pool may be called so. */
	assert_taken(parse_pool("17", &ref));
	assert_string_equal(ref.name, "17");
	assert_taken(parse_pool("id", &ref));
	assert_string_equal(ref.name, "id");

	assert_taken(parse_pool("id:17", &ref));
	assert_string_equal(ref.name, "");
	assert_int_equal(ref.id, 17);
	assert_int_equal(ref.generation, 0);
	assert_taken(parse_pool("id:4294967295.18446744073709551615", &ref));
	assert_int_equal(ref.id, UINT32_MAX);
	assert_true(ref.generation == UINT64_MAX);

	memset(name, 'a', sizeof(name));
	name[KVP_NAME_SIZE - 1] = '\0';
	assert_taken(parse_pool(name, &ref));
	assert_string_equal(ref.name, name);
	name[KVP_NAME_SIZE - 1] = 'a';
	name[KVP_NAME_SIZE] = '\0';
	assert_refused(parse_pool(name, &ref));

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_refused(parse_pool(refused[i], &ref));
}

static void test_range(void **state)
{
	uint64_t addr, length;

	(void)state;
	assert_taken(parse_range("0x1000", "4096", &addr, &length));
	assert_int_equal(addr, 0x1000);
	assert_int_equal(length, 4096);
	assert_taken(parse_range("4096", "2M", &addr, &length));
	assert_int_equal(addr, 4096);
	assert_int_equal(length, 2097152);
	assert_taken(parse_range("0", "0xffffffffffffffff", &addr, &length));
	assert_true(length == UINT64_MAX);

	/* As copied from /proc/PID/maps: hexadecimal without a prefix. */
	assert_taken(parse_range("1000-2000", NULL, &addr, &length));
	assert_int_equal(addr, 0x1000);
	assert_int_equal(length, 0x1000);
	assert_taken(parse_range("0x7f0000000000-0x7f0000200000", NULL, &addr, &length));
	assert_true(addr == 0x7f0000000000);
	assert_int_equal(length, 0x200000);
	assert_taken(parse_range("ffffffffff600000-ffffffffff601000", NULL, &addr, &length));

	/* The cause of an empty range and of a wrap is named. */
	assert_non_null(strstr(parse_range("0x1000", "0", &addr, &length), "length is 0"));
	assert_non_null(strstr(parse_range("0x1000", "0x0", &addr, &length), "length is 0"));
	assert_non_null(strstr(parse_range("1000-1000", NULL, &addr, &length), "empty"));
	assert_non_null(strstr(parse_range("2000-1000", NULL, &addr, &length), "before"));
	assert_non_null(strstr(parse_range("0xffffffffffffffff", "1", &addr, &length), "wraps"));
	assert_refused(parse_range("7f00", "1", &addr, &length));
	assert_refused(parse_range("0x1000", "-1", &addr, &length));
	assert_refused(parse_range("0x1000", "", &addr, &length));
	assert_refused(parse_range("0x1000", NULL, &addr, &length));
	assert_refused(parse_range("1000-", NULL, &addr, &length));
	assert_refused(parse_range("-2000", NULL, &addr, &length));
	assert_refused(parse_range("1000-2000-3000", NULL, &addr, &length));
	assert_refused(parse_range("1000-2000", "5", &addr, &length));
	assert_refused(parse_range("0-10000000000000000", NULL, &addr, &length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_user_and_group),
		cmocka_unit_test(test_lifetime),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

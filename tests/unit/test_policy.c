// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policy, report, first error, and the invariants of the states. */
#include <stdlib.h>

#include "fake_registrar.h"
#include "fake_world.h"

#define BUFFERS 3

/* ------------------------------------------------------------------ choosing */

static int choose(enum kvp_policy option, const char *environment, enum kvp_policy *policy,
		  struct kvp_error *error)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_ctx ctx = { 0 };
	int err;

	if (environment)
		setenv("KVPOOL_POLICY", environment, 1);
	options.policy = option;
	err = kvp_policy_start(&ctx, &options, error);
	unsetenv("KVPOOL_POLICY");
	*policy = ctx.policy;
	return err;
}

static void option_wins(void **state)
{
	static const struct {
		enum kvp_policy option;
		const char *environment;
		enum kvp_policy policy;
	} cases[] = {
		{ KVP_POLICY_DEFAULT, NULL, KVP_POLICY_FAIL_CLOSED },
		{ KVP_POLICY_DEFAULT, "", KVP_POLICY_FAIL_CLOSED },
		{ KVP_POLICY_DEFAULT, "fail_closed", KVP_POLICY_FAIL_CLOSED },
		{ KVP_POLICY_DEFAULT, "fallback_l2", KVP_POLICY_FALLBACK_L2 },
		{ KVP_POLICY_FAIL_CLOSED, "fallback_l2", KVP_POLICY_FAIL_CLOSED },
		{ KVP_POLICY_FALLBACK_L2, "fail_closed", KVP_POLICY_FALLBACK_L2 },
		{ KVP_POLICY_FALLBACK_L2, "no such thing", KVP_POLICY_FALLBACK_L2 },
	};
	enum kvp_policy policy;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(choose(cases[i].option, cases[i].environment, &policy, NULL), 0);
		assert_int_equal(policy, cases[i].policy);
	}
}

static void unknown_is_an_error(void **state)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_error error;
	enum kvp_policy policy;
	struct kvp_ctx *ctx;

	(void)state;
	assert_int_equal(choose(KVP_POLICY_DEFAULT, "Fallback_L2", &policy, &error), -EINVAL);
	assert_contains(error.message, "'Fallback_L2'");
	assert_contains(error.advice, "fail_closed or fallback_l2");
	assert_int_equal(choose((enum kvp_policy)9, NULL, &policy, &error), -EINVAL);
	assert_contains(error.message, "policy 9");
	options.policy = (enum kvp_policy)9;
	assert_int_equal(kvp_open(&options, &ctx, &error), -EINVAL);
	options.policy = KVP_POLICY_DEFAULT;
	options.client_mode = "two\nlines";
	assert_int_equal(kvp_open(&options, &ctx, &error), -EINVAL);
	assert_contains(error.message, "client_mode");
}

/* -------------------------------------------------------------------- falling back */

static struct fake_registrar store;
static struct kvp_registrar *registrar;
static struct kvp_list *list;
static struct kvp_registration *registration;
static struct kvp_error error;
static char *line;
static unsigned int lines;

static void keep_line(const char *text, void *arg)
{
	assert_ptr_equal(arg, &lines);
	free(line);
	line = strdup(text);
	lines++;
}

static struct kvp_list *list_at(uint64_t addr)
{
	struct kvp_buffer buffers[BUFFERS];
	uint32_t i;

	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)(addr + i * 2 * MIB), .length = 2 * MIB,
		};
	return fake_world_list(buffers, BUFFERS);
}

static int setup(void **state)
{
	memset(&store, 0, sizeof(store));
	store.name = "store";
	lines = 0;
	line = NULL;
	if (fake_world_setup(state))
		return -1;
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	strcpy(fake_world_info(1)->name, "draft \"1\"");
	registrar = fake_registrar_new(&store, 1, 0);
	list = list_at(FAKE_BASE);
	fake_world_ctx()->policy = KVP_POLICY_FALLBACK_L2;
	fake_world_ctx()->tell = keep_line;
	fake_world_ctx()->tell_arg = &lines;
	strcpy(fake_world_ctx()->client_mode, "standalone");
	return 0;
}

static int teardown(void **state)
{
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	free(line);
	return fake_world_teardown(state);
}

static int do_register(const char *name)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);

	options.name = name;
	memset(&error, 0, sizeof(error));
	return kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, &options, &registration,
			    &error);
}

static struct kvp_report report(void)
{
	struct kvp_report report;

	kvp_report_get(fake_world_ctx(), &report);
	return report;
}

static struct kvp_report_entry entries[4];
static unsigned int entry_count;

static int keep_entry(const struct kvp_report_entry *entry, void *arg)
{
	(void)arg;
	entries[entry_count++] = *entry;
	return 0;
}

static void read_entries(void)
{
	entry_count = 0;
	assert_int_equal(kvp_report_each(fake_world_ctx(), keep_entry, NULL), 0);
}

static void assert_verified(void)
{
	struct kvp_error why = { 0 };

	if (kvp_verify(fake_world_ctx(), &why))
		fail_msg("%s", why.message);
}

static void falls_back(void **state)
{
	char text[512];

	(void)state;
	store.fail_register = 2;
	store.register_ret = -1;
	assert_int_equal(do_register("draft"), KVP_FALLBACK);
	assert_null(registration);
	assert_int_equal(store.live, 0);
	assert_int_equal(error.err, -EPERM);
	assert_int_equal(fake_world_info(1)->registration, KVP_REGISTRATION_FALLBACK_L2);
	assert_verified();

	assert_int_equal(lines, 1);
	assert_null(strchr(line, '\n'));
	assert_contains(line, "{\"event\":\"fallback_l2\",\"transaction\":\"draft\",\"domain\":\"kv\","
			"\"client_mode\":\"standalone\",\"pools\":[{\"id\":1,\"generation\":101,"
			"\"name\":\"draft \\\"1\\\"\"}],\"buffers\":3,\"length\":6291456,"
			"\"phase\":\"register\",\"index\":1,\"device\":\"store0\",\"errno\":1,"
			"\"error\":\"buffer 1: can't register 2097152 bytes");
	assert_contains(line, "\"first_error\":\"buffer 1: can't register");
	assert_contains(line, "\"fallbacks\":1}");

	assert_int_equal(report().policy, KVP_POLICY_FALLBACK_L2);
	assert_int_equal(report().fallbacks, 1);
	assert_int_equal(report().failures, 0);
	assert_int_equal(report().registered, 0);
	assert_int_equal(report().first.index, 1);
	read_entries();
	assert_int_equal(entry_count, 1);
	assert_int_equal(entries[0].state, KVP_REGISTRATION_FALLBACK_L2);
	kvp_report_format(&entries[0], text, sizeof(text));
	assert_contains(text, "draft: fallback-l2, domain kv, 3 buffers, 6291456 bytes: "
			"phase register, device store0: buffer 1: can't register");
}

static struct kvp_registration *other;

static void register_another(void)
{
	const struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)(FAKE_BASE + 32 * MIB), .length = MIB,
	};
	static struct fake_registrar another;
	struct kvp_registrar *at = fake_registrar_new(&another, 1, 0);
	struct kvp_list *one = fake_world_list(&buffer, 1);

	assert_int_equal(kvp_register(fake_world_ctx(), "kv", one, &at, 1, NULL, &other, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
	kvp_list_free(one);
	kvp_registrar_free(at);
}

/* The line is about the transaction that failed, whatever began since under the same name. */
static void falls_back_beside_another(void **state)
{
	(void)state;
	store.fail_register = 2;
	store.register_ret = -1;
	store.during_unregister = register_another;
	assert_int_equal(do_register(NULL), KVP_FALLBACK);
	assert_int_equal(lines, 1);
	assert_contains(line, "\"buffers\":3,\"length\":6291456,");
}

/* 31 characters fit in the 63 bytes of a device's name, and half of another. */
static const char *long_name(void *arg, uint32_t device)
{
	(void)arg;
	(void)device;
	return "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
	       "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
	       "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
	       "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
}

/* JSON is UTF-8, whatever the names are. */
static void line_is_utf8(void **state)
{
	static const struct {
		const char *name, *put;
	} cases[] = {
		/* The first and last of each length. */
		{ "\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf" },
		{ "\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf" },
		{ "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80" },
		{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
		/* Alone, cut, said longer than need be, of no character. */
		{ "a\x80z\xff", "a?z?" },
		{ "\xc3", "?" },
		{ "\xe2\x82", "??" },
		{ "\xf0\x9f\x98z", "???z" },
		{ "\xc1\xbf", "??" },
		{ "\xe0\x9f\xbf", "???" },
		{ "\xf0\x8f\xbf\xbf", "????" },
		{ "\xed\xa0\x80", "???" },
		{ "\xf4\x90\x80\x80", "????" },
		{ "\xf8\x90\x80\x80", "????" },
		{ "\xc3\"\n", "?\\\"\\u000a" },
	};
	char want[64];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store.register_calls = 0;
		store.fail_register = 1;
		store.register_ret = -5;
		strcpy(fake_world_info(1)->name, cases[i].name);
		assert_int_equal(do_register("draft"), KVP_FALLBACK);
		snprintf(want, sizeof(want), "\"name\":\"%s\"}", cases[i].put);
		assert_contains(line, want);
	}
	registrar->ops.device_name = long_name;
	store.register_calls = 0;
	assert_int_equal(do_register("draft"), KVP_FALLBACK);
	assert_contains(line, "\xc3\xa4?\",\"errno\"");
}

/* The first seed: the draft pool is not of the domain at all. */
static void falls_back_from_a_check(void **state)
{
	(void)state;
	kvp_list_free(list);
	list = list_at(FAKE_BASE + 60 * MIB);
	fake_world_map(FAKE_BASE + 64 * MIB, 64 * MIB, KVP_KIND_ANON);
	assert_int_equal(do_register("draft"), KVP_FALLBACK);
	assert_int_equal(error.err, -ENOTSUP);
	assert_int_equal(store.register_calls, 0);
	assert_contains(line, "\"phase\":\"check\",\"index\":2,\"errno\":95");
	assert_string_equal(fake_world_states(), "1:fallback-l2");
	assert_verified();
}

static void comes_back(void **state)
{
	char text[256];

	(void)state;
	store.fail_register = 1;
	store.register_ret = -5;
	assert_int_equal(do_register("draft"), KVP_FALLBACK);
	assert_int_equal(do_register("draft"), 0);
	assert_verified();
	assert_int_equal(report().registered, BUFFERS);
	assert_int_equal(report().fallbacks, 1);
	assert_int_equal(report().committed, 1);
	read_entries();
	kvp_report_format(&entries[0], text, sizeof(text));
	assert_string_equal(text, "draft: committed, domain kv, 3 buffers, 6291456 bytes");
	/* It is kept all the same. */
	assert_int_equal(entries[0].first.err, -EIO);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_verified();
	read_entries();
	assert_int_equal(entries[0].state, KVP_REGISTRATION_ALLOCATED);
}

static int refuse_commit(const struct kvp_registration *of, void *arg)
{
	(void)of;
	(void)arg;
	return -EAGAIN;
}

static void falls_back_from_the_commit(void **state)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);

	(void)state;
	options.commit = refuse_commit;
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, &options,
				      &registration, &error), KVP_FALLBACK);
	assert_contains(line, "\"phase\":\"commit\",\"errno\":11");
	assert_int_equal(store.live, 0);
	assert_verified();
}

/* The device may go on writing to it: plain memory it is not. */
static void no_fallback_onto_quarantine(void **state)
{
	(void)state;
	store.fail_register = 3;
	store.register_ret = -5;
	store.fail_unregister = 1;
	store.unregister_ret = -5;
	assert_int_equal(do_register("draft"), -EIO);
	assert_non_null(registration);
	assert_int_equal(lines, 0);
	assert_int_equal(fake_world_info(1)->registration, KVP_REGISTRATION_FAILED);
	assert_int_equal(report().fallbacks, 0);
	assert_int_equal(report().failures, 1);
	assert_int_equal(report().quarantined, 1);
	assert_verified();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_verified();
}

static void not_from_nonsense(void **state)
{
	struct kvp_registrar *twice[2] = { registrar, registrar };
	static const char *const domains[] = { NULL, "", "k v", "kv\n" };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
		assert_int_equal(kvp_register(fake_world_ctx(), domains[i], list, &registrar, 1,
					      NULL, &registration, &error), -EINVAL);
		assert_null(registration);
		assert_contains(error.message, "domain");
	}
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, twice, 2, NULL, &registration,
				      &error), -EINVAL);
	assert_int_equal(do_register("a\tb"), -EINVAL);
	assert_int_equal(lines, 0);
	assert_int_equal(report().fallbacks, 0);
	assert_string_equal(fake_world_states(), "");
}

static void fails_closed(void **state)
{
	(void)state;
	fake_world_ctx()->policy = KVP_POLICY_FAIL_CLOSED;
	store.fail_register = 1;
	store.register_ret = 3;
	assert_int_equal(do_register(NULL), -EREMOTEIO);
	assert_int_equal(lines, 0);
	assert_int_equal(fake_world_info(1)->registration, KVP_REGISTRATION_FAILED);
	store.fail_register = 2;
	store.register_ret = -ENOMEM;
	assert_int_equal(do_register(NULL), -ENOMEM);
	/* The first is kept, whatever comes after it. */
	assert_int_equal(report().first.err, -EREMOTEIO);
	assert_int_equal(report().failures, 2);
	assert_verified();
}

/* No memory for the line: there is one all the same. */
static void never_without_a_word(void **state)
{
	unsigned int n, seen = 0;
	int ret;

	(void)state;
	for (n = 1; n < 200; n++) {
		lines = 0;
		store.register_calls = 0;
		store.fail_register = 1;
		store.register_ret = -5;
		fake_fail_alloc(n);
		ret = do_register("draft");
		fake_fail_alloc(0);
		if (ret == KVP_FALLBACK)
			assert_int_equal(lines, 1);
		else
			assert_int_equal(lines, 0);
		seen += ret == KVP_FALLBACK && error.err == -ENOMEM;
	}
	assert_true(seen > 0);
}

/* -------------------------------------------------------------------- invariants */

static void assert_wrong(enum kvp_registration_state state, const char *says)
{
	const enum kvp_registration_state before = fake_world_info(1)->registration;
	struct kvp_error why = { 0 };

	fake_world_info(1)->registration = state;
	assert_int_equal(kvp_verify(fake_world_ctx(), &why), -EUCLEAN);
	assert_contains(why.message, "(id 1, generation 101)");
	assert_contains(why.message, says);
	fake_world_info(1)->registration = before;
}

static void verify_sees(void **state)
{
	struct kvp_pool_info *info = fake_world_info(1);
	struct kvp_owned *owned;

	(void)state;
	assert_verified();
	assert_wrong(KVP_REGISTRATION_COMMITTED, "no registration is in force");
	assert_wrong(KVP_REGISTRATION_REGISTERING, "no transaction runs");
	assert_int_equal(do_register(NULL), 0);
	assert_verified();
	assert_wrong(KVP_REGISTRATION_ALLOCATED, "a registration is in force");
	assert_wrong(KVP_REGISTRATION_FALLBACK_L2, "a registration is in force");
	assert_wrong(KVP_REGISTRATION_FAILED, "a registration is in force");
	/* Another's is not looked at, of this process or not. */
	owned = fake_world_ctx()->owned;
	fake_world_others(1);
	info->registration = KVP_REGISTRATION_ALLOCATED;
	assert_verified();
	fake_world_ctx()->owned = owned;
	info->registration = KVP_REGISTRATION_COMMITTED;
	store.fail_unregister = 1;
	store.unregister_ret = -5;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), -EIO);
	assert_verified();
	assert_wrong(KVP_REGISTRATION_ALLOCATED, "entries are quarantined");
	assert_wrong(KVP_REGISTRATION_COMMITTED, "no registration is in force");
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
	assert_verified();
}

static void verify_sees_pins(void **state)
{
	struct kvp_error why = { 0 };

	(void)state;
	kvp_registrar_free(registrar);
	registrar = fake_registrar_new(&store, 1, 1);
	assert_int_equal(do_register(NULL), 0);
	assert_int_equal(kvp_verify(fake_world_ctx(), &why), -EUCLEAN);
	assert_contains(why.message, "no block is pinned");
	fake_world_info(1)->pinned_blocks = 3;
	assert_verified();
	assert_int_equal(kvp_unregister(fake_world_ctx(), &registration, NULL), 0);
}

#define policy_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(option_wins),
		cmocka_unit_test(unknown_is_an_error),
		policy_test(falls_back),
		policy_test(falls_back_beside_another),
		policy_test(line_is_utf8),
		policy_test(falls_back_from_a_check),
		policy_test(comes_back),
		policy_test(falls_back_from_the_commit),
		policy_test(no_fallback_onto_quarantine),
		policy_test(not_from_nonsense),
		policy_test(fails_closed),
		policy_test(never_without_a_word),
		policy_test(verify_sees),
		policy_test(verify_sees_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

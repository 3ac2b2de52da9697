// SPDX-License-Identifier: LGPL-2.1-or-later
/* context.c and family.c: connecting, and every way in which that fails. */
#include <fcntl.h>

#include "fake_kernel.h"

#define CONTROL "/dev/kvpool/control"

static void test_open(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(false);

	(void)state;
	assert_int_equal(ctx->family, FAKE_FAMILY);
	assert_false(ctx->read_only);
	assert_true(fcntl(ctx->control, F_GETFD) & FD_CLOEXEC);
	kvp_close(ctx);

	ctx = fake_ctx(true);
	assert_true(ctx->read_only);
	kvp_close(ctx);
	kvp_close(NULL);
}

static void test_open_without_options(void **state)
{
	struct kvp_ctx *ctx;

	(void)state;
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_family(1);
	assert_int_equal(kvp_open(NULL, &ctx, NULL), 0);
	kvp_close(ctx);
}

static void test_open_elsewhere(void **state)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_error error;
	struct kvp_ctx *ctx;

	(void)state;
	options.control_path = "/somewhere/else";
	fake_open("/somewhere/else", O_RDWR, ENOENT, NULL);
	assert_int_equal(kvp_open(&options, &ctx, &error), -ENOENT);
	fake_assert_error(&error, -ENOENT, KVP_PHASE_CONNECT, "/somewhere/else", NULL);
}

static void test_open_options(void **state)
{
	struct {
		struct kvp_options options;
		int newer;
	} given = { .options.struct_size = sizeof(given), .newer = 1 };
	struct kvp_error error;
	struct kvp_ctx *ctx = NULL;

	(void)state;
	assert_int_equal(kvp_open(&given.options, &ctx, &error), -E2BIG);
	fake_assert_error(&error, -E2BIG, KVP_PHASE_CONNECT, "kvp_options of", "KVP_INIT");
	given.options.struct_size = 0;
	assert_int_equal(kvp_open(&given.options, &ctx, &error), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_CONNECT, "kvp_options of 0 bytes", NULL);
	assert_null(ctx);
}

static void assert_control(int err, bool read_only, const char *advice)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_error error;
	struct kvp_ctx *ctx;

	options.read_only = read_only;
	fake_open(CONTROL, read_only ? O_RDONLY : O_RDWR, err, NULL);
	assert_int_equal(kvp_open(&options, &ctx, &error), -err);
	fake_assert_error(&error, -err, KVP_PHASE_CONNECT,
			  read_only ? CONTROL " for reading" : CONTROL " for reading and writing",
			  advice);
}

static void test_no_control(void **state)
{
	(void)state;
	assert_control(ENOENT, false, "modprobe kvpool");
	assert_control(ENXIO, false, "modprobe kvpool");
	assert_control(ENODEV, true, "modprobe kvpool");
	assert_control(EACCES, false, "group kvpool");
	assert_control(EPERM, true, "group kvpool");
	assert_control(EMFILE, false, "ulimit -n");
	assert_control(EIO, false, NULL);
}

/* The script after the control node is the caller's. */
static void assert_open_fails(int err, const char *message, const char *advice)
{
	struct kvp_error error;
	struct kvp_ctx *ctx;

	assert_int_equal(kvp_open(NULL, &ctx, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_CONNECT, message, advice);
}

static void test_no_socket(void **state)
{
	(void)state;
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_fail(FAKE_SOCKET, 0, EPROTONOSUPPORT);
	assert_open_fails(-EPROTONOSUPPORT, "no netlink socket", NULL);
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_fail(FAKE_BIND, 0, EADDRINUSE);
	assert_open_fails(-EADDRINUSE, "can't be bound", NULL);
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_fail(FAKE_SEND, 0, ENOBUFS);
	assert_open_fails(-ENOBUFS, "can't be sent", NULL);
}

/* Extended acknowledgments only make errors clearer. */
static void test_no_extack(void **state)
{
	struct kvp_ctx *ctx;

	(void)state;
	fake_fail(FAKE_SETSOCKOPT, 0, ENOPROTOOPT);
	ctx = fake_ctx(false);
	kvp_close(ctx);
}

static void test_no_family(void **state)
{
	(void)state;
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	fake_want_text(CTRL_ATTR_FAMILY_NAME, "kvpool");
	fake_ack(-ENOENT, NULL);
	assert_open_fails(-ENOENT, "netlink family kvpool", "modprobe kvpool");
}

static void test_other_version(void **state)
{
	(void)state;
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_family(2);
	assert_open_fails(-EPROTO, "version 2 of family kvpool, the library version 1",
			  "one release");
}

static void family_answer(void)
{
	fake_open(CONTROL, O_RDWR, 0, NULL);
	fake_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	fake_want_text(CTRL_ATTR_FAMILY_NAME, "kvpool");
	fake_datagram();
	fake_message(GENL_ID_CTRL, 0, CTRL_CMD_NEWFAMILY);
}

static void family_end(void)
{
	fake_ack(0, NULL);
	assert_open_fails(-EPROTO, "netlink family kvpool: ", NULL);
}

static void test_malformed_family(void **state)
{
	(void)state;
	family_answer();
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	family_end();

	family_answer();
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	family_end();

	family_answer();
	fake_put_u32(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	family_end();

	/* A number of netlink's own messages. */
	family_answer();
	fake_put_u16(CTRL_ATTR_FAMILY_ID, NLMSG_DONE);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	family_end();

	/* Groups without number, without name, with an unterminated name, and cut short. */
	family_answer();
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	fake_nest(CTRL_ATTR_MCAST_GROUPS);
	fake_nest(1);
	fake_put_text(CTRL_ATTR_MCAST_GRP_NAME, "pools");
	fake_nest_end();
	fake_nest_end();
	family_end();

	family_answer();
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	fake_nest(CTRL_ATTR_MCAST_GROUPS);
	fake_nest(1);
	fake_put_u32(CTRL_ATTR_MCAST_GRP_ID, 3);
	fake_put(CTRL_ATTR_MCAST_GRP_NAME, 5, "pools");
	fake_nest_end();
	fake_nest_end();
	family_end();

	family_answer();
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	fake_put(CTRL_ATTR_MCAST_GROUPS, 8, "\x40\0\1\0abcd");
	family_end();

	family_answer();
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	fake_put(CTRL_ATTR_MCAST_GROUPS, 3, "\3\0\1");
	family_end();
}

static void test_no_memory(void **state)
{
	struct kvp_error error;
	struct kvp_ctx *ctx;
	unsigned int n;
	int err;

	(void)state;
	for (n = 1; ; n++) {
		memset(&error, 0, sizeof(error));
		if (n > 1)
			fake_open(CONTROL, O_RDWR, 0, NULL);
		if (n > 2)
			fake_family(1);
		fake_fail_alloc(n);
		err = kvp_open(NULL, &ctx, &error);
		if (!fake_alloc_failed())
			break;
		assert_int_equal(err, -ENOMEM);
		fake_assert_error(&error, -ENOMEM, KVP_PHASE_CONNECT, NULL, NULL);
	}
	assert_int_equal(err, 0);
	assert_int_equal(n, 3);
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_open),
		fake_test(test_open_without_options),
		fake_test(test_open_elsewhere),
		fake_test(test_open_options),
		fake_test(test_no_control),
		fake_test(test_no_socket),
		fake_test(test_no_extack),
		fake_test(test_no_family),
		fake_test(test_other_version),
		fake_test(test_malformed_family),
		fake_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

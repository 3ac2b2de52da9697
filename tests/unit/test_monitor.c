// SPDX-License-Identifier: LGPL-2.1-or-later
/* monitor.c: events, lost events, and what is no event. */
#include "fake_kernel.h"

static struct kvp_monitor *monitor_open(void)
{
	struct kvp_monitor *monitor = NULL;

	fake_family(1);
	assert_int_equal(kvp_monitor_open(&monitor, NULL), 0);
	assert_true(kvp_monitor_fd(monitor) >= 0);
	return monitor;
}

static void put_event(uint8_t command, uint32_t id, uint64_t generation)
{
	fake_message(FAKE_FAMILY, 0, command);
	fake_put_u32(KVPOOL_A_POOL_ID, id);
	fake_put_u64(KVPOOL_A_POOL_GENERATION, generation);
}

static void assert_event(struct kvp_monitor *monitor, enum kvp_event want, uint32_t want_id,
			 uint64_t want_generation)
{
	uint64_t generation = 0;
	enum kvp_event event;
	uint32_t id = 0;

	assert_int_equal(kvp_monitor_next(monitor, &event, &id, &generation, NULL), 0);
	assert_int_equal(event, want);
	assert_int_equal(id, want_id);
	assert_int_equal(generation, want_generation);
}

static void test_events(void **state)
{
	struct kvp_monitor *monitor = monitor_open();

	(void)state;
	fake_events();
	fake_datagram();
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 1ull << 40);
	fake_datagram();
	/* Several in one datagram, among them what this library does not know. */
	put_event(KVPOOL_CMD_POOL_CHANGE_NTF, 6, 2);
	put_event(99, 1, 1);
	fake_message(FAKE_FAMILY + 1, 0, KVPOOL_CMD_POOL_CREATE_NTF);
	put_event(KVPOOL_CMD_POOL_DESTROY_NTF, 7, 3);
	assert_event(monitor, KVP_EVENT_CREATE, 5, 1ull << 40);
	assert_event(monitor, KVP_EVENT_CHANGE, 6, 2);
	assert_event(monitor, KVP_EVENT_DESTROY, 7, 3);
	kvp_monitor_close(monitor);
	kvp_monitor_close(NULL);
}

static void put_progress(uint32_t id, uint64_t generation, uint32_t percent)
{
	put_event(KVPOOL_CMD_POOL_PROGRESS_NTF, id, generation);
	fake_put_u32(KVPOOL_A_POOL_PROGRESS, percent);
}

static void test_progress(void **state)
{
	struct kvp_monitor *monitor = monitor_open();
	struct kvp_error error;
	uint64_t generation;
	enum kvp_event event;
	uint32_t id;

	(void)state;
	fake_events();
	fake_datagram();
	put_progress(5, 6, 42);
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 6);
	fake_datagram();	/* without its number */
	put_event(KVPOOL_CMD_POOL_PROGRESS_NTF, 5, 6);
	assert_int_equal(kvp_monitor_progress(monitor), 100);
	assert_event(monitor, KVP_EVENT_PROGRESS, 5, 6);
	assert_int_equal(kvp_monitor_progress(monitor), 42);
	assert_event(monitor, KVP_EVENT_CREATE, 5, 6);
	assert_int_equal(kvp_monitor_progress(monitor), 100);
	assert_int_equal(kvp_monitor_next(monitor, &event, &id, &generation, &error), -EPROTO);
	kvp_monitor_close(monitor);
}

/* The last attribute of a datagram need not be padded. */
static void test_unaligned_event(void **state)
{
	struct kvp_monitor *monitor = monitor_open();

	(void)state;
	fake_events();
	fake_datagram();
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 6);
	fake_put(900, 1, "x");
	fake_last()->nlmsg_len -= 3;
	fake_cut(3);
	fake_datagram();
	put_event(KVPOOL_CMD_POOL_DESTROY_NTF, 5, 6);
	assert_event(monitor, KVP_EVENT_CREATE, 5, 6);
	assert_event(monitor, KVP_EVENT_DESTROY, 5, 6);
	kvp_monitor_close(monitor);
}

static void assert_next_fails(struct kvp_monitor *monitor, int err, const char *message)
{
	struct kvp_error error;
	uint64_t generation;
	enum kvp_event event;
	uint32_t id;

	assert_int_equal(kvp_monitor_next(monitor, &event, &id, &generation, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, NULL);
}

/* After each the monitor goes on. */
static void test_lost_events(void **state)
{
	struct kvp_monitor *monitor = monitor_open();

	(void)state;
	fake_events();
	fake_receive_error(ENOBUFS);
	fake_receive_error(EINTR);
	fake_receive_error(ENOSPC);
	fake_datagram();
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 6);
	assert_next_fails(monitor, -ENOBUFS, "events were lost");
	assert_next_fails(monitor, -EINTR, "wait for an event");
	assert_next_fails(monitor, -EPROTO, "malformed");
	assert_event(monitor, KVP_EVENT_CREATE, 5, 6);
	kvp_monitor_close(monitor);
}

static void test_malformed_events(void **state)
{
	struct kvp_monitor *monitor = monitor_open();
	unsigned int i;

	(void)state;
	fake_events();
	fake_datagram();	/* empty */
	fake_datagram();	/* no generation */
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_CREATE_NTF);
	fake_put_u32(KVPOOL_A_POOL_ID, 5);
	fake_datagram();	/* no id */
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_CREATE_NTF);
	fake_put_u64(KVPOOL_A_POOL_GENERATION, 5);
	fake_datagram();	/* a short id */
	fake_message(FAKE_FAMILY, 0, KVPOOL_CMD_POOL_CREATE_NTF);
	fake_put_u16(KVPOOL_A_POOL_ID, 5);
	fake_put_u64(KVPOOL_A_POOL_GENERATION, 5);
	fake_datagram();	/* cut short */
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 6);
	fake_cut(1);
	fake_datagram();	/* not even a header */
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 6);
	fake_cut(40);
	fake_datagram();
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 6);
	fake_datagram();	/* longer than an int can say: the next would lie far away */
	put_event(99, 5, 6);
	fake_last()->nlmsg_len = 0xffffff00;
	fake_datagram();
	put_event(KVPOOL_CMD_POOL_CREATE_NTF, 5, 8);
	for (i = 0; i < 6; i++)
		assert_next_fails(monitor, -EPROTO, "an event is malformed");
	assert_event(monitor, KVP_EVENT_CREATE, 5, 6);
	assert_next_fails(monitor, -EPROTO, "an event is malformed");
	assert_event(monitor, KVP_EVENT_CREATE, 5, 8);
	kvp_monitor_close(monitor);
}

static void assert_monitor_fails(int err, const char *message)
{
	struct kvp_monitor *monitor;
	struct kvp_error error;

	assert_int_equal(kvp_monitor_open(&monitor, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_CONNECT, message, NULL);
}

static void test_monitor_open_fails(void **state)
{
	(void)state;
	fake_fail(FAKE_SOCKET, 0, EMFILE);
	assert_monitor_fails(-EMFILE, "no netlink socket");

	fake_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	fake_want_text(CTRL_ATTR_FAMILY_NAME, "kvpool");
	fake_datagram();
	fake_message(GENL_ID_CTRL, 0, CTRL_CMD_NEWFAMILY);
	fake_put_u16(CTRL_ATTR_FAMILY_ID, FAKE_FAMILY);
	fake_put_u32(CTRL_ATTR_VERSION, 1);
	fake_ack(0, NULL);
	assert_monitor_fails(-EPROTO, "no multicast group 'pools'");

	/* The first two options are those of extended acknowledgments. */
	fake_family(1);
	fake_fail(FAKE_SETSOCKOPT, 2, EPERM);
	assert_monitor_fails(-EPERM, "can't be joined");

	fake_fail_alloc(1);
	assert_monitor_fails(-ENOMEM, "no memory");
	fake_fail_alloc(2);
	assert_monitor_fails(-ENOMEM, "netlink family kvpool");
	fake_fail_alloc(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_events),
		fake_test(test_progress),
		fake_test(test_unaligned_event),
		fake_test(test_lost_events),
		fake_test(test_malformed_events),
		fake_test(test_monitor_open_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

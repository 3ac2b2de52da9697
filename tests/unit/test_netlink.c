// SPDX-License-Identifier: LGPL-2.1-or-later
/* netlink.c: answers as they should be, and as they should not. */
#include "fake_kernel.h"

static void answer(uint16_t type, uint16_t flags)
{
	fake_datagram();
	fake_message(type, flags, KVPOOL_CMD_POOL_GET);
}

static void answer_pool(const struct kvp_pool_info *pool)
{
	answer(FAKE_FAMILY, 0);
	fake_put_pool(pool, 0, FAKE_WHOLE);
}

static void assert_find_fails(struct kvp_ctx *ctx, int err, const char *message,
			      const char *advice)
{
	struct kvp_pool_info info = { .id = 77 };
	struct kvp_error error;

	assert_int_equal(kvp_pool_find(ctx, 12, 0, &info, &error), err);
	fake_assert_error(&error, err, KVP_PHASE_REQUEST, message, advice);
	/* Nothing of a failed answer reaches the caller. */
	assert_int_equal(info.id, 77);
}

static void assert_find_works(struct kvp_ctx *ctx)
{
	struct kvp_pool_info info;

	fake_find(12, 0);
	answer_pool(&fake_pool_full);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_find(ctx, 12, 0, &info, NULL), 0);
	fake_assert_info(&info, &fake_pool_full);
}

/* The kernel's error, and its words. */
static void test_extack(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	fake_find(12, 0);
	fake_ack(-EINVAL, "no good.\n");
	assert_find_fails(ctx, -EINVAL, "find pool 12: no good", NULL);
	fake_find(12, 0);
	fake_ack(-ENOENT, NULL);
	assert_find_fails(ctx, -ENOENT, "find pool 12", "kvpoolctl list");
	/* It points at an attribute, which has a name. */
	fake_find(12, 0);
	fake_ack_at(-ERANGE, "integer out of range", KVPOOL_A_POOL_ID);
	assert_find_fails(ctx, -ERANGE, "find pool 12: integer out of range (id)", NULL);
	fake_find(12, 0);
	fake_ack_at(-ERANGE, NULL, KVPOOL_A_POOL_ID);
	assert_find_fails(ctx, -ERANGE, "find pool 12: id", NULL);
	fake_find(12, 0);
	fake_ack_missing(-EINVAL, NULL, KVPOOL_A_POOL_GENERATION);
	assert_find_fails(ctx, -EINVAL, "find pool 12: an attribute is missing (generation)", NULL);
	fake_find(12, 0);
	fake_ack_missing(-EINVAL, "what is it", KVPOOL_A_POOL_NAME);
	assert_find_fails(ctx, -EINVAL, "find pool 12: what is it (name)", NULL);
	assert_find_works(ctx);
	kvp_close(ctx);
}

/* Of an extack that is not right only the errno is taken, and the stream stays in use. */
static void test_bad_extack(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	const uint32_t portid = ctx->nl.portid;
	char many[400];

	(void)state;
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	/* An offset of the header, behind the request, and a type without a name. */
	fake_find(12, 0);
	fake_ack(-EPERM, "who");
	fake_put_u32(NLMSGERR_ATTR_OFFS, 4);
	assert_find_fails(ctx, -EPERM, "find pool 12: who", NULL);
	fake_find(12, 0);
	fake_ack(-EPERM, "who");
	fake_put_u32(NLMSGERR_ATTR_OFFS, UINT32_MAX);
	assert_find_fails(ctx, -EPERM, "find pool 12: who", NULL);
	fake_find(12, 0);
	fake_ack_missing(-EPERM, "who", 999);
	assert_find_fails(ctx, -EPERM, "find pool 12: who", NULL);
	fake_find(12, 0);
	fake_ack(-EPERM, NULL);
	fake_last()->nlmsg_flags |= NLM_F_ACK_TLVS;
	fake_put(NLMSGERR_ATTR_MSG, 3, "who");
	assert_find_fails(ctx, -EPERM, "find pool 12: who", NULL);
	/* An attribute longer than the message. */
	fake_find(12, 0);
	fake_ack(-EPERM, NULL);
	fake_last()->nlmsg_flags |= NLM_F_ACK_TLVS;
	fake_put_u16(0, 0);
	((struct nlattr *)((char *)fake_last() + fake_last()->nlmsg_len - 8))->nla_len = 60;
	assert_find_fails(ctx, -EPERM, "find pool 12", NULL);
	/* It says that the whole request stands before it, which is longer than the message. */
	fake_find(12, 0);
	fake_ack(-EPERM, "who");
	fake_last()->nlmsg_flags &= (uint16_t)~NLM_F_CAPPED;
	assert_find_fails(ctx, -EPERM, "find pool 12", NULL);
	fake_find(12, 0);
	fake_ack(-EPERM, many);
	assert_find_fails(ctx, -EPERM, "find pool 12: xxxxx", NULL);
	assert_int_equal(ctx->nl.portid, portid);
	kvp_close(ctx);
}

/* Without NETLINK_CAP_ACK the kernel echoes the request. */
static void test_uncapped_extack(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	const struct nlmsgerr ack = { .error = -EBUSY, .msg.nlmsg_len = NLMSG_HDRLEN + 8 };

	(void)state;
	fake_find(12, 0);
	fake_ack(-EBUSY, NULL);
	fake_last()->nlmsg_flags = NLM_F_ACK_TLVS;
	memcpy(mnl_nlmsg_get_payload(fake_last()), &ack, sizeof(ack));
	/* Eight bytes that stand for the request's payload. */
	fake_put(99, 4, "abcd");
	fake_put_text(NLMSGERR_ATTR_MSG, "taken");
	assert_find_fails(ctx, -EBUSY, "find pool 12: taken", NULL);
	kvp_close(ctx);
}

/*
 * After each of these the socket must have been replaced: what is left of the
 * answer must not meet the next request.
 */
static void assert_breaks(struct kvp_ctx *ctx, int err, const char *message)
{
	const uint32_t portid = ctx->nl.portid;

	/* Left behind; the stand-in complains when the next request uses the same socket. */
	fake_ack(0, NULL);
	fake_ack(0, NULL);
	assert_find_fails(ctx, err, message, NULL);
	assert_null(ctx->nl.socket);
	assert_find_works(ctx);
	assert_int_not_equal(ctx->nl.portid, portid);
}

static void test_broken_stream(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	fake_find(12, 0);
	answer_pool(&fake_pool_full);
	fake_last()->nlmsg_seq = 1;
	assert_breaks(ctx, -EPROTO, "to another request");
	fake_find(12, 0);
	answer_pool(&fake_pool_full);
	fake_last()->nlmsg_seq = (uint32_t)-1;
	assert_breaks(ctx, -EPROTO, "to another request");
	fake_find(12, 0);
	answer_pool(&fake_pool_full);
	fake_last()->nlmsg_pid = 1;
	assert_breaks(ctx, -EPROTO, "to another socket");
	fake_find(12, 0);
	answer(FAKE_FAMILY + 1, 0);
	assert_breaks(ctx, -EPROTO, "of another family");
	fake_find(12, 0);
	fake_datagram();
	assert_breaks(ctx, -EPROTO, "is empty");
	fake_find(12, 0);
	answer_pool(&fake_pool_full);
	fake_cut(4);
	assert_breaks(ctx, -EPROTO, "cut short");
	fake_find(12, 0);
	answer(FAKE_FAMILY, 0);
	fake_last()->nlmsg_len = NLMSG_HDRLEN;
	fake_cut(GENL_HDRLEN);
	assert_breaks(ctx, -EPROTO, "cut short");
	fake_find(12, 0);
	answer(FAKE_FAMILY, 0);
	fake_last()->nlmsg_len = 3;
	assert_breaks(ctx, -EPROTO, "cut short");
	/* As an int it is negative. */
	fake_find(12, 0);
	answer(FAKE_FAMILY, 0);
	fake_last()->nlmsg_len |= 0x80000000;
	assert_breaks(ctx, -EPROTO, "cut short");
	fake_find(12, 0);
	answer(NLMSG_OVERRUN, 0);
	assert_breaks(ctx, -ENOBUFS, "was lost");
	kvp_close(ctx);
}

static void test_broken_ack(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	fake_find(12, 0);
	fake_ack(0, NULL);
	fake_last()->nlmsg_len -= 4;
	fake_cut(4);
	assert_breaks(ctx, -EPROTO, "acknowledgment is cut short");
	fake_find(12, 0);
	fake_ack(1, NULL);
	assert_breaks(ctx, -EPROTO, "holds no errno");
	fake_find(12, 0);
	fake_ack(-4096, NULL);
	assert_breaks(ctx, -EPROTO, "holds no errno");
	fake_find(12, 0);
	fake_ack(-2147483647 - 1, NULL);
	assert_breaks(ctx, -EPROTO, "holds no errno");
	fake_find(12, 0);
	fake_datagram();
	fake_done(0, NULL);
	assert_breaks(ctx, -EPROTO, "end mark came instead");
	kvp_close(ctx);
}

static void test_receive_errors(void **state)
{
	static const char large[KVP_NL_BUFFER_SIZE];
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	fake_find(12, 0);
	fake_receive_error(ENOBUFS);
	assert_breaks(ctx, -ENOBUFS, "was lost");
	fake_find(12, 0);
	fake_receive_error(ENOSPC);
	assert_breaks(ctx, -EPROTO, "longer than");
	fake_find(12, 0);
	fake_receive_error(EBADF);
	assert_breaks(ctx, -EBADF, "can't be received");
	/* Longer than the buffer, as the kernel never sends. */
	fake_find(12, 0);
	answer(FAKE_FAMILY, 0);
	fake_put(900, sizeof(large), large);
	assert_breaks(ctx, -EPROTO, "longer than");
	kvp_close(ctx);
}

/* A signal is no reason to lose an answer. */
static void test_signal(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_pool_info info;

	(void)state;
	fake_fail(FAKE_SEND, 0, EINTR);
	fake_find(12, 0);
	fake_receive_error(EINTR);
	answer_pool(&fake_pool_full);
	fake_receive_error(EINTR);
	fake_ack(0, NULL);
	assert_int_equal(kvp_pool_find(ctx, 12, 0, &info, NULL), 0);
	kvp_close(ctx);
}

static void test_send_error(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	fake_fail(FAKE_SEND, 0, EPERM);
	assert_find_fails(ctx, -EPERM, "can't be sent", NULL);
	/* The next request needs another socket, and there is none. */
	fake_fail(FAKE_SOCKET, 0, EMFILE);
	assert_find_fails(ctx, -EMFILE, "find pool 12: no netlink socket", "ulimit -n");
	fake_fail(FAKE_BIND, 0, EADDRINUSE);
	assert_find_fails(ctx, -EADDRINUSE, "can't be bound", NULL);
	assert_find_works(ctx);
	kvp_close(ctx);
}

/* One answer is wanted: what comes is read to its end, and the stream stays in use. */
static void test_answer_count(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	const uint32_t portid = ctx->nl.portid;

	(void)state;
	fake_find(12, 0);
	fake_ack(0, NULL);
	assert_find_fails(ctx, -EPROTO, "0 answers came instead of one", "one release");
	fake_find(12, 0);
	answer_pool(&fake_pool_full);
	fake_message(NLMSG_NOOP, 0, 0);
	answer_pool(&fake_pool_full);
	fake_ack(0, NULL);
	assert_find_fails(ctx, -EPROTO, "2 answers came instead of one", NULL);
	assert_find_works(ctx);
	assert_int_equal(ctx->nl.portid, portid);
	kvp_close(ctx);
}

/* A request that does not fit is refused before it is sent. */
static void test_request_size(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	struct kvp_request request;
	struct kvp_reply reply;
	int i;

	(void)state;
	kvp_ask_start(ctx, &request, KVPOOL_CMD_POOL_GET);
	for (i = 0; i < 200; i++)
		kvp_request_u64(&request, KVPOOL_A_POOL_GENERATION, 1);
	assert_true(request.full);
	assert_int_equal(kvp_ask(ctx, &request, NULL, NULL, &reply), -EINVAL);
	assert_string_equal(reply.text, "the request is longer than 1024 bytes");
	kvp_close(ctx);
}

/* 0 is the sequence number of events. */
static void test_sequence_wraps(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);

	(void)state;
	ctx->nl.seq = UINT32_MAX;
	assert_find_works(ctx);
	assert_int_equal(ctx->nl.seq, 1);
	kvp_close(ctx);
}

/* ------------------------------------------------------------------ threads */

#define THREADS 4
#define ROUNDS 50

static void *ask_often(void *arg)
{
	struct kvp_pool_info info;
	int i;

	for (i = 0; i < ROUNDS; i++)
		if (kvp_pool_find(arg, 12, 0, &info, NULL))
			return arg;
	return NULL;
}

/* The stand-in complains when a request comes before the last answer was read. */
static void test_threads(void **state)
{
	struct kvp_ctx *ctx = fake_ctx(true);
	pthread_t threads[THREADS];
	void *failed;
	int i;

	(void)state;
	for (i = 0; i < THREADS * ROUNDS; i++) {
		fake_find(12, 0);
		answer_pool(&fake_pool_full);
		fake_ack(0, NULL);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, ctx), 0);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	kvp_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_extack),
		fake_test(test_bad_extack),
		fake_test(test_uncapped_extack),
		fake_test(test_broken_stream),
		fake_test(test_broken_ack),
		fake_test(test_receive_errors),
		fake_test(test_signal),
		fake_test(test_send_error),
		fake_test(test_answer_count),
		fake_test(test_request_size),
		fake_test(test_sequence_wraps),
		fake_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

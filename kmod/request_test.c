// SPDX-License-Identifier: GPL-2.0
/* Attributes of requests: what the policies let pass, and what is made of them. */
#include "test.h"
#include "netlink.h"

/* A request under construction; attributes are put one behind the other. */
struct message {
	struct sk_buff *skb;
	struct nlattr *attrs[KVPOOL_A_POOL_MAX + 1];
	struct netlink_ext_ack extack;
	struct genl_info info;
};

static struct message *message_new(struct kunit *test)
{
	struct message *message = kunit_kzalloc(test, sizeof(*message), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, message);
	message->skb = alloc_skb(4096, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, message->skb);
	message->info.attrs = message->attrs;
	message->info.extack = &message->extack;
	return message;
}

static void put(struct message *message, int attribute, const void *bytes, int size)
{
	nla_put(message->skb, attribute, size, bytes);
}

static void put_u32(struct message *message, int attribute, u32 value)
{
	put(message, attribute, &value, sizeof(value));
}

static void put_u64(struct message *message, int attribute, u64 value)
{
	put(message, attribute, &value, sizeof(value));
}

static void put_text(struct message *message, int attribute, const char *text)
{
	put(message, attribute, text, strlen(text) + 1);
}

/* As generic netlink does it before it calls the command. */
static int parse(struct message *message, u8 command)
{
	u32 i;

	for (i = 0; i < KVPOOL_NL_OPS; i++)
		if (kvpool_nl_ops[i].cmd == command)
			break;
	return __nla_parse(message->attrs, kvpool_nl_ops[i].maxattr, (void *)message->skb->data,
			   message->skb->len, kvpool_nl_ops[i].policy, NL_VALIDATE_STRICT,
			   &message->extack);
}

static int parse_one(struct kunit *test, u8 command, int attribute, const void *bytes, int size)
{
	struct message *message = message_new(test);
	int err;

	put(message, attribute, bytes, size);
	err = parse(message, command);
	kfree_skb(message->skb);
	return err;
}

static void numbers_have_their_range(struct kunit *test)
{
	static const struct {
		u8 command;
		int attribute, size;
		u64 value;
		int err;
	} cases[] = {
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_LENGTH, 8, 0, -ERANGE },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_LENGTH, 8, 1, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_LENGTH, 8, U64_MAX, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_SESSION_FD, 4, U32_MAX, -ERANGE },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_SESSION_FD, 4, 0, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_SESSION_FD, 4, S32_MAX, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_MODE, 4, 0666, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_MODE, 4, 0667, -ERANGE },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_MODE, 4, 0100000, -ERANGE },
		{ KVPOOL_CMD_POOL_SET, KVPOOL_A_POOL_MODE, 4, 0667, -ERANGE },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_LIFETIME, 4, 1, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_LIFETIME, 4, 2, -ERANGE },
		{ KVPOOL_CMD_POOL_SET, KVPOOL_A_POOL_LIFETIME, 4, U32_MAX, -ERANGE },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_PLACEMENT, 4, 1, 0 },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_PLACEMENT, 4, 2, -ERANGE },
		{ KVPOOL_CMD_POOL_CREATE, KVPOOL_A_POOL_RANK, 4, U32_MAX, 0 },
		{ KVPOOL_CMD_POOL_SET, KVPOOL_A_POOL_REGISTRATION, 4, 4, 0 },
		{ KVPOOL_CMD_POOL_SET, KVPOOL_A_POOL_REGISTRATION, 4, 5, -ERANGE },
		{ KVPOOL_CMD_POOL_GET, KVPOOL_A_POOL_ID, 4, 0, -ERANGE },
		{ KVPOOL_CMD_POOL_GET, KVPOOL_A_POOL_ID, 4, U32_MAX, 0 },
		{ KVPOOL_CMD_POOL_DESTROY, KVPOOL_A_POOL_ID, 4, 0, -ERANGE },
		{ KVPOOL_CMD_POOL_CLAIM, KVPOOL_A_POOL_ID, 4, 0, -ERANGE },
		{ KVPOOL_CMD_PIN_GET, KVPOOL_A_POOL_ID, 4, 0, -ERANGE },
		{ KVPOOL_CMD_PIN_GET, KVPOOL_A_POOL_GENERATION, 8, 0, 0 },
	};
	u8 bytes[16] = {};
	u32 i, size;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ_MSG(test, parse_one(test, cases[i].command, cases[i].attribute,
						    &cases[i].value, cases[i].size),
				    cases[i].err, "line %u of the table", i);
		/* One byte more or less is no number. */
		memcpy(bytes, &cases[i].value, sizeof(cases[i].value));
		for (size = 0; size <= sizeof(bytes); size++)
			if (size != cases[i].size)
				KUNIT_EXPECT_EQ_MSG(test, parse_one(test, cases[i].command,
								    cases[i].attribute, bytes,
								    size),
						    -EINVAL, "line %u with %u bytes", i, size);
	}
}

static void texts_end_in_time(struct kunit *test)
{
	static const int texts[] = {
		KVPOOL_A_POOL_NAME, KVPOOL_A_POOL_DOMAIN, KVPOOL_A_POOL_ROLE, KVPOOL_A_POOL_LABEL,
	};
	char text[KVPOOL_NAME_SIZE + 2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		memset(text, 'x', sizeof(text));
		KUNIT_EXPECT_EQ(test, parse_one(test, KVPOOL_CMD_POOL_CREATE, texts[i], text, 0),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, parse_one(test, KVPOOL_CMD_POOL_CREATE, texts[i], text, 1),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, parse_one(test, KVPOOL_CMD_POOL_CREATE, texts[i], text,
						KVPOOL_NAME_SIZE), -EINVAL);
		text[KVPOOL_NAME_SIZE - 1] = 0;
		KUNIT_EXPECT_EQ(test, parse_one(test, KVPOOL_CMD_POOL_CREATE, texts[i], text,
						KVPOOL_NAME_SIZE), 0);
		text[KVPOOL_NAME_SIZE - 1] = 'x';
		text[KVPOOL_NAME_SIZE] = 0;
		KUNIT_EXPECT_EQ(test, parse_one(test, KVPOOL_CMD_POOL_CREATE, texts[i], text,
						KVPOOL_NAME_SIZE + 1), -EINVAL);
	}
}

/* Bit n of the mask: attribute n is taken. */
static u64 taken(struct kunit *test, u8 command)
{
	u8 bytes[8] = { 1 };
	u64 mask = 0;
	int type;

	for (type = 1; type <= KVPOOL_A_POOL_MAX + 1; type++) {
		/* Of one length or the other: a number, a short text, a flag. */
		if (!parse_one(test, command, type, bytes, 4) ||
		    !parse_one(test, command, type, bytes, 8) ||
		    !parse_one(test, command, type, "a", 2) ||
		    !parse_one(test, command, type, NULL, 0))
			mask |= BIT_ULL(type);
	}
	return mask;
}

static void each_command_takes_its_own(struct kunit *test)
{
	const u64 target = BIT_ULL(KVPOOL_A_POOL_SESSION_FD) | BIT_ULL(KVPOOL_A_POOL_ID) |
			   BIT_ULL(KVPOOL_A_POOL_GENERATION);
	const u64 tags = BIT_ULL(KVPOOL_A_POOL_ROLE) | BIT_ULL(KVPOOL_A_POOL_LABEL) |
			 BIT_ULL(KVPOOL_A_POOL_RANK) | BIT_ULL(KVPOOL_A_POOL_LIFETIME) |
			 BIT_ULL(KVPOOL_A_POOL_UID) | BIT_ULL(KVPOOL_A_POOL_GID) |
			 BIT_ULL(KVPOOL_A_POOL_MODE);

	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_POOL_CREATE), tags |
			BIT_ULL(KVPOOL_A_POOL_SESSION_FD) | BIT_ULL(KVPOOL_A_POOL_NAME) |
			BIT_ULL(KVPOOL_A_POOL_DOMAIN) | BIT_ULL(KVPOOL_A_POOL_LENGTH) |
			BIT_ULL(KVPOOL_A_POOL_NODE) | BIT_ULL(KVPOOL_A_POOL_PLACEMENT) |
			BIT_ULL(KVPOOL_A_POOL_DEFERRED));
	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_POOL_DESTROY),
			target | BIT_ULL(KVPOOL_A_POOL_FORCE));
	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_POOL_GET), BIT_ULL(KVPOOL_A_POOL_ID) |
			BIT_ULL(KVPOOL_A_POOL_GENERATION) | BIT_ULL(KVPOOL_A_POOL_NAME));
	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_POOL_SET),
			target | tags | BIT_ULL(KVPOOL_A_POOL_REGISTRATION));
	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_POOL_CLAIM), target);
	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_PIN_GET), BIT_ULL(KVPOOL_A_POOL_ID) |
			BIT_ULL(KVPOOL_A_POOL_GENERATION));
	KUNIT_EXPECT_EQ(test, taken(test, KVPOOL_CMD_STATS_GET), 0);
}

static struct message *smallest(struct kunit *test)
{
	struct message *message = message_new(test);

	put_u64(message, KVPOOL_A_POOL_LENGTH, 1);
	put_text(message, KVPOOL_A_POOL_DOMAIN, "kv");
	return message;
}

/* The errno of a request to create, and the text that goes with it. */
static void expect_request(struct kunit *test, struct message *message, int err, const char *text)
{
	struct kvpool_request request;

	KUNIT_ASSERT_EQ(test, parse(message, KVPOOL_CMD_POOL_CREATE), 0);
	KUNIT_EXPECT_EQ_MSG(test, kvpool_request_pool(&message->info, &request), err, "%s",
			    text ?: "");
	if (text)
		KUNIT_EXPECT_STREQ(test, message->extack._msg, text);
	kfree_skb(message->skb);
}

static void what_is_not_given_has_a_default(struct kunit *test)
{
	struct message *message = smallest(test);
	struct kvpool_request request;

	KUNIT_ASSERT_EQ(test, parse(message, KVPOOL_CMD_POOL_CREATE), 0);
	KUNIT_ASSERT_EQ(test, kvpool_request_pool(&message->info, &request), 0);
	kfree_skb(message->skb);
	KUNIT_EXPECT_EQ(test, request.length, 1);
	KUNIT_EXPECT_EQ(test, request.node, KVPOOL_NO_NODE);
	KUNIT_EXPECT_EQ(test, request.placement, KVPOOL_PLACEMENT_PREFERRED);
	KUNIT_EXPECT_STREQ(test, request.tags.domain, "kv");
	KUNIT_EXPECT_STREQ(test, request.tags.name, "");
	KUNIT_EXPECT_STREQ(test, request.tags.role, "");
	KUNIT_EXPECT_STREQ(test, request.tags.label, "");
	KUNIT_EXPECT_EQ(test, request.tags.rank, KVPOOL_NO_RANK);
	KUNIT_EXPECT_EQ(test, request.tags.lifetime, KVPOOL_LIFETIME_OWNER);
	KUNIT_EXPECT_EQ(test, request.tags.mode, 0600);
	KUNIT_EXPECT_TRUE(test, uid_eq(request.tags.uid, current_fsuid()));
	KUNIT_EXPECT_TRUE(test, gid_eq(request.tags.gid, current_fsgid()));
}

static void what_is_given_arrives(struct kunit *test)
{
	struct message *message = message_new(test);
	struct kvpool_request request;
	u32 node = first_memory_node;

	put_u64(message, KVPOOL_A_POOL_LENGTH, (u64)U32_MAX << KVPOOL_BLOCK_SHIFT);
	put_text(message, KVPOOL_A_POOL_DOMAIN, "kv-1_B");
	put_text(message, KVPOOL_A_POOL_NAME, "draft");
	put_text(message, KVPOOL_A_POOL_ROLE, "role");
	put_text(message, KVPOOL_A_POOL_LABEL, " ~a \"label\" ");
	put_u32(message, KVPOOL_A_POOL_RANK, 0);
	put_u32(message, KVPOOL_A_POOL_LIFETIME, KVPOOL_LIFETIME_PERSISTENT);
	put_u32(message, KVPOOL_A_POOL_UID, 1000);
	put_u32(message, KVPOOL_A_POOL_GID, 1001);
	put_u32(message, KVPOOL_A_POOL_MODE, 0640);
	put_u32(message, KVPOOL_A_POOL_NODE, node);
	put_u32(message, KVPOOL_A_POOL_PLACEMENT, KVPOOL_PLACEMENT_STRICT);
	KUNIT_ASSERT_EQ(test, parse(message, KVPOOL_CMD_POOL_CREATE), 0);
	KUNIT_ASSERT_EQ(test, kvpool_request_pool(&message->info, &request), 0);
	kfree_skb(message->skb);
	KUNIT_EXPECT_EQ(test, request.length, (u64)U32_MAX << KVPOOL_BLOCK_SHIFT);
	KUNIT_EXPECT_EQ(test, request.node, node);
	KUNIT_EXPECT_EQ(test, request.placement, KVPOOL_PLACEMENT_STRICT);
	KUNIT_EXPECT_STREQ(test, request.tags.domain, "kv-1_B");
	KUNIT_EXPECT_STREQ(test, request.tags.name, "draft");
	KUNIT_EXPECT_STREQ(test, request.tags.role, "role");
	KUNIT_EXPECT_STREQ(test, request.tags.label, " ~a \"label\" ");
	KUNIT_EXPECT_EQ(test, request.tags.rank, 0);
	KUNIT_EXPECT_EQ(test, request.tags.lifetime, KVPOOL_LIFETIME_PERSISTENT);
	KUNIT_EXPECT_EQ(test, request.tags.mode, 0640);
	KUNIT_EXPECT_EQ(test, __kuid_val(request.tags.uid), 1000);
	KUNIT_EXPECT_EQ(test, __kgid_val(request.tags.gid), 1001);
}

static void requests_without_sense_are_refused(struct kunit *test)
{
	struct message *message = message_new(test);

	expect_request(test, message, -EINVAL, "length: must be given");
	message = message_new(test);
	put_u64(message, KVPOOL_A_POOL_LENGTH, 1);
	expect_request(test, message, -EINVAL, "domain: must be given");
	message = smallest(test);
	put_u64(message, KVPOOL_A_POOL_LENGTH, ((u64)U32_MAX << KVPOOL_BLOCK_SHIFT) + 1);
	expect_request(test, message, -EINVAL,
		       "length: 9007199252643841 bytes are more than any machine has");
	message = smallest(test);
	put_text(message, KVPOOL_A_POOL_DOMAIN, "");
	expect_request(test, message, -EINVAL, "domain: must not be empty");
	message = smallest(test);
	put_text(message, KVPOOL_A_POOL_NAME, "");
	expect_request(test, message, -EINVAL, "name: must not be empty");
	message = smallest(test);
	put_text(message, KVPOOL_A_POOL_NAME, "control");
	expect_request(test, message, -EINVAL, "name: \"control\" is the control node's");
	message = smallest(test);
	put_text(message, KVPOOL_A_POOL_NAME, "..");
	expect_request(test, message, -EINVAL, "name: only A-Z a-z 0-9 _ and - are allowed");
	message = smallest(test);
	put_text(message, KVPOOL_A_POOL_LABEL, "\x7f");
	expect_request(test, message, -EINVAL,
		       "label: only printable ASCII characters are allowed");
	message = smallest(test);
	put_u32(message, KVPOOL_A_POOL_MODE, 0111);
	expect_request(test, message, -EINVAL,
		       "mode: only read and write bits (0666) are allowed");
	message = smallest(test);
	put_u32(message, KVPOOL_A_POOL_UID, U32_MAX);
	expect_request(test, message, -EINVAL, "uid or gid has no meaning in this user namespace");
	message = smallest(test);
	put_u32(message, KVPOOL_A_POOL_PLACEMENT, KVPOOL_PLACEMENT_STRICT);
	expect_request(test, message, -EINVAL, "placement: strict needs a node");
	message = smallest(test);
	put_u32(message, KVPOOL_A_POOL_NODE, U32_MAX);
	expect_request(test, message, -ENODEV, "node: there is no node 4294967295 with memory");
	message = smallest(test);
	put_u32(message, KVPOOL_A_POOL_NODE, MAX_NUMNODES - 1);
	expect_request(test, message, -ENODEV, NULL);
}

static void a_change_keeps_the_rest(struct kunit *test)
{
	struct kvpool_tags tags = {
		.name = "n", .domain = "d", .role = "r", .label = "l", .rank = 5, .mode = 0644,
	};
	u32 registration = KVPOOL_REGISTRATION_REGISTERING;
	struct message *message = message_new(test);

	put_text(message, KVPOOL_A_POOL_ROLE, "");
	put_u32(message, KVPOOL_A_POOL_REGISTRATION, KVPOOL_REGISTRATION_FAILED);
	KUNIT_ASSERT_EQ(test, parse(message, KVPOOL_CMD_POOL_SET), 0);
	KUNIT_EXPECT_EQ(test, kvpool_request_tags(&message->info, &tags, &registration), 0);
	kfree_skb(message->skb);
	KUNIT_EXPECT_STREQ(test, tags.name, "n");
	KUNIT_EXPECT_STREQ(test, tags.domain, "d");
	KUNIT_EXPECT_STREQ(test, tags.role, "");
	KUNIT_EXPECT_STREQ(test, tags.label, "l");
	KUNIT_EXPECT_EQ(test, tags.rank, 5);
	KUNIT_EXPECT_EQ(test, tags.mode, 0644);
	KUNIT_EXPECT_EQ(test, registration, KVPOOL_REGISTRATION_FAILED);
}

static struct kunit_case request_cases[] = {
	KUNIT_CASE(numbers_have_their_range),
	KUNIT_CASE(texts_end_in_time),
	KUNIT_CASE(each_command_takes_its_own),
	KUNIT_CASE(what_is_not_given_has_a_default),
	KUNIT_CASE(what_is_given_arrives),
	KUNIT_CASE(requests_without_sense_are_refused),
	KUNIT_CASE(a_change_keeps_the_rest),
	{}
};

static struct kunit_suite request_suite = {
	.name		= "kvpool_request",
	.test_cases	= request_cases,
};

kunit_test_suite(request_suite);

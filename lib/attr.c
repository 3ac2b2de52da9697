// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading netlink messages and attributes. The kernel is trusted not to be
 * hostile, but another version of the module may send what this library does not
 * know, and that must end in an error, never in a read behind the message.
 */
#include "netlink.h"

/* Of any message that becomes a struct. */
#define ATTRIBUTE_MAX 63
_Static_assert((int)KVPOOL_A_POOL_MAX <= ATTRIBUTE_MAX &&
	       (int)KVPOOL_A_STATS_MAX <= ATTRIBUTE_MAX &&
	       (int)KVPOOL_A_RESERVE_MAX <= ATTRIBUTE_MAX, "the table must hold every attribute");

static int parse(const struct nlattr *attr, const char *end, const struct nlattr **table,
		 uint16_t max)
{
	uint16_t type;

	memset(table, 0, (max + 1u) * sizeof(*table));
	for (; mnl_attr_ok(attr, (int)(end - (const char *)attr)); attr = mnl_attr_next(attr)) {
		type = mnl_attr_get_type(attr);
		if (type <= max)
			table[type] = attr;
	}
	/* The loop also ends at an attribute that is longer than what is left. */
	return (const char *)attr < end ? -EPROTO : 0;
}

bool kvp_message_ok(const struct nlmsghdr *message, int left)
{
	return left >= (int)sizeof(*message) && message->nlmsg_len >= sizeof(*message) &&
	       message->nlmsg_len <= (uint32_t)left;
}

int kvp_attrs_parse(const struct nlmsghdr *message, size_t offset, const struct nlattr **table,
		    uint16_t max)
{
	if (mnl_nlmsg_get_payload_len(message) < offset)
		return -EPROTO;
	return parse(mnl_nlmsg_get_payload_offset(message, offset),
		     mnl_nlmsg_get_payload_tail(message), table, max);
}

int kvp_attrs_parse_nested(const struct nlattr *nest, const struct nlattr **table, uint16_t max)
{
	const char *start = mnl_attr_get_payload(nest);

	return parse((const struct nlattr *)(const void *)start,
		     start + mnl_attr_get_payload_len(nest), table, max);
}

static int fixed(const struct nlattr *attr, void *value, size_t size)
{
	if (!attr || mnl_attr_get_payload_len(attr) != size)
		return -EPROTO;
	/* Attributes are aligned to 4 bytes only. */
	memcpy(value, mnl_attr_get_payload(attr), size);
	return 0;
}

int kvp_attr_u16(const struct nlattr *attr, uint16_t *value)
{
	return fixed(attr, value, sizeof(*value));
}

int kvp_attr_u32(const struct nlattr *attr, uint32_t *value)
{
	return fixed(attr, value, sizeof(*value));
}

int kvp_attr_u64(const struct nlattr *attr, uint64_t *value)
{
	return fixed(attr, value, sizeof(*value));
}

int kvp_attr_text(const struct nlattr *attr, char *text, size_t size)
{
	const char *payload;
	size_t length;

	if (!attr)
		return -EPROTO;
	payload = mnl_attr_get_payload(attr);
	length = strnlen(payload, mnl_attr_get_payload_len(attr));
	if (length == mnl_attr_get_payload_len(attr) || length >= size)
		return -EPROTO;
	memcpy(text, payload, length + 1);
	return 0;
}

static int parse_field(const struct nlattr *attr, const struct kvp_field *field, char *object)
{
	void *member = object + field->offset;
	int present;

	switch (field->type) {
	case KVP_FIELD_U32:
		return fixed(attr, member, sizeof(uint32_t));
	case KVP_FIELD_U64:
		return fixed(attr, member, sizeof(uint64_t));
	case KVP_FIELD_NAME:
		return kvp_attr_text(attr, member, KVP_NAME_SIZE);
	case KVP_FIELD_FLAG:
		present = !!attr;
		memcpy(member, &present, sizeof(present));
		return 0;
	}
	return -EPROTO;
}

int kvp_fields_parse(const struct nlmsghdr *message, const struct kvp_field *fields, size_t count,
		     void *object)
{
	const struct nlattr *table[ATTRIBUTE_MAX + 1];
	int err;
	size_t i;

	err = kvp_attrs_parse(message, GENL_HDRLEN, table, ATTRIBUTE_MAX);
	for (i = 0; i < count && !err; i++)
		if (table[fields[i].attribute] || !fields[i].optional)
			err = parse_field(table[fields[i].attribute], &fields[i], object);
	return err;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The script of the stand-in: steps, and the bytes of netlink messages. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_script.h"

/* The script's own memory is not the library's: it takes no part in failing allocations. */
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);

static void *grow(void *old, size_t count, size_t size)
{
	void *all = __real_reallocarray(old, count + 1, size);

	assert_non_null(all);
	memset((char *)all + count * size, 0, size);
	return all;
}

void fake_script_free(void)
{
	size_t i, j;

	for (i = 0; i < fake.count; i++) {
		for (j = 0; j < fake.steps[i].datagram_count; j++) {
			free(fake.steps[i].datagrams[j].bytes);
			free(fake.steps[i].datagrams[j].messages);
		}
		free(fake.steps[i].datagrams);
	}
	free(fake.steps);
	fake.steps = NULL;
	fake.count = 0;
	fake.position = 0;
}

const char *step_name(const struct step *step)
{
	static const char *const names[] = {
		[STEP_OPEN] = "open", [STEP_IOCTL] = "ioctl", [STEP_MMAP] = "mmap",
		[STEP_MPROTECT] = "mprotect", [STEP_REQUEST] = "request", [STEP_EVENTS] = "events",
	};

	return names[step->kind];
}

/* ------------------------------------------------------------------- steps */

static struct step *step_add(enum step_kind kind)
{
	fake.steps = grow(fake.steps, fake.count, sizeof(*fake.steps));
	fake.steps[fake.count].kind = kind;
	return &fake.steps[fake.count++];
}

static struct step *step_last(void)
{
	assert_true(fake.count);
	return &fake.steps[fake.count - 1];
}

void fake_open(const char *path, int access, int err, const char *content)
{
	struct step *step = step_add(STEP_OPEN);

	step->path = path;
	step->access = access;
	step->err = err;
	step->content = content;
}

void fake_ioctl(unsigned long command, int (*kernel)(void *argument, void *context), void *context)
{
	struct step *step = step_add(STEP_IOCTL);

	step->command = command;
	step->kernel = kernel;
	step->context = context;
}

void fake_tamper(void (*tamper)(void *argument))
{
	step_last()->tamper = tamper;
}

void fake_mmap(size_t length, int protection, int err)
{
	struct step *step = step_add(STEP_MMAP);

	step->length = length;
	step->access = protection;
	step->err = err;
}

void fake_mprotect(int protection, int err)
{
	struct step *step = step_add(STEP_MPROTECT);

	step->access = protection;
	step->err = err;
}

/* ---------------------------------------------------------------- requests */

void fake_request(uint16_t family, uint8_t command, uint16_t flags)
{
	struct step *step = step_add(STEP_REQUEST);

	step->family = family;
	step->request = command;
	step->flags = flags;
}

void fake_events(void)
{
	step_add(STEP_EVENTS);
}

static struct want *want_add(uint16_t type, uint16_t size, const void *data)
{
	struct step *step = step_last();
	struct want *want = &step->wants[step->want_count++];

	assert_true(step->want_count <= WANT_MAX && size <= sizeof(want->data));
	want->type = type;
	want->size = size;
	memcpy(want->data, data, size);
	return want;
}

void fake_want_u32(uint16_t type, uint32_t value)
{
	want_add(type, sizeof(value), &value);
}

void fake_want_u64(uint16_t type, uint64_t value)
{
	want_add(type, sizeof(value), &value);
}

void fake_want_text(uint16_t type, const char *value)
{
	want_add(type, (uint16_t)(strlen(value) + 1), value);
}

void fake_want_flag(uint16_t type)
{
	want_add(type, 0, "");
}

void fake_want_session(void)
{
	want_add(KVPOOL_A_POOL_SESSION_FD, sizeof(int), "\0\0\0")->session = true;
}

static void check_attribute(const struct step *step, const struct nlattr *attr, bool *seen)
{
	const uint16_t type = mnl_attr_get_type(attr), size = mnl_attr_get_payload_len(attr);
	int fd;
	size_t i;

	for (i = 0; i < step->want_count; i++)
		if (step->wants[i].type == type && !seen[i])
			break;
	if (i == step->want_count) {
		fake_trouble("attribute %u of request %u was not expected", type, step->request);
		return;
	}
	seen[i] = true;
	if (step->wants[i].session) {
		memcpy(&fd, mnl_attr_get_payload(attr), sizeof(fd));
		if (size != sizeof(fd) || fcntl(fd, F_GETFD) < 0)
			fake_trouble("descriptor %d of request %u is not open", fd, step->request);
	} else if (size != step->wants[i].size ||
		   memcmp(mnl_attr_get_payload(attr), step->wants[i].data, size)) {
		fake_trouble("attribute %u of request %u has another value", type, step->request);
	}
}

/* Now it is known where in the request the attribute stands that an extack points at. */
static void note_offset(const struct step *step, uint16_t type, size_t offset)
{
	size_t i;

	for (i = 0; i < step->datagram_count; i++)
		if (step->datagrams[i].offset_at && step->datagrams[i].offset_type == type)
			step->datagrams[i].offset = (uint32_t)offset;
}

void script_check_request(const struct step *step, const void *data, size_t size)
{
	const struct nlmsghdr *header = data;
	const struct genlmsghdr *generic;
	bool seen[WANT_MAX] = { false };
	const struct nlattr *attr;
	size_t i;

	if (size < NLMSG_HDRLEN + GENL_HDRLEN || header->nlmsg_len != size) {
		fake_trouble("a request of %zu bytes says it has %u", size, header->nlmsg_len);
		return;
	}
	generic = mnl_nlmsg_get_payload(header);
	if (header->nlmsg_type != step->family || generic->cmd != step->request ||
	    header->nlmsg_flags != (NLM_F_REQUEST | step->flags) || generic->version != 1)
		fake_trouble("request %u of family 0x%x, flags 0x%x, version %u; expected was %u of 0x%x, 0x%x",
			     generic->cmd, header->nlmsg_type, header->nlmsg_flags,
			     generic->version, step->request, step->family,
			     (unsigned int)(NLM_F_REQUEST | step->flags));
	mnl_attr_for_each(attr, header, GENL_HDRLEN) {
		check_attribute(step, attr, seen);
		note_offset(step, mnl_attr_get_type(attr),
			    (size_t)((const char *)attr - (const char *)data));
	}
	for (i = 0; i < step->want_count; i++)
		if (!seen[i])
			fake_trouble("attribute %u of request %u is missing", step->wants[i].type,
				     step->request);
}

/* ----------------------------------------------------------------- answers */

static struct datagram *datagram_last(void)
{
	struct step *step = step_last();

	assert_true(step->datagram_count);
	return &step->datagrams[step->datagram_count - 1];
}

void fake_datagram(void)
{
	struct step *step = step_last();

	assert_true(step->kind == STEP_REQUEST || step->kind == STEP_EVENTS);
	step->datagrams = grow(step->datagrams, step->datagram_count, sizeof(*step->datagrams));
	step->datagrams[step->datagram_count].bytes = __real_calloc(1, DATAGRAM_SIZE);
	assert_non_null(step->datagrams[step->datagram_count].bytes);
	step->datagram_count++;
}

void fake_receive_error(int err)
{
	fake_datagram();
	datagram_last()->err = err;
}

struct nlmsghdr *fake_last(void)
{
	struct datagram *datagram = datagram_last();

	assert_true(datagram->message_count);
	return (struct nlmsghdr *)(void *)(datagram->bytes +
					   datagram->messages[datagram->message_count - 1]);
}

static void message_start(uint16_t type, uint16_t flags)
{
	struct datagram *datagram = datagram_last();

	datagram->messages = grow(datagram->messages, datagram->message_count, sizeof(size_t));
	datagram->messages[datagram->message_count++] = datagram->size;
	mnl_nlmsg_put_header(datagram->bytes + datagram->size);
	datagram->size += NLMSG_HDRLEN;
	fake_last()->nlmsg_type = type;
	fake_last()->nlmsg_flags = flags;
}

/* Bytes of payload; netlink aligns what follows. */
static void append(const void *data, size_t size)
{
	struct datagram *datagram = datagram_last();

	assert_true(datagram->size + size + 8 < DATAGRAM_SIZE);
	memcpy(datagram->bytes + datagram->size, data, size);
	datagram->size += MNL_ALIGN(size);
	fake_last()->nlmsg_len += (uint32_t)MNL_ALIGN(size);
}

void fake_message(uint16_t type, uint16_t flags, uint8_t command)
{
	const struct genlmsghdr generic = { .cmd = command, .version = 1 };

	message_start(type, flags);
	append(&generic, sizeof(generic));
}

void fake_put(uint16_t type, size_t size, const void *data)
{
	const struct nlattr attr = {
		.nla_type = type, .nla_len = (uint16_t)(sizeof(attr) + size),
	};

	append(&attr, sizeof(attr));
	append(data, size);
}

void fake_put_u16(uint16_t type, uint16_t value)
{
	fake_put(type, sizeof(value), &value);
}

void fake_put_u32(uint16_t type, uint32_t value)
{
	fake_put(type, sizeof(value), &value);
}

void fake_put_u64(uint16_t type, uint64_t value)
{
	fake_put(type, sizeof(value), &value);
}

void fake_put_text(uint16_t type, const char *text)
{
	fake_put(type, strlen(text) + 1, text);
}

#define NEST_DEPTH 4
static size_t nests[NEST_DEPTH];
static unsigned int nest_depth;

void fake_nest(uint16_t type)
{
	assert_true(nest_depth < NEST_DEPTH);
	nests[nest_depth++] = datagram_last()->size;
	fake_put((uint16_t)(type | NLA_F_NESTED), 0, "");
}

void fake_nest_end(void)
{
	struct datagram *datagram = datagram_last();
	size_t start = nests[--nest_depth];
	struct nlattr *attr = (struct nlattr *)(void *)(datagram->bytes + start);

	attr->nla_len = (uint16_t)(datagram->size - start);
}

static void ack_start(int err, bool more)
{
	/* The kernel echoes the header of the request, with NETLINK_CAP_ACK only that. */
	const struct nlmsgerr ack = { .error = err, .msg.nlmsg_len = 64 };

	fake_datagram();
	message_start(NLMSG_ERROR, (uint16_t)(NLM_F_CAPPED | (more ? NLM_F_ACK_TLVS : 0)));
	append(&ack, sizeof(ack));
}

void fake_ack(int err, const char *text)
{
	ack_start(err, text != NULL);
	if (text)
		fake_put_text(NLMSGERR_ATTR_MSG, text);
}

void fake_ack_at(int err, const char *text, uint16_t type)
{
	struct datagram *datagram;

	ack_start(err, true);
	if (text)
		fake_put_text(NLMSGERR_ATTR_MSG, text);
	fake_put_u32(NLMSGERR_ATTR_OFFS, 0);
	datagram = datagram_last();
	datagram->offset_at = datagram->size - sizeof(uint32_t);
	datagram->offset_type = type;
}

void fake_ack_missing(int err, const char *text, uint16_t type)
{
	ack_start(err, true);
	if (text)
		fake_put_text(NLMSGERR_ATTR_MSG, text);
	fake_put_u32(5 /* NLMSGERR_ATTR_MISS_TYPE, since Linux 6.1 */, type);
}

void fake_done(int err, const char *text)
{
	message_start(NLMSG_DONE, (uint16_t)(NLM_F_MULTI | (text ? NLM_F_ACK_TLVS : 0)));
	append(&err, sizeof(err));
	if (text)
		fake_put_text(NLMSGERR_ATTR_MSG, text);
}

void fake_cut(size_t bytes)
{
	datagram_last()->size -= bytes;
}

void script_address(struct datagram *datagram, const struct nlmsghdr *request, uint32_t portid)
{
	struct nlmsghdr *header;
	size_t i;

	for (i = 0; i < datagram->message_count; i++) {
		header = (struct nlmsghdr *)(void *)(datagram->bytes + datagram->messages[i]);
		/* Events are not for one port. */
		if (!request->nlmsg_len)
			continue;
		header->nlmsg_seq += request->nlmsg_seq;
		header->nlmsg_pid += portid;
	}
	if (datagram->offset_at)
		memcpy(datagram->bytes + datagram->offset_at, &datagram->offset,
		       sizeof(datagram->offset));
}

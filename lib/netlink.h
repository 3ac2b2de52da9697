/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generic netlink over libmnl, for the library's own files.
 *
 * A request is built, then sent by kvp_nl_request() or kvp_nl_dump(), which
 * wait for its end: the acknowledgment, or the end of the dump. When the
 * stream can't be trusted any more (a wrong sequence number or port, a message
 * cut short, lost messages), the socket is closed, and the next request opens
 * another: what is left of an old answer can then never pass for a new one.
 */
#ifndef KVP_NETLINK_H
#define KVP_NETLINK_H

#include <linux/genetlink.h>

#include "internal.h"

/* The kernel never makes a datagram of a dump larger. */
#define KVP_NL_BUFFER_SIZE 32768
/* Four names and every number of the largest request fit twice. */
#define KVP_REQUEST_SIZE 1024
/* How often a dump starts anew when pools came or went meanwhile. */
#define KVP_DUMP_TRIES 8

/* ------------------------------------------------------- attributes: attr.c */

/*
 * Sort the attributes of a message (behind `offset` bytes of payload) or of a
 * nest into table[0..max]; absent ones are NULL, unknown ones are left out, of
 * double ones the last counts. -EPROTO: one is cut short.
 */
int kvp_attrs_parse(const struct nlmsghdr *message, size_t offset, const struct nlattr **table,
		    uint16_t max);
int kvp_attrs_parse_nested(const struct nlattr *nest, const struct nlattr **table, uint16_t max);

/* -EPROTO: absent (NULL), of another size, or not a NUL-terminated text that fits. */
int kvp_attr_u16(const struct nlattr *attr, uint16_t *value);
int kvp_attr_u32(const struct nlattr *attr, uint32_t *value);
int kvp_attr_u64(const struct nlattr *attr, uint64_t *value);
int kvp_attr_text(const struct nlattr *attr, char *text, size_t size);

/* How an attribute goes into a struct. */
enum kvp_field_type { KVP_FIELD_U32, KVP_FIELD_U64, KVP_FIELD_NAME, KVP_FIELD_FLAG };

struct kvp_field {
	uint16_t attribute;
	enum kvp_field_type type;
	bool optional;		/* absent: the member keeps its value */
	size_t offset;		/* of the member in the struct */
};

/*
 * Whether a whole message stands there, with `left` bytes to the end. Instead of
 * mnl_nlmsg_ok(), which takes a length of 2^31 or more for a negative one.
 */
bool kvp_message_ok(const struct nlmsghdr *message, int left);

/* Fill *object from a message. -EPROTO as above, or when one is missing. */
int kvp_fields_parse(const struct nlmsghdr *message, const struct kvp_field *fields, size_t count,
		     void *object);

/* ------------------------------------------------------ requests: netlink.c */

struct kvp_request {
	union {
		struct nlmsghdr header;
		char bytes[KVP_REQUEST_SIZE];
	};
	bool full;		/* something did not fit: it is refused when sent */
};

void kvp_request_start(struct kvp_request *request, uint16_t family, uint8_t command,
		       uint8_t version);
void kvp_request_u32(struct kvp_request *request, uint16_t type, uint32_t value);
void kvp_request_u64(struct kvp_request *request, uint16_t type, uint64_t value);
void kvp_request_text(struct kvp_request *request, uint16_t type, const char *text);
void kvp_request_flag(struct kvp_request *request, uint16_t type);

/* Why a request failed: the kernel's words, or ours about its answer. */
struct kvp_reply {
	char text[160];		/* empty: nothing to say beyond the errno */
};

int kvp_nl_open(struct kvp_nl *nl, struct kvp_reply *reply);
void kvp_nl_close(struct kvp_nl *nl);

/*
 * Send and wait for the acknowledgment. With `answer`, exactly one message
 * must come before it; what `answer` returns other than 0 fails the request.
 */
int kvp_nl_request(struct kvp_nl *nl, struct kvp_request *request,
		   int (*answer)(const struct nlmsghdr *message, void *arg), void *arg,
		   struct kvp_reply *reply);

/* Where a dump is gathered. */
struct kvp_dump {
	int (*parse)(const struct nlmsghdr *message, void *item);
	size_t item_size;
	char *items;		/* the caller's to free, also after a failure */
	size_t count;
	size_t capacity;
};

/*
 * Dump. A dump that the kernel marks as interrupted (NLM_F_DUMP_INTR: pools
 * came or went between two of its datagrams) starts anew, KVP_DUMP_TRIES times
 * at most; then -EAGAIN.
 */
int kvp_nl_dump(struct kvp_nl *nl, struct kvp_request *request, struct kvp_dump *dump,
		struct kvp_reply *reply);

/* The same on the context's socket, under its lock; start with kvp_ask_start(). */
void kvp_ask_start(const struct kvp_ctx *ctx, struct kvp_request *request, uint8_t command);
int kvp_ask(struct kvp_ctx *ctx, struct kvp_request *request,
	    int (*answer)(const struct nlmsghdr *message, void *arg), void *arg,
	    struct kvp_reply *reply);
int kvp_ask_dump(struct kvp_ctx *ctx, struct kvp_request *request, struct kvp_dump *dump,
		 struct kvp_reply *reply);

/* Fill `error` with phase request: "what: the reply's text". `advice` NULL: by errno. */
int kvp_ask_fail(struct kvp_error *error, int err, const struct kvp_reply *reply,
		 const char *advice, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* -------------------------------------------------------- the family: family.c */

struct kvp_family {
	uint16_t id;
	uint32_t group;		/* multicast group of the events */
};

int kvp_family_find(struct kvp_nl *nl, struct kvp_family *family, struct kvp_error *error);

/* ---------------------------------------------------- the answers: info.c, pool.c */

/* `arg` is a struct kvp_pool_info. */
int kvp_info_parse(const struct nlmsghdr *message, void *arg);

/* A handle without a descriptor. NULL: no memory. kvp_pool_close() frees it. */
struct kvp_pool *kvp_pool_new(struct kvp_ctx *ctx);
/* Open the pool into a new handle. */
int kvp_pool_attach(struct kvp_pool *pool, uint32_t id, uint64_t generation,
		    enum kvp_access access, struct kvp_error *error);
/* -EACCES when the context can't change anything. */
int kvp_need_write(const struct kvp_ctx *ctx, struct kvp_error *error);
/* -ENOMEM of the library itself. */
int kvp_no_memory(struct kvp_error *error, enum kvp_phase phase);

#endif /* KVP_NETLINK_H */

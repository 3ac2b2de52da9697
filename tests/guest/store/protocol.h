/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What passes the socket between the test store, the shared object through which
 * the library registers at it, and the tests, which tell it what is to go wrong.
 * A request and its answer are each one message of this struct, cut behind the
 * items that it has.
 */
#ifndef STORE_PROTOCOL_H
#define STORE_PROTOCOL_H

#include <stddef.h>

#include "kvpool.h"

/* Its name in journals. */
#define STORE_NAME "teststore"
#define STORE_ITEMS 64
#define STORE_KEY 48

enum store_op {
	/* Of the shared object. */
	STORE_REGISTER,
	STORE_UNREGISTER,
	/* Of whoever has a span registered: keep a copy of its bytes, bring it back. */
	STORE_PUT,
	STORE_GET,
	/* Of the tests. Served while the others hang. */
	STORE_FAULT,
	STORE_RELEASE,		/* what hangs goes on, then what came after it */
	STORE_HUNG,		/* 1: it hangs */
	STORE_HELD,		/* what is registered, in order of registering */
	STORE_CALLS,		/* each register and unregister since the last time */
	STORE_END,
};

/* What is to go wrong with a call. */
enum store_how {
	STORE_WORKS,
	STORE_RETURNS,		/* `code` */
	STORE_HANGS,		/* until STORE_RELEASE; all registering and unregistering waits then */
	STORE_DIES,
	STORE_ANSWERS_GARBAGE,
	STORE_HANGS_UP,		/* closes the connection without an answer */
};

/* Each member of a batch is a call. */
struct store_fault {
	uint32_t op;		/* STORE_REGISTER or STORE_UNREGISTER: a fault of each can be set */
	uint32_t how;		/* enum store_how */
	uint32_t at;		/* so many calls from now work before it */
	uint32_t times;		/* so many calls go wrong; 0: one */
	uint32_t after;		/* not 0: the call is carried out first, then it goes wrong */
	int32_t code;
};

struct store_item {
	struct kvp_span span;
	char pool[KVP_NAME_SIZE];	/* STORE_HELD, STORE_CALLS: name of the pool when it was registered */
	uint64_t cookie;
	uint32_t op;			/* STORE_CALLS */
	int32_t code;
};

struct store_message {
	uint32_t op;
	int32_t code;		/* of an answer: 0, or what the first failed call returned */
	uint32_t count;		/* of items */
	char key[STORE_KEY];	/* STORE_PUT, STORE_GET */
	struct store_fault fault;
	struct store_item items[STORE_ITEMS];
};

static inline size_t store_message_size(const struct store_message *message)
{
	return offsetof(struct store_message, items) +
	       message->count * sizeof(message->items[0]);
}

#endif /* STORE_PROTOCOL_H */

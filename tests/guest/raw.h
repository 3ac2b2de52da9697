/* SPDX-License-Identifier: GPL-2.0 */
/* Netlink messages that the library would never send. */
#ifndef RAW_H
#define RAW_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include "guest.h"
#include "kvpool_netlink.h"

struct raw {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t group;
	char request[8192];
	/* Of the last answer: its attributes, and the text of the acknowledgment. */
	const struct nlattr *attrs[KVPOOL_A_POOL_MAX + 1];
	char last[8192];
	char answer[65536];	/* what was received at last, the acknowledgment too */
	char text[256];
};

/* A socket of its own, by this process; the family is found. */
struct raw *raw_open(void);
void raw_close(struct raw *raw);
/* Start a message; attributes are put by mnl_attr_put*(). */
struct nlmsghdr *raw_start(struct raw *raw, uint8_t command, uint16_t flags);
/* Send it, and take answers until the acknowledgment: its errno, negative or 0. */
int raw_ask(struct raw *raw);
/*
 * Send a dump and call `each` for every pool; negative errno, or how many there
 * were. *torn is set when the kernel says that it was.
 */
int raw_dump(struct raw *raw, void (*each)(struct raw *raw, void *arg), void *arg, bool *torn);
/* The second half of it: read what another process has asked for on this socket. */
int raw_read_dump(struct raw *raw, void (*each)(struct raw *raw, void *arg), void *arg, bool *torn);
/* Attributes of the last answer. */
uint32_t raw_u32(const struct raw *raw, int attribute);
uint64_t raw_u64(const struct raw *raw, int attribute);

/* The acknowledgment of the last raw_ask() says this. */
#define RAW_SAYS(raw, part) \
	do { if (!strstr((raw)->text, part)) \
		FAIL("the kernel does not say \"%s\": \"%s\"", part, (raw)->text); } while (0)

#endif /* RAW_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the stand-in share; tests include fake_kernel.h only. */
#ifndef FAKE_SCRIPT_H
#define FAKE_SCRIPT_H

#include <pthread.h>

#include "fake_kernel.h"

enum step_kind { STEP_OPEN, STEP_IOCTL, STEP_MMAP, STEP_MPROTECT, STEP_REQUEST, STEP_EVENTS };

#define DATAGRAM_SIZE 40000
#define WANT_MAX 16

struct datagram {
	int err;		/* receiving fails instead */
	char *bytes;
	size_t size;
	size_t *messages;	/* where each starts */
	size_t message_count;
	size_t offset_at;	/* where the extack's offset goes, 0: nowhere */
	uint16_t offset_type;	/* of the attribute that it points at */
	uint32_t offset;	/* found in the request when that came */
};

struct want {
	uint16_t type;
	uint16_t size;
	bool session;
	char data[KVP_NAME_SIZE];
};

struct step {
	enum step_kind kind;
	int err;
	/* open */
	const char *path;
	const char *content;
	int access;		/* also the protection of a mapping */
	/* ioctl */
	unsigned long command;
	int (*kernel)(void *argument, void *context);
	void *context;
	void (*tamper)(void *argument);
	struct kvp_pool_info pool;
	/* mmap */
	size_t length;
	/* netlink */
	uint16_t family;
	uint8_t request;
	uint16_t flags;
	struct want wants[WANT_MAX];
	size_t want_count;
	struct datagram *datagrams;
	size_t datagram_count;
};

struct failing {
	unsigned int skip;
	int err;
};

struct fake {
	bool active;
	pthread_mutex_t lock;
	struct step *steps;
	size_t count;
	size_t position;
	struct failing failing[FAKE_CALLS];
	unsigned int alloc_countdown;
	bool alloc_failed;
	int sockets;
	int mappings;
	unsigned int descriptors;
	char trouble[256];
};

extern struct fake fake;

void fake_trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_script_free(void);
const char *step_name(const struct step *step);
int fake_descriptor(void);
/* Whether this call shall fail; sets errno. */
bool fake_fails(enum fake_call call);
/* The next step, when it is of that kind; else it is trouble, and errno is EIO. */
struct step *step_take(enum step_kind kind, const char *what);
/* Compare a request with the step, and note where its attributes stand. */
void script_check_request(const struct step *step, const void *data, size_t size);
/* Add the request's sequence and port to those of the messages. */
void script_address(struct datagram *datagram, const struct nlmsghdr *request, uint32_t portid);

#endif /* FAKE_SCRIPT_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the library's files share. Layers, each of which may call only those
 * above it in this list:
 *   error.c                        no dependency
 *   options.c                      size rule of option structs
 *   netlink.c                      requests and dumps over libmnl
 *   context.c, pool.c, monitor.c   handles of the kernel's objects
 *   span.c, resolve.c              names of memory
 *   list.c, check.c, limits.c      what a transaction needs to know first
 *   registrar.c, verbs.c           what registers
 *   transaction.c                  register, commit, undo
 */
#ifndef KVP_INTERNAL_H
#define KVP_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "kvpool.h"
#include "../uapi/kvpool.h"
#include "../uapi/kvpool_netlink.h"

#define KVP_EXPORT __attribute__((visibility("default")))

/* Fill `error` (may be NULL) and return `err`, a negative errno. `advice` and `device` may be NULL. */
int kvp_fail(struct kvp_error *error, int err, enum kvp_phase phase, uint32_t index,
	     const char *device, const char *advice, const char *format, ...)
	__attribute__((format(printf, 7, 8)));

/*
 * Copy a caller's option struct of `given->struct_size` bytes into `known`
 * (`size` bytes, zeroed first). NULL means all defaults. -E2BIG when the rest
 * of a larger one is not zero, -EINVAL when the size is smaller than size_t.
 */
int kvp_options_copy(void *known, size_t size, const void *given);

struct kvp_ctx {
	int control;		/* descriptor of the control node: the session */
	bool read_only;
	pthread_mutex_t lock;	/* serialises requests on the socket */
	struct mnl_socket *nl;
	uint16_t family;
	uint32_t portid;
	uint32_t seq;
};

struct kvp_pool {
	struct kvp_ctx *ctx;
	int fd;
	bool writable;		/* the descriptor is */
	uint32_t id;
	uint64_t generation;
	uint64_t length;
	uint64_t mapped_length;
	pthread_mutex_t lock;	/* protects addr */
	void *addr;		/* NULL: not mapped */
};

#endif /* KVP_INTERNAL_H */

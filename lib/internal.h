/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the library's files share. Layers, each of which may call only those
 * above it in this list:
 *   error.c                        no dependency
 *   options.c                      size rule of option structs
 *   array.c                        arrays that grow
 *   attr.c, netlink.c, family.c    requests and dumps over libmnl: see netlink.h
 *   mappings.c, context.c, info.c, stats.c, pool.c, query.c, change.c, create.c, monitor.c
 *                                  handles of the kernel's objects
 *   procmaps.c, resolve.c          what memory is
 *   locate.c                       which pool one buffer lies in, or why in none
 *   span.c                         names of memory
 *   list.c, overlap.c, snapshot.c, check.c, limits.c
 *                                  what a transaction needs to know first
 *   thread.c, worker.c, parallel.c, registrar.c, verbs.c, load.c, call.c
 *                                  what registers, and calling it
 *   process.c, journal*.c, recover*.c
 *                                  the durable journal: see journal.h
 *   plan.c, record.c, execute.c, states.c, policy.c, report.c, registration.c,
 *   transaction.c, verify.c        register, commit, undo: see transaction.h
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
#include "journal.h"
#include "../uapi/kvpool.h"
#include "../uapi/kvpool_netlink.h"

#define KVP_EXPORT __attribute__((visibility("default")))

/*
 * Fill `error` (may be NULL) and return `err`, a negative errno. `advice` and
 * `device` may be NULL.
 */
int kvp_fail(struct kvp_error *error, int err, enum kvp_phase phase, uint32_t index,
	     const char *device, const char *advice, const char *format, ...)
	__attribute__((format(printf, 7, 8)));

/*
 * Copy a caller's option struct of `given->struct_size` bytes into `known`
 * (`size` bytes, zeroed first). NULL means all defaults. -E2BIG when the rest
 * of a larger one is not zero, -EINVAL when the size is smaller than size_t.
 */
int kvp_options_copy(void *known, size_t size, const void *given);

/*
 * Room for one more of `size` bytes in the array that the pointer at `items` points
 * to, which has `count` of them and space for *room. -ENOMEM: it is as it was.
 */
int kvp_array_grow(void *items, uint32_t count, uint32_t *room, size_t size);

/* A netlink socket. One thread at a time may use it. */
struct kvp_nl {
	struct mnl_socket *socket;	/* NULL: closed, the next request opens it anew */
	uint32_t portid;
	uint32_t seq;
	char *buffer;			/* KVP_NL_BUFFER_SIZE bytes for what is received */
};

/* A pool that a context created or claimed, and hasn't destroyed: its session owns it. */
struct kvp_owned {
	struct kvp_owned *next;
	uint32_t id;
	uint64_t generation;
	bool created;		/* not claimed: the journal says so */
	bool committed;		/* a registration of it was, once */
};

struct kvp_pool;

struct kvp_domain {
	struct kvp_domain *next;
	char name[KVP_NAME_SIZE];
};

/* One that stands, with all that a span needs. */
struct kvp_mapping {
	uint64_t length;	/* the pool's logical length */
	uint64_t generation;
	const struct kvp_domain *domain;
	uint32_t id;
};

/* Mappings of a context's handles; readers don't keep each other waiting. */
struct kvp_mappings {
	pthread_rwlock_t lock;	/* taken under a pool's lock; protects what follows */
	/* By address; they don't overlap. Apart, so that a search stays in the cache. */
	uint64_t *starts;
	struct kvp_mapping *items;
	uint32_t count, starts_room, items_room;
	struct kvp_domain *domains;	/* each once; they live as long as this */
};

void kvp_mappings_init(struct kvp_mappings *mappings);
void kvp_mappings_free(struct kvp_mappings *mappings);
/* The pool is mapped at its `addr` now, as a whole, whatever was there before. */
void kvp_mappings_add(struct kvp_mappings *mappings, const struct kvp_pool *pool);
/* It is about to be unmapped. */
void kvp_mappings_remove(struct kvp_mappings *mappings, const struct kvp_pool *pool);
/* The pool of that generation was destroyed: its mappings are no memory any more. */
void kvp_mappings_destroyed(struct kvp_mappings *mappings, uint64_t generation);
/*
 * Whether a range lies in one mapping, within the pool's logical length, and the
 * pool is of `domain` (NULL: any): then *span is its. False: ask the kernel.
 */
bool kvp_mappings_find(struct kvp_mappings *mappings, const char *domain, uint64_t addr,
		       uint64_t length, struct kvp_span *span);

struct kvp_ctx {
	int control;		/* descriptor of the control node: the session */
	bool read_only;
	/* What state a pool is in is decided and set under it. Taken before `lock`. */
	pthread_mutex_t states_lock;
	/* Serialises requests on the socket: protects nl, registrations, report. */
	pthread_mutex_t lock;
	struct kvp_nl nl;
	uint16_t family;
	/* Under way, in force, quarantined: registration.c. */
	struct kvp_registration *registrations;
	struct kvp_owned *owned;	/* under the lock as well */
	struct kvp_mappings mappings;
	struct kvp_log log;
	enum kvp_policy policy;		/* never KVP_POLICY_DEFAULT */
	void (*tell)(const char *line, void *arg);	/* NULL: nobody */
	void *tell_arg;
	char client_mode[KVP_NAME_SIZE];
	struct {
		struct kvp_report_item *items;	/* in the order of their first use */
		uint64_t committed, fallbacks, failures;
		struct kvp_error first;
	} report;			/* under the lock: report.c */
};

/* What became of the transactions of a name. */
struct kvp_report_item {
	struct kvp_report_item *next;
	struct kvp_report_entry entry;
};

/* The pool if the context owns it, or NULL; with the lock held. */
struct kvp_owned *kvp_owned_find(const struct kvp_ctx *ctx, uint32_t id, uint64_t generation);
void kvp_owned_free(struct kvp_ctx *ctx);

/* policy.c: take what the options, or the environment, say of it. */
int kvp_policy_start(struct kvp_ctx *ctx, const struct kvp_options *options,
		     struct kvp_error *error);
/* 0 to 63 printable ASCII characters: what people call things. */
bool kvp_label_valid(const char *label);
void kvp_report_free(struct kvp_ctx *ctx);

struct kvp_pool {
	struct kvp_ctx *ctx;
	int fd;
	bool writable;		/* the descriptor is */
	uint32_t id;
	uint64_t generation;
	uint64_t length;
	uint64_t mapped_length;
	char domain[KVP_NAME_SIZE];
	pthread_mutex_t lock;	/* protects addr and map_writable */
	void *addr;		/* NULL: not mapped */
	bool map_writable;	/* the mapping is */
};

/* 1 to 63 of A-Z a-z 0-9 _ -: what a name, domain or role may be. */
bool kvp_name_valid(const char *name);

/* Segments that one call fills; they stand on the stack. */
#define KVP_RESOLVE_SOME 16

/*
 * What backs the beginning of a range, `*resolved` bytes of it, as far as the
 * segments go: neither merged over calls nor with paths. Errors of kvp_resolve().
 */
int kvp_resolve_some(struct kvp_ctx *ctx, uint64_t addr, uint64_t length,
		     struct kvp_segment segments[KVP_RESOLVE_SOME], uint32_t *count,
		     uint64_t *resolved, struct kvp_error *error);

/* The two are one stretch of memory with one backing, and for a pool of one span. */
bool kvp_segment_continues(const struct kvp_segment *last, const struct kvp_segment *next);

/*
 * Whether a buffer is in order, by a segment that holds all of it: then *span is
 * its. False says no more than that kvp_locate() has to be asked.
 */
bool kvp_locate_in(const struct kvp_segment *segment, const char *domain,
		   const struct kvp_buffer *buffer, struct kvp_span *span);
/*
 * Find the one pool of `domain` (NULL: of any) that `buffer` lies in. 0 and
 * *span, or an error of kvp_check() for a single buffer, with its text in
 * `error`. `index` is what the text calls the buffer; KVP_NONE: no name.
 * `asked` (may be NULL) becomes false when the kernel could not be asked at
 * all: the error then says nothing about the buffer.
 */
int kvp_locate(struct kvp_ctx *ctx, const char *domain, const struct kvp_buffer *buffer,
	       uint32_t index, struct kvp_span *span, bool *asked, struct kvp_error *error);

#endif /* KVP_INTERNAL_H */

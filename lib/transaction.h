/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of a transaction share. What will be registered (the plan),
 * what has happened to each part of it (the record) and how it is done
 * (execute) are apart, so that the record can be made durable and the doing
 * parallel without the others noticing.
 */
#ifndef KVP_TRANSACTION_H
#define KVP_TRANSACTION_H

#include "internal.h"
#include "journal.h"

/* ------------------------------------ list.c, overlap.c, snapshot.c, check.c */

/* 0 when the list is sealed and holds a buffer; else why not, a failure to seal it repeated. */
int kvp_list_ready(const struct kvp_list *list, struct kvp_error *error);
/* Bytes of all buffers of a sealed list, and how many these are. */
uint64_t kvp_list_length(const struct kvp_list *list, uint32_t *count);

/* The buffers that have a range, in ascending order of addresses: neither empty nor wrapping. */
struct kvp_sorted {
	const struct kvp_buffer **buffers;
	uint32_t count;
	uint64_t end;		/* of the one that ends last */
	bool overlap;		/* some share a byte: kvp_overlap_find() says which */
};

int kvp_sorted_init(struct kvp_sorted *sorted, const struct kvp_buffer *buffers, uint32_t count);
void kvp_sorted_free(struct kvp_sorted *sorted);

/*
 * For each buffer the lowest index of an earlier one that shares a byte with
 * it, or KVP_NONE. Empty buffers and those that wrap share with none. -ENOMEM.
 */
int kvp_overlap_find(const struct kvp_buffer *buffers, uint32_t count, uint32_t *earlier);

/* Pools' memory, in ascending order of addresses. */
struct kvp_snapshot {
	struct kvp_segment *segments;
	uint32_t count, room;
};

/* Of all buffers; without some, or all, where it can't be had: they are asked for by themselves. */
void kvp_snapshot_take(struct kvp_ctx *ctx, const struct kvp_sorted *sorted,
		       struct kvp_snapshot *snapshot);
/* The segment that holds all of a range, or NULL. */
const struct kvp_segment *kvp_snapshot_find(const struct kvp_snapshot *snapshot, uint64_t addr,
					    uint64_t length);
void kvp_snapshot_free(struct kvp_snapshot *snapshot);

/* 0 or -EINVAL: NULL, or no name that a pool's domain could have. */
int kvp_check_domain(const char *domain, struct kvp_error *error);
/*
 * kvp_check() that keeps the spans. `index` is the caller's index of each
 * position, NULL when they are the same. `spans` and `results` may be NULL; a
 * span is valid where the result is 0.
 */
int kvp_check_spans(struct kvp_ctx *ctx, const char *domain, const struct kvp_buffer *buffers,
		    const uint32_t *index, uint32_t count, int *results, struct kvp_span *spans,
		    struct kvp_error *error);

/* ------------------------------------------------------------------ limits.c */

/* What the kernel's accounting of pinned memory allows this process. */
struct kvp_memlock {
	uint64_t limit;		/* bytes, soft limit; UINT64_MAX: none */
	uint64_t used;		/* bytes pinned now, by all devices */
	bool exempt;		/* CAP_IPC_LOCK in the initial user namespace */
};

/* What a plan needs of it. */
struct kvp_memlock_need {
	uint32_t devices;	/* that pin */
	uint64_t per_device;	/* bytes; 0: not the same at each */
	uint64_t total;		/* bytes */
};

/* Take `used` and `exempt` from the text of a status file of /proc. -EPROTO: no such lines. */
int kvp_memlock_parse(const char *status, uint64_t user_namespace, struct kvp_memlock *memlock);
int kvp_memlock_read(struct kvp_memlock *memlock, struct kvp_error *error);
int kvp_memlock_check(const struct kvp_memlock *memlock, const struct kvp_memlock_need *need,
		      struct kvp_error *error);

uint64_t kvp_page_size(void);
/* Bytes that pinning `length` bytes at `addr` counts as: whole pages. */
uint64_t kvp_pinned_bytes(uint64_t addr, uint64_t length);

/* How a buffer is cut: a first chunk, then chunks of `step` bytes; the last may be shorter. */
struct kvp_split {
	uint64_t first;
	uint64_t step;
	uint64_t chunks;
};

/*
 * Cut `buffer` into the fewest chunks of at most `max_length` bytes (0: no
 * limit). Borders fall on multiples of the buffer's block, counted from its
 * start, and on pages when its start does. -EMSGSIZE when there is no such
 * border within max_length.
 */
int kvp_split(const struct kvp_buffer *buffer, uint64_t max_length, struct kvp_split *split);
/* Offset and length of the n-th chunk. */
void kvp_split_chunk(const struct kvp_split *split, uint64_t length, uint64_t n,
		     uint64_t *offset, uint64_t *chunk_length);

/* --------------------------------------------------------- registrar.c, verbs.c, load.c */

struct kvp_registrar {
	struct kvp_registrar_ops ops;
	void *arg;
	char name[KVP_NAME_SIZE];	/* empty: none */
	uint32_t devices;
	bool verbs;			/* cookies are struct ibv_mr * */
	struct kvp_worker *worker;	/* NULL: no time limit */
	pthread_mutex_t turn;		/* held during a call, unless it takes several at once */
	void (*release)(void *arg);	/* NULL: arg is the caller's */
};

/* Never NULL. */
const char *kvp_registrar_device(const struct kvp_registrar *registrar, uint32_t device);
/*
 * Make a negative errno of what a function of the caller returned. Positive
 * values and those that are no errno are codes of an engine: -EREMOTEIO, and
 * *foreign is set.
 */
int kvp_returned(int value, bool *foreign);

/* ------------------------------------------------------------------ thread.c */

/* pthread_create() of a thread that signals to the process are not delivered to. -EAGAIN. */
int kvp_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* ------------------------------------------------------------------ worker.c */

/* A thread that does one thing at a time for whoever waits for it, up to a limit. */
struct kvp_worker;

/* `limit` in nanoseconds. -EAGAIN, -ENOMEM. */
int kvp_worker_new(uint64_t limit, struct kvp_worker **worker);
/*
 * Have `work` called. 0: it has returned. -ETIMEDOUT: it still runs, and `data`
 * is handed to `drop` by the thread when it has returned. -EBUSY: an earlier one
 * still runs, and this one was not called. One caller at a time: a registrar's turn.
 */
int kvp_worker_do(struct kvp_worker *worker, void (*work)(void *data), void *data,
		  void (*drop)(void *data));
/* Whether something runs that its caller no longer waits for. */
bool kvp_worker_late(struct kvp_worker *worker);
/*
 * Have `last` called by the thread, and end it. Waits for that up to the limit,
 * and not at all when it is late: the thread then ends when it gets there.
 */
void kvp_worker_free(struct kvp_worker *worker, void (*last)(void *data), void *data);

/* ---------------------------------------------------------------- parallel.c */

/* Who does the work of a transaction: struct kvp_transaction_options. */
struct kvp_crew {
	uint32_t threads;	/* 0 is 1: the caller's alone */
	void (*run)(void (*work)(void *data), void *data, uint32_t count, void *arg);
	void *arg;
};

/* Have `work` called by all of them; returns when the last has returned. */
void kvp_parallel(const struct kvp_crew *crew, void (*work)(void *data), void *data);

/* -------------------------------------------------------------------- call.c */

/* Most chunks of one batch, so that the arrays of a call stay small. */
#define KVP_CALL_MAX 1024

/* One call of a registrar, of chunks of one device. */
struct kvp_call {
	uint32_t device;
	bool undo;
	uint32_t count;
	struct kvp_chunk *chunks;
	void **cookies;
	int *results;		/* what became of each, as its function returns it */
	int code;		/* what the function returned for all of them */
	bool made;		/* false: no function was called */
	/* This call, or when not made an earlier one, passed the time limit. */
	bool late;
};

/* Arrays for `count` chunks; kvp_call_free() frees them. -ENOMEM. */
int kvp_call_init(struct kvp_call *call, uint32_t count);
void kvp_call_free(struct kvp_call *call);
/*
 * Carry it out. Never fails as such: see its results. Unregistering at an external
 * registrar what isn't there is a success.
 */
void kvp_call_run(struct kvp_registrar *registrar, struct kvp_call *call);
/* Whether a call of it has passed its time limit and still runs. */
bool kvp_registrar_late(const struct kvp_registrar *registrar);

/* -------------------------------------------------------------------- plan.c */

/* A device of one of the registrars, and what it is asked for. */
struct kvp_target {
	uint32_t registrar;
	uint32_t device;
	uint64_t max_length;	/* 0: no limit */
	uint64_t max_count;
	uint64_t chunks;
	uint64_t pinned;	/* bytes, whole pages */
};

/* What will be registered, in order. */
struct kvp_plan {
	struct kvp_entry *entries;
	uint32_t count;
};

struct kvp_registrar_set {
	struct kvp_registrar **registrars;
	uint32_t count;
};

/* All checks of devices and limits; nothing is registered. kvp_plan_free() after a success. */
int kvp_plan_build(const struct kvp_list *list, const struct kvp_span *spans,
		   const struct kvp_registrar_set *set, struct kvp_plan *plan,
		   struct kvp_error *error);
void kvp_plan_free(struct kvp_plan *plan);

/* ------------------------------------------------------------------ record.c */

/* What has happened to an entry of the plan. */
enum kvp_step {
	KVP_STEP_PLANNED,	/* nothing yet */
	KVP_STEP_INTENT,	/* about to be registered, or not known whether it was */
	KVP_STEP_REFUSED,	/* the registrar failed: not registered */
	KVP_STEP_REGISTERED,
	KVP_STEP_UNDO_INTENT,	/* about to be unregistered */
	KVP_STEP_UNDONE,
	KVP_STEP_QUARANTINED,	/* unregistering failed: may still be registered */
};

struct kvp_record_item {
	/*
	 * Of the entry in the journal: how many were intended before it, which with several
	 * threads is not its place. Entries move up when others go.
	 */
	uint32_t number;
	uint8_t step;		/* enum kvp_step */
};

struct kvp_record {
	struct kvp_record_item *items;	/* by entry */
	uint32_t count;
	struct kvp_log *log;	/* NULL: no durable journal, or not begun */
	uint64_t transaction;	/* number in that journal */
	uint32_t intended;	/* entries of it in the journal; protected by the log's lock */
	uint64_t reserved;	/* bytes of it that this transaction may still write */
};

int kvp_record_init(struct kvp_record *record, uint32_t count);
void kvp_record_free(struct kvp_record *record);
enum kvp_step kvp_record_get(const struct kvp_record *record, uint32_t n);
/*
 * The one place where a step is written down, in the journal too: INTENT and UNDO_INTENT before
 * the registrar is called, the others after it has returned. `code` is what it
 * returned. A failure means that the step is known only to this process: an
 * intent must then not be carried out, an undo must.
 */
int kvp_record_step(struct kvp_registration *registration, uint32_t n, enum kvp_step step,
		    int code);
/* Entry `from` is now entry `to`. */
void kvp_record_compact(struct kvp_record *record, uint32_t from, uint32_t to);

/* ------------------------------------------------------------ registration.c */

/* A pool that a registration covers. */
struct kvp_pool_ref {
	uint32_t id;
	uint64_t generation;
	char name[KVP_NAME_SIZE];	/* empty: not to be seen by this process */
	bool owned;		/* by this context: its registration state is ours to set */
	bool created;		/* by this context */
	bool committed;		/* an earlier registration of it was committed */
};

struct kvp_registration {
	struct kvp_ctx *ctx;
	/*
	 * In ctx->registrations, from before the first entry is registered until it is
	 * freed. Meanwhile others look at it under ctx->lock, under which `entries`,
	 * `count`, their `quarantined`, `committed`, `ending` and `quarantine` change.
	 */
	struct kvp_registration *next;
	struct kvp_entry *entries;	/* in the order of registering */
	uint32_t count;
	struct kvp_record record;
	struct kvp_registrar_set set;
	struct kvp_pool_ref *pools;	/* each once */
	uint32_t pool_count;
	bool committed;
	bool ending;			/* its entries are being undone, or could not be */
	bool registering;		/* its pools are set to REGISTERING; under states_lock */
	struct kvp_report_item *report;	/* of its name */
	struct kvp_crew crew;
	struct kvp_error quarantine;	/* why the first quarantined entry is; err 0: none is */
};

int kvp_registration_new(struct kvp_ctx *ctx, struct kvp_registrar *const *registrars,
			 uint32_t count, struct kvp_registration **registration);
/* Take the entries of a plan. -ENOMEM: the plan keeps them. */
int kvp_registration_take(struct kvp_registration *registration, struct kvp_plan *plan);
/* Learn which of its pools this context created; after a commit, that they were committed. */
void kvp_registration_created(struct kvp_registration *registration);
void kvp_registration_committed(struct kvp_registration *registration);
/* Forget the entries that nothing is registered for any more; `why` of those that are left. */
void kvp_registration_compact(struct kvp_registration *registration, const struct kvp_error *why);
/* Whether entry `n` is quarantined. */
void kvp_registration_quarantine(struct kvp_registration *registration, uint32_t n, bool on);
/* Put it on its context's list. */
void kvp_registration_publish(struct kvp_registration *registration);
/* Set `committed` or `ending` of it. */
void kvp_registration_set(struct kvp_registration *registration, bool *flag);
void kvp_registration_free(struct kvp_registration *registration);
/*
 * -EBUSY when a buffer shares a byte with an entry of the context that is being undone,
 * or quarantined.
 */
int kvp_registration_quarantine_check(struct kvp_ctx *ctx, const struct kvp_list *list,
				      struct kvp_error *error);

/* ------------------------------------------------------------------ states.c */

/*
 * The registration state of the pools in the kernel. It is the pool's, and a
 * pool can be in several registrations: REGISTERING wins as long as one of this
 * context's is under way, then COMMITTED as long as one is in force.
 */
/* Find the pools of `spans`, those without a generation left out, and which the context owns. */
int kvp_states_collect(struct kvp_registration *registration, const struct kvp_span *spans,
		       uint32_t count, struct kvp_error *error);
/* REGISTERING, for all or for none. */
int kvp_states_begin(struct kvp_registration *registration, struct kvp_error *error);
/* Another state, as far as the kernel takes it: what has happened is not undone for it. */
void kvp_states_end(struct kvp_registration *registration, enum kvp_registration_state state);

/* -------------------------------------------------------- policy.c, report.c */

/* The item of that name (NULL: of none), a new one if need be. -EINVAL, -ENOMEM. */
int kvp_report_find(struct kvp_ctx *ctx, const char *name, struct kvp_report_item **item,
		    struct kvp_error *error);
/* What the transaction that begins is about. */
void kvp_report_list(struct kvp_ctx *ctx, struct kvp_report_item *item, const char *domain,
		     const struct kvp_list *list);
/* What has become of it. `error` may be NULL: then nothing failed. */
void kvp_report_note(struct kvp_ctx *ctx, struct kvp_report_item *item,
		     enum kvp_registration_state state, const struct kvp_error *error);
/* Have the caller's log function called for a fallback, if there is one. Nothing may be locked. */
void kvp_policy_tell(const struct kvp_registration *registration, const char *domain,
		     const struct kvp_list *list, const struct kvp_error *error);

/* ----------------------------------------------------------------- execute.c */

/*
 * Register every entry in order, up to the first failure; `error` must be zeroed.
 * Threads beside the caller's may have gone on past it.
 */
int kvp_execute_register(struct kvp_registration *registration, struct kvp_error *error);
/*
 * Unregister in reverse order what is registered or quarantined, past
 * failures. Returns how many are quarantined now; `first` is the first failure.
 */
uint32_t kvp_execute_undo(struct kvp_registration *registration, struct kvp_error *first);

#endif /* KVP_TRANSACTION_H */

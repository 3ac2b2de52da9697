/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libkvpool: pools of pinned huge-page memory, address domains, and
 * registration as a transaction.
 *
 * Conventions of every function here
 *  - Returns 0 (or what is said) on success, a negative errno on failure.
 *    Nothing is printed, nothing exits, no thread and no signal handler is
 *    left behind, and there is no state outside the handles.
 *  - Lengths, offsets and addresses are bytes; times are nanoseconds.
 *  - A `struct kvp_error *` argument may be NULL. When it is not, a failure
 *    fills it, and success leaves it untouched.
 *  - Option structs start with `struct_size`; set it by KVP_INIT(type), which
 *    also zeroes the rest. Zero (or NULL) in any member means the default. A
 *    struct that is larger than the library's is taken when the rest is zero,
 *    and is -E2BIG otherwise.
 *  - Strings that a caller passes in are copied. Pointers that a function
 *    hands out say to whom they belong and for how long.
 *  - Thread-safety: functions on different handles may run at once. One
 *    struct kvp_ctx and one struct kvp_pool may be used by several threads;
 *    a buffer list, a registration or a monitor by one thread at a time.
 *    Requests of one context run one after another, but for the allocation of
 *    a pool's memory, which keeps nobody waiting.
 *    Freeing a handle while another thread uses it is the caller's error.
 *    pthread_cancel() of a thread that is inside a call is not supported: reading an
 *    answer and waiting are cancellation points, and locks and memory would stay
 *    behind. In a thread that may be cancelled, PTHREAD_CANCEL_DISABLE goes around
 *    the calls.
 *  - Any call that asks the kernel may also return -EPROTO (an answer that makes
 *    no sense: module and library don't fit), -ENOBUFS, -EMFILE or -ENOMEM; and
 *    -EPERM from a thread with a user or a capability that whoever opened the
 *    context had not: open it with the rights that it is to be used with.
 *  - fork() and exec() may come at any time, while other threads are inside calls
 *    too. After fork() the child may use the mappings it inherited; for anything
 *    else it must open a context of its own. Every descriptor of the library is
 *    closed by exec(); a child that does not call it keeps session and pools alive.
 */
#ifndef KVPOOL_H
#define KVPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_pd;
struct ibv_mr;

#define KVP_VERSION_MAJOR 0
#define KVP_VERSION_MINOR 1

/* Size of a name, domain, role or label with its NUL. */
#define KVP_NAME_SIZE 64
/* Bytes in a block: the unit of allocation and of pin accounting. */
#define KVP_BLOCK_SIZE ((uint64_t)1 << 21)
/* No rank, no NUMA node, no buffer index. */
#define KVP_NONE UINT32_MAX

#ifdef __cplusplus
#define KVP_INIT(type) \
	([] { type kvp_init = {}; kvp_init.struct_size = sizeof(type); return kvp_init; }())
#else
#define KVP_INIT(type) ((type){ .struct_size = sizeof(type) })
#endif

/* ------------------------------------------------------------------ errors */

/* Where in its work a call was when it failed. */
enum kvp_phase {
	KVP_PHASE_NONE,
	KVP_PHASE_CONNECT,	/* opening the control node, finding the family */
	KVP_PHASE_REQUEST,	/* a request to the kernel about a pool */
	KVP_PHASE_LIST,		/* building a buffer list */
	KVP_PHASE_CHECK,	/* checks before anything is registered */
	KVP_PHASE_REGISTER,	/* registering */
	KVP_PHASE_COMMIT,	/* making the result visible */
	KVP_PHASE_UNDO,		/* unregistering */
	KVP_PHASE_JOURNAL,	/* opening, writing or reading a journal */
	KVP_PHASE_RECOVER,	/* ending what a dead process left */
};

/*
 * What a failure was. `err` is negative, as the call returned it. `message`
 * names the cause with its numbers and the buffer, `advice` what to do about it; neither ends
 * in a full stop or a newline. `index` is the caller's index of the buffer
 * (that of the list as it was built, empty buffers counted), `device` the
 * registrar's name for the device, empty where there is none. `repeated` is
 * set when the call failed only because an earlier one did: the message then
 * says so, and repeats that earlier failure.
 */
struct kvp_error {
	int err;
	enum kvp_phase phase;
	uint32_t index;
	int repeated;
	char device[64];
	char message[256];
	char advice[192];
};

/* "check", "register", ...: a constant string, never NULL. */
const char *kvp_phase_name(enum kvp_phase phase);

/*
 * One line: "phase register, device rxe0: MESSAGE: Cannot allocate memory (12);
 * ADVICE". Writes at most `size` bytes with the NUL; returns the
 * length that the whole line has, as snprintf does.
 */
int kvp_error_format(const struct kvp_error *error, char *text, size_t size);

/* ----------------------------------------------------------------- context */

/*
 * A context is a session of the module: an open control node and a netlink
 * socket. Pools created or claimed through it are owned by it until
 * kvp_close() or the end of the process.
 */
struct kvp_ctx;

/*
 * What a failed registration means to the process. With FALLBACK_L2 it goes on
 * with the pools as plain memory, without the external registration: never by
 * accident, and never without saying so.
 */
enum kvp_policy { KVP_POLICY_DEFAULT, KVP_POLICY_FAIL_CLOSED, KVP_POLICY_FALLBACK_L2 };

const char *kvp_policy_name(enum kvp_policy policy);

struct kvp_options {
	size_t struct_size;
	const char *control_path;	/* default /dev/kvpool/control */
	int read_only;			/* open, resolve and list only: needs no write access */
	/*
	 * Directory of the journal, an absolute path; "" for no journal. NULL: the
	 * environment variable KVPOOL_JOURNAL_DIR, which means the same; without it
	 * /run/kvpool, or $XDG_RUNTIME_DIR/kvpool for a user whose that isn't.
	 */
	const char *journal_dir;
	/*
	 * What kvp_register() does when it fails. Default: the environment variable
	 * KVPOOL_POLICY, "fail_closed" or "fallback_l2"; without it fail_closed.
	 */
	enum kvp_policy policy;
	/*
	 * Told of every fallback: a line of JSON without newline, which lives as long
	 * as the call; docs/policy.md has its members. Called from kvp_register(), by
	 * its thread, with nothing locked.
	 */
	void (*log)(const char *line, void *arg);
	void *log_arg;
	/* The caller's word for how it is deployed ("embedded", "standalone"), for the report. */
	const char *client_mode;
};

/*
 * Open a context. `options` may be NULL.
 *
 * The journal is a file that says what kvp_register() is about to do and has
 * done, so that it can be ended after this process has died: kvp_recover().
 * It is opened at once when `journal_dir` is given, and kvp_open() then fails if
 * it can't be; otherwise by the first kvp_register(), which fails with nothing
 * registered. Its directory is made if only the last part of its path is
 * missing, and must belong to the effective user and be writable by no other.
 * kvp_close() removes the file when nothing is registered any more.
 *
 * -ENOENT, -ENXIO  the module is not loaded
 * -EACCES, -EPERM  no access to the control node
 * -EPROTO          the module speaks another version of the family
 * -E2BIG, -EINVAL  `options` is not of this version; -EINVAL also a relative journal_dir
 * -ENOMEM
 * with journal_dir, what kvp_register() says of the journal
 */
int kvp_open(const struct kvp_options *options, struct kvp_ctx **ctx, struct kvp_error *error);

/*
 * Close it: ends the session. Pools of lifetime owner that nobody else uses
 * end with it. Pools, lists and registrations of this context must have been
 * closed before. NULL is allowed.
 */
void kvp_close(struct kvp_ctx *ctx);

/* ------------------------------------------------------------------- pools */

enum kvp_lifetime { KVP_LIFETIME_OWNER, KVP_LIFETIME_PERSISTENT };
enum kvp_placement { KVP_PLACEMENT_PREFERRED, KVP_PLACEMENT_STRICT };
enum kvp_state { KVP_STATE_LIVE, KVP_STATE_ORPHAN, KVP_STATE_DYING, KVP_STATE_CREATING };
enum kvp_registration_state {
	KVP_REGISTRATION_ALLOCATED,
	KVP_REGISTRATION_REGISTERING,
	KVP_REGISTRATION_COMMITTED,
	KVP_REGISTRATION_FALLBACK_L2,
	KVP_REGISTRATION_FAILED,
};

const char *kvp_state_name(enum kvp_state state);
const char *kvp_registration_state_name(enum kvp_registration_state state);

/*
 * Identity: id and generation. An id is used again after a pool has ended, a
 * generation never is, as long as the machine runs. Names are for people.
 */
struct kvp_pool_info {
	uint32_t id;
	uint64_t generation;
	char name[KVP_NAME_SIZE];
	char domain[KVP_NAME_SIZE];
	char role[KVP_NAME_SIZE];
	char label[KVP_NAME_SIZE];
	uint32_t rank;			/* KVP_NONE: no rank */
	uint64_t length;		/* as asked for */
	uint64_t mapped_length;		/* whole blocks */
	uint32_t block_size;
	uint32_t node;			/* KVP_NONE: none asked for */
	enum kvp_placement placement;
	enum kvp_lifetime lifetime;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	enum kvp_state state;
	enum kvp_registration_state registration;
	uint32_t blocks;
	uint32_t pinned_blocks;		/* pinned by a device now */
	uint32_t mappings;		/* VMAs now, of all processes */
	uint32_t files;			/* open files now, those of mappings included */
	int owned;			/* a live session owns it */
	uid_t owner_uid;
	pid_t owner_pid;		/* 0: not visible in this pid namespace */
	uint64_t owner_start;		/* nanoseconds since boot */
	uint32_t device;		/* major << 20 | minor of the node */
};

struct kvp_pool_options {
	size_t struct_size;
	const char *domain;	/* required: 1 to 63 of A-Z a-z 0-9 _ - */
	const char *name;	/* default: pool-GENERATION; same characters, not "control" */
	const char *role;	/* default empty; same characters */
	const char *label;	/* default empty; 0 to 63 printable ASCII characters */
	uint64_t length;	/* required, at least 1 */
	uint32_t rank;		/* in force when has_rank is set */
	int has_rank;
	uint32_t node;		/* in force when has_node is set */
	int has_node;
	enum kvp_placement placement;
	enum kvp_lifetime lifetime;
	uid_t uid;		/* in force when has_uid is set; default the caller's */
	int has_uid;
	gid_t gid;		/* in force when has_gid is set; default the caller's */
	int has_gid;
	mode_t mode;		/* in force when has_mode is set; default 0600 */
	int has_mode;
};

/* A pool opened by this process. */
struct kvp_pool;

/*
 * Create a pool and open it for reading and writing. The memory is allocated
 * whole, zeroed and pinned by nobody when this returns. That takes as long as
 * clearing it, unless it comes from the reserve.
 *
 * -EINVAL   a name, length or another option is out of range: the error says which
 * -EEXIST   another pool has the name
 * -ENOMEM   the memory is not there, or is too fragmented; nothing is kept
 * -EDQUOT   a limit: RLIMIT_MEMLOCK without CAP_IPC_LOCK, a module parameter, or the
 *           quota of the reserve when that is all that may be used
 * -ENODEV   no such NUMA node
 * -EPERM    uid or gid of somebody else without CAP_CHOWN
 * -EACCES   the context is read only
 * -EINTR    a fatal signal arrived
 */
int kvp_pool_create(struct kvp_ctx *ctx, const struct kvp_pool_options *options,
		    struct kvp_pool **pool, struct kvp_error *error);

/* How to open or map: read only, or both. */
enum kvp_access { KVP_ACCESS_READ, KVP_ACCESS_WRITE };

/*
 * Open by identity. -ENOENT no such id; -ESTALE another generation has the id
 * now; -EACCES the pool's uid, gid and mode forbid it; -ENODEV it is an orphan
 * or was destroyed.
 */
int kvp_pool_open(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, enum kvp_access access,
		  struct kvp_pool **pool, struct kvp_error *error);

/* Open the pool that has this name now; then as kvp_pool_open(). */
int kvp_pool_open_name(struct kvp_ctx *ctx, const char *name, enum kvp_access access,
		       struct kvp_pool **pool, struct kvp_error *error);

/*
 * Take a descriptor of a pool that came from elsewhere (over a unix socket,
 * or open() of the node). It is duplicated: the caller keeps its own. -EINVAL
 * when it is no pool's.
 */
int kvp_pool_open_fd(struct kvp_ctx *ctx, int fd, struct kvp_pool **pool, struct kvp_error *error);

/*
 * Make this context the owner of a persistent pool whose session has ended,
 * and open it for reading and writing. -EBUSY another live session owns it;
 * -EINVAL its lifetime is owner; -EPERM the caller is neither the pool's uid nor
 * has CAP_FOWNER; otherwise as kvp_pool_open().
 */
int kvp_pool_claim(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, struct kvp_pool **pool,
		   struct kvp_error *error);

/*
 * Close this handle: unmaps what kvp_pool_map() mapped, closes the descriptor,
 * frees. The pool itself goes on. NULL is allowed.
 */
void kvp_pool_close(struct kvp_pool *pool);

/* Descriptor of the pool, which belongs to the handle, and lives as long. */
int kvp_pool_fd(const struct kvp_pool *pool);

/* Identity without asking the kernel. */
uint32_t kvp_pool_id(const struct kvp_pool *pool);
uint64_t kvp_pool_generation(const struct kvp_pool *pool);
uint64_t kvp_pool_length(const struct kvp_pool *pool);

/*
 * Map the whole pool, shared, at an address of the kernel's choice that
 * allows 2 MiB entries. Mapped once a handle: a second call gives the same
 * address, and may add write access. The mapping belongs to the handle and ends with it.
 * A block takes a fault when it is first touched; madvise(MADV_POPULATE_READ) takes them
 * all at once, and leaves none to a write either.
 *
 * -EACCES write asked for, and the descriptor is read only
 * -ENODEV the pool was destroyed
 * -ENOMEM no address space
 */
int kvp_pool_map(struct kvp_pool *pool, enum kvp_access access, void **addr,
		 struct kvp_error *error);
int kvp_pool_unmap(struct kvp_pool *pool);

/*
 * Ask the kernel what the pool is now. -EACCES: its uid, gid and mode don't let
 * the caller open it, though a descriptor was passed to it.
 */
int kvp_pool_query(struct kvp_pool *pool, struct kvp_pool_info *info, struct kvp_error *error);

/* The same by identity (generation 0: any) or by name, without opening. */
int kvp_pool_find(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
		  struct kvp_pool_info *info, struct kvp_error *error);
int kvp_pool_find_name(struct kvp_ctx *ctx, const char *name, struct kvp_pool_info *info,
		       struct kvp_error *error);

/*
 * Call `each` for every pool that the caller could open (root: every pool), in
 * the order of ids. A return other than 0 ends the walk and is returned. The
 * list is complete before the first call, and `each` may use the context.
 * -EAGAIN: pools came and went during every attempt to read it; call again.
 */
int kvp_pool_each(struct kvp_ctx *ctx, int (*each)(const struct kvp_pool_info *info, void *arg),
		  void *arg, struct kvp_error *error);

/* Call `each` for every run of pinned blocks of a pool. */
int kvp_pool_pins(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
		  int (*each)(uint32_t first_block, uint32_t block_count, void *arg), void *arg,
		  struct kvp_error *error);

/*
 * End a pool. Without `force`, -EBUSY while it is mapped (by this process too)
 * or pinned. With it, CPU mappings are revoked (access is SIGBUS) and each
 * block is freed when its last pin is gone. -EPERM: neither owner, nor the
 * pool's uid, nor CAP_FOWNER. -ENODEV: it has ended already, and is listed until
 * its last block is free; -ENOENT after that.
 */
int kvp_pool_destroy(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, int force,
		     struct kvp_error *error);

/* What to change: a member is in force when its bit is in `mask`. */
#define KVP_SET_ROLE		(1U << 0)
#define KVP_SET_LABEL		(1U << 1)
#define KVP_SET_RANK		(1U << 2)
#define KVP_SET_LIFETIME	(1U << 3)
#define KVP_SET_UID		(1U << 4)
#define KVP_SET_GID		(1U << 5)
#define KVP_SET_MODE		(1U << 6)
#define KVP_SET_REGISTRATION	(1U << 7)

struct kvp_pool_change {
	size_t struct_size;
	uint32_t mask;
	const char *role;
	const char *label;
	uint32_t rank;		/* KVP_NONE: no rank any more */
	enum kvp_lifetime lifetime;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	enum kvp_registration_state registration;
};

/*
 * -EPERM   neither owner, nor the pool's uid, nor CAP_FOWNER; or uid or gid of
 *          somebody else without CAP_CHOWN
 * -EBUSY   lifetime owner, and no session owns the pool
 * -EINVAL  the mask is empty or has unknown bits, or a value is out of range
 * -ENODEV, -ENOENT, -ESTALE  as kvp_pool_open()
 */
int kvp_pool_set(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
		 const struct kvp_pool_change *change, struct kvp_error *error);

struct kvp_stats {
	uint32_t pools, orphans, dying, sessions, max_pools;
	uint64_t bytes, max_bytes, min_available, available;
	uint64_t created, destroyed, failed;
	uint64_t dying_bytes;	/* of `bytes`: on their way back, or pinned by a device */
};

int kvp_stats_get(struct kvp_ctx *ctx, struct kvp_stats *stats, struct kvp_error *error);

/*
 * The reserve: blocks that the module holds cleared on each node, so that a
 * creation need not wait for the clearing. It is charged to no memory cgroup, so
 * it is given out under a quota for each user.
 */
enum kvp_reserve_policy {
	KVP_RESERVE_FIRST,	/* pools take of the reserve first, then other memory */
	KVP_RESERVE_ONLY,	/* a creation fails when the reserve does not have it all */
};

struct kvp_reserve_node {
	uint32_t node;
	uint64_t target;	/* bytes that there shall be */
	uint64_t ready;		/* bytes that a creation can take now */
	uint64_t clearing;	/* bytes that came back from pools, not cleared yet */
};

struct kvp_reserve_user {
	uid_t uid;		/* in the caller's user namespace */
	uint64_t quota, used;	/* bytes in pools that the user created */
};

struct kvp_reserve {
	enum kvp_reserve_policy policy;
	uint64_t quota;		/* bytes, of each user without a quota of its own */
	size_t node_count, user_count;
	struct kvp_reserve_node *nodes;
	/*
	 * Those with a quota of their own, or with memory of the reserve; without
	 * CAP_SYS_ADMIN only the caller.
	 */
	struct kvp_reserve_user *users;
};

/* *reserve is the caller's, until kvp_reserve_free(), which takes NULL too. */
int kvp_reserve_get(struct kvp_ctx *ctx, struct kvp_reserve **reserve, struct kvp_error *error);
void kvp_reserve_free(struct kvp_reserve *reserve);

/* What to change: a member is in force when its bit is in `mask`. */
#define KVP_RESERVE_SET_TARGET	(1U << 0)	/* `target` of `node` */
#define KVP_RESERVE_SET_POLICY	(1U << 1)
#define KVP_RESERVE_SET_QUOTA	(1U << 2)	/* of `uid` if that is in force, or the default */
#define KVP_RESERVE_SET_UID	(1U << 3)	/* without a quota: the default holds for `uid` */

struct kvp_reserve_change {
	size_t struct_size;
	uint32_t mask;
	uint32_t node;
	uint64_t target;
	enum kvp_reserve_policy policy;
	uint64_t quota;
	uid_t uid;
};

/*
 * All of it or none. The reserve is filled in the background; what is more than
 * the target is freed before the call returns. Pools that exist stay.
 *
 * -EPERM   without CAP_SYS_ADMIN
 * -EACCES  the context is read-only
 * -ENODEV  the node does not exist, or has no memory
 * -EINVAL  the mask is empty or has unknown bits, or a value is out of range
 */
int kvp_reserve_set(struct kvp_ctx *ctx, const struct kvp_reserve_change *change,
		    struct kvp_error *error);

/* Events. The descriptor of kvp_monitor_fd() is readable when one waits. */
enum kvp_event {
	KVP_EVENT_CREATE,
	KVP_EVENT_DESTROY,
	KVP_EVENT_CHANGE,
	KVP_EVENT_PROGRESS,	/* a creation is under way: see kvp_monitor_progress() */
};

struct kvp_monitor;

int kvp_monitor_open(struct kvp_monitor **monitor, struct kvp_error *error);
int kvp_monitor_fd(const struct kvp_monitor *monitor);
/*
 * Wait for the next event. An event says which pool, not what it is: ask
 * kvp_pool_find(), which checks permission. -ENOBUFS: events were lost, list
 * again; -EINTR: a signal arrived; -EAGAIN: none waits, and the caller has made
 * the descriptor non-blocking.
 */
int kvp_monitor_next(struct kvp_monitor *monitor, enum kvp_event *event, uint32_t *id,
		     uint64_t *generation, struct kvp_error *error);
/*
 * How much of its memory the pool has, in per cent, that the last event was
 * about: 100 unless that was KVP_EVENT_PROGRESS. A creation that takes long
 * tells it once a second at most. The pool can't be found before it has all; if
 * the creation fails, no further event comes.
 */
unsigned int kvp_monitor_progress(const struct kvp_monitor *monitor);
void kvp_monitor_close(struct kvp_monitor *monitor);

/* ------------------------------------------------------- spans and domains */

/*
 * The name of a piece of memory that means the same in every process of this
 * machine until it reboots. Plain data: may be copied and sent.
 */
struct kvp_span {
	char domain[KVP_NAME_SIZE];
	uint32_t id;
	uint64_t generation;
	uint64_t offset;
	uint64_t length;
};

/* Longest text of a span with its NUL: "kvpool:DOMAIN:ID:GENERATION:OFFSET:LENGTH". */
#define KVP_SPAN_TEXT_SIZE 160

int kvp_span_format(const struct kvp_span *span, char text[KVP_SPAN_TEXT_SIZE]);
/* -EINVAL: not a span, a number out of range, or offset + length wraps. */
int kvp_span_parse(const char *text, struct kvp_span *span);

/*
 * Name `length` bytes at `addr`, which must lie in one pool of `domain`
 * (NULL: of any). Errors are those of kvp_check() for a buffer that is only read.
 *
 * What kvp_pool_map() has mapped through this context is known to the library: it
 * is named without a system call, in a time that grows with the logarithm of the
 * number of mappings, by any number of threads at once. A mapping holds its pool and a
 * generation is never used again, so the name is that of the memory as long as the
 * handle maps it: it is right under mapping, unmapping, closing, and
 * kvp_pool_destroy() of this context. Of two things only the kernel knows, and the
 * name says nothing of them: that another process has destroyed the pool
 * (kvp_span_import() is then -ESTALE), and that the caller took the addresses
 * away from the handle by itself, by munmap(), mremap() or mmap(), which it
 * must not do: the name is then still that of the pool's memory, and never of another pool.
 * All other memory the kernel is asked about.
 *
 * So a name is no leave to register: kvp_check() and kvp_register() ask the
 * kernel about every buffer, whether it has been named or not.
 */
int kvp_span_export(struct kvp_ctx *ctx, const char *domain, const void *addr, uint64_t length,
		    struct kvp_span *span, struct kvp_error *error);

/*
 * Open and map the pool of a span, and give the address of its first byte.
 * The pool handle is the caller's to close; the address lives as long.
 * -ESTALE: the pool ended, or is an orphan; -EXDEV: its domain is not the
 * span's; -ERANGE: the span does not lie within it; -EINVAL: it is no span;
 * else as kvp_pool_open() and kvp_pool_map().
 */
int kvp_span_import(struct kvp_ctx *ctx, const struct kvp_span *span, enum kvp_access access,
		    struct kvp_pool **pool, void **addr, struct kvp_error *error);

/* What memory is. */
enum kvp_kind {
	KVP_KIND_UNMAPPED,
	KVP_KIND_POOL,
	KVP_KIND_ANON,		/* private anonymous */
	KVP_KIND_HUGETLB,
	KVP_KIND_SHMEM,		/* memfd, /dev/shm, shared anonymous, SysV */
	KVP_KIND_FILE,		/* a file of another file system */
	KVP_KIND_DEVICE,	/* a driver's memory that can't be pinned */
};

const char *kvp_kind_name(enum kvp_kind kind);

struct kvp_segment {
	uint64_t addr;
	uint64_t length;
	enum kvp_kind kind;
	int readable, writable;
	int stale;		/* a pool that was destroyed: access is SIGBUS */
	struct kvp_span span;	/* of a pool; zero otherwise */
	uint64_t pool_length;	/* logical length of that pool */
	/* Of a file or shared memory, as /proc/self/maps names it; else empty. */
	char path[128];
};

/*
 * Say what backs an address range of this process, in order, without gaps:
 * calls `each` for every segment; a return other than 0 ends the walk and is
 * returned. -EINVAL: length 0, or the range wraps.
 */
int kvp_resolve(struct kvp_ctx *ctx, const void *addr, uint64_t length,
		int (*each)(const struct kvp_segment *segment, void *arg), void *arg,
		struct kvp_error *error);

/* -------------------------------------------------------------- buffers */

/*
 * Needs of a buffer, also the access that a registration gives. A kernel before
 * 6.2 pins for writing all the same: there a read-only buffer can be registered
 * when it is mapped writable, and is -EFAULT from the device otherwise.
 */
#define KVP_BUFFER_READ_ONLY	(1U << 0)	/* no local or remote write */

struct kvp_buffer {
	void *addr;
	uint64_t length;
	/* A chunk border may fall only on a multiple of this; 0: anywhere on a page. */
	uint64_t block;
	uint32_t flags;		/* KVP_BUFFER_* */
	uint64_t generation;	/* generation that the caller believes it has; 0: any */
};

/*
 * Check that every buffer lies in one live pool each, of `domain`, within its
 * logical length, with the protection it needs, not empty, and that none
 * overlaps another. All are looked at; the first that fails, by index, is in
 * `error`, and its message names what the memory is instead. When `results`
 * is not NULL it has `count` members, and gets 0 or a negative errno for each.
 *
 * -EINVAL  length 0, or addr + length wraps
 * -EXDEV   a pool of another domain
 * -ENOTSUP foreign memory: anonymous, hugetlb, shared memory, a file, a device
 * -EFAULT  not mapped, or partly
 * -ESTALE  the pool was destroyed, or its generation is not the one expected
 * -EACCES  mapped read only, and the buffer needs write
 * -ERANGE  straddles two pools, or passes the logical end of one
 * -EEXIST  the same range as an earlier buffer
 * -EADDRINUSE nested in, or overlapping, an earlier buffer; adjacent is allowed
 *
 * Overlap is judged by address: the same bytes of a pool mapped twice are two
 * buffers. A domain that is NULL, or no name that a pool's could have, is -EINVAL.
 */
int kvp_check(struct kvp_ctx *ctx, const char *domain, const struct kvp_buffer *buffers,
	      uint32_t count, int *results, struct kvp_error *error);

/* What to do with empty buffers where the list is made. */
enum kvp_empty { KVP_EMPTY_REJECT, KVP_EMPTY_SKIP };

/*
 * A list of buffers. The caller's index of a buffer is how many were added
 * before it, the empty ones counted; its position is where it stands in the
 * list without them. Parallel lists of the caller are brought into line by
 * kvp_list_index().
 */
struct kvp_list;

int kvp_list_new(enum kvp_empty empty, struct kvp_list **list);
/*
 * Empty buffers are taken. -ENOMEM; -EINVAL a NULL address with a length, an
 * unknown flag, or the list is sealed. A failure ends the list, since indices
 * would shift: what is called next fails with the same error, as repeated. A sealed
 * list stays as it is.
 */
int kvp_list_add(struct kvp_list *list, const struct kvp_buffer *buffer);
/*
 * End adding. With KVP_EMPTY_REJECT and empty buffers among those added:
 * -EINVAL, the error's index is the first of them, its message says how many of
 * how many, and kvp_list_empty() gives all indices. With KVP_EMPTY_SKIP they
 * are left out.
 */
int kvp_list_seal(struct kvp_list *list, struct kvp_error *error);
/* Buffers in the sealed list; they belong to the list and live as long. */
const struct kvp_buffer *kvp_list_buffers(const struct kvp_list *list, uint32_t *count);
/* The caller's index of each position: the index map. Belongs to the list. */
const uint32_t *kvp_list_index(const struct kvp_list *list, uint32_t *count);
/* The caller's indices of the empty buffers. Belongs to the list. */
const uint32_t *kvp_list_empty(const struct kvp_list *list, uint32_t *count);
void kvp_list_free(struct kvp_list *list);

/* --------------------------------------------------------- registrars */

/* A chunk of a buffer, as it is given to a registrar. */
struct kvp_chunk {
	void *addr;
	uint64_t length;
	uint32_t flags;		/* KVP_BUFFER_* */
	struct kvp_span span;
};

/*
 * Something that registers memory. `limits` fills what is known of a device
 * (0: no limit). `register_chunk` returns 0 and sets *cookie, or any other value,
 * which is a failure: a negative errno, or a code of an engine, positive ones
 * too. `unregister_chunk` the same. Devices are numbered 0 to devices - 1.
 * Those that register and unregister are called from the thread that runs the
 * transaction, or with `threads` of struct kvp_transaction_options from any of them;
 * by one at a time unless `concurrent` is set. `limits` and `device_name` don't wait
 * for their turn: whoever uses the registrar calls them, beside each other and beside
 * a call that registers.
 */
struct kvp_registrar_ops {
	size_t struct_size;
	int (*limits)(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count);
	int (*register_chunk)(void *arg, uint32_t device, const struct kvp_chunk *chunk,
			      void **cookie);
	int (*unregister_chunk)(void *arg, uint32_t device, const struct kvp_chunk *chunk,
				void *cookie);
	/* Never NULL; lives as the registrar. */
	const char *(*device_name)(void *arg, uint32_t device);
	int pins;		/* every device pins the memory against RLIMIT_MEMLOCK */
	/*
	 * Name in the journal, 1 to 63 of A-Z a-z 0-9 _ -; may be NULL unless
	 * `external` is set.
	 */
	const char *name;
	/*
	 * What it registers outlives this process, as in a store that runs by
	 * itself: after a death kvp_recover() has it unregistered, by a registrar of
	 * the same name. A cookie is then a number, not a pointer; and
	 * unregister_chunk returns -ENOENT for what isn't registered. A failure of
	 * register_chunk means that it isn't, except -ETIMEDOUT: that isn't known, and
	 * it is undone like what is registered, with a NULL cookie.
	 */
	int external;
	/*
	 * Many chunks (up to 1,024) of one device in one call, in the order of the
	 * transaction, or against it to unregister. Both may be NULL, and only an
	 * external registrar may have them. `results` has a member for each,
	 * -ETIMEDOUT at entry: after a failure it says what became of each, as the
	 * functions above return it.
	 */
	int (*register_batch)(void *arg, uint32_t device, const struct kvp_chunk *chunks,
			      uint32_t count, void **cookies, int *results);
	int (*unregister_batch)(void *arg, uint32_t device, const struct kvp_chunk *chunks,
				uint32_t count, void *const *cookies, int *results);
	/*
	 * Longest that a call to register or unregister may take, nanoseconds; 0: no
	 * limit. Only an external registrar may have it. They are then made from a
	 * thread of the registrar's own, which kvp_registrar_free() ends. A call that
	 * takes longer counts as -ETIMEDOUT and is left to itself; until it returns,
	 * every other call of the registrar fails at once, so that what is registered
	 * there is quarantined. What it was given lives on as long as it runs.
	 */
	uint64_t time_limit;
	/* Several threads may register and unregister at once; without a time limit. */
	int concurrent;
};

struct kvp_registrar;

/*
 * -EINVAL: no devices, a function is missing, no valid name, or what only an
 * external registrar may have; -EAGAIN: no thread for a time limit; -ENOMEM.
 * `arg` must outlive the registrar.
 */
int kvp_registrar_new(const struct kvp_registrar_ops *ops, void *arg, uint32_t devices,
		      struct kvp_registrar **registrar);
/*
 * ibverbs over `count` protection domains, each a device of the registrar;
 * they stay the caller's and must outlive it. `access` is the IBV_ACCESS_* of
 * buffers; for a KVP_BUFFER_READ_ONLY one the bits that write are left out.
 */
int kvp_registrar_verbs(struct ibv_pd *const *pds, uint32_t count, int access,
			struct kvp_registrar **registrar, struct kvp_error *error);

struct kvp_load_options {
	size_t struct_size;
	const char *path;	/* of the shared object, as dlopen() takes it */
	const char *config;	/* for its open function; NULL: none */
	const char *name;	/* instead of the shared object's own, when it is loaded twice */
	uint64_t time_limit;	/* as in struct kvp_registrar_ops; for open and close too */
};

/*
 * An external registrar of one device out of a shared object, which kvpool_store.h
 * describes. The device has the registrar's name.
 *
 * -ENOENT   it can't be loaded, or exports no kvp_store: the message has the loader's words
 * -EPROTO   it is of another version of the interface, or misses a function
 * -EINVAL   no path, or no valid name
 * -ETIMEDOUT, or what its open function returned: the store can't be reached
 * -ENOMEM
 */
int kvp_registrar_load(const struct kvp_load_options *options, struct kvp_registrar **registrar,
		       struct kvp_error *error);
/*
 * Must not be used by a registration any more. NULL is allowed. When a call has
 * passed its time limit and still runs, its thread and what it uses stay until
 * it returns; the process must not unload this library before.
 */
void kvp_registrar_free(struct kvp_registrar *registrar);

/* ------------------------------------------------------- transactions */

/*
 * A registration is the committed result of a transaction: which chunk of
 * which buffer is registered at which device, with what cookie.
 */
struct kvp_registration;

struct kvp_transaction_options {
	size_t struct_size;
	/*
	 * Called once, after everything was registered and before kvp_register()
	 * returns 0: the caller makes its pools, references and callbacks visible
	 * here, in one step. A return other than 0 undoes everything.
	 */
	int (*commit)(const struct kvp_registration *registration, void *arg);
	void *arg;
	/* What the report calls it, as "target" or "draft"; 0 to 63 printable ASCII characters. */
	const char *name;
	/*
	 * How many threads register, and undo, at once; 0 is 1, at most 256. Buffers
	 * are begun in order, and against it to undo; of several failures the first in
	 * that order is the error. `commit` is called by the calling thread.
	 */
	uint32_t threads;
	/*
	 * Runs them: calls work(data) `count` times, in as many threads, and returns
	 * when all have returned. It may call it less often, at least once. NULL: the
	 * library starts threads and ends them before the call returns. It is kept
	 * for kvp_unregister(), and so must `run_arg` be.
	 */
	void (*run)(void (*work)(void *data), void *data, uint32_t count, void *arg);
	void *run_arg;
};

/* What kvp_register() returns when it fell back: see enum kvp_policy. */
#define KVP_FALLBACK 1

/*
 * Register the buffers of a sealed list at every device of every registrar:
 *  1. check all buffers (kvp_check), device limits (max_count after splitting;
 *     a max_length smaller than the block that must not be cut), and
 *     RLIMIT_MEMLOCK against bytes times the devices that pin, what the process
 *     has pinned already counted; nothing is registered before all pass;
 *  2. register, buffer by buffer, device by device, splitting at max_length on
 *     a multiple of lcm(block, page);
 *  3. commit.
 * On failure, what was registered is unregistered in reverse order, past any
 * that fails; those are quarantined, and *registration is then not NULL: it
 * holds only them, and kvp_unregister() tries again. Otherwise it is NULL.
 * `error` keeps the first failure. The pools' registration state in the kernel
 * follows (REGISTERING, then COMMITTED or FAILED) for pools that the context owns.
 *
 * *registration is set to NULL at entry: one that is still held must be kept
 * elsewhere first.
 *
 * With KVP_POLICY_FALLBACK_L2 a failure after which nothing is registered is
 * KVP_FALLBACK instead of an errno: nothing is registered, *registration is
 * NULL, `commit` was not called or its effect is undone by the caller, `error` says
 * why, the log function of the context was called, and the pools' state is FALLBACK_L2. It is still
 * an errno when entries are quarantined, since a device may write to the pool,
 * and when the arguments make no sense (options, domain, registrars, the list).
 *
 * Errors of kvp_check(); -EDQUOT RLIMIT_MEMLOCK; -ENOSPC max_mr, or more than
 * 2^32 - 1 registrations; -EMSGSIZE the block is larger than max_mr_size;
 * -EBUSY a buffer shares a byte with what is quarantined in this context, or what
 * another thread is undoing or unregistering in it;
 * -EINVAL the list is not sealed or empty, `domain` is no name, or a registrar is
 * given twice; what a registrar returned (a code that is no negative errno is
 * -EREMOTEIO, and the code is in the message).
 * Of the journal, phase journal and with nothing registered: -EACCES, -EPERM,
 * -ENOENT, -ENOTDIR, -EROFS no directory that this user alone may write to;
 * -ENOSPC, -EDQUOT, -EFBIG no space for all that the transaction may write, or the
 * journal would be longer than 1 GiB: it grows while a transaction is open;
 * -EOPNOTSUPP the file system can't reserve space. A journal that fails later,
 * which the reservation leaves to a broken disk, is undone like a registrar that
 * fails.
 */
int kvp_register(struct kvp_ctx *ctx, const char *domain, const struct kvp_list *list,
		 struct kvp_registrar *const *registrars, uint32_t count,
		 const struct kvp_transaction_options *options,
		 struct kvp_registration **registration, struct kvp_error *error);

/* One registered chunk. */
struct kvp_entry {
	uint32_t index;		/* the caller's index of the buffer */
	uint32_t registrar;	/* position in the array given to kvp_register() */
	uint32_t device;	/* of that registrar */
	uint64_t offset;	/* of the chunk in its buffer, bytes */
	struct kvp_chunk chunk;
	void *cookie;		/* with kvp_registrar_verbs(): struct ibv_mr * */
	int quarantined;	/* an unregister failed: the registration may still exist */
};

uint32_t kvp_registration_count(const struct kvp_registration *registration);
/* The n-th entry, in the order of registering; NULL past the end. Lives as the registration. */
const struct kvp_entry *kvp_registration_entry(const struct kvp_registration *registration,
					       uint32_t n);
/* The entry that covers byte `offset` of the caller's buffer `index` at a device; NULL: none. */
const struct kvp_entry *kvp_registration_find(const struct kvp_registration *registration,
					      uint32_t index, uint32_t registrar, uint32_t device,
					      uint64_t offset);
/* The ibv_mr of an entry of a verbs registrar; NULL for another registrar's. */
struct ibv_mr *kvp_entry_mr(const struct kvp_registration *registration,
			    const struct kvp_entry *entry);

/*
 * Unregister in reverse order, past failures. 0: all gone, and *registration
 * is freed and set to NULL. Otherwise it holds what is quarantined, `error` is
 * the first failure, and the call may be made again. The memory of a
 * quarantined entry must not be used for anything else.
 */
int kvp_unregister(struct kvp_ctx *ctx, struct kvp_registration **registration,
		   struct kvp_error *error);

/* -------------------------------------------------------------- report */

/* What became of the transactions of a name; of those without one together. */
struct kvp_report_entry {
	char name[KVP_NAME_SIZE];
	char domain[KVP_NAME_SIZE];	/* of the last */
	/* Of the last: COMMITTED, FALLBACK_L2, FAILED or ALLOCATED. */
	enum kvp_registration_state state;
	uint32_t buffers;		/* of the last, empty ones not counted */
	uint64_t length;		/* of them, bytes */
	uint64_t committed;		/* how many were */
	uint64_t fallbacks;		/* how many fell back */
	uint64_t failures;		/* how many failed */
	struct kvp_error first;		/* the first that fell back or failed; err 0: none */
};

/* The same of the whole context. */
struct kvp_report {
	enum kvp_policy policy;		/* in force: never KVP_POLICY_DEFAULT */
	char client_mode[KVP_NAME_SIZE];
	uint64_t committed;
	/* A metric: not 0 means that something runs without its registration. */
	uint64_t fallbacks;
	uint64_t failures;
	uint32_t registered;		/* entries registered now */
	uint32_t quarantined;		/* entries quarantined now */
	struct kvp_error first;		/* of kvp_register() or kvp_unregister() */
};

void kvp_report_get(struct kvp_ctx *ctx, struct kvp_report *report);
/*
 * Call `each` for every entry, in the order of the first transaction of each
 * name; a return other than 0 ends the walk and is returned. -ENOMEM.
 */
int kvp_report_each(struct kvp_ctx *ctx,
		    int (*each)(const struct kvp_report_entry *entry, void *arg), void *arg);
/*
 * A line, as "draft: fallback-l2, domain kv, 3 buffers, 6291456 bytes: WHY".
 * Returns as snprintf.
 */
int kvp_report_format(const struct kvp_report_entry *entry, char *text, size_t size);

/*
 * Check that what the kernel says of the pools that the context owns is what it
 * knows of them: COMMITTED where a registration is in force and nowhere else,
 * REGISTERING nowhere, nothing quarantined in ALLOCATED or FALLBACK_L2, and
 * pinned blocks where a registrar that pins has a pool registered. For tests and
 * for finding faults: no other thread may use the context meanwhile. -EUCLEAN: the
 * error says which pool and what.
 */
int kvp_verify(struct kvp_ctx *ctx, struct kvp_error *error);

/* ------------------------------------------------------------ journals */

/* What a record of a journal says. docs/journal.md has the format. */
enum kvp_journal_type {
	KVP_JOURNAL_FILE = 1,	/* the first: which process writes it */
	KVP_JOURNAL_BEGIN,	/* a transaction, with how many entries and pools */
	KVP_JOURNAL_POOL,	/* one of its pools */
	KVP_JOURNAL_DEVICE,	/* one of the devices that it registers at */
	KVP_JOURNAL_INTENT,	/* an entry is about to be registered */
	KVP_JOURNAL_OUTCOME,	/* what its registrar returned */
	KVP_JOURNAL_COMMIT,	/* all are registered, the caller is told next */
	KVP_JOURNAL_UNDO,	/* an entry is about to be unregistered */
	KVP_JOURNAL_UNDONE,	/* what its registrar returned */
	KVP_JOURNAL_END,	/* nothing of the transaction is registered any more */
};

const char *kvp_journal_type_name(enum kvp_journal_type type);

/* What a file of a journal is. */
enum kvp_journal_condition {
	KVP_JOURNAL_WHOLE,	/* ends with a whole record */
	KVP_JOURNAL_TORN,	/* the last record is cut short, as a death may leave it */
	KVP_JOURNAL_DAMAGED,	/* a record is not what was written: it must not be acted on */
	KVP_JOURNAL_NEWER,	/* of a format that this library doesn't know */
	KVP_JOURNAL_FOREIGN,	/* no journal at all */
};

const char *kvp_journal_condition_name(enum kvp_journal_condition condition);

/* Whether the process that wrote a journal still runs. */
enum kvp_liveness {
	KVP_LIVENESS_UNKNOWN,	/* can't be told from here, as in another pid namespace */
	KVP_LIVENESS_ALIVE,
	KVP_LIVENESS_DEAD,
	KVP_LIVENESS_OTHER_BOOT,	/* it ended with its boot, and all that it registered too */
};

const char *kvp_liveness_name(enum kvp_liveness liveness);

/* What is known of an entry. */
enum kvp_journal_state {
	KVP_JOURNAL_ENTRY_INTENDED,	/* may be registered or not */
	KVP_JOURNAL_ENTRY_REFUSED,	/* was not registered */
	KVP_JOURNAL_ENTRY_REGISTERED,
	KVP_JOURNAL_ENTRY_UNDOING,	/* may still be registered or not */
	KVP_JOURNAL_ENTRY_QUARANTINED,	/* unregistering it failed */
	KVP_JOURNAL_ENTRY_UNDONE,
};

const char *kvp_journal_state_name(enum kvp_journal_state state);

struct kvp_journal_info {
	enum kvp_journal_condition condition;
	char reason[192];	/* why it isn't whole; empty when it is */
	uint64_t size;		/* of the file, bytes */
	uint64_t offset;	/* so many of them are whole records that make sense */
	uint32_t records;
	uint32_t transactions;
	uint32_t entries;
	uint32_t pools;
	uint32_t devices;
	uint32_t open_transactions;	/* begun and not ended */
	uint32_t open_entries;	/* intended, registered, undoing, quarantined */
	/* Of the first record; all zero when `records` is 0. */
	uint8_t boot_id[16];
	uint8_t session[16];	/* random, of the context that wrote it */
	uint64_t start;		/* of the process: clock ticks since boot, as in /proc/PID/stat */
	uint64_t pid_namespace;	/* inode */
	uint64_t time_namespace;
	pid_t pid;
	uid_t uid;
	char library[16];	/* its version */
	enum kvp_liveness liveness;	/* when it was read */
};

/* A record. What its type doesn't have is 0, or KVP_NONE. */
struct kvp_journal_record {
	enum kvp_journal_type type;
	uint64_t offset;	/* in the file, bytes */
	uint32_t length;
	uint64_t sequence;
	uint64_t transaction;
	uint32_t entry;		/* its number in the transaction */
	int32_t code;		/* what a registrar returned */
	/* Of the entry, device, pool or transaction: kvp_journal_entry() and so on. */
	uint32_t position;
};

struct kvp_journal_transaction {
	uint64_t number;
	uint32_t entries;	/* planned, registered or not */
	uint32_t pools;
	char domain[KVP_NAME_SIZE];
	int committed;
	int ended;
};

struct kvp_journal_pool {
	uint64_t transaction;
	uint32_t id;
	uint64_t generation;
	int created;		/* by the context that wrote the journal */
	int committed;		/* a transaction of it was, this one or one before */
};

/* A device of a registrar. */
struct kvp_journal_device {
	uint64_t transaction;
	char registrar[KVP_NAME_SIZE];	/* empty: it has no name */
	uint32_t device;	/* its number at the registrar */
	char name[KVP_NAME_SIZE];
	int external;		/* outlives its process, see struct kvp_registrar_ops */
};

struct kvp_journal_entry {
	uint64_t transaction;
	uint32_t number;	/* in the transaction */
	uint32_t index;		/* the caller's of the buffer */
	/* Of its device. */
	char registrar[KVP_NAME_SIZE];
	uint32_t device;
	char device_name[KVP_NAME_SIZE];
	int external;
	struct kvp_chunk chunk;	/* its address is one of that process */
	uint64_t cookie;
	enum kvp_journal_state state;
	int32_t code;		/* what the registrar returned last */
	int open;		/* may be registered, as far as the journal knows */
};

/* A journal that was read: plain data, which no longer hangs on the file. */
struct kvp_journal;

/*
 * Read the journal at `path`. A file that is torn, damaged, newer or no journal
 * is read as far as it makes sense: `condition` and `reason` say what it is.
 * -EFBIG larger than 1 GiB; -EINVAL no regular file; what opening or reading it
 * returns otherwise. It isn't changed, and may be one that is being written.
 */
int kvp_journal_read(const char *path, struct kvp_journal **journal, struct kvp_error *error);
void kvp_journal_free(struct kvp_journal *journal);

/* These belong to the journal and live as long. NULL past the end. */
const struct kvp_journal_info *kvp_journal_info(const struct kvp_journal *journal);
const struct kvp_journal_record *kvp_journal_record(const struct kvp_journal *journal, uint32_t n);
/* In the order of their beginning. */
const struct kvp_journal_transaction *
kvp_journal_transaction(const struct kvp_journal *journal, uint32_t n);
const struct kvp_journal_pool *kvp_journal_pool(const struct kvp_journal *journal, uint32_t n);
const struct kvp_journal_device *kvp_journal_device(const struct kvp_journal *journal, uint32_t n);
/* In the order of their intents. */
const struct kvp_journal_entry *kvp_journal_entry(const struct kvp_journal *journal, uint32_t n);

/* ------------------------------------------------------------ recovery */

/* What kvp_recover() did with a file, an entry or a pool, or would do. */
enum kvp_recovery_action {
	KVP_RECOVERY_FILE_ALIVE,	/* its process runs: not looked at any further */
	KVP_RECOVERY_FILE_UNKNOWN,	/* whether it runs can't be told from here: the same */
	KVP_RECOVERY_FILE_BUSY,		/* another recovery is at it: the same */
	KVP_RECOVERY_FILE_REFUSED,	/* damaged, newer, no journal; can't be read or written */
	KVP_RECOVERY_FILE_KEPT,		/* something in it is to be tried again */
	KVP_RECOVERY_FILE_REMOVED,	/* nothing is left to do */
	KVP_RECOVERY_ENTRY_GONE,	/* ended with its process or boot */
	KVP_RECOVERY_ENTRY_UNDONE,	/* unregistered, or the registrar did not have it */
	KVP_RECOVERY_ENTRY_QUARANTINED,	/* may still be registered */
	KVP_RECOVERY_POOL_GONE,		/* it had ended already */
	KVP_RECOVERY_POOL_DESTROYED,
	KVP_RECOVERY_POOL_LEFT,		/* committed and persistent, owned, quarantined, in use */
	KVP_RECOVERY_POOL_FAILED,	/* destroying it failed */
};

const char *kvp_recovery_action_name(enum kvp_recovery_action action);

struct kvp_recovery_event {
	enum kvp_recovery_action action;
	const char *file;	/* its name in the directory */
	const struct kvp_journal_entry *entry;	/* NULL: it isn't about one */
	const struct kvp_journal_pool *pool;	/* NULL: it isn't about one */
	int err;		/* 0, or why not, negative */
	const char *reason;	/* why; empty where the action says it all */
};

struct kvp_recovery_options {
	size_t struct_size;
	const char *journal_dir;	/* as in struct kvp_options; "" finds nothing */
	/*
	 * What has entries of external registrars unregistered: by its name. Those
	 * of other names are quarantined. They stay the caller's.
	 */
	struct kvp_registrar *const *registrars;
	uint32_t registrar_count;
	int dry_run;			/* only say what would be done */
	/* Called for each thing that is done; what the event points to lives as the call. */
	void (*each)(const struct kvp_recovery_event *event, void *arg);
	void *arg;
};

/* How often each action was taken, by enum kvp_recovery_action. */
struct kvp_recovery_report {
	uint32_t count[16];
	/* The first that is quarantined, refused or failed; err 0: none. */
	struct kvp_error first;
};

/*
 * End what dead processes left, by their journals. A process is dead when its
 * boot has ended, or in this boot, pid and time namespace no process has its id
 * and start time.
 *
 *  - What was registered at registrars that aren't external has ended with the
 *    process. So has everything of another boot.
 *  - What may be registered at an external one is unregistered in reverse order
 *    by the registrar of that name, at the device of the same name. It gets the
 *    chunk as it was (the address is one of the dead process; the span says what
 *    it is) and the cookie, NULL when the process died before it was known.
 *    -ENOENT means that it isn't registered, and is as good as 0: when a process
 *    or recovery died at that very moment, nobody else knows. An entry whose
 *    memory a running process has registered at the same device, by the journals
 *    in the directory, is not touched. Nor is any, as long as the journal of a
 *    process that may run is damaged: what that one has is not known.
 *  - What can't be unregistered is quarantined: it stays in the file, its pool is
 *    not destroyed, and the next call tries again.
 *  - Pools that the dead context created and had in a transaction are destroyed,
 *    without force, unless they are owned again, or persistent and committed.
 *
 * Call it before the first kvp_register() of a process that takes another's
 * place. Two calls at once share the files; a second one after it finds nothing
 * to do. `options` and `report` may be NULL. Files of other users are refused.
 *
 * 0: the directory was gone through, or there is none; `report` says with what
 * result. -EINVAL a registrar is NULL, has no name or the name of another, or
 * journal_dir is relative; -EACCES, -EPERM, -ENOTDIR the directory is not safe to
 * act on; -E2BIG, -ENOMEM. With nothing done: what opening or reading a journal failed
 * with (-EMFILE, -ENFILE, -EIO, -EFBIG more than 1 GiB), since what that holds is not
 * known; the error names the file.
 */
int kvp_recover(struct kvp_ctx *ctx, const struct kvp_recovery_options *options,
		struct kvp_recovery_report *report, struct kvp_error *error);

#ifdef __cplusplus
}
#endif

#endif /* KVPOOL_H */

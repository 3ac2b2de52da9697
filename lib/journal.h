/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The durable journal: the format of its file, and what writes, reads and finds
 * it. docs/journal.md explains the format byte by byte, and why it is so.
 *   process.c          which process wrote it, and whether that still runs
 *   journal_format.c   header and checksum of a record
 *   journal_dir.c      the directory
 *   journal.c, journal_steps.c
 *                      the writer: a context's journal, and what a transaction writes
 *   journal_read.c     the reader
 *   recover.c, recover_file.c
 *                      what dead processes left
 */
#ifndef KVP_JOURNAL_H
#define KVP_JOURNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kvpool.h"

/* ----------------------------------------------------------------- format */

#define KVP_JOURNAL_MAGIC 0x4a50564bU	/* "KVPJ", little endian */
#define KVP_JOURNAL_VERSION 1
#define KVP_JOURNAL_SUFFIX ".journal"
/* A file of more bytes is not read, so none is written. */
#define KVP_JOURNAL_SIZE_MAX (UINT64_C(1) << 30)
/* In place of the second record's first bytes: all that was behind the first one is over. */
#define KVP_JOURNAL_RESTART "KVPSTART"

/*
 * All numbers are little endian. Members are aligned by hand, so that a struct
 * is the bytes of the file. A type has one length.
 */
struct kvp_journal_head {
	uint32_t magic;
	uint32_t checksum;	/* of all that follows it in the record */
	uint16_t version;
	uint16_t type;		/* enum kvp_journal_type */
	uint32_t length;	/* of the whole record */
	uint64_t sequence;	/* 0 for the first record, then one more each */
};

struct kvp_journal_file_record {
	struct kvp_journal_head head;
	uint8_t boot_id[16];
	uint8_t session[16];
	uint64_t start;
	uint64_t pid_ns;
	uint64_t time_ns;
	uint32_t pid;
	uint32_t uid;
	char library[16];
};

struct kvp_journal_begin_record {
	struct kvp_journal_head head;
	uint64_t transaction;
	uint32_t entries;
	uint32_t pools;
	char domain[KVP_NAME_SIZE];
};

#define KVP_JOURNAL_POOL_CREATED	(1U << 0)	/* by the session of this journal */
#define KVP_JOURNAL_POOL_COMMITTED	(1U << 1)	/* by an earlier transaction of it */

struct kvp_journal_pool_record {
	struct kvp_journal_head head;
	uint64_t transaction;
	uint64_t generation;
	uint32_t id;
	uint32_t flags;
};

#define KVP_JOURNAL_DEVICE_EXTERNAL	(1U << 0)

struct kvp_journal_device_record {
	struct kvp_journal_head head;
	uint64_t transaction;
	uint32_t device;	/* of the registrar */
	uint32_t flags;
	char registrar[KVP_NAME_SIZE];
	char name[KVP_NAME_SIZE];
};

#define KVP_JOURNAL_ENTRY_READ_ONLY	(1U << 0)

/* One for each entry, so it is kept small: names are in the record of the device. */
struct kvp_journal_intent_record {
	struct kvp_journal_head head;
	uint64_t transaction;
	uint32_t entry;
	uint32_t index;
	uint32_t device;	/* number of its record in the transaction */
	uint32_t flags;
	uint64_t addr;
	uint64_t length;
	uint64_t generation;
	uint64_t offset;
	uint32_t pool;
	uint32_t zero;
};

/* Outcome of registering, and of undoing: `cookie` is 0 in the latter. */
struct kvp_journal_outcome_record {
	struct kvp_journal_head head;
	uint64_t transaction;
	uint32_t entry;
	int32_t code;
	uint64_t cookie;
};

struct kvp_journal_undo_record {
	struct kvp_journal_head head;
	uint64_t transaction;
	uint32_t entry;
	uint32_t zero;
};

/* Commit and end. */
struct kvp_journal_mark_record {
	struct kvp_journal_head head;
	uint64_t transaction;
};

union kvp_journal_any_record {
	struct kvp_journal_head head;
	struct kvp_journal_file_record file;
	struct kvp_journal_begin_record begin;
	struct kvp_journal_pool_record pool;
	struct kvp_journal_device_record device;
	struct kvp_journal_intent_record intent;
	struct kvp_journal_outcome_record outcome;
	struct kvp_journal_undo_record undo;
	struct kvp_journal_mark_record mark;
};

/* Bytes of a record of this type; 0: no such type. */
size_t kvp_journal_record_size(unsigned int type);
/*
 * Fill in the header of the record that begins with it; the rest is there, in little
 * endian. Returns the length.
 */
size_t kvp_journal_seal(struct kvp_journal_head *record, enum kvp_journal_type type,
			uint64_t sequence);
/* The checksum that the record of `size` bytes at `bytes` must have. */
uint32_t kvp_journal_checksum(const void *bytes, size_t size);

/* ---------------------------------------------------------------- process.c */

/* A process, so that no other one is taken for it. */
struct kvp_process {
	uint8_t boot_id[16];
	uint64_t start;		/* clock ticks since boot, field 22 of /proc/PID/stat */
	uint64_t pid_ns;	/* inode of its pid namespace, in which `pid` counts */
	uint64_t time_ns;	/* of its time namespace, in which `start` counts; 0: none */
	uint32_t pid;
	uint32_t uid;		/* effective */
};

/* This process. -EPROTO: /proc is not that of its pid namespace, or makes no sense. */
int kvp_process_self(struct kvp_process *self);

/* Whether `process` runs; `self` is who asks. */
enum kvp_liveness kvp_process_look(const struct kvp_process *process,
				   const struct kvp_process *self);
/* State, threads and start from the text of /proc/PID/stat. -EPROTO: it makes no sense. */
int kvp_process_parse(const char *stat, char *state, uint64_t *threads, uint64_t *start);

/* ------------------------------------------------------------ journal_dir.c */

/*
 * Open the directory of journals, a descriptor or a negative errno. `dir` NULL:
 * the default places, the first that is this user's. With `create` it is made
 * (mode 0700) where it isn't there. It must belong to this user, and nobody
 * else may write to it: who can add files there could have recovery unregister
 * what they like. `path` gets the name.
 */
#define KVP_JOURNAL_PATH_SIZE 4096
int kvp_journal_dir_open(const char *dir, bool create, char path[KVP_JOURNAL_PATH_SIZE],
			 struct kvp_error *error);
/*
 * Which directory is meant: `option`, else the environment, else NULL for the
 * default places. -EINVAL: not an absolute path. An empty string: none.
 */
int kvp_journal_dir_choose(const char *option, const char **dir, struct kvp_error *error);

/* ---------------------------------------------------------------- journal.c */

struct kvp_registration;

/* The journal that a context writes. All zero: it writes none. */
struct kvp_log {
	pthread_mutex_t lock;	/* protects the rest */
	bool on;
	bool broken;		/* a torn record could not be taken back: no more is written */
	char *dir;		/* NULL: the default places */
	pid_t pid;		/* process that opened it; 0: it isn't open yet */
	int fd, dir_fd;
	bool mapped;		/* written through a mapping, which reserving makes */
	void *map;		/* from the file's start; NULL: none yet */
	uint64_t map_size;
	uint64_t end;		/* of the space that the file has */
	char name[96];		/* in the directory */
	uint64_t offset;	/* where the next record goes */
	uint64_t sequence;	/* of the next record */
	uint64_t reserved;	/* bytes behind `offset` that open transactions may need */
	uint64_t transactions;	/* so many were begun */
	uint32_t open;		/* so many are open */
};

/*
 * Decide where the journal will be, by the option and the environment. With the
 * option it is opened at once; otherwise by the first transaction.
 */
int kvp_log_init(struct kvp_log *log, const char *option, struct kvp_error *error);
/* Open it, with its lock held or nobody else about. */
int kvp_log_start(struct kvp_log *log, struct kvp_error *error);
/* Close it, and remove the file when no transaction is open. */
void kvp_log_free(struct kvp_log *log);
/* Begin again behind the first record: nothing that was written is open. */
int kvp_log_restart(struct kvp_log *log);
/* Make the file end at `at`, without space behind it. */
int kvp_log_cut(struct kvp_log *log, uint64_t at);
/* Seal the record that begins there and write it at the end; all of it, or a negative errno. */
int kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
		   enum kvp_journal_type type);
/*
 * Make sure that `more` bytes beside those that are reserved can be written. -EFBIG: more
 * than the limit of the process, or than kvp_log_room().
 */
int kvp_log_reserve(struct kvp_log *log, uint64_t more);
/* Bytes that can be reserved before the file is longer than what is read. */
uint64_t kvp_log_room(const struct kvp_log *log);
/* "can't WHAT the journal PATH/NAME", and what to do about it. */
int kvp_log_fail(const struct kvp_log *log, int err, const char *what, const char *path,
		 struct kvp_error *error);

/* --------------------------------------------------------- journal_steps.c */

/*
 * Begin the transaction of a registration whose entries are planned: opens the
 * journal if need be, and reserves the space of everything that the transaction
 * may have to write. Nothing is registered yet.
 */
int kvp_log_begin(struct kvp_registration *registration, const char *domain,
		  struct kvp_error *error);
/* Write what happens to entry `n` down. `code` is the registrar's; see kvp_record_step(). */
int kvp_log_intent(struct kvp_registration *registration, uint32_t n);
int kvp_log_outcome(struct kvp_registration *registration, uint32_t n, int code);
int kvp_log_undo(struct kvp_registration *registration, uint32_t n);
int kvp_log_undone(struct kvp_registration *registration, uint32_t n, int code);
/*
 * Before entries are undone once more: reserves space for it if an earlier try
 * took it. Undoing goes on when there is none.
 */
void kvp_log_retry(struct kvp_registration *registration);
/* Everything is registered, and the caller will be told next. */
int kvp_log_commit(struct kvp_registration *registration, struct kvp_error *error);
/* Nothing of the transaction is registered any more. */
void kvp_log_end(struct kvp_registration *registration);

/* ------------------------------------------ journal_read.c, journal_apply.c */

/* Where a transaction's entries, devices or pools are among all. */
struct kvp_journal_numbers {
	uint32_t *positions;	/* by the number in the transaction */
	uint32_t count, room;
};

struct kvp_journal {
	struct kvp_journal_info info;
	struct kvp_journal_record *records;
	struct kvp_journal_entry *entries;
	struct kvp_journal_pool *pools;
	struct kvp_journal_device *devices;
	struct kvp_journal_transaction *transactions;
	/* Of each transaction. */
	struct kvp_journal_numbers *entry_numbers, *device_numbers, *pool_numbers;
	uint32_t record_room, entry_room, pool_room, device_room, transaction_room;
	uint32_t entry_numbers_room, device_numbers_room, pool_numbers_room;
};

/* Read what is in memory. 0 whatever it is, see info.condition, or -ENOMEM. */
int kvp_journal_parse(const void *bytes, size_t size, struct kvp_journal **journal);
/* Read an open file; as kvp_journal_read(). */
int kvp_journal_read_fd(int fd, const char *path, struct kvp_journal **journal,
			struct kvp_error *error);
/*
 * What a whole record does to what is known. Fills in `record`. 0, -ENOMEM, or
 * -EBADMSG with the reason in info.reason: it makes no sense where it stands.
 */
int kvp_journal_apply(struct kvp_journal *journal, const union kvp_journal_any_record *raw,
		      struct kvp_journal_record *record);

/* --------------------------------- recover.c, recover_file.c, recover_pool.c */

/* Memory that may be registered at an external registrar, by one of the journals. */
struct kvp_held {
	const char *file;	/* name of the journal */
	bool dead;		/* its process is */
	char registrar[KVP_NAME_SIZE];
	char device_name[KVP_NAME_SIZE];
	uint32_t device;
	struct kvp_span span;
};

struct kvp_recovery {
	struct kvp_ctx *ctx;
	struct kvp_recovery_options options;
	struct kvp_recovery_report *report;
	int dir_fd;
	struct kvp_held *held;
	uint32_t held_count, held_room;
	/* Of a process that may run, and damaged: it may hold anything. NULL: there is none. */
	const char *unknown;
	/* The file at hand. */
	const char *name;
	struct kvp_journal *journal;
	bool unfinished;	/* something in it is to be tried again */
};

/* Count it, and tell the caller. `err` and a reason are those of the report's first error. */
void kvp_recovery_tell(struct kvp_recovery *recovery, const struct kvp_recovery_event *event);
/* Add an entry of the journal `file` to what is held. -ENOMEM. */
int kvp_recovery_hold(struct kvp_recovery *recovery, const char *file, bool dead,
		      const struct kvp_journal_entry *entry);
/* Forget what the journal `file` holds: it is looked at anew. */
void kvp_recovery_release(struct kvp_recovery *recovery, const char *file);
/* End what the file says; -ENOMEM, everything else is told. */
int kvp_recovery_file(struct kvp_recovery *recovery, const char *name);
/* All that a journal says of each pool, in one, by id; free() ends it. -ENOMEM. */
int kvp_recovery_pools_new(const struct kvp_journal *journal, struct kvp_journal_pool **pools,
			   uint32_t *count);
/* End those of the file at hand that nothing is held of. */
void kvp_recovery_pools(struct kvp_recovery *recovery, const struct kvp_journal_pool *pools,
			uint32_t count);
/* A descriptor of the locked file of this user's, or a negative errno; -EAGAIN: it's locked. */
int kvp_recovery_open(const struct kvp_recovery *recovery, const char *name, int flags);

#endif /* KVP_JOURNAL_H */

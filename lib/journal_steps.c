// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a transaction writes to the journal, and the space that it takes for that first. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "transaction.h"

/* All that a transaction writes if every entry is registered, then undone. */
static uint64_t worst_case(const struct kvp_registration *registration)
{
	const uint64_t entry = sizeof(struct kvp_journal_intent_record) +
		2 * sizeof(struct kvp_journal_outcome_record) +
		sizeof(struct kvp_journal_undo_record);
	uint64_t devices = 0;
	uint32_t i;

	for (i = 0; i < registration->set.count; i++)
		devices += registration->set.registrars[i]->devices;
	return sizeof(struct kvp_journal_begin_record) +
	       registration->pool_count * sizeof(struct kvp_journal_pool_record) +
	       devices * sizeof(struct kvp_journal_device_record) +
	       registration->count * entry + 2 * sizeof(struct kvp_journal_mark_record);
}

static int append_pool(struct kvp_registration *registration, const struct kvp_pool_ref *pool)
{
	struct kvp_journal_pool_record record = {
		.transaction = htole64(registration->record.transaction),
		.generation = htole64(pool->generation),
		.id = htole32(pool->id),
	};
	uint32_t flags = 0;

	if (pool->created)
		flags |= KVP_JOURNAL_POOL_CREATED;
	if (pool->committed)
		flags |= KVP_JOURNAL_POOL_COMMITTED;
	record.flags = htole32(flags);
	return kvp_log_append(registration->record.log, &record.head, KVP_JOURNAL_POOL);
}

static int append_device(struct kvp_registration *registration,
			 const struct kvp_registrar *registrar, uint32_t device)
{
	struct kvp_journal_device_record record = {
		.transaction = htole64(registration->record.transaction),
		.device = htole32(device),
	};

	if (registrar->ops.external)
		record.flags = htole32(KVP_JOURNAL_DEVICE_EXTERNAL);
	snprintf(record.registrar, sizeof(record.registrar), "%s", registrar->name);
	snprintf(record.name, sizeof(record.name), "%s", kvp_registrar_device(registrar, device));
	return kvp_log_append(registration->record.log, &record.head, KVP_JOURNAL_DEVICE);
}

/* Entries name a device by its number among these. */
static int append_devices(struct kvp_registration *registration)
{
	uint32_t i, device;
	int err = 0;

	for (i = 0; i < registration->set.count && !err; i++) {
		const struct kvp_registrar *registrar = registration->set.registrars[i];

		for (device = 0; device < registrar->devices && !err; device++)
			err = append_device(registration, registrar, device);
	}
	return err;
}

static int append_begin(struct kvp_registration *registration, const char *domain)
{
	struct kvp_journal_begin_record record = {
		.transaction = htole64(registration->record.transaction),
		.entries = htole32(registration->count),
		.pools = htole32(registration->pool_count),
	};
	uint32_t i;
	int err;

	snprintf(record.domain, sizeof(record.domain), "%s", domain);
	err = kvp_log_append(registration->record.log, &record.head, KVP_JOURNAL_BEGIN);
	for (i = 0; i < registration->pool_count && !err; i++)
		err = append_pool(registration, &registration->pools[i]);
	return err ? err : append_devices(registration);
}

/* Take back what was written from `at` on: a transaction that has begun by half. */
static void take_back(struct kvp_log *log, uint64_t at, uint64_t sequence)
{
	if (kvp_log_cut(log, at)) {
		log->broken = true;
		log->offset = at;
	}
	log->sequence = sequence;
}

/* What is open keeps the file from starting anew: only ending it helps. */
static int too_long(const struct kvp_log *log, uint64_t worst, struct kvp_error *error)
{
	return kvp_fail(error, -EFBIG, KVP_PHASE_JOURNAL, KVP_NONE, NULL,
			log->open ? "unregister what is registered: with nothing open the file "
				    "begins anew; what stays registered for long, register with "
				    "a context of its own" :
				    "register less at once",
			"the journal %.90s has %" PRIu64 " bytes, and the transaction may need %"
			PRIu64 " more: a file of more than %" PRIu64 " is not read; %" PRIu32
			" transactions are open", log->name, log->offset + log->reserved, worst,
			KVP_JOURNAL_SIZE_MAX, log->open);
}

static int begin(struct kvp_registration *registration, const char *domain,
		 struct kvp_error *error)
{
	const uint64_t worst = worst_case(registration), before = registration->ctx->log.reserved;
	struct kvp_record *record = &registration->record;
	struct kvp_log *log = &registration->ctx->log;
	uint64_t at, sequence;
	int err;

	/* All that is there is over: start anew, so that the file does not grow for ever. */
	if (!log->open && log->offset > sizeof(struct kvp_journal_file_record))
		(void)kvp_log_restart(log);
	if (worst > kvp_log_room(log))
		return too_long(log, worst, error);
	err = kvp_log_reserve(log, worst);
	if (err)
		return kvp_log_fail(log, err, "reserve the space of the transaction in",
				    log->dir ? log->dir : "", error);
	at = log->offset;
	sequence = log->sequence;
	record->log = log;
	record->transaction = ++log->transactions;
	err = append_begin(registration, domain);
	if (err) {
		take_back(log, at, sequence);
		record->log = NULL;
		/*
		 * The space of those that are open went with it, and is still theirs: if it
		 * can't be had again now, the next transaction is refused without it.
		 */
		log->reserved = before;
		if (before)
			(void)kvp_log_reserve(log, 0);
		return kvp_log_fail(log, err, "write", log->dir ? log->dir : "", error);
	}
	record->reserved = worst - (log->offset - at);
	log->reserved -= log->offset - at;
	log->open++;
	return 0;
}

int kvp_log_begin(struct kvp_registration *registration, const char *domain,
		  struct kvp_error *error)
{
	struct kvp_log *log = &registration->ctx->log;
	int err = 0;

	if (!log->on)
		return 0;
	pthread_mutex_lock(&log->lock);
	if (!log->pid)
		err = kvp_log_start(log, error);
	else if (log->pid != getpid())
		err = kvp_fail(error, -EINVAL, KVP_PHASE_JOURNAL, KVP_NONE, NULL,
			       "open a context after fork()",
			       "the context is that of process %d", (int)log->pid);
	if (!err)
		err = begin(registration, domain, error);
	pthread_mutex_unlock(&log->lock);
	return err;
}

/* ------------------------------------------------------------------ steps */

/* A record of a transaction, which takes it from the space reserved; the log is locked. */
static int append(struct kvp_record *kept, struct kvp_journal_head *record,
		  enum kvp_journal_type type)
{
	uint64_t size = kvp_journal_record_size(type);
	int err;

	err = kvp_log_append(kept->log, record, type);
	if (size > kept->reserved)
		size = kept->reserved;
	kept->reserved -= size;
	kept->log->reserved -= size;
	return err;
}

static int write_down(struct kvp_registration *registration, struct kvp_journal_head *record,
		      enum kvp_journal_type type)
{
	struct kvp_record *kept = &registration->record;
	int err;

	pthread_mutex_lock(&kept->log->lock);
	err = append(kept, record, type);
	pthread_mutex_unlock(&kept->log->lock);
	return err;
}

/* The number of an entry's device among those of the transaction, see append_devices(). */
static uint32_t device_number(const struct kvp_registration *registration,
			      const struct kvp_entry *entry)
{
	uint32_t number = entry->device, i;

	for (i = 0; i < entry->registrar; i++)
		number += registration->set.registrars[i]->devices;
	return number;
}

int kvp_log_intent(struct kvp_registration *registration, uint32_t n)
{
	const struct kvp_entry *entry = &registration->entries[n];
	struct kvp_record *kept = &registration->record;
	struct kvp_journal_intent_record record = {
		.transaction = htole64(kept->transaction),
		.index = htole32(entry->index),
		.device = htole32(device_number(registration, entry)),
		.addr = htole64((uintptr_t)entry->chunk.addr),
		.length = htole64(entry->chunk.length),
		.generation = htole64(entry->chunk.span.generation),
		.offset = htole64(entry->chunk.span.offset),
		.pool = htole32(entry->chunk.span.id),
	};
	int err;

	if (entry->chunk.flags & KVP_BUFFER_READ_ONLY)
		record.flags = htole32(KVP_JOURNAL_ENTRY_READ_ONLY);
	/* A reader takes them in the order of their numbers only, whichever thread comes first. */
	pthread_mutex_lock(&kept->log->lock);
	record.entry = htole32(kept->intended);
	err = append(kept, &record.head, KVP_JOURNAL_INTENT);
	if (!err)
		kept->items[n].number = kept->intended++;
	pthread_mutex_unlock(&kept->log->lock);
	return err;
}

static int write_outcome(struct kvp_registration *registration, uint32_t n, int code,
			 enum kvp_journal_type type)
{
	struct kvp_journal_outcome_record record = {
		.transaction = htole64(registration->record.transaction),
		.entry = htole32(registration->record.items[n].number),
		.code = (int32_t)htole32((uint32_t)code),
	};

	if (type == KVP_JOURNAL_OUTCOME && !code)
		record.cookie = htole64((uintptr_t)registration->entries[n].cookie);
	return write_down(registration, &record.head, type);
}

int kvp_log_outcome(struct kvp_registration *registration, uint32_t n, int code)
{
	return write_outcome(registration, n, code, KVP_JOURNAL_OUTCOME);
}

int kvp_log_undone(struct kvp_registration *registration, uint32_t n, int code)
{
	return write_outcome(registration, n, code, KVP_JOURNAL_UNDONE);
}

int kvp_log_undo(struct kvp_registration *registration, uint32_t n)
{
	struct kvp_journal_undo_record record = {
		.transaction = htole64(registration->record.transaction),
		.entry = htole32(registration->record.items[n].number),
	};

	return write_down(registration, &record.head, KVP_JOURNAL_UNDO);
}

static int write_mark(struct kvp_registration *registration, enum kvp_journal_type type)
{
	struct kvp_journal_mark_record record = {
		.transaction = htole64(registration->record.transaction),
	};

	return write_down(registration, &record.head, type);
}

void kvp_log_retry(struct kvp_registration *registration)
{
	const uint64_t each = sizeof(struct kvp_journal_undo_record) +
		sizeof(struct kvp_journal_outcome_record);
	const uint64_t need = registration->count * each + sizeof(struct kvp_journal_mark_record);
	struct kvp_record *record = &registration->record;
	struct kvp_log *log = record->log;

	if (!log)
		return;
	pthread_mutex_lock(&log->lock);
	if (record->reserved < need && !kvp_log_reserve(log, need - record->reserved))
		record->reserved = need;
	pthread_mutex_unlock(&log->lock);
}

int kvp_log_commit(struct kvp_registration *registration, struct kvp_error *error)
{
	struct kvp_log *log = registration->record.log;
	int err = log ? write_mark(registration, KVP_JOURNAL_COMMIT) : 0;

	return err ? kvp_log_fail(log, err, "write", log->dir ? log->dir : "", error) : 0;
}

void kvp_log_end(struct kvp_registration *registration)
{
	struct kvp_record *record = &registration->record;
	struct kvp_log *log = record->log;

	if (!log)
		return;
	/* If it fails: every entry's own records say the same. */
	(void)write_mark(registration, KVP_JOURNAL_END);
	pthread_mutex_lock(&log->lock);
	log->reserved -= record->reserved;
	log->open--;
	pthread_mutex_unlock(&log->lock);
	record->log = NULL;
}

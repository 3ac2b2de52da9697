// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ending what one journal says. */
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transaction.h"

#define REASON_SIZE 192

int kvp_recovery_open(const struct kvp_recovery *recovery, const char *name, int flags)
{
	int fd = openat(recovery->dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (st.st_uid != geteuid() || st.st_mode & (0022))
		err = -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void tell_file(struct kvp_recovery *recovery, enum kvp_recovery_action action, int err,
		      const char *reason)
{
	const struct kvp_recovery_event event = {
		.action = action, .err = err, .reason = reason,
	};

	kvp_recovery_tell(recovery, &event);
}

/* ---------------------------------------------------------------- entries */

static struct kvp_registrar *find_registrar(const struct kvp_recovery *recovery, const char *name)
{
	const struct kvp_recovery_options *options = &recovery->options;
	uint32_t i;

	for (i = 0; i < options->registrar_count; i++)
		if (!strcmp(options->registrars[i]->name, name))
			return options->registrars[i];
	return NULL;
}

/* The device of that name: numbers may have changed. Without names, that of the number. */
static bool find_device(const struct kvp_registrar *registrar,
			const struct kvp_journal_entry *entry, uint32_t *device)
{
	const size_t cut = sizeof(entry->device_name) - 1;

	if (!entry->device_name[0]) {
		*device = entry->device;
		return *device < registrar->devices;
	}
	for (*device = 0; *device < registrar->devices; ++*device)
		if (!strncmp(kvp_registrar_device(registrar, *device), entry->device_name, cut))
			return true;
	return false;
}

/* As in find_device(): a name says more than a number, which may have changed. */
static bool same_device(const struct kvp_held *other, const struct kvp_journal_entry *entry)
{
	if (strcmp(other->registrar, entry->registrar))
		return false;
	if (other->device_name[0] && entry->device_name[0])
		return !strcmp(other->device_name, entry->device_name);
	return other->device == entry->device;
}

/* By a process that may run. */
static bool held(const struct kvp_recovery *recovery, const struct kvp_journal_entry *entry)
{
	const struct kvp_span *span = &entry->chunk.span;
	uint32_t i;

	for (i = 0; i < recovery->held_count; i++) {
		const struct kvp_held *other = &recovery->held[i];

		if (other->dead)
			continue;
		if (other->span.id != span->id || other->span.generation != span->generation ||
		    other->span.offset >= span->offset + span->length ||
		    span->offset >= other->span.offset + other->span.length)
			continue;
		if (same_device(other, entry))
			return true;
	}
	return false;
}

/*
 * Write a step of the recovery down. What is written already is not written
 * again, so that trying in vain does not make the file longer.
 */
static void write_step(struct kvp_log *log, const struct kvp_journal_entry *entry,
		       enum kvp_journal_type type, int code)
{
	struct kvp_journal_outcome_record record = {
		.transaction = htole64(entry->transaction),
		.entry = htole32(entry->number),
		.code = (int32_t)htole32((uint32_t)code),
	};
	const bool quarantined = entry->state == KVP_JOURNAL_ENTRY_QUARANTINED;

	if (type == KVP_JOURNAL_UNDO && (quarantined || entry->state == KVP_JOURNAL_ENTRY_UNDOING))
		return;
	if (type == KVP_JOURNAL_UNDONE && code && quarantined && code == entry->code)
		return;
	/* If it fails, the next recovery asks the registrar again, and is told -ENOENT. */
	(void)kvp_log_append(log, &record.head, type);
}

/* Returns 0 or why the entry can't be undone, with the reason in words. */
static int undo(struct kvp_recovery *recovery, struct kvp_log *log,
		const struct kvp_journal_entry *entry, char reason[REASON_SIZE])
{
	struct kvp_registrar *registrar = find_registrar(recovery, entry->registrar);
	struct kvp_chunk chunk = entry->chunk;
	void *cookie = (void *)(uintptr_t)entry->cookie;
	int result = 0;
	struct kvp_call call = {
		.undo = true, .count = 1, .chunks = &chunk, .cookies = &cookie, .results = &result,
	};
	bool foreign;

	if (!registrar) {
		snprintf(reason, REASON_SIZE, "no registrar called %s was given", entry->registrar);
		return -ENOENT;
	}
	if (!find_device(registrar, entry, &call.device)) {
		snprintf(reason, REASON_SIZE, "registrar %s has no device %s now", entry->registrar,
			 entry->device_name);
		return -ENODEV;
	}
	if (recovery->unknown) {
		snprintf(reason, REASON_SIZE, "a process that may run may have it registered too: "
			 "its journal %.80s is damaged", recovery->unknown);
		return -EBUSY;
	}
	if (held(recovery, entry)) {
		snprintf(reason, REASON_SIZE, "another process that may run has it registered too");
		return -EBUSY;
	}
	if (recovery->options.dry_run)
		return 0;
	write_step(log, entry, KVP_JOURNAL_UNDO, 0);
	kvp_call_run(registrar, &call);
	write_step(log, entry, KVP_JOURNAL_UNDONE, result);
	if (!result)
		return 0;
	if (call.late)
		snprintf(reason, REASON_SIZE, "%s call of registrar %s has run for more than %"
			 PRIu64 " ms", call.made ? "the" : "an earlier", entry->registrar,
			 registrar->ops.time_limit / 1000000);
	else
		snprintf(reason, REASON_SIZE, "registrar %s returned %d", entry->registrar,
			 result);
	return kvp_returned(result, &foreign);
}

/* Last first, whatever transaction they are of. */
static void recover_entries(struct kvp_recovery *recovery, struct kvp_log *log, bool *quarantined)
{
	const struct kvp_journal_info *info = kvp_journal_info(recovery->journal);
	char reason[REASON_SIZE];
	uint32_t n;

	for (n = info->entries; n--;) {
		struct kvp_recovery_event event = {
			.action = KVP_RECOVERY_ENTRY_GONE,
			.entry = kvp_journal_entry(recovery->journal, n),
		};

		if (!event.entry->open)
			continue;
		if (event.entry->external && info->liveness != KVP_LIVENESS_OTHER_BOOT) {
			reason[0] = '\0';
			event.err = undo(recovery, log, event.entry, reason);
			event.reason = reason;
			quarantined[n] = event.err;
			event.action = event.err ? KVP_RECOVERY_ENTRY_QUARANTINED :
						   KVP_RECOVERY_ENTRY_UNDONE;
		}
		if (quarantined[n])
			recovery->unfinished = true;
		kvp_recovery_tell(recovery, &event);
	}
}

/* -------------------------------------------------------------------- file */

/* Space for what will be written, and no torn record before it. */
static int prepare(const struct kvp_recovery *recovery, struct kvp_log *log)
{
	const uint64_t each = sizeof(struct kvp_journal_undo_record) +
		sizeof(struct kvp_journal_outcome_record);
	const struct kvp_journal_info *info = kvp_journal_info(recovery->journal);

	log->offset = info->offset;
	log->sequence = info->records;
	if (recovery->options.dry_run || !info->open_entries)
		return 0;
	if (info->size > info->offset && ftruncate(log->fd, (off_t)log->offset))
		return -errno;
	return kvp_log_reserve(log, info->open_entries * each);
}

static int recover(struct kvp_recovery *recovery, int fd)
{
	const struct kvp_journal_info *info = kvp_journal_info(recovery->journal);
	struct kvp_log log = { .fd = fd };
	struct kvp_journal_pool *pools = NULL;
	uint32_t pool_count, n;
	bool *quarantined;
	int err = 0;

	/* All memory that can be taken before is: nothing is done yet. */
	quarantined = calloc(info->entries ? info->entries : 1, sizeof(*quarantined));
	if (!quarantined || kvp_recovery_pools_new(recovery->journal, &pools, &pool_count)) {
		err = -ENOMEM;
		goto out;
	}
	err = prepare(recovery, &log);
	if (err) {
		tell_file(recovery, KVP_RECOVERY_FILE_REFUSED, err, "the file can't be written");
		err = 0;
		goto out;
	}
	recovery->unfinished = false;
	recover_entries(recovery, &log, quarantined);
	kvp_recovery_release(recovery, recovery->name);
	for (n = 0; n < info->entries && !err; n++)
		if (quarantined[n])
			err = kvp_recovery_hold(recovery, recovery->name, true,
						kvp_journal_entry(recovery->journal, n));
	if (err)
		goto out;
	kvp_recovery_pools(recovery, pools, pool_count);
	if (recovery->unfinished)
		tell_file(recovery, KVP_RECOVERY_FILE_KEPT, 0, "");
	else if (recovery->options.dry_run || !unlinkat(recovery->dir_fd, recovery->name, 0))
		tell_file(recovery, KVP_RECOVERY_FILE_REMOVED, 0, "");
	else
		tell_file(recovery, KVP_RECOVERY_FILE_REFUSED, -errno, "the file can't be removed");
out:
	free(pools);
	free(quarantined);
	return err;
}

/* Whether there is something to recover in it; tells why not. */
static bool ours(struct kvp_recovery *recovery)
{
	const struct kvp_journal_info *info = kvp_journal_info(recovery->journal);

	if ((info->condition != KVP_JOURNAL_WHOLE && info->condition != KVP_JOURNAL_TORN) ||
	    !info->records) {
		tell_file(recovery, KVP_RECOVERY_FILE_REFUSED, -EBADMSG, info->reason);
		return false;
	}
	switch (info->liveness) {
	case KVP_LIVENESS_DEAD:
	case KVP_LIVENESS_OTHER_BOOT:
		return true;
	case KVP_LIVENESS_ALIVE:
		tell_file(recovery, KVP_RECOVERY_FILE_ALIVE, 0, "");
		return false;
	case KVP_LIVENESS_UNKNOWN:
		break;
	}
	tell_file(recovery, KVP_RECOVERY_FILE_UNKNOWN, 0,
		  "recover in the pid and time namespace of its process");
	return false;
}

static int recover_locked(struct kvp_recovery *recovery, int fd)
{
	struct stat st;
	int err;

	/* Another recovery may have removed it before it was locked. */
	if (fstat(fd, &st) || !st.st_nlink)
		return 0;
	err = kvp_journal_read_fd(fd, recovery->name, &recovery->journal, NULL);
	if (err == -ENOMEM)
		return err;
	if (err) {
		tell_file(recovery, KVP_RECOVERY_FILE_REFUSED, err, "the file can't be read");
		return 0;
	}
	if (ours(recovery))
		err = recover(recovery, fd);
	kvp_journal_free(recovery->journal);
	recovery->journal = NULL;
	return err;
}

int kvp_recovery_file(struct kvp_recovery *recovery, const char *name)
{
	int fd = kvp_recovery_open(recovery, name, recovery->options.dry_run ? O_RDONLY : O_RDWR);
	int err = 0;

	recovery->name = name;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0) {
		tell_file(recovery, KVP_RECOVERY_FILE_REFUSED, fd,
			  fd == -EPERM ? "others can write to it" : "the file can't be opened");
		return 0;
	}
	/* Its writer takes no lock: a forked child would keep it. */
	if (!flock(fd, LOCK_EX | LOCK_NB)) {
		err = recover_locked(recovery, fd);
		/* A child that was forked meanwhile has the descriptor too. */
		flock(fd, LOCK_UN);
	} else if (errno == EWOULDBLOCK) {
		tell_file(recovery, KVP_RECOVERY_FILE_BUSY, 0, "");
	} else {
		tell_file(recovery, KVP_RECOVERY_FILE_REFUSED, -errno, "the file can't be locked");
	}
	close(fd);
	return err;
}

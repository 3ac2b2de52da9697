// SPDX-License-Identifier: LGPL-2.1-or-later
/* Going through the journals of a directory to end what dead processes left. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "transaction.h"

/* A file that has no name yet after so many seconds will never get one. */
#define HIDDEN_SECONDS 600

void kvp_recovery_tell(struct kvp_recovery *recovery, const struct kvp_recovery_event *event)
{
	struct kvp_recovery_event told = *event;

	told.file = recovery->name;
	if (!told.reason)
		told.reason = "";
	recovery->report->count[told.action]++;
	switch (told.action) {
	case KVP_RECOVERY_FILE_REFUSED:
	case KVP_RECOVERY_ENTRY_QUARANTINED:
	case KVP_RECOVERY_POOL_FAILED:
		if (!recovery->report->first.err)
			kvp_fail(&recovery->report->first, told.err ? told.err : -EIO,
				 KVP_PHASE_RECOVER, told.entry ? told.entry->index : KVP_NONE,
				 told.entry ? told.entry->device_name : NULL,
				 "see kvpoolctl journal show, remove the cause and recover again",
				 "%.100s: %s: %.120s", told.file,
				 kvp_recovery_action_name(told.action), told.reason);
		break;
	default:
		break;
	}
	if (recovery->options.each)
		recovery->options.each(&told, recovery->options.arg);
}

int kvp_recovery_hold(struct kvp_recovery *recovery, const char *file, bool dead,
		      const struct kvp_journal_entry *entry)
{
	struct kvp_held *held;

	if (kvp_array_grow(&recovery->held, recovery->held_count, &recovery->held_room,
			   sizeof(*held)))
		return -ENOMEM;
	held = &recovery->held[recovery->held_count++];
	*held = (struct kvp_held){
		.file = file, .dead = dead, .device = entry->device, .span = entry->chunk.span,
	};
	memcpy(held->registrar, entry->registrar, sizeof(held->registrar));
	memcpy(held->device_name, entry->device_name, sizeof(held->device_name));
	return 0;
}

void kvp_recovery_release(struct kvp_recovery *recovery, const char *file)
{
	uint32_t i, kept = 0;

	for (i = 0; i < recovery->held_count; i++)
		if (recovery->held[i].file != file)
			recovery->held[kept++] = recovery->held[i];
	recovery->held_count = kept;
}

/* ---------------------------------------------------------------- directory */

struct file {
	char name[NAME_MAX + 1];
	bool holds;		/* something at an external registrar */
};

struct names {
	struct file *file;
	uint32_t count, room;
};

static int by_name(const void *left, const void *right)
{
	const struct file *one = left, *other = right;

	return strcmp(one->name, other->name);
}

static bool is_journal(const char *name)
{
	const size_t length = strlen(name), suffix = strlen(KVP_JOURNAL_SUFFIX);

	return length > suffix && !strcmp(name + length - suffix, KVP_JOURNAL_SUFFIX);
}

/* Whether it has no more than the first record: space that was reserved behind it is none. */
static bool is_empty(int fd, const char *name)
{
	const struct kvp_journal_info *info;
	struct kvp_journal *journal;
	bool empty;

	if (kvp_journal_read_fd(fd, name, &journal, NULL))
		return false;
	info = kvp_journal_info(journal);
	empty = info->records <= 1 && (info->condition == KVP_JOURNAL_WHOLE ||
				       info->condition == KVP_JOURNAL_TORN);
	kvp_journal_free(journal);
	return empty;
}

/* Remove what a process left that died before its journal had a name: nothing is in it. */
static void remove_hidden(const struct kvp_recovery *recovery, const char *name)
{
	struct stat st;
	int fd;

	if (recovery->options.dry_run || !is_journal(name))
		return;
	fd = kvp_recovery_open(recovery, name, O_RDONLY);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_mtime + HIDDEN_SECONDS < time(NULL) && is_empty(fd, name))
		unlinkat(recovery->dir_fd, name, 0);
	close(fd);
}

static int list(const struct kvp_recovery *recovery, struct names *names)
{
	int fd = fcntl(recovery->dir_fd, F_DUPFD_CLOEXEC, 0), err = 0;
	const struct dirent *entry;
	DIR *directory;

	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	for (;;) {
		errno = 0;
		entry = readdir(directory);
		if (!entry) {
			err = -errno;
			break;
		}
		if (entry->d_name[0] == '.') {
			remove_hidden(recovery, entry->d_name);
			continue;
		}
		if (!is_journal(entry->d_name))
			continue;
		err = kvp_array_grow(&names->file, names->count, &names->room,
				     sizeof(*names->file));
		if (err)
			break;
		strcpy(names->file[names->count].name, entry->d_name);
		names->file[names->count++].holds = false;
	}
	closedir(directory);
	if (names->count)
		qsort(names->file, names->count, sizeof(*names->file), by_name);
	return err;
}

static int hold_entries(struct kvp_recovery *recovery, struct file *file,
			const struct kvp_journal *journal)
{
	const enum kvp_liveness liveness = kvp_journal_info(journal)->liveness;
	const struct kvp_journal_entry *entry;
	uint32_t n;
	int err = 0;

	if (liveness == KVP_LIVENESS_OTHER_BOOT)
		return 0;
	for (n = 0; (entry = kvp_journal_entry(journal, n)) && !err; n++) {
		if (!entry->open || !entry->external)
			continue;
		file->holds = true;
		err = kvp_recovery_hold(recovery, file->name, liveness == KVP_LIVENESS_DEAD, entry);
	}
	return err;
}

/* Whether the process that the file's name gives may run: its first record says nothing. */
static bool named_may_run(const char *name)
{
	struct kvp_process process, self;

	if (kvp_process_self(&self))
		return true;
	process = self;
	if (sscanf(name, "%" SCNu32 "-%" SCNu64 "-", &process.pid, &process.start) != 2)
		return false;
	return kvp_process_look(&process, &self) != KVP_LIVENESS_DEAD;
}

/* Whether a process that may run has more registered than could be read. */
static bool more_held(const char *name, const struct kvp_journal_info *info)
{
	if (!info->records)
		return named_may_run(name);
	/* The end of a record that is just being written is missing, which says nothing. */
	if (info->condition == KVP_JOURNAL_WHOLE || info->condition == KVP_JOURNAL_TORN)
		return false;
	return info->liveness != KVP_LIVENESS_DEAD && info->liveness != KVP_LIVENESS_OTHER_BOOT;
}

/* What is no journal of this user's that is safe to act on: it is told when its turn comes. */
static bool refused(int err)
{
	switch (err) {
	case -EPERM:	/* of another user, or others may write to it */
	case -EACCES:
	case -ELOOP:	/* a link */
	case -EINVAL:	/* no regular file */
	case -ENXIO:
		return true;
	default:
		return false;
	}
}

static int fail(int err, struct kvp_error *error)
{
	return kvp_fail(error, err, KVP_PHASE_RECOVER, KVP_NONE, NULL, "recover again",
			"can't go through the journals");
}

static int hold_file(struct kvp_recovery *recovery, struct file *file, struct kvp_error *error)
{
	struct kvp_journal *journal;
	int fd = kvp_recovery_open(recovery, file->name, O_RDONLY), err;

	if (fd == -ENOENT || refused(fd))
		return 0;
	err = fd < 0 ? fd : kvp_journal_read_fd(fd, file->name, &journal, NULL);
	if (fd >= 0)
		close(fd);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_RECOVER, KVP_NONE, NULL,
				err == -EMFILE ? "raise the limit of open files (ulimit -n)" :
				"remove the cause and recover again; if the process that its name "
				"begins with has ended, the file may be moved away",
				"can't read the journal %.180s, so what it holds is not known: "
				"nothing was recovered", file->name);
	err = hold_entries(recovery, file, journal);
	if (more_held(file->name, kvp_journal_info(journal)))
		recovery->unknown = file->name;
	kvp_journal_free(journal);
	return err ? fail(err, error) : 0;
}

/*
 * What is held, by all journals, damaged ones as far as they are read: what a
 * process has that may run must not be unregistered under it, and a pool that a
 * store may still write to must not be destroyed.
 */
static int hold_all(struct kvp_recovery *recovery, struct names *names, struct kvp_error *error)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < names->count && !err; i++)
		err = hold_file(recovery, &names->file[i], error);
	return err;
}

static int recover_all(struct kvp_recovery *recovery, struct kvp_error *error)
{
	struct names names = { 0 };
	uint32_t i, round;
	int err;

	err = list(recovery, &names);
	err = err ? fail(err, error) : hold_all(recovery, &names, error);
	if (err) {
		free(names.file);
		return err;
	}
	/* First those that hold something: what they release may let pools of others end. */
	for (round = 0; round < 2; round++)
		for (i = 0; i < names.count && !err; i++)
			if (names.file[i].holds == !round)
				err = kvp_recovery_file(recovery, names.file[i].name);
	free(names.file);
	return err ? fail(err, error) : 0;
}

static int check_registrars(const struct kvp_recovery_options *options, struct kvp_error *error)
{
	uint32_t i, j;

	for (i = 0; i < options->registrar_count; i++) {
		const struct kvp_registrar *registrar = options->registrars ?
			options->registrars[i] : NULL;

		if (!registrar || !registrar->name[0])
			return kvp_fail(error, -EINVAL, KVP_PHASE_RECOVER, KVP_NONE, NULL,
					"set name in struct kvp_registrar_ops",
					"registrar %" PRIu32 " is NULL or has no name", i);
		for (j = 0; j < i; j++)
			if (!strcmp(options->registrars[j]->name, registrar->name))
				return kvp_fail(error, -EINVAL, KVP_PHASE_RECOVER, KVP_NONE, NULL,
						NULL, "registrars %" PRIu32 " and %" PRIu32
						" are both called %s", j, i, registrar->name);
	}
	return 0;
}

KVP_EXPORT int kvp_recover(struct kvp_ctx *ctx, const struct kvp_recovery_options *given,
			   struct kvp_recovery_report *report, struct kvp_error *error)
{
	struct kvp_recovery recovery = { .ctx = ctx };
	struct kvp_recovery_report unseen = { 0 };
	char path[KVP_JOURNAL_PATH_SIZE];
	struct kvp_error why;
	const char *dir;
	int err;

	recovery.report = report ? report : &unseen;
	memset(recovery.report, 0, sizeof(*report));
	err = kvp_options_copy(&recovery.options, sizeof(recovery.options), given);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_RECOVER, KVP_NONE, NULL,
				"set them up with KVP_INIT(struct kvp_recovery_options)",
				"kvp_recovery_options of %zu bytes, the library knows %zu",
				given->struct_size, sizeof(*given));
	err = check_registrars(&recovery.options, error);
	if (!err)
		err = kvp_journal_dir_choose(recovery.options.journal_dir, &dir, error);
	if (err || (dir && !*dir))
		return err;
	recovery.dir_fd = kvp_journal_dir_open(dir, false, path, &why);
	if (recovery.dir_fd == -ENOENT)
		return 0;
	if (recovery.dir_fd < 0) {
		if (error)
			*error = why;
		return recovery.dir_fd;
	}
	err = recover_all(&recovery, error);
	close(recovery.dir_fd);
	free(recovery.held);
	return err;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Recovery of what dead processes left at an external store. */
#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_store.h"

static void nothing_changes_the_second_time(void)
{
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "");
	assert_int_equal(fake_store->undo_calls, 0);
}

static void assert_reverse(void)
{
	unsigned int i;

	for (i = 1; i < fake_store->undo_calls; i++)
		assert_true(fake_store->undone[i] < fake_store->undone[i - 1]);
}

/* Make a hidden file look old: its process died before it had a name. */
static void age(void)
{
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	const char *path = fake_journal_path();

	if (path)
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Killed in every write of two lives in one file, after all of the record or half of it. */
static void killed_at_every_record(void **state)
{
	unsigned int n, torn;

	(void)state;
	for (torn = 0; torn < 2; torn++) {
		for (n = 1; fake_store_process(FAKE_CLOSE, false, n, torn); n++) {
			const struct kvp_recovery_report report = (age(), fake_store_recover(false));

			assert_int_equal(report.first.err, 0);
			assert_int_equal(fake_store_held(), 0);
			assert_int_equal(fake_journal_files(), 0);
			assert_reverse();
			nothing_changes_the_second_time();
		}
		/* file; begin, pool, device, an entry's four, commit and end, twice. */
		assert_int_equal(n, 1 + 2 * (3 + 4 * STORE_BUFFERS + 2) + 1);
		assert_int_equal(fake_journal_files(), 0);
	}
}

/* The recovery is killed at every record as well, and the next one goes on. */
static void killed_recoveries(void **state)
{
	unsigned int n;
	int status = 1;
	pid_t pid;

	(void)state;
	for (n = 1; status; n++) {
		fake_store_process(FAKE_EXIT, false, 0, false);
		assert_int_equal(fake_store_held(), STORE_BUFFERS);
		pid = fake_fork();
		if (!pid) {
			fake_kill(n, n % 2);
			fake_store_recover(false);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(!status || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
		fake_store_recover(false);
		assert_int_equal(fake_store_held(), 0);
		assert_int_equal(fake_journal_files(), 0);
		nothing_changes_the_second_time();
	}
	assert_int_equal(n - 1, 2 * STORE_BUFFERS + 1);
}

static void dry_run_changes_nothing(void **state)
{
	char *before, *after;
	size_t size, same;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 12, true);	/* torn */
	before = fake_journal_load(fake_journal_path(), &size);
	fake_store_recover(true);
	assert_string_equal(fake_store_events(), "entry-undone:2 entry-undone:1 entry-undone:0 "
			    "pool-left:1 removed");
	assert_int_equal(fake_store->undo_calls, 0);
	after = fake_journal_load(fake_journal_path(), &same);
	assert_int_equal(size, same);
	assert_memory_equal(before, after, size);
	free(before);
	free(after);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "entry-undone:2 entry-undone:1 entry-undone:0 "
			    "pool-left:1 removed");
	assert_int_equal(fake_store->undo_calls, 3);
}

/* Bytes of its records, without the space that was reserved behind them. */
static size_t written(const char *path)
{
	struct kvp_journal *journal;
	size_t size;

	assert_int_equal(kvp_journal_read(path, &journal, NULL), 0);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
	size = kvp_journal_info(journal)->offset;
	kvp_journal_free(journal);
	return size;
}

/* Cut at every byte: what is told is undone, and nothing else; the rest is refused. */
static void cut_at_every_byte(void **state)
{
	size_t size, whole, cut;
	char path[400];
	char *bytes;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	strcpy(path, fake_journal_path());
	bytes = fake_journal_load(path, &size);
	whole = written(path);
	/* And once in the space behind it. */
	for (cut = 0; cut <= size && cut <= whole + 1; cut++) {
		struct kvp_recovery_report report;
		unsigned int i;

		/* The store holds all whose intent could be read: the most there can be. */
		memset(fake_store->held, 0, sizeof(fake_store->held));
		for (i = 0; i < STORE_BUFFERS; i++)
			fake_store->held[i] = cut >= 104 + 104 + 48 + 168 + i * 136 + 88;
		fake_journal_store(path, bytes, cut);
		assert_int_equal(chmod(path, 0600), 0);
		report = fake_store_recover(false);
		if (cut < 104) {
			assert_string_equal(fake_store_events(), "refused");
			assert_int_equal(report.first.err, -EBADMSG);
			assert_int_equal(remove(path), 0);
		}
		assert_int_equal(fake_store_held(), 0);
		assert_int_equal(fake_journal_files(), 0);
		assert_reverse();
	}
	free(bytes);
}

/* With a byte flipped it is refused as it is, whatever the byte. */
static void every_byte_flipped(void **state)
{
	size_t size, whole, at, same;
	char path[400];
	char *bytes, *after;

	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	strcpy(path, fake_journal_path());
	bytes = fake_journal_load(path, &size);
	whole = written(path);
	for (at = 0; at < whole; at++) {
		bytes[at] ^= 0x5a;
		fake_journal_store(path, bytes, size);
		fake_store_recover(false);
		assert_string_equal(fake_store_events(), "refused");
		assert_int_equal(fake_store->undo_calls, 0);
		after = fake_journal_load(path, &same);
		assert_int_equal(same, size);
		assert_memory_equal(after, bytes, size);
		free(after);
		bytes[at] ^= 0x5a;
	}
	assert_int_equal(fake_store_held(), STORE_BUFFERS);
	assert_int_equal(fake_world_destroyed, 0);
	/* Behind them it is half a record, which says nothing. */
	if (size > whole)
		bytes[whole + sizeof(union kvp_journal_any_record) / 2] ^= 0x5a;
	fake_journal_store(path, bytes, size);
	free(bytes);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
}

static void other_boot(struct kvp_journal_file_record *file)
{
	file->boot_id[3] ^= 1;
}

static void other_namespace(struct kvp_journal_file_record *file)
{
	file->pid_ns ^= htole64(1);
}

static void reused_pid(struct kvp_journal_file_record *file)
{
	/* The number is that of a process that runs; the start is not. */
	file->pid = htole32((uint32_t)getpid());
}

/* Nothing of another boot is left, and what has its place now is not touched. */
static void from_another_boot(void **state)
{
	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	fake_journal_rewrite(other_boot);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "entry-gone:2 entry-gone:1 entry-gone:0 "
			    "pool-gone:1 removed");
	assert_int_equal(fake_store->undo_calls, 0);
	assert_int_equal(fake_world_destroyed, 0);
}

static void from_another_namespace(void **state)
{
	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	fake_journal_rewrite(other_namespace);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "unknown");
	assert_int_equal(fake_store->undo_calls, 0);
	assert_int_equal(fake_journal_files(), 1);
}

static void pid_was_used_again(void **state)
{
	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	fake_journal_rewrite(reused_pid);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
	assert_int_equal(fake_journal_files(), 0);
}

static void running_process(void **state)
{
	pid_t pid = fake_store_waiting();

	(void)state;
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "alive");
	/* What a dead one had at the same place is the running one's now. */
	fake_store_process(FAKE_EXIT, false, 0, false);
	fake_store_recover(false);
	assert_non_null(strstr(fake_store_events(), "alive"));
	assert_non_null(strstr(fake_store_events(), "entry-quarantined:2 entry-quarantined:1 "
						    "entry-quarantined:0 pool-left:1 kept"));
	assert_int_equal(fake_store->undo_calls, 0);
	fake_store_end(pid);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
	assert_int_equal(fake_journal_files(), 0);
	nothing_changes_the_second_time();
}

static int recover_fails(struct kvp_error *error)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_registrar *registrar = fake_store_registrar("store");
	int err;

	options.journal_dir = fake_store_dir;
	options.registrars = &registrar;
	options.registrar_count = 1;
	err = kvp_recover(fake_world_ctx(), &options, NULL, error);
	kvp_registrar_free(registrar);
	return err;
}

/* A journal that can't be opened may be that of a running process, and hold anything. */
static void not_without_every_journal(void **state)
{
	static const int errors[] = { EMFILE, ENFILE, EIO };
	struct kvp_error error;
	char path[400];
	size_t i;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	strcpy(path, strrchr(fake_journal_path(), '/') + 1);
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		/* The directory is the first that is opened. */
		fake_fail(FAKE_OPENAT, 1, errors[i]);
		assert_int_equal(recover_fails(&error), -errors[i]);
		fake_assert_error(&error, -errors[i], KVP_PHASE_RECOVER, path,
				  errors[i] == EMFILE ? "ulimit -n" : "recover again");
	}
	/* Gone meanwhile, or refused: that is what holds nothing. */
	fake_fail(FAKE_OPENAT, 1, EACCES);
	assert_int_equal(recover_fails(&error), 0);
	fake_store_process(FAKE_EXIT, false, 0, false);
	fake_fail(FAKE_OPENAT, 1, ENOENT);
	assert_int_equal(recover_fails(&error), 0);
	assert_int_equal(fake_store_held(), 0);
	assert_int_equal(fake_journal_files(), 0);
}

static void not_past_one_that_is_too_long(void **state)
{
	const off_t limit = (off_t)1 << 30;
	struct kvp_error error;
	char path[400];
	struct stat st;

	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	strcpy(path, fake_journal_path());
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, limit + 1), 0);
	assert_int_equal(recover_fails(&error), -EFBIG);
	fake_assert_error(&error, -EFBIG, KVP_PHASE_RECOVER, strrchr(path, '/') + 1, "moved away");
	assert_int_equal(fake_store_held(), STORE_BUFFERS);
	assert_int_equal(fake_world_destroyed, 0);
	assert_int_equal(truncate(path, st.st_size), 0);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
}

/* Of one that runs, which has been damaged behind or in its first record. */
static void running_process_damaged(void **state)
{
	static const size_t places[] = { 0, 60, 104 + 30 };
	pid_t pid = fake_store_waiting();
	char path[400], *bytes;
	size_t size, i;

	(void)state;
	strcpy(path, fake_journal_path());
	bytes = fake_journal_load(path, &size);
	fake_store_process(FAKE_EXIT, true, 0, false);
	fake_world_info(1)->lifetime = KVP_LIFETIME_OWNER;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct kvp_recovery_report report;

		bytes[places[i]] ^= 0x5a;
		fake_journal_store(path, bytes, size);
		report = fake_store_recover(false);
		assert_int_equal(report.count[KVP_RECOVERY_FILE_REFUSED], 1);
		assert_non_null(strstr(fake_store_events(), "entry-quarantined:2 "
				       "entry-quarantined:1 entry-quarantined:0 pool-left:1 "
				       "kept"));
		assert_int_equal(fake_store->undo_calls, 0);
		assert_int_equal(fake_world_destroyed, 0);
		bytes[places[i]] ^= 0x5a;
	}
	/* Empty is no better. */
	assert_int_equal(truncate(path, 0), 0);
	fake_store_recover(false);
	assert_int_equal(fake_store->undo_calls, 0);
	/* When it has ended, nothing runs that could have it. */
	fake_store_end(pid);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
	assert_int_equal(fake_world_destroyed, 1);
	free(bytes);
}

/* The store has numbered its devices anew since: it is the same device all the same. */
static void renumber(const char *path)
{
	union kvp_journal_any_record record;
	size_t size, at = 0, length;
	char *bytes = fake_journal_load(path, &size);
	uint64_t sequence = 0;

	for (; at < size; at += length, sequence++) {
		memcpy(&record.head, bytes + at, sizeof(record.head));
		length = le32toh(record.head.length);
		memcpy(&record, bytes + at, length);
		if (le16toh(record.head.type) == KVP_JOURNAL_DEVICE) {
			record.device.device = htole32(7);
			kvp_journal_seal(&record.head, KVP_JOURNAL_DEVICE, sequence);
			memcpy(bytes + at, &record, length);
		}
	}
	fake_journal_store(path, bytes, size);
	free(bytes);
}

static void running_process_renumbered(void **state)
{
	char path[400];
	pid_t pid;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	strcpy(path, fake_journal_path());
	renumber(path);
	pid = fake_store_waiting();
	fake_store_recover(false);
	assert_non_null(strstr(fake_store_events(), "entry-quarantined:2 entry-quarantined:1 "
						    "entry-quarantined:0 pool-left:1 kept"));
	assert_int_equal(fake_store->undo_calls, 0);
	fake_store_end(pid);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
}

static void two_recoveries(void **state)
{
	int fd;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	fd = openat(AT_FDCWD, fake_journal_path(), O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "busy");
	assert_int_equal(fake_store->undo_calls, 0);
	close(fd);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
}

static void store_fails(void **state)
{
	struct kvp_recovery_report report;
	struct stat first, later;
	unsigned int i;

	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	fake_world_info(1)->lifetime = KVP_LIFETIME_OWNER;
	fake_store->undo_ret[1] = 600;
	report = fake_store_recover(false);
	/* Past the failure, and the memory is not freed. */
	assert_string_equal(fake_store_events(), "entry-undone:2 entry-quarantined:1 "
			    "entry-undone:0 pool-left:1 kept");
	assert_int_equal(report.count[KVP_RECOVERY_ENTRY_QUARANTINED], 1);
	assert_int_equal(report.first.err, -EREMOTEIO);
	assert_int_equal(report.first.phase, KVP_PHASE_RECOVER);
	assert_int_equal(report.first.index, 1);
	assert_string_equal(report.first.device, "disk");
	assert_contains(report.first.message, "registrar store returned 600");
	assert_int_equal(fake_world_destroyed, 0);
	/* Tried again at each call; the file does not grow with it. */
	assert_int_equal(stat(fake_journal_path(), &first), 0);
	for (i = 0; i < 3; i++) {
		fake_store_recover(false);
		assert_string_equal(fake_store_events(), "entry-quarantined:1 pool-left:1 kept");
		assert_int_equal(fake_store->undo_calls, 1);
	}
	assert_int_equal(stat(fake_journal_path(), &later), 0);
	assert_int_equal(first.st_size, later.st_size);
	fake_store->undo_ret[1] = 0;
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "entry-undone:1 pool-destroyed:1 removed");
	nothing_changes_the_second_time();
}

static pid_t forked;

static void fork_once(const struct kvp_recovery_event *event, void *arg)
{
	(void)event;
	(void)arg;
	if (!forked)
		forked = fake_fork();
	if (!forked) {
		pause();
		_exit(0);
	}
}

/* A child that is forked meanwhile keeps no lock of the file. */
static void forked_during_a_recovery(void **state)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_recovery_report first, second;
	int err;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	options.journal_dir = fake_store_dir;
	options.each = fork_once;
	forked = 0;
	err = kvp_recover(fake_world_ctx(), &options, &first, NULL);
	assert_true(forked > 0);
	second = fake_store_recover(false);
	/* Before anything can fail: it would outlive the test. */
	assert_int_equal(kill(forked, SIGKILL), 0);
	assert_int_equal(waitpid(forked, NULL, 0), forked);
	assert_int_equal(err, 0);
	assert_int_equal(first.count[KVP_RECOVERY_FILE_KEPT], 1);
	assert_int_equal(second.count[KVP_RECOVERY_FILE_BUSY], 0);
	assert_int_equal(second.count[KVP_RECOVERY_FILE_REMOVED], 1);
	assert_int_equal(fake_store_held(), 0);
}

/* What can't be listed may be the journal of one that lives. */
static void not_past_an_error_of_the_directory(void **state)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_registrar *registrar = fake_store_registrar("store");
	struct kvp_error error;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	options.journal_dir = fake_store_dir;
	options.registrars = &registrar;
	options.registrar_count = 1;
	fake_fail(FAKE_READDIR, 2, EIO);
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), -EIO);
	assert_contains(error.message, "can't go through the journals");
	assert_int_equal(fake_store_held(), STORE_BUFFERS);
	kvp_registrar_free(registrar);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
}

static void without_its_registrar(void **state)
{
	struct kvp_recovery_report report;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	report = fake_store_recover_alone();
	assert_int_equal(report.count[KVP_RECOVERY_ENTRY_QUARANTINED], STORE_BUFFERS);
	assert_contains(report.first.message, "no registrar called store was given");
	assert_int_equal(fake_journal_files(), 1);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
	assert_int_equal(fake_journal_files(), 0);
}

/* A full disk: nothing is undone that could not be written down. */
static void no_space(void **state)
{
	struct kvp_recovery_report report;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	fake_fail(FAKE_FALLOCATE, 0, ENOSPC);
	report = fake_store_recover(false);
	assert_string_equal(fake_store_events(), "refused");
	assert_int_equal(report.first.err, -ENOSPC);
	assert_int_equal(fake_store->undo_calls, 0);
	/* A write that fails all the same does not stop it. */
	fake_fail(FAKE_WRITE, 1, EIO);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
	assert_int_equal(fake_journal_files(), 0);
}

static void files_of_others(void **state)
{
	char path[400];

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	strcpy(path, fake_journal_path());
	assert_int_equal(chmod(path, 0620), 0);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "refused");
	assert_int_equal(chmod(path, 0600), 0);
	if (!geteuid()) {
		assert_int_equal(chown(path, 4711, 4711), 0);
		fake_store_recover(false);
		assert_string_equal(fake_store_events(), "refused");
		assert_int_equal(chown(path, 0, 0), 0);
	}
	assert_int_equal(fake_store->undo_calls, 0);
	fake_store_recover(false);
	assert_int_equal(fake_store_held(), 0);
	/* A link is no journal. */
	assert_int_equal(symlink("/dev/zero", path), 0);
	fake_store_recover(false);
	assert_string_equal(fake_store_events(), "refused");
}

static void arguments(void **state)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_registrar *two[2] = { fake_store_registrar("a"), fake_store_registrar("a") };
	struct kvp_error error;

	(void)state;
	options.journal_dir = "here";
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), -EINVAL);
	options.journal_dir = "/nonexistent";
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), 0);
	options.journal_dir = "";
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), 0);
	options.registrars = two;
	options.registrar_count = 2;
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_RECOVER, "both called a", NULL);
	two[0]->name[0] = '\0';
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_RECOVER, "has no name", "kvp_registrar_ops");
	kvp_registrar_free(two[0]);
	kvp_registrar_free(two[1]);
	options.struct_size = 0;
	assert_int_equal(kvp_recover(fake_world_ctx(), &options, NULL, &error), -EINVAL);
	/* By the environment it is off. */
	assert_int_equal(kvp_recover(fake_world_ctx(), NULL, NULL, NULL), 0);
}

static void no_memory(void **state)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_registrar *registrar = fake_store_registrar("store");
	struct kvp_error error;
	unsigned int n;
	int err;

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	options.journal_dir = fake_store_dir;
	options.registrars = &registrar;
	options.registrar_count = 1;
	for (n = 1;; n++) {
		fake_fail_alloc(n);
		err = kvp_recover(fake_world_ctx(), &options, NULL, &error);
		if (!fake_alloc_failed())
			break;
		assert_int_equal(err, -ENOMEM);
		fake_assert_error(&error, -ENOMEM, KVP_PHASE_RECOVER, NULL, NULL);
		assert_int_equal(fake_store_held(), STORE_BUFFERS);
	}
	fake_fail_alloc(0);
	assert_int_equal(err, 0);
	assert_int_equal(fake_store_held(), 0);
	kvp_registrar_free(registrar);
}

static int mapped_setup(void **state)
{
	const int ret = fake_store_setup(state);

	fake_tmpfs(true);
	return ret;
}

/* The same with records that are stored through a mapping: their space is there before. */
static void files_have_space(void **state)
{
	size_t size;

	(void)state;
	fake_store_process(FAKE_EXIT, true, 0, false);
	free(fake_journal_load(fake_journal_path(), &size));
	assert_true(size > written(fake_journal_path()));
}

/* Rename the only file to what its process called it before its first record was there. */
static void hide(void)
{
	char path[400], hidden[400];
	const char *name;

	strcpy(path, fake_journal_path());
	name = strrchr(path, '/') + 1;
	snprintf(hidden, sizeof(hidden), "%s/.%s", fake_store_dir, name);
	assert_int_equal(rename(path, hidden), 0);
}

/* Killed between the first record and the name: with the space of a mapped file, if it is one. */
static void killed_before_the_name(void **state)
{
	struct kvp_log log = { 0 };
	pid_t pid = fake_fork();

	(void)state;
	if (!pid)
		_exit(kvp_log_init(&log, fake_store_dir, NULL) ? 1 : 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	hide();
	/* It may be about to get its name. */
	fake_store_recover(false);
	assert_int_equal(fake_journal_files(), 1);
	age();
	fake_store_recover(true);
	assert_int_equal(fake_journal_files(), 1);
	fake_store_recover(false);
	assert_int_equal(fake_journal_files(), 0);
	assert_string_equal(fake_store_events(), "");
}

/* What says something, and what is no journal, is not this library's to remove. */
static void hidden_by_others(void **state)
{
	char path[400];

	(void)state;
	fake_store_process(FAKE_EXIT, false, 0, false);
	hide();
	age();
	fake_store_recover(false);
	assert_int_equal(fake_journal_files(), 1);
	strcpy(path, fake_journal_path());
	fake_journal_store(path, "notes", 5);
	age();
	fake_store_recover(false);
	assert_int_equal(fake_journal_files(), 1);
	/* Half a record it may be. */
	fake_journal_store(path, "", 0);
	age();
	fake_store_recover(false);
	assert_int_equal(fake_journal_files(), 0);
}

int main(void)
{
#define recover_test(function) \
	cmocka_unit_test_setup_teardown(function, fake_store_setup, fake_store_teardown)
#define mapped_test(function) \
	{ "mapped_" #function, function, mapped_setup, fake_store_teardown, NULL }
	const struct CMUnitTest tests[] = {
		recover_test(killed_at_every_record),
		recover_test(killed_before_the_name),
		recover_test(hidden_by_others),
		recover_test(killed_recoveries),
		recover_test(dry_run_changes_nothing),
		recover_test(cut_at_every_byte),
		recover_test(every_byte_flipped),
		recover_test(from_another_boot),
		recover_test(from_another_namespace),
		recover_test(pid_was_used_again),
		recover_test(running_process),
		recover_test(not_without_every_journal),
		recover_test(not_past_one_that_is_too_long),
		recover_test(running_process_damaged),
		recover_test(running_process_renumbered),
		recover_test(two_recoveries),
		recover_test(store_fails),
		recover_test(forked_during_a_recovery),
		recover_test(not_past_an_error_of_the_directory),
		recover_test(without_its_registrar),
		recover_test(no_space),
		recover_test(files_of_others),
		recover_test(arguments),
		recover_test(no_memory),
		mapped_test(files_have_space),
		mapped_test(killed_at_every_record),
		mapped_test(killed_before_the_name),
		mapped_test(killed_recoveries),
		mapped_test(dry_run_changes_nothing),
		mapped_test(cut_at_every_byte),
		mapped_test(every_byte_flipped),
		mapped_test(running_process),
		mapped_test(two_recoveries),
		mapped_test(store_fails),
	};

	return cmocka_run_group_tests(tests, fake_store_map, fake_store_unmap);
}

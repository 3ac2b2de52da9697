// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writing the journal of a context. A record is whole in the file, or the last and
 * cut short. In a file system of memory, where reserved space can't fail, it is
 * stored through a mapping: its first bytes last, so that a half is seen to be one.
 * Elsewhere every record is one write(). Nothing is synced: what must survive is
 * the death of the process, and after a boot there is nothing to undo.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* fallocate() */
#endif
#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "transaction.h"

/*
 * A mapped file has its space in steps of this many bytes, and keeps it: new pages cost
 * as much as all else that a transaction does in them. Enough for 1,000 entries.
 */
#define SPACE (UINT64_C(256) << 10)

#define ADVICE \
	"free space, or give another directory as journal_dir or KVPOOL_JOURNAL_DIR; an empty " \
	"one switches the journal off"

/* ---------------------------------------------------------------- writing */

/*
 * 8 bytes of the mapped file, at a multiple of 8, all at once, after all that was stored
 * before and before all that will be. Of this process's own order, which its death shows.
 */
static void store_first(unsigned char *at, const void *bytes)
{
	uint64_t first;

	memcpy(&first, bytes, sizeof(first));
	__atomic_store_n((uint64_t *)(void *)at, first, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void store(struct kvp_log *log, const struct kvp_journal_head *record, size_t size)
{
	unsigned char *at = (unsigned char *)log->map + log->offset;

	/* First are magic and checksum. Lengths of records are multiples of 8. */
	memcpy(at + sizeof(uint64_t), (const unsigned char *)record + sizeof(uint64_t),
	       size - sizeof(uint64_t));
	store_first(at, record);
	log->offset += size;
	log->sequence++;
}

int kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
		   enum kvp_journal_type type)
{
	const size_t size = kvp_journal_seal(record, type, log->sequence);
	ssize_t written;
	int err;

	if (log->broken)
		return -EIO;
	if (log->offset + size > KVP_JOURNAL_SIZE_MAX)
		return -EFBIG;
	if (log->map) {
		/* Behind the end of the file a store would be SIGBUS. */
		if (log->offset + size > log->end)
			return -ENOSPC;
		store(log, record, size);
		return 0;
	}
	do {
		written = pwrite(log->fd, record, size, (off_t)log->offset);
	} while (written < 0 && errno == EINTR);
	if (written == (ssize_t)size) {
		log->offset += size;
		log->sequence++;
		return 0;
	}
	err = written < 0 ? -errno : -ENOSPC;
	/* What follows a torn record could not be read any more: take it back. */
	if (written > 0 && ftruncate(log->fd, (off_t)log->offset))
		log->broken = true;
	return err;
}

/* The file from its start to `end`, which has space. */
static int map(struct kvp_log *log, uint64_t end)
{
	void *at;

	if (end <= log->map_size)
		return 0;
	at = log->map ? mremap(log->map, log->map_size, end, MREMAP_MAYMOVE) :
			mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, log->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	log->map = at;
	log->map_size = end;
	/* Where this fails they are made one by one, when they are stored to. */
	(void)madvise(at, end, MADV_POPULATE_WRITE);
	return 0;
}

/* Memory can't fail as a disk can, which through a mapping would be SIGBUS. */
static bool in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

uint64_t kvp_log_room(const struct kvp_log *log)
{
	const uint64_t taken = log->offset + log->reserved;

	return taken < KVP_JOURNAL_SIZE_MAX ? KVP_JOURNAL_SIZE_MAX - taken : 0;
}

/*
 * Space up to `end`. In steps: a signal makes tmpfs give up a call and all it has done, so
 * that one which takes longer than a timer's interval would never come to its end.
 */
static int allocate(const struct kvp_log *log, uint64_t end)
{
	uint64_t at, step;
	int ret;

	for (at = log->offset; at < end; at += step) {
		step = end - at < SPACE ? end - at : SPACE;
		do {
			ret = fallocate(log->fd, log->mapped ? 0 : FALLOC_FL_KEEP_SIZE, (off_t)at,
					(off_t)step);
		} while (ret && errno == EINTR);
		if (!ret)
			continue;
		ret = -errno;
		/* Somebody else may need what there was. */
		if (log->mapped)
			(void)!ftruncate(log->fd, (off_t)(log->end > log->offset ? log->end :
							  log->offset));
		return ret;
	}
	return 0;
}

int kvp_log_reserve(struct kvp_log *log, uint64_t more)
{
	const uint64_t size = log->reserved + more;
	uint64_t end = log->offset + size;
	struct rlimit limit;
	int ret;

	if (more > kvp_log_room(log))
		return -EFBIG;
	if (log->mapped)
		end = (end + SPACE - 1) / SPACE * SPACE;
	if (end > log->end) {
		/* Beyond this limit a write ends the process by SIGXFSZ. */
		if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
		    end > limit.rlim_cur)
			return -EFBIG;
		ret = allocate(log, end);
		if (!ret && log->mapped)
			ret = map(log, end);
		if (ret)
			return ret;
		log->end = end;
	}
	log->reserved = size;
	return 0;
}

int kvp_log_restart(struct kvp_log *log)
{
	const uint64_t first = sizeof(struct kvp_journal_file_record);
	unsigned char *at = log->map;
	int err;

	if (at) {
		/* Once this is there, what is behind it is not read: it may go in any order. */
		store_first(at + first, KVP_JOURNAL_RESTART);
		memset(at + first + sizeof(uint64_t), 0, log->offset - first - sizeof(uint64_t));
		log->offset = first;
	} else {
		err = kvp_log_cut(log, first);
		if (err)
			return err;
	}
	log->sequence = 1;
	return 0;
}

int kvp_log_cut(struct kvp_log *log, uint64_t at)
{
	if (ftruncate(log->fd, (off_t)at))
		return -errno;
	log->offset = at;
	log->end = at;
	return 0;
}

/* ---------------------------------------------------------------- the file */

int kvp_log_fail(const struct kvp_log *log, int err, const char *what, const char *path,
		 struct kvp_error *error)
{
	const char *advice = ADVICE;

	if (err == -EFBIG)
		advice = "raise the limit of the size of files (ulimit -f)";
	else if (err == -EMFILE)
		advice = "raise the limit of open files (ulimit -n)";
	else if (err == -EOPNOTSUPP)
		advice = "give a directory on a file system that has fallocate, such as tmpfs, as "
			 "journal_dir or KVPOOL_JOURNAL_DIR; an empty one switches the journal off";
	return kvp_fail(error, err, KVP_PHASE_JOURNAL, KVP_NONE, NULL, advice,
			"can't %s the journal %.100s%s%.90s", what, path, path[0] ? "/" : "",
			log->name);
}

static int identify(struct kvp_log *log, struct kvp_journal_file_record *file)
{
	struct kvp_process self;
	char session[33];
	unsigned int i;
	ssize_t got;
	int err;

	err = kvp_process_self(&self);
	if (err)
		return err;
	do {
		got = getrandom(file->session, sizeof(file->session), 0);
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(file->session))
		return got < 0 ? -errno : -EIO;
	for (i = 0; i < sizeof(file->session); i++)
		snprintf(session + 2 * i, 3, "%02x", file->session[i]);
	memcpy(file->boot_id, self.boot_id, sizeof(file->boot_id));
	file->start = htole64(self.start);
	file->pid_ns = htole64(self.pid_ns);
	file->time_ns = htole64(self.time_ns);
	file->pid = htole32(self.pid);
	file->uid = htole32(self.uid);
	snprintf(file->library, sizeof(file->library), "%d.%d", KVP_VERSION_MAJOR,
		 KVP_VERSION_MINOR);
	snprintf(log->name, sizeof(log->name), "%" PRIu32 "-%" PRIu64 "-%s" KVP_JOURNAL_SUFFIX,
		 self.pid, self.start, session);
	return 0;
}

/* It gets its name when its first record is there: nobody finds one without. */
static int create(struct kvp_log *log, struct kvp_journal_file_record *file)
{
	char hidden[sizeof(log->name) + 1];
	int err;

	snprintf(hidden, sizeof(hidden), ".%s", log->name);
	log->fd = openat(log->dir_fd, hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (log->fd < 0)
		return -errno;
	log->offset = 0;
	log->end = 0;
	log->sequence = 0;
	log->reserved = 0;
	err = kvp_log_reserve(log, sizeof(*file));
	log->reserved = 0;
	if (!err)
		err = kvp_log_append(log, &file->head, KVP_JOURNAL_FILE);
	log->mapped = in_memory(log->fd);
	/* Here, so that it isn't a part of the first transaction. */
	if (!err && log->mapped)
		err = kvp_log_reserve(log, 1);
	log->reserved = 0;
	if (!err && renameat(log->dir_fd, hidden, log->dir_fd, log->name))
		err = -errno;
	if (!err)
		return 0;
	log->mapped = false;
	if (log->map)
		munmap(log->map, log->map_size);
	log->map = NULL;
	log->map_size = 0;
	unlinkat(log->dir_fd, hidden, 0);
	close(log->fd);
	return err;
}

int kvp_log_start(struct kvp_log *log, struct kvp_error *error)
{
	struct kvp_journal_file_record file = { 0 };
	char path[KVP_JOURNAL_PATH_SIZE];
	int err;

	err = identify(log, &file);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_JOURNAL, KVP_NONE, NULL,
				"mount the proc of this pid namespace, or switch the journal off "
				"with an empty journal_dir or KVPOOL_JOURNAL_DIR",
				"can't tell the journal which process this is");
	log->dir_fd = kvp_journal_dir_open(log->dir, true, path, error);
	if (log->dir_fd < 0)
		return log->dir_fd;
	err = create(log, &file);
	if (err) {
		close(log->dir_fd);
		return kvp_log_fail(log, err, "create", path, error);
	}
	log->pid = getpid();
	return 0;
}

int kvp_log_init(struct kvp_log *log, const char *option, struct kvp_error *error)
{
	const char *dir;
	int err;

	pthread_mutex_init(&log->lock, NULL);
	err = kvp_journal_dir_choose(option, &dir, error);
	if (err)
		return err;
	if (dir && !*dir)
		return 0;
	if (dir) {
		log->dir = malloc(strlen(dir) + 1);
		if (!log->dir)
			return kvp_fail(error, -ENOMEM, KVP_PHASE_JOURNAL, KVP_NONE, NULL, NULL,
					"no memory for the name of the journal's directory");
		strcpy(log->dir, dir);
	}
	log->on = true;
	return option ? kvp_log_start(log, error) : 0;
}

void kvp_log_free(struct kvp_log *log)
{
	if (log->pid) {
		/* A forked child's copy of the context is not what the file is about. */
		if (log->pid == getpid() && !log->open)
			unlinkat(log->dir_fd, log->name, 0);
		if (log->map)
			munmap(log->map, log->map_size);
		close(log->fd);
		close(log->dir_fd);
	}
	free(log->dir);
	pthread_mutex_destroy(&log->lock);
	*log = (struct kvp_log){ 0 };
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where journals are, and whether that place is safe. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* secure_getenv() */
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "journal.h"

#define ADVICE \
	"give a directory of this user as journal_dir or KVPOOL_JOURNAL_DIR; an empty one " \
	"switches the journal off"

int kvp_journal_dir_choose(const char *option, const char **dir, struct kvp_error *error)
{
	/* A set-user-id program must not take it from who started it. */
	*dir = option ? option : secure_getenv("KVPOOL_JOURNAL_DIR");
	if (!*dir || !**dir)
		return 0;
	/* Recovery would look for a relative one elsewhere. */
	if (**dir != '/' || strlen(*dir) >= KVP_JOURNAL_PATH_SIZE)
		return kvp_fail(error, -EINVAL, KVP_PHASE_JOURNAL, KVP_NONE, NULL, ADVICE,
				"'%.150s' is not an absolute path", *dir);
	return 0;
}

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid())
		return -EACCES;
	return st.st_mode & (0022) ? -EPERM : 0;
}

static int open_at(const char *path, bool create)
{
	int fd, err;

	if (create && mkdir(path, 0700) && errno != EEXIST && errno != EROFS)
		return -errno;
	fd = openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = check(fd);
	if (!err && create && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int fail(int err, const char *path, struct kvp_error *error)
{
	const char *why = "";

	if (err == -EPERM)
		why = ": others may write to it";
	else if (err == -EACCES)
		why = ": it is not this user's";
	else if (err == -ELOOP || err == -ENOTDIR)
		why = ": it is no directory, or a symbolic link";
	return kvp_fail(error, err, KVP_PHASE_JOURNAL, KVP_NONE, NULL, ADVICE,
			"the journal can't be in %.150s%s", path, why);
}

/* Errors that say that a place is not for this user, and another may be. */
static bool elsewhere(int err)
{
	return err == -EACCES || err == -ENOENT || err == -EROFS || err == -ENOTDIR;
}

int kvp_journal_dir_open(const char *dir, bool create, char path[KVP_JOURNAL_PATH_SIZE],
			 struct kvp_error *error)
{
	const char *run;
	int fd;

	snprintf(path, KVP_JOURNAL_PATH_SIZE, "%s", dir ? dir : "/run/kvpool");
	fd = open_at(path, create);
	if (fd >= 0)
		return fd;
	run = secure_getenv("XDG_RUNTIME_DIR");
	if (dir || !elsewhere(fd) || !run || run[0] != '/' ||
	    snprintf(path, KVP_JOURNAL_PATH_SIZE, "%s/kvpool", run) >= KVP_JOURNAL_PATH_SIZE) {
		snprintf(path, KVP_JOURNAL_PATH_SIZE, "%s", dir ? dir : "/run/kvpool");
		return fail(fd, path, error);
	}
	fd = open_at(path, create);
	return fd >= 0 ? fd : fail(fd, path, error);
}

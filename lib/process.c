// SPDX-License-Identifier: LGPL-2.1-or-later
/* Telling a process from every other one, and whether it still runs. */
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "journal.h"

static int read_text(const char *path, char *text, size_t size)
{
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	int err;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	/* What /proc has here is short, and comes in one piece. */
	got = read(fd, text, size - 1);
	err = got < 0 ? -errno : 0;
	close(fd);
	text[got < 0 ? 0 : got] = '\0';
	return err;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_boot_id(uint8_t boot_id[16])
{
	unsigned int digits = 0;
	char text[64];
	const char *c;
	int err = read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (err)
		return err;
	for (c = text; *c && *c != '\n'; c++) {
		const int digit = hex_digit(*c);

		if (*c == '-')
			continue;
		if (digit < 0 || digits == 32)
			return -EPROTO;
		if (digits % 2)
			boot_id[digits / 2] |= (uint8_t)digit;
		else
			boot_id[digits / 2] = (uint8_t)(digit << 4);
		digits++;
	}
	return digits == 32 ? 0 : -EPROTO;
}

int kvp_process_parse(const char *stat, char *state, uint64_t *threads, uint64_t *start)
{
	/* The name in parentheses may hold anything, parentheses and spaces too. */
	const char *at = strrchr(stat, ')');
	unsigned int field;
	char *end;

	if (!at || at[1] != ' ' || !isalpha((unsigned char)at[2]) || at[3] != ' ')
		return -EPROTO;
	*state = at[2];
	at += 4;
	for (field = 4; field <= 22; field++) {
		const unsigned long long value = strtoull(at, &end, 10);

		if (end == at || (*end != ' ' && *end != '\n' && *end))
			return -EPROTO;
		if (field == 20)
			*threads = value;
		*start = value;
		at = end;
	}
	return 0;
}

/* Start of a process. -ENOENT: there is none, or it is not shown. */
static int read_stat(const char *path, char *state, uint64_t *threads, uint64_t *start,
		     char *pid, size_t pid_size)
{
	char text[1024];
	int err = read_text(path, text, sizeof(text));

	if (err)
		return err == -ESRCH ? -ENOENT : err;
	snprintf(pid, pid_size, "%.*s", (int)strcspn(text, " "), text);
	return kvp_process_parse(text, state, threads, start);
}

static uint64_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

int kvp_process_self(struct kvp_process *self)
{
	char pid[16], own[16], state;
	uint64_t threads;
	int err;

	memset(self, 0, sizeof(*self));
	err = read_boot_id(self->boot_id);
	if (!err)
		err = read_stat("/proc/self/stat", &state, &threads, &self->start, pid,
				sizeof(pid));
	if (err)
		return err;
	/* A /proc of another pid namespace would tell of other processes. */
	snprintf(own, sizeof(own), "%d", (int)getpid());
	if (strcmp(pid, own))
		return -EPROTO;
	self->pid = (uint32_t)getpid();
	self->uid = (uint32_t)geteuid();
	self->pid_ns = inode_of("/proc/self/ns/pid");
	self->time_ns = inode_of("/proc/self/ns/time");
	return 0;
}

enum kvp_liveness kvp_process_look(const struct kvp_process *process,
				   const struct kvp_process *self)
{
	char path[32], pid[16], state;
	uint64_t threads, start;
	int err;

	if (memcmp(process->boot_id, self->boot_id, sizeof(self->boot_id)))
		return KVP_LIVENESS_OTHER_BOOT;
	if (process->pid_ns != self->pid_ns || process->time_ns != self->time_ns)
		return KVP_LIVENESS_UNKNOWN;
	/* kill() of 0 or less would ask about groups. */
	if (!process->pid || process->pid > INT32_MAX)
		return KVP_LIVENESS_UNKNOWN;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", process->pid);
	err = read_stat(path, &state, &threads, &start, pid, sizeof(pid));
	if (err == -ENOENT)
		/* Where /proc hides processes, kill() still finds them. */
		return kill((pid_t)process->pid, 0) && errno == ESRCH ? KVP_LIVENESS_DEAD :
									 KVP_LIVENESS_UNKNOWN;
	if (err)
		return KVP_LIVENESS_UNKNOWN;
	if (start != process->start)
		return KVP_LIVENESS_DEAD;
	/* A zombie has given everything back, unless only its first thread has ended. */
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return KVP_LIVENESS_DEAD;
	return KVP_LIVENESS_ALIVE;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a device and the kernel allow: how buffers are cut, and how much may be pinned. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transaction.h"

/* Number of CAP_IPC_LOCK, and the inode that the kernel gives the initial user namespace. */
#define CAPABILITY_IPC_LOCK	14
#define INITIAL_USER_NAMESPACE	0xeffffffdULL

uint64_t kvp_page_size(void)
{
	/* It calls nothing, unlike sysconf(). */
	return (uint64_t)getpagesize();
}

/*
 * As ib_umem_get() counts: every page that the chunk touches. Neighbouring
 * chunks that share a page count it twice.
 */
uint64_t kvp_pinned_bytes(uint64_t addr, uint64_t length)
{
	const uint64_t page = kvp_page_size();
	const uint64_t pages = (addr + length - 1) / page - addr / page + 1;

	return pages * page;
}

/* ---------------------------------------------------------------- cutting */

/* Least common multiple; 0: it has more than 64 bits. */
static uint64_t lcm(uint64_t a, uint64_t b)
{
	uint64_t x = a, y = b, result;

	while (y) {
		const uint64_t rest = x % y;

		x = y;
		y = rest;
	}
	return __builtin_mul_overflow(a / x, b, &result) ? 0 : result;
}

int kvp_split(const struct kvp_buffer *buffer, uint64_t max_length, struct kvp_split *split)
{
	const uint64_t page = kvp_page_size();
	const uint64_t unit = lcm(buffer->block ? buffer->block : 1, page);
	const uint64_t into_page = (uintptr_t)buffer->addr % page;

	split->first = buffer->length;
	split->step = buffer->length;
	split->chunks = 1;
	if (!max_length || buffer->length <= max_length)
		return 0;
	if (!unit || unit > max_length)
		return -EMSGSIZE;
	split->step = max_length / unit * unit;
	split->first = split->step;
	/* A buffer that may be cut anywhere is cut on pages, also when it starts within one. */
	if (!buffer->block)
		split->first = (into_page + max_length) / page * page - into_page;
	split->chunks = 1 + (buffer->length - split->first - 1) / split->step + 1;
	return 0;
}

void kvp_split_chunk(const struct kvp_split *split, uint64_t length, uint64_t n,
		     uint64_t *offset, uint64_t *chunk_length)
{
	const uint64_t size = n ? split->step : split->first;

	*offset = n ? split->first + (n - 1) * split->step : 0;
	*chunk_length = size < length - *offset ? size : length - *offset;
}

/* ---------------------------------------------------------- locked memory */

static const char *status_line(const char *status, const char *key)
{
	const size_t length = strlen(key);
	const char *line;

	for (line = status; line; line = strchr(line, '\n')) {
		line += line != status;
		if (!strncmp(line, key, length))
			return line + length;
	}
	return NULL;
}

int kvp_memlock_parse(const char *status, uint64_t user_namespace, struct kvp_memlock *memlock)
{
	const char *pinned = status_line(status, "VmPin:");
	const char *capabilities = status_line(status, "CapEff:");
	unsigned long long effective;

	if (!pinned || !capabilities)
		return -EPROTO;
	memlock->used = strtoull(pinned, NULL, 10) * 1024;
	effective = strtoull(capabilities, NULL, 16);
	/* The kernel asks capable(): a capability in a container's own namespace is none. */
	memlock->exempt = (effective >> CAPABILITY_IPC_LOCK & 1) &&
			  user_namespace == INITIAL_USER_NAMESPACE;
	return 0;
}

static int read_status(char *text, size_t size, uint64_t *user_namespace)
{
	struct stat namespace;
	FILE *file;
	size_t got;
	int err = 0;

	/* Of the thread, not of the process: capabilities are each thread's own. */
	file = fopen("/proc/thread-self/status", "re");
	if (!file)
		return -errno;
	got = fread(text, 1, size - 1, file);
	if (ferror(file))
		err = -EIO;
	fclose(file);
	text[got] = '\0';
	if (err)
		return err;
	/* Without user namespaces in the kernel, all are in the initial one. */
	if (!stat("/proc/thread-self/ns/user", &namespace))
		*user_namespace = namespace.st_ino;
	else if (errno == ENOENT)
		*user_namespace = INITIAL_USER_NAMESPACE;
	else
		return -errno;
	return 0;
}

int kvp_memlock_read(struct kvp_memlock *memlock, struct kvp_error *error)
{
	uint64_t user_namespace = 0;
	struct rlimit limit;
	char status[8192];
	int err;

	*memlock = (struct kvp_memlock){ .limit = UINT64_MAX };
	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return kvp_fail(error, -errno, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"can't read RLIMIT_MEMLOCK");
	if (limit.rlim_cur == RLIM_INFINITY)
		return 0;
	memlock->limit = limit.rlim_cur;
	err = read_status(status, sizeof(status), &user_namespace);
	if (!err)
		err = kvp_memlock_parse(status, user_namespace, memlock);
	if (err)
		return kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"mount /proc, or set RLIMIT_MEMLOCK to unlimited",
				"can't read in /proc/thread-self how much memory is pinned");
	return 0;
}

int kvp_memlock_check(const struct kvp_memlock *memlock, const struct kvp_memlock_need *need,
		      struct kvp_error *error)
{
	char devices[80];

	if (!need->total || memlock->limit == UINT64_MAX || memlock->exempt)
		return 0;
	if (memlock->used <= memlock->limit && need->total <= memlock->limit - memlock->used)
		return 0;
	if (need->per_device)
		snprintf(devices, sizeof(devices), "%" PRIu32 " device%s x %" PRIu64 " bytes",
			 need->devices, need->devices == 1 ? "" : "s", need->per_device);
	else
		snprintf(devices, sizeof(devices), "%" PRIu32 " devices", need->devices);
	return kvp_fail(error, -EDQUOT, KVP_PHASE_CHECK, KVP_NONE, NULL,
			"raise RLIMIT_MEMLOCK (ulimit -l), or grant CAP_IPC_LOCK",
			"%s need%s %" PRIu64 " bytes of locked memory, the limit is %" PRIu64
			" and %" PRIu64 " are in use", devices,
			need->devices == 1 ? "s" : "", need->total, memlock->limit, memlock->used);
}

// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "demo.h"

void die(const char *what, const struct kvp_error *error)
{
	char line[640];

	kvp_error_format(error, line, sizeof(line));
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, line);
	exit(1);
}

void die_errno(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		die_errno(path);
	}
	strcpy(address.sun_path, path);
	return address;
}

int message_listen(const char *path)
{
	const struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, 8))
		die_errno(path);
	return fd;
}

int message_connect(const char *path)
{
	const struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		die_errno(path);
	return fd;
}

void message_send(int fd, const void *data, size_t size)
{
	/* A peer that has gone is seen by the next receive. */
	if (send(fd, data, size, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		die_errno("send");
}

size_t message_receive(int fd, void *data, size_t size)
{
	ssize_t got = recv(fd, data, size - 1, 0);

	if (got < 0) {
		if (errno != ECONNRESET)
			die_errno("receive");
		got = 0;
	}
	((char *)data)[got] = 0;
	return (size_t)got;
}

int split(char *text, char **words, int max)
{
	char *rest = NULL, *word;
	int count = 0;

	for (word = strtok_r(text, " \n", &rest); word && count < max;
	     word = strtok_r(NULL, " \n", &rest))
		words[count++] = word;
	return count;
}

static uint64_t pattern(uint64_t word, uint32_t owner)
{
	return (word + ((uint64_t)owner << 40) + 1) * 0x9e3779b97f4a7c15u;
}

void pattern_fill(void *addr, uint64_t offset, uint64_t length, uint32_t owner)
{
	uint64_t *words = addr;
	uint64_t i;

	for (i = offset / 8; i < (offset + length) / 8; i++)
		words[i] = pattern(i, owner);
}

int pattern_matches(const void *addr, uint64_t offset, uint64_t length, uint32_t owner)
{
	const uint64_t *words = addr;
	uint64_t i;

	for (i = offset / 8; i < (offset + length) / 8; i++)
		if (words[i] != pattern(i, owner))
			return 0;
	return 1;
}

uint64_t checksum(const void *addr, uint64_t length)
{
	const uint64_t *words = addr;
	uint64_t sum = 0, i;

	/* Not linear: the patterns are, and sums of two owners' would be equal. */
	for (i = 0; i < length / 8; i++) {
		sum = (sum ^ words[i]) * 0x100000001b3u;
		sum ^= sum >> 32;
	}
	return sum;
}

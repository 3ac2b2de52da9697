/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words of the command line. Every parser returns NULL on success and
 * otherwise the cause, a constant string that reads on after "--size 2X: ".
 * The whole text must be the value: no sign, no blanks, nothing behind it.
 */
#ifndef KVPOOLCTL_PARSE_H
#define KVPOOLCTL_PARSE_H

#include <stdint.h>
#include <sys/types.h>

#include "../lib/kvpool.h"

/* Decimal, or hexadecimal after 0x; at most `max`. */
const char *parse_number(const char *text, uint64_t max, uint64_t *value);
/* A rank or a NUMA node: KVP_NONE stands for "none" and is no value of either. */
const char *parse_index(const char *text, uint32_t *value);
/* Bytes: a number with at most one suffix K, M, G or T, powers of 1024. Not 0. */
const char *parse_size(const char *text, uint64_t *bytes);
/* Octal permission bits, 0 to 0666. */
const char *parse_mode(const char *text, mode_t *mode);
/* A name of the system's user database, or a number. */
const char *parse_user(const char *text, uid_t *uid);
const char *parse_group(const char *text, gid_t *gid);
/* "owner" or "persistent". */
const char *parse_lifetime(const char *text, enum kvp_lifetime *lifetime);

/* How a pool was named on the command line: NAME, id:ID or id:ID.GENERATION. */
struct pool_ref {
	char name[KVP_NAME_SIZE];	/* empty: by id */
	uint32_t id;
	uint64_t generation;		/* 0: any */
};

const char *parse_pool(const char *text, struct pool_ref *ref);

/* "ID.GENERATION", both decimal and neither 0. */
const char *parse_identity(const char *text, uint32_t *id, uint64_t *generation);

/*
 * An address range as ADDR and LENGTH, or, when `length_text` is NULL, as
 * START-END in hexadecimal, the way /proc/PID/maps writes it.
 */
const char *parse_range(const char *text, const char *length_text, uint64_t *addr,
			uint64_t *length);

#endif /* KVPOOLCTL_PARSE_H */

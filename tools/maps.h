/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc/PID/maps says about an address range. */
#ifndef KVPOOLCTL_MAPS_H
#define KVPOOLCTL_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../lib/kvpool.h"

/* How a segment says which pool it is of. */
enum maps_match {
	MAPS_MATCH_NONE,	/* not a pool, or one whose node was removed */
	MAPS_MATCH_IDENTITY,	/* the path carries id and generation */
	MAPS_MATCH_NODE,	/* the inode is that of the pool's node now */
	MAPS_MATCH_NAME,	/* the path carries a name, which another pool may have by now */
};

struct maps_line {
	uint64_t start, end;	/* end: first byte behind it */
	uint64_t offset;
	bool readable, writable;
	unsigned int major, minor;
	uint64_t inode;
	const char *path;	/* points into the line; empty: none */
};

/* 0, or -EINVAL when it is not a line of that file. Cuts the newline off `line`. */
int maps_parse_line(char *line, struct maps_line *parsed);

/* A part of the range with one backing, clipped to the range. */
struct maps_segment {
	uint64_t addr, length;
	enum kvp_kind kind;
	bool readable, writable;
	uint64_t offset;	/* of `addr` in the pool or file */
	char *path;		/* never NULL */
	unsigned int major, minor;
	uint64_t inode;
	uint64_t start, end;	/* of the first mapping in it, not clipped */
	/* Of a pool: */
	enum maps_match match;
	uint32_t id;		/* MAPS_MATCH_IDENTITY */
	uint64_t generation;
	char name[KVP_NAME_SIZE];	/* of the node; else empty */
};

struct maps {
	struct maps_segment *segments;
	size_t count;
	size_t lines;		/* mappings of the process, those outside the range too */
};

/*
 * Read the whole file, and cover the range with segments in order, holes
 * included; mappings that continue each other are one. -EINVAL: a line is not
 * understood; -ENOMEM; or what reading failed with. On failure there is
 * nothing to free.
 */
int maps_read(FILE *file, uint64_t addr, uint64_t length, struct maps *maps);
void maps_free(struct maps *maps);

#endif /* KVPOOLCTL_MAPS_H */

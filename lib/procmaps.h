/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of mapped files, from /proc/self/maps. */
#ifndef KVP_PROCMAPS_H
#define KVP_PROCMAPS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A reader that only goes forward: a range is resolved in ascending order, and
 * so is the file, so that one pass serves all segments of a range.
 */
struct kvp_procmaps {
	FILE *file;
	int tried;		/* opening was: do not try again */
	char *line;
	size_t size;
	/* The mapping of the last line read, and its path within it. */
	uint64_t start, end;
	const char *path;
};

/*
 * Path of the mapping at `addr`, which must not be less than in the call
 * before. Empty when there is none, or the file can't be read: the name only
 * makes a message clearer. What does not fit ends in "...".
 */
void kvp_procmaps_path(struct kvp_procmaps *maps, uint64_t addr, char *path, size_t size);
void kvp_procmaps_end(struct kvp_procmaps *maps);

#endif /* KVP_PROCMAPS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tool prints on stdout: text for people, JSON for programs. The
 * keys of JSON objects are the attribute names of uapi/kvpool.yaml. Functions
 * return 0 or -ENOMEM; whether the stream took the text is checked once, when
 * the tool ends.
 */
#ifndef KVPOOLCTL_FORMAT_H
#define KVPOOLCTL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../lib/kvpool.h"
#include "maps.h"

struct json_object;

#define FORMAT_SIZE_TEXT 24
/* "3.5G": at most one decimal, powers of 1024. Returns `text`. */
const char *format_size(uint64_t bytes, char text[FORMAT_SIZE_TEXT]);

/* What may be printed to a terminal, stderr too: every other byte becomes '?'. */
void format_safe(FILE *out, const char *text);

/* Start a line of "key: value", the values under each other; the second does the line. */
void format_key(FILE *out, const char *name);
void format_key_size(FILE *out, const char *name, uint64_t bytes);

/* A run of pinned blocks. */
struct pin_run {
	uint32_t first_block, block_count;
};

int format_list_text(FILE *out, const struct kvp_pool_info *pools, size_t count);
int format_list_json(FILE *out, const struct kvp_pool_info *pools, size_t count);

/* `runs` may be NULL: then pins are left out, which is not the same as none. */
void format_pool_text(FILE *out, const struct kvp_pool_info *pool, const struct pin_run *runs,
		      size_t count);
int format_pool_json(FILE *out, const struct kvp_pool_info *pool, const struct pin_run *runs,
		     size_t count);

/* For an object of which a pool is a part; NULL: no memory. */
struct json_object *format_pool_object(const struct kvp_pool_info *pool);

/* One line that names a pool: "NAME id:ID.GENERATION domain=D ... size=2M". */
void format_pool_line(FILE *out, const struct kvp_pool_info *pool);

void format_stats_text(FILE *out, const struct kvp_stats *stats);
int format_stats_json(FILE *out, const struct kvp_stats *stats);

void format_reserve_text(FILE *out, const struct kvp_reserve *reserve);
int format_reserve_json(FILE *out, const struct kvp_reserve *reserve);

/* `pool` is NULL when it is gone or may not be seen; `id` 0: an event of no pool. */
void format_event_text(FILE *out, const char *event, uint32_t id, uint64_t generation,
		       const struct kvp_pool_info *pool);
int format_event_json(FILE *out, const char *event, uint32_t id, uint64_t generation,
		      const struct kvp_pool_info *pool);

/* A creation is under way. */
void format_progress_text(FILE *out, uint32_t id, uint64_t generation, unsigned int percent);
int format_progress_json(FILE *out, uint32_t id, uint64_t generation, unsigned int percent);

/* What a destroyed pool left behind: `pool` is NULL when nothing. */
int format_destroyed_json(FILE *out, uint32_t id, uint64_t generation,
			  const struct kvp_pool_info *pool);

/* `pool` NULL or `reason` not NULL: the span is not live. */
void format_span_text(FILE *out, const char *text, const struct kvp_pool_info *pool,
		      const char *reason);
int format_span_json(FILE *out, const char *text, const struct kvp_span *span,
		     const struct kvp_pool_info *pool, const char *reason);

/* A segment of /proc/PID/maps, and what is known of its pool. */
struct backing {
	struct maps_segment *segment;
	bool known;		/* `pool` is filled in */
	bool stale;		/* its pool ended */
	struct kvp_pool_info pool;
};

void format_backing_text(FILE *out, const struct backing *backings, size_t count);
int format_backing_json(FILE *out, pid_t pid, uint64_t addr, uint64_t length,
			const struct backing *backings, size_t count);

#endif /* KVPOOLCTL_FORMAT_H */

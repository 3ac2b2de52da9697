// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What backs the buffers of a list, asked for in as few calls as there are stretches
 * of it, rather than buffer by buffer. It is what the kernel said a moment ago,
 * which is all that any answer about memory can be.
 */
#include <stdlib.h>

#include "transaction.h"

static int append(struct kvp_snapshot *snapshot, const struct kvp_segment *segment)
{
	struct kvp_segment *last;

	if (segment->kind != KVP_KIND_POOL)
		return 0;
	last = snapshot->count ? &snapshot->segments[snapshot->count - 1] : NULL;
	if (last && kvp_segment_continues(last, segment)) {
		last->length += segment->length;
		return 0;
	}
	if (kvp_array_grow(&snapshot->segments, snapshot->count, &snapshot->room,
			   sizeof(*segment)))
		return -ENOMEM;
	snapshot->segments[snapshot->count++] = *segment;
	return 0;
}

/* From `start` on, as much as one call says; the end of that, or 0. */
static uint64_t fetch(struct kvp_ctx *ctx, uint64_t start, uint64_t end,
		      struct kvp_snapshot *snapshot)
{
	struct kvp_segment segments[KVP_RESOLVE_SOME];
	uint64_t resolved;
	uint32_t count, i;

	if (kvp_resolve_some(ctx, start, end - start, segments, &count, &resolved, NULL))
		return 0;
	for (i = 0; i < count; i++)
		if (append(snapshot, &segments[i]))
			return 0;
	return start + resolved;
}

void kvp_snapshot_take(struct kvp_ctx *ctx, const struct kvp_sorted *sorted,
		       struct kvp_snapshot *snapshot)
{
	uint64_t known = 0;
	uint32_t i;

	*snapshot = (struct kvp_snapshot){ 0 };
	for (i = 0; i < sorted->count; i++) {
		const struct kvp_buffer *buffer = sorted->buffers[i];
		const uint64_t start = (uintptr_t)buffer->addr, end = start + buffer->length;

		if (start > known)
			known = start;
		while (known < end) {
			known = fetch(ctx, known, sorted->end, snapshot);
			if (!known)
				return;
		}
	}
}

const struct kvp_segment *kvp_snapshot_find(const struct kvp_snapshot *snapshot, uint64_t addr,
					    uint64_t length)
{
	const struct kvp_segment *segment;
	uint32_t low = 0, high = snapshot->count;
	uint64_t skipped;

	/* The last segment that begins at or before `addr`. */
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (snapshot->segments[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	segment = &snapshot->segments[low - 1];
	skipped = addr - segment->addr;
	return skipped < segment->length && length <= segment->length - skipped ? segment : NULL;
}

void kvp_snapshot_free(struct kvp_snapshot *snapshot)
{
	free(snapshot->segments);
	*snapshot = (struct kvp_snapshot){ 0 };
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks of buffers, all of them, before anything is registered. */
#include <inttypes.h>
#include <stdlib.h>

#include "transaction.h"

struct check {
	struct kvp_ctx *ctx;
	const char *domain;
	const struct kvp_buffer *buffers;
	const uint32_t *index;
	uint32_t *earlier;	/* kvp_overlap_find(); NULL: none shares a byte */
	struct kvp_snapshot snapshot;
};

static uint32_t caller_index(const struct check *check, uint32_t position)
{
	return check->index ? check->index[position] : position;
}

/* The error of a buffer that shares bytes with an earlier one; 0: it does not. */
static int check_overlap(const struct check *check, uint32_t position, struct kvp_error *error)
{
	const uint32_t index = caller_index(check, position);
	const struct kvp_buffer *buffer = &check->buffers[position], *other;
	uint64_t start, end, other_start, other_end;
	uint32_t other_index;
	const char *how;

	if (!check->earlier || check->earlier[position] == KVP_NONE)
		return 0;
	other = &check->buffers[check->earlier[position]];
	other_index = caller_index(check, check->earlier[position]);
	if (buffer->addr == other->addr && buffer->length == other->length)
		return kvp_fail(error, -EEXIST, KVP_PHASE_CHECK, index, NULL,
				"register it once, and use the one registration twice",
				"buffer %" PRIu32 ": %" PRIu64 " bytes at 0x%" PRIxPTR
				" are the same as buffer %" PRIu32, index, buffer->length,
				(uintptr_t)buffer->addr, other_index);

	start = (uintptr_t)buffer->addr;
	end = start + buffer->length;
	other_start = (uintptr_t)other->addr;
	other_end = other_start + other->length;
	if (start >= other_start && end <= other_end)
		how = "lie in";
	else if (start <= other_start && end >= other_end)
		how = "contain";
	else
		how = "overlap";
	return kvp_fail(error, -EADDRINUSE, KVP_PHASE_CHECK, index, NULL,
			"buffers may adjoin, but not share bytes",
			"buffer %" PRIu32 ": %" PRIu64 " bytes at 0x%" PRIx64 " %s buffer %" PRIu32
			", %" PRIu64 " bytes at 0x%" PRIx64, index, buffer->length, start, how,
			other_index, other->length, other_start);
}

/* `asked`: as in kvp_locate(). */
static int locate(const struct check *check, uint32_t position, struct kvp_span *span, bool *asked,
		  struct kvp_error *error)
{
	const struct kvp_buffer *buffer = &check->buffers[position];
	const struct kvp_segment *segment;

	segment = kvp_snapshot_find(&check->snapshot, (uintptr_t)buffer->addr, buffer->length);
	*asked = true;
	if (segment && kvp_locate_in(segment, check->domain, buffer, span))
		return 0;
	return kvp_locate(check->ctx, check->domain, buffer, caller_index(check, position), span,
			  asked, error);
}

static int check_all(const struct check *check, uint32_t count, int *results,
		     struct kvp_span *spans, struct kvp_error *error)
{
	struct kvp_span none;
	int first = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		struct kvp_error *at = first ? NULL : error;
		bool asked;
		int err;

		err = locate(check, i, spans ? &spans[i] : &none, &asked, at);
		if (!asked) {
			/* Not the buffer's fault, and no use to go on: the rest is not known. */
			for (; results && i < count; i++)
				results[i] = err;
			return first ? first : err;
		}
		if (!err)
			err = check_overlap(check, i, at);
		if (results)
			results[i] = err;
		if (!first)
			first = err;
	}
	return first;
}

static int prepare(struct check *check, uint32_t count, struct kvp_sorted *sorted)
{
	int err = kvp_sorted_init(sorted, check->buffers, count);

	if (err || !sorted->overlap)
		return err;
	check->earlier = calloc(count, sizeof(*check->earlier));
	return check->earlier ? kvp_overlap_find(check->buffers, count, check->earlier) : -ENOMEM;
}

int kvp_check_domain(const char *domain, struct kvp_error *error)
{
	if (!domain || !domain[0])
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"name the domain that all buffers must come from",
				"no domain was given");
	if (!kvp_name_valid(domain))
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"give 1 to 63 of A-Z a-z 0-9 _ -",
				"'%.100s' is no name of a domain", domain);
	return 0;
}

int kvp_check_spans(struct kvp_ctx *ctx, const char *domain, const struct kvp_buffer *buffers,
		    const uint32_t *index, uint32_t count, int *results, struct kvp_span *spans,
		    struct kvp_error *error)
{
	struct check check = {
		.ctx = ctx,
		.domain = domain,
		.buffers = buffers,
		.index = index,
	};
	struct kvp_sorted sorted;
	int err;

	if (!ctx)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no context was given");
	err = kvp_check_domain(domain, error);
	if (err)
		return err;
	if (!count)
		return 0;
	if (!buffers)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no buffers were given, but a count of %" PRIu32, count);
	err = prepare(&check, count, &sorted);
	if (err) {
		err = kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
			       "no memory to check %" PRIu32 " buffers", count);
	} else {
		kvp_snapshot_take(ctx, &sorted, &check.snapshot);
		err = check_all(&check, count, results, spans, error);
		kvp_snapshot_free(&check.snapshot);
	}
	kvp_sorted_free(&sorted);
	free(check.earlier);
	return err;
}

KVP_EXPORT int kvp_check(struct kvp_ctx *ctx, const char *domain,
			 const struct kvp_buffer *buffers, uint32_t count, int *results,
			 struct kvp_error *error)
{
	return kvp_check_spans(ctx, domain, buffers, NULL, count, results, NULL, error);
}

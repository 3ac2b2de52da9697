// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which pool one buffer lies in, or what its memory is instead. */
#include <inttypes.h>
#include <stdio.h>

#include "internal.h"

/*
 * What can be wrong with a buffer, gravest first. A buffer of several faults
 * reports the gravest, since mending a lesser one would not make it valid.
 */
enum fault {
	FAULT_UNMAPPED,
	FAULT_FOREIGN,
	FAULT_DESTROYED,
	FAULT_DOMAIN,
	FAULT_GENERATION,
	FAULT_STRADDLE,
	FAULT_END,
	FAULT_ACCESS,
	FAULT_NONE,
};

struct look {
	const char *domain;
	const struct kvp_buffer *buffer;
	enum fault fault;
	struct kvp_segment at;		/* the segment that has the fault */
	struct kvp_segment first;
	uint32_t previous_id;		/* FAULT_STRADDLE: the pool before the border */
	bool any;
	/* The pool and offset that the next segment must have to continue the last one. */
	uint32_t next_id;
	uint64_t next_generation;
	uint64_t next_offset;
};

/*
 * What is wrong with a buffer in `length` bytes of a segment, which are at `offset`
 * of the pool if it is one. `straddles`: they don't continue what the buffer had before.
 */
static enum fault segment_fault(const char *domain, const struct kvp_buffer *buffer,
				const struct kvp_segment *segment, uint64_t offset, uint64_t length,
				bool straddles)
{
	const struct kvp_span *span = &segment->span;

	if (segment->kind == KVP_KIND_UNMAPPED)
		return FAULT_UNMAPPED;
	if (segment->kind != KVP_KIND_POOL)
		return FAULT_FOREIGN;
	if (segment->stale)
		return FAULT_DESTROYED;
	if (domain && strcmp(span->domain, domain))
		return FAULT_DOMAIN;
	if (buffer->generation && buffer->generation != span->generation)
		return FAULT_GENERATION;
	if (straddles)
		return FAULT_STRADDLE;
	if (offset > segment->pool_length || length > segment->pool_length - offset)
		return FAULT_END;
	if (!segment->readable ||
	    (!segment->writable && !(buffer->flags & KVP_BUFFER_READ_ONLY)))
		return FAULT_ACCESS;
	return FAULT_NONE;
}

static int look_at(const struct kvp_segment *segment, void *arg)
{
	struct look *look = arg;
	const struct kvp_span *span = &segment->span;
	const bool straddles = look->any && (span->id != look->next_id ||
					     span->generation != look->next_generation ||
					     span->offset != look->next_offset);
	const enum fault fault = segment_fault(look->domain, look->buffer, segment, span->offset,
					       segment->length, straddles);

	if (fault < look->fault) {
		look->fault = fault;
		look->at = *segment;
		look->previous_id = look->next_id;
	}
	if (!look->any)
		look->first = *segment;
	look->any = true;
	look->next_id = segment->span.id;
	look->next_generation = segment->span.generation;
	look->next_offset = segment->span.offset + segment->length;
	return 0;
}

/* What foreign memory is, in words. */
static void describe(const struct kvp_segment *segment, char *text, size_t size)
{
	switch (segment->kind) {
	case KVP_KIND_ANON:
		snprintf(text, size, "private anonymous memory");
		break;
	case KVP_KIND_HUGETLB:
		snprintf(text, size, "hugetlb memory%s%s", segment->path[0] ? " " : "",
			 segment->path);
		break;
	case KVP_KIND_SHMEM:
		snprintf(text, size, "shared memory%s%s", segment->path[0] ? " " : "",
			 segment->path);
		break;
	case KVP_KIND_FILE:
		snprintf(text, size, "the file %s", segment->path[0] ? segment->path : "(unnamed)");
		break;
	default:
		snprintf(text, size, "memory of a driver");
		break;
	}
}

/* The error of a buffer with a fault. `what` names the buffer and its bytes. */
static int report(const struct look *look, const char *name, const char *what, uint32_t index,
		  struct kvp_error *error)
{
	const struct kvp_buffer *buffer = look->buffer;
	const struct kvp_segment *at = &look->at;
	const struct kvp_span *span = &at->span;
	const uint64_t start = (uintptr_t)buffer->addr;
	const enum kvp_phase phase = KVP_PHASE_CHECK;
	char kind[160], part[32] = "", pool[KVP_NAME_SIZE + 24] = "a pool", advice[160];

	if (look->domain)
		snprintf(pool, sizeof(pool), "a pool of domain %.63s", look->domain);
	/* Say how much of it, when the rest of the buffer is something else. */
	if (at->length < buffer->length)
		snprintf(part, sizeof(part), "%" PRIu64 " of ", at->length);

	switch (look->fault) {
	case FAULT_UNMAPPED:
		return kvp_fail(error, -EFAULT, phase, index, NULL,
				"map the pool before, and check address and length",
				"%s%s%s are not mapped, from 0x%" PRIx64 " on", name, part, what,
				at->addr);
	case FAULT_FOREIGN:
		describe(at, kind, sizeof(kind));
		snprintf(advice, sizeof(advice), "allocate it with kvp_pool_create()%s%.63s",
			 look->domain ? " in domain " : "", look->domain ? look->domain : "");
		return kvp_fail(error, -ENOTSUP, phase, index, NULL, advice,
				"%s%s%s are %s, not %s", name, part, what, kind, pool);
	case FAULT_DESTROYED:
		return kvp_fail(error, -ESTALE, phase, index, NULL,
				"open and map the pool that took its place",
				"%s%s%s are pool %" PRIu32 " of generation %" PRIu64
				", which was destroyed",
				name, part, what, span->id, span->generation);
	case FAULT_DOMAIN:
		snprintf(advice, sizeof(advice), "create the pool in domain %.63s", look->domain);
		return kvp_fail(error, -EXDEV, phase, index, NULL, advice,
				"%s%s%s are pool %" PRIu32 " of domain %s, not %s", name, part,
				what, span->id, span->domain, pool);
	case FAULT_GENERATION:
		return kvp_fail(error, -ESTALE, phase, index, NULL,
				"other memory took the address of what ended: build the list anew",
				"%s%s%s are generation %" PRIu64 " of pool %" PRIu32
				", not generation %" PRIu64, name, part, what, span->generation,
				span->id, buffer->generation);
	case FAULT_STRADDLE:
		snprintf(advice, sizeof(advice), "make a buffer of its own from 0x%" PRIx64 " on",
			 at->addr);
		if (span->id == look->previous_id)
			return kvp_fail(error, -ERANGE, phase, index, NULL, advice,
					"%s%s straddle two mappings of pool %" PRIu32
					" that don't continue each other", name, what, span->id);
		return kvp_fail(error, -ERANGE, phase, index, NULL, advice,
				"%s%s straddle pools %" PRIu32 " and %" PRIu32
				" at offset %" PRIu64, name, what, look->previous_id, span->id,
				at->addr - start);
	case FAULT_END:
		return kvp_fail(error, -ERANGE, phase, index, NULL,
				"what counts is the length asked for, not the mapped length",
				"%s%s pass the logical end of pool %" PRIu32 ", which is %" PRIu64
				" bytes long: they end at its offset %" PRIu64, name, what,
				span->id, at->pool_length, span->offset + at->length);
	case FAULT_ACCESS:
		if (!at->readable)
			return kvp_fail(error, -EACCES, phase, index, NULL, "map it readable",
					"%s%s%s are mapped without read access", name, part, what);
		return kvp_fail(error, -EACCES, phase, index, NULL,
				"map it with KVP_ACCESS_WRITE, or mark the buffer KVP_BUFFER_READ_ONLY",
				"%s%s%s are mapped read only, and the buffer needs write access",
				name, part, what);
	case FAULT_NONE:
		break;
	}
	return 0;
}

bool kvp_locate_in(const struct kvp_segment *segment, const char *domain,
		   const struct kvp_buffer *buffer, struct kvp_span *span)
{
	const uint64_t offset = segment->span.offset + (uintptr_t)buffer->addr - segment->addr;

	if (!buffer->length || buffer->flags & ~KVP_BUFFER_READ_ONLY ||
	    segment_fault(domain, buffer, segment, offset, buffer->length, false) != FAULT_NONE)
		return false;
	*span = segment->span;
	span->offset = offset;
	span->length = buffer->length;
	return true;
}

int kvp_locate(struct kvp_ctx *ctx, const char *domain, const struct kvp_buffer *buffer,
	       uint32_t index, struct kvp_span *span, bool *asked, struct kvp_error *error)
{
	const uint64_t start = (uintptr_t)buffer->addr;
	struct look look = { .domain = domain, .buffer = buffer, .fault = FAULT_NONE };
	char name[24] = "", what[64];
	int err;

	if (asked)
		*asked = true;
	if (index != KVP_NONE)
		snprintf(name, sizeof(name), "buffer %" PRIu32 ": ", index);
	if (!buffer->length)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, index, NULL,
				"leave empty buffers out where the list is made (KVP_EMPTY_SKIP)",
				"%sthe length is 0", name);
	snprintf(what, sizeof(what), "%" PRIu64 " bytes at 0x%" PRIx64, buffer->length, start);
	if (buffer->length > UINT64_MAX - start)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, index, NULL, "check the length",
				"%s%s wrap around the end of the address space", name, what);
	if (buffer->flags & ~KVP_BUFFER_READ_ONLY)
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, index, NULL, NULL,
				"%sunknown flags 0x%" PRIx32, name, buffer->flags);

	err = kvp_resolve(ctx, buffer->addr, buffer->length, look_at, &look, error);
	if (err) {
		if (asked)
			*asked = false;
		return err;
	}
	err = report(&look, name, what, index, error);
	if (err)
		return err;
	*span = look.first.span;
	span->length = buffer->length;
	return 0;
}

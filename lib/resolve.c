// SPDX-License-Identifier: LGPL-2.1-or-later
/* What backs a range of addresses. */
#include <inttypes.h>
#include <sys/ioctl.h>

#include "netlink.h"
#include "procmaps.h"

_Static_assert((int)KVP_KIND_DEVICE == KVPOOL_SEGMENT_DEVICE &&
	       (int)KVP_KIND_POOL == KVPOOL_SEGMENT_POOL, "the kinds are handed through");

struct walk {
	int (*each)(const struct kvp_segment *segment, void *arg);
	void *arg;
	struct kvp_procmaps maps;
	struct kvp_segment last;	/* not handed out yet: the next may continue it */
	bool any;
};

static bool has_path(enum kvp_kind kind)
{
	return kind == KVP_KIND_HUGETLB || kind == KVP_KIND_SHMEM || kind == KVP_KIND_FILE;
}

/*
 * The kernel merges neighbours within one call only, where a call ends depends
 * on the size of our array, and the caller must not see that.
 */
bool kvp_segment_continues(const struct kvp_segment *last, const struct kvp_segment *next)
{
	if (last->addr + last->length != next->addr || last->kind != next->kind ||
	    last->readable != next->readable || last->writable != next->writable ||
	    last->stale != next->stale)
		return false;
	if (last->kind != KVP_KIND_POOL)
		return true;
	return last->span.id == next->span.id && last->span.generation == next->span.generation &&
	       last->span.offset + last->length == next->span.offset;
}

static int hand_out(struct walk *walk)
{
	struct kvp_segment *segment = &walk->last;

	if (!walk->any)
		return 0;
	walk->any = false;
	if (segment->kind == KVP_KIND_POOL)
		segment->span.length = segment->length;
	else if (has_path(segment->kind))
		kvp_procmaps_path(&walk->maps, segment->addr, segment->path,
				  sizeof(segment->path));
	return walk->each(segment, walk->arg);
}

static void convert(const struct kvpool_segment *from, struct kvp_segment *to)
{
	memset(to, 0, sizeof(*to));
	to->addr = from->addr;
	to->length = from->length;
	to->kind = (enum kvp_kind)from->kind;
	to->readable = !!(from->flags & KVPOOL_SEGMENT_READ);
	to->writable = !!(from->flags & KVPOOL_SEGMENT_WRITE);
	to->stale = !!(from->flags & KVPOOL_SEGMENT_STALE);
	if (to->kind != KVP_KIND_POOL)
		return;
	memcpy(to->span.domain, from->domain, sizeof(to->span.domain));
	to->span.id = from->id;
	to->span.generation = from->generation;
	to->span.offset = from->offset;
	to->pool_length = from->pool_length;
}

static bool segment_sane(const struct kvpool_segment *segment, uint64_t addr, uint64_t left)
{
	if (segment->addr != addr || !segment->length || segment->length > left ||
	    segment->kind > KVPOOL_SEGMENT_DEVICE)
		return false;
	if (segment->kind != KVPOOL_SEGMENT_POOL)
		return true;
	return segment->id && segment->generation &&
	       segment->length <= UINT64_MAX - segment->offset &&
	       memchr(segment->domain, '\0', sizeof(segment->domain));
}

/* Nothing the kernel writes may send this loop astray: one call must cover what it says. */
static bool answer_sane(const struct kvpool_resolve *answer, const struct kvpool_segment *segments)
{
	uint64_t covered = 0;
	uint32_t i;

	if (!answer->count || answer->count > KVP_RESOLVE_SOME || answer->resolved > answer->length)
		return false;
	for (i = 0; i < answer->count; i++) {
		if (!segment_sane(&segments[i], answer->addr + covered, answer->length - covered))
			return false;
		covered += segments[i].length;
	}
	return covered == answer->resolved;
}

static int take(struct walk *walk, const struct kvp_segment *segments, uint32_t count)
{
	uint32_t i;
	int err;

	for (i = 0; i < count; i++) {
		if (walk->any && kvp_segment_continues(&walk->last, &segments[i])) {
			walk->last.length += segments[i].length;
			continue;
		}
		err = hand_out(walk);
		if (err)
			return err;
		walk->last = segments[i];
		walk->any = true;
	}
	return 0;
}

int kvp_resolve_some(struct kvp_ctx *ctx, uint64_t addr, uint64_t length,
		     struct kvp_segment segments[KVP_RESOLVE_SOME], uint32_t *count,
		     uint64_t *resolved, struct kvp_error *error)
{
	struct kvpool_segment answer[KVP_RESOLVE_SOME];
	struct kvpool_resolve request = {
		.size = sizeof(request),
		.addr = addr,
		.length = length,
		.segments = (uintptr_t)answer,
		.count = KVP_RESOLVE_SOME,
	};
	uint32_t i;
	int err;

	if (ioctl(ctx->control, KVPOOL_IOC_RESOLVE, &request)) {
		err = -errno;
		return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				err == -ENOTTY ? "check the control path of the context, "
				"and the release of the module" : NULL,
				"resolve %" PRIu64 " bytes at 0x%" PRIx64, length, addr);
	}
	/* These the kernel gives back; the check must not rest on it. */
	request.addr = addr;
	request.length = length;
	if (!answer_sane(&request, answer))
		return kvp_fail(error, -EPROTO, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"install the module and the library of one release",
				"the module's answer about %" PRIu64 " bytes at 0x%" PRIx64
				" does not add up", length, addr);
	for (i = 0; i < request.count; i++)
		convert(&answer[i], &segments[i]);
	*count = request.count;
	*resolved = request.resolved;
	return 0;
}

static int walk_range(struct kvp_ctx *ctx, uint64_t addr, uint64_t length, struct walk *walk,
		      struct kvp_error *error)
{
	struct kvp_segment segments[KVP_RESOLVE_SOME];
	uint64_t resolved = 0;
	uint32_t count = 0;
	int err;

	for (; length; addr += resolved, length -= resolved) {
		err = kvp_resolve_some(ctx, addr, length, segments, &count, &resolved, error);
		if (!err)
			err = take(walk, segments, count);
		if (err)
			return err;
	}
	return hand_out(walk);
}

KVP_EXPORT int kvp_resolve(struct kvp_ctx *ctx, const void *addr, uint64_t length,
			   int (*each)(const struct kvp_segment *segment, void *arg), void *arg,
			   struct kvp_error *error)
{
	const uint64_t start = (uintptr_t)addr;
	struct walk walk = { .each = each, .arg = arg };
	int err;

	if (!length)
		return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL, NULL,
				"resolve 0 bytes at 0x%" PRIx64, start);
	if (length > UINT64_MAX - start)
		return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"check the length", "%" PRIu64 " bytes at 0x%" PRIx64 " wrap",
				length, start);
	err = walk_range(ctx, start, length, &walk, error);
	kvp_procmaps_end(&walk.maps);
	return err;
}

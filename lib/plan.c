// SPDX-License-Identifier: LGPL-2.1-or-later
/* The plan of a transaction: which chunks are to be registered where, and whether they may. */
#include <inttypes.h>
#include <stdlib.h>

#include "transaction.h"

struct planner {
	const struct kvp_buffer *buffers;
	const uint32_t *index;
	uint32_t buffer_count;
	const struct kvp_span *spans;
	const struct kvp_registrar_set *set;
	struct kvp_target *targets;
	uint64_t target_count;
};

static const char *target_name(const struct planner *planner, const struct kvp_target *target)
{
	return kvp_registrar_device(planner->set->registrars[target->registrar], target->device);
}

static int target_limits(const struct planner *planner, struct kvp_target *target,
			 struct kvp_error *error)
{
	const struct kvp_registrar *registrar = planner->set->registrars[target->registrar];
	bool foreign;
	int ret, err;

	ret = registrar->ops.limits(registrar->arg, target->device, &target->max_length,
				    &target->max_count);
	if (!ret)
		return 0;
	err = kvp_returned(ret, &foreign);
	return kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, target_name(planner, target), NULL,
			"can't learn the limits of the device: its registrar returned %d", ret);
}

static int make_targets(struct planner *planner, struct kvp_error *error)
{
	uint64_t made = 0;
	uint32_t i, device;

	for (i = 0; i < planner->set->count; i++)
		planner->target_count += planner->set->registrars[i]->devices;
	planner->targets = calloc(planner->target_count, sizeof(*planner->targets));
	if (!planner->targets)
		return kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no memory to plan for %" PRIu64 " devices", planner->target_count);
	for (i = 0; i < planner->set->count; i++) {
		for (device = 0; device < planner->set->registrars[i]->devices; device++) {
			struct kvp_target *target = &planner->targets[made++];
			int err;

			target->registrar = i;
			target->device = device;
			err = target_limits(planner, target, error);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Bytes that all chunks of a buffer pin at one device. */
static uint64_t pinned_by(const struct kvp_buffer *buffer, const struct kvp_split *split)
{
	const uint64_t page = kvp_page_size();
	uint64_t pinned = kvp_pinned_bytes((uintptr_t)buffer->addr, buffer->length);
	uint64_t border = (uintptr_t)buffer->addr + split->first;

	/*
	 * All borders have the same place in their page, and one that is not at
	 * its start makes two chunks pin that page.
	 */
	if (split->chunks > 1 && border % page)
		pinned += (split->chunks - 1) * page;
	return pinned;
}

static int cannot_cut(const struct planner *planner, uint32_t position,
		      const struct kvp_target *target, int err, struct kvp_error *error)
{
	const struct kvp_buffer *buffer = &planner->buffers[position];
	const uint32_t index = planner->index[position];

	return kvp_fail(error, err, KVP_PHASE_CHECK, index, target_name(planner, target),
			"make the block smaller, or the buffer",
			"buffer %" PRIu32 ": %" PRIu64 " bytes are to be cut at multiples of the"
			" block of %" PRIu64 " bytes and of the page, but the device registers %"
			PRIu64 " bytes at most", index, buffer->length, buffer->block,
			target->max_length);
}

/* Count the chunks and pinned bytes of each target. */
static int measure(const struct planner *planner, struct kvp_error *error)
{
	uint32_t i;
	uint64_t t;

	for (i = 0; i < planner->buffer_count; i++) {
		const struct kvp_buffer *buffer = &planner->buffers[i];

		for (t = 0; t < planner->target_count; t++) {
			struct kvp_target *target = &planner->targets[t];
			struct kvp_split split;
			int err = kvp_split(buffer, target->max_length, &split);

			if (err)
				return cannot_cut(planner, i, target, err, error);
			target->chunks += split.chunks;
			target->pinned += pinned_by(buffer, &split);
		}
	}
	return 0;
}

static int check_counts(const struct planner *planner, uint32_t *entries, struct kvp_error *error)
{
	uint64_t t, total = 0;

	for (t = 0; t < planner->target_count; t++) {
		const struct kvp_target *target = &planner->targets[t];

		if (target->max_count && target->chunks > target->max_count)
			return kvp_fail(error, -ENOSPC, KVP_PHASE_CHECK, KVP_NONE,
					target_name(planner, target),
					"register fewer and larger buffers",
					"%" PRIu32 " buffers need %" PRIu64
					" registrations, the device has %" PRIu64,
					planner->buffer_count, target->chunks, target->max_count);
		/* It does not wrap: chunks are pages or larger, so there are less than 2^52. */
		if (total + target->chunks > UINT32_MAX)
			return kvp_fail(error, -ENOSPC, KVP_PHASE_CHECK, KVP_NONE, NULL,
					"register fewer and larger buffers",
					"the buffers need more than %" PRIu32 " registrations",
					UINT32_MAX);
		total += target->chunks;
	}
	*entries = (uint32_t)total;
	return 0;
}

static int check_memlock(const struct planner *planner, struct kvp_error *error)
{
	struct kvp_memlock_need need = { 0 };
	struct kvp_memlock memlock;
	bool same = true;
	uint64_t t;
	int err;

	for (t = 0; t < planner->target_count; t++) {
		const struct kvp_target *target = &planner->targets[t];

		if (!planner->set->registrars[target->registrar]->ops.pins)
			continue;
		if (need.devices && need.per_device != target->pinned)
			same = false;
		need.per_device = target->pinned;
		need.devices++;
		if (__builtin_add_overflow(need.total, target->pinned, &need.total))
			need.total = UINT64_MAX;
	}
	if (!need.devices)
		return 0;
	if (!same)
		need.per_device = 0;
	err = kvp_memlock_read(&memlock, error);
	return err ? err : kvp_memlock_check(&memlock, &need, error);
}

static void fill_chunks(const struct planner *planner, uint32_t position,
			const struct kvp_target *target, struct kvp_plan *plan)
{
	const struct kvp_buffer *buffer = &planner->buffers[position];
	struct kvp_split split;
	uint64_t n, length;

	/* It succeeded in measure(). */
	(void)kvp_split(buffer, target->max_length, &split);
	for (n = 0; n < split.chunks; n++) {
		struct kvp_entry *entry = &plan->entries[plan->count++];

		kvp_split_chunk(&split, buffer->length, n, &entry->offset, &length);
		entry->index = planner->index[position];
		entry->registrar = target->registrar;
		entry->device = target->device;
		entry->chunk.addr = (char *)buffer->addr + entry->offset;
		entry->chunk.length = length;
		entry->chunk.flags = buffer->flags;
		entry->chunk.span = planner->spans[position];
		entry->chunk.span.offset += entry->offset;
		entry->chunk.span.length = length;
	}
}

static int fill(const struct planner *planner, uint32_t entries, struct kvp_plan *plan,
		struct kvp_error *error)
{
	uint32_t i;
	uint64_t t;

	plan->entries = calloc(entries, sizeof(*plan->entries));
	if (!plan->entries)
		return kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				"no memory for a plan of %" PRIu32 " registrations", entries);
	for (i = 0; i < planner->buffer_count; i++)
		for (t = 0; t < planner->target_count; t++)
			fill_chunks(planner, i, &planner->targets[t], plan);
	return 0;
}

int kvp_plan_build(const struct kvp_list *list, const struct kvp_span *spans,
		   const struct kvp_registrar_set *set, struct kvp_plan *plan,
		   struct kvp_error *error)
{
	struct planner planner = { .spans = spans, .set = set };
	uint32_t entries = 0;
	int err;

	*plan = (struct kvp_plan){ 0 };
	planner.buffers = kvp_list_buffers(list, &planner.buffer_count);
	planner.index = kvp_list_index(list, &planner.buffer_count);
	err = make_targets(&planner, error);
	if (!err)
		err = measure(&planner, error);
	if (!err)
		err = check_counts(&planner, &entries, error);
	if (!err)
		err = check_memlock(&planner, error);
	if (!err)
		err = fill(&planner, entries, plan, error);
	free(planner.targets);
	return err;
}

void kvp_plan_free(struct kvp_plan *plan)
{
	free(plan->entries);
	*plan = (struct kvp_plan){ 0 };
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a transaction leaves: the entries that are registered, and finding them. */
#include <inttypes.h>
#include <stdlib.h>

#include "transaction.h"

int kvp_registration_new(struct kvp_ctx *ctx, struct kvp_registrar *const *registrars,
			 uint32_t count, struct kvp_registration **result)
{
	struct kvp_registration *registration = calloc(1, sizeof(*registration));

	if (!registration)
		return -ENOMEM;
	registration->ctx = ctx;
	/* A copy: the caller's array need not live as long as its registrars. */
	registration->set.registrars = calloc(count, sizeof(*registrars));
	if (!registration->set.registrars) {
		free(registration);
		return -ENOMEM;
	}
	memcpy(registration->set.registrars, registrars, count * sizeof(*registrars));
	registration->set.count = count;
	*result = registration;
	return 0;
}

int kvp_registration_take(struct kvp_registration *registration, struct kvp_plan *plan)
{
	int err = kvp_record_init(&registration->record, plan->count);

	if (err)
		return err;
	registration->entries = plan->entries;
	registration->count = plan->count;
	*plan = (struct kvp_plan){ 0 };
	return 0;
}

void kvp_registration_created(struct kvp_registration *registration)
{
	struct kvp_ctx *ctx = registration->ctx;
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < registration->pool_count; i++) {
		struct kvp_pool_ref *pool = &registration->pools[i];
		const struct kvp_owned *owned = kvp_owned_find(ctx, pool->id, pool->generation);

		pool->created = owned && owned->created;
		pool->committed = pool->created && owned->committed;
	}
	pthread_mutex_unlock(&ctx->lock);
}

void kvp_registration_committed(struct kvp_registration *registration)
{
	struct kvp_ctx *ctx = registration->ctx;
	uint32_t i;

	pthread_mutex_lock(&ctx->lock);
	for (i = 0; i < registration->pool_count; i++) {
		const struct kvp_pool_ref *pool = &registration->pools[i];
		struct kvp_owned *owned = kvp_owned_find(ctx, pool->id, pool->generation);

		if (owned)
			owned->committed = true;
	}
	pthread_mutex_unlock(&ctx->lock);
}

void kvp_registration_compact(struct kvp_registration *registration, const struct kvp_error *why)
{
	struct kvp_record *record = &registration->record;
	uint32_t i, kept = 0;

	pthread_mutex_lock(&registration->ctx->lock);
	for (i = 0; i < registration->count; i++) {
		const enum kvp_step step = kvp_record_get(record, i);

		if (step != KVP_STEP_REGISTERED && step != KVP_STEP_QUARANTINED)
			continue;
		registration->entries[kept] = registration->entries[i];
		kvp_record_compact(record, i, kept++);
	}
	registration->count = kept;
	record->count = kept;
	registration->quarantine = *why;
	pthread_mutex_unlock(&registration->ctx->lock);
}

void kvp_registration_quarantine(struct kvp_registration *registration, uint32_t n, bool on)
{
	pthread_mutex_lock(&registration->ctx->lock);
	registration->entries[n].quarantined = on;
	pthread_mutex_unlock(&registration->ctx->lock);
}

void kvp_registration_publish(struct kvp_registration *registration)
{
	struct kvp_ctx *ctx = registration->ctx;

	pthread_mutex_lock(&ctx->lock);
	registration->next = ctx->registrations;
	ctx->registrations = registration;
	pthread_mutex_unlock(&ctx->lock);
}

void kvp_registration_set(struct kvp_registration *registration, bool *flag)
{
	pthread_mutex_lock(&registration->ctx->lock);
	*flag = true;
	pthread_mutex_unlock(&registration->ctx->lock);
}

static void withdraw(struct kvp_registration *registration)
{
	struct kvp_ctx *ctx = registration->ctx;
	struct kvp_registration **at;

	pthread_mutex_lock(&ctx->lock);
	for (at = &ctx->registrations; *at; at = &(*at)->next) {
		if (*at == registration) {
			*at = registration->next;
			break;
		}
	}
	pthread_mutex_unlock(&ctx->lock);
}

void kvp_registration_free(struct kvp_registration *registration)
{
	if (!registration)
		return;
	/* This is where every one ends that has nothing registered, and no other. */
	kvp_log_end(registration);
	withdraw(registration);
	kvp_record_free(&registration->record);
	free(registration->entries);
	free(registration->set.registrars);
	free(registration->pools);
	free(registration);
}

/* ------------------------------------------------------------- quarantine */

/* The first of the buffers, which share no byte, that ends behind `addr`. */
static uint32_t first_behind(const struct kvp_sorted *sorted, uint64_t addr)
{
	uint32_t low = 0, high = sorted->count, middle;
	const struct kvp_buffer *buffer;

	while (low < high) {
		middle = low + (high - low) / 2;
		buffer = sorted->buffers[middle];
		if ((uintptr_t)buffer->addr + buffer->length <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The buffer, by its position below `position`, that shares a byte with what one has left
 * which is being undone, or could not be: a registrar that goes by the span would undo
 * what another registers of it meanwhile. `position` itself if there is none.
 */
static uint32_t find_busy(const struct kvp_registration *registration,
			  const struct kvp_sorted *sorted, const struct kvp_buffer *buffers,
			  uint32_t position)
{
	uint32_t i, n;

	for (i = 0; i < registration->count; i++) {
		const struct kvp_chunk *chunk = &registration->entries[i].chunk;
		const uint64_t start = (uintptr_t)chunk->addr;

		for (n = first_behind(sorted, start); n < sorted->count &&
		     (uintptr_t)sorted->buffers[n]->addr < start + chunk->length; n++)
			if (sorted->buffers[n] - buffers < position)
				position = (uint32_t)(sorted->buffers[n] - buffers);
	}
	return position;
}

/* Called with the lock held, so that no function of the caller may be called here. */
static int refuse(const struct kvp_registration *registration, const struct kvp_buffer *buffer,
		  uint32_t index, struct kvp_error *error)
{
	const struct kvp_error *why = &registration->quarantine;

	if (!why->err)
		return kvp_fail(error, -EBUSY, KVP_PHASE_CHECK, index, NULL,
				"call again when that has returned",
				"buffer %" PRIu32 ": %" PRIu64 " bytes at 0x%" PRIxPTR
				" are being unregistered by another call", index, buffer->length,
				(uintptr_t)buffer->addr);
	kvp_fail(error, -EBUSY, KVP_PHASE_CHECK, index, why->device,
		 "call kvp_unregister() for the registration that holds it",
		 "buffer %" PRIu32 ": %" PRIu64 " bytes at 0x%" PRIxPTR
		 " are quarantined by an earlier failure: %s (%d)", index, buffer->length,
		 (uintptr_t)buffer->addr, why->message, -why->err);
	if (error)
		error->repeated = 1;
	return -EBUSY;
}

int kvp_registration_quarantine_check(struct kvp_ctx *ctx, const struct kvp_list *list,
				      struct kvp_error *error)
{
	const struct kvp_registration *registration, *holder = NULL;
	const struct kvp_buffer *buffers;
	struct kvp_sorted sorted = { 0 };
	uint32_t count, position, found;
	int err = 0;

	buffers = kvp_list_buffers(list, &count);
	position = count;
	pthread_mutex_lock(&ctx->lock);
	/* None is ending, nearly always: then no entry is looked at. */
	for (registration = ctx->registrations; registration; registration = registration->next) {
		if (!registration->ending)
			continue;
		if (!sorted.buffers)
			err = kvp_sorted_init(&sorted, buffers, count);
		if (err)
			break;
		found = find_busy(registration, &sorted, buffers, position);
		if (found < position)
			holder = registration;
		position = found;
	}
	if (err)
		kvp_fail(error, err, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
			 "no memory to check %" PRIu32 " buffers", count);
	else if (holder)
		err = refuse(holder, &buffers[position], kvp_list_index(list, &count)[position],
			     error);
	pthread_mutex_unlock(&ctx->lock);
	kvp_sorted_free(&sorted);
	return err;
}

/* ---------------------------------------------------------------- finding */

KVP_EXPORT uint32_t kvp_registration_count(const struct kvp_registration *registration)
{
	return registration->count;
}

KVP_EXPORT const struct kvp_entry *
kvp_registration_entry(const struct kvp_registration *registration, uint32_t n)
{
	return n < registration->count ? &registration->entries[n] : NULL;
}

struct place {
	uint32_t index, registrar, device;
	uint64_t offset;
};

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Plans are made in this order, and nothing changes it. */
static int compare_place(const void *key, const void *member)
{
	const struct place *place = key;
	const struct kvp_entry *entry = member;
	int order = compare(place->index, entry->index);

	if (!order)
		order = compare(place->registrar, entry->registrar);
	if (!order)
		order = compare(place->device, entry->device);
	if (!order && place->offset < entry->offset)
		order = -1;
	if (!order && place->offset - entry->offset >= entry->chunk.length)
		order = 1;
	return order;
}

KVP_EXPORT const struct kvp_entry *
kvp_registration_find(const struct kvp_registration *registration, uint32_t index,
		      uint32_t registrar, uint32_t device, uint64_t offset)
{
	const struct place place = { index, registrar, device, offset };

	if (!registration->count)
		return NULL;
	return bsearch(&place, registration->entries, registration->count,
		       sizeof(*registration->entries), compare_place);
}

KVP_EXPORT struct ibv_mr *kvp_entry_mr(const struct kvp_registration *registration,
				       const struct kvp_entry *entry)
{
	if (!registration->set.registrars[entry->registrar]->verbs)
		return NULL;
	return entry->cookie;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where a context has mapped its pools: what kvp_pool_map() mapped and
 * kvp_pool_unmap() has not ended, in ascending order of addresses. It answers which
 * pool a range lies in without asking the kernel, by a search in the order of the
 * logarithm.
 *
 * A mapping holds its pool, and no pool gets the generation of another. So while
 * the mapping stands, what is said here of its addresses can't become untrue, and it is
 * taken out before the mapping goes. What is not known here: whether another process
 * has destroyed the pool, and what the caller did to the addresses by itself, as by munmap().
 * Whoever has to rely on either asks the kernel: kvp_check(), kvp_register().
 */
#include <stdlib.h>

#include "netlink.h"

void kvp_mappings_init(struct kvp_mappings *mappings)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	/* Threads that ask all the time must not keep one that maps waiting for good. */
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&mappings->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
}

void kvp_mappings_free(struct kvp_mappings *mappings)
{
	struct kvp_domain *domain;

	while ((domain = mappings->domains)) {
		mappings->domains = domain->next;
		free(domain);
	}
	pthread_rwlock_destroy(&mappings->lock);
	free(mappings->starts);
	free(mappings->items);
}

/* How many begin at or before an address: the one that may hold it is the last of these. */
static uint32_t up_to(const struct kvp_mappings *mappings, uint64_t addr)
{
	const uint64_t *base = mappings->starts;
	uint32_t left = mappings->count;

	if (!left)
		return 0;
	/* No branch depends on what is found: a wrong guess would cost more than the look. */
	while (left > 1) {
		const uint32_t half = left / 2;

		base += base[half] <= addr ? half : 0;
		left -= half;
	}
	return (uint32_t)(base - mappings->starts) + (*base <= addr);
}

static const struct kvp_domain *domain_of(struct kvp_mappings *mappings, const char *name)
{
	struct kvp_domain *domain;

	for (domain = mappings->domains; domain; domain = domain->next)
		if (!strcmp(domain->name, name))
			return domain;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return NULL;
	memcpy(domain->name, name, sizeof(domain->name));
	domain->next = mappings->domains;
	mappings->domains = domain;
	return domain;
}

/* Put `put` items (0 or 1) in the place of the `taken` from `at` on. */
static void replace(struct kvp_mappings *mappings, uint32_t at, uint32_t taken, uint32_t put)
{
	const uint32_t behind = mappings->count - at - taken;

	if (put != taken) {
		memmove(&mappings->starts[at + put], &mappings->starts[at + taken],
			behind * sizeof(*mappings->starts));
		memmove(&mappings->items[at + put], &mappings->items[at + taken],
			behind * sizeof(*mappings->items));
	}
	mappings->count += put - taken;
}

static int make_room(struct kvp_mappings *mappings)
{
	int err = kvp_array_grow(&mappings->starts, mappings->count, &mappings->starts_room,
				 sizeof(*mappings->starts));

	return err ? err : kvp_array_grow(&mappings->items, mappings->count,
					  &mappings->items_room, sizeof(*mappings->items));
}

void kvp_mappings_add(struct kvp_mappings *mappings, const struct kvp_pool *pool)
{
	const uint64_t start = (uintptr_t)pool->addr;
	struct kvp_mapping mapping = {
		.length = pool->length, .generation = pool->generation, .id = pool->id,
	};
	uint32_t first, end;

	pthread_rwlock_wrlock(&mappings->lock);
	first = up_to(mappings, start);
	if (first && mappings->starts[first - 1] + mappings->items[first - 1].length > start)
		first--;
	/* What the kernel has given away anew, the caller has unmapped behind our back. */
	for (end = first; end < mappings->count; end++)
		if (mappings->starts[end] >= start + mapping.length)
			break;
	mapping.domain = domain_of(mappings, pool->domain);
	/* Without memory for it, the kernel is asked. */
	if (!mapping.domain || make_room(mappings)) {
		replace(mappings, first, end - first, 0);
	} else {
		replace(mappings, first, end - first, 1);
		mappings->starts[first] = start;
		mappings->items[first] = mapping;
	}
	pthread_rwlock_unlock(&mappings->lock);
}

void kvp_mappings_remove(struct kvp_mappings *mappings, const struct kvp_pool *pool)
{
	const uint64_t start = (uintptr_t)pool->addr;
	uint32_t n;

	pthread_rwlock_wrlock(&mappings->lock);
	n = up_to(mappings, start);
	if (n && mappings->starts[n - 1] == start &&
	    mappings->items[n - 1].generation == pool->generation)
		replace(mappings, n - 1, 1, 0);
	pthread_rwlock_unlock(&mappings->lock);
}

void kvp_mappings_destroyed(struct kvp_mappings *mappings, uint64_t generation)
{
	uint32_t i = 0;

	pthread_rwlock_wrlock(&mappings->lock);
	while (i < mappings->count)
		if (mappings->items[i].generation == generation)
			replace(mappings, i, 1, 0);
		else
			i++;
	pthread_rwlock_unlock(&mappings->lock);
}

static bool find(const struct kvp_mappings *mappings, const char *domain, uint64_t addr,
		 uint64_t length, struct kvp_span *span)
{
	const uint32_t n = up_to(mappings, addr);
	const struct kvp_mapping *mapping;
	uint64_t offset;

	if (!n || !length)
		return false;
	mapping = &mappings->items[n - 1];
	offset = addr - mappings->starts[n - 1];
	if (offset >= mapping->length || length > mapping->length - offset ||
	    (domain && strcmp(domain, mapping->domain->name)))
		return false;
	memcpy(span->domain, mapping->domain->name, sizeof(span->domain));
	span->id = mapping->id;
	span->generation = mapping->generation;
	span->offset = offset;
	span->length = length;
	return true;
}

bool kvp_mappings_find(struct kvp_mappings *mappings, const char *domain, uint64_t addr,
		       uint64_t length, struct kvp_span *span)
{
	bool found;

	pthread_rwlock_rdlock(&mappings->lock);
	found = find(mappings, domain, addr, length, span);
	pthread_rwlock_unlock(&mappings->lock);
	return found;
}

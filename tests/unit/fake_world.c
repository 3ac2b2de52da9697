// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_world.h"

#define REGIONS 64
#define POOLS 16

int __real_kvp_resolve(struct kvp_ctx *ctx, const void *addr, uint64_t length,
		       int (*each)(const struct kvp_segment *segment, void *arg), void *arg,
		       struct kvp_error *error);
int __real_kvp_pool_find(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			 struct kvp_pool_info *info, struct kvp_error *error);
int __real_kvp_pool_set(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			const struct kvp_pool_change *change, struct kvp_error *error);
int __wrap_kvp_resolve(struct kvp_ctx *ctx, const void *addr, uint64_t length,
		       int (*each)(const struct kvp_segment *segment, void *arg), void *arg,
		       struct kvp_error *error);
int __wrap_kvp_pool_find(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			 struct kvp_pool_info *info, struct kvp_error *error);
int __wrap_kvp_pool_set(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			const struct kvp_pool_change *change, struct kvp_error *error);
int __real_kvp_resolve_some(struct kvp_ctx *ctx, uint64_t addr, uint64_t length,
			    struct kvp_segment segments[KVP_RESOLVE_SOME], uint32_t *count,
			    uint64_t *resolved, struct kvp_error *error);
int __real_kvp_pool_each(struct kvp_ctx *ctx,
			 int (*each)(const struct kvp_pool_info *info, void *arg), void *arg,
			 struct kvp_error *error);
int __real_kvp_pool_destroy(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, int force,
			    struct kvp_error *error);
int __wrap_kvp_pool_destroy(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, int force,
			    struct kvp_error *error);
int __real_kvp_memlock_read(struct kvp_memlock *memlock, struct kvp_error *error);
int __wrap_kvp_memlock_read(struct kvp_memlock *memlock, struct kvp_error *error);

unsigned int fake_world_resolved, fake_world_resolved_some, fake_world_destroyed;

static struct {
	bool active;
	struct kvp_ctx ctx;
	struct kvp_segment regions[REGIONS];
	unsigned int region_count;
	struct kvp_pool_info pools[POOLS];
	struct kvp_owned owned[POOLS];
	unsigned int pool_count;
	unsigned int resolve_skip;
	int resolve_err;
	int find_err;
	int destroy_err;
	struct kvp_memlock memlock;
	bool memlock_real;
	int state_err[KVP_REGISTRATION_FAILED + 1];
	char states[512];
} world;

int fake_world_setup(void **state)
{
	memset(&world, 0, sizeof(world));
	world.active = true;
	world.ctx.control = -1;
	world.memlock.limit = UINT64_MAX;
	pthread_mutex_init(&world.ctx.lock, NULL);
	pthread_mutex_init(&world.ctx.states_lock, NULL);
	fake_world_resolved = fake_world_resolved_some = fake_world_destroyed = 0;
	return fake_setup(state);
}

int fake_world_teardown(void **state)
{
	const bool left = world.ctx.registrations;

	kvp_report_free(&world.ctx);
	pthread_mutex_destroy(&world.ctx.states_lock);
	pthread_mutex_destroy(&world.ctx.lock);
	world.active = false;
	if (left)
		print_error("a registration was left on the context's list\n");
	return fake_teardown(state) || left ? -1 : 0;
}

struct kvp_ctx *fake_world_ctx(void)
{
	return &world.ctx;
}

struct kvp_segment *fake_world_map(uint64_t addr, uint64_t length, enum kvp_kind kind)
{
	struct kvp_segment *region = &world.regions[world.region_count++];

	assert_true(world.region_count <= REGIONS);
	region->addr = addr;
	region->length = length;
	region->kind = kind;
	region->readable = region->writable = 1;
	return region;
}

struct kvp_segment *fake_world_pool(uint32_t id, uint64_t addr, uint64_t length)
{
	struct kvp_segment *region = fake_world_map(addr, length, KVP_KIND_POOL);
	struct kvp_owned *owned = &world.owned[world.pool_count];
	struct kvp_pool_info *info = &world.pools[world.pool_count++];

	assert_true(world.pool_count <= POOLS);
	strcpy(region->span.domain, "kv");
	region->span.id = id;
	region->span.generation = 100 + id;
	region->pool_length = length;
	info->id = id;
	info->generation = 100 + id;
	info->owned = 1;
	info->owner_pid = getpid();
	owned->id = id;
	owned->generation = info->generation;
	owned->next = world.ctx.owned;
	world.ctx.owned = owned;
	return region;
}

void fake_world_others(uint32_t id)
{
	struct kvp_owned **at = &world.ctx.owned;

	while ((*at)->id != id)
		at = &(*at)->next;
	*at = (*at)->next;
}

struct kvp_pool_info *fake_world_info(uint32_t id)
{
	unsigned int i;

	for (i = 0; i < world.pool_count; i++)
		if (world.pools[i].id == id)
			return &world.pools[i];
	return NULL;
}

void fake_world_fail_resolve(unsigned int skip, int err)
{
	world.resolve_skip = skip;
	world.resolve_err = err;
}

void fake_world_fail_state(enum kvp_registration_state state, int err)
{
	world.state_err[state] = err;
}

void fake_world_fail_find(int err)
{
	world.find_err = err;
}

void fake_world_fail_destroy(int err)
{
	world.destroy_err = err;
}

void fake_world_memlock(uint64_t limit, uint64_t used)
{
	world.memlock.limit = limit;
	world.memlock.used = used;
}

void fake_world_memlock_real(void)
{
	world.memlock_real = true;
}

const char *fake_world_states(void)
{
	return world.states;
}

void fake_world_forget_states(void)
{
	world.states[0] = '\0';
}

struct kvp_list *fake_world_list(const struct kvp_buffer *buffers, uint32_t count)
{
	struct kvp_list *list;
	uint32_t i;

	assert_int_equal(kvp_list_new(KVP_EMPTY_SKIP, &list), 0);
	for (i = 0; i < count; i++)
		assert_int_equal(kvp_list_add(list, &buffers[i]), 0);
	assert_int_equal(kvp_list_seal(list, NULL), 0);
	return list;
}

static const struct kvp_segment *region_at(uint64_t addr, uint64_t *next)
{
	unsigned int i;

	*next = UINT64_MAX;
	for (i = 0; i < world.region_count; i++) {
		const struct kvp_segment *region = &world.regions[i];

		if (addr >= region->addr && addr - region->addr < region->length)
			return region;
		if (region->addr > addr && region->addr < *next)
			*next = region->addr;
	}
	return NULL;
}

int __wrap_kvp_resolve_some(struct kvp_ctx *ctx, uint64_t addr, uint64_t length,
			    struct kvp_segment segments[KVP_RESOLVE_SOME], uint32_t *count,
			    uint64_t *resolved, struct kvp_error *error)
{
	uint64_t next;

	if (!world.active)
		return __real_kvp_resolve_some(ctx, addr, length, segments, count, resolved, error);
	fake_world_resolved_some++;
	if (world.resolve_err)
		return world.resolve_err;
	*resolved = 0;
	for (*count = 0; *count < KVP_RESOLVE_SOME && *resolved < length; ++*count) {
		const struct kvp_segment *region = region_at(addr + *resolved, &next);
		struct kvp_segment *segment = &segments[*count];

		*segment = region ? *region : (struct kvp_segment){ .kind = KVP_KIND_UNMAPPED };
		if (region) {
			segment->span.offset += addr + *resolved - region->addr;
			next = region->addr + region->length;
		}
		segment->addr = addr + *resolved;
		if (next > addr + length)
			next = addr + length;
		segment->length = next - segment->addr;
		*resolved += segment->length;
	}
	return 0;
}

int __wrap_kvp_resolve(struct kvp_ctx *ctx, const void *start, uint64_t length,
		       int (*each)(const struct kvp_segment *segment, void *arg), void *arg,
		       struct kvp_error *error)
{
	uint64_t addr = (uintptr_t)start, end = addr + length, next;
	int ret;

	if (!world.active)
		return __real_kvp_resolve(ctx, start, length, each, arg, error);
	fake_world_resolved++;
	if (world.resolve_err && !world.resolve_skip--) {
		ret = world.resolve_err;
		world.resolve_err = 0;
		return kvp_fail(error, ret, KVP_PHASE_REQUEST, KVP_NONE, NULL, NULL, "resolve");
	}
	for (; addr < end; addr = next) {
		const struct kvp_segment *region = region_at(addr, &next);
		struct kvp_segment segment = { .kind = KVP_KIND_UNMAPPED };

		if (region) {
			segment = *region;
			segment.span.offset += addr - region->addr;
			next = region->addr + region->length;
		}
		if (next > end)
			next = end;
		segment.addr = addr;
		segment.length = next - addr;
		segment.span.length = segment.kind == KVP_KIND_POOL ? segment.length : 0;
		ret = each(&segment, arg);
		if (ret)
			return ret;
	}
	return 0;
}

int __wrap_kvp_pool_find(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			 struct kvp_pool_info *info, struct kvp_error *error)
{
	const struct kvp_pool_info *found;

	if (!world.active)
		return __real_kvp_pool_find(ctx, id, generation, info, error);
	found = fake_world_info(id);
	if (!found || world.find_err || found->generation != generation)
		return kvp_fail(error, world.find_err ? world.find_err : -ESTALE, KVP_PHASE_REQUEST,
				KVP_NONE, NULL, NULL, "find");
	*info = *found;
	return 0;
}

/* As the module has it (docs/policy.md): out of REGISTERING only, or never out of COMMITTED. */
static bool may_follow(enum kvp_registration_state from, enum kvp_registration_state to)
{
	if (to == KVP_REGISTRATION_COMMITTED)
		return from == to || from == KVP_REGISTRATION_REGISTERING;
	return to != KVP_REGISTRATION_FALLBACK_L2 || from != KVP_REGISTRATION_COMMITTED;
}

int __wrap_kvp_pool_set(struct kvp_ctx *ctx, uint32_t id, uint64_t generation,
			const struct kvp_pool_change *change, struct kvp_error *error)
{
	const size_t used = strlen(world.states);
	int err;

	if (!world.active)
		return __real_kvp_pool_set(ctx, id, generation, change, error);
	assert_int_equal(change->mask, KVP_SET_REGISTRATION);
	assert_int_equal(generation, fake_world_info(id)->generation);
	err = world.state_err[change->registration];
	snprintf(world.states + used, sizeof(world.states) - used, "%s%u:%s", used ? " " : "", id,
		 kvp_registration_state_name(change->registration));
	if (!err && !may_follow(fake_world_info(id)->registration, change->registration))
		err = -EINVAL;
	if (err)
		return kvp_fail(error, err, KVP_PHASE_REQUEST, KVP_NONE, NULL, NULL, "set");
	fake_world_info(id)->registration = change->registration;
	return 0;
}

int __wrap_kvp_pool_each(struct kvp_ctx *ctx,
			 int (*each)(const struct kvp_pool_info *info, void *arg), void *arg,
			 struct kvp_error *error)
{
	unsigned int i;
	int ret = 0;

	if (!world.active)
		return __real_kvp_pool_each(ctx, each, arg, error);
	for (i = 0; i < world.pool_count && !ret; i++)
		ret = each(&world.pools[i], arg);
	return ret;
}

int __wrap_kvp_pool_destroy(struct kvp_ctx *ctx, uint32_t id, uint64_t generation, int force,
			    struct kvp_error *error)
{
	struct kvp_pool_info *found;

	if (!world.active)
		return __real_kvp_pool_destroy(ctx, id, generation, force, error);
	fake_world_destroyed++;
	found = fake_world_info(id);
	assert_non_null(found);
	assert_int_equal(found->generation, generation);
	assert_false(force);
	if (world.destroy_err)
		return kvp_fail(error, world.destroy_err, KVP_PHASE_REQUEST, KVP_NONE, NULL, NULL,
				"destroy");
	found->generation = 0;
	return 0;
}

int __wrap_kvp_memlock_read(struct kvp_memlock *memlock, struct kvp_error *error)
{
	if (!world.active || world.memlock_real)
		return __real_kvp_memlock_read(memlock, error);
	*memlock = world.memlock;
	return 0;
}

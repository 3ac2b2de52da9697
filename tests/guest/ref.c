// SPDX-License-Identifier: GPL-2.0
#include "ref.h"

struct ref ref_of(const struct kvp_pool *pool)
{
	return (struct ref){ kvp_pool_id(pool), kvp_pool_generation(pool) };
}

struct kvp_pool_info ref_find(struct kvp_ctx *ctx, struct ref ref)
{
	struct kvp_pool_info info;

	RETURNS(0, kvp_pool_find(ctx, ref.id, ref.generation, &info, &error));
	return info;
}

bool ref_gone(struct kvp_ctx *ctx, struct ref ref)
{
	struct kvp_pool_info info;
	int err = kvp_pool_find(ctx, ref.id, ref.generation, &info, NULL);

	CHECK(!err || err == -ENOENT || err == -ESTALE);
	return err;
}

bool ref_in_state(struct kvp_ctx *ctx, struct ref ref, enum kvp_state state)
{
	struct kvp_pool_info info;

	return !kvp_pool_find(ctx, ref.id, ref.generation, &info, NULL) && info.state == state;
}

struct kvp_pool *ref_make(struct kvp_ctx *ctx, const char *name, enum kvp_lifetime lifetime)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_pool *pool = NULL;

	options.domain = "kv";
	options.name = name;
	options.length = REF_LENGTH;
	options.lifetime = lifetime;
	RETURNS(0, kvp_pool_create(ctx, &options, &pool, &error));
	return pool;
}

int ref_destroy(struct kvp_ctx *ctx, struct ref ref, int force)
{
	last_error = (struct kvp_error){ 0 };
	return kvp_pool_destroy(ctx, ref.id, ref.generation, force, &last_error);
}

char *ref_map_fd(int fd, int protection)
{
	char *addr = mmap(NULL, REF_LENGTH, protection, MAP_SHARED, fd, 0);

	CHECK(addr != MAP_FAILED);
	return addr;
}

// SPDX-License-Identifier: GPL-2.0
/* When the module may go, and what is the same after it has come back. */
#include "ref.h"

static int unload(void)
{
	return shell("rmmod kvpool 2>/dev/null");
}

static void load(void)
{
	EQUAL(shell("modprobe kvpool && chgrp kvpool /dev/kvpool/control"), 0);
}

static void persistent_and_gone(int line)
{
	struct kvp_pool *pool = ref_make(open_ctx(), "cache", KVP_LIFETIME_PERSISTENT);
	struct ref ref = ref_of(pool);

	PUT(line, ref);
}

static void mapped_only(int line)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = ref_make(ctx, "mapped", KVP_LIFETIME_OWNER);

	ref_map_fd(kvp_pool_fd(pool), PROT_READ);
	kvp_pool_close(pool);
	kvp_close(ctx);
	tell(line);
	await(line);
}

static void unload_is_refused_while_used(void)
{
	struct kvp_ctx *ctx;
	struct ref ref;
	pid_t pid;
	int line;

	/* A persistent pool, and no process that has anything to do with it. */
	pid = partner(persistent_and_gone, &line);
	GET(line, ref);
	EQUAL(wait_child(pid), 0);
	CHECK(unload());
	CHECK(!access("/dev/kvpool/cache", F_OK));
	ctx = open_ctx();
	EQUAL(ref_destroy(ctx, ref, 0), 0);
	/* An open control node. */
	CHECK(unload());
	kvp_close(ctx);

	/* A mapping, and no descriptor. */
	pid = partner(mapped_only, &line);
	await(line);
	CHECK(unload());
	tell(line);
	EQUAL(wait_child(pid), 0);
	ctx = open_ctx();
	UNTIL(!stats(ctx).bytes);
	kvp_close(ctx);

	EQUAL(unload(), 0);
	CHECK(access("/dev/kvpool", F_OK) == -1 && access("/sys/class/kvpool", F_OK) == -1);
	load();
}

static void generation_outlives_module(void)
{
	uint64_t last = 0;

	for (int round = 0; round < 5; round++) {
		struct kvp_span span = { .id = 0 };
		struct kvp_ctx *ctx;
		struct kvp_pool *pool, *found;
		void *addr;

		EQUAL(unload(), 0);
		load();
		ctx = open_ctx();
		pool = ref_make(ctx, "again", KVP_LIFETIME_OWNER);
		/* Everything is the same but the generation. */
		EQUAL(kvp_pool_id(pool), 1);
		CHECK(kvp_pool_generation(pool) > last);
		if (last) {
			snprintf(span.domain, sizeof(span.domain), "kv");
			span.id = 1;
			span.generation = last;
			span.length = 1;
			RETURNS(-ESTALE, kvp_span_import(ctx, &span, KVP_ACCESS_READ, &found, &addr,
							 &error));
			SAYS("another has its id");
			RETURNS(-ESTALE, kvp_pool_open(ctx, 1, last, KVP_ACCESS_READ, &found,
						       &error));
			EQUAL(ref_destroy(ctx, (struct ref){ 1, last }, 1), -ESTALE);
		}
		last = kvp_pool_generation(pool);
		kvp_pool_close(pool);
		kvp_close(ctx);
		ctx = open_ctx();
		UNTIL(!stats(ctx).bytes);
		kvp_close(ctx);
	}
}

int main(void)
{
	RUN(unload_is_refused_while_used);
	RUN(generation_outlives_module);
	return cases_end();
}

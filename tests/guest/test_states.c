// SPDX-License-Identifier: GPL-2.0
/* Which registration state may follow which: one table, in the module. */
#include "guest.h"

#define STATES 5

static int set_state(struct kvp_ctx *ctx, struct kvp_pool *pool, enum kvp_registration_state state,
		     struct kvp_error *error)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);

	change.mask = KVP_SET_REGISTRATION;
	change.registration = state;
	return kvp_pool_set(ctx, kvp_pool_id(pool), kvp_pool_generation(pool), &change, error);
}

/* From any state through REGISTERING to `state`. */
static void reach(struct kvp_ctx *ctx, struct kvp_pool *pool, enum kvp_registration_state state)
{
	RETURNS(0, set_state(ctx, pool, KVP_REGISTRATION_REGISTERING, &error));
	RETURNS(0, set_state(ctx, pool, state, &error));
	EQUAL(query(pool).registration, state);
}

static void followers(void)
{
	/* [from][to], in the order of the enum: docs/policy.md */
	static const bool allowed[STATES][STATES] = {
		{ 1, 1, 0, 1, 1 },
		{ 1, 1, 1, 1, 1 },
		{ 1, 1, 1, 0, 1 },
		{ 1, 1, 0, 1, 1 },
		{ 1, 1, 0, 1, 1 },
	};
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK);
	int from, to;

	for (from = 0; from < STATES; from++) {
		for (to = 0; to < STATES; to++) {
			reach(ctx, pool, from);
			RETURNS(allowed[from][to] ? 0 : -EINVAL, set_state(ctx, pool, to, &error));
			if (!allowed[from][to])
				SAYS("may not follow");
			EQUAL(query(pool).registration, allowed[from][to] ? to : from);
		}
	}
	RETURNS(-ERANGE, set_state(ctx, pool, STATES, &error));
}

/* sysfs and an event say the same, at once. */
static void shown(void)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_pool *pool = make_pool(ctx, "kv", BLOCK);
	struct kvp_monitor *monitor;
	enum kvp_event event;
	uint64_t generation;
	uint32_t id;

	RETURNS(0, kvp_monitor_open(&monitor, &error));
	RETURNS(0, set_state(ctx, pool, KVP_REGISTRATION_FALLBACK_L2, &error));
	RETURNS(0, kvp_monitor_next(monitor, &event, &id, &generation, &error));
	EQUAL(event, KVP_EVENT_CHANGE);
	EQUAL(generation, kvp_pool_generation(pool));
	EQUAL(shell("grep -qx FALLBACK_L2 /sys/class/kvpool/%s/registration", query(pool).name), 0);
	kvp_monitor_close(monitor);
}

/* What the last owner registered has ended with it. */
static void claimed(void)
{
	struct kvp_pool_options options = KVP_INIT(struct kvp_pool_options);
	struct kvp_ctx *first = open_ctx(), *second = open_ctx();
	struct kvp_pool *pool;
	uint64_t generation;
	uint32_t id;

	options.domain = "kv";
	options.length = BLOCK;
	options.lifetime = KVP_LIFETIME_PERSISTENT;
	RETURNS(0, kvp_pool_create(first, &options, &pool, &error));
	id = kvp_pool_id(pool);
	generation = kvp_pool_generation(pool);
	reach(first, pool, KVP_REGISTRATION_COMMITTED);
	kvp_pool_close(pool);
	kvp_close(first);
	RETURNS(0, kvp_pool_claim(second, id, generation, &pool, &error));
	EQUAL(query(pool).registration, KVP_REGISTRATION_ALLOCATED);
	RETURNS(0, kvp_verify(second, &error));
	kvp_pool_close(pool);
	RETURNS(0, kvp_pool_destroy(second, id, generation, 0, &error));
}

int main(void)
{
	RUN(followers);
	RUN(shown);
	RUN(claimed);
	return cases_end();
}

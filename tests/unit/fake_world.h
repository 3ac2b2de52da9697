/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A world of made-up memory and pools for what stands on kvp_resolve(),
 * kvp_pool_find(), kvp_pool_set(), kvp_pool_each(), kvp_pool_destroy() and
 * kvp_memlock_read(): unlike fake_kernel.h, which scripts every call, this one
 * answers as often as it is asked. The addresses are never touched. Outside fake_world_setup() and fake_world_teardown() the real
 * functions run.
 */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

#include "fake_kernel.h"
#include "../../lib/transaction.h"

#define FAKE_BASE 0x7f0000000000ULL
#define MIB ((uint64_t)1 << 20)

/* fake_setup() is part of it, so that allocations can fail. */
int fake_world_setup(void **state);
int fake_world_teardown(void **state);
#define world_test(function) \
	cmocka_unit_test_setup_teardown(function, fake_world_setup, fake_world_teardown)

/* A context that no kernel stands behind. */
struct kvp_ctx *fake_world_ctx(void);

/* Memory at `addr`; change the members of the answer as needed. Unnamed memory is unmapped. */
struct kvp_segment *fake_world_map(uint64_t addr, uint64_t length, enum kvp_kind kind);
/* A pool of domain "kv" that the context has claimed, mapped whole and writable. */
struct kvp_segment *fake_world_pool(uint32_t id, uint64_t addr, uint64_t length);
/* It is that of another context of this process. */
void fake_world_others(uint32_t id);
/* What kvp_pool_find() says of it. */
struct kvp_pool_info *fake_world_info(uint32_t id);

/* How often the kernel was asked what memory is, of one buffer and of all. */
extern unsigned int fake_world_resolved, fake_world_resolved_some;
/* The next kvp_resolve() after `skip` fails as a request, for no fault of a buffer. */
void fake_world_fail_resolve(unsigned int skip, int err);
/* kvp_pool_set() to this state fails; without it, what the module refuses is refused too. */
void fake_world_fail_state(enum kvp_registration_state state, int err);
/* kvp_pool_find() of every pool fails. */
void fake_world_fail_find(int err);

/* kvp_pool_destroy() of every pool fails; 0: it works, and the pool is gone. */
void fake_world_fail_destroy(int err);
/* How often it was called. */
extern unsigned int fake_world_destroyed;

/* What kvp_memlock_read() finds: nothing limits, unless a test says so. */
void fake_world_memlock(uint64_t limit, uint64_t used);
/* Let it find what this process really has. */
void fake_world_memlock_real(void);

/* States that pools were set to, in order, as "1:registering 1:failed". */
const char *fake_world_states(void);
void fake_world_forget_states(void);

/* A sealed list of these buffers. */
struct kvp_list *fake_world_list(const struct kvp_buffer *buffers, uint32_t count);

#define assert_contains(text, part) \
	do { \
		if (!strstr(text, part)) \
			fail_msg("'%s' is not in '%s'", part, text); \
	} while (0)

#endif /* FAKE_WORLD_H */

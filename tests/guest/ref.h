/* SPDX-License-Identifier: GPL-2.0 */
/* A pool as processes call it among each other, and what they do with it so. */
#ifndef REF_H
#define REF_H

#include "guest.h"

/* Of the pools that ref_make() makes. */
#define REF_LENGTH (4 * BLOCK)

struct ref {
	uint32_t id;
	uint64_t generation;
};

struct ref ref_of(const struct kvp_pool *pool);
/* Of domain kv, with a handle. */
struct kvp_pool *ref_make(struct kvp_ctx *ctx, const char *name, enum kvp_lifetime lifetime);
/* It is there, and this is what it is. */
struct kvp_pool_info ref_find(struct kvp_ctx *ctx, struct ref ref);
bool ref_gone(struct kvp_ctx *ctx, struct ref ref);
bool ref_in_state(struct kvp_ctx *ctx, struct ref ref, enum kvp_state state);
/* 0 or a negative errno, with its error in last_error. */
int ref_destroy(struct kvp_ctx *ctx, struct ref ref, int force);
/* A mapping of REF_LENGTH that no handle of the library knows. */
char *ref_map_fd(int fd, int protection);

#endif /* REF_H */

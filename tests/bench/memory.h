/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that pools are compared with, and the reserve that pools come from. */
#ifndef MEMORY_H
#define MEMORY_H

#include "bench.h"

/* Have so many bytes of 2 MiB hugetlb pages ready in the kernel. */
void hugetlb_reserve(uint64_t size);
/* A shared mapping of a new memfd, of 2 MiB or of 4 KiB pages; `flags` as MAP_POPULATE. */
void *hugetlb_map(uint64_t size, int flags);
void *shm_map(uint64_t size, int flags);
/* Private anonymous memory of 4 KiB pages. */
void *anon_map(uint64_t size, int flags);
void unmap(void *addr, uint64_t size);
/* Write a byte to each 4 KiB of it. */
void touch(void *addr, uint64_t size);

/* A pool, to be ended by end_pool(), which waits until its memory is back. */
struct kvp_pool *new_pool(struct kvp_ctx *ctx, uint64_t size);
void end_pool(struct kvp_ctx *ctx, struct kvp_pool *pool);
/* No pool is on its way back any more. */
void await_pools(struct kvp_ctx *ctx);
/* Wait until the reserve holds so much that is cleared. */
void await_reserve(struct kvp_ctx *ctx, uint64_t size);
/* Let the reserve hold so much, and wait until it does. */
void fill_reserve(struct kvp_ctx *ctx, uint64_t size);

#endif /* MEMORY_H */

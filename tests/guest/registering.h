/* SPDX-License-Identifier: GPL-2.0 */
/* What tests of registrations share. */
#ifndef REGISTERING_H
#define REGISTERING_H

#include "rdma.h"

#define DEVICES 2

/* Protection domains at rxe0 and rxe1, and a registrar over both. */
void open_devices(struct ibv_pd *pds[DEVICES]);
struct kvp_registrar *verbs_registrar(struct ibv_pd *const pds[DEVICES], int access);

struct small {
	struct ibv_pd *pds[DEVICES];
	uint64_t max_length[DEVICES];
	uint64_t max_count;
	uint32_t calls;
};

/* A registrar over rxe0 and rxe1 as if they had these limits; opens `pds`. */
struct kvp_registrar *small_registrar(struct small *small);

/* A sealed list of these buffers; empty ones are refused. */
struct kvp_list *list_of(const struct kvp_buffer *buffers, uint32_t count);

/* A transaction over one registrar, without options, that must succeed. */
struct kvp_registration *register_list(struct kvp_ctx *ctx, const char *domain,
				       const struct kvp_list *list,
				       struct kvp_registrar *registrar);
void unregister(struct kvp_ctx *ctx, struct kvp_registration *registration);

/*
 * The pinned blocks of a pool are exactly these runs, "FIRST+COUNT" each with
 * a blank between them, and the kernel's count of them is the same. "": none.
 */
void pins_are(struct kvp_ctx *ctx, struct kvp_pool *pool, const char *runs);

/* Memory regions of processes at all devices. */
long mr_count(void);
/* Lines of /proc/self/maps: mappings that this process has. */
long map_count(void);

#endif /* REGISTERING_H */

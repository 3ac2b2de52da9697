/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the matrix share: an inference rank with a target and a draft
 * pool, as its server sees them, and the state of everything, as one text each.
 */
#ifndef MATRIX_H
#define MATRIX_H

#include "registering.h"
#include "store.h"

#define PAGES 3		/* buffers of a pool: a block each */
#define PAGE_BYTES 65536	/* of each, the bytes that are filled, sent and compared */

/*
 * A pool of a rank. What the rest of the server sees of it, `visible` and
 * `page_get`, is set by the commit function of its registration, and by nothing else.
 */
struct part {
	const char *role;
	uint32_t rank;
	struct kvp_pool *pool;
	char *addr;
	struct kvp_list *list;
	struct kvp_registration *registration;
	bool visible;
	const char *(*page_get)(const struct part *part, uint32_t page);
	uint32_t commits;
};

struct rank {
	uint32_t number;
	enum kvp_lifetime lifetime;
	struct kvp_ctx *ctx;
	struct kvp_registrar *registrars[2];
	uint32_t registrar_count;
	struct part target, draft;
};

/* A context with two pools of domain kv, "target0" and "draft0" for rank 0, filled and mapped. */
void rank_open(struct rank *rank, uint32_t number, enum kvp_lifetime lifetime);
/* The same with options of the context. */
void rank_open_with(struct rank *rank, uint32_t number, enum kvp_lifetime lifetime,
		    const struct kvp_options *options);
/* The same with pools that persist, of a rank that has died: claims them. */
void rank_claim(struct rank *rank, uint32_t number);
/* Make, map and fill the pool of a part once more, when it was destroyed. */
void part_allocate(struct rank *rank, struct part *part);
/* Register at one more registrar from now on. */
void rank_use(struct rank *rank, struct kvp_registrar *registrar);
/* What kvp_register() returns for a part; the error is last_error. */
int part_register(struct rank *rank, struct part *part);
/* Detach: not visible first, then unregistered. What kvp_unregister() returns. */
int part_unregister(struct rank *rank, struct part *part);
/* Unmap and destroy the pool, which must work once, and not a second time. */
void part_destroy(struct rank *rank, struct part *part);
/* Nothing of the part is visible to the rest of the server. */
void part_is_hidden(const struct part *part);
/* Unregister and destroy both, close everything, free the registrars. */
void rank_close(struct rank *rank);

/* The bytes that a page of a part is filled with, and whether they are there. */
uint64_t page_seed(const struct part *part, uint32_t page);
bool part_is_filled(const struct part *part);
/* The span of the filled bytes of a page. */
struct kvp_span page_span(struct rank *rank, const struct part *part, uint32_t page);

/*
 * The state of everything, which each step of a test ends with:
 *  ctx       what the context knows is what the kernel knows; NULL: none is there
 *  pools     of sysfs, in the order of names, "draft0:COMMITTED target0:FAILED/2",
 *            behind a slash the number of pinned blocks if there are any
 *  store     holds `held`, as store_holds() writes it; NULL: it doesn't run
 *  journals  so many files are in /run/kvpool
 */
void state_is(const char *file, int line, struct kvp_ctx *ctx, const char *pools,
	      struct store *store, const char *held, int journals);
#define STATE(ctx, pools, store, held, journals) \
	state_is(__FILE__, __LINE__, ctx, pools, store, held, journals)
/* A text is as expected. */
#define SAME(got, want) \
	do { const char *got_ = (got); if (strcmp(got_, want)) \
		FAIL("%s is \"%s\", not \"%s\"", #got, got_, want); } while (0)

/* Run a case of the matrix. What it leaves when it fails does not make the next one fail. */
#define ROW(name) \
	do { RUN(name); matrix_clean(); } while (0)
void matrix_clean(void);

/* What all journals of the directory were recovered to, by this registrar; NULL: none. */
struct kvp_recovery_report recover(struct kvp_registrar *registrar);
/* The same with a context that is there, for many times. */
struct kvp_recovery_report recover_by(struct kvp_ctx *ctx, struct kvp_registrar *registrar);
/* Its actions as "kept=1 entry-undone=3": what was counted, in the order of the enum. */
const char *recovered(const struct kvp_recovery_report *report);
/* The only journal that there is; its path, until the next call. */
const char *journal_path(void);

#endif /* MATRIX_H */

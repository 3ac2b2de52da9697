// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl destroy */
#include <errno.h>
#include <inttypes.h>

#include "ctl.h"
#include "format.h"

enum { OPT_FORCE = OPT_COMMAND };

static void print_result(uint32_t id, uint64_t generation, const struct kvp_pool_info *left)
{
	printf("id:%" PRIu32 ".%" PRIu64 " is ", id, generation);
	if (!left)
		puts("destroyed");
	else if (left->pinned_blocks)
		printf("%s: a device pins %" PRIu32 " of %" PRIu32
		       " blocks, each is freed with its last pin\n",
		       kvp_state_name(left->state), left->pinned_blocks, left->blocks);
	else
		printf("%s: %" PRIu32 " open files and %" PRIu32 " mappings are left\n",
		       kvp_state_name(left->state), left->files, left->mappings);
}

static int destroy(const struct ctl *ctl, struct kvp_ctx *ctx, const struct pool_ref *ref,
		   bool force)
{
	struct kvp_error error = { 0 };
	struct kvp_pool_info pool;
	uint32_t id = ref->id;
	uint64_t generation = ref->generation;
	bool left;
	int status;

	/* A whole identity needs no question first. */
	if (!generation) {
		status = ctl_find(ctl, ctx, ref, &pool, &error);
		if (status)
			return status;
		id = pool.id;
		generation = pool.generation;
	}
	if (kvp_pool_destroy(ctx, id, generation, force, &error))
		return ctl_fail(ctl, &error);

	/* Pins and open files keep a destroyed pool in being; then there is something to say. */
	left = !kvp_pool_find(ctx, id, generation, &pool, NULL);
	if (!ctl->json)
		print_result(id, generation, left ? &pool : NULL);
	else if (format_destroyed_json(stdout, id, generation, left ? &pool : NULL))
		return ctl_fail_errno(ctl, -ENOMEM, NULL, "the result can't be printed");
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, OPT_FORCE },
		CTL_OPTIONS_END
	};
	struct pool_ref ref;
	struct kvp_ctx *ctx;
	bool force = false;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		if (c != OPT_FORCE)
			return ctl->status;
		force = true;
	}
	status = ctl_pool_operand(ctl, argc, argv, &ref);
	if (status)
		return status;
	ctx = ctl_open(ctl, false);
	if (!ctx)
		return CTL_FAILED;
	status = destroy(ctl, ctx, &ref, force);
	kvp_close(ctx);
	return status;
}

const struct ctl_command ctl_destroy = {
	.name = "destroy",
	.summary = "end a pool",
	.help =
		"usage: kvpoolctl destroy [OPTION]... POOL\n"
		"End a pool. It is refused while the pool is mapped or pinned.\n\n"
		"  --force      end it all the same: processes that touch a mapping of it get\n"
		"               SIGBUS; a block that a device pins is freed with its last pin\n"
		"  --json       an object: its identity, and what is left of the pool, if anything\n"
		"  -h, --help   this text\n\n"
		"A POOL is NAME, id:ID or id:ID.GENERATION. A name is looked up once, and the\n"
		"pool that had it then is the one that is destroyed.\n",
	.run = run,
};

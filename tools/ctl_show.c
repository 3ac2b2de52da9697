// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl show */
#include <errno.h>
#include <stdlib.h>

#include "ctl.h"
#include "format.h"

struct runs {
	struct pin_run *run;
	size_t count, room;
};

static int collect_run(uint32_t first_block, uint32_t block_count, void *arg)
{
	struct runs *runs = arg;
	struct pin_run *run;

	if (runs->count == runs->room) {
		run = reallocarray(runs->run, 2 * runs->room, sizeof(*run));
		if (!run)
			return -ENOMEM;
		runs->run = run;
		runs->room *= 2;
	}
	runs->run[runs->count].first_block = first_block;
	runs->run[runs->count].block_count = block_count;
	runs->count++;
	return 0;
}

static int show(const struct ctl *ctl, struct kvp_ctx *ctx, const struct pool_ref *ref)
{
	struct kvp_error error = { .err = -ENOMEM, .index = KVP_NONE,
				   .message = "no memory for the runs of pinned blocks" };
	struct kvp_error find_error = { 0 };
	struct runs runs = { .room = 16 };
	struct kvp_pool_info pool;
	int status, err = 0;

	status = ctl_find(ctl, ctx, ref, &pool, &find_error);
	if (status)
		return status;
	runs.run = calloc(runs.room, sizeof(*runs.run));
	if (!runs.run)
		return ctl_fail(ctl, &error);
	if (kvp_pool_pins(ctx, pool.id, pool.generation, collect_run, &runs, &error))
		status = ctl_fail(ctl, &error);
	else if (ctl->json)
		err = format_pool_json(stdout, &pool, runs.run, runs.count);
	else
		format_pool_text(stdout, &pool, runs.run, runs.count);
	if (err)
		status = ctl_fail_errno(ctl, err, NULL, "the pool can't be printed");
	free(runs.run);
	return status;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	return ctl_one_pool(ctl, argc, argv, true, show);
}

const struct ctl_command ctl_show = {
	.name = "show",
	.summary = "show everything about one pool",
	.help =
		"usage: kvpoolctl show [OPTION]... POOL\n"
		"Show everything about one pool, the runs of blocks that a device pins included.\n\n"
		"  --json       an object\n"
		"  -h, --help   this text\n\n"
		"A POOL is NAME, id:ID or id:ID.GENERATION.\n",
	.run = run,
};

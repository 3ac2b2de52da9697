// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl claim */
#include "ctl.h"

static int claim(const struct ctl *ctl, struct kvp_ctx *ctx, const struct pool_ref *ref)
{
	struct kvp_error error = { 0 };
	struct kvp_pool *handle = NULL;
	struct kvp_pool_info pool;
	sigset_t signals;
	int status;

	status = ctl_find(ctl, ctx, ref, &pool, &error);
	if (status)
		return status;
	if (kvp_pool_claim(ctx, pool.id, pool.generation, &handle, &error))
		return ctl_fail(ctl, &error);
	ctl_block_signals(&signals);
	if (kvp_pool_query(handle, &pool, &error))
		status = ctl_fail(ctl, &error);
	else
		status = ctl_print_pool(ctl, &pool);
	/* Ownership is all that is held: an open file would count as a user. */
	kvp_pool_close(handle);
	return status ? status : ctl_hold(ctl, &signals);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	return ctl_one_pool(ctl, argc, argv, false, claim);
}

const struct ctl_command ctl_claim = {
	.name = "claim",
	.summary = "own a persistent pool until interrupted",
	.help =
		"usage: kvpoolctl claim [OPTION]... POOL\n"
		"Become the owner of a persistent pool that no session owns, print it, and stay in\n"
		"the foreground until SIGINT or SIGTERM: ownership ends with the process. The pool\n"
		"goes on. While it is owned nobody else can claim it.\n\n"
		"  --json       an object\n"
		"  -h, --help   this text\n\n"
		"A POOL is NAME, id:ID or id:ID.GENERATION.\n",
	.run = run,
};

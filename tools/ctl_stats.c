// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl stats */
#include <errno.h>

#include "ctl.h"
#include "format.h"

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = { CTL_OPTIONS_END };
	struct kvp_error error = { 0 };
	struct kvp_stats stats;
	struct kvp_ctx *ctx;
	int status;

	if (ctl_getopt(ctl, argc, argv, options) != -1)
		return ctl->status;
	status = ctl_no_operand(ctl, argc, argv);
	if (status)
		return status;
	ctx = ctl_open(ctl, true);
	if (!ctx)
		return CTL_FAILED;
	if (kvp_stats_get(ctx, &stats, &error))
		status = ctl_fail(ctl, &error);
	else if (!ctl->json)
		format_stats_text(stdout, &stats);
	else if (format_stats_json(stdout, &stats))
		status = ctl_fail_errno(ctl, -ENOMEM, NULL, "the totals can't be printed");
	kvp_close(ctx);
	return status;
}

const struct ctl_command ctl_stats = {
	.name = "stats",
	.summary = "show totals and limits of the module",
	.help =
		"usage: kvpoolctl stats [OPTION]...\n"
		"Show totals and limits of the module.\n\n"
		"  --json       an object\n"
		"  -h, --help   this text\n\n"
		"held       memory of all pools, those that are dying included\n"
		"available  what a creation could use now, before fragmentation\n",
	.run = run,
};

// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl list */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "format.h"

enum { OPT_DOMAIN = OPT_COMMAND, OPT_ROLE, OPT_LABEL, OPT_RANK, OPT_STATE };

/* What to keep: NULL and !has_rank mean all. */
struct filter {
	const char *domain, *role, *label, *state;
	uint32_t rank;
	bool has_rank;
};

static bool same(const char *wanted, const char *value)
{
	return !wanted || !strcmp(wanted, value);
}

static bool keep(const struct kvp_pool_info *pool, void *arg)
{
	const struct filter *filter = arg;

	return same(filter->domain, pool->domain) && same(filter->role, pool->role) &&
	       same(filter->label, pool->label) &&
	       same(filter->state, kvp_state_name(pool->state)) &&
	       (!filter->has_rank || filter->rank == pool->rank);
}

/* A misspelt state would look like an empty machine. */
static bool is_state(const char *text)
{
	return !strcmp(text, kvp_state_name(KVP_STATE_LIVE)) ||
	       !strcmp(text, kvp_state_name(KVP_STATE_ORPHAN)) ||
	       !strcmp(text, kvp_state_name(KVP_STATE_DYING));
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "domain", required_argument, NULL, OPT_DOMAIN },
		{ "role", required_argument, NULL, OPT_ROLE },
		{ "label", required_argument, NULL, OPT_LABEL },
		{ "rank", required_argument, NULL, OPT_RANK },
		{ "state", required_argument, NULL, OPT_STATE },
		CTL_OPTIONS_END
	};
	struct kvp_pool_info *pools = NULL;
	struct kvp_error error = { 0 };
	struct filter filter = { 0 };
	struct kvp_ctx *ctx;
	size_t count = 0;
	const char *why;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		switch (c) {
		case OPT_DOMAIN:
			filter.domain = optarg;
			break;
		case OPT_ROLE:
			filter.role = optarg;
			break;
		case OPT_LABEL:
			filter.label = optarg;
			break;
		case OPT_RANK:
			why = parse_index(optarg, &filter.rank);
			if (why)
				return ctl_usage(ctl, "--rank %s: %s", optarg, why);
			filter.has_rank = true;
			break;
		case OPT_STATE:
			if (!is_state(optarg))
				return ctl_usage(ctl, "--state %s: a state is live, orphan or "
						 "dying", optarg);
			filter.state = optarg;
			break;
		default:
			return ctl->status;
		}
	}
	status = ctl_no_operand(ctl, argc, argv);
	if (status)
		return status;

	ctx = ctl_open(ctl, true);
	if (!ctx)
		return CTL_FAILED;
	if (ctl_collect(ctx, keep, &filter, &pools, &count, &error))
		status = ctl_fail(ctl, &error);
	else if (ctl->json ? format_list_json(stdout, pools, count) :
			     format_list_text(stdout, pools, count))
		status = ctl_fail_errno(ctl, -ENOMEM, NULL, "the list can't be printed");
	free(pools);
	kvp_close(ctx);
	return status;
}

const struct ctl_command ctl_list = {
	.name = "list",
	.summary = "list the pools that the caller could open; root: all",
	.help =
		"usage: kvpoolctl list [OPTION]...\n"
		"List the pools that the caller could open. Root sees all.\n\n"
		"  --domain DOMAIN   only those of this domain\n"
		"  --role ROLE       only those with this role\n"
		"  --label LABEL     only those with this label\n"
		"  --rank N          only those of this rank\n"
		"  --state STATE     only those that are live, orphan or dying\n"
		"  --json            an array of objects\n"
		"  -h, --help        this text\n\n"
		"OWNER is the process whose session owns the pool: - none, ? not visible here.\n"
		"MAPS counts mappings, PINS the blocks that a device holds now.\n",
	.run = run,
};

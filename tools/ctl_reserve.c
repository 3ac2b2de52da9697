// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl reserve */
#include <errno.h>
#include <string.h>

#include "ctl.h"
#include "format.h"

enum { OPT_NODE = OPT_COMMAND, OPT_SIZE, OPT_POLICY, OPT_UID, OPT_QUOTA };

static const struct option options[] = {
	{ "node", required_argument, NULL, OPT_NODE },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "quota", required_argument, NULL, OPT_QUOTA },
	CTL_OPTIONS_END
};

/* What was given, beside what changes. */
struct wish {
	struct kvp_reserve_change change;
	bool node, size, no_quota;
};

/* 0 is a size here: nothing shall be held. */
static const char *parse_amount(const char *text, uint64_t *bytes)
{
	*bytes = 0;
	return strcmp(text, "0") ? parse_size(text, bytes) : NULL;
}

/* Take the value of one option. NULL, or the cause. */
static const char *take(int option, const char *value, struct wish *wish)
{
	struct kvp_reserve_change *change = &wish->change;

	switch (option) {
	case OPT_NODE:
		wish->node = true;
		return parse_index(value, &change->node);
	case OPT_SIZE:
		wish->size = true;
		change->mask |= KVP_RESERVE_SET_TARGET;
		return parse_amount(value, &change->target);
	case OPT_POLICY:
		change->mask |= KVP_RESERVE_SET_POLICY;
		change->policy = strcmp(value, "only") ? KVP_RESERVE_FIRST : KVP_RESERVE_ONLY;
		return strcmp(value, "only") && strcmp(value, "first") ?
		       "is neither first nor only" : NULL;
	case OPT_UID:
		change->mask |= KVP_RESERVE_SET_UID;
		return parse_user(value, &change->uid);
	default:
		wish->no_quota = !strcmp(value, "default");
		if (wish->no_quota)
			return NULL;
		change->mask |= KVP_RESERVE_SET_QUOTA;
		return parse_amount(value, &change->quota);
	}
}

static int check(const struct ctl *ctl, const struct wish *wish)
{
	bool uid = wish->change.mask & KVP_RESERVE_SET_UID;
	bool quota = wish->change.mask & KVP_RESERVE_SET_QUOTA;

	if (wish->node != wish->size)
		return ctl_usage(ctl, "--node and --size: give both");
	if (uid && !quota && !wish->no_quota)
		return ctl_usage(ctl, "--uid needs --quota");
	if (wish->no_quota && (!uid || quota))
		return ctl_usage(ctl, "--quota default needs --uid, and no other --quota");
	return CTL_OK;
}

static int show(const struct ctl *ctl, struct kvp_ctx *ctx)
{
	struct kvp_error error = { 0 };
	struct kvp_reserve *reserve;
	int status = CTL_OK;

	if (kvp_reserve_get(ctx, &reserve, &error))
		return ctl_fail(ctl, &error);
	if (!ctl->json)
		format_reserve_text(stdout, reserve);
	else if (format_reserve_json(stdout, reserve))
		status = ctl_fail_errno(ctl, -ENOMEM, NULL, "the reserve can't be printed");
	kvp_reserve_free(reserve);
	return status;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct wish wish = { .change = KVP_INIT(struct kvp_reserve_change) };
	struct kvp_error error = { 0 };
	struct kvp_ctx *ctx;
	const char *why;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		if (c == CTL_DONE)
			return ctl->status;
		why = take(c, optarg, &wish);
		if (why)
			return ctl_bad_value(ctl, options, c, why);
	}
	status = ctl_no_operand(ctl, argc, argv);
	if (!status)
		status = check(ctl, &wish);
	if (status)
		return status;
	ctx = ctl_open(ctl, !wish.change.mask);
	if (!ctx)
		return CTL_FAILED;
	if (wish.change.mask && kvp_reserve_set(ctx, &wish.change, &error))
		status = ctl_fail(ctl, &error);
	if (!status)
		status = show(ctl, ctx);
	kvp_close(ctx);
	return status;
}

const struct ctl_command ctl_reserve = {
	.name = "reserve",
	.summary = "show or set the memory that is held cleared for pools",
	.help =
		"usage: kvpoolctl reserve [OPTION]...\n"
		"Show the reserve: memory that is held cleared on each node, so that pools need not\n"
		"wait for it. With options change it first, which takes CAP_SYS_ADMIN.\n\n"
		"  --node N --size SIZE  hold so much on this node; 0 for nothing\n"
		"  --policy first        pools take of the reserve first, then other memory\n"
		"  --policy only         pools take of the reserve only, or fail\n"
		"  --quota SIZE          what each user may have of it in pools\n"
		"  --uid USER --quota SIZE\n"
		"                        what this user may have of it; 'default': as the others\n"
		"  --json                an object\n"
		"  -h, --help            this text\n\n"
		"Memory of the reserve is charged to no memory cgroup: the quota limits it.\n",
	.run = run,
};

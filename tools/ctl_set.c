// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl set */
#include <string.h>

#include "ctl.h"

enum {
	OPT_ROLE = OPT_COMMAND, OPT_LABEL, OPT_RANK, OPT_LIFETIME, OPT_UID, OPT_GID, OPT_MODE,
};

static const struct option options[] = {
	{ "role", required_argument, NULL, OPT_ROLE },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "lifetime", required_argument, NULL, OPT_LIFETIME },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "gid", required_argument, NULL, OPT_GID },
	{ "mode", required_argument, NULL, OPT_MODE },
	CTL_OPTIONS_END
};

/* Take the value of one option. NULL, or the cause. */
static const char *take(int option, const char *value, struct kvp_pool_change *change)
{
	switch (option) {
	case OPT_ROLE:
		change->mask |= KVP_SET_ROLE;
		change->role = value;
		return NULL;
	case OPT_LABEL:
		change->mask |= KVP_SET_LABEL;
		change->label = value;
		return NULL;
	case OPT_RANK:
		change->mask |= KVP_SET_RANK;
		change->rank = KVP_NONE;
		if (!strcmp(value, "none"))
			return NULL;
		return parse_index(value, &change->rank);
	case OPT_LIFETIME:
		change->mask |= KVP_SET_LIFETIME;
		return parse_lifetime(value, &change->lifetime);
	case OPT_UID:
		change->mask |= KVP_SET_UID;
		return parse_user(value, &change->uid);
	case OPT_GID:
		change->mask |= KVP_SET_GID;
		return parse_group(value, &change->gid);
	default:
		change->mask |= KVP_SET_MODE;
		return parse_mode(value, &change->mode);
	}
}

static int set(const struct ctl *ctl, struct kvp_ctx *ctx, const struct pool_ref *ref,
	       const struct kvp_pool_change *change)
{
	struct kvp_error error = { 0 };
	struct kvp_pool_info pool;
	int status;

	status = ctl_find(ctl, ctx, ref, &pool, &error);
	if (status)
		return status;
	if (kvp_pool_set(ctx, pool.id, pool.generation, change, &error))
		return ctl_fail(ctl, &error);
	/* Who gives a pool away may not see it any more, and has changed it all the same. */
	if (kvp_pool_find(ctx, pool.id, pool.generation, &pool, NULL))
		return CTL_OK;
	return ctl_print_pool(ctl, &pool);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct kvp_pool_change change = KVP_INIT(struct kvp_pool_change);
	struct pool_ref ref;
	struct kvp_ctx *ctx;
	const char *why;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		if (c == CTL_DONE)
			return ctl->status;
		why = take(c, optarg, &change);
		if (why)
			return ctl_bad_value(ctl, options, c, why);
	}
	status = ctl_pool_operand(ctl, argc, argv, &ref);
	if (status)
		return status;
	if (!change.mask)
		return ctl_usage(ctl, "nothing to change: give at least one option");

	ctx = ctl_open(ctl, false);
	if (!ctx)
		return CTL_FAILED;
	status = set(ctl, ctx, &ref, &change);
	kvp_close(ctx);
	return status;
}

const struct ctl_command ctl_set = {
	.name = "set",
	.summary = "change tags, permissions or the lifetime of a pool",
	.help =
		"usage: kvpoolctl set OPTION... POOL\n"
		"Change a pool, all of the changes or none, and print it.\n\n"
		"  --role ROLE          role tag; '' for none\n"
		"  --label LABEL        free tag; '' for none\n"
		"  --rank N             rank tag; none for none\n"
		"  --lifetime LIFETIME  owner: the pool ends with its last user; a session must\n"
		"                       own it;\n"
		"                       persistent: it stays until it is destroyed\n"
		"  --uid USER           user whom the pool belongs to, name or number\n"
		"  --gid GROUP          group, name or number\n"
		"  --mode MODE          octal permission bits, 0 to 0666\n"
		"  --json               an object\n"
		"  -h, --help           this text\n\n"
		"A POOL is NAME, id:ID or id:ID.GENERATION.\n",
	.run = run,
};

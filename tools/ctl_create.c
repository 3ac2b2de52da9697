// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl create */
#include <inttypes.h>

#include "ctl.h"

enum {
	OPT_DOMAIN = OPT_COMMAND, OPT_NAME, OPT_ROLE, OPT_LABEL, OPT_RANK, OPT_NODE, OPT_STRICT,
	OPT_SIZE, OPT_PERSISTENT, OPT_UID, OPT_GID, OPT_MODE, OPT_HOLD,
};

static const struct option options[] = {
	{ "domain", required_argument, NULL, OPT_DOMAIN },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "role", required_argument, NULL, OPT_ROLE },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "node", required_argument, NULL, OPT_NODE },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "persistent", no_argument, NULL, OPT_PERSISTENT },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "gid", required_argument, NULL, OPT_GID },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "hold", no_argument, NULL, OPT_HOLD },
	CTL_OPTIONS_END
};

/* Take the value of one option. NULL, or the cause. */
static const char *take(int option, const char *value, struct kvp_pool_options *pool, bool *hold)
{
	switch (option) {
	case OPT_DOMAIN:
		pool->domain = value;
		return NULL;
	case OPT_NAME:
		pool->name = value;
		return NULL;
	case OPT_ROLE:
		pool->role = value;
		return NULL;
	case OPT_LABEL:
		pool->label = value;
		return NULL;
	case OPT_RANK:
		pool->has_rank = 1;
		return parse_index(value, &pool->rank);
	case OPT_NODE:
		pool->has_node = 1;
		return parse_index(value, &pool->node);
	case OPT_STRICT:
		pool->placement = KVP_PLACEMENT_STRICT;
		return NULL;
	case OPT_SIZE:
		return parse_size(value, &pool->length);
	case OPT_PERSISTENT:
		pool->lifetime = KVP_LIFETIME_PERSISTENT;
		return NULL;
	case OPT_UID:
		pool->has_uid = 1;
		return parse_user(value, &pool->uid);
	case OPT_GID:
		pool->has_gid = 1;
		return parse_group(value, &pool->gid);
	case OPT_MODE:
		pool->has_mode = 1;
		return parse_mode(value, &pool->mode);
	default:
		*hold = true;
		return NULL;
	}
}

/* What belongs together; the values themselves are the library's to check. */
static int check(const struct ctl *ctl, const struct kvp_pool_options *pool, bool hold)
{
	if (!pool->domain)
		return ctl_usage(ctl, "--domain is missing: every pool is in exactly one");
	if (!pool->length)
		return ctl_usage(ctl, "--size is missing");
	if (pool->placement == KVP_PLACEMENT_STRICT && !pool->has_node)
		return ctl_usage(ctl, "--strict says how binding --node is, which is missing");
	if (pool->lifetime == KVP_LIFETIME_OWNER && !hold)
		return ctl_usage(ctl, "the pool would end with this command, which owns it; "
				 "give --persistent to make it stay, or --hold to keep the command "
				 "running");
	return CTL_OK;
}

static int create(const struct ctl *ctl, struct kvp_ctx *ctx,
		  const struct kvp_pool_options *wanted, bool hold)
{
	struct kvp_error error = { 0 };
	struct kvp_pool *handle = NULL;
	struct kvp_pool_info pool;
	char advice[96];
	sigset_t signals;
	uint64_t generation;
	uint32_t id;
	int status, err;

	if (kvp_pool_create(ctx, wanted, &handle, &error))
		return ctl_fail(ctl, &error);
	/* Not before: a large creation must stay interruptible. */
	if (hold)
		ctl_block_signals(&signals);
	id = kvp_pool_id(handle);
	generation = kvp_pool_generation(handle);
	err = kvp_pool_query(handle, &pool, &error);
	/* The session owns the pool. An open file would count as a user of it. */
	kvp_pool_close(handle);
	if (err && wanted->lifetime == KVP_LIFETIME_PERSISTENT) {
		/* It stays, so whoever reads this must learn which it is. */
		snprintf(advice, sizeof(advice),
			 "the pool stays; end it with kvpoolctl destroy id:%" PRIu32 ".%" PRIu64,
			 id, generation);
		return ctl_fail_errno(ctl, err, advice,
				      "the pool was created, but its query failed");
	}
	if (err)
		return ctl_fail(ctl, &error);
	status = ctl_print_pool(ctl, &pool);
	if (!status && hold)
		status = ctl_hold(ctl, &signals);
	return status;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct kvp_pool_options pool = KVP_INIT(struct kvp_pool_options);
	struct kvp_ctx *ctx;
	bool hold = false;
	const char *why;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		if (c == CTL_DONE)
			return ctl->status;
		why = take(c, optarg, &pool, &hold);
		if (why)
			return ctl_bad_value(ctl, options, c, why);
	}
	status = ctl_no_operand(ctl, argc, argv);
	if (!status)
		status = check(ctl, &pool, hold);
	if (status)
		return status;

	ctx = ctl_open(ctl, false);
	if (!ctx)
		return CTL_FAILED;
	status = create(ctl, ctx, &pool, hold);
	kvp_close(ctx);
	return status;
}

const struct ctl_command ctl_create = {
	.name = "create",
	.summary = "create a pool",
	.help =
		"usage: kvpoolctl create --domain DOMAIN --size SIZE {--persistent|--hold} [OPTION]...\n"
		"Create a pool and print it.\n\n"
		"  --domain DOMAIN  address domain; required\n"
		"  --size SIZE      bytes, or a number with K, M, G or T, powers of 1024; required\n"
		"  --name NAME      name; default pool-GENERATION\n"
		"  --role ROLE      role tag, such as target, draft or state\n"
		"  --label LABEL    free tag, printable ASCII\n"
		"  --rank N         rank tag\n"
		"  --node N         NUMA node to take memory from first\n"
		"  --strict         fail when that node is full; needs --node\n"
		"  --persistent     the pool stays until it is destroyed\n"
		"  --hold           own the pool, in the foreground, until SIGINT or SIGTERM\n"
		"  --uid USER       user whom the pool belongs to, name or number; default the caller\n"
		"  --gid GROUP      group, name or number; default the caller's\n"
		"  --mode MODE      octal permission bits, 0 to 0666; default 0600\n"
		"  --json           an object\n"
		"  -h, --help       this text\n",
	.run = run,
};

// SPDX-License-Identifier: GPL-2.0-only
/* What the subcommands share. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* vasprintf() */
#endif
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "format.h"

/* A line on stderr. Names of files and what journals say may hold anything, as on stdout. */
static void print_line(const struct ctl *ctl, const char *text)
{
	/* What was printed so far comes first, also where both go to one file. */
	fflush(stdout);
	fputs("kvpoolctl: ", stderr);
	if (ctl->command)
		fprintf(stderr, "%s: ", ctl->command);
	format_safe(stderr, text);
	putc('\n', stderr);
}

int ctl_usage(const struct ctl *ctl, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	print_line(ctl, length < 0 ? format : text);
	if (length >= 0)
		free(text);
	fprintf(stderr, "kvpoolctl: see: kvpoolctl %s%s--help\n",
		ctl->command ? ctl->command : "", ctl->command ? " " : "");
	return CTL_USAGE;
}

int ctl_fail(const struct ctl *ctl, const struct kvp_error *error)
{
	char text[1024];

	kvp_error_format(error, text, sizeof(text));
	print_line(ctl, text);
	return CTL_FAILED;
}

int ctl_fail_errno(const struct ctl *ctl, int err, const char *advice, const char *format, ...)
{
	struct kvp_error error = { .err = err, .phase = KVP_PHASE_NONE, .index = KVP_NONE };
	va_list args;

	va_start(args, format);
	vsnprintf(error.message, sizeof(error.message), format, args);
	va_end(args);
	if (advice)
		snprintf(error.advice, sizeof(error.advice), "%s", advice);
	return ctl_fail(ctl, &error);
}

int ctl_getopt(struct ctl *ctl, int argc, char **argv, const struct option *options)
{
	int c;

	opterr = 0;
	for (;;) {
		/* ':' first: a missing value is told from an unknown option. */
		c = getopt_long(argc, argv, ":h", options, NULL);
		switch (c) {
		case 'h':
			fputs(ctl->help, stdout);
			ctl->status = CTL_OK;
			return CTL_DONE;
		case OPT_JSON:
			ctl->json = true;
			break;
		case ':':
			ctl->status = ctl_usage(ctl, "option '%s' needs a value", argv[optind - 1]);
			return CTL_DONE;
		case '?':
			if (optopt && optopt < OPT_JSON)
				ctl->status = ctl_usage(ctl, "unknown option '-%c'", optopt);
			else if (optopt)
				ctl->status = ctl_usage(ctl, "option '%s' takes no value",
							argv[optind - 1]);
			else
				ctl->status = ctl_usage(ctl, "unknown or ambiguous option '%s'",
							argv[optind - 1]);
			return CTL_DONE;
		default:
			return c;
		}
	}
}

int ctl_bad_value(const struct ctl *ctl, const struct option *options, int option, const char *why)
{
	while (options->val != option)
		options++;
	return ctl_usage(ctl, "--%s %s: %s", options->name, optarg, why);
}

int ctl_no_operand(const struct ctl *ctl, int argc, char **argv)
{
	if (optind < argc)
		return ctl_usage(ctl, "'%s' is too much: no operand is taken", argv[optind]);
	return CTL_OK;
}

int ctl_pool_operand(const struct ctl *ctl, int argc, char **argv, struct pool_ref *ref)
{
	const char *why;

	if (optind == argc)
		return ctl_usage(ctl, "which pool? Give NAME, id:ID or id:ID.GENERATION");
	if (optind + 1 < argc)
		return ctl_usage(ctl, "'%s' is too much: one pool at a time", argv[optind + 1]);
	why = parse_pool(argv[optind], ref);
	if (why)
		return ctl_usage(ctl, "pool '%s': %s", argv[optind], why);
	return CTL_OK;
}

struct kvp_ctx *ctl_open(const struct ctl *ctl, bool read_only)
{
	struct kvp_options options = KVP_INIT(struct kvp_options);
	struct kvp_error error = { 0 };
	struct kvp_ctx *ctx;

	options.read_only = read_only;
	if (kvp_open(&options, &ctx, &error)) {
		ctl_fail(ctl, &error);
		return NULL;
	}
	return ctx;
}

int ctl_find(const struct ctl *ctl, struct kvp_ctx *ctx, const struct pool_ref *ref,
	     struct kvp_pool_info *pool, struct kvp_error *error)
{
	int err;

	if (ref->name[0])
		err = kvp_pool_find_name(ctx, ref->name, pool, error);
	else
		err = kvp_pool_find(ctx, ref->id, ref->generation, pool, error);
	if (!err)
		return CTL_OK;
	/* "destroy 3" is more likely to mean the id than a pool that is called "3". */
	if (err == -ENOENT && ref->name[0] &&
	    strspn(ref->name, "0123456789") == strlen(ref->name))
		snprintf(error->advice, sizeof(error->advice),
			 "a bare number is a name; write id:%.20s for an id", ref->name);
	return ctl_fail(ctl, error);
}

void ctl_block_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	/* Can't fail: the set and the operation are valid. */
	sigprocmask(SIG_BLOCK, signals, NULL);
}

int ctl_hold(const struct ctl *ctl, const sigset_t *signals)
{
	int caught;

	/* Whoever started the tool waits for the pool's identity to appear. */
	if (fflush(stdout))
		return ctl_fail_errno(ctl, -errno, NULL, "the pool can't be printed");
	sigwait(signals, &caught);
	return CTL_OK;
}

struct collection {
	bool (*keep)(const struct kvp_pool_info *pool, void *arg);
	void *arg;
	struct kvp_pool_info *pools;
	size_t count, room;
};

static int collect(const struct kvp_pool_info *pool, void *arg)
{
	struct collection *all = arg;
	struct kvp_pool_info *pools;
	size_t room;

	if (all->keep && !all->keep(pool, all->arg))
		return 0;
	if (all->count == all->room) {
		room = all->room ? 2 * all->room : 16;
		pools = reallocarray(all->pools, room, sizeof(*pools));
		if (!pools)
			return -ENOMEM;
		all->pools = pools;
		all->room = room;
	}
	all->pools[all->count++] = *pool;
	return 0;
}

int ctl_collect(struct kvp_ctx *ctx, bool (*keep)(const struct kvp_pool_info *pool, void *arg),
		void *arg, struct kvp_pool_info **pools, size_t *count, struct kvp_error *error)
{
	struct collection all = { .keep = keep, .arg = arg };
	int err;

	/* What the callback returned does not fill the error: it is not the library's. */
	error->err = -ENOMEM;
	error->index = KVP_NONE;
	snprintf(error->message, sizeof(error->message), "no memory for the list of pools");
	err = kvp_pool_each(ctx, collect, &all, error);
	if (err) {
		free(all.pools);
		return err;
	}
	*pools = all.pools;
	*count = all.count;
	return 0;
}

int ctl_print_pool(const struct ctl *ctl, const struct kvp_pool_info *pool)
{
	if (!ctl->json) {
		format_pool_line(stdout, pool);
		return CTL_OK;
	}
	if (format_pool_json(stdout, pool, NULL, 0))
		return ctl_fail_errno(ctl, -ENOMEM, NULL, "the pool can't be printed");
	return CTL_OK;
}

int ctl_one_pool(struct ctl *ctl, int argc, char **argv, bool read_only,
		 int (*act)(const struct ctl *ctl, struct kvp_ctx *ctx,
			    const struct pool_ref *ref))
{
	static const struct option options[] = { CTL_OPTIONS_END };
	struct pool_ref ref;
	struct kvp_ctx *ctx;
	int status;

	if (ctl_getopt(ctl, argc, argv, options) != -1)
		return ctl->status;
	status = ctl_pool_operand(ctl, argc, argv, &ref);
	if (status)
		return status;
	ctx = ctl_open(ctl, read_only);
	if (!ctx)
		return CTL_FAILED;
	status = act(ctl, ctx, &ref);
	kvp_close(ctx);
	return status;
}

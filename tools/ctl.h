/* SPDX-License-Identifier: GPL-2.0-only */
/* What the subcommands share: dispatch, options, errors, signals. */
#ifndef KVPOOLCTL_CTL_H
#define KVPOOLCTL_CTL_H

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "../lib/kvpool.h"
#include "parse.h"

/* Exit codes; kvpoolctl(8) promises them. */
enum {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,		/* the command line: nothing was tried */
	CTL_NOT_LIVE = 3,	/* resolve: the answer is that the span is not live */
};

/* One run of the tool. */
struct ctl {
	const char *command;	/* name of the subcommand, NULL before it is known */
	const char *help;
	bool json;
	int status;		/* exit code, when ctl_getopt() returned CTL_DONE */
};

struct ctl_command {
	const char *name;
	const char *summary;
	const char *help;	/* the whole text of --help */
	int (*run)(struct ctl *ctl, int argc, char **argv);	/* returns the exit code */
};

extern const struct ctl_command ctl_claim, ctl_create, ctl_destroy, ctl_journal, ctl_list,
	ctl_monitor, ctl_recover, ctl_reserve, ctl_resolve, ctl_set, ctl_show, ctl_stats;

/*
 * Values of long options. They start above all characters, so that optopt
 * tells a long option from a short one.
 */
enum {
	CTL_DONE = -2,		/* stop: the exit code is in ctl->status */
	OPT_JSON = 256,
	OPT_VERSION,
	OPT_COMMAND,		/* first value that is free for a subcommand's options */
};

/* End of every subcommand's option table. */
#define CTL_OPTIONS_END						\
	{ "help", no_argument, NULL, 'h' },			\
	{ "json", no_argument, NULL, OPT_JSON },		\
	{ NULL, 0, NULL, 0 }

/*
 * getopt_long() that does --help, --json and complaints by itself. Returns an
 * option of the subcommand, -1 behind the last, or CTL_DONE.
 */
int ctl_getopt(struct ctl *ctl, int argc, char **argv, const struct option *options);

/* Complain about the value of `option`, which ctl_getopt() has just returned. */
int ctl_bad_value(const struct ctl *ctl, const struct option *options, int option, const char *why);

/* Exactly one operand is left, a pool. 0, or an exit code after complaining. */
int ctl_pool_operand(const struct ctl *ctl, int argc, char **argv, struct pool_ref *ref);
/* All of a subcommand that takes a pool and no options but the common ones. */
int ctl_one_pool(struct ctl *ctl, int argc, char **argv, bool read_only,
		 int (*act)(const struct ctl *ctl, struct kvp_ctx *ctx,
			    const struct pool_ref *ref));
/* No operand is left. */
int ctl_no_operand(const struct ctl *ctl, int argc, char **argv);

/* Print on stderr; return the exit code. The library never prints, so these do. */
int ctl_usage(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int ctl_fail(const struct ctl *ctl, const struct kvp_error *error);
/* `err` is a negative errno; `advice` may be NULL. */
int ctl_fail_errno(const struct ctl *ctl, int err, const char *advice, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A context, or NULL after complaining. */
struct kvp_ctx *ctl_open(const struct ctl *ctl, bool read_only);

/*
 * What the pool is that the user named. Commands act on its id and generation
 * from here on: a name can go to another pool between two requests.
 */
int ctl_find(const struct ctl *ctl, struct kvp_ctx *ctx, const struct pool_ref *ref,
	     struct kvp_pool_info *pool, struct kvp_error *error);

/* SIGINT and SIGTERM: block them so that they can be waited for. */
void ctl_block_signals(sigset_t *signals);
/* Flush what was printed, and wait for one of them. Returns the exit code. */
int ctl_hold(const struct ctl *ctl, const sigset_t *signals);

/* All pools that the caller sees and `keep` wants (NULL: all); the array is the caller's. */
int ctl_collect(struct kvp_ctx *ctx, bool (*keep)(const struct kvp_pool_info *pool, void *arg),
		void *arg, struct kvp_pool_info **pools, size_t *count, struct kvp_error *error);

/* Print a pool after it was made or changed. 0 or an exit code. */
int ctl_print_pool(const struct ctl *ctl, const struct kvp_pool_info *pool);

#endif /* KVPOOLCTL_CTL_H */

// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl: finds the subcommand and runs it. See docs/kvpoolctl.8. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"

/* The build gives it; the header has the part that programs may ask for. */
#ifndef KVPOOL_VERSION
#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor) TEXT_OF(major) "." TEXT_OF(minor)
#define KVPOOL_VERSION VERSION_TEXT(KVP_VERSION_MAJOR, KVP_VERSION_MINOR)
#endif

/* In the order of the help text: what looks, then what changes. */
static const struct ctl_command *const commands[] = {
	&ctl_list, &ctl_show, &ctl_stats, &ctl_resolve, &ctl_monitor, &ctl_journal,
	&ctl_create, &ctl_set, &ctl_claim, &ctl_destroy, &ctl_recover, &ctl_reserve,
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int print_help(void)
{
	size_t i;

	fputs("usage: kvpoolctl [--json] COMMAND [OPTION]... [OPERAND]...\n"
	      "Look at and control pools of pinned huge-page memory.\n\n", stdout);
	for (i = 0; i < COMMANDS; i++)
		printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n"
	      "  --json        print JSON; also taken after COMMAND\n"
	      "  -h, --help    this text, or that of COMMAND after it\n"
	      "  --version     the version\n"
	      "\n"
	      "A POOL is NAME, id:ID or id:ID.GENERATION. Exit codes: 0 done, 1 failed,\n"
	      "2 wrong usage, 3 the span is not live. The manual is kvpoolctl(8).\n", stdout);
	return CTL_OK;
}

static const struct ctl_command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 }
	};
	const struct ctl_command *command;
	int c, first;

	opterr = 0;
	/* '+': stop at the subcommand, whose options are its own. */
	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			return print_help();
		case OPT_JSON:
			ctl->json = true;
			break;
		case OPT_VERSION:
			puts("kvpoolctl " KVPOOL_VERSION);
			return CTL_OK;
		default:
			if (optopt && optopt < OPT_JSON)
				return ctl_usage(ctl, "unknown option '-%c'", optopt);
			return ctl_usage(ctl, "option '%s' is not taken before the command",
					 argv[optind - 1]);
		}
	}
	if (optind == argc)
		return ctl_usage(ctl, "which command?");
	command = find_command(argv[optind]);
	if (!command)
		return ctl_usage(ctl, "no command is called '%s'", argv[optind]);

	ctl->command = command->name;
	ctl->help = command->help;
	first = optind;
	optind = 0;	/* getopt_long() starts anew, and forgets '+' */
	return command->run(ctl, argc - first, argv + first);
}

int main(int argc, char **argv)
{
	struct ctl ctl = { 0 };
	int status;

	status = run(&ctl, argc, argv);
	/* A full disk or a closed pipe must not look like success. */
	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && status != CTL_FAILED)
		status = ctl_fail_errno(&ctl, errno ? -errno : -EIO, NULL,
					"the output can't be written");
	return status;
}

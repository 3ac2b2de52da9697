// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl recover: end what dead processes left. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "ctl.h"
#include "format.h"
#include "format_journal.h"
#include "json.h"
#include "parse.h"

enum {
	OPT_DRY_RUN = OPT_COMMAND, OPT_DIR, OPT_STORE, OPT_STORE_CONFIG, OPT_STORE_NAME,
	OPT_TIME_LIMIT,
};

#define STORES 16

/* What unregisters what is registered outside. */
struct stores {
	struct kvp_load_options options[STORES];
	struct kvp_registrar *registrars[STORES];
	uint32_t count;
	uint64_t time_limit;
};

static void print_event(const struct kvp_recovery_event *event, void *arg)
{
	(void)arg;
	format_safe(stdout, event->file);
	printf(": %s", kvp_recovery_action_name(event->action));
	if (event->entry) {
		printf(" transaction %" PRIu64 " entry %" PRIu32 " ", event->entry->transaction,
		       event->entry->number);
		format_journal_entry(stdout, event->entry);
	} else if (event->pool) {
		printf(" id:%" PRIu32 ".%" PRIu64, event->pool->id, event->pool->generation);
	}
	if (event->reason[0]) {
		fputs(": ", stdout);
		format_safe(stdout, event->reason);
	}
	putchar('\n');
}

/* An object: how often each action was taken. */
static int print_report(const struct ctl *ctl, const struct kvp_recovery_report *report,
			bool dry_run)
{
	struct json json = json_new();
	int action;

	for (action = 0; action <= KVP_RECOVERY_POOL_FAILED; action++)
		json_number(&json, kvp_recovery_action_name(action), report->count[action]);
	json_flag(&json, "dry-run", dry_run);
	if (json_print(stdout, json_end(&json), JSON_LINES))
		return ctl_fail_errno(ctl, -ENOMEM, NULL, "the report can't be printed");
	return CTL_OK;
}

/* What no error of the report stands for, and has to be done all the same, or may have to be. */
static int check_left(const struct ctl *ctl, const struct kvp_recovery_report *report)
{
	const uint32_t kept = report->count[KVP_RECOVERY_FILE_KEPT],
		       busy = report->count[KVP_RECOVERY_FILE_BUSY],
		       unknown = report->count[KVP_RECOVERY_FILE_UNKNOWN];

	if (!kept && !busy && !unknown)
		return CTL_OK;
	return ctl_fail_errno(ctl, 0, "recover again without --json, which names the causes, and "
			      "when they are gone", "journals are left: %" PRIu32 " kept, %" PRIu32
			      " busy, %" PRIu32 " unknown", kept, busy, unknown);
}

/* All of them, or the status of the first that can't be. */
static int load(const struct ctl *ctl, struct stores *stores)
{
	struct kvp_error error = { 0 };
	uint32_t i;

	for (i = 0; i < stores->count; i++) {
		stores->options[i].time_limit = stores->time_limit;
		if (kvp_registrar_load(&stores->options[i], &stores->registrars[i], &error))
			return ctl_fail(ctl, &error);
	}
	return CTL_OK;
}

static void unload(struct stores *stores)
{
	uint32_t i;

	for (i = 0; i < stores->count; i++)
		kvp_registrar_free(stores->registrars[i]);
}

static int recover(const struct ctl *ctl, struct kvp_recovery_options *options)
{
	struct kvp_recovery_report report;
	struct kvp_error error = { 0 };
	struct kvp_ctx *ctx;
	int status;

	ctx = ctl_open(ctl, options->dry_run);
	if (!ctx)
		return CTL_FAILED;
	if (!ctl->json)
		options->each = print_event;
	if (kvp_recover(ctx, options, &report, &error))
		status = ctl_fail(ctl, &error);
	else if (ctl->json)
		status = print_report(ctl, &report, options->dry_run);
	else
		status = CTL_OK;
	kvp_close(ctx);
	if (status)
		return status;
	return report.first.err ? ctl_fail(ctl, &report.first) : check_left(ctl, &report);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
		{ "dir", required_argument, NULL, OPT_DIR },
		{ "store", required_argument, NULL, OPT_STORE },
		{ "store-config", required_argument, NULL, OPT_STORE_CONFIG },
		{ "store-name", required_argument, NULL, OPT_STORE_NAME },
		{ "time-limit", required_argument, NULL, OPT_TIME_LIMIT },
		CTL_OPTIONS_END
	};
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct stores stores = { 0 };
	struct kvp_load_options *store = NULL;
	uint64_t seconds;
	const char *cause;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, long_options)) != -1) {
		switch (c) {
		case OPT_DRY_RUN:
			options.dry_run = 1;
			break;
		case OPT_DIR:
			if (optarg[0] != '/')
				return ctl_usage(ctl, "--dir %s: not an absolute path", optarg);
			options.journal_dir = optarg;
			break;
		case OPT_STORE:
			if (stores.count == STORES)
				return ctl_usage(ctl, "--store: no more than %d", STORES);
			store = &stores.options[stores.count++];
			*store = KVP_INIT(struct kvp_load_options);
			store->path = optarg;
			break;
		case OPT_STORE_CONFIG:
		case OPT_STORE_NAME:
			if (!store)
				return ctl_usage(ctl, "--store-config and --store-name follow "
						 "their --store");
			*(c == OPT_STORE_CONFIG ? &store->config : &store->name) = optarg;
			break;
		case OPT_TIME_LIMIT:
			cause = parse_number(optarg, 1000000, &seconds);
			if (cause)
				return ctl_usage(ctl, "--time-limit %s: %s", optarg, cause);
			stores.time_limit = seconds * 1000000000;
			break;
		default:
			return ctl->status;
		}
	}
	status = ctl_no_operand(ctl, argc, argv);
	if (status)
		return status;
	options.registrars = stores.registrars;
	options.registrar_count = stores.count;
	status = load(ctl, &stores);
	if (!status)
		status = recover(ctl, &options);
	unload(&stores);
	return status;
}

const struct ctl_command ctl_recover = {
	.name = "recover",
	.summary = "end what dead processes left",
	.help =
		"usage: kvpoolctl recover [OPTION]...\n"
		"Go through the journals of processes that are dead: have what an external store may\n"
		"still hold unregistered, and destroy the pools that they left. What no --store is\n"
		"given for is kept, and so is its memory.\n\n"
		"  --dry-run            only say what would be done\n"
		"  --dir DIR            the journals' directory; default KVPOOL_JOURNAL_DIR, or /run/kvpool\n"
		"  --store FILE         shared object of a store (kvpool_store.h); may be repeated\n"
		"  --store-config TEXT  what it is opened with; follows its --store\n"
		"  --store-name NAME    its name in the journals, if not its own; likewise\n"
		"  --time-limit SECONDS how long a call of a store may take; default no limit\n"
		"  --json               an object that counts what was done\n"
		"  -h, --help           this text\n\n"
		"Exit codes: 0 nothing is left to do, or with --dry-run would be; 1 something is, or may\n"
		"be (quarantined, refused, failed, kept, busy, unknown), or the command failed.\n",
	.run = run,
};

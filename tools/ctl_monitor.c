// SPDX-License-Identifier: GPL-2.0-only
/* kvpoolctl monitor */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ctl.h"
#include "format.h"

enum { OPT_COUNT = OPT_COMMAND, OPT_LIST };

struct watch {
	const struct ctl *ctl;
	struct kvp_ctx *ctx;
	struct kvp_monitor *monitor;
	int signals;		/* signalfd of SIGINT and SIGTERM */
	uint64_t left;		/* events to print, progress left out */
	bool more;		/* the monitor may have another without reading */
};

static const char *event_name(enum kvp_event event)
{
	switch (event) {
	case KVP_EVENT_CREATE:
		return "create";
	case KVP_EVENT_DESTROY:
		return "destroy";
	case KVP_EVENT_CHANGE:
	case KVP_EVENT_PROGRESS:
		break;
	}
	return "change";
}

/* Line by line: the reader may be a program at the end of a pipe. */
static int end_line(const struct watch *watch, int err)
{
	if (fflush(stdout) && !err)
		err = -errno;
	if (err)
		return ctl_fail_errno(watch->ctl, err, NULL, "the event can't be printed");
	return CTL_OK;
}

static int print_progress(const struct watch *watch, uint32_t id, uint64_t generation)
{
	unsigned int percent = kvp_monitor_progress(watch->monitor);
	int err = 0;

	if (watch->ctl->json)
		err = format_progress_json(stdout, id, generation, percent);
	else
		format_progress_text(stdout, id, generation, percent);
	return end_line(watch, err);
}

static int print(const struct watch *watch, const char *event, uint32_t id, uint64_t generation,
		 const struct kvp_pool_info *pool)
{
	int err = 0;

	if (watch->ctl->json)
		err = format_event_json(stdout, event, id, generation, pool);
	else
		format_event_text(stdout, event, id, generation, pool);
	return end_line(watch, err);
}

static int print_list(const struct watch *watch)
{
	struct kvp_error error = { 0 };
	struct kvp_pool_info *pools = NULL;
	size_t count = 0, i;
	int status = CTL_OK;

	if (ctl_collect(watch->ctx, NULL, NULL, &pools, &count, &error))
		return ctl_fail(watch->ctl, &error);
	for (i = 0; !status && i < count; i++)
		status = print(watch, "list", pools[i].id, pools[i].generation, &pools[i]);
	free(pools);
	return status;
}

/* What waits at the monitor. 0 to go on, or an exit code. */
static int next(struct watch *watch)
{
	struct kvp_error error = { 0 };
	struct kvp_pool_info pool;
	enum kvp_event event;
	uint64_t generation;
	uint32_t id;
	int err, status;
	bool known;

	err = kvp_monitor_next(watch->monitor, &event, &id, &generation, &error);
	watch->more = err != -EAGAIN;
	if (err == -EAGAIN || err == -EINTR)
		return CTL_OK;
	if (err == -ENOBUFS) {
		/* The state is still to be had, though not how it came about. */
		status = print(watch, "lost", 0, 0, NULL);
		return status ? status : print_list(watch);
	}
	if (err)
		return ctl_fail(watch->ctl, &error);
	if (event == KVP_EVENT_PROGRESS)
		return print_progress(watch, id, generation);
	/* By now it may be gone, or it may not be the caller's to see: then the identity is all. */
	known = !kvp_pool_find(watch->ctx, id, generation, &pool, NULL);
	watch->left--;
	return print(watch, event_name(event), id, generation, known ? &pool : NULL);
}

static int watch_events(struct watch *watch)
{
	struct pollfd fds[2] = {
		{ .fd = watch->signals, .events = POLLIN },
		{ .fd = kvp_monitor_fd(watch->monitor), .events = POLLIN },
	};
	int flags, status = CTL_OK;

	/* Readable is a hint: a blocking read behind it could sleep past a signal. */
	flags = fcntl(fds[1].fd, F_GETFL);
	if (flags < 0 || fcntl(fds[1].fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return ctl_fail_errno(watch->ctl, -errno, NULL,
				      "the event socket can't be made non-blocking");
	while (!status && watch->left) {
		if (poll(fds, 2, watch->more ? 0 : -1) < 0) {
			if (errno == EINTR)
				continue;
			return ctl_fail_errno(watch->ctl, -errno, NULL,
					      "waiting for events failed");
		}
		if (fds[0].revents)
			return CTL_OK;
		if (fds[1].revents || watch->more)
			status = next(watch);
	}
	return status;
}

static int monitor(const struct ctl *ctl, uint64_t count, bool list)
{
	struct watch watch = { .ctl = ctl, .left = count };
	struct kvp_error error = { 0 };
	sigset_t signals;
	int status = CTL_OK;

	ctl_block_signals(&signals);
	watch.signals = signalfd(-1, &signals, SFD_CLOEXEC);
	if (watch.signals < 0)
		return ctl_fail_errno(ctl, -errno, NULL, "signals can't be waited for");
	watch.ctx = ctl_open(ctl, true);
	if (!watch.ctx) {
		close(watch.signals);
		return CTL_FAILED;
	}
	/* First subscribe, then list: what happens in between is seen twice, not never. */
	if (kvp_monitor_open(&watch.monitor, &error)) {
		status = ctl_fail(ctl, &error);
	} else {
		if (list)
			status = print_list(&watch);
		if (!status)
			status = watch_events(&watch);
		kvp_monitor_close(watch.monitor);
	}
	kvp_close(watch.ctx);
	close(watch.signals);
	return status;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, OPT_COUNT },
		{ "list", no_argument, NULL, OPT_LIST },
		CTL_OPTIONS_END
	};
	uint64_t count = UINT64_MAX;	/* as good as without end */
	bool list = false;
	const char *why;
	int c, status;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		switch (c) {
		case OPT_COUNT:
			why = parse_number(optarg, UINT64_MAX, &count);
			if (why)
				return ctl_usage(ctl, "--count %s: %s", optarg, why);
			if (!count)
				return ctl_usage(ctl,
						 "--count 0: no event to wait for; give at least 1");
			break;
		case OPT_LIST:
			list = true;
			break;
		default:
			return ctl->status;
		}
	}
	status = ctl_no_operand(ctl, argc, argv);
	return status ? status : monitor(ctl, count, list);
}

const struct ctl_command ctl_monitor = {
	.name = "monitor",
	.summary = "print events until interrupted",
	.help =
		"usage: kvpoolctl monitor [OPTION]...\n"
		"Print a line for every pool that is created, changed or destroyed, until SIGINT or\n"
		"SIGTERM, and one a second for a creation that takes long. When events were lost it\n"
		"says so, and lists the pools that exist then.\n\n"
		"  --count N    end after N events; progress, lost and list lines don't count\n"
		"  --list       list the pools that exist at the start\n"
		"  --json       an object a line\n"
		"  -h, --help   this text\n",
	.run = run,
};

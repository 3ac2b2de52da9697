// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvpoolctl resolve: what a span names, or what backs a range of a process.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "ctl.h"
#include "format.h"
#include "maps.h"

enum { OPT_PID = OPT_COMMAND };

/* ------------------------------------------------------------------- spans */

/* Why the span is not live in the pool that has its identity; NULL when it is. */
static const char *span_reason(const struct kvp_span *span, const struct kvp_pool_info *pool)
{
	if (pool->state == KVP_STATE_ORPHAN)
		return "the pool is an orphan: its owner is gone, and it can't be opened any more";
	if (pool->state != KVP_STATE_LIVE)
		return "the pool was destroyed, and only devices hold blocks of it";
	if (strcmp(pool->domain, span->domain))
		return "the pool is of another domain than the span says";
	/* Written so that it can't wrap. */
	if (span->offset > pool->length || span->length > pool->length - span->offset)
		return "the span passes the end of the pool";
	return NULL;
}

static int resolve_span(const struct ctl *ctl, const char *text)
{
	struct kvp_error error = { 0 };
	const char *reason = NULL;
	struct kvp_pool_info pool;
	struct kvp_span span;
	struct kvp_ctx *ctx;
	bool known = false;
	int err, status;

	if (kvp_span_parse(text, &span))
		return ctl_usage(ctl, "'%s' is not a span, which is "
				 "kvpool:DOMAIN:ID:GENERATION:OFFSET:LENGTH, the numbers decimal",
				 text);
	ctx = ctl_open(ctl, true);
	if (!ctx)
		return CTL_FAILED;
	err = kvp_pool_find(ctx, span.id, span.generation, &pool, &error);
	kvp_close(ctx);
	if (!err) {
		known = true;
		reason = span_reason(&span, &pool);
	} else if (err == -ENOENT) {
		reason = "no pool has the id";
	} else if (err == -ESTALE) {
		reason = "the pool ended, and another generation has its id";
	} else if (err == -ENODEV) {
		reason = "the pool was destroyed, or its owner is gone";
	} else {
		return ctl_fail(ctl, &error);
	}

	status = reason ? CTL_NOT_LIVE : CTL_OK;
	if (!ctl->json)
		format_span_text(stdout, text, known ? &pool : NULL, reason);
	else if (format_span_json(stdout, text, &span, known ? &pool : NULL, reason))
		status = ctl_fail_errno(ctl, -ENOMEM, NULL, "the answer can't be printed");
	return status;
}

/* ----------------------------------------------- ranges of another process */

static bool same_file(const struct stat *file, const struct maps_segment *segment)
{
	return file->st_ino == segment->inode && major(file->st_dev) == segment->major &&
	       minor(file->st_dev) == segment->minor;
}

/*
 * The mapped file itself, which the kernel gives to those with enough rights;
 * else what the path leads to, if this process sees the same file there.
 */
static int stat_mapped(pid_t pid, const struct maps_segment *segment, struct stat *file,
		       struct statfs *system)
{
	char link[96];

	snprintf(link, sizeof(link), "/proc/%ld/map_files/%" PRIx64 "-%" PRIx64, (long)pid,
		 segment->start, segment->end);
	if (!stat(link, file) && !statfs(link, system))
		return 0;
	if (!stat(segment->path, file) && same_file(file, segment) &&
	    !statfs(segment->path, system))
		return 0;
	return -1;
}

/* The path alone does not tell tmpfs and hugetlbfs from disks, nor a device from a file. */
static void refine_kind(pid_t pid, struct maps_segment *segment)
{
	struct statfs system;
	struct stat file;

	if (segment->path[0] != '/' || segment->kind == KVP_KIND_POOL ||
	    stat_mapped(pid, segment, &file, &system))
		return;
	if (system.f_type == HUGETLBFS_MAGIC)
		segment->kind = KVP_KIND_HUGETLB;
	else if (S_ISCHR(file.st_mode))
		return;		/* the path told: /dev/zero, or a driver's */
	else if (system.f_type == TMPFS_MAGIC)
		segment->kind = KVP_KIND_SHMEM;
	else if (S_ISREG(file.st_mode) && segment->kind == KVP_KIND_DEVICE)
		segment->kind = KVP_KIND_FILE;
}

/*
 * The pool of a node that is there. A node lives at most as long as its pool,
 * so when the mapped inode is that of the node which is there now, the pool is
 * certain; otherwise only the name speaks for it.
 */
static int look_up_node(struct kvp_ctx *ctx, struct backing *backing, struct kvp_error *error)
{
	struct maps_segment *segment = backing->segment;
	struct stat node;
	int err;

	err = kvp_pool_find_name(ctx, segment->name, &backing->pool, error);
	if (err)
		return err;
	if (!stat(segment->path, &node) && S_ISCHR(node.st_mode) && same_file(&node, segment) &&
	    node.st_rdev == makedev(backing->pool.device >> 20, backing->pool.device & 0xfffff))
		segment->match = MAPS_MATCH_NODE;
	return 0;
}

/*
 * The pool of a node that was removed. Its minor number is the id, which may
 * be another pool's by now: only one that is called the same is believed, and
 * said to be matched by name. -ENODATA: the node can't be looked at.
 */
static int look_up_removed(struct kvp_ctx *ctx, pid_t pid, struct backing *backing,
			   struct kvp_error *error)
{
	struct maps_segment *segment = backing->segment;
	struct statfs system;
	struct stat node;
	int err;

	if (stat_mapped(pid, segment, &node, &system) || !S_ISCHR(node.st_mode))
		return -ENODATA;
	err = kvp_pool_find(ctx, minor(node.st_rdev), 0, &backing->pool, error);
	if (err)
		return err;
	if (strcmp(backing->pool.name, segment->name))
		return -ENOENT;
	segment->match = MAPS_MATCH_NAME;
	return 0;
}

/* Fill in what is known of a segment's pool. 0, or the errno that the lookup failed with. */
static int look_up(struct kvp_ctx *ctx, pid_t pid, struct backing *backing,
		   struct kvp_error *error)
{
	const struct maps_segment *segment = backing->segment;
	int err;

	switch (segment->match) {
	case MAPS_MATCH_IDENTITY:
		err = kvp_pool_find(ctx, segment->id, segment->generation, &backing->pool, error);
		break;
	case MAPS_MATCH_NAME:
		err = look_up_node(ctx, backing, error);
		break;
	default:
		err = look_up_removed(ctx, pid, backing, error);
		break;
	}
	switch (err) {
	case 0:
		backing->known = true;
		backing->stale = backing->pool.state == KVP_STATE_DYING;
		return 0;
	case -ENOENT:
	case -ESTALE:
	case -ENODEV:
		backing->stale = true;
		return 0;
	case -ENODATA:
		return 0;
	default:
		return err;
	}
}

/*
 * Ask about every pool segment. What /proc says stands without the module's
 * answer, so that a failure is told once and ends nothing.
 */
static void look_up_all(const struct ctl *ctl, pid_t pid, struct backing *backings, size_t count)
{
	struct kvp_error error = { 0 };
	struct kvp_ctx *ctx = NULL;
	bool told = false;
	size_t i;

	for (i = 0; i < count; i++) {
		if (backings[i].segment->kind != KVP_KIND_POOL)
			continue;
		if (!ctx) {
			ctx = ctl_open(ctl, true);
			if (!ctx)
				return;
		}
		if (look_up(ctx, pid, &backings[i], &error) && !told) {
			ctl_fail(ctl, &error);
			told = true;
		}
	}
	kvp_close(ctx);
}

static int read_maps(const struct ctl *ctl, pid_t pid, uint64_t addr, uint64_t length,
		     struct maps *maps)
{
	char path[32];
	FILE *file;
	int err;

	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	file = fopen(path, "re");
	if (!file && errno == ENOENT)
		return ctl_fail_errno(ctl, -ESRCH, NULL, "no process has pid %ld", (long)pid);
	if (!file)
		return ctl_fail_errno(ctl, -errno,
				      "run it as the user of the process, or as root",
				      "%s can't be opened", path);
	err = maps_read(file, addr, length, maps);
	fclose(file);
	if (err == -EACCES || err == -EPERM)
		return ctl_fail_errno(ctl, err, "run it as the user of the process, or as root",
				      "%s can't be read", path);
	if (err)
		return ctl_fail_errno(ctl, err, NULL, "%s can't be read", path);
	if (!maps->lines) {
		maps_free(maps);
		return ctl_fail_errno(ctl, -ESRCH, NULL,
				      "process %ld has no memory: a kernel thread, or one that ended",
				      (long)pid);
	}
	return CTL_OK;
}

static int resolve_range(const struct ctl *ctl, pid_t pid, uint64_t addr, uint64_t length)
{
	struct backing *backings;
	struct maps maps = { 0 };
	int status;
	size_t i;

	status = read_maps(ctl, pid, addr, length, &maps);
	if (status)
		return status;
	backings = calloc(maps.count, sizeof(*backings));
	if (!backings) {
		maps_free(&maps);
		return ctl_fail_errno(ctl, -ENOMEM, NULL, "no memory for the answer");
	}
	for (i = 0; i < maps.count; i++) {
		backings[i].segment = &maps.segments[i];
		refine_kind(pid, &maps.segments[i]);
	}
	look_up_all(ctl, pid, backings, maps.count);
	if (!ctl->json)
		format_backing_text(stdout, backings, maps.count);
	else if (format_backing_json(stdout, pid, addr, length, backings, maps.count))
		status = ctl_fail_errno(ctl, -ENOMEM, NULL, "the answer can't be printed");
	free(backings);
	maps_free(&maps);
	return status;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, OPT_PID },
		CTL_OPTIONS_END
	};
	uint64_t pid = 0, addr, length;
	const char *why;
	int c, operands;

	while ((c = ctl_getopt(ctl, argc, argv, options)) != -1) {
		if (c != OPT_PID)
			return ctl->status;
		why = parse_number(optarg, INT32_MAX, &pid);
		if (why)
			return ctl_usage(ctl, "--pid %s: %s", optarg, why);
		if (!pid)
			return ctl_usage(ctl, "--pid 0: no process has it");
	}
	operands = argc - optind;
	if (!pid) {
		if (operands != 1)
			return ctl_usage(ctl, "give one span, or --pid with a range");
		return resolve_span(ctl, argv[optind]);
	}
	if (operands != 1 && operands != 2)
		return ctl_usage(ctl, "which range? Give ADDR LENGTH or START-END");
	why = parse_range(argv[optind], operands == 2 ? argv[optind + 1] : NULL, &addr, &length);
	if (why)
		return ctl_usage(ctl, "range '%s%s%s': %s", argv[optind], operands == 2 ? " " : "",
				 operands == 2 ? argv[optind + 1] : "", why);
	return resolve_range(ctl, (pid_t)pid, addr, length);
}

const struct ctl_command ctl_resolve = {
	.name = "resolve",
	.summary = "say what a span, or an address range of a process, is",
	.help =
		"usage: kvpoolctl resolve [--json] SPAN\n"
		"       kvpoolctl resolve [--json] --pid PID ADDR LENGTH\n"
		"       kvpoolctl resolve [--json] --pid PID START-END\n"
		"Say whether a span, kvpool:DOMAIN:ID:GENERATION:OFFSET:LENGTH, is live, and of which\n"
		"pool it is; exit 3 when it is not live. Or say what backs an address range of a\n"
		"process, as far as its /proc/PID/maps tells.\n\n"
		"  --pid PID    the process; takes the right to trace it\n"
		"  --json       an object\n"
		"  -h, --help   this text\n\n"
		"ADDR and LENGTH are decimal, or hexadecimal after 0x; LENGTH may have a suffix K, M,\n"
		"G or T. START and END are hexadecimal, as in /proc/PID/maps.\n",
	.run = run,
};

// SPDX-License-Identifier: GPL-2.0
/* Files, mappings, the end of a session and the module's load, as in failnth.h. */
#include "failnth.h"

#include <sys/syscall.h>
#include <sys/utsname.h>

#include "../../uapi/kvpool.h"

static long opens(const char *path)
{
	long fd = INJECT(open(path, O_RDWR | O_CLOEXEC));

	if (fd >= 0)
		CHECK(!close((int)fd));
	return fd;
}

static long opens_session(void)
{
	return opens(CONTROL);
}

static long opens_node(void)
{
	return opens(NODE);
}

static long opens_by_id(void)
{
	struct kvpool_open open = { .size = sizeof(open), .flags = KVPOOL_OPEN_WRITE, .id = id,
				    .generation = generation };
	long got = INJECT(ioctl(control, KVPOOL_IOC_OPEN, &open));

	if (!got)
		CHECK(!close(open.fd));
	return got;
}

static void open_fails(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_OWNER);
	REPEAT(opens_session, ENOMEM, EFAULT);
	REPEAT(opens_node, ENOMEM, EFAULT);
	REPEAT(opens_by_id, ENOMEM, EFAULT);
}

static int pool_fd;
static char *at;

static void map_shared(void)
{
	at = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, pool_fd, 0);
	CHECK(at != MAP_FAILED);
}

static long maps(void)
{
	long got = INJECT(mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, pool_fd, 0));

	if (got >= 0)
		CHECK(!munmap((void *)got, BLOCK));
	return got;
}

/* A page table that can't be had is asked for again: the access always succeeds. */
static long faults(void)
{
	long got;

	map_shared();
	got = INJECT((*(volatile char *)(at + 4096) = (char)nth, 0));
	EQUAL(*(volatile char *)(at + 4096), (char)nth);
	CHECK(!munmap(at, BLOCK));
	return got;
}

/* The kernel maps the pages itself, and has nobody to try again. */
static long populates(void)
{
	long got;

	map_shared();
	got = INJECT(madvise(at, BLOCK, MADV_POPULATE_WRITE));
	CHECK(!munmap(at, BLOCK));
	return got;
}

static long unmaps_in_the_middle(void)
{
	long got;

	map_shared();
	at[0] = 1;
	got = INJECT(munmap(at + 8192, 4096));
	if (got)
		EQUAL(at[8192], 0);
	EQUAL(at[0], 1);
	CHECK(!munmap(at, BLOCK));
	return got;
}

static void mapping_fails(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_OWNER);
	pool_fd = open_node();
	REPEAT(maps, ENOMEM);
	REPEAT(faults, ENOMEM);
	REPEAT(populates, ENOMEM, EFAULT);
	REPEAT(unmaps_in_the_middle, ENOMEM);
}

static long resolves(void)
{
	struct kvpool_segment segments[4];
	struct kvpool_resolve resolve = { .size = sizeof(resolve), .addr = (uintptr_t)at,
					  .length = BLOCK, .segments = (uintptr_t)segments,
					  .count = 4 };
	long got = INJECT(ioctl(control, KVPOOL_IOC_RESOLVE, &resolve));

	if (!got) {
		EQUAL(resolve.count, 1);
		EQUAL(segments[0].generation, generation);
	}
	return got;
}

static long informs(void)
{
	struct kvpool_info info = { .size = sizeof(info) };
	long got = INJECT(ioctl(pool_fd, KVPOOL_IOC_INFO, &info));

	if (!got)
		EQUAL(info.generation, generation);
	return got;
}

static void resolve_fails(void)
{
	failnth_begin();
	create(KVPOOL_LIFETIME_OWNER);
	pool_fd = open_node();
	map_shared();
	REPEAT(resolves, ENOMEM, EFAULT);
	REPEAT(informs, EFAULT);
}

/* Whoever closes is not told, so nothing may fail: what is open stays, the rest ends. */
static long ends_session(void)
{
	int keep = control;
	long got;

	control = open(CONTROL, O_RDWR | O_CLOEXEC);
	CHECK(control >= 0);
	create(KVPOOL_LIFETIME_OWNER);
	pool_fd = open_node();
	mnl_attr_put_strz(create_message(), KVPOOL_A_POOL_NAME, "other");
	ask();
	got = INJECT(close(control));
	UNTIL(!stats(observer).pools);
	EQUAL(stats(observer).orphans, 1);
	CHECK(access(NODE, F_OK) && access("/dev/kvpool/other", F_OK));
	CHECK(!close(pool_fd));
	UNTIL(!stats(observer).orphans && !stats(observer).dying);
	control = keep;
	return got;
}

static void closing_does_not_fail(void)
{
	failnth_begin();
	REPEAT(ends_session, 0);
}

/* ------------------------------------------------------------------- module */

static void check_absent(void)
{
	CHECK(access("/dev/kvpool/control", F_OK) && access("/dev/control", F_OK) &&
	      access("/sys/class/kvpool", F_OK) && access("/sys/module/kvpool", F_OK));
	EQUAL(lines_with("/proc/devices", "kvpool") + lines_with("/proc/modules", "kvpool ") +
	      lines_with("/proc/filesystems", "kvpool"), 0);
}

static int module_fd;

static long load(void)
{
	return INJECT(syscall(SYS_finit_module, module_fd, "", 0));
}

static void unload(void)
{
	EQUAL(syscall(SYS_delete_module, "kvpool", O_NONBLOCK), 0);
}

/*
 * Loading has hundreds of places of its own before init begins, which are none of the
 * module's. So many come before init's first call fails, that of its thread.
 */
static unsigned int places_before_init(void)
{
	unsigned int stocks = 1;

	EQUAL(shell("insmod ./fail_call.ko symbol=kthread_create_on_node result=-12 comm=%.15s",
		    program_invocation_short_name), 0);
	EQUAL(load(), -ENOMEM);
	EQUAL(shell("rmmod fail_call"), 0);
	check_absent();
	return places - stocks;
}

static void load_fails(void)
{
	struct utsname name;
	char path[200];
	unsigned int all, before;
	long got;

	CHECK(!uname(&name));
	snprintf(path, sizeof(path), "/lib/modules/%s/extra/kvpool.ko", name.release);
	module_fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(module_fd >= 0);
	failnth_begin();
	kvp_close(observer);
	CHECK(!close(control));
	raw_close(raw);
	unload();

	nth = UINT32_MAX / 2;
	EQUAL(load(), 0);
	unload();
	all = places;
	before = places_before_init();
	/* A load has about 500, of which 190 are in init. */
	CHECK(all > before + 50);
	/* How many there are differs a little from load to load. */
	for (nth = before;; nth++) {
		got = load();
		if (!injected)
			break;
		if (got < 0) {
			EQUAL(got, -ENOMEM);
			check_absent();
		} else {
			CHECK(!access(CONTROL, F_OK));
			unload();
		}
	}
	printf("# load: %u places, of which %u in init\n", places, places - before);
	EQUAL(got, 0);
	unload();
}

int main(void)
{
	if (!failnth_prepare()) {
		printf("not ok - test_failnth_files: this kernel can't inject faults\n");
		return 1;
	}
	RUN(open_fails);
	RUN(mapping_fails);
	RUN(resolve_fails);
	RUN(closing_does_not_fail);
	RUN(load_fails);
	/* For whoever comes next, also when it failed. */
	if (access(CONTROL, F_OK))
		shell("modprobe kvpool && chgrp kvpool " CONTROL);
	return cases_end();
}

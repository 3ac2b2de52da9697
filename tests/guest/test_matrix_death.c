// SPDX-License-Identifier: GPL-2.0
/*
 * The matrix of an inference server's registrations: it is killed. Fault 5: after
 * every record of its journal, and in the middle of each, and recovery likewise.
 */
#include "matrix.h"

#include <linux/magic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "journal.h"

static struct store store;
static struct rank rank;

/* ---------------------------------------------------------- death by the record */

static long records;	/* written by this process */
static long deadly;	/* the record with which it dies; 0: none */
static bool torn;	/* in the middle of it */
static bool by_write;	/* the directory is not taken for memory */

/*
 * This program has the library in it, with these functions between: the first
 * record, and all of them where files are not memory, are written by pwrite();
 * the others are stored in kvp_log_append().
 */
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	ssize_t written;

	if (++records == deadly && torn)
		size /= 2;
	written = syscall(SYS_pwrite64, fd, bytes, size, offset);
	if (records == deadly)
		kill(getpid(), SIGKILL);
	return written;
}

int fstatfs(int fd, struct statfs *fs)
{
	const long ret = syscall(SYS_fstatfs, fd, fs);

	if (by_write && !ret)
		fs->f_type = EXT4_SUPER_MAGIC;
	return (int)ret;
}

int __real_kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
			  enum kvp_journal_type type);
int __wrap_kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
			  enum kvp_journal_type type);

/* Half a record that is stored: its beginning, stored last, is what was there before. */
int __wrap_kvp_log_append(struct kvp_log *log, struct kvp_journal_head *record,
			  enum kvp_journal_type type)
{
	const uint64_t at = log->offset;
	char before[8];
	int err;

	if (!log->map)
		return __real_kvp_log_append(log, record, type);
	memcpy(before, (char *)log->map + at, sizeof(before));
	err = __real_kvp_log_append(log, record, type);
	if (++records == deadly) {
		char *start = (char *)log->map + at;
		const uint64_t size = log->offset - at;

		if (torn) {
			memcpy(start, before, sizeof(before));
			memset(start + size / 2, 0, size - size / 2);
		}
		kill(getpid(), SIGKILL);
	}
	return err;
}

/* Run `run` in a process that dies with record `n`. False: it ended before. */
static bool dies(void (*run)(void), long n, bool in_the_middle)
{
	const pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		records = 0;
		deadly = n;
		torn = in_the_middle;
		run();
		_exit(0);
	}
	status = wait_child(pid);
	if (status != 128 + SIGKILL)
		EQUAL(status, 0);
	return status;
}

/* ----------------------------------------------------------------------- lives */

#define RECORDS_OF_REGISTERING (3 + 2 * PAGES + 1)	/* begin, pool, device, entries, commit */
#define RECORDS_OF_UNDOING (2 * PAGES + 1)		/* entries, end */

static const char *object = STORE_OBJECT;
static enum kvp_lifetime lifetime;
static int draft_fails;		/* what registering the draft returns */
static bool with_devices;

/* A server from its start to its end. */
static void live(void)
{
	struct ibv_pd *pds[DEVICES];

	rank_open(&rank, 0, lifetime);
	rank_use(&rank, store_registrar(&store, object, 0));
	if (with_devices) {
		open_devices(pds);
		rank_use(&rank, verbs_registrar(pds, RDMA_ACCESS));
	}
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), draft_fails);
	EQUAL(part_unregister(&rank, &rank.draft), 0);
	EQUAL(part_unregister(&rank, &rank.target), 0);
	rank_close(&rank);
}

/* A server that registers, and ends without a word. */
static void leave(void)
{
	rank_open(&rank, 0, lifetime);
	rank_use(&rank, store_registrar(&store, object, 0));
	EQUAL(part_register(&rank, &rank.target), 0);
	EQUAL(part_register(&rank, &rank.draft), 0);
}

/* Pools that persist and are left, as they are expected when it died with record n. */
static const char *left(long n)
{
	const long target_pool = 3, target_commit = 1 + RECORDS_OF_REGISTERING;
	const long draft_pool = target_commit + 2;
	const long draft_commit = target_commit + RECORDS_OF_REGISTERING;
	/* A record that is cut says nothing. */
	const long said = torn ? n - 1 : n;
	const bool target = said < target_pool || said >= target_commit;
	const bool draft = said < draft_pool || said >= draft_commit;

	if (lifetime == KVP_LIFETIME_OWNER)
		return "";
	return target && draft ? "draft0 target0" : target ? "target0" : draft ? "draft0" : "";
}

static const char *pools_left(void)
{
	static char text[200];
	struct kvp_ctx *ctx = open_ctx();
	static const char *const names[] = { "draft0", "target0" };

	text[0] = 0;
	for (int i = 0; i < 2; i++) {
		struct kvp_pool_info info;

		if (kvp_pool_find_name(ctx, names[i], &info, NULL))
			continue;
		EQUAL(info.owned, 0);
		EQUAL(info.pinned_blocks, 0);
		sprintf(text + strlen(text), "%s%s", text[0] ? " " : "", names[i]);
		RETURNS(0, kvp_pool_destroy(ctx, info.id, info.generation, 0, &error));
	}
	kvp_close(ctx);
	return text;
}

/* The same end, whatever was the last record. */
static void recovers(struct kvp_registrar *registrar, long n)
{
	struct kvp_recovery_report report;

	last_error = (struct kvp_error){ 0 };
	report = recover(registrar);
	if (report.first.err)
		FAIL("after record %ld: %s", n, report.first.message);
	SAME(store_holds(&store), "");
	report = recover(registrar);
	SAME(recovered(&report), "");
	if (strcmp(pools_left(), left(n)))
		FAIL("after record %ld other pools are left than \"%s\"", n, left(n));
	STATE(NULL, "", &store, "", 0);
}

/* False: that was not before its end. */
static bool killed_after(long n, bool in_the_middle)
{
	store_fault(&store, (struct store_fault){
		.op = STORE_REGISTER, .at = 2 * PAGES - 1, .code = draft_fails,
		.how = draft_fails ? STORE_RETURNS : STORE_WORKS,
	});
	torn = in_the_middle;
	return dies(live, n, in_the_middle);
}

/*
 * Kill a server after each of `count` records, which are all of its life. On the debug
 * kernel, which is slow, after each third: which it is is the library's matter.
 */
static void each_record(long count, bool in_the_middle)
{
	const long step = debug_kernel() ? 3 : 1;
	struct kvp_registrar *registrar;

	store_start(&store);
	registrar = store_registrar(&store, STORE_OBJECT, 0);
	for (long n = 1; n <= count; n += step) {
		CHECK(killed_after(n, in_the_middle));
		recovers(registrar, n);
	}
	CHECK(!killed_after(count + 1, in_the_middle));
	STATE(NULL, "", &store, "", 0);
	if (with_devices)
		EQUAL(mr_count(), 0);
	kvp_registrar_free(registrar);
	store_end(&store);
}

#define WHOLE_LIFE (1 + 2 * RECORDS_OF_REGISTERING + 2 * RECORDS_OF_UNDOING)

static void fault_5_after_each_record(void)
{
	each_record(WHOLE_LIFE, false);
}

static void fault_5_within_each_record(void)
{
	object = STORE_BATCH;
	each_record(WHOLE_LIFE, true);
}

static void fault_5_by_write(void)
{
	by_write = true;
	each_record(WHOLE_LIFE, false);
}

static void fault_5_within_by_write(void)
{
	by_write = true;
	each_record(WHOLE_LIFE, true);
}

static void fault_5_persistent(void)
{
	lifetime = KVP_LIFETIME_PERSISTENT;
	each_record(WHOLE_LIFE, false);
}

static void fault_5_persistent_within(void)
{
	lifetime = KVP_LIFETIME_PERSISTENT;
	object = STORE_BATCH;
	each_record(WHOLE_LIFE, true);
}

/* While a draft that failed is rolled back: the last is neither committed nor undone. */
static void fault_5_in_rollback(void)
{
	draft_fails = -ENOSPC;
	each_record(WHOLE_LIFE - 1 - 2, false);
}

/* The store and two devices, whose regions end with the process. */
static void fault_5_with_devices(void)
{
	const long each = 2 * PAGES * (1 + DEVICES);

	with_devices = true;
	/* The store is a device too. */
	each_record(1 + 2 * (2 + 1 + DEVICES + each + 1) + 2 * (each + 1), false);
}

/* ------------------------------------------------------------------- recoveries */

static void recover_all(void)
{
	struct kvp_registrar *registrar = store_registrar(&store, STORE_OBJECT, 0);

	recover(registrar);
	kvp_registrar_free(registrar);
}

static void fault_5_recovery_dies(void)
{
	struct kvp_registrar *registrar;
	long n;

	store_start(&store);
	registrar = store_registrar(&store, STORE_OBJECT, 0);
	for (int in_the_middle = 0; in_the_middle < 2; in_the_middle++) {
		for (n = 1; ; n++) {
			CHECK(!dies(leave, 0, false));
			SAME(store_holds(&store), "target0+0 target0+1 target0+2 "
			     "draft0+0 draft0+1 draft0+2");
			if (!dies(recover_all, n, in_the_middle))
				break;
			recovers(registrar, 0);
		}
		/* Two for each entry, all of which were the last one. */
		EQUAL(n, 1 + 2 * 2 * PAGES);
		recovers(registrar, 0);
	}
	kvp_registrar_free(registrar);
	store_end(&store);
}

/* ----------------------------------------------------------- kvpoolctl recover */

#define OUTPUT "/tmp/recovered"
#define SHELL(want, format, ...) do { \
	const int got_ = shell(format " >" OUTPUT " 2>&1", ##__VA_ARGS__); \
	if (got_ != want) { shell("cat " OUTPUT " >&2"); FAIL(format " ended with %d", ##__VA_ARGS__, got_); } \
} while (0)
#define PRINTED(text) \
	do { if (shell("grep -qF -- '%s' " OUTPUT, text)) { \
		shell("cat " OUTPUT " >&2"); FAIL("kvpoolctl does not print '%s'", text); } } while (0)

/* As an operator does it, with the store's shared object. */
static void kvpoolctl_recover(void)
{
	store_start(&store);
	lifetime = KVP_LIFETIME_PERSISTENT;
	CHECK(!dies(leave, 0, false));
	SHELL(0, "kvpoolctl recover --dry-run --store " STORE_OBJECT " --store-config %s",
	      store.path);
	PRINTED("entry-undone");
	STATE(NULL, "draft0:COMMITTED target0:COMMITTED", &store, "target0+0 target0+1 target0+2 "
	      "draft0+0 draft0+1 draft0+2", 1);

	/* Without the store what it holds is kept, and so is the journal. */
	SHELL(1, "kvpoolctl --json recover");
	PRINTED("\"entry-quarantined\":6");
	PRINTED("\"kept\":1");
	SHELL(1, "kvpoolctl recover");
	PRINTED("no registrar called " STORE_NAME " was given");
	STATE(NULL, "draft0:COMMITTED target0:COMMITTED", &store, "target0+0 target0+1 target0+2 "
	      "draft0+0 draft0+1 draft0+2", 1);

	store_calls(&store);
	SHELL(0, "kvpoolctl --json recover --time-limit 20 --store " STORE_OBJECT
	      " --store-config %s", store.path);
	PRINTED("\"entry-undone\":6");
	PRINTED("\"pool-left\":2");
	PRINTED("\"removed\":1");
	SAME(store_calls(&store), "-draft0+2 -draft0+1 -draft0+0 -target0+2 -target0+1 -target0+0");
	STATE(NULL, "draft0:COMMITTED target0:COMMITTED", &store, "", 0);
	SHELL(0, "kvpoolctl recover");
	SHELL(0, "kvpoolctl destroy draft0");
	SHELL(0, "kvpoolctl destroy target0");

	/* Pools that were not committed end with the session that made them. */
	CHECK(dies(live, RECORDS_OF_REGISTERING, false));
	STATE(NULL, "draft0:ALLOCATED target0:REGISTERING", &store,
	      "target0+0 target0+1 target0+2", 1);
	SHELL(0, "kvpoolctl --json recover --store " STORE_BATCH " --store-config %s", store.path);
	PRINTED("\"entry-undone\":3");
	PRINTED("\"pool-destroyed\":1");
	STATE(NULL, "draft0:ALLOCATED", &store, "", 0);
	SHELL(0, "kvpoolctl destroy draft0");

	/* A store that isn't there, and one that isn't a store. */
	store_end(&store);
	SHELL(1, "kvpoolctl recover --store " STORE_OBJECT " --store-config %s", store.path);
	PRINTED("open the store: Connection refused");
	SHELL(1, "kvpoolctl recover --store /usr/lib/libkvpool.so.0");
	STATE(NULL, "", NULL, "", 0);
}

int main(void)
{
	ROW(fault_5_after_each_record);
	ROW(fault_5_within_each_record);
	ROW(fault_5_by_write);
	ROW(fault_5_within_by_write);
	ROW(fault_5_persistent);
	ROW(fault_5_persistent_within);
	ROW(fault_5_in_rollback);
	ROW(fault_5_with_devices);
	ROW(fault_5_recovery_dies);
	ROW(kvpoolctl_recover);
	return cases_end();
}

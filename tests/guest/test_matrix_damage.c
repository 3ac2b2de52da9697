// SPDX-License-Identifier: GPL-2.0
/*
 * The matrix of an inference server's registrations: its journal is not as it was
 * written. Fault 6: cut at every byte, every byte flipped, of another boot, of a
 * newer format. Refused or recovered, and never more is unregistered than it says.
 */
#include "matrix.h"

#include <endian.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#define XXH_FORCE_MEMORY_ACCESS 0
#include <xxhash.h>

/* docs/journal.md */
enum { AT_CHECKSUM = 4, AT_VERSION = 8, AT_BOOT_ID = 24 };
enum { FILE_SIZE = 104, BEGIN_SIZE = 104, POOL_SIZE = 48, DEVICE_SIZE = 168, INTENT_SIZE = 88,
       OUTCOME_SIZE = 48, MARK_SIZE = 32, LARGEST = DEVICE_SIZE };

/* Where the first intent begins. */
#define INTENTS (FILE_SIZE + BEGIN_SIZE + POOL_SIZE + DEVICE_SIZE)

#define INTENT_END(n) (INTENTS + (n) * (INTENT_SIZE + OUTCOME_SIZE) + INTENT_SIZE)
#define ALL_SIZE (INTENT_END(PAGES - 1) + OUTCOME_SIZE + MARK_SIZE)
/* The space that a file has, and as much as is put behind it here. */
#define FILE_SPACE (256 << 10)
#define SPACE 4096

static struct store store;
static struct rank rank;	/* lives, and has its target registered */
static struct kvp_registrar *registrar;

/* The journal of the process that died, and what it registered. */
static char path[400];
static unsigned char journal[ALL_SIZE];
static struct kvp_span spans[PAGES];
static uint64_t cookies[PAGES];

#define BYSTANDER "target0+0 target0+1 target0+2"
#define POOLS "draft0:ALLOCATED target0:COMMITTED"

/*
 * Registers the draft of the rank, which is another process's pool, so that it
 * outlives this one.
 */
static void register_and_die(void *arg)
{
	struct kvp_ctx *ctx = open_ctx();
	struct kvp_registration *registration;
	struct kvp_buffer buffers[PAGES] = { { 0 } };
	struct kvp_pool *pool;
	void *addr;

	(void)arg;
	registrar = store_registrar(&store, STORE_OBJECT, 0);
	RETURNS(0, kvp_pool_open_name(ctx, "draft0", KVP_ACCESS_WRITE, &pool, &error));
	addr = map_pool(pool);
	for (uint32_t i = 0; i < PAGES; i++) {
		buffers[i].addr = (char *)addr + i * BLOCK;
		buffers[i].length = BLOCK;
	}
	registration = register_list(ctx, "kv", list_of(buffers, PAGES), registrar);
	EQUAL(kvp_registration_count(registration), PAGES);
}

static void load(void)
{
	struct kvp_journal *read = NULL;
	struct stat st;
	int fd;

	RETURNS(0, kvp_journal_read(path, &read, &error));
	EQUAL(kvp_journal_info(read)->condition, KVP_JOURNAL_WHOLE);
	EQUAL(kvp_journal_info(read)->open_entries, PAGES);
	for (uint32_t i = 0; i < PAGES; i++) {
		const struct kvp_journal_entry *entry = kvp_journal_entry(read, i);

		spans[i] = entry->chunk.span;
		SAME(spans[i].domain, "kv");
		cookies[i] = entry->cookie;
	}
	kvp_journal_free(read);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st));
	EQUAL(pread(fd, journal, sizeof(journal), 0), sizeof(journal));
	/* Behind it is space, of zeros, for what would undo it. */
	EQUAL(st.st_size, FILE_SPACE);
	close(fd);
}

static void save(const void *bytes, size_t size)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	EQUAL(write(fd, bytes, size), size);
	close(fd);
}

static bool is_saved(const void *bytes, size_t size)
{
	unsigned char now[ALL_SIZE + SPACE];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	CHECK(fd >= 0);
	got = read(fd, now, sizeof(now));
	close(fd);
	return got == (ssize_t)size && !memcmp(now, bytes, size);
}

static void set_up(void)
{
	store_start(&store);
	rank_open(&rank, 0, KVP_LIFETIME_OWNER);
	EQUAL(wait_child(child(register_and_die, NULL)), 0);
	strcpy(path, journal_path());
	load();
	registrar = store_registrar(&store, STORE_OBJECT, 0);
	rank_use(&rank, registrar);
	EQUAL(part_register(&rank, &rank.target), 0);
	STATE(rank.ctx, POOLS, &store, "draft0+0 draft0+1 draft0+2 " BYSTANDER, 2);
	store_calls(&store);
}

/* As it was written it is recovered, and the rank goes on all the while. */
static void tear_down(void)
{
	struct kvp_recovery_report report;

	save(journal, sizeof(journal));
	report = recover_by(rank.ctx, registrar);
	SAME(recovered(&report), "alive=1 removed=1 entry-undone=3 pool-left=1");
	STATE(rank.ctx, POOLS, &store, BYSTANDER, 1);
	CHECK(part_is_filled(&rank.target) && part_is_filled(&rank.draft));
	rank_close(&rank);
	STATE(NULL, "", &store, "", 0);
	store_end(&store);
}

/*
 * From byte to byte. What a byte changes is the library's work, not the kernel's: on
 * one that looks for its own faults each seventh will do, which is at another place
 * in each record.
 */
static size_t step(void)
{
	return debug_kernel() ? 7 : 1;
}

static int held_count(void)
{
	int count = 0;

	for (const char *at = store_holds(&store); *at; at++)
		count += *at == '+';
	return count;
}

/* How many intents are whole in so many bytes. */
static uint32_t told_by(size_t size)
{
	uint32_t told = 0;

	while (told < PAGES && size >= (size_t)INTENT_END(told))
		told++;
	return told;
}

/* The first `told` entries were unregistered, the last first, and nothing else. */
static void undone(uint32_t told)
{
	char calls[200] = "";

	for (uint32_t i = told; i--;)
		sprintf(calls + strlen(calls), "%s-draft0+%" PRIu32, calls[0] ? " " : "", i);
	SAME(store_calls(&store), calls);
	for (uint32_t i = 0; i < told; i++)
		store_hold(&store, &spans[i], cookies[i]);
	store_calls(&store);
	if (held_count() != 2 * PAGES || !strstr(store_holds(&store), BYSTANDER))
		FAIL("the store holds %s", store_holds(&store));
}

static void cut(size_t size)
{
	struct kvp_recovery_report report;
	char want[100];

	save(journal, size);
	report = recover_by(rank.ctx, registrar);
	if (size < FILE_SIZE) {
		SAME(recovered(&report), "alive=1 refused=1");
		EQUAL(report.first.err, -EBADMSG);
		CHECK(is_saved(journal, size));
		undone(0);
		return;
	}
	snprintf(want, sizeof(want), "alive=1 removed=1");
	if (told_by(size))
		sprintf(want + strlen(want), " entry-undone=%" PRIu32, told_by(size));
	if (size >= FILE_SIZE + BEGIN_SIZE + POOL_SIZE)
		strcat(want, " pool-left=1");
	SAME(recovered(&report), want);
	CHECK(access(path, F_OK) && errno == ENOENT);
	undone(told_by(size));
}

static void fault_6_cut_at_every_byte(void)
{
	set_up();
	for (size_t size = 0; size <= ALL_SIZE; size += step())
		cut(size);
	tear_down();
}

/*
 * Zeros from every byte on: between records it is space that was reserved; within
 * one, which is stored with its beginning last, it is damage. A record may end in
 * zeros of its own.
 */
static void fault_6_zeros_from_every_byte(void)
{
	unsigned char bytes[ALL_SIZE + SPACE];
	uint32_t whole = 0;

	set_up();
	for (size_t size = 0; size <= ALL_SIZE; size += step()) {
		struct kvp_recovery_report report;

		memcpy(bytes, journal, size);
		memset(bytes + size, 0, sizeof(bytes) - size);
		save(bytes, sizeof(bytes));
		report = recover_by(rank.ctx, registrar);
		EQUAL(report.count[KVP_RECOVERY_FILE_REMOVED] +
		      report.count[KVP_RECOVERY_FILE_REFUSED], 1);
		if (report.count[KVP_RECOVERY_FILE_REFUSED]) {
			CHECK(is_saved(bytes, sizeof(bytes)));
			undone(0);
			continue;
		}
		whole++;
		/* What ends in zeros of its own is whole before its last byte. */
		undone(report.count[KVP_RECOVERY_ENTRY_UNDONE]);
		CHECK(report.count[KVP_RECOVERY_ENTRY_UNDONE] >= told_by(size));
		CHECK(report.count[KVP_RECOVERY_ENTRY_UNDONE] <= told_by(size + LARGEST - 1));
	}
	/* After each of its records, at least: file, begin, pool, device, two an entry, commit. */
	CHECK(whole >= (5 + 2 * PAGES) / step());
	tear_down();
}

/* No byte may be another: the file is refused, stays, and nothing is asked of the store. */
static void refused(const unsigned char *bytes, size_t size, size_t at)
{
	struct kvp_recovery_report report;

	save(bytes, size);
	report = recover_by(rank.ctx, registrar);
	if (strcmp(recovered(&report), "alive=1 refused=1"))
		FAIL("byte %zu: %s", at, recovered(&report));
	CHECK(is_saved(bytes, size));
}

static void fault_6_every_byte_flipped(void)
{
	unsigned char bytes[ALL_SIZE + SPACE] = { 0 };

	set_up();
	memcpy(bytes, journal, sizeof(journal));
	for (size_t at = 0; at < sizeof(journal); at += step()) {
		/* All bits, or one of them; with space behind the records, or without. */
		bytes[at] ^= at % 2 ? 0xff : (unsigned char)(1U << (at / 2 % 8));
		refused(bytes, at / 4 % 2 ? sizeof(journal) : sizeof(bytes), at);
		bytes[at] = journal[at];
	}
	SAME(store_calls(&store), "");
	STATE(rank.ctx, POOLS, &store, "draft0+0 draft0+1 draft0+2 " BYSTANDER, 2);
	tear_down();
}

/* Give a record its checksum anew. */
static void seal(unsigned char *record, size_t size)
{
	const uint32_t checksum = htole32((uint32_t)XXH3_64bits(record + AT_VERSION,
								size - AT_VERSION));

	memcpy(record + AT_CHECKSUM, &checksum, sizeof(checksum));
}

/* What it registered has ended with the machine's boot, and so has the store. */
static void fault_6_of_another_boot(void)
{
	struct kvp_recovery_report report;
	unsigned char bytes[ALL_SIZE];

	set_up();
	memcpy(bytes, journal, sizeof(bytes));
	seal(bytes, FILE_SIZE);
	CHECK(!memcmp(bytes, journal, sizeof(bytes)));
	bytes[AT_BOOT_ID + 5] ^= 1;
	seal(bytes, FILE_SIZE);
	save(bytes, sizeof(bytes));
	report = recover_by(rank.ctx, registrar);
	SAME(recovered(&report), "alive=1 removed=1 entry-gone=3 pool-gone=1");
	SAME(store_calls(&store), "");
	STATE(rank.ctx, POOLS, &store, "draft0+0 draft0+1 draft0+2 " BYSTANDER, 1);
	tear_down();
}

static void fault_6_of_a_newer_format(void)
{
	unsigned char bytes[ALL_SIZE];

	set_up();
	/* From its first record on, or from one in the middle. */
	for (int whole = 1; whole >= 0; whole--) {
		const size_t at = whole ? 0 : INTENTS;

		memcpy(bytes, journal, sizeof(bytes));
		bytes[at + AT_VERSION] = 2;
		seal(bytes + at, whole ? FILE_SIZE : INTENT_SIZE);
		refused(bytes, sizeof(bytes), at);
	}
	SAME(store_calls(&store), "");
	STATE(rank.ctx, POOLS, &store, "draft0+0 draft0+1 draft0+2 " BYSTANDER, 2);
	tear_down();
}

/* Its process and this one are alive: nobody ends what they have. */
static void fault_6_of_a_running_process(void)
{
	struct kvp_recovery_report report;

	set_up();
	unlink(path);
	report = recover_by(rank.ctx, registrar);
	SAME(recovered(&report), "alive=1");
	SAME(store_calls(&store), "");
	tear_down();
}

int main(void)
{
	ROW(fault_6_cut_at_every_byte);
	ROW(fault_6_zeros_from_every_byte);
	ROW(fault_6_every_byte_flipped);
	ROW(fault_6_of_another_boot);
	ROW(fault_6_of_a_newer_format);
	ROW(fault_6_of_a_running_process);
	return cases_end();
}

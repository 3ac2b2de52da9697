// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reader: what it makes of whole journals, and of every way to spoil one. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_journal.h"
#include "fake_registrar.h"

#define BUFFERS 2

static char *sample;
static size_t sample_size;

/*
 * A journal with everything in it: a transaction that is refused, one that is in
 * force, and one of which an entry can't be undone.
 */
static int make_sample(void **state)
{
	struct kvp_registration *refused, *kept, *stuck;
	struct kvp_buffer buffers[BUFFERS] = { { 0 } };
	struct fake_registrar fake = { 0 };
	struct kvp_registrar *registrar;
	struct kvp_list *list;
	uint32_t i;

	if (fake_world_setup(state))
		return -1;
	fake.name = "store";
	registrar = fake_registrar_new(&fake, 1, 0);
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < BUFFERS; i++) {
		buffers[i].addr = (void *)(uintptr_t)(FAKE_BASE + i * 4 * MIB);
		buffers[i].length = 2 * MIB;
	}
	list = fake_world_list(buffers, BUFFERS);
	assert_int_equal(kvp_log_init(&fake_world_ctx()->log, fake_journal_dir(), NULL), 0);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &kept,
				      NULL), 0);
	fake.fail_register = fake.register_calls + 2;
	fake.register_ret = 600;
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &refused,
				      NULL), -EREMOTEIO);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &stuck,
				      NULL), 0);
	fake.fail_unregister = fake.unregister_calls + 1;
	fake.unregister_ret = -EBUSY;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &stuck, NULL), -EBUSY);
	sample = fake_journal_load(fake_journal_path(), &sample_size);
	/* Its process goes on, and ends them. */
	fake.fail_unregister = 0;
	assert_int_equal(kvp_unregister(fake_world_ctx(), &stuck, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &kept, NULL), 0);
	kvp_log_free(&fake_world_ctx()->log);
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	fake_journal_remove();
	return fake_world_teardown(state);
}

static int free_sample(void **state)
{
	(void)state;
	free(sample);
	return 0;
}

/* A copy of its own, so that reading past its end is noticed. */
static struct kvp_journal *parse(const char *bytes, size_t size)
{
	struct kvp_journal *journal = NULL;
	char *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	assert_int_equal(kvp_journal_parse(copy, size, &journal), 0);
	free(copy);
	return journal;
}

static void whole(void **state)
{
	struct kvp_journal *journal = parse(sample, sample_size);
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	const struct kvp_journal_entry *entry;

	(void)state;
	assert_int_equal(info->condition, KVP_JOURNAL_WHOLE);
	assert_string_equal(info->reason, "");
	assert_int_equal(info->offset, sample_size);
	assert_int_equal(info->pid, getpid());
	assert_int_equal(info->transactions, 3);
	assert_int_equal(info->open_transactions, 2);
	assert_int_equal(info->entries, 6);
	assert_int_equal(info->open_entries, 3);
	assert_int_equal(info->pools, 3);
	assert_int_equal(info->devices, 3);
	assert_int_equal(kvp_journal_record(journal, 0)->type, KVP_JOURNAL_FILE);
	assert_null(kvp_journal_record(journal, info->records));
	assert_null(kvp_journal_pool(journal, 3));
	assert_null(kvp_journal_device(journal, 3));
	assert_null(kvp_journal_transaction(journal, 3));
	assert_null(kvp_journal_entry(journal, 6));

	assert_true(kvp_journal_transaction(journal, 0)->committed);
	assert_false(kvp_journal_transaction(journal, 0)->ended);
	assert_string_equal(kvp_journal_transaction(journal, 0)->domain, "kv");
	assert_false(kvp_journal_transaction(journal, 1)->committed);
	assert_true(kvp_journal_transaction(journal, 1)->ended);
	assert_int_equal(kvp_journal_pool(journal, 0)->generation, 101);
	assert_true(kvp_journal_pool(journal, 0)->committed);
	assert_false(kvp_journal_pool(journal, 1)->committed);
	assert_int_equal(kvp_journal_device(journal, 1)->transaction, 2);
	assert_int_equal(kvp_journal_device(journal, 1)->device, 0);
	assert_string_equal(kvp_journal_device(journal, 1)->registrar, "store");
	assert_string_equal(kvp_journal_device(journal, 1)->name, "store0");
	assert_true(kvp_journal_device(journal, 1)->external);

	entry = kvp_journal_entry(journal, 1);
	assert_int_equal(entry->state, KVP_JOURNAL_ENTRY_REGISTERED);
	assert_true(entry->open && entry->external);
	assert_string_equal(entry->registrar, "store");
	assert_string_equal(entry->device_name, "store0");
	assert_string_equal(entry->chunk.span.domain, "kv");
	assert_int_equal(entry->chunk.span.offset, 4 * MIB);
	assert_int_equal(entry->chunk.span.length, 2 * MIB);
	assert_int_equal(entry->cookie, FAKE_BASE + 4 * MIB);
	assert_int_equal(kvp_journal_entry(journal, 2)->state, KVP_JOURNAL_ENTRY_UNDONE);
	assert_int_equal(kvp_journal_entry(journal, 3)->state, KVP_JOURNAL_ENTRY_REFUSED);
	assert_int_equal(kvp_journal_entry(journal, 3)->code, 600);
	assert_int_equal(kvp_journal_entry(journal, 4)->state, KVP_JOURNAL_ENTRY_UNDONE);
	assert_int_equal(kvp_journal_entry(journal, 5)->state, KVP_JOURNAL_ENTRY_QUARANTINED);
	assert_int_equal(kvp_journal_entry(journal, 5)->code, -EBUSY);
	kvp_journal_free(journal);
}

static void cut_at_every_byte(void **state)
{
	uint32_t border = 0;
	size_t size;

	(void)state;
	for (size = 0; size <= sample_size; size++) {
		struct kvp_journal *journal = parse(sample, size);
		const struct kvp_journal_info *info = kvp_journal_info(journal);

		if (info->condition == KVP_JOURNAL_WHOLE) {
			border++;
			assert_int_equal(info->offset, size);
			assert_int_equal(info->records, border);
		} else {
			assert_int_equal(info->condition, KVP_JOURNAL_TORN);
			assert_true(info->reason[0]);
			assert_int_equal(info->records, border);
			assert_true(info->offset < size || !size);
		}
		kvp_journal_free(journal);
	}
	assert_true(border > 20);
}

/* No bit may change what the journal says: it is refused from there on. */
static void every_byte_flipped(void **state)
{
	unsigned int pattern;
	size_t at;

	(void)state;
	for (at = 0; at < sample_size; at++) {
		for (pattern = 0; pattern < 9; pattern++) {
			const char flip = (char)(pattern < 8 ? 1U << pattern : 0xffU);
			struct kvp_journal *journal;
			const struct kvp_journal_info *info;

			sample[at] ^= flip;
			journal = parse(sample, sample_size);
			sample[at] ^= flip;
			info = kvp_journal_info(journal);
			if (at < 4)
				assert_int_equal(info->condition, KVP_JOURNAL_FOREIGN);
			else
				assert_int_equal(info->condition, KVP_JOURNAL_DAMAGED);
			assert_true(info->reason[0]);
			/* All before the byte is still told, and nothing behind its record. */
			assert_true(info->offset <= at);
			kvp_journal_free(journal);
		}
	}
}

/*
 * The last record without its beginning is what a death leaves; one with others
 * behind it is not, since none is written behind a half.
 */
static void beginning_is_missing(void **state)
{
	const struct kvp_journal_record *record;
	struct kvp_journal *whole_one = parse(sample, sample_size);
	const uint32_t last = kvp_journal_info(whole_one)->records - 1;
	size_t end = sample_size;
	uint32_t n;

	(void)state;
	/* Zeros of the last record can't be told from space behind it. */
	while (!sample[end - 1])
		end--;
	for (n = 1; n <= last; n++) {
		struct kvp_journal *journal;
		const struct kvp_journal_info *info;
		char beginning[8];

		record = kvp_journal_record(whole_one, n);
		memcpy(beginning, sample + record->offset, sizeof(beginning));
		memset(sample + record->offset, 0, sizeof(beginning));
		journal = parse(sample, sample_size);
		memcpy(sample + record->offset, beginning, sizeof(beginning));
		info = kvp_journal_info(journal);
		assert_int_equal(info->records, n);
		/* Small ones at the end could be parts of a large one. */
		if (end - record->offset > sizeof(union kvp_journal_any_record))
			assert_int_equal(info->condition, KVP_JOURNAL_DAMAGED);
		if (n == last)
			assert_int_equal(info->condition, KVP_JOURNAL_TORN);
		kvp_journal_free(journal);
	}
	kvp_journal_free(whole_one);
}

/*
 * Behind the first record it says that all is over: what is behind that is not read,
 * cleared by half or not. It is no mark when a bit of it is another, or further on.
 */
static void starts_anew(void **state)
{
	const size_t first = sizeof(struct kvp_journal_file_record), mark = 8;
	struct kvp_journal *journal;
	char *copy = malloc(sample_size);
	size_t cleared, at;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, sample, sample_size);
	memcpy(copy + first, KVP_JOURNAL_RESTART, mark);
	for (cleared = first + mark; cleared <= sample_size; cleared += 8) {
		memset(copy + first + mark, 0, cleared - first - mark);
		journal = parse(copy, sample_size);
		assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
		assert_int_equal(kvp_journal_info(journal)->records, 1);
		assert_int_equal(kvp_journal_info(journal)->offset, first);
		assert_int_equal(kvp_journal_info(journal)->open_entries, 0);
		kvp_journal_free(journal);
	}
	for (at = first; at < first + mark; at++) {
		copy[at] ^= 0x20;
		journal = parse(copy, sample_size);
		assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_DAMAGED);
		kvp_journal_free(journal);
		copy[at] ^= 0x20;
	}
	memcpy(copy, sample, sample_size);
	memcpy(copy + first + sizeof(struct kvp_journal_begin_record), KVP_JOURNAL_RESTART, mark);
	journal = parse(copy, sample_size);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_DAMAGED);
	kvp_journal_free(journal);
	free(copy);
}

/* Both at once: never more than was written, whatever it is called. */
static void cut_and_flipped(void **state)
{
	size_t size, at;

	(void)state;
	for (size = 1; size <= sample_size; size += 7) {
		const size_t from = size > 240 ? size - 240 : 0;

		for (at = from; at < size; at++) {
			struct kvp_journal *journal;

			sample[at] ^= 0x11;
			journal = parse(sample, size);
			sample[at] ^= 0x11;
			assert_true(kvp_journal_info(journal)->offset <= at);
			assert_int_not_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
			kvp_journal_free(journal);
		}
	}
}

/* ------------------------------------- records that are whole, and make no sense */

static char built[8192];
static size_t built_size;
static uint64_t built_records;

static void put(union kvp_journal_any_record record, enum kvp_journal_type type)
{
	const size_t size = kvp_journal_seal(&record.head, type, built_records++);

	memcpy(built + built_size, &record, size);
	built_size += size;
}

static union kvp_journal_any_record record_of(uint64_t transaction)
{
	/* The transaction is at the same place in all but the first record. */
	return (union kvp_journal_any_record){ .mark = { .transaction = htole64(transaction) } };
}

static void start(void)
{
	built_size = 0;
	built_records = 0;
	put((union kvp_journal_any_record){ 0 }, KVP_JOURNAL_FILE);
}

static void begin(uint64_t transaction, uint32_t entries)
{
	union kvp_journal_any_record record = record_of(transaction);

	record.begin.entries = htole32(entries);
	strcpy(record.begin.domain, "kv");
	put(record, KVP_JOURNAL_BEGIN);
}

static union kvp_journal_any_record device_of(uint64_t transaction)
{
	union kvp_journal_any_record record = record_of(transaction);

	strcpy(record.device.registrar, "store");
	return record;
}

/* A transaction, and the one device of it. */
static void begin_at_device(uint64_t transaction, uint32_t entries)
{
	begin(transaction, entries);
	put(device_of(transaction), KVP_JOURNAL_DEVICE);
}

static union kvp_journal_any_record intent_of(uint64_t transaction, uint32_t entry)
{
	union kvp_journal_any_record record = record_of(transaction);

	record.intent.entry = htole32(entry);
	record.intent.length = htole64(4096);
	return record;
}

static void intent(uint64_t transaction, uint32_t entry)
{
	put(intent_of(transaction, entry), KVP_JOURNAL_INTENT);
}

static void step(uint64_t transaction, uint32_t entry, enum kvp_journal_type type, int32_t code)
{
	union kvp_journal_any_record record = record_of(transaction);

	record.outcome.entry = htole32(entry);
	if (type != KVP_JOURNAL_UNDO)
		record.outcome.code = (int32_t)htole32((uint32_t)code);
	put(record, type);
}

static void mark(uint64_t transaction, enum kvp_journal_type type)
{
	put(record_of(transaction), type);
}

static void last_is_nonsense(const char *reason)
{
	struct kvp_journal *journal = parse(built, built_size);
	const struct kvp_journal_info *info = kvp_journal_info(journal);

	assert_int_equal(info->condition, KVP_JOURNAL_DAMAGED);
	assert_contains(info->reason, reason);
	assert_int_equal(info->records, built_records - 1);
	kvp_journal_free(journal);
}

static void sense(uint32_t open_entries)
{
	struct kvp_journal *journal = parse(built, built_size);

	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
	assert_int_equal(kvp_journal_info(journal)->open_entries, open_entries);
	kvp_journal_free(journal);
}

static void nonsense(void **state)
{
	union kvp_journal_any_record record;

	(void)state;
	start();
	put((union kvp_journal_any_record){ 0 }, KVP_JOURNAL_FILE);
	last_is_nonsense("type file as number 1");
	start();
	mark(1, KVP_JOURNAL_END);
	last_is_nonsense("transaction 1 was never begun");
	start();
	begin(5, 1);
	begin(5, 1);
	last_is_nonsense("transaction 5 comes after 5");
	start();
	begin(5, 1);
	mark(4, KVP_JOURNAL_END);
	last_is_nonsense("transaction 4 was never begun");
	start();
	begin_at_device(1, UINT32_MAX);
	intent(1, 1);
	last_is_nonsense("entry 1 is not the next");
	start();
	begin(1, 1);
	intent(1, 0);
	last_is_nonsense("device 0 of transaction 1 is not known, 0 are");
	start();
	begin_at_device(1, 1);
	begin(2, 1);
	intent(2, 0);
	last_is_nonsense("device 0 of transaction 2 is not known, 0 are");
	start();
	put(device_of(1), KVP_JOURNAL_DEVICE);
	last_is_nonsense("transaction 1 was never begun");
	start();
	begin_at_device(1, 1);
	intent(1, 0);
	intent(1, 1);
	last_is_nonsense("entry 1 is not the next");
	start();
	begin_at_device(1, 1);
	step(1, 0, KVP_JOURNAL_OUTCOME, 0);
	last_is_nonsense("was never intended");
	start();
	begin_at_device(1, 1);
	intent(1, 0);
	step(1, 0, KVP_JOURNAL_OUTCOME, 0);
	step(1, 0, KVP_JOURNAL_OUTCOME, 0);
	last_is_nonsense("has an outcome, and was registered");
	start();
	begin_at_device(1, 1);
	intent(1, 0);
	step(1, 0, KVP_JOURNAL_OUTCOME, -1);
	step(1, 0, KVP_JOURNAL_UNDO, 0);
	last_is_nonsense("is refused already");
	start();
	begin_at_device(1, 2);
	intent(1, 0);
	step(1, 0, KVP_JOURNAL_OUTCOME, 0);
	mark(1, KVP_JOURNAL_COMMIT);
	last_is_nonsense("committed with 1 of 2 entries");
	start();
	begin(1, 0);
	mark(1, KVP_JOURNAL_END);
	mark(1, KVP_JOURNAL_END);
	last_is_nonsense("has ended before");
	start();
	begin_at_device(1, 1);
	record = intent_of(1, 0);
	record.intent.offset = htole64(UINT64_MAX);
	put(record, KVP_JOURNAL_INTENT);
	last_is_nonsense("wraps");
	start();
	begin(1, 1);
	record = device_of(1);
	memset(record.device.name, 'x', sizeof(record.device.name));
	put(record, KVP_JOURNAL_DEVICE);
	last_is_nonsense("is no name");
	start();
	begin(1, 1);
	record = device_of(1);
	record.device.flags = htole32(KVP_JOURNAL_DEVICE_EXTERNAL);
	memset(record.device.registrar, 0, sizeof(record.device.registrar));
	put(record, KVP_JOURNAL_DEVICE);
	last_is_nonsense("is no name");
	start();
	begin(1, 1);
	record = device_of(1);
	record.device.flags = htole32(4);
	put(record, KVP_JOURNAL_DEVICE);
	last_is_nonsense("the device has unknown flags 0x4");
	start();
	begin_at_device(1, 1);
	record = intent_of(1, 0);
	record.intent.flags = htole32(8);
	put(record, KVP_JOURNAL_INTENT);
	last_is_nonsense("the entry has unknown flags 0x8");
}

/* What a writer leaves that could not write all of it. */
static void gaps_of_a_writer(void **state)
{
	(void)state;
	start();
	begin_at_device(3, 2);
	begin_at_device(9, 1);
	intent(3, 0);
	intent(9, 0);
	step(9, 0, KVP_JOURNAL_UNDO, 0);	/* its outcome is missing */
	sense(2);
	step(9, 0, KVP_JOURNAL_UNDO, 0);	/* and that of its undoing */
	step(9, 0, KVP_JOURNAL_UNDONE, -5);
	step(9, 0, KVP_JOURNAL_UNDONE, 0);
	sense(1);
	mark(3, KVP_JOURNAL_END);
	sense(0);
}

static void newer_format(void **state)
{
	struct kvp_journal_head head;
	struct kvp_journal *journal;

	(void)state;
	/* Longer records, of types that nobody knows here. */
	memset(built, 7, 400);
	head = (struct kvp_journal_head){
		.magic = htole32(KVP_JOURNAL_MAGIC), .version = htole16(2), .type = htole16(77),
		.length = htole32(400),
	};
	memcpy(built, &head, sizeof(head));
	head.checksum = htole32(kvp_journal_checksum(built, 400));
	memcpy(built, &head, sizeof(head));
	journal = parse(built, 400);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_NEWER);
	assert_contains(kvp_journal_info(journal)->reason, "format version 2, this library knows 1");
	kvp_journal_free(journal);
	journal = parse(built, 300);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_NEWER);
	kvp_journal_free(journal);
}

static void no_memory(void **state)
{
	struct kvp_journal *journal;
	unsigned int n;
	int err;

	(void)state;
	for (n = 1;; n++) {
		fake_fail_alloc(n);
		err = kvp_journal_parse(sample, sample_size, &journal);
		if (!fake_alloc_failed())
			break;
		assert_int_equal(err, -ENOMEM);
	}
	fake_fail_alloc(0);
	assert_true(n > 8);
	kvp_journal_free(journal);
}

static void files(void **state)
{
	const char *dir = fake_journal_dir();
	struct kvp_journal *journal;
	struct kvp_error error;
	char path[100];

	(void)state;
	snprintf(path, sizeof(path), "%s/one.journal", dir);
	assert_int_equal(kvp_journal_read(path, &journal, &error), -ENOENT);
	fake_assert_error(&error, -ENOENT, KVP_PHASE_JOURNAL, "one.journal", NULL);
	fake_journal_store(path, sample, sample_size);
	assert_int_equal(kvp_journal_read(path, &journal, &error), 0);
	assert_int_equal(kvp_journal_info(journal)->condition, KVP_JOURNAL_WHOLE);
	/* This very process wrote it. */
	assert_int_equal(kvp_journal_info(journal)->liveness, KVP_LIVENESS_ALIVE);
	kvp_journal_free(journal);
	assert_int_equal(truncate(path, ((off_t)1 << 30) + 1), 0);
	assert_int_equal(kvp_journal_read(path, &journal, &error), -EFBIG);
	assert_int_equal(kvp_journal_read(dir, &journal, &error), -EINVAL);
	fake_assert_error(&error, -EINVAL, KVP_PHASE_JOURNAL, dir, "regular file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(kvp_journal_read(path, &journal, &error), -EINVAL);
	fake_journal_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(whole),
		fake_test(cut_at_every_byte),
		fake_test(every_byte_flipped),
		fake_test(beginning_is_missing),
		fake_test(starts_anew),
		fake_test(cut_and_flipped),
		fake_test(nonsense),
		fake_test(gaps_of_a_writer),
		fake_test(newer_format),
		fake_test(no_memory),
		fake_test(files),
	};

	return cmocka_run_group_tests(tests, make_sample, free_sample);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The journal that a transaction writes, and every way in which writing it fails. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_journal.h"
#include "fake_registrar.h"

#define BUFFERS 3

static struct fake_registrar fake;
static struct kvp_registrar *registrar;
static struct kvp_list *list;
static struct kvp_registration *registration;
static struct kvp_error error;
static const char *dir;

static struct kvp_log *journal(void)
{
	return &fake_world_ctx()->log;
}

static int setup(void **state)
{
	struct kvp_buffer buffers[BUFFERS];
	uint32_t i;

	memset(&fake, 0, sizeof(fake));
	memset(&error, 0, sizeof(error));
	registration = NULL;
	dir = fake_journal_dir();
	if (fake_world_setup(state))
		return -1;
	fake.name = "store";
	registrar = fake_registrar_new(&fake, 1, 0);
	fake_world_pool(1, FAKE_BASE, 64 * MIB);
	for (i = 0; i < BUFFERS; i++)
		buffers[i] = (struct kvp_buffer){
			.addr = (void *)(uintptr_t)(FAKE_BASE + i * 4 * MIB), .length = 2 * MIB,
		};
	list = fake_world_list(buffers, BUFFERS);
	return kvp_log_init(journal(), dir, NULL);
}

static int teardown(void **state)
{
	kvp_log_free(journal());
	kvp_list_free(list);
	kvp_registrar_free(registrar);
	fake_journal_remove();
	if (fake.live)
		print_error("%d registrations left\n", fake.live);
	return fake_world_teardown(state) || fake.live ? -1 : 0;
}

static int do_register(const struct kvp_transaction_options *options)
{
	memset(&error, 0, sizeof(error));
	fake.register_calls = fake.unregister_calls = fake.call_count = 0;
	return kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, options, &registration,
			    &error);
}

static int do_unregister(void)
{
	return kvp_unregister(fake_world_ctx(), &registration, &error);
}

#define REGISTERED "intent outcome intent outcome intent outcome"
#define UNDONE "undo undone undo undone undo undone"

static void whole_life(void **state)
{
	struct stat st;

	(void)state;
	/* Given as an option, it is there at once. */
	assert_string_equal(fake_journal_types(), "file");
	assert_int_equal(stat(fake_journal_path(), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(do_register(NULL), 0);
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED " commit");
	assert_int_equal(do_unregister(), 0);
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED " commit " UNDONE
			    " end");
	kvp_log_free(journal());
	assert_int_equal(fake_journal_files(), 0);
	assert_int_equal(kvp_log_init(journal(), dir, NULL), 0);
}

/* As several threads may have them written: the second before the first. */
static void entries_in_another_order(void **state)
{
	struct kvp_span spans[BUFFERS];
	const struct kvp_journal_entry *entry;
	const struct kvp_buffer *buffers;
	struct kvp_journal *read;
	struct kvp_plan plan;
	uint32_t count;

	(void)state;
	buffers = kvp_list_buffers(list, &count);
	assert_int_equal(kvp_check_spans(fake_world_ctx(), "kv", buffers, NULL, count, NULL, spans,
					 &error), 0);
	assert_int_equal(kvp_registration_new(fake_world_ctx(), &registrar, 1, &registration), 0);
	assert_int_equal(kvp_states_collect(registration, spans, count, &error), 0);
	assert_int_equal(kvp_plan_build(list, spans, &registration->set, &plan, &error), 0);
	assert_int_equal(kvp_registration_take(registration, &plan), 0);
	kvp_plan_free(&plan);
	assert_int_equal(kvp_log_begin(registration, "kv", &error), 0);

	assert_int_equal(kvp_record_step(registration, 2, KVP_STEP_INTENT, 0), 0);
	assert_int_equal(kvp_record_step(registration, 0, KVP_STEP_INTENT, 0), 0);
	assert_int_equal(kvp_record_step(registration, 0, KVP_STEP_REFUSED, -EIO), 0);
	assert_int_equal(kvp_record_step(registration, 2, KVP_STEP_REGISTERED, 0), 0);
	assert_int_equal(kvp_journal_read(fake_journal_path(), &read, &error), 0);
	assert_int_equal(kvp_journal_info(read)->condition, KVP_JOURNAL_WHOLE);
	assert_int_equal(kvp_journal_info(read)->entries, 2);
	entry = kvp_journal_entry(read, 0);
	assert_int_equal(entry->index, 2);
	assert_ptr_equal(entry->chunk.addr, buffers[2].addr);
	assert_int_equal(entry->state, KVP_JOURNAL_ENTRY_REGISTERED);
	entry = kvp_journal_entry(read, 1);
	assert_int_equal(entry->index, 0);
	assert_int_equal(entry->state, KVP_JOURNAL_ENTRY_REFUSED);
	kvp_journal_free(read);
	kvp_registration_free(registration);
}

/* A timer's signal, on which tmpfs begins a call anew, comes within each long one. */
static void space_is_had_in_steps(void **state)
{
	const uint64_t more = 5 << 20;

	(void)state;
	fake_interrupt(256 << 10);
	assert_int_equal(kvp_log_reserve(journal(), more), 0);
	assert_int_equal(journal()->reserved, more);
	assert_true(journal()->end >= journal()->offset + more);
	journal()->reserved = 0;
}

static void start_mapped(void)
{
	kvp_log_free(journal());
	fake_tmpfs(true);
	assert_int_equal(kvp_log_init(journal(), dir, NULL), 0);
	assert_true(journal()->mapped);
}

/* Memory that can't be had whole is not kept in part. */
static void space_is_had_whole(void **state)
{
	const uint64_t more = 5 << 20;
	struct stat st;

	(void)state;
	start_mapped();
	fake_fail(FAKE_FALLOCATE, 4, ENOSPC);
	assert_int_equal(kvp_log_reserve(journal(), more), -ENOSPC);
	assert_int_equal(journal()->reserved, 0);
	assert_true(journal()->end < more);
	assert_int_equal(stat(fake_journal_path(), &st), 0);
	assert_int_equal(st.st_size, journal()->end);
	assert_int_equal(do_register(NULL), 0);
	assert_int_equal(do_unregister(), 0);
}

/* A page is copied before a record is stored in it, and the next one after that. */
static void read_while_it_is_written(void **state)
{
	static const struct {
		unsigned int times;
		enum kvp_journal_condition condition;
	} cases[] = { { 0, KVP_JOURNAL_WHOLE }, { 1, KVP_JOURNAL_WHOLE }, { 2, KVP_JOURNAL_DAMAGED } };
	struct kvp_journal *read;
	unsigned int i;

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t begin = sizeof(struct kvp_journal_file_record);

		fake_hide(begin, begin + 300, cases[i].times);
		assert_int_equal(kvp_journal_read(fake_journal_path(), &read, &error), 0);
		assert_int_equal(kvp_journal_info(read)->condition, cases[i].condition);
		kvp_journal_free(read);
	}
	assert_int_equal(do_unregister(), 0);
}

static void what_records_say(void **state)
{
	struct kvp_journal_device_record device;
	struct kvp_journal_intent_record intent;
	struct kvp_journal_outcome_record outcome;
	struct kvp_journal_file_record file;
	struct kvp_process self;
	size_t size, at;
	char *bytes;

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	bytes = fake_journal_load(fake_journal_path(), &size);
	memcpy(&file, bytes, sizeof(file));
	assert_int_equal(kvp_process_self(&self), 0);
	assert_int_equal(le32toh(file.pid), getpid());
	assert_int_equal(le64toh(file.start), self.start);
	assert_memory_equal(file.boot_id, self.boot_id, 16);
	assert_string_equal(file.library, "0.1");
	at = sizeof(file) + sizeof(struct kvp_journal_begin_record) +
	     sizeof(struct kvp_journal_pool_record);
	memcpy(&device, bytes + at, sizeof(device));
	assert_int_equal(le64toh(device.transaction), 1);
	assert_int_equal(le32toh(device.device), 0);
	assert_int_equal(le32toh(device.flags), KVP_JOURNAL_DEVICE_EXTERNAL);
	assert_string_equal(device.registrar, "store");
	assert_string_equal(device.name, "store0");
	at += sizeof(device) + sizeof(intent) + sizeof(outcome);
	memcpy(&intent, bytes + at, sizeof(intent));
	memcpy(&outcome, bytes + at + sizeof(intent), sizeof(outcome));
	assert_int_equal(le64toh(intent.transaction), 1);
	assert_int_equal(le32toh(intent.entry), 1);
	assert_int_equal(le32toh(intent.index), 1);
	assert_int_equal(le32toh(intent.device), 0);
	assert_int_equal(le32toh(intent.flags), 0);
	assert_int_equal(le64toh(intent.addr), FAKE_BASE + 4 * MIB);
	assert_int_equal(le64toh(intent.length), 2 * MIB);
	assert_int_equal(le64toh(intent.offset), 4 * MIB);
	assert_int_equal(le32toh(intent.pool), 1);
	assert_int_equal(le64toh(intent.generation), 101);
	assert_int_equal(le32toh(outcome.entry), 1);
	assert_int_equal(outcome.code, 0);
	assert_int_equal(le64toh(outcome.cookie), FAKE_BASE + 4 * MIB);
	free(bytes);
	assert_int_equal(do_unregister(), 0);
}

static void refusal_is_undone_in_the_journal(void **state)
{
	(void)state;
	fake.fail_register = 3;
	fake.register_ret = 600;
	assert_int_equal(do_register(NULL), -EREMOTEIO);
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED
			    " undo undone undo undone end");
}

static int refuse(const struct kvp_registration *given, void *arg)
{
	(void)given;
	/* What can be found after a death in here is committed. */
	strcpy(arg, fake_journal_types());
	return -ECANCELED;
}

static void commit_is_written_before_it_is_told(void **state)
{
	struct kvp_transaction_options options = KVP_INIT(struct kvp_transaction_options);
	char seen[400] = "";

	(void)state;
	options.commit = refuse;
	options.arg = seen;
	assert_int_equal(do_register(&options), -ECANCELED);
	assert_string_equal(seen, "file begin pool device " REGISTERED " commit");
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED " commit " UNDONE
			    " end");
}

/* Every write fails once: nothing stays registered, and what is in the file is whole. */
static void every_write_fails_once(enum fake_call call)
{
	unsigned int n;

	for (n = 0;; n++) {
		fake_fail(call, n, ENOSPC);
		fake_world_forget_states();
		if (!do_register(NULL))
			break;
		assert_true(fake_failed(call));
		assert_int_equal(error.err, -ENOSPC);
		assert_null(registration);
		assert_int_equal(fake.live, 0);
		if (n < 3) {	/* begin, pool, device */
			assert_int_equal(error.phase, KVP_PHASE_JOURNAL);
			assert_int_equal(fake.register_calls, 0);
			assert_string_equal(fake_world_states(), "");
		} else {
			assert_string_equal(fake_world_states(), "1:registering 1:failed");
		}
		/* An intent that is not written is not carried out. */
		if (n >= 3 && n < 9)
			assert_int_equal(fake.register_calls, (n - 2) / 2);
		fake_journal_types();
	}
	fake_fail(call, 0, 0);
	assert_int_equal(n, 3 + 2 * BUFFERS + 1);
	assert_int_equal(do_unregister(), 0);
}

static void every_write_fails(void **state)
{
	(void)state;
	every_write_fails_once(FAKE_WRITE);
	every_write_fails_once(FAKE_SHORT_WRITE);
}

/* Undoing goes on without a journal. */
static void undo_is_not_stopped(void **state)
{
	unsigned int n;

	(void)state;
	for (n = 0; n < 2 * BUFFERS + 1; n++) {
		assert_int_equal(do_register(NULL), 0);
		fake_fail(n % 2 ? FAKE_WRITE : FAKE_SHORT_WRITE, n, EIO);
		assert_int_equal(do_unregister(), 0);
		assert_int_equal(fake.unregister_calls, BUFFERS);
		fake_journal_types();
	}
}

/* A torn record that can't be taken back: nothing is written behind it. */
static void broken_journal(void **state)
{
	(void)state;
	fake_fail(FAKE_SHORT_WRITE, 4, 1);
	fake_fail(FAKE_TRUNCATE, 0, EIO);
	assert_int_equal(do_register(NULL), -ENOSPC);
	assert_true(journal()->broken);
	assert_int_equal(fake.register_calls, fake.unregister_calls);
	assert_int_equal(do_register(NULL), -EIO);
	assert_int_equal(error.phase, KVP_PHASE_JOURNAL);
	assert_int_equal(fake.register_calls, 0);
}

static void no_space_is_known_before(void **state)
{
	static const struct {
		int err;
		const char *advice;
	} cases[] = {
		{ ENOSPC, "free space, or give another directory" },
		{ EDQUOT, "an empty one switches the journal off" },
		{ EOPNOTSUPP, "a file system that has fallocate" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		fake_fail(FAKE_FALLOCATE, 0, cases[i].err);
		assert_int_equal(do_register(NULL), -cases[i].err);
		assert_int_equal(error.phase, KVP_PHASE_JOURNAL);
		assert_contains(error.message, "reserve the space of the transaction");
		assert_contains(error.message, dir);
		assert_contains(error.advice, cases[i].advice);
		assert_int_equal(fake.register_calls, 0);
		assert_string_equal(fake_world_states(), "");
	}
	fake_fail(FAKE_FALLOCATE, 0, EINTR);
	assert_int_equal(do_register(NULL), 0);
	assert_int_equal(do_unregister(), 0);
}

/* A write beyond this limit would be a deadly signal. */
static void limit_of_file_size(void **state)
{
	struct rlimit before, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(do_register(NULL), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_contains(error.advice, "ulimit -f");
	assert_int_equal(fake.register_calls, 0);
}

/* What nobody would read is not written; and what is registered then can be undone. */
static void longer_than_is_read(void **state)
{
	struct kvp_registration *kept;
	uint64_t room;

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	kept = registration;
	/* As after some hundred thousand transactions. */
	room = kvp_log_room(journal());
	assert_int_equal(room, KVP_JOURNAL_SIZE_MAX - journal()->offset - journal()->reserved);
	journal()->offset += room - 1055;
	/* All that it may need: 608 + 2 * 224. */
	assert_int_equal(do_register(NULL), -EFBIG);
	assert_null(registration);
	assert_int_equal(error.phase, KVP_PHASE_JOURNAL);
	assert_contains(error.message, "may need 1056 more: a file of more than 1073741824 is not read; "
			"1 transactions are open");
	assert_contains(error.advice, "unregister what is registered");
	assert_int_equal(fake.register_calls, 0);
	journal()->offset--;
	assert_int_equal(do_register(NULL), 0);
	/* Its undoing fails, is tried again, and finds no more space for that: it is done. */
	fake.fail_unregister = fake.unregister_calls + 1;
	fake.unregister_ret = -EBUSY;
	assert_int_equal(do_unregister(), -EBUSY);
	fake.fail_unregister = 0;
	assert_int_equal(do_unregister(), 0);
	registration = kept;
	assert_int_equal(do_unregister(), 0);
	assert_true(journal()->offset <= KVP_JOURNAL_SIZE_MAX);
	assert_int_equal(journal()->reserved, 0);
	/* With nothing open it begins anew. */
	assert_int_equal(do_register(NULL), 0);
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED " commit");
	assert_int_equal(do_unregister(), 0);
}

static void quarantine_keeps_the_file(void **state)
{
	(void)state;
	assert_int_equal(do_register(NULL), 0);
	fake.fail_unregister = 2;
	fake.unregister_ret = -EBUSY;
	assert_int_equal(do_unregister(), -EBUSY);
	assert_int_equal(journal()->open, 1);
	assert_int_equal(journal()->reserved, registration->record.reserved);
	fake.fail_unregister = 0;
	assert_int_equal(do_unregister(), 0);
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED " commit " UNDONE
			    " undo undone end");
	assert_int_equal(journal()->open, 0);
	assert_int_equal(journal()->reserved, 0);
}

/*
 * A transaction that can't begin takes the space of one that is open with it. Where
 * that can't be had again it is still counted.
 */
static void space_of_others(void **state)
{
	struct kvp_registration *open, *other;
	struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)(FAKE_BASE + 32 * MIB), .length = 2 * MIB,
	};
	struct kvp_list *more = fake_world_list(&buffer, 1);

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	open = registration;
	fake_fail(FAKE_WRITE, 1, EIO);
	fake_fail(FAKE_FALLOCATE, 1, ENOSPC);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", more, &registrar, 1, NULL, &other,
				      &error), -EIO);
	assert_true(fake_failed(FAKE_WRITE) && fake_failed(FAKE_FALLOCATE));
	assert_int_equal(journal()->reserved, open->record.reserved);
	assert_int_equal(journal()->end, journal()->offset);
	/* The next has it back, or does not begin. */
	fake_fail(FAKE_FALLOCATE, 0, ENOSPC);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", more, &registrar, 1, NULL, &other,
				      &error), -ENOSPC);
	assert_int_equal(kvp_register(fake_world_ctx(), "kv", more, &registrar, 1, NULL, &other,
				      &error), 0);
	assert_int_equal(journal()->reserved, open->record.reserved + other->record.reserved);
	assert_true(journal()->end >= journal()->offset + journal()->reserved);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &other, NULL), 0);
	assert_int_equal(kvp_unregister(fake_world_ctx(), &open, NULL), 0);
	assert_int_equal(journal()->reserved, 0);
	kvp_list_free(more);
}

/* Entries move up when others go; in the journal they keep their number. */
static void numbers_stay(void **state)
{
	struct kvp_journal_undo_record undo;
	size_t size;
	char *bytes;

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	fake.fail_unregister = 1;
	fake.unregister_ret = -EBUSY;
	assert_int_equal(do_unregister(), -EBUSY);
	fake.fail_unregister = 0;
	assert_int_equal(do_unregister(), 0);
	bytes = fake_journal_load(fake_journal_path(), &size);
	memcpy(&undo, bytes + size - sizeof(struct kvp_journal_mark_record) -
	       sizeof(struct kvp_journal_outcome_record) - sizeof(undo), sizeof(undo));
	assert_int_equal(le16toh(undo.head.type), KVP_JOURNAL_UNDO);
	assert_int_equal(le32toh(undo.entry), 2);
	free(bytes);
}

static void left_open_is_left(void **state)
{
	struct kvp_log copy;

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	copy = *journal();
	/* As kvp_close() does, with the registration forgotten. */
	copy.dir = NULL;
	copy.fd = dup(copy.fd);
	copy.dir_fd = dup(copy.dir_fd);
	kvp_log_free(&copy);
	assert_int_equal(fake_journal_files(), 1);
	assert_int_equal(do_unregister(), 0);
}

static void does_not_grow(void **state)
{
	struct stat st;
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		assert_int_equal(do_register(NULL), 0);
		assert_int_equal(do_unregister(), 0);
	}
	assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED " commit " UNDONE
			    " end");
	assert_int_equal(stat(fake_journal_path(), &st), 0);
	assert_true(st.st_size < 4096);
}

/* Stored through a mapping: the file keeps its space, and starts anew in it. */
static void space_is_used_again(void **state)
{
	struct stat before, after;
	unsigned int i;
	uint64_t at;

	(void)state;
	start_mapped();
	assert_string_equal(fake_journal_types(), "file");
	assert_int_equal(stat(fake_journal_path(), &before), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(do_register(NULL), 0);
		assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED
				    " commit");
		assert_int_equal(do_unregister(), 0);
		assert_string_equal(fake_journal_types(), "file begin pool device " REGISTERED
				    " commit " UNDONE " end");
		/* Nothing of an earlier one is behind it. */
		for (at = journal()->offset; at < journal()->end; at++)
			assert_int_equal(((char *)journal()->map)[at], 0);
	}
	assert_int_equal(stat(fake_journal_path(), &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(after.st_size, journal()->end);
}

static void pool_that_was_created_here(void **state)
{
	const size_t at = sizeof(struct kvp_journal_file_record) +
		sizeof(struct kvp_journal_begin_record);
	struct kvp_journal_pool_record pool;
	unsigned int i;
	size_t size;
	char *bytes;

	(void)state;
	fake_world_ctx()->owned->created = true;
	for (i = 0; i < 2; i++) {
		assert_int_equal(do_register(NULL), 0);
		bytes = fake_journal_load(fake_journal_path(), &size);
		memcpy(&pool, bytes + at, sizeof(pool));
		free(bytes);
		assert_int_equal(le32toh(pool.id), 1);
		assert_int_equal(le64toh(pool.generation), 101);
		assert_int_equal(le32toh(pool.flags), KVP_JOURNAL_POOL_CREATED |
				 (i ? KVP_JOURNAL_POOL_COMMITTED : 0));
		assert_int_equal(do_unregister(), 0);
	}
}

static void after_a_fork(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(do_register(NULL), 0);
	pid = fake_fork();
	if (!pid) {
		struct kvp_registration *other;

		if (kvp_register(fake_world_ctx(), "kv", list, &registrar, 1, NULL, &other,
				 &error) != -EINVAL || !strstr(error.advice, "after fork()"))
			_exit(1);
		journal()->open = 0;
		kvp_log_free(journal());
		_exit(fake_journal_files() == 1 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(do_unregister(), 0);
}

int main(void)
{
#define journal_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		journal_test(whole_life),
		journal_test(entries_in_another_order),
		journal_test(space_is_had_in_steps),
		journal_test(space_is_had_whole),
		journal_test(read_while_it_is_written),
		journal_test(what_records_say),
		journal_test(refusal_is_undone_in_the_journal),
		journal_test(commit_is_written_before_it_is_told),
		journal_test(every_write_fails),
		journal_test(undo_is_not_stopped),
		journal_test(broken_journal),
		journal_test(no_space_is_known_before),
		journal_test(limit_of_file_size),
		journal_test(longer_than_is_read),
		journal_test(quarantine_keeps_the_file),
		journal_test(space_of_others),
		journal_test(numbers_stay),
		journal_test(left_open_is_left),
		journal_test(does_not_grow),
		journal_test(space_is_used_again),
		journal_test(pool_that_was_created_here),
		journal_test(after_a_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bytes as files of a directory of journals: read, shown, and recovered from,
 * twice. Whatever they are, nothing is unregistered that the files don't say may
 * be registered, nothing twice, nothing that a running process may have; no pool
 * is destroyed that something is held of; a file that is damaged stays as it is.
 *
 * A file begins where a first record of sequence 0 does, so that an input can be
 * more than one. Whether the process of a file runs follows from its pid.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "../../tools/format_journal.h"
#include "../unit/fake_world.h"
#include "fuzz.h"
#include "model.h"

#define MAX_SIZE 32768
#define POOLS 4

static struct {
	char path[64];
	int fd;
	unsigned int files;
	struct model_file file[MODEL_FILES];
	enum kvp_journal_condition condition[MODEL_FILES];
	uint8_t bytes[MAX_SIZE];
	/* The pass of recovery at hand. */
	bool dry_run, lenient;
	bool undone[MODEL_FILES][MODEL_ENTRIES];	/* asked for in this pass */
	struct kvp_chunk last;				/* chunk of the last call */
} dir;

static const char *file_name(unsigned int n)
{
	static char names[MODEL_FILES][16];

	snprintf(names[n], sizeof(names[n]), "%c.journal", 'a' + (int)n);
	return names[n];
}

/* ------------------------------------------------------------- the stand-ins */

enum kvp_liveness __wrap_kvp_process_look(const struct kvp_process *process,
					  const struct kvp_process *self);
int __wrap_kvp_process_self(struct kvp_process *self);

static enum kvp_liveness liveness_of(uint32_t pid)
{
	switch (pid % 8) {
	case 5:
		return KVP_LIVENESS_OTHER_BOOT;
	case 6:
		return KVP_LIVENESS_ALIVE;
	case 7:
		return KVP_LIVENESS_UNKNOWN;
	default:
		return KVP_LIVENESS_DEAD;
	}
}

enum kvp_liveness __wrap_kvp_process_look(const struct kvp_process *process,
					  const struct kvp_process *self)
{
	(void)self;
	return liveness_of(process->pid);
}

int __wrap_kvp_process_self(struct kvp_process *self)
{
	memset(self, 0, sizeof(*self));
	return 0;
}

static void make_pools(void)
{
	uint32_t id;

	for (id = 1; id <= POOLS; id++)
		fake_world_pool(id, FAKE_BASE + id * 64 * MIB, 64 * MIB);
	fake_world_info(1)->owned = 0;
	fake_world_info(2)->owned = 0;
	fake_world_info(2)->lifetime = KVP_LIFETIME_PERSISTENT;
	/* 3 is owned. */
	fake_world_info(4)->owned = 0;
	fake_world_info(4)->state = KVP_STATE_ORPHAN;
}

/* --------------------------------------------------------------- the registrar */

static const char *device_name(void *arg, uint32_t device)
{
	(void)arg;
	return device ? "tape" : "disk";
}

static int limits(void *arg, uint32_t device, uint64_t *max_length, uint64_t *max_count)
{
	(void)arg;
	(void)device;
	*max_length = *max_count = 0;
	return 0;
}

static int no_register(void *arg, uint32_t device, const struct kvp_chunk *chunk, void **cookie)
{
	(void)arg;
	(void)device;
	(void)chunk;
	(void)cookie;
	abort();
}

static bool acted_on(unsigned int n)
{
	const enum kvp_liveness liveness = liveness_of(dir.file[n].pid);

	return (dir.condition[n] == KVP_JOURNAL_WHOLE || dir.condition[n] == KVP_JOURNAL_TORN) &&
	       dir.file[n].records &&
	       (liveness == KVP_LIVENESS_DEAD || liveness == KVP_LIVENESS_OTHER_BOOT);
}

/* Whether the store has the entry's device, and by which number. */
static bool is_at(const struct model_entry *entry, uint32_t device)
{
	return !strcmp(entry->registrar, "store") &&
	       (entry->device_name[0] ? !strcmp(entry->device_name, device_name(NULL, device)) :
					entry->device == device);
}

static bool is_of(const struct model_entry *entry, uint32_t device, const struct kvp_chunk *chunk,
		  const void *cookie)
{
	return is_at(entry, device) && entry->addr == (uintptr_t)chunk->addr && entry->length == chunk->length &&
	       entry->length == chunk->span.length && entry->pool == chunk->span.id &&
	       entry->generation == chunk->span.generation &&
	       entry->offset == chunk->span.offset && entry->cookie == (uintptr_t)cookie &&
	       entry->read_only == !!(chunk->flags & KVP_BUFFER_READ_ONLY);
}

static bool overlap(const struct model_entry *one, const struct model_entry *other)
{
	return one->pool == other->pool && one->generation == other->generation &&
	       one->offset < other->offset + other->length &&
	       other->offset < one->offset + one->length;
}

/* A device is known by its name: numbers may change. */
static bool same_device(const struct model_entry *one, const struct model_entry *other)
{
	if (strcmp(one->registrar, other->registrar))
		return false;
	if (one->device_name[0] && other->device_name[0])
		return !strcmp(one->device_name, other->device_name);
	return one->device == other->device;
}

/* A process that may run has memory of the entry, at the same device. */
static bool in_use(const struct model_entry *entry)
{
	unsigned int n;
	uint32_t i;

	for (n = 0; n < dir.files; n++) {
		const enum kvp_liveness liveness = liveness_of(dir.file[n].pid);

		if (!dir.file[n].records || liveness == KVP_LIVENESS_DEAD ||
		    liveness == KVP_LIVENESS_OTHER_BOOT)
			continue;
		/* What is behind the damage may be anything. */
		if (dir.condition[n] == KVP_JOURNAL_DAMAGED || dir.condition[n] == KVP_JOURNAL_NEWER)
			return true;
		for (i = 0; i < dir.file[n].entry_count; i++) {
			const struct model_entry *other = &dir.file[n].entries[i];

			if (other->open && other->external && overlap(entry, other) &&
			    same_device(entry, other))
				return true;
		}
	}
	return false;
}

static int unregister(void *arg, uint32_t device, const struct kvp_chunk *chunk, void *cookie)
{
	struct model_entry *entry;
	unsigned int n;
	uint32_t i;
	int ret;

	(void)arg;
	fuzz_assert(!dir.dry_run && device < 2);
	/* Alike entries can't be told apart: any of them that was not asked for yet. */
	for (n = 0; n < dir.files; n++) {
		if (!acted_on(n) || liveness_of(dir.file[n].pid) != KVP_LIVENESS_DEAD)
			continue;
		for (i = dir.file[n].entry_count; i--;) {
			entry = &dir.file[n].entries[i];
			if (!dir.undone[n][i] && entry->open && entry->external &&
			    is_of(entry, device, chunk, cookie) && !in_use(entry))
				goto found;
		}
	}
	fuzz_assert(!"the files say that it may be registered, and it was not unregistered before");
found:
	dir.undone[n][i] = true;
	/* In reverse order, in each file. */
	while (i--)
		fuzz_assert(!dir.undone[n][i]);
	dir.last = *chunk;
	ret = dir.lenient ? 0 : (int)(chunk->addr ? (uintptr_t)chunk->addr >> 12 & 7 : 0);
	ret = ret == 1 ? -ENOENT : ret == 2 ? -EBUSY : ret == 3 ? 600 : 0;
	if (!ret || ret == -ENOENT)
		entry->open = false;
	return ret;
}

static struct kvp_registrar *make_registrar(void)
{
	struct kvp_registrar_ops ops = KVP_INIT(struct kvp_registrar_ops);
	struct kvp_registrar *registrar;

	ops.limits = limits;
	ops.register_chunk = no_register;
	ops.unregister_chunk = unregister;
	ops.device_name = device_name;
	ops.name = "store";
	ops.external = 1;
	fuzz_assert(!kvp_registrar_new(&ops, NULL, 2, &registrar));
	return registrar;
}

/* -------------------------------------------------------------------- reading */

/* What the library reads out of the file, against the second reading and itself. */
static void check_entries(const struct kvp_journal *journal, const struct model_file *file)
{
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	const struct kvp_journal_entry *entry;
	uint32_t n, open = 0;

	fuzz_assert(file->entry_count == info->entries);
	for (n = 0; (entry = kvp_journal_entry(journal, n)); n++) {
		const struct model_entry *model = &file->entries[n];

		open += !!entry->open;
		fuzz_assert(entry->transaction == model->transaction);
		fuzz_assert(entry->number == model->number);
		fuzz_assert(!!entry->open == model->open);
		fuzz_assert(!!entry->external == model->external);
		fuzz_assert(entry->cookie == model->cookie);
		fuzz_assert(entry->chunk.span.offset == model->offset);
		fuzz_assert(entry->chunk.length == model->length && model->length);
		fuzz_assert(model->offset + model->length >= model->length);
		fuzz_assert(!strcmp(entry->registrar, model->registrar));
		fuzz_assert(!strcmp(entry->device_name, model->device_name));
		fuzz_assert(!entry->external || kvp_name_valid(entry->registrar));
		fuzz_assert(kvp_name_valid(entry->chunk.span.domain));
	}
	fuzz_assert(n == info->entries && open == info->open_entries);
}

static void check_pools(const struct kvp_journal *journal, const struct model_file *file)
{
	const struct kvp_journal_pool *pool;
	uint32_t n;

	fuzz_assert(file->pool_count == kvp_journal_info(journal)->pools);
	for (n = 0; (pool = kvp_journal_pool(journal, n)); n++) {
		fuzz_assert(pool->id == file->pools[n].id);
		fuzz_assert(pool->generation == file->pools[n].generation);
		fuzz_assert(!!pool->created == file->pools[n].created);
		fuzz_assert(!!pool->committed == file->pools[n].committed);
	}
}

static void check_transactions(const struct kvp_journal *journal)
{
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	const struct kvp_journal_transaction *transaction;
	uint64_t before = 0;
	uint32_t n, open = 0;

	for (n = 0; (transaction = kvp_journal_transaction(journal, n)); n++) {
		fuzz_assert(!n || transaction->number > before);
		fuzz_assert(kvp_name_valid(transaction->domain));
		before = transaction->number;
		open += !transaction->ended;
	}
	fuzz_assert(n == info->transactions && open == info->open_transactions);
}

static void check_records(const struct kvp_journal *journal, const struct model_file *file)
{
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	const struct kvp_journal_record *record;
	uint64_t at = 0;
	uint32_t n;

	for (n = 0; (record = kvp_journal_record(journal, n)); n++) {
		fuzz_assert(record->offset == at && record->sequence == n);
		fuzz_assert(record->length == model_record_size(record->type));
		at += record->length;
	}
	fuzz_assert(n == info->records && at == info->offset);
	fuzz_assert(file->records == n && file->whole == at);
}

static void check_condition(const struct kvp_journal_info *info, const struct model_file *all,
			    const uint8_t *bytes)
{
	uint64_t end = info->size;

	/* Nothing behind this counts. */
	if (info->records == 1 && end - info->offset >= 8 &&
	    !memcmp(bytes + info->offset, "KVPSTART", 8))
		end = info->offset;
	/* Zeros at the end are space that was reserved. */
	while (end > info->offset && !bytes[end - 1])
		end--;
	fuzz_assert_text(info->reason);
	fuzz_assert(!info->reason[0] == (info->condition == KVP_JOURNAL_WHOLE));
	switch (info->condition) {
	case KVP_JOURNAL_WHOLE:
		fuzz_assert(info->offset == end && info->records);
		break;
	case KVP_JOURNAL_TORN:
		/* No more than a record, and not one: nothing comes behind it. */
		fuzz_assert(end - info->offset <= 168 && all->whole == info->offset);
		break;
	case KVP_JOURNAL_FOREIGN:
		fuzz_assert(!info->records);
		break;
	case KVP_JOURNAL_DAMAGED:
	case KVP_JOURNAL_NEWER:
		fuzz_assert(info->offset < info->size);
		break;
	}
}

static void show(const struct kvp_journal *journal)
{
	struct json_object *object;
	FILE *out = fuzz_print_start();

	format_journal_text(out, "a.journal", journal);
	fuzz_print_end(out);
	object = format_journal_object("a.journal", journal);
	fuzz_assert(object);
	out = fuzz_print_start();
	fputs(json_object_to_json_string(object), out);
	fuzz_print_end_json(out);
	json_object_put(object);
}

static void read_file(unsigned int n)
{
	static struct model_file all;
	struct model_file *file = &dir.file[n];
	const struct kvp_journal_info *info;
	struct kvp_journal *journal;
	struct kvp_error error;
	char path[100];
	int err;

	snprintf(path, sizeof(path), "%s/%s", dir.path, file_name(n));
	fuzz_error_start(&error);
	err = kvp_journal_read(path, &journal, &error);
	fuzz_error_check(&error, err);
	fuzz_assert(!err);
	info = kvp_journal_info(journal);
	fuzz_assert(info->size == file->size && info->offset <= info->size);
	model_read(&all, file->bytes, file->size, file->size);
	model_read(file, file->bytes, file->size, info->offset);
	dir.condition[n] = info->condition;
	check_condition(info, &all, file->bytes);
	check_records(journal, file);
	check_transactions(journal);
	check_entries(journal, file);
	check_pools(journal, file);
	fuzz_assert(!info->records || info->liveness == liveness_of(file->pid));
	show(journal);
	kvp_journal_free(journal);
}

/* ------------------------------------------------------------------- recovery */

static bool may_destroy(const struct kvp_journal_pool *pool)
{
	const struct kvp_pool_info *info = fake_world_info(pool->id);
	bool created = false, committed = false;
	unsigned int n;
	uint32_t i;

	for (n = 0; n < dir.files; n++) {
		const struct model_file *file = &dir.file[n];
		bool created_here = false, committed_here = false;

		for (i = 0; i < file->entry_count; i++)
			if (file->entries[i].open && file->entries[i].external &&
			    liveness_of(file->pid) != KVP_LIVENESS_OTHER_BOOT &&
			    file->entries[i].pool == pool->id &&
			    file->entries[i].generation == pool->generation)
				return false;
		if (!acted_on(n) || liveness_of(file->pid) != KVP_LIVENESS_DEAD)
			continue;
		for (i = 0; i < file->pool_count; i++) {
			if (file->pools[i].id != pool->id ||
			    file->pools[i].generation != pool->generation)
				continue;
			created_here |= file->pools[i].created;
			committed_here |= file->pools[i].committed;
		}
		/* Each file by itself: it is the one at hand, or another that says so too. */
		if (created_here && !(committed_here && info->lifetime == KVP_LIFETIME_PERSISTENT))
			created = true;
		committed |= committed_here;
	}
	return created && !info->owned;
}

static void each(const struct kvp_recovery_event *event, void *arg)
{
	(void)arg;
	fuzz_assert(event->file && event->reason);
	fuzz_assert((event->action <= KVP_RECOVERY_FILE_REMOVED) == (!event->entry && !event->pool));
	switch (event->action) {
	case KVP_RECOVERY_ENTRY_GONE:
		fuzz_assert(!event->entry->external ||
			    liveness_of(dir.file[event->file[0] - 'a'].pid) ==
			    KVP_LIVENESS_OTHER_BOOT);
		break;
	case KVP_RECOVERY_ENTRY_UNDONE:
		fuzz_assert(!event->err);
		fuzz_assert(dir.dry_run || (dir.last.addr == event->entry->chunk.addr &&
					    dir.last.length == event->entry->chunk.length &&
					    dir.last.span.offset == event->entry->chunk.span.offset));
		break;
	case KVP_RECOVERY_ENTRY_QUARANTINED:
		fuzz_assert(event->err < 0 && event->reason[0]);
		break;
	case KVP_RECOVERY_POOL_DESTROYED:
		fuzz_assert(dir.dry_run || may_destroy(event->pool));
		break;
	default:
		break;
	}
}

/* 0 and its size, or -1 when it isn't there. */
static int load(unsigned int n, uint8_t *bytes, size_t *size)
{
	int fd = openat(dir.fd, file_name(n), O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -1;
	got = read(fd, bytes, 2 * MAX_SIZE);
	close(fd);
	fuzz_assert(got >= 0 && got < 2 * MAX_SIZE);
	*size = (size_t)got;
	return 0;
}

static void recover(bool dry_run, bool lenient)
{
	struct kvp_recovery_options options = KVP_INIT(struct kvp_recovery_options);
	struct kvp_registrar *registrar = make_registrar();
	struct kvp_recovery_report report;
	struct kvp_error error;
	int err;

	dir.dry_run = dry_run;
	dir.lenient = lenient;
	memset(dir.undone, 0, sizeof(dir.undone));
	options.journal_dir = dir.path;
	options.registrars = &registrar;
	options.registrar_count = 1;
	options.dry_run = dry_run;
	options.each = each;
	fuzz_error_start(&error);
	err = kvp_recover(fake_world_ctx(), &options, &report, &error);
	fuzz_error_check(&error, err);
	fuzz_assert(!err);
	kvp_registrar_free(registrar);
}

/* What a pass must leave: untouched what it may not act on, and whole what it may. */
static void check_left(void)
{
	static uint8_t bytes[2 * MAX_SIZE];
	struct kvp_journal *journal;
	unsigned int n;
	size_t size;
	uint32_t i;

	for (n = 0; n < dir.files; n++) {
		struct model_file *file = &dir.file[n];

		if (load(n, bytes, &size)) {
			fuzz_assert(!dir.dry_run && acted_on(n));
			for (i = 0; i < file->entry_count; i++)
				fuzz_assert(!file->entries[i].open || !file->entries[i].external ||
					    liveness_of(file->pid) == KVP_LIVENESS_OTHER_BOOT);
			continue;
		}
		if (dir.dry_run || !acted_on(n)) {
			fuzz_assert(size == file->size && !memcmp(bytes, file->bytes, size));
			continue;
		}
		fuzz_assert(liveness_of(file->pid) == KVP_LIVENESS_DEAD);
		fuzz_assert(!kvp_journal_parse(bytes, size, &journal));
		fuzz_assert(kvp_journal_info(journal)->condition == KVP_JOURNAL_WHOLE ||
			    !kvp_journal_info(journal)->open_entries);
		for (i = 0; i < file->entry_count; i++) {
			const struct model_entry *entry = &file->entries[i];

			/* What was undone is not to be asked for again, by what the file says. */
			fuzz_assert(!kvp_journal_entry(journal, i)->open || entry->open);
			/* The store refuses nothing: what is left has a reason. */
			fuzz_assert(!dir.lenient || !entry->open || !entry->external ||
				    in_use(entry) || !(is_at(entry, 0) || is_at(entry, 1)));
		}
		kvp_journal_free(journal);
	}
}

static void write_files(const uint8_t *data, size_t size)
{
	size_t at, start = 0;

	memcpy(dir.bytes, data, size);
	dir.files = 0;
	for (at = 1; at <= size; at++) {
		struct model_file *file = &dir.file[dir.files];
		int fd;

		if (at < size && (dir.files == MODEL_FILES - 1 ||
				  !model_file_begins(dir.bytes, size, at)))
			continue;
		file->bytes = dir.bytes + start;
		file->size = at - start;
		fd = openat(dir.fd, file_name(dir.files), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			    0600);
		fuzz_assert(fd >= 0);
		fuzz_assert(write(fd, file->bytes, file->size) == (ssize_t)file->size);
		close(fd);
		dir.files++;
		start = at;
	}
}

static void remove_directory(void)
{
	unsigned int n;

	for (n = 0; n < MODEL_FILES; n++)
		unlinkat(dir.fd, file_name(n), 0);
	rmdir(dir.path);
}

static void make_directory(void)
{
	const char *parent = getenv("TMPDIR");

	snprintf(dir.path, sizeof(dir.path), "%.40s/kvpool-fuzz-XXXXXX", parent ? parent : "/tmp");
	fuzz_assert(mkdtemp(dir.path));
	dir.fd = openat(AT_FDCWD, dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzz_assert(dir.fd >= 0);
	atexit(remove_directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *state = NULL;
	unsigned int n;

	if (size > MAX_SIZE)
		return -1;
	if (!dir.path[0])
		make_directory();
	fuzz_assert(!fake_world_setup(&state));
	make_pools();
	write_files(data, size);
	for (n = 0; n < dir.files; n++)
		read_file(n);
	recover(true, false);
	check_left();
	recover(false, false);
	check_left();
	recover(false, true);
	check_left();
	for (n = 0; n < dir.files; n++)
		unlinkat(dir.fd, file_name(n), 0);
	fuzz_assert(!fake_world_teardown(&state));
	return 0;
}

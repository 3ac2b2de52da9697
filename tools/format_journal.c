// SPDX-License-Identifier: GPL-2.0-only
/* A journal as text, record by record, and as JSON. */
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "format.h"
#include "format_journal.h"

static const char *plural(uint32_t count)
{
	return count == 1 ? "" : "s";
}

#define HEX_TEXT 33

static const char *hex_text(const uint8_t bytes[16], char text[HEX_TEXT])
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

/* As /proc/sys/kernel/random/boot_id has it. */
static const char *uuid_text(const uint8_t bytes[16], char text[HEX_TEXT + 4])
{
	char hex[HEX_TEXT];

	hex_text(bytes, hex);
	snprintf(text, HEX_TEXT + 4, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
	return text;
}

/* -------------------------------------------------------------------- text */

static void print_device(FILE *out, const char *registrar, int external, uint32_t device,
			 const char *name)
{
	fprintf(out, "registrar %s%s, device %" PRIu32, registrar[0] ? registrar : "without a name",
		external ? " (external)" : "", device);
	if (name[0]) {
		putc(' ', out);
		format_safe(out, name);
	}
}

void format_journal_entry(FILE *out, const struct kvp_journal_entry *entry)
{
	char span[KVP_SPAN_TEXT_SIZE];

	if (kvp_span_format(&entry->chunk.span, span))
		strcpy(span, "no span");
	fprintf(out, "%s, ", span);
	print_device(out, entry->registrar, entry->external, entry->device, entry->device_name);
}

static void print_process(FILE *out, const struct kvp_journal_info *info)
{
	static const char *const states[] = {
		[KVP_LIVENESS_UNKNOWN] = "whether it runs can't be told from here",
		[KVP_LIVENESS_ALIVE] = "it runs",
		[KVP_LIVENESS_DEAD] = "it is dead",
		[KVP_LIVENESS_OTHER_BOOT] = "it ended with an earlier boot",
	};
	char boot[HEX_TEXT + 4], session[HEX_TEXT];

	fprintf(out, "  process %d of uid %u, started at tick %" PRIu64 " of boot %s: %s\n",
		(int)info->pid, (unsigned int)info->uid, info->start,
		uuid_text(info->boot_id, boot), states[info->liveness]);
	fprintf(out, "  session %s, library ", hex_text(info->session, session));
	format_safe(out, info->library);
	putc('\n', out);
}

static void print_begin(FILE *out, const struct kvp_journal *journal,
			const struct kvp_journal_record *record)
{
	const struct kvp_journal_transaction *transaction =
		kvp_journal_transaction(journal, record->position);

	fprintf(out, ": %" PRIu32 " entr%s and %" PRIu32 " pool%s of domain %s",
		transaction->entries, transaction->entries == 1 ? "y" : "ies", transaction->pools,
		plural(transaction->pools), transaction->domain);
}

static void print_pool(FILE *out, const struct kvp_journal *journal,
		       const struct kvp_journal_record *record)
{
	const struct kvp_journal_pool *pool = kvp_journal_pool(journal, record->position);

	fprintf(out, ": id:%" PRIu32 ".%" PRIu64 "%s", pool->id, pool->generation,
		pool->created ? ", created by this session" : "");
}

static void print_record(FILE *out, const struct kvp_journal *journal,
			 const struct kvp_journal_record *record)
{
	const struct kvp_journal_device *device;

	fprintf(out, "  %8" PRIu64 "  %-7s", record->offset,
		kvp_journal_type_name(record->type));
	if (record->transaction)
		fprintf(out, "  transaction %" PRIu64, record->transaction);
	if (record->entry != KVP_NONE)
		fprintf(out, " entry %" PRIu32, record->entry);
	switch (record->type) {
	case KVP_JOURNAL_BEGIN:
		print_begin(out, journal, record);
		break;
	case KVP_JOURNAL_POOL:
		print_pool(out, journal, record);
		break;
	case KVP_JOURNAL_DEVICE:
		device = kvp_journal_device(journal, record->position);
		fputs(": ", out);
		print_device(out, device->registrar, device->external, device->device,
			     device->name);
		break;
	case KVP_JOURNAL_INTENT:
		fputs(": ", out);
		format_journal_entry(out, kvp_journal_entry(journal, record->position));
		break;
	case KVP_JOURNAL_OUTCOME:
	case KVP_JOURNAL_UNDONE:
		if (record->code)
			fprintf(out, ": failed with %" PRId32, record->code);
		else
			fputs(record->type == KVP_JOURNAL_UNDONE ? ": unregistered" :
								   ": registered", out);
		break;
	default:
		break;
	}
	putc('\n', out);
}

static void print_open(FILE *out, const struct kvp_journal *journal)
{
	const struct kvp_journal_entry *entry;
	uint32_t n;

	for (n = 0; (entry = kvp_journal_entry(journal, n)); n++) {
		if (!entry->open)
			continue;
		fprintf(out, "  open: transaction %" PRIu64 " entry %" PRIu32 ", %s: ",
			entry->transaction, entry->number, kvp_journal_state_name(entry->state));
		format_journal_entry(out, entry);
		fputs(entry->external ? "; recovery has it unregistered\n" :
					"; ends with its process\n", out);
	}
}

void format_journal_text(FILE *out, const char *path, const struct kvp_journal *journal)
{
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	const struct kvp_journal_record *record;
	uint32_t n;

	format_safe(out, path);
	fprintf(out, ": %s, %" PRIu32 " record%s, %" PRIu32 " transaction%s (%" PRIu32
		" open), %" PRIu32 " entr%s open\n", kvp_journal_condition_name(info->condition),
		info->records, plural(info->records), info->transactions,
		plural(info->transactions), info->open_transactions, info->open_entries,
		info->open_entries == 1 ? "y" : "ies");
	if (info->records)
		print_process(out, info);
	for (n = 0; (record = kvp_journal_record(journal, n)); n++)
		print_record(out, journal, record);
	if (info->reason[0]) {
		fprintf(out, "  %8" PRIu64 "  %s: ", info->offset,
			kvp_journal_condition_name(info->condition));
		format_safe(out, info->reason);
		fprintf(out, " (%" PRIu64 " bytes are left)\n", info->size - info->offset);
	}
	print_open(out, journal);
}

/* -------------------------------------------------------------------- JSON */

/* Adds a value to `*object`, or ends it: the first failure makes it NULL. */
static void add(struct json_object **object, const char *key, struct json_object *value)
{
	if (*object && value && !json_object_object_add(*object, key, value))
		return;
	json_object_put(value);
	json_object_put(*object);
	*object = NULL;
}

static void add_number(struct json_object **object, const char *key, uint64_t value)
{
	add(object, key, json_object_new_uint64(value));
}

static void add_text(struct json_object **object, const char *key, const char *value)
{
	/* As text output has it: JSON is UTF-8, and a name of a device may be anything. */
	char safe[512];
	size_t i;

	for (i = 0; i < sizeof(safe) - 1 && value[i]; i++)
		safe[i] = (char)(value[i] >= ' ' && value[i] <= '~' ? value[i] : '?');
	safe[i] = '\0';
	add(object, key, json_object_new_string(safe));
}

static void append(struct json_object **array, struct json_object *value)
{
	if (*array && value && !json_object_array_add(*array, value))
		return;
	json_object_put(value);
	json_object_put(*array);
	*array = NULL;
}

static struct json_object *record_object(const struct kvp_journal_record *record)
{
	struct json_object *object = json_object_new_object();

	add_number(&object, "offset", record->offset);
	add_number(&object, "length", record->length);
	add_number(&object, "sequence", record->sequence);
	add_text(&object, "type", kvp_journal_type_name(record->type));
	if (record->transaction)
		add_number(&object, "transaction", record->transaction);
	if (record->entry != KVP_NONE)
		add_number(&object, "entry", record->entry);
	if (record->type == KVP_JOURNAL_OUTCOME || record->type == KVP_JOURNAL_UNDONE)
		add(&object, "code", json_object_new_int64(record->code));
	return object;
}

static struct json_object *transaction_object(const struct kvp_journal_transaction *transaction)
{
	struct json_object *object = json_object_new_object();

	add_number(&object, "transaction", transaction->number);
	add_text(&object, "domain", transaction->domain);
	add_number(&object, "entries", transaction->entries);
	add_number(&object, "pools", transaction->pools);
	add(&object, "committed", json_object_new_boolean(transaction->committed));
	add(&object, "ended", json_object_new_boolean(transaction->ended));
	return object;
}

static struct json_object *pool_object(const struct kvp_journal_pool *pool)
{
	struct json_object *object = json_object_new_object();

	add_number(&object, "transaction", pool->transaction);
	add_number(&object, "id", pool->id);
	add_number(&object, "generation", pool->generation);
	add(&object, "created", json_object_new_boolean(pool->created));
	add(&object, "committed", json_object_new_boolean(pool->committed));
	return object;
}

static void add_device(struct json_object **object, const char *registrar, int external,
		       uint32_t device, const char *name)
{
	if (registrar[0])
		add_text(object, "registrar", registrar);
	add(object, "external", json_object_new_boolean(external));
	add_number(object, "device", device);
	if (name[0])
		add_text(object, "device-name", name);
}

static struct json_object *device_object(const struct kvp_journal_device *device)
{
	struct json_object *object = json_object_new_object();

	add_number(&object, "transaction", device->transaction);
	add_device(&object, device->registrar, device->external, device->device, device->name);
	return object;
}

static struct json_object *entry_object(const struct kvp_journal_entry *entry)
{
	struct json_object *object = json_object_new_object();
	char span[KVP_SPAN_TEXT_SIZE];

	add_number(&object, "transaction", entry->transaction);
	add_number(&object, "entry", entry->number);
	add_number(&object, "index", entry->index);
	if (!kvp_span_format(&entry->chunk.span, span))
		add_text(&object, "span", span);
	add_number(&object, "addr", (uintptr_t)entry->chunk.addr);
	add_device(&object, entry->registrar, entry->external, entry->device, entry->device_name);
	add_number(&object, "cookie", entry->cookie);
	add_text(&object, "state", kvp_journal_state_name(entry->state));
	add(&object, "code", json_object_new_int64(entry->code));
	add(&object, "open", json_object_new_boolean(entry->open));
	return object;
}

static struct json_object *process_object(const struct kvp_journal_info *info)
{
	struct json_object *object = json_object_new_object();
	char text[HEX_TEXT + 4];

	add_number(&object, "pid", (uint64_t)info->pid);
	add_number(&object, "uid", info->uid);
	add_number(&object, "start", info->start);
	add_text(&object, "boot-id", uuid_text(info->boot_id, text));
	add_number(&object, "pid-namespace", info->pid_namespace);
	add_number(&object, "time-namespace", info->time_namespace);
	add_text(&object, "session", hex_text(info->session, text));
	add_text(&object, "library", info->library);
	add_text(&object, "liveness", kvp_liveness_name(info->liveness));
	return object;
}

struct json_object *format_journal_object(const char *path, const struct kvp_journal *journal)
{
	struct json_object *records = json_object_new_array(), *pools = json_object_new_array();
	struct json_object *transactions = json_object_new_array();
	struct json_object *devices = json_object_new_array();
	struct json_object *entries = json_object_new_array();
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	struct json_object *object = json_object_new_object();
	uint32_t n;

	for (n = 0; n < info->records; n++)
		append(&records, record_object(kvp_journal_record(journal, n)));
	for (n = 0; n < info->transactions; n++)
		append(&transactions, transaction_object(kvp_journal_transaction(journal, n)));
	for (n = 0; n < info->pools; n++)
		append(&pools, pool_object(kvp_journal_pool(journal, n)));
	for (n = 0; n < info->devices; n++)
		append(&devices, device_object(kvp_journal_device(journal, n)));
	for (n = 0; n < info->entries; n++)
		append(&entries, entry_object(kvp_journal_entry(journal, n)));
	add_text(&object, "path", path);
	add_text(&object, "condition", kvp_journal_condition_name(info->condition));
	if (info->reason[0])
		add_text(&object, "reason", info->reason);
	add_number(&object, "size", info->size);
	add_number(&object, "offset", info->offset);
	add_number(&object, "open-transactions", info->open_transactions);
	add_number(&object, "open-entries", info->open_entries);
	if (info->records)
		add(&object, "process", process_object(info));
	add(&object, "records", records);
	add(&object, "transactions", transactions);
	add(&object, "pools", pools);
	add(&object, "devices", devices);
	add(&object, "entries", entries);
	return object;
}

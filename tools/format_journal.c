// SPDX-License-Identifier: GPL-2.0-only
/* A journal as text, record by record, and as JSON. */
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "format.h"
#include "format_journal.h"
#include "json.h"

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

static struct json_object *record_object(const struct kvp_journal_record *record)
{
	struct json json = json_new();

	json_number(&json, "offset", record->offset);
	json_number(&json, "length", record->length);
	json_number(&json, "sequence", record->sequence);
	json_text(&json, "type", kvp_journal_type_name(record->type));
	if (record->transaction)
		json_number(&json, "transaction", record->transaction);
	if (record->entry != KVP_NONE)
		json_number(&json, "entry", record->entry);
	if (record->type == KVP_JOURNAL_OUTCOME || record->type == KVP_JOURNAL_UNDONE)
		json_add(&json, "code", json_object_new_int64(record->code));
	return json_end(&json);
}

static struct json_object *transaction_object(const struct kvp_journal_transaction *transaction)
{
	struct json json = json_new();

	json_number(&json, "transaction", transaction->number);
	json_text(&json, "domain", transaction->domain);
	json_number(&json, "entries", transaction->entries);
	json_number(&json, "pools", transaction->pools);
	json_flag(&json, "committed", transaction->committed);
	json_flag(&json, "ended", transaction->ended);
	return json_end(&json);
}

static struct json_object *pool_object(const struct kvp_journal_pool *pool)
{
	struct json json = json_new();

	json_number(&json, "transaction", pool->transaction);
	json_number(&json, "id", pool->id);
	json_number(&json, "generation", pool->generation);
	json_flag(&json, "created", pool->created);
	json_flag(&json, "committed", pool->committed);
	return json_end(&json);
}

static void add_device(struct json *json, const char *registrar, int external, uint32_t device,
		       const char *name)
{
	json_tag(json, "registrar", registrar);
	json_flag(json, "external", external);
	json_number(json, "device", device);
	json_tag(json, "device-name", name);
}

static struct json_object *device_object(const struct kvp_journal_device *device)
{
	struct json json = json_new();

	json_number(&json, "transaction", device->transaction);
	add_device(&json, device->registrar, device->external, device->device, device->name);
	return json_end(&json);
}

static struct json_object *entry_object(const struct kvp_journal_entry *entry)
{
	struct json json = json_new();
	char span[KVP_SPAN_TEXT_SIZE];

	json_number(&json, "transaction", entry->transaction);
	json_number(&json, "entry", entry->number);
	json_number(&json, "index", entry->index);
	if (!kvp_span_format(&entry->chunk.span, span))
		json_text(&json, "span", span);
	json_number(&json, "addr", (uintptr_t)entry->chunk.addr);
	add_device(&json, entry->registrar, entry->external, entry->device, entry->device_name);
	json_number(&json, "cookie", entry->cookie);
	json_text(&json, "state", kvp_journal_state_name(entry->state));
	json_add(&json, "code", json_object_new_int64(entry->code));
	json_flag(&json, "open", entry->open);
	return json_end(&json);
}

static struct json_object *process_object(const struct kvp_journal_info *info)
{
	struct json json = json_new();
	char text[HEX_TEXT + 4];

	json_number(&json, "pid", (uint64_t)info->pid);
	json_number(&json, "uid", info->uid);
	json_number(&json, "start", info->start);
	json_text(&json, "boot-id", uuid_text(info->boot_id, text));
	json_number(&json, "pid-namespace", info->pid_namespace);
	json_number(&json, "time-namespace", info->time_namespace);
	json_text(&json, "session", hex_text(info->session, text));
	json_text(&json, "library", info->library);
	json_text(&json, "liveness", kvp_liveness_name(info->liveness));
	return json_end(&json);
}

struct json_object *format_journal_object(const char *path, const struct kvp_journal *journal)
{
	struct json_object *records = json_object_new_array(), *pools = json_object_new_array();
	struct json_object *transactions = json_object_new_array();
	struct json_object *devices = json_object_new_array();
	struct json_object *entries = json_object_new_array();
	const struct kvp_journal_info *info = kvp_journal_info(journal);
	struct json json = json_new();
	uint32_t n;

	for (n = 0; n < info->records; n++)
		records = json_append(records, record_object(kvp_journal_record(journal, n)));
	for (n = 0; n < info->transactions; n++)
		transactions = json_append(transactions,
					   transaction_object(kvp_journal_transaction(journal, n)));
	for (n = 0; n < info->pools; n++)
		pools = json_append(pools, pool_object(kvp_journal_pool(journal, n)));
	for (n = 0; n < info->devices; n++)
		devices = json_append(devices, device_object(kvp_journal_device(journal, n)));
	for (n = 0; n < info->entries; n++)
		entries = json_append(entries, entry_object(kvp_journal_entry(journal, n)));
	json_text(&json, "path", path);
	json_text(&json, "condition", kvp_journal_condition_name(info->condition));
	json_tag(&json, "reason", info->reason);
	json_number(&json, "size", info->size);
	json_number(&json, "offset", info->offset);
	json_number(&json, "open-transactions", info->open_transactions);
	json_number(&json, "open-entries", info->open_entries);
	if (info->records)
		json_add(&json, "process", process_object(info));
	json_add(&json, "records", records);
	json_add(&json, "transactions", transactions);
	json_add(&json, "pools", pools);
	json_add(&json, "devices", devices);
	json_add(&json, "entries", entries);
	return json_end(&json);
}

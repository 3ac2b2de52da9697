// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the records of a journal mean, one after the other. */
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

static int __attribute__((format(printf, 2, 3)))
bad(struct kvp_journal *journal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(journal->info.reason, sizeof(journal->info.reason), format, args);
	va_end(args);
	return -EBADMSG;
}

/* `valid`: what names of pools and domains are made of; `empty`: it may be missing. */
static bool text_of(const char from[KVP_NAME_SIZE], char to[KVP_NAME_SIZE], bool valid, bool empty)
{
	const size_t length = strnlen(from, KVP_NAME_SIZE);

	if (length == KVP_NAME_SIZE)
		return false;
	memcpy(to, from, length + 1);
	return length ? !valid || kvp_name_valid(to) : empty;
}

/* The transaction that a record is about: begun, and not ended. */
static int find(struct kvp_journal *journal, uint64_t number, struct kvp_journal_record *record)
{
	uint32_t low = 0, high = journal->info.transactions;

	/* Their numbers ascend. */
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (journal->transactions[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	record->transaction = number;
	record->position = low;
	if (low == journal->info.transactions || journal->transactions[low].number != number)
		return bad(journal, "transaction %" PRIu64 " was never begun", number);
	if (journal->transactions[low].ended)
		return bad(journal, "transaction %" PRIu64 " has ended before", number);
	return 0;
}

static int apply_file(struct kvp_journal *journal, const struct kvp_journal_file_record *raw)
{
	struct kvp_journal_info *info = &journal->info;

	if (!memchr(raw->library, 0, sizeof(raw->library)))
		return bad(journal, "the version of the library is no text");
	memcpy(info->boot_id, raw->boot_id, sizeof(info->boot_id));
	memcpy(info->session, raw->session, sizeof(info->session));
	memcpy(info->library, raw->library, sizeof(info->library));
	info->start = le64toh(raw->start);
	info->pid_namespace = le64toh(raw->pid_ns);
	info->time_namespace = le64toh(raw->time_ns);
	info->pid = (pid_t)le32toh(raw->pid);
	info->uid = (uid_t)le32toh(raw->uid);
	return 0;
}

static int apply_begin(struct kvp_journal *journal, const struct kvp_journal_begin_record *raw,
		       struct kvp_journal_record *record)
{
	const uint32_t n = journal->info.transactions;
	struct kvp_journal_transaction *transaction;

	if (kvp_array_grow(&journal->transactions, n, &journal->transaction_room,
			   sizeof(*transaction)) ||
	    kvp_array_grow(&journal->entry_numbers, n, &journal->entry_numbers_room,
			   sizeof(*journal->entry_numbers)) ||
	    kvp_array_grow(&journal->device_numbers, n, &journal->device_numbers_room,
			   sizeof(*journal->device_numbers)) ||
	    kvp_array_grow(&journal->pool_numbers, n, &journal->pool_numbers_room,
			   sizeof(*journal->pool_numbers)))
		return -ENOMEM;
	transaction = &journal->transactions[n];
	*transaction = (struct kvp_journal_transaction){
		.number = le64toh(raw->transaction),
		.entries = le32toh(raw->entries),
		.pools = le32toh(raw->pools),
	};
	if (n && transaction->number <= transaction[-1].number)
		return bad(journal, "transaction %" PRIu64 " comes after %" PRIu64,
			   transaction->number, transaction[-1].number);
	if (!text_of(raw->domain, transaction->domain, true, false))
		return bad(journal, "the domain is no name");
	journal->entry_numbers[n] = (struct kvp_journal_numbers){ 0 };
	journal->device_numbers[n] = (struct kvp_journal_numbers){ 0 };
	journal->pool_numbers[n] = (struct kvp_journal_numbers){ 0 };
	record->transaction = transaction->number;
	record->position = n;
	journal->info.transactions++;
	journal->info.open_transactions++;
	return 0;
}

/* Something at `position` is the next of its transaction. */
static int number(struct kvp_journal_numbers *numbers, uint32_t position)
{
	if (kvp_array_grow(&numbers->positions, numbers->count, &numbers->room,
			   sizeof(*numbers->positions)))
		return -ENOMEM;
	numbers->positions[numbers->count++] = position;
	return 0;
}

static int apply_pool(struct kvp_journal *journal, const struct kvp_journal_pool_record *raw,
		      struct kvp_journal_record *record)
{
	const uint32_t flags = le32toh(raw->flags), n = journal->info.pools;
	struct kvp_journal_pool *pool;
	int err;

	err = find(journal, le64toh(raw->transaction), record);
	if (err)
		return err;
	if (flags & ~(KVP_JOURNAL_POOL_CREATED | KVP_JOURNAL_POOL_COMMITTED))
		return bad(journal, "the pool has unknown flags 0x%" PRIx32, flags);
	if (kvp_array_grow(&journal->pools, n, &journal->pool_room, sizeof(*pool)))
		return -ENOMEM;
	pool = &journal->pools[n];
	*pool = (struct kvp_journal_pool){
		.transaction = record->transaction,
		.id = le32toh(raw->id),
		.generation = le64toh(raw->generation),
		.created = !!(flags & KVP_JOURNAL_POOL_CREATED),
		.committed = !!(flags & KVP_JOURNAL_POOL_COMMITTED),
	};
	err = number(&journal->pool_numbers[record->position], n);
	if (err)
		return err;
	record->position = n;
	journal->info.pools++;
	return 0;
}

static int apply_device(struct kvp_journal *journal, const struct kvp_journal_device_record *raw,
			struct kvp_journal_record *record)
{
	const uint32_t flags = le32toh(raw->flags), n = journal->info.devices;
	struct kvp_journal_device *device;
	int err;

	err = find(journal, le64toh(raw->transaction), record);
	if (err)
		return err;
	if (kvp_array_grow(&journal->devices, n, &journal->device_room, sizeof(*device)))
		return -ENOMEM;
	device = &journal->devices[n];
	*device = (struct kvp_journal_device){
		.transaction = record->transaction,
		.device = le32toh(raw->device),
		.external = !!(flags & KVP_JOURNAL_DEVICE_EXTERNAL),
	};
	if (flags & ~KVP_JOURNAL_DEVICE_EXTERNAL)
		return bad(journal, "the device has unknown flags 0x%" PRIx32, flags);
	if (!text_of(raw->registrar, device->registrar, true, !device->external) ||
	    !text_of(raw->name, device->name, false, true))
		return bad(journal, "the name of the registrar or device is no name");
	err = number(&journal->device_numbers[record->position], n);
	if (err)
		return err;
	record->position = n;
	journal->info.devices++;
	return 0;
}

static int fill_entry(struct kvp_journal *journal, const struct kvp_journal_intent_record *raw,
		      const struct kvp_journal_transaction *transaction,
		      const struct kvp_journal_device *device, struct kvp_journal_entry *entry)
{
	const uint32_t flags = le32toh(raw->flags);
	struct kvp_chunk *chunk = &entry->chunk;

	entry->transaction = transaction->number;
	entry->number = le32toh(raw->entry);
	entry->index = le32toh(raw->index);
	entry->device = device->device;
	entry->external = device->external;
	memcpy(entry->registrar, device->registrar, sizeof(entry->registrar));
	memcpy(entry->device_name, device->name, sizeof(entry->device_name));
	entry->state = KVP_JOURNAL_ENTRY_INTENDED;
	entry->open = 1;
	chunk->addr = (void *)(uintptr_t)le64toh(raw->addr);
	chunk->length = le64toh(raw->length);
	chunk->span.length = chunk->length;
	chunk->flags = flags & KVP_JOURNAL_ENTRY_READ_ONLY ? KVP_BUFFER_READ_ONLY : 0;
	memcpy(chunk->span.domain, transaction->domain, sizeof(chunk->span.domain));
	chunk->span.id = le32toh(raw->pool);
	chunk->span.generation = le64toh(raw->generation);
	chunk->span.offset = le64toh(raw->offset);
	if (flags & ~KVP_JOURNAL_ENTRY_READ_ONLY)
		return bad(journal, "the entry has unknown flags 0x%" PRIx32, flags);
	if (!chunk->length || chunk->span.offset + chunk->length < chunk->length)
		return bad(journal, "the entry's span is empty, or wraps");
	return 0;
}

static int apply_intent(struct kvp_journal *journal, const struct kvp_journal_intent_record *raw,
			struct kvp_journal_record *record)
{
	const struct kvp_journal_transaction *transaction;
	const uint32_t n = journal->info.entries, device = le32toh(raw->device);
	const struct kvp_journal_numbers *devices;
	struct kvp_journal_numbers *numbers;
	struct kvp_journal_entry *entry;
	int err;

	err = find(journal, le64toh(raw->transaction), record);
	if (err)
		return err;
	transaction = &journal->transactions[record->position];
	numbers = &journal->entry_numbers[record->position];
	devices = &journal->device_numbers[record->position];
	if (transaction->committed || numbers->count == transaction->entries ||
	    le32toh(raw->entry) != numbers->count)
		return bad(journal, "entry %" PRIu32 " is not the next of transaction %" PRIu64,
			   le32toh(raw->entry), transaction->number);
	if (device >= devices->count)
		return bad(journal, "device %" PRIu32 " of transaction %" PRIu64
			   " is not known, %" PRIu32 " are", device, transaction->number,
			   devices->count);
	if (kvp_array_grow(&journal->entries, n, &journal->entry_room, sizeof(*entry)))
		return -ENOMEM;
	entry = &journal->entries[n];
	*entry = (struct kvp_journal_entry){ 0 };
	err = fill_entry(journal, raw, transaction,
			 &journal->devices[devices->positions[device]], entry);
	if (!err)
		err = number(numbers, n);
	if (err)
		return err;
	record->entry = entry->number;
	record->position = n;
	journal->info.entries++;
	journal->info.open_entries++;
	return 0;
}

/* The entry that a record is about: one that may be registered. */
static int find_entry(struct kvp_journal *journal, uint64_t transaction, uint32_t number,
		      struct kvp_journal_record *record)
{
	const struct kvp_journal_numbers *numbers;
	int err;

	err = find(journal, transaction, record);
	if (err)
		return err;
	record->entry = number;
	numbers = &journal->entry_numbers[record->position];
	if (number >= numbers->count)
		return bad(journal, "entry %" PRIu32 " of transaction %" PRIu64
			   " was never intended", number, transaction);
	record->position = numbers->positions[number];
	if (!journal->entries[record->position].open)
		return bad(journal, "entry %" PRIu32 " of transaction %" PRIu64 " is %s already",
			   number, transaction,
			   kvp_journal_state_name(journal->entries[record->position].state));
	return 0;
}

static void close_entry(struct kvp_journal *journal, struct kvp_journal_entry *entry,
			enum kvp_journal_state state)
{
	entry->state = state;
	entry->open = 0;
	journal->info.open_entries--;
}

static int apply_outcome(struct kvp_journal *journal, const struct kvp_journal_outcome_record *raw,
			 struct kvp_journal_record *record)
{
	struct kvp_journal_entry *entry;
	int err;

	err = find_entry(journal, le64toh(raw->transaction), le32toh(raw->entry), record);
	if (err)
		return err;
	entry = &journal->entries[record->position];
	entry->code = (int32_t)le32toh((uint32_t)raw->code);
	record->code = entry->code;
	if (record->type == KVP_JOURNAL_UNDONE) {
		if (entry->code)
			entry->state = KVP_JOURNAL_ENTRY_QUARANTINED;
		else
			close_entry(journal, entry, KVP_JOURNAL_ENTRY_UNDONE);
		return 0;
	}
	if (entry->state != KVP_JOURNAL_ENTRY_INTENDED)
		return bad(journal, "entry %" PRIu32 " has an outcome, and was %s",
			   record->entry, kvp_journal_state_name(entry->state));
	entry->cookie = le64toh(raw->cookie);
	if (entry->code)
		close_entry(journal, entry, KVP_JOURNAL_ENTRY_REFUSED);
	else
		entry->state = KVP_JOURNAL_ENTRY_REGISTERED;
	return 0;
}

static int apply_commit(struct kvp_journal *journal, uint64_t number,
			struct kvp_journal_record *record)
{
	struct kvp_journal_transaction *transaction;
	const struct kvp_journal_numbers *numbers;
	uint32_t i;
	int err;

	err = find(journal, number, record);
	if (err)
		return err;
	transaction = &journal->transactions[record->position];
	numbers = &journal->entry_numbers[record->position];
	for (i = 0; i < numbers->count; i++)
		if (journal->entries[numbers->positions[i]].state != KVP_JOURNAL_ENTRY_REGISTERED)
			break;
	if (transaction->committed || i != transaction->entries)
		return bad(journal, "transaction %" PRIu64 " is committed with %" PRIu32
			   " of %" PRIu32 " entries, or twice", number, i, transaction->entries);
	transaction->committed = 1;
	numbers = &journal->pool_numbers[record->position];
	for (i = 0; i < numbers->count; i++)
		journal->pools[numbers->positions[i]].committed = 1;
	return 0;
}

static int apply_end(struct kvp_journal *journal, uint64_t number,
		     struct kvp_journal_record *record)
{
	const struct kvp_journal_numbers *numbers;
	uint32_t i;
	int err;

	err = find(journal, number, record);
	if (err)
		return err;
	numbers = &journal->entry_numbers[record->position];
	/* Records of undoing may be missing where they could not be written. */
	for (i = 0; i < numbers->count; i++)
		if (journal->entries[numbers->positions[i]].open)
			close_entry(journal, &journal->entries[numbers->positions[i]],
				    KVP_JOURNAL_ENTRY_UNDONE);
	journal->transactions[record->position].ended = 1;
	journal->info.open_transactions--;
	return 0;
}

int kvp_journal_apply(struct kvp_journal *journal, const union kvp_journal_any_record *raw,
		      struct kvp_journal_record *record)
{
	int err;

	switch (record->type) {
	case KVP_JOURNAL_FILE:
		return apply_file(journal, &raw->file);
	case KVP_JOURNAL_BEGIN:
		return apply_begin(journal, &raw->begin, record);
	case KVP_JOURNAL_POOL:
		return apply_pool(journal, &raw->pool, record);
	case KVP_JOURNAL_DEVICE:
		return apply_device(journal, &raw->device, record);
	case KVP_JOURNAL_INTENT:
		return apply_intent(journal, &raw->intent, record);
	case KVP_JOURNAL_OUTCOME:
	case KVP_JOURNAL_UNDONE:
		return apply_outcome(journal, &raw->outcome, record);
	case KVP_JOURNAL_UNDO:
		err = find_entry(journal, le64toh(raw->undo.transaction),
				 le32toh(raw->undo.entry), record);
		if (!err)
			journal->entries[record->position].state = KVP_JOURNAL_ENTRY_UNDOING;
		return err;
	case KVP_JOURNAL_COMMIT:
		return apply_commit(journal, le64toh(raw->mark.transaction), record);
	case KVP_JOURNAL_END:
		return apply_end(journal, le64toh(raw->mark.transaction), record);
	}
	return bad(journal, "type %u is unknown", (unsigned int)record->type);
}

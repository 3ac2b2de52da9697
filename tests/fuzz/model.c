// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#define XXH_INLINE_ALL
#define XXH_FORCE_MEMORY_ACCESS 0
#include <xxhash.h>

#include "fuzz.h"
#include "model.h"

/* Bytes of the header, as docs/journal.md numbers them. */
enum { AT_MAGIC = 0, AT_CHECKSUM = 4, AT_VERSION = 8, AT_TYPE = 10, AT_LENGTH = 12,
       AT_SEQUENCE = 16, HEADER = 24 };

enum { FILE_RECORD = 1, BEGIN, POOL, DEVICE, INTENT, OUTCOME, COMMIT, UNDO, UNDONE, END };

static uint64_t get(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | bytes[size];
	return value;
}

static void put(uint8_t *bytes, size_t size, uint64_t value)
{
	for (; size--; value >>= 8)
		*bytes++ = (uint8_t)value;
}

size_t model_record_size(unsigned int type)
{
	static const size_t sizes[] = { 0, 104, 104, 48, 168, 88, 48, 32, 40, 48, 32 };

	return type < sizeof(sizes) / sizeof(*sizes) ? sizes[type] : 0;
}

static uint32_t checksum(const uint8_t *record, size_t size)
{
	return (uint32_t)XXH3_64bits(record + AT_VERSION, size - AT_VERSION);
}

bool model_file_begins(const uint8_t *bytes, size_t size, size_t at)
{
	return size - at >= HEADER && get(bytes + at + AT_MAGIC, 4) == 0x4a50564b &&
	       get(bytes + at + AT_VERSION, 2) == 1 && get(bytes + at + AT_TYPE, 2) == FILE_RECORD &&
	       !get(bytes + at + AT_SEQUENCE, 8);
}

void model_seal(uint8_t *bytes, size_t size)
{
	uint64_t sequence = 0;
	size_t at, length;

	for (at = 0; size - at >= HEADER; at += length) {
		uint8_t *record = bytes + at;

		length = model_record_size((unsigned int)get(record + AT_TYPE, 2));
		if (!length || length > size - at)
			return;
		/* A first record further on is that of the next file, if it says 0. */
		if (get(record + AT_TYPE, 2) == FILE_RECORD && !get(record + AT_SEQUENCE, 8))
			sequence = 0;
		put(record + AT_MAGIC, 4, 0x4a50564b);
		put(record + AT_VERSION, 2, 1);
		put(record + AT_LENGTH, 4, length);
		put(record + AT_SEQUENCE, 8, sequence++);
		put(record + AT_CHECKSUM, 4, checksum(record, length));
	}
}

static bool is_whole(const uint8_t *record, size_t left, uint64_t sequence)
{
	const size_t length = left < HEADER ? 0 :
		model_record_size((unsigned int)get(record + AT_TYPE, 2));

	return length && length <= left && get(record + AT_MAGIC, 4) == 0x4a50564b &&
	       get(record + AT_VERSION, 2) == 1 && get(record + AT_LENGTH, 4) == length &&
	       get(record + AT_SEQUENCE, 8) == sequence &&
	       get(record + AT_CHECKSUM, 4) == checksum(record, length);
}

static void intent(struct model_file *file, const uint8_t *record)
{
	struct model_entry *entry = &file->entries[file->entry_count++];
	uint64_t number = get(record + 40, 4);
	uint32_t i;

	fuzz_assert(file->entry_count < MODEL_ENTRIES);
	*entry = (struct model_entry){
		.transaction = get(record + 24, 8),
		.number = (uint32_t)get(record + 32, 4),
		.read_only = get(record + 44, 4) & 1,
		.addr = get(record + 48, 8),
		.length = get(record + 56, 8),
		.generation = get(record + 64, 8),
		.offset = get(record + 72, 8),
		.pool = (uint32_t)get(record + 80, 4),
		.open = true,
	};
	for (i = 0; i < file->device_count; i++) {
		const struct model_device *device = &file->devices[i];

		if (device->transaction != entry->transaction || number--)
			continue;
		entry->device = device->device;
		entry->external = device->external;
		strcpy(entry->registrar, device->registrar);
		strcpy(entry->device_name, device->name);
		break;
	}
}

static void device_of(struct model_file *file, const uint8_t *record)
{
	struct model_device *device = &file->devices[file->device_count++];

	fuzz_assert(file->device_count < MODEL_DEVICES);
	*device = (struct model_device){
		.transaction = get(record + 24, 8),
		.device = (uint32_t)get(record + 32, 4),
		.external = get(record + 36, 4) & 1,
	};
	memcpy(device->registrar, record + 40, sizeof(device->registrar) - 1);
	memcpy(device->name, record + 104, sizeof(device->name) - 1);
}

static void outcome(struct model_file *file, const uint8_t *record, bool undone)
{
	const uint32_t code = (uint32_t)get(record + 36, 4);
	uint32_t i;

	for (i = 0; i < file->entry_count; i++) {
		struct model_entry *entry = &file->entries[i];

		if (entry->transaction != get(record + 24, 8) ||
		    entry->number != get(record + 32, 4))
			continue;
		if (!undone)
			entry->cookie = get(record + 40, 8);
		if (undone ? !code : code)
			entry->open = false;
	}
}

static void pool(struct model_file *file, const uint8_t *record)
{
	fuzz_assert(file->pool_count < MODEL_POOLS);
	file->pools[file->pool_count++] = (struct model_pool){
		.transaction = get(record + 24, 8),
		.generation = get(record + 32, 8),
		.id = (uint32_t)get(record + 40, 4),
		.created = get(record + 44, 4) & 1,
		.committed = get(record + 44, 4) & 2,
	};
}

static void mark(struct model_file *file, uint64_t transaction, bool end)
{
	uint32_t i;

	for (i = 0; i < file->pool_count && !end; i++)
		if (file->pools[i].transaction == transaction)
			file->pools[i].committed = true;
	for (i = 0; i < file->entry_count && end; i++)
		if (file->entries[i].transaction == transaction)
			file->entries[i].open = false;
}

static void apply(struct model_file *file, const uint8_t *record, unsigned int type)
{
	switch (type) {
	case FILE_RECORD:
		file->pid = (uint32_t)get(record + 80, 4);
		break;
	case POOL:
		pool(file, record);
		break;
	case DEVICE:
		device_of(file, record);
		break;
	case INTENT:
		intent(file, record);
		break;
	case OUTCOME:
	case UNDONE:
		outcome(file, record, type == UNDONE);
		break;
	case COMMIT:
	case END:
		mark(file, get(record + 24, 8), type == END);
		break;
	}
}

void model_read(struct model_file *file, const uint8_t *bytes, size_t size, size_t limit)
{
	unsigned int type;

	file->bytes = bytes;
	file->size = size;
	file->whole = 0;
	file->records = file->pid = file->entry_count = file->pool_count = 0;
	file->device_count = 0;
	while (file->whole < limit && is_whole(bytes + file->whole, limit - file->whole,
					       file->records)) {
		type = (unsigned int)get(bytes + file->whole + AT_TYPE, 2);
		apply(file, bytes + file->whole, type);
		file->whole += model_record_size(type);
		file->records++;
	}
}

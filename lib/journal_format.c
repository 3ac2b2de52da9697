// SPDX-License-Identifier: LGPL-2.1-or-later
/* A record of the journal: its length, header and checksum. */
#include <endian.h>

/*
 * All of it in here: a call would cost as much as a short checksum. It reads by
 * memcpy(): its own way of unaligned reading breaks the aliasing rules in some releases,
 * and then sums up what was there before a member was stored.
 */
#define XXH_INLINE_ALL
#define XXH_FORCE_MEMORY_ACCESS 0
#include <xxhash.h>

#include "internal.h"
#include "journal.h"

#define SIZE_IS(member, size) \
	_Static_assert(sizeof(((union kvp_journal_any_record *)0)->member) == (size), \
		       "docs/journal.md says so")
SIZE_IS(head, 24);
SIZE_IS(file, 104);
SIZE_IS(begin, 104);
SIZE_IS(pool, 48);
SIZE_IS(device, 168);
SIZE_IS(intent, 88);
SIZE_IS(outcome, 48);
SIZE_IS(undo, 40);
SIZE_IS(mark, 32);

size_t kvp_journal_record_size(unsigned int type)
{
	switch (type) {
	case KVP_JOURNAL_FILE:
		return sizeof(struct kvp_journal_file_record);
	case KVP_JOURNAL_BEGIN:
		return sizeof(struct kvp_journal_begin_record);
	case KVP_JOURNAL_POOL:
		return sizeof(struct kvp_journal_pool_record);
	case KVP_JOURNAL_DEVICE:
		return sizeof(struct kvp_journal_device_record);
	case KVP_JOURNAL_INTENT:
		return sizeof(struct kvp_journal_intent_record);
	case KVP_JOURNAL_OUTCOME:
	case KVP_JOURNAL_UNDONE:
		return sizeof(struct kvp_journal_outcome_record);
	case KVP_JOURNAL_UNDO:
		return sizeof(struct kvp_journal_undo_record);
	case KVP_JOURNAL_COMMIT:
	case KVP_JOURNAL_END:
		return sizeof(struct kvp_journal_mark_record);
	default:
		return 0;
	}
}

uint32_t kvp_journal_checksum(const void *bytes, size_t size)
{
	const size_t covered = offsetof(struct kvp_journal_head, version);

	return (uint32_t)XXH3_64bits((const unsigned char *)bytes + covered, size - covered);
}

size_t kvp_journal_seal(struct kvp_journal_head *record, enum kvp_journal_type type,
			uint64_t sequence)
{
	const size_t size = kvp_journal_record_size(type);

	*record = (struct kvp_journal_head){
		.magic = htole32(KVP_JOURNAL_MAGIC),
		.version = htole16(KVP_JOURNAL_VERSION),
		.type = htole16((uint16_t)type),
		.length = htole32((uint32_t)size),
		.sequence = htole64(sequence),
	};
	record->checksum = htole32(kvp_journal_checksum(record, size));
	return size;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A second reading of journals, after docs/journal.md and not after the
 * library's code: which entries may be registered, which pools are whose.
 * It believes whole records, whether they make sense or not: that is for the
 * library to say, and the target compares only as far as it said yes.
 */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../lib/kvpool.h"

#define MODEL_FILES 3
#define MODEL_ENTRIES 1024
#define MODEL_POOLS 1024
#define MODEL_DEVICES 1024

struct model_entry {
	uint64_t transaction;
	uint32_t number, pool, device;
	uint64_t addr, length, generation, offset, cookie;
	bool external, read_only, open;
	char registrar[KVP_NAME_SIZE], device_name[KVP_NAME_SIZE];
};

struct model_pool {
	uint64_t transaction, generation;
	uint32_t id;
	bool created, committed;
};

struct model_device {
	uint64_t transaction;
	uint32_t device;
	bool external;
	char registrar[KVP_NAME_SIZE], name[KVP_NAME_SIZE];
};

struct model_file {
	const uint8_t *bytes;
	size_t size;
	size_t whole;		/* so many bytes are whole records */
	uint32_t records;
	uint32_t pid;
	uint32_t entry_count, pool_count, device_count;
	struct model_entry entries[MODEL_ENTRIES];
	struct model_pool pools[MODEL_POOLS];
	struct model_device devices[MODEL_DEVICES];
};

/* Read a file as far as `limit`. */
void model_read(struct model_file *file, const uint8_t *bytes, size_t size, size_t limit);

/* Bytes of a record of this type, 0: there is none. */
size_t model_record_size(unsigned int type);
/* Whether the first record of a file begins at `at`, with sequence 0. */
bool model_file_begins(const uint8_t *bytes, size_t size, size_t at);
/* Make headers right as far as there are records: magic, length, sequence and checksum. */
void model_seal(uint8_t *bytes, size_t size);

#endif /* FUZZ_MODEL_H */

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes to journals that keep them journals: the bytes of a record, which
 * records there are and in which order, then the headers and checksums made
 * right. Blind changes would never get past a checksum. One in eight is left
 * wrong, as a disk may leave it.
 */
#include <string.h>

#include "fuzz.h"
#include "model.h"

#define RECORDS 1024
#define HEADER 24
#define AT_TYPE 10

static uint32_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return limit ? (random_state >> 8) % limit : 0;
}

/* Where records start, and where the last one ends. */
static unsigned int borders(const uint8_t *data, size_t size, size_t at[RECORDS + 1])
{
	unsigned int count = 0;
	size_t length;

	for (at[0] = 0; count < RECORDS && size - at[count] >= HEADER; count++) {
		length = model_record_size(data[at[count] + AT_TYPE] | data[at[count] + AT_TYPE + 1] << 8);
		if (!length || length > size - at[count])
			break;
		at[count + 1] = at[count] + length;
	}
	return count;
}

/* Put `size` bytes into a hole made at `at`. */
static size_t insert(uint8_t *data, size_t size, size_t max_size, size_t at, const uint8_t *bytes,
		     size_t count)
{
	if (size + count > max_size)
		return size;
	memmove(data + at + count, data + at, size - at);
	memcpy(data + at, bytes, count);
	return size + count;
}

static size_t repeat(uint8_t *data, size_t size, size_t max_size, const size_t *at,
		     unsigned int count)
{
	const unsigned int from = below(count), to = below(count + 1);
	uint8_t copy[256];

	memcpy(copy, data + at[from], at[from + 1] - at[from]);
	return insert(data, size, max_size, at[to], copy, at[from + 1] - at[from]);
}

static size_t drop(uint8_t *data, size_t size, const size_t *at, unsigned int count)
{
	const unsigned int n = below(count);

	memmove(data + at[n], data + at[n + 1], size - at[n + 1]);
	return size - (at[n + 1] - at[n]);
}

/* Another record type over the same bytes: outcome becomes undone, commit becomes end. */
static void retype(uint8_t *data, const size_t *at, unsigned int count)
{
	const unsigned int n = below(count), type = 1 + below(10);

	if (model_record_size(type) == at[n + 1] - at[n])
		data[at[n] + AT_TYPE] = (uint8_t)type;
}

/* A number of a record: a small one, an end of its range, or that of another record. */
static void renumber(uint8_t *data, const size_t *at, unsigned int count)
{
	const unsigned int n = below(count), other = below(count);
	const size_t length = at[n + 1] - at[n], width = below(2) ? 4 : 8;
	const size_t field = HEADER + width * below((uint32_t)((length - HEADER) / width));

	switch (below(4)) {
	case 0:
		memset(data + at[n] + field, 0xff, width);
		break;
	case 1:
		if (field + width <= at[other + 1] - at[other])
			memcpy(data + at[n] + field, data + at[other] + field, width);
		break;
	default:
		memset(data + at[n] + field, 0, width);
		data[at[n] + field] = (uint8_t)below(8);
	}
}

/* The next file begins here. */
static size_t another_file(uint8_t *data, size_t size, size_t max_size, const size_t *at,
			   unsigned int count)
{
	const size_t length = model_record_size(1);
	uint8_t copy[256];

	if (at[1] != length)
		return size;
	memcpy(copy, data, length);
	memset(copy + 16, 0, 8);
	copy[80] = (uint8_t)below(8);
	return insert(data, size, max_size, at[below(count + 1)], copy, length);
}

/* What was behind the first record is over. */
static void start_anew(uint8_t *data, size_t size)
{
	static const char mark[8] = "KVPSTART";
	const size_t at = model_record_size(1);

	if (size >= at + sizeof(mark))
		memcpy(data + at, mark, sizeof(mark));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t at[RECORDS + 1];
	unsigned int count, kind;

	random_state = seed;
	count = borders(data, size, at);
	kind = below(count ? 11 : 1);
	switch (kind) {
	case 1:
		size = repeat(data, size, max_size, at, count);
		break;
	case 2:
		size = drop(data, size, at, count);
		break;
	case 3:
		retype(data, at, count);
		break;
	case 4:
	case 5:
	case 6:
		renumber(data, at, count);
		break;
	case 7:
		size = another_file(data, size, max_size, at, count);
		break;
	case 8:
		size -= below((uint32_t)size);
		break;
	case 9:
		start_anew(data, size);
		break;
	default:
		size = LLVMFuzzerMutate(data, size, max_size);
	}
	if (below(8))
		model_seal(data, size);
	return size;
}

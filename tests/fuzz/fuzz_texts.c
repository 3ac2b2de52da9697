// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texts and structs that come from other processes, /proc and command lines. The
 * first byte says what the rest is.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* memfd_create() */
#endif
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../lib/internal.h"
#include "../../lib/procmaps.h"
#include "../../tools/format.h"
#include "../../tools/maps.h"
#include "../../tools/parse.h"
#include "fuzz.h"

int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

static const char *proc_maps;

/* The library opens /proc/self/maps only. */
int __wrap_open(const char *path, int flags, ...)
{
	int fd = memfd_create("maps", MFD_CLOEXEC);

	fuzz_assert(!strcmp(path, "/proc/self/maps") && flags & O_CLOEXEC);
	fuzz_assert(write(fd, proc_maps, strlen(proc_maps)) == (ssize_t)strlen(proc_maps));
	fuzz_assert(!lseek(fd, 0, SEEK_SET));
	return fd;
}

int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));

/* -------------------------------------------------------------------- spans */

static bool same_span(const struct kvp_span *one, const struct kvp_span *other)
{
	return !strcmp(one->domain, other->domain) && one->id == other->id &&
	       one->generation == other->generation && one->offset == other->offset &&
	       one->length == other->length;
}

/* A text that is a span is the one text of that span: with a zero more it is none. */
static void span_text(const char *text)
{
	struct kvp_span span, untouched;
	char again[KVP_SPAN_TEXT_SIZE + 1];
	const char *colon;

	memset(&span, 0x5c, sizeof(span));
	untouched = span;
	if (kvp_span_parse(text, &span)) {
		fuzz_assert(!memcmp(&span, &untouched, sizeof(span)));
		return;
	}
	fuzz_assert(kvp_name_valid(span.domain) && span.id && span.generation && span.length);
	fuzz_assert(span.offset + span.length > span.offset);
	fuzz_assert(!kvp_span_format(&span, again));
	fuzz_assert(!strcmp(text, again));
	for (colon = strchr(text, ':') + 1; (colon = strchr(colon, ':')); colon++) {
		const size_t head = (size_t)(colon - text) + 1;

		snprintf(again + head, sizeof(again) - head, "0%s", text + head);
		memcpy(again, text, head);
		fuzz_assert(kvp_span_parse(again, &span));
	}
}

/* A span that has a text is what that text says. */
static void span_struct(const char *bytes, size_t size)
{
	struct kvp_span span = { .id = 0 }, again;
	char text[KVP_SPAN_TEXT_SIZE];

	memcpy(&span, bytes, size < sizeof(span) ? size : sizeof(span));
	memset(text, 'x', sizeof(text));
	if (kvp_span_format(&span, text)) {
		fuzz_assert(text[0] == 'x');
		return;
	}
	fuzz_assert_text(text);
	fuzz_assert(!kvp_span_parse(text, &again) && same_span(&span, &again));
}

/* ------------------------------------------------------------------ /proc */

static void process_stat(const char *text)
{
	uint64_t threads = 0, start = 0;
	char state = 0;

	if (!kvp_process_parse(text, &state, &threads, &start))
		fuzz_assert(isalpha((unsigned char)state));
}

/* The first bytes are addresses to ask for, in order. */
static void self_maps(const char *text)
{
	struct kvp_procmaps maps = { 0 };
	char path[24];
	unsigned int i;

	proc_maps = text;
	for (i = 0; i < 6; i++) {
		memset(path, 'x', sizeof(path));
		kvp_procmaps_path(&maps, (uint64_t)i << 12, path, sizeof(path));
		fuzz_assert_text(path);
	}
	kvp_procmaps_end(&maps);
}

static void show_maps(struct maps *maps)
{
	struct backing *backings = calloc(maps->count, sizeof(*backings));
	FILE *out = fuzz_print_start();
	size_t i;

	fuzz_assert(backings);
	for (i = 0; i < maps->count; i++)
		backings[i].segment = &maps->segments[i];
	format_backing_text(out, backings, maps->count);
	fuzz_print_end(out);
	out = fuzz_print_start();
	format_backing_json(out, 1, 0x1000, 0x7000, backings, maps->count);
	fuzz_print_end_json(out);
	free(backings);
}

/* Segments cover the range, in order and without a hole. */
static void other_maps(const char *text)
{
	const uint64_t addr = 0x1000, length = 0x7000;
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text) + 1, "r");
	struct maps maps;
	uint64_t at = addr;
	size_t i;

	fuzz_assert(file);
	if (maps_read(file, addr, length, &maps)) {
		fclose(file);
		return;
	}
	fclose(file);
	for (i = 0; i < maps.count; i++) {
		const struct maps_segment *segment = &maps.segments[i];

		fuzz_assert(segment->addr == at && segment->length && segment->path);
		fuzz_assert(segment->match != MAPS_MATCH_IDENTITY ||
			    (segment->id && segment->generation));
		fuzz_assert(segment->match != MAPS_MATCH_NAME || kvp_name_valid(segment->name));
		at += segment->length;
	}
	fuzz_assert(at == addr + length);
	show_maps(&maps);
	maps_free(&maps);
}

/* ----------------------------------------------------------- the command line */

static void words(const char *text)
{
	const char *blank = strchr(text, ' ');
	uint64_t number, length = 0;
	struct pool_ref ref;
	uint32_t index, id;
	char first[64];
	mode_t mode;

	if (!parse_number(text, 1000, &number))
		fuzz_assert(number <= 1000);
	if (!parse_index(text, &index))
		fuzz_assert(index != KVP_NONE);
	if (!parse_size(text, &number))
		fuzz_assert(number);
	if (!parse_mode(text, &mode))
		fuzz_assert(!(mode & ~(mode_t)0666));
	if (!parse_identity(text, &id, &number))
		fuzz_assert(id && number);
	if (!parse_pool(text, &ref))
		fuzz_assert(ref.name[0] ? kvp_name_valid(ref.name) && !ref.id : ref.id > 0);
	if (!parse_range(text, NULL, &number, &length))
		fuzz_assert(length && number + length > number);
	if (!blank || (size_t)(blank - text) >= sizeof(first))
		return;
	memcpy(first, text, (size_t)(blank - text));
	first[blank - text] = '\0';
	if (!parse_range(first, blank + 1, &number, &length))
		fuzz_assert(length && number + length >= number);
}

/* ------------------------------------------------------------------- options */

/* A struct that is as long as it says, or as long as there are bytes. */
static void options(const char *bytes, size_t size)
{
	struct kvp_options known;
	size_t given = 0, i;
	char *copy;
	int err;

	memcpy(&given, bytes, size < 2 ? size : 2);
	copy = calloc(1, given > sizeof(given) ? given : sizeof(given));
	fuzz_assert(copy);
	memcpy(copy, &given, sizeof(given));
	for (i = sizeof(given); i < given && i - sizeof(given) + 2 < size; i++)
		copy[i] = bytes[i - sizeof(given) + 2];
	err = kvp_options_copy(&known, sizeof(known), copy);
	fuzz_assert(err == 0 || err == -EINVAL || err == -E2BIG);
	fuzz_assert((err == -EINVAL) == (given < sizeof(given)));
	if (!err) {
		fuzz_assert(known.struct_size == sizeof(known));
		for (i = sizeof(known); i < given; i++)
			fuzz_assert(!copy[i]);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return -1;
	/* Of its own, so that reading past its end is noticed. */
	text = malloc(size);
	fuzz_assert(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0]) {
	case 's':
		span_text(text);
		break;
	case 'S':
		span_struct(text, size - 1);
		break;
	case 'p':
		process_stat(text);
		break;
	case 'm':
		self_maps(text);
		break;
	case 'M':
		other_maps(text);
		break;
	case 'w':
		words(text);
		break;
	case 'o':
		options(text, size - 1);
		break;
	default:
		free(text);
		return -1;
	}
	free(text);
	return 0;
}

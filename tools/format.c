// SPDX-License-Identifier: GPL-2.0-only
/* What all printing shares. No state, and no question to the kernel. */
#include <inttypes.h>

#include "format.h"

const char *format_size(uint64_t bytes, char text[FORMAT_SIZE_TEXT])
{
	static const char suffixes[] = "KMGTPE";
	unsigned int step = 0, shift;
	uint64_t whole = bytes, tenths = 0, rest;

	while (step < sizeof(suffixes) - 1 && bytes >> (10 * step) >= 1024)
		step++;
	if (!step) {
		snprintf(text, FORMAT_SIZE_TEXT, "%" PRIu64, bytes);
		return text;
	}
	shift = 10 * step;
	whole = bytes >> shift;
	/* The rest is below 2^60 and times ten still fits: 2^60 * 10 < 2^64. */
	rest = bytes & (((uint64_t)1 << shift) - 1);
	tenths = (rest * 10 + ((uint64_t)1 << (shift - 1))) >> shift;
	if (tenths == 10) {
		tenths = 0;
		whole++;
	}
	if (whole == 1024 && step < sizeof(suffixes) - 1) {
		whole = 1;
		step++;
	}
	if (tenths)
		snprintf(text, FORMAT_SIZE_TEXT, "%" PRIu64 ".%u%c", whole, (unsigned int)tenths,
			 suffixes[step - 1]);
	else
		snprintf(text, FORMAT_SIZE_TEXT, "%" PRIu64 "%c", whole, suffixes[step - 1]);
	return text;
}

void format_safe(FILE *out, const char *text)
{
	/* A path of another process may hold anything, escape sequences too. */
	for (; *text; text++)
		putc(*text >= ' ' && *text <= '~' ? *text : '?', out);
}

void format_key(FILE *out, const char *name)
{
	fprintf(out, "%-15s ", name);
}

void format_key_size(FILE *out, const char *name, uint64_t bytes)
{
	char text[FORMAT_SIZE_TEXT];

	format_key(out, name);
	fprintf(out, "%s (%" PRIu64 " bytes)\n", format_size(bytes, text), bytes);
}

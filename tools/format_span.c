// SPDX-License-Identifier: GPL-2.0-only
/* Spans, and what the memory of a process is. */
#include <inttypes.h>
#include <string.h>

#include <json-c/json.h>

#include "format.h"
#include "json.h"

void format_span_text(FILE *out, const char *text, const struct kvp_pool_info *pool,
		      const char *reason)
{
	fprintf(out, "%s: ", text);
	if (reason) {
		fprintf(out, "not live: %s\n", reason);
		return;
	}
	fputs("live, of pool ", out);
	format_pool_line(out, pool);
}

int format_span_json(FILE *out, const char *text, const struct kvp_span *span,
		     const struct kvp_pool_info *pool, const char *reason)
{
	struct json json = json_new();

	json_text(&json, "span", text);
	json_text(&json, "domain", span->domain);
	json_identity(&json, span->id, span->generation);
	json_number(&json, "offset", span->offset);
	json_number(&json, "length", span->length);
	json_flag(&json, "live", !reason);
	if (reason)
		json_text(&json, "reason", reason);
	if (pool)
		json_add(&json, "pool", format_pool_object(pool));
	return json_print(out, json_end(&json), JSON_PAGES);
}

/* ----------------------------------------------- ranges of another process */

static const char *match_name(enum maps_match match)
{
	switch (match) {
	case MAPS_MATCH_IDENTITY:
		return "identity";
	case MAPS_MATCH_NODE:
		return "node";
	case MAPS_MATCH_NAME:
		return "name";
	case MAPS_MATCH_NONE:
		break;
	}
	return NULL;
}

static void backing_pool_text(FILE *out, const struct backing *backing)
{
	const struct maps_segment *segment = backing->segment;

	if (backing->known)
		fprintf(out, "%s id:%" PRIu32 ".%" PRIu64 " domain=%s", backing->pool.name,
			backing->pool.id, backing->pool.generation, backing->pool.domain);
	else if (segment->match == MAPS_MATCH_IDENTITY)
		fprintf(out, "id:%" PRIu32 ".%" PRIu64, segment->id, segment->generation);
	else
		format_safe(out, segment->path);
	fprintf(out, " offset=0x%" PRIx64, segment->offset);
	if (segment->match == MAPS_MATCH_NAME)
		fputs(" (matched by name)", out);
	if (backing->stale)
		fputs(" (ended)", out);
}

void format_backing_text(FILE *out, const struct backing *backings, size_t count)
{
	const struct maps_segment *segment;
	char text[FORMAT_SIZE_TEXT];
	size_t i;

	for (i = 0; i < count; i++) {
		segment = backings[i].segment;
		fprintf(out, "%012" PRIx64 "-%012" PRIx64 "  %7s  %c%c  %s", segment->addr,
			segment->addr + segment->length, format_size(segment->length, text),
			segment->readable ? 'r' : '-', segment->writable ? 'w' : '-',
			kvp_kind_name(segment->kind));
		if (segment->kind == KVP_KIND_POOL || segment->path[0])
			/* Kinds have at most 8 letters. */
			fprintf(out, "%*s", 10 - (int)strlen(kvp_kind_name(segment->kind)), "");
		if (segment->kind == KVP_KIND_POOL)
			backing_pool_text(out, &backings[i]);
		else
			format_safe(out, segment->path);
		putc('\n', out);
	}
}

static void json_backing_pool(struct json *json, const struct backing *backing)
{
	const struct maps_segment *segment = backing->segment;

	if (backing->known)
		json_identity(json, backing->pool.id, backing->pool.generation);
	else if (segment->match == MAPS_MATCH_IDENTITY)
		json_identity(json, segment->id, segment->generation);
	if (match_name(segment->match))
		json_text(json, "matched-by", match_name(segment->match));
	/* Nobody knows when the module could not be asked. */
	if (backing->known || backing->stale)
		json_flag(json, "stale", backing->stale);
	if (backing->known)
		json_add(json, "pool", format_pool_object(&backing->pool));
}

static struct json_object *backing_object(const struct backing *backing)
{
	const struct maps_segment *segment = backing->segment;
	struct json json = json_new();

	json_number(&json, "addr", segment->addr);
	json_number(&json, "length", segment->length);
	json_text(&json, "kind", kvp_kind_name(segment->kind));
	if (segment->kind != KVP_KIND_UNMAPPED) {
		json_flag(&json, "readable", segment->readable);
		json_flag(&json, "writable", segment->writable);
	}
	/* The file offset of anonymous memory is only where it was first mapped. */
	if (segment->kind != KVP_KIND_UNMAPPED && segment->kind != KVP_KIND_ANON)
		json_number(&json, "offset", segment->offset);
	json_tag(&json, "path", segment->path);
	if (segment->kind == KVP_KIND_POOL)
		json_backing_pool(&json, backing);
	return json_end(&json);
}

int format_backing_json(FILE *out, pid_t pid, uint64_t addr, uint64_t length,
			const struct backing *backings, size_t count)
{
	struct json_object *array = json_object_new_array();
	struct json json = json_new();
	size_t i;

	for (i = 0; array && i < count; i++)
		array = json_append(array, backing_object(&backings[i]));
	json_number(&json, "pid", (uint64_t)pid);
	json_number(&json, "addr", addr);
	json_number(&json, "length", length);
	json_add(&json, "segments", array);
	return json_print(out, json_end(&json), JSON_PAGES);
}

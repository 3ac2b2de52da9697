// SPDX-License-Identifier: GPL-2.0-only
/* What the tool prints on stdout. No state, and no question to the kernel. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

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

static const char *lifetime_name(enum kvp_lifetime lifetime)
{
	return lifetime == KVP_LIFETIME_PERSISTENT ? "persistent" : "owner";
}

static const char *placement_name(enum kvp_placement placement)
{
	return placement == KVP_PLACEMENT_STRICT ? "strict" : "preferred";
}

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

#define INDEX_TEXT 12

/* A rank or node, or "-". */
static const char *index_text(uint32_t value, char text[INDEX_TEXT])
{
	if (value == KVP_NONE)
		return "-";
	snprintf(text, INDEX_TEXT, "%" PRIu32, value);
	return text;
}

/* ------------------------------------------------------------------ tables */

#define CELL_SIZE 72
#define MAX_COLUMNS 12

struct column {
	const char *title;
	bool right;		/* numbers */
};

/*
 * Columns as wide as their widest cell: names are up to 63 characters and
 * usually much shorter. Cells lie row after row, `columns` each.
 */
static void print_table(FILE *out, const struct column *columns, size_t column_count,
			const char (*cells)[CELL_SIZE], size_t rows)
{
	size_t width[MAX_COLUMNS], row, col;
	const char *text;

	for (col = 0; col < column_count; col++) {
		width[col] = strlen(columns[col].title);
		for (row = 0; row < rows; row++) {
			size_t length = strlen(cells[row * column_count + col]);

			if (length > width[col])
				width[col] = length;
		}
	}
	/* The title is a row of its own, before the first. */
	for (row = 0; row <= rows; row++) {
		for (col = 0; col < column_count; col++) {
			text = row ? cells[(row - 1) * column_count + col] : columns[col].title;
			if (col)
				fputs("  ", out);
			if (columns[col].right)
				fprintf(out, "%*s", (int)width[col], text);
			else if (col == column_count - 1)
				fputs(text, out);	/* no blanks at the end of a line */
			else
				fprintf(out, "%-*s", (int)width[col], text);
		}
		putc('\n', out);
	}
}

static const struct column list_columns[] = {
	{ "ID", true }, { "GEN", true }, { "NAME", false }, { "DOMAIN", false },
	{ "ROLE", false }, { "RANK", true }, { "SIZE", true }, { "STATE", false },
	{ "OWNER", true }, { "MAPS", true }, { "PINS", true }, { "REG", false },
};

#define LIST_COLUMNS (sizeof(list_columns) / sizeof(list_columns[0]))
_Static_assert(LIST_COLUMNS <= MAX_COLUMNS, "print_table() has room for MAX_COLUMNS");

static void list_row(const struct kvp_pool_info *pool, char (*cell)[CELL_SIZE])
{
	char text[FORMAT_SIZE_TEXT];

	snprintf(*cell++, CELL_SIZE, "%" PRIu32, pool->id);
	snprintf(*cell++, CELL_SIZE, "%" PRIu64, pool->generation);
	snprintf(*cell++, CELL_SIZE, "%s", pool->name);
	snprintf(*cell++, CELL_SIZE, "%s", pool->domain);
	snprintf(*cell++, CELL_SIZE, "%s", or_dash(pool->role));
	snprintf(*cell++, CELL_SIZE, "%s", index_text(pool->rank, text));
	snprintf(*cell++, CELL_SIZE, "%s", format_size(pool->length, text));
	snprintf(*cell++, CELL_SIZE, "%s", kvp_state_name(pool->state));
	if (!pool->owned)
		snprintf(*cell++, CELL_SIZE, "-");
	else if (!pool->owner_pid)
		snprintf(*cell++, CELL_SIZE, "?");	/* of another pid namespace */
	else
		snprintf(*cell++, CELL_SIZE, "%ld", (long)pool->owner_pid);
	snprintf(*cell++, CELL_SIZE, "%" PRIu32, pool->mappings);
	snprintf(*cell++, CELL_SIZE, "%" PRIu32, pool->pinned_blocks);
	snprintf(*cell, CELL_SIZE, "%s", kvp_registration_state_name(pool->registration));
}

int format_list_text(FILE *out, const struct kvp_pool_info *pools, size_t count)
{
	char (*cells)[CELL_SIZE];
	size_t i;

	cells = calloc(count * LIST_COLUMNS + 1, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		list_row(&pools[i], &cells[i * LIST_COLUMNS]);
	print_table(out, list_columns, LIST_COLUMNS, (const char (*)[CELL_SIZE])cells, count);
	free(cells);
	return 0;
}

/* ------------------------------------------------------------- text: a pool */

/* Start a line of "key: value", the values under each other. */
static void key(FILE *out, const char *name)
{
	fprintf(out, "%-15s ", name);
}

static void key_size(FILE *out, const char *name, uint64_t bytes)
{
	char text[FORMAT_SIZE_TEXT];

	key(out, name);
	fprintf(out, "%s (%" PRIu64 " bytes)\n", format_size(bytes, text), bytes);
}

static void format_owner(FILE *out, const struct kvp_pool_info *pool)
{
	key(out, "owner:");
	fprintf(out, "%s uid %lu", pool->owned ? "live session," : "none; the last was",
		(unsigned long)pool->owner_uid);
	if (pool->owner_pid)
		fprintf(out, ", pid %ld", (long)pool->owner_pid);
	else
		fputs(", pid not visible here", out);
	if (pool->owner_start)
		fprintf(out, ", started %" PRIu64 ".%09" PRIu64 " s after boot",
			pool->owner_start / 1000000000, pool->owner_start % 1000000000);
	putc('\n', out);
}

static void format_runs(FILE *out, const struct kvp_pool_info *pool, const struct pin_run *runs,
			size_t count)
{
	char text[FORMAT_SIZE_TEXT];
	uint64_t offset, bytes;
	size_t i;

	key(out, "pinned runs:");
	if (!count)
		fputs("none\n", out);
	for (i = 0; i < count; i++) {
		offset = (uint64_t)runs[i].first_block * pool->block_size;
		bytes = (uint64_t)runs[i].block_count * pool->block_size;
		if (i)
			key(out, "");
		if (runs[i].block_count == 1)
			fprintf(out, "block %" PRIu32, runs[i].first_block);
		else
			fprintf(out, "blocks %" PRIu32 "-%" PRIu64, runs[i].first_block,
				(uint64_t)runs[i].first_block + runs[i].block_count - 1);
		fprintf(out, ", offset 0x%" PRIx64 ", %s\n", offset, format_size(bytes, text));
	}
}

void format_pool_text(FILE *out, const struct kvp_pool_info *pool, const struct pin_run *runs,
		      size_t count)
{
	char text[INDEX_TEXT];

	key(out, "name:");
	fprintf(out, "%s\n", pool->name);
	key(out, "identity:");
	fprintf(out, "id:%" PRIu32 ".%" PRIu64 "\n", pool->id, pool->generation);
	key(out, "domain:");
	fprintf(out, "%s\n", pool->domain);
	key(out, "role:");
	fprintf(out, "%s\n", or_dash(pool->role));
	key(out, "label:");
	format_safe(out, or_dash(pool->label));
	putc('\n', out);
	key(out, "rank:");
	fprintf(out, "%s\n", index_text(pool->rank, text));
	key_size(out, "length:", pool->length);
	key_size(out, "mapped length:", pool->mapped_length);
	key_size(out, "block size:", pool->block_size);
	key(out, "node:");
	if (pool->node == KVP_NONE)
		fputs("none asked for\n", out);
	else
		fprintf(out, "%" PRIu32 ", %s\n", pool->node, placement_name(pool->placement));
	key(out, "lifetime:");
	fprintf(out, "%s\n", lifetime_name(pool->lifetime));
	key(out, "access:");
	fprintf(out, "uid %lu, gid %lu, mode %04o\n", (unsigned long)pool->uid,
		(unsigned long)pool->gid, (unsigned int)pool->mode);
	key(out, "state:");
	fprintf(out, "%s\n", kvp_state_name(pool->state));
	key(out, "registration:");
	fprintf(out, "%s\n", kvp_registration_state_name(pool->registration));
	format_owner(out, pool);
	key(out, "device:");
	if (pool->device)
		fprintf(out, "%" PRIu32 ":%" PRIu32 "\n", pool->device >> 20,
			pool->device & 0xfffff);
	else
		fputs("-\n", out);
	key(out, "mappings:");
	fprintf(out, "%" PRIu32 "\n", pool->mappings);
	key(out, "open files:");
	fprintf(out, "%" PRIu32 "\n", pool->files);
	key(out, "pinned blocks:");
	fprintf(out, "%" PRIu32 " of %" PRIu32 "\n", pool->pinned_blocks, pool->blocks);
	if (runs)
		format_runs(out, pool, runs, count);
}

void format_pool_line(FILE *out, const struct kvp_pool_info *pool)
{
	char text[FORMAT_SIZE_TEXT];

	fprintf(out, "%s id:%" PRIu32 ".%" PRIu64 " domain=%s", pool->name, pool->id,
		pool->generation, pool->domain);
	if (pool->role[0])
		fprintf(out, " role=%s", pool->role);
	if (pool->rank != KVP_NONE)
		fprintf(out, " rank=%" PRIu32, pool->rank);
	fprintf(out, " size=%s state=%s registration=%s\n", format_size(pool->length, text),
		kvp_state_name(pool->state), kvp_registration_state_name(pool->registration));
}

/* ------------------------------------------------------------------- JSON */

/*
 * An object under construction. After a failure everything that is added is
 * dropped, so that one check at the end is enough.
 */
struct json {
	struct json_object *object;
	bool failed;
};

static struct json json_new(void)
{
	struct json json = { .object = json_object_new_object() };

	json.failed = !json.object;
	return json;
}

static void json_add(struct json *json, const char *name, struct json_object *value)
{
	if (!value || json->failed || json_object_object_add(json->object, name, value)) {
		json_object_put(value);
		json->failed = true;
	}
}

static void json_number(struct json *json, const char *name, uint64_t value)
{
	json_add(json, name, json_object_new_uint64(value));
}

static void json_flag(struct json *json, const char *name, bool value)
{
	json_add(json, name, json_object_new_boolean(value));
}

/* Bytes of the UTF-8 character at `text`, 0 when it is none. */
static size_t utf8_length(const unsigned char *text)
{
	size_t length, i;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	for (i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and what lies behind U+10FFFF. */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

/* JSON is UTF-8 and a path need not be: a byte that belongs to no character becomes '?'. */
static void json_text(struct json *json, const char *name, const char *text)
{
	char *copy = strdup(text);
	size_t i, length;

	if (!copy) {
		json->failed = true;
		return;
	}
	for (i = 0; copy[i]; i += length) {
		length = utf8_length((const unsigned char *)copy + i);
		if (!length) {
			copy[i] = '?';
			length = 1;
		}
	}
	json_add(json, name, json_object_new_string(copy));
	free(copy);
}

/* Empty means absent. */
static void json_tag(struct json *json, const char *name, const char *text)
{
	if (text[0])
		json_text(json, name, text);
}

static void json_index(struct json *json, const char *name, uint32_t value)
{
	if (value != KVP_NONE)
		json_number(json, name, value);
}

/* The finished object, NULL when something failed. */
static struct json_object *json_end(struct json *json)
{
	if (json->failed) {
		json_object_put(json->object);
		json->object = NULL;
	}
	return json->object;
}

/* Print and free. NULL: its construction has failed. */
static int json_print(FILE *out, struct json_object *object, int flags)
{
	const char *text = NULL;

	if (object)
		text = json_object_to_json_string_ext(object,
						      flags | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(out, "%s\n", text);
	json_object_put(object);
	return text ? 0 : -ENOMEM;
}

#define JSON_PAGES JSON_C_TO_STRING_PRETTY
#define JSON_LINES JSON_C_TO_STRING_PLAIN

static void json_identity(struct json *json, uint32_t id, uint64_t generation)
{
	json_number(json, "id", id);
	json_number(json, "generation", generation);
}

static void json_pool(struct json *json, const struct kvp_pool_info *pool)
{
	json_identity(json, pool->id, pool->generation);
	json_text(json, "name", pool->name);
	json_text(json, "domain", pool->domain);
	json_tag(json, "role", pool->role);
	json_tag(json, "label", pool->label);
	json_index(json, "rank", pool->rank);
	json_number(json, "length", pool->length);
	json_number(json, "mapped-length", pool->mapped_length);
	json_number(json, "block-size", pool->block_size);
	json_index(json, "node", pool->node);
	json_text(json, "placement", placement_name(pool->placement));
	json_text(json, "lifetime", lifetime_name(pool->lifetime));
	json_number(json, "uid", pool->uid);
	json_number(json, "gid", pool->gid);
	json_number(json, "mode", pool->mode);
	json_text(json, "state", kvp_state_name(pool->state));
	json_text(json, "registration", kvp_registration_state_name(pool->registration));
	json_number(json, "blocks", pool->blocks);
	json_number(json, "pinned-blocks", pool->pinned_blocks);
	json_number(json, "mappings", pool->mappings);
	json_number(json, "files", pool->files);
	json_flag(json, "owned", pool->owned);
	json_number(json, "owner-uid", pool->owner_uid);
	if (pool->owner_pid)
		json_number(json, "owner-pid", (uint64_t)pool->owner_pid);
	if (pool->owner_start)
		json_number(json, "owner-start", pool->owner_start);
	if (pool->device)
		json_number(json, "device", pool->device);
}

static struct json_object *pool_object(const struct kvp_pool_info *pool)
{
	struct json json = json_new();

	json_pool(&json, pool);
	return json_end(&json);
}

/* An array, element by element; NULL once something failed. */
static struct json_object *array_add(struct json_object *array, struct json_object *element)
{
	if (array && element && !json_object_array_add(array, element))
		return array;
	json_object_put(element);
	json_object_put(array);
	return NULL;
}

int format_list_json(FILE *out, const struct kvp_pool_info *pools, size_t count)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; array && i < count; i++)
		array = array_add(array, pool_object(&pools[i]));
	return json_print(out, array, JSON_PAGES);
}

static struct json_object *runs_array(const struct pin_run *runs, size_t count)
{
	struct json_object *array = json_object_new_array();
	struct json run;
	size_t i;

	for (i = 0; array && i < count; i++) {
		run = json_new();
		json_number(&run, "first-block", runs[i].first_block);
		json_number(&run, "block-count", runs[i].block_count);
		array = array_add(array, json_end(&run));
	}
	return array;
}

int format_pool_json(FILE *out, const struct kvp_pool_info *pool, const struct pin_run *runs,
		     size_t count)
{
	struct json json = json_new();

	json_pool(&json, pool);
	if (runs)
		json_add(&json, "pins", runs_array(runs, count));
	return json_print(out, json_end(&json), JSON_PAGES);
}

/* ------------------------------------------------------------------ totals */

void format_stats_text(FILE *out, const struct kvp_stats *stats)
{
	const struct {
		const char *name;
		uint32_t value;
	} counts[] = {
		{ "pools:", stats->pools },
		{ "orphans:", stats->orphans },
		{ "dying:", stats->dying },
		{ "sessions:", stats->sessions },
		{ "max pools:", stats->max_pools },
	};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		key(out, counts[i].name);
		fprintf(out, "%" PRIu32 "\n", counts[i].value);
	}
	key_size(out, "held:", stats->bytes);
	key_size(out, "of it dying:", stats->dying_bytes);
	key_size(out, "max held:", stats->max_bytes);
	key_size(out, "available:", stats->available);
	key_size(out, "min available:", stats->min_available);
	key(out, "created:");
	fprintf(out, "%" PRIu64 "\n", stats->created);
	key(out, "destroyed:");
	fprintf(out, "%" PRIu64 "\n", stats->destroyed);
	key(out, "failed:");
	fprintf(out, "%" PRIu64 "\n", stats->failed);
}

int format_stats_json(FILE *out, const struct kvp_stats *stats)
{
	struct json json = json_new();

	json_number(&json, "pools", stats->pools);
	json_number(&json, "orphans", stats->orphans);
	json_number(&json, "dying", stats->dying);
	json_number(&json, "bytes", stats->bytes);
	json_number(&json, "dying-bytes", stats->dying_bytes);
	json_number(&json, "max-bytes", stats->max_bytes);
	json_number(&json, "max-pools", stats->max_pools);
	json_number(&json, "min-available", stats->min_available);
	json_number(&json, "available", stats->available);
	json_number(&json, "created", stats->created);
	json_number(&json, "destroyed", stats->destroyed);
	json_number(&json, "failed", stats->failed);
	json_number(&json, "sessions", stats->sessions);
	return json_print(out, json_end(&json), JSON_PAGES);
}

/* ----------------------------------------------------------------- reserve */

static const char *reserve_policy_name(enum kvp_reserve_policy policy)
{
	return policy == KVP_RESERVE_ONLY ? "only" : "first";
}

void format_reserve_text(FILE *out, const struct kvp_reserve *reserve)
{
	char text[3][FORMAT_SIZE_TEXT];
	size_t i;

	key(out, "policy:");
	fprintf(out, "%s\n", reserve_policy_name(reserve->policy));
	key_size(out, "default quota:", reserve->quota);
	for (i = 0; i < reserve->node_count; i++) {
		const struct kvp_reserve_node *node = &reserve->nodes[i];

		fprintf(out, "node %" PRIu32 ": %s of %s ready, %s to clear\n", node->node,
			format_size(node->ready, text[0]), format_size(node->target, text[1]),
			format_size(node->clearing, text[2]));
	}
	for (i = 0; i < reserve->user_count; i++) {
		const struct kvp_reserve_user *user = &reserve->users[i];

		fprintf(out, "uid %u: %s of %s used\n", user->uid,
			format_size(user->used, text[0]), format_size(user->quota, text[1]));
	}
}

static struct json_object *reserve_nodes(const struct kvp_reserve *reserve)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; array && i < reserve->node_count; i++) {
		struct json json = json_new();

		json_number(&json, "node", reserve->nodes[i].node);
		json_number(&json, "target", reserve->nodes[i].target);
		json_number(&json, "ready", reserve->nodes[i].ready);
		json_number(&json, "clearing", reserve->nodes[i].clearing);
		array = array_add(array, json_end(&json));
	}
	return array;
}

static struct json_object *reserve_users(const struct kvp_reserve *reserve)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; array && i < reserve->user_count; i++) {
		struct json json = json_new();

		json_number(&json, "uid", reserve->users[i].uid);
		json_number(&json, "quota", reserve->users[i].quota);
		json_number(&json, "used", reserve->users[i].used);
		array = array_add(array, json_end(&json));
	}
	return array;
}

int format_reserve_json(FILE *out, const struct kvp_reserve *reserve)
{
	struct json json = json_new();

	json_text(&json, "policy", reserve_policy_name(reserve->policy));
	json_number(&json, "quota", reserve->quota);
	json_add(&json, "nodes", reserve_nodes(reserve));
	json_add(&json, "users", reserve_users(reserve));
	return json_print(out, json_end(&json), JSON_PAGES);
}

/* ------------------------------------------------------------------ events */

void format_event_text(FILE *out, const char *event, uint32_t id, uint64_t generation,
		       const struct kvp_pool_info *pool)
{
	fprintf(out, "%-8s", event);
	if (pool) {
		format_pool_line(out, pool);
		return;
	}
	if (id)
		fprintf(out, "id:%" PRIu32 ".%" PRIu64, id, generation);
	else
		fputs("events were lost, the pools that exist now follow", out);
	putc('\n', out);
}

int format_event_json(FILE *out, const char *event, uint32_t id, uint64_t generation,
		      const struct kvp_pool_info *pool)
{
	struct json json = json_new();

	json_text(&json, "event", event);
	if (id)
		json_identity(&json, id, generation);
	if (pool)
		json_add(&json, "pool", pool_object(pool));
	return json_print(out, json_end(&json), JSON_LINES);
}

void format_progress_text(FILE *out, uint32_t id, uint64_t generation, unsigned int percent)
{
	fprintf(out, "progress id:%" PRIu32 ".%" PRIu64 " %u%%\n", id, generation, percent);
}

int format_progress_json(FILE *out, uint32_t id, uint64_t generation, unsigned int percent)
{
	struct json json = json_new();

	json_text(&json, "event", "progress");
	json_identity(&json, id, generation);
	json_number(&json, "progress", percent);
	return json_print(out, json_end(&json), JSON_LINES);
}

int format_destroyed_json(FILE *out, uint32_t id, uint64_t generation,
			  const struct kvp_pool_info *pool)
{
	struct json json = json_new();

	json_identity(&json, id, generation);
	if (pool)
		json_add(&json, "pool", pool_object(pool));
	return json_print(out, json_end(&json), JSON_PAGES);
}

/* ------------------------------------------------------------------- spans */

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
		json_add(&json, "pool", pool_object(pool));
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
		json_add(json, "pool", pool_object(&backing->pool));
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
		array = array_add(array, backing_object(&backings[i]));
	json_number(&json, "pid", (uint64_t)pid);
	json_number(&json, "addr", addr);
	json_number(&json, "length", length);
	json_add(&json, "segments", array);
	return json_print(out, json_end(&json), JSON_PAGES);
}

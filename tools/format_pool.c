// SPDX-License-Identifier: GPL-2.0-only
/* Pools: as a table, whole, in a line, and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "format.h"
#include "json.h"

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

/* ------------------------------------------------------------ text: a pool */

static void format_owner(FILE *out, const struct kvp_pool_info *pool)
{
	format_key(out, "owner:");
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

	format_key(out, "pinned runs:");
	if (!count)
		fputs("none\n", out);
	for (i = 0; i < count; i++) {
		offset = (uint64_t)runs[i].first_block * pool->block_size;
		bytes = (uint64_t)runs[i].block_count * pool->block_size;
		if (i)
			format_key(out, "");
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

	format_key(out, "name:");
	fprintf(out, "%s\n", pool->name);
	format_key(out, "identity:");
	fprintf(out, "id:%" PRIu32 ".%" PRIu64 "\n", pool->id, pool->generation);
	format_key(out, "domain:");
	fprintf(out, "%s\n", pool->domain);
	format_key(out, "role:");
	fprintf(out, "%s\n", or_dash(pool->role));
	format_key(out, "label:");
	format_safe(out, or_dash(pool->label));
	putc('\n', out);
	format_key(out, "rank:");
	fprintf(out, "%s\n", index_text(pool->rank, text));
	format_key_size(out, "length:", pool->length);
	format_key_size(out, "mapped length:", pool->mapped_length);
	format_key_size(out, "block size:", pool->block_size);
	format_key(out, "node:");
	if (pool->node == KVP_NONE)
		fputs("none asked for\n", out);
	else
		fprintf(out, "%" PRIu32 ", %s\n", pool->node, placement_name(pool->placement));
	format_key(out, "lifetime:");
	fprintf(out, "%s\n", lifetime_name(pool->lifetime));
	format_key(out, "access:");
	fprintf(out, "uid %lu, gid %lu, mode %04o\n", (unsigned long)pool->uid,
		(unsigned long)pool->gid, (unsigned int)pool->mode);
	format_key(out, "state:");
	fprintf(out, "%s\n", kvp_state_name(pool->state));
	format_key(out, "registration:");
	fprintf(out, "%s\n", kvp_registration_state_name(pool->registration));
	format_owner(out, pool);
	format_key(out, "device:");
	if (pool->device)
		fprintf(out, "%" PRIu32 ":%" PRIu32 "\n", pool->device >> 20,
			pool->device & 0xfffff);
	else
		fputs("-\n", out);
	format_key(out, "mappings:");
	fprintf(out, "%" PRIu32 "\n", pool->mappings);
	format_key(out, "open files:");
	fprintf(out, "%" PRIu32 "\n", pool->files);
	format_key(out, "pinned blocks:");
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

struct json_object *format_pool_object(const struct kvp_pool_info *pool)
{
	struct json json = json_new();

	json_pool(&json, pool);
	return json_end(&json);
}

int format_list_json(FILE *out, const struct kvp_pool_info *pools, size_t count)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; array && i < count; i++)
		array = json_append(array, format_pool_object(&pools[i]));
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
		array = json_append(array, json_end(&run));
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

// SPDX-License-Identifier: GPL-2.0-only
/* What happens to pools: events, progress, and what destroying one left. */
#include <inttypes.h>

#include <json-c/json.h>

#include "format.h"
#include "json.h"

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
		json_add(&json, "pool", format_pool_object(pool));
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
		json_add(&json, "pool", format_pool_object(pool));
	return json_print(out, json_end(&json), JSON_PAGES);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Totals of all pools, and the reserve. */
#include <inttypes.h>

#include <json-c/json.h>

#include "format.h"
#include "json.h"

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
		format_key(out, counts[i].name);
		fprintf(out, "%" PRIu32 "\n", counts[i].value);
	}
	format_key_size(out, "held:", stats->bytes);
	format_key_size(out, "of it dying:", stats->dying_bytes);
	format_key_size(out, "max held:", stats->max_bytes);
	format_key_size(out, "available:", stats->available);
	format_key_size(out, "min available:", stats->min_available);
	format_key(out, "created:");
	fprintf(out, "%" PRIu64 "\n", stats->created);
	format_key(out, "destroyed:");
	fprintf(out, "%" PRIu64 "\n", stats->destroyed);
	format_key(out, "failed:");
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

	format_key(out, "policy:");
	fprintf(out, "%s\n", reserve_policy_name(reserve->policy));
	format_key_size(out, "default quota:", reserve->quota);
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
		array = json_append(array, json_end(&json));
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
		array = json_append(array, json_end(&json));
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

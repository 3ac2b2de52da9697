// SPDX-License-Identifier: GPL-2.0-only
/* Building JSON objects with json-c, with one check at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "../lib/kvpool.h"
#include "json.h"

struct json json_new(void)
{
	struct json json = { .object = json_object_new_object() };

	json.failed = !json.object;
	return json;
}

void json_add(struct json *json, const char *name, struct json_object *value)
{
	if (!value || json->failed || json_object_object_add(json->object, name, value)) {
		json_object_put(value);
		json->failed = true;
	}
}

void json_number(struct json *json, const char *name, uint64_t value)
{
	json_add(json, name, json_object_new_uint64(value));
}

void json_flag(struct json *json, const char *name, bool value)
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

void json_text(struct json *json, const char *name, const char *text)
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

void json_tag(struct json *json, const char *name, const char *text)
{
	if (text[0])
		json_text(json, name, text);
}

void json_index(struct json *json, const char *name, uint32_t value)
{
	if (value != KVP_NONE)
		json_number(json, name, value);
}

void json_identity(struct json *json, uint32_t id, uint64_t generation)
{
	json_number(json, "id", id);
	json_number(json, "generation", generation);
}

struct json_object *json_end(struct json *json)
{
	if (json->failed) {
		json_object_put(json->object);
		json->object = NULL;
	}
	return json->object;
}

int json_print(FILE *out, struct json_object *object, int flags)
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

struct json_object *json_append(struct json_object *array, struct json_object *element)
{
	if (array && element && !json_object_array_add(array, element))
		return array;
	json_object_put(element);
	json_object_put(array);
	return NULL;
}

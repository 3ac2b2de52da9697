/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KVPOOLCTL_JSON_H
#define KVPOOLCTL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;

/*
 * An object under construction. After a failure everything that is added is
 * dropped, so that one check at the end is enough.
 */
struct json {
	struct json_object *object;
	bool failed;
};

struct json json_new(void);
/* Takes `value`, also when it fails. NULL is a failure. */
void json_add(struct json *json, const char *name, struct json_object *value);
void json_number(struct json *json, const char *name, uint64_t value);
void json_flag(struct json *json, const char *name, bool value);
/* JSON is UTF-8 and a path need not be: a byte that belongs to no character becomes '?'. */
void json_text(struct json *json, const char *name, const char *text);
/* Empty means absent. */
void json_tag(struct json *json, const char *name, const char *text);
/* KVP_NONE means absent. */
void json_index(struct json *json, const char *name, uint32_t value);
void json_identity(struct json *json, uint32_t id, uint64_t generation);
/* The finished object, NULL when something failed. */
struct json_object *json_end(struct json *json);

/* An array, element by element; NULL once something failed. */
struct json_object *json_append(struct json_object *array, struct json_object *element);

/* Of json-c: over many lines, or one line an object. */
#define JSON_PAGES JSON_C_TO_STRING_PRETTY
#define JSON_LINES JSON_C_TO_STRING_PLAIN
/* Print and free. NULL: its construction has failed, which is -ENOMEM. */
int json_print(FILE *out, struct json_object *object, int flags);

#endif /* KVPOOLCTL_JSON_H */

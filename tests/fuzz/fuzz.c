// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "fuzz.h"

static char *printed;
static size_t printed_size;

void fuzz_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

void fuzz_error_start(struct kvp_error *error)
{
	memset(error, 0x5c, sizeof(*error));
}

void fuzz_error_check(const struct kvp_error *error, int err)
{
	struct kvp_error untouched;

	fuzz_assert(err <= 0);
	if (!err) {
		fuzz_error_start(&untouched);
		fuzz_assert(!memcmp(error, &untouched, sizeof(untouched)));
		return;
	}
	fuzz_assert(error->err == err);
	fuzz_assert_text(error->message);
	fuzz_assert_text(error->advice);
	fuzz_assert_text(error->device);
	fuzz_assert(error->message[0]);
	fuzz_assert(error->phase > KVP_PHASE_NONE && error->phase <= KVP_PHASE_RECOVER);
}

FILE *fuzz_print_start(void)
{
	FILE *out = open_memstream(&printed, &printed_size);

	fuzz_assert(out);
	return out;
}

void fuzz_print_end(FILE *out)
{
	size_t i;

	fclose(out);
	for (i = 0; i < printed_size; i++)
		fuzz_assert(printed[i] == '\n' || (printed[i] >= ' ' && printed[i] <= '~'));
	free(printed);
	printed = NULL;
}

void fuzz_print_end_json(FILE *out)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;

	fclose(out);
	fuzz_assert(tokener);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, printed, (int)printed_size);
	fuzz_assert(object && json_tokener_get_error(tokener) == json_tokener_success);
	json_object_put(object);
	json_tokener_free(tokener);
	free(printed);
	printed = NULL;
}

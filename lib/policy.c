// SPDX-License-Identifier: LGPL-2.1-or-later
/* The policy: what a failed registration means, and saying that it was followed. */
#define _GNU_SOURCE	/* secure_getenv() */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "transaction.h"

KVP_EXPORT const char *kvp_policy_name(enum kvp_policy policy)
{
	switch (policy) {
	case KVP_POLICY_DEFAULT: return "default";
	case KVP_POLICY_FAIL_CLOSED: return "fail_closed";
	case KVP_POLICY_FALLBACK_L2: return "fallback_l2";
	}
	return "unknown";
}

/* The option wins: the environment is not even looked at. */
static int choose(enum kvp_policy given, enum kvp_policy *policy, struct kvp_error *error)
{
	const char *text;

	*policy = given;
	switch (given) {
	case KVP_POLICY_FAIL_CLOSED:
	case KVP_POLICY_FALLBACK_L2:
		return 0;
	case KVP_POLICY_DEFAULT:
		break;
	default:
		return kvp_fail(error, -EINVAL, KVP_PHASE_CONNECT, KVP_NONE, NULL,
				"give a value of enum kvp_policy", "policy %d is unknown",
				(int)given);
	}
	text = secure_getenv("KVPOOL_POLICY");
	*policy = text && !strcmp(text, kvp_policy_name(KVP_POLICY_FALLBACK_L2)) ?
		  KVP_POLICY_FALLBACK_L2 : KVP_POLICY_FAIL_CLOSED;
	if (!text || !*text || !strcmp(text, kvp_policy_name(*policy)))
		return 0;
	return kvp_fail(error, -EINVAL, KVP_PHASE_CONNECT, KVP_NONE, NULL,
			"set it to fail_closed or fallback_l2",
			"KVPOOL_POLICY is '%.100s', which is unknown", text);
}

int kvp_policy_start(struct kvp_ctx *ctx, const struct kvp_options *options,
		     struct kvp_error *error)
{
	ctx->tell = options->log;
	ctx->tell_arg = options->log_arg;
	if (options->client_mode) {
		if (!kvp_label_valid(options->client_mode))
			return kvp_fail(error, -EINVAL, KVP_PHASE_CONNECT, KVP_NONE, NULL,
					"0 to 63 printable ASCII characters",
					"client_mode is no label");
		strcpy(ctx->client_mode, options->client_mode);
	}
	return choose(options->policy, &ctx->policy, error);
}

/* ------------------------------------------------------------------ the line */

/*
 * JSON by hand: the common libraries for it share names of functions, and a
 * process that has one must be able to load this library.
 */

/*
 * Bytes of the character of UTF-8 at `at`; 0: it is none. The NUL is no byte of one.
 */
static unsigned int character(const unsigned char *at)
{
	/* By length: what a shorter one says as well is none. */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int length, i;
	uint32_t code;

	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc0 || at[0] > 0xf4)
		return 0;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	code = at[0] & (0x7fU >> length);
	for (i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3fU);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/*
 * Writes a string. Names in messages are the caller's, of whatever bytes, and a
 * message that is too long is cut, in the middle of a character too.
 */
static void put_string(FILE *to, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned int length;

	fputc('"', to);
	for (; *at; at += length ? length : 1) {
		length = character(at);
		if (!length)
			fputc('?', to);
		else if (*at == '"' || *at == '\\')
			fprintf(to, "\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(to, "\\u%04x", *at);
		else
			fwrite(at, 1, length, to);
	}
	fputc('"', to);
}

static void put_member(FILE *to, const char *name, const char *text)
{
	fprintf(to, ",\"%s\":", name);
	put_string(to, text);
}

static void put_error(FILE *to, const struct kvp_error *error)
{
	put_member(to, "phase", kvp_phase_name(error->phase));
	if (error->index != KVP_NONE)
		fprintf(to, ",\"index\":%" PRIu32, error->index);
	if (error->device[0])
		put_member(to, "device", error->device);
	fprintf(to, ",\"errno\":%d", -error->err);
	put_member(to, "error", error->message);
	put_member(to, "advice", error->advice);
}

static void put_pools(FILE *to, const struct kvp_registration *registration)
{
	uint32_t i;

	fputs(",\"pools\":[", to);
	for (i = 0; i < registration->pool_count; i++) {
		const struct kvp_pool_ref *pool = &registration->pools[i];

		fprintf(to, "%s{\"id\":%" PRIu32 ",\"generation\":%" PRIu64 ",\"name\":",
			i ? "," : "", pool->id, pool->generation);
		put_string(to, pool->name);
		fputc('}', to);
	}
	fputc(']', to);
}

static char *line_of(const struct kvp_registration *registration, const char *domain,
		     const struct kvp_list *list, const struct kvp_error *error)
{
	struct kvp_report report;
	uint64_t length;
	uint32_t count;
	size_t size;
	char *line = NULL;
	FILE *to = open_memstream(&line, &size);
	bool failed;

	if (!to)
		return NULL;
	kvp_report_get(registration->ctx, &report);
	fputs("{\"event\":\"fallback_l2\"", to);
	/* What else is in there may be of another transaction of the name by now. */
	put_member(to, "transaction", registration->report->entry.name);
	put_member(to, "domain", domain);
	put_member(to, "client_mode", report.client_mode);
	put_pools(to, registration);
	length = kvp_list_length(list, &count);
	fprintf(to, ",\"buffers\":%" PRIu32 ",\"length\":%" PRIu64, count, length);
	put_error(to, error);
	put_member(to, "first_error", report.first.message);
	fprintf(to, ",\"fallbacks\":%" PRIu64 "}", report.fallbacks);
	failed = ferror(to);
	if (fclose(to) || failed) {
		free(line);
		return NULL;
	}
	return line;
}

void kvp_policy_tell(const struct kvp_registration *registration, const char *domain,
		     const struct kvp_list *list, const struct kvp_error *error)
{
	const struct kvp_ctx *ctx = registration->ctx;
	char *line;

	if (!ctx->tell)
		return;
	line = line_of(registration, domain, list, error);
	/* A fallback is never without a word. */
	ctx->tell(line ? line : "{\"event\":\"fallback_l2\",\"error\":\"no memory for more\"}",
		  ctx->tell_arg);
	free(line);
}

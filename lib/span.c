// SPDX-License-Identifier: LGPL-2.1-or-later
/* Spans: names of memory that mean the same in every process. */
#include <inttypes.h>
#include <stdio.h>

#include "netlink.h"

static const char prefix[] = "kvpool:";

static bool span_valid(const struct kvp_span *span)
{
	return kvp_name_valid(span->domain) && span->id && span->generation && span->length &&
	       span->length <= UINT64_MAX - span->offset;
}

KVP_EXPORT int kvp_span_format(const struct kvp_span *span, char text[KVP_SPAN_TEXT_SIZE])
{
	/* 7 + 63 + 10 + 3 * 20 digits, 4 colons and the NUL are 145. */
	if (!span_valid(span))
		return -EINVAL;
	snprintf(text, KVP_SPAN_TEXT_SIZE,
		 "%s%s:%" PRIu32 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64, prefix, span->domain,
		 span->id, span->generation, span->offset, span->length);
	return 0;
}

/*
 * Read a number and the byte `end` behind it. One number has one text, so that
 * texts of spans can be compared: no sign, no blank and no leading zero.
 */
static bool parse_number(const char **text, char end, uint64_t max, uint64_t *number)
{
	const char *at = *text;
	uint64_t value = 0, digit;

	if (at[0] == '0' && at[1] >= '0' && at[1] <= '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		digit = (uint64_t)(*at - '0');
		if (value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (at == *text || *at != end)
		return false;
	*number = value;
	*text = end ? at + 1 : at;
	return true;
}

KVP_EXPORT int kvp_span_parse(const char *text, struct kvp_span *span)
{
	struct kvp_span found = { .id = 0 };
	const char *colon;
	uint64_t id;

	if (strncmp(text, prefix, sizeof(prefix) - 1))
		return -EINVAL;
	text += sizeof(prefix) - 1;
	colon = strchr(text, ':');
	if (!colon || (size_t)(colon - text) >= sizeof(found.domain))
		return -EINVAL;
	memcpy(found.domain, text, (size_t)(colon - text));
	text = colon + 1;
	if (!parse_number(&text, ':', UINT32_MAX, &id) ||
	    !parse_number(&text, ':', UINT64_MAX, &found.generation) ||
	    !parse_number(&text, ':', UINT64_MAX, &found.offset) ||
	    !parse_number(&text, '\0', UINT64_MAX, &found.length))
		return -EINVAL;
	found.id = (uint32_t)id;
	if (!span_valid(&found))
		return -EINVAL;
	*span = found;
	return 0;
}

KVP_EXPORT int kvp_span_export(struct kvp_ctx *ctx, const char *domain, const void *addr,
			       uint64_t length, struct kvp_span *span, struct kvp_error *error)
{
	/* A name gives no access: memory that is mapped read only has one too. */
	const struct kvp_buffer buffer = {
		.addr = (void *)(uintptr_t)addr,
		.length = length,
		.flags = KVP_BUFFER_READ_ONLY,
	};

	if (kvp_mappings_find(&ctx->mappings, domain, (uintptr_t)addr, length, span))
		return 0;
	return kvp_locate(ctx, domain, &buffer, KVP_NONE, span, NULL, error);
}

/* A pool that can't be opened ever again has ended, as far as a span goes. */
static int ended(int err, const struct kvp_span *span, struct kvp_error *error)
{
	if (err != -ENOENT && err != -ENODEV && err != -ESTALE)
		return err;
	return kvp_fail(error, -ESTALE, KVP_PHASE_REQUEST, KVP_NONE, NULL,
			"ask whoever sent the span for a new one",
			"pool %" PRIu32 " of generation %" PRIu64 " of domain %s has ended%s",
			span->id, span->generation, span->domain,
			err == -ESTALE ? ", another has its id" :
			err == -ENODEV ? ": it is an orphan or was destroyed" : "");
}

static int import(struct kvp_pool *pool, const struct kvp_span *span, enum kvp_access access,
		  void **addr, struct kvp_error *error)
{
	void *base;
	int err;

	err = kvp_pool_attach(pool, span->id, span->generation, access, error);
	if (err)
		return ended(err, span, error);
	if (strcmp(pool->domain, span->domain))
		return kvp_fail(error, -EXDEV, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"the span was changed on its way: ask its sender for it again",
				"pool %" PRIu32 " of generation %" PRIu64
				" is of domain %s, not %s", span->id, span->generation,
				pool->domain, span->domain);
	if (span->offset > pool->length || span->length > pool->length - span->offset)
		return kvp_fail(error, -ERANGE, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"the span was changed on its way: ask its sender for it again",
				"%" PRIu64 " bytes at offset %" PRIu64 " are not within pool %"
				PRIu32 " of %" PRIu64 " bytes", span->length, span->offset,
				span->id, pool->length);
	err = kvp_pool_map(pool, access, &base, error);
	if (err)
		return ended(err, span, error);
	*addr = (char *)base + span->offset;
	return 0;
}

KVP_EXPORT int kvp_span_import(struct kvp_ctx *ctx, const struct kvp_span *span,
			       enum kvp_access access, struct kvp_pool **result, void **addr,
			       struct kvp_error *error)
{
	struct kvp_pool *pool;
	int err;

	if (!span_valid(span))
		return kvp_fail(error, -EINVAL, KVP_PHASE_REQUEST, KVP_NONE, NULL,
				"make spans with kvp_span_export() or kvp_span_parse()",
				"the span is not valid: domain '%.63s', pool %" PRIu32
				", generation %" PRIu64 ", offset %" PRIu64 ", length %" PRIu64,
				span->domain, span->id, span->generation, span->offset,
				span->length);
	pool = kvp_pool_new(ctx);
	if (!pool)
		return kvp_no_memory(error, KVP_PHASE_REQUEST);
	err = import(pool, span, access, addr, error);
	if (err) {
		kvp_pool_close(pool);
		return err;
	}
	*result = pool;
	return 0;
}

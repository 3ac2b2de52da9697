// SPDX-License-Identifier: LGPL-2.1-or-later
/* The report: what became of a context's transactions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "transaction.h"

void kvp_report_free(struct kvp_ctx *ctx)
{
	struct kvp_report_item *item;

	while ((item = ctx->report.items)) {
		ctx->report.items = item->next;
		free(item);
	}
}

int kvp_report_find(struct kvp_ctx *ctx, const char *name, struct kvp_report_item **result,
		    struct kvp_error *error)
{
	struct kvp_report_item **at, *item;

	if (!name)
		name = "";
	if (!kvp_label_valid(name))
		return kvp_fail(error, -EINVAL, KVP_PHASE_CHECK, KVP_NONE, NULL,
				"0 to 63 printable ASCII characters",
				"the name of a transaction is none");
	pthread_mutex_lock(&ctx->lock);
	for (at = &ctx->report.items; *at && strcmp((*at)->entry.name, name); at = &(*at)->next)
		;
	item = *at ? *at : calloc(1, sizeof(*item));
	if (item && !*at) {
		strcpy(item->entry.name, name);
		*at = item;
	}
	pthread_mutex_unlock(&ctx->lock);
	*result = item;
	return item ? 0 : kvp_fail(error, -ENOMEM, KVP_PHASE_CHECK, KVP_NONE, NULL, NULL,
				   "no memory for the report");
}

static void keep_first(struct kvp_error *first, const struct kvp_error *error)
{
	if (!first->err)
		*first = *error;
}

void kvp_report_note(struct kvp_ctx *ctx, struct kvp_report_item *item,
		     enum kvp_registration_state state, const struct kvp_error *error)
{
	pthread_mutex_lock(&ctx->lock);
	item->entry.state = state;
	switch (state) {
	case KVP_REGISTRATION_COMMITTED:
		item->entry.committed++;
		ctx->report.committed++;
		break;
	case KVP_REGISTRATION_FALLBACK_L2:
		item->entry.fallbacks++;
		ctx->report.fallbacks++;
		break;
	case KVP_REGISTRATION_FAILED:
		item->entry.failures++;
		ctx->report.failures++;
		break;
	default:
		break;
	}
	if (error) {
		keep_first(&item->entry.first, error);
		keep_first(&ctx->report.first, error);
	}
	pthread_mutex_unlock(&ctx->lock);
}

void kvp_report_list(struct kvp_ctx *ctx, struct kvp_report_item *item, const char *domain,
		     const struct kvp_list *list)
{
	uint32_t count;
	const uint64_t length = kvp_list_length(list, &count);

	pthread_mutex_lock(&ctx->lock);
	snprintf(item->entry.domain, sizeof(item->entry.domain), "%s", domain ? domain : "");
	item->entry.buffers = count;
	item->entry.length = length;
	pthread_mutex_unlock(&ctx->lock);
}

KVP_EXPORT void kvp_report_get(struct kvp_ctx *ctx, struct kvp_report *report)
{
	const struct kvp_registration *registration;
	uint32_t i;

	memset(report, 0, sizeof(*report));
	pthread_mutex_lock(&ctx->lock);
	report->policy = ctx->policy;
	memcpy(report->client_mode, ctx->client_mode, sizeof(report->client_mode));
	report->committed = ctx->report.committed;
	report->fallbacks = ctx->report.fallbacks;
	report->failures = ctx->report.failures;
	report->first = ctx->report.first;
	for (registration = ctx->registrations; registration; registration = registration->next)
		for (i = 0; i < registration->count; i++)
			if (registration->entries[i].quarantined)
				report->quarantined++;
			else if (registration->committed)
				report->registered++;
	pthread_mutex_unlock(&ctx->lock);
}

KVP_EXPORT int kvp_report_each(struct kvp_ctx *ctx,
			       int (*each)(const struct kvp_report_entry *entry, void *arg),
			       void *arg)
{
	const struct kvp_report_item *item;
	struct kvp_report_entry *entries;
	uint32_t count = 0, i;
	int ret = 0;

	/* A copy, so that `each` may use the context. Items are never taken off. */
	pthread_mutex_lock(&ctx->lock);
	for (item = ctx->report.items; item; item = item->next)
		count++;
	entries = calloc(count ? count : 1, sizeof(*entries));
	for (i = 0, item = ctx->report.items; entries && item; item = item->next)
		entries[i++] = item->entry;
	pthread_mutex_unlock(&ctx->lock);
	if (!entries)
		return -ENOMEM;
	for (i = 0; i < count && !ret; i++)
		ret = each(&entries[i], arg);
	free(entries);
	return ret;
}

KVP_EXPORT int kvp_report_format(const struct kvp_report_entry *entry, char *text, size_t size)
{
	const bool well = entry->state == KVP_REGISTRATION_COMMITTED ||
			  entry->state == KVP_REGISTRATION_ALLOCATED || !entry->first.err;
	char why[sizeof(struct kvp_error)] = "";

	if (!well)
		kvp_error_format(&entry->first, why, sizeof(why));
	return snprintf(text, size, "%s%s%s, domain %s, %" PRIu32 " buffers, %" PRIu64
			" bytes%s%s", entry->name, entry->name[0] ? ": " : "",
			kvp_registration_state_name(entry->state), entry->domain, entry->buffers,
			entry->length, well ? "" : ": ", why);
}

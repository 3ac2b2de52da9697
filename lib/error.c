// SPDX-License-Identifier: LGPL-2.1-or-later
/* The error struct, and the words for the enums of the public header. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* strerror_r() that returns the text */
#endif
#include <inttypes.h>
#include <stdio.h>

#include "internal.h"

/* A value that a newer module or caller knows: the text is still safe to print. */
static const char unknown[] = "unknown";

static const char *pick(const char *const *names, size_t count, unsigned int value)
{
	return value < count ? names[value] : unknown;
}

KVP_EXPORT const char *kvp_phase_name(enum kvp_phase phase)
{
	static const char *const names[] = {
		[KVP_PHASE_NONE] = "none",
		[KVP_PHASE_CONNECT] = "connect",
		[KVP_PHASE_REQUEST] = "request",
		[KVP_PHASE_LIST] = "list",
		[KVP_PHASE_CHECK] = "check",
		[KVP_PHASE_REGISTER] = "register",
		[KVP_PHASE_COMMIT] = "commit",
		[KVP_PHASE_UNDO] = "undo",
		[KVP_PHASE_JOURNAL] = "journal",
		[KVP_PHASE_RECOVER] = "recover",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)phase);
}

KVP_EXPORT const char *kvp_state_name(enum kvp_state state)
{
	static const char *const names[] = {
		[KVP_STATE_LIVE] = "live",
		[KVP_STATE_ORPHAN] = "orphan",
		[KVP_STATE_DYING] = "dying",
		[KVP_STATE_CREATING] = "creating",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)state);
}

KVP_EXPORT const char *kvp_registration_state_name(enum kvp_registration_state state)
{
	static const char *const names[] = {
		[KVP_REGISTRATION_ALLOCATED] = "allocated",
		[KVP_REGISTRATION_REGISTERING] = "registering",
		[KVP_REGISTRATION_COMMITTED] = "committed",
		[KVP_REGISTRATION_FALLBACK_L2] = "fallback-l2",
		[KVP_REGISTRATION_FAILED] = "failed",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)state);
}

KVP_EXPORT const char *kvp_kind_name(enum kvp_kind kind)
{
	static const char *const names[] = {
		[KVP_KIND_UNMAPPED] = "unmapped",
		[KVP_KIND_POOL] = "pool",
		[KVP_KIND_ANON] = "anon",
		[KVP_KIND_HUGETLB] = "hugetlb",
		[KVP_KIND_SHMEM] = "shmem",
		[KVP_KIND_FILE] = "file",
		[KVP_KIND_DEVICE] = "device",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)kind);
}

KVP_EXPORT const char *kvp_journal_type_name(enum kvp_journal_type type)
{
	static const char *const names[] = {
		[0] = "unknown",
		[KVP_JOURNAL_FILE] = "file",
		[KVP_JOURNAL_BEGIN] = "begin",
		[KVP_JOURNAL_POOL] = "pool",
		[KVP_JOURNAL_DEVICE] = "device",
		[KVP_JOURNAL_INTENT] = "intent",
		[KVP_JOURNAL_OUTCOME] = "outcome",
		[KVP_JOURNAL_COMMIT] = "commit",
		[KVP_JOURNAL_UNDO] = "undo",
		[KVP_JOURNAL_UNDONE] = "undone",
		[KVP_JOURNAL_END] = "end",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)type);
}

KVP_EXPORT const char *kvp_journal_condition_name(enum kvp_journal_condition condition)
{
	static const char *const names[] = {
		[KVP_JOURNAL_WHOLE] = "whole",
		[KVP_JOURNAL_TORN] = "torn",
		[KVP_JOURNAL_DAMAGED] = "damaged",
		[KVP_JOURNAL_NEWER] = "newer",
		[KVP_JOURNAL_FOREIGN] = "foreign",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)condition);
}

KVP_EXPORT const char *kvp_liveness_name(enum kvp_liveness liveness)
{
	static const char *const names[] = {
		[KVP_LIVENESS_UNKNOWN] = "unknown",
		[KVP_LIVENESS_ALIVE] = "alive",
		[KVP_LIVENESS_DEAD] = "dead",
		[KVP_LIVENESS_OTHER_BOOT] = "other-boot",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)liveness);
}

KVP_EXPORT const char *kvp_journal_state_name(enum kvp_journal_state state)
{
	static const char *const names[] = {
		[KVP_JOURNAL_ENTRY_INTENDED] = "intended",
		[KVP_JOURNAL_ENTRY_REFUSED] = "refused",
		[KVP_JOURNAL_ENTRY_REGISTERED] = "registered",
		[KVP_JOURNAL_ENTRY_UNDOING] = "undoing",
		[KVP_JOURNAL_ENTRY_QUARANTINED] = "quarantined",
		[KVP_JOURNAL_ENTRY_UNDONE] = "undone",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)state);
}

KVP_EXPORT const char *kvp_recovery_action_name(enum kvp_recovery_action action)
{
	static const char *const names[] = {
		[KVP_RECOVERY_FILE_ALIVE] = "alive",
		[KVP_RECOVERY_FILE_UNKNOWN] = "unknown",
		[KVP_RECOVERY_FILE_BUSY] = "busy",
		[KVP_RECOVERY_FILE_REFUSED] = "refused",
		[KVP_RECOVERY_FILE_KEPT] = "kept",
		[KVP_RECOVERY_FILE_REMOVED] = "removed",
		[KVP_RECOVERY_ENTRY_GONE] = "entry-gone",
		[KVP_RECOVERY_ENTRY_UNDONE] = "entry-undone",
		[KVP_RECOVERY_ENTRY_QUARANTINED] = "entry-quarantined",
		[KVP_RECOVERY_POOL_GONE] = "pool-gone",
		[KVP_RECOVERY_POOL_DESTROYED] = "pool-destroyed",
		[KVP_RECOVERY_POOL_LEFT] = "pool-left",
		[KVP_RECOVERY_POOL_FAILED] = "pool-failed",
	};

	return pick(names, MNL_ARRAY_SIZE(names), (unsigned int)action);
}

int kvp_fail(struct kvp_error *error, int err, enum kvp_phase phase, uint32_t index,
	     const char *device, const char *advice, const char *format, ...)
{
	va_list args;

	if (!error)
		return err;
	memset(error, 0, sizeof(*error));
	error->err = err;
	error->phase = phase;
	error->index = index;
	snprintf(error->device, sizeof(error->device), "%s", device ? device : "");
	snprintf(error->advice, sizeof(error->advice), "%s", advice ? advice : "");
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return err;
}

/* Where the next part of the line goes; the count goes on when the text is full. */
struct line {
	char *text;
	size_t size;
	size_t used;
};

static void __attribute__((format(printf, 2, 3)))
line_add(struct line *line, const char *format, ...)
{
	const size_t left = line->used < line->size ? line->size - line->used : 0;
	va_list args;
	int added;

	va_start(args, format);
	added = vsnprintf(left ? line->text + line->used : NULL, left, format, args);
	va_end(args);
	if (added > 0)
		line->used += (size_t)added;
}

KVP_EXPORT int kvp_error_format(const struct kvp_error *error, char *text, size_t size)
{
	struct line line = { .text = text, .size = size };
	const char *between = "", *colon;
	char reason[128];

	if (size)
		text[0] = '\0';
	if (error->repeated) {
		line_add(&line, "an earlier failure");
		between = ", ";
	}
	if (error->phase != KVP_PHASE_NONE) {
		line_add(&line, "%sphase %s", between, kvp_phase_name(error->phase));
		between = ", ";
	}
	if (error->device[0]) {
		line_add(&line, "%sdevice %s", between, error->device);
		between = ", ";
	}
	colon = between[0] ? ": " : "";
	if (error->message[0]) {
		line_add(&line, "%s%s", colon, error->message);
		colon = ": ";
	}
	if (error->err)
		line_add(&line, "%s%s (%u)", colon,
			 strerror_r((int)(0u - (unsigned int)error->err), reason, sizeof(reason)),
			 0u - (unsigned int)error->err);
	if (error->advice[0])
		line_add(&line, "%s%s", line.used ? "; " : "", error->advice);
	return (int)line.used;
}

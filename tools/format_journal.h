/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tool prints of journals; conventions as in format.h. */
#ifndef KVPOOLCTL_FORMAT_JOURNAL_H
#define KVPOOLCTL_FORMAT_JOURNAL_H

#include <stdio.h>

#include "../lib/kvpool.h"

struct json_object;

void format_journal_text(FILE *out, const char *path, const struct kvp_journal *journal);
/* The caller's; NULL: no memory. */
struct json_object *format_journal_object(const char *path, const struct kvp_journal *journal);
/* "kvpool:DOMAIN:...", registrar and device of an entry. */
void format_journal_entry(FILE *out, const struct kvp_journal_entry *entry);

#endif /* KVPOOLCTL_FORMAT_JOURNAL_H */

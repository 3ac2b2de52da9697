// SPDX-License-Identifier: LGPL-2.1-or-later
/* The record of a transaction: what has happened to each entry of its plan. */
#include <stdlib.h>

#include "transaction.h"

int kvp_record_init(struct kvp_record *record, uint32_t count)
{
	/* Whole at the start, so that no step fails for memory. */
	record->items = calloc(count ? count : 1, sizeof(*record->items));
	if (!record->items)
		return -ENOMEM;
	record->count = count;
	return 0;
}

void kvp_record_free(struct kvp_record *record)
{
	free(record->items);
	*record = (struct kvp_record){ 0 };
}

enum kvp_step kvp_record_get(const struct kvp_record *record, uint32_t n)
{
	return (enum kvp_step)record->items[n].step;
}

void kvp_record_compact(struct kvp_record *record, uint32_t from, uint32_t to)
{
	record->items[to] = record->items[from];
}

int kvp_record_step(struct kvp_registration *registration, uint32_t n, enum kvp_step step, int code)
{
	struct kvp_record_item *item = &registration->record.items[n];
	int err = 0;

	if (!registration->record.log) {
		item->step = (uint8_t)step;
		return 0;
	}
	switch (step) {
	case KVP_STEP_INTENT:
		/* Not carried out if it can't be written: then it was none. */
		err = kvp_log_intent(registration, n);
		if (err)
			return err;
		break;
	case KVP_STEP_REFUSED:
	case KVP_STEP_REGISTERED:
		err = kvp_log_outcome(registration, n, code);
		break;
	case KVP_STEP_UNDO_INTENT:
		err = kvp_log_undo(registration, n);
		break;
	case KVP_STEP_UNDONE:
	case KVP_STEP_QUARANTINED:
		err = kvp_log_undone(registration, n, code);
		break;
	case KVP_STEP_PLANNED:
		break;
	}
	item->step = (uint8_t)step;
	return err;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The record of a transaction: what has happened to each entry of its plan. */
#include <stdlib.h>

#include "transaction.h"

int kvp_record_init(struct kvp_record *record, uint32_t count)
{
	/* Whole at the start, so that no step fails for memory. */
	record->steps = calloc(count ? count : 1, sizeof(*record->steps));
	record->count = record->steps ? count : 0;
	return record->steps ? 0 : -ENOMEM;
}

void kvp_record_free(struct kvp_record *record)
{
	free(record->steps);
	*record = (struct kvp_record){ 0 };
}

enum kvp_step kvp_record_get(const struct kvp_record *record, uint32_t n)
{
	return (enum kvp_step)record->steps[n];
}

int kvp_record_step(struct kvp_record *record, uint32_t n, enum kvp_step step, int code)
{
	(void)code;
	record->steps[n] = (uint8_t)step;
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arrays that grow. */
#include "internal.h"

#include <stdlib.h>

int kvp_array_grow(void *items, uint32_t count, uint32_t *room, size_t size)
{
	void *array, *old;
	uint32_t more;

	if (count < *room)
		return 0;
	more = *room ? 2 * *room : 16;
	memcpy(&old, items, sizeof(old));
	array = more > *room ? reallocarray(old, more, size) : NULL;
	if (!array)
		return -ENOMEM;
	memcpy(items, &array, sizeof(array));
	*room = more;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0
#include "compat.h"

#ifdef KVPOOL_EXTACK_SLOT_SIZE
#define SLOTS 1024

char *kvpool_extack_slot(void)
{
	static char ring[SLOTS][KVPOOL_EXTACK_SLOT_SIZE];
	static atomic_t next;

	return ring[(u32)atomic_inc_return(&next) % SLOTS];
}
#endif

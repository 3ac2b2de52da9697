// SPDX-License-Identifier: GPL-2.0
#include "internal.h"

atomic64_t kvpool_created;
atomic64_t kvpool_destroyed;
atomic64_t kvpool_failed;

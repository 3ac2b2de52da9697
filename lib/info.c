// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the kernel says about one pool, as a struct. */
#include "netlink.h"

#define FIELD(attribute, type, optional, member) \
	{ KVPOOL_A_POOL_##attribute, KVP_FIELD_##type, optional, \
	  offsetof(struct kvp_pool_info, member) }
#define SIZE_OF(member) sizeof(((struct kvp_pool_info *)0)->member)

/* The members that take a u32 are of these types. */
_Static_assert(SIZE_OF(uid) == 4 && SIZE_OF(gid) == 4 && SIZE_OF(mode) == 4 &&
	       SIZE_OF(owner_pid) == 4 && SIZE_OF(placement) == 4 && SIZE_OF(lifetime) == 4 &&
	       SIZE_OF(state) == 4 && SIZE_OF(registration) == 4, "not the size of a u32");
/* And these enums are handed through. */
_Static_assert((int)KVP_LIFETIME_PERSISTENT == (int)KVPOOL_LIFETIME_PERSISTENT &&
	       (int)KVP_PLACEMENT_STRICT == (int)KVPOOL_PLACEMENT_STRICT &&
	       (int)KVP_STATE_DYING == (int)KVPOOL_STATE_DYING &&
	       (int)KVP_STATE_CREATING == (int)KVPOOL_STATE_CREATING &&
	       (int)KVP_REGISTRATION_FAILED == (int)KVPOOL_REGISTRATION_FAILED,
	       "the enums of kvpool.h and kvpool_netlink.h differ");
_Static_assert(KVP_NAME_SIZE == KVPOOL_NAME_SIZE && KVP_NAME_SIZE == KVPOOL_NAME_MAX + 1,
	       "the name sizes differ");

static const struct kvp_field fields[] = {
	FIELD(ID, U32, false, id),
	FIELD(GENERATION, U64, false, generation),
	FIELD(NAME, NAME, false, name),
	FIELD(DOMAIN, NAME, false, domain),
	FIELD(ROLE, NAME, true, role),
	FIELD(LABEL, NAME, true, label),
	FIELD(RANK, U32, true, rank),
	FIELD(LENGTH, U64, false, length),
	FIELD(MAPPED_LENGTH, U64, false, mapped_length),
	FIELD(BLOCK_SIZE, U32, false, block_size),
	FIELD(NODE, U32, true, node),
	FIELD(PLACEMENT, U32, false, placement),
	FIELD(LIFETIME, U32, false, lifetime),
	FIELD(UID, U32, false, uid),
	FIELD(GID, U32, false, gid),
	FIELD(MODE, U32, false, mode),
	FIELD(STATE, U32, false, state),
	FIELD(REGISTRATION, U32, false, registration),
	FIELD(BLOCKS, U32, false, blocks),
	FIELD(PINNED_BLOCKS, U32, false, pinned_blocks),
	FIELD(MAPPINGS, U32, false, mappings),
	FIELD(FILES, U32, false, files),
	FIELD(OWNED, FLAG, true, owned),
	FIELD(OWNER_UID, U32, true, owner_uid),
	FIELD(OWNER_PID, U32, true, owner_pid),
	FIELD(OWNER_START, U64, true, owner_start),
	FIELD(DEVICE, U32, true, device),
};

int kvp_info_parse(const struct nlmsghdr *message, void *arg)
{
	struct kvp_pool_info *info = arg;

	memset(info, 0, sizeof(*info));
	info->rank = KVP_NONE;
	info->node = KVP_NONE;
	return kvp_fields_parse(message, fields, MNL_ARRAY_SIZE(fields), info);
}

/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */
/* Written by uapi/generate.py from uapi/kvpool.yaml: change that instead. */
#ifndef _UAPI_KVPOOL_NETLINK_H
#define _UAPI_KVPOOL_NETLINK_H

#define KVPOOL_FAMILY_NAME	"kvpool"
#define KVPOOL_FAMILY_VERSION	1

#define KVPOOL_NAME_MAX	63
#define KVPOOL_MCGRP_POOLS	"pools"

/* What happens to a pool when its session closes. */
enum kvpool_lifetime {
	KVPOOL_LIFETIME_OWNER,	/* The pool ends with its last user. */
	KVPOOL_LIFETIME_PERSISTENT,	/* The pool stays until it is destroyed. */
};

/* How binding the NUMA node of a pool is. */
enum kvpool_placement {
	KVPOOL_PLACEMENT_PREFERRED,	/* Other nodes may be used when it is full. */
	KVPOOL_PLACEMENT_STRICT,	/* Creation fails when the node is full. */
};

/* Where a pool is in its life. */
enum kvpool_state {
	KVPOOL_STATE_LIVE,	/* Can be opened and mapped. */
	KVPOOL_STATE_ORPHAN,	/* The owner is gone; others still use it. Not openable. */
	KVPOOL_STATE_DYING,	/* Destroyed; blocks that a device pins are still held. */
	KVPOOL_STATE_CREATING,	/* Has no memory yet: see deferred. */
};

/* State of the pool's registration, as its owner reports it. */
enum kvpool_registration {
	KVPOOL_REGISTRATION_ALLOCATED,
	KVPOOL_REGISTRATION_REGISTERING,
	KVPOOL_REGISTRATION_COMMITTED,
	KVPOOL_REGISTRATION_FALLBACK_L2,
	KVPOOL_REGISTRATION_FAILED,
};

/* How creations use the reserve. */
enum kvpool_reserve_policy {
	KVPOOL_RESERVE_POLICY_FIRST,	/* The reserve first, then the rest of the memory. */
	KVPOOL_RESERVE_POLICY_ONLY,	/* Creation fails when the reserve does not have it all. */
};

enum {
	KVPOOL_A_POOL_PAD = 1,
	/* Descriptor of the caller, open for writing on the control node. */
	KVPOOL_A_POOL_SESSION_FD,
	KVPOOL_A_POOL_ID,
	KVPOOL_A_POOL_GENERATION,	/* Never used by another pool since boot. */
	KVPOOL_A_POOL_NAME,
	KVPOOL_A_POOL_DOMAIN,
	KVPOOL_A_POOL_ROLE,
	KVPOOL_A_POOL_LABEL,
	KVPOOL_A_POOL_RANK,	/* Absent: the pool has no rank. */
	KVPOOL_A_POOL_LENGTH,	/* Bytes asked for (the logical length). */
	KVPOOL_A_POOL_MAPPED_LENGTH,	/* Bytes allocated: length rounded up to whole blocks. */
	KVPOOL_A_POOL_BLOCK_SIZE,	/* Bytes in a block. */
	KVPOOL_A_POOL_NODE,	/* NUMA node; absent: the node of the creating CPU first. */
	KVPOOL_A_POOL_PLACEMENT,
	KVPOOL_A_POOL_LIFETIME,
	KVPOOL_A_POOL_UID,
	KVPOOL_A_POOL_GID,
	KVPOOL_A_POOL_MODE,	/* Permission bits, without execute. */
	KVPOOL_A_POOL_STATE,
	KVPOOL_A_POOL_REGISTRATION,
	KVPOOL_A_POOL_FORCE,	/* Destroy although mapped or pinned. */
	KVPOOL_A_POOL_BLOCKS,
	KVPOOL_A_POOL_PINNED_BLOCKS,	/* Blocks that a device holds pinned now. */
	KVPOOL_A_POOL_MAPPINGS,	/* VMAs that map the pool now. */
	KVPOOL_A_POOL_FILES,	/* Open files of the pool, those that mappings hold included. */
	KVPOOL_A_POOL_OWNED,	/* A live session owns the pool. */
	KVPOOL_A_POOL_OWNER_UID,	/* User that created or claimed the pool. */
	KVPOOL_A_POOL_OWNER_PID,	/* In the reader's pid namespace; 0: not visible there. */
	KVPOOL_A_POOL_OWNER_START,	/* Start time of that process in nanoseconds since boot. */
	KVPOOL_A_POOL_DEVICE,	/* Device number of the node, major << 20 | minor. */
	KVPOOL_A_POOL_FIRST_BLOCK,
	KVPOOL_A_POOL_BLOCK_COUNT,
	KVPOOL_A_POOL_PROGRESS,	/* Per cent of a creation's memory that is there. */
	/* Only reserve the pool: KVPOOL_IOC_FILL allocates its memory, or gives it up. */
	KVPOOL_A_POOL_DEFERRED,

	__KVPOOL_A_POOL_END,
	KVPOOL_A_POOL_MAX = __KVPOOL_A_POOL_END - 1
};

enum {
	KVPOOL_A_STATS_PAD = 1,
	KVPOOL_A_STATS_POOLS,
	KVPOOL_A_STATS_ORPHANS,
	KVPOOL_A_STATS_DYING,
	KVPOOL_A_STATS_BYTES,	/* Bytes held by pools, those of dying pools included. */
	KVPOOL_A_STATS_MAX_BYTES,	/* Module parameter max_bytes as it is in force. */
	KVPOOL_A_STATS_MAX_POOLS,
	KVPOOL_A_STATS_MIN_AVAILABLE,	/* Bytes that creation leaves to the rest of the machine. */
	/* Bytes that creation could use now, before fragmentation. */
	KVPOOL_A_STATS_AVAILABLE,
	KVPOOL_A_STATS_CREATED,	/* Pools created since the module was loaded. */
	KVPOOL_A_STATS_DESTROYED,
	KVPOOL_A_STATS_FAILED,	/* Creations that failed. */
	KVPOOL_A_STATS_SESSIONS,
	/* Bytes of dying pools: on their way back, or pinned by a device. */
	KVPOOL_A_STATS_DYING_BYTES,

	__KVPOOL_A_STATS_END,
	KVPOOL_A_STATS_MAX = __KVPOOL_A_STATS_END - 1
};

enum {
	KVPOOL_A_RESERVE_PAD = 1,
	/* Descriptor of the caller, open for writing on the control node. */
	KVPOOL_A_RESERVE_SESSION_FD,
	KVPOOL_A_RESERVE_POLICY,
	KVPOOL_A_RESERVE_NODE,	/* NUMA node. */
	KVPOOL_A_RESERVE_TARGET,	/* Bytes that the node shall hold cleared. */
	KVPOOL_A_RESERVE_READY,	/* Bytes that are cleared. */
	KVPOOL_A_RESERVE_CLEARING,	/* Bytes that came back from pools, not cleared yet. */
	KVPOOL_A_RESERVE_UID,	/* Absent: quota is that of users without one of their own. */
	KVPOOL_A_RESERVE_QUOTA,	/* Bytes of the reserve that the user may have in pools. */
	KVPOOL_A_RESERVE_USED,	/* Bytes of the reserve that the user has in pools. */

	__KVPOOL_A_RESERVE_END,
	KVPOOL_A_RESERVE_MAX = __KVPOOL_A_RESERVE_END - 1
};

enum {
	/* Create a pool that the session owns. Answers with what pool-get answers. */
	KVPOOL_CMD_POOL_CREATE = 1,
	/* End a pool. EBUSY while it is mapped or pinned, unless forced. */
	KVPOOL_CMD_POOL_DESTROY,
	/* One pool by id (and generation) or by name, or a dump of those the caller could open. */
	KVPOOL_CMD_POOL_GET,
	KVPOOL_CMD_POOL_SET,	/* Change tags, permissions, lifetime or the registration state. */
	/* Make the session the owner of a persistent pool that no session owns. */
	KVPOOL_CMD_POOL_CLAIM,
	KVPOOL_CMD_PIN_GET,	/* Dump the runs of pinned blocks of one pool. */
	KVPOOL_CMD_STATS_GET,	/* Totals and limits. */
	/* id and generation only; ask pool-get, which checks permission. */
	KVPOOL_CMD_POOL_CREATE_NTF,
	KVPOOL_CMD_POOL_DESTROY_NTF,	/* The last block is gone. */
	KVPOOL_CMD_POOL_CHANGE_NTF,
	/* A creation is under way: id, generation, progress. Once a second at most. */
	KVPOOL_CMD_POOL_PROGRESS_NTF,
	/* Set what a node holds, the policy, or a quota; uid without quota takes that away. */
	KVPOOL_CMD_RESERVE_SET,
	/* Dump the policy, then what each node holds, then the users with a quota or memory. */
	KVPOOL_CMD_RESERVE_GET,

	__KVPOOL_CMD_END,
	KVPOOL_CMD_MAX = __KVPOOL_CMD_END - 1
};

#endif /* _UAPI_KVPOOL_NETLINK_H */

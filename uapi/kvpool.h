/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * kvpool ioctl interface.
 *
 * Everything that does not need a descriptor of the caller is generic
 * netlink: see kvpool_netlink.h and kvpool.yaml.
 *
 * Rules of every ioctl here:
 *  - The argument is a pointer to a struct whose first member is its size in
 *    bytes as the caller knows it. A larger struct than the kernel's is taken
 *    when the rest is zero; a smaller one is filled up with zeros.
 *  - Reserved members and unknown flags must be zero.
 *  - There is no padding, no pointer type (addresses are __u64) and no enum.
 *
 * Errors that mean the same everywhere:
 *  ENOTTY      the command is unknown on this node
 *  E2BIG       the struct is larger than the kernel's and the rest is not zero,
 *              or it is larger than a page
 *  EINVAL      the size is smaller than the first version, a reserved member
 *              or an unknown flag is not zero, or a value is out of range
 *  EFAULT      an address of the caller can't be read or written
 *  EINTR       a fatal signal arrived while waiting for a lock
 *  ENOMEM      the kernel has no memory for the request itself
 */
#ifndef _UAPI_KVPOOL_H
#define _UAPI_KVPOOL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Bytes in a block: the unit of allocation, and of the CPU's large mapping. */
#define KVPOOL_BLOCK_SHIFT	21
#define KVPOOL_BLOCK_SIZE	(1ULL << KVPOOL_BLOCK_SHIFT)

/* Size of a name, domain, role or label with its NUL. */
#define KVPOOL_NAME_SIZE	64

#define KVPOOL_CONTROL_PATH	"/dev/kvpool/control"

/* What backs a segment of an address range. */
#define KVPOOL_SEGMENT_UNMAPPED	0	/* no mapping */
#define KVPOOL_SEGMENT_POOL	1	/* a pool; the other members say where */
#define KVPOOL_SEGMENT_ANON	2	/* private anonymous memory */
#define KVPOOL_SEGMENT_HUGETLB	3	/* hugetlb pages, anonymous or a file */
#define KVPOOL_SEGMENT_SHMEM	4	/* tmpfs: memfd, /dev/shm, shared anonymous */
#define KVPOOL_SEGMENT_FILE	5	/* a file of another file system */
#define KVPOOL_SEGMENT_DEVICE	6	/* a driver's memory that can't be pinned */

/* struct kvpool_segment flags */
#define KVPOOL_SEGMENT_WRITE	(1U << 0)	/* mapped writable */
#define KVPOOL_SEGMENT_READ	(1U << 1)	/* mapped readable */
#define KVPOOL_SEGMENT_STALE	(1U << 2)	/* the pool was destroyed; access is SIGBUS */

/**
 * struct kvpool_segment - a part of an address range with one backing
 * @addr: first byte, as an address of the caller
 * @length: bytes
 * @kind: KVPOOL_SEGMENT_*
 * @flags: KVPOOL_SEGMENT_WRITE, _READ, _STALE
 * @generation: generation of the pool, 0 when it is not a pool
 * @offset: offset of @addr in the pool, bytes
 * @pool_length: logical length of the pool, bytes
 * @id: id of the pool, 0 when it is not a pool
 * @reserved: 0
 * @domain: domain of the pool, NUL-terminated, empty when it is not a pool
 */
struct kvpool_segment {
	__u64 addr;
	__u64 length;
	__u32 kind;
	__u32 flags;
	__u64 generation;
	__u64 offset;
	__u64 pool_length;
	__u32 id;
	__u32 reserved;
	__u8 domain[KVPOOL_NAME_SIZE];
};

/**
 * struct kvpool_resolve - say what backs an address range of the caller
 * @size: sizeof(struct kvpool_resolve)
 * @flags: 0
 * @addr: first byte of the range
 * @length: bytes in the range, at least 1
 * @segments: address of an array of struct kvpool_segment
 * @count: in: entries in that array, at least 1; out: entries written
 * @reserved: 0
 * @resolved: out: bytes that the written segments cover, from @addr on. Less
 *	than @length when the array was too small: go on from there. Neighbouring
 *	mappings that continue each other in one pool, or that have the same
 *	foreign backing, are one segment within one call.
 *
 * Works on the control node (any access mode) and on a pool's node; the range
 * is always the calling process's own.
 *
 * EINVAL: length is 0, count is 0, or addr + length wraps.
 */
struct kvpool_resolve {
	__u32 size;
	__u32 flags;
	__u64 addr;
	__u64 length;
	__u64 segments;
	__u32 count;
	__u32 reserved;
	__u64 resolved;
};

#define KVPOOL_MESSAGE_SIZE	128

/**
 * struct kvpool_fill - give a pool that pool-create has deferred its memory
 * @size: sizeof(struct kvpool_fill)
 * @flags: 0
 * @generation: generation of the pool
 * @id: id of the pool
 * @reserved: 0
 * @message: out: why it failed, for people; NUL-terminated, empty when it did not
 *
 * Works on the control node that pool-create named, open for writing. Takes as
 * long as it takes to clear the memory. On success the pool is live; on failure
 * it is gone, with its name. A pool that is never filled goes with its session.
 *
 * ENOENT: the session has no such pool, or another thread fills it.
 * EACCES: the descriptor is not open for writing.
 * ENOMEM: there is not so much memory, or not in whole blocks where it shall be,
 *	or the memory cgroup's limit was reached.
 * EDQUOT: only the reserve may be used, and the user's quota is too small.
 * EFAULT: the struct can't be read, and nothing was done; or it can't be written,
 *	and the pool is live.
 * EINTR: a fatal signal arrived.
 */
struct kvpool_fill {
	__u32 size;
	__u32 flags;
	__u64 generation;
	__u32 id;
	__u32 reserved;
	__u8 message[KVPOOL_MESSAGE_SIZE];
};

/* struct kvpool_open flags */
#define KVPOOL_OPEN_WRITE	(1U << 0)	/* read and write; else read only */

/**
 * struct kvpool_open - open a pool by id and generation
 * @size: sizeof(struct kvpool_open)
 * @flags: KVPOOL_OPEN_WRITE
 * @generation: generation of the pool
 * @id: id of the pool
 * @fd: out: new descriptor, close-on-exec
 *
 * Works on the control node, with any access mode.
 *
 * ENOENT: no pool has the id.
 * ESTALE: a pool has the id, but another generation.
 * EACCES: the pool's uid, gid and mode do not let the caller open it so.
 * ENODEV: the pool is an orphan or was destroyed.
 * EMFILE, ENFILE: no descriptor is left to the process, or the system.
 */
struct kvpool_open {
	__u32 size;
	__u32 flags;
	__u64 generation;
	__u32 id;
	__s32 fd;
};

/**
 * struct kvpool_info - what the pool behind a descriptor is
 * @size: sizeof(struct kvpool_info)
 * @flags: 0
 * @generation: generation of the pool
 * @length: logical length, bytes
 * @mapped_length: allocated length, bytes; a mapping may be so long
 * @id: id of the pool
 * @block_size: bytes in a block
 * @state: enum kvpool_state of kvpool_netlink.h
 * @node: NUMA node asked for, or 0xffffffff
 * @rank: rank, or 0xffffffff
 * @lifetime: enum kvpool_lifetime
 * @name: NUL-terminated, as are the following
 * @domain: address domain
 * @role: role tag, may be empty
 * @label: label tag, may be empty
 *
 * Works on a pool's node.
 */
struct kvpool_info {
	__u32 size;
	__u32 flags;
	__u64 generation;
	__u64 length;
	__u64 mapped_length;
	__u32 id;
	__u32 block_size;
	__u32 state;
	__u32 node;
	__u32 rank;
	__u32 lifetime;
	__u8 name[KVPOOL_NAME_SIZE];
	__u8 domain[KVPOOL_NAME_SIZE];
	__u8 role[KVPOOL_NAME_SIZE];
	__u8 label[KVPOOL_NAME_SIZE];
};

/*
 * The commands carry no size: the struct's first member does, so that a
 * struct can grow without a new command.
 */
#define KVPOOL_IOC_TYPE		0xBB
#define KVPOOL_IOC_RESOLVE	_IO(KVPOOL_IOC_TYPE, 0x00)
#define KVPOOL_IOC_OPEN		_IO(KVPOOL_IOC_TYPE, 0x01)
#define KVPOOL_IOC_INFO		_IO(KVPOOL_IOC_TYPE, 0x02)
#define KVPOOL_IOC_FILL		_IO(KVPOOL_IOC_TYPE, 0x03)

#endif /* _UAPI_KVPOOL_H */

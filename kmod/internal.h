/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module's files share: the table of contents.
 *
 * Locks, outermost first; docs/architecture.md says why:
 *   mmap_lock (mm)         taken by the core before mmap(), faults and VMA close
 *   kvpool_node_lock       replaces and removes device nodes
 *   kvpool_registry_lock   names, and which session owns which pool
 *   kvpool_pool.lock       state, tags and users of one pool
 *   locks of the quotas and of each node's reserve, innermost
 *   folio lock             a fault against revocation of the same block
 * A sysfs reader takes kvpool_pool.lock, and removal of a node waits for it:
 * nothing takes kvpool_node_lock under the others. Nothing under these locks
 * touches user memory.
 */
#ifndef KVPOOL_INTERNAL_H
#define KVPOOL_INTERNAL_H

#include <linux/build_bug.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/types.h>

#include "../uapi/kvpool.h"
#include "../uapi/kvpool_netlink.h"
#include "compat/compat.h"

static_assert(KVPOOL_BLOCK_SHIFT == PMD_SHIFT, "kvpool needs a kernel with pages of 4 KiB");

#define KVPOOL_BLOCK_ORDER	(KVPOOL_BLOCK_SHIFT - PAGE_SHIFT)
#define KVPOOL_BLOCK_PAGES	(KVPOOL_BLOCK_SIZE >> PAGE_SHIFT)
/* Blocks looked at under one hold of a pool's lock: others wait for it. */
#define KVPOOL_SLICE		512
#define KVPOOL_ID_MAX		MINORMASK
#define KVPOOL_NO_NODE		U32_MAX
#define KVPOOL_NO_RANK		U32_MAX

struct kvpool_session;

/* block.c: the memory */

/**
 * struct kvpool_blocks - compound pages of 2 MiB
 * @pages: head pages, in the order of the pool; NULL once released
 * @count: blocks at creation
 * @held: blocks that are not yet released
 * @granted: blocks of the reserve that it may have
 * @reserved: how many of the first blocks came from the reserve, and go back there
 * @progress: called now and then while they are allocated, or NULL
 */
struct kvpool_blocks {
	struct page **pages;
	u32 count;
	u32 held;
	u32 granted;
	u32 reserved;
	void (*progress)(const struct kvpool_blocks *blocks, u32 filled);
};

bool kvpool_block_pinned(const struct kvpool_blocks *blocks, u32 block);
u32 kvpool_blocks_pinned(const struct kvpool_blocks *blocks, u32 first, u32 count);
void kvpool_blocks_release(struct kvpool_blocks *blocks);
void kvpool_blocks_release_range(struct kvpool_blocks *blocks, u32 first, u32 count);
void kvpool_blocks_free(struct kvpool_blocks *blocks);

/* allocation.c: the memory, while a pool is made */
int kvpool_allocation_init(void);
void kvpool_allocation_exit(void);
int kvpool_blocks_alloc(struct kvpool_blocks *blocks, u32 count, u32 node, bool strict,
			struct netlink_ext_ack *extack);

/* charge.c: limits and accounting */

/**
 * struct kvpool_charge - what a pool takes of the limits
 * @user: whose RLIMIT_MEMLOCK is charged, NULL when the creator had CAP_IPC_LOCK
 * @bytes: bytes charged; 0 when nothing is
 * @reserve_uid: whose share of the reserve @reserve_blocks are
 * @reserve_blocks: blocks of the reserve
 */
struct kvpool_charge {
	struct user_struct *user;
	u64 bytes;
	kuid_t reserve_uid;
	u32 reserve_blocks;
};

int kvpool_charge(struct kvpool_charge *charge, u64 bytes, struct netlink_ext_ack *extack);
void kvpool_uncharge(struct kvpool_charge *charge);
int kvpool_memory_check(u64 bytes, struct netlink_ext_ack *extack);
bool kvpool_memory_low(void);
void kvpool_charge_init(void);
int kvpool_charge_fill(struct sk_buff *skb);

/* reserve.c: blocks that are cleared already; reserve_sysfs.c shows it */

/**
 * struct kvpool_reserve_state - the reserve of a node, in bytes
 * @target: as much as there shall be
 * @ready: cleared
 * @clearing: came back from pools, and is not cleared yet
 */
struct kvpool_reserve_state {
	u64 target;
	u64 ready;
	u64 clearing;
};

int kvpool_reserve_init(void);
void kvpool_reserve_exit(void);
void kvpool_reserve_take(struct kvpool_blocks *blocks, u32 limit, int node,
			 const nodemask_t *nodes);
int kvpool_reserve_settle(void);
void kvpool_reserve_give(struct page *page);
bool kvpool_reserve_fits(u64 bytes);
void kvpool_reserve_set(int node, u64 bytes);
void kvpool_reserve_get(int node, struct kvpool_reserve_state *state);
bool kvpool_reserve_only(void);
void kvpool_reserve_set_only(bool only);
int kvpool_reserve_sysfs_add(struct kobject *parent);
void kvpool_reserve_sysfs_remove(void);

/* quota.c: how much of the reserve each user may have */
u32 kvpool_quota_take(struct kvpool_charge *charge, u32 blocks);
void kvpool_quota_give(struct kvpool_charge *charge, u32 blocks);
int kvpool_quota_set(kuid_t uid, const u64 *bytes);
void kvpool_quota_set_default(u64 bytes);
u64 kvpool_quota_default(void);
bool kvpool_quota_next(unsigned long *uid, u64 *bytes, u64 *used);
void kvpool_quota_exit(void);

/* pool.c: the object */

enum kvpool_life {
	KVPOOL_LIFE_NEW,	/* being created: nobody else knows it */
	KVPOOL_LIFE_LIVE,
	KVPOOL_LIFE_DYING,	/* ended: blocks go as their pins go */
};

/**
 * struct kvpool_tags - what says who uses a pool, and what for
 * @name: unique among pools that can be opened
 * @domain: address domain
 * @role: free
 * @label: free
 * @rank: KVPOOL_NO_RANK when there is none
 * @lifetime: enum kvpool_lifetime
 * @uid: who may open the pool, with @gid and @mode
 * @gid: see @uid
 * @mode: see @uid
 */
struct kvpool_tags {
	char name[KVPOOL_NAME_SIZE];
	char domain[KVPOOL_NAME_SIZE];
	char role[KVPOOL_NAME_SIZE];
	char label[KVPOOL_NAME_SIZE];
	u32 rank;
	u32 lifetime;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
};

/**
 * struct kvpool_owner - who created or claimed a pool, for people to read
 * @pid: the process, kept so that it is never taken for a later one
 * @start: its start time, nanoseconds since boot
 * @uid: its user
 */
struct kvpool_owner {
	struct pid *pid;
	u64 start;
	kuid_t uid;
};

/**
 * struct kvpool_pool - pinned huge-page memory with identity, tags and lifetime
 * @ref: the registry's, each open file's and the device node's
 * @rcu: lookup by id may still look at a pool that was freed
 * @id: minor number of the node too
 * @generation: never given to another pool
 * @length: bytes asked for
 * @mapped_length: bytes allocated
 * @node: NUMA node asked for, or KVPOOL_NO_NODE
 * @placement: enum kvpool_placement
 * @inode: its mapping is that of every file of the pool, so that CPU mappings
 *	can be revoked; lives as long as the pool
 * @mappings: VMAs
 * @revoked: faults get SIGBUS; set once, before blocks are released
 * @lock: protects the members from here to @owner
 * @life: NEW, LIVE, DYING, in this order
 * @orphan: LIVE, but the owner is gone and the last file's close ends it
 * @files: open files, those that VMAs hold included
 * @registration: enum kvpool_registration, as the owner says
 * @tags: name, domain constant since creation
 * @owner: who owns it, or did last
 * @blocks: the memory; constant while LIVE, released by the reaper when DYING
 * @charge: given back with the last block
 * @session: owner, NULL: none; protected by kvpool_registry_lock
 * @session_link: in the session's list; protected by kvpool_registry_lock
 * @name_link: in the table of names; protected by kvpool_registry_lock
 * @device: device node, NULL: none; protected by kvpool_node_lock
 * @dying_link: in the reaper's list
 */
struct kvpool_pool {
	struct kref ref;
	struct rcu_head rcu;

	u32 id;
	u64 generation;
	u64 length;
	u64 mapped_length;
	u32 node;
	u32 placement;
	struct inode *inode;

	atomic_t mappings;
	bool revoked;

	struct mutex lock;	/* protects what follows, up to @owner */
	enum kvpool_life life;
	bool orphan;
	u32 files;
	u32 registration;
	struct kvpool_tags tags;
	struct kvpool_owner owner;
	struct kvpool_blocks blocks;
	struct kvpool_charge charge;

	struct kvpool_session *session;
	struct list_head session_link;
	struct hlist_node name_link;
	struct device *device;
	struct list_head dying_link;
};

/**
 * struct kvpool_request - a pool to create
 * @tags: name may be empty: one is made up from the generation
 * @length: bytes
 * @node: NUMA node or KVPOOL_NO_NODE
 * @placement: enum kvpool_placement
 */
struct kvpool_request {
	struct kvpool_tags tags;
	u64 length;
	u32 node;
	u32 placement;
};

struct kvpool_pool *kvpool_pool_reserve(const struct kvpool_request *request,
					struct netlink_ext_ack *extack);
int kvpool_pool_fill(struct kvpool_pool *pool, struct kvpool_session *session,
		     struct netlink_ext_ack *extack);
void kvpool_pool_abandon(struct kvpool_pool *pool);
struct kvpool_pool *kvpool_pool_create(struct kvpool_session *session,
				       const struct kvpool_request *request,
				       struct netlink_ext_ack *extack);
int kvpool_pool_destroy(struct kvpool_pool *pool, bool force, struct netlink_ext_ack *extack);
int kvpool_pool_set(struct kvpool_pool *pool, const struct kvpool_tags *tags, u32 registration,
		    struct netlink_ext_ack *extack);
int kvpool_pool_claim(struct kvpool_pool *pool, struct kvpool_session *session,
		      struct netlink_ext_ack *extack);
void kvpool_pool_disown(struct kvpool_pool *pool, const struct kvpool_session *session);
int kvpool_pool_add_file(struct kvpool_pool *pool, bool write);
void kvpool_pool_drop_file(struct kvpool_pool *pool);
void kvpool_pool_revoke(struct kvpool_pool *pool);
u32 kvpool_pool_state(const struct kvpool_pool *pool);
int kvpool_pool_pinned(struct kvpool_pool *pool, u32 *pinned);
void kvpool_pool_get(struct kvpool_pool *pool);
void kvpool_pool_put(struct kvpool_pool *pool);

/* access.c: who may do what */
bool kvpool_may_open(const struct kvpool_pool *pool, bool write);
bool kvpool_may_change(const struct kvpool_pool *pool, const struct kvpool_session *session);
int kvpool_may_give(const struct kvpool_tags *tags, struct netlink_ext_ack *extack);

/* registry.c: ids, generations, names */
extern struct mutex kvpool_registry_lock;

void kvpool_registry_init(void);
void kvpool_registry_exit(void);
int kvpool_registry_reserve(struct kvpool_pool *pool, struct netlink_ext_ack *extack);
void kvpool_registry_publish(struct kvpool_pool *pool);
void kvpool_registry_drop_name(struct kvpool_pool *pool);
void kvpool_registry_remove(struct kvpool_pool *pool);
struct kvpool_pool *kvpool_registry_find(u32 id);
struct kvpool_pool *kvpool_registry_find_name(const char *name);
struct kvpool_pool *kvpool_registry_next(unsigned long *id);
u32 kvpool_registry_changes(void);

/* session.c: an open control node */
extern const struct file_operations kvpool_control_fops;

u32 kvpool_session_count(void);
void kvpool_session_own(struct kvpool_session *session, struct kvpool_pool *pool);
void kvpool_session_disown(struct kvpool_pool *pool);
void kvpool_session_keep(struct kvpool_session *session, struct kvpool_pool *pool);
struct kvpool_pool *kvpool_session_take(struct kvpool_session *session, u32 id, u64 generation);

/* file.c: an open pool, and its mappings */
extern const struct file_operations kvpool_pool_fops;

struct kvpool_pool *kvpool_vma_pool(struct vm_area_struct *vma);
struct file *kvpool_file_open(struct kvpool_pool *pool, bool write);

/* inode.c: the pseudo file system that holds the pools' inodes */
struct inode *kvpool_inode_new(u64 mapped_length);
void kvpool_inode_put(struct inode *inode);
struct file *kvpool_inode_file(struct kvpool_pool *pool, int flags);

/* node.c: class, device numbers, device nodes; sysfs.c: their attributes */
extern const struct attribute_group *kvpool_node_groups[];

int kvpool_node_init(void);
void kvpool_node_exit(void);
int kvpool_node_open(void);
void kvpool_node_close(void);
int kvpool_node_add(struct kvpool_pool *pool);
void kvpool_node_announce(struct kvpool_pool *pool);
int kvpool_node_replace(struct kvpool_pool *pool);
void kvpool_node_remove(struct kvpool_pool *pool);
dev_t kvpool_node_number(const struct kvpool_pool *pool);
struct kobject *kvpool_node_control(void);

/* ioctl.c, resolve.c */
long kvpool_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int kvpool_resolve(struct kvpool_resolve *resolve);

/* reaper.c: ends pools */
int kvpool_reaper_init(void);
void kvpool_reaper_exit(void);
void kvpool_reaper_add(struct kvpool_pool *pool);
int kvpool_reaper_settle(void);

/* netlink.c */
int kvpool_netlink_init(void);
void kvpool_netlink_exit(void);
void kvpool_netlink_notify(u8 command, const struct kvpool_pool *pool);
void kvpool_netlink_notify_progress(const struct kvpool_pool *pool, u32 percent);

/* stats.c: what happened since the module was loaded */
extern atomic64_t kvpool_created, kvpool_destroyed, kvpool_failed;

#endif /* KVPOOL_INTERNAL_H */

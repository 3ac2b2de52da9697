// SPDX-License-Identifier: GPL-2.0
/*
 * Allocation of a pool's blocks. Clearing memory is what takes long, so helpers
 * on the CPUs near the node do it side by side, until the memory's bandwidth is
 * the limit.
 *
 * The creator works too, in its own context: with its memory policy and cpuset,
 * with reclaim for as long as it takes, and with an eye on signals. Helpers take
 * what is there without much ado, from nodes that the creator would take as
 * well, and charge it to the creator's memory cgroup. So what a failure means,
 * and who is asked to reclaim, is the same with helpers and without.
 *
 * What the reserve has, and the creator may have of it, comes first.
 */
#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "internal.h"

/* How many blocks are allocated between two looks at what is left to others. */
#define CHECK_EVERY	16
/* A helper is worth its start for so many blocks. */
#define HELPER_BLOCKS	16
#define HELPERS_MAX	64
#define PROGRESS_EVERY	HZ

static unsigned int create_workers = 16;
module_param(create_workers, uint, 0644);
MODULE_PARM_DESC(create_workers,
		 "Workers that help a creation, at most one a CPU of the node (default: 16)");

static struct workqueue_struct *helpers_wq;

struct allocation;

struct helper {
	struct work_struct work;
	struct allocation *allocation;
	int cpu;
};

/**
 * struct allocation - what the creator and its helpers share
 * @blocks: what is filled
 * @node: where helpers look first
 * @nodes: where they may look, all with memory
 * @flags: of the helpers' allocations
 * @memcg: the creator's memory cgroup, NULL when there are none
 * @claimed: blocks that are there or that somebody is about to allocate
 * @filled: blocks that are there
 * @stop: helpers end
 * @low: min_available was reached
 * @helpers: on a work queue, each may run
 * @count: of @helpers
 */
struct allocation {
	struct kvpool_blocks *blocks;
	int node;
	nodemask_t nodes;
	gfp_t flags;
	struct mem_cgroup *memcg;
	atomic_t claimed;
	atomic_t filled;
	bool stop;
	bool low;
	struct helper *helpers;
	u32 count;
};

/*
 * Not movable, so that a long-term pin has nothing to migrate. An order this
 * high never starts the OOM killer. GFP_USER keeps to the cpuset.
 */
#define BLOCK_FLAGS	(GFP_USER | __GFP_COMP | __GFP_ZERO | __GFP_NOWARN)

static struct page *block_alloc(u32 node, bool strict, gfp_t flags)
{
	/* Keeps the cgroup's OOM killer away as well. */
	flags |= BLOCK_FLAGS | __GFP_RETRY_MAYFAIL;
	if (node == KVPOOL_NO_NODE)
		return alloc_pages(flags, KVPOOL_BLOCK_ORDER);
	if (strict)
		flags |= __GFP_THISNODE;
	return alloc_pages_node(node, flags, KVPOOL_BLOCK_ORDER);
}

/* The right to allocate one more block. */
static bool claim(struct allocation *allocation)
{
	int count = allocation->blocks->count;
	int claimed = atomic_fetch_add_unless(&allocation->claimed, 1, count);

	if (claimed == count)
		return false;
	if (claimed % CHECK_EVERY || !kvpool_memory_low())
		return true;
	WRITE_ONCE(allocation->low, true);
	atomic_dec(&allocation->claimed);
	return false;
}

/* With the block, or NULL: then somebody else may try. */
static bool settle_claim(struct allocation *allocation, struct page *page)
{
	if (!page) {
		atomic_dec(&allocation->claimed);
		return false;
	}
	allocation->blocks->pages[atomic_fetch_inc(&allocation->filled)] = page;
	return true;
}

/*
 * A block from one of the helpers' nodes. Node by node, since newer kernels let
 * modules no longer give the allocator a set of nodes.
 */
static struct page *helper_alloc(const struct allocation *allocation, gfp_t flags)
{
	struct page *page = alloc_pages_node(allocation->node, flags, KVPOOL_BLOCK_ORDER);
	int node;

	for_each_node_mask(node, allocation->nodes)
		if (!page && node != allocation->node)
			page = alloc_pages_node(node, flags, KVPOOL_BLOCK_ORDER);
	return page;
}

static void help(struct work_struct *work)
{
	struct allocation *allocation = container_of(work, struct helper, work)->allocation;
	struct mem_cgroup *old = set_active_memcg(allocation->memcg);
	struct page *page;

	do {
		if (READ_ONCE(allocation->stop) || !claim(allocation))
			break;
		/* What is free on any of the nodes, before one of them reclaims; no reserve. */
		page = helper_alloc(allocation, (allocation->flags & ~__GFP_DIRECT_RECLAIM) |
						__GFP_NOMEMALLOC);
		if (!page)
			page = helper_alloc(allocation, allocation->flags);
		cond_resched();
	} while (settle_claim(allocation, page));
	set_active_memcg(old);
}

/*
 * Where the creator's own allocations begin and which nodes they may take.
 * False: of which of them only the allocator can tell, so helpers can't keep to it.
 */
static bool find_nodes(struct allocation *allocation, u32 node)
{
	bool known = true;

	nodes_and(allocation->nodes, cpuset_current_mems_allowed, node_states[N_MEMORY]);
	allocation->node = node == KVPOOL_NO_NODE ? numa_mem_id() : node;
#ifdef CONFIG_NUMA
	/* A node that is asked for comes before the policy. */
	if (node == KVPOOL_NO_NODE && current->mempolicy) {
		const struct mempolicy *policy = current->mempolicy;

		switch (policy->mode) {
		case MPOL_LOCAL:
			break;
		case MPOL_PREFERRED_MANY:
			known = false;
			fallthrough;
		case MPOL_PREFERRED:
			allocation->node = first_node(policy->nodes);
			break;
		default:
			/* All others interleave. */
			known = policy->mode == MPOL_BIND;
			nodes_and(allocation->nodes, allocation->nodes, policy->nodes);
			if (!node_isset(allocation->node, allocation->nodes))
				allocation->node = first_node(allocation->nodes);
		}
	}
#endif
	if (allocation->node < nr_node_ids && node_isset(allocation->node, allocation->nodes))
		return known;
	/* By no rule that is known here: nor is the reserve of any use. */
	nodes_clear(allocation->nodes);
	return false;
}

/* Also wakes those that gave up: memory may have come free since. */
static void start_helpers(struct allocation *allocation)
{
	u32 i;

	for (i = 0; i < allocation->count; i++)
		queue_work_on(allocation->helpers[i].cpu, helpers_wq, &allocation->helpers[i].work);
}

/* Those that did not start yet never do; the others end with their block. */
static void await_helpers(struct allocation *allocation)
{
	u32 i;

	for (i = 0; i < allocation->count; i++)
		cancel_work_sync(&allocation->helpers[i].work);
}

/* Without helpers when there is no memory for them. */
static void make_helpers(struct allocation *allocation)
{
	struct kvpool_blocks *blocks = allocation->blocks;
	u32 i, count = (blocks->count - blocks->reserved) / HELPER_BLOCKS;

	count = min3(count, READ_ONCE(create_workers), (u32)HELPERS_MAX);
	count = min(count, cpumask_weight(cpumask_of_node(allocation->node)) ?: num_online_cpus());
	allocation->helpers = kcalloc(count, sizeof(*allocation->helpers), GFP_KERNEL_ACCOUNT);
	if (!allocation->helpers)
		return;
	allocation->count = count;
	for (i = 0; i < count; i++) {
		INIT_WORK(&allocation->helpers[i].work, help);
		allocation->helpers[i].allocation = allocation;
		allocation->helpers[i].cpu = cpumask_local_spread(i, allocation->node);
	}
}

static void report(const struct allocation *allocation, unsigned long *next)
{
	const struct kvpool_blocks *blocks = allocation->blocks;

	if (!blocks->progress || time_before(jiffies, *next))
		return;
	*next = jiffies + PROGRESS_EVERY;
	blocks->progress(blocks, atomic_read(&allocation->filled));
}

/* The creator's part. 0: every block is there, or a helper is about to allocate it. */
static int work(struct allocation *allocation, u32 node, bool strict, unsigned long *next_report)
{
	u32 own = 0;

	while (claim(allocation)) {
		if (fatal_signal_pending(current)) {
			settle_claim(allocation, NULL);
			return -EINTR;
		}
		if (own++ % CHECK_EVERY == 0)
			start_helpers(allocation);
		if (!settle_claim(allocation, block_alloc(node, strict, __GFP_ACCOUNT)))
			return -ENOMEM;
		report(allocation, next_report);
		cond_resched();
	}
	return READ_ONCE(allocation->low) ? -ENOMEM : 0;
}

static int fill(struct allocation *allocation, u32 node, bool strict)
{
	unsigned long next_report = jiffies + PROGRESS_EVERY;
	u32 count = allocation->blocks->count;
	bool settled = false;
	int err;

	/* Again when a helper found no memory for a block that it had claimed. */
	do {
		err = work(allocation, node, strict, &next_report);
		if (err == -ENOMEM && !settled) {
			/* Memory of pools that just ended is on its way back: let it arrive. */
			settled = true;
			if (kvpool_reaper_settle() > 0) {
				WRITE_ONCE(allocation->low, false);
				err = work(allocation, node, strict, &next_report);
			}
		}
		if (err)
			WRITE_ONCE(allocation->stop, true);
		await_helpers(allocation);
		allocation->blocks->held = atomic_read(&allocation->filled);
	} while (!err && allocation->blocks->held < count);
	/* Helpers may have found what the creator did not. */
	return err == -ENOMEM && allocation->blocks->held == count ? 0 : err;
}

/* What the policy of the reserve says about a pool of which this is all that is there. */
static int check_reserve(const struct kvpool_blocks *blocks, struct netlink_ext_ack *extack)
{
	if (blocks->reserved == blocks->count || !kvpool_reserve_only())
		return 0;
	if (blocks->granted < blocks->count) {
		NL_SET_ERR_MSG_FMT(extack, "reserve only: the user's quota leaves %u of %u blocks",
				   blocks->granted, blocks->count);
		return -EDQUOT;
	}
	NL_SET_ERR_MSG_FMT(extack, "reserve only: it has %u of %u blocks", blocks->reserved,
			   blocks->count);
	return -ENOMEM;
}

static void take_reserve(const struct allocation *allocation, bool strict)
{
	struct kvpool_blocks *blocks = allocation->blocks;
	/* Other nodes' reserves rather than the node's own memory only if that may not be. */
	bool others = kvpool_reserve_only() && !strict;

	kvpool_reserve_take(blocks, blocks->granted, allocation->node,
			    others ? &allocation->nodes : NULL);
}

/* Begin with the reserve; is there memory for the rest? */
static int begin(struct allocation *allocation, bool known, bool strict,
		 struct netlink_ext_ack *extack)
{
	struct kvpool_blocks *blocks = allocation->blocks;
	/* Blocks that lie where the reserve has them are no interleaving. */
	bool reserve = known || (kvpool_reserve_only() && !nodes_empty(allocation->nodes));
	u64 rest;
	int err;

	if (reserve)
		take_reserve(allocation, strict);
	err = check_reserve(blocks, NULL);
	if (err == -ENOMEM && reserve) {
		/* What came back from pools is on its way to the reserve: let it arrive. */
		if (kvpool_reaper_settle() < 0 || kvpool_reserve_settle())
			return -EINTR;
		take_reserve(allocation, strict);
	}
	err = check_reserve(blocks, extack);
	if (err)
		return err;

	rest = (u64)(blocks->count - blocks->reserved) << KVPOOL_BLOCK_SHIFT;
	if (!rest || !kvpool_memory_check(rest, NULL))
		return 0;
	if (kvpool_reaper_settle() < 0)
		return -EINTR;
	return kvpool_memory_check(rest, extack);
}

static bool can_have(u32 node, bool strict, gfp_t flags)
{
	struct page *page = block_alloc(node, strict, flags);

	if (page)
		put_page(page);
	return page;
}

/*
 * Tell a cgroup limit from fragmentation: the first goes away without the charge, and
 * comes back with it. A block may also have come free since the failure.
 */
static void explain_failure(const struct allocation *allocation, u32 node, bool strict,
			    struct netlink_ext_ack *extack)
{
	u32 block = allocation->blocks->held, count = allocation->blocks->count;

	if (strict && !node_isset(node, cpuset_current_mems_allowed)) {
		NL_SET_ERR_MSG_FMT(extack, "node %u is not one of the cpuset's (cpuset.mems)",
				   node);
		return;
	}
	if (allocation->low) {
		NL_SET_ERR_MSG_FMT(extack, "min_available reached at block %u of %u", block, count);
		return;
	}
	if (can_have(node, strict, 0) && !can_have(node, strict, __GFP_ACCOUNT)) {
		NL_SET_ERR_MSG_FMT(extack, "memory cgroup limit reached at block %u of %u",
				   block, count);
	} else if (node != KVPOOL_NO_NODE && strict) {
		NL_SET_ERR_MSG_FMT(extack, "no free 2 MiB block on node %u at block %u of %u",
				   node, block, count);
	} else {
		NL_SET_ERR_MSG_FMT(extack, "no free 2 MiB block (fragmented?) at block %u of %u",
				   block, count);
	}
}

/**
 * kvpool_blocks_alloc - allocate all blocks of a pool, or none
 * @blocks: filled in; @granted and @progress are set
 * @count: how many
 * @node: NUMA node, or KVPOOL_NO_NODE
 * @strict: take them from @node only
 * @extack: gets the cause of a failure
 *
 * Return: 0, -ENOMEM, -EDQUOT, or -EINTR when a fatal signal arrived.
 */
int kvpool_blocks_alloc(struct kvpool_blocks *blocks, u32 count, u32 node, bool strict,
			struct netlink_ext_ack *extack)
{
	struct allocation allocation = { .blocks = blocks };
	bool known;
	int err;

	/* Page by page: the table of a 1 TiB pool is 4 MiB. */
	blocks->pages = __vmalloc(array_size(count, sizeof(*blocks->pages)),
				  GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!blocks->pages) {
		NL_SET_ERR_MSG_FMT(extack, "no memory for a table of %u blocks", count);
		return -ENOMEM;
	}
	blocks->count = count;
	blocks->held = 0;
	blocks->reserved = 0;

	known = find_nodes(&allocation, node);
	err = begin(&allocation, known, strict, extack);
	blocks->held = blocks->reserved;
	if (err)
		goto free;
	atomic_set(&allocation.claimed, blocks->reserved);
	atomic_set(&allocation.filled, blocks->reserved);

	/* One light attempt: a helper sees no signal, and the creator is there to try harder. */
	allocation.flags = BLOCK_FLAGS | __GFP_ACCOUNT | __GFP_NORETRY | __GFP_THISNODE;
	if (strict)
		allocation.nodes = nodemask_of_node(allocation.node);
	allocation.memcg = get_mem_cgroup_from_mm(current->mm);
	if (known)
		make_helpers(&allocation);

	err = fill(&allocation, node, strict);
	if (err == -EINTR)
		NL_SET_ERR_MSG_FMT(extack, "killed at block %u of %u", blocks->held, count);
	else if (err)
		explain_failure(&allocation, node, strict, extack);

	kfree(allocation.helpers);
	mem_cgroup_put(allocation.memcg);
free:
	if (err) {
		kvpool_blocks_release(blocks);
		kvpool_blocks_free(blocks);
	}
	return err;
}

/**
 * kvpool_allocation_init - make the helpers' work queue
 *
 * Below /sys/bus/workqueue the administrator sets its CPUs and priority.
 */
int kvpool_allocation_init(void)
{
	helpers_wq = alloc_workqueue("kvpool_create", WQ_UNBOUND | WQ_SYSFS, 0);
	return helpers_wq ? 0 : -ENOMEM;
}

/**
 * kvpool_allocation_exit - no creation is under way
 */
void kvpool_allocation_exit(void)
{
	destroy_workqueue(helpers_wq);
}

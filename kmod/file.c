// SPDX-License-Identifier: GPL-2.0
/*
 * An open pool and its mappings.
 *
 * The mapping is an ordinary one: VM_PFNMAP, VM_IO and VM_MIXEDMAP would keep
 * verbs and GPU drivers from pinning it. The fault handler hands the core a
 * sub-page of a compound page; the core maps the whole block with one PMD when
 * address, offset and i_size allow.
 */
#include <linux/module.h>
#include <linux/pagemap.h>

#include "internal.h"

static vm_fault_t pool_fault(struct vm_fault *vmf)
{
	struct kvpool_pool *pool = vmf->vma->vm_private_data;
	pgoff_t block = vmf->pgoff >> KVPOOL_BLOCK_ORDER;
	struct page *head = NULL;

	rcu_read_lock();
	if (block < pool->blocks.count && !READ_ONCE(pool->revoked)) {
		head = READ_ONCE(pool->blocks.pages[block]);
		get_page(head);
	}
	rcu_read_unlock();
	if (!head)
		return VM_FAULT_SIGBUS;

	/* See kvpool_pool_revoke(): the core unlocks it after the entry is in place. */
	lock_page(head);
	if (READ_ONCE(pool->revoked)) {
		unlock_page(head);
		put_page(head);
		return VM_FAULT_SIGBUS;
	}
	vmf->page = head + (vmf->pgoff & (KVPOOL_BLOCK_PAGES - 1));
	/* Not left to the core, which takes page cache for what has a bad page. */
	if (PageHWPoison(vmf->page)) {
		vmf->page = NULL;
		unlock_page(head);
		put_page(head);
		return VM_FAULT_HWPOISON;
	}
	/* Kernels that look whether a large entry ends within i_size ask the folio where it is. */
	page_folio(head)->index = (pgoff_t)block << KVPOOL_BLOCK_ORDER;
	return VM_FAULT_LOCKED;
}

static void pool_vma_open(struct vm_area_struct *vma)
{
	struct kvpool_pool *pool = vma->vm_private_data;

	atomic_inc(&pool->mappings);
}

static void pool_vma_close(struct vm_area_struct *vma)
{
	struct kvpool_pool *pool = vma->vm_private_data;

	atomic_dec(&pool->mappings);
}

#ifdef CONFIG_NUMA
/*
 * Blocks don't move: no policy, so that NUMA balancing has no reason to take
 * the entries away and count the faults.
 */
static struct mempolicy *pool_get_policy(KVPOOL_GET_POLICY_ARGS)
{
	return NULL;
}
#endif

static const struct vm_operations_struct pool_vm_ops = {
	.open		= pool_vma_open,
	.close		= pool_vma_close,
	.fault		= pool_fault,
#ifdef CONFIG_NUMA
	.get_policy	= pool_get_policy,
#endif
};

/**
 * kvpool_vma_pool - the pool that a VMA maps
 * @vma: any; the caller holds the mmap lock
 *
 * Return: the pool, which lives as long as the VMA, or NULL.
 */
struct kvpool_pool *kvpool_vma_pool(struct vm_area_struct *vma)
{
	return vma->vm_ops == &pool_vm_ops ? vma->vm_private_data : NULL;
}

static int pool_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kvpool_pool *pool = file->private_data;
	u64 pages = pool->mapped_length >> PAGE_SHIFT;

	/* A private mapping would copy on write; VM_SHARED is off for a read-only file. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;

	/* Against destroy, which looks for mappings under the lock. */
	mutex_lock(&pool->lock);
	if (pool->life != KVPOOL_LIFE_LIVE) {
		mutex_unlock(&pool->lock);
		return -ENODEV;
	}
	atomic_inc(&pool->mappings);
	mutex_unlock(&pool->lock);

	/* VM_DONTEXPAND also keeps mlock() and merging away, which have no business here. */
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vm_flags_clear(vma, VM_MAYEXEC);
	vma->vm_ops = &pool_vm_ops;
	vma->vm_private_data = pool;
	return 0;
}

static int pool_open(struct inode *inode, struct file *file)
{
	struct kvpool_pool *pool = kvpool_registry_find(iminor(inode));
	int err;

	if (!pool)
		return -ENXIO;
	err = kvpool_pool_add_file(pool, file->f_mode & FMODE_WRITE);
	if (!err) {
		/* i_size of the node's own inode is 0, which forbids large entries. */
		file->f_mapping = pool->inode->i_mapping;
		file->private_data = pool;
	}
	kvpool_pool_put(pool);
	return err ? err : nonseekable_open(inode, file);
}

static int pool_release(struct inode *inode, struct file *file)
{
	kvpool_pool_drop_file(file->private_data);
	return 0;
}

const struct file_operations kvpool_pool_fops = {
	.owner			= THIS_MODULE,
	.open			= pool_open,
	.release		= pool_release,
	.mmap			= pool_mmap,
	.get_unmapped_area	= thp_get_unmapped_area,
	.unlocked_ioctl		= kvpool_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
};

/**
 * kvpool_file_open - open a pool without its node
 * @pool: referenced by the caller
 * @write: for writing as well
 *
 * Return: a file, or an error.
 */
struct file *kvpool_file_open(struct kvpool_pool *pool, bool write)
{
	struct file *file;
	int err;

	err = kvpool_pool_add_file(pool, write);
	if (err)
		return ERR_PTR(err);
	file = kvpool_inode_file(pool, write ? O_RDWR : O_RDONLY);
	if (IS_ERR(file))
		kvpool_pool_drop_file(pool);
	else
		file->private_data = pool;
	return file;
}

// SPDX-License-Identifier: GPL-2.0
/* Says what backs an address range of the calling process. */
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/* Segments of one call; the caller goes on where it ended. */
#define SEGMENTS_MAX	32

static u32 vma_kind(struct vm_area_struct *vma)
{
	const struct inode *inode;

	if (kvpool_vma_pool(vma))
		return KVPOOL_SEGMENT_POOL;
	if (is_vm_hugetlb_page(vma))
		return KVPOOL_SEGMENT_HUGETLB;
	if (vma->vm_flags & (VM_IO | VM_PFNMAP))
		return KVPOOL_SEGMENT_DEVICE;
	if (vma_is_anonymous(vma))
		return KVPOOL_SEGMENT_ANON;
	if (!vma->vm_file)
		return KVPOOL_SEGMENT_DEVICE;
	inode = file_inode(vma->vm_file);
	if (S_ISCHR(inode->i_mode))
		return KVPOOL_SEGMENT_DEVICE;
	/* Device nodes are on a tmpfs too. */
	if (S_ISREG(inode->i_mode) && inode->i_sb->s_magic == TMPFS_MAGIC)
		return KVPOOL_SEGMENT_SHMEM;
	return KVPOOL_SEGMENT_FILE;
}

static void fill_vma(struct kvpool_segment *segment, struct vm_area_struct *vma)
{
	struct kvpool_pool *pool = kvpool_vma_pool(vma);

	segment->kind = vma_kind(vma);
	if (vma->vm_flags & VM_READ)
		segment->flags |= KVPOOL_SEGMENT_READ;
	if (vma->vm_flags & VM_WRITE)
		segment->flags |= KVPOOL_SEGMENT_WRITE;
	if (!pool)
		return;
	if (READ_ONCE(pool->revoked))
		segment->flags |= KVPOOL_SEGMENT_STALE;
	segment->id = pool->id;
	segment->generation = pool->generation;
	segment->offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (segment->addr - vma->vm_start);
	segment->pool_length = pool->length;
	/* Constant since the pool was published. */
	strscpy(segment->domain, pool->tags.domain, sizeof(segment->domain));
}

/* Does b continue a, in memory and in what backs it? */
static bool continues(const struct kvpool_segment *a, const struct file *a_file,
		      const struct kvpool_segment *b, const struct file *b_file)
{
	if (a->kind != b->kind || a->flags != b->flags)
		return false;
	if (a->kind == KVPOOL_SEGMENT_POOL)
		return a->generation == b->generation && a->offset + a->length == b->offset;
	return (a_file ? file_inode(a_file) : NULL) == (b_file ? file_inode(b_file) : NULL);
}

/* Returns how many segments were filled; *resolved is the bytes they cover. */
static u32 walk(struct mm_struct *mm, u64 addr, u64 end, struct kvpool_segment *segments, u32 count,
		u64 *resolved)
{
	struct kvpool_segment *last = NULL;
	const struct file *last_file = NULL;
	u64 start = addr;
	u32 n = 0;

	/* Not mmap_assert_locked(), which needs a symbol that is not exported. */
	lockdep_assert_held(&mm->mmap_lock);
	while (addr < end) {
		struct vm_area_struct *vma = find_vma(mm, addr);
		struct kvpool_segment segment = { .addr = addr };
		const struct file *file = NULL;

		if (!vma || vma->vm_start > addr) {
			segment.length = min_t(u64, end, vma ? vma->vm_start : end) - addr;
		} else {
			segment.length = min_t(u64, end, vma->vm_end) - addr;
			fill_vma(&segment, vma);
			file = vma->vm_file;
		}
		if (last && continues(last, last_file, &segment, file)) {
			last->length += segment.length;
		} else {
			if (n == count)
				break;
			last = &segments[n++];
			*last = segment;
			last_file = file;
		}
		addr += segment.length;
	}
	*resolved = addr - start;
	return n;
}

/**
 * kvpool_resolve - KVPOOL_IOC_RESOLVE
 * @resolve: copied from the caller; the results go in here
 *
 * Return: 0, or an error: see struct kvpool_resolve.
 */
int kvpool_resolve(struct kvpool_resolve *resolve)
{
	struct kvpool_segment *segments;
	struct mm_struct *mm = current->mm;
	u64 end;
	int err = 0;

	if (resolve->flags || resolve->reserved || !resolve->count || !resolve->length)
		return -EINVAL;
	if (check_add_overflow(resolve->addr, resolve->length, &end))
		return -EINVAL;

	resolve->count = min_t(u32, resolve->count, SEGMENTS_MAX);
	segments = kcalloc(resolve->count, sizeof(*segments), GFP_KERNEL_ACCOUNT);
	if (!segments)
		return -ENOMEM;

	/* Copied out after the lock is dropped: a fault on the array takes it. */
	if (mmap_read_lock_killable(mm)) {
		err = -EINTR;
		goto free;
	}
	resolve->count = walk(mm, resolve->addr, end, segments, resolve->count, &resolve->resolved);
	mmap_read_unlock(mm);

	if (copy_to_user(u64_to_user_ptr(resolve->segments), segments,
			 resolve->count * sizeof(*segments)))
		err = -EFAULT;
free:
	kfree(segments);
	return err;
}

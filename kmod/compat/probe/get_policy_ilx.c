// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

struct mempolicy *kvpool_probe(struct vm_area_struct *vma, pgoff_t *ilx);
struct mempolicy *kvpool_probe(struct vm_area_struct *vma, pgoff_t *ilx)
{
	return vma->vm_ops->get_policy(vma, 0, ilx);
}

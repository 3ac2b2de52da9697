// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

void kvpool_probe(struct vm_area_struct *vma);
void kvpool_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTDUMP);
}

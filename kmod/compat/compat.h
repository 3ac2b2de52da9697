/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels, each found by a compile probe (compat/probe/)
 * or by the absence of a macro. The module's body is written for the newest
 * kernel and knows nothing of this.
 */
#ifndef KVPOOL_COMPAT_H
#define KVPOOL_COMPAT_H

#include <linux/mm.h>
#include <linux/netlink.h>
#include <net/genetlink.h>

/* vm_flags_set() came with 6.3: this can go with 6.1. */
#ifndef KVPOOL_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* get_policy() got the interleave index with 6.7: this can go with 6.6. */
#ifdef KVPOOL_HAVE_GET_POLICY_ILX
#define KVPOOL_GET_POLICY_ARGS struct vm_area_struct *vma, unsigned long addr, pgoff_t *ilx
#else
#define KVPOOL_GET_POLICY_ARGS struct vm_area_struct *vma, unsigned long addr
#endif

/* Callbacks of class and device_type take a const device from 6.3 on: this can go with 6.1. */
#ifdef KVPOOL_HAVE_DEVNODE_CONST
#define kvpool_devnode_device const struct device
#else
#define kvpool_devnode_device struct device
#endif

/*
 * genlmsg_multicast_allns() lost its gfp_t with 6.12 and stable releases of late
 * 2024: this can go when no kernel of before is supported. The flag is the one
 * that it uses by itself since.
 */
#ifndef KVPOOL_HAVE_MULTICAST_ALLNS
#define genlmsg_multicast_allns(family, skb, portid, group)	\
	genlmsg_multicast_allns(family, skb, portid, group, GFP_ATOMIC)
#endif

/*
 * Formatted extack came with 6.2: this can go with 6.1, and extack.c too.
 * Before, the message must be storage that outlives the request: netlink copies
 * it into the answer right after the request's function returned. A ring is
 * enough for that, and a reader that is overtaken by a full round sees another
 * message, never unterminated text.
 */
#ifndef NL_SET_ERR_MSG_FMT
char *kvpool_extack_slot(void);
#define KVPOOL_EXTACK_SLOT_SIZE 128

#define NL_SET_ERR_MSG_FMT(extack, fmt, args...) do {			\
	struct netlink_ext_ack *__extack = (extack);			\
									\
	if (__extack) {							\
		char *__slot = kvpool_extack_slot();			\
									\
		snprintf(__slot, KVPOOL_EXTACK_SLOT_SIZE, fmt, ##args);	\
		__extack->_msg = __slot;				\
	}								\
} while (0)
#endif

#endif /* KVPOOL_COMPAT_H */

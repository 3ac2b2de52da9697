// SPDX-License-Identifier: GPL-2.0
/*
 * Makes one call of a kernel function fail without running it, so that stock
 * kernels, which have no fault injection, can be led along error paths:
 *
 *   insmod fail_call.ko symbol=cdev_add call=2 result=-12
 *
 * The second call that a process named insmod makes of cdev_add() returns -ENOMEM.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static char *symbol;
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "Function that fails");

static int call = 1;
module_param(call, int, 0444);
MODULE_PARM_DESC(call, "Which call of it, from 1");

static long result;
module_param(result, long, 0444);
MODULE_PARM_DESC(result, "What it returns");

static char *comm = "insmod";
module_param(comm, charp, 0444);
MODULE_PARM_DESC(comm, "Name of the process whose calls count");

static int calls;
module_param(calls, int, 0444);
MODULE_PARM_DESC(calls, "Calls that were seen");

/* Returns for the function: nothing of it has run, so what is on the stack is the same. */
static noinline notrace void return_at_once(void)
{
	barrier();
}

static int before_call(struct kprobe *probe, struct pt_regs *regs)
{
	if (strcmp(current->comm, comm) || ++calls != call)
		return 0;
	regs_set_return_value(regs, result);
	instruction_pointer_set(regs, (unsigned long)return_at_once);
	return 1;
}

/* Only there because a probe that has one is never turned into a jump, which could not return. */
static void after_call(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = {
	.pre_handler	= before_call,
	.post_handler	= after_call,
};

static int __init fail_call_init(void)
{
	probe.symbol_name = symbol;
	return register_kprobe(&probe);
}

static void __exit fail_call_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(fail_call_init);
module_exit(fail_call_exit);

MODULE_DESCRIPTION("Makes one call of a kernel function fail");
MODULE_LICENSE("GPL");

/* SPDX-License-Identifier: GPL-2.0 */
/* What the KUnit suites share. They run before the module's init function. */
#ifndef KVPOOL_TEST_H
#define KVPOOL_TEST_H

#include <kunit/test.h>
#include <linux/sizes.h>

#include "internal.h"

/* pool_test.c: pools that have an inode and no memory, whatever their length */
struct kvpool_pool *kvpool_test_pool(struct kunit *test, u64 length);
void kvpool_test_publish(struct kunit *test, struct kvpool_pool *pool);

/* registry_test.c: forget a reserved or published pool, and drop the test's reference */
void kvpool_test_forget(struct kvpool_pool *pool);

/*
 * fault_test.c: the reaper, and the address space of the process that loads the
 * module, which kernel threads, where cases run, can use.
 */
int kvpool_test_suite_init(struct kunit_suite *suite);
void kvpool_test_suite_exit(struct kunit_suite *suite);
extern struct mm_struct *kvpool_test_mm;

#endif /* KVPOOL_TEST_H */

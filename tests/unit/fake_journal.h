/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Directories for journals, and what is in a journal that was written. */
#ifndef FAKE_JOURNAL_H
#define FAKE_JOURNAL_H

#include "fake_world.h"

/* A directory that only this test has; fake_journal_remove() ends it with all in it. */
const char *fake_journal_dir(void);
void fake_journal_remove(void);

/* How many files are in it, and the path of the only one (NULL: none, or several). */
unsigned int fake_journal_files(void);
const char *fake_journal_path(void);

/* Bytes of a file; the caller frees them. */
void *fake_journal_load(const char *path, size_t *size);
void fake_journal_store(const char *path, const void *bytes, size_t size);

/* The first record of the only file as another process, boot or namespace would have written it. */
void fake_journal_rewrite(void (*change)(struct kvp_journal_file_record *file));

/*
 * The types of the records of the only file, as "file begin pool intent"; fails
 * the test when a record is not whole, or not the next. Space behind them is no record.
 */
const char *fake_journal_types(void);

#endif /* FAKE_JOURNAL_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the fuzz targets share. A target is one file fuzz_NAME.c: it feeds bytes
 * to what takes data from outside, and aborts when something that must always
 * hold does not. It gives the same verdict on the same bytes on any machine.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "../../lib/kvpool.h"

/* The linker calls them by these names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

_Noreturn void fuzz_fail(const char *file, int line, const char *what);
#define fuzz_assert(condition) \
	((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

/* A name of KVP_NAME_SIZE bytes that ends within them. */
#define fuzz_assert_text(text) fuzz_assert(memchr(text, 0, sizeof(text)))

/* Fill an error with what no call leaves there. */
void fuzz_error_start(struct kvp_error *error);
/* As kvpool.h promises: filled in by a failure, untouched by success. */
void fuzz_error_check(const struct kvp_error *error, int err);

/* A stream whose text is looked at: nothing in it that moves a terminal's cursor. */
FILE *fuzz_print_start(void);
void fuzz_print_end(FILE *out);
/* The same for JSON, which has to be one value and UTF-8. */
void fuzz_print_end_json(FILE *out);

#endif /* FUZZ_H */

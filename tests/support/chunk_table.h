/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_table - tables to encode: made by hand, or by a seeded generator.
 *
 * Owner:   test programs; one static table.
 * Units:   as in chunk.h.
 * Errors:  none.
 * Limits:  CHUNK_TABLE_ROWS, CHUNK_TABLE_COLUMNS.
 */
#ifndef LS_TESTS_CHUNK_TABLE_H
#define LS_TESTS_CHUNK_TABLE_H

#include <check.h>
#include "proto/chunk/chunk.h"

enum { CHUNK_TABLE_ROWS = LS_CHUNK_ROWS_MAX, CHUNK_TABLE_COLUMNS = 64 };

/* The table; column c, row r is at [c * CHUNK_TABLE_ROWS + r]. */
extern struct ls_chunk_table chunk_table;

/* The generator from its seed on. */
void chunk_table_start(void);
uint64_t chunk_table_random(void);
size_t chunk_table_below(size_t n);

/* The double of these bits. */
double chunk_table_double(uint64_t bits);

/* A fresh table: all present, all zero, a second between rows. */
void chunk_table_make(size_t rows, size_t columns);
void chunk_table_set(size_t column, const double *v, size_t n);
void chunk_table_remove(size_t column, size_t row);

/* The example of proto/FORMAT.md. */
void chunk_table_make_small(void);

/* A table of columns of random kinds, with gaps. */
void chunk_table_make_random(void);

/* Fails the test unless both are the same, bit for bit. */
void chunk_table_assert_same(const struct ls_chunk_table *a,
	const struct ls_chunk_table *b);

#endif

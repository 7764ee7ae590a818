/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_csv - the CSV of an operation trace, plain or gzip: its rows, checked one by
 * one.
 *
 * The first line names the columns, in any order; others than those needed are passed
 * over. Fields have no quotes.
 *
 * Owner:   the caller.
 * Units:   seconds.
 * Errors:  -LS_EPARSE with line and text, -errno from the file, -LS_ECORRUPT for
 *          damaged gzip, -ENOMEM.
 * Limits:  LS_WHATIF_ROWS_MAX, LS_WHATIF_LINE_MAX_BYTES, LS_WHATIF_COLUMNS_MAX; dp and
 *          stage below the sizes.
 * Source:  proto/FORMAT.md, "Operation trace".
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_CSV_H
#define LS_COLLECTOR_WHATIF_WHATIF_CSV_H

#include <stddef.h>
#include "collector/whatif/whatif_meta.h"
#include "collector/whatif/whatif_trace.h"

struct ls_whatif_rows {
	struct ls_whatif_row *rows;
	size_t count, capacity;
};

/* Reads a file, "-" for standard input. ret_rows begins empty; free its rows, whatever
 * is returned. */
int ls_whatif_csv_read(const char *path, const struct ls_whatif_meta *meta,
	struct ls_whatif_rows *ret_rows,
	struct ls_whatif_error *ret_error) LS_MUSTCHECK;

#endif

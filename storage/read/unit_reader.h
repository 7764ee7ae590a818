/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_reader - rows of packed units back into events, as they were in the journal.
 *
 * Owner:   one thread at a time.
 * Units:   as in storage/db/rows.h.
 * Errors:  -ENOMEM; -LS_ELIMIT; those of ls_step_rows_decode and ls_hot_rows_decode.
 * Limits:  those of the rows and of the span.
 */
#ifndef LS_STORAGE_UNIT_READER_H
#define LS_STORAGE_UNIT_READER_H

#include "storage/columns/step_rows.h"
#include "storage/read/span.h"

enum ls_unit_table { LS_UNIT_STEP_ROWS, LS_UNIT_HOT_ROWS, LS_UNIT_TABLES };

/* What rows are decoded with, made at its first use; zeroed is nothing yet. */
struct ls_unit_reader {
	struct ls_step_codec *steps;
	struct ls_hot_codec *hot;
};

/* Frees what was made. */
void ls_unit_reader_fini(struct ls_unit_reader *r);

/* Adds the events of a row's body. It may go afterwards. What was added before an error
 * stays. */
int ls_unit_reader_load(struct ls_unit_reader *r, enum ls_unit_table table,
	const void *body, size_t len, struct ls_span *span) LS_MUSTCHECK;

/* Decodes the body of a row of step_rows; the table holds until the next use. */
int ls_unit_reader_steps(struct ls_unit_reader *r, const void *body, size_t len,
	struct ls_step_table *ret_table) LS_MUSTCHECK;

#endif

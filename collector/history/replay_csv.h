/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_csv - a table of step times as lines of a replay file: one row for a step of a
 * rank, columns step, rank, own_seconds, step_seconds.
 *
 * Owner:   pure functions on text; struct ls_csv is the caller's.
 * Units:   seconds in the row; ns in the result, from the begin of the step.
 * Errors:  -LS_EPARSE; why holds words for a person.
 * Limits:  LS_REPLAY_ROW_MAX_BYTES, LS_REPLAY_COLUMNS_MAX.
 * Source:  proto/FORMAT.md, "Replay file", "Table".
 */
#ifndef LS_COLLECTOR_REPLAY_CSV_H
#define LS_COLLECTOR_REPLAY_CSV_H

#include "collector/history/replay_line.h"

enum ls_csv_column {
	LS_CSV_STEP,
	LS_CSV_RANK,
	LS_CSV_OWN,
	LS_CSV_WHOLE,
	LS_CSV_COLUMNS
};

struct ls_csv {
	size_t columns; /* of each row; 0: none was read */
	size_t at[LS_CSV_COLUMNS]; /* from 1; 0: there is no such column */
};

/* Is the first line of a file a row or header of a table? Lines of JSON have quotes, and a
 * damaged one may have bytes that are not text. */
bool ls_csv_is(const char *text, size_t len);

/*
 * Reads one line of len bytes; the first one may be the header (*ret_line is then of
 * kind OTHER). The record begins at 0; duration_ns is 0 without step_seconds; own work
 * is phase OTHER, which is not in phase_mask without own_seconds. why
 * (LS_LINE_WHY_BYTES) is set on failure.
 */
int ls_csv_parse(struct ls_csv *csv, const char *text, size_t len,
	struct ls_line *ret_line, char *why) LS_MUSTCHECK;

/* Puts such a record of a step of longest_ns in its place: the rank works, then waits for
 * the end of the step. */
void ls_csv_place(struct ls_record *r, int64_t begin_ns, uint64_t longest_ns);

#endif

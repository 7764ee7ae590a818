/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_day - reading one day's file: its positions, and its events in the order in
 * which they came.
 *
 * Owner:   one thread at a time; used by query only.
 * Units:   as in storage/db/rows.h.
 * Errors:  as in storage/read/query.h.
 * Limits:  a unit, or about LS_QUERY_WINDOW events of the journal, in memory at a time.
 */
#ifndef LS_STORAGE_QUERY_DAY_H
#define LS_STORAGE_QUERY_DAY_H

#include <sqlite3.h>
#include "storage/read/query.h"

struct ls_query_day;

/* The connection to a day's file of q; good until LS_QUERY_DAYS_OPEN others were asked
 * for. */
int ls_query_day_of(struct ls_query *q, int32_t day,
	struct ls_query_day **ret_day) LS_MUSTCHECK;

/* That of the newest day; NULL if there is none. */
int ls_query_newest_day(struct ls_query *q, struct ls_query_day **ret_day) LS_MUSTCHECK;

/* Statements that a connection keeps, each of one text. */
enum ls_query_kept {
	LS_QUERY_HOST_ID,
	LS_QUERY_HOST_CHUNKS,
	LS_QUERY_STEP_JOURNAL,
	LS_QUERY_STEP_ROWS,
	LS_QUERY_KEPT
};

/* Such a statement. Who uses it resets it, so that the snapshot goes. */
sqlite3_stmt *ls_query_day_kept(const struct ls_query_day *d, enum ls_query_kept which);

/*
 * How many steps the widest row of step_rows spans, less one: every row with step N has
 * its step_hi in [N, N + width]. The first use looks through the index, further ones at
 * new rows.
 */
int ls_query_day_step_width(struct ls_query_day *d, int64_t *ret_width) LS_MUSTCHECK;

/* Its database. */
sqlite3 *ls_query_day_db(const struct ls_query_day *d);

/*
 * The body of a chunk, whose place a statement of d has in two columns; *ret_body holds
 * until the next use. If it does not read, it is NULL and 0 bytes long: who decodes it
 * meets that as damage.
 */
int ls_query_day_body(struct ls_query_day *d, sqlite3_stmt *stmt, int column,
	const uint8_t **ret_body, size_t *ret_len) LS_MUSTCHECK;
/* After such reading, where a statement is reset: lets the snapshot go. */
void ls_query_day_rest(struct ls_query_day *d);

/* state.db of q. */
sqlite3 *ls_query_state_db(struct ls_query *q);

/* What q decodes rows of units with, whatever their day. */
struct ls_unit_reader *ls_query_unit_reader(struct ls_query *q);

/* Opens a day's file for reading. */
int ls_query_day_open(const char *path, struct ls_query_day **ret_day) LS_MUSTCHECK;
/* Closes; accepts NULL. */
void ls_query_day_close(struct ls_query_day *d);

/* The greatest id of a day's events; 0 if there are none. */
int ls_query_last_id(sqlite3 *db, int64_t *ret_last) LS_MUSTCHECK;

#endif

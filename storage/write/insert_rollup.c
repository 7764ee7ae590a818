/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of roll-ups; interface in store_sql.h. They run once a minute, so none
 * is kept. */
#include "config.h"

#include "storage/write/store_sql.h"

#include <errno.h>
#include "storage/db/db.h"
#include "storage/db/sql.h"

/* By table; and how a row of rollup_done goes. */
#define ROLLUP_UNDONE LS_ROLLUP_TABLES
#define ROLLUP_STATEMENTS (LS_ROLLUP_TABLES + 1)

static const char *const rollup_sql[ROLLUP_STATEMENTS] = {
	[LS_ROLLUP_METRIC] = "INSERT INTO rollup_metric (id, name) VALUES (?1, ?2)",
	[LS_ROLLUP_LABELS] = "INSERT INTO rollup_labels (id, text) VALUES (?1, ?2)",
	[LS_ROLLUP_BODY] = "INSERT INTO rollup (metric_id, span_s, t_us, n, body) "
			   "VALUES (?1, ?2, ?3, ?4, ?5)",
	[LS_ROLLUP_DONE] = "INSERT INTO rollup_done (span_s, t_us, chunk_id) "
			   "VALUES (?1, ?2, ?3) "
			   "ON CONFLICT (span_s, t_us) DO UPDATE SET chunk_id = ?3",
	[ROLLUP_UNDONE] = "DELETE FROM rollup_done WHERE span_s = ?1 AND t_us = ?2",
};

/* -LS_ESTALE: rollup_done is not as the maker of the message saw it. Its samples are in
 * already, or others are missing. */
static int
rollup_put_done(sqlite3 *db, sqlite3_stmt *const *stmt,
	const struct ls_store_rollup_row *r)
{
	int64_t chunk_id = 0;
	int rc = ls_sql_int_of(db,
		"SELECT chunk_id FROM rollup_done WHERE span_s = ?1 AND t_us = ?2",
		LS_SQL_VALUES(ls_sql_int(r->span_s), ls_sql_int(r->t_us)), &chunk_id);

	if (rc == 0 && chunk_id != r->before)
		rc = -LS_ESTALE;
	if (rc != 0)
		return rc;
	return r->chunk_id == 0
		? ls_sql_run(stmt[ROLLUP_UNDONE],
			  LS_SQL_VALUES(ls_sql_int(r->span_s), ls_sql_int(r->t_us)))
		: ls_sql_run(stmt[LS_ROLLUP_DONE],
			  LS_SQL_VALUES(ls_sql_int(r->span_s), ls_sql_int(r->t_us),
				  ls_sql_int(r->chunk_id)));
}

static int
rollup_put(sqlite3 *db, sqlite3_stmt *const *stmt, const struct ls_store_rollup_row *r)
{
	switch (r->table) {
	case LS_ROLLUP_METRIC:
	case LS_ROLLUP_LABELS:
		return ls_sql_run(stmt[r->table],
			LS_SQL_VALUES(ls_sql_int(r->id), ls_sql_text(r->data)));
	case LS_ROLLUP_BODY:
		return ls_sql_run(stmt[r->table],
			LS_SQL_VALUES(ls_sql_int(r->id), ls_sql_int(r->span_s),
				ls_sql_int(r->t_us), ls_sql_int(r->n),
				ls_sql_blob(r->data, r->len)));
	case LS_ROLLUP_DONE:
		return rollup_put_done(db, stmt, r);
	case LS_ROLLUP_TABLES:
		break;
	}
	return -EINVAL;
}

int
ls_store_put_rollup(sqlite3 *db, const struct ls_store_rollup *r)
{
	sqlite3_stmt *stmt[ROLLUP_STATEMENTS] = { NULL };
	int rc = ls_db_prepare_all(db, rollup_sql, stmt, ROLLUP_STATEMENTS);

	for (size_t i = 0; i < r->count && rc == 0; i++)
		rc = rollup_put(db, stmt, &r->rows[i]);
	ls_db_finalize_all(stmt, ROLLUP_STATEMENTS);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of roll-ups; interface in store_sql.h. They run once a minute, so none
 * is kept. */
#include "config.h"

#include "storage/write/store_sql.h"

#include "storage/db/db.h"
#include "storage/db/sql.h"

enum rollup_statement {
	ROLLUP_METRIC,
	ROLLUP_LABELS,
	ROLLUP_BODY,
	ROLLUP_DONE,
	ROLLUP_UNDONE,
	ROLLUP_STATEMENTS
};

static const char *const rollup_sql[ROLLUP_STATEMENTS] = {
	[ROLLUP_METRIC] = "INSERT INTO rollup_metric (id, name) VALUES (?1, ?2)",
	[ROLLUP_LABELS] = "INSERT INTO rollup_labels (id, text) VALUES (?1, ?2)",
	[ROLLUP_BODY] = "INSERT INTO rollup (metric_id, span_s, t_us, n, body) "
			"VALUES (?1, ?2, ?3, ?4, ?5)",
	[ROLLUP_DONE] = "INSERT INTO rollup_done (span_s, t_us, chunk_id) "
			"VALUES (?1, ?2, ?3) "
			"ON CONFLICT (span_s, t_us) DO UPDATE SET chunk_id = ?3",
	[ROLLUP_UNDONE] = "DELETE FROM rollup_done WHERE span_s = ?1 AND t_us = ?2",
};

/* Is rollup_done as the maker of the message saw it? Else its samples are in already,
 * or others are missing. */
static int
rollup_check(sqlite3 *db, const struct ls_store_rollup *r)
{
	int64_t chunk_id = 0;
	size_t i;
	int rc = 0;

	for (i = 0; i < r->done_count && rc == 0; i++) {
		rc = ls_sql_int_of(db,
			"SELECT chunk_id FROM rollup_done WHERE span_s = ?1 AND t_us = ?2",
			LS_SQL_VALUES(ls_sql_int(r->done[i].span_s),
				ls_sql_int(r->done[i].t_us)),
			&chunk_id);
		if (rc == 0 && chunk_id != r->done[i].before)
			rc = -LS_ESTALE;
	}
	return rc;
}

static int
rollup_put_names(sqlite3_stmt *const *stmt, const struct ls_store_rollup *r)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < r->name_count && rc == 0; i++)
		rc = ls_sql_run(
			stmt[r->names[i].is_metric ? ROLLUP_METRIC : ROLLUP_LABELS],
			LS_SQL_VALUES(ls_sql_int(r->names[i].id),
				ls_sql_text((const char *)r->data + r->names[i].at)));
	return rc;
}

static int
rollup_put_bodies(sqlite3_stmt *s, const struct ls_store_rollup *r)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < r->body_count && rc == 0; i++) {
		const struct ls_store_rollup_body *b = &r->bodies[i];

		rc = ls_sql_run(s,
			LS_SQL_VALUES(ls_sql_int(b->metric_id), ls_sql_int(b->span_s),
				ls_sql_int(b->t_us), ls_sql_int(b->n),
				ls_sql_blob(r->data + b->at, b->len)));
	}
	return rc;
}

static int
rollup_put_done(sqlite3_stmt *const *stmt, const struct ls_store_rollup *r)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < r->done_count && rc == 0; i++) {
		const struct ls_store_rollup_done *d = &r->done[i];

		rc = d->chunk_id == 0 ? ls_sql_run(stmt[ROLLUP_UNDONE],
						LS_SQL_VALUES(ls_sql_int(d->span_s),
							ls_sql_int(d->t_us)))
				      : ls_sql_run(stmt[ROLLUP_DONE],
						LS_SQL_VALUES(ls_sql_int(d->span_s),
							ls_sql_int(d->t_us),
							ls_sql_int(d->chunk_id)));
	}
	return rc;
}

int
ls_store_put_rollup(sqlite3 *db, const struct ls_store_rollup *r)
{
	sqlite3_stmt *stmt[ROLLUP_STATEMENTS] = { NULL };
	int rc = rollup_check(db, r);

	if (rc == 0)
		rc = ls_db_prepare_all(db, rollup_sql, stmt, ROLLUP_STATEMENTS);
	if (rc == 0)
		rc = rollup_put_names(stmt, r);
	if (rc == 0)
		rc = rollup_put_bodies(stmt[ROLLUP_BODY], r);
	if (rc == 0)
		rc = rollup_put_done(stmt, r);
	ls_db_finalize_all(stmt, ROLLUP_STATEMENTS);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of roll-ups; interface in store_sql.h. They run once a minute, so none
 * is kept. */
#include "config.h"

#include "storage/db/err_sqlite.h"
#include "storage/write/store_sql.h"

#include "storage/db/db.h"

/* Is rollup_done as the maker of the message saw it? Else its samples are in already,
 * or others are missing. */
static int
rollup_check(sqlite3 *db, const struct ls_store_rollup *r)
{
	sqlite3_stmt *s = NULL;
	size_t i;
	int rc = ls_db_prepare(db,
		"SELECT ifnull((SELECT chunk_id FROM rollup_done WHERE span_s = ?1 AND t_us = ?2), 0)",
		&s);

	for (i = 0; i < r->done_count && rc == 0; i++) {
		int step;

		ls_insert_int(s, 1, r->done[i].span_s);
		ls_insert_int(s, 2, r->done[i].t_us);
		step = sqlite3_step(s);
		if (step != SQLITE_ROW)
			rc = ls_err_sqlite(step);
		else if (sqlite3_column_int64(s, 0) != r->done[i].before)
			rc = -LS_ESTALE;
		(void)sqlite3_reset(s); /* tells the same error again */
	}
	(void)sqlite3_finalize(s); /* likewise */
	return rc;
}

static int
rollup_put_names(sqlite3 *db, const struct ls_store_rollup *r)
{
	sqlite3_stmt *metric = NULL, *labels = NULL;
	size_t i;
	int rc = ls_db_prepare(db,
		"INSERT INTO rollup_metric (id, name) VALUES (?1, ?2)", &metric);

	if (rc == 0)
		rc = ls_db_prepare(db,
			"INSERT INTO rollup_labels (id, text) VALUES (?1, ?2)",
			&labels);
	for (i = 0; i < r->name_count && rc == 0; i++) {
		sqlite3_stmt *s = r->names[i].is_metric ? metric : labels;

		ls_insert_int(s, 1, r->names[i].id);
		ls_insert_text(s, 2, (const char *)r->data + r->names[i].at);
		rc = ls_db_run(s);
	}
	(void)sqlite3_finalize(metric); /* its errors were told when it ran */
	(void)sqlite3_finalize(labels); /* likewise */
	return rc;
}

static int
rollup_put_bodies(sqlite3 *db, const struct ls_store_rollup *r)
{
	sqlite3_stmt *s = NULL;
	size_t i;
	int rc = ls_db_prepare(db,
		"INSERT INTO rollup (metric_id, span_s, t_us, n, body) VALUES (?1, ?2, ?3, ?4, ?5)",
		&s);

	for (i = 0; i < r->body_count && rc == 0; i++) {
		const struct ls_store_rollup_body *b = &r->bodies[i];

		ls_insert_int(s, 1, b->metric_id);
		ls_insert_int(s, 2, b->span_s);
		ls_insert_int(s, 3, b->t_us);
		ls_insert_int(s, 4, b->n);
		ls_insert_blob(s, 5, r->data + b->at, b->len);
		rc = ls_db_run(s);
	}
	(void)sqlite3_finalize(s); /* its errors were told when it ran */
	return rc;
}

static int
rollup_put_done(sqlite3 *db, const struct ls_store_rollup *r)
{
	sqlite3_stmt *put = NULL, *remove = NULL;
	size_t i;
	int rc = ls_db_prepare(db,
		"INSERT INTO rollup_done (span_s, t_us, chunk_id) VALUES (?1, ?2, ?3) "
		"ON CONFLICT (span_s, t_us) DO UPDATE SET chunk_id = ?3",
		&put);

	if (rc == 0)
		rc = ls_db_prepare(db,
			"DELETE FROM rollup_done WHERE span_s = ?1 AND t_us = ?2",
			&remove);
	for (i = 0; i < r->done_count && rc == 0; i++) {
		const struct ls_store_rollup_done *d = &r->done[i];
		sqlite3_stmt *s = d->chunk_id == 0 ? remove : put;

		ls_insert_int(s, 1, d->span_s);
		ls_insert_int(s, 2, d->t_us);
		if (d->chunk_id != 0)
			ls_insert_int(s, 3, d->chunk_id);
		rc = ls_db_run(s);
	}
	(void)sqlite3_finalize(put); /* its errors were told when it ran */
	(void)sqlite3_finalize(remove); /* likewise */
	return rc;
}

int
ls_store_put_rollup(sqlite3 *db, const struct ls_store_rollup *r)
{
	int rc = rollup_check(db, r);

	if (rc == 0)
		rc = rollup_put_names(db, r);
	if (rc == 0)
		rc = rollup_put_bodies(db, r);
	if (rc == 0)
		rc = rollup_put_done(db, r);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/sql.h"

#include <string.h>
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"

static int
sql_bind_one(sqlite3_stmt *stmt, int i, const struct ls_sql_value *v)
{
	switch (v->kind) {
	case LS_SQL_INT:
		return sqlite3_bind_int64(stmt, i, v->number);
	case LS_SQL_DOUBLE:
		return sqlite3_bind_double(stmt, i, v->real);
	case LS_SQL_TEXT:
		return sqlite3_bind_text(stmt, i, v->data, -1, SQLITE_STATIC);
	case LS_SQL_BLOB:
		return sqlite3_bind_blob(stmt, i, v->len > 0 ? v->data : "",
			(int)v->len, SQLITE_STATIC);
	case LS_SQL_NULL:
	case LS_SQL_END:
		break;
	}
	return sqlite3_bind_null(stmt, i);
}

int
ls_sql_bind(sqlite3_stmt *stmt, const struct ls_sql_value *values)
{
	int i, rc = 0;

	for (i = 0; values != NULL && values[i].kind != LS_SQL_END && rc == 0; i++)
		rc = ls_err_sqlite(sql_bind_one(stmt, i + 1, &values[i]));
	return rc;
}

int
ls_sql_run(sqlite3_stmt *stmt, const struct ls_sql_value *values)
{
	int rc = ls_sql_bind(stmt, values);

	return rc == 0 ? ls_db_run(stmt) : rc;
}

/* --- fields --------------------------------------------------------------- */

static int
sql_read_int(int64_t number, const struct ls_sql_field *f)
{
	int32_t low = (int32_t)number;

	if (f->max > 0 && (uint64_t)number > f->max)
		return -LS_ECORRUPT;
	if (f->size == sizeof(low))
		memcpy(f->to, &low, sizeof(low));
	else
		memcpy(f->to, &number, sizeof(number));
	return 0;
}

int
ls_sql_read(sqlite3_stmt *stmt, const struct ls_sql_field *fields)
{
	const struct ls_sql_field *f;
	int i, rc = 0;

	for (i = 0; fields[i].kind != LS_SQL_END && rc == 0; i++) {
		f = &fields[i];
		if (f->kind == LS_SQL_INT)
			rc = sql_read_int(sqlite3_column_int64(stmt, i), f);
		else if (f->kind == LS_SQL_DOUBLE)
			*(double *)f->to = sqlite3_column_double(stmt, i);
		else if (f->kind == LS_SQL_TEXT)
			rc = ls_db_column_text(stmt, i, f->to, f->size);
		else if (f->kind == LS_SQL_BLOB)
			rc = ls_db_column_blob(stmt, i, f->to, f->size);
	}
	return rc;
}

/* --- rows ----------------------------------------------------------------- */

struct ls_sql_rows
ls_sql_rows(sqlite3 *db, const char *sql, const struct ls_sql_value *values)
{
	struct ls_sql_rows rows = { 0 };

	rows.rc = ls_db_prepare(db, sql, &rows.stmt);
	if (rows.rc == 0)
		rows.rc = ls_sql_bind(rows.stmt, values);
	return rows;
}

struct ls_sql_rows
ls_sql_again(sqlite3_stmt *stmt, const struct ls_sql_value *values)
{
	return (struct ls_sql_rows){ stmt, true, ls_sql_bind(stmt, values) };
}

bool
ls_sql_next(struct ls_sql_rows *rows)
{
	int step;

	if (rows->rc != 0)
		return false;
	step = sqlite3_step(rows->stmt);
	rows->rc = ls_err_sqlite(step);
	return step == SQLITE_ROW;
}

int
ls_sql_end(struct ls_sql_rows *rows)
{
	/* Both return the error of the last step again. */
	if (rows->kept)
		(void)sqlite3_reset(rows->stmt);
	else
		(void)sqlite3_finalize(rows->stmt);
	return rows->rc;
}

int
ls_sql_int_of(sqlite3 *db, const char *sql, const struct ls_sql_value *values,
	int64_t *ret_value)
{
	struct ls_sql_rows rows = ls_sql_rows(db, sql, values);
	int64_t value = ls_sql_next(&rows) ? sqlite3_column_int64(rows.stmt, 0) : 0;
	int rc = ls_sql_end(&rows);

	if (rc == 0)
		*ret_value = value;
	return rc;
}

int
ls_sql_attach(sqlite3 *db, const char *path, const char *name)
{
	int64_t none;

	return ls_sql_int_of(db, "ATTACH ?1 AS ?2",
		LS_SQL_VALUES(ls_sql_text(path), ls_sql_text(name)), &none);
}

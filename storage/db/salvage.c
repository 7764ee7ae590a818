/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/salvage.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "proto/limits.h"
#include "storage/db/db.h"
#include "storage/db/err_sqlite.h"
#include "storage/db/files.h"
#include "storage/db/migrate.h"
#include "storage/db/sql.h"

#define SALVAGE_SQL 512

/* One table. Lost rows are ids that are missing where a page could not be read: at most
 * so many rows. Of a table without ids the number is not known. */
struct salvage_table {
	sqlite3 *from, *to;
	const char *name;
	sqlite3_stmt *put;
	uint64_t read, lost;
	bool lost_unknown;
	int64_t last; /* id */
};

__attribute__((format(printf, 3, 4))) static int
salvage_prepare(sqlite3 *db, sqlite3_stmt **ret_stmt, const char *fmt, ...)
{
	char sql[SALVAGE_SQL];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(sql, sizeof(sql), fmt, args);
	va_end(args);
	return n > 0 && (size_t)n < sizeof(sql) ? ls_db_prepare(db, sql, ret_stmt)
						: -LS_ELIMIT;
}

static bool
salvage_is_damage(int step)
{
	return ls_err_sqlite(step) == -LS_ECORRUPT;
}

/* INSERT with as many parameters as the table of the new file has columns. */
static int
salvage_prepare_put(struct salvage_table *t)
{
	char marks[128] = "?";
	sqlite3_stmt *all = NULL;
	int i, rc = salvage_prepare(t->to, &all, "SELECT * FROM %s", t->name);

	for (i = 1; rc == 0 && i < sqlite3_column_count(all); i++)
		(void)snprintf(marks + strlen(marks), sizeof(marks) - strlen(marks),
			", ?");
	(void)sqlite3_finalize(all); /* not run */
	return rc == 0 ? salvage_prepare(t->to, &t->put,
				 "INSERT OR IGNORE INTO %s VALUES (%s)", t->name, marks)
		       : rc;
}

/* Copies the row on which a statement stands, from a column on. A row that the schema
 * refuses is lost. */
static int
salvage_put(struct salvage_table *t, sqlite3_stmt *row, int first)
{
	int i, rc = 0;

	for (i = 0; i < sqlite3_bind_parameter_count(t->put) && rc == 0; i++)
		rc = ls_err_sqlite(sqlite3_bind_value(t->put, i + 1,
			sqlite3_column_value(row, first + i)));
	if (rc != 0)
		return rc;
	rc = sqlite3_step(t->put);
	(void)sqlite3_reset(t->put); /* tells the same error again */
	if ((rc & 0xff) == SQLITE_CONSTRAINT || (rc & 0xff) == SQLITE_MISMATCH) {
		t->lost++;
		return 0;
	}
	t->read += (uint64_t)sqlite3_changes(t->to);
	return ls_err_sqlite(rc);
}

/* Steps to the end, or to damage (*ret_damage). */
static int
salvage_run(struct salvage_table *t, sqlite3_stmt *rows, bool has_id, bool *ret_damage)
{
	int step = SQLITE_DONE, rc = 0;

	while (rc == 0 && (step = sqlite3_step(rows)) == SQLITE_ROW) {
		if (has_id)
			t->last = sqlite3_column_int64(rows, 0);
		rc = salvage_put(t, rows, has_id ? 1 : 0);
	}
	*ret_damage = rc == 0 && salvage_is_damage(step);
	(void)sqlite3_reset(rows); /* tells the same error again */
	return rc != 0 || *ret_damage ? rc : ls_err_sqlite(step);
}

/* --- tables with ids ------------------------------------------------------- */

/* Whether the first row from id on can be read; no row is readable, too. */
static int
salvage_probe(sqlite3_stmt *probe, int64_t id, bool *ret_ok, int64_t *ret_id)
{
	int step, rc = ls_err_sqlite(sqlite3_bind_int64(probe, 1, id));

	if (rc != 0)
		return rc;
	step = sqlite3_step(probe);
	*ret_ok = !salvage_is_damage(step);
	*ret_id = step == SQLITE_ROW ? sqlite3_column_int64(probe, 0) : INT64_MAX;
	(void)sqlite3_reset(probe); /* tells the same error again */
	return *ret_ok ? ls_err_sqlite(step) : 0;
}

/* The first id behind `from` from which on the table can be read; INT64_MAX: there is
 * none. First in growing steps, then between the last two of them. */
static int
salvage_next(sqlite3_stmt *probe, int64_t from, int64_t *ret_id)
{
	int64_t low = from, high = from, found = INT64_MAX, step = 1;
	bool ok = false;
	int rc = 0;

	while (rc == 0 && !ok && high < INT64_MAX / 4) {
		low = high;
		high = from + step;
		step *= 2;
		rc = salvage_probe(probe, high, &ok, &found);
	}
	while (rc == 0 && ok && low + 1 < high) {
		int64_t middle = low + (high - low) / 2, id;
		bool good;

		rc = salvage_probe(probe, middle, &good, &id);
		if (good) {
			high = middle;
			found = id;
		} else {
			low = middle;
		}
	}
	*ret_id = ok ? found : INT64_MAX;
	return rc;
}

/* The greatest id that can be read from the end of the table: where to stop counting. */
static int64_t
salvage_top(struct salvage_table *t)
{
	sqlite3_stmt *top = NULL;
	int64_t id = 0;

	if (salvage_prepare(t->from, &top,
		    "SELECT rowid FROM %s ORDER BY rowid DESC LIMIT 1", t->name) == 0 &&
		sqlite3_step(top) == SQLITE_ROW)
		id = sqlite3_column_int64(top, 0);
	(void)sqlite3_finalize(top); /* only a hint */
	return id;
}

static int
salvage_ids(struct salvage_table *t)
{
	sqlite3_stmt *rows = NULL, *probe = NULL;
	int64_t next = INT64_MIN, top = salvage_top(t);
	bool damage = true;
	int rc = salvage_prepare(t->from, &rows,
		"SELECT rowid, * FROM %s WHERE rowid >= ?1 ORDER BY rowid", t->name);

	if (rc == 0)
		rc = salvage_prepare(t->from, &probe,
			"SELECT rowid, * FROM %s WHERE rowid >= ?1 ORDER BY rowid LIMIT 1",
			t->name);
	while (rc == 0 && damage) {
		rc = ls_err_sqlite(sqlite3_bind_int64(rows, 1, next));
		if (rc == 0)
			rc = salvage_run(t, rows, true, &damage);
		if (rc != 0 || !damage)
			break;
		rc = salvage_next(probe, t->last, &next);
		if (rc != 0 || next == INT64_MAX) {
			t->lost += top > t->last ? (uint64_t)(top - t->last) : 0;
			t->lost_unknown = t->lost_unknown || top <= t->last;
			break;
		}
		t->lost += (uint64_t)(next - t->last - 1);
	}
	(void)sqlite3_finalize(rows); /* its errors are known */
	(void)sqlite3_finalize(probe); /* likewise */
	return rc;
}

/* --- tables without ids ---------------------------------------------------- */

/* From the begin to the damage, then from the end to the damage. */
static int
salvage_keys(struct salvage_table *t, const char *key)
{
	bool damage = true;
	int i, rc = 0;

	for (i = 0; i < 2 && rc == 0 && damage; i++) {
		sqlite3_stmt *rows = NULL;

		rc = salvage_prepare(t->from, &rows, "SELECT * FROM %s ORDER BY %s%s",
			t->name, key, i == 0 ? "" : " DESC");
		if (rc == 0)
			rc = salvage_run(t, rows, false, &damage);
		(void)sqlite3_finalize(rows); /* its errors are known */
		t->lost_unknown = t->lost_unknown || damage;
	}
	return rc;
}

/* First column of the primary key of a table WITHOUT ROWID; "" for all others. */
static int
salvage_key(sqlite3 *db, const char *table, char *dst, size_t size)
{
	struct ls_sql_rows rows = ls_sql_rows(db,
		"SELECT c.name FROM sqlite_schema s, pragma_table_info (?1) c "
		"WHERE s.name = ?1 AND s.sql LIKE '%WITHOUT ROWID%' AND c.pk = 1",
		LS_SQL_VALUES(ls_sql_text(table)));

	dst[0] = '\0';
	if (ls_sql_next(&rows))
		rows.rc = ls_db_column_text(rows.stmt, 0, dst, size);
	return ls_sql_end(&rows);
}

/* --- the file -------------------------------------------------------------- */

static int
salvage_table(sqlite3 *from, sqlite3 *to, const char *name,
	void (*say)(void *arg, const char *line), void *arg)
{
	struct salvage_table t = { .from = from, .to = to, .name = name };
	char key[64], line[256];
	int n, rc = salvage_key(to, name, key, sizeof(key));

	if (rc == 0)
		rc = salvage_prepare_put(&t);
	if (rc == 0)
		rc = key[0] != '\0' ? salvage_keys(&t, key) : salvage_ids(&t);
	(void)sqlite3_finalize(t.put); /* its errors are known */
	n = snprintf(line, sizeof(line), "%s: %" PRIu64 " rows read, ", name, t.read);
	if (n > 0 && (size_t)n < sizeof(line))
		(void)snprintf(line + n, sizeof(line) - (size_t)n,
			t.lost_unknown	     ? "an unknown number lost"
				: t.lost > 0 ? "at most %" PRIu64 " lost"
					     : "%" PRIu64 " lost",
			t.lost);
	if (rc == 0)
		say(arg, line);
	return rc;
}

/* A chunk whose body is lost would decode as damage at each reading. */
static int
salvage_drop_chunks(sqlite3 *to, void (*say)(void *arg, const char *line), void *arg)
{
	char sql[SALVAGE_SQL], line[128];
	int rc;

	(void)snprintf(sql, sizeof(sql),
		"DELETE FROM chunk WHERE (SELECT count(*) FROM body_part WHERE id BETWEEN at / %d + 1 AND "
		"(at + len - 1) / %d + 1) <> (at + len - 1) / %d - at / %d + 1",
		LS_BODY_PART_BYTES, LS_BODY_PART_BYTES, LS_BODY_PART_BYTES,
		LS_BODY_PART_BYTES);
	rc = ls_db_exec(to, sql);
	(void)snprintf(line, sizeof(line),
		"chunk: %d rows left out: their bodies are lost", sqlite3_changes(to));
	if (rc == 0 && sqlite3_changes(to) > 0)
		say(arg, line);
	return rc;
}

static int
salvage_tables(sqlite3 *from, sqlite3 *to, enum ls_schema schema,
	void (*say)(void *arg, const char *line), void *arg)
{
	struct ls_sql_rows tables = ls_sql_rows(to,
		"SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid",
		NULL);
	int rc;

	while (ls_sql_next(&tables))
		tables.rc = salvage_table(from, to,
			(const char *)sqlite3_column_text(tables.stmt, 0), say, arg);
	rc = ls_sql_end(&tables);
	return rc == 0 && schema == LS_SCHEMA_TELEMETRY
		? salvage_drop_chunks(to, say, arg)
		: rc;
}

/* Opens the damaged file. Without frames in a WAL, SQLite makes no file beside it. */
static int
salvage_open(const char *path, sqlite3 **ret_db)
{
	char wal[PATH_MAX], uri[3 * PATH_MAX + 32];
	size_t at = 0;
	int n = snprintf(wal, sizeof(wal), "%s-wal", path);

	if (n < 0 || (size_t)n >= sizeof(wal))
		return -ENAMETOOLONG;
	if (access(path, R_OK) != 0)
		return -errno;
	if (ls_files_bytes(wal) > 0)
		return ls_db_open(path, LS_DB_READ, ret_db);
	at = (size_t)snprintf(uri, sizeof(uri), "file:");
	for (; *path != '\0'; path++)
		at += (size_t)snprintf(uri + at, sizeof(uri) - at,
			strchr("?#%", *path) != NULL ? "%%%02x" : "%c", *path);
	(void)snprintf(uri + at, sizeof(uri) - at, "?immutable=1");
	return ls_db_open(uri, LS_DB_READ, ret_db);
}

static int
salvage_schema(sqlite3 *from, enum ls_schema *ret_schema)
{
	int64_t version;
	int rc;

	*ret_schema = LS_SCHEMA_TELEMETRY;
	rc = ls_migrate_version(from, ls_migrations_of(*ret_schema), &version);
	if (rc == -LS_ECORRUPT) {
		*ret_schema = LS_SCHEMA_STATE;
		rc = ls_migrate_check(from, ls_migrations_of(*ret_schema));
	}
	return rc;
}

int
ls_salvage(const char *path, const char *to, void (*say)(void *arg, const char *line),
	void *arg)
{
	sqlite3 *from = NULL, *fresh = NULL;
	enum ls_schema schema;
	int rc = access(to, F_OK) == 0 ? -EEXIST : salvage_open(path, &from);

	if (rc == 0)
		rc = salvage_schema(from, &schema);
	if (rc != 0)
		goto out;
	rc = ls_db_open(to, LS_DB_WRITE, &fresh);
	if (rc == 0)
		rc = ls_db_exec(fresh, "PRAGMA foreign_keys = OFF; BEGIN");
	if (rc == 0)
		rc = ls_migrate(fresh, ls_migrations_of(schema), NULL);
	if (rc == 0)
		rc = salvage_tables(from, fresh, schema, say, arg);
	if (rc == 0)
		rc = ls_db_exec(fresh, "COMMIT");
	ls_db_close(fresh); /* the last connection moves the WAL into the file */
	if (rc != 0)
		ls_ignore(ls_files_remove(to)); /* rc says more */
out:
	ls_db_close(from);
	return rc;
}

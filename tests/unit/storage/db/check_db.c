/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/db.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/support/harness.h"

#define PAGE 4096

static char path[PATH_MAX];
static sqlite3 *db;

/* A file of some tens of pages. */
static void
setup(void)
{
	(void)snprintf(path, sizeof(path), "%s/x.db", ls_test_tmpdir());
	db = NULL;
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(
		ls_db_exec(db,
			"CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, place BLOB);"
			"CREATE INDEX t_name ON t (name);"
			"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 4000) "
			"INSERT INTO t SELECT x, printf('name %d', x), x'0102' FROM n"),
		0);
}

static void
teardown(void)
{
	ls_db_close(db);
}

/* Makes an index lie: its rows no longer are those of the table. */
static void
spoil(void)
{
	FILE *f;
	long at, end;
	static uint8_t page[PAGE];

	ls_db_close(db);
	f = fopen(path, "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	end = ftell(f);
	for (at = PAGE; at < end; at += PAGE) { /* the first leaf of an index */
		ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
		ck_assert_uint_eq(fread(page, 1, PAGE, f), PAGE);
		if (page[0] == 10)
			break;
	}
	ck_assert_int_lt(at, end);
	page[PAGE - 3] ^= 1;
	ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(page, 1, PAGE, f), PAGE);
	ck_assert_int_eq(fclose(f), 0);
	db = NULL;
	ck_assert_int_eq(ls_db_open(path, LS_DB_READ, &db), 0);
}

LS_CASE(db, setup, teardown);

LS_TEST(db, a_check_names_the_first_complaint)
{
	char text[200] = "";
	atomic_bool stop = false;

	ck_assert_int_eq(ls_db_check(db, 0, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "ok");
	ck_assert_int_eq(ls_db_check(db, 1000000000000, NULL, 0), 0);
	spoil();
	ck_assert_int_eq(ls_db_check(db, 0, text, sizeof(text)), -LS_ECORRUPT);
	ck_assert_msg(strstr(text, "t_name") != NULL, "%s", text);
	ck_assert_int_eq(ls_db_check(db, 0, NULL, 0), -LS_ECORRUPT);
	ck_assert_int_eq(ls_db_check_until(db, &stop), 0); /* it reads no index */
}

LS_TEST(db, a_check_that_is_stopped_has_passed)
{
	static const char long_sql[] =
		"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100000) "
		"SELECT max(x) FROM n";
	atomic_bool stop = true;

	ck_assert_int_eq(ls_db_check_until(db, &stop), 0);
	ck_assert_int_eq(ls_db_check(db, 1, NULL, 0), 0); /* no time for it */
	/* Who asks next is not interrupted. */
	ck_assert_int_eq(ls_db_exec(db, long_sql), 0);
}

LS_TEST(db, columns_fit_their_fields_or_are_damage)
{
	sqlite3_stmt *stmt = NULL;
	char name[7];
	uint8_t place[2];

	ck_assert_int_eq(ls_db_prepare(db,
				 "SELECT name, place, NULL FROM t WHERE id = ?1",
				 &stmt),
		0);
	(void)sqlite3_bind_int64(stmt, 1, 7);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	ck_assert_int_eq(ls_db_column_text(stmt, 0, name, 7), 0); /* six and a NUL */
	ck_assert_str_eq(name, "name 7");
	ck_assert_int_eq(ls_db_column_text(stmt, 0, name, 6), -LS_ECORRUPT);
	ck_assert_int_eq(ls_db_column_text(stmt, 2, name, 7), -LS_ECORRUPT);
	ck_assert_int_eq(ls_db_column_blob(stmt, 1, place, 2), 0);
	ck_assert_uint_eq(place[1], 2);
	ck_assert_int_eq(ls_db_column_blob(stmt, 1, place, 1), -LS_ECORRUPT);
	ck_assert_int_eq(ls_db_column_blob(stmt, 2, place, 0), -LS_ECORRUPT);
	(void)sqlite3_finalize(stmt);
}

LS_TEST(db, a_failed_transaction_leaves_nothing)
{
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(ls_db_begin(db), 0);
	ck_assert_int_eq(ls_db_exec(db, "DELETE FROM t"), 0);
	ck_assert_int_eq(ls_db_end(db, -EIO), -EIO);
	ck_assert_int_eq(ls_db_prepare(db, "SELECT id FROM t WHERE id = 1", &stmt), 0);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	(void)sqlite3_finalize(stmt);
	ck_assert_int_eq(ls_db_end(NULL, -EIO), -EIO);
	ck_assert_int_eq(ls_db_begin(db), 0);
	ck_assert_int_eq(ls_db_exec(db, "DELETE FROM t"), 0);
	ck_assert_int_eq(ls_db_end(db, 0), 0);
	ck_assert_int_eq(ls_db_prepare(db, "SELECT id FROM t", &stmt), 0);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_DONE);
	(void)sqlite3_finalize(stmt);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/sql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "storage/db/db.h"
#include "tests/support/harness.h"

static sqlite3 *db;

static void
setup(void)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/x.db", ls_test_tmpdir());
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(
		ls_db_exec(db, "CREATE TABLE t (i INTEGER, d REAL, s TEXT, b BLOB)"),
		0);
}

static void
teardown(void)
{
	ls_db_close(db); /* asserts that no statement is left */
}

static void
put(const struct ls_sql_value *values)
{
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(
		ls_db_prepare(db, "INSERT INTO t VALUES (?1, ?2, ?3, ?4)", &stmt), 0);
	ck_assert_int_eq(ls_sql_run(stmt, values), 0);
	(void)sqlite3_finalize(stmt);
}

LS_CASE(sql, setup, teardown);

LS_TEST(sql, row_read_is_the_row_written)
{
	int64_t number = 0;
	double real = 0;
	char text[8] = "";
	uint8_t bytes[3] = { 0 };
	struct ls_sql_rows rows;

	put(LS_SQL_VALUES(ls_sql_int(INT64_MIN), ls_sql_double(0.5), ls_sql_text("abc"),
		ls_sql_blob("\1\0\2", 3)));
	rows = ls_sql_rows(db, "SELECT i, d, s, b FROM t", NULL);
	ck_assert(ls_sql_next(&rows));
	ck_assert_int_eq(
		ls_sql_read(rows.stmt,
			LS_SQL_FIELDS(ls_sql_to_i64(&number), ls_sql_to_double(&real),
				ls_sql_to_text(text, sizeof(text)),
				ls_sql_to_blob(bytes, sizeof(bytes)))),
		0);
	ck_assert(!ls_sql_next(&rows));
	ck_assert_int_eq(ls_sql_end(&rows), 0);
	ck_assert(number == INT64_MIN && real == 0.5);
	ck_assert_str_eq(text, "abc");
	ck_assert_int_eq(memcmp(bytes, "\1\0\2", 3), 0);
}

LS_TEST(sql, zero_and_null_text_may_be_null_and_empty_bytes_are_not)
{
	int64_t nulls = 0;

	put(LS_SQL_VALUES(ls_sql_int_or_null(0), ls_sql_int_or_null(7),
		ls_sql_text(NULL), ls_sql_blob(NULL, 0)));
	ck_assert_int_eq(
		ls_sql_int_of(db,
			"SELECT (i IS NULL) + 10 * (d = 7) + 100 * (s IS NULL) + 1000 * (b = x'') FROM t",
			NULL, &nulls),
		0);
	ck_assert_int_eq(nulls, 1111);
}

LS_TEST(sql, numbers_keep_their_width)
{
	uint64_t u64 = 0;
	uint32_t u32 = 0;
	int32_t i32[2] = { 0, 5 };
	struct ls_sql_rows rows = ls_sql_rows(db, "SELECT ?1, ?2, ?3",
		LS_SQL_VALUES(ls_sql_u64(UINT64_MAX), ls_sql_int(UINT32_MAX),
			ls_sql_int(-2)));

	ck_assert(ls_sql_next(&rows));
	ck_assert_int_eq(ls_sql_read(rows.stmt,
				 LS_SQL_FIELDS(ls_sql_to_u64(&u64), ls_sql_to_u32(&u32),
					 ls_sql_to_i32(&i32[0]))),
		0);
	ck_assert_int_eq(ls_sql_end(&rows), 0);
	ck_assert(u64 == UINT64_MAX && u32 == UINT32_MAX);
	ck_assert(i32[0] == -2 && i32[1] == 5);
}

LS_TEST(sql, text_and_bytes_that_do_not_fit_are_damage)
{
	char text[3], ok[4];
	uint8_t bytes[2];
	struct ls_sql_rows rows = ls_sql_rows(db, "SELECT 'abc', x'010203'", NULL);

	ck_assert(ls_sql_next(&rows));
	ck_assert_int_eq(ls_sql_read(rows.stmt,
				 LS_SQL_FIELDS(ls_sql_to_text(text, sizeof(text)))),
		-LS_ECORRUPT);
	ck_assert_int_eq(ls_sql_read(rows.stmt,
				 LS_SQL_FIELDS(ls_sql_to_text(ok, sizeof(ok)),
					 ls_sql_to_blob(bytes, sizeof(bytes)))),
		-LS_ECORRUPT);
	ck_assert_int_eq(
		ls_sql_read(rows.stmt,
			LS_SQL_FIELDS(ls_sql_pass(), ls_sql_to_blob(bytes, 2))),
		-LS_ECORRUPT);
	ck_assert_int_eq(ls_sql_end(&rows), 0);
}

LS_TEST(sql, reader_ends_the_rows_with_its_error)
{
	sqlite3_stmt *stmt = NULL;
	struct ls_sql_rows rows;
	int round;

	ck_assert_int_eq(ls_db_prepare(db, "SELECT 1 UNION SELECT 2", &stmt), 0);
	for (round = 0; round < 2; round++) { /* the statement can be used again */
		rows = ls_sql_again(stmt, NULL);
		ck_assert(ls_sql_next(&rows));
		ck_assert_int_eq(sqlite3_column_int(rows.stmt, 0), 1);
		rows.rc = -LS_EPARSE;
		ck_assert(!ls_sql_next(&rows));
		ck_assert_int_eq(ls_sql_end(&rows), -LS_EPARSE);
		ck_assert(!sqlite3_stmt_busy(stmt));
	}
	(void)sqlite3_finalize(stmt);
}

LS_TEST(sql, errors_of_sqlite_end_the_rows)
{
	int64_t value = 3;
	struct ls_sql_rows rows = ls_sql_rows(db, "SELECT nothing FROM nowhere", NULL);

	ck_assert(!ls_sql_next(&rows));
	ck_assert_int_eq(ls_sql_end(&rows), -LS_EDB);
	/* more values than parameters */
	rows = ls_sql_rows(db, "SELECT 1", LS_SQL_VALUES(ls_sql_int(1)));
	ck_assert(!ls_sql_next(&rows));
	ck_assert_int_eq(ls_sql_end(&rows), -LS_EDB);
	ck_assert_int_eq(
		ls_sql_int_of(db, "SELECT abs(-9223372036854775808)", NULL, &value),
		-LS_EDB);
	ck_assert_int_eq(value, 3);
}

LS_TEST(sql, first_number_or_zero)
{
	int64_t value = 3;

	ck_assert_int_eq(ls_sql_int_of(db, "SELECT ?1 + 1",
				 LS_SQL_VALUES(ls_sql_int(41)), &value),
		0);
	ck_assert_int_eq(value, 42);
	ck_assert_int_eq(ls_sql_int_of(db, "SELECT i FROM t", NULL, &value), 0);
	ck_assert_int_eq(value, 0);
	value = 3;
	ck_assert_int_eq(ls_sql_int_of(db, "SELECT max(i) FROM t", NULL, &value), 0);
	ck_assert_int_eq(value, 0);
}

LS_TEST(sql, end_rolls_back_what_failed)
{
	int64_t rows = 0;

	ck_assert_int_eq(ls_db_begin(db), 0);
	put(LS_SQL_VALUES(ls_sql_int(1)));
	ck_assert_int_eq(ls_db_end(db, -LS_EPARSE), -LS_EPARSE);
	ck_assert_int_eq(ls_db_begin(db), 0);
	put(LS_SQL_VALUES(ls_sql_int(2)));
	ck_assert_int_eq(ls_db_end(db, 0), 0);
	ck_assert_int_eq(ls_sql_int_of(db, "SELECT sum(i) FROM t", NULL, &rows), 0);
	ck_assert_int_eq(rows, 2);
	ck_assert_int_eq(ls_db_end(NULL, -EIO), -EIO);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/migrate.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "tests/support/harness.h"

static char path[PATH_MAX];

static const struct ls_migration steps_two[] = {
	{ 1, "CREATE TABLE a (x INTEGER)" },
	{ 2, "ALTER TABLE a ADD COLUMN y INTEGER; INSERT INTO a VALUES (1, 2)" },
};
static const struct ls_migration steps_bad[] = {
	{ 1, "CREATE TABLE a (x INTEGER)" },
	{ 2, "CREATE TABLE b (x INTEGER); NONSENSE" },
};
static const struct ls_migrations first = { 77, steps_two, 1 };
static const struct ls_migrations both = { 77, steps_two, 2 };
static const struct ls_migrations broken = { 77, steps_bad, 2 };
static const struct ls_migrations other = { 78, steps_two, 2 };

static sqlite3 *
open_db(void)
{
	sqlite3 *db = NULL;

	if (path[0] == '\0')
		(void)snprintf(path, sizeof(path), "%s/x.db", ls_test_tmpdir());
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	return db;
}

static int
migrate(sqlite3 *db, const struct ls_migrations *m, bool *ret_fresh)
{
	int rc;

	ck_assert_int_eq(ls_db_exec(db, "BEGIN"), 0);
	rc = ls_migrate(db, m, ret_fresh);
	ck_assert_int_eq(ls_db_exec(db, rc == 0 ? "COMMIT" : "ROLLBACK"), 0);
	return rc;
}

static int64_t
number(sqlite3 *db, const char *sql)
{
	int64_t v = -1;

	ck_assert_int_eq(ls_sql_int_of(db, sql, NULL, &v), 0);
	return v;
}

static void
setup(void)
{
	path[0] = '\0';
}

LS_CASE(migrate, setup, NULL);

LS_TEST(migrate, goes_forward_step_by_step)
{
	sqlite3 *db = open_db();
	int64_t version = 0;
	bool fresh = false;

	/* empty */
	ck_assert_int_eq(ls_migrate_version(db, &both, &version), -LS_EVERSION);
	ck_assert_int_eq(migrate(db, &first, &fresh), 0);
	ck_assert(fresh);
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 1);
	ck_assert_int_eq(ls_migrate_check(db, &both), -LS_EVERSION);
	/* readers may take it */
	ck_assert_int_eq(ls_migrate_version(db, &both, &version), 0);
	ck_assert_int_eq(version, 1);
	ck_assert_int_eq(migrate(db, &both, &fresh), 0);
	ck_assert(!fresh);
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 2);
	ck_assert_int_eq(number(db, "SELECT y FROM a"), 2);
	ck_assert_int_eq(migrate(db, &both, &fresh), 0); /* nothing to do */
	ck_assert_int_eq(number(db, "SELECT count(*) FROM a"), 1);
	ck_assert_int_eq(ls_migrate_check(db, &both), 0);
	ls_db_close(db);
}

LS_TEST(migrate, a_newer_file_is_refused)
{
	sqlite3 *db = open_db();
	int64_t version = 0;

	ck_assert_int_eq(migrate(db, &both, NULL), 0);
	ck_assert_int_eq(migrate(db, &first, NULL), -LS_EVERSION);
	ck_assert_int_eq(ls_migrate_check(db, &first), -LS_EVERSION);
	ck_assert_int_eq(ls_migrate_version(db, &first, &version), -LS_EVERSION);
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 2);
	ls_db_close(db);
}

/* What SQLite before 3.37 says of a strict table, every SQLite says of this one. */
LS_TEST(migrate, tables_of_a_newer_sqlite_are_no_damage)
{
	sqlite3 *db = open_db();

	ls_db_close(db);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(
		ls_db_exec(db,
			"CREATE TABLE a (x INTEGER);"
			"PRAGMA writable_schema = ON;"
			"UPDATE sqlite_master "
			"SET sql = 'CREATE TABLE a (x INTEGER) STRICT STRICT'"),
		0);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	db = NULL;
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), -LS_EVERSION);
	ck_assert_ptr_null(db);
}

LS_TEST(migrate, a_file_older_than_the_first_step_is_refused)
{
	static const struct ls_migration later[] = { { 2,
		"CREATE TABLE b (x INTEGER)" } };
	const struct ls_migrations from_two = { 77, later, 1 };
	sqlite3 *db = open_db();
	int64_t version = 0;

	ck_assert_int_eq(migrate(db, &first, NULL), 0);
	ck_assert_int_eq(migrate(db, &from_two, NULL), -LS_EVERSION);
	ck_assert_int_eq(ls_migrate_version(db, &from_two, &version), -LS_EVERSION);
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 1);
	ls_db_close(db);
	path[0] = '\0';
	db = open_db();
	ck_assert_int_eq(migrate(db, &from_two, NULL), 0); /* an empty one is made */
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 2);
	ls_db_close(db);
}

LS_TEST(migrate, a_file_of_another_program_is_refused)
{
	sqlite3 *db = open_db();

	ck_assert_int_eq(migrate(db, &other, NULL), 0);
	ck_assert_int_eq(migrate(db, &both, NULL), -LS_ECORRUPT);
	ls_db_close(db);
	path[0] = '\0';
	db = open_db();
	ck_assert_int_eq(ls_db_exec(db, "CREATE TABLE strange (x)"), 0);
	ck_assert_int_eq(migrate(db, &both, NULL), -LS_ECORRUPT);
	ls_db_close(db);
}

LS_TEST(migrate, a_failed_step_changes_nothing)
{
	sqlite3 *db = open_db();

	ck_assert_int_eq(migrate(db, &broken, NULL), -LS_EDB);
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 0);
	ck_assert_int_eq(number(db, "SELECT count(*) FROM sqlite_schema"), 0);
	ls_db_close(db);
}

LS_TEST(migrate, files_are_ours_alone)
{
	struct stat st;
	char wal[PATH_MAX + 8];
	sqlite3 *db;

	(void)umask(022);
	db = open_db();
	ck_assert_int_eq(migrate(db, &both, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	ck_assert_int_eq(stat(wal, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	ls_db_close(db);
}

/* Every table and index of one kind of file, as text. */
static size_t
dump(const struct ls_migrations *migrations, char *text, size_t size)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;
	size_t len = 0;

	path[0] = '\0';
	db = open_db();
	ck_assert_int_eq(migrate(db, migrations, NULL), 0);
	len += (size_t)snprintf(text, size,
		"-- application_id %lld, user_version %lld\n",
		(long long)number(db, "PRAGMA application_id"),
		(long long)number(db, "PRAGMA user_version"));
	ck_assert_int_eq(ls_db_prepare(db,
				 "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL "
				 "ORDER BY type DESC, name",
				 &stmt),
		0);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		len += (size_t)snprintf(text + len, size - len, "%s;\n",
			(const char *)sqlite3_column_text(stmt, 0));
	ck_assert_int_eq(sqlite3_finalize(stmt), SQLITE_OK);
	ls_db_close(db);
	ck_assert_uint_lt(len, size);
	return len;
}

/* SQLite before 3.37 has no strict tables. */
static void
loosen(char *text)
{
	char *at;

	while (sqlite3_libversion_number() < 3037000 &&
		(at = strstr(text, " STRICT")) != NULL) {
		size_t n = strlen(at[7] == ',' ? " STRICT," : " STRICT");

		memmove(at, at + n, strlen(at + n) + 1);
	}
}

/* A kind of file after so many steps. */
static void
compare(enum ls_schema schema, size_t steps, const char *golden_file)
{
	static char text[16384];
	struct ls_migrations m = *ls_migrations_of(schema);
	size_t len, golden_len;
	char *golden;

	m.count = steps;
	len = dump(&m, text, sizeof(text));
	golden = ls_test_read(ls_test_source(golden_file), &golden_len);
	/* A released schema is never edited: a change is a new version with its own
	 * golden file. */
	ck_assert_uint_eq(strlen(golden), golden_len);
	loosen(golden);
	ck_assert_str_eq(text, golden);
	ck_assert_uint_eq(len, strlen(golden));
	free(golden);
}

LS_TEST(migrate, schemas_are_the_golden_ones)
{
	compare(LS_SCHEMA_STATE, 1, "tests/golden/schema_state_v1.txt");
	compare(LS_SCHEMA_STATE, 2, "tests/golden/schema_state_v2.txt");
	compare(LS_SCHEMA_STATE, 3, "tests/golden/schema_state_v3.txt");
	compare(LS_SCHEMA_STATE, 4, "tests/golden/schema_state_v4.txt");
	compare(LS_SCHEMA_STATE, 5, "tests/golden/schema_state_v5.txt");
	compare(LS_SCHEMA_STATE, 6, "tests/golden/schema_state_v6.txt");
	ck_assert_uint_eq(ls_migrations_of(LS_SCHEMA_STATE)->count, 6);
	compare(LS_SCHEMA_TELEMETRY, 1, "tests/golden/schema_telemetry_v4.txt");
	ck_assert_uint_eq(ls_migrations_of(LS_SCHEMA_TELEMETRY)->count, 1);
}

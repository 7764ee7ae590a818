/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/db: the POSIX locks of open databases hold against another program. */
#include "config.h"

#include "storage/db/db.h"

#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "storage/db/backup.h"
#include "storage/db/days.h"
#include "storage/read/query.h"
#include "storage/tidy/repack.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define CLOSED 20261120
#define OPEN 20261121
#define CLOSED_NOON (ls_days_begin_us(CLOSED) + 12ll * 3600 * 1000000)
#define NOON (ls_days_begin_us(OPEN) + 12ll * 3600 * 1000000)

static char dir[PATH_MAX];
static struct ls_store *store;
static int to_foreign[2], from_foreign[2];
static pid_t foreign;

/*
 * Another program, as `sqlite3 FILE` would be: it tries to leave the WAL, for which it
 * needs the file for itself. It would then delete the WAL that the store writes to.
 */
static int
foreign_try(int32_t day)
{
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	int rc = ls_days_path(path, dir, day);

	if (rc == 0)
		rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
	(void)sqlite3_close(db); /* no statements */
	return rc;
}

static void
foreign_main(void)
{
	int32_t day;

	while (read(to_foreign[0], &day, sizeof(day)) == (ssize_t)sizeof(day)) {
		int rc = foreign_try(day);

		if (write(from_foreign[1], &rc, sizeof(rc)) != (ssize_t)sizeof(rc))
			break;
	}
	_exit(0);
}

static int
foreign_says(int32_t day)
{
	int rc;

	ck_assert_int_eq(write(to_foreign[1], &day, sizeof(day)), sizeof(day));
	ck_assert_int_eq(read(from_foreign[0], &rc, sizeof(rc)), sizeof(rc));
	return rc;
}

/* The other program is forked before SQLite is used: it shares nothing with the store. */
static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(pipe(to_foreign), 0);
	ck_assert_int_eq(pipe(from_foreign), 0);
	foreign = fork();
	ck_assert_int_ge(foreign, 0);
	if (foreign == 0) {
		(void)close(to_foreign[1]);
		foreign_main();
	}
	(void)close(from_foreign[1]);
	ck_assert_int_eq(ls_store_open(dir, CLOSED_NOON, &store), 0);
}

static void
teardown(void)
{
	ls_store_close(store);
	(void)close(to_foreign[1]);
	(void)close(from_foreign[0]);
	ck_assert_int_eq(waitpid(foreign, NULL, 0), foreign);
}

static void
put(struct ls_write *m, int64_t t_us)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, t_us), 0);
	ls_test_write_free(m);
}

static void
hear(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static int
see_event(void *arg, const struct ls_store_event *event)
{
	(void)arg;
	(void)event;
	return 0;
}

/* --- what the collector does beside its open connections ------------------- */

static void
nothing(void)
{
}

static void
late_rollup(void)
{
	struct ls_store_rollup_row done = {
		.table = LS_ROLLUP_DONE, .span_s = 60, .t_us = 60000000, .chunk_id = 7
	};
	const struct ls_store_rollup r = { .day = CLOSED, .count = 1, .rows = &done };

	ck_assert_int_eq(ls_store_rollup(store, &r), 0);
}

static void
retention(void)
{
	put(ls_write_new(LS_WRITE_RETAIN, NOON), NOON);
}

static void
backup(void)
{
	char copy[PATH_MAX];

	(void)snprintf(copy, sizeof(copy), "%s/copy", ls_test_tmpdir());
	ck_assert_int_eq(ls_backup(dir, copy, hear, NULL), 0);
}

static void
check(void)
{
	ck_assert_int_eq(ls_store_check(dir, hear, NULL), 0);
}

static void
repack(void)
{
	struct ls_repack_stats stats;

	ck_assert_int_eq(ls_repack_day(dir, CLOSED, NULL, NULL, &stats), 0);
}

static void
second_writer(void)
{
	static const int32_t days[] = { 0, CLOSED, OPEN };
	char path[PATH_MAX];
	sqlite3 *db;
	size_t i;

	for (i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
		ck_assert_int_eq(ls_days_path(path, dir, days[i]), 0);
		ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
		ls_db_close(db);
	}
}

static void (*const work[])(void) = { nothing, late_rollup, retention, backup, check,
	repack, second_writer };

LS_CASE(locks, setup, teardown);

/* A reader has the closed day open; the store has the day and state.db. */
LS_TEST_EACH(locks, another_program_finds_the_databases_locked, work)
{
	struct ls_query *q;

	put(ls_test_worker(0, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_report(0, 1, 0, 10, CLOSED_NOON), CLOSED_NOON);
	put(ls_test_report(0, 2, 10, 5, NOON), NOON);
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	ck_assert_int_eq(ls_query_events(q, CLOSED, 0, see_event, NULL), 0);
	work[_i]();
	ck_assert_int_eq(foreign_says(CLOSED), SQLITE_BUSY);
	ck_assert_int_eq(foreign_says(OPEN), SQLITE_BUSY);
	ck_assert_int_eq(foreign_says(0), SQLITE_BUSY);
	ls_query_close(q);
	/* Without a lock the other program has its way: the answers above mean it. */
	ck_assert_int_eq(foreign_says(CLOSED), SQLITE_OK);
	put(ls_test_report(0, 3, 15, 5, NOON), NOON);
	ck_assert_int_eq(ls_test_sql(dir, OPEN, "SELECT max(seq) FROM ledger"), 3);
}

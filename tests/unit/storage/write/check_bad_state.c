/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of storage/store: what a state directory may be like after crashes and visitors.
 * Each case has a message with the path, what is wrong and what to do; and nothing that
 * could hold acknowledged data is deleted. */
#include "config.h"

#include "storage/write/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "storage/db/db.h"
#include "storage/read/query.h"
#include "tests/support/disk/faultvfs.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"
#include "tests/support/tree.h"

#define CLOSED 20261120
#define OPEN 20261121
#define CLOSED_NOON (ls_days_begin_us(CLOSED) + 12ll * 3600 * 1000000)
#define NOON (ls_days_begin_us(OPEN) + 12ll * 3600 * 1000000)

static char dir[PATH_MAX], said[65536];
static int holder[2];
static pid_t child;

/* --- what happened before the start ---------------------------------------- */

static void
nothing(void)
{
}

static bool
lock_dir(void)
{
	int fd = -1;

	return ls_days_lock(dir, &fd) == 0;
}

/* As somebody with sqlite3 would in the middle of a change. */
static bool
lock_state(void)
{
	char path[PATH_MAX];
	sqlite3 *db = NULL;

	return ls_days_path(path, dir, 0) == 0 &&
		sqlite3_open(path, &db) == SQLITE_OK &&
		sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
}

/* Another process has a lock, until its pipe is closed. */
static void
other_process(bool (*lock)(void))
{
	char ready[2];
	int back[2];

	ck_assert_int_eq(pipe(holder), 0);
	ck_assert_int_eq(pipe(back), 0);
	child = fork();
	if (child == 0) {
		(void)close(holder[1]);
		if (lock() && write(back[1], "y", 1) == 1)
			_exit(read(holder[0], ready, 1) != 0);
		_exit(1);
	}
	(void)close(back[1]);
	ck_assert_int_eq(read(back[0], ready, 1), 1);
	(void)close(back[0]);
	(void)close(holder[0]);
}

static void
other_collector(void)
{
	other_process(lock_dir);
}

static void
other_program(void)
{
	other_process(lock_state);
}

static void
run_sql(int32_t day, const char *sql)
{
	char path[PATH_MAX];
	sqlite3 *db = NULL;

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	ck_assert_int_eq(sqlite3_open_v2(path, &db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void
state_of_a_newer_version(void)
{
	run_sql(0, "PRAGMA user_version = 999");
}

static void
day_of_a_newer_version(void)
{
	run_sql(OPEN, "PRAGMA user_version = 999");
}

static void
day_of_another_program(void)
{
	run_sql(OPEN, "PRAGMA application_id = 7");
}

/* The newest day's WAL holds its rows, and the file was cut to nothing. */
static void
cut(int32_t day)
{
	char path[PATH_MAX];

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	ck_assert_int_eq(truncate(path, 0), 0);
	tree_write(dir,
		day == OPEN ? "telemetry/20261121.db-wal" : "telemetry/20261120.db-wal",
		"frames");
}

static void
open_day_cut_to_nothing(void)
{
	cut(OPEN);
}

static void
closed_day_cut_to_nothing(void)
{
	cut(CLOSED);
}

static void
unfinished_repacking(void)
{
	tree_write(dir, "telemetry/20261120.db.repack", "half");
	tree_write(dir, "telemetry/20261120.db.repack-journal", "half");
}

static void
repacked_day_without_its_day(void)
{
	tree_write(dir, "telemetry/20261119.db.repack", "all there is");
}

/* state.db must be made again: a start alone writes nothing. */
static void
remove_state(void)
{
	char path[PATH_MAX];

	ck_assert_int_eq(ls_days_path(path, dir, 0), 0);
	ck_assert_int_eq(unlink(path), 0);
}

static void
full_disk(void)
{
	remove_state();
	ls_faultvfs_fail(1, SQLITE_FULL);
}

static void
read_only_disk(void)
{
	remove_state();
	ls_faultvfs_fail(1, SQLITE_READONLY);
}

static void
file_in_place_of_telemetry(void)
{
	char path[PATH_MAX + 32], away[PATH_MAX + 32];

	(void)snprintf(path, sizeof(path), "%s/telemetry", dir);
	(void)snprintf(away, sizeof(away), "%s/away", dir);
	ck_assert_int_eq(rename(path, away), 0);
	tree_write(dir, "telemetry", "");
}

static const struct {
	void (*prepare)(void);
	int rc; /* of the start */
	const char *path, *what, *to_do; /* in the message */
	const char *kept; /* a file that must be there afterwards */
	const char *gone; /* one that must not */
} bad[] = {
	{ nothing, 0, "", "", "", "telemetry/20261120.db", NULL },
	{ other_collector, -LS_EBUSY,
		"/state/lock: ", "another collector uses the directory",
		"stop it, or choose another --state-dir", "telemetry/20261121.db",
		NULL },
	{ other_program, -LS_EBUSY, "/state/state.db: ", "try again later",
		"another program holds a lock on it: close that program", "state.db",
		NULL },
	{ state_of_a_newer_version, -LS_EVERSION, "/state/state.db: ",
		"state.db has tables of version 999; lockstep " PACKAGE_VERSION
		" needs one of version 1 to ",
		"start the lockstep and SQLite that made it", "state.db", NULL },
	{ day_of_a_newer_version, -LS_EVERSION, "/telemetry/20261121.db: ",
		"20261121.db has tables of version 999; lockstep ",
		"start the lockstep and SQLite that made it", "telemetry/20261121.db",
		NULL },
	{ day_of_another_program, 0, "/telemetry/20261121.db is ",
		"not a database of lockstep; set aside as ", "--salvage FILE",
		"telemetry/20261121.db.damaged-1795262400", NULL },
	{ open_day_cut_to_nothing, 0, "/telemetry/20261121.db is ", "damaged",
		"--salvage FILE", "telemetry/20261121.db.damaged-1795262400-wal",
		NULL },
	{ closed_day_cut_to_nothing, 0, "/telemetry/20261120.db is ", "damaged",
		"--salvage FILE", "telemetry/20261120.db.damaged-1795262400-wal",
		"telemetry/20261120.db" },
	{ unfinished_repacking, 0, "removed ",
		"20261120.db.repack of an unfinished repacking", "20261120.db is whole",
		"telemetry/20261120.db", "telemetry/20261120.db.repack-journal" },
	{ repacked_day_without_its_day, 0,
		"/telemetry/20261119.db.repack is a repacked day",
		"20261119.db is missing; kept", "rename it to ",
		"telemetry/20261119.db.repack", NULL },
	{ full_disk, -ENOSPC, "/state/state.db: ", "No space left on device",
		"free space on its file system", "telemetry/20261121.db", NULL },
	{ read_only_disk, -EROFS, "/state/state.db: ", "Read-only file system",
		"make its file system writable", "telemetry/20261121.db", NULL },
	{ file_in_place_of_telemetry, -ENOTDIR, "/state: ", "Not a directory",
		"choose a directory", "away/20261121.db", NULL },
};

static void
put(struct ls_store *s, struct ls_write *m, int64_t wall_us)
{
	ck_assert_int_eq(ls_store_commit(s, &m, 1, wall_us), 0);
	ls_test_write_free(m);
}

static bool
there(const char *name)
{
	char path[2 * PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) == 0;
}

static int
see_ledger(void *arg, const struct ls_store_ledger *l)
{
	*(uint64_t *)arg = l->seq;
	return 0;
}

/* Starts on the directory, and runs retention; what is logged is in `said`. */
static int
start(struct ls_store **ret_store)
{
	char path[PATH_MAX + 16];
	int fd, before = dup(STDERR_FILENO), rc;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/log", ls_test_tmpdir());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	rc = ls_store_open(dir, NOON, ret_store);
	if (rc == 0)
		put(*ret_store, ls_write_new(LS_WRITE_RETAIN, NOON), NOON);
	ck_assert_int_ge(dup2(before, STDERR_FILENO), 0);
	n = pread(fd, said, sizeof(said) - 1, 0);
	ck_assert_int_ge(n, 0);
	said[n] = '\0';
	(void)close(fd);
	(void)close(before);
	return rc;
}

static void
setup(void)
{
	struct ls_store *s;

	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ls_faultvfs_install();
	ls_faultvfs_heal();
	ck_assert_int_eq(ls_store_open(dir, CLOSED_NOON, &s), 0);
	put(s, ls_test_worker(0, CLOSED_NOON), CLOSED_NOON);
	put(s, ls_test_report(0, 1, 0, 10, CLOSED_NOON), CLOSED_NOON);
	put(s, ls_test_report(0, 2, 10, 5, NOON), NOON);
	ls_store_close(s);
}

LS_CASE(bad_state, setup);

LS_TEST_EACH(bad_state, the_message_says_where_what_and_what_to_do, bad)
{
	struct ls_store *s = NULL;
	uint64_t seq = 0;

	bad[_i].prepare();
	ck_assert_int_eq(start(&s), bad[_i].rc);
	ck_assert_ptr_nonnull(strstr(said, bad[_i].path));
	ck_assert_ptr_nonnull(strstr(said, bad[_i].what));
	ck_assert_ptr_nonnull(strstr(said, bad[_i].to_do));
	ck_assert(there(bad[_i].kept));
	ck_assert(bad[_i].gone == NULL || !there(bad[_i].gone));
	if (s != NULL) {
		struct ls_query *q;

		/* The start goes on behind what was acknowledged and is readable. */
		ck_assert_int_eq(ls_query_open(dir, &q), 0);
		ck_assert_int_eq(ls_query_ledgers(q, see_ledger, &seq), 0);
		ck_assert_uint_eq(seq, strstr(said, "20261121.db is ") != NULL ? 1 : 2);
		ls_query_close(q);
	}
	ls_store_close(s);
	if (child > 0) {
		(void)close(holder[1]);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		child = 0;
	}
}

/* A reader must not open a day whose WAL SQLite would delete. */
LS_TEST(bad_state, a_reader_does_not_delete_a_wal)
{
	struct ls_query *q;
	uint64_t seq;

	cut(OPEN);
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	ck_assert_int_eq(ls_query_ledgers(q, see_ledger, &seq), -LS_ECORRUPT);
	ls_query_close(q);
	ck_assert(there("telemetry/20261121.db-wal"));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/limits.h"
#include "storage/db/days.h"
#include "storage/db/err_sqlite.h"

/* Pages of 4 KiB: chunks waste least, and the index by host writes least
 * (tests/MEASURED.md, "Storage"). */
static const char db_write_pragmas[] = "PRAGMA page_size = 4096;"
				       "PRAGMA journal_mode = WAL;"
				       "PRAGMA synchronous = FULL;"
				       "PRAGMA wal_autocheckpoint = 0;"
				       "PRAGMA journal_size_limit = 8388608;"
				       "PRAGMA foreign_keys = ON;";

static const char db_all_pragmas[] =
	"PRAGMA trusted_schema = OFF;"
	"PRAGMA cell_size_check = ON;"
	"PRAGMA secure_delete = OFF;" /* Debian's default is to overwrite */
	"PRAGMA temp_store = MEMORY;";

/*
 * SQLite creates files with 0644; ours are of the service and its group. A file that
 * exists must not be opened here: closing it would drop the POSIX locks of all
 * connections of this process (sqlite.org/howtocorrupt.html, 2.2).
 */
static int
db_create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	(void)close(fd); /* nothing was written */
	return 0;
}

static int
db_configure(sqlite3 *db, enum ls_db_mode mode)
{
	int rc = ls_err_sqlite(sqlite3_busy_timeout(db, LS_DB_BUSY_MS));

	if (rc == 0)
		rc = ls_err_sqlite(sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1,
			(int *)NULL));
	if (rc == 0 && mode == LS_DB_READ)
		rc = ls_err_sqlite(sqlite3_db_config(db,
			SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL));
	if (rc == 0)
		rc = ls_db_exec(db, db_all_pragmas);
	if (rc == 0 && mode == LS_DB_WRITE)
		rc = ls_db_exec(db, db_write_pragmas);
	return rc;
}

/* SQLite before 3.37 takes strict tables for damage, although the file is sound. */
static int
db_open_error(sqlite3 *db, int rc)
{
	if (rc == -LS_ECORRUPT && strstr(sqlite3_errmsg(db), "near \"STRICT\"") != NULL)
		return -LS_EVERSION;
	return rc;
}

int
ls_db_open(const char *path, enum ls_db_mode mode, sqlite3 **ret_db)
{
	int flags = SQLITE_OPEN_NOMUTEX;
	sqlite3 *db = NULL;
	int rc = 0;

	flags |= mode == LS_DB_WRITE ? SQLITE_OPEN_READWRITE
				     : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
	if (mode == LS_DB_WRITE)
		rc = db_create(path);
	if (rc == 0)
		rc = ls_err_sqlite(sqlite3_open_v2(path, &db, flags, NULL));
	if (rc == 0)
		(void)sqlite3_extended_result_codes(db, 1); /* cannot fail */
	if (rc == 0)
		rc = db_configure(db, mode);
	if (rc != 0) {
		rc = db_open_error(db, rc);
		(void)sqlite3_close(db); /* also half-open ones; no statements yet */
		return rc;
	}
	*ret_db = db;
	return 0;
}

int
ls_db_open_day(const char *dir, int32_t day, enum ls_db_mode mode, sqlite3 **ret_db)
{
	char path[PATH_MAX];
	int rc = ls_days_path(path, dir, day);

	return rc == 0 ? ls_db_open(path, mode, ret_db) : rc;
}

int
ls_db_begin(sqlite3 *db)
{
	return ls_db_exec(db, "BEGIN IMMEDIATE");
}

int
ls_db_end(sqlite3 *db, int rc)
{
	if (rc == 0 && !sqlite3_get_autocommit(db))
		rc = ls_db_exec(db, "COMMIT");
	if (db != NULL && !sqlite3_get_autocommit(db))
		ls_ignore(ls_db_exec(db, "ROLLBACK")); /* rc says more */
	return rc;
}

const char *
ls_db_advice(int rc)
{
	switch (rc) {
	case -LS_EBUSY:
		return "another program holds a lock on it: close that program";
	case -EAGAIN:
		return "run a collector on it for a minute";
	case -LS_EVERSION:
		return "start the lockstep and SQLite that made it, or move it away";
	case -ENOSPC:
	case -EDQUOT:
		return "free space on its file system, or lower --retain-bytes";
	case -EROFS:
		return "make its file system writable, or choose another --state-dir";
	case -EACCES:
	case -EPERM:
		return "give the user of the collector read and write access";
	case -ENOTDIR:
		return "choose a directory as --state-dir";
	case -EEXIST:
		return "choose a new name, or move it away";
	case -ENOENT:
		return "check the path";
	case -EIO:
		return "look for errors of the disk in the kernel log";
	default:
		return "no data was deleted";
	}
}

void
ls_db_close(sqlite3 *db)
{
	int rc = sqlite3_close(db);

	LS_ASSERT(rc == SQLITE_OK); /* else a statement was not finalized */
}

int
ls_db_exec(sqlite3 *db, const char *sql)
{
	return ls_err_sqlite(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int
ls_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt)
{
	return ls_err_sqlite(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT,
		ret_stmt, NULL));
}

int
ls_db_prepare_all(sqlite3 *db, const char *const *sql, sqlite3_stmt **stmt,
	size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = ls_db_prepare(db, sql[i], &stmt[i]);
	return rc;
}

void
ls_db_finalize_all(sqlite3_stmt **stmt, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		(void)sqlite3_finalize(stmt[i]); /* its errors were told when it ran */
		stmt[i] = NULL;
	}
}

int
ls_db_run(sqlite3_stmt *stmt)
{
	int rc;

	do {
		rc = sqlite3_step(stmt);
	} while (rc == SQLITE_ROW);
	(void)sqlite3_reset(stmt); /* tells the same error again */
	return ls_err_sqlite(rc);
}

int
ls_db_column_blob(sqlite3_stmt *stmt, int column, void *dst, size_t size)
{
	const void *data = sqlite3_column_blob(stmt, column);

	if (data == NULL || (size_t)sqlite3_column_bytes(stmt, column) != size)
		return -LS_ECORRUPT;
	memcpy(dst, data, size);
	return 0;
}

int
ls_db_column_text(sqlite3_stmt *stmt, int column, char *dst, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text != NULL && ls_text_copy(dst, size, text) == 0 ? 0 : -LS_ECORRUPT;
}

static int
db_past_deadline(void *arg)
{
	const uint64_t *deadline_ns = arg;

	return ls_clock_mono_ns() >= *deadline_ns;
}

static int
db_is_stopped(void *arg)
{
	return atomic_load((const atomic_bool *)arg);
}

/* Runs a check until it ends, or a progress handler ends it: then nothing is wrong. */
static int
db_check(sqlite3 *db, const char *sql, char *text, size_t size)
{
	sqlite3_stmt *stmt = NULL;
	const char *answer;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	answer = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0)
				  : sqlite3_errmsg(db);
	if (text != NULL)
		(void)snprintf(text, size, "%s", answer != NULL ? answer : "no answer");
	if (rc == SQLITE_ROW)
		rc = answer != NULL && strcmp(answer, "ok") == 0 ? SQLITE_OK
								 : SQLITE_CORRUPT;
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	sqlite3_progress_handler(db, 0, NULL, NULL);
	return (rc & 0xff) == SQLITE_INTERRUPT ? 0 : ls_err_sqlite(rc);
}

int
ls_db_check(sqlite3 *db, uint64_t limit_ns, char *text, size_t size)
{
	uint64_t deadline_ns = ls_clock_mono_ns() + limit_ns;

	if (limit_ns == 0)
		return db_check(db, "PRAGMA integrity_check(1)", text, size);
	sqlite3_progress_handler(db, 1000, db_past_deadline, &deadline_ns);
	return db_check(db, "PRAGMA quick_check(1)", text, size);
}

int
ls_db_check_until(sqlite3 *db, atomic_bool *stop)
{
	sqlite3_progress_handler(db, 1000, db_is_stopped, stop);
	return db_check(db, "PRAGMA quick_check(1)", NULL, 0);
}

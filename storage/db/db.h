/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db - SQLite connections, opened the one way we open them, and small helpers.
 *
 * Writing: WAL, synchronous FULL, no automatic checkpoints (the writer makes its own,
 *          on the same
 * connection). Reading: read-only, never checkpoints, not even at close. In SQLite
 * before 3.51.3 two connections that write and checkpoint at once can corrupt a file;
 * so only one does either.
 *
 * Owner:   a connection belongs to one thread.
 * Units:   none.
 * Errors:  those of ls_err_sqlite, and -errno for creating the file.
 * Limits:  LS_DB_BUSY_MS of waiting for a lock.
 * Source:  sqlite.org/wal.html, sqlite.org/pragma.html.
 */
#ifndef LS_STORAGE_DB_H
#define LS_STORAGE_DB_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

/* Of every file that we create. */
#define LS_DB_PAGE_BYTES 4096

enum ls_db_mode { LS_DB_WRITE, LS_DB_READ };

/* Opens (for LS_DB_WRITE: creates, mode 0640) the file at path. -LS_EVERSION: its tables
 * need a newer SQLite. */
int ls_db_open(const char *path, enum ls_db_mode mode, sqlite3 **ret_db) LS_MUSTCHECK;

/* The same for state.db below dir, or for a day's file if day > 0. */
int ls_db_open_day(const char *dir, int32_t day, enum ls_db_mode mode,
	sqlite3 **ret_db) LS_MUSTCHECK;

/* Begins a transaction that writes. ls_db_end commits it, if it is still open and rc is 0,
 * and rolls back if rc or the commit is an error, which it returns; then db may be NULL. */
int ls_db_begin(sqlite3 *db) LS_MUSTCHECK;
int ls_db_end(sqlite3 *db, int rc) LS_MUSTCHECK;

/* What a person can do about an error of a database file or its directory. */
const char *ls_db_advice(int rc);

/* Closes; accepts NULL. Statements must be finalized. */
void ls_db_close(sqlite3 *db);

/* Runs SQL without results or parameters. */
int ls_db_exec(sqlite3 *db, const char *sql) LS_MUSTCHECK;

/* Prepares one statement that is kept. */
int ls_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt) LS_MUSTCHECK;

/* Prepares count statements; finalizes them and sets their places to NULL. After an error
 * some are prepared. */
int ls_db_prepare_all(sqlite3 *db, const char *const *sql, sqlite3_stmt **stmt,
	size_t count) LS_MUSTCHECK;
void ls_db_finalize_all(sqlite3_stmt **stmt, size_t count);

/* Steps a statement without results to its end and resets it. */
int ls_db_run(sqlite3_stmt *stmt) LS_MUSTCHECK;

/* A column into a field; what does not fit was not written by us: -LS_ECORRUPT. */
int ls_db_column_text(sqlite3_stmt *stmt, int column, char *dst,
	size_t size) LS_MUSTCHECK;
int ls_db_column_blob(sqlite3_stmt *stmt, int column, void *dst,
	size_t size) LS_MUSTCHECK;

/*
 * PRAGMA quick_check, given up as passed after limit_ns (0: no limit, and
 * integrity_check instead). -LS_ECORRUPT; text (may be NULL) then holds the first
 * complaint.
 */
int ls_db_check(sqlite3 *db, uint64_t limit_ns, char *text, size_t size) LS_MUSTCHECK;

/* PRAGMA quick_check without a limit; given up as passed once *stop is true. */
int ls_db_check_until(sqlite3 *db, atomic_bool *stop) LS_MUSTCHECK;

#endif

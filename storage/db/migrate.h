/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrate - brings a database file to the schema of this program, by numbered forward
 * steps.
 *
 * The header of each file tells what it is (application_id) and of which version
 * (user_version).
 *
 * Owner:   the thread of the connection.
 * Units:   versions from 1; 0 is an empty file.
 * Errors:  -LS_EVERSION newer than this program, or older than it knows; -LS_ECORRUPT
 *          not a file of ours; those of SQLite. Nothing is changed then.
 * Limits:  none.
 */
#ifndef LS_STORAGE_MIGRATE_H
#define LS_STORAGE_MIGRATE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

enum ls_schema { LS_SCHEMA_STATE, LS_SCHEMA_TELEMETRY, LS_SCHEMA_COUNT };

/* One step forward: the SQL that makes `to` of the version before. */
struct ls_migration {
	int64_t to;
	const char *sql;
};

/* A kind of file: its application_id and all steps in order, the first from an empty file. Versions below
   that of the first step were never released. */
struct ls_migrations {
	int32_t application_id;
	const struct ls_migration *steps;
	size_t count;
};

/* The steps of our two kinds of files. */
const struct ls_migrations *ls_migrations_of(enum ls_schema schema);

/*
 * Takes the file forward to the last version, inside the caller's transaction.
 * *ret_fresh (may be NULL): the file was empty.
 */
int ls_migrate(sqlite3 *db, const struct ls_migrations *m,
	bool *ret_fresh) LS_MUSTCHECK;

/*
 * The version of a file that readers may take: from our first to our last. -LS_EVERSION
 * if it is another or empty. Files of closed days stay at the version that made them.
 */
int ls_migrate_version(sqlite3 *db, const struct ls_migrations *m,
	int64_t *ret_version) LS_MUSTCHECK;

/* Checks that the file is of the last version, for readers: -LS_EVERSION if older or
 * newer. */
int ls_migrate_check(sqlite3 *db, const struct ls_migrations *m) LS_MUSTCHECK;

#endif

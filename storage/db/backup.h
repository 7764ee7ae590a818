/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backup - a copy of a state directory that a collector can start on, made while
 * another one writes.
 *
 * Each file is copied as it was at one moment, all in one read, since pages that change
 * between two reads would mean to begin again. Days come first and state.db last: what
 * telemetry names is in state.db before it is in telemetry, so it is in the copy.
 * Meanwhile the WAL of the file being copied grows.
 *
 * Owner:   none; takes no lock, writes only below `to`.
 * Units:   none.
 * Errors:  -EEXIST `to` holds something already; -LS_EVERSION; -errno; those of
 *          ls_err_sqlite. The first that went wrong; the other files are copied all the
 *          same.
 * Limits:  LS_DAYS_MAX day files.
 * Source:  sqlite.org/backup.html.
 */
#ifndef LS_STORAGE_BACKUP_H
#define LS_STORAGE_BACKUP_H

#include <sqlite3.h>
#include "proto/base/err.h"

/* Copies the state directory `dir` into the new or empty directory `to`; a line a file
 * to `say`. */
int ls_backup(const char *dir, const char *to, void (*say)(void *arg, const char *line),
	void *arg) LS_MUSTCHECK;

/* All pages of an open database into a new file. */
int ls_backup_pages(sqlite3 *from, const char *path) LS_MUSTCHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - whether the files of an open database still have their names, and what to do
 * when somebody removed or replaced one of them.
 *
 * SQLite goes on with a file that has no name any more; what it commits then is gone
 * when the process ends. A connection that is opened later meets another file.
 *
 * Owner:   the thread of the connection.
 * Units:   none.
 * Errors:  -errno; those of ls_err_sqlite. A name that cannot be looked at counts as kept.
 * Limits:  PATH_MAX.
 * Source:  sqlite.org/howtocorrupt.html, 2.5; storage/README.md.
 */
#ifndef LS_STORAGE_KEPT_H
#define LS_STORAGE_KEPT_H

#include <limits.h>
#include <sqlite3.h>
#include <sys/types.h>
#include "storage/db/days.h"

/* Device, inode and path of each file (ls_days_suffix); inode 0: it was not there. */
struct ls_kept {
	dev_t dev[LS_DAYS_SUFFIXES];
	ino_t ino[LS_DAYS_SUFFIXES];
	char path[LS_DAYS_SUFFIXES][PATH_MAX];
};

/* The files as they are now: after a database was opened, before others can know. */
int ls_kept_note(struct ls_kept *k, const char *dir, int32_t day) LS_MUSTCHECK;

/* The suffix of the first file that has lost its name; NULL: none has. */
const char *ls_kept_lost(const struct ls_kept *k);

/*
 * Makes all that was committed durable under the database's name; *ret_beside: another
 * file has it now, so it is FILE.salvaged-SECONDS. Done, *k is empty: a second call does
 * nothing. The connection must be closed afterwards.
 */
int ls_kept_rescue(sqlite3 *db, struct ls_kept *k, const char *dir, int64_t wall_us,
	bool *ret_beside) LS_MUSTCHECK;

#endif

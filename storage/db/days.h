/* SPDX-License-Identifier: Apache-2.0 */
/*
 * days - the files of a state directory: names, listing, sizes, setting aside,
 * removing.
 *
 *     DIR/lock              held while a collector uses the directory
 *     DIR/state.db
 *     DIR/telemetry/YYYYMMDD.db
 *     ....db.damaged-N      set aside, for a person; never read by us
 *
 * Owner:   none; pure functions on the file system.
 * Units:   a day is YYYYMMDD as a number, UTC; sizes in bytes.
 * Errors:  -errno; -ENAMETOOLONG; -LS_ELIMIT.
 * Limits:  LS_DAYS_MAX day files.
 */
#ifndef LS_STORAGE_DAYS_H
#define LS_STORAGE_DAYS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* What SQLite keeps beside a database; the first, "", is the database itself. */
#define LS_DAYS_SUFFIXES 3
extern const char *const ls_days_suffix[LS_DAYS_SUFFIXES];

struct ls_days {
	size_t count;
	int32_t day[LS_DAYS_MAX]; /* ascending */
};

/* The day of a time; days of the years 1970 to 9999. */
int32_t ls_days_of(int64_t t_us);

/* Midnight at which a day begins, us since the epoch; inverse of ls_days_of. */
int64_t ls_days_begin_us(int32_t day);

/* Path of state.db, or of a day's file if day > 0; dst has PATH_MAX bytes. */
int ls_days_path(char *dst, const char *dir, int32_t day) LS_MUSTCHECK;

/* Makes dir and dir/telemetry (0750) where they are missing; both are durable then. */
int ls_days_mkdir(const char *dir) LS_MUSTCHECK;

/* Makes all file names in dir and dir/telemetry durable. */
int ls_days_sync(const char *dir) LS_MUSTCHECK;

/* Takes the lock of a state directory; *ret_fd holds it until closed. -LS_EBUSY:
 * somebody uses the directory. */
int ls_days_lock(const char *dir, int *ret_fd) LS_MUSTCHECK;

/* All day files. -LS_ELIMIT: more than LS_DAYS_MAX; the newest are given then. */
int ls_days_list(const char *dir, struct ls_days *ret_days) LS_MUSTCHECK;

/* The same without -LS_ELIMIT, for those who need no more than the newest. */
int ls_days_newest(const char *dir, struct ls_days *ret_days) LS_MUSTCHECK;

/* Bytes of a database file with its WAL; 0 if it is not there. */
uint64_t ls_days_bytes(const char *dir, int32_t day);

/* Bytes of its WAL alone. */
uint64_t ls_days_wal_bytes(const char *dir, int32_t day);

/* Whether there is a WAL whose database is missing or empty. SQLite would delete the WAL
 * when it opens the database; the WAL may hold acknowledged data. */
bool ls_days_wal_is_alone(const char *dir, int32_t day);

/* Renames a database and its WAL out of the way; logs it. now_us makes the name. */
int ls_days_set_aside(const char *dir, int32_t day, int64_t now_us) LS_MUSTCHECK;

/* Damaged databases that are set aside, for a person to salvage or remove. */
struct ls_days_aside {
	unsigned count;
	int64_t newest_s; /* when the newest was set aside, since the epoch */
	char newest[64]; /* its path below the state directory */
};
struct ls_days_aside ls_days_aside(const char *dir);

/* Removes a day's file with its WAL, or its empty WAL alone; durably. */
int ls_days_remove(const char *dir, int32_t day) LS_MUSTCHECK;
int ls_days_remove_wal(const char *dir, int32_t day) LS_MUSTCHECK;

#endif

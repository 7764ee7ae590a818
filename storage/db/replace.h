/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace - the repacked file of a closed day takes the place of the old one.
 *
 * The repacker writes YYYYMMDD.db.repack on a thread of its own, for minutes. Meanwhile
 * the writer may put late roll-ups into the old file. So the thread that writes also
 * renames: nothing can be written between its checks and the rename.
 *
 * Owner:   the writer's thread, or the holder of the directory's lock.
 * Units:   days are YYYYMMDD.
 * Errors:  -LS_EBUSY: not a closed day, or its WAL holds frames; -LS_ESTALE: the old
 *          file was written after it was read; -errno; those of ls_err_sqlite.
 * Limits:  none.
 * Source:  storage/README.md, "Names of files".
 */
#ifndef LS_STORAGE_REPLACE_H
#define LS_STORAGE_REPLACE_H

#include <limits.h>
#include <stdint.h>
#include "proto/base/err.h"

/* Path of the repacked file of a day; dst has PATH_MAX bytes. */
int ls_replace_path(char *dst, const char *dir, int32_t day) LS_MUSTCHECK;

/* 0: a day before the newest, with an empty WAL or none. */
int ls_replace_check(const char *dir, int32_t day) LS_MUSTCHECK;

/* Renames the repacked file, which is synced, over the old one, durably. On failure the
 * old file stays and the repacked one is removed. */
int ls_replace_day(const char *dir, int32_t day) LS_MUSTCHECK;

/* Removes what a repacking left that was killed; a repacked file without its day stays,
 * and is logged. */
void ls_replace_clear(const char *dir);

#endif

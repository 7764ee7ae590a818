/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - directories and file names that survive a power cut: the one place where
 * storage makes, renames and removes them. (SQLite does so for its own files.)
 *
 * A name is durable only when its directory was synced. Each call that changes a name
 * syncs the directory before it returns, so a later step never survives without an
 * earlier one.
 *
 * Owner:   none; pure functions on the file system.
 * Units:   bytes.
 * Errors:  -errno; -ENAMETOOLONG.
 * Limits:  PATH_MAX.
 */
#ifndef LS_STORAGE_FILES_H
#define LS_STORAGE_FILES_H

#include <stdint.h>
#include "proto/base/err.h"

/* Syncs a file, or the names in a directory. */
int ls_files_sync(const char *path) LS_MUSTCHECK;

/* Makes a directory (0750), unless it exists. */
int ls_files_mkdir(const char *path) LS_MUSTCHECK;

/* Renames within a directory; what had the new name is replaced. */
int ls_files_rename(const char *from, const char *to) LS_MUSTCHECK;

/* Removes a file; 0 if there is none. */
int ls_files_remove(const char *path) LS_MUSTCHECK;

/* Size of a file; 0 if there is none. */
uint64_t ls_files_bytes(const char *path);

#endif

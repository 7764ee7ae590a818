/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage - copies what can be read of a damaged database into a new one.
 *
 * Rows are read in the order of their ids. At a damaged page the next readable id is
 * searched, and reading goes on there. Indexes are built anew. Chunks whose bodies are
 * lost are left out.
 *
 * Owner:   none; the damaged file is only read.
 * Units:   rows.
 * Errors:  -EEXIST: the new file exists; -LS_EVERSION: made by another version of
 *          lockstep; -LS_ECORRUPT: not even the list of tables can be read, or the file
 *          is not of lockstep; -errno; those of ls_err_sqlite.
 * Limits:  none.
 * Source:  sqlite.org/fileformat2.html, "B-tree Pages"; storage/README.md, "Damage".
 */
#ifndef LS_STORAGE_SALVAGE_H
#define LS_STORAGE_SALVAGE_H

#include "proto/base/err.h"

/*
 * Writes `to`, which does not exist, from the file at path and its WAL. One line for
 * each table to `say`: rows read and lost. On failure no file `to` is left.
 */
int ls_salvage(const char *path, const char *to,
	void (*say)(void *arg, const char *line), void *arg) LS_MUSTCHECK;

#endif

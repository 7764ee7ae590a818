/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repack - a closed day written anew, smaller: chunks of one host and dictionary become
 * one of up to LS_CHUNK_ROWS_MAX rows, host by host, so that a host's day is read in
 * one go.
 *
 * Every value and its time, in microseconds, stay as they were. The new file is made
 * beside the old one. A chunk that does not decode is copied as it is.
 *
 * Owner:   none; one at a time. The day's file is open for writing nowhere.
 * Units:   bytes.
 * Errors:  -LS_EBUSY not a closed day; -ECANCELED `stop` said so; -ENOMEM, -errno,
 *          those of ls_err_sqlite. The old file stays as it was.
 * Limits:  LS_CHUNK_ROWS_MAX rows, LS_CHUNK_BODY_MAX_BYTES of a chunk.
 * Source:  storage/README.md, "Repacking".
 */
#ifndef LS_STORAGE_REPACK_H
#define LS_STORAGE_REPACK_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_repack_stats {
	uint64_t chunks_before, chunks_after;
	uint64_t bytes_before, bytes_after; /* of the file */
	uint64_t kept; /* chunks that did not decode */
};

/* Asked now and then: true ends the work. NULL: it is never ended. */
typedef bool ls_repack_stop_fn(void *arg);

/* Whether a day's file is to be repacked. Roll-ups know chunks by ids, and ids are new
 * afterwards. */
enum ls_repack_state { LS_REPACK_TO_DO, LS_REPACK_DONE, LS_REPACK_NOT_ROLLED_UP };
int ls_repack_look(const char *dir, int32_t day,
	enum ls_repack_state *ret_state) LS_MUSTCHECK;

/*
 * Writes the repacked file of a day (ls_replace_path), synced, whatever ls_repack_look
 * returns. ls_replace_day then puts it in the old file's place.
 */
int ls_repack_day(const char *dir, int32_t day, ls_repack_stop_fn *stop, void *arg,
	struct ls_repack_stats *ret_stats) LS_MUSTCHECK;

/*
 * Repacks all closed days that are not yet: those before the newest; a line each to
 * `say`. -LS_EBUSY: a collector uses the directory, which repacks by itself; -EAGAIN: a
 * day is not rolled up.
 */
int ls_repack_all(const char *dir, void (*say)(void *arg, const char *line),
	void *arg) LS_MUSTCHECK;

#endif

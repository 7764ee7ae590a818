/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repacker - the keeper's work of repacking: one closed day after the other, the oldest
 * first.
 *
 * A day is left alone until it has been over for LS_REPACK_WAIT_US and is rolled up to
 * its end; if that never comes (a chunk whose names are lost), until
 * LS_REPACK_FORCE_US.
 *
 * The writer renames the new file: a day is done when its answer has come.
 *
 * Owner:   turns run on one thread; told, stop and stats may be called from any.
 * Units:   in the names.
 * Errors:  those of ls_repack_day; a day that failed is tried again after
 *          LS_REPACK_RETRY_NS.
 * Limits:  LS_REPACK_WAIT_US, LS_REPACK_FORCE_US, LS_REPACK_RETRY_NS.
 * Source:  storage/README.md, "Repacking".
 */
#ifndef LS_STORAGE_REPACKER_H
#define LS_STORAGE_REPACKER_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "storage/db/rows.h"

struct ls_repacker;

struct ls_repacker_stats {
	uint64_t days, failures;
	uint64_t bytes_before, bytes_after; /* of the days repacked so far */
};

/* For a state directory, whose name must outlive it; NULL when out of memory. */
struct ls_repacker *ls_repacker_new(const char *dir, ls_write_push_fn *push, void *arg);
void ls_repacker_free(struct ls_repacker *r);

/* Repacks a day if there is one to be (ls_keeper_turn_fn; arg is the repacker). Takes
 * long. */
int ls_repacker_turn(void *arg, bool *ret_more) LS_MUSTCHECK;

/* The same at a time of the caller's: wall_us since the epoch, now_ns monotonic. */
int ls_repacker_step(struct ls_repacker *r, int64_t wall_us, uint64_t now_ns,
	bool *ret_more) LS_MUSTCHECK;

/* What the writer answered to the REPLACE message; any thread. Until then no other day
 * is repacked. */
void ls_repacker_told(struct ls_repacker *r, int rc);

/* A turn that is under way ends soon, with nothing changed. */
void ls_repacker_stop(struct ls_repacker *r);

/* Counters so far; any thread. */
void ls_repacker_stats(struct ls_repacker *r, struct ls_repacker_stats *ret_stats);

#endif

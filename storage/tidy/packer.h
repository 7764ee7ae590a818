/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packer - decides which rows of the journal become a unit, reads them, hands the
 * message on.
 *
 * Of the newest day only: that file is open for writing. Rows go in order of id, each
 * read in a transaction of its own, so that no snapshot lasts. One unit is under way at
 * a time; what the writer refused is found in the journal again. A row that cannot be
 * read stays there, and is counted.
 *
 * Owner:   one thread; no thread of its own.
 * Units:   as in storage/db/rows.h.
 * Errors:  those of ls_db_open and of reading, what `push` returns, -ENOMEM. The next
 *          turn tries again.
 * Limits:  LS_UNIT_EVENTS_MAX.
 * Source:  storage/README.md, "Units".
 */
#ifndef LS_STORAGE_PACKER_H
#define LS_STORAGE_PACKER_H

#include "storage/db/rows.h"

struct ls_packer;

struct ls_packer_options {
	const char *dir; /* must outlive it */
	int64_t age_us; /* rows younger than this against the newest stay */
	int64_t span_us; /* a unit is due when it spans so much */
	size_t events; /* or has so many events */
	ls_write_push_fn *push;
	void *arg;
};

struct ls_packer_stats {
	/* applied; bytes: of step records, of hot counters */
	uint64_t units, records, bytes, hot_bytes;
	uint64_t refused; /* units that the writer did not apply */
	/* items left out, and rows left as they are: they could not be read */
	uint64_t bad;
};

/* Opens nothing yet: files are looked for at each turn. */
int ls_packer_new(const struct ls_packer_options *options,
	struct ls_packer **ret_packer) LS_MUSTCHECK;

/* Frees it; accepts NULL. */
void ls_packer_free(struct ls_packer *p);

/* Packs at most one unit. *ret_more becomes true if another may be due at once. */
int ls_packer_turn(struct ls_packer *p, bool *ret_more) LS_MUSTCHECK;

/* How the unit ended that was handed on (m->rc); the message stays the caller's. */
void ls_packer_told(struct ls_packer *p, const struct ls_write *m);

/* Counters so far. */
void ls_packer_stats(const struct ls_packer *p, struct ls_packer_stats *ret_stats);

#endif

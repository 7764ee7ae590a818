/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roller - makes roll-ups of chunks as they come: reads, decodes, sums up, hands on
 * what is complete.
 *
 * Every sample of a chunk that can be read is in exactly one row of 60 s and, once its
 * hour is whole, in one of 3,600 s; a stop at any moment changes nothing of that. What
 * is in is kept in rollup_done, in the transaction of the rows. A chunk whose
 * dictionary is not there yet is put off until it is.
 *
 * Owner:   one thread (the keeper's), with its own struct ls_query.
 * Units:   as in storage/db/rows.h; now_us is the wall clock.
 * Errors:  as in storage/read/query.h; -ENOMEM. After any, the next turn starts from
 *          what is stored.
 * Limits:  LS_ROLLER_CHUNKS_PER_TURN, LS_ROLLUP_MEMORY_MAX_BYTES (minutes are then
 *          written early), LS_ROLLUP_PUT_OFF_MAX chunks put off, LS_ROLLUP_AFTER_US
 *          until a minute is written.
 * Source:  storage/README.md, "Roll-ups".
 */
#ifndef LS_STORAGE_ROLLER_H
#define LS_STORAGE_ROLLER_H

#include "storage/read/query.h"

struct ls_roller;

struct ls_roller_stats {
	uint64_t chunks, samples; /* summed up */
	/* could not be decoded, or are not as their dictionary */
	uint64_t bad_chunks;
	/* chunks without dictionary; those of them left out for ever */
	uint64_t put_off, given_up;
	/* samples beyond LS_ROLLUP_AHEAD_US of their commit */
	uint64_t left_out;
	/* minutes written before their time: memory was full */
	uint64_t early;
	uint64_t rows, bytes; /* of rollup, handed on */
	uint64_t memory_bytes, memory_most_bytes; /* of sums: now, and at most so far */
	uint64_t restarts; /* started from what is stored, after an error */
};

/* q must outlive it. NULL when out of memory. */
struct ls_roller *ls_roller_new(struct ls_query *q);
void ls_roller_free(struct ls_roller *r);

/*
 * One turn: reads chunks on, and gives a message LS_WRITE_ROLLUP in *ret_message when
 * something is to be written; NULL when not. The caller hands it to the writer and
 * tells what came of it; until then there are turns, but no other message. *ret_more:
 * there is more to do at once.
 */
int ls_roller_turn(struct ls_roller *r, int64_t now_us, struct ls_write **ret_message,
	bool *ret_more) LS_MUSTCHECK;

/* What came of the message: 0 stored, or its rc. */
void ls_roller_told(struct ls_roller *r, int rc);

/* Counters so far. */
void ls_roller_stats(const struct ls_roller *r, struct ls_roller_stats *ret_stats);

#endif

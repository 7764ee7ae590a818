/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bodies - the bodies of a day's chunks: one row of bytes, cut into parts that fill
 * pages.
 *
 * A body is known by where it begins and how long it is; it may lie in two parts. A
 * part is put in whole, with zeros behind the last body, and what comes later is
 * written into its place.
 *
 * Owner:   one thread, which owns the connection.
 * Units:   positions and sizes in bytes.
 * Errors:  as ls_err_sqlite; -LS_ECORRUPT: no bytes are there, or that cannot be a
 *          place.
 * Limits:  LS_CHUNK_BODY_MAX_BYTES of a body; LS_BODY_PART_BYTES held until they are
 *          flushed.
 * Source:  proto/FORMAT.md, "Bodies".
 */
#ifndef LS_STORAGE_BODIES_H
#define LS_STORAGE_BODIES_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* --- writing -------------------------------------------------------------- */

struct ls_bodies;

/* Goes on behind what is in the file; db must outlive it. */
int ls_bodies_open(sqlite3 *db, struct ls_bodies **ret_bodies) LS_MUSTCHECK;
/* Forgets what was not flushed. Accepts NULL. */
void ls_bodies_close(struct ls_bodies *b);

/* Puts a body behind the others, inside the caller's transaction; *ret_at is where it
 * begins. */
int ls_bodies_put(struct ls_bodies *b, const uint8_t *body, size_t len,
	int64_t *ret_at) LS_MUSTCHECK;

/* Writes what is still held: before each COMMIT. */
int ls_bodies_flush(struct ls_bodies *b) LS_MUSTCHECK;

/* Where the next body would begin. */
int64_t ls_bodies_end(const struct ls_bodies *b);
/* After a transaction that failed: `end` as it was before that. */
void ls_bodies_back(struct ls_bodies *b, int64_t end);

/* --- reading -------------------------------------------------------------- */

struct ls_bodies_reader;

/* Of the file that db knows as schema ("main", or a name of ATTACH; the text must
 * outlive it). */
int ls_bodies_reader_new(sqlite3 *db, const char *schema,
	struct ls_bodies_reader **ret_reader) LS_MUSTCHECK;
/* Before the connection is closed. Accepts NULL. */
void ls_bodies_reader_free(struct ls_bodies_reader *r);

/*
 * One body; *ret_body holds until the next use. Where a statement of the connection is
 * open, it is of the same snapshot. That is kept until ls_bodies_rest.
 */
int ls_bodies_read(struct ls_bodies_reader *r, int64_t at, int64_t len,
	const uint8_t **ret_body) LS_MUSTCHECK;
/* Lets the snapshot go. Accepts NULL. */
void ls_bodies_rest(struct ls_bodies_reader *r);

/*
 * Whether all parts are whole and each chunk has bytes of its own in them:
 * -LS_ECORRUPT, and text says what is wrong.
 */
int ls_bodies_check(sqlite3 *db, char *text, size_t size) LS_MUSTCHECK;

#endif

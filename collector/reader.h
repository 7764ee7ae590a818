/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - the thread that reads storage for exports and stored series, with read-only connections of
 * its own.
 *
 * A fixed number of pieces goes round between the reader and the loop, so a slow receiver holds the
 * reader back and memory stays bounded.
 *
 *     loop --job--> reader --full piece--> loop --empty piece--> reader
 *
 * Owner:   the loop thread.
 * Units:   bytes.
 * Errors:  -LS_EBUSY LS_EXPORTS_MAX wait already; -ENOMEM; those of ls_export_job.
 * Limits:  LS_EXPORTS_MAX, LS_EXPORT_PIECES.
 */
#ifndef LS_COLLECTOR_READER_H
#define LS_COLLECTOR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include "proto/base/err.h"

struct ls_loop;
struct ls_reader;

/* As ls_export_piece of web/backend.h. */
typedef bool ls_reader_piece(void *arg, int rc, const char *text, size_t len);

/* Starts the thread; dir is the state directory. */
int ls_reader_start(struct ls_loop *loop, const char *dir, struct ls_reader **ret_reader)
	LS_MUSTCHECK;

/* Ends the thread; exports not complete end with -LS_ECLOSED. Accepts NULL. */
void ls_reader_stop(struct ls_reader *r);

/* What is read: its pieces are text. */
enum ls_reader_what {
	LS_READER_EXPORT,          /* of a job: ls_export_job */
	LS_READER_EXPORT_COUNTERS, /* the same with every series of its hosts */
	LS_READER_SERIES           /* of a host: ls_stored_series */
};

/*
 * Begins to read: pieces come on the loop, at last one of length 0 with the result. If it cannot
 * begin, that one comes at once.
 */
void ls_reader_read(struct ls_reader *r, enum ls_reader_what what, const char *name,
	ls_reader_piece *piece, void *arg);

#endif

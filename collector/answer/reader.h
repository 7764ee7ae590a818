/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - the threads that read storage for exports and questions, with read-only
 * connections of their own.
 *
 * Each thread is a lane with a queue: one for exports, which may take minutes; one for
 * questions about all hosts of a job; LS_READER_SHORT for those that take milliseconds.
 * So a short question never waits behind a long one. In a lane a fixed number of pieces
 * goes round between thread and loop, so a slow receiver holds the lane back and memory
 * stays bounded.
 *
 *     loop --job--> lane --full piece--> loop --empty piece--> lane
 *
 * Owner:   the loop thread. The only thing shared beside queues is a job's flag
 *          `cancelled`.
 * Units:   bytes.
 * Errors:  -LS_EBUSY LS_EXPORTS_MAX wait already in the lane; -ENOMEM; those of
 *          ls_export_job, ls_stored_series, ls_questions_answer.
 * Limits:  LS_EXPORTS_MAX, LS_EXPORT_PIECES, LS_READER_SHORT.
 */
#ifndef LS_COLLECTOR_READER_H
#define LS_COLLECTOR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "web/api/backend.h"

struct ls_loop;
struct ls_reader;

/* As ls_export_piece of web/api/backend.h. */
typedef bool ls_reader_piece(void *arg, int rc, const char *text, size_t len);

/* Starts the threads; dir is the state directory. */
int ls_reader_start(struct ls_loop *loop, const char *dir,
	struct ls_reader **ret_reader) LS_MUSTCHECK;

/* Ends the threads; what is not complete ends with -LS_ECLOSED. Accepts NULL. */
void ls_reader_stop(struct ls_reader *r);

/* What is read: its pieces are text. */
enum ls_reader_what {
	LS_READER_EXPORT, /* of ask->job: ls_export_job */
	LS_READER_LATEST, /* of ask->host: ls_stored_series */
	LS_READER_ANSWER /* ls_questions_answer */
};

/*
 * Begins to read: pieces come on the loop, at last one of length 0 with the result. If
 * it cannot begin, that one comes at once. Copies ask.
 */
void ls_reader_read(struct ls_reader *r, enum ls_reader_what what,
	const struct ls_ask *ask, ls_reader_piece *piece, void *arg);

/* Nobody waits for what was begun with arg: it ends soon, with -ECANCELED; or had
 * ended. */
void ls_reader_cancel(struct ls_reader *r, const void *arg);

/*
 * hold: no more pieces for arg until it is called with false. Meanwhile a read that keeps a
 * write-ahead log beyond LS_WAL_MAX_BYTES ends with -LS_EINTERRUPTED.
 */
void ls_reader_hold(struct ls_reader *r, const void *arg, bool hold);

struct ls_reader_stats {
	/* failed: for any reason but that nothing was found */
	uint64_t asked, failed;
	/* of those: cut off after LS_QUERY_NS; refused at once */
	uint64_t timed_out, busy;
};

/* Whether a read met damage since this was last asked. */
bool ls_reader_take_damaged(struct ls_reader *r);

/* Counters so far. */
void ls_reader_stats(const struct ls_reader *r, struct ls_reader_stats *ret_stats);

#endif

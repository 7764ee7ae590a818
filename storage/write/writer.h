/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer - the one thread that writes: messages in, group commits, news of each commit
 * out.
 *
 * Messages wait at most the commit interval, or until LS_COMMIT_MAX_RECORDS came
 * together; then all commit in one transaction. What came of reports is told by a
 * struct ls_write_done, after the commit: 0 means on disk.
 *
 * When the disk refuses, no report of the batch is stored, nor is any sent before its
 * sender knew: the failure raises the epoch, and a report of an older epoch is refused
 * (-LS_ESTALE). So a sender that hears of a failure takes back everything not told as
 * stored, and nothing is left out in the middle. Workers, findings and closings are
 * kept and tried again (LS_WRITE_KEPT_MAX of them).
 *
 * PACK, ROLLUP, REPLACE and ASIDE messages are no part of a batch: each is applied alone, after
 * a commit that is due. Applied or refused, the message comes back with its rc to the
 * keeper that sent it.
 *
 * Owner:   ls_writer_push: any thread. _count and the queue of done belong to one (the
 *          loop), the queue of packed units to one (the keeper).
 * Units:   ns for intervals.
 * Errors:  those of ls_store_open; -LS_ELIMIT full; -LS_ECLOSED.
 * Limits:  LS_WRITE_QUEUE_MAX messages waiting, LS_WRITE_DONE_MAX commits told and not
 *          yet taken, LS_WRITE_PACKED_MAX units likewise.
 * Source:  storage/README.md, "Durability".
 */
#ifndef LS_STORAGE_WRITER_H
#define LS_STORAGE_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include "storage/db/rows.h"
#include "storage/write/store.h"

struct ls_queue;
struct ls_writer;

struct ls_writer_options {
	const char *dir; /* must outlive it */
	uint64_t commit_interval_ns;
};

/* News of one attempt to commit. */
struct ls_write_done {
	int rc; /* 0, or why the disk refused */
	uint64_t epoch; /* failures so far */
	uint64_t commit_ns; /* how long the transaction took */
	uint64_t wait_ns; /* how long its first message waited for it */
	uint64_t dropped; /* messages given up so far (LS_WRITE_KEPT_MAX) */
	struct ls_store_stats stats;
	struct ls_write *reports; /* each with its rc; the receiver frees them */
};

/* Opens the store in this thread, then starts the other. */
int ls_writer_open(const struct ls_writer_options *options,
	struct ls_writer **ret_writer) LS_MUSTCHECK;

/*
 * Hands a message over. -LS_ELIMIT, -LS_ECLOSED: the caller keeps it. A report that
 * fits leaves LS_WRITE_RESERVE places for other messages.
 */
int ls_writer_push(struct ls_writer *w, struct ls_write *m) LS_MUSTCHECK;

/* Queue of struct ls_write_done *, to be watched by the caller. Free each with
 * ls_write_done_free. */
struct ls_queue *ls_writer_done(struct ls_writer *w);
void ls_write_done_free(struct ls_write_done *done);

/* Queue of such messages (struct ls_write *) that came back; the
 * taker frees them. */
struct ls_queue *ls_writer_packed(struct ls_writer *w);

/* Messages waiting. */
size_t ls_writer_count(struct ls_writer *w);

/* Statistics at the opening, before any commit. */
void ls_writer_stats(const struct ls_writer *w, struct ls_store_stats *ret_stats);

/*
 * Takes no more messages and commits what is waiting; ends the thread. The queue of
 * done then holds the rest and stays until ls_writer_close.
 */
void ls_writer_stop(struct ls_writer *w);

/* Stops, if not done, and frees; accepts NULL. */
void ls_writer_close(struct ls_writer *w);

#endif

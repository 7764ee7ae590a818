/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/write/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/queue.h"
#include "storage/db/db.h"

#define WRITER_TAKE 256 /* messages of one look into the queue */
#define WRITER_IDLE_NS 1000000000ull

/* Messages of one transaction, and those kept from the last. */
#define WRITER_BATCH_MAX (LS_COMMIT_MAX_RECORDS + LS_WRITE_KEPT_MAX + WRITER_TAKE)

struct ls_writer {
	/* Set before the thread starts. */
	struct ls_queue *in, *done, *packed;
	uint64_t interval_ns;
	struct ls_store *store;
	struct ls_store_stats first_stats;
	pthread_t thread;
	bool running; /* of the opener's thread */
	/* The writer thread's. */
	struct ls_write *batch[WRITER_BATCH_MAX];
	size_t count;
	size_t rows; /* of the batch, about */
	uint64_t first_ns; /* when the batch began */
	uint64_t not_before_ns; /* while the disk refuses */
	uint64_t epoch, dropped;
	bool refused; /* the last attempt failed */
	bool lost; /* a look found that files had gone */
	struct ls_write_done *told; /* not yet pushed: the queue of done was full */
	struct ls_write *packs, **packs_tail; /* waiting for their turn */
};

/* Rows a message makes, about. */
static size_t
writer_rows(const struct ls_write *m)
{
	if (m->kind != LS_WRITE_REPORT)
		return 1;
	return m->u.report.item_count + m->u.report.counters_count +
		m->u.report.chunk_count + 1;
}

static void
writer_add(struct ls_writer *w, struct ls_write *m, uint64_t now_ns)
{
	if (w->count == 0)
		w->first_ns = now_ns;
	m->rc = 0;
	if (m->kind == LS_WRITE_REPORT && m->epoch != w->epoch)
		m->rc = -LS_ESTALE;
	w->rows += writer_rows(m);
	w->batch[w->count++] = m;
}

/* Moves reports refused before the commit behind the others; returns how many are to be
 * stored. */
static size_t
writer_part(struct ls_writer *w)
{
	size_t i, good = 0;
	struct ls_write *m;

	for (i = 0; i < w->count; i++) {
		m = w->batch[i];
		if (m->rc != 0)
			continue;
		/* Those moved on are refused reports, whose order does not matter. */
		w->batch[i] = w->batch[good];
		w->batch[good++] = m;
	}
	return good;
}

/* After an attempt: reports go into the list that is told, the rest is freed or kept.
 */
static struct ls_write *
writer_settle(struct ls_writer *w)
{
	struct ls_write *reports = NULL, **tail = &reports;
	size_t i, kept = 0;

	for (i = 0; i < w->count; i++) {
		struct ls_write *m = w->batch[i];

		if (m->kind == LS_WRITE_REPORT) {
			*tail = m;
			tail = &m->next;
		} else if (m->rc == 0 || m->kind == LS_WRITE_RETAIN) {
			ls_write_free(m);
		} else if (kept < LS_WRITE_KEPT_MAX) {
			m->rc = 0;
			w->batch[kept++] = m;
		} else {
			w->dropped++;
			ls_write_free(m);
		}
	}
	*tail = NULL;
	w->count = kept;
	w->rows = kept;
	return reports;
}

/* Tells what came of an attempt; if nobody listens yet, with the next one. */
static void
writer_tell(struct ls_writer *w, struct ls_write_done *done)
{
	struct ls_write **tail;

	if (w->told != NULL) {
		for (tail = &w->told->reports; *tail != NULL; tail = &(*tail)->next)
			;
		*tail = done->reports;
		done->reports = w->told->reports;
		w->told->reports = NULL;
		ls_write_done_free(w->told);
		w->told = NULL;
	}
	if (ls_queue_push(w->done, done) != 0)
		w->told = done;
}

static void
writer_commit(struct ls_writer *w, uint64_t now_ns, struct ls_write_done *done)
{
	size_t good = writer_part(w);

	done->wait_ns = now_ns - w->first_ns;
	done->rc = ls_store_commit(w->store, w->batch, good, ls_clock_wall_ns() / 1000);
	done->commit_ns = ls_clock_mono_ns() - now_ns;
	if (done->rc != 0) {
		w->epoch++;
		w->not_before_ns = now_ns + LS_WRITE_RETRY_NS;
		if (!w->refused)
			ls_log(LS_LOG_ERR, "storage",
				"cannot commit to %s: %s; acknowledging nothing until "
				"commits succeed; %s",
				ls_store_dir(w->store), ls_err_text(done->rc),
				ls_db_advice(done->rc));
	}
	w->refused = done->rc != 0;
	done->reports = writer_settle(w);
	done->epoch = w->epoch;
	done->dropped = w->dropped;
	ls_store_stats(w->store, &done->stats);
	if (w->count > 0)
		w->first_ns = now_ns;
	writer_tell(w, done);
}

/* Puts off a unit, roll-ups or a repacked file until no commit is due. */
static void
writer_add_pack(struct ls_writer *w, struct ls_write *m)
{
	m->next = NULL;
	*w->packs_tail = m;
	w->packs_tail = &m->next;
}

/* Messages that are no part of a batch. */
static bool
writer_is_apart(const struct ls_write *m)
{
	return m->kind == LS_WRITE_PACK || m->kind == LS_WRITE_ROLLUP ||
		m->kind == LS_WRITE_REPLACE || m->kind == LS_WRITE_ASIDE;
}

/* News without a commit: a file was set aside. While the disk refuses, the next attempt
 * brings the news. */
static void
writer_tell_stats(struct ls_writer *w)
{
	struct ls_write_done *done = w->refused ? NULL : calloc(1, sizeof(*done));

	if (done == NULL)
		return;
	done->epoch = w->epoch;
	done->dropped = w->dropped;
	ls_store_stats(w->store, &done->stats);
	writer_tell(w, done);
}

/* Nothing to do for a second: are the files still there? */
static void
writer_look(struct ls_writer *w, uint64_t now_ns)
{
	struct ls_write_done *done;
	bool lost = ls_store_commit(w->store, NULL, 0,
			    (int64_t)(ls_clock_wall_ns() / 1000)) != 0;

	if (!lost && !w->lost)
		return;
	w->lost = lost;
	w->first_ns = now_ns;
	done = calloc(1, sizeof(*done));
	if (done != NULL) /* else in a second */
		writer_commit(w, now_ns, done);
}

static int
writer_apply(struct ls_writer *w, const struct ls_write *m)
{
	if (m->kind == LS_WRITE_PACK)
		return ls_store_pack(w->store, &m->u.pack);
	if (m->kind == LS_WRITE_ROLLUP)
		return ls_store_rollup(w->store, &m->u.rollup);
	if (m->kind == LS_WRITE_REPLACE)
		return ls_store_replace(w->store, m->u.day);
	return ls_store_set_aside(w->store, m->u.day,
		(int64_t)(ls_clock_wall_ns() / 1000));
}

/* The next of them, applied (or refused, when closing), goes back to whoever packs. */
static void
writer_pack(struct ls_writer *w, bool closing)
{
	struct ls_write *m = w->packs;

	w->packs = m->next;
	if (w->packs == NULL)
		w->packs_tail = &w->packs;
	m->rc = closing ? -LS_ECLOSED : writer_apply(w, m);
	if (m->kind == LS_WRITE_ASIDE)
		writer_tell_stats(w);
	if (ls_queue_push(w->packed, m) != 0)
		ls_write_free(
			m); /* nobody asks; what is packed can be seen in the file */
}

static bool
writer_is_due(const struct ls_writer *w, uint64_t now_ns, bool closing)
{
	if (w->count == 0)
		return false;
	if (closing)
		return true;
	if (now_ns < w->not_before_ns)
		return w->count + WRITER_TAKE > WRITER_BATCH_MAX;
	return now_ns >= w->first_ns + w->interval_ns ||
		w->rows >= LS_COMMIT_MAX_RECORDS;
}

static uint64_t
writer_patience(const struct ls_writer *w, uint64_t now_ns)
{
	uint64_t due = w->first_ns + w->interval_ns;

	if (w->packs != NULL)
		return 0;
	if (w->count == 0)
		return WRITER_IDLE_NS;
	if (due < w->not_before_ns)
		due = w->not_before_ns;
	return due > now_ns ? due - now_ns : 0;
}

static void *
writer_main(void *arg)
{
	struct ls_writer *w = arg;
	void *items[WRITER_TAKE];
	bool closing;
	uint64_t now_ns;
	size_t i, n;

	do {
		now_ns = ls_clock_mono_ns();
		/* Once a batch has begun it is in no hurry: woken for many, not for
		 * each. */
		n = ls_queue_take_many(w->in, items, WRITER_TAKE,
			w->count > 0 ? WRITER_TAKE : 1, writer_patience(w, now_ns));
		now_ns = ls_clock_mono_ns();
		for (i = 0; i < n; i++) {
			struct ls_write *m = items[i];

			if (writer_is_apart(m))
				writer_add_pack(w, m);
			else
				writer_add(w, m, now_ns);
		}
		closing = ls_queue_is_done(w->in);
		/* The last ones are not waited for if nothing can be stored any more. */
		if (writer_is_due(w, now_ns, closing) &&
			!(closing && w->refused && w->packs != NULL)) {
			struct ls_write_done *done = calloc(1, sizeof(*done));

			if (done != NULL) /* else once more, in a moment */
				writer_commit(w, now_ns, done);
		} else if (w->packs != NULL) {
			writer_pack(w, closing);
		} else if (n == 0 && w->count == 0 && !closing) {
			writer_look(w, now_ns);
		}
	} while (!closing || w->packs != NULL);
	return NULL;
}

int
ls_writer_open(const struct ls_writer_options *options, struct ls_writer **ret_writer)
{
	struct ls_writer *w = calloc(1, sizeof(*w));
	int rc = -ENOMEM;

	if (w == NULL)
		return rc;
	w->interval_ns = options->commit_interval_ns;
	w->in = ls_queue_new(LS_WRITE_QUEUE_MAX);
	w->done = ls_queue_new(LS_WRITE_DONE_MAX);
	w->packed = ls_queue_new(LS_WRITE_PACKED_MAX);
	w->packs_tail = &w->packs;
	if (w->in == NULL || w->done == NULL || w->packed == NULL)
		goto out;
	rc = ls_store_open(options->dir, ls_clock_wall_ns() / 1000, &w->store);
	if (rc != 0)
		goto out;
	ls_store_stats(w->store, &w->first_stats);
	rc = ls_queue_start_thread(&w->thread, "writer", writer_main, w);
	w->running = rc == 0;
out:
	if (rc == 0)
		*ret_writer = w;
	else
		ls_writer_close(w);
	return rc;
}

int
ls_writer_push(struct ls_writer *w, struct ls_write *m)
{
	if (m->kind == LS_WRITE_REPORT &&
		ls_queue_count(w->in) >= LS_WRITE_QUEUE_MAX - LS_WRITE_RESERVE)
		return -LS_ELIMIT;
	return ls_queue_push(w->in, m);
}

struct ls_queue *
ls_writer_done(struct ls_writer *w)
{
	return w->done;
}

struct ls_queue *
ls_writer_packed(struct ls_writer *w)
{
	return w->packed;
}

void
ls_write_done_free(struct ls_write_done *done)
{
	if (done == NULL)
		return;
	while (done->reports != NULL) {
		struct ls_write *m = done->reports;

		done->reports = m->next;
		ls_write_free(m);
	}
	free(done);
}

size_t
ls_writer_count(struct ls_writer *w)
{
	return ls_queue_count(w->in);
}

void
ls_writer_stats(const struct ls_writer *w, struct ls_store_stats *ret_stats)
{
	*ret_stats = w->first_stats;
}

void
ls_writer_stop(struct ls_writer *w)
{
	if (!w->running)
		return;
	ls_queue_close(w->in);
	(void)pthread_join(w->thread, NULL); /* the thread is ours and ends */
	w->running = false;
}

static void
writer_free_done(void *item)
{
	ls_write_done_free(item);
}

static void
writer_free_message(void *item)
{
	ls_write_free(item);
}

void
ls_writer_close(struct ls_writer *w)
{
	if (w == NULL)
		return;
	ls_writer_stop(w);
	for (size_t i = 0; i < w->count; i++)
		ls_write_free(w->batch[i]);
	ls_write_done_free(w->told);
	ls_queue_free(w->in, writer_free_message);
	ls_queue_free(w->done, writer_free_done);
	ls_queue_free(w->packed, writer_free_message);
	ls_store_close(w->store);
	free(w);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include "collector/history/export.h"
#include "collector/answer/questions.h"
#include "collector/history/stored_series.h"
#include "proto/base/clock.h"
#include "proto/base/queue.h"
#include "storage/db/days.h"

#define READER_TEXT_BYTES (LS_EXPORT_PIECE_BYTES + LS_REPLAY_LINE_MAX_BYTES)
#define READER_WAIT_NS 1000000000ull

enum reader_class {
	READER_LONG,
	READER_FLEET,
	READER_SHORT,
	READER_LANES = READER_SHORT + LS_READER_SHORT
};

/* One thing to read. Made and freed on the loop; the lane only reads what, ask and
 * cancelled. */
struct reader_job {
	enum ls_reader_what what;
	struct ls_ask ask;
	ls_reader_piece *piece;
	void *arg;
	bool unwanted; /* the loop's: its receiver said stop */
	bool held; /* likewise: wait */
	/* set by the loop, seen by the lane in the middle of a question */
	atomic_bool cancelled;
	LIST_ENTRY(reader_job) all; /* the loop's */
};

struct reader_piece {
	struct reader_piece *next; /* of those kept */
	struct reader_job *job;
	bool last, stop; /* stop: to the lane, about `job` */
	int rc;
	size_t len;
	char text[READER_TEXT_BYTES];
};

/* A thread, and what goes between it and the loop. */
struct reader_lane {
	struct ls_reader *reader;
	struct ls_queue *jobs, *full, *empty;
	struct reader_piece *pieces;
	pthread_t thread;
	bool running;
	size_t waiting; /* the loop's: jobs that have not ended */
	/* likewise: empty pieces that the lane does not get while its job is held */
	struct reader_piece *kept;
	/* The lane thread's. */
	struct ls_questions *questions;
	struct reader_job *current;
	bool stopped; /* current is not wanted any more */
	bool in_the_way; /* its receiver waits, and a WAL grows */
};

LIST_HEAD(reader_jobs, reader_job);

struct ls_reader {
	char *dir;
	struct reader_jobs all;
	struct ls_reader_stats stats;
	bool damaged; /* a read met damage */
	struct reader_lane lane[READER_LANES];
};

/* --- a lane's thread ------------------------------------------------------ */

/* Does a read in the files of now keep one from being emptied? */
static bool
reader_is_in_the_way(const struct reader_lane *l)
{
	const char *dir = l->reader->dir;
	int32_t today = ls_days_of(ls_clock_wall_ns() / 1000);

	return ls_days_wal_bytes(dir, today) > LS_WAL_MAX_BYTES ||
		ls_days_wal_bytes(dir, 0) > LS_WAL_MAX_BYTES;
}

/* An empty piece; NULL when closed, or in the middle of a read that must end. Takes
 * notice of what is not wanted any more. */
static struct reader_piece *
reader_take(struct reader_lane *l, bool reads)
{
	void *item = NULL;
	struct reader_piece *p;

	while (ls_queue_take_wait(l->empty, &item, 1, READER_WAIT_NS) == 0) {
		l->in_the_way = reads && reader_is_in_the_way(l);
		if (ls_queue_is_done(l->empty) || l->in_the_way)
			return NULL;
	}
	p = item;
	if (p->stop && p->job == l->current)
		l->stopped = true;
	return p;
}

static void
reader_give(struct reader_lane *l, struct reader_piece *p)
{
	p->job = l->current;
	p->stop = false;
	/* There is room for every piece; closed means that nobody listens. */
	ls_ignore(ls_queue_push(l->full, p));
}

static bool
reader_sink(void *arg, const char *text, size_t len)
{
	struct reader_lane *l = arg;
	struct reader_piece *p = reader_take(l, true);

	if (p == NULL)
		return false;
	if (atomic_load(&l->current->cancelled))
		l->stopped = true;
	p->last = false;
	p->rc = 0;
	p->len = l->stopped ? 0 : len;
	memcpy(p->text, text, p->len);
	reader_give(l, p);
	return !l->stopped;
}

static int
reader_answer(struct reader_lane *l, struct reader_job *job)
{
	if (l->questions == NULL)
		l->questions = ls_questions_new(l->reader->dir);
	if (l->questions == NULL)
		return -ENOMEM;
	return ls_questions_answer(l->questions, &job->ask, &job->cancelled,
		reader_sink, l);
}

static int
reader_read(struct reader_lane *l, struct reader_job *job)
{
	const char *dir = l->reader->dir;

	if (atomic_load(&job->cancelled))
		return -ECANCELED; /* while it waited */
	switch (job->what) {
	case LS_READER_EXPORT:
		return ls_export_job(dir, job->ask.job, job->ask.counters, reader_sink,
			l);
	case LS_READER_LATEST:
		return ls_stored_series(dir, job->ask.host, reader_sink, l);
	case LS_READER_ANSWER:
		return reader_answer(l, job);
	}
	return -EINVAL;
}

static void
reader_run(struct reader_lane *l, struct reader_job *job)
{
	struct reader_piece *p;
	int rc;

	l->current = job;
	l->stopped = l->in_the_way = false;
	rc = reader_read(l, job);
	if (l->in_the_way)
		rc = -LS_EINTERRUPTED;
	p = reader_take(l, false);
	if (p == NULL)
		return; /* the loop ends it */
	p->last = true;
	p->rc = rc;
	p->len = 0;
	reader_give(l, p);
	l->current = NULL; /* its end is told: the loop frees it */
}

static void *
reader_main(void *arg)
{
	struct reader_lane *l = arg;
	void *job;

	while (!ls_queue_is_done(l->jobs)) {
		if (ls_queue_is_done(l->empty))
			break; /* closing: what waits is ended by the loop */
		if (ls_queue_take_wait(l->jobs, &job, 1, READER_WAIT_NS) == 1)
			reader_run(l, job);
	}
	ls_questions_free(l->questions);
	return NULL;
}

/* --- the loop ------------------------------------------------------------- */

static void
reader_count(struct ls_reader *r, int rc)
{
	if (rc != 0 && rc != -LS_EUNKNOWN && rc != -ECANCELED)
		r->stats.failed++;
	r->damaged = r->damaged || rc == -LS_ECORRUPT;
	if (rc == -ETIMEDOUT)
		r->stats.timed_out++;
	if (rc == -LS_EBUSY)
		r->stats.busy++;
}

static void
reader_finish(struct reader_lane *l, struct reader_job *job, int rc)
{
	LIST_REMOVE(job, all);
	l->waiting--;
	reader_count(l->reader, rc);
	(void)job->piece(job->arg, rc, NULL, 0); /* nothing follows anyway */
	free(job);
}

/* The lane gets the pieces back that were kept from it. */
static void
reader_release(struct reader_lane *l)
{
	struct reader_piece *p;

	while ((p = l->kept) != NULL) {
		l->kept = p->next;
		ls_ignore(ls_queue_push(l->empty, p)); /* has room for all; or closed */
	}
}

static void
reader_on_full(void *arg)
{
	struct reader_lane *l = arg;
	void *item;

	while (ls_queue_take(l->full, &item, 1) == 1) {
		struct reader_piece *p = item;
		struct reader_job *job = p->job;

		if (p->len > 0 && !job->unwanted)
			job->unwanted = !job->piece(job->arg, 0, p->text, p->len);
		p->stop = job->unwanted;
		if (job->held && !p->stop && !p->last) {
			p->next = l->kept;
			l->kept = p;
			continue;
		}
		if (p->last) {
			reader_release(l);
			reader_finish(l, job, p->rc);
		}
		ls_ignore(ls_queue_push(l->empty, p)); /* has room for all; or closed */
	}
}

/* The lane of a question; of several alike, the one with least to do. */
static struct reader_lane *
reader_lane(struct ls_reader *r, enum ls_reader_what what, const struct ls_ask *ask)
{
	struct reader_lane *best = &r->lane[READER_SHORT];

	if (what == LS_READER_EXPORT)
		return &r->lane[READER_LONG];
	if (what == LS_READER_ANSWER && ask->kind == LS_ASK_FLEET)
		return &r->lane[READER_FLEET];
	for (size_t i = READER_SHORT; i < READER_LANES; i++) {
		if (r->lane[i].waiting < best->waiting)
			best = &r->lane[i];
	}
	return best;
}

void
ls_reader_read(struct ls_reader *r, enum ls_reader_what what, const struct ls_ask *ask,
	ls_reader_piece *piece, void *arg)
{
	struct reader_lane *l = reader_lane(r, what, ask);
	struct reader_job *job = calloc(1, sizeof(*job));
	int rc = -ENOMEM;

	r->stats.asked++;
	if (job != NULL) {
		job->what = what;
		job->ask = *ask;
		job->piece = piece;
		job->arg = arg;
		atomic_init(&job->cancelled, false);
		rc = ls_queue_push(l->jobs, job);
		if (rc == -LS_ELIMIT)
			rc = -LS_EBUSY;
	}
	if (rc != 0) {
		free(job);
		reader_count(r, rc);
		(void)piece(arg, rc, NULL, 0); /* nothing follows anyway */
		return;
	}
	l->waiting++;
	LIST_INSERT_HEAD(&r->all, job, all);
}

void
ls_reader_hold(struct ls_reader *r, const void *arg, bool hold)
{
	struct reader_job *job;

	LIST_FOREACH (job, &r->all, all) {
		if (job->arg == arg)
			break;
	}
	if (job == NULL || job->held == hold)
		return;
	job->held = hold;
	for (size_t i = 0; !hold && i < READER_LANES; i++) {
		if (r->lane[i].kept != NULL && r->lane[i].kept->job == job)
			reader_release(&r->lane[i]);
	}
}

void
ls_reader_cancel(struct ls_reader *r, const void *arg)
{
	struct reader_job *job;

	LIST_FOREACH (job, &r->all, all) {
		if (job->arg == arg) {
			job->unwanted = true;
			atomic_store(&job->cancelled, true);
		}
	}
	ls_reader_hold(r, arg, false);
}

void
ls_reader_stats(const struct ls_reader *r, struct ls_reader_stats *ret_stats)
{
	*ret_stats = r->stats;
}

/* --- life ----------------------------------------------------------------- */

static int
reader_start_lane(struct ls_reader *r, struct reader_lane *l, struct ls_loop *loop)
{
	int rc;

	l->reader = r;
	l->jobs = ls_queue_new(LS_EXPORTS_MAX);
	l->full = ls_queue_new(LS_EXPORT_PIECES);
	l->empty = ls_queue_new(LS_EXPORT_PIECES);
	l->pieces = calloc(LS_EXPORT_PIECES, sizeof(*l->pieces));
	if (l->jobs == NULL || l->full == NULL || l->empty == NULL || l->pieces == NULL)
		return -ENOMEM;
	rc = ls_queue_watch(l->full, loop, reader_on_full, l);
	for (size_t i = 0; i < LS_EXPORT_PIECES && rc == 0; i++)
		rc = ls_queue_push(l->empty, &l->pieces[i]);
	if (rc == 0)
		rc = ls_queue_start_thread(&l->thread, "reader", reader_main, l);
	l->running = rc == 0;
	return rc;
}

int
ls_reader_start(struct ls_loop *loop, const char *dir, struct ls_reader **ret_reader)
{
	struct ls_reader *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return -ENOMEM;
	r->dir = strdup(dir);
	rc = r->dir != NULL ? 0 : -ENOMEM;
	for (size_t i = 0; i < READER_LANES && rc == 0; i++)
		rc = reader_start_lane(r, &r->lane[i], loop);
	if (rc == 0)
		*ret_reader = r;
	else
		ls_reader_stop(r);
	return rc;
}

/* Ends what the thread left: the running job, if its last piece never came, and the
 * waiting. */
static void
reader_end_jobs(struct reader_lane *l)
{
	struct reader_job *current = l->current;
	void *item;

	while (ls_queue_take(l->full, &item, 1) == 1) {
		struct reader_piece *p = item;

		if (!p->last)
			continue;
		if (p->job == current)
			current = NULL;
		reader_finish(l, p->job, p->rc);
	}
	if (current != NULL)
		reader_finish(l, current, -LS_ECLOSED);
	while (ls_queue_take(l->jobs, &item, 1) == 1)
		reader_finish(l, item, -LS_ECLOSED);
}

static void
reader_stop_lane(struct reader_lane *l)
{
	void *items[LS_EXPORT_PIECES];

	if (l->running) {
		ls_queue_close(l->jobs);
		ls_queue_close(l->empty);
		/* none is to be filled */
		(void)ls_queue_take(l->empty, items, LS_EXPORT_PIECES);
		(void)pthread_join(l->thread, NULL); /* the thread is ours and ends */
		reader_end_jobs(l);
	}
	ls_queue_free(l->jobs, NULL);
	ls_queue_free(l->full, NULL);
	ls_queue_free(l->empty, NULL);
	free(l->pieces);
}

void
ls_reader_stop(struct ls_reader *r)
{
	struct reader_job *job;

	if (r == NULL)
		return;
	LIST_FOREACH (job, &r->all, all)
		atomic_store(&job->cancelled,
			true); /* a question in the middle ends now */
	for (size_t i = 0; i < READER_LANES; i++)
		reader_stop_lane(&r->lane[i]);
	free(r->dir);
	free(r);
}

bool
ls_reader_take_damaged(struct ls_reader *r)
{
	bool damaged = r->damaged;

	r->damaged = false;
	return damaged;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/reader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "collector/export.h"
#include "collector/stored_series.h"
#include "proto/base/queue.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define READER_TEXT_BYTES (LS_EXPORT_PIECE_BYTES + LS_REPLAY_LINE_MAX_BYTES)
/* A job or a host. */
#define READER_NAME_BYTES \
	(LS_JOB_NAME_MAX_BYTES > LS_HOST_NAME_MAX_BYTES ? LS_JOB_NAME_MAX_BYTES : LS_HOST_NAME_MAX_BYTES)
#define READER_WAIT_NS 1000000000ull

/* One thing to read. Made and freed on the loop; the reader only reads what and name. */
struct reader_job {
	enum ls_reader_what what;
	char name[READER_NAME_BYTES];
	ls_reader_piece *piece;
	void *arg;
	bool unwanted; /* the loop's: its receiver said stop */
};

struct reader_piece {
	struct reader_job *job;
	bool last, stop; /* stop: to the reader, about `job` */
	int rc;
	size_t len;
	char text[READER_TEXT_BYTES];
};

struct ls_reader {
	char *dir;
	struct ls_queue *jobs, *full, *empty;
	struct reader_piece *pieces;
	pthread_t thread;
	bool running;
	/* The reader thread's. */
	struct reader_job *current;
	bool stopped; /* current is not wanted any more */
};

/* --- the reader thread ----------------------------------------------------------------------- */

/* An empty piece; NULL when closed. Takes notice of what is not wanted any more. */
static struct reader_piece *
reader_take(struct ls_reader *r)
{
	void *item = NULL;
	struct reader_piece *p;

	while (ls_queue_take_wait(r->empty, &item, 1, READER_WAIT_NS) == 0) {
		if (ls_queue_is_done(r->empty))
			return NULL;
	}
	p = item;
	if (p->stop && p->job == r->current)
		r->stopped = true;
	return p;
}

static void
reader_give(struct ls_reader *r, struct reader_piece *p)
{
	p->job = r->current;
	p->stop = false;
	/* There is room for every piece; closed means that nobody listens. */
	ls_ignore(ls_queue_push(r->full, p));
}

static bool
reader_sink(void *arg, const char *text, size_t len)
{
	struct ls_reader *r = arg;
	struct reader_piece *p = reader_take(r);

	if (p == NULL)
		return false;
	p->last = false;
	p->rc = 0;
	p->len = r->stopped ? 0 : len;
	memcpy(p->text, text, p->len);
	reader_give(r, p);
	return !r->stopped;
}

static int
reader_read(struct ls_reader *r, const struct reader_job *job)
{
	switch (job->what) {
	case LS_READER_EXPORT:
		return ls_export_job(r->dir, job->name, false, reader_sink, r);
	case LS_READER_EXPORT_COUNTERS:
		return ls_export_job(r->dir, job->name, true, reader_sink, r);
	case LS_READER_SERIES:
		return ls_stored_series(r->dir, job->name, reader_sink, r);
	}
	return -EINVAL;
}

static void
reader_run(struct ls_reader *r, struct reader_job *job)
{
	struct reader_piece *p;
	int rc;

	r->current = job;
	r->stopped = false;
	rc = reader_read(r, job);
	p = reader_take(r);
	if (p == NULL)
		return; /* the loop ends it */
	p->last = true;
	p->rc = rc;
	p->len = 0;
	reader_give(r, p);
	r->current = NULL; /* its end is told: the loop frees it */
}

static void *
reader_main(void *arg)
{
	struct ls_reader *r = arg;
	void *job;

	while (!ls_queue_is_done(r->jobs)) {
		if (ls_queue_is_done(r->empty))
			break; /* closing: what waits is ended by the loop */
		if (ls_queue_take_wait(r->jobs, &job, 1, READER_WAIT_NS) == 1)
			reader_run(r, job);
	}
	return NULL;
}

/* --- the loop -------------------------------------------------------------------------------- */

static void
reader_finish(struct reader_job *job, int rc)
{
	(void)job->piece(job->arg, rc, NULL, 0); /* nothing follows anyway */
	free(job);
}

static void
reader_on_full(void *arg)
{
	struct ls_reader *r = arg;
	void *item;

	while (ls_queue_take(r->full, &item, 1) == 1) {
		struct reader_piece *p = item;
		struct reader_job *job = p->job;

		if (p->len > 0 && !job->unwanted)
			job->unwanted = !job->piece(job->arg, 0, p->text, p->len);
		p->stop = job->unwanted;
		if (p->last)
			reader_finish(job, p->rc);
		ls_ignore(ls_queue_push(r->empty, p)); /* has room for all; or closed */
	}
}

void
ls_reader_read(struct ls_reader *r, enum ls_reader_what what, const char *name,
	ls_reader_piece *piece, void *arg)
{
	struct reader_job *job = calloc(1, sizeof(*job));
	int rc = job != NULL ? ls_text_copy(job->name, sizeof(job->name), name) : -ENOMEM;

	if (rc == -LS_ELIMIT)
		rc = -LS_EUNKNOWN; /* nothing has so long a name */
	if (rc == 0) {
		job->what = what;
		job->piece = piece;
		job->arg = arg;
		rc = ls_queue_push(r->jobs, job);
		if (rc == -LS_ELIMIT)
			rc = -LS_EBUSY;
	}
	if (rc != 0) {
		free(job);
		(void)piece(arg, rc, NULL, 0); /* nothing follows anyway */
	}
}

static int
reader_spawn(struct ls_reader *r)
{
	sigset_t all, before;
	int rc;

	/* Signals are the loop's: this thread takes none. */
	(void)sigfillset(&all); /* cannot fail */
	rc = pthread_sigmask(SIG_BLOCK, &all, &before);
	if (rc != 0)
		return -rc;
	rc = pthread_create(&r->thread, NULL, reader_main, r);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* worked a moment ago */
	r->running = rc == 0;
	if (r->running)
		(void)pthread_setname_np(r->thread, "reader"); /* for people who look */
	return -rc;
}

int
ls_reader_start(struct ls_loop *loop, const char *dir, struct ls_reader **ret_reader)
{
	struct ls_reader *r = calloc(1, sizeof(*r));
	size_t i;
	int rc = -ENOMEM;

	if (r == NULL)
		return rc;
	r->dir = strdup(dir);
	r->jobs = ls_queue_new(LS_EXPORTS_MAX);
	r->full = ls_queue_new(LS_EXPORT_PIECES);
	r->empty = ls_queue_new(LS_EXPORT_PIECES);
	r->pieces = calloc(LS_EXPORT_PIECES, sizeof(*r->pieces));
	if (r->dir == NULL || r->jobs == NULL || r->full == NULL || r->empty == NULL ||
		r->pieces == NULL)
		goto out;
	rc = ls_queue_watch(r->full, loop, reader_on_full, r);
	for (i = 0; i < LS_EXPORT_PIECES && rc == 0; i++)
		rc = ls_queue_push(r->empty, &r->pieces[i]);
	if (rc == 0)
		rc = reader_spawn(r);
out:
	if (rc != 0) {
		ls_reader_stop(r);
		return rc;
	}
	*ret_reader = r;
	return 0;
}

/* Ends what the thread left: the running export, if its last piece never came, and the waiting. */
static void
reader_end_jobs(struct ls_reader *r)
{
	struct reader_job *current = r->current;
	void *item;

	while (ls_queue_take(r->full, &item, 1) == 1) {
		struct reader_piece *p = item;

		if (!p->last)
			continue;
		if (p->job == current)
			current = NULL;
		reader_finish(p->job, p->rc);
	}
	if (current != NULL)
		reader_finish(current, -LS_ECLOSED);
	while (ls_queue_take(r->jobs, &item, 1) == 1)
		reader_finish(item, -LS_ECLOSED);
}

void
ls_reader_stop(struct ls_reader *r)
{
	void *items[LS_EXPORT_PIECES];

	if (r == NULL)
		return;
	if (r->running) {
		ls_queue_close(r->jobs);
		ls_queue_close(r->empty);
		(void)ls_queue_take(r->empty, items, LS_EXPORT_PIECES); /* none is to be filled */
		(void)pthread_join(r->thread, NULL); /* the thread is ours and ends */
		reader_end_jobs(r);
	}
	ls_queue_free(r->jobs, NULL);
	ls_queue_free(r->full, NULL);
	ls_queue_free(r->empty, NULL);
	free(r->pieces);
	free(r->dir);
	free(r);
}

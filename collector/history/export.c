/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "collector/ingest/feed.h"
#include "collector/history/job_members.h"
#include "collector/history/lines.h"
#include "collector/history/stored_series.h"
#include "proto/base/log.h"
#include "storage/read/query.h"

/* Counters of a host belong to the job from a little before its first record to after
 * its last. */
#define EXPORT_MARGIN_US 60000000ll

/* What was said last of a worker's clock. */
struct export_clock {
	bool told;
	int64_t uncertainty_ns;
};

struct export
{
	struct ls_query *query;
	const char *job;
	ls_export_sink *sink;
	void *arg;
	struct ls_lines lines;
	struct ls_job_members members;
	struct export_clock *clocks; /* by place of the worker */
	int64_t from_us, to_us; /* of its records */
	bool any;
	struct ls_stored_rows *rows; /* NULL: without the series of chunks */
};

static bool
export_has_host(const struct export *x, const char *host)
{
	return ls_job_members_host(&x->members, host) < x->members.host_count;
}

/* --- pieces --------------------------------------------------------------- */

static int
export_flush(struct export *x)
{
	size_t len = x->lines.len;

	x->lines.len = 0;
	return len == 0 || x->sink(x->arg, x->lines.text, len) ? 0 : -ECANCELED;
}

/* Room for one more line of any kind. */
static int
export_room(struct export *x)
{
	return x->lines.size - x->lines.len < LS_REPLAY_LINE_MAX_BYTES ? export_flush(x)
								       : 0;
}

/* --- first pass: when the job ran ----------------------------------------- */

static int
export_extent(void *arg, const struct ls_store_event *e)
{
	struct export *x = arg;
	const struct ls_store_steps *steps = &e->u.steps;
	struct ls_store_item row = { 0 };

	if (e->kind != LS_EVENT_STEPS ||
		ls_job_members_worker(&x->members, steps->worker_id) == NULL)
		return 0;
	ls_feed_span(&row, steps);
	if (!x->any || row.t_lo_us < x->from_us)
		x->from_us = row.t_lo_us;
	if (!x->any || row.t_hi_us > x->to_us)
		x->to_us = row.t_hi_us;
	x->any = true;
	return 0;
}

/* --- second pass: lines --------------------------------------------------- */

static int
export_clock(struct export *x, const struct ls_store_event *e,
	const struct ls_store_worker *w)
{
	struct export_clock *clock = &x->clocks[w - x->members.workers];
	int64_t uncertainty_ns = e->u.steps.uncertainty_ns;

	if (clock->told && clock->uncertainty_ns == uncertainty_ns)
		return 0;
	*clock = (struct export_clock){ true, uncertainty_ns };
	ls_lines_clock(&x->lines, &w->info, e->t_us, uncertainty_ns);
	return export_room(x);
}

static const char *
export_host(void *arg, int32_t attempt, uint32_t rank)
{
	const struct ls_store_worker *w =
		ls_job_members_rank(arg, attempt, (int32_t)rank);

	return w != NULL ? w->info.host : NULL;
}

static int
export_steps(struct export *x, const struct ls_store_event *e)
{
	const struct ls_store_steps *steps = &e->u.steps;
	const struct ls_store_worker *w =
		ls_job_members_worker(&x->members, steps->worker_id);
	int rc;

	if (w == NULL)
		return 0;
	rc = export_clock(x, e, w);
	for (uint32_t i = 0; i < steps->count && rc == 0; i++) {
		rc = export_room(x);
		if (rc == 0)
			ls_lines_step(&x->lines, &w->info, &steps->records[i],
				export_host, &x->members);
	}
	return rc;
}

static void
export_item(struct export *x, const struct ls_store_event *e)
{
	const struct ls_store_item *row = &e->u.item;
	const struct ls_store_worker *w =
		ls_job_members_worker(&x->members, row->worker_id);

	if (w == NULL)
		return;
	if (row->kind == LS_WIRE_GAP)
		ls_lines_gap(&x->lines, &w->info, e->t_us, row->count, row->reason);
	else
		ls_lines_end(&x->lines, &w->info, e->t_us, row->reason);
}

static void
export_counters(struct export *x, const struct ls_store_counters *c, int64_t t_us)
{
	const struct ls_store_worker *w = NULL;

	if (c->worker_id != 0) {
		w = ls_job_members_worker(&x->members, c->worker_id);
		if (w == NULL)
			return;
	} else if (!export_has_host(x, c->host)) {
		return;
	}
	if (c->read_us < x->from_us - EXPORT_MARGIN_US ||
		c->read_us > x->to_us + EXPORT_MARGIN_US)
		return;
	ls_lines_counters(&x->lines, x->job, w != NULL ? &w->info : NULL, c, t_us);
}

static void
export_zoom(struct export *x, const struct ls_store_event *e)
{
	const struct ls_store_zoom *z = &e->u.zoom;

	/* What a person asked for is of no job: it belongs to those that ran on the
	 * host then. */
	if (z->job[0] != '\0' ? strcmp(z->job, x->job) == 0
			      : export_has_host(x, z->host) && e->t_us >= x->from_us &&
				e->t_us <= x->to_us)
		ls_lines_zoom(&x->lines, x->job, z, e->t_us);
}

static int
export_event(void *arg, const struct ls_store_event *e)
{
	struct export *x = arg;
	int rc = export_room(x);

	if (rc != 0)
		return rc;
	switch (e->kind) {
	case LS_EVENT_STEPS:
		return export_steps(x, e);
	case LS_EVENT_ITEM:
		export_item(x, e);
		return 0;
	case LS_EVENT_CLOSE:
		if (strcmp(e->u.close.job, x->job) == 0)
			ls_lines_close(&x->lines, &e->u.close, e->t_us);
		return 0;
	case LS_EVENT_COUNTERS:
		export_counters(x, &e->u.counters, e->t_us);
		return 0;
	case LS_EVENT_ZOOM:
		export_zoom(x, e);
		return 0;
	case LS_EVENT_HANG:
		if (strcmp(e->u.hang.job, x->job) == 0)
			ls_lines_hang(&x->lines, &e->u.hang, e->t_us);
		return 0;
	}
	return 0;
}

/* All days through fn. A file that cannot be read must not end the rest. */
static int
export_pass(struct export *x, const struct ls_days *days, ls_query_event_fn *fn)
{
	int rc = 0;

	for (size_t i = 0; i < days->count; i++) {
		rc = ls_query_events(x->query, days->day[i], 0, fn, x);
		if (rc == -ECANCELED || rc == -ENOMEM)
			return rc;
		if (rc != 0)
			ls_log(LS_LOG_ERR, "export",
				"the file of day %d: %s; skipping the unreadable part",
				(int)days->day[i], ls_err_text(rc));
	}
	return 0;
}

/* --- third pass, if it is wanted: the series of chunks -------------------- */

static bool
export_is_during(const struct export *x, int64_t from_us, int64_t to_us)
{
	return to_us >= x->from_us - EXPORT_MARGIN_US &&
		from_us <= x->to_us + EXPORT_MARGIN_US;
}

static int
export_row(void *arg, const struct ls_stored_row *row)
{
	struct export *x = arg;
	size_t done = 0;
	int rc = 0;

	if (!export_is_during(x, row->t_us, row->t_us))
		return 0;
	while (rc == 0 && done < row->count) {
		rc = export_room(x);
		if (rc == 0)
			done += ls_lines_series(&x->lines, x->job, row->chunk->host,
				row->t_us, row->series + done, row->value + done,
				row->count - done);
	}
	return rc;
}

static int
export_chunk(void *arg, const struct ls_query_chunk *chunk)
{
	struct export *x = arg;

	if (!export_is_during(x, chunk->t_first_us, chunk->t_last_us) ||
		!export_has_host(x, chunk->host))
		return 0;
	return ls_stored_rows_visit(x->rows, chunk, export_row, x);
}

static int
export_lost(void *arg, const struct ls_query_lost *lost)
{
	struct export *x = arg;
	int64_t from_us = lost->from_us != 0 ? lost->from_us : lost->t_us;
	int64_t to_us = lost->to_us != 0 ? lost->to_us : lost->t_us;
	int rc = export_room(x);

	if (rc == 0 && export_is_during(x, from_us, to_us) &&
		export_has_host(x, lost->host))
		ls_lines_lost(&x->lines, x->job, lost);
	return rc;
}

/* As export_pass: a file that cannot be read must not end the rest. */
static int
export_series(struct export *x, const struct ls_days *days)
{
	int rc;

	for (size_t i = 0; i < days->count; i++) {
		rc = ls_query_chunks(x->query, days->day[i], export_chunk, x);
		if (rc == 0)
			rc = ls_query_lost(x->query, days->day[i], export_lost, x);
		if (rc == -ECANCELED || rc == -ENOMEM)
			return rc;
		if (rc != 0)
			ls_log(LS_LOG_ERR, "export",
				"the chunks of day %d: %s; skipped", (int)days->day[i],
				ls_err_text(rc));
	}
	return 0;
}

static int
export_run(struct export *x)
{
	struct ls_days *days = malloc(sizeof(*days));
	int rc = days != NULL ? ls_query_days(x->query, days) : -ENOMEM;

	if (rc == 0)
		rc = ls_job_members_read(&x->members, x->query, x->job);
	if (rc == 0) {
		x->clocks = calloc(x->members.count, sizeof(*x->clocks));
		rc = x->clocks != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = export_pass(x, days, export_extent);
	if (rc == 0 && x->any) {
		ls_lines_job(&x->lines, x->job, x->members.count, x->from_us, x->to_us);
		rc = export_pass(x, days, export_event);
		if (rc == 0 && x->rows != NULL)
			rc = export_series(x, days);
	}
	if (rc == 0)
		rc = export_flush(x);
	free(days);
	return rc;
}

int
ls_export_job(const char *dir, const char *job, bool counters, ls_export_sink *sink,
	void *arg)
{
	struct export x = { .job = job, .sink = sink, .arg = arg };
	int rc;

	x.lines.size = LS_EXPORT_PIECE_BYTES + LS_REPLAY_LINE_MAX_BYTES;
	x.lines.text = malloc(x.lines.size);
	if (x.lines.text == NULL)
		return -ENOMEM;
	rc = ls_query_open(dir, &x.query);
	if (rc == 0 && counters) {
		x.rows = ls_stored_rows_new(dir);
		rc = x.rows != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = export_run(&x);
	ls_stored_rows_free(x.rows);
	ls_query_close(x.query);
	ls_job_members_fini(&x.members);
	free(x.clocks);
	free(x.lines.text);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/engine.h"
#include "collector/engine/engine_state.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/detect/hang.h"
#include "collector/engine/detect/reference.h"
#include "collector/engine/join/lies.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ls_engine *
ls_engine_new(const struct ls_engine_sink *sink)
{
	struct ls_engine *e = calloc(1, sizeof(*e));

	if (e != NULL)
		e->jobs = calloc(LS_JOBS_MAX, sizeof(*e->jobs));
	if (e == NULL || e->jobs == NULL) {
		free(e);
		return NULL;
	}
	e->free_worker = LS_INDEX_NONE;
	e->patience_s = LS_SCALES_PATIENCE_S;
	if (sink != NULL)
		e->sink = *sink;
	return e;
}

void
ls_engine_patience(struct ls_engine *e, double patience_s)
{
	e->patience_s = patience_s;
}

void
ls_engine_free(struct ls_engine *e)
{
	if (e == NULL)
		return;
	LS_JOBS (e, j)
		ls_job_fini(j);
	LS_EACH (struct ls_engine_worker, w, e->workers, e->worker_count)
		ls_counters_fini(&w->counters);
	LS_EACH (struct ls_engine_host, h, e->hosts, e->host_count)
		ls_counters_fini(&h->counters);
	LS_FINDINGS (e, f)
		ls_findings_forget(e, f);
	ls_index_fini(&e->job_index);
	ls_index_fini(&e->host_index);
	free(e->jobs);
	free(e->workers);
	free(e->hosts);
	free(e->findings);
	free(e->reference);
	free(e);
}

/* Is it waited for: neither ended nor absent? */
static bool
engine_waits_for(const struct ls_engine_worker *w)
{
	return !ls_worker_is_gone(w) && w->missed < LS_LOOK;
}

/* Will this worker still report the step? Ended, absent and already further workers
 * will not. */
static bool
engine_expects(const struct ls_job *j, const struct ls_engine_worker *w, uint64_t step)
{
	return engine_waits_for(w) &&
		(!w->reported ||
			(j->replica.on ? w->window <= step : w->last_step < step));
}

/* Can nobody add to this row any more? *ret_expected: workers that should be in it. */
static bool
engine_row_complete(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row, uint32_t *ret_expected)
{
	uint32_t expected = 0;
	bool complete = true;

	LS_WORKERS (e, j, w) {
		if (ls_row_has(row, w->slot)) {
			expected++;
			complete &= !j->replica.on || !engine_expects(j, w, row->step);
		} else if (engine_expects(j, w, row->step)) {
			expected++;
			complete = false;
		}
	}
	*ret_expected = expected;
	return complete && ((uint32_t)j->world <= j->count || j->steps.next > 0);
}

/* Workers that still report, counted again only after a change. */
static uint32_t
job_active(const struct ls_engine *e, struct ls_job *j)
{
	if (!j->active_known)
		j->active = (uint32_t)ls_job_workers(e, j, engine_waits_for);
	j->active_known = true;
	return j->active;
}

/* Does `step` skip at least `steps` steps, counted from `from`, the next possible one? If a job reports each k-th step only, `steps` of those. */
static bool
engine_skips(const struct ls_job *j, uint64_t from, uint64_t steps, uint64_t step)
{
	size_t n = j->live_count;
	uint64_t stride =
		n == 0 ? 1 : ls_job_due(j, n) - ls_job_row(j, n - 1)->row.step;

	return !j->replica.on && j->steps.next > 0 && step >= from &&
		step - from >= steps * stride;
}

static bool
engine_has_reported(const struct ls_engine_worker *w)
{
	return w->reported && engine_waits_for(w);
}

/* Have at most half of the workers reported this step? Then its number may be wrong, and that of the others right. */
static bool
engine_is_of_few(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row)
{
	return !j->replica.on &&
		2 * row->reported <= ls_job_workers(e, j, engine_has_reported);
}

/* Counts a missed step for workers not in the row. */
static void
engine_miss(struct ls_engine *e, struct ls_job *j, const struct ls_row *row)
{
	LS_WORKERS (e, j, w)
		if (!ls_row_has(row, w->slot) && w->missed < LS_LOOK &&
			++w->missed == LS_LOOK)
			j->active_known = false;
}

/* Missing ranks are told in order, without those that another worker of the same rank has in the row. */
static void
engine_tell_closed(struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row, uint32_t expected, int64_t now_us)
{
	int32_t missing[LS_CLOSE_MISSING_MAX];
	uint32_t *here = j->room.index;
	size_t n = 0, there = 0, k = 0;
	struct ls_engine_close c = { .job = j->name,
		.attempt = j->attempt,
		.step = row->step,
		.t_us = now_us,
		.expected = expected,
		.used = row->reported,
		.missing = missing };

	if (e->sink.closed == NULL)
		return;
	for (size_t i = 0; i < j->count && n < LS_CLOSE_MISSING_MAX; i++)
		if (!ls_row_has(row, i))
			missing[n++] = e->workers[j->slots[i]].info.rank;
	ls_job_sort((uint32_t *)missing, n); /* from 0 on */
	if (n > 0 && j->twins > 0) {
		LS_CELLS (row, cell)
			here[there++] =
				(uint32_t)e->workers[j->slots[cell - row->cells]]
					.info.rank;
	}
	ls_job_sort(here, there);
	for (size_t i = 0; i < n; i++) {
		while (k < there && here[k] < (uint32_t)missing[i])
			k++;
		if (k == there || here[k] != (uint32_t)missing[i])
			missing[c.missing_count++] = missing[i];
	}
	e->sink.closed(e->sink.arg, &c);
}

/* How much a job can spare: cells of older steps, and before them nothing but its recent steps. */
static size_t
engine_spare(const struct ls_job *j)
{
	return j->live_count > LS_RECENT_STEPS
		? (j->live_count - LS_RECENT_STEPS) * j->count + LS_RECENT_STEPS
		: j->live_count;
}

/* Keeps all jobs together within LS_CELLS_MAX: the job that can best spare its oldest step forgets it. False: the open
 * steps alone are too many. */
static bool
engine_fit(struct ls_engine *e)
{
	size_t held = 0;

	LS_JOBS (e, j)
		held += j->steps.held;
	while (held > LS_CELLS_MAX) {
		struct ls_job *most = NULL;

		LS_JOBS (e, j)
			if (engine_spare(j) > (most == NULL ? 0 : engine_spare(most)))
				most = j;
		if (most == NULL)
			return false;
		held -= ls_job_forget(most);
		e->stats.steps_forgotten++;
	}
	return true;
}

static void
engine_close_oldest(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	struct ls_row row;
	uint32_t expected = 0;

	(void)engine_row_complete(e, j, ls_steps_oldest(&j->steps), &expected);
	ls_steps_take_oldest(&j->steps, &row);
	if (j->replica.on)
		ls_replica_close(e, j, &row);
	engine_miss(e, j, &row);
	j->closed++;
	j->closed_us = now_us;
	j->drops = 0;
	e->stats.steps_closed++;
	if (row.reported < expected) {
		j->shorted++;
		e->stats.steps_short++;
	}
	engine_tell_closed(e, j, &row, expected, now_us);
	ls_judge_row(e, j, &row, expected, now_us);
	(void)engine_fit(e);
}

/* Forgets an open row: its number is wrong. */
static void
engine_drop(struct ls_engine *e, struct ls_job *j, size_t at, int64_t now_us)
{
	e->stats.late += j->steps.rows[at].reported;
	j->late += j->steps.rows[at].reported;
	if (now_us - j->closed_us >= (1 + j->drops) * LS_ENGINE_US(LS_SILENT_S))
		j->drops++;
	ls_steps_drop(&j->steps, at);
}

/* Drops the newest open row if few are in it (live jobs only); else closes the oldest, even incomplete. */
static void
engine_make_room(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	size_t newest = j->steps.count - 1;

	if (!j->manual && engine_is_of_few(e, j, &j->steps.rows[newest]))
		engine_drop(e, j, newest, now_us);
	else
		engine_close_oldest(e, j, now_us);
}

/* A step was opened: where there are too many, the job with most of them makes room. */
static void
engine_fit_open(struct ls_engine *e, int64_t now_us)
{
	while (!engine_fit(e)) {
		struct ls_job *most = NULL;

		LS_JOBS (e, j)
			if (!j->manual && j->steps.count > 1 &&
				(most == NULL || j->steps.count > most->steps.count))
				most = j;
		if (most == NULL)
			return; /* steps of a replay: its file closes them */
		engine_make_room(e, most, now_us);
	}
}

/*
 * Closes, oldest first, every row that is complete or overdue. full: asked after every
 * record, so a row that has fewer records than workers is not looked at closely, and no
 * window is ever full; ls_engine_advance does that.
 */
static void
engine_close_ready(struct ls_engine *e, struct ls_job *j, bool full, int64_t now_us)
{
	struct ls_row *row;
	uint32_t expected;
	int64_t patience_us = j->replica.on ? LS_ENGINE_US(LS_SILENT_S) : 0;
	bool awaited = full || ls_engine_restarted(e, now_us, LS_SILENT_S);

	while (!j->manual && (row = ls_steps_oldest(&j->steps)) != NULL) {
		bool few;
		int64_t since_us = row->first_seen_us;

		if (full && (j->replica.on || row->reported < job_active(e, j)))
			return;
		few = engine_is_of_few(e, j, row);
		/* who is ahead of the others waits until they could follow */
		if (few && j->closed_us > since_us)
			since_us = j->closed_us;
		if (!engine_row_complete(e, j, row, &expected) &&
			(awaited ||
				!ls_steps_overdue(since_us,
					j->detect.judged > 0 ? j->detect.step_s : NAN,
					now_us - patience_us)))
			return;
		/* closed, it would end all steps before it; but if nothing else comes for long, it is right */
		if (few && j->drops < LS_LOOK &&
			engine_skips(j, j->steps.next, 1, row->step))
			engine_drop(e, j, 0, now_us);
		else
			engine_close_oldest(e, j, now_us);
	}
}

/* A record came, so its worker is present; if it was given up, it is waited for again. !fresh: the step closed long ago. */
static void
engine_note_record(struct ls_engine *e, struct ls_job *j, struct ls_engine_worker *w,
	const struct ls_record *r, bool fresh, int64_t now_us)
{
	/* too far ahead to be believed: no number to go on from */
	bool far = w->reported &&
		engine_skips(j,
			j->steps.next > w->last_step ? j->steps.next : w->last_step + 1,
			LS_LOOK, r->step);

	if (!w->reported || (r->step > w->last_step && !far) || j->replica.on) {
		w->last_step = r->step;
		if (!j->replica.on)
			w->end_us = ls_steps_end_us(r);
	}
	if (fresh && !far) {
		e->unheard -= !w->reported;
		w->reported = true;
		j->active_known &= w->missed < LS_LOOK;
		w->missed = 0;
	}
	if (!ls_worker_is_gone(w)) {
		w->state = LS_WORKER_REPORTING;
		w->seen_us = now_us;
	}
	j->last_us = now_us;
}

static int
engine_put(struct ls_job *j, struct ls_engine_worker *w, const struct ls_record *r,
	int64_t now_us)
{
	return j->replica.on
		? ls_replica_put(j, w, r, now_us)
		: ls_steps_put(&j->steps, w->slot, j->count, r->step, r, now_us);
}

/* Is a record that comes too late so by a little? Its worker keeps up, and must not
 * stay left out because it is the last. */
static bool
engine_keeps_up(const struct ls_job *j, const struct ls_record *r)
{
	return j->replica.on || j->steps.next - r->step <= LS_LOOK;
}

static bool
engine_is_heard(const struct ls_engine_worker *w)
{
	return w->reported && ls_worker_reports(w);
}

/* Did all processes start again, and count anew? A returned worker is at a closed step that began after the newest row ended, and no worker with a
 * record still reports. */
static bool
engine_is_again(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_worker *w, const struct ls_record *r)
{
	if (j->replica.on || w->reported ||
		(j->live_count > 0 &&
			r->t_begin_ns / 1000 <
				ls_job_row(j, j->live_count - 1)->row.end_us))
		return false;
	return ls_job_workers(e, j, engine_is_heard) == 0;
}

/* Did a new process take the place unannounced? It reports a step before the newest of this worker, begun LS_SILENT_S or more after that ended. */
static bool
engine_is_other(const struct ls_job *j, const struct ls_engine_worker *w,
	const struct ls_record *r)
{
	return !j->replica.on && w->reported && r->step < w->last_step &&
		r->t_begin_ns / 1000 - w->end_us >= LS_ENGINE_US(LS_SILENT_S);
}

int
ls_engine_record(struct ls_engine *e, uint32_t worker, const struct ls_record *r,
	int64_t now_us)
{
	struct ls_engine_worker *w = ls_engine_find_worker(e, worker);
	struct ls_job *j;
	const char *why;
	size_t open;
	int rc;

	if (w == NULL || r->step >= LS_STEP_END || ls_record_check(r, &why) != 0) {
		e->stats.rejected++;
		if (w != NULL)
			ls_lies_add(e, w->host, LS_LIE_RECORD, 1);
		return w == NULL ? -LS_EUNKNOWN : -LS_ERANGE;
	}
	j = &e->jobs[w->job];
	/* begun after its end was told: by another process in its place */
	if ((ls_worker_is_gone(w) && r->t_begin_ns / 1000 > w->seen_us) ||
		engine_is_other(j, w, r))
		ls_roster_revive(e, j, w, now_us);
	open = j->steps.count;
	while ((rc = engine_put(j, w, r, now_us)) == -LS_ELIMIT)
		engine_make_room(e, j, now_us);
	if (rc == -LS_ESTALE && engine_is_again(e, j, w, r)) {
		ls_roster_again(e, j, now_us);
		open = 0;
		rc = engine_put(j, w, r, now_us);
	}
	if (rc == -LS_EDUPLICATE) {
		e->stats.duplicates++;
		ls_lies_add(e, w->host,
			j->replica.on ? LS_LIE_BACKWARDS : LS_LIE_REPEATED, 1);
	} else if (rc == -LS_ESTALE) {
		e->stats.late++;
		j->late++;
		if (!j->replica.on && w->reported && r->step <= w->last_step)
			ls_lies_add(e, w->host,
				r->step < w->last_step ? LS_LIE_BACKWARDS
						       : LS_LIE_REPEATED,
				1);
		engine_note_record(e, j, w, r, engine_keeps_up(j, r), now_us);
	} else if (rc == 0) {
		e->stats.records++;
		engine_note_record(e, j, w, r, true, now_us);
		if (j->steps.count > open)
			engine_fit_open(e, now_us);
		engine_close_ready(e, j, true, now_us);
	}
	return rc;
}

void
ls_engine_gap(struct ls_engine *e, uint32_t worker, uint64_t count)
{
	struct ls_engine_worker *w = ls_engine_find_worker(e, worker);

	e->stats.gaps += count;
	if (w == NULL)
		return;
	w->gaps += count;
	e->jobs[w->job].gaps += count;
}

static bool
engine_ended_well(const struct ls_engine_worker *w)
{
	return w->how == LS_END_ENDED;
}

/* Nobody is left: what was found is over with the job if all its processes are known to have ended well, else only the
 * attempt is. Whoever comes back is another process. */
static void
engine_end_job(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	size_t well = ls_job_workers(e, j, engine_ended_well);

	ls_findings_clear_job(e, j,
		well < j->count || (int64_t)well < j->world ? LS_REASON_ATTEMPT_ENDED
							    : LS_REASON_JOB_ENDED,
		now_us);
	if (j->detect.judged > 0) {
		j->ended_needs = ls_warm_steps(j->detect.step_s) + LS_DETECT_SKIP;
		j->ended_judged = j->detect.ready ? j->ended_needs : j->detect.judged;
	}
	ls_reference_keep(e, j);
	ls_job_relearn(j);
}

void
ls_engine_end(struct ls_engine *e, uint32_t worker, unsigned how, int64_t now_us)
{
	struct ls_engine_worker *w = ls_engine_find_worker(e, worker);
	struct ls_job *j;

	if (w == NULL)
		return;
	j = &e->jobs[w->job];
	j->gone += !ls_worker_is_gone(w);
	w->state = how > LS_END_ENDED ? LS_WORKER_CRASHED : LS_WORKER_ENDED;
	w->how = how;
	w->seen_us = now_us;
	w->has_live = false;
	j->active_known = false;
	engine_close_ready(e, j, false, now_us);
	if (j->gone == j->count)
		engine_end_job(e, j, now_us);
}

void
ls_engine_live(struct ls_engine *e, uint32_t worker, const struct ls_ring_live *live,
	int64_t since_us, int64_t now_us)
{
	struct ls_engine_worker *w = ls_engine_find_worker(e, worker);

	if (w == NULL)
		return;
	if (ls_worker_is_gone(w)) /* another process, in its place */
		ls_roster_revive(e, &e->jobs[w->job], w, now_us);
	w->has_live = true;
	w->live = *live;
	w->live_since_us = since_us;
	w->seen_us = now_us;
	if (w->state == LS_WORKER_SILENT)
		w->state = LS_WORKER_REPORTING;
}

void
ls_engine_clock(struct ls_engine *e, uint32_t worker, double uncertainty_s)
{
	struct ls_engine_worker *w = ls_engine_find_worker(e, worker);

	if (w != NULL)
		w->clock_err_s = uncertainty_s;
}

int
ls_engine_counters(struct ls_engine *e, const char *host, uint32_t worker, int64_t t_us,
	size_t count, const uint16_t *metric, const double *value)
{
	struct ls_engine_worker *w = ls_engine_find_worker(e, worker);
	uint32_t index = 0;
	int rc = worker == LS_NO_WORKER ? ls_engine_host(e, host, t_us, &index)
		: w == NULL		? -LS_EUNKNOWN
					: 0;

	if (rc == 0 && w == NULL && t_us > e->hosts[index].seen_us)
		e->hosts[index].seen_us = t_us;
	if (rc == 0)
		rc = ls_counters_put(w != NULL ? &w->counters
					       : &e->hosts[index].counters,
			t_us, count, metric, value);
	if (rc == 0)
		e->stats.counters++;
	else
		e->stats.counters_ignored++;
	return rc;
}

void
ls_engine_silence(struct ls_engine *e, int64_t now_us)
{
	LS_EACH (struct ls_engine_worker, w, e->workers, e->worker_count)
		if (w->current && w->state == LS_WORKER_REPORTING &&
			now_us - w->seen_us > LS_ENGINE_US(LS_SILENT_S))
			w->state = LS_WORKER_SILENT;
}

void
ls_engine_advance(struct ls_engine *e, int64_t now_us)
{
	LS_JOBS (e, j)
		engine_close_ready(e, j, false, now_us);
	LS_JOBS (e, j)
		ls_hang_look(e, j, now_us);
	ls_engine_silence(e, now_us);
	LS_JOBS (e, j)
		if (j->world != j->world_least)
			ls_roster_world(e, j);
	ls_findings_expire(e, now_us);
	ls_roster_yield(e, now_us);
}

int
ls_engine_manual(struct ls_engine *e, const char *job, bool on)
{
	struct ls_job *j = ls_engine_find_job(e, job);

	if (j == NULL)
		return -LS_EUNKNOWN;
	j->manual = on;
	return 0;
}

void
ls_engine_restored(struct ls_engine *e, int64_t now_us)
{
	e->restored_us = now_us;
	LS_JOBS (e, j)
		if (j->names_wait)
			ls_reference_names(e, j, UINT64_MAX);
	LS_FINDINGS (e, f) {
		const struct ls_job *j = ls_engine_find_job(e, f->who.job);

		/* what is usual is learned again: until then it was measured before */
		if (ls_finding_is_open(f) && ls_finding_is_stored(f) &&
			(j == NULL || !j->detect.ready))
			ls_ignore(ls_findings_render(e, f));
	}
}

int
ls_engine_close_step(struct ls_engine *e, const char *job, int32_t attempt,
	uint64_t step, int64_t now_us)
{
	struct ls_job *j = ls_engine_find_job(e, job);
	struct ls_row *row;

	if (j == NULL || j->attempt != attempt)
		return -LS_EUNKNOWN;
	while ((row = ls_steps_oldest(&j->steps)) != NULL && row->step <= step)
		engine_close_oldest(e, j, now_us);
	return 0;
}

int
ls_engine_hang(struct ls_engine *e, const struct ls_engine_hang *seen)
{
	struct ls_job *j = ls_engine_find_job(e, seen->job);

	if (j == NULL || j->attempt != seen->attempt)
		return -LS_EUNKNOWN;
	if (seen->since_us > seen->t_us || seen->count > LS_CLOSE_MISSING_MAX ||
		(unsigned)seen->why >= LS_HANG_WHY_COUNT)
		return -LS_ERANGE;
	ls_hang_take(e, j, seen);
	return 0;
}

void
ls_engine_stats(const struct ls_engine *e, struct ls_engine_stats *ret_stats)
{
	*ret_stats = e->stats;
	ret_stats->findings_total = e->finding_count;
	LS_FINDINGS (e, f)
		ret_stats->findings_open += ls_finding_is_open(f);
}

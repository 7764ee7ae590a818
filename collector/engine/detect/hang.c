/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/hang.h"
#include "collector/engine/attribute/evidence.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <math.h>
#include <string.h>

/* What its newest live slot says of a worker. */
enum hang_place { HANG_UNKNOWN, HANG_BETWEEN, HANG_WAITS, HANG_MASKED, HANG_WORKS };

/* What the live slots of a job say together. */
struct hang_count {
	size_t expected; /* workers of the attempt, those that are gone too */
	size_t place[HANG_WORKS + 1];
	size_t crashed; /* whose process crashed or was killed */
	int64_t marked_us; /* newest mark of anybody */
	uint64_t step; /* least step of those in one */
};

static enum hang_place
hang_place_of(const struct ls_engine_worker *w, int64_t now_us)
{
	if (ls_worker_is_gone(w) || !w->has_live ||
		now_us - w->seen_us > LS_ENGINE_US(LS_SILENT_S) / 2)
		return HANG_UNKNOWN;
	return w->live.phase == LS_PHASE_COUNT ? HANG_BETWEEN
		: w->live.phase == LS_PHASE_SYNC_WAIT ||
			w->live.phase == LS_PHASE_COLLECTIVE
		? HANG_WAITS
		: (LS_PHASES_MASKED & 1u << w->live.phase) != 0 ? HANG_MASKED
								: HANG_WORKS;
}

static struct hang_count
hang_count(const struct ls_engine *e, const struct ls_job *j, int64_t now_us)
{
	struct hang_count c = {
		.expected = j->count, .marked_us = INT64_MIN, .step = UINT64_MAX
	};

	LS_WORKERS (e, j, w) {
		enum hang_place place = hang_place_of(w, now_us);

		if (ls_worker_has_left(j, w)) {
			c.expected--;
			continue;
		}
		c.place[place]++;
		c.crashed += w->state == LS_WORKER_CRASHED;
		if (w->has_live && w->live_since_us > c.marked_us)
			c.marked_us = w->live_since_us;
		if (place >= HANG_WAITS && w->live.step < c.step)
			c.step = w->live.step;
	}
	return c;
}

static double
hang_limit_s(const struct ls_job *j)
{
	return fmax(LS_HANG_MEDIANS * j->detect.step_s, LS_SILENT_S);
}

static bool
hang_stands_still(const struct ls_job *j, const struct hang_count *c, int64_t now_us)
{
	/* whom a dead process keeps waiting waits in vain, however long steps are */
	bool vain = c->crashed > 0 && c->place[HANG_WAITS] + c->crashed == c->expected;
	double limit_s = vain ? LS_SILENT_S : hang_limit_s(j);
	size_t fresh = c->expected - c->place[HANG_UNKNOWN];

	if (j->detect.judged < LS_LOOK || fresh == 0 || 2 * fresh < c->expected ||
		2 * (c->place[HANG_WAITS] + c->place[HANG_WORKS]) < fresh)
		return false;
	if (c->place[HANG_MASKED] > 0 &&
		now_us - c->marked_us < LS_ENGINE_US(LS_MASK_S))
		return false;
	return (double)(now_us - c->marked_us) * 1e-6 > limit_s;
}

/* Who is not in the barrier while others are; none if nobody waits, or too many are
 * not. */
static enum ls_hang_why
hang_absent(const struct ls_engine *e, const struct ls_job *j,
	const struct hang_count *c, int64_t now_us, int32_t ranks[LS_CLOSE_MISSING_MAX],
	size_t *ret_count)
{
	size_t absent = c->expected - c->place[HANG_WAITS], n = 0;
	enum ls_hang_why why = LS_HANG_COLLECTIVE;

	*ret_count = 0;
	if (c->place[HANG_WAITS] == 0 ||
		(absent > 1 && (double)absent > LS_QUARTER * (double)c->expected))
		return LS_HANG_UNKNOWN;
	LS_WORKERS (e, j, w) {
		if (n == LS_CLOSE_MISSING_MAX ||
			hang_place_of(w, now_us) == HANG_WAITS ||
			ls_worker_has_left(j, w))
			continue;
		why = ls_worker_is_gone(w)			   ? LS_HANG_GONE
			: hang_place_of(w, now_us) == HANG_UNKNOWN ? LS_HANG_SILENT
								   : LS_HANG_ABSENT;
		ranks[n++] = w->info.rank;
	}
	ls_job_sort((uint32_t *)ranks, n); /* from 0 on */
	*ret_count = n;
	return why;
}

/* How the processes of all that are named ended, if all did in one way. */
static enum ls_cause
hang_end_cause(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_hang *seen)
{
	static const enum ls_cause causes[LS_END_HOW_COUNT] = {
		[LS_END_UNKNOWN] = LS_CAUSE_PROCESS_GONE,
		[LS_END_ENDED] = LS_CAUSE_PROCESS_ENDED,
		[LS_END_CRASHED] = LS_CAUSE_PROCESS_GONE,
		[LS_END_FAILED] = LS_CAUSE_PROCESS_FAILED,
		[LS_END_MEMORY] = LS_CAUSE_PROCESS_MEMORY,
	};
	enum ls_cause all = LS_CAUSE_PROCESS_GONE;

	LS_EACH (const int32_t, rank, seen->ranks, seen->count) {
		const struct ls_engine_worker *w = ls_job_rank(e, j, *rank);
		enum ls_cause one = w != NULL && ls_worker_is_gone(w)
			? causes[w->how]
			: LS_CAUSE_PROCESS_GONE;

		if (rank > seen->ranks && one != all)
			return LS_CAUSE_PROCESS_GONE;
		all = one;
	}
	return all;
}

static enum ls_cause
hang_cause(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_hang *seen)
{
	static const enum ls_cause causes[LS_HANG_WHY_COUNT] = {
		[LS_HANG_ABSENT] = LS_CAUSE_NOT_ENTERED,
		[LS_HANG_SILENT] = LS_CAUSE_HOST_SILENT,
		[LS_HANG_COLLECTIVE] = LS_CAUSE_COLLECTIVE_HANG,
		[LS_HANG_UNKNOWN] = LS_CAUSE_UNEXPLAINED,
	};

	return seen->why == LS_HANG_GONE ? hang_end_cause(e, j, seen)
					 : causes[seen->why];
}

/* A finding about one worker, or about the job if it is not one. */
static struct ls_finding
hang_subject(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_engine_worker *w)
{
	struct ls_finding f = w == NULL ? ls_findings_of_job(e, j, LS_KIND_HANG)
					: ls_findings_of_worker(e, j, w);

	f.kind = LS_KIND_HANG;
	return f;
}

/* Costs: the whole standstill, once; a longer one takes the place of what was told of
 *        it before. */
static void
hang_cost(const struct ls_engine *e, const struct ls_job *j, struct ls_finding *f,
	double lost_s, double told_s)
{
	f->before_s = j->detect.step_s;
	ls_findings_price(e, j, f, f->before_s + lost_s, lost_s);
	f->chip_hours += (lost_s - told_s) * f->chips / 3600;
	f->severity = LS_SEVERITY_CRITICAL;
}

/* What was told of the standstill of this step already, of whomever, but for one; NULL: nothing, or by storage. */
static struct ls_finding *
hang_told(struct ls_engine *e, const struct ls_job *j, uint64_t step,
	const struct ls_finding *but, int64_t now_us)
{
	struct ls_finding *told = NULL; /* of several the newest */

	if (!j->hang.on || j->hang.step != step)
		return NULL;
	LS_FINDINGS (e, f)
		if (f != but && ls_finding_is_open(f) && f->kind == LS_KIND_HANG &&
			strcmp(f->who.job, j->name) == 0 && f->accounted_step == step &&
			!ls_findings_is_known(f, now_us))
			told = f;
	return told;
}

/* Opens the finding or brings it up to date; evidence and diagnosis come from `subject`. One standstill is one finding, about its first subject; a
 * worker replaces the job. */
static void
hang_tell(struct ls_engine *e, struct ls_job *j, const struct ls_finding *subject,
	uint64_t step, int64_t since_us, double lost_s, int64_t now_us)
{
	struct ls_finding *f = hang_told(e, j, step, NULL, now_us), *other;
	double told_s = f != NULL ? j->hang.lost_s : 0;

	if (f == NULL || (f->scope == LS_SCOPE_JOB && subject->scope != LS_SCOPE_JOB))
		f = ls_findings_claim(e, subject, step, since_us, 0, now_us);
	j->hang.on = true;
	j->hang.step = step;
	j->hang.lost_s = lost_s;
	if (f == NULL)
		return; /* storage has told it: what follows adds to that */
	f->detector = LS_DETECT_STALLS;
	ls_findings_present(e, j, f, step);
	f->accounted_step = step;
	f->steps_seen = 1;
	f->workers_used = (uint32_t)j->count - j->gone;
	if (ls_finding_same_subject(f, subject)) {
		f->diagnosis = subject->diagnosis;
		memcpy(f->evidence, subject->evidence, sizeof(f->evidence));
		f->evidence_count = subject->evidence_count;
	}
	hang_cost(e, j, f, lost_s, told_s);
	ls_findings_tell(e, f, now_us);
	while ((other = hang_told(e, j, step, f, now_us)) != NULL) {
		ls_findings_part_of(e, other, f, now_us);
		ls_findings_clear(e, other, step, now_us);
	}
}

void
ls_hang_take(struct ls_engine *e, struct ls_job *j, const struct ls_engine_hang *seen)
{
	double still_s = (double)(seen->t_us - seen->since_us) * 1e-6;
	const struct ls_engine_worker *w =
		seen->count == 1 ? ls_job_rank(e, j, seen->ranks[0]) : NULL;
	struct ls_finding f;

	j->hang.look_us = seen->t_us;
	if (j->detect.judged < LS_LOOK || !(j->detect.step_s > 0))
		return; /* stored, but of steps that were not read: there is no median to measure it by */
	f = hang_subject(e, j, w);
	ls_findings_row(&f, "standstill_s", "s", still_s, j->detect.step_s)->role =
		LS_EVIDENCE_SUPPORTS;
	f.diagnosis = ls_cause_alone(hang_cause(e, j, seen), 1);
	hang_tell(e, j, &f, seen->step, seen->since_us, still_s, seen->t_us);
}

void
ls_hang_look(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	struct hang_count c;
	int32_t ranks[LS_CLOSE_MISSING_MAX];
	struct ls_engine_hang seen = {
		.job = j->name, .attempt = j->attempt, .t_us = now_us, .ranks = ranks
	};
	double limit_s = j->gone > 0 ? LS_SILENT_S : hang_limit_s(j);

	/*
	 * While steps close, no worker is looked at. Nor at the moment of a closing: of events at one time, replay takes the standstill first.
	 */
	if (j->manual || now_us == j->closed_us || j->count == 0 ||
		now_us < j->hang.look_us + LS_ENGINE_US(LS_SILENT_S) ||
		(double)(now_us - j->last_us) * 1e-6 <= limit_s)
		return;
	c = hang_count(e, j, now_us);
	if (!hang_stands_still(j, &c, now_us))
		return;
	seen.step = c.step;
	/* no mark is older */
	seen.since_us = c.marked_us > j->first_us ? c.marked_us : j->first_us;
	seen.waiting = (uint32_t)c.place[HANG_WAITS];
	seen.why = hang_absent(e, j, &c, now_us, ranks, &seen.count);
	if (e->sink.hang != NULL)
		e->sink.hang(e->sink.arg, &seen);
	ls_hang_take(e, j, &seen);
}

/* The one whose own work held the others up; SIZE_MAX: nobody, or (*ret_late > 1)
 * several. */
static size_t
hang_row_culprit(const struct ls_live_row *r, size_t *ret_late)
{
	size_t slot = SIZE_MAX;

	*ret_late = 0;
	LS_CELLS (&r->row, c)
		/* own work without checkpoints, evaluations and compilations */
		if ((double)c->own_s - ls_steps_phases_s(c, LS_PHASES_MASKED) >=
			LS_HALF * r->totals.duration_s) {
			slot = (size_t)(c - r->row.cells);
			++*ret_late;
		}
	return *ret_late == 1 ? slot : SIZE_MAX;
}

bool
ls_hang_is_row(struct ls_job *j, const struct ls_live_row *r)
{
	double *own = j->room.a;
	double masked = 0;
	size_t n = 0;

	if (j->detect.judged < LS_LOOK || !(j->detect.step_s > 0) ||
		!(r->totals.duration_s >=
			fmax(LS_HANG_MEDIANS * j->detect.step_s, LS_LATE_S)))
		return false;
	LS_CELLS (&r->row, c) {
		own[n++] = (double)c->own_s;
		masked = fmax(masked, ls_steps_phases_s(c, LS_PHASES_MASKED));
	}
	/* What most do themselves is no hang, nor what one does that is known to take
	 * long. */
	return n >= 2 && masked < LS_HALF * r->totals.duration_s &&
		ls_stats_median(own, n) < LS_HALF * r->totals.duration_s;
}

void
ls_hang_judge_row(struct ls_engine *e, struct ls_job *j, const struct ls_live_row *r,
	int64_t now_us)
{
	double normal_s = j->detect.step_s, lost_s = r->totals.duration_s - normal_s;
	struct ls_detect_channel ch = { .ep = { .start_step = r->row.step,
						.last_step = r->row.step,
						.start_us = r->row.begin_us,
						.steps = 1,
						.excess_s = lost_s,
						.before_s = normal_s } };
	size_t late, slot = hang_row_culprit(r, &late);
	struct ls_gathered g;
	struct ls_finding f = hang_subject(e, j,
		slot == SIZE_MAX ? NULL : &e->workers[j->slots[slot]]);

	ls_evidence_gather(e, j,
		(struct ls_suspect){ slot == SIZE_MAX, slot == SIZE_MAX ? 0 : slot },
		&ch, now_us, &g);
	memcpy(f.evidence, g.rows, sizeof(f.evidence));
	f.evidence_count = g.count;
	if (slot == SIZE_MAX) {
		f.diagnosis = ls_cause_alone(
			late > 1 ? LS_CAUSE_UNEXPLAINED : LS_CAUSE_COLLECTIVE_HANG, 1);
	} else {
		ls_cause_diagnose(f.evidence, f.evidence_count, lost_s, g.counters_ripe,
			false, &f.diagnosis);
		if (f.diagnosis.hypotheses[0].cause == LS_CAUSE_UNEXPLAINED ||
			(f.diagnosis.hypotheses[0].cause == LS_CAUSE_STOPPED &&
				ls_evidence_ran(e, j, slot, r->row.begin_us, now_us)))
			f.diagnosis = ls_cause_alone(LS_CAUSE_NOT_ENTERED, 1);
	}
	hang_tell(e, j, &f, r->row.step, r->row.begin_us, lost_s, now_us);
}

void
ls_hang_relax(struct ls_engine *e, struct ls_job *j, uint64_t step, int64_t now_us)
{
	if (!j->hang.on || step < j->hang.step + LS_DETECT_CLEAR_STEPS)
		return;
	j->hang.on = false;
	LS_FINDINGS (e, f) {
		if (ls_finding_is_open(f) && f->kind == LS_KIND_HANG &&
			strcmp(f->who.job, j->name) == 0)
			ls_findings_clear(e, f, f->last_step, now_us);
	}
}

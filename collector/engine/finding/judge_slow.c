/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_slow.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_arbiter.h"
#include "proto/base/mem.h"

#include <math.h>

/* What is a worker's duty now and then, and no fault of it. */
#define JUDGE_SLOW_DUTY (1u << LS_PHASE_CHECKPOINT | 1u << LS_PHASE_EVAL)

/* Cell of a worker in the step that is `back` before the newest one; NULL if it is not
 * there. */
static const struct ls_cell *
judge_slow_cell(const struct ls_job *j, size_t slot, size_t back)
{
	const struct ls_live_row *newest = ls_job_row(j, j->live_count - 1), *r;

	if (back >= j->live_count)
		return NULL;
	r = ls_job_row(j, j->live_count - 1 - back);
	return r->row.step + back == newest->row.step ? ls_row_cell(r, slot) : NULL;
}

/* From leaving the barrier of one step to entering that of the next, on its own clock;
 * NaN: not marked. */
static double
judge_slow_turn(const struct ls_cell *before, const struct ls_cell *now)
{
	return before == NULL || now == NULL || !before->has_enter || !now->has_enter
		? NAN
		: (double)(now->enter_us - before->exit_us) * 1e-6;
}

/* What of a worker's lateness in the newest step is its own doing, in it or at the end
 * of the one before. */
static double
judge_slow_own(const struct ls_job *j, size_t slot)
{
	const struct ls_cell *now = judge_slow_cell(j, slot, 0),
			     *before = judge_slow_cell(j, slot, 1),
			     *first = judge_slow_cell(j, slot, 2);
	double own_s = j->residuals[slot].own_s - j->detect.worker[slot].base_own_s;
	double turn_s = judge_slow_turn(before, now) - judge_slow_turn(first, before);

	own_s = fmax(own_s, turn_s); /* a NaN is not taken */
	own_s -= ls_steps_phases_s(now, JUDGE_SLOW_DUTY);
	return before == NULL ? own_s
			      : own_s - ls_steps_phases_s(before, JUDGE_SLOW_DUTY);
}

static double
judge_slow_more(const struct ls_cell *now, const struct ls_cell *before, unsigned phase)
{
	return now == NULL || before == NULL || isnan(now->phase_s[phase])
		? 0
		: (double)now->phase_s[phase] - ls_steps_phases_s(before, 1u << phase);
}

/* Which phase grew most, in the step or in the one before; or that it was none. */
static void
judge_slow_grown(const struct ls_job *j, size_t slot, struct ls_rhythm_event *ev)
{
	const struct ls_cell *now = judge_slow_cell(j, slot, 0),
			     *before = judge_slow_cell(j, slot, 1),
			     *first = judge_slow_cell(j, slot, 2);
	double most = 0, excess = (double)ev->excess_s;

	ev->phase = LS_PHASE_COUNT;
	if (before == NULL || first == NULL)
		return; /* not known */
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++) {
		double more = fmax(judge_slow_more(now, before, p),
			judge_slow_more(before, first, p));

		if (p == LS_PHASE_SYNC_WAIT || p == LS_PHASE_COLLECTIVE ||
			p == LS_PHASE_OTHER || more <= most)
			continue;
		ev->phase = (enum ls_phase)p;
		most = more;
	}
	if (most < LS_HALF * excess) {
		ev->phase = LS_PHASE_COUNT;
		most = excess - most;
	}
	ev->phase_s = (float)fmin(most, excess);
}

/* The newest step as the rhythm sees it. */
static struct ls_rhythm_sample
judge_slow_sample(const struct ls_job *j)
{
	const struct ls_live_row *row = ls_job_row(j, j->live_count - 1);
	size_t slot = row->totals.costs;
	struct ls_rhythm_sample s = { .step_s = j->detect.step_s,
		.workers = row->totals.used,
		.event = { .step = row->row.step,
			.t_us = row->row.begin_us,
			.slot = (uint32_t)slot,
			.excess_s = NAN,
			.phase = LS_PHASE_COUNT } };

	if (slot >= j->count || judge_slow_cell(j, slot, 0) == NULL)
		return s;
	s.event.excess_s = (float)row->totals.costs_s;
	if (!j->detect.ready || j->detect.worker[slot].found != 0 ||
		j->detect.worker[slot].warm < LS_DETECT_WARM)
		return s;
	/* false for NaN */
	s.own = judge_slow_own(j, slot) >= LS_HALF * row->totals.costs_s;
	judge_slow_grown(j, slot, &s.event);
	return s;
}

/* The phase that most of the events were in: its row, and the cause if it names one.
 * excess_s: of an event. */
static void
judge_slow_diagnose(struct ls_finding *f, enum ls_phase phase, double ratio,
	double excess_s)
{
	const struct ls_cause_phase *of = ls_cause_phase(phase);
	struct ls_evidence *row;

	f->diagnosis = ls_cause_alone(LS_CAUSE_UNEXPLAINED, 1);
	if (of == NULL)
		return;
	row = ls_findings_row(f, of->metric, "s", ratio * excess_s, NAN);
	/* computing says that it is work, not why */
	if (ratio < LS_EXPLAINS || phase == LS_PHASE_COMPUTE)
		return;
	row->role = LS_EVIDENCE_SUPPORTS;
	f->diagnosis = ls_cause_alone(of->cause, ratio);
}

/* Opens the finding about a period of worker `slot`, or a rotation (SIZE_MAX), brings it up to date, or
 * ends it; unless another claim, or storage, tells it. */
static void
judge_slow_tell(struct ls_engine *e, struct ls_job *j, struct ls_rhythm_order *o,
	size_t slot, int64_t now_us)
{
	bool rotates = slot == SIZE_MAX;
	enum ls_detect_kind kind = rotates ? LS_DETECT_ROTATING : LS_DETECT_PERIODIC;
	struct ls_finding subject = rotates
		? ls_findings_of_job(e, j, LS_KIND_JOB_SLOW)
		: ls_findings_of_worker(e, j, &e->workers[j->slots[slot]]);
	struct ls_finding *f = ls_findings_open(e, &subject);
	uint64_t step = ls_job_row(j, j->live_count - 1)->row.step;
	double excess_s = rotates ? o->cost_s / o->events_ratio : o->excess_s;
	double blame_s = rotates ? o->cost_s : o->excess_s / o->steps;

	if (!o->on) {
		o->told = false;
		if (f != NULL && f->detector == kind && !ls_arbiter_holds(e, j, f))
			ls_findings_clear(e, f, step, now_us);
		return;
	}
	/* nothing new */
	if (o->last_step != step ||
		(rotates && f != NULL && o->told &&
			step < f->last_step + LS_FINDING_UPDATE_STEPS))
		return;
	f = ls_arbiter_is_of_other(e, j, slot, &subject, kind)
		? NULL
		: ls_findings_claim(e, &subject, o->first_step, o->first_us,
			  (uint32_t)fmin(rotates ? LS_RHYTHM_ROTATING / o->events_ratio
						 : o->steps,
				  1e6),
			  now_us);
	if (f == NULL)
		return;
	o->told = true;
	f->kind = rotates ? LS_KIND_JOB_SLOW : LS_KIND_PERIODIC;
	f->detector = kind;
	f->comm = false;
	f->evidence_count = 0;
	if (rotates) {
		ls_findings_row(f, "event_steps_ratio", "1", o->events_ratio, NAN);
		ls_findings_row(f, "event_workers", "1", (double)o->workers, NAN);
		ls_findings_row(f, "event_most_one_worker_ratio", "1", o->most_ratio,
			NAN);
	} else {
		f->period_steps = o->steps;
		f->period_s = o->in_time ? o->seconds : 0;
		f->slowest_ratio = 1 / o->steps;
		ls_findings_row(f, "period_steps", "1", o->steps, NAN);
		ls_findings_row(f, "period_s", "s", o->seconds, NAN);
		ls_findings_row(f, "events", "1", (double)o->events, NAN);
	}
	ls_findings_row(f, "event_excess_s", "s", excess_s, NAN);
	judge_slow_diagnose(f, o->phase, o->phase_ratio, excess_s);
	ls_findings_present(e, j, f, step);
	/* over so long a time the step time changes for other reasons */
	f->before_s = NAN;
	ls_findings_cost(e, j, f, j->detect.step_s + blame_s, blame_s, step);
	/* A rhythm of steps is made by the program, and what it does outside of all
	 * phases is a duty: nobody is to blame. */
	if (!rotates && !o->in_time && o->phase == LS_PHASE_COUNT &&
		o->phase_ratio >= LS_HALF)
		f->severity = LS_SEVERITY_INFO;
	ls_findings_tell(e, f, now_us);
}

void
ls_judge_slow(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	struct ls_rhythm_sample sample;

	if (j->live_count == 0)
		return; /* no memory for it */
	sample = judge_slow_sample(j);
	ls_rhythm_step(&j->rhythm, &sample);
	LS_EACH (struct ls_rhythm_order, p, j->rhythm.period, LS_RHYTHM_PERIODS)
		if (p->on || p->told)
			judge_slow_tell(e, j, p, p->slot, now_us);
	if (j->rhythm.rotating.on || j->rhythm.rotating.told)
		judge_slow_tell(e, j, &j->rhythm.rotating, SIZE_MAX, now_us);
}

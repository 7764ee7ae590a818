/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_job.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_arbiter.h"
#include "collector/engine/finding/judge_group.h"
#include "proto/base/mem.h"

#include <math.h>
#include <string.h>

/* Phases that are compared, in the order in which they are told. */
static const enum ls_phase judge_job_phases[] = { LS_PHASE_INPUT_WAIT, LS_PHASE_H2D,
	LS_PHASE_DISPATCH, LS_PHASE_COMPUTE, LS_PHASE_GC, LS_PHASE_SYNC_WAIT };

/* Does this worker take longer than the others, by a quarter of what steps have grown by? Of three or five, the middle of the others is halfway. */
static bool
judge_job_is_slow(const struct ls_job *j, const struct ls_live_row *row, size_t slot,
	double grown_s)
{
	const struct ls_detect_channel *ch =
		&j->detect.worker[slot].channel[LS_DETECT_CHRONIC];

	return ch->level != LS_LEVEL_QUIET && ls_row_cell(row, slot) != NULL &&
		ch->ep.excess_s >= LS_QUARTER * grown_s * (double)ch->ep.steps;
}

/*
 * If at least half of the workers, but not all, are slow: fills in how many, and their hosts. Returns the share of slow workers among the workers
 * without a finding; 1 if not so.
 */
static double
judge_job_slow_workers(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_live_row *row, struct ls_finding *f)
{
	uint32_t *slow = j->room.index, n = 0, found = 0;

	for (size_t i = 0; i < j->count; i++) {
		slow[i] = judge_job_is_slow(j, row, i, f->blame_s);
		n += slow[i];
		found += slow[i] != 0 && j->detect.worker[i].found != 0;
	}
	f->member_count = f->slow_workers = 0;
	if (n < 2 || 2 * n < f->workers_used || n >= f->workers_used || n == found)
		return 1;
	f->slow_workers = n;
	ls_judge_hosts_of(e, j, slow, 1, f);
	return (double)(n - found) / (double)(f->workers_used - found);
}

/*
 * Compares each phase with what it was before, and says which one explains the growth. share: how many of the workers take longer, as
 * a ratio, for a phase is a mean over all of them. whole: every worker reports, so nobody waits for one who is missing, and no worker began its steps late.
 */
static void
judge_job_diagnose(const struct ls_pulse *p, bool whole, double share,
	struct ls_finding *f)
{
	double grown = p->since.now.v[LS_PULSE_MEAN] - p->base.v[LS_PULSE_MEAN];
	double best = 0;

	f->evidence_count = 0;
	f->diagnosis = ls_cause_alone(LS_CAUSE_UNEXPLAINED, 1);
	LS_EACH (const enum ls_phase, phase, judge_job_phases,
		sizeof(judge_job_phases) / sizeof(judge_job_phases[0])) {
		const struct ls_cause_phase *of = ls_cause_phase(*phase);
		double now = p->since.now.v[LS_PULSE_PHASE + *phase],
		       was = p->base.v[LS_PULSE_PHASE + *phase], more = now - was;
		struct ls_evidence *row;

		if (now <= 0 && was <= 0)
			continue; /* nobody marks it */
		row = ls_findings_row(f, of->metric, "s", now, was);
		/* the least wait: the others also wait for their peers, not only for the collective */
		if (*phase == LS_PHASE_SYNC_WAIT &&
			!isnan(p->since.now.v[LS_PULSE_LEAST]))
			more = p->since.now.v[LS_PULSE_LEAST] -
				p->base.v[LS_PULSE_LEAST];
		else if (*phase != LS_PHASE_SYNC_WAIT)
			more /= share;
		if (more < LS_EXPLAINS * grown ||
			(*phase == LS_PHASE_SYNC_WAIT && !whole))
			continue;
		row->role = LS_EVIDENCE_SUPPORTS;
		if (more / grown > best) {
			best = more / grown;
			f->diagnosis = ls_cause_alone(of->cause, best);
		}
	}
}

/* Does own work follow the work done (or the fullest expert's load), which differs, over
 * the newest steps? Then each step waits for whoever has most of it. */
static bool
judge_job_follows(const struct ls_job *j, bool load)
{
	struct ls_stats_line l = { 0 };
	size_t rows = j->live_count < LS_DETECT_WARM ? j->live_count : LS_DETECT_WARM;
	size_t stride = (j->count + LS_PULSE_WORKERS - 1) / LS_PULSE_WORKERS;

	for (size_t i = j->live_count - rows; i < j->live_count; i++) {
		for (size_t s = 0; s < j->count; s += stride) {
			const struct ls_cell *c = ls_row_cell(ls_job_row(j, i), s);
			double x = c == NULL ? NAN : (double)(load ? c->load : c->work);

			if (!isnan(x))
				ls_stats_line_add(&l, x, (double)c->own_s);
		}
	}
	l = ls_stats_line_about_mean(&l);
	return l.n > 1 && l.xx > 0 && l.yy > 0 &&
		sqrt(l.xx / l.n) / (l.x / l.n) >= LS_VISIBLE &&
		l.xy / sqrt(l.xx * l.yy) >= sqrt(LS_MOST);
}

/* Brings its numbers up to date; what earlier steps cost is kept. */
static void
judge_job_refresh(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_live_row *row, struct ls_finding *f)
{
	const struct ls_pulse *p = &j->pulse;
	uint64_t step = row->row.step;
	/* a mean since the onset says too little of what still grows, and too much of what somebody explains who was found later */
	bool newest = ls_pulse_slope(p) > 0 || j->detect.open > 0;
	const double *now = newest ? p->since.newest.v : p->since.now.v;
	double share;

	f->kind = LS_KIND_JOB_SLOW;
	f->comm = false;
	f->detector = LS_DETECT_CHRONIC;
	f->before_s = p->since.was_s;
	f->slope_s = ls_pulse_slope(p);
	/* how it began does not change when it grows no more */
	f->gradual |= f->slope_s > 0;
	ls_findings_present(e, j, f, step);
	ls_findings_cost(e, j, f, now[LS_PULSE_WHOLE],
		now[LS_PULSE_MEAN] - p->base.v[LS_PULSE_MEAN], step);
	share = judge_job_slow_workers(e, j, row, f);
	judge_job_diagnose(p,
		f->workers_used == f->workers && f->workers >= (uint32_t)j->world &&
			!ls_job_is_assumed(e, j),
		share, f);
	ls_findings_row(f, "step_excess_s", "s",
		p->since.newest.v[LS_PULSE_MEAN] - p->base.v[LS_PULSE_MEAN], NAN);
	if (f->slope_s > 0)
		ls_findings_row(f, "step_slope_s", "s", f->slope_s, NAN);
	if (judge_job_follows(j, false) || judge_job_follows(j, true)) {
		f->kind = LS_KIND_IMBALANCE;
		f->diagnosis = ls_cause_alone(LS_CAUSE_IMBALANCE, 1);
	}
}

/* The job's open finding, if this file may change it. A rotation that is on says more, and keeps it. */
static struct ls_finding *
judge_job_finding(struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *subject, int64_t now_us)
{
	struct ls_finding *f = ls_findings_open(e, subject);

	if (f == NULL || (f->detector == LS_DETECT_ROTATING && j->rhythm.rotating.on) ||
		(f->kind != LS_KIND_JOB_SLOW && f->kind != LS_KIND_IMBALANCE) ||
		ls_findings_is_known(f, now_us))
		return NULL;
	return f;
}

/* It is on: opens the finding, or brings it up to date. */
static void
judge_job_tell(struct ls_engine *e, struct ls_job *j, bool was,
	const struct ls_live_row *row, int64_t now_us)
{
	struct ls_finding subject = ls_findings_of_job(e, j, LS_KIND_JOB_SLOW),
			  *f = judge_job_finding(e, j, &subject, now_us);

	if (was ? f == NULL || row->row.step < f->last_step + LS_FINDING_UPDATE_STEPS
		: ls_findings_open(e, &subject) != NULL)
		return;
	f = ls_findings_claim(e, &subject, j->pulse.since.step, j->pulse.since.t_us,
		j->pulse.since.uncertainty_steps, now_us);
	if (f == NULL)
		return;
	judge_job_refresh(e, j, row, f);
	ls_findings_tell(e, f, now_us);
}

/* Who explains that all steps take longer: the newest finding about less than the job. */
static const struct ls_finding *
judge_job_culprit(const struct ls_engine *e, const struct ls_job *j)
{
	const struct ls_finding *newest = NULL;

	LS_FINDINGS (e, f)
		if (ls_finding_is_open(f) && f->scope != LS_SCOPE_JOB &&
			(f->kind == LS_KIND_STRAGGLER || f->kind == LS_KIND_LINK ||
				f->kind == LS_KIND_IMBALANCE) &&
			strcmp(f->who.job, j->name) == 0)
			newest = f;
	return newest;
}

static void
judge_job_end(struct ls_engine *e, struct ls_job *j, const struct ls_finding *culprit,
	uint64_t step, int64_t now_us)
{
	struct ls_finding subject = ls_findings_of_job(e, j, LS_KIND_JOB_SLOW),
			  *f = judge_job_finding(e, j, &subject, now_us);

	ls_pulse_end(&j->pulse);
	if (f == NULL || ls_arbiter_holds(e, j, f))
		return;
	if (culprit != NULL)
		ls_findings_part_of(e, f, culprit, now_us);
	ls_findings_clear(e, f, step, now_us);
}

/* Is anything found that is no worker? */
static bool
judge_job_joined(const struct ls_job *j)
{
	if (j->detect.open == 0)
		return false;
	LS_EACH (const struct ls_detect_net, net, j->detect.net, j->detect.net_count)
		if (ls_detect_found(net->channel) != 0)
			return true;
	LS_EACH (const struct ls_stage, stage, j->compare.stage, j->compare.count)
		if (stage->channel.level == LS_LEVEL_FINDING)
			return true;
	return false;
}

void
ls_judge_job(struct ls_engine *e, struct ls_job *j, const struct ls_live_row *row,
	int64_t now_us)
{
	struct ls_pulse *p = &j->pulse;
	bool was = p->on, joined = judge_job_joined(j);

	/* until a compilation does not make the median; where four last for a minute, each is dear */
	if (j->detect.judged <= LS_DETECT_SKIP *
			(LS_SCALES_DATUM * row->totals.duration_s >=
						LS_SCALES_PATIENCE_S
					? 1
					: 2))
		return;
	/* the collective or the stage has a finding of its own, which says more */
	if (joined && p->since.steps > 0) {
		judge_job_end(e, j, judge_job_culprit(e, j), row->row.step, now_us);
		return;
	}
	if (!ls_pulse_step(p, &row->row, &row->totals, &j->detect, e->patience_s,
		    joined))
		return;
	if (p->on && !was && j->detect.open == 0 && judge_job_culprit(e, j) != NULL)
		ls_pulse_end(p); /* whose slowness comes and goes */
	if (p->on && p->since.gone > 0)
		return; /* it says nothing now */
	if (p->on)
		judge_job_tell(e, j, was, row, now_us);
	else if (was)
		judge_job_end(e, j, p->explained ? judge_job_culprit(e, j) : NULL,
			row->row.step, now_us);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_life.h"
#include "collector/engine/attribute/evidence.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_arbiter.h"
#include "collector/engine/finding/judge_group.h"
#include "collector/engine/residual/stats.h"

#include <math.h>
#include <string.h>

/* rotations that are waited for after a restart: half as many events take twice the steps */
#define JUDGE_LIFE_ROTATION_ROUNDS (1 / LS_HALF)

/* What the members of a slice, rack or shard take longer than the others, by their baselines and by what they are
 * suspected of; NaN: not known. */
static double
judge_life_members_s(const struct ls_job *j, const struct ls_finding *f)
{
	size_t members = 0, others = 0;

	for (size_t i = 0; i < j->count; i++) {
		double own_s =
			j->detect.worker[i].base_own_s + ls_judge_group_excess(j, i);

		if (j->detect.worker[i].warm < LS_DETECT_WARM || isnan(own_s))
			continue;
		if (ls_judge_group_has(j, f, i))
			j->room.a[members++] = own_s;
		else
			j->room.b[others++] = own_s;
	}
	return ls_stats_median(j->room.a, members) - ls_stats_median(j->room.b, others);
}

/*
 * How much of the slowdown that a finding reported before a restart still exists, as a ratio;
 * NaN: not measured (yet). The steps from before its onset may be gone, and then no detector
 * can see it, so it is compared with what was reported. A worker: its own work against its
 * peers, beyond what was usual in earlier attempts. A group: that of its members against the others. All else:
 * the step time. What comes in single steps only is missed for certain after LS_DETECT_STALL_FINDING pauses: one
 * is so long by chance as rarely as stalls are found by chance, and a period is found in fewer. A rotation
 * reported the steps that all its events take: if half of them still come, they take twice as many.
 */
static double
judge_life_share(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_finding *f, int64_t now_us)
{
	const struct ls_engine_worker *w = ls_job_worker(e, j, &f->who);
	const struct ls_detect_worker *d =
		w == NULL ? NULL : &j->detect.worker[w->slot];
	size_t rows =
		j->live_count < LS_DETECT_BEFORE ? j->live_count : LS_DETECT_BEFORE;
	double share = NAN, usual_s, told_s = f->told_own_s;
	struct ls_gathered g;

	if (f->diagnosis.count > 0) /* told by this engine */
		return 0;
	if (f->detector >= LS_DETECT_STALLS &&
		((d != NULL && ls_detect_stalls(d)) ||
			(double)j->detect.judged < LS_DETECT_WARM +
					(f->detector == LS_DETECT_ROTATING
							? JUDGE_LIFE_ROTATION_ROUNDS
							: LS_DETECT_STALL_FINDING) *
						f->uncertainty_steps))
		return NAN;
	if (ls_finding_waits(f) && (rows == 0 || j->kept - f->first_row < rows))
		return NAN; /* some of what evidence looks at is of the attempt before */
	if (!f->comm && f->scope >= LS_SCOPE_SLICE && f->way != LS_WAY_STAGE &&
		told_s > 0)
		return judge_life_members_s(j, f) / told_s;
	if (f->comm || (f->scope != LS_SCOPE_HOST && f->scope != LS_SCOPE_RANK))
		return f->blame_s > 0 ? (j->detect.step_s - f->without_s) / f->blame_s
				      : 0;
	if (d == NULL || !(told_s > 0))
		return 0;
	/* slow by nature is as before */
	usual_s =
		fmin(fmax(ls_scales_carried(&j->scales, w->slot), 0) * j->detect.step_s,
			LS_HALF * told_s);
	ls_evidence_gather(e, j, (struct ls_suspect){ .at = w->slot },
		&(struct ls_detect_channel){ 0 }, now_us, &g); /* the newest steps */
	LS_EACH (const struct ls_evidence, row, g.rows, g.count)
		if (row->signal == LS_SIGNAL_OWN)
			share = (row->subject - row->p50 - usual_s) /
				(told_s - usual_s);
	return share;
}

/* One that waits is about its host, whatever rank that has in the next attempt. */
static bool
judge_life_follows(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, const struct ls_engine_worker *w)
{
	struct ls_finding is;

	if (!ls_finding_waits(f) || f->scope != LS_SCOPE_HOST ||
		strcmp(w->info.host, f->who.host) != 0)
		return false;
	is = ls_findings_of_worker(e, j, w);
	if (ls_findings_last(e, &is) != NULL)
		return false;
	f->who = is.who;
	return true;
}

/* Has it lost its worker, or all of its group? */
static bool
judge_life_is_lost(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f)
{
	bool one = f->scope == LS_SCOPE_HOST || f->scope == LS_SCOPE_RANK;

	if (one ? ls_job_worker(e, j, &f->who) != NULL
		: f->comm || f->scope < LS_SCOPE_SLICE || f->way == LS_WAY_STAGE)
		return false;
	LS_WORKERS (e, j, w)
		if (one ? judge_life_follows(e, j, f, w)
			: ls_judge_group_has(j, f, w->slot))
			return false;
	return true;
}

/* What still holds by half goes on, and so does its cost. */
static void
judge_life_look(struct ls_engine *e, const struct ls_job *j, struct ls_finding *f,
	uint64_t step, int64_t now_us)
{
	const struct ls_engine_worker *w = ls_job_worker(e, j, &f->who);
	double share = judge_life_share(e, j, f, now_us), chips = ls_job_chips(e, j);
	size_t rows = (size_t)(j->kept - f->first_row);

	/* scales says when it is over: noise errs as seldom as in naming */
	if (share < LS_HALF && w != NULL && j->scales.named[w->slot] != 0)
		share = NAN;
	if (share < LS_HALF) {
		ls_findings_clear(e, f, step, now_us);
		return;
	}
	if (isnan(share) && ls_finding_waits(f))
		return;
	if (j->replica.on && w != NULL) { /* steps and chips are its own */
		step = ls_replica_step(j, w->slot);
		chips = w->info.chips;
	}
	if (ls_finding_waits(f)) {
		if (j->replica.on)
			f->accounted_step = step;
		f->replica = j->replica.on;
		rows = rows < j->live_count ? rows : j->live_count;
		ls_findings_go_on(f, f->accounted_step + 1,
			ls_job_row(j, j->live_count - rows)->row.begin_us, now_us);
	}
	if (share >= LS_HALF) {
		ls_findings_account(f, fmin(share, 1) * f->blame_s, chips, step);
		f->last_step = f->accounted_step;
	}
	ls_findings_tell(e, f, now_us);
}

void
ls_judge_life(struct ls_engine *e, struct ls_job *j, uint64_t step, int64_t now_us)
{
	uint64_t judged = j->detect.judged;
	bool known =
		judged >= 2 * LS_DETECT_WARM && judged % LS_FINDING_UPDATE_STEPS == 0;

	/* all workers are there: who is not has moved */
	bool all = j->world > 0 && j->count >= (size_t)j->world && judged == LS_LOOK;

	/* once more before detectors can find who has another rank now */
	if (!known && !all && judged != LS_DETECT_WARM)
		return;
	LS_FINDINGS (e, f) {
		if (!ls_finding_is_open(f) || strcmp(f->who.job, j->name) != 0 ||
			ls_findings_is_known(f, now_us) || ls_arbiter_holds(e, j, f))
			continue;
		if (judge_life_is_lost(e, j, f)) {
			if (!known && !all)
				continue;
			f->reason = LS_REASON_MOVED;
			ls_findings_clear(e, f, step, now_us);
		} else if (known) {
			judge_life_look(e, j, f, step, now_us);
		}
	}
}

/* Steps without a record before a row; of a replica, its own, which another process counts anew. */
static void
judge_life_skip(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row, uint64_t due, struct ls_finding *f)
{
	const struct ls_engine_worker *w =
		f->replica ? ls_job_worker(e, j, &f->who) : NULL;

	uint64_t own, last;

	if (f->replica != j->replica.on)
		return;
	if (!f->replica)
		return ls_findings_skip(f, due, row->step);
	if (w == NULL || !ls_row_has(row, w->slot))
		return;
	own = row->cells[w->slot].own_step;
	last = ls_replica_step(j, w->slot);
	if (own < last)
		f->accounted_step = own > 0 ? own - 1 : 0;
	else if (row->step > due)
		ls_findings_skip(f, last + 1, own);
}

void
ls_judge_life_row(struct ls_engine *e, const struct ls_job *j, const struct ls_row *row)
{
	uint64_t due = j->live_count > 0 ? ls_job_due(j, j->live_count) : 1;
	bool first = j->detect.judged == 0;

	if (!first && !j->replica.on && row->step <= due)
		return;
	LS_FINDINGS (e, f) {
		if (strcmp(f->who.job, j->name) != 0)
			continue;
		if (first && ls_finding_waits(f)) {
			f->accounted_step = row->step > 0 ? row->step - 1 : 0;
			f->first_row = j->kept;
		} else {
			judge_life_skip(e, j, row, due, f);
		}
	}
}

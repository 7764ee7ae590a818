/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_stage.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_group.h"

#include <math.h>
#include <string.h>

static struct ls_finding
judge_stage_subject(const struct ls_engine *e, const struct ls_job *j, size_t k)
{
	struct ls_finding f = ls_findings_of_job(e, j, LS_KIND_STRAGGLER);

	f.scope = LS_SCOPE_GROUP;
	f.way = LS_WAY_STAGE;
	memcpy(f.group, j->stages.names[k], sizeof(f.group));
	return f;
}

/* Own work and work done, beside what they were before. */
static void
judge_stage_diagnose(const struct ls_stage *st, struct ls_finding *f)
{
	bool more = ls_stage_is_imbalance(st);
	double n = (double)st->channel.ep.steps;

	f->evidence_count = 0;
	ls_findings_row(f, LS_EVIDENCE_OWN_WORK, "s",
		st->usual.base + st->channel.ep.excess_s / n, st->usual.base);
	ls_findings_row(f, "work", "1", st->usual_work.base * (1 + st->work_sum / n),
		st->usual_work.base)
		->role = more		     ? LS_EVIDENCE_SUPPORTS
		: isnan(st->usual_work.base) ? LS_EVIDENCE_NOT_MEASURED
					     : LS_EVIDENCE_CONTEXT;
	f->diagnosis =
		ls_cause_alone(more ? LS_CAUSE_IMBALANCE : LS_CAUSE_UNEXPLAINED, 1);
	f->kind = more ? LS_KIND_IMBALANCE : LS_KIND_STRAGGLER;
}

/* Brings its numbers up to date; what earlier steps cost is kept. */
static void
judge_stage_refresh(const struct ls_engine *e, const struct ls_job *j,
	struct ls_finding *f, size_t k, uint64_t step)
{
	const struct ls_stage *st = &j->compare.stage[k];
	const struct ls_episode *ep = &st->channel.ep;
	double step_s = j->detect.step_s;

	f->detector = LS_DETECT_CHRONIC;
	f->before_s = ep->before_s;
	ls_findings_present(e, j, f, step);
	/* less than its excess where another stage was as slow before */
	ls_findings_cost(e, j, f, step_s,
		fmin(ep->excess_s / (double)ep->steps, fmax(step_s - ep->before_s, 0)),
		step);
	ls_judge_hosts_of(e, j, j->stages.of, (uint32_t)k, f);
	judge_stage_diagnose(st, f);
}

/* Opens the finding, brings it up to date, or ends it. */
static void
judge_stage_tell(struct ls_engine *e, struct ls_job *j, size_t k, bool was,
	uint64_t step, int64_t now_us)
{
	const struct ls_detect_channel *ch = &j->compare.stage[k].channel;
	struct ls_finding subject = judge_stage_subject(e, j, k),
			  *f = ls_findings_open(e, &subject);

	if (ch->level != LS_LEVEL_FINDING) {
		if (f != NULL)
			ls_findings_clear(e, f, step, now_us);
		return;
	}
	if (f == NULL ? was
		      : ch->c < LS_DETECT_FINDING ||
				!ls_findings_is_due(f, step, now_us))
		return;
	/* as surely as a worker's chronic shift */
	f = ls_findings_claim(e, &subject, ch->ep.start_step, ch->ep.start_us,
		LS_ONSET_ERROR, now_us);
	if (f == NULL)
		return;
	judge_stage_refresh(e, j, f, k, step);
	ls_findings_tell(e, f, now_us);
}

void
ls_judge_stages(struct ls_engine *e, struct ls_job *j, const struct ls_row *row,
	int64_t now_us)
{
	struct ls_stages *s = &j->compare;
	bool was[LS_STAGES_MAX];

	for (size_t k = 0; k < s->count; k++)
		was[k] = s->stage[k].channel.level == LS_LEVEL_FINDING;
	ls_stages_step(s, &j->detect, row->step, row->begin_us, row->cells,
		row->cell_count);
	for (size_t k = 0; k < s->count; k++)
		if (was[k] || s->stage[k].channel.level == LS_LEVEL_FINDING)
			judge_stage_tell(e, j, k, was[k], row->step, now_us);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge - the part of the engine that turns a closed step into verdicts: blame, detect,
 * then the findings that open, change and clear. (Interface: engine_state.h.)
 */
#include "config.h"
#include "collector/engine/engine_state.h"
#include "collector/engine/attribute/evidence.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/detect/hang.h"
#include "collector/engine/finding/judge_arbiter.h"
#include "collector/engine/finding/judge_clock.h"
#include "collector/engine/finding/judge_group.h"
#include "collector/engine/finding/judge_identity.h"
#include "collector/engine/finding/judge_job.h"
#include "collector/engine/finding/judge_life.h"
#include "collector/engine/finding/judge_net.h"
#include "collector/engine/finding/judge_slow.h"
#include "collector/engine/finding/judge_stage.h"
#include "collector/engine/detect/reference.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Keeps a closed row; the oldest one makes room. */
static void
judge_keep(struct ls_job *j, struct ls_live_row *kept)
{
	if (j->live == NULL) /* what is not used yet takes no memory */
		j->live = calloc(LS_LIVE_STEPS, sizeof(*j->live));
	if (j->live == NULL) {
		ls_steps_give_back(&j->steps, &kept->row);
		return;
	}
	if (j->live_count == LS_LIVE_STEPS)
		(void)ls_job_forget(j);
	j->live[j->live_head] = *kept;
	j->live_head = (j->live_head + 1) % LS_LIVE_STEPS;
	j->live_count++;
	j->kept++;
	ls_recent_add(j);
}

/* It checkpoints, evaluates or compiles. A step in which most workers do so is not judged. */
static bool
judge_is_masked(const struct ls_cell *c)
{
	return ls_steps_phases_s(c, LS_PHASES_MASKED) > LS_FEW * (double)c->duration_s;
}

/* Writes the judgement into the cells: the residual in use, and what of it is blame. Returns the
 * most of it; NaN without a baseline: the row then says nothing of cost. */
static double
judge_note_cells(const struct ls_job *j, struct ls_row *row)
{
	double most = 0;

	LS_CELLS (row, c) {
		size_t i = (size_t)(c - row->cells);
		const struct ls_detect_worker *w = &j->detect.worker[i];

		c->late_s = (float)j->residuals[i].late_s;
		if (w->warm == LS_DETECT_WARM && j->detect.ready) {
			double beyond_s = (j->detect.mode == LS_MODE_LATENESS
							  ? j->residuals[i].late_s
							  : j->residuals[i].wait_s) -
				w->base_s;

			c->blame_s = isnan(beyond_s) ? NAN : (float)fmax(beyond_s, 0);
			c->under_s = (float)fmin(beyond_s, 0); /* NaN: 0 */
			if (beyond_s > most)
				most = beyond_s;
		}
	}
	return j->detect.ready ? most : NAN;
}

/* Of whom a detector speaks, as a finding with nothing but its subject. */
static struct ls_finding
judge_subject(const struct ls_engine *e, const struct ls_job *j, struct ls_suspect who)
{
	return who.net ? ls_judge_net_subject(e, j, who.at)
		       : ls_judge_group_subject(e, j, who.at);
}

/*
 * What it costs: blame a step, counterfactual, S, chips; earlier steps' cost is kept.
 * Of what comes and goes the newest steps tell less than all of them: where they differ
 * by chance only, all of them count.
 */
static void
judge_cost(const struct ls_engine *e, const struct ls_job *j, struct ls_finding *f,
	struct ls_suspect who, const struct ls_episode *ep, const struct ls_gathered *g,
	uint64_t step)
{
	/* NaN: not known; of one slow from the start, too */
	double before_s = f->born ? NAN : ep->before_s;
	double after_s = who.net ? NAN
		: f->born	 ? g->cost_s
			  : ls_evidence_cost_after(e, j, who, f->accounted_step, step);
	double blame_s = g->cost_s, mean_s;

	f->before_s = before_s;
	f->step_s = g->step_s;
	/* Told before a restart and found again: the steps until the baseline was learned cost what
	 * was told. */
	if (ls_finding_is_stored(f) &&
		j->detect.judged < step - f->accounted_step + LS_DETECT_WARM)
		after_s = f->blame_s;
	if (!isnan(after_s))
		ls_findings_account(f, after_s, ls_job_chips(e, j), step);
	/* twice the steps looked at: ends of an episode, perhaps none of it, then weigh little */
	mean_s = LS_HALF * f->cost_steps >= (double)g->steps
		? f->cost_sum_s / f->cost_steps
		: NAN;
	if (fabs(blame_s - mean_s) < LS_SIGMAS * g->cost_error_s) {
		f->step_s += mean_s - blame_s;
		blame_s = mean_s;
	}
	ls_findings_cost(e, j, f, f->step_s, blame_s, step);
}

/* Brings a finding up to date with its channel and the live window. */
static void
judge_refresh(const struct ls_engine *e, const struct ls_job *j, struct ls_finding *f,
	struct ls_suspect who, const struct ls_detect_channel *ch, uint64_t step,
	int64_t now_us)
{
	bool worker = ls_suspect_slot(j, who) != SIZE_MAX;
	struct ls_gathered g;

	ls_evidence_gather(e, j, who, ch, now_us, &g);
	ls_findings_present(e, j, f, step);
	f->slowest_ratio = g.slowest_ratio;
	f->clock_err_s = g.clock_err_s;
	if (!who.net)
		ls_judge_group_members(e, j, who.at, f);
	step = !g.ended		? step
		: j->replica.on ? ls_replica_step_in(j, who.at, g.last_step)
				: g.last_step;
	if (j->replica.on)
		ls_replica_cost(e, j, who.at, &g, f, step);
	else
		judge_cost(e, j, f, who, &ch->ep, &g, step);
	f->intermittent = !g.steady;
	f->comm = who.net;
	f->replica = j->replica.on;
	f->slope_s = 0;
	if (worker && g.ended && f->counters_ripe)
		return; /* it may be over, and counters of its time are forgotten: what was seen of it then stays */
	if (worker && ls_finding_is_stored(f) && !g.counters_ripe &&
		(j->manual || ls_engine_restarted(e, now_us, LS_COUNTERS_S)))
		return; /* counters are not known again: what was reported stays */
	memcpy(f->evidence, g.rows, sizeof(f->evidence));
	f->evidence_count = g.count;
	if (!worker) {
		/* what was seen stays: counters are forgotten after a minute */
		bool link = f->kind == LS_KIND_LINK ||
			ls_judge_net_is_link(e, j, who, ch, now_us);

		f->kind = link ? LS_KIND_LINK : LS_KIND_JOB_SLOW;
		/* a worker that begins late makes the others wait in the same way */
		f->diagnosis =
			ls_cause_alone(ls_job_is_assumed(e, j) ? LS_CAUSE_UNEXPLAINED
					: link		       ? LS_CAUSE_COMMUNICATION
					       : LS_CAUSE_INSIDE_PROGRAM,
				1);
		return;
	}
	f->counters_ripe = g.counters_ripe;
	ls_cause_diagnose(f->evidence, f->evidence_count, g.gap_s, g.counters_ripe,
		g.steady, &f->diagnosis);
	f->kind = f->diagnosis.hypotheses[0].cause == LS_CAUSE_IMBALANCE
		? LS_KIND_IMBALANCE
		: LS_KIND_STRAGGLER;
}

/* Within how many steps the onset is known (params.def says why). */
static uint32_t
judge_uncertainty(enum ls_detect_kind kind, const struct ls_episode *ep)
{
	if (kind == LS_DETECT_STALLS) /* between two of them */
		return (uint32_t)fmin(fmax(ep->gap_mean, 1), 1e6);
	return ep->lasted > 0		  ? (uint32_t)fmin((double)ep->lasted / 2, 1e6)
		: kind == LS_DETECT_FAINT ? LS_BLOCK
					  : LS_ONSET_ERROR;
}

/* When an episode began. */
static int64_t
judge_since_us(const struct ls_job *j, const struct ls_episode *ep)
{
	return ep->start_us - (int64_t)((double)ep->lasted * j->detect.step_s * 1e6);
}

/* It looked like a step and was the beginning of a drift: moves the onset, once, if the steps since then are still kept, and
 * counts their cost again. */
static void
judge_bend(const struct ls_engine *e, const struct ls_job *j, struct ls_finding *f,
	struct ls_suspect who, const struct ls_episode *ep, uint64_t step)
{
	uint64_t since = ep->start_step - ep->lasted;

	if (!ep->gradual || f->gradual || f->born || f->known_us != 0 ||
		since > f->onset_step || /* it was found for something else first */
		f->episodes > 0 || j->detect.worker[who.at].way != LS_WAY_NONE ||
		isnan(ls_evidence_cost_after(e, j, who, since - 1, step)))
		return;
	f->chip_hours = 0;
	ls_findings_begin(e, f, since, judge_since_us(j, ep),
		judge_uncertainty(LS_DETECT_CHRONIC, ep));
	f->gradual = true;
}

static void
judge_open(struct ls_engine *e, struct ls_job *j, struct ls_suspect who,
	enum ls_detect_kind kind, uint64_t step, int64_t now_us)
{
	const struct ls_detect_channel *ch = &ls_suspect_channels(j, who)[kind];
	struct ls_finding subject = judge_subject(e, j, who);
	struct ls_finding *f = ls_findings_last(e, &subject);
	bool fresh = f == NULL || !ls_finding_is_open(f) || ls_finding_waits(f);

	if ((f != NULL && ls_findings_is_known(f, now_us)) ||
		ls_arbiter_is_of_net(j, who) ||
		(!fresh && ls_arbiter_is_of_earlier(j, who, f, kind)))
		return;
	f = ls_findings_claim(e, &subject,
		j->replica.on ? ls_replica_step_in(j, who.at, ch->ep.start_step)
			      : ch->ep.start_step - ch->ep.lasted,
		judge_since_us(j, &ch->ep), judge_uncertainty(kind, &ch->ep), now_us);
	if (f == NULL)
		return;
	if (fresh) {
		f->counters_ripe = false;
		f->kind = subject.kind;
		f->gradual = ch->ep.gradual;
		/* along a line from nothing: where its steps are not kept, it has cost half of what it costs now */
		if (f->gradual &&
			isnan(ls_evidence_cost_after(e, j, who, f->accounted_step,
				step)))
			f->accounted_step += (step - f->accounted_step) / 2;
		/* what it was like before was learned then */
		f->born = !f->gradual &&
			ch->ep.start_step - ch->ep.lasted <= LS_DETECT_SKIP +
					ls_warm_steps(j->detect.step_s) +
					(who.net ? 0
						 : j->detect.worker[who.at].first_step);
	}
	f->detector = kind;
	judge_refresh(e, j, f, who, ch, step, now_us);
	ls_findings_tell(e, f, now_us);
	if (!who.net)
		ls_judge_group_adopt(e, j, who.at, f, now_us);
}

static void
judge_update(struct ls_engine *e, struct ls_job *j, struct ls_suspect who,
	enum ls_detect_kind kind, uint64_t step, int64_t now_us)
{
	const struct ls_detect_channel *ch = &ls_suspect_channels(j, who)[kind];
	struct ls_finding subject = judge_subject(e, j, who);
	struct ls_finding *f = ls_findings_open(e, &subject);

	if (f != NULL && ls_finding_waits(f))
		return judge_open(e, j, who, kind, step, now_us);
	if (f == NULL || !ls_findings_is_due(f, step, now_us) ||
		ls_arbiter_is_of_earlier(j, who, f, kind) ||
		ls_arbiter_is_of_net(j, who))
		return;
	/* It is ending, so there is nothing new. For a net, healthy steps would dilute the sums. */
	if (kind != LS_DETECT_STALLS ? ch->c < (who.net ? LS_DETECT_FINDING
							: LS_HALF * LS_DETECT_FINDING)
				     : ch->ep.last_step != step)
		return;
	/* the other has ended, or is from before a restart */
	if (kind > f->detector || f->diagnosis.count == 0)
		f->detector = kind;
	judge_bend(e, j, f, who, &ch->ep, step);
	judge_refresh(e, j, f, who, ch, step, now_us);
	ls_findings_tell(e, f, now_us);
}

/* From now on the finding is about the group of a worker, or about another subject of a net: opens that. */
static void
judge_reopen(struct ls_engine *e, struct ls_job *j, struct ls_suspect who,
	uint64_t step, int64_t now_us)
{
	unsigned is = ls_detect_found(ls_suspect_channels(j, who));

	if (is != 0)
		judge_open(e, j, who, (enum ls_detect_kind)__builtin_ctz(is), step,
			now_us);
}

/* Nothing is found of it any more. */
static void
judge_end(struct ls_engine *e, struct ls_job *j, struct ls_suspect who, uint64_t step,
	int64_t now_us)
{
	struct ls_finding subject = judge_subject(e, j, who);
	struct ls_finding *f = ls_findings_open(e, &subject);

	if (who.net)
		j->detect.net[who.at].names = LS_NET_ALL;
	else
		j->detect.worker[who.at].way = LS_WAY_NONE;
	if (f != NULL && !ls_arbiter_holds(e, j, f))
		ls_findings_clear(e, f, step, now_us);
}

/*
 * What was told of all that a net joins is told of the host whose counters explain it,
 * as soon as they do; and of all again if that host's finding is gone.
 */
static void
judge_rename(struct ls_engine *e, struct ls_job *j, size_t at, uint64_t step,
	int64_t now_us)
{
	const struct ls_suspect who = { .net = true, .at = at };
	struct ls_finding was, is, *f;

	if (j->detect.net[at].names != LS_NET_ALL ||
		j->detect.judged % LS_FINDING_UPDATE_STEPS != 0)
		return;
	was = judge_subject(e, j, who);
	f = ls_findings_open(e, &was);
	if (!ls_judge_net_rename(e, j, at, now_us) && f != NULL)
		return;
	if (f != NULL && !ls_arbiter_holds(e, j, f))
		ls_findings_clear(e, f, step, now_us);
	judge_reopen(e, j, who, step, now_us);
	is = judge_subject(e, j, who);
	f = ls_findings_last(e, &was); /* the list may have moved */
	if (f != NULL && f->cleared_us == now_us && ls_findings_open(e, &is) != NULL)
		ls_findings_part_of(e, f, ls_findings_open(e, &is), now_us);
}

/* Levels before the step against levels after it, of the channels of one suspect. */
static void
judge_channels(struct ls_engine *e, struct ls_job *j, struct ls_suspect who,
	unsigned was, uint64_t step, int64_t now_us)
{
	unsigned is = ls_detect_found(ls_suspect_channels(j, who));

	/* of whom is a new finding to speak? */
	if (is != 0 && who.net && was == 0)
		ls_judge_net_choose(e, j, who.at, now_us);
	else if (is != 0 && who.net)
		judge_rename(e, j, who.at, step, now_us);
	else if (is != 0 && was == 0 && !j->replica.on)
		ls_judge_group_choose(e, j, who.at, step, now_us);
	for (unsigned k = 0; k < LS_DETECT_KIND_COUNT; k++)
		if ((is & was & 1u << k) != 0)
			judge_update(e, j, who, (enum ls_detect_kind)k, step, now_us);
		else if ((is & 1u << k) != 0)
			judge_open(e, j, who, (enum ls_detect_kind)k, step, now_us);
	if (was != 0 && is == 0)
		judge_end(e, j, who, step, now_us);
}

/* Blame: residuals of all workers, and what joins them. */
static void
judge_blame(const struct ls_engine *e, struct ls_job *j, struct ls_row *row,
	struct ls_blame_step *totals)
{
	size_t n = row->cell_count; /* workers may have come since */

	for (size_t i = j->replica.on ? 0 : n; i < j->count; i++)
		j->residuals[i] = (struct ls_blame){ NAN, NAN, NAN, NAN, NAN, 0 };
	if (!j->grouped) {
		ls_blame_group(&j->room, j->roles.of, j->roles.count, j->count);
		LS_EACH (struct ls_job_groups, g, j->groups, LS_JOB_GROUPS)
			ls_blame_sort(g->sorted, g->start, g->of, g->count, j->count);
		/* then none is compared */
		ls_ignore(ls_stages_group(&j->compare, &j->detect, j->stages.sorted,
			j->stages.start, j->stages.count));
		j->grouped = true;
	}
	if (j->replica.on) {
		ls_replica_judge(j, row, totals);
		return;
	}
	ls_judge_clocks_align(e, j, row);
	ls_blame_judge(&j->room, row->cells, n, !j->detect.ready, j->scales.named,
		j->residuals, totals);
	if (totals->used > 0) /* no worker alone says when a step began */
		row->begin_us = (int64_t)totals->begin_us;
	if (row->reported < j->count || row->reported < (uint32_t)j->world)
		totals->net.collective_s =
			NAN; /* it may be a missing one that all waited for */
	totals->slice = j->slice_nets;
	totals->slice_count = j->slices.count > 1 ? j->slices.count : 0;
	totals->slice_of = j->slices.of;
	ls_blame_slices(&j->room, row->cells, n, j->slices.sorted, j->slices.start,
		(uint32_t)totals->slice_count, j->slice_nets);
}

/* Who is slower than its peers vary: workers that wait for one another. */
static void
judge_scales(const struct ls_engine *e, struct ls_job *j)
{
	j->scales.rack = j->racks.of;
	if (!j->replica.on && j->detect.judged >= LS_DETECT_SKIP) {
		ls_scales_step(&j->scales, j->residuals, j->count,
			j->detect.ready		    ? j->detect.mode == LS_MODE_LATENESS
				: j->scales.carried ? j->scales.late
						    : ls_judge_clocks_ok(e, j),
			j->detect.step_s, e->patience_s, &j->room);
		ls_judge_group_scales(j);
	}
	j->detect.scales = j->replica.on ? NULL : &j->scales;
	j->detect.asked = !j->replica.on && !ls_scales_is_silent(&j->scales);
}

void
ls_judge_row(struct ls_engine *e, struct ls_job *j, struct ls_row *row,
	uint32_t expected, int64_t now_us)
{
	struct ls_live_row kept = { .expected = expected };
	bool masked = ls_steps_mostly(row, judge_is_masked), hang, judged, apart;
	size_t regrouped;

	if (e->reference != NULL && j->detect.judged == 0 && j->live_count == 0)
		ls_reference_job(e, j, row->step);
	if (j->names_wait)
		ls_reference_names(e, j, row->step);
	ls_judge_life_row(e, j, row);
	judge_blame(e, j, row, &kept.totals);
	kept.row = *row;
	ls_judge_order(e, j, &kept.totals);
	apart = ls_judge_is_apart(e, j, row, &kept.totals);
	j->apart += apart;
	hang = !masked && !j->replica.on && ls_hang_is_row(j, &kept);
	/* windows teach first what loads take */
	judged = !masked && !hang && !apart &&
		(!j->replica.on || j->replica.windows > LS_LOOK);
	LS_EACH (struct ls_detect_net, net, j->detect.net, j->detect.net_count)
		net->was = (uint8_t)ls_detect_found(net->channel);
	if (judged) {
		judge_scales(e, j);
		ls_detect_step(&j->detect, row->step, row->begin_us,
			j->detect.ready || ls_judge_clocks_ok(e, j), j->residuals,
			j->count, &kept.totals);
		if (!j->replica.on)
			ls_judge_stages(e, j, row, now_us);
	}
	kept.totals.slice = NULL; /* of this step alone */
	kept.totals.slice_of = NULL;
	ls_detect_costs(&j->detect, row, &kept.totals);
	kept.blame_s = judge_note_cells(j, &kept.row);
	kept.hang = hang;
	judge_keep(j, &kept);
	if (hang)
		ls_hang_judge_row(e, j, &kept, now_us);
	else
		ls_hang_relax(e, j, row->step, now_us);
	ls_judge_identity(e, j, now_us);
	if (!judged)
		return;
	for (size_t i = 0; i < j->count; i++)
		/* neither, as most are */
		if ((j->detect.worker[i].was | j->detect.worker[i].found) != 0)
			judge_channels(e, j, (struct ls_suspect){ .at = i },
				j->detect.worker[i].was,
				j->replica.on ? ls_replica_step(j, i) : row->step,
				now_us);
	LS_EACH (struct ls_detect_net, net, j->detect.net, j->detect.net_count)
		judge_channels(e, j,
			(struct ls_suspect){
				.net = true, .at = (size_t)(net - j->detect.net) },
			net->was, row->step, now_us);
	if (!j->replica.on) {
		regrouped = ls_judge_regroup(e, j, row->step, now_us);
		if (regrouped != SIZE_MAX)
			judge_reopen(e, j, (struct ls_suspect){ .at = regrouped },
				row->step, now_us);
		ls_judge_slow(e, j, now_us);
		ls_judge_job(e, j, &kept, now_us);
	}
	ls_judge_life(e, j, j->replica.on ? 0 : row->step, now_us);
	if (j->live_count > 0)
		ls_replica_watch(e, j, &ls_job_row(j, j->live_count - 1)->row, now_us);
}

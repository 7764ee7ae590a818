/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge - the part of the engine that turns a closed step into verdicts: blame, detect, then the
 * findings that open, change and clear. (Interface: engine_state.h.)
 */
#include "config.h"
#include "collector/engine/engine_state.h"
#include "collector/engine/evidence.h"
#include "collector/engine/findings.h"
#include "collector/engine/hang.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Arrivals are compared only where clocks are known to a tenth of a step. */
#define JUDGE_CLOCK_RATIO 0.1

static size_t
judge_live_rows(size_t workers)
{
	size_t rows = LS_LIVE_CELLS_MAX / (workers == 0 ? 1 : workers);

	if (rows > LS_LIVE_STEPS)
		return LS_LIVE_STEPS;
	return rows < LS_ENGINE_RECENT_STEPS ? LS_ENGINE_RECENT_STEPS : rows;
}

/* Keeps a judged row; the oldest one makes room. */
static void
judge_keep(struct ls_job *j, const struct ls_live_row *kept)
{
	size_t capacity = judge_live_rows(j->capacity);
	struct ls_live_row *slot;

	if (j->live == NULL) {
		j->live = calloc(capacity, sizeof(*j->live));
		j->live_capacity = j->live == NULL ? 0 : capacity;
	}
	if (j->live_capacity == 0) {
		free(kept->row.cells);
		return;
	}
	slot = &j->live[j->live_head];
	if (j->live_count == j->live_capacity)
		free(slot->row.cells);
	else
		j->live_count++;
	*slot = *kept;
	j->live_head = (j->live_head + 1) % j->live_capacity;
}

static bool
judge_clocks_ok(const struct ls_engine *e, const struct ls_job *j)
{
	for (size_t i = 0; i < j->count; i++) {
		double err = e->workers[j->slots[i]].clock_err_s;

		if (err > JUDGE_CLOCK_RATIO * j->detect.step_s) /* false for NaN: not told */
			return false;
	}
	return true;
}

/* Most workers checkpoint, evaluate or compile: a step unlike the others, not judged. */
static bool
judge_masked(const struct ls_row *row)
{
	static const unsigned special[] = {LS_PHASE_CHECKPOINT, LS_PHASE_EVAL, LS_PHASE_COMPILE};
	size_t in = 0, present = 0;

	for (size_t i = 0; i < row->cell_count; i++) {
		float sum = 0;

		if (!row->cells[i].present)
			continue;
		present++;
		for (size_t p = 0; p < sizeof(special) / sizeof(special[0]); p++)
			if (!isnan(row->cells[i].phase_s[special[p]]))
				sum += row->cells[i].phase_s[special[p]];
		in += sum > 0.2f * row->cells[i].duration_s;
	}
	return 2 * in > present;
}

/* Writes the judgement into the cells: the residual in use, and what of it is blame. */
static double
judge_note_cells(const struct ls_job *j, struct ls_row *row)
{
	double most = 0;

	for (size_t i = 0; i < row->cell_count && i < j->count; i++) {
		const struct ls_detect_worker *w = &j->detect.worker[i];
		struct ls_cell *c = &row->cells[i];

		if (!c->present)
			continue;
		c->late_s = (float)j->residuals[i].late_s;
		if (w->warm == LS_DETECT_WARM && j->detect.ready) {
			double residual = j->detect.mode == LS_MODE_LATENESS
				? j->residuals[i].late_s : j->residuals[i].wait_s;

			c->blame_s = (float)fmax(residual - w->base_s, 0);
			c->under_s = (float)fmin(residual - w->base_s, 0);
			if (isnan(residual))
				c->blame_s = NAN;
			else if (residual - w->base_s > most)
				most = residual - w->base_s;
		}
	}
	return most;
}

/* Who a channel speaks of; slot SIZE_MAX = the job's communication. */
static struct ls_finding
judge_subject(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	enum ls_detect_kind kind)
{
	struct ls_finding f = {.detector = kind, .estimate = j->detect.mode,
		.slowest_ratio = NAN, .clock_err_s = NAN};

	if (slot == SIZE_MAX) {
		f.scope = LS_SCOPE_JOB;
		f.kind = LS_KIND_LINK;
		f.comm = true;
		memcpy(f.who.job, j->name, sizeof(f.who.job));
		ls_job_step_source(e, j, &f.who);
	} else {
		const struct ls_engine_worker *w = &e->workers[j->slots[slot]];

		f.who = w->info;
		f.scope = ls_job_neighbours(e, j, w) == 1 ? LS_SCOPE_HOST : LS_SCOPE_RANK;
	}
	return f;
}

/* What it costs: blame a step, counterfactual, S, chips; earlier steps' cost is kept. */
static void
judge_cost(const struct ls_engine *e, const struct ls_job *j, struct ls_finding *f,
	const struct ls_episode *ep, double blame_s, uint64_t step)
{
	double grown = f->step_s - ep->before_s; /* NaN: not known */

	f->before_s = ep->before_s;
	if (grown > 0 && blame_s > grown)
		blame_s = grown; /* it cannot cost more than the job lost (design section 3.4) */
	if (!(blame_s > 0))
		blame_s = 0;
	if (blame_s > 0.99 * f->step_s)
		blame_s = 0.99 * f->step_s;
	f->blame_s = blame_s;
	f->without_s = f->step_s - blame_s;
	f->slowdown = f->step_s / f->without_s;
	f->chips = ls_job_chips(e, j);
	f->chips_lost = f->chips * (1 - 1 / f->slowdown);
	f->severity = ls_finding_severity(f->slowdown);
	if (step > f->accounted_step) {
		f->chip_hours += (double)(step - f->accounted_step) * blame_s * f->chips / 3600;
		f->accounted_step = step;
	}
}

/* Brings a finding up to date with its channel and the live window. */
static void
judge_refresh(const struct ls_engine *e, const struct ls_job *j, struct ls_finding *f, size_t slot,
	const struct ls_detect_channel *ch, uint64_t step, int64_t now_us)
{
	struct ls_gathered g;

	ls_evidence_gather(e, j, slot, ch, now_us, &g);
	f->last_step = step;
	f->steps_seen = step >= f->onset_step ? step - f->onset_step + 1 : 0;
	f->slowest_ratio = g.slowest_ratio;
	f->step_s = g.step_s;
	f->workers = (uint32_t)j->count;
	f->workers_used = g.workers_used;
	f->hosts = (uint32_t)ls_job_places(e, j, LS_PLACE_HOST);
	f->clock_err_s = g.clock_err_s;
	judge_cost(e, j, f, &ch->ep, g.blame_s, step);
	memcpy(f->evidence, g.rows, sizeof(f->evidence));
	f->evidence_count = g.count;
	if (slot == SIZE_MAX) {
		f->diagnosis = (struct ls_diagnosis){.count = 1};
		f->diagnosis.hypotheses[0] =
			(struct ls_hypothesis){LS_CAUSE_COMMUNICATION, 0.8, 1};
		return;
	}
	ls_cause_diagnose(f->evidence, f->evidence_count, g.gap_s, g.counters_ripe,
		&f->diagnosis);
	f->kind = f->diagnosis.hypotheses[0].cause == LS_CAUSE_IMBALANCE ? LS_KIND_IMBALANCE
									 : LS_KIND_STRAGGLER;
}

/*
 * Within how many steps the onset is known. Chronic: 20 live runs and the recorded ones were off by -7 to
 * +4 (tests/system/slow_rank.sh prints it). Faint: assumed; the one recording of its kind was off by 6.
 */
static uint32_t
judge_uncertainty(enum ls_detect_kind kind, const struct ls_episode *ep)
{
	if (kind == LS_DETECT_STALLS) /* between two of them */
		return (uint32_t)fmin(fmax(ep->gap_mean, 1), 1e6);
	return kind == LS_DETECT_FAINT ? 20 : 7;
}

static void
judge_open(struct ls_engine *e, struct ls_job *j, size_t slot, enum ls_detect_kind kind,
	const struct ls_detect_channel *ch, uint64_t step, int64_t now_us)
{
	struct ls_finding subject = judge_subject(e, j, slot, kind);
	struct ls_finding *f = ls_findings_last(e, &subject);
	const char *event = "updated";

	if (f != NULL && ls_findings_is_known(f, now_us))
		return;
	if (f == NULL || !ls_finding_is_open(f)) {
		f = ls_findings_take(e, f, &subject, now_us);
		if (f == NULL)
			return;
		event = f->status == LS_FINDING_REOPENED ? "reopened" : "opened";
		f->onset_step = ch->ep.start_step;
		f->onset_us = ch->ep.start_us;
		f->accounted_step = ch->ep.start_step > 0 ? ch->ep.start_step - 1 : 0;
		f->born = isnan(ch->ep.before_s) || ch->ep.start_step <=
			LS_DETECT_SKIP + LS_DETECT_WARM;
		f->uncertainty_steps = judge_uncertainty(kind, &ch->ep);
	} else if (kind > f->detector) {
		return; /* the earlier kind tells more and is still open */
	}
	f->detector = kind;
	f->estimate = j->detect.mode;
	judge_refresh(e, j, f, slot, ch, step, now_us);
	ls_findings_tell(e, f, event, now_us);
}

static void
judge_update(struct ls_engine *e, struct ls_job *j, size_t slot, enum ls_detect_kind kind,
	const struct ls_detect_channel *ch, uint64_t step, int64_t now_us)
{
	struct ls_finding subject = judge_subject(e, j, slot, kind);
	struct ls_finding *f = ls_findings_open(e, &subject);

	if (f == NULL || ls_findings_is_known(f, now_us) || (step < f->last_step + LS_FINDING_UPDATE_STEPS &&
				 now_us - f->updated_us < LS_FINDING_UPDATE_US))
		return;
	if (kind > f->detector)
		return; /* the earlier kind tells more and is still open */
	if (kind != LS_DETECT_STALLS ? ch->c < LS_DETECT_FINDING : ch->ep.last_step != step)
		return; /* on its way out: what is healthy must not dilute what was found */
	judge_refresh(e, j, f, slot, ch, step, now_us);
	ls_findings_tell(e, f, "updated", now_us);
}

/* Levels before the step against levels after it, of the two channels of one subject. */
static void
judge_channels(struct ls_engine *e, struct ls_job *j, size_t slot,
	const struct ls_detect_channel *channel, const bool was[LS_DETECT_KIND_COUNT],
	uint64_t step, int64_t now_us)
{
	bool any = false, any_was = false;

	for (int k = 0; k < LS_DETECT_KIND_COUNT; k++) {
		bool is = channel[k].level == LS_LEVEL_FINDING;

		if (is && !was[k])
			judge_open(e, j, slot, (enum ls_detect_kind)k, &channel[k], step, now_us);
		else if (is)
			judge_update(e, j, slot, (enum ls_detect_kind)k, &channel[k], step,
				now_us);
		any |= is;
		any_was |= was[k];
	}
	if (any_was && !any) {
		struct ls_finding subject = judge_subject(e, j, slot, LS_DETECT_CHRONIC);
		struct ls_finding *f = ls_findings_open(e, &subject);

		if (f != NULL)
			ls_findings_clear(e, f, step, now_us);
	}
}

void
ls_judge_clear_job(struct ls_engine *e, struct ls_job *j, int64_t now_us)
{
	for (size_t i = 0; i < e->finding_count; i++)
		if (ls_finding_is_open(&e->findings[i]) &&
			strcmp(e->findings[i].who.job, j->name) == 0)
			ls_findings_clear(e, &e->findings[i], e->findings[i].last_step, now_us);
}

static bool
judge_any_finding(const struct ls_detect_channel channel[LS_DETECT_KIND_COUNT])
{
	for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
		if (channel[k].level == LS_LEVEL_FINDING)
			return true;
	return false;
}

bool
ls_judge_is_held(const struct ls_engine *e, const struct ls_job *j, const struct ls_finding *f)
{
	if (f->kind == LS_KIND_HANG && j->hang.on)
		return true;
	if (f->scope == LS_SCOPE_JOB)
		return judge_any_finding(j->detect.comm);
	for (size_t s = 0; s < j->count; s++) {
		const struct ls_worker_info *who = &e->workers[j->slots[s]].info;

		if (who->rank == f->who.rank && strcmp(who->host, f->who.host) == 0)
			return judge_any_finding(j->detect.worker[s].channel);
	}
	return false;
}

/*
 * Open findings of this job that no channel holds up any more: taken over from storage, and calm since
 * the detectors have learned again, or of a rank that moved to another host.
 */
static void
judge_orphans(struct ls_engine *e, struct ls_job *j, uint64_t step, int64_t now_us)
{
	if (j->detect.judged < 2 * LS_DETECT_WARM || j->detect.judged % LS_FINDING_UPDATE_STEPS != 0)
		return;
	for (size_t i = 0; i < e->finding_count; i++)
		if (ls_finding_is_open(&e->findings[i]) &&
			strcmp(e->findings[i].who.job, j->name) == 0 &&
			!ls_judge_is_held(e, j, &e->findings[i]))
			ls_findings_clear(e, &e->findings[i], step, now_us);
}

/* Was the channel a finding before this step? Remembered in one bit a channel. */
static void
judge_was(const struct ls_detect_channel *channel, bool was[LS_DETECT_KIND_COUNT])
{
	for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
		was[k] = channel[k].level == LS_LEVEL_FINDING;
}

void
ls_judge_row(struct ls_engine *e, struct ls_job *j, struct ls_row *row, uint32_t expected,
	int64_t now_us)
{
	struct ls_live_row kept = {.row = *row, .expected = expected};
	bool comm_was[LS_DETECT_KIND_COUNT], was[LS_DETECT_KIND_COUNT];
	size_t n = row->cell_count < j->count ? row->cell_count : j->count;
	bool masked = judge_masked(row), hang, judged;

	for (size_t i = n; i < j->count; i++)
		j->residuals[i] = (struct ls_blame){NAN, NAN, NAN, NAN};
	if (!j->grouped) {
		ls_blame_group(&j->room, j->roles, j->role_count, j->count);
		j->grouped = true;
	}
	ls_blame_judge(&j->room, row->cells, n, j->residuals, &kept.totals);
	if (row->reported < j->count || row->reported < (uint32_t)j->world)
		kept.totals.collective_s = NAN; /* it may be a missing one that all waited for */
	hang = !masked && ls_hang_is_row(j, &kept);
	judged = !masked && !hang;
	judge_was(j->detect.comm, comm_was);
	for (size_t i = 0; i < j->count; i++) {
		judge_was(j->detect.worker[i].channel, was);
		j->detect.worker[i].was = 0;
		for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
			j->detect.worker[i].was |= (uint8_t)(was[k] << k);
	}
	if (judged)
		ls_detect_step(&j->detect, row->step, row->begin_us, judge_clocks_ok(e, j),
			j->residuals, j->count, &kept.totals);
	kept.blame_s = judge_note_cells(j, &kept.row);
	judge_keep(j, &kept);
	if (hang)
		ls_hang_judge_row(e, j, &kept, now_us);
	else
		ls_hang_relax(e, j, row->step, now_us);
	if (!judged)
		return;
	for (size_t i = 0; i < j->count; i++) {
		for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
			was[k] = (j->detect.worker[i].was & 1u << k) != 0;
		judge_channels(e, j, i, j->detect.worker[i].channel, was, row->step, now_us);
	}
	judge_channels(e, j, SIZE_MAX, j->detect.comm, comm_was, row->step, now_us);
	judge_orphans(e, j, row->step, now_us);
}

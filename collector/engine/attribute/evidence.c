/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/attribute/evidence.h"
#include "collector/engine/detect/span.h"
#include "collector/engine/detect/stall.h"
#include "collector/engine/params.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stddef.h>

#define EVIDENCE_ROWS_MAX LS_DETECT_BEFORE
/* of more, every k-th: enough for deciles, and it stays cheap */
#define EVIDENCE_PEERS_MAX 256u
#define EVIDENCE_COUNTERS_US LS_ENGINE_US(LS_COUNTERS_S)
#define EVIDENCE_COUNTERS_MIN_US LS_ENGINE_US(LS_HALF *LS_SCALES_LEAST_S)

/* Where the number of a row stands in a cell, and whether it is a phase. */
#define EVIDENCE_CELL(member) offsetof(struct ls_cell, member), false
#define EVIDENCE_PHASE(id) offsetof(struct ls_cell, phase_s[LS_PHASE_##id]), true

/* One kind of row: where its number comes from. */
static const struct evidence_kind {
	enum ls_signal signal;
	const char *metric, *unit;
	size_t at; /* where it stands in a cell, if no counter tells it */
	bool phase;
	int counter; /* enum ls_metric, or -1 */
	/* a second of it is a second of the step (a counter: of its rate) */
	bool seconds;
} evidence_kinds[] = {
	{ LS_SIGNAL_LATENESS, "lateness_s", "s", EVIDENCE_CELL(late_s), -1, true },
	{ LS_SIGNAL_WAIT, "phase.sync_wait_s", "s", EVIDENCE_CELL(wait_s), -1, false },
	{ LS_SIGNAL_OWN, LS_EVIDENCE_OWN_WORK, "s", EVIDENCE_CELL(own_s), -1, true },
	{ LS_SIGNAL_INPUT, "phase.input_wait_s", "s", EVIDENCE_PHASE(INPUT_WAIT), -1,
		true },
	{ LS_SIGNAL_H2D, "phase.h2d_s", "s", EVIDENCE_PHASE(H2D), -1, true },
	{ LS_SIGNAL_DISPATCH, "phase.dispatch_s", "s", EVIDENCE_PHASE(DISPATCH), -1,
		true },
	{ LS_SIGNAL_COMPUTE, "phase.compute_s", "s", EVIDENCE_PHASE(COMPUTE), -1,
		true },
	{ LS_SIGNAL_CHECKPOINT, "phase.checkpoint_s", "s", EVIDENCE_PHASE(CHECKPOINT),
		-1, true },
	{ LS_SIGNAL_COMPILE, "phase.compile_s", "s", EVIDENCE_PHASE(COMPILE), -1,
		true },
	{ LS_SIGNAL_GC, "phase.gc_s", "s", EVIDENCE_PHASE(GC), -1, true },
	{ LS_SIGNAL_WORK, "work", "1", EVIDENCE_CELL(work), -1, false },
	{ LS_SIGNAL_LOAD, "expert_load_ratio", "1", EVIDENCE_CELL(load), -1, false },
	{ LS_SIGNAL_RUNQUEUE, "job.runqueue_wait_seconds_total", "s/s", 0, false,
		LS_METRIC_JOB_RUNQUEUE_WAIT, true },
	{ LS_SIGNAL_THROTTLED, "host.cpu.throttled_seconds_total", "s/s", 0, false,
		LS_METRIC_HOST_CPU_THROTTLED, true },
	{ LS_SIGNAL_CPU, "job.cpu_seconds_total", "s/s", 0, false, LS_METRIC_JOB_CPU,
		true },
	{ LS_SIGNAL_RETRANSMITS, "host.tcp.retransmits_total", "1/s", 0, false,
		LS_METRIC_HOST_TCP_RETRANSMITS, false },
};

/* The closed steps to look at: those of the episode in which it was there, at most the
 * newest EVIDENCE_ROWS_MAX. */
struct evidence_window {
	const struct ls_job *j;
	size_t first, end; /* rows [first, end) of the live window */
	bool ended;
	bool hang; /* it is about the row that was one */
	int64_t from_us, to_us;
	/* only rows that wait for this worker, so long at least; 0: all rows */
	size_t slot;
	double stall_s;
	/* those rows: looked for once, and read for many workers */
	const struct ls_live_row *live[EVIDENCE_ROWS_MAX];
	size_t live_count;
};

/* A row of the window; NULL: it is another finding's, or no stall. */
static const struct ls_live_row *
evidence_live(const struct evidence_window *w, size_t i)
{
	const struct ls_live_row *r = ls_job_row(w->j, i);

	return (r->hang && !w->hang) ||
			(w->stall_s > 0 &&
				(r->totals.costs != w->slot ||
					r->totals.costs_s < w->stall_s))
		? NULL
		: r;
}

/* Rows do not keep what slices took, and of stalls only those count: their episode's
 * own sums are all there is. */
static bool
evidence_is_summed(const struct ls_job *j, struct ls_suspect who,
	const struct ls_detect_channel *ch)
{
	return (who.net && who.at > 0) ||
		ch == &ls_suspect_channels(j, who)[LS_DETECT_STALLS];
}

/* What the net took longer in a row, or the worker came later, than its baseline;
 * signed: noise around it must cancel. */
static double
evidence_excess(const struct ls_live_row *r, struct ls_suspect who)
{
	const struct ls_cell *c = r == NULL || who.net ? NULL : ls_row_cell(r, who.at);

	if (r != NULL && who.net)
		return r->totals.net.comm_s;
	/* NaN if not judged */
	return c == NULL ? NAN : (double)(c->blame_s + c->under_s);
}

/* Leaves out what a detector took into the episode before it began and after it ended.
 */
static void
evidence_narrow(struct evidence_window *w, struct ls_suspect who, bool whole)
{
	double excess[EVIDENCE_ROWS_MAX] = { 0 }, scratch[EVIDENCE_ROWS_MAX];
	size_t n = w->end - w->first;
	struct ls_span span;

	for (size_t i = 0; i < n; i++)
		excess[i] = evidence_excess(evidence_live(w, w->first + i), who);
	span = ls_span_find(excess, n, scratch);
	w->end = w->first + span.end;
	w->ended = span.ended;
	if (whole)
		w->first += span.first;
}

static struct evidence_window
evidence_window(const struct ls_job *j, struct ls_suspect who,
	const struct ls_detect_channel *ch, int64_t now_us)
{
	struct evidence_window w = { .j = j, .end = j->live_count, .to_us = now_us };
	size_t least = w.end > EVIDENCE_ROWS_MAX ? w.end - EVIDENCE_ROWS_MAX : 0, begin;
	int64_t from_us = ch->ep.start_us;

	w.hang = w.end > 0 && ch->ep.start_step == ls_job_row(j, w.end - 1)->row.step;
	w.first = w.end;
	while (w.first > least &&
		ls_job_row(j, w.first - 1)->row.step >= ch->ep.start_step)
		w.first--;
	begin = w.first;
	if (!evidence_is_summed(j, who, ch))
		evidence_narrow(&w, who,
			w.first > least || w.first == 0 ||
				ls_job_row(j, w.first - 1)->row.step <
					ch->ep.start_step);
	if (w.ended && w.end > 0)
		w.to_us = ls_job_row(j, w.end - 1)->row.end_us;
	if (w.first > begin)
		from_us = ls_job_row(j, w.first)->row.begin_us;
	w.from_us = w.to_us - EVIDENCE_COUNTERS_US;
	if (from_us > w.from_us)
		w.from_us = from_us;
	return w;
}

static double
evidence_cell(const struct evidence_kind *kind, const struct ls_cell *c)
{
	return kind->signal == LS_SIGNAL_WAIT && !c->has_wait
		? NAN
		: (double)*(const float *)((const char *)c + kind->at);
}

/* Does it mark what it does? What it does not mark it then does not do. */
static bool
evidence_marks(const struct ls_cell *c)
{
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		if (p != LS_PHASE_SYNC_WAIT && p != LS_PHASE_OTHER &&
			!isnan(c->phase_s[p]))
			return true;
	return false;
}

/* Of a replica: at the usual load, so that replicas can be compared; NaN = nobody else
 * was at its load. */
static double
evidence_scale(const struct ls_job *j, const struct evidence_kind *kind,
	const struct ls_cell *c)
{
	return !j->replica.on || kind->signal == LS_SIGNAL_WORK ||
			kind->signal == LS_SIGNAL_LOAD
		? 1
		: j->detect.step_s / (double)c->expected_s;
}

/* Mean of one kind over the window for one worker; NaN if never measured. *marked: a
 * phase was marked in some step. */
static double
evidence_mean(const struct evidence_window *w, const struct evidence_kind *kind,
	size_t slot, bool *marked)
{
	double sum = 0, v;
	size_t n = 0;

	for (size_t i = 0; i < w->live_count; i++) {
		const struct ls_cell *c = ls_row_cell(w->live[i], slot);

		if (c == NULL)
			continue;
		v = evidence_cell(kind, c) * evidence_scale(w->j, kind, c);
		*marked |= !isnan(v);
		if (isnan(v) && (!kind->phase || !evidence_marks(c)))
			continue;
		sum += isnan(v) ? 0 : v;
		n++;
	}
	return n == 0 ? NAN : sum / (double)n;
}

static double
evidence_rate(const struct ls_engine *e, const struct ls_job *j, unsigned metric,
	size_t slot, int64_t from_us, int64_t to_us)
{
	const struct ls_engine_worker *w = &e->workers[j->slots[slot]];

	return ls_counters_rate(ls_worker_counters(e, w, metric), metric, from_us,
		to_us, EVIDENCE_COUNTERS_MIN_US);
}

static double
evidence_value(const struct ls_engine *e, const struct evidence_window *w,
	const struct evidence_kind *kind, size_t slot, bool *marked)
{
	return kind->counter >= 0 ? evidence_rate(e, w->j, (unsigned)kind->counter,
					    slot, w->from_us, w->to_us)
				  : evidence_mean(w, kind, slot, marked);
}

/*
 * Fills subject and peers of one row; slot SIZE_MAX: no subject, all are peers.
 * counter_s: what a second a second of a counter is of a step.
 */
static void
evidence_row(const struct ls_engine *e, const struct evidence_window *w,
	const struct evidence_kind *kind, size_t slot, double counter_s,
	double *scratch, struct ls_evidence *row)
{
	const struct ls_blame_room *room = &w->j->room;
	uint32_t role = slot == SIZE_MAX ? 0 : w->j->roles.of[slot];
	size_t first = room->start[role];
	size_t end = room->start[slot == SIZE_MAX ? room->role_count : role + 1];
	size_t stride = (end - first + EVIDENCE_PEERS_MAX - 1) / EVIDENCE_PEERS_MAX;
	bool marked = !kind->phase;
	double spread, subject = NAN;
	size_t n = 0;

	if (slot != SIZE_MAX)
		subject = evidence_value(e, w, kind, slot, &marked);
	for (size_t i = first; i < end; i += stride) {
		double v = room->sorted[i] == slot
			? NAN
			: evidence_value(e, w, kind, room->sorted[i], &marked);

		if (!isnan(v))
			scratch[n++] = v;
	}
	n = marked ? n : 0; /* else nobody does that */
	*row = (struct ls_evidence){ .cause = LS_CAUSE_COUNT,
		.signal = kind->signal,
		.metric = kind->metric,
		.unit = kind->unit,
		.subject = marked ? subject : NAN,
		.peers = n,
		.per_step_s = !kind->seconds ? 0
			: kind->counter >= 0 ? counter_s
					     : 1,
		.robust_z = NAN };
	row->p10 = ls_stats_quantile(scratch, n, 0.1);
	row->p50 = ls_stats_quantile(scratch, n, 0.5);
	row->p90 = ls_stats_quantile(scratch, n, 0.9);
	spread = LS_MAD_TO_SIGMA * ls_stats_mad(scratch, n, row->p50);
	if (spread > 0)
		row->robust_z = (row->subject - row->p50) / spread;
}

/*
 * Mean over the window of what the net took longer, or the worker came later, than its
 * baseline. *steady: and that is in most of its steps, not in a few of them.
 */
static double
evidence_gap(const struct evidence_window *w, struct ls_suspect who,
	const struct ls_detect_channel *ch, bool *steady)
{
	double all[EVIDENCE_ROWS_MAX] = { 0 }, mean;
	size_t n = 0;

	*steady = ch != &ls_suspect_channels(w->j, who)[LS_DETECT_STALLS];
	if (evidence_is_summed(w->j, who, ch))
		return ch->ep.steps > 0 ? ch->ep.excess_s / (double)ch->ep.steps : 0;
	for (size_t i = w->first; i < w->end; i++) {
		all[n] = evidence_excess(evidence_live(w, i), who);
		n += isnan(all[n]) ? 0 : 1;
	}
	mean = fmax(ls_stats_mean(all, n), 0); /* 0: NaN */
	*steady = who.net || n == 0 || ls_stats_median(all, n) >= LS_QUARTER * mean;
	return mean;
}

/* Is a member of a worker's group told with it? Not if it has a finding of its own, or of another group. */
static bool
evidence_is_told(const struct ls_job *j, size_t slot, size_t member)
{
	return j->detect.worker[member].found == 0 ||
		j->detect.worker[member].way == j->detect.worker[slot].way;
}

/*
 * Counterfactual: without its excess the step would have ended as soon as the next worker without
 * a finding arrived, or this one itself. Where it was not the last, it cost nothing. Of a group,
 * any of its workers may be the last. Rows without a baseline say nothing; NaN: no row says it.
 */
static double
evidence_cost(const struct ls_engine *e, const struct evidence_window *w,
	struct ls_suspect who, double *ret_error_s)
{
	const struct ls_job *j = w->j;
	double sum = 0, squares = 0, s;
	size_t n = 0;

	for (size_t i = w->first; i < w->end; i++) {
		const struct ls_live_row *r = evidence_live(w, i);
		size_t last = r == NULL ? SIZE_MAX : r->totals.costs;
		const struct ls_cell *c = last < j->count ? ls_row_cell(r, last) : NULL;
		bool same = c != NULL &&
			(last == who.at ||
				(ls_job_same_group(e, j, who.at, last) &&
					evidence_is_told(j, who.at, last)));

		s = same ? (double)c->blame_s : 0;
		if (r == NULL || isnan(r->blame_s + s))
			continue;
		s = fmin(s, r->totals.costs_s);
		n++;
		sum += s;
		squares += s * s;
	}
	*ret_error_s = n < 2 ? 0
			     : sqrt(fmax(squares - sum * sum / (double)n, 0) /
				       ((double)n * (double)(n - 1)));
	return n == 0 ? NAN : sum / (double)n;
}

double
ls_evidence_cost_after(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, uint64_t after, uint64_t last)
{
	struct evidence_window w = { .j = j, .end = j->live_count };
	double error_s;

	while (w.end > 0 && ls_job_row(j, w.end - 1)->row.step > last)
		w.end--;
	w.first = w.end;
	while (w.first > 0 && ls_job_row(j, w.first - 1)->row.step > after)
		w.first--;
	return w.first == 0 || w.first == w.end ? NAN
						: evidence_cost(e, &w, who, &error_s);
}

/*
 * Stalls of a worker: what is seen of them in the window is what the rows of evidence
 * there must explain; what they cost is by how often they came in all, and so the step
 * time.
 */
static void
evidence_rare(const struct ls_detect_channel *ch, struct ls_gathered *g)
{
	double seen_s = g->cost_s;

	g->cost_s = ls_stall_cost(&ch->ep);
	g->step_s += g->cost_s - seen_s;
	g->cost_error_s = 0; /* it is of all of them already */
	if (seen_s > 0)
		g->gap_s = seen_s;
}

/* Step time (of a replica its own: nobody else waits for it), share of steps in which the worker was last,
 * and its mean excess over its baseline. */
static void
evidence_totals(const struct ls_engine *e, const struct evidence_window *w,
	struct ls_suspect who, const struct ls_detect_channel *ch,
	struct ls_gathered *g)
{
	bool replica = w->j->replica.on && !who.net;
	size_t rows = 0, last = 0, known = 0;
	double sum = 0;

	for (size_t i = w->first; i < w->end; i++) {
		const struct ls_live_row *r = evidence_live(w, i);
		const struct ls_cell *own =
			r != NULL && replica ? ls_row_cell(r, who.at) : NULL;

		if (r == NULL || (replica && own == NULL))
			continue;
		rows++;
		sum += replica ? (double)own->own_s : r->totals.duration_s;
		last += !who.net && r->totals.last != SIZE_MAX &&
			(r->totals.last == who.at ||
				ls_job_same_group(e, w->j, who.at, r->totals.last));
		known += r->totals.last != SIZE_MAX;
	}
	g->step_s = rows > 0 ? sum / (double)rows : w->j->detect.step_s;
	/* Who came last must be known of most steps. */
	g->slowest_ratio = who.net || rows == 0 || 2 * known < rows
		? NAN
		: (double)last / (double)rows;
	g->gap_s = evidence_gap(w, who, ch, &g->steady);
	g->cost_s = who.net ? g->gap_s
			    : fmax(evidence_cost(e, w, who, &g->cost_error_s), 0);
	if (!who.net && evidence_is_summed(w->j, who, ch))
		evidence_rare(ch, g);
	g->steps = rows;
	g->ended = w->ended;
	g->last_step = w->end > w->first ? ls_job_row(w->j, w->end - 1)->row.step : 0;
}

/*
 * Seconds per step that a counter rate of 1 s/s stands for. If counters cover only some of the steps looked at, it is scaled: gap of all steps / gap
 * of the covered ones.
 */
static double
evidence_counter_s(const struct ls_engine *e, const struct evidence_window *w,
	struct ls_suspect who, const struct ls_detect_channel *ch,
	const struct ls_gathered *g)
{
	struct evidence_window of = *w;
	double sum = 0, gap_s, error_s;
	bool steady;

	while (of.first < of.end &&
		ls_job_row(w->j, of.first)->row.begin_us < w->from_us)
		of.first++;
	if (of.first == w->first || of.first == of.end || who.net)
		return g->step_s;
	for (size_t i = of.first; i < of.end; i++)
		sum += ls_job_row(w->j, i)->totals.duration_s;
	gap_s = evidence_is_summed(w->j, who, ch) ? evidence_cost(e, &of, who, &error_s)
						  : evidence_gap(&of, who, ch, &steady);
	return gap_s > 0 ? sum / (double)(of.end - of.first) * g->gap_s / gap_s
			 : g->step_s;
}

/* Of stalls, the gap and what must explain it are those of the steps that stall: in others peers
 * do the same, perhaps, and workers differ for other reasons. Returns by how much the gap grew. */
static double
evidence_stalls(const struct ls_engine *e, struct evidence_window *w,
	struct ls_suspect who, struct ls_gathered *g)
{
	double was_s = g->gap_s, gap_s, error_s;

	w->slot = who.at;
	w->stall_s = LS_DETECT_STALL_GAP * w->j->detect.step_s;
	gap_s = evidence_cost(e, w, who, &error_s);
	if (gap_s > 0)
		g->gap_s = gap_s;
	else
		w->stall_s = 0; /* none is kept */
	return g->gap_s / was_s;
}

void
ls_evidence_gather(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us,
	struct ls_gathered *g)
{
	struct evidence_window w = evidence_window(j, who, ch, now_us);
	size_t slot = ls_suspect_slot(j, who);
	double scratch[EVIDENCE_PEERS_MAX], counter_s;

	*g = (struct ls_gathered){ .clock_err_s = ls_job_clock_err_s(e, j) };
	evidence_totals(e, &w, who, ch, g);
	counter_s = evidence_counter_s(e, &w, who, ch, g);
	if (!who.net && evidence_is_summed(j, who, ch) && g->gap_s > 0)
		counter_s *= evidence_stalls(e, &w, who, g);
	for (size_t i = w.first; i < w.end; i++)
		if (evidence_live(&w, i) != NULL)
			w.live[w.live_count++] = evidence_live(&w, i);
	LS_EACH (const struct evidence_kind, kind, evidence_kinds,
		sizeof(evidence_kinds) / sizeof(evidence_kinds[0])) {
		struct ls_evidence *row = &g->rows[g->count];

		evidence_row(e, &w, kind, slot, counter_s, scratch, row);
		if (j->replica.on && kind->signal == LS_SIGNAL_WORK)
			row->signal =
				LS_SIGNAL_SERVED; /* more of it is no imbalance: nobody waits */
		if (slot == SIZE_MAX && row->peers == 0)
			continue;
		if ((kind->phase || kind->signal == LS_SIGNAL_LOAD) &&
			isnan(row->subject) && row->peers == 0)
			continue; /* a phase that nobody marks, a load that nobody tells */
		if (j->replica.on &&
			(kind->signal == LS_SIGNAL_LATENESS ||
				kind->signal == LS_SIGNAL_WAIT))
			continue; /* they wait for nobody */
		if (slot != SIZE_MAX && isnan(row->subject))
			row->role = LS_EVIDENCE_NOT_MEASURED;
		g->counters_ripe |= kind->counter >= 0 && !isnan(row->subject);
		g->count++;
	}
}

/*
 * The worker that alone is kept from a CPU, by this counter, so much more a second than
 * before the episode, of those that the net joins; SIZE_MAX: none. Workers of one host
 * have one value of what is the host's.
 */
static size_t
evidence_kept(const struct ls_engine *e, const struct evidence_window *w, size_t at,
	const struct ls_episode *ep, unsigned metric, double least)
{
	const struct ls_job *j = w->j;
	const bool of_host = ls_metric_info(metric)->scope != LS_METRIC_SCOPE_JOB;
	struct ls_stats_best most[2] = { { -INFINITY, SIZE_MAX },
		{ -INFINITY, SIZE_MAX } };
	double *more = j->room.a, second = -INFINITY, centre;
	size_t n = 0, best;

	LS_WORKERS (e, j, one) {
		size_t i = one->slot;

		more[i] = at > 0 && j->slices.of[i] + 1 != at
			? NAN
			: evidence_rate(e, j, metric, i, w->from_us, w->to_us) -
				evidence_rate(e, j, metric, i,
					ep->start_us - EVIDENCE_COUNTERS_US,
					ep->start_us);
		ls_stats_best(most, more[i], i);
	}
	best = most[0].at;
	LS_WORKERS (e, j, one)
		if (best != SIZE_MAX && one->slot != best &&
			!(of_host && one->host == e->workers[j->slots[best]].host))
			second = fmax(second, more[one->slot]); /* a NaN is not taken */
	LS_EACH (const double, x, more, j->count)
		if (!isnan(*x))
			more[n++] = *x;
	centre = ls_stats_median(more, n);
	if (n < LS_PEERS || most[0].v - centre < least ||
		second - centre > LS_QUARTER * (most[0].v - centre))
		return SIZE_MAX;
	return best;
}

size_t
ls_evidence_net_host(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us)
{
	static const enum ls_metric kept[] = { LS_METRIC_JOB_RUNQUEUE_WAIT,
		LS_METRIC_HOST_CPU_THROTTLED };
	struct evidence_window w = evidence_window(j, who, ch, now_us);
	size_t slot = SIZE_MAX;
	struct ls_gathered g;

	evidence_totals(e, &w, who, ch, &g);
	if (w.to_us - w.from_us < LS_ENGINE_US(LS_SCALES_LEAST_S) || !(g.gap_s > 0))
		return SIZE_MAX;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]) && slot == SIZE_MAX; i++)
		slot = evidence_kept(e, &w, who.at, &ch->ep, kept[i],
			LS_MOST * g.gap_s / g.step_s);
	return slot;
}

bool
ls_evidence_resends(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us)
{
	struct evidence_window w = evidence_window(j, who, ch, now_us);
	double time_s = (double)(w.to_us - w.from_us) * 1e-6, now, before;
	int64_t start_us = ch->ep.start_us;
	struct ls_gathered g;

	evidence_totals(e, &w, who, ch, &g);
	LS_WORKERS (e, j, one) {
		if (who.at > 0 && j->slices.of[one->slot] + 1 != who.at)
			continue;
		now = evidence_rate(e, j, LS_METRIC_HOST_TCP_RETRANSMITS, one->slot,
			w.from_us, w.to_us);
		before = evidence_rate(e, j, LS_METRIC_HOST_TCP_RETRANSMITS, one->slot,
			start_us - EVIDENCE_COUNTERS_US, start_us);
		/* false for NaN */
		if (now - before > LS_FAR * sqrt((now + before) / time_s) &&
			(now - before) * g.step_s * LS_RTO_S >= LS_EXPLAINS * g.gap_s)
			return true;
	}
	return false;
}

bool
ls_evidence_ran(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	int64_t from_us, int64_t to_us)
{
	double before = evidence_rate(e, j, LS_METRIC_JOB_CPU, slot,
		from_us - EVIDENCE_COUNTERS_US, from_us);

	return evidence_rate(e, j, LS_METRIC_JOB_CPU, slot, from_us, to_us) >=
		LS_HALF * before; /* false for NaN */
}

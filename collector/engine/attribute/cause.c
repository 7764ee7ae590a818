/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/attribute/cause.h"
#include "collector/engine/params.h"
#include "proto/base/err.h"
#include "proto/base/mem.h"
#include "proto/ring/record.h"

#include <math.h>

const struct ls_cause_info *
ls_cause_info(enum ls_cause cause)
{
	static const struct ls_cause_info table[] = {
#define LS_CAUSE(id, name, title, action, command, restart) \
	{ name, title, action, command, restart },
#include "collector/engine/attribute/causes.def"
#undef LS_CAUSE
	};

	LS_ASSERT((unsigned)cause < LS_CAUSE_COUNT);
	return &table[cause];
}

const struct ls_cause_phase *
ls_cause_phase(unsigned phase)
{
	static const struct ls_cause_phase table[LS_PHASE_COUNT] = {
		[LS_PHASE_INPUT_WAIT] = { LS_CAUSE_INPUT, "phase.input_wait_s" },
		[LS_PHASE_H2D] = { LS_CAUSE_H2D, "phase.h2d_s" },
		[LS_PHASE_DISPATCH] = { LS_CAUSE_DISPATCH, "phase.dispatch_s" },
		[LS_PHASE_COMPUTE] = { LS_CAUSE_COMPUTE, "phase.compute_s" },
		[LS_PHASE_GC] = { LS_CAUSE_GC, "phase.gc_s" },
		[LS_PHASE_COMPILE] = { LS_CAUSE_COMPILE, "phase.compile_s" },
		[LS_PHASE_SYNC_WAIT] = { LS_CAUSE_INSIDE_PROGRAM, "phase.sync_wait_s" },
	};

	return phase < LS_PHASE_COUNT && table[phase].metric != NULL ? &table[phase]
								     : NULL;
}

double
ls_cause_coverage(const struct ls_evidence *row, double gap_s)
{
	return row->per_step_s <= 0 || !(gap_s > 0)
		? NAN /* as where one of the numbers is not known */
		: (row->subject - row->p50) * row->per_step_s / gap_s;
}

/* What is to be explained, and the rows by signal; of a signal without a row nothing is
 * measured. */
struct cause_case {
	struct ls_evidence *row[LS_SIGNAL_COUNT], none;
	double gap_s;
};

static void
cause_case(struct cause_case *c, struct ls_evidence *rows, size_t count, double gap_s)
{
	c->none = (struct ls_evidence){ .subject = NAN, .p50 = NAN };
	c->gap_s = gap_s;
	for (size_t i = 0; i < LS_SIGNAL_COUNT; i++)
		c->row[i] = &c->none;
	LS_EACH (struct ls_evidence, row, rows, count)
		c->row[row->signal] = row;
}

/* What the row of a signal explains; NaN: not known. */
static double
cause_covers(const struct cause_case *c, enum ls_signal signal)
{
	return ls_cause_coverage(c->row[signal], c->gap_s);
}

/* Signals that name a cause by themselves, the most specific first. extra: no worker
 * need do it. */
static const struct cause_direct {
	enum ls_signal signal;
	enum ls_cause cause;
	bool counter, extra;
} cause_direct[] = {
	{ LS_SIGNAL_CHECKPOINT, LS_CAUSE_CHECKPOINT, false, true },
	{ LS_SIGNAL_COMPILE, LS_CAUSE_COMPILE, false, true },
	{ LS_SIGNAL_GC, LS_CAUSE_GC, false, true },
	{ LS_SIGNAL_INPUT, LS_CAUSE_INPUT, false, false },
	{ LS_SIGNAL_H2D, LS_CAUSE_H2D, false, false },
	{ LS_SIGNAL_THROTTLED, LS_CAUSE_CPU_QUOTA, true, false },
	{ LS_SIGNAL_RUNQUEUE, LS_CAUSE_CPU_CONTENTION, true, false },
	{ LS_SIGNAL_DISPATCH, LS_CAUSE_DISPATCH, false, false },
};

static double
cause_confidence(double coverage)
{
	return fmin(coverage, 1) * LS_CONFIDENCE_MAX;
}

struct ls_diagnosis
ls_cause_alone(enum ls_cause cause, double coverage)
{
	bool none = cause == LS_CAUSE_UNEXPLAINED;

	return (struct ls_diagnosis){ .hypotheses = { { cause,
					      none ? 1 : cause_confidence(coverage),
					      none ? 1 : coverage } },
		.count = 1 };
}

/*
 * Above this no cause is believed. A worker that alone does something extra, which
 * takes the time, needs no other explanation: what it does uses CPU, and waits for CPU
 * in many threads at once, so that those counters may cover even more of the gap. Nor is a
 * late launch believed beyond the counters that say why it is late (counters): its threads
 * were kept from a CPU.
 */
static double
cause_ceiling(const struct cause_case *c, bool counters)
{
	double best = 0;

	LS_EACH (const struct cause_direct, direct, cause_direct,
		sizeof(cause_direct) / sizeof(cause_direct[0])) {
		const struct ls_evidence *row = c->row[direct->signal];
		double coverage = ls_cause_coverage(row, c->gap_s);

		if (coverage >= LS_EXPLAINS &&
			(counters ? direct->counter
				  : direct->extra && row->p50 <= LS_FEW * row->subject))
			best = fmax(best, cause_confidence(coverage));
	}
	return best > 0 ? best : LS_CONFIDENCE_MAX;
}

/* The same of a late launch. Not where it used as much more CPU itself: then it did more,
 * and that is what to look for. */
static double
cause_launch_ceiling(const struct cause_case *c)
{
	return cause_covers(c, LS_SIGNAL_CPU) >= LS_EXPLAINS ? LS_CONFIDENCE_MAX
							     : cause_ceiling(c, true);
}

static void
cause_add(struct ls_diagnosis *d, enum ls_cause cause, double coverage, double most)
{
	double confidence = fmin(cause_confidence(coverage), most);
	size_t at = d->count;

	if (!(coverage >= LS_FEW))
		return;
	while (at > 0 && d->hypotheses[at - 1].confidence < confidence)
		at--;
	if (at >= LS_HYPOTHESES_MAX - 1)
		return; /* the last place is for "unexplained" */
	if (d->count < LS_HYPOTHESES_MAX - 1)
		d->count++;
	for (size_t i = d->count - 1; i > at; i--)
		d->hypotheses[i] = d->hypotheses[i - 1];
	d->hypotheses[at] = (struct ls_hypothesis){ cause, confidence, coverage };
}

static void
cause_mark(struct ls_evidence *row, double coverage, enum ls_cause cause)
{
	row->cause = cause;
	if (isnan(row->subject))
		row->role = LS_EVIDENCE_NOT_MEASURED;
	else if (coverage >= LS_FEW)
		row->role = LS_EVIDENCE_SUPPORTS;
	else if (!isnan(coverage))
		row->role = LS_EVIDENCE_EXCLUDES;
}

/* Would it explain some of the gap, but is it no more than what peers differ by? One in 700 healthy ones is. */
static bool
cause_is_usual(const struct ls_evidence *row, double coverage)
{
	return coverage >= LS_FEW && row->robust_z < LS_SIGMAS; /* false for NaN */
}

/* More of something than the peers: the share of the gap which that takes at the peers' speed. */
static double
cause_more(const struct cause_case *c, enum ls_signal signal)
{
	struct ls_evidence *row = c->row[signal];
	double coverage = row->p50 > 0
		? c->row[LS_SIGNAL_OWN]->p50 * (row->subject / row->p50 - 1) / c->gap_s
		: NAN;

	cause_mark(row, coverage, LS_CAUSE_IMBALANCE);
	return coverage;
}

/*
 * What is left when wall time grew but neither CPU time nor anything that is measured of the
 * worker did. A late launch only says where the time went: a process that is stopped in it
 * launches late.
 */
static double
cause_stopped(const struct cause_case *c)
{
	double rest = cause_covers(c, LS_SIGNAL_OWN) -
		fmax(cause_covers(c, LS_SIGNAL_CPU), 0);

	if (isnan(c->row[LS_SIGNAL_CPU]->subject) ||
		isnan(c->row[LS_SIGNAL_RUNQUEUE]->subject))
		return NAN;
	LS_EACH (const struct cause_direct, direct, cause_direct,
		sizeof(cause_direct) / sizeof(cause_direct[0]))
		if (direct->cause != LS_CAUSE_DISPATCH)
			rest -= fmax(cause_covers(c, direct->signal), 0); /* 0: NaN */
	return rest;
}

static double
cause_compute(const struct cause_case *c, double imbalance)
{
	struct ls_evidence *cpu = c->row[LS_SIGNAL_CPU];
	double coverage = ls_cause_coverage(cpu, c->gap_s);

	if (cause_is_usual(cpu, coverage))
		return NAN;
	cause_mark(cpu, coverage, LS_CAUSE_COMPUTE);
	return imbalance >= LS_FEW ? NAN : coverage;
}

/* Time that no counter of the host explains: of a process that stands still, or in the
 * computation of a chip. */
static void
cause_flat(struct ls_diagnosis *d, const struct cause_case *c, bool steady,
	double imbalance, double most)
{
	double stopped = cause_stopped(c), chip = cause_covers(c, LS_SIGNAL_COMPUTE);

	if (!(stopped >= LS_EXPLAINS) || imbalance >= LS_FEW)
		return; /* else more to do explains it: on a chip, of which the host's counters know nothing */
	if (steady && chip >= LS_EXPLAINS) {
		cause_mark(c->row[LS_SIGNAL_COMPUTE], chip, LS_CAUSE_COMPUTE);
		cause_add(d, LS_CAUSE_COMPUTE, fmin(chip, stopped), most);
	} else {
		cause_add(d, LS_CAUSE_STOPPED, stopped, most);
	}
}

void
ls_cause_diagnose(struct ls_evidence *rows, size_t count, double gap_s,
	bool counters_ripe, bool steady, struct ls_diagnosis *d)
{
	struct cause_case c;
	double most, imbalance, left = 1;
	size_t at;

	*d = (struct ls_diagnosis){ 0 };
	cause_case(&c, rows, count, gap_s);
	most = cause_ceiling(&c, false);
	LS_EACH (const struct cause_direct, direct, cause_direct,
		sizeof(cause_direct) / sizeof(cause_direct[0])) {
		struct ls_evidence *row = c.row[direct->signal];
		double coverage = ls_cause_coverage(row, gap_s);

		if (direct->counter &&
			(!counters_ripe || cause_is_usual(row, coverage)))
			continue;
		cause_mark(row, coverage, direct->cause);
		cause_add(d, direct->cause, coverage,
			direct->cause == LS_CAUSE_DISPATCH && counters_ripe
				? fmin(most, cause_launch_ceiling(&c))
				: most);
	}
	/* more work in all, or more of it in one place: its fullest expert, its part of a
	 * table */
	imbalance =
		fmax(cause_more(&c, LS_SIGNAL_WORK), cause_more(&c, LS_SIGNAL_LOAD));
	cause_add(d, LS_CAUSE_IMBALANCE, imbalance, most);
	if (counters_ripe) {
		cause_add(d, LS_CAUSE_COMPUTE, cause_compute(&c, imbalance), most);
		cause_flat(d, &c, steady, imbalance, most);
	}
	LS_EACH (struct ls_hypothesis, h, d->hypotheses, d->count) {
		/* causes exclude each other: the next has at most what is left */
		h->confidence = fmin(h->confidence, left);
		left -= h->confidence;
	}
	at = d->count;
	if (d->hypotheses[0].coverage < LS_EXPLAINS)
		/* nothing explains enough: say so first */
		for (; at > 0; at--)
			d->hypotheses[at] = d->hypotheses[at - 1];
	d->hypotheses[at] = (struct ls_hypothesis){ LS_CAUSE_UNEXPLAINED, left, left };
	d->count++;
}

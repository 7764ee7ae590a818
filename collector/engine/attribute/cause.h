/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause - why a worker is late: evidence rows in, hypotheses out.
 *
 * A cause comes first only if it explains at least LS_EXPLAINS of the gap between
 * the worker and its peers; else the answer is "unexplained", with the rows that were
 * ruled out or not measured.
 *
 * Owner:   pure functions.
 * Units:   rows as their unit says; coverage is a ratio of the gap.
 * Errors:  none.
 * Limits:  LS_EVIDENCE_MAX rows, LS_HYPOTHESES_MAX hypotheses.
 * Source:  the 80 % rule: TraceML (traceopt-ai/traceml); which counters separate which
 *          cause: own recordings of real jobs with real faults.
 */
#ifndef LS_COLLECTOR_CAUSE_H
#define LS_COLLECTOR_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

#define LS_EVIDENCE_MAX 24
#define LS_HYPOTHESES_MAX 4

enum ls_cause {
#define LS_CAUSE(id, name, title, action, command, restart) LS_CAUSE_##id,
#include "collector/engine/attribute/causes.def"
#undef LS_CAUSE
	LS_CAUSE_COUNT
};

struct ls_cause_info {
	const char *name, *title, *action, *command;
	bool restart;
};

/* Words of a cause. */
const struct ls_cause_info *ls_cause_info(enum ls_cause cause);

enum ls_evidence_role {
	LS_EVIDENCE_CONTEXT,
	LS_EVIDENCE_SUPPORTS,
	LS_EVIDENCE_EXCLUDES,
	LS_EVIDENCE_NOT_MEASURED
};

/* Metric of the row LS_SIGNAL_OWN; it is also found by this in a finding that was stored. */
#define LS_EVIDENCE_OWN_WORK "own_work_s"

/* What a row speaks of; the cause rules look rows up by this. */
enum ls_signal {
	LS_SIGNAL_NONE, /* told only */
	LS_SIGNAL_LATENESS,
	LS_SIGNAL_WAIT,
	LS_SIGNAL_OWN,
	LS_SIGNAL_INPUT,
	LS_SIGNAL_H2D,
	LS_SIGNAL_DISPATCH,
	LS_SIGNAL_COMPUTE,
	LS_SIGNAL_CHECKPOINT,
	LS_SIGNAL_COMPILE,
	LS_SIGNAL_GC,
	LS_SIGNAL_WORK,
	LS_SIGNAL_LOAD,
	LS_SIGNAL_RUNQUEUE,
	LS_SIGNAL_THROTTLED,
	LS_SIGNAL_CPU,
	LS_SIGNAL_RETRANSMITS,
	LS_SIGNAL_SERVED,
	LS_SIGNAL_COUNT
};

struct ls_evidence {
	enum ls_signal signal;
	const char *metric, *unit; /* static strings */
	double subject; /* NaN = not measured */
	double p10, p50, p90; /* of the peers; NaN = not measured */
	size_t peers;
	/* factor from the unit to seconds a step; 0 = not comparable */
	double per_step_s;
	double robust_z; /* NaN where the peers do not spread */
	enum ls_evidence_role role;
	enum ls_cause
		cause; /* that it supports or excludes; LS_CAUSE_COUNT: it supports all that are told */
};

/* A phase whose growth names a cause by itself, and its row of evidence. */
struct ls_cause_phase {
	enum ls_cause cause;
	const char *metric;
};

/* NULL: of the phase (enum ls_phase) nothing is said. */
const struct ls_cause_phase *ls_cause_phase(unsigned phase);

struct ls_hypothesis {
	enum ls_cause cause;
	double confidence, coverage;
};

struct ls_diagnosis {
	struct ls_hypothesis hypotheses[LS_HYPOTHESES_MAX];
	size_t count; /* 0: not diagnosed (since a restart) */
};

/* It is this cause and no other; `unexplained` is certain. */
struct ls_diagnosis ls_cause_alone(enum ls_cause cause, double coverage);

/*
 * Names the cause of a gap of gap_s seconds a step. Sets role and cause of the rows.
 * counters_ripe: enough counter samples lie inside the episode to judge by them.
 * steady: it is late in most steps, not in a few by much: a process that is stopped is
 * not, a slow chip is.
 */
void ls_cause_diagnose(struct ls_evidence *rows, size_t count, double gap_s,
	bool counters_ripe, bool steady, struct ls_diagnosis *ret_diagnosis);

/* Share of the gap that a row explains: (subject - p50) * per_step_s / gap_s; NaN if
 * not known. */
double ls_cause_coverage(const struct ls_evidence *row, double gap_s);

#endif

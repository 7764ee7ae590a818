/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recent - sums over the recent steps of each worker of a job, brought up to date with each
 * step, so that a table of ten thousand workers does not read a million cells.
 *
 * Owner:   the engine's thread.
 * Units:   seconds.
 * Errors:  none.
 * Limits:  sums of floats in doubles: a step that leaves takes away what it added, to
 *          1e-12 s or so.
 */
#ifndef LS_COLLECTOR_RECENT_H
#define LS_COLLECTOR_RECENT_H

#include <stdint.h>
#include "collector/engine/join/steps.h"

/* What is summed of a step: seconds of it, of own work, in barriers, waiting for input; lateness and
 * blame; 1 for the last to arrive, 0 for others. */
enum ls_recent_kind {
	LS_RECENT_STEP,
	LS_RECENT_OWN,
	LS_RECENT_WAIT,
	LS_RECENT_INPUT,
	LS_RECENT_LATE,
	LS_RECENT_BLAME,
	LS_RECENT_LAST,
	LS_RECENT_KINDS
};

/* Of one worker; all 0: no step. Numbers of steps are those in which it was known. */
struct ls_recent {
	double sum[LS_RECENT_KINDS];
	uint32_t steps[LS_RECENT_KINDS];
};

struct ls_job;

/* The newest live row is in the sums of its workers from now on, and LS_RECENT_STEPS in all. */
void ls_recent_add(const struct ls_job *j);

/* The oldest live row goes: out of the sums, if it is in them. */
void ls_recent_forget(const struct ls_job *j);

/* Mean of one worker; NaN: not known. That of LAST is a share of its steps. */
double ls_recent_mean(const struct ls_recent *of, enum ls_recent_kind kind);

#endif

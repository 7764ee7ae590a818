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

/* Of one worker; all 0: no step. Numbers of steps are those in which it was measured. */
struct ls_recent {
	double step_s, own_s, wait_s, input_s, late_s, blame_s;
	uint32_t steps, inputs, lates, blames;
	uint32_t ranked; /* steps in which the last worker is known */
	uint32_t last; /* and was this one */
};

/* The same of all workers of a job, by slot, over the live rows from number first up to
 * last (not with it). */
struct ls_recent_table {
	uint64_t first, last;
	struct ls_recent of[];
};

/* Means; NaN: not measured. slowest: share of its steps in which it was last. */
struct ls_recent_means {
	double step_s, own_s, wait_s, input_s, late_s, blame_s, slowest;
};

struct ls_job;

/* Brings the sums of a job up to date by the rows that have come and gone. */
void ls_recent_rows(const struct ls_job *j);

/* The oldest live row goes: out of the sums, if it is in them. */
void ls_recent_forget(const struct ls_job *j);

/* Means of one worker. */
struct ls_recent_means ls_recent_means(const struct ls_recent *of);

#endif

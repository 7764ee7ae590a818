/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse - has a job become slower as a whole? Step times of now against those before,
 * by blocks of steps.
 *
 * What all workers share shows in no residual: input that starves all, a slower network
 * file system, a new program. Six blocks in a row of which the median step takes longer
 * by max(5 %, a step's own noise) are a finding, unless something else explains
 * them (a worker, a collective), or there is as much more work. (A little more for
 * minutes, of own work or waits, is what shared machines do to all steps, in clean runs too.)
 *
 * Owner:   one job of the engine. Pure.
 * Units:   seconds; blocks of LS_BLOCK steps.
 * Errors:  none.
 * Limits:  means of phases are over at most LS_PULSE_WORKERS workers of a step.
 * Source:  thirteen recorded runs of real jobs: clean ones stay below 0.13 with step
 *          noise of 0.10 to 0.19 (greatest excess over six blocks in a row), so below
 *          0.7 of the noise.
 */
#ifndef LS_COLLECTOR_PULSE_H
#define LS_COLLECTOR_PULSE_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/join/steps.h"
#include "collector/engine/residual/stats.h"

#define LS_PULSE_WORKERS 32

/* What steps were like: */
enum ls_pulse_value {
	LS_PULSE_STEP, /* median of the block, then a mean of blocks */
	/* mean of the block, over workers too, none of its steps more than
	 * LS_PULSE_CLIP medians */
	LS_PULSE_MEAN,
	LS_PULSE_LEAST, /* least wait of a worker: after all have arrived; NaN = not known */
	LS_PULSE_WORK, /* 0 = not told */
	LS_PULSE_PHASE, /* means over workers, one for each phase; 0 = not marked */
	LS_PULSE_VALUES = LS_PULSE_PHASE + LS_PHASE_COUNT
};

struct ls_pulse_means {
	double v[LS_PULSE_VALUES]; /* seconds, but for the work */
};

/* Since when, and what it was like since then. */
struct ls_pulse_from {
	uint64_t step, steps; /* steps: in `now`; 0 = none */
	int64_t t_us;
	struct ls_pulse_means now;
	double newest_s; /* LS_PULSE_MEAN of the newest block */
	/* a point for each block: steps from `step` to the block, its LS_PULSE_STEP */
	struct ls_stats_line line;
	double last; /* x of the newest */
};

struct ls_pulse {
	/* of the block so far: medians and means over workers, */
	double times[LS_BLOCK], mean_times[LS_BLOCK];
	struct ls_pulse_means sum;
	size_t n, phase_n, least_n; /* steps, cells and least waits in it */
	bool spoilt; /* something else is found in a step of it */
	double explained_s; /* most that a suspect holds up a step of it */
	uint64_t first_step;
	int64_t first_us;
	struct ls_pulse_means base; /* of healthy blocks */
	double noise; /* of single steps, ratio to their median */
	uint32_t blocks; /* learned */
	/* blocks in a row that are slower; while on: that are not */
	uint32_t row;
	struct ls_pulse_from since; /* slow, or will be if it goes on */
	bool on; /* slower as a whole */
};

/*
 * Takes one closed step. found: another finding holds it up; explained_s: a suspect's own
 * work does, by so much. True when a block ended with it: `on`, `base` and `since` are then
 * up to date.
 */
bool ls_pulse_step(struct ls_pulse *p, const struct ls_row *row,
	const struct ls_blame_step *totals, bool found, double explained_s);

/*
 * How much longer each step takes than the step before, in seconds, if the steps since
 * `since` climb: a line through them explains half of the present growth and is sure.
 * 0: they have made one step up.
 */
double ls_pulse_slope(const struct ls_pulse *p);

#endif

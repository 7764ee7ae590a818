/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse - has a job become slower as a whole? Its step time against its own past.
 *
 * What all workers share shows in no residual: input that starves all, a slower network
 * file system, a new program; nor does what half of a few workers share. The logarithm of the step time, as it would be
 * without the few workers that are found, named or suspected (ls_detect_costs), is a unit like a worker, but without peers: it is compared with
 * its own earlier windows (scales.h). Once it is told, only found workers are left out. It is a finding unless something else explains
 * it (these workers, a collective), or there is as much more work.
 *
 * Owner:   one job of the engine. Pure.
 * Units:   seconds; blocks: units of scales.h.
 * Errors:  none; without memory nothing is judged.
 * Limits:  means of phases are over at most LS_PULSE_WORKERS workers of a step. 14 kB a job.
 * Source:  scales.h; blocks of real pods repeat to .01 to .8 % (MLPerf logs, tests/MEASURED.md).
 */
#ifndef LS_COLLECTOR_PULSE_H
#define LS_COLLECTOR_PULSE_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/detect/detect.h"
#include "collector/engine/detect/scales.h"
#include "collector/engine/join/steps.h"
#include "collector/engine/residual/stats.h"

#define LS_PULSE_WORKERS 32
#define LS_PULSE_BLOCKS \
	64 /* newest blocks that are kept: as many as windows of scales.h */

/* What steps were like: */
enum ls_pulse_value {
	/* means of the block; no step counts more than LS_PULSE_CLIP usual ones */
	LS_PULSE_WHOLE, /* over workers, too */
	LS_PULSE_MEAN, /* likewise, as it would be without who is found */
	LS_PULSE_STEP, /* so is this, of the median worker */
	LS_PULSE_LEAST, /* least wait of a worker: after all have arrived; NaN = not known */
	LS_PULSE_WORK, /* 0 = not told */
	LS_PULSE_PHASE, /* means over workers, one for each phase; 0 = not marked */
	LS_PULSE_VALUES = LS_PULSE_PHASE + LS_PHASE_COUNT
};

struct ls_pulse_means {
	double v[LS_PULSE_VALUES]; /* seconds, but for the work */
};

struct ls_pulse_block {
	uint64_t step; /* the first, */
	int64_t t_us; /* when it began */
	uint32_t steps;
	bool spoilt; /* a step of it was left out */
	struct ls_pulse_means mean;
};

/* Since when, and what it was like since then. */
struct ls_pulse_from {
	uint64_t step, steps; /* steps: in `now`; 0 = none */
	uint64_t named; /* so many of them since it was named; */
	uint64_t gone; /* newest steps in which found workers explain more than half */
	int64_t t_us;
	uint32_t uncertainty_steps; /* of `step` */
	struct ls_pulse_means now, newest; /* newest: of the newest block */
	double was_s; /* LS_PULSE_WHOLE of the blocks just before, */
	double of_late_s; /* and of the newest ones, but for those that are gone */
	/* a point for each block: steps from `step` to the block, its LS_PULSE_STEP */
	struct ls_stats_line line;
	double last; /* x of the newest */
};

struct ls_pulse {
	struct ls_scales scales; /* one unit */
	double first_s; /* step time of the first step: what logarithms are of */
	struct ls_pulse_block block[LS_PULSE_BLOCKS],
		sum; /* the newest; and the sums of the next */
	size_t phase_n, least_n; /* cells and least waits in it */
	uint64_t blocks; /* that ended */
	struct ls_pulse_means
		before; /* blocks that are not kept, of which it was not named */
	uint32_t before_n;
	struct ls_pulse_means base; /* before it became slow */
	struct ls_pulse_from since;
	bool on; /* slower as a whole */
	bool explained; /* it ended: found workers explain it */
};

/* Frees what it holds, and can be used again. */
void ls_pulse_fini(struct ls_pulse *p);

/*
 * Takes one closed step, with the totals of ls_detect_costs; patience_s: as of scales.h; joined: what joins workers, or a stage, is
 * found: such steps are left out, as are those in which a worker is found and nobody knows when they arrive. True when a block ended with
 * it: `on`, `explained`, `base` and `since` are then up to date.
 */
bool ls_pulse_step(struct ls_pulse *p, const struct ls_row *row,
	const struct ls_blame_step *totals, const struct ls_detect *d,
	double patience_s, bool joined);

/* It is over: what is found explains it. */
void ls_pulse_end(struct ls_pulse *p);

/*
 * How much longer each step takes than the step before, in seconds, if the steps since
 * `since` climb: a line through them explains half of the present growth and is sure.
 * 0: they have made one step up.
 */
double ls_pulse_slope(const struct ls_pulse *p);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse - has a job become slower as a whole? Step times of now against those before, by blocks of steps.
 *
 * What all workers share shows in no residual: input that starves all, a slower network file system, a new
 * program. Six blocks in a row that take longer by max(5 %, 1.25 of a step's own noise) are a finding, unless
 * something else explains them (a worker, a collective), or there is as much more work.
 *
 * Owner:   one job of the engine. Pure.
 * Units:   seconds; blocks of LS_PULSE_BLOCK steps.
 * Errors:  none.
 * Limits:  means of phases are over at most LS_PULSE_WORKERS workers of a step.
 * Source:  thirteen recorded runs of real jobs: clean ones stay below 0.13 with step noise of 0.10 to 0.19
 *          (greatest excess over six blocks in a row), so below 0.7 of the noise.
 */
#ifndef LS_COLLECTOR_PULSE_H
#define LS_COLLECTOR_PULSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/steps.h"

#define LS_PULSE_BLOCK 16   /* steps */
#define LS_PULSE_WARM 8     /* blocks to learn what is normal */
#define LS_PULSE_ROW 6      /* blocks in a row, up and down */
#define LS_PULSE_WORKERS 32

/* What steps were like, on average. */
struct ls_pulse_means {
	double step_s;                   /* median of the block, then a mean of blocks */
	double phase_s[LS_PHASE_COUNT];  /* means over workers; 0 = not marked */
	double work;                     /* 0 = not told */
};

struct ls_pulse {
	double times[LS_PULSE_BLOCK];    /* of the block so far */
	struct ls_pulse_means sum;
	size_t n, phase_n;               /* steps and cells in it */
	bool spoilt;                     /* something else explains a step of it */
	uint64_t first_step;
	int64_t first_us;
	struct ls_pulse_means base;      /* of healthy blocks */
	double noise;                    /* of single steps, ratio to their median */
	uint32_t blocks;                 /* learned */
	uint32_t row;                    /* blocks in a row that are slower; while on: that are not */
	struct ls_pulse_means now;       /* mean of the blocks of that row, or since it is on */
	uint64_t since_step;
	int64_t since_us;
	uint64_t steps;                  /* in `now` */
	bool on;                         /* slower as a whole */
};

/*
 * Takes one closed step of so many seconds; explained: other findings or suspects hold it up. True when a
 * block ended with it: `on`, `base` and `now` are then up to date.
 */
bool ls_pulse_step(struct ls_pulse *p, const struct ls_row *row, double duration_s, bool explained);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow - does one worker become slower over minutes and hours? The detectors of single
 * steps follow a healthy worker's level, so a drift of a percent an hour takes them
 * along; here the level learned after the start stays.
 *
 * A block lasts LS_SLOW_BLOCK steps and LS_SLOW_BLOCK_US at least. Of each block and
 * worker the mean residual of its own work and of its wait (durations: no clock can
 * drift into them), of which the lesser counts, less what it was in the first
 * LS_SLOW_WINDOW blocks. The median of the newest LS_SLOW_WINDOW blocks is its drift.
 * It is a finding when it is at least LS_SLOW_LEAST of a step and so many times as much
 * as the drifts of the others differ, and as blocks wander. When many workers drift at
 * once, and they are no group, it is the structure of the job, and nobody is named.
 *
 * Owner:   one job of the engine. Pure: time comes in, nothing goes out but the state.
 * Units:   ratios to the step time; microseconds since the epoch; steps.
 * Errors:  -ENOMEM.
 * Limits:  LS_WORKERS_MAX workers, 200 bytes each.
 * Source:  noise of a block: bench_detect --table null. Recorded clean runs of 4 and 8
 *          real workers on one machine: blocks wander by 1.3 to 3.1 % (deviation),
 *          medians of eight of them by up to 4.7 %, so by 2.4 deviations.
 */
#ifndef LS_COLLECTOR_SLOW_H
#define LS_COLLECTOR_SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/residual/blame.h"
#include "collector/engine/detect/detect.h"
#include "proto/limits.h"

#define LS_SLOW_BLOCK 32u /* steps */
/* nothing drifts within seconds: short steps make long blocks */
#define LS_SLOW_BLOCK_US 32000000ll
#define LS_SLOW_WINDOW 8u /* blocks */
#define LS_SLOW_LEAST 0.005 /* of the step time */

/* Of one worker, in the block so far. */
struct ls_slow_sum {
	float own_s, wait_s;
	uint32_t n;
};

struct ls_slow_worker {
	/* residuals of the block before: single steps count as far as they are near */
	float own_ref_s, wait_ref_s;
	float base_own_s, base_wait_s; /* what they were at first */
	float base_step_s; /* and the step time then */
	/* own and wait of the first blocks, until the base is known */
	float first[2][LS_SLOW_WINDOW];
	float block[LS_SLOW_WINDOW]; /* drift of the newest blocks, ratios */
	/* first blocks; newest ones, and where the next one goes */
	uint8_t learned, known, at;
	/* blocks in a row that are not high, up to two */
	uint8_t below;
	enum ls_detect_level level;
	bool told; /* the judge's */
	/* the judge's: one of a group of which most drift */
	bool grouped;
	/* the judge's: the newest step when it was first seen to be found; 0 = it is
	 * not */
	uint64_t seen_step;
	/* mean square of the drift of blocks, less heap */
	float wander;
	uint32_t blocks; /* in it */
	/* median of the newest blocks; NaN = not known */
	float drift;
	uint32_t high; /* blocks since it began to be high */
	uint64_t since_step; /* when that was */
	int64_t since_us;
	float since; /* how much it was then */
};

struct ls_slow {
	struct ls_slow_sum *sum; /* by slot */
	struct ls_slow_worker *worker;
	double *scratch;
	size_t count, capacity;
	uint32_t n; /* steps of the block so far */
	uint32_t block_steps; /* and of the one before */
	double step_sum_s;
	uint64_t first_step;
	int64_t first_us;
	uint64_t base_step; /* first step that counts */
	int64_t base_us;
	/* of the last look: from here on it is a finding */
	double limit;
	bool parted; /* workers lie in two heaps */
	/* the median drift of the lower one; 0: there is one */
	double heap;
	size_t open; /* findings */
	/* so many drift that single workers would not be named */
	bool several;
};

/* Frees what it holds; it can be used again from zero. */
void ls_slow_fini(struct ls_slow *s);

/* Makes room for n workers, new ones have learned nothing; -ENOMEM. */
int ls_slow_reserve(struct ls_slow *s, size_t n) LS_MUSTCHECK;

/* Forgets all of one worker (it moved to another host). */
void ls_slow_reset_worker(struct ls_slow *s, size_t slot);

/*
 * Takes one judged step after the detector has: residual[n] as of blame.h. Workers of
 * whom the detector finds something are left out as long as that lasts. True when a
 * block ended with it: levels are then up to date.
 */
bool ls_slow_step(struct ls_slow *s, const struct ls_detect *d, uint64_t step,
	int64_t t_us, const struct ls_blame *residual, size_t n, double duration_s);

/* Of one that is found: did it come little by little, and when did it begin? */
bool ls_slow_onset(const struct ls_slow *s, size_t slot, uint64_t *ret_step,
	int64_t *ret_us);

#endif

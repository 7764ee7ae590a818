/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_base - what is usual: of a stream of numbers, and what a worker is like when it is
 * healthy, its baselines and the noise of its residual. Shared by the parts of detect, and
 * nobody else.
 *
 * Owner:   a detector (detect.h).
 * Units:   seconds for baselines, ratios to the step time for noise; steps.
 * Errors:  none.
 * Limits:  none.
 * Source:  detect.h.
 */
#ifndef LS_COLLECTOR_DETECT_BASE_H
#define LS_COLLECTOR_DETECT_BASE_H

#include "collector/engine/detect/detect.h"
#include "collector/engine/residual/stats.h"

#define LS_DETECT_BASE_BLOCK (LS_DETECT_WARM / 2) /* steps of a block mean */

/* Takes one of a stream's first numbers; true once they are learned, then the rest changes nothing. */
bool ls_detect_usual(struct ls_detect_usual *u, double v);

/* Takes one of a worker's first steps; true while it is still learning. */
bool ls_detect_base_warm(struct ls_detect *d, struct ls_detect_worker *w,
	const struct ls_blame *r);

/*
 * Baseline and noise follow a healthy worker slowly. A baseline is the mean of all
 * steps so far until it has seen enough of them: the first ones, while a job starts,
 * weigh no more than others. While something is found of others, it may be that which
 * moves a worker: what it is moved by then is learned apart. When that is over, who
 * stays there has a new baseline.
 */
void ls_detect_base_learn(struct ls_detect *d, struct ls_detect_worker *w,
	const struct ls_blame *r, double residual_s, double x, bool calm);

/* Takes out of the baselines what own work has added above usual_s: since first_own_s; born: above the peers. Returns it. */
double ls_detect_base_reset(struct ls_detect_worker *w, bool born, double usual_s);

/* Long-run noise over that of one step: 1 for white noise, more where loads wander. */
double ls_detect_base_inflation(struct ls_detect *d);

/*
 * A step of n workers is over. When the first ones have learned, the residual is chosen
 * and their baselines are set; fresh: somebody has learned them just now. Of those,
 * what is theirs by being slow from the start is no baseline.
 */
void ls_detect_base_step(struct ls_detect *d, size_t n, bool clocks_ok, bool fresh);

#endif

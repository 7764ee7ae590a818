/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall - what stalls that come now and then cost a step, and whether those of today
 * are those of before.
 *
 * An episode of stalls begins with one and is looked at when the next one comes, so
 * that hits a step say too much: of four hits two are there by the way it is counted.
 * Stalls that are rare stay away for long now and then, and seem to be over: then the
 * detector begins a new episode of the same thing.
 *
 * Owner:   pure functions.
 * Units:   seconds; steps.
 * Errors:  none.
 * Limits:  none of its own.
 * Source:  counts until the r-th success: (r - 1) / (n - 1) is the unbiased estimate of
 *          a rate, Haldane (1945).
 */
#ifndef LS_COLLECTOR_STALL_H
#define LS_COLLECTOR_STALL_H

#include "collector/engine/params.h"
#include "collector/engine/detect/detect.h"

/* Seconds lost a step, on average since the first of them: their mean times how often
 * they come. */
double ls_stall_cost(const struct ls_episode *ep);

/*
 * Is `now` the same thing as `before`, which ended earlier? Then the pause between them
 * is none that its own rate does not make: at most LS_RARE mean gaps of both
 * together.
 */
bool ls_stall_goes_on(const struct ls_episode *before, const struct ls_episode *now);

/* Makes one episode of them. */
void ls_stall_join(const struct ls_episode *before, struct ls_episode *now);

#endif

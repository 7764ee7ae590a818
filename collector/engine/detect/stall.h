/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall - what stalls that come now and then cost a step.
 *
 * An episode begins with a stall and is looked at when another comes, so hits / steps
 * is too high: of four hits, two are there only by how episodes are cut.
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

#endif

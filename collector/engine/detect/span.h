/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span - where, among the steps of an episode, an excess begins and ends.
 *
 * A detector opens an episode a little early, on noise, and holds it for a while after
 * its end. Steps in which there is nothing any more would dilute what was there: its
 * mean, its cost, the rates beside it.
 *
 * Owner:   pure functions; arrays belong to the caller.
 * Units:   the excess in any unit; numbers of steps.
 * Errors:  none.
 * Limits:  none of its own.
 * Source:  the point of change that explains a series best is where the sum of (value -
 *          half the shift) is greatest: Page (1954), Hinkley (1970).
 */
#ifndef LS_COLLECTOR_SPAN_H
#define LS_COLLECTOR_SPAN_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>

/* steps at the beginning that may be none of it */
#define LS_SPAN_EARLY_MAX (LS_DETECT_WARM / 2)

struct ls_span {
	size_t first, end;
	bool ended; /* steps after `end` are surely none of it */
};

/*
 * excess[n], signed, in order of steps; NaN = not known. scratch[n]. Where nothing can
 * be said the span is the whole. The end is believed only if what follows is quiet for
 * longer than any stretch before it: what comes and goes is not over yet.
 */
struct ls_span ls_span_find(const double *excess, size_t n, double *scratch);

#endif

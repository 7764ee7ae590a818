/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onset - a series of means has grown: by one step up, or along a line from nothing?
 *
 * Two shapes with as many unknowns each (level before, size, when it began) are fitted by least
 * squares:
 *
 *     step  before, then before + size. The window in which it begins may have a part of both.
 *     line  before, then before + size * (windows since then).
 *
 * The step is believed, unless what it leaves over is more than what the line leaves over by nine
 * times the variance of a window. Then a step, of whatever size, is called a line in at most 0.13 % of cases: if the truth is a step, the difference of the two sums, over that variance, has the mean -d
 * and the variance 4 d; d grows with the size of the step. It exceeds c in at most P(normal >
 * sqrt(c)) of cases: at d = c.
 *
 * Owner:   nobody: pure functions.
 * Units:   the unit of the series; windows.
 * Errors:  none.
 * Limits:  LS_ONSET_MIN to LS_ONSET_MAX windows; work grows with the square of n.
 * Source:  likelihood ratio of two models that are not nested: Cox (1962). Measured rates of error:
 *          collector/engine/PATTERNS.md (check_onset).
 */
#ifndef LS_COLLECTOR_ONSET_H
#define LS_COLLECTOR_ONSET_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>

#define LS_ONSET_MAX LS_DETECT_WARM

struct ls_onset {
	bool known; /* there are enough windows, and they grew */
	bool gradual; /* along a line */
	double at; /* windows of the series before it began */
	/* range of `at` in which the shape fits no worse than by nine variances */
	double early, late;
};

/* Of v[n], the oldest first. */
struct ls_onset ls_onset_of(const double *v, size_t n);

#endif

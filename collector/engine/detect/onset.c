/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/onset.h"
#include "collector/engine/residual/stats.h"

#include <math.h>

/* variances of a window: a step is called a line in 0.13 % of cases */
#define ONSET_SURE (LS_SIGMAS * LS_SIGMAS)

/* Squares of v[n] about their mean, and what x explains of these: that of a line from `at` on. */
static double
onset_squares(const double *v, size_t n, size_t at, double *ret_mean,
	double *ret_explained)
{
	struct ls_stats_line l = { 0 };
	double up;

	for (size_t i = 0; i < n; i++)
		ls_stats_line_add(&l, i < at ? 0 : (double)(i - at) + 0.5, v[i]);
	l = ls_stats_line_about_mean(&l);
	up = fmax(l.xy, 0);
	*ret_mean = l.y / l.n;
	*ret_explained = up * up / l.xx;
	return l.yy;
}

/* What one step up in window `at` leaves over; *ret_part: so much of that window is before it. */
static double
onset_step(const double *v, size_t n, size_t at, double *ret_part)
{
	double before, after = v[at], off, none, left;

	left = onset_squares(v, at, at, &before, &none);
	if (at + 1 < n)
		left += onset_squares(v + at + 1, n - at - 1, 0, &after, &none);
	*ret_part = fmin(fmax((after - v[at]) / (after - before), 0), 1);
	off = v[at] - after + *ret_part * (after - before);
	return after > before ? left + off * off : INFINITY;
}

struct ls_onset
ls_onset_of(const double *v, size_t n)
{
	double left[2][LS_ONSET_MAX], part[LS_ONSET_MAX], limit, mean;
	struct ls_onset o = { .late = (double)n };
	size_t best[2] = { 1, 1 };

	if (n < LS_ONSET_MIN)
		return o;
	for (size_t at = 1; at < n; at++) {
		left[0][at] = onset_step(v, n, at, &part[at]);
		left[1][at] = onset_squares(v, n, at, &mean, &limit);
		left[1][at] -= limit;
		for (int k = 0; k < 2; k++)
			best[k] = left[k][at] < left[k][best[k]] ? at : best[k];
	}
	limit = ONSET_SURE * fmin(left[0][best[0]], left[1][best[1]]) / ((double)n - 3);
	o.known = left[0][best[0]] < INFINITY;
	o.gradual = o.known && left[0][best[0]] - left[1][best[1]] > limit;
	o.at = (double)best[o.gradual] + (o.gradual ? 0 : part[best[0]]);
	o.early = o.late = o.at;
	for (size_t at = 1; at < n; at++)
		if (left[o.gradual][at] <= left[o.gradual][best[o.gradual]] + limit) {
			o.early = fmin(o.early, (double)at);
			o.late = fmax(o.late, (double)(at + 1));
		}
	return o;
}

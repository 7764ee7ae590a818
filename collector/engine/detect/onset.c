/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/onset.h"

#include <math.h>

#define ONSET_SURE \
	9.0 /* variances of a window: a step called a line in 0.13 % of cases */

/* Sums over v[n] of x, v and their products; x is that of a line from `at` on. */
struct onset_sums {
	double x, y, xx, xy, yy;
};

static struct onset_sums
onset_sums(const double *v, size_t n, size_t at)
{
	struct onset_sums s = { 0 };

	for (size_t i = 0; i < n; i++) {
		double x = i < at ? 0 : (double)(i - at) + 0.5;

		s.x += x;
		s.y += v[i];
		s.xx += x * x;
		s.xy += x * v[i];
		s.yy += v[i] * v[i];
	}
	return s;
}

/* What a line from `at` on leaves over: a sum of squares. */
static double
onset_line(const double *v, size_t n, size_t at)
{
	struct onset_sums s = onset_sums(v, n, at);
	double m = (double)n, xy = fmax(s.xy - s.x * s.y / m, 0);

	return s.yy - s.y * s.y / m - xy * xy / (s.xx - s.x * s.x / m);
}

/* What one step up in window `at` leaves over; *ret_part: so much of that window is before it. */
static double
onset_step(const double *v, size_t n, size_t at, double *ret_part)
{
	struct onset_sums low = onset_sums(v, at, at),
			  high = onset_sums(v + at + 1, n - at - 1, 0);
	double before = low.y / (double)at,
	       after = at + 1 == n ? v[at] : high.y / (double)(n - at - 1),
	       part = fmin(fmax((after - v[at]) / (after - before), 0), 1),
	       off = v[at] - after + part * (after - before);

	*ret_part = part;
	return after > before
		? low.yy - low.y * before + high.yy - high.y * after + off * off
		: INFINITY;
}

/* Either of them. */
static double
onset_left(const double *v, size_t n, size_t at, bool line, double *ret_part)
{
	*ret_part = 0;
	return line ? onset_line(v, n, at) : onset_step(v, n, at, ret_part);
}

/* Where the shape leaves least; what that is. */
static double
onset_best(const double *v, size_t n, bool line, double *ret_at)
{
	double best = INFINITY, part;

	for (size_t at = 1; at < n; at++) {
		double left = onset_left(v, n, at, line, &part);

		if (left < best) {
			best = left;
			*ret_at = (double)at + part;
		}
	}
	return best;
}

struct ls_onset
ls_onset_of(const double *v, size_t n)
{
	struct ls_onset o = { .early = 0, .late = (double)n };
	double step, line, line_at = 0, limit, part;

	if (n < 4)
		return o;
	step = onset_best(v, n, false, &o.at);
	line = onset_best(v, n, true, &line_at);
	limit = ONSET_SURE * fmin(step, line) / ((double)n - 3);
	o.known = step < INFINITY;
	o.gradual = o.known && step - line > limit;
	if (o.gradual)
		o.at = line_at;
	o.early = o.late = o.at;
	limit += o.gradual ? line : step;
	for (size_t at = 1; at < n; at++)
		if (onset_left(v, n, at, o.gradual, &part) <= limit) {
			o.early = fmin(o.early, (double)at);
			o.late = fmax(o.late, (double)(at + 1));
		}
	return o;
}

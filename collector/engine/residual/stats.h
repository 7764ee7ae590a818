/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats - order statistics, and tails of Student's t and of the binomial distribution.
 *
 * Owner:   pure functions; arrays belong to the caller.
 * Units:   those of the input.
 * Errors:  none; empty input gives NaN.
 * Limits:  none; O(n) on average.
 * Source:  selection by sampled pivots: Floyd and Rivest, Communications of the ACM 18
 *          (1975), "Expected time bounds for selection". Tail: Abramowitz and Stegun (1972), 26.7.3 and
 *          26.7.4.
 */
#ifndef LS_COLLECTOR_STATS_H
#define LS_COLLECTOR_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* 1 / 0.6745: median absolute deviation to standard deviation of a Gaussian. */
#define LS_MAD_TO_SIGMA 1.4826
/* sqrt(pi / 2): mean absolute deviation to standard deviation of a Gaussian. */
#define LS_MEAN_ABS_TO_SIGMA 1.2533

/* Mean of what is a number; NaN of none. */
double ls_stats_mean(const double *v, size_t n);

/* Median of v; v is reordered. */
double ls_stats_median(double *v, size_t n);

/* The q-quantile (0..1, linear between neighbours) of v, which is reordered; NaN of none. */
double ls_stats_quantile(double *v, size_t n, double q);

/*
 * What the median of the others needs to know of n values, n >= 2; v is reordered.
 * Below, at and above the middle: of an even number, two of them are the middle.
 */
struct ls_stats_middle {
	double below, at, above;
	bool odd;
};
void ls_stats_middle(double *v, size_t n, struct ls_stats_middle *ret_middle);

/* Median of those values. */
static inline double
ls_stats_median_of(const struct ls_stats_middle *m)
{
	return m->odd ? m->at : (m->below + m->at) / 2;
}

/* Median of those values without one of the value x (which is among them). */
double ls_stats_median_without(const struct ls_stats_middle *m, double x);

/* Median of |v - centre|; v is overwritten. */
double ls_stats_mad(double *v, size_t n, double centre);

/* A value and where it is: one of the two greatest of some. */
struct ls_stats_best {
	double v;
	size_t at;
};

/* Takes one more; best[0] is the greatest so far, the earliest of equals. */
static inline void
ls_stats_best(struct ls_stats_best best[2], double v, size_t at)
{
	if (v > best[0].v) {
		best[1] = best[0];
		best[0] = (struct ls_stats_best){ v, at };
	} else if (v > best[1].v) {
		best[1] = (struct ls_stats_best){ v, at };
	}
}

/* Sums over points (x, y), and how they scatter about their mean. */
struct ls_stats_line {
	double n, x, y, xx, xy, yy;
};

static inline void
ls_stats_line_add(struct ls_stats_line *l, double x, double y)
{
	l->n++;
	l->x += x;
	l->y += y;
	l->xx += x * x;
	l->xy += x * y;
	l->yy += y * y;
}

/* The same sums about the mean; n, x and y as they are. */
static inline struct ls_stats_line
ls_stats_line_about_mean(const struct ls_stats_line *l)
{
	return (struct ls_stats_line){ l->n, l->x, l->y, l->xx - l->x * l->x / l->n,
		l->xy - l->x * l->y / l->n, l->yy - l->y * l->y / l->n };
}

/* x held within -limit..limit. */
static inline double
ls_stats_clip(double x, double limit)
{
	return x > limit ? limit : x < -limit ? -limit : x;
}

/* Upper tail of Student's t with so many degrees of freedom, at least 1. */
double ls_stats_student(double t, unsigned freedom);

/* The probability that k or more of n things happen, each with probability `each`. */
double ls_stats_binomial(unsigned n, unsigned k, double each);

#endif

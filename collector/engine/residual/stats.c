/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <math.h>

#define STATS_FEW 400u /* values */
#define STATS_SAMPLE 63u /* of more than these */
#define STATS_MARGIN 4u /* of the sample, beyond what is looked for */

/* Moves what is less than the pivot (or equal, too: with_equal) to the front; returns
 * how many. Nothing is guessed: no branches. */
static size_t
stats_part(double *v, size_t n, double pivot, bool with_equal)
{
	size_t less = 0;

	for (size_t i = 0; i < n; i++) {
		double x = v[i];

		v[i] = v[less];
		v[less] = x;
		less += with_equal ? x <= pivot : x < pivot;
	}
	return less;
}

static double stats_select(double *v, size_t n, size_t k);

/* A value that is a little beyond the k-th smallest of many, seen from the nearer end,
 * most likely. */
static double
stats_pivot(const double *v, size_t n, size_t k)
{
	double sample[STATS_SAMPLE];
	size_t at = k * STATS_SAMPLE / n;

	for (size_t i = 0; i < STATS_SAMPLE; i++)
		sample[i] = v[i * n / STATS_SAMPLE];
	if (2 * k < n)
		at = at + STATS_MARGIN < STATS_SAMPLE ? at + STATS_MARGIN
						      : STATS_SAMPLE - 1;
	else
		at = at > STATS_MARGIN ? at - STATS_MARGIN : 0;
	return stats_select(sample, STATS_SAMPLE, at);
}

/*
 * Afterwards v[k] is the k-th smallest, none before it is greater and none behind it is
 * less. Many are narrowed down first, by pivots from samples (Floyd and Rivest, 1975):
 * one and a half comparisons a value.
 */
static double
stats_select(double *v, size_t n, size_t k)
{
	while (n > 1) {
		double pivot = n > STATS_FEW ? stats_pivot(v, n, k) : v[n / 2];
		size_t less = stats_part(v, n, pivot, false);

		if (less == 0) {
			less = stats_part(v, n, pivot, true);
			/* 0: it is no number; nobody may ask for that, but it ends */
			if (k < less || less == 0)
				return pivot;
		}
		if (k < less) {
			n = less;
		} else {
			v += less;
			k -= less;
			n -= less;
		}
	}
	return v[k];
}

double
ls_stats_quantile(double *v, size_t n, double q)
{
	double at = q * (double)(n - 1), lower, upper;
	size_t k = n == 0 ? 0 : (size_t)at;

	if (n == 0)
		return NAN;
	lower = stats_select(v, n, k);
	if (k + 1 >= n)
		return lower;
	upper = stats_select(v + k + 1, n - k - 1,
		0); /* none behind k is less than it */
	return lower + (at - floor(at)) * (upper - lower);
}

double
ls_stats_mean(const double *v, size_t n)
{
	double sum = 0;
	size_t known = 0;

	LS_EACH (const double, x, v, n) {
		sum += isnan(*x) ? 0 : *x;
		known += isnan(*x) ? 0 : 1;
	}
	return sum / (double)known; /* NaN of none */
}

void
ls_stats_middle(double *v, size_t n, struct ls_stats_middle *m)
{
	size_t k = n / 2;

	m->odd = n % 2 != 0;
	m->at = stats_select(v, n, k);
	m->below = v[0];
	for (size_t i = 1; i < k; i++)
		m->below = v[i] > m->below ? v[i] : m->below;
	m->above = m->at;
	if (!m->odd)
		return;
	m->above = v[k + 1];
	for (size_t i = k + 2; i < n; i++)
		m->above = v[i] < m->above ? v[i] : m->above;
}

double
ls_stats_median(double *v, size_t n)
{
	struct ls_stats_middle m;

	if (n < 2)
		return n == 0 ? NAN : v[0];
	ls_stats_middle(v, n, &m);
	return ls_stats_median_of(&m);
}

double
ls_stats_median_without(const struct ls_stats_middle *m, double x)
{
	if (!m->odd) /* an odd number is left */
		return x <= m->below ? m->at : m->below;
	if (x < m->at)
		return (m->at + m->above) / 2;
	return x > m->at ? (m->below + m->at) / 2 : (m->below + m->above) / 2;
}

double
ls_stats_mad(double *v, size_t n, double centre)
{
	LS_EACH (double, x, v, n)
		*x = fabs(*x - centre);
	return ls_stats_median(v, n);
}

double
ls_stats_student(double t, unsigned freedom)
{
	double angle = atan(t / sqrt(freedom)), c = cos(angle);
	bool odd = freedom % 2 == 1;
	double term = odd ? c : 1, sum = freedom == 1 ? 0 : term;

	for (unsigned k = odd ? 2 : 1; k + 1 < freedom; k += 2) {
		term *= c * c * k / (k + 1);
		sum += term;
	}
	sum *= sin(angle);
	return 0.5 - 0.5 * (odd ? (angle + sum) * M_2_PI : sum);
}

double
ls_stats_binomial(unsigned n, unsigned k, double each)
{
	double term, sum = 0;

	if (!(each < 1) || k == 0)
		return 1;
	term = exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) +
		k * log(each) + (n - k) * log1p(-each));
	for (; k <= n; k++) {
		sum += term;
		term *= (n - k) / (k + 1.0) * each / (1 - each);
	}
	return sum;
}

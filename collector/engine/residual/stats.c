/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/residual/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STATS_BINS 1024u /* of ten values each, where thousands are spread evenly */
#define STATS_FEW 400u /* values */
#define STATS_SAMPLE 63u /* of more than these */
#define STATS_MARGIN 4u /* of the sample, beyond what is looked for */

static int
stats_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
ls_stats_sort(double *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof(*v), stats_compare);
}

static void
stats_swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

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

/* A value that is a little beyond the k-th smallest of many, seen from the nearer end,
 * most likely. */
static double
stats_pivot(const double *v, size_t n, size_t k)
{
	double sample[STATS_SAMPLE];
	size_t at = k * STATS_SAMPLE / n;

	for (size_t i = 0; i < STATS_SAMPLE; i++) {
		double x = v[i * n / STATS_SAMPLE];
		size_t j = i;

		for (; j > 0 && sample[j - 1] > x; j--)
			sample[j] = sample[j - 1];
		sample[j] = x;
	}
	if (2 * k < n)
		return sample[at + STATS_MARGIN < STATS_SAMPLE ? at + STATS_MARGIN
							       : STATS_SAMPLE - 1];
	return sample[at > STATS_MARGIN ? at - STATS_MARGIN : 0];
}

/* Hoare's selection with the median of three, of few values. */
static double
stats_select_few(double *v, size_t n, size_t k)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2, i = lo, j = hi;
		double pivot;

		if (v[mid] < v[lo])
			stats_swap(&v[mid], &v[lo]);
		if (v[hi] < v[lo])
			stats_swap(&v[hi], &v[lo]);
		if (v[hi] < v[mid])
			stats_swap(&v[hi], &v[mid]);
		pivot = v[mid];
		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			stats_swap(&v[i++], &v[j--]);
		}
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return v[k];
}

/*
 * Afterwards v[k] is the k-th smallest, none before it is greater and none behind it is
 * less. Many are narrowed down first, by pivots from samples (Floyd and Rivest, 1975):
 * one and a half comparisons a value.
 */
static double
stats_select(double *v, size_t n, size_t k)
{
	while (n > STATS_FEW) {
		double pivot = stats_pivot(v, n, k);
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
	return stats_select_few(v, n, k);
}

static inline double
stats_between(double lower, double upper, double at)
{
	return lower + (at - floor(at)) * (upper - lower);
}

double
ls_stats_quantile(double *v, size_t n, double q)
{
	double at, lower, upper;
	size_t k;

	if (n == 0)
		return NAN;
	at = q * (double)(n - 1);
	k = (size_t)at;
	lower = stats_select(v, n, k);
	if (k + 1 >= n)
		return lower;
	upper = v[k + 1]; /* none behind k is less than it */
	for (size_t i = k + 2; i < n; i++)
		upper = v[i] < upper ? v[i] : upper;
	return stats_between(lower, upper, at);
}

/* Four sums, least and greatest side by side: none waits for the one before. */
static struct ls_stats_spread
stats_spread_of(const double *v, size_t n)
{
	double sum[4] = { 0 }, min[4], max[4];
	size_t i, k;

	for (k = 0; k < 4; k++)
		min[k] = max[k] = v[0];
	for (i = 0; i + 4 <= n; i += 4)
		for (k = 0; k < 4; k++) {
			sum[k] += v[i + k];
			min[k] = v[i + k] < min[k] ? v[i + k] : min[k];
			max[k] = v[i + k] > max[k] ? v[i + k] : max[k];
		}
	for (; i < n; i++) {
		sum[0] += v[i];
		min[0] = v[i] < min[0] ? v[i] : min[0];
		max[0] = v[i] > max[0] ? v[i] : max[0];
	}
	for (k = 1; k < 4; k++) {
		min[0] = min[k] < min[0] ? min[k] : min[0];
		max[0] = max[k] > max[0] ? max[k] : max[0];
	}
	return (struct ls_stats_spread){ min[0], max[0],
		(sum[0] + sum[1] + (sum[2] + sum[3])) / (double)n };
}

/* Values by size, roughly: bins of the same width from the least to the greatest. */
struct stats_bins {
	double min, scale;
	uint32_t before[STATS_BINS + 1]; /* values in the bins before */
	uint32_t end[STATS_BINS]; /* of those gathered of a bin */
	bool wanted[STATS_BINS];
};

static inline size_t
stats_bin(const struct stats_bins *b, double v)
{
	return (size_t)(int)((v - b->min) * b->scale);
}

/* False: too few for it to be worth it, or they are not to be told apart so. */
static bool
stats_bins_fill(struct stats_bins *b, const double *v, size_t n,
	const struct ls_stats_spread *s)
{
	if (n < STATS_BINS / 4 || n > UINT32_MAX || !isfinite(s->mean))
		return false;
	b->min = s->min;
	b->scale = (STATS_BINS - 1) / (s->max - s->min);
	if (!isnormal(b->scale))
		return false;
	memset(b->before, 0, sizeof(b->before));
	memset(b->wanted, 0, sizeof(b->wanted));
	for (size_t i = 0; i < n; i++)
		b->before[stats_bin(b, v[i]) + 1]++;
	for (size_t i = 0; i < STATS_BINS; i++)
		b->before[i + 1] += b->before[i];
	return true;
}

/* The bin of the k-th smallest. */
static size_t
stats_bins_of(const struct stats_bins *b, size_t k)
{
	size_t low = 0, high = STATS_BINS, mid;

	while (high - low > 1) {
		mid = (low + high) / 2;
		if (b->before[mid] <= k)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* The values of the bins that are wanted, bin by bin. */
static void
stats_bins_gather(struct stats_bins *b, const double *v, size_t n, double *work)
{
	uint32_t at = 0;

	for (size_t i = 0; i < STATS_BINS; i++) {
		b->end[i] = at;
		at += b->wanted[i] ? b->before[i + 1] - b->before[i] : 0;
	}
	for (size_t i = 0; i < n; i++) {
		size_t bin = stats_bin(b, v[i]);

		if (b->wanted[bin])
			work[b->end[bin]++] = v[i];
	}
}

static double
stats_bins_at(const struct stats_bins *b, double *work, size_t k)
{
	size_t bin = stats_bins_of(b, k), n = b->before[bin + 1] - b->before[bin];

	return stats_select(work + b->end[bin] - n, n, k - b->before[bin]);
}

void
ls_stats_spread(double *v, size_t n, double *work, const double *q, size_t quantiles,
	double *ret_quantiles, struct ls_stats_spread *ret_spread)
{
	struct stats_bins bins;
	size_t i, k;

	*ret_spread = n > 0 ? stats_spread_of(v, n)
			    : (struct ls_stats_spread){ NAN, NAN, NAN };
	if (!stats_bins_fill(&bins, v, n, ret_spread)) {
		for (i = 0; i < quantiles; i++)
			ret_quantiles[i] = ls_stats_quantile(v, n, q[i]);
		return;
	}
	for (i = 0; i < quantiles; i++) {
		k = (size_t)(q[i] * (double)(n - 1));
		bins.wanted[stats_bins_of(&bins, k)] = true;
		bins.wanted[stats_bins_of(&bins, k + 1 < n ? k + 1 : k)] = true;
	}
	stats_bins_gather(&bins, v, n, work);
	for (i = 0; i < quantiles; i++) {
		double at = q[i] * (double)(n - 1), lower;

		k = (size_t)at;
		lower = stats_bins_at(&bins, work, k);
		ret_quantiles[i] = k + 1 >= n
			? lower
			: stats_between(lower, stats_bins_at(&bins, work, k + 1), at);
	}
}

size_t
ls_stats_known(const float *v, size_t n, double *copy)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			copy[known++] = (double)v[i];
	return known;
}

double
ls_stats_median(double *v, size_t n)
{
	double upper, lower;

	if (n == 0)
		return NAN;
	upper = stats_select(v, n, n / 2);
	if (n % 2 != 0)
		return upper;
	lower = v[0];
	for (size_t i = 1; i < n / 2; i++)
		lower = v[i] > lower ? v[i] : lower;
	return (lower + upper) / 2;
}

double
ls_stats_quantile_sorted(const double *sorted, size_t n, double q)
{
	double at, low;
	size_t i;

	if (n == 0)
		return NAN;
	at = q * (double)(n - 1);
	low = floor(at);
	i = (size_t)low;
	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (at - low) * (sorted[i + 1] - sorted[i]);
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
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - centre);
	return ls_stats_median(v, n);
}

double
ls_stats_clip(double x, double limit)
{
	return x > limit ? limit : x < -limit ? -limit : x;
}

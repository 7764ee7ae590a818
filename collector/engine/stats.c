/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/stats.h"

#include <math.h>
#include <stdlib.h>

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

/* Hoare's selection with the median of three: afterwards v[k] is the k-th smallest. */
static double
stats_select(double *v, size_t n, size_t k)
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
	return lower + (at - (double)k) * (upper - lower);
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

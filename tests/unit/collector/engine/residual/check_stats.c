/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/residual/stats.h"

#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 41, ROUNDS = 50 };

/* Numbers of a fixed sequence, with many equal ones when few is small. */
static void
fill(double *v, size_t n, uint64_t *state, unsigned few)
{
	for (size_t i = 0; i < n; i++) {
		*state = *state * 6364136223846793005ull + 1442695040888963407ull;
		v[i] = (double)((*state >> 33) % few) - (double)few / 3;
	}
}

static int
plain_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
plain_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), plain_compare);
}

/* Quantile of sorted values, likewise. */
static double
plain_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1), low = floor(at);
	size_t i = (size_t)low;

	return i + 1 >= n ? sorted[n - 1]
			  : sorted[i] + (at - low) * (sorted[i + 1] - sorted[i]);
}

/* Median by sorting: what all others are compared with. */
static double
plain_median(const double *v, size_t n)
{
	double copy[SIZES];

	memcpy(copy, v, n * sizeof(*copy));
	plain_sort(copy, n);
	return (copy[(n - 1) / 2] + copy[n / 2]) / 2;
}

LS_CASE(all);

enum { MANY = 4000 };

LS_TEST(all, median_is_that_of_the_sorted)
{
	double v[SIZES];
	uint64_t state = 7;

	for (size_t n = 1; n < SIZES; n++) {
		for (size_t round = 0; round < ROUNDS; round++) {
			double want;

			fill(v, n, &state, round % 2 == 0 ? 5 : 100000);
			want = plain_median(v, n);
			ck_assert_double_eq(ls_stats_median(v, n), want);
		}
	}
}

/* What is selected of the n values, each time out of a copy, is what stands there in
 * the sorted ones. */
static void
selection_is_right(const double *v, size_t n)
{
	static double copy[MANY], sorted[MANY];
	struct ls_stats_middle middle;

	memcpy(sorted, v, n * sizeof(*v));
	plain_sort(sorted, n);
	for (int i = 0; i <= 20; i++) {
		memcpy(copy, v, n * sizeof(*v));
		ck_assert_double_eq(ls_stats_quantile(copy, n, i / 20.0),
			plain_quantile(sorted, n, i / 20.0));
	}
	memcpy(copy, v, n * sizeof(*v));
	ck_assert_double_eq(ls_stats_median(copy, n),
		(sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
	memcpy(copy, v, n * sizeof(*v));
	ls_stats_middle(copy, n, &middle);
	ck_assert_double_eq(middle.at, sorted[n / 2]);
	ck_assert_double_eq(middle.below, sorted[n / 2 - 1]);
	if (n % 2 != 0)
		ck_assert_double_eq(middle.above, sorted[n / 2 + 1]);
}

LS_TEST(all, of_many_the_same_is_selected)
{
	static const size_t sizes[] = { 399, 400, 401, 402, 999, 1000, MANY - 1, MANY };
	static double v[MANY];
	uint64_t state = 5;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (unsigned kind = 0; kind < 8; kind++) {
			size_t n = sizes[s];

			fill(v, n, &state,
				kind == 0	    ? 1
					: kind == 1 ? 2
					: kind == 2 ? 30
						    : 1u << 30);
			if (kind == 3 || kind == 4)
				plain_sort(v, n);
			for (size_t i = 0; i < n && kind > 3; i++)
				v[i] = kind == 4    ? -v[i]
					: kind == 5 ? exp(v[i] / 4e7)
					: kind == 6 ? v[i] * (i % 64 == 0)
						    : v[i];
			selection_is_right(v, n);
		}
	for (size_t i = 0; i < MANY; i++)
		v[i] = NAN; /* nobody may ask; it ends all the same */
	ck_assert(isnan(ls_stats_median(v, MANY)));
}

LS_TEST(all, median_of_others_leaves_one_out)
{
	double v[SIZES], copy[SIZES], others[SIZES];
	struct ls_stats_middle middle;
	uint64_t state = 11;

	for (size_t n = 2; n < SIZES; n++) {
		for (size_t round = 0; round < ROUNDS; round++) {
			fill(v, n, &state, round % 2 == 0 ? 4 : 100000);
			memcpy(copy, v, sizeof(v));
			ls_stats_middle(copy, n, &middle);
			for (size_t i = 0; i < n; i++) {
				size_t m = 0;

				for (size_t k = 0; k < n; k++)
					if (k != i)
						others[m++] = v[k];
				ck_assert_double_eq(
					ls_stats_median_without(&middle, v[i]),
					plain_median(others, m));
			}
		}
	}
}

LS_TEST(all, quantiles_lie_between_neighbours)
{
	static const double v[] = { 10, 20, 30, 40, 50 };

	ck_assert_double_eq(plain_quantile(v, 5, 0), 10);
	ck_assert_double_eq(plain_quantile(v, 5, 0.5), 30);
	ck_assert_double_eq_tol(plain_quantile(v, 5, 0.1), 14, 1e-12);
	ck_assert_double_eq(plain_quantile(v, 5, 1), 50);
	ck_assert_double_eq(plain_quantile(v, 1, 0.9), 10);
	for (int i = 0; i <= 20; i++) {
		double mixed[] = { 40, 10, 50, 30, 20 };

		ck_assert_double_eq(ls_stats_quantile(mixed, 5, i / 20.0),
			plain_quantile(v, 5, i / 20.0));
	}
}

LS_TEST(all, empty_input_is_nan)
{
	double none[1] = { 0 };

	ck_assert_double_nan(ls_stats_median(none, 0));
	ck_assert_double_nan(ls_stats_mad(none, 0, 1));
	ck_assert_double_nan(ls_stats_quantile(none, 0, 0.5));
}

LS_TEST(all, mad_and_clip)
{
	double v[] = { 1, 5, 3, 100, 4 };

	ck_assert_double_eq(ls_stats_mad(v, 5, 4), 1);
	ck_assert_double_eq(ls_stats_clip(5, 3), 3);
	ck_assert_double_eq(ls_stats_clip(-5, 3), -3);
	ck_assert_double_eq(ls_stats_clip(2, 3), 2);
}

/* Student's t, upper tail: Abramowitz and Stegun (1972), table 26.10. */
LS_TEST(all, tail_is_that_of_the_table)
{
	ck_assert_double_eq_tol(ls_stats_student(6.314, 1), 0.05, 1e-5);
	ck_assert_double_eq_tol(ls_stats_student(2.920, 2), 0.05, 1e-5);
	ck_assert_double_eq_tol(ls_stats_student(4.541, 3), 0.01, 1e-5);
	ck_assert_double_eq_tol(ls_stats_student(2.764, 10), 0.01, 1e-5);
	ck_assert_double_eq_tol(ls_stats_student(3.850, 20), 0.0005, 1e-6);
	ck_assert_double_eq_tol(ls_stats_student(0, 7), 0.5, 1e-12);
}

LS_TEST(all, binomial_tail_counts_all_ways)
{
	ck_assert_double_eq_tol(ls_stats_binomial(4, 3, 0.5), 5.0 / 16, 1e-12);
	ck_assert_double_eq_tol(ls_stats_binomial(4, 4, 0.1), 1e-4, 1e-12);
	ck_assert_double_eq_tol(ls_stats_binomial(5000, 2400, 0.5), 0.998, 1e-3);
	ck_assert_double_eq(ls_stats_binomial(3, 0, 0.2), 1);
	ck_assert_double_eq(ls_stats_binomial(3, 2, 1), 1);
}

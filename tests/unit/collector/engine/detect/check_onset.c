/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/onset.h"
#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>

#define RUNS 2000
#define MOST 64 /* windows */

/* Noise of windows, of variance 1. */
enum noise { GAUSS, TAILS, WANDER, NOISES };

static double
normal(uint64_t *random)
{
	return sqrt(-2 * log(ls_test_random(random) + 1e-300)) *
		cos(2 * M_PI * ls_test_random(random));
}

/* Student's t with three degrees of freedom; an AR(1) that keeps a half. */
static double
noise(enum noise kind, double *wander, uint64_t *random)
{
	double sum = 0;

	if (kind == GAUSS)
		return normal(random);
	if (kind == WANDER)
		return *wander = 0.5 * *wander + sqrt(0.75) * normal(random);
	for (int i = 0; i < 3; i++)
		sum += pow(normal(random), 2);
	return normal(random) / sqrt(sum);
}

/* n windows, the last m of which (a part of one, too) are up by one step or along a line, size standard
 * deviations of noise in all. */
static struct ls_onset
one(size_t n, double m, double size, bool line, enum noise kind, uint64_t *random)
{
	double v[MOST], x[MOST], mean = 0, square = 0, wander = 0;

	for (size_t i = 0; i < n; i++) {
		double up = fmax((double)i + 1 - ((double)n - m), 0);

		x[i] = !line ? fmin(up, 1) : up < 1 ? up * up / 2 : up - 0.5;
		mean += x[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++)
		square += pow(x[i] - mean, 2);
	for (size_t i = 0; i < n; i++)
		v[i] = size / sqrt(square) * x[i] + noise(kind, &wander, random);
	return ls_onset_of(v, n);
}

/* Of RUNS series, how many are called a line; *ret_off: mean distance of the onset, in windows;
 * *ret_out: how many began outside of what is said. */
static double
lines(size_t n, double share, double size, bool line, enum noise kind, double *ret_off,
	double *ret_out)
{
	uint64_t random = (uint64_t)kind + n;
	double called = 0;

	*ret_off = *ret_out = 0;
	for (int k = 0; k < RUNS; k++) {
		double m = share * (double)n + ls_test_random(&random);
		struct ls_onset o = one(n, m, size, line, kind, &random);

		called += o.gradual;
		*ret_off += fabs(o.at - ((double)n - m)) / RUNS;
		*ret_out += ((double)n - m < o.early || (double)n - m > o.late) /
			(double)RUNS;
	}
	return called / RUNS;
}

LS_CASE(all);

/* The rate of error that is promised, whatever the size, the noise and the place. */
LS_TEST_LOOP(all, step_is_called_a_step, 0, NOISES)
{
	for (size_t n = 16; n <= 64; n *= 2)
		for (double size = 6; size < 100; size *= 2)
			for (double share = 0.1; share < 0.7; share += 0.2) {
				double off, out;

				ck_assert_double_le(lines(n, share, size, false,
							    (enum noise)_i, &off, &out),
					_i == WANDER ? 0.03 : 0.01);
				ck_assert_double_le(out, _i == WANDER ? 0.15 : 0.05);
				if (size >= 24)
					ck_assert_double_lt(off, 0.3);
			}
}

LS_TEST_LOOP(all, what_grows_from_nothing_is_called_a_line, 0, NOISES)
{
	for (size_t n = 16; n <= 64; n *= 2)
		for (double share = 0.3; share < 0.7; share += 0.2) {
			double off, out;

			ck_assert_double_ge(
				lines(n, share, 24, true, (enum noise)_i, &off, &out),
				0.93);
			ck_assert_double_lt(off, 0.15 * (double)n);
		}
}

/* Too short to tell; no growth; exact ones. */
LS_TEST(all, without_noise_the_shape_is_exact)
{
	const double up[] = { 0, 0, 0, 0.3, 1, 1, 1, 1 };
	const double line[] = { 1, 1, 1, 1, 1.5, 2.5, 3.5, 4.5 };
	const double flat[] = { 1, 1, 1, 1, 1 };
	struct ls_onset o = ls_onset_of(up, 8);

	ck_assert_double_eq_tol(o.at, 3.7, 1e-9);
	ck_assert(!o.gradual);
	o = ls_onset_of(line, 8);
	ck_assert_double_eq_tol(o.at, 4, 1e-9);
	ck_assert(o.gradual);
	ck_assert(o.known && o.early <= o.at && o.at <= o.late);
	o = ls_onset_of(flat, 5);
	ck_assert(!o.known && !o.gradual);
	o = ls_onset_of(line + 5, 3);
	ck_assert(!o.known && !o.gradual);
	ck_assert_double_eq_tol(o.late - o.early, 3, 1e-9);
	ck_assert(!ls_onset_of(NULL, 0).known);
}

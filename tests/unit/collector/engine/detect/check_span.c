/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/span.h"
#include "tests/support/harness.h"

#include <math.h>

#define STEPS 256

static double scratch[STEPS];

/* Even noise of about that size. */
static double
noise(size_t i, double size)
{
	return size * ((double)(i * 2654435761u % 1000u) / 500 - 1);
}

LS_CASE(all);

LS_TEST(all, a_steady_excess_is_cut_out_to_the_step)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = (i >= 9 && i < 200 ? 1 : 0) + noise(i, 0.2);
	s = ls_span_find(x, STEPS, scratch);
	ck_assert_uint_eq(s.first, 9);
	ck_assert_uint_eq(s.end, 200);
	ck_assert(s.ended);
}

LS_TEST(all, what_goes_on_has_no_end)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = 1 + noise(i, 0.7);
	s = ls_span_find(x, STEPS, scratch);
	ck_assert_uint_eq(s.first, 0);
	ck_assert_uint_eq(s.end, STEPS);
	ck_assert(!s.ended);
}

/* One step in ten, of ten times the size: a pause of 19 steps is no end, one of 100 is.
 */
LS_TEST(all, what_comes_and_goes_ends_only_when_it_stays_away)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = noise(i, 0.1) + (i % 10 == 0 && i != 120 && i < 240 ? 1 : 0);
	s = ls_span_find(x, STEPS, scratch);
	ck_assert(!s.ended);
	for (size_t i = 150; i < STEPS; i++)
		x[i] = noise(i, 0.1);
	s = ls_span_find(x, STEPS, scratch);
	ck_assert(s.ended);
	ck_assert_uint_ge(s.end, 141);
	ck_assert_uint_le(s.end, 170); /* noise is a third of what it counts for */
}

LS_TEST(all, one_great_stall_does_not_outweigh_the_rest)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = (i < 200 ? 1 : 0) + noise(i, 0.2);
	x[5] = 1e6;
	s = ls_span_find(x, STEPS, scratch);
	ck_assert_uint_eq(s.first, 0);
	ck_assert_uint_eq(s.end, 200);
}

LS_TEST(all, no_more_is_taken_off_the_beginning_than_a_detector_is_early)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = i < 100 ? 0.001 : 1;
	s = ls_span_find(x, STEPS, scratch);
	ck_assert_uint_eq(s.first, LS_SPAN_EARLY_MAX);
}

LS_TEST(all, nothing_known_is_left_whole)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = NAN;
	s = ls_span_find(x, STEPS, scratch);
	ck_assert_uint_eq(s.end, STEPS);
	ck_assert(!s.ended);
	s = ls_span_find(x, 0, scratch);
	ck_assert_uint_eq(s.first, 0);
	ck_assert_uint_eq(s.end, 0);
	for (size_t i = 0; i < STEPS; i++)
		x[i] = -1 + noise(i, 0.1); /* earlier than it was: no excess */
	s = ls_span_find(x, STEPS, scratch);
	ck_assert_uint_eq(s.first, 0);
	ck_assert_uint_eq(s.end, STEPS);
	x[0] = 1; /* one step is one step */
	s = ls_span_find(x, 1, scratch);
	ck_assert_uint_eq(s.end, 1);
}

/* Missing records say neither that it goes on nor that it ended. */
LS_TEST(all, steps_not_known_are_no_end)
{
	double x[STEPS];
	struct ls_span s;

	for (size_t i = 0; i < STEPS; i++)
		x[i] = i < 150 ? 1 + noise(i, 0.2) : NAN;
	s = ls_span_find(x, STEPS, scratch);
	ck_assert(!s.ended);
	for (size_t i = 200; i < STEPS; i++)
		x[i] = noise(i, 0.2);
	s = ls_span_find(x, STEPS, scratch);
	ck_assert(s.ended);
	ck_assert_uint_ge(s.end, 150);
	ck_assert_uint_le(s.end, 200);
}

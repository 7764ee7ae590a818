/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/histogram.h"

#include <math.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_histogram h;
static struct ls_histogram_memory memory;
static struct ls_histogram_delta delta;

static void
setup(void)
{
	memset(&h, 0, sizeof(h));
	memset(&memory, 0, sizeof(memory));
	memset(&delta, 0, sizeof(delta));
	ck_assert_int_eq(ls_histogram_exponential(&h, 3, 2, 1), 0);
}

static void
fill(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, double mean)
{
	const int64_t count[] = { a, b, c, d, e };

	memcpy(h.count, count, sizeof(count));
	h.total = a + b + c + d + e;
	h.mean = mean;
}

LS_CASE(histogram, setup, NULL);

LS_TEST(histogram, bounds_are_those_of_the_options)
{
	const double exponential[] = { 1, 2, 4, 8 }, linear[] = { -1, 4, 9 };

	ck_assert_uint_eq(h.buckets, 5);
	ck_assert_mem_eq(h.bound, exponential, sizeof(exponential));
	ck_assert_int_eq(ls_histogram_linear(&h, 2, 5, -1), 0);
	ck_assert_uint_eq(h.buckets, 4);
	ck_assert_mem_eq(h.bound, linear, sizeof(linear));
}

LS_TEST(histogram, options_that_make_no_bounds_are_refused)
{
	ck_assert_int_eq(ls_histogram_exponential(&h, -1, 2, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 198, 2, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, INT64_MAX, 2, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 3, 1, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 3, 0.5, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 3, 2, 0), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 190, 1e10, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 3, NAN, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_linear(&h, 3, 0, 1), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_linear(&h, 3, 1, INFINITY), -LS_ERANGE);
	ck_assert_int_eq(ls_histogram_exponential(&h, 197, 1.1, 1), 0);
	ck_assert_uint_eq(h.buckets, LS_HISTOGRAM_BUCKETS_MAX);
}

LS_TEST(histogram, what_contradicts_itself_is_refused)
{
	fill(1, 2, 4, 2, 1, 3.5);
	ck_assert_int_eq(ls_histogram_check(&h), 0);
	h.total = 11;
	ck_assert_int_eq(ls_histogram_check(&h), -LS_ERANGE);
	fill(1, -2, 4, 2, 1, 3.5);
	ck_assert_int_eq(ls_histogram_check(&h), -LS_ERANGE);
	fill(1, 1, 0, 0, 0, 1);
	h.count[0] = INT64_MAX; /* the sum would be past the end */
	ck_assert_int_eq(ls_histogram_check(&h), -LS_ERANGE);
	fill(1, 2, 4, 2, 1, NAN);
	ck_assert_int_eq(ls_histogram_check(&h), -LS_ERANGE);
	fill(1, 2, 4, 2, 1, 3.5);
	h.has_range = true;
	h.min = 2;
	h.max = 1;
	ck_assert_int_eq(ls_histogram_check(&h), -LS_ERANGE);
	h.buckets = 0;
	ck_assert_int_eq(ls_histogram_check(&h), -LS_ERANGE);
}

LS_TEST(histogram, delta_is_what_was_added)
{
	fill(1, 2, 4, 2, 1, 3.5);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), -LS_EABSENT);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), -LS_EABSENT);
	fill(1, 2, 8, 2, 1, 3.5);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), 0);
	ck_assert_int_eq(delta.total, 4);
	ck_assert_int_eq(delta.count[2], 4);
	ck_assert_int_eq(delta.count[3], 0);
	ck_assert_double_eq(delta.sum, 14);
	ck_assert(!delta.reset);
}

/* Each of these means that counting began anew: all that is there is new. */
static void
assert_reset(void)
{
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), 0);
	ck_assert(delta.reset);
	ck_assert_int_eq(delta.total, h.total);
	ck_assert_double_eq(delta.sum, h.mean * (double)h.total);
	ck_assert_mem_eq(delta.count, h.count, sizeof(h.count[0]) * h.buckets);
}

LS_TEST(histogram, a_fall_a_new_start_or_new_bounds_are_a_reset)
{
	fill(5, 5, 5, 5, 5, 3);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), -LS_EABSENT);
	fill(5, 4, 9, 5, 5, 3); /* the total grew, one count fell */
	assert_reset();
	h.start_ns = 7;
	fill(6, 6, 9, 6, 6, 3);
	assert_reset();
	ck_assert_int_eq(ls_histogram_exponential(&h, 3, 3, 1), 0);
	fill(9, 9, 9, 9, 9, 3);
	assert_reset();
	h.buckets = 4;
	fill(10, 10, 10, 10, 0, 3);
	assert_reset();
	ck_assert_uint_eq(memory.resets, 4);
}

LS_TEST(histogram, quantiles_lie_inside_their_bucket)
{
	fill(0, 0, 0, 0, 0, 0);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), -LS_EABSENT);
	fill(0, 10, 10, 0, 0, 2);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), 0);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 0), 1);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 0.25), 1.5);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 0.5), 2);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 0.75), 3);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 1), 4);
}

LS_TEST(histogram, open_buckets_end_where_the_range_does)
{
	fill(0, 0, 0, 0, 0, 0);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), -LS_EABSENT);
	fill(1, 0, 0, 0, 1, 6);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), 0);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 1), 8);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 0), 0);
	h.has_range = true;
	h.min = 0.5;
	h.max = 12;
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 1), 12);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 0), 0.5);
	h.max = 0.5; /* below what its buckets say */
	ck_assert_double_le(ls_histogram_quantile(&h, &delta, 1), 8);
	h.buckets = 1;
	h.max = 9;
	fill(2, 0, 0, 0, 0, 6);
	ck_assert_int_eq(ls_histogram_step(&memory, &h, &delta), 0);
	ck_assert_double_eq(ls_histogram_quantile(&h, &delta, 1), 9);
}

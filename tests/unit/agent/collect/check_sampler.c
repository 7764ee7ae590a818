/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/sampler.h"

#include "tests/support/harness.h"

#define SECOND 1000000000ull
#define BOTH (LS_CADENCE_FAST | LS_CADENCE_SLOW)

LS_CASE(sampler);

LS_TEST(sampler, sampler_reads_everything_first_then_at_multiples)
{
	struct ls_sampler s;

	ls_sampler_init(&s, SECOND, 5 * SECOND + 7);
	ck_assert_uint_eq(ls_sampler_wait_ns(&s, 5 * SECOND + 7), 0);
	ck_assert_uint_eq(ls_sampler_due(&s, 5 * SECOND + 7), BOTH);
	ck_assert_uint_eq(ls_sampler_due(&s, 5 * SECOND + 7), 0);
	ck_assert_uint_eq(ls_sampler_wait_ns(&s, 5 * SECOND + 7), SECOND - 7);
	ck_assert_uint_eq(ls_sampler_due(&s, 6 * SECOND - 1), 0);
	ck_assert_uint_eq(ls_sampler_due(&s, 6 * SECOND), LS_CADENCE_FAST);
}

LS_TEST(sampler, sampler_does_not_make_up_for_what_it_missed)
{
	struct ls_sampler s;

	ls_sampler_init(&s, SECOND, SECOND);
	ck_assert_uint_eq(ls_sampler_due(&s, SECOND), BOTH);
	ck_assert_uint_eq(ls_sampler_due(&s, 60 * SECOND + 5), LS_CADENCE_FAST);
	ck_assert_uint_eq(ls_sampler_due(&s, 60 * SECOND + 6), 0);
	ck_assert_uint_eq(ls_sampler_wait_ns(&s, 60 * SECOND + 6), SECOND - 6);
}

LS_TEST(sampler, sampler_reads_slow_things_each_tenth_time)
{
	struct ls_sampler s;
	unsigned i, slow = 0;

	ls_sampler_init(&s, SECOND, 0);
	for (i = 0; i < 5 * LS_SLOW_FACTOR; i++)
		slow += (ls_sampler_due(&s, i * SECOND) & LS_CADENCE_SLOW) != 0;
	ck_assert_uint_eq(slow, 5);
}

LS_TEST(sampler, sampler_takes_a_new_interval_from_the_next_reading)
{
	struct ls_sampler s;

	ls_sampler_init(&s, SECOND, 0);
	ck_assert_uint_eq(ls_sampler_due(&s, 0), BOTH);
	ls_sampler_set_interval(&s, 10 * SECOND);
	ck_assert_uint_ne(ls_sampler_due(&s, SECOND), 0);
	ck_assert_uint_eq(ls_sampler_wait_ns(&s, SECOND), 9 * SECOND);
}

LS_TEST(sampler, hot_values_are_those_measured_of_the_scope)
{
	struct ls_sample sample = { .t_mono_ns = 42 };
	struct ls_wire_hot hot;

	ls_sample_set(&sample, LS_METRIC_HOST_CPU_BUSY, 1);
	ls_sample_set(&sample, LS_METRIC_HOST_CPU_IDLE, 2); /* not hot */
	ls_sample_set(&sample, LS_METRIC_JOB_CPU, 3); /* of a job */
	ls_sampler_hot(&sample, LS_METRIC_SCOPE_HOST, &hot);
	ck_assert_uint_eq(hot.t_mono_ns, 42);
	ck_assert_uint_eq(hot.count, 1);
	ck_assert_uint_eq(hot.metric[0], LS_METRIC_HOST_CPU_BUSY);
	ck_assert_double_eq(hot.value[0], 1);
	ls_sampler_hot(&sample, LS_METRIC_SCOPE_JOB, &hot);
	ck_assert_uint_eq(hot.count, 1);
	ck_assert_uint_eq(hot.metric[0], LS_METRIC_JOB_CPU);
}

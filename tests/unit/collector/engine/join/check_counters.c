/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/join/counters.h"

#include "proto/metrics.h"
#include "tests/support/harness.h"

#define SECOND_US 1000000ll

static void
put(struct ls_counters *c, int64_t t_us, enum ls_metric id, double value)
{
	uint16_t metric = (uint16_t)id;

	ck_assert_int_eq(ls_counters_put(c, t_us, 1, &metric, &value), 0);
}

LS_CASE(all);

LS_TEST(all, rate_is_growth_over_time)
{
	struct ls_counters c = { 0 };

	for (int i = 0; i <= 10; i++)
		put(&c, i * SECOND_US, LS_METRIC_JOB_CPU,
			i < 5 ? 2.0 * i : 8 + 4.0 * (i - 4));
	ck_assert_double_eq_tol(
		ls_counters_rate(&c, LS_METRIC_JOB_CPU, 0, 4 * SECOND_US, 1), 2, 1e-12);
	ck_assert_double_eq_tol(ls_counters_rate(&c, LS_METRIC_JOB_CPU, 5 * SECOND_US,
					99 * SECOND_US, 1),
		4, 1e-12);
	/* from before the first sample: from the first */
	ck_assert_double_eq_tol(
		ls_counters_rate(&c, LS_METRIC_JOB_CPU, -5, 4 * SECOND_US, 1), 2,
		1e-12);
	ls_counters_fini(&c);
}

LS_TEST(all, rate_is_not_known)
{
	struct ls_counters c = { 0 };

	ck_assert_double_nan(ls_counters_rate(&c, LS_METRIC_JOB_CPU, 0, 10, 0));
	put(&c, SECOND_US, LS_METRIC_JOB_CPU, 5);
	ck_assert_double_nan(
		ls_counters_rate(&c, LS_METRIC_JOB_CPU, 0, 9 * SECOND_US, 0));
	put(&c, 2 * SECOND_US, LS_METRIC_JOB_CPU, 6);
	ck_assert_double_nan(ls_counters_rate(&c, LS_METRIC_JOB_CPU, 0, 9 * SECOND_US,
		2 * SECOND_US)); /* too short */
	ck_assert_double_nan(
		ls_counters_rate(&c, LS_METRIC_HOST_CPU_BUSY, 0, 9 * SECOND_US, 0));
	ck_assert_double_nan(
		ls_counters_rate(&c, LS_METRIC_HOST_LOAD1, 0, 9 * SECOND_US, 0));
	put(&c, 3 * SECOND_US, LS_METRIC_JOB_CPU, 1); /* reset */
	ck_assert_double_nan(
		ls_counters_rate(&c, LS_METRIC_JOB_CPU, 0, 9 * SECOND_US, 0));
	put(&c, 4 * SECOND_US, LS_METRIC_HOST_CPU_BUSY, 1); /* newest lacks it */
	ck_assert_double_nan(
		ls_counters_rate(&c, LS_METRIC_JOB_CPU, 0, 9 * SECOND_US, 0));
	ls_counters_fini(&c);
}

LS_TEST(all, last_value_at_or_before)
{
	struct ls_counters c = { 0 };

	ck_assert_double_nan(ls_counters_last(&c, LS_METRIC_HOST_MEM_AVAILABLE, 5));
	put(&c, 10, LS_METRIC_HOST_MEM_AVAILABLE, 1);
	put(&c, 20, LS_METRIC_HOST_MEM_AVAILABLE, 2);
	ck_assert_double_nan(ls_counters_last(&c, LS_METRIC_HOST_MEM_AVAILABLE, 9));
	ck_assert_double_eq(ls_counters_last(&c, LS_METRIC_HOST_MEM_AVAILABLE, 19), 1);
	ck_assert_double_eq(ls_counters_last(&c, LS_METRIC_HOST_MEM_AVAILABLE, 20), 2);
	ck_assert_double_nan(ls_counters_last(&c, LS_METRIC_JOB_CPU, 20));
	ls_counters_fini(&c);
}

LS_TEST(all, samples_that_are_not_newer_are_stale)
{
	struct ls_counters c = { 0 };
	uint16_t metric = LS_METRIC_JOB_CPU;
	double value = 1;

	put(&c, 10, LS_METRIC_JOB_CPU, 1);
	ck_assert_int_eq(ls_counters_put(&c, 10, 1, &metric, &value), -LS_ESTALE);
	ck_assert_int_eq(ls_counters_put(&c, 9, 1, &metric, &value), -LS_ESTALE);
	ck_assert_uint_eq(c.count, 1);
	ls_counters_fini(&c);
}

LS_TEST(all, oldest_samples_are_dropped)
{
	struct ls_counters c = { 0 };

	for (int i = 0; i < 3 * LS_COUNTER_SAMPLES_KEPT; i++)
		put(&c, i, LS_METRIC_JOB_CPU, i);
	ck_assert_uint_eq(c.count, LS_COUNTER_SAMPLES_KEPT);
	ck_assert_double_nan(ls_counters_last(&c, LS_METRIC_JOB_CPU,
		2 * LS_COUNTER_SAMPLES_KEPT - 1));
	ck_assert_double_eq(
		ls_counters_last(&c, LS_METRIC_JOB_CPU, 2 * LS_COUNTER_SAMPLES_KEPT),
		2 * LS_COUNTER_SAMPLES_KEPT);
	ls_counters_fini(&c);
}

LS_TEST(all, samples_that_come_rarely_are_kept_for_a_time)
{
	struct ls_counters c = { 0 };

	for (int i = 0; i < 64; i++)
		put(&c, 10000000ll * i, LS_METRIC_JOB_CPU, i);
	ck_assert_uint_eq(c.count, 16);
	ck_assert(!isnan(ls_counters_last(&c, LS_METRIC_JOB_CPU,
		640000000ll - LS_COUNTER_KEPT_US)));
	ls_counters_fini(&c);
}

LS_TEST(all, a_metric_that_comes_later_is_unknown_before)
{
	struct ls_counters c = { 0 };
	const uint16_t both[] = { LS_METRIC_HOST_NET_RX, LS_METRIC_JOB_CPU };
	const double value[] = { 7, 3 };

	for (int i = 0; i < 20; i++)
		put(&c, 1000000ll * i, LS_METRIC_JOB_CPU, i);
	ck_assert_int_eq(ls_counters_put(&c, 20000000, 2, both, value), 0);
	ck_assert_double_eq(ls_counters_last(&c, both[0], 20000000), 7);
	ck_assert_double_nan(ls_counters_last(&c, both[0], 19000000));
	ck_assert_double_eq(ls_counters_last(&c, both[1], 5000000), 5);
	ls_counters_fini(&c);
}

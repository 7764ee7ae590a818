/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/budget.h"

#include "tests/support/harness.h"

/* A simulated clock: a window at a time. */
static const struct ls_budget_limits limits = { 0.005, 16u << 20, 4u << 20 };
static struct ls_budget b;
static struct ls_budget_reading now;

static void
setup(void)
{
	now = (struct ls_budget_reading){ .t_mono_ns = 5000000000, .cpu_ns = 30000000 };
	ls_budget_init(&b, &limits, &now);
}

/* A window in which this share of a core was used; what ls_budget_look says. */
static bool
window(double cpu_ratio)
{
	now.t_mono_ns += LS_BUDGET_WINDOW_NS;
	now.cpu_ns += (uint64_t)(cpu_ratio * (double)LS_BUDGET_WINDOW_NS);
	return ls_budget_look(&b, &now);
}

static void
windows(unsigned n, double cpu_ratio)
{
	while (n-- > 0)
		(void)window(cpu_ratio);
}

LS_CASE(budget, setup, NULL);

LS_TEST(budget, measures_each_window)
{
	now.rss_bytes = 5u << 20;
	now.sent_bytes = 30000;
	ck_assert(!window(0.0012));
	ck_assert_double_eq_tol(b.cpu_ratio, 0.0012, 1e-9);
	ck_assert_uint_eq(b.rss_bytes, 5u << 20);
	ck_assert_uint_eq(b.bytes_per_minute, 30000);
	ck_assert_uint_eq(b.windows, 1);
	ck_assert_uint_eq(b.over, 0);
}

LS_TEST(budget, what_comes_too_early_is_passed_over)
{
	now.t_mono_ns += LS_BUDGET_WINDOW_NS / 2;
	now.cpu_ns += LS_BUDGET_WINDOW_NS;
	ck_assert(!ls_budget_look(&b, &now));
	ck_assert_uint_eq(b.windows, 0);
	ck_assert_uint_eq(b.factor, 1);
}

LS_TEST(budget, one_window_over_is_said_but_not_acted_on)
{
	ck_assert(window(0.008));
	ck_assert_uint_eq(b.over, 1u << LS_BUDGET_CPU);
	ck_assert_uint_eq(b.factor, 1);
	ck_assert(window(0.004));
	ck_assert_uint_eq(b.over, 0);
	ck_assert_uint_eq(b.windows_over, 1);
}

LS_TEST(budget, two_in_a_row_slow_sampling_down)
{
	windows(2, 0.008);
	ck_assert_uint_eq(b.factor, 2);
	ck_assert_uint_eq(b.slowings, 1);
	windows(1, 0.008); /* the new pace gets its own two windows */
	ck_assert_uint_eq(b.factor, 2);
	windows(1, 0.008);
	ck_assert_uint_eq(b.factor, 4);
}

LS_TEST(budget, far_over_slows_down_at_once)
{
	ck_assert(window(0.03));
	ck_assert_uint_eq(b.factor, 2);
	ck_assert(window(0.03));
	ck_assert_uint_eq(b.factor, 4);
}

LS_TEST(budget, never_slower_than_the_maximum)
{
	windows(50, 0.5);
	ck_assert_uint_eq(b.factor, LS_BUDGET_FACTOR_MAX);
	ck_assert_uint_eq(b.slowings, 3);
}

LS_TEST(budget, comes_back_slowly)
{
	unsigned n = 0;

	windows(4, 0.008);
	ck_assert_uint_eq(b.factor, 4);
	while (b.factor == 4 && ++n < 1000)
		windows(1, 0.001);
	ck_assert_uint_eq(n, LS_BUDGET_NEED_MIN);
	windows(LS_BUDGET_NEED_MIN, 0.001);
	ck_assert_uint_eq(b.factor, 1);
}

LS_TEST(budget, what_is_neither_over_nor_calm_keeps_the_pace)
{
	windows(2, 0.008);
	windows(1000, 0.0045);
	ck_assert_uint_eq(b.factor, 2);
	ck_assert_uint_eq(b.over, 0);
}

/* An agent that uses 0.006 at full pace and half of it slowed: it would swing for ever.
 */
LS_TEST(budget, swings_become_rarer_and_rarer)
{
	unsigned i, changes = 0, late = 0;

	for (i = 0; i < 6 * 60 * 24; i++) { /* a day */
		unsigned before = b.factor;

		(void)window(b.factor == 1 ? 0.006 : 0.003);
		changes += b.factor != before;
		late += b.factor != before && i >= 6 * 60 * 12;
	}
	ck_assert_uint_ge(changes, 4);
	ck_assert_uint_le(late, 24); /* at most once back and forth an hour */
}

LS_TEST(budget, patience_is_forgotten_when_all_is_well)
{
	windows(2, 0.008);
	windows(LS_BUDGET_NEED_MIN, 0.001);
	windows(2, 0.008);
	ck_assert_uint_eq(b.need, 2 * LS_BUDGET_NEED_MIN);
	windows(4 * LS_BUDGET_NEED_MIN, 0.001);
	ck_assert_uint_eq(b.factor, 1);
	ck_assert_uint_eq(b.need, LS_BUDGET_NEED_MIN);
}

LS_TEST(budget, memory_over_ends_optional_work_and_nothing_else)
{
	now.rss_bytes = 17u << 20;
	ck_assert(window(0.001));
	ck_assert(b.lean);
	ck_assert_uint_eq(b.over, 1u << LS_BUDGET_MEMORY);
	ck_assert_uint_eq(b.factor, 1);
	now.rss_bytes = 15u << 20; /* within, but not calm */
	windows(100, 0.001);
	ck_assert(b.lean);
	now.rss_bytes = 8u << 20;
	windows(LS_BUDGET_NEED_MIN - 1, 0.001);
	ck_assert(b.lean);
	ck_assert(window(0.001));
	ck_assert(!b.lean);
}

LS_TEST(budget, bytes_count_over_a_minute)
{
	unsigned i;

	now.sent_bytes += 3u << 20; /* a burst that fits into the minute's budget */
	(void)window(0.001);
	ck_assert_uint_eq(b.over, 0);
	for (i = 0; i < 2; i++) {
		now.sent_bytes += 1u << 20;
		(void)window(0.001);
	}
	ck_assert_uint_eq(b.bytes_per_minute, 5u << 20);
	ck_assert_uint_eq(b.over, 1u << LS_BUDGET_BYTES);
	windows(1, 0.001);
	ck_assert_uint_eq(b.factor, 2);
	windows(LS_BUDGET_WINDOWS_A_MINUTE, 0.001);
	ck_assert_uint_eq(b.bytes_per_minute, 0);
}

LS_TEST(budget, no_limit_is_no_limit)
{
	const struct ls_budget_limits none = { 0, 0, 0 };

	ls_budget_set_limits(&b, &none);
	now.rss_bytes = 1ull << 40;
	now.sent_bytes = 1ull << 40;
	windows(10, 1.5);
	ck_assert_uint_eq(b.factor, 1);
	ck_assert(!b.lean);
	ck_assert_uint_eq(b.over, 0);
}

LS_TEST(budget, counters_that_go_back_count_as_nothing)
{
	now.sent_bytes = 1000;
	(void)window(0.001);
	now.cpu_ns = 0;
	now.sent_bytes = 0;
	(void)window(0);
	ck_assert_double_eq(b.cpu_ratio, 0);
	ck_assert_uint_eq(b.bytes_per_minute, 1000);
}

LS_TEST(budget, every_budget_has_a_name)
{
	ck_assert_str_eq(ls_budget_name(LS_BUDGET_CPU), "cpu");
	ck_assert_str_eq(ls_budget_name(LS_BUDGET_MEMORY), "memory");
	ck_assert_str_eq(ls_budget_name(LS_BUDGET_BYTES), "bytes");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/stall.h"
#include "tests/support/harness.h"

#define SIZE_S 1.5

/* So many stalls, one each gap steps from a step on. */
static struct ls_episode
stalls(uint64_t first, uint64_t hits, uint64_t gap)
{
	struct ls_episode ep = { .start_step = first,
		.last_step = first + (hits - 1) * gap,
		.hits = hits,
		.steps = (hits - 1) * gap + 1,
		.excess_s = SIZE_S * (double)hits,
		.start_us = (int64_t)first * 1000,
		.gap_mean = (double)gap,
		.before_s = (double)first };

	return ep;
}

LS_CASE(all);

/* Stalls at random, looked at when the n-th of an episode comes: right on average,
 * though it begins and ends with one. */
LS_TEST_LOOP(all, cost_is_right_on_average, 4, 8)
{
	const double rate = 0.02;
	uint64_t random = 88172645463325252ull;
	double sum = 0;
	const size_t tries = 20000;

	for (size_t t = 0; t < tries; t++) {
		struct ls_episode ep = { .steps = 1, .hits = 1, .excess_s = SIZE_S };

		while (ep.hits < (uint64_t)_i) {
			ep.last_step++;
			ep.steps++;
			if (ls_test_random(&random) >= rate)
				continue;
			ep.hits++;
			ep.excess_s += SIZE_S;
		}
		sum += ls_stall_cost(&ep);
	}
	ck_assert_double_eq_tol(sum / (double)tries, rate * SIZE_S,
		0.04 * rate * SIZE_S);
}

LS_TEST(all, few_are_taken_as_they_are)
{
	struct ls_episode ep = stalls(10, 2, 9), none = { 0 };

	ck_assert_double_eq(ls_stall_cost(&ep), 2 * SIZE_S / 10);
	ck_assert_double_eq(ls_stall_cost(&none), 0);
}

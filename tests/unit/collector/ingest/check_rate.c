/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/rate.h"

#include "proto/limits.h"
#include "tests/support/harness.h"

#define S 1000000000ll
#define NOW (5000 * S)

static int64_t
spend(int64_t *empty_ns, size_t bytes, int64_t now_ns)
{
	return ls_rate_spend(empty_ns, 1000, 10 * S, bytes, now_ns);
}

LS_CASE(rate, NULL, NULL);

LS_TEST(rate, credit_comes_with_time_up_to_the_burst)
{
	int64_t b = NOW - 2 * S;

	ck_assert_int_eq(spend(&b, 0, NOW), 2 * S);
	ck_assert_int_eq(spend(&b, 0, NOW + 3 * S), 5 * S);
	ck_assert_int_eq(spend(&b, 0, NOW + 100 * S), 10 * S);
	ck_assert_int_eq(spend(&b, 10000, NOW + 100 * S), 0);
}

LS_TEST(rate, what_is_spent_beyond_the_credit_is_owed_until_time_brought_it)
{
	int64_t b = NOW - 2 * S;

	ck_assert_int_eq(spend(&b, 5000, NOW), -3 * S);
	ck_assert_int_eq(spend(&b, 0, NOW + S), -2 * S);
	ck_assert_int_eq(spend(&b, 0, NOW + 3 * S), 0);
	ck_assert_int_eq(spend(&b, 1, NOW + 4 * S), S - S / 1000);
}

LS_TEST(rate, over_a_long_time_no_more_than_the_rate_passes)
{
	int64_t b = NOW, now = NOW;
	size_t sent = 0;

	/* Who waits for what is owed, and sends again at once. */
	while (now < NOW + 1000 * S) {
		int64_t left = spend(&b, 777, now);

		sent += 777;
		now += left < 0 ? -left : 0;
	}
	ck_assert_uint_ge(sent, 1000 * 1000);
	ck_assert_uint_le(sent, 1000 * 1000 + 777);
}

LS_TEST(rate, a_clock_near_its_start_and_the_largest_report_do_not_overflow)
{
	int64_t b = -LS_RATE_AGENT_BURST_NS;

	/* A session from storage is full, however short ago the machine started. */
	ck_assert_int_eq(ls_rate_spend(&b, LS_RATE_AGENT_BYTES_PER_S,
				 LS_RATE_AGENT_BURST_NS, LS_REPORT_MAX_BYTES, S),
		LS_RATE_AGENT_BURST_NS - 16 * S);
	ck_assert_int_eq(
		ls_rate_spend(&b, 1, LS_RATE_AGENT_BURST_NS, UINT32_MAX, INT64_MAX / 2),
		LS_RATE_AGENT_BURST_NS - UINT32_MAX * S);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/uplink/pace.h"

#include "proto/limits.h"
#include "tests/support/harness.h"

#define S 1000000000ull

LS_CASE(pace);

LS_TEST(pace, it_begins_with_nothing_however_much_waits)
{
	struct ls_pace p;

	ls_pace_start(&p, 5 * S, 1000000);
	ck_assert_uint_eq(ls_pace_reckon(&p, 1000, 5 * S, 1000000), 0);
	ck_assert_uint_eq(ls_pace_reckon(&p, 1000, 6 * S, 1000000), 1000);
	ck_assert_uint_eq(ls_pace_reckon(&p, 1000, 6 * S, 1000000), 1000);
}

LS_TEST(pace, what_is_pushed_brings_its_own_allowance)
{
	struct ls_pace p;
	uint64_t pushed = 0, i;

	ls_pace_start(&p, 0, 0);
	/* at no rate at all: each minute's chunks go at once */
	for (i = 1; i <= 100; i++) {
		pushed += 15000;
		ck_assert_uint_eq(ls_pace_reckon(&p, 0, i * 60 * S, pushed), 15000);
		ls_pace_spend(&p, 15000);
		ck_assert_uint_eq(ls_pace_reckon(&p, 0, i * 60 * S, pushed), 0);
	}
}

LS_TEST(pace, backfill_keeps_to_its_rate_and_repays_what_it_overdrew)
{
	struct ls_pace p;
	uint64_t t, sent = 0;

	ls_pace_start(&p, 0, 0);
	for (t = 0; t <= 1000; t++) {
		if (ls_pace_reckon(&p, 4096, t * S, 0) > 0) {
			ls_pace_spend(&p, 100000); /* one large item at a time */
			sent += 100000;
		}
	}
	ck_assert_uint_le(sent, 1000 * 4096 + 100000);
	ck_assert_uint_ge(sent, 1000 * 4096 - 100000);
}

LS_TEST(pace, an_idle_time_saves_at_most_one_report)
{
	struct ls_pace p;

	ls_pace_start(&p, 0, 0);
	ck_assert_uint_eq(ls_pace_reckon(&p, UINT64_MAX, UINT64_MAX, UINT64_MAX),
		LS_REPORT_CHUNK_BYTES);
	ck_assert_uint_eq(ls_pace_reckon(&p, UINT64_MAX, UINT64_MAX, UINT64_MAX),
		LS_REPORT_CHUNK_BYTES);
	ls_pace_start(&p, 0, 0);
	ck_assert_uint_eq(ls_pace_reckon(&p, 1, 3600 * S, 0), LS_BEAT_MAX_NS / S);
}

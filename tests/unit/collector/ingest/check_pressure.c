/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/pressure.h"

#include "proto/limits.h"
#include "tests/support/harness.h"

#define S 1000000000ull
#define HELD_MAX 1000

static struct ls_pressure p;
static uint64_t now_ns, cpu_ns;

static void
setup(void)
{
	ls_pressure_init(&p, HELD_MAX);
	now_ns = 5000 * S;
	cpu_ns = 0;
	ls_pressure_turn(&p, now_ns, cpu_ns);
}

static struct ls_pressure_stats
stats(void)
{
	struct ls_pressure_stats st;

	ls_pressure_stats(&p, &st);
	return st;
}

/* So many seconds in which commits take commit_ns each and the loop uses this share of
 * a core. */
static void
live(unsigned seconds, uint64_t commit_ns, double loop)
{
	for (; seconds > 0; seconds--) {
		now_ns += S;
		cpu_ns += (uint64_t)(loop * (double)S);
		ls_pressure_wait(&p, now_ns - commit_ns);
		ls_pressure_committed(&p, now_ns, commit_ns, 0);
		ls_pressure_turn(&p, now_ns, cpu_ns);
	}
}

static bool
take(uint64_t held, uint64_t bytes, uint64_t queue)
{
	const struct ls_pressure_load load = { held, bytes, queue };

	return ls_pressure_take(&p, &load);
}

LS_CASE(pressure, setup, NULL);

LS_TEST(pressure, nothing_is_asked_without_need)
{
	live(1000, S / 100, 0.5);
	ck_assert_uint_eq(ls_pressure_beat_ns(&p), 0);
	ck_assert_uint_eq(ls_pressure_retry_ns(&p), LS_BEAT_DEFAULT_NS);
	ck_assert_uint_eq(stats().rises, 0);
	ck_assert(stats().loop_ratio > 0.49 && stats().loop_ratio < 0.51);
	ck_assert_uint_eq(stats().commit_ns, S / 100);
}

LS_TEST(pressure, one_slow_sync_is_no_reason)
{
	live(LS_PRESSURE_TURNS - 1, S, 0.1);
	live(1, S / 100, 0.1);
	live(LS_PRESSURE_TURNS - 1, S, 0.1);
	ck_assert_uint_eq(stats().rises, 0);
}

LS_TEST(pressure, slow_commits_make_beats_longer_up_to_a_limit)
{
	live(LS_PRESSURE_TURNS, LS_PRESSURE_COMMIT_NS, 0.1);
	ck_assert_uint_eq(ls_pressure_beat_ns(&p), 2 * LS_BEAT_DEFAULT_NS);
	live(4, LS_PRESSURE_COMMIT_NS, 0.1); /* agents have to hear of it first */
	ck_assert_uint_eq(stats().factor, 2);
	live(1, LS_PRESSURE_COMMIT_NS, 0.1);
	ck_assert_uint_eq(ls_pressure_beat_ns(&p), 4 * LS_BEAT_DEFAULT_NS);
	live(100, LS_PRESSURE_COMMIT_NS, 0.1);
	ck_assert_uint_eq(stats().factor, LS_PRESSURE_FACTOR_MAX);
	ck_assert_uint_eq(stats().rises, 2);
	ck_assert_uint_eq(ls_pressure_retry_ns(&p), 4 * LS_BEAT_DEFAULT_NS);
	ck_assert_uint_lt(2 * ls_pressure_beat_ns(&p), LS_SESSION_STALE_NS);
}

LS_TEST(pressure, a_busy_loop_makes_beats_longer)
{
	live(LS_PRESSURE_TURNS, 0, LS_PRESSURE_LOOP_RATIO - 0.01);
	ck_assert_uint_eq(stats().factor, 1);
	live(LS_PRESSURE_TURNS, 0, LS_PRESSURE_LOOP_RATIO + 0.01);
	ck_assert_uint_eq(stats().factor, 2);
}

LS_TEST(pressure, a_disk_that_tells_nothing_counts_as_slow)
{
	unsigned i;

	ls_pressure_wait(&p, now_ns + 1); /* after the clock of the turn was read */
	ls_pressure_turn(&p, now_ns, 0);
	for (i = 0; i < LS_PRESSURE_TURNS; i++) {
		now_ns += S;
		ls_pressure_turn(&p, now_ns, 0);
	}
	ck_assert_uint_eq(stats().factor, 2);
	ck_assert_uint_eq(stats().commit_ns, LS_PRESSURE_TURNS * S - 1);
}

LS_TEST(pressure, nobody_who_waits_is_no_stall)
{
	live(1, S / 100, 0);
	now_ns += 100 * S;
	ls_pressure_turn(&p, now_ns, 0);
	ck_assert_uint_eq(stats().commit_ns, 0);
}

LS_TEST(pressure, beats_become_shorter_after_a_calm_time)
{
	unsigned calm = LS_PRESSURE_CALM_NS / S;

	live(20, LS_PRESSURE_COMMIT_NS, 0.1);
	ck_assert_uint_eq(stats().factor, 4);
	live(calm - 1, S / 100, 0.1);
	/* not high, not calm: begins again */
	live(1, LS_PRESSURE_COMMIT_NS * 3 / 4, 0.1);
	live(calm - 1, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 4);
	live(1, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 2);
	live(calm, S / 100, LS_PRESSURE_LOOP_RATIO / 2); /* half of it would double */
	ck_assert_uint_eq(stats().factor, 2);
	live(calm, S / 100, 0.1);
	ck_assert_uint_eq(ls_pressure_beat_ns(&p), 0);
}

LS_TEST(pressure, who_falls_too_early_has_to_be_calm_for_longer)
{
	unsigned calm = LS_PRESSURE_CALM_NS / S;

	live(LS_PRESSURE_TURNS, LS_PRESSURE_COMMIT_NS, 0.1);
	live(calm, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 1);
	live(LS_PRESSURE_TURNS, LS_PRESSURE_COMMIT_NS, 0.1);
	live(calm, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 2);
	live(calm, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 1);
	live(10 * calm, S / 100, 0.1); /* forgotten */
	live(LS_PRESSURE_TURNS, LS_PRESSURE_COMMIT_NS, 0.1);
	live(calm, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 1);
}

LS_TEST(pressure, what_waits_is_bounded_by_each_of_three)
{
	const uint64_t queue = LS_WRITE_QUEUE_MAX - LS_WRITE_RESERVE;

	ck_assert(take(HELD_MAX * 3 / 4 - 1, LS_INGEST_HELD_MAX_BYTES / 2, queue / 2));
	ck_assert(!take(HELD_MAX * 3 / 4, 0, 0));
	setup();
	ck_assert(!take(0, LS_INGEST_HELD_MAX_BYTES * 3 / 4, 0));
	setup();
	ck_assert(!take(0, 0, queue * 3 / 4));
	ck_assert_uint_eq(stats().refusals, 1);
}

LS_TEST(pressure, items_are_taken_again_when_half_of_it_is_gone)
{
	ck_assert(!take(HELD_MAX * 3 / 4, 0, 0));
	ck_assert(!take(HELD_MAX * 3 / 8, 0, 0));
	ck_assert(stats().refusing);
	ck_assert(take(HELD_MAX * 3 / 8 - 1, 0, 0));
	ck_assert(!stats().refusing);
	ck_assert(take(HELD_MAX / 2, 0, 0));
	ck_assert_uint_eq(stats().refusals, 1);
}

LS_TEST(pressure, refusals_make_beats_longer)
{
	unsigned i;

	ck_assert(!take(HELD_MAX, 0, 0)); /* a burst */
	live(LS_PRESSURE_TURNS, S / 100, 0.1);
	ck_assert_uint_eq(stats().factor, 1);
	for (i = 0; i < LS_PRESSURE_TURNS; i++) {
		ck_assert(!take(HELD_MAX, 0, 0));
		live(1, S / 100, 0.1);
	}
	ck_assert_uint_eq(stats().factor, 2);
	ck_assert_uint_eq(stats().rises, 1);
}

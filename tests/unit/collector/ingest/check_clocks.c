/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/clocks.h"

#include <math.h>
#include <stdlib.h>
#include "collector/ingest/feed.h"
#include "tests/support/harness.h"

/* A host whose clock began elsewhere and runs fast, seen over a network with delay and
 * jitter. */
struct host {
	double offset_ns; /* ours minus the host's at our time 0 */
	double drift; /* the host's clock gains so much a second */
	uint64_t seed;
};

#define HOUR_NS 3600000000000.0

static double
host_time(const struct host *h, double ours_ns)
{
	return ours_ns * (1 + h->drift) - h->offset_ns;
}

/* Heavy-tailed delay above a floor. */
static double
host_delay(struct host *h, double floor_ns, double scale_ns)
{
	return floor_ns + scale_ns * -log(1 - ls_test_random(&h->seed));
}

static void
exchange(struct ls_clock *c, struct host *h, double at_ns, double there_ns,
	double back_ns)
{
	const double hold_ns = 100e6; /* until the commit */
	double t2 = at_ns + there_ns, t3 = t2 + hold_ns;
	struct ls_wire_stamps s = {
		.t1 = (uint64_t)host_time(h, at_ns),
		.t2 = (uint64_t)t2,
		.t3 = (uint64_t)t3,
		.t4 = (uint64_t)host_time(h, t3 + back_ns),
	};

	ck_assert_int_eq(ls_clock_sample(c, &s), 0);
}

/* Error of mapping the host's time at ours_ns. */
static double
map_error(const struct ls_clock *c, const struct host *h, double ours_ns,
	int64_t *ret_uncertainty)
{
	int64_t t = (int64_t)host_time(h, ours_ns);
	struct ls_store_map map;

	ck_assert_int_eq(ls_clock_map(c, t, 0, &map), 0);
	*ret_uncertainty = map.uncertainty_ns;
	return (double)ls_store_map_ns(&map, t) - ours_ns;
}

LS_CASE(clocks);

LS_TEST(clocks, own_kernel_is_exact)
{
	struct ls_clock c;
	struct ls_store_map map;

	ls_clock_init(&c, true);
	ck_assert(ls_clock_is_known(&c));
	ck_assert_int_eq(ls_clock_map(&c, 12345, 1000000, &map), 0);
	ck_assert_int_eq(map.uncertainty_ns, 0);
	ck_assert_int_eq(ls_store_map_ns(&map, 12345), 1012345);
	ls_clock_guess(&c, 1, 2);
	ck_assert_int_eq(ls_clock_map(&c, 12345, 1000000, &map), 0);
	ck_assert_int_eq(ls_store_map_ns(&map, 12345), 1012345);
}

LS_TEST(clocks, unknown_until_an_exchange)
{
	struct host h = { .offset_ns = -5e12, .seed = 1 };
	struct ls_store_map map;
	struct ls_clock c;

	ls_clock_init(&c, false);
	ck_assert(!ls_clock_is_known(&c));
	ck_assert_int_eq(ls_clock_map(&c, 0, 0, &map), -LS_EABSENT);
	exchange(&c, &h, HOUR_NS, 50e3, 50e3);
	ck_assert(ls_clock_is_known(&c));
	ck_assert_int_eq(ls_clock_map(&c, 0, 0, &map), 0);
}

LS_TEST(clocks, drift_is_followed)
{
	struct host h = { .offset_ns = 7e14, .drift = 30e-6, .seed = 2 };
	int64_t uncertainty;
	struct ls_clock c;
	double at = 8e14, error;
	int i;

	ls_clock_init(&c, false);
	for (i = 0; i < 1000; i++, at += 1e9) {
		exchange(&c, &h, at, host_delay(&h, 40e3, 200e3),
			host_delay(&h, 40e3, 200e3));
		error = map_error(&c, &h, at + 1e9, &uncertainty);
		ck_assert_msg(fabs(error) <= (double)uncertainty,
			"beat %d: error %.0f ns of %lld", i, error,
			(long long)uncertainty);
	}
	ck_assert_double_lt(fabs(error), 60e3);
	ck_assert_int_lt(uncertainty, 300000);
	/* Ten seconds without news: still good, and said to be less so. */
	error = map_error(&c, &h, at + 10e9, &uncertainty);
	ck_assert_double_lt(fabs(error), 100e3);
}

LS_TEST(clocks, asymmetry_stays_within_the_uncertainty)
{
	struct host h = { .offset_ns = 7e14, .drift = -20e-6, .seed = 3 };
	int64_t uncertainty;
	struct ls_clock c;
	double at = 8e14, error;
	int i;

	ls_clock_init(&c, false);
	for (i = 0; i < 600; i++, at += 1e9) {
		exchange(&c, &h, at, host_delay(&h, 900e3, 100e3),
			host_delay(&h, 50e3, 100e3));
		error = map_error(&c, &h, at + 1e9, &uncertainty);
		ck_assert_msg(fabs(error) <= (double)uncertainty,
			"beat %d: error %.0f ns of %lld", i, error,
			(long long)uncertainty);
	}
	ck_assert_double_gt(fabs(error), 300e3); /* it cannot be seen */
}

LS_TEST(clocks, a_slow_exchange_changes_nothing)
{
	struct host h = { .offset_ns = 7e14, .seed = 4 };
	int64_t uncertainty;
	struct ls_clock c;
	double at = 8e14;
	int i;

	ls_clock_init(&c, false);
	for (i = 0; i < 100; i++, at += 1e9)
		exchange(&c, &h, at, 50e3, 50e3);
	exchange(&c, &h, at, 500e6, 50e3);
	ck_assert_double_lt(fabs(map_error(&c, &h, at, &uncertainty)), 10e3);
}

LS_TEST(clocks, impossible_stamps_are_refused)
{
	struct ls_clock c;
	const struct ls_wire_stamps back = { .t1 = 100, .t2 = 50, .t3 = 60, .t4 = 90 };
	const struct ls_wire_stamps held = { .t1 = 100, .t2 = 50, .t3 = 40, .t4 = 200 };
	const struct ls_wire_stamps longer = {
		.t1 = 100, .t2 = 50, .t3 = 500, .t4 = 200
	};
	const struct ls_wire_stamps far = { .t1 = UINT64_MAX - 1, .t4 = UINT64_MAX };

	ls_clock_init(&c, false);
	ck_assert_int_eq(ls_clock_sample(&c, &back), -LS_ERANGE);
	ck_assert_int_eq(ls_clock_sample(&c, &held), -LS_ERANGE);
	ck_assert_int_eq(ls_clock_sample(&c, &longer), -LS_ERANGE);
	ck_assert_int_eq(ls_clock_sample(&c, &far), -LS_ERANGE);
	ck_assert(!ls_clock_is_known(&c));
}

LS_TEST(clocks, a_guess_says_so_and_gives_way)
{
	struct host h = { .offset_ns = 1e12, .seed = 5 };
	struct ls_store_map map;
	struct ls_clock c;

	ls_clock_init(&c, false);
	ls_clock_guess(&c, 5000, 7000);
	ck_assert_int_eq(ls_clock_map(&c, 5000, 0, &map), 0);
	ck_assert_int_eq(ls_store_map_ns(&map, 5000), 7000);
	ck_assert_int_eq(map.uncertainty_ns, LS_CLOCK_GUESS_NS);
	exchange(&c, &h, 2e12, 50e3, 50e3);
	ls_clock_guess(&c, 5000, 7000); /* ignored from now on */
	ck_assert_int_eq(ls_clock_map(&c, (int64_t)host_time(&h, 2e12), 0, &map), 0);
	ck_assert_int_lt(map.uncertainty_ns, 60e6);
}

LS_TEST(clocks, times_are_rounded_to_microseconds)
{
	const struct ls_store_map map = { .offset_ns = 1000 };

	ck_assert_int_eq(ls_store_map_us(&map, 499), 1);
	ck_assert_int_eq(ls_store_map_us(&map, 500), 2);
	ck_assert_int_eq(ls_store_map_us(&map, -3000), -2);
}

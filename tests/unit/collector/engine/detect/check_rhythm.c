/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/rhythm.h"
#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>

#define STEP_US 1000000ll
#define USUAL_S 0.004

/* Steps of a second; the last worker comes a little after the next one, unless an event
 * is due. */
struct feed {
	struct ls_rhythm r;
	struct ls_rhythm_sample next; /* event.excess_s of the next step, if > 0 */
	uint64_t random, step;
	int64_t t_us;
	size_t workers;
};

static void
run(struct feed *f, size_t steps)
{
	for (size_t k = 0; k < steps; k++) {
		struct ls_rhythm_sample s = f->next;

		if (!(s.event.excess_s > 0)) {
			s.event.excess_s =
				(float)(-log(1 - ls_test_random(&f->random)) * USUAL_S);
			s.event.slot = (uint32_t)(ls_test_random(&f->random) *
				(double)f->workers);
			s.event.phase = LS_PHASE_COUNT;
			s.own = true;
		}
		s.event.step = f->step++;
		s.event.t_us = f->t_us;
		s.step_s = 1;
		s.workers = f->workers;
		f->t_us += STEP_US + (int64_t)((double)s.event.excess_s * 1e6);
		ls_rhythm_step(&f->r, &s);
		f->next = (struct ls_rhythm_sample){ 0 };
	}
}

/* The next step is held up by a worker. */
static void
hold(struct feed *f, uint32_t slot, double excess_s, enum ls_phase phase)
{
	f->next = (struct ls_rhythm_sample){ .own = true,
		.event = { .slot = slot,
			.excess_s = (float)excess_s,
			.phase = phase,
			.phase_s = (float)excess_s } };
	run(f, 1);
}

static struct feed
quiet(size_t workers)
{
	struct feed f = { .random = 5, .workers = workers, .t_us = 1700000000000000ll };

	run(&f, 300);
	return f;
}

static size_t
periods(const struct feed *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->workers; i++)
		n += ls_rhythm_period_of(&f->r, i) != NULL;
	return n;
}

LS_CASE(periodic);

LS_TEST(periodic, equal_distances_are_a_period)
{
	struct feed f = quiet(16);
	const struct ls_rhythm_order *p;

	for (size_t k = 0; k < 5; k++) {
		ck_assert_uint_eq(periods(&f), 0);
		run(&f, 99 + (k % 2 == 0 ? 0 : 1)); /* a step more or less */
		hold(&f, 3, 0.5, LS_PHASE_GC);
	}
	p = ls_rhythm_period_of(&f.r, 3);
	ck_assert_ptr_nonnull(p);
	ck_assert(!p->in_time);
	ck_assert(fabs(p->steps - 100) < 2 && fabs(p->seconds - 101) < 3);
	ck_assert(fabs(p->excess_s - 0.5) < 0.01);
	ck_assert_int_eq(p->phase, LS_PHASE_GC);
	ck_assert(p->phase_ratio > 0.99);
	ck_assert_uint_eq(p->events, 5);
	ck_assert_uint_eq(p->first_step, 399);
	ls_rhythm_fini(&f.r);
}

LS_TEST(periodic, one_that_is_missed_does_not_matter)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 6; k++) {
		run(&f, 99);
		if (k == 2)
			run(&f, 1);
		else
			hold(&f, 3, 0.5, LS_PHASE_COUNT);
	}
	ck_assert_ptr_nonnull(ls_rhythm_period_of(&f.r, 3));
	ls_rhythm_fini(&f.r);
}

/* Every 160 s by the clock, while steps get shorter and shorter. */
LS_TEST(periodic, a_period_may_be_one_of_time)
{
	struct feed f = quiet(16);
	const struct ls_rhythm_order *p;

	for (size_t k = 0; k < 8; k++) {
		ck_assert_uint_eq(periods(&f), 0);
		run(&f, 60 + 10 * k);
		/* other steps took longer */
		f.t_us += (100 - 10 * (int64_t)k) * STEP_US;
		hold(&f, 3, 0.5, LS_PHASE_COUNT);
	}
	p = ls_rhythm_period_of(&f.r, 3);
	ck_assert_ptr_nonnull(p);
	ck_assert(p->in_time);
	ck_assert(fabs(p->seconds - 160) < 5);
	ls_rhythm_fini(&f.r);
}

LS_TEST(periodic, short_periods_take_more_events)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 8; k++) {
		ck_assert_uint_eq(periods(&f), 0);
		run(&f, 19);
		hold(&f, 3, 0.5, LS_PHASE_COUNT);
	}
	ck_assert_uint_eq(periods(&f), 1);
	ls_rhythm_fini(&f.r);
}

LS_TEST(periodic, it_is_over_when_none_comes)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 6; k++) {
		run(&f, 99);
		hold(&f, 3, 0.5, LS_PHASE_COUNT);
	}
	ck_assert_uint_eq(periods(&f), 1);
	run(&f, 249);
	ck_assert_uint_eq(periods(&f), 1);
	run(&f, 3);
	ck_assert_uint_eq(periods(&f), 0);
	ls_rhythm_fini(&f.r);
}

LS_TEST_LOOP(periodic, events_at_random_are_no_period, 0, 4)
{
	struct feed f = quiet(16);

	f.random += (uint64_t)_i * 7919;
	for (size_t k = 0; k < 20000; k++) {
		if (ls_test_random(&f.random) < 0.01)
			hold(&f, 3, 0.5, LS_PHASE_COUNT);
		else
			run(&f, 1);
		ck_assert_uint_eq(periods(&f), 0);
	}
	ls_rhythm_fini(&f.r);
}

/* What is not its own work, events that cost next to nothing, and long stalls are not
 * counted. */
LS_TEST(periodic, what_does_not_count_is_no_event)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 12; k++) {
		run(&f, 99);
		f.next = (struct ls_rhythm_sample){ .event = { .slot = 3,
							    .excess_s = 0.5f } };
		run(&f, 1);
		ck_assert_uint_eq(periods(&f), 0);
	}
	for (size_t k = 0; k < 12; k++) {
		run(&f, 99);
		hold(&f, 4, 0.06, LS_PHASE_COUNT); /* 0.06 % of the time */
		ck_assert_uint_eq(periods(&f), 0);
	}
	ls_rhythm_fini(&f.r);
}

LS_TEST(periodic, a_worker_that_moved_begins_anew)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 6; k++) {
		run(&f, 99);
		hold(&f, 3, 0.5, LS_PHASE_COUNT);
	}
	ls_rhythm_reset_worker(&f.r, 3);
	ck_assert_uint_eq(periods(&f), 0);
	run(&f, 99);
	hold(&f, 3, 0.5, LS_PHASE_COUNT);
	ck_assert_uint_eq(periods(&f), 0);
	ls_rhythm_fini(&f.r);
}

LS_CASE(rotating);

LS_TEST_LOOP(rotating, pauses_of_anybody_rotate, 0, 2)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 200; k++) {
		if (ls_test_random(&f.random) < 0.25)
			hold(&f, (uint32_t)(ls_test_random(&f.random) * 16), 0.2,
				_i == 0 ? LS_PHASE_GC : LS_PHASE_COMPUTE);
		else
			run(&f, 1);
	}
	ck_assert(f.r.rotating.on);
	ck_assert_int_eq(f.r.rotating.phase, _i == 0 ? LS_PHASE_GC : LS_PHASE_COMPUTE);
	ck_assert(fabs(f.r.rotating.cost_s - 0.05) < 0.015);
	ck_assert(f.r.rotating.workers >= 8);
	ck_assert_uint_eq(periods(&f), 0);
	run(&f, 1000);
	ck_assert(!f.r.rotating.on);
	ls_rhythm_fini(&f.r);
}

/* Of very many workers the same six: three pairs that share a core at the same time.
 * Another one each time would be more. */
LS_TEST(rotating, three_pairs_do_not_rotate)
{
	struct feed f = quiet(1024);

	for (size_t k = 0; k < 600; k++) {
		if (ls_test_random(&f.random) < 0.25)
			hold(&f, (uint32_t)(ls_test_random(&f.random) * 6), 0.2,
				LS_PHASE_DISPATCH);
		else
			run(&f, 1);
		ck_assert(!f.r.rotating.on);
	}
	ls_rhythm_fini(&f.r);
}

/* One or two workers hold everybody up: they are to be named, or told elsewhere. */
LS_TEST(rotating, the_same_ones_do_not_rotate)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 600; k++) {
		if (ls_test_random(&f.random) < 0.25)
			hold(&f, ls_test_random(&f.random) < 0.5 ? 3 : 4, 0.2,
				LS_PHASE_GC);
		else
			run(&f, 1);
		ck_assert(!f.r.rotating.on);
	}
	ls_rhythm_fini(&f.r);
}

/* Four workers of which a phase names no cause: as shared machines do it. */
LS_TEST_LOOP(rotating, few_workers_rotate_only_with_a_cause, 0, 2)
{
	struct feed f = quiet(4);

	for (size_t k = 0; k < 400; k++) {
		if (ls_test_random(&f.random) < 0.25)
			hold(&f, (uint32_t)(ls_test_random(&f.random) * 4), 0.2,
				_i == 0 ? LS_PHASE_GC : LS_PHASE_COMPUTE);
		else
			run(&f, 1);
	}
	ck_assert(f.r.rotating.on == (_i == 0));
	ls_rhythm_fini(&f.r);
}

LS_TEST(rotating, noise_makes_neither)
{
	struct feed f = quiet(16);

	for (size_t k = 0; k < 50000; k++) {
		run(&f, 1);
		ck_assert(!f.r.rotating.on);
	}
	ck_assert_uint_eq(periods(&f), 0);
	ls_rhythm_fini(&f.r);
}

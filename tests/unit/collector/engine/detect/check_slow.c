/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/slow.h"
#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 16
#define START_US 1700000000000000ll

/* Residuals of workers that the detector knows and finds nothing of. */
struct feed {
	struct ls_slow s;
	struct ls_detect d;
	struct ls_detect_worker worker[WORKERS];
	double own[WORKERS], wait[WORKERS]; /* residuals without noise */
	bool absent[WORKERS];
	double step_s, noise; /* noise: ratio to the step */
	uint64_t random, step, blocks;
	int64_t t_us;
	size_t count;
};

static double
noise(struct feed *f)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += ls_test_random(&f->random) - 0.5;
	return sum * sqrt(3) * f->noise * f->step_s;
}

static void
run(struct feed *f, size_t steps)
{
	struct ls_blame r[WORKERS];

	for (size_t k = 0; k < steps; k++) {
		for (size_t i = 0; i < f->count; i++) {
			double own = f->own[i] + noise(f),
			       wait = f->wait[i] + own - f->own[i];

			r[i] = (struct ls_blame){ .own_s = f->absent[i] ? NAN : own,
				.wait_s = f->absent[i] ? NAN : wait };
		}
		f->d.step_s = f->step_s;
		f->blocks += ls_slow_step(&f->s, &f->d, f->step, f->t_us, r, f->count,
			f->step_s);
		f->step++;
		f->t_us += (int64_t)(f->step_s * 1e6);
	}
}

/* Grows both residuals of a worker by so much of a step within so many steps. */
static void
drift(struct feed *f, size_t slot, double by, size_t steps)
{
	for (size_t k = 0; k < steps; k += 16) {
		run(f, 16);
		f->own[slot] += by * f->step_s * 16 / (double)steps;
		f->wait[slot] = f->own[slot];
	}
}

static struct feed *
feed_new(size_t count)
{
	struct feed *f = calloc(1, sizeof(*f));

	ck_assert(f != NULL);
	*f = (struct feed){ .step_s = 1,
		.noise = 0.003,
		.random = 99,
		.t_us = START_US,
		.count = count };
	f->d.worker = f->worker;
	f->d.count = WORKERS;
	f->d.ready = true;
	for (size_t i = 0; i < WORKERS; i++)
		f->worker[i].warm = LS_DETECT_WARM;
	ck_assert_int_eq(ls_slow_reserve(&f->s, count), 0);
	return f;
}

static void
feed_free(struct feed *f)
{
	ls_slow_fini(&f->s);
	free(f);
}

LS_CASE(finds);

LS_TEST(finds, a_drift_of_a_percent_an_hour_is_found)
{
	struct feed *f = feed_new(WORKERS);
	uint64_t step;
	int64_t t_us;

	run(f, 400);
	drift(f, 3, 0.01, 3600);
	ck_assert_uint_eq(f->s.open, 1);
	ck_assert_int_eq(f->s.worker[3].level, LS_LEVEL_FINDING);
	ck_assert(ls_slow_onset(&f->s, 3, &step, &t_us));
	ck_assert_uint_ge(step, 50);
	ck_assert_uint_le(step, 1200);
	ck_assert_int_le(llabs((t_us - START_US) / 1000000 - (int64_t)step), 1);
	feed_free(f);
}

LS_TEST(finds, the_level_of_the_start_is_kept_and_its_return_is_seen)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	drift(f, 3, 0.01, 3600);
	run(f, 20000);
	ck_assert_int_eq(f->s.worker[3].level, LS_LEVEL_FINDING);
	f->own[3] = f->wait[3] = 0;
	run(f, 400);
	ck_assert_int_eq(f->s.worker[3].level, LS_LEVEL_QUIET);
	ck_assert_uint_eq(f->s.open, 0);
	feed_free(f);
}

LS_TEST(finds, workers_that_differ_lie_in_one_heap)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	for (size_t k = 0; k < 300; k++) {
		run(f, 32);
		ck_assert(!f->s.parted);
		for (size_t i = 0; i < WORKERS; i++) /* each goes its own way */
			f->own[i] = f->wait[i] +=
				0.002 * (ls_test_random(&f->random) - 0.5);
	}
	feed_free(f);
}

LS_TEST(finds, where_half_of_the_workers_drift_they_are_seen)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	/* a slice of two: each half is as far from the other's median */
	for (size_t k = 0; k < 3600; k += 16) {
		run(f, 16);
		for (size_t i = 0; i < WORKERS; i++)
			f->own[i] = f->wait[i] +=
				(i < WORKERS / 2 ? 0.03 : -0.03) * 16 / 3600;
	}
	ck_assert(f->s.parted);
	ck_assert(f->s.several);
	ck_assert_double_le(f->s.limit, 0.015);
	ck_assert_double_le(f->s.heap, -0.02);
	/* of no group that the judge knows, nobody is named */
	for (size_t i = 0; i < WORKERS; i++)
		ck_assert_int_eq(f->s.worker[i].level,
			i < WORKERS / 2 ? LS_LEVEL_SUSPECT : LS_LEVEL_QUIET);
	for (size_t i = 0; i < WORKERS / 2; i++)
		f->s.worker[i].grouped = true;
	run(f, 32);
	ck_assert_uint_eq(f->s.open, WORKERS / 2);
	feed_free(f);
}

LS_TEST(finds, a_small_step_is_no_drift)
{
	struct feed *f = feed_new(WORKERS);
	uint64_t step;
	int64_t t_us;

	run(f, 1000);
	f->own[5] = f->wait[5] = 0.008;
	run(f, 400);
	ck_assert_int_eq(f->s.worker[5].level, LS_LEVEL_FINDING);
	ck_assert(!ls_slow_onset(&f->s, 5, &step, &t_us));
	ck_assert_uint_ge(step, 968);
	ck_assert_uint_le(step, 1064);
	feed_free(f);
}

LS_CASE(what_is_no_drift_is_not);

/* A clock that is off moves arrivals, not durations; what only waits, or only works, is
 * not believed. */
LS_TEST(what_is_no_drift_is_not, work_and_wait_must_both_grow)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	f->own[1] = 0.02;
	f->wait[2] = 0.02;
	run(f, 1000);
	ck_assert_uint_eq(f->s.open, 0);
	feed_free(f);
}

LS_TEST_LOOP(what_is_no_drift_is_not, healthy_workers_stay_quiet, 0, 4)
{
	struct feed *f = feed_new(WORKERS);

	f->random += (uint64_t)_i * 7919;
	f->noise = _i % 2 == 0 ? 0.003 : 0.02;
	for (size_t i = 0; i < WORKERS; i++)
		f->own[i] = f->wait[i] =
			0.005 * (double)(i % 3); /* constant differences */
	for (size_t k = 0; k < 200; k++) {
		run(f, 100);
		ck_assert_uint_eq(f->s.open, 0);
	}
	feed_free(f);
}

/* Where one worker was 20 % of a step ahead, it may be 20 % of a longer step. */
LS_TEST_LOOP(what_is_no_drift_is_not, a_job_that_gets_slower_makes_no_drift, 0, 4)
{
	struct feed *f = feed_new(WORKERS);

	f->own[4] = f->wait[4] = _i < 2 ? 0.2 : -0.2;
	run(f, 400);
	f->step_s = 1.1;
	if (_i % 2 == 0) { /* its share grows with the step */
		f->own[4] *= 1.1;
		f->wait[4] *= 1.1;
	}
	run(f, 2000);
	ck_assert_uint_eq(f->s.open, 0);
	feed_free(f);
}

LS_TEST(what_is_no_drift_is_not, single_long_steps_are_no_drift)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	for (size_t k = 0; k < 40; k++) {
		f->own[7] = f->wait[7] = 3;
		run(f, 1);
		f->own[7] = f->wait[7] = 0;
		run(f, 59);
	}
	ck_assert_uint_eq(f->s.open, 0);
	/* nor is a while on a shared core */
	f->own[7] = f->wait[7] = 0.1;
	run(f, 80);
	f->own[7] = f->wait[7] = 0;
	run(f, 400);
	ck_assert_uint_eq(f->s.open, 0);
	feed_free(f);
}

LS_TEST(what_is_no_drift_is_not, many_at_once_are_nobody)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	for (size_t i = 0; i < 4; i++)
		f->own[i] = f->wait[i] = 0.02;
	run(f, 1000);
	ck_assert_uint_eq(f->s.open, 0);
	feed_free(f);
}

LS_TEST(what_is_no_drift_is_not, few_workers_that_wander_say_less)
{
	struct feed *f = feed_new(4);

	f->noise = 0.05;
	/* loads that stay for some blocks, as on a shared machine */
	for (size_t k = 0; k < 400; k++) {
		for (size_t i = 0; i < 4; i++)
			f->own[i] = f->wait[i] = noise(f) / 3;
		run(f, 100);
		ck_assert_uint_eq(f->s.open, 0);
	}
	feed_free(f);
}

LS_TEST(what_is_no_drift_is_not, who_is_found_otherwise_is_left_out_and_learns_anew)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 600);
	f->own[2] = f->wait[2] = 0.05;
	f->worker[2].found = 1;
	run(f, 600);
	ck_assert_uint_eq(f->s.open, 0);
	f->worker[2].found = 0;
	f->own[2] = f->wait[2] = 0;
	run(f, 600);
	ck_assert_uint_eq(f->s.open, 0);
	ck_assert(fabs((double)f->s.worker[2].drift) < 0.002);
	feed_free(f);
}

LS_TEST(what_is_no_drift_is_not, who_is_absent_is_neither_fast_nor_slow)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 600);
	f->absent[6] = true;
	run(f, 1000);
	ck_assert_uint_eq(f->s.open, 0);
	f->absent[6] = false;
	f->own[6] = f->wait[6] = 0.01;
	run(f, 400);
	ck_assert_int_eq(f->s.worker[6].level, LS_LEVEL_FINDING);
	feed_free(f);
}

LS_CASE(blocks);

LS_TEST(blocks, short_steps_make_blocks_of_many)
{
	struct feed *f = feed_new(WORKERS);

	f->step_s = 0.01;
	run(f, 3199);
	ck_assert_uint_eq(f->blocks, 0);
	run(f, 1);
	ck_assert_uint_eq(f->blocks, 1);
	ck_assert_uint_eq(f->s.block_steps, 3200);
	f->step_s = 10;
	run(f, 64);
	ck_assert_uint_eq(f->blocks, 3);
	feed_free(f);
}

LS_TEST(blocks, a_worker_that_moved_begins_anew)
{
	struct feed *f = feed_new(WORKERS);

	run(f, 400);
	f->own[3] = f->wait[3] = 0.02;
	run(f, 400);
	ck_assert_uint_eq(f->s.open, 1);
	ls_slow_reset_worker(&f->s, 3);
	ck_assert_uint_eq(f->s.open, 0);
	run(f, 1000);
	ck_assert_uint_eq(f->s.open, 0);
	feed_free(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/scales_parts.h"
#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 32

/* Residuals of a role, whose noise the test chooses. */
struct feed {
	struct ls_scales s;
	struct ls_blame_room room;
	uint32_t role[WORKERS];
	double excess[WORKERS]; /* of a step */
	double keep, noise; /* AR(1); keep 0: independent */
	double wander[WORKERS];
	double step_s, patience_s;
	uint64_t random;
	size_t count, rack; /* so many neighbours wander alike; 0: none */
	bool late, ever[WORKERS]; /* named at some time */
};

static struct feed *
feed_new(size_t count, double noise, double half_life)
{
	struct feed *f = calloc(1, sizeof(*f));

	ck_assert(f != NULL);
	*f = (struct feed){ .noise = noise,
		.keep = half_life > 0 ? pow(0.5, 1 / half_life) : 0,
		.step_s = 0.4,
		.patience_s = LS_SCALES_PATIENCE_S,
		.random = 4711,
		.count = count };
	ck_assert_int_eq(ls_scales_reserve(&f->s, count), 0);
	ck_assert_int_eq(ls_blame_reserve(&f->room, count), 0);
	ls_blame_group(&f->room, f->role, 1, count);
	return f;
}

static void
feed_free(struct feed *f)
{
	ls_scales_fini(&f->s);
	ls_blame_fini(&f->room);
	free(f);
}

static double
normal(struct feed *f)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += ls_test_random(&f->random) - 0.5;
	return sum;
}

static void
run(struct feed *f, size_t steps)
{
	struct ls_blame r[WORKERS];

	for (size_t k = 0; k < steps; k++) {
		for (size_t i = 0; i < f->count; i++) {
			f->wander[i] = f->rack > 0 && i % f->rack > 0
				? f->wander[i - 1]
				: f->keep * f->wander[i] +
					f->noise * sqrt(1 - f->keep * f->keep) *
						normal(f);
			r[i] = (struct ls_blame){
				.wait_s = (f->wander[i] + f->excess[i]) * f->step_s,
				.late_s = NAN
			};
		}
		ls_scales_step(&f->s, r, f->count, f->late, f->step_s, f->patience_s,
			&f->room);
		for (size_t i = 0; i < f->count; i++)
			f->ever[i] |= f->s.named[i] != 0;
	}
}

static size_t
ever(const struct feed *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++)
		n += f->ever[i];
	return n;
}

LS_CASE(all);

LS_TEST(all, wander_names_nobody)
{
	static const double half_life[] = { 0, 50, 500 };

	for (size_t k = 0; k < 3; k++) {
		struct feed *f = feed_new(WORKERS, 0.05, half_life[k]);

		run(f, 3000);
		ck_assert_uint_eq(ever(f), 0);
		feed_free(f);
	}
}

LS_TEST(all, culprit_in_wander_is_named_alone)
{
	struct feed *f = feed_new(WORKERS, 0.02, 50);

	run(f, 1500);
	f->excess[7] = 0.12;
	run(f, 600);
	ck_assert(f->ever[7]);
	ck_assert_uint_eq(ever(f), 1);
	f->excess[7] = 0;
	run(f, 1200);
	ck_assert_uint_eq(f->s.named[7], 0);
	feed_free(f);
}

/* Half of an onset in the middle of a datum would be in that datum, and half in the next one. */
LS_TEST(all, slowdown_in_wander_is_named_wherever_in_a_datum_it_begins)
{
	for (size_t k = 0; k < LS_SCALES_DATUM; k++) {
		struct feed *f = feed_new(WORKERS, 0.02, 50);

		run(f, 2000 + k);
		f->wander[7] = 0;
		f->excess[7] = 0.05;
		run(f, 3 * LS_SCALES_DATUM);
		ck_assert(f->ever[7]);
		ck_assert_uint_eq(ever(f), 1);
		feed_free(f);
	}
}

/* What it varies by helps to name it, and then goes the other way: the fault is still there. */
LS_TEST(all, culprit_in_wander_stays_named_while_it_is_slow)
{
	struct feed *f = feed_new(WORKERS, 0.05, 200);
	size_t named = 0;

	run(f, 1500);
	f->wander[7] = 0.05;
	f->excess[7] = 0.2;
	run(f, 40);
	ck_assert(f->s.named[7] != 0);
	f->wander[7] = -0.08;
	for (size_t k = 0; k < 8000; k++) {
		run(f, 1);
		named += f->s.named[7] != 0;
	}
	ck_assert_uint_eq(named, 8000);
	ck_assert_uint_eq(ever(f), 1);
	f->excess[7] = 0;
	run(f, 3000);
	ck_assert_uint_eq(f->s.named[7], 0);
	feed_free(f);
}

/* What was usual when it was named was more than it mostly is: that it falls is no end. */
LS_TEST(all, culprit_that_began_when_it_was_slower_than_usual_stays_named)
{
	struct feed *f = feed_new(WORKERS, 0.02, 500);
	size_t named = 0;

	run(f, 8000);
	for (size_t k = 0; k < 1000; k++) {
		f->excess[7] = 0.045 * (double)k / 1000;
		run(f, 1);
	}
	ck_assert_uint_eq(ever(f), 0);
	f->excess[7] += 0.08;
	run(f, 40);
	ck_assert(f->s.named[7] != 0);
	for (size_t k = 0; k < 1000; k++) {
		f->excess[7] -= 0.045 / 1000;
		run(f, 1);
	}
	for (size_t k = 0; k < 8000; k++) {
		run(f, 1);
		named += f->s.named[7] != 0;
	}
	ck_assert_uint_eq(named, 8000);
	feed_free(f);
}

/* It is over as soon as it could be named: longer windows, which still show it, do not matter. */
LS_TEST(all, what_is_over_is_not_named_for_long)
{
	struct feed *f = feed_new(WORKERS, 0.003, 0);

	run(f, 1500);
	f->excess[3] = 0.03;
	run(f, 3000);
	ck_assert(f->s.named[3] != 0);
	f->excess[3] = 0.02; /* the fault becomes less */
	run(f, 3000);
	ck_assert(f->s.named[3] != 0);
	f->excess[3] = 0;
	run(f, 20);
	ck_assert_uint_eq(f->s.named[3], 0);
	run(f, 3000);
	ck_assert_uint_eq(f->s.named[3], 0);
	feed_free(f);
}

/* Windows of seconds vary by 10 %, but from one to the next by far less. */
LS_TEST(all, jump_in_slow_wander_is_named_at_once)
{
	struct feed *f = feed_new(WORKERS, 0.1, 500);

	run(f, 1500);
	ck_assert_uint_eq(ever(f), 0);
	f->excess[7] = 0.3;
	run(f, 40);
	ck_assert(f->ever[7]);
	ck_assert_uint_eq(ever(f), 1);
	feed_free(f);
}

LS_TEST(all, shift_above_the_noise_is_named_within_windows_of_seconds)
{
	struct feed *f = feed_new(WORKERS, 0.003, 0);

	run(f, 1500);
	ck_assert_uint_eq(ever(f), 0);
	f->excess[3] = 0.03;
	run(f, 16);
	ck_assert(f->ever[3]);
	ck_assert_uint_eq(ever(f), 1);
	feed_free(f);
}

/* Steps until a culprit of 4 % is named, in jobs that have seen so many host-seconds before: the sum over three of them. */
static size_t
steps_to_name(double seen_s)
{
	size_t sum = 0;

	for (uint64_t seed = 1; seed <= LS_TEST_SEEDS(3); seed++) {
		struct feed *f = feed_new(WORKERS, 0.02, 0);
		size_t steps = 0;

		f->random = seed;
		run(f, 1500);
		f->s.seen_s += seen_s;
		f->excess[3] = 0.04;
		for (; !f->ever[3] && steps < 2000; steps += 4)
			run(f, 4);
		ck_assert_uint_eq(ever(f), 1);
		feed_free(f);
		sum += steps;
	}
	return sum;
}

/* One that has looked for longer than a host-week wants to be surer. */
LS_TEST(all, errors_of_an_old_job_do_not_add_up)
{
	const double week_s = 7 * 86400;
	size_t young = steps_to_name(0);

	ck_assert_uint_eq(steps_to_name(week_s / 2), young);
	ck_assert_uint_gt(steps_to_name(1e4 * week_s), young);
	ck_assert_uint_le(steps_to_name(1e4 * week_s), 4 * young);
}

LS_TEST(all, slow_from_the_first_step_is_named)
{
	struct feed *f = feed_new(8, 0.003, 0);

	f->excess[5] = 0.2;
	f->patience_s = 3;
	run(f, 60);
	ck_assert(f->ever[5]);
	ck_assert_uint_eq(ever(f), 1);
	feed_free(f);
}

/* Bursts of 20 steps on one worker after the other: what is usual names nobody. */
LS_TEST(all, what_others_have_shown_names_nobody)
{
	struct feed *f = feed_new(WORKERS, 0.003, 0);

	for (size_t k = 0; k < 60; k++) {
		size_t slot = k * 7 % WORKERS;

		if (k == 30)
			memset(f->ever, 0, sizeof(f->ever));
		f->excess[slot] = 0.08;
		run(f, 20);
		f->excess[slot] = 0;
		run(f, 40);
	}
	ck_assert_uint_eq(ever(f), 0);
	f->excess[4] = 0.15;
	run(f, 100);
	ck_assert(f->ever[4]);
	ck_assert_uint_eq(ever(f), 1);
	feed_free(f);
}

/* In a young job of few workers nobody has shown a burst before. */
LS_TEST(all, burst_is_no_slowdown_of_its_window)
{
	struct feed *f = feed_new(8, 0.003, 0);

	run(f, 800);
	f->excess[3] = 0.08;
	run(f, 20);
	f->excess[3] = 0;
	run(f, 600);
	ck_assert_uint_eq(ever(f), 0);
	feed_free(f);
}

/* Rare bursts on a job that knows itself: most of its windows are quiet. */
LS_TEST(all, burst_is_not_slow_from_the_start)
{
	for (uint64_t seed = 1; seed <= LS_TEST_SEEDS(3); seed++) {
		struct feed *f = feed_new(WORKERS, 0.003, 0);

		f->random = seed;
		for (size_t k = 0; k < 150; k++) {
			for (size_t i = 0; i < WORKERS; i++)
				f->excess[i] =
					ls_test_random(&f->random) < 0.02 ? 0.08 : 0;
			run(f, 20);
		}
		ck_assert_uint_eq(ever(f), 0);
		feed_free(f);
	}
}

/* Windows that follow each other vary alike: they tell less than as many independent ones. */
LS_TEST(all, slow_wander_of_few_workers_names_nobody)
{
	for (uint64_t seed = 1; seed <= LS_TEST_SEEDS(40); seed++) {
		struct feed *f = feed_new(8, 0.05, 1000);

		f->random = seed;
		run(f, 1500);
		ck_assert_uint_eq(ever(f), 0);
		feed_free(f);
	}
}

/* Each half of the job is another rack: a worker has as many peers like itself as others. */
LS_TEST(all, racks_that_wander_name_nobody)
{
	for (uint64_t seed = 1; seed <= LS_TEST_SEEDS(5); seed++) {
		struct feed *f = feed_new(16, 0.03, 200);

		f->random = seed;
		f->rack = 8;
		run(f, 6000);
		ck_assert_uint_eq(ever(f), 0);
		feed_free(f);
	}
}

/* With three peers and twenty seconds. */
LS_TEST(all, third_slower_from_the_first_step_is_named_soon)
{
	struct feed *f = feed_new(4, 0.01, 0);

	f->excess[3] = 0.33;
	f->step_s = 0.12;
	run(f, 100);
	ck_assert(f->ever[3]);
	ck_assert_uint_eq(ever(f), 1);
	feed_free(f);
}

LS_TEST(all, young_job_is_patient)
{
	struct feed *f = feed_new(8, 0.003, 0);

	run(f, 600); /* 1,920 host-seconds of 14,400 */
	f->excess[2] = 0.04;
	run(f, 100); /* 40 s */
	ck_assert_uint_eq(ever(f), 0);
	run(f, 300);
	ck_assert(f->ever[2]);
	f->excess[5] = 0.5; /* for which 6 s are enough */
	run(f, 40);
	ck_assert(f->ever[5]);
	ck_assert_uint_eq(ever(f), 2);
	feed_free(f);
}

LS_TEST(all, patience_of_zero_is_silence_until_the_job_knows_itself)
{
	struct feed *f = feed_new(8, 0.003, 0);

	f->patience_s = 0;
	run(f, 600);
	ck_assert(ls_scales_is_silent(&f->s));
	run(f, 4000);
	ck_assert(!ls_scales_is_silent(&f->s));
	feed_free(f);
}

/* Few peers and a short past: Student's tail is wide. */
LS_TEST(all, short_past_needs_more)
{
	for (size_t past = 0; past < 2; past++) {
		struct feed *f = feed_new(3, 0.01, 0);

		f->patience_s = 3;
		run(f, past == 0 ? 50 : 800);
		f->excess[1] = 0.035;
		run(f, 16);
		ck_assert_uint_eq(ever(f), past);
		feed_free(f);
	}
}

LS_TEST(all, reset_forgets_one_worker_and_another_residual_all)
{
	struct feed *f = feed_new(WORKERS, 0.003, 0);

	run(f, 1500);
	f->excess[3] = f->excess[4] = 0.1;
	run(f, 40);
	ck_assert(f->s.named[3] != 0 && f->s.named[4] != 0);
	ls_scales_reset_worker(&f->s, 3);
	ck_assert_uint_eq(f->s.named[3], 0);
	ck_assert(f->s.named[4] != 0);
	f->late = true;
	run(f, 4);
	ck_assert_uint_eq(f->s.named[4], 0);
	feed_free(f);
}

/* First steps were slow: windows are as long as if they had not been. */
LS_TEST(all, windows_follow_the_step_time)
{
	struct feed *f = feed_new(8, 0.003, 0);

	f->step_s = 4;
	run(f, 20);
	f->step_s = 0.02;
	run(f, 15000);
	f->excess[3] = 0.1;
	run(f, 15000);
	ck_assert(f->ever[3]);
	ck_assert_uint_eq(ever(f), 1);
	feed_free(f);
}

/* The room for one more worker keeps what is known of the others. */
LS_TEST(all, growth_keeps_what_is_known)
{
	struct feed *f = feed_new(8, 0.003, 0), *g = feed_new(8, 0.003, 0);

	f->patience_s = g->patience_s = 3;
	run(f, 800);
	run(g, 400);
	ck_assert_int_eq(ls_scales_reserve(&g->s, 9), 0);
	ls_scales_reset_worker(&g->s, 8);
	g->s.count = 8;
	run(g, 400);
	f->excess[1] = g->excess[1] = 0.05;
	run(f, 40);
	run(g, 40);
	ck_assert(f->s.named[1] != 0);
	ck_assert_uint_eq(f->s.named[1], g->s.named[1]);
	feed_free(f);
	feed_free(g);
}

LS_TEST(all, memory_of_a_worker_is_bounded)
{
	ck_assert_uint_le(LS_SCALES_ROWS * sizeof(float) + sizeof(uint16_t), 2949);
}

/* The longest windows that were looked at after the newest unit: what the rows of scales.h hold is about these. */
static unsigned
looked_at(const struct ls_scales *s)
{
	unsigned length = 1;

	for (unsigned k = 2; k < LS_SCALES_LENGTHS; k++)
		if (s->units >= 1ull << k && s->units % ((1ull << k) / 4) == 0)
			length = k;
	return length;
}

/* Workers whom the whole test finds slow; none is one whom the quick question would have spared. */
static size_t
possible(struct feed *f)
{
	unsigned length = looked_at(&f->s);
	uint32_t list[WORKERS];
	size_t slow = 0;

	for (uint32_t i = 0; i < f->count; i++)
		list[i] = i;
	for (uint32_t i = 0; i < f->count; i++) {
		size_t skip = f->count > LS_SIXTEENTH ? LS_SCALES_NONE : i;
		struct ls_scales_middle change = ls_scales_middle(&f->s, length,
						LS_SCALES_CHANGE, list, f->count, skip,
						UINT32_MAX, LS_SCALES_FLOOR),
					jump = ls_scales_middle(&f->s, length,
						LS_SCALES_JUMP, list, f->count, skip,
						UINT32_MAX, LS_SCALES_FLOOR);
		struct ls_scales_peers peers =
			ls_scales_measure(&f->s, length, list, f->count, skip);

		if (ls_scales_test(&f->s, length, list, f->count, i, &peers) ==
			LS_SCALES_ROWS)
			continue;
		slow++;
		ck_assert_msg(ls_scales_is_possible(&f->s, length, i, &change, &jump),
			"worker %u, length %u, unit %llu", i, length,
			(unsigned long long)f->s.units);
	}
	return slow;
}

static const struct {
	double noise, half_life, excess;
	size_t count;
	bool born, drifts;
} slow[] = {
	{ 0.003, 0, 0.01, WORKERS, false, false },
	{ 0.003, 0, 0.01, 8, false, false },
	{ 0.003, 0, 0.02, 4, false, true },
	{ 0.02, 0, 0.1, WORKERS, false, true },
	{ 0.02, 50, 0.2, WORKERS, false, false },
	{ 0.003, 0, 0.08, WORKERS, true, false },
	{ 0.02, 0, 0.15, 8, true, false },
};

LS_TEST_EACH(all, nobody_is_slow_who_need_not_be_measured, slow)
{
	struct feed *f = feed_new(slow[_i].count, slow[_i].noise, slow[_i].half_life);
	uint64_t units = 0;
	size_t found = 0;

	if (!slow[_i].born)
		run(f, 1000);
	units = f->s.units;
	for (size_t k = 0; k < 1000; k++) {
		f->excess[1] =
			slow[_i].excess * (slow[_i].drifts ? (double)k / 500 : 1);
		run(f, 1);
		if (f->s.units > units && f->s.units > 1)
			found += possible(f);
		units = f->s.units;
	}
	ck_assert_uint_gt(found, 0);
	feed_free(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/detect_base.h"

#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 4 };

#define STEP_S 0.1

/* A detector and what is fed to it: residuals around zero with some noise, and what the
 * test adds. */
struct feed {
	struct ls_detect d;
	struct ls_scales scales; /* of d, if it has some; it names nobody */
	struct ls_blame_room room;
	double grows_s; /* late_s, own_s, wait_s and grown_s, each step */
	uint64_t random, step;
	bool clocks_ok;
	double late_s, own_s, wait_s; /* added for worker 1 */
	double other_s; /* all three of worker 2 */
	double exit_s; /* added to the exits of worker 2 */
	double grown_s, comm_s; /* added to the step, and to the collective */
	/* by so much arrivals seem earlier than they are */
	double astray_s;
	double gap_s; /* worker 1 arrives so far behind all */
	double step_s;
	double spread; /* deviation of the noise, ratio to the step */
	bool reversed; /* workers came in the other order */
	/* mean of what worker 1 is late by, own work, exponential */
	double erratic_s;
};

static double
noise(struct feed *f)
{
	double sum = -6;

	for (int i = 0; i < 12; i++) /* close to a Gaussian of deviation 1 */
		sum += ls_test_random(&f->random);
	return sum * f->spread * f->step_s;
}

/* Worker 1, and with it each step. */
static void
slower(struct feed *f, double s)
{
	f->late_s = f->own_s = f->wait_s = f->grown_s = s;
}

static void
run(struct feed *f, size_t steps)
{
	for (size_t k = 0; k < steps; k++) {
		struct ls_blame r[WORKERS];
		double late_s = f->erratic_s > 0
			? -f->erratic_s * log(ls_test_random(&f->random))
			: 0;
		struct ls_blame_step totals = { .used = WORKERS,
			.duration_s =
				f->step_s + f->grown_s + f->gap_s + late_s + noise(f),
			.net = { 0.01 + f->comm_s + f->astray_s + noise(f),
				0.01 + f->comm_s + noise(f), NAN },
			.last = f->gap_s > 0 ? 1 : SIZE_MAX,
			.gap_s = f->gap_s };

		for (size_t i = 0; i < WORKERS; i++)
			r[i] = (struct ls_blame){ .late_s = noise(f),
				.wait_s = noise(f),
				.own_s = noise(f),
				.exit_s = i == 2 ? f->exit_s : 0 };
		r[1].late_s += f->late_s + f->gap_s + late_s;
		r[1].own_s += f->own_s + f->gap_s + late_s;
		r[1].wait_s += f->wait_s + late_s;
		r[2].late_s += f->other_s;
		r[2].own_s += f->other_s;
		r[2].wait_s += f->other_s;
		for (size_t i = 0; f->reversed && i < WORKERS / 2; i++) {
			struct ls_blame other = r[i];

			r[i] = r[WORKERS - 1 - i];
			r[WORKERS - 1 - i] = other;
		}
		if (f->reversed && totals.last != SIZE_MAX)
			totals.last = WORKERS - 1 - totals.last;
		if (f->d.scales != NULL)
			ls_scales_step(&f->scales, r, WORKERS, true, f->step_s, 1e9,
				&f->room);
		ls_detect_step(&f->d, f->step, (int64_t)f->step * 100000, f->clocks_ok,
			r, WORKERS, &totals);
		if (f->grows_s > 0)
			slower(f, f->late_s + f->grows_s);
		f->step++;
	}
}

static struct feed feed;

static void
setup(void)
{
	feed = (struct feed){
		.random = 42, .clocks_ok = true, .step_s = STEP_S, .spread = 0.002
	};
	ck_assert_int_eq(ls_detect_reserve(&feed.d, WORKERS), 0);
}

static void
teardown(void)
{
	ls_detect_fini(&feed.d);
	ls_scales_fini(&feed.scales);
	ls_blame_fini(&feed.room);
	ck_assert_ptr_null(feed.d.worker);
}

static struct ls_detect_channel *
channel(size_t worker, enum ls_detect_kind kind)
{
	return &feed.d.worker[worker].channel[kind];
}

LS_CASE(all, setup, teardown);

LS_TEST(all, noise_stays_quiet)
{
	run(&feed, 4000);
	for (size_t i = 0; i < WORKERS; i++)
		for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
			ck_assert_int_eq(channel(i, (enum ls_detect_kind)k)->level,
				LS_LEVEL_QUIET);
	ck_assert_uint_eq(feed.d.open, 0);
	ck_assert_int_eq(feed.d.mode, LS_MODE_LATENESS);
}

LS_TEST(all, chronic_lateness_is_suspected_then_found)
{
	struct ls_detect_channel *ch = channel(1, LS_DETECT_CHRONIC);
	uint64_t suspect_at = 0, found_at = 0;

	run(&feed, 150);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.003;
	while (found_at == 0 && feed.step < 300) {
		run(&feed, 1);
		if (ch->level == LS_LEVEL_SUSPECT && suspect_at == 0)
			suspect_at = feed.step;
		if (ch->level == LS_LEVEL_FINDING)
			found_at = feed.step;
	}
	ck_assert_uint_gt(suspect_at, 150);
	ck_assert_uint_gt(found_at, suspect_at);
	ck_assert_uint_le(found_at, 190);
	ck_assert_uint_eq(feed.d.open, 1);
	ck_assert_double_ge(ch->c, LS_DETECT_FINDING);
	ck_assert_double_eq_tol((double)ch->ep.start_step, 150, 6);
	ck_assert_double_eq_tol(ls_detect_excess_ratio(&feed.d, &ch->ep), 0.03, 0.004);
	ck_assert_double_eq_tol(ch->ep.before_s, STEP_S, 0.001);
	ck_assert_int_eq(channel(0, LS_DETECT_CHRONIC)->level, LS_LEVEL_QUIET);
}

/* Half of the workers share one CPU, half another, and the CPUs are not always equally
 * fast. That is what is normal here. */
/* Of steps of 1.5 ms, 3 % are less than the waking of a thread takes. */
LS_TEST(all, shift_shorter_than_a_wake_up_is_only_suspected)
{
	feed.step_s = 0.0015;
	run(&feed, 150);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.8 * LS_DETECT_LEAST_S;
	run(&feed, 300);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_SUSPECT);
	ck_assert_uint_eq(feed.d.open, 0);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 3 * LS_DETECT_LEAST_S;
	run(&feed, 300);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_FINDING);
}

/* Workers are named, by the test, over windows of 64 steps. */
static void
name(double excess, unsigned bits)
{
	feed.scales.named[1] = (uint16_t)(4 | bits);
	feed.scales.row[LS_SCALES_EXCESS * feed.scales.capacity + 1] = (float)excess;
	feed.scales.row[LS_SCALES_USUAL * feed.scales.capacity + 1] = 0;
	/* no windows since then can say that it is over */
	feed.scales.row[LS_SCALES_TURNED * feed.scales.capacity + 1] = INFINITY;
}

static void
ask(void)
{
	static const uint32_t role[WORKERS];

	ck_assert_int_eq(ls_scales_reserve(&feed.scales, WORKERS), 0);
	ck_assert_int_eq(ls_blame_reserve(&feed.room, WORKERS), 0);
	ls_blame_group(&feed.room, role, 1, WORKERS);
	feed.d.scales = &feed.scales;
	feed.d.asked = true;
}

/* A shift below the noise of a step: scales says how much it is, since when, and how it came. */
LS_TEST_LOOP(all, who_is_named_by_its_peers_is_found, 0, 4)
{
	const bool born = _i == 1, late = _i == 2, gradual = _i == 3;
	const struct ls_episode *ep = &channel(1, LS_DETECT_CHRONIC)->ep;
	double onset;

	ask();
	feed.spread = 0.06;
	run(&feed, born ? 0 : 700);
	slower(&feed, gradual ? 0 : 0.05 * STEP_S);
	feed.grows_s = gradual ? 0.15 * STEP_S / 2000 : 0;
	run(&feed, born ? 700 : 0);
	run(&feed, late || gradual ? 2000 : 150); /* a baseline follows 512 steps */
	feed.grows_s = 0;
	ck_assert_uint_eq(feed.d.open, 0);
	name(gradual ? 0.15 : 0.05, born ? LS_SCALES_BORN : 0);
	run(&feed, 100);
	ck_assert_uint_eq(feed.d.open, 1);
	onset = (double)(ep->start_step - ep->lasted);
	ck_assert(fabs(onset - (born ? 1 : 700)) <= (born ? 0 : gradual ? 400 : 100));
	ck_assert(ep->gradual == gradual);
	ck_assert(isnan(ep->before_s) == (born || late || gradual));
	run(&feed, 3000); /* it stays found */
	ck_assert_uint_eq(feed.d.open, 1);
	feed.scales.named[1] = 0;
	slower(&feed, 0);
	run(&feed, 400);
	ck_assert_uint_eq(feed.d.open, 0);
}

/* Its own steps may say for a while that it is as before: it is found until scales says so. */
LS_TEST(all, who_is_named_stays_found)
{
	ask();
	feed.spread = 0.06;
	run(&feed, 700);
	slower(&feed, 0.05 * STEP_S);
	run(&feed, 150);
	name(0.05, 0);
	run(&feed, 100);
	ck_assert_uint_eq(feed.d.open, 1);
	slower(&feed, 0.02 * STEP_S);
	run(&feed, 2000);
	ck_assert_uint_eq(feed.d.open, 1);
	feed.scales.named[1] = 0;
	slower(&feed, 0);
	run(&feed, 400);
	ck_assert_uint_eq(feed.d.open, 0);
}

/* Named when it is over: nobody is found. */
LS_TEST(all, what_is_over_is_not_found)
{
	ask();
	feed.spread = 0.1;
	run(&feed, 700);
	slower(&feed, 0.05 * STEP_S);
	run(&feed, 150);
	slower(&feed, 0);
	name(0.2, 0);
	run(&feed, 100);
	ck_assert_uint_eq(feed.d.open, 0);
}

/* With noise, or with very little, it may have begun before: scales says since when it matters. */
LS_TEST(all, what_was_very_little_is_no_onset)
{
	const struct ls_episode *ep = &channel(1, LS_DETECT_CHRONIC)->ep;

	ask();
	run(&feed, 500);
	slower(&feed, 0.01 * STEP_S);
	run(&feed, 150);
	slower(&feed, 0.2 * STEP_S);
	run(&feed, 150);
	name(0.16, 0);
	run(&feed, 1);
	ck_assert_uint_eq(feed.d.open, 1);
	ck_assert_double_eq_tol((double)ep->start_step, 650, 4);
	ck_assert(llabs(ep->start_us - 650 * 100000) <
		3600000); /* steps were shorter */
	ck_assert_uint_eq(ep->lasted, 0);
	ck_assert(!ep->gradual);
}

/* It began after the last window that has ended, or in that: the CUSUM knows. */
LS_TEST_LOOP(all, onset_of_what_is_named_at_once_is_exact, 0, 8)
{
	const struct ls_episode *ep = &channel(1, LS_DETECT_CHRONIC)->ep;

	ask();
	feed.random += (uint64_t)_i;
	run(&feed, 350);
	slower(&feed, 0.2 * STEP_S);
	run(&feed, 21 + 5 * (size_t)_i);
	name(0.2, 0);
	run(&feed, 1);
	ck_assert_uint_eq(feed.d.open, 1);
	ck_assert_double_eq_tol((double)(ep->start_step - ep->lasted), 350, 4);
	ck_assert(!ep->gradual);
}

/* Its baselines followed what came little by little: what its own work has grown by is taken out
 * of them, and no more. */
LS_TEST(all, what_own_work_did_not_grow_by_is_no_excess)
{
	struct ls_detect_worker w = { .base_s = 0.05,
		.base_own_s = 0.03,
		.first_own_s = 0.01,
		.base_wait_s = 0.05 };

	ls_detect_base_reset(&w, false, 0.01);
	ck_assert_double_eq_tol(w.base_s, 0.03, 1e-9);
	ck_assert_double_eq_tol(w.base_own_s, 0.01, 1e-9);
	ls_detect_base_reset(&w, false, 0.01);
	ck_assert_double_eq_tol(w.base_s, 0.03, 1e-9);
	ls_detect_base_reset(&w, true, 0.025); /* of its peers: from the start */
	ck_assert_double_eq_tol(w.base_s, 0.025, 1e-9);
}

/* Replay knows workers in another order than they came in: it must find the same, to
 * the last bit. */
LS_TEST(all, order_of_workers_does_not_matter)
{
	struct feed other = { .random = 42,
		.clocks_ok = true,
		.step_s = STEP_S,
		.spread = 0.002,
		.reversed = true };

	ck_assert_int_eq(ls_detect_reserve(&other.d, WORKERS), 0);
	for (int k = 0; k < 4; k++) {
		feed.erratic_s = other.erratic_s = k % 2 * 0.1 * STEP_S;
		run(&feed, 200);
		run(&other, 200);
		for (size_t i = 0; i < WORKERS; i++) {
			const struct ls_detect_worker
				*a = &feed.d.worker[i],
				*b = &other.d.worker[WORKERS - 1 - i];

			ck_assert_mem_eq(&a->base_s, &b->base_s, sizeof(a->base_s));
			ck_assert_mem_eq(&a->sigma, &b->sigma, sizeof(a->sigma));
			ck_assert_int_eq(a->channel[LS_DETECT_CHRONIC].level,
				b->channel[LS_DETECT_CHRONIC].level);
		}
	}
	ls_detect_fini(&other.d);
}

LS_TEST(all, nothing_is_found_while_baselines_are_learned)
{
	/* from the start, below "born slow" */
	feed.late_s = feed.own_s = feed.wait_s = 0.005;
	run(&feed, LS_DETECT_WARM + LS_DETECT_SKIP);
	ck_assert_double_eq(channel(1, LS_DETECT_CHRONIC)->c, 0);
	run(&feed, 300);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_QUIET);
	ck_assert_double_eq_tol(feed.d.worker[1].base_s, 0.005, 0.0005);
}

LS_TEST(all, first_steps_weigh_no_more_than_others)
{
	feed.spread = 0.03;
	feed.late_s = feed.own_s = feed.wait_s = 0.004; /* only while the job starts */
	run(&feed, LS_DETECT_WARM + LS_DETECT_SKIP);
	ck_assert_double_eq_tol(feed.d.worker[1].base_s, 0.004, 0.0012);
	feed.late_s = feed.own_s = feed.wait_s = 0;
	run(&feed, 3 * LS_DETECT_WARM);
	ck_assert_double_eq_tol(feed.d.worker[1].base_s, 0.004 / 4, 0.0008);
	ck_assert_double_eq_tol(feed.d.worker[1].base_own_s, 0.004 / 4, 0.0008);
	ck_assert_double_eq_tol(feed.d.worker[1].base_wait_s, 0.004 / 4, 0.0008);
}

LS_TEST(all, born_slow_is_not_taken_for_a_baseline)
{
	feed.late_s = feed.own_s = feed.wait_s = 0.03;
	run(&feed, LS_DETECT_WARM + LS_DETECT_SKIP);
	ck_assert_double_lt(feed.d.worker[1].base_s, 0.005);
	run(&feed, 40);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_FINDING);
}

LS_TEST(all, lateness_without_evidence_is_only_suspected)
{
	run(&feed, 150);
	feed.late_s = 0.01; /* no own work, no less waiting, no longer steps */
	run(&feed, 200);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_SUSPECT);
	ck_assert_uint_eq(feed.d.open, 0);
}

/* Steps from now on until worker 1 is found, at most so many; 0: it is not. */
static uint64_t
found_within(struct feed *f, uint64_t steps)
{
	for (uint64_t k = 1; k <= steps; k++) {
		run(f, 1);
		if (f->d.open > 0)
			return k;
	}
	return 0;
}

/* Of a load of 3 to 15 % of the step, as two processes make that share a core. */
static void
pass(uint64_t seed, double of_step)
{
	feed = (struct feed){
		.random = seed, .clocks_ok = true, .step_s = STEP_S, .spread = 0.003
	};
	ck_assert_int_eq(ls_detect_reserve(&feed.d, WORKERS), 0);
	run(&feed, 150);
	feed.erratic_s = of_step * STEP_S;
}

LS_TEST(all, load_that_passes_is_only_suspected)
{
	for (unsigned i = 0; i < 40; i++) {
		ls_detect_fini(&feed.d);
		pass(7 + i, 0.03 * (1 + i % 5));
		ck_assert_uint_eq(found_within(&feed, 80), 0);
		ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level,
			LS_LEVEL_SUSPECT);
		feed.erratic_s = 0;
		/* nor when it is over */
		ck_assert_uint_eq(found_within(&feed, 200), 0);
		ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_QUIET);
	}
}

/* Nor if a shift far below all that is told began long before it and goes on: then most
 * of the episode is the load alone. */
LS_TEST(all, load_on_top_of_very_little_is_only_suspected)
{
	for (unsigned i = 0; i < 20; i++) {
		ls_detect_fini(&feed.d);
		pass(7 + i, 0);
		feed.late_s = feed.own_s = feed.wait_s = 0.0012 * STEP_S;
		run(&feed, 120);
		feed.erratic_s = 0.13 * STEP_S;
		ck_assert_uint_eq(found_within(&feed, 80), 0);
		feed.erratic_s = 0;
		ck_assert_uint_eq(found_within(&feed, 200), 0);
	}
}

/* Nor some steps after its end, however small its mean has become by what began before
 * it. */
LS_TEST(all, load_that_is_over_is_not_found)
{
	uint64_t over = 0;

	for (unsigned i = 0; i < 400; i++) {
		ls_detect_fini(&feed.d);
		pass(7 + i, 0);
		feed.late_s = feed.own_s = feed.wait_s = 0.001 * (1 + i % 8) * STEP_S;
		run(&feed, 80);
		feed.erratic_s = 0.01 * (2 + i % 5) * STEP_S;
		if (found_within(&feed, 66) > 0)
			continue;
		feed.late_s = feed.own_s = feed.wait_s = feed.erratic_s = 0;
		if (found_within(&feed, 10) > 0)
			continue;
		ck_assert_uint_eq(found_within(&feed, 200), 0);
		over++;
	}
	ck_assert_uint_gt(over, 350);
}

/* A load that has passed does not hide for good what is far less and stays. */
LS_TEST(all, what_stays_after_a_load_is_found)
{
	ls_detect_fini(&feed.d);
	pass(7, 0.13);
	ck_assert_uint_eq(found_within(&feed, 80), 0);
	feed.erratic_s = 0;
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.02 * STEP_S;
	ck_assert_uint_gt(found_within(&feed, 1000), 0);
}

LS_TEST(all, load_that_stays_is_found)
{
	for (unsigned i = 0; i < 40; i++) {
		uint64_t steps;

		ls_detect_fini(&feed.d);
		pass(7 + i, 0.03 * (1 + i % 5));
		steps = found_within(&feed, 2 * LS_DETECT_LASTS);
		/* noise may have begun it */
		ck_assert_uint_ge(steps, LS_DETECT_LASTS - 10);
		ck_assert_uint_gt(steps, 80);
	}
}

LS_TEST(all, shift_that_is_steady_or_gross_need_not_wait)
{
	uint64_t steps;

	run(&feed, 150);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.02 * STEP_S;
	steps = found_within(&feed, 80);
	ck_assert_uint_ge(steps, LS_DETECT_LASTS_STEADY - 5);
	ck_assert_uint_le(steps, 2 * LS_DETECT_LASTS_STEADY);
	ls_detect_fini(&feed.d);
	pass(7, 0.6);
	steps = found_within(&feed, 80);
	ck_assert_uint_ge(steps, LS_DETECT_LASTS_STEADY - 5);
	ck_assert_uint_le(steps, 2 * LS_DETECT_LASTS_STEADY);
}

/* Held back in three steps of ten: its baseline must not follow that. */
LS_TEST(all, delays_that_come_and_go_are_found)
{
	uint64_t steps;

	run(&feed, 150);
	for (steps = 0; steps < 240 && feed.d.open == 0; steps++) {
		bool held = ls_test_random(&feed.random) < 0.3;

		feed.late_s = feed.own_s = feed.wait_s = feed.grown_s =
			held ? 0.25 * STEP_S : 0;
		run(&feed, 1);
	}
	ck_assert_uint_lt(steps, 240);
	ck_assert_double_lt(feed.d.worker[1].base_s, 0.01 * STEP_S);
	ck_assert_uint_ge(channel(1, LS_DETECT_CHRONIC)->ep.start_step, 145);
}

LS_TEST(all, finding_clears_after_calm_steps)
{
	struct ls_detect_channel *ch = channel(1, LS_DETECT_CHRONIC);

	run(&feed, 150);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.01;
	run(&feed, 60);
	ck_assert_int_eq(ch->level, LS_LEVEL_FINDING);
	ck_assert_double_le(ch->c, LS_DETECT_CAP);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0;
	run(&feed, LS_DETECT_CLEAR_STEPS);
	ck_assert_int_eq(ch->level, LS_LEVEL_FINDING); /* not at once */
	run(&feed, 100);
	ck_assert_int_eq(ch->level, LS_LEVEL_QUIET);
	ck_assert_uint_eq(feed.d.open, 0);
	ck_assert_uint_eq(ch->ep.steps, 0);
	ck_assert_double_eq(ls_detect_excess_ratio(&feed.d, &ch->ep), 0);
}

/* While one is found another moves, little by little. It may stay there afterwards, or
 * go back: neither is a fault of its own. */
LS_TEST_LOOP(all, who_moves_while_another_is_found_is_not_blamed, 0, 2)
{
	struct ls_detect_worker *w = &feed.d.worker[2];

	run(&feed, 150);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.03;
	run(&feed, 100);
	ck_assert_uint_eq(feed.d.open, 1);
	for (size_t i = 0; i < 3000; i++, feed.other_s += 1e-6) {
		run(&feed, 1);
		ck_assert_int_eq(w->found, 0);
	}
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0;
	feed.other_s = _i == 0 ? feed.other_s : 0;
	for (size_t i = 0; i < 1000; i++) {
		run(&feed, 1);
		ck_assert_int_eq(w->found, 0);
	}
	ck_assert_uint_eq(feed.d.open, 0);
	ck_assert_double_eq_tol(w->base_s, feed.other_s, 0.0003);
	feed.other_s += 0.005; /* and now it is one */
	feed.grown_s = 0.005;
	run(&feed, 60);
	ck_assert_int_eq(channel(2, LS_DETECT_CHRONIC)->level, LS_LEVEL_FINDING);
}

/* Of many workers one or another is above the level by noise alone: they are not
 * suspects. */
LS_TEST(all, among_many_more_is_needed_for_a_suspect)
{
	const size_t many = 200000;
	double c[2];

	for (size_t k = 0; k < 2; k++) {
		if (k == 1)
			ck_assert_int_eq(ls_detect_reserve(&feed.d, many), 0);
		run(&feed, 150);
		feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.001;
		for (size_t i = 0; i < 300 &&
			channel(1, LS_DETECT_CHRONIC)->level == LS_LEVEL_QUIET;
			i++)
			run(&feed, 1);
		c[k] = channel(1, LS_DETECT_CHRONIC)->c;
		if (k == 1)
			break;
		teardown();
		setup();
	}
	ck_assert_double_ge(c[0], LS_DETECT_SUSPECT);
	ck_assert_double_le(c[0], LS_DETECT_SUSPECT + 2.45);
	ck_assert_double_ge(c[1], log((double)many) / 1.1);
	ck_assert_double_le(ls_detect_nearness(&feed.d.worker[1]), 1);
	ck_assert_double_ge(ls_detect_nearness(&feed.d.worker[1]), 0.3);
	ck_assert_double_eq(ls_detect_nearness(&feed.d.worker[900]), 0);
}

/* Four stalls in 200 steps, where nobody else ever stalls; three could be equally far
 * apart. */
LS_TEST(all, stalls_of_one_say_more_where_nobody_stalls)
{
	static const unsigned gaps[] = { 59, 44, 69, 39 };

	run(&feed, 600);
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		ck_assert_int_ne(channel(1, LS_DETECT_STALLS)->level, LS_LEVEL_FINDING);
		feed.gap_s = 0.1;
		run(&feed, 1);
		feed.gap_s = 0;
		if (i + 1 < sizeof(gaps) / sizeof(gaps[0]))
			run(&feed, gaps[i]);
	}
	ck_assert_int_eq(channel(1, LS_DETECT_STALLS)->level, LS_LEVEL_FINDING);
}

LS_TEST(all, stalls_count_against_a_rare_rate)
{
	struct ls_detect_channel *ch = channel(1, LS_DETECT_STALLS);
	static const unsigned gaps[] = { 11, 3, 29, 7, 17, 5, 31, 13 };

	run(&feed, 100);
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		feed.gap_s = 0.2;
		run(&feed, 1);
		feed.gap_s = 0;
		if (i == 0)
			ck_assert_int_ne(ch->level,
				LS_LEVEL_FINDING); /* one is chance */
		run(&feed, gaps[i]);
	}
	ck_assert_int_eq(ch->level, LS_LEVEL_FINDING);
	ck_assert_uint_eq(ch->ep.hits, 8);
	run(&feed, (size_t)(LS_RARE / LS_STALL_FAULT_RATE));
	ck_assert_int_eq(ch->level, LS_LEVEL_QUIET);
}

LS_TEST(all, stalls_equally_far_apart_are_checkpoints)
{
	run(&feed, 100);
	for (int i = 0; i < 30; i++) {
		feed.gap_s = 0.2;
		run(&feed, 1);
		feed.gap_s = 0;
		run(&feed, 24);
	}
	ck_assert_int_ne(channel(1, LS_DETECT_STALLS)->level, LS_LEVEL_FINDING);
}

LS_TEST(all, longer_collectives_are_communication)
{
	run(&feed, 150);
	feed.comm_s = feed.grown_s = 0.03;
	run(&feed, 60);
	ck_assert_int_eq(feed.d.net[0].channel[LS_DETECT_CHRONIC].level,
		LS_LEVEL_FINDING);
	for (size_t i = 0; i < WORKERS; i++)
		ck_assert_int_eq(channel(i, LS_DETECT_CHRONIC)->level, LS_LEVEL_QUIET);
	feed.comm_s = feed.grown_s = 0;
	run(&feed, 150);
	ck_assert_int_eq(feed.d.net[0].channel[LS_DETECT_CHRONIC].level,
		LS_LEVEL_QUIET);
}

/* Arrivals that seem early because clocks are not known yet: the waits do not bear them
 * out. */
LS_TEST(all, clocks_that_settle_are_no_communication)
{
	feed.astray_s = -0.03;
	run(&feed, 150);
	feed.astray_s = 0;
	run(&feed, 300);
	for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
		ck_assert_int_eq(feed.d.net[0].channel[k].level, LS_LEVEL_QUIET);
	/* and what is communication is still found */
	feed.comm_s = feed.grown_s = 0.03;
	run(&feed, 60);
	ck_assert_int_eq(feed.d.net[0].channel[LS_DETECT_CHRONIC].level,
		LS_LEVEL_FINDING);
}

LS_TEST(all, time_outs_are_stalls_of_communication)
{
	static const unsigned gaps[] = { 11, 3, 19, 7, 17, 5 };

	run(&feed, 150);
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		feed.comm_s = 0.2;
		run(&feed, 1);
		feed.comm_s = 0;
		run(&feed, gaps[i]);
	}
	ck_assert_int_eq(feed.d.net[0].channel[LS_DETECT_STALLS].level,
		LS_LEVEL_FINDING);
}

LS_TEST_LOOP(all, wait_is_used_where_arrivals_cannot_be_compared, 0, 2)
{
	feed.clocks_ok = _i != 0;
	feed.exit_s = _i == 0 ? 0 : 0.03; /* exits that are no common event */
	run(&feed, 150);
	ck_assert_int_eq(feed.d.mode, LS_MODE_WAIT);
	feed.late_s = 0.02;
	run(&feed, 100);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_QUIET);
	feed.wait_s = feed.own_s = feed.grown_s = 0.02;
	run(&feed, 60);
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_FINDING);
}

LS_TEST(all, absent_workers_are_not_judged)
{
	struct ls_blame r[WORKERS];
	struct ls_blame_step totals = { .used = 3,
		.duration_s = STEP_S,
		.net = { NAN, NAN, NAN },
		.last = SIZE_MAX };
	struct ls_detect_channel before;

	run(&feed, 150);
	before = *channel(1, LS_DETECT_CHRONIC);
	for (size_t i = 0; i < WORKERS; i++)
		r[i] = i == 1 ? (struct ls_blame){ NAN, NAN, NAN, NAN, NAN, 0 }
			      : (struct ls_blame){ 0 };
	for (int k = 0; k < 100; k++)
		ls_detect_step(&feed.d, feed.step++, 0, true, r, WORKERS, &totals);
	ck_assert_double_eq(channel(1, LS_DETECT_CHRONIC)->c, before.c);
	ck_assert_uint_eq(channel(1, LS_DETECT_CHRONIC)->ep.steps, before.ep.steps);
	totals.duration_s = NAN; /* nobody there: no step */
	ls_detect_step(&feed.d, feed.step, 0, true, r, WORKERS, &totals);
	ck_assert_uint_eq(feed.d.judged, 250);
}

LS_TEST(all, reset_forgets_one_worker)
{
	run(&feed, 150);
	feed.late_s = feed.own_s = feed.wait_s = feed.grown_s = 0.01;
	run(&feed, 60);
	ck_assert_uint_eq(feed.d.open, 1);
	ls_detect_reset_worker(&feed.d, 1);
	ck_assert_uint_eq(feed.d.open, 0);
	ck_assert_uint_eq(feed.d.worker[1].warm, 0);
	ck_assert_uint_eq(feed.d.worker[0].warm, LS_DETECT_WARM);
	run(&feed, 100); /* it learns anew: what it is now is its baseline */
	ck_assert_int_eq(channel(1, LS_DETECT_CHRONIC)->level, LS_LEVEL_QUIET);
}

LS_TEST(all, workers_that_join_later_are_quiet_at_first)
{
	run(&feed, 100);
	ck_assert_int_eq(ls_detect_reserve(&feed.d, 100), 0);
	ck_assert_uint_eq(feed.d.count, 100);
	ck_assert_uint_eq(feed.d.worker[99].warm, 0);
	ck_assert_uint_eq(feed.d.worker[0].warm, LS_DETECT_WARM);
	run(&feed, 100);
	ck_assert_uint_eq(feed.d.open, 0);
}

/* Arrivals 10 ms apart, worker 3 last. Each a letter: quiet, suspected, found; '-': not there. Costs in units of 10 ms. */
static const struct {
	const char *are;
	int costs, found, alone; /* 99: not known */
} costs[] = {
	{ "qqqq", 1, 0, 0 },
	{ "qqqs", 1, 0, 1 }, /* without the suspect */
	{ "qqss", 1, 0, 1 }, /* half of all: only the last of them is left out */
	{ "qsss", 1, 0, 1 },
	{ "ssss", 1, 0, 1 },
	{ "qqsf", 1, 1,
		1 }, /* half of all: who is found, and not the suspect as well */
	{ "qqff", 2, 2, 2 },
	{ "qfff", 3, 3, 3 },
	{ "ffff", 1, 1, 1 }, /* nobody else is left */
	{ "qqfq", 1, 0, 0 }, /* whoever is not the last costs nothing */
	{ "qqsq", 1, 0, 0 },
	{ "-qqs", 1, 0, 1 },
	{ "---f", 0, 0, 99 },
};

LS_TEST_EACH(all, a_step_without_whom_it_waits_for, costs)
{
	struct ls_cell cells[WORKERS] = { 0 };
	struct ls_row row = { .cell_count = WORKERS, .cells = cells };
	struct ls_blame_step totals = { 0 };

	run(&feed, 100);
	for (size_t i = 0; i < WORKERS; i++) {
		char is = costs[_i].are[i];

		cells[i] = (struct ls_cell){ .present = is != '-',
			.has_enter = true,
			.enter_us = 10000 * (int64_t)i };
		feed.d.near[i] = is == 's' ? 0.5F : is == 'f' ? 1 : 0;
		feed.d.worker[i].found = is == 'f';
	}
	ls_detect_costs(&feed.d, &row, &totals);
	ck_assert_double_eq_tol(totals.costs_s, 0.01 * costs[_i].costs, 1e-9);
	ck_assert_double_eq_tol(totals.found_s, 0.01 * costs[_i].found, 1e-9);
	if (costs[_i].alone == 99)
		ck_assert(isnan(totals.alone_s));
	else
		ck_assert_double_eq_tol(totals.alone_s, 0.01 * costs[_i].alone, 1e-9);
}

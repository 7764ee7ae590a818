/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/pulse.h"
#include "tests/support/harness.h"

#include <math.h>

#define WORKERS 4
#define STEP_S 0.1

/* A job of which only its step times are made: noise, input wait, work. */
struct feed {
	struct ls_pulse p;
	struct ls_cell cells[WORKERS];
	uint64_t random, step;
	size_t workers;
	double step_s, noise, slow, input_s, work;
	double alone; /* part of what it is slower by: of one worker, that is suspected, or found */
	bool joined;
	struct ls_detect detect;
	struct ls_detect_worker worker[WORKERS];
};

static void
run(struct feed *f, size_t steps)
{
	for (size_t k = 0; k < steps; k++) {
		double t = f->step_s * (1 + f->slow) + f->input_s;
		struct ls_row row = { .step = f->step,
			.begin_us = (int64_t)((double)f->step * f->step_s * 1e6),
			.cell_count = f->workers,
			.cells = f->cells };

		f->step++;
		for (size_t i = 0; i < f->workers; i++) {
			f->cells[i] = (struct ls_cell){ .present = i != 3,
				.work = (float)f->work,
				.has_wait = true,
				.wait_s = (float)(0.1 * f->step_s) };
			for (size_t p = 0; p < LS_PHASE_COUNT; p++)
				f->cells[i].phase_s[p] = NAN;
			f->cells[i].phase_s[LS_PHASE_INPUT_WAIT] = (float)f->input_s;
			f->cells[i].phase_s[LS_PHASE_COMPUTE] =
				(float)(f->step_s * (1 + f->slow));
		}
		t *= 1 +
			f->noise *
				(ls_test_random(&f->random) +
					ls_test_random(&f->random) +
					ls_test_random(&f->random) - 1.5) *
				2;
		f->detect.worker = f->worker;
		f->detect.step_s = f->step_s;
		(void)ls_pulse_step(&f->p, &row,
			&(struct ls_blame_step){ .duration_s = t,
				.mean_s = t,
				.wait_min_s = NAN,
				.found_s = f->detect.open > 0
					? f->alone * f->slow * f->step_s
					: 0,
				.alone_s = f->alone * f->slow * f->step_s },
			&f->detect, 0, f->joined);
	}
}

/* A job without a fault so far. */
static struct feed
job(double noise, double step_s, size_t workers, size_t steps)
{
	struct feed f = { .random = 7,
		.noise = noise,
		.work = 100,
		.step_s = step_s,
		.workers = workers };

	run(&f, steps);
	ck_assert(!f.p.on);
	return f;
}

static struct feed
quiet(double noise)
{
	return job(noise, STEP_S, WORKERS, 320);
}

LS_CASE(all);

LS_TEST(all, all_slower_is_told_when_nobody_was_found_meanwhile)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	run(&f, 90);
	ck_assert(!f.p.on);
	run(&f, 22);
	ck_assert(f.p.on);
	ck_assert_uint_ge(f.p.since.step, 312);
	ck_assert_uint_le(f.p.since.step, 328);
	ck_assert_double_eq_tol(f.p.since.now.v[LS_PULSE_STEP] -
			f.p.base.v[LS_PULSE_STEP],
		0.01, 0.001);
	run(&f, 2000); /* it does not become the normal */
	ck_assert(f.p.on);
	f.slow = 0;
	run(&f, 112);
	ck_assert(!f.p.on);
	ls_pulse_fini(&f.p);
}

/* A step ends with the last of 16 hosts, which wander: the greatest of so many has a longer tail than each of them. */
LS_TEST_LOOP(all, a_job_of_hosts_that_wander_is_not_slow, 26, 29)
{
	struct feed f = job(0, 1, WORKERS, 1);
	double host[16] = { 0 }, keep = pow(0.5, 0.1);

	f.random = (uint64_t)_i;
	for (int k = 0; k < 9000 && !f.p.on; k++) {
		f.slow = -INFINITY;
		for (int i = 0; i < 16; i++) {
			host[i] = keep * host[i] +
				0.02 * sqrt(1 - keep * keep) * 2 *
					(ls_test_random(&f.random) +
						ls_test_random(&f.random) +
						ls_test_random(&f.random) - 1.5);
			f.slow = fmax(f.slow, host[i]);
		}
		run(&f, 1);
	}
	ck_assert_msg(!f.p.on, "slow in step %llu", (unsigned long long)f.step);
	ls_pulse_fini(&f.p);
}

/* A ramp climbs while its steps go on; one step up does not, whatever the noise. */
LS_TEST_LOOP(all, a_ramp_is_told_from_a_step, 0, 3)
{
	static const double noise[] = { 0, 0.003, 0.03 };
	struct feed step = quiet(noise[_i]), ramp = quiet(noise[_i]);

	step.slow = 0.2;
	run(&step, 120);
	ck_assert(step.p.on);
	for (int k = 0; k < 30; k++) {
		ck_assert_double_eq(ls_pulse_slope(&step.p), 0);
		run(&step, 16);
	}
	for (int k = 0; k < 320; k++) {
		ramp.slow += 0.002; /* 0.2 ms a step */
		run(&ramp, 1);
	}
	ck_assert(ramp.p.on);
	ck_assert_double_eq_tol(ls_pulse_slope(&ramp.p), 0.0002, 0.00002);
	/* the middle of the newest block is eight steps behind */
	ck_assert_double_eq_tol(ramp.p.since.newest.v[LS_PULSE_MEAN], STEP_S * 1.624,
		0.006);
	ls_pulse_fini(&step.p);
	ls_pulse_fini(&ramp.p);
}

LS_TEST(all, phases_are_those_of_now_and_before)
{
	struct feed f = quiet(0.003);

	f.input_s = 0.03;
	run(&f, 160);
	ck_assert(f.p.on);
	ck_assert_double_eq_tol(f.p.base.v[LS_PULSE_PHASE + LS_PHASE_INPUT_WAIT], 0,
		0.001);
	ck_assert_double_eq_tol(f.p.since.now.v[LS_PULSE_PHASE + LS_PHASE_INPUT_WAIT],
		0.03, 0.003);
	ck_assert_double_eq_tol(f.p.since.now.v[LS_PULSE_PHASE + LS_PHASE_COMPUTE],
		STEP_S, 0.001);
	ls_pulse_fini(&f.p);
}

/* Little against its noise; a collective is found; as much more work; less than is looked for; all of it is a suspect's. */
LS_TEST_LOOP(all, what_is_not_slower, 0, 5)
{
	struct feed f = quiet(_i == 0 ? 0.15 : 0.001);

	f.slow = _i == 0 ? 0.06 : _i == 2 ? 0.3 : _i == 3 ? 0.002 : 0.1;
	f.joined = _i == 1;
	f.alone = _i == 4;
	f.work = _i == 2 ? 130 : 100;
	run(&f, 1000);
	ck_assert(!f.p.on);
	ls_pulse_fini(&f.p);
}

LS_TEST(all, what_comes_back_is_usual)
{
	struct feed f = quiet(0.003);

	for (int k = 0; k < 20; k++) {
		f.slow = 0.5;
		run(&f, 32);
		f.slow = 0;
		run(&f, 640);
		ck_assert(!f.p.on);
	}
	ls_pulse_fini(&f.p);
}

/* One worker of steps of two minutes: 0.3 % more is seen in four of them; after a pause, which looks like noise at first, in twelve. */
LS_TEST_LOOP(all, a_little_is_seen_in_long_steps, 0, 2)
{
	struct feed f = job(0.0002, 120, 1, 8);

	f.slow = 0.5 * _i;
	run(&f, 1);
	f.slow = 0;
	run(&f, 7);
	ck_assert(!f.p.on);
	f.slow = 0.003;
	run(&f, _i == 0 ? 4 : 12);
	ck_assert(f.p.on);
	ck_assert_uint_ge(f.p.since.step, 15);
	ck_assert_uint_le(f.p.since.step, 16);
	ck_assert_double_eq_tol(f.p.base.v[LS_PULSE_STEP], 120, 0.03);
	ck_assert_double_eq_tol(f.p.since.now.v[LS_PULSE_STEP], 120.36, 0.03);
	ls_pulse_fini(&f.p);
}

/* A collective that is found: such steps are left out, and are no past. */
LS_TEST(all, what_joins_workers_ends_it)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	run(&f, 112);
	ck_assert(f.p.on);
	ls_pulse_end(&f.p);
	f.joined = true;
	run(&f, 64);
	ck_assert(!f.p.on);
	f.joined = false;
	f.slow = 0;
	run(&f, 2400);
	f.slow = 0.1;
	run(&f, 112);
	ck_assert(f.p.on);
	ls_pulse_fini(&f.p);
}

/* A worker that is found takes away what it explains: if that is more than half, the job is not slow. The cost is without it. */
LS_TEST_LOOP(all, who_is_found_takes_away_what_it_explains, 0, 2)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	run(&f, 112);
	ck_assert(f.p.on);
	f.detect.open = 1;
	f.alone = _i == 0 ? 0.7 : 0.3;
	run(&f, 2 * 64);
	ck_assert_int_eq(f.p.on, _i != 0);
	ck_assert(_i == 0 || f.p.since.now.v[LS_PULSE_MEAN] < 0.109);
	run(&f, 512);
	ck_assert_int_eq(f.p.on, _i != 0);
	ls_pulse_fini(&f.p);
}

/* Nor is it told at first while a worker is found that explains more than half. */
LS_TEST_LOOP(all, who_was_found_before_explains_it, 0, 2)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	run(&f, 64);
	f.detect.open = 1;
	f.alone = _i == 0 ? 0.7 : 0.3;
	for (int k = 0; k < 64; k++) {
		run(&f, 16);
		ck_assert(_i != 0 || !f.p.on);
	}
	ck_assert_int_eq(f.p.on, _i != 0);
	ls_pulse_fini(&f.p);
}

/* A suspect that was left out is none any more: steps are no longer for it. */
LS_TEST(all, who_is_not_left_out_any_more_makes_nothing_slower)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	f.alone = 1;
	run(&f, 2000);
	f.alone = 0;
	for (int k = 0; k < 64; k++) {
		run(&f, 16);
		ck_assert(!f.p.on);
	}
	ls_pulse_fini(&f.p);
}

/* Two suspects explain it, and may be found soon: the job waits from when it is named on. */
LS_TEST_LOOP(all, suspects_may_be_found, 0, 2)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	f.detect.worst[1].v = _i == 0 ? 0.006 : 0.004;
	run(&f, 112);
	ck_assert_int_eq(f.p.on, _i != 0);
	run(&f, 48);
	ck_assert(f.p.on);
	ls_pulse_fini(&f.p);
}

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
	double noise, slow, input_s, work;
	double explained_s;
	bool found;
};

static void
run(struct feed *f, size_t steps)
{
	for (size_t k = 0; k < steps; k++) {
		double t = STEP_S * (1 + f->slow) + f->input_s;
		struct ls_row row = {
			.step = f->step++, .cell_count = WORKERS, .cells = f->cells
		};

		for (size_t i = 0; i < WORKERS; i++) {
			f->cells[i] = (struct ls_cell){ .present = i != 3,
				.work = (float)f->work,
				.has_wait = true,
				.wait_s = (float)(0.1 * STEP_S) };
			for (size_t p = 0; p < LS_PHASE_COUNT; p++)
				f->cells[i].phase_s[p] = NAN;
			f->cells[i].phase_s[LS_PHASE_INPUT_WAIT] = (float)f->input_s;
			f->cells[i].phase_s[LS_PHASE_COMPUTE] =
				(float)(STEP_S * (1 + f->slow));
		}
		t *= 1 +
			f->noise *
				(ls_test_random(&f->random) +
					ls_test_random(&f->random) +
					ls_test_random(&f->random) - 1.5) *
				2;
		(void)ls_pulse_step(&f->p, &row,
			&(struct ls_blame_step){
				.duration_s = t, .mean_s = t, .wait_min_s = NAN },
			f->found, f->explained_s);
	}
}

static struct feed
quiet(double noise)
{
	struct feed f = { .random = 7, .noise = noise, .work = 100 };

	run(&f, 300);
	ck_assert(!f.p.on);
	return f;
}

LS_CASE(all);

LS_TEST(all, all_slower_is_seen_after_six_blocks)
{
	struct feed f = quiet(0.003);

	f.slow = 0.1;
	run(&f, 90);
	ck_assert(!f.p.on);
	run(&f, 22);
	ck_assert(f.p.on);
	ck_assert_uint_ge(f.p.since.step, 288);
	ck_assert_uint_le(f.p.since.step, 304);
	ck_assert_double_eq_tol(f.p.since.now.v[LS_PULSE_STEP] -
			f.p.base.v[LS_PULSE_STEP],
		0.01, 0.001);
	run(&f, 2000); /* it does not become the normal */
	ck_assert(f.p.on);
	f.slow = 0;
	run(&f, 80);
	ck_assert(f.p.on);
	run(&f, 32);
	ck_assert(!f.p.on);
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
	ck_assert_double_eq_tol(ramp.p.since.newest_s, STEP_S * 1.624, 0.006);
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
}

/* Little against its noise; found of somebody; as much more work; a drift to and
 * fro; half of it is a suspect's own work. */
LS_TEST_LOOP(all, what_is_not_slower, 0, 5)
{
	struct feed f = quiet(_i == 0 ? 0.15 : 0.003);

	f.slow = _i == 0 ? 0.06 : _i == 2 ? 0.3 : _i == 3 ? 0.03 : 0.1;
	f.found = _i == 1;
	f.explained_s = _i == 4 ? 0.006 : 0;
	f.work = _i == 2 ? 130 : 100;
	run(&f, 1000);
	ck_assert(!f.p.on);
}

LS_TEST(all, a_few_long_blocks_are_nothing)
{
	struct feed f = quiet(0.003);

	for (int k = 0; k < 20; k++) {
		f.slow = 0.5;
		run(&f, 64);
		f.slow = 0;
		run(&f, 640);
		ck_assert(!f.p.on);
	}
}

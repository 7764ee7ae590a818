/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/stage.h"

#include <math.h>
#include <string.h>
#include "tests/support/harness.h"

#define WORKERS 24
#define STAGES 4
#define STEP_S 1.0

/* Stages of six workers each, of which only own work and work done are made. */
struct feed {
	struct ls_stages s;
	struct ls_detect d;
	struct ls_cell cells[WORKERS];
	uint32_t of[WORKERS];
	uint64_t random, step;
	double grown[STAGES], work[STAGES]; /* factors */
	double all;
	size_t alone; /* this worker takes twice as long; WORKERS: none */
	bool half; /* every second worker of stage 0 takes 3 % longer */
};

static int
group(struct ls_stages *s, struct ls_detect *d, const uint32_t *of, uint32_t count,
	size_t n)
{
	static uint32_t sorted[1001], start[LS_STAGES_MAX + 2];

	ls_blame_sort(sorted, start, of, count, n);
	return ls_stages_group(s, d, sorted, start, count);
}

static void
feed_init(struct feed *f)
{
	memset(f, 0, sizeof(*f));
	f->random = 11;
	f->all = 1;
	f->alone = WORKERS;
	for (uint32_t i = 0; i < WORKERS; i++)
		f->of[i] = i % STAGES;
	for (size_t k = 0; k < STAGES; k++)
		f->grown[k] = f->work[k] = 1;
	ck_assert_int_eq(group(&f->s, &f->d, f->of, STAGES, WORKERS), 0);
}

static void
run(struct feed *f, size_t steps)
{
	for (size_t n = 0; n < steps; n++) {
		double longest = 0;

		for (size_t i = 0; i < WORKERS; i++) {
			size_t k = f->of[i];
			double own = (0.8 - 0.02 * (double)k) * f->grown[k] * f->all +
				0.003 *
					(ls_test_random(&f->random) +
						ls_test_random(&f->random) +
						ls_test_random(&f->random) - 1.5) *
					2;

			if (i == f->alone)
				own *= 2;
			if (f->half && k == 0 && i / STAGES % 2 == 0)
				own *= 1.03;
			f->cells[i] = (struct ls_cell){ .present = true,
				.own_s = (float)own,
				.work = (float)(f->work[k] * 100) };
			longest = fmax(longest, own);
		}
		f->d.before_s = f->d.step_s;
		f->d.step_s = longest + 0.2;
		/* as if the step before it began were remembered, as ls_detect_step
		 * does */
		for (size_t k = 0; k < f->s.count; k++)
			if (f->s.stage[k].channel.ep.steps > 0)
				f->d.before_s = f->s.stage[k].channel.ep.before_s;
		f->d.judged++;
		ls_stages_step(&f->s, &f->d, f->step, (int64_t)f->step * 1000000,
			f->cells, WORKERS);
		f->step++;
	}
}

/* Which stage is found; STAGES: none. Not two. */
static size_t
found(const struct feed *f)
{
	size_t which = STAGES;

	for (size_t k = 0; k < STAGES; k++) {
		if (f->s.stage[k].channel.level != LS_LEVEL_FINDING)
			continue;
		ck_assert_uint_eq(which, STAGES);
		which = k;
	}
	return which;
}

LS_CASE(all);

LS_TEST_LOOP(all, stage_with_more_to_do_is_found, 0, 2)
{
	struct feed f;

	feed_init(&f);
	run(&f, 300);
	ck_assert_uint_eq(found(&f), STAGES);
	f.grown[1] = 1.06;
	f.work[1] = _i == 0 ? 1.06 : 1;
	run(&f, 60);
	ck_assert_uint_eq(found(&f), 1);
	ck_assert(ls_stage_is_imbalance(&f.s.stage[1]) == (_i == 0));
	ck_assert_uint_eq(f.d.open, 1);
	f.grown[1] = f.work[1] = 1;
	run(&f, 100);
	ck_assert_uint_eq(found(&f), STAGES);
	ck_assert_uint_eq(f.d.open, 0);
	ls_stages_fini(&f.s);
}

/* All slower; one, or half, of a stage slower; a stage that still has time to spare. */
LS_TEST_LOOP(all, what_is_no_stage, 0, 4)
{
	struct feed f;

	feed_init(&f);
	run(&f, 300);
	f.all = _i == 0 ? 1.2 : 1;
	f.alone = _i == 1 ? 5 : WORKERS;
	f.half = _i == 3;
	f.grown[3] = _i == 2 ? 1.06 : 1; /* to 0.784 of the first one's 0.8 */
	for (size_t n = 0; n < 300; n++) {
		run(&f, 1);
		ck_assert_uint_eq(found(&f), STAGES);
	}
	ls_stages_fini(&f.s);
}

/* One stage, too many, or workers that do not report: nothing is compared, and nothing
 * stays open. */
LS_TEST_LOOP(all, few_or_too_many_stages_are_not_compared, 0, 2)
{
	static uint32_t of[2 * LS_STAGES_MAX];
	struct feed f;

	feed_init(&f);
	run(&f, 100);
	f.grown[2] = 1.2;
	run(&f, 60);
	ck_assert_uint_eq(found(&f), 2);
	for (uint32_t i = 0; i < 2 * LS_STAGES_MAX; i++)
		of[i] = _i == 0 ? 0 : i / 2 + (i == 2 * LS_STAGES_MAX - 1);
	ck_assert_int_eq(group(&f.s, &f.d, of, _i == 0 ? 1 : LS_STAGES_MAX + 1,
				 2 * LS_STAGES_MAX),
		0);
	ck_assert_uint_eq(f.s.count, 0);
	ck_assert_uint_eq(f.d.open, 0);
	run(&f, 10);
	ls_stages_fini(&f.s);
}

LS_TEST(all, of_many_workers_some_are_looked_at)
{
	static uint32_t of[1001];
	struct ls_detect d = { 0 };
	struct ls_stages s = { 0 };

	for (uint32_t i = 0; i < 1001; i++)
		of[i] = i >= 900;
	ck_assert_int_eq(group(&s, &d, of, 2, 1001), 0);
	ck_assert_uint_eq(s.stage[0].workers, 60); /* each 15th of 900 */
	ck_assert_uint_eq(s.stage[0].worker[59], 885);
	ck_assert_uint_eq(s.stage[1].workers, 51);
	ls_stages_fini(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_progress.h"

#include <string.h>
#include "tests/support/harness.h"

#define SECOND 1000000000ull
#define TRAIN 11u
#define EVAL 22u

static struct ls_tpu_progress progress;
static struct ls_tpu_status status;
static uint64_t now;

static void
setup(void)
{
	memset(&progress, 0, sizeof(progress));
	memset(&status, 0, sizeof(status));
	now = 1000 * SECOND;
}

static void
core(int32_t id, int32_t type, uint64_t program, int32_t launch, uint32_t queued,
	uint64_t motion)
{
	status.core[status.count++] = (struct ls_tpu_core){ .core_id = id,
		.type = type,
		.program = program,
		.has_launch = true,
		.launch_id = launch,
		.queued = queued,
		.motion = motion };
}

/* A look a second after the one before. */
static void
look(void)
{
	now += SECOND;
	ls_tpu_progress_feed(&progress, &status, now);
	status.count = 0;
}

LS_CASE(tpu_progress, setup, NULL);

LS_TEST(tpu_progress, launches_are_increments)
{
	core(0, 1, TRAIN, 100, 0, 1);
	look();
	ck_assert_uint_eq(progress.core[0].launches, 0);
	core(0, 1, TRAIN, 103, 0, 2);
	look();
	ck_assert_uint_eq(progress.core[0].launches, 3);
	core(0, 1, TRAIN, 2, 0, 3); /* the job began anew */
	look();
	ck_assert_uint_eq(progress.core[0].launches, 3);
	ck_assert_uint_eq(progress.core[0].resets, 1);
	core(0, 1, TRAIN, 4, 0, 4);
	look();
	ck_assert_uint_eq(progress.core[0].launches, 5);
	core(0, 1, TRAIN, INT32_MAX, 0, 5); /* another numbering, no launches */
	look();
	ck_assert_uint_eq(progress.core[0].launches, 5);
	core(0, 1, TRAIN, INT32_MIN, 0, 6);
	look();
	ck_assert_uint_eq(progress.core[0].resets, 3);
}

LS_TEST(tpu_progress, steps_are_launches_of_the_dominant_program)
{
	struct ls_tpu_steps steps;
	int i;

	ck_assert_int_eq(ls_tpu_progress_steps(&progress, now, &steps), -LS_EABSENT);
	for (i = 0; i < 21; i++) { /* a step of half a second */
		core(0, 1, TRAIN, 2 * i, 0, (uint64_t)i);
		look();
	}
	ck_assert_int_eq(ls_tpu_progress_steps(&progress, now, &steps), 0);
	ck_assert_uint_eq(steps.steps, 40);
	ck_assert_uint_eq(steps.step_ns, SECOND / 2);
	/* 40 / 42 of the count, 0.5 / 1.5 of the time */
	ck_assert_double_eq_tol(steps.confidence, 40.0 / 42 / 3, 1e-9);
}

static double
confidence_with(int evals, int resets)
{
	struct ls_tpu_steps steps;
	int i, launch = 0;

	setup();
	for (i = 0; i < 30; i++) {
		if (i < resets)
			launch = 0; /* the look before was at 1 */
		else
			launch++;
		core(0, 1, i >= 30 - evals ? EVAL : TRAIN,
			i < resets ? 100 - i : 200 + launch, 0, (uint64_t)i);
		look();
	}
	ck_assert_int_eq(ls_tpu_progress_steps(&progress, now, &steps), 0);
	ck_assert_double_ge(steps.confidence, 0);
	ck_assert_double_le(steps.confidence, 1);
	return steps.confidence;
}

LS_TEST(tpu_progress, other_programs_and_resets_lower_the_confidence)
{
	double sure = confidence_with(0, 0);

	ck_assert_double_lt(confidence_with(5, 0), sure);
	ck_assert_double_lt(confidence_with(10, 0), confidence_with(5, 0));
	ck_assert_double_lt(confidence_with(0, 4), sure);
}

LS_TEST(tpu_progress, evaluation_counts_no_steps)
{
	int i;

	for (i = 0; i < 10; i++) {
		core(0, 1, TRAIN, i, 0, (uint64_t)i);
		look();
	}
	ck_assert_uint_eq(progress.steps, 9);
	for (i = 10; i < 15; i++) {
		core(0, 1, EVAL, i, 0, (uint64_t)i);
		look();
	}
	ck_assert_uint_eq(progress.steps, 9);
	ck_assert_uint_eq(progress.core[0].launches, 14);
}

LS_TEST(tpu_progress, steps_of_long_ago_say_nothing)
{
	struct ls_tpu_steps steps;
	int i;

	for (i = 0; i < 10; i++) {
		core(0, 1, TRAIN, i, 0, (uint64_t)i);
		look();
	}
	ck_assert_int_eq(ls_tpu_progress_steps(&progress, now, &steps), 0);
	now += 2 * LS_TPU_STEPS_WINDOW_NS;
	ck_assert_int_eq(ls_tpu_progress_steps(&progress, now, &steps), -LS_EABSENT);
}

LS_TEST(tpu_progress, a_core_that_stands_while_others_move_is_stalled)
{
	int i;

	for (i = 0; i <= 10; i++) {
		core(0, 1, TRAIN, i, 0, (uint64_t)i);
		core(1, 1, TRAIN, 0, 0, 7);
		look();
		ck_assert_int_eq(progress.core[1].stalled, i == 10);
		ck_assert(!progress.core[0].stalled);
	}
	core(0, 1, TRAIN, i, 0, (uint64_t)i);
	core(1, 1, TRAIN, 0, 0, 8);
	look();
	ck_assert(!progress.core[1].stalled);
}

LS_TEST(tpu_progress, a_core_with_a_queue_that_stands_is_stalled_alone)
{
	int i;

	for (i = 0; i <= 10; i++) {
		core(0, 1, TRAIN, 0, 2, 7);
		look();
	}
	ck_assert(progress.core[0].stalled);
}

LS_TEST(tpu_progress, idle_cores_are_not_stalled)
{
	int i;

	for (i = 0; i <= 30; i++) {
		core(0, 1, TRAIN, i, 0, (uint64_t)i);
		core(1, 1, 0, 0, 0, 7); /* no program */
		core(2, 3, TRAIN, 0, 0, 7); /* a SparseCore: no other one moves */
		look();
	}
	ck_assert(!progress.core[1].stalled);
	ck_assert(!progress.core[2].stalled);
	for (i = 0; i <= 30; i++) { /* now nobody moves, and nothing is queued */
		core(0, 1, TRAIN, 31, 0, 31);
		core(1, 1, TRAIN, 0, 0, 7);
		look();
	}
	ck_assert(!progress.core[0].stalled);
}

LS_TEST(tpu_progress, two_looks_far_apart_are_no_standstill)
{
	core(0, 1, TRAIN, 0, 2, 7);
	look();
	now += 3600 * SECOND;
	core(0, 1, TRAIN, 0, 2, 7);
	look();
	ck_assert(!progress.core[0].stalled);
}

LS_TEST(tpu_progress, cores_of_several_ports_stay_apart)
{
	int i;

	for (i = 0; i < 5; i++) {
		/* the second port answers first */
		core(9, 1, TRAIN, i, 0, (uint64_t)i);
		look();
		core(4, 1, TRAIN, i, 0, (uint64_t)i);
		look();
	}
	ck_assert_uint_eq(progress.count, 2);
	ck_assert_int_eq(progress.core[0].now.core_id, 4);
	ck_assert_uint_eq(progress.core[1].launches, 4);
	ck_assert_uint_eq(progress.steps, 4); /* those of core 4 only */
	for (i = 0; i < 2 * (int)LS_TPU_CORES_MAX; i++) {
		core(100 + i, 1, TRAIN, 0, 0, 0);
		look();
	}
	ck_assert_uint_eq(progress.count, LS_TPU_CORES_MAX);
}

/* Two pods on one node number their cores alike. */
LS_TEST(tpu_progress, cores_of_another_port_are_left_out)
{
	core(0, 1, TRAIN, 100, 0, 1);
	status.core[0].source = 1;
	look();
	core(0, 1, EVAL, 7, 0, 2);
	core(1, 1, EVAL, 7, 0, 2);
	status.core[0].source = status.core[1].source = 2;
	look();
	ck_assert_uint_eq(progress.count, 1);
	ck_assert_uint_eq(progress.core[0].now.program, TRAIN);
	ck_assert_uint_eq(progress.foreign, 1);
	now += LS_TPU_STALL_NS; /* the first one is gone */
	core(0, 1, EVAL, 8, 0, 3);
	status.core[0].source = 2;
	look();
	ck_assert_uint_eq(progress.core[0].now.program, EVAL);
}

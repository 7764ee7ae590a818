/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/residual/blame.h"

#include "tests/support/harness.h"

#include <math.h>
#include <string.h>

enum { WORKERS = 6 };

static struct ls_blame_room room;
static struct ls_cell cells[WORKERS];
static struct ls_blame residual[WORKERS];
static struct ls_blame_step step;
static uint16_t named[1000];

/* A step of 100 ms: arrivals in ms after its begin, all leave at 100. */
static void
arrive(size_t i, int64_t ms)
{
	cells[i] = (struct ls_cell){ .present = true,
		.has_enter = true,
		.has_wait = true,
		.begin_us = 1000000,
		.enter_us = 1000000 + ms * 1000,
		.exit_us = 1100000,
		.duration_s = 0.1f };
	cells[i].wait_s = (float)(100 - ms) * 1e-3f;
	cells[i].own_s = cells[i].duration_s - cells[i].wait_s;
}

static void
judge(const uint32_t *role, uint32_t roles)
{
	ls_blame_group(&room, role, roles, WORKERS);
	ls_blame_judge(&room, cells, WORKERS, true, named, residual, &step);
}

static void
setup(void)
{
	ck_assert_int_eq(ls_blame_reserve(&room, WORKERS), 0);
	for (size_t i = 0; i < WORKERS; i++)
		arrive(i, 60);
}

static void
teardown(void)
{
	memset(named, 0, sizeof(named));
	ls_blame_fini(&room);
}

static const uint32_t one_role[WORKERS];

LS_CASE(all, setup, teardown);

LS_TEST(all, late_arrival_is_positive_for_the_culprit)
{
	arrive(4, 85);
	judge(one_role, 1);
	ck_assert_double_eq_tol(residual[4].late_s, 0.025, 1e-9);
	ck_assert_double_eq_tol(residual[4].wait_s, 0.025, 1e-6);
	ck_assert_double_eq_tol(residual[4].own_s, 0.025, 1e-6);
	ck_assert_double_eq_tol(residual[4].exit_s, 0, 1e-9);
	ck_assert_double_eq_tol(residual[0].late_s, 0, 1e-9);
	ck_assert_uint_eq(step.last, 4);
	ck_assert_double_eq_tol(step.gap_s, 0.025, 1e-9);
	ck_assert_double_eq_tol(step.net.collective_s, 0.015, 1e-9);
	ck_assert_double_eq_tol(step.wait_min_s, 0.015, 1e-6);
	ck_assert_double_eq_tol(step.wait_median_s, 0.040, 1e-6);
	ck_assert_double_eq_tol(step.duration_s, 0.1, 1e-6);
	ck_assert_uint_eq(step.used, WORKERS);
}

LS_TEST(all, two_culprits_do_not_hide_each_other)
{
	arrive(1, 80);
	arrive(4, 85);
	judge(one_role, 1);
	ck_assert_double_eq_tol(residual[1].late_s, 0.020, 1e-9);
	ck_assert_double_eq_tol(residual[4].late_s, 0.025, 1e-9);
}

/* Three of six are slow and known to be, then a fourth is slower than the two others. */
LS_TEST(all, who_is_named_is_no_measure_for_the_others)
{
	for (size_t i = 0; i < 3; i++) {
		arrive(i, 80);
		named[i] = 1;
	}
	arrive(3, 85);
	judge(one_role, 1);
	ck_assert_double_eq_tol(residual[3].late_s, 0.025, 1e-9);
	ck_assert_double_eq_tol(residual[1].late_s, 0.020, 1e-9);
	ck_assert_double_eq_tol(residual[4].late_s, -0.0125, 1e-9);
	named[3] = 1; /* two are left: too few */
	judge(one_role, 1);
	ck_assert_double_eq_tol(residual[3].late_s, 0.005, 1e-9);
}

LS_TEST(all, roles_are_compared_apart)
{
	static const uint32_t role[WORKERS] = { 1, 0, 1, 0, 1, 2 };

	arrive(1, 90);
	arrive(3, 90); /* both of role 0: alike */
	arrive(2, 70); /* late among role 1 */
	judge(role, 3);
	ck_assert_double_eq_tol(residual[1].late_s, 0, 1e-9);
	ck_assert_double_eq_tol(residual[2].late_s, 0.010, 1e-9);
	ck_assert_double_eq_tol(residual[0].late_s, -0.005, 1e-9);
	ck_assert_double_nan(residual[5].late_s); /* alone in its role */
	ck_assert_double_nan(residual[5].own_s);
}

LS_TEST(all, what_was_not_marked_is_nan)
{
	cells[0].has_enter = false; /* sync_wait only */
	cells[1].has_enter = cells[1].has_wait = false;
	cells[2].present = false;
	judge(one_role, 1);
	ck_assert_double_nan(residual[0].late_s);
	ck_assert_double_eq_tol(residual[0].wait_s, 0, 1e-6);
	ck_assert_double_nan(residual[1].wait_s);
	ck_assert_double_eq_tol(residual[1].own_s, 0, 1e-6);
	ck_assert_double_nan(residual[2].own_s);
	ck_assert_uint_eq(step.used, WORKERS - 1);
}

LS_TEST(all, no_barriers_no_last_arriver)
{
	for (size_t i = 0; i < WORKERS; i++)
		cells[i].has_enter = cells[i].has_wait = i == 3;
	judge(one_role, 1);
	ck_assert_uint_eq(step.last, SIZE_MAX);
	ck_assert_double_nan(step.net.collective_s);
	ck_assert_double_nan(residual[3].late_s); /* nobody to compare with */
	for (size_t i = 0; i < WORKERS; i++)
		cells[i].present = false;
	judge(one_role, 1);
	ck_assert_uint_eq(step.used, 0);
	ck_assert_double_nan(step.duration_s);
	ck_assert_double_nan(step.wait_min_s);
}

LS_TEST(all, fewer_cells_than_workers)
{
	ls_blame_group(&room, one_role, 1, WORKERS);
	ls_blame_judge(&room, cells, 3, true, named, residual, &step);
	ck_assert_uint_eq(step.used, 3);
	ck_assert_double_eq_tol(residual[2].late_s, 0, 1e-9);
}

LS_TEST(all, room_grows)
{
	static uint32_t role[1000];
	static struct ls_cell many[1000];
	static struct ls_blame residuals[1000];

	for (size_t i = 0; i < 1000; i++)
		role[i] = (uint32_t)i / 2;
	for (size_t i = 0; i < 1000; i++) {
		many[i] = cells[0];
		many[i].enter_us += (int64_t)(i % 2) * 1000;
	}
	ck_assert_int_eq(ls_blame_reserve(&room, 1000), 0);
	ls_blame_group(&room, role, 500, 1000);
	ls_blame_judge(&room, many, 1000, true, named, residuals, &step);
	for (size_t i = 0; i < 1000; i++)
		ck_assert_double_eq_tol(residuals[i].late_s,
			i % 2 == 0 ? -0.001 : 0.001, 1e-9);
}

/* Six workers begin a step of 100 ms at these times, ms; are they apart, where clocks
 * are known to 1 ms? */
LS_TEST_LOOP(all, who_is_apart_waits_for_nobody, 0, 8)
{
	static const struct {
		int64_t begin_ms[WORKERS];
		bool apart;
	} rows[] = {
		{ { 0, 0, 0, 0, 0, 0 }, false },
		{ { 0, 50, 100, 150, 200, 250 }, false },
		{ { 0, 0, 0, 0, 0, 100000 }, false }, /* one clock */
		{ { 0, 0, 0, 0, 900, 800 }, false },
		{ { 0, 0, 0, 0, 0, 305 }, false },
		{ { 0, 400, 800, 1200, 1600, 2000 }, true },
		{ { 0, 0, 0, 700, 700, 700 }, true },
		/* that far, but for what clocks may be off */
		{ { 0, 0, 0, 600, 600, 600 }, false },
	};

	for (size_t i = 0; i < WORKERS; i++) {
		cells[i].begin_us = 1700000000000000ll + rows[_i].begin_ms[i] * 1000;
		cells[i].duration_s = 0.1f;
	}
	judge(one_role, 1);
	ck_assert_int_eq(ls_blame_is_apart(cells, WORKERS, &step, 0.001),
		rows[_i].apart);
	ck_assert(!ls_blame_is_apart(cells, WORKERS, &step, 1));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/join/steps.h"

#include "tests/support/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct ls_record
record_of(uint64_t step)
{
	return (struct ls_record){ .step = step,
		.t_begin_ns = 1000000000ll + (int64_t)step * 100000000,
		.duration_ns = 90000000 };
}

static int
put(struct ls_steps *s, size_t slot, size_t n, uint64_t step)
{
	struct ls_record r = record_of(step);

	return ls_steps_put(s, slot, n, r.step, &r, 5000000);
}

LS_CASE(all);

LS_TEST(all, records_of_a_step_are_joined)
{
	struct ls_steps s = { 0 };
	struct ls_row row;

	ck_assert_ptr_null(ls_steps_oldest(&s));
	ck_assert_int_eq(put(&s, 0, 3, 7), 0);
	ck_assert_int_eq(put(&s, 2, 3, 7), 0);
	ck_assert_int_eq(put(&s, 1, 3, 6), 0); /* an older one, later */
	ck_assert_uint_eq(ls_steps_oldest(&s)->step, 6);
	ls_steps_take_oldest(&s, &row);
	ck_assert_uint_eq(row.reported, 1);
	ck_assert(row.cells[1].present && !row.cells[0].present);
	free(row.cells);
	ls_steps_take_oldest(&s, &row);
	ck_assert_uint_eq(row.step, 7);
	ck_assert_uint_eq(row.reported, 2);
	ck_assert_int_eq(row.begin_us, 1700000);
	ck_assert_int_eq(row.end_us, 1790000);
	free(row.cells);
	ls_steps_fini(&s);
}

LS_TEST(all, known_and_closed_steps_are_refused)
{
	struct ls_steps s = { 0 };
	struct ls_row row;

	ck_assert_int_eq(put(&s, 0, 2, 4), 0);
	ck_assert_int_eq(put(&s, 0, 2, 4), -LS_EDUPLICATE);
	ls_steps_take_oldest(&s, &row);
	free(row.cells);
	ck_assert_int_eq(put(&s, 1, 2, 4), -LS_ESTALE);
	ck_assert_int_eq(put(&s, 1, 2, 3), -LS_ESTALE);
	ck_assert_int_eq(put(&s, 1, 2, 5), 0);
	ls_steps_fini(&s);
	ck_assert_int_eq(put(&s, 1, 2, 3), 0); /* begins anew */
	ls_steps_fini(&s);
}

LS_TEST(all, open_rows_are_limited)
{
	struct ls_steps s = { 0 };
	size_t max = ls_steps_capacity(LS_OPEN_CELLS_MAX);

	ck_assert_uint_eq(ls_steps_capacity(0), LS_OPEN_STEPS_MAX);
	ck_assert_uint_eq(ls_steps_capacity(2), LS_OPEN_STEPS_MAX);
	ck_assert_uint_eq(ls_steps_capacity(1024), 1024);
	ck_assert_uint_eq(max, LS_OPEN_STEPS_MIN);
	for (uint64_t step = 0; step < LS_OPEN_STEPS_MAX; step++)
		ck_assert_int_eq(put(&s, 0, 2, step), 0);
	ck_assert_int_eq(put(&s, 0, 2, LS_OPEN_STEPS_MAX), -LS_ELIMIT);
	ck_assert_int_eq(put(&s, 1, 2, 5), 0); /* into an open one still */
	ls_steps_fini(&s);
}

/* 100 rows stay open; steps come in the order 1, 0, 3, 2 and so on. */
LS_TEST(all, room_of_rows_that_were_taken_out_is_used_again)
{
	struct ls_steps s = { 0 };
	struct ls_row row;

	for (uint64_t step = 0; step < 10000; step++) {
		ck_assert_int_eq(put(&s, 0, 2, step ^ 1), 0);
		if (s.count <= 100)
			continue;
		ls_steps_take_oldest(&s, &row);
		ck_assert_uint_eq(row.step, step - 100);
		ck_assert_uint_eq(ls_steps_oldest(&s)->step, step - 99);
		ck_assert_uint_le(s.capacity, 256);
		ls_steps_give_back(&s, &row);
	}
	ls_steps_fini(&s);
	ck_assert_uint_eq(s.held, 0);
}

LS_TEST(all, room_of_a_row_that_is_over_has_no_records)
{
	struct ls_steps s = { 0 };
	struct ls_row row;

	ck_assert_int_eq(put(&s, 0, 3, 1), 0);
	ck_assert_int_eq(put(&s, 2, 3, 1), 0);
	ls_steps_take_oldest(&s, &row);
	ls_steps_give_back(&s, &row);
	ck_assert_int_eq(put(&s, 1, 3, 2), 0);
	ls_steps_take_oldest(&s, &row);
	ck_assert(!row.cells[0].present && row.cells[1].present &&
		!row.cells[2].present);
	ls_steps_give_back(&s, &row);
	ck_assert_int_eq(put(&s, 3, 4, 3), 0); /* one more worker: other room */
	ls_steps_take_oldest(&s, &row);
	ck_assert(!row.cells[1].present && row.cells[3].present);
	ls_steps_give_back(&s, &row);
	ck_assert_uint_eq(s.held, 0);
	ls_steps_fini(&s);
}

static size_t
resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t all, resident;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%zu %zu", &all, &resident), 2);
	ck_assert_int_eq(fclose(f), 0);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* 64 rows of 16,384 workers, of which one reports: 118 MiB of cells. */
LS_TEST(all, workers_that_do_not_report_take_no_memory)
{
	struct ls_steps s = { 0 };
	size_t before = resident_bytes(), after;

	for (uint64_t step = 0; step < 64; step++)
		ck_assert_int_eq(put(&s, 16383, 16384, step), 0);
	after = resident_bytes();
	ck_assert_uint_lt(after, before + (8u << 20));
	ls_steps_fini(&s);
}

LS_TEST(all, workers_may_join_an_open_row)
{
	struct ls_steps s = { 0 };

	ck_assert_int_eq(put(&s, 0, 1, 1), 0);
	ck_assert_int_eq(put(&s, 40, 41, 1), 0);
	ck_assert_uint_eq(ls_steps_oldest(&s)->cell_count, 41);
	ck_assert(!ls_steps_oldest(&s)->cells[20].present);
	ls_steps_fini(&s);
}

LS_TEST(all, time_is_up_after_two_seconds_or_three_medians)
{
	struct ls_row row = { .first_seen_us = 1000000 };

	ck_assert(!ls_steps_overdue(row.first_seen_us, NAN, 2999999));
	ck_assert(ls_steps_overdue(row.first_seen_us, NAN, 3000000));
	ck_assert(ls_steps_overdue(row.first_seen_us, 0.5, 3000000));
	ck_assert(!ls_steps_overdue(row.first_seen_us, 10, 30999999));
	ck_assert(ls_steps_overdue(row.first_seen_us, 10, 31000000));
}

LS_TEST(all, cell_holds_what_the_record_says)
{
	struct ls_steps s = { 0 };
	struct ls_record r = record_of(0);
	const struct ls_cell *c;

	r.phase_ns[LS_PHASE_INPUT_WAIT] = 3000000;
	r.phase_mask = 1u << LS_PHASE_INPUT_WAIT;
	r.work[LS_WORK_BATCH] = 8;
	r.work_mask = 1u << LS_WORK_BATCH;
	r.barrier_count = 2;
	r.barrier[0].enter_ns = r.t_begin_ns + 40000000;
	r.barrier[0].exit_ns = r.t_begin_ns + 50000000;
	r.barrier[1].enter_ns = r.t_begin_ns + 70000000;
	/* rounded to the nearest microsecond */
	r.barrier[1].exit_ns = r.t_begin_ns + 90000499;
	ck_assert_int_eq(ls_steps_put(&s, 0, 1, r.step, &r, 0), 0);
	c = &ls_steps_oldest(&s)->cells[0];
	ck_assert(c->has_enter && c->has_wait);
	ck_assert_int_eq(c->enter_us, 1040000);
	ck_assert_int_eq(c->exit_us, 1090000);
	ck_assert_double_eq_tol((double)c->wait_s, 0.0300005, 1e-6);
	ck_assert_double_eq_tol((double)c->own_s, 0.06, 1e-6);
	ck_assert_double_eq_tol((double)c->phase_s[LS_PHASE_INPUT_WAIT], 0.003, 1e-9);
	ck_assert_double_nan((double)c->phase_s[LS_PHASE_H2D]);
	ck_assert_double_eq((double)c->work, 8);
	ck_assert_double_nan((double)c->blame_s);
	ls_steps_fini(&s);
}

LS_TEST(all, tokens_are_the_best_measure_of_work)
{
	struct ls_steps s = { 0 };
	struct ls_record r = record_of(0);

	r.work[LS_WORK_TOKENS] = 512;
	r.work[LS_WORK_SUM_SQ_LEN] = 77;
	r.work_mask = 1u << LS_WORK_TOKENS | 1u << LS_WORK_SUM_SQ_LEN;
	ck_assert_int_eq(ls_steps_put(&s, 0, 1, r.step, &r, 0), 0);
	ck_assert_double_eq((double)ls_steps_oldest(&s)->cells[0].work, 512);
	ls_steps_fini(&s);
}

LS_TEST(all, without_barriers_sync_wait_counts)
{
	struct ls_steps s = { 0 };
	struct ls_record r = record_of(0);
	const struct ls_cell *c;

	r.phase_ns[LS_PHASE_SYNC_WAIT] = 20000000;
	r.phase_mask = 1u << LS_PHASE_SYNC_WAIT;
	ck_assert_int_eq(ls_steps_put(&s, 0, 2, r.step, &r, 0), 0);
	r.phase_mask = 0;
	r.phase_ns[LS_PHASE_SYNC_WAIT] = 0;
	ck_assert_int_eq(ls_steps_put(&s, 1, 2, r.step, &r, 0), 0);
	c = ls_steps_oldest(&s)->cells;
	ck_assert(!c[0].has_enter && c[0].has_wait);
	ck_assert_double_eq_tol((double)c[0].own_s, 0.07, 1e-6);
	ck_assert(!c[1].has_wait); /* an asynchronous job */
	ls_steps_fini(&s);
}

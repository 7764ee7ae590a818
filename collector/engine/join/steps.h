/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps - joins the records of all workers of one attempt into rows, one a global step.
 *
 * A row is closed when every worker that can still report it has done so, or when the
 * time is up (max(2 s, 3 median steps) after its first record; what half of them report at
 * most waits for as long after the step before, so that nobody is ahead of the others and
 * closes their steps). Only closed rows are judged, in order of step.
 *
 * Owner:   one job of the engine. Pure.
 * Units:   microseconds since the epoch for times, seconds in cells.
 * Errors:  -LS_EDUPLICATE, -LS_ESTALE, -LS_ELIMIT, -ENOMEM.
 * Limits:  LS_OPEN_STEPS_MAX rows, fewer for jobs of many workers (LS_OPEN_CELLS_MAX);
 *          when full, one is to be closed or dropped.
 * Source:  design section 11, "Closing a step".
 */
#ifndef LS_COLLECTOR_STEPS_H
#define LS_COLLECTOR_STEPS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/params.h"
#include "collector/engine/residual/blame.h"
#include "proto/base/mem.h"
#include "proto/ring/record.h"

#define LS_STEPS_ROW_CELLS 2 /* a row itself is as large as so many cells */
#define LS_STEPS_WAIT_US LS_ENGINE_US(LS_LATE_S)

/*
 * Rows of asynchronous jobs are windows of time (replica.h). Their number is
 * LS_WINDOW_FIRST + 16 * the Unix second at which the window begins + log2 of its
 * seconds: above every step, below 2^53, ascending in time.
 */
#define LS_WINDOW_FIRST LS_STEP_END
#define LS_WINDOW_LOG2_MAX 6u

static inline bool
ls_window_is(uint64_t step)
{
	return step >= LS_WINDOW_FIRST;
}

/* The window of 2^width_log2 seconds that holds t_us >= 0. */
static inline uint64_t
ls_window_at(int64_t t_us, unsigned width_log2)
{
	uint64_t second = (uint64_t)(t_us / 1000000) >> width_log2 << width_log2;

	return LS_WINDOW_FIRST + (second << 4) + width_log2;
}

/* One global step while its records come in. */
struct ls_row {
	uint64_t step;
	int64_t first_seen_us; /* `now` of its first record */
	int64_t begin_us; /* earliest begin; once judged, the median */
	int64_t end_us; /* latest end */
	uint32_t reported;
	size_t cell_count; /* room in cells */
	struct ls_cell *cells; /* by slot */
};

/* Each worker's cell in a row that holds its step. */
#define LS_CELLS(row, c)                                             \
	LS_EACH (struct ls_cell, c, (row)->cells, (row)->cell_count) \
		if (!c->present) {                                   \
		} else

struct ls_steps {
	struct ls_row *rows; /* sorted by step */
	size_t count, capacity;
	uint64_t next; /* the least step that is not closed; 0: none was */
	/* a row that is over: its cells, all absent, are for the next one */
	struct ls_row spare;
	/* cells of open rows, of rows that were taken out, and LS_STEPS_ROW_CELLS for each */
	size_t held;
};

/* Drops all rows; begins anew. */
void ls_steps_fini(struct ls_steps *s);

/*
 * Puts the record of worker `slot` into the row of its step, or of a window of time; times of the record are wall
 * ns of the engine's time line. n = workers of the attempt (slot < n). -LS_ESTALE: the row is
 * closed; -LS_EDUPLICATE: of a step; -LS_ELIMIT: full, close the oldest row first.
 */
int ls_steps_put(struct ls_steps *s, size_t slot, size_t n, uint64_t number,
	const struct ls_record *r, int64_t now_us) LS_MUSTCHECK;

/* Makes means of the records of a worker in a window: they add up in its cell until then. */
void ls_steps_means(struct ls_cell *c);

/* Phases that may take long without being a fault: a bit each. */
#define LS_PHASES_MASKED \
	(1u << LS_PHASE_CHECKPOINT | 1u << LS_PHASE_EVAL | 1u << LS_PHASE_COMPILE)

/* Time that a worker spent in some phases, a bit each; what it did not mark took none. */
static inline double
ls_steps_phases_s(const struct ls_cell *c, unsigned phases)
{
	double sum = 0;

	for (; phases != 0; phases &= phases - 1) {
		float one_s = c->phase_s[__builtin_ctz(phases)];

		sum += isnan(one_s) ? 0 : (double)one_s;
	}
	return sum;
}

/* Are more than half of the workers in a row so? */
bool ls_steps_mostly(const struct ls_row *row, bool (*are)(const struct ls_cell *c));

/* When a record ends, in whole microseconds as rows count them. */
int64_t ls_steps_end_us(const struct ls_record *r);

/* The oldest open row, or NULL. */
struct ls_row *ls_steps_oldest(struct ls_steps *s);

/* True if the time of a row that waits since then is up at now_us; median_step_s may be NaN. */
bool ls_steps_overdue(int64_t since_us, double median_step_s, int64_t now_us);

/* Takes the oldest row out; *ret_row is the caller's from now on: to give back. */
void ls_steps_take_oldest(struct ls_steps *s, struct ls_row *ret_row);

/* Forgets an open row, 0 the oldest, as if there had been none. */
void ls_steps_drop(struct ls_steps *s, size_t at);

/* Takes the cells of a row that was taken out for the next row: those of thousands of workers
 * take long to allocate, each step. *row is empty afterwards. */
void ls_steps_give_back(struct ls_steps *s, struct ls_row *row);

/* Rows that may be open with n workers. */
size_t ls_steps_capacity(size_t n);

#endif

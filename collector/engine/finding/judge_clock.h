/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_clock - the part of the judge that knows how well clocks are known, and so what
 * may be said of order.
 *
 * Owner:   the engine's thread. Pure.
 * Units:   seconds.
 * Errors:  none. A clock of which nothing was told (one host, or replay) is taken for
 *          right, but nobody is called apart by it.
 * Limits:  none.
 * Source:  design section 3.3: order is claimed beyond LS_SIGMAS combined
 *          uncertainties.
 */
#ifndef LS_COLLECTOR_JUDGE_CLOCK_H
#define LS_COLLECTOR_JUDGE_CLOCK_H

#include "collector/engine/engine_state.h"

/* Can arrivals tell what is to be found? If not, the waits do: they need no clocks. */
bool ls_judge_clocks_ok(const struct ls_engine *e, const struct ls_job *j);

/*
 * Where arrivals are in use and a clock has become worse, the end of the barrier is the clock: times in it are moved by as
 * much as its exit is off that of workers with good clocks, but for what it usually is. So its arrival says what
 * its wait says. If fewer than half have good clocks, all are moved.
 */
void ls_judge_clocks_align(const struct ls_engine *e, const struct ls_job *j,
	struct ls_row *row);

/* Nobody is called the last who may have come before another. */
void ls_judge_order(const struct ls_engine *e, const struct ls_job *j,
	struct ls_blame_step *totals);

/* Were the workers of this row surely not in it at one time (blame.h)? Told only if all
 * clocks are known. */
bool ls_judge_is_apart(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row, const struct ls_blame_step *totals);

#endif

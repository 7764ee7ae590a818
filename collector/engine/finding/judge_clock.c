/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_clock.h"
#include "collector/engine/residual/stats.h"

#include <math.h>

/* What clocks may be off by, where arrivals are in use. */
static double
judge_clock_limit(const struct ls_job *j)
{
	return LS_LEAST * j->detect.step_s / (LS_SIGMAS * M_SQRT2);
}

/* Are arrivals in use? */
static bool
judge_clock_arrivals(const struct ls_job *j)
{
	return j->detect.ready && j->detect.mode == LS_MODE_LATENESS && !j->replica.on;
}

/* What the clocks of two workers may differ by, surely; 0 where nobody told (one host,
 * or replay). */
static double
judge_clock_sure(const struct ls_engine *e, const struct ls_job *j, size_t a, size_t b)
{
	double of[2] = { e->workers[j->slots[a]].clock_err_s,
		e->workers[j->slots[b]].clock_err_s };

	for (size_t i = 0; i < 2; i++) {
		if (isnan(of[i]))
			of[i] = 0;
		else if (judge_clock_arrivals(j)) /* a worse one is not used */
			of[i] = fmin(of[i], judge_clock_limit(j));
	}
	return LS_SIGMAS * hypot(of[0], of[1]);
}

/* Is its clock known too badly? Not if nothing was told of it. */
static bool
judge_clock_is_bad(const struct ls_engine *e, const struct ls_job *j, size_t slot)
{
	return e->workers[j->slots[slot]].clock_err_s > judge_clock_limit(j);
}

bool
ls_judge_clocks_ok(const struct ls_engine *e, const struct ls_job *j)
{
	LS_WORKERS (e, j, w)
		if (judge_clock_is_bad(e, j, w->slot))
			return false;
	return true;
}

/* Times at which workers left the barrier: of all, or of those with good clocks. */
static size_t
judge_clock_exits(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row, bool all)
{
	size_t known = 0;

	LS_CELLS (row, c)
		if (c->has_enter &&
			(all || !judge_clock_is_bad(e, j, (size_t)(c - row->cells))))
			j->detect.scratch[known++] = (double)c->exit_us;
	return known;
}

void
ls_judge_clocks_align(const struct ls_engine *e, const struct ls_job *j,
	struct ls_row *row)
{
	size_t good;
	double exit_us;
	bool all;

	if (!judge_clock_arrivals(j) || ls_judge_clocks_ok(e, j))
		return;
	good = judge_clock_exits(e, j, row, false);
	all = 2 * good < row->cell_count;
	if (all)
		good = judge_clock_exits(e, j, row, true);
	exit_us = ls_stats_median(j->detect.scratch, good);
	LS_CELLS (row, c) {
		size_t i = (size_t)(c - row->cells);
		const struct ls_detect_worker *w = &j->detect.worker[i];
		int64_t later_us;

		if (!c->has_enter || (!all && !judge_clock_is_bad(e, j, i)))
			continue;
		/* it may always leave a little later than others */
		later_us = llround(exit_us + (w->base_s - w->base_wait_s) * 1e6 -
			(double)c->exit_us);
		c->enter_us += later_us;
		c->exit_us += later_us;
	}
}

void
ls_judge_order(const struct ls_engine *e, const struct ls_job *j,
	struct ls_blame_step *totals)
{
	if (totals->last < j->count && totals->second < j->count &&
		!(totals->gap_s > judge_clock_sure(e, j, totals->last, totals->second)))
		totals->last = totals->second = SIZE_MAX;
}

bool
ls_judge_is_apart(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row, const struct ls_blame_step *totals)
{
	size_t n = row->cell_count;
	double err_s = 0;

	/* as almost always */
	if (j->replica.on || !ls_blame_is_apart(row->cells, n, totals, 0))
		return false;
	LS_CELLS (row, c) {
		double one_s = e->workers[j->slots[c - row->cells]].clock_err_s;

		if (isnan(one_s))
			return false;
		err_s = fmax(err_s, one_s);
	}
	return ls_blame_is_apart(row->cells, n, totals, err_s);
}

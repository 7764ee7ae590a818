/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judge_clock.h"

#include <math.h>

/* What the clocks of two workers may differ by, surely; 0 where nobody told (one host,
 * or replay). */
static double
judge_clock_sure(const struct ls_engine *e, const struct ls_job *j, size_t a, size_t b)
{
	double x = e->workers[j->slots[a]].clock_err_s,
	       y = e->workers[j->slots[b]].clock_err_s;

	return LS_SIGMAS * hypot(isnan(x) ? 0 : x, isnan(y) ? 0 : y);
}

bool
ls_judge_clocks_ok(const struct ls_engine *e, struct ls_job *j)
{
	double limit_s = LS_LEAST * j->detect.step_s;
	bool ok = true;

	for (size_t i = 0; i < j->count; i++) {
		double err_s = e->workers[j->slots[i]].clock_err_s;

		/* NaN: not told */
		if (!(LS_SIGMAS * M_SQRT2 * err_s > limit_s))
			continue;
		ok = false;
		if (j->detect.ready)
			j->residuals[i].late_s = NAN;
	}
	return ok;
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
ls_judge_is_apart(const struct ls_engine *e, struct ls_job *j, const struct ls_row *row,
	const struct ls_blame_step *totals)
{
	size_t n = row->cell_count < j->count ? row->cell_count : j->count;
	double err_s = 0;

	/* as almost always */
	if (j->replica.on || !(totals->spread_s > LS_APART_STEPS * totals->duration_s))
		return false;
	for (size_t i = 0; i < n; i++) {
		double one_s = e->workers[j->slots[i]].clock_err_s;

		if (row->cells[i].present && isnan(one_s))
			return false;
		if (row->cells[i].present && one_s > err_s)
			err_s = one_s;
	}
	return ls_blame_is_apart(&j->room, row->cells, n, totals, err_s);
}

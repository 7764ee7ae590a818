/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/recent.h"
#include "collector/engine/engine_state.h"

#include <math.h>
#include <string.h>

/* A step enters (sign 1) or leaves (sign -1) the sums of a worker; last: it was the last. */
static void
recent_cell(struct ls_recent *of, const struct ls_cell *c, float last, int sign)
{
	const float value[] = { c->duration_s, c->own_s, c->wait_s,
		c->phase_s[LS_PHASE_INPUT_WAIT], c->late_s, c->blame_s + c->under_s,
		last };

	for (size_t k = 0; k < LS_RECENT_KINDS; k++)
		if (!isnan(value[k])) {
			of->sum[k] += sign * (double)value[k];
			of->steps[k] += (uint32_t)sign; /* -1 as a modulus */
		}
}

/* The same of all workers of a row. */
static void
recent_row(const struct ls_job *j, const struct ls_live_row *r, int sign)
{
	LS_CELLS (&r->row, c) {
		size_t slot = (size_t)(c - r->row.cells);

		recent_cell(&j->recent[slot], c,
			r->totals.last == SIZE_MAX ? NAN : r->totals.last == slot,
			sign);
	}
}

void
ls_recent_add(const struct ls_job *j)
{
	recent_row(j, ls_job_row(j, j->live_count - 1), 1);
	if (j->live_count > LS_RECENT_STEPS)
		recent_row(j, ls_job_row(j, j->live_count - 1 - LS_RECENT_STEPS), -1);
}

void
ls_recent_forget(const struct ls_job *j)
{
	if (j->live_count > LS_RECENT_STEPS)
		return;
	if (j->live_count > 1)
		recent_row(j, ls_job_row(j, 0), -1);
	else /* and what was lost in rounding */
		memset(j->recent, 0, j->capacity * sizeof(*j->recent));
}

double
ls_recent_mean(const struct ls_recent *of, enum ls_recent_kind kind)
{
	uint32_t known = of->steps[kind], steps = known;

	if (kind == LS_RECENT_LAST) /* known of most of its steps */
		steps = 2 * known < of->steps[LS_RECENT_STEP]
			? 0
			: of->steps[LS_RECENT_STEP];
	if (steps == 0)
		return NAN;
	return kind == LS_RECENT_BLAME ? fmax(of->sum[kind] / steps, 0)
				       : of->sum[kind] / steps;
}

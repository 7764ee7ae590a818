/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/recent.h"
#include "collector/engine/engine_state.h"

#include <math.h>
#include <string.h>

static void
recent_sum(double *sum, uint32_t *count, float value, int sign)
{
	if (isnan(value))
		return;
	*sum += sign * (double)value;
	*count += (uint32_t)sign; /* -1 as a modulus */
}

/* A row enters (sign 1) or leaves (sign -1) the sums of each worker. */
static void
recent_row(const struct ls_job *j, const struct ls_live_row *r, int sign)
{
	for (size_t slot = 0; slot < j->count; slot++) {
		const struct ls_cell *c = ls_row_cell(r, slot);
		struct ls_recent *of = &j->recent->of[slot];

		if (c == NULL)
			continue;
		of->steps += (uint32_t)sign;
		of->step_s += sign * (double)c->duration_s;
		of->own_s += sign * (double)c->own_s;
		of->wait_s += sign * (double)c->wait_s;
		recent_sum(&of->input_s, &of->inputs, c->phase_s[LS_PHASE_INPUT_WAIT],
			sign);
		recent_sum(&of->late_s, &of->lates, c->late_s, sign);
		recent_sum(&of->blame_s, &of->blames, c->blame_s + c->under_s, sign);
		of->ranked += (uint32_t)sign * (r->totals.last != SIZE_MAX);
		of->last += (uint32_t)sign * (r->totals.last == slot);
	}
}

void
ls_recent_rows(const struct ls_job *j)
{
	struct ls_recent_table *t = j->recent;
	uint64_t oldest = j->kept - j->live_count, first = oldest, n;

	if (t == NULL) /* a job without workers */
		return;
	if (j->live_count > LS_RECENT_STEPS)
		first = j->kept - LS_RECENT_STEPS;
	if (t->first < oldest || t->last <= first) { /* nothing of it can be used */
		memset(t->of, 0, j->capacity * sizeof(t->of[0]));
		t->first = t->last = first;
	}
	for (n = t->first; n < first; n++)
		recent_row(j, ls_job_row(j, n - oldest), -1);
	for (n = t->last; n < j->kept; n++)
		recent_row(j, ls_job_row(j, n - oldest), 1);
	t->first = first;
	t->last = j->kept;
}

void
ls_recent_forget(const struct ls_job *j)
{
	struct ls_recent_table *t = j->recent;
	uint64_t oldest = j->kept - j->live_count;

	if (t == NULL || t->first != oldest || t->last <= oldest)
		return;
	recent_row(j, ls_job_row(j, 0), -1);
	t->first++;
}

static double
recent_mean(double sum, uint32_t count)
{
	return count == 0 ? NAN : sum / count;
}

struct ls_recent_means
ls_recent_means(const struct ls_recent *of)
{
	struct ls_recent_means m = {
		.step_s = recent_mean(of->step_s, of->steps),
		.own_s = recent_mean(of->own_s, of->steps),
		.wait_s = recent_mean(of->wait_s, of->steps),
		.input_s = recent_mean(of->input_s, of->inputs),
		.late_s = recent_mean(of->late_s, of->lates),
		.blame_s = recent_mean(of->blame_s, of->blames),
		.slowest = 2 * of->ranked < of->steps
			? NAN
			: recent_mean(of->last, of->steps),
	};

	if (m.blame_s < 0)
		m.blame_s = 0;
	return m;
}

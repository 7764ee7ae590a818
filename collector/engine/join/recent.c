/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/recent.h"

#include <math.h>

static void
recent_sum(double *sum, uint32_t *count, float value, int sign)
{
	if (isnan(value))
		return;
	*sum += sign * (double)value;
	*count += (uint32_t)sign; /* -1 as a modulus */
}

void
ls_recent_add(struct ls_recent *of, const struct ls_cell *c, int sign)
{
	of->steps += (uint32_t)sign;
	of->step_s += sign * (double)c->duration_s;
	of->own_s += sign * (double)c->own_s;
	of->wait_s += sign * (double)c->wait_s;
	recent_sum(&of->input_s, &of->inputs, c->phase_s[LS_PHASE_INPUT_WAIT], sign);
	recent_sum(&of->late_s, &of->lates, c->late_s, sign);
	recent_sum(&of->blame_s, &of->blames, c->blame_s + c->under_s, sign);
}

void
ls_recent_rank(struct ls_recent *of, size_t slot, size_t last, int sign)
{
	if (last != SIZE_MAX)
		of->ranked += (uint32_t)sign;
	if (last == slot)
		of->last += (uint32_t)sign;
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

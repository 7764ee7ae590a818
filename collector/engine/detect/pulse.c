/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/pulse.h"
#include "collector/engine/residual/stats.h"

#include <math.h>
#include <string.h>

#define PULSE_WARM (2 * LS_DETECT_WARM / LS_BLOCK) /* blocks that are learned */

static void
pulse_add(struct ls_pulse_means *to, const struct ls_pulse_means *v, double share)
{
	for (size_t k = 0; k < LS_PULSE_VALUES; k++)
		if (!isnan(v->v[k])) /* the least wait may be not known */
			to->v[k] += (v->v[k] - to->v[k]) * share;
}

static void
pulse_cells(struct ls_pulse *p, const struct ls_row *row)
{
	size_t stride = (row->cell_count + LS_PULSE_WORKERS - 1) / LS_PULSE_WORKERS;

	for (size_t i = 0; i < row->cell_count; i += stride) {
		const struct ls_cell *c = &row->cells[i];

		if (!c->present)
			continue;
		p->phase_n++;
		p->sum.v[LS_PULSE_WORK] += isnan(c->work) ? 0 : (double)c->work;
		for (size_t k = 0; k < LS_PHASE_COUNT; k++)
			p->sum.v[LS_PULSE_PHASE + k] +=
				isnan(c->phase_s[k]) ? 0 : (double)c->phase_s[k];
	}
}

/* Means of the block that is full. */
static struct ls_pulse_means
pulse_block(struct ls_pulse *p, double *ret_noise)
{
	struct ls_pulse_means m = { 0 };
	double copy[LS_BLOCK];

	memcpy(copy, p->times, sizeof(copy));
	m.v[LS_PULSE_STEP] = ls_stats_median(copy, LS_BLOCK);
	*ret_noise = LS_MAD_TO_SIGMA *
		ls_stats_mad(copy, LS_BLOCK, m.v[LS_PULSE_STEP]) / m.v[LS_PULSE_STEP];
	for (size_t i = 0; i < LS_BLOCK; i++)
		m.v[LS_PULSE_MEAN] +=
			fmin(p->mean_times[i], LS_PULSE_CLIP * m.v[LS_PULSE_STEP]) /
			LS_BLOCK;
	m.v[LS_PULSE_LEAST] =
		p->least_n > 0 ? p->sum.v[LS_PULSE_LEAST] / (double)p->least_n : NAN;
	for (size_t k = LS_PULSE_WORK; k < LS_PULSE_VALUES && p->phase_n > 0; k++)
		m.v[k] = p->sum.v[k] / (double)p->phase_n;
	return m;
}

/* Is so much growth of more work? */
static bool
pulse_is_work(const struct ls_pulse *p, const struct ls_pulse_means *m, double grown)
{
	double work = p->base.v[LS_PULSE_WORK] > 0 && m->v[LS_PULSE_WORK] > 0
		? m->v[LS_PULSE_WORK] / p->base.v[LS_PULSE_WORK] - 1
		: 0;

	return work >= LS_EXPLAINS * grown;
}

/* Slower than it was, and not for as much more work? */
static bool
pulse_is_slow(const struct ls_pulse *p, const struct ls_pulse_means *m)
{
	double grown = m->v[LS_PULSE_STEP] / p->base.v[LS_PULSE_STEP] - 1;

	return grown >= fmax(LS_VISIBLE, p->noise) && !pulse_is_work(p, m, grown);
}

static void
pulse_learn(struct ls_pulse *p, const struct ls_pulse_means *m, double noise)
{
	double share =
		p->blocks < PULSE_WARM ? 1.0 / (p->blocks + 1) : 1.0 / LS_DETECT_WARM;

	pulse_add(&p->base, m, share);
	p->noise += (noise - p->noise) * share;
	p->blocks += p->blocks < PULSE_WARM;
}

/* One more block from which on it is, or may be, slow. */
static void
pulse_gather(struct ls_pulse_from *from, const struct ls_pulse *p,
	const struct ls_pulse_means *m)
{
	if (from->steps == 0) {
		*from = (struct ls_pulse_from){ .step = p->first_step,
			.t_us = p->first_us };
		from->now = *m;
	}
	from->steps += LS_BLOCK;
	pulse_add(&from->now, m, (double)LS_BLOCK / (double)from->steps);
	from->last = (double)(p->first_step - from->step);
	ls_stats_line_add(&from->line, from->last, m->v[LS_PULSE_STEP]);
	from->newest_s = m->v[LS_PULSE_MEAN];
}

double
ls_pulse_slope(const struct ls_pulse *p)
{
	const struct ls_stats_line l = ls_stats_line_about_mean(&p->since.line);
	double slope = l.xy / l.xx, rest = l.yy - slope * l.xy, last = p->since.last;
	double grown =
		l.y / l.n + slope * (last - l.x / l.n) - p->base.v[LS_PULSE_STEP];

	return l.n > 2 && l.xx > 0 && slope * last >= LS_HALF * grown &&
			slope * sqrt(l.xx) >= LS_FAR * sqrt(fmax(rest, 0) / (l.n - 2))
		? slope
		: 0;
}

/* One more block of the kind that is waited for: slow ones, or once it is on, those
 * that are not. */
static void
pulse_count(struct ls_pulse *p, const struct ls_pulse_means *m)
{
	bool slow = pulse_is_slow(p, m);

	if (!p->on && !slow)
		p->since.steps = 0;
	else if (slow)
		pulse_gather(&p->since, p, m);
	p->row = slow != p->on ? p->row + 1 : 0;
	if (p->row >= LS_DETECT_LASTS / LS_BLOCK) {
		p->on = !p->on;
		p->row = 0;
	}
}

bool
ls_pulse_step(struct ls_pulse *p, const struct ls_row *row,
	const struct ls_blame_step *totals, bool found, double explained_s)
{
	struct ls_pulse_means m;
	double noise;

	if (!(totals->duration_s > 0))
		return false;
	if (p->n == 0) {
		p->first_step = row->step;
		p->first_us = row->begin_us;
	}
	p->mean_times[p->n] = totals->mean_s;
	p->times[p->n++] = totals->duration_s;
	p->spoilt |= found;
	p->explained_s = fmax(p->explained_s, explained_s);
	pulse_cells(p, row);
	if (!isnan(totals->wait_min_s)) {
		p->sum.v[LS_PULSE_LEAST] += totals->wait_min_s;
		p->least_n++;
	}
	if (p->n < LS_BLOCK)
		return false;
	m = pulse_block(p, &noise);
	if (p->blocks == PULSE_WARM)
		p->spoilt |= p->explained_s > LS_HALF *
				fmax(m.v[LS_PULSE_MEAN] - p->base.v[LS_PULSE_MEAN], 0);
	if (p->spoilt) {
		if (!p->on)
			p->row = 0;
	} else if (p->blocks < PULSE_WARM) {
		pulse_learn(p, &m, noise);
	} else {
		pulse_count(p, &m);
		if (!p->on && p->row == 0)
			pulse_learn(p, &m, noise);
	}
	memset(&p->sum, 0, sizeof(p->sum));
	p->n = p->phase_n = p->least_n = 0;
	p->spoilt = false;
	p->explained_s = 0;
	return true;
}

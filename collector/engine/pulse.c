/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/pulse.h"
#include "collector/engine/stats.h"

#include <math.h>
#include <string.h>

#define PULSE_LEAST 0.05   /* of the step time */
#define PULSE_NOISE 1.25   /* of a single step's noise */
#define PULSE_ADAPT 64.0   /* blocks over which what is normal follows */
#define PULSE_WORK 0.8     /* so much of the growth is of more work: not slower */

static void
pulse_add(struct ls_pulse_means *to, const struct ls_pulse_means *v, double share)
{
	to->step_s += (v->step_s - to->step_s) * share;
	to->work += (v->work - to->work) * share;
	for (size_t p = 0; p < LS_PHASE_COUNT; p++)
		to->phase_s[p] += (v->phase_s[p] - to->phase_s[p]) * share;
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
		p->sum.work += isnan(c->work) ? 0 : (double)c->work;
		for (size_t k = 0; k < LS_PHASE_COUNT; k++)
			p->sum.phase_s[k] += isnan(c->phase_s[k]) ? 0 : (double)c->phase_s[k];
	}
}

/* Means of the block that is full. */
static struct ls_pulse_means
pulse_block(struct ls_pulse *p, double *ret_noise)
{
	struct ls_pulse_means m = {0};
	double copy[LS_PULSE_BLOCK];

	memcpy(copy, p->times, sizeof(copy));
	m.step_s = ls_stats_median(copy, LS_PULSE_BLOCK);
	*ret_noise = LS_MAD_TO_SIGMA * ls_stats_mad(copy, LS_PULSE_BLOCK, m.step_s) / m.step_s;
	if (p->phase_n > 0) {
		m.work = p->sum.work / (double)p->phase_n;
		for (size_t k = 0; k < LS_PHASE_COUNT; k++)
			m.phase_s[k] = p->sum.phase_s[k] / (double)p->phase_n;
	}
	return m;
}

/* Slower than it was, and not for as much more work? */
static bool
pulse_is_slow(const struct ls_pulse *p, const struct ls_pulse_means *m)
{
	double grown = m->step_s / p->base.step_s - 1;
	double work = p->base.work > 0 && m->work > 0 ? m->work / p->base.work - 1 : 0;

	return grown >= fmax(PULSE_LEAST, PULSE_NOISE * p->noise) && work < PULSE_WORK * grown;
}

static void
pulse_learn(struct ls_pulse *p, const struct ls_pulse_means *m, double noise)
{
	double share = p->blocks < LS_PULSE_WARM ? 1.0 / (p->blocks + 1) : 1 / PULSE_ADAPT;

	pulse_add(&p->base, m, share);
	p->noise += (noise - p->noise) * share;
	p->blocks += p->blocks < LS_PULSE_WARM;
}

/* One more block of the kind that is waited for: slow ones, or once it is on, those that are not. */
static void
pulse_count(struct ls_pulse *p, const struct ls_pulse_means *m)
{
	bool slow = pulse_is_slow(p, m);

	if (slow && (p->on || p->row > 0)) {
		p->steps += LS_PULSE_BLOCK;
		pulse_add(&p->now, m, (double)LS_PULSE_BLOCK / (double)p->steps);
	} else if (slow) {
		p->now = *m;
		p->steps = LS_PULSE_BLOCK;
		p->since_step = p->first_step;
		p->since_us = p->first_us;
	}
	p->row = slow != p->on ? p->row + 1 : 0;
	if (p->row >= LS_PULSE_ROW) {
		p->on = !p->on;
		p->row = 0;
	}
}

bool
ls_pulse_step(struct ls_pulse *p, const struct ls_row *row, double duration_s, bool explained)
{
	struct ls_pulse_means m;
	double noise;

	if (!(duration_s > 0))
		return false;
	if (p->n == 0) {
		p->first_step = row->step;
		p->first_us = row->begin_us;
	}
	p->times[p->n++] = duration_s;
	p->spoilt |= explained;
	pulse_cells(p, row);
	if (p->n < LS_PULSE_BLOCK)
		return false;
	m = pulse_block(p, &noise);
	if (p->spoilt) {
		if (!p->on)
			p->row = 0;
	} else if (p->blocks < LS_PULSE_WARM) {
		pulse_learn(p, &m, noise);
	} else {
		pulse_count(p, &m);
		if (!p->on && p->row == 0)
			pulse_learn(p, &m, noise);
	}
	memset(&p->sum, 0, sizeof(p->sum));
	p->n = p->phase_n = 0;
	p->spoilt = false;
	return true;
}

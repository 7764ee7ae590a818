/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/pulse.h"
#include "collector/engine/residual/stats.h"

#include <math.h>
#include <string.h>

static void
pulse_add(struct ls_pulse_means *to, const struct ls_pulse_means *v, double share)
{
	to->step_s += (v->step_s - to->step_s) * share;
	to->mean_s += (v->mean_s - to->mean_s) * share;
	to->free_s += (v->free_s - to->free_s) * share;
	to->burst_s += (v->burst_s - to->burst_s) * share;
	to->wait_s += (v->wait_s - to->wait_s) * share;
	if (!isnan(v->least_s))
		to->least_s += (v->least_s - to->least_s) * share;
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
		p->sum.wait_s += c->has_wait ? (double)c->wait_s : 0;
		for (size_t k = 0; k < LS_PHASE_COUNT; k++)
			p->sum.phase_s[k] +=
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
	m.step_s = ls_stats_median(copy, LS_BLOCK);
	*ret_noise =
		LS_MAD_TO_SIGMA * ls_stats_mad(copy, LS_BLOCK, m.step_s) / m.step_s;
	for (size_t i = 0; i < LS_BLOCK; i++) {
		double t = fmin(p->free_times[i], LS_CLIP * m.step_s);

		m.mean_s += fmin(p->mean_times[i], LS_CLIP * m.step_s) / LS_BLOCK;
		m.free_s += t / LS_BLOCK;
		m.burst_s += LS_HALF * t > m.step_s ? (t - m.step_s) / LS_BLOCK : 0;
	}
	m.least_s = p->least_n > 0 ? p->sum.least_s / (double)p->least_n : NAN;
	if (p->phase_n > 0) {
		m.work = p->sum.work / (double)p->phase_n;
		m.wait_s = p->sum.wait_s / (double)p->phase_n;
		for (size_t k = 0; k < LS_PHASE_COUNT; k++)
			m.phase_s[k] = p->sum.phase_s[k] / (double)p->phase_n;
	}
	return m;
}

/* Is so much growth of more work? */
static bool
pulse_is_work(const struct ls_pulse *p, const struct ls_pulse_means *m, double grown)
{
	double work = p->base.work > 0 && m->work > 0 ? m->work / p->base.work - 1 : 0;

	return work >= LS_EXPLAINS * grown;
}

static double
pulse_grown_mean(const struct ls_pulse *p, const struct ls_pulse_means *m)
{
	return m->free_s / p->base.free_s - 1;
}

/* Slower than it was, and not for as much more work? Once it is on, by the mean, too.
 */
static bool
pulse_is_slow(const struct ls_pulse *p, const struct ls_pulse_means *m)
{
	double grown = m->step_s / p->base.step_s - 1;

	if (grown >= fmax(LS_VISIBLE, LS_PULSE_NOISE * p->noise))
		return !pulse_is_work(p, m, grown);
	grown = pulse_grown_mean(p, m);
	return p->on && grown >= LS_LARGE && !pulse_is_work(p, m, grown);
}

/* The first blocks: one of them may be of a start, so medians. */
static void
pulse_learn_means(struct ls_pulse *p)
{
	double copy[LS_BLOCKS_WARM];

	memcpy(copy, p->means, sizeof(copy));
	p->base.free_s = ls_stats_median(copy, LS_BLOCKS_WARM);
	p->mean_noise = fmax(LS_MAD_TO_SIGMA *
			ls_stats_mad(copy, LS_BLOCKS_WARM, p->base.free_s) /
			p->base.free_s,
		2 * LS_LEAST);
}

static void
pulse_learn(struct ls_pulse *p, const struct ls_pulse_means *m, double noise)
{
	double share = p->blocks < LS_BLOCKS_WARM ? 1.0 / (p->blocks + 1)
						  : 1.0 / LS_DETECT_WARM;

	if (p->blocks == LS_BLOCKS_WARM)
		p->mean_noise += (LS_MEAN_ABS_TO_SIGMA *
						 fmin(fabs(pulse_grown_mean(p, m)),
							 LS_SIGMAS * p->mean_noise) -
					 p->mean_noise) *
			share;
	pulse_add(&p->base, m, share);
	p->noise += (noise - p->noise) * share;
	p->blocks += p->blocks < LS_BLOCKS_WARM;
	/* they have just become so many */
	if (p->blocks == LS_BLOCKS_WARM && !(p->mean_noise > 0))
		pulse_learn_means(p);
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
	from->n++;
	from->x += from->last;
	from->y += m->step_s;
	from->xx += from->last * from->last;
	from->xy += from->last * m->step_s;
	from->yy += m->step_s * m->step_s;
	from->newest_s = m->mean_s;
}

double
ls_pulse_slope(const struct ls_pulse *p)
{
	const struct ls_pulse_from *f = &p->since;
	double xx = f->xx - f->x * f->x / f->n, xy = f->xy - f->x * f->y / f->n;
	double slope = xy / xx, rest = f->yy - f->y * f->y / f->n - slope * xy;
	double grown = f->y / f->n + slope * (f->last - f->x / f->n) - p->base.step_s;

	return f->n > 2 && xx > 0 && slope * f->last >= LS_HALF * grown &&
			slope * sqrt(xx) >=
				LS_PULSE_RAMP_SURE * sqrt(fmax(rest, 0) / (f->n - 2))
		? slope
		: 0;
}

/* A CUSUM of the means of blocks: where a few steps of each are long. Is that enough?
 */
static bool
pulse_sum_means(struct ls_pulse *p, const struct ls_pulse_means *m)
{
	double grown = pulse_grown_mean(p, m);

	p->c = fmax(0,
		p->c + ls_stats_clip(grown / p->mean_noise, LS_CLIP) - LS_PULSE_DRIFT);
	if (p->c == 0) {
		p->mean.steps = 0;
		return false;
	}
	pulse_gather(&p->mean, p, m);
	grown = p->mean.now.free_s - p->base.free_s;
	return p->c >= LS_PULSE_FINDING && p->mean.steps >= LS_PULSE_ROW * LS_BLOCK &&
		grown >= LS_LARGE * p->base.free_s &&
		p->mean.now.burst_s - p->base.burst_s >= LS_VISIBLE * p->base.free_s &&
		p->mean.now.wait_s - p->base.wait_s >= LS_KEPT * grown;
}

/* One more block of the kind that is waited for: slow ones, or once it is on, those
 * that are not. */
static void
pulse_count(struct ls_pulse *p, const struct ls_pulse_means *m)
{
	bool slow = pulse_is_slow(p, m), sum = !p->on && pulse_sum_means(p, m);

	if (!p->on && !slow)
		p->since.steps = 0;
	else if (slow)
		pulse_gather(&p->since, p, m);
	p->row = slow != p->on ? p->row + 1 : 0;
	if (p->row >= LS_PULSE_ROW) {
		p->on = !p->on;
		p->row = 0;
		p->c = 0;
		p->mean.steps = 0;
	} else if (sum && !slow) { /* else its medians will tell */
		p->on = true;
		p->row = 0;
		p->since = p->mean;
	}
}

bool
ls_pulse_step(struct ls_pulse *p, const struct ls_row *row,
	const struct ls_pulse_sample *s)
{
	struct ls_pulse_means m;
	double noise;

	if (!(s->duration_s > 0))
		return false;
	if (p->n == 0) {
		p->first_step = row->step;
		p->first_us = row->begin_us;
	}
	p->mean_times[p->n] = s->mean_s;
	p->free_times[p->n] = fmax(s->mean_s - s->own_s, LS_LARGE * s->mean_s);
	p->times[p->n++] = s->duration_s;
	p->spoilt |= s->found;
	p->explained_s = fmax(p->explained_s, s->explained_s);
	pulse_cells(p, row);
	if (!isnan(s->least_s)) {
		p->sum.least_s += s->least_s;
		p->least_n++;
	}
	if (p->n < LS_BLOCK)
		return false;
	m = pulse_block(p, &noise);
	if (p->blocks == LS_BLOCKS_WARM)
		p->spoilt |=
			p->explained_s > LS_HALF * fmax(m.mean_s - p->base.mean_s, 0);
	if (p->spoilt) {
		if (!p->on)
			p->row = 0;
	} else if (p->blocks < LS_BLOCKS_WARM) {
		p->means[p->blocks] = m.free_s;
		pulse_learn(p, &m, noise);
	} else {
		pulse_count(p, &m);
		if (!p->on && p->row == 0 && p->c < LS_HALF * LS_PULSE_FINDING)
			pulse_learn(p, &m, noise);
	}
	memset(&p->sum, 0, sizeof(p->sum));
	p->n = p->phase_n = p->least_n = 0;
	p->spoilt = false;
	p->explained_s = 0;
	return true;
}

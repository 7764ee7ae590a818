/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/pulse.h"
#include "collector/engine/residual/blame.h"

#include <math.h>
#include <string.h>

void
ls_pulse_fini(struct ls_pulse *p)
{
	ls_scales_fini(&p->scales);
	*p = (struct ls_pulse){ 0 };
}

static void
pulse_add(struct ls_pulse_means *to, const struct ls_pulse_means *v, double share)
{
	for (size_t k = 0; k < LS_PULSE_VALUES; k++)
		if (!isnan(v->v[k])) /* the least wait may be not known */
			to->v[k] += (v->v[k] - to->v[k]) * share;
}

/* One more step of the block. */
static void
pulse_sum(struct ls_pulse *p, const struct ls_row *row,
	const struct ls_blame_step *totals, double step_s)
{
	size_t stride = (row->cell_count + LS_PULSE_WORKERS - 1) / LS_PULSE_WORKERS;
	double *sum = p->sum.mean.v;

	if (p->sum.steps++ == 0) {
		p->sum.step = row->step;
		p->sum.t_us = row->begin_us;
	}
	sum[LS_PULSE_STEP] += fmin(totals->duration_s, LS_PULSE_CLIP * step_s);
	sum[LS_PULSE_MEAN] += fmin(totals->mean_s, LS_PULSE_CLIP * step_s);
	if (!isnan(totals->wait_min_s)) {
		sum[LS_PULSE_LEAST] += totals->wait_min_s;
		p->least_n++;
	}
	for (size_t i = 0; i < row->cell_count; i += stride) {
		const struct ls_cell *c = &row->cells[i];

		if (!c->present)
			continue;
		p->phase_n++;
		sum[LS_PULSE_WORK] += isnan(c->work) ? 0 : (double)c->work;
		for (size_t k = 0; k < LS_PHASE_COUNT; k++)
			sum[LS_PULSE_PHASE + k] +=
				isnan(c->phase_s[k]) ? 0 : (double)c->phase_s[k];
	}
}

/* A block ended: it is kept, and the oldest is not. */
static const struct ls_pulse_block *
pulse_keep(struct ls_pulse *p)
{
	struct ls_pulse_block *b = &p->block[p->blocks % LS_PULSE_BLOCKS];
	double *mean = p->sum.mean.v;

	if (p->blocks >= LS_PULSE_BLOCKS && p->since.steps == 0 && !b->spoilt) {
		p->before_n += p->before_n < LS_DETECT_WARM;
		pulse_add(&p->before, &b->mean, 1 / (double)p->before_n);
	}
	mean[LS_PULSE_STEP] /= p->sum.steps;
	mean[LS_PULSE_MEAN] /= p->sum.steps;
	mean[LS_PULSE_LEAST] =
		p->least_n > 0 ? mean[LS_PULSE_LEAST] / (double)p->least_n : NAN;
	for (size_t k = LS_PULSE_WORK; k < LS_PULSE_VALUES && p->phase_n > 0; k++)
		mean[k] /= (double)p->phase_n;
	*b = p->sum;
	p->blocks++;
	memset(&p->sum, 0, sizeof(p->sum));
	p->phase_n = p->least_n = 0;
	return b;
}

/* One more block since it became slow. */
static void
pulse_gather(struct ls_pulse_from *from, const struct ls_pulse_block *b)
{
	from->steps += b->steps;
	pulse_add(&from->now, &b->mean, b->steps / (double)from->steps);
	from->last = (double)b->step - (double)from->step;
	ls_stats_line_add(&from->line, from->last, b->mean.v[LS_PULSE_STEP]);
	from->newest_s = b->mean.v[LS_PULSE_MEAN];
}

/* It became slow: when, and what was it like before and since then? */
static void
pulse_begin(struct ls_pulse *p, double step_s)
{
	struct ls_onset o = ls_scales_began(&p->scales, 0);
	uint64_t first = p->blocks < LS_PULSE_BLOCKS ? 0 : p->blocks - LS_PULSE_BLOCKS,
		 k = p->blocks;
	/* in a short past, the window by which it is named */
	double back = o.known
		? -o.at
		: ldexp(ls_scales_unit(&p->scales), __builtin_ctz(p->scales.named[0]));
	/* a block that took half as much longer as now says nothing of what was usual */
	double slow = ls_scales_said(&p->scales, LS_SCALES_USUAL, 0) +
		LS_HALF * ls_scales_said(&p->scales, LS_SCALES_EXCESS, 0);
	const struct ls_pulse_block *b;
	double n = 0, within,
	       error = o.known ? fmax(o.at - o.early, o.late - o.at) : back;

	do
		back -= p->block[--k % LS_PULSE_BLOCKS].steps;
	while (k > first && back > 0);
	b = &p->block[k % LS_PULSE_BLOCKS];
	within = fmax(-back, 0); /* so many steps of this one were before */
	p->since = (struct ls_pulse_from){ .step = b->step + (uint64_t)within,
		.t_us = b->t_us + (int64_t)(within * step_s * 1e6),
		.uncertainty_steps = (uint32_t)ceil(error) };
	p->base = p->before;
	for (; first < k; first++) {
		b = &p->block[first % LS_PULSE_BLOCKS];
		if (!b->spoilt && log(b->mean.v[LS_PULSE_STEP] / p->first_s) < slow)
			pulse_add(&p->base, &b->mean, 1 / ++n);
	}
	if (n == 0 && p->before_n == 0) /* nothing better is known */
		p->base = p->block[(k > 0 ? k - 1 : k) % LS_PULSE_BLOCKS].mean;
	b = &p->block[k % LS_PULSE_BLOCKS];
	for (k += within > LS_HALF * fmin(b->steps, 2) && k + 1 < p->blocks;
		k < p->blocks; k++)
		pulse_gather(&p->since, &p->block[k % LS_PULSE_BLOCKS]);
}

/* Is so much growth of more work? */
static bool
pulse_is_work(const struct ls_pulse *p)
{
	const double *was = p->base.v, *is = p->since.now.v;
	double work = was[LS_PULSE_WORK] > 0 && is[LS_PULSE_WORK] > 0
		? is[LS_PULSE_WORK] / was[LS_PULSE_WORK] - 1
		: 0;

	return work > 0 &&
		work >= LS_EXPLAINS * (is[LS_PULSE_STEP] / was[LS_PULSE_STEP] - 1);
}

/* So many steps are waited for: who makes all of them longer is found meanwhile, unless the job is one worker. */
static double
pulse_wait(const struct ls_row *row, double step_s)
{
	return row->cell_count < 2
		? 0
		: fmin(fmax(LS_SCALES_PATIENCE_S / step_s, LS_ONSET_MIN),
			  LS_DETECT_LASTS);
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

void
ls_pulse_end(struct ls_pulse *p)
{
	p->on = false;
	p->since.steps = 0;
	if (p->scales.count > 0)
		ls_scales_clear(&p->scales, 0);
}

bool
ls_pulse_step(struct ls_pulse *p, const struct ls_row *row,
	const struct ls_blame_step *totals, double step_s, double patience_s,
	bool found, double explained_s)
{
	uint32_t sorted[1] = { 0 }, start[2] = { 0, 1 };
	struct ls_blame_room room = {
		.sorted = sorted, .start = start, .role_count = 1
	};
	struct ls_blame log_s = { .late_s = NAN };
	uint64_t units = p->scales.units;
	const struct ls_pulse_block *b;
	double usual_s;

	if (!(totals->duration_s > 0) || !(step_s > 0) ||
		ls_scales_reserve(&p->scales, 1) != 0)
		return false;
	if (!(p->first_s > 0))
		p->first_s = totals->duration_s;
	pulse_sum(p, row, totals, step_s);
	p->scales.alone = true;
	usual_s = p->first_s * exp(ls_scales_usual(&p->scales, 0));
	if (found || /* not by how long this step is: else the long ones alone would be left */
		explained_s > fmax(LS_HALF * (step_s - usual_s), LS_NOTHING * step_s))
		p->sum.spoilt = true;
	else
		log_s.late_s = log(totals->duration_s / p->first_s) * step_s;
	ls_scales_step(&p->scales, &log_s, 1, true, step_s, patience_s, &room);
	p->scales.seen_s += step_s * (double)(row->cell_count - 1);
	if (p->scales.units == units)
		return false;
	b = pulse_keep(p);
	if (p->scales.named[0] == 0)
		p->since.steps = 0;
	else if (p->since.steps == 0)
		pulse_begin(p, step_s);
	else
		pulse_gather(&p->since, b);
	p->on = p->since.steps > 0 && !pulse_is_work(p) &&
		(double)p->since.steps >= pulse_wait(row, step_s);
	return true;
}

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
	const struct ls_blame_step *totals, const struct ls_detect *d)
{
	size_t stride = (row->cell_count + LS_PULSE_WORKERS - 1) / LS_PULSE_WORKERS;
	double most_s = LS_PULSE_CLIP * d->step_s, *sum = p->sum.mean.v;

	if (p->sum.steps++ == 0) {
		p->sum.step = row->step;
		p->sum.t_us = row->begin_us;
	}
	sum[LS_PULSE_WHOLE] += fmin(totals->mean_s, most_s);
	sum[LS_PULSE_MEAN] += fmin(totals->mean_s - totals->found_s, most_s);
	sum[LS_PULSE_STEP] += fmin(totals->duration_s - totals->found_s, most_s);
	if (!isnan(totals->wait_min_s)) {
		sum[LS_PULSE_LEAST] += totals->wait_min_s;
		p->least_n++;
	}
	for (size_t i = 0; i < row->cell_count; i += stride) {
		const struct ls_cell *c = &row->cells[i];

		if (!c->present || (d->open > 0 && d->worker[i].found != 0))
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
	for (size_t k = LS_PULSE_WHOLE; k <= LS_PULSE_STEP; k++)
		mean[k] /= p->sum.steps;
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
	from->newest = b->mean;
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
	size_t just_n = 0;
	double just[LS_ONSET_MIN],
		n = 0, within,
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
		if (first + LS_ONSET_MIN >= k)
			just[just_n++] = b->mean.v[LS_PULSE_WHOLE];
		if (!b->spoilt && log(b->mean.v[LS_PULSE_STEP] / p->first_s) < slow)
			pulse_add(&p->base, &b->mean, 1 / ++n);
	}
	if (n == 0 && p->before_n == 0) /* nothing better is known */
		p->base = p->block[(k > 0 ? k - 1 : k) % LS_PULSE_BLOCKS].mean;
	p->since.was_s =
		just_n > 0 ? ls_stats_median(just, just_n) : p->base.v[LS_PULSE_WHOLE];
	b = &p->block[k % LS_PULSE_BLOCKS];
	p->since.of_late_s = b->mean.v[LS_PULSE_WHOLE];
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

/* Half of what it was named for, in seconds. */
static double
pulse_half(const struct ls_pulse *p)
{
	return LS_HALF * p->first_s *
		exp(ls_scales_said(&p->scales, LS_SCALES_USUAL, 0)) *
		expm1(ls_scales_said(&p->scales, LS_SCALES_EXCESS, 0));
}

/*
 * Has the job waited long enough? Whoever makes all steps longer is found meanwhile, unless the job is one worker. It waits from the onset on; from
 * the naming on, if two of those who are suspected or found explain half of the growth. And it is not told while half of the growth is gone.
 */
static bool
pulse_has_waited(const struct ls_pulse *p, const struct ls_row *row,
	const struct ls_detect *d, double half_s)
{
	double wait = fmin(fmax(LS_SCALES_PATIENCE_S / d->step_s, LS_ONSET_MIN),
		LS_DETECT_LASTS);
	/* the other suspects: the last of them is left out */
	bool suspected = d->worst[1].v > half_s;

	if (row->cell_count < 2)
		return true;
	return (double)(suspected ? p->since.named : p->since.steps) >= wait &&
		p->since.gone == 0;
}

/* One more block: for how long is half of the growth gone without who is found, and how long are whole steps while it is not? */
static void
pulse_follow(struct ls_pulse *p, const struct ls_pulse_block *b, bool found,
	double half_s)
{
	struct ls_pulse_from *since = &p->since;

	if (found && b->mean.v[LS_PULSE_STEP] - p->base.v[LS_PULSE_STEP] < half_s) {
		since->gone += b->steps;
		return;
	}
	since->gone = 0;
	since->of_late_s += (b->mean.v[LS_PULSE_WHOLE] - since->of_late_s) / LS_BLOCK;
}

/* on: it was told. */
static bool
pulse_is_over(const struct ls_pulse *p, bool on, double step_s, double half_s)
{
	if (p->scales.named[0] == 0)
		return true;
	if (on)
		return (double)p->since.gone >= ls_warm_steps(step_s);
	/* Whole steps are no longer than they were: a suspect who was left out is as fast as the others again, so these are the last to arrive. */
	return p->since.now.v[LS_PULSE_WHOLE] - p->since.was_s < LS_HALF * half_s;
}

/* Is it over only because somebody is found? Whole steps still take longer. */
static bool
pulse_is_explained(const struct ls_pulse *p, const struct ls_pulse_block *b,
	double half_s)
{
	return p->since.gone > 0 &&
		b->mean.v[LS_PULSE_WHOLE] - half_s >=
		fmax(p->since.was_s, p->since.of_late_s - 2 * half_s);
}

/* A block ended: what is it like since it became slow? */
static void
pulse_judge(struct ls_pulse *p, const struct ls_row *row, const struct ls_detect *d)
{
	const struct ls_pulse_block *b = pulse_keep(p);
	double half_s;
	bool on = p->on;

	p->on = p->explained = false;
	if (p->scales.named[0] != 0 && p->since.steps == 0)
		pulse_begin(p, d->step_s);
	else if (p->since.steps > 0)
		pulse_gather(&p->since, b);
	if (p->since.steps == 0)
		return;
	half_s = pulse_half(p);
	pulse_follow(p, b, d->open > 0, half_s);
	if (pulse_is_over(p, on, d->step_s, half_s)) {
		p->explained = pulse_is_explained(p, b, half_s);
		ls_pulse_end(p);
		return;
	}
	p->since.named += b->steps;
	p->on = !pulse_is_work(p) && (on || pulse_has_waited(p, row, d, half_s));
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
	const struct ls_blame_step *totals, const struct ls_detect *d,
	double patience_s, bool joined)
{
	uint32_t sorted[1] = { 0 }, start[2] = { 0, 1 };
	struct ls_blame_room room = {
		.sorted = sorted, .start = start, .role_count = 1
	};
	struct ls_blame log_s = { .late_s = NAN };
	uint64_t units = p->scales.units;
	/* once it is told, suspects count: one who is found later ends it (pulse_is_over) */
	double left_out_s = p->on	 ? totals->found_s
		: isnan(totals->alone_s) ? 0
					 : totals->alone_s,
	       lasted_s = totals->duration_s - left_out_s;

	if (!(lasted_s > 0) || !(d->step_s > 0) ||
		ls_scales_reserve(&p->scales, 1) != 0)
		return false;
	if (!(p->first_s > 0))
		p->first_s = lasted_s;
	pulse_sum(p, row, totals, d);
	p->scales.alone = true;
	if (joined || (d->open > 0 && isnan(totals->alone_s)))
		p->sum.spoilt = true;
	else
		log_s.late_s = log(lasted_s / p->first_s) * d->step_s;
	ls_scales_step(&p->scales, &log_s, 1, true, d->step_s, patience_s, &room);
	p->scales.seen_s += d->step_s * (double)(row->cell_count - 1);
	if (p->scales.units == units)
		return false;
	pulse_judge(p, row, d);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/detect_base.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By what is known so far. */
static void
detect_reckon(struct ls_detect_usual *u)
{
	double copy[LS_DETECT_WARM];
	size_t known = 0;

	LS_EACH (const float, v, u->first, u->n)
		if (!isnan(*v))
			copy[known++] = (double)*v;
	u->base = ls_stats_median(copy, known);
	u->sigma = LS_MAD_TO_SIGMA * ls_stats_mad(copy, known, u->base);
}

bool
ls_detect_usual(struct ls_detect_usual *u, double v)
{
	if (u->n == LS_DETECT_WARM)
		return true;
	u->first[u->n++] = (float)v;
	if (u->n == LS_DETECT_WARM)
		detect_reckon(u);
	return false;
}

/* Which residual can be trusted: chosen when the first workers have learned their
 * baselines. */
static void
detect_choose_mode(struct ls_detect *d, bool clocks_ok)
{
	double stagger =
		0; /* largest systematic offset of an exit, ratio to the step */
	bool enters = false;

	LS_EACH (const struct ls_detect_worker, w, d->worker, d->count) {
		struct ls_detect_warm *learned = w->learning;

		if (learned == NULL)
			continue;
		detect_reckon(&learned->exit); /* perhaps of fewer steps than all */
		enters |= !isnan(learned->exit.base);
		/* NaN is not taken */
		stagger = fmax(stagger, fabs(learned->exit.base) / d->step_s);
	}
	d->mode = enters && clocks_ok && stagger <= LS_FEW ? LS_MODE_LATENESS
							   : LS_MODE_WAIT;
	d->ready = true;
}

/* As a baseline: what never shows counts for nothing. */
static double
detect_known(double base_s)
{
	return isnan(base_s) ? 0 : base_s;
}

/* Steps that are learned from. Where scales asks nobody a second time, no fewer. */
static uint32_t
detect_warm_steps(const struct ls_detect *d)
{
	return d->scales == NULL ? LS_DETECT_WARM : ls_warm_steps(d->step_s);
}

static void
detect_finish_warm(struct ls_detect *d, struct ls_detect_worker *w)
{
	struct ls_detect_usual *used =
		d->mode == LS_MODE_LATENESS ? &w->learning->late : &w->learning->wait;

	/* of long steps fewer are learned from */
	detect_reckon(used);
	detect_reckon(&w->learning->own);
	detect_reckon(&w->learning->wait);
	w->base_s = detect_known(used->base);
	w->base_own_s = detect_known(w->learning->own.base);
	w->base_wait_s = detect_known(w->learning->wait.base);
	w->sigma = fmax(used->sigma / d->step_s, LS_DETECT_SIGMA_FLOOR);
	free(w->learning);
	w->learning = NULL;
	w->fresh = true;
}

/* Ratio to the step time from which a worker's own baseline is suspicious; less than
 * the fixed one if all are alike. */
static double
detect_born_ratio(struct ls_detect *d)
{
	size_t known = 0;
	double centre;

	LS_EACH (const struct ls_detect_worker, w, d->worker, d->count)
		if (w->warm == LS_DETECT_WARM)
			d->scratch[known++] = w->base_own_s;
	if (known < LS_SIXTEENTH)
		return LS_LARGE;
	centre = ls_stats_median(d->scratch, known);
	return fmin(LS_LARGE,
		fmax(2 * LS_LEAST,
			LS_FAR * LS_MAD_TO_SIGMA *
				ls_stats_mad(d->scratch, known, centre) / d->step_s));
}

static bool
detect_is_born_slow(const struct ls_detect *d, const struct ls_detect_worker *w,
	double ratio)
{
	return w->warm == LS_DETECT_WARM && w->base_own_s > ratio * d->step_s &&
		w->base_wait_s > ratio * d->step_s;
}

/* What is the worker's own work is no part of its baselines. */
static void
detect_take_out(struct ls_detect_worker *w)
{
	double born = fmin(w->base_own_s, w->base_wait_s);

	w->base_s -= fmin(born, fmax(w->base_s, 0));
	w->base_own_s -= born;
	w->base_wait_s -= born;
}

/* Takes what is theirs by their own work out of the baselines, just learned, of workers
 * slow from the start. */
static void
detect_born_slow(struct ls_detect *d)
{
	double ratio = detect_born_ratio(d);
	size_t slow = 0;
	bool structure;

	LS_EACH (const struct ls_detect_worker, w, d->worker, d->count)
		slow += detect_is_born_slow(d, w, ratio);
	structure = (double)slow > LS_QUARTER * (double)d->count ||
		(slow >= LS_MANY && slow * LS_SIXTEENTH >= d->count);
	LS_EACH (struct ls_detect_worker, w, d->worker, d->count) {
		if (w->fresh && !structure && detect_is_born_slow(d, w, ratio))
			detect_take_out(w);
		w->fresh = false;
	}
}

double
ls_detect_base_reset(struct ls_detect_worker *w, bool born, double usual_s)
{
	double own_s = born ? fmin(w->base_own_s, w->base_wait_s)
			    : w->base_own_s - w->first_own_s,
	       taken_s = fmax(fmin(w->base_s - usual_s, own_s), 0);

	w->base_s -= taken_s;
	w->base_own_s -= taken_s;
	w->base_wait_s -= taken_s;
	w->shift_s = 0;
	return taken_s;
}

bool
ls_detect_base_warm(struct ls_detect *d, struct ls_detect_worker *w,
	const struct ls_blame *r)
{
	if (w->warm < LS_DETECT_WARM) {
		if (w->learning == NULL)
			w->learning = calloc(1, sizeof(*w->learning));
		if (w->learning == NULL)
			return true; /* no memory: it learns from the next step on */
		ls_detect_usual(&w->learning->late, r->late_s);
		ls_detect_usual(&w->learning->wait, r->wait_s);
		ls_detect_usual(&w->learning->own, r->own_s);
		ls_detect_usual(&w->learning->exit, r->exit_s);
		if (++w->warm >= detect_warm_steps(d))
			w->warm = LS_DETECT_WARM;
		if (w->warm == LS_DETECT_WARM && d->ready)
			detect_finish_warm(d, w); /* it joined later than the others */
		return true;
	}
	return false;
}

void
ls_detect_base_learn(struct ls_detect *d, struct ls_detect_worker *w,
	const struct ls_blame *r, double residual_s, double x, bool calm)
{
	double limit = fmin(LS_GROSS, LS_HALF * LS_SIGMAS * w->sigma) * d->step_s,
	       steps;

	if (!calm) {
		w->shift_s +=
			ls_stats_clip(residual_s - w->base_s - w->shift_s, limit) /
			(LS_DETECT_WARM + w->learned);
		return;
	}
	w->learned += w->learned < LS_DETECT_ADAPT - LS_DETECT_WARM;
	steps = LS_DETECT_WARM + w->learned;
	if (w->shift_s != 0 && d->calm_steps >= LS_DETECT_WARM / 2) {
		w->base_s += w->shift_s > 0 && w->recent_s > -w->shift_s * LS_HALF
			? w->shift_s
			: 0;
		w->shift_s = 0;
	}
	w->base_s += ls_stats_clip(residual_s - w->base_s, limit) / steps;
	if (!isnan(r->own_s))
		w->base_own_s += ls_stats_clip(r->own_s - w->base_own_s, limit) / steps;
	if (steps < LS_DETECT_ADAPT)
		w->first_own_s = w->base_own_s;
	if (!isnan(r->wait_s))
		w->base_wait_s +=
			ls_stats_clip(r->wait_s - w->base_wait_s, limit) / steps;
	w->sigma += (LS_MEAN_ABS_TO_SIGMA * fmin(fabs(x), LS_SIGMAS * w->sigma) -
			    w->sigma) /
		LS_DETECT_ADAPT;
	w->sigma = fmax(w->sigma, LS_DETECT_SIGMA_FLOOR);
	w->block_sum += ls_stats_clip(x, LS_SIGMAS * w->sigma);
	if (++w->block_n == LS_DETECT_BASE_BLOCK) {
		double mean = w->block_sum / LS_DETECT_BASE_BLOCK / w->sigma;

		d->tau_sum +=
			fmin(mean * mean * LS_DETECT_BASE_BLOCK, LS_SIGMAS * LS_TAU);
		d->tau_count++;
		w->block_sum = 0;
		w->block_n = 0;
	}
}

double
ls_detect_base_inflation(struct ls_detect *d)
{
	double tau;

	if (d->tau_count >= LS_MEMORY / LS_DETECT_BASE_BLOCK) {
		d->tau_sum /= 2;
		d->tau_count /= 2;
	}
	tau = (d->tau_sum + LS_TAU * LS_PRIOR) / (d->tau_count + LS_PRIOR);

	return sqrt(fmax(tau, 1));
}

void
ls_detect_base_step(struct ls_detect *d, size_t n, bool clocks_ok, bool fresh)
{
	if (!d->ready && d->judged >= detect_warm_steps(d) + LS_DETECT_SKIP) {
		detect_choose_mode(d, clocks_ok);
		LS_EACH (struct ls_detect_worker, w, d->worker, n)
			if (w->warm == LS_DETECT_WARM)
				detect_finish_warm(d, w);
		fresh = true;
	}
	if (fresh)
		detect_born_slow(d);
}

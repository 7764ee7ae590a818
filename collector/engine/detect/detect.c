/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/detect_base.h"
#include "collector/engine/detect/detect_channel.h"
#include "collector/engine/detect/scales.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/err.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
ls_detect_fini(struct ls_detect *d)
{
	LS_EACH (const struct ls_detect_worker, w, d->worker, d->count)
		free(w->learning);
	free(d->worker);
	free(d->scratch);
	free(d->near);
	free(d->net);
	memset(d, 0, sizeof(*d));
}

int
ls_detect_reserve(struct ls_detect *d, size_t n)
{
	size_t capacity = n > 2 * d->capacity ? n : 2 * d->capacity;

	if (n > d->capacity) {
		if (ls_mem_resize((void **)&d->worker, capacity, sizeof(*d->worker)) !=
				0 ||
			ls_mem_resize((void **)&d->scratch, capacity,
				sizeof(*d->scratch)) != 0 ||
			ls_mem_resize((void **)&d->near, capacity, sizeof(*d->near)) !=
				0)
			return -ENOMEM;
		d->capacity = capacity;
	}
	if (ls_detect_reserve_slices(d, 1) != 0)
		return -ENOMEM;
	if (n > d->count) {
		memset(&d->worker[d->count], 0, (n - d->count) * sizeof(*d->worker));
		memset(&d->near[d->count], 0, (n - d->count) * sizeof(*d->near));
		d->count = n;
	}
	return 0;
}

int
ls_detect_reserve_slices(struct ls_detect *d, size_t slices)
{
	return ls_mem_widen((void **)&d->net, &d->net_count,
		1 + (slices > 1 ? slices : 0), sizeof(*d->net));
}

void
ls_detect_reset_worker(struct ls_detect *d, size_t slot)
{
	LS_EACH (struct ls_detect_net, net, d->net, d->net_count)
		if (net->names == LS_NET_HOST && net->slot == slot)
			net->names = LS_NET_ALL;
	LS_ASSERT(slot < d->count);
	d->open -= (size_t)__builtin_popcount(ls_detect_found(d->worker[slot].channel));
	free(d->worker[slot].learning);
	memset(&d->worker[slot], 0, sizeof(d->worker[slot]));
}

void
ls_detect_reset(struct ls_detect *d)
{
	for (size_t i = 0; i < d->count; i++) {
		ls_detect_reset_worker(d, i);
		d->near[i] = 0;
	}
	memset(d->net, 0, d->net_count * sizeof(*d->net));
	memset((char *)d + offsetof(struct ls_detect, judged), 0,
		sizeof(*d) - offsetof(struct ls_detect, judged));
}

/* Keeps the two suspected workers of the greatest mean excess: this one after the
 * others. */
static void
detect_worst(struct ls_detect *d, size_t slot, struct ls_stats_best worst[2])
{
	const struct ls_detect_channel *ch =
		&d->worker[slot].channel[LS_DETECT_CHRONIC];

	d->near[slot] = (float)ls_detect_nearness(&d->worker[slot]);
	if (ch->level == LS_LEVEL_QUIET || ch->ep.steps == 0)
		return;
	ls_stats_best(worst, ch->ep.excess_s / (double)ch->ep.steps, slot);
}

/* Does something besides the residual itself say that this worker holds the others up?
 */
static bool
detect_evidence(const struct ls_detect *d, size_t slot, const struct ls_episode *ep)
{
	double n = (double)ep->steps, grown = 0, best;
	double other_s = d->worst[d->worst[0].at == slot].v;

	/* The step time grew with it, and neither communication nor a worse worker
	 * explains that. */
	if (!isnan(ep->before_s) && other_s < ep->excess_s / n &&
		d->net[0].channel[LS_DETECT_CHRONIC].c < LS_HALF * LS_DETECT_FINDING)
		grown = fmin(d->step_s - ep->before_s, ep->excess_s / n);
	/* Its own work grew and it waits less than before (in wait mode that is the
	 * residual itself). */
	best = fmax(grown, fmin(ep->own_s, ep->wait_s) / n);
	return best >= LS_SHARED * ep->excess_s / n;
}

/* Follows for how many steps up to this one the excess was steady; runs that scatter
 * begin anew. */
static void
detect_steady(struct ls_detect_worker *w, double excess_s)
{
	double mean_s;

	if (w->channel[LS_DETECT_CHRONIC].ep.steps <= 1)
		w->steady_s = w->steady_sq = w->steady = 0;
	w->steady++;
	w->steady_s += excess_s;
	w->steady_sq += excess_s * excess_s;
	mean_s = w->steady_s / w->steady;
	if (w->steady >= LS_PRIOR &&
		w->steady_sq / w->steady - mean_s * mean_s >
			LS_STEADY * LS_STEADY * mean_s * mean_s)
		w->steady_s = w->steady_sq = w->steady = 0;
}

/*
 * Is it named by scales, slow for long enough, and still slow? If scales is not asked, the mean age of its excess counts, too (of an even shift: half
 * its length), for noise may have begun the episode long before. Where steps are long and scales names it, a minute is enough.
 */
static bool
detect_is_slow(const struct ls_detect *d, size_t slot)
{
	const struct ls_detect_worker *w = &d->worker[slot];
	const struct ls_detect_channel *ch = &w->channel[LS_DETECT_CHRONIC];
	double ratio = ls_detect_excess_ratio(d, &ch->ep), left, c = LS_DETECT_FINDING;
	uint32_t lasts = ratio >= LS_GROSS ? LS_DETECT_LASTS_STEADY : LS_DETECT_LASTS;
	bool old = 2 * ch->ep.age_s >= lasts * ch->ep.excess_s;

	left = fmax(LS_HALF * ratio, LS_LEAST);
	if (w->said) {
		left = LS_HALF * ls_scales_said(d->scales, LS_SCALES_EXCESS, slot);
		c *= LS_HALF;
		lasts = (uint32_t)fmin(lasts, LS_SCALES_PATIENCE_S / d->step_s);
	} else if (d->asked) {
		return false;
	}
	return ch->c >= c &&
		(w->steady >= LS_DETECT_LASTS_STEADY ||
			(ch->ep.steps >= lasts && (w->said || old))) &&
		w->recent_s >= left * d->step_s && ratio >= fmin(left, LS_LEAST);
}

/* Since when was it slow? The CUSUM knows it to the step, but noise may have begun the episode long before, and of a drift it sees only the end. So
 * it must agree with the windows of scales. */
static void
detect_began(const struct ls_detect *d, size_t slot, struct ls_episode *ep)
{
	const struct ls_detect_worker *w = &d->worker[slot];
	bool named = w->said && d->scales->named[slot] != 0,
	     followed = named && w->followed,
	     born = named && (d->scales->named[slot] & LS_SCALES_BORN) != 0 &&
		(followed ||
			ep->start_step <= w->first_step + LS_DETECT_SKIP +
					ls_warm_steps(d->step_s));
	double begin = (double)ep->start_step, now = (double)ep->last_step;
	/* windows have steps that were judged: of each k-th, k times as many */
	double each = fmax((now - begin + 1) / (double)ep->steps, 1);
	struct ls_onset o = { 0 };

	if (named && !born)
		o = ls_scales_began(d->scales, slot);
	ep->gradual = o.gradual;
	if (o.known && (begin < now + each * o.early || begin > now + each * o.late))
		begin = now + each * o.at;
	begin = fmax(born ? 0 : begin, (double)w->first_step) - (double)ep->start_step;
	if (begin > 0) {
		ep->start_step += (uint64_t)begin;
		ep->start_us += (int64_t)(begin * d->step_s * 1e6);
	}
	ep->lasted = (uint64_t)fmax(-begin, 0);
	if (ep->gradual || followed) /* that was not before it */
		ep->before_s = NAN;
}

/* One step of the CUSUM of a worker: z in long-run sigmas, the residual's excess in
 * seconds. */
static void
detect_shift(struct ls_detect *d, size_t slot, const struct ls_blame *r, double z,
	double excess_s, double suspect, uint64_t step, int64_t t_us)
{
	struct ls_detect_worker *w = &d->worker[slot];
	struct ls_detect_channel *ch = &w->channel[LS_DETECT_CHRONIC];
	struct ls_episode again;

	/* what waits for its steps has said enough: if it ends meanwhile, it is not
	 * found afterwards */
	ls_detect_accumulate(d, ch, z,
		ch->level == LS_LEVEL_FINDING ? LS_DETECT_CAP : LS_DETECT_FINDING,
		excess_s, step, t_us);
	if (ch->c > 0) {
		ch->ep.own_s += isnan(r->own_s) ? 0 : r->own_s - w->base_own_s;
		ch->ep.wait_s += isnan(r->wait_s) ? 0 : r->wait_s - w->base_wait_s;
		detect_steady(w, excess_s);
	}
	if (w->said && ch->level == LS_LEVEL_FINDING) /* scales says when it is over */
		ch->c = fmax(ch->c, suspect);
	if (ls_detect_relax(d, ch, suspect, LS_DETECT_CLEAR_STEPS) &&
		detect_is_slow(d, slot) &&
		ch->ep.excess_s >= LS_DETECT_LEAST_S * (double)ch->ep.steps &&
		detect_evidence(d, slot, &ch->ep)) {
		ls_detect_set_level(d, ch, LS_LEVEL_FINDING);
		detect_began(d, slot, &ch->ep);
	} else if (w->said && ch->level == LS_LEVEL_FINDING && !ch->ep.gradual &&
		(ch->ep.steps & (ch->ep.steps - 1)) == 0) {
		/* twice as many steps as at the last look: do they show a drift that began earlier? */
		again = ch->ep;
		detect_began(d, slot, &again);
		if (again.gradual &&
			again.start_step - again.lasted <=
				ch->ep.start_step - ch->ep.lasted)
			ch->ep = again;
	}
}

/* What all workers of a step are measured by, as it was before the step: their order
 * must not matter. */
struct detect_before {
	double inflation;
	double suspect; /* C from which one is suspected */
	bool calm; /* nothing was found */
	bool teaches; /* the step is not in the baselines yet */
};

/*
 * C from which a worker is suspected. Noise alone holds a CUSUM with drift k above h in
 * a share exp(-2 k h) of the steps (Wald's identity, for the walk that stops at zero),
 * so from here on it is less than one worker of the job.
 */
static double
detect_suspect(const struct ls_detect *d)
{
	return fmin(fmax(LS_DETECT_SUSPECT,
			    log((double)d->count) / (2 * LS_DETECT_ALLOWANCE)),
		LS_DETECT_FINDING);
}

/* Scales names a worker: its reference is what was usual of it then, and its CUSUM has
 * said enough. */
static void
detect_say(struct ls_detect *d, size_t slot)
{
	struct ls_detect_worker *w = &d->worker[slot];
	struct ls_detect_channel *ch = &w->channel[LS_DETECT_CHRONIC];
	double taken_s =
		ls_detect_base_reset(w, (d->scales->named[slot] & LS_SCALES_BORN) != 0,
			ls_scales_said(d->scales, LS_SCALES_USUAL, slot) * d->step_s);

	w->followed = taken_s >
		LS_HALF * d->step_s * ls_scales_said(d->scales, LS_SCALES_EXCESS, slot);
	ch->c = fmax(ch->c, LS_DETECT_FINDING);
	if (ch->level == LS_LEVEL_QUIET) /* what it has was noise */
		ch->ep = (struct ls_episode){ 0 };
}

/* The CUSUM of a worker, and how its residual changed; its baselines follow only
 * while it is no suspect. */
static void
detect_shifts(struct ls_detect *d, size_t slot, const struct ls_blame *r,
	const struct detect_before *before, uint64_t step, int64_t t_us,
	size_t *changes)
{
	struct ls_detect_worker *w = &d->worker[slot];
	double residual_s = d->mode == LS_MODE_LATENESS ? r->late_s : r->wait_s;
	double excess_s, x, z, sigma, allowance = LS_DETECT_ALLOWANCE;
	bool had = w->has_last_x,
	     said = d->scales != NULL && d->scales->named[slot] != 0;

	w->has_last_x = !isnan(residual_s);
	if (!w->has_last_x)
		return;
	if (said && !w->said)
		detect_say(d, slot);
	w->said = said;
	excess_s = residual_s - w->base_s - fmax(w->shift_s, 0);
	x = excess_s / d->step_s;
	if (had)
		d->scratch[(*changes)++] = fabs(x - w->last_x);
	w->last_x = x;
	/* over a block, but no longer than a worker that scales names must be slow */
	w->recent_s += (excess_s - w->recent_s) /
		fmin(LS_BLOCK, fmax(LS_SCALES_PATIENCE_S / d->step_s, 1));
	sigma = fmax(w->sigma, d->spread) * before->inflation;
	if (said) /* half of a shift that is known */
		allowance = fmin(allowance,
			ls_scales_said(d->scales, LS_SCALES_EXCESS, slot) / sigma *
				LS_HALF);
	z = ls_stats_clip(x / sigma, LS_SIGMAS);
	detect_shift(d, slot, r, z - allowance, excess_s, before->suspect, step, t_us);
	if (before->teaches && w->channel[LS_DETECT_CHRONIC].c < LS_DETECT_SUSPECT)
		ls_detect_base_learn(d, w, r, residual_s, x, before->calm);
}

/* Step times of late: their median, and a longer one for "before it began". */
static void
detect_step_time(struct ls_detect *d, double duration_s)
{
	double copy[LS_DETECT_BEFORE];
	size_t n,
		m = d->judged < LS_DETECT_BEFORE ? (size_t)d->judged : LS_DETECT_BEFORE;

	memcpy(copy, d->slow, m * sizeof(*copy));
	d->before_s = m >= LS_DETECT_WARM / 2 ? ls_stats_median(copy, m) : NAN;
	d->slow[d->judged++ % LS_DETECT_BEFORE] = duration_s;
	for (n = 0; n < LS_DETECT_WARM && n < d->judged; n++)
		copy[n] = d->slow[(d->judged - 1 - n) % LS_DETECT_BEFORE];
	d->step_s = ls_stats_median(copy, n);
}

/*
 * Follows how much residuals change from one step to the next, by the median worker: a
 * culprit, or a slow slice, changes once; work that varies changes all the time.
 * scratch[0..n-1] are those changes.
 */
static void
detect_spread(struct ls_detect *d, size_t n)
{
	if (n < LS_PEERS)
		return;
	d->spread += (LS_MAD_TO_SIGMA * ls_stats_median(d->scratch, n) / sqrt(2) -
			     d->spread) /
		LS_BLOCK;
}

/*
 * One step of a worker that the others waited for by alone_s. Where others stall less
 * than usual, its stalls say more; where there are thousands, more are needed.
 */
static void
detect_stalls(struct ls_detect *d, struct ls_detect_worker *w, double alone_s,
	uint64_t step, int64_t t_us)
{
	struct ls_detect_channel *ch = &w->channel[LS_DETECT_STALLS];
	struct ls_detect_stalls stalls = {
		LS_DETECT_STALL_GAP * d->step_s, LS_DETECT_STALL_SAYS,
		LS_DETECT_STALL_FINDING + log(fmax((double)d->count / LS_SIXTEENTH, 1))
	};
	double others;

	if (alone_s >= stalls.least_s) {
		others = (1 + fmax(d->stall_hits - (double)ch->ep.hits, 0)) /
			(1 / LS_DETECT_STALL_RATE + d->stall_steps);
		stalls.says -=
			log(fmin(fmax(others / LS_DETECT_STALL_RATE, LS_QUARTER), 1));
		d->stall_hits++;
	}
	ls_detect_stall(d, ch, &stalls, alone_s, step, t_us);
}

void
ls_detect_step(struct ls_detect *d, uint64_t step, int64_t t_us, bool clocks_ok,
	const struct ls_blame *residual, size_t n, struct ls_blame_step *totals)
{
	struct ls_stats_best worst[2] = { { 0, SIZE_MAX }, { 0, SIZE_MAX } };
	struct detect_before before;
	size_t changes = 0;
	bool late = false;

	LS_ASSERT(n <= d->count);
	if (!(totals->duration_s > 0))
		return;
	detect_step_time(d, totals->duration_s);
	if (d->judged <= LS_DETECT_SKIP) {
		if (!d->ready) /* else it is from before a restart */
			d->first_step = step;
		return;
	}
	ls_detect_nets(d, step, t_us, residual, n, totals);
	before = (struct detect_before){ .inflation = ls_detect_base_inflation(d),
		.suspect = detect_suspect(d),
		.calm = d->open == 0,
		.teaches = step > d->taught_step };
	d->taught_step = before.teaches ? step : d->taught_step;
	for (size_t i = 0; i < n; i++) {
		struct ls_detect_worker *w = &d->worker[i];
		double alone_s;

		w->was = w->found;
		if (isnan(residual[i].own_s)) {
			detect_worst(d, i, worst);
			/* not there, or nobody to compare with: never "fast" */
			continue;
		}
		alone_s = totals->last == i &&
				residual[i].own_s >= LS_HALF * totals->gap_s
			? totals->gap_s
			: 0;
		if (d->ready && (alone_s > 0 || ls_detect_stalls(w)))
			detect_stalls(d, w, alone_s, step, t_us);
		if (w->warm == 0) /* with the job, or later */
			w->first_step = d->ready ? step : d->first_step;
		if (!ls_detect_base_warm(d, w, &residual[i]))
			detect_shifts(d, i, &residual[i], &before, step, t_us,
				&changes);
		late |= w->fresh;
		w->found = (uint8_t)ls_detect_found(w->channel);
		detect_worst(d, i, worst);
	}
	memcpy(d->worst, worst, sizeof(worst)); /* for the next step */
	d->calm_steps = d->open == 0 ? d->calm_steps + 1 : 0;
	if (d->stall_steps >= LS_MEMORY) {
		d->stall_steps /= 2;
		d->stall_hits /= 2;
	}
	d->stall_steps += d->ready ? (double)totals->used : 0;
	detect_spread(d, changes); /* for the next step */
	ls_detect_base_step(d, n, clocks_ok, late);
}

/* When a worker that is there came, on a line where later is more; NaN: not known. */
static double
detect_arrival(const struct ls_detect *d, const struct ls_cell *c)
{
	bool late = d->mode == LS_MODE_LATENESS;

	if (late ? !c->has_enter : !c->has_wait)
		return NAN;
	return late ? (double)c->enter_us * 1e-6 : -(double)c->wait_s;
}

void
ls_detect_costs(const struct ls_detect *d, const struct ls_row *row,
	struct ls_blame_step *totals)
{
	const struct ls_stats_best none = { -INFINITY, SIZE_MAX };
	struct ls_stats_best last[2] = { none, none }, suspect[2] = { none, none };
	double healthy = -INFINITY, quiet = -INFINITY, others;
	size_t slow = 0, all = 0;
	bool known = false;

	totals->alone_s = NAN;
	LS_CELLS (row, c) {
		size_t i = (size_t)(c - row->cells);
		double t = detect_arrival(d, c); /* NaN is not taken */
		bool found = d->near[i] > 0 && d->worker[i].found != 0,
		     named = d->scales != NULL && d->scales->named[i] != 0;

		ls_stats_best(last, t, i);
		all++;
		known |= found || named;
		slow += found || named || d->near[i] > 0;
		if (!found)
			healthy = fmax(healthy, t);
		if (!found && !named && d->near[i] > 0)
			ls_stats_best(suspect, t, i);
		else if (!found && !named)
			quiet = fmax(quiet, t);
	}
	if (last[1].at == SIZE_MAX)
		return;
	totals->costs = last[0].at;
	if (!(healthy > -INFINITY)) /* all are found: only the last is left out */
		healthy = last[1].v;
	/* if the last is not found, it costs until the next one */
	totals->costs_s = last[0].v - (healthy < last[0].v ? healthy : last[1].v);
	totals->found_s = last[0].v - healthy;
	/* fewer than half are judged by the others */
	others = 2 * slow < all ? quiet : fmax(quiet, suspect[known ? 0 : 1].v);
	if (d->ready)
		totals->alone_s = last[0].v - (others > -INFINITY ? others : healthy);
}

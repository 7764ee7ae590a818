/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect.h"
#include "collector/engine/stats.h"
#include "proto/base/err.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chronic channel. */
#define DETECT_CLIP 3.0           /* one step's vote, in long-run sigmas */
#define DETECT_MIN_RATIO 0.01     /* of the step time; 2 % of own work is to be found */
#define DETECT_EVIDENCE 0.35      /* share of the excess that evidence must explain */
#define DETECT_SIGMA_FLOOR 0.003  /* ratio to the step time */
#define DETECT_ADAPT 512.0        /* steps over which a healthy baseline follows */
#define DETECT_BLOCK 32u          /* steps of a block mean */
#define DETECT_TAU_PRIOR 3.0      /* variance of block means over that of white noise, at first, */
#define DETECT_TAU_WEIGHT 8.0     /* with the weight of so many blocks */
#define DETECT_TAU_BLOCK_MAX 12.0 /* one block says no more than this */
#define DETECT_TAU_MEMORY 1024.0  /* blocks after which old ones fade */
#define DETECT_STAGGER 0.20       /* exits further apart than this are no common event */
/* Workers slow from the first step: what their own work explains is not taken for their baseline. */
#define DETECT_BORN_OWN 0.12
#define DETECT_BORN_WAIT 0.10
#define DETECT_BORN_SHARE 4u      /* more than one in so many: a structure, not stragglers */
/* Stalls: log likelihood ratios of 1 in 50 against 1 in 500 steps. */
#define DETECT_STALL_GAP 0.75
#define DETECT_STALL_OWN 0.5
#define DETECT_STALL_HIT 2.3
#define DETECT_STALL_MISS 0.018
#define DETECT_STALL_FINDING 9.0
#define DETECT_STALL_PERIODIC_CV 0.15
#define DETECT_STALL_QUIET_STEPS 150u
/* Communication. */
#define DETECT_COMM_DRIFT 1.5
#define DETECT_COMM_FINDING 30.0
#define DETECT_COMM_CAP 60.0
#define DETECT_COMM_SIGMA 0.05    /* floor, ratio to the step time */
#define DETECT_COMM_SHARE 0.6     /* of the step's growth; else everything got slower */
#define DETECT_COMM_STALL 4.0     /* steps, and at least so many seconds: TCP waits 0.2 before it sends again */
#define DETECT_COMM_STALL_S 0.15
#define DETECT_COMM_YIELD 0.5     /* a suspect of so much of the excess explains it: it is slow inside, too */

/* How a worker's shift is waited for: quickly for a large one, patiently for a faint one. */
static const struct detect_pace {
	double drift;       /* taken off each step; half of the least shift, in sigmas */
	double cap;         /* bounds the time to clear */
	double floor;       /* an episode begins above it */
	uint64_t min_steps; /* of an episode, before it is a finding */
} detect_paces[] = {
	[LS_DETECT_CHRONIC] = {0.55, LS_DETECT_CAP, 0, 20},
	[LS_DETECT_FAINT] = {0.2, 36, 3, 100},
};

void
ls_detect_fini(struct ls_detect *d)
{
	free(d->worker);
	free(d->scratch);
	memset(d, 0, sizeof(*d));
}

int
ls_detect_reserve(struct ls_detect *d, size_t n)
{
	struct ls_detect_worker *w;
	double *scratch;
	size_t capacity = d->capacity == 0 ? 8 : d->capacity;

	if (n > d->capacity) {
		while (capacity < n)
			capacity *= 2;
		w = realloc(d->worker, capacity * sizeof(*w));
		if (w == NULL)
			return -ENOMEM;
		d->worker = w;
		scratch = realloc(d->scratch, capacity * sizeof(*scratch));
		if (scratch == NULL)
			return -ENOMEM;
		d->scratch = scratch;
		d->capacity = capacity;
	}
	if (n > d->count) {
		memset(&d->worker[d->count], 0, (n - d->count) * sizeof(*d->worker));
		d->count = n;
	}
	return 0;
}

void
ls_detect_reset_worker(struct ls_detect *d, size_t slot)
{
	LS_ASSERT(slot < d->count);
	for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
		d->open -= d->worker[slot].channel[k].level == LS_LEVEL_FINDING;
	memset(&d->worker[slot], 0, sizeof(d->worker[slot]));
}

double
ls_detect_excess_ratio(const struct ls_detect *d, const struct ls_episode *ep)
{
	if (ep->steps == 0 || !(d->step_s > 0))
		return 0;
	return ep->excess_s / (double)ep->steps / d->step_s;
}

/* The one place where a level changes. */
static void
detect_set_level(struct ls_detect *d, struct ls_detect_channel *ch, enum ls_detect_level to)
{
	if (ch->level == to)
		return;
	LS_ASSERT(ch->level != LS_LEVEL_FINDING || to == LS_LEVEL_QUIET);
	if (ch->level == LS_LEVEL_FINDING)
		d->open--;
	if (to == LS_LEVEL_FINDING)
		d->open++;
	ch->level = to;
	ch->calm = 0;
}

/* Adds to the statistic and keeps the episode: it begins when C leaves zero and ends at zero. */
static void
detect_accumulate(struct ls_detect *d, struct ls_detect_channel *ch, double add, double cap,
	double floor_nats, uint64_t step, int64_t t_us)
{
	ch->c = fmax(0, fmin(ch->c + add, cap));
	if (ch->c > floor_nats) {
		if (ch->ep.steps == 0)
			ch->ep = (struct ls_episode){.start_step = step, .start_us = t_us,
				.before_s = d->before_s};
		ch->ep.last_step = step;
		ch->ep.steps++;
	} else if (ch->level != LS_LEVEL_FINDING) {
		ch->ep = (struct ls_episode){0};
	}
}

/* Suspect, and the way back from suspect and finding, alike for all channels. */
static void
detect_relax(struct ls_detect *d, struct ls_detect_channel *ch, double suspect,
	uint32_t calm_steps)
{
	if (ch->level == LS_LEVEL_FINDING) {
		ch->calm = ch->c < LS_DETECT_CLEAR ? ch->calm + 1 : 0;
		if (ch->calm > calm_steps) {
			detect_set_level(d, ch, LS_LEVEL_QUIET);
			ch->c = 0;
			ch->ep = (struct ls_episode){0};
		}
	} else if (ch->c >= suspect) {
		detect_set_level(d, ch, LS_LEVEL_SUSPECT);
	} else if (ch->c == 0) {
		detect_set_level(d, ch, LS_LEVEL_QUIET);
	}
}

static double
detect_warm_median(const float *v, uint32_t n)
{
	double copy[LS_DETECT_WARM];
	size_t known = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			copy[known++] = (double)v[i];
	return known == 0 ? NAN : ls_stats_median(copy, known);
}

static double
detect_warm_sigma(const float *v, uint32_t n, double centre)
{
	double copy[LS_DETECT_WARM];
	size_t known = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!isnan(v[i]))
			copy[known++] = (double)v[i];
	return known == 0 ? 0 : LS_MAD_TO_SIGMA * ls_stats_mad(copy, known, centre);
}

/* Which residual can be trusted: chosen when the first workers have learned their baselines. */
static void
detect_choose_mode(struct ls_detect *d, bool clocks_ok)
{
	double stagger = 0;
	bool enters = false;

	for (size_t i = 0; i < d->count; i++) {
		double off = detect_warm_median(d->worker[i].warm_exit, d->worker[i].warm);

		if (isnan(off))
			continue;
		enters = true;
		stagger = fmax(stagger, fabs(off) / d->step_s);
	}
	d->stagger = stagger;
	d->mode = enters && clocks_ok && stagger <= DETECT_STAGGER ? LS_MODE_LATENESS
								   : LS_MODE_WAIT;
	d->ready = true;
}

static void
detect_finish_warm(struct ls_detect *d, struct ls_detect_worker *w)
{
	const float *used = d->mode == LS_MODE_LATENESS ? w->warm_late : w->warm_wait;

	w->base_s = detect_warm_median(used, w->warm);
	w->base_own_s = detect_warm_median(w->warm_own, w->warm);
	w->base_wait_s = detect_warm_median(w->warm_wait, w->warm);
	if (isnan(w->base_s))
		w->base_s = 0; /* it has no barriers: its residuals stay NaN and count for nothing */
	if (isnan(w->base_own_s))
		w->base_own_s = 0;
	if (isnan(w->base_wait_s))
		w->base_wait_s = 0;
	w->sigma = fmax(detect_warm_sigma(used, w->warm, w->base_s) / d->step_s,
		DETECT_SIGMA_FLOOR);
}

static bool
detect_is_born_slow(const struct ls_detect *d, const struct ls_detect_worker *w)
{
	return w->warm == LS_DETECT_WARM && w->base_own_s > DETECT_BORN_OWN * d->step_s &&
		w->base_wait_s > DETECT_BORN_WAIT * d->step_s;
}

/* Takes what is theirs by their own work out of the baselines of workers slow from the start. */
static void
detect_born_slow(struct ls_detect *d)
{
	size_t slow = 0;

	for (size_t i = 0; i < d->count; i++)
		slow += detect_is_born_slow(d, &d->worker[i]);
	if (slow * DETECT_BORN_SHARE > d->count)
		return;
	for (size_t i = 0; i < d->count; i++) {
		struct ls_detect_worker *w = &d->worker[i];
		double born = fmin(w->base_own_s, w->base_wait_s);

		if (!detect_is_born_slow(d, w))
			continue;
		w->base_s -= fmin(born, fmax(w->base_s, 0));
		w->base_own_s -= born;
		w->base_wait_s -= born;
	}
}

/* Returns true while the worker is still learning. */
static bool
detect_warm(struct ls_detect *d, struct ls_detect_worker *w, const struct ls_blame *r)
{
	if (w->warm < LS_DETECT_WARM) {
		w->warm_late[w->warm] = (float)r->late_s;
		w->warm_wait[w->warm] = (float)r->wait_s;
		w->warm_own[w->warm] = (float)r->own_s;
		w->warm_exit[w->warm] = (float)r->exit_s;
		w->warm++;
		if (w->warm == LS_DETECT_WARM && d->ready)
			detect_finish_warm(d, w); /* it joined later than the others */
		return true;
	}
	return false;
}

/* Baseline and noise follow a healthy worker slowly; they stand still while anything is suspected. */
static void
detect_learn(struct ls_detect *d, struct ls_detect_worker *w, const struct ls_blame *r,
	double residual_s, double x)
{
	double limit = 0.3 * d->step_s;

	w->base_s += ls_stats_clip(residual_s - w->base_s, limit) / DETECT_ADAPT;
	if (!isnan(r->own_s))
		w->base_own_s += ls_stats_clip(r->own_s - w->base_own_s, limit) / DETECT_ADAPT;
	if (!isnan(r->wait_s))
		w->base_wait_s +=
			ls_stats_clip(r->wait_s - w->base_wait_s, limit) / DETECT_ADAPT;
	w->sigma += (LS_MEAN_ABS_TO_SIGMA * fmin(fabs(x), 4 * w->sigma) - w->sigma) /
		DETECT_ADAPT;
	w->sigma = fmax(w->sigma, DETECT_SIGMA_FLOOR);
	w->block_sum += ls_stats_clip(x, 4 * w->sigma);
	if (++w->block_n == DETECT_BLOCK) {
		double mean = w->block_sum / DETECT_BLOCK / w->sigma;

		if (d->tau_count >= DETECT_TAU_MEMORY) {
			d->tau_sum /= 2;
			d->tau_count /= 2;
		}
		d->tau_sum += fmin(mean * mean * DETECT_BLOCK, DETECT_TAU_BLOCK_MAX);
		d->tau_count++;
		w->block_sum = 0;
		w->block_n = 0;
	}
}

/* Long-run noise over that of one step: 1 for white noise, more where loads wander. */
static double
detect_inflation(const struct ls_detect *d)
{
	double tau = (d->tau_sum + DETECT_TAU_PRIOR * DETECT_TAU_WEIGHT) /
		(d->tau_count + DETECT_TAU_WEIGHT);

	return sqrt(fmax(tau, 1));
}

/* The two suspected workers of the greatest mean excess, as of the step before. */
static void
detect_worst(struct ls_detect *d)
{
	d->worst[0] = d->worst[1] = SIZE_MAX;
	d->worst_s[0] = d->worst_s[1] = 0;
	for (size_t i = 0; i < d->count; i++) {
		const struct ls_detect_channel *ch = &d->worker[i].channel[LS_DETECT_CHRONIC];
		double mean_s;

		if (ch->level == LS_LEVEL_QUIET || ch->ep.steps == 0)
			continue;
		mean_s = ch->ep.excess_s / (double)ch->ep.steps;
		if (mean_s > d->worst_s[0]) {
			d->worst[1] = d->worst[0];
			d->worst_s[1] = d->worst_s[0];
			d->worst[0] = i;
			d->worst_s[0] = mean_s;
		} else if (mean_s > d->worst_s[1]) {
			d->worst[1] = i;
			d->worst_s[1] = mean_s;
		}
	}
}

/* Does something besides the residual itself say that this worker holds the others up? */
static bool
detect_evidence(const struct ls_detect *d, size_t slot, const struct ls_episode *ep)
{
	double n = (double)ep->steps, grown = 0, best;
	double other_s = d->worst_s[d->worst[0] == slot];

	/* The step time grew with it, and neither communication nor a worse worker explains that. */
	if (!isnan(ep->before_s) && other_s < ep->excess_s / n &&
		d->comm[LS_DETECT_CHRONIC].c < DETECT_COMM_FINDING / 2)
		grown = fmin(d->step_s - ep->before_s, ep->excess_s / n);
	/* Its own work grew and it waits less than before (in wait mode that is the residual itself). */
	best = fmax(grown, fmin(ep->own_s, ep->wait_s) / n);
	return best >= DETECT_EVIDENCE * ep->excess_s / n;
}

/* One step of one CUSUM of a worker: z in long-run sigmas, the residual's excess in seconds. */
static void
detect_shift(struct ls_detect *d, size_t slot, enum ls_detect_kind kind,
	const struct ls_blame *r, double z, double excess_s, uint64_t step, int64_t t_us)
{
	const struct ls_detect_worker *w = &d->worker[slot];
	const struct detect_pace *pace = &detect_paces[kind];
	struct ls_detect_channel *ch = &d->worker[slot].channel[kind];

	detect_accumulate(d, ch, z - pace->drift, pace->cap, pace->floor, step, t_us);
	if (ch->c > pace->floor) {
		ch->ep.excess_s += excess_s;
		ch->ep.own_s += isnan(r->own_s) ? 0 : r->own_s - w->base_own_s;
		ch->ep.wait_s += isnan(r->wait_s) ? 0 : r->wait_s - w->base_wait_s;
	}
	detect_relax(d, ch, LS_DETECT_SUSPECT, LS_DETECT_CLEAR_STEPS);
	if (ch->level == LS_LEVEL_SUSPECT && ch->c >= LS_DETECT_FINDING &&
		ch->ep.steps >= pace->min_steps &&
		ls_detect_excess_ratio(d, &ch->ep) >= DETECT_MIN_RATIO &&
		detect_evidence(d, slot, &ch->ep))
		detect_set_level(d, ch, LS_LEVEL_FINDING);
}

/* Both CUSUMs of a worker; its baseline follows only while nothing is suspected. */
static void
detect_shifts(struct ls_detect *d, size_t slot, const struct ls_blame *r, double sigma_floor,
	uint64_t step, int64_t t_us)
{
	struct ls_detect_worker *w = &d->worker[slot];
	struct ls_detect_channel *faint = &w->channel[LS_DETECT_FAINT];
	double residual_s = d->mode == LS_MODE_LATENESS ? r->late_s : r->wait_s;
	bool was = w->channel[LS_DETECT_CHRONIC].level == LS_LEVEL_FINDING;
	double excess_s, x, z;

	if (isnan(residual_s))
		return;
	excess_s = residual_s - w->base_s;
	x = excess_s / d->step_s;
	z = ls_stats_clip(x / (fmax(w->sigma, sigma_floor) * detect_inflation(d)), DETECT_CLIP);
	detect_shift(d, slot, LS_DETECT_CHRONIC, r, z, excess_s, step, t_us);
	detect_shift(d, slot, LS_DETECT_FAINT, r, z, excess_s, step, t_us);
	if (was && w->channel[LS_DETECT_CHRONIC].level == LS_LEVEL_QUIET) {
		/* the quick one has seen the end: the patient one need not wait for it */
		detect_set_level(d, faint, LS_LEVEL_QUIET);
		*faint = (struct ls_detect_channel){0};
	}
	if (w->channel[LS_DETECT_CHRONIC].c < LS_DETECT_SUSPECT && d->open == 0)
		detect_learn(d, w, r, residual_s, x);
}

/* Keeps mean and variance of the steps between hits; equally spaced ones are checkpoints. */
static void
detect_stall_hit(struct ls_episode *ep, uint64_t step)
{
	if (ep->hits > 0) {
		double gap = (double)(step - ep->last_step), delta = gap - ep->gap_mean;

		ep->gap_mean += delta / (double)ep->hits;
		ep->gap_m2 += delta * (gap - ep->gap_mean);
	}
	ep->hits++;
	ep->last_step = step;
}

static bool
detect_periodic(const struct ls_episode *ep)
{
	double gaps = (double)ep->hits - 1;

	if (gaps < 3 || ep->gap_mean < 2)
		return false;
	return sqrt(ep->gap_m2 / gaps) < DETECT_STALL_PERIODIC_CV * ep->gap_mean;
}

/* One step of a Bernoulli CUSUM; last_step of the episode is that of the last hit. */
static void
detect_stall(struct ls_detect *d, struct ls_detect_channel *ch, bool hit, double excess_s,
	uint64_t step, int64_t t_us)
{
	uint64_t last = ch->ep.last_step;
	uint32_t quiet;

	if (!hit && ch->c == 0 && ch->level == LS_LEVEL_QUIET)
		return;
	detect_accumulate(d, ch, hit ? DETECT_STALL_HIT : -DETECT_STALL_MISS, LS_DETECT_CAP,
		0, step, t_us);
	if (ch->ep.steps == 0)
		return detect_relax(d, ch, DETECT_STALL_FINDING / 2, 0);
	ch->ep.last_step = last;
	if (hit) {
		detect_stall_hit(&ch->ep, step);
		ch->ep.excess_s += excess_s;
		ch->calm = 0;
	} else if (ch->level == LS_LEVEL_FINDING) {
		quiet = (uint32_t)fmax(DETECT_STALL_QUIET_STEPS, 5 * ch->ep.gap_mean);
		if (++ch->calm > quiet) {
			detect_set_level(d, ch, LS_LEVEL_QUIET);
			ch->c = 0;
			ch->ep = (struct ls_episode){0};
		}
		return;
	}
	if (ch->level == LS_LEVEL_FINDING)
		return;
	detect_relax(d, ch, DETECT_STALL_FINDING / 2, 0);
	if (ch->c >= DETECT_STALL_FINDING && !detect_periodic(&ch->ep) &&
		ch->level == LS_LEVEL_SUSPECT)
		detect_set_level(d, ch, LS_LEVEL_FINDING);
}

static void
detect_comm_chronic(struct ls_detect *d, double excess_s, uint64_t step, int64_t t_us)
{
	struct ls_detect_channel *ch = &d->comm[LS_DETECT_CHRONIC];
	double z = excess_s / fmax(d->arrival.sigma_s, DETECT_COMM_SIGMA * d->step_s);

	detect_accumulate(d, ch, ls_stats_clip(z, DETECT_CLIP) - DETECT_COMM_DRIFT,
		DETECT_COMM_CAP, 0, step, t_us);
	if (ch->c > 0)
		ch->ep.excess_s += excess_s;
	detect_relax(d, ch, LS_DETECT_SUSPECT, LS_DETECT_CLEAR_STEPS);
	if (ch->level == LS_LEVEL_SUSPECT && ch->c >= DETECT_COMM_FINDING &&
		d->worst_s[0] < DETECT_COMM_YIELD * ch->ep.excess_s / (double)ch->ep.steps &&
		!(ch->ep.excess_s / (double)ch->ep.steps <
			DETECT_COMM_SHARE * (d->step_s - ch->ep.before_s)) &&
		ls_detect_excess_ratio(d, &ch->ep) >= DETECT_MIN_RATIO)
		detect_set_level(d, ch, LS_LEVEL_FINDING);
}

/* False while it is still learning. */
static bool
detect_comm_warm(const struct ls_detect *d, struct ls_detect_comm *c, double v_s)
{
	double copy[LS_DETECT_WARM];

	if (c->warm_n == LS_DETECT_WARM)
		return true;
	c->warm[c->warm_n++] = v_s;
	if (c->warm_n == LS_DETECT_WARM) {
		memcpy(copy, c->warm, sizeof(copy));
		c->base_s = ls_stats_median(copy, LS_DETECT_WARM);
		memcpy(copy, c->warm, sizeof(copy));
		c->sigma_s = fmax(LS_MAD_TO_SIGMA * ls_stats_mad(copy, LS_DETECT_WARM, c->base_s),
			DETECT_SIGMA_FLOOR * d->step_s);
	}
	return false;
}

static void
detect_comm_learn(struct ls_detect_comm *c, double v_s)
{
	c->base_s += ls_stats_clip(v_s - c->base_s, 3 * c->sigma_s) / 256;
}

static void
detect_comm(struct ls_detect *d, struct ls_blame_step *t, uint64_t step, int64_t t_us)
{
	bool learned, waits = !isnan(t->wait_min_s);

	if (isnan(t->collective_s))
		return;
	learned = detect_comm_warm(d, &d->arrival, t->collective_s);
	if (waits && !detect_comm_warm(d, &d->wait, t->wait_min_s))
		learned = false;
	if (!learned)
		return;
	t->comm_s = t->collective_s - d->arrival.base_s;
	if (waits)
		t->comm_s = fmin(t->comm_s, t->wait_min_s - d->wait.base_s);
	detect_comm_chronic(d, t->comm_s, step, t_us);
	if (d->comm[LS_DETECT_CHRONIC].c < LS_DETECT_SUSPECT / 2 && d->open == 0) {
		detect_comm_learn(&d->arrival, t->collective_s);
		if (waits)
			detect_comm_learn(&d->wait, t->wait_min_s);
	}
	detect_stall(d, &d->comm[LS_DETECT_STALLS],
		t->comm_s >= fmax(DETECT_COMM_STALL * d->step_s, DETECT_COMM_STALL_S),
		t->comm_s, step, t_us);
}

/* Step times of late: the median of 64, and of 256 for "before it began". */
static void
detect_step_time(struct ls_detect *d, double duration_s)
{
	double copy[256];
	size_t n = d->judged < 64 ? (size_t)d->judged : 64;
	size_t m = d->judged < 256 ? (size_t)d->judged : 256;

	memcpy(copy, d->slow, m * sizeof(*copy));
	d->before_s = m >= 32 ? ls_stats_median(copy, m) : NAN;
	d->recent[d->judged % 64] = duration_s;
	d->slow[d->judged % 256] = duration_s;
	d->judged++;
	n = n < 64 ? n + 1 : 64;
	memcpy(copy, d->recent, n * sizeof(*copy));
	d->step_s = ls_stats_median(copy, n);
}

/* Median of the workers' long-run noise: nobody is judged by less. */
static double
detect_sigma_floor(struct ls_detect *d)
{
	size_t known = 0;

	for (size_t i = 0; i < d->count; i++)
		if (d->worker[i].warm == LS_DETECT_WARM)
			d->scratch[known++] = d->worker[i].sigma;
	return known == 0 ? DETECT_SIGMA_FLOOR : ls_stats_median(d->scratch, known);
}

void
ls_detect_step(struct ls_detect *d, uint64_t step, int64_t t_us, bool clocks_ok,
	const struct ls_blame *residual, size_t n, struct ls_blame_step *totals)
{
	double floor_ratio;
	bool was_ready = d->ready;

	LS_ASSERT(n <= d->count);
	if (!(totals->duration_s > 0))
		return;
	detect_step_time(d, totals->duration_s);
	if (d->judged <= LS_DETECT_SKIP)
		return;
	detect_worst(d);
	detect_comm(d, totals, step, t_us);
	floor_ratio = detect_sigma_floor(d);
	for (size_t i = 0; i < n; i++) {
		struct ls_detect_worker *w = &d->worker[i];
		bool stalled;

		if (isnan(residual[i].own_s))
			continue; /* not there, or nobody to compare with: never "fast" */
		stalled = totals->last == i &&
			totals->gap_s >= DETECT_STALL_GAP * d->step_s &&
			residual[i].own_s >= DETECT_STALL_OWN * totals->gap_s;
		if (d->ready)
			detect_stall(d, &w->channel[LS_DETECT_STALLS], stalled, totals->gap_s,
				step, t_us);
		if (!detect_warm(d, w, &residual[i]))
			detect_shifts(d, i, &residual[i], floor_ratio, step, t_us);
	}
	if (!was_ready && d->judged >= LS_DETECT_WARM + LS_DETECT_SKIP) {
		detect_choose_mode(d, clocks_ok);
		for (size_t i = 0; i < n; i++)
			if (d->worker[i].warm == LS_DETECT_WARM)
				detect_finish_warm(d, &d->worker[i]);
		detect_born_slow(d);
	}
}

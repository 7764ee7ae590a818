/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/slow.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/err.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of a step: so far a single step may be from the block before */
#define SLOW_CLIP 0.1
/* a worker that was in fewer than one step of so many is not judged by the block */
#define SLOW_PRESENT 4u
#define SLOW_DEVIATIONS 5.0
/* of n workers, 1 + so many / n times as much: few say less about the others */
#define SLOW_FEW 4.0
#define SLOW_WORKERS 4u
/* times as far from each other as those of either half differ: they lie in two heaps */
#define SLOW_PARTED 5.0
/* of fewer they do so by chance: of 16 in one block of a thousand */
#define SLOW_PARTED_WORKERS 16u
#define SLOW_HIGH 0.5 /* of the limit: a block is high; a finding ends below */
/* of the newest must be, and below that the way has been gradual */
#define SLOW_HIGH_BLOCKS 6u
#define SLOW_WANDER 64u /* blocks over which it is averaged */
/* blocks from half of the limit to a finding; after a step a median takes half of its
 * own */
#define SLOW_GRADUAL 16u
/* of the drift: the newer half of the blocks is above the older one by so much */
#define SLOW_GROWS 0.25
/* more than two, and than one in so many, at once: no single workers, or a group */
#define SLOW_SHARE 16u

void
ls_slow_fini(struct ls_slow *s)
{
	free(s->sum);
	free(s->worker);
	free(s->scratch);
	memset(s, 0, sizeof(*s));
}

static int
slow_grow(struct ls_slow *s, size_t n)
{
	size_t capacity = s->capacity == 0 ? 8 : s->capacity;
	struct ls_slow_worker *worker;
	struct ls_slow_sum *sum;
	double *scratch;

	while (capacity < n)
		capacity *= 2;
	sum = realloc(s->sum, capacity * sizeof(*sum));
	if (sum == NULL)
		return -ENOMEM;
	s->sum = sum;
	worker = realloc(s->worker, capacity * sizeof(*worker));
	if (worker == NULL)
		return -ENOMEM;
	s->worker = worker;
	scratch = realloc(s->scratch, capacity * sizeof(*scratch));
	if (scratch == NULL)
		return -ENOMEM;
	s->scratch = scratch;
	s->capacity = capacity;
	return 0;
}

static void
slow_clear(struct ls_slow *s, size_t slot)
{
	s->sum[slot] = (struct ls_slow_sum){ 0 };
	s->worker[slot] = (struct ls_slow_worker){
		.own_ref_s = NAN, .wait_ref_s = NAN, .drift = NAN
	};
}

int
ls_slow_reserve(struct ls_slow *s, size_t n)
{
	if (n > s->capacity && slow_grow(s, n) != 0)
		return -ENOMEM;
	for (; s->count < n; s->count++)
		slow_clear(s, s->count);
	return 0;
}

void
ls_slow_reset_worker(struct ls_slow *s, size_t slot)
{
	LS_ASSERT(slot < s->count);
	s->open -= s->worker[slot].level == LS_LEVEL_FINDING;
	slow_clear(s, slot);
}

/* The one place where a level changes. */
static void
slow_set_level(struct ls_slow *s, struct ls_slow_worker *w, enum ls_detect_level to)
{
	s->open -= w->level == LS_LEVEL_FINDING;
	s->open += to == LS_LEVEL_FINDING;
	w->level = to;
}

static double
slow_median(const float v[LS_SLOW_WINDOW])
{
	double copy[LS_SLOW_WINDOW];

	for (size_t i = 0; i < LS_SLOW_WINDOW; i++)
		copy[i] = (double)v[i];
	return ls_stats_median(copy, LS_SLOW_WINDOW);
}

/* Adds a step to the sums of all workers. */
static void
slow_add(struct ls_slow *s, const struct ls_detect *d, const struct ls_blame *residual,
	size_t n)
{
	double limit = SLOW_CLIP * d->step_s;

	for (size_t i = 0; i < n; i++) {
		struct ls_slow_sum *sum = &s->sum[i];

		if (isnan(residual[i].own_s) || isnan(residual[i].wait_s))
			continue;
		if (sum->n == 0 && isnan(s->worker[i].own_ref_s)) {
			if (d->worker[i].warm < LS_DETECT_WARM)
				continue; /* what it is like is not known at all */
			s->worker[i].own_ref_s = (float)d->worker[i].base_own_s;
			s->worker[i].wait_ref_s = (float)d->worker[i].base_wait_s;
		}
		sum->own_s += (float)ls_stats_clip(
			residual[i].own_s - (double)s->worker[i].own_ref_s, limit);
		sum->wait_s += (float)ls_stats_clip(
			residual[i].wait_s - (double)s->worker[i].wait_ref_s, limit);
		sum->n++;
	}
}

/* The first blocks of a worker: when there are enough, its base. */
static void
slow_learn(struct ls_slow_worker *w, float own_s, float wait_s, double step_s)
{
	w->first[0][w->learned] = own_s;
	w->first[1][w->learned] = wait_s;
	if (++w->learned < LS_SLOW_WINDOW)
		return;
	w->base_own_s = (float)slow_median(w->first[0]);
	w->base_wait_s = (float)slow_median(w->first[1]);
	w->base_step_s = (float)step_s;
}

/* How much a residual is above its base. Where steps take longer, what differs between
 * workers may, too, or not. */
static double
slow_excess(const struct ls_slow_worker *w, float now_s, float base_s, double step_s)
{
	double base = (double)base_s;

	return (double)now_s - fmax(base, base * step_s / (double)w->base_step_s);
}

/* Keeps the drift of a block, and since when such are high. */
static void
slow_keep(struct ls_slow *s, struct ls_slow_worker *w, double v)
{
	double least = fmax(s->limit, LS_SLOW_LEAST) * SLOW_HIGH;

	w->blocks += w->blocks < SLOW_WANDER;
	w->wander +=
		((float)((v - s->heap) * (v - s->heap)) - w->wander) / (float)w->blocks;
	w->block[w->at] = (float)v;
	w->at = (uint8_t)((w->at + 1) % LS_SLOW_WINDOW);
	w->known = (uint8_t)(w->known + (w->known < LS_SLOW_WINDOW));
	w->drift = w->known == LS_SLOW_WINDOW ? (float)slow_median(w->block) : NAN;
	w->below = (uint8_t)(v >= least ? 0 : w->below == 0 ? 1 : 2);
	if (w->below > 1 && w->level != LS_LEVEL_FINDING)
		w->high = 0;
	if (w->high > 0 || v >= least)
		w->high++;
	if (w->high == 1) {
		w->since_step = s->first_step;
		w->since_us = s->first_us;
		w->since = (float)least;
	}
}

/* Ends the block of one worker. */
static void
slow_block(struct ls_slow *s, const struct ls_detect_worker *found, size_t slot,
	double step_s)
{
	struct ls_slow_worker *w = &s->worker[slot];
	struct ls_slow_sum sum = s->sum[slot];

	s->sum[slot] = (struct ls_slow_sum){ 0 };
	/* told already: what it was like before and after is what counts */
	if (found->found != 0) {
		w->known = w->at = 0;
		w->high = 0;
		w->drift = NAN;
		return;
	}
	if (sum.n == 0 || sum.n * SLOW_PRESENT < s->n)
		return;
	w->own_ref_s += sum.own_s / (float)sum.n;
	w->wait_ref_s += sum.wait_s / (float)sum.n;
	if (w->learned < LS_SLOW_WINDOW)
		slow_learn(w, w->own_ref_s, w->wait_ref_s, step_s);
	else
		slow_keep(s, w,
			fmin(slow_excess(w, w->own_ref_s, w->base_own_s, step_s),
				slow_excess(w, w->wait_ref_s, w->base_wait_s, step_s)) /
				step_s);
}

/* Half of the distance between the quartiles: of a Gaussian, its median absolute
 * deviation. */
static double
slow_half_width(const double *sorted, size_t n)
{
	return 0.5 *
		(ls_stats_quantile_sorted(sorted, n, 0.75) -
			ls_stats_quantile_sorted(sorted, n, 0.25));
}

/*
 * How much the n drifts in scratch differ. Where half of the workers drift, of two
 * slices one say, they lie in two heaps as far below the middle as above it: then it is
 * how much those of one differ, and heap is where the lower one lies. *ret_centre: the
 * middle.
 */
static double
slow_spread(struct ls_slow *s, size_t n, double *ret_centre)
{
	double wide, apart;

	ls_stats_sort(s->scratch, n);
	*ret_centre = ls_stats_quantile_sorted(s->scratch, n, 0.5);
	s->heap = ls_stats_quantile_sorted(s->scratch, n / 2, 0.5);
	wide = fmax(slow_half_width(s->scratch, n / 2),
		slow_half_width(s->scratch + (n + 1) / 2, n / 2));
	apart = ls_stats_mad(s->scratch, n, *ret_centre);
	s->parted = n >= SLOW_PARTED_WORKERS && apart > SLOW_PARTED * wide;
	if (!s->parted)
		s->heap = 0;
	return LS_MAD_TO_SIGMA * (s->parted ? wide : apart);
}

/* From where on a drift is more than workers differ and blocks wander; how many are
 * known. */
static size_t
slow_limit(struct ls_slow *s)
{
	size_t n = 0, m = 0;
	double centre, spread, wander;

	for (size_t i = 0; i < s->count; i++)
		if (!isnan(s->worker[i].drift))
			s->scratch[n++] = (double)s->worker[i].drift;
	if (n == 0)
		return 0;
	spread = slow_spread(s, n, &centre);
	for (size_t i = 0; i < s->count; i++)
		if (s->parted ? (double)s->worker[i].drift <= centre
			      : !isnan(s->worker[i].drift))
			s->scratch[m++] = (double)s->worker[i].wander;
	wander = sqrt(ls_stats_median(s->scratch, m));
	s->limit = fmax(LS_SLOW_LEAST,
		SLOW_DEVIATIONS * (1 + SLOW_FEW / (double)n) * fmax(spread, wander));
	return n;
}

/* Is it one now? */
static bool
slow_is(const struct ls_slow *s, const struct ls_slow_worker *w)
{
	size_t high = 0;

	if (isnan(w->drift) || (double)w->drift < s->limit)
		return false;
	for (size_t i = 0; i < LS_SLOW_WINDOW; i++)
		high += (double)w->block[i] >= SLOW_HIGH * s->limit;
	return high >= SLOW_HIGH_BLOCKS;
}

static bool
slow_are_many(size_t found, size_t of)
{
	return found > 2 && found * SLOW_SHARE > of;
}

static void
slow_judge(struct ls_slow *s)
{
	size_t n = slow_limit(s), found = 0, alone = 0;

	for (size_t i = 0; i < s->count; i++) {
		bool is = slow_is(s, &s->worker[i]);

		found += is;
		alone += is && !s->worker[i].grouped;
	}
	s->several = slow_are_many(found, n) || (s->parted && found > 0);
	for (size_t i = 0; i < s->count; i++) {
		struct ls_slow_worker *w = &s->worker[i];
		bool is = n >= SLOW_WORKERS &&
			(w->grouped || !(s->parted || slow_are_many(alone, n))) &&
			slow_is(s, w);

		if (is)
			slow_set_level(s, w, LS_LEVEL_FINDING);
		else if (isnan(w->drift) || (double)w->drift < SLOW_HIGH * s->limit)
			slow_set_level(s, w, LS_LEVEL_QUIET);
		else if (w->level == LS_LEVEL_QUIET && n >= SLOW_WORKERS)
			slow_set_level(s, w, LS_LEVEL_SUSPECT);
	}
}

bool
ls_slow_step(struct ls_slow *s, const struct ls_detect *d, uint64_t step, int64_t t_us,
	const struct ls_blame *residual, size_t n, double duration_s)
{
	double step_s;

	LS_ASSERT(n <= s->count && n <= d->count);
	if (!d->ready || !(duration_s > 0))
		return false;
	if (s->base_us == 0) {
		s->base_step = step;
		s->base_us = t_us;
	}
	if (s->n == 0) {
		s->first_step = step;
		s->first_us = t_us;
		s->step_sum_s = 0;
	}
	slow_add(s, d, residual, n);
	s->n++;
	s->step_sum_s += fmin(duration_s, 2 * d->step_s);
	if (s->n < LS_SLOW_BLOCK ||
		t_us - s->first_us + (int64_t)(duration_s * 1e6) < LS_SLOW_BLOCK_US)
		return false;
	step_s = s->step_sum_s / (double)s->n;
	for (size_t i = 0; i < n; i++)
		slow_block(s, &d->worker[i], i, step_s);
	slow_judge(s);
	s->block_steps = s->n;
	s->n = 0;
	return true;
}

/* Is it still growing, or did it take long to grow? A step is all there from its first
 * block on. */
static bool
slow_is_gradual(const struct ls_slow_worker *w)
{
	uint32_t n = w->high < LS_SLOW_WINDOW ? w->high : LS_SLOW_WINDOW, half = n / 2;
	double older = 0, newer = 0;

	for (uint32_t i = 0; i < half; i++) {
		newer += (double)w->block[(w->at + 2 * LS_SLOW_WINDOW - 1 - i) %
			LS_SLOW_WINDOW];
		older += (double)w->block[(w->at + 2 * LS_SLOW_WINDOW - n + i) %
			LS_SLOW_WINDOW];
	}
	return w->high >= SLOW_GRADUAL ||
		newer - older > SLOW_GROWS * half * (double)w->drift;
}

bool
ls_slow_onset(const struct ls_slow *s, size_t slot, uint64_t *ret_step, int64_t *ret_us)
{
	const struct ls_slow_worker *w = &s->worker[slot];
	double back = (double)w->since /
		fmax((double)(w->drift - w->since), 1e-3 * (double)w->drift);
	double lag = w->high < LS_SLOW_WINDOW
		? 0.5
		: (w->high - 0.5 * LS_SLOW_WINDOW) / w->high;

	*ret_step = w->since_step;
	*ret_us = w->since_us;
	if (!slow_is_gradual(w))
		return false;
	/* A line through what it was when it became high, and the median of the newest
	 * blocks in their middle. */
	back *= lag;
	*ret_step -= (uint64_t)fmin(back * (double)(s->first_step - w->since_step),
		(double)(w->since_step - s->base_step));
	*ret_us -= (int64_t)fmin(back * (double)(s->first_us - w->since_us),
		(double)(w->since_us - s->base_us));
	return true;
}

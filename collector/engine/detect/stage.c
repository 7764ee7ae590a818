/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/stage.h"
#include "collector/engine/detect/detect_base.h"
#include "collector/engine/detect/detect_channel.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void
ls_stages_fini(struct ls_stages *s)
{
	free(s->stage);
	*s = (struct ls_stages){ 0 };
}

/* Nothing is compared any more. */
static void
stages_drop(struct ls_stages *s, struct ls_detect *d)
{
	LS_EACH (struct ls_stage, st, s->stage, s->count)
		ls_detect_set_level(d, &st->channel, LS_LEVEL_QUIET);
	ls_stages_fini(s);
}

int
ls_stages_group(struct ls_stages *s, struct ls_detect *d, const uint32_t *sorted,
	const uint32_t *start, size_t count)
{
	bool compared = count >= 2 && count <= LS_STAGES_MAX;

	if (!compared ||
		ls_mem_widen((void **)&s->stage, &s->count, count, sizeof(*s->stage)) !=
			0) {
		stages_drop(s, d);
		return compared ? -ENOMEM : 0;
	}
	for (size_t k = 0; k < count; k++) {
		struct ls_stage *st = &s->stage[k];
		uint32_t stride = (start[k + 1] - start[k] + LS_STAGE_WORKERS - 1) /
			LS_STAGE_WORKERS;

		st->workers = 0;
		for (uint32_t i = start[k]; i < start[k + 1]; i += stride)
			st->worker[st->workers++] = sorted[i];
	}
	return 0;
}

/* A worker that is looked at, in a step; NULL: it is not there. */
static const struct ls_cell *
stage_cell(uint32_t slot, const struct ls_cell *cells, size_t n)
{
	return slot < n && cells[slot].present ? &cells[slot] : NULL;
}

/* Own work of the stage in a step, and the work it did. */
static void
stage_measure(struct ls_stage *st, const struct ls_cell *cells, size_t n)
{
	double own[LS_STAGE_WORKERS], work = 0;
	size_t known = 0, told = 0;

	LS_EACH (const uint32_t, slot, st->worker, st->workers) {
		const struct ls_cell *c = stage_cell(*slot, cells, n);

		if (c == NULL)
			continue;
		own[known++] = (double)c->own_s;
		if (!isnan(c->work)) {
			work += (double)c->work;
			told++;
		}
	}
	st->own_s = known >= LS_PEERS ? ls_stats_median(own, known) : NAN;
	st->work = told > 0 ? work / (double)told : NAN;
}

/* What the other stages take now, against before: the median of them; NaN: none is
 * known. */
static double
stage_others(const struct ls_stages *s, const struct ls_stage *self)
{
	double ratio[LS_STAGES_MAX];
	size_t known = 0;

	LS_EACH (const struct ls_stage, st, s->stage, s->count)
		if (st != self && st->usual.n == LS_DETECT_WARM && !isnan(st->own_s) &&
			st->usual.base > 0)
			ratio[known++] = st->own_s / st->usual.base;
	return known == 0 ? NAN : ls_stats_median(ratio, known);
}

/* Are most of its workers late by half as much? */
static bool
stage_most(const struct ls_stage *st, const struct ls_cell *cells, size_t n,
	double usual_s, double excess_s)
{
	size_t known = 0, late = 0;

	LS_EACH (const uint32_t, slot, st->worker, st->workers) {
		const struct ls_cell *c = stage_cell(*slot, cells, n);

		known += c != NULL;
		late += c != NULL && (double)c->own_s - usual_s >= LS_HALF * excess_s;
	}
	return known > 0 && (double)late >= LS_MOST * (double)known;
}

static bool
stage_evidence(const struct ls_detect *d, const struct ls_episode *ep)
{
	return ep->steps >= LS_DETECT_LASTS_STEADY &&
		ls_detect_excess_ratio(d, ep) >= LS_LEAST &&
		d->step_s - ep->before_s >=
		LS_LEAST * d->step_s; /* false for NaN: not known */
}

static void
stage_step(struct ls_stage *st, struct ls_detect *d, double others, uint64_t step,
	int64_t t_us, const struct ls_cell *cells, size_t n)
{
	struct ls_detect_channel *ch = &st->channel;
	double usual_s = st->usual.base * fmax(others, 1),
	       excess_s = st->own_s - usual_s;
	/* work that varies tells little */
	double sigma_s = sqrt(LS_TAU) *
		fmax(st->usual.sigma,
			fmax(LS_DETECT_SIGMA_FLOOR, d->spread) * d->step_s);

	ls_detect_accumulate(d, ch,
		ls_stats_clip(excess_s / sigma_s, LS_SIGMAS) - LS_DETECT_ALLOWANCE,
		LS_DETECT_CAP, excess_s, step, t_us);
	if (ch->c > 0) {
		if (ch->ep.steps == 1) {
			st->work_sum = 0;
			st->most_steps = 0;
		}
		st->most_steps += stage_most(st, cells, n, usual_s, excess_s);
		st->work_sum += isnan(st->work) || !(st->usual_work.base > 0)
			? 0
			: st->work / st->usual_work.base - 1;
	}
	if (ls_detect_relax(d, ch, LS_DETECT_SUSPECT, LS_DETECT_CLEAR_STEPS) &&
		ch->c >= LS_DETECT_FINDING && stage_evidence(d, &ch->ep) &&
		(double)st->most_steps >= LS_MOST * (double)ch->ep.steps)
		ls_detect_set_level(d, ch, LS_LEVEL_FINDING);
	if (ch->c < LS_DETECT_SUSPECT && d->open == 0)
		st->usual.base +=
			ls_stats_clip(st->own_s - st->usual.base, LS_SIGMAS * sigma_s) /
			LS_DETECT_ADAPT;
}

void
ls_stages_step(struct ls_stages *s, struct ls_detect *d, uint64_t step, int64_t t_us,
	const struct ls_cell *cells, size_t n)
{
	if (d->judged <= LS_DETECT_SKIP || !(d->step_s > 0))
		return;
	LS_EACH (struct ls_stage, st, s->stage, s->count)
		stage_measure(st, cells, n);
	LS_EACH (struct ls_stage, st, s->stage, s->count) {
		double others;

		if (isnan(st->own_s))
			continue;
		(void)ls_detect_usual(&st->usual_work, st->work); /* along with it */
		if (!ls_detect_usual(&st->usual, st->own_s))
			continue;
		others = stage_others(s, st);
		if (!isnan(others))
			stage_step(st, d, others, step, t_us, cells, n);
	}
}

bool
ls_stage_is_imbalance(const struct ls_stage *st)
{
	double grown = st->channel.ep.excess_s / st->usual.base;

	return st->channel.ep.steps > 0 && st->work_sum > 0 &&
		st->work_sum >= LS_HALF * grown;
}

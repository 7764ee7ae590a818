/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/rhythm.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* between twice as many events as LS_RHYTHM_GAPS */
#define RHYTHM_GAPS_MAX (2 * LS_RHYTHM_GAPS - 1)
#define RHYTHM_JITTER_STEPS (1 + LS_HALF) /* one step, and rounding */

void
ls_rhythm_fini(struct ls_rhythm *r)
{
	free(r->event);
	memset(r, 0, sizeof(*r));
}

/* Event i, 0 = newest. */
static const struct ls_rhythm_event *
rhythm_event(const struct ls_rhythm *r, size_t i)
{
	return &r->event[(r->head + LS_RHYTHM_EVENTS - 1 - i) % LS_RHYTHM_EVENTS];
}

struct ls_rhythm_order *
ls_rhythm_period_of(const struct ls_rhythm *r, size_t slot)
{
	LS_EACH (const struct ls_rhythm_order, p, r->period, LS_RHYTHM_PERIODS)
		if (p->on && p->slot == slot)
			return (struct ls_rhythm_order *)p;
	return NULL;
}

void
ls_rhythm_reset_worker(struct ls_rhythm *r, uint32_t slot)
{
	struct ls_rhythm_order *p = ls_rhythm_period_of(r, slot);

	if (p != NULL)
		p->on = false;
	LS_EACH (struct ls_rhythm_event, ev, r->event, r->count)
		if (ev->slot == slot)
			ev->slot = UINT32_MAX;
}

/* Keeps an event; false: its worker had one within LS_APART_STEPS, or no memory. */
static bool
rhythm_keep(struct ls_rhythm *r, const struct ls_rhythm_event *ev)
{
	if (r->event == NULL)
		r->event = calloc(LS_RHYTHM_EVENTS, sizeof(*r->event));
	if (r->event == NULL)
		return false;
	for (size_t i = 0;
		i < r->count && rhythm_event(r, i)->step + LS_APART_STEPS > ev->step;
		i++)
		if (rhythm_event(r, i)->slot == ev->slot)
			return false;
	r->event[r->head] = *ev;
	r->head = (r->head + 1) % LS_RHYTHM_EVENTS;
	r->count += r->count < LS_RHYTHM_EVENTS;
	return true;
}

/* What events cost together, each at most so much. */
static double
rhythm_excess(const struct ls_rhythm_event *const *event, size_t n, double most_s)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fmin((double)event[i]->excess_s, most_s);
	return sum;
}

/* --- periods -------------------------------------------------------------- */

/* The newest events of the worker of the newest one that are like it, newest first; at
 * most one more than gaps are needed. */
static size_t
rhythm_alike(const struct ls_rhythm *r,
	const struct ls_rhythm_event *ret_events[RHYTHM_GAPS_MAX + 1])
{
	const struct ls_rhythm_event *newest = rhythm_event(r, 0);
	size_t n = 0;

	for (size_t i = 0; i < r->count && n <= RHYTHM_GAPS_MAX; i++) {
		const struct ls_rhythm_event *ev = rhythm_event(r, i);

		if (ev->slot != newest->slot ||
			LS_HALF * (double)ev->excess_s > (double)newest->excess_s ||
			(double)ev->excess_s < LS_HALF * (double)newest->excess_s)
			continue;
		ret_events[n++] = ev;
	}
	return n;
}

/* Are the distances equal? One may be twice as long: a step was lost, or somebody else
 * was later still. */
static bool
rhythm_is_equal(const double *gap, size_t n, double ratio, double least,
	double *ret_period)
{
	double copy[RHYTHM_GAPS_MAX], period, jitter;
	size_t twice = 0;

	memcpy(copy, gap, n * sizeof(*gap));
	period = ls_stats_median(copy, n);
	jitter = fmax(least, ratio * period);
	for (size_t i = 0; i < n; i++) {
		bool is_twice = fabs(gap[i] - 2 * period) <= jitter;

		if (!is_twice && fabs(gap[i] - period) > jitter)
			return false;
		twice += is_twice;
	}
	*ret_period = period;
	return twice <= 1;
}

/* The period of so many gaps between events, newest first. */
static bool
rhythm_gaps(const struct ls_rhythm_event *const *event, size_t gaps, double step_s,
	struct ls_rhythm_order *p)
{
	double gap[RHYTHM_GAPS_MAX], period;
	double steps = (double)(event[0]->step - event[gaps]->step);
	double seconds = (double)(event[0]->t_us - event[gaps]->t_us) * 1e-6;

	for (size_t i = 0; i < gaps; i++)
		gap[i] = p->in_time
			? (double)(event[i]->t_us - event[i + 1]->t_us) * 1e-6
			: (double)(event[i]->step - event[i + 1]->step);
	if (!rhythm_is_equal(gap, gaps, p->in_time ? LS_VISIBLE : LS_LEAST,
		    RHYTHM_JITTER_STEPS * (p->in_time ? step_s : 1), &period) ||
		(p->in_time && !(seconds > 0)))
		return false;
	p->steps = p->in_time ? period * steps / seconds : period;
	p->seconds = p->in_time ? period : period * seconds / steps;
	return p->steps >= LS_BLOCK;
}

/* The period of n events, newest first, in steps or in time; how many gaps it took. */
static bool
rhythm_period(const struct ls_rhythm_event *const *event, size_t n, bool in_time,
	double step_s, struct ls_rhythm_order *p, size_t *ret_gaps)
{
	*ret_gaps = in_time ? RHYTHM_GAPS_MAX : LS_RHYTHM_GAPS;
	p->in_time = in_time;
	if (n <= *ret_gaps || !rhythm_gaps(event, *ret_gaps, step_s, p))
		return false;
	if (p->steps >= LS_DETECT_WARM || in_time)
		return true;
	*ret_gaps = RHYTHM_GAPS_MAX;
	return n > RHYTHM_GAPS_MAX && rhythm_gaps(event, RHYTHM_GAPS_MAX, step_s, p);
}

/* Which phase most of some events was in: what the steps spent in it beyond the steps
 * before. */
static void
rhythm_phase(const struct ls_rhythm_event *const *event, size_t n,
	enum ls_phase *ret_phase, double *ret_ratio)
{
	double sum[LS_PHASE_COUNT + 1] = { 0 }, all = rhythm_excess(event, n, INFINITY);

	*ret_phase = LS_PHASE_COUNT;
	for (size_t i = 0; i < n; i++)
		sum[event[i]->phase] += (double)event[i]->phase_s;
	for (unsigned p = 0; p <= LS_PHASE_COUNT; p++)
		if (sum[p] > sum[*ret_phase])
			*ret_phase = (enum ls_phase)p;
	*ret_ratio = all > 0 ? sum[*ret_phase] / all : 0;
}

/* The place of a worker's period: its own, or a free one; NULL: there is none. */
static struct ls_rhythm_order *
rhythm_place(struct ls_rhythm *r, uint32_t slot)
{
	struct ls_rhythm_order *p = ls_rhythm_period_of(r, slot);

	LS_EACH (struct ls_rhythm_order, o, r->period, LS_RHYTHM_PERIODS)
		if (p == NULL && !o->on && !o->told)
			p = o;
	return p;
}

/* Has the worker of the newest event a period? */
static void
rhythm_periodic(struct ls_rhythm *r, double step_s)
{
	const struct ls_rhythm_event *event[RHYTHM_GAPS_MAX + 1];
	struct ls_rhythm_order p = { .on = true, .slot = rhythm_event(r, 0)->slot },
			       *known;
	size_t n = rhythm_alike(r, event), gaps;

	if (!rhythm_period(event, n, false, step_s, &p, &gaps) &&
		!rhythm_period(event, n, true, step_s, &p, &gaps))
		return;
	p.excess_s = rhythm_excess(event, gaps + 1, INFINITY) / (double)(gaps + 1);
	if (p.excess_s < LS_NOTHING * p.steps * step_s)
		return;
	known = rhythm_place(r, p.slot);
	if (known == NULL)
		return;
	p.first_step = known->on ? known->first_step : event[gaps]->step;
	p.first_us = known->on ? known->first_us : event[gaps]->t_us;
	p.told = known->told;
	p.events = known->on ? known->events + 1 : gaps + 1;
	p.last_step = event[0]->step;
	rhythm_phase(event, gaps + 1, &p.phase, &p.phase_ratio);
	*known = p;
}

/* --- rotating ------------------------------------------------------------- */

/* How many of some events are of which worker: different ones, and of the one with
 * most. */
static void
rhythm_who(const struct ls_rhythm_event *const *event, size_t n, uint32_t *ret_workers,
	uint32_t *ret_most)
{
	*ret_workers = *ret_most = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t same = 0;
		bool first = true;

		for (size_t k = 0; k < n; k++) {
			same += event[k]->slot == event[i]->slot;
			first &= k >= i || event[k]->slot != event[i]->slot;
		}
		*ret_workers += first;
		*ret_most = same > *ret_most ? same : *ret_most;
	}
}

/* Is it another one each time, as far as so many workers can tell? */
static bool
rhythm_changes(uint32_t workers, uint32_t most, size_t of, bool named)
{
	double few = (double)of, events = LS_RHYTHM_ROTATING;
	double different = named ? LS_QUARTER * events : LS_HALF * events;

	return of >= LS_MANY &&
		workers >= fmin(different, ceil((1 - LS_QUARTER) * few)) &&
		most <= fmax(LS_QUARTER * events, 2 * events / few);
}

/* The newest events, of those only the large ones or all; at most LS_RHYTHM_ROTATING.
 */
static size_t
rhythm_newest(const struct ls_rhythm *r, bool large,
	const struct ls_rhythm_event **ret_events)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count && n < LS_RHYTHM_ROTATING; i++) {
		const struct ls_rhythm_event *ev = rhythm_event(r, i);

		if (ev->slot != UINT32_MAX && (!large || ev->large))
			ret_events[n++] = ev;
	}
	return n;
}

/* Do they rotate, and cost as much as that? Phases name it only where they are told
 * beside the work itself. */
static bool
rhythm_rotates(const struct ls_rhythm *r, const struct ls_rhythm_sample *s, bool large,
	struct ls_rhythm_order *ret_rotating)
{
	const struct ls_rhythm_event *event[LS_RHYTHM_ROTATING];
	struct ls_rhythm_order now = { .on = true };
	size_t n = rhythm_newest(r, large, event);
	uint32_t most;
	double span;
	bool named;

	if (n < LS_RHYTHM_ROTATING)
		return false;
	now.first_step = event[n - 1]->step;
	now.first_us = event[n - 1]->t_us;
	now.last_step = event[0]->step;
	span = (double)(s->event.step - now.first_step + 1);
	/* one stall of many steps is no rotation */
	now.cost_s = rhythm_excess(event, n, s->step_s) / span;
	now.events_ratio = (double)n / span;
	rhythm_who(event, n, &now.workers, &most);
	now.most_ratio = (double)most / (double)n;
	rhythm_phase(event, n, &now.phase, &now.phase_ratio);
	named = now.phase_ratio >= LS_EXPLAINS &&
		(now.phase == LS_PHASE_GC || now.phase == LS_PHASE_COMPILE ||
			now.phase == LS_PHASE_INPUT_WAIT || now.phase == LS_PHASE_H2D);
	if (!named && (!large || s->workers < 2 * LS_MANY))
		return false;
	*ret_rotating = now;
	return rhythm_changes(now.workers, most, s->workers, named) &&
		now.cost_s >= 2 * LS_LEAST * s->step_s;
}

/* What they cost since it is so, as far as the events are kept: more of them than it
 * takes to tell say it more exactly. */
static double
rhythm_cost(const struct ls_rhythm *r, const struct ls_rhythm_order *now, double step_s)
{
	uint64_t first = now->last_step;
	double excess = 0;

	for (size_t i = 0; i < r->count && rhythm_event(r, i)->step >= now->first_step;
		i++) {
		first = rhythm_event(r, i)->step;
		excess += fmin((double)rhythm_event(r, i)->excess_s, step_s);
	}
	return excess / (double)(now->last_step - first + 1);
}

/* A new event: does it rotate (by all events if a phase has them, else by the large
 * ones)? */
static void
rhythm_rotating(struct ls_rhythm *r, const struct ls_rhythm_sample *s)
{
	struct ls_rhythm_order now;

	if (!rhythm_rotates(r, s, false, &now) && !rhythm_rotates(r, s, true, &now))
		return;
	now.told = r->rotating.told;
	if (r->rotating.on) {
		now.first_step = r->rotating.first_step;
		now.first_us = r->rotating.first_us;
	}
	now.cost_s = rhythm_cost(r, &now, s->step_s);
	r->rotating = now;
}

/* Time passes: ends periods without an event for 2.5 periods, and a rotation that has become rare. */
static void
rhythm_relax(struct ls_rhythm *r, const struct ls_rhythm_sample *s)
{
	const struct ls_rhythm_event *event[LS_RHYTHM_ROTATING];
	size_t n;

	LS_EACH (struct ls_rhythm_order, p, r->period, LS_RHYTHM_PERIODS)
		if (p->on &&
			(double)(s->event.step - p->last_step) >
				(2 + LS_HALF) * p->steps)
			p->on = false;
	if (!r->rotating.on)
		return;
	n = rhythm_newest(r, false, event);
	if (n == 0 ||
		rhythm_excess(event, n, s->step_s) < LS_LEAST * s->step_s *
				(double)(s->event.step - event[n - 1]->step + 1))
		r->rotating.on = false;
}

void
ls_rhythm_step(struct ls_rhythm *r, const struct ls_rhythm_sample *s)
{
	struct ls_rhythm_event ev = s->event;
	double excess = (double)ev.excess_s;

	if (!(s->step_s > 0) || !(excess >= 0))
		return;
	if (s->own && r->usual_s > 0 &&
		excess >= fmax(LS_VISIBLE * s->step_s, LS_RARE * r->usual_s)) {
		ev.large = excess >= 2 * LS_RARE * r->usual_s;
		if (rhythm_keep(r, &ev)) {
			rhythm_periodic(r, s->step_s);
			rhythm_rotating(r, s);
		}
	}
	rhythm_relax(r, s);
	/* A running median: each value moves it by 1 / LS_DETECT_WARM, however far off it is. */
	if (!(r->usual_s > 0))
		r->usual_s = fmax(excess, LS_NOTHING * s->step_s);
	else
		r->usual_s *= excess > r->usual_s ? 1 + 1.0 / LS_DETECT_WARM
						  : 1 - 1.0 / LS_DETECT_WARM;
}

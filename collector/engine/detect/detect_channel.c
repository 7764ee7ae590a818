/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/detect_channel.h"

#include <math.h>

double
ls_detect_nearness(const struct ls_detect_worker *w)
{
	double most = 0;

	for (unsigned k = 0; k < LS_DETECT_KIND_COUNT; k++) {
		const struct ls_detect_channel *ch = &w->channel[k];

		if (ch->level == LS_LEVEL_FINDING)
			return 1;
		if (ch->level == LS_LEVEL_SUSPECT)
			most = fmax(most,
				ch->c /
					(k == LS_DETECT_STALLS ? LS_DETECT_STALL_FINDING
							       : LS_DETECT_FINDING));
	}
	return fmin(most, 1);
}

unsigned
ls_detect_found(const struct ls_detect_channel channel[LS_DETECT_KIND_COUNT])
{
	unsigned found = 0;

	for (int k = 0; k < LS_DETECT_KIND_COUNT; k++)
		found |= (unsigned)(channel[k].level == LS_LEVEL_FINDING) << k;
	return found;
}

void
ls_detect_set_level(struct ls_detect *d, struct ls_detect_channel *ch,
	enum ls_detect_level to)
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

/* Quiet, and as new. */
static void
detect_reset_channel(struct ls_detect *d, struct ls_detect_channel *ch)
{
	ls_detect_set_level(d, ch, LS_LEVEL_QUIET);
	*ch = (struct ls_detect_channel){ 0 };
}

void
ls_detect_accumulate(struct ls_detect *d, struct ls_detect_channel *ch, double add,
	double cap, double excess_s, uint64_t step, int64_t t_us)
{
	ch->c = fmax(0, fmin(ch->c + add, cap));
	if (ch->c > 0) {
		if (ch->ep.steps == 0)
			ch->ep = (struct ls_episode){ .start_step = step,
				.start_us = t_us,
				.before_s = d->before_s };
		ch->ep.last_step = step;
		ch->ep.steps++;
		ch->ep.excess_s += excess_s;
		ch->ep.age_s += ch->ep.excess_s;
	} else if (ch->level != LS_LEVEL_FINDING &&
		ch->ep.steps != 0) { /* mostly there is none, and memory is slow */
		ch->ep = (struct ls_episode){ 0 };
	}
}

bool
ls_detect_relax(struct ls_detect *d, struct ls_detect_channel *ch, double suspect,
	uint32_t calm_steps)
{
	if (ch->level == LS_LEVEL_FINDING) {
		ch->calm = ch->c < LS_DETECT_CLEAR ? ch->calm + 1 : 0;
		if (ch->calm > calm_steps)
			detect_reset_channel(d, ch);
	} else if (ch->c >= suspect) {
		ls_detect_set_level(d, ch, LS_LEVEL_SUSPECT);
	} else if (ch->c == 0) {
		ls_detect_set_level(d, ch, LS_LEVEL_QUIET);
	}
	return ch->level == LS_LEVEL_SUSPECT;
}

/* Keeps mean and variance of the steps between hits; equally spaced ones are
 * checkpoints. */
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

	return ep->gap_mean >= 2 &&
		sqrt(ep->gap_m2 / gaps) < LS_STALL_CV * ep->gap_mean;
}

/* What the length of a stall says: of those that come by chance one in x^2 is x times as long as the
 * shortest, of a fault's one in x. It says no more than that there is one. Short ones are not held against a fault: it may make
 * these, too. */
static double
detect_stall_long(double times)
{
	return fmin(fmax(log(times) - M_LN2, 0), LS_DETECT_STALL_SAYS);
}

void
ls_detect_stall(struct ls_detect *d, struct ls_detect_channel *ch,
	const struct ls_detect_stalls *stalls, double excess_s, uint64_t step,
	int64_t t_us)
{
	uint64_t last = ch->ep.last_step;
	bool hit = excess_s >= stalls->least_s;

	if (!hit && ch->c == 0 && ch->level == LS_LEVEL_QUIET)
		return;
	ls_detect_accumulate(d, ch,
		hit ? stalls->says + detect_stall_long(excess_s / stalls->least_s)
		    : LS_DETECT_STALL_RATE - LS_STALL_FAULT_RATE,
		LS_DETECT_CAP, hit ? excess_s : 0, step, t_us);
	ch->ep.last_step = last;
	if (hit) {
		detect_stall_hit(&ch->ep, step);
		ch->calm = 0;
	} else if (ch->level == LS_LEVEL_FINDING &&
		++ch->calm > (uint32_t)(LS_RARE *
				     fmax(1 / LS_STALL_FAULT_RATE, ch->ep.gap_mean))) {
		detect_reset_channel(d, ch);
	}
	if (ch->level == LS_LEVEL_FINDING)
		return;
	if (ls_detect_relax(d, ch, LS_HALF * stalls->finding, 0) &&
		ch->c >= stalls->finding && ch->ep.hits >= LS_RHYTHM_GAPS &&
		!detect_periodic(&ch->ep))
		ls_detect_set_level(d, ch, LS_LEVEL_FINDING);
}

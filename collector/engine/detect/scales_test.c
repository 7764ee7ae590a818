/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/scales_parts.h"

#include <math.h>
#include <string.h>

/* a host-week, in which false findings are counted */
#define SCALES_WEEK_S 604800.0

/* Student's tail is known to so much, for it is what is left of 1. Of 10,000 workers after a week one error rate is less. */
#define SCALES_ROUNDING 1e-14

/* A worker's level does not change, so it is asked once whether it is slow from the first step: with one error rate for
 * the whole job. One false finding in 10,000 host-weeks is wanted, also of jobs that last no longer than a job is young. */
#define SCALES_LEVELS (LS_SCALES_YOUNG_S / SCALES_WEEK_S / 1e4)

/* Does a worker say what the structure of the job is? Not if it became slow later. */
static bool
scales_is_built(const struct ls_scales *s, size_t slot)
{
	return s->named[slot] == 0 || (s->named[slot] & LS_SCALES_BORN) != 0;
}

/* Others whose number in the row is at least this. Workers of the same known rack do not count, if there are others: what a
 * rack shares is no structure of the job. Nor do workers that became slow later. ret_rack: so many of them are most of one rack. */
static double
scales_others(const struct ls_scales *s, const uint32_t *list, size_t m, size_t slot,
	double least, const float *row, double *ret_rack)
{
	const double one =
		0x1p32; /* of a rack: who counts, times this, and its workers */
	uint32_t rack = ls_scales_rack(s, list, m, slot);
	double others = 0;

	*ret_rack = 0;
	memset(s->scratch, 0, s->capacity * sizeof(*s->scratch));
	for (size_t k = 0; k < m; k++) {
		uint32_t i = list[k], own = s->rack == NULL ? UINT32_MAX : s->rack[i];
		bool counts = i != slot && (double)row[i] >= least &&
			(rack == UINT32_MAX || own != rack) && scales_is_built(s, i);

		others += counts;
		if (own != UINT32_MAX)
			s->scratch[own] += 1 + (counts ? one : 0);
	}
	for (size_t r = 0; r < s->capacity && s->rack != NULL; r++) {
		double n = floor(s->scratch[r] / one);

		if (n > 1 && n >= LS_MOST * (s->scratch[r] - n * one))
			*ret_rack = fmax(*ret_rack, n);
	}
	return others;
}

/* Have so many others shown this excess that it is usual here? */
static bool
scales_is_usual(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t slot, bool jump, double excess)
{
	double rack;

	if (s->alone)
		return (double)ls_scales_shown(s, length, jump, 0)[slot] >=
			LS_EXPLAINS * excess;
	return scales_others(s, list, m, slot, LS_EXPLAINS * excess,
		       ls_scales_shown(s, length, jump, 0), &rack) >=
		fmax(fmin(2, (double)(m - 1)), floor((double)(m - 1) / LS_SIXTEENTH));
}

/* So many who are half as slow are the structure of the job. */
static double
scales_many(size_t m)
{
	return fmax((double)m / LS_SIXTEENTH,
		fmin(LS_MANY, LS_QUARTER * (double)m + 1));
}

float
ls_scales_crowd(const struct ls_scales *s, const uint32_t *list, size_t m, unsigned row)
{
	const float *of = ls_scales_row(s, row);
	double rack = 0, many;
	size_t n = 0;

	memset(s->scratch, 0, s->capacity * sizeof(*s->scratch));
	for (size_t k = 0; k < m && s->rack != NULL; k++)
		if (s->rack[list[k]] != UINT32_MAX)
			rack = fmax(rack, ++s->scratch[s->rack[list[k]]]);
	many = ceil(scales_many(m)) + 2 * rack; /* its own one, and another */
	for (size_t k = 0; k < m; k++)
		if (scales_is_built(s, list[k]) && !isnan(of[list[k]]))
			s->scratch[n++] = (double)of[list[k]];
	return (double)n < many ? NAN
				: (float)ls_stats_quantile(s->scratch, n,
					  ((double)n - many) / (double)(n - 1));
}

/* Are so many others half as slow now that this is the structure of the job? One rack of which most are is not. */
static bool
scales_is_structure(const struct ls_scales *s, const uint32_t *list, size_t m,
	size_t slot, double excess, unsigned row)
{
	double rack,
		others = scales_others(s, list, m, slot, excess * LS_HALF,
			ls_scales_row(s, row), &rack);

	return others - rack + 1 >= scales_many(m);
}

bool
ls_scales_is_long(const struct ls_scales *s, unsigned length, double seconds)
{
	return ((double)(1ull << length) + 0.5) * ls_scales_unit(s) * s->step_s >=
		seconds;
}

/* Is the window too short for this excess, while the job is young? */
static bool
scales_is_hasty(const struct ls_scales *s, unsigned length, double excess)
{
	double patience_s =
		s->patience_s > 0 || s->alone ? s->patience_s : LS_SCALES_PATIENCE_S;

	if (ls_scales_is_pair(s))
		excess *= 2; /* the other of two is as much below the median of all */

	return s->seen_s < LS_SCALES_YOUNG_S &&
		!ls_scales_is_long(s, length,
			patience_s * fmin(1, LS_VISIBLE / excess));
}

/* May an excess count: is it not what others have shown, does it last, and long enough? */
static bool
scales_counts(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t slot, bool jump, double excess)
{
	double usual = jump ? ls_scales_said(s, LS_SCALES_LAST, slot)
			    : ls_scales_said(s, LS_SCALES_NOW, slot) - excess;

	return !scales_is_hasty(s, length, excess) &&
		!scales_is_usual(s, length, list, m, slot, jump, excess) &&
		ls_scales_said(s, LS_SCALES_LEAST, slot) >= usual + LS_HALF * excess;
}

/*
 * One error rate for a look at one worker. Looks go on as long as a job does: when it has seen a host-week,
 * they err less often, in proportion to its age, so that errors add up to the logarithm of it. If units are single long steps, looks are
 * as much fewer.
 */
static double
scales_tail(const struct ls_scales *s)
{
	double rare = s->datum == 1 ? s->step_s * 2 / LS_SCALES_LEAST_S : 1;

	return LS_SCALES_TAIL * rare / (double)s->count *
		fmin(1, SCALES_WEEK_S / s->seen_s);
}

bool
ls_scales_is_chance(const struct ls_scales *s, unsigned length, bool jump, size_t slot,
	double excess, unsigned members, unsigned late)
{
	double alone, rate = ls_scales_rate(s, length, jump, slot, excess, &alone);

	return ls_stats_binomial((unsigned)round(members * alone),
		       (unsigned)round(late * alone), rate) >= scales_tail(s);
}

/* Is a distance from the peers' middle beyond what they vary by, in time and now? */
static bool
scales_is_beyond(const struct ls_scales *s, const struct ls_scales_middle *now,
	const struct ls_scales_spread *in_time, double far)
{
	double sigma = in_time->sigma, among;

	if (!(now->n > 0 && sigma >= 0))
		return false;
	among = sqrt((now->square + LS_PRIOR * sigma * sigma) / (now->n + LS_PRIOR));
	far /= fmax(fmax(sigma, among),
		s->alone ? LS_SCALES_FLOOR_ALONE : LS_SCALES_FLOOR);
	return far > LS_SIGMAS &&
		ls_stats_student(far,
			(unsigned)fmax(fmin(in_time->windows, in_time->freedom), 3)) <
		fmax(scales_tail(s), SCALES_ROUNDING);
}

double
ls_scales_least(const struct ls_scales *s, size_t slot)
{
	bool named = false;

	for (uint32_t k = s->members == NULL ? 0 : s->start[slot];
		s->members != NULL && k < s->start[slot + 1]; k++)
		named = named || s->members->named[s->sorted[k]] != 0;
	return LS_LEAST * LS_QUARTER * (named ? LS_HALF : 1);
}

/*
 * Does a worker take longer than before, beyond what its peers vary by, and itself? What it varies by itself
 * counts as many samples as it has windows, and none says more than three of its peers' deviations. Of who was named
 * before nobody knows how much of that is the fault.
 */
static bool
scales_rises(const struct ls_scales *s, unsigned length, const uint32_t *list, size_t m,
	size_t slot, const struct ls_scales_peers *p, bool jump)
{
	const struct ls_scales_middle *now = jump ? &p->jump : &p->change;
	struct ls_scales_spread in_time = jump ? p->jumps : p->in_time;
	double rise = ls_scales_said(s, jump ? LS_SCALES_JUMP : LS_SCALES_CHANGE, slot);
	struct ls_stats_middle common[LS_SCALES_PAST];
	struct ls_scales_sums own;

	if (!(rise > ls_scales_least(s, slot)) ||
		!scales_is_beyond(s, now, &in_time, rise - now->middle) ||
		!scales_counts(s, length, list, m, slot, jump, rise))
		return false;
	if (!isnan(ls_scales_said(s, LS_SCALES_TURNED, slot)) || ls_scales_is_pair(s) ||
		s->alone)
		return true;
	ls_scales_common(s, length - jump, list, m, jump, common);
	own = ls_scales_sums(s, length - jump, slot, jump, 1 + jump,
		LS_SIGMAS * in_time.sigma, common);
	in_time.sigma *= sqrt(fmax(1,
		(own.square / (in_time.sigma * in_time.sigma) * in_time.apart +
			LS_ONSET_MIN) /
			(own.n * in_time.apart + LS_ONSET_MIN)));
	return scales_is_beyond(s, now, &in_time, rise - now->middle);
}

/*
 * Has a worker been slow in all of this attempt: is its level, or what this has grown by since earlier attempts, beyond
 * what its peers differ by for good, and beyond what windows vary by? The prior of the former counts as LS_PRIOR peers, so
 * a worker more is Student's t with as many degrees of freedom as there are peers and these. In work that wanders each look
 * is a new test of the latter, as of a change; while there are few windows, with at least LS_SCALES_TAILS * apart degrees of freedom.
 */
static bool
scales_is_born(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t slot, const struct ls_scales_peers *p, bool since)
{
	struct ls_scales_spread in_time = p->in_time;
	struct ls_scales_middle now;
	unsigned row = since ? LS_SCALES_SINCE : LS_SCALES_NOW;
	double at = ls_scales_said(s, LS_SCALES_NOW, slot), among, far, known,
	       before = (double)ls_scales_row(s, LS_SCALES_BEFORE + length)[slot],
	       /* what it is slower by than before, but for noise, is a change */
		excess = ls_scales_said(s, row, slot) -
		fmax(at - before - LS_SIGMAS * p->in_time.sigma, 0),
	       least = at - LS_HALF * excess,
	       prior = since ? LS_HALF * LS_LEAST : LS_LEAST;

	if (!(excess > 2 * prior) || !(least > 0) || before < least ||
		(since && isnan(before)) ||
		excess * LS_HALF <= (double)p->crowd[since] ||
		ls_scales_is_mixed(s, 1ull << length, slot) ||
		(double)s->units * ls_scales_unit(s) < ls_warm_steps(s->step_s) / 2)
		return false;
	in_time.sigma = fmax(in_time.sigma, 0);
	in_time.windows = fmax(in_time.windows, LS_SCALES_TAILS * in_time.apart);
	/* who in its rack is slow from the first step as well does not say what is usual */
	now = ls_scales_middle(s, length, row, list, m, slot,
		ls_scales_rack(s, list, m, slot), prior);
	/* what the other of two is below it is nothing that it says itself */
	known = now.n < 2 ? 0 : now.n;
	among = sqrt((now.square + LS_PRIOR * prior * prior) / (known + LS_PRIOR));
	far = since ? excess - now.middle : excess;
	return ls_stats_student(far / among, (unsigned)(known + LS_PRIOR)) <
		SCALES_LEVELS / (double)s->count &&
		scales_is_beyond(s, &now, &in_time, far) &&
		scales_counts(s, length, list, m, slot, false, excess) &&
		!scales_is_structure(s, list, m, slot, excess, row);
}

bool
ls_scales_is_possible(const struct ls_scales *s, unsigned length, size_t slot,
	const struct ls_scales_middle *change, const struct ls_scales_middle *jump)
{
	const struct ls_scales_spread still = {
		.windows = LS_SCALES_PAST * LS_SCALES_SAMPLE, .freedom = INFINITY
	};
	double rise = ls_scales_said(s, LS_SCALES_CHANGE, slot),
	       leapt = ls_scales_said(s, LS_SCALES_JUMP, slot),
	       level = ls_scales_said(s, LS_SCALES_NOW, slot),
	       since = ls_scales_said(s, LS_SCALES_SINCE, slot),
	       before = (double)ls_scales_row(s, LS_SCALES_BEFORE + length)[slot];

	return scales_is_beyond(s, change, &still, rise - change->middle) ||
		scales_is_beyond(s, jump, &still, leapt - jump->middle) ||
		(level > 2 * LS_LEAST && !(before < level * LS_HALF)) ||
		(since > LS_LEAST && !(before < level - since * LS_HALF));
}

unsigned
ls_scales_test(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t slot, const struct ls_scales_peers *p)
{
	double jump = ls_scales_said(s, LS_SCALES_JUMP, slot);

	/* a job has no peers that say what so long a time may be like */
	if (s->alone && ls_scales_past(s, length) < LS_MANY)
		return LS_SCALES_ROWS;
	if (scales_rises(s, length, list, m, slot, p, false))
		return LS_SCALES_CHANGE;
	if ((s->alone || ls_scales_said(s, LS_SCALES_NOW, slot) > LS_QUARTER * jump) &&
		(p->jumps.windows >= LS_ONSET_MIN || s->alone) &&
		scales_rises(s, length, list, m, slot, p, true))
		return LS_SCALES_JUMP;
	if (s->alone)
		return LS_SCALES_ROWS;
	if (scales_is_born(s, length, list, m, slot, p, true))
		return LS_SCALES_SINCE;
	return scales_is_born(s, length, list, m, slot, p, false) ? LS_SCALES_NOW
								  : LS_SCALES_ROWS;
}

bool
ls_scales_is_nearer(const struct ls_scales *s, unsigned length, size_t slot)
{
	bool longest = length == LS_SCALES_LENGTHS - 1;
	double excess = ls_scales_said(s, LS_SCALES_EXCESS, slot),
	       was = ls_scales_said(s, LS_SCALES_BELOW, slot) + excess;

	return s->named[slot] != 0 &&
		was - ls_scales_said(s, LS_SCALES_NOW, slot) > LS_HALF * excess &&
		!ls_scales_is_mixed(s, (1ull << length) << longest, slot);
}

bool
ls_scales_is_over(const struct ls_scales *s, unsigned length, size_t slot,
	const struct ls_scales_peers *p)
{
	bool longest = length == LS_SCALES_LENGTHS - 1;
	double jump = ls_scales_said(s, LS_SCALES_JUMP, slot),
	       excess = ls_scales_said(s, LS_SCALES_EXCESS, slot),
	       was = ls_scales_said(s, LS_SCALES_BELOW, slot) + excess,
	       drop = was - ls_scales_said(s, LS_SCALES_NOW, slot);

	/* half of what it was named for is far more than windows as long vary by */
	if (s->alone)
		return (s->named[slot] & 1u << length) != 0;
	return (longest &&
		       was - ls_scales_said(s, LS_SCALES_LAST, slot) >
			       LS_HALF * excess) ||
		scales_is_beyond(s, &p->change, &p->in_time, drop + p->change.middle) ||
		(p->jumps.windows >= LS_ONSET_MIN && -jump > LS_HALF * excess &&
			scales_is_beyond(s, &p->jump, &p->jumps,
				p->jump.middle - jump));
}

bool
ls_scales_is_silent(const struct ls_scales *s)
{
	return !(s->patience_s > 0) && s->seen_s < LS_SCALES_YOUNG_S;
}

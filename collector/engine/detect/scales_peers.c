/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/scales_parts.h"

#include <math.h>
#include <string.h>

/* Means over twice as many steps vary less, by 2 to this power. If each step varies for itself, the power is 1/2; if what
 * varies lasts, it is 0. A length that has too few windows to know uses the value between: 1/4. */
#define SCALES_FALL LS_QUARTER

static void
scales_add(struct ls_scales_sums *sums, double v)
{
	sums->n++;
	sums->square += v * v;
	sums->fourth += v * v * v * v;
}

/* Degrees of freedom of the Student's t with the kurtosis of these numbers (n of them free), less one standard error (a Gaussian's); INFINITY: no
 * tail. For a job alone the error is added: no peers show that it has no tail. */
static double
scales_freedom(const struct ls_scales_sums *sums, bool alone)
{
	double error = sqrt(24 / sums->n),
	       excess = sums->fourth * sums->n / (sums->square * sums->square) - 3 +
		(alone ? error : -error);

	return fmax(4 + 6 / fmax(excess, 0), LS_SCALES_TAILS);
}

bool
ls_scales_is_mixed(const struct ls_scales *s, uint64_t units, size_t slot)
{
	return (double)s->units - ls_scales_said(s, LS_SCALES_TURNED, slot) <
		(double)units;
}

bool
ls_scales_is_peer(const struct ls_scales *s, unsigned length, size_t slot, size_t skip)
{
	/* a job has nobody else: what it was like then makes its spread greater, and the test careful */
	uint64_t windows = s->alone ? 2 : LS_SCALES_PAST;

	return slot != skip && s->named[slot] == 0 &&
		!ls_scales_is_mixed(s, windows << length, slot);
}

uint32_t
ls_scales_rack(const struct ls_scales *s, const uint32_t *list, size_t m, size_t slot)
{
	size_t apart = 0;

	for (size_t i = 0; i < m && s->rack != NULL; i++)
		apart += s->rack[list[i]] != s->rack[slot];
	return apart < LS_PEERS ? UINT32_MAX : s->rack[slot];
}

struct ls_scales_middle
ls_scales_middle(const struct ls_scales *s, unsigned length, unsigned row,
	const uint32_t *list, size_t m, size_t skip, uint32_t rack, double spread)
{
	const float *of = ls_scales_row(s, row);
	struct ls_scales_middle p = { 0 };
	double limit;
	size_t n = 0;

	for (size_t i = 0; i < m; i++)
		if (ls_scales_is_peer(s, length, list[i], skip) &&
			!isnan(of[list[i]]) &&
			(rack == UINT32_MAX || s->rack[list[i]] != rack ||
				of[list[i]] < LS_HALF * of[skip]))
			s->scratch[n++] = (double)of[list[i]];
	p.n = (double)n;
	if (n < 2) /* of two, one is above the middle by what the other is below */
		return p;
	p.middle = ls_stats_median(s->scratch, n);
	limit = LS_SIGMAS *
		fmax(LS_MAD_TO_SIGMA * ls_stats_mad(s->scratch, n, p.middle), spread);
	for (size_t i = 0; i < n; i++) /* distances from the median now */
		p.square += fmin(s->scratch[i], limit) * fmin(s->scratch[i], limit);
	if (n < LS_MANY) /* if one is above a few others, they are below it by that */
		p.middle = 0;
	return p;
}

bool
ls_scales_is_pair(const struct ls_scales *s)
{
	return s->members != NULL && s->count == 2;
}

/* A past window of one worker less what is usual of it, or less the one before. Of a pair the latter is less the mean
 * of all, for a drift of one is in them all. */
static double
scales_varied(const struct ls_scales *s, unsigned length, size_t slot, bool jump,
	uint64_t k)
{
	uint64_t past = ls_scales_past(s, length);
	double mean = 0;

	if (jump && ls_scales_is_pair(s))
		mean = ((double)ls_scales_window(s, length, 1)[slot] -
			       (double)ls_scales_window(s, length, past)[slot]) /
			(double)(past - 1);
	return (double)ls_scales_window(s, length, k)[slot] -
		(double)(jump ? ls_scales_window(s, length, k + 1)
			      : ls_scales_row(s, LS_SCALES_BEFORE + length))[slot] -
		mean;
}

/* Every so many workers of a role of m are looked at for what the past was like. */
static size_t
scales_stride(size_t m)
{
	return (m + LS_SCALES_SAMPLE - 1) / LS_SCALES_SAMPLE;
}

void
ls_scales_common(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, bool jump, struct ls_stats_middle ret_common[LS_SCALES_PAST])
{
	double v[LS_SCALES_SAMPLE];

	for (uint64_t k = 1; k + jump <= ls_scales_past(s, length); k++) {
		size_t n = 0;

		for (size_t i = 0; i < m; i += scales_stride(m)) {
			v[n] = scales_varied(s, length, list[i], jump, k);
			n += ls_scales_is_peer(s, length, list[i], LS_SCALES_NONE) &&
				!isnan(v[n]);
		}
		ret_common[k] = (struct ls_stats_middle){ 0 };
		if (n > LS_MANY)
			ls_stats_middle(v, n, &ret_common[k]);
	}
}

struct ls_scales_sums
ls_scales_sums(const struct ls_scales *s, unsigned length, size_t slot, bool jump,
	uint64_t from, double limit, const struct ls_stats_middle *common)
{
	uint64_t past = ls_scales_past(s, length);
	struct ls_scales_sums sums = { 0 };

	for (uint64_t k = from; k + jump <= past; k++) {
		double v = scales_varied(s, length, slot, jump, k);

		v -= ls_stats_median_without(&common[k], v);
		/* of one long step, what is so far away is a pause */
		if (!isnan(v) && (s->datum > 1 || fabs(v) <= limit))
			scales_add(&sums, ls_stats_clip(v, limit));
	}
	return sums;
}

/*
 * How far from their median the past windows of a job count, where a datum is one long step. A pause is no noise, and no median of four steps drops it: so a
 * sixteenth of the windows, two at least, do not count if they are further away than what is looked for, and than some deviations. INFINITY: more of them are so
 * far away, so that is what it varies by.
 */
static double
scales_limit(const struct ls_scales *s, unsigned length, bool jump, uint64_t from)
{
	double v[LS_SCALES_PAST], copy[LS_SCALES_PAST], middle, limit;
	size_t n = 0, far = 0;

	for (uint64_t k = from; k + jump <= ls_scales_past(s, length); k++) {
		v[n] = scales_varied(s, length, 0, jump, k);
		n += isnan(v[n]) ? 0 : 1;
	}
	if (n == 0)
		return INFINITY;
	memcpy(copy, v, n * sizeof(*v));
	middle = ls_stats_median(copy, n);
	limit = fmax(LS_SIGMAS * LS_MAD_TO_SIGMA * ls_stats_mad(copy, n, middle),
		LS_LEAST * LS_QUARTER);
	for (size_t i = 0; i < n; i++)
		far += fabs(v[i]) > limit ? 1 : 0;
	return (double)far <= fmax(2, (double)n / LS_SIXTEENTH) ? limit : INFINITY;
}

/* The noisiest of n peers is left out: swapped to the end. */
static void
scales_leave_out(struct ls_scales_sums *peer, size_t n)
{
	size_t most = 0;
	struct ls_scales_sums last = peer[n - 1];

	for (size_t i = 1; i < n; i++)
		if (peer[i].square / peer[i].n > peer[most].square / peer[most].n)
			most = i;
	peer[n - 1] = peer[most];
	peer[most] = last;
}

/* What windows of one length vary by in time, from one `from` windows before the newest on: peers of list[m] but skip, or a
 * sample of them. */
static struct ls_scales_spread
scales_in_time(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t skip, bool jump, uint64_t from)
{
	struct ls_scales_sums peer[LS_SCALES_SAMPLE], all = { 0 };
	struct ls_stats_middle common[LS_SCALES_PAST];
	double past, windows,
		limit = s->datum == 1 ? scales_limit(s, length, jump, from) : INFINITY;
	size_t n = 0;

	ls_scales_common(s, length, list, m, jump, common);
	for (size_t i = 0; i < m; i += scales_stride(m)) {
		peer[n] = ls_scales_sums(s, length, list[i], jump, from, limit, common);
		n += ls_scales_is_peer(s, length, list[i], skip) && peer[n].n > 0;
	}
	for (size_t k = 0; n > 2 && k * LS_SIXTEENTH < n; k++)
		scales_leave_out(peer, n--);
	for (size_t i = 0; i < n; i++) {
		all.n += peer[i].n;
		all.square += peer[i].square;
		all.fourth += peer[i].fourth;
	}
	past = all.n / (double)n;
	windows = all.n - (double)n;
	if (!(windows > 0))
		return (struct ls_scales_spread){ NAN, 0, 0, 1, INFINITY };
	/* one window of each peer follows from the others by what is usual of it */
	all.n = windows;
	return (struct ls_scales_spread){ sqrt(all.square / windows *
						  (1 + M_PI_2 / past)),
		past, windows, 1, scales_freedom(&all, s->alone) };
}

/*
 * Windows that follow each other and vary alike count as fewer: so many as an AR(1) with their correlation
 * r has that are independent. Their past is then more alike than it is like what comes: they vary about its
 * mean by 1 - v, and the next window by 1 + v - 2 c, with v the variance of the mean and c the covariance of both.
 * r is not known before v is: the first four rounds come near enough. Of one unit alone r is known too badly for that: its standard
 * error (white noise: 1 / sqrt(n)) is no correlation.
 */
static void
scales_correlate(struct ls_scales_spread *p, double jumps, bool alone)
{
	double n = p->past, white = (1 + M_PI_2 / n) * n / (n - 1), r = 0, v = 1 / n,
	       c = 0;
	double within = p->sigma * p->sigma / white;

	for (unsigned k = 0; k < (alone ? 1 : LS_MANY); k++) {
		r = fmax(0,
			1 - jumps * jumps * (1 - v) / (2 * within) -
				(alone ? 1 / sqrt(n) : 0));
		if (!(r < 1))
			return;
		c = r * (1 - pow(r, n)) / (n * (1 - r));
		v = ((1 + r) / (1 - r) - 2 * c / (1 - r)) / n;
	}
	p->apart = (1 - r) / (1 + r);
	p->sigma = sqrt(within * (1 + v + (M_PI_2 - 1) / n - 2 * c) / (1 - v));
}

/*
 * The same, and of jumps. If one of a pair drifts, the past of the other holds the drift. Without it, were their windows a random walk, the newest
 * would be so far from the median of all, which was half of them ago. The spread of the longer length that is asked for, so many
 * times twice as long, is less, but not that of a walk.
 */
static struct ls_scales_spread
scales_varies(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t skip, uint64_t from, unsigned twice,
	struct ls_scales_spread *ret_jumps)
{
	struct ls_scales_spread p = scales_in_time(s, length, list, m, skip, false,
					from),
				walk = scales_in_time(s, length, list, m, skip, true,
					from);

	*ret_jumps = walk;
	if (!isnan(walk.sigma))
		scales_correlate(&p, walk.sigma, s->alone);
	p.sigma *= pow(2, -SCALES_FALL * (double)twice);
	walk.sigma *= sqrt(1 + LS_HALF * walk.past);
	if (ls_scales_is_pair(s) && walk.windows >= LS_ONSET_MIN &&
		walk.sigma < p.sigma)
		return walk;
	/* of two windows nobody knows how alike they are */
	p.windows *= isnan(walk.sigma) ? 0 : p.apart;
	return p;
}

struct ls_scales_peers
ls_scales_measure(struct ls_scales *s, unsigned length, const uint32_t *list, size_t m,
	size_t skip)
{
	struct ls_scales_spread jumps;
	struct ls_scales_peers p;
	/* what one of two does is seen in the other, too, and a job has only its own past: nothing of the window that is looked at is past */
	bool two = m == 2 || s->alone;
	/* nor is the window before it, in which it may have become slow */
	unsigned from = s->alone ? 2 : 1;

	p.crowd[0] = p.crowd[1] = NAN;
	if (skip == LS_SCALES_NONE && !s->alone) {
		p.crowd[0] = ls_scales_crowd(s, list, m, LS_SCALES_NOW);
		p.crowd[1] = ls_scales_crowd(s, list, m, LS_SCALES_SINCE);
	}
	p.in_time = scales_varies(s, length, list, m, skip, from, 0, &jumps);
	for (unsigned k = length;
		k-- > (s->alone ? 0 : 1) && p.in_time.windows < LS_ONSET_MIN;) {
		struct ls_scales_spread shorter = scales_varies(s, k, list, m, skip,
			two ? (from << (length - k)) + 1 : 1, length - k, &jumps);

		if (jumps.windows >= LS_ONSET_MIN)
			p.in_time.apart = fmin(p.in_time.apart, shorter.apart);
		p.in_time.sigma = fmax(p.in_time.sigma, shorter.sigma);
		if (shorter.windows > p.in_time.windows) {
			p.in_time.freedom = shorter.freedom;
			p.in_time.windows = fmin(shorter.windows, LS_ONSET_MIN);
		}
	}
	/* shorter windows vary by as much as longer ones, at least: the past of a job may have been quiet of late */
	for (unsigned k = length + 1;
		s->alone && k < LS_SCALES_LENGTHS && ls_scales_past(s, k) >= LS_MANY;
		k++)
		p.in_time.sigma = fmax(p.in_time.sigma,
			scales_varies(s, k, list, m, skip, 1, 0, &jumps).sigma);
	p.change = ls_scales_middle(s, length, LS_SCALES_CHANGE, list, m, skip,
		UINT32_MAX, fmax(p.in_time.sigma, LS_SCALES_FLOOR));
	p.jumps =
		scales_in_time(s, length - 1, list, m, skip, true, two ? 2 + from : 1);
	p.jump = ls_scales_middle(s, length, LS_SCALES_JUMP, list, m, skip, UINT32_MAX,
		fmax(p.jumps.sigma, LS_SCALES_FLOOR));
	return p;
}

/*
 * What share of list[n] varies for itself? The effective number of workers is 1 / the mean squared correlation of two windows (Bretherton
 * et al. 1999), one more because of their median. Of each window only who is above the median counts, so that the noisiest do not decide. What
 * wanders is alike in all windows, so it is compared with the one before; of two in a row both have one window in common.
 */
static double
scales_alone(const struct ls_scales *s, unsigned length, const uint32_t *list, size_t n)
{
	struct ls_stats_middle common[LS_SCALES_PAST];
	uint32_t above[LS_SCALES_PAST] = { 0 };
	double alike = 0, pairs = 0, number = (double)n;
	uint64_t past = ls_scales_past(s, length);

	ls_scales_common(s, length, list, n, true, common);
	for (uint64_t back = 1; back < past; back++) {
		for (size_t i = 0; i < n; i++)
			above[back] |= (uint32_t)(scales_varied(s, length, list[i],
							  true, back) >
					       ls_stats_median_of(&common[back]))
				<< i;
		for (uint64_t k = 1; k + 1 < back; k++) {
			double r = 1 -
				2 * __builtin_popcount(above[back] ^ above[k]) / number;

			alike += r * r;
			pairs++;
		}
	}
	return pairs > 0 && n > 0 ? fmin(1, (pairs / alike + 1) / number) : 0;
}

double
ls_scales_rate(const struct ls_scales *s, unsigned length, bool jump, size_t slot,
	double excess, double *ret_alone)
{
	const struct ls_scales *of = s->members;
	struct ls_stats_middle common[LS_SCALES_PAST];
	uint32_t all = s->start[s->count], list[LS_SCALES_SAMPLE];
	double looked = 0, shown = 0, part;
	unsigned k = length - jump;
	size_t n = 0;

	while (k > 1 && ls_scales_past(of, k) < LS_ONSET_MIN)
		k--;
	/* of the groups that come next, for workers that are near each other may vary alike */
	for (uint32_t i = s->start[slot + 1];
		i < all + s->start[slot] && n < LS_SCALES_SAMPLE; i++)
		if (ls_scales_is_peer(of, k, s->sorted[i % all], LS_SCALES_NONE))
			list[n++] = s->sorted[i % all];
	ls_scales_common(of, k, list, n, jump, common);
	for (uint64_t back = 1; back + jump <= ls_scales_past(of, k); back++)
		for (size_t i = 0; i < n; i++) {
			double v = scales_varied(of, k, list[i], jump, back) -
				ls_stats_median_of(&common[back]);

			shown += v >= excess;
			looked += !isnan(v);
		}
	*ret_alone = scales_alone(of, k, list, n);
	/* what comes and goes lasts for up to a patience */
	part = fmin(1,
		(double)(1ull << k) * ls_scales_unit(of) * of->step_s /
			LS_SCALES_PATIENCE_S);
	return (part * shown + 1) / (part * looked + 1);
}

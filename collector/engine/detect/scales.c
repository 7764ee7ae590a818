/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/scales.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/err.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALES_SAMPLE 32u /* of more, the past of so many is looked at */
#define SCALES_AT_ONCE 256u /* of more, the past is looked at in the steps of a unit */

/* no spread of means is less: three of it are worth no sentence (blocks of 16 steps of quiet pods repeat to 0.01 to
 * 0.07 %) */
#define SCALES_FLOOR (LS_NOTHING / LS_SIGMAS)

/* Means over twice as many steps vary less, by 2 to this power. If each step varies for itself, the power is 1/2; if what
 * varies lasts, it is 0. A length that has too few windows to know uses the value between: 1/4. */
#define SCALES_FALL (LS_HALF * LS_HALF)

/* a host-week, in which false findings are counted */
#define SCALES_WEEK_S 604800.0

/* A worker's level does not change, so it is asked once whether it is slow from the first step: with one error rate for
 * the whole job. One false finding in 10,000 host-weeks is wanted, also of jobs that last no longer than a job is young. */
#define SCALES_LEVELS (LS_SCALES_YOUNG_S / SCALES_WEEK_S / 1e4)

#define SCALES_NONE SIZE_MAX

static float *
scales_row(const struct ls_scales *s, unsigned row)
{
	return s->row + row * s->capacity;
}

/* Window `back` before the newest that ended, of a length (0: a unit). */
static float *
scales_window(const struct ls_scales *s, unsigned length, uint64_t back)
{
	uint64_t ended = s->units >> length;

	return scales_row(s,
		LS_SCALES_WINDOW + length * LS_SCALES_PAST +
			(unsigned)((ended - 1 - back) % LS_SCALES_PAST));
}

/* What was shown over a length: excess, or jump. */
static float *
scales_shown(const struct ls_scales *s, unsigned length, bool jump, unsigned age)
{
	return scales_row(s, LS_SCALES_SHOWN + 3 * (2 * length + jump) + age);
}

void
ls_scales_fini(struct ls_scales *s)
{
	free(s->row);
	free(s->named);
	free(s->scratch);
	*s = (struct ls_scales){ .late = s->late, .unit_data = s->unit_data };
}

void
ls_scales_reset_worker(struct ls_scales *s, size_t slot)
{
	LS_ASSERT(slot < s->capacity);
	for (unsigned r = 0; r < LS_SCALES_CARRIED; r++)
		scales_row(s, r)[slot] =
			r == LS_SCALES_SUM || r == LS_SCALES_KNOWN ? 0 : NAN;
	s->named[slot] = 0;
}

int
ls_scales_reserve(struct ls_scales *s, size_t n)
{
	size_t was = s->capacity, capacity = was == 0 ? 1 : was;
	float *row;

	if (n <= was) {
		s->count = n > s->count ? n : s->count;
		return 0;
	}
	while (capacity < n)
		capacity *= 2;
	row = malloc(LS_SCALES_ROWS * capacity * sizeof(*row));
	if (row == NULL ||
		ls_mem_resize((void **)&s->named, capacity, sizeof(*s->named)) != 0 ||
		ls_mem_resize((void **)&s->scratch, capacity, sizeof(*s->scratch)) !=
			0) {
		free(row);
		return -ENOMEM;
	}
	for (unsigned r = 0; r < LS_SCALES_ROWS && was > 0; r++)
		memcpy(row + r * capacity, scales_row(s, r), was * sizeof(*row));
	free(s->row);
	s->row = row;
	s->capacity = capacity;
	s->count = n;
	for (size_t i = was; i < capacity; i++)
		ls_scales_reset_worker(s, i);
	return 0;
}

/* Abramowitz and Stegun (1972), 26.7.3 and 26.7.4. */
double
ls_scales_student(double t, unsigned freedom)
{
	double angle = atan(t / sqrt(freedom)), c = cos(angle), term, sum;
	bool odd = freedom % 2 == 1;

	term = odd ? c : 1;
	sum = freedom == 1 ? 0 : term;
	for (unsigned k = odd ? 2 : 1; k + 1 < freedom; k += 2) {
		term *= c * c * k / (k + 1);
		sum += term;
	}
	sum *= sin(angle);
	return 0.5 - 0.5 * (odd ? (angle + sum) * M_2_PI : sum);
}

/* Sums over numbers: over the past windows of a peer, or over peers. */
struct scales_sums {
	double n, square, fourth;
};

static void
scales_add(struct scales_sums *sums, double v)
{
	sums->n++;
	sums->square += v * v;
	sums->fourth += v * v * v * v;
}

/* Degrees of freedom of a Student's t with the kurtosis of these numbers, of which n are free; a standard error of it
 * (of a Gaussian) is no tail. INFINITY: they have none. */
static double
scales_freedom(const struct scales_sums *sums)
{
	double excess = sums->fourth * sums->n / (sums->square * sums->square) - 3 -
		sqrt(24 / sums->n);

	return fmax(4 + 6 / fmax(excess, 0), LS_SCALES_TAILS);
}

/* What windows of one length vary by in time. */
struct scales_spread {
	double sigma; /* NaN = not known */
	double past; /* windows of a peer */
	double windows; /* beyond one for each peer, */
	double apart; /* so many of them, as a share, as if independent */
	double freedom;
};

/* What peers are like now: their median, and the sum of squares about it, clipped. */
struct scales_middle {
	double n, middle, square;
};

/* What the peers of a worker, or of all of a role, are like over one length of time. */
struct scales_peers {
	struct scales_middle change, level, since, jump;
	struct scales_spread in_time, jumps;
};

/* Is the newest window from before the worker was named, or from when it still was? */
static bool
scales_is_mixed(const struct ls_scales *s, uint64_t units, size_t slot)
{
	return (double)s->units - ls_scales_said(s, LS_SCALES_TURNED, slot) <
		(double)units;
}

/* Does a worker count as a peer? Not if it is named, or was within the windows that are kept. */
static bool
scales_is_peer(const struct ls_scales *s, unsigned length, size_t slot, size_t skip)
{
	return slot != skip && s->named[slot] == 0 &&
		!scales_is_mixed(s, (uint64_t)LS_SCALES_PAST << length, slot);
}

/* Of a row over list[m] but skip; clipped at some spreads, of now or as given. */
static struct scales_middle
scales_middle(struct ls_scales *s, unsigned length, unsigned row, const uint32_t *list,
	size_t m, size_t skip, double spread)
{
	const float *of = scales_row(s, row);
	struct scales_middle p = { 0 };
	double limit;
	size_t n = 0;

	for (size_t i = 0; i < m; i++)
		if (scales_is_peer(s, length, list[i], skip) && !isnan(of[list[i]]))
			s->scratch[n++] = (double)of[list[i]];
	p.n = (double)n;
	if (n < 2) /* of two, each is the mirror image of the other */
		return p;
	p.middle = ls_stats_median(s->scratch, n);
	limit = LS_SIGMAS *
		fmax(LS_MAD_TO_SIGMA * ls_stats_mad(s->scratch, n, p.middle), spread);
	for (size_t i = 0; i < n; i++) /* distances from the median now */
		p.square += fmin(s->scratch[i], limit) * fmin(s->scratch[i], limit);
	return p;
}

/* Windows of a length in the past, before the newest that ended. */
static uint64_t
scales_past(const struct ls_scales *s, unsigned length)
{
	uint64_t ended = s->units >> length;

	return ended == 0			 ? 0
		: ended - 1 < LS_SCALES_PAST - 1 ? ended - 1
						 : LS_SCALES_PAST - 1;
}

/* Are these two groups? Then each does what the other does, the other way. */
static bool
scales_is_pair(const struct ls_scales *s)
{
	return s->members != NULL && s->count == 2;
}

/* A past window of one worker less what is usual of it, or less the one before. Of a pair the latter is less the mean
 * of all, for a drift of one is in them all. */
static double
scales_varied(const struct ls_scales *s, unsigned length, size_t slot, bool jump,
	uint64_t k)
{
	uint64_t past = scales_past(s, length);
	double mean = 0;

	if (jump && scales_is_pair(s))
		mean = ((double)scales_window(s, length, 1)[slot] -
			       (double)scales_window(s, length, past)[slot]) /
			(double)(past - 1);
	return (double)scales_window(s, length, k)[slot] -
		(double)(jump ? scales_window(s, length, k + 1)
			      : scales_row(s, LS_SCALES_BEFORE + length))[slot] -
		mean;
}

/* Every so many workers of a role of m are looked at for what the past was like. */
static size_t
scales_stride(size_t m)
{
	return m <= LS_SIXTEENTH ? 1 : (m + SCALES_SAMPLE - 1) / SCALES_SAMPLE;
}

/*
 * What peers of list[m] but skip varied by together in each past window: their median. It is no noise of one: when half
 * of the workers become slow, the median of all moves, and with it the residual of everybody. Of fewer than LS_MANY
 * peers nobody knows it: 0.
 */
static void
scales_common(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t skip, bool jump, double ret_common[LS_SCALES_PAST])
{
	double v[SCALES_SAMPLE];

	for (uint64_t k = 1; k + jump <= scales_past(s, length); k++) {
		size_t n = 0;

		for (size_t i = 0; i < m; i += scales_stride(m)) {
			v[n] = scales_varied(s, length, list[i], jump, k);
			n += scales_is_peer(s, length, list[i], skip) && !isnan(v[n]);
		}
		ret_common[k] = n >= LS_MANY ? ls_stats_median(v, n) : 0;
	}
}

/* Of the past windows of one worker, from one on: less what is usual of it, or less the one before, and less what is
 * common; each is clipped at a limit. */
static struct scales_sums
scales_sums(const struct ls_scales *s, unsigned length, size_t slot, bool jump,
	uint64_t from, double limit, const double *common)
{
	uint64_t past = scales_past(s, length);
	struct scales_sums sums = { 0 };

	for (uint64_t k = from; k + jump <= past; k++) {
		double v = scales_varied(s, length, slot, jump, k) - common[k];

		if (!isnan(v))
			scales_add(&sums, ls_stats_clip(v, limit));
	}
	return sums;
}

/* The noisiest of n peers is left out: swapped to the end. */
static void
scales_leave_out(struct scales_sums *peer, size_t n)
{
	size_t most = 0;
	struct scales_sums last = peer[n - 1];

	for (size_t i = 1; i < n; i++)
		if (peer[i].square / peer[i].n > peer[most].square / peer[most].n)
			most = i;
	peer[n - 1] = peer[most];
	peer[most] = last;
}

/* What windows of one length vary by in time, from one `from` windows before the newest on: peers of list[m] but skip, or a
 * sample of them. */
static struct scales_spread
scales_in_time(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t skip, bool jump, uint64_t from)
{
	struct scales_sums peer[SCALES_SAMPLE], all = { 0 };
	double past, windows, peers, others = 1, common[LS_SCALES_PAST];
	size_t n = 0;

	scales_common(s, length, list, m, skip, jump, common);
	for (size_t i = 0; i < m; i += scales_stride(m)) {
		peer[n] = scales_sums(s, length, list[i], jump, from, INFINITY, common);
		n += scales_is_peer(s, length, list[i], skip) && peer[n].n > 0;
	}
	for (size_t k = 0; n > 2 && k * LS_SIXTEENTH < n; k++)
		scales_leave_out(peer, n--);
	for (size_t i = 0; i < n; i++) {
		all.n += peer[i].n;
		all.square += peer[i].square;
		all.fourth += peer[i].fourth;
	}
	peers = (double)n;
	past = all.n / peers;
	windows = all.n - peers;
	if (!(windows > 0))
		return (struct scales_spread){ NAN, 0, 0, 1, INFINITY };
	/* So many numbers are free: one window of each peer follows from the others by what is usual of it, and one peer
	 * of each window by their median. Distances from a median of which one is part are less (it varies by pi / 2 / n
	 * and goes 1 / n with each), those of a worker more are more. */
	all.n = windows;
	if (n >= LS_MANY) {
		all.n *= 1 - 1 / peers;
		others = (1 + M_PI_2 / (double)(m - 1)) / (1 - (2 - M_PI_2) / peers);
	}
	return (struct scales_spread){ sqrt(all.square / windows * others *
					       (1 + M_PI_2 / past)),
		past, windows, 1, scales_freedom(&all) };
}

/*
 * Windows that follow each other and vary alike count as fewer: so many as an AR(1) with their correlation
 * r has that are independent. Their past is then more alike than it is like what comes: they vary about its
 * mean by 1 - v, and the next window by 1 + v - 2 c, with v the variance of the mean and c the covariance of both.
 * r is not known before v is: the first four rounds come near enough.
 */
static void
scales_correlate(struct scales_spread *p, double jumps)
{
	double n = p->past, white = (1 + M_PI_2 / n) * n / (n - 1), r = 0, v = 1 / n,
	       c = 0;
	double within = p->sigma * p->sigma / white;

	for (unsigned k = 0; k < LS_MANY; k++) {
		r = fmax(0, 1 - jumps * jumps * (1 - v) / (2 * within));
		if (!(r < 1))
			return;
		c = r * (1 - pow(r, n)) / (n * (1 - r));
		v = ((1 + r) / (1 - r) - 2 * c / (1 - r)) / n;
	}
	p->apart = (1 - r) / (1 + r);
	p->sigma = sqrt(within * (1 + v + (M_PI_2 - 1) / n - 2 * c) / (1 - v));
}

/*
 * The same, and of jumps. The past of one that drifts is not what the other of a pair varies by: were its windows
 * a random walk beside the drift, the newest would be so far from their median, which is half of them ago.
 */
static struct scales_spread
scales_varies(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t skip, uint64_t from, struct scales_spread *ret_jumps)
{
	struct scales_spread p = scales_in_time(s, length, list, m, skip, false, from),
			     walk = scales_in_time(s, length, list, m, skip, true, from);

	*ret_jumps = walk;
	if (!isnan(walk.sigma))
		scales_correlate(&p, walk.sigma);
	walk.sigma *= sqrt(1 + LS_HALF * walk.past);
	if (scales_is_pair(s) && walk.windows >= LS_ONSET_MIN && walk.sigma < p.sigma)
		return walk;
	/* of two windows nobody knows how alike they are */
	p.windows *= isnan(walk.sigma) ? 0 : p.apart;
	return p;
}

static struct scales_peers
scales_measure(struct ls_scales *s, unsigned length, const uint32_t *list, size_t m,
	size_t skip)
{
	struct scales_spread jumps;
	struct scales_peers p;
	/* each of two does what the other does: nothing of the window that is looked at is past */
	bool mirrors = m == 2;

	p.in_time = scales_varies(s, length, list, m, skip, 1, &jumps);
	for (unsigned k = length; k-- > 1 && p.in_time.windows < LS_ONSET_MIN;) {
		struct scales_spread shorter = scales_varies(s, k, list, m, skip,
			mirrors ? (1ull << (length - k)) + 1 : 1, &jumps);

		if (jumps.windows >= LS_ONSET_MIN)
			p.in_time.apart = fmin(p.in_time.apart, shorter.apart);
		p.in_time.sigma = fmax(p.in_time.sigma,
			shorter.sigma * pow(2, -SCALES_FALL * (double)(length - k)));
		if (shorter.windows > p.in_time.windows) {
			p.in_time.freedom = shorter.freedom;
			p.in_time.windows = fmin(shorter.windows, LS_ONSET_MIN);
		}
	}
	p.change = scales_middle(s, length, LS_SCALES_CHANGE, list, m, skip,
		fmax(p.in_time.sigma, SCALES_FLOOR));
	p.level = scales_middle(s, length, LS_SCALES_NOW, list, m, skip, LS_LEAST);
	p.since = scales_middle(s, length, LS_SCALES_SINCE, list, m, skip,
		LS_HALF * LS_LEAST);
	p.jumps = scales_in_time(s, length - 1, list, m, skip, true, mirrors ? 3 : 1);
	p.jump = scales_middle(s, length, LS_SCALES_JUMP, list, m, skip,
		fmax(p.jumps.sigma, SCALES_FLOOR));
	return p;
}

/* Others whose number in the row is at least this. Workers of the same known rack do not count: what a rack shares is no
 * structure of the job. Nor do workers that became slow later. */
static double
scales_others(const struct ls_scales *s, const uint32_t *list, size_t m, size_t slot,
	double least, const float *row)
{
	uint32_t rack = s->rack == NULL ? UINT32_MAX : s->rack[slot];
	size_t others = 0;

	for (size_t i = 0; i < m; i++)
		others += list[i] != slot && (double)row[list[i]] >= least &&
			(rack == UINT32_MAX || s->rack[list[i]] != rack) &&
			(s->named[list[i]] == 0 ||
				(s->named[list[i]] & LS_SCALES_BORN) != 0);
	return (double)others;
}

/* Have so many workers of other groups shown this excess, one by one, that some of a group may show it by chance? */
static bool
scales_is_chance(const struct ls_scales *s, unsigned length, size_t slot, bool jump,
	double excess)
{
	const float *shown = scales_shown(s->members, length, jump, 0);
	uint32_t all = s->start[s->count], from = s->start[slot],
		 to = s->start[slot + 1];
	uint32_t enough = (all - (to - from)) / LS_SIXTEENTH, n = 0;

	enough = enough > 1 ? enough : 1;
	for (uint32_t k = 0; k < all && n < enough; k++)
		n += (k < from || k >= to) &&
			(double)shown[s->sorted[k]] >= LS_EXPLAINS * excess;
	return n >= enough;
}

/* Have so many others shown this excess that it is usual here? */
static bool
scales_is_usual(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t slot, bool jump, double excess)
{
	return (s->members != NULL &&
		       scales_is_chance(s, length, slot, jump, excess)) ||
		scales_others(s, list, m, slot, LS_EXPLAINS * excess,
			scales_shown(s, length, jump, 0)) >=
		fmax(2, floor((double)(m - 1) / LS_SIXTEENTH));
}

/* Are so many others half as slow now that this is the structure of the job? */
static bool
scales_is_structure(const struct ls_scales *s, const uint32_t *list, size_t m,
	size_t slot, double excess, unsigned row)
{
	return scales_others(s, list, m, slot, excess * LS_HALF, scales_row(s, row)) +
		1 >=
		fmax((double)m / LS_SIXTEENTH,
			fmin(LS_MANY, LS_QUARTER * (double)m + 1));
}

/* Is a window so long? Units are whole: to the nearest one. */
static bool
scales_is_long(const struct ls_scales *s, unsigned length, double seconds)
{
	return ((double)(1ull << length) + 0.5) * s->unit_data * LS_SCALES_DATUM *
		s->step_s >=
		seconds;
}

/* Is the window too short for this excess, while the job is young? */
static bool
scales_is_hasty(const struct ls_scales *s, unsigned length, double excess)
{
	double patience_s = s->patience_s > 0 ? s->patience_s : LS_SCALES_PATIENCE_S;

	if (scales_is_pair(s))
		excess *= 2; /* the other of two is as much below the median of all */

	return s->seen_s < LS_SCALES_YOUNG_S &&
		!scales_is_long(s, length, patience_s * fmin(1, LS_VISIBLE / excess));
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
 * they err less often, in proportion to its age, so that errors add up to the logarithm of it.
 */
static double
scales_tail(const struct ls_scales *s)
{
	return LS_SCALES_TAIL / (double)s->count * fmin(1, SCALES_WEEK_S / s->seen_s);
}

/* Is a distance from the peers' middle beyond what they vary by, in time and now? */
static bool
scales_is_beyond(const struct ls_scales *s, const struct scales_middle *now,
	const struct scales_spread *in_time, double far)
{
	double sigma = in_time->sigma, among;

	if (!(now->n > 0 && sigma >= 0))
		return false;
	among = sqrt((now->square + LS_PRIOR * sigma * sigma) / (now->n + LS_PRIOR));
	far /= fmax(fmax(sigma, among), SCALES_FLOOR);
	return far > LS_SIGMAS &&
		ls_scales_student(far,
			(unsigned)fmax(fmin(in_time->windows, in_time->freedom), 3)) <
		scales_tail(s);
}

/* What is least looked for. Members of a group come to that one after the other, by chance: when one is named, half of it is
 * enough for their group. */
static double
scales_least(const struct ls_scales *s, size_t slot)
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
	size_t slot, const struct scales_peers *p, bool jump)
{
	const struct scales_middle *now = jump ? &p->jump : &p->change;
	struct scales_spread in_time = jump ? p->jumps : p->in_time;
	double rise = ls_scales_said(s, jump ? LS_SCALES_JUMP : LS_SCALES_CHANGE, slot),
	       common[LS_SCALES_PAST];
	struct scales_sums own;

	if (!(rise > scales_least(s, slot)) ||
		!scales_is_beyond(s, now, &in_time, rise - now->middle) ||
		!scales_counts(s, length, list, m, slot, jump, rise))
		return false;
	if (!isnan(ls_scales_said(s, LS_SCALES_TURNED, slot)) || scales_is_pair(s))
		return true;
	scales_common(s, length - jump, list, m, slot, jump, common);
	own = scales_sums(s, length - jump, slot, jump, 1 + jump,
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
 * a worker more is Student's t with as many degrees of freedom as there are peers and these. Work that wanders asks
 * the latter anew at each look, like a change; while there are few windows, with LS_SCALES_TAILS
 * degrees of freedom at least.
 */
static bool
scales_is_born(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, size_t slot, const struct scales_peers *p, bool since)
{
	const struct scales_middle *now = since ? &p->since : &p->level;
	struct scales_spread in_time = p->in_time;
	unsigned row = since ? LS_SCALES_SINCE : LS_SCALES_NOW;
	double at = ls_scales_said(s, LS_SCALES_NOW, slot), among, far,
	       before = (double)scales_row(s, LS_SCALES_BEFORE + length)[slot],
	       /* what it is slower by than before, but for noise, is a change */
		excess = ls_scales_said(s, row, slot) -
		fmax(at - before - LS_SIGMAS * p->in_time.sigma, 0),
	       least = at - LS_HALF * excess,
	       prior = since ? LS_HALF * LS_LEAST : LS_LEAST;

	if (!(excess > 2 * prior) || !(least > 0) || before < least ||
		(since && isnan(before)) || scales_is_mixed(s, 1ull << length, slot) ||
		s->units * s->unit_data * LS_SCALES_DATUM < LS_DETECT_WARM / 2)
		return false;
	in_time.sigma = fmax(in_time.sigma, 0);
	in_time.windows = fmax(in_time.windows, LS_SCALES_TAILS * in_time.apart);
	among = sqrt((now->square + LS_PRIOR * prior * prior) / (now->n + LS_PRIOR));
	far = since ? excess - now->middle : excess;
	return ls_scales_student(far / among, (unsigned)(now->n + LS_PRIOR)) <
		SCALES_LEVELS / (double)s->count &&
		scales_is_beyond(s, now, &in_time, far) &&
		scales_counts(s, length, list, m, slot, false, excess) &&
		!scales_is_structure(s, list, m, slot, excess, row);
}

/*
 * Is a worker slow over this length of time, and how does one see it? LS_SCALES_CHANGE: it is slower than before.
 * LS_SCALES_JUMP: it became so within the window. LS_SCALES_SINCE: it is slower than in earlier attempts of the job.
 * LS_SCALES_NOW: it is slower than its peers, from the first step. LS_SCALES_ROWS: it is not slow. The row holds the excess.
 */
static unsigned
scales_test(const struct ls_scales *s, unsigned length, const uint32_t *list, size_t m,
	size_t slot, const struct scales_peers *p)
{
	double jump = ls_scales_said(s, LS_SCALES_JUMP, slot);

	if (scales_rises(s, length, list, m, slot, p, false))
		return LS_SCALES_CHANGE;
	if (ls_scales_said(s, LS_SCALES_NOW, slot) > LS_QUARTER * jump &&
		p->jumps.windows >= LS_ONSET_MIN &&
		scales_rises(s, length, list, m, slot, p, true))
		return LS_SCALES_JUMP;
	if (scales_is_born(s, length, list, m, slot, p, true))
		return LS_SCALES_SINCE;
	return scales_is_born(s, length, list, m, slot, p, false) ? LS_SCALES_NOW
								  : LS_SCALES_ROWS;
}

/*
 * Is a named worker as before, in a window since it was named? Nearer to that than to what it was then, and as
 * far from the latter as it takes to name one: noise errs as seldom here. The longest window, and half as long a
 * time before it, need no more than to be nearer.
 */
static bool
scales_is_over(const struct ls_scales *s, unsigned length, size_t slot,
	const struct scales_peers *p)
{
	bool longest = length == LS_SCALES_LENGTHS - 1;
	double jump = ls_scales_said(s, LS_SCALES_JUMP, slot),
	       excess = ls_scales_said(s, LS_SCALES_EXCESS, slot),
	       was = ls_scales_said(s, LS_SCALES_BELOW, slot) + excess,
	       drop = was - ls_scales_said(s, LS_SCALES_NOW, slot);

	if (!(drop > LS_HALF * excess) ||
		scales_is_mixed(s, (1ull << length) << longest, slot))
		return false;
	return (longest &&
		       was - ls_scales_said(s, LS_SCALES_LAST, slot) >
			       LS_HALF * excess) ||
		scales_is_beyond(s, &p->change, &p->in_time, drop + p->change.middle) ||
		(p->jumps.windows >= LS_ONSET_MIN && -jump > LS_HALF * excess &&
			scales_is_beyond(s, &p->jump, &p->jumps,
				p->jump.middle - jump));
}

/* A worker is named. */
static void
scales_begin(struct ls_scales *s, unsigned bits, size_t slot, double excess,
	double usual)
{
	scales_row(s, LS_SCALES_EXCESS)[slot] = (float)excess;
	scales_row(s, LS_SCALES_USUAL)[slot] = (float)usual;
	scales_row(s, LS_SCALES_BELOW)[slot] = (float)usual;
	for (unsigned k = LS_SCALES_LENGTHS; k-- > 0;)
		if (!isnan(scales_row(s, LS_SCALES_BEFORE + k)[slot])) {
			scales_row(s, LS_SCALES_BELOW)[slot] = fminf((float)usual,
				scales_row(s, LS_SCALES_BEFORE + k)[slot]);
			break;
		}
	scales_row(s, LS_SCALES_TURNED)[slot] = (float)s->units;
	s->named[slot] |= (uint16_t)bits;
	for (unsigned r = 0; r < 6 * LS_SCALES_LENGTHS; r++)
		scales_row(s, LS_SCALES_SHOWN + r)[slot] = NAN;
}

void
ls_scales_restore(struct ls_scales *s, size_t slot, unsigned bits, double excess,
	double usual, double below)
{
	scales_begin(s, bits, slot, excess, usual);
	scales_row(s, LS_SCALES_BELOW)[slot] = (float)below;
}

void
ls_scales_carry(struct ls_scales *s, size_t slot, double usual)
{
	scales_row(s, LS_SCALES_CARRIED)[slot] = (float)usual;
	s->carried = s->carried || !isnan(usual);
}

double
ls_scales_usual(const struct ls_scales *s, size_t slot)
{
	double usual = ls_scales_carried(s, slot);
	bool young = !isnan(usual) && s->seen_s < LS_SCALES_YOUNG_S;

	if (s->named[slot] != 0)
		return ls_scales_said(s, LS_SCALES_USUAL, slot);
	for (unsigned length = 0; length < LS_SCALES_LENGTHS && !young; length++)
		if (!isnan(scales_row(s, LS_SCALES_BEFORE + length)[slot]))
			usual = (double)scales_row(s, LS_SCALES_BEFORE + length)[slot];
	return usual;
}

/* Newest windows of a length in a row that show a part of the worker's excess. */
static uint64_t
scales_lasted(const struct ls_scales *s, unsigned length, size_t slot)
{
	double least = ls_scales_said(s, LS_SCALES_USUAL, slot) +
		LS_QUARTER * ls_scales_said(s, LS_SCALES_EXCESS, slot);
	uint64_t past = scales_past(s, length), k = 0;

	while (k <= past && (double)scales_window(s, length, k)[slot] > least)
		k++;
	return k;
}

struct ls_onset
ls_scales_began(const struct ls_scales *s, size_t slot)
{
	unsigned length = LS_SCALES_LENGTHS - 1;
	uint64_t past, looked;
	double v[LS_SCALES_PAST], window, ended;
	struct ls_onset o;
	size_t n = 0;

	while (length > 1 && (s->named[slot] & 1u << length) == 0)
		length--;
	/* as long a time before it as it has lasted, in windows as short as are kept of that, or of all */
	looked = 2 * (scales_lasted(s, length, slot) + 1);
	while (length > 1 &&
		(2 * looked < LS_SCALES_PAST ||
			s->units >> (length - 1) < LS_SCALES_PAST)) {
		looked *= 2;
		length--;
	}
	looked = looked < LS_ONSET_MIN ? LS_ONSET_MIN : looked;
	past = scales_past(s, length);
	looked = looked < past ? looked : past;
	/* less than what was usual is no onset: others were slow then, who were not named yet */
	for (uint64_t k = looked; k-- > 0;)
		if (!isnan(scales_window(s, length, k)[slot]))
			v[n++] = fmax((double)scales_window(s, length, k)[slot],
				ls_scales_said(s, LS_SCALES_USUAL, slot));
	o = ls_onset_of(v, n);
	window = (double)((1ull << length) * s->unit_data * LS_SCALES_DATUM);
	ended = s->steps +
		(double)(LS_SCALES_DATUM *
			((s->units % (1ull << length)) * s->unit_data + s->data));
	o.at = (o.at - (double)n) * window - ended;
	o.early = (o.early - (double)n) * window - ended;
	/* after all of them, too */
	o.late = o.late < (double)n ? (o.late - (double)n) * window - ended : 0;
	return o;
}

/* What a worker is slow by, by the number of a row. Of a jump: in the higher half, for the first may have begun before the onset. */
static double
scales_excess(const struct ls_scales *s, unsigned row, size_t slot)
{
	double v = ls_scales_said(s, row, slot);

	return row == LS_SCALES_JUMP
		? fmax(v,
			  2 *
					  (ls_scales_said(s, LS_SCALES_NOW, slot) -
						  ls_scales_said(s, LS_SCALES_LAST,
							  slot)) -
				  v)
		: v;
}

/* What was usual of it. */
static double
scales_usual(const struct ls_scales *s, unsigned row, size_t slot)
{
	return row == LS_SCALES_JUMP
		? ls_scales_said(s, LS_SCALES_LAST, slot)
		: ls_scales_said(s, LS_SCALES_NOW, slot) - ls_scales_said(s, row, slot);
}

/* Mean of parts of a window; NaN unless half of them are known. */
static float
scales_mean(const float *const *part, unsigned parts, size_t slot)
{
	float sum = 0, known = 0;

	for (unsigned k = 0; k < parts; k++)
		if (!isnan(part[k][slot])) {
			sum += part[k][slot];
			known++;
		}
	return 2 * known >= (float)parts ? sum / known : NAN;
}

/* Means of the newest window of a length, and what they are above their past; and what their first half is
 * above the time just before. Between: by the data that begin in the middle of the others. */
static void
scales_means(struct ls_scales *s, unsigned length, bool between)
{
	float *now = scales_row(s, LS_SCALES_NOW),
	      *since = scales_row(s, LS_SCALES_SINCE),
	      *change = scales_row(s, LS_SCALES_CHANGE),
	      *jump = scales_row(s, LS_SCALES_JUMP),
	      *previous = scales_row(s, LS_SCALES_LAST),
	      *least = scales_row(s, LS_SCALES_LEAST),
	      *last = scales_shown(s, length, false, 2),
	      *leapt = scales_shown(s, length, true, 2);
	const float *before = scales_row(s, LS_SCALES_BEFORE + length), *part[6];
	unsigned parts = length == 1 ? 2 : 4, half = parts / 2;

	for (unsigned k = 0; k < parts + half; k++)
		part[k] = between ? scales_row(s,
					    LS_SCALES_BETWEEN +
						    (unsigned)((s->units + 3 - k) % 3))
				  : scales_window(s, length == 1 ? 0 : length - 2, k);
	for (size_t i = 0; i < s->count; i++) {
		now[i] = scales_mean(part, parts, i);
		since[i] = now[i] - (float)ls_scales_carried(s, i);
		change[i] = now[i] - before[i];
		previous[i] = scales_mean(part + parts, half, i);
		jump[i] = scales_mean(part + half, half, i) - previous[i];
		least[i] = part[0][i];
		for (unsigned k = 1; k < parts; k++)
			least[i] = fminf(least[i], part[k][i]);
		if (!scales_is_peer(s, length, i, SCALES_NONE))
			continue; /* a fault is no usual disturbance */
		last[i] = fmaxf(last[i], fmaxf(now[i], change[i]));
		leapt[i] = fmaxf(leapt[i], jump[i]);
	}
}

/* Do most members of a group show half of its excess over this length, each by itself? */
static bool
scales_is_most(struct ls_scales *s, unsigned length, unsigned row, size_t slot)
{
	const float *of = scales_row(s->members, row);
	double least = LS_HALF * ls_scales_said(s, row, slot);
	size_t members = 0, late = 0;

	if (s->members_length != length)
		scales_means(s->members, length, false);
	s->members_length = length;
	for (uint32_t k = s->start[slot]; k < s->start[slot + 1]; k++) {
		members += isnan(of[s->sorted[k]]) ? 0 : 1;
		late += (double)of[s->sorted[k]] > least;
	}
	return (double)late >= LS_MOST * (double)members;
}

/* A group is named by these bits: so are its members that show half of its excess. */
static void
scales_name_members(struct ls_scales *s, unsigned bits, unsigned row, size_t slot)
{
	struct ls_scales *of = s->members;

	for (uint32_t k = s->start[slot]; k < s->start[slot + 1]; k++) {
		uint32_t i = s->sorted[k];

		if (of->named[i] == 0 &&
			ls_scales_said(of, row, i) >
				LS_HALF * ls_scales_said(s, row, slot))
			scales_begin(of, bits, i, scales_excess(of, row, i),
				scales_usual(of, row, i));
	}
}

/* Looks at one role over one length of time. */
static void
scales_look_at_role(struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, bool counts)
{
	const float *now = scales_row(s, LS_SCALES_NOW);
	struct scales_peers peers = { 0 };
	bool all = m > LS_SIXTEENTH;

	if (!counts)
		return;
	if (all)
		peers = scales_measure(s, length, list, m, SCALES_NONE);
	for (size_t i = 0; i < m; i++) {
		uint32_t slot = list[i];
		unsigned bit = 1u << length, row;
		double least = scales_least(s, slot);

		if (s->named[slot] == 0 && !((double)now[slot] > least))
			continue;
		if (!all)
			peers = scales_measure(s, length, list, m, slot);
		if (s->named[slot] != 0 && scales_is_over(s, length, slot, &peers)) {
			s->named[slot] = 0;
			scales_row(s, LS_SCALES_TURNED)[slot] = (float)s->units;
		}
		if ((s->named[slot] & bit) != 0 ||
			!((double)now[slot] > least))
			continue;
		row = scales_test(s, length, list, m, slot, &peers);
		if (row == LS_SCALES_ROWS ||
			(s->members != NULL && !scales_is_most(s, length, row, slot)))
			continue;
		if (row == LS_SCALES_NOW || row == LS_SCALES_SINCE)
			bit |= LS_SCALES_BORN;
		if (s->named[slot] == 0)
			scales_begin(s, bit, slot, scales_excess(s, row, slot),
				scales_usual(s, row, slot));
		s->named[slot] |= (uint16_t)bit;
		if (s->members != NULL)
			scales_name_members(s, bit, row, slot);
	}
}

/* The past of some more workers, of the lengths that are due. */
static void
scales_catch_up(struct ls_scales *s, size_t workers)
{
	size_t to = s->done + workers < s->count ? s->done + workers : s->count;
	double copy[LS_SCALES_PAST];

	for (unsigned length = 1; length < LS_SCALES_LENGTHS && s->done < to;
		length++) {
		float *before = scales_row(s, LS_SCALES_BEFORE + length);
		const float *window[LS_SCALES_PAST];
		uint64_t past = scales_past(s, length);

		for (uint64_t k = 0; k < past; k++)
			window[k] = scales_window(s, length, k + 1);
		for (size_t i = s->done; i < to && (s->due & 1u << length) != 0; i++) {
			size_t n = 0;

			for (uint64_t k = 0; k < past; k++)
				if (!isnan(window[k][i]))
					copy[n++] = (double)window[k][i];
			before[i] = n >= 2 ? (float)ls_stats_median(copy, n) : NAN;
		}
	}
	s->done = to;
}

/* Windows that end with this unit. */
static void
scales_end_windows(struct ls_scales *s)
{
	s->due = 0;
	s->done = 0;
	for (unsigned length = 1;
		length < LS_SCALES_LENGTHS && s->units % (1ull << length) == 0;
		length++) {
		float *window = scales_window(s, length, 0);
		const float *a = scales_window(s, length - 1, 0),
			    *b = scales_window(s, length - 1, 1);

		for (size_t i = 0; i < s->count; i++)
			window[i] = isnan(a[i]) ? b[i]
				: isnan(b[i])	? a[i]
						: (a[i] + b[i]) / 2;
		for (size_t i = 0; i < 2 * s->count; i++) {
			bool jump = i >= s->count;
			size_t slot = jump ? i - s->count : i;
			float *last = scales_shown(s, length, jump, 1) + slot,
			      *newest = scales_shown(s, length, jump, 2) + slot,
			      *shown = scales_shown(s, length, jump, 0) + slot;

			*shown = fmaxf(*shown, *last);
			*last = *newest;
			*newest = NAN;
		}
		s->due |= 1u << length;
	}
	scales_catch_up(s, s->count <= SCALES_AT_ONCE ? s->count : s->count / 4 + 1);
}

/* Looks at all roles over one length of time. */
static void
scales_look(struct ls_scales *s, unsigned length, bool between,
	const struct ls_blame_room *room)
{
	scales_means(s, length, between);
	for (uint32_t r = 0; r < room->role_count; r++)
		scales_look_at_role(s, length, &room->sorted[room->start[r]],
			room->start[r + 1] - room->start[r],
			scales_is_long(s, length, LS_SCALES_LEAST_S));
}

/* A unit ended, and its numbers are there: judges. */
static void
scales_judge(struct ls_scales *s, const struct ls_blame_room *room)
{
	scales_end_windows(s);
	for (unsigned length = 1; length < LS_SCALES_LENGTHS; length++) {
		uint64_t units = 1ull << length;

		if (s->units < units || (units > 4 && s->units % (units / 4) != 0))
			continue;
		scales_look(s, length, false, room);
	}
}

static void
scales_end_unit(struct ls_scales *s, const struct ls_blame_room *room)
{
	float *sum = scales_row(s, LS_SCALES_SUM),
	      *known = scales_row(s, LS_SCALES_KNOWN), *unit;

	s->data = 0;
	s->units++;
	unit = scales_window(s, 0, 0);
	for (size_t i = 0; i < s->count; i++) {
		unit[i] = known[i] > 0 ? sum[i] / known[i] : NAN;
		sum[i] = known[i] = 0;
	}
	scales_judge(s, room);
}

/* Median of the newest four steps; NaN unless half of them are known. */
static float
scales_datum(const struct ls_scales *s, size_t slot)
{
	double v[LS_SCALES_DATUM];
	size_t n = 0;

	for (unsigned k = 0; k < LS_SCALES_DATUM; k++) {
		float x = scales_row(s, LS_SCALES_STEP + k)[slot];

		if (!isnan(x))
			v[n++] = (double)x;
	}
	return 2 * n < LS_SCALES_DATUM ? NAN : (float)ls_stats_median(v, n);
}

/* In the middle of a datum. */
static void
scales_look_between(struct ls_scales *s, const struct ls_blame_room *room)
{
	float *newest = scales_row(s, LS_SCALES_BETWEEN + (unsigned)(s->units % 3));

	for (size_t i = 0; i < s->count; i++)
		newest[i] = scales_datum(s, i);
	scales_look(s, 1, true, room);
}

static void
scales_end_datum(struct ls_scales *s)
{
	float *sum = scales_row(s, LS_SCALES_SUM),
	      *known = scales_row(s, LS_SCALES_KNOWN);

	s->steps = 0;
	for (size_t i = 0; i < s->count; i++) {
		float x = scales_datum(s, i);

		sum[i] += isnan(x) ? 0 : x;
		known[i] += isnan(x) ? 0 : 1;
	}
}

/* What was learned does not compare with what comes. */
static void
scales_forget(struct ls_scales *s)
{
	for (size_t i = 0; i < s->count; i++)
		ls_scales_reset_worker(s, i);
	s->carried = s->carried && s->unit_data == 0; /* which was not known yet */
	s->units = s->data = 0;
}

void
ls_scales_step(struct ls_scales *s, const struct ls_blame *residual, size_t n,
	bool late, double step_s, double patience_s, const struct ls_blame_room *room)
{
	uint32_t want;
	float *x;

	LS_ASSERT(n <= s->count);
	if (!(step_s > 0) || n == 0)
		return;
	want = (uint32_t)fmax(1,
		round(LS_SCALES_LEAST_S / 2 / LS_SCALES_DATUM / fmax(step_s, 1e-6)));
	if (late != s->late)
		scales_forget(s); /* another residual: other numbers */
	s->late = late;
	s->step_s = step_s;
	s->patience_s = patience_s;
	s->seen_s += step_s * (double)n;
	if (s->done < s->count)
		scales_catch_up(s, s->count / 4 + 1);
	x = scales_row(s, LS_SCALES_STEP + s->steps);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((late ? residual[i].late_s : residual[i].wait_s) /
			step_s);
	if (++s->steps == LS_SCALES_DATUM / 2 && s->unit_data == 1)
		scales_look_between(s, room);
	if (s->steps < LS_SCALES_DATUM)
		return;
	scales_end_datum(s);
	if (s->unit_data == 0 || want > 2 * s->unit_data || 2 * want < s->unit_data) {
		scales_forget(s);
		s->unit_data = want;
	}
	if (++s->data >= s->unit_data)
		scales_end_unit(s, room);
}

void
ls_scales_groups(struct ls_scales *s, struct ls_scales *workers, const uint32_t *sorted,
	const uint32_t *start, const struct ls_blame_room *room)
{
	float *unit;
	const float *of;

	if (s->done < s->count)
		scales_catch_up(s, s->count / 4 + 1);
	if (workers->steps + workers->data > 0 || workers->units == 0)
		return;
	if (s->units + 1 != workers->units) /* some are new, or were forgotten */
		scales_forget(s);
	s->members = workers;
	s->members_length = 0;
	s->sorted = sorted;
	s->start = start;
	s->step_s = workers->step_s;
	s->patience_s = workers->patience_s;
	s->seen_s = workers->seen_s;
	s->unit_data = workers->unit_data;
	s->units = workers->units;
	of = scales_window(workers, 0, 0);
	unit = scales_window(s, 0, 0);
	for (size_t g = 0; g < s->count; g++) {
		size_t n = 0;

		for (uint32_t k = start[g]; k < start[g + 1]; k++)
			if (!isnan(of[sorted[k]]))
				workers->scratch[n++] = (double)of[sorted[k]];
		unit[g] = n >= LS_PEERS && 2 * n >= start[g + 1] - start[g]
			? (float)ls_stats_median(workers->scratch, n)
			: NAN;
	}
	scales_judge(s, room);
}

bool
ls_scales_is_silent(const struct ls_scales *s)
{
	return !(s->patience_s > 0) && s->seen_s < LS_SCALES_YOUNG_S;
}

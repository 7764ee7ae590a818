/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales_parts - what the files of scales.h share: scales.c has the windows, scales_peers.c what peers vary by,
 * scales_test.c who is slow.
 *
 * Owner, units, errors, limits, source: as scales.h.
 */
#ifndef LS_COLLECTOR_SCALES_PARTS_H
#define LS_COLLECTOR_SCALES_PARTS_H

#include "collector/engine/detect/scales.h"
#include "collector/engine/residual/stats.h"

/* no spread of means is less: three of it are worth no sentence (blocks of 16 steps of quiet pods repeat to 0.01 to
 * 0.07 %) */
#define LS_SCALES_FLOOR (LS_NOTHING / LS_SIGMAS)

/* Of a job against its own past: what blocks of the quietest pods repeat to. */
#define LS_SCALES_FLOOR_ALONE (LS_NOTHING / 10)

#define LS_SCALES_NONE SIZE_MAX
#define LS_SCALES_SAMPLE 32u /* of more, the past of so many is looked at */

static inline float *
ls_scales_row(const struct ls_scales *s, unsigned row)
{
	return s->row + row * s->capacity;
}

/* Window `back` before the newest that ended, of a length (0: a unit). */
static inline float *
ls_scales_window(const struct ls_scales *s, unsigned length, uint64_t back)
{
	uint64_t ended = s->units >> length;

	return ls_scales_row(s,
		LS_SCALES_WINDOW + length * LS_SCALES_PAST +
			(unsigned)((ended - 1 - back) % LS_SCALES_PAST));
}

/* What was shown over a length: excess, or jump. */
static inline float *
ls_scales_shown(const struct ls_scales *s, unsigned length, bool jump, unsigned age)
{
	return ls_scales_row(s, LS_SCALES_SHOWN + 3 * (2 * length + jump) + age);
}

/* Windows of a length in the past, before the newest that ended. */
static inline uint64_t
ls_scales_past(const struct ls_scales *s, unsigned length)
{
	uint64_t ended = s->units >> length;

	return ended == 0			 ? 0
		: ended - 1 < LS_SCALES_PAST - 1 ? ended - 1
						 : LS_SCALES_PAST - 1;
}

/* Sums over numbers: over the past windows of a peer, or over peers. */
struct ls_scales_sums {
	double n, square, fourth;
};

/* What windows of one length vary by in time. */
struct ls_scales_spread {
	double sigma; /* NaN = not known */
	double past; /* windows of a peer */
	double windows; /* beyond one for each peer, */
	double apart; /* so many of them, as a share, as if independent */
	double freedom;
};

/* What peers are like now: their median, and the sum of squares about it, clipped. */
struct ls_scales_middle {
	double n, middle, square;
};

/* What the peers of a worker, or of all of a role, are like over one length of time. */
struct ls_scales_peers {
	struct ls_scales_middle change, jump;
	struct ls_scales_spread in_time, jumps;
	float crowd[2]; /* ls_scales_crowd: of levels, and since earlier attempts */
};

/* Do the newest `units` begin before the worker was last named, or cleared? */
bool ls_scales_is_mixed(const struct ls_scales *s, uint64_t units, size_t slot);

/* Does a worker count as a peer? Not if it is named, or was within the windows that are kept. */
bool ls_scales_is_peer(const struct ls_scales *s, unsigned length, size_t slot,
	size_t skip);

/* Of a row over list[m], but not skip, nor those of `rack` that show half as much as skip; clipped at some spreads. Uses scratch. */
struct ls_scales_middle ls_scales_middle(const struct ls_scales *s, unsigned length,
	unsigned row, const uint32_t *list, size_t m, size_t skip, uint32_t rack,
	double spread);

/* The rack of a worker of list[m]; UINT32_MAX: it is not known, or fewer than LS_PEERS workers are of others. */
uint32_t ls_scales_rack(const struct ls_scales *s, const uint32_t *list, size_t m,
	size_t slot);

/* Are these two groups? If one takes longer, the other seems to take less. */
bool ls_scales_is_pair(const struct ls_scales *s);

/*
 * The middle of what workers of list[m] did in each past window. Each is compared with the median of the others, as one is in the newest
 * window: what all do together is no noise of one. When half of the workers become slow, the median of all moves, and with it the residual of
 * everybody. With LS_MANY workers or fewer: 0, as in the newest window. Residuals are against the median of the others already, and of few,
 * if one is above the others, they are below it by that.
 */
void ls_scales_common(const struct ls_scales *s, unsigned length, const uint32_t *list,
	size_t m, bool jump, struct ls_stats_middle ret_common[LS_SCALES_PAST]);

/* Of the past windows of one worker, from one on: less what is usual of it, or less the one before, and less the median of what
 * the others did (ls_scales_common); each is clipped at a limit. */
struct ls_scales_sums ls_scales_sums(const struct ls_scales *s, unsigned length,
	size_t slot, bool jump, uint64_t from, double limit,
	const struct ls_stats_middle *common);

/* What list[m] but skip are like over a length of time. */
struct ls_scales_peers ls_scales_measure(struct ls_scales *s, unsigned length,
	const uint32_t *list, size_t m, size_t skip);

/* In what share of their past windows were workers of other groups above the median of them all by `excess`? With few windows of this length: of a
 * shorter length, where the share is greater. Never 0: how rare the unseen is, is not known. ret_alone: the share of those workers that vary
 * independently. */
double ls_scales_rate(const struct ls_scales *s, unsigned length, bool jump,
	size_t slot, double excess, double *ret_alone);

/* So many are at or above this value of a row that it is the structure of the job, whatever racks they are in; NaN: there is none. */
float ls_scales_crowd(const struct ls_scales *s, const uint32_t *list, size_t m,
	unsigned row);

/* Would so many members of a group show this excess at the same time, by chance, more often than one finding may err? */
bool ls_scales_is_chance(const struct ls_scales *s, unsigned length, bool jump,
	size_t slot, double excess, unsigned members, unsigned late);

/* Is a window so long? Units are whole: to the nearest one. */
bool ls_scales_is_long(const struct ls_scales *s, unsigned length, double seconds);

/* The least rise that is looked for. Members of a slow group reach it one after the other, by chance: when the first of them
 * is named, half of it is enough for their group. */
double ls_scales_least(const struct ls_scales *s, size_t slot);

/* May a worker be slow over this length of time? Not if it would not be with peers that never vary in time; this is quickly
 * seen. Change and jump: what they are like now. */
bool ls_scales_is_possible(const struct ls_scales *s, unsigned length, size_t slot,
	const struct ls_scales_middle *change, const struct ls_scales_middle *jump);

/*
 * Is a worker slow over this length of time, and how does one see it? LS_SCALES_CHANGE: it is slower than before.
 * LS_SCALES_JUMP: it became so within the window. LS_SCALES_SINCE: it is slower than in earlier attempts of the job.
 * LS_SCALES_NOW: it is slower than its peers, from the first step. LS_SCALES_ROWS: it is not slow. The row holds the excess.
 */
unsigned ls_scales_test(const struct ls_scales *s, unsigned length,
	const uint32_t *list, size_t m, size_t slot, const struct ls_scales_peers *p);

/* Is a worker that is named nearer to what it was before than to what it was then, in a window since it was named? */
bool ls_scales_is_nearer(const struct ls_scales *s, unsigned length, size_t slot);

/*
 * And is it as before: is its drop since it was named as sure as a rise must be to name a worker? Of the longest window, and half as long a time
 * before it, being nearer is enough.
 */
bool ls_scales_is_over(const struct ls_scales *s, unsigned length, size_t slot,
	const struct ls_scales_peers *p);

#endif

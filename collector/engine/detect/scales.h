/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales - which worker is slower than what its peers vary by, over the same length of
 * time?
 *
 *   "Over its last n steps this worker took 4 % of a step longer than before. Means
 *    over n steps of its peers vary by 0.5 %, now and in the past: an eighth of that."
 *
 * One such sentence for every window length. There is no model of the noise: what peers
 * do over the same length of time is the noise. Loads that wander, come in bursts or
 * visit one host after the other make the means of long windows vary, and the test waits
 * longer by itself.
 *
 * Datum: the median of four steps, of the worker's residual over the step time: one bad
 * step is no evidence. A unit is a mean of data, about half of LS_SCALES_LEAST_S long; it is chosen anew, and all is forgotten, if the step time
 * halves or (not alone) doubles. Of a job of which four steps last for a minute, a
 * datum is one step, unless compilations made its first steps so long.
 * A window has 2, 4, ... 512 units; its past: LS_SCALES_PAST - 1 windows at most. Units are kept as the
 * windows of length 0.
 *
 *   change  the mean of the newest window, less the median of its past, against what its
 *           peers' windows varied by in the past (root mean square, without
 *           the noisiest sixteenth), and what their changes vary by now.
 *   level   the mean itself, slow from the first step: against what its peers' means vary
 *           by, and a prior that workers of a role differ by 1 % for good, worth four of them; and,
 *           like a change, against what windows vary by. Its past must show half of it; what it is slower by
 *           than that, but for noise, is a change.
 *   since   the mean less what was usual of the host in earlier attempts of the job, against what
 *           the same of its peers varies by, and a prior of half a percent. The median of two or more earlier windows must show half of it, and so
 * must its mean.
 *   jump    the mean of the first half of the window less that of as long a time just before, against
 *           what such means of its peers differ from the ones before them, in the past and now:
 *           where work wanders for longer than that, it is far less than what windows vary by. The
 *           second half only shows that it lasts. The worker must be a quarter as slow beside its
 *           peers, too.
 * Half of an onset in the middle of a datum is in that datum, and half in the next. So where a unit is one datum, the
 * shortest windows are looked at twice a unit, also by the medians of four steps that begin in the middle of the others.
 *
 * A worker is named if the tail of Student's t, with as many degrees of freedom as there
 * are peers' windows (fewer, but 10, where their kurtosis is high; windows that vary alike
 * count as fewer), is below one error rate; few peers or a short past make it careful by
 * that. A level is the same at each look: it has one error rate for the whole job, and as many degrees as there
 * are peers and the four of the prior. Looks at changes go on as long as the job does: when it has seen a host-week, the rate of a
 * look falls with its age, so that errors of a job add up to the logarithm of that. Where a
 * length has too few windows, the greatest spread of shorter ones is taken, as if it fell
 * with the quarter power of the length (white noise: the half).
 * Past windows that vary alike are more alike than like what comes: they are corrected for that, as
 * an AR(1).
 * Who was never named is compared with what it varied by itself, too, shrunk to that of its peers. Who is named,
 * or was in the windows that are kept, is nobody's peer: a slow rack hides no slow host.
 * A past window of a worker is compared with the median of the others, too, as the newest one is.
 * It stays named until the same test says that it is as before (ls_scales_is_over).
 * Groups of workers are compared in the same way (ls_scales_groups), and so is a whole job, with its own past (`alone`; pulse.h).
 * Three rules beside that:
 *   it lasts                every part of the window shows half of the excess;
 *   what others have shown  a worker is not named for an excess that two of the others
 *           (a sixteenth of them; of two workers the other) have shown over the same length before;
 *   patience while young    until a job has seen four host-hours nobody knows what is
 *           usual in it: only windows of `patience` and longer count; of an excess above 5 % of a
 *           step, as much shorter ones.
 *
 * Owner:   one job of the engine. Pure: time comes in, nothing goes out but the state.
 * Units:   ratios to the step time; seconds.
 * Errors:  -ENOMEM.
 * Limits:  LS_WORKERS_MAX workers or groups, 2.9 kB each; nothing is allocated by a step.
 * Source:  Student (1908); Lan and DeMets (1983) for a limit on errors that is shared out
 *          over all looks; Haar (1910) for the jump; independent windows of an AR(1): Bartlett
 *          (1946); variance components shrunk to their common value: Efron and
 *          Morris (1975). Constants and what they do: tests/MEASURED.md, "Noise that is
 *          not ours" (bench_noise.py).
 */
#ifndef LS_COLLECTOR_SCALES_H
#define LS_COLLECTOR_SCALES_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "collector/engine/detect/onset.h"
#include "collector/engine/params.h"
#include "collector/engine/residual/blame.h"

#define LS_SCALES_BORN 0x8000u /* bit of named: by its level */
#define LS_SCALES_PAST LS_DETECT_WARM /* windows of each length that are kept */

/* Rows of numbers, one a worker each: */
enum ls_scales_row {
	LS_SCALES_STEP, /* residuals of the steps of the datum so far */
	LS_SCALES_SUM = LS_SCALES_STEP + LS_SCALES_DATUM, /* data of the unit so far, */
	LS_SCALES_KNOWN, /* so many are known */
	LS_SCALES_BETWEEN, /* the newest three data that began in the middle of one */
	LS_SCALES_WINDOW = LS_SCALES_BETWEEN +
		3, /* windows of each length, the first of which is a unit */
	LS_SCALES_BEFORE = LS_SCALES_WINDOW + LS_SCALES_LENGTHS * LS_SCALES_PAST,
	/* of each length: greatest excess, and jump, before the last whole period, in it, and since. A period: one window, LS_SCALES_PATIENCE_S at
	 * least. */
	LS_SCALES_SHOWN = LS_SCALES_BEFORE + LS_SCALES_LENGTHS,
	/* when it was named: what it is slower by; what was usual of it; that, or what was usual
	 * over the longest windows, the lower */
	LS_SCALES_EXCESS = LS_SCALES_SHOWN + 6 * LS_SCALES_LENGTHS,
	LS_SCALES_USUAL,
	LS_SCALES_BELOW,
	LS_SCALES_TURNED, /* units until it was named, or was not any more */
	LS_SCALES_NOW, /* mean of the newest window, while it is looked at */
	LS_SCALES_SINCE, /* the same less what was usual in earlier attempts */
	LS_SCALES_CHANGE, /* less its past */
	LS_SCALES_LAST, /* mean of half as long a time just before */
	LS_SCALES_JUMP, /* what its first half is above that */
	LS_SCALES_LEAST, /* least of its parts */
	/* what was usual of its host in earlier attempts: stays if all else is forgotten */
	LS_SCALES_CARRIED,
	LS_SCALES_ROWS
};

struct ls_scales {
	float *row; /* LS_SCALES_ROWS of capacity numbers */
	uint16_t *named; /* a bit for each length, and LS_SCALES_BORN */
	double *scratch;
	const uint32_t *
		rack; /* number of the rack by worker; UINT32_MAX, or NULL: not known */
	struct ls_scales *members; /* if these are groups: the workers, else NULL; */
	const uint32_t *sorted, *start; /* these by group; */
	unsigned members_length; /* and the length of which their means are, 0: none */
	bool alone; /* there is one unit, a job, which is compared with its own past */
	size_t count, capacity;
	double seen_s; /* host-seconds */

	double step_s, patience_s; /* as of the newest step */
	bool late; /* residual: lateness, else wait */
	bool carried; /* something is known from earlier attempts, and compares */
	uint32_t steps, data; /* of the datum and the unit so far */
	uint32_t datum; /* steps of a datum */
	uint32_t unit_data; /* data of a unit; 0 = not decided */
	uint64_t units;
};

/* Frees what it holds, and can be used again. The residual and the unit stay, so that an attempt compares
 * with the one before. */
void ls_scales_fini(struct ls_scales *s);

/* Makes room for n workers; new ones are not known. -ENOMEM. */
int ls_scales_reserve(struct ls_scales *s, size_t n) LS_MUSTCHECK;

/* Forgets all of one worker (it moved to another host), or of all and how long they were seen. */
void ls_scales_reset_worker(struct ls_scales *s, size_t slot);
void ls_scales_reset(struct ls_scales *s);

/*
 * Takes one judged step: residual[n] as of blame.h and the roles of room; step_s is the
 * usual step time, patience_s how long a slowdown lasts that counts in a young job.
 */
void ls_scales_step(struct ls_scales *s, const struct ls_blame *residual, size_t n,
	bool late, double step_s, double patience_s, const struct ls_blame_room *room);

/*
 * Groups of workers are compared like workers: a unit of a group is the median of those of its members, of which LS_PEERS
 * at least, and half, must be known. To be called after each ls_scales_step of the workers. When a group is named over
 * a length of time, its members that show half of its excess over that are named, too.
 * sorted, start: workers by group (ls_blame_sort); room: groups, all of one role.
 */
void ls_scales_groups(struct ls_scales *s, struct ls_scales *workers,
	const uint32_t *sorted, const uint32_t *start,
	const struct ls_blame_room *room);

/* It was named before a restart: is named again. Bits as of named; by how much, what was usual, or the lower. */
void ls_scales_restore(struct ls_scales *s, size_t slot, unsigned bits, double excess,
	double usual, double below);

/* It is named no more. */
void ls_scales_clear(struct ls_scales *s, size_t slot);

/* Sets what was usual of a worker's host in earlier attempts of the job, NaN: not known. */
void ls_scales_carry(struct ls_scales *s, size_t slot, double usual);

/* What is usual of a worker, for the attempts to come: before it was named, if it is. A young job
 * does not know better than earlier attempts. NaN: not known. */
double ls_scales_usual(const struct ls_scales *s, size_t slot);

/* One of the rows above, of a worker. */
static inline double
ls_scales_said(const struct ls_scales *s, enum ls_scales_row row, size_t slot)
{
	return (double)s->row[row * s->capacity + slot];
}

/* What ls_scales_carry set, NaN if it does not compare. */
static inline double
ls_scales_carried(const struct ls_scales *s, size_t slot)
{
	return s->carried ? ls_scales_said(s, LS_SCALES_CARRIED, slot) : NAN;
}

/* How a worker that is named became slower, by its windows: in steps from now, so below 0. */
struct ls_onset ls_scales_began(const struct ls_scales *s, size_t slot);

/* Steps of a unit. */
static inline double
ls_scales_unit(const struct ls_scales *s)
{
	return (double)s->unit_data * (double)s->datum;
}

/* With a patience of 0 a young job is not judged by this test: nobody waits for it. */
bool ls_scales_is_silent(const struct ls_scales *s);

#endif

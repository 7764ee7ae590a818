/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/scales_parts.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/err.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
ls_scales_fini(struct ls_scales *s)
{
	free(s->row);
	free(s->named);
	free(s->scratch);
	*s = (struct ls_scales){
		.late = s->late, .datum = s->datum, .unit_data = s->unit_data
	};
}

void
ls_scales_reset_worker(struct ls_scales *s, size_t slot)
{
	LS_ASSERT(slot < s->capacity);
	for (unsigned r = 0; r < LS_SCALES_CARRIED; r++)
		ls_scales_row(s, r)[slot] =
			r == LS_SCALES_SUM || r == LS_SCALES_KNOWN ? 0 : NAN;
	s->named[slot] = 0;
}

void
ls_scales_reset(struct ls_scales *s)
{
	for (size_t i = 0; i < s->count; i++)
		ls_scales_reset_worker(s, i);
	s->seen_s = 0;
	s->units = s->steps = s->data = 0;
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
		memcpy(row + r * capacity, ls_scales_row(s, r), was * sizeof(*row));
	free(s->row);
	s->row = row;
	s->capacity = capacity;
	s->count = n;
	for (size_t i = was; i < capacity; i++)
		ls_scales_reset_worker(s, i);
	return 0;
}

/* What was usual of a worker over the longest windows of which that is known; NaN: of none. */
static float
scales_longest(const struct ls_scales *s, size_t slot)
{
	unsigned length = LS_SCALES_LENGTHS - 1;

	while (length > 0 && isnan(ls_scales_row(s, LS_SCALES_BEFORE + length)[slot]))
		length--;
	return ls_scales_row(s, LS_SCALES_BEFORE + length)[slot];
}

/* A worker is named. */
static void
scales_begin(struct ls_scales *s, unsigned bits, size_t slot, double excess,
	double usual)
{
	ls_scales_row(s, LS_SCALES_EXCESS)[slot] = (float)excess;
	ls_scales_row(s, LS_SCALES_USUAL)[slot] = (float)usual;
	ls_scales_row(s, LS_SCALES_BELOW)[slot] =
		fminf((float)usual, scales_longest(s, slot)); /* which may be NaN */
	ls_scales_row(s, LS_SCALES_TURNED)[slot] = (float)s->units;
	s->named[slot] |= (uint16_t)bits;
	for (unsigned r = 0; r < 6 * LS_SCALES_LENGTHS; r++)
		if (r % 3 > 0)
			ls_scales_row(s, LS_SCALES_SHOWN + r)[slot] = NAN;
}

void
ls_scales_restore(struct ls_scales *s, size_t slot, unsigned bits, double excess,
	double usual, double below)
{
	scales_begin(s, bits, slot, excess, usual);
	ls_scales_row(s, LS_SCALES_BELOW)[slot] = (float)below;
}

void
ls_scales_clear(struct ls_scales *s, size_t slot)
{
	s->named[slot] = 0;
	ls_scales_row(s, LS_SCALES_TURNED)[slot] = (float)s->units;
}

void
ls_scales_carry(struct ls_scales *s, size_t slot, double usual)
{
	ls_scales_row(s, LS_SCALES_CARRIED)[slot] = (float)usual;
	s->carried = s->carried || !isnan(usual);
}

double
ls_scales_usual(const struct ls_scales *s, size_t slot)
{
	double carried = ls_scales_carried(s, slot),
	       usual = (double)scales_longest(s, slot);
	bool young = !isnan(carried) && s->seen_s < LS_SCALES_YOUNG_S;

	if (s->named[slot] != 0)
		return ls_scales_said(s, LS_SCALES_USUAL, slot);
	return young || isnan(usual) ? carried : usual;
}

/* Newest windows of a length in a row that show a part of the worker's excess. */
static uint64_t
scales_lasted(const struct ls_scales *s, unsigned length, size_t slot)
{
	double least = ls_scales_said(s, LS_SCALES_USUAL, slot) +
		LS_QUARTER * ls_scales_said(s, LS_SCALES_EXCESS, slot);
	uint64_t past = ls_scales_past(s, length), k = 0;

	while (k <= past && (double)ls_scales_window(s, length, k)[slot] > least)
		k++;
	return k;
}

struct ls_onset
ls_scales_began(const struct ls_scales *s, size_t slot)
{
	unsigned length = LS_SCALES_LENGTHS - 1, least = s->alone ? 0 : 1;
	uint64_t past, looked;
	double v[LS_SCALES_PAST], window, ended,
		usual = ls_scales_said(s, LS_SCALES_USUAL, slot),
		excess = ls_scales_said(s, LS_SCALES_EXCESS, slot);
	struct ls_onset o;
	size_t n = 0;

	while (length > 1 && (s->named[slot] & 1u << length) == 0)
		length--;
	/* twice as long as it has lasted, in the shortest windows that are kept so long, or all are */
	looked = 2 * (scales_lasted(s, length, slot) + 1);
	while (length > least &&
		(2 * looked < LS_SCALES_PAST ||
			s->units >> (length - 1) < LS_SCALES_PAST)) {
		looked *= 2;
		length--;
	}
	looked = looked < LS_ONSET_MIN ? LS_ONSET_MIN : looked;
	past = ls_scales_past(s, length);
	looked = looked < past ? looked : past;
	/* less than what was usual is no onset: others were slow then, who were not named yet. Nor is a pause of one step */
	for (uint64_t k = looked; k-- > 0;)
		if (!isnan(ls_scales_window(s, length, k)[slot]))
			v[n++] = fmin(fmax((double)ls_scales_window(s, length, k)[slot],
					      usual),
				s->datum == 1 ? usual + 2 * excess : INFINITY);
	o = ls_onset_of(v, n);
	window = (double)(1ull << length) * ls_scales_unit(s);
	ended = s->steps + s->datum * s->data +
		(double)(s->units % (1ull << length)) * ls_scales_unit(s);
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
 * above the time just before. Between: each datum begins in the middle of one of the others. */
static void
scales_means(struct ls_scales *s, unsigned length, bool between)
{
	float *now = ls_scales_row(s, LS_SCALES_NOW),
	      *since = ls_scales_row(s, LS_SCALES_SINCE),
	      *change = ls_scales_row(s, LS_SCALES_CHANGE),
	      *jump = ls_scales_row(s, LS_SCALES_JUMP),
	      *previous = ls_scales_row(s, LS_SCALES_LAST),
	      *least = ls_scales_row(s, LS_SCALES_LEAST),
	      *last = ls_scales_shown(s, length, false, 2),
	      *leapt = ls_scales_shown(s, length, true, 2);
	const float *before = ls_scales_row(s, LS_SCALES_BEFORE + length), *part[6];
	unsigned parts = length == 1 ? 2 : 4, half = parts / 2;
	float lasts;

	for (unsigned k = 0; k < parts + half; k++)
		part[k] = between
			? ls_scales_row(s,
				  LS_SCALES_BETWEEN +
					  (unsigned)((s->units + 3 - k) % 3))
			: ls_scales_window(s, length == 1 ? 0 : length - 2, k);
	for (size_t i = 0; i < s->count; i++) {
		now[i] = scales_mean(part, parts, i);
		since[i] = now[i] - (float)ls_scales_carried(s, i);
		change[i] = now[i] - before[i];
		previous[i] = scales_mean(part + parts, half, i);
		jump[i] = scales_mean(part + half, half, i) - previous[i];
		least[i] = part[0][i];
		for (unsigned k = 1; k < parts; k++)
			least[i] = fminf(least[i], part[k][i]);
		if (!ls_scales_is_peer(s, length, i, LS_SCALES_NONE))
			continue; /* a fault is no usual disturbance */
		/* nor is a pause of one long step */
		lasts = s->datum == 1 ? least[i] : INFINITY;
		last[i] = fmaxf(last[i],
			s->alone ? fminf(change[i], lasts - before[i])
				 : fmaxf(now[i], change[i]));
		leapt[i] = fmaxf(leapt[i], fminf(jump[i], lasts - previous[i]));
	}
}

/* Do most members of a group show half of its excess over this length, each by itself, and not by chance? */
static bool
scales_is_most(struct ls_scales *s, unsigned length, unsigned row, size_t slot)
{
	const float *of = ls_scales_row(s->members, row);
	double least = LS_HALF * ls_scales_said(s, row, slot);
	unsigned members = 0, late = 0;

	if (s->members_length != length)
		scales_means(s->members, length, false);
	s->members_length = length;
	for (uint32_t k = s->start[slot]; k < s->start[slot + 1]; k++) {
		members += isnan(of[s->sorted[k]]) ? 0 : 1;
		late += (double)of[s->sorted[k]] > least;
	}
	return late >= LS_MOST * members &&
		!ls_scales_is_chance(s, length, row == LS_SCALES_JUMP, slot, least,
			members, late);
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
	size_t m)
{
	const float *now = ls_scales_row(s, LS_SCALES_NOW);
	struct ls_scales_peers peers = { 0 };
	struct ls_scales_middle change, jump;
	bool all = m > LS_SIXTEENTH || s->alone, looked = false, measured = false;

	for (size_t i = 0; i < m; i++) {
		uint32_t slot = list[i];
		size_t skip = all ? LS_SCALES_NONE : slot;
		unsigned bit = 1u << length, row;
		/* above the middle of its peers, if it has any */
		bool above = s->alone || (double)now[slot] > ls_scales_least(s, slot),
		     nearer = ls_scales_is_nearer(s, length, slot);

		if (!nearer && ((s->named[slot] & bit) != 0 || !above))
			continue;
		if (!all || !looked) {
			change = ls_scales_middle(s, length, LS_SCALES_CHANGE, list, m,
				skip, UINT32_MAX, LS_SCALES_FLOOR);
			jump = ls_scales_middle(s, length, LS_SCALES_JUMP, list, m,
				skip, UINT32_MAX, LS_SCALES_FLOOR);
		}
		looked = true;
		if (!nearer && !ls_scales_is_possible(s, length, slot, &change, &jump))
			continue;
		if (!all || !measured)
			peers = ls_scales_measure(s, length, list, m, skip);
		measured = true;
		if (nearer && ls_scales_is_over(s, length, slot, &peers))
			ls_scales_clear(s, slot);
		if ((s->named[slot] & bit) != 0 || !above)
			continue;
		row = ls_scales_test(s, length, list, m, slot, &peers);
		if (row == LS_SCALES_ROWS ||
			(s->members != NULL && !scales_is_most(s, length, row, slot)))
			continue;
		if (s->named[slot] == 0) {
			if (row == LS_SCALES_NOW || row == LS_SCALES_SINCE)
				bit |= LS_SCALES_BORN;
			scales_begin(s, bit, slot, scales_excess(s, row, slot),
				scales_usual(s, row, slot));
		}
		s->named[slot] |= (uint16_t)bit;
		if (s->members != NULL)
			scales_name_members(s, bit, row, slot);
	}
}

/* The past of the windows of a length. */
static void
scales_before(struct ls_scales *s, unsigned length)
{
	float *before = ls_scales_row(s, LS_SCALES_BEFORE + length);
	const float *window[LS_SCALES_PAST];
	uint64_t past = ls_scales_past(s, length);
	double copy[LS_SCALES_PAST];

	for (uint64_t k = 0; k < past; k++)
		window[k] = ls_scales_window(s, length, k + 1);
	for (size_t i = 0; i < s->count; i++) {
		size_t n = 0;

		for (uint64_t k = 0; k < past; k++)
			if (!isnan(window[k][i]))
				copy[n++] = (double)window[k][i];
		before[i] = n >= 2 ? (float)ls_stats_median(copy, n) : NAN;
		/* a pause may be in half of a few windows */
		if (s->alone && length > 0 && n < LS_MANY)
			before[i] = ls_scales_row(s, LS_SCALES_BEFORE + length - 1)[i];
	}
}

/* Windows that end with this unit. */
static void
scales_end_windows(struct ls_scales *s)
{
	unsigned lag = 1;

	while (lag + 1 < LS_SCALES_LENGTHS &&
		!ls_scales_is_long(s, lag, LS_SCALES_PATIENCE_S))
		lag++;
	if (s->alone) /* that of units is wanted for a job only */
		scales_before(s, 0);
	for (unsigned length = 1;
		length < LS_SCALES_LENGTHS && s->units % (1ull << length) == 0;
		length++) {
		float *window = ls_scales_window(s, length, 0);
		const float *a = ls_scales_window(s, length - 1, 0),
			    *b = ls_scales_window(s, length - 1, 1);

		for (size_t i = 0; i < s->count; i++)
			window[i] = isnan(a[i]) ? b[i]
				: isnan(b[i])	? a[i]
						: (a[i] + b[i]) / 2;
		for (size_t i = 0; i < 2 * s->count && s->units % (1ull << lag) == 0;
			i++) {
			bool jump = i >= s->count;
			size_t slot = jump ? i - s->count : i;
			float *last = ls_scales_shown(s, length, jump, 1) + slot,
			      *newest = ls_scales_shown(s, length, jump, 2) + slot,
			      *shown = ls_scales_shown(s, length, jump, 0) + slot;

			*shown = fmaxf(*shown, *last);
			*last = *newest;
			*newest = NAN;
		}
		scales_before(s, length);
	}
}

/* Looks at all roles over one length of time. */
static void
scales_look(struct ls_scales *s, unsigned length, bool between,
	const struct ls_blame_room *room)
{
	scales_means(s, length, between);
	if (!ls_scales_is_long(s, length, LS_SCALES_LEAST_S))
		return; /* what it shows is kept, and nobody is named */
	for (uint32_t r = 0; r < room->role_count; r++)
		scales_look_at_role(s, length, &room->sorted[room->start[r]],
			room->start[r + 1] - room->start[r]);
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
	float *sum = ls_scales_row(s, LS_SCALES_SUM),
	      *known = ls_scales_row(s, LS_SCALES_KNOWN), *unit;

	s->data = 0;
	s->units++;
	unit = ls_scales_window(s, 0, 0);
	for (size_t i = 0; i < s->count; i++) {
		unit[i] = known[i] > 0 ? sum[i] / known[i] : NAN;
		sum[i] = known[i] = 0;
	}
	scales_judge(s, room);
}

/* Median of the steps of a datum; NaN unless half of them are known. */
static float
scales_datum(const struct ls_scales *s, size_t slot)
{
	double v[LS_SCALES_DATUM];
	size_t n = 0;

	for (unsigned k = 0; k < s->datum; k++) {
		float x = ls_scales_row(s, LS_SCALES_STEP + k)[slot];

		if (!isnan(x))
			v[n++] = (double)x;
	}
	return n == 0 || 2 * n < s->datum ? NAN : (float)ls_stats_median(v, n);
}

/* In the middle of a datum. */
static void
scales_look_between(struct ls_scales *s, const struct ls_blame_room *room)
{
	float *newest = ls_scales_row(s, LS_SCALES_BETWEEN + (unsigned)(s->units % 3));

	for (size_t i = 0; i < s->count; i++)
		newest[i] = scales_datum(s, i);
	scales_look(s, 1, true, room);
}

static void
scales_end_datum(struct ls_scales *s)
{
	float *sum = ls_scales_row(s, LS_SCALES_SUM),
	      *known = ls_scales_row(s, LS_SCALES_KNOWN);

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
	/* compilations made its first steps long */
	if (s->datum == 1 &&
		LS_SCALES_DATUM * step_s <
			LS_SCALES_PATIENCE_S * (s->units < LS_MANY ? 1 : LS_HALF)) {
		scales_forget(s);
		s->unit_data = 0;
	}
	/* where four steps last for a minute, a job counts each of them; workers have peers, who say more */
	if (s->unit_data == 0 || s->datum == 0)
		s->datum = s->alone && LS_SCALES_DATUM * step_s >= LS_SCALES_PATIENCE_S
			? 1
			: LS_SCALES_DATUM;
	want = (uint32_t)fmax(1,
		round(LS_SCALES_LEAST_S / 2 / s->datum / fmax(step_s, 1e-6)));
	if (late != s->late)
		scales_forget(s); /* another residual: other numbers */
	s->late = late;
	s->step_s = step_s;
	s->patience_s = patience_s;
	s->seen_s += step_s * (double)n;
	x = ls_scales_row(s, LS_SCALES_STEP + s->steps);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((late ? residual[i].late_s : residual[i].wait_s) /
			step_s);
	if (++s->steps == s->datum / 2 && s->unit_data == 1)
		scales_look_between(s, room);
	if (s->steps < s->datum)
		return;
	scales_end_datum(s);
	if (s->unit_data == 0 &&
		s->alone) /* its step time needs no other to compare with */
		s->unit_data = want;
	if (s->unit_data == 0 || want > 2 * s->unit_data ||
		(2 * want < s->unit_data && !s->alone)) {
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
	s->datum = workers->datum;
	s->unit_data = workers->unit_data;
	s->units = workers->units;
	of = ls_scales_window(workers, 0, 0);
	unit = ls_scales_window(s, 0, 0);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/residual/blame.h"
#include "collector/engine/residual/stats.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int
ls_blame_reserve(struct ls_blame_room *room, size_t n)
{
	if (n <= room->capacity)
		return 0;
	if (ls_mem_resize((void **)&room->a, 4 * n, sizeof(*room->a)) != 0)
		return -ENOMEM;
	room->b = room->a + n;
	room->c = room->a + 2 * n;
	room->d = room->a + 3 * n;
	if (ls_mem_resize((void **)&room->index, 3 * n + 1, sizeof(*room->index)) != 0)
		return -ENOMEM;
	room->sorted = room->index + n;
	room->start = room->index + 2 * n;
	room->role_count = 0; /* to be grouped again */
	room->capacity = n;
	return 0;
}

void
ls_blame_fini(struct ls_blame_room *room)
{
	free(room->a);
	free(room->index);
	memset(room, 0, sizeof(*room));
}

void
ls_blame_sort(uint32_t *sorted, uint32_t *start, const uint32_t *group,
	uint32_t group_count, size_t n)
{
	memset(start, 0, (group_count + 1) * sizeof(*start));
	for (size_t i = 0; i < n; i++)
		if (group[i] < group_count)
			start[group[i] + 1]++;
	for (uint32_t g = 0; g < group_count; g++)
		start[g + 1] += start[g];
	for (size_t i = 0; i < n; i++)
		if (group[i] < group_count)
			sorted[start[group[i]]++] = (uint32_t)i;
	/* each moved on to where the next begins */
	for (uint32_t g = group_count; g > 0; g--)
		start[g] = start[g - 1];
	start[0] = 0;
}

void
ls_blame_group(struct ls_blame_room *room, const uint32_t *role, uint32_t role_count,
	size_t n)
{
	LS_ASSERT(role_count <= n && n <= room->capacity);
	ls_blame_sort(room->sorted, room->start, role, role_count, n);
	room->role_count = role_count;
}

/* What of a worker is compared: its numbers, NaN where there is none. */
enum blame_field { BLAME_ENTER, BLAME_EXIT, BLAME_WAIT, BLAME_OWN, BLAME_FIELDS };

static void
blame_fields_of(const struct ls_cell *c, bool exits, double ret_v[BLAME_FIELDS])
{
	/* below 2^53: exact */
	ret_v[BLAME_ENTER] = c->has_enter ? (double)c->enter_us : NAN;
	ret_v[BLAME_EXIT] = exits && c->has_enter ? (double)c->exit_us : NAN;
	ret_v[BLAME_WAIT] = c->has_wait ? (double)c->wait_s : NAN;
	ret_v[BLAME_OWN] = (double)c->own_s;
}

/* value - median of the others, for the workers listed in index[0..m-1]: every cell is
 * read twice, not once a number. Who is named counts only if too few others are there. */
static void
blame_compare(struct ls_blame_room *room, const struct ls_cell *cells,
	const uint32_t *index, size_t m, bool exits, const uint16_t *named,
	struct ls_blame *residual)
{
	double *const values[BLAME_FIELDS] = { room->a, room->b, room->c, room->d };
	struct ls_stats_middle middle[BLAME_FIELDS];
	size_t known[BLAME_FIELDS] = { 0 }, well = 0;
	double v[BLAME_FIELDS];
	bool all;

	for (size_t i = 0; i < m; i++)
		well += named[index[i]] == 0;
	all = well < LS_PEERS;
	for (size_t i = 0; i < m; i++) {
		if (!all && named[index[i]] != 0)
			continue;
		blame_fields_of(&cells[index[i]], exits, v);
		for (size_t f = 0; f < BLAME_FIELDS; f++)
			if (!isnan(v[f]))
				values[f][known[f]++] = v[f];
	}
	for (size_t f = 0; f < BLAME_FIELDS; f++)
		if (known[f] >= 2)
			ls_stats_middle(values[f], known[f], &middle[f]);
	for (size_t i = 0; i < m; i++) {
		struct ls_blame *r = &residual[index[i]];
		bool counts = all || named[index[i]] == 0;

		blame_fields_of(&cells[index[i]], exits, v);
		for (size_t f = 0; f < BLAME_FIELDS; f++)
			v[f] = known[f] < 2 ? NAN
				: counts
				? v[f] - ls_stats_median_without(&middle[f], v[f])
				: v[f] - ls_stats_median_of(&middle[f]);
		r->late_s = v[BLAME_ENTER] * 1e-6;
		r->exit_s = v[BLAME_EXIT] * 1e-6;
		r->wait_s = -v[BLAME_WAIT];
		r->own_s = v[BLAME_OWN];
	}
}

static void
blame_step_totals(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	struct ls_blame_step *step)
{
	size_t used = 0, waits = 0, exits = 0;
	struct ls_stats_best arrival[2] = { { -INFINITY, SIZE_MAX },
		{ -INFINITY, SIZE_MAX } };
	double joined = -INFINITY, least = INFINITY, sum = 0;

	*step = (struct ls_blame_step){ .net = { NAN, NAN, NAN },
		.wait_min_s = NAN,

		.last = SIZE_MAX,
		.second = SIZE_MAX,
		.costs = SIZE_MAX };
	LS_EACH (const struct ls_cell, c, cells, n) {
		if (!c->present)
			continue;
		room->a[used++] = (double)c->duration_s;
		sum += (double)c->duration_s;
		room->d[used - 1] = (double)c->begin_us;
		if (c->has_wait) {
			room->b[waits++] = (double)c->wait_s;
			if (!((double)c->wait_s >= step->wait_min_s))
				step->wait_min_s = (double)c->wait_s;
		}
		if (!c->has_enter)
			continue;
		room->c[exits++] = (double)c->exit_us;
		joined = fmax(joined,
			c->has_second ? (double)c->exit_us - (double)c->last_s * 1e6
				      : (double)c->enter_us);
		least = fmin(least, (double)c->last_s);
		ls_stats_best(arrival, (double)c->enter_us, (size_t)(c - cells));
	}
	step->used = used;
	step->mean_s = used == 0 ? NAN : sum / (double)used;
	step->begin_us = ls_stats_median(room->d, used);
	step->duration_s = ls_stats_median(room->a, used);
	step->wait_median_s = ls_stats_median(room->b, waits);
	if (exits < 2)
		return;
	step->last = arrival[0].at;
	step->second = arrival[1].at;
	step->net.collective_s = (ls_stats_median(room->c, exits) - joined) * 1e-6;
	step->net.wait_min_s = least;
	step->gap_s = (arrival[0].v - arrival[1].v) * 1e-6;
}

/* Of one slice, whose workers are listed in slots[0..m-1]. */
static struct ls_blame_net
blame_slice(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	const uint32_t *slots, size_t m)
{
	struct ls_blame_net net = { NAN, NAN, NAN };
	double last = -INFINITY, least = INFINITY;

	for (size_t i = 0; i < m; i++) {
		const struct ls_cell *c = slots[i] < n ? &cells[slots[i]] : NULL;
		double first_us;

		if (c == NULL || !c->present || !c->has_enter || !c->has_second)
			return net;
		first_us = (double)c->first_s * 1e6;
		room->a[i] = (double)c->enter_us + first_us;
		last = fmax(last, (double)c->enter_us);
		least = fmin(least, (double)c->first_s);
	}
	if (m < 2)
		return net;
	net.collective_s = (ls_stats_median(room->a, m) - last) * 1e-6;
	net.wait_min_s = least;
	return net;
}

void
ls_blame_slices(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	const uint32_t *sorted, const uint32_t *start, uint32_t slice_count,
	struct ls_blame_net *net)
{
	for (uint32_t s = 0; s < slice_count; s++)
		net[s] = blame_slice(room, cells, n, &sorted[start[s]],
			start[s + 1] - start[s]);
}

void
ls_blame_judge(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	bool exits, const uint16_t *named, struct ls_blame *residual,
	struct ls_blame_step *ret_step)
{
	blame_step_totals(room, cells, n, ret_step);
	for (size_t i = 0; i < n; i++)
		residual[i] = (struct ls_blame){ NAN, NAN, NAN, NAN,
			cells[i].present ? (double)cells[i].send_s : NAN,
			cells[i].send_rank };
	for (uint32_t r = 0; r < room->role_count; r++) {
		size_t m = 0;

		for (size_t i = room->start[r]; i < room->start[r + 1]; i++)
			if (room->sorted[i] < n && cells[room->sorted[i]].present)
				room->index[m++] = room->sorted[i];
		if (m >= 2)
			blame_compare(room, cells, room->index, m, exits, named,
				residual);
	}
}

bool
ls_blame_is_apart(const struct ls_cell *cells, size_t n,
	const struct ls_blame_step *step, double err_s)
{
	double limit_s =
		LS_APART_STEPS * step->duration_s + LS_SIGMAS * M_SQRT2 * err_s;
	size_t away = 0;

	LS_EACH (const struct ls_cell, c, cells, n)
		away += c->present &&
			fabs((double)c->begin_us - step->begin_us) * 1e-6 > limit_s;
	return away > 0 && 2 * away >= step->used;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_replay.h"
#include "proto/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Inner loops take so many lanes at once: a fixed number becomes vectors without -O3
 * (bench_whatif: 4 beats 2, 8, 16). */
#define REPLAY_VECTOR 4u

struct ls_whatif_replay {
	const struct ls_whatif_trace *t;
	const struct ls_whatif_graph *g;
	size_t block; /* lanes at a time: whole steps */
	size_t width; /* of a row of lanes, a multiple of REPLAY_VECTOR */
	/* slot x 2 rows: the lanes, and beside them the ideal dp of each */
	double *slots;
	double *start; /* 2 rows */
	double *scratch; /* 1 row: times of an operation of mixed origin */
};

/* What one turn works on. */
struct replay_turn {
	const struct ls_whatif_plan *plan;
	const double *ideal_s;
	size_t first, count; /* lanes */
	bool pair; /* the second row of each slot is used, too */
};

int
ls_whatif_replay_new(const struct ls_whatif_trace *t, const struct ls_whatif_graph *g,
	struct ls_whatif_replay **ret_replay)
{
	struct ls_whatif_replay *r = calloc(1, sizeof(*r));
	size_t steps = LS_WHATIF_BLOCK_LANES / t->dp_count;

	if (r == NULL)
		return -ENOMEM;
	if (steps == 0)
		steps = 1;
	if (steps > t->step_count)
		steps = t->step_count;
	r->t = t;
	r->g = g;
	r->block = steps * t->dp_count;
	r->width = (r->block + REPLAY_VECTOR - 1) / REPLAY_VECTOR * REPLAY_VECTOR;
	r->slots = calloc(2 * (size_t)g->slot_count, r->width * sizeof(double));
	r->start = calloc(2, r->width * sizeof(double));
	r->scratch = calloc(r->width, sizeof(double));
	if (r->slots == NULL || r->start == NULL || r->scratch == NULL) {
		ls_whatif_replay_free(r);
		return -ENOMEM;
	}
	*ret_replay = r;
	return 0;
}

void
ls_whatif_replay_free(struct ls_whatif_replay *r)
{
	if (r == NULL)
		return;
	free(r->slots);
	free(r->start);
	free(r->scratch);
	free(r);
}

/* --- rows of lanes; n is rounded up to whole vectors: rows of ours have room for that --- */

static void
replay_push_back(double *restrict to, const double *restrict a, size_t n)
{
	for (size_t i = 0; i < n; i += REPLAY_VECTOR) {
		for (size_t j = 0; j < REPLAY_VECTOR; j++)
			to[i + j] = a[i + j] > to[i + j] ? a[i + j] : to[i + j];
	}
}

static void
replay_add_constant(double *restrict to, const double *restrict start, double s,
	size_t n)
{
	for (size_t i = 0; i < n; i += REPLAY_VECTOR) {
		for (size_t j = 0; j < REPLAY_VECTOR; j++)
			to[i + j] = start[i + j] + s;
	}
}

/* own may be a row of the trace, which ends with its last lane: n is not rounded. */
static void
replay_add(double *restrict to, const double *restrict start,
	const double *restrict own, size_t n)
{
	size_t i = 0;

	for (; i + REPLAY_VECTOR <= n; i += REPLAY_VECTOR) {
		for (size_t j = 0; j < REPLAY_VECTOR; j++)
			to[i + j] = start[i + j] + own[i + j];
	}
	for (; i < n; i++)
		to[i] = start[i] + own[i];
}

/* All dp of a step get the latest of them. */
static void
replay_across(double *to, const double *from, size_t n, size_t dp_count)
{
	for (size_t lane = 0; lane < n; lane += dp_count) {
		double latest = from[lane];

		for (size_t i = lane + 1; i < lane + dp_count; i++)
			latest = from[i] > latest ? from[i] : latest;
		for (size_t i = lane; i < lane + dp_count; i++)
			to[i] = latest;
	}
}

/* --- one node ------------------------------------------------------------- */

/* Where the ends of an operation are held. */
static double *
replay_slot(const struct ls_whatif_replay *r, uint32_t k, size_t row)
{
	return r->slots + (2 * (size_t)r->g->vertices[k].slot + row) * r->width;
}

/* When the node can begin, by lane: the latest of what it waits for. May be a slot
 * itself. */
static const double *
replay_start(struct ls_whatif_replay *r, uint32_t edge, size_t row, size_t n)
{
	const struct ls_whatif_edge *edges = r->g->edges;
	double *start = r->start + row * r->width;
	const double *end;

	if (edge == LS_WHATIF_NONE) {
		memset(start, 0, n * sizeof(*start));
		return start;
	}
	end = replay_slot(r, edges[edge].from, row);
	if (edges[edge].next == LS_WHATIF_NONE)
		return end;
	memcpy(start, end, n * sizeof(*start));
	while ((edge = edges[edge].next) != LS_WHATIF_NONE)
		replay_push_back(start, replay_slot(r, edges[edge].from, row), n);
	return start;
}

/* Whether this operation takes its own times, and if a part of the workers does not,
 * those of all. */
static const double *
replay_times(struct ls_whatif_replay *r, const struct replay_turn *turn, uint32_t k)
{
	const double *own = r->t->duration_s + k * r->t->lane_count + turn->first;
	const uint8_t *mended = turn->plan->mended;
	size_t dp_count = r->t->dp_count;
	if (turn->plan->own[k] == 0)
		return NULL;
	if (mended == NULL)
		return own;
	mended += (size_t)r->t->ops[k].stage * dp_count;
	if (memchr(mended, 1, dp_count) == NULL)
		return own;
	for (size_t lane = 0; lane < turn->count; lane += dp_count) {
		for (size_t dp = 0; dp < dp_count; dp++)
			r->scratch[lane + dp] =
				mended[dp] != 0 ? turn->ideal_s[k] : own[lane + dp];
	}
	return r->scratch;
}

static void
replay_end(struct ls_whatif_replay *r, const struct replay_turn *turn, uint32_t k,
	const double *start, const double *start_ideal, size_t n)
{
	double *end = replay_slot(r, k, 0);
	const double *times = replay_times(r, turn, k);

	if (times == NULL)
		replay_add_constant(end, start, turn->ideal_s[k], n);
	else
		replay_add(end, start, times, turn->count);
	if (turn->pair)
		replay_add_constant(end + r->width, start_ideal, turn->ideal_s[k], n);
}

static const double *
replay_node(struct ls_whatif_replay *r, const struct replay_turn *turn, uint32_t node)
{
	const struct ls_whatif_vertex *v = r->g->vertices;
	size_t n = (turn->count + REPLAY_VECTOR - 1) / REPLAY_VECTOR * REPLAY_VECTOR;
	const double *start = replay_start(r, v[node].edge, 0, n), *ideal = NULL;

	if (turn->pair)
		ideal = replay_start(r, v[node].edge, 1, n);
	if (v[node].across && turn->pair) {
		if (start != r->start)
			memcpy(r->start, start, n * sizeof(*start));
		replay_push_back(r->start, ideal, n);
		start = ideal = r->start;
	} else if (v[node].across && !turn->plan->apart) {
		replay_across(r->start, start, turn->count, r->t->dp_count);
		start = r->start;
	}
	/* the step's end is no operation */
	for (uint32_t k = node; k < r->t->op_count; k = v[k].next)
		replay_end(r, turn, k, start, ideal, n);
	return start;
}

/* --- all ------------------------------------------------------------------ */

static void
replay_block(struct ls_whatif_replay *r, const struct replay_turn *turn,
	double *ret_step_s)
{
	const double *start = r->start;
	size_t dp_count = r->t->dp_count;

	for (uint32_t i = 0; i < r->g->node_count; i++)
		start = replay_node(r, turn, r->g->order[i]);
	/* the last node is the step's end, the same in all dp unless they stand apart
	 */
	if (turn->plan->apart) {
		memcpy(ret_step_s + turn->first, start, turn->count * sizeof(*start));
		return;
	}
	for (size_t lane = 0; lane < turn->count; lane += dp_count)
		ret_step_s[(turn->first + lane) / dp_count] = start[lane];
}

void
ls_whatif_replay_run(struct ls_whatif_replay *r, const struct ls_whatif_plan *plan,
	const double *ideal_s, double *ret_step_s)
{
	struct replay_turn turn = { .plan = plan,
		.ideal_s = ideal_s,
		.pair = plan->apart && r->t->dp_count > 1 };

	for (; turn.first < r->t->lane_count; turn.first += turn.count) {
		turn.count = r->t->lane_count - turn.first;
		if (turn.count > r->block)
			turn.count = r->block;
		replay_block(r, &turn, ret_step_s);
	}
}

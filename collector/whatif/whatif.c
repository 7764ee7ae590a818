/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif.h"
#include "collector/engine/residual/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A transfer that ends so long before the last of its group began is a clock that is
 * off: it took nothing. */
#define WHATIF_CLOCK_SLACK_S 0.010
/* The share of workers that W is. */
#define WHATIF_WORST_PERCENT 3u

enum whatif_mean { WHATIF_MEAN, WHATIF_MEDIAN };

static const struct {
	const char *part;
	enum whatif_mean reference;
} whatif_types[] = {
#define LS_OPTYPE(id, name, part, reference, waits) { part, WHATIF_##reference },
#include "collector/whatif/optypes.def"
#undef LS_OPTYPE
};

struct ls_whatif {
	const struct ls_whatif_trace *t;
	struct ls_whatif_graph *graph;
	struct ls_whatif_replay *replay;
	double *own_s; /* op x lane_count + lane: what the operation itself took */
	double *step_s; /* by step: replayed with own times */
	double *lane_s; /* by lane: results of a plan apart */
	double *ideal_s; /* by operation */
	double *pool; /* times of one type, to take the median of */
	uint8_t *own; /* by operation, for plans */
	uint8_t *mended; /* by worker, for plans */
	uint32_t *steps_first; /* by dp or stage: in how many steps it was first */
	double *first_s; /* by step: the longest so far, and ... */
	uint32_t *first; /* ... whose it was */
	double measured_s, replayed_s;
};

const char *
ls_whatif_part_name(enum ls_whatif_optype type)
{
	return whatif_types[type].part;
}

enum ls_whatif_optype
ls_whatif_part(enum ls_whatif_optype type)
{
	unsigned first = 0;

	while (strcmp(whatif_types[first].part, whatif_types[type].part) != 0)
		first++;
	return (enum ls_whatif_optype)first;
}

static double
whatif_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum / (double)n;
}

/* --- what the trace says -------------------------------------------------- */

/* Transfers of one node in one step: the end of each less the begin of the last of
 * them. */
static void
whatif_transfer(struct ls_whatif *w, const struct ls_whatif_node *node, size_t first,
	size_t lanes)
{
	const struct ls_whatif_trace *t = w->t;
	const uint32_t *ops = w->graph->ops + node->first_op;
	double last = -INFINITY, transfer;
	size_t at;

	for (uint32_t i = 0; i < node->op_count; i++) {
		for (size_t lane = first; lane < first + lanes; lane++) {
			at = ops[i] * t->lane_count + lane;
			last = t->start_s[at] > last ? t->start_s[at] : last;
		}
	}
	for (uint32_t i = 0; i < node->op_count; i++) {
		for (size_t lane = first; lane < first + lanes; lane++) {
			at = ops[i] * t->lane_count + lane;
			transfer = t->start_s[at] + t->duration_s[at] - last;
			w->own_s[at] = transfer <= -WHATIF_CLOCK_SLACK_S ? 0 : transfer;
		}
	}
}

static void
whatif_own_times(struct ls_whatif *w)
{
	const struct ls_whatif_trace *t = w->t;

	for (uint32_t i = 0; i < w->graph->node_count; i++) {
		const struct ls_whatif_node *node = &w->graph->nodes[i];
		size_t lanes = node->across ? t->dp_count : 1;
		uint32_t op;

		if (node->op_count == 0)
			continue;
		op = w->graph->ops[node->first_op];
		if (!ls_whatif_is_transfer(t->ops[op].type)) {
			memcpy(w->own_s + op * t->lane_count,
				t->duration_s + op * t->lane_count,
				t->lane_count * sizeof(double));
			continue;
		}
		for (size_t lane = 0; lane < t->lane_count; lane += lanes)
			whatif_transfer(w, node, lane, lanes);
	}
}

/* Mean over steps of the time from the first begin to the last end. */
static double
whatif_measure(const struct ls_whatif_trace *t)
{
	double sum = 0;

	for (uint32_t step = 0; step < t->step_count; step++) {
		double begin = INFINITY, end = -INFINITY;

		for (uint32_t k = 0; k < t->op_count; k++) {
			size_t at = k * t->lane_count + (size_t)step * t->dp_count;

			for (size_t i = at; i < at + t->dp_count; i++) {
				begin = t->start_s[i] < begin ? t->start_s[i] : begin;
				end = t->start_s[i] + t->duration_s[i] > end
					? t->start_s[i] + t->duration_s[i]
					: end;
			}
		}
		sum += end - begin;
	}
	return sum / t->step_count;
}

static int
whatif_allocate(struct ls_whatif *w)
{
	const struct ls_whatif_trace *t = w->t;
	size_t cells = (size_t)t->op_count * t->lane_count;
	size_t workers = (size_t)t->stage_count * t->dp_count;

	w->own_s = malloc(cells * sizeof(double));
	w->pool = malloc(cells * sizeof(double));
	w->step_s = malloc(t->step_count * sizeof(double));
	w->lane_s = malloc(t->lane_count * sizeof(double));
	w->ideal_s = malloc(t->op_count * sizeof(double));
	w->own = malloc(t->op_count);
	w->mended = malloc(workers);
	w->steps_first = malloc(workers * sizeof(uint32_t));
	w->first_s = malloc(t->step_count * sizeof(double));
	w->first = malloc(t->step_count * sizeof(uint32_t));
	if (w->own_s == NULL || w->pool == NULL || w->step_s == NULL ||
		w->lane_s == NULL || w->ideal_s == NULL || w->own == NULL ||
		w->mended == NULL || w->steps_first == NULL || w->first_s == NULL ||
		w->first == NULL)
		return -ENOMEM;
	return 0;
}

/* The mean step of a replay by step. */
static double
whatif_run(struct ls_whatif *w, const uint8_t *mended)
{
	struct ls_whatif_plan plan = { .own = w->own, .mended = mended };

	ls_whatif_replay_run(w->replay, &plan, w->ideal_s, w->lane_s);
	return whatif_mean(w->lane_s, w->t->step_count);
}

int
ls_whatif_new(const struct ls_whatif_trace *t, struct ls_whatif **ret_whatif,
	struct ls_whatif_error *ret_error)
{
	struct ls_whatif *w = calloc(1, sizeof(*w));
	int rc = -ENOMEM;

	if (w == NULL)
		return rc;
	w->t = t;
	rc = whatif_allocate(w);
	if (rc == 0)
		rc = ls_whatif_graph_new(t, &w->graph, ret_error);
	if (rc == 0)
		rc = ls_whatif_replay_new(t, w->graph, w->own_s, &w->replay);
	if (rc != 0) {
		ls_whatif_free(w);
		return rc;
	}
	whatif_own_times(w);
	memset(w->own, 1, t->op_count);
	memset(w->ideal_s, 0, t->op_count * sizeof(double));
	w->measured_s = whatif_measure(t);
	w->replayed_s = whatif_run(w, NULL);
	memcpy(w->step_s, w->lane_s, t->step_count * sizeof(double));
	*ret_whatif = w;
	return 0;
}

void
ls_whatif_free(struct ls_whatif *w)
{
	if (w == NULL)
		return;
	ls_whatif_replay_free(w->replay);
	ls_whatif_graph_free(w->graph);
	free(w->own_s);
	free(w->pool);
	free(w->step_s);
	free(w->lane_s);
	free(w->ideal_s);
	free(w->own);
	free(w->mended);
	free(w->steps_first);
	free(w->first_s);
	free(w->first);
	free(w);
}

double
ls_whatif_measured_s(const struct ls_whatif *w)
{
	return w->measured_s;
}

double
ls_whatif_replayed_s(const struct ls_whatif *w)
{
	return w->replayed_s;
}

/* --- references ----------------------------------------------------------- */

/* The reference time of one type over stages first to last. */
static double
whatif_reference(struct ls_whatif *w, enum ls_whatif_optype type, uint32_t first,
	uint32_t last, enum whatif_mean how)
{
	const struct ls_whatif_trace *t = w->t;
	size_t n = 0;

	for (uint32_t stage = first; stage <= last; stage++) {
		size_t kind = (size_t)stage * LS_WHATIF_OPTYPES + type;
		size_t cells = (t->base[kind + 1] - t->base[kind]) * t->lane_count;

		memcpy(w->pool + n, w->own_s + t->base[kind] * t->lane_count,
			cells * sizeof(double));
		n += cells;
	}
	if (n == 0)
		return 0;
	return how == WHATIF_MEAN ? whatif_mean(w->pool, n)
				  : ls_stats_median(w->pool, n);
}

static void
whatif_set_ideal(struct ls_whatif *w, enum ls_whatif_optype type, uint32_t first,
	uint32_t last, enum whatif_mean how)
{
	const struct ls_whatif_trace *t = w->t;
	double s = whatif_reference(w, type, first, last, how);

	for (uint32_t stage = first; stage <= last; stage++) {
		size_t kind = (size_t)stage * LS_WHATIF_OPTYPES + type;

		for (uint32_t k = t->base[kind]; k < t->base[kind + 1]; k++)
			w->ideal_s[k] = s;
	}
}

static void
whatif_set_reference(struct ls_whatif *w, enum ls_whatif_reference reference)
{
	uint32_t last = w->t->stage_count - 1;

	for (unsigned type = 0; type < LS_WHATIF_OPTYPES; type++) {
		if (reference == LS_WHATIF_ALL_MEAN) {
			whatif_set_ideal(w, (enum ls_whatif_optype)type, 0, last,
				whatif_types[type].reference);
			continue;
		}
		for (uint32_t stage = 0; stage <= last; stage++)
			whatif_set_ideal(w, (enum ls_whatif_optype)type, stage, stage,
				WHATIF_MEDIAN);
	}
}

/* --- questions ------------------------------------------------------------ */

/* Steps in which this one costs more than those asked before. */
static void
whatif_note_first(struct ls_whatif *w, uint32_t which, uint32_t step, double s)
{
	if (which > 0 && s <= w->first_s[step])
		return;
	w->first_s[step] = s;
	w->first[step] = which;
}

/* The one that is first in most steps. */
static void
whatif_find_first(struct ls_whatif *w, uint32_t count, uint32_t *ret_first,
	uint32_t *ret_steps)
{
	uint32_t best = 0;

	memset(w->steps_first, 0, count * sizeof(*w->steps_first));
	for (uint32_t step = 0; step < w->t->step_count; step++)
		w->steps_first[w->first[step]]++;
	for (uint32_t i = 1; i < count; i++)
		best = w->steps_first[i] > w->steps_first[best] ? i : best;
	*ret_first = best;
	*ret_steps = w->steps_first[best];
}

static void
whatif_ask_ops(struct ls_whatif *w, struct ls_whatif_result *result)
{
	unsigned part_of[LS_WHATIF_OPTYPES];

	for (unsigned type = 0; type < LS_WHATIF_OPTYPES; type++) {
		part_of[type] = ls_whatif_part((enum ls_whatif_optype)type);
		result->s_op[type] = NAN;
	}
	for (uint32_t k = 0; k < w->t->op_count; k++)
		result->s_op[part_of[w->t->ops[k].type]] = 0;
	for (unsigned part = 0; part < LS_WHATIF_OPTYPES; part++) {
		if (isnan(result->s_op[part]))
			continue;
		for (uint32_t k = 0; k < w->t->op_count; k++)
			w->own[k] = part_of[w->t->ops[k].type] == part;
		result->s_op[part] = whatif_run(w, NULL) / result->ideal_s;
	}
}

/* Only operations of one stage keep their times. */
static void
whatif_only_stage(struct ls_whatif *w, uint32_t stage)
{
	for (uint32_t k = 0; k < w->t->op_count; k++)
		w->own[k] = w->t->ops[k].stage == stage;
}

static void
whatif_ask_stages(struct ls_whatif *w, struct ls_whatif_result *result)
{
	for (uint32_t stage = 0; stage < w->t->stage_count; stage++) {
		whatif_only_stage(w, stage);
		result->s_stage[stage] = whatif_run(w, NULL) / result->ideal_s;
		for (uint32_t step = 0; step < w->t->step_count; step++)
			whatif_note_first(w, stage, step, w->lane_s[step]);
	}
	whatif_find_first(w, w->t->stage_count, &result->first_stage,
		&result->first_stage_steps);
}

/* Replays each dp among ideal ones; adds up S over steps. */
static void
whatif_run_apart(struct ls_whatif *w, double ideal_s, double *ret_s)
{
	struct ls_whatif_plan plan = { .own = w->own, .apart = true };
	size_t dp_count = w->t->dp_count;

	ls_whatif_replay_run(w->replay, &plan, w->ideal_s, w->lane_s);
	for (size_t dp = 0; dp < dp_count; dp++)
		ret_s[dp] = 0;
	for (size_t lane = 0; lane < w->t->lane_count; lane++)
		ret_s[lane % dp_count] += w->lane_s[lane];
	for (size_t dp = 0; dp < dp_count; dp++)
		ret_s[dp] /= w->t->step_count * ideal_s;
}

static void
whatif_ask_workers(struct ls_whatif *w, struct ls_whatif_result *result)
{
	const struct ls_whatif_trace *t = w->t;

	memset(w->own, 1, t->op_count);
	whatif_run_apart(w, result->ideal_s, result->s_dp);
	for (uint32_t dp = 0; dp < t->dp_count; dp++) {
		for (uint32_t step = 0; step < t->step_count; step++)
			whatif_note_first(w, dp, step,
				w->lane_s[(size_t)step * t->dp_count + dp]);
	}
	whatif_find_first(w, t->dp_count, &result->first_dp, &result->first_dp_steps);
	for (uint32_t stage = 0; stage < t->stage_count; stage++) {
		size_t first = (size_t)stage * t->dp_count;

		whatif_only_stage(w, stage);
		whatif_run_apart(w, result->ideal_s, result->s_alone + first);
		for (size_t dp = 0; dp < t->dp_count; dp++)
			result->s_worker[first + dp] =
				fmin(result->s_dp[dp], result->s_stage[stage]);
	}
}

struct whatif_place {
	double s;
	int64_t rank;
	uint32_t worker;
};

static int
whatif_compare_places(const void *a, const void *b)
{
	const struct whatif_place *x = a, *y = b;

	if (x->s != y->s)
		return x->s > y->s ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void
whatif_ask_top(struct ls_whatif *w, const struct whatif_place *places, uint32_t top,
	struct ls_whatif_result *result)
{
	memset(w->own, 1, w->t->op_count);
	for (uint32_t i = 0; i < top; i++) {
		memset(w->mended, 0, (size_t)w->t->stage_count * w->t->dp_count);
		w->mended[places[i].worker] = 1;
		result->top[i] = (struct ls_whatif_top){ .worker = places[i].worker,
			.without_s = whatif_run(w, w->mended) };
	}
	result->top_count = top;
}

/* (T - T without) / (T - T*); not defined where nothing was lost. */
static double
whatif_share(const struct ls_whatif *w, const struct ls_whatif_result *result,
	double gained_s)
{
	double lost_s = w->replayed_s - result->ideal_s;

	return fabs(lost_s) > 1e-9 * w->replayed_s ? gained_s / lost_s : NAN;
}

static void
whatif_ask_worst(struct ls_whatif *w, const struct whatif_place *places,
	struct ls_whatif_result *result)
{
	size_t workers = (size_t)w->t->stage_count * w->t->dp_count;
	uint32_t n = (uint32_t)((workers * WHATIF_WORST_PERCENT + 99) / 100);
	uint32_t last = w->t->stage_count - 1;

	result->worst_count = n;
	memset(w->own, 1, w->t->op_count);
	memset(w->mended, 0, workers);
	for (uint32_t i = 0; i < n; i++)
		w->mended[places[i].worker] = 1;
	result->m_w = whatif_share(w, result, w->replayed_s - whatif_run(w, w->mended));
	for (size_t i = 0; i < workers; i++)
		w->mended[i] = !w->mended[i];
	result->m_w_added =
		whatif_share(w, result, whatif_run(w, w->mended) - result->ideal_s);
	for (uint32_t k = 0; k < w->t->op_count; k++)
		w->own[k] = w->t->ops[k].stage != last;
	result->m_s = whatif_share(w, result, w->replayed_s - whatif_run(w, NULL));
	result->m_s_added =
		whatif_share(w, result, (result->s_stage[last] - 1) * result->ideal_s);
}

static int
whatif_rank_workers(struct ls_whatif *w, uint32_t top, struct ls_whatif_result *result)
{
	uint32_t workers = w->t->stage_count * w->t->dp_count;
	struct whatif_place *places = malloc(workers * sizeof(*places));

	if (places == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < workers; i++)
		places[i] =
			(struct whatif_place){ result->s_worker[i], w->t->ranks[i], i };
	qsort(places, workers, sizeof(*places), whatif_compare_places);
	if (top > LS_WHATIF_TOP_MAX)
		top = LS_WHATIF_TOP_MAX;
	whatif_ask_worst(w, places, result);
	whatif_ask_top(w, places, top < workers ? top : workers, result);
	free(places);
	return 0;
}

int
ls_whatif_ask(struct ls_whatif *w, enum ls_whatif_reference reference, uint32_t top,
	struct ls_whatif_result *ret_result)
{
	const struct ls_whatif_trace *t = w->t;
	size_t workers = (size_t)t->stage_count * t->dp_count;
	struct ls_whatif_result r = { .s_dp = malloc(t->dp_count * sizeof(double)),
		.s_stage = malloc(t->stage_count * sizeof(double)),
		.s_worker = malloc(workers * sizeof(double)),
		.s_alone = malloc(workers * sizeof(double)) };
	int rc = -ENOMEM;

	if (r.s_dp != NULL && r.s_stage != NULL && r.s_worker != NULL &&
		r.s_alone != NULL) {
		whatif_set_reference(w, reference);
		r.ideal_s = ls_whatif_replay_ideal(w->replay, w->ideal_s);
		r.s = w->replayed_s / r.ideal_s;
		rc = r.ideal_s > 0 && w->replayed_s > 0 ? 0 : -LS_ERANGE;
	}
	if (rc == 0) {
		whatif_ask_ops(w, &r);
		whatif_ask_stages(w, &r);
		whatif_ask_workers(w, &r);
		rc = whatif_rank_workers(w, top, &r);
	}
	if (rc == 0)
		*ret_result = r;
	else
		ls_whatif_result_fini(&r);
	return rc;
}

void
ls_whatif_result_fini(struct ls_whatif_result *result)
{
	free(result->s_dp);
	free(result->s_stage);
	free(result->s_worker);
	free(result->s_alone);
}

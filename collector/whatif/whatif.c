/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif.h"
#include "collector/engine/residual/stats.h"
#include "collector/whatif/whatif_graph.h"
#include "collector/whatif/whatif_replay.h"
#include "proto/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A transfer that ends so long before the last of its group began is a clock that is
 * off: it took nothing. */
#define WHATIF_CLOCK_SLACK_S 0.010
/* The share of workers that W is. */
#define WHATIF_WORST_PERCENT 3u
#define WHATIF_DIGITS 9 /* 1e-3 is promised; times in a trace have about 7 */

enum whatif_mean { WHATIF_MEAN, WHATIF_MEDIAN };

static const struct {
	const char *part;
	enum whatif_mean reference;
} whatif_types[] = {
#define LS_OPTYPE(id, name, part, reference, waits) { part, WHATIF_##reference },
#include "collector/whatif/optypes.def"
#undef LS_OPTYPE
};

struct whatif {
	struct ls_whatif_trace *t;
	struct ls_whatif_graph *graph;
	struct ls_whatif_replay *replay;
	size_t workers;
	double *pool; /* by cell: times of one type; what each stage costs */
	double *lane_s; /* by lane or step: results of a replay */
	double *ideal_s; /* by operation */
	double *s_dp, *s_stage, *s_worker, *s_alone;
	uint32_t *places; /* workers, greatest S_w first; equal ones by rank */
	uint32_t *firsts; /* by dp or stage: in how many steps it costs most */
	uint8_t *own; /* by operation, for plans */
	uint8_t *mended; /* by worker, for plans */
	double replayed_s, ideal_step_s; /* T and T* */
	int rc; /* -ENOMEM if an object could not be filled */
};

static double
whatif_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum / (double)n;
}

/* --- the object ----------------------------------------------------------- */

static json_t *
whatif_number(double v)
{
	return ls_json_number(v, WHATIF_DIGITS);
}

/* Adds the members of `more`, which it takes over; NULL: out of memory. */
static void
whatif_add(struct whatif *w, json_t *o, json_t *more)
{
	if (more == NULL || json_object_update(o, more) != 0)
		w->rc = -ENOMEM;
	json_decref(more);
}

/* {"NAME":v,...}; names are those numbers, or 0, 1, ... */
static json_t *
whatif_numbers(const double *v, const int64_t *names, size_t n)
{
	json_t *o = json_object();
	int rc = o == NULL ? -ENOMEM : 0;
	char name[24];

	for (size_t i = 0; rc == 0 && i < n; i++) {
		(void)snprintf(name, sizeof(name), "%" PRId64,
			names != NULL ? names[i] : (int64_t)i);
		rc = json_object_set_new(o, name, whatif_number(v[i]));
	}
	if (rc == 0)
		return o;
	json_decref(o);
	return NULL;
}

/* --- what the trace says -------------------------------------------------- */

/* Transfers of one node in one step: the end of each less the begin of the last of
 * them. */
static void
whatif_transfer(struct whatif *w, uint32_t node, size_t first, size_t lanes)
{
	const struct ls_whatif_trace *t = w->t;
	const struct ls_whatif_vertex *v = w->graph->vertices;
	double last = -INFINITY, transfer;

	for (uint32_t k = node; k != LS_WHATIF_NONE; k = v[k].next) {
		for (size_t lane = first; lane < first + lanes; lane++)
			last = fmax(last, t->start_s[k * t->lane_count + lane]);
	}
	for (uint32_t k = node; k != LS_WHATIF_NONE; k = v[k].next) {
		size_t at = k * t->lane_count + first;

		for (size_t i = at; i < at + lanes; i++) {
			transfer = t->start_s[i] + t->duration_s[i] - last;
			t->duration_s[i] =
				transfer <= -WHATIF_CLOCK_SLACK_S ? 0 : transfer;
		}
	}
}

static void
whatif_own_times(struct whatif *w)
{
	for (uint32_t k = 0; k < w->t->op_count; k++) {
		const struct ls_whatif_vertex *v = &w->graph->vertices[k];
		size_t lanes = v->across ? w->t->dp_count : 1;

		if (v->lead != k || !ls_whatif_is_transfer(w->t->ops[k].type))
			continue;
		for (size_t lane = 0; lane < w->t->lane_count; lane += lanes)
			whatif_transfer(w, k, lane, lanes);
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
				begin = fmin(begin, t->start_s[i]);
				end = fmax(end, t->start_s[i] + t->duration_s[i]);
			}
		}
		sum += end - begin;
	}
	return sum / t->step_count;
}

/* The mean step of a replay by step, in which operations marked in own take their own
 * times, but not those of mended workers. */
static double
whatif_run(struct whatif *w, const uint8_t *mended)
{
	struct ls_whatif_plan plan = { .own = w->own, .mended = mended };

	ls_whatif_replay_run(w->replay, &plan, w->ideal_s, w->lane_s);
	return whatif_mean(w->lane_s, w->t->step_count);
}

/* --- references ----------------------------------------------------------- */

/* The reference time of one type over stages first to last. */
static void
whatif_set_ideal(struct whatif *w, unsigned type, uint32_t first, uint32_t last,
	enum whatif_mean how)
{
	const struct ls_whatif_trace *t = w->t;
	size_t n = 0;
	double s = 0;

	for (uint32_t stage = first; stage <= last; stage++) {
		const uint32_t *base = &t->base[stage * LS_WHATIF_OPTYPES + type];
		size_t cells = (base[1] - base[0]) * t->lane_count;

		memcpy(w->pool + n, t->duration_s + base[0] * t->lane_count,
			cells * sizeof(double));
		n += cells;
	}
	if (n > 0)
		s = how == WHATIF_MEAN ? whatif_mean(w->pool, n)
				       : ls_stats_median(w->pool, n);
	for (uint32_t k = 0; k < t->op_count; k++) {
		if (t->ops[k].type == type && t->ops[k].stage >= first &&
			t->ops[k].stage <= last)
			w->ideal_s[k] = s;
	}
}

/* The published reference, or the median of each operation type of the stage. */
static void
whatif_set_reference(struct whatif *w, bool by_role)
{
	uint32_t last = w->t->stage_count - 1;

	for (unsigned type = 0; type < LS_WHATIF_OPTYPES; type++) {
		if (!by_role)
			whatif_set_ideal(w, type, 0, last,
				whatif_types[type].reference);
		for (uint32_t stage = 0; by_role && stage <= last; stage++)
			whatif_set_ideal(w, type, stage, stage, WHATIF_MEDIAN);
	}
}

/* --- questions ------------------------------------------------------------ */

static void
whatif_ask_ops(struct whatif *w, json_t *o)
{
	const struct ls_whatif_trace *t = w->t;
	json_t *parts = json_object();

	for (unsigned type = 0; type < LS_WHATIF_OPTYPES; type++) {
		const char *part = whatif_types[type].part;

		if (json_object_get(parts, part) != NULL)
			continue;
		for (uint32_t k = 0; k < t->op_count; k++)
			w->own[k] =
				strcmp(whatif_types[t->ops[k].type].part, part) == 0;
		if (memchr(w->own, 1, t->op_count) != NULL)
			whatif_add(w, parts,
				json_pack("{s:o}", part,
					whatif_number(whatif_run(w, NULL) /
						w->ideal_step_s)));
	}
	whatif_add(w, o, json_pack("{s:o}", "S_op", parts));
}

/* Only operations of one stage keep their times. */
static void
whatif_only_stage(struct whatif *w, uint32_t stage)
{
	for (uint32_t k = 0; k < w->t->op_count; k++)
		w->own[k] = w->t->ops[k].stage == stage;
}

/* Replays each dp among ideal ones; S by dp. */
static void
whatif_run_apart(struct whatif *w, double *ret_s)
{
	struct ls_whatif_plan plan = { .own = w->own, .apart = true };
	size_t dp_count = w->t->dp_count;

	ls_whatif_replay_run(w->replay, &plan, w->ideal_s, w->lane_s);
	for (size_t dp = 0; dp < dp_count; dp++) {
		double sum = 0;

		for (size_t lane = dp; lane < w->t->lane_count; lane += dp_count)
			sum += w->lane_s[lane];
		ret_s[dp] = sum / (w->t->step_count * w->ideal_step_s);
	}
}

/* Which of n dp or stages costs most in most steps, and in how many; cost_s: step x n. */
static json_t *
whatif_first(struct whatif *w, const char *which, const double *cost_s, size_t n)
{
	size_t best = 0;

	memset(w->firsts, 0, n * sizeof(*w->firsts));
	for (uint32_t step = 0; step < w->t->step_count; step++, cost_s += n) {
		size_t most = 0;

		for (size_t i = 1; i < n; i++)
			most = cost_s[i] > cost_s[most] ? i : most;
		w->firsts[most]++;
	}
	for (size_t i = 1; i < n; i++)
		best = w->firsts[i] > w->firsts[best] ? i : best;
	return json_pack("{s:I, s:I}", which, (json_int_t)best, "steps",
		(json_int_t)w->firsts[best]);
}

static void
whatif_ask_workers(struct whatif *w, json_t *o)
{
	size_t dp_count = w->t->dp_count, stage_count = w->t->stage_count;
	json_t *first_dp;

	memset(w->own, 1, w->t->op_count);
	whatif_run_apart(w, w->s_dp);
	first_dp = whatif_first(w, "dp", w->lane_s, dp_count);
	for (uint32_t stage = 0; stage < stage_count; stage++) {
		size_t first = stage * dp_count;

		whatif_only_stage(w, stage);
		w->s_stage[stage] = whatif_run(w, NULL) / w->ideal_step_s;
		for (uint32_t step = 0; step < w->t->step_count; step++)
			w->pool[step * stage_count + stage] = w->lane_s[step];
		whatif_run_apart(w, w->s_alone + first);
		for (size_t dp = 0; dp < dp_count; dp++)
			w->s_worker[first + dp] = fmin(w->s_dp[dp], w->s_stage[stage]);
	}
	whatif_add(w, o,
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "first_dp", first_dp,
			"first_stage", whatif_first(w, "stage", w->pool, stage_count),
			"S_dp", whatif_numbers(w->s_dp, NULL, dp_count), "S_stage",
			whatif_numbers(w->s_stage, NULL, stage_count), "S_w",
			whatif_numbers(w->s_worker, w->t->ranks, w->workers), "S_alone",
			whatif_numbers(w->s_alone, w->t->ranks, w->workers)));
}

static int
whatif_compare_places(const void *a, const void *b, void *whatif)
{
	const struct whatif *w = whatif;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (w->s_worker[x] != w->s_worker[y])
		return w->s_worker[x] > w->s_worker[y] ? -1 : 1;
	return (w->t->ranks[x] > w->t->ranks[y]) - (w->t->ranks[x] < w->t->ranks[y]);
}

/* T with each of the first workers made ideal alone. */
static void
whatif_ask_top(struct whatif *w, json_t *o, uint32_t top)
{
	json_t *list = json_array();

	memset(w->own, 1, w->t->op_count);
	for (uint32_t i = 0; i < top && i < w->workers; i++) {
		uint32_t worker = w->places[i], dp_count = w->t->dp_count;
		double without_s;
		int rc;

		memset(w->mended, 0, w->workers);
		w->mended[worker] = 1;
		without_s = whatif_run(w, w->mended);
		rc = json_array_append_new(list,
			json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "rank",
				(json_int_t)w->t->ranks[worker], "dp",
				(json_int_t)(worker % dp_count), "stage",
				(json_int_t)(worker / dp_count), "S_w",
				whatif_number(w->s_worker[worker]), "S_alone",
				whatif_number(w->s_alone[worker]), "without_s",
				whatif_number(without_s), "gain_ratio",
				whatif_number(1 - without_s / w->replayed_s)));
		if (rc != 0)
			w->rc = -ENOMEM;
	}
	whatif_add(w, o, json_pack("{s:o}", "top", list));
}

/* (T - T without) / (T - T*); not defined where nothing was lost. */
static double
whatif_share(const struct whatif *w, double gained_s)
{
	double lost_s = w->replayed_s - w->ideal_step_s;

	return fabs(lost_s) > 1e-9 * w->replayed_s ? gained_s / lost_s : NAN;
}

/* How far a share goes beyond all that was lost. */
static json_t *
whatif_beyond(double share)
{
	return whatif_number(isnan(share) ? NAN : fmax(0, share - 1));
}

static void
whatif_ask_worst(struct whatif *w, json_t *o)
{
	size_t n = (w->workers * WHATIF_WORST_PERCENT + 99) / 100;
	uint32_t last = w->t->stage_count - 1;
	double m_w, m_w_added, m_s, m_s_added;

	memset(w->own, 1, w->t->op_count);
	memset(w->mended, 0, w->workers);
	for (size_t i = 0; i < n; i++)
		w->mended[w->places[i]] = 1;
	m_w = whatif_share(w, w->replayed_s - whatif_run(w, w->mended));
	for (size_t i = 0; i < w->workers; i++)
		w->mended[i] = !w->mended[i];
	m_w_added = whatif_share(w, whatif_run(w, w->mended) - w->ideal_step_s);
	for (uint32_t k = 0; k < w->t->op_count; k++)
		w->own[k] = w->t->ops[k].stage != last;
	m_s = whatif_share(w, w->replayed_s - whatif_run(w, NULL));
	m_s_added = whatif_share(w, (w->s_stage[last] - 1) * w->ideal_step_s);
	whatif_add(w, o,
		json_pack("{s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:I}", "M_W",
			whatif_number(m_w), "M_W_added", whatif_number(m_w_added),
			"M_S", whatif_number(m_s), "M_S_added",
			whatif_number(m_s_added), "exceeds_ideal", "M_W",
			whatif_beyond(m_w), "M_S", whatif_beyond(m_s), "worst_workers",
			(json_int_t)n));
}

/* Everything by one reference. */
static int
whatif_ask(struct whatif *w, bool by_role, uint32_t top, json_t *o,
	struct ls_whatif_error *ret_error)
{
	double s;

	whatif_set_reference(w, by_role);
	memset(w->own, 0, w->t->op_count);
	(void)whatif_run(w, NULL);
	w->ideal_step_s = w->lane_s[0]; /* as all others */
	if (!(w->ideal_step_s > 0 && w->replayed_s > 0))
		return ls_whatif_bad(ret_error, 0, "its operations take no time");
	s = w->replayed_s / w->ideal_step_s;
	whatif_add(w, o,
		json_pack("{s:o, s:o, s:o}", "ideal_s", whatif_number(w->ideal_step_s),
			"S", whatif_number(s), "waste_ratio",
			whatif_number(1 - 1 / s)));
	whatif_ask_ops(w, o);
	whatif_ask_workers(w, o);
	for (uint32_t i = 0; i < w->workers; i++)
		w->places[i] = i;
	qsort_r(w->places, w->workers, sizeof(*w->places), whatif_compare_places, w);
	whatif_ask_worst(w, o);
	whatif_ask_top(w, o, top < LS_WHATIF_TOP_MAX ? top : LS_WHATIF_TOP_MAX);
	return w->rc;
}

/* --- all ------------------------------------------------------------------ */

static int
whatif_allocate(struct whatif *w)
{
	size_t ops = w->t->op_count, lanes = w->t->lane_count;
	size_t dp_count = w->t->dp_count, stage_count = w->t->stage_count;

	w->workers = stage_count * dp_count;
	/* one block for all that have the same type */
	w->pool = malloc(sizeof(double) *
		(ops * lanes + lanes + ops + dp_count + stage_count + 2 * w->workers));
	w->places = malloc(2 * w->workers * sizeof(uint32_t));
	w->own = malloc(ops + w->workers);
	if (w->pool == NULL || w->places == NULL || w->own == NULL)
		return -ENOMEM;
	w->lane_s = w->pool + ops * lanes;
	w->ideal_s = w->lane_s + lanes;
	w->s_dp = w->ideal_s + ops;
	w->s_stage = w->s_dp + dp_count;
	w->s_worker = w->s_stage + stage_count;
	w->s_alone = w->s_worker + w->workers;
	w->firsts = w->places + w->workers;
	w->mended = w->own + ops;
	return 0;
}

static int
whatif_answer(struct whatif *w, const char *name, uint32_t top, json_t *o,
	struct ls_whatif_error *ret_error)
{
	const struct ls_whatif_trace *t = w->t;
	double measured_s = whatif_measure(t);
	json_t *by_role = json_object();
	int rc;

	whatif_own_times(w);
	memset(w->own, 1, t->op_count);
	w->replayed_s = whatif_run(w, NULL);
	whatif_add(w, o,
		json_pack("{s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
			"schema_version", 1, "trial",
			name[0] != '\0' ? json_string(name) : json_null(), "steps",
			(json_int_t)t->step_count, "dp", (json_int_t)t->dp_count,
			"stages", (json_int_t)t->stage_count, "workers",
			(json_int_t)w->workers, "operations",
			(json_int_t)(t->op_count * t->lane_count), "step_s",
			whatif_number(measured_s), "no_delay_s",
			whatif_number(w->replayed_s), "launch_slowdown",
			whatif_number(measured_s / w->replayed_s), "role_median",
			by_role));
	rc = whatif_ask(w, false, top, o, ret_error);
	return rc == 0 ? whatif_ask(w, true, top, by_role, ret_error) : rc;
}

int
ls_whatif_answer(struct ls_whatif_trace *t, const char *name, uint32_t top,
	json_t **ret_answer, struct ls_whatif_error *ret_error)
{
	struct whatif w = { .t = t };
	json_t *o = json_object();
	int rc = whatif_allocate(&w);

	if (rc == 0)
		rc = ls_whatif_graph_new(t, &w.graph, ret_error);
	if (rc == 0)
		rc = ls_whatif_replay_new(t, w.graph, &w.replay);
	if (rc == 0)
		rc = whatif_answer(&w, name, top, o, ret_error);
	if (rc == 0)
		*ret_answer = o;
	else
		json_decref(o);
	ls_whatif_replay_free(w.replay);
	ls_whatif_graph_free(w.graph);
	free(w.pool);
	free(w.places);
	free(w.own);
	return rc;
}

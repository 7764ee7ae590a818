/* SPDX-License-Identifier: Apache-2.0 */
/* view_steps - the part of view that shows closed steps: rows, records, heatmap. */
#include "config.h"
#include "collector/answer/view.h"
#include "collector/answer/view_state.h"
#include "proto/base/json.h"

#include <errno.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIEW_GRID_MISSING 255
#define VIEW_GRID_TOP 254.0

static const char *const view_metrics[] = { "blame", "wait", "own" };

const char *
ls_grid_metric_name(unsigned metric)
{
	return metric < LS_GRID_METRIC_COUNT ? view_metrics[metric] : NULL;
}

/* Rows of the live window within the range, the newest `limit`: [*first, *end). */
static void
view_range(const struct ls_job *j, const struct ls_view_range *range, size_t *ret_first,
	size_t *ret_end)
{
	size_t first = 0, end = j->live_count;

	while (first < end && ls_row_shown(&ls_job_row(j, first)->row) < range->from)
		first++;
	while (end > first && ls_row_shown(&ls_job_row(j, end - 1)->row) > range->to)
		end--;
	if (end - first > range->limit)
		first = end - range->limit;
	*ret_first = first;
	*ret_end = end;
}

static json_t *
view_last(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_live_row *r)
{
	const struct ls_engine_worker *w;

	if (r->totals.last >= j->count)
		return json_null();
	w = &e->workers[j->slots[r->totals.last]];
	return json_pack("{s:s, s:i, s:s, s:o}", "host", w->info.host, "rank",
		(int)w->info.rank, "slice", w->info.slice, "lateness_s",
		ls_json_real((double)r->row.cells[r->totals.last].late_s));
}

static json_t *
view_row(const struct ls_engine *e, const struct ls_job *j, const struct ls_live_row *r)
{
	return json_pack("{s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "step",
		(json_int_t)ls_row_shown(&r->row), "at", ls_json_time(r->row.begin_us),
		"duration_s", ls_json_real(r->totals.duration_s), "workers",
		(json_int_t)r->totals.used, "expected", (json_int_t)r->expected,
		"wait_min_s", ls_json_real(r->totals.wait_min_s), "wait_median_s",
		ls_json_real(r->totals.wait_median_s), "blame_s",
		ls_json_real(r->blame_s), "last", view_last(e, j, r));
}

static json_t *
view_record(const struct ls_live_row *r, const struct ls_cell *c, int32_t rank)
{
	json_t *phases = json_object();

	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		if (!isnan(c->phase_s[p]))
			ls_ignore(json_object_set_new(phases, ls_phase_name(p),
				ls_json_real((double)c->phase_s[p])));
	return json_pack("{s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "step",
		(json_int_t)ls_row_shown(&r->row), "rank", (int)rank, "at",
		ls_json_time(c->begin_us), "duration_s",
		ls_json_real((double)c->duration_s), "own_s",
		ls_json_real((double)c->own_s), "wait_s",
		c->has_wait ? ls_json_real((double)c->wait_s) : json_null(),
		"lateness_s", ls_json_real((double)c->late_s), "blame_s",
		ls_json_real((double)c->blame_s), "phases", phases);
}

int
ls_view_steps(const struct ls_engine *e, const char *job, const char *host,
	const struct ls_view_range *range, json_t **ret_array)
{
	const struct ls_job *j = ls_engine_find_job(e, job);
	size_t first, end;
	json_t *array;
	bool known = host == NULL;

	if (j == NULL)
		return -LS_EUNKNOWN;
	for (size_t s = 0; s < j->count && !known; s++)
		known = strcmp(e->workers[j->slots[s]].info.host, host) == 0;
	if (!known)
		return -LS_EUNKNOWN;
	array = json_array();
	view_range(j, range, &first, &end);
	for (size_t i = first; i < end; i++) {
		const struct ls_live_row *r = ls_job_row(j, i);

		if (host == NULL)
			ls_json_append(&array, view_row(e, j, r));
		for (size_t s = 0; host != NULL && s < j->count; s++) {
			const struct ls_engine_worker *w = &e->workers[j->slots[s]];
			const struct ls_cell *c = ls_row_cell(r, s);

			if (c != NULL && strcmp(w->info.host, host) == 0)
				ls_json_append(&array, view_record(r, c, w->info.rank));
		}
	}
	*ret_array = array;
	return array != NULL ? 0 : -ENOMEM;
}

/* --- one step, all its workers -------------------------------------------- */

/* Of the workers by_rank[from .. to - 1], which all have a record of the step. */
static json_t *
view_members(const struct ls_engine *e, const struct ls_live_row *r,
	const uint32_t *by_rank, size_t from, size_t to)
{
	json_t *items = json_array();

	for (size_t i = from; i < to; i++) {
		const struct ls_engine_worker *w = &e->workers[by_rank[i]];
		json_t *v = view_record(r, ls_row_cell(r, w->slot), w->info.rank);

		ls_ignore(json_object_set_new(v, "host", ls_json_text(w->info.host)));
		ls_ignore(json_object_set_new(v, "slice", ls_json_text(w->info.slice)));
		ls_ignore(json_array_append_new(items, v));
	}
	return items;
}

static const struct ls_live_row *
view_find_row(const struct ls_job *j, uint64_t step)
{
	for (size_t i = j->live_count; i > 0; i--)
		if (ls_row_shown(&ls_job_row(j, i - 1)->row) == step)
			return ls_job_row(j, i - 1);
	return NULL;
}

int
ls_view_step(const struct ls_engine *e, const char *job, uint64_t step, size_t skip,
	size_t limit, json_t **ret_step)
{
	const struct ls_job *j = ls_engine_find_job(e, job);
	const struct ls_live_row *r = j != NULL ? view_find_row(j, step) : NULL;
	uint32_t *by_rank;
	size_t n = 0, end;
	char next[40];

	if (r == NULL)
		return -LS_EUNKNOWN;
	by_rank = ls_job_by_rank(e, j);
	for (size_t i = 0; i < j->count; i++)
		if (ls_row_cell(r, e->workers[by_rank[i]].slot) != NULL)
			by_rank[n++] = by_rank[i];
	skip = skip < n ? skip : n;
	end = n - skip < limit ? n : skip + limit;
	(void)snprintf(next, sizeof(next), "after-%zu", end);
	*ret_step = json_pack("{s:i, s:s, s:s, s:I, s:i, s:I, s:o, s:s?}",
		"schema_version", 1, "source", "live", "job", j->name, "step",
		(json_int_t)step, "attempt", n > 0 ? (int)j->attempt : 0, "workers",
		(json_int_t)n, "items", view_members(e, r, by_rank, skip, end),
		"next_cursor", end < n ? next : NULL);
	return *ret_step != NULL ? 0 : -ENOMEM;
}

/* A heatmap under construction. */
struct view_grid {
	const struct ls_job *j;
	enum ls_grid_metric metric;
	size_t first, end, rows, cols, per_col;
	uint32_t *slots; /* of the rows: scratch of the job */
	double *values; /* rows x cols, NaN = missing */
};

static double
view_grid_cell(const struct ls_cell *c, enum ls_grid_metric metric)
{
	if (metric == LS_GRID_WAIT)
		return c->has_wait ? (double)c->wait_s : NAN;
	return metric == LS_GRID_OWN ? (double)c->own_s : (double)c->blame_s;
}

/* Value of a slot over the steps of a column: the greatest; NaN if none was measured.
 */
static void
view_grid_fill(struct view_grid *g)
{
	for (size_t i = 0; i < g->rows * g->cols; i++)
		g->values[i] = NAN;
	for (size_t i = g->first; i < g->end; i++) {
		const struct ls_live_row *r = ls_job_row(g->j, i);
		size_t col = (i - g->first) / g->per_col;

		for (size_t row = 0; row < g->rows; row++) {
			const struct ls_cell *c = ls_row_cell(r, g->slots[row]);
			double v = c == NULL ? NAN : view_grid_cell(c, g->metric);
			double *at = &g->values[row * g->cols + col];

			if (!isnan(v) && !(*at >= v))
				*at = v;
		}
	}
}

/* Rows: the slots with the greatest mean, worst first. */
static void
view_grid_rows(struct view_grid *g)
{
	double *mean = g->j->room.a;

	for (size_t s = 0; s < g->j->count; s++) {
		mean[s] = 0;
		for (size_t i = g->first; i < g->end; i++) {
			const struct ls_cell *c = ls_row_cell(ls_job_row(g->j, i), s);

			if (c != NULL && !isnan(c->blame_s))
				mean[s] += (double)(c->blame_s + c->under_s);
		}
	}
	for (size_t row = 0; row < g->rows; row++) { /* few rows: selection is enough */
		uint32_t best = 0;

		for (uint32_t s = 1; s < g->j->count; s++)
			if (mean[s] > mean[best])
				best = s;
		g->slots[row] = best;
		mean[best] = -INFINITY; /* no other is less */
	}
}

/* 0..254 linear from 0 to max, 255 = missing; base64. */
static json_t *
view_grid_encode(const struct view_grid *g, double max)
{
	size_t n = g->rows * g->cols;
	unsigned char *bytes = malloc(n + 1), *text = malloc(4 * ((n + 2) / 3) + 1);
	json_t *data = NULL;

	for (size_t i = 0; bytes != NULL && i < n; i++) {
		double v = g->values[i];

		bytes[i] = isnan(v) ? VIEW_GRID_MISSING
			: max > 0   ? (unsigned char)lround(v / max * VIEW_GRID_TOP)
				    : 0;
	}
	if (bytes != NULL && text != NULL) {
		text[0] = '\0';
		(void)EVP_EncodeBlock(text, bytes, (int)n);
		data = json_string((const char *)text);
	}
	free(bytes);
	free(text);
	return data;
}

static json_t *
view_grid_names(const struct ls_engine *e, const struct view_grid *g)
{
	json_t *rows = json_array();

	for (size_t r = 0; r < g->rows; r++) {
		const struct ls_engine_worker *w =
			&e->workers[g->j->slots[g->slots[r]]];

		ls_ignore(json_array_append_new(rows,
			json_pack("{s:s, s:i, s:s, s:s?}", "host", w->info.host, "rank",
				(int)w->info.rank, "slice", w->info.slice, "finding",
				ls_view_finding_of(e, w))));
	}
	return rows;
}

static json_t *
view_grid_render(const struct ls_engine *e, const struct view_grid *g)
{
	double max = 0;
	bool some = g->end > g->first;

	for (size_t i = 0; i < g->rows * g->cols; i++)
		if (g->values[i] > max)
			max = g->values[i];
	return json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:o, s:I, s:o, s:o, s:I, s:o}",
		"schema_version", 1, "job", g->j->name, "metric",
		view_metrics[g->metric], "unit", "s", "encoding", "u8-b64", "min",
		ls_json_real(0), "max", ls_json_real(max), "missing", VIEW_GRID_MISSING,
		"rows", view_grid_names(e, g), "cols", (json_int_t)g->cols,
		"first_step",
		some ? json_integer((json_int_t)ls_row_shown(
			       &ls_job_row(g->j, g->first)->row))
		     : json_null(),
		"last_step",
		some ? json_integer((json_int_t)ls_row_shown(
			       &ls_job_row(g->j, g->end - 1)->row))
		     : json_null(),
		"steps_per_col", (json_int_t)g->per_col, "data",
		view_grid_encode(g, max));
}

int
ls_view_grid(const struct ls_engine *e, const char *job, enum ls_grid_metric metric,
	const struct ls_view_range *range, size_t rows, size_t cols, json_t **ret_grid)
{
	struct view_grid g = { .j = ls_engine_find_job(e, job), .metric = metric };
	size_t steps;

	if (g.j == NULL)
		return -LS_EUNKNOWN;
	if (rows == 0 || rows > LS_GRID_ROWS_MAX || cols == 0 ||
		cols > LS_GRID_COLS_MAX)
		return -LS_ERANGE;
	view_range(g.j, range, &g.first, &g.end);
	steps = g.end - g.first;
	g.per_col = steps == 0 ? 1 : (steps + cols - 1) / cols;
	g.cols = (steps + g.per_col - 1) / g.per_col;
	g.rows = g.j->count < rows ? g.j->count : rows;
	g.slots = g.j->room.index;
	g.values = calloc(g.rows * g.cols + 1, sizeof(*g.values));
	if (g.values == NULL)
		return -ENOMEM;
	view_grid_rows(&g);
	view_grid_fill(&g);
	*ret_grid = view_grid_render(e, &g);
	free(g.values);
	return *ret_grid == NULL ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/whatif/whatif_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const trace_names[] = {
#define LS_OPTYPE(id, name, part, reference, waits) name,
#include "collector/whatif/optypes.def"
#undef LS_OPTYPE
};

const char *
ls_whatif_type_name(enum ls_whatif_optype type)
{
	return trace_names[type];
}

enum ls_whatif_optype
ls_whatif_type_find(const char *name)
{
	unsigned type = 0;

	while (type < LS_WHATIF_OPTYPES && strcmp(trace_names[type], name) != 0)
		type++;
	return (enum ls_whatif_optype)type;
}

int
ls_whatif_bad(struct ls_whatif_error *error, uint64_t line, const char *format, ...)
{
	va_list args;

	error->line = line;
	va_start(args, format);
	(void)vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return -LS_EPARSE;
}

/* --- steps ---------------------------------------------------------------- */

static int
trace_compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* All step numbers, each once, ascending. Rows mostly come step by step: repeats are
 * left out first. */
static int
trace_find_steps(struct ls_whatif_trace *t, const struct ls_whatif_row *rows,
	size_t row_count)
{
	size_t n = 0, kept = 0;

	t->steps = malloc(row_count * sizeof(*t->steps));
	if (t->steps == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < row_count; i++) {
		if (i == 0 || rows[i].step != rows[i - 1].step)
			t->steps[n++] = rows[i].step;
	}
	qsort(t->steps, n, sizeof(*t->steps), trace_compare_numbers);
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || t->steps[i] != t->steps[kept - 1])
			t->steps[kept++] = t->steps[i];
	}
	t->step_count = (uint32_t)kept; /* at most LS_WHATIF_ROWS_MAX */
	return 0;
}

/* Which step a number is; `last` is a guess. */
static uint32_t
trace_step(const struct ls_whatif_trace *t, int64_t number, uint32_t last)
{
	const int64_t *at;

	if (t->steps[last] == number)
		return last;
	at = bsearch(&number, t->steps, t->step_count, sizeof(number),
		trace_compare_numbers);
	LS_ASSERT(at != NULL);
	return (uint32_t)(at - t->steps);
}

/* --- operations ----------------------------------------------------------- */

static size_t
trace_kind(uint32_t stage, enum ls_whatif_optype type)
{
	return (size_t)stage * LS_WHATIF_OPTYPES + type;
}

uint32_t
ls_whatif_count(const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type)
{
	size_t kind = trace_kind(stage, type);

	return t->base[kind + 1] - t->base[kind];
}

uint32_t
ls_whatif_op(const struct ls_whatif_trace *t, uint32_t stage,
	enum ls_whatif_optype type, uint32_t seq)
{
	return seq < ls_whatif_count(t, stage, type)
		? t->base[trace_kind(stage, type)] + seq
		: LS_WHATIF_NONE;
}

/* The operations of the first step of dp 0. */
static int
trace_make_ops(struct ls_whatif_trace *t, const struct ls_whatif_row *rows,
	size_t row_count, struct ls_whatif_error *ret_error)
{
	size_t kinds = (size_t)t->stage_count * LS_WHATIF_OPTYPES;

	t->base = calloc(kinds + 1, sizeof(*t->base));
	if (t->base == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < row_count; i++) {
		if (rows[i].step == t->steps[0] && rows[i].dp == 0)
			t->base[trace_kind(rows[i].stage, rows[i].type) + 1]++;
	}
	for (size_t kind = 0; kind < kinds; kind++)
		t->base[kind + 1] += t->base[kind];
	for (uint32_t stage = 0; stage < t->stage_count; stage++) {
		if (t->base[trace_kind(stage, 0)] == t->base[trace_kind(stage + 1, 0)])
			return ls_whatif_bad(ret_error, 0,
				"step %" PRId64
				" has no operation of dp 0 in stage %" PRIu32,
				t->steps[0], stage);
	}
	t->op_count = t->base[kinds];
	t->ops = malloc(t->op_count * sizeof(*t->ops));
	if (t->ops == NULL)
		return -ENOMEM;
	for (size_t kind = 0; kind < kinds; kind++) {
		for (uint32_t k = t->base[kind]; k < t->base[kind + 1]; k++)
			t->ops[k] = (struct ls_whatif_op){
				.type = (enum ls_whatif_optype)(kind %
					LS_WHATIF_OPTYPES),
				.stage = (uint32_t)(kind / LS_WHATIF_OPTYPES),
				.seq = k - t->base[kind]
			};
	}
	return 0;
}

/* --- times ---------------------------------------------------------------- */

/* A worker has one rank; two workers have two. */
static int
trace_check_rank(struct ls_whatif_trace *t, const struct ls_whatif_row *r,
	struct ls_whatif_error *ret_error)
{
	int64_t *rank = &t->ranks[(size_t)r->stage * t->dp_count + r->dp];

	if (*rank < 0)
		*rank = r->rank;
	if (*rank == r->rank)
		return 0;
	return ls_whatif_bad(ret_error, r->line,
		"dp %" PRIu32 " of stage %" PRIu32 " is rank %" PRId64
		" here and rank %" PRId64 " before",
		r->dp, r->stage, r->rank, *rank);
}

static int
trace_check_ranks(const struct ls_whatif_trace *t, struct ls_whatif_error *ret_error)
{
	size_t n = (size_t)t->stage_count * t->dp_count;
	int64_t *sorted = malloc(n * sizeof(*sorted));
	int rc = 0;

	if (sorted == NULL)
		return -ENOMEM;
	memcpy(sorted, t->ranks, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), trace_compare_numbers);
	for (size_t i = 1; rc == 0 && i < n; i++) {
		if (sorted[i] == sorted[i - 1])
			rc = ls_whatif_bad(ret_error, 0,
				"two workers have rank %" PRId64, sorted[i]);
	}
	free(sorted);
	return rc;
}

static int
trace_put_row(struct ls_whatif_trace *t, const struct ls_whatif_row *r, uint32_t step,
	struct ls_whatif_error *ret_error)
{
	uint32_t k = ls_whatif_op(t, r->stage, r->type, r->seq);
	size_t at = k * t->lane_count + (size_t)step * t->dp_count + r->dp;

	if (k == LS_WHATIF_NONE)
		return ls_whatif_bad(ret_error, r->line,
			"%s %" PRIu32 " of stage %" PRIu32 ": step %" PRId64
			" of dp 0 has only %" PRIu32 " of them (from 0)",
			trace_names[r->type], r->seq, r->stage, t->steps[0],
			ls_whatif_count(t, r->stage, r->type));
	if (!isnan(t->start_s[at]))
		return ls_whatif_bad(ret_error, r->line,
			"step %" PRId64 ", dp %" PRIu32 ", stage %" PRIu32
			": %s %" PRIu32 " is repeated",
			r->step, r->dp, r->stage, trace_names[r->type], r->seq);
	t->start_s[at] = r->start_s;
	t->duration_s[at] = r->duration_s;
	return 0;
}

/* Names the first operation that is not there. */
static int
trace_say_missing(const struct ls_whatif_trace *t, struct ls_whatif_error *ret_error)
{
	for (uint32_t k = 0; k < t->op_count; k++) {
		for (size_t lane = 0; lane < t->lane_count; lane++) {
			if (isnan(t->start_s[k * t->lane_count + lane]))
				return ls_whatif_bad(ret_error, 0,
					"step %" PRId64 ", dp %zu, stage %" PRIu32
					": %s %" PRIu32 " is missing",
					t->steps[lane / t->dp_count],
					lane % t->dp_count, t->ops[k].stage,
					trace_names[t->ops[k].type], t->ops[k].seq);
		}
	}
	return 0;
}

static int
trace_fill(struct ls_whatif_trace *t, const struct ls_whatif_row *rows,
	size_t row_count, struct ls_whatif_error *ret_error)
{
	size_t workers = (size_t)t->stage_count * t->dp_count;
	size_t cells = t->lane_count * t->op_count;
	uint32_t step = 0;
	int rc = 0;

	t->start_s = malloc(cells * sizeof(*t->start_s));
	t->duration_s = malloc(cells * sizeof(*t->duration_s));
	t->ranks = malloc(workers * sizeof(*t->ranks));
	if (t->start_s == NULL || t->duration_s == NULL || t->ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cells; i++)
		t->start_s[i] = NAN;
	for (size_t i = 0; i < workers; i++)
		t->ranks[i] = -1;
	for (size_t i = 0; rc == 0 && i < row_count; i++) {
		step = trace_step(t, rows[i].step, step);
		rc = trace_check_rank(t, &rows[i], ret_error);
		if (rc == 0)
			rc = trace_put_row(t, &rows[i], step, ret_error);
	}
	if (rc == 0)
		rc = trace_say_missing(t, ret_error);
	return rc == 0 ? trace_check_ranks(t, ret_error) : rc;
}

static int
trace_make(struct ls_whatif_trace *t, const struct ls_whatif_row *rows,
	size_t row_count, struct ls_whatif_error *ret_error)
{
	size_t workers = (size_t)t->stage_count * t->dp_count;
	int rc = trace_find_steps(t, rows, row_count);

	if (rc == 0)
		rc = trace_make_ops(t, rows, row_count, ret_error);
	if (rc != 0)
		return rc;
	t->lane_count = (size_t)t->step_count * t->dp_count;
	/* No memory for what is not there: each row fills one cell, so many missing
	 * cells are an error. */
	if (t->lane_count > SIZE_MAX / t->op_count ||
		t->lane_count * t->op_count > 2 * row_count + workers)
		return ls_whatif_bad(ret_error, 0,
			"%" PRIu32 " steps of %" PRIu32 " dp and %" PRIu32
			" operations each need more rows than the %zu there are",
			t->step_count, t->dp_count, t->op_count, row_count);
	return trace_fill(t, rows, row_count, ret_error);
}

int
ls_whatif_trace_new(const struct ls_whatif_row *rows, size_t row_count,
	uint32_t dp_count, uint32_t stage_count, struct ls_whatif_trace **ret_trace,
	struct ls_whatif_error *ret_error)
{
	struct ls_whatif_trace *t;
	int rc;

	if (row_count == 0)
		return ls_whatif_bad(ret_error, 0, "the trace has no operation");
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->dp_count = dp_count;
	t->stage_count = stage_count;
	rc = trace_make(t, rows, row_count, ret_error);
	if (rc == 0)
		*ret_trace = t;
	else
		ls_whatif_trace_free(t);
	return rc;
}

void
ls_whatif_trace_free(struct ls_whatif_trace *t)
{
	if (t == NULL)
		return;
	free(t->steps);
	free(t->ranks);
	free(t->ops);
	free(t->base);
	free(t->start_s);
	free(t->duration_s);
	free(t);
}

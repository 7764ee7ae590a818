/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/buckets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"
#include "proto/limits.h"

#define BUCKET_S_US 1000000ll

/* Steps that a clock's face knows. */
static const int64_t bucket_steps_s[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
	1800, 3600, 7200, 10800, 21600, 43200, 86400 };
#define BUCKET_STEPS (sizeof(bucket_steps_s) / sizeof(bucket_steps_s[0]))

static const char *const agg_names[LS_AGG_KINDS] = { "mean", "min", "max", "count" };

const char *
ls_agg_name(unsigned agg)
{
	return agg < LS_AGG_KINDS ? agg_names[agg] : NULL;
}

static size_t
range_count(int64_t begin_us, int64_t to_us, int64_t step_us)
{
	return (size_t)((to_us - begin_us) / step_us) + 1;
}

int
ls_range_cut(int64_t from_us, int64_t to_us, int64_t step_s, int64_t min_step_s,
	struct ls_range *ret_range)
{
	struct ls_range r = { .from_us = from_us < 0 ? 0 : from_us, .to_us = to_us };

	if (to_us < r.from_us || to_us > INT64_MAX / 2 || step_s < LS_STEP_AUTO ||
		step_s > INT64_MAX / BUCKET_S_US)
		return -LS_ERANGE;
	r.step_us = step_s * BUCKET_S_US;
	for (size_t i = 0; step_s == LS_STEP_AUTO && i < BUCKET_STEPS; i++) {
		r.step_us = bucket_steps_s[i] * BUCKET_S_US;
		if (bucket_steps_s[i] >= min_step_s &&
			(r.to_us - r.from_us) / r.step_us <= LS_QUERY_POINTS_DEFAULT)
			break;
	}
	r.begin_us = r.from_us;
	if (r.step_us > 0) {
		r.begin_us = r.from_us / r.step_us * r.step_us;
		r.count = range_count(r.begin_us, r.to_us, r.step_us);
		if (r.count > LS_QUERY_POINTS_MAX)
			return -LS_ELIMIT;
	}
	*ret_range = r;
	return 0;
}

int
ls_line_init(struct ls_line *l, const struct ls_range *range)
{
	memset(l, 0, sizeof(*l));
	if (range->count == 0)
		return 0;
	l->bucket = calloc(range->count, sizeof(*l->bucket));
	return l->bucket != NULL ? 0 : -ENOMEM;
}

void
ls_line_fini(struct ls_line *l)
{
	free(l->bucket);
	free(l->point);
	memset(l, 0, sizeof(*l));
}

static int
line_point(struct ls_line *l, int64_t t_us, double value)
{
	int rc;

	if (l->point_count == LS_QUERY_POINTS_MAX)
		return -LS_ELIMIT;
	rc = ls_mem_grow((void **)&l->point, l->point_count, &l->capacity,
		sizeof(*l->point));
	if (rc != 0)
		return rc;
	l->point[l->point_count++] = (struct ls_point){ t_us, value };
	return 0;
}

static void
bucket_add(struct ls_bucket *b, double value)
{
	if (b->count == 0 || value < b->min)
		b->min = value;
	if (b->count == 0 || value > b->max)
		b->max = value;
	b->sum += value;
	b->count++;
}

int
ls_line_add(struct ls_line *l, const struct ls_range *range, int64_t t_us, double value)
{
	size_t i;

	if (range->count == 0)
		return line_point(l, t_us, value);
	i = t_us < range->begin_us
		? range->count
		: (size_t)((t_us - range->begin_us) / range->step_us);
	if (isfinite(value) && i < range->count)
		bucket_add(&l->bucket[i], value);
	return 0;
}

double
ls_bucket_value(const struct ls_bucket *b, enum ls_agg agg)
{
	if (agg == LS_AGG_COUNT)
		return (double)b->count;
	if (b->count == 0)
		return NAN;
	if (agg == LS_AGG_MEAN)
		return b->sum / (double)b->count;
	return agg == LS_AGG_MIN ? b->min : b->max;
}

static int
point_compare(const void *a, const void *b)
{
	const struct ls_point *x = a, *y = b;

	return (x->t_us > y->t_us) - (x->t_us < y->t_us);
}

void
ls_line_sort(struct ls_line *l)
{
	for (size_t i = 1; i < l->point_count; i++) {
		if (l->point[i].t_us < l->point[i - 1].t_us) {
			qsort(l->point, l->point_count, sizeof(*l->point),
				point_compare);
			return;
		}
	}
}

static void
line_points_json(const struct ls_line *l, const struct ls_range *range,
	struct ls_json_out *o)
{
	ls_json_out_json(o, "at_s", "[");
	for (size_t i = 0; i < l->point_count; i++)
		ls_json_out_number(o, NULL,
			(double)(l->point[i].t_us - range->begin_us) / 1e6);
	ls_json_out_raw(o, "]");
	ls_json_out_json(o, "value", "[");
	for (size_t i = 0; i < l->point_count; i++)
		ls_json_out_number(o, NULL, l->point[i].value);
	ls_json_out_raw(o, "]");
}

void
ls_line_json(const struct ls_line *l, const struct ls_range *range, unsigned aggs,
	struct ls_json_out *o)
{
	if (range->count == 0) {
		line_points_json(l, range, o);
		return;
	}
	for (unsigned agg = 0; agg < LS_AGG_KINDS; agg++) {
		if (!(aggs & 1u << agg))
			continue;
		ls_json_out_json(o, ls_agg_name(agg), "[");
		for (size_t i = 0; i < range->count; i++)
			ls_json_out_number(o, NULL,
				ls_bucket_value(&l->bucket[i], (enum ls_agg)agg));
		ls_json_out_raw(o, "]");
	}
}

void
ls_range_json(const struct ls_range *range, struct ls_json_out *o)
{
	bool cut = range->count > 0;

	ls_json_out_time(o, "from", range->from_us);
	ls_json_out_time(o, "to", range->to_us);
	ls_json_out_time(o, "begin", range->begin_us);
	ls_json_out_number(o, "step_s",
		cut ? (double)(range->step_us / BUCKET_S_US) : NAN);
	ls_json_out_number(o, "count", cut ? (double)range->count : NAN);
}

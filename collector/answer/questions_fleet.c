/* SPDX-License-Identifier: Apache-2.0 */
/* questions_fleet - the part of questions about one metric of all hosts of a job. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/questions_state.h"
#include "collector/ingest/series_text.h"
#include "collector/engine/residual/stats.h"

#define FLEET_NOWHERE UINT32_MAX /* of no host that is read */
#define FLEET_MINUTE_US 60000000ll
#define FLEET_HOUR_US 3600000000ll

/*
 * Series of the same text on all hosts asked for. Cells of one bucket stand together,
 * hosts in order; what the answer does not need is NULL.
 */
struct fleet_slot {
	char *series;
	double *cells; /* the memory of these four */
	double *min, *max, *sum; /* [bucket * hosts + host] */
	uint64_t *count; /* 0: nothing was measured */
};

/* Rows of a part that belong to one slot. */
struct fleet_run {
	struct fleet_slot *slot;
	size_t from, to;
};

struct fleet {
	struct ls_questions *q;
	const struct ls_ask *ask;
	struct ls_range range;
	struct ls_selector selector;
	unsigned columns; /* LS_ROLLUP_COUNT, ...: what the answer needs */
	const char *const *hosts; /* those that are read, and how many */
	size_t host_count;
	size_t slot_count;
	struct fleet_slot *slots; /* LS_QUERY_LINES_MAX */
	size_t host; /* the one that is being read */
	/* Where the rows of a part go, as long as the next ones are of the same series.
	 */
	uint64_t chosen; /* 0: none yet */
	size_t run_count;
	struct fleet_run *runs; /* LS_QUERY_LINES_MAX */
	uint32_t *place; /* LS_ROLLUP_ROWS_MAX: host, or FLEET_NOWHERE */
	/* end of the last minute that roll-ups gave; 0: none did */
	int64_t until_us;
	const char *source;
	uint64_t bad;
};

static void
fleet_fini(struct fleet *f)
{
	for (size_t i = 0; i < f->slot_count; i++) {
		free(f->slots[i].series);
		free(f->slots[i].cells);
	}
	free(f->slots);
	free(f->runs);
	free(f->place);
	ls_query_series_want(f->q->series, NULL, NULL); /* the selector goes */
	ls_selector_fini(&f->selector);
}

static int
fleet_init(struct fleet *f)
{
	f->slots = calloc(LS_QUERY_LINES_MAX, sizeof(*f->slots));
	f->runs = calloc(LS_QUERY_LINES_MAX, sizeof(*f->runs));
	f->place = malloc(LS_ROLLUP_ROWS_MAX * sizeof(*f->place));
	return f->slots != NULL && f->runs != NULL && f->place != NULL ? 0 : -ENOMEM;
}

/* Cells of a slot, all of nothing. */
static int
fleet_slot_init(struct fleet *f, struct fleet_slot *s)
{
	size_t n = f->range.count * f->host_count;
	double *at;

	_Static_assert(sizeof(*s->count) == sizeof(*s->cells), "one memory");
	s->cells =
		calloc(n, (size_t)__builtin_popcount(f->columns) * sizeof(*s->cells));
	if (s->cells == NULL)
		return -ENOMEM;
	s->count = (uint64_t *)s->cells; /* of calloc, and used as such only */
	at = s->cells + n;
	s->min = f->columns & LS_ROLLUP_MIN ? at : NULL;
	at += s->min != NULL ? n : 0;
	s->max = f->columns & LS_ROLLUP_MAX ? at : NULL;
	at += s->max != NULL ? n : 0;
	s->sum = f->columns & LS_ROLLUP_SUM ? at : NULL;
	return 0;
}

static int
fleet_slot(struct fleet *f, const char *series, struct fleet_slot **ret_slot)
{
	struct fleet_slot *s;

	for (size_t i = 0; i < f->slot_count; i++) {
		if (strcmp(f->slots[i].series, series) == 0) {
			*ret_slot = &f->slots[i];
			return 0;
		}
	}
	if (f->slot_count == LS_QUERY_LINES_MAX ||
		(f->slot_count + 1) * f->range.count >
			LS_QUERY_CELLS_MAX / f->host_count)
		return -LS_ELIMIT;
	s = &f->slots[f->slot_count];
	s->series = strdup(series);
	if (s->series == NULL || fleet_slot_init(f, s) != 0) {
		free(s->series);
		return -ENOMEM;
	}
	f->slot_count++;
	*ret_slot = s;
	return 0;
}

/* A cell as a bucket; what was not needed is 0. */
static struct ls_bucket
fleet_cell(const struct fleet_slot *s, size_t at)
{
	return (struct ls_bucket){ .min = s->min != NULL ? s->min[at] : 0,
		.max = s->max != NULL ? s->max[at] : 0,
		.sum = s->sum != NULL ? s->sum[at] : 0,
		.count = s->count[at] };
}

/* --- from chunks: for minutes, since each host has chunks of its own ------ */

static void
fleet_add(struct fleet_slot *s, size_t at, double v)
{
	bool first = s->count[at]++ == 0;

	if (s->min != NULL && (first || v < s->min[at]))
		s->min[at] = v;
	if (s->max != NULL && (first || v > s->max[at]))
		s->max[at] = v;
	if (s->sum != NULL)
		s->sum[at] += v;
}

static int
fleet_column(void *arg, const struct ls_query_column *c)
{
	struct fleet *f = arg;
	struct fleet_slot *slot = NULL;
	int rc = fleet_slot(f, c->series, &slot);

	for (size_t i = c->from; i < c->to && rc == 0; i++) {
		size_t b =
			(size_t)((c->t_us[i] - f->range.begin_us) / f->range.step_us);

		if (c->present[i] && isfinite(c->value[i]))
			fleet_add(slot, b * f->host_count + f->host, c->value[i]);
	}
	return rc;
}

static int
fleet_chunks(struct fleet *f)
{
	struct ls_query_span span = { NULL, f->range.from_us, f->range.to_us };
	uint64_t bad = ls_query_series_bad(f->q->series);
	int rc = 0;

	f->source = "chunks";
	if (f->range.to_us - f->range.from_us > LS_QUERY_RAW_FLEET_US)
		return -LS_ELIMIT;
	ls_query_series_want(f->q->series, ls_selector_wants, &f->selector);
	for (f->host = 0; f->host < f->host_count && rc == 0; f->host++) {
		span.host = f->hosts[f->host];
		rc = ls_query_series_visit(f->q->series, &span, fleet_column, f);
		if (rc == -LS_EUNKNOWN)
			rc = 0; /* a host without counters */
	}
	f->bad = ls_query_series_bad(f->q->series) - bad;
	return rc;
}

/* --- from roll-ups -------------------------------------------------------- */

/* Brings q's places of a file's hosts among those of the job to the file and job at
 * hand. */
static int
fleet_places(struct ls_questions *q, const struct ls_rollup_part *p)
{
	struct ls_host_places *places = &q->places;
	uint32_t *place;

	if (places->names == p->names && places->loads == q->loads &&
		places->count == p->host_ids)
		return 0;
	place = reallocarray(places->place, p->host_ids + 1, sizeof(*place));
	if (place == NULL)
		return -ENOMEM;
	*places = (struct ls_host_places){ .names = p->names,
		.loads = q->loads,
		.count = p->host_ids,
		.place = place };
	for (size_t i = 0; i < p->host_ids; i++)
		place[i] = p->host[i] != NULL
			? (uint32_t)ls_job_members_host(&q->members, p->host[i])
			: FLEET_NOWHERE;
	return 0;
}

/* The text of the metric's series with these labels; false: longer than any that was
 * taken in. */
static bool
fleet_series(const struct fleet *f, const char *labels,
	char ret_series[LS_SERIES_TEXT_MAX_BYTES])
{
	bool bare = labels[0] == '\0';
	int n = snprintf(ret_series, LS_SERIES_TEXT_MAX_BYTES, "%s%s%s%s",
		f->selector.name, bare ? "" : "{", labels, bare ? "" : "}");

	return n > 0 && n < LS_SERIES_TEXT_MAX_BYTES;
}

static bool
fleet_wants_labels(void *arg, const char *labels)
{
	struct fleet *f = arg;
	char series[LS_SERIES_TEXT_MAX_BYTES];

	return fleet_series(f, labels, series) &&
		ls_selector_wants(&f->selector, "", series);
}

static int
fleet_labels_slot(struct fleet *f, const char *labels, struct fleet_slot **ret_slot)
{
	char series[LS_SERIES_TEXT_MAX_BYTES];

	return fleet_series(f, labels, series) ? fleet_slot(f, series, ret_slot)
					       : -LS_ECORRUPT;
}

/* Where the rows of a part go: once for all minutes that are about the same series. */
static int
fleet_runs(struct fleet *f, const struct ls_rollup_part *p)
{
	size_t first = (size_t)(f->hosts - f->q->members.hosts), i, place;
	struct fleet_run *run = NULL;
	uint32_t labels = 0;
	int rc = fleet_places(f->q, p);

	f->run_count = 0;
	for (i = 0; i < p->count && rc == 0; i++) {
		size_t at = p->row[i];

		place = f->q->places.place[p->columns.host_id[at]];
		f->place[i] = FLEET_NOWHERE;
		if (place < first || place - first >= f->host_count)
			continue; /* of another job, which may have labels that this one has not */
		f->place[i] = (uint32_t)(place - first);
		if (run == NULL || p->columns.labels_id[at] != labels) {
			labels = p->columns.labels_id[at];
			run = &f->runs[f->run_count];
			/* one of LS_QUERY_LINES_MAX */
			rc = fleet_labels_slot(f, p->labels[labels], &run->slot);
			run->from = i;
			f->run_count++;
		}
		run->to = i + 1;
	}
	f->chosen = rc == 0 ? p->chosen : 0;
	return rc;
}

static void
fleet_merge_sums(const struct fleet *f, const struct ls_rollup_part *p,
	const struct fleet_run *run, size_t base)
{
	const double *v = p->columns.sum;
	double *sum = run->slot->sum + base;

	for (size_t i = run->from; i < run->to; i++)
		if (f->place[i] != FLEET_NOWHERE)
			sum[f->place[i]] += v[p->row[i]];
}

/* sign -1: the least, 1: the greatest. */
static void
fleet_merge_peaks(const struct fleet *f, const struct ls_rollup_part *p,
	const struct fleet_run *run, size_t base, const double *v, double *peak,
	double sign)
{
	const uint64_t *count = run->slot->count + base;
	size_t i, at;

	for (i = run->from; i < run->to; i++) {
		at = f->place[i];
		if (at != FLEET_NOWHERE &&
			(count[at] == 0 ||
				v[p->row[i]] * sign > peak[base + at] * sign))
			peak[base + at] = v[p->row[i]];
	}
}

/* The counts last: who has one has been there before. */
static void
fleet_merge_run(const struct fleet *f, const struct ls_rollup_part *p,
	const struct fleet_run *run, size_t base)
{
	struct fleet_slot *s = run->slot;
	uint64_t *count = s->count + base;

	if (s->sum != NULL)
		fleet_merge_sums(f, p, run, base);
	if (s->min != NULL)
		fleet_merge_peaks(f, p, run, base, p->columns.min, s->min, -1);
	if (s->max != NULL)
		fleet_merge_peaks(f, p, run, base, p->columns.max, s->max, 1);
	for (size_t i = run->from; i < run->to; i++)
		if (f->place[i] != FLEET_NOWHERE)
			count[f->place[i]] += p->columns.n[p->row[i]];
}

static int
fleet_part(void *arg, const struct ls_rollup_part *p)
{
	struct fleet *f = arg;
	size_t b = (size_t)((p->t_us - f->range.begin_us) / f->range.step_us), i;
	int rc = ls_query_stopped(f->q->query);

	if (b >= f->range.count) /* the reader gives nothing before the begin */
		return -LS_ERANGE;
	if (rc == 0 && f->chosen != p->chosen)
		rc = fleet_runs(f, p);
	if (p->t_us + (int64_t)p->span_s * 1000000 > f->until_us)
		f->until_us = p->t_us + (int64_t)p->span_s * 1000000;
	for (i = 0; i < f->run_count && rc == 0; i++)
		fleet_merge_run(f, p, &f->runs[i], b * f->host_count);
	return rc;
}

/* What is shown needs these columns, and is there at all where there is a count. */
static unsigned
fleet_columns(const struct ls_ask *ask)
{
	static const unsigned columns[LS_AGG_KINDS] = { LS_ROLLUP_COUNT | LS_ROLLUP_SUM,
		LS_ROLLUP_COUNT | LS_ROLLUP_MIN, LS_ROLLUP_COUNT | LS_ROLLUP_MAX,
		LS_ROLLUP_COUNT };

	return ask->host[0] != '\0' ? LS_ROLLUP_ALL : columns[ask->agg];
}

/* Hours where a step is one, as far as they are made; the rest from minutes. */
static int
fleet_rollups(struct fleet *f)
{
	const struct ls_rollup_wanted wanted = { .metric = f->selector.name,
		.span_s = 60,
		.hours = f->range.step_us % FLEET_HOUR_US == 0,
		.from_us = f->range.from_us / FLEET_MINUTE_US * FLEET_MINUTE_US,
		.to_us = f->range.to_us + 1,
		.columns = f->columns,
		.labels = fleet_wants_labels,
		.arg = f };

	f->source = "rollups";
	return ls_rollup_read(f->q->rollups, &wanted, fleet_part, f, &f->bad);
}

/* --- the answer ----------------------------------------------------------- */

static void
fleet_values_json(const struct fleet *f, const struct fleet_slot *s, size_t host,
	unsigned agg, struct ls_json_out *o)
{
	ls_json_out_json(o, ls_agg_name(agg), "[");
	for (size_t b = 0; b < f->range.count; b++) {
		const struct ls_bucket cell = fleet_cell(s, b * f->host_count + host);

		ls_json_out_number(o, NULL, ls_bucket_value(&cell, (enum ls_agg)agg));
	}
	ls_json_out_raw(o, "]");
}

static bool
fleet_has(const struct fleet *f, const struct fleet_slot *s, size_t host)
{
	for (size_t b = 0; b < f->range.count; b++) {
		if (s->count[b * f->host_count + host] > 0)
			return true;
	}
	return false;
}

/* The lines of one host: of a host that was asked for all four, else what was asked
 * for. */
static void
fleet_host_json(const struct fleet *f, size_t host, struct ls_json_out *o)
{
	for (size_t i = 0; i < f->slot_count; i++) {
		if (!fleet_has(f, &f->slots[i], host))
			continue;
		ls_json_out_json(o, NULL, "{");
		ls_question_series_json(f->hosts[host], NULL, f->slots[i].series, o);
		for (unsigned agg = 0; agg < LS_AGG_KINDS; agg++) {
			if (f->ask->host[0] != '\0' || agg == (unsigned)f->ask->agg)
				fleet_values_json(f, &f->slots[i], host, agg, o);
		}
		ls_json_out_raw(o, "}");
	}
}

/* What the answer is about, of a cell that was measured. */
static double
fleet_value(const struct fleet_slot *s, size_t at, enum ls_agg agg)
{
	if (agg == LS_AGG_MEAN)
		return s->sum[at] / (double)s->count[at];
	if (agg == LS_AGG_COUNT)
		return (double)s->count[at];
	return agg == LS_AGG_MIN ? s->min[at] : s->max[at];
}

static size_t
fleet_gather(const struct fleet *f, size_t bucket, double *ret_values)
{
	const enum ls_agg agg = (enum ls_agg)f->ask->agg;
	size_t i, h, n = 0;

	for (i = 0; i < f->slot_count; i++) {
		const struct fleet_slot *s = &f->slots[i];
		size_t base = bucket * f->host_count;

		for (h = 0; h < f->host_count; h++) {
			if (s->count[base + h] > 0)
				ret_values[n++] = fleet_value(s, base + h, agg);
		}
	}
	return n;
}

enum {
	BAND_P10,
	BAND_P50,
	BAND_P90,
	BAND_MIN,
	BAND_MAX,
	BAND_MEAN,
	BAND_LINES,
	BAND_KINDS
};

static const double fleet_quantiles[BAND_MAX + 1] = { 0.1, 0.5, 0.9, 0, 1 };

/* What of all lines' values in a bucket. */
static void
fleet_band_bucket(double *v, size_t n, double ret_band[BAND_KINDS])
{
	for (size_t i = 0; i <= BAND_MAX; i++)
		ret_band[i] = ls_stats_quantile(v, n, fleet_quantiles[i]);
	ret_band[BAND_MEAN] = ls_stats_mean(v, n);
	ret_band[BAND_LINES] = (double)n;
}

static int
fleet_band_json(const struct fleet *f, struct ls_json_out *o)
{
	static const char *const names[BAND_KINDS] = { "p10", "p50", "p90", "min",
		"max", "mean", "lines" };
	double(*band)[BAND_KINDS] = calloc(f->range.count, sizeof(*band));
	double *values = calloc(f->host_count * f->slot_count + 1, sizeof(*values));
	int rc = band != NULL && values != NULL ? 0 : -ENOMEM;

	for (size_t b = 0; b < f->range.count && rc == 0; b++)
		fleet_band_bucket(values, fleet_gather(f, b, values), band[b]);
	for (size_t k = 0; k < BAND_KINDS && rc == 0; k++) {
		ls_json_out_json(o, names[k], "[");
		for (size_t b = 0; b < f->range.count; b++)
			ls_json_out_number(o, NULL, band[b][k]);
		ls_json_out_raw(o, "]");
	}
	free(band);
	free(values);
	return rc;
}

/* Lines of hosts [from, to) of those read. */
static int
fleet_json(const struct fleet *f, size_t from, size_t to, size_t next,
	struct ls_json_out *o)
{
	int rc = 0;

	ls_json_out_raw(o, "{\"schema_version\":1");
	ls_json_out_string(o, "source", f->source);
	ls_json_out_string(o, "metric", f->selector.name);
	ls_json_out_string(o, "unit", ls_series_text_unit(f->selector.name));
	ls_range_json(&f->range, o);
	ls_json_out_string(o, "agg", ls_agg_name((unsigned)f->ask->agg));
	ls_json_out_whole(o, "hosts", (int64_t)f->q->members.host_count);
	ls_json_out_whole(o, "left_out", (int64_t)f->bad);
	ls_json_out_time(o, "until", f->until_us);
	ls_json_out_json(o, "peers", f->ask->band ? "{" : "null");
	if (f->ask->band) {
		rc = fleet_band_json(f, o);
		ls_json_out_raw(o, "}");
	}
	ls_json_out_json(o, "items", "[");
	for (size_t h = from; h < to; h++)
		fleet_host_json(f, h, o);
	ls_question_end_json(next, o);
	return rc;
}

/* --- the question --------------------------------------------------------- */

/* Which hosts are read: with a band all, else the one asked for, else a page of them.
 */
static int
fleet_choose(struct fleet *f, size_t *ret_from, size_t *ret_to, size_t *ret_next)
{
	const struct ls_job_members *m = &f->q->members;
	size_t from = 0, count = 0, room;
	bool one = f->ask->host[0] != '\0';

	if (one) {
		from = ls_job_members_host(m, f->ask->host);
		if (from == m->host_count)
			return -LS_EUNKNOWN;
		count = 1;
	} else if (!f->ask->band) {
		from = f->ask->skip;
		if (from >= m->host_count)
			return -LS_ERANGE;
		count = m->host_count - from;
		count = count < f->ask->limit ? count : f->ask->limit;
		room = LS_QUERY_VALUES_MAX / f->range.count;
		count = count < room ? count : room;
	}
	f->hosts = f->ask->band ? m->hosts : m->hosts + from;
	f->host_count = f->ask->band ? m->host_count : count;
	*ret_from = f->ask->band ? from : 0;
	*ret_to = *ret_from + count;
	*ret_next = !one && !f->ask->band && from + count < m->host_count ? from + count
									  : 0;
	return 0;
}

int
ls_question_fleet(struct ls_questions *q, const struct ls_ask *ask,
	struct ls_json_out *o)
{
	struct fleet f = { .q = q, .ask = ask, .columns = fleet_columns(ask) };
	size_t from = 0, to = 0, next = 0;
	int64_t min_step_s = ask->to_us - ask->from_us > LS_QUERY_RAW_FLEET_US ? 60 : 1;
	int rc = ls_range_cut(ask->from_us, ask->to_us, ask->step_s, min_step_s,
		&f.range);

	if (rc == 0)
		rc = ls_selector_init(&f.selector, ask->series);
	if (rc == 0)
		rc = ls_question_members(q, ask->job);
	if (rc == 0)
		rc = fleet_choose(&f, &from, &to, &next);
	if (rc == 0)
		rc = fleet_init(&f);
	if (rc == 0)
		rc = f.range.step_us % FLEET_MINUTE_US == 0 ? fleet_rollups(&f)
							    : fleet_chunks(&f);
	if (rc == 0)
		rc = fleet_json(&f, from, to, next, o);
	fleet_fini(&f);
	return rc;
}

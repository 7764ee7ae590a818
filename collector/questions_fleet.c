/* SPDX-License-Identifier: Apache-2.0 */
/* questions_fleet - the part of questions about one metric of all hosts of a job. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/questions_state.h"
#include "collector/series_text.h"
#include "collector/engine/stats.h"

#define FLEET_NOWHERE SIZE_MAX /* of no host that is read */
#define FLEET_MINUTE_US 60000000ll
#define FLEET_HOUR_US 3600000000ll

/* Series of the same text on all hosts asked for: cells of one bucket stand together, hosts in order. */
struct fleet_slot {
	char *series;
	struct ls_bucket *cell; /* [bucket * hosts + host] */
};

struct fleet {
	struct ls_questions *q;
	const struct ls_ask *ask;
	struct ls_range range;
	struct ls_selector selector;
	const char *const *hosts; /* those that are read, and how many */
	size_t host_count;
	size_t slot_count;
	struct fleet_slot *slots; /* LS_QUERY_LINES_MAX */
	size_t host;              /* the one that is being read */
	int32_t map_day;          /* of map; 0: none */
	size_t map_count;
	size_t *map;              /* the place of each host_id of that file in hosts, or FLEET_NOWHERE */
	int64_t until_us;         /* end of the last minute that roll-ups gave; 0: none did */
	const char *source;
	uint64_t bad;
};

static void
fleet_fini(struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->slot_count; i++) {
		free(f->slots[i].series);
		free(f->slots[i].cell);
	}
	free(f->slots);
	free(f->map);
	ls_query_series_want(f->q->series, NULL, NULL); /* the selector goes */
	ls_selector_fini(&f->selector);
}

static int
fleet_slot(struct fleet *f, const char *series, struct fleet_slot **ret_slot)
{
	struct fleet_slot *s;
	size_t i;

	for (i = 0; i < f->slot_count; i++) {
		if (strcmp(f->slots[i].series, series) == 0) {
			*ret_slot = &f->slots[i];
			return 0;
		}
	}
	if (f->slot_count == LS_QUERY_LINES_MAX ||
		(f->slot_count + 1) * f->range.count > LS_QUERY_CELLS_MAX / f->host_count)
		return -LS_ELIMIT;
	s = &f->slots[f->slot_count];
	s->series = strdup(series);
	s->cell = calloc(f->range.count * f->host_count, sizeof(*s->cell));
	if (s->series == NULL || s->cell == NULL) {
		free(s->series);
		free(s->cell);
		return -ENOMEM;
	}
	f->slot_count++;
	*ret_slot = s;
	return 0;
}

/* --- from chunks: for minutes, since each host has chunks of its own ----------------------------- */

static int
fleet_column(void *arg, const struct ls_query_column *c)
{
	struct fleet *f = arg;
	struct fleet_slot *slot = NULL;
	size_t i;
	int rc = fleet_slot(f, c->series, &slot);

	for (i = c->from; i < c->to && rc == 0; i++) {
		size_t b = (size_t)((c->t_us[i] - f->range.begin_us) / f->range.step_us);

		if (c->present[i])
			ls_bucket_add(&slot->cell[b * f->host_count + f->host], c->value[i]);
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

/* --- from roll-ups ---------------------------------------------------------------------------- */

static size_t
fleet_place(const struct fleet *f, const char *host)
{
	size_t i = ls_job_members_host(&f->q->members, host);
	size_t first = (size_t)(f->hosts - f->q->members.hosts);

	return i >= first && i - first < f->host_count ? i - first : FLEET_NOWHERE;
}

/* Brings the map to the file of a part. */
static int
fleet_map(struct fleet *f, const struct ls_rollup_part *p)
{
	size_t *map, i;

	if (f->map_day == p->day && f->map_count >= p->host_ids)
		return 0;
	map = reallocarray(f->map, p->host_ids + 1, sizeof(*map));
	if (map == NULL)
		return -ENOMEM;
	f->map = map;
	f->map_day = p->day;
	f->map_count = p->host_ids;
	for (i = 0; i < p->host_ids; i++)
		map[i] = p->host[i] != NULL ? fleet_place(f, p->host[i]) : FLEET_NOWHERE;
	return 0;
}

/* The text of the metric's series with these labels; false: longer than any that was taken in. */
static bool
fleet_series(const struct fleet *f, const char *labels, char ret_series[LS_SERIES_TEXT_MAX_BYTES])
{
	bool bare = labels[0] == '\0';
	int n = snprintf(ret_series, LS_SERIES_TEXT_MAX_BYTES, "%s%s%s%s", f->selector.name, bare ? "" : "{",
		labels, bare ? "" : "}");

	return n > 0 && n < LS_SERIES_TEXT_MAX_BYTES;
}

static bool
fleet_wants_labels(void *arg, const char *labels)
{
	struct fleet *f = arg;
	char series[LS_SERIES_TEXT_MAX_BYTES];

	return fleet_series(f, labels, series) && ls_selector_wants(&f->selector, "", series);
}

static int
fleet_labels_slot(struct fleet *f, const char *labels, struct fleet_slot **ret_slot)
{
	char series[LS_SERIES_TEXT_MAX_BYTES];

	return fleet_series(f, labels, series) ? fleet_slot(f, series, ret_slot) : -LS_ECORRUPT;
}

static int
fleet_part(void *arg, const struct ls_rollup_part *p)
{
	struct fleet *f = arg;
	size_t b = (size_t)((p->t_us - f->range.begin_us) / f->range.step_us), i;
	uint32_t labels = 0;
	struct fleet_slot *slot = NULL;
	int rc = ls_query_stopped(f->q->query);

	if (b >= f->range.count) /* the reader gives nothing before the begin */
		return -LS_ERANGE;
	if (rc == 0)
		rc = fleet_map(f, p);
	if (p->t_us + (int64_t)p->span_s * 1000000 > f->until_us)
		f->until_us = p->t_us + (int64_t)p->span_s * 1000000;
	for (i = 0; i < p->count && rc == 0; i++) {
		const struct ls_rollup_row *r = &p->rows[i];
		size_t h = f->map[r->host_id];

		if (h == FLEET_NOWHERE)
			continue; /* of another job, which may have labels that this one has not */
		if (slot == NULL || r->labels_id != labels)
			rc = fleet_labels_slot(f, p->labels[r->labels_id], &slot);
		labels = r->labels_id;
		if (rc == 0)
			ls_bucket_merge(&slot->cell[b * f->host_count + h],
				&(struct ls_bucket){ r->min, r->max, r->sum, r->count });
	}
	return rc;
}

/* What is shown needs these columns, and is there at all where there is a count. */
static unsigned
fleet_columns(const struct fleet *f)
{
	static const unsigned columns[LS_AGG_KINDS] = { LS_ROLLUP_COUNT | LS_ROLLUP_SUM,
		LS_ROLLUP_COUNT | LS_ROLLUP_MIN, LS_ROLLUP_COUNT | LS_ROLLUP_MAX, LS_ROLLUP_COUNT };

	return f->ask->host[0] != '\0' ? LS_ROLLUP_COUNT | LS_ROLLUP_MIN | LS_ROLLUP_MAX | LS_ROLLUP_SUM
				       : columns[f->ask->agg];
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
		.columns = fleet_columns(f),
		.labels = fleet_wants_labels,
		.arg = f };

	f->source = "rollups";
	return ls_rollup_read(f->q->rollups, &wanted, fleet_part, f, &f->bad);
}

/* --- the answer ------------------------------------------------------------------------------ */

static void
fleet_values_json(const struct fleet *f, const struct fleet_slot *s, size_t host, unsigned agg,
	struct ls_json_out *o)
{
	size_t b;

	ls_json_out_name(o, true, ls_agg_name(agg));
	ls_json_out_raw(o, "[");
	for (b = 0; b < f->range.count; b++) {
		if (b > 0)
			ls_json_out_raw(o, ",");
		ls_json_out_number(o,
			ls_bucket_value(&s->cell[b * f->host_count + host], (enum ls_agg)agg));
	}
	ls_json_out_raw(o, "]");
}

static bool
fleet_has(const struct fleet *f, const struct fleet_slot *s, size_t host)
{
	size_t b;

	for (b = 0; b < f->range.count; b++) {
		if (s->cell[b * f->host_count + host].count > 0)
			return true;
	}
	return false;
}

/* The lines of one host: of a host that was asked for all four, else what was asked for. */
static void
fleet_host_json(const struct fleet *f, size_t host, bool *comma, struct ls_json_out *o)
{
	size_t i;
	unsigned agg;

	for (i = 0; i < f->slot_count; i++) {
		if (!fleet_has(f, &f->slots[i], host))
			continue;
		ls_json_out_raw(o, *comma ? ",{" : "{");
		*comma = true;
		ls_question_series_json(f->hosts[host], NULL, f->slots[i].series, o);
		for (agg = 0; agg < LS_AGG_KINDS; agg++) {
			if (f->ask->host[0] != '\0' || agg == (unsigned)f->ask->agg)
				fleet_values_json(f, &f->slots[i], host, agg, o);
		}
		ls_json_out_raw(o, "}");
	}
}

enum { BAND_P10, BAND_P50, BAND_P90, BAND_MIN, BAND_MAX, BAND_MEAN, BAND_LINES, BAND_KINDS };

/* What of all lines' values in a bucket. */
static void
fleet_band_bucket(double *v, size_t n, double ret_band[BAND_KINDS])
{
	double sum = 0;
	size_t i;

	ret_band[BAND_LINES] = (double)n;
	ret_band[BAND_P50] = ls_stats_quantile(v, n, 0.5);
	ret_band[BAND_P10] = ls_stats_quantile(v, n, 0.1);
	ret_band[BAND_P90] = ls_stats_quantile(v, n, 0.9);
	ret_band[BAND_MIN] = ret_band[BAND_MAX] = n > 0 ? v[0] : NAN;
	for (i = 0; i < n; i++) {
		sum += v[i];
		if (v[i] < ret_band[BAND_MIN])
			ret_band[BAND_MIN] = v[i];
		if (v[i] > ret_band[BAND_MAX])
			ret_band[BAND_MAX] = v[i];
	}
	ret_band[BAND_MEAN] = n > 0 ? sum / (double)n : NAN;
}

static size_t
fleet_gather(const struct fleet *f, size_t bucket, double *ret_values)
{
	size_t i, h, n = 0;

	for (i = 0; i < f->slot_count; i++) {
		const struct ls_bucket *cell = f->slots[i].cell + bucket * f->host_count;

		for (h = 0; h < f->host_count; h++) {
			if (cell[h].count > 0)
				ret_values[n++] = ls_bucket_value(&cell[h], (enum ls_agg)f->ask->agg);
		}
	}
	return n;
}

static int
fleet_band_json(const struct fleet *f, struct ls_json_out *o)
{
	static const char *const names[BAND_KINDS] = { "p10", "p50", "p90", "min", "max", "mean", "lines" };
	double(*band)[BAND_KINDS] = calloc(f->range.count, sizeof(*band));
	double *values = calloc(f->host_count * f->slot_count + 1, sizeof(*values));
	size_t b, k;
	int rc = band != NULL && values != NULL ? 0 : -ENOMEM;

	for (b = 0; b < f->range.count && rc == 0; b++)
		fleet_band_bucket(values, fleet_gather(f, b, values), band[b]);
	for (k = 0; k < BAND_KINDS && rc == 0; k++) {
		ls_json_out_name(o, k > 0, names[k]);
		ls_json_out_raw(o, "[");
		for (b = 0; b < f->range.count; b++) {
			if (b > 0)
				ls_json_out_raw(o, ",");
			ls_json_out_number(o, band[b][k]);
		}
		ls_json_out_raw(o, "]");
	}
	free(band);
	free(values);
	return rc;
}

/* Lines of hosts [from, to) of those read. */
static int
fleet_json(const struct fleet *f, size_t from, size_t to, size_t next, struct ls_json_out *o)
{
	bool comma = false;
	size_t h;
	int rc = 0;

	ls_json_out_raw(o, "{\"schema_version\":1,\"source\":");
	ls_json_out_string(o, f->source);
	ls_json_out_name(o, true, "metric");
	ls_json_out_string(o, f->selector.name);
	ls_json_out_name(o, true, "unit");
	ls_json_out_string(o, ls_series_text_unit(f->selector.name));
	ls_json_out_raw(o, ",");
	ls_range_json(&f->range, o);
	ls_json_out_name(o, true, "agg");
	ls_json_out_string(o, ls_agg_name((unsigned)f->ask->agg));
	ls_json_out_name(o, true, "hosts");
	ls_json_out_whole(o, (int64_t)f->q->members.host_count);
	ls_json_out_name(o, true, "left_out");
	ls_json_out_whole(o, (int64_t)f->bad);
	ls_json_out_name(o, true, "until");
	if (f->until_us > 0)
		ls_json_out_time(o, f->until_us);
	else
		ls_json_out_raw(o, "null");
	ls_json_out_name(o, true, "peers");
	if (f->ask->band) {
		ls_json_out_raw(o, "{");
		rc = fleet_band_json(f, o);
		ls_json_out_raw(o, "}");
	} else {
		ls_json_out_raw(o, "null");
	}
	ls_json_out_name(o, true, "items");
	ls_json_out_raw(o, "[");
	for (h = from; h < to; h++)
		fleet_host_json(f, h, &comma, o);
	ls_json_out_raw(o, "]");
	ls_question_end_json(next, o);
	return rc;
}

/* --- the question ---------------------------------------------------------------------------- */

/* Which hosts are read: with a band all, else the one asked for, else a page of them. */
static int
fleet_choose(struct fleet *f, size_t *ret_from, size_t *ret_to, size_t *ret_next)
{
	const struct ls_job_members *m = &f->q->members;
	size_t at = ls_job_members_host(m, f->ask->host), room = f->ask->limit, skip = f->ask->skip;

	*ret_next = 0;
	if (f->ask->host[0] != '\0') {
		if (at == m->host_count)
			return -LS_EUNKNOWN;
		f->hosts = f->ask->band ? m->hosts : m->hosts + at;
		f->host_count = f->ask->band ? m->host_count : 1;
		*ret_from = f->ask->band ? at : 0;
		*ret_to = *ret_from + 1;
		return 0;
	}
	if (f->ask->band) {
		f->hosts = m->hosts;
		f->host_count = m->host_count;
		*ret_from = *ret_to = 0;
		return 0;
	}
	if (skip >= m->host_count)
		return -LS_ERANGE;
	if (room > LS_QUERY_VALUES_MAX / f->range.count)
		room = LS_QUERY_VALUES_MAX / f->range.count;
	f->hosts = m->hosts + skip;
	f->host_count = m->host_count - skip < room ? m->host_count - skip : room;
	*ret_from = 0;
	*ret_to = f->host_count;
	if (skip + f->host_count < m->host_count)
		*ret_next = skip + f->host_count;
	return 0;
}

int
ls_question_fleet(struct ls_questions *q, const struct ls_ask *ask, struct ls_json_out *o)
{
	struct fleet f = { .q = q, .ask = ask };
	size_t from = 0, to = 0, next = 0;
	int64_t min_step_s = ask->to_us - ask->from_us > LS_QUERY_RAW_FLEET_US ? 60 : 1;
	int rc = ls_range_cut(ask->from_us, ask->to_us, ask->step_s, min_step_s, &f.range);

	if (rc == 0)
		rc = ls_selector_init(&f.selector, ask->series);
	if (rc == 0)
		rc = ls_question_members(q, ask->job);
	if (rc == 0)
		rc = fleet_choose(&f, &from, &to, &next);
	if (rc == 0) {
		f.slots = calloc(LS_QUERY_LINES_MAX, sizeof(*f.slots));
		rc = f.slots != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = f.range.step_us % FLEET_MINUTE_US == 0 ? fleet_rollups(&f) : fleet_chunks(&f);
	if (rc == 0)
		rc = fleet_json(&f, from, to, next, o);
	fleet_fini(&f);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"

/* A measured value may be of a moment before midnight and come after it, or seem to. */
#define SERIES_SLACK_US 60000000ll

/* A dictionary, and which of its columns are wanted. */
struct series_known {
	int32_t day;
	int rc; /* 0, or why there is none */
	size_t wanted_count;
	uint16_t wanted[LS_SERIES_PER_GROUP_MAX];
	bool is_wanted[LS_SERIES_PER_GROUP_MAX]; /* the same by column */
	struct ls_query_dictionary dictionary;
	uint64_t hash;
};

struct ls_query_series {
	struct ls_query *query;
	struct ls_chunk_codec *codec;
	ls_query_wanted_fn *wanted;
	void *wanted_arg;
	size_t known_count, known_next; /* next: which makes room */
	struct series_known *known[LS_GROUPS_MAX];
	int64_t t_us[LS_CHUNK_ROWS_MAX];
	uint64_t bad;
};

/* One visit. */
struct series_visit {
	struct ls_query_series *s;
	const struct ls_query_span *span;
	ls_query_column_fn *fn;
	void *arg;
	bool any;
};

struct ls_query_series *
ls_query_series_new(struct ls_query *q)
{
	struct ls_query_series *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->query = q;
	s->codec = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	if (s->codec == NULL) {
		ls_query_series_free(s);
		return NULL;
	}
	return s;
}

static void
series_forget(struct ls_query_series *s)
{
	for (size_t i = 0; i < s->known_count; i++) {
		ls_query_dictionary_fini(&s->known[i]->dictionary);
		free(s->known[i]);
	}
	s->known_count = 0;
	s->known_next = 0;
}

void
ls_query_series_free(struct ls_query_series *s)
{
	if (s == NULL)
		return;
	series_forget(s);
	ls_chunk_codec_free(s->codec);
	free(s);
}

void
ls_query_series_want(struct ls_query_series *s, ls_query_wanted_fn *wanted, void *arg)
{
	series_forget(s);
	s->wanted = wanted;
	s->wanted_arg = arg;
}

uint64_t
ls_query_series_bad(const struct ls_query_series *s)
{
	return s->bad;
}

/* --- dictionaries --------------------------------------------------------- */

static struct series_known *
series_room(struct ls_query_series *s)
{
	struct series_known *k;

	if (s->known_count < LS_GROUPS_MAX) {
		k = calloc(1, sizeof(*k));
		if (k != NULL)
			s->known[s->known_count++] = k;
		return k;
	}
	k = s->known[s->known_next];
	s->known_next = (s->known_next + 1) % LS_GROUPS_MAX;
	ls_query_dictionary_fini(&k->dictionary);
	k->wanted_count = 0;
	memset(k->is_wanted, 0, sizeof(k->is_wanted));
	return k;
}

/* The dictionary of a chunk. -ENOMEM, or an error that ends the visit; k->rc says if
 * there is one. */
static int
series_dictionary(struct ls_query_series *s, int32_t day, uint64_t hash,
	const struct series_known **ret_known)
{
	struct series_known *k;

	for (size_t i = 0; i < s->known_count; i++) {
		if (s->known[i]->hash == hash && s->known[i]->day == day) {
			*ret_known = s->known[i];
			return 0;
		}
	}
	k = series_room(s);
	if (k == NULL)
		return -ENOMEM;
	k->day = day;
	k->hash = hash;
	k->rc = ls_query_dictionary(s->query, day, hash, &k->dictionary);
	for (size_t i = 0; k->rc == 0 && i < k->dictionary.count; i++) {
		k->is_wanted[i] = s->wanted(s->wanted_arg, k->dictionary.group,
			k->dictionary.series[i]);
		if (k->is_wanted[i])
			k->wanted[k->wanted_count++] = (uint16_t)i;
	}
	*ret_known = k;
	return k->rc == -ENOMEM ? -ENOMEM : ls_query_stopped(s->query);
}

/* --- chunks --------------------------------------------------------------- */

static void
series_bad(struct ls_query_series *s, const struct ls_query_chunk *c, int rc)
{
	s->bad++;
	ls_log(LS_LOG_WARN, "query",
		"chunk %lld of %s in the file of day %d: %s; skipped", (long long)c->id,
		c->host, (int)c->day, ls_err_text(rc));
}

/* Times of the rows on our time line; which of them are in the span. */
static void
series_rows(struct series_visit *v, const struct ls_query_chunk *c,
	const struct ls_chunk_table *t, struct ls_query_column *ret_column)
{
	size_t i, from = 0, to;

	for (i = 0; i < t->rows; i++)
		v->s->t_us[i] = ls_store_map_us(&c->map, (int64_t)t->t_mono_ns[i]);
	while (from < t->rows && v->s->t_us[from] < v->span->from_us)
		from++;
	to = from;
	while (to < t->rows && v->s->t_us[to] <= v->span->to_us)
		to++;
	ret_column->t_us = v->s->t_us;
	ret_column->from = from;
	ret_column->to = to;
}

static int
series_chunk(struct series_visit *v, struct ls_query_day *d, struct ls_query_chunk *c,
	sqlite3_stmt *stmt)
{
	struct ls_query_series *s = v->s;
	const struct series_known *k = NULL;
	struct ls_query_column column = { 0 };
	struct ls_chunk_table t;
	int rc = series_dictionary(s, c->day, c->dictionary, &k);

	if (rc != 0)
		return rc;
	if (k->rc != 0)
		series_bad(s, c, k->rc);
	if (k->rc != 0 || k->wanted_count == 0)
		return 0; /* its body is never read */
	rc = ls_query_day_body(d, stmt, 8, &c->body, &c->len);
	if (rc != 0)
		return rc;
	rc = ls_chunk_decode_some(s->codec, c->body, c->len, k->is_wanted, &t);
	/* The checksum was right; was its maker? */
	if (rc == 0 &&
		(t.columns != k->dictionary.count || t.rows == 0 ||
			t.t_mono_ns[t.rows - 1] > LS_WIRE_TIME_MAX_NS))
		rc = -LS_ECORRUPT;
	if (rc != 0) {
		series_bad(s, c, rc);
		return rc == -ENOMEM ? rc : 0;
	}
	series_rows(v, c, &t, &column);
	column.group = k->dictionary.group;
	for (size_t i = 0; i < k->wanted_count && rc == 0 && column.to > column.from;
		i++) {
		column.series = k->dictionary.series[k->wanted[i]];
		column.value = t.value + k->wanted[i] * t.stride;
		column.present = t.present + k->wanted[i] * t.stride;
		rc = v->fn(v->arg, &column);
	}
	return rc;
}

static int
series_step(struct series_visit *v, struct ls_query_day *d, int32_t day,
	struct ls_sql_rows *rows)
{
	struct ls_query_chunk c = { .day = day };

	(void)snprintf(c.host, sizeof(c.host), "%s", v->span->host);
	while (ls_sql_next(rows)) {
		rows->rc = ls_sql_read(rows->stmt,
			LS_SQL_FIELDS(ls_sql_to_i64(&c.id),
				ls_sql_to_u64(&c.dictionary),
				ls_sql_to_i64(&c.t_first_us),
				ls_sql_to_i64(&c.t_last_us),
				ls_sql_to_i64(&c.map.ref_mono_ns),
				ls_sql_to_i64(&c.map.offset_ns),
				ls_sql_to_i64(&c.map.drift_ppb),
				ls_sql_to_i64(&c.map.uncertainty_ns)));
		if (rows->rc == 0)
			rows->rc = ls_query_stopped(v->s->query);
		if (rows->rc == 0)
			rows->rc = series_chunk(v, d, &c, rows->stmt);
	}
	ls_query_day_rest(d);
	return ls_sql_end(rows);
}

/* The number of the host in a file; 0: it is not there. */
static int
series_host(struct ls_query_day *d, const char *host, int64_t *ret_id)
{
	struct ls_sql_rows rows = ls_sql_again(ls_query_day_kept(d, LS_QUERY_HOST_ID),
		LS_SQL_VALUES(ls_sql_text(host)));

	*ret_id = ls_sql_next(&rows) ? sqlite3_column_int64(rows.stmt, 0) : 0;
	return ls_sql_end(&rows);
}

static int
series_day(struct series_visit *v, int32_t day)
{
	const struct ls_query_span *span = v->span;
	struct ls_query_day *d;
	struct ls_sql_rows rows;
	int64_t host = 0;
	int rc = ls_query_day_of(v->s->query, day, &d);

	if (rc == -ENOENT)
		return 0; /* retention was faster */
	if (rc == 0)
		rc = series_host(d, span->host, &host);
	if (rc != 0 || host == 0)
		return rc;
	v->any = true;
	rows = ls_sql_again(ls_query_day_kept(d, LS_QUERY_HOST_CHUNKS),
		LS_SQL_VALUES(ls_sql_int(host),
			ls_sql_int(span->from_us - LS_CHUNK_SPAN_US),
			ls_sql_int(span->from_us), ls_sql_int(span->to_us)));
	return series_step(v, d, day, &rows);
}

int
ls_query_series_visit(struct ls_query_series *s, const struct ls_query_span *span,
	ls_query_column_fn *fn, void *arg)
{
	struct series_visit v = { .s = s, .span = span, .fn = fn, .arg = arg };
	struct ls_days days = { 0 };
	int rc = ls_query_days(s->query, &days);
	int32_t first = ls_days_of(span->from_us - SERIES_SLACK_US);

	for (size_t i = 0; rc == 0 && i < days.count; i++) {
		if (days.day[i] >= first)
			rc = series_day(&v, days.day[i]);
	}
	return rc != 0 || v.any ? rc : -LS_EUNKNOWN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_rollup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"
#include "storage/columns/rollup_sum.h"

/* Texts by id, and which of them the question at hand wants. */
struct rollup_names {
	size_t ids; /* one more than the greatest */
	size_t name_bytes, wanted_bytes; /* there is room for */
	char **name;
	bool *wanted;
	bool all; /* of them are wanted */
};

struct rollup_day {
	int32_t day; /* 0: not in use */
	uint64_t used;
	uint64_t names; /* when they were first read, in uses of the reader */
	struct rollup_names host, labels;
};

struct ls_rollup_reader {
	struct ls_query *q;
	struct ls_rollup_codec *codec;
	uint64_t uses;
	struct rollup_day day[LS_ROLLUP_NAME_DAYS];
	/* Which rows of a body are wanted: of the names at hand, of bodies with such
	 * ids. */
	uint64_t chosen, keys; /* keys 0: of none */
	size_t row_count;
	uint32_t row[LS_ROLLUP_ROWS_MAX];
};

static void
names_fini(struct rollup_names *n)
{
	for (size_t i = 0; i < n->ids; i++)
		free(n->name[i]);
	free(n->name);
	free(n->wanted);
	memset(n, 0, sizeof(*n));
}

struct ls_rollup_reader *
ls_rollup_reader_new(struct ls_query *q)
{
	struct ls_rollup_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->q = q;
	r->codec = ls_rollup_codec_new();
	if (r->codec == NULL) {
		ls_rollup_reader_free(r);
		return NULL;
	}
	return r;
}

void
ls_rollup_reader_free(struct ls_rollup_reader *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < LS_ROLLUP_NAME_DAYS; i++) {
		names_fini(&r->day[i].host);
		names_fini(&r->day[i].labels);
	}
	ls_rollup_codec_free(r->codec);
	free(r);
}

/* --- names ---------------------------------------------------------------- */

static int
names_put(struct rollup_names *n, int64_t id, const char *text)
{
	size_t ids = (size_t)id + 1;
	int rc;

	if (id < 0 || id > LS_ROLLUP_ID_MAX || text == NULL)
		return id < 0 || id > LS_ROLLUP_ID_MAX ? -LS_ECORRUPT : -ENOMEM;
	rc = ls_mem_reserve((void **)&n->name, &n->name_bytes, ids * sizeof(*n->name));
	if (rc == 0)
		rc = ls_mem_reserve((void **)&n->wanted, &n->wanted_bytes,
			ids * sizeof(*n->wanted));
	if (rc != 0)
		return rc;
	if (ids > n->ids) {
		memset(n->name + n->ids, 0, (ids - n->ids) * sizeof(*n->name));
		n->ids = ids;
	}
	if (n->name[id] != NULL)
		return 0;
	n->name[id] = strdup(text);
	return n->name[id] != NULL ? 0 : -ENOMEM;
}

/* Reads the names that came since the last time. */
static int
names_load(struct rollup_names *n, sqlite3 *db, const char *sql)
{
	struct ls_sql_rows rows = ls_sql_rows(db, sql,
		LS_SQL_VALUES(ls_sql_int(n->ids > 0 ? (int64_t)n->ids - 1 : -1)));

	while (ls_sql_next(&rows))
		rows.rc = names_put(n, sqlite3_column_int64(rows.stmt, 0),
			(const char *)sqlite3_column_text(rows.stmt, 1));
	return ls_sql_end(&rows);
}

static void
names_choose(struct rollup_names *n, bool (*choose)(void *, const char *), void *arg)
{
	n->all = true;
	for (size_t i = 0; i < n->ids; i++) {
		n->wanted[i] = n->name[i] != NULL &&
			(choose == NULL || choose(arg, n->name[i]));
		n->all = n->all && (n->wanted[i] || n->name[i] == NULL);
	}
}

/* The names of a day's file, brought up to date. */
static int
rollup_names_of(struct ls_rollup_reader *r, sqlite3 *db, int32_t day,
	struct rollup_day **ret_day)
{
	struct rollup_day *d = &r->day[0];
	int rc;

	for (size_t i = 0; i < LS_ROLLUP_NAME_DAYS; i++) {
		if (r->day[i].day == day) {
			d = &r->day[i];
			break;
		}
		if (r->day[i].used < d->used)
			d = &r->day[i];
	}
	if (d->day != day) {
		names_fini(&d->host);
		names_fini(&d->labels);
		d->day = day;
		d->names = r->uses + 1;
	}
	d->used = ++r->uses;
	rc = names_load(&d->host, db, "SELECT id, name FROM chunk_host WHERE id > ?1");
	if (rc == 0)
		rc = names_load(&d->labels, db,
			"SELECT id, text FROM rollup_labels WHERE id > ?1");
	if (rc != 0) { /* half of it would be taken for whole */
		names_fini(&d->host);
		names_fini(&d->labels);
		d->day = 0;
		return rc;
	}
	*ret_day = d;
	return 0;
}

/* --- rows ----------------------------------------------------------------- */

static bool
rollup_knows(const struct rollup_names *n, uint32_t id)
{
	return id < n->ids && n->wanted[id];
}

static bool
rollup_has_labels(const struct rollup_day *d, const struct ls_rollup_columns *c)
{
	for (size_t i = 0; i < c->count; i++) {
		if ((i == 0 || c->labels_id[i] != c->labels_id[i - 1]) &&
			rollup_knows(&d->labels, c->labels_id[i]))
			return true;
	}
	return false;
}

/* Of a body's rows those wanted: as a rule the same as of the body before. */
static void
rollup_choose(struct ls_rollup_reader *r, const struct rollup_day *d,
	const struct ls_rollup_columns *c)
{
	size_t i, kept = 0;

	if (r->keys == c->keys)
		return;
	for (i = 0; i < c->count; i++) {
		r->row[kept] = (uint32_t)i;
		kept += rollup_knows(&d->host, c->host_id[i]) &&
			rollup_knows(&d->labels, c->labels_id[i]);
	}
	r->row_count = kept;
	r->keys = c->keys;
	r->chosen++;
}

static int
rollup_visit(struct ls_rollup_reader *r, const struct rollup_day *d, sqlite3_stmt *stmt,
	const struct ls_rollup_wanted *wanted, ls_rollup_part_fn *fn, void *arg,
	uint64_t *bad)
{
	struct ls_rollup_part part = { .day = d->day,
		.names = d->names,
		.host = (const char *const *)d->host.name,
		.labels = (const char *const *)d->labels.name,
		.host_ids = d->host.ids,
		.labels_ids = d->labels.ids };
	const uint8_t *body = sqlite3_column_blob(stmt, 1);
	size_t len = (size_t)sqlite3_column_bytes(stmt, 1);

	part.t_us = sqlite3_column_int64(stmt, 0);
	part.span_s = (uint32_t)sqlite3_column_int(stmt, 2);
	/* Bodies are ordered by labels: of many sets of labels, most bodies hold none
	 * that is wanted. */
	if (body != NULL && !d->labels.all &&
		ls_rollup_decode_columns(r->codec, body, len, 0, &part.columns) == 0 &&
		!rollup_has_labels(d, &part.columns))
		return 0;
	if (body == NULL ||
		ls_rollup_decode_columns(r->codec, body, len, wanted->columns,
			&part.columns) != 0) {
		(*bad)++;
		return 0;
	}
	rollup_choose(r, d, &part.columns);
	part.row = r->row;
	part.count = r->row_count;
	part.chosen = r->chosen;
	return part.count > 0 ? fn(arg, &part) : 0;
}

/*
 * One statement, so one snapshot: an hour stands in rollup_done from the moment on in
 * which its rows hold all of its minutes in that file, and late minutes come together
 * with the hour's (storage/README.md, "Roll-ups").
 */
static const char rollup_sql[] =
	"SELECT t_us, body, span_s FROM rollup WHERE metric_id = (SELECT id FROM rollup_metric WHERE name = ?1) "
	"AND span_s = 3600 AND t_us >= ?5 AND t_us < ?6 "
	"UNION ALL SELECT t_us, body, span_s FROM rollup r WHERE "
	"metric_id = (SELECT id FROM rollup_metric WHERE name = ?1) AND span_s = ?2 AND t_us >= ?3 AND t_us < ?4 "
	"AND NOT (t_us >= ?5 AND t_us < ?6 AND EXISTS (SELECT 1 FROM rollup_done d WHERE d.span_s = 3600 "
	"AND d.t_us = r.t_us - r.t_us % 3600000000)) ORDER BY 1";

static int
rollup_read_day(struct ls_rollup_reader *r, int32_t day,
	const struct ls_rollup_wanted *w, ls_rollup_part_fn *fn, void *arg,
	uint64_t *bad)
{
	/* The range, and the whole hours in it if they are wanted. */
	int64_t from = w->from_us < 0 ? 0 : w->from_us, hour = LS_ROLLUP_HOUR_US,
		first = from / hour * hour + (from % hour > 0 ? hour : 0);
	struct ls_query_day *file;
	struct rollup_day *names = NULL;
	struct ls_sql_rows rows;
	int rc = ls_query_day_of(r->q, day, &file);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc; /* retention was faster */
	rows = ls_sql_rows(ls_query_day_db(file), rollup_sql,
		LS_SQL_VALUES(ls_sql_text(w->metric), ls_sql_int(w->span_s),
			ls_sql_int(from), ls_sql_int(w->to_us),
			ls_sql_int(w->hours ? first : 0),
			ls_sql_int(w->hours ? w->to_us / hour * hour : 0)));
	while (ls_sql_next(&rows)) {
		/* after the snapshot began: every id of its rows has its name */
		if (names == NULL) {
			rows.rc =
				rollup_names_of(r, ls_query_day_db(file), day, &names);
			if (rows.rc != 0)
				break;
			names_choose(&names->host, w->host, w->arg);
			names_choose(&names->labels, w->labels, w->arg);
			r->keys = 0; /* other names, or another question */
		}
		rows.rc = rollup_visit(r, names, rows.stmt, w, fn, arg, bad);
	}
	return ls_sql_end(&rows);
}

int
ls_rollup_read(struct ls_rollup_reader *r, const struct ls_rollup_wanted *wanted,
	ls_rollup_part_fn *fn, void *arg, uint64_t *ret_bad)
{
	struct ls_days days = { 0 };
	int rc = ls_query_days(r->q, &days);

	*ret_bad = 0;
	/* what was measured on a day is committed on that or a later one */
	for (size_t i = 0; rc == 0 && i < days.count; i++)
		if (ls_days_begin_us(days.day[i]) + 24 * 3600 * 1000000ll >
			wanted->from_us - 60 * 1000000ll)
			rc = rollup_read_day(r, days.day[i], wanted, fn, arg, ret_bad);
	return rc;
}

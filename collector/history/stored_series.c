/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/stored_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "collector/ingest/feed.h"
#include "collector/ingest/fleet.h"
#include "collector/history/json_out.h"
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"

struct ls_stored_rows {
	/* of its own: dictionaries are read between chunks */
	struct ls_query *query;
	struct ls_chunk_codec *codec;
	int32_t day; /* of `known` */
	struct ls_query_dictionary known; /* the one used last */
	const char *series[LS_SERIES_PER_GROUP_MAX];
	double value[LS_SERIES_PER_GROUP_MAX];
};

struct ls_stored_rows *
ls_stored_rows_new(const char *dir)
{
	struct ls_stored_rows *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->codec = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	if (r->codec == NULL || ls_query_open(dir, &r->query) != 0) {
		ls_stored_rows_free(r);
		return NULL;
	}
	return r;
}

void
ls_stored_rows_free(struct ls_stored_rows *r)
{
	if (r == NULL)
		return;
	ls_query_dictionary_fini(&r->known);
	ls_query_close(r->query);
	ls_chunk_codec_free(r->codec);
	free(r);
}

static int
rows_dictionary(struct ls_stored_rows *r, int32_t day, uint64_t hash)
{
	struct ls_query_dictionary fresh;
	int rc;

	if (r->day == day && r->known.hash == hash && r->known.count > 0)
		return 0;
	rc = ls_query_dictionary(r->query, day, hash, &fresh);
	if (rc != 0)
		return rc;
	ls_query_dictionary_fini(&r->known);
	r->known = fresh;
	r->day = day;
	return 0;
}

/* The table of a chunk, with as many columns as its dictionary names. -LS_ECORRUPT. */
static int
rows_decode(struct ls_stored_rows *r, const struct ls_query_chunk *chunk,
	struct ls_chunk_table *ret_table)
{
	int rc = rows_dictionary(r, chunk->day, chunk->dictionary);

	if (rc == 0)
		rc = ls_chunk_decode(r->codec, chunk->body, chunk->len, ret_table);
	/* The checksum was right; was its maker? */
	if (rc == 0 &&
		(ret_table->rows == 0 || ret_table->columns != r->known.count ||
			ret_table->t_mono_ns[ret_table->rows - 1] >
				LS_WIRE_TIME_MAX_NS))
		rc = -LS_ECORRUPT;
	if (rc != 0 && rc != -ENOMEM) {
		ls_log(LS_LOG_WARN, "export",
			"chunk %lld of %s in the file of day %d: %s; skipped",
			(long long)chunk->id, chunk->host, (int)chunk->day,
			ls_err_text(rc));
	}
	return rc;
}

int
ls_stored_rows_visit(struct ls_stored_rows *r, const struct ls_query_chunk *chunk,
	ls_stored_row_fn *fn, void *arg)
{
	struct ls_stored_row row = {
		.chunk = chunk, .series = r->series, .value = r->value
	};
	struct ls_chunk_table table;
	int rc = rows_decode(r, chunk, &table);

	if (rc != 0)
		return rc == -ENOMEM ? rc : 0;
	for (size_t i = 0; i < table.rows && rc == 0; i++) {
		row.t_us = ls_store_map_us(&chunk->map, (int64_t)table.t_mono_ns[i]);
		row.count = 0;
		for (size_t c = 0; c < table.columns; c++) {
			if (!table.present[c * table.stride + i])
				continue;
			r->series[row.count] = r->known.series[c];
			r->value[row.count++] = table.value[c * table.stride + i];
		}
		rc = fn(arg, &row);
	}
	return rc;
}

/* --- the latest of each series -------------------------------------------- */

struct stored_latest {
	struct ls_stored_rows *rows;
	json_t *all;
	size_t count;
	char group[LS_GROUPS_MAX][LS_GROUP_NAME_MAX_BYTES]; /* those that are there */
};

/* The last value that is there of each column. */
static int
latest_add(struct stored_latest *l, const struct ls_query_chunk *chunk,
	const struct ls_chunk_table *t)
{
	size_t c, i;
	json_t *one;

	for (c = 0; c < t->columns; c++) {
		for (i = t->rows; i > 0 && !t->present[c * t->stride + i - 1]; i--)
			;
		one = ls_fleet_series_json(l->rows->known.series[c],
			l->rows->known.group,
			i > 0 ? t->value[c * t->stride + i - 1] : 0, i > 0,
			i > 0 ? ls_store_map_us(&chunk->map,
					(int64_t)t->t_mono_ns[i - 1])
			      : chunk->t_last_us,
			false);
		if (one == NULL || json_array_append_new(l->all, one) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int
latest_chunk(void *arg, const struct ls_query_chunk *chunk)
{
	struct stored_latest *l = arg;
	struct ls_chunk_table table;
	int rc = rows_decode(l->rows, chunk, &table);

	if (rc != 0)
		return rc == -ENOMEM ? rc : 0;
	/* A group that changed has several dictionaries: the newest counts. */
	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->group[i], l->rows->known.group) == 0)
			return 0;
	}
	if (l->count == LS_GROUPS_MAX)
		return 0;
	memcpy(l->group[l->count++], l->rows->known.group, sizeof(l->group[0]));
	return latest_add(l, chunk, &table);
}

int
ls_stored_series(const char *dir, const char *host, ls_export_sink *sink, void *arg)
{
	struct stored_latest l = { .rows = ls_stored_rows_new(dir),
		.all = json_array() };
	struct ls_query *query = NULL;
	struct ls_json_out o = { 0 };
	int rc = -ENOMEM;

	if (l.rows != NULL && l.all != NULL)
		rc = ls_query_open(dir, &query);
	if (rc == 0)
		rc = ls_query_newest_chunks(query, host, LS_STORED_SERIES_KEEP_US,
			latest_chunk, &l);
	if (rc == 0) {
		o.text = json_dumps(l.all, JSON_COMPACT);
		o.failed = o.text == NULL;
		o.len = o.text != NULL ? strlen(o.text) : 0;
		rc = ls_json_out_give(&o, sink, arg);
	}
	ls_json_out_fini(&o);
	json_decref(l.all);
	ls_query_close(query);
	ls_stored_rows_free(l.rows);
	return rc;
}

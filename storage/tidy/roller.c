/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/read/query_day.h"
#include "storage/tidy/roller_hour.h"
#include "storage/tidy/roller_out.h"
#include "storage/columns/rollup_sum.h"

/*
 * rollup_done, beside what the schema says: (0, 0) holds the id up to which chunks are
 * in wholly; reading starts behind it. From there on a sample is in if its minute's row
 * names its chunk or a later one. (-1, id) stands for a chunk that was put off: none of
 * its samples is in, whatever the minutes' rows say.
 */
/* files at the start that may not be rolled up to their end */
#define ROLLER_FILES_BACK 3
/* a chunk of 60 s spans two; one of more than these is none of ours */
#define ROLLER_CHUNK_MINUTES 8
#define ROLLER_FAILURES_MAX 60
#define ROLLER_RETRY_US (10ll * 1000000)
#define ROLLER_HOUR_CHECK_US (30ll * 1000000)

struct roller_dictionary {
	uint64_t hash;
	uint32_t layout;
	size_t columns;
};

struct roller_put_off {
	int64_t id;
	bool stored; /* in rollup_done */
	bool settled; /* summed up, or given up: goes with the next message */
};

struct ls_roller {
	struct ls_query *q;
	struct ls_chunk_codec *chunk_codec;
	struct ls_rollup_codec *codec;
	struct ls_rollup_sums *sums;
	struct ls_roller_names names;
	struct ls_roller_hour hour; /* being merged, if it is open */
	int32_t day; /* 0: not known yet */
	/* whole_file: all chunks are read, and no more will come */
	bool started, in_flight, whole_file;
	/* no room: minutes must go; all must go, for chunks that were put off */
	bool full, flush;
	/* in_until: no chunk above was in any minute at the start */
	int64_t read_id, frontier, in_until;
	size_t put_off_count;
	void *dictionaries; /* a tree (tsearch) */
	struct roller_put_off put_off[LS_ROLLUP_PUT_OFF_MAX];
	int64_t retry_us, hour_check_us;
	unsigned failures; /* turns in a row */
	struct ls_roller_stats stats;
};

struct ls_roller *
ls_roller_new(struct ls_query *q)
{
	struct ls_roller *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->q = q;
	r->chunk_codec = ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX, LS_CHUNK_ROWS_MAX);
	r->codec = ls_rollup_codec_new();
	r->sums = ls_rollup_sums_new(LS_ROLLUP_MEMORY_MAX_BYTES);
	if (r->chunk_codec == NULL || r->codec == NULL || r->sums == NULL) {
		ls_roller_free(r);
		return NULL;
	}
	return r;
}

/* Forgets all that is of one file. */
static void
roller_forget(struct ls_roller *r)
{
	if (r->sums != NULL)
		ls_rollup_sums_clear(r->sums);
	ls_roller_names_fini(&r->names);
	ls_roller_hour_fini(&r->hour);
	tdestroy(r->dictionaries, free);
	r->dictionaries = NULL;
	r->put_off_count = 0;
	r->started = r->full = r->flush = r->whole_file = r->in_flight = false;
	r->retry_us = r->hour_check_us = 0;
}

void
ls_roller_free(struct ls_roller *r)
{
	if (r == NULL)
		return;
	roller_forget(r);
	ls_chunk_codec_free(r->chunk_codec);
	ls_rollup_codec_free(r->codec);
	ls_rollup_sums_free(r->sums);
	free(r);
}

void
ls_roller_stats(const struct ls_roller *r, struct ls_roller_stats *ret_stats)
{
	*ret_stats = r->stats;
	ret_stats->memory_bytes = ls_rollup_sums_bytes(r->sums);
	ret_stats->memory_most_bytes = ls_rollup_sums_most(r->sums);
}

/* --- starting ------------------------------------------------------------- */

static int
roller_load_names(struct ls_roller *r, sqlite3 *db, bool is_metric)
{
	struct ls_sql_rows rows = ls_sql_rows(db,
		is_metric ? "SELECT id, name FROM rollup_metric"
			  : "SELECT id, text FROM rollup_labels",
		NULL);

	while (ls_sql_next(&rows)) {
		const char *text = (const char *)sqlite3_column_text(rows.stmt, 1);
		int64_t id = sqlite3_column_int64(rows.stmt, 0);
		uint32_t same;

		if (text == NULL || id < 1 || id > LS_ROLLUP_ID_MAX)
			rows.rc = text == NULL ? -ENOMEM : -LS_ECORRUPT;
		else
			rows.rc = ls_roller_names_get(&r->names, is_metric, text,
				strlen(text), (uint32_t)id, &same);
	}
	return ls_sql_end(&rows);
}

static int
roller_load_put_off(struct ls_roller *r, sqlite3 *db)
{
	struct ls_sql_rows rows = ls_sql_rows(db,
		"SELECT chunk_id FROM rollup_done WHERE span_s = -1 LIMIT ?1",
		LS_SQL_VALUES(ls_sql_int(LS_ROLLUP_PUT_OFF_MAX)));

	while (ls_sql_next(&rows))
		r->put_off[r->put_off_count++] = (struct roller_put_off){
			.id = sqlite3_column_int64(rows.stmt, 0), .stored = true
		};
	return ls_sql_end(&rows);
}

static int
roller_start(struct ls_roller *r, sqlite3 *db)
{
	int64_t repacked = 0;
	int rc;

	roller_forget(r);
	rc = ls_sql_int_of(db,
		"SELECT chunk_id FROM rollup_done WHERE span_s = 0 AND t_us = 0", NULL,
		&r->frontier);
	if (rc == 0)
		rc = ls_sql_int_of(db,
			"SELECT max(chunk_id) FROM rollup_done WHERE span_s = 60", NULL,
			&r->in_until);
	if (rc == 0)
		rc = roller_load_put_off(r, db);
	if (rc == 0)
		rc = roller_load_names(r, db, true);
	if (rc == 0)
		rc = roller_load_names(r, db, false);
	r->read_id = r->frontier;
	if (rc == 0)
		rc = ls_sql_int_of(db, "SELECT count(*) FROM repacked", NULL,
			&repacked);
	/* ids of chunks are others now: there is nothing to go on from */
	if (repacked != 0) {
		r->read_id = INT64_MAX;
		r->put_off_count = 0;
	}
	r->started = rc == 0;
	return rc;
}

/* The file to go on with: that of before, or the first of the last few; *ret_next is
 * the one after it, or 0. */
static int
roller_choose_day(struct ls_roller *r, int32_t *ret_next)
{
	struct ls_days days = { 0 };
	bool is = false;
	int rc = ls_query_days(r->q, &days);

	*ret_next = 0;
	if (rc == 0 && r->day == 0 && days.count > 0)
		r->day = days.day[days.count > ROLLER_FILES_BACK
				? days.count - ROLLER_FILES_BACK
				: 0];
	for (size_t i = 0; rc == 0 && i < days.count && *ret_next == 0; i++) {
		is |= days.day[i] == r->day;
		if (days.day[i] > r->day)
			*ret_next = days.day[i];
	}
	if (rc == 0 && *ret_next != 0 && (!is || r->failures >= ROLLER_FAILURES_MAX)) {
		if (is)
			ls_log(LS_LOG_WARN, "storage",
				"cannot roll up day %d; continuing with the next day",
				(int)r->day);
		roller_forget(r); /* removed by retention, or it does not read */
		r->day = *ret_next;
		r->failures = 0;
		return roller_choose_day(r, ret_next);
	}
	return rc;
}

/* --- dictionaries --------------------------------------------------------- */

/* name{labels}: what is which; -LS_ELIMIT leaves the column out. */
static int
roller_column(struct ls_roller *r, const char *text, struct ls_rollup_column *ret)
{
	size_t len = strlen(text), name = strcspn(text, "{"), labels = len;
	int rc;

	*ret = (struct ls_rollup_column){ 0 };
	rc = ls_roller_names_get(&r->names, true, text, name, 0, &ret->metric_id);
	if (rc == 0 && name < len) {
		name++;
		labels = len > name && text[len - 1] == '}' ? len - 1 : len;
	}
	if (rc == 0)
		rc = ls_roller_names_get(&r->names, false, text + name, labels - name,
			0, &ret->labels_id);
	if (rc == -LS_ELIMIT) {
		ret->metric_id = 0;
		rc = 0;
	}
	return rc;
}

static int
roller_compare_dictionaries(const void *a, const void *b)
{
	const struct roller_dictionary *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Makes a dictionary known. */
static int
roller_know(struct ls_roller *r, uint64_t hash, const char *text, size_t len,
	struct roller_dictionary *ret)
{
	struct ls_rollup_column *columns =
		calloc(LS_SERIES_PER_GROUP_MAX, sizeof(*columns));
	struct roller_dictionary *d = calloc(1, sizeof(*d));
	int rc = columns != NULL && d != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < len && d->columns < LS_SERIES_PER_GROUP_MAX;
		i += strlen(text + i) + 1)
		rc = roller_column(r, text + i, &columns[d->columns++]);
	if (rc == 0)
		rc = ls_rollup_sums_layout(r->sums, columns, d->columns, &d->layout);
	free(columns);
	if (rc == 0) {
		d->hash = hash;
		*ret = *d;
		if (tsearch(d, &r->dictionaries, roller_compare_dictionaries) != NULL)
			return 0;
		rc = -ENOMEM;
	}
	free(d);
	return rc;
}

/* -LS_EUNKNOWN: not there yet. */
static int
roller_dictionary(struct ls_roller *r, sqlite3 *db, uint64_t hash,
	struct roller_dictionary *ret)
{
	const struct roller_dictionary key = { .hash = hash };
	struct roller_dictionary **known =
		tfind(&key, &r->dictionaries, roller_compare_dictionaries);
	struct ls_sql_rows rows;

	if (known != NULL) {
		*ret = **known;
		return 0;
	}
	rows = ls_sql_rows(db, "SELECT series FROM dictionary WHERE hash = ?1",
		LS_SQL_VALUES(ls_sql_u64(hash)));
	if (ls_sql_next(&rows)) {
		const char *text = sqlite3_column_blob(rows.stmt, 0);
		size_t len = (size_t)sqlite3_column_bytes(rows.stmt, 0);

		rows.rc = len > 0 && (text == NULL || text[len - 1] != '\0')
			? -LS_EPARSE
			: roller_know(r, hash, text, len, ret);
	} else if (rows.rc == 0) {
		rows.rc = -LS_EUNKNOWN;
	}
	return ls_sql_end(&rows);
}

/* --- chunks --------------------------------------------------------------- */

struct roller_chunk {
	int64_t id, t_us;
	uint32_t host_id;
	uint64_t dictionary;
	struct ls_store_map map;
	sqlite3_stmt *row; /* which knows where its body is */
};

#define ROLLER_CHUNK_SQL \
	"SELECT id, host_id, dictionary, t_us, ref_mono_ns, offset_ns, drift_ppb, uncertainty_ns, at, len FROM chunk "

static int
roller_read_chunk(sqlite3_stmt *stmt, struct roller_chunk *ret)
{
	ret->row = stmt;
	return ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_to_i64(&ret->id), ls_sql_to_u32(&ret->host_id),
			ls_sql_to_u64(&ret->dictionary), ls_sql_to_i64(&ret->t_us),
			ls_sql_to_i64(&ret->map.ref_mono_ns),
			ls_sql_to_i64(&ret->map.offset_ns),
			ls_sql_to_i64(&ret->map.drift_ppb),
			ls_sql_to_i64(&ret->map.uncertainty_ns)));
}

/* Rows of a chunk that lie in one minute. */
struct roller_piece {
	int64_t minute_us; /* -1: of no time that counts */
	size_t first, count;
	bool counts; /* is in no row yet */
};

/* Splits by minutes; -LS_EPARSE: too many. */
static int
roller_split(const struct roller_chunk *c, const struct ls_chunk_table *t,
	struct roller_piece pieces[ROLLER_CHUNK_MINUTES], size_t *ret_count)
{
	size_t i, n = 0;

	for (i = 0; i < t->rows; i++) {
		int64_t us = ls_store_map_ns(&c->map, (int64_t)t->t_mono_ns[i]) / 1000;
		int64_t minute = us - us % LS_ROLLUP_MINUTE_US;

		if (us < 0 || us > c->t_us + LS_ROLLUP_AHEAD_US)
			minute = -1;
		if (n > 0 && pieces[n - 1].minute_us == minute) {
			pieces[n - 1].count++;
			continue;
		}
		if (n == ROLLER_CHUNK_MINUTES)
			return -LS_EPARSE;
		pieces[n++] = (struct roller_piece){ minute, i, 1, false };
	}
	*ret_count = n;
	return 0;
}

static int
roller_done_of(sqlite3 *db, int64_t span_s, int64_t t_us, int64_t *ret_id)
{
	return ls_sql_int_of(db,
		"SELECT chunk_id FROM rollup_done WHERE span_s = ?1 AND t_us = ?2",
		LS_SQL_VALUES(ls_sql_int(span_s), ls_sql_int(t_us)), ret_id);
}

/*
 * Sums a chunk up, wholly or not at all. -LS_EUNKNOWN: no dictionary yet; -LS_ELIMIT:
 * no room; -LS_EPARSE and what ls_chunk_decode gives: never. `late`: it was put off, so
 * that it is in no minute.
 */
static int
roller_sum_up(struct ls_roller *r, struct ls_query_day *day,
	const struct roller_chunk *c, bool late, int64_t now_us)
{
	sqlite3 *db = ls_query_day_db(day);
	struct roller_piece piece[ROLLER_CHUNK_MINUTES];
	struct roller_dictionary d = { 0 };
	struct ls_chunk_table table = { 0 };
	const uint8_t *body = NULL;
	size_t i, len = 0, n = 0;
	int64_t in_id = 0; /* the last chunk that is in the minute's row */
	int rc = roller_dictionary(r, db, c->dictionary, &d);

	if (rc == 0)
		rc = ls_query_day_body(day, c->row, 8, &body, &len);
	if (rc == 0)
		rc = ls_chunk_decode(r->chunk_codec, body, len, &table);
	if (rc == -LS_ELIMIT)
		return -LS_EPARSE;
	if (rc == 0)
		rc = table.columns == d.columns ? roller_split(c, &table, piece, &n)
						: -LS_EPARSE;
	for (i = 0; i < n && rc == 0; i++) { /* first room for all of it */
		if (!late && c->id <= r->in_until)
			rc = roller_done_of(db, 60, piece[i].minute_us, &in_id);
		piece[i].counts = piece[i].minute_us >= 0 && c->id > in_id;
		if (rc == 0 && piece[i].counts)
			rc = ls_rollup_sums_open(r->sums, piece[i].minute_us, d.layout,
				c->host_id, late ? 0 : c->id, now_us);
	}
	for (i = 0; i < n && rc == 0; i++) {
		if (piece[i].minute_us < 0)
			r->stats.left_out += piece[i].count * d.columns;
		if (!piece[i].counts)
			continue;
		rc = ls_rollup_sums_open(r->sums, piece[i].minute_us, d.layout,
			c->host_id, late ? 0 : c->id, now_us);
		if (rc == 0)
			r->stats.samples += ls_rollup_sums_add(r->sums, &table,
				piece[i].first, piece[i].count);
	}
	if (rc == 0)
		r->stats.chunks++;
	return rc;
}

static bool
roller_is_bad(int rc)
{
	return rc == -LS_EPARSE || rc == -LS_ECORRUPT || rc == -LS_EVERSION;
}

static bool
roller_is_put_off(const struct ls_roller *r, int64_t id)
{
	for (size_t i = 0; i < r->put_off_count; i++)
		if (r->put_off[i].id == id)
			return true;
	return false;
}

static void
roller_put_off_one(struct ls_roller *r, int64_t id)
{
	if (r->put_off_count == LS_ROLLUP_PUT_OFF_MAX) {
		r->stats.given_up++;
		return;
	}
	r->put_off[r->put_off_count++] = (struct roller_put_off){ .id = id };
	r->stats.put_off++;
}

/* Reads chunks on; *ret_count are those read. */
static int
roller_read(struct ls_roller *r, struct ls_query_day *day, int64_t now_us,
	size_t *ret_count)
{
	struct ls_sql_rows rows = ls_sql_rows(ls_query_day_db(day),
		ROLLER_CHUNK_SQL "WHERE id > ?1 ORDER BY id LIMIT ?2",
		LS_SQL_VALUES(ls_sql_int(r->read_id),
			ls_sql_int(LS_ROLLER_CHUNKS_PER_TURN)));
	struct roller_chunk c;

	*ret_count = 0;
	while (!r->full && ls_sql_next(&rows)) {
		rows.rc = roller_read_chunk(rows.stmt, &c);
		if (rows.rc == 0 && !roller_is_put_off(r, c.id))
			rows.rc = roller_sum_up(r, day, &c, false, now_us);
		if (rows.rc == -LS_ELIMIT) {
			r->full = true;
			rows.rc = 0;
			break;
		}
		if (rows.rc == -LS_EUNKNOWN)
			roller_put_off_one(r, c.id);
		else if (roller_is_bad(rows.rc))
			r->stats.bad_chunks++;
		else if (rows.rc != 0)
			break;
		rows.rc = 0;
		r->read_id = c.id;
		(*ret_count)++;
	}
	ls_query_day_rest(day);
	return ls_sql_end(&rows);
}

static int
roller_retry_one(struct ls_roller *r, struct ls_query_day *day, int64_t id,
	int64_t now_us)
{
	struct ls_sql_rows rows = ls_sql_rows(ls_query_day_db(day),
		ROLLER_CHUNK_SQL "WHERE id = ?1", LS_SQL_VALUES(ls_sql_int(id)));
	struct roller_chunk c;

	if (ls_sql_next(&rows)) {
		rows.rc = roller_read_chunk(rows.stmt, &c);
		if (rows.rc == 0)
			rows.rc = roller_sum_up(r, day, &c, true, now_us);
	} else if (rows.rc == 0) {
		rows.rc = -LS_EPARSE;
	}
	return ls_sql_end(&rows);
}

/* Once more those that were put off; give_up: for the last time. */
static int
roller_retry(struct ls_roller *r, struct ls_query_day *day, int64_t now_us,
	bool give_up)
{
	int rc = 0;

	for (size_t i = 0; i < r->put_off_count && rc == 0 && !r->full; i++) {
		struct roller_put_off *p = &r->put_off[i];

		if (p->settled)
			continue;
		rc = roller_retry_one(r, day, p->id, now_us);
		if (roller_is_bad(rc) || (rc == -LS_EUNKNOWN && give_up)) {
			r->stats.given_up++;
			rc = 0;
		}
		p->settled = rc == 0;
		r->full = rc == -LS_ELIMIT;
		/* all minutes it is in, in one message */
		r->flush |= p->settled;
		if (rc == -LS_EUNKNOWN || rc == -LS_ELIMIT)
			rc = 0;
	}
	ls_query_day_rest(day);
	return rc;
}

/* --- writing -------------------------------------------------------------- */

struct roller_minute_out {
	struct ls_roller *r;
	struct ls_store_rollup *o;
	int64_t t_us, hour_us; /* hour_us -1: the hour is not made yet */
};

static int
roller_give(void *arg, uint32_t metric_id, const struct ls_rollup_row *rows,
	size_t count)
{
	struct roller_minute_out *m = arg;

	return ls_roller_out_rows(m->o, m->r->codec, metric_id, 60, m->t_us, m->hour_us,
		rows, count);
}

static int
roller_put_minute(struct ls_roller *r, sqlite3 *db, struct ls_store_rollup *o,
	int64_t t_us)
{
	struct roller_minute_out m = { r, o, t_us, t_us - t_us % LS_ROLLUP_HOUR_US };
	int64_t before, hour;
	int rc = roller_done_of(db, 60, t_us, &before);

	if (rc == 0)
		rc = roller_done_of(db, 3600, m.hour_us, &hour);
	if (rc != 0)
		return rc;
	if (hour == 0)
		m.hour_us = -1;
	else
		rc = ls_roller_out_done(o, 3600, m.hour_us, hour,
			hour); /* it must still be so */
	if (rc == 0)
		rc = ls_rollup_sums_take(r->sums, t_us, roller_give, &m);
	if (rc == 0)
		rc = ls_roller_out_done(o, 60, t_us, before,
			r->read_id > before ? r->read_id : before);
	return rc;
}

/* What changes of chunks put off, and the id up to which chunks are in wholly. */
static int
roller_put_state(struct ls_roller *r, struct ls_store_rollup *o)
{
	struct ls_rollup_minute m;
	int64_t frontier = r->read_id;
	size_t i, kept = 0;
	int rc = 0;

	for (i = 0; ls_rollup_sums_minute(r->sums, i, &m); i++)
		frontier = m.first_id != INT64_MAX && m.first_id - 1 < frontier
			? m.first_id - 1
			: frontier;
	frontier = frontier < r->frontier ? r->frontier : frontier;
	for (i = 0; i < r->put_off_count && rc == 0; i++) {
		struct roller_put_off *p = &r->put_off[i];

		if (p->settled ? p->stored : !p->stored)
			rc = ls_roller_out_done(o, -1, p->id, p->stored ? p->id : 0,
				p->settled ? 0 : p->id);
		p->stored = true;
		if (!p->settled)
			r->put_off[kept++] = *p;
	}
	r->put_off_count = kept;
	if (rc == 0)
		rc = ls_roller_out_done(o, 0, 0, r->frontier, frontier);
	r->frontier = frontier;
	return rc;
}

/* Which minute goes first; -1: none. */
static int64_t
roller_next_minute(const struct ls_roller *r, int64_t now_us, bool all)
{
	struct ls_rollup_minute m;

	for (size_t i = 0; ls_rollup_sums_minute(r->sums, i, &m); i++)
		if (all ||
			(now_us >= m.t_us + LS_ROLLUP_AFTER_US &&
				now_us >= m.opened_us + LS_ROLLUP_LATE_US))
			return m.t_us;
	return -1;
}

/* A message with the minutes that are due; none if there are none. */
static int
roller_put_minutes(struct ls_roller *r, sqlite3 *db, int64_t now_us,
	struct ls_write *message)
{
	struct ls_store_rollup *o = &message->u.rollup;
	bool all = r->flush || r->whole_file;
	int64_t t = roller_next_minute(r, now_us, all);
	int rc = 0;

	if (t == -1 && r->full) {
		/* the oldest, before its time */
		t = roller_next_minute(r, now_us, true);
		r->stats.early += t != -1;
		if (t == -1) { /* nothing is open, and there is no room for one chunk */
			r->stats.bad_chunks++;
			r->read_id++;
			r->full = false;
			return 0;
		}
	}
	for (; t != -1 && rc == 0; t = roller_next_minute(r, now_us, all))
		rc = roller_put_minute(r, db, o, t);
	if (rc == 0 && (o->count > 0 || r->flush))
		rc = roller_put_state(r, o);
	r->full = r->flush = false;
	return rc;
}

/* Goes on with an hour, or begins the next that is whole. *ret_ready: the message holds
 * it. */
static int
roller_put_hour(struct ls_roller *r, sqlite3 *db, int64_t now_us,
	struct ls_write *message, bool *ret_ready)
{
	int64_t before_us = r->whole_file
		? INT64_MAX
		: now_us - LS_ROLLUP_AFTER_US - LS_ROLLUP_LATE_US;
	struct ls_rollup_minute m;
	int rc = 0;

	*ret_ready = false;
	if (!r->hour.is_open) {
		if (now_us < r->hour_check_us && !r->whole_file)
			return 0;
		r->hour_check_us = now_us + ROLLER_HOUR_CHECK_US;
		if (ls_rollup_sums_minute(r->sums, 0, &m) && m.t_us < before_us)
			before_us = m.t_us; /* not the hour of what is still open */
		rc = ls_roller_hour_open(&r->hour, db, before_us);
	}
	if (rc != 0 || !r->hour.is_open)
		return rc;
	rc = ls_roller_hour_turn(&r->hour, db, r->codec, ret_ready,
		&r->stats.bad_chunks);
	return rc == 0 && *ret_ready ? ls_roller_hour_take(&r->hour, &message->u.rollup)
				     : rc;
}

static int
roller_put(struct ls_roller *r, sqlite3 *db, int64_t now_us,
	struct ls_write **ret_message)
{
	struct ls_write *m = ls_write_new(LS_WRITE_ROLLUP, now_us);
	bool ready = false;
	int rc = m != NULL ? 0 : -ENOMEM;

	if (rc == 0 && !r->hour.is_open)
		rc = roller_put_minutes(r, db, now_us, m);
	if (rc == 0 && m->u.rollup.count == 0)
		rc = roller_put_hour(r, db, now_us, m, &ready);
	if (rc == 0 && m->u.rollup.count > 0)
		rc = ls_roller_out_names(&m->u.rollup, &r->names);
	if (rc != 0 || m->u.rollup.count == 0) {
		ls_write_free(m);
		return rc;
	}
	m->u.rollup.day = r->day;
	for (size_t i = 0; i < m->u.rollup.count; i++) {
		const struct ls_store_rollup_row *row = &m->u.rollup.rows[i];

		if (row->table != LS_ROLLUP_BODY)
			continue;
		r->stats.bytes += row->len;
		r->stats.rows++;
	}
	r->in_flight = true;
	*ret_message = m;
	return 0;
}

/* --- turns ---------------------------------------------------------------- */

static int
roller_turn_file(struct ls_roller *r, int32_t next, int64_t now_us,
	struct ls_write **ret_message, bool *ret_more)
{
	struct ls_query_day *day;
	sqlite3 *db;
	size_t n = 0;
	int rc = ls_query_day_of(r->q, r->day, &day);

	if (rc != 0)
		return rc;
	db = ls_query_day_db(day);
	if (!r->started)
		rc = roller_start(r, db);
	if (rc == 0 && !r->full)
		rc = roller_read(r, day, now_us, &n);
	if (rc == 0 && next != 0 && n == 0 && !r->full && !r->in_flight &&
		!r->whole_file) {
		rc = roller_retry(r, day, now_us, true);
		r->whole_file = !r->full;
	} else if (rc == 0 && now_us >= r->retry_us && r->put_off_count > 0 &&
		!r->full && !r->in_flight) {
		r->retry_us = now_us + ROLLER_RETRY_US;
		rc = roller_retry(r, day, now_us, false);
	}
	if (rc == 0 && !r->in_flight)
		rc = roller_put(r, db, now_us, ret_message);
	*ret_more = n == LS_ROLLER_CHUNKS_PER_TURN || r->hour.is_open;
	if (rc == 0 && r->whole_file && *ret_message == NULL && !r->in_flight &&
		!r->hour.is_open) {
		roller_forget(r);
		r->day = next;
		*ret_more = true;
	}
	return rc;
}

int
ls_roller_turn(struct ls_roller *r, int64_t now_us, struct ls_write **ret_message,
	bool *ret_more)
{
	int32_t next = 0;
	int rc = roller_choose_day(r, &next);

	*ret_message = NULL;
	*ret_more = false;
	if (rc == 0 && r->day != 0)
		rc = roller_turn_file(r, next, now_us, ret_message, ret_more);
	r->failures = rc != 0 ? r->failures + 1 : 0;
	if (rc != 0) {
		if (r->started)
			r->stats.restarts++;
		roller_forget(r);
	}
	return rc;
}

void
ls_roller_told(struct ls_roller *r, int rc)
{
	r->in_flight = false;
	if (rc == 0)
		return;
	r->stats.restarts++;
	roller_forget(r);
}

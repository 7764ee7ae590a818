/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_day.h"

#include <endian.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "storage/db/bodies.h"
#include "storage/db/db.h"
#include "storage/db/migrate.h"
#include "storage/db/sql.h"
#include "storage/columns/positions.h"
#include "storage/read/span.h"
#include "storage/read/unit_reader.h"

/* Statements that a connection keeps. Of the tables of small events, the first two columns
 * are id and t_us. */
enum query_statement {
	QUERY_GAP,
	QUERY_END,
	QUERY_CLOSE,
	QUERY_ZOOM,
	QUERY_HANG,
	QUERY_TABLES, /* how many those are */
	QUERY_JOURNAL = QUERY_TABLES,
	QUERY_UNIT,
	QUERY_UNIT_ROWS, /* enum ls_unit_table */
	QUERY_KEPT = QUERY_UNIT_ROWS + LS_UNIT_TABLES, /* enum ls_query_kept */
	QUERY_STATEMENTS = QUERY_KEPT + LS_QUERY_KEPT
};

static const char *const query_sql[QUERY_STATEMENTS] = {
	[QUERY_GAP] = "SELECT id, t_us, worker_id, first_index, n, reason "
		      "FROM gap WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_END] = "SELECT id, t_us, worker_id, how, records "
		      "FROM worker_end WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_CLOSE] = "SELECT id, t_us, job, attempt, step, expected, used, missing "
			"FROM step_close WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_ZOOM] = "SELECT id, t_us, host, job, event, cause, until_us "
		       "FROM zoom WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_HANG] =
		"SELECT id, t_us, job, attempt, step, since_us, waiting, why, ranks "
		"FROM hang WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	/* Rows of the journal, beginning with the one in which id ?1 lies. */
	[QUERY_JOURNAL] =
		"SELECT id, last_id, body FROM journal WHERE id >= coalesce((SELECT id FROM journal "
		"WHERE id <= ?1 ORDER BY id DESC LIMIT 1), ?1) ORDER BY id",
	/* Units, beginning with the one in which id ?1 lies; and what is stored of one. */
	[QUERY_UNIT] =
		"SELECT id, last_id FROM unit WHERE id >= coalesce((SELECT id FROM unit "
		"WHERE id <= ?1 ORDER BY id DESC LIMIT 1), ?1) ORDER BY id LIMIT 2",
	[QUERY_UNIT_ROWS + LS_UNIT_STEP_ROWS] =
		"SELECT id, body FROM step_rows WHERE id BETWEEN ?1 AND ?2",
	[QUERY_UNIT_ROWS + LS_UNIT_HOT_ROWS] =
		"SELECT id, body FROM hot_rows WHERE id BETWEEN ?1 AND ?2",
	[QUERY_KEPT + LS_QUERY_HOST_ID] = "SELECT id FROM chunk_host WHERE name = ?1",
	[QUERY_KEPT + LS_QUERY_HOST_CHUNKS] =
		"SELECT id, dictionary, t_first_us, t_last_us, ref_mono_ns, offset_ns, drift_ppb, "
		"uncertainty_ns, at, len FROM chunk WHERE host_id = ?1 "
		"AND t_first_us BETWEEN ?2 AND ?4 AND t_last_us >= ?3 ORDER BY t_first_us",
	[QUERY_KEPT + LS_QUERY_STEP_JOURNAL] =
		"SELECT id, body FROM journal WHERE step_lo <= ?1 AND step_hi >= ?1 AND records > 0",
	[QUERY_KEPT + LS_QUERY_STEP_ROWS] =
		"SELECT id, body FROM step_rows WHERE job_id = ?1 AND step_hi BETWEEN ?2 AND ?3 "
		"AND step_lo <= ?2",
};

struct ls_query_day {
	sqlite3 *db;
	sqlite3_stmt *stmt[QUERY_STATEMENTS];
	struct ls_unit_reader *reader; /* made at the first unit */
	struct ls_bodies_reader *bodies; /* made at the first body */
	int64_t width, width_id; /* of step_rows up to this id */
	struct ls_span span;
	struct ls_positions positions;
	int64_t positions_version; /* of the file when they were read; 0: not read */
	int error; /* the first of what was passed over while events were read */
};

int
ls_query_day_open(const char *path, struct ls_query_day **ret_day)
{
	struct ls_query_day *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return -ENOMEM;
	ls_positions_init(&d->positions);
	rc = ls_span_init(&d->span);
	if (rc == 0)
		rc = ls_db_open(path, LS_DB_READ, &d->db);
	if (rc == 0)
		rc = ls_migrate_check(d->db, ls_migrations_of(LS_SCHEMA_TELEMETRY));
	if (rc == 0)
		rc = ls_db_prepare_all(d->db, query_sql, d->stmt, QUERY_STATEMENTS);
	if (rc != 0) {
		ls_query_day_close(d);
		return rc;
	}
	*ret_day = d;
	return 0;
}

void
ls_query_day_close(struct ls_query_day *d)
{
	if (d == NULL)
		return;
	ls_db_finalize_all(d->stmt, QUERY_STATEMENTS);
	ls_unit_reader_free(d->reader);
	ls_bodies_reader_free(d->bodies);
	ls_span_fini(&d->span);
	ls_positions_fini(&d->positions);
	ls_db_close(d->db);
	free(d);
}

sqlite3 *
ls_query_day_db(const struct ls_query_day *d)
{
	return d->db;
}

sqlite3_stmt *
ls_query_day_kept(const struct ls_query_day *d, enum ls_query_kept which)
{
	return d->stmt[QUERY_KEPT + which];
}

int
ls_query_day_body(struct ls_query_day *d, sqlite3_stmt *stmt, int column,
	const uint8_t **ret_body, size_t *ret_len)
{
	int64_t len = sqlite3_column_int64(stmt, column + 1);
	int rc =
		d->bodies != NULL ? 0 : ls_bodies_reader_new(d->db, "main", &d->bodies);

	*ret_body = NULL;
	*ret_len = 0;
	if (rc == 0)
		rc = ls_bodies_read(d->bodies, sqlite3_column_int64(stmt, column), len,
			ret_body);
	if (rc == 0)
		*ret_len = (size_t)len;
	return rc == -LS_ECORRUPT ? 0 : rc;
}

void
ls_query_day_rest(struct ls_query_day *d)
{
	ls_bodies_rest(d->bodies);
}

int
ls_query_day_step_width(struct ls_query_day *d, int64_t *ret_width)
{
	/* Rows are put in by growing id, those of a unit at once. By id few pages are
	 * read; all, the index only. */
	static const char *const sql[2] = {
		"SELECT max(step_hi - step_lo), max(id) FROM step_rows",
		"SELECT max(step_hi - step_lo), max(id) FROM step_rows WHERE id > ?1"
	};
	struct ls_sql_rows rows = ls_sql_rows(d->db, sql[d->width_id > 0],
		d->width_id > 0 ? LS_SQL_VALUES(ls_sql_int(d->width_id)) : NULL);

	if (ls_sql_next(&rows) && sqlite3_column_type(rows.stmt, 1) != SQLITE_NULL) {
		if (sqlite3_column_int64(rows.stmt, 0) > d->width)
			d->width = sqlite3_column_int64(rows.stmt, 0);
		d->width_id = sqlite3_column_int64(rows.stmt, 1);
	}
	if (rows.rc == 0)
		*ret_width = d->width;
	return ls_sql_end(&rows);
}

/* --- positions ------------------------------------------------------------ */

/* Those of the file as it is now: read again only when somebody wrote to it. */
static int
query_load_positions(struct ls_query_day *d)
{
	int64_t version = 0;
	int rc = ls_db_int(d->db, "PRAGMA data_version", &version);

	if (rc != 0 || (d->positions_version == version && version != 0))
		return rc;
	ls_positions_fini(&d->positions);
	ls_positions_init(&d->positions);
	d->positions_version = 0;
	rc = ls_positions_load(&d->positions, d->db, "main");
	ls_positions_sort(&d->positions);
	if (rc == 0)
		d->positions_version = version;
	return rc;
}

/* Loads those of the newest day; NULL: there is no day. */
static int
query_newest_positions(struct ls_query *q, struct ls_query_day **ret_day)
{
	int rc = ls_query_newest_day(q, ret_day);

	return rc == 0 && *ret_day != NULL ? query_load_positions(*ret_day) : rc;
}

int
ls_query_ledgers(struct ls_query *q, ls_query_ledger_fn *fn, void *arg)
{
	struct ls_query_day *d;
	size_t i;
	int rc = query_newest_positions(q, &d);

	for (i = 0; rc == 0 && d != NULL && i < d->positions.ledger_count; i++)
		rc = fn(arg, &d->positions.ledgers[i]);
	return rc;
}

int
ls_query_rings(struct ls_query *q, ls_query_ring_fn *fn, void *arg)
{
	struct ls_query_day *d;
	size_t i;
	int rc = query_newest_positions(q, &d);

	for (i = 0; rc == 0 && d != NULL && i < d->positions.ring_count; i++)
		rc = fn(arg, &d->positions.rings[i]);
	return rc;
}

int
ls_query_max_worker(struct ls_query *q, int64_t *ret_id)
{
	struct ls_query_day *d;
	int64_t max = 0;
	size_t i;
	int rc = ls_db_int(ls_query_state_db(q), "SELECT max(id) FROM worker", &max);

	if (rc == 0)
		rc = query_newest_positions(q, &d);
	for (i = 0; rc == 0 && d != NULL && i < d->positions.ring_count; i++)
		if (d->positions.rings[i].worker_id > max)
			max = d->positions.rings[i].worker_id;
	if (rc == 0)
		*ret_id = max;
	return rc;
}

/* --- rows of the small tables --------------------------------------------- */

/* Adds what the statement stands on. */
static int
query_add(struct ls_span *s, sqlite3_stmt *stmt, enum ls_store_event_kind kind,
	const void *what)
{
	return ls_span_add(s, kind, sqlite3_column_int64(stmt, 0),
		sqlite3_column_int64(stmt, 1), what);
}

static int
query_read_gap(sqlite3_stmt *stmt, struct ls_span *s)
{
	struct ls_store_item *item = ls_span_take(s, 1, sizeof(*item));
	int rc;

	if (item == NULL)
		return ls_span_error(s);
	item->kind = LS_WIRE_GAP;
	rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_pass(), ls_sql_pass(),
			ls_sql_to_i64(&item->worker_id),
			ls_sql_to_u64(&item->first_index), ls_sql_to_u64(&item->count),
			ls_sql_to_u32(&item->reason)));
	return rc == 0 && item->reason < LS_GAP_REASON_COUNT
		? query_add(s, stmt, LS_EVENT_ITEM, item)
		: -LS_ECORRUPT;
}

static int
query_read_end(sqlite3_stmt *stmt, struct ls_span *s)
{
	struct ls_store_item *item = ls_span_take(s, 1, sizeof(*item));
	int rc;

	if (item == NULL)
		return ls_span_error(s);
	item->kind = LS_WIRE_END;
	rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_pass(), ls_sql_pass(),
			ls_sql_to_i64(&item->worker_id), ls_sql_to_u32(&item->reason),
			ls_sql_to_u64(&item->count)));
	return rc == 0 && item->reason < LS_END_HOW_COUNT
		? query_add(s, stmt, LS_EVENT_ITEM, item)
		: -LS_ECORRUPT;
}

/* A list of ranks, of which a writer puts in no more than so many. */
static int
query_ranks(sqlite3_stmt *stmt, int column, struct ls_span *s, size_t *ret_count,
	int32_t **ret_ranks)
{
	const uint8_t *data = sqlite3_column_blob(stmt, column);
	size_t i, len = (size_t)sqlite3_column_bytes(stmt, column),
		  n = len / sizeof(uint32_t);
	uint32_t rank;
	int32_t *ranks;

	if (len % sizeof(rank) != 0 || n > LS_CLOSE_MISSING_MAX)
		return -LS_ECORRUPT;
	ranks = ls_span_take(s, n, sizeof(*ranks));
	if (ranks == NULL)
		return ls_span_error(s);
	for (i = 0; i < n; i++) {
		memcpy(&rank, data + i * sizeof(rank), sizeof(rank));
		ranks[i] = (int32_t)le32toh(rank);
	}
	*ret_count = n;
	*ret_ranks = ranks;
	return 0;
}

static int
query_read_close(sqlite3_stmt *stmt, struct ls_span *s)
{
	struct ls_store_close *c = ls_span_take(s, 1, sizeof(*c));
	int rc;

	if (c == NULL)
		return ls_span_error(s);
	rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_pass(), ls_sql_pass(),
			ls_sql_to_text(c->job, sizeof(c->job)),
			ls_sql_to_i32(&c->attempt), ls_sql_to_u64(&c->step),
			ls_sql_to_u32(&c->expected), ls_sql_to_u32(&c->used)));
	if (rc == 0)
		rc = query_ranks(stmt, 7, s, &c->missing_count, &c->missing);
	return rc == 0 ? query_add(s, stmt, LS_EVENT_CLOSE, c) : rc;
}

static int
query_read_zoom(sqlite3_stmt *stmt, struct ls_span *s)
{
	struct ls_store_zoom *z = ls_span_take(s, 1, sizeof(*z));
	int32_t event = 0;
	int rc;

	if (z == NULL)
		return ls_span_error(s);
	rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_pass(), ls_sql_pass(),
			ls_sql_to_text(z->host, sizeof(z->host)),
			ls_sql_to_text(z->job, sizeof(z->job)), ls_sql_to_i32(&event),
			ls_sql_to_text(z->cause, sizeof(z->cause)),
			ls_sql_to_i64(&z->until_us)));
	if (rc == 0 && (event < 0 || event >= LS_ZOOM_EVENT_COUNT))
		return -LS_ECORRUPT;
	z->event = (enum ls_zoom_event)event;
	return rc == 0 ? query_add(s, stmt, LS_EVENT_ZOOM, z) : rc;
}

static int
query_read_hang(sqlite3_stmt *stmt, struct ls_span *s)
{
	struct ls_store_hang *h = ls_span_take(s, 1, sizeof(*h));
	int64_t waiting = 0, why = 0;
	int rc;

	if (h == NULL)
		return ls_span_error(s);
	rc = ls_sql_read(stmt,
		LS_SQL_FIELDS(ls_sql_pass(), ls_sql_pass(),
			ls_sql_to_text(h->job, sizeof(h->job)),
			ls_sql_to_i32(&h->attempt), ls_sql_to_u64(&h->step),
			ls_sql_to_i64(&h->since_us), ls_sql_to_i64(&waiting),
			ls_sql_to_i64(&why)));
	if (rc == 0 &&
		(why < 0 || why >= LS_HANG_WHY_COUNT || waiting < 0 ||
			waiting > LS_WORKERS_MAX ||
			h->since_us > sqlite3_column_int64(stmt, 1)))
		return -LS_ECORRUPT;
	h->waiting = (uint32_t)waiting;
	h->why = (enum ls_hang_why)why;
	if (rc == 0)
		rc = query_ranks(stmt, 8, s, &h->rank_count, &h->ranks);
	return rc == 0 ? query_add(s, stmt, LS_EVENT_HANG, h) : rc;
}

static int (*const query_read[QUERY_TABLES])(sqlite3_stmt *, struct ls_span *) = {
	[QUERY_GAP] = query_read_gap,
	[QUERY_END] = query_read_end,
	[QUERY_CLOSE] = query_read_close,
	[QUERY_ZOOM] = query_read_zoom,
	[QUERY_HANG] = query_read_hang,
};

/* What cannot be read must not hide the rest: 0, and the first error is kept. */
static int
query_pass_over(struct ls_query_day *d, int64_t id, int rc)
{
	if (rc != -LS_ECORRUPT && rc != -LS_EPARSE && rc != -LS_EVERSION)
		return rc; /* 0, too */
	ls_log(LS_LOG_ERR, "storage", "stored events from id %lld on: %s; skipped",
		(long long)id, ls_err_text(rc));
	if (d->error == 0)
		d->error = rc;
	return 0;
}

/* --- events in the order in which they came ------------------------------- */

/* Small events with ids lo..hi. */
static int
query_load_rows(struct ls_query_day *d, int64_t lo, int64_t hi)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < QUERY_TABLES && rc == 0; i++) {
		struct ls_sql_rows rows = ls_sql_again(d->stmt[i],
			LS_SQL_VALUES(ls_sql_int(lo), ls_sql_int(hi)));

		while (ls_sql_next(&rows))
			rows.rc = query_pass_over(d, sqlite3_column_int64(rows.stmt, 0),
				query_read[i](rows.stmt, &d->span));
		rc = ls_sql_end(&rows);
	}
	return rc;
}

/*
 * Events of the rows of the journal that begin in lo..*ret_hi or reach into it, until
 * there are enough; *ret_hi becomes the id up to which all that the journal holds is
 * there.
 */
static int
query_load_journal(struct ls_query_day *d, int64_t lo, int64_t *ret_hi)
{
	struct ls_sql_rows rows =
		ls_sql_again(d->stmt[QUERY_JOURNAL], LS_SQL_VALUES(ls_sql_int(lo)));
	int64_t hi = *ret_hi, done = 0;

	while (ls_sql_next(&rows)) {
		int64_t id = sqlite3_column_int64(rows.stmt, 0),
			last = sqlite3_column_int64(rows.stmt, 1);
		const void *body = sqlite3_column_blob(rows.stmt, 2);
		int rc;

		if (last < lo)
			continue; /* all before */
		if (id > hi)
			break;
		if (d->span.count + d->span.records >= LS_QUERY_WINDOW) {
			hi = done;
			break;
		}
		rc = body == NULL ? -LS_ECORRUPT
				  : ls_span_load_journal(&d->span, body,
					    (size_t)sqlite3_column_bytes(rows.stmt, 2));
		if (rc == 0 && d->span.bad > 0)
			rc = -LS_EPARSE;
		d->span.bad = 0;
		rows.rc = query_pass_over(d, id, rc);
		done = last;
		if (done > hi)
			hi = done;
	}
	if (rows.rc == 0)
		*ret_hi = hi;
	return ls_sql_end(&rows);
}

/* Rows of the unit lo..hi from one of its tables. */
static int
query_load_unit_rows(struct ls_query_day *d, enum ls_unit_table table, int64_t lo,
	int64_t hi)
{
	struct ls_sql_rows rows = ls_sql_again(d->stmt[QUERY_UNIT_ROWS + table],
		LS_SQL_VALUES(ls_sql_int(lo), ls_sql_int(hi)));

	while (ls_sql_next(&rows))
		rows.rc = query_pass_over(d, sqlite3_column_int64(rows.stmt, 0),
			ls_unit_reader_load(d->reader, table,
				sqlite3_column_blob(rows.stmt, 1),
				(size_t)sqlite3_column_bytes(rows.stmt, 1), &d->span));
	return ls_sql_end(&rows);
}

static int
query_load_unit(struct ls_query_day *d, int64_t lo, int64_t hi)
{
	int table, rc = d->reader != NULL ? 0 : ls_unit_reader_new(&d->reader);

	for (table = 0; table < LS_UNIT_TABLES && rc == 0; table++)
		rc = query_load_unit_rows(d, (enum ls_unit_table)table, lo, hi);
	return rc;
}

/* The first unit that ends at lo or behind it; INT64_MAX: there is none. */
static int
query_find_unit(struct ls_query_day *d, int64_t lo, int64_t *ret_id, int64_t *ret_last)
{
	struct ls_sql_rows rows =
		ls_sql_again(d->stmt[QUERY_UNIT], LS_SQL_VALUES(ls_sql_int(lo)));

	*ret_id = *ret_last = INT64_MAX;
	while (ls_sql_next(&rows))
		if (sqlite3_column_int64(rows.stmt, 1) >= lo) {
			*ret_id = sqlite3_column_int64(rows.stmt, 0);
			*ret_last = sqlite3_column_int64(rows.stmt, 1);
			break;
		}
	return ls_sql_end(&rows);
}

/*
 * Loads all events from lo on up to *ret_hi, which is chosen here: the end of what is
 * stored together there, or of a window of small events. Wherever events are stored,
 * they are added to the span here.
 */
static int
query_load(struct ls_query_day *d, int64_t lo, int64_t *ret_hi)
{
	int64_t hi = lo + LS_QUERY_WINDOW - 1, unit, last;
	int rc = query_find_unit(d, lo, &unit, &last);

	if (rc == 0 && unit <= lo) {
		hi = last;
		rc = query_load_unit(d, unit, last);
	} else if (rc == 0) {
		hi = hi < unit ? hi : unit - 1;
		rc = query_load_journal(d, lo, &hi);
	}
	if (rc == 0)
		rc = query_load_rows(d, lo, hi);
	if (rc == 0)
		*ret_hi = hi;
	return rc;
}

/* As query_load, all in one state of the file, sorted; the file is let go before
 * anybody sees them. */
static int
query_load_window(struct ls_query_day *d, int64_t lo, int64_t *ret_hi)
{
	int rc = ls_db_exec(d->db, "BEGIN");

	ls_span_reset(&d->span);
	if (rc == 0)
		rc = query_load(d, lo, ret_hi);
	if (!sqlite3_get_autocommit(d->db))
		(void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL,
			NULL); /* only read with */
	if (rc == 0)
		ls_span_sort(&d->span);
	return rc;
}

int
ls_query_events(struct ls_query *q, int32_t day, int64_t from_id, ls_query_event_fn *fn,
	void *arg)
{
	struct ls_query_day *d;
	int64_t last = 0, hi = 0, lo = from_id > 1 ? from_id : 1;
	int rc = ls_query_day_of(q, day, &d);

	if (rc != 0)
		return rc;
	rc = ls_query_last_id(d->db, &last);
	d->error = 0;
	for (; rc == 0 && lo <= last; lo = hi + 1) {
		rc = query_load_window(d, lo, &hi);
		if (rc == 0)
			rc = ls_span_give(&d->span, lo, last, fn, arg);
	}
	ls_span_reset(&d->span);
	return rc == 0 ? d->error : rc;
}

int
ls_query_last_id(sqlite3 *db, int64_t *ret_last)
{
	return ls_db_int(db,
		"SELECT max(coalesce((SELECT last_id FROM journal ORDER BY id DESC LIMIT 1), 0), "
		"coalesce((SELECT last_id FROM unit ORDER BY id DESC LIMIT 1), 0), "
		"coalesce((SELECT max(id) FROM gap), 0), "
		"coalesce((SELECT max(id) FROM worker_end), 0), "
		"coalesce((SELECT max(id) FROM step_close), 0), "
		"coalesce((SELECT max(id) FROM zoom), 0), "
		"coalesce((SELECT max(id) FROM hang), 0))",
		ret_last);
}

int
ls_query_tail(struct ls_query *q, int32_t day, uint64_t max_records,
	int64_t *ret_from_id, uint64_t *ret_records)
{
	struct ls_query_day *d;
	struct ls_sql_rows rows;
	uint64_t records = 0;
	int64_t from_id = 1;
	int rc = ls_query_day_of(q, day, &d);

	if (rc != 0)
		return rc;
	rows = ls_sql_rows(d->db,
		"SELECT id, last_id, records FROM journal UNION ALL "
		"SELECT id, last_id, records FROM unit ORDER BY id DESC",
		NULL);
	while (ls_sql_next(&rows)) {
		int64_t id = sqlite3_column_int64(rows.stmt, 0),
			last_id = sqlite3_column_int64(rows.stmt, 1);
		uint64_t n = (uint64_t)sqlite3_column_int64(rows.stmt, 2),
			 left = max_records - records;

		if (n > left) {
			/* As if records were spread evenly over ids: close enough for a
			 * bound. */
			from_id = last_id + 1 -
				(int64_t)((double)(last_id - id + 1) *
					((double)left / (double)n));
			records += from_id <= last_id ? left : 0;
			break;
		}
		records += n;
	}
	if (rows.rc == 0) {
		*ret_from_id = from_id;
		*ret_records = records;
	}
	return ls_sql_end(&rows);
}

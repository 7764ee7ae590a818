/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/query_day.h"

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include "proto/base/bytes.h"
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
	struct ls_unit_reader *reader; /* of the query that reads events */
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
	if (rc == 0)
		*ret_day = d;
	else
		ls_query_day_close(d);
	return rc;
}

void
ls_query_day_close(struct ls_query_day *d)
{
	if (d == NULL)
		return;
	ls_db_finalize_all(d->stmt, QUERY_STATEMENTS);
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
	int rc = ls_sql_int_of(d->db, "PRAGMA data_version", NULL, &version);

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
	int rc = query_newest_positions(q, &d);

	for (size_t i = 0; rc == 0 && d != NULL && i < d->positions.ledger_count; i++)
		rc = fn(arg, &d->positions.ledgers[i]);
	return rc;
}

int
ls_query_rings(struct ls_query *q, ls_query_ring_fn *fn, void *arg)
{
	struct ls_query_day *d;
	int rc = query_newest_positions(q, &d);

	for (size_t i = 0; rc == 0 && d != NULL && i < d->positions.ring_count; i++)
		rc = fn(arg, &d->positions.rings[i]);
	return rc;
}

int
ls_query_max_worker(struct ls_query *q, int64_t *ret_id)
{
	struct ls_query_day *d;
	int64_t max = 0;
	int rc = ls_sql_int_of(ls_query_state_db(q), "SELECT max(id) FROM worker", NULL,
		&max);

	if (rc == 0)
		rc = query_newest_positions(q, &d);
	for (size_t i = 0; rc == 0 && d != NULL && i < d->positions.ring_count; i++)
		if (d->positions.rings[i].worker_id > max)
			max = d->positions.rings[i].worker_id;
	if (rc == 0)
		*ret_id = max;
	return rc;
}

/* --- rows of the small tables --------------------------------------------- */

#define QUERY_COLUMNS_MAX 6

/* A column behind id and t_us, and where its value goes. */
struct query_column {
	enum ls_sql_kind kind;
	size_t at, size;
	uint64_t max; /* of a number; 0: any */
};

/* A small table: what its rows are, and their columns. */
struct query_table {
	enum ls_store_event_kind event;
	enum ls_wire_item_kind item; /* of ITEM */
	size_t bytes; /* of the event's struct */
	/* of a list of ranks, whose column is behind the others; both 0: there is none */
	size_t count_at, ranks_at;
	int column_count;
	struct query_column columns[QUERY_COLUMNS_MAX];
};

#define COLUMN(kind, type, field, max)                                       \
	{                                                                    \
		LS_SQL_##kind, offsetof(struct ls_store_##type, field),      \
			sizeof(((struct ls_store_##type *)NULL)->field), max \
	}

static const struct query_table query_tables[QUERY_TABLES] = {
	[QUERY_GAP] = { .event = LS_EVENT_ITEM,
		.item = LS_WIRE_GAP,
		.bytes = sizeof(struct ls_store_item),
		.column_count = 4,
		.columns = { COLUMN(INT, item, worker_id, 0),
			COLUMN(INT, item, first_index, 0), COLUMN(INT, item, count, 0),
			COLUMN(INT, item, reason, LS_GAP_REASON_COUNT - 1) } },
	[QUERY_END] = { .event = LS_EVENT_ITEM,
		.item = LS_WIRE_END,
		.bytes = sizeof(struct ls_store_item),
		.column_count = 3,
		.columns = { COLUMN(INT, item, worker_id, 0),
			COLUMN(INT, item, reason, LS_END_HOW_COUNT - 1),
			COLUMN(INT, item, count, 0) } },
	[QUERY_CLOSE] = { .event = LS_EVENT_CLOSE,
		.bytes = sizeof(struct ls_store_close),
		.count_at = offsetof(struct ls_store_close, missing_count),
		.ranks_at = offsetof(struct ls_store_close, missing),
		.column_count = 5,
		.columns = { COLUMN(TEXT, close, job, 0),
			COLUMN(INT, close, attempt, 0), COLUMN(INT, close, step, 0),
			COLUMN(INT, close, expected, 0),
			COLUMN(INT, close, used, 0) } },
	[QUERY_ZOOM] = { .event = LS_EVENT_ZOOM,
		.bytes = sizeof(struct ls_store_zoom),
		.column_count = 5,
		.columns = { COLUMN(TEXT, zoom, host, 0), COLUMN(TEXT, zoom, job, 0),
			COLUMN(INT, zoom, event, LS_ZOOM_EVENT_COUNT - 1),
			COLUMN(TEXT, zoom, cause, 0),
			COLUMN(INT, zoom, until_us, 0) } },
	[QUERY_HANG] = { .event = LS_EVENT_HANG,
		.bytes = sizeof(struct ls_store_hang),
		.count_at = offsetof(struct ls_store_hang, rank_count),
		.ranks_at = offsetof(struct ls_store_hang, ranks),
		.column_count = 6,
		.columns = { COLUMN(TEXT, hang, job, 0), COLUMN(INT, hang, attempt, 0),
			COLUMN(INT, hang, step, 0), COLUMN(INT, hang, since_us, 0),
			COLUMN(INT, hang, waiting, LS_WORKERS_MAX),
			COLUMN(INT, hang, why, LS_HANG_WHY_COUNT - 1) } },
};

/* A list of ranks, of which a writer puts in no more than so many. */
static int
query_ranks(sqlite3_stmt *stmt, int column, struct ls_span *s, size_t *ret_count,
	int32_t **ret_ranks)
{
	const uint8_t *data = sqlite3_column_blob(stmt, column);
	size_t i, len = (size_t)sqlite3_column_bytes(stmt, column),
		  n = len / sizeof(uint32_t);
	int32_t *ranks;

	if (len % sizeof(uint32_t) != 0 || n > LS_CLOSE_MISSING_MAX)
		return -LS_ECORRUPT;
	ranks = ls_span_take(s, n, sizeof(*ranks));
	if (ranks == NULL)
		return ls_span_error(s);
	for (i = 0; i < n; i++)
		ranks[i] = (int32_t)ls_bytes_get(data + i * sizeof(uint32_t), 4);
	*ret_count = n;
	*ret_ranks = ranks;
	return 0;
}

/* Adds the event that a row of the table is. */
static int
query_read(struct ls_span *s, const struct query_table *t, sqlite3_stmt *stmt)
{
	struct ls_sql_field fields[QUERY_COLUMNS_MAX + 3] = { ls_sql_pass(),
		ls_sql_pass() };
	int64_t t_us = sqlite3_column_int64(stmt, 1);
	char *what = ls_span_take(s, 1, t->bytes);
	int i, rc;

	if (what == NULL)
		return ls_span_error(s);
	for (i = 0; i < t->column_count; i++)
		fields[i + 2] = (struct ls_sql_field){ t->columns[i].kind,
			what + t->columns[i].at, t->columns[i].size,
			t->columns[i].max };
	rc = ls_sql_read(stmt, fields);
	if (rc == 0 && t->ranks_at > 0)
		rc = query_ranks(stmt, t->column_count + 2, s,
			(void *)(what + t->count_at), (void *)(what + t->ranks_at));
	if (t->event == LS_EVENT_ITEM)
		((struct ls_store_item *)(void *)what)->kind = t->item;
	if (t->event == LS_EVENT_HANG &&
		((struct ls_store_hang *)(void *)what)->since_us > t_us)
		rc = -LS_ECORRUPT;
	return rc == 0
		? ls_span_add(s, t->event, sqlite3_column_int64(stmt, 0), t_us, what)
		: rc;
}

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
	int rc = 0;

	for (size_t i = 0; i < QUERY_TABLES && rc == 0; i++) {
		struct ls_sql_rows rows = ls_sql_again(d->stmt[i],
			LS_SQL_VALUES(ls_sql_int(lo), ls_sql_int(hi)));

		while (ls_sql_next(&rows))
			rows.rc = query_pass_over(d, sqlite3_column_int64(rows.stmt, 0),
				query_read(&d->span, &query_tables[i], rows.stmt));
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
	int table, rc = 0;

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
	d->reader = ls_query_unit_reader(q);
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
	return ls_sql_int_of(db,
		"SELECT max(coalesce((SELECT last_id FROM journal ORDER BY id DESC LIMIT 1), 0), "
		"coalesce((SELECT last_id FROM unit ORDER BY id DESC LIMIT 1), 0), "
		"coalesce((SELECT max(id) FROM gap), 0), "
		"coalesce((SELECT max(id) FROM worker_end), 0), "
		"coalesce((SELECT max(id) FROM step_close), 0), "
		"coalesce((SELECT max(id) FROM zoom), 0), "
		"coalesce((SELECT max(id) FROM hang), 0))",
		NULL, ret_last);
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

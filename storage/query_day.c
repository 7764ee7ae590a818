/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/query_day.h"

#include <endian.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"
#include "storage/db.h"
#include "storage/migrate.h"

#define QUERY_VALUE_BYTES 10 /* u16 metric, f64 value: see schema_telemetry.sql */

/* The tables that share one sequence of ids, each with the columns that its reader takes. */
enum query_table {
	QUERY_BLOCK,
	QUERY_GAP,
	QUERY_END,
	QUERY_CLOSE,
	QUERY_COUNTERS,
	QUERY_ZOOM, /* from version 2 on */
	QUERY_TABLES
};

static const char *const query_sql[QUERY_TABLES] = {
	[QUERY_BLOCK] = "SELECT id, t_us, worker_id, first_index, n, step_lo, step_hi, t_lo_us, "
			"t_hi_us, ref_mono_ns, offset_ns, drift_ppb, uncertainty_ns, item "
			"FROM step_block WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_GAP] = "SELECT id, t_us, worker_id, first_index, n, reason "
		      "FROM gap WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_END] = "SELECT id, t_us, worker_id, how, records "
		      "FROM worker_end WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_CLOSE] = "SELECT id, t_us, job, attempt, step, expected, used, missing "
			"FROM step_close WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_COUNTERS] = "SELECT id, t_us, host, worker_id, read_us, data "
			   "FROM counters WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	[QUERY_ZOOM] = "SELECT id, t_us, host, job, event, cause, until_us "
		       "FROM zoom WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
};

struct ls_query_day {
	sqlite3 *db;
	int64_t version;
	size_t tables;
	sqlite3_stmt *stmt[QUERY_TABLES];
};

int
ls_query_day_open(const char *path, struct ls_query_day **ret_day)
{
	struct ls_query_day *d = calloc(1, sizeof(*d));
	size_t i;
	int rc;

	if (d == NULL)
		return -ENOMEM;
	rc = ls_db_open(path, LS_DB_READ, &d->db);
	if (rc == 0)
		rc = ls_migrate_version(d->db, ls_migrations_of(LS_SCHEMA_TELEMETRY), &d->version);
	d->tables = d->version < 2 ? QUERY_ZOOM : QUERY_TABLES;
	for (i = 0; i < d->tables && rc == 0; i++)
		rc = ls_db_prepare(d->db, query_sql[i], &d->stmt[i]);
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
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < QUERY_TABLES; i++)
		(void)sqlite3_finalize(d->stmt[i]); /* only read with */
	ls_db_close(d->db);
	free(d);
}

sqlite3 *
ls_query_day_db(const struct ls_query_day *d)
{
	return d->db;
}

int64_t
ls_query_day_version(const struct ls_query_day *d)
{
	return d->version;
}

/* --- ledger and rings ---------------------------------------------------------------- */

int
ls_query_column_blob(sqlite3_stmt *stmt, int column, void *dst, size_t size)
{
	const void *data = sqlite3_column_blob(stmt, column);

	if (data == NULL || (size_t)sqlite3_column_bytes(stmt, column) != size)
		return -LS_ECORRUPT;
	memcpy(dst, data, size);
	return 0;
}

int
ls_query_column_text(sqlite3_stmt *stmt, int column, char *dst, size_t size)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text != NULL && ls_text_copy(dst, size, text) == 0 ? 0 : -LS_ECORRUPT;
}

int
ls_query_day_ledgers(struct ls_query_day *d, ls_query_ledger_fn *fn, void *arg)
{
	struct ls_query_ledger entry;
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(d->db,
		d->version < 2 ? "SELECT boot, host, seq, t_us, 0 FROM ledger ORDER BY t_us"
			       : "SELECT boot, host, seq, t_us, chunk_seq FROM ledger ORDER BY t_us",
		&stmt);

	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = ls_query_column_blob(stmt, 0, entry.boot, sizeof(entry.boot));
		if (rc == 0)
			rc = ls_query_column_text(stmt, 1, entry.host, sizeof(entry.host));
		entry.seq = (uint64_t)sqlite3_column_int64(stmt, 2);
		entry.t_us = sqlite3_column_int64(stmt, 3);
		entry.chunk_seq = (uint64_t)sqlite3_column_int64(stmt, 4);
		if (rc == 0)
			rc = fn(arg, &entry);
	}
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

int
ls_query_day_rings(struct ls_query_day *d, ls_query_ring_fn *fn, void *arg)
{
	struct ls_query_ring ring;
	sqlite3_stmt *stmt = NULL;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(d->db,
		"SELECT ring_id, worker_id, high, t_us FROM ring_high ORDER BY t_us", &stmt);

	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = ls_query_column_blob(stmt, 0, ring.ring_id, sizeof(ring.ring_id));
		ring.worker_id = sqlite3_column_int64(stmt, 1);
		ring.high = (uint64_t)sqlite3_column_int64(stmt, 2);
		ring.t_us = sqlite3_column_int64(stmt, 3);
		if (rc == 0)
			rc = fn(arg, &ring);
	}
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	return rc != 0 ? rc : ls_err_sqlite(step);
}

int
ls_query_day_max_worker(struct ls_query_day *d, int64_t *ret_id)
{
	return ls_db_int(d->db, "SELECT max(worker_id) FROM ring_high", ret_id);
}

/* --- rows in the order they came ------------------------------------------------------ */

static uint64_t
query_u64(sqlite3_stmt *stmt, int column)
{
	return (uint64_t)sqlite3_column_int64(stmt, column);
}

static int
query_read_block(sqlite3_stmt *stmt, struct ls_store_event *e)
{
	struct ls_store_item *item = &e->u.item;

	e->kind = LS_EVENT_ITEM;
	item->kind = LS_WIRE_STEPS;
	item->worker_id = sqlite3_column_int64(stmt, 2);
	item->first_index = query_u64(stmt, 3);
	item->count = query_u64(stmt, 4);
	item->step_lo = query_u64(stmt, 5);
	item->step_hi = query_u64(stmt, 6);
	item->t_lo_us = sqlite3_column_int64(stmt, 7);
	item->t_hi_us = sqlite3_column_int64(stmt, 8);
	item->map.ref_mono_ns = sqlite3_column_int64(stmt, 9);
	item->map.offset_ns = sqlite3_column_int64(stmt, 10);
	item->map.drift_ppb = sqlite3_column_int64(stmt, 11);
	item->map.uncertainty_ns = sqlite3_column_int64(stmt, 12);
	item->data = sqlite3_column_blob(stmt, 13);
	item->len = (size_t)sqlite3_column_bytes(stmt, 13);
	return item->data != NULL ? 0 : -LS_ECORRUPT;
}

static int
query_read_gap(sqlite3_stmt *stmt, struct ls_store_event *e)
{
	struct ls_store_item *item = &e->u.item;

	e->kind = LS_EVENT_ITEM;
	item->kind = LS_WIRE_GAP;
	item->worker_id = sqlite3_column_int64(stmt, 2);
	item->first_index = query_u64(stmt, 3);
	item->count = query_u64(stmt, 4);
	item->reason = (unsigned)sqlite3_column_int(stmt, 5);
	return item->reason < LS_GAP_REASON_COUNT ? 0 : -LS_ECORRUPT;
}

static int
query_read_end(sqlite3_stmt *stmt, struct ls_store_event *e)
{
	struct ls_store_item *item = &e->u.item;

	e->kind = LS_EVENT_ITEM;
	item->kind = LS_WIRE_END;
	item->worker_id = sqlite3_column_int64(stmt, 2);
	item->reason = (unsigned)sqlite3_column_int(stmt, 3);
	item->count = query_u64(stmt, 4);
	return item->reason < LS_END_HOW_COUNT ? 0 : -LS_ECORRUPT;
}

/* The list of missing ranks is the caller's to free. */
static int
query_read_close(sqlite3_stmt *stmt, struct ls_store_event *e)
{
	struct ls_store_close *c = &e->u.close;
	const uint8_t *data = sqlite3_column_blob(stmt, 7);
	size_t i, n = (size_t)sqlite3_column_bytes(stmt, 7) / sizeof(uint32_t);
	uint32_t rank;

	e->kind = LS_EVENT_CLOSE;
	c->attempt = sqlite3_column_int(stmt, 3);
	c->step = query_u64(stmt, 4);
	c->expected = (uint32_t)sqlite3_column_int64(stmt, 5);
	c->used = (uint32_t)sqlite3_column_int64(stmt, 6);
	if (n > 0) {
		c->missing = calloc(n, sizeof(*c->missing));
		if (c->missing == NULL)
			return -ENOMEM;
	}
	c->missing_count = n;
	for (i = 0; i < n; i++) {
		memcpy(&rank, data + i * sizeof(rank), sizeof(rank));
		c->missing[i] = (int32_t)le32toh(rank);
	}
	return ls_query_column_text(stmt, 2, c->job, sizeof(c->job));
}

static int
query_read_counters(sqlite3_stmt *stmt, struct ls_store_event *e)
{
	struct ls_store_counters *c = &e->u.counters;
	const uint8_t *data = sqlite3_column_blob(stmt, 5);
	size_t i, n = (size_t)sqlite3_column_bytes(stmt, 5) / QUERY_VALUE_BYTES;
	uint16_t metric;
	uint64_t bits;

	e->kind = LS_EVENT_COUNTERS;
	c->worker_id = sqlite3_column_int64(stmt, 3); /* null: 0 */
	c->read_us = sqlite3_column_int64(stmt, 4);
	if (n > LS_HOT_MAX)
		return -LS_ECORRUPT;
	for (i = 0; i < n; i++) {
		memcpy(&metric, data + i * QUERY_VALUE_BYTES, sizeof(metric));
		memcpy(&bits, data + i * QUERY_VALUE_BYTES + sizeof(metric), sizeof(bits));
		bits = le64toh(bits);
		c->metric[i] = le16toh(metric);
		memcpy(&c->value[i], &bits, sizeof(bits));
		if (c->metric[i] >= LS_METRIC_COUNT)
			return -LS_ECORRUPT;
	}
	c->count = n;
	return ls_query_column_text(stmt, 2, c->host, sizeof(c->host));
}

static int
query_read_zoom(sqlite3_stmt *stmt, struct ls_store_event *e)
{
	struct ls_store_zoom *z = &e->u.zoom;
	int event = sqlite3_column_int(stmt, 4);
	int rc = ls_query_column_text(stmt, 2, z->host, sizeof(z->host));

	e->kind = LS_EVENT_ZOOM;
	if (event < 0 || event >= LS_ZOOM_EVENT_COUNT)
		return -LS_ECORRUPT;
	z->event = (enum ls_zoom_event)event;
	z->until_us = sqlite3_column_int64(stmt, 6);
	if (rc == 0)
		rc = ls_query_column_text(stmt, 3, z->job, sizeof(z->job));
	return rc == 0 ? ls_query_column_text(stmt, 5, z->cause, sizeof(z->cause)) : rc;
}

static int (*const query_read[QUERY_TABLES])(sqlite3_stmt *, struct ls_store_event *) = {
	[QUERY_BLOCK] = query_read_block,
	[QUERY_GAP] = query_read_gap,
	[QUERY_END] = query_read_end,
	[QUERY_CLOSE] = query_read_close,
	[QUERY_COUNTERS] = query_read_counters,
	[QUERY_ZOOM] = query_read_zoom,
};

/* Gives the row that a statement stands on to the visitor, and steps on. */
static int
query_give(sqlite3_stmt *stmt, size_t table, ls_query_event_fn *fn, void *arg, int64_t *ret_next)
{
	struct ls_store_event e;
	int rc, step;

	memset(&e, 0, sizeof(e));
	e.id = sqlite3_column_int64(stmt, 0);
	e.t_us = sqlite3_column_int64(stmt, 1);
	rc = query_read[table](stmt, &e);
	if (rc == 0)
		rc = fn(arg, &e);
	if (e.kind == LS_EVENT_CLOSE)
		free(e.u.close.missing);
	if (rc != 0)
		return rc;
	step = sqlite3_step(stmt);
	*ret_next = step == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : INT64_MAX;
	return ls_err_sqlite(step);
}

/* Rows with ids lo..hi of all tables, merged. */
static int
query_window(struct ls_query_day *d, int64_t lo, int64_t hi, ls_query_event_fn *fn, void *arg)
{
	int64_t next[QUERY_TABLES];
	size_t i, first;
	int rc = 0, step;

	for (i = 0; i < d->tables && rc == 0; i++) {
		(void)sqlite3_bind_int64(d->stmt[i], 1, lo); /* parameters that are there */
		(void)sqlite3_bind_int64(d->stmt[i], 2, hi);
		step = sqlite3_step(d->stmt[i]);
		next[i] = step == SQLITE_ROW ? sqlite3_column_int64(d->stmt[i], 0) : INT64_MAX;
		rc = ls_err_sqlite(step);
	}
	while (rc == 0) {
		for (first = 0, i = 1; i < d->tables; i++) {
			if (next[i] < next[first])
				first = i;
		}
		if (next[first] == INT64_MAX)
			break;
		rc = query_give(d->stmt[first], first, fn, arg, &next[first]);
	}
	for (i = 0; i < d->tables; i++)
		(void)sqlite3_reset(d->stmt[i]); /* lets the snapshot go */
	return rc;
}

static int
query_last_id(struct ls_query_day *d, int64_t *ret_last)
{
	int64_t last = 0, zoom = 0;
	int rc = ls_db_int(d->db,
		"SELECT max((SELECT coalesce(max(id), 0) FROM step_block), "
		"(SELECT coalesce(max(id), 0) FROM gap), "
		"(SELECT coalesce(max(id), 0) FROM worker_end), "
		"(SELECT coalesce(max(id), 0) FROM step_close), "
		"(SELECT coalesce(max(id), 0) FROM counters))",
		&last);

	if (rc == 0 && d->version >= 2)
		rc = ls_db_int(d->db, "SELECT max(id) FROM zoom", &zoom);
	if (rc == 0)
		*ret_last = last > zoom ? last : zoom;
	return rc;
}

int
ls_query_day_events(struct ls_query_day *d, int64_t from_id, ls_query_event_fn *fn, void *arg)
{
	int64_t last, lo = from_id > 1 ? from_id : 1;
	int rc = query_last_id(d, &last);

	for (; rc == 0 && lo <= last; lo += LS_QUERY_WINDOW)
		rc = query_window(d, lo, lo + LS_QUERY_WINDOW - 1, fn, arg);
	return rc;
}

int
ls_query_day_tail(
	struct ls_query_day *d, uint64_t max_records, int64_t *ret_from_id, uint64_t *ret_records)
{
	sqlite3_stmt *stmt = NULL;
	uint64_t records = 0;
	int64_t from_id = 1;
	int step = SQLITE_DONE;
	int rc = ls_db_prepare(d->db, "SELECT id, n FROM step_block ORDER BY id DESC", &stmt);

	while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		uint64_t n = query_u64(stmt, 1);

		if (n > max_records - records) {
			from_id = sqlite3_column_int64(stmt, 0) + 1;
			break;
		}
		records += n;
	}
	(void)sqlite3_finalize(stmt); /* tells the same error again */
	if (rc == 0)
		rc = ls_err_sqlite(step);
	if (rc == 0) {
		*ret_from_id = from_id;
		*ret_records = records;
	}
	return rc;
}

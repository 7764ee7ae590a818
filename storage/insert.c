/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/store_sql.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include "storage/db.h"

/* Values of one counters row, and how they are packed: u16 metric, f64 value. */
#define INSERT_VALUE_BYTES 10
#define INSERT_MISSING_MAX 1024 /* ranks listed of one closing; LS_CLOSE_MISSING_MAX of the engine */

/* What is bound lives until the statement has run: no copies. A failed bind fails the step. */
void
ls_insert_text(sqlite3_stmt *stmt, int column, const char *text)
{
	(void)sqlite3_bind_text(stmt, column, text, -1, SQLITE_STATIC);
}

void
ls_insert_int(sqlite3_stmt *stmt, int column, int64_t value)
{
	(void)sqlite3_bind_int64(stmt, column, value);
}

static void
insert_double(sqlite3_stmt *stmt, int column, double value)
{
	(void)sqlite3_bind_double(stmt, column, value);
}

/* Never null, also when empty: the columns are NOT NULL. */
void
ls_insert_blob(sqlite3_stmt *stmt, int column, const void *data, size_t len)
{
	(void)sqlite3_bind_blob(stmt, column, len > 0 ? data : "", (int)len, SQLITE_STATIC);
}

static int
insert_worker(sqlite3_stmt *const *stmt, const struct ls_store_worker *w)
{
	sqlite3_stmt *s = stmt[LS_STORE_STATE_JOB];
	int rc;

	ls_insert_text(s, 1, w->info.job);
	ls_insert_int(s, 2, w->first_us);
	rc = ls_db_run(s);
	if (rc != 0)
		return rc;
	s = stmt[LS_STORE_STATE_WORKER];
	ls_insert_int(s, 1, w->id);
	ls_insert_blob(s, 2, w->ring_id, sizeof(w->ring_id));
	ls_insert_text(s, 3, w->info.job);
	ls_insert_int(s, 4, w->info.attempt);
	ls_insert_int(s, 5, w->info.rank);
	ls_insert_int(s, 6, w->info.world);
	ls_insert_int(s, 7, w->info.chips);
	ls_insert_text(s, 8, w->info.host);
	ls_insert_text(s, 9, w->info.slice);
	ls_insert_text(s, 10, w->info.role);
	ls_insert_int(s, 11, w->first_us);
	ls_insert_int(s, 12, w->info.step_source);
	insert_double(s, 13, w->info.step_confidence);
	return ls_db_run(s);
}

static int
insert_finding(sqlite3_stmt *const *stmt, const struct ls_store_finding *f, int64_t t_us)
{
	sqlite3_stmt *s = stmt[LS_STORE_STATE_FINDING];
	int rc;

	ls_insert_text(s, 1, f->id);
	ls_insert_text(s, 2, f->job);
	ls_insert_text(s, 3, f->kind);
	ls_insert_text(s, 4, f->severity);
	ls_insert_text(s, 5, f->status);
	ls_insert_int(s, 6, t_us);
	ls_insert_text(s, 7, f->json);
	rc = ls_db_run(s);
	if (rc != 0 || !f->history)
		return rc;
	s = stmt[LS_STORE_STATE_EVENT];
	ls_insert_text(s, 1, f->id);
	ls_insert_int(s, 2, t_us);
	ls_insert_text(s, 3, f->event);
	ls_insert_text(s, 4, f->severity);
	ls_insert_text(s, 5, f->status);
	return ls_db_run(s);
}

int
ls_store_put_state(sqlite3_stmt *const *stmt, const struct ls_write *m)
{
	sqlite3_stmt *s;

	switch (m->kind) {
	case LS_WRITE_WORKER:
		return insert_worker(stmt, &m->u.worker);
	case LS_WRITE_FINDING:
		return insert_finding(stmt, &m->u.finding, m->t_us);
	case LS_WRITE_META:
		s = stmt[LS_STORE_STATE_META];
		ls_insert_text(s, 1, m->u.meta.key);
		ls_insert_blob(s, 2, m->u.meta.value, m->u.meta.len);
		return ls_db_run(s);
	case LS_WRITE_HOST:
		s = stmt[LS_STORE_STATE_HOST];
		ls_insert_text(s, 1, m->u.host.host);
		ls_insert_int(s, 2, m->t_us);
		ls_insert_text(s, 3, m->u.host.json);
		return ls_db_run(s);
	case LS_WRITE_RETAIN:
		s = stmt[LS_STORE_STATE_FORGET];
		ls_insert_int(s, 1, m->u.retain.history_us);
		return ls_db_run(s);
	case LS_WRITE_REPORT:
	case LS_WRITE_CLOSE:
	case LS_WRITE_ZOOM:
	case LS_WRITE_KIND_COUNT:
		break;
	}
	return -EINVAL;
}

static int
insert_block(sqlite3_stmt *s, const struct ls_store_item *item, int64_t t_us, int64_t id)
{
	ls_insert_int(s, 1, id);
	ls_insert_int(s, 2, item->worker_id);
	ls_insert_int(s, 3, t_us);
	ls_insert_int(s, 4, (int64_t)item->first_index);
	ls_insert_int(s, 5, (int64_t)item->count);
	ls_insert_int(s, 6, (int64_t)item->step_lo);
	ls_insert_int(s, 7, (int64_t)item->step_hi);
	ls_insert_int(s, 8, item->t_lo_us);
	ls_insert_int(s, 9, item->t_hi_us);
	ls_insert_int(s, 10, item->map.ref_mono_ns);
	ls_insert_int(s, 11, item->map.offset_ns);
	ls_insert_int(s, 12, item->map.drift_ppb);
	ls_insert_int(s, 13, item->map.uncertainty_ns);
	ls_insert_blob(s, 14, item->data, item->len);
	return ls_db_run(s);
}

static int
insert_gap(sqlite3_stmt *s, const struct ls_store_item *item, int64_t t_us, int64_t id)
{
	ls_insert_int(s, 1, id);
	ls_insert_int(s, 2, item->worker_id);
	ls_insert_int(s, 3, t_us);
	ls_insert_int(s, 4, (int64_t)item->first_index);
	ls_insert_int(s, 5, (int64_t)item->count);
	ls_insert_int(s, 6, item->reason);
	return ls_db_run(s);
}

static int
insert_end(sqlite3_stmt *s, const struct ls_store_item *item, int64_t t_us, int64_t id)
{
	ls_insert_int(s, 1, id);
	ls_insert_int(s, 2, item->worker_id);
	ls_insert_int(s, 3, t_us);
	ls_insert_int(s, 4, item->reason);
	ls_insert_int(s, 5, (int64_t)item->count);
	return ls_db_run(s);
}

static int
insert_item(sqlite3_stmt *const *stmt, const struct ls_store_item *item, int64_t t_us,
	int64_t id, uint64_t *records)
{
	sqlite3_stmt *s = stmt[LS_STORE_DAY_RING];
	int rc = 0;

	switch (item->kind) {
	case LS_WIRE_STEPS:
		rc = insert_block(stmt[LS_STORE_DAY_BLOCK], item, t_us, id);
		*records += item->count;
		break;
	case LS_WIRE_GAP:
		rc = insert_gap(stmt[LS_STORE_DAY_GAP], item, t_us, id);
		break;
	case LS_WIRE_END:
		rc = insert_end(stmt[LS_STORE_DAY_END], item, t_us, id);
		break;
	}
	if (rc != 0)
		return rc;
	ls_insert_blob(s, 1, item->ring_id, sizeof(item->ring_id));
	ls_insert_int(s, 2, item->worker_id);
	ls_insert_int(s, 3, (int64_t)item->high);
	ls_insert_int(s, 4, t_us);
	return ls_db_run(s);
}

static int
insert_counters(
	sqlite3_stmt *s, const struct ls_store_counters *c, int64_t t_us, int64_t id)
{
	uint8_t data[LS_HOT_MAX * INSERT_VALUE_BYTES];
	size_t i;

	if (c->count > LS_HOT_MAX)
		return -LS_ELIMIT;
	for (i = 0; i < c->count; i++) {
		uint8_t *p = data + i * INSERT_VALUE_BYTES;
		uint16_t metric = htole16(c->metric[i]);
		uint64_t bits;

		memcpy(&bits, &c->value[i], sizeof(bits));
		bits = htole64(bits);
		memcpy(p, &metric, sizeof(metric));
		memcpy(p + sizeof(metric), &bits, sizeof(bits));
	}
	ls_insert_int(s, 1, id);
	ls_insert_text(s, 2, c->host);
	if (c->worker_id != 0)
		ls_insert_int(s, 3, c->worker_id);
	else
		(void)sqlite3_bind_null(s, 3); /* cannot fail on a column that is there */
	ls_insert_int(s, 4, t_us);
	ls_insert_int(s, 5, c->read_us);
	ls_insert_blob(s, 6, data, c->count * INSERT_VALUE_BYTES);
	return ls_db_run(s);
}

static int
insert_close(sqlite3_stmt *s, const struct ls_store_close *c, int64_t t_us, int64_t id)
{
	uint32_t missing[INSERT_MISSING_MAX];
	size_t i, n = c->missing_count;

	if (n > INSERT_MISSING_MAX)
		n = INSERT_MISSING_MAX;
	for (i = 0; i < n; i++)
		missing[i] = htole32((uint32_t)c->missing[i]);
	ls_insert_int(s, 1, id);
	ls_insert_text(s, 2, c->job);
	ls_insert_int(s, 3, c->attempt);
	ls_insert_int(s, 4, (int64_t)c->step);
	ls_insert_int(s, 5, t_us);
	ls_insert_int(s, 6, c->expected);
	ls_insert_int(s, 7, c->used);
	ls_insert_blob(s, 8, missing, n * sizeof(missing[0]));
	return ls_db_run(s);
}

static int
insert_zoom(sqlite3_stmt *s, const struct ls_store_zoom *z, int64_t t_us, int64_t id)
{
	ls_insert_int(s, 1, id);
	ls_insert_int(s, 2, t_us);
	ls_insert_text(s, 3, z->host);
	ls_insert_text(s, 4, z->job);
	ls_insert_int(s, 5, z->event);
	ls_insert_text(s, 6, z->cause);
	ls_insert_int(s, 7, z->until_us);
	return ls_db_run(s);
}

static int
insert_report(sqlite3_stmt *const *stmt, const struct ls_store_report *r, int64_t t_us,
	int64_t *next_id, uint64_t *records)
{
	sqlite3_stmt *s = stmt[LS_STORE_DAY_LEDGER];
	size_t i;
	int rc = 0;

	for (i = 0; i < r->counters_count && rc == 0; i++)
		rc = insert_counters(stmt[LS_STORE_DAY_COUNTERS], &r->counters[i], t_us,
			(*next_id)++);
	for (i = 0; i < r->item_count && rc == 0; i++)
		rc = insert_item(stmt, &r->items[i], t_us, (*next_id)++, records);
	if (rc == 0)
		rc = ls_insert_chunks(stmt, r, t_us);
	if (rc != 0 || (r->last_seq == 0 && r->last_chunk_seq == 0))
		return rc;
	ls_insert_blob(s, 1, r->boot, sizeof(r->boot));
	ls_insert_text(s, 2, r->host);
	ls_insert_int(s, 3, (int64_t)r->last_seq);
	ls_insert_int(s, 4, t_us);
	ls_insert_int(s, 5, (int64_t)r->last_chunk_seq);
	return ls_db_run(s);
}

int
ls_store_put_day(sqlite3_stmt *const *stmt, const struct ls_write *m, int64_t *next_id,
	uint64_t *records)
{
	switch (m->kind) {
	case LS_WRITE_REPORT:
		return insert_report(stmt, &m->u.report, m->t_us, next_id, records);
	case LS_WRITE_CLOSE:
		return insert_close(
			stmt[LS_STORE_DAY_CLOSE], &m->u.close, m->t_us, (*next_id)++);
	case LS_WRITE_ZOOM:
		return insert_zoom(stmt[LS_STORE_DAY_ZOOM], &m->u.zoom, m->t_us, (*next_id)++);
	case LS_WRITE_WORKER:
	case LS_WRITE_FINDING:
	case LS_WRITE_META:
	case LS_WRITE_HOST:
	case LS_WRITE_RETAIN:
	case LS_WRITE_KIND_COUNT:
		break;
	}
	return -EINVAL;
}

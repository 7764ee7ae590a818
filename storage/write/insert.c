/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/write/store_sql.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include "storage/db/sql.h"

/* ranks listed of one closing, or of one standstill */
#define INSERT_RANKS_MAX LS_CLOSE_MISSING_MAX

/* The id of the worker of a ring; 0: it has no row. */
static int
insert_worker_id(sqlite3_stmt *s, struct ls_store_worker *w)
{
	struct ls_sql_rows rows = ls_sql_again(s,
		LS_SQL_VALUES(ls_sql_blob(w->ring_id, sizeof(w->ring_id))));

	w->id = ls_sql_next(&rows) ? sqlite3_column_int64(s, 0) : 0;
	return ls_sql_end(&rows);
}

/* Makes the row; with id 0, under the next free id. No row: the id is taken. */
static int
insert_worker_row(sqlite3_stmt *s, const struct ls_store_worker *w, int64_t id)
{
	const struct ls_worker_info *info = &w->info;

	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int_or_null(id),
			ls_sql_blob(w->ring_id, sizeof(w->ring_id)),
			ls_sql_text(info->job), ls_sql_int(info->attempt),
			ls_sql_int(info->rank), ls_sql_int(info->world),
			ls_sql_int(info->chips), ls_sql_text(info->host),
			ls_sql_text(info->slice), ls_sql_text(info->role),
			ls_sql_int(w->first_us), ls_sql_int(info->step_source),
			ls_sql_double(info->step_confidence), ls_sql_text(info->rack),
			ls_sql_text(info->shard), ls_sql_int(info->simulated),
			ls_sql_int(info->owner)));
}

/* A ring that has a row keeps it, whatever id is proposed now. */
static int
insert_worker(sqlite3_stmt *const *stmt, struct ls_store_worker *w, int64_t proposed_id)
{
	int rc = insert_worker_id(stmt[LS_STORE_STATE_WORKER_ID], w);

	if (rc != 0 || w->id != 0)
		return rc;
	rc = ls_sql_run(stmt[LS_STORE_STATE_JOB],
		LS_SQL_VALUES(ls_sql_text(w->info.job), ls_sql_int(w->first_us)));
	if (rc == 0)
		rc = insert_worker_row(stmt[LS_STORE_STATE_WORKER], w, proposed_id);
	if (rc == 0)
		rc = insert_worker_id(stmt[LS_STORE_STATE_WORKER_ID], w);
	if (rc != 0 || w->id != 0)
		return rc;
	rc = insert_worker_row(stmt[LS_STORE_STATE_WORKER], w, 0);
	return rc != 0 ? rc : insert_worker_id(stmt[LS_STORE_STATE_WORKER_ID], w);
}

/* The id that a worker has, of one that was proposed in this report. */
static int64_t
insert_final_id(const struct ls_store_report *r, int64_t proposed_id)
{
	const struct ls_write *w;

	for (w = r->workers; w != NULL; w = w->next) {
		if (w->u.worker.proposed_id == proposed_id)
			return w->u.worker.id;
	}
	return proposed_id;
}

static int
insert_workers(sqlite3_stmt *const *stmt, struct ls_store_report *r)
{
	struct ls_write *w;
	int rc = 0;

	for (w = r->workers; w != NULL && rc == 0; w = w->next)
		rc = insert_worker(stmt, &w->u.worker, w->u.worker.proposed_id);
	if (rc != 0 || r->workers == NULL)
		return rc;
	for (size_t i = 0; i < r->item_count; i++)
		r->items[i].worker_id = insert_final_id(r, r->items[i].worker_id);
	for (size_t i = 0; i < r->counters_count; i++)
		r->counters[i].worker_id = insert_final_id(r, r->counters[i].worker_id);
	return 0;
}

static int
insert_finding(sqlite3_stmt *const *stmt, const struct ls_store_finding *f,
	int64_t t_us)
{
	int rc = ls_sql_run(stmt[LS_STORE_STATE_FINDING],
		LS_SQL_VALUES(ls_sql_text(f->id), ls_sql_text(f->job),
			ls_sql_text(f->kind), ls_sql_text(f->severity),
			ls_sql_text(f->status), ls_sql_int(t_us),
			ls_sql_text(f->json)));

	return rc != 0 || !f->history
		? rc
		: ls_sql_run(stmt[LS_STORE_STATE_EVENT],
			  LS_SQL_VALUES(ls_sql_text(f->id), ls_sql_int(t_us),
				  ls_sql_text(f->event), ls_sql_text(f->severity),
				  ls_sql_text(f->status)));
}

int
ls_store_put_state(sqlite3_stmt *const *stmt, struct ls_write *m)
{
	switch (m->kind) {
	case LS_WRITE_WORKER:
		return insert_worker(stmt, &m->u.worker, m->u.worker.id);
	case LS_WRITE_FINDING:
		return insert_finding(stmt, &m->u.finding, m->t_us);
	case LS_WRITE_META:
		return ls_sql_run(stmt[LS_STORE_STATE_META],
			LS_SQL_VALUES(ls_sql_text(m->u.meta.key),
				ls_sql_blob(m->u.meta.bytes != NULL ? m->u.meta.bytes
								    : m->u.meta.value,
					m->u.meta.len)));
	case LS_WRITE_HOST:
		return ls_sql_run(stmt[LS_STORE_STATE_HOST],
			LS_SQL_VALUES(ls_sql_text(m->u.host.host), ls_sql_int(m->t_us),
				ls_sql_text(m->u.host.json)));
	case LS_WRITE_RETAIN:
		return ls_sql_run(stmt[LS_STORE_STATE_FORGET],
			LS_SQL_VALUES(ls_sql_int(m->u.retain.history_us)));
	case LS_WRITE_REPORT:
		return insert_workers(stmt, &m->u.report);
	case LS_WRITE_CLOSE:
	case LS_WRITE_ZOOM:
	case LS_WRITE_HANG:
	case LS_WRITE_PACK:
	case LS_WRITE_ROLLUP:
	case LS_WRITE_REPLACE:
	case LS_WRITE_ASIDE:
	case LS_WRITE_KIND_COUNT:
		break;
	}
	return -EINVAL;
}

static int
insert_gap(sqlite3_stmt *s, const struct ls_store_item *item, int64_t t_us, int64_t id)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(id), ls_sql_int(item->worker_id),
			ls_sql_int(t_us), ls_sql_u64(item->first_index),
			ls_sql_u64(item->count), ls_sql_int(item->reason)));
}

static int
insert_end(sqlite3_stmt *s, const struct ls_store_item *item, int64_t t_us, int64_t id)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(id), ls_sql_int(item->worker_id),
			ls_sql_int(t_us), ls_sql_int(item->reason),
			ls_sql_u64(item->count)));
}

/* A list of ranks, which `bytes` holds until the statement has run. */
static struct ls_sql_value
insert_ranks(const int32_t *ranks, size_t count, uint32_t bytes[INSERT_RANKS_MAX])
{
	size_t i, n = count < INSERT_RANKS_MAX ? count : INSERT_RANKS_MAX;

	for (i = 0; i < n; i++)
		bytes[i] = htole32((uint32_t)ranks[i]);
	return ls_sql_blob(bytes, n * sizeof(bytes[0]));
}

static int
insert_close(sqlite3_stmt *s, const struct ls_store_close *c, int64_t t_us, int64_t id)
{
	uint32_t missing[INSERT_RANKS_MAX];

	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(id), ls_sql_text(c->job),
			ls_sql_int(c->attempt), ls_sql_u64(c->step), ls_sql_int(t_us),
			ls_sql_int(c->expected), ls_sql_int(c->used),
			insert_ranks(c->missing, c->missing_count, missing)));
}

static int
insert_zoom(sqlite3_stmt *s, const struct ls_store_zoom *z, int64_t t_us, int64_t id)
{
	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(id), ls_sql_int(t_us), ls_sql_text(z->host),
			ls_sql_text(z->job), ls_sql_int(z->event),
			ls_sql_text(z->cause), ls_sql_int(z->until_us)));
}

static int
insert_hang(sqlite3_stmt *s, const struct ls_store_hang *h, int64_t t_us, int64_t id)
{
	uint32_t ranks[INSERT_RANKS_MAX];

	return ls_sql_run(s,
		LS_SQL_VALUES(ls_sql_int(id), ls_sql_text(h->job),
			ls_sql_int(h->attempt), ls_sql_u64(h->step),
			ls_sql_int(h->since_us), ls_sql_int(t_us),
			ls_sql_int(h->waiting), ls_sql_int(h->why),
			insert_ranks(h->ranks, h->rank_count, ranks)));
}

/* --- the journal ---------------------------------------------------------- */

int
ls_store_put_journal(struct ls_store_batch *b)
{
	bool steps = b->row_records > 0;
	int rc;

	if (b->journal->count == 0)
		return 0;
	if (b->first_id == 0) /* only positions: the id is of no event */
		b->first_id = b->last_id = b->next_id++;
	rc = ls_journal_seal(b->journal);
	if (rc != 0)
		return rc;
	rc = ls_sql_run(b->stmt[LS_STORE_DAY_JOURNAL],
		LS_SQL_VALUES(ls_sql_int(b->first_id), ls_sql_int(b->last_id),
			ls_sql_int(b->t_us), ls_sql_u64(b->row_records),
			ls_sql_int(steps ? (int64_t)b->step_lo : 0),
			ls_sql_int(steps ? (int64_t)b->step_hi : -1),
			ls_sql_blob(b->journal->data, b->journal->len)));
	ls_journal_reset(b->journal);
	b->first_id = 0;
	b->row_records = 0;
	return rc;
}

/* An event of the row is stored under the id. */
static void
insert_count(struct ls_store_batch *b, int64_t id, int64_t t_us)
{
	if (b->first_id == 0) {
		b->first_id = id;
		b->t_us = t_us;
	}
	b->last_id = id;
}

static int
insert_steps(struct ls_store_batch *b, const struct ls_store_item *item, int64_t t_us)
{
	int64_t id = b->next_id++;
	int rc = -LS_ELIMIT;

	if (b->row_records + item->count <= LS_UNIT_EVENTS_MAX)
		rc = ls_journal_put_steps(b->journal, id, t_us, item);
	if (rc == -LS_ELIMIT) {
		rc = ls_store_put_journal(b);
		if (rc == 0)
			rc = ls_journal_put_steps(b->journal, id, t_us, item);
	}
	if (rc != 0)
		return rc;
	insert_count(b, id, t_us);
	if (b->row_records == 0 || item->step_lo < b->step_lo)
		b->step_lo = item->step_lo;
	if (b->row_records == 0 || item->step_hi > b->step_hi)
		b->step_hi = item->step_hi;
	b->row_records += item->count;
	b->records += item->count;
	return 0;
}

static int
insert_counters(struct ls_store_batch *b, const struct ls_store_counters *c,
	int64_t t_us)
{
	int64_t id = b->next_id++;
	int rc = ls_journal_put_hot(b->journal, id, t_us, c);

	if (rc == -LS_ELIMIT) {
		rc = ls_store_put_journal(b);
		if (rc == 0)
			rc = ls_journal_put_hot(b->journal, id, t_us, c);
	}
	if (rc == 0)
		insert_count(b, id, t_us);
	return rc;
}

static int
insert_position(struct ls_store_batch *b, const struct ls_store_ledger *agent,
	const struct ls_store_ring *ring, int64_t t_us)
{
	int tries, rc = -LS_ELIMIT;

	for (tries = 0; tries < 2 && rc == -LS_ELIMIT; tries++) {
		if (tries > 0 && (rc = ls_store_put_journal(b)) != 0)
			break;
		rc = agent != NULL ? ls_journal_put_agent(b->journal, agent)
				   : ls_journal_put_ring(b->journal, ring);
	}
	if (rc == 0 && b->first_id == 0)
		b->t_us = t_us;
	return rc;
}

static int
insert_item(struct ls_store_batch *b, const struct ls_store_item *item, int64_t t_us)
{
	switch (item->kind) {
	case LS_WIRE_STEPS:
		return insert_steps(b, item, t_us);
	case LS_WIRE_GAP:
		return insert_gap(b->stmt[LS_STORE_DAY_GAP], item, t_us, b->next_id++);
	case LS_WIRE_END:
		return insert_end(b->stmt[LS_STORE_DAY_END], item, t_us, b->next_id++);
	}
	return -EINVAL;
}

/* Where a ring stands after items that follow each other: told by the last of them. */
static int
insert_high(struct ls_store_batch *b, const struct ls_store_item *items, size_t count,
	int64_t t_us, struct ls_store_ring *ring)
{
	const struct ls_store_item *next = count > 1 ? &items[1] : NULL;
	int rc;

	ring->worker_id = items->worker_id;
	ring->t_us = t_us;
	memcpy(ring->ring_id, items->ring_id, sizeof(ring->ring_id));
	if (items->high > ring->high)
		ring->high = items->high;
	if (next != NULL &&
		memcmp(next->ring_id, ring->ring_id, sizeof(ring->ring_id)) == 0)
		return 0;
	rc = insert_position(b, NULL, ring, t_us);
	ring->high = 0;
	return rc;
}

static int
insert_report(struct ls_store_batch *b, const struct ls_store_report *r, int64_t t_us)
{
	struct ls_store_ledger agent = {
		.seq = r->last_seq, .chunk_seq = r->last_chunk_seq, .t_us = t_us
	};
	struct ls_store_ring ring = { .high = 0 };
	int rc = 0;

	for (size_t i = 0; i < r->counters_count && rc == 0; i++)
		rc = insert_counters(b, &r->counters[i], t_us);
	for (size_t i = 0; i < r->item_count && rc == 0; i++) {
		rc = insert_item(b, &r->items[i], t_us);
		if (rc == 0)
			rc = insert_high(b, &r->items[i], r->item_count - i, t_us,
				&ring);
	}
	if (rc == 0)
		rc = ls_insert_chunks(b, r, t_us);
	if (rc != 0 || (r->last_seq == 0 && r->last_chunk_seq == 0))
		return rc;
	memcpy(agent.boot, r->boot, sizeof(agent.boot));
	memcpy(agent.host, r->host, sizeof(agent.host));
	return insert_position(b, &agent, NULL, t_us);
}

int
ls_store_put_day(struct ls_store_batch *b, const struct ls_write *m)
{
	switch (m->kind) {
	case LS_WRITE_REPORT:
		return insert_report(b, &m->u.report, m->t_us);
	case LS_WRITE_CLOSE:
		return insert_close(b->stmt[LS_STORE_DAY_CLOSE], &m->u.close, m->t_us,
			b->next_id++);
	case LS_WRITE_ZOOM:
		return insert_zoom(b->stmt[LS_STORE_DAY_ZOOM], &m->u.zoom, m->t_us,
			b->next_id++);
	case LS_WRITE_HANG:
		return insert_hang(b->stmt[LS_STORE_DAY_HANG], &m->u.hang, m->t_us,
			b->next_id++);
	case LS_WRITE_WORKER:
	case LS_WRITE_FINDING:
	case LS_WRITE_META:
	case LS_WRITE_HOST:
	case LS_WRITE_RETAIN:
	case LS_WRITE_PACK:
	case LS_WRITE_ROLLUP:
	case LS_WRITE_REPLACE:
	case LS_WRITE_ASIDE:
	case LS_WRITE_KIND_COUNT:
		break;
	}
	return -EINVAL;
}

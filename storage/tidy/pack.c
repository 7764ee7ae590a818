/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"
#include "proto/base/table.h"
#include "storage/columns/hot_rows.h"
#include "storage/columns/positions.h"
#include "storage/columns/step_rows.h"

#define PACK_SPLIT_RECORDS (LS_STEP_ROWS_RECORDS_MAX / 4)
/* records of all jobs that wait to become rows, 352 B each: beyond it all become some */
#define PACK_HELD_RECORDS (8 * LS_STEP_ROWS_RECORDS_MAX)

/* Runs of one job that become one row. */
struct pack_table {
	struct ls_step_table table;
	size_t runs_max, records_bytes;
	uint64_t step_lo, step_hi;
	int64_t t_lo_us, t_hi_us;
};

/* The key comes first (proto/base/table.h). */
struct pack_job {
	int64_t id;
	struct pack_job *next;
	struct pack_table old, young; /* young has the later steps */
};

struct ls_pack {
	ls_pack_job_fn *job_of;
	void *arg;
	struct ls_step_codec *steps;
	struct ls_hot_codec *hot;
	struct ls_arena *scratch; /* for decoding items */
	struct ls_table jobs;
	struct pack_job *job; /* all of them */
	struct ls_positions positions;
	struct ls_store_step_rows *rows; /* made so far; they own their bodies */
	size_t row_count, rows_max;
	size_t events, held; /* held: records in the tables of jobs */
	int64_t t_us; /* of the first */
	uint64_t records, bad;
};

struct ls_pack *
ls_pack_new(ls_pack_job_fn *job_of, void *arg)
{
	struct ls_pack *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->job_of = job_of;
	p->arg = arg;
	ls_table_init(&p->jobs, sizeof(((struct pack_job *)NULL)->id));
	ls_positions_init(&p->positions);
	p->steps = ls_step_codec_new();
	p->hot = ls_hot_codec_new();
	if (p->steps == NULL || p->hot == NULL) {
		ls_pack_free(p);
		return NULL;
	}
	return p;
}

static void
pack_free_table(struct pack_table *t)
{
	free(t->table.runs);
	free(t->table.records);
	*t = (struct pack_table){ 0 };
}

void
ls_pack_free(struct ls_pack *p)
{
	if (p == NULL)
		return;
	ls_pack_reset(p);
	ls_table_fini(&p->jobs);
	ls_positions_fini(&p->positions);
	ls_step_codec_free(p->steps);
	ls_hot_codec_free(p->hot);
	ls_arena_free(p->scratch);
	free(p->rows);
	free(p);
}

/* Jobs go, too: their tables are the memory of the largest one. */
void
ls_pack_reset(struct ls_pack *p)
{
	struct pack_job *job;

	while ((job = p->job) != NULL) {
		p->job = job->next;
		ls_table_remove(&p->jobs, job);
		pack_free_table(&job->old);
		pack_free_table(&job->young);
		free(job);
	}
	for (size_t i = 0; i < p->row_count; i++)
		free(p->rows[i].body);
	ls_hot_rows_reset(p->hot);
	ls_positions_fini(&p->positions);
	ls_positions_init(&p->positions);
	p->row_count = p->events = p->held = 0;
	p->records = 0;
}

uint64_t
ls_pack_bad(const struct ls_pack *p)
{
	return p->bad;
}

/* --- rows ----------------------------------------------------------------- */

/* A table becomes a row and is empty, without memory. */
static int
pack_flush(struct ls_pack *p, int64_t job_id, struct pack_table *t)
{
	const struct ls_step_table *table = &t->table;
	struct ls_store_step_rows row = { .job_id = job_id,
		.records = table->record_count,
		.step_lo = t->step_lo,
		.step_hi = t->step_hi,
		.t_lo_us = t->t_lo_us,
		.t_hi_us = t->t_hi_us };
	const uint8_t *body;
	int rc;

	if (table->run_count == 0)
		return 0;
	row.id = table->runs[0].id;
	row.last_id = table->runs[table->run_count - 1].id;
	rc = ls_step_rows_encode(p->steps, table, &body, &row.len);
	if (rc == 0)
		rc = ls_mem_grow((void **)&p->rows, p->row_count, &p->rows_max,
			sizeof(*p->rows));
	if (rc != 0)
		return rc;
	row.body = ls_mem_copy(body, row.len);
	if (row.body == NULL)
		return -ENOMEM;
	p->rows[p->row_count++] = row;
	p->held -= table->record_count;
	pack_free_table(t);
	return 0;
}

/* --- step records --------------------------------------------------------- */

static int
pack_job_of(struct ls_pack *p, int64_t worker_id, struct pack_job **ret_job)
{
	int64_t id = p->job_of(p->arg, worker_id);
	struct pack_job *job = ls_table_find(&p->jobs, &id);
	int rc;

	if (job == NULL) {
		job = calloc(1, sizeof(*job));
		if (job == NULL)
			return -ENOMEM;
		job->id = id;
		rc = ls_table_put(&p->jobs, job);
		if (rc != 0) {
			free(job);
			return rc;
		}
		job->next = p->job;
		p->job = job;
	}
	*ret_job = job;
	return 0;
}

static int
pack_reserve(struct pack_table *t, size_t records)
{
	int rc = ls_mem_grow((void **)&t->table.runs, t->table.run_count, &t->runs_max,
		sizeof(*t->table.runs));

	return rc == 0
		? ls_mem_reserve((void **)&t->table.records, &t->records_bytes,
			  (t->table.record_count + records) * sizeof(struct ls_record))
		: rc;
}

/* The table of the job for a run of so many records from this step on. */
static int
pack_choose(struct ls_pack *p, struct pack_job *job, uint64_t step, size_t records,
	struct pack_table **ret_table)
{
	struct pack_table *old = &job->old, *young = &job->young, t;
	int rc = 0;

	if (old->table.run_count > 0 && step <= old->step_hi &&
		old->table.record_count + records <= LS_STEP_ROWS_RECORDS_MAX) {
		*ret_table = old;
		return 0;
	}
	if (young->table.run_count > 0 &&
		((step > young->step_hi &&
			 young->table.record_count >= PACK_SPLIT_RECORDS) ||
			young->table.record_count + records >
				LS_STEP_ROWS_RECORDS_MAX)) {
		rc = pack_flush(p, job->id, old);
		t = *old;
		*old = *young;
		*young = t;
	}
	*ret_table = young;
	return rc;
}

static void
pack_note_span(struct pack_table *t, const struct ls_record *r)
{
	int64_t lo = r->t_begin_ns / 1000, hi = lo + (int64_t)(r->duration_ns / 1000);
	bool first = t->table.record_count == 0;

	if (first || r->step < t->step_lo)
		t->step_lo = r->step;
	if (first || r->step > t->step_hi)
		t->step_hi = r->step;
	if (first || lo < t->t_lo_us)
		t->t_lo_us = lo;
	if (first || hi > t->t_hi_us)
		t->t_hi_us = hi;
}

static int
pack_flush_all(struct ls_pack *p)
{
	struct pack_job *job;
	int rc = 0;

	for (job = p->job; job != NULL && rc == 0; job = job->next) {
		rc = pack_flush(p, job->id, &job->old);
		if (rc == 0)
			rc = pack_flush(p, job->id, &job->young);
	}
	return rc;
}

/* The records of an item that count, as a run of the table. */
static int
pack_run(struct ls_pack *p, const struct ls_journal_entry *e,
	const struct ls_wire_item *item)
{
	const struct ls_store_item *row = &e->u.item;
	uint64_t skip = row->first_index - item->first_index, i;
	struct ls_step_table *table;
	struct pack_table *t;
	struct pack_job *job;
	int rc = pack_job_of(p, row->worker_id, &job);

	if (rc == 0)
		rc = pack_choose(p, job, item->records[skip].step, row->count, &t);
	if (rc == 0)
		rc = pack_reserve(t, row->count);
	if (rc != 0)
		return rc;
	table = &t->table;
	for (i = 0; i < row->count; i++) {
		struct ls_record *r = &table->records[table->record_count];

		ls_store_record(&row->map, &item->records[skip + i], r);
		pack_note_span(t, r);
		table->record_count++;
	}
	table->runs[table->run_count++] = (struct ls_step_run){ .id = e->id,
		.t_us = e->t_us,
		.worker_id = row->worker_id,
		.first_index = row->first_index,
		.count = (uint32_t)row->count,
		.uncertainty_ns = row->map.uncertainty_ns };
	p->records += row->count;
	p->held += row->count;
	return p->held > PACK_HELD_RECORDS ? pack_flush_all(p) : 0;
}

static int
pack_steps(struct ls_pack *p, const struct ls_journal_entry *e)
{
	const struct ls_store_item *row = &e->u.item;
	struct ls_wire_item item = { 0 };
	int rc = ls_wire_item_unpack_in(row->data, row->len, &p->scratch, &item, NULL);

	if (rc == -ENOMEM)
		return rc;
	if (rc != 0 || item.kind != LS_WIRE_STEPS || row->count == 0 ||
		row->first_index < item.first_index ||
		row->first_index - item.first_index > item.count ||
		row->count > item.count - (row->first_index - item.first_index)) {
		p->bad++;
		rc = 0;
	} else {
		rc = pack_run(p, e, &item);
	}
	ls_wire_item_clear(&item);
	return rc;
}

/* --- all together --------------------------------------------------------- */

int
ls_pack_entry(void *pack, const struct ls_journal_entry *e)
{
	struct ls_pack *p = pack;

	switch (e->kind) {
	case LS_JOURNAL_AGENT:
		return ls_positions_put_ledger(&p->positions, &e->u.agent);
	case LS_JOURNAL_RING:
		return ls_positions_put_ring(&p->positions, &e->u.ring);
	case LS_JOURNAL_STEPS:
	case LS_JOURNAL_HOT:
		if (p->events >= LS_UNIT_EVENTS_MAX)
			return -LS_ELIMIT;
		if (p->events++ == 0)
			p->t_us = e->t_us;
		return e->kind == LS_JOURNAL_STEPS
			? pack_steps(p, e)
			: ls_hot_rows_add(p->hot, e->id, e->t_us, &e->u.counters);
	case LS_JOURNAL_KIND_COUNT:
		break;
	}
	return -LS_EUNKNOWN;
}

static int
pack_fill_hot(struct ls_pack *p, struct ls_store_hot_rows *row)
{
	size_t count;
	const struct ls_hot_event *events = ls_hot_rows_events(p->hot, &count);
	const uint8_t *body;
	int rc;

	if (count == 0)
		return 0;
	rc = ls_hot_rows_encode(p->hot, &body, &row->len);
	if (rc != 0)
		return rc;
	row->id = events[0].id;
	row->last_id = events[count - 1].id;
	row->n = count;
	row->body = ls_mem_copy(body, row->len);
	return row->body != NULL ? 0 : -ENOMEM;
}

/* The message takes the arrays over. */
static int
pack_fill(struct ls_pack *p, struct ls_store_pack *m)
{
	struct ls_positions *at = &p->positions;

	m->step_rows = p->rows;
	m->step_rows_count = p->row_count;
	p->rows = NULL;
	p->row_count = p->rows_max = 0;
	m->ledgers = at->ledgers;
	m->ledger_count = at->ledger_count;
	at->ledgers = NULL;
	m->rings = at->rings;
	m->ring_count = at->ring_count;
	at->rings = NULL;
	m->records = p->records;
	m->t_us = p->t_us;
	return pack_fill_hot(p, &m->hot_rows);
}

int
ls_pack_finish(struct ls_pack *p, struct ls_write **ret_message)
{
	struct ls_write *m = ls_write_new(LS_WRITE_PACK, 0);
	int rc = m != NULL ? pack_flush_all(p) : -ENOMEM;

	if (rc == 0)
		rc = pack_fill(p, &m->u.pack);
	ls_pack_reset(p);
	if (rc == 0)
		*ret_message = m;
	else
		ls_write_free(m);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/rowmake.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/db/sql.h"
#include "storage/columns/positions.h"
#include "tests/support/harness.h"
#include "tests/support/reports.h"

struct ls_write *
ls_test_worker(int32_t rank, int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_WORKER, t_us);
	struct ls_test_agent a;

	ck_assert_ptr_nonnull(m);
	ls_test_agent_init(&a, rank, true);
	m->u.worker.id = rank + 1;
	m->u.worker.first_us = t_us;
	memcpy(m->u.worker.ring_id, a.ring_id, sizeof(a.ring_id));
	m->u.worker.info = a.worker.info;
	m->u.worker.info.step_source = rank % 2 == 1 ? LS_STEP_LOG : LS_STEP_MARKER;
	m->u.worker.info.step_confidence = rank % 2 == 1 ? 0.5 : 0;
	if (rank % 2 == 1)
		memcpy(m->u.worker.info.rack, "r1", 3);
	else
		memcpy(m->u.worker.info.shard, "i0", 3);
	return m;
}

static struct ls_write *
rowmake_report(int32_t rank, uint64_t seq, size_t items, int64_t t_us,
	struct ls_test_agent *a)
{
	struct ls_write *m = ls_write_new_report(items, 1, 4, t_us);

	ck_assert_ptr_nonnull(m);
	ls_test_agent_init(a, rank, true);
	memcpy(m->u.report.boot, a->report.boot, sizeof(a->report.boot));
	memcpy(m->u.report.host, a->report.host, sizeof(a->report.host));
	m->u.report.last_seq = seq;
	return m;
}

static struct ls_store_item *
rowmake_item(struct ls_write *m, const struct ls_test_agent *a,
	enum ls_wire_item_kind kind)
{
	struct ls_store_item *item = &m->u.report.items[m->u.report.item_count++];

	item->kind = kind;
	item->worker_id = a->worker.info.rank + 1;
	memcpy(item->ring_id, a->ring_id, sizeof(item->ring_id));
	return item;
}

struct ls_write *
ls_test_report(int32_t rank, uint64_t seq, uint64_t first, uint64_t count, int64_t t_us)
{
	struct ls_test_agent a;
	struct ls_write *m = rowmake_report(rank, seq, 1, t_us, &a);
	struct ls_store_item *item = rowmake_item(m, &a, LS_WIRE_STEPS);
	struct ls_record r;

	ls_test_agent_steps(&a, seq, first, count);
	item->first_index = first;
	item->count = count;
	item->high = first + count;
	item->map.offset_ns = 1795219200ll * 1000000000; /* 2026-11-21 */
	r = ls_test_record(first);
	item->step_lo = first;
	item->step_hi = first + count - 1;
	item->t_lo_us = (r.t_begin_ns + item->map.offset_ns) / 1000;
	item->t_hi_us = item->t_lo_us + (int64_t)(count * LS_TEST_STEP_NS / 1000);
	item->data = a.items[0].data;
	item->len = a.items[0].len;
	memcpy(&m->u.report.owner, &a.items[0].data, sizeof(void *));
	return m;
}

struct ls_write *
ls_test_report_rest(int32_t rank, uint64_t seq, int64_t t_us)
{
	struct ls_test_agent a;
	struct ls_write *m = rowmake_report(rank, seq, 2, t_us, &a);
	struct ls_store_counters *c =
		&m->u.report.counters[m->u.report.counters_count++];
	struct ls_store_item *item = rowmake_item(m, &a, LS_WIRE_GAP);

	item->first_index = 100;
	item->count = 7;
	item->high = 107;
	item->reason = LS_GAP_OVERRUN;
	item = rowmake_item(m, &a, LS_WIRE_END);
	item->count = 107;
	item->reason = LS_END_CRASHED;
	memcpy(c->host, a.report.host, sizeof(c->host));
	c->read_us = t_us - 1000;
	c->count = 2;
	c->metric[0] = LS_METRIC_HOST_CPU_BUSY;
	c->value[0] = 12.5;
	c->metric[1] = LS_METRIC_HOST_CPU_THROTTLED;
	c->value[1] = 1e-9;
	return m;
}

struct ls_write *
ls_test_close(uint64_t step, int64_t t_us)
{
	static const int32_t missing[] = { 1, 70000 };
	struct ls_write *m = ls_write_new_ranks(LS_WRITE_CLOSE, missing, 2, t_us);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.close.job, sizeof(m->u.close.job), "train");
	m->u.close.step = step;
	m->u.close.expected = 3;
	m->u.close.used = 1;
	return m;
}

struct ls_write *
ls_test_hang(uint64_t step, int64_t t_us)
{
	static const int32_t ranks[] = { 1, 70000 };
	struct ls_write *m = ls_write_new_ranks(LS_WRITE_HANG, ranks, 2, t_us);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.hang.job, sizeof(m->u.hang.job), "train");
	m->u.hang.attempt = 2;
	m->u.hang.step = step;
	m->u.hang.since_us = t_us - 11000000;
	m->u.hang.waiting = 3;
	m->u.hang.why = LS_HANG_SILENT;
	return m;
}

struct ls_write *
ls_test_finding(const char *id, const char *status, int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_FINDING, t_us);
	char json[128];

	ck_assert_ptr_nonnull(m);
	(void)snprintf(json, sizeof(json), "{\"id\":\"%s\",\"status\":\"%s\"}", id,
		status);
	(void)snprintf(m->u.finding.id, sizeof(m->u.finding.id), "%s", id);
	(void)snprintf(m->u.finding.event, sizeof(m->u.finding.event), "opened");
	(void)snprintf(m->u.finding.status, sizeof(m->u.finding.status), "%s", status);
	m->u.finding.json = strdup(json);
	m->u.finding.history = true;
	return m;
}

void
ls_test_write_free(struct ls_write *m)
{
	if (m != NULL && m->kind == LS_WRITE_REPORT)
		free(m->u.report.owner);
	ls_write_free(m);
}

/* --- the journal as tables ------------------------------------------------ */

static void
rowmake_exec(sqlite3 *db, const char *format, ...)
{
	va_list ap;
	char *sql;

	va_start(ap, format);
	sql = sqlite3_vmprintf(format, ap);
	va_end(ap);
	ck_assert_ptr_nonnull(sql);
	ck_assert_msg(ls_db_exec(db, sql) == 0, "%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_free(sql);
}

static int
rowmake_entry(void *arg, const struct ls_journal_entry *e)
{
	const struct ls_store_item *i = &e->u.item;
	const struct ls_store_counters *c = &e->u.counters;

	if (e->kind == LS_JOURNAL_STEPS)
		rowmake_exec(arg,
			"INSERT INTO temp.step_block VALUES (%lld, %lld, %lld, %lld, %lld, %lld, %lld, "
			"%lld, %lld)",
			e->id, i->worker_id, i->first_index, i->count, i->step_lo,
			i->step_hi, i->t_lo_us, i->t_hi_us, i->map.uncertainty_ns);
	else if (e->kind == LS_JOURNAL_HOT)
		rowmake_exec(arg,
			"INSERT INTO temp.counters VALUES (%lld, %Q, %lld, %lld, %d)",
			e->id, c->host, c->worker_id, c->read_us, (int)c->count);
	return 0;
}

static void
rowmake_positions(sqlite3 *db)
{
	struct ls_positions p;
	size_t i;

	ls_positions_init(&p);
	ck_assert_int_eq(ls_positions_load(&p, db, "main"), 0);
	ck_assert_uint_eq(p.bad, 0);
	for (i = 0; i < p.ledger_count; i++)
		rowmake_exec(db, "INSERT INTO temp.ledger VALUES (%Q, %lld, %lld)",
			p.ledgers[i].host, p.ledgers[i].seq, p.ledgers[i].chunk_seq);
	for (i = 0; i < p.ring_count; i++)
		rowmake_exec(db, "INSERT INTO temp.ring_high VALUES (%lld, %lld)",
			p.rings[i].worker_id, p.rings[i].high);
	ls_positions_fini(&p);
}

static void
rowmake_journal(sqlite3 *db)
{
	sqlite3_stmt *stmt = NULL;

	rowmake_exec(db,
		"CREATE TEMP TABLE step_block (id, worker_id, first_index, n, step_lo, "
		"step_hi, t_lo_us, t_hi_us, uncertainty_ns);"
		"CREATE TEMP TABLE counters (id, host, worker_id, read_us, n);"
		"CREATE TEMP TABLE ledger (host, seq, chunk_seq);"
		"CREATE TEMP TABLE ring_high (worker_id, high)");
	ck_assert_int_eq(
		ls_db_prepare(db, "SELECT body FROM main.journal ORDER BY id", &stmt),
		0);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		ck_assert_int_eq(ls_journal_read(sqlite3_column_blob(stmt, 0),
					 (size_t)sqlite3_column_bytes(stmt, 0),
					 rowmake_entry, db),
			0);
	ck_assert_int_eq(sqlite3_finalize(stmt), SQLITE_OK);
	rowmake_positions(db);
}

int64_t
ls_test_sql(const char *dir, int32_t day, const char *sql)
{
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	int64_t v = -1;

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_READ, &db), 0);
	if (day > 0)
		rowmake_journal(db);
	ck_assert_msg(ls_sql_int_of(db, sql, NULL, &v) == 0, "%s: %s", sql,
		sqlite3_errmsg(db));
	ls_db_close(db);
	return v;
}

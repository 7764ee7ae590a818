/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/err_sqlite.h"
#include "storage/read/query.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "storage/db/db.h"
#include "storage/read/query_day.h"
#include "storage/read/query_step.h"
#include "storage/tidy/packer.h"
#include "storage/write/store.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define NOON (ls_days_begin_us(20261121) + 12ll * 3600 * 1000000)
#define TODAY 20261121

static char dir[PATH_MAX];
static struct ls_store *store;
static struct ls_query *query;

static void
put(struct ls_write *m)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, NOON), 0);
	ls_test_write_free(m);
}

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	put(ls_test_worker(0, NOON));
	put(ls_test_worker(1, NOON + 1));
	put(ls_test_report(0, 1, 0, 10, NOON + 2));
	put(ls_test_close(4, NOON + 3));
	put(ls_test_report_rest(1, 1, NOON + 4));
	put(ls_test_finding("F-B", "open", NOON + 5));
	put(ls_test_finding("F-A", "open", NOON + 6));
	put(ls_test_finding("F-B", "cleared", NOON + 7));
	ck_assert_int_eq(ls_query_open(dir, &query), 0);
}

static void
teardown(void)
{
	ls_query_close(query);
	ls_store_close(store);
}

static int
see_worker(void *arg, const struct ls_store_worker *w)
{
	int64_t *sum = arg;

	ck_assert_str_eq(w->info.job, "train");
	ck_assert_int_eq(w->info.chips, 4);
	ck_assert_int_eq(w->info.rank, w->id - 1);
	ck_assert_int_eq(w->info.step_source,
		w->info.rank % 2 == 1 ? LS_STEP_LOG : LS_STEP_MARKER);
	ck_assert_double_eq(w->info.step_confidence, w->info.rank % 2 == 1 ? 0.5 : 0);
	ck_assert_str_eq(w->info.rack, w->info.rank % 2 == 1 ? "r1" : "");
	ck_assert_str_eq(w->info.shard, w->info.rank % 2 == 1 ? "" : "i0");
	ck_assert_uint_eq(w->ring_id[0], (unsigned)(0x80 + w->info.rank));
	*sum += w->id;
	return 0;
}

LS_CASE(query, setup, teardown);

LS_TEST(query, workers_are_found_by_job)
{
	int64_t sum = 0, max = 0;

	ck_assert_int_eq(ls_query_workers(query, NULL, see_worker, &sum), 0);
	ck_assert_int_eq(ls_query_workers(query, "train", see_worker, &sum), 0);
	ck_assert_int_eq(ls_query_workers(query, "other", see_worker, &sum), 0);
	ck_assert_int_eq(sum, 6);
	ck_assert_int_eq(ls_query_max_worker(query, &max), 0);
	ck_assert_int_eq(max, 2);
}

static int
see_finding(void *arg, const char *id, const char *json, size_t len)
{
	char *text = arg;

	ck_assert_uint_eq(strlen(json), len);
	(void)snprintf(text + strlen(text), 200 - strlen(text), "%s %s\n", id, json);
	return 0;
}

LS_TEST(query, findings_come_in_order_of_opening)
{
	char text[200] = "";

	ck_assert_int_eq(ls_query_findings(query, see_finding, text), 0);
	ck_assert_str_eq(text,
		"F-B {\"id\":\"F-B\",\"status\":\"cleared\"}\n"
		"F-A {\"id\":\"F-A\",\"status\":\"open\"}\n");
}

static int
see_ledger(void *arg, const struct ls_store_ledger *e)
{
	uint64_t *sum = arg;

	*sum += e->seq;
	return 0;
}

static int
see_ring(void *arg, const struct ls_store_ring *r)
{
	uint64_t *sum = arg;

	ck_assert_int_ge(r->worker_id, 1);
	*sum += r->high;
	return 0;
}

LS_TEST(query, the_ledger_is_read)
{
	uint64_t sum = 0;

	ck_assert_int_eq(ls_query_ledgers(query, see_ledger, &sum), 0);
	ck_assert_uint_eq(sum, 2);
	sum = 0;
	ck_assert_int_eq(ls_query_rings(query, see_ring, &sum), 0);
	ck_assert_uint_eq(sum, 10 + 107);
}

LS_TEST(query, meta_is_read)
{
	struct ls_write *m = ls_write_new(LS_WRITE_META, 0);
	uint32_t value = 0;

	ck_assert_int_eq(ls_query_meta(query, "answer", &value, sizeof(value)),
		-LS_EABSENT);
	(void)snprintf(m->u.meta.key, sizeof(m->u.meta.key), "answer");
	m->u.meta.value[0] = 42;
	m->u.meta.len = sizeof(value);
	put(m);
	ck_assert_int_eq(ls_query_meta(query, "answer", &value, sizeof(value)), 0);
	ck_assert_uint_eq(value, 42);
	ck_assert_int_eq(ls_query_meta(query, "answer", &value, 2), -LS_ECORRUPT);
}

struct seen {
	char order[64];
	int64_t last_id;
	uint64_t records;
};

static int
see_event(void *arg, const struct ls_store_event *e)
{
	static const char letters[] = { [LS_EVENT_STEPS] = 's',
		[LS_EVENT_ITEM] = 'i',
		[LS_EVENT_CLOSE] = 'c',
		[LS_EVENT_COUNTERS] = 'v',
		[LS_EVENT_ZOOM] = 'z',
		[LS_EVENT_HANG] = 'h' };
	struct seen *s = arg;
	size_t len = strlen(s->order);

	ck_assert_int_gt(e->id, s->last_id);
	s->last_id = e->id;
	if (len + 1 < sizeof(s->order))
		s->order[len] = letters[e->kind];
	switch (e->kind) {
	case LS_EVENT_STEPS:
		s->records += e->u.steps.count;
		break;
	case LS_EVENT_ITEM:
		if (e->u.item.kind == LS_WIRE_GAP)
			ck_assert_uint_eq(e->u.item.count, 7);
		if (e->u.item.kind == LS_WIRE_END)
			ck_assert_uint_eq(e->u.item.reason, LS_END_CRASHED);
		break;
	case LS_EVENT_CLOSE:
		ck_assert_uint_eq(e->u.close.step, 4);
		ck_assert_uint_eq(e->u.close.missing_count, 2);
		ck_assert_int_eq(e->u.close.missing[1], 70000);
		break;
	case LS_EVENT_ZOOM:
		ck_abort_msg("nobody was zoomed");
		break;
	case LS_EVENT_HANG:
		ck_assert_str_eq(e->u.hang.job, "train");
		ck_assert_int_eq(e->u.hang.attempt, 2);
		ck_assert_uint_eq(e->u.hang.step, 5);
		ck_assert_int_eq(e->t_us, NOON);
		ck_assert_int_eq(e->u.hang.since_us, NOON - 11000000);
		ck_assert_uint_eq(e->u.hang.waiting, 3);
		ck_assert_int_eq(e->u.hang.why, LS_HANG_SILENT);
		ck_assert_uint_eq(e->u.hang.rank_count, 2);
		ck_assert_int_eq(e->u.hang.ranks[0], 1);
		ck_assert_int_eq(e->u.hang.ranks[1], 70000);
		break;
	case LS_EVENT_COUNTERS:
		ck_assert_str_eq(e->u.counters.host, "h1");
		ck_assert_uint_eq(e->u.counters.count, 2);
		ck_assert_uint_eq(e->u.counters.metric[0], LS_METRIC_HOST_CPU_BUSY);
		ck_assert_double_eq(e->u.counters.value[0], 12.5);
		ck_assert_double_eq(e->u.counters.value[1], 1e-9);
		break;
	}
	return 0;
}

LS_TEST(query, events_come_in_the_order_in_which_they_came)
{
	struct seen s = { 0 };

	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &s), 0);
	ck_assert_str_eq(s.order, "scvii");
	memset(&s, 0, sizeof(s));
	ck_assert_int_eq(ls_query_events(query, TODAY, 3, see_event, &s), 0);
	ck_assert_str_eq(s.order, "vii");
}

static int
see_stop(void *arg, const struct ls_store_event *e)
{
	(void)arg;
	(void)e;
	return -ECANCELED;
}

LS_TEST(query, a_visitor_can_stop)
{
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_stop, NULL), -ECANCELED);
}

LS_TEST(query, windows_hide_nothing)
{
	struct ls_write *batch[3 * LS_QUERY_WINDOW / 2];
	const size_t n = sizeof(batch) / sizeof(batch[0]);
	struct seen s = { 0 };
	size_t i;

	for (i = 0; i < n; i++)
		batch[i] = ls_test_report(0, i + 2, 10 + i, 1, NOON);
	ck_assert_int_eq(ls_store_commit(store, batch, n, NOON), 0);
	for (i = 0; i < n; i++)
		ls_test_write_free(batch[i]);
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &s), 0);
	ck_assert_uint_eq(s.records, 10 + n);
}

/* --- a reader that keeps the WAL ------------------------------------------- */

static const char wal_sql[] =
	"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 "
	"FROM n LIMIT 100000) SELECT (SELECT count(*) FROM zoom), x FROM n";

static void
put_bytes(size_t megabytes)
{
	static uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	static uint64_t seq;

	for (size_t at = 0; at < megabytes << 20; at += sizeof(body)) {
		struct ls_write *m = ls_write_new_report(0, 0, 1, NOON);

		ck_assert_ptr_nonnull(m);
		(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "h0");
		m->u.report.last_chunk_seq = ++seq;
		m->u.report.chunk_count = 1;
		m->u.report.chunks[0].kind = LS_WIRE_CHUNK;
		m->u.report.chunks[0].body = body;
		m->u.report.chunks[0].body_len = sizeof(body);
		put(m);
	}
}

LS_TEST(query, a_reader_that_keeps_the_wal_is_interrupted)
{
	struct ls_query_day *day;
	sqlite3_stmt *stmt;
	int rc;

	ck_assert_int_eq(ls_query_day_of(query, TODAY, &day), 0);
	ck_assert_int_eq(ls_db_prepare(ls_query_day_db(day), wal_sql, &stmt), 0);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	/* Below the maximum the reader goes on. */
	put_bytes(LS_WAL_MAX_BYTES / 2 >> 20);
	ck_assert_uint_gt(ls_days_wal_bytes(dir, TODAY), LS_WAL_CHECKPOINT_BYTES);
	for (int i = 0; i < 10000; i++)
		ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	put_bytes(LS_WAL_MAX_BYTES >> 20);
	do {
		rc = sqlite3_step(stmt);
	} while (rc == SQLITE_ROW);
	ck_assert_int_eq(ls_err_sqlite(sqlite3_finalize(stmt)), -LS_EINTERRUPTED);
	/* One commit empties the WAL, the next begins it again. */
	put_bytes(1);
	put_bytes(1);
	ck_assert_uint_le(ls_days_wal_bytes(dir, TODAY), LS_WAL_CHECKPOINT_BYTES);
	/* Who asks now is not interrupted. */
	ck_assert_int_eq(ls_query_day_of(query, TODAY, &day), 0);
	ck_assert_int_eq(ls_db_prepare(ls_query_day_db(day), wal_sql, &stmt), 0);
	ck_assert_int_eq(ls_db_run(stmt), 0);
	ck_assert_int_eq(sqlite3_finalize(stmt), SQLITE_OK);
}

/* A reader that begins again as soon as it has ended. */
static void *
read_on(void *arg)
{
	const struct timespec while_reading = { 0, 10000000 };
	const atomic_bool *stop = arg;
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt;

	ck_assert_int_eq(ls_days_path(path, dir, TODAY), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_READ, &db), 0);
	while (!atomic_load(stop)) {
		ck_assert_int_eq(ls_db_prepare(db, wal_sql, &stmt), 0);
		ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
		(void)nanosleep(&while_reading, NULL);
		(void)sqlite3_finalize(stmt);
	}
	ls_db_close(db);
	return NULL;
}

LS_TEST(query, readers_that_overlap_do_not_keep_the_wal)
{
	enum { READERS = 8 };
	pthread_t reader[READERS];
	atomic_bool stop = false;
	uint64_t most = 0, bytes;

	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, read_on, &stop), 0);
	for (uint64_t put = 0; put < 3 * LS_WAL_MAX_BYTES >> 20; put++) {
		put_bytes(1);
		bytes = ls_days_wal_bytes(dir, TODAY);
		most = bytes > most ? bytes : most;
	}
	atomic_store(&stop, true);
	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_join(reader[i], NULL), 0);
	ck_assert_uint_lt(most, 2 * LS_WAL_MAX_BYTES);
}

/* Runs SQL on the file of a day (0: state.db). */
static void
change_day(int32_t day, const char *sql)
{
	char path[PATH_MAX];
	sqlite3 *db = NULL;

	ck_assert_int_eq(ls_days_path(path, dir, day), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_db_exec(db, sql), 0);
	ls_db_close(db);
}

static void
change(const char *sql)
{
	change_day(TODAY, sql);
}

LS_TEST(query, what_does_not_read_is_passed_over)
{
	struct seen s = { 0 };

	put(ls_test_report(0, 2, 10, 20, NOON));
	change("UPDATE journal SET body = substr(body, 1, 30) WHERE id = 1");
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &s), -LS_ECORRUPT);
	ck_assert_str_eq(s.order, "cviis");
	ck_assert_uint_eq(s.records, 20);
	change("UPDATE gap SET reason = 1000");
	memset(&s, 0, sizeof(s));
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &s), -LS_ECORRUPT);
	ck_assert_str_eq(s.order, "cvis");
}

/* Begins in the middle of a row, and far from any row. */
LS_TEST(query, reading_begins_anywhere)
{
	struct ls_write *batch[3];
	struct seen s = { 0 };
	size_t i;

	for (i = 0; i < 3; i++)
		batch[i] = ls_test_report(0, i + 2, 10 + i, 1, NOON);
	ck_assert_int_eq(ls_store_commit(store, batch, 3, NOON), 0);
	for (i = 0; i < 3; i++)
		ls_test_write_free(batch[i]);
	ck_assert_int_eq(ls_query_events(query, TODAY, 7, see_event, &s), 0);
	ck_assert_str_eq(s.order, "ss");
	change("UPDATE step_close SET id = 1000000; INSERT INTO zoom VALUES (900000, 1, 'h', '', 0, 'c', 2)");
	memset(&s, 0, sizeof(s));
	ck_assert_int_eq(ls_query_events(query, TODAY, 900001, see_event, &s), 0);
	ck_assert_str_eq(s.order, "c");
	ck_assert_int_eq(s.last_id, 1000000);
}

LS_TEST(query, standstills_are_events_like_the_others)
{
	struct seen s = { 0 };

	put(ls_test_hang(5, NOON));
	ck_assert_int_eq(ls_query_events(query, TODAY, 3, see_event, &s), 0);
	ck_assert_str_eq(s.order, "viih");
	/* It is the last event there is, so the next one's number is behind it. */
	change("UPDATE hang SET id = 500000");
	ls_store_close(store);
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	put(ls_test_close(4, NOON));
	memset(&s, 0, sizeof(s));
	ck_assert_int_eq(ls_query_events(query, TODAY, 6, see_event, &s), 0);
	ck_assert_str_eq(s.order, "hc");
	ck_assert_int_eq(s.last_id, 500001);
}

/* What a file holds is believed no more than what the network brings. */
LS_TEST_LOOP(query, an_impossible_standstill_is_passed_over, 0, 9)
{
	static const char *const changes[] = {
		"UPDATE hang SET why = 5",
		"UPDATE hang SET why = -1",
		"UPDATE hang SET why = 4294967296",
		"UPDATE hang SET waiting = -1",
		"UPDATE hang SET waiting = 65537",
		"UPDATE hang SET since_us = t_us + 1",
		"UPDATE hang SET ranks = x'010000'",
		"UPDATE hang SET ranks = zeroblob(4100)",
		"UPDATE hang SET job = printf('%0300d', 7)",
	};
	struct seen s = { 0 };

	put(ls_test_hang(5, NOON));
	change(changes[_i]);
	ck_assert_int_eq(ls_query_events(query, TODAY, 3, see_event, &s), -LS_ECORRUPT);
	ck_assert_str_eq(s.order, "vii");
}

LS_TEST(query, the_tail_is_bounded)
{
	int64_t from = -1;
	uint64_t records = 0;

	put(ls_test_report(0, 2, 10, 20, NOON));
	ck_assert_int_eq(ls_query_tail(query, TODAY, 1000, &from, &records), 0);
	ck_assert_int_eq(from, 1);
	ck_assert_uint_eq(records, 30);
	ck_assert_int_eq(ls_query_tail(query, TODAY, 29, &from, &records), 0);
	ck_assert_int_eq(from, 2);
	ck_assert_uint_eq(records, 20);
	ck_assert_int_eq(ls_query_tail(query, TODAY, 0, &from, &records), 0);
	ck_assert_uint_eq(records, 0);
}

LS_TEST(query, a_missing_day_is_an_error)
{
	struct seen s = { 0 };

	ck_assert_int_ne(ls_query_events(query, 20200101, 0, see_event, &s), 0);
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &s), 0);
}

static const char *const impossible_workers[] = {
	"UPDATE worker SET step_source = -1",
	"UPDATE worker SET step_source = 99",
	"UPDATE worker SET owner = -1",
	"UPDATE worker SET owner = 4294967296",
	"UPDATE worker SET ring_id = x'01' WHERE id = 1",
	"UPDATE worker SET host = printf('%0300d', 7)",
};

static int
see_owner(void *arg, const struct ls_store_worker *w)
{
	uint64_t *sum = arg;

	*sum += w->info.owner;
	return 0;
}

LS_TEST_EACH(query, an_impossible_worker_is_an_error, impossible_workers)
{
	uint64_t sum = 0;

	change_day(0, "UPDATE worker SET owner = 4294967295");
	ck_assert_int_eq(ls_query_workers(query, NULL, see_owner, &sum), 0);
	ck_assert_uint_eq(sum, 2 * 4294967295ull);
	change_day(0, impossible_workers[_i]);
	ck_assert_int_eq(ls_query_workers(query, NULL, see_owner, &sum), -LS_ECORRUPT);
}

/* The number of a ring whose worker's row was lost is not given to another worker. */
LS_TEST(query, the_greatest_worker_id_is_that_of_a_ring_too)
{
	struct ls_write *m = ls_test_report(5, 1, 0, 1, NOON);
	int64_t max = 0;

	m->u.report.items[0].worker_id = 99;
	put(m);
	ck_assert_int_eq(ls_query_max_worker(query, &max), 0);
	ck_assert_int_eq(max, 99);
}

/* Records of a step, by worker. */
struct records {
	uint64_t of[3];
	int64_t stop_after;
};

static int
see_record(void *arg, int64_t id, int64_t worker_id, const struct ls_record *r)
{
	struct records *s = arg;

	ck_assert_int_ge(id, 1);
	ck_assert_int_le(worker_id, 2);
	ck_assert_uint_eq(r->step, 4);
	s->of[worker_id]++;
	return s->stop_after > 0 && --s->stop_after == 0 ? -ECANCELED : 0;
}

static void
assert_step(uint64_t first, uint64_t second)
{
	const struct ls_query_step_ask ask = { .job = "train", .step = 4 };
	struct records s = { { 0 }, 0 };
	uint64_t bad = 0;

	ck_assert_int_eq(ls_query_step(query, TODAY, &ask, see_record, &s, &bad), 0);
	ck_assert_uint_eq(bad, 0);
	ck_assert_uint_eq(s.of[1], first);
	ck_assert_uint_eq(s.of[2], second);
	s.stop_after = 1;
	ck_assert_int_eq(ls_query_step(query, TODAY, &ask, see_record, &s, &bad),
		-ECANCELED);
}

static struct ls_packer *packer;

static int
push(void *arg, struct ls_write *m)
{
	(void)arg;
	m->rc = ls_store_pack(store, &m->u.pack);
	ls_packer_told(packer, m);
	ls_write_free(m);
	return 0;
}

/* All that is in the journal becomes one unit. */
static void
pack(void)
{
	const struct ls_packer_options options = {
		.dir = dir, .span_us = 1, .events = LS_UNIT_EVENTS_MAX, .push = push
	};
	struct ls_packer_stats stats;
	bool more = true;

	ck_assert_int_eq(ls_packer_new(&options, &packer), 0);
	while (more) {
		more = false;
		ck_assert_int_eq(ls_packer_turn(packer, &more), 0);
	}
	ls_packer_stats(packer, &stats);
	ck_assert_uint_ge(stats.units, 1);
	ls_packer_free(packer);
}

LS_TEST(query, packed_rows_say_what_the_journal_said)
{
	struct seen was = { 0 }, is = { 0 };

	put(ls_test_report(1, 2, 0, 20, NOON + 1000000));
	put(ls_test_report_rest(1, 3, NOON + 2000000));
	put(ls_test_report(0, 2, 10, 5, NOON + 3000000));
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &was), 0);
	assert_step(1, 1);
	pack();
	ck_assert_int_ge(ls_test_sql(dir, TODAY, "SELECT count(*) FROM step_rows"), 1);
	ck_assert_int_ge(ls_test_sql(dir, TODAY, "SELECT count(*) FROM hot_rows"), 1);
	ck_assert_int_eq(ls_query_events(query, TODAY, 0, see_event, &is), 0);
	ck_assert_str_eq(is.order, was.order);
	ck_assert_uint_eq(is.records, was.records);
	ck_assert_int_eq(is.last_id, was.last_id);
	assert_step(1, 1);
	/* A second unit, and what is not packed yet. */
	put(ls_test_report(0, 3, 4, 1, NOON + 4000000));
	put(ls_test_report(0, 4, 15, 1, NOON + 5000000));
	assert_step(2, 1);
	pack();
	assert_step(2, 1);
}

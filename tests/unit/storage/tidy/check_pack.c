/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: events of a day are the same before and after, whatever happens on the way.
 */
#include "config.h"
#include "storage/tidy/packer.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/metrics.h"
#include "storage/tidy/pack.h"
#include "storage/read/query.h"
#include "storage/write/store.h"
#include "tests/support/disk/faultvfs.h"
#include "tests/support/harness.h"
#include "tests/support/reports.h"
#include "tests/support/rowmake.h"
#include "tests/support/wire_pack.h"

#define TODAY 20261121
#define NOON (ls_days_begin_us(TODAY) + 12ll * 3600 * 1000000)
#define WORKERS 5
#define ROUNDS 40

/* Everything of a day that a reader is given, one behind the other. */
struct seen {
	uint8_t *data;
	size_t len, size, events;
};

static char dir[PATH_MAX];
static struct ls_store *store;
static struct ls_packer *packer;
static uint64_t seed, seq[WORKERS], next_index[WORKERS];
static int push_rc;

static uint64_t
random_below(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

/* --- a day ---------------------------------------------------------------- */

/* A sound record: any phases, barriers and peers, no whole microseconds. */
static void
make_record(struct ls_record *r, uint64_t step)
{
	unsigned i;

	*r = (struct ls_record){ .step = step,
		.duration_ns = 50000000 + random_below(9999999),
		.t_begin_ns =
			(int64_t)(1000000000 + step * 70000000 + random_below(5000)),
		.phase_mask = (uint32_t)random_below(1u << LS_PHASE_COUNT),
		.barrier_count = (uint8_t)random_below(LS_BARRIERS_MAX + 1),
		.work_mask = (uint8_t)random_below(1u << LS_WORK_COUNT),
		.peer_count = (uint8_t)random_below(LS_PEERS_MAX + 1) };
	for (i = 0; i < LS_PHASE_COUNT; i++)
		r->phase_ns[i] = r->phase_mask >> i & 1 ? random_below(4000000) : 0;
	for (i = 0; i < r->barrier_count; i++) {
		r->barrier[i].kind = (uint8_t)random_below(LS_BARRIER_COUNT);
		r->barrier[i].enter_ns =
			r->t_begin_ns + (int64_t)random_below(20000000);
		r->barrier[i].exit_ns =
			r->barrier[i].enter_ns + (int64_t)random_below(20000000);
	}
	for (i = 0; i < LS_WORK_COUNT; i++)
		r->work[i] =
			r->work_mask >> i & 1 ? (double)random_below(1000000) / 8 : 0;
	for (i = 0; i < r->peer_count; i++)
		r->peer[i] = (struct ls_record_peer){ (uint32_t)random_below(100),
			random_below(3) == 0 ? UINT64_MAX : random_below(9999999),
			random_below(9999999) };
}

/* A worker's report: records with a gap before them now and then, and a clock that
 * drifts. */
static struct ls_write *
make_report(int32_t rank, int64_t t_us)
{
	uint64_t i, count = 1 + random_below(20);
	struct ls_write *m;
	struct ls_store_item *row;
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS, .count = count };
	uint8_t *data = NULL;

	next_index[rank] += random_below(4) == 0 ? random_below(100) : 0;
	m = ls_test_report(rank, ++seq[rank], next_index[rank], count, t_us);
	row = &m->u.report.items[0];
	item.seq = seq[rank];
	item.first_index = next_index[rank];
	memcpy(item.ring_id, row->ring_id, sizeof(item.ring_id));
	item.records = calloc(count, sizeof(*item.records));
	for (i = 0; i < count; i++)
		make_record(&item.records[i],
			next_index[rank] + i + (random_below(9) == 0 ? 300 : 0));
	ck_assert_int_eq(ls_test_item_pack(&item, &data, &row->len), 0);
	free(item.records);
	free(m->u.report.owner);
	m->u.report.owner = data;
	row->data = data;
	row->map.ref_mono_ns = 5;
	row->map.drift_ppb = -(int64_t)random_below(20000);
	row->map.uncertainty_ns = (int64_t)random_below(90000);
	if (count > 2 && random_below(3) == 0) { /* the first one is known already */
		row->first_index++;
		row->count--;
	}
	next_index[rank] += count;
	return m;
}

static struct ls_write *
make_hot(int32_t rank, int64_t t_us)
{
	struct ls_write *m = ls_test_report_rest(rank, ++seq[rank], t_us);
	struct ls_store_counters *c = &m->u.report.counters[0];

	m->u.report.item_count = 0;
	c->worker_id = random_below(2) ? rank + 1 : 0;
	c->value[0] = (double)random_below(1000000) / 100;
	c->value[1] = (double)random_below(1000000) * 1e-17;
	return m;
}

static struct ls_write *
make_zoom(int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_ZOOM, t_us);

	(void)snprintf(m->u.zoom.host, sizeof(m->u.zoom.host), "h1");
	(void)snprintf(m->u.zoom.cause, sizeof(m->u.zoom.cause), "suspect");
	m->u.zoom.until_us = t_us + 5;
	return m;
}

static struct ls_write *
make_any(int64_t t_us)
{
	int32_t rank = (int32_t)random_below(WORKERS);

	switch (random_below(13)) {
	case 0:
		return ls_test_close(random_below(1000), t_us);
	case 1:
		return make_zoom(t_us);
	case 2:
		return ls_test_report_rest(rank, ++seq[rank], t_us);
	case 3:
	case 4:
	case 5:
		return make_hot(rank, t_us);
	case 6:
		return ls_test_hang(random_below(1000), t_us);
	default:
		return make_report(rank, t_us);
	}
}

static void
put(struct ls_write **batch, size_t count)
{
	size_t i;

	ck_assert_int_eq(ls_store_commit(store, batch, count, NOON), 0);
	for (i = 0; i < count; i++)
		ls_test_write_free(batch[i]);
}

static void
make_day(void)
{
	struct ls_write *batch[30];
	size_t round, i, n;

	for (i = 0; i < WORKERS; i++) {
		batch[i] = ls_test_worker((int32_t)i, NOON);
		if (i == 3)
			(void)snprintf(batch[i]->u.worker.info.job,
				LS_JOB_NAME_MAX_BYTES, "other");
	}
	put(batch, WORKERS);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0, n = 1 + random_below(30); i < n; i++)
			batch[i] = make_any(NOON + (int64_t)(round * 1000000 + i));
		put(batch, n);
	}
}

/* --- what readers see ----------------------------------------------------- */

static void
note(struct seen *s, const void *data, size_t len)
{
	if (s->len + len > s->size) {
		s->size = 2 * (s->len + len);
		s->data = realloc(s->data, s->size);
		ck_assert_ptr_nonnull(s->data);
	}
	memcpy(s->data + s->len, data, len);
	s->len += len;
}

static int
see(void *arg, const struct ls_store_event *e)
{
	struct seen *s = arg;

	s->events++;
	note(s, &e->kind, sizeof(e->kind));
	note(s, &e->id, sizeof(e->id));
	note(s, &e->t_us, sizeof(e->t_us));
	switch (e->kind) {
	case LS_EVENT_STEPS:
		note(s, &e->u.steps.worker_id, sizeof(e->u.steps.worker_id));
		note(s, &e->u.steps.first_index, sizeof(e->u.steps.first_index));
		note(s, &e->u.steps.uncertainty_ns, sizeof(e->u.steps.uncertainty_ns));
		note(s, e->u.steps.records,
			e->u.steps.count * sizeof(*e->u.steps.records));
		break;
	case LS_EVENT_ITEM:
		note(s, &e->u.item, sizeof(e->u.item));
		break;
	case LS_EVENT_CLOSE:
		note(s, e->u.close.job, sizeof(e->u.close.job));
		note(s, &e->u.close.step, sizeof(e->u.close.step));
		break;
	case LS_EVENT_COUNTERS:
		note(s, &e->u.counters, sizeof(e->u.counters));
		break;
	case LS_EVENT_ZOOM:
		note(s, &e->u.zoom, sizeof(e->u.zoom));
		break;
	case LS_EVENT_HANG:
		note(s, &e->u.hang.step, sizeof(e->u.hang.step));
		note(s, e->u.hang.ranks,
			e->u.hang.rank_count * sizeof(*e->u.hang.ranks));
		break;
	}
	return 0;
}

static int
see_ledger(void *arg, const struct ls_store_ledger *l)
{
	note(arg, l->boot, sizeof(l->boot));
	note(arg, l->host, strlen(l->host));
	note(arg, &l->seq, sizeof(l->seq));
	note(arg, &l->chunk_seq, sizeof(l->chunk_seq));
	return 0;
}

static int
see_ring(void *arg, const struct ls_store_ring *r)
{
	note(arg, r->ring_id, sizeof(r->ring_id));
	note(arg, &r->worker_id, sizeof(r->worker_id));
	note(arg, &r->high, sizeof(r->high));
	return 0;
}

static struct seen
look(int64_t from_id)
{
	struct seen s = { 0 };
	struct ls_query *q;

	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	ck_assert_int_eq(ls_query_events(q, TODAY, from_id, see, &s), 0);
	ck_assert_int_eq(ls_query_ledgers(q, see_ledger, &s), 0);
	ck_assert_int_eq(ls_query_rings(q, see_ring, &s), 0);
	ls_query_close(q);
	return s;
}

static void
assert_same(const struct seen *was, int64_t from_id)
{
	struct seen is = look(from_id);

	ck_assert_uint_eq(is.events, was->events);
	ck_assert_uint_eq(is.len, was->len);
	ck_assert(memcmp(is.data, was->data, is.len) == 0);
	free(is.data);
}

/* --- packing -------------------------------------------------------------- */

/* As the writer does it, at once. */
static int
push(void *arg, struct ls_write *m)
{
	(void)arg;
	if (push_rc != 0)
		return push_rc;
	m->rc = ls_store_pack(store, &m->u.pack);
	ls_packer_told(packer, m);
	ls_write_free(m);
	return 0;
}

static void
start(int64_t age_us, int64_t span_us, size_t events)
{
	const struct ls_packer_options options = { .dir = dir,
		.age_us = age_us,
		.span_us = span_us,
		.events = events,
		.push = push };

	ls_packer_free(packer);
	ck_assert_int_eq(ls_packer_new(&options, &packer), 0);
}

static struct ls_packer_stats
stats(void)
{
	struct ls_packer_stats s;

	ls_packer_stats(packer, &s);
	return s;
}

/* Until nothing is due. */
static void
pack_all(void)
{
	uint64_t units;
	bool more;

	do {
		units = stats().units;
		more = false;
		ck_assert_int_eq(ls_packer_turn(packer, &more), 0);
	} while (stats().units > units || more);
}

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	seed = 88172645463325252u;
	memset(seq, 0, sizeof(seq));
	memset(next_index, 0, sizeof(next_index));
	push_rc = 0;
	packer = NULL;
	ls_faultvfs_install();
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	make_day();
}

static void
teardown(void)
{
	ls_faultvfs_heal();
	ls_packer_free(packer);
	ls_store_close(store);
}

LS_CASE(pack, setup, teardown);

LS_TEST(pack, events_and_positions_of_a_packed_day_are_the_same)
{
	struct seen was = look(1);

	ck_assert_int_gt(ls_test_sql(dir, TODAY, "SELECT count(*) FROM journal"), 30);
	start(0, 7000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	ck_assert_uint_ge(stats().units, 4);
	ck_assert_int_eq(ls_test_sql(dir, TODAY, "SELECT count(*) FROM unit"),
		(int64_t)stats().units);
	ck_assert_int_le(ls_test_sql(dir, TODAY, "SELECT count(*) FROM journal"), 8);
	ck_assert_int_eq(
		ls_test_sql(dir, TODAY, "SELECT count(DISTINCT job_id) FROM step_rows"),
		2);
	assert_same(&was, 1);
	free(was.data);
}

/* From any event on: also in the middle of a unit, and of the journal behind it. */
LS_TEST(pack, reading_may_begin_anywhere)
{
	struct seen was[40];
	int64_t i;

	for (i = 0; i < 40; i++)
		was[i] = look(1 + i * 17);
	start(0, 5000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	for (i = 0; i < 40; i++) {
		assert_same(&was[i], 1 + i * 17);
		free(was[i].data);
	}
}

LS_TEST(pack, units_are_bounded_by_events)
{
	struct seen was = look(1);

	start(0, INT64_MAX, 60);
	pack_all();
	ck_assert_uint_gt(stats().units, 5);
	ck_assert_int_le(
		ls_test_sql(dir, TODAY, "SELECT max(last_id - id + 1) FROM unit"), 120);
	assert_same(&was, 1);
	free(was.data);
}

LS_TEST(pack, what_is_young_or_short_stays)
{
	start(0, 3600000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	ck_assert_uint_eq(stats().units, 0);
	start(1000000000, 1000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	ck_assert_uint_eq(stats().units, 0);
	start(10000000, 1000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	ck_assert_uint_gt(stats().units, 0);
	ck_assert_int_ge(
		ls_test_sql(dir, TODAY, "SELECT max(t_us) - min(t_us) FROM journal"),
		9000000);
}

/* Each write and sync of a unit fails, in turn; the store is then opened anew as after
 * a crash. */
LS_TEST(pack, a_crash_at_any_write_loses_and_doubles_nothing)
{
	struct seen was = look(1);
	long n;

	for (n = 1; n < 500; n++) {
		bool hit, more = false;

		start(0, 3000000, LS_UNIT_EVENTS_MAX);
		ls_faultvfs_fail(n, SQLITE_IOERR_WRITE);
		ls_ignore(ls_packer_turn(packer, &more)); /* refused, or not */
		hit = ls_faultvfs_hit();
		ls_store_close(store);
		ls_faultvfs_heal();
		ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
		assert_same(&was, 1);
		if (!hit)
			break;
	}
	ck_assert_int_gt(n, 3);
	ck_assert_int_lt(n, 500);
	start(0, 3000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	assert_same(&was, 1);
	free(was.data);
}

LS_TEST(pack, what_the_writer_refuses_is_packed_later)
{
	struct seen was = look(1);
	bool more = false;

	start(0, 3000000, LS_UNIT_EVENTS_MAX);
	push_rc = -LS_ELIMIT;
	ck_assert_int_eq(ls_packer_turn(packer, &more), -LS_ELIMIT);
	push_rc = 0;
	ls_faultvfs_fail(1, SQLITE_FULL);
	ck_assert_int_eq(ls_packer_turn(packer, &more), 0);
	ls_faultvfs_heal();
	ck_assert_uint_eq(stats().refused, 1);
	ck_assert_uint_eq(stats().units, 0);
	pack_all();
	ck_assert_uint_gt(stats().units, 0);
	assert_same(&was, 1);
	free(was.data);
}

/* ls_test_sql reads the journal; here it is damaged. */
static int64_t
sql(const char *text)
{
	char path[PATH_MAX + 32];
	sqlite3_stmt *stmt;
	sqlite3 *db;
	int64_t value = 0;

	(void)snprintf(path, sizeof(path), "%s/telemetry/%d.db", dir, TODAY);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	ck_assert_int_eq(sqlite3_finalize(stmt), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return value;
}

/* A row that cannot be read stays, and what comes behind it is packed. */
LS_TEST(pack, a_damaged_row_stays_where_it_is)
{
	int64_t id;

	ls_store_close(store);
	sql("UPDATE journal SET body = zeroblob(40) WHERE id = "
	    "(SELECT id FROM journal ORDER BY id LIMIT 1 OFFSET 5)");
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	id = sql("SELECT id FROM journal WHERE body = zeroblob(40)");
	start(0, 3000000, LS_UNIT_EVENTS_MAX);
	pack_all();
	ck_assert_uint_eq(stats().bad, 1);
	ck_assert_int_eq(sql("SELECT id FROM journal WHERE body = zeroblob(40)"), id);
	ck_assert_int_eq(sql("SELECT min(id) FROM journal"), id);
	ck_assert_int_gt(sql("SELECT max(id) FROM unit"), id);
	ck_assert_int_lt(sql("SELECT min(id) FROM unit"), id);
}

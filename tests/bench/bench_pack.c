/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What packing costs, through the store: reports in, commits of a tenth of a second,
 * units out. Each line is "name value unit".
 *
 *   pack_disk_bytes_per_record        10,000 workers at a step a second for a minute, no hot counters: all pages of
 *                                     step_rows, its index and unit
 *   pack_disk_bytes_per_record_small  16 workers at 10 steps a second, four minutes
 *   pack_cpu_ns_per_record            reading the journal, encoding, and the writer's transaction; the first kind
 *   pack_peak_rss_bytes               of this process, records being made included
 */
#include "config.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "proto/base/clock.h"
#include "storage/db/days.h"
#include "storage/tidy/packer.h"
#include "storage/write/store.h"
#include "tests/support/job_rows.h"
#include "tests/support/wire_pack.h"

#define BENCH_DAY 20261121
#define BENCH_COMMITS 10 /* a second */

struct bench {
	char dir[128];
	struct ls_store *store;
	struct ls_packer *packer;
	struct ls_packer_stats packed;
	uint64_t seq, pack_ns;
};

static void
bench_demand(bool holds)
{
	if (!holds)
		abort();
}

/* --- reports -------------------------------------------------------------- */

static struct ls_write *
bench_report(struct bench *b, const struct ls_step_run *run, struct ls_record *records)
{
	struct ls_write *m = ls_write_new_report(1, 0, 0, run->t_us);
	struct ls_wire_item item = { .kind = LS_WIRE_STEPS,
		.seq = ++b->seq,
		.first_index = run->first_index,
		.count = run->count,
		.records = records };
	struct ls_store_item *row;
	uint8_t *data = NULL;

	bench_demand(m != NULL);
	row = &m->u.report.items[m->u.report.item_count++];
	memcpy(item.ring_id, &run->worker_id, sizeof(run->worker_id));
	bench_demand(ls_test_item_pack(&item, &data, &row->len) == 0);
	row->kind = LS_WIRE_STEPS;
	row->worker_id = run->worker_id;
	memcpy(row->ring_id, item.ring_id, sizeof(row->ring_id));
	row->first_index = run->first_index;
	row->count = run->count;
	row->high = run->first_index + run->count;
	row->step_lo = records[0].step;
	row->step_hi = records[run->count - 1].step;
	row->map.uncertainty_ns = run->uncertainty_ns;
	row->data = data;
	m->u.report.owner = data;
	m->u.report.last_seq = b->seq;
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "host-%lld",
		(long long)run->worker_id);
	memcpy(m->u.report.boot, &run->worker_id, sizeof(run->worker_id));
	return m;
}

static void
bench_commit(struct bench *b, struct ls_write **batch, size_t count)
{
	size_t i;

	bench_demand(ls_store_commit(b->store, batch, count,
			     ls_days_begin_us(BENCH_DAY)) == 0);
	for (i = 0; i < count; i++) {
		free(batch[i]->u.report.owner);
		ls_write_free(batch[i]);
	}
}

static void
bench_second(struct bench *b, const struct ls_step_table *t)
{
	struct ls_write **batch = calloc(t->run_count, sizeof(struct ls_write *));
	size_t i, n = 0, at = 0, each = t->run_count / BENCH_COMMITS + 1;

	bench_demand(batch != NULL);
	for (i = 0; i < t->run_count; i++) {
		batch[n++] = bench_report(b, &t->runs[i], &t->records[at]);
		at += t->runs[i].count;
		if (n == each || i + 1 == t->run_count) {
			bench_commit(b, batch, n);
			n = 0;
		}
	}
	free(batch);
}

/* --- packing -------------------------------------------------------------- */

static int
bench_push(void *arg, struct ls_write *m)
{
	struct bench *b = arg;

	m->rc = ls_store_pack(b->store, &m->u.pack);
	bench_demand(m->rc == 0);
	ls_packer_told(b->packer, m);
	ls_write_free(m);
	return 0;
}

static void
bench_pack(struct bench *b)
{
	uint64_t units, t0 = ls_clock_cpu_ns();
	bool more;

	do {
		units = b->packed.units;
		more = false;
		bench_demand(ls_packer_turn(b->packer, &more) == 0);
		ls_packer_stats(b->packer, &b->packed);
	} while (more || b->packed.units > units);
	b->pack_ns += ls_clock_cpu_ns() - t0;
}

static int64_t
bench_sql(const struct bench *b, const char *sql)
{
	char path[192];
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	int64_t value;

	(void)snprintf(path, sizeof(path), "%s/telemetry/%d.db", b->dir, BENCH_DAY);
	bench_demand(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) ==
		SQLITE_OK);
	bench_demand(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
	bench_demand(sqlite3_step(stmt) == SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt); /* it did its work */
	(void)sqlite3_close(db);
	return value;
}

static void
bench_remove(const char *dir)
{
	char path[192];

	bench_demand(ls_days_remove(dir, BENCH_DAY) == 0);
	(void)snprintf(path, sizeof(path), "%s/state.db", dir);
	(void)unlink(path); /* what stays of a directory in TMPDIR harms nobody */
	(void)snprintf(path, sizeof(path), "%s/lock", dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/telemetry", dir);
	(void)rmdir(path);
	(void)rmdir(dir);
}

/* Bytes of disk a record. */
static double
bench_job(struct bench *b, size_t workers, unsigned rate, unsigned seconds)
{
	struct ls_packer_options options = { .dir = b->dir,
		.age_us = LS_PACK_AGE_US,
		.span_us = 60000000,
		.events = LS_UNIT_EVENTS_MAX,
		.push = bench_push,
		.arg = b };
	const char *tmp = getenv("TMPDIR");
	struct job_rows *job = job_rows_new(workers, rate);
	int64_t bytes;
	unsigned i;

	(void)snprintf(b->dir, sizeof(b->dir), "%s/bench-pack-XXXXXX",
		tmp != NULL ? tmp : "/tmp");
	bench_demand(mkdtemp(b->dir) != NULL);
	bench_demand(ls_store_open(b->dir, ls_days_begin_us(BENCH_DAY), &b->store) ==
		0);
	bench_demand(ls_packer_new(&options, &b->packer) == 0);
	for (i = 0; i < seconds; i++) {
		bench_second(b, job_rows_second(job));
		bench_pack(b);
	}
	bytes = bench_sql(b,
		"SELECT sum(pgsize) FROM dbstat WHERE name IN "
		"('step_rows', 'step_rows_by_step', 'unit')");
	ls_packer_free(b->packer);
	ls_store_close(b->store);
	job_rows_free(job);
	bench_remove(b->dir);
	return (double)bytes / (double)b->packed.records;
}

int
main(void)
{
	struct bench large = { 0 }, small = { 0 };
	struct rusage use;
	double bytes = bench_job(&large, 10000, 1, 66);

	bench_demand(getrusage(RUSAGE_SELF, &use) == 0);
	printf("pack_disk_bytes_per_record %.2f bytes\n", bytes);
	printf("pack_disk_bytes_per_record_small %.2f bytes\n",
		bench_job(&small, 16, 10, 250));
	printf("pack_cpu_ns_per_record %.0f ns\n",
		(double)large.pack_ns / (double)large.packed.records);
	printf("pack_peak_rss_bytes %lld bytes\n", (long long)use.ru_maxrss * 1024);
	return EXIT_SUCCESS;
}

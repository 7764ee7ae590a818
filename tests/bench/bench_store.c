/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "proto/wire/wire.h"
#include "storage/db/days.h"
#include "storage/read/query.h"
#include "storage/write/store.h"
#include "tests/support/wire_pack.h"

/*
 * What it costs to make reports durable: commits of 1,000 reports, each of a host of
 * its own with one step record and 16 hot values; every 60th brings a chunk of 5.7 kB,
 * as a host does once a minute. CPU is that of this thread, with the kernel's; what is
 * written is WAL and checkpoints together. Then all events are read back in order. Each
 * line is "name value unit".
 *
 *   store_commit_report_us          CPU of a report, its share of a chunk included
 *   store_written_bytes_per_report  by write calls, chunks' bodies included
 *   store_file_bytes_per_report     of the day's file afterwards, without the chunks' bodies
 *   store_read_event_us             CPU of an event that is read back
 */

enum { COMMITS = 200, REPORTS = 1000, CHUNK_EVERY = 60, CHUNK_BYTES = 5700 };
#define T0 1795262400000000ll /* noon */

static struct ls_write *bench_reports[REPORTS];
static uint8_t bench_body[CHUNK_BYTES];

static void
bench_demand(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "bench_store: %s\n", what);
	exit(1);
}

static uint64_t
bench_cpu_ns(void)
{
	struct timespec t;

	bench_demand(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0, "no CPU clock");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Bytes given to write calls so far. */
static uint64_t
bench_written(void)
{
	unsigned long long read = 0, written = 0;
	FILE *f = fopen("/proc/self/io", "r");

	if (f == NULL || fscanf(f, "rchar: %llu wchar: %llu", &read, &written) != 2)
		written = 0;
	if (f != NULL)
		(void)fclose(f);
	return written;
}

static uint8_t *
bench_item(unsigned host, size_t *ret_len)
{
	struct ls_record r = { .step = 1000000,
		.t_begin_ns = 5000000000000 + host * 7919,
		.duration_ns = 950000000 + host * 104729 % 9500000,
		.phase_mask = 0x2b,
		.phase_ns = { 11000123, 2000456, 0, 700000789, 0, 90000321 },
		.barrier_count = 1 };
	struct ls_wire_item item = { .seq = 1,
		.kind = LS_WIRE_STEPS,
		.first_index = 1000000,
		.count = 1,
		.records = &r };
	uint8_t *buf = NULL;

	r.barrier[0].enter_ns = r.t_begin_ns + 800000000;
	r.barrier[0].exit_ns = r.t_begin_ns + 890000000;
	memset(item.ring_id, (int)host, sizeof(item.ring_id));
	bench_demand(ls_test_item_pack(&item, &buf, ret_len) == 0,
		"cannot pack an item");
	return buf;
}

static void
bench_make(unsigned host)
{
	struct ls_write *m = ls_write_new_report(1, 1, 1, T0);
	struct ls_store_report *r;
	struct ls_store_item *item;
	struct ls_store_counters *c;
	size_t i;

	bench_demand(m != NULL, "out of memory");
	r = &m->u.report;
	item = &r->items[0];
	c = &r->counters[0];
	memcpy(r->boot, &host, sizeof(host));
	(void)snprintf(r->host, sizeof(r->host), "tpu-host-%04u", host);
	memcpy(c->host, r->host, sizeof(c->host));
	r->item_count = r->counters_count = 1;
	item->kind = LS_WIRE_STEPS;
	item->worker_id = host + 1;
	memcpy(item->ring_id, &host, sizeof(host));
	item->count = 1;
	item->map = (struct ls_store_map){ 5000000000000, T0 * 1000 - 5000000000000,
		1234, 50000 };
	item->data = bench_item(host, &item->len);
	r->owner = (void *)(uintptr_t)item->data;
	for (i = 0; i < LS_HOT_MAX; i++) {
		c->metric[i] = (uint16_t)(3 * i);
		c->value[i] = host * 0.125 + (double)i;
	}
	c->count = LS_HOT_MAX;
	bench_reports[host] = m;
}

/* What the hosts say in the n-th second. */
static void
bench_second(unsigned n)
{
	int64_t t_us = T0 + n * 1000000ll;
	unsigned host;

	for (host = 0; host < REPORTS; host++) {
		struct ls_write *m = bench_reports[host];
		struct ls_store_report *r = &m->u.report;
		struct ls_store_item *item = &r->items[0];
		struct ls_store_chunk *chunk = &r->chunks[0];

		m->t_us = t_us;
		r->last_seq = n + 1;
		/* The bytes say always the same index: what is stored beside them
		 * counts. */
		item->first_index = 1000000;
		item->high = 1000001 + n;
		item->step_lo = item->step_hi = 1000000 + n;
		item->t_lo_us = t_us - 1000000 + host;
		item->t_hi_us = item->t_lo_us + 950000;
		r->counters[0].read_us = t_us - 200000 + host;
		r->chunk_count = (host + n) % CHUNK_EVERY == 0;
		if (r->chunk_count == 0)
			continue;
		r->last_chunk_seq = n / CHUNK_EVERY + 1;
		chunk->kind = LS_WIRE_CHUNK;
		chunk->hash = 77;
		chunk->t_first_us = t_us - 60000000;
		chunk->t_last_us = t_us;
		chunk->n = 60;
		chunk->body = bench_body;
		chunk->body_len = sizeof(bench_body);
	}
}

static int
bench_event(void *arg, const struct ls_store_event *e)
{
	uint64_t *count = arg;

	(void)e;
	(*count)++;
	return 0;
}

static void
bench_read(const char *dir)
{
	struct ls_query *q = NULL;
	uint64_t events = 0, ns = bench_cpu_ns();

	bench_demand(ls_query_open(dir, &q) == 0, "cannot open for reading");
	bench_demand(ls_query_events(q, ls_days_of(T0), 0, bench_event, &events) == 0,
		"cannot read");
	ns = bench_cpu_ns() - ns;
	bench_demand(events == 2 * COMMITS * REPORTS, "not all events are there");
	printf("store_read_event_us %.2f us\n", (double)ns / 1e3 / (double)events);
	ls_query_close(q);
}

static void
bench_commits(const char *dir)
{
	const double n = (double)COMMITS * REPORTS;
	uint64_t ns = 0, before, written = bench_written();
	struct ls_store *store = NULL;
	struct ls_store_stats st;
	unsigned i;

	bench_demand(ls_store_open(dir, T0, &store) == 0, "cannot open a store");
	for (i = 0; i < COMMITS; i++) {
		bench_second(i);
		before = bench_cpu_ns();
		bench_demand(ls_store_commit(store, bench_reports, REPORTS, T0) == 0,
			"cannot commit");
		ns += bench_cpu_ns() - before;
	}
	written = bench_written() - written;
	ls_store_stats(store, &st);
	ls_store_close(store);
	printf("store_commit_report_us %.2f us\n", (double)ns / 1e3 / n);
	printf("store_written_bytes_per_report %.0f B\n", (double)written / n);
	printf("store_file_bytes_per_report %.0f B\n",
		(double)(ls_days_bytes(dir, ls_days_of(T0)) - st.chunk_bytes) / n);
}

int
main(void)
{
	char dir[] = "bench_store.XXXXXX", path[64];
	unsigned i;

	for (i = 0; i < CHUNK_BYTES; i++)
		bench_body[i] = (uint8_t)(i * 2654435761u >> 13);
	for (i = 0; i < REPORTS; i++)
		bench_make(i);
	bench_demand(mkdtemp(dir) != NULL, "cannot make a directory");
	bench_commits(dir);
	bench_read(dir);
	bench_demand(ls_days_remove(dir, ls_days_of(T0)) == 0 &&
			ls_days_remove(dir, 0) == 0,
		"cannot remove what was stored");
	(void)snprintf(path, sizeof(path), "%s/lock", dir);
	(void)unlink(path); /* what is left of it is seen by the next lines */
	(void)snprintf(path, sizeof(path), "%s/telemetry", dir);
	bench_demand(rmdir(path) == 0 && rmdir(dir) == 0,
		"cannot remove the directory");
	for (i = 0; i < REPORTS; i++) {
		free(bench_reports[i]->u.report.owner);
		ls_write_free(bench_reports[i]);
	}
	return 0;
}

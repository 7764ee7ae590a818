/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/answer/questions.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "storage/db/days.h"
#include "storage/db/db.h"
#include "storage/tidy/packer.h"
#include "storage/read/query.h"
#include "storage/tidy/roller.h"
#include "storage/columns/step_rows.h"
#include "storage/write/store.h"
#include "tests/support/wire_pack.h"

/*
 * What questions to storage take, from the question to the whole text of its answer,
 * without HTTP. A store is filled through the real write side: LOCKSTEP_BENCH_HOSTS
 * hosts (1,000) of 120 series in two groups, an hour of chunks of a minute, their
 * bodies out of 64 made ones, rolled up and packed; step records of ten minutes, a row
 * a step as packing makes them, in an order of arrival that is not that of ranks. Each
 * line is "name value unit"; _cpu_ms is the answering thread's own time.
 *
 *   query_hosts, query_store_bytes
 *   query_series_ms, query_fleet_ms, query_step_ms    p99, by the clock, of those below
 *   query_series_ms_p50, _p99         one series of one host, the hour, 240 buckets; hosts at random
 *   query_series_raw_ms_p50, _p99     the same, its 3,600 values
 *   query_minutes_ms_p50, _p99        one series of 1,000 hosts, a minute in halves, from chunks
 *   query_fleet_ms_p50, _p99          one series of all hosts, the hour in minutes, from roll-ups: their band
 *   query_fleet_page_ms_p50, _p99     the same, all values of 1,000 hosts
 *   query_step_ms_p50, _p99           one step of all workers (the first 1,000 are shown); steps at random
 *   query_step_first_ms_p50, _p99     the same with the page of 100 that is shown if nobody says how many
 *                                     All this while another thread commits ten times a second what so many
 *                                     hosts send: a step record and 16 hot counters a second, chunks a minute.
 *   ..._alone_ms_...                  the same with nobody writing
 */

enum {
	COLUMNS = 60,
	ROWS = 60,
	MINUTES = 60,
	BODIES = 64,
	BATCH = 1024,
	ROUNDS = 300,
	FLEET_ROUNDS = 30,
	STEPS = 600
};

#define S 1000000ll
#define BEGIN_US (ls_days_begin_us(20261121) + 12 * 3600 * S)
#define END_US (BEGIN_US + MINUTES * 60 * S)

static const char *const bench_groups[2] = { "host.fast", "tpu.gauges" };

struct bench {
	size_t hosts;
	char dir[PATH_MAX];
	struct ls_store *store;
	uint8_t *body[BODIES];
	size_t body_len[BODIES];
	uint64_t seed;
	atomic_bool stop; /* the ingesting thread's */
	uint64_t ingested, steps;
	struct ls_packer *packer;
};

static void
bench_must(int rc, const char *what)
{
	if (rc == 0)
		return;
	(void)fprintf(stderr, "bench_query: %s: %s\n", what, ls_err_text(rc));
	exit(1);
}

static double
bench_uniform(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return (double)(b->seed >> 11) / 9007199254740992.0;
}

/* --- filling -------------------------------------------------------------- */

/* A minute of 60 series: walks, gauges of two decimals, counters: a third of each. */
static void
bench_body(struct bench *b, size_t n)
{
	static double value[COLUMNS * ROWS];
	static bool present[COLUMNS * ROWS];
	static uint64_t t_ns[ROWS];
	static uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	const struct ls_chunk_table table = { ROWS, COLUMNS, ROWS, t_ns, value,
		present };
	struct ls_chunk_codec *codec = ls_chunk_codec_new(COLUMNS, ROWS);

	if (codec == NULL)
		bench_must(-ENOMEM, "codec");
	for (size_t c = 0; c < COLUMNS; c++) {
		double at = 1e9 * bench_uniform(b);

		for (size_t i = 0; i < ROWS; i++) {
			double r = bench_uniform(b);

			t_ns[i] = (100 + i) * 1000000000ull;
			present[c * ROWS + i] = true;
			at += c % 3 == 0 ? floor(4e7 * (1 + 0.1 * r))
					 : floor(8 * r - 4) * 512;
			value[c * ROWS + i] =
				c % 3 == 2 ? round(5000 + 300 * r) / 100 : floor(at);
		}
	}
	bench_must(ls_chunk_encode(codec, &table, body, sizeof(body), &b->body_len[n]),
		"encoding");
	ls_chunk_codec_free(codec);
	b->body[n] = malloc(b->body_len[n]);
	if (b->body[n] == NULL)
		bench_must(-ENOMEM, "bodies");
	memcpy(b->body[n], body, b->body_len[n]);
}

static void
bench_dictionary(struct ls_write *m, size_t group)
{
	struct ls_store_chunk *c = &m->u.report.chunks[m->u.report.chunk_count++];

	c->kind = LS_WIRE_DICTIONARY;
	c->hash = group + 1;
	(void)snprintf(c->group, sizeof(c->group), "%s", bench_groups[group]);
	c->series = calloc(COLUMNS, 64);
	if (c->series == NULL)
		bench_must(-ENOMEM, "dictionary");
	for (size_t i = 0; i < COLUMNS; i++)
		c->series_len +=
			(size_t)snprintf(c->series + c->series_len, 64,
				group == 0 ? "host.bench.series%zu_total"
					   : "chip.bench.series_ratio{core=\"%zu\"}",
				i) +
			1;
}

/* What a host's agent sends in a minute: a chunk a group. */
static struct ls_write *
bench_report(struct bench *b, size_t host, uint64_t minute, int64_t t_us, bool first)
{
	struct ls_write *m = ls_write_new_report(1, 1, 4, t_us);

	if (m == NULL)
		bench_must(-ENOMEM, "report");
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "host%05zu", host);
	memcpy(m->u.report.boot, &host, sizeof(host));
	m->u.report.last_chunk_seq = 2 * minute + 2;
	for (size_t g = 0; g < 2; g++) {
		size_t n = (host * 7 + minute * 2 + g) % BODIES;
		struct ls_store_chunk *c;

		if (first)
			bench_dictionary(m, g);
		c = &m->u.report.chunks[m->u.report.chunk_count++];
		c->kind = LS_WIRE_CHUNK;
		c->hash = g + 1;
		c->n = ROWS;
		c->t_first_us = t_us - 60 * S;
		c->t_last_us = t_us - S;
		c->map.offset_ns = (t_us - 160 * S) * 1000;
		c->body = b->body[n];
		c->body_len = b->body_len[n];
	}
	return m;
}

static void
bench_commit(struct bench *b, struct ls_write **batch, size_t count, int64_t t_us)
{
	bench_must(ls_store_commit(b->store, batch, count, t_us), "commit");
	for (size_t i = 0; i < count; i++)
		ls_write_free(batch[i]);
}

static void
bench_fill(struct bench *b)
{
	struct ls_write *batch[BATCH];
	struct ls_write *w;
	size_t n = 0;

	for (size_t h = 0; h < b->hosts; h++) {
		w = ls_write_new(LS_WRITE_WORKER, BEGIN_US);
		if (w == NULL)
			bench_must(-ENOMEM, "worker");
		w->u.worker.id = (int64_t)h + 1;
		memcpy(w->u.worker.ring_id, &w->u.worker.id, sizeof(w->u.worker.id));
		(void)snprintf(w->u.worker.info.job, sizeof(w->u.worker.info.job),
			"bench");
		(void)snprintf(w->u.worker.info.host, sizeof(w->u.worker.info.host),
			"host%05zu", h);
		w->u.worker.info.rank = (int32_t)h;
		batch[n++] = w;
		if (n == BATCH || h + 1 == b->hosts) {
			bench_commit(b, batch, n, BEGIN_US);
			n = 0;
		}
	}
	for (uint64_t minute = 0; minute < MINUTES; minute++) {
		for (size_t h = 0; h < b->hosts; h++) {
			/* Agents seal their chunks at moments of their own. */
			int64_t t_us = BEGIN_US + (int64_t)minute * 60 * S +
				(int64_t)(h * 60 * S / b->hosts);

			batch[n++] =
				bench_report(b, h, minute, t_us, minute == 0 && h == 0);
			if (n == BATCH || h + 1 == b->hosts) {
				bench_commit(b, batch, n, t_us);
				n = 0;
			}
		}
	}
}

/* What the keeper does, at once. */
static void
bench_roll(struct bench *b)
{
	struct ls_query *q = NULL;
	struct ls_roller *roller;
	struct ls_write *m;
	int64_t t_us = END_US;
	bool more;

	bench_must(ls_query_open(b->dir, &q), "roll-ups");
	roller = ls_roller_new(q);
	if (roller == NULL)
		bench_must(-ENOMEM, "roll-ups");
	for (; t_us <= END_US + 600 * S; t_us += more ? 0 : 60 * S) {
		bench_must(ls_roller_turn(roller, t_us, &m, &more), "roll-ups");
		if (m == NULL)
			continue;
		bench_must(ls_store_rollup(b->store, &m->u.rollup), "roll-ups");
		ls_write_free(m);
		ls_roller_told(roller, 0);
		more = true;
	}
	ls_roller_free(roller);
	ls_query_close(q);
}

static int
bench_pack_push(void *arg, struct ls_write *m)
{
	struct bench *b = arg;

	m->rc = ls_store_pack(b->store, &m->u.pack);
	bench_must(m->rc, "packing");
	ls_packer_told(b->packer, m);
	ls_write_free(m);
	return 0;
}

/* Likewise: the journal becomes units. */
static void
bench_pack(struct bench *b)
{
	const struct ls_packer_options options = { .dir = b->dir,
		.span_us = 60 * S,
		.events = LS_UNIT_EVENTS_MAX,
		.push = bench_pack_push,
		.arg = b };
	struct ls_packer_stats stats;
	uint64_t units = UINT64_MAX;
	bool more = false;

	bench_must(ls_packer_new(&options, &b->packer), "packing");
	for (ls_packer_stats(b->packer, &stats); stats.units != units;
		ls_packer_stats(b->packer, &stats)) {
		units = stats.units;
		bench_must(ls_packer_turn(b->packer, &more), "packing");
	}
	ls_packer_free(b->packer);
}

/* Who reports as the i-th: agents begin when they begin, and keep their turn. A prime
 * goes through all. */
static size_t
bench_turn(const struct bench *b, size_t i)
{
	return i * 999983 % b->hosts;
}

/* A step of all workers: four phases and a barrier, all a little different. */
static void
bench_step(struct bench *b, struct ls_step_table *t, uint64_t step)
{
	int64_t at_us = BEGIN_US + (int64_t)step * S;

	for (size_t i = 0; i < b->hosts; i++) {
		struct ls_record *r = &t->records[i];
		uint64_t compute_us = 700000 + (uint64_t)(20000 * bench_uniform(b));

		memset(r, 0, sizeof(*r));
		r->step = step;
		r->t_begin_ns = (at_us + (int64_t)(300 * bench_uniform(b))) * 1000;
		r->duration_ns = 980000000;
		r->phase_ns[LS_PHASE_INPUT_WAIT] =
			(uint64_t)(3000 * bench_uniform(b)) * 1000;
		r->phase_ns[LS_PHASE_SYNC_WAIT] = (960000 - compute_us) * 1000;
		r->phase_mask = 1u << LS_PHASE_INPUT_WAIT | 1u << LS_PHASE_SYNC_WAIT;
		r->barrier_count = 1;
		r->barrier[0].enter_ns = r->t_begin_ns + (int64_t)compute_us * 1000;
		r->barrier[0].exit_ns = (at_us + 960000) * 1000;
		t->runs[i] = (struct ls_step_run){ (int64_t)(step * b->hosts + i + 1),
			at_us, (int64_t)bench_turn(b, i) + 1, step, 1, 50000 };
	}
}

/* Puts packed steps into the file, with the store closed. */
static void
bench_steps(struct bench *b)
{
	struct ls_step_table t = { b->hosts, b->hosts,
		calloc(b->hosts, sizeof(*t.runs)),
		calloc(b->hosts, sizeof(*t.records)) };
	struct ls_step_codec *codec = ls_step_codec_new();
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	char path[PATH_MAX];

	if (t.runs == NULL || t.records == NULL || codec == NULL)
		bench_must(-ENOMEM, "steps");
	bench_must(ls_days_path(path, b->dir, 20261121), "steps");
	bench_must(ls_db_open(path, LS_DB_WRITE, &db), path);
	bench_must(
		ls_db_prepare(db,
			"INSERT INTO step_rows VALUES (?1, ?2, 1, ?3, ?4, ?4, 0, 0, ?5)",
			&stmt),
		path);
	bench_must(ls_db_exec(db, "BEGIN"), path);
	for (uint64_t step = 0; step < STEPS; step++) {
		const uint8_t *body = NULL;
		size_t len = 0;

		bench_step(b, &t, step);
		bench_must(ls_step_rows_encode(codec, &t, &body, &len), "steps");
		/* parameters that are there */
		(void)sqlite3_bind_int64(stmt, 1, t.runs[0].id);
		(void)sqlite3_bind_int64(stmt, 2, t.runs[b->hosts - 1].id);
		(void)sqlite3_bind_int64(stmt, 3, (int64_t)b->hosts);
		(void)sqlite3_bind_int64(stmt, 4, (int64_t)step);
		(void)sqlite3_bind_blob(stmt, 5, body, (int)len, SQLITE_STATIC);
		bench_must(ls_db_run(stmt), "steps");
	}
	(void)sqlite3_finalize(stmt); /* its errors were told when it ran */
	bench_must(ls_db_exec(db, "COMMIT"), path);
	ls_db_close(db);
	ls_step_codec_free(codec);
	free(t.runs);
	free(t.records);
}

/* --- ingest beside it ----------------------------------------------------- */

/* What an agent sends each second. */
static void
bench_second(struct bench *b, struct ls_write *m, size_t host)
{
	struct ls_store_report *r = &m->u.report;
	struct ls_store_item *item = &r->items[0];
	struct ls_store_counters *c = &r->counters[0];
	struct ls_record record = { .step = b->steps,
		.t_begin_ns = (int64_t)b->steps * 1000000000,
		.duration_ns = 980000000,
		.barrier_count = 1 };
	uint8_t *data = NULL;
	const struct ls_wire_item wire = { .kind = LS_WIRE_STEPS,
		.seq = b->steps,
		.first_index = b->steps,
		.count = 1,
		.records = &record };

	record.barrier[0].enter_ns = record.t_begin_ns + 700000000 + (int64_t)host;
	record.barrier[0].exit_ns = record.t_begin_ns + 960000000;
	bench_must(ls_test_item_pack(&wire, &data, &item->len), "item");
	item->data = data;
	r->owner = data;
	r->item_count = r->counters_count = 1;
	r->last_seq = b->steps;
	item->kind = LS_WIRE_STEPS;
	item->worker_id = (int64_t)host + 1;
	memcpy(item->ring_id, &item->worker_id, sizeof(item->worker_id));
	item->first_index = b->steps;
	item->count = 1;
	item->high = b->steps + 1;
	item->step_lo = item->step_hi = b->steps;
	item->t_lo_us = m->t_us - S;
	item->t_hi_us = m->t_us;
	memcpy(c->host, r->host, sizeof(c->host));
	c->read_us = m->t_us;
	c->count = LS_HOT_MAX;
	for (size_t i = 0; i < LS_HOT_MAX; i++) {
		c->metric[i] = (uint16_t)(3 * i);
		c->value[i] = (double)host * 0.125 + (double)i;
	}
}

/* Of the chunks of a minute those of its tenth of a second: the report has room for
 * them anyway. */
static struct ls_write *
bench_beat(struct bench *b, size_t host, uint64_t beat, int64_t t_us)
{
	struct ls_write *m = bench_report(b, host, MINUTES + beat / 600, t_us, false);

	bench_second(b, m, host);
	if (host % 60 == beat / 10 % 60)
		return m;
	m->u.report.chunk_count = 0;
	m->u.report.last_chunk_seq = 0;
	return m;
}

/* A tenth of all hosts, each tenth of a second. */
static void *
bench_ingest(void *arg)
{
	struct bench *b = arg;
	struct ls_write *batch[BATCH];
	uint64_t next_ns = ls_clock_mono_ns(), beat;
	const struct timespec nap = { 0, 1000000 };
	int64_t t_us = END_US;

	for (beat = 0; !atomic_load(&b->stop);
		beat++, t_us += S / 10, next_ns += 100000000) {
		size_t n = 0;

		while (ls_clock_mono_ns() < next_ns)
			(void)nanosleep(&nap, NULL); /* woken early: looks again */
		b->steps = STEPS + beat / 10;
		for (size_t host = beat % 10; host < b->hosts && n < BATCH; host += 10)
			batch[n++] = bench_beat(b, host, beat, t_us);
		bench_commit(b, batch, n, t_us);
		b->ingested += n;
	}
	return NULL;
}

/* --- questions ------------------------------------------------------------ */

static bool
bench_sink(void *arg, const char *text, size_t len)
{
	size_t *total = arg;

	(void)text;
	*total += len;
	return true;
}

/* What this thread computed. */
static double
bench_cpu_ms(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* always there on Linux */
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
bench_ask(struct bench *b, struct ls_questions *q, const char *name, struct ls_ask *ask,
	size_t rounds)
{
	double ms[ROUNDS], cpu_ms[ROUNDS];
	size_t len = 0;

	for (size_t i = 0; i < rounds; i++) {
		uint64_t start_ns;

		if (ask->kind == LS_ASK_HISTORY)
			(void)snprintf(ask->host, sizeof(ask->host), "host%05zu",
				(size_t)(bench_uniform(b) * (double)b->hosts));
		if (ask->kind == LS_ASK_STEP)
			ask->step = (uint64_t)(bench_uniform(b) * STEPS);
		cpu_ms[i] = -bench_cpu_ms();
		start_ns = ls_clock_mono_ns();
		bench_must(ls_questions_answer(q, ask, NULL, bench_sink, &len), name);
		ms[i] = (double)(ls_clock_mono_ns() - start_ns) / 1e6;
		cpu_ms[i] += bench_cpu_ms();
	}
	qsort(ms, rounds, sizeof(ms[0]), bench_compare);
	qsort(cpu_ms, rounds, sizeof(cpu_ms[0]), bench_compare);
	if (strstr(name, "_alone") == NULL)
		(void)printf("%s %.2f ms\n", name, ms[rounds * 99 / 100]);
	(void)printf(
		"%s_p50 %.2f ms\n%s_p99 %.2f ms\n%s_cpu_p50 %.2f ms\n%s_cpu_p99 %.2f ms\n%s_answer %zu bytes\n",
		name, ms[rounds / 2], name, ms[rounds * 99 / 100], name,
		cpu_ms[rounds / 2], name, cpu_ms[rounds * 99 / 100], name,
		len / rounds);
	(void)fflush(stdout);
}

static void
bench_questions(struct bench *b, struct ls_questions *q, const char *beside)
{
	struct ls_ask ask = { .kind = LS_ASK_HISTORY,
		.from_us = BEGIN_US,
		.to_us = END_US - 1,
		.step_s = -1,
		.limit = LS_PAGE_MAX,
		.job = "bench" };
	char name[64];

	(void)snprintf(ask.series, sizeof(ask.series),
		"chip.bench.series_ratio{core=\"41\"}");
	(void)snprintf(name, sizeof(name), "query_series%s_ms", beside);
	bench_ask(b, q, name, &ask, ROUNDS);
	ask.step_s = 0;
	(void)snprintf(name, sizeof(name), "query_series_raw%s_ms", beside);
	bench_ask(b, q, name, &ask, ROUNDS);
	ask.kind = LS_ASK_FLEET;
	ask.host[0] = '\0';
	ask.from_us = BEGIN_US + 30 * 60 * S;
	ask.to_us = ask.from_us + 60 * S - 1;
	ask.step_s = 30;
	(void)snprintf(name, sizeof(name), "query_minutes%s_ms", beside);
	bench_ask(b, q, name, &ask, FLEET_ROUNDS);
	(void)snprintf(ask.series, sizeof(ask.series), "host.bench.series41_total");
	ask.from_us = BEGIN_US;
	ask.to_us = END_US - 1;
	ask.step_s = 60;
	(void)snprintf(name, sizeof(name), "query_fleet_page%s_ms", beside);
	bench_ask(b, q, name, &ask, FLEET_ROUNDS);
	ask.band = true;
	(void)snprintf(name, sizeof(name), "query_fleet%s_ms", beside);
	bench_ask(b, q, name, &ask, FLEET_ROUNDS);
	ask.kind = LS_ASK_STEP;
	(void)snprintf(name, sizeof(name), "query_step%s_ms", beside);
	bench_ask(b, q, name, &ask, ROUNDS);
	ask.limit = LS_PAGE_DEFAULT;
	(void)snprintf(name, sizeof(name), "query_step_first%s_ms", beside);
	bench_ask(b, q, name, &ask, ROUNDS);
}

static int
bench_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int
main(void)
{
	const char *hosts = getenv("LOCKSTEP_BENCH_HOSTS");
	struct bench *b = calloc(1, sizeof(*b));
	struct ls_store_stats stats = { 0 };
	struct ls_questions *q;
	pthread_t thread;

	if (b == NULL)
		return 1;
	ls_log_set_level(LS_LOG_ERR);
	b->hosts = hosts != NULL ? strtoul(hosts, NULL, 10) : 1000;
	if (b->hosts == 0 || b->hosts > LS_AGENTS_MAX)
		b->hosts = 1000;
	b->seed = 88172645463325252u;
	(void)snprintf(b->dir, sizeof(b->dir), "%s/lockstep-bench-XXXXXX",
		getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
	if (mkdtemp(b->dir) == NULL)
		bench_must(-errno, b->dir);
	for (size_t i = 0; i < BODIES; i++)
		bench_body(b, i);
	bench_must(ls_store_open(b->dir, BEGIN_US, &b->store), "store");
	bench_fill(b);
	bench_roll(b);
	bench_pack(b);
	ls_store_close(b->store);
	bench_steps(b);
	bench_must(ls_store_open(b->dir, END_US, &b->store), "store");
	ls_store_stats(b->store, &stats);
	(void)printf("query_hosts %zu hosts\nquery_store_bytes %llu bytes\n", b->hosts,
		(unsigned long long)ls_days_bytes(b->dir, 20261121));
	q = ls_questions_new(b->dir);
	if (q == NULL)
		bench_must(-ENOMEM, "questions");
	bench_questions(b, q, "_alone");
	bench_must(-pthread_create(&thread, NULL, bench_ingest, b), "thread");
	bench_questions(b, q, "");
	atomic_store(&b->stop, true);
	(void)pthread_join(thread, NULL); /* ours, and it ends */
	(void)printf("query_ingested %llu reports\n", (unsigned long long)b->ingested);
	ls_questions_free(q);
	ls_store_close(b->store);
	for (size_t i = 0; i < BODIES; i++)
		free(b->body[i]);
	/* what is left is seen */
	(void)nftw(b->dir, bench_remove, 16, FTW_DEPTH | FTW_PHYS);
	free(b);
	return 0;
}

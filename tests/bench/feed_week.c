/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a state directory through the real write side, as if a collector had run there
 * until now.
 *
 *   feed_week DIR DAYS HOSTS
 *
 * HOSTS hosts with a worker each of one job: a step record a second, an item each; 12
 * hot values a second over the last two days; two chunks a minute, of 60 series and 60
 * rows, all of one body made by the real encoder. Ten minutes are one commit. Prints
 * "name value unit".
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/chunk/chunk.h"
#include "storage/db/days.h"
#include "storage/write/store.h"
#include "tests/support/wire_pack.h"

enum {
	COLUMNS = 60,
	ROWS = 60,
	MINUTES = 10,
	SECONDS = MINUTES * 60,
	HOT = 12,
	ITEM_MAX = 256
};
enum { GROUPS = 2, HOSTS_MAX = 10000 };

#define S 1000000ll
#define DAY_US (86400 * S)

static const char *const week_groups[GROUPS] = { "host.fast", "tpu.gauges" };

struct week {
	struct ls_store *store;
	size_t hosts;
	int64_t begin_us, end_us;
	uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	size_t body_len;
	uint64_t hash[GROUPS];
	char text[GROUPS][COLUMNS * 32]; /* of the series, each with a NUL behind it */
	size_t text_len[GROUPS];
	/* of one commit: SECONDS of each host, ITEM_MAX bytes each */
	uint8_t *items;
	uint64_t seed, records;
};

static void
week_must(int rc, const char *what)
{
	if (rc == 0)
		return;
	(void)fprintf(stderr, "feed_week: %s: %s\n", what, ls_err_text(rc));
	exit(1);
}

static void
week_must_have(const void *p)
{
	if (p == NULL)
		week_must(-ENOMEM, "memory");
}

static uint64_t
week_random(struct week *w, uint64_t below)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (w->seed >> 33) % below;
}

static void
week_make_series(struct week *w)
{
	const char *series[COLUMNS];
	size_t g, i;

	for (g = 0; g < GROUPS; g++) {
		char *at = w->text[g];

		for (i = 0; i < COLUMNS; i++) {
			series[i] = at;
			at += snprintf(at, 32, "%s.series%zu", week_groups[g], i) + 1;
		}
		w->text_len[g] = (size_t)(at - w->text[g]);
		w->hash[g] = ls_wire_dictionary_hash(week_groups[g], series, COLUMNS);
	}
}

static void
week_make_body(struct week *w)
{
	struct ls_chunk_codec *codec = ls_chunk_codec_new(COLUMNS, ROWS);
	static double value[COLUMNS * ROWS];
	static bool present[COLUMNS * ROWS];
	uint64_t t[ROWS];
	struct ls_chunk_table table = { ROWS, COLUMNS, ROWS, t, value, present };
	size_t i;

	week_must_have(codec);
	for (i = 0; i < ROWS; i++)
		t[i] = i * 1000000000ull;
	for (i = 0; i < COLUMNS * ROWS; i++) {
		present[i] = true;
		value[i] = 1000.0 + (double)week_random(w, 8);
	}
	week_must(
		ls_chunk_encode(codec, &table, w->body, sizeof(w->body), &w->body_len),
		"a chunk");
	ls_chunk_codec_free(codec);
}

/* The ring of a worker, and the boot of its agent. */
static void
week_id(uint8_t id[LS_RING_ID_BYTES], size_t host, uint8_t what)
{
	memset(id, what, LS_RING_ID_BYTES);
	memcpy(id, &host, sizeof(host));
}

static void
week_workers(struct week *w)
{
	size_t h;

	for (h = 0; h < w->hosts; h++) {
		struct ls_write *m = ls_write_new(LS_WRITE_WORKER, w->begin_us);
		struct ls_worker_info *info;

		week_must_have(m);
		info = &m->u.worker.info;
		m->u.worker.id = (int64_t)h + 1;
		m->u.worker.first_us = w->begin_us;
		week_id(m->u.worker.ring_id, h, 1);
		(void)snprintf(info->job, sizeof(info->job), "week");
		(void)snprintf(info->host, sizeof(info->host), "w%04zu", h);
		info->rank = (int32_t)h;
		info->world = (int32_t)w->hosts;
		info->chips = 4;
		week_must(ls_store_commit(w->store, &m, 1, w->begin_us), "a worker");
		ls_write_free(m);
	}
}

static void
week_step(struct week *w, struct ls_store_item *item, size_t host, uint64_t step,
	uint8_t *buf)
{
	int64_t t_us = w->begin_us + (int64_t)step * S;
	struct ls_record r = { .step = step, .duration_ns = 950000000 };
	struct ls_wire_item wire = { .seq = step + 1,
		.kind = LS_WIRE_STEPS,
		.first_index = step,
		.count = 1,
		.records = &r };
	uint8_t *packed = NULL;
	size_t len = 0;

	r.t_begin_ns = (int64_t)step * 1000000000;
	r.phase_ns[LS_PHASE_COMPUTE] = 900000000 + week_random(w, 3000) * 1000;
	r.phase_ns[LS_PHASE_SYNC_WAIT] = 950000000 - r.phase_ns[LS_PHASE_COMPUTE];
	r.phase_mask = 1u << LS_PHASE_COMPUTE | 1u << LS_PHASE_SYNC_WAIT;
	r.barrier_count = 1;
	r.barrier[0].kind = LS_BARRIER_ICI;
	r.barrier[0].enter_ns = r.t_begin_ns + (int64_t)r.phase_ns[LS_PHASE_COMPUTE];
	r.barrier[0].exit_ns = r.t_begin_ns + 950000000;
	week_id(wire.ring_id, host, 1);
	week_must(ls_test_item_pack(&wire, &packed, &len), "an item");
	if (len > ITEM_MAX)
		week_must(-LS_ELIMIT, "an item");
	memcpy(buf, packed, len);
	free(packed);
	item->kind = LS_WIRE_STEPS;
	item->worker_id = (int64_t)host + 1;
	week_id(item->ring_id, host, 1);
	item->first_index = item->step_lo = item->step_hi = step;
	item->count = 1;
	item->high = step + 1;
	item->t_lo_us = t_us;
	item->t_hi_us = t_us + 950000;
	item->map.offset_ns = w->begin_us * 1000;
	item->data = buf;
	item->len = len;
	w->records++;
}

static void
week_hot(struct week *w, struct ls_store_counters *c, size_t host, int64_t t_us)
{
	size_t i;

	(void)snprintf(c->host, sizeof(c->host), "w%04zu", host);
	c->read_us = t_us;
	for (i = 0; i < HOT && ls_metric_hot((unsigned)i) != LS_METRIC_COUNT; i++) {
		c->metric[i] = (uint16_t)ls_metric_hot((unsigned)i);
		c->value[i] = 0.5 + (double)week_random(w, 100);
	}
	c->count = i;
}

static void
week_chunks(struct week *w, struct ls_store_report *r, int64_t t_us, bool named)
{
	struct ls_store_chunk *c;
	size_t g, m;

	for (g = 0; g < GROUPS && named; g++) {
		c = &r->chunks[r->chunk_count++];
		c->kind = LS_WIRE_DICTIONARY;
		c->hash = w->hash[g];
		(void)snprintf(c->group, sizeof(c->group), "%s", week_groups[g]);
		c->series = malloc(w->text_len[g]);
		week_must_have(c->series);
		memcpy(c->series, w->text[g], w->text_len[g]);
		c->series_len = w->text_len[g];
	}
	for (m = 0; m < MINUTES; m++) {
		for (g = 0; g < GROUPS; g++) {
			c = &r->chunks[r->chunk_count++];
			c->kind = LS_WIRE_CHUNK;
			c->hash = w->hash[g];
			c->t_first_us = t_us + (int64_t)m * 60 * S;
			c->t_last_us = c->t_first_us + 59 * S;
			c->map.offset_ns = c->t_first_us * 1000;
			c->n = ROWS;
			c->body = w->body;
			c->body_len = w->body_len;
		}
	}
}

/* Ten minutes of one host. */
static struct ls_write *
week_report(struct week *w, size_t host, int64_t t_us)
{
	uint64_t step = (uint64_t)((t_us - w->begin_us) / S), i;
	bool hot = t_us >= w->end_us - 2 * DAY_US;
	struct ls_write *m = ls_write_new_report(SECONDS, hot ? SECONDS : 0,
		GROUPS * (MINUTES + 1), t_us);
	struct ls_store_report *r;

	week_must_have(m);
	r = &m->u.report;
	week_id(r->boot, host, 2);
	(void)snprintf(r->host, sizeof(r->host), "w%04zu", host);
	r->last_seq = step + SECONDS;
	r->last_chunk_seq = (step + SECONDS) / 60 * GROUPS;
	for (i = 0; i < SECONDS; i++)
		week_step(w, &r->items[r->item_count++], host, step + i,
			w->items + (host * SECONDS + i) * ITEM_MAX);
	for (i = 0; i < SECONDS && hot; i++)
		week_hot(w, &r->counters[r->counters_count++], host,
			t_us + (int64_t)i * S);
	week_chunks(w, r, t_us,
		host == 0 && (step == 0 || (step / SECONDS) % 144 == 0));
	return m;
}

static void
week_fill(struct week *w)
{
	struct ls_write **batch = calloc(w->hosts, sizeof(struct ls_write *));
	int64_t t_us;
	size_t h;

	week_must_have(batch);
	for (t_us = w->begin_us; t_us < w->end_us; t_us += SECONDS * S) {
		for (h = 0; h < w->hosts; h++)
			batch[h] = week_report(w, h, t_us);
		week_must(
			ls_store_commit(w->store, batch, w->hosts, t_us + SECONDS * S),
			"a commit");
		for (h = 0; h < w->hosts; h++)
			ls_write_free(batch[h]);
	}
	free(batch);
}

int
main(int argc, char **argv)
{
	struct week *w = calloc(1, sizeof(*w));
	long days = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
	long hosts = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	struct ls_store_stats stats;

	if (days < 1 || days > 366 || hosts < 1 || hosts > HOSTS_MAX) {
		(void)fprintf(stderr, "usage: feed_week DIR DAYS HOSTS\n");
		return 2;
	}
	week_must_have(w);
	ls_log_set_level(LS_LOG_WARN);
	w->hosts = (size_t)hosts;
	w->seed = 1;
	/* Not into the future: the last commit is of now. */
	w->end_us = ls_clock_wall_ns() / 1000 / (SECONDS * S) * (SECONDS * S);
	w->begin_us = w->end_us - days * DAY_US;
	w->items = malloc(w->hosts * SECONDS * ITEM_MAX);
	week_must_have(w->items);
	week_make_series(w);
	week_make_body(w);
	week_must(ls_store_open(argv[1], w->begin_us, &w->store), argv[1]);
	week_workers(w);
	week_fill(w);
	ls_store_stats(w->store, &stats);
	ls_store_close(w->store);
	(void)printf("start_week_records %llu 1\nstart_week_chunk_bytes %llu bytes\n",
		(unsigned long long)w->records, (unsigned long long)stats.chunk_bytes);
	free(w->items);
	free(w);
	return 0;
}

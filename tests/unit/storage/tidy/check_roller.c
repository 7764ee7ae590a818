/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "storage/tidy/roller.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/log.h"
#include "storage/read/query_rollup.h"
#include "storage/columns/rollup_sum.h"
#include "storage/write/store.h"
#include "tests/support/chunk_table.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"

#define TODAY 20261121
#define NOON (ls_days_begin_us(TODAY) + 12 * LS_ROLLUP_HOUR_US)
#define SECOND_US 1000000ll

static char dir[PATH_MAX];
static struct ls_store *store;
static struct ls_query *q;
static struct ls_roller *roller;
static struct ls_roller_stats stats;
static uint64_t chunk_seq;

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, NOON, &store), 0);
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	roller = ls_roller_new(q);
	ck_assert_ptr_nonnull(roller);
	chunk_seq = 0;
}

static void
teardown(void)
{
	ls_roller_free(roller);
	ls_query_close(q);
	ls_store_close(store);
}

/* --- what agents send ----------------------------------------------------- */

static void
commit(struct ls_write *m, int64_t wall_us)
{
	ck_assert_int_eq(ls_store_commit(store, &m, 1, wall_us), 0);
	ls_write_free(m);
}

static struct ls_write *
report(const char *host, int64_t t_us)
{
	struct ls_write *m = ls_write_new_report(0, 0, 1, t_us);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "%s", host);
	m->u.report.last_chunk_seq = ++chunk_seq;
	m->u.report.chunk_count = 1;
	return m;
}

static void
put_dictionary(uint64_t hash, int64_t wall_us)
{
	static const char text[] =
		"host.temp_celsius\0chip.hbm_bytes{chip=\"0\"}\0chip.hbm_bytes{chip=\"1\"}";
	struct ls_write *m = report("a", wall_us);
	struct ls_store_chunk *c = m->u.report.chunks;

	c->kind = LS_WIRE_DICTIONARY;
	c->hash = hash;
	(void)snprintf(c->group, sizeof(c->group), "g");
	c->series = malloc(sizeof(text));
	ck_assert_ptr_nonnull(c->series);
	memcpy(c->series, text, sizeof(text));
	c->series_len = sizeof(text);
	commit(m, wall_us);
}

/* chunk_table, made by the caller, as a chunk whose first row is measured at t_us. */
static void
put_chunk(const char *host, uint64_t hash, int64_t t_us, int64_t wall_us, bool sound)
{
	static uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	struct ls_chunk_codec *codec =
		ls_chunk_codec_new(CHUNK_TABLE_COLUMNS, CHUNK_TABLE_ROWS);
	struct ls_write *m = report(host, wall_us);
	struct ls_store_chunk *c = m->u.report.chunks;

	ck_assert_ptr_nonnull(codec);
	ck_assert_int_eq(
		ls_chunk_encode(codec, &chunk_table, body, sizeof(body), &c->body_len),
		0);
	ls_chunk_codec_free(codec);
	body[7] = (uint8_t)(body[7] ^ !sound);
	c->kind = LS_WIRE_CHUNK;
	c->hash = hash;
	c->map.ref_mono_ns = (int64_t)chunk_table.t_mono_ns[0];
	c->map.offset_ns = t_us * 1000 - c->map.ref_mono_ns;
	c->t_first_us = t_us;
	c->t_last_us = t_us + (int64_t)(chunk_table.rows - 1) * SECOND_US;
	c->n = (uint32_t)chunk_table.rows;
	c->body = body;
	commit(m, wall_us);
}

/* A minute of whole numbers, a row a second. */
static void
make_minute(size_t seed)
{
	chunk_table_make(60, 3);
	for (size_t i = 0; i < 60; i++) {
		chunk_table.value[i] = (double)(40 + (i * seed) % 7);
		chunk_table.value[CHUNK_TABLE_ROWS + i] = (double)(1000 * seed + i);
		chunk_table.value[2 * CHUNK_TABLE_ROWS + i] = 5;
	}
}

/* --- what comes of it ----------------------------------------------------- */

/* Turns until nothing is written and nothing more is to be done. */
static void
run(int64_t now_us)
{
	struct ls_write *m;
	bool more;

	do {
		ck_assert_int_eq(ls_roller_turn(roller, now_us, &m, &more), 0);
		if (m != NULL) {
			ck_assert_int_eq(ls_store_rollup(store, &m->u.rollup), 0);
			ls_write_free(m);
			ls_roller_told(roller, 0);
			more = true;
		}
	} while (more);
	ls_roller_stats(roller, &stats);
}

struct total {
	uint64_t count, parts;
	double sum, min, max;
	const char *host;
};

static bool
is_host(void *arg, const char *name)
{
	const struct total *t = arg;

	return t->host == NULL || strcmp(t->host, name) == 0;
}

static int
add_part(void *arg, const struct ls_rollup_part *part)
{
	struct total *t = arg;

	t->parts++;
	for (size_t i = 0; i < part->count; i++) {
		const struct ls_rollup_columns *c = &part->columns;
		size_t at = part->row[i];

		ck_assert_ptr_nonnull(part->host[c->host_id[at]]);
		ck_assert_ptr_nonnull(part->labels[c->labels_id[at]]);
		t->count += c->n[at];
		t->sum += c->sum[at];
		t->min = fmin(t->min, c->min[at]);
		t->max = fmax(t->max, c->max[at]);
	}
	return 0;
}

static struct total
total(const char *metric, uint32_t span_s, int64_t from_us, int64_t to_us,
	const char *host)
{
	struct total t = { .min = INFINITY, .max = -INFINITY, .host = host };
	struct ls_rollup_wanted w = { .metric = metric,
		.span_s = span_s,
		.from_us = from_us,
		.to_us = to_us,
		.columns = LS_ROLLUP_ALL,
		.host = is_host,
		.arg = &t };
	struct ls_rollup_reader *r = ls_rollup_reader_new(q);
	uint64_t bad;

	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(ls_rollup_read(r, &w, add_part, &t, &bad), 0);
	ck_assert_uint_eq(bad, 0);
	ls_rollup_reader_free(r);
	return t;
}

LS_CASE(rows, setup, teardown);

LS_TEST(rows, a_minute_is_written_when_it_is_three_minutes_old)
{
	struct total t;

	put_dictionary(7, NOON);
	make_minute(1);
	put_chunk("a", 7, NOON + 30 * SECOND_US, NOON + 100 * SECOND_US, true);
	make_minute(2);
	put_chunk("b", 7, NOON, NOON + 100 * SECOND_US, true);
	run(NOON + 100 * SECOND_US);
	ck_assert_uint_eq(stats.chunks, 2);
	ck_assert_uint_eq(stats.samples, 360);
	ck_assert_uint_eq(stats.rows, 0);
	run(NOON + 180 * SECOND_US);
	t = total("chip.hbm_bytes", 60, NOON, NOON + LS_ROLLUP_HOUR_US, NULL);
	ck_assert_uint_eq(t.count, 2 * (30 + 60));
	t = total("chip.hbm_bytes", 60, NOON, NOON + LS_ROLLUP_HOUR_US, "b");
	ck_assert_uint_eq(t.count, 120);
	ck_assert_double_eq(t.min, 5);
	ck_assert_double_eq(t.max, 2059);
	ck_assert_double_eq(t.sum, 60 * 5 + 60 * 2000 + 59 * 30);
	run(NOON + 240 * SECOND_US);
	t = total("chip.hbm_bytes", 60, NOON, NOON + LS_ROLLUP_HOUR_US, "a");
	ck_assert_uint_eq(t.count, 120);
	ck_assert_uint_eq(t.parts, 2);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count,
		120);
	ck_assert_uint_eq(total("unknown", 60, 0, INT64_MAX, NULL).count, 0);
}

LS_TEST(rows, late_samples_make_rows_that_add_up)
{
	struct total t;

	put_dictionary(7, NOON);
	make_minute(1);
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, true);
	run(NOON + 60 * SECOND_US);
	run(NOON + 300 * SECOND_US);
	run(NOON + 2 * LS_ROLLUP_HOUR_US); /* the hour, too */
	t = total("chip.hbm_bytes", 3600, NOON, NOON + 1, NULL);
	ck_assert_uint_eq(t.count, 120);
	ck_assert_double_eq(t.sum, total("chip.hbm_bytes", 60, 0, INT64_MAX, NULL).sum);
	make_minute(3);
	put_chunk("b", 7, NOON, NOON + 2 * LS_ROLLUP_HOUR_US, true);
	run(NOON + 2 * LS_ROLLUP_HOUR_US + SECOND_US);
	/* it waits for more */
	ck_assert_uint_eq(total("chip.hbm_bytes", 60, 0, INT64_MAX, NULL).count, 120);
	run(NOON + 2 * LS_ROLLUP_HOUR_US + 62 * SECOND_US);
	t = total("chip.hbm_bytes", 60, 0, INT64_MAX, NULL);
	ck_assert_uint_eq(t.count, 240);
	ck_assert_uint_eq(t.parts, 2);
	ck_assert_double_eq(t.sum,
		total("chip.hbm_bytes", 3600, 0, INT64_MAX, NULL).sum);
	ck_assert_uint_eq(total("chip.hbm_bytes", 3600, 0, INT64_MAX, NULL).count, 240);
}

/* Of [from, to) with whole hours as such. */
static struct total
mixed(int64_t from_us, int64_t to_us)
{
	struct total t = { .min = INFINITY, .max = -INFINITY };
	const struct ls_rollup_wanted w = { .metric = "chip.hbm_bytes",
		.span_s = 60,
		.hours = true,
		.from_us = from_us,
		.to_us = to_us,
		.columns = LS_ROLLUP_ALL };
	struct ls_rollup_reader *r = ls_rollup_reader_new(q);
	uint64_t bad;

	ck_assert_int_eq(ls_rollup_read(r, &w, add_part, &t, &bad), 0);
	ls_rollup_reader_free(r);
	return t;
}

LS_TEST(rows, whole_hours_stand_for_their_minutes_once_they_are_made)
{
	const int64_t hour = LS_ROLLUP_HOUR_US, minute = 60 * SECOND_US;
	struct total t;

	put_dictionary(7, NOON);
	make_minute(1);
	for (int i = 0; i < 4; i++)
		put_chunk("a", 7, NOON + i * 30 * minute, NOON + (i * 30 + 1) * minute,
			true);
	run(NOON + 94 * minute);
	run(NOON + 96 * minute); /* four minutes; the first hour */
	t = mixed(NOON, NOON + 2 * hour);
	ck_assert_uint_eq(t.count, 4 * 120);
	ck_assert_uint_eq(t.parts, 3);
	ck_assert_double_eq(t.sum, total("chip.hbm_bytes", 60, 0, INT64_MAX, NULL).sum);
	ck_assert_uint_eq(mixed(NOON + minute, NOON + 2 * hour).count, 3 * 120);
	ck_assert_uint_eq(mixed(NOON, NOON + 45 * minute).parts, 2);
	run(NOON + 3 * hour);
	ck_assert_uint_eq(mixed(NOON, NOON + 2 * hour).parts, 2);
	ck_assert_uint_eq(mixed(NOON, NOON + 2 * hour).count, 4 * 120);
	ck_assert_uint_eq(mixed(NOON, NOON + 2 * hour - minute).parts, 3);
	/* late: a row of the minute and of its hour */
	put_chunk("b", 7, NOON + 10 * minute, NOON + 3 * hour, true);
	run(NOON + 3 * hour + minute);
	run(NOON + 3 * hour + 3 * minute);
	t = mixed(NOON, NOON + 2 * hour);
	ck_assert_uint_eq(t.parts, 3);
	ck_assert_uint_eq(t.count, 5 * 120);
}

LS_TEST(rows, what_is_no_number_is_not_counted)
{
	struct total t;

	put_dictionary(7, NOON);
	make_minute(1);
	chunk_table.value[3] = NAN;
	chunk_table.value[4] = INFINITY;
	chunk_table_remove(0, 5);
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, true);
	run(NOON);
	run(NOON + 300 * SECOND_US);
	t = total("host.temp_celsius", 60, 0, INT64_MAX, NULL);
	ck_assert_uint_eq(t.count, 57);
	ck_assert_double_le(t.max, 46);
}

LS_TEST(rows, bad_chunks_are_counted_and_the_rest_goes_on)
{
	put_dictionary(7, NOON);
	make_minute(1);
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, false);
	chunk_table.columns = 2; /* not as the dictionary says */
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, true);
	make_minute(1);
	/* from the future */
	put_chunk("a", 7, NOON + 1200 * SECOND_US, NOON + 60 * SECOND_US, true);
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, true);
	run(NOON);
	run(NOON + 300 * SECOND_US);
	ck_assert_uint_eq(stats.bad_chunks, 2);
	ck_assert_uint_eq(stats.left_out, 180);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count, 60);
}

LS_TEST(rows, a_chunk_before_its_dictionary_is_put_off)
{
	put_dictionary(7, NOON);
	make_minute(1);
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, true);
	put_chunk("b", 9, NOON + 30 * SECOND_US, NOON + 60 * SECOND_US, true);
	run(NOON + 60 * SECOND_US);
	run(NOON + 300 * SECOND_US);
	ck_assert_uint_eq(stats.put_off, 1);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count, 60);
	ls_roller_free(roller); /* it is remembered */
	roller = ls_roller_new(q);
	ck_assert_ptr_nonnull(roller);
	run(NOON + 310 * SECOND_US);
	put_dictionary(9, NOON + 320 * SECOND_US);
	run(NOON + 330 * SECOND_US);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count,
		120);
	run(NOON + 600 * SECOND_US);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count,
		120);
	ck_assert_int_eq(ls_test_sql(dir, TODAY,
				 "SELECT count(*) FROM rollup_done WHERE span_s = -1"),
		0);
}

LS_TEST(rows, chunks_of_a_file_are_rolled_up_into_it)
{
	const int64_t midnight = ls_days_begin_us(20261122);

	put_dictionary(7, midnight - 90 * SECOND_US);
	make_minute(1);
	put_chunk("a", 7, midnight - 90 * SECOND_US, midnight - 10 * SECOND_US, true);
	run(midnight - 5 * SECOND_US);
	put_dictionary(7, midnight + 30 * SECOND_US);
	make_minute(2);
	put_chunk("a", 7, midnight - 30 * SECOND_US, midnight + 35 * SECOND_US, true);
	run(midnight + 40 * SECOND_US);
	ck_assert_int_gt(ls_test_sql(dir, TODAY,
				 "SELECT count(*) FROM rollup WHERE span_s = 60"),
		0);
	ck_assert_int_gt(ls_test_sql(dir, TODAY,
				 "SELECT count(*) FROM rollup WHERE span_s = 3600"),
		0);
	ck_assert_int_eq(ls_test_sql(dir, 20261122, "SELECT count(*) FROM rollup"), 0);
	run(midnight + 400 * SECOND_US);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count,
		120);
	ck_assert_uint_eq(
		total("host.temp_celsius", 60, midnight, INT64_MAX, NULL).count, 30);
}

/* --- stops ---------------------------------------------------------------- */

/* The same story again and again, stopped at one more moment each time; how often there
 * was one. */
static size_t
story(size_t stop_at)
{
	size_t moments = 0, i;

	for (i = 0; i < 24; i++) {
		int64_t wall = NOON + (int64_t)i * 45 * SECOND_US;
		struct ls_write *m;
		bool more;

		if (i == 0)
			put_dictionary(7, wall);
		if (i == 10)
			put_dictionary(9, wall);
		make_minute(i + 1);
		if (i < 12)
			put_chunk(i % 2 == 0 ? "a" : "b", i == 6 ? 9 : 7,
				wall - (i == 8 ? 400 : 70) * SECOND_US, wall, true);
		do {
			bool stop = moments++ == stop_at;

			if (stop) {
				ls_roller_free(roller);
				roller = ls_roller_new(q);
				ck_assert_ptr_nonnull(roller);
			}
			ck_assert_int_eq(ls_roller_turn(roller, wall, &m, &more), 0);
			if (m == NULL)
				continue;
			stop = moments++ == stop_at;
			/* stopped before or after it was stored */
			if (!stop || stop_at % 2 == 0)
				ck_assert_int_eq(ls_store_rollup(store, &m->u.rollup),
					0);
			if (!stop)
				ls_roller_told(roller, 0);
			ls_write_free(m);
			more = true;
			if (stop) {
				ls_roller_free(roller);
				roller = ls_roller_new(q);
				ck_assert_ptr_nonnull(roller);
			}
		} while (more);
	}
	run(NOON + 3 * LS_ROLLUP_HOUR_US);
	run(NOON + 3 * LS_ROLLUP_HOUR_US + 100 * SECOND_US);
	return moments;
}

static void
assert_all_once(void)
{
	static const char *const metrics[] = { "host.temp_celsius", "chip.hbm_bytes" };
	size_t i;

	for (i = 0; i < 2; i++) {
		struct total minutes = total(metrics[i], 60, 0, INT64_MAX, NULL);
		struct total hours = total(metrics[i], 3600, 0, INT64_MAX, NULL);

		ck_assert_uint_eq(minutes.count, (i + 1) * 12 * 60);
		ck_assert_uint_eq(hours.count, minutes.count);
		ck_assert_double_eq(hours.sum, minutes.sum);
		if (i == 1)
			ck_assert_double_eq(minutes.sum,
				12 * 60 * 5 + 60 * 1000 * 78 + 12 * 59 * 30);
	}
}

LS_CASE(stops, setup, teardown);

LS_TEST(stops, a_stop_at_any_moment_changes_no_total)
{
	size_t moments, i;

	moments = story(SIZE_MAX);
	assert_all_once();
	ck_assert_uint_gt(moments, 30);
	for (i = 0; i < moments; i++) {
		teardown();
		setup();
		(void)story(i);
		assert_all_once();
	}
}

LS_TEST(stops, a_message_that_was_not_stored_is_made_again)
{
	struct ls_write *m, *again;
	bool more;

	put_dictionary(7, NOON);
	make_minute(1);
	put_chunk("a", 7, NOON, NOON + 60 * SECOND_US, true);
	run(NOON);
	ck_assert_int_eq(ls_roller_turn(roller, NOON + 300 * SECOND_US, &m, &more), 0);
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(ls_roller_turn(roller, NOON + 301 * SECOND_US, &again, &more),
		0);
	ck_assert_ptr_null(again); /* one at a time */
	ls_roller_told(roller, -LS_ESTALE);
	run(NOON + 300 * SECOND_US);
	run(NOON + 400 * SECOND_US);
	ck_assert_uint_eq(stats.restarts, 1);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count, 60);
	/* what it holds is in */
	ck_assert_int_eq(ls_store_rollup(store, &m->u.rollup), -LS_ESTALE);
	m->u.rollup.day = 20200101;
	/* no such file */
	ck_assert_int_eq(ls_store_rollup(store, &m->u.rollup), -LS_ESTALE);
	ls_write_free(m);
	ck_assert_uint_eq(total("host.temp_celsius", 60, 0, INT64_MAX, NULL).count, 60);
}

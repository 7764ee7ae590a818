/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/questions.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/chunk.h"
#include "storage/db.h"
#include "storage/query_series.h"
#include "storage/step_rows.h"
#include "storage/store.h"
#include "tests/harness.h"
#include "tests/rowmake.h"

#define S 1000000ll
#define TODAY 20261121
#define MIDNIGHT ls_days_begin_us(TODAY + 1) /* at the end of today */
#define ROWS 60

static char dir[PATH_MAX];
static struct ls_store *store;
static struct ls_questions *questions;
static uint64_t chunk_seq;

static void
setup(void)
{
	ls_log_set_level(LS_LOG_ERR);
	(void)snprintf(dir, sizeof(dir), "%s/state", ls_test_tmpdir());
	ck_assert_int_eq(ls_store_open(dir, MIDNIGHT - 3600 * S, &store), 0);
	questions = ls_questions_new(dir);
	ck_assert_ptr_nonnull(questions);
	chunk_seq = 0;
}

static void
teardown(void)
{
	ls_questions_free(questions);
	ls_store_close(store);
}

/* Commits one row of a host's stream of chunks at wall_us. */
static void
put(const char *host, const struct ls_store_chunk *chunk, int64_t wall_us)
{
	struct ls_write *m = ls_write_new_report(0, 0, 1, wall_us);

	ck_assert_ptr_nonnull(m);
	(void)snprintf(m->u.report.host, sizeof(m->u.report.host), "%s", host);
	memset(m->u.report.boot, host[0], sizeof(m->u.report.boot));
	m->u.report.last_chunk_seq = ++chunk_seq;
	m->u.report.chunks[m->u.report.chunk_count++] = *chunk;
	ck_assert_int_eq(ls_store_commit(store, &m, 1, wall_us), 0);
	ls_write_free(m);
}

static void
put_dictionary(const char *host, uint64_t hash, const char *group, const char *text, size_t len,
	int64_t wall_us)
{
	struct ls_store_chunk c = { .kind = LS_WIRE_DICTIONARY, .hash = hash, .series_len = len };

	(void)snprintf(c.group, sizeof(c.group), "%s", group);
	c.series = malloc(len);
	memcpy(c.series, text, len);
	put(host, &c, wall_us);
}

/*
 * A chunk of `columns` columns from t_us on, a row a second: value of column c, row i is base + i + 1000 c;
 * the third column is there in even rows, its first a NaN.
 */
static void
put_chunk(const char *host, uint64_t hash, size_t columns, double base, int64_t t_us, int64_t wall_us)
{
	static double value[3 * ROWS];
	static bool present[3 * ROWS];
	static uint64_t t_ns[ROWS];
	static uint8_t body[LS_CHUNK_BODY_MAX_BYTES];
	const struct ls_chunk_table table = { ROWS, columns, ROWS, t_ns, value, present };
	struct ls_chunk_codec *codec = ls_chunk_codec_new(columns, ROWS);
	struct ls_store_chunk c = { .kind = LS_WIRE_CHUNK, .hash = hash, .n = ROWS, .t_first_us = t_us,
		.t_last_us = t_us + (ROWS - 1) * S, .map = { .offset_ns = (t_us - 5 * S) * 1000 } };

	for (size_t i = 0; i < ROWS; i++) {
		t_ns[i] = (5 + i) * 1000000000ull;
		for (size_t k = 0; k < columns; k++) {
			present[k * ROWS + i] = k < 2 || i % 2 == 0;
			value[k * ROWS + i] = base + (double)i + 1000.0 * (double)k;
		}
	}
	if (columns > 2)
		value[2 * ROWS] = NAN;
	ck_assert_int_eq(ls_chunk_encode(codec, &table, body, sizeof(body), &c.body_len), 0);
	ls_chunk_codec_free(codec);
	c.body = body;
	put(host, &c, wall_us);
}

static const char three[] = "host.one\0chip.two{chip=\"0\",x=\"y\"}\0chip.two{chip=\"1\"}";

struct text {
	char *text;
	size_t len;
};

static bool
keep(void *arg, const char *piece, size_t len)
{
	struct text *t = arg;

	t->text = realloc(t->text, t->len + len);
	memcpy(t->text + t->len, piece, len);
	t->len += len;
	return true;
}

static struct ls_ask
history(const char *host, const char *series, int64_t from_us, int64_t to_us, int64_t step_s)
{
	struct ls_ask ask = { .kind = LS_ASK_HISTORY, .from_us = from_us, .to_us = to_us, .step_s = step_s,
		.limit = 100 };

	(void)snprintf(ask.host, sizeof(ask.host), "%s", host);
	(void)snprintf(ask.series, sizeof(ask.series), "%s", series);
	return ask;
}

static json_t *
answer(const struct ls_ask *ask)
{
	struct text t = { 0 };
	json_t *v;

	ck_assert_int_eq(ls_questions_answer(questions, ask, NULL, keep, &t), 0);
	v = json_loadb(t.text, t.len, 0, NULL);
	ck_assert_ptr_nonnull(v);
	free(t.text);
	return v;
}

static int
refused(const struct ls_ask *ask)
{
	struct text t = { 0 };
	int rc = ls_questions_answer(questions, ask, NULL, keep, &t);

	free(t.text);
	return rc;
}

static const json_t *
item(const json_t *v, size_t i)
{
	return json_array_get(json_object_get(v, "items"), i);
}

static double
at(const json_t *item, const char *key, size_t i)
{
	return json_number_value(json_array_get(json_object_get(item, key), i));
}

static const char *
text_of(const json_t *v, const char *key)
{
	return json_string_value(json_object_get(v, key));
}

START_TEST(a_range_across_midnight_is_one_answer)
{
	const int64_t t = MIDNIGHT - 90 * S;
	struct ls_ask ask;
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	put_chunk("a", 7, 3, 100, t + 60 * S, t + 120 * S); /* in the next day's file */
	put_chunk("b", 7, 3, 5000, t, t + 120 * S);
	ask = history("a", "host.one", t + 30 * S, t + 89 * S, 30);
	v = answer(&ask);
	ck_assert_str_eq(text_of(v, "source"), "chunks");
	ck_assert_str_eq(text_of(v, "from"), "2026-11-21T23:59:00.000Z");
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_str_eq(text_of(item(v, 0), "name"), "host.one");
	ck_assert_str_eq(text_of(item(v, 0), "group"), "g");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "count")), 2);
	ck_assert(at(item(v, 0), "min", 0) == 30 && at(item(v, 0), "max", 0) == 59);
	ck_assert(at(item(v, 0), "min", 1) == 100 && at(item(v, 0), "max", 1) == 129);
	ck_assert(at(item(v, 0), "mean", 1) == 114.5 && at(item(v, 0), "count", 1) == 30);
	json_decref(v);
}
END_TEST

START_TEST(labels_select)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	static const struct {
		const char *series;
		size_t lines;
	} cases[] = { { "chip.two", 2 }, { "chip.two{chip=\"1\"}", 1 }, { "chip.two{x=\"y\"}", 1 },
		{ "chip.two{chip=\"2\"}", 0 }, { "chip.tw", 0 }, { "chip.two{chip=\"0\",x=\"z\"}", 0 } };
	struct ls_ask ask;
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask = history("a", cases[i].series, t, t + 60 * S, -1);
		v = answer(&ask);
		ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), cases[i].lines);
		json_decref(v);
	}
	ask = history("a", "chip.two{chip=", t, t + 60 * S, -1);
	ck_assert_int_eq(refused(&ask), -LS_EPARSE);
}
END_TEST

START_TEST(values_as_they_are_have_times_and_nulls)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	struct ls_ask ask;
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	ask = history("a", "chip.two{chip=\"1\"}", t, t + 5 * S, 0);
	v = answer(&ask);
	ck_assert(json_is_null(json_object_get(v, "step_s")));
	ck_assert_uint_eq(json_array_size(json_object_get(item(v, 0), "value")), 3);
	ck_assert(json_is_null(json_array_get(json_object_get(item(v, 0), "value"), 0)));
	ck_assert(at(item(v, 0), "at_s", 1) == 2 && at(item(v, 0), "value", 1) == 2002);
	json_decref(v);
}
END_TEST

START_TEST(what_was_sent_late_is_found_and_several_dictionaries_join)
{
	const int64_t t = MIDNIGHT - 7200 * S;
	struct ls_ask ask;
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t + 120 * S, t + 180 * S);
	put_dictionary("a", 8, "g", "host.one", sizeof("host.one"), t + 180 * S);
	put_chunk("a", 8, 1, 200, t + 60 * S, MIDNIGHT + 200 * S); /* spooled until tomorrow */
	ask = history("a", "host.one", t, t + 300 * S, 0);
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_uint_eq(json_array_size(json_object_get(item(v, 0), "value")), 120);
	ck_assert(at(item(v, 0), "at_s", 0) == 60 && at(item(v, 0), "value", 0) == 200);
	ck_assert(at(item(v, 0), "at_s", 119) == 179 && at(item(v, 0), "value", 119) == 59);
	json_decref(v);
}
END_TEST

START_TEST(what_cannot_be_read_is_left_out_and_said)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	struct ls_store_chunk bad = { .kind = LS_WIRE_CHUNK, .hash = 7, .n = 1, .t_first_us = t + 60 * S,
		.t_last_us = t + 60 * S, .body = (const uint8_t *)"nonsense", .body_len = 8 };
	struct ls_ask ask;
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	put("a", &bad, t + 120 * S);
	bad.hash = 99; /* a dictionary that never came */
	put("a", &bad, t + 120 * S);
	put_chunk("a", 7, 2, 0, t + 120 * S, t + 180 * S); /* fewer columns than named */
	ask = history("a", "host.one", t, t + 600 * S, 600);
	v = answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "left_out")), 3);
	ck_assert(at(item(v, 0), "count", 0) == 60);
	json_decref(v);
	v = answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "left_out")), 3);
	json_decref(v);
}
END_TEST

START_TEST(pages_join_up)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	struct ls_ask ask = history("a", "chip.two", t, t + 60 * S, 60);
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	ask.limit = 1;
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_str_eq(text_of(v, "next_cursor"), "after-1");
	ck_assert(at(item(v, 0), "min", 0) == 1000);
	json_decref(v);
	ask.skip = 1;
	v = answer(&ask);
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	ck_assert(at(item(v, 0), "min", 0) == 2002);
	json_decref(v);
	ask.skip = 7;
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
}
END_TEST

START_TEST(what_is_not_there_is_unknown_or_empty)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	struct ls_ask ask = history("nobody", "host.one", t, t + 60 * S, -1);
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	ck_assert_int_eq(refused(&ask), -LS_EUNKNOWN);
	ask = history("a", "host.one", t + 600 * S, t + 700 * S, -1);
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
	ask = history("a", "host.one", t, t + 600000 * S, 1);
	ck_assert_int_eq(refused(&ask), -LS_ELIMIT);
	ask = history("a", "host.one", t, t - 1, 1);
	ck_assert_int_eq(refused(&ask), -LS_ERANGE);
}
END_TEST

START_TEST(a_question_can_be_cancelled)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	struct ls_ask ask = history("a", "host.one", t, t + 60 * S, -1);
	atomic_bool cancelled = true;
	struct text text = { 0 };

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	ck_assert_int_eq(ls_questions_answer(questions, &ask, &cancelled, keep, &text), -ECANCELED);
	ck_assert_uint_eq(text.len, 0);
	atomic_store(&cancelled, false);
	ck_assert_int_eq(ls_questions_answer(questions, &ask, &cancelled, keep, &text), 0);
	free(text.text);
}
END_TEST

/* --- all hosts of a job ----------------------------------------------------------------------- */

static void
put_worker(int64_t id, const char *job, const char *host)
{
	struct ls_write *m = ls_write_new(LS_WRITE_WORKER, MIDNIGHT - 3600 * S);

	ck_assert_ptr_nonnull(m);
	m->u.worker.id = id;
	memcpy(m->u.worker.ring_id, &id, sizeof(id));
	(void)snprintf(m->u.worker.info.job, sizeof(m->u.worker.info.job), "%s", job);
	(void)snprintf(m->u.worker.info.host, sizeof(m->u.worker.info.host), "%s", host);
	m->u.worker.info.rank = (int32_t)id;
	ck_assert_int_eq(ls_store_commit(store, &m, 1, MIDNIGHT - 3600 * S), 0);
	ls_write_free(m);
}

/* Hosts h0 to h9 of job train, host i with values from 100 i on; h5 has none. Another job's host. */
static int64_t
put_fleet(void)
{
	const int64_t t = (MIDNIGHT - 3600 * S);
	char host[8];

	put_dictionary("h0", 7, "g", three, sizeof(three), t);
	for (int i = 9; i >= 0; i--) {
		(void)snprintf(host, sizeof(host), "h%d", i);
		put_worker(i + 1, "train", host);
		if (i != 5)
			put_chunk(host, 7, 3, 100 * i, t, t + 60 * S);
	}
	put_worker(20, "train", "h3"); /* a second process of it */
	put_worker(21, "other", "x");
	put_chunk("x", 7, 3, 1e6, t, t + 60 * S);
	return t;
}

static struct ls_ask
fleet(const char *series, int64_t from_us, int64_t to_us, int64_t step_s)
{
	struct ls_ask ask = history("", series, from_us, to_us, step_s);

	ask.kind = LS_ASK_FLEET;
	(void)snprintf(ask.job, sizeof(ask.job), "train");
	return ask;
}

START_TEST(all_hosts_of_a_job_come_in_pages)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 59 * S, 30);
	json_t *v;

	ask.limit = 6;
	ask.agg = LS_ASK_MAX;
	v = answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "hosts")), 10);
	ck_assert(json_is_null(json_object_get(v, "peers")));
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 5); /* h5 has nothing */
	ck_assert_str_eq(text_of(item(v, 4), "host"), "h4");
	ck_assert(at(item(v, 4), "max", 0) == 429 && at(item(v, 4), "max", 1) == 459);
	ck_assert_ptr_null(json_object_get(item(v, 4), "mean"));
	ck_assert_str_eq(text_of(v, "next_cursor"), "after-6");
	json_decref(v);
	ask.skip = 6;
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 4);
	ck_assert_str_eq(text_of(item(v, 0), "host"), "h6");
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	json_decref(v);
	ask.skip = 10;
	ck_assert_int_eq(refused(&ask), -LS_ERANGE);
}
END_TEST

START_TEST(the_band_is_over_all_hosts_beside_one)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 119 * S, 60);
	const json_t *peers;
	json_t *v;

	ask.band = true;
	v = answer(&ask);
	peers = json_object_get(v, "peers");
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	/* Means 29.5 + 100 i of i = 0..9 without 5. */
	ck_assert(at(peers, "p50", 0) == 429.5);
	ck_assert(fabs(at(peers, "p10", 0) - 109.5) < 1e-9);
	ck_assert(fabs(at(peers, "p90", 0) - 849.5) < 1e-9);
	ck_assert(at(peers, "min", 0) == 29.5 && at(peers, "max", 0) == 929.5);
	ck_assert(fabs(at(peers, "mean", 0) - (29.5 + 4000.0 / 9)) < 1e-9);
	ck_assert(at(peers, "lines", 0) == 9 && at(peers, "lines", 1) == 0);
	ck_assert(json_is_null(json_array_get(json_object_get(peers, "p50"), 1)));
	json_decref(v);
	(void)snprintf(ask.host, sizeof(ask.host), "h7");
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert(at(item(v, 0), "min", 0) == 700 && at(item(v, 0), "max", 0) == 759);
	ck_assert(at(json_object_get(v, "peers"), "p50", 0) == 429.5);
	json_decref(v);
	ask.band = false;
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert(at(item(v, 0), "mean", 0) == 729.5);
	json_decref(v);
}
END_TEST

START_TEST(each_set_of_labels_is_a_line)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("chip.two", t, t + 59 * S, 60);
	json_t *v;

	ask.limit = 1;
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 2);
	json_decref(v);
	ask.band = true;
	v = answer(&ask);
	ck_assert(at(json_object_get(v, "peers"), "lines", 0) == 18);
	json_decref(v);
}
END_TEST

START_TEST(what_a_fleet_does_not_have_is_said)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 59 * S, 60);

	(void)snprintf(ask.job, sizeof(ask.job), "none");
	ck_assert_int_eq(refused(&ask), -LS_EUNKNOWN);
	ask = fleet("host.one", t, t + 59 * S, 60);
	(void)snprintf(ask.host, sizeof(ask.host), "x"); /* of another job */
	ck_assert_int_eq(refused(&ask), -LS_EUNKNOWN);
	ask = fleet("host.one", t, t + 3600 * S, 1); /* seconds of an hour of all hosts */
	ck_assert_int_eq(refused(&ask), -LS_ELIMIT);
}
END_TEST

START_TEST(a_host_that_joins_is_seen)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 59 * S, 60);
	json_t *v = answer(&ask);

	json_decref(v);
	put_worker(30, "train", "x");
	v = answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "hosts")), 11);
	json_decref(v);
}
END_TEST

/* --- one step of all workers --------------------------------------------------------------------- */

static void
put_steps(void)
{
	for (int32_t rank = 2; rank >= 0; rank--) {
		struct ls_write *batch[] = { ls_test_worker(rank, MIDNIGHT - 3600 * S),
			ls_test_report(rank, 1, 0, 10, MIDNIGHT - 3600 * S) };

		ck_assert_int_eq(ls_store_commit(store, batch, 2, MIDNIGHT - 3600 * S), 0);
		ls_test_write_free(batch[0]);
		ls_test_write_free(batch[1]);
	}
}

START_TEST(a_stored_step_has_all_workers)
{
	struct ls_ask ask = { .kind = LS_ASK_STEP, .limit = 2, .job = "train", .step = 7 };
	json_t *v;

	put_steps();
	v = answer(&ask);
	ck_assert_str_eq(text_of(v, "source"), "stored");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "workers")), 3);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 2);
	ck_assert_str_eq(text_of(item(v, 0), "host"), "h0");
	ck_assert_str_eq(text_of(item(v, 1), "host"), "h1");
	ck_assert_int_eq(json_integer_value(json_object_get(item(v, 1), "step")), 7);
	ck_assert(json_number_value(json_object_get(item(v, 1), "duration_s")) > 0);
	ck_assert_str_eq(text_of(v, "next_cursor"), "after-2");
	json_decref(v);
	ask.skip = 2;
	v = answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	json_decref(v);
	ask.step = 10;
	ck_assert_int_eq(refused(&ask), -LS_EUNKNOWN);
	ask.step = 7;
	(void)snprintf(ask.job, sizeof(ask.job), "none");
	ck_assert_int_eq(refused(&ask), -LS_EUNKNOWN);
}
END_TEST

struct runs {
	struct ls_step_run run[8];
	struct ls_record record[64];
	struct ls_step_table table;
};

static int
see_steps(void *arg, const struct ls_store_event *e)
{
	const struct ls_store_steps *s = &e->u.steps;
	struct runs *r = arg;

	if (e->kind != LS_EVENT_STEPS)
		return 0;
	r->run[r->table.run_count++] = (struct ls_step_run){ e->id, e->t_us, s->worker_id,
		s->first_index, s->count, s->uncertainty_ns };
	memcpy(r->record + r->table.record_count, s->records, s->count * sizeof(*s->records));
	r->table.record_count += s->count;
	return 0;
}

/* Moves what is in the journal to step_rows of job 1, as packing does; the store is closed meanwhile. */
static void
pack_steps(void)
{
	static struct runs r;
	struct ls_step_codec *codec = ls_step_codec_new();
	struct ls_query *q = NULL;
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	const uint8_t *body = NULL;
	char path[PATH_MAX];
	size_t len = 0;

	ls_store_close(store);
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	ck_assert_int_eq(ls_query_events(q, TODAY, 0, see_steps, &r), 0);
	ls_query_close(q);
	r.table.runs = r.run;
	r.table.records = r.record;
	ck_assert_uint_eq(r.table.record_count, 30);
	ck_assert_int_eq(ls_step_rows_encode(codec, &r.table, &body, &len), 0);
	ck_assert_int_eq(ls_days_path(path, dir, TODAY), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_db_exec(db, "DELETE FROM journal"), 0);
	ck_assert_int_eq(
		ls_db_prepare(db, "INSERT INTO step_rows VALUES (1, 9, ?1, 30, 0, 9, 0, 1, ?2)", &stmt), 0);
	ck_assert_int_eq(sqlite3_bind_int(stmt, 1, 1), SQLITE_OK);
	ck_assert_int_eq(sqlite3_bind_blob(stmt, 2, body, (int)len, SQLITE_STATIC), SQLITE_OK);
	ck_assert_int_eq(ls_db_run(stmt), 0);
	(void)sqlite3_finalize(stmt);
	ls_db_close(db);
	ls_step_codec_free(codec);
	ck_assert_int_eq(ls_store_open(dir, MIDNIGHT - 1800 * S, &store), 0);
}

START_TEST(a_step_is_the_same_once_it_is_packed)
{
	struct ls_ask ask = { .kind = LS_ASK_STEP, .limit = 100, .job = "train", .step = 7 };
	json_t *before, *after;

	put_steps();
	before = answer(&ask);
	pack_steps();
	after = answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(after, "workers")), 3);
	ck_assert(json_equal(before, after));
	json_decref(before);
	json_decref(after);
	ask.step = 10;
	ck_assert_int_eq(refused(&ask), -LS_EUNKNOWN);
}
END_TEST

/* --- below: the query itself ---------------------------------------------------------------- */

static bool
want_all(void *arg, const char *group, const char *series)
{
	(void)arg;
	(void)group;
	return series[0] != '\0';
}

static int
see(void *arg, const struct ls_query_column *c)
{
	size_t *n = arg;

	*n += c->to - c->from;
	return 0;
}

START_TEST(reading_ends_at_its_deadline)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	const struct ls_query_span span = { "a", t, t + 60 * S };
	struct ls_query_series *series;
	struct ls_query *q = NULL;
	size_t n = 0;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	ck_assert_int_eq(ls_query_open(dir, &q), 0);
	series = ls_query_series_new(q);
	ls_query_series_want(series, want_all, NULL);
	ls_query_stop_at(q, 1, NULL); /* long ago */
	ck_assert_int_ne(ls_query_series_visit(series, &span, see, &n), 0);
	ck_assert_int_eq(ls_query_stopped(q), -ETIMEDOUT);
	ls_query_stop_at(q, ls_clock_mono_ns() + 3600000000000ull, NULL);
	ck_assert_int_eq(ls_query_series_visit(series, &span, see, &n), 0);
	ck_assert_uint_eq(n, 3 * ROWS);
	ls_query_series_free(series);
	ls_query_close(q);
}
END_TEST

START_TEST(a_file_that_was_put_in_its_place_is_read_anew)
{
	const int64_t t = MIDNIGHT - 3600 * S;
	struct ls_ask ask = history("a", "host.one", t, t + 600 * S, 600);
	char path[PATH_MAX], other[PATH_MAX + 8];
	json_t *v;

	put_dictionary("a", 7, "g", three, sizeof(three), t);
	put_chunk("a", 7, 3, 0, t, t + 60 * S);
	v = answer(&ask);
	json_decref(v);
	put_chunk("a", 7, 3, 0, t + 60 * S, t + 120 * S);
	ls_store_close(store); /* all is in the one file now */
	ck_assert_int_eq(ls_days_path(path, dir, TODAY), 0);
	(void)snprintf(other, sizeof(other), "%s.new", path);
	{
		size_t len = 0;
		char *bytes = ls_test_read(path, &len);
		FILE *f = fopen(other, "we");

		ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
		(void)fclose(f);
		free(bytes);
	}
	ck_assert_int_eq(rename(other, path), 0);
	v = answer(&ask);
	ck_assert(at(item(v, 0), "count", 0) == 120);
	json_decref(v);
	ck_assert_int_eq(ls_store_open(dir, MIDNIGHT - 1800 * S, &store), 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("questions");
	TCase *t = tcase_create("history");
	TCase *f = tcase_create("fleet");
	TCase *q = tcase_create("query");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_range_across_midnight_is_one_answer);
	tcase_add_test(t, labels_select);
	tcase_add_test(t, values_as_they_are_have_times_and_nulls);
	tcase_add_test(t, what_was_sent_late_is_found_and_several_dictionaries_join);
	tcase_add_test(t, what_cannot_be_read_is_left_out_and_said);
	tcase_add_test(t, pages_join_up);
	tcase_add_test(t, what_is_not_there_is_unknown_or_empty);
	tcase_add_test(t, a_question_can_be_cancelled);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(f, setup, teardown);
	tcase_add_test(f, all_hosts_of_a_job_come_in_pages);
	tcase_add_test(f, the_band_is_over_all_hosts_beside_one);
	tcase_add_test(f, each_set_of_labels_is_a_line);
	tcase_add_test(f, what_a_fleet_does_not_have_is_said);
	tcase_add_test(f, a_host_that_joins_is_seen);
	tcase_add_test(f, a_stored_step_has_all_workers);
	tcase_add_test(f, a_step_is_the_same_once_it_is_packed);
	suite_add_tcase(s, f);
	tcase_add_checked_fixture(q, setup, teardown);
	tcase_add_test(q, reading_ends_at_its_deadline);
	tcase_add_test(q, a_file_that_was_put_in_its_place_is_read_anew);
	suite_add_tcase(s, q);
	return s;
}

int
main(void)
{
	return ls_test_run(suite());
}

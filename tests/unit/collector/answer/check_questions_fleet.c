/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/questions.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "storage/db/db.h"
#include "storage/read/query.h"
#include "storage/columns/step_rows.h"
#include "tests/support/harness.h"
#include "tests/support/rowmake.h"
#include "tests/support/stored.h"

/* --- all hosts of a job --------------------------------------------------- */

/* Hosts h0 to h9 of job train, host i with values from 100 i on; h5 has none. Another
 * job's host. */
static int64_t
put_fleet(void)
{
	const int64_t t = (STORED_MIDNIGHT - 3600 * S);
	char host[8];

	stored_dictionary("h0", 7, "g", stored_three, sizeof(stored_three), t);
	for (int i = 9; i >= 0; i--) {
		(void)snprintf(host, sizeof(host), "h%d", i);
		stored_worker(i + 1, "train", host);
		if (i != 5)
			stored_chunk(host, 7, 3, 100 * i, t, t + 60 * S);
	}
	stored_worker(20, "train", "h3"); /* a second process of it */
	stored_worker(21, "other", "x");
	stored_chunk("x", 7, 3, 1e6, t, t + 60 * S);
	return t;
}

static struct ls_ask
fleet(const char *series, int64_t from_us, int64_t to_us, int64_t step_s)
{
	struct ls_ask ask = stored_history("", series, from_us, to_us, step_s);

	ask.kind = LS_ASK_FLEET;
	(void)snprintf(ask.job, sizeof(ask.job), "train");
	return ask;
}

LS_CASE(fleet, stored_setup, stored_teardown);

LS_TEST(fleet, all_hosts_of_a_job_come_in_pages)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 59 * S, 30);
	json_t *v;

	ask.limit = 6;
	ask.agg = LS_ASK_MAX;
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "hosts")), 10);
	ck_assert(json_is_null(json_object_get(v, "peers")));
	/* h5 has nothing */
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 5);
	ck_assert_str_eq(stored_text(stored_item(v, 4), "host"), "h4");
	ck_assert(stored_at(stored_item(v, 4), "max", 0) == 429 &&
		stored_at(stored_item(v, 4), "max", 1) == 459);
	ck_assert_ptr_null(json_object_get(stored_item(v, 4), "mean"));
	ck_assert_str_eq(stored_text(v, "next_cursor"), "after-6");
	json_decref(v);
	ask.skip = 6;
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 4);
	ck_assert_str_eq(stored_text(stored_item(v, 0), "host"), "h6");
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	json_decref(v);
	ask.skip = 10;
	ck_assert_int_eq(stored_refused(&ask), -LS_ERANGE);
}

LS_TEST(fleet, the_band_is_over_all_hosts_beside_one)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 119 * S, 60);
	const json_t *peers;
	json_t *v;

	stored_roll(t + 300 * S);
	ask.band = true;
	v = stored_answer(&ask);
	peers = json_object_get(v, "peers");
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	/* Means 29.5 + 100 i of i = 0..9 without 5. */
	ck_assert(stored_at(peers, "p50", 0) == 429.5);
	ck_assert(fabs(stored_at(peers, "p10", 0) - 109.5) < 1e-9);
	ck_assert(fabs(stored_at(peers, "p90", 0) - 849.5) < 1e-9);
	ck_assert(stored_at(peers, "min", 0) == 29.5 &&
		stored_at(peers, "max", 0) == 929.5);
	ck_assert(fabs(stored_at(peers, "mean", 0) - (29.5 + 4000.0 / 9)) < 1e-9);
	ck_assert(stored_at(peers, "lines", 0) == 9 &&
		stored_at(peers, "lines", 1) == 0);
	ck_assert(json_is_null(json_array_get(json_object_get(peers, "p50"), 1)));
	json_decref(v);
	(void)snprintf(ask.host, sizeof(ask.host), "h7");
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert(stored_at(stored_item(v, 0), "min", 0) == 700 &&
		stored_at(stored_item(v, 0), "max", 0) == 759);
	ck_assert(stored_at(json_object_get(v, "peers"), "p50", 0) == 429.5);
	json_decref(v);
	ask.band = false;
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert(stored_at(stored_item(v, 0), "mean", 0) == 729.5);
	json_decref(v);
}

LS_TEST(fleet, each_set_of_labels_is_a_line)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("chip.two", t, t + 59 * S, 60);
	json_t *v;

	stored_roll(t + 300 * S);
	ask.limit = 1;
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 2);
	json_decref(v);
	ask.band = true;
	v = stored_answer(&ask);
	ck_assert(stored_at(json_object_get(v, "peers"), "lines", 0) == 18);
	json_decref(v);
}

LS_TEST(fleet, minutes_come_from_rollups_as_far_as_they_are_made)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 3599 * S, -1);
	json_t *v = stored_answer(&ask);

	ck_assert_str_eq(stored_text(v, "source"), "rollups");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "step_s")), 60);
	ck_assert(json_is_null(json_object_get(v, "until"))); /* nothing is made yet */
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
	stored_roll(t + 240 * S);
	ask.agg = LS_ASK_MAX;
	v = stored_answer(&ask);
	ck_assert_str_eq(stored_text(v, "until"), "2026-11-21T23:01:00.000Z");
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 9);
	ck_assert_str_eq(stored_text(stored_item(v, 8), "host"), "h9");
	ck_assert(stored_at(stored_item(v, 8), "max", 0) == 959);
	ck_assert(json_is_null(
		json_array_get(json_object_get(stored_item(v, 8), "max"), 1)));
	ck_assert_ptr_null(json_object_get(stored_item(v, 8), "min"));
	json_decref(v);
	ask.skip = 7; /* a page of them */
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 3);
	ck_assert_str_eq(stored_text(stored_item(v, 0), "host"), "h7");
	ck_assert(stored_at(stored_item(v, 0), "max", 0) == 759);
	json_decref(v);
}

LS_TEST(fleet, labels_select_rollups)
{
	static const struct {
		const char *series;
		double lines;
	} cases[] = { { "chip.two", 18 }, { "chip.two{chip=\"1\"}", 9 },
		{ "chip.two{x=\"y\"}", 9 }, { "chip.two{chip=\"2\"}", 0 },
		{ "chip.tw", 0 } };
	const int64_t t = put_fleet();
	struct ls_ask ask;
	json_t *v;

	stored_dictionary("x", 8, "g", "host.one{of=\"x\"}",
		sizeof("host.one{of=\"x\"}"), t);
	/* of another job: no line of this one */
	stored_chunk("x", 8, 1, 0, t, t + 60 * S);
	stored_roll(t + 300 * S);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask = fleet(cases[i].series, t, t + 59 * S, 60);
		ask.band = true;
		v = stored_answer(&ask);
		ck_assert_double_eq(stored_at(json_object_get(v, "peers"), "lines", 0),
			cases[i].lines);
		json_decref(v);
	}
	ask = fleet("chip.two{chip=\"0\"}", t, t + 59 * S, 60);
	(void)snprintf(ask.host, sizeof(ask.host), "h2");
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_str_eq(stored_text(json_object_get(stored_item(v, 0), "labels"), "x"),
		"y");
	ck_assert(stored_at(stored_item(v, 0), "mean", 0) == 1229.5 &&
		stored_at(stored_item(v, 0), "count", 0) == 60);
	json_decref(v);
}

/* Chunks of h1, one each 20 minutes for 140 minutes, on both sides of midnight; minute
 * k holds values from k on. */
static void
put_hours(int64_t t)
{
	stored_worker(1, "train", "h1");
	stored_dictionary("h1", 7, "g", stored_three, sizeof(stored_three), t);
	for (int64_t k = 0; k < 140; k += 20)
		stored_chunk("h1", 7, 3, (double)k, t + k * 60 * S,
			t + (k + 1) * 60 * S);
}

LS_TEST(fleet, hours_are_whole_ones_and_minutes_of_the_rest)
{
	const int64_t t = STORED_MIDNIGHT - 5400 * S; /* 22:30 */
	struct ls_ask ask = fleet("host.one", t + 60 * S, t + 8399 * S, 3600);
	static const double count[3] = { 60, 180, 120 }, min[3] = { 20, 40, 100 },
			    max[3] = { 79, 139, 179 };
	json_t *before, *v;

	put_hours(t);
	(void)snprintf(ask.host, sizeof(ask.host), "h1");
	stored_roll(t + 8700 * S); /* the second file's minutes */
	before = stored_answer(&ask);
	stored_roll(STORED_MIDNIGHT + 3 * 3600 * S); /* all hours */
	v = stored_answer(&ask);
	ck_assert_str_eq(stored_text(v, "begin"), "2026-11-21T22:00:00.000Z");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "count")), 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_double_eq(stored_at(stored_item(v, 0), "count", i), count[i]);
		ck_assert_double_eq(stored_at(stored_item(v, 0), "min", i), min[i]);
		ck_assert_double_eq(stored_at(stored_item(v, 0), "max", i), max[i]);
	}
	ck_assert(json_equal(json_object_get(before, "items"),
		json_object_get(v, "items")));
	json_decref(before);
	json_decref(v);
}

LS_TEST(fleet, what_a_fleet_does_not_have_is_said)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 59 * S, 60);

	(void)snprintf(ask.job, sizeof(ask.job), "none");
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
	ask = fleet("host.one", t, t + 59 * S, 60);
	(void)snprintf(ask.host, sizeof(ask.host), "x"); /* of another job */
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
	/* seconds of an hour of all hosts */
	ask = fleet("host.one", t, t + 3600 * S, 1);
	ck_assert_int_eq(stored_refused(&ask), -LS_ELIMIT);
}

LS_TEST(fleet, a_host_that_joins_is_seen)
{
	const int64_t t = put_fleet();
	struct ls_ask ask = fleet("host.one", t, t + 59 * S, 60);
	json_t *v;

	v = stored_answer(&ask);
	json_decref(v);
	stored_worker(30, "train", "x");
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "hosts")), 11);
	json_decref(v);
}

/* --- one step of all workers ---------------------------------------------- */

static void
put_steps(void)
{
	for (int32_t rank = 2; rank >= 0; rank--) {
		struct ls_write *batch[] = { ls_test_worker(rank,
						     STORED_MIDNIGHT - 3600 * S),
			ls_test_report(rank, 1, 0, 10, STORED_MIDNIGHT - 3600 * S) };

		ck_assert_int_eq(ls_store_commit(stored_store, batch, 2,
					 STORED_MIDNIGHT - 3600 * S),
			0);
		ls_test_write_free(batch[0]);
		ls_test_write_free(batch[1]);
	}
}

LS_TEST(fleet, a_stored_step_has_all_workers)
{
	struct ls_ask ask = {
		.kind = LS_ASK_STEP, .limit = 2, .job = "train", .step = 7
	};
	json_t *v;

	put_steps();
	v = stored_answer(&ask);
	ck_assert_str_eq(stored_text(v, "source"), "stored");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "workers")), 3);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 2);
	ck_assert_str_eq(stored_text(stored_item(v, 0), "host"), "h0");
	ck_assert_str_eq(stored_text(stored_item(v, 1), "host"), "h1");
	ck_assert_int_eq(json_integer_value(json_object_get(stored_item(v, 1), "step")),
		7);
	ck_assert(json_number_value(json_object_get(stored_item(v, 1), "duration_s")) >
		0);
	ck_assert_str_eq(stored_text(v, "next_cursor"), "after-2");
	json_decref(v);
	ask.skip = 2;
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	json_decref(v);
	ask.step = 10;
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
	ask.step = 7;
	(void)snprintf(ask.job, sizeof(ask.job), "none");
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
}

/* A worker that took a rank over, or began the job anew, and the records 0 to 9 it
 * reports. */
static void
put_successor(int32_t number, int32_t rank, int32_t attempt)
{
	struct ls_write *batch[] = { ls_test_worker(number, STORED_MIDNIGHT - 1800 * S),
		ls_test_report(number, 1, 0, 10, STORED_MIDNIGHT - 1800 * S) };

	batch[0]->u.worker.info.rank = rank;
	batch[0]->u.worker.info.attempt = attempt;
	ck_assert_int_eq(
		ls_store_commit(stored_store, batch, 2, STORED_MIDNIGHT - 1800 * S), 0);
	ls_test_write_free(batch[0]);
	ls_test_write_free(batch[1]);
}

LS_TEST(fleet, of_a_step_done_again_the_newest_records_are_shown)
{
	struct ls_ask ask = {
		.kind = LS_ASK_STEP, .limit = 100, .job = "train", .step = 7
	};
	json_t *v;

	put_steps();
	put_successor(3, 1, 0);
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "workers")), 3);
	ck_assert_str_eq(stored_text(stored_item(v, 0), "host"), "h0");
	ck_assert_str_eq(stored_text(stored_item(v, 1), "host"), "h3");
	ck_assert_str_eq(stored_text(stored_item(v, 2), "host"), "h2");
	json_decref(v);
	put_successor(4, 2, 1);
	put_successor(5, 0, 1);
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "attempt")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "workers")), 2);
	ck_assert_str_eq(stored_text(stored_item(v, 0), "host"), "h5");
	ck_assert_int_eq(json_integer_value(json_object_get(stored_item(v, 1), "rank")),
		2);
	json_decref(v);
}

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
	r->run[r->table.run_count++] = (struct ls_step_run){ e->id, e->t_us,
		s->worker_id, s->first_index, s->count, s->uncertainty_ns };
	memcpy(r->record + r->table.record_count, s->records,
		s->count * sizeof(*s->records));
	r->table.record_count += s->count;
	return 0;
}

/* Moves what is in the journal to step_rows of job 1, as packing does; the store is
 * closed meanwhile. */
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

	memset(&r, 0, sizeof(r)); /* another test of this process may have used it */
	ls_store_close(stored_store);
	ck_assert_int_eq(ls_query_open(stored_dir, &q), 0);
	ck_assert_int_eq(ls_query_events(q, STORED_TODAY, 0, see_steps, &r), 0);
	ls_query_close(q);
	r.table.runs = r.run;
	r.table.records = r.record;
	ck_assert_uint_eq(r.table.record_count, 30);
	ck_assert_int_eq(ls_step_rows_encode(codec, &r.table, &body, &len), 0);
	ck_assert_int_eq(ls_days_path(path, stored_dir, STORED_TODAY), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(ls_db_exec(db, "DELETE FROM journal"), 0);
	ck_assert_int_eq(
		ls_db_prepare(db,
			"INSERT INTO step_rows VALUES (1, 9, ?1, 30, 0, 9, 0, 1, ?2)",
			&stmt),
		0);
	ck_assert_int_eq(sqlite3_bind_int(stmt, 1, 1), SQLITE_OK);
	ck_assert_int_eq(sqlite3_bind_blob(stmt, 2, body, (int)len, SQLITE_STATIC),
		SQLITE_OK);
	ck_assert_int_eq(ls_db_run(stmt), 0);
	(void)sqlite3_finalize(stmt);
	ls_db_close(db);
	ls_step_codec_free(codec);
	ck_assert_int_eq(
		ls_store_open(stored_dir, STORED_MIDNIGHT - 1800 * S, &stored_store),
		0);
}

LS_TEST(fleet, a_step_is_the_same_once_it_is_packed)
{
	struct ls_ask ask = {
		.kind = LS_ASK_STEP, .limit = 100, .job = "train", .step = 7
	};
	json_t *before, *after;

	put_steps();
	before = stored_answer(&ask);
	pack_steps();
	after = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(after, "workers")), 3);
	ck_assert(json_equal(before, after));
	json_decref(before);
	json_decref(after);
	ask.step = 10;
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
}

LS_TEST(fleet, a_row_wider_than_those_before_is_found)
{
	struct ls_ask ask = {
		.kind = LS_ASK_STEP, .limit = 100, .job = "train", .step = 7
	};
	sqlite3 *db = NULL;
	char path[PATH_MAX];
	json_t *v;

	put_steps();
	pack_steps();
	v = stored_answer(&ask); /* rows of ten steps at most, as it knows now */
	json_decref(v);
	ls_store_close(stored_store);
	ck_assert_int_eq(ls_days_path(path, stored_dir, STORED_TODAY), 0);
	ck_assert_int_eq(ls_db_open(path, LS_DB_WRITE, &db), 0);
	ck_assert_int_eq(
		ls_db_exec(db,
			"UPDATE step_rows SET id = 100, last_id = 109, step_hi = 5000"),
		0);
	ls_db_close(db);
	ck_assert_int_eq(
		ls_store_open(stored_dir, STORED_MIDNIGHT - 1800 * S, &stored_store),
		0);
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "workers")), 3);
	json_decref(v);
	ask.step = 5001;
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
}

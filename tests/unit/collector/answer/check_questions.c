/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/questions.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "proto/base/clock.h"
#include "storage/read/query_series.h"
#include "tests/support/harness.h"
#include "tests/support/stored.h"

static bool
count(void *arg, const char *piece, size_t len)
{
	size_t *n = arg;

	(void)piece;
	*n += len;
	return true;
}

LS_CASE(history, stored_setup, stored_teardown);

LS_TEST(history, a_range_across_midnight_is_one_answer)
{
	const int64_t t = STORED_MIDNIGHT - 90 * S;
	struct ls_ask ask;
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	/* in the next day's file */
	stored_chunk("a", 7, 3, 100, t + 60 * S, t + 120 * S);
	stored_chunk("b", 7, 3, 5000, t, t + 120 * S);
	ask = stored_history("a", "host.one", t + 30 * S, t + 89 * S, 30);
	v = stored_answer(&ask);
	ck_assert_str_eq(stored_text(v, "source"), "chunks");
	ck_assert_str_eq(stored_text(v, "from"), "2026-11-21T23:59:00.000Z");
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_str_eq(stored_text(stored_item(v, 0), "name"), "host.one");
	ck_assert_str_eq(stored_text(stored_item(v, 0), "group"), "g");
	ck_assert_int_eq(json_integer_value(json_object_get(v, "count")), 2);
	ck_assert(stored_at(stored_item(v, 0), "min", 0) == 30 &&
		stored_at(stored_item(v, 0), "max", 0) == 59);
	ck_assert(stored_at(stored_item(v, 0), "min", 1) == 100 &&
		stored_at(stored_item(v, 0), "max", 1) == 129);
	ck_assert(stored_at(stored_item(v, 0), "mean", 1) == 114.5 &&
		stored_at(stored_item(v, 0), "count", 1) == 30);
	json_decref(v);
}

LS_TEST(history, labels_select)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	static const struct {
		const char *series;
		size_t lines;
	} cases[] = { { "chip.two", 2 }, { "chip.two{chip=\"1\"}", 1 },
		{ "chip.two{x=\"y\"}", 1 }, { "chip.two{chip=\"2\"}", 0 },
		{ "chip.tw", 0 }, { "chip.two{chip=\"0\",x=\"z\"}", 0 } };
	struct ls_ask ask;
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask = stored_history("a", cases[i].series, t, t + 60 * S, -1);
		v = stored_answer(&ask);
		ck_assert_uint_eq(json_array_size(json_object_get(v, "items")),
			cases[i].lines);
		json_decref(v);
	}
	ask = stored_history("a", "chip.two{chip=", t, t + 60 * S, -1);
	ck_assert_int_eq(stored_refused(&ask), -EINVAL);
	ask = stored_history("a", "\xc3\xa4", t, t + 60 * S, -1);
	ck_assert_int_eq(stored_refused(&ask), -EINVAL);
	ask = stored_history("a", "a", t, t + 60 * S, -1);
	memset(ask.series, 'a', sizeof(ask.series) - 1); /* as long as it may be */
	ck_assert_int_eq(stored_refused(&ask), -EINVAL);
}

LS_TEST(history, values_as_they_are_have_times_and_nulls)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	struct ls_ask ask;
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	ask = stored_history("a", "chip.two{chip=\"1\"}", t, t + 5 * S, 0);
	v = stored_answer(&ask);
	ck_assert(json_is_null(json_object_get(v, "step_s")));
	ck_assert_uint_eq(json_array_size(json_object_get(stored_item(v, 0), "value")),
		3);
	ck_assert(json_is_null(
		json_array_get(json_object_get(stored_item(v, 0), "value"), 0)));
	ck_assert(stored_at(stored_item(v, 0), "at_s", 1) == 2 &&
		stored_at(stored_item(v, 0), "value", 1) == 2002);
	json_decref(v);
}

LS_TEST(history, what_was_sent_late_is_found_and_several_dictionaries_join)
{
	const int64_t t = STORED_MIDNIGHT - 7200 * S;
	struct ls_ask ask;
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t + 120 * S, t + 180 * S);
	stored_dictionary("a", 8, "g", "host.one", sizeof("host.one"), t + 180 * S);
	/* spooled until tomorrow */
	stored_chunk("a", 8, 1, 200, t + 60 * S, STORED_MIDNIGHT + 200 * S);
	ask = stored_history("a", "host.one", t, t + 300 * S, 0);
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_uint_eq(json_array_size(json_object_get(stored_item(v, 0), "value")),
		120);
	ck_assert(stored_at(stored_item(v, 0), "at_s", 0) == 60 &&
		stored_at(stored_item(v, 0), "value", 0) == 200);
	ck_assert(stored_at(stored_item(v, 0), "at_s", 119) == 179 &&
		stored_at(stored_item(v, 0), "value", 119) == 59);
	json_decref(v);
}

LS_TEST(history, what_cannot_be_read_is_left_out_and_said)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	struct ls_store_chunk bad = { .kind = LS_WIRE_CHUNK,
		.hash = 7,
		.n = 1,
		.t_first_us = t + 60 * S,
		.t_last_us = t + 60 * S,
		.body = (const uint8_t *)"nonsense",
		.body_len = 8 };
	struct ls_ask ask;
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	stored_put("a", &bad, t + 120 * S);
	bad.hash = 99; /* a dictionary that never came */
	stored_put("a", &bad, t + 120 * S);
	/* fewer columns than named */
	stored_chunk("a", 7, 2, 0, t + 120 * S, t + 180 * S);
	ask = stored_history("a", "host.one", t, t + 600 * S, 600);
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "left_out")), 3);
	ck_assert(stored_at(stored_item(v, 0), "count", 0) == 60);
	json_decref(v);
	v = stored_answer(&ask);
	ck_assert_int_eq(json_integer_value(json_object_get(v, "left_out")), 3);
	json_decref(v);
}

LS_TEST(history, pages_join_up)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	struct ls_ask ask = stored_history("a", "chip.two", t, t + 60 * S, 60);
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	ask.limit = 1;
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 1);
	ck_assert_str_eq(stored_text(v, "next_cursor"), "after-1");
	ck_assert(stored_at(stored_item(v, 0), "min", 0) == 1000);
	json_decref(v);
	ask.skip = 1;
	v = stored_answer(&ask);
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	ck_assert(stored_at(stored_item(v, 0), "min", 0) == 2002);
	json_decref(v);
	ask.skip = 7;
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
}

LS_TEST(history, what_is_not_there_is_unknown_or_empty)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	struct ls_ask ask = stored_history("nobody", "host.one", t, t + 60 * S, -1);
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	ck_assert_int_eq(stored_refused(&ask), -LS_EUNKNOWN);
	ask = stored_history("a", "host.one", t + 600 * S, t + 700 * S, -1);
	v = stored_answer(&ask);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
	ask = stored_history("a", "host.one", t, t + 600000 * S, 1);
	ck_assert_int_eq(stored_refused(&ask), -LS_ELIMIT);
	ask = stored_history("a", "host.one", t, t - 1, 1);
	ck_assert_int_eq(stored_refused(&ask), -LS_ERANGE);
}

LS_TEST(history, a_question_can_be_cancelled)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	struct ls_ask ask = stored_history("a", "host.one", t, t + 60 * S, -1);
	atomic_bool cancelled = true;
	size_t len = 0;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	ck_assert_int_eq(
		ls_questions_answer(stored_questions, &ask, &cancelled, count, &len),
		-ECANCELED);
	ck_assert_uint_eq(len, 0);
	atomic_store(&cancelled, false);
	ck_assert_int_eq(
		ls_questions_answer(stored_questions, &ask, &cancelled, count, &len),
		0);
}

/* --- below: the query itself ---------------------------------------------- */

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

LS_CASE(query, stored_setup, stored_teardown);

LS_TEST(query, reading_ends_at_its_deadline)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	const struct ls_query_span span = { "a", t, t + 60 * S };
	struct ls_query_series *series;
	struct ls_query *q = NULL;
	size_t n = 0;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	ck_assert_int_eq(ls_query_open(stored_dir, &q), 0);
	series = ls_query_series_new(q);
	ls_query_series_want(series, want_all, NULL);
	ls_query_stop_at(q, 1, NULL); /* long ago */
	ck_assert_int_ne(ls_query_series_visit(series, &span, see, &n), 0);
	ck_assert_int_eq(ls_query_stopped(q), -ETIMEDOUT);
	ls_query_stop_at(q, ls_clock_mono_ns() + 3600000000000ull, NULL);
	ck_assert_int_eq(ls_query_series_visit(series, &span, see, &n), 0);
	ck_assert_uint_eq(n, 3 * STORED_ROWS);
	ls_query_series_free(series);
	ls_query_close(q);
}

LS_TEST(query, a_file_that_was_put_in_its_place_is_read_anew)
{
	const int64_t t = STORED_MIDNIGHT - 3600 * S;
	struct ls_ask ask = stored_history("a", "host.one", t, t + 600 * S, 600);
	char path[PATH_MAX], other[PATH_MAX + 8];
	json_t *v;

	stored_dictionary("a", 7, "g", stored_three, sizeof(stored_three), t);
	stored_chunk("a", 7, 3, 0, t, t + 60 * S);
	v = stored_answer(&ask);
	json_decref(v);
	stored_chunk("a", 7, 3, 0, t + 60 * S, t + 120 * S);
	ls_store_close(stored_store); /* all is in the one file now */
	ck_assert_int_eq(ls_days_path(path, stored_dir, STORED_TODAY), 0);
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
	v = stored_answer(&ask);
	ck_assert(stored_at(stored_item(v, 0), "count", 0) == 120);
	json_decref(v);
	ck_assert_int_eq(
		ls_store_open(stored_dir, STORED_MIDNIGHT - 1800 * S, &stored_store),
		0);
}

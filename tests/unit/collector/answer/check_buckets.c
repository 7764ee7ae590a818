/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/buckets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/limits.h"
#include "tests/support/harness.h"
#include "web/api/backend.h"

#define S 1000000ll

LS_CASE(buckets);

LS_TEST(buckets, steps_are_chosen_so_that_a_screen_shows_them)
{
	static const struct {
		int64_t range_s, min_s, step_s;
	} cases[] = { { 0, 1, 1 }, { 60, 1, 1 }, { 300, 1, 1 }, { 301, 1, 2 },
		{ 3600, 1, 15 }, { 3600, 60, 60 }, { 86400, 1, 300 },
		{ 7 * 86400, 1, 3600 }, { 400 * 86400, 1, 86400 } };
	struct ls_range r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(ls_range_cut(1000 * S, (1000 + cases[i].range_s) * S,
					 LS_STEP_AUTO, cases[i].min_s, &r),
			0);
		ck_assert_int_eq(r.step_us, cases[i].step_s * S);
	}
}

LS_TEST(buckets, buckets_begin_at_multiples_and_cover_the_range)
{
	struct ls_range r;

	ck_assert_int_eq(ls_range_cut(125 * S, 245 * S, 60, 1, &r), 0);
	ck_assert_int_eq(r.begin_us, 120 * S);
	ck_assert_uint_eq(r.count, 3);
	ck_assert_int_eq(ls_range_cut(125 * S, 240 * S - 1, 60, 1, &r), 0);
	ck_assert_uint_eq(r.count, 2);
	ck_assert_int_eq(ls_range_cut(5, 5, LS_STEP_RAW, 1, &r), 0);
	ck_assert_uint_eq(r.count, 0);
	ck_assert_int_eq(r.begin_us, 5);
	ck_assert_int_eq(ls_range_cut(-7, 5, LS_STEP_RAW, 1, &r), 0);
	ck_assert_int_eq(r.from_us, 0);
	ck_assert_int_eq(ls_range_cut(5, 4, 1, 1, &r), -LS_ERANGE);
	ck_assert_int_eq(ls_range_cut(0, INT64_MAX, 1, 1, &r), -LS_ERANGE);
	ck_assert_int_eq(ls_range_cut(0, 5, INT64_MAX, 1, &r), -LS_ERANGE);
	ck_assert_int_eq(ls_range_cut(0, LS_QUERY_POINTS_MAX * S, 1, 1, &r),
		-LS_ELIMIT);
}

LS_TEST(buckets, peaks_survive)
{
	struct ls_range r;
	struct ls_line l;

	ck_assert_int_eq(ls_range_cut(0, 119 * S, 60, 1, &r), 0);
	ck_assert_int_eq(ls_line_init(&l, &r), 0);
	for (int64_t i = 0; i < 60; i++)
		ck_assert_int_eq(ls_line_add(&l, &r, i * S,
					 i == 30	   ? 1000
						 : i == 31 ? -5
							   : 1),
			0);
	ck_assert_int_eq(ls_line_add(&l, &r, 10 * S, NAN), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 10 * S, INFINITY), 0);
	ck_assert(ls_bucket_value(&l.bucket[0], LS_AGG_MAX) == 1000);
	ck_assert(ls_bucket_value(&l.bucket[0], LS_AGG_MIN) == -5);
	ck_assert(ls_bucket_value(&l.bucket[0], LS_AGG_COUNT) == 60);
	ck_assert(fabs(ls_bucket_value(&l.bucket[0], LS_AGG_MEAN) - 1053.0 / 60) <
		1e-12);
	ck_assert(isnan(ls_bucket_value(&l.bucket[1], LS_AGG_MEAN)));
	ck_assert(ls_bucket_value(&l.bucket[1], LS_AGG_COUNT) == 0);
	/* What is outside goes nowhere. */
	ck_assert_int_eq(ls_line_add(&l, &r, -1, 9), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 120 * S, 9), 0);
	ck_assert(ls_bucket_value(&l.bucket[0], LS_AGG_COUNT) == 60);
	ck_assert(ls_bucket_value(&l.bucket[1], LS_AGG_COUNT) == 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 60 * S, 1), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 60 * S, 5), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 119 * S, 0), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 119 * S, 2), 0);
	ck_assert(ls_bucket_value(&l.bucket[1], LS_AGG_MEAN) == 2);
	ck_assert(ls_bucket_value(&l.bucket[1], LS_AGG_MIN) == 0);
	ck_assert(ls_bucket_value(&l.bucket[1], LS_AGG_MAX) == 5);
	ls_line_fini(&l);
}

/* The text so far, as a string; freed with o. */
static const char *
text(struct ls_json_out *o)
{
	ls_json_out_raw(o, "|");
	ck_assert(!o->failed);
	o->text[o->len - 1] = '\0';
	return o->text;
}

LS_TEST(buckets, lines_are_json)
{
	struct ls_json_out o = { 0 };
	struct ls_range r;
	struct ls_line l;

	ck_assert_int_eq(ls_range_cut(0, 3 * S, 2, 1, &r), 0);
	ck_assert_int_eq(ls_line_init(&l, &r), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 0, 0.1), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 1, 3e300), 0);
	ls_line_json(&l, &r, 1u << LS_AGG_MIN | 1u << LS_AGG_MAX | 1u << LS_AGG_COUNT,
		&o);
	ck_assert_str_eq(text(&o),
		"\"min\":[0.1,null],\"max\":[3e+300,null],\"count\":[2,0]");
	ls_json_out_fini(&o);
	ls_line_fini(&l);
}

LS_TEST(buckets, points_are_put_in_order_and_bounded)
{
	struct ls_json_out o = { 0 };
	struct ls_range r;
	struct ls_line l;
	int rc = 0;

	ck_assert_int_eq(ls_range_cut(10 * S, 20 * S, LS_STEP_RAW, 1, &r), 0);
	ck_assert_int_eq(ls_line_init(&l, &r), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 12 * S + 1, -7), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 10 * S, NAN), 0);
	ck_assert_int_eq(ls_line_add(&l, &r, 11 * S, 9007199254740992.0), 0);
	ls_line_sort(&l);
	ls_line_json(&l, &r, 0, &o);
	ck_assert_str_eq(text(&o),
		"\"at_s\":[0,1,2.000001],\"value\":[null,9.00719925474099e+15,-7]");
	ls_json_out_fini(&o);
	for (size_t i = 0; rc == 0 && i <= LS_QUERY_POINTS_MAX; i++)
		rc = ls_line_add(&l, &r, 15 * S, 1);
	ck_assert_int_eq(rc, -LS_ELIMIT);
	ls_line_fini(&l);
}

LS_TEST(buckets, strings_are_escaped)
{
	struct ls_json_out o = { 0 };

	ls_json_out_string(&o, NULL, "a\"\\\n\x1b\xff<");
	ls_json_out_string(&o, "none", NULL);
	ls_json_out_whole(&o, NULL, INT64_MIN);
	ls_json_out_time(&o, "at", 1795219200000000);
	ck_assert_str_eq(text(&o),
		"\"a\\\"\\\\\\\\x0a\\\\x1b\\\\xff<\",\"none\":null,-9223372036854775808,"
		"\"at\":\"2026-11-21T00:00:00.000Z\"");
	ls_json_out_fini(&o);
}

static void
writes_as_printf(double v)
{
	struct ls_json_out o = { 0 };
	char want[64];

	(void)snprintf(want, sizeof(want), "%.15g|", v);
	ls_json_out_number(&o, NULL, v);
	ls_json_out_raw(&o, "|");
	ck_assert_uint_eq(o.len, strlen(want));
	ck_assert_msg(memcmp(o.text, want, o.len) == 0, "%.*s, not %s", (int)o.len,
		o.text, want);
	ls_json_out_fini(&o);
}

LS_TEST(buckets, numbers_are_written_as_printf_does)
{
	static const double ends[] = { 1e-6, 9e-6, 1e-5, 1.1e-5, 9.9e-5, 0.0001,
		0.000101, 0.00012, 0.1, 0.5, 1e-7, 1.5e-6, 123456789.123456,
		1234567890.12345, 999999999.999999, 1e9 + 0.5, 0.1 + 0.2, 1.0 / 3,
		1e15 - 0.5, 1e15, 5e-324, 1.7976931348623157e308 };
	uint64_t state = 11;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		writes_as_printf(ends[i]);
		writes_as_printf(-ends[i]);
	}
	for (size_t i = 0; i < 20000; i++) {
		double v;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		v = (double)((int64_t)state >> (14 + i % 50)); /* of all lengths */
		writes_as_printf(v / 1e6);
		writes_as_printf(v / 100);
		writes_as_printf(v / 1e7);
	}
}

struct pieces {
	size_t count, len, most;
};

static bool
take(void *arg, const char *piece, size_t len)
{
	struct pieces *p = arg;

	(void)piece;
	p->len += len;
	return ++p->count < p->most;
}

LS_TEST(buckets, answers_are_given_in_pieces)
{
	struct ls_json_out o = { 0 };
	struct pieces p = { .most = 100 };

	for (int i = 0; i < 3 * LS_EXPORT_PIECE_BYTES / 8; i++)
		ls_json_out_raw(&o, "12345678");
	ck_assert_int_eq(ls_json_out_give(&o, take, &p), 0);
	ck_assert_uint_eq(p.len, o.len);
	ck_assert_uint_eq(p.count, 3);
	p = (struct pieces){ .most = 2 };
	ck_assert_int_eq(ls_json_out_give(&o, take, &p), -ECANCELED);
	ls_json_out_fini(&o);
	o.failed = true;
	ck_assert_int_eq(ls_json_out_give(&o, take, &p), -ENOMEM);
}

LS_TEST(buckets, aggregates_are_those_of_the_http_side)
{
	ck_assert_int_eq(LS_AGG_MEAN, (int)LS_ASK_MEAN);
	ck_assert_int_eq(LS_AGG_MIN, (int)LS_ASK_MIN);
	ck_assert_int_eq(LS_AGG_MAX, (int)LS_ASK_MAX);
	ck_assert_int_eq(LS_AGG_COUNT, (int)LS_ASK_COUNT);
	ck_assert_str_eq(ls_agg_name(LS_AGG_COUNT), "count");
	ck_assert_ptr_null(ls_agg_name(LS_AGG_KINDS));
}

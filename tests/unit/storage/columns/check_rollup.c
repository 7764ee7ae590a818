/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "storage/columns/rollup.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "storage/columns/rollup_sum.h"
#include "tests/support/chunk_table.h"
#include "tests/support/harness.h"

static struct ls_rollup_codec *codec;
static struct ls_rollup_row rows[LS_ROLLUP_ROWS_MAX + 1], saved[LS_ROLLUP_ROWS_MAX];

static void
setup(void)
{
	codec = ls_rollup_codec_new();
	ck_assert_ptr_nonnull(codec);
	chunk_table_start();
}

static void
teardown(void)
{
	ls_rollup_codec_free(codec);
}

/* Encodes n rows and decodes some columns of what came out. */
static const struct ls_rollup_row *
round_trip(size_t n, unsigned columns, size_t *ret_len)
{
	const struct ls_rollup_row *back = NULL;
	const uint8_t *body = NULL;
	size_t count = 0, len = 0;
	uint8_t *copy;

	ck_assert_int_eq(ls_rollup_encode(codec, rows, n, &body, &len), 0);
	/* to size, so that a sanitizer sees the first byte read beyond */
	copy = malloc(len);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, body, len);
	ck_assert_int_eq(ls_rollup_decode(codec, copy, len, columns, &back, &count), 0);
	ck_assert_uint_eq(count, n);
	free(copy);
	*ret_len = len;
	return back;
}

static void
assert_same(const struct ls_rollup_row *a, const struct ls_rollup_row *b)
{
	ck_assert_uint_eq(a->labels_id, b->labels_id);
	ck_assert_uint_eq(a->host_id, b->host_id);
	ck_assert_uint_eq(a->count, b->count);
	ck_assert_mem_eq(&a->min, &b->min, sizeof(a->min));
	ck_assert_mem_eq(&a->max, &b->max, sizeof(a->max));
	ck_assert_mem_eq(&a->sum, &b->sum, sizeof(a->sum));
}

/* A row of hosts of one kind: 0 gauges of two decimals, 1 counters, 2 constants, 3
 * whatever is finite. */
static void
make_rows(size_t n, size_t hosts, unsigned kind)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct ls_rollup_row *r = &rows[i];
		double least;

		*r = (struct ls_rollup_row){ (uint32_t)(i / hosts + 1),
			(uint32_t)(i % hosts + 1), 60, 0, 0, 0 };
		least = (double)(kind == 0 ? chunk_table_below(5000)
					   : chunk_table_random() >> 24);
		if (kind == 0)
			*r = (struct ls_rollup_row){ r->labels_id, r->host_id, 60,
				least / 100,
				(least + (double)(4900 + chunk_table_below(200))) / 100,
				(double)(300000 + chunk_table_below(100000)) / 100 };
		else if (kind == 1)
			*r = (struct ls_rollup_row){ r->labels_id, r->host_id, 60,
				least,
				least + (double)(59000 + chunk_table_below(1000)),
				least * 60 };
		else if (kind == 3)
			do {
				r->min = chunk_table_double(chunk_table_random());
				r->max = chunk_table_double(chunk_table_random());
				r->sum = chunk_table_double(chunk_table_random());
				r->count = 1 + (uint32_t)chunk_table_random() / 2;
			} while (!isfinite(r->min) || !isfinite(r->max) ||
				!isfinite(r->sum));
	}
}

LS_CASE(codec, setup, teardown);

LS_TEST_LOOP(codec, every_row_comes_back_bit_for_bit, 0, 4)
{
	const size_t counts[] = { 1, 2, 1023, 1024, 1025, 5000, LS_ROLLUP_ROWS_MAX };
	const struct ls_rollup_row *back;
	size_t i, k, len;

	for (k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		make_rows(counts[k], 1000, (unsigned)_i);
		back = round_trip(counts[k], LS_ROLLUP_ALL, &len);
		for (i = 0; i < counts[k]; i++)
			assert_same(&rows[i], &back[i]);
	}
}

LS_TEST(codec, only_the_columns_asked_for_are_read)
{
	const struct ls_rollup_row *back;
	const uint8_t *body;
	uint8_t *copy;
	size_t len, count, i;

	make_rows(3000, 3000, 1);
	back = round_trip(3000, LS_ROLLUP_SUM | LS_ROLLUP_COUNT, &len);
	for (i = 0; i < 3000; i++) {
		ck_assert_double_eq(back[i].sum, rows[i].sum);
		ck_assert_uint_eq(back[i].count, 60);
		ck_assert_double_eq(back[i].max, 0);
	}
	back = round_trip(3000, LS_ROLLUP_MIN, &len);
	for (i = 0; i < 3000; i++)
		ck_assert_double_eq(back[i].min, rows[i].min);
	/* Damage in the sums, which are last, does not keep the greatest from being
	 * read. */
	ck_assert_int_eq(ls_rollup_encode(codec, rows, 3000, &body, &len), 0);
	copy = malloc(len);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, body, len);
	copy[len - 9] ^= 1;
	ck_assert_int_eq(
		ls_rollup_decode(codec, copy, len, LS_ROLLUP_MAX, &back, &count), 0);
	ck_assert_double_eq(back[2999].max, rows[2999].max);
	ck_assert_int_eq(
		ls_rollup_decode(codec, copy, len, LS_ROLLUP_SUM, &back, &count),
		-LS_ECORRUPT);
	free(copy);
}

/* Encodes n rows and decodes them as columns. */
static struct ls_rollup_columns
columns_of(size_t n, unsigned columns)
{
	struct ls_rollup_columns v = { 0 };
	const uint8_t *body = NULL;
	size_t len = 0;

	ck_assert_int_eq(ls_rollup_encode(codec, rows, n, &body, &len), 0);
	ck_assert_int_eq(ls_rollup_decode_columns(codec, body, len, columns, &v), 0);
	ck_assert_uint_eq(v.count, n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(v.labels_id[i], rows[i].labels_id);
		ck_assert_uint_eq(v.host_id[i], rows[i].host_id);
		if (columns & LS_ROLLUP_SUM)
			ck_assert_double_eq(v.sum[i], rows[i].sum);
	}
	return v;
}

LS_TEST(codec, ids_of_the_body_before_are_known)
{
	struct ls_rollup_columns v;
	const uint8_t *body = NULL;
	uint8_t *copy;
	uint64_t keys;
	size_t len = 0;

	make_rows(3000, 3000, 0);
	keys = columns_of(3000, LS_ROLLUP_SUM).keys;
	rows[17].sum += 1;
	ck_assert_uint_eq(columns_of(3000, LS_ROLLUP_SUM).keys, keys);
	ck_assert_uint_eq(columns_of(3000, 0).keys, keys);
	ck_assert_uint_ne(columns_of(2999, LS_ROLLUP_SUM).keys, keys);
	rows[2999].host_id++;
	keys = columns_of(3000, LS_ROLLUP_SUM).keys;
	/* Ids that are damaged are not those known, though the sum beside them is. */
	ck_assert_int_eq(ls_rollup_encode(codec, rows, 3000, &body, &len), 0);
	copy = malloc(len);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, body, len);
	copy[56] ^= 1;
	ck_assert_int_eq(ls_rollup_decode_columns(codec, copy, len, 0, &v),
		-LS_ECORRUPT);
	ck_assert_int_eq(ls_rollup_decode_columns(codec, copy, len, 0, &v),
		-LS_ECORRUPT);
	free(copy);
	ck_assert_uint_ne(columns_of(3000, LS_ROLLUP_SUM).keys, keys);
}

LS_TEST(codec, what_hosts_measure_costs_little)
{
	const size_t most[] = { 5, 16, 1 }; /* bytes a row; constants less than one */
	size_t kind, len;

	for (kind = 0; kind < 3; kind++) {
		make_rows(10000, 10000, (unsigned)kind);
		if (kind == 2)
			for (size_t i = 0; i < 10000; i++)
				rows[i].min = rows[i].max = 128, rows[i].sum = 60 * 128;
		(void)round_trip(10000, LS_ROLLUP_ALL, &len);
		ck_assert_uint_lt(len, most[kind] * 10000);
	}
}

LS_TEST(codec, what_are_no_rows_is_refused)
{
	const uint8_t *body;
	size_t len, i;

	make_rows(10, 10, 0);
	memcpy(saved, rows, sizeof(saved));
	ck_assert_int_eq(ls_rollup_encode(codec, rows, 0, &body, &len), -LS_ERANGE);
	ck_assert_int_eq(
		ls_rollup_encode(codec, rows, LS_ROLLUP_ROWS_MAX + 1, &body, &len),
		-LS_ERANGE);
	for (i = 0; i < 6; i++) {
		memcpy(rows, saved, sizeof(saved));
		if (i == 0)
			rows[5].host_id = rows[4].host_id;
		else if (i == 1)
			rows[5].labels_id = 0;
		else if (i == 2)
			rows[5].count = 0;
		else if (i == 3)
			rows[5].min = NAN;
		else if (i == 4)
			rows[5].max = INFINITY;
		else
			rows[5].sum = -INFINITY;
		ck_assert_int_eq(ls_rollup_encode(codec, rows, 10, &body, &len),
			-LS_ERANGE);
	}
}

/* Of few rows (version 2), and of many. */
LS_TEST_LOOP(codec, damaged_bodies_are_refused, 0, 2)
{
	const size_t row_count = _i == 0 ? 40 : 300;
	const struct ls_rollup_row *back;
	const uint8_t *body;
	uint8_t *copy;
	size_t len, count, i;

	make_rows(row_count, 20, 0);
	ck_assert_int_eq(ls_rollup_encode(codec, rows, row_count, &body, &len), 0);
	ck_assert_uint_eq(body[0], _i == 0 ? 2 : 1);
	copy = malloc(len);
	ck_assert_ptr_nonnull(copy);
	for (i = 0; i < len * 8; i++) {
		int rc;

		memcpy(copy, body, len);
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
		rc = ls_rollup_decode(codec, copy, len, LS_ROLLUP_ALL, &back, &count);
		ck_assert_int_eq(rc, i < 8 ? -LS_EVERSION : -LS_ECORRUPT);
	}
	for (i = 0; i < len; i++) {
		memcpy(copy, body, i);
		ck_assert_int_ne(
			ls_rollup_decode(codec, copy, i, LS_ROLLUP_ALL, &back, &count),
			0);
	}
	free(copy);
}

/* A head with a sound checksum that promises too much. */
LS_TEST(codec, heads_that_lie_are_refused)
{
	const struct ls_rollup_row *back;
	const uint8_t *body;
	uint8_t copy[8192];
	size_t len, count, i;

	for (i = 0; i < 3; i++) {
		uint32_t sum;

		make_rows(256, 2, 0);
		ck_assert_int_eq(ls_rollup_encode(codec, rows, 256, &body, &len), 0);
		ck_assert_uint_lt(len, sizeof(copy));
		memcpy(copy, body, len);
		/* too many rows; none; too long */
		copy[i == 0 ? 3 : i == 1 ? 2 : 5] = i == 1 ? 0 : 0xff;
		sum = (uint32_t)crc32_z(0, copy, 52);
		for (size_t k = 0; k < 4; k++)
			copy[52 + k] = (uint8_t)(sum >> 8 * k);
		ck_assert_int_eq(ls_rollup_decode(codec, copy, len, LS_ROLLUP_ALL,
					 &back, &count),
			i == 0 ? -LS_ELIMIT : -LS_EPARSE);
	}
}

LS_TEST(codec, short_heads_that_lie_are_refused)
{
	const struct ls_rollup_row *back;
	const uint8_t *body;
	uint8_t copy[1024];
	size_t len, count, i;

	for (i = 0; i < 4; i++) {
		uint32_t sum;

		make_rows(2, 2, 0);
		ck_assert_int_eq(ls_rollup_encode(codec, rows, 2, &body, &len), 0);
		ck_assert_uint_lt(len, sizeof(copy));
		memcpy(copy, body, len);
		/* no row; too many; too long; longer than it is */
		copy[i < 2 ? 1 : i == 2 ? 3 : 12] = i == 0 ? 0 : 0xff;
		sum = (uint32_t)crc32_z(crc32_z(0, copy, 14), copy + 18, len - 18);
		for (size_t k = 0; k < 4; k++)
			copy[14 + k] = (uint8_t)(sum >> 8 * k);
		ck_assert_int_eq(ls_rollup_decode(codec, copy, len, LS_ROLLUP_ALL,
					 &back, &count),
			-LS_EPARSE);
	}
}

LS_TEST(codec, golden_example_is_written_as_ever)
{
	const uint8_t *body;
	size_t len, want, count;
	char *golden =
		ls_test_read(ls_test_source("tests/golden/rollup_v2.bin"), &want);
	const struct ls_rollup_row *back;

	rows[0] = (struct ls_rollup_row){ 1, 1, 60, 41.25, 58.5, 3000.75 };
	rows[1] = (struct ls_rollup_row){ 1, 2, 60, 40, 57.75, 2950.5 };
	rows[2] = (struct ls_rollup_row){ 2, 2, 59, 12.5, 13.25, 750 };
	ck_assert_int_eq(ls_rollup_encode(codec, rows, 3, &body, &len), 0);
	ck_assert_uint_eq(len, want);
	ck_assert_mem_eq(body, golden, len);
	free(golden);
	/* The other head, which bodies of more than 255 rows have, stands for the same.
	 */
	golden = ls_test_read(ls_test_source("tests/golden/rollup_v1.bin"), &want);
	ck_assert_int_eq(ls_rollup_decode(codec, (const uint8_t *)golden, want,
				 LS_ROLLUP_ALL, &back, &count),
		0);
	ck_assert_uint_eq(count, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert(back[i].labels_id == rows[i].labels_id &&
			back[i].host_id == rows[i].host_id &&
			back[i].count == rows[i].count &&
			memcmp(&back[i].min, &rows[i].min, 3 * sizeof(double)) == 0);
	free(golden);
}

/* --- rows ----------------------------------------------------------------- */

LS_TEST(codec, rows_of_one_series_add_up)
{
	struct ls_rollup_row a = { 1, 1, 10, 5, 6, 55 }, b = { 1, 1, 2, 4, 5.5, 9.5 };

	ls_rollup_merge(&a, &b);
	assert_same(&a, &(struct ls_rollup_row){ 1, 1, 12, 4, 6, 64.5 });
	a.sum = b.sum = DBL_MAX;
	a.count = UINT32_MAX;
	ls_rollup_merge(&a, &b);
	ck_assert_double_eq(a.sum, DBL_MAX);
	ck_assert_uint_eq(a.count, UINT32_MAX);
}

LS_TEST(codec, rounding_of_additions_is_taken_from_a_sum)
{
	struct ls_rollup_row r = { 1, 1, 3, 0.1, 0.3, 0.1 + 0.2 + 0.3 };

	ck_assert(r.sum != 0.6);
	ls_rollup_tidy(&r);
	ck_assert_double_eq(r.sum, 0.6);
	r.sum = 0.6000001; /* more than rounding */
	ls_rollup_tidy(&r);
	ck_assert_double_eq(r.sum, 0.6000001);
	r = (struct ls_rollup_row){ 1, 1, 2, 1.0 / 3, 2.0 / 3,
		1.0 / 3 + 2.0 / 3 + 1e-15 };
	saved[0] = r;
	ls_rollup_tidy(&r); /* no decimals: nothing is known */
	assert_same(&r, &saved[0]);
}

/* --- sums ----------------------------------------------------------------- */

static const struct ls_rollup_column three[] = { { 2, 1 }, { 1, 7 }, { 1, 3 } };
static struct ls_rollup_sums *sums;
static size_t taken;

static void
setup_sums(void)
{
	setup();
	sums = ls_rollup_sums_new(LS_ROLLUP_MEMORY_MAX_BYTES);
	ck_assert_ptr_nonnull(sums);
	taken = 0;
}

static void
teardown_sums(void)
{
	ls_rollup_sums_free(sums);
	teardown();
}

static int
take(void *arg, uint32_t metric_id, const struct ls_rollup_row *r, size_t count)
{
	uint32_t *metric = arg;
	size_t i;

	for (i = 0; i < count; i++) {
		metric[taken] = metric_id;
		saved[taken++] = r[i];
	}
	return 0;
}

static void
open_block(int64_t minute_us, uint32_t layout, uint32_t host, int64_t id)
{
	ck_assert_int_eq(ls_rollup_sums_open(sums, minute_us, layout, host, id, 5), 0);
}

LS_CASE(sums, setup_sums, teardown_sums);

LS_TEST(sums, samples_become_rows_by_metric_labels_and_host)
{
	uint32_t layout, metric[16];
	struct ls_rollup_minute m;

	ck_assert_int_eq(ls_rollup_sums_layout(sums, three, 3, &layout), 0);
	chunk_table_make(4, 3);
	chunk_table_set(0, (const double[]){ 1, 2, 3, 4 }, 4);
	chunk_table_set(1, (const double[]){ -1, NAN, INFINITY, 5 }, 4);
	chunk_table_set(2, (const double[]){ 0, 0, 7, 0 }, 4);
	chunk_table_remove(2, 0);
	open_block(60000000, layout, 9, 12);
	ck_assert_uint_eq(ls_rollup_sums_add(sums, &chunk_table, 0, 4), 9);
	open_block(60000000, layout, 4, 11);
	ck_assert_uint_eq(ls_rollup_sums_add(sums, &chunk_table, 1, 2), 4);
	open_block(60000000, layout, 9, 13);
	ck_assert_uint_eq(ls_rollup_sums_add(sums, &chunk_table, 3, 1), 3);
	ck_assert(ls_rollup_sums_minute(sums, 0, &m));
	ck_assert_int_eq(m.first_id, 11);
	ck_assert_uint_eq(m.blocks, 2);
	ck_assert(!ls_rollup_sums_minute(sums, 1, &m));
	ck_assert_int_eq(ls_rollup_sums_take(sums, 60000000, take, metric), 0);
	ck_assert_uint_eq(taken, 5); /* host 4 has nothing of labels 7 that counts */
	assert_same(&saved[0], &(struct ls_rollup_row){ 3, 4, 2, 0, 7, 7 });
	assert_same(&saved[1], &(struct ls_rollup_row){ 3, 9, 4, 0, 7, 7 });
	assert_same(&saved[2], &(struct ls_rollup_row){ 7, 9, 3, -1, 5, 9 });
	assert_same(&saved[3], &(struct ls_rollup_row){ 1, 4, 2, 2, 3, 5 });
	assert_same(&saved[4], &(struct ls_rollup_row){ 1, 9, 5, 1, 4, 14 });
	ck_assert(metric[0] == 1 && metric[2] == 1 && metric[3] == 2 && metric[4] == 2);
	ck_assert(!ls_rollup_sums_minute(sums, 0, &m));
}

LS_TEST(sums, one_series_of_two_layouts_is_one_row)
{
	uint32_t a, b, metric[16];
	const struct ls_rollup_column other[] = { { 1, 3 }, { 0, 0 } };

	ck_assert_int_eq(ls_rollup_sums_layout(sums, three, 3, &a), 0);
	ck_assert_int_eq(ls_rollup_sums_layout(sums, other, 2, &b), 0);
	chunk_table_make(2, 3);
	chunk_table_set(2, (const double[]){ 2, 3 }, 2);
	open_block(0, a, 1, 1);
	(void)ls_rollup_sums_add(sums, &chunk_table, 0, 2);
	chunk_table.columns = 2;
	chunk_table_set(0, (const double[]){ 8, 9 }, 2);
	open_block(0, b, 1, 2);
	/* not that of metric 0 */
	ck_assert_uint_eq(ls_rollup_sums_add(sums, &chunk_table, 0, 2), 2);
	ck_assert_int_eq(ls_rollup_sums_take(sums, 0, take, metric), 0);
	ck_assert_uint_eq(taken, 3);
	assert_same(&saved[0], &(struct ls_rollup_row){ 3, 1, 4, 2, 9, 22 });
}

/* Host 1 has the series by one layout, host 5 by two. */
LS_TEST(sums, a_host_of_one_layout_stays_apart)
{
	const struct ls_rollup_column other[] = { { 1, 3 }, { 0, 0 } };
	uint32_t layout[2], metric[16];

	ck_assert_int_eq(ls_rollup_sums_layout(sums, other, 1, &layout[0]), 0);
	ck_assert_int_eq(ls_rollup_sums_layout(sums, other, 2, &layout[1]), 0);
	chunk_table_make(2, 1);
	chunk_table_set(0, (const double[]){ 2, 3 }, 2);
	open_block(0, layout[0], 5, 1);
	(void)ls_rollup_sums_add(sums, &chunk_table, 0, 2);
	chunk_table_make(2, 2);
	chunk_table_set(0, (const double[]){ 8, 9 }, 2);
	open_block(0, layout[1], 5, 2);
	(void)ls_rollup_sums_add(sums, &chunk_table, 0, 2);
	open_block(0, layout[1], 1, 3);
	(void)ls_rollup_sums_add(sums, &chunk_table, 0, 2);
	ck_assert_int_eq(ls_rollup_sums_take(sums, 0, take, metric), 0);
	ck_assert_uint_eq(taken, 2);
	assert_same(&saved[0], &(struct ls_rollup_row){ 3, 1, 2, 8, 9, 17 });
	assert_same(&saved[1], &(struct ls_rollup_row){ 3, 5, 4, 2, 9, 22 });
}

LS_TEST(sums, memory_is_bounded_and_comes_back)
{
	struct ls_rollup_minute m;
	uint32_t layout, host, metric[16];
	int rc = 0;

	ls_rollup_sums_free(sums);
	sums = ls_rollup_sums_new(20000);
	ck_assert_ptr_nonnull(sums);
	ck_assert_int_eq(ls_rollup_sums_layout(sums, three, 3, &layout), 0);
	for (host = 0; rc == 0; host++)
		rc = ls_rollup_sums_open(sums, 0, layout, host, 1, 0);
	ck_assert_int_eq(rc, -LS_ELIMIT);
	ck_assert_uint_gt(host, 50);
	ck_assert_uint_le(ls_rollup_sums_bytes(sums), 20000);
	ck_assert_int_eq(ls_rollup_sums_take(sums, 0, take, metric), 0);
	ck_assert_uint_eq(taken, 0); /* blocks without samples */
	open_block(0, layout, 1, 1);
	ck_assert(ls_rollup_sums_minute(sums, 0, &m));
	ck_assert_uint_gt(ls_rollup_sums_most(sums), ls_rollup_sums_bytes(sums));
}

LS_TEST(sums, open_minutes_are_bounded_and_in_order)
{
	struct ls_rollup_minute m, before;
	uint32_t layout;
	int64_t t;

	ck_assert_int_eq(ls_rollup_sums_layout(sums, three, 3, &layout), 0);
	for (t = 0; t < (int64_t)LS_ROLLUP_MINUTES_MAX; t++)
		open_block((t * 37 % 64 - 9) * LS_ROLLUP_MINUTE_US, layout, 1, 1);
	ck_assert_int_eq(ls_rollup_sums_open(sums, 1, layout, 1, 1, 0), -LS_ELIMIT);
	ck_assert(ls_rollup_sums_minute(sums, 0, &before));
	for (t = 1; t < (int64_t)LS_ROLLUP_MINUTES_MAX; t++) {
		ck_assert(ls_rollup_sums_minute(sums, (size_t)t, &m));
		ck_assert_int_lt(before.t_us, m.t_us);
		before = m;
	}
}

static int
refuse(void *arg, uint32_t metric_id, const struct ls_rollup_row *r, size_t count)
{
	(void)arg, (void)metric_id, (void)r, (void)count;
	return -EIO;
}

LS_TEST(sums, an_error_of_the_taker_is_told)
{
	uint32_t layout;

	ck_assert_int_eq(ls_rollup_sums_layout(sums, three, 3, &layout), 0);
	chunk_table_make(2, 3);
	open_block(0, layout, 1, 1);
	(void)ls_rollup_sums_add(sums, &chunk_table, 0, 2);
	ck_assert_int_eq(ls_rollup_sums_take(sums, 0, refuse, NULL), -EIO);
}

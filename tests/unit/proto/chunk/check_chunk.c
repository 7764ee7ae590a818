/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/chunk/chunk.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/chunk_table.h"
#include "tests/support/harness.h"

static struct ls_chunk_codec *codec;
static uint8_t buf[LS_CHUNK_BODY_MAX_BYTES + 8];

/* --- allocations are counted: the linker sends ours here (tests/Makefile.inc) --- */

static size_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *
__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	allocations++;
	return __real_calloc(count, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

/* Encodes the table, decodes it, compares bit for bit; its length. */
static size_t
round_trip(void)
{
	struct ls_chunk_table back;
	size_t len;

	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		0);
	ck_assert_int_eq(ls_chunk_decode(codec, buf, len, &back), 0);
	chunk_table_assert_same(&chunk_table, &back);
	return len;
}

static void
setup(void)
{
	chunk_table_start();
	codec = ls_chunk_codec_new(CHUNK_TABLE_COLUMNS, CHUNK_TABLE_ROWS);
	ck_assert_ptr_nonnull(codec);
}

static void
teardown(void)
{
	ls_chunk_codec_free(codec);
	codec = NULL;
}

/* --- what comes back ------------------------------------------------------ */

LS_CASE(lossless, setup, teardown);

LS_TEST(lossless, every_kind_of_value_comes_back_bit_for_bit)
{
	const double odd[] = { 0.0, -0.0, NAN, chunk_table_double(0x7ff8000000001234),
		chunk_table_double(0xfff4000000000001), INFINITY, -INFINITY, 0x1p63,
		-0x1p63, 0x1p64, 0x1p53, 0x1p53 + 2, -0x1p53, DBL_MAX, -DBL_MAX,
		DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, 0.1, 1.0 / 3, 1e22, 1e23, 1e-22,
		1e-300, 9007199254740991.0, 9007199254740993.0, 123456.789, -0.000001 };
	const size_t n = sizeof(odd) / sizeof(odd[0]);
	size_t c, r;

	chunk_table_make(n, CHUNK_TABLE_COLUMNS);
	chunk_table_set(0, odd, n);
	for (c = 1; c < CHUNK_TABLE_COLUMNS; c++) /* each with each, and each alone */
		for (r = 0; r < n; r++)
			chunk_table.value[c * CHUNK_TABLE_ROWS + r] =
				c <= n ? odd[c - 1] : odd[(r * c) % n];
	(void)round_trip();
	for (r = 0; r < n; r++) { /* a single row, a single value */
		chunk_table_make(1, 1);
		chunk_table.value[0] = odd[r];
		(void)round_trip();
	}
}

LS_TEST(lossless, one_odd_value_among_decimals_comes_back)
{
	const double odd[] = { NAN, INFINITY, -0.0, 0x1p63, 1.0 / 3, DBL_TRUE_MIN };
	size_t i, r, plain;

	chunk_table_make(60, 1);
	for (r = 0; r < 60; r++)
		chunk_table.value[r] = 50 + (double)(r % 7) / 100;
	plain = round_trip();
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (r = 0; r < 60; r += 59) {
			double keep = chunk_table.value[r];

			chunk_table.value[r] = odd[i];
			/* beside the decimals, not in place of them */
			ck_assert_uint_lt(round_trip(), plain + 16);
			chunk_table.value[r] = keep;
		}
}

LS_TEST(lossless, missing_values_come_back_as_missing)
{
	size_t c, r, len;

	chunk_table_make(60, 6);
	for (r = 0; r < 60; r++)
		for (c = 0; c < 6; c++)
			chunk_table.value[c * CHUNK_TABLE_ROWS + r] = (double)(r * c);
	for (r = 20; r < 30; r++)
		for (c = 0; c < 3; c++)
			chunk_table_remove(c, r); /* a source failed: columns alike */
	for (r = 0; r < 60; r++)
		chunk_table_remove(3, r); /* never there */
	chunk_table_remove(4, 0);
	chunk_table_remove(4, 59);
	for (r = 0; r < 60; r += 2)
		chunk_table_remove(5, r);
	/* there, and not a number */
	chunk_table.value[4 * CHUNK_TABLE_ROWS + 30] = NAN;
	len = round_trip();
	ck_assert_uint_lt(len, 160);
}

LS_TEST(lossless, times_come_back_and_may_stand_still)
{
	chunk_table_make(4, 0);
	chunk_table.t_mono_ns[1] = chunk_table.t_mono_ns[0];
	chunk_table.t_mono_ns[2] = chunk_table.t_mono_ns[3] = UINT64_MAX;
	(void)round_trip();
	chunk_table.t_mono_ns[0] = chunk_table.t_mono_ns[1] = 0;
	(void)round_trip();
}

LS_TEST(lossless, any_table_comes_back)
{
	size_t i;

	for (i = 0; i < 1500; i++) {
		chunk_table_make_random();
		(void)round_trip();
	}
}

/* --- what it costs -------------------------------------------------------- */

LS_TEST(lossless, some_columns_are_as_in_the_whole)
{
	bool wanted[LS_SERIES_PER_GROUP_MAX] = { false };
	struct ls_chunk_table t;
	size_t len;

	for (int round = 0; round < 500; round++) {
		chunk_table_make_random();
		for (size_t c = 0; c < LS_SERIES_PER_GROUP_MAX; c++)
			wanted[c] = round % 8 != 0 &&
				chunk_table_below((size_t)(round % 8)) == 0;
		ck_assert_int_eq(
			ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
			0);
		ck_assert_int_eq(ls_chunk_decode_some(codec, buf, len, wanted, &t), 0);
		ck_assert_uint_eq(t.rows, chunk_table.rows);
		ck_assert_uint_eq(t.columns, chunk_table.columns);
		ck_assert_mem_eq(t.t_mono_ns, chunk_table.t_mono_ns,
			t.rows * sizeof(*t.t_mono_ns));
		for (size_t c = 0; c < t.columns; c++) {
			if (!wanted[c])
				continue;
			ck_assert_mem_eq(t.present + c * t.stride,
				chunk_table.present + c * chunk_table.stride, t.rows);
			ck_assert_mem_eq(t.value + c * t.stride,
				chunk_table.value + c * chunk_table.stride,
				t.rows * sizeof(*t.value));
		}
	}
}

LS_CASE(cost, setup, teardown);

LS_TEST(cost, columns_that_stand_still_cost_their_value_only)
{
	size_t one, all;

	chunk_table_make(60, 1);
	one = round_trip();
	chunk_table_make(60, CHUNK_TABLE_COLUMNS);
	all = round_trip();
	ck_assert_uint_le(all - one, 2 * (CHUNK_TABLE_COLUMNS - 1)); /* 15 bits each */
}

LS_TEST(cost, what_cannot_be_pressed_grows_little)
{
	size_t i;

	chunk_table_make(60, 8);
	for (i = 0; i < 8 * CHUNK_TABLE_ROWS; i++)
		chunk_table.value[i] = chunk_table_double(chunk_table_random());
	ck_assert_uint_le(round_trip(), 8 * 60 * 8 + 8 * 60 / 3);
}

LS_TEST(cost, an_outlier_costs_little)
{
	size_t plain, r;

	chunk_table_make(60, 1);
	for (r = 0; r < 60; r++)
		chunk_table.value[r] =
			(double)(1000000 + r * 1000 + chunk_table_random() % 16);
	plain = round_trip();
	for (r = 30; r < 60; r++)
		chunk_table.value[r] -= 1000000; /* a reset */
	ck_assert_uint_le(round_trip(), plain + 12);
}

LS_TEST(cost, nothing_is_allocated_after_the_codec)
{
	struct ls_chunk_table back;
	size_t i, len, before = allocations, taken;
	int encoded, decoded;

	ls_chunk_codec_free(ls_chunk_codec_new(1, 1));
	taken = allocations - before;
	ck_assert_uint_gt(taken, 0); /* they are counted */
	for (i = 0; i < 1200; i++) {
		chunk_table_make_random();
		if (i % 100 == 0) { /* a large one among the small */
			chunk_table_make(CHUNK_TABLE_ROWS, 16);
			for (size_t k = 0; k < 16 * CHUNK_TABLE_ROWS; k++)
				chunk_table.value[k] =
					(double)(chunk_table_random() % 1000);
		}
		before = allocations;
		encoded = ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len);
		decoded = ls_chunk_decode(codec, buf, len, &back);
		taken = allocations - before;
		ck_assert_int_eq(encoded, 0);
		ck_assert_int_eq(decoded, 0);
		ck_assert_uint_eq(taken, 0);
	}
}

/* --- golden --------------------------------------------------------------- */

LS_CASE(golden, setup, teardown);

LS_TEST(golden, golden_chunk_is_read_as_ever)
{
	size_t len, c, r;
	char *golden = ls_test_read(ls_test_source("tests/golden/chunk_v1.bin"), &len);
	struct ls_chunk_table back;

	chunk_table_make(12, 7);
	for (r = 0; r < 12; r++) {
		chunk_table.t_mono_ns[r] += r * r * 1000;
		chunk_table.value[0 * CHUNK_TABLE_ROWS + r] = 42;
		chunk_table.value[1 * CHUNK_TABLE_ROWS + r] =
			(double)(5000 + (r * 37) % 11) / 100;
		chunk_table.value[2 * CHUNK_TABLE_ROWS + r] =
			(double)(r < 8 ? 1000000 + r * 4096 : r * 512);
		chunk_table.value[3 * CHUNK_TABLE_ROWS + r] = 1 / (double)(r + 3);
		chunk_table.value[4 * CHUNK_TABLE_ROWS + r] = r == 7 ? 0x1p31 : 0;
		chunk_table.value[5 * CHUNK_TABLE_ROWS + r] =
			r == 5 ? NAN : (double)r / 4;
		chunk_table.value[6 * CHUNK_TABLE_ROWS + r] = (double)(r * r);
	}
	for (r = 3; r < 6; r++)
		for (c = 5; c < 7; c++)
			chunk_table_remove(c, r);
	ck_assert_int_eq(ls_chunk_decode(codec, (const uint8_t *)golden, len, &back),
		0);
	chunk_table_assert_same(&chunk_table, &back);
	(void)round_trip();
	free(golden);
}

/* The example of proto/FORMAT.md. */
LS_TEST(golden, golden_example_is_written_as_ever)
{
	size_t want, len;
	char *golden =
		ls_test_read(ls_test_source("tests/golden/chunk_small_v1.bin"), &want);

	chunk_table_make_small();
	len = round_trip();
	ck_assert_uint_eq(len, want);
	ck_assert_mem_eq(buf, golden, len);
	free(golden);
}

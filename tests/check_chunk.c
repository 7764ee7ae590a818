/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "proto/chunk.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "tests/harness.h"

enum { ROWS = LS_CHUNK_ROWS_MAX, COLUMNS = 64 };

static struct ls_chunk_codec *codec;
static uint8_t buf[LS_CHUNK_BODY_MAX_BYTES + 8];
static uint64_t times[ROWS];
static double values[COLUMNS * ROWS];
static bool flags[COLUMNS * ROWS];
static struct ls_chunk_table table;
static uint64_t seed;

/* --- allocations are counted: the linker sends ours here (tests/Makefile.inc) ------------ */

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

/* --- tables ------------------------------------------------------------------------ */

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1du;
}

static size_t
random_below(size_t n)
{
	return (size_t)(next_random() >> 33) % n;
}

static double
from_bits(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* A fresh table: all present, all zero, a second between rows. */
static void
make_table(size_t rows, size_t columns)
{
	size_t i;

	table = (struct ls_chunk_table){ rows, columns, ROWS, times, values, flags };
	memset(values, 0, sizeof(values));
	memset(flags, true, sizeof(flags));
	for (i = 0; i < ROWS; i++)
		times[i] = 5000000000000 + i * 1000000000;
}

static void
set_column(size_t column, const double *v, size_t n)
{
	memcpy(values + column * ROWS, v, n * sizeof(*v));
}

static void
remove_value(size_t column, size_t row)
{
	values[column * ROWS + row] = 0;
	flags[column * ROWS + row] = false;
}

static void
assert_same(const struct ls_chunk_table *a, const struct ls_chunk_table *b)
{
	size_t c;

	ck_assert_uint_eq(a->rows, b->rows);
	ck_assert_uint_eq(a->columns, b->columns);
	ck_assert_mem_eq(a->t_mono_ns, b->t_mono_ns, a->rows * sizeof(*a->t_mono_ns));
	for (c = 0; c < a->columns; c++) {
		ck_assert_mem_eq(a->present + c * a->stride, b->present + c * b->stride, a->rows);
		ck_assert_mem_eq(a->value + c * a->stride, b->value + c * b->stride,
			a->rows * sizeof(*a->value));
	}
}

/* Encodes the table, decodes it, compares bit for bit; its length. */
static size_t
round_trip(void)
{
	struct ls_chunk_table back;
	size_t len;

	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), 0);
	ck_assert_int_eq(ls_chunk_decode(codec, buf, len, &back), 0);
	assert_same(&table, &back);
	return len;
}

static void
setup(void)
{
	seed = 88172645463325252u;
	codec = ls_chunk_codec_new(COLUMNS, ROWS);
	ck_assert_ptr_nonnull(codec);
}

static void
teardown(void)
{
	ls_chunk_codec_free(codec);
	codec = NULL;
}

/* --- what comes back --------------------------------------------------------------- */

START_TEST(every_kind_of_value_comes_back_bit_for_bit)
{
	const double odd[] = { 0.0, -0.0, NAN, from_bits(0x7ff8000000001234), from_bits(0xfff4000000000001),
		INFINITY, -INFINITY, 0x1p63, -0x1p63, 0x1p64, 0x1p53, 0x1p53 + 2, -0x1p53, DBL_MAX, -DBL_MAX,
		DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, 0.1, 1.0 / 3, 1e22, 1e23, 1e-22, 1e-300,
		9007199254740991.0, 9007199254740993.0, 123456.789, -0.000001 };
	const size_t n = sizeof(odd) / sizeof(odd[0]);
	size_t c, r;

	make_table(n, COLUMNS);
	set_column(0, odd, n);
	for (c = 1; c < COLUMNS; c++) /* each with each, and each alone */
		for (r = 0; r < n; r++)
			values[c * ROWS + r] = c <= n ? odd[c - 1] : odd[(r * c) % n];
	(void)round_trip();
	for (r = 0; r < n; r++) { /* a single row, a single value */
		make_table(1, 1);
		values[0] = odd[r];
		(void)round_trip();
	}
}
END_TEST

START_TEST(one_odd_value_among_decimals_comes_back)
{
	const double odd[] = { NAN, INFINITY, -0.0, 0x1p63, 1.0 / 3, DBL_TRUE_MIN };
	size_t i, r, plain;

	make_table(60, 1);
	for (r = 0; r < 60; r++)
		values[r] = 50 + (double)(r % 7) / 100;
	plain = round_trip();
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (r = 0; r < 60; r += 59) {
			double keep = values[r];

			values[r] = odd[i];
			/* beside the decimals, not in place of them */
			ck_assert_uint_lt(round_trip(), plain + 16);
			values[r] = keep;
		}
}
END_TEST

START_TEST(missing_values_come_back_as_missing)
{
	size_t c, r, len;

	make_table(60, 6);
	for (r = 0; r < 60; r++)
		for (c = 0; c < 6; c++)
			values[c * ROWS + r] = (double)(r * c);
	for (r = 20; r < 30; r++)
		for (c = 0; c < 3; c++)
			remove_value(c, r); /* a source failed: columns alike */
	for (r = 0; r < 60; r++)
		remove_value(3, r); /* never there */
	remove_value(4, 0);
	remove_value(4, 59);
	for (r = 0; r < 60; r += 2)
		remove_value(5, r);
	values[4 * ROWS + 30] = NAN; /* there, and not a number */
	len = round_trip();
	ck_assert_uint_lt(len, 160);
}
END_TEST

START_TEST(times_come_back_and_may_stand_still)
{
	make_table(4, 0);
	times[1] = times[0];
	times[2] = times[3] = UINT64_MAX;
	(void)round_trip();
	times[0] = times[1] = 0;
	(void)round_trip();
}
END_TEST

/* One column of a kind that hosts have, or that tries the codec. */
static void
random_column(double *v, size_t rows)
{
	size_t kind = random_below(11), r;
	double at = (double)random_below(1u << 30), noise = (double)(1 + random_below(1000));

	for (r = 0; r < rows; r++) {
		double u = (double)random_below(1u << 20) / 0x1p20 - 0.5;

		switch (kind) {
		case 0: v[r] = at; break;
		case 1: v[r] = round(at + noise * u * 100) / 100; break;
		case 2: at = random_below(50) == 0 ? 0 : at + floor(1e6 + 1e4 * u); v[r] = at; break;
		case 3: v[r] = from_bits(next_random()); break;
		case 4: v[r] = (double)(float)(at + noise * u); break;
		case 5: v[r] = random_below(10) == 0 ? floor(u * 1e9) : 0; break;
		case 6: v[r] = random_below(20) == 0 ? NAN : round(u * 1e3) / 10; break;
		case 7: v[r] = 0x1p63 * u * 2; break;
		case 8: v[r] = from_bits(random_below(1000)); break;
		case 9: v[r] = random_below(2) == 0 ? 100 : 0; break;
		default: at += u; v[r] = at / 3; break;
		}
	}
}

static void
random_presence(size_t column, size_t rows)
{
	size_t kind = random_below(8), r, from = random_below(rows), to = random_below(rows);

	for (r = 0; r < rows; r++)
		if (kind == 0 || (kind == 1 && r >= from && r <= to) || (kind == 2 && random_below(2) == 0) ||
			(kind == 3 && column > 0 && !flags[(column - 1) * ROWS + r]))
			remove_value(column, r);
}

static void
random_table(void)
{
	size_t rows = 1 + random_below(random_below(4) == 0 ? ROWS : 70), c, r;

	make_table(rows, random_below(12));
	for (r = 1; r < rows; r++)
		times[r] = times[r - 1] + 1000000000 + random_below(5000000);
	for (c = 0; c < table.columns; c++) {
		random_column(values + c * ROWS, rows);
		random_presence(c, rows);
	}
}

START_TEST(any_table_comes_back)
{
	size_t i;

	for (i = 0; i < 1500; i++) {
		random_table();
		(void)round_trip();
	}
}
END_TEST

/* --- what it costs ----------------------------------------------------------------- */

START_TEST(columns_that_stand_still_cost_their_value_only)
{
	size_t one, all;

	make_table(60, 1);
	one = round_trip();
	make_table(60, COLUMNS);
	all = round_trip();
	ck_assert_uint_le(all - one, 2 * (COLUMNS - 1)); /* 15 bits each */
}
END_TEST

START_TEST(what_cannot_be_pressed_grows_little)
{
	size_t i;

	make_table(60, 8);
	for (i = 0; i < 8 * ROWS; i++)
		values[i] = from_bits(next_random());
	ck_assert_uint_le(round_trip(), 8 * 60 * 8 + 8 * 60 / 3);
}
END_TEST

START_TEST(an_outlier_costs_little)
{
	size_t plain, r;

	make_table(60, 1);
	for (r = 0; r < 60; r++)
		values[r] = (double)(1000000 + r * 1000 + next_random() % 16);
	plain = round_trip();
	for (r = 30; r < 60; r++)
		values[r] -= 1000000; /* a reset */
	ck_assert_uint_le(round_trip(), plain + 12);
}
END_TEST

START_TEST(nothing_is_allocated_after_the_codec)
{
	struct ls_chunk_table back;
	size_t i, len, before = allocations, taken;
	int encoded, decoded;

	ls_chunk_codec_free(ls_chunk_codec_new(1, 1));
	taken = allocations - before;
	ck_assert_uint_gt(taken, 0); /* they are counted */
	for (i = 0; i < 1200; i++) {
		random_table();
		if (i % 100 == 0) { /* a large one among the small */
			make_table(ROWS, 16);
			for (size_t k = 0; k < 16 * ROWS; k++)
				values[k] = (double)(next_random() % 1000);
		}
		before = allocations;
		encoded = ls_chunk_encode(codec, &table, buf, sizeof(buf), &len);
		decoded = ls_chunk_decode(codec, buf, len, &back);
		taken = allocations - before;
		ck_assert_int_eq(encoded, 0);
		ck_assert_int_eq(decoded, 0);
		ck_assert_uint_eq(taken, 0);
	}
}
END_TEST

/* --- what is refused --------------------------------------------------------------- */

START_TEST(codec_within_limits_only)
{
	ck_assert_ptr_null(ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX + 1, 1));
	ck_assert_ptr_null(ls_chunk_codec_new(1, LS_CHUNK_ROWS_MAX + 1));
	ck_assert_ptr_null(ls_chunk_codec_new(1, 0));
	ls_chunk_codec_free(NULL);
}
END_TEST

START_TEST(impossible_tables_are_refused)
{
	size_t len;

	make_table(0, 1);
	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), -LS_ERANGE);
	make_table(2, 1);
	times[1] = times[0] - 1;
	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), -LS_ERANGE);
	make_table(2, COLUMNS + 1);
	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), -LS_ERANGE);
	make_table(2, 1);
	table.stride = 1;
	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), -LS_ERANGE);
	make_table(ROWS + 1, 1);
	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), -LS_ERANGE);
}
END_TEST

/* Every size too small is told, and no byte beyond it written. */
START_TEST(a_buffer_too_small_is_told)
{
	size_t len, i, unused;
	uint8_t *small;

	make_table(20, 4);
	for (i = 0; i < 4 * ROWS; i++)
		values[i] = (double)(next_random() % 1000000) / 100;
	len = round_trip();
	for (i = 0; i < len; i++) {
		small = malloc(i + 1);
		small[i] = 0xa5;
		ck_assert_int_eq(ls_chunk_encode(codec, &table, small, i, &unused), -EMSGSIZE);
		ck_assert_uint_eq(small[i], 0xa5);
		free(small);
	}
	small = malloc(len);
	ck_assert_int_eq(ls_chunk_encode(codec, &table, small, len, &unused), 0);
	free(small);
}
END_TEST

START_TEST(a_body_beyond_the_limit_is_not_made)
{
	static uint8_t large[2 * LS_CHUNK_BODY_MAX_BYTES];
	size_t i, len;

	make_table(ROWS, COLUMNS);
	for (i = 0; i < COLUMNS * ROWS; i++)
		values[i] = from_bits(next_random());
	ck_assert_int_eq(ls_chunk_encode(codec, &table, large, sizeof(large), &len), -EMSGSIZE);
	table.rows = 200;
	ck_assert_int_eq(ls_chunk_encode(codec, &table, large, sizeof(large), &len), 0);
}
END_TEST

static int
decode(size_t len)
{
	struct ls_chunk_table back;
	uint8_t *exact = malloc(len + 1); /* so that a sanitizer sees the first byte beyond */
	int rc;

	memcpy(exact, buf, len);
	rc = ls_chunk_decode(codec, exact, len, &back);
	free(exact);
	return rc;
}

/* Makes the checksum right again, whatever was done to the rest. */
static void
seal(size_t len)
{
	uint32_t sum = (uint32_t)crc32_z(0, buf, len - 4);
	size_t i;

	for (i = 0; i < 4; i++)
		buf[len - 4 + i] = (uint8_t)(sum >> (8 * i));
}

static size_t
encode_small(void)
{
	const double v[] = { 12.5, 12.75, 12.5, 13.25, 12.25 }, w[] = { 100, 250, 390, 560, 700 };
	size_t len;

	make_table(5, 2);
	set_column(0, v, 5);
	set_column(1, w, 5);
	remove_value(0, 2);
	ck_assert_int_eq(ls_chunk_encode(codec, &table, buf, sizeof(buf), &len), 0);
	return len;
}

START_TEST(every_changed_bit_is_seen)
{
	size_t len = encode_small(), i;

	for (i = 8; i < len * 8; i++) { /* the first byte is the version */
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
		ck_assert_int_eq(decode(len), -LS_ECORRUPT);
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	ck_assert_int_eq(decode(len), 0);
}
END_TEST

START_TEST(a_later_format_is_told_apart)
{
	size_t len = encode_small();

	buf[0] = 2;
	ck_assert_int_eq(decode(len), -LS_EVERSION);
	ck_assert_int_eq(decode(1), -LS_EVERSION);
	buf[0] = 1;
	ck_assert_int_eq(decode(1), -LS_EPARSE);
	ck_assert_int_eq(decode(0), -LS_EPARSE);
}
END_TEST

START_TEST(what_is_larger_than_the_codec_is_refused)
{
	struct ls_chunk_codec *narrow = ls_chunk_codec_new(1, ROWS), *low = ls_chunk_codec_new(2, 4);
	struct ls_chunk_table back;
	size_t len = encode_small();

	ck_assert_int_eq(ls_chunk_decode(narrow, buf, len, &back), -LS_ELIMIT);
	ck_assert_int_eq(ls_chunk_decode(low, buf, len, &back), -LS_ELIMIT);
	ck_assert_int_eq(ls_chunk_decode(codec, buf, LS_CHUNK_BODY_MAX_BYTES + 1, &back), -LS_ELIMIT);
	ls_chunk_codec_free(narrow);
	ls_chunk_codec_free(low);
}
END_TEST

START_TEST(a_sound_checksum_does_not_make_sense)
{
	size_t len = encode_small(), i;

	buf[1] = 1;
	seal(len);
	ck_assert_int_eq(decode(len), -LS_EPARSE); /* unknown flags */
	len = encode_small();
	buf[2] = 0;
	seal(len);
	ck_assert_int_eq(decode(len), -LS_EPARSE); /* no rows */
	len = encode_small();
	buf[4] = 3;
	seal(len);
	ck_assert_int_eq(decode(len), -LS_EPARSE); /* a column too few */
	buf[4] = 1;
	seal(len);
	ck_assert_int_eq(decode(len), -LS_EPARSE); /* and one too many */
	len = encode_small();
	buf[len] = 0;
	seal(len + 1);
	ck_assert_int_eq(decode(len + 1), -LS_EPARSE); /* a byte too many */
	for (i = 10; i < encode_small(); i++) {
		seal(i);
		ck_assert_int_eq(decode(i), -LS_EPARSE); /* cut short */
	}
}
END_TEST

/* Bits of a body by hand, lowest first: pairs of a value and a width, ended by a width of 0. */
static int
decode_bits(size_t rows, size_t columns, const uint64_t (*bits)[2])
{
	size_t at = 48, i;

	memset(buf, 0, 64);
	buf[0] = 1;
	buf[2] = (uint8_t)rows;
	buf[4] = (uint8_t)columns;
	for (; (*bits)[1] != 0; bits++)
		for (i = 0; i < (*bits)[1]; i++, at++)
			buf[at / 8] |= (uint8_t)(((*bits)[0] >> i & 1) << at % 8);
	at = (at + 7) / 8 + 4;
	seal(at);
	return decode(at);
}

#define BITS(...) (const uint64_t[][2]){ __VA_ARGS__, { 0, 0 } }

START_TEST(bits_that_make_no_sense_are_refused)
{
	/* Two rows at time 0, standing still: 7 bits of length, 1 bit constant. */
	ck_assert_int_eq(decode_bits(2, 0, BITS({ 0, 7 }, { 1, 1 })), 0);
	/* ... and a column: all present, decimals 0, nothing odd, constant 0. */
	ck_assert_int_eq(decode_bits(2, 1, BITS({ 0, 7 }, { 1, 1 }, { 0, 1 }, { 0, 5 }, { 0, 1 }, { 0, 7 },
		{ 1, 1 })), 0);
	/* Padding that is not zero. */
	ck_assert_int_eq(decode_bits(2, 1, BITS({ 0, 7 }, { 1, 1 }, { 0, 1 }, { 0, 5 }, { 0, 1 }, { 0, 7 },
		{ 3, 2 })), -LS_EPARSE);
	/* Decimals 23. */
	ck_assert_int_eq(decode_bits(2, 1, BITS({ 0, 7 }, { 1, 1 }, { 0, 1 }, { 23, 5 }, { 0, 1 }, { 0, 7 },
		{ 1, 1 })), -LS_EPARSE);
	/* Present as in the column before the first one. */
	ck_assert_int_eq(decode_bits(2, 1, BITS({ 0, 7 }, { 1, 1 }, { 1, 2 }, { 0, 5 }, { 0, 1 }, { 0, 7 },
		{ 1, 1 })), -LS_EPARSE);
	/* Presence in a run of three rows: Rice(4) of 2. */
	ck_assert_int_eq(decode_bits(2, 1, BITS({ 0, 7 }, { 1, 1 }, { 3, 2 }, { 1, 1 }, { 1, 1 }, { 2, 4 },
		{ 0, 5 }, { 0, 1 }, { 0, 7 }, { 1, 1 })), -LS_EPARSE);
	/* All values odd, so that there are no integers. */
	ck_assert_int_eq(decode_bits(1, 1, BITS({ 0, 7 }, { 0, 1 }, { 0, 5 }, { 1, 1 }, { 1, 1 }, { 1, 1 },
		{ 0, 4 }, { 5, 64 })), -LS_EPARSE);
	/* Times that fall: first 1, no step, code plain with k 0, predictor 3 (the last value), -1. */
	ck_assert_int_eq(decode_bits(2, 0, BITS({ 2, 7 }, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 6 },
		{ 3, 3 }, { 2, 2 })), -LS_EPARSE);
	/* The same with +1. */
	ck_assert_int_eq(decode_bits(2, 0, BITS({ 2, 7 }, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 6 },
		{ 3, 3 }, { 4, 3 })), 0);
	/* A run of two zeros where there is one residual. */
	ck_assert_int_eq(decode_bits(2, 0, BITS({ 2, 7 }, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 1, 1 }, { 0, 6 },
		{ 0, 6 }, { 3, 3 }, { 4, 3 })), -LS_EPARSE);
}
END_TEST

START_TEST(any_bytes_with_a_sound_checksum_are_survived)
{
	size_t i, k, len;

	for (i = 0; i < 20000; i++) {
		len = encode_small();
		for (k = 1 + random_below(4); k > 0; k--)
			buf[6 + random_below(len - 10)] ^= (uint8_t)(1u << random_below(8));
		seal(len);
		ck_assert_int_ne(decode(len), -LS_ECORRUPT);
	}
}
END_TEST

/* --- golden ------------------------------------------------------------------------ */

START_TEST(golden_chunk_is_read_as_ever)
{
	size_t len, c, r;
	char *golden = ls_test_read(ls_test_source("tests/golden/chunk_v1.bin"), &len);
	struct ls_chunk_table back;

	make_table(12, 7);
	for (r = 0; r < 12; r++) {
		times[r] += r * r * 1000;
		values[0 * ROWS + r] = 42;
		values[1 * ROWS + r] = (double)(5000 + (r * 37) % 11) / 100;
		values[2 * ROWS + r] = (double)(r < 8 ? 1000000 + r * 4096 : r * 512);
		values[3 * ROWS + r] = 1 / (double)(r + 3);
		values[4 * ROWS + r] = r == 7 ? 0x1p31 : 0;
		values[5 * ROWS + r] = r == 5 ? NAN : (double)r / 4;
		values[6 * ROWS + r] = (double)(r * r);
	}
	for (r = 3; r < 6; r++)
		for (c = 5; c < 7; c++)
			remove_value(c, r);
	ck_assert_int_eq(ls_chunk_decode(codec, (const uint8_t *)golden, len, &back), 0);
	assert_same(&table, &back);
	(void)round_trip();
	free(golden);
}
END_TEST

/* The example of proto/README.md. */
START_TEST(golden_example_is_written_as_ever)
{
	size_t want, len = encode_small();
	char *golden = ls_test_read(ls_test_source("tests/golden/chunk_small_v1.bin"), &want);

	ck_assert_uint_eq(len, want);
	ck_assert_mem_eq(buf, golden, len);
	free(golden);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("chunk");
	TCase *t = tcase_create("lossless");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, every_kind_of_value_comes_back_bit_for_bit);
	tcase_add_test(t, one_odd_value_among_decimals_comes_back);
	tcase_add_test(t, missing_values_come_back_as_missing);
	tcase_add_test(t, times_come_back_and_may_stand_still);
	tcase_add_test(t, any_table_comes_back);
	suite_add_tcase(s, t);
	t = tcase_create("cost");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, columns_that_stand_still_cost_their_value_only);
	tcase_add_test(t, what_cannot_be_pressed_grows_little);
	tcase_add_test(t, an_outlier_costs_little);
	tcase_add_test(t, nothing_is_allocated_after_the_codec);
	suite_add_tcase(s, t);
	t = tcase_create("refused");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, codec_within_limits_only);
	tcase_add_test(t, impossible_tables_are_refused);
	tcase_add_test(t, a_buffer_too_small_is_told);
	tcase_add_test(t, a_body_beyond_the_limit_is_not_made);
	tcase_add_test(t, every_changed_bit_is_seen);
	tcase_add_test(t, a_later_format_is_told_apart);
	tcase_add_test(t, what_is_larger_than_the_codec_is_refused);
	tcase_add_test(t, a_sound_checksum_does_not_make_sense);
	tcase_add_test(t, bits_that_make_no_sense_are_refused);
	tcase_add_test(t, any_bytes_with_a_sound_checksum_are_survived);
	suite_add_tcase(s, t);
	t = tcase_create("golden");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, golden_chunk_is_read_as_ever);
	tcase_add_test(t, golden_example_is_written_as_ever);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return ls_test_run(suite());
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the codec of chunks refuses; what it keeps is in check_chunk.c. */
#include "config.h"
#include "proto/chunk/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "tests/support/chunk_table.h"
#include "tests/support/harness.h"

static struct ls_chunk_codec *codec;
static uint8_t buf[LS_CHUNK_BODY_MAX_BYTES + 8];

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

LS_CASE(encode, setup, teardown);

LS_TEST(encode, codec_within_limits_only)
{
	ck_assert_ptr_null(ls_chunk_codec_new(LS_SERIES_PER_GROUP_MAX + 1, 1));
	ck_assert_ptr_null(ls_chunk_codec_new(1, LS_CHUNK_ROWS_MAX + 1));
	ck_assert_ptr_null(ls_chunk_codec_new(1, 0));
	ls_chunk_codec_free(NULL);
}

LS_TEST(encode, impossible_tables_are_refused)
{
	size_t len;

	chunk_table_make(0, 1);
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		-LS_ERANGE);
	chunk_table_make(2, 1);
	chunk_table.t_mono_ns[1] = chunk_table.t_mono_ns[0] - 1;
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		-LS_ERANGE);
	chunk_table_make(2, CHUNK_TABLE_COLUMNS + 1);
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		-LS_ERANGE);
	chunk_table_make(2, 1);
	chunk_table.stride = 1;
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		-LS_ERANGE);
	chunk_table_make(CHUNK_TABLE_ROWS + 1, 1);
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		-LS_ERANGE);
}

/* Every size too small is told, and no byte beyond it written. */
LS_TEST(encode, a_buffer_too_small_is_told)
{
	size_t len, i, unused;
	uint8_t *small;

	chunk_table_make(20, 4);
	for (i = 0; i < 4 * CHUNK_TABLE_ROWS; i++)
		chunk_table.value[i] = (double)(chunk_table_random() % 1000000) / 100;
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		0);
	for (i = 0; i < len; i++) {
		small = malloc(i + 1);
		small[i] = 0xa5;
		ck_assert_int_eq(
			ls_chunk_encode(codec, &chunk_table, small, i, &unused),
			-EMSGSIZE);
		ck_assert_uint_eq(small[i], 0xa5);
		free(small);
	}
	small = malloc(len);
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, small, len, &unused), 0);
	free(small);
}

LS_TEST(encode, a_body_beyond_the_limit_is_not_made)
{
	static uint8_t large[2 * LS_CHUNK_BODY_MAX_BYTES];
	size_t i, len;

	chunk_table_make(CHUNK_TABLE_ROWS, CHUNK_TABLE_COLUMNS);
	for (i = 0; i < CHUNK_TABLE_COLUMNS * CHUNK_TABLE_ROWS; i++)
		chunk_table.value[i] = chunk_table_double(chunk_table_random());
	ck_assert_int_eq(
		ls_chunk_encode(codec, &chunk_table, large, sizeof(large), &len),
		-EMSGSIZE);
	chunk_table.rows = 200;
	ck_assert_int_eq(
		ls_chunk_encode(codec, &chunk_table, large, sizeof(large), &len), 0);
}

static int
decode(size_t len)
{
	struct ls_chunk_table back;
	/* so that a sanitizer sees the first byte beyond */
	uint8_t *exact = malloc(len > 0 ? len : 1);
	size_t rows = 0, columns = 0;
	int rc, check;

	memcpy(exact, buf, len);
	rc = ls_chunk_decode(codec, exact, len, &back);
	/* What does not decode the rest says the same, unless only that makes no sense.
	 */
	check = ls_chunk_check(exact, len, &rows, &columns);
	if (check != 0 && rc != -LS_ELIMIT)
		ck_assert_int_eq(check, rc);
	if (rc == 0) {
		ck_assert_int_eq(check, 0);
		ck_assert_uint_eq(rows, back.rows);
		ck_assert_uint_eq(columns, back.columns);
	}
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
	size_t len;

	chunk_table_make_small();
	ck_assert_int_eq(ls_chunk_encode(codec, &chunk_table, buf, sizeof(buf), &len),
		0);
	return len;
}

LS_CASE(decode, setup, teardown);

LS_TEST(decode, every_changed_bit_is_seen)
{
	size_t len = encode_small(), i;

	for (i = 8; i < len * 8; i++) { /* the first byte is the version */
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
		ck_assert_int_eq(decode(len), -LS_ECORRUPT);
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	ck_assert_int_eq(decode(len), 0);
}

LS_TEST(decode, a_later_format_is_told_apart)
{
	size_t len = encode_small();

	buf[0] = 2;
	ck_assert_int_eq(decode(len), -LS_EVERSION);
	ck_assert_int_eq(decode(1), -LS_EVERSION);
	buf[0] = 1;
	ck_assert_int_eq(decode(1), -LS_EPARSE);
	ck_assert_int_eq(decode(0), -LS_EPARSE);
}

LS_TEST(decode, what_is_larger_than_the_codec_is_refused)
{
	struct ls_chunk_codec *narrow = ls_chunk_codec_new(1, CHUNK_TABLE_ROWS);
	struct ls_chunk_codec *low = ls_chunk_codec_new(2, 4);
	struct ls_chunk_table back;
	size_t len = encode_small();

	ck_assert_int_eq(ls_chunk_decode(narrow, buf, len, &back), -LS_ELIMIT);
	ck_assert_int_eq(ls_chunk_decode(low, buf, len, &back), -LS_ELIMIT);
	ck_assert_int_eq(
		ls_chunk_decode(codec, buf, LS_CHUNK_BODY_MAX_BYTES + 1, &back),
		-LS_ELIMIT);
	ls_chunk_codec_free(narrow);
	ls_chunk_codec_free(low);
}

LS_TEST(decode, a_sound_checksum_does_not_make_sense)
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

/* Bits of a body by hand, lowest first: pairs of a value and a width, ended by a width
 * of 0. */
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

#define STILL        \
	{ 0, 7 },    \
	{            \
		1, 1 \
	} /* integers: 0 in all rows */
#define FROM_ONE            \
	{ 2, 7 }, { 0, 1 }, \
	{                   \
		0, 1        \
	} /* integers: 1, others follow, no step */
#define BITS(...)             \
	(const uint64_t[][2]) \
	{                     \
		__VA_ARGS__,  \
		{             \
			0, 0  \
		}             \
	}

LS_TEST(decode, bits_that_make_no_sense_are_refused)
{
	/* Two rows at time 0, standing still: 7 bits of length, 1 bit constant. */
	ck_assert_int_eq(decode_bits(2, 0, BITS(STILL)), 0);
	/* ... and a column: all present, decimals 0, nothing odd, constant 0. */
	ck_assert_int_eq(
		decode_bits(2, 1,
			BITS(STILL, { 0, 1 }, { 0, 5 }, { 0, 1 }, { 0, 7 }, { 1, 1 })),
		0);
	/* Padding that is not zero. */
	ck_assert_int_eq(
		decode_bits(2, 1,
			BITS(STILL, { 0, 1 }, { 0, 5 }, { 0, 1 }, { 0, 7 }, { 3, 2 })),
		-LS_EPARSE);
	/* Decimals 23. */
	ck_assert_int_eq(
		decode_bits(2, 1,
			BITS(STILL, { 0, 1 }, { 23, 5 }, { 0, 1 }, { 0, 7 }, { 1, 1 })),
		-LS_EPARSE);
	/* Present as in the column before the first one. */
	ck_assert_int_eq(
		decode_bits(2, 1,
			BITS(STILL, { 1, 2 }, { 0, 5 }, { 0, 1 }, { 0, 7 }, { 1, 1 })),
		-LS_EPARSE);
	/* Presence in a run of three rows: Rice(4) of 2. */
	ck_assert_int_eq(decode_bits(2, 1,
				 BITS(STILL, { 3, 2 }, { 1, 1 }, { 1, 1 }, { 2, 4 },
					 { 0, 5 }, { 0, 1 }, STILL)),
		-LS_EPARSE);
	/* All values odd, so that there are no integers. */
	ck_assert_int_eq(decode_bits(1, 1,
				 BITS({ 0, 7 }, { 0, 1 }, { 0, 5 }, { 1, 1 }, { 1, 1 },
					 { 1, 1 }, { 0, 4 }, { 5, 64 })),
		-LS_EPARSE);
	/* Times that fall: first 1, no step, code plain with k 0, predictor 1 (the last
	 * value), -1. */
	ck_assert_int_eq(decode_bits(2, 0,
				 BITS(FROM_ONE, { 0, 1 }, { 0, 1 }, { 0, 6 }, { 1, 2 },
					 { 2, 2 })),
		-LS_EPARSE);
	/* The same with +1. */
	ck_assert_int_eq(decode_bits(2, 0,
				 BITS(FROM_ONE, { 0, 1 }, { 0, 1 }, { 0, 6 }, { 1, 2 },
					 { 4, 3 })),
		0);
	/* A run of two zeros where there is one residual. */
	ck_assert_int_eq(decode_bits(2, 0,
				 BITS(FROM_ONE, { 0, 1 }, { 1, 1 }, { 0, 6 }, { 0, 6 },
					 { 1, 2 }, { 4, 3 })),
		-LS_EPARSE);
}

LS_TEST(decode, any_bytes_with_a_sound_checksum_are_survived)
{
	size_t i, k, len;

	for (i = 0; i < 20000; i++) {
		len = encode_small();
		for (k = 1 + chunk_table_below(4); k > 0; k--)
			buf[6 + chunk_table_below(len - 10)] ^=
				(uint8_t)(1u << chunk_table_below(8));
		seal(len);
		ck_assert_int_ne(decode(len), -LS_ECORRUPT);
	}
}

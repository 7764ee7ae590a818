/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/tpu_decode.h"

#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"
#include "tests/support/harness.h"

/* Encoded by hand, and checked against the published messages with protoc --decode. */
#define HBM_HEX                                                                        \
	"0a3f0a227470752e72756e74696d652e68626d2e6d656d6f72792e75736167652e6279746573" \
	"1a190a0f0a096465766963652d6964120218091a06108080d0df1f"
#define DUTY_HEX                                                                                   \
	"0a480a287470752e72756e74696d652e74656e736f72636f72652e647574796379636c652e70657263656e74" \
	"1a1c0a0f0a096465766963652d6964120218091a09090000000000e05540"
#define DCN_HEX                                                                                    \
	"0a80010a01641a7b0a320a056174747273122932270a150a0b6275666665725f73697a6512060a04384d422b" \
	"0a0e0a047479706512060a04677270632a45080a110000000000000c4019000000000000f03f210000000000" \
	"00224029000000000000284032161214080311000000000000004019000000000000f03f3a050102040201"
#define STATUS_HEX \
	"0a0277301229080012250a0a080010001a0408011000120e0801100018b424284d300338b109320508b20910052804"

static struct ls_tpu_point points[4];
static size_t point_count;
static struct ls_tpu_answer answer;
static char names[4][LS_SERIES_NAME_MAX_BYTES];

static void
keep_point(void *arg, const struct ls_tpu_point *p)
{
	ck_assert_ptr_eq(arg, points);
	ck_assert_uint_lt(point_count, 4);
	points[point_count++] = *p;
}

static void
keep_name(void *arg, const char *name)
{
	ck_assert_ptr_eq(arg, names);
	ck_assert_uint_lt(point_count, 4);
	ck_assert_int_eq(ls_text_copy(names[point_count++], sizeof(names[0]), name), 0);
}

static size_t
bytes_of(const char *hex, uint8_t *bytes)
{
	size_t len = strlen(hex) / 2;

	ck_assert_int_eq(ls_text_unhex(bytes, len, hex), 0);
	return len;
}

static int
decode(const char *hex)
{
	uint8_t bytes[512];
	size_t len = bytes_of(hex, bytes);

	point_count = 0;
	return ls_tpu_decode_metric(bytes, len, keep_point, points, &answer);
}

LS_CASE(tpu_decode);

LS_TEST(tpu_decode, gauge_of_a_device)
{
	ck_assert_int_eq(decode(HBM_HEX), 0);
	ck_assert_uint_eq(answer.points, 1);
	ck_assert_uint_eq(answer.skipped, 0);
	ck_assert_int_eq((int)points[0].shape, LS_TPU_VALUE);
	ck_assert(!points[0].is_counter);
	ck_assert_double_eq(points[0].value, 8522039296.0);
	ck_assert_uint_eq(points[0].label_count, 1);
	ck_assert_str_eq(points[0].label[0].key, "device");
	ck_assert_str_eq(points[0].label[0].value, "9");
	ck_assert_int_eq(decode(DUTY_HEX), 0);
	ck_assert_double_eq(points[0].value, 87.5);
	ck_assert_str_eq(points[0].label[0].value, "9");
}

LS_TEST(tpu_decode, distribution_with_a_list_of_attributes)
{
	const int64_t count[] = { 1, 2, 4, 2, 1 };
	const double bound[] = { 1, 2, 4, 8 };

	ck_assert_int_eq(decode(DCN_HEX), 0);
	ck_assert_uint_eq(answer.points, 1);
	ck_assert_int_eq((int)points[0].shape, LS_TPU_HISTOGRAM);
	ck_assert_uint_eq(points[0].histogram.buckets, 5);
	ck_assert_mem_eq(points[0].histogram.count, count, sizeof(count));
	ck_assert_mem_eq(points[0].histogram.bound, bound, sizeof(bound));
	ck_assert_int_eq(points[0].histogram.total, 10);
	ck_assert_double_eq(points[0].histogram.mean, 3.5);
	ck_assert(points[0].histogram.has_range);
	ck_assert_double_eq(points[0].histogram.max, 9);
	ck_assert_uint_eq(points[0].label_count, 2);
	ck_assert_str_eq(points[0].label[0].key, "buffer_size");
	ck_assert_str_eq(points[0].label[0].value, "8MB+");
	ck_assert_str_eq(points[0].label[1].key, "type");
	ck_assert_str_eq(points[0].label[1].value, "grpc");
}

/* Field 9 twice in a core's state, field 10 in a queued program. */
LS_TEST(tpu_decode, unknown_fields_of_a_status_are_counted_by_number)
{
	static const char hex[] = "12110801120d4a02616248074a0163320250"
				  "05";
	struct ls_tpu_status s;
	uint8_t bytes[64];
	size_t len = bytes_of(hex, bytes);

	ck_assert_int_eq(ls_tpu_decode_status(bytes, len, &s), 0);
	ck_assert_uint_eq(s.count, 1);
	ck_assert_uint_eq(s.unknown_count, 2);
	ck_assert_str_eq(s.unknown[0].message, "CoreState");
	ck_assert_uint_eq(s.unknown[0].number, 9);
	ck_assert_uint_eq(s.unknown[0].count, 3);
	ck_assert_str_eq(s.unknown[1].message, "Queued");
	ck_assert_uint_eq(s.unknown[1].number, 10);
	ck_assert_uint_eq(s.unknown[1].count, 1);
}

LS_TEST(tpu_decode, unknown_fields_beyond_the_maximum_are_left_out)
{
	uint8_t bytes[2 * 20];
	struct ls_tpu_status s;
	size_t i;

	for (i = 0; i < 20; i++) { /* fields 3 to 15 fit one byte of tag */
		bytes[2 * i] = (uint8_t)((3 + i % 12) << 3);
		bytes[2 * i + 1] = 1;
	}
	ck_assert_int_eq(ls_tpu_decode_status(bytes, sizeof(bytes), &s), 0);
	ck_assert_uint_eq(s.unknown_count, LS_TPU_UNKNOWN_FIELDS_MAX);
	ck_assert_uint_eq(s.unknown[0].count, 2);
}

LS_TEST(tpu_decode, status_of_a_core)
{
	struct ls_tpu_status s;
	uint8_t bytes[128];
	size_t len = bytes_of(STATUS_HEX, bytes);

	ck_assert_int_eq(ls_tpu_decode_status(bytes, len, &s), 0);
	ck_assert_str_eq(s.host, "w0");
	ck_assert_uint_eq(s.count, 1);
	ck_assert_int_eq(s.core[0].core_id, 0);
	ck_assert_int_eq(s.core[0].chip_id, 0);
	ck_assert_int_eq(s.core[0].type, 1);
	ck_assert(s.core[0].has_launch && s.core[0].has_sequencer);
	ck_assert_int_eq(s.core[0].launch_id, 4);
	ck_assert_int_eq(s.core[0].run_id, 1201);
	ck_assert_int_eq(s.core[0].pc, 4660);
	ck_assert_int_eq(s.core[0].tracemark, 77);
	ck_assert_uint_eq(s.core[0].queued, 1);
	ck_assert_uint_eq(s.core[0].program, 0);
	ck_assert_str_eq(s.core[0].error, "");
}

LS_TEST(tpu_decode, cores_come_in_any_order_and_the_last_of_one_id_counts)
{
	/* cores 5, 2, 5 again with launch 9, -1, one without a value, one with an error
	 * and a fingerprint */
	static const char hex[] =
		"120608051202280812060802120228021206080512022809120f08ffffff"
		"ffffffffffff011202280112020801120d08071209220201023a03611b62";
	struct ls_tpu_status s;
	uint8_t bytes[128];
	size_t len = bytes_of(hex, bytes);

	ck_assert_int_eq(ls_tpu_decode_status(bytes, len, &s), 0);
	ck_assert_uint_eq(s.count, 3);
	ck_assert_uint_eq(s.skipped, 2);
	ck_assert_int_eq(s.core[0].core_id, 2);
	ck_assert_int_eq(s.core[1].core_id, 5);
	ck_assert_int_eq(s.core[1].launch_id, 9);
	ck_assert_int_eq(s.core[2].core_id, 7);
	ck_assert(!s.core[2].has_launch && !s.core[2].has_sequencer);
	ck_assert_int_eq(s.core[2].chip_id, -1);
	ck_assert_uint_ne(s.core[2].program, 0);
	ck_assert_str_eq(s.core[2].error, "a\\x1bb");
	ck_assert_uint_ne(s.core[0].motion, s.core[1].motion);
}

LS_TEST(tpu_decode, names_of_the_list)
{
	/* "a.b", "" (absent), "x y", "c" */
	static const char hex[] = "0a050a03612e620a000a050a037820790a030a0163";
	uint8_t bytes[64];
	size_t len = bytes_of(hex, bytes);

	point_count = 0;
	ck_assert_int_eq(ls_tpu_decode_list(bytes, len, keep_name, names, &answer), 0);
	ck_assert_uint_eq(answer.points, 2);
	ck_assert_uint_eq(answer.skipped, 2);
	ck_assert_str_eq(names[0], "a.b");
	ck_assert_str_eq(names[1], "c");
}

/* A MetricResponse of one Point with these bytes. */
static int
decode_point(const char *hex)
{
	uint8_t point[256], bytes[300];
	size_t len = bytes_of(hex, point);

	ck_assert_uint_lt(len, 120);
	bytes[0] = 0x0a;
	bytes[1] = (uint8_t)(len + 2);
	bytes[2] = 0x1a;
	bytes[3] = (uint8_t)len;
	memcpy(bytes + 4, point, len);
	point_count = 0;
	return ls_tpu_decode_metric(bytes, len + 4, keep_point, points, &answer);
}

static void
assert_skipped(const char *hex, const char *why)
{
	ck_assert_int_eq(decode_point(hex), 0);
	ck_assert_uint_eq(answer.points, 0);
	ck_assert_uint_eq(answer.skipped, 1);
	ck_assert_str_eq(answer.why, why);
}

LS_TEST(tpu_decode, what_cannot_be_is_left_out)
{
	assert_skipped("1a0909000000000000f87f", "gauge that is not a number");
	assert_skipped("1a0909000000000000f07f", "gauge that is not a number");
	assert_skipped("1a031a0178", "gauge without a number");
	assert_skipped("1a00", "gauge without a number");
}

LS_TEST(tpu_decode, kinds_of_measures)
{
	ck_assert_int_eq(decode_point("1a022001"), 0);
	ck_assert_double_eq(points[0].value, 1);
	ck_assert_int_eq(decode_point("220310ac02"), 0);
	ck_assert(points[0].is_counter);
	ck_assert_double_eq(points[0].value, 300);
	assert_skipped("220909000000000000f0bf", "counter that is not a number");
	assert_skipped("2200", "counter without a number");
	assert_skipped("3200", "value of an unknown type");
	assert_skipped("", "value of an unknown type");
	assert_skipped("2a00", "distribution that is empty");
	assert_skipped("2a020801", "distribution without bounds");
	/* count 2, explicit bounds 1 and 2, three counts */
	ck_assert_int_eq(
		decode_point(
			"2a1d080232141a120a10000000000000f03f00000000000000403a03010100"),
		0);
	ck_assert_uint_eq(answer.points, 1);
	ck_assert_uint_eq(points[0].histogram.buckets, 3);
	assert_skipped("2a1c080232141a120a10000000000000f03f00000000000000403a020101",
		"number of buckets that does not match their bounds");
	assert_skipped("2a1d080332141a120a10000000000000f03f00000000000000403a03010100",
		"inconsistent distribution");
}

LS_TEST(tpu_decode, ordinals_in_whatever_spelling)
{
	/* attribute {key, value}, gauge 1 */
	ck_assert_int_eq(decode_point("0a100a0e6465766963652d6f7264696e616c1a021001"),
		0);
	/* a key without a value says nothing */
	ck_assert_uint_eq(points[0].label_count, 0);
	/* device_ordinal "7" */
	ck_assert_int_eq(
		decode_point("0a150a0e6465766963655f6f7264696e616c12030a01371a021001"),
		0);
	ck_assert_str_eq(points[0].label[0].key, "device");
	ck_assert_str_eq(points[0].label[0].value, "7");
	/* "7x", "07", -1 */
	assert_skipped("0a160a0e6465766963655f6f7264696e616c12040a0237781a021001",
		"invalid ordinal");
	assert_skipped("0a160a0e6465766963655f6f7264696e616c12040a0230371a021001",
		"invalid ordinal");
	assert_skipped(
		"0a1d0a0e6465766963655f6f7264696e616c120b18ffffffffffffffffff011a021001",
		"invalid ordinal");
	/* without a key */
	assert_skipped("0a04120218011a021001", "attribute without a name");
}

LS_TEST(tpu_decode, bytes_that_are_no_message)
{
	uint8_t bytes[512];
	size_t len = bytes_of(DCN_HEX, bytes);
	struct ls_tpu_status status;

	point_count = 0;
	/* Cut anywhere but at its end it is no message (at 0 it is an empty one). */
	for (size_t i = 1; i < len; i++)
		ck_assert_int_eq(
			ls_tpu_decode_metric(bytes, i, keep_point, points, &answer),
			-LS_EPARSE);
	ck_assert_uint_eq(point_count, 0);
	ck_assert_int_eq(ls_tpu_decode_metric(bytes, 0, keep_point, points, &answer),
		0);
	ck_assert_int_eq(ls_tpu_decode_list(bytes, 3, keep_name, names, &answer),
		-LS_EPARSE);
	ck_assert_int_eq(ls_tpu_decode_status(bytes, 3, &status), -LS_EPARSE);
}

LS_TEST(tpu_decode, memory_is_bounded_by_the_bytes)
{
	/* 100,000 empty points: 2 bytes each, 100 in memory */
	const size_t points_len = 200000;
	uint8_t *bytes = malloc(points_len + 4);

	ck_assert_ptr_nonnull(bytes);
	bytes[0] = 0x0a;
	bytes[1] = (uint8_t)((points_len & 0x7f) | 0x80);
	bytes[2] = (uint8_t)((points_len >> 7 & 0x7f) | 0x80);
	bytes[3] = (uint8_t)(points_len >> 14);
	for (size_t i = 4; i < points_len + 4; i += 2) {
		bytes[i] = 0x1a;
		bytes[i + 1] = 0;
	}
	ck_assert_int_eq(ls_tpu_decode_metric(bytes, points_len + 4, keep_point, points,
				 &answer),
		-LS_ELIMIT);
	free(bytes);
}

LS_TEST(tpu_decode, requests_have_these_bytes)
{
	static const char want[] =
		"0a227470752e72756e74696d652e68626d2e6d656d6f72792e75736167652e6279746573";
	uint8_t got[64], bytes[64];
	size_t len = bytes_of(want, bytes), got_len;

	ck_assert_int_eq(ls_tpu_encode_request("tpu.runtime.hbm.memory.usage.bytes",
				 false, got, sizeof(got), &got_len),
		0);
	ck_assert_uint_eq(got_len, len);
	ck_assert_mem_eq(got, bytes, len);
	ck_assert_int_eq(ls_tpu_encode_request("a", true, got, sizeof(got), &got_len),
		0);
	ck_assert_uint_eq(got_len, 5);
	ck_assert_mem_eq(got,
		"\x0a\x01"
		"a\x10\x01",
		5);
	ck_assert_int_eq(ls_tpu_encode_request(NULL, false, got, sizeof(got), &got_len),
		0);
	ck_assert_uint_eq(got_len, 0);
	ck_assert_int_eq(ls_tpu_encode_request("abcdef", false, got, 4, &got_len),
		-LS_ELIMIT);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/json.h"

#include "proto/limits.h"
#include "proto/base/digest.h"
#include "tests/support/harness.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static json_t *
parse(const char *text)
{
	json_t *v = NULL;
	char err[128];

	ck_assert_msg(ls_json_parse(text, strlen(text), &v, err, sizeof(err)) == 0,
		"%s", err);
	return v;
}

LS_CASE(json);

LS_TEST(json, parse_takes_any_value)
{
	static const char *const texts[] = { "{}", "[1,2]", "\"a\"", "1.5", "null",
		" true " };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_decref(parse(texts[i]));
}

LS_TEST(json, parse_needs_no_terminator)
{
	const char text[4] = { '[', '1', ']', 'x' };
	json_t *v = NULL;
	char err[128];

	ck_assert_int_eq(ls_json_parse(text, 3, &v, err, sizeof(err)), 0);
	ck_assert_uint_eq(json_array_size(v), 1);
	json_decref(v);
}

static const char *const malformed[] = {
	"",
	"{",
	"[1,]",
	"{\"a\":1,\"a\":2}",
	"\"\xff\"",
	"nan",
	"1e999",
	"[1] x",
	"'a'",
	"\"\\q",
	"\"a\nb\"",
	"}",
	"]]",
	"99999999999999999999",
};

LS_TEST_EACH(json, parse_refuses_malformed, malformed)
{
	json_t *v = NULL;
	char err[128] = "";

	ck_assert_int_eq(ls_json_parse(malformed[_i], strlen(malformed[_i]), &v, err,
				 sizeof(err)),
		-LS_EPARSE);
	ck_assert_ptr_null(v);
	ck_assert_str_ne(err, "");
	for (const char *s = err; *s; s++)
		ck_assert(*s >= ' ');
}

LS_TEST(json, parse_limits_depth)
{
	char text[2 * LS_JSON_DEPTH_MAX + 3];
	json_t *v = NULL;
	char err[128];

	memset(text, '[', LS_JSON_DEPTH_MAX);
	memset(text + LS_JSON_DEPTH_MAX, ']', LS_JSON_DEPTH_MAX);
	ck_assert_int_eq(
		ls_json_parse(text, 2 * LS_JSON_DEPTH_MAX, &v, err, sizeof(err)), 0);
	json_decref(v);
	memset(text, '[', LS_JSON_DEPTH_MAX + 1);
	memset(text + LS_JSON_DEPTH_MAX + 1, ']', LS_JSON_DEPTH_MAX + 1);
	ck_assert_int_eq(
		ls_json_parse(text, 2 * LS_JSON_DEPTH_MAX + 2, &v, err, sizeof(err)),
		-LS_ELIMIT);
	ck_assert_str_eq(err, "nested deeper than 32");
}

LS_TEST(json, parse_counts_no_brackets_in_strings)
{
	char text[128] = "[\"\\\"";

	memset(text + 4, '[', LS_JSON_DEPTH_MAX);
	memcpy(text + 4 + LS_JSON_DEPTH_MAX, "\"]", 3);
	json_decref(parse(text));
}

LS_TEST(json, canonical_is_sorted_and_tight)
{
	json_t *v = parse(
		"{ \"b\": [1, 0.1, true, null], \"a\": {\"z\": \"\\u00f4\", \"y\": -2} }");
	char *text = ls_json_canonical(v);

	ck_assert_str_eq(text,
		"{\"a\":{\"y\":-2,\"z\":\"\xc3\xb4\"},\"b\":[1,0.1,true,null]}");
	free(text);
	json_decref(v);
}

LS_TEST(json, digest_is_sha256_of_canonical_text)
{
	json_t *a = parse("[]");
	json_t *b = parse("{\"x\":1,\"y\":2}");
	json_t *c = parse("{ \"y\":2, \"x\":1 }");
	char first[LS_DIGEST_BYTES], second[LS_DIGEST_BYTES];

	ck_assert_int_eq(ls_digest_json(a, first), 0);
	ck_assert_str_eq(first,
		"sha256:"
		"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945");
	ck_assert_int_eq(ls_digest_json(b, first), 0);
	ck_assert_int_eq(ls_digest_json(c, second), 0);
	ck_assert_str_eq(first, second);
	json_decref(a);
	json_decref(b);
	json_decref(c);
}

static const struct {
	double v;
	int digits;
	const char *text;
} rounded[] = {
	{ 1.0 / 3, 4, "0.3333" }, { 2.0 / 3, 4, "0.6667" }, { 123456.0, 2, "120000.0" },
	{ 0.1 + 0.2, 15, "0.3" }, { -0.0, 3, "0.0" }, { -1e-9 / 3, 2, "-3.3e-10" },
	{ 12, 6, "12.0" }, { NAN, 3, "null" }, { INFINITY, 3, "null" },
	{ -INFINITY, 3, "null" },
	{ 1.7976931348623157e308, 1, "null" }, /* rounds up, out of range */
	{ 5e-324, 1, "4.94065645841247e-324" }, /* the least there is */
};

LS_TEST_EACH(json, number_is_rounded, rounded)
{
	json_t *v = ls_json_number(rounded[_i].v, rounded[_i].digits);
	char *text = ls_json_canonical(v);

	ck_assert_str_eq(text, rounded[_i].text);
	free(text);
	json_decref(v);
}

/* The n-th allocation of jansson fails. */
static long allocations_left;

static void *
failing_malloc(size_t size)
{
	return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* Runs parse, canonical and digest; true if all had the memory they wanted. */
static bool
torture_round(const char *text)
{
	char err[128], digest[LS_DIGEST_BYTES];
	json_t *v = NULL;
	char *canonical;
	int rc = ls_json_parse(text, strlen(text), &v, err, sizeof(err));

	if (rc != 0) {
		ck_assert(rc == -ENOMEM || rc == -LS_EPARSE);
		ck_assert_ptr_null(v);
		return false;
	}
	rc = ls_digest_json(v, digest);
	ck_assert(rc == 0 || rc == -ENOMEM);
	canonical = ls_json_canonical(v);
	free(canonical);
	json_decref(v);
	return canonical != NULL && rc == 0;
}

LS_TEST(json, every_allocation_may_fail)
{
	bool done = false;

	json_set_alloc_funcs(failing_malloc, free);
	for (long n = 0; !done; n++) {
		ck_assert_int_lt(n, 1000);
		allocations_left = n;
		done = torture_round("{\"b\":[1,0.5,\"x\"],\"a\":{\"c\":null}}");
	}
	json_set_alloc_funcs(malloc, free);
}

LS_TEST(json, measured_numbers_have_six_digits)
{
	json_t *v = ls_json_real(0.123456789);

	ck_assert_double_eq(json_real_value(v), 0.123457);
	json_decref(v);
	v = ls_json_real(NAN);
	ck_assert(json_is_null(v));
	json_decref(v);
}

LS_TEST(json, times_are_text_or_null)
{
	json_t *v = ls_json_time(1700000000123456);

	ck_assert_str_eq(json_string_value(v), "2023-11-14T22:13:20.123Z");
	json_decref(v);
	v = ls_json_time(0);
	ck_assert(json_is_null(v));
	json_decref(v);
}

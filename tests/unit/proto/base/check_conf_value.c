/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/conf_value.h"

#include "tests/support/harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	uint64_t ns;
	int rc;
} durations[] = {
	{ "0", 0, 0 },
	{ "90", 90000000000, 0 },
	{ "1.5s", 1500000000, 0 },
	{ "0.1s", 100000000, 0 },
	{ "200ms", 200000000, 0 },
	{ "7us", 7000, 0 },
	{ "7ns", 7, 0 },
	{ "2m", 120000000000, 0 },
	{ "1.5h", 5400000000000, 0 },
	{ "30d", 2592000000000000, 0 },
	{ "0.0000000001s", 0, 0 },
	{ "0.9999999999s", 1000000000, 0 },
	{ "106750d", 9223200000000000000u, 0 },
	{ "106753d", 0, -LS_ERANGE },
	{ "99999999999999999999", 0, -LS_ERANGE },
	{ "", 0, -LS_EPARSE },
	{ "s", 0, -LS_EPARSE },
	{ "-1s", 0, -LS_EPARSE },
	{ "+1s", 0, -LS_EPARSE },
	{ " 1s", 0, -LS_EPARSE },
	{ "1s ", 0, -LS_EPARSE },
	{ "1 s", 0, -LS_EPARSE },
	{ "1.s", 0, -LS_EPARSE },
	{ ".5s", 0, -LS_EPARSE },
	{ "1e3", 0, -LS_EPARSE },
	{ "1S", 0, -LS_EPARSE },
	{ "1MiB", 0, -LS_EPARSE },
	{ "0x1", 0, -LS_EPARSE },
};

LS_CASE(conf_value);

LS_TEST_EACH(conf_value, duration_is_parsed, durations)
{
	uint64_t ns = 42;

	ck_assert_int_eq(ls_conf_parse_duration(durations[_i].text, &ns),
		durations[_i].rc);
	ck_assert_uint_eq(ns, durations[_i].rc == 0 ? durations[_i].ns : 42);
}

LS_TEST(conf_value, size_is_parsed)
{
	uint64_t bytes = 42;

	ck_assert_int_eq(ls_conf_parse_size("1000", &bytes), 0);
	ck_assert_uint_eq(bytes, 1000);
	ck_assert_int_eq(ls_conf_parse_size("1B", &bytes), 0);
	ck_assert_uint_eq(bytes, 1);
	ck_assert_int_eq(ls_conf_parse_size("1.5KiB", &bytes), 0);
	ck_assert_uint_eq(bytes, 1536);
	ck_assert_int_eq(ls_conf_parse_size("2GiB", &bytes), 0);
	ck_assert_uint_eq(bytes, 2147483648u);
	ck_assert_int_eq(ls_conf_parse_size("8589934592GiB", &bytes), -LS_ERANGE);
	ck_assert_int_eq(ls_conf_parse_size("1kB", &bytes), -LS_EPARSE);
	ck_assert_uint_eq(bytes, 2147483648u);
}

LS_TEST(conf_value, nearest_is_near_or_nothing)
{
	static const char *const words[] = { "collector", "state-dir", "host-name",
		"beat" };
	char huge[100];

	ck_assert_str_eq(ls_conf_nearest("colector", words, 4), "collector");
	ck_assert_str_eq(ls_conf_nearest("beta", words, 4), "beat");
	ck_assert_str_eq(ls_conf_nearest("statedir", words, 4), "state-dir");
	ck_assert_str_eq(ls_conf_nearest("beat", words, 4), "beat");
	ck_assert_ptr_null(ls_conf_nearest("zebra", words, 4));
	ck_assert_ptr_null(ls_conf_nearest("", words, 4));
	ck_assert_ptr_null(ls_conf_nearest("beat", words, 0));
	memset(huge, 'b', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	ck_assert_ptr_null(ls_conf_nearest(huge, words, 4));
}

/* One field of each kind, with something else behind it. */
struct fields {
	char text[LS_CONF_VALUE_MAX_BYTES];
	bool flag;
	int64_t number;
	uint64_t time_ns;
	uint64_t bytes;
	uint64_t canary;
};

#define CANARY 0x5eed5eed5eed5eedu

static const struct {
	struct ls_conf_option option;
	const char *in;
	const char *out; /* NULL: as it went in */
} round_trips[] = {
	{ { "t", LS_CONF_STRING, offsetof(struct fields, text), 0, 0, 0, 0, 0, 0 },
		"a b", NULL },
	{ { "e", LS_CONF_ENUM, offsetof(struct fields, text), 0, 0, 0, "x|yy|z", 0, 0 },
		"yy", NULL },
	{ { "b", LS_CONF_BOOL, offsetof(struct fields, flag), 0, 0, 0, 0, 0, 0 }, "yes",
		"true" },
	{ { "b", LS_CONF_BOOL, offsetof(struct fields, flag), 0, 0, 0, 0, 0, 0 }, "0",
		"false" },
	{ { "i", LS_CONF_INT, offsetof(struct fields, number), 0, 0, 0, 0, 0, 0 }, "-7",
		NULL },
	{ { "d", LS_CONF_DURATION, offsetof(struct fields, time_ns), 0, 0, 0, 0, 0, 0 },
		"1.5s", "1500ms" },
	{ { "d", LS_CONF_DURATION, offsetof(struct fields, time_ns), 0, 0, 0, 0, 0, 0 },
		"120", "2m" },
	{ { "d", LS_CONF_DURATION, offsetof(struct fields, time_ns), 0, 0, 0, 0, 0, 0 },
		"0", "0ns" },
	{ { "s", LS_CONF_SIZE, offsetof(struct fields, bytes), 0, 0, 0, 0, 0, 0 },
		"1024", "1KiB" },
	{ { "s", LS_CONF_SIZE, offsetof(struct fields, bytes), 0, 0, 0, 0, 0, 0 },
		"1025", "1025B" },
};

LS_TEST_EACH(conf_value, value_goes_in_and_comes_out, round_trips)
{
	const struct ls_conf_option *o = &round_trips[_i].option;
	const char *want =
		round_trips[_i].out ? round_trips[_i].out : round_trips[_i].in;
	struct fields f = { .canary = CANARY };
	char why[128], text[64];

	ck_assert_int_eq(ls_conf_value_set(o, round_trips[_i].in, &f, why, sizeof(why)),
		0);
	ls_conf_value_get(o, &f, text, sizeof(text));
	ck_assert_str_eq(text, want);
	ck_assert_int_eq(ls_conf_value_set(o, text, &f, why, sizeof(why)), 0);
	ls_conf_value_get(o, &f, text, sizeof(text));
	ck_assert_str_eq(text, want);
	ck_assert_uint_eq(f.canary, CANARY);
}

LS_TEST_EACH(conf_value, refused_value_leaves_the_field, round_trips)
{
	const struct ls_conf_option *o = &round_trips[_i].option;
	struct fields f, before;
	char bad[LS_CONF_VALUE_MAX_BYTES + 1];
	char why[128] = "";

	memset(&f, 0, sizeof(f));
	memcpy(&before, &f, sizeof(f));
	/* too long for a text, and nothing else either */
	memset(bad, 'x', sizeof(bad) - 1);
	bad[sizeof(bad) - 1] = '\0';
	ck_assert_int_lt(ls_conf_value_set(o, bad, &f, why, sizeof(why)), 0);
	ck_assert_str_ne(why, "");
	ck_assert_mem_eq(&f, &before, sizeof(f));
}

LS_TEST(conf_value, text_is_cut_to_fit)
{
	const struct ls_conf_option *o = &round_trips[0].option;
	struct fields f = { .text = "abcdef" };
	char text[4];

	ls_conf_value_get(o, &f, text, sizeof(text));
	ck_assert_str_eq(text, "abc");
}

static const struct {
	const char *text;
	int64_t us;
} parsed[] = {
	{ "2026-11-20T13:22:11Z", 1795180931000000 },
	{ "2026-11-20t13:22:11.5z", 1795180931500000 },
	{ "2026-11-20 13:22:11.1234567Z", 1795180931123456 },
	{ "2026-11-20T15:22:11+02:00", 1795180931000000 },
	{ "2026-11-20T09:52:11-03:30", 1795180931000000 },
	{ "2016-12-31T23:59:60Z", 1483228800000000 },
	{ "0", 0 },
	{ "1795180931", 1795180931000000 },
	{ "1795180931.25", 1795180931250000 },
	{ "1.0000019", 1000001 },
	{ "-15m", 1000000000000000 - 900000000 },
	{ "-90", 1000000000000000 - 90000000 },
	{ "-1.5h", 1000000000000000 - 5400000000 },
	{ "-0s", 1000000000000000 },
};

LS_TEST_EACH(conf_value, time_takes, parsed)
{
	int64_t us = 7;

	ck_assert_int_eq(ls_conf_parse_time(parsed[_i].text, 1000000000000000, &us), 0);
	ck_assert_msg(us == parsed[_i].us, "%s: %" PRId64, parsed[_i].text, us);
}

static const char *const not_times[] = {
	"",
	" ",
	"x",
	"now",
	"-",
	"--5",
	"-5x",
	"15m",
	"+5",
	"1e9",
	"0x10",
	"1.",
	".5",
	"1795180931 ",
	"253402300800",
	"99999999999999999999",
	"2026-",
	"2026-11-20",
	"2026-11-20T",
	"2026-11-20T13:22:11",
	"2026-11-20T13:22Z",
	"2026-13-20T13:22:11Z",
	"2026-00-20T13:22:11Z",
	"2026-11-31T13:22:11Z",
	"2026-11-00T13:22:11Z",
	"2026-02-29T00:00:00Z",
	"1900-02-29T00:00:00Z",
	"2026-11-20T24:00:00Z",
	"2026-11-20T13:60:00Z",
	"2026-11-20T13:22:61Z",
	"2026-11-20T13:22:11.Z",
	"2026-11-20T13:22:11+24:00",
	"2026-11-20T13:22:11+0200",
	"2026-11-20T13:22:11+02:60",
	"2026-11-20T13:22:11Zx",
	"2026-1-20T13:22:11Z",
	"02026-11-20T13:22:11Z",
};

LS_TEST_EACH(conf_value, time_refuses, not_times)
{
	int64_t us = 7;

	ck_assert_msg(ls_conf_parse_time(not_times[_i], 0, &us) == -LS_EPARSE, "'%s'",
		not_times[_i]);
	ck_assert_int_eq(us, 7);
}

LS_TEST(conf_value, time_relative_stays_in_range)
{
	int64_t us = 7;

	ck_assert_int_eq(ls_conf_parse_time("-1s", INT64_MIN, &us), -LS_EPARSE);
	ck_assert_int_eq(us, 7);
}

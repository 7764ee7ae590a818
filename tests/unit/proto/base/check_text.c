/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/base/conf.h"
#include "proto/base/text.h"

#include "tests/support/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

LS_CASE(text);

LS_TEST(text, copy_fits_or_leaves_dst)
{
	char dst[4] = "old";

	ck_assert_int_eq(ls_text_copy(dst, sizeof(dst), "four"), -LS_ELIMIT);
	ck_assert_str_eq(dst, "old");
	ck_assert_int_eq(ls_text_copy(dst, sizeof(dst), "new"), 0);
	ck_assert_str_eq(dst, "new");
	ck_assert_int_eq(ls_text_copy(dst, 0, ""), -LS_ELIMIT);
	ck_assert_str_eq(dst, "new");
}

static bool
is_name(const char *s)
{
	return ls_text_is_name(s, strlen(s), 16);
}

LS_TEST(text, name_is_utf8_of_1_to_max_bytes)
{
	ck_assert(is_name("worker-3"));
	ck_assert(is_name("h\xc3\xb4te")); /* U+00F4 */
	ck_assert(is_name("\xf0\x9f\x90\xa2")); /* U+1F422 */
	ck_assert(is_name("\xed\x9f\xbf\xee\x80\x80")); /* around the surrogates */
	ck_assert(!is_name(""));
	ck_assert(is_name("0123456789abcdef"));
	ck_assert(!is_name("0123456789abcdefg"));
}

LS_TEST(text, name_has_no_control_characters)
{
	ck_assert(!is_name("a\tb"));
	ck_assert(!is_name("a\nb"));
	ck_assert(!is_name("\x1b[31m"));
	ck_assert(!is_name("a\x7f"));
	ck_assert(!is_name("a\xc2\x9b")); /* C1: CSI */
	ck_assert(!ls_text_is_name("a\0b", 3, 16));
}

/* RFC 3629: what a decoder must refuse. */
static const char *const malformed[] = {
	"\x80",
	"\xbf",
	"\xc3",
	"\xc0\xaf",
	"\xc1\x81",
	"\xe0\x80\xaf",
	"\xe2\x82",
	"\xed\xa0\x80",
	"\xed\xbf\xbf",
	"\xf0\x80\x80\xaf",
	"\xf0\x9f\x90",
	"\xf4\x90\x80\x80",
	"\xf5\x80\x80\x80",
	"\xf8\x88\x80\x80\x80",
	"\xff",
	"\xfe",
	"\xc3(",
	"\xe2(\xa1",
	"\xe2\x82(",
};

LS_TEST_EACH(text, name_is_never_malformed_utf8, malformed)
{
	ck_assert(!is_name(malformed[_i]));
}

LS_TEST_EACH(text, escape_makes_malformed_utf8_plain, malformed)
{
	char dst[64];
	size_t n =
		ls_text_escape(dst, sizeof(dst), malformed[_i], strlen(malformed[_i]));

	ck_assert_uint_eq(n, strlen(dst));
	ck_assert(memcmp(dst, "\\x", 2) == 0);
	for (size_t i = 0; i < n; i++)
		ck_assert(dst[i] >= ' ' && dst[i] <= '~');
}

static const char *
escaped(const char *s, size_t len)
{
	static char dst[128];

	ck_assert_uint_eq(ls_text_escape(dst, sizeof(dst), s, len), strlen(dst));
	return dst;
}

LS_TEST(text, escape_shows_what_acts_on_a_terminal)
{
	ck_assert_str_eq(escaped("plain h\xc3\xb4te", 11), "plain h\xc3\xb4te");
	ck_assert_str_eq(escaped("a\nb\0\x1b[0m\x7f", 9), "a\\x0ab\\x00\\x1b[0m\\x7f");
	ck_assert_str_eq(escaped("\xc2\x9b", 2), "\\xc2\\x9b");
	/* the last control character, and the first that is none */
	ck_assert_str_eq(escaped("\xc2\x9f", 2), "\\xc2\\x9f");
	ck_assert_str_eq(escaped("\xc2\xa0", 2), "\xc2\xa0");
	ck_assert_str_eq(escaped("\xe2\x80\xaegnp", 6), "\\xe2\\x80\\xaegnp");
	ck_assert_str_eq(escaped("\xe2\x81\xa6", 3), "\\xe2\\x81\\xa6");
	ck_assert_str_eq(escaped("\xe2\x80\x8f", 3), "\\xe2\\x80\\x8f");
	/* a hyphen may stay */
	ck_assert_str_eq(escaped("\xe2\x80\x90", 3), "\xe2\x80\x90");
}

LS_TEST(text, escape_cuts_between_characters)
{
	char dst[8];

	ck_assert_uint_eq(ls_text_escape(dst, 4, "h\xc3\xb4te", 5), 3);
	ck_assert_str_eq(dst, "h\xc3\xb4");
	ck_assert_uint_eq(ls_text_escape(dst, 3, "h\xc3\xb4te", 5), 1);
	ck_assert_str_eq(dst, "h");
	ck_assert_uint_eq(ls_text_escape(dst, 5, "\n\n", 2), 4);
	ck_assert_str_eq(dst, "\\x0a");
	ck_assert_uint_eq(ls_text_escape(dst, 4, "\n", 1), 0);
	ck_assert_str_eq(dst, "");
	dst[0] = 'x';
	ck_assert_uint_eq(ls_text_escape(dst, 0, "abc", 3), 0);
	ck_assert_int_eq(dst[0], 'x');
}

LS_TEST(text, hex_and_back)
{
	const uint8_t bytes[] = { 0x00, 0x7f, 0xab, 0xff };
	uint8_t back[4] = { 1, 2, 3, 4 };
	char hex[9];

	ls_text_hex(hex, bytes, sizeof(bytes));
	ck_assert_str_eq(hex, "007fabff");
	ck_assert_int_eq(ls_text_unhex(back, sizeof(back), "007FabFF"), 0);
	ck_assert_mem_eq(back, bytes, sizeof(back));
}

LS_TEST(text, unhex_refuses_and_leaves_dst)
{
	uint8_t back[2] = { 1, 2 };

	ck_assert_int_eq(ls_text_unhex(back, 2, "007"), -LS_EPARSE);
	ck_assert_int_eq(ls_text_unhex(back, 2, "007f0"), -LS_EPARSE);
	ck_assert_int_eq(ls_text_unhex(back, 2, "00g0"), -LS_EPARSE);
	ck_assert_int_eq(ls_text_unhex(back, 2, "00 0"), -LS_EPARSE);
	ck_assert_int_eq(ls_text_unhex(back, 2, ""), -LS_EPARSE);
	ck_assert(back[0] == 1 && back[1] == 2);
}

LS_TEST(text, digits_are_counted_up_to_a_maximum)
{
	uint64_t v = 7;

	ck_assert_uint_eq(ls_text_digits("", SIZE_MAX, 9, &v), 0);
	ck_assert_uint_eq(ls_text_digits("-1", SIZE_MAX, 9, &v), 0);
	ck_assert_uint_eq(ls_text_digits("10", SIZE_MAX, 9, &v), 0);
	ck_assert_uint_eq(ls_text_digits("9", SIZE_MAX, 8, &v), 0);
	ck_assert_uint_eq(
		ls_text_digits("18446744073709551616", SIZE_MAX, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, 7);
	ck_assert_uint_eq(ls_text_digits("12,3", SIZE_MAX, 12, &v), 2);
	ck_assert_uint_eq(v, 12);
	ck_assert_uint_eq(ls_text_digits("1234", 3, 999, &v), 3);
	ck_assert_uint_eq(v, 123);
	ck_assert_uint_eq(
		ls_text_digits("18446744073709551615x", SIZE_MAX, UINT64_MAX, &v), 20);
	ck_assert_uint_eq(v, UINT64_MAX);
}

LS_TEST(text, a_number_is_digits_and_nothing_else)
{
	static const char *const none[] = { "", " 1", "1 ", "+1", "0x1", "1e1", "100" };
	uint64_t v = 7;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert(!ls_text_number(none[i], 99, &v));
	ck_assert_uint_eq(v, 7);
	ck_assert(ls_text_number("0099", 99, &v) && v == 99);
}

LS_TEST(text, crockford_writes_the_lowest_bits)
{
	char dst[14];

	ls_text_crockford(dst, 4, 0);
	ck_assert_str_eq(dst, "0000");
	ls_text_crockford(dst, 4, 0xfffff);
	ck_assert_str_eq(dst, "ZZZZ");
	ls_text_crockford(dst, 2, 18u << 5 | 31); /* no I, L, O, U */
	ck_assert_str_eq(dst, "JZ");
	ls_text_crockford(dst, 1, 32 + 1);
	ck_assert_str_eq(dst, "1");
	ls_text_crockford(dst, 13, UINT64_MAX);
	ck_assert_str_eq(dst, "FZZZZZZZZZZZZ");
}

static const struct {
	int64_t us;
	const char *text;
} times[] = {
	{ 0, "1970-01-01T00:00:00.000Z" },
	{ 1795180931320000, "2026-11-20T13:22:11.320Z" },
	{ 951782400000000, "2000-02-29T00:00:00.000Z" },
	{ -1000, "1969-12-31T23:59:59.999Z" },
	{ -62167219200000000, "0000-01-01T00:00:00.000Z" },
	{ 253402300799999000, "9999-12-31T23:59:59.999Z" },
};

LS_TEST_EACH(text, time_and_back, times)
{
	char dst[32];
	int64_t us = 7;

	ls_text_time(dst, times[_i].us);
	ck_assert_str_eq(dst, times[_i].text);
	ck_assert_int_eq(ls_conf_parse_time(dst, 0, &us), 0);
	ck_assert_int_eq(us, times[_i].us);
}

LS_TEST(text, time_cuts_to_ms_and_to_four_digit_years)
{
	char dst[32];

	ls_text_time(dst, 1999);
	ck_assert_str_eq(dst, "1970-01-01T00:00:00.001Z");
	ls_text_time(dst, -1);
	ck_assert_str_eq(dst, "1969-12-31T23:59:59.999Z");
	ls_text_time(dst, INT64_MIN);
	ck_assert_str_eq(dst, "0000-01-01T00:00:00.000Z");
	ls_text_time(dst, INT64_MAX);
	ck_assert_str_eq(dst, "9999-12-31T23:59:59.999Z");
}

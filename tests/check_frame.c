/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of collector/frame. */
#include "config.h"

#include "collector/frame.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include "tests/harness.h"

START_TEST(greetings_of_requests_are_taken)
{
	static const uint8_t req[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 }, rep[] = { 0, 'S', 'P', 0, 0, 0x31, 0, 0 };
	uint8_t ours[LS_FRAME_GREETING_BYTES];

	ck_assert_int_eq(ls_frame_check_greeting(req), 0);
	ls_frame_greet(ours);
	ck_assert_mem_eq(ours, rep, sizeof(rep));
	ck_assert_int_eq(ls_frame_check_greeting(ours), -LS_EUNKNOWN);
}
END_TEST

START_TEST(other_greetings_are_none)
{
	uint8_t greeting[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 };
	size_t i;

	for (i = 0; i < sizeof(greeting); i++) {
		greeting[i] ^= 1;
		ck_assert_int_eq(ls_frame_check_greeting(greeting), i == 4 || i == 5 ? -LS_EUNKNOWN : -LS_EPARSE);
		greeting[i] ^= 1;
	}
}
END_TEST

START_TEST(lengths_are_bounded)
{
	uint8_t field[LS_FRAME_LENGTH_BYTES];
	size_t bytes = 77;

	ls_frame_put_length(field, 0x12345);
	ck_assert_mem_eq(field, "\0\0\0\0\0\1\x23\x45", sizeof(field));
	ck_assert_int_eq(ls_frame_length(field, 7, 0x20000, &bytes), -EAGAIN);
	ck_assert_int_eq(ls_frame_length(field, 8, 0x12344, &bytes), -LS_ELIMIT);
	ck_assert_uint_eq(bytes, 77);
	ck_assert_int_eq(ls_frame_length(field, 8, 0x12345, &bytes), 0);
	ck_assert_uint_eq(bytes, 0x12345 + 8);
	memset(field, 0xff, sizeof(field)); /* a sum that would wrap */
	ck_assert_int_eq(ls_frame_length(field, 8, 0x12345, &bytes), -LS_ELIMIT);
}
END_TEST

START_TEST(routes_end_with_a_marked_word)
{
	uint8_t message[LS_FRAME_ROUTE_MAX_BYTES + 4] = { 0 };
	size_t at, bytes;

	for (at = 0; at < sizeof(message); at += 4) {
		memset(message, 0, sizeof(message));
		message[at] = 0x80;
		bytes = 77;
		ck_assert_int_eq(ls_frame_route(message, at + 3, &bytes), -LS_EPARSE);
		ck_assert_uint_eq(bytes, 77);
		if (at == LS_FRAME_ROUTE_MAX_BYTES) { /* too far */
			ck_assert_int_eq(ls_frame_route(message, sizeof(message), &bytes), -LS_EPARSE);
			continue;
		}
		ck_assert_int_eq(ls_frame_route(message, at + 4, &bytes), 0);
		ck_assert_uint_eq(bytes, at + 4);
	}
	ck_assert_int_eq(ls_frame_route(message, 0, &bytes), -LS_EPARSE);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("frame");
	TCase *t = tcase_create("frame");

	tcase_add_test(t, greetings_of_requests_are_taken);
	tcase_add_test(t, other_greetings_are_none);
	tcase_add_test(t, lengths_are_bounded);
	tcase_add_test(t, routes_end_with_a_marked_word);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	return ls_test_run(suite());
}

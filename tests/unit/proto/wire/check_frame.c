/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/frame. */
#include "config.h"

#include "proto/wire/frame.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include "tests/support/harness.h"

static const uint8_t req[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 },
		     rep[] = { 0, 'S', 'P', 0, 0, 0x31, 0, 0 };

LS_CASE(frame);

LS_TEST(frame, each_side_takes_the_greeting_of_the_other)
{
	uint8_t ours[LS_FRAME_GREETING_BYTES];

	ls_frame_greet(LS_FRAME_REP, ours);
	ck_assert_mem_eq(ours, rep, sizeof(rep));
	ls_frame_greet(LS_FRAME_REQ, ours);
	ck_assert_mem_eq(ours, req, sizeof(req));
	ck_assert_int_eq(ls_frame_check_greeting(LS_FRAME_REQ, req), 0);
	ck_assert_int_eq(ls_frame_check_greeting(LS_FRAME_REP, rep), 0);
	ck_assert_int_eq(ls_frame_check_greeting(LS_FRAME_REQ, rep), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_frame_check_greeting(LS_FRAME_REP, req), -LS_EUNKNOWN);
}

LS_TEST(frame, other_greetings_are_none)
{
	uint8_t greeting[LS_FRAME_GREETING_BYTES];
	size_t i;

	for (i = 0; i < sizeof(greeting); i++) {
		memcpy(greeting, req, sizeof(req));
		greeting[i] ^= 2;
		ck_assert_int_eq(ls_frame_check_greeting(LS_FRAME_REQ, greeting),
			i == 4 || i == 5 ? -LS_EUNKNOWN : -LS_EPARSE);
		memcpy(greeting, rep, sizeof(rep));
		greeting[i] ^= 2;
		ck_assert_int_eq(ls_frame_check_greeting(LS_FRAME_REP, greeting),
			i == 4 || i == 5 ? -LS_EUNKNOWN : -LS_EPARSE);
	}
}

LS_TEST(frame, lengths_are_bounded)
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

LS_TEST(frame, routes_end_with_a_marked_word)
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
			ck_assert_int_eq(
				ls_frame_route(message, sizeof(message), &bytes),
				-LS_EPARSE);
			continue;
		}
		ck_assert_int_eq(ls_frame_route(message, at + 4, &bytes), 0);
		ck_assert_uint_eq(bytes, at + 4);
	}
	ck_assert_int_eq(ls_frame_route(message, 0, &bytes), -LS_EPARSE);
}

LS_TEST(frame, ids_come_back_as_they_were_put)
{
	static const uint32_t ids[] = { 0, 1, 0x01020304, 0x7fffffff, 0x80000000,
		0xffffffff };
	uint8_t word[LS_FRAME_ID_BYTES];
	uint32_t id;
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		ls_frame_put_id(word, ids[i]);
		ck_assert_int_eq(ls_frame_id(word, sizeof(word), &id), 0);
		ck_assert_uint_eq(id, ids[i] | LS_FRAME_ID);
	}
	ls_frame_put_id(word, 0x01020304);
	ck_assert_mem_eq(word, "\x81\2\3\4", sizeof(word));
}

LS_TEST(frame, a_reply_begins_with_an_id)
{
	uint8_t word[LS_FRAME_ID_BYTES] = { 0x80 };
	uint32_t id = 77;
	size_t len;

	for (len = 0; len < sizeof(word); len++)
		ck_assert_int_eq(ls_frame_id(word, len, &id), -LS_EPARSE);
	word[0] = 0x7f;
	ck_assert_int_eq(ls_frame_id(word, sizeof(word), &id), -LS_EPARSE);
	ck_assert_uint_eq(id, 77);
}

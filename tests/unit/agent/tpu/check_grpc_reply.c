/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/grpc_reply.h"

#include <stdlib.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_grpc_reply reply;
static struct ls_grpc_answer answer;

static void
setup(void)
{
	ls_grpc_reply_init(&reply);
}

static void
teardown(void)
{
	ls_grpc_reply_fini(&reply);
}

static int
header(const char *name, const char *value)
{
	return ls_grpc_reply_header(&reply, name, strlen(name), value, strlen(value));
}

static void
begin(void)
{
	ck_assert_int_eq(header(":status", "200"), 0);
	ck_assert_int_eq(header("content-type", "application/grpc+proto"), 0);
}

static int
data(const char *bytes, size_t len)
{
	return ls_grpc_reply_data(&reply, (const uint8_t *)bytes, len);
}

LS_CASE(grpc_reply, setup, teardown);

LS_TEST(grpc_reply, message_in_any_pieces_is_one_answer)
{
	static const char bytes[] = "\0\0\0\0\3abc";
	size_t cut;

	for (cut = 0; cut < sizeof(bytes); cut++) {
		ls_grpc_reply_fini(&reply);
		begin();
		ck_assert_int_eq(data(bytes, cut), 0);
		ck_assert_int_eq(
			data(bytes + cut, sizeof(bytes) - 1 - (cut < 8 ? cut : 8)), 0);
		ck_assert_int_eq(header("grpc-status", "0"), 0);
		ls_grpc_reply_finish(&reply, &answer);
		ck_assert_int_eq(answer.rc, 0);
		ck_assert_int_eq(answer.status, LS_GRPC_OK);
		ck_assert_uint_eq(answer.len, 3);
		ck_assert_mem_eq(answer.message, "abc", 3);
		if (cut == 8)
			break;
	}
}

LS_TEST(grpc_reply, empty_message_is_an_answer)
{
	begin();
	ck_assert_int_eq(data("\0\0\0\0\0", 5), 0);
	ck_assert_int_eq(header("grpc-status", "0"), 0);
	ls_grpc_reply_finish(&reply, &answer);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_uint_eq(answer.len, 0);
	ck_assert_ptr_nonnull(answer.message);
}

LS_TEST(grpc_reply, status_with_its_text_made_safe)
{
	begin();
	ck_assert_int_eq(header("grpc-status", "5"), 0);
	ck_assert_int_eq(header("grpc-message", "no%20such%1b%zz%4"), 0);
	ls_grpc_reply_finish(&reply, &answer);
	ck_assert_int_eq(answer.rc, 0);
	ck_assert_int_eq(answer.status, LS_GRPC_NOT_FOUND);
	ck_assert_str_eq(answer.text, "no such\\x1b%zz%4");
	ck_assert_ptr_null(answer.message);
}

static void
assert_finish(int rc, const char *text)
{
	ls_grpc_reply_finish(&reply, &answer);
	ck_assert_int_eq(answer.rc, rc);
	ck_assert_str_eq(answer.text, text);
}

LS_TEST(grpc_reply, answers_that_are_none)
{
	assert_finish(-LS_EPARSE, "answers HTTP/2, but not gRPC");
	ck_assert_int_eq(header(":status", "200"), 0);
	ck_assert_int_eq(header("content-type", "text/html"), 0);
	assert_finish(-LS_EPARSE, "answers HTTP/2, but not gRPC");
	begin();
	assert_finish(-LS_EPARSE, "answer without a status");
	ck_assert_int_eq(header("grpc-status", "0"), 0);
	assert_finish(-LS_EPARSE, "answer is cut short");
	ck_assert_int_eq(data("\0\0\0\0\3ab", 7), 0);
	assert_finish(-LS_EPARSE, "answer is cut short");
	ck_assert_int_eq(header("grpc-status", "1e1"), -LS_EPARSE);
	ck_assert_int_eq(header("grpc-status", "0"), -LS_EPARSE);
	assert_finish(-LS_EPARSE, "status that is not a number");
}

LS_TEST(grpc_reply, compressed_is_refused)
{
	begin();
	ck_assert_int_eq(data("\1\0\0\0\1a", 6), -LS_EPARSE);
	assert_finish(-LS_EPARSE, "answer is compressed, which was not requested");
}

LS_TEST(grpc_reply, second_message_is_refused)
{
	begin();
	ck_assert_int_eq(data("\0\0\0\0\1a", 6), 0);
	ck_assert_int_eq(data("\0", 1), -LS_EPARSE);
	assert_finish(-LS_EPARSE, "more than one answer");
}

LS_TEST(grpc_reply, lengths_are_bounded)
{
	static char long_value[LS_GRPC_HEADERS_MAX_BYTES + 1];
	uint8_t prefix[LS_GRPC_PREFIX_BYTES];
	char *message = calloc(1, LS_GRPC_MESSAGE_MAX_BYTES);

	ck_assert_ptr_nonnull(message);
	begin();
	ck_assert_int_eq(data("\0\xff\xff\xff\xff", 5), -LS_ELIMIT);
	ls_grpc_reply_fini(&reply);
	ls_grpc_prefix(prefix, LS_GRPC_MESSAGE_MAX_BYTES + 1);
	ck_assert_int_eq(data((const char *)prefix, sizeof(prefix)), -LS_ELIMIT);
	ls_grpc_reply_fini(&reply);
	ls_grpc_prefix(prefix, LS_GRPC_MESSAGE_MAX_BYTES);
	ck_assert_int_eq(data((const char *)prefix, sizeof(prefix)), 0);
	ck_assert_ptr_null(reply.message); /* what was announced costs nothing */
	ck_assert_int_eq(data(message, LS_GRPC_MESSAGE_MAX_BYTES), 0);
	ck_assert_int_eq(data(message, 1), -LS_EPARSE);
	ls_grpc_reply_fini(&reply);
	memset(long_value, 'x', sizeof(long_value) - 1);
	ck_assert_int_eq(header("a", long_value), -LS_ELIMIT);
	ls_grpc_reply_fini(&reply);
	long_value[LS_GRPC_HEADERS_MAX_BYTES / 2] = '\0';
	ck_assert_int_eq(header("a", long_value), 0);
	ck_assert_int_eq(header("b", long_value), -LS_ELIMIT);
	free(message);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/step_line.h"

#include <math.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_step_line line;

static bool
parse(const char *text)
{
	return ls_step_line_parse(text, strlen(text), &line);
}

LS_CASE(step_line);

LS_TEST(step_line, the_line_of_maxtext_is_read)
{
	ck_assert(parse(
		"I0317 10:00:13.658792 125344476638336 metric_logger.py:181] completed step: "
		"1, seconds: 0.277, TFLOP/s/device: 370.707, Tokens/s/device: 14774.896, "
		"total_weights: 31850, loss: 12.939"));
	ck_assert_uint_eq(line.step, 1);
	ck_assert_uint_eq(line.duration_ns, 277000000);
	ck_assert_double_eq(line.tokens_rate, 14774.896);
	ck_assert(parse(
		"completed step: 20000, seconds: 36.240, TFLOP/s/device: 28.510, Tokens/s/device: 7.5\r"));
	ck_assert_uint_eq(line.step, 20000);
	ck_assert_double_eq(line.tokens_rate, 7.5);
}

LS_TEST(step_line, older_lines_have_no_tokens)
{
	ck_assert(parse(
		"completed step: 5, seconds: 4.003, TFLOP/s/device: 258.112, loss: 1.909"));
	ck_assert_uint_eq(line.duration_ns, 4003000000);
	ck_assert(isnan(line.tokens_rate));
	ck_assert(parse("completed step: 0, seconds: 1, TFLOP/s/device: nan"));
	ck_assert(isnan(line.tokens_rate));
	ck_assert(parse(
		"completed step: 0, seconds: 1, TFLOP/s/device: 1, Tokens/s/device: nan, x"));
	ck_assert(isnan(line.tokens_rate));
}

static const char *const other[] = { "", "completed step: ", "completed step: 1",
	"completed step: 1, seconds: ", "completed step: 1, seconds: 1",
	"completed step: 1, seconds: 1, TFLOP/s: 2, loss: 3",
	"Completed step: 1, seconds: 1, TFLOP/s/device: 1",
	"completed step: -1, seconds: 1, TFLOP/s/device: 1",
	"completed step: 1.5, seconds: 1, TFLOP/s/device: 1",
	"completed step: 1, seconds: -1, TFLOP/s/device: 1",
	"completed step: 1, seconds: nan, TFLOP/s/device: 1",
	"completed step: 1, seconds: 1e9, TFLOP/s/device: 1",
	"completed step: 1, seconds: 1.2.3, TFLOP/s/device: 1",
	"completed step: 1, seconds: .5, TFLOP/s/device: 1",
	"completed step: 1, seconds: 1, TFLOP/s/device: x",
	"completed step: 1, seconds: 2592000, TFLOP/s/device: 1",
	"completed step: 9007199254740992, seconds: 1, TFLOP/s/device: 1",
	"completed step: 18446744073709551617, seconds: 1, TFLOP/s/device: 1",
	"completed step: 1, seconds: 00000000000000000000000000000000001, TFLOP/s/device: 1",
	"completed step: 1, seconds: 1, TFLOP/s/device: 12abc",
	"eval metrics after step: 1, loss=1", "saved a checkpoint at step 0" };

LS_TEST_EACH(step_line, nothing_else_is_a_step, other)
{
	line.step = 77;
	ck_assert_msg(!parse(other[_i]), "%s", other[_i]);
	ck_assert_uint_eq(line.step, 77);
}

LS_TEST(step_line, bytes_behind_the_end_are_not_read)
{
	static const char text[] = "completed step: 1, seconds: 1, TFLOP/s/device: 1";
	char part[sizeof(text)];
	size_t i;

	/* each prefix, followed by what would fit */
	for (i = 0; i < sizeof(text) - 1; i++) {
		memset(part, '1', sizeof(part));
		memcpy(part, text, i);
		ck_assert(!ls_step_line_parse(part, i, &line));
	}
	ck_assert(ls_step_line_parse(text, sizeof(text) - 1, &line));
	ck_assert(!ls_step_line_parse("\0\xff"
				      "completed step\0: 1",
		20, &line));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/steps/step_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"

static struct ls_step_line line;

static struct ls_step_rules *rules;
static char why[160];

static void
setup(void)
{
	ck_assert_int_eq(ls_step_rules_new("", &rules, why, sizeof(why)), 0);
}

static void
teardown(void)
{
	ls_step_rules_free(rules);
}

static bool
parse(const char *text)
{
	return ls_step_line_parse(rules, text, strlen(text), &line);
}

static int
use_pattern(const char *pattern)
{
	ls_step_rules_free(rules);
	rules = NULL;
	return ls_step_rules_new(pattern, &rules, why, sizeof(why));
}

LS_CASE(step_line, setup, teardown);

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

LS_TEST(step_line, the_rate_is_not_needed)
{
	ck_assert(parse("[Rampup Batch Size Phase], completed step: 3, seconds: 0.503, "
			"total_weights: 8192, loss: 10.970"));
	ck_assert_uint_eq(line.step, 3);
	ck_assert_uint_eq(line.duration_ns, 503000000);
	ck_assert(parse("completed step: 1, seconds: 1"));
	ck_assert(!line.stands_for_more);
}

LS_TEST(step_line, a_duration_that_cannot_be_read_is_unknown)
{
	ck_assert(parse(
		"completed step: 1, seconds: 00000000000000000000000000000000001"));
	ck_assert_uint_eq(line.duration_ns, 0);
}

LS_TEST(step_line, a_profiled_step_has_no_duration)
{
	ck_assert(
		parse("m.py:190] completed profiler activation/deactivation step: 34, "
		      "total_weights: 32768, loss: 10.660"));
	ck_assert_uint_eq(line.step, 34);
	ck_assert_uint_eq(line.duration_ns, 0);
	ck_assert(!line.stands_for_more);
}

/* One line a format, made up after the source that step_formats.def names. */
static const struct {
	const char *text;
	uint64_t step, duration_ns;
} formats[] = {
	{ "I0101 00:00:00.0 trainer.py:9] SpmdTrainer process   0 step      300] Average step "
	  "time: 1.5 seconds",
		300, 1500000000 },
	{ "[titan] 2025-01-01 10:00:00,000 - root - INFO - \x1b[31mstep:  1  "
	  "\x1b[32mloss:  8.1309  \x1b[38;2;180;60;0mgrad_norm:  1.5",
		1, 0 },
	{ "[titan] INFO - step: 1200  loss:  3.1  memory: 40.00GiB(42.00%)  tps: 7,000",
		1200, 0 },
	{ "Training epoch 0, iteration 9/99 | lr: 1.9e-06 | global_step: 9 | "
	  "reduced_train_loss: 1.3 | train_step_timing in s: 7.126",
		9, 7126000000 },
	{ "Training epoch 0, iteration 9/99 | global_step: 9 | "
	  "train_step_timing in s: 1.2e+05",
		9, 0 },
	{ "INFO {'train': {'epoch': 0.1, 'loss': 2.5, 'train_step': 40, 'z_loss': None}, "
	  "\x1b[96m'performance': {'flops': 1.0, 'train_step_time': 2.125}\x1b[0m}",
		40, 2125000000 },
	{ "INFO:levanter.json_logger:{\"tracker\": \"json_logger\", \"event\": \"log\", "
	  "\"step\": 12, \"metrics\": {\"throughput/mfu\": 40.1, "
	  "\"throughput/duration\": 0.75}}",
		12, 750000000 },
	{ "  3%|\xe2\x96\x8e         | 30/1000 [00:21<11:12,  1.44it/s]", 30, 0 },
	{ "[rank0]: 100%|##########| 7/7 [1:02:03<00:00, 8.51s/it, v_num=1]", 7, 0 },
	{ "\x1b[36m(RayTrainWorker pid=412)\x1b[0m   3%|3  | 3/100 [00:21<11:12,  1.44it/s]",
		3, 0 },
};

LS_TEST_EACH(step_line, lines_of_other_trainers_are_read, formats)
{
	ck_assert_msg(parse(formats[_i].text), "%s", formats[_i].text);
	ck_assert_uint_eq(line.step, formats[_i].step);
	ck_assert_uint_eq(line.duration_ns, formats[_i].duration_ns);
	ck_assert(line.stands_for_more);
}

static const struct {
	const char *prefix;
	int32_t rank;
} prefixes[] = { { "[worker 3] ", 3 }, { "[rank2]: ", 2 }, { "[default1]:", -1 },
	{ "[1,5]<stdout>:", -1 }, { "[pod/llama-0/train] ", -1 },
	{ "(RayTrainWorker pid=412, ip=10.0.0.7) ", -1 },
	{ "\x1b[36m(RayTrainWorker pid=412)\x1b[0m ", -1 } };

LS_TEST_EACH(step_line, a_prefix_tells_workers_apart, prefixes)
{
	char text[128];
	uint64_t hash;

	(void)snprintf(text, sizeof(text), "%scompleted step: 1, seconds: 1",
		prefixes[_i].prefix);
	ck_assert(parse(text));
	ck_assert_int_eq(line.prefix_rank, prefixes[_i].rank);
	hash = line.prefix;
	ck_assert_uint_ne(hash, 0);
	(void)snprintf(text, sizeof(text), "%sx completed step: 22, seconds: 3",
		prefixes[_i].prefix);
	ck_assert(parse(text));
	ck_assert_uint_eq(line.prefix, hash);
	ck_assert(parse("completed step: 1, seconds: 1"));
	ck_assert_uint_eq(line.prefix, 0);
}

LS_TEST(step_line, a_pattern_replaces_the_formats)
{
	ck_assert_int_eq(use_pattern("it (?<step>\\d+) took (?<seconds>[\\d.]+)"), 0);
	ck_assert(parse("[worker 1] it 12 took 0.5 s"));
	ck_assert_uint_eq(line.step, 12);
	ck_assert_uint_eq(line.duration_ns, 500000000);
	ck_assert_int_eq(line.prefix_rank, 1);
	ck_assert(!parse("completed step: 1, seconds: 1"));
	ck_assert_int_eq(use_pattern("it (?<step>\\S+)"), 0);
	ck_assert(!parse("it -1"));
	ck_assert(parse("it 7"));
	ck_assert_uint_eq(line.duration_ns, 0);
}

LS_TEST(step_line, a_pattern_that_cannot_be_used_is_explained)
{
	ck_assert_int_eq(use_pattern("(?<step>\\d+"), -LS_ERANGE);
	ck_assert_str_eq(why, "missing closing parenthesis at offset 11");
	ck_assert_int_eq(use_pattern("step (\\d+)"), -LS_ERANGE);
	ck_assert_str_eq(why, "it has no group (?<step>...)");
}

LS_TEST(step_line, a_match_that_takes_too_long_is_no_step)
{
	char text[4096];

	ck_assert_int_eq(use_pattern("(?<step>1)(?:(?:a+)+)+b"), 0);
	memset(text, 'a', sizeof(text));
	text[0] = '1';
	ck_assert(!ls_step_line_parse(rules, text, sizeof(text), &line));
	ck_assert(parse("1ab"));
}

static const char *const other[] = {
	"Map:  3%|3         | 30/1000 [00:21<11:12, 1.44it/s]",
	"Map (num_proc=4): 3%|3  | 30/1000 [00:21<11:12, 1.44it/s]",
	"30/1000 [00:21<11:12]", "0.30%|3  | 30/1000 [00:21<11:12, 1.44it/s]", "",
	"completed step: ", "completed step: 1",
	"completed step: 1, seconds: ", "Completed step: 1, seconds: 1",
	"completed step: -1, seconds: 1", "completed step: 1.5, seconds: 1",
	"completed step: 1, seconds: -1", "completed step: 1, seconds: nan",
	"completed step: 1, seconds: 1e9", "completed step: 1, seconds: 1.2.3",
	"completed step: 1, seconds: .5", "completed step: 1, seconds: 1x",
	"completed step: 1, seconds: 2592000",
	"completed step: 9007199254740992, seconds: 1",
	"completed step: 18446744073709551617, seconds: 1",
	"Completed eval step: 1, seconds: 0.5, running loss=1",
	"validate step:  5  loss:  3.1", "Validation: iteration 3/9",
	"Progress on:train 1.23kit/100kit rate:2.0it/s remaining:? elapsed:10:00 postfix:-",
	"{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': 0.1}",
	":::MLLOG {\"key\": \"block_stop\", \"metadata\": {\"step_num\": 5}}",
	"eval metrics after step: 1, loss=1", "saved a checkpoint at step 0"
};

LS_TEST_EACH(step_line, nothing_else_is_a_step, other)
{
	line.step = 77;
	ck_assert_msg(!parse(other[_i]), "%s", other[_i]);
	ck_assert_uint_eq(line.step, 77);
}

LS_TEST(step_line, bytes_behind_the_end_are_not_read)
{
	static const char text[] = "completed step: 1, seconds: ";
	char part[sizeof(text)];
	size_t i;

	/* each prefix, followed by what would fit */
	for (i = 0; i < sizeof(text) - 1; i++) {
		memset(part, '1', sizeof(part));
		memcpy(part, text, i);
		ck_assert(!ls_step_line_parse(rules, part, i, &line));
	}
	ck_assert(!ls_step_line_parse(rules,
		"\0\xff"
		"completed step\0: 1",
		20, &line));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/whatif/whatif.h"
#include "collector/whatif/whatif_csv.h"
#include "collector/whatif/whatif_meta.h"
#include "collector/whatif/whatif_replay.h"

#include "tests/support/harness.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEAR 6e-9 /* answers have 9 digits */

/* --- memory that ends ----------------------------------------------------- */

/* The allocation that fails, counted down; 0: none does. */
static size_t fail_at;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *
__wrap_malloc(size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return fail_at > 0 && --fail_at == 0 ? NULL : __real_realloc(p, size);
}

/* --- traces by hand ------------------------------------------------------- */

enum { ROWS = 64 };

struct hand {
	struct ls_whatif_row rows[ROWS];
	size_t count;
	uint32_t dp_count, stage_count;
	struct ls_whatif_trace *trace;
	json_t *answer;
	struct ls_whatif_error error;
};

static void
op(struct hand *h, uint32_t dp, uint32_t stage, const char *type, uint32_t seq,
	double start_s, double duration_s)
{
	ck_assert_uint_lt(h->count, ROWS);
	h->rows[h->count] = (struct ls_whatif_row){ .step = 7,
		.rank = stage * h->dp_count + dp,
		.dp = dp,
		.stage = stage,
		.seq = seq,
		.line = (uint32_t)h->count + 2,
		.type = ls_whatif_type_find(type),
		.start_s = start_s,
		.duration_s = duration_s };
	ck_assert_uint_lt(h->rows[h->count++].type, LS_WHATIF_OPTYPES);
}

static int
try(struct hand *h)
{
	int rc = ls_whatif_trace_new(h->rows, h->count, h->dp_count, h->stage_count,
		&h->trace, &h->error);

	return rc == 0 ? ls_whatif_answer(h->trace, "", 100, &h->answer, &h->error)
		       : rc;
}

static void
ask(struct hand *h)
{
	ck_assert_msg(try(h) == 0, "%s", h->error.text);
}

static void
done(struct hand *h)
{
	json_decref(h->answer);
	ls_whatif_trace_free(h->trace);
}

/* What the answer has at a path like "top.0.S_w". */
static json_t *
at(const struct hand *h, const char *path)
{
	char text[64], *rest = text, *part;
	json_t *v = h->answer;

	(void)snprintf(text, sizeof(text), "%s", path);
	while ((part = strsep(&rest, ".")) != NULL)
		v = json_is_array(v) ? json_array_get(v, (size_t)atol(part))
				     : json_object_get(v, part);
	return v;
}

/* It is a number near this. */
static void
eq(const struct hand *h, const char *path, double should)
{
	double is = json_number_value(at(h, path));

	ck_assert_msg(json_is_number(at(h, path)), "no %s", path);
	ck_assert_msg(fabs(is - should) < NEAR, "%s: %.12g should be %.12g", path, is,
		should);
}

/* Two dp of one stage; the first computes twice as long, and the second waits in the
 * reduce-scatter. */
static void
two_dp(struct hand *h)
{
	*h = (struct hand){ .dp_count = 2, .stage_count = 1 };
	op(h, 0, 0, "params-all-gather", 0, 0, 1);
	op(h, 0, 0, "forward-compute", 0, 1, 2);
	op(h, 0, 0, "backward-compute", 0, 3, 4);
	op(h, 0, 0, "grads-reduce-scatter", 0, 7, 5);
	op(h, 0, 0, "optimizer", 0, 12, 1);
	op(h, 1, 0, "params-all-gather", 0, 0, 1);
	op(h, 1, 0, "forward-compute", 0, 1.5, 1);
	op(h, 1, 0, "backward-compute", 0, 2.5, 2);
	op(h, 1, 0, "grads-reduce-scatter", 0, 4.5, 7.5);
	op(h, 1, 0, "optimizer", 0, 12, 1);
}

LS_CASE(by_hand);

LS_TEST(by_hand, two_dp_as_by_hand)
{
	struct hand h;

	two_dp(&h);
	ask(&h);
	eq(&h, "step_s", 13);
	eq(&h, "no_delay_s", 13);
	eq(&h, "ideal_s", 11.5); /* 1, mean 1.5, mean 3, 5, 1 */
	eq(&h, "S", 13 / 11.5);
	eq(&h, "S_op.forward-compute", 12 / 11.5);
	eq(&h, "S_op.backward-compute", 12.5 / 11.5);
	eq(&h, "S_op.grads-reduce-scatter", 1);
	ck_assert_uint_eq(json_object_size(at(&h, "S_op")), 5);
	eq(&h, "S_dp.0", 13 / 11.5);
	eq(&h, "S_dp.1", 1);
	eq(&h, "S_stage.0", 13 / 11.5);
	eq(&h, "S_w.0", 13 / 11.5);
	eq(&h, "S_alone.1", 1);
	eq(&h, "M_W", 1);
	eq(&h, "M_W_added", 1);
	eq(&h, "M_S", 1);
	eq(&h, "worst_workers", 1);
	ck_assert_uint_eq(json_array_size(at(&h, "top")), 2);
	eq(&h, "top.0.rank", 0);
	eq(&h, "top.0.without_s", 11.5);
	eq(&h, "top.1.without_s", 13);
	eq(&h, "first_dp.dp", 0);
	eq(&h, "first_dp.steps", 1);
	done(&h);
}

/* Two stages and microbatches, hops of no length: 0: F F B B, 1: F B F B. Stage 1 takes
 * longer by design. */
static void
pipeline(struct hand *h)
{
	static const char *const names[] = { "forward-compute", "backward-compute" };
	static const double start0[2][2] = { { 0, 1 }, { 7, 13 } },
			    start1[2][2] = { { 1, 7 }, { 4, 10 } };

	*h = (struct hand){ .dp_count = 1, .stage_count = 2 };
	for (uint32_t way = 0; way < 2; way++) {
		for (uint32_t seq = 0; seq < 2; seq++) {
			op(h, 0, 0, names[way], seq, start0[way][seq],
				way == 0 ? 1 : 2);
			op(h, 0, 1, names[way], seq, start1[way][seq], 3);
		}
	}
	for (uint32_t seq = 0; seq < 2; seq++) {
		/* sent when computed, received just before its compute */
		op(h, 0, 0, "forward-send", seq, seq + 1, start1[0][seq] - (seq + 1));
		op(h, 0, 1, "forward-recv", seq, start1[0][seq], 0);
		op(h, 0, 1, "backward-send", seq, start1[1][seq] + 3, 0);
		op(h, 0, 0, "backward-recv", seq, 2, start1[1][seq] + 3 - 2);
	}
}

LS_TEST(by_hand, pipeline_as_by_hand)
{
	struct hand h;

	pipeline(&h);
	ask(&h);
	eq(&h, "no_delay_s", 15);
	eq(&h, "ideal_s", 13.5); /* F 2, B 2.5: F F B F B B */
	eq(&h, "S", 15 / 13.5);
	eq(&h, "S_op.forward-compute", 14.5 / 13.5);
	eq(&h, "S_op.backward-compute", 14 / 13.5);
	eq(&h, "S_op.forward-pp-comm", 1);
	/* a receive is told with the send */
	ck_assert_uint_eq(json_object_size(at(&h, "S_op")), 4);
	eq(&h, "S_stage.0", 12 / 13.5);
	eq(&h, "S_stage.1", 16.5 / 13.5);
	eq(&h, "S_dp.0", 15 / 13.5); /* nobody to wait for */
	eq(&h, "S_w.1", 15 / 13.5);
	eq(&h, "S_alone.1", 16.5 / 13.5);
	eq(&h, "M_S", 2); /* the mean is no bound */
	eq(&h, "M_S_added", 2);
	eq(&h, "M_W", 2);
	eq(&h, "first_stage.stage", 1);
	done(&h);
}

LS_TEST(by_hand, role_median_does_not_blame_what_is_slow_by_design)
{
	struct hand h;

	pipeline(&h);
	ask(&h);
	eq(&h, "role_median.ideal_s", 15);
	eq(&h, "role_median.S", 1);
	eq(&h, "role_median.S_stage.1", 1);
	/* nothing was lost: null, not 0 */
	ck_assert(json_is_null(at(&h, "role_median.M_W")));
	ck_assert(json_is_null(at(&h, "role_median.M_S")));
	done(&h);
}

/* The tail; with separate-grads-all-reduce, the reduce-scatter runs before the
 * layernorm. */
static void
tail(struct hand *h, bool overlaps)
{
	*h = (struct hand){ .dp_count = 2, .stage_count = 1 };
	for (uint32_t dp = 0; dp < 2; dp++) {
		op(h, dp, 0, "forward-compute", 0, 0, 1);
		op(h, dp, 0, "backward-compute", 0, 1, 2);
		op(h, dp, 0, "gc", 0, 3, 0.5);
		op(h, dp, 0, "grads-reduce-scatter", 0, 3, 4);
		op(h, dp, 0, "layernorm-grads-all-reduce", 0, 7, 1);
		if (overlaps)
			op(h, dp, 0, "separate-grads-all-reduce", 0, 8, 1);
		op(h, dp, 0, "optimizer-clip-main-grad", 0, 9, 1);
		op(h, dp, 0, "optimizer", 0, 10, 1);
	}
	ask(h);
}

LS_TEST(by_hand, reduce_scatter_overlaps_or_follows)
{
	struct hand h;

	tail(&h, true);
	eq(&h, "no_delay_s", 11);
	done(&h);
	tail(&h, false);
	/* 3 + gc 0.5 + layernorm 1 + 4 + 1 + 1 */
	eq(&h, "no_delay_s", 10.5);
	done(&h);
}

LS_TEST(by_hand, what_hosts_lose_between_operations_is_the_launch_slowdown)
{
	struct hand h = { .dp_count = 1, .stage_count = 1 };

	op(&h, 0, 0, "forward-compute", 0, 0.5, 1);
	op(&h, 0, 0, "backward-compute", 0, 2, 2);
	ask(&h);
	eq(&h, "step_s", 3.5);
	eq(&h, "no_delay_s", 3);
	done(&h);
}

LS_TEST(by_hand, clocks_that_are_off_give_transfers_of_no_length)
{
	struct hand h = { .dp_count = 2, .stage_count = 1 };

	/* dp 1 ended 20 ms before dp 0 began, by its clock */
	op(&h, 0, 0, "params-all-gather", 0, 1, 0.5);
	op(&h, 1, 0, "params-all-gather", 0, 0, 0.98);
	ask(&h);
	eq(&h, "no_delay_s", 0.5);
	done(&h);
}

/* A dp replayed beside one ideal dp is the same as among all of them. */
LS_TEST(by_hand, a_dp_apart_is_a_dp_among_ideal_ones)
{
	struct hand h = { .dp_count = 5, .stage_count = 2 };
	uint8_t own[ROWS], mended[10];
	double ideal_s[ROWS], apart_s[5], among_s;
	struct ls_whatif_graph *g;
	struct ls_whatif_replay *replay;
	uint32_t state = 12345;

	for (uint32_t dp = 0; dp < 5; dp++) {
		for (uint32_t stage = 0; stage < 2; stage++) {
			double d[4];

			for (size_t i = 0; i < 4; i++) {
				state = state * 1664525 + 1013904223;
				d[i] = 1 + (double)(state >> 24) / 256;
			}
			op(&h, dp, stage, "params-all-gather", 0, 0, d[0]);
			op(&h, dp, stage, "forward-compute", 0, 2 + 9 * stage, d[1]);
			op(&h, dp, stage, stage == 0 ? "forward-send" : "forward-recv",
				0, 5, d[2]);
			op(&h, dp, stage, "grads-reduce-scatter", 0, 20, d[3]);
			op(&h, dp, stage, "optimizer-clip-main-grad", 0, 30, d[1] / 2);
			op(&h, dp, stage, "optimizer", 0, 40, d[2] / 2);
		}
	}
	ck_assert_int_eq(ls_whatif_trace_new(h.rows, h.count, 5, 2, &h.trace, &h.error),
		0);
	ck_assert_int_eq(ls_whatif_graph_new(h.trace, &g, &h.error), 0);
	ck_assert_int_eq(ls_whatif_replay_new(h.trace, g, &replay), 0);
	for (size_t k = 0; k < ROWS; k++) {
		own[k] = 1;
		ideal_s[k] = 1.5;
	}
	ls_whatif_replay_run(replay,
		&(struct ls_whatif_plan){ .own = own, .apart = true }, ideal_s,
		apart_s);
	for (size_t dp = 0; dp < 5; dp++) {
		memset(mended, 1, sizeof(mended));
		mended[dp] = mended[5 + dp] = 0;
		ls_whatif_replay_run(replay,
			&(struct ls_whatif_plan){ .own = own, .mended = mended },
			ideal_s, &among_s);
		ck_assert_double_eq_tol(apart_s[dp], among_s, 1e-9);
	}
	ls_whatif_replay_free(replay);
	ls_whatif_graph_free(g);
	done(&h);
}

/* --- what is wrong is told ------------------------------------------------ */

static void
refused(struct hand *h, uint64_t line, const char *text)
{
	ck_assert_int_eq(try(h), -LS_EPARSE);
	ck_assert_msg(strstr(h->error.text, text) != NULL, "'%s' is not in: %s", text,
		h->error.text);
	ck_assert_uint_eq(h->error.line, line);
	done(h);
}

LS_CASE(what_is_wrong);

LS_TEST(what_is_wrong, what_is_missing_or_twice_is_named)
{
	struct hand h;

	two_dp(&h);
	h.count--;
	refused(&h, 0, "step 7, dp 1, stage 0: optimizer 0 is missing");
	two_dp(&h);
	op(&h, 1, 0, "optimizer", 0, 12, 1);
	refused(&h, 12, "optimizer 0 is repeated");
	two_dp(&h);
	op(&h, 1, 0, "optimizer", 1, 12, 1);
	refused(&h, 12, "has only 1 of them");
	two_dp(&h);
	h.dp_count = 3;
	refused(&h, 0, "dp 2, stage 0: forward-compute 0 is missing");
	two_dp(&h);
	h.stage_count = 2;
	refused(&h, 0, "no operation of dp 0 in stage 1");
	two_dp(&h);
	h.rows[8].rank = 9;
	refused(&h, 10, "is rank 9 here and rank 1 before");
	two_dp(&h);
	for (size_t i = 5; i < 10; i++)
		h.rows[i].rank = 0;
	refused(&h, 0, "two workers have rank 0");
	two_dp(&h);
	for (size_t i = 0; i < 10; i++) { /* ten more steps of one operation */
		op(&h, 0, 0, "optimizer", 0, 12, 1);
		h.rows[10 + i].step = (int64_t)(8 + i);
	}
	refused(&h, 0, "need more rows");
}

LS_TEST(what_is_wrong, hops_without_another_end_are_refused)
{
	struct hand h;

	pipeline(&h);
	h.count--; /* stage 0 receives one less */
	refused(&h, 0, "must be the same number");
	pipeline(&h);
	op(&h, 0, 1, "forward-send", 0, 1, 1);
	refused(&h, 0, "without its counterpart");
}

LS_TEST(what_is_wrong, circles_are_found)
{
	struct hand h;

	pipeline(&h);
	for (size_t i = 0; i < h.count; i++) {
		if (h.rows[i].stage == 0 &&
			h.rows[i].type == LS_WHATIF_BACKWARD_COMPUTE)
			h.rows[i].start_s =
				-5; /* before the forward that it depends on */
	}
	refused(&h, 0, "circle");
}

LS_TEST(what_is_wrong, steps_of_no_time_are_refused)
{
	struct hand h = { .dp_count = 1, .stage_count = 1 };

	op(&h, 0, 0, "gc", 0, 0, 0);
	refused(&h, 0, "its operations take no time");
}

/* --- files ---------------------------------------------------------------- */

#define HEAD "step,rank,dp_rank,stage,optype,seq_id,mc,gmc,mb_id,start_ts,duration\n"
#define ROW "16,0,0,0,forward-compute,0,0,0,0,2.5,0.25\n"

/* The rows of a file with this text. */
static int
read_rows(const char *text, const struct ls_whatif_meta *meta,
	struct ls_whatif_rows *rows, struct ls_whatif_error *error)
{
	int fd = memfd_create("trace", 0), rc;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		ck_abort_msg("no memory to write to"); /* Check allocates */
	rc = ls_whatif_csv_read(path, meta, rows, error);
	(void)close(fd); /* memory */
	return rc;
}

static void
csv(const char *text, uint64_t line, const char *says)
{
	struct ls_whatif_meta meta = { .dp_size = 2, .pp_size = 3 };
	struct ls_whatif_rows rows = { 0 };
	struct ls_whatif_error error = { 0 };
	int rc = read_rows(text, &meta, &rows, &error);

	if (says == NULL) {
		ck_assert_msg(rc == 0, "%s: %s", text, error.text);
	} else {
		ck_assert_int_eq(rc, -LS_EPARSE);
		ck_assert_msg(strstr(error.text, says) != NULL, "'%s' is not in: %s",
			says, error.text);
		ck_assert_uint_eq(error.line, line);
	}
	free(rows.rows);
}

LS_CASE(files);

LS_TEST(files, csv_says_what_is_wrong_in_which_line)
{
	csv(HEAD ROW, 0, NULL);
	csv("duration,start_ts,more,seq_id,optype,stage,dp_rank,rank,step\r\n1e-3,-1,x,0,gc,2,1,5,3\r\n",
		0, NULL);
	csv("", 0, "empty");
	csv(HEAD, 0, "no row");
	csv("step,rank\n" ROW, 1, "no column is named dp_rank");
	csv("step," HEAD, 1, "two columns are named step");
	csv(HEAD ROW "\n", 3, "1 fields, the header has 11");
	csv(HEAD "16,0,0\n", 2, "3 fields");
	csv(HEAD ROW "16,0,0,0,forward-compute,0,0,0,0,2.5,0.25,7\n", 3, "12 fields");
	csv(HEAD ROW "16,0,2,0,forward-compute,0,0,0,0,2.5,0.25\n", 3,
		"dp_rank is '2': it must be a whole number from 0 to 1");
	csv(HEAD "16,0,0,-1,forward-compute,0,0,0,0,2.5,0.25\n", 2, "stage is '-1'");
	csv(HEAD "x,0,0,0,forward-compute,0,0,0,0,2.5,0.25\n", 2, "step is 'x'");
	csv(HEAD "16,99999999999999999999,0,0,forward-compute,0,0,0,0,2.5,0.25\n", 2,
		"rank is '9999");
	csv(HEAD "16,0,0,0,forward\033-compute,0,0,0,0,2.5,0.25\n", 2,
		"optype is 'forward\\x1b-compute': it must be an operation");
	csv(HEAD "16,0,0,0,gc,8388609,0,0,0,2.5,0.25\n", 2, "seq_id is '8388609'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,nan,0.25\n", 2, "start_ts is 'nan'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,1e999,0.25\n", 2, "start_ts is '1e999'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,2.5,-0.25\n", 2, "duration is '-0.25'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,2.5,inf\n", 2, "duration is 'inf'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,2.5,0x1\n", 2, "duration is '0x1'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,2.5,1e-\n", 2, "duration is '1e-'");
	csv(HEAD "16,0,0,0,gc,0,0,0,0,2.5,\n", 2, "duration is ''");
	csv(HEAD "\"16\",0,0,0,gc,0,0,0,0,2.5,1\n", 2, "step is '\"16\"'");
}

LS_TEST(files, csv_lines_and_columns_are_bounded)
{
	char text[4 * LS_WHATIF_LINE_MAX_BYTES];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	csv(text, 1, "longer than");
	memset(text, ',', 200);
	text[200] = '\0';
	csv(text, 1, "more than 64 columns");
	(void)snprintf(text, sizeof(text), HEAD "%0300d%0300d%0300d%0300d", 0, 0, 0, 0);
	csv(text, 2, "longer than");
}

static void
meta(const char *text, uint64_t line, const char *says)
{
	struct ls_whatif_meta m = { 0 };
	struct ls_whatif_error error = { 0 };
	int rc = ls_whatif_meta_parse(text, strlen(text), &m, &error);

	if (says == NULL) {
		ck_assert_msg(rc == 0, "%s: %s", text, error.text);
		ck_assert_uint_eq(m.dp_size, 4);
		return;
	}
	ck_assert_int_eq(rc, -LS_EPARSE);
	ck_assert_msg(strstr(error.text, says) != NULL, "'%s' is not in: %s", says,
		error.text);
	ck_assert_uint_eq(error.line, line);
}

LS_TEST(files, meta_says_what_is_wrong)
{
	meta("dp_size: 4\npp_size: 2\n", 0, NULL);
	meta("trial_name: A\nrun_id: 0\nother: {a: [1, 2]}\ndp_size: 4\npp_size: 2\ntp_size: 3\nworld_size: 24\n",
		0, NULL);
	meta("{\"dp_size\": 4, \"pp_size\": 2}", 0, NULL);
	meta("", 1, "it is empty");
	meta("- 4\n", 1, "lines of NAME: NUMBER");
	meta("dp_size: 4\n", 0, "pp_size is missing");
	meta("dp_size: 4\npp_size: 2\ndp_size: 3\n", 3, "dp_size is repeated");
	meta("dp_size: 4\npp_size: 0\n", 2,
		"pp_size must be a whole number from 1 to 1024");
	meta("dp_size: 99999\npp_size: 2\n", 1, "dp_size must be");
	meta("dp_size: 4.0\npp_size: 2\n", 1, "dp_size must be");
	meta("dp_size: [4]\npp_size: 2\n", 1, "dp_size must be");
	meta("dp_size: 65536\npp_size: 1024\n", 0, "dp_size x pp_size");
	meta("dp_size: 60000\npp_size: 1\ntp_size: 60000\ndsp_size: 60000\n", 0,
		"multiply to more");
	meta("dp_size: 4\npp_size: 2\nworld_size: 9\n", 0, "world_size is 9");
	meta("dp_size: 4\npp_size: 2\nvpp_size: 2\n", 0, "several chunks");
	meta("dp_size: &x 4\npp_size: *x\n", 2, "pp_size must be");
	meta("more: [*x]\n", 1, "alias");
	meta("dp_size: 4\npp_size: 2\n}\n", 3, "no YAML");
	meta("dp_size: 4\npp_size: 2\n---\ndp_size: 4\n", 3, "a second document");
	meta("trial_name: \"a\\x07\"\ndp_size: 4\npp_size: 2\n", 1,
		"trial_name must be");
}

/* All of it with the n-th allocation failing. */
static int
torture(const char *text, size_t n)
{
	struct ls_whatif_meta m = { 0 };
	struct ls_whatif_error error = { 0 };
	struct ls_whatif_rows rows = { 0 };
	struct ls_whatif_trace *t = NULL;
	json_t *answer = NULL;
	bool spent;
	int rc;

	fail_at = n;
	rc = ls_whatif_meta_parse("dp_size: 2\npp_size: 1\n", 22, &m, &error);
	if (rc == 0)
		rc = read_rows(text, &m, &rows, &error);
	if (rc == 0)
		rc = ls_whatif_trace_new(rows.rows, rows.count, m.dp_size, m.pp_size,
			&t, &error);
	if (rc == 0)
		rc = ls_whatif_answer(t, "", 1, &answer, &error);
	spent = fail_at == 0;
	fail_at = 0; /* Check allocates, too */
	ck_assert_int_eq(rc, spent ? -ENOMEM : 0);
	json_decref(answer);
	ls_whatif_trace_free(t);
	free(rows.rows);
	return rc;
}

LS_TEST(files, an_allocation_that_fails_is_an_error)
{
	size_t n = 1;

	while (torture(HEAD
		       "1,0,0,0,forward-compute,0,0,0,0,0,1\n1,1,1,0,forward-compute,0,0,0,0,0,2\n"
		       "1,0,0,0,optimizer,0,0,0,0,2,1\n1,1,1,0,optimizer,0,0,0,0,2,1\n",
		       n) != 0)
		n++;
	ck_assert_uint_gt(n, 20); /* there are so many of them at least */
}

/* --- what is told --------------------------------------------------------- */

LS_CASE(what_is_told);

LS_TEST(what_is_told, json_holds_what_was_asked)
{
	struct hand h;

	pipeline(&h);
	ask(&h);
	ck_assert(json_is_null(json_object_get(h.answer, "trial")));
	eq(&h, "S", 15 / 13.5);
	eq(&h, "M_S", 2);
	eq(&h, "launch_slowdown", 1);
	eq(&h, "S_op.forward-compute", 14.5 / 13.5);
	eq(&h, "S_w.1", 15 / 13.5);
	eq(&h, "S_alone.1", 16.5 / 13.5);
	eq(&h, "exceeds_ideal.M_S", 1);
	eq(&h, "top.0.rank", 1);
	eq(&h, "role_median.S", 1);
	done(&h);
}

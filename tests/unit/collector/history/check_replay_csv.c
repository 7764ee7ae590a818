/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/replay.h"
#include "collector/history/replay_csv.h"

#include "proto/base/json.h"
#include "tests/support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "step,rank,own_seconds,step_seconds\n"

static struct ls_replay_stats stats;
static char told[4096];

static void
complain(void *arg, const char *text)
{
	size_t len = strlen(told);

	(void)arg;
	(void)snprintf(told + len, sizeof(told) - len, "%s\n", text);
}

/* Replays text; NULL when nothing of it is good. The caller frees. */
static json_t *
replay(const char *text, size_t len)
{
	json_t *result = NULL;
	int rc;

	told[0] = '\0';
	rc = ls_replay_text(text, len, 0, complain, NULL, &stats, &result);
	ck_assert(rc == 0 || rc == -LS_EPARSE || rc == -LS_ELIMIT);
	return result;
}

static void
refuses(const char *text, const char *words)
{
	json_t *result = replay(text, strlen(text));

	ck_assert_str_eq(told, words);
	json_decref(result);
}

/* The only finding of a result. */
static const json_t *
finding(const json_t *result)
{
	const json_t *all = json_object_get(result, "findings");

	ck_assert_uint_eq(json_array_size(all), 1);
	return json_array_get(all, 0);
}

static const char *
text_at(const json_t *object, const char *one, const char *two)
{
	return json_string_value(json_object_get(json_object_get(object, one), two));
}

/* 400 steps of 4 ranks; rank 2, or with all of them every rank, is 20 % slower from step
 * 200 on. The caller frees. */
static char *
table(const char *header, bool blanks, bool all)
{
	size_t size = 65536, len;
	char *text = malloc(size);

	ck_assert_ptr_nonnull(text);
	len = (size_t)snprintf(text, size, "%s", header);
	for (int i = 0; i < 1600; i++) {
		int step = i / 4, rank = i % 4;
		double slow = step >= 200 && (all || rank == 2) ? 1.2 : 1;
		double own_s = slow * (0.1 + 0.0001 * ((step * 7 + rank * 3) % 10));

		len += (size_t)snprintf(text + len, size - len, "%s%d,%s%d,%s%.6f%s\n",
			blanks ? " " : "", step, blanks ? "\t" : "", rank,
			blanks ? " " : "", own_s, blanks ? " \r" : "");
		ck_assert_uint_lt(len, size);
	}
	return text;
}

LS_CASE(tables);

LS_TEST(tables, slow_rank_is_found_with_own_seconds)
{
	for (int i = 0; i < 2; i++) {
		char *text =
			table(i == 0 ? "" : "\xef\xbb\xbfstep,\trank, own_seconds \r\n",
				i, false);
		json_t *result = replay(text, strlen(text));

		ck_assert_str_eq(told, "");
		ck_assert_uint_eq(stats.records, 1600);
		ck_assert_str_eq(text_at(finding(result), "subject", "host"), "rank2");
		ck_assert_double_eq_tol(
			json_number_value(json_object_get(
				json_object_get(finding(result), "onset"), "step")),
			200, 2);
		ck_assert_ptr_null(json_object_get(result, "not_judged"));
		json_decref(result);
		free(text);
	}
}

/* No rank works longer, and all steps take longer: a rank that begins late cannot be told
 * from a slow collective. */
LS_TEST(tables, longer_waits_of_all_have_no_visible_cause)
{
	char *text = malloc(65536);
	size_t len = 0;
	json_t *result;
	const char *title;

	ck_assert_ptr_nonnull(text);
	for (int i = 0; i < 1600; i++) {
		double own_s = 0.1 + 0.0001 * ((i / 4 * 7 + i % 4 * 3) % 10);

		len += (size_t)snprintf(text + len, 65536 - len, "%d,%d,%.6f,%.6f\n",
			i / 4, i % 4, own_s, i < 800 ? 0.12 : 0.15);
		ck_assert_uint_lt(len, 65536);
	}
	result = replay(text, len);
	ck_assert_str_eq(text_at(finding(result), "subject", "scope"), "job");
	title = json_string_value(json_object_get(finding(result), "title"));
	ck_assert_msg(strstr(title, "cause not visible") != NULL, "%s", title);
	json_decref(result);
	free(text);
}

LS_TEST(tables, columns_go_by_name_and_rows_by_step)
{
	static const char text[] =
		"own_seconds,colour,rank,step\n0.5,red,1,8\n0.25,,0,7\n0.5,,0,8\n";
	struct ls_csv csv = { 0 };
	struct ls_line l;
	char why[LS_LINE_WHY_BYTES];
	json_t *result = replay(text, strlen(text));

	ck_assert_str_eq(told,
		"line 1: unknown key \"colour\" is ignored from here on\n");
	ck_assert_uint_eq(stats.records, 3);
	ck_assert_uint_eq(stats.others, 1);
	json_decref(result);
	ck_assert_int_eq(ls_csv_parse(&csv, text, 28, &l, why), 0);
	ck_assert_int_eq(l.kind, LS_LINE_OTHER);
	ck_assert_int_eq(ls_csv_parse(&csv, text + 29, 11, &l, why), 0);
	ck_assert_uint_eq(l.record.step, 8);
	ck_assert_int_eq(l.who.rank, 1);
	ck_assert_uint_eq(l.record.phase_ns[LS_PHASE_OTHER], 500000000);
	ck_assert_uint_eq(l.record.duration_ns, 0);
}

LS_TEST(tables, rank_works_then_waits_for_the_end_of_the_step)
{
	struct ls_record r = { .phase_mask = 1u << LS_PHASE_OTHER };
	const char *why = "";

	r.phase_ns[LS_PHASE_OTHER] = 3000;
	ls_csv_place(&r, 10000, 5000);
	ck_assert_int_eq(r.t_begin_ns, 10000);
	ck_assert_uint_eq(r.duration_ns, 5000);
	ck_assert_int_eq(r.barrier[0].enter_ns, 13000);
	ck_assert_int_eq(r.barrier[0].exit_ns, 15000);
	ck_assert_uint_eq(r.phase_ns[LS_PHASE_SYNC_WAIT], 2000);
	ck_assert_int_eq(ls_record_check(&r, &why), 0);
}

LS_TEST(tables, whole_step_times_judge_the_job_and_no_rank)
{
	for (int all = 0; all < 2; all++) {
		char *text = table("step,rank,step_seconds\n", false, all);
		json_t *result = replay(text, strlen(text));

		ck_assert_str_eq(
			json_string_value(json_object_get(result, "not_judged")),
			"workers: 1600 of 1600 rows have no own_seconds; only the job is "
			"judged by them");
		ck_assert_int_eq(
			(int)json_array_size(json_object_get(result, "findings")), all);
		if (all)
			ck_assert_str_eq(text_at(finding(result), "subject", "scope"),
				"job");
		json_decref(result);
		free(text);
	}
}

LS_TEST(tables, times_of_the_job_alone_need_no_rank)
{
	char text[32768] = "step,step_seconds\n";
	size_t len = strlen(text);
	json_t *result;

	for (int step = 0; step < 400; step++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d,%.4f\n",
			step, (step < 200 ? 1 : 1.2) + 0.001 * (step * 7 % 10));
	result = replay(text, len);
	ck_assert_str_eq(text_at(finding(result), "subject", "scope"), "job");
	json_decref(result);
}

LS_TEST(tables, example_of_the_manual_is_judged)
{
	size_t len;
	char *text =
		ls_test_read(ls_test_source("tests/golden/replay_small.csv"), &len);
	json_t *result = replay(text, len);

	ck_assert_uint_eq(stats.records, 800);
	ck_assert_str_eq(text_at(finding(result), "subject", "host"), "rank2");
	json_decref(result);
	free(text);
}

LS_CASE(hostile);

LS_TEST(hostile, bad_rows_are_told_with_their_line)
{
	refuses(HEADER "1,0,nan,1\n\n2,0,-1,1\n3,0,0x1p3,1\n",
		"line 2: \"own_seconds\" is \"nan\", not seconds from 0 to 2592000\n"
		"line 4: \"own_seconds\" is \"-1\", not seconds from 0 to 2592000\n"
		"line 5: \"own_seconds\" is \"0x1p3\", not seconds from 0 to 2592000\n");
	refuses(HEADER "-1,0,1,1\n1,65536,1,1\n1,,1,1\n1.5,0,1,1\n",
		"line 2: \"step\" is \"-1\", not a whole number of 0 to "
		"4611686018427387903\n"
		"line 3: \"rank\" is \"65536\", not a whole number of 0 to 65535\n"
		"line 4: \"rank\" is \"\", not a whole number of 0 to 65535\n"
		"line 5: \"step\" is \"1.5\", not a whole number of 0 to "
		"4611686018427387903\n");
	refuses("1,0,1\n1,0\n2,0,1,1\n",
		"line 2: 2 fields, where the first line has 3\n"
		"line 3: 4 fields, where the first line has 3\n");
	refuses(HEADER "1,0,,\n",
		"line 2: neither \"own_seconds\" nor \"step_seconds\" is given\n");
	refuses(HEADER "1,0,2,1\n",
		"line 2: \"own_seconds\" is more than \"step_seconds\"\n");
	refuses("step,rank,step,own_seconds\n",
		"line 1: two columns are named \"step\"\n");
	refuses("rank,own_seconds\n0,1\n",
		"line 2: \"step\" is \"\", not a whole number of 0 to "
		"4611686018427387903\n");
	refuses(HEADER "\033[2J,0,1,1\n",
		"line 2: \"step\" is \"\\x1b[2J\", not a whole number of 0 to "
		"4611686018427387903\n");
}

LS_TEST(hostile, sizes_are_limited)
{
	char text[8192] = HEADER;
	size_t len = strlen(text);
	json_t *result;

	memset(text + len, ',', LS_REPLAY_COLUMNS_MAX + 1);
	text[len + LS_REPLAY_COLUMNS_MAX + 1] = '\n';
	memset(text + len + LS_REPLAY_COLUMNS_MAX + 2, '1', LS_REPLAY_ROW_MAX_BYTES);
	refuses(text,
		"line 2: more than 64 columns\n"
		"line 3: not a row of at most 1023 bytes without a NUL byte\n");
	memcpy(text + len, "1,0,1\0,1\n", 9);
	result = replay(text, len + 9);
	ck_assert_ptr_null(result);
	ck_assert_str_eq(told,
		"line 2: not a row of at most 1023 bytes without a NUL byte\n");
}

LS_TEST(hostile, steps_of_two_hundred_years_are_refused)
{
	char text[131072] = "step,step_seconds\n";
	size_t len = strlen(text);

	for (int step = 0; step < 4000; step++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d,2591999\n",
			step);
	ck_assert_ptr_null(replay(text, len));
	ck_assert_uint_eq(stats.records, 4000);
}

LS_TEST(hostile, a_damaged_line_of_json_is_no_table)
{
	refuses("\"host\":\"h\",\"rank\":0}\n"
		"{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":10,"
		"\"duration\":1}\n",
		"line 1: not JSON: end of file expected near ':'\n");
	ck_assert_uint_eq(stats.records, 1);
}

LS_TEST(hostile, only_text_makes_a_table)
{
	static const char *const no[] = { "a,\x80\xff", "step,\x01rank", "\x7f,2,3",
		"a b" };
	size_t i;

	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert(!ls_csv_is(no[i], strlen(no[i])));
	ck_assert(!ls_csv_is("1,0,\0", 5));
	ck_assert(ls_csv_is("\xef\xbb\xbfstep,\tr\xc3\xa4nk \r", 16));
}

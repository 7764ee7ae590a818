/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/history/replay.h"
#include "collector/history/replay_input.h"

#include "proto/base/digest.h"
#include "proto/base/json.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Lines of a replay file, kept apart so that they can be put into any order. */
struct lines {
	char **line;
	size_t count, capacity;
};

/* What a replay said. */
struct told {
	char all[16384];
	size_t len;
};

static struct ls_replay_stats stats;
static struct told told;

static void
complain(void *arg, const char *text)
{
	struct told *t = arg;
	int n = snprintf(t->all + t->len, sizeof(t->all) - t->len, "%s\n", text);

	if (n > 0 && t->len + (size_t)n < sizeof(t->all))
		t->len += (size_t)n;
}

static void
add(struct lines *l, const char *text)
{
	if (l->count == l->capacity) {
		l->capacity = l->capacity == 0 ? 256 : 2 * l->capacity;
		l->line = realloc(l->line, l->capacity * sizeof(*l->line));
		ck_assert_ptr_nonnull(l->line);
	}
	l->line[l->count] = strdup(text);
	ck_assert_ptr_nonnull(l->line[l->count++]);
}

static void
drop(struct lines *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->line[i]);
	free(l->line);
}

static char *
joined(const struct lines *l)
{
	size_t len = 0;
	char *text, *end;

	for (size_t i = 0; i < l->count; i++)
		len += strlen(l->line[i]);
	end = text = malloc(len + 1);
	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < l->count; i++) {
		memcpy(end, l->line[i], strlen(l->line[i]));
		end += strlen(l->line[i]);
	}
	*end = '\0';
	return text;
}

static void
shuffle(struct lines *l)
{
	struct fake_job random = { .random = 12345 };

	for (size_t i = l->count; i > 1; i--) {
		size_t k = (size_t)(fake_job_random(&random) * (double)i);
		char *kept = l->line[i - 1];

		l->line[i - 1] = l->line[k];
		l->line[k] = kept;
	}
}

/* 200 steps of a job of 4, of which worker `slow` is 20 % slower from step 100 on (4:
 * none). */
static void
story(struct lines *l, const char *job_name, size_t slow)
{
	struct fake_job *job = fake_job_on(NULL, job_name, 4);
	char text[1024];

	for (size_t step = 0; step < 200; step++) {
		if (slow < 4)
			job->workers[slow].slow = step >= 100 ? 1.2 : 1;
		fake_job_make(job);
		for (size_t i = 0; i < 4; i++) {
			(void)fake_job_line(job, i, text, sizeof(text));
			add(l, text);
		}
		if (step % 10 != 9)
			continue;
		for (size_t i = 0; i < 4; i++) {
			(void)snprintf(text, sizeof(text),
				"{\"type\":\"counters\",\"job\":\"%s\",\"host\":\"h%zu\","
				"\"t\":%.6f,\"values\":{\"job.cpu_seconds_total\":%zu.5}}\n",
				job_name, i, (double)job->now_us * 1e-6, step / 10);
			add(l, text);
		}
	}
	fake_job_free(job);
}

/* Replays text and returns the canonical result; NULL with *ret_rc set when refused. */
static char *
replay(const char *text, int *ret_rc)
{
	json_t *result = NULL;
	char *canonical;

	told = (struct told){ 0 };
	*ret_rc =
		ls_replay_text(text, strlen(text), 0, complain, &told, &stats, &result);
	if (*ret_rc != 0)
		return NULL;
	canonical = ls_json_canonical(result);
	json_decref(result);
	ck_assert_ptr_nonnull(canonical);
	return canonical;
}

static char *
replay_lines(const struct lines *l)
{
	char *text = joined(l), *result;
	int rc;

	result = replay(text, &rc);
	ck_assert_int_eq(rc, 0);
	free(text);
	return result;
}

static char *
replay_path(const char *path, int want)
{
	json_t *result = NULL;
	char *canonical = NULL;

	told = (struct told){ 0 };
	ck_assert_int_eq(ls_replay_file(path, 0, complain, &told, &stats, &result),
		want);
	if (want == 0)
		canonical = ls_json_canonical(result);
	json_decref(result);
	return canonical;
}

LS_CASE(runs);

LS_TEST(runs, culprit_is_found)
{
	struct lines l = { 0 };
	json_t *result = NULL;
	const json_t *f;
	char *text, digest[LS_DIGEST_BYTES];

	story(&l, "train", 2);
	text = joined(&l);
	ck_assert_int_eq(
		ls_replay_text(text, strlen(text), 0, NULL, NULL, &stats, &result), 0);
	ck_assert_uint_eq(stats.lines, 880);
	ck_assert_uint_eq(stats.records, 800);
	ck_assert_uint_eq(stats.counters, 80);
	ck_assert_uint_eq(stats.bad_lines, 0);
	ck_assert_uint_eq(json_array_size(json_object_get(result, "findings")), 1);
	f = json_array_get(json_object_get(result, "findings"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(f, "subject"), "host")),
		"h2");
	ck_assert_int_eq(ls_digest_json(json_object_get(result, "findings"), digest),
		0);
	ck_assert_str_eq(json_string_value(json_object_get(result, "digest")), digest);
	json_decref(result);
	free(text);
	drop(&l);
}

static void
reverse(struct lines *l)
{
	for (size_t i = 0; i < l->count / 2; i++) {
		char *kept = l->line[i];

		l->line[i] = l->line[l->count - 1 - i];
		l->line[l->count - 1 - i] = kept;
	}
}

/* A step that stands twice, in other words: the culprit's of an episode, in another
 * slice. */
static void
add_contradiction(struct lines *l, const char *slice)
{
	char text[1024];
	const char *line, *rest;

	for (size_t i = 0; i < l->count; i++) {
		line = l->line[i];
		rest = strstr(line, "\"step\":150,");
		if (rest == NULL || strstr(line, "\"rank\":1,") == NULL)
			continue;
		(void)snprintf(text, sizeof(text),
			"{\"slice\":\"%s\",\"job\":\"train\","
			"\"host\":\"h1\",\"rank\":1,\"work\":{\"tokens\":%d},%s",
			slice, slice[0], rest);
		add(l, text);
		return;
	}
	ck_abort_msg("no such step");
}

LS_TEST(runs, order_of_lines_is_nothing)
{
	struct lines l = { 0 };
	char *one, *two, *three;

	story(&l, "train", 1);
	add_contradiction(&l, "a");
	add_contradiction(&l, "b");
	add(&l, l.line[50]);
	one = replay_lines(&l);
	ck_assert_uint_eq(stats.bad_lines, 3);
	reverse(&l);
	two = replay_lines(&l);
	shuffle(&l);
	three = replay_lines(&l);
	ck_assert_str_eq(one, two);
	ck_assert_str_eq(one, three);
	ck_assert_ptr_nonnull(strstr(one, "\"slice\":{\"id\":\"b\"}"));
	free(one);
	free(two);
	free(three);
	drop(&l);
}

/* 30 quiet steps with their closings, then a standstill, seen twice; the second time in
 * the moment of a closing. */
static void
still_story(struct lines *l)
{
	struct fake_job *job = fake_job_on(NULL, "train", 4);
	char text[1024];
	double t;

	for (size_t step = 0; step < 31; step++) {
		fake_job_make(job);
		for (size_t i = 0; i < 4; i++) {
			(void)fake_job_line(job, i, text, sizeof(text));
			add(l, text);
		}
		t = (double)job->now_us * 1e-6 + (step == 30 ? 25 : 0.5);
		(void)snprintf(text, sizeof(text),
			"{\"type\":\"close\",\"job\":\"train\","
			"\"step\":%zu,\"t\":%.6f}\n",
			step, t);
		add(l, text);
		if (step < 30)
			continue;
		for (int seen = 0; seen < 2; seen++) {
			(void)snprintf(text, sizeof(text),
				"{\"type\":\"hang\",\"job\":\"train\","
				"\"step\":30,\"since\":%.6f,\"t\":%.6f,\"waiting\":3,"
				"\"why\":\"absent\",\"ranks\":[2]}\n",
				t - 25, t - (seen == 0 ? 10 : 0));
			add(l, text);
		}
	}
	fake_job_free(job);
}

LS_TEST(runs, a_standstill_is_replayed_in_its_place)
{
	struct lines l = { 0 };
	char *one, *two;

	still_story(&l);
	one = replay_lines(&l);
	ck_assert_uint_eq(stats.others, 33);
	ck_assert_uint_eq(stats.bad_lines, 0);
	ck_assert_ptr_nonnull(strstr(one, "\"kind\":\"hang\""));
	ck_assert_ptr_nonnull(strstr(one, "\"host\":\"h2\""));
	shuffle(&l);
	two = replay_lines(&l);
	ck_assert_str_eq(one, two);
	free(one);
	free(two);
	drop(&l);
}

LS_TEST(runs, bytes_that_are_skipped_count_against_the_limit)
{
	struct ls_replay_input in = { .bytes_max = 1024 * 1024 };
	char path[512];
	FILE *f;

	ck_assert_int_eq(ls_replay_input_file(&in, "/dev/zero"), -LS_ELIMIT);
	ls_replay_input_fini(&in);
	(void)snprintf(path, sizeof(path), "%s/oneline", ls_test_tmpdir());
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (int i = 0; i < 2 * 1024 * 1024; i++)
		(void)fputc('x', f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(ls_replay_input_file(&in, path), -LS_ELIMIT);
	ls_replay_input_fini(&in);
}

LS_TEST(runs, gzip_and_plain_are_the_same)
{
	struct lines l = { 0 };
	char *text, path[512], *one, *two;
	const char *dir = ls_test_tmpdir();
	gzFile gz;
	FILE *f;

	story(&l, "train", 3);
	text = joined(&l);
	(void)snprintf(path, sizeof(path), "%s/plain", dir);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	one = replay_path(path, 0);
	(void)snprintf(path, sizeof(path), "%s/packed", dir);
	gz = gzopen(path, "wb");
	ck_assert_ptr_nonnull(gz);
	ck_assert_int_gt(gzputs(gz, text), 0);
	ck_assert_int_eq(gzclose(gz), Z_OK);
	two = replay_path(path, 0);
	ck_assert_str_eq(one, two);
	ck_assert_ptr_nonnull(strstr(one, "\"h3\""));
	free(one);
	free(two);
	free(text);
	drop(&l);
}

LS_TEST_LOOP(runs, damaged_gzip_is_told_and_the_rest_used, 0, 2)
{
	struct lines l = { 0 };
	char *text, *result, path[512], *bytes;
	size_t len;
	gzFile gz;
	FILE *f;

	story(&l, "train", 4);
	text = joined(&l);
	(void)snprintf(path, sizeof(path), "%s/cut", ls_test_tmpdir());
	gz = gzopen(path, "wb");
	ck_assert_ptr_nonnull(gz);
	ck_assert_int_gt(gzputs(gz, text), 0);
	ck_assert_int_eq(gzclose(gz), Z_OK);
	bytes = ls_test_read(path, &len);
	if (_i == 1)
		bytes[len / 2] ^= 0x55;
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, _i == 0 ? len / 2 : len, f),
		_i == 0 ? len / 2 : len);
	ck_assert_int_eq(fclose(f), 0);
	result = replay_path(path, 0);
	ck_assert_ptr_nonnull(strstr(told.all, "damaged or truncated"));
	ck_assert_uint_gt(stats.records, 100);
	ck_assert_uint_lt(stats.records, 800);
	ck_assert_uint_ge(stats.bad_lines, 1);
	free(result);
	free(bytes);
	free(text);
	drop(&l);
}

LS_TEST(runs, files_that_cannot_be_read)
{
	char path[512];
	FILE *f;

	free(replay_path("/nonexistent/file", -ENOENT));
	free(replay_path(ls_test_tmpdir(), -EISDIR));
	(void)snprintf(path, sizeof(path), "%s/empty", ls_test_tmpdir());
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fclose(f), 0);
	free(replay_path(path, -LS_EPARSE));
	ck_assert_uint_eq(stats.lines, 0);
}

#define GOOD \
	"{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":10,\"duration\":1}\n"

LS_CASE(lines);

LS_TEST(lines, bad_lines_are_told_with_their_number)
{
	char *result;
	int rc;

	result = replay(GOOD "{}\r\n\n" GOOD "[]", &rc);
	ck_assert_int_eq(rc, 0);
	ck_assert_str_eq(told.all,
		"line 2: \"host\" is missing\nline 5: not an object\n");
	ck_assert_uint_eq(stats.bad_lines, 2);
	ck_assert_uint_eq(stats.lines, 5);
	free(result);
}

LS_TEST(lines, only_bad_lines_are_no_replay)
{
	int rc;

	ck_assert_ptr_null(replay("x\ny\n", &rc));
	ck_assert_int_eq(rc, -LS_EPARSE);
	ck_assert_uint_eq(stats.bad_lines, 2);
	ck_assert_uint_eq(stats.lines, 2);
	ck_assert_ptr_null(replay("", &rc));
	ck_assert_int_eq(rc, -LS_EPARSE);
	ck_assert_ptr_null(replay("\n\n  \n", &rc));
	ck_assert_int_eq(rc, -LS_EPARSE);
	ck_assert_uint_eq(stats.bad_lines, 0);
}

LS_TEST(lines, too_many_jobs_at_once_are_refused)
{
	struct lines l = { 0 };
	char text[256], *all;
	int rc;

	for (int i = 0; i <= LS_JOBS_MAX; i++) {
		(void)snprintf(text, sizeof(text),
			"{\"job\":\"j%d\",\"host\":\"h\",\"rank\":0,"
			"\"step\":1,\"t_begin\":10,\"duration\":1}\n",
			i);
		add(&l, text);
	}
	all = joined(&l);
	ck_assert_ptr_null(replay(all, &rc));
	ck_assert_int_eq(rc, -LS_ELIMIT);
	free(all);
	drop(&l);
}

LS_TEST(lines, complaints_are_limited)
{
	char text[1024] = "";
	size_t said = 0;
	int rc;

	for (size_t i = 0; i < 100; i++)
		memcpy(text + 2 * i, "x\n", 3);
	ck_assert_ptr_null(replay(text, &rc));
	ck_assert_uint_eq(stats.bad_lines, 100);
	for (const char *c = told.all; *c != '\0'; c++)
		said += *c == '\n';
	ck_assert_uint_eq(said, LS_REPLAY_ERRORS_SHOWN + 1);
}

LS_TEST(lines, too_long_lines_are_skipped_whole)
{
	size_t len = LS_REPLAY_LINE_MAX_BYTES + 100;
	char *text = malloc(len + 2 * sizeof(GOOD)), *result, path[512];
	FILE *f;
	int rc;

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', len);
	text[len - 1] = '\n';
	memcpy(text + len, GOOD, sizeof(GOOD));
	result = replay(text, &rc);
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(stats.lines, 2);
	ck_assert_uint_eq(stats.records, 1);
	ck_assert_ptr_nonnull(strstr(told.all, "line 1: the line is too long"));
	free(result);
	(void)snprintf(path, sizeof(path), "%s/long", ls_test_tmpdir());
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	result = replay_path(path, 0);
	ck_assert_uint_eq(stats.lines, 2);
	ck_assert_uint_eq(stats.records, 1);
	ck_assert_uint_eq(stats.bad_lines, 1);
	free(result);
	free(text);
}

LS_TEST(lines, unknown_keys_are_told_once)
{
	char *result;
	int rc;

	result = replay(
		"{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":1,\"t_begin\":10,"
		"\"duration\":1,\"colour\":1}\n"
		"{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"step\":2,\"t_begin\":11,"
		"\"duration\":1,\"phases\":{\"nap\":0.1}}\n"
		"{\"type\":\"counters\",\"job\":\"j\",\"host\":\"h\",\"t\":11,"
		"\"values\":{\"host.of.horses\":3,\"job.threads\":null}}\n",
		&rc);
	ck_assert_int_eq(rc, 0);
	ck_assert_str_eq(told.all,
		"line 1: unknown key \"colour\" is ignored from here on\n");
	ck_assert_uint_eq(stats.unknown_keys, 3);
	ck_assert_uint_eq(stats.bad_lines, 0);
	ck_assert_uint_eq(stats.records, 2);
	free(result);
}

LS_TEST(runs, clocks_of_the_file_are_used)
{
	struct lines l = { 0 };
	char *result;

	story(&l, "train", 2);
	add(&l,
		"{\"type\":\"clock\",\"job\":\"train\",\"host\":\"h0\",\"rank\":0,"
		"\"t\":1700000000,\"uncertainty\":0.03}\n");
	result = replay_lines(&l);
	ck_assert_ptr_nonnull(strstr(result, "\"clock_err_ms\":30.0"));
	/* worse than the effect */
	ck_assert_ptr_nonnull(strstr(result, "\"estimate\":\"wait\""));
	ck_assert_uint_eq(stats.others, 1);
	free(result);
	drop(&l);
}

LS_TEST(runs, two_jobs_are_two)
{
	struct lines l = { 0 };
	char *result;

	story(&l, "one", 1);
	story(&l, "two", 2);
	shuffle(&l);
	result = replay_lines(&l);
	ck_assert_ptr_nonnull(strstr(result, "\"id\":\"one\""));
	ck_assert_ptr_nonnull(strstr(result, "\"id\":\"two\""));
	ck_assert_uint_eq(stats.records, 1600);
	free(result);
	drop(&l);
}

LS_TEST(runs, late_attempts_are_told_and_a_rank_on_two_hosts_is_two_workers)
{
	char *result;
	int rc;

	result = replay(GOOD "{\"job\":\"j\",\"host\":\"other\",\"rank\":0,\"step\":1,"
			     "\"t_begin\":10,\"duration\":1}\n",
		&rc);
	ck_assert_int_eq(rc, 0);
	ck_assert_ptr_null(strstr(told.all, "rank"));
	free(result);
	result = replay(
		"{\"job\":\"j\",\"host\":\"h\",\"rank\":0,\"attempt\":1,\"step\":1,"
		"\"t_begin\":5,\"duration\":1}\n" GOOD,
		&rc);
	ck_assert_int_eq(rc, 0);
	ck_assert_ptr_nonnull(
		strstr(told.all, "an attempt begins after a later attempt"));
	free(result);
}

/* --- closings ------------------------------------------------------------- */

static void
add_closings(struct lines *l, uint64_t from, const char *missing)
{
	char text[256];

	for (uint64_t step = from; step < 200; step++) {
		(void)snprintf(text, sizeof(text),
			"{\"type\":\"close\",\"job\":\"train\",\"attempt\":0,\"step\":%llu,"
			"\"t\":%llu,\"expected\":4,\"used\":3,\"missing\":%s}\n",
			(unsigned long long)step,
			(unsigned long long)(1700001000 + step), missing);
		add(l, text);
	}
}

LS_TEST(runs, late_records_of_a_closing_are_left_out)
{
	struct lines l = { 0 };
	char *result;

	story(&l, "train", 2);
	add_closings(&l, 0, "[2]"); /* every record of the culprit came too late */
	result = replay_lines(&l);
	ck_assert_ptr_nonnull(strstr(result, "\"findings\":[]"));
	ck_assert_uint_eq(stats.others, 200);
	free(result);
	drop(&l);
}

LS_TEST(runs, steps_are_judged_at_the_time_of_their_closing)
{
	struct lines l = { 0 };
	char *result, *again;

	story(&l, "train", 2);
	add_closings(&l, 0, "[]");
	result = replay_lines(&l);
	/* some twenty steps after step 100, which was closed at 22:31:40 */
	ck_assert_ptr_nonnull(
		strstr(result, "\"first_detected_at\":\"2023-11-14T22:3"));
	ck_assert_ptr_nonnull(strstr(result, "\"h2\""));
	shuffle(&l);
	again = replay_lines(&l);
	ck_assert_str_eq(result, again);
	free(result);
	free(again);
	drop(&l);
}

/* Its processes begin again, under the same number of the attempt: each step closes twice, and each run has its own records. */
LS_TEST(runs, a_run_that_counts_anew_has_its_own_closings)
{
	struct fake_job *job = fake_job_on(NULL, "train", 4);
	struct lines l = { 0 };
	char text[1024], *result;

	for (size_t step = 0; step < 400; step++) {
		if (step == 200) {
			job->step = 0;
			job->now_us += 100000000;
		}
		job->workers[2].slow = step >= 300 ? 1.2 : 1;
		fake_job_make(job);
		for (size_t i = 0; i < 4; i++) {
			(void)fake_job_line(job, i, text, sizeof(text));
			add(&l, text);
			(void)snprintf(text, sizeof(text),
				"{\"type\":\"end\",\"job\":\"train\",\"attempt\":0,\"host\":\"h%zu\","
				"\"rank\":%zu,\"t\":%.6f,\"how\":\"crashed\"}\n",
				i, i, (double)job->now_us * 1e-6 + 9);
			if (step % 200 == 199)
				add(&l, text);
		}
		(void)snprintf(text, sizeof(text),
			"{\"type\":\"close\",\"job\":\"train\",\"attempt\":0,\"step\":%zu,"
			"\"t\":%.6f,\"expected\":4,\"used\":4,\"missing\":[]}\n",
			step % 200, (double)job->now_us * 1e-6 + 0.5);
		add(&l, text);
	}
	result = replay_lines(&l);
	ck_assert_str_eq(told.all, "");
	ck_assert_uint_eq(stats.records, 1600);
	ck_assert_ptr_nonnull(
		strstr(result, "\"first_detected_at\":\"2023-11-14T22:15:"));
	ck_assert_ptr_nonnull(strstr(result, "\"h2\""));
	free(result);
	fake_job_free(job);
	drop(&l);
}

LS_TEST(runs, steps_never_closed_are_not_judged)
{
	struct lines l = { 0 };
	char *result;

	story(&l, "train", 2);
	add_closings(&l, 150, "[]"); /* fifty steps: too few to learn from */
	result = replay_lines(&l);
	ck_assert_ptr_nonnull(strstr(result, "\"findings\":[]"));
	free(result);
	drop(&l);
}

LS_TEST(runs, small_recording_gives_the_golden_bytes)
{
	size_t len;
	char *want = ls_test_read(ls_test_source("tests/golden/finding_v1.json"), &len);
	char *got = replay_path(ls_test_source("tests/golden/replay_small.jsonl"), 0);

	ck_assert_uint_gt(len, 1);
	want[len - 1] = '\0'; /* its newline */
	ck_assert_str_eq(got, want);
	free(got);
	free(want);
}

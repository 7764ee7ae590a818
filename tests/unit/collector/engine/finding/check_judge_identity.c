/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/view.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <stdio.h>
#include <string.h>

#define MINUTE 37 /* steps of two seconds: longer than a start-up */

LS_CASE(judge_identity);

static size_t
lines_of(const struct fake_job *job)
{
	json_t *v = NULL;
	size_t n;

	ck_assert_int_eq(ls_view_job(job->engine, job->name, job->now_us, &v), 0);
	n = json_array_size(ls_json_at(v, "data_quality", "contradictions"));
	json_decref(v);
	return n;
}

LS_TEST(judge_identity, different_numbers_of_workers_are_told_while_some_are_missing)
{
	struct fake_job *job = fake_job_on(NULL, "train", 4);
	struct ls_worker_info info = { .job = "train", .host = "h9", .world = 8 };
	json_t *f;

	job->count = 3;
	fake_job_declare(job);
	job->count = 4;
	info.rank = 3;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
				 &job->workers[3].handle),
		0);
	job->own_s = 2;
	fake_job_run(job, MINUTE);
	fake_job_only(job, "self_identity", "job", "");
	f = fake_job_finding(job, 0);
	ck_assert_ptr_nonnull(strstr(ls_json_text_at(f, "title", NULL),
		"h0 says that the job has 3 workers, h9 says 8: 4 of 8 workers are "
		"not judged; set LOCKSTEP_WORLD"));
	json_decref(f);
	fake_job_free(job);
}

LS_TEST(judge_identity, rank_of_two_workers_that_are_judged_is_no_finding)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_worker_info info = { .job = "train", .host = "other", .rank = 2 };

	/* the last worker says that it has the rank of another */
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
				 &job->workers[3].handle),
		0);
	job->own_s = 2;
	fake_job_run(job, MINUTE);
	ck_assert_uint_eq(lines_of(job), 1);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 0);
	fake_job_free(job);
}

/* What each of four workers says of slices: how many, and in which it is. */
static const struct {
	int32_t said[4];
	const char *in[4], *line; /* NULL: no contradiction */
} slices[] = {
	{ { 2, 2, 2, 2 }, { "0", "0", "1", "1" }, NULL },
	{ { 0, 2, 0, 0 }, { "a", "a", "b", "b" }, NULL },
	{ { 2, 2, 3, 2 }, { "0", "0", "1", "1" },
		"h0 says that the job has 2 slices, h2 says 3: set MEGASCALE_NUM_SLICES to "
		"one number" },
	{ { 2, 2, 2, 2 }, { "0", "0", "1", "2" },
		"h0 says that the job has 2 slices, and its workers are in 3: set "
		"LOCKSTEP_SLICE" },
	{ { 2, 2, 2, 2 }, { "1", "0", "1", "1" },
		"slice \"1\" has 3 workers, and 4 workers in 2 slices make 2 in each: set "
		"LOCKSTEP_SLICE" },
};

LS_TEST_EACH(judge_identity, numbers_of_slices_that_differ_are_told, slices)
{
	struct fake_job *job = fake_job_on(NULL, "train", 4);
	const json_t *lines;
	json_t *v;

	for (int32_t r = 0; r < 4; r++) {
		struct ls_worker_info info = { .job = "train",
			.rank = r,
			.world = 4,
			.slices = slices[_i].said[r] };

		(void)snprintf(info.host, sizeof(info.host), "h%d", (int)r);
		(void)snprintf(info.slice, sizeof(info.slice), "%s", slices[_i].in[r]);
		ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
					 &job->workers[r].handle),
			0);
	}
	ck_assert_int_eq(ls_view_job(job->engine, job->name, job->now_us, &v), 0);
	lines = ls_json_at(v, "data_quality", "contradictions");
	ck_assert_uint_eq(json_array_size(lines), slices[_i].line != NULL);
	if (slices[_i].line != NULL)
		ck_assert_str_eq(json_string_value(json_array_get(lines, 0)),
			slices[_i].line);
	json_decref(v);
	fake_job_free(job);
}

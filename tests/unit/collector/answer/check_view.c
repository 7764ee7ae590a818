/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/view.h"
#include "collector/answer/finding_json.h"
#include "collector/engine/params.h"
#include "proto/base/json.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ls_view_range everything = { 0, UINT64_MAX, LS_PAGE_MAX };

/* A job of 6 with worker 4 slower from step 150 on, and counters. */
static struct fake_job *
story(void)
{
	struct fake_job *job = fake_job_new(6);
	uint16_t of_host[] = { LS_METRIC_HOST_CPU_BUSY, LS_METRIC_HOST_MEM_AVAILABLE };
	uint16_t of_worker = LS_METRIC_JOB_CPU;

	for (size_t i = 0; i < 210; i++) {
		job->workers[4].slow = i >= 150 ? 1.2 : 1;
		fake_job_run(job, 1);
		if (i % 10 == 9) {
			double values[] = { (double)i * 0.2, 1e9 },
			       cpu = (double)i * 0.05;

			LS_ASSERT(ls_engine_counters(job->engine, "h1",
					  job->workers[1].handle, job->now_us, 1,
					  &of_worker, &cpu) == 0);
			LS_ASSERT(ls_engine_counters(job->engine, "h1", LS_NO_WORKER,
					  job->now_us, 2, of_host, values) == 0);
		}
	}
	return job;
}

/* The keys of an object must be just these, in any order. */
static void
has_keys(const json_t *o, const char *const *keys)
{
	size_t n = 0;

	ck_assert(json_is_object(o));
	for (; keys[n] != NULL; n++)
		ck_assert_msg(json_object_get(o, keys[n]) != NULL, "no \"%s\"",
			keys[n]);
	ck_assert_uint_eq(json_object_size(o), n);
}

static double
number_at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_number(v), "\"%s\" is no number", key);
	return json_number_value(v);
}

static const char *
text_at(const json_t *o, const char *key)
{
	ck_assert_msg(json_is_string(json_object_get(o, key)), "\"%s\" is no text",
		key);
	return json_string_value(json_object_get(o, key));
}

LS_CASE(all);

LS_TEST(all, job_has_the_documented_shape)
{
	static const char *const keys[] = { "id", "state", "attempt", "slices", "hosts",
		"workers", "asynchronous", "workers_expected", "chips", "step",
		"steps_closed", "first_seen_at", "last_step_at", "step_time_s",
		"step_time_without_s", "slowdown_ratio", "chips_lost", "findings",
		"phases", "data_quality", "top_finding", "simulated", "suspect",
		"suspects", "judged", NULL };
	static const char *const quality[] = { "workers_reporting", "late_records",
		"gaps", "short_steps", "apart_steps", "lag_s", "clock_err_ms",
		"step_source", "not_believed", "contradictions", NULL };
	struct fake_job *job = story();
	json_t *v = NULL, *f;
	const json_t *impact;

	ls_engine_clock(job->engine, job->workers[2].handle, 0.001);
	ls_engine_gap(job->engine, job->workers[0].handle, 3);
	ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us + 500000, &v),
		0);
	has_keys(v, keys);
	has_keys(json_object_get(v, "data_quality"), quality);
	ck_assert_str_eq(text_at(v, "state"), "running");
	ck_assert_double_eq(number_at(v, "workers"), 6);
	ck_assert_double_eq(number_at(v, "hosts"), 6);
	ck_assert_double_eq(number_at(v, "slices"), 1);
	ck_assert_double_eq(number_at(v, "chips"), 24);
	ck_assert_double_eq(number_at(v, "step"), 209);
	ck_assert_double_eq(number_at(v, "steps_closed"), 210);
	ck_assert_double_eq_tol(number_at(v, "step_time_s"), 0.11, 0.003);
	ck_assert_double_gt(number_at(v, "slowdown_ratio"), 1.1);
	ck_assert_double_eq_tol(number_at(v, "chips_lost"),
		24 * (1 - 1 / number_at(v, "slowdown_ratio")), 0.001);
	ck_assert_double_eq(number_at(json_object_get(v, "findings"), "critical"), 1);
	ck_assert_double_eq_tol(number_at(json_object_get(v, "phases"), "compute"),
		0.75, 0.03);
	ck_assert_double_eq(
		number_at(json_object_get(v, "data_quality"), "clock_err_ms"), 1);
	ck_assert_double_eq(number_at(json_object_get(v, "data_quality"), "gaps"), 3);
	ck_assert_str_eq(text_at(json_object_get(v, "data_quality"), "step_source"),
		"marker");
	ck_assert_double_eq_tol(number_at(json_object_get(v, "data_quality"), "lag_s"),
		0.5, 1e-6);
	ck_assert_str_eq(text_at(v, "top_finding"), job->events[0].id);
	/* one finding is open: head and finding say the same */
	f = fake_job_finding(job, 0);
	impact = json_object_get(f, "impact");
	ck_assert_double_eq_tol(number_at(v, "slowdown_ratio"),
		number_at(impact, "slowdown_ratio"), 1e-4);
	ck_assert_double_eq_tol(number_at(v, "chips_lost"),
		number_at(impact, "chips_lost"), 1e-3);
	json_decref(f);
	json_decref(v);
	fake_job_free(job);
}

LS_TEST(all, job_that_has_not_begun_shows_nulls)
{
	static const char *const unknown[] = { "step", "last_step_at", "step_time_s",
		"step_time_without_s", "slowdown_ratio", "chips_lost", "top_finding" };
	struct fake_job *job = fake_job_new(2);
	json_t *v = NULL;

	ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &v), 0);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		ck_assert_msg(json_is_null(json_object_get(v, unknown[i])), "%s",
			unknown[i]);
	json_decref(v);
	v = fake_job_hosts(job);
	ck_assert(json_is_null(json_object_get(json_array_get(v, 0), "step")));
	ck_assert(json_is_null(json_object_get(json_array_get(v, 0), "own_s")));
	json_decref(v);
	ck_assert_int_eq(ls_view_steps(job->engine, "train", NULL, &everything, &v), 0);
	ck_assert_uint_eq(json_array_size(v), 0);
	json_decref(v);
	ck_assert_int_eq(ls_view_grid(job->engine, "train", LS_GRID_BLAME, &everything,
				 10, 10, &v),
		0);
	ck_assert(json_is_null(json_object_get(v, "first_step")));
	ck_assert_double_eq(number_at(v, "cols"), 0);
	json_decref(v);
	fake_job_free(job);
}

/* Before there is a finding, the worker that others wait for is suspected; then it is not
 * a suspect any more. */
LS_TEST(all, a_worker_that_is_last_is_suspected_until_it_is_found)
{
	struct fake_job *job = fake_job_new(6);
	bool suspected = false;
	json_t *v = NULL;

	fake_job_run(job, 40);
	ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &v), 0);
	ck_assert(json_is_null(json_object_get(v, "suspect")));
	ck_assert(json_is_false(json_object_get(v, "simulated")));
	json_decref(v);
	job->workers[4].slow = 1.2;
	for (size_t i = 0; i < 300; i++) {
		const json_t *suspect;
		bool found;

		fake_job_run(job, 1);
		ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &v), 0);
		suspect = json_object_get(v, "suspect");
		found = !json_is_null(json_object_get(v, "top_finding"));
		if (json_is_object(suspect)) {
			suspected = true;
			ck_assert(!found);
			ck_assert_str_eq(text_at(suspect, "host"), "h4");
			ck_assert_double_gt(number_at(suspect, "slowest_ratio"), 0.4);
			ck_assert_double_gt(number_at(suspect, "blame_s"), 0);
		}
		json_decref(v);
	}
	ck_assert(suspected);
	fake_job_free(job);
}

LS_TEST(all, workers_that_take_turns_are_both_suspected)
{
	struct fake_job *job = fake_job_new(6);
	size_t most = 0;
	json_t *v = NULL;

	fake_job_run(job, 150);
	for (size_t i = 0; i < 80; i++) {
		job->workers[4].slow = i % 2 == 0 ? 1.2 : 1;
		job->workers[1].slow = i % 2 == 0 ? 1 : 1.2;
		fake_job_run(job, 1);
		ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &v), 0);
		if (json_array_size(json_object_get(v, "suspects")) > most)
			most = json_array_size(json_object_get(v, "suspects"));
		json_decref(v);
	}
	ck_assert_uint_eq(most, 2);
	fake_job_free(job);
}

LS_TEST(all, job_states_follow_its_workers)
{
	struct fake_job *job = fake_job_new(2);
	json_t *v = NULL;

	fake_job_run(job, 3);
	ls_engine_advance(job->engine, job->now_us + 11000000);
	ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &v), 0);
	ck_assert_str_eq(text_at(v, "state"), "silent");
	json_decref(v);
	ls_engine_end(job->engine, job->workers[0].handle, LS_END_ENDED, job->now_us);
	ls_engine_end(job->engine, job->workers[1].handle, LS_END_CRASHED, job->now_us);
	ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &v), 0);
	ck_assert_str_eq(text_at(v, "state"), "ended");
	json_decref(v);
	v = fake_job_hosts(job);
	ck_assert_str_eq(text_at(json_array_get(v, 0), "state"), "ended");
	ck_assert_str_eq(text_at(json_array_get(v, 1), "state"), "crashed");
	json_decref(v);
	fake_job_free(job);
}

/* Id of an item of a page; "": there are not so many. */
static const char *
item_at(const json_t *page, size_t i)
{
	const json_t *v = json_array_get(json_object_get(page, "items"), i);

	return v != NULL ? text_at(v, "id") : "";
}

LS_TEST(all, jobs_that_lose_most_chips_come_first)
{
	struct fake_job *job = story();
	struct ls_worker_info info = { .job = "aaa", .host = "x" };
	uint32_t handle;
	json_t *v = NULL;

	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &handle), 0);
	ck_assert_int_eq(ls_view_jobs(job->engine, "", 9, job->now_us, &v), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 2);
	ck_assert_str_eq(item_at(v, 0), "train");
	ck_assert_str_eq(item_at(v, 1), "aaa");
	ck_assert(json_is_null(json_object_get(v, "next")));
	json_decref(v);
	ck_assert_int_eq(ls_view_jobs(job->engine, "", 1, job->now_us, &v), 0);
	ck_assert_str_eq(item_at(v, 0), "train");
	ck_assert_str_eq(text_at(v, "next"), "train");
	json_decref(v);
	ck_assert_int_eq(ls_view_jobs(job->engine, "train", 1, job->now_us, &v), 0);
	ck_assert_str_eq(item_at(v, 0), "aaa");
	ck_assert(json_is_null(json_object_get(v, "next")));
	json_decref(v);
	ck_assert_int_eq(ls_view_jobs(job->engine, "x", 1, job->now_us, &v),
		-LS_EUNKNOWN);
	fake_job_free(job);
}

LS_TEST(all, hosts_are_ordered_by_blame)
{
	static const char *const keys[] = { "host", "slice", "role", "rank", "attempt",
		"state", "step", "step_time_s", "own_s", "wait_s", "input_wait_s",
		"lateness_s", "blame_s", "slowest_ratio", "finding", "last_seen_at",
		"live", "counters", "gaps", "step_source", NULL };
	struct fake_job *job = story();
	struct ls_ring_live live = { .step = 210, .phase = LS_PHASE_SYNC_WAIT };
	json_t *v = NULL;
	const json_t *h, *counters = NULL;

	ls_engine_live(job->engine, job->workers[4].handle, &live, job->now_us - 250000,
		job->now_us);
	v = fake_job_hosts(job);
	ck_assert_uint_eq(json_array_size(v), 6);
	h = json_array_get(v, 0);
	has_keys(h, keys);
	ck_assert_str_eq(text_at(h, "host"), "h4");
	ck_assert_str_eq(text_at(h, "finding"), job->events[0].id);
	/* 60 of 100 steps */
	ck_assert_double_eq_tol(number_at(h, "blame_s"), 0.0096, 0.001);
	ck_assert_double_ge(number_at(h, "slowest_ratio"), 0.6);
	ck_assert(json_is_null(json_object_get(h, "input_wait_s")));
	ck_assert_double_eq(number_at(json_object_get(h, "live"), "step"), 210);
	ck_assert_str_eq(text_at(json_object_get(h, "live"), "phase"), "sync_wait");
	ck_assert_double_eq_tol(number_at(json_object_get(h, "live"), "since_s"), 0.25,
		1e-6);
	for (size_t i = 1; i < 6; i++) {
		h = json_array_get(v, i);
		ck_assert(json_is_null(json_object_get(h, "finding")));
		ck_assert(json_is_null(json_object_get(h, "live")));
		if (strcmp(text_at(h, "host"), "h1") == 0)
			counters = json_object_get(h, "counters");
	}
	ck_assert_double_eq_tol(number_at(counters, "job.cpu_seconds_total"), 0.5,
		0.05);
	ck_assert_double_eq_tol(number_at(counters, "host.cpu.busy_seconds_total"), 2,
		0.2);
	ck_assert_double_eq(number_at(counters, "host.memory.available_bytes"), 1e9);
	ck_assert_ptr_null(json_object_get(counters, "host.cpu.steal_seconds_total"));
	json_decref(v);
	fake_job_free(job);
}

LS_TEST(all, steps_are_the_newest_of_the_range_oldest_first)
{
	static const char *const keys[] = { "step", "at", "duration_s", "workers",
		"expected", "wait_min_s", "wait_median_s", "blame_s", "last", NULL };
	static const char *const last[] = { "host", "rank", "slice", "lateness_s",
		NULL };
	struct ls_view_range range = { 100, 180, 20 };
	struct fake_job *job = story();
	json_t *v = NULL;
	const json_t *row;
	size_t i;

	ck_assert_int_eq(ls_view_steps(job->engine, "train", NULL, &range, &v), 0);
	ck_assert_uint_eq(json_array_size(v), 20);
	row = json_array_get(v, 0);
	has_keys(row, keys);
	has_keys(json_object_get(row, "last"), last);
	ck_assert_double_eq(number_at(row, "step"), 161);
	ck_assert_double_eq(number_at(json_array_get(v, 19), "step"), 180);
	ck_assert_str_eq(text_at(json_object_get(row, "last"), "host"), "h4");
	ck_assert_double_eq_tol(number_at(row, "blame_s"), 0.016, 0.002);
	json_decref(v);
	range = (struct ls_view_range){ 0, LS_DETECT_WARM + LS_DETECT_SKIP - 1, 100 };
	ck_assert_int_eq(ls_view_steps(job->engine, "train", NULL, &range, &v), 0);
	ck_assert_uint_eq(json_array_size(v), LS_DETECT_WARM + LS_DETECT_SKIP);
	json_array_foreach(v, i, row)
	{
		ck_assert_int_eq(json_is_null(json_object_get(row, "blame_s")),
			i + 1 < LS_DETECT_WARM + LS_DETECT_SKIP);
	}
	json_decref(v);
	fake_job_free(job);
}

LS_TEST(all, records_of_a_host)
{
	static const char *const keys[] = { "step", "rank", "at", "duration_s", "own_s",
		"wait_s", "lateness_s", "blame_s", "phases", NULL };
	struct ls_view_range range = { 200, 200, 5 };
	struct fake_job *job = story();
	json_t *v = NULL;
	const json_t *r;

	ck_assert_int_eq(ls_view_steps(job->engine, "train", "h4", &range, &v), 0);
	ck_assert_uint_eq(json_array_size(v), 1);
	r = json_array_get(v, 0);
	has_keys(r, keys);
	ck_assert_double_eq(number_at(r, "rank"), 4);
	ck_assert_double_eq_tol(number_at(r, "own_s"), 0.096, 0.002);
	ck_assert_double_eq_tol(number_at(json_object_get(r, "phases"), "compute"),
		0.096, 0.002);
	json_decref(v);
	fake_job_free(job);
}

LS_TEST(all, one_step_of_all_workers_by_rank)
{
	struct fake_job *job = story();
	json_t *v = NULL, *items;

	ck_assert_int_eq(ls_view_step(job->engine, "train", 161, 0, 3, &v), 0);
	items = json_object_get(v, "items");
	ck_assert_uint_eq(json_array_size(items), 3);
	ck_assert_str_eq(text_at(v, "source"), "live");
	ck_assert_str_eq(text_at(v, "next_cursor"), "after-3");
	ck_assert_str_eq(text_at(json_array_get(items, 2), "host"), "h2");
	ck_assert_double_eq(number_at(json_array_get(items, 2), "rank"), 2);
	ck_assert_double_eq(number_at(json_array_get(items, 2), "step"), 161);
	json_decref(v);
	ck_assert_int_eq(ls_view_step(job->engine, "train", 161, 3, 1000, &v), 0);
	items = json_object_get(v, "items");
	ck_assert_str_eq(text_at(json_array_get(items, 1), "host"), "h4");
	ck_assert_double_eq_tol(number_at(json_array_get(items, 1), "own_s"), 0.096,
		0.002);
	ck_assert(json_is_null(json_object_get(v, "next_cursor")));
	json_decref(v);
	ck_assert_int_eq(ls_view_step(job->engine, "train", 161, 5000, 10, &v), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
	v = NULL;
	ck_assert_int_eq(ls_view_step(job->engine, "train", 1000000, 0, 1, &v),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_view_step(job->engine, "x", 161, 0, 1, &v), -LS_EUNKNOWN);
	ck_assert_ptr_null(v);
	fake_job_free(job);
}

LS_TEST(all, grid_is_rows_by_columns_of_bytes)
{
	static const char *const keys[] = { "schema_version", "job", "metric", "unit",
		"encoding", "min", "max", "missing", "rows", "cols", "first_step",
		"last_step", "steps_per_col", "data", NULL };
	struct fake_job *job = story();
	json_t *v = NULL;
	const json_t *rows;
	unsigned char bytes[4096];
	const char *data;
	int cols, len;

	ck_assert_int_eq(ls_view_grid(job->engine, "train", LS_GRID_BLAME, &everything,
				 4, 50, &v),
		0);
	has_keys(v, keys);
	rows = json_object_get(v, "rows");
	ck_assert_uint_eq(json_array_size(rows), 4);
	ck_assert_str_eq(text_at(json_array_get(rows, 0), "host"), "h4");
	ck_assert_str_eq(text_at(json_array_get(rows, 0), "finding"),
		job->events[0].id);
	cols = (int)number_at(v, "cols");
	ck_assert_double_eq(number_at(v, "steps_per_col"), 5);
	ck_assert_int_eq(cols, 42);
	ck_assert_double_eq(number_at(v, "first_step"), 0);
	ck_assert_double_eq(number_at(v, "last_step"), 209);
	data = text_at(v, "data");
	len = EVP_DecodeBlock(bytes, (const unsigned char *)data, (int)strlen(data));
	ck_assert_int_ge(len, 4 * cols);
	ck_assert_int_eq(bytes[0], 255); /* not judged while it learned */
	ck_assert_int_gt(bytes[cols - 1], 200); /* late, of the worst row */
	ck_assert_int_lt(bytes[30 - 5], 100); /* before it began */
	ck_assert_int_lt(bytes[2 * cols - 1], 100); /* another row */
	json_decref(v);
	fake_job_free(job);
}

LS_TEST(all, grid_shows_what_was_asked)
{
	struct ls_view_range range = { 10, 19, 100 };
	struct fake_job *job = story();
	json_t *v = NULL;

	ck_assert_str_eq(ls_grid_metric_name(LS_GRID_WAIT), "wait");
	ck_assert_ptr_null(ls_grid_metric_name(LS_GRID_METRIC_COUNT));
	for (unsigned m = 0; m < LS_GRID_METRIC_COUNT; m++) {
		ck_assert_int_eq(ls_view_grid(job->engine, "train",
					 (enum ls_grid_metric)m, &range,
					 LS_GRID_ROWS_MAX, LS_GRID_COLS_MAX, &v),
			0);
		ck_assert_str_eq(text_at(v, "metric"), ls_grid_metric_name(m));
		ck_assert_uint_eq(json_array_size(json_object_get(v, "rows")), 6);
		ck_assert_double_eq(number_at(v, "cols"), 10);
		json_decref(v);
	}
	ck_assert_int_eq(
		ls_view_grid(job->engine, "train", LS_GRID_OWN, &range, 0, 5, &v),
		-LS_ERANGE);
	ck_assert_int_eq(ls_view_grid(job->engine, "train", LS_GRID_OWN, &range,
				 LS_GRID_ROWS_MAX + 1, 5, &v),
		-LS_ERANGE);
	ck_assert_int_eq(
		ls_view_grid(job->engine, "train", LS_GRID_OWN, &range, 5, 0, &v),
		-LS_ERANGE);
	ck_assert_int_eq(ls_view_grid(job->engine, "train", LS_GRID_OWN, &range, 5,
				 LS_GRID_COLS_MAX + 1, &v),
		-LS_ERANGE);
	fake_job_free(job);
}

LS_TEST(all, finding_by_id)
{
	struct fake_job *job = story();
	json_t *v = NULL;

	ck_assert_int_eq(ls_view_finding(job->engine, job->events[0].id, &v), 0);
	ck_assert_str_eq(text_at(v, "id"), job->events[0].id);
	json_decref(v);
	fake_job_free(job);
}

/* The hosts of a page, and how many there are in all: "h1 h0 / 12". */
static const char *
page_of(const struct fake_job *job, const struct ls_view_hosts *ask)
{
	static char text[256];
	json_t *page, *h;
	size_t i, len = 0;

	ck_assert_int_eq(ls_view_hosts(job->engine, job->name, ask, job->now_us, &page),
		0);
	json_array_foreach(json_object_get(page, "items"), i, h) len +=
		(size_t)snprintf(text + len, sizeof(text) - len, "%s ",
			text_at(h, "host"));
	(void)snprintf(text + len, sizeof(text) - len, "/ %g",
		number_at(page, "count"));
	json_decref(page);
	return text;
}

LS_TEST(all, hosts_are_filtered_sorted_and_cut_into_pages)
{
	struct fake_job *job = fake_job_new(12);

	job->workers[7].mute = true; /* nothing of it is measured */
	for (size_t i = 0; i < 12; i++)
		job->workers[i].slow = 1 + 0.01 * (double)((i * 5) % 12);
	fake_job_run(job, 60);
#define PAGE(...) page_of(job, &(struct ls_view_hosts){ __VA_ARGS__ })
	ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_HOST, .limit = 4), "h0 h1 h2 h3 / 12");
	ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_HOST, .after = 9, .limit = 4),
		"h9 h10 h11 / 12");
	ck_assert_str_eq(PAGE(.after = 13, .limit = 4), "/ 12"); /* no such worker */
	/* whoever was shown last moves up: what came after it does */
	ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_OWN, .after = 6, .limit = 2),
		"h10 h3 / 12");
	ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_HOST, .descending = true, .limit = 2),
		"h11 h10 / 12");
	ck_assert_str_eq(PAGE(.match = "H1", .sort = LS_VIEW_BY_HOST, .limit = 2),
		"h1 h10 / 3");
	ck_assert_str_eq(PAGE(.host = "h1", .limit = 9), "h1 / 1");
	ck_assert_str_eq(PAGE(.match = "x", .limit = 9), "/ 0");
	/* 5 x 7 = 11 (mod 12), but it is mute: 10 is of h2 */
	ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_OWN, .descending = true, .limit = 2),
		"h2 h9 / 12");
	ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_OWN, .limit = 2), "h0 h5 / 12");
	for (int descending = 0; descending < 2; descending++)
		ck_assert_str_eq(PAGE(.sort = LS_VIEW_BY_OWN, .descending = descending,
					 .after = descending ? 1 : 3, .limit = 1),
			"h7 / 12");
#undef PAGE
	fake_job_free(job);
}

#define FINDINGS(...) findings_of(job, &(struct ls_view_findings){ __VA_ARGS__ })

/* Ids of the findings of a page, and where the next begins: "F-1 F-2 / F-2". */
static const char *
findings_of(const struct fake_job *job, const struct ls_view_findings *ask)
{
	static char text[256];
	json_t *page, *f, *next;
	size_t i, len = 0;

	ck_assert_int_eq(ls_view_findings(job->engine, ask, &page), 0);
	json_array_foreach(json_object_get(page, "items"), i, f) len +=
		(size_t)snprintf(text + len, sizeof(text) - len, "%s ",
			text_at(f, "id"));
	next = json_object_get(page, "next");
	(void)snprintf(text + len, sizeof(text) - len, "/ %s",
		json_is_null(next) ? "end" : json_string_value(next));
	json_decref(page);
	return text;
}

/* Seeds a finding as `like`, but for these; host NULL: its subject, too. */
static void
seed_like(const struct fake_job *job, const json_t *like, const char *id,
	const char *kind, const char *status, const char *severity, const char *host)
{
	json_t *f = json_deep_copy(like);

	ck_assert_int_eq(json_object_update_new(f,
				 json_pack("{s:s, s:s, s:s, s:s}", "id", id, "kind",
					 kind, "status", status, "severity", severity)),
		0);
	if (host != NULL)
		ck_assert_int_eq(json_object_set_new(json_object_get(f, "subject"),
					 "host", json_string(host)),
			0);
	ck_assert_int_eq(ls_finding_seed(job->engine, f), 0);
	json_decref(f);
}

LS_TEST(all, findings_are_filtered_and_cut_before_they_are_shown)
{
	struct fake_job *from = story(), *job = fake_job_new(1);
	const struct ls_view_findings unknown = { .after = "F-NONE" };
	json_t *all = ls_finding_all(from->engine), *like, *v = NULL;

	like = json_array_get(all, 0);
	seed_like(job, like, "F-1", "straggler", "open", "critical", "a");
	seed_like(job, like, "F-2", "hang", "cleared", "warning", "b");
	seed_like(job, like, "F-3", "straggler", "reopened", "warning", "b");
	ck_assert_str_eq(FINDINGS(.limit = 9), "F-3 F-2 F-1 / end");
	ck_assert_str_eq(FINDINGS(.limit = 2), "F-3 F-2 / F-2");
	ck_assert_str_eq(FINDINGS(.limit = 2, .after = "F-2"), "F-1 / end");
	ck_assert_str_eq(FINDINGS(.limit = 0), "/ ");
	ck_assert_str_eq(FINDINGS(.status = "open", .limit = 9), "F-3 F-1 / end");
	ck_assert_str_eq(FINDINGS(.status = "cleared", .limit = 9), "F-2 / end");
	ck_assert_str_eq(FINDINGS(.severity = "warning", .limit = 1), "F-3 / F-3");
	ck_assert_str_eq(FINDINGS(.kind = "straggler", .limit = 9), "F-3 F-1 / end");
	ck_assert_str_eq(FINDINGS(.host = "b", .limit = 9), "F-3 F-2 / end");
	ck_assert_str_eq(FINDINGS(.job = "train", .host = "a", .limit = 9),
		"F-1 / end");
	ck_assert_str_eq(FINDINGS(.job = "other", .limit = 9), "/ end");
	ck_assert_int_eq(ls_view_findings(job->engine, &unknown, &v), -LS_EUNKNOWN);
	json_decref(all);
	fake_job_free(from);
	fake_job_free(job);
}

LS_TEST(all, a_slow_job_is_a_finding_of_those_of_its_hosts_that_are_slow)
{
	struct fake_job *from = story(), *job = fake_job_new(1);
	json_t *all = ls_finding_all(from->engine), *f = json_array_get(all, 0);

	ck_assert_int_eq(json_object_set_new(f, "subject",
				 json_pack("{s:s, s:[s, s], s:i}", "scope", "job",
					 "hosts", "h1", "h2", "host_count", 2)),
		0);
	seed_like(job, f, "F-1", "job_slow", "open", "warning", NULL);
	ck_assert_str_eq(FINDINGS(.host = "h2", .limit = 9), "F-1 / end");
	ck_assert_str_eq(FINDINGS(.host = "h3", .limit = 9), "/ end");
	json_decref(all);
	fake_job_free(from);
	fake_job_free(job);
}

LS_TEST(all, a_slice_is_a_finding_of_each_of_its_hosts)
{
	struct fake_job *job = fake_job_sliced(16, 2);

	for (size_t i = 0; i < 8; i++)
		job->workers[i].slow = 1.2;
	fake_job_run(job, 150);
	ck_assert_str_ne(FINDINGS(.host = "h0", .limit = 9), "/ end");
	ck_assert_str_ne(FINDINGS(.host = "h7", .limit = 9), "/ end");
	ck_assert_str_eq(FINDINGS(.host = "h8", .limit = 9), "/ end");
	fake_job_free(job);
}

LS_TEST(all, what_is_not_there_is_unknown)
{
	struct fake_job *job = fake_job_new(2);
	const struct ls_view_hosts page = { .limit = 1 };
	json_t *v = NULL;

	ck_assert_int_eq(ls_view_job(job->engine, "x", 0, &v), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_view_hosts(job->engine, "x", &page, 0, &v), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_view_steps(job->engine, "x", NULL, &everything, &v),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_view_steps(job->engine, "train", "x", &everything, &v),
		-LS_EUNKNOWN);
	ck_assert_int_eq(
		ls_view_grid(job->engine, "x", LS_GRID_OWN, &everything, 1, 1, &v),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_view_finding(job->engine, "F-0000", &v), -LS_EUNKNOWN);
	ck_assert_ptr_null(v);
	fake_job_free(job);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/detect/scales.h"
#include "collector/engine/engine.h"
#include "collector/engine/finding/view.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_US (24ll * 3600 * 1000000)

LS_CASE(who);

LS_TEST_LOOP(who, healthy_jobs_have_no_finding, 0, 8)
{
	struct fake_job *job = fake_job_new(8);

	job->random += (uint64_t)_i * 7919;
	job->tails = _i % 2 != 0;
	job->clockless = _i % 4 >= 2;
	fake_job_run(job, 1500);
	ck_assert_uint_eq(job->event_count, 0);
	ck_assert_uint_eq(fake_job_stats(job).steps_closed, 1500);
	ck_assert_uint_eq(fake_job_stats(job).steps_short, 0);
	fake_job_free(job);
}

/* A slower worker is found, alone, in time: 3 % within 40 steps, 2 % within 80. */
LS_TEST_LOOP(who, slightly_slower_worker_is_found, 0, 40)
{
	static const struct {
		double slow;
		size_t within;
	} rows[] = { { 1.03, 40 }, { 1.02, 80 } };
	struct fake_job *job = fake_job_new(16);

	job->random += (uint64_t)_i * 104729;
	job->tails = _i % 2 != 0;
	job->clockless = _i % 4 >= 2;
	fake_job_run(job, 150);
	ck_assert_uint_eq(job->event_count, 0);
	job->workers[11].slow = rows[_i / 4 % 2].slow;
	fake_job_run(job, rows[_i / 4 % 2].within);
	ck_assert_uint_ge(job->event_count, 1);
	ck_assert_str_eq(job->events[0].event, "opened");
	ck_assert_str_eq(job->events[0].scope, "host");
	ck_assert_str_eq(job->events[0].host, "h11");
	fake_job_run(job, 100);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	fake_job_free(job);
}

LS_TEST_LOOP(who, finding_says_when_it_began_and_how_it_was_seen, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	job->clockless = _i == 1;
	fake_job_run(job, 200);
	job->workers[3].slow = 1.1;
	fake_job_run(job, 60);
	f = fake_job_finding(job, 0);
	ck_assert_double_eq_tol(json_number_value(ls_json_at(f, "onset", "step")), 200,
		5);
	ck_assert_str_eq(ls_json_text_at(f, "data_quality", "estimate"),
		_i == 1 ? "wait" : "lateness");
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "straggler");
	ck_assert_str_eq(ls_json_text_at(f, "severity", NULL), "warning");
	ck_assert_double_eq_tol(json_number_value(ls_json_at(f, "impact", "blame_s")),
		0.008, 0.001);
	ck_assert_double_eq_tol(
		json_number_value(ls_json_at(f, "impact", "step_time_s")), 0.108,
		0.002);
	ck_assert_double_eq_tol(
		json_number_value(ls_json_at(f, "impact", "chips_lost")),
		32 * 0.008 / 0.108, 0.3);
	json_decref(f);
	fake_job_free(job);
}

LS_TEST_LOOP(who, severity_comes_from_cost, 0, 2)
{
	static const struct {
		double slow;
		const char *severity;
	} rows[] = { { 1.06, "warning" }, { 1.3, "critical" } };
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 150);
	job->workers[1].slow = rows[_i].slow;
	fake_job_run(job, 60);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "severity", NULL), rows[_i].severity);
	json_decref(f);
	fake_job_free(job);
}

/* Nobody is left: what was found is over; who comes back begins anew. */
LS_TEST_LOOP(who, findings_end_with_their_job, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 150);
	job->workers[3].slow = 1.2;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	for (size_t i = 0; i < 8; i++) {
		f = fake_job_finding(job, 0);
		ck_assert_str_eq(ls_json_text_at(f, "status", NULL), "open");
		json_decref(f);
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_ENDED,
			job->now_us);
	}
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "status", NULL), "cleared");
	ck_assert_str_eq(ls_json_text_at(f, "cleared_reason", NULL), "job_ended");
	json_decref(f);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	if (_i == 0)
		job->workers[3].slow = 1;
	fake_job_declare(job);
	fake_job_run(job, 200);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "status", NULL),
		_i == 0 ? "cleared" : "reopened");
	ck_assert_int_eq(json_object_get(f, "cleared_reason") != NULL, _i == 0);
	json_decref(f);
	fake_job_free(job);
}

LS_TEST_LOOP(who, two_culprits_are_both_found, 0, 2)
{
	struct fake_job *job = fake_job_new(12);

	job->clockless = _i == 1;
	fake_job_run(job, 150);
	job->workers[2].slow = job->workers[7].slow = 1.08;
	fake_job_run(job, 120);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	for (size_t i = 0; i < job->event_count; i++)
		ck_assert(strcmp(job->events[i].host, "h2") == 0 ||
			strcmp(job->events[i].host, "h7") == 0);
	fake_job_free(job);
}

/* Also of a job that goes on at a checkpoint. */
LS_TEST_LOOP(who, worker_slow_from_the_first_step_is_found, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	job->step = (uint64_t)_i * 10000;
	job->workers[5].slow = 1.4;
	fake_job_run(job, 200);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h5");
	ck_assert_str_eq(ls_json_text_at(f, "onset", "type"), "from_the_start");
	json_decref(f);
	fake_job_free(job);
}

/* Less than what the baselines of few workers show: peers show it. */
LS_TEST(who, worker_a_little_slow_from_the_first_step_is_found)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	ls_engine_patience(job->engine, LS_SCALES_LEAST_S);
	job->workers[5].slow = 1.1;
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h5");
	ck_assert_str_eq(ls_json_text_at(f, "onset", "type"), "from_the_start");
	json_decref(f);
	fake_job_free(job);
}

/* While the job is young, what lasts for seconds is a finding without patience alone. */
LS_TEST_LOOP(who, patience_delays_findings_of_a_young_job, 0, 2)
{
	struct fake_job *job = fake_job_new(8);

	ls_engine_patience(job->engine, _i * 60.0);
	fake_job_run(job, 2000);
	job->workers[5].slow = 1.05;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), _i == 0);
	fake_job_run(job, 1500);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_str_eq(job->events[0].host, "h5");
	fake_job_free(job);
}

/* Work that wanders on all workers names nobody. */
LS_TEST(who, wandering_work_blames_nobody)
{
	struct fake_job *job = fake_job_new(16);
	double wander[16] = { 0 };

	ls_engine_patience(job->engine, LS_SCALES_PATIENCE_S);
	for (size_t k = 0; k < 3000; k++) {
		for (size_t i = 0; i < job->count; i++) {
			wander[i] = 0.99 * wander[i] + 0.007 * fake_job_normal(job);
			job->workers[i].slow = 1 + wander[i];
		}
		fake_job_run(job, 1);
	}
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

LS_TEST_LOOP(who, structure_blames_nobody, 0, 3)
{
	/* one in so many has more to do */
	static const size_t workers[] = { 8, 16, 64 }, every[] = { 2, 4, 16 };
	struct fake_job *job = fake_job_new(workers[_i]);

	for (size_t i = 0; i < job->count; i += every[_i])
		job->workers[i].slow = 1.5;
	fake_job_run(job, 600);
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

LS_TEST(who, roles_are_not_compared_with_each_other)
{
	struct fake_job *job = fake_job_on(NULL, "train", 8);
	struct ls_worker_info info = { .job = "train", .world = 8 };

	for (size_t i = 0; i < 8; i++) {
		(void)snprintf(info.host, sizeof(info.host), "h%zu", i);
		(void)snprintf(info.role, sizeof(info.role), "stage%zu", i % 2);
		info.rank = (int32_t)i;
		ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
					 &job->workers[i].handle),
			0);
	}
	for (size_t i = 0; i < 2; i++)
		job->workers[2 * i].slow =
			1.02; /* only beside their own role does it show */
	for (size_t i = 1; i < 8; i += 2)
		job->workers[i].slow = 1.5;
	fake_job_run(job, 300);
	ck_assert_uint_eq(job->event_count, 0);
	job->workers[3].slow = 1.6;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_str_eq(job->events[0].host, "h3");
	fake_job_free(job);
}

LS_TEST(who, ranks_that_share_a_host_are_told_apart)
{
	struct fake_job *job = fake_job_on(NULL, "train", 8);
	struct ls_worker_info info = { .job = "train", .world = 8 };
	json_t *f;

	for (size_t i = 0; i < 8; i++) {
		(void)snprintf(info.host, sizeof(info.host), "h%zu", i / 2);
		info.rank = (int32_t)i;
		ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
					 &job->workers[i].handle),
			0);
	}
	fake_job_run(job, 150);
	job->workers[5].slow = 1.1;
	fake_job_run(job, 60);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "rank");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h2");
	ck_assert_int_eq(json_integer_value(ls_json_at(f, "subject", "rank")), 5);
	ck_assert_int_eq(json_integer_value(ls_json_at(f, "job", "hosts")), 4);
	ck_assert(json_is_null(ls_json_at(f, "job", "chips"))); /* nobody told */
	ck_assert(json_is_null(ls_json_at(f, "impact", "chips_lost")));
	json_decref(f);
	fake_job_free(job);
}

LS_TEST(who, slow_communication_is_the_jobs)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 150);
	job->comm_s = 0.04;
	fake_job_run(job, 120);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	/* no pair, no slices, no counter of a link: nothing tells it from a slow chip */
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "job_slow");
	ck_assert_str_eq(ls_json_text_at(f, "impact", "method"),
		"collective_excess_v1");
	ck_assert_str_eq(ls_json_cause(f), "inside_program");
	ck_assert(json_is_false(ls_json_at(f, "localised", NULL)));
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "job");
	ck_assert_ptr_null(ls_json_at(f, "subject", "host"));
	json_decref(f);
	fake_job_free(job);
}

/* Each step waits for another worker, the collective takes as long as before. */
LS_TEST(who, waits_for_each_other_are_no_slow_collective)
{
	struct fake_job *job = fake_job_new(16);
	json_t *f;

	job->clockless = true;
	fake_job_run(job, 200);
	job->noise = 0.1;
	fake_job_run(job, 200);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "job_slow");
	ck_assert_str_eq(ls_json_cause(f), "unexplained");
	json_decref(f);
	fake_job_free(job);
}

static void
shift(struct ls_record *r, int64_t earlier_ns)
{
	r->t_begin_ns -= earlier_ns;
	r->barrier[0].enter_ns -= earlier_ns;
	r->barrier[0].exit_ns -= earlier_ns;
}

/* Each makes steps at its own pace under the same numbers, and marks waits that are not
 * for the others. */
LS_TEST_LOOP(who, workers_that_do_not_wait_for_each_other_blame_nobody, 0, 2)
{
	struct fake_job *job = fake_job_new(4);
	json_t *view = NULL;

	for (size_t i = 0; i < job->count; i++)
		ls_engine_clock(job->engine, job->workers[i].handle, 0.0001);
	job->workers[2].slow = 1.2;
	for (uint64_t step = 0; step < 300; step++) {
		fake_job_make(job);
		for (size_t i = 0; _i == 0 && i < job->count; i++)
			shift(&job->workers[i].record, (int64_t)(i * step) * 10000000);
		fake_job_report(job);
	}
	ck_assert_uint_eq(fake_job_told(job, "opened"), _i == 0 ? 0 : 1);
	ck_assert_int_eq(ls_view_job(job->engine, "train", job->now_us, &view), 0);
	ck_assert_int_eq(json_integer_value(
				 ls_json_at(view, "data_quality", "apart_steps")) > 250,
		_i == 0);
	json_decref(view);
	fake_job_free(job);
}

/* A worker of a slice is found as any other; all of a slice are one finding; and its
 * collective. */
LS_TEST_LOOP(who, slices_are_told_from_their_workers, 0, 6)
{
	struct fake_job *job = fake_job_sliced(16, _i % 2 == 0 ? 2 : 4);

	switch (_i / 2) {
	case 0:
		job->workers[13].slow = 1.1;
		fake_job_run(job, 60);
		fake_job_only(job, "straggler", "host", _i % 2 == 0 ? "s1" : "s3");
		break;
	case 1:
		for (size_t i = 0; i < 16; i++)
			job->workers[i].slow =
				i * (_i % 2 == 0 ? 2u : 4u) / 16 == 1 ? 1.1 : 1;
		fake_job_run(job, 100);
		fake_job_only(job, "straggler", "slice", "s1");
		break;
	default:
		job->slice_comm_s[1] = 0.03;
		fake_job_run(job, 60);
		fake_job_only(job, "job_slow", "slice", "s1");
		break;
	}
	for (size_t i = 0; i < 16; i++)
		job->workers[i].slow = 1;
	job->slice_comm_s[1] = 0;
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

/* What joins the slices took longer: nobody's slice. */
LS_TEST(who, slow_joins_of_slices_are_the_jobs)
{
	struct fake_job *job = fake_job_sliced(16, 2);

	job->comm_s = 0.03;
	fake_job_run(job, 60);
	fake_job_only(job, "link", "job", "");
	fake_job_free(job);
}

/* Who waits to send as much longer as collectives take is one end of the link; two of
 * them are none. */
LS_TEST_LOOP(who, one_link_is_named_by_who_waits_to_send, 0, 3)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	for (size_t i = 0; i < 8; i++)
		job->workers[i].send_s = 0.005;
	fake_job_run(job, 150);
	job->comm_s = 0.03;
	job->workers[5].send_s = 0.03;
	if (_i == 1)
		job->workers[2].send_s = 0.03;
	if (_i == 2)
		job->workers[5].send_s = 0.01;
	fake_job_run(job, 60);
	fake_job_only(job, _i == 0 ? "link" : "job_slow", _i == 0 ? "link" : "job", "");
	f = fake_job_finding(job, 0);
	if (_i == 0) {
		ck_assert_str_eq(json_string_value(json_array_get(
					 ls_json_at(f, "subject", "hosts"), 0)),
			"h5");
		ck_assert_str_eq(json_string_value(json_array_get(
					 ls_json_at(f, "subject", "hosts"), 1)),
			"h6");
		ck_assert_int_eq(json_integer_value(json_array_get(
					 ls_json_at(f, "subject", "ranks"), 1)),
			6);
	}
	json_decref(f);
	job->comm_s = 0;
	job->workers[5].send_s = job->workers[2].send_s = 0.005;
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

/* What all share blames nobody, and is told once it lasts; its phase says why. */
LS_TEST_LOOP(who, a_job_slower_as_a_whole_is_told, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 300);
	if (_i == 0)
		job->own_s *= 1.2;
	for (size_t i = 0; i < 8; i++)
		job->workers[i].input_s = _i == 1 ? 0.02 : 0;
	fake_job_run(job, 150);
	fake_job_only(job, "job_slow", "job", "");
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(json_string_value(ls_json_at(
				 json_array_get(json_object_get(f, "hypotheses"), 0),
				 "cause", NULL)),
		_i == 0 ? "slow_compute" : "input_stall");
	ck_assert_double_eq_tol(json_number_value(ls_json_at(f, "onset", "step")), 300,
		16);
	ck_assert_double_eq_tol(json_number_value(ls_json_at(f, "impact", "blame_s")),
		_i == 0 ? 0.016 : 0.02, 0.001);
	json_decref(f);
	job->own_s = 0.08;
	for (size_t i = 0; i < 8; i++)
		job->workers[i].input_s = 0;
	fake_job_run(job, 150);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

/* All at once, or more with each step: onset, title and evidence say which. */
LS_TEST_LOOP(who, a_slow_job_has_a_shape, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 300);
	for (int step = 0; step < 300; step++) {
		if (_i == 1)
			job->own_s += 0.0001;
		else if (step == 0)
			job->own_s += 0.016;
		fake_job_run(job, 1);
	}
	fake_job_only(job, "job_slow", "job", "");
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "onset", "type"),
		_i == 0 ? "step_change" : "drift");
	ck_assert_double_eq_tol(ls_json_evidence(f, "step_excess_s"),
		_i == 0 ? 0.016 : 0.0265, _i == 0 ? 0.001 : 0.0035);
	ck_assert_int_eq(isnan(ls_json_evidence(f, "step_slope_s")) != 0, _i == 0);
	ck_assert_ptr_nonnull(strstr(ls_json_text_at(f, "title", NULL),
		_i == 0 ? "all steps take 1" : "steps take longer and longer, now 2"));
	json_decref(f);
	fake_job_free(job);
}

/* Who is found to make all steps longer takes the place of "all steps are longer". */
LS_TEST(who, a_culprit_takes_the_place_of_a_slow_job)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f, *culprit;

	fake_job_run(job, 300);
	job->own_s *= 1.2;
	fake_job_run(job, 150);
	fake_job_only(job, "job_slow", "job", "");
	job->workers[3].slow = 1.3;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	f = fake_job_finding(job, 0); /* the job's, opened first */
	culprit = fake_job_finding(job, 1);
	ck_assert_str_eq(ls_json_text_at(f, "status", NULL), "cleared");
	ck_assert_str_eq(ls_json_text_at(f, "cleared_reason", NULL), "part_of");
	ck_assert_str_eq(ls_json_text_at(f, "part_of", NULL),
		ls_json_text_at(culprit, "id", NULL));
	json_decref(f);
	json_decref(culprit);
	fake_job_free(job);
}

LS_TEST(who, checkpoints_of_all_are_not_judged)
{
	struct fake_job *job = fake_job_new(8);

	for (size_t i = 0; i < 800; i++) {
		job->checkpoint = fake_job_random(job) < 0.05;
		job->workers[2].once_s = job->checkpoint ? 2 : 0; /* it writes most */
		fake_job_run(job, 1);
	}
	ck_assert_uint_eq(job->event_count, 0);
	ck_assert_uint_eq(fake_job_stats(job).steps_closed, 800);
	fake_job_free(job);
}

LS_TEST(who, stalls_at_random_are_found)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 100);
	for (size_t i = 0; i < 300; i++) {
		job->workers[6].once_s = fake_job_random(job) < 0.07 ? 0.2 : 0;
		fake_job_run(job, 1);
	}
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h6");
	ck_assert_str_eq(ls_json_text_at(f, "persistence", "duty"), "intermittent");
	json_decref(f);
	fake_job_free(job);
}

/* Worker 6 stands still for 0.1 s in some of the steps. Returns for how long in all. */
static double
stall(struct fake_job *job, size_t steps, double rate)
{
	double sum = 0;

	for (size_t i = 0; i < steps; i++) {
		job->workers[6].once_s = fake_job_random(job) < rate ? 0.1 : 0;
		sum += job->workers[6].once_s;
		fake_job_run(job, 1);
	}
	return sum;
}

/* Stalls that are many are found by their mean first; when fewer come, the finding goes
 * on, is told as what it is, and adds up. */
LS_TEST(who, stalls_that_become_rarer_stay_one_finding)
{
	struct fake_job *job = fake_job_new(8);
	double sum, share;
	json_t *f;

	fake_job_run(job, 100);
	sum = stall(job, 300, 0.25);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "persistence", "duty"), "intermittent");
	json_decref(f);
	sum += stall(job, 500, 0.04);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 0);
	f = fake_job_finding(job, 0);
	ck_assert_int_gt(json_integer_value(json_object_get(f, "last_step")), 800);
	share = json_number_value(ls_json_at(f, "impact", "chip_hours_lost_total")) *
		3600 / (double)job->count / job->chips / sum;
	ck_assert(fabs(share - 1) < 0.06);
	json_decref(f);
	fake_job_free(job);
}

/* The newest steps of what comes and goes tell less than all of them: what a step costs
 * is taken from all. */
LS_TEST_LOOP(who, what_comes_and_goes_is_averaged_over_all_of_it, 0, 4)
{
	struct fake_job *job = fake_job_new(8);
	double sum;
	json_t *f;

	job->random += (uint64_t)_i;
	fake_job_run(job, 100);
	sum = stall(job, 1500, 0.2);
	f = fake_job_finding(job, 0);
	ck_assert(fabs(json_number_value(ls_json_at(f, "impact", "blame_s")) /
				  (sum / 1500) -
			  1) < 0.08);
	json_decref(f);
	fake_job_free(job);
}

LS_TEST(who, badly_known_clocks_are_not_used)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	for (size_t i = 0; i < job->count; i++)
		ls_engine_clock(job->engine, job->workers[i].handle, 0.02);
	fake_job_run(job, 150);
	job->workers[3].slow = 1.1;
	fake_job_run(job, 60);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "data_quality", "estimate"), "wait");
	json_decref(f);
	fake_job_free(job);
}

LS_TEST(who, cause_is_named_by_what_grew)
{
	struct fake_job *job = fake_job_new(8);
	const json_t *why;
	json_t *f;

	for (size_t i = 0; i < job->count; i++)
		job->workers[i].input_s = 0.001;
	fake_job_run(job, 150);
	job->workers[3].input_s = 0.02;
	fake_job_run(job, 60);
	f = fake_job_finding(job, 0);
	why = json_array_get(json_object_get(f, "hypotheses"), 0);
	ck_assert_str_eq(ls_json_text_at(why, "cause", NULL), "input_stall");
	ck_assert_uint_gt(json_array_size(json_object_get(why, "because")), 0);
	json_decref(f);
	fake_job_free(job);
}

static void
slow_for(struct fake_job *job, size_t worker, size_t steps, size_t healthy)
{
	job->workers[worker].slow = 1.2;
	fake_job_run(job, steps);
	job->workers[worker].slow = 1;
	fake_job_run(job, healthy);
}

LS_CASE(life);

/* Two episodes: the onset is that of the first, their costs add up. */
static void
check_episodes(const struct fake_job *job)
{
	json_t *f = fake_job_finding(job, 0);
	const json_t *all = json_object_get(f, "episodes"), *one;
	double cost = 0;
	size_t i;

	ck_assert_uint_eq(json_array_size(all), 2);
	json_array_foreach(all, i, one) cost +=
		json_number_value(json_object_get(one, "chip_hours_lost"));
	ck_assert_double_eq_tol(cost, fake_job_cost(job, 0), 1e-4);
	one = json_array_get(all, 0);
	ck_assert_int_eq(json_integer_value(ls_json_at(f, "onset", "step")),
		json_integer_value(json_object_get(one, "from_step")));
	ck_assert_int_lt(json_integer_value(json_object_get(one, "to_step")),
		json_integer_value(
			json_object_get(json_array_get(all, 1), "from_step")));
	json_decref(f);
}

LS_TEST(life, finding_is_reopened_within_a_day_and_new_after_it)
{
	struct fake_job *job = fake_job_new(8);
	double cost;

	fake_job_run(job, 150);
	slow_for(job, 3, 60, 300);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 0);
	cost = fake_job_cost(job, 0);
	ck_assert_double_gt(cost, 0);
	slow_for(job, 3, 60, 300);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 1);
	ck_assert_uint_eq(fake_job_stats(job).findings_total, 1);
	ck_assert_double_gt(fake_job_cost(job, 0), cost); /* earlier cost is kept */
	check_episodes(job);
	job->now_us += DAY_US;
	slow_for(job, 3, 60, 300);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	ck_assert_uint_eq(fake_job_stats(job).findings_total, 2);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 3);
	ck_assert_str_ne(job->events[0].id, job->events[job->event_count - 1].id);
	fake_job_free(job);
}

/* Also where the work of all becomes less meanwhile, so that steps grow by less. */
LS_TEST_LOOP(life, cost_is_what_the_steps_lost, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	double chips = 32, step; /* a step's cost, chip-hours */

	fake_job_run(job, 200);
	job->workers[3].slow = 1.2;
	if (_i == 1)
		job->own_s *= 0.92;
	fake_job_run(job, 300);
	step = 0.2 * job->own_s * chips / 3600;
	ck_assert_double_gt(fake_job_cost(job, 0), 240 * step); /* told each 50 steps */
	ck_assert_double_lt(fake_job_cost(job, 0), 300 * step);
	fake_job_free(job);
}

LS_TEST(life, updates_are_few)
{
	struct fake_job *job = fake_job_new(8);

	fake_job_run(job, 150);
	job->workers[3].slow = 1.2;
	fake_job_run(job, 600); /* a minute: an update each 64 steps or 5 s */
	ck_assert_uint_ge(fake_job_told(job, "updated"), 8);
	ck_assert_uint_le(fake_job_told(job, "updated"), 24);
	fake_job_free(job);
}

LS_TEST(life, engine_needs_no_sink)
{
	struct fake_job *job = fake_job_on(ls_engine_new(NULL), "train", 8);
	json_t *f;

	fake_job_declare(job);
	fake_job_run(job, 150);
	slow_for(job, 3, 60, 0);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h3");
	json_decref(f);
	ls_engine_free(NULL);
	fake_job_free(job);
}

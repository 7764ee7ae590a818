/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/view.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <stdio.h>

/*
 * Which of two hosts came first is claimed beyond three times the combined uncertainty
 * of their clocks: sqrt(2) of one for two that are known alike.
 */
#define SURE (3 * 1.4142136)

/* Of the newest step: who came last, or "". */
static const char *
last_of(const struct fake_job *job, char host[16])
{
	struct ls_view_range range = { 0, UINT64_MAX, 1 };
	json_t *steps;
	const json_t *last;

	ck_assert_int_eq(ls_view_steps(job->engine, job->name, NULL, &range, &steps),
		0);
	last = json_object_get(json_array_get(steps, 0), "last");
	host[0] = '\0';
	if (!json_is_null(last))
		(void)snprintf(host, 16, "%s",
			json_string_value(json_object_get(last, "host")));
	json_decref(steps);
	return host;
}

static void
clocks(struct fake_job *job, double err_s)
{
	for (size_t i = 0; i < job->count; i++)
		ls_engine_clock(job->engine, job->workers[i].handle, err_s);
}

LS_CASE(order);

/* One comes 20 ms after all others; the clocks are known to a little more, or less,
 * than that allows. */
LS_TEST_LOOP(order, last_is_who_is_surely_last, 0, 2)
{
	struct fake_job *job = fake_job_new(6);
	double err_s = (_i == 0 ? 0.9 : 1.1) * 0.02 / SURE;
	char host[16];

	job->noise = 0;
	clocks(job, err_s);
	fake_job_run(job, 10);
	job->workers[4].once_s = 0.02;
	fake_job_run(job, 1);
	ck_assert_str_eq(last_of(job, host), _i == 0 ? "h4" : "");
	fake_job_run(job, 1); /* all at once */
	ck_assert_str_eq(last_of(job, host), "");
	fake_job_free(job);
}

/* A clock that is known better does not make up for one that is not. */
LS_TEST_LOOP(order, the_worse_of_two_clocks_counts, 0, 2)
{
	struct fake_job *job = fake_job_new(2);
	char host[16];

	job->noise = 0;
	ls_engine_clock(job->engine, job->workers[_i].handle, 0.01);
	ls_engine_clock(job->engine, job->workers[1 - _i].handle, 0);
	job->workers[0].once_s = 0.025;
	fake_job_run(job, 1);
	ck_assert_str_eq(last_of(job, host), "");
	job->workers[0].once_s = 0.035;
	fake_job_run(job, 1);
	ck_assert_str_eq(last_of(job, host), "h0");
	fake_job_free(job);
}

/* What a finding claims by arrival is beyond it; where that cannot be, waits find the
 * same worker. */
LS_TEST_LOOP(order, lateness_is_claimed_only_with_good_clocks, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	clocks(job, (_i == 0 ? 0.9 : 1.1) * 0.01 * 0.1 / SURE); /* 1 % of the step */
	fake_job_run(job, 150);
	job->workers[5].slow = 1.05;
	fake_job_run(job, 80);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(f, "subject"), "host")),
		"h5");
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(f, "data_quality"), "estimate")),
		_i == 0 ? "lateness" : "wait");
	json_decref(f);
	fake_job_free(job);
}

/* A clock that gets worse later and is off by as much: who is last is told by the end of the barrier, as it is by clocks. */
LS_TEST(order, a_clock_that_gets_worse_does_not_say_who_is_last)
{
	struct fake_job *job = fake_job_new(8);
	char host[16];

	job->noise = 0;
	clocks(job, 0.00001);
	fake_job_run(job, 150);
	ls_engine_clock(job->engine, job->workers[2].handle, 1);
	job->workers[2].off_s = 0.9;
	fake_job_run(job, 1);
	ck_assert_str_eq(last_of(job, host), "");
	for (size_t i = 2; i < 8; i += 4) { /* it, and another one */
		job->workers[i].once_s = 0.02;
		fake_job_run(job, 1);
		ck_assert_str_eq(last_of(job, host), i == 2 ? "h2" : "h6");
	}
	fake_job_free(job);
}

/* The share of steps in which somebody was last is not told of steps of which it is not
 * known. */
LS_TEST(order, slowest_is_null_where_nobody_knows)
{
	struct fake_job *job = fake_job_new(4);
	json_t *hosts;

	clocks(job, 1);
	fake_job_run(job, 50);
	hosts = fake_job_hosts(job);
	for (size_t i = 0; i < 4; i++)
		ck_assert(json_is_null(
			json_object_get(json_array_get(hosts, i), "slowest_ratio")));
	json_decref(hosts);
	fake_job_free(job);
}

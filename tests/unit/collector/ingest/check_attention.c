/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/attention.h"

#include <string.h>
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#define MAX 8

static struct ls_attention_want wants[MAX];

/* Whose turn it is; SIZE_MAX: not wanted. */
static size_t
place(const char *host, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(wants[i].host, host) == 0)
			return i;
	}
	return SIZE_MAX;
}

LS_CASE(attention);

LS_TEST(attention, nothing_is_wanted_where_all_is_well)
{
	struct fake_job *job = fake_job_new(6);

	fake_job_run(job, 200);
	ck_assert_uint_eq(ls_attention(job->engine, wants, MAX), 0);
	fake_job_free(job);
}

LS_TEST(attention, a_suspect_comes_with_two_peers_before_a_finding_is_made)
{
	struct fake_job *job = fake_job_new(6);
	struct ls_engine_stats st;
	size_t i, count = 0;

	fake_job_run(job, 150);
	job->workers[4].slow = 1.2;
	for (i = 0; i < 100 && count == 0; i++) {
		fake_job_run(job, 1);
		count = ls_attention(job->engine, wants, MAX);
	}
	ls_engine_stats(job->engine, &st);
	ck_assert_uint_eq(st.findings_open, 0);
	ck_assert_uint_eq(count, 1 + LS_ZOOM_PEERS);
	ck_assert_uint_eq(place("h4", count), 0);
	ck_assert_str_eq(wants[0].cause, "suspect");
	ck_assert_str_eq(wants[1].cause, "peer of h4");
	ck_assert_str_eq(wants[1].host, "h5");
	ck_assert_str_eq(wants[2].host, "h0");
	ck_assert_str_eq(wants[2].job, wants[0].job);
	/* No more than there is room for. */
	ck_assert_uint_eq(ls_attention(job->engine, wants, 2), 2);
	ck_assert_uint_eq(ls_attention(job->engine, wants, 0), 0);
	fake_job_free(job);
}

LS_TEST(attention, the_suspect_nearest_to_a_finding_comes_first)
{
	struct fake_job *job = fake_job_new(6);
	size_t count = 0;

	fake_job_run(job, 150);
	job->workers[4].slow = 1.2;
	fake_job_run(job, 2);
	job->workers[1].slow = 1.03;
	for (size_t i = 0; i < 100 && place("h1", count) == SIZE_MAX; i++) {
		fake_job_run(job, 1);
		count = ls_attention(job->engine, wants, MAX);
	}
	ck_assert_uint_lt(place("h1", count), MAX);
	ck_assert_str_eq(wants[place("h1", count)].cause, "suspect");
	ck_assert_uint_eq(place("h4", count), 0);
	fake_job_free(job);
}

LS_TEST(attention, the_host_of_a_finding_comes_first_and_names_it)
{
	struct fake_job *job = fake_job_new(6);
	size_t count;

	fake_job_run(job, 150);
	job->workers[4].slow = 1.2;
	fake_job_run(job, 100);
	count = ls_attention(job->engine, wants, MAX);
	ck_assert_uint_ge(count, 1 + LS_ZOOM_PEERS);
	ck_assert_str_eq(wants[0].host, "h4");
	ck_assert_msg(strncmp(wants[0].cause, "finding F-", 10) == 0, "%s",
		wants[0].cause);
	for (size_t i = 1; i < count; i++)
		ck_assert_uint_eq(place(wants[i].host, count), i); /* each host once */
	fake_job_free(job);
}

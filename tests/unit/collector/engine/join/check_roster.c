/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/view.h"
#include "collector/engine/engine.h"
#include "collector/engine/params.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

LS_CASE(attempts);

LS_TEST(attempts, new_attempt_begins_anew)
{
	struct fake_job *job = fake_job_new(8);
	uint32_t old;

	fake_job_run(job, 150);
	job->workers[3].slow = 1.1;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 1);
	old = job->workers[0].handle;
	job->attempt = 1;
	fake_job_declare(job);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 1);
	ck_assert_str_eq(job->events[job->event_count - 1].event, "updated");
	ck_assert_int_eq(ls_engine_record(job->engine, old, &job->workers[0].record,
				 job->now_us),
		-LS_EUNKNOWN);
	job->step = 0; /* steps of another attempt are others */
	job->workers[3].slow = 1;
	fake_job_run(job, 150);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 0);
	job->workers[3].slow = 1.1;
	fake_job_run(job, 60);
	ck_assert_str_eq(job->events[job->event_count - 1].event, "reopened");
	job->attempt = 0;
	ck_assert_int_eq(
		ls_engine_worker(job->engine,
			&(struct ls_worker_info){ .job = "train", .host = "h0" },
			job->now_us, &old),
		-LS_ESTALE);
	fake_job_free(job);
}

LS_TEST(attempts, attempt_that_is_not_told_follows_from_returns)
{
	struct fake_job *job = fake_job_on(NULL, "train", 2);
	uint32_t first;

	job->attempt = -1;
	fake_job_declare(job);
	first = job->workers[0].handle;
	fake_job_run(job, 5);
	fake_job_declare(job); /* idempotent while they live */
	ck_assert_uint_eq(job->workers[0].handle, first);
	ls_engine_end(job->engine, job->workers[0].handle, LS_END_CRASHED, job->now_us);
	ls_engine_end(job->engine, job->workers[1].handle, LS_END_CRASHED, job->now_us);
	job->step = 0;
	fake_job_declare(job);
	ck_assert_uint_ne(job->workers[0].handle, first);
	fake_job_run(job, 5); /* step 0 again: it is attempt 1 */
	ck_assert_uint_eq(job->closed, 10);
	fake_job_free(job);
}

/* A ring of another user on the same host, and that user after the first ended. */
LS_TEST(attempts, rank_of_two_users_of_a_host_is_two_workers)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_worker_info info = {
		.job = "train", .host = "h2", .rank = 2, .owner = 1001
	};
	uint32_t first = 99, second = 99, again;
	json_int_t uids = 0;
	json_t *v;

	fake_job_run(job, 5);
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &first), 0);
	ck_assert_uint_eq(first, job->workers[2].handle); /* whose user was not known */
	info.owner = 1002;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &second), 0);
	ck_assert_uint_ne(second, first);
	ck_assert_uint_eq(fake_job_stats(job).duplicate_ranks, 1);
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &again), 0);
	ck_assert_uint_eq(again, second);
	ck_assert_int_eq(ls_view_hosts(job->engine, job->name,
				 &(struct ls_view_hosts){ .host = "h2", .limit = 10 },
				 job->now_us, &v),
		0);
	ck_assert_uint_eq(json_array_size(json_object_get(v, "items")), 2);
	for (size_t i = 0; i < 2; i++)
		uids += json_integer_value(json_object_get(
			json_array_get(json_object_get(v, "items"), i), "uid"));
	ck_assert_int_eq(uids, 1000 + 1001);
	json_decref(v);
	ls_engine_end(job->engine, second, 1, job->now_us);
	info.owner = 1003;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &again), 0);
	ck_assert_uint_eq(again, second); /* its pod was started anew */
	fake_job_free(job);
}

LS_TEST(attempts, attempt_far_away_needs_most_workers)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_worker_info info = { .job = "train", .host = "h0" };
	uint32_t handle;

	fake_job_run(job, 5);
	info.attempt = INT32_MAX;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &handle),
		-LS_EBUSY);
	for (size_t i = 1; i < 4; i++)
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_ENDED,
			job->now_us);
	job->now_us += LS_ENGINE_US(LS_LATE_S);
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &handle), 0);
	/* announced, and never heard of: a record of the former attempt shows so */
	memcpy(info.host, "h1", sizeof("h1"));
	info.attempt = 0;
	ck_assert_int_eq(ls_engine_announce(job->engine, &info, job->now_us, &handle),
		-LS_ESTALE);
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us, &handle), 0);
	fake_job_free(job);
}

LS_TEST(attempts, workers_of_a_job_that_shrinks_have_left)
{
	struct fake_job *job = fake_job_on(NULL, "train", 4);
	json_t *hosts, *w, *v;
	size_t i, left = 0;

	fake_job_declare(job);
	fake_job_run(job, 150);
	for (i = 0; i < 4; i++)
		ls_engine_end(job->engine, job->workers[i].handle, 1, job->now_us);
	job->count = 2; /* the same attempt goes on */
	fake_job_declare(job);
	fake_job_make(job);
	for (i = 0; i < 2; i++) { /* from a checkpoint */
		job->workers[i].record.step = 100;
		ck_assert_int_eq(ls_engine_record(job->engine, job->workers[i].handle,
					 &job->workers[i].record, job->now_us),
			0);
	}
	fake_job_run(job, 100);
	ck_assert_int_eq(ls_view_job(job->engine, job->name, job->now_us, &v), 0);
	ck_assert(json_is_true(ls_json_at(v, "judged", "all")));
	ck_assert_int_eq(json_integer_value(ls_json_at(v, "judged", "expected")), 2);
	ck_assert_uint_eq(
		json_array_size(ls_json_at(v, "data_quality", "contradictions")), 0);
	json_decref(v);
	ck_assert_uint_eq(fake_job_stats(job).lies[LS_LIE_BACKWARDS], 0);
	job->count = 4;
	hosts = fake_job_hosts(job);
	json_array_foreach(hosts, i, w) left +=
		strcmp(ls_json_text_at(w, "state", NULL), "left") == 0;
	ck_assert_uint_eq(left, 2);
	json_decref(hosts);
	fake_job_free(job);
}

LS_TEST(attempts, impossible_workers_are_refused)
{
	struct fake_job *job = fake_job_new(1);
	struct ls_worker_info info = { .job = "train", .host = "h0" };
	uint32_t handle;

	info.rank = LS_WORKERS_MAX;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, 0, &handle), -LS_ERANGE);
	info.rank = -1;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, 0, &handle), -LS_ERANGE);
	info.rank = 0;
	info.chips = -1;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, 0, &handle), -LS_ERANGE);
	info.chips = 0;
	info.world = LS_WORKERS_MAX + 1;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, 0, &handle), -LS_ERANGE);
	info.world = 0;
	memcpy(info.role, "a\nb", 4);
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, 0, &handle), -LS_ERANGE);
	info.role[0] = '\0';
	info.host[0] = '\0';
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, 0, &handle), -LS_ERANGE);
	fake_job_free(job);
}

LS_CASE(limits);

LS_TEST(limits, quiet_jobs_make_room)
{
	struct fake_job *job = fake_job_on(NULL, "train", 1);
	struct ls_worker_info info = { .host = "h0" };
	uint32_t handle, first = LS_NO_WORKER;

	for (int i = 0; i <= LS_JOBS_MAX; i++) {
		(void)snprintf(info.job, sizeof(info.job), "job%d", i);
		ck_assert_int_eq(ls_engine_worker(job->engine, &info, FAKE_START_US + i,
					 &handle),
			i < LS_JOBS_MAX ? 0 : -LS_ELIMIT);
		if (i == 0)
			first = handle;
	}
	ls_engine_advance(job->engine, FAKE_START_US + 60000000); /* all silent */
	ck_assert_int_eq(
		ls_engine_worker(job->engine, &info, FAKE_START_US + 60000000, &handle),
		0);
	ck_assert_uint_ne(handle, first);
	ck_assert_int_eq(ls_engine_manual(job->engine, "job0", true), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_engine_manual(job->engine, "job1", false), 0);
	ck_assert_int_eq(ls_engine_manual(job->engine, info.job, false), 0);
	fake_job_free(job);
}

LS_TEST(limits, places_of_old_attempts_are_used_again)
{
	struct fake_job *job = fake_job_on(NULL, "train", 1000);

	for (job->attempt = 0; job->attempt * 1000 <= LS_WORKERS_MAX + 1000;
		job->attempt++)
		fake_job_declare(job);
	ck_assert_uint_gt(fake_job_stats(job).workers, LS_WORKERS_MAX);
	fake_job_run(job, 3);
	ck_assert_uint_eq(job->closed, 3);
	fake_job_free(job);
}

/* Worker i of a crowd of 16 jobs, each on one host. */
static int
crowd(struct fake_job *job, int i,
	int (*declare)(struct ls_engine *e, const struct ls_worker_info *info,
		int64_t now_us, uint32_t *ret_worker),
	uint32_t *ret_handle)
{
	struct ls_worker_info info = { .rank = i % LS_HOST_WORKERS_MAX };

	(void)snprintf(info.job, sizeof(info.job), "job%d", i / LS_HOST_WORKERS_MAX);
	(void)snprintf(info.host, sizeof(info.host), "c%d", i / LS_HOST_WORKERS_MAX);
	return declare(job->engine, &info, FAKE_START_US, ret_handle);
}

LS_TEST(limits, too_many_workers_are_refused_until_a_job_is_quiet)
{
	struct fake_job *job = fake_job_on(NULL, "train", 1);
	uint32_t handle, first = LS_NO_WORKER;

	for (int i = 0; i <= LS_WORKERS_MAX; i++) {
		ck_assert_int_eq(crowd(job, i, ls_engine_worker, &handle),
			i < LS_WORKERS_MAX ? 0 : -LS_ELIMIT);
		first = i == 0 ? handle : first;
	}
	ck_assert(ls_engine_has_worker(job->engine, first));
	ls_engine_advance(job->engine, FAKE_START_US + 60000000);
	ck_assert(!ls_engine_has_worker(job->engine, first));
	ck_assert_int_eq(crowd(job, LS_WORKERS_MAX, ls_engine_worker, &handle), 0);
	fake_job_free(job);
}

LS_TEST(limits, host_has_a_maximum_of_workers)
{
	struct fake_job *job = fake_job_on(NULL, "train", 1);
	struct ls_worker_info info = { .host = "h0", .job = "wide" };
	uint32_t handle;

	for (; info.rank <= LS_HOST_WORKERS_MAX; info.rank++)
		ck_assert_int_eq(
			ls_engine_worker(job->engine, &info, FAKE_START_US, &handle),
			info.rank < LS_HOST_WORKERS_MAX ? 0 : -LS_ELIMIT);
	memcpy(info.host, "h1", sizeof("h1"));
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, FAKE_START_US, &handle),
		0);
	memcpy(info.host, "h0",
		sizeof("h0")); /* another attempt: its places are free */
	info.attempt = 1;
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, FAKE_START_US, &handle),
		0);
	fake_job_free(job);
}

LS_TEST(limits, announced_workers_take_no_place_from_those_that_report)
{
	struct fake_job *job = fake_job_on(NULL, "train", 1);
	uint32_t handle;
	int i;

	fake_job_declare(job);
	/* A worker with a record does not count as one that was only announced. */
	fake_job_run(job, 1);
	for (i = 0; i <= LS_WORKERS_UNHEARD_MAX; i++)
		ck_assert_int_eq(crowd(job, i, ls_engine_announce, &handle),
			i < LS_WORKERS_UNHEARD_MAX ? 0 : -LS_ELIMIT);
	ck_assert_int_eq(crowd(job, i, ls_engine_worker, &handle), 0);
	job->workers[0].record.step = 0;
	ck_assert_int_eq(ls_engine_record(job->engine, handle, &job->workers[0].record,
				 job->now_us),
		0);
	ck_assert_int_eq(crowd(job, i + 1, ls_engine_announce, &handle), -LS_ELIMIT);
	ls_engine_advance(job->engine, FAKE_START_US + 60000000); /* all are silent */
	ck_assert_int_eq(crowd(job, i + 1, ls_engine_announce, &handle), 0);
	ck_assert(ls_engine_has_worker(job->engine, job->workers[0].handle));
	fake_job_free(job);
}

LS_TEST(limits, hosts_without_workers_make_room)
{
	struct fake_job *job = fake_job_new(2);
	uint16_t metric = LS_METRIC_HOST_CPU_BUSY;
	double value = 1;
	char host[32];

	for (int i = 0; i < LS_AGENTS_MAX + 10; i++) {
		(void)snprintf(host, sizeof(host), "x%d", i);
		ck_assert_int_eq(ls_engine_counters(job->engine, host, LS_NO_WORKER,
					 FAKE_START_US + i, 1, &metric, &value),
			0);
	}
	ck_assert_int_eq(ls_engine_counters(job->engine, "x0", LS_NO_WORKER,
				 FAKE_START_US, 1, &metric, &value),
		0); /* it was forgotten */
	ck_assert_int_eq(ls_engine_counters(job->engine, "x16380", LS_NO_WORKER,
				 FAKE_START_US, 1, &metric, &value),
		-LS_ESTALE);
	fake_job_free(job);
}

LS_TEST(limits, hosts_in_use_are_refused_beyond_the_limit)
{
	struct fake_job *job = fake_job_on(NULL, "train", LS_AGENTS_MAX);
	uint16_t metric = LS_METRIC_HOST_CPU_BUSY;
	double value = 1;

	fake_job_declare(job);
	ck_assert_int_eq(ls_engine_counters(job->engine, "one-more", LS_NO_WORKER,
				 FAKE_START_US, 1, &metric, &value),
		-LS_ELIMIT);
	fake_job_free(job);
}

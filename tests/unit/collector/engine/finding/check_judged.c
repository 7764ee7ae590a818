/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/finding/judged.h"
#include "collector/engine/finding/view.h"

#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <stdio.h>
#include <string.h>

#define SECOND_US 1000000ll

/* Is all judged so many seconds from now? Else the reason holds `why`. */
static void
judged(struct fake_job *job, int seconds, bool all, const char *why)
{
	int64_t now_us = job->now_us + seconds * SECOND_US;
	json_t *v = NULL;
	const char *text;

	ls_engine_advance(job->engine, now_us);
	ck_assert_int_eq(ls_view_job(job->engine, job->name, now_us, &v), 0);
	ck_assert_int_eq(json_is_true(ls_json_at(v, "judged", "all")), all);
	text = json_string_value(ls_json_at(v, "judged", "why"));
	if (why == NULL)
		ck_assert_ptr_null(text);
	else
		ck_assert_msg(text != NULL && strstr(text, why) != NULL,
			"%s: not in: %s", why, text == NULL ? "null" : text);
	json_decref(v);
}

LS_CASE(judged);

LS_TEST(judged, all_workers_in_the_newest_steps_are_judged)
{
	struct fake_job *job = fake_job_new(4);

	judged(job, 0, false, "no step is complete");
	fake_job_run(job, 5);
	judged(job, 0, false, "learning what is usual: 5 of 64 steps");
	fake_job_run(job, 80);
	judged(job, 1, true, NULL);
	judged(job, 59, true, NULL);
	judged(job, 62, false, "no step for 62 s");
	fake_job_free(job);
}

/* A host without an agent, or with one that reports to another collector. */
LS_TEST(judged, workers_that_never_reported_are_told_with_the_fix)
{
	struct fake_job *job = fake_job_on(NULL, "train", 2);
	struct ls_worker_info info = { .job = "train", .chips = 4, .world = 4 };

	for (size_t i = 0; i < job->count; i++) {
		(void)snprintf(info.host, sizeof(info.host), "h%zu", i);
		info.rank = (int32_t)i;
		ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
					 &job->workers[i].handle),
			0);
	}
	fake_job_run(job, 80);
	judged(job, 0, false,
		"2 of 4 workers are judged; the others never reported to this collector: each host needs a lockstep-agent with its address");
	fake_job_free(job);
}

LS_TEST(judged, missing_and_ended_workers_are_not_judged)
{
	struct fake_job *job = fake_job_new(4);

	fake_job_run(job, 80);
	ls_engine_end(job->engine, job->workers[3].handle, LS_END_ENDED, job->now_us);
	judged(job, 0, false, "3 of 4 workers are judged");
	for (size_t i = 0; i < 3; i++)
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_ENDED,
			job->now_us);
	judged(job, 3600, true, NULL); /* a job that ended keeps its last verdict */
	fake_job_free(job);
}

LS_TEST(judged, checkpoint_may_take_long)
{
	struct fake_job *job = fake_job_new(4);
	int64_t since_us;

	fake_job_run(job, 80);
	since_us = job->now_us;
	job->now_us += 90 * SECOND_US;
	for (size_t i = 0; i < 4; i++)
		fake_job_live(job, i, LS_PHASE_CHECKPOINT, since_us);
	judged(job, 0, true, NULL);
	fake_job_free(job);
}

/* Judged are those that report; nobody knows whether these are all. */
LS_TEST(judged, size_of_the_job_that_nobody_reports_is_said)
{
	for (size_t n = 1; n <= 4; n += 3) {
		struct fake_job *job = fake_job_on(NULL, "train", n);

		job->no_world = true;
		fake_job_declare(job);
		fake_job_run(job, 80);
		judged(job, 1, true,
			n == 1 ? NULL
			       : "4 workers reporting, the size of the job is not known");
		judged(job, 62, false, "no step for 62 s");
		fake_job_free(job);
	}
}

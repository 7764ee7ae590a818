/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/engine/params.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_US 1000000ll

enum { WORKERS = 8, LEARN = 100 };

static struct fake_job *
learned(void)
{
	struct fake_job *job = fake_job_new(WORKERS);

	fake_job_run(job, LEARN);
	ck_assert_uint_eq(job->event_count, 0);
	return job;
}

/* All in the barrier since now, but for one (SIZE_MAX: nobody is missing). */
static void
all_wait(struct fake_job *job, size_t but, enum ls_phase phase, int64_t since_us)
{
	for (size_t i = 0; i < job->count; i++)
		fake_job_live(job, i, i == but ? phase : LS_PHASE_SYNC_WAIT, since_us);
}

/* Time goes by, agents report what they did before. */
static void
stand_still(struct fake_job *job, int seconds, size_t but, enum ls_phase phase)
{
	int64_t since_us = job->now_us;

	for (int s = 0; s < seconds; s++) {
		job->now_us += SECOND_US;
		all_wait(job, but, phase, since_us);
		ls_engine_advance(job->engine, job->now_us);
	}
}

LS_CASE(seen_while_it_lasts);

/* An engine that is given the observation, and no live slots, says the same. */
LS_TEST(seen_while_it_lasts, a_stored_observation_gives_the_same_finding)
{
	struct fake_job *live = learned(), *stored = learned();
	char *a, *b;

	stand_still(live, 12, 5, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(live->hangs, 1);
	ck_assert_int_eq(ls_engine_hang(stored->engine, &live->hang), 0);
	a = fake_job_findings(live);
	b = fake_job_findings(stored);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(stored->hangs, 0);
	free(a);
	free(b);
	live->hang.since_us = live->hang.t_us + 1;
	ck_assert_int_eq(ls_engine_hang(stored->engine, &live->hang), -LS_ERANGE);
	live->hang.attempt = 7;
	ck_assert_int_eq(ls_engine_hang(stored->engine, &live->hang), -LS_EUNKNOWN);
	fake_job_free(live);
	fake_job_free(stored);
}

/* Of steps that nobody told, or with a reason that nobody gave. */
LS_TEST(seen_while_it_lasts, a_stored_observation_of_nothing_is_passed_over)
{
	struct fake_job *job = fake_job_new(WORKERS);
	const int32_t rank = 5;
	struct ls_engine_hang seen = { .job = job->name,
		.step = 3,
		.waiting = 7,
		.why = LS_HANG_ABSENT,
		.ranks = &rank,
		.count = 1 };

	fake_job_run(job, 3);
	seen.t_us = job->now_us;
	seen.since_us = job->now_us - 12 * SECOND_US;
	ck_assert_int_eq(ls_engine_hang(job->engine, &seen), 0);
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_run(job, LEARN);
	seen.t_us = job->now_us;
	seen.why = LS_HANG_WHY_COUNT;
	ck_assert_int_eq(ls_engine_hang(job->engine, &seen), -LS_ERANGE);
	seen.why = LS_HANG_GONE;
	seen.count = LS_CLOSE_MISSING_MAX + 1;
	ck_assert_int_eq(ls_engine_hang(job->engine, &seen), -LS_ERANGE);
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

/* Replay takes what was seen in the moment of a closing before the closing, so it must
 * not be seen after it. */
LS_TEST(seen_while_it_lasts, nothing_is_seen_in_the_moment_of_a_closing)
{
	struct fake_job *job = learned();
	int64_t since_us = job->now_us;
	uint64_t step = job->step;

	fake_job_make(job);
	for (size_t i = 0; i < WORKERS; i++)
		if (i != 5)
			ck_assert_int_eq(ls_engine_record(job->engine,
						 job->workers[i].handle,
						 &job->workers[i].record, since_us),
				0);
	job->now_us = since_us + 12 * SECOND_US; /* and nobody looked meanwhile */
	job->step = step;
	all_wait(job, 5, LS_PHASE_COMPUTE, since_us);
	ls_engine_advance(job->engine, job->now_us); /* closes it: overdue */
	ck_assert_uint_eq(job->hangs, 0);
	job->now_us += 200000;
	ls_engine_advance(job->engine, job->now_us);
	ck_assert_uint_eq(job->hangs, 1);
	fake_job_free(job);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/engine/params.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

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

LS_CASE(seen_in_a_closed_step);

LS_TEST(seen_in_a_closed_step, one_step_far_too_long_is_a_hang_of_who_was_late)
{
	struct fake_job *job = learned();
	json_t *f;

	job->workers[3].once_s = 5;
	fake_job_run(job, 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "hang");
	ck_assert_str_eq(ls_json_text_at(f, "severity", NULL), "critical");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h3");
	ck_assert_str_eq(ls_json_cause(f), "not_entered");
	ck_assert_int_eq(json_integer_value(
				 json_object_get(json_object_get(f, "onset"), "step")),
		LEARN);
	ck_assert_double_eq_tol(json_number_value(json_object_get(
					json_object_get(f, "impact"), "blame_s")),
		5, 0.02);
	ck_assert_double_eq_tol(fake_job_cost(job, 0), 5.0 * WORKERS * 4 / 3600, 0.001);
	json_decref(f);
	fake_job_run(job, LS_DETECT_CLEAR_STEPS - 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 0);
	fake_job_run(job, 2);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	fake_job_free(job);
}

/* Who is slow for long may also stand still: both are told, each with what it is. */
LS_TEST(seen_in_a_closed_step, a_straggler_that_hangs_is_two_findings)
{
	struct fake_job *job = learned();
	json_t *f;

	job->workers[3].slow = 1.1;
	fake_job_run(job, 100);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	job->workers[3].once_s = 5;
	fake_job_run(job, 1);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	f = fake_job_finding(job, 1);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "hang");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h3");
	ck_assert_int_eq(json_integer_value(ls_json_at(f, "onset", "step")),
		LEARN + 100);
	json_decref(f);
	fake_job_run(job, 40);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "straggler");
	ck_assert_str_eq(ls_json_text_at(f, "status", NULL), "open");
	ck_assert(json_number_value(ls_json_at(f, "impact", "blame_s")) < 0.02);
	json_decref(f);
	fake_job_free(job);
}

LS_TEST(seen_in_a_closed_step, a_collective_far_too_long_is_a_hang_of_the_job)
{
	struct fake_job *job = learned();
	json_t *f;

	job->comm_s = 4;
	fake_job_run(job, 1);
	job->comm_s = 0;
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "hang");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "job");
	ck_assert_str_eq(ls_json_cause(f), "collective_hang");
	json_decref(f);
	fake_job_run(job, 100);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

LS_TEST_LOOP(seen_in_a_closed_step, what_is_no_hang, 0, 3)
{
	struct fake_job *job = learned();

	switch (_i) {
	case 0: /* all pause together */
		for (size_t i = 0; i < WORKERS; i++)
			job->workers[i].once_s = 5;
		break;
	case 1: /* a checkpoint of all */
		job->checkpoint = true;
		job->own_s = 3;
		break;
	case 2: /* long, but not two seconds */
		job->workers[3].once_s = 1.5;
		break;
	default:
		break;
	}
	fake_job_run(job, 1);
	job->own_s = 0.08;
	fake_job_run(job, 200);
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

LS_CASE(seen_while_it_lasts);

LS_TEST(seen_while_it_lasts, a_hang_is_seen_while_it_lasts)
{
	struct fake_job *job = learned();
	json_t *f;

	stand_still(job, 10, 5, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(job->event_count, 0);
	stand_still(job, 2, 5, LS_PHASE_COMPUTE); /* a mark: it begins anew */
	ck_assert_uint_eq(job->event_count, 0);
	stand_still(job, 12, 5, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(job->hangs, 1);
	ck_assert_uint_eq(job->hang.count, 1);
	ck_assert_int_eq(job->hang.ranks[0], 5);
	ck_assert_uint_eq(job->hang.waiting, WORKERS - 1);
	ck_assert_int_eq(job->hang.why, LS_HANG_ABSENT);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "hang");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h5");
	ck_assert_str_eq(ls_json_cause(f), "not_entered");
	json_decref(f);
	fake_job_free(job);
}

/* However often it is told, a standstill costs what it lasted. */
LS_TEST(seen_while_it_lasts, a_long_hang_is_counted_once)
{
	struct fake_job *job = learned();

	stand_still(job, 45, 5, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(job->hangs, 4); /* after 11, 21, 31, 41 s */
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "updated"), 3);
	ck_assert_double_eq_tol(fake_job_cost(job, 0), 41.0 * WORKERS * 4 / 3600, 0.01);
	job->now_us -= 45 * SECOND_US; /* its record begins before the standstill */
	job->workers[5].once_s = 45;
	fake_job_run(job, 1);
	ck_assert_double_eq_tol(fake_job_cost(job, 0), 45.0 * WORKERS * 4 / 3600, 0.01);
	fake_job_run(job, 40);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

LS_TEST_LOOP(seen_while_it_lasts, how_the_missing_one_ended_is_told, 0, 6)
{
	static const struct {
		enum ls_hang_why why;
		enum ls_end_how how;
		const char *cause, *advice;
	} rows[] = { { LS_HANG_SILENT, LS_END_UNKNOWN, "host_silent", "host is up" },
		{ LS_HANG_GONE, LS_END_CRASHED, "process_gone", "why the process" },
		{ LS_HANG_GONE, LS_END_ENDED, "process_ended", "number of batches" },
		{ LS_HANG_GONE, LS_END_FAILED, "process_failed", "log" },
		{ LS_HANG_GONE, LS_END_MEMORY, "process_out_of_memory", "limit" },
		{ LS_HANG_GONE, LS_END_UNKNOWN, "process_gone", "why the process" } };
	struct fake_job *job = learned();
	int64_t since_us = job->now_us;
	json_t *f;

	all_wait(job, 2, LS_PHASE_COMPUTE, since_us);
	if (_i > 0)
		ls_engine_end(job->engine, job->workers[2].handle, rows[_i].how,
			job->now_us);
	for (int s = 0; s < 12; s++) {
		job->now_us += SECOND_US;
		for (size_t i = 0; i < WORKERS; i++)
			if (i != 2)
				fake_job_live(job, i, LS_PHASE_SYNC_WAIT, since_us);
		ls_engine_advance(job->engine, job->now_us);
	}
	ck_assert_uint_eq(job->hangs, 1);
	ck_assert_int_eq(job->hang.why, rows[_i].why);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h2");
	ck_assert_str_eq(ls_json_cause(f), rows[_i].cause);
	ck_assert_ptr_nonnull(
		strstr(ls_json_text_at(json_array_get(json_object_get(f, "actions"), 0),
			       "title", NULL),
			rows[_i].advice));
	json_decref(f);
	fake_job_free(job);
}

/* Steps of 5 s: a rank that is killed while all others wait is found within 15 s, one that
 * only is not there after ten steps. */
LS_TEST_LOOP(seen_while_it_lasts, killed_rank_of_long_steps_is_found_soon, 0, 2)
{
	struct fake_job *job = fake_job_new(WORKERS);

	job->own_s = 5;
	fake_job_run(job, LEARN);
	if (_i == 1)
		ls_engine_end(job->engine, job->workers[5].handle, LS_END_CRASHED,
			job->now_us);
	stand_still(job, 12, 5, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(job->hangs, (unsigned)_i);
	stand_still(job, 60, 5, LS_PHASE_COMPUTE);
	ck_assert_uint_ge(job->hangs, 1);
	fake_job_free(job);
}

LS_TEST(seen_while_it_lasts, all_in_the_collective_is_the_job)
{
	struct fake_job *job = learned();
	json_t *f;

	stand_still(job, 12, SIZE_MAX, LS_PHASE_COMPUTE);
	ck_assert_uint_eq(job->hangs, 1);
	ck_assert_uint_eq(job->hang.count, 0);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "job");
	ck_assert_str_eq(ls_json_cause(f), "collective_hang");
	json_decref(f);
	fake_job_free(job);
}

/* Compilations may take minutes, and between two steps a job may rest. */
LS_TEST_LOOP(seen_while_it_lasts, silence_with_a_reason_is_no_hang, 0, 2)
{
	struct fake_job *job = learned();

	stand_still(job, 600, 1, _i == 0 ? LS_PHASE_COMPILE : LS_PHASE_EVAL);
	ck_assert_uint_eq(job->hangs, 0);
	stand_still(job, 920, 1, _i == 0 ? LS_PHASE_COMPILE : LS_PHASE_EVAL);
	ck_assert_uint_ge(job->hangs, 1); /* but not for ever */
	fake_job_free(job);
	job = learned();
	for (int s = 0; s < 100; s++) {
		int64_t since_us = FAKE_START_US;

		job->now_us += SECOND_US;
		for (size_t i = 0; i < WORKERS; i++)
			fake_job_live(job, i, LS_PHASE_COUNT, since_us);
		ls_engine_advance(job->engine, job->now_us);
	}
	ck_assert_uint_eq(job->hangs, 0);
	fake_job_free(job);
}

/* Nothing is heard of anybody: the network, the agents or we. Nobody is blamed for
 * that. */
LS_TEST(seen_while_it_lasts, silence_of_all_is_no_hang)
{
	struct fake_job *job = learned();

	all_wait(job, 5, LS_PHASE_COMPUTE, job->now_us);
	for (int s = 0; s < 100; s++) {
		job->now_us += SECOND_US;
		ls_engine_advance(job->engine, job->now_us);
	}
	ck_assert_uint_eq(job->hangs, 0);
	fake_job_free(job);
}

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

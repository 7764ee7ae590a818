/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/answer/finding_json.h"
#include "collector/answer/view.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

LS_CASE(steps);

LS_TEST(steps, first_step_waits_for_the_whole_world)
{
	struct fake_job *job = fake_job_on(NULL, "train", 2);
	struct ls_worker_info info = { .job = "train", .host = "h0", .world = 2 };

	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
				 &job->workers[0].handle),
		0);
	job->workers[1].mute = true;
	fake_job_make(job);
	fake_job_report(job);
	ck_assert_uint_eq(job->closed, 0);
	fake_job_declare(job);
	ck_assert_int_eq(ls_engine_record(job->engine, job->workers[1].handle,
				 &job->workers[1].record, job->now_us),
		0);
	ck_assert_uint_eq(job->closed, 1);
	ck_assert_uint_eq(job->used_last, 2);
	fake_job_free(job);
}

/* One worker says a number that is not due: nobody else is late by that. */
static void
say_far(uint64_t ahead)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_record far;

	fake_job_run(job, 100);
	far = job->workers[1].record;
	far.step += ahead;
	ck_assert_int_eq(ls_engine_record(job->engine, job->workers[1].handle, &far,
				 job->now_us),
		0);
	job->now_us += 60000000; /* a pause of all */
	ls_engine_advance(job->engine, job->now_us);
	ck_assert_uint_eq(job->closed, 100);
	fake_job_run(job, 50);
	ck_assert_uint_eq(job->closed, 150);
	ck_assert_uint_eq(job->used_last, 4);
	ck_assert_uint_eq(fake_job_stats(job).late, 1); /* that one */
	/* and its next is waited for */
	far.step = job->workers[1].record.step + ahead;
	ck_assert_int_eq(ls_engine_record(job->engine, job->workers[1].handle, &far,
				 job->now_us),
		0);
	fake_job_make(job);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(job->closed, 150);
		ck_assert_int_eq(
			ls_engine_record(job->engine, job->workers[(i + 2) % 4].handle,
				&job->workers[(i + 2) % 4].record, job->now_us),
			0);
		ls_engine_advance(job->engine, job->now_us);
	}
	ck_assert_uint_eq(job->closed, 151);
	fake_job_free(job);
}

LS_TEST(steps, a_number_that_is_not_due_closes_nothing)
{
	say_far(60);
	say_far(5000);
	say_far(1ull << 50);
}

/* More of them than rows may be open: nobody's step closes short for them. */
LS_TEST(steps, a_flood_of_numbers_that_are_not_due_closes_nothing)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_record far;

	fake_job_run(job, 100);
	fake_job_make(job);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(ls_engine_record(job->engine, job->workers[i].handle,
					 &job->workers[i].record, job->now_us),
			0);
		far = job->workers[1].record;
		far.step += 1000000;
		for (; i == 1 && far.step <= 1000000 + 100 + 2 * LS_OPEN_STEPS_MAX;
			far.step++)
			ls_ignore(ls_engine_record(job->engine, job->workers[1].handle,
				&far, job->now_us));
	}
	ck_assert_uint_eq(job->closed, 101);
	ck_assert_uint_eq(job->used_last, 4);
	fake_job_run(job, 50);
	ck_assert_uint_eq(job->closed, 151);
	ck_assert_uint_eq(job->used_last, 4);
	fake_job_free(job);
}

/* A rank is on another host, and nobody told that it ended on the first: it is there. */
LS_TEST(steps, a_rank_that_moved_is_not_missing)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_worker_info info = { .rank = 3, .world = 4 };

	fake_job_run(job, 20);
	(void)snprintf(info.job, sizeof(info.job), "%s", job->name);
	(void)snprintf(info.host, sizeof(info.host), "h9");
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us,
				 &job->workers[3].handle),
		0);
	fake_job_run(job, 20);
	ck_assert_uint_eq(job->used_last, 4);
	ck_assert_uint_eq(job->missing_last, 0);
	fake_job_free(job);
}

/* A program before the job has its environment, and ends well before the other processes are there: that is not the end of the job. */
LS_TEST(steps, a_first_process_that_ends_ends_no_job)
{
	struct fake_job *job = fake_job_new(8);
	struct ls_worker_info info = { .rank = 0, .world = 8, .attempt = 1 };
	json_t *f;
	uint32_t handle;

	fake_job_run(job, 150);
	job->workers[3].slow = 1.2;
	fake_job_run(job, 50);
	for (size_t i = 0; i < job->count; i++)
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_CRASHED,
			job->now_us);
	(void)snprintf(info.job, sizeof(info.job), "%s", job->name);
	(void)snprintf(info.host, sizeof(info.host), "h0");
	ck_assert_int_eq(ls_engine_worker(job->engine, &info, job->now_us + 1, &handle),
		0);
	ls_engine_end(job->engine, handle, LS_END_ENDED, job->now_us + 2);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "open");
	json_decref(f);
	fake_job_free(job);
}

/* Two halves count apart from here on: their steps close in the end. */
LS_TEST(steps, halves_that_count_apart_do_not_stop_the_job)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_record r;

	fake_job_run(job, 100);
	for (uint64_t i = 1; i < 100; i++) {
		for (size_t w = 0; w < 4; w++) {
			r = job->workers[w].record;
			r.step += (w < 2 ? 500 : 1500) + i;
			ls_ignore(ls_engine_record(job->engine, job->workers[w].handle,
				&r, job->now_us));
		}
		job->now_us += 3000000;
		ls_engine_advance(job->engine, job->now_us);
	}
	ck_assert_uint_gt(job->closed, 101);
	fake_job_free(job);
}

/* Half of the workers say nothing any more, and the others go on, by numbers that are not due: that is believed in the end. */
LS_TEST(steps, numbers_that_nobody_else_says_are_believed_in_the_end)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_record r;

	fake_job_run(job, 100);
	for (unsigned i = 1; job->closed == 100 && i < 200; i++) {
		for (size_t w = 0; w < 2; w++) {
			r = job->workers[w].record;
			r.step += i * 10000;
			ck_assert_int_eq(ls_engine_record(job->engine,
						 job->workers[w].handle, &r,
						 job->now_us),
				0);
		}
		job->now_us += 3000000;
		ls_engine_advance(job->engine, job->now_us);
	}
	ck_assert_uint_eq(job->closed, 101);
	ck_assert_uint_eq(job->used_last, 2);
	fake_job_free(job);
}

/* The processes of a job begin again one after the other, under the same number of the attempt, and count anew: the last one that does shows that
 * nobody goes on. */
LS_TEST(steps, processes_that_begin_again_one_by_one_are_another_run)
{
	struct fake_job *job = fake_job_new(4);

	fake_job_run(job, 100);
	job->step = 0;
	fake_job_make(job);
	for (size_t i = 0; i < job->count; i++) {
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_CRASHED,
			job->now_us - 50000);
		fake_job_declare(job);
		ck_assert_int_eq(ls_engine_record(job->engine, job->workers[i].handle,
					 &job->workers[i].record, job->now_us),
			i + 1 < job->count ? -LS_ESTALE : 0);
	}
	fake_job_run(job, 50);
	ck_assert_uint_ge(job->closed, 149); /* the first step of the run lacks three */
	ck_assert_uint_eq(job->used_last, 4);
	ck_assert_uint_eq(fake_job_stats(job).late, 3);
	fake_job_free(job);
}

/* The end of a process is told when the next one has its place: others wait for that one. */
LS_TEST(steps, the_end_of_a_process_is_not_that_of_the_next)
{
	struct fake_job *job = fake_job_new(4);
	size_t late = 0;

	fake_job_run(job, 100);
	ls_engine_end(job->engine, job->workers[3].handle, LS_END_CRASHED, job->now_us);
	for (int n = 0; n < 20; n++) {
		fake_job_make(job);
		for (size_t i = 0; i < job->count; i++)
			late += ls_engine_record(job->engine, job->workers[i].handle,
					&job->workers[i].record, job->now_us) != 0;
	}
	ck_assert_uint_le(late, 2); /* those that had begun by then */
	ck_assert_uint_eq(job->used_last, 4);
	fake_job_free(job);
}

LS_TEST(steps, impossible_records_and_handles_are_refused)
{
	struct fake_job *job = fake_job_new(2);

	fake_job_make(job);
	ck_assert_int_eq(
		ls_engine_record(job->engine, 77, &job->workers[0].record, job->now_us),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_engine_record(job->engine, LS_NO_WORKER,
				 &job->workers[0].record, job->now_us),
		-LS_EUNKNOWN);
	job->workers[0].record.barrier[0].exit_ns = 1;
	ck_assert_int_eq(ls_engine_record(job->engine, job->workers[0].handle,
				 &job->workers[0].record, job->now_us),
		-LS_ERANGE);
	ck_assert_uint_eq(fake_job_stats(job).rejected, 3);
	ls_engine_gap(job->engine, 77, 5);
	ls_engine_gap(job->engine, job->workers[0].handle, 5);
	ck_assert_uint_eq(fake_job_stats(job).gaps, 10);
	ls_engine_end(job->engine, 77, LS_END_ENDED, job->now_us);
	ls_engine_live(job->engine, 77, &(struct ls_ring_live){ 0 }, 0, job->now_us);
	ls_engine_clock(job->engine, 77, 1);
	fake_job_free(job);
}

LS_TEST(steps, too_many_open_steps_of_few_drop_the_newest)
{
	struct fake_job *job = fake_job_new(2);

	fake_job_run(job, 1);
	job->workers[1].mute = true;
	for (size_t i = 0; i <= LS_OPEN_STEPS_MAX; i++) {
		fake_job_make(job);
		ck_assert_int_eq(ls_engine_record(job->engine, job->workers[0].handle,
					 &job->workers[0].record, FAKE_START_US),
			0);
	}
	ck_assert_uint_eq(job->closed, 1);
	ck_assert_uint_eq(fake_job_stats(job).late, 1);
	fake_job_free(job);
}

LS_TEST(steps, too_many_open_steps_of_most_close_the_oldest)
{
	struct fake_job *job = fake_job_new(3);

	job->workers[2].mute = true;
	for (size_t i = 0; i <= LS_OPEN_STEPS_MAX; i++) {
		fake_job_make(job);
		for (size_t w = 0; w < 2; w++)
			ck_assert_int_eq(
				ls_engine_record(job->engine, job->workers[w].handle,
					&job->workers[w].record, FAKE_START_US),
				0);
	}
	ck_assert_uint_ge(job->closed, 1);
	ck_assert_uint_eq(job->used_last, 2);
	fake_job_free(job);
}

/* One worker says all steps to come: those of the others are judged as if it had not. */
LS_TEST(steps, who_is_ahead_of_the_others_closes_none_of_their_steps)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_record ahead;

	fake_job_run(job, 100);
	ahead = job->workers[1].record;
	for (size_t i = 0; i < 2 * LS_OPEN_STEPS_MAX; i++) {
		ahead.step++;
		ls_ignore(ls_engine_record(job->engine, job->workers[1].handle, &ahead,
			job->now_us));
	}
	job->workers[1].mute = true;
	for (size_t i = 0; i < 100; i++) {
		fake_job_run(job, 1);
		ck_assert_uint_ge(job->used_last, 4);
	}
	ck_assert_uint_eq(job->closed, 200);
	fake_job_free(job);
}

LS_TEST(steps, counters_not_taken_are_counted)
{
	struct fake_job *job = fake_job_new(2);
	uint16_t metric = LS_METRIC_JOB_CPU;
	double value = 1;
	uint32_t w = job->workers[0].handle;

	ck_assert_int_eq(
		ls_engine_counters(job->engine, "h0", w, 1000, 1, &metric, &value), 0);
	ck_assert_int_eq(
		ls_engine_counters(job->engine, "h0", w, 1000, 1, &metric, &value),
		-LS_ESTALE);
	ck_assert_int_eq(
		ls_engine_counters(job->engine, "h0", 55, 1000, 1, &metric, &value),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_engine_counters(job->engine, "", LS_NO_WORKER, 1, 1,
				 &metric, &value),
		-LS_ERANGE);
	ck_assert_uint_eq(fake_job_stats(job).counters, 1);
	ck_assert_uint_eq(fake_job_stats(job).counters_ignored, 3);
	fake_job_free(job);
}

LS_TEST(steps, manual_jobs_close_only_when_told)
{
	struct fake_job *job = fake_job_new(2);

	ck_assert_int_eq(ls_engine_manual(job->engine, "nobody", true), -LS_EUNKNOWN);
	ck_assert_int_eq(ls_engine_manual(job->engine, "train", true), 0);
	fake_job_run(job, 3);
	ls_engine_advance(job->engine, job->now_us + 60000000);
	ck_assert_uint_eq(job->closed, 0);
	ck_assert_int_eq(ls_engine_close_step(job->engine, "nobody", 0, 1, job->now_us),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_engine_close_step(job->engine, "train", 1, 1, job->now_us),
		-LS_EUNKNOWN);
	ck_assert_int_eq(ls_engine_close_step(job->engine, "train", 0, 1, job->now_us),
		0);
	ck_assert_uint_eq(job->closed, 2);
	ck_assert_int_eq(ls_engine_manual(job->engine, "train", false), 0);
	ls_engine_advance(job->engine, job->now_us);
	ck_assert_uint_eq(job->closed, 3);
	fake_job_free(job);
}

static char *
findings_of_story(bool shuffle)
{
	struct fake_job *job = fake_job_new(8);
	char *text;

	/* the same numbers whatever the order: the noise is drawn before */
	job->noise = 0.02;
	for (size_t i = 0; i < 400; i++) {
		job->workers[5].slow = i > 150 && i < 300 ? 1.2 : 1;
		fake_job_make(job);
		/* another source of numbers, so that the job is the same */
		if (shuffle) {
			uint64_t kept = job->random;

			job->shuffle = true;
			job->random = kept ^ 0x5bd1e995;
			fake_job_report(job);
			job->random = kept;
		} else {
			fake_job_report(job);
		}
	}
	text = fake_job_findings(job);
	fake_job_free(job);
	return text;
}

LS_CASE(order);

LS_TEST(order, order_of_arrival_is_nothing)
{
	char *one = findings_of_story(false), *two = findings_of_story(true);

	ck_assert_uint_gt(strlen(one), 1000);
	ck_assert_str_eq(one, two);
	free(one);
	free(two);
}

LS_TEST(order, same_inputs_give_the_same_bytes)
{
	char *one = findings_of_story(false), *two = findings_of_story(false);

	ck_assert_str_eq(one, two);
	free(one);
	free(two);
}

/* --- from storage --------------------------------------------------------- */

static void
slow_for(struct fake_job *job, size_t worker, size_t steps, size_t healthy)
{
	job->workers[worker].slow = 1.2;
	fake_job_run(job, steps);
	job->workers[worker].slow = 1;
	fake_job_run(job, healthy);
}

LS_CASE(storage);

LS_TEST(storage, seed_refuses_what_is_not_a_finding)
{
	struct fake_job *whole = fake_job_new(8), *job = fake_job_new(8);
	json_t *junk = json_pack("{s:i}", "schema_version", 1), *f;

	ck_assert_int_eq(ls_finding_seed(job->engine, junk), -LS_EPARSE);
	json_decref(junk);
	fake_job_run(whole, 150);
	slow_for(whole, 3, 60, 0);
	f = fake_job_finding(whole, 0);
	ck_assert_int_eq(ls_finding_seed(job->engine, f), 0);
	ck_assert_int_eq(ls_finding_seed(job->engine, f), -LS_EDUPLICATE);
	ck_assert_uint_eq(fake_job_stats(job).findings_total, 1);
	json_decref(f);
	fake_job_free(whole);
	fake_job_free(job);
}

LS_TEST(storage, engine_needs_no_sink)
{
	struct fake_job *job = fake_job_on(ls_engine_new(NULL), "train", 8);

	fake_job_declare(job);
	fake_job_run(job, 150);
	slow_for(job, 3, 60, 0);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 1);
	ls_engine_free(NULL);
	fake_job_free(job);
}

/* Closed steps of a job that are still held. */
static size_t
held_steps(const struct ls_engine *e, const char *job)
{
	struct ls_view_range all = { .to = UINT64_MAX, .limit = LS_PAGE_MAX };
	json_t *steps;
	size_t n;

	ck_assert_int_eq(ls_view_steps(e, job, NULL, &all, &steps), 0);
	n = json_array_size(steps);
	json_decref(steps);
	return n;
}

LS_TEST(storage, jobs_share_the_memory_of_steps)
{
	enum { MANY = FAKE_WORKERS_MAX, ALL = LS_CELLS_MAX / MANY }; /* 112 steps */
	struct fake_job *small = fake_job_new(8);
	struct fake_job *old = fake_job_on(small->engine, "old", MANY);
	struct fake_job *young = fake_job_on(small->engine, "young", MANY);
	size_t sum;

	fake_job_run(small, 300);
	fake_job_declare(old);
	fake_job_run(old, ALL - 10);
	ck_assert_uint_eq(fake_job_stats(small).steps_forgotten, 0);
	fake_job_declare(young);
	fake_job_run(young, 40);
	sum = held_steps(small->engine, "old") + held_steps(small->engine, "young");
	ck_assert_uint_le(sum, ALL);
	ck_assert_uint_ge(sum, ALL - 4); /* open and spare ones, and the small job's */
	ck_assert_uint_eq(held_steps(small->engine, "young"), 40);
	ck_assert_uint_ge(held_steps(small->engine, small->name), ALL - 40 - 4);
	ck_assert_uint_ge(fake_job_stats(small).steps_forgotten, 30);
	free(young->workers);
	free(young);
	free(old->workers);
	free(old);
	fake_job_free(small);
}

/* One worker is far ahead: it may not fill the memory with steps of all the others. */
LS_TEST(storage, open_steps_stay_within_the_memory)
{
	enum { MANY = FAKE_WORKERS_MAX, ALL = LS_CELLS_MAX / MANY };
	struct fake_job *job = fake_job_new(MANY);
	struct ls_record ahead;

	fake_job_make(job);
	ahead = job->workers[0].record;
	for (; ahead.step < 2 * ALL; ahead.step++)
		ck_assert_int_eq(ls_engine_record(job->engine, job->workers[0].handle,
					 &ahead, job->now_us),
			0);
	/* closed without the others, of whom nothing was heard, until nobody waits for them any more */
	ck_assert_uint_gt(fake_job_stats(job).steps_short, 0);
	ck_assert_uint_ge(fake_job_stats(job).steps_closed, ALL);
	ck_assert_uint_ge(fake_job_stats(job).steps_forgotten, ALL - 2);
	fake_job_free(job);
}

LS_TEST(storage, findings_cleared_first_make_room)
{
	struct fake_job *whole = fake_job_new(8), *job = fake_job_new(8);
	json_t *copy;
	char text[32];

	fake_job_run(whole, 150);
	slow_for(whole, 3, 60, 300);
	copy = fake_job_finding(whole, 0);
	for (int i = 0; i <= LS_FINDINGS_MAX; i++) {
		(void)snprintf(text, sizeof(text), "F-%d", i);
		ck_assert_int_eq(json_object_set_new(copy, "id", json_string(text)), 0);
		ck_assert_int_eq(ls_finding_seed(job->engine, copy),
			i < LS_FINDINGS_MAX ? 0 : -LS_ELIMIT);
	}
	json_decref(copy);
	fake_job_run(job, 150);
	slow_for(job, 5, 60, 0);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_stats(job).findings_total, LS_FINDINGS_MAX);
	ck_assert_uint_eq(fake_job_stats(job).findings_dropped, 1);
	fake_job_free(whole);
	fake_job_free(job);
}

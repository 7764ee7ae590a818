/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/answer/finding_json.h"
#include "collector/answer/view.h"
#include "collector/engine/params.h"
#include "proto/base/hash.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BACK 33 /* steps read back of 3,000 workers */

/* A job of 64 workers with one that is a tenth slower from step 200 on. */
static struct fake_job *
found(void)
{
	struct fake_job *job = fake_job_new(64);

	fake_job_run(job, 200);
	job->workers[5].slow = 1.1;
	fake_job_run(job, 100);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	return job;
}

static void *
kept_of(const struct fake_job *job, size_t *ret_len)
{
	void *bytes = NULL;

	ck_assert_int_eq(ls_engine_reference(job->engine, job->now_us, &bytes, ret_len),
		0);
	return bytes;
}

/* The same job in the engine of a collector that has started again with its finding and its
 * baselines. It has not read anything back. */
static struct fake_job *
again(const struct fake_job *job, const void *bytes, size_t len)
{
	struct fake_job *next = fake_job_on(NULL, job->name, job->count);
	json_t *f = fake_job_finding(job, 0);

	ck_assert_int_eq(ls_finding_seed(next->engine, f), 0);
	json_decref(f);
	ck_assert_int_eq(
		ls_engine_reference_load(next->engine, bytes, len, job->now_us), 0);
	while (next->step < job->step - BACK) {
		next->workers[5].slow = next->step >= 200 ? 1.1 : 1;
		fake_job_make(next);
	}
	next->workers[5].slow = 1.1;
	fake_job_declare(next);
	return next;
}

/* Blame of a host's worker in the newest step. */
static double
blame(const struct fake_job *job, const char *host)
{
	struct ls_view_range range = { job->step - 1, job->step - 1, 1 };
	json_t *v = NULL;
	double blame_s;

	ck_assert_int_eq(ls_view_steps(job->engine, job->name, host, &range, &v), 0);
	blame_s = json_number_value(json_object_get(json_array_get(v, 0), "blame_s"));
	json_decref(v);
	return blame_s;
}

/* Chip-hours a step of the finding since *step, when they were *cost; sets both to their present values. */
static double
cost_since(const struct fake_job *job, double *cost, double *step)
{
	json_t *f = fake_job_finding(job, 0);
	double was = *cost, from = *step;

	*cost = fake_job_cost(job, 0);
	*step = json_number_value(json_object_get(f, "last_step"));
	json_decref(f);
	return (*cost - was) / (*step - from);
}

LS_CASE(all);

/* 300 steps have the same blame as without a restart, to the bit: steps read back teach nothing twice. */
LS_TEST(all, steps_are_judged_as_without_a_restart)
{
	struct fake_job *job = found(), *next;
	double cost[2] = { 0 }, step[2] = { 0 };
	void *bytes;
	size_t len;

	ck_assert_int_eq(ls_engine_reference(job->engine, job->now_us, &bytes, &len),
		0);
	ck_assert_uint_le(len, (2 + 2 * 64) * 120 + 40);
	next = again(job, bytes, len);
	(void)cost_since(job, &cost[0], &step[0]);
	(void)cost_since(next, &cost[1], &step[1]);
	fake_job_run(next, BACK);
	ck_assert_double_eq(blame(next, "h5"), blame(job, "h5"));
	for (int i = 0; i < 300; i++) {
		fake_job_run(next, 1);
		fake_job_run(job, 1);
		ck_assert_double_eq(blame(next, "h5"), blame(job, "h5"));
	}
	ck_assert_double_gt(blame(job, "h5"), 0.007);
	ck_assert_double_eq_tol(cost_since(next, &cost[1], &step[1]) /
			cost_since(job, &cost[0], &step[0]),
		1, 0.01);
	free(bytes);
	fake_job_free(next);
	fake_job_free(job);
}

/* All steps of the attempt are read back: findings are the same to the byte with what was kept and without. */
LS_TEST(all, an_attempt_that_is_read_back_needs_no_kept_baselines)
{
	struct fake_job *job = found(), *next;
	char *text[2];
	void *bytes;
	size_t len;

	bytes = kept_of(job, &len);
	for (int i = 0; i < 2; i++) {
		next = fake_job_new(64);
		if (i == 1)
			ck_assert_int_eq(ls_engine_reference_load(next->engine, bytes,
						 len, job->now_us),
				0);
		fake_job_run(next, 200);
		next->workers[5].slow = 1.1;
		fake_job_run(next, 100);
		text[i] = fake_job_findings(next);
		fake_job_free(next);
	}
	ck_assert_str_eq(text[0], text[1]);
	free(text[0]);
	free(text[1]);
	free(bytes);
	fake_job_free(job);
}

/* Another job, or another attempt: nothing is known of these. Of a job of which nothing is read back it is known in its
 * first step, and is not used again for processes that come after all have ended. */
LS_TEST_LOOP(all, baselines_of_others_are_not_used, 0, 3)
{
	struct fake_job *job = found(),
			*next = fake_job_on(NULL, _i == 0 ? "other" : job->name, 64);
	void *bytes;
	size_t len;

	ck_assert_int_eq(ls_engine_reference(job->engine, job->now_us, &bytes, &len),
		0);
	ck_assert_int_eq(
		ls_engine_reference_load(next->engine, bytes, len, job->now_us), 0);
	next->attempt = _i == 1 ? 1 : 0;
	ls_engine_restored(next->engine, job->now_us); /* the job comes later */
	next->step = job->step;
	next->now_us = job->now_us + 10000000;
	fake_job_declare(next);
	next->workers[5].slow = 1.1;
	if (_i == 2) {
		fake_job_run(next, 1);
		ck_assert_double_gt(blame(next, "h5"), 0.007);
		for (size_t i = 0; i < next->count; i++)
			ls_engine_end(next->engine, next->workers[i].handle,
				LS_END_ENDED, next->now_us);
		fake_job_declare(next);
	}
	fake_job_run(next, 20);
	ck_assert_double_eq(blame(next, "h5"), 0); /* null */
	free(bytes);
	fake_job_free(next);
	fake_job_free(job);
}

/* Both begin anew at the same time, the job and its collector: what was usual of a host says that it is slower by 3 % now. Nothing
 * kept (0); kept (1); and by a collector that started once more before the job was heard of (2). */
LS_TEST_LOOP(all, what_was_usual_outlives_the_job_and_the_collector, 0, 3)
{
	struct fake_job *job = fake_job_on(NULL, "train", 16), *next;
	struct ls_engine *between = ls_engine_new(&ls_finding_sink);
	void *bytes, *again;
	size_t len;

	ck_assert_ptr_nonnull(between);
	job->own_s = 0.8;
	job->collective_s = 0.2;
	ls_engine_patience(job->engine, 60);
	fake_job_declare(job);
	fake_job_run(job, 600);
	for (size_t i = 0; i < job->count; i++)
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_CRASHED,
			job->now_us);
	bytes = kept_of(job, &len);
	if (_i == 2) {
		ck_assert_int_eq(
			ls_engine_reference_load(between, bytes, len, job->now_us), 0);
		ck_assert_int_eq(
			ls_engine_reference(between, job->now_us + 1, &again, &len), 0);
		free(bytes);
		bytes = again;
	}
	next = fake_job_on(NULL, job->name, job->count);
	next->own_s = job->own_s;
	next->collective_s = job->collective_s;
	next->now_us = job->now_us + 120000000;
	next->attempt = 1;
	ls_engine_patience(next->engine, 60);
	if (_i > 0)
		ck_assert_int_eq(ls_engine_reference_load(next->engine, bytes, len,
					 next->now_us),
			0);
	fake_job_declare(next);
	next->workers[5].slow = 1.03;
	fake_job_run(next, 600);
	ck_assert_uint_eq(fake_job_told(next, "opened"), _i > 0);
	free(bytes);
	ls_engine_free(between);
	fake_job_free(next);
	fake_job_free(job);
}

/* The first step that was judged, or the learned steps of the first worker, are no such number, and the
 * checksum is right: nothing is known of the job, or of that worker. */
LS_TEST_LOOP(all, numbers_that_cannot_be_are_as_if_not_kept, 0, 8)
{
	static const double wrong[] = { NAN, INFINITY, -1, 0.5 };
	struct fake_job *job = found(), *next = fake_job_on(NULL, job->name, 64);
	bool of_job = _i < 4;
	void *kept;
	uint8_t *bytes;
	uint64_t sum;
	size_t len;

	bytes = kept = kept_of(job, &len);
	memcpy(bytes + 40 + 120 + (of_job ? 16 : 120 + 16 + 6 * 8), &wrong[_i % 4], 8);
	sum = ls_hash(LS_HASH_START, bytes + 24, len - 24);
	memcpy(bytes + 16, &sum, 8);
	ck_assert_int_eq(
		ls_engine_reference_load(next->engine, bytes, len, job->now_us), 0);
	next->step = job->step;
	next->now_us = job->now_us;
	fake_job_declare(next);
	next->workers[0].slow = next->workers[5].slow = 1.1;
	fake_job_run(next, 20);
	ck_assert_int_eq(blame(next, "h5") > 0, !of_job);
	ck_assert_double_eq(blame(next, "h0"), 0); /* null */
	free(kept);
	fake_job_free(next);
	fake_job_free(job);
}

LS_TEST(all, damaged_foreign_and_future_bytes_are_refused)
{
	struct fake_job *job = found();
	struct ls_engine *e = ls_engine_new(&ls_finding_sink);
	uint8_t *bytes;
	void *kept = NULL;
	size_t len;

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(ls_engine_reference(e, 0, &kept, &len), -LS_EABSENT);
	kept = kept_of(job, &len);
	bytes = kept;
	for (size_t n = 0; n < len; n += 7)
		ck_assert_int_eq(ls_engine_reference_load(e, bytes, n, job->now_us),
			-LS_EPARSE);
	ck_assert_int_eq(ls_engine_reference_load(e, bytes, len, job->now_us - 1),
		-LS_ERANGE);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= 0x40;
		ck_assert_int_eq(ls_engine_reference_load(e, bytes, len, INT64_MAX),
			i < 16 ? -LS_EVERSION : -LS_EPARSE);
		bytes[i] ^= 0x40;
	}
	ck_assert_int_eq(ls_engine_reference_load(e, bytes, len, job->now_us), 0);
	free(kept);
	ls_engine_free(e);
	fake_job_free(job);
}

/* A finding of a later attempt, after 600 steps of the first: another job on the same hosts meanwhile has no part in
 * it, and a process that claims attempts none that outlives it. */
LS_TEST(all, attempts_of_others_teach_nothing)
{
	struct fake_job *job = fake_job_new(16), *other;
	struct ls_worker_info claim = { .job = "train", .host = "h5", .rank = 5 };
	uint32_t handle;

	ls_engine_patience(job->engine, LS_SCALES_PATIENCE_S);
	job->own_s = 0.8;
	job->collective_s = 0.2;
	fake_job_run(job, 600);
	other = fake_job_on(job->engine, "other", 16);
	ls_engine_patience(job->engine, LS_SCALES_PATIENCE_S);
	fake_job_declare(other);
	other->now_us = job->now_us;
	other->workers[5].slow = 1.03;
	fake_job_run(other, 600);
	other->attempt++;
	fake_job_declare(other);
	for (claim.attempt = 1; claim.attempt < 100; claim.attempt++)
		ck_assert_int_ne(ls_engine_worker(job->engine, &claim,
					 job->now_us + claim.attempt * 10000000ll,
					 &handle),
			-ENOMEM);
	job->attempt = 101;
	job->now_us += 2120000000;
	job->step -= 50;
	fake_job_declare(job);
	job->workers[5].slow = 1.03;
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	free(other->workers);
	free(other);
	fake_job_free(job);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/engine/finding/view.h"
#include "collector/engine/params.h"
#include "proto/base/hash.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

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

/* The same job in the engine of a collector that has started again with its finding and, unless
 * bytes is NULL, its baselines. It has not read anything back. */
static struct fake_job *
again(const struct fake_job *job, const void *bytes, size_t len)
{
	struct fake_job *next = fake_job_on(NULL, job->name, job->count);
	json_t *f = fake_job_finding(job, 0);

	ck_assert_int_eq(ls_engine_seed_finding(next->engine, f), 0);
	json_decref(f);
	if (bytes != NULL)
		ck_assert_int_eq(
			ls_engine_reference_load(next->engine, bytes, len, job->now_us),
			0);
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

/* Without the kept baselines 66 steps have to be learned first. */
LS_TEST_LOOP(all, a_finding_is_known_again_in_the_steps_read_back, 0, 2)
{
	struct fake_job *job = found(), *next;
	void *bytes;
	size_t len, steps = 0;

	ck_assert_int_eq(ls_engine_reference(job->engine, job->now_us, &bytes, &len),
		0);
	ck_assert_uint_le(len, 65 * 112 + 40);
	next = again(job, _i == 0 ? NULL : bytes, len);
	while (next->event_count == 0 && steps < 100) {
		fake_job_run(next, 1);
		steps++;
	}
	if (_i == 0)
		ck_assert_uint_gt(steps, 64);
	else
		ck_assert_uint_le(steps, BACK);
	ck_assert_uint_eq(fake_job_told(next, "opened"), 0);
	free(bytes);
	fake_job_free(next);
	fake_job_free(job);
}

/* 300 steps have the same blame as without a restart, to the bit: steps read back teach nothing twice. */
LS_TEST(all, steps_are_judged_as_without_a_restart)
{
	struct fake_job *job = found(), *next;
	double cost[2] = { 0 }, step[2] = { 0 };
	void *bytes;
	size_t len;

	ck_assert_int_eq(ls_engine_reference(job->engine, job->now_us, &bytes, &len),
		0);
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

/* Another attempt, another host of the same rank, another job: nothing is known of these. */
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
	if (_i == 2)
		ls_engine_restored(next->engine, job->now_us); /* the job comes later */
	next->step = job->step;
	next->now_us = job->now_us;
	fake_job_declare(next);
	next->workers[5].slow = 1.1;
	fake_job_run(next, 20);
	ck_assert_double_eq(blame(next, "h5"), 0); /* null */
	free(bytes);
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
	memcpy(bytes + 40 + (of_job ? 8 : 112 + 8 + 6 * 8), &wrong[_i % 4], 8);
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
	struct ls_engine *e = ls_engine_new(NULL);
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

/* --- attempts of one job -------------------------------------------------- */

/* 16 hosts, steps of a second, as the product judges them: 600 steps of the first attempt, in which host 5
 * is slower by this factor. */
static struct fake_job *
first_attempt(double slow)
{
	struct fake_job *job = fake_job_new(16);

	ls_engine_patience(job->engine, LS_SCALES_PATIENCE_S);
	job->own_s = 0.8;
	job->collective_s = 0.2;
	job->workers[5].slow = slow;
	fake_job_run(job, 600);
	return job;
}

/* The job starts again, two minutes later and from a checkpoint. */
static void
next_attempt(struct fake_job *job)
{
	job->attempt++;
	job->now_us += 120000000;
	job->step -= 50;
	fake_job_declare(job);
}

/* Healthy, then slow by 3 % from the first step of the next attempt on. */
LS_TEST(all, slow_since_a_restart_is_named_from_its_first_step)
{
	struct fake_job *job = first_attempt(1);
	json_t *f;

	next_attempt(job);
	job->workers[5].slow = 1.03;
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_str_eq(job->events[0].host, "h5");
	f = fake_job_finding(job, 0);
	ck_assert_int_le(json_integer_value(ls_json_at(f, "onset", "step")), 560);
	json_decref(f);
	fake_job_free(job);
}

/* As healthy as before, while work wanders by 2 or 5 % (correlated over a minute), and all are 6 % slower
 * with the new program. */
LS_TEST_LOOP(all, healthy_restart_names_nobody, 0, 6)
{
	struct fake_job *job = fake_job_new(16);
	double wander[16] = { 0 }, sigma = (double[]){ 0, 0.02, 0.05 }[_i % 3];

	ls_engine_patience(job->engine, LS_SCALES_PATIENCE_S);
	job->own_s = 0.8;
	job->collective_s = 0.2;
	for (int attempt = 0; attempt < 4; attempt++) {
		for (int step = 0; step < 600; step++) {
			for (size_t i = 0; i < job->count; i++) {
				wander[i] = 0.985 * wander[i] +
					sigma * 0.17 * fake_job_normal(job);
				job->workers[i].slow = 1 + wander[i];
			}
			fake_job_run(job, 1);
		}
		if (_i >= 3)
			job->own_s *= 1.06;
		next_attempt(job);
	}
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

/* 3 % slower by nature: as before is not new. */
LS_TEST(all, slow_by_nature_is_not_new_after_a_restart)
{
	struct fake_job *job = first_attempt(1.03);

	for (int attempt = 1; attempt < 4; attempt++) {
		next_attempt(job);
		fake_job_run(job, 600);
	}
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

/* Each rank moves to the host before: what is usual moves with the host. Host 5 is slow by nature (0), or from
 * now on (1); or the new one is (2), of which nothing is known. */
LS_TEST_LOOP(all, what_is_usual_moves_with_the_host, 0, 3)
{
	struct fake_job *job = first_attempt(_i == 0 ? 1.03 : 1);

	job->first_host = 1;
	next_attempt(job);
	job->workers[5].slow = 1;
	job->workers[_i == 2 ? 15 : 4].slow = 1.03;
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "opened"), _i == 1 ? 1 : 0);
	if (_i == 1)
		ck_assert_str_eq(job->events[0].host, "h5");
	fake_job_free(job);
}

/* Slow in the first attempt from step 300 on, and in the second: one finding, with the cost of both. */
LS_TEST(all, a_finding_goes_on_in_the_next_attempt)
{
	struct fake_job *job = first_attempt(1);
	double cost;
	json_t *f;

	job->workers[5].slow = 1.03;
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	cost = fake_job_cost(job, 0);
	next_attempt(job);
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_stats(job).findings_total, 1);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 1);
	ck_assert_double_gt(fake_job_cost(job, 0), 1.5 * cost);
	f = fake_job_finding(job, 0);
	ck_assert_int_eq(json_integer_value(ls_json_at(f, "onset", "step")), 600);
	ck_assert_uint_eq(json_array_size(json_object_get(f, "episodes")), 2);
	json_decref(f);
	fake_job_free(job);
}

/* Attempts that end after a minute teach nothing of hosts that are known. */
LS_TEST(all, attempts_that_crash_do_not_teach_that_slow_is_usual)
{
	struct fake_job *job = first_attempt(1);

	job->workers[5].slow = 1.03;
	for (int i = 0; i < 20; i++) {
		next_attempt(job);
		fake_job_run(job, 60);
	}
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	fake_job_free(job);
}

/* An attempt of four host-hours or more does: it was judged, and named nobody. Then the next finds what has
 * changed since that one. */
LS_TEST(all, a_long_attempt_is_the_reference_of_the_next)
{
	struct fake_job *job = first_attempt(1.03);

	next_attempt(job);
	job->workers[5].slow = 1;
	fake_job_run(job, 1200);
	ck_assert_uint_eq(job->event_count, 0);
	next_attempt(job);
	job->workers[5].slow = 1.03;
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	fake_job_free(job);
}

/* In another role (0), with steps a tenth as long (1), or where the clocks do not allow the same residual (2),
 * nothing compares. */
LS_TEST_LOOP(all, steps_of_another_shape_do_not_compare, 0, 3)
{
	struct fake_job *job = first_attempt(1);

	job->stages = _i == 0 ? 1 : 0;
	job->own_s *= _i == 1 ? 0.1 : 1;
	job->collective_s *= _i == 1 ? 0.1 : 1;
	job->clockless = _i == 2;
	next_attempt(job);
	job->workers[5].slow = 1.03;
	fake_job_run(job, _i == 1 ? 6000 : 600);
	ck_assert_uint_eq(job->event_count, 0);
	fake_job_free(job);
}

/* Another job on the same hosts meanwhile, and a process that claims attempts: the first has no part in it, and
 * the second none that outlives it. */
LS_TEST(all, attempts_of_others_teach_nothing)
{
	struct fake_job *job = first_attempt(1);
	struct fake_job *other = fake_job_on(job->engine, "other", 16);
	struct ls_worker_info claim = { .job = "train", .host = "h5", .rank = 5 };
	uint32_t handle;

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
	job->attempt = 100;
	job->now_us += 2000000000;
	next_attempt(job);
	job->workers[5].slow = 1.03;
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	free(other->workers);
	free(other);
	fake_job_free(job);
}

/* Host 5 is 3 % slower from step 600 on, and is named. Its collector starts again after step 1200 and reads so many steps
 * back: too few to name it again, those from before it was slow, too, or none. */
static const size_t backs[] = { 33, 100, 620, 0 };

static struct fake_job *
named_again(size_t back, bool kept, struct fake_job *job)
{
	struct fake_job *next = fake_job_on(NULL, job->name, 16);
	json_t *f;
	void *bytes;
	size_t len;

	job->workers[5].slow = 1.03;
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	bytes = kept_of(job, &len);
	fake_job_run(job, 20);
	f = fake_job_finding(job, 0);
	ck_assert_int_eq(ls_engine_seed_finding(next->engine, f), 0);
	json_decref(f);
	if (kept)
		ck_assert_int_eq(
			ls_engine_reference_load(next->engine, bytes, len, job->now_us),
			0);
	free(bytes);
	ls_engine_patience(next->engine, LS_SCALES_PATIENCE_S);
	next->own_s = job->own_s;
	next->collective_s = job->collective_s;
	while (next->step < job->step - back) {
		next->workers[5].slow = next->step >= 600 ? 1.03 : 1;
		fake_job_make(next);
	}
	fake_job_declare(next);
	while (next->step < job->step) {
		next->workers[5].slow = next->step >= 600 ? 1.03 : 1;
		fake_job_run(next, 1);
	}
	next->workers[5].slow = 1.03;
	if (back > 0)
		ls_engine_restored(next->engine, next->now_us);
	return next;
}

static bool
is_known(const struct fake_job *job)
{
	json_t *f = fake_job_finding(job, 0);
	bool known = !json_is_string(ls_json_at(f, "data_quality", "reference")) &&
		strcmp(ls_json_text_at(f, "status", NULL), "open") == 0;

	json_decref(f);
	return known;
}

/* As without the restart: it is found again, and is over within as many steps. */
LS_TEST_EACH(all, who_was_named_is_named_after_a_restart, backs)
{
	struct fake_job *job = first_attempt(1), *next;
	size_t steps[2] = { 0 };

	next = named_again(backs[_i], true, job);
	fake_job_run(next, 200);
	fake_job_run(job, 200);
	ck_assert(is_known(next));
	next->workers[5].slow = job->workers[5].slow = 1;
	for (; is_known(next); steps[0]++)
		fake_job_run(next, 1);
	for (; is_known(job); steps[1]++)
		fake_job_run(job, 1);
	ck_assert_uint_eq(fake_job_told(next, "cleared"), 1);
	ck_assert_uint_le(steps[0], steps[1] + 32);
	ck_assert_uint_ge(steps[0] + 32, steps[1]);
	fake_job_free(next);
	fake_job_free(job);
}

/* The fault ends while the collector is down: over, and not opened again. */
LS_TEST_EACH(all, who_was_named_and_is_as_before_is_over, backs)
{
	struct fake_job *job = first_attempt(1), *next;

	next = named_again(backs[_i], true, job);
	next->workers[5].slow = 1;
	fake_job_run(next, 600);
	ck_assert_uint_eq(fake_job_told(next, "cleared"), 1);
	ck_assert_uint_eq(fake_job_told(next, "reopened"), 0);
	fake_job_free(next);
	fake_job_free(job);
}

/* The collector starts again during the second attempt and reads nothing back: with what was kept, the reference is
 * that of the first; without, there is none. */
LS_TEST_LOOP(all, what_is_carried_outlives_the_collector, 0, 2)
{
	struct fake_job *job = first_attempt(1), *next;
	void *bytes;
	size_t len;

	next_attempt(job);
	job->workers[5].slow = 1.03;
	fake_job_run(job, 80);
	ck_assert_uint_eq(job->event_count, 0);
	bytes = kept_of(job, &len);
	next = fake_job_on(NULL, job->name, 16);
	ls_engine_patience(next->engine, LS_SCALES_PATIENCE_S);
	if (_i == 0)
		ck_assert_int_eq(
			ls_engine_reference_load(next->engine, bytes, len, job->now_us),
			0);
	next->attempt = job->attempt;
	next->step = job->step;
	next->now_us = job->now_us;
	next->own_s = job->own_s;
	next->collective_s = job->collective_s;
	next->workers[5].slow = 1.03;
	fake_job_declare(next);
	fake_job_run(next, 600);
	ck_assert_uint_eq(fake_job_told(next, "opened"), _i == 0 ? 1 : 0);
	free(bytes);
	fake_job_free(next);
	fake_job_free(job);
}

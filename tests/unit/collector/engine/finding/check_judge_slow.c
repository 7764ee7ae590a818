/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The next step takes a worker so much longer, told as a phase. */
static void
hold(struct fake_job *job, size_t worker, double s, enum ls_phase phase)
{
	struct ls_record *r = &job->workers[worker].record;

	job->workers[worker].once_s = s;
	fake_job_make(job);
	r->phase_ns[LS_PHASE_COMPUTE] -= (uint64_t)(s * 1e9);
	r->phase_mask |= 1u << phase;
	r->phase_ns[phase] += (uint64_t)(s * 1e9);
	fake_job_report(job);
}

/* 2,000 good steps, then worker 5 gets slower by 0.15 % of a step a minute. */
static void
drift(struct fake_job *job)
{
	fake_job_run(job, 2000);
	for (size_t i = 0; i < 6000; i++) {
		job->workers[5].slow += 0.015 / 6000;
		fake_job_run(job, 1);
	}
}

/* What a drift has cost, to half of its cost now in all its steps. */
static double
half_of_now(const struct fake_job *job, const json_t *f)
{
	double lost_s =
		json_number_value(ls_json_at(f, "impact", "chip_hours_lost_total")) *
		3600 / (double)job->count / job->chips;
	double steps = (double)(job->step -
		(uint64_t)json_integer_value(ls_json_at(f, "onset", "step")));

	return lost_s /
		(json_number_value(ls_json_at(f, "impact", "blame_s")) * steps / 2);
}

LS_CASE(drift);

/* Less than the detectors of single steps can tell from their own baseline. */
LS_TEST_LOOP(drift, a_worker_that_drifts_is_found_cleared_and_reopened, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	job->clockless = _i == 1;
	drift(job);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "straggler");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h5");
	ck_assert_str_eq(ls_json_text_at(f, "onset", "type"), "drift");
	ck_assert_str_eq(ls_json_text_at(f, "persistence", "duty"), "continuous");
	ck_assert_int_lt(json_integer_value(ls_json_at(f, "onset", "step")), 5000);
	ck_assert(json_number_value(ls_json_at(f, "impact", "blame_s")) > 0.0002);
	ck_assert(json_number_value(ls_json_at(f, "impact", "blame_s")) < 0.0013);
	/* less than half: at first it was not the last to come */
	ck_assert(fabs(half_of_now(job, f) - 0.8) < 0.25);
	json_decref(f);
	job->workers[5].slow = 1;
	fake_job_run(job, 4000);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	job->workers[5].slow = 1.1; /* comes back, but not as a drift */
	fake_job_run(job, 200);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	/* the onset is that of the first episode */
	ck_assert_str_eq(ls_json_text_at(f, "onset", "type"), "drift");
	ck_assert_uint_eq(json_array_size(json_object_get(f, "episodes")), 2);
	json_decref(f);
	fake_job_free(job);
}

/* Two equal ones hide each other: without one of them nobody would wait less. */
LS_TEST(drift, two_that_drift_cost_together_what_they_cost)
{
	struct fake_job *job = fake_job_new(8);
	double blame_s = 0;
	json_t *f;

	fake_job_run(job, 2000);
	for (size_t i = 0; i < 6000; i++) {
		job->workers[2].slow = job->workers[5].slow += 0.015 / 6000;
		fake_job_run(job, 1);
	}
	fake_job_run(job, 400);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	for (size_t i = 0; i < 2; i++) {
		f = fake_job_finding(job, i);
		ck_assert_str_eq(ls_json_text_at(f, "onset", "type"), "drift");
		blame_s += json_number_value(ls_json_at(f, "impact", "blame_s"));
		json_decref(f);
	}
	ck_assert_double_gt(blame_s, 0.6 * 0.015 * 0.08);
	ck_assert_double_lt(blame_s, 1.1 * 0.015 * 0.08);
	fake_job_free(job);
}

LS_TEST(drift, a_drift_that_becomes_gross_stays_one_finding)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	drift(job);
	job->workers[5].slow = 1.2;
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "straggler");
	ck_assert_str_eq(ls_json_text_at(f, "severity", NULL), "critical");
	json_decref(f);
	job->workers[5].slow = 1;
	fake_job_run(job, 1000);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 0);
	fake_job_free(job);
}

LS_CASE(periodic);

LS_TEST_LOOP(periodic, stalls_at_equal_distances_are_periodic, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	job->clockless = _i == 1;
	for (size_t i = 0; i < 1500; i++) {
		job->workers[2].once_s = i % 50 == 49 ? 0.2 : 0;
		fake_job_run(job, 1);
	}
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "periodic");
	ck_assert_str_eq(ls_json_text_at(f, "severity", NULL), "warning");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h2");
	ck_assert_str_eq(ls_json_text_at(f, "persistence", "duty"), "intermittent");
	ck_assert_str_eq(ls_json_cause(f), "unexplained");
	ck_assert(fabs(ls_json_evidence(f, "period_steps") - 50) < 0.01);
	ck_assert(fabs(ls_json_evidence(f, "period_s") - 5.2) < 0.1);
	ck_assert(fabs(ls_json_evidence(f, "event_excess_s") - 0.2) < 0.005);
	ck_assert(fabs(json_number_value(ls_json_at(f, "impact", "blame_s")) - 0.004) <
		0.0002);
	ck_assert_ptr_nonnull(
		strstr(ls_json_text_at(f, "title", NULL), "each 50th step"));
	json_decref(f);
	job->workers[2].once_s = 0;
	fake_job_run(job, 130);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

LS_TEST_LOOP(periodic, a_phase_names_the_cause_of_a_period, 0, 2)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 100);
	for (size_t k = 0; k < 8; k++) {
		fake_job_run(job, 79);
		hold(job, 6, 0.1, _i == 0 ? LS_PHASE_COMPILE : LS_PHASE_INPUT_WAIT);
	}
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "periodic");
	ck_assert_str_eq(ls_json_cause(f), _i == 0 ? "recompilation" : "input_stall");
	json_decref(f);
	fake_job_free(job);
}

/* Duties: marked as such, nothing is said; at the end of a step, in no phase, it is for
 *         information. */
LS_TEST_LOOP(periodic, duties_of_one_worker_are_not_blamed, 0, 3)
{
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 100);
	for (size_t k = 0; k < 10; k++) {
		fake_job_run(job, 79);
		if (_i == 2) { /* between its steps */
			job->workers[0].once_s = 0.3;
			fake_job_make(job);
			job->workers[0].record.t_begin_ns += 300000000;
			job->workers[0].record.duration_ns -= 300000000;
			job->workers[0].record.phase_ns[LS_PHASE_COMPUTE] -= 300000000;
			fake_job_report(job);
		} else {
			hold(job, 0, 0.3,
				_i == 0 ? LS_PHASE_CHECKPOINT : LS_PHASE_EVAL);
		}
	}
	if (_i < 2) {
		ck_assert_uint_eq(job->event_count, 0);
	} else {
		ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
		f = fake_job_finding(job, 0);
		ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "periodic");
		ck_assert_str_eq(ls_json_text_at(f, "severity", NULL), "info");
		json_decref(f);
	}
	fake_job_free(job);
}

LS_CASE(rotating_told_of_the_job);

LS_TEST_LOOP(rotating_told_of_the_job, pauses_of_anybody_are_told_of_the_job, 0, 2)
{
	struct fake_job *job = fake_job_new(16);
	json_t *f;

	fake_job_run(job, 150);
	for (size_t k = 0; k < 300; k++) {
		size_t who = (size_t)(fake_job_random(job) * 16);

		if (fake_job_random(job) < 0.25)
			hold(job, who, 0.02, _i == 0 ? LS_PHASE_GC : LS_PHASE_COMPUTE);
		else
			fake_job_run(job, 1);
	}
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "job_slow");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "job");
	ck_assert_str_eq(ls_json_text_at(f, "pattern", NULL), "rotating");
	ck_assert_str_eq(ls_json_cause(f),
		_i == 0 ? "garbage_collection" : "unexplained");
	ck_assert(fabs(json_number_value(ls_json_at(f, "impact", "blame_s")) - 0.005) <
		0.0015);
	ck_assert(fabs(ls_json_evidence(f, "event_steps_ratio") - 0.25) < 0.1);
	json_decref(f);
	fake_job_run(job, 800);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

LS_CASE(storage_and_attempts);

LS_TEST(storage_and_attempts, what_was_told_is_read_back)
{
	struct fake_job *job = fake_job_new(8);
	struct ls_engine *other = ls_engine_new(NULL);
	json_t *f;

	for (size_t i = 0; i < 600; i++) {
		job->workers[2].once_s = i % 50 == 49 ? 0.2 : 0;
		fake_job_run(job, 1);
	}
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), "periodic");
	ck_assert_int_eq(ls_engine_seed_finding(other, f), 0);
	json_decref(f);
	ls_engine_free(other);
	fake_job_free(job);
}

/* Makes workers first to last slower by a factor. */
static void
slow(struct fake_job *job, size_t first, size_t last, double factor)
{
	for (size_t i = first; i <= last; i++)
		job->workers[i].slow = factor;
}

/* What is slow, by what factor; is it seen also without the steps from before? */
static const struct {
	size_t first, last;
	double factor;
	bool seen;
} restarts[] = { { 5, 5, 1.03, false }, { 5, 5, 1.3, true }, { 0, 7, 1.1, false } };

/* The job after the collector has started again with its finding, and reads so many steps
 * back. step_s: of one of them. */
static struct fake_job *
restart(const struct fake_job *job, uint64_t back, double step_s)
{
	struct fake_job *next = fake_job_on(NULL, job->name, job->count);
	json_t *f = fake_job_finding(job, 0);

	ck_assert_int_eq(ls_engine_seed_finding(next->engine, f), 0);
	json_decref(f);
	next->step = job->step - back;
	next->now_us = job->now_us - (int64_t)((double)back * step_s * 1e6);
	next->random += job->step;
	fake_job_declare(next);
	return next;
}

/* Is the finding told as it was before the restart, and not seen since? */
static bool
is_marked(const struct fake_job *job)
{
	json_t *f = fake_job_finding(job, 0);
	bool marked = json_is_string(ls_json_at(f, "data_quality", "reference"));

	json_decref(f);
	return marked;
}

static void
check_status(const struct fake_job *job, const char *status)
{
	json_t *f = fake_job_finding(job, 0);

	ck_assert_str_eq(ls_json_text_at(f, "status", NULL), status);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 0);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 0);
	json_decref(f);
}

/* The collector starts again and reads 300 steps back, none of them from before the onset. In
 * the second round 5,000 steps after it have no records. Costs are those of one that did not
 * start again. */
LS_TEST_LOOP(storage_and_attempts, a_finding_outlives_a_restart_without_its_past, 0,
	2 * (int)(sizeof(restarts) / sizeof(restarts[0])))
{
	const size_t k = (size_t)_i % (sizeof(restarts) / sizeof(restarts[0]));
	const size_t lost = (size_t)_i == k ? 0 : 5000;
	struct fake_job *job = fake_job_new(8), *next;
	double step_s;
	int64_t onset_us;

	fake_job_run(job, 400);
	onset_us = job->now_us;
	slow(job, restarts[k].first, restarts[k].last, restarts[k].factor);
	fake_job_run(job, 600);
	step_s = (double)(job->now_us - onset_us) * 1e-6 / 600;
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	next = restart(job, 300, step_s);
	slow(next, restarts[k].first, restarts[k].last, restarts[k].factor);
	fake_job_run(next, 300);
	next->step += lost;
	next->now_us += (int64_t)((double)lost * step_s * 1e6);
	fake_job_run(next, 1500);
	ck_assert_uint_ge(fake_job_told(next, "updated"), 1);
	ck_assert_int_gt(next->events[0].t_us, job->events[job->event_count - 1].t_us);
	ck_assert_uint_eq(fake_job_told(next, "cleared"), 0);
	check_status(next, "open");
	ck_assert_int_eq(is_marked(next), !restarts[k].seen);
	fake_job_run(job, 1500);
	ck_assert_double_eq_tol(fake_job_cost(next, 0) / fake_job_cost(job, 0), 1,
		0.05);
	slow(next, 0, 7, 1);
	fake_job_run(next, 600);
	ck_assert_uint_eq(fake_job_told(next, "cleared"), 1);
	fake_job_free(next);
	fake_job_free(job);
}

/* The last step that is in the cost of a finding. */
static double
told_step(const struct fake_job *job)
{
	json_t *f = fake_job_finding(job, 0);
	json_int_t step = json_integer_value(json_object_get(f, "last_step"));

	json_decref(f);
	return (double)step;
}

/* Cost of a step told since `from`, by the steps told. */
static double
cost_since(const struct fake_job *job, const double from[2])
{
	return (fake_job_cost(job, 0) - from[0]) / (told_step(job) - from[1]);
}

static void
tenth_slow(struct fake_job *job, double noise)
{
	job->noise = noise;
	job->own_s = 0.8;
	job->collective_s = 0.2;
	ls_engine_patience(job->engine, 5);
	slow(job, 5, 5, 1.1);
}

/* What a step costs after so many restarts of a collector that reads 33 steps back, over what it
 * costs without. A collector ends as soon as the finding is known again. */
static double
cost_ratio(size_t workers, int kills, double noise, uint64_t seed)
{
	struct fake_job *whole = fake_job_new(workers), *job = whole, *next;
	double from[2], step_s, ratio;
	int64_t onset_us;

	whole->random += seed;
	tenth_slow(whole, noise);
	slow(whole, 5, 5, 1);
	fake_job_run(whole, 100);
	onset_us = whole->now_us;
	slow(whole, 5, 5, 1.1);
	fake_job_run(whole, 300);
	step_s = (double)(whole->now_us - onset_us) * 1e-6 / 300;
	from[0] = fake_job_cost(whole, 0);
	from[1] = told_step(whole);
	while (kills-- > 0) {
		next = restart(job, 33, step_s);
		if (job != whole)
			fake_job_free(job);
		job = next;
		tenth_slow(job, noise);
		fake_job_run(job, 33);
		ls_engine_restored(job->engine, job->now_us);
		while (job->event_count == 0 || is_marked(job)) {
			fake_job_run(job, 1);
			fake_job_run(whole, 1);
		}
	}
	fake_job_run(whole, 300);
	ratio = cost_since(job, from) / cost_since(whole, from);
	fake_job_free(job);
	fake_job_free(whole);
	return ratio;
}

/* So few steps are read back that there is no baseline at first: once, or more often. */
LS_TEST_LOOP(storage_and_attempts, the_first_steps_after_a_restart_cost_the_same, 0, 3)
{
	double sum = 0;

	for (uint64_t seed = 0; seed < 20; seed++)
		sum += cost_ratio(8, 1 + _i, 0.02, seed);
	ck_assert_double_eq_tol(sum / 20, 1, 0.015);
}

/* Faults of single steps: by whom the next step is held up, if by anybody. */
static void
rare_stalls(struct fake_job *job)
{
	job->workers[6].once_s = fake_job_random(job) < 0.04 ? 0.1 : 0;
	fake_job_run(job, 1);
}

static void
rare_period(struct fake_job *job)
{
	job->workers[2].once_s = job->step % 50 == 49 ? 0.04 : 0;
	fake_job_run(job, 1);
}

static void
rare_pauses(struct fake_job *job)
{
	size_t who = (size_t)(fake_job_random(job) * 16);

	if (fake_job_random(job) < 0.15)
		hold(job, who, 0.02, LS_PHASE_GC);
	else
		fake_job_run(job, 1);
}

/* Their finding; pauses between them (of a rotation: of all that its detector needs) after
 * which it is over. */
static const struct {
	void (*step)(struct fake_job *job);
	const char *kind, *pattern;
	unsigned pauses;
} rares[] = { { rare_stalls, "straggler", "single_worker", 9 },
	{ rare_period, "periodic", "single_worker", 9 },
	{ rare_pauses, "job_slow", "rotating", 2 } };

/* Such a fault, found; *ret_pause: the mean steps between two events of it, as told. */
static struct fake_job *
rare(size_t k, uint64_t seed, double *ret_pause)
{
	struct fake_job *job = fake_job_new(16);
	json_t *f;

	job->random += 7919 * (seed + 1);
	fake_job_run(job, 150);
	for (size_t i = 0; i < 900; i++)
		rares[k].step(job);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "status", NULL), "open");
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), rares[k].kind);
	ck_assert_str_eq(ls_json_text_at(f, "pattern", NULL), rares[k].pattern);
	*ret_pause = json_number_value(ls_json_at(f, "onset", "uncertainty_steps"));
	json_decref(f);
	return job;
}

/* Single steps tell nothing for a while: the finding waits, is seen again, and has cost what it
 * would have cost without the restart. */
LS_TEST_LOOP(storage_and_attempts, rare_events_outlive_a_restart_without_their_past, 0,
	10 * (int)(sizeof(rares) / sizeof(rares[0])))
{
	const size_t k = (size_t)_i % (sizeof(rares) / sizeof(rares[0]));
	double pause, was;
	struct fake_job *job = rare(k, (uint64_t)_i, &pause), *next;
	json_t *f;

	next = restart(job, 50, 0.105);
	was = fake_job_cost(job, 0);
	for (size_t i = 0; i < 1050; i++)
		rares[k].step(next);
	ck_assert_uint_eq(fake_job_told(next, "cleared"), 0);
	check_status(next, "open");
	ck_assert(!is_marked(next));
	f = fake_job_finding(next, 0);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL), rares[k].kind);
	ck_assert_str_eq(ls_json_text_at(f, "pattern", NULL), rares[k].pattern);
	json_decref(f);
	ck_assert_double_gt(fake_job_cost(next, 0), 1.5 * was);
	fake_job_free(next);
	fake_job_free(job);
}

/* The fault ended while the collector was down. */
LS_TEST_LOOP(storage_and_attempts, rare_events_that_stay_away_are_over, 0,
	(int)(sizeof(rares) / sizeof(rares[0])))
{
	double pause, was;
	struct fake_job *job = rare((size_t)_i, 0, &pause), *next = restart(job, 0, 0);
	/* 64 to learn, and it is looked at every 64 */
	size_t steps = 64 + (size_t)(rares[_i].pauses * pause);

	was = fake_job_cost(job, 0);
	fake_job_run(next, steps - 1);
	check_status(next, "open");
	ck_assert_int_eq(is_marked(next), next->event_count > 0);
	fake_job_run(next, 66);
	check_status(next, "cleared");
	ck_assert_double_eq(fake_job_cost(next, 0), was);
	fake_job_free(next);
	fake_job_free(job);
}

/* Stalls, or a period, go on in the next attempt; a rotation is the job's, and is found again. */
LS_TEST_LOOP(storage_and_attempts, rare_events_go_on_in_the_next_attempt, 0,
	10 * (int)(sizeof(rares) / sizeof(rares[0])))
{
	const size_t k = (size_t)_i % (sizeof(rares) / sizeof(rares[0]));
	double pause, was;
	struct fake_job *job = rare(k, (uint64_t)_i, &pause);

	was = fake_job_cost(job, 0);
	job->attempt++;
	job->step = 0;
	fake_job_declare(job);
	for (size_t i = 0; i < 1050; i++)
		rares[k].step(job);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), k == 2 ? 1 : 0);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), k == 2 ? 1 : 0);
	ck_assert(!is_marked(job));
	ck_assert_double_gt(fake_job_cost(job, 0), 1.5 * was);
	fake_job_free(job);
}

LS_TEST(storage_and_attempts, a_new_attempt_begins_anew)
{
	struct fake_job *job = fake_job_new(8);

	for (size_t i = 0; i < 600; i++) {
		job->workers[2].once_s = i % 50 == 49 ? 0.2 : 0;
		fake_job_run(job, 1);
	}
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	job->attempt++;
	job->step = 0;
	fake_job_declare(job);
	fake_job_run(job, 600);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 0);
	fake_job_free(job);
}

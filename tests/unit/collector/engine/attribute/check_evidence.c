/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <math.h>
#include <string.h>

#define WORKERS 8
#define LEARN 150

/* A job that has learned what is usual, with counters once a step. */
struct watched {
	struct fake_job *job;
	/* so far; held: the host's */
	double cpu_s[WORKERS], queue_s[WORKERS], held_s[WORKERS], resent[WORKERS];
	double cpu_step_s; /* each step of each worker */
};

static void
watch(struct watched *w, size_t i)
{
	static const uint16_t metric[] = { LS_METRIC_JOB_CPU,
		LS_METRIC_JOB_RUNQUEUE_WAIT };
	const double value[] = { w->cpu_s[i], w->queue_s[i] };
	char host[16];

	(void)snprintf(host, sizeof(host), "h%zu", i);
	ck_assert_int_eq(ls_engine_counters(w->job->engine, host,
				 w->job->workers[i].handle, w->job->now_us, 2, metric,
				 value),
		0);
	ck_assert_int_eq(ls_engine_counters(w->job->engine, host, LS_NO_WORKER,
				 w->job->now_us, 2,
				 (uint16_t[]){ LS_METRIC_HOST_CPU_THROTTLED,
					 LS_METRIC_HOST_TCP_RETRANSMITS },
				 (double[]){ w->held_s[i], w->resent[i] }),
		0);
}

/* One step; mark (may be NULL) adds to the records of it. */
static void
step(struct watched *w, void (*mark)(struct watched *))
{
	fake_job_make(w->job);
	if (mark != NULL)
		mark(w);
	fake_job_report(w->job);
	for (size_t i = 0; i < WORKERS; i++) {
		w->cpu_s[i] += w->cpu_step_s;
		watch(w, i);
	}
}

static struct watched
learned(void)
{
	struct watched w = { .job = fake_job_new(WORKERS), .cpu_step_s = 0.05 };

	for (size_t i = 0; i < LEARN; i++)
		step(&w, NULL);
	return w;
}

static double
impact(const json_t *f, const char *name)
{
	return json_number_value(json_object_get(json_object_get(f, "impact"), name));
}

static void
check_cause_is(const struct watched *w, const char *cause)
{
	json_t *f = fake_job_finding(w->job, 0);

	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(ls_json_cause(f), cause);
	json_decref(f);
	fake_job_free(w->job);
}

LS_CASE(all);

/* After a restart counters are not known at once: the cause stays for a minute. */
LS_TEST(all, a_cause_outlives_a_restart)
{
	struct watched w = learned(), next = { 0 };
	json_t *f;

	w.job->workers[3].slow = 1.2;
	for (size_t i = 0; i < 100; i++) {
		w.cpu_s[3] += 0.016;
		step(&w, NULL);
	}
	f = fake_job_finding(w.job, 0);
	next.job = fake_job_on(NULL, w.job->name, WORKERS);
	ck_assert_int_eq(ls_engine_seed_finding(next.job->engine, f), 0);
	json_decref(f);
	next.job->now_us = w.job->now_us - (LEARN + 100) * 110000;
	fake_job_declare(next.job);
	fake_job_run(next.job, LEARN);
	next.job->workers[3].slow = 1.2;
	fake_job_run(next.job, 100);
	ls_engine_restored(next.job->engine, next.job->now_us);
	check_cause_is(&w, "slow_compute");
	for (size_t i = 0; i < 3; i++) { /* of 300 steps of 0.116 s */
		fake_job_run(next.job, 300);
		f = fake_job_finding(next.job, 0);
		ck_assert_str_eq(ls_json_text_at(f, "status", NULL), "open");
		ck_assert_str_eq(ls_json_cause(f),
			i == 0 ? "slow_compute" : "unexplained");
		json_decref(f);
	}
	fake_job_free(next.job);
}

/* Whom a finding names depends on every clock of the job: it tells the worst. */
LS_TEST(all, the_worst_clock_of_a_job_is_told)
{
	struct watched w = learned();
	json_t *f;

	ls_engine_clock(w.job->engine, w.job->workers[0].handle, 0.0001);
	ls_engine_clock(w.job->engine, w.job->workers[5].handle, 0.0003);
	ls_engine_clock(w.job->engine, w.job->workers[6].handle, 0.0002);
	w.job->workers[3].slow = 1.2;
	for (size_t i = 0; i < 60; i++)
		step(&w, NULL);
	f = fake_job_finding(w.job, 0);
	ck_assert_double_eq_tol(
		json_number_value(ls_json_at(f, "data_quality", "clock_err_ms")), 0.3,
		1e-9);
	json_decref(f);
	fake_job_free(w.job);
}

/* Told 24 healthy steps after its end, when the detector is not yet sure of that. */
LS_TEST(all, steps_after_the_end_dilute_nothing)
{
	struct watched w = learned();
	json_t *f;

	w.job->workers[3].slow = 1.2;
	for (size_t i = 0; i < 60; i++) {
		w.cpu_s[3] += 0.016;
		step(&w, NULL);
	}
	w.job->workers[3].slow = 1;
	for (size_t i = 0; i < 24; i++)
		step(&w, NULL);
	f = fake_job_finding(w.job, 0);
	/* after the end */
	ck_assert_int_ge(json_integer_value(json_object_get(f, "last_step")),
		LEARN + 62);
	ck_assert_double_eq_tol(impact(f, "step_time_s") -
			impact(f, "step_time_without_s"),
		0.016, 0.0005);
	ck_assert_double_eq_tol(impact(f, "step_time_s"), 0.116, 0.001);
	json_decref(f);
	check_cause_is(&w, "slow_compute");
}

/* What took it a stall longer was compiling, and it says so. */
static void
compiles(struct watched *w)
{
	struct ls_record *r = &w->job->workers[3].record;

	if (r->phase_ns[LS_PHASE_COMPUTE] < 200000000)
		return;
	r->phase_mask |= 1u << LS_PHASE_COMPILE;
	r->phase_ns[LS_PHASE_COMPILE] = 200000000;
	r->phase_ns[LS_PHASE_COMPUTE] -= 200000000;
	w->cpu_s[3] += 0.2;
}

/* Marked in the steps in which it happens, and by nobody else. */
LS_TEST(all, what_one_does_now_and_then_is_named)
{
	struct watched w = learned();

	for (size_t i = 0; i < 300; i++) {
		w.job->workers[3].once_s = fake_job_random(w.job) < 0.1 ? 0.2 : 0;
		step(&w, compiles);
	}
	check_cause_is(&w, "recompilation");
}

/* Whoever takes 0.1 s longer collects garbage. */
static void
collects(struct watched *w)
{
	for (size_t i = 0; i < WORKERS; i++) {
		struct ls_record *r = &w->job->workers[i].record;

		if (r->phase_ns[LS_PHASE_COMPUTE] < 150000000)
			continue;
		r->phase_mask |= 1u << LS_PHASE_GC;
		r->phase_ns[LS_PHASE_GC] = 100000000;
		r->phase_ns[LS_PHASE_COMPUTE] -= 100000000;
	}
}

/* All workers collect garbage in turn, and one of them always has a little more work: a finding
 * about any of them must not say that it stands still. */
LS_TEST_LOOP(all, pauses_of_all_in_turn_are_no_standstill_of_one, 0, 8)
{
	struct watched w = { .job = fake_job_new(WORKERS), .cpu_step_s = 0.05 };
	size_t told = 0, n = 0;
	json_t *all, *f;

	w.job->random += (uint64_t)_i;
	w.job->workers[_i].slow = 1.03;
	for (size_t i = 0; i < LEARN + 300; i++) {
		if (i >= LEARN && fake_job_random(w.job) < 0.25)
			w.job->workers[(size_t)(fake_job_random(w.job) * WORKERS)]
				.once_s = 0.1;
		step(&w, collects);
	}
	all = ls_engine_findings(w.job->engine);
	json_array_foreach(all, n, f)
	{
		if (strcmp(ls_json_text_at(f, "subject", "scope"), "host") != 0)
			continue;
		told++;
		ck_assert_str_eq(ls_json_cause(f), "garbage_collection");
	}
	ck_assert_uint_gt(told, 0);
	json_decref(all);
	fake_job_free(w.job);
}

static void
loads(struct watched *w)
{
	for (size_t i = 0; i < WORKERS; i++) {
		struct ls_record *r = &w->job->workers[i].record;

		r->work_mask |=
			1u << LS_WORK_EXPERT_LOAD_MAX | 1u << LS_WORK_EXPERT_LOAD_MEAN;
		r->work[LS_WORK_EXPERT_LOAD_MEAN] = 100;
		r->work[LS_WORK_EXPERT_LOAD_MAX] =
			i == 3 && w->job->workers[3].slow > 1 ? 132 : 110;
	}
}

LS_TEST(all, a_fuller_expert_is_an_imbalance)
{
	struct watched w = learned();

	w.job->workers[3].slow = 1.2;
	for (size_t i = 0; i < 60; i++)
		step(&w, loads);
	check_cause_is(&w, "work_imbalance");
}

/* The same without loads: a chip, since its time is in the computation and no counter
 * of the host sees it. */
LS_TEST(all, equal_loads_are_none)
{
	struct watched w = learned();

	w.job->workers[3].slow = 1.2;
	for (size_t i = 0; i < 60; i++)
		step(&w, NULL);
	check_cause_is(&w, "slow_compute");
}

/* One step of 30 s: it ran all the while, or did not. */
LS_TEST_LOOP(all, who_runs_on_does_not_stand_still, 0, 2)
{
	struct watched w = learned();

	w.job->workers[3].once_s = 30;
	for (size_t i = 0; i < WORKERS; i++)
		w.cpu_s[i] += _i == 0
			? 15
			: 0.01; /* as much a second as ever, or next to nothing; the others wait likewise */
	fake_job_make(w.job);
	for (size_t i = 0; i < WORKERS; i++)
		watch(&w, i);
	fake_job_report(w.job);
	check_cause_is(&w, _i == 0 ? "not_entered" : "process_stopped");
}

/* Stalls each 30 steps or so, which stay away for 260 and come back: one thing, and its
 * rate is that of all. */
LS_TEST(all, stalls_that_pause_keep_their_onset)
{
	static const uint64_t hit[] = { 0, 20, 70, 95, 150, 165, 425, 445, 473, 483,
		540 };
	struct fake_job *job = fake_job_new(8);
	json_t *f;

	fake_job_run(job, 100);
	for (uint64_t i = 0, k = 0; i <= 543; i++) {
		job->workers[6].once_s = hit[k] == i ? 0.2 : 0;
		k += hit[k] == i && k < 10;
		fake_job_run(job, 1);
		if (i == 424)
			ck_assert_uint_eq(fake_job_stats(job).findings_open, 0);
	}
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_int_eq(json_integer_value(
				 json_object_get(json_object_get(f, "onset"), "step")),
		100);
	ck_assert_double_eq_tol(impact(f, "step_time_s") -
			impact(f, "step_time_without_s"),
		0.2 * 9 / 540, 0.0003);
	json_decref(f);
	fake_job_free(job);
}

/* A step is one program: a worker's own work is inside the collective, and its counters
 * alone tell. */
enum program {
	KEPT,
	HELD_BACK,
	ALL_KEPT,
	TWO_KEPT,
	KEPT_BEFORE,
	NOT_ONE_PROGRAM,
	OF_ANOTHER_SLICE
};

static void
program_step(struct watched *w, enum program way, bool slow)
{
	struct fake_job *job = w->job;
	double more_s = slow ? 0.04 : 0;

	for (size_t i = 0; i < WORKERS; i++)
		w->queue_s[i] += slow && way == ALL_KEPT && i != 3 ? 0.06 : 0.01;
	if (slow && way == HELD_BACK)
		w->held_s[3] += 0.05;
	else if (slow || way == KEPT_BEFORE)
		w->queue_s[3] += 0.05;
	if (slow && way == TWO_KEPT)
		w->queue_s[5] += 0.04;
	if (way == OF_ANOTHER_SLICE) {
		job->slice_comm_s[0] = 0.2;
		job->slice_comm_s[1] = 0.2 + more_s;
	} else {
		job->comm_s = more_s;
	}
	step(w, NULL);
}

LS_TEST_LOOP(all, who_is_kept_from_a_cpu_inside_one_program_is_named, 0,
	OF_ANOTHER_SLICE + 1)
{
	struct watched w = { .job = fake_job_on(NULL, "train", WORKERS),
		.cpu_step_s = 0.05 };
	enum program way = (enum program)_i;
	bool named = way == KEPT || way == HELD_BACK;
	json_t *f;

	w.job->own_s = way == NOT_ONE_PROGRAM ? 0.09 : 0.01;
	w.job->collective_s = way == OF_ANOTHER_SLICE ? 0.01 : 0.1 - w.job->own_s;
	/* h3 is of the first, the second is slow */
	w.job->slices = way == OF_ANOTHER_SLICE ? 2 : 0;
	fake_job_declare(w.job);
	for (size_t i = 0; i < LEARN; i++)
		program_step(&w, way, false);
	for (size_t i = 0; i < 200; i++)
		program_step(&w, way, true);
	ck_assert_uint_eq(
		fake_job_told(w.job, "opened") - fake_job_told(w.job, "cleared"), 1);
	f = fake_job_finding(w.job, fake_job_told(w.job, "cleared"));
	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL),
		named ? "straggler" : "job_slow");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"),
		named				  ? "host"
			: way == OF_ANOTHER_SLICE ? "slice"
						  : "job");
	if (named) {
		ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h3");
		ck_assert_str_eq(ls_json_cause(f),
			way == KEPT ? "host_cpu_contention" : "cpu_quota");
	}
	ck_assert_double_eq_tol(impact(f, "blame_s"), 0.04, 0.004);
	json_decref(f);
	for (size_t i = 0; i < 200; i++)
		program_step(&w, way, false);
	ck_assert_uint_eq(fake_job_told(w.job, "opened"),
		fake_job_told(w.job, "cleared"));
	fake_job_free(w.job);
}

/* Whom counters name later takes the place of the job. */
LS_TEST(all, a_slow_program_becomes_its_hosts_when_counters_tell)
{
	struct watched w = { .job = fake_job_on(NULL, "train", WORKERS),
		.cpu_step_s = 0.05 };
	json_t *all, *host;

	w.job->own_s = 0.01;
	w.job->collective_s = 0.09;
	fake_job_declare(w.job);
	for (size_t i = 0; i < LEARN + 80 + 160; i++) {
		w.job->comm_s = i < LEARN ? 0 : 0.04;
		for (size_t k = 0; k < WORKERS; k++)
			w.queue_s[k] += 0.01;
		w.queue_s[3] += i < LEARN + 80 ? 0 : 0.1;
		fake_job_run(w.job, 1);
		for (size_t k = 0; k < WORKERS && i % 8 == 0; k++)
			watch(&w, k); /* about once a second */
		if (i == LEARN + 79)
			fake_job_only(w.job, "job_slow", "job", "");
	}
	ck_assert_uint_eq(fake_job_told(w.job, "opened"), 2);
	all = fake_job_finding(w.job, 0);
	host = fake_job_finding(w.job, 1);
	ck_assert_str_eq(ls_json_text_at(all, "status", NULL), "cleared");
	ck_assert_str_eq(ls_json_text_at(all, "part_of", NULL),
		ls_json_text_at(host, "id", NULL));
	ck_assert_str_eq(ls_json_text_at(host, "status", NULL), "open");
	ck_assert_str_eq(ls_json_text_at(host, "subject", "host"), "h3");
	json_decref(all);
	json_decref(host);
	fake_job_free(w.job);
}

/* Collectives take 20 ms longer. A host that sends a segment again each second step may
 * explain that; one each hundredth cannot, and one that always did has not begun to. */
LS_TEST_LOOP(all, a_link_needs_evidence_of_a_link, 0, 4)
{
	static const unsigned before[] = { 0, 0, 0, 2 }, now[] = { 2, 0, 100, 2 };
	struct watched w = { .job = fake_job_new(WORKERS), .cpu_step_s = 0.05 };
	json_t *f;

	for (size_t i = 0; i < 2 * LEARN; i++) {
		unsigned every = i < LEARN ? before[_i] : now[_i];

		w.job->comm_s = i < LEARN ? 0 : 0.02;
		w.resent[5] += every != 0 && i % every == 0;
		fake_job_run(w.job, 1);
		for (size_t k = 0; k < WORKERS && i % 8 == 0; k++)
			watch(&w, k); /* about once a second */
	}
	f = fake_job_finding(w.job, 0);
	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(ls_json_text_at(f, "kind", NULL),
		_i == 0 ? "link" : "job_slow");
	check_cause_is(&w, _i == 0 ? "communication" : "inside_program");
	json_decref(f);
}

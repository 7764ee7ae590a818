/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/answer/finding_json.h"
#include "collector/engine/params.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <stdlib.h>
#include <string.h>

/* Who is slow in a job of 16 hosts, racks of four: host 5, or its rack. */
static void
slow(struct fake_job *job, bool rack, double factor)
{
	for (size_t i = rack ? 4 : 5; i < (rack ? 8 : 6); i++)
		job->workers[i].slow = factor;
}

/* Steps of a second, as the product judges them, of which the first 600 are usual. */
static struct fake_job *
usual(bool rack)
{
	struct fake_job *job = fake_job_on(NULL, "train", 16);

	ls_engine_patience(job->engine, LS_SCALES_PATIENCE_S);
	job->own_s = 0.8;
	job->collective_s = 0.2;
	job->in_rack = rack ? 4 : 0;
	fake_job_declare(job);
	fake_job_run(job, 600);
	ck_assert_uint_eq(job->event_count, 0);
	return job;
}

/* Found 300 steps later. */
static struct fake_job *
found(bool rack)
{
	struct fake_job *job = usual(rack);

	slow(job, rack, 1.1);
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_stats(job).findings_open, 1);
	job->event_count = 0;
	return job;
}

/* All processes crash, and two minutes pass. */
static void
crash(struct fake_job *job)
{
	for (size_t i = 0; i < job->count; i++)
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_CRASHED,
			job->now_us);
	job->now_us += 120000000;
	ls_engine_advance(job->engine, job->now_us);
}

/* The next attempt begins, from a checkpoint 200 steps back. */
static void
next(struct fake_job *job)
{
	job->attempt++;
	job->step -= 200;
	fake_job_declare(job);
}

static void
check_text(const struct fake_job *job, const char *a, const char *b, const char *want)
{
	json_t *f = fake_job_finding(job, 0);
	const char *text = json_string_value(b == NULL ? json_object_get(f, a)
						       : ls_json_at(f, a, b));

	ck_assert_str_eq(text == NULL ? "" : text, want);
	json_decref(f);
}

static size_t
episodes(const struct fake_job *job)
{
	json_t *f = fake_job_finding(job, 0);
	size_t n = json_array_size(json_object_get(f, "episodes"));

	json_decref(f);
	return n;
}

/* What the finding says of itself, but its status, times and data quality. */
static char *
essence(const struct fake_job *job)
{
	static const char *const keys[] = { "id", "kind", "severity", "title", "onset",
		"subject", "evidence", "hypotheses", "impact", "actions" };
	json_t *f = fake_job_finding(job, 0), *e = json_object();
	char *text;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set(e, keys[i], json_object_get(f, keys[i]));
	text = json_dumps(e, JSON_SORT_KEYS);
	json_decref(e);
	json_decref(f);
	return text;
}

LS_CASE(attempts);

/* A crash and a restart (0), or an attempt that takes another's place (1), of a host (0, 1) or a rack (2, 3): the finding
 * says what it said, until the next attempt shows that it holds. Then that costs as much a step as before. */
LS_TEST_LOOP(attempts, finding_goes_on_in_the_next_attempt, 0, 4)
{
	struct fake_job *job = found(_i >= 2);
	char *was = essence(job), *is;
	double cost = fake_job_cost(job, 0);

	if (_i % 2 == 0)
		crash(job);
	next(job);
	fake_job_run(job, 60);
	is = essence(job);
	ck_assert_str_eq(is, was);
	check_text(job, "status", NULL, "open");
	check_text(job, "data_quality", "reference", "before_attempt");
	ck_assert_uint_eq(episodes(job), 0);
	fake_job_run(job, 240);
	check_text(job, "status", NULL, "open");
	ck_assert_uint_eq(fake_job_told(job, "updated"), job->event_count);
	ck_assert_uint_eq(fake_job_stats(job).findings_total, 1);
	ck_assert_uint_eq(episodes(job), 2);
	ck_assert_double_eq_tol(fake_job_cost(job, 0) / cost, 2, 0.25);
	free(was);
	free(is);
	fake_job_free(job);
}

/* Work wanders, correlated over a minute, while host 5 is slower by a part. */
static void
wander(struct fake_job *job, double drift[16], double sigma, double fault, int steps)
{
	while (steps-- > 0) {
		for (size_t i = 0; i < 16; i++) {
			drift[i] =
				0.985 * drift[i] + sigma * 0.17 * fake_job_normal(job);
			job->workers[i].slow = 1 + drift[i] + (i == 5 ? fault : 0);
		}
		fake_job_run(job, 1);
	}
}

/* Findings about workers that are cleared. That of the job becomes part of them, if it is first. */
static size_t
cleared_workers(const struct fake_job *job)
{
	size_t n = 0;

	for (size_t i = 0; i < fake_job_told(job, "opened"); i++) {
		json_t *f = fake_job_finding(job, i);

		n += strcmp(json_string_value(json_object_get(f, "kind")),
			     "job_slow") != 0 &&
			strcmp(json_string_value(json_object_get(f, "status")),
				"cleared") == 0;
		json_decref(f);
	}
	return n;
}

/* A fault of 5 or 15 %, found or not, stands for eight attempts or is gone after the first: nothing is opened again, and
 * only what is gone is cleared, once. */
LS_TEST_LOOP(attempts, noise_does_not_make_a_finding_flap, 0, LS_TEST_SEEDS(24))
{
	double sigma = (double[]){ 0.005, 0.02, 0.05 }[_i % 3],
	       fault = _i / 3 % 2 == 0 ? 0.05 : 0.15, drift[16] = { 0 };
	bool gone = _i / 6 % 2 == 1;
	struct fake_job *job = usual(false);

	job->random += 977 * (1 + (uint64_t)_i);
	wander(job, drift, sigma, 0, 1200);
	wander(job, drift, sigma, fault, 900);
	ck_assert_uint_eq(cleared_workers(job), 0);
	for (int k = 0; k < 8; k++) {
		if (k % 2 == 1)
			crash(job);
		next(job);
		wander(job, drift, sigma, gone ? 0 : fault, 200 + 100 * (k % 4));
	}
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 0);
	ck_assert_uint_le(cleared_workers(job), gone ? 1 : 0);
	fake_job_free(job);
}

/* Where all hosts of a rack are slow, the finding names the rack. Its hosts, and nobody else, say so, also when the
 * collector has started again: then nothing is found yet. */
LS_TEST_LOOP(attempts, hosts_of_a_rack_show_the_finding_of_the_rack, 0, 2)
{
	struct fake_job *job = found(true), *again = fake_job_on(NULL, "train", 16);
	json_t *f = fake_job_finding(job, 0), *hosts, *h;
	size_t i, shown = 0;

	ck_assert_int_eq(ls_finding_seed(again->engine, f), 0);
	fake_job_declare(again);
	hosts = fake_job_hosts(_i == 0 ? job : again);
	json_array_foreach(hosts, i, h)
	{
		const char *id = json_string_value(json_object_get(h, "finding"));
		json_int_t rank = json_integer_value(json_object_get(h, "rank"));

		if (id == NULL)
			continue;
		shown++;
		ck_assert(rank >= 4 && rank < 8);
		ck_assert_str_eq(id, ls_json_text_at(f, "id", NULL));
	}
	ck_assert_uint_eq(shown, _i == 0 ? 4 : 0);
	json_decref(hosts);
	json_decref(f);
	fake_job_free(again);
	fake_job_free(job);
}

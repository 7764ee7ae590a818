/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/engine/join/steps.h"
#include "collector/engine/finding/view.h"
#include "collector/history/replay.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_US 1700000000000000ll
#define MANY 64
#define TEXT_BYTES (8u * 1024 * 1024)

/* Serving replicas that never were: each serves batches of its own, of its own number,
 * when they come. */
struct replica {
	uint32_t handle;
	uint64_t step;
	int64_t begin_us;
	double slow, more; /* factors on its time and its load */
	bool loadless, waits;
};

struct fleet {
	struct ls_engine *engine;
	struct replica r[MANY];
	size_t count;
	int64_t now_us;
	uint64_t random;
	/* time = base + load * per_token (+ curve * load^2) */
	double base_s, per_token_s, curve;
	/* all begin at once, equally long: they wait for each other, unmarked */
	bool in_step;
	uint64_t opened, windows, steps;
	char *text; /* lines of a replay file, or NULL */
	size_t len;
};

static void
fleet_write(struct fleet *f, const char *line, int n)
{
	ck_assert(n > 0 && f->len + (size_t)n < TEXT_BYTES);
	memcpy(f->text + f->len, line, (size_t)n);
	f->len += (size_t)n;
}

static void
on_closed(void *arg, const struct ls_engine_close *c)
{
	struct fleet *f = arg;
	char line[16384];
	int n;

	f->windows += ls_window_is(c->step);
	f->steps += !ls_window_is(c->step);
	if (f->text == NULL)
		return;
	n = snprintf(line, sizeof(line),
		"{\"type\":\"close\",\"job\":\"%s\",\"attempt\":%d,\"step\":%llu,\"t\":%lld.%06lld,\"expected\":%u,"
		"\"used\":%u,\"missing\":[",
		c->job, (int)c->attempt, (unsigned long long)c->step,
		(long long)(c->t_us / 1000000), (long long)(c->t_us % 1000000),
		c->expected, c->used);
	for (size_t i = 0; i < c->missing_count; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%s%d",
			i > 0 ? "," : "", (int)c->missing[i]);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "]}\n");
	fleet_write(f, line, n);
}

static void
on_finding(void *arg, const char *id, const char *event, int64_t t_us, json_t *finding)
{
	(void)id;
	(void)t_us;
	(void)finding;
	((struct fleet *)arg)->opened += strcmp(event, "opened") == 0;
}

static void
fleet_declare(struct fleet *f, size_t i)
{
	struct ls_worker_info info = { .job = "serve",
		.attempt = -1,
		.rank = (int32_t)i,
		.world = (int32_t)f->count,
		.chips = 4 };

	(void)snprintf(info.host, sizeof(info.host), "h%zu", i);
	ck_assert_int_eq(ls_engine_worker(f->engine, &info, f->now_us, &f->r[i].handle),
		0);
}

static struct fleet *
fleet_new(size_t count)
{
	struct fleet *f = calloc(1, sizeof(*f));
	struct ls_engine_sink sink = {
		.arg = f, .closed = on_closed, .finding = on_finding
	};

	f->engine = ls_engine_new(&sink);
	f->count = count;
	f->now_us = START_US;
	f->random = 12345;
	f->base_s = 0.05;
	f->per_token_s = 0.0015;
	for (size_t i = 0; i < count; i++) {
		fleet_declare(f, i);
		f->r[i].slow = f->r[i].more = 1;
		f->r[i].step = 1000 * i; /* nobody counts like another */
		f->r[i].begin_us =
			START_US + (int64_t)(ls_test_random(&f->random) * 1e6);
	}
	return f;
}

static void
fleet_free(struct fleet *f)
{
	ls_engine_free(f->engine);
	free(f->text);
	free(f);
}

/* The next record of one replica. */
static struct ls_record
fleet_make(struct fleet *f, struct replica *r)
{
	double load = r->more * (50 + 100 * ls_test_random(&f->random)), noise = 0;
	struct ls_record rec = { .step = r->step, .t_begin_ns = r->begin_us * 1000 };
	double s;

	for (int i = 0; i < 12; i++)
		noise += ls_test_random(&f->random) / 12 - 1.0 / 24;
	s = (f->base_s + f->per_token_s * load + f->curve * load * load) * r->slow *
		(1 + 0.02 * noise);
	if (f->in_step)
		s = 0.2 + 0.001 * noise;
	rec.duration_ns = (uint64_t)(s * 1e6) * 1000;
	rec.phase_mask = 1u << LS_PHASE_COMPUTE;
	rec.phase_ns[LS_PHASE_COMPUTE] = rec.duration_ns;
	if (r->waits) {
		rec.phase_mask |= 1u << LS_PHASE_SYNC_WAIT;
		rec.phase_ns[LS_PHASE_SYNC_WAIT] = 1000;
		rec.phase_ns[LS_PHASE_COMPUTE] -= 1000;
	}
	if (!r->loadless) {
		rec.work_mask = 1u << LS_WORK_TOKENS;
		rec.work[LS_WORK_TOKENS] = floor(load);
	}
	return rec;
}

static void
fleet_line(struct fleet *f, size_t i, const struct ls_record *r)
{
	char line[512];

	if (f->text == NULL)
		return;
	fleet_write(f, line,
		snprintf(line, sizeof(line),
			"{\"job\":\"serve\",\"host\":\"h%zu\",\"rank\":%zu,\"world\":%zu,\"step\":%llu,\"t_begin\":%lld.%06lld,"
			"\"duration\":%.6f,\"phases\":{\"compute\":%.6f},\"work\":{\"tokens\":%.0f},\"chips\":4}\n",
			i, i, f->count, (unsigned long long)r->step,
			(long long)(r->t_begin_ns / 1000000000),
			(long long)(r->t_begin_ns / 1000 % 1000000),
			(double)r->duration_ns * 1e-9,
			(double)r->phase_ns[LS_PHASE_COMPUTE] * 1e-9,
			r->work[LS_WORK_TOKENS]));
}

/* Seconds pass: each replica's agent reports once in each, at a moment of its own. */
static void
fleet_run(struct fleet *f, size_t seconds)
{
	for (size_t s = 0; s < seconds * f->count; s++) {
		size_t i = s % f->count;
		struct replica *r = &f->r[i];

		f->now_us += 1000000 / (int64_t)f->count;
		for (;;) {
			struct fleet was = *f;
			struct ls_record rec = fleet_make(f, r);

			if (r->begin_us + (int64_t)rec.duration_ns / 1000 > f->now_us) {
				f->random = was.random; /* it is not done yet */
				break;
			}
			if (ls_engine_record(f->engine, r->handle, &rec, f->now_us) ==
				0)
				fleet_line(f, i, &rec);
			r->step++;
			r->begin_us += (int64_t)rec.duration_ns / 1000;
			if (!f->in_step) /* then it rests until there is more to do */
				r->begin_us +=
					(int64_t)(1e5 * ls_test_random(&f->random));
		}
		ls_engine_advance(f->engine, f->now_us);
	}
}

/* All processes end, one after the other. */
static void
fleet_end(struct fleet *f)
{
	char line[256];

	for (size_t i = 0; i < f->count; i++) {
		f->now_us += 1000;
		ls_engine_end(f->engine, f->r[i].handle, LS_END_ENDED, f->now_us);
		fleet_write(f, line,
			snprintf(line, sizeof(line),
				"{\"type\":\"end\",\"job\":\"serve\",\"attempt\":0,\"host\":\"h%zu\",\"rank\":%zu,"
				"\"t\":%lld.%06lld,\"how\":\"ended\"}\n",
				i, i, (long long)(f->now_us / 1000000),
				(long long)(f->now_us % 1000000)));
	}
}

static json_t *
fleet_finding(const struct fleet *f)
{
	json_t *all = ls_engine_findings(f->engine),
	       *one = json_incref(json_array_get(all, 0));

	json_decref(all);
	return one;
}

LS_CASE(found);

LS_TEST_LOOP(found, slow_replica_is_found_at_equal_load, 0, 3)
{
	struct fleet *f = fleet_new(8);
	json_t *one;
	uint64_t step;

	f->random += (uint64_t)_i * 7919;
	if (_i == 1) /* twice as slow for long sequences as for short ones */
		f->curve = 0.00001;
	fleet_run(f, 160);
	ck_assert_uint_eq(f->opened, 0);
	ck_assert_uint_gt(f->windows, 80);
	step = f->r[5].step;
	f->r[5].slow = 1.05;
	fleet_run(f, 60);
	ck_assert_uint_eq(f->opened, 1);
	one = fleet_finding(f);
	ck_assert_str_eq(json_string_value(json_object_get(one, "kind")), "straggler");
	ck_assert_str_eq(json_string_value(ls_json_at(one, "subject", "host")), "h5");
	ck_assert_str_eq(json_string_value(ls_json_at(one, "data_quality", "estimate")),
		"load");
	ck_assert_str_eq(json_string_value(ls_json_at(one, "impact", "method")),
		"load_residual_v1");
	/* its own steps, and its own share */
	ck_assert_double_eq_tol(
		(double)json_integer_value(ls_json_at(one, "onset", "step")),
		(double)step, 30);
	ck_assert_double_eq_tol(
		json_number_value(ls_json_at(one, "impact", "slowdown_ratio")), 1.05,
		0.01);
	ck_assert_double_eq_tol(
		json_number_value(ls_json_at(one, "impact", "chips_lost")),
		4 * (1 - 1 / 1.05), 0.05);
	ck_assert_double_eq_tol(
		json_number_value(ls_json_at(one, "impact", "share_ratio")), 0.125,
		1e-9);
	json_decref(one);
	f->r[5].slow = 1;
	fleet_run(f, 140);
	one = fleet_finding(f);
	ck_assert_str_eq(json_string_value(json_object_get(one, "status")), "cleared");
	json_decref(one);
	ck_assert_uint_eq(f->opened, 1);
	fleet_free(f);
}

LS_TEST(found, slow_from_the_start_is_found)
{
	struct fleet *f = fleet_new(24);
	json_t *one;

	f->r[3].slow = 1.08;
	fleet_run(f, 200);
	ck_assert_uint_eq(f->opened, 1);
	one = fleet_finding(f);
	ck_assert_str_eq(json_string_value(ls_json_at(one, "subject", "host")), "h3");
	json_decref(one);
	fleet_free(f);
}

LS_CASE(innocent);

LS_TEST_LOOP(innocent, more_load_is_no_slowness, 0, 3)
{
	struct fleet *f = fleet_new(8);

	f->random += (uint64_t)_i * 104729;
	fleet_run(f, 160);
	f->r[2].more = 1.4; /* within what others have, now and then */
	f->r[3].more = 4; /* where nobody else is */
	f->r[4].more = 0.3;
	fleet_run(f, 300);
	ck_assert_uint_eq(f->opened, 0);
	fleet_free(f);
}

LS_TEST(innocent, without_load_nobody_is_blamed)
{
	struct fleet *f = fleet_new(8);

	for (size_t i = 0; i < f->count; i++)
		f->r[i].loadless = true;
	f->r[1].more = 2;
	fleet_run(f, 160);
	f->r[5].slow = 1.5;
	fleet_run(f, 200);
	ck_assert_uint_gt(f->windows, 200);
	ck_assert_uint_eq(f->opened, 0);
	fleet_free(f);
}

LS_TEST(innocent, two_replicas_do_not_judge_each_other)
{
	struct fleet *f = fleet_new(2);

	fleet_run(f, 160);
	f->r[1].slow = 1.5;
	fleet_run(f, 200);
	ck_assert_uint_gt(f->windows, 200);
	ck_assert_uint_eq(f->opened, 0);
	fleet_free(f);
}

LS_CASE(kind);

LS_TEST(kind, steps_in_common_stay_steps)
{
	struct fleet *f = fleet_new(8);

	f->in_step = true;
	for (size_t i = 0; i < f->count; i++) {
		f->r[i].step = 7;
		f->r[i].begin_us = START_US;
	}
	fleet_run(f, 200);
	ck_assert_uint_eq(f->windows, 0);
	ck_assert_uint_gt(f->steps, 800);
	fleet_free(f);
}

LS_TEST(kind, marked_waits_keep_steps_and_bring_them_back)
{
	struct fleet *f = fleet_new(4);
	uint64_t windows;

	for (size_t i = 0; i < f->count; i++)
		f->r[i].waits = true;
	fleet_run(f, 100);
	ck_assert_uint_eq(f->windows, 0);
	for (size_t i = 0; i < f->count; i++)
		f->r[i].waits = false;
	fleet_run(f, 200);
	windows = f->windows;
	ck_assert_uint_gt(windows, 50);
	for (size_t i = 0; i < f->count; i++)
		f->r[i].waits = true;
	fleet_run(f, 200);
	ck_assert_uint_lt(f->windows, windows + 60);
	fleet_free(f);
}

/* Idle ones, and one that ends and comes back, keep nobody waiting and no attempt from
 * going on. */
LS_TEST(kind, a_replica_comes_and_goes_alone)
{
	struct fleet *f = fleet_new(6);
	uint64_t windows;
	json_t *job;

	fleet_run(f, 160);
	ls_engine_end(f->engine, f->r[2].handle, LS_END_CRASHED, f->now_us);
	f->r[3].begin_us += 40000000; /* nothing to do for a while */
	f->r[2].begin_us = f->now_us + 20000000;
	windows = f->windows;
	fleet_run(f, 19);
	ck_assert_uint_gt(f->windows, windows + 5);
	f->r[2].step = 0;
	fleet_declare(f, 2);
	windows = f->windows;
	fleet_run(f, 60);
	ck_assert_uint_gt(f->windows, windows + 50);
	ck_assert_int_eq(ls_view_job(f->engine, "serve", f->now_us, &job), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(job, "attempt")), 0);
	ck_assert(json_is_true(json_object_get(job, "asynchronous")));
	ck_assert_int_ge(json_integer_value(json_object_get(job, "step")),
		START_US / 1000000);
	json_decref(job);
	ck_assert_uint_eq(f->opened, 0);
	fleet_free(f);
}

LS_TEST(kind, time_that_runs_backwards_is_refused)
{
	struct fleet *f = fleet_new(3);
	struct ls_engine_stats before, after;
	struct ls_record rec;

	fleet_run(f, 160);
	ls_engine_stats(f->engine, &before);
	rec = fleet_make(f, &f->r[0]);
	rec.t_begin_ns -= 5000000000;
	ck_assert_int_eq(ls_engine_record(f->engine, f->r[0].handle, &rec, f->now_us),
		-LS_EDUPLICATE);
	ls_engine_stats(f->engine, &after);
	ck_assert_uint_eq(after.duplicates, before.duplicates + 1);
	fleet_free(f);
}

LS_CASE(restart);

/* The collector starts again with its finding, and reads no record back. A replica that is
 * slower is given less to do. */
LS_TEST_LOOP(restart, a_slow_replica_outlives_a_restart_without_its_past, 0, 2)
{
	struct fleet *f = fleet_new(8), *next = fleet_new(8);
	double was, blame_s;
	uint64_t step;
	json_t *one;

	fleet_run(f, 160);
	f->r[5].slow = 1.05;
	f->r[5].more = _i == 0 ? 1 : 0.9;
	fleet_run(f, 100);
	one = fleet_finding(f);
	ck_assert_int_eq(ls_engine_seed_finding(next->engine, one), 0);
	was = json_number_value(ls_json_at(one, "impact", "chip_hours_lost_total"));
	blame_s = json_number_value(ls_json_at(one, "impact", "blame_s"));
	json_decref(one);
	next->now_us = f->now_us;
	memcpy(next->r, f->r, sizeof(f->r));
	step = next->r[5].step;
	fleet_run(next, 500);
	one = fleet_finding(next);
	ck_assert_uint_eq(next->opened, 0);
	ck_assert_str_eq(ls_json_text_at(one, "status", NULL), "open");
	ck_assert_int_eq(json_integer_value(ls_json_at(one, "persistence", "reopened")),
		0);
	ck_assert_str_eq(ls_json_text_at(one, "data_quality", "reference"),
		"before_restart");
	ck_assert_double_eq_tol(
		(json_number_value(ls_json_at(one, "impact", "chip_hours_lost_total")) -
			was) *
			3600 / 4 / blame_s / (double)(next->r[5].step - step),
		0.9, 0.1);
	json_decref(one);
	next->r[5].slow = 1;
	fleet_run(next, 500);
	one = fleet_finding(next);
	ck_assert_str_eq(ls_json_text_at(one, "status", NULL), "cleared");
	json_decref(one);
	fleet_free(next);
	fleet_free(f);
}

/* All replicas crash and begin again: the finding waits, and is decided by their new steps alone. Replicas that begin again
 * are of the same attempt. */
LS_TEST_LOOP(restart, finding_of_a_replica_outlives_a_crash_of_the_job, 0, 2)
{
	struct fleet *f = fleet_new(8);
	double was, is;
	json_t *one;

	fleet_run(f, 160);
	f->r[5].slow = 1.1;
	fleet_run(f, 100);
	for (size_t i = 0; i < 8; i++)
		ls_engine_end(f->engine, f->r[i].handle, LS_END_CRASHED, f->now_us);
	one = fleet_finding(f);
	ck_assert_str_eq(ls_json_text_at(one, "status", NULL), "open");
	ck_assert_str_eq(ls_json_text_at(one, "data_quality", "reference"),
		"before_attempt");
	was = json_number_value(ls_json_at(one, "impact", "chip_hours_lost_total"));
	json_decref(one);
	f->now_us += 60000000;
	for (size_t i = 0; i < 8; i++) {
		fleet_declare(f, i);
		f->r[i].begin_us = f->now_us;
	}
	f->r[5].slow = _i == 0 ? 1.1 : 1;
	fleet_run(f, 500);
	one = fleet_finding(f);
	ck_assert_uint_eq(f->opened, 1);
	ck_assert_str_eq(ls_json_text_at(one, "status", NULL),
		_i == 0 ? "open" : "cleared");
	is = json_number_value(ls_json_at(one, "impact", "chip_hours_lost_total"));
	if (_i == 0)
		ck_assert_double_gt(is, 2 * was);
	else
		ck_assert_double_eq(is, was);
	json_decref(one);
	fleet_free(f);
}

LS_CASE(replay);

/* What was told live is told again from the stored records and closings, to the byte.
 */
LS_TEST_LOOP(replay, replay_says_the_same, 0, 2)
{
	struct fleet *f = fleet_new(6);
	struct ls_replay_stats stats;
	json_t *result, *live;
	char *a, *b;

	f->text = malloc(TEXT_BYTES);
	fleet_run(f, 150);
	f->r[4].slow = 1.1;
	fleet_run(f, 70);
	f->r[4].slow = _i == 0 ? 1 : 1.1;
	fleet_run(f, 130);
	ck_assert_uint_eq(f->opened, 1);
	fleet_end(f);
	ck_assert_int_eq(
		ls_replay_text(f->text, f->len, 0, NULL, NULL, &stats, &result), 0);
	ck_assert_uint_eq(stats.bad_lines, 0);
	live = ls_engine_findings(f->engine);
	ck_assert_str_eq(
		json_string_value(json_object_get(json_array_get(live, 0), "status")),
		"cleared");
	ck_assert((json_object_get(json_array_get(live, 0), "cleared_reason") !=
			  NULL) == (_i == 1));
	a = json_dumps(live, JSON_SORT_KEYS);
	b = json_dumps(json_object_get(result, "findings"), JSON_SORT_KEYS);
	ck_assert(strcmp(a, b) == 0);
	free(a);
	free(b);
	json_decref(live);
	json_decref(result);
	fleet_free(f);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/finding_json.h"
#include "collector/engine/finding/finding.h"
#include "proto/base/json.h"
#include "tests/support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define ONSET_US 1700000000123000ll

static void
drop(struct ls_finding *f)
{
	ls_finding_forget(f);
	ls_finding_fini(f);
}

static struct ls_finding
sample(void)
{
	struct ls_finding f = { .id = "F-AB12",
		.kind = LS_KIND_STRAGGLER,
		.scope = LS_SCOPE_HOST,
		.status = LS_FINDING_OPEN,
		.severity = LS_SEVERITY_WARNING,
		.who = { .job = "train",
			.host = "h3",
			.slice = "s0",
			.role = "trainer",
			.rank = 3 },
		.occurrence = 2,
		.reopened = 1,
		.onset_step = 120,
		.last_step = 180,
		.accounted_step = 180,
		.onset_us = ONSET_US,
		.detected_us = ONSET_US + 2000000,
		.updated_us = ONSET_US + 6000000,
		.uncertainty_steps = 3,
		.steps_seen = 61,
		.slowest_ratio = 0.95,
		.step_s = 0.11,
		.without_s = 0.1,
		.before_s = NAN,
		.blame_s = 0.01,
		.slowdown = 1.1,
		.chips_lost = 2.9,
		.chip_hours = 0.05,
		.chips = 32,
		.workers = 8,
		.workers_used = 8,
		.hosts = 8,
		.clock_err_s = NAN };

	f.evidence[0] = (struct ls_evidence){ .signal = LS_SIGNAL_INPUT,
		.metric = "phase.input_wait_s",
		.unit = "s",
		.subject = 0.012,
		.p10 = 0.001,
		.p50 = 0.001,
		.p90 = 0.002,
		.peers = 7,
		.per_step_s = 1,
		.robust_z = NAN };
	f.evidence[1] = (struct ls_evidence){ .signal = LS_SIGNAL_CPU,
		.metric = "job.cpu_seconds_total",
		.unit = "s/s",
		.subject = NAN,
		.p10 = NAN,
		.p50 = NAN,
		.p90 = NAN,
		.robust_z = NAN };
	f.evidence[2] = (struct ls_evidence){ .signal = LS_SIGNAL_GC,
		.metric = "phase.gc_s",
		.unit = "s",
		.subject = 0,
		.p10 = 0,
		.p50 = 0,
		.p90 = 0,
		.peers = 7,
		.per_step_s = 1,
		.robust_z = 0 };
	f.evidence_count = 3;
	ls_cause_diagnose(f.evidence, 3, 0.011, true, true, &f.diagnosis);
	return f;
}

static const char *
text_at(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

LS_CASE(all);

LS_TEST(all, names_are_those_of_the_json)
{
	ck_assert_str_eq(ls_finding_name(LS_NAMES_KIND, LS_KIND_LINK), "link");
	ck_assert_str_eq(ls_finding_name(LS_NAMES_SCOPE, LS_SCOPE_RANK), "rank");
	ck_assert_str_eq(ls_finding_name(LS_NAMES_STATUS, LS_FINDING_REOPENED),
		"reopened");
	ck_assert_str_eq(ls_finding_name(LS_NAMES_SEVERITY, LS_SEVERITY_CRITICAL),
		"critical");
	ck_assert_ptr_null(ls_finding_name(LS_NAMES_KIND, LS_KIND_COUNT));
	ck_assert_ptr_null(ls_finding_name(LS_NAMES_SCOPE, LS_SCOPE_COUNT));
	ck_assert_ptr_null(ls_finding_name(LS_NAMES_STATUS, LS_FINDING_STATUS_COUNT));
	ck_assert_ptr_null(ls_finding_name(LS_NAMES_SEVERITY, LS_SEVERITY_COUNT));
}

/* Whatever happens in whatever state. */
LS_TEST(all, a_life_has_no_dead_end)
{
	for (unsigned is = 0; is < LS_FINDING_STATUS_COUNT; is++) {
		struct ls_finding f = { .status = (enum ls_finding_status)is };
		bool open = ls_finding_is_open(&f);

		f.status = ls_finding_next(is, LS_EVENT_NAMED);
		ck_assert(ls_finding_is_open(&f) && !ls_finding_waits(&f));
		f.status = ls_finding_next(is, LS_EVENT_LEFT);
		ck_assert(ls_finding_is_open(&f) == open);
		ck_assert(ls_finding_waits(&f) == open);
		f.status = ls_finding_next(is, LS_EVENT_OVER);
		ck_assert(!ls_finding_is_open(&f));
	}
}

LS_TEST(all, severity_is_the_share_of_chips_lost)
{
	ck_assert_int_eq(ls_finding_severity(1), LS_SEVERITY_INFO);
	ck_assert_int_eq(ls_finding_severity(NAN), LS_SEVERITY_INFO);
	ck_assert_int_eq(ls_finding_severity(1 / 0.981), LS_SEVERITY_INFO);
	ck_assert_int_eq(ls_finding_severity(1 / 0.979), LS_SEVERITY_WARNING);
	ck_assert_int_eq(ls_finding_severity(1 / 0.901), LS_SEVERITY_WARNING);
	ck_assert_int_eq(ls_finding_severity(1 / 0.899), LS_SEVERITY_CRITICAL);
}

LS_TEST(all, ids_differ_by_subject_and_occurrence)
{
	struct ls_finding f = sample(), g = sample();
	char a[LS_FINDING_ID_BYTES], b[LS_FINDING_ID_BYTES];

	ck_assert_int_eq(ls_finding_make_id(&f, 0, a), 0);
	ck_assert_int_eq(ls_finding_make_id(&g, 0, b), 0);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(strlen(a), 6);
	ck_assert(strncmp(a, "F-", 2) == 0);
	g.kind = LS_KIND_IMBALANCE; /* may be refined: not part of it */
	ck_assert_int_eq(ls_finding_make_id(&g, 0, b), 0);
	ck_assert_str_eq(a, b);
	g.occurrence = 3;
	ck_assert_int_eq(ls_finding_make_id(&g, 0, b), 0);
	ck_assert_str_ne(a, b);
	g = sample();
	g.who.rank = 4;
	ck_assert_int_eq(ls_finding_make_id(&g, 0, b), 0);
	ck_assert_str_ne(a, b);
	ck_assert_int_eq(ls_finding_make_id(&f, 2, b), 0);
	ck_assert_uint_eq(strlen(b), 8);
	ck_assert_int_eq(ls_finding_make_id(&f, 9, b), -LS_ELIMIT);
}

LS_TEST(all, subjects_are_workers_or_the_job)
{
	struct ls_finding a = sample(), b = sample();

	ck_assert(ls_finding_same_subject(&a, &b));
	b.scope = LS_SCOPE_RANK; /* a neighbour joined it on its host */
	ck_assert(ls_finding_same_subject(&a, &b));
	memcpy(b.who.host, "h4", 3);
	ck_assert(!ls_finding_same_subject(&a, &b));
	b.scope = LS_SCOPE_JOB;
	ck_assert(!ls_finding_same_subject(&a, &b));
	a.scope = LS_SCOPE_JOB;
	ck_assert(ls_finding_same_subject(&a, &b));
	memcpy(b.who.job, "other", 6);
	ck_assert(!ls_finding_same_subject(&a, &b));
}

LS_TEST(all, reopened_is_open)
{
	struct ls_finding f = sample();

	ck_assert(ls_finding_is_open(&f));
	f.status = LS_FINDING_REOPENED;
	ck_assert(ls_finding_is_open(&f));
	f.status = LS_FINDING_CLEARED;
	ck_assert(!ls_finding_is_open(&f));
}

/* What is in a few steps only, and what costs nothing, does not delay every step. */
LS_TEST(all, title_says_how_often_and_whether_anybody_waits)
{
	struct ls_finding f = sample();

	f.intermittent = true;
	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_str_eq(text_at(f.json, "title"),
		"h3 rank 3 delays some of the steps, by 10 ms a step on average: waits for its input");
	f.blame_s = 0.0001;
	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_str_eq(text_at(f.json, "title"),
		"h3 rank 3 is slower than it should be, but nobody waits for it now: waits for its input");
	f.scope = LS_SCOPE_SLICE;
	(void)snprintf(f.who.slice, sizeof(f.who.slice), "b");
	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_str_eq(text_at(f.json, "title"),
		"slice b is slower than it should be, but nobody waits for it now: waits for its input");
	json_decref(f.json);
}

static const struct {
	double blame_s;
	const char *title;
} delays[] = {
	{ 0.0123, "h3 rank 3 delays every step by 12.3 ms: waits for its input" },
	{ 0.9994, "h3 rank 3 delays every step by 999 ms: waits for its input" },
	{ 0.9996, "h3 rank 3 delays every step by 1 s: waits for its input" },
	{ 2.994, "h3 rank 3 delays every step by 2.99 s: waits for its input" },
	{ 999.7, "h3 rank 3 delays every step by 1000 s: waits for its input" },
	{ 1234, "h3 rank 3 delays every step by 1234 s: waits for its input" },
};

LS_TEST_EACH(all, title_has_seconds_from_a_second_on, delays)
{
	struct ls_finding f = sample();

	f.blame_s = delays[_i].blame_s;
	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_str_eq(text_at(f.json, "title"), delays[_i].title);
	json_decref(f.json);
}

LS_TEST(all, json_says_what_is_known_and_null_for_the_rest)
{
	struct ls_finding f = sample();
	const json_t *impact, *evidence, *row, *quality;

	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_str_eq(text_at(f.json, "id"), "F-AB12");
	ck_assert_str_eq(text_at(f.json, "title"),
		"h3 rank 3 delays every step by 10 ms: waits for its input");
	ck_assert_str_eq(text_at(f.json, "first_detected_at"),
		"2023-11-14T22:13:22.123Z");
	ck_assert(json_is_null(json_object_get(f.json, "cleared_at")));
	impact = json_object_get(f.json, "impact");
	ck_assert(json_is_null(json_object_get(impact, "step_time_before_s")));
	ck_assert_double_eq(json_number_value(json_object_get(impact, "chips_lost")),
		2.9);
	evidence = json_object_get(f.json, "evidence");
	ck_assert_uint_eq(json_array_size(evidence), 3);
	row = json_array_get(evidence, 0);
	ck_assert_str_eq(text_at(row, "role"), "supports");
	ck_assert(json_is_null(json_object_get(row, "robust_z")));
	row = json_array_get(evidence, 2);
	ck_assert_str_eq(text_at(row, "role"), "excludes");
	ck_assert_str_eq(
		json_string_value(json_array_get(json_object_get(row, "excludes"), 0)),
		"garbage_collection");
	quality = json_object_get(f.json, "data_quality");
	ck_assert(json_is_null(json_object_get(quality, "clock_err_ms")));
	ck_assert_str_eq(json_string_value(json_array_get(
				 json_object_get(quality, "missing"), 0)),
		"job.cpu_seconds_total");
	ck_assert_str_eq(text_at(quality, "step_source"), "marker");
	ck_assert_ptr_null(json_object_get(quality, "step_confidence"));
	f.who.step_source = LS_STEP_LOG;
	f.who.step_confidence = 0.9;
	f.chips = 0; /* not known: no cost in chips */
	ck_assert_int_eq(ls_finding_render(&f), 0);
	impact = json_object_get(f.json, "impact");
	ck_assert(json_is_null(json_object_get(impact, "chips_lost")));
	quality = json_object_get(f.json, "data_quality");
	ck_assert_str_eq(text_at(quality, "step_source"), "log");
	ck_assert_double_eq(
		json_number_value(json_object_get(quality, "step_confidence")), 0.9);
	drop(&f);
	ck_assert_ptr_null(f.json);
}

LS_TEST(all, finding_of_the_job_names_no_host)
{
	struct ls_finding f = sample();
	const json_t *subject;

	f.scope = LS_SCOPE_JOB;
	f.comm = true;
	ck_assert_int_eq(ls_finding_render(&f), 0);
	subject = json_object_get(f.json, "subject");
	ck_assert_str_eq(text_at(subject, "scope"), "job");
	ck_assert_ptr_null(json_object_get(subject, "host"));
	ck_assert(strstr(text_at(f.json, "title"), "h3") == NULL);
	ck_assert_str_eq(text_at(json_object_get(f.json, "impact"), "method"),
		"collective_excess_v1");
	drop(&f);
}

/* A link is one subject, from whichever end it is named, with one id; a slice is
 * another. */
LS_TEST(all, links_and_slices_are_subjects)
{
	struct ls_finding a = sample(), b = sample(), g;
	char id[LS_FINDING_ID_BYTES];

	a.scope = b.scope = LS_SCOPE_LINK;
	a.comm = true;
	(void)snprintf(a.peer_host, sizeof(a.peer_host), "%s", "h4");
	a.peer_rank = 4;
	(void)snprintf(b.peer_host, sizeof(b.peer_host), "%s", a.who.host);
	b.peer_rank = a.who.rank;
	(void)snprintf(b.who.host, sizeof(b.who.host), "%s", "h4");
	b.who.rank = 4;
	ck_assert(ls_finding_same_subject(&a, &b));
	ck_assert_int_eq(ls_finding_make_id(&a, 0, a.id), 0);
	ck_assert_int_eq(ls_finding_make_id(&b, 0, id), 0);
	ck_assert_str_eq(a.id, id);
	ck_assert_int_eq(ls_finding_render(&a), 0);
	ck_assert_int_eq(ls_finding_parse(a.json, &g), 0);
	ck_assert(ls_finding_same_subject(&g, &b));
	ck_assert(g.comm);
	drop(&g);
	drop(&a);
	a.scope = LS_SCOPE_SLICE;
	ck_assert(!ls_finding_same_subject(&a, &b));
	ck_assert_int_eq(ls_finding_render(&a), 0);
	ck_assert_int_eq(ls_finding_parse(a.json, &g), 0);
	ck_assert(ls_finding_same_subject(&g, &a));
	(void)snprintf(g.who.slice, sizeof(g.who.slice), "%s", "other");
	ck_assert(!ls_finding_same_subject(&g, &a));
	drop(&g);
	drop(&a);
}

/* A group is the same by what its workers share; its hosts come back from the JSON. */
LS_TEST(all, groups_are_told_by_what_is_shared)
{
	struct ls_finding a = sample(), b, g;
	char id[LS_FINDING_ID_BYTES];
	json_t *subject;

	a.scope = LS_SCOPE_GROUP;
	a.way = LS_WAY_RACK;
	(void)snprintf(a.group, sizeof(a.group), "r7");
	a.members = calloc(2, sizeof(*a.members));
	(void)snprintf(a.members[0], sizeof(a.members[0]), "h1");
	(void)snprintf(a.members[1], sizeof(a.members[1]), "h2");
	a.member_count = 2;
	a.member_hosts = 2;
	b = a;
	b.who.rank++; /* another of its workers */
	ck_assert(ls_finding_same_subject(&a, &b));
	ck_assert_int_eq(ls_finding_make_id(&a, 0, a.id), 0);
	ck_assert_int_eq(ls_finding_make_id(&b, 0, id), 0);
	ck_assert_str_eq(a.id, id);
	b.way = LS_WAY_STAGE;
	ck_assert(!ls_finding_same_subject(&a, &b));
	ck_assert_int_eq(ls_finding_make_id(&b, 0, id), 0);
	ck_assert_str_ne(a.id, id);
	ck_assert_int_eq(ls_finding_render(&a), 0);
	subject = json_object_get(a.json, "subject");
	ck_assert_str_eq(text_at(subject, "by"), "rack");
	ck_assert_str_eq(text_at(subject, "name"), "r7");
	ck_assert_int_eq(json_integer_value(json_object_get(subject, "host_count")), 2);
	ck_assert_str_eq(text_at(a.json, "pattern"), "group_wide");
	ck_assert_int_eq(ls_finding_parse(a.json, &g), 0);
	ck_assert(ls_finding_same_subject(&g, &a));
	ck_assert_uint_eq(g.member_count, 2);
	ck_assert_str_eq(g.members[1], "h2");
	drop(&g);
	ck_assert_int_eq(json_object_set_new(subject, "by", json_string("moon")), 0);
	ck_assert_int_eq(ls_finding_parse(a.json, &g), -LS_EPARSE);
	ck_assert_int_eq(json_object_set_new(subject, "by", json_string("rack")), 0);
	ck_assert_int_eq(json_object_set_new(subject, "host_count", json_integer(-1)),
		0);
	ck_assert_int_eq(ls_finding_parse(a.json, &g), -LS_EPARSE);
	ck_assert_int_eq(json_object_set_new(subject, "host_count", json_integer(2)),
		0);
	ck_assert_int_eq(json_array_set_new(json_object_get(subject, "hosts"), 0,
				 json_integer(1)),
		0);
	ck_assert_int_eq(ls_finding_parse(a.json, &g), -LS_EPARSE);
	drop(&a);
}

LS_TEST(all, parse_reads_back_what_render_wrote)
{
	struct ls_finding f = sample(), g;

	f.chip_hours = 1.25;
	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_int_eq(ls_finding_parse(f.json, &g), 0);
	ck_assert_str_eq(g.id, f.id);
	ck_assert_str_eq(g.who.job, "train");
	ck_assert_str_eq(g.who.host, "h3");
	ck_assert_str_eq(g.who.slice, "s0");
	ck_assert_str_eq(g.who.role, "trainer");
	ck_assert_int_eq(g.who.rank, 3);
	ck_assert_int_eq(g.kind, f.kind);
	ck_assert_int_eq(g.scope, f.scope);
	ck_assert_int_eq(g.status, f.status);
	ck_assert_int_eq(g.severity, f.severity);
	ck_assert_uint_eq(g.onset_step, 120);
	ck_assert_uint_eq(g.last_step, 180);
	ck_assert_uint_eq(g.accounted_step, 180);
	ck_assert_uint_eq(g.occurrence, 2);
	ck_assert_uint_eq(g.reopened, 1);
	ck_assert_int_eq(g.onset_us, ONSET_US);
	ck_assert_int_eq(g.updated_us, f.updated_us);
	ck_assert_int_eq(g.cleared_us, 0);
	ck_assert_double_eq(g.chip_hours, 1.25);
	ck_assert_double_eq(g.slowdown, 1.1);
	ck_assert(json_equal(g.json, f.json));
	drop(&f);
	drop(&g);
}

LS_TEST(all, a_cause_rests_on_its_own_evidence)
{
	struct ls_finding f = sample();
	const json_t *input, *gc;

	f.evidence[2].subject = 0.004;
	ls_cause_diagnose(f.evidence, 3, 0.011, true, true, &f.diagnosis);
	ck_assert_int_eq(ls_finding_render(&f), 0);
	input = json_array_get(json_object_get(f.json, "hypotheses"), 0);
	gc = json_array_get(json_object_get(f.json, "hypotheses"), 1);
	ck_assert_str_eq(text_at(input, "cause"), "input_stall");
	ck_assert_str_eq(text_at(gc, "cause"), "garbage_collection");
	input = json_object_get(input, "because");
	gc = json_object_get(gc, "because");
	ck_assert_uint_eq(json_array_size(input), 1);
	ck_assert_str_eq(json_string_value(json_array_get(input, 0)), "e1");
	ck_assert_uint_eq(json_array_size(gc), 1);
	ck_assert_str_eq(json_string_value(json_array_get(gc, 0)), "e3");
	drop(&f);
}

LS_TEST(all, episodes_are_read_back_and_few)
{
	struct ls_finding f = sample(), g;
	const json_t *episodes;
	double cost = 0;

	f.chip_hours = 1;
	for (unsigned i = 0; i < LS_FINDING_EPISODES_MAX + 4; i++) {
		f.since_step = 200 * i;
		f.since_us = ONSET_US + 1000000 * i;
		f.since_chip_hours = f.chip_hours;
		f.chip_hours += 0.25;
		f.last_step = 200 * i + 100;
		f.cleared_us = f.since_us + 500000;
		ck_assert_int_eq(ls_finding_end_episode(&f), 0);
	}
	f.since_step = 9000;
	f.since_us = ONSET_US + 90000000;
	f.since_chip_hours = f.chip_hours;
	f.chip_hours += 0.5;
	f.cleared_us = 0;
	ck_assert_int_eq(ls_finding_render(&f), 0);
	episodes = json_object_get(f.json, "episodes");
	ck_assert_uint_eq(json_array_size(episodes), LS_FINDING_EPISODES_MAX);
	/* the oldest are one by now: it begins with the first, and all is paid */
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(episodes, 0),
				 "from_step")),
		0);
	for (size_t i = 0; i < json_array_size(episodes); i++)
		cost += json_number_value(json_object_get(json_array_get(episodes, i),
			"chip_hours_lost"));
	ck_assert_double_eq_tol(cost, f.chip_hours - 1, 1e-6);
	ck_assert_int_eq(ls_finding_parse(f.json, &g), 0);
	ck_assert_uint_eq(g.since_step, 9000);
	ck_assert_int_eq(g.since_us, f.since_us);
	ck_assert_double_eq_tol(g.since_chip_hours, f.since_chip_hours, 1e-6);
	ck_assert_uint_eq(g.episodes, LS_FINDING_EPISODES_MAX - 1);
	ck_assert_int_eq(ls_finding_render(&g), 0);
	ck_assert(json_equal(json_object_get(f.json, "episodes"),
		json_object_get(g.json, "episodes")));
	drop(&g);
	ck_assert_int_eq(json_object_set_new(f.json, "episodes", json_array()), 0);
	ck_assert_int_eq(ls_finding_parse(f.json, &g), -LS_EPARSE);
	drop(&f);
}

LS_TEST(all, parsed_finding_keeps_what_is_not_known_anew)
{
	struct ls_finding f = sample(), g;
	json_t *evidence;

	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_int_eq(ls_finding_parse(f.json, &g), 0);
	evidence = json_incref(json_object_get(f.json, "evidence"));
	g.status = LS_FINDING_CLEARED;
	g.cleared_us = ONSET_US + 9000000;
	g.last_step = 200;
	ck_assert_int_eq(ls_finding_render(&g), 0);
	ck_assert_str_eq(text_at(g.json, "status"), "cleared");
	ck_assert_str_eq(text_at(g.json, "cleared_at"), "2023-11-14T22:13:29.123Z");
	ck_assert_int_eq(json_integer_value(json_object_get(g.json, "last_step")), 200);
	ck_assert(json_equal(json_object_get(g.json, "evidence"), evidence));
	ck_assert_str_eq(text_at(f.json, "status"), "open"); /* the source is its own */
	json_decref(evidence);
	drop(&f);
	drop(&g);
}

LS_TEST(all, why_it_was_cleared_is_read_back_and_goes_when_it_is_open_again)
{
	struct ls_finding f = sample(), g;

	f.status = LS_FINDING_CLEARED;
	memcpy(f.part_of, "F-7QWE", 7);
	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_str_eq(text_at(f.json, "cleared_reason"), "part_of");
	ck_assert_int_eq(ls_finding_parse(f.json, &g), 0);
	ck_assert_str_eq(g.part_of, "F-7QWE");
	ck_assert_uint_eq(g.reason, LS_REASON_CALM);
	ck_assert_int_eq(ls_finding_render(&g), 0);
	ck_assert_str_eq(text_at(g.json, "part_of"), "F-7QWE");
	g.status = LS_FINDING_REOPENED;
	ck_assert_int_eq(ls_finding_render(&g), 0);
	ck_assert_ptr_null(json_object_get(g.json, "cleared_reason"));
	ck_assert_ptr_null(json_object_get(g.json, "part_of"));
	drop(&f);
	drop(&g);
}

/* One change each that makes it no finding of ours. */
LS_TEST_LOOP(all, parse_refuses_what_is_not_a_finding, 0, 13)
{
	static const struct {
		const char *outer, *inner, *value;
	} rows[] = {
		{ "schema_version", NULL, "2" },
		{ "id", NULL, "\"\"" },
		{ "id", NULL, "7" },
		{ "id", NULL, "\"F-012345678901234567890123456789\"" },
		{ "kind", NULL, "\"ghost\"" },
		{ "status", NULL, "null" },
		{ "severity", NULL, "\"\"" },
		{ "subject", NULL, "[]" },
		{ "subject", "scope", "\"planet\"" },
		{ "job", "id", "\"\"" },
		{ "job", NULL, "null" },
		{ "onset", "step", "\"12\"" },
		{ "onset", NULL, "{}" },
	};
	struct ls_finding f = sample(), g = { .id = "untouched" };
	json_t *value, *outer;
	char err[64];

	ck_assert_int_eq(ls_finding_render(&f), 0);
	ck_assert_int_eq(ls_json_parse(rows[_i].value, strlen(rows[_i].value), &value,
				 err, sizeof(err)),
		0);
	outer = rows[_i].inner == NULL ? f.json
				       : json_object_get(f.json, rows[_i].outer);
	ck_assert_int_eq(
		json_object_set_new(outer,
			rows[_i].inner == NULL ? rows[_i].outer : rows[_i].inner,
			value),
		0);
	ck_assert_int_eq(ls_finding_parse(f.json, &g), -LS_EPARSE);
	ck_assert_str_eq(g.id, "untouched");
	drop(&f);
}

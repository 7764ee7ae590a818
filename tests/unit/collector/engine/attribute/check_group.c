/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/attribute/group.h"
#include "collector/engine/params.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

#define WORKERS 16

/* Racks of four, shards of four dealt out in turn, slices of eight. */
struct parts {
	uint32_t rack[WORKERS], shard[WORKERS], slice[WORKERS];
	struct ls_group_part part[3];
	double excess_s[WORKERS];
};

static void
parts_init(struct parts *p)
{
	memset(p, 0, sizeof(*p));
	for (uint32_t i = 0; i < WORKERS; i++) {
		p->rack[i] = i / 4;
		p->shard[i] = i % 4;
		p->slice[i] = i / 8;
	}
	p->part[0] = (struct ls_group_part){ p->slice, LS_PEERS };
	p->part[1] = (struct ls_group_part){ p->rack, LS_PEERS };
	p->part[2] = (struct ls_group_part){ p->shard, LS_PEERS };
}

static size_t
find(const struct parts *p, size_t who)
{
	return ls_group_find(p->excess_s, WORKERS, who, p->part, 3);
}

LS_CASE(lift);

LS_TEST(lift, what_most_of_a_group_share_is_named)
{
	struct parts p;

	parts_init(&p);
	ck_assert_uint_eq(find(&p, 5), 3); /* it is not late */
	for (size_t i = 4; i < 8; i++)
		p.excess_s[i] = 0.01 + 0.001 * (double)i;
	ck_assert_uint_eq(find(&p, 5), 1);
	p.excess_s[4] = 0; /* three of four */
	ck_assert_uint_eq(find(&p, 5), 1);
	p.excess_s[6] = 0.004; /* less than half of it: two of four */
	ck_assert_uint_eq(find(&p, 5), 3);
	parts_init(&p);
	for (size_t i = 2; i < WORKERS; i += 4)
		p.excess_s[i] = 0.01;
	ck_assert_uint_eq(find(&p, 14), 2);
	ck_assert_uint_eq(find(&p, 13), 3); /* it is not late itself */
}

LS_TEST(lift, largest_group_that_its_members_support_is_named)
{
	struct parts p;

	parts_init(&p);
	for (size_t i = 0; i < 8; i++)
		p.excess_s[i] = 0.01;
	ck_assert_uint_eq(find(&p, 1), 0); /* the slice, not one of its two racks */
	p.excess_s[0] = p.excess_s[1] = p.excess_s[6] = 0;
	ck_assert_uint_eq(find(&p, 4), 0); /* five of eight are 62 % */
	p.excess_s[7] = 0;
	/* neither half of the slice nor of the rack */
	ck_assert_uint_eq(find(&p, 4), 3);
	/* as many late ones: the smaller group */
	parts_init(&p);
	for (size_t i = 0; i < 8; i++)
		p.excess_s[i] = i == 4 || i == 5 || i == 6 ? 0.01 : NAN;
	p.excess_s[7] = 0;
	/* who does not report is no member: three of four each, the first named */
	ck_assert_uint_eq(find(&p, 4), 0);
	p.excess_s[0] = 0;
	ck_assert_uint_eq(find(&p, 4), 1);
}

LS_TEST(lift, groups_are_not_late_when_others_are_too)
{
	struct parts p;

	parts_init(&p);
	for (size_t i = 4; i < 8; i++)
		p.excess_s[i] = 0.01;
	p.excess_s[13] = p.excess_s[12] = 0.01; /* 2 of 12 */
	ck_assert_uint_eq(find(&p, 5), 1);
	p.excess_s[9] = 0.01; /* 3 of 12 */
	ck_assert_uint_eq(find(&p, 5), 3);
	for (size_t i = 0; i < WORKERS; i++)
		p.excess_s[i] = 0.01; /* all: nothing that a part of them shares */
	ck_assert_uint_eq(find(&p, 5), 3);
}

LS_TEST(lift, who_is_in_no_group_stays_alone)
{
	struct parts p;

	parts_init(&p);
	for (size_t i = 0; i < WORKERS; i++) {
		p.rack[i] = LS_GROUP_NO;
		p.excess_s[i] = i < 3 ? 0.01 : 0;
	}
	ck_assert_uint_eq(find(&p, 1), 3);
	p.excess_s[1] = NAN;
	ck_assert_uint_eq(find(&p, 1), 3);
	p.part[1].least = 2; /* two of a host are enough */
	p.rack[0] = p.rack[2] = 7;
	ck_assert_uint_eq(find(&p, 2), 1);
}

/* --- in the engine -------------------------------------------------------- */

static struct fake_job *
placed(void)
{
	struct fake_job *job = fake_job_on(NULL, "train", 32);

	job->in_rack = 4;
	job->shards = 8;
	job->slices = 2;
	fake_job_declare(job);
	fake_job_run(job, 150);
	ck_assert_uint_eq(job->event_count, 0);
	return job;
}

/* Does fault _i concern the worker? A rack, an input shard, a slice. */
static bool
is_hit(int fault, size_t worker)
{
	return fault == 0    ? worker / 4 == 5
		: fault == 1 ? worker % 8 == 3
			     : worker / 16 == 1;
}

LS_CASE(told);

/* One finding, of what they share; it is over when they are well again. */
LS_TEST_LOOP(told, shared_causes_are_one_finding, 0, 3)
{
	static const char *const scopes[] = { "group", "input_shard", "slice" };
	static const char *const bys[] = { "rack", "input_shard" };
	static const char *const names[] = { "r5", "i3" };
	struct fake_job *job = placed();
	const double late_s = 0.05 * 0.08;
	double blame_s;
	json_t *f;

	for (size_t i = 0; i < 32; i++)
		job->workers[i].slow = is_hit(_i, i) ? 1.05 : 1;
	fake_job_run(job, 120);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), scopes[_i]);
	/* Steps are shorter without them by less than they are late: the last of so
	 * many others is late, too. */
	blame_s = json_number_value(
		json_object_get(json_object_get(f, "impact"), "blame_s"));
	ck_assert_double_gt(blame_s, 0.6 * late_s);
	ck_assert_double_lt(blame_s, 1.1 * late_s);
	if (_i < 2) {
		ck_assert_str_eq(ls_json_text_at(f, "subject", "by"), bys[_i]);
		ck_assert_str_eq(ls_json_text_at(f, "subject", "name"), names[_i]);
		ck_assert_uint_eq(json_array_size(json_object_get(
					  json_object_get(f, "subject"), "hosts")),
			4);
	}
	json_decref(f);
	for (size_t i = 0; i < 32; i++)
		job->workers[i].slow = 1;
	fake_job_run(job, 200);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

/* They become slower by 0.15 % of a step a minute, less than the detectors of single
 * steps can tell from their own baseline. */
LS_TEST_LOOP(told, a_group_that_drifts_is_one_finding, 0, 2)
{
	static const char *const scopes[] = { "group", "input_shard" };
	struct fake_job *job = placed();
	json_t *f;

	fake_job_run(job, 2000);
	for (size_t step = 0; step < 6000; step++) {
		for (size_t i = 0; i < 32; i++)
			job->workers[i].slow += is_hit(_i, i) ? 0.015 / 6000 : 0;
		fake_job_run(job, 1);
	}
	fake_job_run(job, 2000);
	fake_job_only(job, "straggler", scopes[_i], "");
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "onset", "type"), "drift");
	ck_assert_double_gt(json_number_value(ls_json_at(f, "impact", "blame_s")),
		0.5 * 0.015 * 0.08);
	json_decref(f);
	for (size_t i = 0; i < 32; i++)
		job->workers[i].slow = 1;
	fake_job_run(job, 4000);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	ck_assert_uint_eq(fake_job_told(job, "reopened"), 0);
	fake_job_free(job);
}

/* A host that drifts more than the rack does not hide it, nor the rack the host. */
LS_TEST(told, a_group_and_a_host_that_drift_are_two_findings)
{
	struct fake_job *job = placed();
	size_t groups = 0, hosts = 0;

	fake_job_run(job, 2000);
	for (size_t step = 0; step < 8000; step++) {
		for (size_t i = 20; i < 24 && step < 6000; i++)
			job->workers[i].slow += 0.0085 / 6000;
		job->workers[9].slow += step < 6000 ? 0.018 / 6000 : 0;
		fake_job_run(job, 1);
	}
	for (size_t i = 0; i < fake_job_told(job, "opened"); i++) {
		json_t *f = fake_job_finding(job, i);

		if (strcmp(ls_json_text_at(f, "status", NULL), "open") == 0) {
			groups += strcmp(ls_json_text_at(f, "subject", "scope"),
					  "group") == 0;
			hosts += strcmp(ls_json_text_at(f, "subject", "scope"),
					 "host") == 0;
		}
		json_decref(f);
	}
	ck_assert_uint_eq(groups, 1);
	ck_assert_uint_eq(hosts, 1);
	fake_job_free(job);
}

/* Two of a rack are two; a third and fourth make it the rack, which takes their place.
 */
LS_TEST(told, findings_of_members_become_the_groups)
{
	struct fake_job *job = placed();
	json_t *f;

	job->workers[20].slow = job->workers[21].slow = 1.06;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	job->workers[22].slow = job->workers[23].slow = 1.06;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 3);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 2);
	f = fake_job_finding(job, 2);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "group");
	ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "open");
	for (size_t i = 0; i < 2; i++) {
		json_t *part = fake_job_finding(job, i);

		ck_assert_str_eq(ls_json_text_at(part, "status", NULL), "cleared");
		ck_assert_str_eq(ls_json_text_at(part, "cleared_reason", NULL),
			"part_of");
		ck_assert_str_eq(ls_json_text_at(part, "part_of", NULL),
			ls_json_text_at(f, "id", NULL));
		json_decref(part);
	}
	json_decref(f);
	fake_job_free(job);
}

/* A host much slower than the rest of its slow rack is told for itself. */
LS_TEST(told, slower_than_its_group_is_its_own)
{
	struct fake_job *job = placed();
	json_t *f;

	for (size_t i = 20; i < 24; i++)
		job->workers[i].slow = 1.05;
	fake_job_run(job, 60);
	job->workers[9].slow = 1.3;
	fake_job_run(job, 60);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 2);
	f = fake_job_finding(job, 1);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "scope"), "host");
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h9");
	json_decref(f);
	fake_job_free(job);
}

/* Two ranks on each host. */
static struct fake_job *
paired(void)
{
	struct fake_job *job = fake_job_on(NULL, "train", 16);

	job->on_host = 2;
	fake_job_declare(job);
	fake_job_run(job, 150);
	return job;
}

/* Both of them are well again, and nothing is open. */
static void
paired_end(struct fake_job *job)
{
	job->workers[10].slow = job->workers[11].slow = 1;
	fake_job_run(job, 200);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

/* A rank that was found first becomes its host, in the same finding, which stays. */
LS_TEST(told, a_rank_becomes_its_host)
{
	struct fake_job *job = paired();

	job->workers[10].slow = 1.08;
	fake_job_run(job, 60);
	job->workers[11].slow = 1.08;
	fake_job_run(job, 300);
	fake_job_only(job, "straggler", "host", "");
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 0);
	paired_end(job);
}

/* Most workers of a host: the host, of which its first rank is named. One of them: the
 * rank. */
LS_TEST_LOOP(told, workers_of_one_host_are_the_host, 0, 2)
{
	struct fake_job *job = paired();
	json_t *f;

	job->workers[10].slow = 1.08;
	job->workers[11].slow = _i == 0 ? 1.08 : 1;
	fake_job_run(job, 60);
	fake_job_only(job, "straggler", _i == 0 ? "host" : "rank", "");
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(ls_json_text_at(f, "subject", "host"), "h5");
	ck_assert_int_eq(json_integer_value(json_object_get(
				 json_object_get(f, "subject"), "rank")),
		10);
	json_decref(f);
	paired_end(job);
}

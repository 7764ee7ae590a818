/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/detect.h"

#include <jansson.h>
#include <string.h>
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/json_at.h"

LS_CASE(all);

/*
 * Collectives 2 % of a step longer, also where all work becomes 3 % faster; a time-out
 * in one step of five. Once only, or as all work grows: no link.
 */
LS_TEST_LOOP(all, faint_links_are_found_by_blocks_of_steps, 0, 5)
{
	struct fake_job *job = fake_job_sliced(16, 2);
	uint64_t last = 150 + 200;

	for (; job->step < last; fake_job_run(job, 1)) {
		job->slice_comm_s[1] = _i == 0 || _i == 4 ? 0.002 : 0;
		job->comm_s = _i == 1 && fake_job_random(job) < 0.2 ? 0.05
			: _i == 2 && job->step == 200		    ? 0.05
								    : 0;
		for (size_t i = 0; i < 16 && _i == 4; i++)
			job->workers[i].slow = job->step < 150 ? 1 : 0.97;
		if (_i == 3)
			job->workers[3].slow = 1 +
				0.0002 *
					(double)(job->step - 150); /* all wait for it */
	}
	if (_i < 2 || _i == 4) {
		fake_job_only(job, _i == 1 ? "link" : "job_slow",
			_i == 1 ? "job" : "slice", _i == 1 ? "" : "s1");
		job->slice_comm_s[1] = job->comm_s = 0;
		fake_job_run(job, 200);
		ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	} else {
		for (size_t i = 0; i < fake_job_told(job, "opened"); i++) {
			json_t *f = fake_job_finding(job, i);

			ck_assert_str_ne(ls_json_text_at(f, "impact", "method"),
				"collective_excess_v1");
			json_decref(f);
		}
	}
	ck_assert_uint_le(fake_job_told(job, "opened"), 1);
	fake_job_free(job);
}

/* Of a slice's collectives, too, the link is named whose worker waits to send. */
LS_TEST(all, links_of_slices_are_named)
{
	struct fake_job *job = fake_job_sliced(16, 2);
	json_t *f;

	for (size_t i = 0; i < 16; i++)
		job->workers[i].send_s = 0.005;
	fake_job_run(job, 100);
	job->slice_comm_s[1] = 0.01;
	job->workers[12].send_s = 0.015;
	fake_job_run(job, 100);
	fake_job_only(job, "link", "link", "");
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(
		json_string_value(json_array_get(
			json_object_get(json_object_get(f, "subject"), "hosts"), 0)),
		"h12");
	ck_assert_str_eq(
		json_string_value(json_array_get(
			json_object_get(json_object_get(f, "subject"), "hosts"), 1)),
		"h13");
	json_decref(f);
	job->slice_comm_s[1] = 0;
	job->workers[12].send_s = 0.005;
	fake_job_run(job, 300);
	ck_assert_uint_eq(fake_job_told(job, "cleared"), 1);
	fake_job_free(job);
}

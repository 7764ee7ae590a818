/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/engine.h"
#include "collector/history/replay.h"
#include "proto/base/json.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"
#include "tests/support/scenario/serving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A serving job; what it tells is written to a replay file, if there is one. */
static struct fake_job *
serving(size_t count, FILE *file)
{
	struct fake_job *job = fake_job_on(NULL, "train", count);

	job->serving = true;
	job->attempt = -1;
	job->arg = file;
	fake_job_declare(job);
	serving_begin(job);
	return job;
}

static void
run(struct fake_job *job, size_t seconds)
{
	while (seconds-- > 0)
		serving_run(job);
}

static void
write_record(struct fake_job *job, size_t i, const struct ls_record *r)
{
	ck_assert_int_gt(
		fprintf(job->arg,
			"{\"job\":\"train\",\"host\":\"h%zu\",\"rank\":%zu,\"world\":%zu,\"step\":%llu,\"t_begin\":%lld.%06lld,"
			"\"duration\":%.6f,\"phases\":{\"compute\":%.6f},\"work\":{\"tokens\":%.0f},\"chips\":4}\n",
			i, i, job->count, (unsigned long long)r->step,
			(long long)(r->t_begin_ns / 1000000000),
			(long long)(r->t_begin_ns / 1000 % 1000000),
			(double)r->duration_ns * 1e-9,
			(double)r->phase_ns[LS_PHASE_COMPUTE] * 1e-9,
			r->work[LS_WORK_TOKENS]),
		0);
}

static void
write_closed(struct fake_job *job, const struct ls_engine_close *c)
{
	fprintf(job->arg,
		"{\"type\":\"close\",\"job\":\"train\",\"attempt\":%d,\"step\":%llu,\"t\":%lld.%06lld,\"expected\":%u,"
		"\"used\":%u,\"missing\":[",
		(int)c->attempt, (unsigned long long)c->step,
		(long long)(c->t_us / 1000000), (long long)(c->t_us % 1000000),
		c->expected, c->used);
	for (size_t i = 0; i < c->missing_count; i++)
		fprintf(job->arg, "%s%d", i > 0 ? "," : "", (int)c->missing[i]);
	fprintf(job->arg, "]}\n");
}

/* All processes end, one after the other. */
static void
end(struct fake_job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		job->now_us += 1000;
		ls_engine_end(job->engine, job->workers[i].handle, LS_END_ENDED,
			job->now_us);
		fprintf(job->arg,
			"{\"type\":\"end\",\"job\":\"train\",\"attempt\":0,\"host\":\"h%zu\",\"rank\":%zu,"
			"\"t\":%lld.%06lld,\"how\":\"ended\"}\n",
			i, i, (long long)(job->now_us / 1000000),
			(long long)(job->now_us % 1000000));
	}
}

LS_CASE(replica);

LS_TEST(replica, time_that_runs_backwards_is_refused)
{
	struct fake_job *job = serving(3, NULL);
	uint64_t before;
	struct ls_record r;

	run(job, 160);
	before = fake_job_stats(job).duplicates;
	r = serving_make(job, 0);
	r.t_begin_ns -= 5000000000;
	ck_assert_int_eq(
		ls_engine_record(job->engine, job->workers[0].handle, &r, job->now_us),
		-LS_EDUPLICATE);
	ck_assert_uint_eq(fake_job_stats(job).duplicates, before + 1);
	fake_job_free(job);
}

/* What was told live is told again from the stored records and closings, to the byte. */
LS_TEST_LOOP(replica, replay_says_the_same, 0, 2)
{
	struct ls_replay_stats stats;
	char *text = NULL, *live, *again;
	size_t len;
	FILE *file = open_memstream(&text, &len);
	struct fake_job *job = serving(6, file);
	json_t *result, *f;

	job->told = write_record;
	job->told_closed = write_closed;
	run(job, 150);
	job->workers[4].slow = 1.1;
	run(job, 70);
	job->workers[4].slow = _i == 0 ? 1 : 1.1;
	run(job, 130);
	ck_assert_uint_eq(fake_job_told(job, "opened"), 1);
	end(job);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(ls_replay_text(text, len, 0, NULL, NULL, &stats, &result), 0);
	ck_assert_uint_eq(stats.bad_lines, 0);
	f = fake_job_finding(job, 0);
	ck_assert_str_eq(json_string_value(json_object_get(f, "status")), "cleared");
	ck_assert_int_eq(json_object_get(f, "cleared_reason") != NULL, _i == 1);
	live = fake_job_findings(job);
	again = ls_json_canonical(json_object_get(result, "findings"));
	ck_assert_str_eq(live, again);
	free(live);
	free(again);
	json_decref(f);
	json_decref(result);
	fake_job_free(job);
	free(text);
}

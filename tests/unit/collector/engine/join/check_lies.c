/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/engine/join/lies.h"
#include "collector/answer/view.h"
#include "tests/support/fake_job.h"
#include "tests/support/harness.h"

#include <stdio.h>
#include <string.h>

/* not_believed of the job's data quality; new reference. */
static json_t *
believed(const struct fake_job *job)
{
	json_t *view, *lies;

	ck_assert_int_eq(ls_view_job(job->engine, job->name, job->now_us, &view), 0);
	lies = json_incref(
		json_object_get(json_object_get(view, "data_quality"), "not_believed"));
	json_decref(view);
	ck_assert(json_is_object(lies));
	return lies;
}

static json_int_t
reason_of(const json_t *lies, size_t i, const char *host, const char *reason)
{
	const json_t *h = json_array_get(json_object_get(lies, "hosts"), i);

	ck_assert_str_eq(json_string_value(json_object_get(h, "host")), host);
	return json_integer_value(
		json_object_get(json_object_get(h, "reasons"), reason));
}

LS_CASE(lies);

LS_TEST(lies, nobody_lies_in_a_healthy_job)
{
	struct fake_job *job = fake_job_new(8);
	json_t *lies;

	job->shuffle = true;
	fake_job_run(job, 300);
	lies = believed(job);
	ck_assert_int_eq(json_integer_value(json_object_get(lies, "count")), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(lies, "hosts")), 0);
	json_decref(lies);
	fake_job_free(job);
}

/* What one host says in the sort of lie _i; the engine's answer, and the reason under
 * which it is counted. */
static const struct {
	const char *reason;
	int rc;
} sorts[] = {
	/* a barrier that is left before it is entered: a negative wait */
	{ "impossible_record", -LS_ERANGE },
	{ "impossible_record", -LS_ERANGE }, /* a phase longer than the step */
	{ "impossible_record", -LS_ERANGE }, /* a step beyond all counting */
	/* the same step once more, after it was judged */
	{ "repeated_step", -LS_ESTALE },
	{ "backwards_step", -LS_ESTALE },
};

static struct ls_record
lie_make(const struct fake_job *job, int sort)
{
	struct ls_record r = job->workers[3].record;

	switch (sort) {
	case 0:
		r.barrier[0].exit_ns = r.barrier[0].enter_ns - 1;
		break;
	case 1:
		r.phase_mask |= 1u << LS_PHASE_COMPUTE;
		r.phase_ns[LS_PHASE_COMPUTE] = 10 * r.duration_ns;
		break;
	case 2:
		r.step = LS_STEP_END;
		break;
	case 3:
		break;
	default:
		r.step /= 2;
		break;
	}
	return r;
}

LS_TEST_EACH(lies, what_cannot_be_is_counted_named_and_not_judged, sorts)
{
	struct fake_job *honest = fake_job_new(8), *job = fake_job_new(8);
	struct ls_engine_stats stats;
	json_t *lies;
	char *a, *b;

	fake_job_run(honest, 300);
	fake_job_run(job, 100);
	for (int n = 0; n < 200; n++) {
		struct ls_record r = lie_make(job, _i);

		ck_assert_int_eq(ls_engine_record(job->engine, job->workers[3].handle,
					 &r, job->now_us),
			sorts[_i].rc);
		fake_job_run(job, 1);
	}
	lies = believed(job);
	ck_assert_int_eq(json_integer_value(json_object_get(lies, "count")), 200);
	ck_assert_uint_eq(json_array_size(json_object_get(lies, "hosts")), 1);
	ck_assert_int_eq(reason_of(lies, 0, "h3", sorts[_i].reason), 200);
	json_decref(lies);
	stats = fake_job_stats(job);
	ck_assert_uint_eq(stats.lies[LS_LIE_RECORD] + stats.lies[LS_LIE_REPEATED] +
			stats.lies[LS_LIE_BACKWARDS],
		200);
	ck_assert_uint_eq(stats.steps_closed, 300);
	ck_assert_uint_eq(stats.steps_short, 0);
	a = fake_job_findings(honest);
	b = fake_job_findings(job);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(job->event_count, 0);
	free(a);
	free(b);
	fake_job_free(honest);
	fake_job_free(job);
}

/* A step told twice before it is judged: the first stands. */
LS_TEST(lies, the_first_of_two_stands)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_record r;
	json_t *lies;

	fake_job_run(job, 10);
	fake_job_make(job);
	r = job->workers[1].record;
	ck_assert_int_eq(
		ls_engine_record(job->engine, job->workers[1].handle, &r, job->now_us),
		0);
	ck_assert_int_eq(
		ls_engine_record(job->engine, job->workers[1].handle, &r, job->now_us),
		-LS_EDUPLICATE);
	lies = believed(job);
	ck_assert_int_eq(reason_of(lies, 0, "h1", "repeated_step"), 1);
	json_decref(lies);
	fake_job_free(job);
}

/* A million ranks: those that cannot be are refused, and memory does not grow with
 * them. */
LS_TEST(lies, a_million_ranks_are_refused)
{
	struct fake_job *job = fake_job_new(4);
	struct ls_worker_info info = { .job = "fake", .host = "h2", .attempt = -1 };
	struct ls_engine_stats stats;
	json_t *lies;
	uint32_t handle;

	memcpy(info.job, job->name, strlen(job->name) + 1);
	fake_job_run(job, 10);
	for (int32_t rank = 0; rank < 1000000; rank++) {
		info.rank = (int32_t)LS_WORKERS_MAX + rank;
		ck_assert_int_eq(
			ls_engine_worker(job->engine, &info, job->now_us, &handle),
			-LS_ERANGE);
	}
	stats = fake_job_stats(job);
	ck_assert_uint_eq(stats.workers, 4);
	lies = believed(job);
	ck_assert_int_eq(reason_of(lies, 0, "h2", "impossible_worker"), 1000000);
	json_decref(lies);
	fake_job_free(job);
}

/* What was not told before, or is not told now, is no change. */
LS_TEST(lies, a_role_that_changes_is_counted)
{
	static const char *const said[] = { "prefill", "", "decode", "prefill" };
	struct fake_job *job = fake_job_new(4);
	struct ls_worker_info info = { .host = "h2", .rank = 4, .attempt = -1 };
	json_t *lies;
	uint32_t handle;

	memcpy(info.job, job->name, strlen(job->name) + 1);
	fake_job_run(job, 10);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		(void)snprintf(info.role, sizeof(info.role), "%s", said[i]);
		ck_assert_int_eq(
			ls_engine_worker(job->engine, &info, job->now_us, &handle), 0);
	}
	ck_assert_uint_eq(fake_job_stats(job).workers, 5);
	lies = believed(job);
	ck_assert_int_eq(reason_of(lies, 0, "h2", "changed_role"), 1);
	json_decref(lies);
	fake_job_free(job);
}

LS_TEST(lies, the_worst_hosts_are_named_first_and_few)
{
	struct fake_job *job = fake_job_new(40);
	json_t *lies;

	fake_job_run(job, 5);
	for (unsigned i = 0; i < 40; i++) {
		char host[16];

		(void)snprintf(host, sizeof(host), "h%u", i);
		ls_engine_lie(job->engine, host, LS_LIE_ITEM, i);
	}
	ls_engine_lie(job->engine, "nobody", LS_LIE_ITEM, 1000); /* of no job */
	lies = believed(job);
	ck_assert_int_eq(json_integer_value(json_object_get(lies, "count")),
		39 * 40 / 2);
	ck_assert_uint_eq(json_array_size(json_object_get(lies, "hosts")),
		LS_LIARS_SHOWN);
	ck_assert_int_eq(reason_of(lies, 0, "h39", "bad_item"), 39);
	ck_assert_int_eq(reason_of(lies, 15, "h24", "bad_item"), 24);
	ck_assert_uint_eq(fake_job_stats(job).lies[LS_LIE_ITEM], 39 * 40 / 2 + 1000);
	json_decref(lies);
	fake_job_free(job);
}

LS_TEST(lies, every_reason_has_a_name)
{
	for (unsigned why = 0; why < LS_LIE_COUNT; why++)
		ck_assert_str_ne(ls_lie_name(why), "");
	ck_assert_ptr_null(ls_lie_name(LS_LIE_COUNT));
}

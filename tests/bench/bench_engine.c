/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/answer/view.h"
#include "collector/answer/finding_json.h"
#include "proto/base/clock.h"
#include "tests/support/fake_job.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * What a closed step of a large job costs the collector: CPU time to take the records
 * of all workers, close the step and judge it. Each line is "name value unit".
 *
 *   blame_step_n10000_ms         median over steps, when the detectors have learned and all rows kept are there
 *   blame_step_worst_n10000_ms   greatest of them, with a straggler found and followed
 *
 * and what a page of 20 rows keeps the collector's loop busy, as JSON that is not yet text:
 *
 *   page_workers_n10000_ms       workers by suspicion, read again after two steps (median of 11)
 *   page_findings_n10000_ms      findings of a host, among as many as can be kept, of which none is about it (median of 11)
 */

enum { WORKERS = 10000, LEARN = 250, MEASURED = 101, PAGES = 11, PAGE = 20 };

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Fills the list of findings with copies of the one that is there. */
static void
bench_seed(const struct fake_job *job)
{
	json_t *all = ls_finding_all(job->engine),
	       *f = json_deep_copy(json_array_get(all, 0));
	char id[16];

	for (unsigned i = 0; i + 1 < LS_FINDINGS_MAX; i++) {
		(void)snprintf(id, sizeof(id), "F-%u", i);
		LS_ASSERT(json_object_set_new(f, "id", json_string(id)) == 0);
		LS_ASSERT(ls_finding_seed(job->engine, f) == 0);
	}
	json_decref(f);
	json_decref(all);
}

static double
bench_page_findings(const struct fake_job *job)
{
	const struct ls_view_findings ask = { .host = "x", .limit = PAGE };
	uint64_t before_ns = ls_clock_cpu_ns();
	json_t *page = NULL;

	LS_ASSERT(ls_view_findings(job->engine, &ask, &page) == 0);
	json_decref(page);
	return (double)(ls_clock_cpu_ns() - before_ns) * 1e-6;
}

static double
bench_page_workers(const struct fake_job *job)
{
	const struct ls_view_hosts ask = { .limit = PAGE };
	uint64_t before_ns = ls_clock_cpu_ns();
	json_t *page = NULL;

	LS_ASSERT(ls_view_hosts(job->engine, job->name, &ask, job->now_us, &page) == 0);
	json_decref(page);
	return (double)(ls_clock_cpu_ns() - before_ns) * 1e-6;
}

int
main(void)
{
	struct fake_job *job = fake_job_on(NULL, "large", WORKERS);
	double ms[MEASURED];

	job->slices = 4;
	job->shards = 64;
	job->in_rack = 4;
	fake_job_declare(job);
	fake_job_run(job, LEARN);
	job->workers[WORKERS / 3].slow = 1.1;
	for (size_t i = 0; i < MEASURED; i++) {
		uint64_t before_ns;

		fake_job_make(job);
		before_ns = ls_clock_cpu_ns();
		fake_job_report(job);
		ms[i] = (double)(ls_clock_cpu_ns() - before_ns) * 1e-6;
	}
	LS_ASSERT(fake_job_told(job, "opened") == 1);
	qsort(ms, MEASURED, sizeof(ms[0]), bench_compare);
	printf("blame_step_n%d_ms %.3f ms\n", WORKERS, ms[MEASURED / 2]);
	printf("blame_step_worst_n%d_ms %.3f ms\n", WORKERS, ms[MEASURED - 1]);
	for (size_t i = 0; i < PAGES; i++) {
		fake_job_run(job, 2);
		ms[i] = bench_page_workers(job);
	}
	qsort(ms, PAGES, sizeof(ms[0]), bench_compare);
	printf("page_workers_n%d_ms %.3f ms\n", WORKERS, ms[PAGES / 2]);
	bench_seed(job);
	for (size_t i = 0; i < PAGES; i++)
		ms[i] = bench_page_findings(job);
	qsort(ms, PAGES, sizeof(ms[0]), bench_compare);
	printf("page_findings_n%d_ms %.3f ms\n", LS_FINDINGS_MAX, ms[PAGES / 2]);
	fake_job_free(job);
	return EXIT_SUCCESS;
}

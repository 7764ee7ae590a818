/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

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
 */

enum { WORKERS = 10000, LEARN = 250, MEASURED = 101 };

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int
main(void)
{
	struct fake_job *job = fake_job_new(WORKERS);
	double ms[MEASURED];

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
	fake_job_free(job);
	return EXIT_SUCCESS;
}

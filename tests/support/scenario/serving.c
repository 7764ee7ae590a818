/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/scenario/serving.h"

#include <math.h>

void
serving_begin(struct fake_job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		job->workers[i].serves = job->together ? 0 : 1000 * i;
		job->workers[i].begin_us = job->now_us +
			(int64_t)(job->together ? 0 : fake_job_random(job) * 1e6);
	}
}

struct ls_record
serving_make(struct fake_job *job, size_t i)
{
	const struct fake_worker *w = &job->workers[i];
	double load = w->more * (50 + job->spread * fake_job_random(job)),
	       noise = 0.0017 * fake_job_normal(job);
	struct ls_record r = { .step = w->serves,
		.t_begin_ns = w->begin_us * 1000,
		.phase_mask = 1u << LS_PHASE_COMPUTE };
	double s = (0.05 + 0.0015 * load + job->curve * load * load) * w->slow *
		(1 + noise);

	r.duration_ns =
		(uint64_t)((job->together ? 0.2 + 0.05 * noise : s) * 1e6) * 1000;
	r.phase_ns[LS_PHASE_COMPUTE] = r.duration_ns;
	if (w->waits) {
		r.phase_mask |= 1u << LS_PHASE_SYNC_WAIT;
		r.phase_ns[LS_PHASE_SYNC_WAIT] = 1000;
		r.phase_ns[LS_PHASE_COMPUTE] -= 1000;
	}
	if (!w->loadless) {
		r.work_mask = 1u << LS_WORK_TOKENS;
		r.work[LS_WORK_TOKENS] = floor(load);
	}
	return r;
}

/* Reports what it has finished, then waits for more work. */
static void
report(struct fake_job *job, size_t i)
{
	struct fake_worker *w = &job->workers[i];

	w->begin_us += (int64_t)(w->idle_s * 1e6);
	w->idle_s = 0;
	for (;;) {
		uint64_t random = job->random;
		struct ls_record r = serving_make(job, i);
		int64_t end_us = w->begin_us + (int64_t)r.duration_ns / 1000;

		if (end_us > job->now_us) {
			job->random = random; /* it is not done yet */
			return;
		}
		if (ls_engine_record(job->engine, w->handle, &r, job->now_us) == 0 &&
			job->told != NULL)
			job->told(job, i, &r);
		w->serves++;
		w->begin_us = end_us +
			(int64_t)(job->together ? 0 : 1e5 * fake_job_random(job));
	}
}

void
serving_run(struct fake_job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		job->now_us += 1000000 / (int64_t)job->count;
		report(job, i);
		ls_engine_advance(job->engine, job->now_us);
	}
}

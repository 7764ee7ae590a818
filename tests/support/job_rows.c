/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/support/job_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job_worker {
	int64_t clock_ns; /* off by this */
	int64_t end_ns;
	int64_t report_us; /* in its second */
	int64_t uncertainty_ns;
	double speed;
};

struct job_rows {
	size_t workers;
	unsigned rate;
	uint64_t random, step, second;
	int64_t id;
	struct job_worker *worker;
	size_t *order; /* of reports */
	struct ls_record *made; /* [step][worker] */
	struct ls_step_table table;
};

double
job_rows_uniform(struct job_rows *j)
{
	j->random ^= j->random << 13;
	j->random ^= j->random >> 7;
	j->random ^= j->random << 17;
	return (double)(j->random >> 11) / 9007199254740992.0;
}

double
job_rows_normal(struct job_rows *j)
{
	double sum = 0;
	int i;

	for (i = 0; i < 12; i++)
		sum += job_rows_uniform(j);
	return sum - 6;
}

/* Student's t with 4 degrees of freedom, of deviation 1. */
static double
job_tailed(struct job_rows *j)
{
	double sum = 0;
	int i;

	for (i = 0; i < 4; i++)
		sum += pow(job_rows_normal(j), 2);
	return job_rows_normal(j) / sqrt(sum / 4) / sqrt(2);
}

struct job_rows *
job_rows_new(size_t workers, unsigned steps_a_second)
{
	struct job_rows *j = calloc(1, sizeof(*j));
	size_t i;

	LS_ASSERT(j != NULL);
	*j = (struct job_rows){ .workers = workers,
		.rate = steps_a_second,
		.random = 88172645463325252u,
		.step = 1200,
		.id = 1 };
	j->worker = calloc(workers, sizeof(*j->worker));
	j->order = calloc(workers, sizeof(*j->order));
	j->made = calloc(workers * steps_a_second, sizeof(*j->made));
	j->table.runs = calloc(workers, sizeof(*j->table.runs));
	j->table.records = calloc(workers * steps_a_second, sizeof(*j->table.records));
	LS_ASSERT(j->worker && j->order && j->made && j->table.runs &&
		j->table.records);
	for (i = 0; i < workers; i++)
		j->worker[i] = (struct job_worker){ .clock_ns = (int64_t)(50e3 *
							    job_rows_normal(j)),
			.end_ns = 1700000000000000000ll,
			.report_us = (int64_t)(1e6 * (double)i / (double)workers),
			.uncertainty_ns = 60000 + (int64_t)(40e3 * job_rows_uniform(j)),
			.speed = 1 + 0.002 * job_rows_normal(j) };
	return j;
}

void
job_rows_free(struct job_rows *j)
{
	free(j->worker);
	free(j->order);
	free(j->made);
	free(j->table.runs);
	free(j->table.records);
	free(j);
}

static int64_t
job_round(double ns)
{
	return llround(ns / 1000) * 1000;
}

/* A step of all workers, in ns; the records as a storage row has them: whole
 * microseconds. */
static void
job_step(struct job_rows *j, struct ls_record *made)
{
	double own = 0.8e9 / j->rate, last = 0, exit_ns;
	size_t i;

	for (i = 0; i < j->workers; i++) {
		struct job_worker *w = &j->worker[i];
		struct ls_record *r = &made[i];
		double begin = (double)(w->end_ns % 1000000000000ll) + 5e3 +
			3e3 * job_rows_uniform(j);
		double input = 80e3 * exp(0.5 * job_rows_normal(j));
		double h2d = 1.2e6 + 40e3 * job_rows_normal(j);
		double dispatch = 300e3 + 20e3 * fabs(job_rows_normal(j));
		double compute = own * w->speed * (1 + 0.003 * job_tailed(j));
		double enter = begin + input + h2d + dispatch + compute;

		*r = (struct ls_record){
			.step = j->step, .barrier_count = 1, .work_mask = 1
		};
		r->phase_mask = 1u << LS_PHASE_INPUT_WAIT | 1u << LS_PHASE_H2D |
			1u << LS_PHASE_DISPATCH | 1u << LS_PHASE_COMPUTE |
			1u << LS_PHASE_SYNC_WAIT;
		r->work[LS_WORK_TOKENS] = 32768;
		r->t_begin_ns = (int64_t)begin;
		r->phase_ns[LS_PHASE_INPUT_WAIT] = (uint64_t)job_round(input);
		r->phase_ns[LS_PHASE_H2D] = (uint64_t)job_round(h2d);
		r->phase_ns[LS_PHASE_DISPATCH] = (uint64_t)job_round(dispatch);
		r->phase_ns[LS_PHASE_COMPUTE] = (uint64_t)job_round(compute);
		r->barrier[0].enter_ns = (int64_t)enter;
		last = fmax(last, enter - (double)w->clock_ns);
	}
	for (i = 0; i < j->workers; i++) {
		struct job_worker *w = &j->worker[i];
		struct ls_record *r = &made[i];
		int64_t day = w->end_ns / 1000000000000ll * 1000000000000ll;
		double begin = (double)r->t_begin_ns,
		       enter = (double)r->barrier[0].enter_ns;

		exit_ns = last + (double)w->clock_ns + 0.1e9 / j->rate +
			20e3 * fabs(job_rows_normal(j));
		r->phase_ns[LS_PHASE_SYNC_WAIT] = (uint64_t)job_round(exit_ns - enter);
		w->end_ns = day + (int64_t)(exit_ns + 2e3 + 2e3 * job_rows_uniform(j));
		r->duration_ns = (uint64_t)job_round((double)(w->end_ns - day) - begin);
		r->t_begin_ns = day + job_round(begin);
		r->barrier[0].enter_ns = day + job_round(enter);
		r->barrier[0].exit_ns = day + job_round(exit_ns);
	}
	j->step++;
}

/* Reports come in the order of their times, a little disturbed. */
static void
job_order(struct job_rows *j)
{
	size_t i, k;

	for (i = 0; i < j->workers; i++) {
		size_t far = (size_t)(8 * job_rows_uniform(j)), was = i;

		k = i > far ? i - far : 0;
		memmove(&j->order[k + 1], &j->order[k], (i - k) * sizeof(*j->order));
		j->order[k] = was;
	}
}

const struct ls_step_table *
job_rows_second(struct job_rows *j)
{
	size_t i, s, at = 0;

	for (s = 0; s < j->rate; s++)
		job_step(j, j->made + s * j->workers);
	job_order(j);
	j->second++;
	for (i = 0; i < j->workers; i++) {
		struct job_worker *w = &j->worker[j->order[i]];
		struct ls_step_run *run = &j->table.runs[i];

		w->uncertainty_ns += (int64_t)(3e3 * job_rows_normal(j));
		*run = (struct ls_step_run){ .id = j->id,
			.count = j->rate,
			.t_us = 1700000000000000ll + (int64_t)j->second * 1000000 +
				j->worker[i].report_us +
				(int64_t)(30 * job_rows_uniform(j)),
			.worker_id = (int64_t)j->order[i] + 1,
			.first_index = j->step - j->rate - 100,
			.uncertainty_ns =
				(llabs(w->uncertainty_ns) + 999) / 1000 * 1000 };
		for (s = 0; s < j->rate; s++)
			j->table.records[at++] = j->made[s * j->workers + j->order[i]];
		j->id += 2;
	}
	j->table.run_count = j->workers;
	j->table.record_count = at;
	return &j->table;
}

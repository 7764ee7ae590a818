/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/step_columns.h"

#include <stddef.h>

void
step_index_start(struct step_index *x)
{
	/* workers are set when they are met */
	memset(x->hash, 0, sizeof(*x) - offsetof(struct step_index, hash));
	x->id_stride = 1;
}

void
step_index_again(struct step_index *x)
{
	for (size_t i = 0; i < x->worker_count; i++)
		x->worker[i].has_end = false;
	x->run_begin_us = 0;
}

/* The worker of an id, made if need be. */
static uint16_t
step_index_worker(struct step_index *x, int64_t id, bool *ret_fresh)
{
	/* 15 bits: STEP_HASH places */
	size_t i = (size_t)((uint64_t)id * 0x9e3779b97f4a7c15u >> 49);
	struct step_worker *w;

	*ret_fresh = false;
	for (; x->hash[i] != 0; i = (i + 1) % STEP_HASH)
		if (x->worker[x->hash[i] - 1].id == id)
			return (uint16_t)(x->hash[i] - 1);
	*ret_fresh = true;
	w = &x->worker[x->worker_count++];
	*w = (struct step_worker){ .id = id, .stride = 1 };
	x->hash[i] = (uint16_t)x->worker_count;
	return (uint16_t)(x->worker_count - 1);
}

uint16_t
step_index_step(struct step_index *x, uint64_t step)
{
	size_t i = (size_t)(step % STEP_RECENT);

	if (!x->recent_known[i] || x->recent[i] != step) {
		x->recent_known[i] = true;
		x->recent[i] = step;
		x->recent_step[i] = (uint16_t)x->step_count++;
	}
	return x->recent_step[i];
}

/* Agents report in turn, in about the same order: who came after the last one comes
 * again. */
static uint64_t
step_guess_worker(const struct step_index *x)
{
	const struct step_worker *last = &x->worker[x->run_worker];

	if (x->worker_count == 0)
		return 0;
	return (uint64_t)(last->has_next ? x->worker[last->next].id : last->id + 1);
}

void
step_run_begin(struct step_index *x, bool reading, struct ls_step_run *run, uint64_t *u,
	uint16_t *ret_worker, bool *ret_fresh)
{
	uint64_t n = run->count;
	struct step_worker *w;
	bool any = x->worker_count > 0;

	ls_column_code_i64(reading, &u[STEP_RUN_WORKER], &run->worker_id,
		step_guess_worker(x));
	*ret_worker = step_index_worker(x, run->worker_id, ret_fresh);
	w = &x->worker[*ret_worker];
	if (any) {
		x->worker[x->run_worker].next = *ret_worker;
		x->worker[x->run_worker].has_next = true;
	}
	ls_column_code_i64(reading, &u[STEP_RUN_ID], &run->id,
		(uint64_t)x->run.id + x->id_stride);
	x->id_stride = any ? (uint64_t)run->id - (uint64_t)x->run.id : 1;
	ls_column_code_i64(reading, &u[STEP_RUN_TIME], &run->t_us,
		(uint64_t)x->run.t_us);
	ls_column_code(reading, &u[STEP_RUN_COUNT], &n, x->run.count);
	run->count = n <= LS_STEP_ROWS_RECORDS_MAX ? (uint32_t)n : 0; /* 0: refused */
	ls_column_code_i64(reading, &u[STEP_RUN_UNCERTAINTY], &run->uncertainty_ns,
		(uint64_t)(*ret_fresh ? x->run.uncertainty_ns : w->uncertainty_ns));
	w->uncertainty_ns = run->uncertainty_ns;
}

void
step_run_record(struct step_index *x, bool reading, uint16_t worker, bool first,
	uint64_t *step, uint64_t *u_step, uint64_t *shape, uint64_t *u_shape)
{
	struct step_worker *w = &x->worker[worker];
	bool known = w->has_end; /* of steps, here: it has had a record */
	uint64_t guess = known ? w->shape : x->shape;

	ls_column_code(reading, u_step, step,
		known ? w->step + w->stride : x->run_step);
	if (reading)
		*shape = *u_shape ^ guess;
	else
		*u_shape = *shape ^ guess;
	if (known)
		w->stride = *step - w->step;
	w->step = *step;
	w->shape = x->shape = *shape;
	w->has_end = true;
	if (first)
		x->run_step = *step;
}

void
step_run_end(struct step_index *x, bool reading, struct ls_step_run *run, uint64_t *u,
	uint16_t worker, uint64_t first_step, bool fresh)
{
	struct step_worker *w = &x->worker[worker];
	uint64_t guess = fresh ? first_step + x->run_offset : w->index;

	ls_column_code(reading, &u[STEP_RUN_INDEX], &run->first_index, guess);
	w->index = run->first_index + run->count;
	x->run_offset = run->first_index - first_step;
	x->run = *run;
	x->run_worker = worker;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "deploy/demo/sim/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the time a step would take without noise, in thousandths. */
enum { JOB_INPUT = 8, JOB_H2D = 4, JOB_WORK = 930, JOB_HAND_OVER = 20, JOB_REST = 8 };

#define JOB_NOISE 0.003 /* deviation of a worker's own work */
#define JOB_TAIL 0.01 /* and what now and then comes on top */
#define JOB_MESSAGE_NS 200000u /* at most this, to hand a message over */
#define JOB_TAIL_SHARE 0.002
#define JOB_HAND_OVER_NOISE 0.3 /* most of it that a barrier's opening takes longer */

struct job_step {
	uint64_t begin_ns, end_ns, opened_ns; /* opened: the barrier between all */
};

struct sim_job {
	uint64_t seed, period_ns;
	uint32_t hosts, slices;
	struct sim_slow slow;
	uint64_t complete;
	/* step n at n % size; the one under way is reckoned, too */
	struct job_step step[SIM_STEPS_KEPT];
	/* SIM_STEPS_KEPT x slices: when the barrier of the slice opened */
	uint64_t slice_ns[];
};

uint32_t
sim_job_slice(const struct sim_job *job, uint32_t rank)
{
	return (uint32_t)((uint64_t)rank * job->slices / job->hosts);
}

static uint64_t
job_part(const struct sim_job *job, unsigned thousandths)
{
	return job->period_ns / 1000 * thousandths;
}

/* What a worker itself needs for a step, from its begin to the barrier. */
static uint64_t
job_own_ns(const struct sim_job *job, uint32_t rank, uint64_t step)
{
	uint64_t bits = sim_hash(job->seed, rank, step, 1);
	double factor = 1 + JOB_NOISE * sim_normal(bits);

	if (sim_unit(bits * 0x9e3779b97f4a7c15u) < JOB_TAIL_SHARE)
		factor += JOB_TAIL;
	if ((int64_t)rank == job->slow.rank && step >= job->slow.from)
		factor *= 1 + job->slow.fraction;
	return job_part(job, JOB_INPUT + JOB_H2D) +
		(uint64_t)((double)job_part(job, JOB_WORK) * factor);
}

static uint64_t *
job_slices(struct sim_job *job, uint64_t step)
{
	return &job->slice_ns[(size_t)(step % SIM_STEPS_KEPT) * job->slices];
}

/* Reckons when the barriers of a step open. */
static void
job_make(struct sim_job *job, uint64_t step, uint64_t begin_ns)
{
	struct job_step *s = &job->step[step % SIM_STEPS_KEPT];
	uint64_t *slice = job_slices(job, step);
	uint64_t last = 0, hand_over = job_part(job, JOB_HAND_OVER);

	hand_over += (uint64_t)(JOB_HAND_OVER_NOISE *
		sim_unit(sim_hash(job->seed, step, 0, 8)) * (double)hand_over);
	memset(slice, 0, job->slices * sizeof(*slice));
	for (uint32_t r = 0; r < job->hosts; r++) {
		uint64_t *open = &slice[sim_job_slice(job, r)];
		uint64_t enter = begin_ns + job_own_ns(job, r, step);

		if (enter > *open)
			*open = enter;
	}
	for (uint32_t i = 0; i < job->slices; i++) {
		slice[i] += hand_over;
		if (slice[i] > last)
			last = slice[i];
	}
	s->begin_ns = begin_ns;
	s->opened_ns = job->slices > 1 ? last + hand_over : last;
	s->end_ns = s->opened_ns + job_part(job, JOB_REST);
}

struct sim_job *
sim_job_new(const struct sim_options *o, const struct sim_slow *slow, uint64_t start_ns)
{
	size_t slices = (size_t)o->slices;
	struct sim_job *job = calloc(1,
		sizeof(*job) + SIM_STEPS_KEPT * slices * sizeof(job->slice_ns[0]));

	if (job == NULL)
		return NULL;
	job->seed = (uint64_t)o->seed;
	job->hosts = (uint32_t)o->hosts;
	job->slices = (uint32_t)slices;
	job->period_ns = 1000000000ull / (uint64_t)o->steps_per_s;
	job->slow = *slow;
	job_make(job, 0, start_ns);
	return job;
}

void
sim_job_free(struct sim_job *job)
{
	free(job);
}

uint64_t
sim_job_advance(struct sim_job *job, uint64_t now_ns)
{
	const struct job_step *s;

	while ((s = &job->step[job->complete % SIM_STEPS_KEPT])->end_ns <= now_ns)
		job_make(job, ++job->complete, s->end_ns);
	return job->complete;
}

uint64_t
sim_job_first(const struct sim_job *job)
{
	return job->complete < SIM_STEPS_KEPT ? 0 : job->complete + 1 - SIM_STEPS_KEPT;
}

uint64_t
sim_job_end_ns(const struct sim_job *job, uint64_t step)
{
	return job->step[step % SIM_STEPS_KEPT].end_ns;
}

/* How long a worker waited for another one to come to the barrier, and for a message to
 * be handed over. */
static uint64_t
job_waited(uint64_t enter_ns, uint64_t other_ns, uint64_t bits)
{
	return (other_ns > enter_ns ? other_ns - enter_ns : 0) + bits % JOB_MESSAGE_NS;
}

/* The neighbours in the ring of the slice: one hands over to us, we to the other. */
static void
job_peers(const struct sim_job *job, uint32_t rank, uint64_t step, uint64_t own_ns,
	struct ls_record *r)
{
	uint32_t prev = rank > 0 ? rank - 1 : rank,
		 next = rank + 1 < job->hosts ? rank + 1 : rank;
	uint64_t bits = sim_hash(job->seed, rank, step, 9);

	if (prev != rank && sim_job_slice(job, prev) == sim_job_slice(job, rank))
		r->peer[r->peer_count++] = (struct ls_record_peer){ prev,
			job_waited(own_ns, job_own_ns(job, prev, step), bits),
			UINT64_MAX };
	if (next != rank && sim_job_slice(job, next) == sim_job_slice(job, rank))
		r->peer[r->peer_count++] = (struct ls_record_peer){ next, UINT64_MAX,
			job_waited(own_ns, job_own_ns(job, next, step), bits >> 32) };
}

int
sim_job_record(const struct sim_job *job, uint32_t rank, uint64_t step,
	uint64_t offset_ns, struct ls_record *ret_record)
{
	const struct job_step *s = &job->step[step % SIM_STEPS_KEPT];
	uint64_t enter = s->begin_ns + job_own_ns(job, rank, step);
	uint64_t slice = job->slice_ns[(size_t)(step % SIM_STEPS_KEPT) * job->slices +
		sim_job_slice(job, rank)];
	uint64_t input = job_part(job, JOB_INPUT), h2d = job_part(job, JOB_H2D);
	struct ls_record r = { .step = step };

	if (step >= job->complete || step < sim_job_first(job))
		return -LS_ESTALE;
	r.t_begin_ns = (int64_t)(s->begin_ns + offset_ns);
	r.duration_ns = s->end_ns - s->begin_ns;
	r.phase_ns[LS_PHASE_INPUT_WAIT] = input;
	r.phase_ns[LS_PHASE_H2D] = h2d;
	r.phase_ns[LS_PHASE_COMPUTE] = enter - s->begin_ns - input - h2d;
	r.phase_ns[LS_PHASE_SYNC_WAIT] = s->opened_ns - enter;
	r.phase_ns[LS_PHASE_OTHER] = s->end_ns - s->opened_ns;
	r.phase_mask = 1u << LS_PHASE_INPUT_WAIT | 1u << LS_PHASE_H2D |
		1u << LS_PHASE_COMPUTE | 1u << LS_PHASE_SYNC_WAIT |
		1u << LS_PHASE_OTHER;
	r.barrier_count = 1;
	r.barrier[0] = (struct ls_record_barrier){ LS_BARRIER_ICI,
		(int64_t)(enter + offset_ns), (int64_t)(slice + offset_ns) };
	if (job->slices > 1) {
		r.barrier_count = 2;
		r.barrier[1] = (struct ls_record_barrier){ LS_BARRIER_DCN,
			(int64_t)(slice + offset_ns),
			(int64_t)(s->opened_ns + offset_ns) };
	}
	r.work_mask = 1u << LS_WORK_TOKENS;
	r.work[LS_WORK_TOKENS] = 8192;
	job_peers(job, rank, step, enter - s->begin_ns, &r);
	*ret_record = r;
	return 0;
}

void
sim_job_live(const struct sim_job *job, uint32_t rank, uint64_t now_ns,
	uint64_t offset_ns, struct ls_ring_live *ret_live)
{
	const struct job_step *s = &job->step[job->complete % SIM_STEPS_KEPT];
	uint64_t work = s->begin_ns + job_part(job, JOB_INPUT + JOB_H2D);
	uint64_t enter = s->begin_ns + job_own_ns(job, rank, job->complete);

	ret_live->step = job->complete;
	ret_live->phase = LS_PHASE_INPUT_WAIT;
	ret_live->since_mono_ns = s->begin_ns + offset_ns;
	if (now_ns >= s->opened_ns) {
		ret_live->phase = LS_PHASE_OTHER;
		ret_live->since_mono_ns = s->opened_ns + offset_ns;
	} else if (now_ns >= enter) {
		ret_live->phase = LS_PHASE_SYNC_WAIT;
		ret_live->since_mono_ns = enter + offset_ns;
	} else if (now_ns >= work) {
		ret_live->phase = LS_PHASE_COMPUTE;
		ret_live->since_mono_ns = work + offset_ns;
	}
}

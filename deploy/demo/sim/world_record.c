/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deploy/demo/sim/world_state.h"

#include <math.h>
#include <string.h>

#define WORLD_TOKENS 4096.0
#define WORLD_LOAD 512.0

static uint64_t
world_ns(double s)
{
	return s > 0 ? (uint64_t)(s * 1e9 + 0.5) : 0;
}

/* What a worker's clock is off at a time; it wanders to and fro at the given drift,
 * within the known error. */
static double
world_clock_off(const struct sim_world *w, uint32_t rank, double t_s)
{
	double err = w->o.clock_err_s, way;

	if (err <= 0)
		return 0;
	way = fmod(t_s * w->o.clock_drift + (double)rank * 0.618 * err, 2 * err);
	return w->place[rank].clock_s + (way < err ? way : 2 * err - way) - 0.5 * err;
}

/* A time of the step on a clock that is off_s ahead. */
static int64_t
world_wall_ns(const struct sim_world *w, double off_s, double s)
{
	double ns = (w->t_s + s + off_s) * 1e9;

	return SIM_WORLD_START_US * 1000 + (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

static void
world_mark(struct ls_record *r, enum ls_phase phase, double s)
{
	r->phase_mask |= 1u << phase;
	r->phase_ns[phase] = world_ns(s);
}

static void
world_record_barriers(const struct sim_world *w, uint32_t rank, double off_s,
	struct ls_record *r)
{
	double late = w->cell[rank].end_s - w->length_s;

	r->barrier_count = 1;
	r->barrier[0].kind = LS_BARRIER_ICI;
	r->barrier[0].enter_ns =
		world_wall_ns(w, off_s, w->cell[rank].begin_s + w->cell[rank].own_s);
	r->barrier[0].exit_ns = world_wall_ns(w, off_s, w->cell[rank].ici_exit_s);
	if (w->o.slices < 2)
		return;
	r->barrier_count = 2;
	r->barrier[1].kind = LS_BARRIER_DCN;
	r->barrier[1].enter_ns = r->barrier[0].exit_ns;
	r->barrier[1].exit_ns = world_wall_ns(w, off_s, w->dcn_exit_s + late);
}

/* A ring within the slice. Waits are on the one before; on the one behind only where
 * the link is slow. */
static void
world_record_peers(const struct sim_world *w, uint32_t rank, double wait_s,
	struct ls_record *r)
{
	const struct world_place *p = &w->place[rank];
	const struct world_slice *sl = &w->slice[p->slice];
	double send_s = 1e-5 * w->o.step_s, recv_s;

	if (sl->count < 3)
		return;
	for (size_t i = 0; i < w->faults; i++) {
		const struct world_fault *f = &w->fault[i];

		if (f->is.kind == SIM_FAULT_ICI && f->active && f->is.who == rank)
			send_s += f->ici_s;
	}
	recv_s = fmax(0.97 * wait_s - send_s, 0);
	r->peer_count = 2;
	r->peer[0].rank = sl->first + (p->in_slice + sl->count - 1) % sl->count;
	r->peer[0].recv_wait_ns = world_ns(recv_s);
	r->peer[0].send_wait_ns = UINT64_MAX;
	r->peer[1].rank = sim_world_next_rank(w, rank);
	r->peer[1].recv_wait_ns = UINT64_MAX;
	r->peer[1].send_wait_ns = world_ns(send_s);
}

static void
world_fill(const struct sim_world *w, uint32_t rank, struct ls_record *r)
{
	const struct world_cell *c = &w->cell[rank];
	double late = w->cell[rank].end_s - w->length_s,
	       enter = w->cell[rank].begin_s + w->cell[rank].own_s;
	double off_s = world_clock_off(w, rank, w->t_s);

	*r = (struct ls_record){ .step = w->step - 1 };
	r->t_begin_ns = world_wall_ns(w, off_s, w->cell[rank].begin_s);
	r->duration_ns = world_ns(w->cell[rank].end_s - w->cell[rank].begin_s);
	for (unsigned p = 0; p < LS_PHASE_COUNT; p++)
		if (c->phase_s[p] > 0)
			world_mark(r, (enum ls_phase)p, (double)c->phase_s[p]);
	if (!w->o.replicas) {
		world_mark(r, LS_PHASE_SYNC_WAIT, w->dcn_exit_s + late - enter);
		world_mark(r, LS_PHASE_OTHER, w->length_s - w->dcn_exit_s);
	}
	r->work_mask = 1u << LS_WORK_TOKENS;
	r->work[LS_WORK_TOKENS] = WORLD_TOKENS * (double)c->work;
	if (w->loads) {
		r->work_mask |=
			1u << LS_WORK_EXPERT_LOAD_MAX | 1u << LS_WORK_EXPERT_LOAD_MEAN;
		r->work[LS_WORK_EXPERT_LOAD_MAX] = WORLD_LOAD * (double)c->load;
		r->work[LS_WORK_EXPERT_LOAD_MEAN] = WORLD_LOAD;
	}
	if (!w->o.clockless && !w->o.replicas)
		world_record_barriers(w, rank, off_s, r);
	if (w->o.peers && !w->o.replicas)
		world_record_peers(w, rank, w->cell[rank].ici_exit_s - enter, r);
}

/* A time that a clock reads, which ticks. */
static int64_t
world_read(const struct sim_world *w, int64_t ns)
{
	return ns - ns % (int64_t)w->o.clock_tick_ns; /* none is below 0 */
}

/* All of it by a clock that ticks; phases follow one another. */
static void
world_tick(const struct sim_world *w, struct ls_record *r)
{
	int64_t begin = world_read(w, r->t_begin_ns), at = r->t_begin_ns, next;

	for (unsigned p = 0; p < LS_PHASE_COUNT; p++) {
		next = at + (int64_t)r->phase_ns[p];
		r->phase_ns[p] = (uint64_t)(world_read(w, next) - world_read(w, at));
		at = next;
	}
	for (size_t k = 0; k < r->barrier_count; k++) {
		r->barrier[k].enter_ns = world_read(w, r->barrier[k].enter_ns);
		r->barrier[k].exit_ns = world_read(w, r->barrier[k].exit_ns);
	}
	r->duration_ns =
		(uint64_t)(world_read(w, r->t_begin_ns + (int64_t)r->duration_ns) -
			begin);
	r->t_begin_ns = begin;
}

bool
sim_world_record(const struct sim_world *w, uint32_t rank, struct ls_record *ret_record)
{
	uint64_t step = w->step - 1;

	if (w->place[rank].lost && step >= w->o.lost_from)
		return false;
	if (w->o.missing > 0 &&
		sim_noise_unit(sim_noise_key(w->o.seed, WORLD_STREAM_MISSING, step),
			rank) < w->o.missing)
		return false;
	world_fill(w, rank, ret_record);
	if (w->o.clock_tick_ns > 0)
		world_tick(w, ret_record);
	return true;
}

bool
sim_world_lie(const struct sim_world *w, uint32_t rank, struct ls_record *ret_record)
{
	uint64_t step = w->step - 1;
	size_t i;

	for (i = 0; i < w->faults; i++)
		if (w->fault[i].active && w->fault[i].is.kind == SIM_FAULT_LIES &&
			w->fault[i].is.who == rank)
			break;
	if (i == w->faults)
		return false;
	world_fill(w, rank, ret_record);
	switch (step % 4) {
	case 0:
		ret_record->barrier_count = 1;
		ret_record->barrier[0].enter_ns = ret_record->t_begin_ns + 1000000000;
		ret_record->barrier[0].exit_ns = ret_record->t_begin_ns;
		break;
	case 1:
		ret_record->phase_ns[LS_PHASE_COMPUTE] = 10 * ret_record->duration_ns;
		break;
	case 2:
		break; /* the same step once more */
	default:
		ret_record->step = step / 2;
		break;
	}
	return true;
}

void
sim_world_split(const struct sim_world *w, uint32_t rank, double *ret_own_s,
	double *ret_wait_s)
{
	*ret_own_s = w->cell[rank].own_s;
	*ret_wait_s = w->cell[rank].end_s - (w->length_s - w->dcn_exit_s) -
		w->cell[rank].begin_s - w->cell[rank].own_s;
}

double
sim_world_uncertainty(const struct sim_world *w, uint32_t rank)
{
	(void)rank; /* all clocks of a world are known alike */
	return w->o.clock_err_s;
}

void
sim_world_live(const struct sim_world *w, uint32_t rank, int64_t t_us,
	struct ls_ring_live *ret_live, int64_t *ret_since_us)
{
	double at = (double)(t_us - SIM_WORLD_START_US) * 1e-6 - w->t_s;
	double enter = w->cell[rank].begin_s + w->cell[rank].own_s;
	bool in = at >= enter;

	*ret_live = (struct ls_ring_live){ .step = w->step - 1,
		.phase = in ? LS_PHASE_SYNC_WAIT : LS_PHASE_COMPUTE };
	*ret_since_us = SIM_WORLD_START_US +
		llround((w->t_s + (in ? enter : w->cell[rank].begin_s)) * 1e6);
}

/* Counters of a quiet host: so much a second. */
static const struct world_rate {
	uint16_t metric;
	int extra; /* enum world_counter, or -1 */
	double per_s;
} world_rates[] = {
	{ LS_METRIC_HOST_CPU_THROTTLED, WORLD_THROTTLED, 0 },
	{ LS_METRIC_HOST_CGROUP_CPU, WORLD_CPU, 0.75 },
	{ LS_METRIC_HOST_CPU_BUSY, WORLD_CPU, 1.2 },
	{ LS_METRIC_HOST_TCP_RETRANSMITS, WORLD_RETRANSMITS, 0.05 },
	{ LS_METRIC_HOST_DISK_READ, -1, 4e6 },
	{ LS_METRIC_JOB_CPU, WORLD_CPU, 0.7 },
	{ LS_METRIC_JOB_RUNQUEUE_WAIT, WORLD_RUNQUEUE, 0.01 },
	{ LS_METRIC_JOB_INVOLUNTARY, WORLD_INVOLUNTARY, 5 },
	{ LS_METRIC_HOST_PSI_CPU, WORLD_PSI_CPU, 0.01 },
	{ LS_METRIC_HOST_PSI_IO, WORLD_PSI_IO, 0.002 },
};

size_t
sim_world_counters(const struct sim_world *w, uint32_t rank, int64_t t_us,
	uint16_t metric[LS_HOT_MAX], double value[LS_HOT_MAX])
{
	double t_s = (double)(t_us - SIM_WORLD_START_US) * 1e-6;
	uint64_t key = sim_noise_key(w->o.seed, WORLD_STREAM_COUNTERS, (uint64_t)t_us);
	size_t i, n = sizeof(world_rates) / sizeof(world_rates[0]);

	for (i = 0; i < n; i++) {
		const struct world_rate *r = &world_rates[i];
		/* read a little too late or too early, so rates differ by some percent
		 */
		double at = t_s + 0.05 * sim_noise_unit(key, (uint64_t)rank * n + i);

		metric[i] = r->metric;
		value[i] = r->per_s * at +
			(r->extra >= 0 ? w->cell[rank].extra[r->extra] : 0);
		if (r->metric == LS_METRIC_HOST_TCP_RETRANSMITS ||
			r->metric == LS_METRIC_JOB_INVOLUNTARY)
			value[i] = floor(value[i]);
	}
	return n;
}

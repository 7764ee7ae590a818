/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deploy/demo/sim/world_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define FAULT_QUOTA_RATIO 0.3 /* of the steps are throttled */
#define FAULT_DISK_STEPS 1.2 /* length of a stall */
#define FAULT_PAUSE_STEPS 1.5
#define FAULT_COMPILE_STEPS 2.0
#define FAULT_RATE_MAX 0.9 /* of stalls, a step */
#define FAULT_EVERY_STEPS 100u
#define FAULT_SAVES_STEPS 200u
#define FAULT_TIMEOUT_S 0.2 /* of TCP, the least on Linux */
#define FAULT_GC_RATIO 0.25 /* of the steps have a pause */
#define FAULT_AMOUNT_MAX 1000.0

static const struct sim_fault_info fault_table[] = {
#define SIM_FAULT(id, name, whom, kind, level, cause, phase, counter, help) \
	{ name, cause, help, SIM_WHO_##whom, SIM_TRUTH_##kind, SIM_SCOPE_##level },
#include "deploy/demo/sim/world_faults.def"
#undef SIM_FAULT
};

/* The part of a worker's own work that a fault makes longer, and what counts it. */
static const struct fault_work {
	enum ls_phase phase;
	enum world_counter counter;
} fault_works[] = {
#define SIM_FAULT(id, name, whom, kind, level, cause, phase, counter, help) \
	{ LS_PHASE_##phase, WORLD_##counter },
#include "deploy/demo/sim/world_faults.def"
#undef SIM_FAULT
};

const struct sim_fault_info *
sim_fault_info(enum sim_fault_kind kind)
{
	return &fault_table[kind];
}

const char *
sim_truth_name(enum sim_truth_kind kind)
{
	static const char *const names[] = {
#define SIM_TRUTH_NAME(id, name) name,
		SIM_TRUTHS(SIM_TRUTH_NAME)
#undef SIM_TRUTH_NAME
	};

	return names[kind];
}

const char *
sim_scope_name(enum sim_scope scope)
{
	static const char *const names[] = {
#define SIM_SCOPE_NAME(id, name) name,
		SIM_SCOPES(SIM_SCOPE_NAME)
#undef SIM_SCOPE_NAME
	};

	return names[scope];
}

bool
sim_world_concerns(const struct sim_world *w, const struct sim_fault *f, uint32_t rank)
{
	const struct world_place *p = &w->place[rank];

	switch (fault_table[f->kind].who) {
	case SIM_WHO_RANK:
		return rank == f->who ||
			(f->kind == SIM_FAULT_ICI && f->who < w->o.hosts &&
				rank == sim_world_next_rank(w, f->who));
	case SIM_WHO_SLICE:
		return p->slice == f->who;
	case SIM_WHO_SLICES:
		return p->slice == f->who || p->slice == f->other;
	case SIM_WHO_RACK:
		return p->rack == f->who;
	case SIM_WHO_STAGE:
		return p->stage == f->who;
	case SIM_WHO_SHARD:
		return rank % w->o.shards == f->who;
	case SIM_WHO_ALL:
	default:
		return true;
	}
}

static const char *
fault_wrong(const struct sim_world *w, const struct sim_fault *f)
{
	if ((unsigned)f->kind >= SIM_FAULT_COUNT)
		return "no such fault";
	if (!(f->amount >= 0 && f->amount <= FAULT_AMOUNT_MAX))
		return "the amount of a fault";
	if (f->from >= f->to)
		return "a fault ends before it begins";
	if (fault_table[f->kind].who == SIM_WHO_SLICES &&
		(f->who == f->other || f->other >= w->o.slices ||
			f->who >= w->o.slices))
		return "a fault between slices wants two of them";
	return NULL;
}

int
world_fault_init(struct sim_world *w, struct world_fault *f, const char **ret_why)
{
	*ret_why = fault_wrong(w, &f->is);
	if (*ret_why != NULL)
		return -LS_ERANGE;
	f->member = calloc(w->o.hosts, sizeof(*f->member));
	f->extra_s = calloc(w->o.hosts, sizeof(*f->extra_s));
	if (f->member == NULL || f->extra_s == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->o.hosts; i++)
		if (sim_world_concerns(w, &f->is, i))
			f->member[f->members++] = i;
	if (f->members == 0) {
		*ret_why =
			"a fault concerns nobody: there is no such rank, slice, rack, stage or shard";
		return -LS_ERANGE;
	}
	return 0;
}

void
world_fault_fini(struct world_fault *f)
{
	free(f->member);
	free(f->extra_s);
	f->member = NULL;
	f->extra_s = NULL;
}

/* Adds to own work on the account of a fault. */
static void
fault_add(struct sim_world *w, struct world_fault *f, uint32_t rank,
	enum ls_phase phase, double s)
{
	world_add(w, rank, phase, s);
	f->extra_s[rank] += s;
}

/* A stall of so many steps, as often as makes the amount on average; its length, or 0.
 */
static double
fault_stall(const struct sim_world *w, const struct world_fault *f, uint64_t key,
	double steps)
{
	double length = steps * w->o.step_s,
	       rate = f->is.amount * 0.8 * w->o.step_s / length;

	return sim_noise_unit(key, 0) < fmin(rate, FAULT_RATE_MAX) ? length : 0;
}

/* What one worker's own work gets. */
static void
fault_worker(struct sim_world *w, struct world_fault *f, uint32_t rank, uint64_t key)
{
	const struct fault_work *to = &fault_works[f->is.kind];
	struct world_cell *c = &w->cell[rank];
	/* what all do now and then instead is no work that a fault makes longer */
	double own = c->own_s -
		(w->special == LS_PHASE_COUNT ? 0 : (double)c->phase_s[w->special]);
	double more = f->is.amount * own, s = more,
	       steps_s = f->is.amount * w->o.step_s;
	double u = sim_noise_unit(key, 16 + rank);
	uint64_t since = w->step - f->is.from;

	switch (f->is.kind) {
	case SIM_FAULT_COMPUTE:
	case SIM_FAULT_CHIP:
	case SIM_FAULT_SLICE:
	case SIM_FAULT_RACK:
	case SIM_FAULT_SLOWER:
	case SIM_FAULT_SHARD:
	case SIM_FAULT_STARVED:
	case SIM_FAULT_H2D:
		break;
	case SIM_FAULT_CPU:
		s = more * -log(u);
		c->extra[WORLD_PSI_CPU] += s;
		c->extra[WORLD_INVOLUNTARY] += 20;
		break;
	case SIM_FAULT_QUOTA:
		s = u < FAULT_QUOTA_RATIO ? more / FAULT_QUOTA_RATIO : 0;
		break;
	case SIM_FAULT_INPUT:
		s = more * (0.5 + u);
		break;
	case SIM_FAULT_DISK:
		s = fault_stall(w, f, key, FAULT_DISK_STEPS);
		break;
	case SIM_FAULT_PAUSE:
		s = fault_stall(w, f, key, FAULT_PAUSE_STEPS);
		break;
	case SIM_FAULT_COMPILE:
		s = fault_stall(w, f, key, FAULT_COMPILE_STEPS);
		break;
	case SIM_FAULT_DRIFT:
	case SIM_FAULT_SLICE_DRIFT:
	case SIM_FAULT_RACK_DRIFT:
		s = more * (double)since * w->o.step_s / 3600;
		break;
	case SIM_FAULT_EVERY:
		s = since % FAULT_EVERY_STEPS == FAULT_EVERY_STEPS - 1 ? steps_s : 0;
		break;
	case SIM_FAULT_SAVES:
		s = since % FAULT_SAVES_STEPS == FAULT_SAVES_STEPS - 1 ? steps_s : 0;
		break;
	case SIM_FAULT_HANG:
		s = since == 0 ? steps_s : 0;
		break;
	case SIM_FAULT_IMBALANCE:
	case SIM_FAULT_STAGE:
		c->work *= (float)(1 + f->is.amount);
		break;
	case SIM_FAULT_EMBEDDING:
		c->load *= (float)(1 + f->is.amount);
		break;
	case SIM_FAULT_SEQUENCE:
		u = sqrt(3) * (2 * u - 1); /* even, of deviation 1 */
		c->work *= (float)fmax(1 + f->is.amount * u, 0);
		s = fmax(more * u, -0.7 * c->own_s);
		break;
	case SIM_FAULT_MOE:
		c->load *= (float)(1 + 2 * f->is.amount * u);
		s = 2 * more * u;
		break;
	case SIM_FAULT_GC:
	case SIM_FAULT_ICI:
	case SIM_FAULT_DCN:
	case SIM_FAULT_LOSS:
	case SIM_FAULT_LIES:
	case SIM_FAULT_COUNT:
	default:
		return; /* not of one worker's own work */
	}
	if (to->counter != WORLD_NONE)
		c->extra[to->counter] += fmax(s, 0);
	fault_add(w, f, rank, to->phase, s);
}

/* What is nobody's own work, and what hits one of many. */
static void
fault_common(struct sim_world *w, struct world_fault *f, uint64_t key)
{
	uint32_t i, rank;

	if (f->is.kind == SIM_FAULT_ICI) {
		f->ici_s = f->is.amount * w->o.step_s;
		w->slice[w->place[f->is.who].slice].extra_s += f->ici_s;
	} else if (f->is.kind == SIM_FAULT_DCN) {
		f->dcn_s = f->is.amount * w->o.step_s;
	} else if (f->is.kind == SIM_FAULT_LOSS) {
		double rate = f->is.amount * w->o.step_s / FAULT_TIMEOUT_S;

		if (sim_noise_unit(key, 0) < fmin(rate, FAULT_RATE_MAX))
			f->dcn_s = FAULT_TIMEOUT_S;
		for (i = 0; i < f->members; i++)
			w->cell[f->member[i]].extra[WORLD_RETRANSMITS] +=
				sim_noise_unit(key, 16 + i) < 2 * rate;
	} else if (f->is.kind == SIM_FAULT_GC &&
		sim_noise_unit(key, 0) < FAULT_GC_RATIO) {
		rank = (uint32_t)(sim_noise_unit(key, 1) * w->o.hosts);
		fault_add(w, f, rank, LS_PHASE_GC,
			f->is.amount / FAULT_GC_RATIO * w->cell[rank].own_s);
	}
	w->dcn_s += f->dcn_s;
}

void
world_faults_apply(struct sim_world *w)
{
	for (size_t k = 0; k < w->faults; k++) {
		struct world_fault *f = &w->fault[k];
		uint64_t key =
			sim_noise_key(w->o.seed, WORLD_STREAM_FAULT + k, w->step);

		for (uint32_t i = 0; i < w->o.hosts && f->active; i++)
			f->extra_s[i] = 0;
		f->ici_s = f->dcn_s = 0;
		/* a step that all spend otherwise has the same faults, but they are not
		 * counted in it */
		f->active = w->step >= f->is.from && w->step < f->is.to;
		if (!f->active)
			continue;
		for (uint32_t i = 0; i < f->members; i++)
			fault_worker(w, f, f->member[i], key);
		fault_common(w, f, key);
	}
}

void
world_faults_cost(struct sim_world *w)
{
	for (size_t k = 0; k < w->faults; k++) {
		struct world_fault *f = &w->fault[k];
		double added = 0;

		if (!f->active || w->special != LS_PHASE_COUNT)
			continue;
		for (uint32_t i = 0; i < f->members; i++)
			added += f->extra_s[f->member[i]];
		f->steps++;
		f->added_s += added / f->members + f->ici_s + f->dcn_s;
		f->cost_s += w->length_s - world_length_without(w, f);
	}
}

void
sim_world_truth(const struct sim_world *w, size_t i, struct sim_truth *ret_truth)
{
	const struct world_fault *f = &w->fault[i];
	double n = f->steps > 0 ? (double)f->steps : 1;

	*ret_truth = (struct sim_truth){ .fault = f->is,
		.info = sim_fault_info(f->is.kind),
		.steps = f->steps,
		.cost_s = f->cost_s / n,
		.extra_s = f->added_s / n };
}

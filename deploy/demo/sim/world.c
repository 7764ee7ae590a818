/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "deploy/demo/sim/world_state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/text.h"

/* Shares of a usual step. */
#define WORLD_INPUT 0.01
#define WORLD_H2D 0.01
#define WORLD_DISPATCH 0.02
#define WORLD_COMPUTE 0.76
#define WORLD_ICI 0.14
#define WORLD_DCN 0.05
#define WORLD_TAIL 0.01
#define WORLD_TRANSFER_NOISE 0.005 /* of a transfer */
/* stages differ by up to that much of their computation */
#define WORLD_STAGE_SPREAD 0.05
#define WORLD_INPUT_HOST 0.02 /* an input host has that much more to do */
#define WORLD_SPECIAL 8.0 /* a checkpoint, an evaluation takes so many steps */
#define WORLD_COMPILE 20.0 /* compiling takes so many */
#define WORLD_BURST_MIN_STEPS 20.0
#define WORLD_BURST_MAX_STEPS 80.0
#define WORLD_BURST_MIN 0.03 /* of a step, on average of a burst */
#define WORLD_BURST_MAX 0.15

void
sim_world_defaults(struct sim_world_options *ret_options)
{
	*ret_options = (struct sim_world_options){ .job = "sim-job",
		.seed = 1,
		.hosts = 64,
		.slices = 1,
		.stages = 1,
		.rack_hosts = 16,
		.shards = 16,
		.chips = 4,
		.step_s = 1,
		.noise = 0.003,
		.noise_kind = SIM_NOISE_T4,
		.exit_spread_s = 20e-6,
		.roles = true };
}

static const char *
world_wrong(const struct sim_world_options *o)
{
	if (o->hosts < 1 || o->hosts > SIM_WORLD_HOSTS_MAX)
		return "hosts";
	if (o->slices < 1 || o->slices > o->hosts)
		return "slices";
	if (o->stages < 1 || o->stages > o->hosts / o->slices)
		return "stages";
	if (o->rack_hosts < 1 || o->shards < 1 || o->chips < 0)
		return "rack, shards or chips";
	if (!(o->step_s >= 1e-3 && o->step_s <= 3600))
		return "step";
	if (!(o->noise >= 0 && o->noise <= 0.2) ||
		!(o->spread >= 0 && o->spread <= 0.2))
		return "noise or spread";
	if (!(o->missing >= 0 && o->missing <= 0.9) ||
		!(o->lost >= 0 && o->lost <= 0.9))
		return "missing or lost";
	if (!(o->clock_err_s >= 0 && o->clock_err_s <= 10) ||
		!(o->clock_drift >= 0 && o->clock_drift <= 1e-3))
		return "clock-error or clock-drift";
	if (!(o->exit_spread_s >= 0 && o->exit_spread_s <= 0.01 * o->step_s))
		return "exit-spread: at most a hundredth of a step";
	return NULL;
}

/* The usual work of a place: what its role and its own machine make of it. */
static void
world_place_usual(struct sim_world *w, uint32_t rank)
{
	const struct sim_world_options *o = &w->o;
	struct world_place *p = &w->place[rank];
	double stage = 1 +
		WORLD_STAGE_SPREAD *
			(2 *
					sim_noise_unit(sim_noise_key(o->seed,
							       WORLD_STREAM_STAGE, 0),
						p->stage) -
				1);
	double own = sim_noise_draw(&w->noise,
		sim_noise_key(o->seed, WORLD_STREAM_SPREAD, 0), rank);

	if (o->stages == 1)
		stage = 1;
	p->usual_s[LS_PHASE_INPUT_WAIT] = (float)(WORLD_INPUT * o->step_s);
	p->usual_s[LS_PHASE_H2D] = (float)(WORLD_H2D * o->step_s);
	p->usual_s[LS_PHASE_DISPATCH] =
		(float)((WORLD_DISPATCH + (p->input ? WORLD_INPUT_HOST : 0)) *
			o->step_s);
	/* constant differences are the machine's, so they are bounded: no host is born
	 * a straggler by them */
	p->usual_s[LS_PHASE_COMPUTE] =
		(float)((WORLD_COMPUTE * stage + fmax(fmin(own, 2), -2) * o->spread) *
			o->step_s);
}

static void
world_place_all(struct sim_world *w)
{
	const struct sim_world_options *o = &w->o;
	uint64_t lost = sim_noise_key(o->seed, WORLD_STREAM_LOST, 0);
	uint64_t clock = sim_noise_key(o->seed, WORLD_STREAM_CLOCK, 0);

	for (uint32_t s = 0; s < o->slices; s++) {
		struct world_slice *sl = &w->slice[s];

		sl->first = (uint32_t)((uint64_t)o->hosts * s / o->slices);
		sl->count = (uint32_t)((uint64_t)o->hosts * (s + 1) / o->slices) -
			sl->first;
		for (uint32_t i = 0; i < sl->count; i++) {
			struct world_place *p = &w->place[sl->first + i];

			p->slice = s;
			p->in_slice = i;
			p->stage = (uint32_t)((uint64_t)i * o->stages / sl->count);
			p->rack = (sl->first + i) / o->rack_hosts;
			p->input = o->input_every > 0 && i % o->input_every == 0;
			p->lost = sim_noise_unit(lost, sl->first + i) < o->lost;
			p->clock_s = o->clock_err_s *
				(sim_noise_unit(clock, sl->first + i) - 0.5);
			world_place_usual(w, sl->first + i);
		}
	}
}

static int
world_room(struct sim_world *w)
{
	w->place = calloc(w->o.hosts, sizeof(*w->place));
	w->cell = calloc(w->o.hosts, sizeof(*w->cell));
	w->slice = calloc(w->o.slices, sizeof(*w->slice));
	for (size_t k = 0; k < w->o.host_noises; k++) {
		w->host_noise[k] = calloc(w->o.hosts, sizeof(*w->host_noise[k]));
		if (w->host_noise[k] == NULL)
			return -ENOMEM;
	}
	return w->place == NULL || w->cell == NULL || w->slice == NULL ? -ENOMEM : 0;
}

int
sim_world_new(const struct sim_world_options *o, const struct sim_fault *faults,
	size_t count, struct sim_world **ret_world, const char **ret_why)
{
	const char *why = count > SIM_FAULTS_MAX ? "too many faults" : world_wrong(o);
	struct sim_world *w = why == NULL ? calloc(1, sizeof(*w)) : NULL;
	int rc = why != NULL ? -LS_ERANGE : w == NULL ? -ENOMEM : 0;

	if (rc != 0)
		goto out;
	w->o = *o;
	sim_noise_init(&w->noise, o->noise_kind);
	rc = world_room(w);
	if (rc != 0)
		goto out;
	world_place_all(w);
	while (rc == 0 && w->faults < count) {
		w->fault[w->faults].is = faults[w->faults];
		rc = world_fault_init(w, &w->fault[w->faults], &why);
		w->loads |= faults[w->faults].kind == SIM_FAULT_EMBEDDING ||
			faults[w->faults].kind == SIM_FAULT_MOE;
		w->faults++;
	}
	if (rc == 0) {
		*ret_world = w;
		w = NULL;
	}
out:
	if (rc != 0 && ret_why != NULL)
		*ret_why = why != NULL ? why : ls_err_text(rc);
	sim_world_free(w);
	return rc;
}

void
sim_world_free(struct sim_world *w)
{
	if (w == NULL)
		return;
	for (size_t i = 0; i < w->faults; i++)
		world_fault_fini(&w->fault[i]);
	free(w->place);
	free(w->cell);
	free(w->slice);
	for (size_t k = 0; k < w->o.host_noises; k++)
		free(w->host_noise[k]);
	free(w);
}

void
sim_world_worker(const struct sim_world *w, uint32_t rank,
	struct ls_worker_info *ret_info)
{
	const struct world_place *p = &w->place[rank];

	*ret_info = (struct ls_worker_info){ .rank = (int32_t)rank,
		.world = (int32_t)w->o.hosts,
		.chips = w->o.chips,
		.simulated = true };
	ls_ignore(snprintf(ret_info->job, sizeof(ret_info->job), "%s", w->o.job));
	ls_ignore(
		snprintf(ret_info->host, sizeof(ret_info->host), "sim%05u", rank + 1));
	ls_ignore(snprintf(ret_info->slice, sizeof(ret_info->slice), "%u", p->slice));
	if (w->o.roles && w->o.rack_hosts < w->o.hosts)
		ls_ignore(snprintf(ret_info->rack, sizeof(ret_info->rack), "r%u",
			p->rack));
	if (w->o.roles && w->o.shards > 1)
		ls_ignore(snprintf(ret_info->shard, sizeof(ret_info->shard), "i%u",
			rank % w->o.shards));
	if (w->o.roles && (w->o.stages > 1 || w->o.input_every > 0))
		ls_ignore(snprintf(ret_info->role, sizeof(ret_info->role), "stage%u%s",
			p->stage, p->input ? "-input" : ""));
}

uint32_t
sim_world_next_rank(const struct sim_world *w, uint32_t rank)
{
	const struct world_slice *sl = &w->slice[w->place[rank].slice];

	return sl->first + (w->place[rank].in_slice + 1) % sl->count;
}

bool
sim_world_is_lost(const struct sim_world *w, uint32_t rank)
{
	return w->place[rank].lost;
}

/* A step that all spend otherwise: the first ones compile, then now and then they save
 * or evaluate. */
static enum ls_phase
world_special(const struct sim_world *w)
{
	const struct sim_world_options *o = &w->o;

	if (w->step < o->compile_steps)
		return LS_PHASE_COMPILE;
	if (o->checkpoint_steps > 0 &&
		w->step % o->checkpoint_steps == o->checkpoint_steps - 1)
		return LS_PHASE_CHECKPOINT;
	if (o->eval_steps > 0 && w->step % o->eval_steps == o->eval_steps - 1)
		return LS_PHASE_EVAL;
	return LS_PHASE_COUNT;
}

/* Replicas serve batches of half to one and a half the usual size; 0.3 of the time does
 * not depend on it. */
static void
world_load(struct sim_world *w, uint64_t key, uint32_t rank)
{
	struct world_cell *c = &w->cell[rank];
	double load = 0.5 + sim_noise_unit(key, rank);

	c->work = (float)load;
	c->phase_s[LS_PHASE_COMPUTE] *= (float)(0.3 + 0.7 * load);
}

/* What a host takes longer or shorter in this step by one kind of noise, as a ratio. */
static double
world_host_noise(struct sim_world *w, size_t kind, uint32_t rank)
{
	const struct sim_host_noise *noise = &w->o.host_noise[kind];
	uint32_t whose[] = { rank, w->place[rank].rack, w->place[rank].slice, 0 },
		 at = whose[noise->scope];
	struct world_noise *n = &w->host_noise[kind][at];

	if (n->steps == 0) {
		n->random = sim_hash(w->o.seed, WORLD_STREAM_HOST, kind, at) | 1;
		sim_host_noise_begin(noise, &n->random, &n->state);
	}
	if (n->steps == w->step) { /* the first of those that share it */
		n->ratio = sim_host_noise_next(noise, &n->random, &n->state);
		n->steps++;
	}
	return n->ratio;
}

/* What healthy workers do in this step. */
static void
world_usual(struct sim_world *w)
{
	const struct sim_world_options *o = &w->o;
	uint64_t key = sim_noise_key(o->seed, WORLD_STREAM_OWN, w->step);
	double sigma = o->noise * o->step_s;
	double special = w->special == LS_PHASE_COUNT
		? 0
		: (w->special == LS_PHASE_COMPILE ? WORLD_COMPILE : WORLD_SPECIAL) *
			o->step_s;
	uint64_t load = sim_noise_key(o->seed, WORLD_STREAM_LOAD, w->step);

	for (uint32_t i = 0; i < o->hosts; i++) {
		struct world_cell *c = &w->cell[i];
		double z = sim_noise_draw(&w->noise, key, i), own, least;

		memcpy(c->phase_s, w->place[i].usual_s, sizeof(c->phase_s));
		c->work = c->load = 1;
		if (o->replicas)
			world_load(w, load, i);
		least = -0.9 * (double)c->phase_s[LS_PHASE_COMPUTE];
		own = sigma * z;
		for (size_t k = 0; k < o->host_noises; k++)
			own += o->step_s * world_host_noise(w, k, i);
		c->phase_s[LS_PHASE_COMPUTE] += (float)(own > least ? own : least);
		if (special > 0)
			c->phase_s[w->special] = (float)(special * (1 + o->noise * z));
		own = (double)c->phase_s[LS_PHASE_COMPUTE] +
			(double)c->phase_s[LS_PHASE_INPUT_WAIT] +
			(double)c->phase_s[LS_PHASE_H2D] +
			(double)c->phase_s[LS_PHASE_DISPATCH];
		w->cell[i].own_s =
			own + (special > 0 ? (double)c->phase_s[w->special] : 0);
	}
}

/* Two neighbours share a core for a while: it looks like a fault and is none. */
static void
world_bursts(struct sim_world *w)
{
	const struct sim_world_options *o = &w->o;
	uint64_t key = sim_noise_key(o->seed, WORLD_STREAM_BURST, w->step);
	uint32_t i, k;

	for (i = 0; i < WORLD_BURSTS_MAX; i++) {
		struct world_burst *b = &w->burst[i];

		if (b->until > w->step)
			for (k = 0; k < 2; k++) {
				double s = b->amount_s *
					-log(sim_noise_unit(key, 8 + 2 * i + k));

				if ((b->rank ^ k) >= o->hosts)
					continue;
				world_add(w, b->rank ^ k, LS_PHASE_DISPATCH, s);
				w->cell[b->rank ^ k].extra[WORLD_RUNQUEUE] += s;
				w->cell[b->rank ^ k].extra[WORLD_PSI_CPU] += s;
			}
	}
	if (o->burst_steps == 0 || sim_noise_unit(key, 0) * o->burst_steps >= 1)
		return;
	for (i = 0; i < WORLD_BURSTS_MAX && w->burst[i].until > w->step;)
		i++;
	if (i == WORLD_BURSTS_MAX)
		return; /* so many at once say nothing new */
	w->burst[i].rank = (uint32_t)(sim_noise_unit(key, 1) * o->hosts);
	w->burst[i].until = w->step + 1 +
		(uint64_t)(WORLD_BURST_MIN_STEPS +
			(WORLD_BURST_MAX_STEPS - WORLD_BURST_MIN_STEPS) *
				sim_noise_unit(key, 2));
	w->burst[i].amount_s = o->step_s *
		(WORLD_BURST_MIN +
			(WORLD_BURST_MAX - WORLD_BURST_MIN) * sim_noise_unit(key, 3));
}

double
world_length_without(const struct sim_world *w, const struct world_fault *f)
{
	double last = 0;

	/* nobody waits for it: it costs what it takes longer itself */
	if (w->o.replicas) {
		for (uint32_t i = 0; f != NULL && i < f->members; i++)
			last += f->extra_s[f->member[i]] / f->members;
		return w->length_s - last;
	}
	for (uint32_t s = 0; s < w->o.slices; s++) {
		const struct world_slice *sl = &w->slice[s];
		double late = 0;

		for (uint32_t i = sl->first; i < sl->first + sl->count; i++)
			late = fmax(late,
				w->cell[i].begin_s + w->cell[i].own_s -
					(f != NULL && f->extra_s != NULL ? f->extra_s[i]
									 : 0));
		late += w->ici_s + sl->extra_s -
			(f != NULL && f->members > 0 &&
						w->place[f->member[0]].slice == s
					? f->ici_s
					: 0);
		last = fmax(last, late);
	}
	return last + w->dcn_s - (f != NULL ? f->dcn_s : 0) + WORLD_TAIL * w->o.step_s;
}

static void
world_barriers(struct sim_world *w)
{
	const struct sim_world_options *o = &w->o;
	uint64_t transfer = sim_noise_key(o->seed, WORLD_STREAM_TRANSFER, w->step);
	uint64_t leave = sim_noise_key(o->seed, WORLD_STREAM_EXIT, w->step);
	double tail = WORLD_TAIL * o->step_s;

	w->ici_s = WORLD_ICI * o->step_s *
		(1 + WORLD_TRANSFER_NOISE * sim_noise_draw(&w->noise, transfer, 0));
	if (o->slices > 1)
		w->dcn_s += WORLD_DCN * o->step_s *
			(1 +
				WORLD_TRANSFER_NOISE *
					sim_noise_draw(&w->noise, transfer, 1));
	w->dcn_exit_s = 0;
	for (uint32_t s = 0; s < o->slices; s++) {
		struct world_slice *sl = &w->slice[s];

		sl->last_s = 0;
		for (uint32_t i = sl->first; i < sl->first + sl->count; i++)
			sl->last_s =
				fmax(sl->last_s, w->cell[i].begin_s + w->cell[i].own_s);
		sl->exit_s = sl->last_s + w->ici_s + sl->extra_s;
		w->dcn_exit_s = fmax(w->dcn_exit_s, sl->exit_s);
	}
	w->dcn_exit_s += w->dcn_s;
	w->length_s = w->dcn_exit_s + tail;
	for (uint32_t i = 0; i < o->hosts; i++) {
		double late = o->exit_spread_s * sim_noise_unit(leave, i);

		w->cell[i].ici_exit_s = w->slice[w->place[i].slice].exit_s + late;
		w->cell[i].end_s = w->length_s + late;
	}
	for (uint32_t i = 0; i < o->hosts && o->replicas; i++)
		w->cell[i].end_s = w->cell[i].begin_s +
			w->cell[i].own_s; /* then it rests until the next batch */
}

void
sim_world_next(struct sim_world *w, struct sim_world_step *ret_step)
{
	double hang = 0;

	if (w->step > 0) {
		for (size_t i = 0; i < w->o.hosts; i++)
			w->cell[i].begin_s =
				w->o.replicas ? 0 : w->cell[i].end_s - w->length_s;
		w->t_s += w->length_s;
	}
	w->special = world_special(w);
	for (size_t i = 0; i < w->o.slices; i++)
		w->slice[i].extra_s = 0;
	w->dcn_s = 0;
	world_usual(w);
	world_bursts(w);
	world_faults_apply(w);
	world_barriers(w);
	world_faults_cost(w);
	for (size_t i = 0; i < w->faults; i++)
		if (w->fault[i].active && w->fault[i].is.kind == SIM_FAULT_HANG)
			hang = fmax(hang,
				w->length_s - world_length_without(w, &w->fault[i]));
	*ret_step = (struct sim_world_step){ .step = w->step,
		.duration_s = w->length_s,
		.hang_s = hang,
		.begin_us = SIM_WORLD_START_US + llround(w->t_s * 1e6),
		.end_us = SIM_WORLD_START_US + llround((w->t_s + w->length_s) * 1e6) };
	w->step++;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_state - the memory of a simulated world, shared by its own parts (world,
 * world_faults, world_record) and nobody else.
 *
 * Owner:   the world.
 * Units:   seconds. Times within a step count from its common begin, t_s; t_s counts
 *          from SIM_WORLD_START_US.
 * Errors:  none here.
 * Limits:  those of world.h.
 * Source:  deploy/demo/sim/world.h.
 */
#ifndef LS_TESTS_SIM_WORLD_STATE_H
#define LS_TESTS_SIM_WORLD_STATE_H

#include "deploy/demo/sim/world.h"

#define WORLD_BURSTS_MAX 8u

/* Streams of random numbers. Append only: what is drawn elsewhere must not change. */
enum world_stream {
	WORLD_STREAM_OWN,
	WORLD_STREAM_EXIT,
	WORLD_STREAM_TRANSFER,
	WORLD_STREAM_SPREAD,
	WORLD_STREAM_STAGE,
	WORLD_STREAM_LOST,
	WORLD_STREAM_MISSING,
	WORLD_STREAM_CLOCK,
	WORLD_STREAM_BURST,
	WORLD_STREAM_COUNTERS,
	WORLD_STREAM_LOAD,
	WORLD_STREAM_FAULT, /* + number of the fault */
	WORLD_STREAM_HOST = WORLD_STREAM_FAULT + SIM_FAULTS_MAX
};

struct world_place {
	uint32_t slice, stage, rack, in_slice;
	bool input, lost;
	float usual_s[LS_PHASE_COUNT];
	double clock_s; /* constant part of what its clock is off */
};

struct world_slice {
	uint32_t first, count;
	double last_s, exit_s; /* last arrival; when the barrier opened */
	double extra_s; /* faults of the network within it */
};

/* Counters that faults move; the others only run. */
enum world_counter {
	WORLD_CPU,
	WORLD_RUNQUEUE,
	WORLD_THROTTLED,
	WORLD_RETRANSMITS,
	WORLD_PSI_CPU,
	WORLD_PSI_IO,
	WORLD_INVOLUNTARY,
	WORLD_COUNTER_COUNT,
	WORLD_NONE = WORLD_COUNTER_COUNT
};

/* What a worker did in the step. */
struct world_cell {
	float phase_s[LS_PHASE_COUNT];
	float work, load; /* tokens and greatest expert load, against the usual */
	/* begin and end within the step */
	double own_s, begin_s, ici_exit_s, end_s;
	double extra[WORLD_COUNTER_COUNT]; /* of counters, since the start */
};

struct world_fault {
	struct sim_fault is;
	uint32_t *member; /* ranks it concerns, ascending */
	uint32_t members;
	/* by rank: what it added to own work in this step; NULL: it never does */
	double *extra_s;
	double ici_s, dcn_s; /* what it added to transfers in this step */
	bool active;
	uint64_t steps;
	double cost_s, added_s; /* sums */
};

struct world_burst {
	uint32_t rank; /* and its neighbour rank ^ 1 */
	uint64_t until;
	double amount_s;
};

/* What a host, or those that share it, takes longer or shorter by. */
struct world_noise {
	struct sim_host_noise_state state;
	uint64_t random;
	uint64_t steps; /* that it has gone on by */
	double ratio; /* in the newest of them */
};

struct sim_world {
	struct sim_world_options o;
	struct sim_noise noise;
	/* by rank */
	struct world_place *place;
	struct world_cell *cell;
	struct world_slice *slice;
	/* by rank, rack or slice, whose noise it is */
	struct world_noise *host_noise[SIM_HOST_NOISES_MAX];
	struct world_fault fault[SIM_FAULTS_MAX];
	size_t faults;
	/* a fault is of loads: the job has experts, and every record tells theirs */
	bool loads;
	struct world_burst burst[WORLD_BURSTS_MAX];
	uint64_t step; /* the next */
	double t_s; /* common begin of the step made last */
	double length_s; /* of that step */
	/* transfers of that step; when its last barrier opened */
	double ici_s, dcn_s, dcn_exit_s;
	/* of that step for all: CHECKPOINT, EVAL, COMPILE; or LS_PHASE_COUNT */
	enum ls_phase special;
};

/* Adds to a worker's own work. */
static inline void
world_add(struct sim_world *w, uint32_t rank, enum ls_phase phase, double s)
{
	w->cell[rank].phase_s[phase] += (float)s;
	w->cell[rank].own_s += s;
}

/* Makes room for a fault and finds whom it concerns; -ENOMEM, -LS_ERANGE with *ret_why.
 */
int world_fault_init(struct sim_world *w, struct world_fault *f,
	const char **ret_why) LS_MUSTCHECK;
void world_fault_fini(struct world_fault *f);

/* Lets all faults do their work on the step being made. */
void world_faults_apply(struct sim_world *w);

/* After the barriers: what each fault cost in this step. */
void world_faults_cost(struct sim_world *w);

/* Length of the step in all slices if `f` (may be NULL) had not been. */
double world_length_without(const struct sim_world *w, const struct world_fault *f);

#endif

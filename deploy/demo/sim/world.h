/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - a synchronous training job that never ran, with faults of which the truth is
 * known.
 *
 * A step: each worker does its own work (input, copy, dispatch, compute; a factor of
 * its role, noise), then enters the barrier of its slice, which opens when the last has
 * come and the data are across; with several slices a second barrier between them
 * follows. So totals are equal, and only the split betrays who was late. What a fault
 * costs is the difference to the same step, of the same random numbers, without it.
 *
 * Nothing here was measured. Hosts are sim00001, ...; the job is "sim-job".
 *
 * Owner:   the thread that made it. Pure: no I/O, no clock, no globals; same options,
 *          same numbers.
 * Units:   seconds; microseconds since the epoch for times; ratios.
 * Errors:  -LS_ERANGE, -ENOMEM.
 * Limits:  SIM_WORLD_HOSTS_MAX hosts, SIM_FAULTS_MAX faults at once.
 * Source:  shape of a step, of contention, stalls, time-outs and of waits on peers:
 *          recorded runs of real jobs with real faults; faults: the table of causes in
 *          collector/README.md.
 */
#ifndef LS_TESTS_SIM_WORLD_H
#define LS_TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/metrics.h"
#include "proto/ring/record.h"
#include "proto/ring/ring.h"
#include "deploy/demo/sim/noise/host_noise.h"
#include "deploy/demo/sim/noise/noise.h"

/* what a job of benches may have; the engine takes LS_WORKERS_MAX */
#define SIM_WORLD_HOSTS_MAX 16384u
#define SIM_FAULTS_MAX 16u
#define SIM_HOST_NOISES_MAX 4u
#define SIM_WORLD_START_US 1700000000000000ll
#define SIM_WORLD_HANG_LIVE_S 1.0 /* live slots come so often */

enum sim_fault_kind {
#define SIM_FAULT(id, name, who, truth, scope, cause, phase, counter, help) \
	SIM_FAULT_##id,
#include "deploy/demo/sim/world_faults.def"
#undef SIM_FAULT
	SIM_FAULT_COUNT
};

enum sim_who {
	SIM_WHO_RANK,
	SIM_WHO_SLICE,
	SIM_WHO_SLICES,
	SIM_WHO_RACK,
	SIM_WHO_STAGE,
	SIM_WHO_SHARD,
	SIM_WHO_ALL
};

/* What a finding about the fault should be. NONE: nothing; BENIGN: nothing need be, a
 * `periodic` may. */
/* clang-format off */
#define SIM_TRUTHS(X) \
	X(STRAGGLER, "straggler") X(LINK, "link") X(HANG, "hang") X(JOB, "job_slow") \
	X(IMBALANCE, "imbalance") X(PERIODIC, "periodic") X(BENIGN, "benign") X(NONE, "none")
/* clang-format on */
enum sim_truth_kind {
#define SIM_TRUTH_ID(id, name) SIM_TRUTH_##id,
	SIM_TRUTHS(SIM_TRUTH_ID)
#undef SIM_TRUTH_ID
		SIM_TRUTH_COUNT
};

/* Whom it concerns. DCN: hosts of two slices, any of them or the job. */
/* clang-format off */
#define SIM_SCOPES(X) \
	X(HOST, "host") X(LINK, "link") X(DCN, "dcn") X(SLICE, "slice") X(GROUP, "group") \
	X(SHARD, "input_shard") X(JOB, "job")
/* clang-format on */
enum sim_scope {
#define SIM_SCOPE_ID(id, name) SIM_SCOPE_##id,
	SIM_SCOPES(SIM_SCOPE_ID)
#undef SIM_SCOPE_ID
		SIM_SCOPE_COUNT
};

struct sim_fault {
	enum sim_fault_kind kind;
	uint32_t who, other; /* rank, slice, ...; other: the second slice of SLICES */
	double amount; /* a ratio */
	uint64_t from, to; /* steps: from <= step < to */
};

struct sim_fault_info {
	const char *name, *cause, *help;
	enum sim_who who;
	enum sim_truth_kind truth;
	enum sim_scope scope;
};

struct sim_world_options {
	char job[LS_JOB_NAME_MAX_BYTES];
	uint64_t seed;
	uint32_t hosts;
	uint32_t slices; /* contiguous ranks, as even as can be */
	/* pipeline stages, contiguous within a slice; 1: flat */
	uint32_t stages;
	/* each so-many-th host of a slice feeds others and has more to do; 0: none */
	uint32_t input_every;
	uint32_t rack_hosts;
	uint32_t shards; /* input shards: rank modulo so many */
	int32_t chips;
	double step_s; /* about; own work is 0.8 of it */
	double noise; /* deviation of the own work, ratio to the step */
	enum sim_noise_kind noise_kind;
	/* deviation of constant differences between hosts, ratio to the step */
	double spread;
	/* beside that */
	struct sim_host_noise host_noise[SIM_HOST_NOISES_MAX];
	size_t host_noises;
	/* on average a pair of neighbours shares a core each so many steps; 0: never */
	uint32_t burst_steps;
	/* all hosts, each so many steps; 0: never */
	uint32_t checkpoint_steps, eval_steps;
	uint32_t compile_steps; /* first steps of the job, which compile */
	double missing; /* share of records that are lost on the way */
	/* share of hosts whose agents are silent from lost_from on */
	double lost;
	uint64_t lost_from;
	double clock_err_s; /* clocks are off by at most that, and it is said */
	double clock_drift; /* s/s, part of it */
	uint64_t clock_tick_ns; /* clocks read whole ticks; 0: exact */
	bool clockless; /* no barrier times: durations alone */
	/* workers leave a barrier within so long of each other */
	double exit_spread_s;
	/* are stages, input hosts, racks and shards told? They are there all the same.
	 */
	bool roles;
	bool peers; /* do records tell waits on neighbours? */
	/* no barrier: each serves its own batches, which vary; slices and links are no
	 * matter */
	bool replicas;
};

struct sim_world_step {
	uint64_t step;
	int64_t begin_us, end_us;
	double duration_s;
	double hang_s; /* > 0: it lasts so much longer than a step should */
};

/* What is true of a fault, up to the last step made. */
struct sim_truth {
	struct sim_fault fault;
	const struct sim_fault_info *info;
	uint64_t steps; /* in which it was active */
	double cost_s; /* mean of these: step time with it less without it */
	/* mean added to the own work of a worker concerned, or to the transfer */
	double extra_s;
};

struct sim_world;

/* 64 hosts, one slice, flat, steps of 1 s, 0.3 % of t4, roles told, nothing else. */
void sim_world_defaults(struct sim_world_options *ret_options);

const struct sim_fault_info *sim_fault_info(enum sim_fault_kind kind);
const char *sim_truth_name(enum sim_truth_kind kind);
const char *sim_scope_name(enum sim_scope scope);

/* -LS_ERANGE: an option or a fault that cannot be; *ret_why (may be NULL) says which.
 */
int sim_world_new(const struct sim_world_options *o, const struct sim_fault *faults,
	size_t count, struct sim_world **ret_world, const char **ret_why) LS_MUSTCHECK;
void sim_world_free(struct sim_world *w);

/* Who a worker is. */
void sim_world_worker(const struct sim_world *w, uint32_t rank,
	struct ls_worker_info *ret_info);

/* The next rank of the ring of its slice: where its link leads. */
uint32_t sim_world_next_rank(const struct sim_world *w, uint32_t rank);

/* Is it one of those whose agent is (or will be) silent? */
bool sim_world_is_lost(const struct sim_world *w, uint32_t rank);

/* Makes the next step. */
void sim_world_next(struct sim_world *w, struct sim_world_step *ret_step);

/* The record of a worker of the step made last; false: it did not arrive. */
bool sim_world_record(const struct sim_world *w, uint32_t rank,
	struct ls_record *ret_record);

/* What a worker that lies sends beside it; false: nothing. */
bool sim_world_lie(const struct sim_world *w, uint32_t rank,
	struct ls_record *ret_record);

/* Own work and waits of a worker in the step made last, as its record tells them. */
void sim_world_split(const struct sim_world *w, uint32_t rank, double *ret_own_s,
	double *ret_wait_s);

/* Hot values of a worker's host at t_us, at the end of the step made last; returns how
 * many. */
size_t sim_world_counters(const struct sim_world *w, uint32_t rank, int64_t t_us,
	uint16_t metric[LS_HOT_MAX], double value[LS_HOT_MAX]);

/* Where a worker is at t_us, a time within the step made last. */
void sim_world_live(const struct sim_world *w, uint32_t rank, int64_t t_us,
	struct ls_ring_live *ret_live, int64_t *ret_since_us);

/* How well its clock is known. */
double sim_world_uncertainty(const struct sim_world *w, uint32_t rank);

/* Does the fault concern the worker? Of a link: is it one of its ends? */
bool sim_world_concerns(const struct sim_world *w, const struct sim_fault *f,
	uint32_t rank);

/* The truth of fault i. */
void sim_world_truth(const struct sim_world *w, size_t i, struct sim_truth *ret_truth);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - a synchronous training job that is only reckoned: when each worker of it began,
 * waited and ended.
 *
 * A step begins for all at once. Each worker takes a little of it for input, its own
 * work (0.3 % of noise, now and then 1 % more, and what --slow adds), then enters the
 * barrier of its slice, which opens when the last one has come, then that between the
 * slices. What follows is a short rest, alike for all.
 *
 * Owner:   the thread that made it. Pure: it knows no clock, time is given.
 * Units:   ns of the simulator's CLOCK_MONOTONIC; records are moved to the clock of
 *          their host.
 * Errors:  NULL out of memory; -LS_ESTALE a step that is not kept any more.
 * Limits:  SIM_STEPS_KEPT steps are kept.
 * Source:  the shape follows the recorded clean runs of four and eight ranks: own work
 *          about 90 % of the step, the rest waits and hand-over.
 */
#ifndef LS_TESTS_SIM_JOB_H
#define LS_TESTS_SIM_JOB_H

#include "proto/ring/record.h"
#include "proto/ring/ring.h"
#include "deploy/demo/sim/sim.h"

struct sim_job;

/* A job whose first step begins at start_ns; none of the hosts, slices or steps a
 * second may be 0. */
struct sim_job *sim_job_new(const struct sim_options *o, const struct sim_slow *slow,
	uint64_t start_ns);
void sim_job_free(struct sim_job *job);

/* Goes on until now; returns how many steps are complete. */
uint64_t sim_job_advance(struct sim_job *job, uint64_t now_ns);

/* The first step that is still kept. */
uint64_t sim_job_first(const struct sim_job *job);

/* When a complete step ended. */
uint64_t sim_job_end_ns(const struct sim_job *job, uint64_t step);

/* The record of one worker of a complete step, on a clock that is offset_ns ahead. */
int sim_job_record(const struct sim_job *job, uint32_t rank, uint64_t step,
	uint64_t offset_ns, struct ls_record *ret_record) LS_MUSTCHECK;

/* Where a worker is now, in the step under way. */
void sim_job_live(const struct sim_job *job, uint32_t rank, uint64_t now_ns,
	uint64_t offset_ns, struct ls_ring_live *ret_live);

/* The slice of a rank: slices are runs of ranks, as even as can be. */
uint32_t sim_job_slice(const struct sim_job *job, uint32_t rank);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_job - a synchronous job that never ran: every worker's own work, then a barrier
 * that all leave when the last has arrived. Seeded: the same job each time.
 *
 * Owner:   test programs; one engine each.
 * Units:   seconds; microseconds since the epoch for times.
 * Errors:  none; an engine that refuses ends the program, a finding that is another
 *          fails the test.
 * Limits:  FAKE_WORKERS_MAX workers, FAKE_EVENTS_MAX events kept.
 */
#ifndef LS_TESTS_FAKE_JOB_H
#define LS_TESTS_FAKE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include "collector/engine/engine.h"

#define FAKE_WORKERS_MAX 16384
#define FAKE_EVENTS_MAX 1024
#define FAKE_SLICES_MAX 4
#define FAKE_RANKS_MAX 64 /* of an observed standstill */
#define FAKE_START_US 1700000000000000ll
/* CPU time and wait for a CPU of the worker; throttled time and segments sent again of its
 * host */
#define FAKE_COUNTERS 4

struct fake_worker {
	uint32_t handle;
	double slow; /* factor on its own work */
	double send_s; /* it waits for the next worker to take what it sends */
	double once_s; /* added to the next step's own work; as SYNC_WAIT: it leaves the collective so late */
	double off_s; /* what its clock is ahead by */
	double behind_s; /* begins its next step so long after the others */
	/* the phase that tells it; LS_PHASE_COUNT: none, it is between two steps */
	enum ls_phase once_as;
	double input_s; /* of the own work, spent waiting for input */
	bool mute; /* does not report */
	bool markless; /* its records say how long a step took, and no more */
	double expert; /* load of its fullest expert, of 100 on average; 0: not told */
	double wander; /* what its work varies by now */
	/* counters grow by so much a step, and have grown to */
	double grows[FAKE_COUNTERS], grown[FAKE_COUNTERS];
	struct ls_record record; /* of the newest step */
	/* of a serving job (scenario/serving.h): the number and begin of its next batch, a factor on
	 * its load, a rest before the next batch; tells no load; marks waits */
	uint64_t serves;
	int64_t begin_us;
	double more, idle_s;
	bool loadless, waits;
};

/* What the sink was told. */
struct fake_event {
	char id[24], event[16], scope[16], host[16];
	uint64_t step;
	int64_t t_us;
};

struct fake_job {
	struct ls_engine *engine;
	const char *name;
	int32_t attempt, chips; /* chips of each worker */
	size_t count;
	struct fake_worker *workers;
	uint64_t random;
	double own_s, noise, collective_s; /* noise: ratio to own_s */
	double comm_s; /* added to every collective */
	double apart_s; /* in each step, each rank is so much earlier than the one before */
	/* work wanders: of what it varies by, so much is kept, and normal noise of this
	 * deviation is added */
	double keep, wander;
	size_t wander_of; /* neighbours that wander alike; 0: each for itself */
	int32_t world; /* workers report that so many are in the job; -1: nothing; 0: count */
	size_t slices; /* 0 or 1: one; else a barrier in each, and one of all */
	size_t on_host; /* workers of a host; 0: one */
	size_t first_host; /* number of the first rank's */
	size_t in_rack; /* neighbours that share a rack; 0: none is told */
	size_t shards; /* input shards, dealt out in turn; 0: none is told */
	/* pipeline stages, dealt out in turn, as roles; 0: none is told */
	size_t stages;
	/* added to the first barrier of a slice */
	double slice_comm_s[FAKE_SLICES_MAX];
	/* noise of Student's t with 4 degrees of freedom, of the same spread */
	bool tails;
	bool clockless; /* no barrier times, only sync_wait */
	/* the next step checkpoints, on all workers, ten times as long */
	bool checkpoint;
	bool shuffle; /* records of a step arrive in any order */
	bool serving; /* a serving job: its workers do not wait for each other, but if together */
	bool together;
	double curve; /* seconds for the square of a load */
	double spread; /* loads are from 50 to so much more */
	/* what the engine took from a serving job, and what it closed; NULL: not wanted */
	void (*told)(struct fake_job *job, size_t worker, const struct ls_record *r);
	void (*told_closed)(struct fake_job *job, const struct ls_engine_close *c);
	void *arg; /* theirs */
	size_t counted_steps; /* counters are told each so many steps; 0: never */
	uint64_t step; /* the next */
	int64_t now_us; /* the next step's begin */
	struct fake_event events[FAKE_EVENTS_MAX];
	size_t event_count;
	uint64_t windows; /* of closed */
	uint64_t closed, used_last, missing_last, expected_last;
	int32_t missing_first;
	size_t hangs; /* observed so far; the newest: */
	struct ls_engine_hang hang;
	int32_t hang_ranks[FAKE_RANKS_MAX];
};

/* A job of count workers on hosts h0, h1, ... with an engine of its own; 100 ms steps,
 * 0.3 % noise. */
struct fake_job *fake_job_new(size_t count);

/* The same, no worker declared yet, on this engine (from then on the job's), or NULL: a
 * new one. */
struct fake_job *fake_job_on(struct ls_engine *engine, const char *name, size_t count);

/* The same on an engine of its own, with so many slices, after 150 steps in which
 * nothing was told. */
struct fake_job *fake_job_sliced(size_t count, size_t slices);

/* Array of all its workers, as the API shows them, most suspected first. */
json_t *fake_job_hosts(const struct fake_job *job);

/* Declares all workers of the present attempt. */
void fake_job_declare(struct fake_job *job);

/* Frees the job and its engine. */
void fake_job_free(struct fake_job *job);

/* Makes the records of the next step, and moves on to its end. */
void fake_job_make(struct fake_job *job);

/* Gives the newest records to the engine at job->now_us, and lets time pass. */
void fake_job_report(struct fake_job *job);

/* Tells the live slot of a worker at job->now_us: in the next step, in this phase since
 * then. */
void fake_job_live(struct fake_job *job, size_t worker, enum ls_phase phase,
	int64_t since_us);

/* Lets the work of each worker wander by one step. */
void fake_job_wander(struct fake_job *job);

/* Makes and reports so many steps. */
void fake_job_run(struct fake_job *job, size_t steps);

/* The newest step's record of a worker as a line of a replay file, with newline;
 * returns its length. */
size_t fake_job_line(const struct fake_job *job, size_t worker, char *text,
	size_t size);

/* Findings of the engine as told last: all of them, canonical text; free it. */
char *fake_job_findings(const struct fake_job *job);

/* Finding i of the engine as told last: new reference; NULL if there is none. */
json_t *fake_job_finding(const struct fake_job *job, size_t i);

/* Fails the test unless one finding was opened: of this kind and scope, in this slice
 * ("": whichever). */
void fake_job_only(const struct fake_job *job, const char *kind, const char *scope,
	const char *slice);

/* What finding i has cost so far, chip-hours. */
double fake_job_cost(const struct fake_job *job, size_t i);

/* Counters of the engine. */
struct ls_engine_stats fake_job_stats(const struct fake_job *job);

/* How often an event was told. */
size_t fake_job_told(const struct fake_job *job, const char *event);

/* A number of 0..1; and one of mean 0 and standard deviation 1. */
double fake_job_random(struct fake_job *job);
double fake_job_normal(struct fake_job *job);

#endif

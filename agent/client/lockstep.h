/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep - step marks for a training process: a ring file that the agent reads.
 *
 * No call blocks, allocates after lockstep_open, raises a signal or fails the caller:
 * where no ring can be made, marks do nothing, and opening is tried again every 10 s. A
 * forked child has no ring.
 *
 *     for (n = 0; n < steps; n++) {
 *             lockstep_step_begin(n);
 *             lockstep_phase(LOCKSTEP_INPUT_WAIT);   batch = next(loader);
 *             lockstep_phase(LOCKSTEP_COMPUTE);      gradients(batch);
 *             lockstep_sync_enter(LOCKSTEP_BARRIER_ICI);
 *             all_reduce();
 *             lockstep_sync_exit();
 *             lockstep_work(LOCKSTEP_TOKENS, tokens);
 *             lockstep_step_end();
 *     }
 *
 * Owner:   one thread per process makes the marks; the library is not thread-safe.
 * Units:   seconds where a double is taken, else as named; inside the ring ns,
 *          CLOCK_MONOTONIC.
 * Errors:  lockstep_open returns 0 or a negative errno, for information: marks are safe
 *          either way.
 * Limits:  4 barriers, 6 kinds of work and 4 peers a step; more are ignored.
 * Source:  ring layout: proto/ring/ring.h.
 */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Phases: what the process is doing from this mark on. Values are those of the ring. */
enum lockstep_phase {
	LOCKSTEP_INPUT_WAIT,
	LOCKSTEP_H2D,
	LOCKSTEP_DISPATCH,
	LOCKSTEP_COMPUTE,
	LOCKSTEP_SYNC_WAIT,
	LOCKSTEP_COLLECTIVE,
	LOCKSTEP_CHECKPOINT,
	LOCKSTEP_COMPILE,
	LOCKSTEP_GC,
	LOCKSTEP_EVAL,
	LOCKSTEP_OTHER
};

enum lockstep_barrier {
	LOCKSTEP_BARRIER_ICI,
	LOCKSTEP_BARRIER_DCN,
	LOCKSTEP_BARRIER_STAGE,
	LOCKSTEP_BARRIER_OTHER
};

enum lockstep_work_kind {
	LOCKSTEP_TOKENS,
	LOCKSTEP_SUM_SQ_LEN,
	LOCKSTEP_BATCH,
	LOCKSTEP_EXPERT_LOAD_MAX,
	LOCKSTEP_EXPERT_LOAD_MEAN
};

/* NULL or negative: taken from the environment (LOCKSTEP_JOB, _ATTEMPT, _RANK, ...; see
 * README). */
struct lockstep_options {
	const char *job, *slice, *role, *host;
	int attempt, rank, world, chips;
	const char *steps_dir; /* default LOCKSTEP_STEPS_DIR or /run/lockstep/steps */
};
#define LOCKSTEP_OPTIONS_INIT                 \
	{                                     \
		0, 0, 0, 0, -1, -1, -1, -1, 0 \
	}

/* Opens the ring of this process; NULL takes all from the environment. 0 or -errno. */
int lockstep_open(const struct lockstep_options *options);

/* Marks a clean end and closes the ring. Also done at exit(3). */
void lockstep_close(void);

/* Begins step n; an open step is ended first. */
void lockstep_step_begin(uint64_t n);

/* From now on the time belongs to `phase` (time before the first mark of a step:
 * other). */
void lockstep_phase(enum lockstep_phase phase);

/* Enters a barrier or collective: phase sync_wait, and the time of entry is kept. */
void lockstep_sync_enter(enum lockstep_barrier kind);

/* Leaves the barrier entered last; the phase is `other` from now on. */
void lockstep_sync_exit(void);

/* Work done in this step; adds up over calls. Not finite or negative: ignored. */
void lockstep_work(enum lockstep_work_kind kind, double amount);

/* Waits on one peer in this step, in seconds (negative: not measured); adds up over
 * calls. */
void lockstep_peer(uint32_t rank, double recv_wait_seconds, double send_wait_seconds);

/* Ends the step and publishes its record. */
void lockstep_step_end(void);

#ifdef __cplusplus
}
#endif
#endif

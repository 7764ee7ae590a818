/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu_progress - what snapshots of the cores say about progress: launches, standstill,
 * inferred steps.
 *
 * libtpu's status has no times and no steps: it is looked at once a second, and what
 * differs between two looks is progress. A core stands still when nothing of it
 * differs. It is stalled when it has a program or a queue, stood still for
 * LS_TPU_STALL_NS and several looks, and has work queued or cores of its type move.
 *
 * Steps are inferred from one core, the first TensorCore of the port with the lowest
 * cores: launches while the dominant program is on it, at this look and the one before,
 * count as steps. The confidence is a product of rules, not a measured probability: the
 * share of looks with that program (eval, init and several programs a step lower it),
 * the certainty of the count (n / (n + 2) for n launches), how well a look tells one
 * step (step / (step + time between looks)), and 1 / (1 + resets).
 *
 * Owner:   pure functions on the caller's struct. Zeroed: nothing seen.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -LS_EABSENT nothing can be said.
 * Limits:  LS_TPU_CORES_MAX, LS_TPU_LOOKS_MAX looks.
 * Source:  meaning of launch_id, tracemark and pc: not documented; launch ids are
 *          compared by increments only.
 */
#ifndef LS_AGENT_TPU_PROGRESS_H
#define LS_AGENT_TPU_PROGRESS_H

#include "agent/tpu/tpu_decode.h"

struct ls_tpu_progress_core {
	struct ls_tpu_core now; /* as last seen */
	uint64_t t_seen_ns;
	/* when something last differed, or when it was first seen */
	uint64_t t_moved_ns;
	uint32_t still_looks; /* looks since then */
	uint64_t launches; /* since it was first seen */
	uint64_t resets; /* launch ids that fell */
	bool stalled;
};

struct ls_tpu_look {
	uint64_t t_ns, program;
	uint32_t launches; /* since the look before */
	/* the program is that of the look before, and the launch id did not fall */
	bool counts;
	bool reset;
};

struct ls_tpu_progress {
	size_t count;
	struct ls_tpu_progress_core core[LS_TPU_CORES_MAX]; /* by core id */
	size_t looks, next_look;
	struct ls_tpu_look look[LS_TPU_LOOKS_MAX];
	uint64_t dominant; /* program; 0: none yet */
	uint64_t steps; /* inferred so far */
	uint64_t foreign; /* snapshots left out */
};

struct ls_tpu_steps {
	uint64_t steps; /* so far */
	uint64_t step_ns; /* mean of LS_TPU_STEPS_WINDOW_NS */
	double confidence; /* 0 to 1 */
};

/*
 * Takes over a snapshot of some cores. Cores it does not name stay as they were. If
 * another port reported one of these cores in the last LS_TPU_STALL_NS (two pods number
 * theirs alike), the snapshot is left out and counted.
 */
void ls_tpu_progress_feed(struct ls_tpu_progress *p, const struct ls_tpu_status *status,
	uint64_t now_ns);

/* Steps as inferred; -LS_EABSENT without launches of a dominant program in the window.
 */
int ls_tpu_progress_steps(const struct ls_tpu_progress *p, uint64_t now_ns,
	struct ls_tpu_steps *ret_steps) LS_MUSTCHECK;

#endif

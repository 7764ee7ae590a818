/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_replay - how long a step would take if operations took other times. Pure:
 * arrays in, numbers out.
 *
 * An operation begins when all it waits for has ended and takes its own time; nothing
 * else delays it, so what hosts lose between operations is left out. Lanes (step and
 * dp) are replayed side by side, operation by operation, which a compiler makes vectors
 * of; an end is held only while somebody waits for it.
 *
 * Owner:   the caller; the workspace is for one replay at a time.
 * Units:   seconds.
 * Errors:  -ENOMEM from _new; a replay cannot fail.
 * Limits:  those of the trace; workspace: slots of the graph x a block of lanes.
 * Source:  OSDI'25, "Understanding Stragglers in Large Model Training Using What-if
 *          Analysis", section 3.
 */
#ifndef LS_COLLECTOR_WHATIF_WHATIF_REPLAY_H
#define LS_COLLECTOR_WHATIF_WHATIF_REPLAY_H

#include <stdbool.h>
#include "collector/whatif/whatif_graph.h"

/* Whose times a replay takes. */
struct ls_whatif_plan {
	const uint8_t *own; /* by operation: its own times; else the ideal one */
	/* by worker: 1 for the ideal times all the same; NULL: none */
	const uint8_t *mended;
	/* Each dp alone among others that are ideal in all: a result for each lane, not
	 * each step. */
	bool apart;
};

struct ls_whatif_replay;

/* Own times are the durations of the trace. Both must outlive it. */
int ls_whatif_replay_new(const struct ls_whatif_trace *t,
	const struct ls_whatif_graph *g,
	struct ls_whatif_replay **ret_replay) LS_MUSTCHECK;
void ls_whatif_replay_free(struct ls_whatif_replay *r);

/*
 * Replays all steps. ideal_s: by operation. ret_step_s gets the length of each step; if
 * the plan is apart, of each lane: the step in which only that dp is not ideal.
 */
void ls_whatif_replay_run(struct ls_whatif_replay *r, const struct ls_whatif_plan *plan,
	const double *ideal_s, double *ret_step_s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence - a suspect beside its peers, over the steps of an episode: phases, waits,
 * work, counters.
 *
 * Owner:   the engine; reads its state only.
 * Units:   seconds a step; counters as rates per second.
 * Errors:  none; what was not measured is NaN.
 * Limits:  256 closed steps, 256 peers (of more, every k-th); counters of the last
 *          minute.
 *
 * Looked at are the newest steps of the episode in which it was there (span.h). A phase
 * that a worker did not mark in a step took no time there, if others were marked.
 */
#ifndef LS_COLLECTOR_EVIDENCE_H
#define LS_COLLECTOR_EVIDENCE_H

#include "collector/engine/engine_state.h"

struct ls_gathered {
	struct ls_evidence rows[LS_EVIDENCE_MAX];
	size_t count;
	size_t steps; /* looked at */
	uint64_t last_step; /* the newest of them */
	bool ended; /* of the episode, newer ones are surely none of it */
	/* mean excess of the subject a step, all of it: what a cause must explain */
	double gap_s;
	/* mean time a step would be shorter without it (its excess taken away) */
	double cost_s;
	/* standard error of that by how it scatters from step to step; 0 = not known */
	double cost_error_s;
	/* most of its steps have that excess: no single stalls */
	bool steady;
	double step_s; /* mean of the steps looked at: stalls count in it */
	/* share of them in which the subject arrived last; NaN for the job */
	double slowest_ratio;
	double clock_err_s; /* largest; NaN = not told */
	/* counters of the subject cover the episode long enough to judge by */
	bool counters_ripe;
};

/* Gathers for a suspect over the episode of one of its channels (or of a made-up one). */
void ls_evidence_gather(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us,
	struct ls_gathered *ret_gathered);

/* What each step after one up to another cost on average, as cost_s; NaN unless the
 * live window has all of them. */
double ls_evidence_cost_after(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, uint64_t after, uint64_t last);

/*
 * Whose counters explain what the net takes longer: of a step that is one program, own
 * work is inside the collective, and a worker that is kept from a CPU shows there
 * alone. It must be kept longer than before the episode, alone, and by as much.
 * SIZE_MAX: nobody's, or not known. Scratch of the job's room is used.
 */
size_t ls_evidence_net_host(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us);

/*
 * Does a host of this net send more TCP segments again than in the minute before the
 * episode: more than chance (a Poisson count), and enough to explain the time, at 200 ms a
 * segment? False: not known, too.
 */
bool ls_evidence_resends(const struct ls_engine *e, const struct ls_job *j,
	struct ls_suspect who, const struct ls_detect_channel *ch, int64_t now_us);

/* Between these times, was the CPU rate of its process at least half of that in the minute before? False if not known. */
bool ls_evidence_ran(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	int64_t from_us, int64_t to_us);

#endif

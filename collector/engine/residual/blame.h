/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blame - who is late in one closed step: residuals of every worker against its role.
 *
 * In a synchronous job all workers show the same step time; the culprit is the one that
 * makes the others wait. Two estimates, side by side:
 *   late  arrival at the first barrier against the median of the others (needs clocks);
 *   wait  the median of the others' time in barriers minus its own (needs none). Both
 *   are positive for a culprit. `own` (time outside barriers against the others) tells
 *   whether the worker's own work explains it.
 *
 * Owner:   pure functions; arrays belong to the caller.
 * Units:   seconds; arrivals in microseconds since the epoch.
 * Errors:  none. What cannot be known is NaN.
 * Limits:  LS_WORKERS_MAX workers.
 * Source:  role-normalised wait residual: design section 3.3; the median (not the
 *          maximum) keeps two culprits visible, measured on recorded runs of real jobs.
 */
#ifndef LS_COLLECTOR_BLAME_H
#define LS_COLLECTOR_BLAME_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/ring/record.h"

/* What one worker did in one step. */
struct ls_cell {
	bool present;
	bool has_enter; /* it marked a barrier */
	bool has_second; /* and another one after it */
	bool has_wait; /* it marked a barrier or sync_wait */
	/* greatest load of its experts, or parts of a table, to their mean; NaN = not
	 * given */
	float load;
	int64_t begin_us;
	union {
		struct {
			int64_t enter_us, exit_us; /* first entry and last exit */
		};
		/* of a window of time (replica.h): means over the records in it */
		struct {
			/* the worker's own number of the first of them */
			uint64_t own_step;
			uint32_t steps; /* so many */
			/* what its peers need for as much work; NaN = not known */
			float expected_s;
		};
	};
	float first_s; /* in the first barrier */
	float last_s; /* in the last one; entry: exit_us - last_s */
	/* longest wait for a peer to take what is sent to it; NaN = not measured */
	float send_s;
	uint32_t send_rank; /* that peer */
	float duration_s;
	float wait_s; /* in barriers */
	float own_s; /* duration - wait */
	/* tokens, else sum of squared lengths, else batch; NaN = not given */
	float work;
	float phase_s[LS_PHASE_COUNT]; /* NaN = not marked */
	/* filled by the judgement: arrival against the others, NaN = not known */
	float late_s;
	/* what of the residual is beyond its baseline, >= 0; NaN = not judged */
	float blame_s;
	float under_s; /* what it is below its baseline, <= 0 */
};

/* Residuals of one worker in one step. */
struct ls_blame {
	/* against the others of its role; NaN = not known */
	double late_s, wait_s, own_s;
	double exit_s; /* exit against the others of its role */
	/* its longest wait to send, not against anybody */
	double send_s;
	uint32_t send_rank; /* to this peer */
};

/* What joins workers, in one step: the last barrier of all, or the first one of a
 * slice. */
struct ls_blame_net {
	/* median exit - last arrival: time nobody can be blamed for by arrival */
	double collective_s;
	double wait_min_s; /* least wait in the barrier; both NaN = not known */
	/* filled by detection: collective time beyond its baseline; NaN = not known */
	double comm_s;
};

/* The step as a whole. */
struct ls_blame_step {
	size_t used; /* workers present */
	double begin_us, duration_s; /* medians over workers */
	/* mean over workers: the pace, also where they leave a barrier one after the
	 * other */
	double mean_s;
	struct ls_blame_net net; /* of all workers */
	double wait_min_s, wait_median_s; /* in all barriers */
	/* slot of the last to arrive; SIZE_MAX = not known, or not surely */
	size_t last;
	size_t second; /* of the one before it; likewise */
	/* last arrival - second last: what the last one alone costs */
	double gap_s;
	/* filled by detection: whose lateness the step waits for; SIZE_MAX = not known */
	size_t costs;
	/* s until the next one; if costs is found, until one that is not */
	double costs_s;
	/* how much shorter it would be without found workers; and without named and suspected ones (see ls_detect_costs), NaN = not known */
	double found_s, alone_s;
	/* of each slice, while the step is judged; NULL later */
	struct ls_blame_net *slice;
	size_t slice_count;
	const uint32_t *slice_of; /* by slot, likewise */
};

/* Workers sorted by role, and room to judge them; one per job, kept from step to step.
 */
struct ls_blame_room {
	double *a, *b, *c, *d; /* scratch, capacity of each */
	uint32_t *index; /* scratch, capacity */
	/* slots by role: those of role r from start[r], ascending */
	uint32_t *sorted;
	uint32_t *start; /* role_count + 1 */
	uint32_t role_count;
	size_t capacity;
};

/* Makes room for n workers; -ENOMEM. */
int ls_blame_reserve(struct ls_blame_room *room, size_t n) LS_MUSTCHECK;
void ls_blame_fini(struct ls_blame_room *room);

/* Sorts the n workers by role; again after every change. role[] < role_count <= n <=
 * capacity. */
void ls_blame_group(struct ls_blame_room *room, const uint32_t *role,
	uint32_t role_count, size_t n);

/* Sorts n slots by group: those of g stand from start[g] to start[g + 1], ascending. A slot whose group is none of these
 * group_count is left out. Room: sorted[n], start[group_count + 1]. */
void ls_blame_sort(uint32_t *sorted, uint32_t *start, const uint32_t *group,
	uint32_t group_count, size_t n);

/*
 * Fills net[slice_count] with the first barriers of the slices, sorted as above, where steps have a
 * second one that joins them. A slice that is not whole has NaN.
 */
void ls_blame_slices(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	const uint32_t *sorted, const uint32_t *start, uint32_t slice_count,
	struct ls_blame_net *net);

/*
 * Judges one step: cells of the first n of the grouped workers. Workers of one role are
 * compared; a role of fewer than two present has NaN residuals, and exit_s is NaN
 * unless exits are wanted. Workers whose named[] is not 0 are known to be slow, and no
 * measure for others: else a slow half hides who is slow in the other half. Fills
 * residual[n] and *ret_step.
 */
void ls_blame_judge(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	bool exits, const uint16_t *named, struct ls_blame *residual,
	struct ls_blame_step *ret_step);

/*
 * Do at least half of those present begin more than LS_APART_STEPS from the median begin, beyond the clock error err_s? Then each is in a step of its
 * own that has the same number, and none waits for another.
 */
bool ls_blame_is_apart(const struct ls_cell *cells, size_t n,
	const struct ls_blame_step *step, double err_s);

#endif

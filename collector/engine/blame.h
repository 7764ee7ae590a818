/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blame - who is late in one closed step: residuals of every worker against its role.
 *
 * In a synchronous job all workers show the same step time; the culprit is the one that makes the
 * others wait. Two estimates, side by side:
 *   late  arrival at the first barrier against the median of the others (needs clocks);
 *   wait  the median of the others' time in barriers minus its own (needs none).
 * Both are positive for a culprit. `own` (time outside barriers against the others) tells whether
 * the worker's own work explains it.
 *
 * Owner:   pure functions; arrays belong to the caller.
 * Units:   seconds; arrivals in microseconds since the epoch.
 * Errors:  none. What cannot be known is NaN.
 * Limits:  LS_WORKERS_MAX workers.
 * Source:  role-normalised wait residual: design section 3.3; the median (not the maximum) keeps
 *          two culprits visible, measured on recorded runs of real jobs.
 */
#ifndef LS_COLLECTOR_BLAME_H
#define LS_COLLECTOR_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/record.h"

/* What one worker did in one step. */
struct ls_cell {
	bool present;
	bool has_enter;       /* it marked a barrier */
	bool has_wait;        /* it marked a barrier or sync_wait */
	int64_t begin_us;
	int64_t enter_us, exit_us; /* first entry and last exit */
	float duration_s;
	float wait_s;         /* in barriers */
	float own_s;          /* duration - wait */
	float work;           /* tokens, else sum of squared lengths, else batch; NaN = not given */
	float phase_s[LS_PHASE_COUNT]; /* NaN = not marked */
	float late_s;         /* filled by the judgement: arrival against the others, NaN = not known */
	float blame_s;        /* what of the residual is beyond its baseline, >= 0; NaN = not judged */
	float under_s;        /* what it is below its baseline, <= 0 */
};

/* Residuals of one worker in one step. */
struct ls_blame {
	double late_s, wait_s, own_s; /* against the others of its role; NaN = not known */
	double exit_s;                /* exit against the others of its role */
};

/* The step as a whole. */
struct ls_blame_step {
	size_t used;           /* workers present */
	double duration_s;     /* median over workers */
	double collective_s;   /* median exit - last arrival: time nobody can be blamed for by arrival */
	double wait_min_s, wait_median_s;
	double comm_s;         /* filled by detection: collective time beyond its baseline; NaN = not known */
	size_t last;           /* slot of the last to arrive; SIZE_MAX = not known */
	double gap_s;          /* last arrival - second last: what the last one alone costs */
};

/* Workers sorted by role, and room to judge them; one per job, kept from step to step. */
struct ls_blame_room {
	double *a, *b, *c;     /* scratch, capacity of each */
	uint32_t *index;       /* scratch, capacity */
	uint32_t *sorted;      /* slots by role: those of role r from start[r], ascending */
	uint32_t *start;       /* role_count + 1 */
	uint32_t role_count;
	size_t capacity;
};

/* Makes room for n workers; -ENOMEM. */
int ls_blame_reserve(struct ls_blame_room *room, size_t n) LS_MUSTCHECK;
void ls_blame_fini(struct ls_blame_room *room);

/* Sorts the n workers by role; again after every change. role[] < role_count <= n <= capacity. */
void ls_blame_group(struct ls_blame_room *room, const uint32_t *role, uint32_t role_count, size_t n);

/*
 * Judges one step: cells of the first n of the grouped workers. Workers of one role are compared; a
 * role of fewer than two present has NaN residuals. Fills residual[n] and *ret_step.
 */
void ls_blame_judge(struct ls_blame_room *room, const struct ls_cell *cells, size_t n,
	struct ls_blame *residual, struct ls_blame_step *ret_step);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rhythm - single steps that one worker alone holds up, and what order there is in
 * them.
 *
 *  periodic  one worker at equal distances, in steps (set by the program) or in time
 *            (set from outside)
 *  rotating  another worker each time, as with garbage collection
 *
 * Such a step is an event: the last worker arrives after the next one by LS_VISIBLE of
 * a step and LS_RARE times the usual, and half of that is its own work. Events of one
 * worker within LS_APART_STEPS are one. A worker with another finding has no events.
 *
 * Owner:   one job of the engine. Pure.
 * Units:   seconds; microseconds since the epoch; steps.
 * Errors:  none; without memory there are no events.
 * Limits:  LS_RHYTHM_EVENTS newest events a job, LS_RHYTHM_PERIODS workers with a
 *          period at once.
 * Source:  equal distances: of a million events at random (exponential distances of 20
 *          to 300 steps on average) three at most end a row that is equal in steps,
 *          none one that is equal in time (reckoned by these rules). Rotating: 24
 *          events of recorded clean runs cost up to 2.8 % of the time by the lower
 *          bound, 1.1 % by the higher one, with four workers; 1.7 % with eight, which
 *          have no 24 by the higher one.
 */
#ifndef LS_COLLECTOR_RHYTHM_H
#define LS_COLLECTOR_RHYTHM_H

#include "collector/engine/params.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/ring/ring.h"

#define LS_RHYTHM_EVENTS 256u
#define LS_RHYTHM_PERIODS 8u

/* A step that somebody holds up. */
struct ls_rhythm_event {
	uint64_t step;
	int64_t t_us;
	uint32_t slot;
	/* that grew most against the step before; LS_PHASE_COUNT: what no phase has */
	enum ls_phase phase;
	float excess_s; /* until the next worker came */
	float phase_s; /* so much it grew */
	bool large; /* by the higher bound */
};

/* An order in events: the period of a worker, or a rotation, which is others each time. */
struct ls_rhythm_order {
	/* told: the judge's; then the place of a period is taken until that is over */
	bool on, told;
	uint64_t first_step, last_step;
	int64_t first_us;
	enum ls_phase phase; /* of the newest events, if one phase has most of it; */
	double phase_ratio; /* so much */
	/* of a period: */
	uint32_t slot;
	bool in_time; /* equal in time, not in steps */
	double steps, seconds; /* between two events */
	uint64_t events; /* since it is one */
	double excess_s; /* mean of events */
	/* of a rotation: */
	double cost_s; /* a step, on average since then */
	double events_ratio; /* share of steps with one */
	uint32_t workers; /* so many different ones */
	double most_ratio; /* share of the one with most */
};

struct ls_rhythm {
	struct ls_rhythm_event *event; /* ring */
	size_t count, head;
	double usual_s; /* median of what the last comes after the next one */
	struct ls_rhythm_order period[LS_RHYTHM_PERIODS], rotating;
};

/* The step in question; event.excess_s is that of any step. */
struct ls_rhythm_sample {
	struct ls_rhythm_event event; /* large: filled in here */
	double step_s; /* median step */
	size_t workers;
	/* half or more is own work (not checkpoint or eval); no detect.h finding */
	bool own;
};

/* Frees what it holds; it can be used again from zero. */
void ls_rhythm_fini(struct ls_rhythm *r);

/* Forgets a worker (it moved to another host). */
void ls_rhythm_reset_worker(struct ls_rhythm *r, uint32_t slot);

/* Takes one judged step; periods and rotating are then up to date. */
void ls_rhythm_step(struct ls_rhythm *r, const struct ls_rhythm_sample *s);

/* The period of a worker that has one, or NULL. */
struct ls_rhythm_order *ls_rhythm_period_of(const struct ls_rhythm *r, size_t slot);

#endif

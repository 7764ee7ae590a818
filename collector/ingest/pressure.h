/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure - what is asked of agents when more comes in than we can store or judge:
 * "retry later", and a longer beat.
 *
 * Two answers to two things. What waits for its commit beyond LS_PRESSURE_HELD_SHARE of
 * the room makes agents keep their items, until it has fallen to half of that: they
 * have spools, we have not. And each second it is seen whether the disk is slow (a
 * commit of LS_PRESSURE_COMMIT_NS, or none for so long while reports wait), our loop
 * busy (LS_PRESSURE_LOOP_RATIO of its core), or items were refused, for
 * LS_PRESSURE_TURNS in a row: then beats become twice as long, up to
 * LS_PRESSURE_FACTOR_MAX times, no faster than agents follow. After LS_PRESSURE_CALM_NS
 * well below the limits they become shorter again; who rises again at once has to be
 * calm for longer.
 *
 *     beat x1 <--- calm ---> x2 <--- calm ---> x4
 *              high, 5 s          high, 5 s
 *
 * Owner:   the loop thread. Pure: now is given.
 * Units:   ns, CLOCK_MONOTONIC; bytes.
 * Errors:  none.
 * Limits:  LS_INGEST_HELD_MAX_BYTES, the places of reports and of the writer's queue.
 * Source:  design section 3.2. The limits: proto/limits.h, each with its reason.
 */
#ifndef LS_COLLECTOR_PRESSURE_H
#define LS_COLLECTOR_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What waits for its commit. */
struct ls_pressure_load {
	uint64_t held; /* reports whose answer waits for it */
	uint64_t held_bytes;
	uint64_t queue; /* messages for the writer */
};

struct ls_pressure_stats {
	/* beats are so many times the usual one; 1: nothing is asked */
	unsigned factor;
	bool refusing; /* items are refused now */
	uint64_t rises; /* times that beats were made longer */
	uint64_t refusals; /* times that refusing began */
	/* slowest of the last second, or how long there has been none */
	uint64_t commit_ns;
	double loop_ratio; /* of a core, over the last second */
};

/* To be initialised by ls_pressure_init; its members are its own. */
struct ls_pressure {
	uint64_t held_max;
	uint64_t turn_ns, cpu_ns; /* of the last turn; 0: none yet */
	uint64_t commit_ns; /* slowest since then */
	/* no commit since, while reports waited; 0: none waits */
	uint64_t waiting_since_ns;
	bool refused; /* since the last turn */
	unsigned high_turns; /* in a row */
	uint64_t calm_since_ns, need_ns, changed_ns, fell_ns;
	struct ls_pressure_stats stats;
};

/* held_max: reports that can wait at once. */
void ls_pressure_init(struct ls_pressure *p, uint64_t held_max);

/* May items be taken now? */
bool ls_pressure_take(struct ls_pressure *p, const struct ls_pressure_load *load);

/* Reports begin to wait, and a commit ended that took so long; `left` still wait. */
void ls_pressure_wait(struct ls_pressure *p, uint64_t now_ns);
void ls_pressure_committed(struct ls_pressure *p, uint64_t now_ns, uint64_t commit_ns,
	uint64_t left);

/* Time passes; cpu_ns: CPU time of the loop's thread so far. Decides once a
 * LS_PRESSURE_TURN_NS. */
void ls_pressure_turn(struct ls_pressure *p, uint64_t now_ns, uint64_t cpu_ns);

/* The beat asked for; 0: the agents' own. And how long one waits who was refused. */
uint64_t ls_pressure_beat_ns(const struct ls_pressure *p);
uint64_t ls_pressure_retry_ns(const struct ls_pressure *p);

/* As it is now. */
void ls_pressure_stats(const struct ls_pressure *p,
	struct ls_pressure_stats *ret_stats);

#endif

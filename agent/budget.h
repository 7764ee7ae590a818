/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget - what the agent itself may use, and what it gives up before it disturbs the
 * job.
 *
 *              over: twice in a row, or far over          over again
 *     factor 1 ---------------------------------> 2 ----------------> 4 ... LS_BUDGET_FACTOR_MAX
 *        ^                                        |                   |
 *        +---- `need` calm windows in a row ------+<------------------+
 *
 * Windows are of LS_BUDGET_WINDOW_NS. CPU or bytes over the budget: sampling is slowed
 * by 2, then 4, then 8. A window is calm if all that is used is below
 * LS_BUDGET_CALM_RATIO of its budget; the factor is halved after `need` of them in a
 * row, and `need` doubles each time such a step back had to be taken again. Memory over
 * the budget: optional work ends at once (lean), and comes back likewise.
 *
 * Owner:   pure functions on the caller's struct.
 * Units:   ns, CLOCK_MONOTONIC; bytes; CPU as a ratio of one core.
 * Errors:  none.
 * Limits:  LS_BUDGET_FACTOR_MAX, LS_BUDGET_NEED_MIN, LS_BUDGET_NEED_MAX.
 * Source:  targets: README.md of this folder, "Budget".
 */
#ifndef LS_AGENT_BUDGET_H
#define LS_AGENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/limits.h"

/* What is limited; also bits (1u << what). */
enum ls_budget_what {
	LS_BUDGET_CPU,
	LS_BUDGET_MEMORY,
	LS_BUDGET_BYTES,
	LS_BUDGET_WHAT_COUNT
};

/* 0: not limited. */
struct ls_budget_limits {
	double cpu_ratio;
	uint64_t memory_bytes;
	uint64_t bytes_per_minute;
};

/* What was used so far. */
struct ls_budget_reading {
	uint64_t t_mono_ns;
	uint64_t cpu_ns, sent_bytes; /* since the process began */
	uint64_t rss_bytes; /* now; 0: not measured */
};

struct ls_budget {
	struct ls_budget_limits limits;
	struct ls_budget_reading last;
	/* of the last window; bytes of the last minute */
	double cpu_ratio;
	uint64_t rss_bytes, bytes_per_minute;
	unsigned over; /* bits of what was over */
	unsigned factor; /* sampling is slowed by this */
	bool lean; /* optional work is given up */
	uint64_t windows, windows_over, slowings;
	/* how long until the way back */
	unsigned over_in_a_row, calm, memory_calm, need;
	uint64_t back_at; /* number of the window of the last step back */
	uint64_t sent_bytes[LS_BUDGET_WINDOWS_A_MINUTE];
};

/* Begins at this reading, with nothing slowed. */
void ls_budget_init(struct ls_budget *b, const struct ls_budget_limits *limits,
	const struct ls_budget_reading *now);

/* Other limits, from the next window on. */
void ls_budget_set_limits(struct ls_budget *b, const struct ls_budget_limits *limits);

/*
 * Takes a reading; one that comes before its window is over (by more than 5 %) is
 * passed over. True if factor, lean or the set of what is over changed.
 */
bool ls_budget_look(struct ls_budget *b, const struct ls_budget_reading *now);

/* "cpu", "memory", "bytes". */
const char *ls_budget_name(enum ls_budget_what what);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect_sum - what many simulated jobs say together: rates, medians, bounds.
 *
 * Owner:   the caller.
 * Units:   ratios; steps; NaN where nothing was counted.
 * Errors:  none; out of memory ends the program.
 * Limits:  none.
 * Source:  bound on a rate: exact, from the Poisson distribution (Garwood 1936),
 *          one-sided, 95 %.
 */
#ifndef LS_TESTS_DETECT_SUM_H
#define LS_TESTS_DETECT_SUM_H

#include <stddef.h>
#include "tests/bench/detect_run.h"

struct detect_values {
	double *at;
	size_t count, capacity;
};

struct detect_sum {
	size_t runs, first, third, named, innocent;
	size_t events, found, suspected, in_time; /* in_time: found by the deadline */
	size_t findings, right, early;
	size_t causes_named, causes_right;
	size_t flags[DETECT_RULE_COUNT], flags_right[DETECT_RULE_COUNT],
		rule_found[DETECT_RULE_COUNT];
	/* steps, steps, |found - true| / true */
	struct detect_values suspect, finding, cost_error;
	double hosts_s; /* simulated seconds of hosts */
	uint64_t engine_ns, world_ns, hosts_steps;
};

/* Adds what came of a run. */
void detect_sum_add(struct detect_sum *sum, const struct detect_run *run,
	const struct detect_result *result);

/* Adds one sum to another. */
void detect_sum_join(struct detect_sum *sum, const struct detect_sum *other);

void detect_sum_fini(struct detect_sum *sum);

/* Quantile q of the values; NaN of none. Sorts them. */
double detect_quantile(struct detect_values *v, double q);

/* part / whole; NaN if whole is 0. */
double detect_ratio(size_t part, size_t whole);

/* Greatest mean under which so few events (or fewer) still happen in 5 % of cases. */
double detect_poisson_bound(size_t events);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank - one process of the job: reads, computes, reduces, and marks its steps.
 *
 * Owner:   its own process; it writes shared->rank[place->rank].
 * Units:   ns.
 * Errors:  0 or -errno; -ECONNRESET when another rank is gone.
 * Limits:  none.
 */
#ifndef LS_TESTS_WORKLOAD_RANK_H
#define LS_TESTS_WORKLOAD_RANK_H

#include "proto/base/err.h"
#include "deploy/demo/workload/workload.h"

/* Where a rank stands, and its sockets: a ring within the slice, and one of the slices'
 * leaders. */
struct rank_place {
	unsigned rank;
	unsigned slice;
	unsigned slice_size; /* ranks of a slice */
	unsigned slices;
	int next_fd, prev_fd; /* -1: alone in its slice */
	int leader_next_fd, leader_prev_fd; /* -1: no leader, or one slice */
};

/* Trains until the last step or stop_after. */
int rank_run(const struct workload_options *o, const struct workload_fault *fault,
	const struct rank_place *place, struct workload_shared *shared) LS_MUSTCHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault - slows one rank by real means: processes in its cgroup, a CPU quota, signals.
 *
 * Owner:   the parent. (Slow input is done by the victim's own reader, when it sees
 *          fault_on.)
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  0 or -errno.
 * Limits:  WORKLOAD_HOGS_MAX processes.
 */
#ifndef LS_TESTS_WORKLOAD_FAULT_H
#define LS_TESTS_WORKLOAD_FAULT_H

#include <sys/types.h>
#include "deploy/demo/workload/cgroup.h"
#include "deploy/demo/workload/workload.h"

enum fault_pause { PAUSE_WAITS_FOR_STEP, PAUSE_WAITS_FOR_MOMENT, PAUSE_STOPPED };

struct fault {
	struct workload_fault plan;
	const struct cgroup_set *cgroups;
	pid_t victim;
	int victim_cpu;
	bool begun, over;
	uint64_t begun_step, over_step;
	pid_t hog[WORKLOAD_HOGS_MAX];
	unsigned hog_count;
	/* pauses */
	uint64_t seed;
	enum fault_pause pause;
	uint64_t pause_step; /* PAUSE_WAITS_FOR_STEP: which one */
	uint64_t pause_at_ns; /* else: when the next thing happens */
	uint64_t pauses;
};

/*
 * Does what is due: begins the fault when the victim has come to its step, stops and
 * continues it, and takes it away again at its end. Returns how long until it wants to
 * be called again (UINT64_MAX: never) in *ret_wait_ns.
 */
int fault_turn(struct fault *f, struct workload_shared *shared, uint64_t now_ns,
	uint64_t *ret_wait_ns) LS_MUSTCHECK;

/* Forgets a hog that is dead and was reaped; false: `child` is none of ours. */
bool fault_reap(struct fault *f, pid_t child);

/* Ends the hogs and lets a stopped victim go on. Nothing begins after it. */
void fault_end(struct fault *f);

#endif

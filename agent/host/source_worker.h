/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_worker - the counters of the workers on this host: their threads, and their
 * cgroups.
 *
 * Counters of threads are summed over the threads, those that ended included, so the
 * sums never fall. Counters of cgroups (scope host) are summed over the different
 * cgroups of the workers: their total starts at the first value seen and then grows by
 * what each cgroup grows.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def.
 * Errors:  as in source.h.
 * Limits:  LS_RINGS_MAX workers; with more than LS_THREADS_PER_WORKER_MAX threads the
 *          sums over threads are not measured.
 * Source:  kernel Documentation/scheduler/sched-stats.rst, admin-guide/cgroup-v2.rst,
 *          scheduler/sched-bwc.rst; proc(5).
 */
#ifndef LS_AGENT_SOURCE_WORKER_H
#define LS_AGENT_SOURCE_WORKER_H

#include <sys/types.h>
#include "agent/collect/source.h"
#include "proto/ring/ring.h"

/* A live worker, and its process as this process sees it (never the pid in the ring's
 * header). */
struct ls_source_worker_id {
	uint8_t ring_id[LS_RING_ID_BYTES];
	pid_t pid;
};

/* Makes the source; 0 or -ENOMEM. ret_source->free frees it. */
int ls_source_worker_new(const char *proc_root, const char *sys_root,
	struct ls_source *ret_source) LS_MUSTCHECK;

/* Says which workers are there now (at most LS_RINGS_MAX); others are forgotten. */
void ls_source_worker_watch(const struct ls_source *source,
	const struct ls_source_worker_id *ids, size_t count);

/*
 * Was a process of its control group, or of the group above, killed for lack of memory
 * within LS_WORKER_KILLED_NS? Looks once more: for a worker whose process has just ended,
 * before it is no longer watched. False if it is not.
 */
bool ls_source_worker_killed(const struct ls_source *source,
	const uint8_t ring_id[LS_RING_ID_BYTES], uint64_t now_mono_ns) LS_MUSTCHECK;

/* The last reading of one worker (scope job, and its own cgroup); NULL if it is not
 * watched. */
const struct ls_sample *ls_source_worker_sample(const struct ls_source *source,
	const uint8_t ring_id[LS_RING_ID_BYTES]);

#endif

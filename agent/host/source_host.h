/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_host - the counters of the host (/proc) and the agent's own use.
 *
 * TCP counters are those of the job's network namespace, by way of one of its
 * processes; when that changes, the counters go on from where they were, so that a
 * change is not taken for traffic.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def.
 * Errors:  as in source.h.
 * Limits:  LS_PROC_FILE_MAX_BYTES a file, LS_DISKS_MAX disks.
 * Source:  each metric names its own in proto/metrics.def. Disks: kernel
 *          Documentation/admin-guide/sysfs-rules.rst, /sys/block holds whole devices
 *          only.
 */
#ifndef LS_AGENT_SOURCE_HOST_H
#define LS_AGENT_SOURCE_HOST_H

#include <sys/types.h>
#include "agent/collect/source.h"

/*
 * Makes the source: proc_root and sys_root are "/proc" and "/sys", or where the host's
 * are mounted. 0 or -ENOMEM. ret_source->free frees it.
 */
int ls_source_host_new(const char *proc_root, const char *sys_root,
	struct ls_source *ret_source) LS_MUSTCHECK;

/* True if proc_root shows the host's own process ids, not those of a container. */
bool ls_source_host_has_pids(const char *proc_root);

/* TCP counters are from now on those that process pid sees; 0: those of the agent. */
void ls_source_host_net_of(const struct ls_source *source, pid_t pid);

#endif

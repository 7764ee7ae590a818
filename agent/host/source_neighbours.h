/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_neighbours - who else uses the CPUs of this host: control groups by CPU time,
 * the top ones by name.
 *
 * The leaves of the cgroup hierarchy (v2, or v1 cpuacct) are read at the slow cadence,
 * with many of them each third time. Those that used most CPU since the reading before
 * become series, and stay so for a while after, so that the set of series does not
 * change all the time. The label `comm` is the name of the group's first process when
 * its series began.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   seconds of CPU time.
 * Errors:  probe: -LS_EABSENT where there is no hierarchy with CPU accounting.
 * Limits:  LS_CGROUPS_MAX groups looked at (more are counted in tell),
 *          LS_CGROUP_DEPTH_MAX levels, LS_NEIGHBOURS_MAX series.
 * Source:  kernel Documentation/admin-guide/cgroup-v2.rst "cpu.stat" usage_usec;
 *          admin-guide/cgroup-v1/cpuacct.rst "cpuacct.usage".
 */
#ifndef LS_AGENT_SOURCE_NEIGHBOURS_H
#define LS_AGENT_SOURCE_NEIGHBOURS_H

#include "agent/collect/series.h"
#include "agent/collect/source.h"

/* The source; its series join the group "host.neighbours" of the table, which is
 * borrowed. -ENOMEM. */
int ls_source_neighbours_new(const char *proc_root, const char *sys_root,
	struct ls_series_table *table, struct ls_source *ret_source) LS_MUSTCHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs - the texts of /proc and of cgroups, parsed. Pure functions on bytes.
 *
 * A text may be cut anywhere and hold anything: what cannot be read stays out of the
 * sample.
 *
 * Owner:   pure functions; the caller owns the buffers.
 * Units:   base units of proto/metrics.def.
 * Errors:  none: absent values are the error. The ones that return bool say "found".
 * Limits:  LS_DISKS_MAX disks; numbers up to UINT64_MAX.
 * Source:  proc(5); kernel Documentation/admin-guide/iostats.rst, accounting/psi.rst,
 *          scheduler/sched-stats.rst, admin-guide/cgroup-v2.rst "cpu.stat" and
 *          scheduler/sched-bwc.rst "Statistics".
 */
#ifndef LS_AGENT_PROCFS_H
#define LS_AGENT_PROCFS_H

#include "agent/collect/source.h"
#include "proto/limits.h"

/* Names of whole disks: no partitions, nothing stacked on other disks. */
struct ls_procfs_disks {
	size_t count;
	char name[LS_DISKS_MAX][LS_DISK_NAME_MAX_BYTES];
};

/* What one thread has used (schedstat) and how often it was switched (status). */
struct ls_procfs_thread {
	uint64_t run_ns, wait_ns;
	uint64_t voluntary, involuntary;
};

/* A mount of a control group hierarchy. */
struct ls_procfs_cgroup_mount {
	char point[LS_PATH_MAX_BYTES]; /* where it is mounted */
	/* which part of the hierarchy is mounted there */
	char root[LS_PATH_MAX_BYTES];
};

struct ls_procfs_cgroup_mounts {
	bool has_v2, has_cpu, has_cpuacct;
	struct ls_procfs_cgroup_mount v2, cpu, cpuacct;
};

/* The groups of one process: a path in each hierarchy, "" where there is none. */
struct ls_procfs_cgroup_paths {
	char v2[LS_PATH_MAX_BYTES], cpu[LS_PATH_MAX_BYTES], cpuacct[LS_PATH_MAX_BYTES];
};

/* /proc/stat; ticks_hz is sysconf(_SC_CLK_TCK). */
void ls_procfs_stat(const char *text, size_t len, double ticks_hz,
	struct ls_sample *into);

/* /proc/meminfo. */
void ls_procfs_meminfo(const char *text, size_t len, struct ls_sample *into);

/* /proc/vmstat. */
void ls_procfs_vmstat(const char *text, size_t len, struct ls_sample *into);

/* /proc/loadavg. */
void ls_procfs_loadavg(const char *text, size_t len, struct ls_sample *into);

/* /proc/schedstat: time that runnable threads waited, summed over CPUs. */
void ls_procfs_runqueue(const char *text, size_t len, struct ls_sample *into);

/* /proc/diskstats, summed over the disks given; nothing if none of them is found. */
void ls_procfs_diskstats(const char *text, size_t len,
	const struct ls_procfs_disks *disks, struct ls_sample *into);

/* /proc/net/dev, summed over all devices but the loopback. */
void ls_procfs_net_dev(const char *text, size_t len, struct ls_sample *into);

/* /proc/PID/net/snmp, the Tcp lines. */
void ls_procfs_snmp(const char *text, size_t len, struct ls_sample *into);

/* /proc/pressure/...: total of "some" and of "full" (LS_METRIC_COUNT: not wanted). */
void ls_procfs_pressure(const char *text, size_t len, enum ls_metric some,
	enum ls_metric full, struct ls_sample *into);

/* /proc/PID/stat: major faults and threads of a worker. */
void ls_procfs_pid_stat(const char *text, size_t len, struct ls_sample *into);

/* /proc/PID/statm: resident pages, times page_bytes, stored as m. */
void ls_procfs_statm(const char *text, size_t len, double page_bytes, enum ls_metric m,
	struct ls_sample *into);

/* /proc/PID/task/TID/schedstat: run_ns and wait_ns. */
bool ls_procfs_schedstat(const char *text, size_t len, struct ls_procfs_thread *into);

/* /proc/PID/task/TID/status: voluntary and involuntary. */
bool ls_procfs_switches(const char *text, size_t len, struct ls_procfs_thread *into);

/* /proc/self/mountinfo: where cgroup v2, v1 cpu and v1 cpuacct are mounted, the first
 * of each. */
void ls_procfs_mountinfo(const char *text, size_t len,
	struct ls_procfs_cgroup_mounts *into);

/* /proc/PID/cgroup. */
void ls_procfs_cgroup(const char *text, size_t len,
	struct ls_procfs_cgroup_paths *into);

/* cpu.stat of v2: usage, throttled time and periods; of v1: throttled time and periods.
 */
void ls_procfs_cpu_stat(const char *text, size_t len, struct ls_sample *into);

/* cpuacct.usage of v1. */
void ls_procfs_cpuacct(const char *text, size_t len, struct ls_sample *into);

#endif

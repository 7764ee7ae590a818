/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include "agent/host/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every parser sees every text. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ls_procfs_disks disks = { 2, { "vda", "sda" } };
	const char *text = (const char *)data;
	struct ls_procfs_cgroup_mounts mounts = { 0 };
	struct ls_procfs_cgroup_paths paths;
	struct ls_procfs_thread thread = { 0 };
	struct ls_sample s = { 0 };
	unsigned m;

	ls_procfs_stat(text, size, 100, &s);
	ls_procfs_meminfo(text, size, &s);
	ls_procfs_vmstat(text, size, &s);
	ls_procfs_loadavg(text, size, &s);
	ls_procfs_diskstats(text, size, &disks, &s);
	ls_procfs_net_dev(text, size, &s);
	ls_procfs_snmp(text, size, &s);
	ls_procfs_pressure(text, size, LS_METRIC_HOST_PSI_IO,
		LS_METRIC_HOST_PSI_IO_FULL, &s);
	ls_procfs_pid_stat(text, size, &s);
	ls_procfs_statm(text, size, 4096, LS_METRIC_JOB_RSS, &s);
	ls_procfs_cpu_stat(text, size, &s);
	ls_procfs_cpuacct(text, size, &s);
	ls_procfs_mountinfo(text, size, &mounts);
	ls_procfs_cgroup(text, size, &paths);
	(void)ls_procfs_schedstat(text, size, &thread);
	(void)ls_procfs_switches(text, size, &thread);
	for (m = 0; m < LS_METRIC_COUNT; m++) {
		if (s.present[m] && !(isfinite(s.value[m]) && s.value[m] >= 0))
			abort();
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_sensors - temperature and clock of the host's CPUs, where the kernel tells
 * them.
 *
 * A CPU that is hot is clocked down, and its host becomes a straggler without any
 * contention. Virtual machines mostly show neither: then nothing is measured.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   degrees Celsius, Hz, events.
 * Errors:  probe: -LS_EABSENT where there is no zone, no cpufreq and no throttle
 *          counter.
 * Limits:  LS_THERMAL_ZONES_MAX zones, LS_CPUFREQ_MAX CPUs; read at the slow cadence.
 * Source:  kernel Documentation/driver-api/thermal/sysfs-api.rst (temp: millidegrees),
 *          admin-guide/pm/cpufreq.rst (scaling_cur_freq: kHz),
 *          ABI/stable/sysfs-devices-system-cpu (thermal_throttle/core_throttle_count).
 */
#ifndef LS_AGENT_SOURCE_SENSORS_H
#define LS_AGENT_SOURCE_SENSORS_H

#include "agent/collect/series.h"
#include "agent/collect/source.h"

/* The source; its series join the group "host.sensors" of the table, which is borrowed.
 * -ENOMEM. */
int ls_source_sensors_new(const char *sys_root, struct ls_series_table *table,
	struct ls_source *ret_source) LS_MUSTCHECK;

#endif

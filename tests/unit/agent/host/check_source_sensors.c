/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_sensors.h"

#include <stdio.h>
#include <string.h>
#include "tests/support/harness.h"
#include "tests/support/tree.h"

static char sys[256];
static struct ls_series_table *table;
static struct ls_source source;

static void
setup(void)
{
	(void)snprintf(sys, sizeof(sys), "%s", ls_test_tmpdir());
	table = ls_series_new();
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(ls_source_sensors_new(sys, table, &source), 0);
}

static void
teardown(void)
{
	source.free(source.self);
	ls_series_free(table);
}

static void
assert_series(const char *text, double want)
{
	struct ls_series_group g;
	size_t i;

	ck_assert(ls_series_look(table, 0, &g));
	for (i = 0; i < g.count; i++) {
		if (strcmp(g.text[i], text) != 0)
			continue;
		ck_assert_int_eq(g.present[i], want >= 0);
		ck_assert_double_eq_tol(g.value[i], want >= 0 ? want : 0, 1e-9);
		return;
	}
	ck_abort_msg("no series %s", text);
}

static void
read_slow(void)
{
	struct ls_sample sample = { 0 };

	source.read(source.self, LS_CADENCE_FAST | LS_CADENCE_SLOW, 5, &sample);
}

LS_CASE(source_sensors, setup, teardown);

LS_TEST(source_sensors, sensors_of_a_machine_without_any_are_absent)
{
	struct ls_doctor d = { 0 };
	struct ls_series_group g;

	ck_assert_int_eq(source.probe(source.self), -LS_EABSENT);
	read_slow();
	ck_assert(ls_series_look(table, 0, &g));
	ck_assert_uint_eq(g.count, 0);
	ck_assert_uint_eq(g.readings, 0);
	source.tell(source.self, &d);
	ck_assert_int_eq((int)d.check[0].status, LS_DOCTOR_NONE);
}

LS_TEST(source_sensors, sensors_give_each_zone_in_degrees)
{
	tree_write(sys, "class/thermal/thermal_zone0/temp", "41500\n");
	tree_write(sys, "class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
	tree_write(sys, "class/thermal/thermal_zone3/temp", "-5000\n");
	ck_assert_int_eq(source.probe(source.self), 0);
	read_slow();
	assert_series("host.thermal.zone_celsius{type=\"x86_pkg_temp\",zone=\"0\"}",
		41.5);
	tree_write(sys, "class/thermal/thermal_zone0/temp", "unreadable\n");
	read_slow();
	assert_series("host.thermal.zone_celsius{type=\"x86_pkg_temp\",zone=\"0\"}",
		-1);
}

LS_TEST(source_sensors, sensors_sum_up_the_clock_of_all_cpus)
{
	struct ls_doctor d = { 0 };

	tree_write(sys, "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
		"1000000\n");
	tree_write(sys, "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq",
		"3000000\n");
	ck_assert_int_eq(source.probe(source.self), 0);
	read_slow();
	assert_series("host.cpu.frequency_hz{stat=\"min\"}", 1e9);
	assert_series("host.cpu.frequency_hz{stat=\"mean\"}", 2e9);
	assert_series("host.cpu.frequency_hz{stat=\"max\"}", 3e9);
	source.tell(source.self, &d);
	ck_assert_int_eq((int)d.check[0].status, LS_DOCTOR_OK);
	tree_remove(sys, "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
	tree_remove(sys, "devices/system/cpu/cpu1/cpufreq/scaling_cur_freq");
	read_slow();
	assert_series("host.cpu.frequency_hz{stat=\"mean\"}", -1);
}

LS_TEST(source_sensors, sensors_count_thermal_throttling)
{
	tree_write(sys, "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
		"2\n");
	tree_write(sys, "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
		"5\n");
	ck_assert_int_eq(source.probe(source.self), 0);
	read_slow();
	assert_series("host.cpu.thermal_throttles_total", 7);
}

LS_TEST(source_sensors, sensors_are_read_at_the_slow_cadence)
{
	struct ls_sample sample = { 0 };
	struct ls_series_group g;

	tree_write(sys, "class/thermal/thermal_zone0/temp", "1000\n");
	ck_assert_int_eq(source.probe(source.self), 0);
	source.read(source.self, LS_CADENCE_FAST, 5, &sample);
	ck_assert(ls_series_look(table, 0, &g));
	ck_assert_uint_eq(g.readings, 0);
	read_slow();
	ck_assert(ls_series_look(table, 0, &g));
	ck_assert_uint_eq(g.readings, 1);
	ck_assert_uint_eq(g.t_mono_ns, 5);
}

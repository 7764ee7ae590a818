/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/host/source_sensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/collect/procfile.h"

struct sensors_zone {
	unsigned number;
	int handle;
};

struct source_sensors {
	char sys_root[LS_PATH_MAX_BYTES];
	struct ls_series_table *table;
	int group;
	size_t zone_count, cpu_count;
	struct sensors_zone zone[LS_THERMAL_ZONES_MAX];
	bool has_frequency, has_throttle;
	int least, mean, most, throttles;
};

/* The text of sysfs file <dir><n>/<file>, its line end cut off; false if it cannot be
 * read. */
static bool
sensors_text(const struct source_sensors *s, const char *dir, unsigned n,
	const char *file, char *ret_text, size_t size)
{
	char name[128], path[LS_PATH_MAX_BYTES];
	size_t len;

	(void)snprintf(name, sizeof(name), "%s%u/%s", dir, n, file);
	if (ls_procfile_path(path, sizeof(path), s->sys_root, name) != 0 ||
		ls_procfile_read_once(AT_FDCWD, path, ret_text, size - 1, &len) != 0)
		return false;
	ret_text[len] = '\0';
	ret_text[strcspn(ret_text, "\n")] = '\0';
	return true;
}

static bool
sensors_number(const struct source_sensors *s, const char *dir, unsigned n,
	const char *file, double *ret_value)
{
	char text[64], *end;

	if (!sensors_text(s, dir, n, file, text, sizeof(text)))
		return false;
	*ret_value = strtod(text, &end);
	return end != text;
}

#define SENSORS_ZONE "class/thermal/thermal_zone"
#define SENSORS_CPU "devices/system/cpu/cpu"

/* --- temperature ---------------------------------------------------------- */

static void
sensors_find_zones(struct source_sensors *s)
{
	char type[64], zone[16];
	double milli;
	unsigned n;

	for (n = 0; n < LS_THERMAL_ZONES_MAX; n++) {
		char labels[LS_SERIES_LABELS_MAX_BYTES] = "";

		if (!sensors_number(s, SENSORS_ZONE, n, "temp", &milli))
			continue;
		if (!sensors_text(s, SENSORS_ZONE, n, "type", type, sizeof(type)))
			type[0] = '\0';
		(void)snprintf(zone, sizeof(zone), "%u", n);
		ls_series_label(labels, sizeof(labels), "type", type);
		ls_series_label(labels, sizeof(labels), "zone", zone);
		s->zone[s->zone_count].number = n;
		s->zone[s->zone_count++].handle = ls_series_add_metric(s->table,
			(size_t)s->group, LS_METRIC_HOST_TEMPERATURE, labels);
	}
}

static void
sensors_read_zones(struct source_sensors *s)
{
	double milli;
	size_t i;

	for (i = 0; i < s->zone_count; i++) {
		if (sensors_number(s, SENSORS_ZONE, s->zone[i].number, "temp", &milli))
			ls_series_set(s->table, s->zone[i].handle, milli / 1e3);
		else
			ls_series_unset(s->table, s->zone[i].handle);
	}
}

/* --- clock ---------------------------------------------------------------- */

static int
sensors_add(struct source_sensors *s, enum ls_metric m, const char *stat)
{
	char labels[LS_SERIES_LABELS_MAX_BYTES] = "";

	if (stat != NULL)
		ls_series_label(labels, sizeof(labels), "stat", stat);
	return ls_series_add_metric(s->table, (size_t)s->group, m, labels);
}

static void
sensors_read_frequency(struct source_sensors *s)
{
	double khz, sum = 0, least = 0, most = 0;
	unsigned n, count = 0;

	for (n = 0; n < s->cpu_count; n++) {
		if (!sensors_number(s, SENSORS_CPU, n, "cpufreq/scaling_cur_freq",
			    &khz))
			continue;
		least = count == 0 || khz < least ? khz : least;
		most = khz > most ? khz : most;
		sum += khz;
		count++;
	}
	if (count == 0) {
		ls_series_unset(s->table, s->least);
		ls_series_unset(s->table, s->mean);
		ls_series_unset(s->table, s->most);
		return;
	}
	ls_series_set(s->table, s->least, least * 1e3);
	ls_series_set(s->table, s->mean, sum / count * 1e3);
	ls_series_set(s->table, s->most, most * 1e3);
}

static void
sensors_read_throttles(struct source_sensors *s)
{
	double v, sum = 0;
	bool any = false;
	unsigned n;

	for (n = 0; n < s->cpu_count; n++) {
		if (sensors_number(s, SENSORS_CPU, n,
			    "thermal_throttle/core_throttle_count", &v)) {
			sum += v;
			any = true;
		}
	}
	if (any)
		ls_series_set(s->table, s->throttles, sum);
	else
		ls_series_unset(s->table, s->throttles);
}

/* --- the source ----------------------------------------------------------- */

static int
sensors_probe(void *self)
{
	struct source_sensors *s = self;
	double v;
	unsigned n;

	sensors_find_zones(s);
	for (n = 0; n < LS_CPUFREQ_MAX; n++) {
		bool frequency = sensors_number(s, SENSORS_CPU, n,
			"cpufreq/scaling_cur_freq", &v);
		bool throttle = sensors_number(s, SENSORS_CPU, n,
			"thermal_throttle/core_throttle_count", &v);

		if (frequency || throttle)
			s->cpu_count = n + 1;
		s->has_frequency |= frequency;
		s->has_throttle |= throttle;
	}
	if (s->has_frequency) {
		s->least = sensors_add(s, LS_METRIC_HOST_CPU_FREQUENCY, "min");
		s->mean = sensors_add(s, LS_METRIC_HOST_CPU_FREQUENCY, "mean");
		s->most = sensors_add(s, LS_METRIC_HOST_CPU_FREQUENCY, "max");
	}
	if (s->has_throttle)
		s->throttles = sensors_add(s, LS_METRIC_HOST_THERMAL_THROTTLES, NULL);
	return s->zone_count > 0 || s->cpu_count > 0 ? 0 : -LS_EABSENT;
}

static void
sensors_list(const void *self, void (*each)(void *arg, enum ls_metric m), void *arg)
{
	(void)self;
	each(arg, LS_METRIC_HOST_TEMPERATURE);
	each(arg, LS_METRIC_HOST_CPU_FREQUENCY);
	each(arg, LS_METRIC_HOST_THERMAL_THROTTLES);
}

static void
sensors_read(void *self, unsigned due, uint64_t now_mono_ns, struct ls_sample *into)
{
	struct source_sensors *s = self;

	(void)into; /* everything here has labels */
	if (!(due & LS_CADENCE_SLOW) || (s->zone_count == 0 && s->cpu_count == 0))
		return;
	sensors_read_zones(s);
	if (s->has_frequency)
		sensors_read_frequency(s);
	if (s->has_throttle)
		sensors_read_throttles(s);
	ls_series_read(s->table, (size_t)s->group, now_mono_ns);
}

static void
sensors_tell(const void *self, struct ls_doctor *d)
{
	const struct source_sensors *s = self;
	char why[128];

	if (s->zone_count == 0 && s->cpu_count == 0) {
		ls_doctor_add(d, LS_DOCTOR_NONE, "sensors", "thermal, cpufreq",
			"this machine has neither (usual for a virtual machine)", "");
		return;
	}
	(void)snprintf(why, sizeof(why), "%zu thermal zones, %zu CPUs%s%s",
		s->zone_count, s->cpu_count, s->has_frequency ? ", clock" : "",
		s->has_throttle ? ", throttle counters" : "");
	ls_doctor_add(d, LS_DOCTOR_OK, "sensors", "thermal, cpufreq", why, "");
}

static void
sensors_free(void *self)
{
	free(self);
}

int
ls_source_sensors_new(const char *sys_root, struct ls_series_table *table,
	struct ls_source *ret_source)
{
	struct source_sensors *s = calloc(1, sizeof(*s));
	struct ls_source source = { "sensors", s, sensors_probe, sensors_list,
		sensors_read, sensors_tell, sensors_free };
	int rc;

	if (s == NULL)
		return -ENOMEM;
	(void)snprintf(s->sys_root, sizeof(s->sys_root), "%s", sys_root);
	s->table = table;
	s->least = s->mean = s->most = s->throttles = -1;
	rc = ls_series_group(table, "host.sensors");
	if (rc < 0) {
		free(s);
		return rc;
	}
	s->group = rc;
	*ret_source = source;
	return 0;
}

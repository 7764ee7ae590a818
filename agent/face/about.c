/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/face/about.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/face/checks.h"
#include "agent/collect/series.h"
#include "proto/base/clock.h"
#include "proto/base/expose.h"
#include "proto/base/json.h"
#include "proto/base/text.h"

#define ABOUT_PREFIX "lockstep_agent_"
#define ABOUT_DIGITS 12 /* as agent/once.c */

/* --- /metrics ------------------------------------------------------------- */

static void
about_numbers(const struct ls_about_parts *p, struct evbuffer *out)
{
	const struct ls_spool_stats *spool = ls_spool_get_stats(p->spool);
	const struct ls_uplink_stats *up = ls_uplink_get_stats(p->uplink);
	const struct ls_step_stats *steps =
		ls_source_step_get_stats(ls_sources_steps(p->sources));
	const struct ls_budget *b = p->budget;
	struct ls_uplink_told told;

	ls_uplink_tell(p->uplink, &told);
#define LS_ABOUT(name, type, value, help) \
	ls_expose_number(out, ABOUT_PREFIX name, type, help, (double)(value));
#include "agent/face/about.def"
#undef LS_ABOUT
#define LS_UPLINK_STAT(field, help)                                                    \
	ls_expose_number(out, ABOUT_PREFIX "uplink_" #field "_total", "counter", help, \
		(double)up->field);
#include "agent/uplink/uplink_stat.def"
#undef LS_UPLINK_STAT
}

static void
about_reasons(struct evbuffer *out, const char *name, const char *type,
	const char *help, const char *const *reasons, const uint64_t *values,
	size_t count)
{
	ls_expose_family(out, name, type, help);
	for (size_t i = 0; i < count; i++)
		(void)evbuffer_add_printf(out, "%s{reason=\"%s\"} %llu\n", name,
			reasons[i],
			(unsigned long long)values[i]); /* lost when out of memory */
}

static void
about_stalls(const struct ls_about_parts *p, struct evbuffer *out)
{
	ls_expose_family(out, ABOUT_PREFIX "disk_stalled_seconds", "gauge",
		"time for which the files at this path have not answered");
	for (size_t i = 0; i < LS_DISK_COUNT; i++) {
		if (p->disk[i] == NULL)
			continue;
		(void)evbuffer_add_printf(out, ABOUT_PREFIX "disk_stalled_seconds{");
		ls_expose_label(out, "path", ls_disk_path(p->disk[i]), 1);
		(void)evbuffer_add_printf(out, "} %.3f\n",
			(double)ls_disk_stalled_ns(p->disk[i], p->now_mono_ns) / 1e9);
	}
}

void
ls_about_metrics(const struct ls_about_parts *p, struct evbuffer *out)
{
	static const char *const gaps[LS_GAP_REASON_COUNT] = { [LS_GAP_UNKNOWN] =
								       "unknown",
		[LS_GAP_OVERRUN] = "overwritten",
		[LS_GAP_SPOOL_FULL] = "spool_full",
		[LS_GAP_INVALID] = "invalid",
		[LS_GAP_REBOOT] = "reboot" };
	_Static_assert(LS_GAP_REASON_COUNT == 5 && LS_STEP_IGNORED_COUNT == 6,
		"each has its word");
	static const char *const ignored[LS_STEP_IGNORED_COUNT] = {
		[LS_STEP_NOT_REGULAR] = "not_regular",
		[LS_STEP_NOT_A_RING] = "not_a_ring",
		[LS_STEP_OTHER_BOOT] = "other_boot",
		[LS_STEP_DUPLICATE] = "duplicate",
		[LS_STEP_TOO_MANY] = "too_many",
		[LS_STEP_FINISHED] = "finished"
	};
	const struct ls_step_stats *steps =
		ls_source_step_get_stats(ls_sources_steps(p->sources));
	uint64_t over[LS_BUDGET_WHAT_COUNT];
	const char *what[LS_BUDGET_WHAT_COUNT];

	ls_expose_family(out, "lockstep_build_info", "gauge",
		"What runs here; always 1.");
	(void)evbuffer_add_printf(out, "lockstep_build_info{version=\"%s\"} 1\n",
		PACKAGE_VERSION);
	about_numbers(p, out);
	about_stalls(p, out);
	about_reasons(out, ABOUT_PREFIX "step_records_lost_total", "counter",
		"step records lost before they reached the spool", gaps, steps->lost,
		LS_GAP_REASON_COUNT);
	about_reasons(out, ABOUT_PREFIX "step_files_ignored", "gauge",
		"files in the steps directory that the last scan ignored", ignored,
		steps->ignored, LS_STEP_IGNORED_COUNT);
	for (unsigned i = 0; i < LS_BUDGET_WHAT_COUNT; i++) {
		what[i] = ls_budget_name(i);
		over[i] = p->budget->over >> i & 1u;
	}
	about_reasons(out, ABOUT_PREFIX "over_budget", "gauge",
		"1: the last window exceeded the budget", what, over,
		LS_BUDGET_WHAT_COUNT);
}

/* --- series --------------------------------------------------------------- */

static int
about_dump(const char *text, size_t len, void *arg)
{
	return evbuffer_add(arg, text, len);
}

/* One series; made and given up at once, so that all of them need little memory. */
static void
about_one(struct evbuffer *out, bool *first, json_t *item)
{
	(void)evbuffer_add(out, ",", *first ? 0 : 1); /* lost when out of memory */
	*first = false;
	if (item != NULL)
		(void)json_dump_callback(item, about_dump, out,
			JSON_COMPACT | JSON_REAL_PRECISION(15));
	else
		(void)evbuffer_add(out, "null", 4);
	json_decref(item);
}

/* Unit of a series: of the metric it is of, if that is one of proto/metrics.def. */
static const char *
about_unit(const char *text)
{
	char name[LS_SERIES_NAME_MAX_BYTES];
	int metric;

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "{"), text);
	metric = ls_metric_by_name(name);
	return metric >= 0 ? ls_metric_info((unsigned)metric)->unit : NULL;
}

static void
about_group(const struct ls_about_parts *p, const struct ls_series_group *g,
	bool *first, struct evbuffer *out)
{
	double age_s = (double)(p->now_mono_ns - g->t_mono_ns) / 1e9;
	char text[4 * LS_SERIES_TEXT_MAX_BYTES], group[4 * LS_GROUP_NAME_MAX_BYTES];

	(void)ls_text_escape(group, sizeof(group), g->name, strlen(g->name));
	for (size_t i = 0; i < g->count; i++) {
		(void)ls_text_escape(text, sizeof(text), g->text[i],
			strlen(g->text[i]));
		about_one(out, first,
			json_pack("{s:s, s:s, s:o, s:s?, s:o}", "group", group, "text",
				text, "value",
				g->present[i] && g->t_mono_ns != 0
					? ls_json_number(g->value[i], ABOUT_DIGITS)
					: json_null(),
				"unit", about_unit(g->text[i]), "age_s",
				g->t_mono_ns != 0 && p->now_mono_ns >= g->t_mono_ns
					? ls_json_real(age_s)
					: json_null()));
	}
}

void
ls_about_series(const struct ls_about_parts *p, struct evbuffer *out)
{
	const struct ls_series_table *table = ls_sources_series(p->sources);
	struct ls_series_group g;
	bool first = true;

	(void)evbuffer_add_printf(out, "{\"schema_version\":1,\"items\":[");
	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		if (ls_series_look(table, i, &g))
			about_group(p, &g, &first, out);
	}
	(void)evbuffer_add_printf(out, "]}\n");
}

/* --- doctor --------------------------------------------------------------- */

void
ls_about_doctor(const struct ls_about_parts *p, struct ls_doctor *d)
{
	memset(d, 0, sizeof(*d));
	ls_checks_uplink(p->uplink, d);
	ls_checks_spool(p->spool, p->config->state_dir, p->config->spool_max_bytes, d);
	ls_checks_disk(p->disk[LS_DISK_STATE], p->now_mono_ns, d);
	ls_sources_tell(p->sources, d);
	ls_checks_clock(d);
	ls_checks_budget(p->budget, d);
}

json_t *
ls_about_doctor_json(const struct ls_about_parts *p)
{
	struct ls_doctor *d = malloc(sizeof(*d));
	json_t *object = NULL, *agent;

	if (d == NULL)
		return NULL;
	ls_about_doctor(p, d);
	object = ls_doctor_json(d);
	free(d);
	agent = json_pack("{s:s, s:s, s:o, s:o, s:o, s:i}", "host",
		p->config->host_name, "version", PACKAGE_VERSION, "uptime_s",
		ls_json_real((double)(p->now_mono_ns - p->started_mono_ns) / 1e9),
		"cpu_ratio",
		p->budget->windows > 0 ? ls_json_real(p->budget->cpu_ratio)
				       : json_null(),
		"resident_bytes",
		p->budget->rss_bytes > 0
			? json_integer((json_int_t)p->budget->rss_bytes)
			: json_null(),
		"slowed", (int)p->budget->factor);
	ls_json_set(&object, "agent", agent);
	return object;
}

json_t *
ls_about_identity(const struct ls_about_parts *p)
{
	const struct ls_place *place = ls_sources_place(p->sources);

	return json_pack("{s:i, s:o, s:o}", "schema_version", 1, "identity",
		ls_identity_json(ls_place_identity(place)), "chips",
		ls_place_chips_json(place));
}

/* True if that disk does not answer: which, and for how long, is in why. */
static bool
about_is_stalled(const struct ls_about_parts *p, enum ls_disk_use use, char *why,
	size_t size)
{
	uint64_t for_ns = ls_disk_stalled_ns(p->disk[use], p->now_mono_ns);

	if (for_ns != 0)
		(void)snprintf(why, size, "%s has not answered for %.0f s",
			ls_disk_path(p->disk[use]), (double)for_ns / 1e9);
	return for_ns != 0;
}

bool
ls_about_ready(const struct ls_about_parts *p, char *why, size_t size)
{
	(void)about_is_stalled(p, LS_DISK_JOBS, why,
		size); /* that job's trouble alone */
	if (about_is_stalled(p, LS_DISK_STATE, why, size))
		return false;
	if (ls_uplink_get_state(p->uplink) != LS_UPLINK_STATE_DOWN)
		return true;
	if (ls_spool_bytes(p->spool) < p->config->spool_max_bytes)
		return true;
	(void)snprintf(why, size,
		"no connection to the collector, and no room in the spool");
	return false;
}

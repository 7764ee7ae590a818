/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "web/http/metrics.h"
#include "proto/base/expose.h"
#include "proto/limits.h"
#include <event2/buffer.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One line a job: LS_JOB_METRIC(name, key of the job object, help). */
#define LS_JOB_METRICS(LS_JOB_METRIC)                                            \
	LS_JOB_METRIC("lockstep_job_chips", "chips", "Chips of the job.")        \
	LS_JOB_METRIC("lockstep_job_chips_lost", "chips_lost",                   \
		"Chips x (1 - 1/S): chip-hours lost an hour to blamed workers.") \
	LS_JOB_METRIC("lockstep_job_slowdown_ratio", "slowdown_ratio",           \
		"S: actual step time over that without the blamed workers.")     \
	LS_JOB_METRIC("lockstep_job_step_seconds", "step_time_s",                \
		"Mean duration of the newest closed steps.")                     \
	LS_JOB_METRIC("lockstep_job_step_counterfactual_seconds",                \
		"step_time_without_s", "Step time without the blamed workers.")  \
	LS_JOB_METRIC("lockstep_job_workers", "workers",                         \
		"Workers of the job that are known, silent ones too.")           \
	LS_JOB_METRIC("lockstep_job_step", "step", "Last closed step.")          \
	LS_JOB_METRIC("lockstep_job_simulated", "simulated",                     \
		"1: lockstep-sim made this job; nothing of it was measured.")

static const struct {
	const char *name, *key, *help;
} metrics_of_job[] = {
#define LS_JOB_METRIC(name, key, help) { name, key, help },
	LS_JOB_METRICS(LS_JOB_METRIC)
#undef LS_JOB_METRIC
};

static const char *
metrics_text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

void
ls_metrics_jobs(struct evbuffer *out, const json_t *jobs)
{
	for (size_t m = 0; m < sizeof(metrics_of_job) / sizeof(metrics_of_job[0]);
		m++) {
		ls_expose_family(out, metrics_of_job[m].name, "gauge",
			metrics_of_job[m].help);
		for (size_t i = 0; i < json_array_size(jobs); i++) {
			const json_t *job = json_array_get(jobs, i);
			const json_t *v = json_object_get(job, metrics_of_job[m].key);

			if (!json_is_number(v) && !json_is_boolean(v))
				continue;
			(void)evbuffer_add_printf(out, "%s{", metrics_of_job[m].name);
			ls_expose_label(out, "tpu_job", metrics_text(job, "id"), 1);
			(void)evbuffer_add_printf(out, "} %.15g\n",
				json_is_true(v) ? 1 : json_number_value(v));
		}
	}
}

/* --- findings ------------------------------------------------------------- */

static bool
metrics_is_open(const json_t *finding)
{
	const char *status = metrics_text(finding, "status");

	return strcmp(status, "cleared") != 0 && strcmp(status, "verified") != 0;
}

static double
metrics_cost(const json_t *finding)
{
	return json_number_value(
		json_object_get(json_object_get(finding, "impact"), "chips_lost"));
}

static int
metrics_by_labels(const void *a, const void *b)
{
	static const char *const keys[] = { "kind", "severity", "status" };
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	int order = strcmp(metrics_text(json_object_get(x, "job"), "id"),
		metrics_text(json_object_get(y, "job"), "id"));

	for (size_t i = 0; order == 0 && i < sizeof(keys) / sizeof(keys[0]); i++)
		order = strcmp(metrics_text(x, keys[i]), metrics_text(y, keys[i]));
	return order;
}

static int
metrics_by_cost(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	double dx = metrics_cost(x), dy = metrics_cost(y);

	if (metrics_is_open(x) != metrics_is_open(y))
		return metrics_is_open(x) ? -1 : 1;
	if (dx < dy || dx > dy)
		return dx > dy ? -1 : 1;
	return strcmp(metrics_text(x, "id"), metrics_text(y, "id"));
}

/* A label of a finding: a member, or one of an object in it. */
struct metrics_label {
	const char *name, *object, *key;
};

static void
metrics_line(struct evbuffer *out, const char *family, const json_t *finding,
	const struct metrics_label *label, size_t value)
{
	(void)evbuffer_add_printf(out, "%s{", family);
	for (int first = 1; label->name != NULL; label++, first = 0)
		ls_expose_label(out, label->name,
			metrics_text(label->object != NULL
					? json_object_get(finding, label->object)
					: finding,
				label->key),
			first);
	(void)evbuffer_add_printf(out, "} %zu\n", value);
}

static void
metrics_count(struct evbuffer *out, const json_t **sorted, size_t count)
{
	static const char family[] = "lockstep_findings";
	static const struct metrics_label labels[] = { { "tpu_job", "job", "id" },
		{ "kind", NULL, "kind" }, { "severity", NULL, "severity" },
		{ "status", NULL, "status" }, { NULL, NULL, NULL } };

	ls_expose_family(out, family, "gauge", "Findings by kind and status.");
	for (size_t i = 0, next; i < count; i = next) {
		next = i + 1;
		while (next < count &&
			metrics_by_labels(&sorted[i], &sorted[next]) == 0)
			next++;
		metrics_line(out, family, sorted[i], labels, next - i);
	}
}

static void
metrics_info(struct evbuffer *out, const json_t **sorted, size_t count)
{
	static const char family[] = "lockstep_finding_info";
	static const struct metrics_label labels[] = { { "finding", NULL, "id" },
		{ "tpu_job", "job", "id" }, { "host", "subject", "host" },
		{ "kind", NULL, "kind" }, { "severity", NULL, "severity" },
		{ NULL, NULL, NULL } };

	ls_expose_family(out, family, "gauge", "An open finding; the costliest.");
	for (size_t i = 0;
		i < count && i < LS_METRICS_FINDINGS_MAX && metrics_is_open(sorted[i]);
		i++)
		metrics_line(out, family, sorted[i], labels, 1);
}

void
ls_metrics_findings(struct evbuffer *out, const json_t *findings)
{
	size_t count = json_array_size(findings);
	const json_t **sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted)
		return;
	for (size_t i = 0; i < count; i++)
		sorted[i] = json_array_get(findings, i);
	qsort(sorted, count, sizeof(*sorted), metrics_by_labels);
	metrics_count(out, sorted, count);
	qsort(sorted, count, sizeof(*sorted), metrics_by_cost);
	metrics_info(out, sorted, count);
	free(sorted);
}

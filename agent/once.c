/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "agent/face/checks.h"
#include "agent/sources.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/base/loop.h"

#define ONCE_LOOK_NS 10000000ull
#define ONCE_DIGITS 12 /* ns in a thousand seconds, and no noise of binary fractions */

/* Every metric of a scope (or of all): value or null, and where it comes from. */
static json_t *
once_metrics(const struct ls_sample *sample, bool jobs_only)
{
	json_t *all = json_object();

	for (unsigned m = 0; m < LS_METRIC_COUNT; m++) {
		const struct ls_metric_info *info = ls_metric_info(m);

		if (jobs_only && info->scope != LS_METRIC_SCOPE_JOB)
			continue;
		ls_json_set(&all, info->name,
			json_pack("{s:o, s:s, s:s, s:s}", "value",
				sample != NULL && sample->present[m]
					? ls_json_number(sample->value[m], ONCE_DIGITS)
					: json_null(),
				"unit", info->unit, "scope",
				ls_metric_scope_name(info->scope), "source",
				info->source));
	}
	return all;
}

static json_t *
once_workers(const struct ls_sources *s)
{
	const struct ls_source_step *steps = ls_sources_steps(s);
	const struct ls_step_ring *r;
	json_t *all = json_array();

	for (size_t i = 0; (r = ls_source_step_ring(steps, i)) != NULL; i++) {
		const struct ls_place *place = ls_sources_place(s);
		struct ls_worker_info info = r->worker.info;
		const struct ls_worker_info *w = &info;
		const char *slice_source = "ring";

		ls_place_complete(place, r, &info);
		if (strcmp(info.slice, r->worker.info.slice) != 0)
			slice_source = ls_identity_source_of(ls_place_identity(place),
				LS_IDENTITY_SLICE);

		ls_json_append(&all,
			json_pack(
				"{s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:b, s:o}",
				"job", w->job, "slice", w->slice, "slice_source",
				slice_source, "chips", (int)w->chips, "chips_source",
				w->chips == r->worker.info.chips ? "ring" : "process",
				"role", w->role, "attempt", w->attempt, "rank", w->rank,
				"world", w->world, "visible", r->pid > 0, "metrics",
				once_metrics(ls_sources_worker(s, r->worker.ring_id),
					true)));
	}
	return all;
}

/* Every series with its value or null; those that have labels are only here. */
static json_t *
once_series(const struct ls_series_table *t)
{
	struct ls_series_group g;
	json_t *all = json_object();

	for (size_t i = 0; i < LS_GROUPS_MAX; i++) {
		if (!ls_series_look(t, i, &g))
			continue;
		for (size_t k = 0; k < g.count; k++)
			ls_json_set(&all, g.text[k],
				g.present[k] ? ls_json_number(g.value[k], ONCE_DIGITS)
					     : json_null());
	}
	return all;
}

/* Everything there is to see, read once. */
static json_t *
once_object(const struct ls_agent_config *config, const struct ls_sources *s)
{
	const struct ls_place *place = ls_sources_place(s);
	struct ls_doctor *d = calloc(1, sizeof(*d));
	json_t *told = NULL, *object;

	if (d != NULL) {
		ls_sources_tell(s, d);
		told = ls_doctor_json(d);
	}
	object = json_pack("{s:i, s:s, s:O, s:o, s:o, s:o, s:o, s:o}", "schema_version",
		1, "host", config->host_name, "sources",
		json_object_get(told, "checks"), "metrics",
		once_metrics(ls_sources_host(s), false), "workers", once_workers(s),
		"series", once_series(ls_sources_series(s)), "identity",
		ls_identity_json(ls_place_identity(place)), "chips",
		ls_place_chips_json(place));
	json_decref(told);
	free(d);
	return object;
}

/* What both are made of; loop and disk may be missing after a failure. */
struct once {
	struct ls_loop *loop;
	struct ls_disk *disk;
	struct ls_sources *sources;
	/* Of once_wait. */
	bool until_settled;
	uint64_t until_ns;
};

static int
once_open(struct once *o, const struct ls_agent_config *config,
	const uint8_t boot[LS_BOOT_ID_BYTES])
{
	int rc;

	o->loop = ls_loop_new();
	rc = o->loop != NULL ? ls_disk_start(o->loop, config->step_log, &o->disk)
			     : -ENOMEM;
	if (rc == 0)
		rc = ls_sources_open(o->loop, config, boot, NULL, o->disk, &o->sources);
	return rc == 0 ? ls_place_settle(ls_sources_place(o->sources)) : rc;
}

/* Where a file system does not answer, its reader stays until the process exits. */
static void
once_close(struct once *o)
{
	if (ls_disk_stop(o->disk, LS_DISK_STOP_NS) != 0)
		return;
	ls_sources_close(o->sources);
	ls_loop_free(o->loop);
}

static void
once_turn(void *arg)
{
	const struct once *o = arg;

	if ((o->until_settled && ls_sources_are_settled(o->sources)) ||
		ls_loop_now(o->loop) >= o->until_ns)
		ls_loop_stop(o->loop);
}

/* Reads, and lets sources that ask others have the time for their answers, or until all
 * have their first. */
static int
once_read(struct once *o, bool until_settled, uint64_t for_ns)
{
	struct ls_loop_timer *timer = ls_loop_timer_new(o->loop, once_turn, o);
	int rc;

	if (timer == NULL)
		return -ENOMEM;
	ls_sources_read(o->sources, LS_CADENCE_FAST | LS_CADENCE_SLOW,
		ls_clock_mono_ns());
	o->until_settled = until_settled;
	o->until_ns = ls_loop_now(o->loop) + for_ns;
	ls_loop_timer_start(timer, 0, ONCE_LOOK_NS);
	rc = ls_loop_run(o->loop);
	ls_loop_timer_free(timer);
	return rc;
}

int
ls_agent_once(const struct ls_agent_config *config, json_t **ret_object)
{
	struct once o = { 0 };
	uint8_t boot[LS_BOOT_ID_BYTES];
	json_t *object = NULL;
	int rc = ls_clock_boot_id(config->proc_root, boot);

	if (rc == 0)
		rc = once_open(&o, config, boot);
	if (rc == 0)
		rc = once_read(&o, true, LS_TPU_ONCE_WAIT_NS);
	if (rc == 0) {
		object = once_object(config, o.sources);
		rc = object != NULL ? 0 : -ENOMEM;
	}
	once_close(&o);
	if (rc == 0)
		*ret_object = object;
	return rc;
}

int
ls_agent_doctor(const struct ls_agent_config *config, struct ls_doctor *ret_doctor)
{
	struct once o = { 0 };
	uint8_t boot[LS_BOOT_ID_BYTES];
	int rc = ls_clock_boot_id(config->proc_root, boot);

	memset(ret_doctor, 0, sizeof(*ret_doctor));
	if (rc != 0) { /* the agent would not start */
		ls_doctor_addf(ret_doctor, LS_DOCTOR_FAIL, "host", "boot id",
			"mount the host's /proc and name it with --proc-root",
			"no sys/kernel/random/boot_id below %.100s: %s",
			config->proc_root, ls_err_text(rc));
		return 0;
	}
	rc = once_open(&o, config, boot);
	if (rc == 0)
		rc = once_read(&o, false, LS_DOCTOR_LOOK_NS);
	if (rc == 0) {
		ls_sources_read(o.sources, LS_CADENCE_FAST | LS_CADENCE_SLOW,
			ls_clock_mono_ns());
		ls_checks_reach(config->collector, ret_doctor);
		ls_checks_keys(config->keys, config->host_name, ret_doctor);
		ls_checks_state_dir(config->state_dir, ret_doctor);
		ls_sources_tell(o.sources, ret_doctor);
		ls_checks_clock(ret_doctor);
	}
	once_close(&o);
	return rc;
}

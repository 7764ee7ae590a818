/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/answer/finding_json.h"
#include "collector/answer/advice.h"
#include "collector/engine/engine_state.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/params.h"
#include "proto/base/json.h"
#include "proto/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FINDING_NAME_BYTES (2 * LS_HOST_NAME_MAX_BYTES + 64)

static bool
finding_is_group(const struct ls_finding *f)
{
	return f->scope == LS_SCOPE_GROUP || f->scope == LS_SCOPE_SHARD;
}

/* A job of which some workers are slow. */
static bool
finding_is_of_some(const struct ls_finding *f)
{
	return f->scope == LS_SCOPE_JOB && f->kind == LS_KIND_JOB_SLOW && !f->comm &&
		f->detector == LS_DETECT_CHRONIC && f->slow_workers > 0;
}

/* Hosts, as many as are kept. */
static json_t *
finding_render_hosts(const struct ls_finding *f)
{
	json_t *hosts = json_array();

	for (uint32_t i = 0; i < f->member_count; i++)
		ls_ignore(json_array_append_new(hosts, json_string(f->members[i])));
	return hosts;
}

static json_t *
finding_render_subject(const struct ls_finding *f)
{
	if (finding_is_of_some(f))
		return json_pack("{s:s, s:o, s:i}", "scope", "job", "hosts",
			finding_render_hosts(f), "host_count", (int)f->member_hosts);
	if (f->scope == LS_SCOPE_JOB)
		return json_pack("{s:s}", "scope", "job");
	if (f->scope == LS_SCOPE_SLICE)
		return json_pack("{s:s, s:s}", "scope", "slice", "slice", f->who.slice);
	if (f->scope == LS_SCOPE_LINK)
		return json_pack("{s:s, s:[s, s], s:[i, i], s:s}", "scope", "link",
			"hosts", f->who.host, f->peer_host, "ranks", f->who.rank,
			f->peer_rank, "slice", f->who.slice);
	if (finding_is_group(f))
		return json_pack("{s:s, s:s, s:s, s:o, s:i}", "scope",
			ls_finding_name(LS_NAMES_SCOPE, f->scope), "by",
			ls_finding_name(LS_NAMES_WAY, f->way), "name", f->group,
			"hosts", finding_render_hosts(f), "host_count",
			(int)f->member_hosts);
	return json_pack("{s:s, s:s, s:i, s:s, s:s}", "scope",
		ls_finding_name(LS_NAMES_SCOPE, f->scope), "host", f->who.host, "rank",
		f->who.rank, "slice", f->who.slice, "role", f->who.role);
}

static json_t *
finding_render_evidence(const struct ls_evidence *e, size_t n)
{
	static const char *const roles[] = { "context", "supports", "excludes",
		"not_measured" };
	json_t *row =
		json_pack("{s:o, s:s, s:s, s:o, s:{s:o, s:o, s:o, s:I}, s:o, s:s}",
			"id", json_sprintf("e%zu", n + 1), "metric", e->metric, "unit",
			e->unit, "subject", ls_json_real(e->subject), "peers", "p10",
			ls_json_real(e->p10), "p50", ls_json_real(e->p50), "p90",
			ls_json_real(e->p90), "n", (json_int_t)e->peers, "robust_z",
			ls_json_real(e->robust_z), "role", roles[e->role]);
	if (e->role == LS_EVIDENCE_EXCLUDES)
		ls_json_set(&row, "excludes",
			json_pack("[s]", ls_cause_info(e->cause)->name));
	return row;
}

/* What was not measured, in order. */
static json_t *
finding_render_missing(const struct ls_finding *f)
{
	json_t *rows = json_array();

	LS_EACH (const struct ls_evidence, row, f->evidence, f->evidence_count)
		if (row->role == LS_EVIDENCE_NOT_MEASURED)
			(void)json_array_append_new(rows, json_string(row->metric));
	return rows;
}

/* Ids of the rows of evidence that support a cause, in order. */
static json_t *
finding_render_because(const struct ls_finding *f, enum ls_cause cause)
{
	json_t *rows = json_array();

	LS_EACH (const struct ls_evidence, row, f->evidence, f->evidence_count)
		if (row->role == LS_EVIDENCE_SUPPORTS &&
			cause != LS_CAUSE_UNEXPLAINED &&
			(row->cause == cause || row->cause == LS_CAUSE_COUNT))
			(void)json_array_append_new(rows,
				json_sprintf("e%zu", (size_t)(row - f->evidence) + 1));
	return rows;
}

static json_t *
finding_render_hypotheses(const struct ls_finding *f)
{
	json_t *list = json_array();

	LS_EACH (const struct ls_hypothesis, h, f->diagnosis.hypotheses,
		f->diagnosis.count) {
		const struct ls_cause_info *info = ls_cause_info(h->cause);

		(void)json_array_append_new(list,
			json_pack("{s:s, s:s, s:o, s:o}", "cause", info->name, "text",
				info->title, "confidence",
				ls_json_number(h->confidence, 2), "because",
				finding_render_because(f, h->cause)));
	}
	return list;
}

struct finding_time {
	char text[24];
};

/* A duration as a person reads it: "12.3 ms", "2.99 s", "1200 s". */
static struct finding_time
finding_time(double s)
{
	bool is_ms = fabs(s) < 0.9995;
	double v = is_ms ? s * 1e3 : s;
	struct finding_time t;

	(void)snprintf(t.text, sizeof(t.text), fabs(v) < 999.5 ? "%.3g %s" : "%.0f %s",
		v, is_ms ? "ms" : "s");
	return t;
}

/* Single steps that wait for one worker. */
static json_t *
finding_render_rhythm(const struct ls_finding *f, const char *cause)
{
	if (f->scope == LS_SCOPE_JOB)
		return json_sprintf(
			"steps wait for a different worker each time, %s on "
			"average: %s",
			finding_time(f->blame_s).text, cause);
	if (f->period_s > 0)
		return json_sprintf("%s rank %d delays a step by %s every %s: %s",
			f->who.host, f->who.rank,
			finding_time(f->blame_s * f->period_steps).text,
			finding_time(f->period_s).text, cause);
	return json_sprintf("%s rank %d delays one step in %.0f by %s: %s", f->who.host,
		f->who.rank, f->period_steps,
		finding_time(f->blame_s * f->period_steps).text, cause);
}

/* Of whom it is, as a title begins. */
static void
finding_name(const struct ls_finding *f, char *name, size_t size)
{
	if (f->scope == LS_SCOPE_SLICE)
		(void)snprintf(name, size, "slice %s", f->who.slice);
	else if (finding_is_group(f))
		(void)snprintf(name, size, "%s %s of %u hosts",
			f->scope == LS_SCOPE_SHARD
				? "input shard"
				: ls_finding_name(LS_NAMES_WAY, f->way),
			f->group, f->member_hosts);
	else if (f->scope == LS_SCOPE_LINK)
		(void)snprintf(name, size, "the link between %s and %s", f->who.host,
			f->peer_host);
	else
		(void)snprintf(name, size, "%s rank %d", f->who.host, (int)f->who.rank);
}

static json_t *
finding_render_claim(const struct ls_finding *f)
{
	enum ls_cause why = f->diagnosis.count > 0 ? f->diagnosis.hypotheses[0].cause
						   : LS_CAUSE_UNEXPLAINED;
	const char *cause = ls_cause_info(why)->title;
	char name[FINDING_NAME_BYTES];

	if (f->kind == LS_KIND_SELF_IDENTITY)
		return f->said_count > 0 ? json_string(f->said[0]) : NULL;
	if (f->kind == LS_KIND_HANG && f->scope == LS_SCOPE_JOB)
		return json_sprintf(
			"the job has made no progress in step %llu for %s: %s",
			(unsigned long long)f->since_step,
			finding_time(f->blame_s).text, cause);
	if (f->kind == LS_KIND_HANG)
		return json_sprintf("%s rank %d holds up step %llu for %s: %s",
			f->who.host, f->who.rank, (unsigned long long)f->since_step,
			finding_time(f->blame_s).text, cause);
	if (f->detector >= LS_DETECT_PERIODIC)
		return finding_render_rhythm(f, cause);
	if (f->scope == LS_SCOPE_JOB &&
		(f->kind == LS_KIND_JOB_SLOW || f->kind == LS_KIND_IMBALANCE)) {
		if (why == LS_CAUSE_UNEXPLAINED)
			cause = "cause not visible";
		name[0] = '\0';
		if (finding_is_of_some(f))
			(void)snprintf(name, sizeof(name),
				"%u of %u workers are slow, so ", f->slow_workers,
				f->workers_used);
		if (f->slope_s > 0)
			return json_sprintf(
				"%ssteps take longer and longer, now %s longer than "
				"before and %s more every 1000 steps: %s",
				name, finding_time(f->blame_s).text,
				finding_time(f->slope_s * 1e3).text, cause);
		return json_sprintf("%sall steps take %s longer than before: %s", name,
			finding_time(f->blame_s).text, cause);
	}
	if (f->scope == LS_SCOPE_JOB)
		return json_sprintf("every step takes %s longer: %s",
			finding_time(f->blame_s).text, cause);
	if (f->replica)
		return json_sprintf(
			"%s rank %d takes %s a step longer than its peers at equal load: %s",
			f->who.host, f->who.rank, finding_time(f->blame_s).text, cause);
	finding_name(f, name, sizeof(name));
	if (f->blame_s < LS_NOTHING * f->step_s)
		return json_sprintf(
			"%s is slower than it should be, but nobody waits for it now: %s",
			name, cause);
	if (f->intermittent)
		return json_sprintf(
			"%s delays some of the steps, by %s a step on average: %s",
			name, finding_time(f->blame_s).text, cause);
	return json_sprintf("%s delays every step by %s: %s", name,
		finding_time(f->blame_s).text, cause);
}

static json_t *
finding_render_title(const struct ls_finding *f)
{
	json_t *claim = finding_render_claim(f), *title;

	if (claim == NULL || !f->simulated)
		return claim;
	title = json_sprintf("simulated: %s", json_string_value(claim));
	json_decref(claim);
	return title;
}

/* Of a replica, which nobody waits for: its numbers are of its own steps, and it costs
 * its share of the job alone. */
static json_t *
finding_render_impact(const struct ls_finding *f)
{
	bool known = f->chips > 0;
	json_t *impact = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:n, s:s}",
		"step_time_s", ls_json_real(f->step_s), "step_time_without_s",
		ls_json_real(f->without_s), "step_time_before_s",
		ls_json_real(f->before_s), "blame_s",
		ls_json_real(f->kind == LS_KIND_SELF_IDENTITY ? NAN : f->blame_s),
		"slowdown_ratio", ls_json_real(f->slowdown), "chips_lost",
		known ? ls_json_real(f->chips_lost) : json_null(),
		"chip_hours_lost_total",
		known ? ls_json_real(f->chip_hours) : json_null(), "cost", "method",
		f->kind == LS_KIND_SELF_IDENTITY	    ? "none"
			: f->kind == LS_KIND_HANG	    ? "standstill_v1"
			: f->replica			    ? "load_residual_v1"
			: f->detector >= LS_DETECT_PERIODIC ? "last_arrival_v1"
			: f->comm			    ? "collective_excess_v1"
			: f->kind == LS_KIND_JOB_SLOW ||
				(f->kind == LS_KIND_IMBALANCE &&
					f->scope == LS_SCOPE_JOB)
			? "step_time_v1"
			: f->estimate == LS_MODE_LATENESS ? "lateness_v1"
							  : "wait_residual_v1");
	if (f->replica)
		ls_json_set(&impact, "share_ratio", ls_json_number(f->share, 3));
	return impact;
}

static json_t *
finding_render_quality(const struct ls_finding *f)
{
	json_t *quality = json_pack("{s:i, s:i, s:o, s:s, s:s, s:o}",
		"workers_reporting", (int)f->workers_used, "workers_expected",
		(int)f->workers, "clock_err_ms", ls_json_real(f->clock_err_s * 1e3),
		"step_source", ls_step_source_name(f->who.step_source), "estimate",
		f->replica				  ? "load"
			: f->estimate == LS_MODE_LATENESS ? "lateness"
							  : "wait",
		"missing", finding_render_missing(f));

	if (f->who.step_source != LS_STEP_MARKER)
		ls_json_set(&quality, "step_confidence",
			ls_json_number(f->who.step_confidence, 3));
	return quality;
}

/* What it is and whom it concerns. */
static json_t *
finding_render_head(const struct ls_finding *f)
{
	return json_pack(
		"{s:i, s:s, s:s, s:s, s:s, s:o, s:{s:s, s:o, s:i}, s:{s:s}, s:o, s:s, s:s}",
		"schema_version", 1, "id", f->id, "kind",
		ls_finding_name(LS_NAMES_KIND, f->kind), "severity",
		ls_finding_name(LS_NAMES_SEVERITY, f->severity), "status",
		ls_finding_name(LS_NAMES_STATUS, f->status), "title",
		finding_render_title(f), "job", "id", f->who.job, "chips",
		f->chips > 0 ? json_integer(f->chips) : json_null(), "hosts",
		(int)f->hosts, "slice", "id", f->who.slice, "subject",
		finding_render_subject(f), "pattern",
		f->detector == LS_DETECT_ROTATING    ? "rotating"
			: f->scope == LS_SCOPE_JOB   ? "job_wide"
			: f->scope == LS_SCOPE_SLICE ? "slice_wide"
			: finding_is_group(f)	     ? "group_wide"
			: f->scope == LS_SCOPE_LINK  ? "single_link"
						     : "single_worker",
		"role", f->scope == LS_SCOPE_JOB ? "none" : "culprit");
}

/* Since when, how steady. */
static json_t *
finding_render_course(const struct ls_finding *f)
{
	/* what was told of the first episode stays */
	const json_t *told = f->episodes > 0 ? json_object_get(f->json, "onset") : NULL;
	const char *type = json_string_value(json_object_get(told, "type"));

	return json_pack(
		"{s:{s:o, s:I, s:s, s:i}, s:o, s:o, s:o, s:I, s:{s:I, s:o, s:s, s:i, s:b}}",
		"onset", "at", ls_json_time(f->onset_us), "step",
		(json_int_t)f->onset_step, "type",
		type != NULL	     ? type
			: f->born    ? "from_the_start"
			: f->gradual ? "drift"
				     : "step_change",
		"uncertainty_steps",
		type != NULL ? (int)json_integer_value(
				       json_object_get(told, "uncertainty_steps"))
			     : (int)f->uncertainty_steps,
		"first_detected_at", ls_json_time(f->detected_us), "updated_at",
		ls_json_time(f->updated_us), "cleared_at", ls_json_time(f->cleared_us),
		"last_step", (json_int_t)f->last_step, "persistence", "steps_seen",
		(json_int_t)f->steps_seen, "slowest_ratio",
		ls_json_number(f->slowest_ratio, 3), "duty",
		f->intermittent || f->detector >= LS_DETECT_PERIODIC ? "intermittent"
								     : "continuous",
		"reopened", (int)f->reopened, "seen_before",
		f->reopened > 0 || f->occurrence > 1);
}

static json_t *
finding_render_episode(const struct ls_finding_episode *is, bool over)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o}", "from_step",
		(json_int_t)is->from_step, "from_at", ls_json_time(is->from_us),
		"to_step", over ? json_integer((json_int_t)is->to_step) : json_null(),
		"to_at", over ? ls_json_time(is->to_us) : json_null(),
		"chip_hours_lost", ls_json_real(is->chip_hours));
}

/* Those that are over, and the newest. */
static json_t *
finding_render_episodes(const struct ls_finding *f)
{
	struct ls_finding_episode newest = ls_finding_newest_episode(f);
	json_t *all = json_array();

	for (uint32_t i = 0; i < f->episodes; i++)
		ls_json_append(&all, finding_render_episode(&f->episode[i], true));
	ls_json_append(&all, finding_render_episode(&newest, !ls_finding_is_open(f)));
	return all;
}

/* JSON of a finding not diagnosed since a restart: the old one, with what changed.
 */
static json_t *
finding_render_state(const struct ls_finding *f)
{
	json_t *doc = json_deep_copy(f->json);

	ls_ignore(json_object_set_new(json_object_get(doc, "data_quality"), "reference",
		!ls_finding_is_open(f)
			? json_null()
			: json_string(ls_finding_waits(f) ? LS_FINDING_WAITS
							  : "before_restart")));
	if (f->scope != LS_SCOPE_JOB) /* of which it may name workers */
		ls_json_set(&doc, "subject", finding_render_subject(f));
	ls_json_set(&doc, "status",
		json_string(ls_finding_name(LS_NAMES_STATUS, f->status)));
	ls_json_set(&doc, "updated_at", ls_json_time(f->updated_us));
	ls_json_set(&doc, "cleared_at", ls_json_time(f->cleared_us));
	ls_json_set(&doc, "last_step", json_integer((json_int_t)f->last_step));
	if (f->workers > 0) { /* it costs something here */
		ls_json_set(&doc, "severity",
			json_string(ls_finding_name(LS_NAMES_SEVERITY, f->severity)));
		ls_json_set(&doc, "impact", finding_render_impact(f));
	} else if (f->chip_hours > 0) {
		ls_ignore(json_object_set_new(json_object_get(doc, "impact"),
			"chip_hours_lost_total", ls_json_real(f->chip_hours)));
	}
	return doc;
}

static json_t *
finding_render_rows(const struct ls_finding *f)
{
	json_t *rows = json_array();

	LS_EACH (const struct ls_evidence, ev, f->evidence, f->evidence_count) {
		size_t i = (size_t)(ev - f->evidence);
		json_t *row = finding_render_evidence(ev, i);

		if (i + 1 < f->said_count) /* who says what */
			ls_ignore(json_object_set_new(row, "text",
				json_string(f->said[i + 1])));
		(void)json_array_append_new(rows, row);
	}
	return rows;
}

/* What it costs, why, and what to do. */
static json_t *
finding_render_why(const struct ls_finding *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:{s:s, s:i, s:o}, s:{s:o, s:o}}",
		"impact", finding_render_impact(f), "evidence", finding_render_rows(f),
		"hypotheses", finding_render_hypotheses(f), "actions",
		ls_advice_render(f), "data_quality", finding_render_quality(f),
		"provenance", "engine", LS_ENGINE_VERSION, "occurrence",
		(int)f->occurrence, "window",
		json_sprintf("steps %llu..%llu", (unsigned long long)f->since_step,
			(unsigned long long)f->last_step),
		"links", "self", json_sprintf("/api/v1/findings/%s", f->id), "web",
		json_sprintf("/#/f/%s", f->id));
}

/* The whole of it. */
static json_t *
finding_render_all(const struct ls_finding *f)
{
	json_t *doc = finding_render_head(f);

	if (json_object_update_new(doc, finding_render_course(f)) == 0 &&
		json_object_update_new(doc, finding_render_why(f)) == 0)
		return doc;
	json_decref(doc);
	return NULL;
}

int
ls_finding_render(struct ls_finding *f)
{
	json_t *doc = ls_finding_is_stored(f) ? finding_render_state(f)
					      : finding_render_all(f);
	bool part = f->part_of[0] != '\0';

	if (f->episodes > 0) /* it was reopened */
		ls_json_set(&doc, "episodes", finding_render_episodes(f));
	if (f->diagnosis.count > 0 &&
		f->diagnosis.hypotheses[0].cause == LS_CAUSE_INSIDE_PROGRAM)
		ls_json_set(&doc, "localised", json_false());
	/* why it was cleared, if that is known; what an earlier time said goes */
	ls_ignore(json_object_del(doc, "cleared_reason"));
	ls_ignore(json_object_del(doc, "part_of"));
	if (!ls_finding_is_open(f) && (part || f->reason != LS_REASON_CALM)) {
		ls_json_set(&doc, "cleared_reason",
			json_string(part
					? "part_of"
					: ls_finding_name(LS_NAMES_REASON, f->reason)));
		if (part)
			ls_json_set(&doc, "part_of", json_string(f->part_of));
	}
	if (doc == NULL)
		return -ENOMEM;
	json_decref(f->json);
	f->json = doc;
	return 0;
}

void
ls_finding_forget(struct ls_finding *f)
{
	json_decref(f->json);
	f->json = NULL;
}

const struct ls_engine_sink ls_finding_sink = { .render = ls_finding_render,
	.forget = ls_finding_forget };

int
ls_finding_seed(struct ls_engine *e, const json_t *finding)
{
	struct ls_finding f;
	int rc = ls_finding_parse(finding, &f);

	if (rc != 0)
		return rc;
	rc = ls_findings_seed(e, &f);
	if (rc != 0) {
		ls_finding_forget(&f);
		ls_finding_fini(&f);
	}
	return rc;
}

json_t *
ls_finding_all(const struct ls_engine *e)
{
	json_t *all = json_array();

	LS_FINDINGS (e, f)
		ls_json_append(&all, json_incref(f->json));
	return all;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/answer/view.h"
#include "collector/answer/view_state.h"
#include "collector/engine/finding/findings.h"
#include "collector/engine/finding/judge_group.h"
#include "proto/base/json.h"
#include "proto/base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Newest rows that "now" is made of: [*first, live_count). */
static size_t
view_recent(const struct ls_job *j)
{
	return j->live_count > LS_RECENT_STEPS ? j->live_count - LS_RECENT_STEPS : 0;
}

static double
view_step_s(const struct ls_job *j)
{
	double sum = 0;
	size_t first = view_recent(j);

	for (size_t i = first; i < j->live_count; i++)
		sum += ls_job_row(j, i)->totals.duration_s;
	return j->live_count == first ? NAN : sum / (double)(j->live_count - first);
}

/* Share of the job's chips that a finding loses, as it says itself; nothing while it waits to be measured again. */
static double
view_lost(const struct ls_finding *f)
{
	double lost = f->slowdown > 1 && !ls_finding_waits(f) ? 1 - 1 / f->slowdown : 0;

	return f->replica ? f->share * lost : lost;
}

/* Open findings of the job: how many of each severity, what share they lose together, and of it in steps that end; the
 * dearest of the worst. */
struct view_open {
	unsigned count[3];
	double lost, slower;
	const struct ls_finding *top;
};

static bool
view_is_worse(const struct ls_finding *f, const struct ls_finding *than)
{
	return than == NULL || f->severity > than->severity ||
		(f->severity == than->severity && view_lost(f) > view_lost(than));
}

static struct view_open
view_open(const struct ls_engine *e, const struct ls_job *j)
{
	struct view_open o = { 0 };

	LS_FINDINGS (e, f) {
		if (!ls_finding_is_open(f) || strcmp(f->who.job, j->name) != 0)
			continue;
		o.count[f->severity]++;
		o.lost = fmin(o.lost + view_lost(f), 1 - LS_LEAST);
		if (f->kind != LS_KIND_HANG)
			o.slower = fmin(o.slower + view_lost(f), 1 - LS_LEAST);
		if (view_is_worse(f, o.top))
			o.top = f;
	}
	return o;
}

/* Shares of the step by phase, mean over workers and recent steps. */
static json_t *
view_phases(const struct ls_job *j)
{
	double sum[LS_PHASE_COUNT] = { 0 }, total = 0;
	bool marked[LS_PHASE_COUNT] = { false };
	json_t *phases = json_object();

	for (size_t i = view_recent(j); i < j->live_count; i++) {
		const struct ls_live_row *r = ls_job_row(j, i);

		for (size_t s = 0; s < r->row.cell_count; s++) {
			const struct ls_cell *c = ls_row_cell(r, s);

			if (c == NULL)
				continue;
			total += (double)c->duration_s;
			for (unsigned p = 0; p < LS_PHASE_COUNT; p++) {
				if (isnan(c->phase_s[p]))
					continue;
				marked[p] = true;
				sum[p] += (double)c->phase_s[p];
			}
		}
	}
	for (unsigned p = 0; p < LS_PHASE_COUNT && total > 0; p++)
		if (marked[p])
			ls_ignore(json_object_set_new(phases, ls_phase_name(p),
				ls_json_number(sum[p] / total, 3)));
	return phases;
}

static const char *
view_job_state(const struct ls_engine *e, const struct ls_job *j)
{
	if (ls_job_workers(e, j, ls_worker_reports) > 0)
		return "running";
	return j->count > 0 && j->gone == j->count ? "ended" : "silent";
}

/* Is a finding about this worker, or about its group, while something is found of the worker, too? */
static bool
view_is_of(const struct ls_engine *e, const struct ls_finding *f,
	const struct ls_engine_worker *w)
{
	const struct ls_job *j = &e->jobs[w->job];

	if (f->scope == LS_SCOPE_SLICE || f->scope >= LS_SCOPE_GROUP)
		return j->detect.worker[w->slot].found != 0 &&
			ls_judge_group_has(j, f, w->slot);
	if (f->scope == LS_SCOPE_LINK && f->peer_rank == w->info.rank &&
		strcmp(f->peer_host, w->info.host) == 0)
		return true;
	return f->scope != LS_SCOPE_JOB && strcmp(f->who.host, w->info.host) == 0 &&
		(f->who.rank == w->info.rank ||
			(f->scope == LS_SCOPE_HOST &&
				j->detect.worker[w->slot].found != 0));
}

const char *
ls_view_finding_of(const struct ls_engine *e, const struct ls_engine_worker *w)
{
	for (size_t i = e->finding_count; i > 0; i--) {
		const struct ls_finding *f = &e->findings[i - 1];

		if (ls_finding_is_open(f) && strcmp(f->who.job, w->info.job) == 0 &&
			view_is_of(e, f, w))
			return f->id;
	}
	return NULL;
}

struct view_sorted {
	double near, key;
	size_t index;
	const char *name; /* of a host, if sorted by it */
	bool ascending; /* the least name first */
};

/* By name, or the nearest to a finding first, of them the greatest key; equal ones as they were. */
static int
view_compare(const void *a, const void *b)
{
	const struct view_sorted *x = a, *y = b;
	int by_name = x->name != NULL ? strverscmp(x->name, y->name) : 0;

	if (by_name != 0)
		return x->ascending ? by_name : -by_name;
	if (x->near != y->near)
		return x->near < y->near ? 1 : -1;
	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Workers that were last in many of the recent steps, where others waited for them and no
 * finding is about them yet: not proven, but what is known so far. */
static json_t *
view_suspects(const struct ls_engine *e, const struct ls_job *j, double step_s)
{
	struct view_sorted list[LS_RECENT_STEPS]; /* each has a step of its own */
	json_t *suspects = json_array();
	size_t n = 0;

	for (size_t slot = 0; slot < j->count && n < LS_RECENT_STEPS && !j->replica.on;
		slot++) {
		const struct ls_recent *of = &j->recent[slot];

		if (of->sum[LS_RECENT_LAST] != 0 && /* of most it is 0 */
			ls_recent_mean(of, LS_RECENT_LAST) > LS_SHARED &&
			ls_recent_mean(of, LS_RECENT_BLAME) >= LS_LEAST / 2 * step_s &&
			ls_view_finding_of(e, &e->workers[j->slots[slot]]) == NULL)
			list[n++] = (struct view_sorted){ .index = slot,
				.key = of->sum[LS_RECENT_LAST] };
	}
	if (n > 1)
		qsort(list, n, sizeof(*list), view_compare);
	for (size_t i = 0; i < n; i++) {
		const struct ls_worker_info *who =
			&e->workers[j->slots[list[i].index]].info;
		const struct ls_recent *of = &j->recent[list[i].index];

		ls_json_append(&suspects,
			json_pack("{s:s, s:i, s:o, s:o}", "host", who->host, "rank",
				(int)who->rank, "blame_s",
				ls_json_real(ls_recent_mean(of, LS_RECENT_BLAME)),
				"slowest_ratio",
				ls_json_number(ls_recent_mean(of, LS_RECENT_LAST), 3)));
	}
	return suspects;
}

static json_t *
view_job(const struct ls_engine *e, const struct ls_job *j, int64_t now_us)
{
	const struct ls_live_row *last =
		j->live_count == 0 ? NULL : ls_job_row(j, j->live_count - 1);
	struct view_open open = view_open(e, j);
	const char *state = view_job_state(e, j);
	double step_s = view_step_s(j), without_s = step_s * (1 - open.slower);
	double slowdown = step_s / without_s;
	int32_t chips = ls_job_chips(e, j);
	json_t *suspects;

	suspects = view_suspects(e, j, step_s);
	return json_pack(
		"{s:s, s:s, s:b, s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o, "
		"s:o, s:b, s:O?, s:o, s:o, s:o, s:o, s:o, s:{s:i, s:i, s:i}, s:o, s:o, "
		"s:s?}",
		"id", j->name, "state", state, "asynchronous", (int)j->replica.on,
		"attempt", (int)j->attempt, "slices", (json_int_t)j->slices.count,
		"hosts", (json_int_t)ls_job_hosts(e, j, NULL, 0), "workers",
		(json_int_t)j->count, "workers_expected",
		j->world > 0 ? json_integer(j->world) : json_null(), "chips",
		chips > 0 ? json_integer(chips) : json_null(), "step",
		last == NULL ? json_null()
			     : json_integer((json_int_t)ls_row_shown(&last->row)),
		"steps_closed", (json_int_t)j->closed, "first_seen_at",
		ls_json_time(j->first_us), "last_step_at",
		last == NULL ? json_null() : ls_json_time(last->row.end_us), "judged",
		ls_view_judged(e, j, strcmp(state, "ended") == 0, now_us), "simulated",
		(int)ls_job_is_simulated(e, j), "suspect", json_array_get(suspects, 0),
		"suspects", suspects, "step_time_s", ls_json_real(step_s),
		"step_time_without_s", ls_json_real(without_s), "slowdown_ratio",
		ls_json_real(slowdown), "chips_lost",
		chips > 0 && !isnan(slowdown) ? ls_json_real(chips * open.lost)
					      : json_null(),
		"findings", "critical", (int)open.count[LS_SEVERITY_CRITICAL],
		"warning", (int)open.count[LS_SEVERITY_WARNING], "info",
		(int)open.count[LS_SEVERITY_INFO], "phases", view_phases(j),
		"data_quality", ls_view_quality(e, j, now_us), "top_finding",
		open.top == NULL ? NULL : open.top->id);
}

/* {"items":[...],"next":key or null}; takes items. */
static int
view_page(json_t *items, const char *next, json_t **ret_page)
{
	*ret_page = json_pack("{s:o, s:s?}", "items", items, "next", next);
	return *ret_page == NULL ? -ENOMEM : 0;
}

/* All jobs, those that lose most chips first. */
static void
view_jobs_order(const struct ls_engine *e, struct view_sorted *order)
{
	for (size_t i = 0; i < e->job_count; i++)
		order[i] = (struct view_sorted){ .index = i };
	LS_FINDINGS (e, f) {
		const struct ls_job *j = ls_finding_is_open(f)
			? ls_engine_find_job(e, f->who.job)
			: NULL;

		if (j != NULL)
			order[j - e->jobs].key += view_lost(f);
	}
	for (size_t i = 0; i < e->job_count; i++)
		order[i].key = e->jobs[i].live_count > 0
			? order[i].key * ls_job_chips(e, &e->jobs[i])
			: -1;
	if (e->job_count > 1)
		qsort(order, e->job_count, sizeof(*order), view_compare);
}

int
ls_view_jobs(const struct ls_engine *e, const char *after, size_t limit, int64_t now_us,
	json_t **ret_page)
{
	struct view_sorted *order = malloc((e->job_count + 1) * sizeof(*order));
	const struct ls_job *j = ls_engine_find_job(e, after);
	json_t *items;
	size_t i = 0;
	int rc;

	if (order == NULL || (j == NULL && after[0] != '\0')) {
		free(order);
		return order == NULL ? -ENOMEM : -LS_EUNKNOWN;
	}
	view_jobs_order(e, order);
	while (j != NULL && order[i++].index != (size_t)(j - e->jobs))
		;
	items = json_array();
	for (; i < e->job_count && json_array_size(items) < limit; i++)
		ls_ignore(json_array_append_new(items,
			view_job(e, &e->jobs[order[i].index], now_us)));
	rc = view_page(items,
		i > 0 && i < e->job_count ? e->jobs[order[i - 1].index].name : NULL,
		ret_page);
	free(order);
	return rc;
}

int
ls_view_job(const struct ls_engine *e, const char *job, int64_t now_us,
	json_t **ret_job)
{
	const struct ls_job *j = ls_engine_find_job(e, job);

	if (j == NULL)
		return -LS_EUNKNOWN;
	*ret_job = view_job(e, j, now_us);
	return *ret_job == NULL ? -ENOMEM : 0;
}

static json_t *
view_counters(const struct ls_engine *e, const struct ls_engine_worker *w,
	int64_t now_us)
{
	json_t *all = json_object();

	for (unsigned m = 0; m < LS_METRIC_COUNT; m++) {
		const struct ls_metric_info *info = ls_metric_info(m);
		const struct ls_counters *c = ls_worker_counters(e, w, m);
		double v = !info->hot ? NAN
			: info->kind == LS_METRIC_KIND_COUNTER
			? ls_counters_rate(c, m, now_us - LS_ENGINE_US(LS_COUNTERS_S),
				  now_us, 0)
			: ls_counters_last(c, m, now_us);

		if (!isnan(v))
			ls_ignore(
				json_object_set_new(all, info->name, ls_json_real(v)));
	}
	return all;
}

static json_t *
view_live(const struct ls_engine_worker *w, int64_t now_us)
{
	const char *phase = ls_phase_name(w->live.phase);

	if (!w->has_live)
		return json_null();
	return json_pack("{s:I, s:s, s:o}", "step", (json_int_t)w->live.step, "phase",
		phase == NULL ? "between_steps" : phase, "since_s",
		ls_json_real((double)(now_us - w->live_since_us) * 1e-6));
}

static json_t *
view_worker(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	int64_t now_us)
{
	static const char *const states[] = { "reporting", "silent", "ended",
		"crashed" };
	const struct ls_engine_worker *w = &e->workers[j->slots[slot]];
	const struct ls_recent *of = &j->recent[slot];
	json_t *doc = json_pack(
		"{s:s, s:s, s:s, s:i, s:i, s:s, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:I, s:s}",
		"host", w->info.host, "slice", w->info.slice, "role", w->info.role,
		"rank", (int)w->info.rank, "attempt", (int)j->attempt, "state",
		ls_worker_has_left(j, w) ? "left" : states[w->state], "step",
		w->reported ? json_integer((json_int_t)w->last_step) : json_null(),
		"finding", ls_view_finding_of(e, w), "last_seen_at",
		ls_json_time(w->seen_us), "live", view_live(w, now_us), "counters",
		view_counters(e, w, now_us), "step_time_s",
		ls_json_real(ls_recent_mean(of, LS_RECENT_STEP)), "own_s",
		ls_json_real(ls_recent_mean(of, LS_RECENT_OWN)), "wait_s",
		ls_json_real(ls_recent_mean(of, LS_RECENT_WAIT)), "input_wait_s",
		ls_json_real(ls_recent_mean(of, LS_RECENT_INPUT)), "lateness_s",
		ls_json_real(ls_recent_mean(of, LS_RECENT_LATE)), "blame_s",
		ls_json_real(ls_recent_mean(of, LS_RECENT_BLAME)), "slowest_ratio",
		ls_json_number(ls_recent_mean(of, LS_RECENT_LAST), 3), "gaps",
		(json_int_t)w->gaps, "step_source",
		ls_step_source_name(w->info.step_source));

	if (w->info.owner != 0 && ls_job_is_contested(e, j, w))
		ls_json_set(&doc, "uid", json_integer((json_int_t)w->info.owner - 1));
	return doc;
}

static bool
view_hosts_wants(const struct ls_engine_worker *w, const struct ls_view_hosts *ask)
{
	return (ask->host == NULL || strcmp(w->info.host, ask->host) == 0) &&
		(ask->match == NULL || strcasestr(w->info.host, ask->match) != NULL);
}

/* What the workers are sorted by; NaN: not measured. */
static double
view_hosts_key(const struct ls_engine_worker *w, const struct ls_recent *of,
	enum ls_view_sort sort)
{
	static const enum ls_recent_kind kinds[] = {
		[LS_VIEW_BY_SUSPICION] = LS_RECENT_BLAME,
		[LS_VIEW_BY_BLAME] = LS_RECENT_BLAME,
		[LS_VIEW_BY_OWN] = LS_RECENT_OWN,
		[LS_VIEW_BY_WAIT] = LS_RECENT_WAIT,
		[LS_VIEW_BY_INPUT] = LS_RECENT_INPUT,
		[LS_VIEW_BY_LATENESS] = LS_RECENT_LATE,
		[LS_VIEW_BY_SLOWEST] = LS_RECENT_LAST,
	};

	if (sort == LS_VIEW_BY_HOST)
		return 0; /* by the name itself */
	return sort == LS_VIEW_BY_STATE ? (double)w->state
					: ls_recent_mean(of, kinds[sort]);
}

static struct view_sorted
view_hosts_place(const struct ls_engine *e, const struct ls_job *j, size_t slot,
	const struct ls_view_hosts *ask)
{
	const struct ls_engine_worker *w = &e->workers[j->slots[slot]];
	bool suspicion = ask->sort == LS_VIEW_BY_SUSPICION;
	double key = view_hosts_key(w, &j->recent[slot], ask->sort);

	if (isnan(key))
		key = -INFINITY;
	else if (!suspicion && !ask->descending)
		key = -key;
	return (struct view_sorted){
		.near = suspicion ? (double)j->detect.near[slot] : 0,
		.key = key,
		.index = slot,
		.name = ask->sort == LS_VIEW_BY_HOST ? w->info.host : NULL,
		.ascending = !ask->descending,
	};
}

/* Puts the first `limit` of n in order, without ordering the rest; returns how many. */
static size_t
view_hosts_first(struct view_sorted *order, size_t n, size_t limit)
{
	size_t kept = 0, i;
	bool full = false; /* order[limit - 1] is the last of the first so far */

	for (i = 0; i < n; i++) {
		if (full && view_compare(&order[limit - 1], &order[i]) < 0)
			continue;
		order[kept++] = order[i];
		if (kept < 2 * limit)
			continue;
		qsort(order, kept, sizeof(*order), view_compare);
		kept = limit;
		full = true;
	}
	if (kept > 1)
		qsort(order, kept, sizeof(*order), view_compare);
	return kept < limit ? kept : limit;
}

int
ls_view_hosts(const struct ls_engine *e, const char *job,
	const struct ls_view_hosts *ask, int64_t now_us, json_t **ret_page)
{
	const struct ls_job *j = ls_engine_find_job(e, job);
	struct view_sorted *order, begin = { 0 };
	size_t n = 0, count = 0, i;
	char next[24];
	json_t *items;
	int rc;

	if (j == NULL)
		return -LS_EUNKNOWN;
	order = malloc((j->count + 1) * sizeof(*order));
	if (order == NULL)
		return -ENOMEM;
	if (ask->after > 0 && ask->after <= j->count)
		begin = view_hosts_place(e, j, ask->after - 1, ask);
	for (i = 0; i < j->count; i++) {
		if (!view_hosts_wants(&e->workers[j->slots[i]], ask))
			continue;
		count++;
		order[n] = view_hosts_place(e, j, i, ask);
		n += ask->after == 0 ||
			(ask->after <= j->count && view_compare(&begin, &order[n]) < 0);
	}
	n = view_hosts_first(order, n, ask->limit + 1);
	items = json_array();
	for (i = 0; i < n && i < ask->limit; i++)
		ls_ignore(json_array_append_new(items,
			view_worker(e, j, order[i].index, now_us)));
	(void)snprintf(next, sizeof(next), "%zu", i > 0 ? order[i - 1].index + 1 : 0);
	free(order);
	rc = view_page(items, n > ask->limit ? next : NULL, ret_page);
	if (rc == 0)
		ls_ignore(json_object_set_new(*ret_page, "count",
			json_integer((json_int_t)count)));
	return rc;
}

/* Is it what is asked for? NULL or "": anything is. */
static bool
view_is(const char *have, const char *want)
{
	return want == NULL || want[0] == '\0' || strcmp(have, want) == 0;
}

/* A link names the hosts at both ends; a group as many of its hosts as are kept, and an open slice or group all; a job those that are slow, if it is some. */
static bool
view_finding_names(const struct ls_engine *e, const struct ls_finding *f,
	const char *host)
{
	const struct ls_job *j = ls_engine_find_job(e, f->who.job);
	const json_t *member;
	size_t i;

	for (i = 0; i < f->member_count && f->scope != LS_SCOPE_JOB; i++)
		if (view_is(f->members[i], host))
			return true;
	/* of a job, those that its text names: it names nobody once it is an imbalance, but keeps `members` */
	json_array_foreach(f->scope != LS_SCOPE_JOB
			? NULL
			: json_object_get(json_object_get(f->json, "subject"), "hosts"),
		i, member)
	{
		if (view_is(json_string_value(member), host))
			return true;
	}
	if (ls_finding_is_open(f) &&
		(f->scope == LS_SCOPE_SLICE || f->scope >= LS_SCOPE_GROUP))
		for (i = 0; j != NULL && i < j->count; i++)
			if (view_is(e->workers[j->slots[i]].info.host, host) &&
				ls_judge_group_has(j, f, i))
				return true;
	return f->members == NULL && f->scope != LS_SCOPE_JOB &&
		f->scope != LS_SCOPE_SLICE &&
		(view_is(f->who.host, host) ||
			(f->scope == LS_SCOPE_LINK && view_is(f->peer_host, host)));
}

static bool
view_findings_wants(const struct ls_engine *e, const struct ls_finding *f,
	const struct ls_view_findings *ask)
{
	bool open = ask->status != NULL && strcmp(ask->status, "open") == 0;

	return f->json != NULL && view_is(f->who.job, ask->job) &&
		(open ? ls_finding_is_open(f)
		      : view_is(ls_finding_name(LS_NAMES_STATUS, f->status),
				ask->status)) &&
		view_is(ls_finding_name(LS_NAMES_KIND, f->kind), ask->kind) &&
		(view_is("", ask->severity) ||
			view_is(json_string_value(json_object_get(f->json, "severity")),
				ask->severity)) &&
		(view_is("", ask->host) || /* looked up last: it costs most */
			view_finding_names(e, f, ask->host));
}

int
ls_view_findings(const struct ls_engine *e, const struct ls_view_findings *ask,
	json_t **ret_page)
{
	const struct ls_finding *f = NULL, *last = NULL;
	size_t i = e->finding_count;
	json_t *items;

	if (!view_is("", ask->after)) {
		f = ls_findings_find(e, ask->after);
		if (f == NULL)
			return -LS_EUNKNOWN;
		i = (size_t)(f - e->findings);
	}
	items = json_array();
	for (; i > 0; i--) {
		f = &e->findings[i - 1];
		if (!view_findings_wants(e, f, ask))
			continue;
		if (json_array_size(items) >= ask->limit)
			break;
		ls_ignore(json_array_append(items, f->json));
		last = f;
	}
	return view_page(items, i == 0 ? NULL : last != NULL ? last->id : "", ret_page);
}

const char *
ls_view_host_of(const struct ls_engine *e, const char *job, size_t i)
{
	const struct ls_job *j = ls_engine_find_job(e, job);

	return j != NULL && i < j->count ? e->workers[j->slots[i]].info.host : NULL;
}

int
ls_view_finding(const struct ls_engine *e, const char *id, json_t **ret_finding)
{
	const struct ls_finding *f = ls_findings_find(e, id);

	*ret_finding = f != NULL ? json_incref(f->json) : NULL;
	return f != NULL ? 0 : -LS_EUNKNOWN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/detect_run.h"
#include "collector/answer/finding_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector/ingest/attention.h"
#include "collector/engine/engine.h"
#include "collector/answer/view.h"
#include "collector/ingest/zoom.h"
#include "proto/base/clock.h"
#include "tests/bench/detect_rules.h"

#define RUN_WANTS_MAX 256
#define RUN_NEWEST 100u /* steps of a drift that a finding's cost is about */

/* When a finding was opened, by id. */
struct run_opened {
	char id[24];
	uint64_t step;
};

struct run {
	const struct detect_run *is;
	struct detect_result *out;
	struct sim_world *world;
	struct ls_engine *engine;
	uint32_t *handle;
	struct ls_record *record; /* of the step made last, by rank */
	bool *sent, lies;
	struct sim_world_step now;
	/* RUN_NEWEST steps before the fault ends */
	struct sim_truth before[SIM_FAULTS_MAX];
	struct run_opened opened[DETECT_FINDINGS_MAX];
	size_t opened_count;
	/* of the window of the other tools' rules */
	/* by rank, DETECT_WINDOW each; NaN where it did not report */
	float *own;
	double *wait, *ratio, *step, *scratch, *median; /* by rank */
	uint32_t *seen;
	bool *flag[DETECT_RULE_COUNT], *was;
};

static void
run_on_finding(void *arg, const char *id, const char *event, int64_t t_us,
	json_t *finding)
{
	struct run *r = arg;
	struct run_opened *o = &r->opened[r->opened_count];

	(void)t_us;
	(void)finding;
	if (strcmp(event, "opened") != 0 || r->opened_count == DETECT_FINDINGS_MAX)
		return;
	ls_ignore(snprintf(o->id, sizeof(o->id), "%s", id));
	o->step = r->now.step;
	r->opened_count++;
}

static void
run_declare(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->is->world.hosts; i++) {
		struct ls_worker_info info;

		sim_world_worker(r->world, i, &info);
		LS_ASSERT(ls_engine_worker(r->engine, &info, SIM_WORLD_START_US,
				  &r->handle[i]) == 0);
		if (r->is->world.clock_err_s > 0)
			ls_engine_clock(r->engine, r->handle[i],
				sim_world_uncertainty(r->world, i));
	}
}

/* A host's values and its worker's, as an agent sends them. */
static void
run_counters(struct run *r, uint32_t rank)
{
	uint16_t metric[LS_HOT_MAX], of_host[LS_HOT_MAX], of_job[LS_HOT_MAX];
	double value[LS_HOT_MAX], host_value[LS_HOT_MAX], job_value[LS_HOT_MAX];
	size_t n = sim_world_counters(r->world, rank, r->now.end_us, metric, value), i,
	       h = 0, j = 0;
	struct ls_worker_info info;

	for (i = 0; i < n; i++) {
		if (ls_metric_info(metric[i])->scope == LS_METRIC_SCOPE_JOB) {
			of_job[j] = metric[i];
			job_value[j++] = value[i];
		} else {
			of_host[h] = metric[i];
			host_value[h++] = value[i];
		}
	}
	sim_world_worker(r->world, rank, &info);
	ls_ignore(ls_engine_counters(r->engine, info.host, LS_NO_WORKER, r->now.end_us,
		h, of_host, host_value)); /* counted by the engine */
	ls_ignore(ls_engine_counters(r->engine, info.host, r->handle[rank],
		r->now.end_us, j, of_job, job_value)); /* likewise */
}

/* While a step lasts too long: where each worker is, and time passes. */
static void
run_hang(struct run *r)
{
	int64_t t_us;
	uint32_t i;

	for (t_us = r->now.begin_us; t_us < r->now.end_us;
		t_us += (int64_t)(SIM_WORLD_HANG_LIVE_S * 1e6)) {
		for (i = 0; i < r->is->world.hosts; i++) {
			struct ls_ring_live live;
			int64_t since_us;

			sim_world_live(r->world, i, t_us, &live, &since_us);
			ls_engine_live(r->engine, r->handle[i], &live, since_us, t_us);
		}
		ls_engine_advance(r->engine, t_us);
	}
}

/* What the workers will have sent of the step. */
static void
run_fill(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->is->world.hosts; i++)
		r->sent[i] = sim_world_record(r->world, i, &r->record[i]);
}

static void
run_feed(struct run *r)
{
	uint64_t began_ns;
	uint32_t i;

	for (i = 0; r->is->counters && i < r->is->world.hosts; i++)
		run_counters(r, i);
	began_ns = ls_clock_cpu_ns();
	if (r->now.hang_s > 0)
		run_hang(r);
	for (i = 0; i < r->is->world.hosts; i++) {
		struct ls_record lie;

		if (r->lies && sim_world_lie(r->world, i, &lie))
			ls_ignore(ls_engine_record(r->engine, r->handle[i], &lie,
				r->now.end_us)); /* refused or not: a lie */
		if (r->sent[i])
			ls_ignore(ls_engine_record(r->engine, r->handle[i],
				&r->record[i],
				r->now.end_us)); /* the lie may have taken its place */
	}
	ls_engine_advance(r->engine, r->now.end_us);
	r->out->engine_ns += ls_clock_cpu_ns() - began_ns;
	r->out->hosts_steps += r->is->world.hosts;
}

static bool
run_is_active(const struct detect_run *is, size_t k, uint64_t step)
{
	return step >= is->fault[k].from && step < is->fault[k].to;
}

/* Is the host one that fault k concerns? */
static bool
run_concerns(const struct run *r, size_t k, const char *host)
{
	unsigned long rank;

	if (host == NULL || strncmp(host, "sim", 3) != 0)
		return false;
	rank = strtoul(host + 3, NULL, 10);
	return rank >= 1 && rank <= r->is->world.hosts &&
		sim_world_concerns(r->world, &r->is->fault[k], (uint32_t)rank - 1);
}

static bool
run_hosts_concerned(const struct run *r, size_t k, const json_t *subject, bool all)
{
	const json_t *hosts = json_object_get(subject, "hosts");
	size_t i, n = json_array_size(hosts), hit = 0;

	if (n == 0)
		return run_concerns(r, k,
			json_string_value(json_object_get(subject, "host")));
	for (i = 0; i < n; i++)
		hit += run_concerns(r, k, json_string_value(json_array_get(hosts, i)));
	return all ? 2 * hit > n : hit > 0 && n <= 2;
}

/* Is the rank that fault k names in this slice? */
static bool
run_slice_holds(const struct run *r, size_t k, const char *slice)
{
	struct ls_worker_info info;

	sim_world_worker(r->world, r->is->fault[k].who, &info);
	return strcmp(info.slice, slice) == 0;
}

/* Does the subject name a slice in which fault k is? */
static bool
run_slice_is(const struct run *r, size_t k, const json_t *subject)
{
	const char *slice = json_string_value(json_object_get(subject, "slice"));
	struct ls_worker_info info;
	uint32_t i;

	for (i = 0; slice != NULL && i < r->is->world.hosts; i++) {
		sim_world_worker(r->world, i, &info);
		if (strcmp(info.slice, slice) == 0)
			return sim_world_concerns(r->world, &r->is->fault[k], i) ||
				(r->is->fault[k].kind == SIM_FAULT_ICI &&
					run_slice_holds(r, k, slice));
	}
	return false;
}

/* Is the subject of a finding that of fault k? */
static bool
run_subject_is(const struct run *r, size_t k, const json_t *finding)
{
	const json_t *subject = json_object_get(finding, "subject");
	const char *scope = json_string_value(json_object_get(subject, "scope"));
	const char *kind = json_string_value(json_object_get(finding, "kind"));
	const struct sim_fault_info *info = sim_fault_info(r->is->fault[k].kind);

	if (scope == NULL || kind == NULL)
		return false;
	if (info->truth == SIM_TRUTH_BENIGN && strcmp(kind, "periodic") != 0)
		return false;
	switch (info->scope) {
	case SIM_SCOPE_HOST:
		return (strcmp(scope, "host") == 0 || strcmp(scope, "rank") == 0 ||
			       strcmp(scope, "chip") == 0) &&
			run_hosts_concerned(r, k, subject, true);
	case SIM_SCOPE_LINK:
	case SIM_SCOPE_DCN:
		if (strcmp(scope, "job") == 0 ||
			(strcmp(scope, "slice") == 0 && run_slice_is(r, k, subject)))
			return strcmp(kind, "link") == 0 ||
				json_is_false(json_object_get(finding, "localised"));
		return strcmp(scope, "link") == 0 &&
			run_hosts_concerned(r, k, subject, false);
	case SIM_SCOPE_SLICE:
		return strcmp(scope, "slice") == 0 && run_slice_is(r, k, subject);
	case SIM_SCOPE_GROUP:
		if (info->truth == SIM_TRUTH_IMBALANCE && strcmp(scope, "job") == 0)
			return strcmp(kind, "imbalance") == 0;
		return strcmp(scope, "group") == 0 &&
			run_hosts_concerned(r, k, subject, true);
	case SIM_SCOPE_SHARD:
		return strcmp(scope, "input_shard") == 0 ||
			(strcmp(scope, "group") == 0 &&
				run_hosts_concerned(r, k, subject, true));
	case SIM_SCOPE_JOB:
	case SIM_SCOPE_COUNT:
	default:
		return strcmp(scope, "job") == 0 && strcmp(kind, "link") != 0;
	}
}

static uint64_t
run_opened_step(const struct run *r, const json_t *finding)
{
	const char *id = json_string_value(json_object_get(finding, "id"));
	size_t i;

	for (i = 0; id != NULL && i < r->opened_count; i++)
		if (strcmp(r->opened[i].id, id) == 0)
			return r->opened[i].step;
	return DETECT_NEVER;
}

static void
run_match(struct run *r, size_t k, const json_t *finding, uint64_t opened)
{
	const struct sim_fault *f = &r->is->fault[k];
	struct detect_event *ev = &r->out->event[k];
	const json_t *impact = json_object_get(finding, "impact");
	const json_t *with = json_object_get(impact, "step_time_s");
	const json_t *without = json_object_get(impact, "step_time_without_s");
	const char *cause = json_string_value(json_object_get(
		json_array_get(json_object_get(finding, "hypotheses"), 0), "cause"));
	const char *onset = json_string_value(
		json_object_get(json_object_get(finding, "onset"), "type"));

	if (opened - f->from >= ev->finding)
		return; /* found before */
	ev->finding = opened - f->from;
	ev->cost_found_s = json_is_number(with) && json_is_number(without)
		? json_number_value(with) - json_number_value(without)
		: NAN;
	ev->drift = onset != NULL && strcmp(onset, "drift") == 0;
	ev->cause_named = cause != NULL && strcmp(cause, "unexplained") != 0;
	ev->cause_right = strcmp(ev->cause_named ? cause : "",
				  sim_fault_info(f->kind)->cause) == 0;
}

static bool
run_is_drift(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_DRIFT || kind == SIM_FAULT_SLICE_DRIFT ||
		kind == SIM_FAULT_RACK_DRIFT;
}

/* What a step of the fault cost, or of its newest ones only. */
static double
run_cost(const struct run *r, size_t k, const struct sim_truth *truth, bool newest)
{
	const struct sim_truth *before = &r->before[k];
	double sum = truth->cost_s * (double)truth->steps,
	       was = before->cost_s * (double)before->steps;

	return newest && truth->steps > before->steps
		? (sum - was) / (double)(truth->steps - before->steps)
		: truth->cost_s;
}

/* A finding that is false, or a fault of which none was. */
static void
run_wrong(const struct run *r, const json_t *finding, const struct sim_fault *missed)
{
	char *text;

	if (!r->is->wrong)
		return;
	if (missed != NULL) {
		(void)fprintf(stderr,
			"{\"seed\":%llu,\"hosts\":%u,\"missed\":\"%s:%u:%g@%llu-%llu\"}\n",
			(unsigned long long)r->is->world.seed, r->is->world.hosts,
			sim_fault_info(missed->kind)->name, missed->who, missed->amount,
			(unsigned long long)missed->from,
			(unsigned long long)missed->to);
		return;
	}
	text = json_dumps(finding, JSON_COMPACT);
	(void)fprintf(stderr, "{\"seed\":%llu,\"hosts\":%u,\"false\":%s}\n",
		(unsigned long long)r->is->world.seed, r->is->world.hosts,
		text == NULL ? "null" : text);
	free(text);
}

/* Sets every finding against the truth. */
static void
run_judge(struct run *r)
{
	json_t *all = ls_finding_all(r->engine);
	size_t i, k;

	for (i = 0; i < json_array_size(all); i++) {
		const json_t *f = json_array_get(all, i);
		uint64_t opened = run_opened_step(r, f);
		uint64_t onset = (uint64_t)json_integer_value(
			json_object_get(json_object_get(f, "onset"), "step"));
		bool right = false, early = true;

		for (k = 0; k < r->is->faults; k++) {
			early &= opened < r->is->fault[k].from;
			if (opened == DETECT_NEVER || opened < r->is->fault[k].from ||
				onset >= r->is->fault[k].to || !run_subject_is(r, k, f))
				continue;
			right = true;
			run_match(r, k, f, opened);
		}
		r->out->findings++;
		r->out->right += right;
		r->out->early += !right && early;
		if (!right)
			run_wrong(r, f, NULL);
	}
	json_decref(all);
	for (k = 0; k < r->is->faults; k++) {
		struct detect_event *ev = &r->out->event[k];
		struct sim_truth truth;

		sim_world_truth(r->world, k, &truth);
		ev->cost_s = run_cost(r, k, &truth, run_is_drift(r->is->fault[k].kind));
		ev->counts = truth.info->truth != SIM_TRUTH_NONE &&
			truth.info->truth != SIM_TRUTH_BENIGN;
		if (ev->counts && ev->finding == DETECT_NEVER)
			run_wrong(r, NULL, &r->is->fault[k]);
	}
}

/* Since when each fault's hosts are suspects. */
static void
run_suspects(struct run *r)
{
	struct ls_attention_want *want = NULL;
	size_t i, k, n = 0;

	for (k = 0; k < r->is->faults; k++) {
		struct detect_event *ev = &r->out->event[k];

		if (ev->suspect != DETECT_NEVER ||
			!run_is_active(r->is, k, r->now.step) ||
			sim_fault_info(r->is->fault[k].kind)->scope != SIM_SCOPE_HOST)
			continue; /* suspects are single workers */
		if (want == NULL) {
			want = calloc(RUN_WANTS_MAX, sizeof(*want));
			LS_ASSERT(want != NULL);
			n = ls_attention(r->engine, want, RUN_WANTS_MAX);
		}
		for (i = 0; i < n && ev->suspect == DETECT_NEVER; i++)
			if (strncmp(want[i].cause, "peer", 4) != 0 &&
				run_concerns(r, k, want[i].host))
				ev->suspect = r->now.step - r->is->fault[k].from;
	}
	free(want);
}

/* How many are suspects that no fault concerns. */
static void
run_innocent(struct run *r)
{
	struct ls_attention_want *want = calloc(RUN_WANTS_MAX, sizeof(*want));
	size_t i, k, n;

	LS_ASSERT(want != NULL);
	n = ls_attention(r->engine, want, RUN_WANTS_MAX);
	for (i = 0; i < n; i++) {
		bool innocent = strncmp(want[i].cause, "peer", 4) != 0;

		for (k = 0; k < r->is->faults; k++)
			innocent &= !run_concerns(r, k, want[i].host);
		r->out->innocent += innocent;
	}
	free(want);
}

/* Who is most blamed now, as the page shows it. */
static void
run_deadline(struct run *r)
{
	size_t k, i, among = r->is->faults > 3 ? r->is->faults : 3;
	const struct ls_view_hosts worst = { .limit = among };
	json_t *page = NULL, *hosts;

	if (ls_view_hosts(r->engine, r->is->world.job, &worst, r->now.end_us, &page) !=
		0)
		return;
	hosts = json_object_get(page, "items");
	r->out->first = r->out->third = r->out->named = true;
	for (k = 0; k < r->is->faults; k++) {
		size_t place = SIZE_MAX;

		for (i = 0; i < among && place == SIZE_MAX; i++) {
			const json_t *row = json_array_get(hosts, i);

			if (json_number_value(json_object_get(row, "blame_s")) > 0 &&
				run_concerns(r, k,
					json_string_value(
						json_object_get(row, "host"))))
				place = i;
		}
		r->out->first &= place < r->is->faults;
		r->out->third &= place < among;
		r->out->named &= place < r->is->faults &&
			r->out->event[k].suspect != DETECT_NEVER;
	}
	json_decref(page);
	run_innocent(r);
}

/* --- the other tools' rules, on windows of DETECT_WINDOW steps ------------ */

static int
run_compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void
run_rules_step(struct run *r)
{
	uint32_t i, n = r->is->world.hosts;

	for (i = 0; i < n; i++) {
		double own, wait;

		if (!r->sent[i])
			continue;
		sim_world_split(r->world, i, &own, &wait);
		r->own[(size_t)i * DETECT_WINDOW + r->seen[i]] = (float)own;
		r->wait[i] += wait;
		r->step[i] += (double)r->record[i].duration_ns * 1e-9;
		r->seen[i]++;
	}
}

static void
run_rules_count(struct run *r, enum detect_rule rule, const bool *now)
{
	uint32_t i;
	size_t k;

	for (i = 0; i < r->is->world.hosts; i++) {
		bool right = false;

		for (k = 0; k < r->is->faults && now[i]; k++) {
			uint64_t end = r->now.step + 1, begin = end - DETECT_WINDOW;

			if (!sim_world_concerns(r->world, &r->is->fault[k], i) ||
				sim_fault_info(r->is->fault[k].kind)->scope !=
					SIM_SCOPE_HOST ||
				end <= r->is->fault[k].from ||
				begin >= r->is->fault[k].to)
				continue;
			right = true;
			r->out->rule_found[rule][k] = true;
		}
		if (now[i] && !r->flag[rule][i]) {
			r->out->flags[rule]++;
			r->out->flags_right[rule] += right;
		}
	}
	memcpy(r->flag[rule], now, r->is->world.hosts * sizeof(*now));
}

static void
run_rules_window(struct run *r)
{
	size_t n = r->is->world.hosts, i, worst;

	for (i = 0; i < n; i++) {
		double steps = r->seen[i] > 0 ? (double)r->seen[i] : (double)NAN;

		qsort(r->own + i * DETECT_WINDOW, r->seen[i], sizeof(*r->own),
			run_compare);
		r->median[i] = r->seen[i] > 0
			? (double)r->own[i * DETECT_WINDOW + r->seen[i] / 2]
			: NAN;
		r->ratio[i] = r->wait[i] / (isnan(steps) ? NAN : r->step[i]);
		r->wait[i] /= steps;
		r->step[i] /= steps;
		r->seen[i] = 0;
	}
	/* how many: the flags tell it */
	(void)rule_xprof(r->ratio, n, r->scratch, r->was);
	run_rules_count(r, DETECT_XPROF, r->was);
	(void)rule_nvrx(r->median, n, r->was); /* likewise */
	run_rules_count(r, DETECT_NVRX, r->was);
	memset(r->was, 0, n * sizeof(*r->was));
	if (rule_traceml(r->wait, r->step, n, DETECT_WINDOW, r->scratch, &worst) !=
		RULE_QUIET)
		r->was[worst] = true;
	run_rules_count(r, DETECT_TRACEML, r->was);
	memset(r->wait, 0, n * sizeof(*r->wait));
	memset(r->step, 0, n * sizeof(*r->step));
}

static int
run_rules_room(struct run *r)
{
	size_t n = r->is->world.hosts, i;
	bool ok;

	r->own = calloc(n * DETECT_WINDOW, sizeof(*r->own));
	r->wait = calloc(5 * n, sizeof(*r->wait));
	r->seen = calloc(n, sizeof(*r->seen));
	r->was = calloc(n, sizeof(*r->was));
	ok = r->own != NULL && r->wait != NULL && r->seen != NULL && r->was != NULL;
	for (i = 0; i < DETECT_RULE_COUNT; i++) {
		r->flag[i] = calloc(n, sizeof(*r->flag[i]));
		ok &= r->flag[i] != NULL;
	}
	if (!ok)
		return -ENOMEM;
	r->ratio = r->wait + n;
	r->step = r->wait + 2 * n;
	r->scratch = r->wait + 3 * n;
	r->median = r->wait + 4 * n;
	return 0;
}

static void
run_free(struct run *r)
{
	size_t i;

	if (r == NULL)
		return;
	ls_engine_free(r->engine);
	sim_world_free(r->world);
	free(r->handle);
	free(r->record);
	free(r->sent);
	free(r->own);
	free(r->wait);
	free(r->seen);
	free(r->was);
	for (i = 0; i < DETECT_RULE_COUNT; i++)
		free(r->flag[i]);
	free(r);
}

static void
run_steps(struct run *r)
{
	uint64_t i, began_ns;

	for (i = 0; i < r->is->steps; i++) {
		began_ns = ls_clock_cpu_ns();
		sim_world_next(r->world, &r->now);
		run_fill(r);
		r->out->world_ns += ls_clock_cpu_ns() - began_ns;
		run_feed(r);
		for (size_t k = 0; k < r->is->faults; k++)
			if (r->now.step + RUN_NEWEST + 1 == r->is->fault[k].to)
				sim_world_truth(r->world, k, &r->before[k]);
		if (r->is->faults > 0)
			run_suspects(r);
		if (r->is->faults > 0 &&
			r->now.step + 1 == r->is->fault[0].from + r->is->deadline)
			run_deadline(r);
		if (r->is->rules) {
			run_rules_step(r);
			if ((i + 1) % DETECT_WINDOW == 0)
				run_rules_window(r);
		}
	}
}

int
detect_run(const struct detect_run *run, struct detect_result *ret_result)
{
	struct run *r = calloc(1, sizeof(*r));
	struct ls_engine_sink sink = ls_finding_sink;
	size_t k;
	int rc = -ENOMEM;

	if (r == NULL)
		return -ENOMEM;
	memset(ret_result, 0, sizeof(*ret_result));
	for (k = 0; k < SIM_FAULTS_MAX; k++)
		ret_result->event[k] = (struct detect_event){ .suspect = DETECT_NEVER,
			.finding = DETECT_NEVER,
			.cost_found_s = NAN };
	r->is = run;
	r->out = ret_result;
	r->handle = calloc(run->world.hosts, sizeof(*r->handle));
	r->record = calloc(run->world.hosts, sizeof(*r->record));
	r->sent = calloc(run->world.hosts, sizeof(*r->sent));
	for (k = 0; k < run->faults; k++)
		r->lies |= run->fault[k].kind == SIM_FAULT_LIES;
	sink.arg = r;
	sink.finding = run_on_finding;
	r->engine = ls_engine_new(&sink);
	ls_engine_patience(r->engine, 0); /* young jobs are judged at once */
	if (r->handle == NULL || r->record == NULL || r->sent == NULL ||
		r->engine == NULL || (run->rules && run_rules_room(r) != 0))
		goto out;
	rc = sim_world_new(&run->world, run->fault, run->faults, &r->world, NULL);
	if (rc != 0)
		goto out;
	run_declare(r);
	run_steps(r);
	run_judge(r);
out:
	run_free(r);
	return rc;
}

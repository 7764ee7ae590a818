/* SPDX-License-Identifier: Apache-2.0 */
/* view_quality - the part of view that says what an answer rests on: who is judged and why not all are, records that are missing,
 * hosts that say what cannot be, workers that contradict each other. */
#include "config.h"
#include "collector/answer/view.h"
#include "collector/answer/view_state.h"
#include "collector/engine/finding/contradictions.h"
#include "collector/engine/finding/judged.h"
#include "proto/base/json.h"

#include <stdio.h>
#include <stdlib.h>

#define VIEW_WHY_BYTES 192

/* Does it do what may take long? */
static bool
view_is_pause(const struct ls_engine_worker *w)
{
	return w->has_live && ls_worker_reports(w) &&
		(LS_PHASES_MASKED & 1u << w->live.phase) != 0;
}

/* Why nobody is judged; false: some are. */
static bool
view_judged_nobody(const struct ls_engine *e, const struct ls_job *j, bool ended,
	double still_s, char *why, size_t size)
{
	/* what a job learned is forgotten when it ends */
	uint64_t steps = ended ? j->ended_judged : j->detect.judged;
	uint64_t warm = ended ? j->ended_needs
			      : ls_warm_steps(j->detect.step_s) + LS_DETECT_SKIP;

	if (j->live_count == 0)
		(void)snprintf(why, size, "no step is complete yet");
	else if (j->replica.on && j->count < LS_PEERS)
		(void)snprintf(why, size,
			"no barrier to judge by, and %zu of at least %u replicas that "
			"can be compared",
			j->count, LS_PEERS);
	else if (!j->replica.on && j->count > 1 && !j->detect.ready && steps < warm)
		(void)snprintf(why, size, "learning what is usual: %llu of %llu steps",
			(unsigned long long)steps, (unsigned long long)warm);
	else if (!ended && still_s > ls_judged_limit_s(j) &&
		ls_job_workers(e, j, view_is_pause) == 0)
		(void)snprintf(why, size, "no step for %.0f s", still_s);
	else
		return false;
	return true;
}

json_t *
ls_view_judged(const struct ls_engine *e, const struct ls_job *j, bool ended,
	int64_t now_us)
{
	const struct ls_live_row *last =
		j->live_count == 0 ? NULL : ls_job_row(j, j->live_count - 1);
	int64_t closed_us = last == NULL ? j->last_us : last->row.end_us;
	char why[VIEW_WHY_BYTES] = "";
	size_t workers = 0, expected = ls_judged_expected(e, j);
	bool all,
		nobody = view_judged_nobody(e, j, ended,
			(double)(now_us - closed_us) * 1e-6, why, sizeof(why));

	if (!nobody)
		workers = ls_judged_workers(e, j, ended, now_us);
	if (!nobody && workers < expected)
		(void)snprintf(why, sizeof(why), "%zu of %zu workers are judged%s",
			workers, expected,
			j->count < expected
				? "; the others never reported to this collector: each host needs a lockstep-agent with its address"
				: "");
	all = why[0] == '\0' && expected > 0;
	if (all && expected > 1 && j->world == 0)
		(void)snprintf(why, sizeof(why),
			"%zu workers reporting, the size of the job is not known",
			workers);
	return json_pack("{s:b, s:I, s:I, s:I, s:o, s:s?}", "all", (int)all, "workers",
		(json_int_t)workers, "expected", (json_int_t)expected, "steps",
		(json_int_t)j->closed, "since",
		j->live_count > 0 ? ls_json_time(j->first_us) : json_null(), "why",
		why[0] == '\0' ? NULL : why);
}

/* Different numbers of slices; more slices than that number; a slice with more workers than
 * its share. Nobody is lost by any of them. */
static json_t *
view_slices(const struct ls_engine *e, const struct ls_job *j)
{
	uint32_t *workers = calloc(j->slices.count, sizeof(*workers));
	const struct ls_worker_info *most = NULL, *least = NULL, *crowd = NULL;
	uint32_t used = 0, crowded = 0;

	for (size_t i = 0; workers != NULL && i < j->count; i++) {
		const struct ls_engine_worker *w = &e->workers[j->slots[i]];
		uint32_t n;

		if (!ls_worker_reports(w))
			continue;
		n = ++workers[j->slices.of[i]];
		used += n == 1;
		if (n > crowded) {
			crowded = n;
			crowd = &w->info;
		}
		if (w->info.slices == 0)
			continue;
		if (most == NULL || w->info.slices > most->slices)
			most = &w->info;
		if (least == NULL || w->info.slices < least->slices)
			least = &w->info;
	}
	free(workers);
	if (most == NULL)
		return NULL;
	if (most->slices != least->slices)
		return json_sprintf(
			"%s says that the job has %d slices, %s says %d: set "
			"MEGASCALE_NUM_SLICES to one number",
			least->host, (int)least->slices, most->host, (int)most->slices);
	if (used > (uint32_t)most->slices)
		return json_sprintf(
			"%s says that the job has %d slices, and its workers "
			"are in %u: set LOCKSTEP_SLICE",
			most->host, (int)most->slices, used);
	if (j->world > 0 && j->world % most->slices == 0 &&
		crowded > (uint32_t)(j->world / most->slices))
		return json_sprintf("slice \"%s\" has %u workers, and %d workers in %d "
				    "slices make %d in each: set LOCKSTEP_SLICE",
			crowd->slice, crowded, (int)j->world, (int)most->slices,
			(int)(j->world / most->slices));
	return NULL;
}

/*
 * What workers contradict each other in as sentences, with what to set; [] almost always. Then the number of slices, and workers
 * whose rank was refused: nothing that a finding rests on, so it is not exported.
 */
static json_t *
view_contradictions(const struct ls_engine *e, const struct ls_job *j)
{
	struct ls_contradictions list;
	char line[LS_FINDING_SAID_BYTES];
	json_t *lines = json_array();
	size_t n = 0;

	ls_contradictions(e, j, &list);
	LS_EACH (const struct ls_contradiction, c, list.of, list.count) {
		ls_contradiction_line(c, line);
		ls_ignore(json_array_append_new(lines, json_string(line)));
	}
	if (j->has_slices)
		ls_ignore(json_array_append_new(lines, view_slices(e, j)));
	for (size_t i = 0;
		j->has_refused && i < j->count && n < LS_CONTRADICTIONS_SHOWN; i++) {
		const struct ls_worker_info *who = &e->workers[j->slots[i]].info;

		if (who->refused_rank[0] == '\0')
			continue;
		n++;
		ls_ignore(json_array_append_new(lines,
			json_sprintf("%s has %s, which is no rank in the job: it is "
				     "judged as rank %d; set LOCKSTEP_RANK",
				who->host, who->refused_rank, (int)who->rank)));
	}
	return lines;
}

static uint64_t
view_lies_of(const struct ls_engine_host *h)
{
	uint64_t sum = 0;

	for (unsigned why = 0; why < LS_LIE_COUNT; why++)
		sum += h->lies[why];
	return sum;
}

/* Most first; equal ones in the order in which they came, so that the answer stays the
 * same. */
static int
view_lies_compare(const void *a, const void *b, void *hosts)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t of_x = view_lies_of((struct ls_engine_host *)hosts + x),
		 of_y = view_lies_of((struct ls_engine_host *)hosts + y);

	return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : (x > y) - (x < y);
}

static json_t *
view_liar(const struct ls_engine_host *h)
{
	json_t *reasons = json_object();

	for (unsigned why = 0; why < LS_LIE_COUNT; why++)
		if (h->lies[why] > 0)
			ls_ignore(json_object_set_new(reasons, ls_lie_name(why),
				json_integer((json_int_t)h->lies[why])));
	return json_pack("{s:s, s:I, s:o}", "host", h->name, "count",
		(json_int_t)view_lies_of(h), "reasons", reasons);
}

/* Hosts of the job that say what cannot be, worst first. */
static json_t *
view_lies(const struct ls_engine *e, const struct ls_job *j)
{
	uint32_t *host = j->room.index;
	json_t *hosts = json_array();
	size_t n = ls_job_hosts(e, j, NULL, 0), lie = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t one = view_lies_of(&e->hosts[host[i]]);

		host[lie] = host[i];
		lie += one > 0;
		sum += one;
	}
	if (lie > 1)
		qsort_r(host, lie, sizeof(*host), view_lies_compare,
			e->hosts); /* worst first */
	for (size_t i = 0; i < lie && i < LS_LIARS_SHOWN; i++)
		ls_ignore(json_array_append_new(hosts, view_liar(&e->hosts[host[i]])));
	return json_pack("{s:I, s:o}", "count", (json_int_t)sum, "hosts", hosts);
}

json_t *
ls_view_quality(const struct ls_engine *e, const struct ls_job *j, int64_t now_us)
{
	struct ls_worker_info steps;

	ls_job_step_source(e, j, &steps);
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:o, s:o, s:s, s:o, s:o}",
		"workers_reporting", (int)ls_job_workers(e, j, ls_worker_reports),
		"late_records", (json_int_t)j->late, "gaps", (json_int_t)j->gaps,
		"short_steps", (json_int_t)j->shorted, "apart_steps",
		(json_int_t)j->apart, "lag_s",
		j->last_us == 0 ? json_null()
				: ls_json_real((double)(now_us - j->last_us) * 1e-6),
		"clock_err_ms", ls_json_real(ls_job_clock_err_s(e, j) * 1e3),
		"step_source", ls_step_source_name(steps.step_source), "not_believed",
		view_lies(e, j), "contradictions", view_contradictions(e, j));
}

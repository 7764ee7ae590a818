/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judged.h"
#include "proto/base/json.h"

#include <math.h>
#include <stdio.h>

#define JUDGED_WHY_BYTES 192

/* Is the worker in the newest steps, or was it when the job ended? */
static bool
judged_is(const struct ls_job *j, const struct ls_engine_worker *w, uint64_t newest,
	bool ended, int64_t now_us)
{
	if (!w->reported || (!ended && ls_worker_is_gone(w)))
		return false;
	if (j->replica.on)
		return ended ||
			(double)(now_us - w->end_us) * 1e-6 <= ls_judged_limit_s(j);
	return newest <= w->last_step + LS_LOOK;
}

/* Does it do what may take long? */
static bool
judged_is_pause(const struct ls_engine_worker *w)
{
	return w->has_live && ls_worker_reports(w) &&
		(LS_PHASES_MASKED & 1u << w->live.phase) != 0;
}

/* Why nobody is judged; false: some are. */
static bool
judged_nobody(const struct ls_engine *e, const struct ls_job *j, bool ended,
	double still_s, char *why, size_t size)
{
	if (j->live_count == 0)
		(void)snprintf(why, size, "no step is complete yet");
	else if (j->replica.on && j->count < LS_PEERS)
		(void)snprintf(why, size,
			"no barrier to judge by, and %zu of at least %u replicas that "
			"can be compared",
			j->count, LS_PEERS);
	else if (!j->replica.on && j->count > 1 && !j->detect.ready)
		(void)snprintf(why, size, "learning what is usual: %llu of %u steps",
			(unsigned long long)j->closed, LS_DETECT_WARM);
	else if (!ended && still_s > ls_judged_limit_s(j) &&
		ls_job_workers(e, j, judged_is_pause) == 0)
		(void)snprintf(why, size, "no step for %.0f s", still_s);
	else
		return false;
	return true;
}

bool
ls_judged_is_lost(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_job_lost *lost)
{
	return (double)(j->last_us - lost->seen_us) * 1e-6 <= ls_judged_limit_s(j) &&
		ls_job_worker(e, j, &lost->who) == NULL;
}

size_t
ls_judged_workers(const struct ls_engine *e, const struct ls_job *j, bool ended,
	int64_t now_us)
{
	uint64_t newest = j->live_count == 0
		? 0
		: ls_row_shown(&ls_job_row(j, j->live_count - 1)->row);
	size_t n = 0;

	for (size_t i = 0; i < j->count; i++)
		n += judged_is(j, &e->workers[j->slots[i]], newest, ended, now_us);
	return n;
}

size_t
ls_judged_expected(const struct ls_engine *e, const struct ls_job *j)
{
	size_t n = j->count, replaced = 0;

	for (size_t i = 0; i < j->count; i++) {
		const struct ls_engine_worker *w = &e->workers[j->slots[i]];

		if (ls_worker_has_left(j, w))
			n--;
		else
			replaced += w->state == LS_WORKER_SILENT;
	}
	n -= replaced < j->twins ? replaced : j->twins;
	for (size_t i = 0; i < j->lost_count; i++)
		n += ls_judged_is_lost(e, j, &j->lost[i]);
	if (j->world == 0 && j->count > 0 && !j->replica.on &&
		(size_t)j->rank_most >= n)
		return (size_t)j->rank_most + 1; /* ranks begin at 0 */
	return j->world > 0 && (size_t)j->world > n ? (size_t)j->world : n;
}

json_t *
ls_view_judged(const struct ls_engine *e, const struct ls_job *j, bool ended,
	int64_t now_us)
{
	const struct ls_live_row *last =
		j->live_count == 0 ? NULL : ls_job_row(j, j->live_count - 1);
	int64_t closed_us = last == NULL ? j->last_us : last->row.end_us;
	char why[JUDGED_WHY_BYTES] = "";
	size_t workers = 0, expected = ls_judged_expected(e, j);
	bool all,
		nobody = judged_nobody(e, j, ended, (double)(now_us - closed_us) * 1e-6,
			why, sizeof(why));

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

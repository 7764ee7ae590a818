/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/finding/judged.h"
#include "proto/base/mem.h"

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

	LS_WORKERS (e, j, w)
		n += judged_is(j, w, newest, ended, now_us);
	return n;
}

size_t
ls_judged_expected(const struct ls_engine *e, const struct ls_job *j)
{
	size_t n = j->count, replaced = 0;

	LS_WORKERS (e, j, w) {
		if (ls_worker_has_left(j, w))
			n--;
		else
			replaced += w->state == LS_WORKER_SILENT;
	}
	n -= replaced < j->twins ? replaced : j->twins;
	LS_EACH (const struct ls_job_lost, lost, j->lost, j->lost_count)
		n += ls_judged_is_lost(e, j, lost);
	if (j->world == 0 && j->count > 0 && !j->replica.on &&
		(size_t)j->rank_most >= n)
		return (size_t)j->rank_most + 1; /* ranks begin at 0 */
	return j->world > 0 && (size_t)j->world > n ? (size_t)j->world : n;
}

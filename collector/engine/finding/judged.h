/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judged - how many workers of a job are judged, of those expected.
 *
 * A worker is judged if its newest step is at most LS_LOOK before the newest kept one (a replica: if it ended at most
 * ls_judged_limit_s ago). Whether the whole job stands still is tested in answer/view_quality; a job that ended keeps its last verdict.
 * A single worker without a launcher is whole.
 *
 * Owner:   the engine's thread. Pure.
 * Units:   counts; microseconds since the epoch.
 * Errors:  none.
 * Limits:  none of its own: one pass over the workers.
 * Source:  design section 7, "Not judged".
 */
#ifndef LS_COLLECTOR_JUDGED_H
#define LS_COLLECTOR_JUDGED_H

#include <math.h>
#include "collector/engine/engine_state.h"

/* How long a worker may be silent and still count as judged. */
static inline double
ls_judged_limit_s(const struct ls_job *j)
{
	return fmax(LS_COUNTERS_S,
		j->detect.step_s > 0 ? LS_LOOK * j->detect.step_s : 0);
}

/* Is the process of another attempt still there, and of no worker that has a place? */
bool ls_judged_is_lost(const struct ls_engine *e, const struct ls_job *j,
	const struct ls_job_lost *lost);

/* Workers in the newest steps; those that should be: known ones and lost ones, or the
 * world that they report, if that is greater, or one for each rank where none is
 * reported. Where two have one rank, one that is silent was replaced by the other and
 * does not count, nor does one that left. */
size_t ls_judged_workers(const struct ls_engine *e, const struct ls_job *j, bool ended,
	int64_t now_us);
size_t ls_judged_expected(const struct ls_engine *e, const struct ls_job *j);

#endif

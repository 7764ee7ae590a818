/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_state - what the files of view share: nobody else includes it. They read the engine's memory, and change none of it.
 *
 * Owner, units, errors: as collector/answer/view.h.
 * Limits:  one pass over the workers of a job; LS_CONTRADICTIONS_SHOWN of each kind.
 */
#ifndef LS_COLLECTOR_VIEW_STATE_H
#define LS_COLLECTOR_VIEW_STATE_H

#include <jansson.h>
#include "collector/engine/engine_state.h"

/*
 * What an answer about a job rests on: {"all":bool,"workers":n,"expected":n,"steps":n,"since":time|null,"why":text|null},
 * as judged.h counts. If no worker of several reports a world, "all" holds for those that report, and "why" says that the size
 * of the job is not known. ended: the job has. NULL: out of memory.
 */
json_t *ls_view_judged(const struct ls_engine *e, const struct ls_job *j, bool ended,
	int64_t now_us);

/* "data_quality" of a job, as web/README.md has it. NULL: out of memory. */
json_t *ls_view_quality(const struct ls_engine *e, const struct ls_job *j,
	int64_t now_us);

/* Id of the newest open finding about a worker, or of the finding of its group, if that stands for the worker; or NULL. */
const char *ls_view_finding_of(const struct ls_engine *e,
	const struct ls_engine_worker *w);

#endif

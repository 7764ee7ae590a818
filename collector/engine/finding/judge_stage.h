/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_stage - the part of the judge that opens, changes and clears findings about
 * stages of a pipeline.
 *
 * Owner:   the engine's thread.
 * Units:   microseconds since the epoch.
 * Errors:  none.
 * Limits:  LS_STAGES_MAX.
 * Source:  stage.h.
 */
#ifndef LS_COLLECTOR_JUDGE_STAGE_H
#define LS_COLLECTOR_JUDGE_STAGE_H

#include "collector/engine/engine_state.h"

/* After the detectors have taken a judged row. */
void ls_judge_stages(struct ls_engine *e, struct ls_job *j, const struct ls_row *row,
	int64_t now_us);

#endif

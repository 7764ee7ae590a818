/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_job - the part of the judgement that concerns a job as a whole: it became
 * slower (pulse.h).
 *
 * Owner:   the engine.
 * Units:   seconds; microseconds since the epoch.
 * Errors:  none.
 * Limits:  one finding a job: a collective, a stage, a rotation or a culprit goes before.
 * Source:  design section 7 (kind job_slow); pulse.h.
 */
#ifndef LS_COLLECTOR_JUDGE_JOB_H
#define LS_COLLECTOR_JUDGE_JOB_H

#include "collector/engine/engine_state.h"

/* Takes a judged step; opens, updates and clears. After all other findings of it. */
void ls_judge_job(struct ls_engine *e, struct ls_job *j, const struct ls_live_row *row,
	int64_t now_us);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_identity - the finding that workers of a job contradict each other about who they
 * are, and that therefore not all of them are judged (kind self_identity).
 *
 * It opens when that has been so for longer than ls_judged_limit_s, which a start-up does
 * not take, and clears when it is over or the job has ended. Time is that of closed steps,
 * so that a replay finds the same.
 *
 * Owner:   the engine.
 * Units:   microseconds since the epoch.
 * Errors:  none; without memory, the next look tells.
 * Limits:  one a job; looked at once per LS_FINDING_UPDATE_US.
 * Source:  contradictions.h, judged.h.
 */
#ifndef LS_COLLECTOR_JUDGE_IDENTITY_H
#define LS_COLLECTOR_JUDGE_IDENTITY_H

#include "collector/engine/engine_state.h"

/* A step was closed and kept. */
void ls_judge_identity(struct ls_engine *e, struct ls_job *j, int64_t now_us);

#endif

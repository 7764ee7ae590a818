/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_slow - the part of the judgement that concerns long time scales: a worker that
 * holds up steps at equal distances, and steps held up by another worker each time
 * (rhythm.h).
 *
 * Owner:   the engine.
 * Units:   seconds; microseconds since the epoch.
 * Errors:  none.
 * Limits:  one finding a subject: what the detectors of single steps find of it goes
 *          before.
 * Source:  rhythm.h; design section 7 (kind periodic).
 */
#ifndef LS_COLLECTOR_JUDGE_SLOW_H
#define LS_COLLECTOR_JUDGE_SLOW_H

#include "collector/engine/engine_state.h"

/* Takes the judged step that is the newest of the live window; opens, updates and
 * clears. After the channels. */
void ls_judge_slow(struct ls_engine *e, struct ls_job *j, int64_t now_us);

#endif

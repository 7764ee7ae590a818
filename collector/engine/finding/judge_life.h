/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_life - open findings that no detector holds up: from before a restart of the collector, of an attempt that
 * is over, or about a worker that is gone. Each goes on, or is over, by what is measured of it.
 *
 *     found before --its attempt ends--> waits --found again, or half of it is still there--> goes on
 *                                          |   --less, and not named; or its host is gone---> cleared
 *                                          |   --no process for LS_ADVICE_RESTART_S, or nothing
 *                                                measured for LS_REOPEN_S (findings.h)-----> cleared
 *
 * Owner:   the engine's thread.
 * Units:   microseconds since the epoch.
 * Errors:  none.
 * Limits:  none of its own: all findings are looked at in every LS_FINDING_UPDATE_STEPS steps.
 * Source:  design section 7: a finding is cleared only by evidence.
 */
#ifndef LS_COLLECTOR_JUDGE_LIFE_H
#define LS_COLLECTOR_JUDGE_LIFE_H

#include "collector/engine/engine_state.h"

/* A row is about to be judged. Steps without a record are charged to no finding; steps before the first row of an attempt
 * not to the findings above. */
void ls_judge_life_row(struct ls_engine *e, const struct ls_job *j,
	const struct ls_row *row);

/* A step was judged (replicas: 0): which of them go on, and which are over? */
void ls_judge_life(struct ls_engine *e, struct ls_job *j, uint64_t step,
	int64_t now_us);

#endif

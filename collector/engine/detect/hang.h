/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang - a job that stands still: seen while it lasts, from live slots, or afterwards
 * in one step that took far too long. Who has not entered the barrier that the others
 * wait in holds the job up.
 *
 *   while it lasts   nobody has made a mark for max(10 median steps, 10 s), and most workers tell so;
 *                    for 10 s if a process crashed and all others wait
 *   afterwards       a step of 10 medians, and at least 2 s (a lossy link alone makes 1.7 s)
 *
 * Not a hang: what most do (own work fills half of the step), checkpoints, evaluations
 * and compilations (while one lasts: for 15 minutes), workers between two steps, the
 * first steps of an attempt.
 *
 * What is seen of live slots is told to the sink, and stored: live slots are not, so
 * replay is given it.
 *
 * Owner:   the engine, its own part of a job.
 * Units:   seconds; microseconds since the epoch.
 * Errors:  none.
 * Limits:  LS_CLOSE_MISSING_MAX ranks are named.
 * Source:  design sections 7 and 11 (live slots). XLA's own watchdog of collectives
 *          speaks after minutes.
 */
#ifndef LS_COLLECTOR_HANG_H
#define LS_COLLECTOR_HANG_H

#include "collector/engine/engine_state.h"

/*
 * Looks whether the job stands still at now_us, and if so tells, opens or brings up to
 * date; at most every 10 s.
 */
void ls_hang_look(struct ls_engine *e, struct ls_job *j, int64_t now_us);

/* Takes an observation: of ls_hang_look, or a stored one. */
void ls_hang_take(struct ls_engine *e, struct ls_job *j,
	const struct ls_engine_hang *seen);

/* Was this closed step a hang? Then it says nothing else, and no other detector is to
 * see it. */
bool ls_hang_is_row(struct ls_job *j, const struct ls_live_row *row);

/* Opens the finding about such a row; it is in the live window by now. */
void ls_hang_judge_row(struct ls_engine *e, struct ls_job *j,
	const struct ls_live_row *row, int64_t now_us);

/* Ends what ls_hang_judge_row and ls_hang_look opened, when steps have been whole again
 * for a while. */
void ls_hang_relax(struct ls_engine *e, struct ls_job *j, uint64_t step,
	int64_t now_us);

#endif

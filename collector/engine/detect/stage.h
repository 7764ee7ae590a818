/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - is one stage of a pipeline slower than it was, compared with the others?
 *
 * Workers are compared within their role, so that nobody sees it when all of a role
 * have more to do. So each stage's own work (the median of some of its workers) is
 * compared with its own before, less what the other stages grew by: a clipped CUSUM as
 * that of a worker (detect.h). A finding also needs that the job's step time grew with
 * it, for a stage that has time to spare costs nothing, and that most of its workers
 * show it.
 *
 * Owner:   one job of the engine. Pure.
 * Units:   seconds; ratios to the step time inside.
 * Errors:  -ENOMEM.
 * Limits:  LS_STAGES_MAX stages, of more none is compared; LS_STAGE_WORKERS of each are
 *          looked at, LS_PEERS at least.
 * Source:  a fixed stage is late in all steps on all its workers when layers are parted
 *          unevenly: published traces of pipeline jobs; constants are those of
 *          detect.h.
 */
#ifndef LS_COLLECTOR_STAGE_H
#define LS_COLLECTOR_STAGE_H

#include "collector/engine/detect/detect.h"

#define LS_STAGES_MAX 256u
#define LS_STAGE_WORKERS 64u

struct ls_stage {
	uint32_t worker[LS_STAGE_WORKERS]; /* slots that are looked at */
	size_t workers;
	struct ls_detect_usual usual, usual_work; /* own work, and work done */
	double own_s, work; /* in the newest step; NaN = not known */
	uint64_t most_steps; /* of the episode: most of its workers were late */
	/* of the episode: work done beyond the base, as a ratio */
	double work_sum;
	struct ls_detect_channel channel;
};

struct ls_stages {
	struct ls_stage *stage;
	size_t count; /* 0: there is nothing to compare */
};

/* Forgets all; it can be used again. */
void ls_stages_fini(struct ls_stages *s);

/*
 * Workers by stage (ls_blame_sort): stages that are new are learned, the others keep
 * what is known of them (numbers stay). Of many workers, each so-many-th is looked at. Fewer than two stages, or more
 * than LS_STAGES_MAX: nothing is compared. -ENOMEM: likewise.
 */
int ls_stages_group(struct ls_stages *s, struct ls_detect *d, const uint32_t *sorted,
	const uint32_t *start, size_t count) LS_MUSTCHECK;

/* Takes one judged step, after ls_detect_step; levels in s->stage[].channel are then up
 * to date. */
void ls_stages_step(struct ls_stages *s, struct ls_detect *d, uint64_t step,
	int64_t t_us, const struct ls_cell *cells, size_t n);

/* Does the work done explain what the stage takes longer? False if it is not told. */
bool ls_stage_is_imbalance(const struct ls_stage *st);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_group - the part of the judge that decides whether what is found of a worker is
 * told of it alone, or of what it shares with others: its host, rack, input shard or
 * slice.
 *
 * Owner:   the engine's thread.
 * Units:   microseconds since the epoch.
 * Errors:  none.
 * Limits:  LS_WORKERS_MAX workers; LS_FINDING_HOSTS_MAX hosts are named in a finding.
 * Source:  group.h.
 */
#ifndef LS_COLLECTOR_JUDGE_GROUP_H
#define LS_COLLECTOR_JUDGE_GROUP_H

#include "collector/engine/engine_state.h"

/* Mean excess of a suspected worker; 0 of any other; NaN of one that did not report. */
double ls_judge_group_excess(const struct ls_job *j, size_t slot);

/*
 * Something is found of worker `slot`: decides of whom that is told. If of a group,
 * findings about its members are over: the group's takes their place.
 */
void ls_judge_group_choose(struct ls_engine *e, struct ls_job *j, size_t slot,
	uint64_t step, int64_t now_us);

/* Compares slices, racks and shards, too, after the workers, and names members of those that are slow (scales.h). */
void ls_judge_group_scales(struct ls_job *j);

/*
 * Is the slowest worker with its own finding now one of a late group? Returns its slot: report its group; SIZE_MAX: no.
 */
size_t ls_judge_regroup(struct ls_engine *e, struct ls_job *j, uint64_t step,
	int64_t now_us);

/* The subject of the finding about worker `slot`: itself, its host, or its group. Nothing else is filled in. */
struct ls_finding ls_judge_group_subject(const struct ls_engine *e,
	const struct ls_job *j, size_t slot);

/* Is worker `slot` in the slice, rack or shard that a finding is about? */
bool ls_judge_group_has(const struct ls_job *j, const struct ls_finding *f,
	size_t slot);

/* Findings about its members that were cleared for this one, about the group of worker `slot`, say so. */
void ls_judge_group_adopt(struct ls_engine *e, const struct ls_job *j, size_t slot,
	const struct ls_finding *group, int64_t now_us);

/* Fills in the hosts of a group's finding. */
void ls_judge_group_members(const struct ls_engine *e, const struct ls_job *j,
	size_t slot, struct ls_finding *f);

/* Fills in the hosts of the workers whose group is this one; of[] by slot, which may be index of the job's room. */
void ls_judge_hosts_of(const struct ls_engine *e, const struct ls_job *j,
	const uint32_t *of, uint32_t group, struct ls_finding *f);

#endif

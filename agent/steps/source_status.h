/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_status - steps of a job that sends no marks, as libtpu's status shows them
 * (tpu_progress.h).
 *
 *              seen for LS_STATUS_BEGIN_NS         marks, another job,
 *              without marks; who is known         status gone, no job
 *      WAITING ---------------------------> GOING ---------------------> WAITING
 *
 * While going, launches counted since the look before are the steps of one worker, laid
 * end to end from that look to this one. A record has a number and a duration, no
 * phases and no barriers: nobody can be blamed by it. Numbers are this host's own
 * count: those of two hosts mean the same step only as nearly as their counting began
 * at the same one. When it stops the worker gets its End; what begins later has another
 * ring id and goes on with the next number, as does the same worker after a restart of
 * the agent: steps launched meanwhile are not counted.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  -ENOMEM. A spool that refuses: those records are a gap later.
 * Limits:  LS_STEPS_PER_ITEM records a reading: of more the last ones, and a gap.
 * Source:  meaning of launches and confidence: tpu_progress.h.
 */
#ifndef LS_AGENT_SOURCE_STATUS_H
#define LS_AGENT_SOURCE_STATUS_H

#include "agent/collect/source.h"
#include "agent/steps/source_step.h"
#include "agent/spool/spool.h"
#include "agent/tpu/tpu_progress.h"

struct ls_source_status_options {
	const struct ls_tpu_progress *progress; /* borrowed, like all here */
	struct ls_spool *spool; /* NULL: nothing is taken over */
	/* a live ring here goes before; NULL: none */
	const struct ls_source_step *steps;
	bool has_log; /* so does a log: nothing is inferred */
};

struct ls_source_status_stats {
	uint64_t records, lost; /* taken over; missing, a gap each */
	uint64_t refused; /* records the spool did not take */
	uint64_t begun; /* workers, also those that went on after a restart */
};

/* Makes the source. -ENOMEM. */
int ls_source_status_new(const struct ls_source_status_options *options,
	struct ls_source *ret_source) LS_MUSTCHECK;

/* What is known of this host. job "" or rank -1: not known, and nothing is taken over.
 */
void ls_source_status_who(const struct ls_source *source, const char *job,
	const char *slice, int32_t rank, int32_t chips);

/*
 * Workers as they are reported, i = 0, 1; NULL beyond the last: the one that is going,
 * and those whose End is not acknowledged yet (of several the last).
 */
const struct ls_wire_worker *ls_source_status_worker(const struct ls_source *source,
	size_t i);

/* Counters; borrowed. */
const struct ls_source_status_stats *ls_source_status_get_stats(
	const struct ls_source *source);

#endif

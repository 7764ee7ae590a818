/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hooks - what the hooks of the client library counted in each worker:
 * compilations by function, collections of garbage, waits for checkpoints.
 *
 * Reads the events blocks of the rings (proto/ring/ring_events.h) at LS_CADENCE_SLOW,
 * and writes the group "job.hooks": series with labels job and rank, those of functions
 * with label function, too.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def.
 * Errors:  as in source.h.
 * Limits:  LS_RINGS_MAX workers of LS_RING_FUNCTIONS_MAX functions; what finds no room
 *          in the table is counted there. Names are cut to fit the labels: functions to
 *          63 bytes, jobs to 47.
 */
#ifndef LS_AGENT_SOURCE_HOOKS_H
#define LS_AGENT_SOURCE_HOOKS_H

#include "agent/collect/series.h"
#include "agent/collect/source.h"
#include "agent/steps/source_step.h"

/* Makes the source; rings and table are borrowed. 0, -ENOMEM, -LS_ELIMIT. */
int ls_source_hooks_new(struct ls_source_step *rings, struct ls_series_table *table,
	struct ls_source *ret_source) LS_MUSTCHECK;

#endif

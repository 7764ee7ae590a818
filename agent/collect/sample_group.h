/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_group - a sample of metrics as one group of the series table.
 *
 * A metric joins the group when it is measured for the first time, and stays.
 *
 * Owner:   the agent loop thread; embedded.
 * Units:   ns, CLOCK_MONOTONIC.
 * Errors:  none: what finds no room in the table is counted there.
 * Limits:  those of series.h.
 */
#ifndef LS_AGENT_SAMPLE_GROUP_H
#define LS_AGENT_SAMPLE_GROUP_H

#include "agent/collect/series.h"
#include "agent/collect/source.h"

struct ls_sample_group {
	struct ls_series_table *table;
	int group; /* negative: the table is full, or closed */
	char labels[LS_SERIES_LABELS_MAX_BYTES];
	int handle[LS_METRIC_COUNT]; /* negative: never measured, or no room */
};

/* Begins a group of this name; labels (as of ls_series_add) belong to all of its
 * series. */
void ls_sample_group_init(struct ls_sample_group *g, struct ls_series_table *table,
	const char *name, const char *labels);

/* Removes the group from the table. */
void ls_sample_group_fini(struct ls_sample_group *g);

/* One reading: the metrics of the sample, all or those that are wanted[metric] == want.
 */
void ls_sample_group_read(struct ls_sample_group *g, const struct ls_sample *sample,
	const bool *wanted, bool want, uint64_t now_mono_ns);

#endif

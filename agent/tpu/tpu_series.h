/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tpu_series - what libtpu says, as series of this host.
 *
 * A cadence is a group of the table: tpu.status, tpu.gauges, tpu.histograms. A round is
 * one asking of one port for all metrics of a cadence; at its end what was not told in
 * it is "not measured", and series that were silent for LS_TPU_FORGET_NS leave. Metrics
 * that are not known here become chip.libtpu.NAME.
 *
 * A distribution becomes counters of its sum and number, one of each bucket that ever
 * held something, and quantiles of what came since the reading before. A series belongs
 * to the port that told it first, as long as that one goes on telling it.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def; unknown metrics as libtpu sends them.
 * Errors:  none; what finds no room is counted.
 * Limits:  those of series.h; LS_TPU_HISTOGRAMS_MAX, LS_TPU_BUCKET_SERIES_MAX,
 *          LS_TPU_UNKNOWN_SERIES_MAX.
 * Source:  tpu_metrics.def.
 */
#ifndef LS_AGENT_TPU_SERIES_H
#define LS_AGENT_TPU_SERIES_H

#include "agent/collect/series.h"
#include "agent/tpu/tpu_decode.h"
#include "agent/tpu/tpu_progress.h"

enum ls_tpu_cadence {
	LS_TPU_STATUS, /* every LS_TPU_STATUS_NS */
	LS_TPU_GAUGES, /* every LS_TPU_GAUGES_TICKS of these */
	LS_TPU_HISTOGRAMS, /* every LS_TPU_HISTOGRAMS_TICKS */
	LS_TPU_CADENCES
};

/* A metric of tpu_metrics.def. */
struct ls_tpu_metric {
	const char *name;
	enum ls_tpu_shape shape;
	enum ls_tpu_cadence cadence;
	double factor;
	enum ls_metric metric;
};

struct ls_tpu_series_stats {
	uint64_t points; /* values stored */
	uint64_t refused; /* values that found no room */
	uint64_t odd; /* values of another shape than the metric's */
	uint64_t resets; /* distributions that began anew */
};

struct ls_tpu_series;

/* The row of a metric by libtpu's name; NULL: not known here. */
const struct ls_tpu_metric *ls_tpu_metric_find(const char *name);

/* New, with its groups in the table (borrowed). 0, -LS_ELIMIT, -ENOMEM. */
int ls_tpu_series_new(struct ls_series_table *table,
	struct ls_tpu_series **ret_series) LS_MUSTCHECK;
/* Frees it; its groups stay in the table. Accepts NULL. */
void ls_tpu_series_free(struct ls_tpu_series *s);

/* A value of the round under way; metric is NULL when its name is not known. */
void ls_tpu_series_point(struct ls_tpu_series *s, uint16_t port, const char *name,
	const struct ls_tpu_metric *metric, const struct ls_tpu_point *p);

/* The cores seen since then, and steps as they are now; of LS_TPU_STATUS and port 0. */
void ls_tpu_series_progress(struct ls_tpu_series *s, const struct ls_tpu_progress *p,
	uint64_t since_mono_ns, uint64_t now_mono_ns);

/* A port's round is over: what it did not tell in it is not measured. Port 0: cores and
 * steps. */
void ls_tpu_series_end(struct ls_tpu_series *s, uint16_t port,
	enum ls_tpu_cadence cadence, uint64_t now_mono_ns);

/* The rounds of all ports are over: the group is read. */
void ls_tpu_series_read(struct ls_tpu_series *s, enum ls_tpu_cadence cadence,
	uint64_t now_mono_ns);

/* Counters; borrowed. */
const struct ls_tpu_series_stats *ls_tpu_series_get_stats(
	const struct ls_tpu_series *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source - the one interface of a source of counters, and the sample it reads into.
 *
 * A source is probed once, and is read whenever the sampler says so. What it cannot measure it leaves out of the sample: absent means
 * "not measured", never 0.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   base units of proto/metrics.def (s, bytes, 1); t_mono_ns is CLOCK_MONOTONIC.
 * Errors:  probe: -LS_EABSENT when nothing of the source exists here.
 * Limits:  LS_METRIC_COUNT values a sample.
 */
#ifndef LS_AGENT_SOURCE_H
#define LS_AGENT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "agent/collect/doctor.h"
#include "proto/base/err.h"
#include "proto/metrics.h"

/* One reading: a value per metric, and whether it was measured. */
struct ls_sample {
	uint64_t t_mono_ns;
	bool present[LS_METRIC_COUNT];
	double value[LS_METRIC_COUNT];
};

/* How often a part of a source is wanted; a read is given a set of these. */
enum ls_cadence {
	LS_CADENCE_FAST = 1, /* every sample interval */
	/* every LS_SLOW_FACTOR sample intervals: dear or slow to change */
	LS_CADENCE_SLOW = 2
};

struct ls_source {
	const char *name;
	void *self;
	/* Looks what is here. 0, or -LS_EABSENT. NULL: what is here may come and go. */
	int (*probe)(void *self);
	/* Reads what is due (enum ls_cadence, or'ed) into the sample; the rest of it
	 * stays. */
	void (*read)(void *self, unsigned due, uint64_t now_mono_ns,
		struct ls_sample *into);
	/* Says what is measured here and what is not, why, and what to do. */
	void (*tell)(const void *self, struct ls_doctor *d);
	void (*free)(void *self);
};

/* Stores a measured value. */
static inline void
ls_sample_set(struct ls_sample *s, enum ls_metric m, double value)
{
	s->present[m] = true;
	s->value[m] = value;
}

/* Makes a value "not measured" again. */
static inline void
ls_sample_unset(struct ls_sample *s, enum ls_metric m)
{
	s->present[m] = false;
}

#endif

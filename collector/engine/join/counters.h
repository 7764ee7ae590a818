/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters - recent values of the hot counters of one host or worker, and their rates.
 *
 * Owner:   one host or worker of the engine. Pure.
 * Units:   microseconds for times; values in the metric's unit, rates per second.
 * Errors:  -LS_ESTALE not newer than the last sample, -ENOMEM.
 * Limits:  LS_COUNTER_SAMPLES_KEPT samples, fewer if those last LS_COUNTER_KEPT_US; the
 *          oldest is dropped.
 */
#ifndef LS_COLLECTOR_COUNTERS_H
#define LS_COLLECTOR_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* Ring of samples: a time and a value of each metric that was ever measured. */
struct ls_counters {
	int64_t *t_us;
	double *value; /* capacity rows of so many columns as mask has bits; NaN: not
			* measured */
	uint16_t mask; /* bit i: place i among the hot metrics has a column */
	size_t capacity, count, head; /* head: where the next goes */
};

/* Drops all samples. */
void ls_counters_fini(struct ls_counters *c);

/* Adds a sample; metrics that are not hot are ignored. */
int ls_counters_put(struct ls_counters *c, int64_t t_us, size_t count,
	const uint16_t *metric, const double *value) LS_MUSTCHECK;

/*
 * Mean rate of a counter between the last sample at or before from_us (else the first
 * after it) and the last at or before to_us. NaN if that takes less than min_us, it was
 * not measured, or the counter was reset.
 */
double ls_counters_rate(const struct ls_counters *c, unsigned metric, int64_t from_us,
	int64_t to_us, int64_t min_us);

/* Value in the newest sample at or before to_us; NaN: none in it. */
double ls_counters_last(const struct ls_counters *c, unsigned metric, int64_t to_us);

#endif

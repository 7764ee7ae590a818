/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram - cumulative distributions: what was added between two readings, and its
 * quantiles.
 *
 * A source counts into buckets since its start. The difference of two readings is what
 * happened between them; quantiles since the start would hide what is new. A new start,
 * other bounds, or any count that fell means that counting began anew: then all that is
 * there is new.
 *
 * Owner:   pure functions on the caller's structs.
 * Units:   those of the source; times in ns, of the source's own clock, only compared
 *          for equality.
 * Errors:  -LS_ERANGE a histogram that cannot be; -LS_EABSENT nothing was added.
 * Limits:  LS_HISTOGRAM_BUCKETS_MAX.
 * Source:  bounds and the rule of counts: tpu.monitoring.runtime Distribution (number
 *          of finite buckets + 2); resets as of counters in OpenMetrics.
 */
#ifndef LS_AGENT_HISTOGRAM_H
#define LS_AGENT_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

/* Bucket i holds values from bound[i - 1] up to below bound[i]; the first and the last
 * are open. */
struct ls_histogram {
	/* at least 1; one more than bounds */
	size_t buckets;
	double bound[LS_HISTOGRAM_BUCKETS_MAX - 1]; /* grow strictly */
	int64_t count[LS_HISTOGRAM_BUCKETS_MAX];
	int64_t total; /* sum of count */
	/* of all values; 0 when there are none */
	double mean;
	bool has_range;
	double min, max; /* of all values, if has_range */
	/* identity of the start; 0: not told */
	uint64_t start_ns;
};

/* What one reading is remembered by. Zeroed: none yet. */
struct ls_histogram_memory {
	bool started;
	size_t buckets;
	uint64_t bounds_hash, start_ns;
	int64_t count[LS_HISTOGRAM_BUCKETS_MAX];
	int64_t total;
	double sum;
	uint64_t resets; /* so far */
};

/* What was added since the reading before. */
struct ls_histogram_delta {
	int64_t count[LS_HISTOGRAM_BUCKETS_MAX];
	int64_t total;
	double sum;
	bool reset; /* counting began anew in between */
};

/* 0, or -LS_ERANGE: no buckets or too many, bounds that do not grow or are not finite, a negative
   count, a total that is not their sum, a mean, min or max that is not finite. */
int ls_histogram_check(const struct ls_histogram *h) LS_MUSTCHECK;

/* Makes bounds first * growth^i (exponential); -LS_ERANGE if these cannot be bounds. */
int ls_histogram_exponential(struct ls_histogram *h, int64_t finite_buckets,
	double growth, double scale) LS_MUSTCHECK;
/* Makes bounds offset + width * i (linear); likewise. */
int ls_histogram_linear(struct ls_histogram *h, int64_t finite_buckets, double width,
	double offset) LS_MUSTCHECK;

/*
 * Remembers a checked histogram and gives what was added. -LS_EABSENT: it is the first
 * one, or nothing was added (it is remembered all the same).
 */
int ls_histogram_step(struct ls_histogram_memory *m, const struct ls_histogram *h,
	struct ls_histogram_delta *ret_delta) LS_MUSTCHECK;

/*
 * The quantile q (0 to 1) of a delta that is not empty: linear inside its bucket; the
 * open ones end at min and max where these are known, else at the bound they have.
 */
double ls_histogram_quantile(const struct ls_histogram *h,
	const struct ls_histogram_delta *d, double q);

#endif

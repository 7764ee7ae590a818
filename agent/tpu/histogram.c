/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/tpu/histogram.h"

#include <math.h>
#include <string.h>
#include "proto/base/hash.h"

#define HISTOGRAM_TOTAL_MAX (INT64_MAX / 2) /* leaves room for sums */

static int
histogram_check_bounds(const struct ls_histogram *h)
{
	for (size_t i = 0; i + 1 < h->buckets; i++) {
		if (!isfinite(h->bound[i]) ||
			(i > 0 && !(h->bound[i] > h->bound[i - 1])))
			return -LS_ERANGE;
	}
	return 0;
}

int
ls_histogram_check(const struct ls_histogram *h)
{
	int64_t total = 0;

	if (h->buckets < 1 || h->buckets > LS_HISTOGRAM_BUCKETS_MAX ||
		histogram_check_bounds(h) != 0)
		return -LS_ERANGE;
	for (size_t i = 0; i < h->buckets; i++) {
		if (h->count[i] < 0 || h->count[i] > HISTOGRAM_TOTAL_MAX - total)
			return -LS_ERANGE;
		total += h->count[i];
	}
	if (total != h->total || !isfinite(h->mean))
		return -LS_ERANGE;
	if (h->has_range && (!isfinite(h->min) || !isfinite(h->max) || h->min > h->max))
		return -LS_ERANGE;
	return 0;
}

/* finite buckets have one bound more than there are of them. */
static int
histogram_size(struct ls_histogram *h, int64_t finite_buckets)
{
	if (finite_buckets < 0 ||
		finite_buckets > (int64_t)LS_HISTOGRAM_BUCKETS_MAX - 2)
		return -LS_ERANGE;
	h->buckets = (size_t)finite_buckets + 2;
	return 0;
}

int
ls_histogram_exponential(struct ls_histogram *h, int64_t finite_buckets, double growth,
	double scale)
{
	if (histogram_size(h, finite_buckets) != 0)
		return -LS_ERANGE;
	for (size_t i = 0; i + 1 < h->buckets; i++)
		h->bound[i] = scale * pow(growth, (double)i);
	return histogram_check_bounds(h);
}

int
ls_histogram_linear(struct ls_histogram *h, int64_t finite_buckets, double width,
	double offset)
{
	if (histogram_size(h, finite_buckets) != 0)
		return -LS_ERANGE;
	for (size_t i = 0; i + 1 < h->buckets; i++)
		h->bound[i] = offset + width * (double)i;
	return histogram_check_bounds(h);
}

/* Over the bits of all bounds. */
static uint64_t
histogram_hash(const struct ls_histogram *h)
{
	return ls_hash(LS_HASH_START, h->bound, (h->buckets - 1) * sizeof(h->bound[0]));
}

static bool
histogram_fell(const struct ls_histogram_memory *m, const struct ls_histogram *h)
{
	for (size_t i = 0; i < h->buckets; i++) {
		if (h->count[i] < m->count[i])
			return true;
	}
	return false;
}

int
ls_histogram_step(struct ls_histogram_memory *m, const struct ls_histogram *h,
	struct ls_histogram_delta *ret_delta)
{
	uint64_t hash = histogram_hash(h);
	double sum = h->mean * (double)h->total;
	bool first = !m->started;
	bool reset = !first &&
		(m->buckets != h->buckets || m->bounds_hash != hash ||
			m->start_ns != h->start_ns || histogram_fell(m, h));
	struct ls_histogram_delta d = { .reset = reset };

	if (reset || first)
		memset(m->count, 0, sizeof(m->count));
	for (size_t i = 0; i < h->buckets; i++)
		d.count[i] = h->count[i] - m->count[i];
	d.total = h->total - (reset || first ? 0 : m->total);
	d.sum = sum - (reset || first ? 0 : m->sum);
	m->started = true;
	m->buckets = h->buckets;
	m->bounds_hash = hash;
	m->start_ns = h->start_ns;
	memcpy(m->count, h->count, sizeof(m->count[0]) * h->buckets);
	m->total = h->total;
	m->sum = sum;
	m->resets += reset;
	if (first || d.total == 0)
		return -LS_EABSENT;
	*ret_delta = d;
	return 0;
}

/* Where bucket i begins and ends; the open ones as said in the header. */
static void
histogram_edges(const struct ls_histogram *h, size_t i, double *ret_low,
	double *ret_high)
{
	double low, high;

	if (h->buckets == 1) { /* one bucket for all */
		*ret_low = h->has_range ? h->min : h->mean;
		*ret_high = h->has_range ? h->max : h->mean;
		return;
	}
	low = i > 0 ? h->bound[i - 1] : fmin(0, h->bound[0]);
	high = i + 1 < h->buckets ? h->bound[i] : h->bound[i - 1];
	if (h->has_range) {
		if (i == 0 || h->min > low)
			low = h->min;
		if (i + 1 == h->buckets || h->max < high)
			high = h->max;
	}
	if (low > high) /* a range that contradicts its buckets */
		low = high;
	*ret_low = low;
	*ret_high = high;
}

double
ls_histogram_quantile(const struct ls_histogram *h, const struct ls_histogram_delta *d,
	double q)
{
	double rank = q * (double)d->total, below = 0, low, high;
	size_t i = 0;

	while (i + 1 < h->buckets &&
		(d->count[i] == 0 || below + (double)d->count[i] < rank)) {
		below += (double)d->count[i];
		i++;
	}
	/* rounding passed the last one that holds any */
	while (d->count[i] == 0 && i > 0)
		below -= (double)d->count[--i];
	histogram_edges(h, i, &low, &high);
	if (d->count[i] == 0)
		return low;
	return low +
		(high - low) * fmin(1, fmax(0, (rank - below) / (double)d->count[i]));
}

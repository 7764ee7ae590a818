/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/counters.h"
#include "proto/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
ls_counters_fini(struct ls_counters *c)
{
	free(c->samples);
	memset(c, 0, sizeof(*c));
}

/* Sample i, 0 = oldest. */
static const struct ls_counter_sample *
counters_at(const struct ls_counters *c, size_t i)
{
	return &c->samples[(c->head + c->capacity - c->count + i) % c->capacity];
}

/* Grows by doubling up to the maximum, so that a short run holds little. */
static int
counters_grow(struct ls_counters *c)
{
	size_t capacity = c->capacity == 0 ? 16 : c->capacity * 2;
	struct ls_counter_sample *samples;

	if (c->count < c->capacity || c->capacity == LS_COUNTER_SAMPLES_KEPT)
		return 0;
	if (capacity > LS_COUNTER_SAMPLES_KEPT)
		capacity = LS_COUNTER_SAMPLES_KEPT;
	samples = malloc(capacity * sizeof(*samples));
	if (samples == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++)
		samples[i] = *counters_at(c, i);
	free(c->samples);
	c->samples = samples;
	c->capacity = capacity;
	c->head = c->count;
	return 0;
}

int
ls_counters_put(struct ls_counters *c, int64_t t_us, size_t count,
	const uint16_t *metric, const double *value)
{
	struct ls_counter_sample s = { .t_us = t_us };
	int rc;

	if (c->count > 0 && t_us <= counters_at(c, c->count - 1)->t_us)
		return -LS_ESTALE;
	for (size_t i = 0; i < count; i++) {
		int hot = ls_metric_hot_place(metric[i]);

		if (hot < 0)
			continue;
		s.mask |= (uint16_t)(1u << hot);
		s.value[hot] = value[i];
	}
	rc = counters_grow(c);
	if (rc != 0)
		return rc;
	c->samples[c->head] = s;
	c->head = (c->head + 1) % c->capacity;
	if (c->count < c->capacity)
		c->count++;
	return 0;
}

/* Number of samples at or before t_us. */
static size_t
counters_until(const struct ls_counters *c, int64_t t_us)
{
	size_t lo = 0, hi = c->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (counters_at(c, mid)->t_us <= t_us)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool
ls_counters_rate(const struct ls_counters *c, unsigned metric, int64_t from_us,
	int64_t to_us, int64_t min_us, double *ret_rate)
{
	int hot = ls_metric_hot_place(metric);
	size_t first = counters_until(c, from_us), last = counters_until(c, to_us);
	const struct ls_counter_sample *a, *b;

	if (hot < 0)
		return false;
	first = first == 0 ? 0 : first - 1;
	while (first < last && (counters_at(c, first)->mask & 1u << hot) == 0)
		first++; /* not measured in that sample: the next one that has it */
	while (last > first && (counters_at(c, last - 1)->mask & 1u << hot) == 0)
		last--;
	if (last <= first)
		return false;
	a = counters_at(c, first);
	b = counters_at(c, last - 1);
	if (b->t_us - a->t_us < min_us || b->t_us <= a->t_us ||
		b->value[hot] < a->value[hot])
		return false;
	*ret_rate =
		(b->value[hot] - a->value[hot]) / ((double)(b->t_us - a->t_us) * 1e-6);
	return true;
}

bool
ls_counters_last(const struct ls_counters *c, unsigned metric, int64_t to_us,
	double *ret_value)
{
	int hot = ls_metric_hot_place(metric);
	size_t last = counters_until(c, to_us);

	if (hot < 0 || last == 0 || (counters_at(c, last - 1)->mask & 1u << hot) == 0)
		return false;
	*ret_value = counters_at(c, last - 1)->value[hot];
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/join/counters.h"
#include "proto/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void
ls_counters_fini(struct ls_counters *c)
{
	free(c->t_us);
	free(c->value);
	*c = (struct ls_counters){ 0 };
}

/* Row of sample i, 0 = oldest. */
static size_t
counters_at(const struct ls_counters *c, size_t i)
{
	return (c->head + c->capacity - c->count + i) % c->capacity;
}

/* Columns of a mask. */
static size_t
counters_columns(uint16_t mask)
{
	return (size_t)__builtin_popcount(mask);
}

/* Its value at a place among the hot metrics; NaN = not measured. */
static double
counters_value(const struct ls_counters *c, size_t i, int hot)
{
	uint16_t bit = (uint16_t)(1u << hot);
	size_t row = counters_at(c, i) * counters_columns(c->mask);

	return (c->mask & bit) != 0
		? c->value[row + counters_columns(c->mask & (uint16_t)(bit - 1))]
		: (double)NAN;
}

/* Room for a sample of t_us with a column for each metric of the mask. Grows by doubling
 * up to the maximum, as long as the oldest sample is young: where beats are long, few
 * samples are kept. */
static int
counters_grow(struct ls_counters *c, int64_t t_us, uint16_t mask)
{
	struct ls_counters grown = { .mask = mask | c->mask, .capacity = c->capacity };
	size_t n = 0;

	if (c->count == c->capacity && c->capacity < LS_COUNTER_SAMPLES_KEPT &&
		(c->count == 0 || t_us - c->t_us[c->head] < LS_COUNTER_KEPT_US))
		grown.capacity = c->capacity == 0 ? 16 : c->capacity * 2;
	if (grown.capacity == c->capacity && grown.mask == c->mask)
		return 0;
	grown.t_us = malloc(grown.capacity * sizeof(*grown.t_us));
	grown.value = malloc(grown.capacity * counters_columns(grown.mask) *
		sizeof(*grown.value));
	if (grown.t_us == NULL || grown.value == NULL) {
		ls_counters_fini(&grown);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->count; i++) {
		grown.t_us[i] = c->t_us[counters_at(c, i)];
		for (int hot = 0; hot < LS_HOT_MAX; hot++)
			if ((grown.mask & 1u << hot) != 0)
				grown.value[n++] = counters_value(c, i, hot);
	}
	grown.count = c->count;
	grown.head = c->count % grown.capacity;
	ls_counters_fini(c);
	*c = grown;
	return 0;
}

int
ls_counters_put(struct ls_counters *c, int64_t t_us, size_t count,
	const uint16_t *metric, const double *value)
{
	double of[LS_HOT_MAX], *to;
	uint16_t mask = 0;

	if (c->count > 0 && t_us <= c->t_us[counters_at(c, c->count - 1)])
		return -LS_ESTALE;
	for (size_t i = 0; i < count; i++) {
		int hot = ls_metric_hot_place(metric[i]);

		if (hot < 0)
			continue;
		mask |= (uint16_t)(1u << hot);
		of[hot] = value[i];
	}
	if ((mask | c->mask) == 0)
		return 0;
	if (counters_grow(c, t_us, mask) != 0)
		return -ENOMEM;
	c->t_us[c->head] = t_us;
	to = &c->value[c->head * counters_columns(c->mask)];
	for (int hot = 0; hot < LS_HOT_MAX; hot++)
		if ((c->mask & 1u << hot) != 0)
			*to++ = (mask & 1u << hot) != 0 ? of[hot] : (double)NAN;
	c->head = (c->head + 1) % c->capacity;
	if (c->count < c->capacity)
		c->count++;
	return 0;
}

/* Number of samples at or before t_us. */
static size_t
counters_until(const struct ls_counters *c, int64_t t_us)
{
	size_t n = c->count;

	while (n > 0 && c->t_us[counters_at(c, n - 1)] > t_us)
		n--; /* it is asked of the newest, mostly */
	return n;
}

double
ls_counters_rate(const struct ls_counters *c, unsigned metric, int64_t from_us,
	int64_t to_us, int64_t min_us)
{
	int hot = ls_metric_hot_place(metric);
	size_t first = counters_until(c, from_us), last = counters_until(c, to_us);
	int64_t span_us;
	double grown;

	if (hot < 0)
		return NAN;
	first = first == 0 ? 0 : first - 1;
	while (first < last && isnan(counters_value(c, first, hot)))
		first++; /* not measured in that sample: the next one that has it */
	while (last > first && isnan(counters_value(c, last - 1, hot)))
		last--;
	if (last <= first)
		return NAN;
	span_us = c->t_us[counters_at(c, last - 1)] - c->t_us[counters_at(c, first)];
	grown = counters_value(c, last - 1, hot) - counters_value(c, first, hot);
	return span_us < min_us || span_us <= 0 || grown < 0
		? NAN
		: grown / ((double)span_us * 1e-6);
}

double
ls_counters_last(const struct ls_counters *c, unsigned metric, int64_t to_us)
{
	int hot = ls_metric_hot_place(metric);
	size_t last = counters_until(c, to_us);

	return hot < 0 || last == 0 ? NAN : counters_value(c, last - 1, hot);
}

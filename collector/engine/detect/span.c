/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "collector/engine/detect/span.h"
#include "collector/engine/residual/stats.h"

#include <math.h>

/* Mean size of the steps that are known, none for more than so many medians: rare ones
 * count, one alone does not. 0 = none. */
static double
span_size(const double *excess, size_t n, double *scratch)
{
	size_t known = 0;
	double median, sum = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(excess[i]))
			scratch[known++] = fabs(excess[i]);
	if (known == 0)
		return 0;
	median = ls_stats_median(scratch, known);
	for (size_t i = 0; i < known; i++)
		sum += fmin(scratch[i], LS_SPAN_RARE * median);
	return sum / (double)known;
}

struct ls_span
ls_span_find(const double *excess, size_t n, double *scratch)
{
	struct ls_span span = { .end = n };
	double size = span_size(excess, n, scratch), mean, sum = 0, top = 0, low = 0,
	       deepest = 0;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		scratch[i] = isnan(excess[i])
			? NAN
			: ls_stats_clip(excess[i], LS_SPAN_CLIP * size);
	mean = ls_stats_mean(scratch, n);
	if (!(mean > 0))
		return span;
	for (size_t i = 0; i < n; i++) {
		sum += isnan(scratch[i]) ? 0 : scratch[i] - LS_HALF * mean;
		if (sum >= top) { /* so the last fall was none of the end */
			deepest = fmax(deepest, top - low);
			top = low = sum;
			at = i + 1;
		}
		low = fmin(low, sum);
	}
	if (at > 0 && top - sum > (1 + LS_HALF) * deepest + LS_SPAN_CLIP * size) {
		span.end = at;
		span.ended = true;
	}
	mean = ls_stats_mean(scratch, span.end);
	sum = low = 0;
	for (size_t i = 0; i < span.end / 2 && i < LS_SPAN_EARLY_MAX; i++) {
		sum += isnan(scratch[i]) ? 0 : scratch[i] - LS_QUARTER * mean;
		if (sum < low) {
			low = sum;
			span.first = i + 1;
		}
	}
	return span;
}

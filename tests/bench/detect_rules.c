/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/detect_rules.h"

#include <math.h>
#include <stdlib.h>

static int
rules_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Copies what is known, sorted; returns how many. */
static size_t
rules_sort(const double *v, size_t n, double *ret_sorted)
{
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		if (!isnan(v[i]))
			ret_sorted[k++] = v[i];
	if (k > 1)
		qsort(ret_sorted, k, sizeof(*ret_sorted), rules_compare);
	return k;
}

static double
rules_median(const double *sorted, size_t n)
{
	return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

size_t
rule_xprof(const double *wait_ratio, size_t n, double *scratch, bool *ret_flags)
{
	size_t i, k = rules_sort(wait_ratio, n, scratch), count = 0;
	double median, mad;

	for (i = 0; i < n; i++)
		ret_flags[i] = false;
	if (k < RULE_XPROF_HOSTS_MIN)
		return 0;
	median = rules_median(scratch, k);
	for (i = 0; i < k; i++)
		scratch[i] = fabs(scratch[i] - median);
	qsort(scratch, k, sizeof(*scratch), rules_compare);
	mad = fmax(rules_median(scratch, k), RULE_XPROF_MAD_MIN);
	for (i = 0; i < n; i++) {
		ret_flags[i] =
			fabs(0.6745 * (wait_ratio[i] - median) / mad) > RULE_XPROF_Z;
		count += ret_flags[i];
	}
	return count;
}

size_t
rule_nvrx(const double *own_median_s, size_t n, bool *ret_flags)
{
	double least = INFINITY;
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		if (own_median_s[i] < least) /* false for NaN */
			least = own_median_s[i];
	for (i = 0; i < n; i++) {
		ret_flags[i] = own_median_s[i] > 0 &&
			least / own_median_s[i] < RULE_NVRX_SCORE;
		count += ret_flags[i];
	}
	return count;
}

enum rule_severity
rule_traceml(const double *wait_s, const double *step_s, size_t n, size_t steps,
	double *scratch, size_t *ret_worker)
{
	size_t i, k, least = n, victim = n;
	double upper, score;

	for (i = 0; i < n; i++)
		if (!isnan(wait_s[i]) && (least == n || wait_s[i] < wait_s[least]))
			least = i;
	k = rules_sort(wait_s, n, scratch);
	if (k < 2)
		return RULE_QUIET;
	upper = scratch[k / 2];
	for (i = 0; i < n && victim == n; i++)
		if (wait_s[i] == upper && i != least)
			victim = i;
	if (victim == n || !(step_s[victim] > 0))
		return RULE_QUIET;
	score = (upper - wait_s[least]) / step_s[victim];
	if (score < RULE_TRACEML_WARN)
		return RULE_QUIET;
	*ret_worker = least;
	return score >= RULE_TRACEML_CRITICAL && steps >= RULE_TRACEML_STEPS_MIN
		? RULE_CRITICAL
		: RULE_WARN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/metrics.h"

#include "proto/base/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const struct ls_metric_info metrics_table[LS_METRIC_COUNT] = {
#define LS_METRIC(id, name, kind, scope, hot, unit, help, source)                \
	{ name, LS_METRIC_KIND_##kind, LS_METRIC_SCOPE_##scope, hot, unit, help, \
		source },
#include "proto/metrics.def"
#undef LS_METRIC
};

/* Places of the hot metrics, as constants: a collector asks 160,000 times a second. */
#define METRICS_HOT_0(id)
#define METRICS_HOT_1(id) LS_METRIC_##id,
static const uint16_t metrics_hot[] = {
#define LS_METRIC(id, name, kind, scope, hot, unit, help, source) METRICS_HOT_##hot(id)
#include "proto/metrics.def"
#undef LS_METRIC
};
_Static_assert(sizeof(metrics_hot) / sizeof(metrics_hot[0]) <= LS_HOT_MAX,
	"too many hot metrics");

enum metrics_place {
#define LS_METRIC(id, name, kind, scope, hot, unit, help, source) \
	METRICS_PLACE_##id, METRICS_LAST_##id = METRICS_PLACE_##id - !(hot),
#include "proto/metrics.def"
#undef LS_METRIC
};

static const int8_t metrics_place[LS_METRIC_COUNT] = {
#define LS_METRIC(id, name, kind, scope, hot, unit, help, source) \
	(hot) ? METRICS_PLACE_##id : -1,
#include "proto/metrics.def"
#undef LS_METRIC
};

unsigned
ls_metric_hot(unsigned place)
{
	return place < sizeof(metrics_hot) / sizeof(metrics_hot[0]) ? metrics_hot[place]
								    : LS_METRIC_COUNT;
}

int
ls_metric_hot_place(unsigned metric)
{
	return metric < LS_METRIC_COUNT ? metrics_place[metric] : -1;
}

const struct ls_metric_info *
ls_metric_info(unsigned metric)
{
	return metric < LS_METRIC_COUNT ? &metrics_table[metric] : NULL;
}

const char *
ls_metric_scope_name(enum ls_metric_scope scope)
{
	static const char *const names[] = { [LS_METRIC_SCOPE_HOST] = "host",
		[LS_METRIC_SCOPE_JOB] = "job",
		[LS_METRIC_SCOPE_CHIP] = "chip",
		[LS_METRIC_SCOPE_LINK] = "link" };

	return names[scope];
}

int
ls_metric_by_name(const char *name)
{
	for (int i = 0; i < LS_METRIC_COUNT; i++)
		if (strcmp(metrics_table[i].name, name) == 0)
			return i;
	return -LS_EUNKNOWN;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/metrics.h"

#include "proto/base/err.h"

#include <stddef.h>
#include <string.h>

static const struct ls_metric_info metrics_table[LS_METRIC_COUNT] = {
#define LS_METRIC(id, name, kind, scope, hot, unit, help, source) \
	{name, LS_METRIC_KIND_##kind, LS_METRIC_SCOPE_##scope, hot, unit, help, source},
#include "proto/metrics.def"
#undef LS_METRIC
};

const struct ls_metric_info *
ls_metric_info(unsigned metric)
{
	return metric < LS_METRIC_COUNT ? &metrics_table[metric] : NULL;
}

const char *
ls_metric_scope_name(enum ls_metric_scope scope)
{
	static const char *const names[] = { [LS_METRIC_SCOPE_HOST] = "host",
		[LS_METRIC_SCOPE_JOB] = "job", [LS_METRIC_SCOPE_CHIP] = "chip",
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

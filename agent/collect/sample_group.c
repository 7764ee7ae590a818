/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/collect/sample_group.h"

#include "proto/base/text.h"

void
ls_sample_group_init(struct ls_sample_group *g, struct ls_series_table *table,
	const char *name, const char *labels)
{
	g->table = table;
	g->group = ls_series_group(table, name);
	g->labels[0] = '\0';
	/* longer ones are none */
	ls_ignore(ls_text_copy(g->labels, sizeof(g->labels), labels));
	for (size_t m = 0; m < LS_METRIC_COUNT; m++)
		g->handle[m] = -1;
}

void
ls_sample_group_fini(struct ls_sample_group *g)
{
	if (g->group >= 0)
		ls_series_group_remove(g->table, (size_t)g->group);
	g->group = -1;
}

void
ls_sample_group_read(struct ls_sample_group *g, const struct ls_sample *sample,
	const bool *wanted, bool want, uint64_t now_mono_ns)
{
	if (g->group < 0)
		return;
	for (size_t m = 0; m < LS_METRIC_COUNT; m++) {
		if (wanted != NULL && wanted[m] != want)
			continue;
		if (!sample->present[m]) {
			ls_series_unset(g->table, g->handle[m]);
			continue;
		}
		if (g->handle[m] < 0)
			g->handle[m] = ls_series_add_metric(g->table, (size_t)g->group,
				(enum ls_metric)m, g->labels);
		ls_series_set(g->table, g->handle[m], sample->value[m]);
	}
	ls_series_read(g->table, (size_t)g->group, now_mono_ns);
}

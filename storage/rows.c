/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/rows.h"

#include <stdlib.h>
#include <string.h>

int64_t
ls_store_map_ns(const struct ls_store_map *map, int64_t t_mono_ns)
{
	double drift = (double)(t_mono_ns - map->ref_mono_ns) * (double)map->drift_ppb / 1e9;

	return t_mono_ns + map->offset_ns + (int64_t)drift;
}

struct ls_write *
ls_write_new(enum ls_write_kind kind, int64_t t_us)
{
	struct ls_write *m = calloc(1, sizeof(*m));

	if (m != NULL) {
		m->kind = kind;
		m->t_us = t_us;
	}
	return m;
}

struct ls_write *
ls_write_new_report(size_t items, size_t counters, size_t chunks, int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_REPORT, t_us);

	if (m == NULL)
		return NULL;
	m->u.report.items = calloc(items > 0 ? items : 1, sizeof(*m->u.report.items));
	m->u.report.counters =
		calloc(counters > 0 ? counters : 1, sizeof(*m->u.report.counters));
	m->u.report.chunks = calloc(chunks > 0 ? chunks : 1, sizeof(*m->u.report.chunks));
	if (m->u.report.items == NULL || m->u.report.counters == NULL ||
		m->u.report.chunks == NULL) {
		ls_write_free(m);
		return NULL;
	}
	return m;
}

struct ls_write *
ls_write_new_close(const int32_t *missing, size_t count, int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_CLOSE, t_us);

	if (m == NULL || count == 0)
		return m;
	m->u.close.missing = malloc(count * sizeof(*missing));
	if (m->u.close.missing == NULL) {
		ls_write_free(m);
		return NULL;
	}
	memcpy(m->u.close.missing, missing, count * sizeof(*missing));
	m->u.close.missing_count = count;
	return m;
}

static void
write_free_report(struct ls_store_report *r)
{
	size_t i;

	for (i = 0; i < r->chunk_count; i++)
		free(r->chunks[i].series);
	free(r->items);
	free(r->counters);
	free(r->chunks);
}

void
ls_write_free(struct ls_write *m)
{
	if (m == NULL)
		return;
	switch (m->kind) {
	case LS_WRITE_REPORT:
		write_free_report(&m->u.report);
		break;
	case LS_WRITE_HOST:
		free(m->u.host.json);
		break;
	case LS_WRITE_CLOSE:
		free(m->u.close.missing);
		break;
	case LS_WRITE_FINDING:
		free(m->u.finding.json);
		break;
	case LS_WRITE_WORKER:
	case LS_WRITE_META:
	case LS_WRITE_ZOOM:
	case LS_WRITE_RETAIN:
	case LS_WRITE_KIND_COUNT:
		break;
	}
	free(m);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/db/rows.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include "proto/base/mem.h"

int64_t
ls_store_map_ns(const struct ls_store_map *map, int64_t t_mono_ns)
{
	double drift =
		(double)(t_mono_ns - map->ref_mono_ns) * (double)map->drift_ppb / 1e9;

	return t_mono_ns + map->offset_ns + (int64_t)drift;
}

int64_t
ls_store_map_us(const struct ls_store_map *map, int64_t t_mono_ns)
{
	int64_t ns = ls_store_map_ns(map, t_mono_ns);

	return (ns >= 0 ? ns + 500 : ns - 500) / 1000;
}

/* A span, rounded to whole microseconds; not up to what would be too long. */
static uint64_t
rows_span_ns(uint64_t ns)
{
	uint64_t rounded = (ns + 500) / 1000 * 1000;

	return rounded >= LS_PHASE_MAX_NS && ns < LS_PHASE_MAX_NS ? rounded - 1000
								  : rounded;
}

void
ls_store_record(const struct ls_store_map *map, const struct ls_record *from,
	struct ls_record *ret_record)
{
	struct ls_record *r = ret_record;

	*r = *from;
	r->t_begin_ns = ls_store_map_us(map, from->t_begin_ns) * 1000;
	r->duration_ns = rows_span_ns(from->duration_ns);
	for (size_t i = 0; i < LS_PHASE_COUNT; i++)
		r->phase_ns[i] = rows_span_ns(from->phase_ns[i]);
	for (size_t i = 0; i < r->barrier_count; i++) {
		r->barrier[i].enter_ns =
			ls_store_map_us(map, r->barrier[i].enter_ns) * 1000;
		r->barrier[i].exit_ns =
			ls_store_map_us(map, r->barrier[i].exit_ns) * 1000;
	}
	for (size_t i = 0; i < r->peer_count; i++) {
		struct ls_record_peer *p = &r->peer[i];

		if (p->recv_wait_ns != UINT64_MAX) /* else not measured */
			p->recv_wait_ns = rows_span_ns(p->recv_wait_ns);
		if (p->send_wait_ns != UINT64_MAX)
			p->send_wait_ns = rows_span_ns(p->send_wait_ns);
	}
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

/* A report with its rows, in one piece. */
struct rows_report {
	struct ls_write write; /* first */
	alignas(max_align_t) unsigned char rows[];
};

_Static_assert(sizeof(struct ls_store_item) % alignof(struct ls_store_counters) == 0 &&
		(sizeof(struct ls_store_item) + sizeof(struct ls_store_counters)) %
				alignof(struct ls_store_chunk) ==
			0,
	"rows follow each other");

struct ls_write *
ls_write_new_report(size_t items, size_t counters, size_t chunks, int64_t t_us)
{
	/* Counts are of the wire: the sum does not overflow. */
	size_t items_bytes = items * sizeof(struct ls_store_item);
	size_t counters_bytes = counters * sizeof(struct ls_store_counters);
	struct rows_report *m = calloc(1,
		sizeof(*m) + items_bytes + counters_bytes +
			chunks * sizeof(struct ls_store_chunk));

	if (m == NULL)
		return NULL;
	m->write.kind = LS_WRITE_REPORT;
	m->write.t_us = t_us;
	m->write.u.report.items = (struct ls_store_item *)m->rows;
	m->write.u.report.counters =
		(struct ls_store_counters *)(m->rows + items_bytes);
	m->write.u.report.chunks =
		(struct ls_store_chunk *)(m->rows + items_bytes + counters_bytes);
	return &m->write;
}

struct ls_write *
ls_write_new_ranks(enum ls_write_kind kind, const int32_t *ranks, size_t count,
	int64_t t_us)
{
	struct ls_write *m = ls_write_new(kind, t_us);
	int32_t *copy = count > 0 ? ls_mem_copy(ranks, count * sizeof(*ranks)) : NULL;

	if (m == NULL || (count > 0 && copy == NULL)) {
		free(copy);
		free(m);
		return NULL;
	}
	if (kind == LS_WRITE_CLOSE)
		m->u.close = (struct ls_store_close){ .missing = copy,
			.missing_count = count };
	else
		m->u.hang =
			(struct ls_store_hang){ .ranks = copy, .rank_count = count };
	return m;
}

int
ls_write_push_day(enum ls_write_kind kind, int32_t day, ls_write_push_fn *push,
	void *arg)
{
	struct ls_write *m = ls_write_new(kind, 0);
	int rc;

	if (m == NULL)
		return -ENOMEM;
	m->u.day = day;
	rc = push(arg, m);
	if (rc != 0)
		ls_write_free(m);
	return rc;
}

static void
write_free_pack(struct ls_store_pack *p)
{
	for (size_t i = 0; i < p->step_rows_count; i++)
		free(p->step_rows[i].body);
	free(p->step_rows);
	free(p->hot_rows.body);
	free(p->ledgers);
	free(p->rings);
}

void
ls_store_rollup_free(struct ls_store_rollup *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->rows[i].data);
	free(r->rows);
}

static void
write_free_report(struct ls_store_report *r)
{
	struct ls_write *w;

	for (size_t i = 0; i < r->chunk_count; i++)
		free(r->chunks[i].series);
	while ((w = r->workers) != NULL) {
		r->workers = w->next;
		free(w);
	}
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
	case LS_WRITE_HANG:
		free(m->u.hang.ranks);
		break;
	case LS_WRITE_FINDING:
		free(m->u.finding.json);
		break;
	case LS_WRITE_PACK:
		write_free_pack(&m->u.pack);
		break;
	case LS_WRITE_ROLLUP:
		ls_store_rollup_free(&m->u.rollup);
		break;
	case LS_WRITE_META:
		free(m->u.meta.bytes);
		break;
	case LS_WRITE_WORKER:
	case LS_WRITE_ZOOM:
	case LS_WRITE_RETAIN:
	case LS_WRITE_REPLACE:
	case LS_WRITE_ASIDE:
	case LS_WRITE_KIND_COUNT:
		break;
	}
	free(m);
}

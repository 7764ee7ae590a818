/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/feed.h"

int64_t
ls_feed_us(const struct ls_store_map *map, int64_t t_mono_ns)
{
	int64_t ns = ls_store_map_ns(map, t_mono_ns);

	return (ns >= 0 ? ns + 500 : ns - 500) / 1000;
}

void
ls_feed_record(
	const struct ls_store_map *map, const struct ls_record *from, struct ls_record *ret_record)
{
	size_t b;

	*ret_record = *from;
	ret_record->t_begin_ns = ls_feed_us(map, from->t_begin_ns) * 1000;
	for (b = 0; b < from->barrier_count; b++) {
		ret_record->barrier[b].enter_ns = ls_feed_us(map, from->barrier[b].enter_ns) * 1000;
		ret_record->barrier[b].exit_ns = ls_feed_us(map, from->barrier[b].exit_ns) * 1000;
	}
}

void
ls_feed_span(struct ls_store_item *row, const struct ls_wire_item *item)
{
	uint64_t i;

	for (i = row->first_index - item->first_index; i < item->count; i++) {
		const struct ls_record *r = &item->records[i];
		int64_t lo = ls_feed_us(&row->map, r->t_begin_ns);
		int64_t hi = lo + (int64_t)(r->duration_ns / 1000);
		bool first = i == row->first_index - item->first_index;

		if (first || r->step < row->step_lo)
			row->step_lo = r->step;
		if (first || r->step > row->step_hi)
			row->step_hi = r->step;
		if (first || lo < row->t_lo_us)
			row->t_lo_us = lo;
		if (first || hi > row->t_hi_us)
			row->t_hi_us = hi;
	}
}

void
ls_feed_steps(struct ls_engine *e, uint32_t worker, const struct ls_store_item *row,
	const struct ls_wire_item *item, int64_t now_us)
{
	uint64_t i, skip = row->first_index - item->first_index;
	struct ls_record r;

	if (worker == LS_NO_WORKER)
		return;
	ls_engine_clock(e, worker, (double)row->map.uncertainty_ns * 1e-9);
	for (i = skip; i < item->count && i - skip < row->count; i++) {
		ls_feed_record(&row->map, &item->records[i], &r);
		ls_ignore(ls_engine_record(e, worker, &r, now_us)); /* counted by the engine */
	}
}

void
ls_feed_gap(struct ls_engine *e, uint32_t worker, uint64_t count, int64_t now_us)
{
	if (worker != LS_NO_WORKER)
		ls_engine_gap(e, worker, count, now_us);
}

void
ls_feed_end(struct ls_engine *e, uint32_t worker, int crashed, int64_t now_us)
{
	if (worker != LS_NO_WORKER)
		ls_engine_end(e, worker, crashed, now_us);
}

void
ls_feed_counters(struct ls_engine *e, const struct ls_store_counters *row, uint32_t worker)
{
	if (row->worker_id != 0 && worker == LS_NO_WORKER)
		return;
	ls_ignore(ls_engine_counters(e, row->host, row->worker_id != 0 ? worker : LS_NO_WORKER,
		row->read_us, row->count, row->metric, row->value)); /* counted by the engine */
}

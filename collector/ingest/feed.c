/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/feed.h"

void
ls_feed_span(struct ls_store_item *row, const struct ls_store_steps *steps)
{
	for (uint32_t i = 0; i < steps->count; i++) {
		const struct ls_record *r = &steps->records[i];
		int64_t lo = r->t_begin_ns / 1000;
		int64_t hi = lo + (int64_t)(r->duration_ns / 1000);

		if (i == 0 || r->step < row->step_lo)
			row->step_lo = r->step;
		if (i == 0 || r->step > row->step_hi)
			row->step_hi = r->step;
		if (i == 0 || lo < row->t_lo_us)
			row->t_lo_us = lo;
		if (i == 0 || hi > row->t_hi_us)
			row->t_hi_us = hi;
	}
}

void
ls_feed_steps(struct ls_engine *e, uint32_t worker, const struct ls_store_steps *steps,
	int64_t now_us)
{
	if (worker == LS_NO_WORKER)
		return;
	ls_engine_clock(e, worker, (double)steps->uncertainty_ns * 1e-9);
	for (uint32_t i = 0; i < steps->count; i++)
		ls_ignore(ls_engine_record(e, worker, &steps->records[i],
			now_us)); /* counted by the engine */
}

void
ls_feed_hang(struct ls_engine *e, const struct ls_store_hang *row, int64_t now_us)
{
	const struct ls_engine_hang seen = { .job = row->job,
		.attempt = row->attempt,
		.step = row->step,
		.since_us = row->since_us,
		.t_us = now_us,
		.waiting = row->waiting,
		.why = row->why,
		.ranks = row->ranks,
		.count = row->rank_count };

	/* of a job or an attempt of which nothing else was read */
	ls_ignore(ls_engine_hang(e, &seen));
}

void
ls_feed_counters(struct ls_engine *e, const struct ls_store_counters *row,
	uint32_t worker)
{
	if (row->worker_id != 0 && worker == LS_NO_WORKER)
		return;
	ls_ignore(ls_engine_counters(e, row->host,
		row->worker_id != 0 ? worker : LS_NO_WORKER,
		/* counted by the engine */
		row->read_us, row->count, row->metric, row->value));
}

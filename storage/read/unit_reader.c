/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/unit_reader.h"

#include <errno.h>
#include <string.h>
#include "storage/columns/hot_rows.h"

void
ls_unit_reader_fini(struct ls_unit_reader *r)
{
	ls_step_codec_free(r->steps);
	ls_hot_codec_free(r->hot);
}

int
ls_unit_reader_steps(struct ls_unit_reader *r, const void *body, size_t len,
	struct ls_step_table *ret_table)
{
	if (r->steps == NULL)
		r->steps = ls_step_codec_new();
	return r->steps != NULL ? ls_step_rows_decode(r->steps, body, len, ret_table)
				: -ENOMEM;
}

static int
unit_add_run(struct ls_span *span, const struct ls_step_run *run,
	const struct ls_record *records)
{
	struct ls_store_steps *steps = ls_span_take(span, 1, sizeof(*steps));

	if (steps == NULL)
		return ls_span_error(span);
	*steps = (struct ls_store_steps){ .worker_id = run->worker_id,
		.first_index = run->first_index,
		.count = run->count,
		.uncertainty_ns = run->uncertainty_ns,
		.records = records };
	return ls_span_add(span, LS_EVENT_STEPS, run->id, run->t_us, steps);
}

static int
unit_load_steps(struct ls_unit_reader *r, const void *body, size_t len,
	struct ls_span *span)
{
	struct ls_step_table t;
	struct ls_record *records;
	int rc = ls_unit_reader_steps(r, body, len, &t);

	if (rc != 0)
		return rc;
	records = ls_span_take(span, t.record_count, sizeof(*records));
	if (records == NULL)
		return ls_span_error(span);
	memcpy(records, t.records, t.record_count * sizeof(*records));
	for (size_t i = 0; i < t.run_count && rc == 0; i++) {
		rc = unit_add_run(span, &t.runs[i], records);
		records += t.runs[i].count;
	}
	return rc;
}

static int
unit_load_hot(struct ls_unit_reader *r, const void *body, size_t len,
	struct ls_span *span)
{
	const struct ls_hot_event *events;
	size_t i, count;
	int rc;

	if (r->hot == NULL)
		r->hot = ls_hot_codec_new();
	rc = r->hot != NULL ? ls_hot_rows_decode(r->hot, body, len) : -ENOMEM;
	if (rc != 0)
		return rc;
	events = ls_hot_rows_events(r->hot, &count);
	for (i = 0; i < count && rc == 0; i++) {
		struct ls_store_counters *c = ls_span_take(span, 1, sizeof(*c));

		if (c == NULL)
			return ls_span_error(span);
		ls_hot_rows_get(r->hot, i, c);
		rc = ls_span_add(span, LS_EVENT_COUNTERS, events[i].id, events[i].t_us,
			c);
	}
	return rc;
}

int
ls_unit_reader_load(struct ls_unit_reader *r, enum ls_unit_table table,
	const void *body, size_t len, struct ls_span *span)
{
	if (body == NULL)
		return -LS_ECORRUPT;
	return table == LS_UNIT_STEP_ROWS ? unit_load_steps(r, body, len, span)
					  : unit_load_hot(r, body, len, span);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"

/* Adds a row, its bytes copied. */
static int
out_row(struct ls_store_rollup *o, const struct ls_store_rollup_row *row)
{
	void *data = row->len > 0 ? ls_mem_copy(row->data, row->len) : NULL;
	int rc = row->len > 0 && data == NULL ? -ENOMEM : 0;

	if (rc == 0)
		rc = ls_mem_grow((void **)&o->rows, o->count, &o->room,
			sizeof(*o->rows));
	if (rc == 0) {
		o->rows[o->count] = *row;
		o->rows[o->count++].data = data;
	} else {
		free(data);
	}
	return rc;
}

int
ls_roller_out_names(struct ls_store_rollup *o, struct ls_roller_names *names)
{
	int rc = 0;

	for (; names->fresh != NULL && rc == 0; names->fresh = names->fresh->next)
		rc = out_row(o,
			&(struct ls_store_rollup_row){ .table = names->fresh->is_metric
					? LS_ROLLUP_METRIC
					: LS_ROLLUP_LABELS,
				.id = names->fresh->id,
				.data = names->fresh->text,
				.len = strlen(names->fresh->text) + 1 });
	return rc;
}

int
ls_roller_out_rows(struct ls_store_rollup *o, struct ls_rollup_codec *codec,
	uint32_t metric_id, uint32_t span_s, int64_t t_us, int64_t also_hour_us,
	const struct ls_rollup_row *rows, size_t count)
{
	struct ls_store_rollup_row row = { .table = LS_ROLLUP_BODY,
		.id = metric_id,
		.span_s = span_s,
		.t_us = t_us,
		.n = (uint32_t)count };
	const uint8_t *body = NULL;
	int rc = ls_rollup_encode(codec, rows, count, &body, &row.len);

	memcpy(&row.data, &body, sizeof(body)); /* only read from */
	if (rc == 0)
		rc = out_row(o, &row);
	if (rc != 0 || also_hour_us == -1)
		return rc;
	row.span_s = 3600;
	row.t_us = also_hour_us;
	return out_row(o, &row);
}

int
ls_roller_out_done(struct ls_store_rollup *o, int64_t span_s, int64_t t_us,
	int64_t before, int64_t chunk_id)
{
	return out_row(o,
		&(struct ls_store_rollup_row){ .table = LS_ROLLUP_DONE,
			.span_s = span_s,
			.t_us = t_us,
			.before = before,
			.chunk_id = chunk_id });
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"

/* Copies bytes behind the others; the buffer grows by doubling, from 4,096 on. */
static int
out_data(struct ls_store_rollup *o, const void *data, size_t len, size_t *ret_at)
{
	size_t room = o->data_room > 0 ? o->data_room : 4096;
	uint8_t *p = o->data;

	while (room < o->data_len + len)
		room *= 2;
	if (room > o->data_room)
		p = realloc(p, room);
	if (p == NULL)
		return -ENOMEM;
	o->data = p;
	o->data_room = room;
	memcpy(p + o->data_len, data, len);
	*ret_at = o->data_len;
	o->data_len += len;
	return 0;
}

int
ls_roller_out_names(struct ls_store_rollup *o, struct ls_roller_names *names)
{
	size_t i, at = 0;
	int rc = 0;

	for (i = 0; i < names->slots && names->new_count > 0; i++) {
		struct ls_roller_name *name = names->slot[i];

		if (name == NULL || !name->is_new)
			continue;
		rc = ls_mem_grow((void **)&o->names, o->name_count, &o->name_room,
			sizeof(*o->names));
		if (rc == 0)
			rc = out_data(o, name->text, strlen(name->text) + 1, &at);
		if (rc != 0)
			break;
		o->names[o->name_count++] =
			(struct ls_store_rollup_name){ name->is_metric, name->id, at };
		name->is_new = false;
		names->new_count--;
	}
	return rc;
}

static int
out_body(struct ls_store_rollup *o, const struct ls_store_rollup_body *body)
{
	int rc = ls_mem_grow((void **)&o->bodies, o->body_count, &o->body_room,
		sizeof(*body));

	if (rc == 0)
		o->bodies[o->body_count++] = *body;
	return rc;
}

int
ls_roller_out_rows(struct ls_store_rollup *o, struct ls_rollup_codec *codec,
	uint32_t metric_id, uint32_t span_s, int64_t t_us, int64_t also_hour_us,
	const struct ls_rollup_row *rows, size_t count)
{
	struct ls_store_rollup_body body = { .metric_id = metric_id,
		.t_us = t_us,
		.span_s = span_s,
		.n = (uint32_t)count };
	const uint8_t *data;
	int rc = ls_rollup_encode(codec, rows, count, &data, &body.len);

	if (rc == 0)
		rc = out_data(o, data, body.len, &body.at);
	if (rc == 0)
		rc = out_body(o, &body);
	if (rc != 0 || also_hour_us == -1)
		return rc;
	body.span_s = 3600;
	body.t_us = also_hour_us;
	return out_body(o, &body);
}

int
ls_roller_out_done(struct ls_store_rollup *o, int64_t span_s, int64_t t_us,
	int64_t before, int64_t chunk_id)
{
	int rc = ls_mem_grow((void **)&o->done, o->done_count, &o->done_room,
		sizeof(*o->done));

	if (rc == 0)
		o->done[o->done_count++] =
			(struct ls_store_rollup_done){ span_s, t_us, before, chunk_id };
	return rc;
}

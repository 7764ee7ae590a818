/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/tidy/roller_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An array with room for one more; it doubles at powers of two. NULL when out of
 * memory. */
static void *
out_room(void *array, size_t count, size_t size)
{
	size_t room = count == 0 ? 8 : count * 2;

	if (count != 0 && (count < 8 || (count & (count - 1)) != 0))
		return array;
	return realloc(array, room * size);
}

/* Copies bytes behind the others; the buffer grows by doubling, from 4,096 on. */
static int
out_data(struct ls_store_rollup *o, const void *data, size_t len, size_t *ret_at)
{
	size_t room = 4096, want = 4096;
	uint8_t *p;

	while (room < o->data_len)
		room *= 2;
	while (want < o->data_len + len)
		want *= 2;
	if (o->data == NULL || want > room) {
		p = realloc(o->data, want);
		if (p == NULL)
			return -ENOMEM;
		o->data = p;
	}
	memcpy(o->data + o->data_len, data, len);
	*ret_at = o->data_len;
	o->data_len += len;
	return 0;
}

int
ls_roller_out_names(struct ls_store_rollup *o, struct ls_roller_names *names)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < names->slots && names->new_count > 0; i++) {
		struct ls_roller_name *name = names->slot[i];
		struct ls_store_rollup_name *to;

		if (name == NULL || !name->is_new)
			continue;
		to = out_room(o->names, o->name_count, sizeof(*to));
		if (to == NULL)
			return -ENOMEM;
		o->names = to;
		to += o->name_count;
		to->is_metric = name->is_metric;
		to->id = name->id;
		rc = out_data(o, name->text, strlen(name->text) + 1, &to->at);
		if (rc != 0)
			break;
		o->name_count++;
		name->is_new = false;
		names->new_count--;
	}
	return rc;
}

static int
out_body(struct ls_store_rollup *o, const struct ls_store_rollup_body *body)
{
	struct ls_store_rollup_body *to =
		out_room(o->bodies, o->body_count, sizeof(*to));

	if (to == NULL)
		return -ENOMEM;
	o->bodies = to;
	o->bodies[o->body_count++] = *body;
	return 0;
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
	struct ls_store_rollup_done *to = out_room(o->done, o->done_count, sizeof(*to));

	if (to == NULL)
		return -ENOMEM;
	o->done = to;
	o->done[o->done_count++] =
		(struct ls_store_rollup_done){ span_s, t_us, before, chunk_id };
	return 0;
}

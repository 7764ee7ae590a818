/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/columns/hot_columns.h"

struct hot_cursor
hot_cursor_start(bool read_by_key)
{
	return (struct hot_cursor){ .stride = 1, .read_by_key = read_by_key };
}

int
hot_past_start(struct ls_hot_codec *c)
{
	int rc = hot_reserve(&c->array[HOT_ARRAY_PAST], c->key_count,
		sizeof(struct hot_past));
	struct hot_past *past = c->array[HOT_ARRAY_PAST].data;

	for (size_t i = 0; i < c->key_count && rc == 0; i++)
		past[i] = (struct hot_past){ .next = HOT_NONE };
	return rc;
}

/* Agents report in turn: who came after the last one comes again, or one that is new.
 */
static bool
hot_code_key(struct ls_hot_codec *c, struct hot_cursor *at, bool reading, uint32_t *key,
	uint64_t *u)
{
	struct hot_past *past = c->array[HOT_ARRAY_PAST].data;
	uint64_t guess = at->keys, k = *key;

	if (at->keys > 0 && past[at->key].next != HOT_NONE)
		guess = past[at->key].next;
	ls_column_code(reading, u, &k, guess);
	if (k > at->keys || k >= c->key_count)
		return false;
	*key = (uint32_t)k;
	if (at->keys > 0)
		past[at->key].next = *key;
	at->keys += k == at->keys;
	at->key = *key;
	return true;
}

/* Reading follows a clock of the host's own, or arrival. */
static uint64_t
hot_guess_read(const struct hot_cursor *at, const struct hot_past *p, int64_t t_us)
{
	if (at->read_by_key && p->any)
		return (uint64_t)p->read_us +
			(p->has_stride ? p->stride : at->read_stride);
	if (p->any)
		return (uint64_t)t_us + (uint64_t)p->read_us - (uint64_t)p->t_us;
	return (uint64_t)t_us + at->delay;
}

static void
hot_note_read(struct hot_cursor *at, struct hot_past *p, const struct ls_hot_event *e)
{
	if (p->any) {
		p->stride = at->read_stride =
			(uint64_t)e->read_us - (uint64_t)p->read_us;
		p->has_stride = true;
	}
	p->any = true;
	p->read_us = e->read_us;
	p->t_us = e->t_us;
	at->delay = (uint64_t)e->read_us - (uint64_t)e->t_us;
}

bool
hot_code_event(struct ls_hot_codec *c, struct hot_cursor *at, bool reading,
	struct ls_hot_event *e, uint64_t *u)
{
	struct hot_past *p;
	uint64_t shape = e->shape;
	bool worker;

	if (!hot_code_key(c, at, reading, &e->key, &u[HOT_KEY]))
		return false;
	p = (struct hot_past *)c->array[HOT_ARRAY_PAST].data + e->key;
	worker = hot_keys(c)[e->key].worker_id != 0;
	ls_column_code_i64(reading, &u[HOT_ID], &e->id, (uint64_t)at->id + at->stride);
	at->stride = (uint64_t)e->id - (uint64_t)at->id;
	at->id = e->id;
	ls_column_code_i64(reading, &u[HOT_TIME], &e->t_us, (uint64_t)at->t_us);
	at->t_us = e->t_us;
	ls_column_code(reading, &u[HOT_SHAPE], &shape,
		p->any ? p->shape : at->shape[worker]);
	if (shape >= c->shape_count)
		return false;
	e->shape = p->shape = at->shape[worker] = (uint32_t)shape;
	ls_column_code_i64(reading, &u[HOT_READ], &e->read_us,
		hot_guess_read(at, p, e->t_us));
	hot_note_read(at, p, e);
	return true;
}

/* --- values --------------------------------------------------------------- */

int
hot_sort(struct ls_hot_codec *c)
{
	uint32_t *order, *begin, at = 0, n;
	int rc =
		hot_reserve(&c->array[HOT_ARRAY_ORDER], c->event_count, sizeof(*order));

	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_BEGIN], c->key_count + 1,
			sizeof(*begin));
	if (rc != 0)
		return rc;
	order = c->array[HOT_ARRAY_ORDER].data;
	begin = c->array[HOT_ARRAY_BEGIN].data;
	memset(begin, 0, (c->key_count + 1) * sizeof(*begin));
	for (size_t i = 0; i < c->event_count; i++)
		begin[hot_events(c)[i].key]++;
	for (size_t i = 0; i <= c->key_count; i++) {
		n = begin[i];
		begin[i] = at;
		at += n;
	}
	for (size_t i = 0; i < c->event_count; i++)
		order[begin[hot_events(c)[i].key]++] = (uint32_t)i;
	return 0;
}

size_t
hot_metrics_there(const struct ls_hot_codec *c, bool *there)
{
	size_t i, count = 0;

	for (i = 0; i < c->metric_count; i++) {
		count += !there[hot_metrics(c)[i]];
		there[hot_metrics(c)[i]] = true;
	}
	return count;
}

/* The first place of a metric in a shape, and the one behind its last; both 0: it is
 * not there. */
struct hot_span {
	uint8_t begin, end;
};

/* Events have few shapes: each is searched once, not for each event. */
static void
hot_spans(struct ls_hot_codec *c, unsigned metric)
{
	struct hot_span *span = c->array[HOT_ARRAY_SPAN].data;

	for (size_t i = 0; i < c->shape_count; i++) {
		const struct hot_shape *s = &hot_shapes(c)[i];

		span[i] = (struct hot_span){ 0, 0 };
		for (size_t k = 0; k < s->count; k++) { /* at most 31 */
			if (hot_metrics(c)[s->metric + k] != metric)
				continue;
			if (span[i].end == 0)
				span[i].begin = (uint8_t)k;
			span[i].end = (uint8_t)(k + 1);
		}
	}
}

int
hot_places(struct ls_hot_codec *c, unsigned metric, size_t *ret_n)
{
	const uint32_t *order = c->array[HOT_ARRAY_ORDER].data;
	const struct hot_span *span;
	uint32_t key = HOT_NONE;
	size_t i, k, n = 0;
	int rc = hot_reserve(&c->array[HOT_ARRAY_PLACE], c->value_count,
		sizeof(uint32_t));

	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_FIRST], c->value_count,
			sizeof(uint32_t));
	if (rc == 0)
		rc = hot_reserve(&c->array[HOT_ARRAY_SPAN], c->shape_count,
			sizeof(*span));
	if (rc != 0)
		return rc;
	hot_spans(c, metric);
	span = c->array[HOT_ARRAY_SPAN].data;
	for (i = 0; i < c->event_count; i++) {
		const struct ls_hot_event *e = &hot_events(c)[order[i]];
		const struct hot_shape *s = &hot_shapes(c)[e->shape];

		for (k = span[e->shape].begin; k < span[e->shape].end; k++) {
			if (hot_metrics(c)[s->metric + k] != metric)
				continue;
			((uint32_t *)c->array[HOT_ARRAY_PLACE].data)[n] =
				e->value + (uint32_t)k;
			((bool *)c->array[HOT_ARRAY_FIRST].data)[n++] = e->key != key;
			key = e->key;
		}
	}
	*ret_n = n;
	return 0;
}

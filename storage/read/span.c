/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "storage/read/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/mem.h"
#include "proto/wire/arena.h"
#include "storage/columns/journal.h"

#define SPAN_FIRST_BYTES (1024 * 1024)

int
ls_span_init(struct ls_span *s)
{
	memset(s, 0, sizeof(*s));
	s->arena = ls_arena_new(SPAN_FIRST_BYTES, LS_SPAN_MAX_BYTES);
	return s->arena != NULL ? 0 : -ENOMEM;
}

void
ls_span_fini(struct ls_span *s)
{
	free(s->events);
	ls_arena_free(s->arena);
	ls_arena_free(s->scratch);
	memset(s, 0, sizeof(*s));
}

void
ls_span_reset(struct ls_span *s)
{
	s->count = 0;
	s->records = 0;
	s->bad = 0;
	ls_arena_reset(s->arena);
}

void *
ls_span_take(struct ls_span *s, size_t count, size_t size)
{
	return ls_arena_take_array(s->arena, count, size);
}

int
ls_span_error(const struct ls_span *s)
{
	return ls_arena_refused(s->arena) ? -LS_ELIMIT : -ENOMEM;
}

int
ls_span_add(struct ls_span *s, enum ls_store_event_kind kind, int64_t id, int64_t t_us,
	const void *what)
{
	int rc = ls_mem_grow((void **)&s->events, s->count, &s->capacity,
		sizeof(*s->events));

	if (rc != 0)
		return rc;
	if (kind == LS_EVENT_STEPS)
		s->records += ((const struct ls_store_steps *)what)->count;
	s->events[s->count++] = (struct ls_span_event){ id, t_us, kind, what };
	return 0;
}

/* --- journal -------------------------------------------------------------- */

/* The records of a row, which are some of the item's, from index `skip` of it on. */
static int
span_add_records(struct ls_span *s, const struct ls_journal_entry *e,
	const struct ls_record *records, uint64_t count)
{
	const struct ls_store_item *row = &e->u.item;
	struct ls_store_steps *steps = ls_span_take(s, 1, sizeof(*steps));
	struct ls_record *mapped = ls_span_take(s, count, sizeof(*mapped));

	if (steps == NULL || mapped == NULL)
		return ls_span_error(s);
	for (uint64_t i = 0; i < count; i++)
		ls_store_record(&row->map, &records[i], &mapped[i]);
	steps->worker_id = row->worker_id;
	steps->first_index = row->first_index;
	steps->count = (uint32_t)count;
	steps->uncertainty_ns = row->map.uncertainty_ns;
	steps->records = mapped;
	return ls_span_add(s, LS_EVENT_STEPS, e->id, e->t_us, steps);
}

static int
span_add_steps(struct ls_span *s, const struct ls_journal_entry *e)
{
	const struct ls_store_item *row = &e->u.item;
	struct ls_wire_item item = { 0 };
	const char *why = NULL;
	uint64_t skip;
	int rc = ls_wire_item_unpack_in(row->data, row->len, &s->scratch, &item, &why);

	if (rc == -ENOMEM)
		return rc;
	skip = rc == 0 ? row->first_index - item.first_index : 0;
	if (rc != 0 || item.kind != LS_WIRE_STEPS || skip > item.count ||
		item.count - skip < row->count) {
		s->bad++;
		rc = 0;
	} else {
		rc = span_add_records(s, e, item.records + skip, row->count);
	}
	ls_wire_item_clear(&item);
	return rc;
}

static int
span_add_hot(struct ls_span *s, const struct ls_journal_entry *e)
{
	struct ls_store_counters *c = ls_span_take(s, 1, sizeof(*c));

	if (c == NULL)
		return ls_span_error(s);
	*c = e->u.counters;
	return ls_span_add(s, LS_EVENT_COUNTERS, e->id, e->t_us, c);
}

static int
span_entry(void *arg, const struct ls_journal_entry *e)
{
	switch (e->kind) {
	case LS_JOURNAL_STEPS:
		return span_add_steps(arg, e);
	case LS_JOURNAL_HOT:
		return span_add_hot(arg, e);
	case LS_JOURNAL_AGENT:
	case LS_JOURNAL_RING:
	case LS_JOURNAL_KIND_COUNT:
		break;
	}
	return 0;
}

int
ls_span_load_journal(struct ls_span *s, const uint8_t *body, size_t len)
{
	return ls_journal_read(body, len, span_entry, s);
}

/* --- giving --------------------------------------------------------------- */

static int
span_compare(const void *a, const void *b)
{
	const struct ls_span_event *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

void
ls_span_sort(struct ls_span *s)
{
	size_t i;

	for (i = 1; i < s->count && s->events[i - 1].id < s->events[i].id; i++)
		;
	if (i < s->count)
		qsort(s->events, s->count, sizeof(*s->events), span_compare);
}

/* Of what an event's `what` points to. */
static const size_t span_bytes[] = {
	[LS_EVENT_STEPS] = sizeof(struct ls_store_steps),
	[LS_EVENT_ITEM] = sizeof(struct ls_store_item),
	[LS_EVENT_CLOSE] = sizeof(struct ls_store_close),
	[LS_EVENT_COUNTERS] = sizeof(struct ls_store_counters),
	[LS_EVENT_ZOOM] = sizeof(struct ls_store_zoom),
	[LS_EVENT_HANG] = sizeof(struct ls_store_hang),
};

int
ls_span_give(const struct ls_span *s, int64_t lo, int64_t hi, ls_query_event_fn *fn,
	void *arg)
{
	struct ls_store_event e;
	int rc = 0;

	for (size_t i = 0; i < s->count && rc == 0; i++) {
		const struct ls_span_event *from = &s->events[i];

		if (from->id < lo || from->id > hi)
			continue;
		e.kind = from->kind;
		e.id = from->id;
		e.t_us = from->t_us;
		memcpy(&e.u, from->what, span_bytes[from->kind]);
		rc = fn(arg, &e);
	}
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/ingest/outbox.h"
#include "collector/answer/finding_json.h"

#include <stdlib.h>
#include <string.h>
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "storage/write/writer.h"

struct ls_outbox {
	struct ls_writer *writer;
	bool muted;
	uint64_t lost;
	struct ls_write *first, **last;
};

struct ls_outbox *
ls_outbox_new(struct ls_writer *writer)
{
	struct ls_outbox *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->writer = writer;
	o->last = &o->first;
	return o;
}

static struct ls_write *
outbox_take(struct ls_outbox *o)
{
	struct ls_write *m = o->first;

	if (m != NULL) {
		o->first = m->next;
		m->next = NULL;
		if (o->first == NULL)
			o->last = &o->first;
	}
	return m;
}

void
ls_outbox_free(struct ls_outbox *o)
{
	struct ls_write *m;

	if (o == NULL)
		return;
	while ((m = outbox_take(o)) != NULL)
		ls_write_free(m);
	free(o);
}

static void
outbox_lose(struct ls_outbox *o, const char *what)
{
	o->lost++;
	ls_log(LS_LOG_ERR, "outbox",
		"cannot store %s: the queue is full; a restart will forget this change",
		what);
}

static void
outbox_put(struct ls_outbox *o, struct ls_write *m)
{
	*o->last = m;
	o->last = &m->next;
}

static void
outbox_on_closed(void *arg, const struct ls_engine_close *c)
{
	struct ls_outbox *o = arg;
	struct ls_write *m;

	if (o->muted)
		return;
	m = ls_write_new_ranks(LS_WRITE_CLOSE, c->missing, c->missing_count, c->t_us);
	if (m == NULL ||
		ls_text_copy(m->u.close.job, sizeof(m->u.close.job), c->job) != 0) {
		ls_write_free(m);
		outbox_lose(o, "the closing of a step");
		return;
	}
	m->u.close.attempt = c->attempt;
	m->u.close.step = c->step;
	m->u.close.expected = c->expected;
	m->u.close.used = c->used;
	outbox_put(o, m);
}

/* A text member for a column; "" if it is none or too long for one: the JSON has it
 * all. */
static void
outbox_column(char *dst, size_t size, const json_t *finding, const char *key)
{
	const char *text = json_string_value(json_object_get(finding, key));

	if (text == NULL || ls_text_copy(dst, size, text) != 0)
		dst[0] = '\0';
}

void
ls_outbox_finding(struct ls_outbox *o, const char *id, const char *event, int64_t t_us,
	json_t *finding, bool history)
{
	struct ls_write *m = ls_write_new(LS_WRITE_FINDING, t_us);
	struct ls_store_finding *f;

	if (m == NULL) {
		outbox_lose(o, "a finding");
		return;
	}
	f = &m->u.finding;
	f->json = ls_json_canonical(finding);
	if (f->json == NULL || ls_text_copy(f->id, sizeof(f->id), id) != 0 ||
		ls_text_copy(f->event, sizeof(f->event), event) != 0) {
		ls_write_free(m);
		outbox_lose(o, "a finding");
		return;
	}
	outbox_column(f->job, sizeof(f->job), json_object_get(finding, "job"), "id");
	outbox_column(f->kind, sizeof(f->kind), finding, "kind");
	outbox_column(f->severity, sizeof(f->severity), finding, "severity");
	outbox_column(f->status, sizeof(f->status), finding, "status");
	f->history = history;
	outbox_put(o, m);
}

static void
outbox_on_finding(void *arg, const char *id, const char *event, int64_t t_us,
	json_t *finding)
{
	struct ls_outbox *o = arg;

	if (!o->muted)
		ls_outbox_finding(o, id, event, t_us, finding, true);
}

void
ls_outbox_zoom(struct ls_outbox *o, const struct ls_store_zoom *event, int64_t t_us)
{
	struct ls_write *m = ls_write_new(LS_WRITE_ZOOM, t_us);

	if (m == NULL) {
		outbox_lose(o, "a zoom");
		return;
	}
	m->u.zoom = *event;
	outbox_put(o, m);
}

static void
outbox_on_hang(void *arg, const struct ls_engine_hang *seen)
{
	struct ls_outbox *o = arg;
	struct ls_store_hang *h;
	struct ls_write *m;

	if (o->muted)
		return;
	m = ls_write_new_ranks(LS_WRITE_HANG, seen->ranks, seen->count, seen->t_us);
	if (m == NULL ||
		ls_text_copy(m->u.hang.job, sizeof(m->u.hang.job), seen->job) != 0) {
		ls_write_free(m);
		outbox_lose(o, "a standstill");
		return;
	}
	h = &m->u.hang;
	h->attempt = seen->attempt;
	h->step = seen->step;
	h->since_us = seen->since_us;
	h->waiting = seen->waiting;
	h->why = seen->why;
	outbox_put(o, m);
}

struct ls_engine_sink
ls_outbox_sink(struct ls_outbox *o)
{
	struct ls_engine_sink sink = ls_finding_sink;

	sink.arg = o;
	sink.closed = outbox_on_closed;
	sink.finding = outbox_on_finding;
	sink.hang = outbox_on_hang;
	return sink;
}

void
ls_outbox_mute(struct ls_outbox *o, bool muted)
{
	o->muted = muted;
}

void
ls_outbox_flush(struct ls_outbox *o)
{
	struct ls_write *m;

	while ((m = outbox_take(o)) != NULL) {
		if (ls_writer_push(o->writer, m) == 0)
			continue;
		outbox_lose(o,
			m->kind == LS_WRITE_CLOSE	   ? "the closing of a step"
				: m->kind == LS_WRITE_ZOOM ? "a zoom"
				: m->kind == LS_WRITE_HANG ? "a standstill"
							   : "a finding");
		ls_write_free(m);
	}
}

uint64_t
ls_outbox_lost(const struct ls_outbox *o)
{
	return o->lost;
}

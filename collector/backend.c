/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "collector/backend.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include "collector/answer/self_finding.h"
#include "collector/engine/finding/finding.h"
#include "collector/answer/view.h"
#include "proto/base/json.h"

static int
backend_grid(const struct ls_engine *e, const struct ls_ask *q,
	const struct ls_view_range *range, json_t **ret_body)
{
	if (q->metric >= LS_GRID_METRIC_COUNT)
		return -LS_ERANGE;
	return ls_view_grid(e, q->job, (enum ls_grid_metric)q->metric, range, q->rows,
		q->cols, ret_body);
}

static int
backend_zoom(struct ls_backend_parts *p, const struct ls_ask *q, int64_t now_us,
	json_t **ret_body)
{
	int64_t until_us = 0;
	int rc = ls_fleet_has(p->core->fleet, q->host) ? 0 : -LS_EUNKNOWN;

	if (rc == 0)
		rc = ls_zoom_ask(p->core->zoom, q->host, q->who,
			(int64_t)q->seconds * 1000000, now_us, &until_us);
	if (rc != 0)
		return rc;
	*ret_body = json_pack("{s:o, s:o}", "host", ls_json_text(q->host),
		"zoom_until_at", ls_json_time(until_us));
	return *ret_body != NULL ? 0 : -ENOMEM;
}

/* About the collector itself; NULL: there is nothing to report, or no memory. */
static json_t *
backend_self_finding(struct ls_backend_parts *p, int64_t now_us)
{
	struct ls_self self = { 0 };

	p->self(p->arg, &self);
	return ls_self_finding(&self.done.stats.aside, &self.done.stats.note, now_us);
}

static bool
backend_text_is(const json_t *object, const char *key, const char *want)
{
	const char *have = json_string_value(json_object_get(object, key));

	return want[0] == '\0' || (have != NULL && strcmp(have, want) == 0);
}

/* A hang, with where cores stood by the files of libtpu on its hosts; takes and gives a
 * reference. Other findings stay as they are. These rows are no part of the finding: it
 * rests on marks alone, and replay gives the same. */
static json_t *
backend_stalls(const struct ls_backend_parts *p, json_t *finding)
{
	const char *job, *from, *kind, *host,
		*until = json_string_value(json_object_get(finding, "cleared_at"));
	json_t *rows, *evidence, *doc;

	if (json_unpack(finding, "{s:s, s:{s:s}, s:{s:s}}", "kind", &kind, "job", "id",
		    &job, "onset", "at", &from) != 0 ||
		strcmp(kind, ls_finding_name(LS_NAMES_KIND, LS_KIND_HANG)) != 0)
		return finding;
	rows = json_array();
	host = json_string_value(
		json_object_get(json_object_get(finding, "subject"), "host"));
	for (size_t i = 0; host != NULL || i == 0; i++) { /* the subject's, then all */
		if (host != NULL)
			ls_fleet_stalls(p->core->fleet, host, from, until, rows);
		host = json_array_size(rows) < LS_STALL_CORES_SENT
			? ls_view_host_of(p->core->engine, job, i)
			: NULL;
	}
	evidence = json_copy(json_object_get(finding, "evidence"));
	doc = json_copy(finding);
	/* without rows, or memory, as it is */
	if (json_array_size(rows) == 0 || json_array_extend(evidence, rows) != 0 ||
		json_object_set(doc, "evidence", evidence) != 0) {
		json_decref(doc);
		doc = json_incref(finding);
	}
	json_decref(finding);
	json_decref(evidence);
	json_decref(rows);
	return doc;
}

/* The newest is the one about the collector itself: it concerns every job, no host. */
static int
backend_findings(struct ls_backend_parts *p, const struct ls_ask *q, int64_t now_us,
	json_t **ret_body)
{
	json_t *own = backend_self_finding(p, now_us), *next;
	bool after_own = strcmp(q->after, LS_SELF_FINDING_ID) == 0,
	     shown = own != NULL && q->after[0] == '\0' && q->host[0] == '\0' &&
		backend_text_is(own, "status", q->status) &&
		backend_text_is(own, "severity", q->severity) &&
		backend_text_is(own, "kind", q->finding_kind);
	const struct ls_view_findings ask = { .job = q->job,
		.host = q->host,
		.status = q->status,
		.severity = q->severity,
		.kind = q->finding_kind,
		.after = after_own ? "" : q->after,
		.limit = q->limit - shown };
	json_t *item;
	size_t i;
	int rc = ls_view_findings(p->core->engine, &ask, ret_body);

	json_array_foreach(rc == 0 ? json_object_get(*ret_body, "items") : NULL, i,
		item)
	{
		if (json_is_null(json_object_get(item, "cleared_at")))
			ls_ignore(
				json_array_set_new(json_object_get(*ret_body, "items"),
					i, backend_stalls(p, json_incref(item))));
	}
	if (rc == 0 && shown) {
		next = json_object_get(*ret_body, "next");
		rc = json_array_insert(json_object_get(*ret_body, "items"), 0, own);
		if (rc == 0 && json_string_length(next) == 0 && json_is_string(next))
			rc = json_string_set(next, LS_SELF_FINDING_ID);
		if (rc != 0) {
			json_decref(*ret_body);
			rc = -ENOMEM;
		}
	}
	json_decref(own);
	return rc;
}

static int
backend_finding(struct ls_backend_parts *p, const char *id, int64_t now_us,
	json_t **ret_body)
{
	if (strcmp(id, LS_SELF_FINDING_ID) != 0) {
		int rc = ls_view_finding(p->core->engine, id, ret_body);

		*ret_body = backend_stalls(p, *ret_body);
		return rc;
	}
	*ret_body = backend_self_finding(p, now_us);
	return *ret_body != NULL ? 0 : -LS_EUNKNOWN;
}

static int
backend_hosts(const struct ls_engine *e, const struct ls_ask *q, int64_t now_us,
	json_t **ret_body)
{
	const struct ls_view_hosts ask = { .host = q->host[0] != '\0' ? q->host : NULL,
		.match = q->match,
		.sort = (enum ls_view_sort)q->sort,
		.descending = q->descending,
		.after = q->skip,
		.limit = q->limit };

	_Static_assert((int)LS_ASK_BY_SLOWEST == (int)LS_VIEW_BY_SLOWEST,
		"the same order");
	return ls_view_hosts(e, q->job, &ask, now_us, ret_body);
}

static int
backend_body(struct ls_backend_parts *p, const struct ls_ask *q, int64_t now_us,
	json_t **ret_body)
{
	const struct ls_engine *e = p->core->engine;
	const struct ls_view_range range = {
		.from = q->from_step, .to = q->to_step, .limit = q->limit
	};

	switch (q->kind) {
	case LS_ASK_JOBS:
		return ls_view_jobs(e, q->after, q->limit, now_us, ret_body);
	case LS_ASK_JOB:
		return ls_view_job(e, q->job, now_us, ret_body);
	case LS_ASK_HOSTS:
		return backend_hosts(e, q, now_us, ret_body);
	case LS_ASK_STEPS:
		return ls_view_steps(e, q->job, q->host[0] != '\0' ? q->host : NULL,
			&range, ret_body);
	case LS_ASK_GRID:
		return backend_grid(e, q, &range, ret_body);
	case LS_ASK_FINDINGS:
		return backend_findings(p, q, now_us, ret_body);
	case LS_ASK_FINDING:
		return backend_finding(p, q->id, now_us, ret_body);
	case LS_ASK_HOST:
		return ls_fleet_view(p->core->fleet, q->host,
			ls_zoom_until(p->core->zoom, q->host, now_us), ret_body);
	case LS_ASK_ZOOM:
		return backend_zoom(p, q, now_us, ret_body);
	case LS_ASK_SERIES:
		break; /* by backend_series */
	case LS_ASK_HISTORY:
	case LS_ASK_FLEET:
	case LS_ASK_STEP:
		break; /* by backend_read */
	}
	return -LS_EUNKNOWN;
}

/* Stored series on their way from the reader. */
struct backend_series {
	ls_ask_reply *reply;
	void *reply_arg;
	struct evbuffer *text;
};

static bool
backend_series_piece(void *arg, int rc, const char *text, size_t len)
{
	struct backend_series *b = arg;
	json_t *body = NULL;
	size_t size;

	if (len > 0)
		return evbuffer_add(b->text, text, len) == 0;
	size = evbuffer_get_length(b->text);
	if (rc == 0) {
		body = json_loadb((const char *)evbuffer_pullup(b->text, -1), size, 0,
			NULL);
		rc = body != NULL ? 0 : -ENOMEM; /* it is our own text */
	}
	b->reply(b->reply_arg, rc, body);
	json_decref(body);
	evbuffer_free(b->text);
	free(b);
	return false;
}

/* Live values if there are any, else what is stored. */
static void
backend_series(struct ls_backend_parts *p, const struct ls_ask *q, ls_ask_reply *reply,
	void *reply_arg)
{
	json_t *live = NULL;
	int rc = ls_fleet_series(p->core->fleet, q->host, p->now_us(p->arg), &live);
	struct backend_series *b;

	if (rc != 0 || json_array_size(live) > 0) {
		reply(reply_arg, rc, live);
		json_decref(live);
		return;
	}
	json_decref(live);
	b = calloc(1, sizeof(*b));
	if (b != NULL)
		b->text = evbuffer_new();
	if (b == NULL || b->text == NULL) {
		free(b);
		reply(reply_arg, -ENOMEM, NULL);
		return;
	}
	b->reply = reply;
	b->reply_arg = reply_arg;
	ls_reader_read(p->reader, LS_READER_LATEST, q, backend_series_piece, b);
}

static void
backend_ask(void *arg, const struct ls_ask *q, ls_ask_reply *reply, void *reply_arg)
{
	struct ls_backend_parts *p = arg;
	json_t *body = NULL;
	int rc;

	if (q->kind == LS_ASK_SERIES) {
		backend_series(p, q, reply, reply_arg);
		return;
	}
	rc = backend_body(p, q, p->now_us(p->arg), &body);
	reply(reply_arg, rc, rc == 0 ? body : NULL);
	json_decref(body);
}

static void
backend_export(void *arg, const struct ls_ask *q, ls_export_piece *piece,
	void *piece_arg)
{
	struct ls_backend_parts *p = arg;

	ls_reader_read(p->reader, LS_READER_EXPORT, q, piece, piece_arg);
}

/* A step that the engine still holds, with lateness and blame. False: it does not. */
static bool
backend_step(struct ls_backend_parts *p, const struct ls_ask *q, ls_export_piece *piece,
	void *piece_arg)
{
	json_t *body = NULL;
	char *text = NULL;
	int rc = ls_view_step(p->core->engine, q->job, q->step, q->skip, q->limit,
		&body);

	if (rc == -LS_EUNKNOWN)
		return false;
	if (rc == 0)
		text = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(15));
	if (text != NULL)
		(void)piece(piece_arg, 0, text,
			strlen(text)); /* the end follows anyway */
	(void)piece(piece_arg, text != NULL ? 0 : -ENOMEM, NULL, 0);
	free(text);
	json_decref(body);
	return true;
}

static void
backend_read(void *arg, const struct ls_ask *q, ls_export_piece *piece, void *piece_arg)
{
	struct ls_backend_parts *p = arg;

	if (q->kind == LS_ASK_STEP && backend_step(p, q, piece, piece_arg))
		return;
	ls_reader_read(p->reader, LS_READER_ANSWER, q, piece, piece_arg);
}

static void
backend_cancel(void *arg, void *piece_arg)
{
	struct ls_backend_parts *p = arg;

	ls_reader_cancel(p->reader, piece_arg);
}

static void
backend_hold(void *arg, void *piece_arg, bool hold)
{
	struct ls_backend_parts *p = arg;

	ls_reader_hold(p->reader, piece_arg, hold);
}

static void
backend_metrics(void *arg, struct evbuffer *out)
{
	struct ls_backend_parts *p = arg;
	struct ls_self self = { 0 };

	p->self(p->arg, &self);
	ls_self_metrics(&self, out);
}

static bool
backend_ready(void *arg, const char **ret_why)
{
	struct ls_backend_parts *p = arg;

	return p->ready(p->arg, ret_why);
}

struct ls_backend
ls_backend_of(struct ls_backend_parts *parts)
{
	return (struct ls_backend){
		.arg = parts,
		.ask = backend_ask,
		.export_job = backend_export,
		.read = backend_read,
		.cancel = backend_cancel,
		.hold = backend_hold,
		.metrics = backend_metrics,
		.ready = backend_ready,
	};
}

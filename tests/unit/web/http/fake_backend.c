/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tests/unit/web/http/fake_backend.h"
#include "proto/base/err.h"
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *
fake_load(const struct fake_backend *b, const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s.json", b->dir, name);
	return json_load_file(path, 0, NULL);
}

/* The element of an array whose id is so; new reference. */
static json_t *
fake_pick(json_t *array, const char *id)
{
	json_t *found = NULL;

	for (size_t i = 0; i < json_array_size(array) && !found; i++) {
		json_t *v = json_array_get(array, i);
		const char *have = json_string_value(json_object_get(v, "id"));

		if (have && strcmp(have, id) == 0)
			found = json_incref(v);
	}
	json_decref(array);
	return found;
}

/* The first of them as a page, or NULL. */
static json_t *
fake_page(json_t *all, size_t limit)
{
	bool more = json_array_size(all) > limit;

	while (json_array_size(all) > limit)
		(void)json_array_remove(all, json_array_size(all) - 1);
	return all
		? json_pack("{s:o, s:s?}", "items", all, "next", more ? "more" : NULL)
		: NULL;
}

/* A page of them, in the order of the fixture. */
static json_t *
fake_hosts(json_t *all, const struct ls_ask *q)
{
	json_t *items = json_array(), *h;
	size_t i, count = 0, skip = strtoul(q->after, NULL, 10);
	char next[24];

	json_array_foreach(all, i, h)
	{
		const char *name = json_string_value(json_object_get(h, "host"));

		if ((q->host[0] != '\0' && (!name || strcmp(name, q->host) != 0)) ||
			(q->match[0] != '\0' && (!name || !strstr(name, q->match))))
			continue;
		if (count >= skip && json_array_size(items) < q->limit)
			(void)json_array_append(items, h);
		count++;
	}
	json_decref(all);
	skip += json_array_size(items);
	(void)snprintf(next, sizeof(next), "%zu", skip);
	return json_pack("{s:o, s:I, s:s?}", "items", items, "count", (json_int_t)count,
		"next", skip < count ? next : NULL);
}

static bool
fake_text_is(const json_t *object, const char *key, const char *want)
{
	const char *have = json_string_value(json_object_get(object, key));

	return want[0] == '\0' || (have && strcmp(have, want) == 0);
}

static bool
fake_names(const json_t *subject, const char *host)
{
	const json_t *hosts = json_object_get(subject, "hosts");
	bool named = fake_text_is(subject, "host", host);

	for (size_t i = 0; i < json_array_size(hosts); i++)
		named |= strcmp(json_string_value(json_array_get(hosts, i)), host) == 0;
	return named;
}

/* Those that are asked for, the newest first. */
static json_t *
fake_findings(json_t *all, const struct ls_ask *q)
{
	json_t *items = json_array();
	size_t i = json_array_size(all);

	while (i-- > 0) {
		json_t *f = json_array_get(all, i);

		if (fake_text_is(json_object_get(f, "job"), "id", q->job) &&
			fake_text_is(f, "status", q->status) &&
			fake_text_is(f, "severity", q->severity) &&
			fake_text_is(f, "kind", q->finding_kind) &&
			fake_names(json_object_get(f, "subject"), q->host))
			(void)json_array_append(items, f);
	}
	json_decref(all);
	return fake_page(items, q->limit);
}

/* The one host of the fixtures. */
static json_t *
fake_host(const struct fake_backend *b, const struct ls_ask *q)
{
	json_t *host = fake_load(b, "host");
	const char *name = json_string_value(json_object_get(host, "host"));
	bool known = name && strcmp(name, q->host) == 0;

	if (known && q->kind == LS_ASK_HOST)
		return host;
	json_decref(host);
	if (!known)
		return NULL;
	if (q->kind == LS_ASK_SERIES)
		return fake_load(b, "series");
	return json_pack("{s:s, s:s}", "host", q->host, "zoom_until_at",
		"2026-11-20T14:04:11.000Z");
}

static json_t *
fake_body(const struct fake_backend *b, const struct ls_ask *q)
{
	json_t *job;

	if (q->kind == LS_ASK_JOBS)
		return fake_page(fake_load(b, "jobs"), q->limit);
	if (q->kind == LS_ASK_FINDINGS)
		return fake_findings(fake_load(b, "findings"), q);
	if (q->kind == LS_ASK_FINDING)
		return fake_pick(fake_load(b, "findings"), q->id);
	if (q->kind == LS_ASK_HOST || q->kind == LS_ASK_SERIES ||
		q->kind == LS_ASK_ZOOM)
		return fake_host(b, q);
	job = fake_pick(fake_load(b, "jobs"), q->job);
	if (!job || q->kind == LS_ASK_JOB)
		return job;
	json_decref(job);
	if (q->kind == LS_ASK_HOSTS)
		return fake_hosts(fake_load(b, "hosts"), q);
	if (q->kind == LS_ASK_STEPS)
		return fake_load(b, q->host[0] ? "records" : "steps");
	return fake_load(b, "grid");
}

static void
fake_ask(void *arg, const struct ls_ask *q, ls_ask_reply *reply, void *reply_arg)
{
	struct fake_backend *b = arg;
	json_t *body = fake_body(b, q);

	b->last = *q;
	if (b->hold && b->held_count < FAKE_BACKEND_HELD_MAX) {
		b->held[b->held_count++] = (struct fake_held){ reply, reply_arg, body };
		return;
	}
	reply(reply_arg, body ? 0 : -LS_EUNKNOWN, body);
	json_decref(body);
}

void
fake_backend_let_go(struct fake_backend *b)
{
	size_t count = b->held_count;

	b->hold = false;
	b->held_count = 0;
	for (size_t i = 0; i < count; i++) {
		b->held[i].reply(b->held[i].arg, b->held[i].body ? 0 : -LS_EUNKNOWN,
			b->held[i].body);
		json_decref(b->held[i].body);
	}
}

static void
fake_export(void *arg, const struct ls_ask *q, ls_export_piece *piece, void *piece_arg)
{
	struct fake_backend *b = arg;
	json_t *known = fake_pick(fake_load(b, "jobs"), q->job);
	char path[512], line[4096];
	FILE *f = NULL;

	b->last = *q;
	if (!known) {
		(void)piece(piece_arg, -LS_EUNKNOWN, NULL, 0);
		return;
	}
	json_decref(known);
	memset(line, 'x', sizeof(line));
	for (size_t sent = 0; sent < b->export_bytes; sent += sizeof(line)) {
		if (!piece(piece_arg, 0, line, sizeof(line)))
			break;
	}
	(void)snprintf(path, sizeof(path), "%s/export.ndjson", b->dir);
	f = b->export_bytes == 0 ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		if (!piece(piece_arg, 0, line, strlen(line))) {
			b->stopped++;
			break;
		}
		if (b->cut_export)
			break;
	}
	if (f)
		(void)fclose(f);
	(void)piece(piece_arg, b->cut_export ? -LS_EDB : 0, NULL, 0);
}

/* The text of a file, as the collector would have read it; of the one host and job
 * there are. */
static void
fake_read(void *arg, const struct ls_ask *q, ls_export_piece *piece, void *piece_arg)
{
	static const char *const names[] = { "history", "fleet", "step" };
	struct fake_backend *b = arg;
	const char *name = q->kind == LS_ASK_FLEET && q->band
		? "band"
		: names[q->kind - LS_ASK_HISTORY];
	char path[512], text[4096];
	json_t *known = q->kind == LS_ASK_HISTORY
		? fake_load(b, "host")
		: fake_pick(fake_load(b, "jobs"), q->job);
	const char *host = json_string_value(json_object_get(known, "host"));
	FILE *f = NULL;
	size_t n;

	b->last = *q;
	b->reading = piece_arg;
	if (!known || (host && strcmp(host, q->host) != 0) || b->read_rc != 0) {
		json_decref(known);
		(void)piece(piece_arg, b->read_rc != 0 ? b->read_rc : -LS_EUNKNOWN,
			NULL, 0);
		return;
	}
	json_decref(known);
	if (b->hold_read) {
		b->held_piece = piece;
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/%s.json", b->dir, name);
	f = fopen(path, "re");
	while (f && (n = fread(text, 1, sizeof(text), f)) > 0)
		(void)piece(piece_arg, 0, text, n);
	if (f)
		(void)fclose(f);
	(void)piece(piece_arg, f ? 0 : -LS_EUNKNOWN, NULL, 0);
}

static void
fake_hold(void *arg, void *piece_arg, bool hold)
{
	struct fake_backend *b = arg;

	(void)piece_arg;
	b->holds += hold;
	b->goes_on += !hold;
}

static void
fake_cancel(void *arg, void *piece_arg)
{
	struct fake_backend *b = arg;

	if (piece_arg == b->reading)
		b->cancelled++;
}

static void
fake_metrics(void *arg, struct evbuffer *out)
{
	(void)arg;
	(void)evbuffer_add_printf(out,
		"# HELP lockstep_agents Agents connected.\n"
		"# TYPE lockstep_agents gauge\nlockstep_agents 64\n");
}

static bool
fake_ready(void *arg, const char **ret_why)
{
	const struct fake_backend *b = arg;

	if (b->not_ready)
		*ret_why = b->not_ready;
	return b->not_ready == NULL;
}

void
fake_backend_init(struct fake_backend *b, const char *dir, struct ls_backend *ret)
{
	memset(b, 0, sizeof(*b));
	(void)snprintf(b->dir, sizeof(b->dir), "%s", dir);
	*ret = (struct ls_backend){ b, fake_ask, fake_export, fake_read, fake_cancel,
		fake_hold, fake_metrics, fake_ready };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/identity_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/identity/keyvalue.h"
#include "proto/base/json.h"
#include "proto/base/text.h"

struct feed_name {
	const char *name;
	enum ls_identity_field field;
};

static const struct feed_name identity_variables[] = {
#define LS_IDENTITY_VARIABLE(field, name) { name, LS_IDENTITY_##field },
#include "agent/identity/identity.def"
};

static const struct feed_name identity_labels[] = {
#define LS_IDENTITY_LABEL(field, label) { label, LS_IDENTITY_##field },
#include "agent/identity/identity.def"
};

/* Positions of ls_identity_ring.from, as in the ring's header. */
enum { FEED_FROM_JOB = 0, FEED_FROM_SLICE = 5 };

/* Who is fed by a parser of texts. */
struct feed {
	struct ls_identity *id;
	enum ls_identity_source source;
	unsigned tag;
	const struct feed_name *label; /* the one that is wanted now */
};

/* A parser of labels: how many of them were malformed. */
typedef size_t feed_parser(const char *text, size_t len, ls_keyvalue_each *each,
	void *arg);

/* The number of names in a list with commas. */
static void
feed_workers(const struct feed *f, const char *list, size_t len)
{
	char text[24];
	size_t i, n = 1;

	if (len == 0)
		return;
	for (i = 0; i < len; i++)
		n += list[i] == ',';
	(void)snprintf(text, sizeof(text), "%zu", n);
	ls_identity_take(f->id, LS_IDENTITY_WORKERS, f->source, f->tag, text,
		strlen(text));
}

static void
feed_variable(void *arg, const struct ls_keyvalue *kv)
{
	const struct feed *f = arg;

	for (size_t i = 0;
		i < sizeof(identity_variables) / sizeof(identity_variables[0]); i++) {
		enum ls_identity_field field = identity_variables[i].field;

		if (!ls_keyvalue_is(kv, identity_variables[i].name))
			continue;
		if (f->source == LS_IDENTITY_FROM_RING &&
			(field == LS_IDENTITY_JOB || field == LS_IDENTITY_SLICE))
			continue; /* the ring's header has made up its mind on these */
		if (field == LS_IDENTITY_WORKERS)
			feed_workers(f, kv->value, kv->value_len);
		else
			ls_identity_take(f->id, field, f->source, f->tag, kv->value,
				kv->value_len);
	}
}

/* --- rings and environments ----------------------------------------------- */

static void
feed_ring(const struct feed *f, const struct ls_identity_ring *r)
{
	const struct ls_worker_info *w = r->info;

	if (r->from[FEED_FROM_JOB] != LS_RING_FROM_NONE &&
		r->from[FEED_FROM_JOB] != LS_RING_FROM_DEFAULT)
		ls_identity_take(f->id, LS_IDENTITY_JOB, f->source, f->tag, w->job,
			strlen(w->job));
	if (r->from[FEED_FROM_SLICE] != LS_RING_FROM_NONE)
		ls_identity_take(f->id, LS_IDENTITY_SLICE, f->source, f->tag, w->slice,
			strlen(w->slice));
	(void)ls_keyvalue_environ(r->env, strlen(r->env), '\n', feed_variable,
		(void *)f);
}

void
ls_identity_rings(struct ls_identity *id, const struct ls_identity_ring *rings,
	size_t count)
{
	struct feed f = { .id = id, .source = LS_IDENTITY_FROM_RING };

	ls_identity_forget(id, f.source, f.tag);
	for (size_t i = 0; i < count; i++)
		feed_ring(&f, &rings[i]);
}

void
ls_identity_environ_begin(struct ls_identity *id)
{
	ls_identity_forget(id, LS_IDENTITY_FROM_ENVIRONMENT, 0);
}

/* Only names of these families; the rest of an environment is the job's own business.
 */
static void
feed_environ(void *arg, const struct ls_keyvalue *kv)
{
	static const char *const families[] = { "TPU_", "MEGASCALE_", "JOB" };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		size_t len = strlen(families[i]);

		if (kv->key_len >= len && memcmp(kv->key, families[i], len) == 0)
			feed_variable(arg, kv);
	}
}

void
ls_identity_environ_add(struct ls_identity *id, const char *text, size_t len)
{
	struct feed f = { .id = id, .source = LS_IDENTITY_FROM_ENVIRONMENT };

	/* others: not looked at */
	(void)ls_keyvalue_environ(text, len, '\0', feed_environ, &f);
}

/* --- labels and sub-slices ------------------------------------------------ */

/* Offers subslice.<topology> = id; false if the topology is none. */
static bool
feed_subslice(const struct feed *f, const char *topology, size_t topology_len,
	const char *value, size_t len)
{
	char key[LS_IDENTITY_KEY_MAX_BYTES], text[LS_IDENTITY_VALUE_MAX_BYTES];

	if (topology_len == 0 || topology_len > 16 || len == 0)
		return false;
	for (size_t i = 0; i < topology_len; i++) {
		if (topology[i] != 'x' && (topology[i] < '0' || topology[i] > '9'))
			return false;
	}
	(void)snprintf(key, sizeof(key), "subslice.%.*s", (int)topology_len, topology);
	(void)ls_text_escape(text, sizeof(text), value, len);
	ls_identity_offer(f->id, key, f->source, f->tag, text);
	return true;
}

/* The label gke-tpu-slice-4x4-id, whatever stands before a slash. */
static void
feed_subslice_label(const struct feed *f, const struct ls_keyvalue *kv)
{
	static const char begin[] = "gke-tpu-slice-", end[] = "-id";
	const char *slash = memchr(kv->key, '/', kv->key_len);
	const char *name = slash != NULL ? slash + 1 : kv->key;
	size_t len = kv->key_len - (size_t)(name - kv->key);
	size_t from = sizeof(begin) - 1, tail = sizeof(end) - 1;

	if (len > from + tail && memcmp(name, begin, from) == 0 &&
		memcmp(name + len - tail, end, tail) == 0)
		(void)feed_subslice(f, name + from, len - from - tail,
			/* of a topology, or of no interest */
			kv->value, kv->value_len);
}

static void
feed_label(void *arg, const struct ls_keyvalue *kv)
{
	const struct feed *f = arg;

	if (f->label == NULL)
		feed_subslice_label(f, kv);
	else if (ls_keyvalue_is(kv, f->label->name))
		ls_identity_take(f->id, f->label->field, f->source, f->tag, kv->value,
			kv->value_len);
}

/* Of two labels for one field, the one that stands first in identity.def counts. */
static void
feed_labels(struct feed *f, feed_parser *parse, const char *name, const char *text,
	size_t len)
{
	if (parse(text, len, feed_label, f) > 0)
		ls_identity_refuse(f->id, name, f->source, f->tag, text, len);
	for (size_t i = 0; i < sizeof(identity_labels) / sizeof(identity_labels[0]);
		i++) {
		f->label = &identity_labels[i];
		if (!ls_identity_has(f->id, f->label->field, f->source, f->tag))
			(void)parse(text, len, feed_label, f);
	}
}

void
ls_identity_labels(struct ls_identity *id, const char *text, size_t len)
{
	struct feed f = { .id = id, .source = LS_IDENTITY_FROM_LABELS_FILE };

	ls_identity_forget(id, f.source, f.tag);
	if (text != NULL)
		feed_labels(&f, ls_keyvalue_labels_file, "labels", text, len);
}

/* {"4x4": "id", ...} */
static void
feed_subslices(const struct feed *f, const char *text, size_t len)
{
	json_t *object = NULL, *value;
	const char *key;
	char why[160];

	if (ls_json_parse(text, len, &object, why, sizeof(why)) != 0 ||
		!json_is_object(object)) {
		ls_identity_refuse(f->id, "subslice", f->source, f->tag, text, len);
		json_decref(object);
		return;
	}
	json_object_foreach(object, key, value)
	{
		if (!json_is_string(value) ||
			!feed_subslice(f, key, strlen(key), json_string_value(value),
				json_string_length(value)))
			ls_identity_refuse(f->id, "subslice", f->source, f->tag, key,
				strlen(key));
	}
	json_decref(object);
}

void
ls_identity_stall(struct ls_identity *id, unsigned n, const char *text)
{
	char key[LS_IDENTITY_KEY_MAX_BYTES];

	(void)snprintf(key, sizeof(key), "stall.%u", n);
	ls_identity_forget(id, LS_IDENTITY_FROM_STALL, n);
	if (text[0] != '\0')
		ls_identity_offer(id, key, LS_IDENTITY_FROM_STALL, n, text);
}

/* --- the metadata server -------------------------------------------------- */

/* How many hosts, and our own entry, at the place of our number. */
static void
feed_endpoints(const struct feed *f, const char *text, size_t len)
{
	const char *worker = ls_identity_get(f->id, LS_IDENTITY_WORKER), *comma;
	unsigned long skip;

	feed_workers(f, text, len);
	if (worker == NULL)
		return;
	for (skip = strtoul(worker, NULL, 10); skip > 0; skip--) {
		comma = memchr(text, ',', len);
		if (comma == NULL)
			return;
		len -= (size_t)(comma + 1 - text);
		text = comma + 1;
	}
	comma = memchr(text, ',', len);
	ls_identity_take(f->id, LS_IDENTITY_ENDPOINT, f->source, f->tag, text,
		comma != NULL ? (size_t)(comma - text) : len);
}

/* "projects/N/zones/ZONE" */
static void
feed_zone(const struct feed *f, const char *text, size_t len)
{
	size_t at = len;

	while (at > 0 && text[at - 1] != '/')
		at--;
	ls_identity_take(f->id, LS_IDENTITY_ZONE, f->source, f->tag, text + at,
		len - at);
}

static void
feed_metadata(struct feed *f, enum ls_metadata_item item, const char *text, size_t len)
{
	static const enum ls_identity_field fields[] = {
		[LS_METADATA_ID] = LS_IDENTITY_INSTANCE_ID,
		[LS_METADATA_WORKER] = LS_IDENTITY_WORKER,
		[LS_METADATA_ACCELERATOR] = LS_IDENTITY_ACCELERATOR
	};

	switch (item) {
	case LS_METADATA_ID:
	case LS_METADATA_WORKER:
	case LS_METADATA_ACCELERATOR:
		ls_identity_take(f->id, fields[item], f->source, f->tag, text, len);
		break;
	case LS_METADATA_ZONE:
		feed_zone(f, text, len);
		break;
	case LS_METADATA_ENDPOINTS:
		feed_endpoints(f, text, len);
		break;
	case LS_METADATA_TPU_ENV:
		if (ls_keyvalue_tpu_env(text, len, feed_variable, f) > 0)
			ls_identity_refuse(f->id, "tpu-env", f->source, f->tag, text,
				len);
		break;
	case LS_METADATA_LABELS:
		feed_labels(f, ls_keyvalue_labels, "kube-labels", text, len);
		break;
	case LS_METADATA_SUBSLICES:
		feed_subslices(f, text, len);
		break;
	case LS_METADATA_ITEM_COUNT:
	default:
		LS_ASSERT(item < LS_METADATA_ITEM_COUNT);
	}
}

void
ls_identity_metadata(struct ls_identity *id, enum ls_metadata_item item,
	const char *text, size_t len)
{
	struct feed f = { .id = id, .source = LS_IDENTITY_FROM_METADATA, .tag = item };

	if (item == LS_METADATA_TPU_ENV)
		f.source = LS_IDENTITY_FROM_TPU_ENV;
	else if (item == LS_METADATA_LABELS)
		f.source = LS_IDENTITY_FROM_LABEL;
	ls_identity_forget(id, f.source, f.tag);
	while (text != NULL && len > 0 &&
		(text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (text != NULL && len > 0)
		feed_metadata(&f, item, text, len);
}

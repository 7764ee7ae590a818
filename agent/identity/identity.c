/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "agent/identity/identity_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/text.h"

enum identity_kind {
	IDENTITY_TEXT,
	IDENTITY_ANY, /* text that may be empty */
	IDENTITY_NUMBER,
	IDENTITY_GENERATION,
	IDENTITY_TOPOLOGY,
	IDENTITY_BOUNDS
};

static const struct {
	const char *key;
	enum identity_kind kind;
	const char *option;
} identity_fields[LS_IDENTITY_FIELD_COUNT] = {
#define LS_IDENTITY_FIELD(id, key, kind, option, help) { key, IDENTITY_##kind, option },
#include "agent/identity/identity.def"
};

static const char *const identity_sources[LS_IDENTITY_SOURCE_COUNT] = {
#define LS_IDENTITY_SOURCE(id, name, help) name,
#include "agent/identity/identity.def"
};

/* --- life and tables ------------------------------------------------------ */

struct ls_identity *
ls_identity_new(void)
{
	return calloc(1, sizeof(struct ls_identity));
}

void
ls_identity_free(struct ls_identity *id)
{
	free(id);
}

const char *
ls_identity_key(enum ls_identity_field field)
{
	LS_ASSERT((unsigned)field < LS_IDENTITY_FIELD_COUNT);
	return identity_fields[field].key;
}

const char *
ls_identity_source_name(enum ls_identity_source source)
{
	LS_ASSERT((unsigned)source < LS_IDENTITY_SOURCE_COUNT);
	return identity_sources[source];
}

enum ls_identity_field
ls_identity_field_of(const char *key)
{
	unsigned f = 0;

	while (f < LS_IDENTITY_FIELD_COUNT && strcmp(identity_fields[f].key, key) != 0)
		f++;
	return (enum ls_identity_field)f;
}

const char *
ls_identity_option(enum ls_identity_field field)
{
	return field < LS_IDENTITY_FIELD_COUNT ? identity_fields[field].option : "";
}

/* --- values --------------------------------------------------------------- */

static bool
identity_number(const char *text, char *dst, size_t size)
{
	uint64_t v;

	if (!ls_text_number(text, INT32_MAX, &v))
		return false;
	(void)snprintf(dst, size, "%llu", (unsigned long long)v);
	return true;
}

bool
ls_identity_sides(const char *text, char between, uint32_t ret_sides[LS_IDENTITY_AXES])
{
	for (unsigned axis = 0; axis < LS_IDENTITY_AXES; axis++)
		ret_sides[axis] = 1;
	for (unsigned axis = 0; axis < LS_IDENTITY_AXES; axis++) {
		uint64_t v = 0;

		text += ls_text_digits(text, SIZE_MAX, LS_TOPOLOGY_SIDE_MAX, &v);
		if (v == 0)
			return false;
		ret_sides[axis] = (uint32_t)v;
		if (*text == '\0')
			return axis > 0; /* two sides at least */
		if (*text++ != between)
			return false;
	}
	return false;
}

/* The value in the one way its kind is written; false if it is none. */
static bool
identity_parse(enum identity_kind kind, const char *text, char *dst, size_t size)
{
	uint32_t sides[LS_IDENTITY_AXES];
	int g;

	switch (kind) {
	case IDENTITY_NUMBER:
		return identity_number(text, dst, size);
	case IDENTITY_GENERATION:
		g = ls_generation_by_name(text);
		if (g < 0)
			return false;
		(void)snprintf(dst, size, "%s",
			ls_generation_info((enum ls_generation)g)->name);
		return true;
	case IDENTITY_TOPOLOGY:
		(void)snprintf(dst, size, "%s", text);
		return ls_identity_sides(text, 'x', sides);
	case IDENTITY_BOUNDS:
		if (!ls_identity_sides(text, ',', sides))
			return false;
		(void)snprintf(dst, size, "%u,%u,%u", (unsigned)sides[0],
			(unsigned)sides[1], (unsigned)sides[2]);
		return true;
	case IDENTITY_TEXT:
	case IDENTITY_ANY:
	default:
		return false; /* not parsed: identity_check */
	}
}

/* Checks and writes a value as it is kept; false if it is none of its kind. */
static bool
identity_check(enum identity_kind kind, const char *text, size_t len,
	char dst[LS_IDENTITY_VALUE_MAX_BYTES])
{
	char copy[LS_IDENTITY_VALUE_MAX_BYTES];

	if (kind == IDENTITY_TEXT || kind == IDENTITY_ANY) {
		(void)ls_text_escape(dst, LS_IDENTITY_VALUE_MAX_BYTES, text, len);
		return kind == IDENTITY_ANY || len > 0;
	}
	if (len >= sizeof(copy) || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return identity_parse(kind, copy, dst, LS_IDENTITY_VALUE_MAX_BYTES);
}

bool
ls_identity_is_valid(enum ls_identity_field field, const char *value)
{
	char kept[LS_IDENTITY_VALUE_MAX_BYTES];

	return value[0] == '\0' ||
		identity_check(identity_fields[field].kind, value, strlen(value), kept);
}

/* --- offers --------------------------------------------------------------- */

static size_t
identity_drop(struct ls_identity_offer *list, size_t count,
	enum ls_identity_source source, unsigned tag)
{
	size_t i, kept = 0;

	for (i = 0; i < count; i++) {
		if (list[i].source == source && list[i].tag == tag)
			continue;
		if (kept != i)
			list[kept] = list[i];
		kept++;
	}
	return kept;
}

void
ls_identity_forget(struct ls_identity *id, enum ls_identity_source source, unsigned tag)
{
	id->count = identity_drop(id->offer, id->count, source, tag);
	id->refused_count = identity_drop(id->refused, id->refused_count, source, tag);
}

/* Where the offer of a source for a key is; id->count: it made none. */
static size_t
identity_index(const struct ls_identity *id, const char *key,
	enum ls_identity_source source, unsigned tag)
{
	size_t i;

	for (i = 0; i < id->count; i++) {
		if (id->offer[i].source == source && id->offer[i].tag == tag &&
			strcmp(id->offer[i].key, key) == 0)
			break;
	}
	return i;
}

/* A new entry without a value at the end of a list; NULL: no room, which is counted. */
static struct ls_identity_offer *
identity_new(struct ls_identity *id, struct ls_identity_offer *list, size_t *count,
	size_t max, const char *key, enum ls_identity_source source, unsigned tag)
{
	struct ls_identity_offer *o = &list[*count];

	if (*count == max) {
		id->left_out++;
		return NULL;
	}
	*o = (struct ls_identity_offer){ .source = source, .tag = (uint8_t)tag };
	(void)snprintf(o->key, sizeof(o->key), "%s", key);
	++*count;
	return o;
}

void
ls_identity_refuse(struct ls_identity *id, const char *key,
	enum ls_identity_source source, unsigned tag, const char *text, size_t len)
{
	struct ls_identity_offer *r = identity_new(id, id->refused, &id->refused_count,
		LS_IDENTITY_REFUSED_KEPT, key, source, tag);

	if (r == NULL)
		return;
	(void)ls_text_escape(r->value, sizeof(r->value), text, len);
}

void
ls_identity_offer(struct ls_identity *id, const char *key,
	enum ls_identity_source source, unsigned tag, const char *value)
{
	size_t i = identity_index(id, key, source, tag);
	struct ls_identity_offer *o;

	if (i < id->count) {
		o = &id->offer[i];
		o->several = o->several || strcmp(o->value, value) != 0;
		return;
	}
	o = identity_new(id, id->offer, &id->count, LS_IDENTITY_OFFERS_MAX, key, source,
		tag);
	if (o != NULL)
		(void)snprintf(o->value, sizeof(o->value), "%s", value);
}

bool
ls_identity_has(const struct ls_identity *id, enum ls_identity_field field,
	enum ls_identity_source source, unsigned tag)
{
	return identity_index(id, identity_fields[field].key, source, tag) < id->count;
}

void
ls_identity_take(struct ls_identity *id, enum ls_identity_field field,
	enum ls_identity_source source, unsigned tag, const char *text, size_t len)
{
	char value[LS_IDENTITY_VALUE_MAX_BYTES];

	if (identity_check(identity_fields[field].kind, text, len, value))
		ls_identity_offer(id, identity_fields[field].key, source, tag, value);
	else if (len > 0)
		ls_identity_refuse(id, identity_fields[field].key, source, tag, text,
			len);
}

void
ls_identity_set(struct ls_identity *id, enum ls_identity_field field,
	enum ls_identity_source source, const char *value)
{
	ls_identity_forget(id, source, (unsigned)field);
	if (value[0] != '\0')
		ls_identity_take(id, field, source, (unsigned)field, value,
			strlen(value));
}

/* --- results -------------------------------------------------------------- */

const struct ls_identity_offer *
ls_identity_winner(const struct ls_identity *id, const char *key)
{
	const struct ls_identity_offer *best = NULL;

	for (size_t i = 0; i < id->count; i++) {
		const struct ls_identity_offer *o = &id->offer[i];

		if (!o->several && (best == NULL || o->source < best->source) &&
			strcmp(o->key, key) == 0)
			best = o;
	}
	return best;
}

const char *
ls_identity_find(const struct ls_identity *id, const char *key)
{
	const struct ls_identity_offer *o = ls_identity_winner(id, key);

	return o != NULL ? o->value : NULL;
}

const char *
ls_identity_get(const struct ls_identity *id, enum ls_identity_field field)
{
	return ls_identity_find(id, ls_identity_key(field));
}

const char *
ls_identity_source_of(const struct ls_identity *id, enum ls_identity_field field)
{
	const struct ls_identity_offer *o =
		ls_identity_winner(id, ls_identity_key(field));

	return o != NULL ? identity_sources[o->source] : NULL;
}

static int
identity_compare_keys(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	unsigned fx = ls_identity_field_of(x), fy = ls_identity_field_of(y);

	return fx != fy ? (fx > fy) - (fx < fy) : strcmp(x, y);
}

size_t
ls_identity_keys(const struct ls_identity *id, const char **ret_keys)
{
	size_t i, k, n = 0;

	for (i = 0; i < id->count; i++) {
		if (id->offer[i].several)
			continue;
		for (k = 0; k < n && strcmp(ret_keys[k], id->offer[i].key) != 0; k++)
			;
		if (k == n && n < LS_IDENTITY_FIELDS_MAX)
			ret_keys[n++] = id->offer[i].key;
	}
	qsort(ret_keys, n, sizeof(*ret_keys), identity_compare_keys);
	return n;
}

size_t
ls_identity_fields(const struct ls_identity *id, struct ls_wire_identity *ret,
	size_t max)
{
	const char *keys[LS_IDENTITY_FIELDS_MAX];
	size_t n = ls_identity_keys(id, keys), i;

	if (n > max)
		n = max;
	for (i = 0; i < n; i++) {
		const struct ls_identity_offer *o = ls_identity_winner(id, keys[i]);

		memset(&ret[i], 0, sizeof(ret[i]));
		memcpy(ret[i].key, o->key, sizeof(ret[i].key));
		memcpy(ret[i].value, o->value, sizeof(ret[i].value));
		(void)snprintf(ret[i].source, sizeof(ret[i].source), "%s",
			identity_sources[o->source]);
	}
	return n;
}

/* Over key, value and source of all fields: changes when one of them does. */
static uint64_t
identity_hash(const struct ls_identity *id)
{
	const char *keys[LS_IDENTITY_FIELDS_MAX];
	size_t n = ls_identity_keys(id, keys), i, part;
	uint64_t h = LS_HASH_START;

	for (i = 0; i < n; i++) {
		const struct ls_identity_offer *o = ls_identity_winner(id, keys[i]);
		const char *parts[] = { o->key, o->value, identity_sources[o->source] };

		for (part = 0; part < sizeof(parts) / sizeof(parts[0]); part++)
			h = ls_hash(h, parts[part], strlen(parts[part]) + 1);
	}
	return h;
}

bool
ls_identity_settle(struct ls_identity *id)
{
	uint64_t hash;

	ls_identity_derive(id);
	hash = identity_hash(id);
	if (hash == id->hash)
		return false;
	id->hash = hash;
	id->changes++;
	return true;
}

uint64_t
ls_identity_changes(const struct ls_identity *id)
{
	return id->changes;
}

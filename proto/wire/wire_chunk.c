/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items of the stream of chunks, written and read by hand: writing may not allocate,
 * and a body of 100 KiB is not copied for reading. What is written is what protobuf-c
 * would write; what is read, protobuf-c reads alike (both tested).
 *
 * Source: protobuf.dev, "Encoding": varints, tags (number << 3 | type), proto3 defaults
 *         absent.
 */
#include "config.h"
#include "proto/wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/base/hash.h"
#include "proto/base/text.h"
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire_decode.h"

_Static_assert((int)LS_LOST_SERIES_FULL == (int)LOCKSTEP__LOST__REASON__SERIES_FULL,
	"wire value");
_Static_assert((int)LS_LOST_REBOOT == (int)LOCKSTEP__LOST__REASON__REBOOT,
	"wire value");
_Static_assert((int)LS_LOST_DAMAGED == (int)LOCKSTEP__LOST__REASON__DAMAGED,
	"wire value");

enum chunk_wire_type {
	CHUNK_VARINT = 0,
	CHUNK_FIXED64 = 1,
	CHUNK_BYTES = 2,
	CHUNK_FIXED32 = 5
};

uint64_t
ls_wire_dictionary_hash(const char *group, const char *const *series, size_t count)
{
	uint64_t h = ls_hash(LS_HASH_START, group, strlen(group) + 1);

	for (size_t i = 0; i < count; i++)
		h = ls_hash(h, series[i], strlen(series[i]) + 1);
	return h;
}

/* --- writing -------------------------------------------------------------- */

/* Counts what does not fit too, so that one pass without a buffer tells a size. */
struct chunk_out {
	uint8_t *buf;
	size_t size, len;
};

static void
chunk_put(struct chunk_out *o, const void *bytes, size_t len)
{
	if (o->len <= o->size && len <= o->size - o->len && len > 0)
		memcpy(o->buf + o->len, bytes, len);
	o->len += len;
}

static void
chunk_put_varint(struct chunk_out *o, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	while (v >= 0x80) {
		b[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	b[n++] = (uint8_t)v;
	chunk_put(o, b, n);
}

static void
chunk_put_u64(struct chunk_out *o, unsigned field, uint64_t v)
{
	if (v == 0)
		return;
	chunk_put_varint(o, field << 3 | CHUNK_VARINT);
	chunk_put_varint(o, v);
}

static void
chunk_put_fixed64(struct chunk_out *o, unsigned field, uint64_t v)
{
	uint8_t b[8];
	size_t i;

	if (v == 0)
		return;
	for (i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(v >> (8 * i));
	chunk_put_varint(o, field << 3 | CHUNK_FIXED64);
	chunk_put(o, b, sizeof(b));
}

static void
chunk_put_bytes(struct chunk_out *o, unsigned field, const void *bytes, size_t len)
{
	chunk_put_varint(o, field << 3 | CHUNK_BYTES);
	chunk_put_varint(o, len);
	chunk_put(o, bytes, len);
}

static void
chunk_put_body(struct chunk_out *o, const struct ls_wire_chunk_item *item)
{
	size_t i;

	LS_ASSERT((unsigned)item->kind <= LS_WIRE_LOST);
	switch (item->kind) {
	case LS_WIRE_DICTIONARY:
		chunk_put_fixed64(o, 1, item->hash);
		if (item->group[0] != '\0')
			chunk_put_bytes(o, 2, item->group, strlen(item->group));
		for (i = 0; i < item->series_count; i++)
			chunk_put_bytes(o, 3, item->series[i], strlen(item->series[i]));
		return;
	case LS_WIRE_CHUNK:
		chunk_put_fixed64(o, 1, item->hash);
		chunk_put_u64(o, 2, item->t_first_mono_ns);
		chunk_put_u64(o, 3, item->t_last_mono_ns);
		chunk_put_u64(o, 4, item->rows);
		if (item->body_len > 0)
			chunk_put_bytes(o, 5, item->body, item->body_len);
		return;
	case LS_WIRE_LOST:
		if (item->group[0] != '\0')
			chunk_put_bytes(o, 1, item->group, strlen(item->group));
		chunk_put_u64(o, 2, item->t_first_mono_ns);
		chunk_put_u64(o, 3, item->t_last_mono_ns);
		chunk_put_u64(o, 4, item->samples);
		chunk_put_u64(o, 5, (uint64_t)item->reason);
		return;
	}
}

int
ls_wire_chunk_item_pack(const struct ls_wire_chunk_item *item, uint8_t *buf,
	size_t size, size_t *ret_len)
{
	struct chunk_out body = { 0 };
	struct chunk_out o = { buf,
		size < LS_CHUNK_ITEM_MAX_BYTES ? size : LS_CHUNK_ITEM_MAX_BYTES, 0 };

	if (item->series_count > LS_SERIES_PER_GROUP_MAX)
		return -EMSGSIZE;
	chunk_put_body(&body, item);
	chunk_put_u64(&o, 1, item->seq);
	chunk_put_varint(&o, ((unsigned)item->kind + 2) << 3 | CHUNK_BYTES);
	chunk_put_varint(&o, body.len);
	chunk_put_body(&o, item);
	if (o.len > o.size)
		return -EMSGSIZE;
	*ret_len = o.len;
	return 0;
}

/* --- reading -------------------------------------------------------------- */

struct chunk_in {
	const uint8_t *p;
	size_t left;
};

/* One field: its value is a number, or bytes in the buffer. */
struct chunk_field {
	uint64_t number;
	unsigned type;
	uint64_t value;
	struct chunk_in bytes;
};

static bool
chunk_get_varint(struct chunk_in *in, uint64_t *ret_v)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; shift < 64; shift += 7) {
		uint8_t b;

		if (in->left == 0)
			return false;
		b = *in->p++;
		in->left--;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*ret_v = v;
			return shift < 63 || b <= 1;
		}
	}
	return false;
}

static bool
chunk_get_fixed(struct chunk_in *in, size_t bytes, uint64_t *ret_v)
{
	uint64_t v = 0;
	size_t i;

	if (in->left < bytes)
		return false;
	for (i = 0; i < bytes; i++)
		v |= (uint64_t)in->p[i] << (8 * i);
	in->p += bytes;
	in->left -= bytes;
	*ret_v = v;
	return true;
}

/* The next field; false if there is no sense in it. Groups (types 3, 4) were never in
 * use. */
static bool
chunk_get_field(struct chunk_in *in, struct chunk_field *f)
{
	size_t before = in->left;
	uint64_t tag;

	if (!chunk_get_varint(in, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return false;
	if (before - in->left > 5)
		return false; /* longer than any 32 bits: protobuf-c refuses it, too */
	f->number = tag >> 3;
	f->type = (unsigned)(tag & 7);
	switch (f->type) {
	case CHUNK_VARINT:
		return chunk_get_varint(in, &f->value);
	case CHUNK_FIXED64:
		return chunk_get_fixed(in, 8, &f->value);
	case CHUNK_FIXED32:
		return chunk_get_fixed(in, 4, &f->value);
	case CHUNK_BYTES:
		if (!chunk_get_varint(in, &f->value) || f->value > in->left)
			return false;
		f->bytes = (struct chunk_in){ in->p, (size_t)f->value };
		in->p += f->bytes.left;
		in->left -= f->bytes.left;
		return true;
	default:
		return false;
	}
}

static bool
chunk_is(const struct chunk_field *f, uint64_t number, enum chunk_wire_type type)
{
	return f->number == number && f->type == (unsigned)type;
}

/* A field that a newer peer added. A known number with a foreign type is none, and is
 * refused. */
static bool
chunk_is_newer(const struct chunk_field *f, uint64_t last_known)
{
	return f->number > last_known;
}

static bool
chunk_get_group(struct ls_wire_chunk_item *item, const struct chunk_in *bytes)
{
	if (bytes->left > 0 &&
		!ls_text_is_name((const char *)bytes->p, bytes->left,
			sizeof(item->group) - 1))
		return false;
	memcpy(item->group, bytes->p, bytes->left);
	item->group[bytes->left] = '\0';
	return true;
}

/* --- reading a dictionary ------------------------------------------------- */

/* First pass: the group, the hash, and how much room the series take. */
static int
chunk_count_series(struct chunk_in in, struct ls_wire_chunk_item *item,
	size_t *ret_bytes, const char **ret_why)
{
	struct chunk_field f = { 0 };

	while (in.left > 0) {
		if (!chunk_get_field(&in, &f))
			return ls_wire_fail(-LS_EPARSE, "not a dictionary", ret_why);
		if (chunk_is(&f, 1, CHUNK_FIXED64)) {
			item->hash = f.value;
		} else if (chunk_is(&f, 2, CHUNK_BYTES)) {
			if (!chunk_get_group(item, &f.bytes))
				return ls_wire_fail(-LS_ERANGE, "group is not a name",
					ret_why);
		} else if (chunk_is(&f, 3, CHUNK_BYTES)) {
			if (++item->series_count > LS_SERIES_PER_GROUP_MAX)
				return ls_wire_fail(-LS_ELIMIT, "too many series",
					ret_why);
			if (!ls_text_is_name((const char *)f.bytes.p, f.bytes.left,
				    LS_SERIES_TEXT_MAX_BYTES - 1))
				return ls_wire_fail(-LS_ERANGE, "series is not a name",
					ret_why);
			*ret_bytes += f.bytes.left + 1;
		} else if (!chunk_is_newer(&f, 3)) {
			return ls_wire_fail(-LS_EPARSE, "type of a field", ret_why);
		}
	}
	return 0;
}

/* Second pass, over fields that were seen to be whole. */
static int
chunk_copy_series(struct chunk_in in, struct ls_wire_chunk_item *item, size_t bytes)
{
	struct chunk_field f = { 0 };
	size_t n = 0;
	char *text;

	item->arena = malloc(item->series_count * sizeof(*item->series) + bytes);
	if (item->arena == NULL)
		return -ENOMEM;
	item->series = item->arena;
	text = (char *)(item->series + item->series_count);
	while (chunk_get_field(&in, &f)) {
		if (!chunk_is(&f, 3, CHUNK_BYTES))
			continue;
		memcpy(text, f.bytes.p, f.bytes.left);
		text[f.bytes.left] = '\0';
		item->series[n++] = text;
		text += f.bytes.left + 1;
	}
	return 0;
}

/* True if a series is there twice. Hashes are compared first: 512 series, 131,000
 * pairs. */
static bool
chunk_has_twin(const struct ls_wire_chunk_item *item)
{
	uint64_t hash[LS_SERIES_PER_GROUP_MAX];
	size_t i, k;

	for (i = 0; i < item->series_count; i++) {
		hash[i] = ls_wire_dictionary_hash(item->series[i], NULL, 0);
		for (k = 0; k < i; k++)
			if (hash[k] == hash[i] &&
				strcmp(item->series[k], item->series[i]) == 0)
				return true;
	}
	return false;
}

static int
chunk_read_dictionary(struct chunk_in in, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	size_t bytes = 0;
	int rc = chunk_count_series(in, item, &bytes, ret_why);

	if (rc != 0)
		return rc;
	if (item->group[0] == '\0')
		return ls_wire_fail(-LS_ERANGE, "dictionary of no group", ret_why);
	if (item->series_count == 0)
		return ls_wire_fail(-LS_ERANGE, "dictionary without series", ret_why);
	rc = chunk_copy_series(in, item, bytes);
	if (rc != 0)
		return ls_wire_fail(rc, "out of memory", ret_why);
	if (ls_wire_dictionary_hash(item->group, item->series, item->series_count) !=
		item->hash)
		return ls_wire_fail(-LS_ECORRUPT, "hash of a dictionary", ret_why);
	if (chunk_has_twin(item))
		return ls_wire_fail(-LS_EPARSE, "a series twice", ret_why);
	return 0;
}

/* --- reading the others --------------------------------------------------- */

static int
chunk_read_chunk(struct chunk_in in, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	struct chunk_field f = { 0 };

	while (in.left > 0) {
		if (!chunk_get_field(&in, &f))
			return ls_wire_fail(-LS_EPARSE, "not a chunk", ret_why);
		if (chunk_is(&f, 1, CHUNK_FIXED64)) {
			item->hash = f.value;
		} else if (chunk_is(&f, 2, CHUNK_VARINT)) {
			item->t_first_mono_ns = f.value;
		} else if (chunk_is(&f, 3, CHUNK_VARINT)) {
			item->t_last_mono_ns = f.value;
		} else if (chunk_is(&f, 4, CHUNK_VARINT)) {
			if (f.value > LS_CHUNK_ROWS_MAX)
				return ls_wire_fail(-LS_ELIMIT, "rows of a chunk",
					ret_why);
			item->rows = (uint32_t)f.value;
		} else if (chunk_is(&f, 5, CHUNK_BYTES)) {
			item->body = f.bytes.p;
			item->body_len = f.bytes.left;
		} else if (!chunk_is_newer(&f, 5)) {
			return ls_wire_fail(-LS_EPARSE, "type of a field", ret_why);
		}
	}
	if (item->rows == 0)
		return ls_wire_fail(-LS_ELIMIT, "chunk without rows", ret_why);
	if (item->t_first_mono_ns > item->t_last_mono_ns ||
		!ls_wire_time_ok(item->t_last_mono_ns))
		return ls_wire_fail(-LS_ERANGE, "times of a chunk", ret_why);
	if (item->body_len == 0 || item->body_len > LS_CHUNK_BODY_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "size of a chunk", ret_why);
	return 0;
}

static int
chunk_read_lost(struct chunk_in in, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	struct chunk_field f = { 0 };

	while (in.left > 0) {
		if (!chunk_get_field(&in, &f))
			return ls_wire_fail(-LS_EPARSE, "not a loss", ret_why);
		if (chunk_is(&f, 1, CHUNK_BYTES)) {
			if (!chunk_get_group(item, &f.bytes))
				return ls_wire_fail(-LS_ERANGE, "group is not a name",
					ret_why);
		} else if (chunk_is(&f, 2, CHUNK_VARINT)) {
			item->t_first_mono_ns = f.value;
		} else if (chunk_is(&f, 3, CHUNK_VARINT)) {
			item->t_last_mono_ns = f.value;
		} else if (chunk_is(&f, 4, CHUNK_VARINT)) {
			item->samples = f.value;
		} else if (chunk_is(&f, 5, CHUNK_VARINT)) {
			/* a reason added by a newer agent: the loss still counts */
			item->reason = (uint32_t)f.value < LS_LOST_REASON_COUNT
				? (enum ls_wire_lost_reason)(uint32_t)f.value
				: LS_LOST_UNKNOWN;
		} else if (!chunk_is_newer(&f, 5)) {
			return ls_wire_fail(-LS_EPARSE, "type of a field", ret_why);
		}
	}
	if (!ls_wire_time_ok(item->t_first_mono_ns) ||
		!ls_wire_time_ok(item->t_last_mono_ns) ||
		(item->t_last_mono_ns != 0 &&
			item->t_first_mono_ns > item->t_last_mono_ns))
		return ls_wire_fail(-LS_ERANGE, "times of a loss", ret_why);
	return 0;
}

static int
chunk_read_item(struct chunk_in in, struct ls_wire_chunk_item *item,
	const char **ret_why)
{
	struct chunk_in body = { NULL, 0 };
	struct chunk_field f = { 0 };
	uint64_t kind = 0;

	while (in.left > 0) {
		if (!chunk_get_field(&in, &f))
			return ls_wire_fail(-LS_EPARSE, "not a valid message", ret_why);
		if (chunk_is(&f, 1, CHUNK_VARINT)) {
			item->seq = f.value;
		} else if (f.number >= 2 && f.number <= 4 && f.type == CHUNK_BYTES) {
			if (kind != 0)
				return ls_wire_fail(-LS_EPARSE, "item of two kinds",
					ret_why);
			kind = f.number;
			body = f.bytes;
		} else if (!chunk_is_newer(&f, 4)) {
			return ls_wire_fail(-LS_EPARSE, "type of a field", ret_why);
		}
	}
	if (item->seq == 0)
		return ls_wire_fail(-LS_ERANGE, "item without a number", ret_why);
	switch (kind) {
	case 2:
		item->kind = LS_WIRE_DICTIONARY;
		return chunk_read_dictionary(body, item, ret_why);
	case 3:
		item->kind = LS_WIRE_CHUNK;
		return chunk_read_chunk(body, item, ret_why);
	case 4:
		item->kind = LS_WIRE_LOST;
		return chunk_read_lost(body, item, ret_why);
	default:
		return ls_wire_fail(-LS_EVERSION, "item of no known kind", ret_why);
	}
}

int
ls_wire_chunk_item_unpack(const uint8_t *buf, size_t len,
	struct ls_wire_chunk_item *ret_item, const char **ret_why)
{
	struct ls_wire_chunk_item item = { 0 };
	struct chunk_in in = { buf, len };
	int rc;

	if (len > LS_CHUNK_ITEM_MAX_BYTES)
		return ls_wire_fail(-LS_ELIMIT, "item is too long", ret_why);
	rc = chunk_read_item(in, &item, ret_why);
	if (rc != 0) {
		ls_wire_chunk_item_clear(&item);
		return rc;
	}
	*ret_item = item;
	return 0;
}

uint64_t
ls_wire_item_number(const uint8_t *buf, size_t len)
{
	struct chunk_in in = { buf, len };
	struct chunk_field f = { 0 };
	uint64_t seq = 0;

	while (in.left > 0 && chunk_get_field(&in, &f)) {
		if (chunk_is(&f, 1, CHUNK_VARINT))
			seq = f.value;
	}
	return seq;
}

void
ls_wire_chunk_item_clear(struct ls_wire_chunk_item *item)
{
	free(item->arena);
	memset(item, 0, sizeof(*item));
}

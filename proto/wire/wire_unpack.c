/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking of messages as they usually are. protobuf-c finds each field by a search,
 * and goes over a message twice with a note of each field: that was a third of what the
 * collector's loop executed. Here, what is not usual is left to it: unknown fields, a
 * field twice, lists that are not packed, foreign wire types, errors.
 */
#include "config.h"
#include "proto/wire/wire_decode.h"

#include <stddef.h>
#include <string.h>
#include "proto/base/bytes.h"

#define UNPACK_FIELDS_MAX 24 /* of one message; beyond: not usual */
#define UNPACK_VARINT_MAX_BYTES 10
#define UNPACK_LENGTH_MAX_BYTES 5
/* 100 KiB, which stay in the buffer: Chunk.body, its field 5 */
#define UNPACK_CHUNK_BODY (&lockstep__chunk__descriptor.fields[4])

enum { UNPACK_VARINT = 0, UNPACK_FIXED64 = 1, UNPACK_LENGTH = 2, UNPACK_FIXED32 = 5 };

struct unpack_in {
	const uint8_t *p, *end;
};

/* A varint of 64 bits at most; false: there is none. */
static inline __attribute__((always_inline)) bool
unpack_varint(struct unpack_in *in, uint64_t *ret_value)
{
	uint64_t v = 0;
	unsigned shift;

	if (in->p < in->end && *in->p < 0x80) { /* most are small */
		*ret_value = *in->p++;
		return true;
	}
	for (shift = 0; shift < 7 * UNPACK_VARINT_MAX_BYTES && in->p < in->end;
		shift += 7) {
		uint8_t byte = *in->p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (shift == 63 && byte > 1)
			return false; /* more than 64 bits */
		if ((byte & 0x80) == 0) {
			*ret_value = v;
			return true;
		}
	}
	return false;
}

/* A tag of one or two bytes, in its shortest form: all of ours; 0: another one. */
static inline __attribute__((always_inline)) uint32_t
unpack_tag(struct unpack_in *in)
{
	uint32_t tag = in->p < in->end ? *in->p++ : 0;

	if ((tag & 0x80) == 0)
		return tag;
	if (in->p == in->end || *in->p == 0 || *in->p >= 0x80)
		return 0;
	return (tag & 0x7f) | (uint32_t)*in->p++ << 7;
}

/* What follows a length, taken off in. */
static inline __attribute__((always_inline)) bool
unpack_bytes(struct unpack_in *in, struct unpack_in *ret_bytes)
{
	const uint8_t *begin = in->p;
	uint64_t len;

	if (!unpack_varint(in, &len) || in->p - begin > UNPACK_LENGTH_MAX_BYTES ||
		len > (size_t)(in->end - in->p))
		return false;
	*ret_bytes = (struct unpack_in){ in->p, in->p + len };
	in->p += len;
	return true;
}

/* The field of a tag, if it is a known one of this message: numbers are given without
 * holes. */
static const ProtobufCFieldDescriptor *
unpack_field(const ProtobufCMessageDescriptor *type, uint32_t tag)
{
	uint32_t id = tag >> 3;

	if (id == 0 || id > type->n_fields || type->fields[id - 1].id != id)
		return NULL;
	return &type->fields[id - 1];
}

/* How values of a type lie in a message (bytes; 0: a type that is not usual here) and
 * on the wire. */
struct unpack_kind {
	uint8_t size, wire;
};

static const struct unpack_kind unpack_kinds[] = {
	[PROTOBUF_C_TYPE_INT32] = { sizeof(uint32_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_SINT32] = { sizeof(uint32_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_UINT32] = { sizeof(uint32_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_ENUM] = { sizeof(uint32_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_INT64] = { sizeof(uint64_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_SINT64] = { sizeof(uint64_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_UINT64] = { sizeof(uint64_t), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_BOOL] = { sizeof(protobuf_c_boolean), UNPACK_VARINT },
	[PROTOBUF_C_TYPE_FIXED64] = { sizeof(uint64_t), UNPACK_FIXED64 },
	[PROTOBUF_C_TYPE_DOUBLE] = { sizeof(double), UNPACK_FIXED64 },
	[PROTOBUF_C_TYPE_STRING] = { sizeof(char *), UNPACK_LENGTH },
	[PROTOBUF_C_TYPE_BYTES] = { sizeof(ProtobufCBinaryData), UNPACK_LENGTH },
	[PROTOBUF_C_TYPE_MESSAGE] = { sizeof(ProtobufCMessage *), UNPACK_LENGTH },
};

_Static_assert(sizeof(unpack_kinds) / sizeof(unpack_kinds[0]) ==
		PROTOBUF_C_TYPE_MESSAGE + 1,
	"all types");

/* Stores a varint as its type has it: protobuf-c takes the low 32 bits of what is to
 * have 32. */
static void
unpack_store(ProtobufCType type, uint64_t v, uint8_t *dst)
{
	uint32_t low = (uint32_t)v;
	protobuf_c_boolean is = v != 0;

	if (type == PROTOBUF_C_TYPE_BOOL) {
		memcpy(dst, &is, sizeof(is));
		return;
	}
	if (type == PROTOBUF_C_TYPE_SINT64)
		v = v >> 1 ^ (0 - (v & 1));
	else if (type == PROTOBUF_C_TYPE_SINT32)
		low = low >> 1 ^ (0 - (low & 1));
	if (unpack_kinds[type].size == sizeof(low))
		memcpy(dst, &low, sizeof(low));
	else
		memcpy(dst, &v, sizeof(v));
}

static ProtobufCMessage *unpack_message(const ProtobufCMessageDescriptor *type,
	struct unpack_in in, struct ls_arena *arena);

/* A string, bytes or a message. */
static bool
unpack_piece(const ProtobufCFieldDescriptor *f, struct unpack_in bytes,
	struct ls_arena *arena, void *dst)
{
	size_t len = (size_t)(bytes.end - bytes.p);
	ProtobufCBinaryData data = { len, NULL };
	void *piece;

	if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		piece = unpack_message(f->descriptor, bytes, arena);
	} else if (f == UNPACK_CHUNK_BODY) {
		memcpy(&piece, &bytes.p, sizeof(piece)); /* only read from */
	} else {
		piece = ls_arena_take(arena, len + (f->type == PROTOBUF_C_TYPE_STRING));
		if (piece != NULL && len > 0)
			memcpy(piece, bytes.p, len);
		if (piece != NULL && f->type == PROTOBUF_C_TYPE_STRING)
			((char *)piece)[len] = '\0';
	}
	if (piece == NULL)
		return false;
	if (f->type != PROTOBUF_C_TYPE_BYTES) {
		memcpy(dst, &piece, sizeof(piece));
		return true;
	}
	data.data = len > 0 ? piece : NULL;
	memcpy(dst, &data, sizeof(data));
	return true;
}

/* Numbers of a packed list, as many as there is room for in `list`; false: they do not
 * end with the bytes. */
static bool
unpack_numbers(ProtobufCType type, struct unpack_in in, uint8_t *list)
{
	size_t size = unpack_kinds[type].size;
	uint64_t v;

	/* Most numbers are these: without a look at the type of each. */
	if (type == PROTOBUF_C_TYPE_UINT64) {
		for (; in.p < in.end; list += sizeof(v)) {
			if (!unpack_varint(&in, &v))
				return false;
			memcpy(list, &v, sizeof(v));
		}
		return true;
	}
	for (; in.p < in.end; list += size) {
		if (!unpack_varint(&in, &v))
			return false;
		unpack_store(type, v, list);
	}
	return true;
}

/* A packed list; its count tells that it was there, so an empty one is not usual. */
static bool
unpack_packed(const ProtobufCFieldDescriptor *f, struct unpack_in in,
	struct ls_arena *arena, uint8_t *m)
{
	size_t len = (size_t)(in.end - in.p), n = 0, i;
	const uint8_t *p;
	uint8_t *list;
	uint64_t v;

	if (unpack_kinds[f->type].wire == UNPACK_FIXED64) {
		n = len / sizeof(v);
		if (n * sizeof(v) != len)
			return false;
	} else {
		for (p = in.p; p < in.end; p++)
			n += *p < 0x80;
	}
	if (n == 0)
		return false;
	/* n <= len: no overflow */
	list = ls_arena_take(arena, n * unpack_kinds[f->type].size);
	if (list == NULL)
		return false;
	if (unpack_kinds[f->type].wire == UNPACK_VARINT &&
		!unpack_numbers(f->type, in, list))
		return false;
	for (i = 0; unpack_kinds[f->type].wire == UNPACK_FIXED64 && i < n; i++) {
		v = ls_bytes_get(in.p + i * sizeof(v), sizeof(v));
		memcpy(list + i * sizeof(v), &v, sizeof(v));
	}
	memcpy(m + f->offset, &list, sizeof(list));
	memcpy(m + f->quantifier_offset, &n, sizeof(n));
	return true;
}

/* A field that is there once. */
static bool
unpack_single(const ProtobufCFieldDescriptor *f, unsigned wire, struct unpack_in *in,
	struct ls_arena *arena, uint8_t *m)
{
	struct unpack_in bytes;
	uint64_t v;

	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		uint32_t other;

		memcpy(&other, m + f->quantifier_offset, sizeof(other));
		if (other != 0)
			return false;
		memcpy(m + f->quantifier_offset, &f->id, sizeof(f->id));
	} else if (f->label == PROTOBUF_C_LABEL_REQUIRED) {
		return false;
	} else if (f->label == PROTOBUF_C_LABEL_OPTIONAL &&
		f->type != PROTOBUF_C_TYPE_MESSAGE &&
		f->type != PROTOBUF_C_TYPE_STRING) {
		return false; /* with a flag of its own: none of our fields */
	}
	if (wire != unpack_kinds[f->type].wire || unpack_kinds[f->type].size == 0)
		return false;
	if (wire == UNPACK_VARINT) {
		if (!unpack_varint(in, &v))
			return false;
		unpack_store(f->type, v, m + f->offset);
		return true;
	}
	if (wire == UNPACK_FIXED64) {
		if (in->end - in->p < (ptrdiff_t)sizeof(v))
			return false;
		v = ls_bytes_get(in->p, sizeof(v));
		in->p += sizeof(v);
		memcpy(m + f->offset, &v, sizeof(v));
		return true;
	}
	return unpack_bytes(in, &bytes) && unpack_piece(f, bytes, arena, m + f->offset);
}

/* Room for n elements of a list that is not packed, behind its count, which stays 0. */
static bool
unpack_make_list(const ProtobufCFieldDescriptor *f, size_t n, struct ls_arena *arena,
	uint8_t *m)
{
	/* n: fewer than the message has bytes */
	void *list = ls_arena_take(arena, n * unpack_kinds[f->type].size);

	if (list == NULL)
		return false;
	memcpy(m + f->offset, &list, sizeof(list));
	return true;
}

/* One more element of such a list; those to come are counted where the first one is. */
static bool
unpack_element(const ProtobufCFieldDescriptor *f, uint32_t tag, struct unpack_in *in,
	struct ls_arena *arena, uint8_t *m)
{
	struct unpack_in bytes, ahead = *in;
	uint8_t *list;
	size_t n, more = 0;
	uint32_t next = tag;

	memcpy(&n, m + f->quantifier_offset, sizeof(n));
	if (n == 0) {
		/* Elements of a list follow each other. */
		while (next == tag) {
			more++;
			if (!unpack_bytes(&ahead, &bytes))
				return false;
			next = unpack_tag(&ahead); /* 0 at the end */
		}
		if (!unpack_make_list(f, more, arena, m))
			return false;
	}
	memcpy(&list, m + f->offset, sizeof(list));
	if (!unpack_bytes(in, &bytes) ||
		!unpack_piece(f, bytes, arena, list + n * unpack_kinds[f->type].size))
		return false;
	n++;
	memcpy(m + f->quantifier_offset, &n, sizeof(n));
	return true;
}

static bool
unpack_list(const ProtobufCFieldDescriptor *f, uint32_t tag, struct unpack_in *in,
	struct ls_arena *arena, uint8_t *m)
{
	struct unpack_in bytes;

	if ((tag & 7) != UNPACK_LENGTH)
		return false;
	if (unpack_kinds[f->type].size == 0)
		return false;
	if (unpack_kinds[f->type].wire != UNPACK_LENGTH)
		return unpack_bytes(in, &bytes) && unpack_packed(f, bytes, arena, m);
	return unpack_element(f, tag, in, arena, m);
}

static ProtobufCMessage *
unpack_message(const ProtobufCMessageDescriptor *type, struct unpack_in in,
	struct ls_arena *arena)
{
	ProtobufCMessage *m;
	uint32_t seen = 0, tag, last = 0;

	if (type->n_fields > UNPACK_FIELDS_MAX || type->message_init == NULL)
		return NULL;
	m = ls_arena_take(arena, type->sizeof_message);
	if (m == NULL)
		return NULL;
	type->message_init(m);
	while (in.p < in.end) {
		const ProtobufCFieldDescriptor *f =
			unpack_field(type, tag = unpack_tag(&in));
		bool ok;

		/* A field comes once; a list that is not packed, in one go. */
		if (f == NULL ||
			((seen & 1u << f->id) != 0 &&
				(tag != last || f->label != PROTOBUF_C_LABEL_REPEATED ||
					unpack_kinds[f->type].wire != UNPACK_LENGTH)))
			return NULL;
		seen |= 1u << f->id;
		last = tag;
		ok = f->label == PROTOBUF_C_LABEL_REPEATED
			? unpack_list(f, tag, &in, arena, (uint8_t *)m)
			: unpack_single(f, tag & 7, &in, arena, (uint8_t *)m);
		if (!ok)
			return NULL;
	}
	return m;
}

ProtobufCMessage *
ls_wire_unpack_usual(const ProtobufCMessageDescriptor *type, const uint8_t *buf,
	size_t len, struct ls_arena *arena)
{
	return unpack_message(type, (struct unpack_in){ buf, buf + len }, arena);
}

/* --- the outer fields of an item ------------------------------------------ */

/* Goes over a value of any type; *ret_v is set for a varint. Groups (types 3, 4) were
 * never in use. */
static bool
unpack_skip(struct unpack_in *in, unsigned wire, uint64_t *ret_v)
{
	size_t bytes = wire == UNPACK_FIXED64 ? 8 : 4;
	struct unpack_in piece;

	if (wire == UNPACK_VARINT)
		return unpack_varint(in, ret_v);
	if (wire == UNPACK_LENGTH)
		return unpack_bytes(in, &piece);
	if ((wire != UNPACK_FIXED64 && wire != UNPACK_FIXED32) ||
		(size_t)(in->end - in->p) < bytes)
		return false;
	in->p += bytes;
	return true;
}

bool
ls_wire_scan(const uint8_t *buf, size_t len, uint64_t *ret_seq, size_t *ret_kinds)
{
	struct unpack_in in = { buf, buf + len };
	uint64_t tag, v = 0;

	*ret_seq = *ret_kinds = 0;
	while (in.p < in.end) {
		if (!unpack_varint(&in, &tag) || tag >> 3 == 0 ||
			!unpack_skip(&in, (unsigned)(tag & 7), &v))
			return false;
		if (tag == (1 << 3 | UNPACK_VARINT))
			*ret_seq = v;
		*ret_kinds += tag >> 3 >= 2 && tag >> 3 <= 4;
	}
	return true;
}

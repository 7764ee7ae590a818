/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_decode - what the files of wire share: unpacking into an arena, and small
 * checks.
 *
 * Owner:   pure functions on the caller's buffers.
 * Units:   ns.
 * Errors:  as in wire.h.
 * Limits:  memory for decoding: LS_WIRE_ARENA_FACTOR times the input, and
 *          LS_WIRE_ARENA_BASE_BYTES.
 */
#ifndef LS_PROTO_WIRE_DECODE_H
#define LS_PROTO_WIRE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <protobuf-c/protobuf-c.h>
#include "proto/wire/arena.h"
#include "proto/limits.h"
#include "proto/lockstep.pb-c.h"
#include "proto/wire/wire.h"

/* Stores why (where asked for) and returns rc. */
int ls_wire_fail(int rc, const char *why, const char **ret_why);

/*
 * Unpacks a message into an arena: *arena, or a new one, if that is NULL; it is the
 * caller's then, even if this fails. -LS_EPARSE, -LS_ELIMIT when it would need more
 * memory than its size justifies, -ENOMEM.
 */
int ls_wire_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *buf,
	size_t len, struct ls_arena **arena, ProtobufCMessage **ret_message,
	const char **ret_why) LS_MUSTCHECK;

/*
 * Reads an item of either stream without unpacking it: its number (field 1; 0: it has
 * none) and how many of its fields 2 to 4 are set; an item of one kind has one. False: a
 * field is cut off or of an unknown type; then both are of the fields before it.
 */
bool ls_wire_scan(const uint8_t *buf, size_t len, uint64_t *ret_seq, size_t *ret_kinds);

/* Where a message has the last string, bytes or message of that field; NULL: nowhere. */
struct ls_wire_bytes ls_wire_piece(struct ls_wire_bytes message, uint32_t field);

/* Packs a message into malloc'ed bytes; -LS_ELIMIT if it exceeds max_bytes. */
int ls_wire_pack(const ProtobufCMessage *m, size_t max_bytes, uint8_t **ret_buf,
	size_t *ret_len) LS_MUSTCHECK;

/* Copies a field of exactly size bytes; false if it has another length. */
bool ls_wire_copy_bytes(uint8_t *dst, size_t size, const ProtobufCBinaryData *src);

/* A view of bytes for packing; protobuf-c only reads them. */
ProtobufCBinaryData ls_wire_view(const uint8_t *bytes, size_t len);

/* Likewise for a string. */
char *ls_wire_text(const char *s);

/* --- fields of a message -------------------------------------------------- */

enum ls_wire_field_kind {
	LS_FIELD_END, /* of a table */
	LS_FIELD_NUMBER, /* of 4 or 8 bytes, the same on both sides */
	LS_FIELD_REASON, /* a number; beyond max (added by a newer peer) it is 0: unknown */
	LS_FIELD_FLAG,
	LS_FIELD_NAME, /* ls_text_is_name; -LS_ERANGE if not */
	LS_FIELD_TEXT, /* the same, but it may be empty */
	LS_FIELD_ID /* bytes of one length; -LS_EPARSE for any other */
};

/* A field that a message and a struct of ours both have. */
struct ls_wire_field {
	enum ls_wire_field_kind kind;
	size_t theirs, ours, size;
	uint64_t max; /* of a number, -LS_ERANGE beyond (negative is); 0: any */
	const char *why; /* it is refused */
};

#define LS_WIRE_FIELD(kind, message, theirs, type, ours, max, why)                \
	{                                                                         \
		LS_FIELD_##kind, offsetof(message, theirs), offsetof(type, ours), \
			sizeof(((type *)NULL)->ours), max, why                    \
	}

/* Fields of a struct of ours into an initialised message, which points into it. */
void ls_wire_put(const struct ls_wire_field *fields, const void *ours, void *message);

/* Fields of a message into a struct of ours, each checked. */
int ls_wire_take(const struct ls_wire_field *fields, const void *message, void *ours,
	const char **ret_why) LS_MUSTCHECK;

/* A list of initialised messages for packing; NULL: no room. */
void *ls_wire_messages(const ProtobufCMessageDescriptor *type, size_t count,
	struct ls_arena *arena);

/* Zoomed values and identity of a report (wire_series.c): into a message, and out of
 * it. */
int ls_wire_series_pack(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena) LS_MUSTCHECK;
int ls_wire_series_check(const Lockstep__Report *m, struct ls_wire_report *r,
	struct ls_arena *arena, const char **ret_why) LS_MUSTCHECK;

/* Hot values and live slots of a report (wire_hot.c); out of it: into lists that are
 * there already. */
int ls_wire_hot_pack(Lockstep__Report *m, const struct ls_wire_report *r,
	struct ls_arena *arena) LS_MUSTCHECK;
int ls_wire_hot_check(const Lockstep__Report *m, struct ls_wire_report *r,
	const char **ret_why) LS_MUSTCHECK;

/* True for a time that leaves room for later sums. */
static inline bool
ls_wire_time_ok(uint64_t t_ns)
{
	return t_ns <= LS_WIRE_TIME_MAX_NS;
}

#endif

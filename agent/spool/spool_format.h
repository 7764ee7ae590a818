/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool_format - the bytes of the spool file: its header and its records. Pure
 * functions.
 *
 * Owner:   pure functions; the caller owns the buffers.
 * Units:   bytes. Little-endian.
 * Errors:  -LS_EPARSE, -LS_ECORRUPT.
 * Limits:  LS_SPOOL_PAYLOAD_MAX_BYTES of payload.
 * Source:  proto/FORMAT.md, "Spool", with a byte example.
 */
#ifndef LS_AGENT_SPOOL_FORMAT_H
#define LS_AGENT_SPOOL_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include "proto/wire/wire.h"

#define LS_SPOOL_HEADER_BYTES 64u
#define LS_SPOOL_RECORD_BYTES 64u /* before the payload */
#define LS_SPOOL_PAYLOAD_MAX_BYTES (LS_GROUP_NAME_MAX_BYTES + LS_CHUNK_ITEM_MAX_BYTES)
#define LS_SPOOL_SEQ_MAX (UINT64_MAX / 2) /* more is no number but damage */

struct ls_spool_header {
	uint8_t boot[LS_BOOT_BYTES];
	uint8_t kernel_boot_id[16];
	uint64_t base; /* number of the first item in this file */
};

enum ls_spool_type {
	LS_SPOOL_STEPS = 1, /* items; the payload is the encoded Item */
	LS_SPOOL_GAP = 2,
	LS_SPOOL_END = 3,
	LS_SPOOL_ACK = 4, /* seq: acknowledged up to here */
	/* cursor of a ring: first_index is the next index, seq its End */
	LS_SPOOL_RING = 5,
	LS_SPOOL_FORGET = 6, /* the ring is no more */
	/* Stream two. Its items are numbered by their order; the payload is a group's name and the encoded
	   ChunkItem without its number. */
	LS_SPOOL_DICTIONARY = 7,
	LS_SPOOL_CHUNK = 8,
	LS_SPOOL_LOST = 9,
	/* seq: acknowledged up to here; the first of a file: numbers go on from here */
	LS_SPOOL_CHUNK_ACK = 10,
	LS_SPOOL_KNOWN = 11 /* hash: this dictionary was an item once */
};

struct ls_spool_record {
	enum ls_spool_type type;
	/* stream two: bytes of the payload that are the group's name */
	uint8_t name_len;
	uint64_t seq; /* of LOST: the reason */
	uint64_t first_index, count; /* stream two: least time, samples */
	uint8_t ring_id[LS_RING_ID_BYTES];
	uint64_t hash, t_last; /* stream two, in the place of the ring id */
	const uint8_t *payload;
	size_t len;
};

/* True for the items of stream one. */
static inline bool
ls_spool_is_item(const struct ls_spool_record *r)
{
	return r->type == LS_SPOOL_STEPS || r->type == LS_SPOOL_GAP ||
		r->type == LS_SPOOL_END;
}

/* True for the items of stream two. */
static inline bool
ls_spool_is_chunk_item(const struct ls_spool_record *r)
{
	return r->type == LS_SPOOL_DICTIONARY || r->type == LS_SPOOL_CHUNK ||
		r->type == LS_SPOOL_LOST;
}

/* False: no collector takes an item of stream one with these numbers. */
static inline bool
ls_spool_is_possible(uint64_t first_index, uint64_t count)
{
	return count <= LS_WIRE_NUMBER_MAX && first_index <= LS_WIRE_NUMBER_MAX - count;
}

/* Writes the header of a file. */
void ls_spool_header_put(uint8_t dst[LS_SPOOL_HEADER_BYTES],
	const struct ls_spool_header *h);

/* Reads it, also of version 1 (without stream two); -LS_EPARSE cut short or no spool,
 * -LS_ECORRUPT. */
int ls_spool_header_get(const uint8_t *bytes, size_t len,
	struct ls_spool_header *ret_header) LS_MUSTCHECK;

/* Writes what comes before the payload. */
void ls_spool_record_put(uint8_t dst[LS_SPOOL_RECORD_BYTES],
	const struct ls_spool_record *r);

/* Reads what comes before the payload, without the payload; -LS_ECORRUPT: not a record.
 */
int ls_spool_record_peek(const uint8_t bytes[LS_SPOOL_RECORD_BYTES],
	struct ls_spool_record *ret_record) LS_MUSTCHECK;

/*
 * Reads the record at the beginning of bytes; its payload points into them. -LS_EPARSE:
 * cut short, there may be more to come; -LS_ECORRUPT: not a record.
 */
int ls_spool_record_get(const uint8_t *bytes, size_t len,
	struct ls_spool_record *ret_record) LS_MUSTCHECK;

#endif

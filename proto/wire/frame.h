/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame - what SP puts around a request and its reply: the side that asks (REQ) and the
 * one that replies (REP).
 *
 * Each side greets with 8 bytes: 00 'S' 'P' 00, its protocol (16 bits, big-endian) and
 * 00 00. Then come frames: a length (64 bits, big-endian) and so many bytes, which
 * begin with routing words (32 bits, big-endian). The last of them has its highest bit
 * set and is the request's id; a reply has come back with nothing before it.
 *
 * Owner:   pure functions.
 * Units:   bytes.
 * Errors:  -EAGAIN more bytes are needed; -LS_EPARSE no SP, or no request or reply;
 *          -LS_EUNKNOWN another protocol of SP; -LS_ELIMIT longer than allowed.
 * Limits:  LS_FRAME_ROUTE_MAX_BYTES of routing words: eight devices between an agent
 *          and us.
 * Source:  SP TCP mapping (greeting, 64-bit length); SP request/reply protocol (routing
 *          words, the last one has its highest bit set).
 */
#ifndef LS_PROTO_FRAME_H
#define LS_PROTO_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

#define LS_FRAME_GREETING_BYTES 8
#define LS_FRAME_LENGTH_BYTES 8
#define LS_FRAME_ID_BYTES 4
#define LS_FRAME_ROUTE_MAX_BYTES 32
#define LS_FRAME_ID 0x80000000u /* in every id */

/* Who speaks; the values are SP's. */
enum ls_frame_side { LS_FRAME_REQ = 0x30, LS_FRAME_REP = 0x31 };

/* What `us` says first. */
void ls_frame_greet(enum ls_frame_side us, uint8_t *out);

/*
 * What the other side said first, LS_FRAME_GREETING_BYTES of it: 0 if it is `them`;
 * -LS_EPARSE or -LS_EUNKNOWN.
 */
int ls_frame_check_greeting(enum ls_frame_side them, const uint8_t *buf) LS_MUSTCHECK;

/*
 * How long the frame at buf is, its length field included, of which len bytes are
 * there. -EAGAIN: the field is not whole; -LS_ELIMIT: the message is longer than max.
 */
int ls_frame_length(const uint8_t *buf, size_t len, size_t max,
	size_t *ret_bytes) LS_MUSTCHECK;

/* Bytes of routing words with which a request of len bytes begins; they go back with
 * the reply. -LS_EPARSE. */
int ls_frame_route(const uint8_t *message, size_t len, size_t *ret_bytes) LS_MUSTCHECK;

/* The id with which a reply of len bytes begins, for who asked. -LS_EPARSE. */
int ls_frame_id(const uint8_t *message, size_t len, uint32_t *ret_id) LS_MUSTCHECK;

/* The length field of a message of len bytes. */
void ls_frame_put_length(uint8_t *out, size_t len);

/* The id of a request; its highest bit is set here. */
void ls_frame_put_id(uint8_t *out, uint32_t id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame - what SP puts around a request and its reply, as the side that replies sees it.
 *
 * Owner:   pure functions.
 * Units:   bytes.
 * Errors:  -EAGAIN more bytes are needed; -LS_EPARSE no SP, or no request; -LS_EUNKNOWN another protocol of SP;
 *          -LS_ELIMIT longer than allowed.
 * Limits:  LS_FRAME_ROUTE_MAX_BYTES of routing words: eight devices between an agent and us.
 * Source:  SP TCP mapping (greeting, 64-bit length); SP request/reply protocol (routing words, the last one
 *          has its highest bit set).
 */
#ifndef LS_COLLECTOR_FRAME_H
#define LS_COLLECTOR_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

#define LS_FRAME_GREETING_BYTES 8
#define LS_FRAME_LENGTH_BYTES 8
#define LS_FRAME_ROUTE_MAX_BYTES 32

/* What we say first. */
void ls_frame_greet(uint8_t *out);

/* What the other side said first, LS_FRAME_GREETING_BYTES of it: 0, -LS_EPARSE or -LS_EUNKNOWN. */
int ls_frame_check_greeting(const uint8_t *buf) LS_MUSTCHECK;

/*
 * How long the frame at buf is, its length field included, of which len bytes are there. -EAGAIN: the field is
 * not whole; -LS_ELIMIT: the message is longer than max.
 */
int ls_frame_length(const uint8_t *buf, size_t len, size_t max, size_t *ret_bytes) LS_MUSTCHECK;

/* Bytes of routing words with which a message of len bytes begins; they go back with the reply. -LS_EPARSE. */
int ls_frame_route(const uint8_t *message, size_t len, size_t *ret_bytes) LS_MUSTCHECK;

/* The length field of a message of len bytes. */
void ls_frame_put_length(uint8_t *out, size_t len);

#endif

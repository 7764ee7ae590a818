/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sp - the wire of a REQ socket over TCP, without a socket: greeting, frames, request ids.
 *
 * Each side greets with 8 bytes: 00 'S' 'P' 00, its protocol (16 bits, big-endian: 0x30 REQ, 0x31 REP)
 * and 00 00. Then come frames: a length (64 bits, big-endian) and so many bytes. Those of a request and its
 * answer begin with the request's id (32 bits, big-endian), whose highest bit is set.
 *
 * Owner:   pure functions on the caller's bytes.
 * Units:   bytes.
 * Errors:  -EAGAIN more bytes are needed; -LS_EPARSE no REP socket, or no answer; -LS_ELIMIT a frame
 *          larger than LS_ACK_MAX_BYTES.
 * Limits:  LS_ACK_MAX_BYTES.
 * Source:  RFC drafts sp-tcp-mapping-01 and sp-request-reply-01 of the nanomsg project; nng 1.5.2
 *          speaks them (system test sim.sh).
 */
#ifndef LS_TESTS_SIM_SP_H
#define LS_TESTS_SIM_SP_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

#define SIM_SP_GREETING_BYTES 8u
#define SIM_SP_HEAD_BYTES 12u   /* of a request: length and id */
#define SIM_SP_ID 0x80000000u

/* What a REQ socket says first. */
void sim_sp_greet(uint8_t out[SIM_SP_GREETING_BYTES]);

/* Is that the greeting of a REP socket? */
int sim_sp_check_greeting(const uint8_t *buf, size_t len) LS_MUSTCHECK;

/* The head of a request of body_len bytes; the highest bit of id is set here. */
void sim_sp_head(uint8_t out[SIM_SP_HEAD_BYTES], uint32_t id, size_t body_len);

/* An answer at the begin of buf: its id, where its body is, and how many bytes of buf it took. */
struct sim_sp_answer {
	uint32_t id;
	const uint8_t *body;
	size_t len, used;
};

int sim_sp_take(const uint8_t *buf, size_t len, struct sim_sp_answer *ret_answer) LS_MUSTCHECK;

#endif

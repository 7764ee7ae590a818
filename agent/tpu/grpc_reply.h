/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_reply - one answer of a unary call, put together from header fields and pieces
 * of data.
 *
 * Owner:   the caller; memory grows with what came, not with what was announced.
 * Units:   bytes.
 * Errors:  -LS_EPARSE an answer that is none; -LS_ELIMIT too long; -ENOMEM. The first
 *          one counts.
 * Limits:  LS_GRPC_MESSAGE_MAX_BYTES, LS_GRPC_HEADERS_MAX_BYTES,
 *          LS_GRPC_TEXT_MAX_BYTES.
 * Source:  "gRPC over HTTP2": Responses = (headers, messages, trailers) or trailers
 *          only; a message has a prefix of one byte (compressed) and four bytes of
 *          length, big-endian.
 */
#ifndef LS_AGENT_GRPC_REPLY_H
#define LS_AGENT_GRPC_REPLY_H

#include "agent/tpu/grpc.h"

#define LS_GRPC_PREFIX_BYTES 5

struct ls_grpc_reply {
	int rc; /* the first error */
	int http_status; /* 0: not told */
	int grpc_status; /* -1: not told */
	bool is_grpc; /* by its content type */
	size_t header_bytes;
	size_t prefix_len;
	uint8_t prefix[LS_GRPC_PREFIX_BYTES];
	size_t want; /* length of the message, once the prefix is there */
	size_t len, room;
	uint8_t *message;
	char text[LS_GRPC_TEXT_MAX_BYTES]; /* escaped */
};

/* An empty answer. */
void ls_grpc_reply_init(struct ls_grpc_reply *r);
/* Frees its memory. */
void ls_grpc_reply_fini(struct ls_grpc_reply *r);

/* Takes over one header or trailer field. 0, or the error the answer has. */
int ls_grpc_reply_header(struct ls_grpc_reply *r, const char *name, size_t name_len,
	const char *value, size_t value_len) LS_MUSTCHECK;

/* Takes over a piece of data. Likewise. */
int ls_grpc_reply_data(struct ls_grpc_reply *r, const uint8_t *data,
	size_t len) LS_MUSTCHECK;

/* The stream has ended as it should: what the answer is. It points into the reply. */
void ls_grpc_reply_finish(const struct ls_grpc_reply *r,
	struct ls_grpc_answer *ret_answer);

/* Begins a request: writes the prefix of a message of len bytes. */
void ls_grpc_prefix(uint8_t prefix[LS_GRPC_PREFIX_BYTES], uint32_t len);

#endif

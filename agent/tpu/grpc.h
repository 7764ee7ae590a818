/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc - a client for unary gRPC calls over plain-text HTTP/2: one connection, several
 * calls at once.
 *
 *             time is over                    SETTINGS seen
 *      HOLD -------------> CONNECTING -----------------------> UP
 *       ^                      | refused, no answer, no HTTP/2  | the peer says goodbye
 *       +----------------------+                                v
 *       +--- lost, silent, malformed, from UP and DRAINING ---- DRAINING: no new calls;
 *                                                               when the last one has ended: HOLD
 *
 * HOLD lasts hold_min_ns, twice as long after each connection that answered nothing,
 * LS_GRPC_HOLD_MAX_NS at most. Nothing blocks and no thread is kept. An answer is one
 * message that is not compressed, with the status OK in its trailers; everything else
 * is an error, and what breaks HTTP/2 ends the connection. No name is resolved and no
 * TLS is spoken: the peer is a number on this host or in this pod.
 *
 * Owner:   the loop thread. Not thread-safe. Callbacks may call ls_grpc_call, not
 *          ls_grpc_free.
 * Units:   ns, CLOCK_MONOTONIC; bytes.
 * Errors:  see ls_grpc_done.
 * Limits:  LS_GRPC_CALLS_MAX, LS_GRPC_MESSAGE_MAX_BYTES, LS_GRPC_HEADERS_MAX_BYTES,
 *          LS_GRPC_UNSENT_MAX_BYTES, LS_GRPC_TIMEOUTS_MAX.
 * Source:  "gRPC over HTTP2" (PROTOCOL-HTTP2 of the grpc project); RFC 9113; status
 *          codes: "Status codes and their use in gRPC".
 */
#ifndef LS_AGENT_GRPC_H
#define LS_AGENT_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_grpc;
struct ls_loop;

enum ls_grpc_state {
#define LS_GRPC_STATE(id, name) LS_GRPC_STATE_##id,
#include "agent/tpu/grpc_state.def"
#undef LS_GRPC_STATE
	LS_GRPC_STATE_COUNT
};

struct ls_grpc_stats {
#define LS_GRPC_STAT(field, help) uint64_t field;
#include "agent/tpu/grpc_stat.def"
#undef LS_GRPC_STAT
};

/* Status codes that mean something to us. */
enum ls_grpc_status {
	LS_GRPC_OK = 0,
	LS_GRPC_NOT_FOUND = 5,
	LS_GRPC_UNIMPLEMENTED = 12
};

/* How a call ended; holds during the callback only. */
struct ls_grpc_answer {
	/* 0: message and len are the answer, or status is not OK. -ETIMEDOUT: none in time. -LS_ENET: the
	   connection or the stream was lost. -LS_EPARSE: an answer that is none. -LS_ELIMIT: too long. -ENOMEM. */
	int rc;
	int status; /* of rc 0: enum ls_grpc_status, or another code of gRPC */
	const uint8_t *message;
	size_t len;
	const char *text; /* why, escaped; "" if nothing was said */
};

/* Told how a call ended. */
typedef void ls_grpc_done(void *arg, const struct ls_grpc_answer *answer);

struct ls_grpc_options {
	const char *address; /* IPv4 or IPv6, in figures */
	uint16_t port;
	uint64_t deadline_ns; /* of connecting, and of each call */
	/* between attempts to connect, at least; grows to LS_GRPC_HOLD_MAX_NS */
	uint64_t hold_min_ns;
	void *arg;
	/* The state has changed. May be NULL. */
	void (*changed)(void *arg, enum ls_grpc_state state);
};

/* Makes a connection and begins to connect at once. -LS_ERANGE: no address; -ENOMEM. */
int ls_grpc_new(struct ls_loop *loop, const struct ls_grpc_options *options,
	struct ls_grpc **ret_grpc) LS_MUSTCHECK;

/* Closes it; calls under way end without their callback. Accepts NULL. */
void ls_grpc_free(struct ls_grpc *g);

/*
 * Begins a call; done(arg, ...) follows exactly once, never from within this function.
 * -LS_EBUSY: not up, or LS_GRPC_CALLS_MAX calls are under way; -LS_ELIMIT: the request
 * is too long; -ENOMEM. path is copied.
 */
int ls_grpc_call(struct ls_grpc *g, const char *path, const uint8_t *request,
	size_t len, ls_grpc_done *done, void *arg) LS_MUSTCHECK;

/* The state now, and why it is no better ("" in UP). */
enum ls_grpc_state ls_grpc_get_state(const struct ls_grpc *g);
const char *ls_grpc_why(const struct ls_grpc *g);
/* What the last attempt to connect said: 0 connected, -ECONNREFUSED, -ETIMEDOUT,
 * -LS_EPARSE, ... */
int ls_grpc_last_error(const struct ls_grpc *g);
/* Calls under way. */
size_t ls_grpc_pending(const struct ls_grpc *g);
/* Counters; borrowed. */
const struct ls_grpc_stats *ls_grpc_get_stats(const struct ls_grpc *g);

#endif

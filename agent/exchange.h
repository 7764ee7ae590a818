/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange - one request at a time to the collector, over nng's REQ (SP over TCP).
 *
 * One socket, one dialer, one context, made once and closed once. nng connects, connects again and
 * resends by itself; what it does on its own threads comes to the loop through a queue.
 *
 * nng 1.5.2 starts one thread per CPU for time-outs and up to 16 for tasks, and has no setting for it:
 * they sleep, but a limit of tasks of the service must allow for them.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   t_receive_mono_ns is CLOCK_MONOTONIC, read when the answer arrived.
 * Errors:  -LS_ERANGE an address that is none, -LS_EBUSY a request is under way, -ENOMEM, -errno,
 *          -LS_ENET.
 * Limits:  answers of LS_ACK_MAX_BYTES; LS_RECONNECT_MIN_NS to LS_RECONNECT_MAX_NS between
 *          attempts to connect; LS_RESEND_NS.
 * Source:  nng(7), nng_req(7), nng_tcp(7) of 1.5.2. Its issue 1702: cancelling a receive while its
 *          send is pending crashes, so the receive starts where the send has completed.
 */
#ifndef LS_AGENT_EXCHANGE_H
#define LS_AGENT_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_exchange;
struct ls_loop;

enum ls_exchange_event {
	LS_EXCHANGE_UP,     /* connected */
	LS_EXCHANGE_DOWN,   /* no connection; nng tries again */
	LS_EXCHANGE_ANSWER, /* of the request under way, which is over */
	LS_EXCHANGE_FAILED  /* the request is over without an answer */
};

struct ls_exchange_handler {
	void *arg;
	/* On the loop. bytes: of an answer, valid during the call. */
	void (*event)(void *arg, enum ls_exchange_event event, const uint8_t *bytes, size_t len,
		uint64_t t_receive_mono_ns);
};

/* Begins to connect to url ("tcp://host:port") and returns at once. */
int ls_exchange_open(struct ls_loop *loop, const char *url,
	const struct ls_exchange_handler *handler, struct ls_exchange **ret_exchange)
	LS_MUSTCHECK;

/* Sends a request (copied); its end comes as an event. */
int ls_exchange_send(struct ls_exchange *x, const uint8_t *buf, size_t len) LS_MUSTCHECK;

/* Gives the request under way up; LS_EXCHANGE_FAILED follows. Harmless when there is none. */
void ls_exchange_cancel(struct ls_exchange *x);

/* Ends everything; no event comes after. Accepts NULL. Not from a handler. */
void ls_exchange_close(struct ls_exchange *x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange - one request at a time to the collector: SP's request/reply on a TCP stream
 * of nng.
 *
 *          time is over        connected           greeted        given up, not all sent
 *   PAUSE -------------> DIAL -----------> GREET -----------> UP --------------> REST
 *     ^                   |                  |                | <-------------- |
 *     |                   |                  |                |   all sent      |
 *     +-------------------+------------------+----------------+-----------------+ failed, late, lost, no sense
 *
 * We speak REQ ourselves because nng 1.5.2's REQ socket hangs for ever, in nng_close
 * too, when a connection ends between the head of a message and its body (fixed after
 * it: "finish receive aio on TCP pipe close", 1636).
 *
 * A connection and all that nng needs for it are made to dial, and stopped and freed
 * together when it is over; nothing of it is used again, so that nothing can come from
 * it later. Names are resolved at each dial. nng's threads only receive on, send on,
 * and tell the loop through a queue.
 *
 * A request is sent once: what TCP took arrives, or the connection is lost. An answer
 * that has another id than the request under way (that one was given up) is dropped. A
 * connection is given up when it brings what no collector says, more answers than
 * requests, or none to LS_EXCHANGE_UNANSWERED_MAX requests one after the other.
 *
 * nng 1.5.2 starts one thread per CPU for time-outs and up to 16 for tasks, and has no
 * setting for it: they sleep, but a limit of tasks of the service must allow for them.
 *
 * Owner:   the agent loop thread. Not thread-safe.
 * Units:   t_receive_mono_ns is CLOCK_MONOTONIC, read when the answer arrived.
 * Errors:  -LS_ERANGE an address that is none, -LS_ELIMIT one that is too long, or a
 *          request; -LS_EBUSY a request is under way, -LS_ENET not connected, -ENOMEM,
 *          -errno.
 * Limits:  answers of LS_ACK_MAX_BYTES, requests of LS_REPORT_MAX_BYTES with their id;
 *          LS_EXCHANGE_PATIENCE_NS to be connected and for the rest of a request that was
 *          given up, LS_EXCHANGE_LINE_FACTOR times that to be greeted; between attempts a pause of up to
 *          LS_RECONNECT_MIN_NS, then up to twice the last, LS_RECONNECT_MAX_NS at most
 *          (LS_REJECT_HOLD_NS when a certificate was refused);
 *          an answer begins anew.
 * Source:  proto/wire/frame.h (SP); nng_stream(5), nng_aio_stop(3) of 1.5.2.
 */
#ifndef LS_AGENT_EXCHANGE_H
#define LS_AGENT_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"
#include "proto/limits.h"

struct ls_exchange;
struct ls_loop;
struct ls_tls;

enum ls_exchange_state {
#define LS_EXCHANGE_STATE(id, name) LS_EXCHANGE_STATE_##id,
#include "agent/uplink/exchange_state.def"
#undef LS_EXCHANGE_STATE
	LS_EXCHANGE_STATE_COUNT
};

enum ls_exchange_event {
	LS_EXCHANGE_UP, /* connected */
	/* no connection; it is tried again. FAILED follows if a request was under way
	 */
	LS_EXCHANGE_DOWN,
	LS_EXCHANGE_ANSWER, /* of the request under way, which is over */
	LS_EXCHANGE_FAILED /* the request is over without an answer */
};

struct ls_exchange_handler {
	void *arg;
	/* On the loop. bytes: of an answer, valid during the call. */
	void (*event)(void *arg, enum ls_exchange_event event, const uint8_t *bytes,
		size_t len, uint64_t t_receive_mono_ns);
};

/*
 * Begins to connect to url ("tcp://host:port") and returns at once. tls: borrowed, and
 * refreshed before each connection; NULL: plain.
 */
int ls_exchange_open(struct ls_loop *loop, const char *url, struct ls_tls *tls,
	const struct ls_exchange_handler *handler,
	struct ls_exchange **ret_exchange) LS_MUSTCHECK;

/*
 * Sends a request; its end comes as an event. buf is borrowed until then, or until
 * ls_exchange_close. Allocates nothing, unless TLS does.
 */
int ls_exchange_send(struct ls_exchange *x, const uint8_t *buf,
	size_t len) LS_MUSTCHECK;

/*
 * Gives the request under way up; LS_EXCHANGE_FAILED follows, when all of it is sent:
 * half a frame cannot be taken back. A collector that does not take the rest in
 * LS_EXCHANGE_PATIENCE_NS is left. Harmless when there is none.
 */
void ls_exchange_cancel(struct ls_exchange *x);

/* Another patience than LS_EXCHANGE_PATIENCE_NS, from the next state on. */
void ls_exchange_set_patience(struct ls_exchange *x, uint64_t patience_ns);

/*
 * What is wrong with the collector, by the last connection: "", or the end of a sentence
 * about it. Borrowed. *ret_count: how often TLS failed.
 */
const char *ls_exchange_wrong(const struct ls_exchange *x, uint64_t *ret_count);

/* The state now. */
enum ls_exchange_state ls_exchange_get_state(const struct ls_exchange *x);

/* Ends everything; no event comes after. Accepts NULL. Not from a handler. */
void ls_exchange_close(struct ls_exchange *x);

#endif

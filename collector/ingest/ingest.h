/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest - the nng side of the collector: requests in, replies out.
 *
 * Streams of nng with the frames of its REQ/REP put around by us (proto/wire/frame.h):
 * a report wakes one thread of nng, where a REP socket wakes them six times. A
 * connection has one request at a time, from its receipt until its reply is sent, which
 * may be after a commit; only then the next one is read, so TCP holds the agents back.
 * nng's callbacks only receive, stamp, check the size and push to a queue; the rest
 * happens on the loop. Whoever asks again without reading the reply, or sends what is
 * no request, is closed. So is, with TLS, who has no valid certificate: at the handshake,
 * and at the first request after the keys changed or the certificate expired.
 *
 * Owner:   the loop thread; nng's threads run the callbacks.
 * Units:   ns, CLOCK_MONOTONIC; bytes.
 * Errors:  those of ls_err_nng; -LS_EPARSE the address.
 * Limits:  LS_REPORT_MAX_BYTES a request with its frame (larger ones close the
 *          connection), memory for it grows with what has come; LS_FRAMES_MAX_BYTES for
 *          all large requests: beyond it a request waits, and of those that are not
 *          complete the idlest is closed; LS_FRAME_TIME_NS from its first byte to its
 *          last, and for a handshake of TLS; LS_TLS_HANDSHAKES_MAX of these, beyond which
 *          the slow ones are closed, and accepting pauses; LS_CONNECTIONS_MAX; the contexts given: requests beyond wait, not
 *          looked at.
 * Source:  SP request/reply protocol, nng_stream(5). nng listens with a backlog of 128,
 *          so 10,000 agents that come back at once wait for SYN retries; listen(2)
 *          again on its socket is allowed.
 */
#ifndef LS_COLLECTOR_INGEST_H
#define LS_COLLECTOR_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/base/err.h"

struct ls_ingest;
struct ls_ingest_request;
struct ls_loop;
struct ls_tls;

struct ls_ingest_options {
	const char *url; /* tcp://ADDRESS:PORT; port 0: any free one */
	unsigned contexts; /* requests that may wait for their reply at once */
	struct ls_tls *tls; /* borrowed; the loop may refresh it. NULL: plain */
};

/* Connections that we closed, and why. */
enum ls_ingest_refusal {
#define LS_INGEST_REFUSAL(id, name, help) LS_INGEST_REFUSED_##id,
#include "collector/ingest/ingest_refusals.def"
#undef LS_INGEST_REFUSAL
	LS_INGEST_REFUSED_COUNT
};

struct ls_ingest_stats {
	uint64_t requests, replies, bytes, send_errors;
	uint64_t handshakes, resumed; /* of TLS; of these, of a session before */
	uint64_t refused[LS_INGEST_REFUSED_COUNT];
	unsigned busy; /* requests waiting for their reply */
};

/*
 * Called on the loop for each request. Exactly one ls_ingest_reply must follow, now or
 * later; the data lives until then.
 */
typedef void ls_ingest_fn(void *arg, struct ls_ingest_request *request,
	const uint8_t *data, size_t len, uint64_t t_receive_mono_ns);

/* Listens and begins to receive. */
int ls_ingest_open(struct ls_loop *loop, const struct ls_ingest_options *options,
	ls_ingest_fn *fn, void *arg, struct ls_ingest **ret_ingest) LS_MUSTCHECK;

/*
 * Sends the reply, now or at the peer's due_mono_ns; loop thread only. A delayed reply
 * keeps neither the request's memory nor a context. buf NULL or not to be sent for want
 * of memory: the request is dropped, and the agent asks again.
 */
void ls_ingest_reply(struct ls_ingest_request *request, const uint8_t *buf, size_t len);

/* What the caller keeps of a connection, and asks for its reply. */
struct ls_ingest_peer {
	uint32_t begun; /* a count of the caller's, 0 at first */
	/* of its address (of its /64 of IPv6), below LS_RATE_ADDRESSES */
	uint32_t address;
	/* the next reply is not sent before (0 again when it is) */
	uint64_t due_mono_ns;
	const char *name; /* in its certificate; NULL: plain */
};
struct ls_ingest_peer *ls_ingest_peer(struct ls_ingest_request *request);

/* No request is given to fn any more; replies may still be sent. */
void ls_ingest_stop(struct ls_ingest *ingest);

/* Closes all and frees; requests without reply are dropped. Accepts NULL. */
void ls_ingest_close(struct ls_ingest *ingest);

/* The port listened on. */
int ls_ingest_port(const struct ls_ingest *ingest);

/* Counters so far. */
void ls_ingest_stats(const struct ls_ingest *ingest, struct ls_ingest_stats *ret_stats);

/* Name of a refusal; NULL if out of range. */
const char *ls_ingest_refusal_name(unsigned refusal);

#endif

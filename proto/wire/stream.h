/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream - a connection of nng, plain or with TLS (proto/wire/tls.h).
 *
 * As nng_stream: recv and send take the caller's aio, and its callback asks what came of
 * it (ls_stream_received, ls_stream_sent). With TLS that may be nothing yet, and the
 * caller does the same again. The handshake happens on the threads of nng, in
 * ls_stream_received; nothing blocks. What is sent before the handshake is over waits in
 * the stream; it goes out when a receipt ends the handshake.
 *
 * Owner:   one loop thread, and the callbacks of its aios: one recv and one send at a
 *          time, from any of them. A lock of its own orders them.
 * Units:   bytes.
 * Errors:  nng's codes, NNG_EPROTO: ls_stream_tell says more.
 * Limits:  LS_TLS_SLICE_BYTES a send; the rest is left to the next one,
 *          LS_STREAM_EARLY_BYTES before the handshake is over.
 * Source:  nng_stream(5), nng_aio_begin(3) of 1.4 and later.
 */
#ifndef LS_PROTO_STREAM_H
#define LS_PROTO_STREAM_H

#include <nng/nng.h>
#include "proto/wire/tls.h"

#define LS_STREAM_EARLY_BYTES 16 /* twice a greeting */

struct ls_stream;

/*
 * Takes raw over, unless it fails: -ENOMEM. tls NULL: plain. host: as ls_tls_peer_new.
 */
int ls_stream_new(nng_stream *raw, struct ls_tls *tls, const char *host,
	struct ls_stream **ret_stream) LS_MUSTCHECK;

/*
 * Receives up to len bytes into buf, which has room for `room` bytes; with TLS all of
 * them are used.
 */
void ls_stream_recv(struct ls_stream *s, void *buf, size_t len, size_t room,
	nng_aio *aio);
/* In the callback of aio: how many bytes came. */
int ls_stream_received(struct ls_stream *s, nng_aio *aio,
	size_t *ret_bytes) LS_MUSTCHECK;

/* Sends; the data is borrowed until the callback of aio. */
void ls_stream_send(struct ls_stream *s, const nng_iov *iov, unsigned count,
	nng_aio *aio);
/*
 * In the callback of aio, or when it is over: how many bytes were sent. What was not is
 * to be sent again, and nothing else.
 */
int ls_stream_sent(struct ls_stream *s, nng_aio *aio, size_t *ret_bytes) LS_MUSTCHECK;

/* With TLS: as ls_tls_peer_holds. While no aio is under way. */
bool ls_stream_holds(const struct ls_stream *s);

/* True if plain, or as ls_tls_peer_is_trusted. */
bool ls_stream_is_trusted(struct ls_stream *s);
/* What TLS knows of the other side. NULL: plain, or s is NULL. */
const struct ls_tls_told *ls_stream_tell(const struct ls_stream *s);

/* Ends both directions; the callbacks of aios that are under way follow. Accepts NULL. */
void ls_stream_close(struct ls_stream *s);
/* When the caller's aios are stopped. Accepts NULL. */
void ls_stream_free(struct ls_stream *s);

#endif
